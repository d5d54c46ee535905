"""Write or check the comparison pages: ``python -m taciturn_research.benchmarks.compare [NAME ...] --write | --check``.

``--probe`` asks the libraries first whether they have the features of the page on features.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from taciturn_research.benchmarks.compare import features, speed, utility
from taciturn_research.pages import MissingMarksError, differing, write

PARTS: dict[str, ModuleType] = {"utility": utility, "speed": speed, "features": features}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit with 1 if a page holds anything but what the stored data say, or has no marks."""
    parser = argparse.ArgumentParser(prog="python -m taciturn_research.benchmarks.compare", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which parts (all): {', '.join(PARTS)}")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write tables and pictures")
    what.add_argument("--check", action="store_true", help="compare them with what the stored data say")
    parser.add_argument("--probe", action="store_true", help="run the probes of features in all environments first")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if options.probe and features.probe_all():
        return 1
    wrong = []
    for name in options.parts or PARTS:
        for path, tables in PARTS[name].parts().items():
            try:
                if options.write:
                    write(path, tables)
                elif differing(path, tables):
                    wrong.append(f"{path.name} holds other tables")
            except MissingMarksError as error:
                wrong.append(str(error))
        for path, drawn in PARTS[name].pictures().items():
            if options.write:
                path.write_text(drawn, encoding="utf-8")
            elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
                wrong.append(f"{path.name} is another picture")
    for sentence in wrong:
        print(f"{sentence}; see python -m taciturn_research.benchmarks.compare --write", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
