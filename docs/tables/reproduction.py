"""The page docs/reproduction.md: what holds of the papers, from the results of a run.

``python docs/tables/reproduction.py reproduction/results.json`` writes the page, ``make reproduce`` the file.
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

PAGE = Path(__file__).parents[1] / "reproduction.md"
MOST_REASONS = 3
LONGEST_REASON = 200

INTRODUCTION = """\
# Reproduction

`taciturn reproduce` reproduces the tables and figures of five papers with [`taciturn.published`](published.md). It puts
our number beside the printed one, and shows the result of the sound estimator of the same name at the same privacy. A
number that could not be reproduced is marked, with the reason if one was found. Settings are those that the papers
print; if a paper leaves a setting open, the report says which one was taken.

This page summarises one run. The run writes all numbers, figures and seeds into a folder:
`reproduction.html`, the same as `reproduction.md`, `results.json`, and the figures as PNG and SVG.

## How to run it

```sh
# The quick setting: under 30 minutes on 2 cores.
make reproduce
# The papers' numbers of trials: many hours.
make reproduce FULL=1
# The list of experiments, and one of them, on the data sets of a folder.
taciturn reproduce list
taciturn reproduce NAME --data FOLDER
```

Data sets are read from the folder after `--data`, then from that of `TACITURN_DATA`, then from a cache. None is
downloaded: if one is missing, the command names the expected file and the address of its publisher. A run that was
stopped continues where it stopped.

**Privacy.** None. The papers scale data by values computed from the data, and so does this command. It is for public
data only."""

LIMITS = """\
## Limits

* One run, with the numbers of trials of the last table; the papers have more in some places. A number near its
  tolerance may turn out otherwise in another run.
* Data sets that are not to be had are not run. Stand-ins are not comparable with the paper's sets.
* Settings that a paper leaves open are guessed. "Not found" means that no reading that was tried gives the number.
* Nothing here is private."""


def page(results: dict[str, Any]) -> str:
    """The whole page."""
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
    return "\n\n".join((*blocks, LIMITS)) + "\n"


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
    """Write the page."""
    if len(arguments) != 1:
        print("usage: reproduction.py results.json", file=sys.stderr)
        return 2
    results = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    PAGE.write_text(page(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
