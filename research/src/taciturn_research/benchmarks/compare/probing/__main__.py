"""Run the probes of one library in its own environment and print the answers; the argument is its name."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version

from taciturn_research.benchmarks.compare.probing.common import Answer, Probe
from taciturn_research.benchmarks.compare.probing.models import DIFFPRIVLIB, INTERPRET, OPACUS, TACITURN
from taciturn_research.benchmarks.compare.probing.queries import OPENDP, SMARTNOISE, TUMULT

# Packages, the first of which names the version, and probes.
LIBRARIES: dict[str, tuple[tuple[str, ...], dict[str, Probe]]] = {
    "taciturn": (("taciturn",), TACITURN),
    "diffprivlib": (("diffprivlib",), DIFFPRIVLIB),
    "interpret": (("interpret-core",), INTERPRET),
    "opendp": (("opendp",), OPENDP),
    "smartnoise": (("smartnoise-sql", "smartnoise-synth"), SMARTNOISE),
    "tumult": (("tmlt.analytics",), TUMULT),
    "opacus": (("opacus",), OPACUS),
}


def main(name: str) -> int:
    """One JSON line: versions and answers."""
    packages, probes = LIBRARIES[name]
    # What packages print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found = {
        "versions": {package: version(package) for package in packages},
        "answers": {feature: list(_answer(probe)) for feature, probe in probes.items()},
    }
    answers.write(json.dumps(found) + "\n")
    answers.flush()
    return 0


def _answer(probe: Probe) -> Answer:
    """A probe that fails says nothing about the library."""
    try:
        return probe()
    except Exception as error:
        return "unclear", f"the probe failed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
