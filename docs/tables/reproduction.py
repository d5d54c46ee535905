"""What holds of the papers, from the results of a run: a file beside the code that reproduces them.

``python docs/tables/reproduction.py reproduction/results.json`` writes it, ``make reproduce`` the results. Tables of
docs/papers.md count what it lists (``python docs/tables/papers.py --write``).
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taciturn_research.reproduce.pages.blocks import Stamped, escaped, markdown_table
from taciturn_research.reproduce.pages.content import MEANING, counted, short_name

RESULTS = Path(__file__).parents[2] / "research" / "src" / "taciturn_research" / "reproduce" / "results.md"
MOST_REASONS = 3
LONGEST_REASON = 200

INTRODUCTION = """\
# What one run of the reproduction found

`make reproduce` writes this file; `docs/papers.md` explains it and sums it up. Below `reproduction/` the run leaves all
numbers, figures and seeds."""


def report(results: dict[str, Any]) -> str:
    """The whole file."""
    experiments = results["experiments"]
    blocks = [
        INTRODUCTION,
        "## What holds",
        f"{MEANING} {counted('printed numbers', results['numbers'])} {counted('claims', results['claims'])}",
        markdown_table(("paper", "item", "verdict"), summary_lines(experiments)),
        "## Data",
        *data_sentences(experiments),
        "## This run",
        f"Computed by {', '.join(f'{name} {number}' for name, number in results['versions'].items())}.",
        markdown_table(
            ("experiment", "trials", "in the paper", "scaling"),
            (
                (name, found["trials"], str(found["trials of the paper"]), found["scaling"])
                for name, found in experiments.items()
            ),
            numeric=(1, 2),
        ),
    ]
    if results["without trials"]:
        blocks.append(f"Left out, since no trial of them is finished: {', '.join(results['without trials'])}.")
    return "\n\n".join(blocks) + "\n"


def summary_lines(experiments: dict[str, Any]) -> Iterator[tuple[str, str, str | Stamped]]:
    """A line for every table and figure; its experiment is named where several speak about it."""
    times = Counter((found["paper"], item["item"]) for found in experiments.values() for item in found["items"])
    for name, found in experiments.items():
        for item in found["items"]:
            shared = times[found["paper"], item["item"]] > 1
            yield short_name(found["paper"]), f"{item['item']} ({name})" if shared else item["item"], verdict(item)


def verdict(item: dict[str, Any]) -> str | Stamped:
    """What holds of an item, and why the rest does not."""
    if not item["outcome"]:
        return item["verdict"]
    failed = [one for one in (*item["numbers"], *item["claims"]) if one["outcome"] == "does not hold"]
    reasons = list(dict.fromkeys(one["reason"] or "no reason found" for one in failed))
    shown = [textwrap.shorten(reason, LONGEST_REASON, placeholder=" ...") for reason in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        shown.append(f"{len(reasons) - MOST_REASONS} more in the report")
    why = f". Why: {'; '.join(shown)}" if shown else ""
    return Stamped(item["outcome"], "neutral", after=f": {item['verdict']}{why}")


def data_sentences(experiments: dict[str, Any]) -> Iterator[str]:
    """Which data sets are not to be had, and what stands in for them."""
    missing = dict.fromkeys(name for found in experiments.values() for name in found["not available"])
    stand_ins = {name: other for found in experiments.values() for name, other in found["stand-ins"].items()}
    if missing:
        yield f'Not available to this run: {escaped(", ".join(missing))}. Their rows read "not run".'
    if stand_ins:
        pairs = (f"{name} for {other}" for name, other in stand_ins.items())
        yield f"Stand-ins, whose numbers are not comparable with the paper's: {escaped(', '.join(pairs))}."
    if not missing and not stand_ins:
        yield "All data sets were there."


def main(arguments: list[str]) -> int:
    """Write the file."""
    if len(arguments) != 1:
        print("usage: reproduction.py results.json", file=sys.stderr)
        return 2
    results = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    RESULTS.write_text(report(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
