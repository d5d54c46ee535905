"""The accuracy on the page of comparisons: the default beside every peer of the arena, from its stored means."""

from __future__ import annotations

import csv
import math
import statistics
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from taciturn_research.arena.reasons import reason_for_size
from taciturn_research.benchmarks.compare.drawing import Dot, Strip, strips
from taciturn_research.pages import REPOSITORY, Marks, table, table_marks

# ---------------------------------------------------------------------
# The arena's stored means (``taciturn_research/arena/summary.csv``), and how often the default is lower or higher.


SUMMARY = Path(__file__).parents[2] / "arena" / "summary.csv"
DEFAULT = "default, as advised"
# The last four are in no stored results yet, and get rows of their own with the first.
PRACTICE = (
    "DP-GD", "ObjectivePerturbation", "AdaSSP", "boosted AdaSSP", "DP-EBM", "diffprivlib",
    "DP-Newton", "Hessian mixing", "BinAgg", "AIM, then a fit",
)  # fmt: skip
PUBLISHED = ("DPIGHT", "Sparsifier", "TwoStage")
CLEARLY = 2.0
"""A difference of means is clear from so many of its standard errors on."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One method or the best of several, as a row of the table.

    Parameters
    ----------
    name : str
        In the table.
    methods : tuple of str
        As the arena calls them; of several the one with the lowest mean in the cell.
    """

    name: str
    methods: tuple[str, ...]


PEERS = (
    Peer("best peer of practice in each cell", PRACTICE),
    Peer("DP-GD", ("DP-GD",)),
    Peer("objective perturbation", ("ObjectivePerturbation",)),
    Peer("AdaSSP", ("AdaSSP",)),
    Peer("boosted AdaSSP", ("boosted AdaSSP",)),
    Peer("DP-EBM (interpret)", ("DP-EBM",)),
    Peer("diffprivlib", ("diffprivlib",)),
    Peer("best published method in each cell", PUBLISHED),
    Peer("our first edition", ("first edition, k auto",)),
)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean error of a method in a cell over seeds, and its standard error."""

    method: str
    error: float
    standard_error: float


Cells = dict[tuple[str, float], dict[str, Mean]]
"""By data set and epsilon, then by method; methods that were skipped are left out."""


@dataclass(frozen=True, slots=True)
class Contest:
    """The default against one peer in one cell."""

    data_set: str
    epsilon: float
    ours: Mean
    theirs: Mean

    @property
    def ratio(self) -> float:
        """Our error over theirs."""
        return self.ours.error / self.theirs.error if self.theirs.error else math.inf

    @property
    def lower(self) -> bool:
        """Whether our mean is lower."""
        return self.ours.error < self.theirs.error

    @property
    def higher(self) -> bool:
        """Whether our mean is higher."""
        return self.ours.error > self.theirs.error

    @property
    def clear(self) -> bool:
        """Whether the means differ by more than twice the standard error of their difference."""
        spread = math.hypot(self.ours.standard_error, self.theirs.standard_error)
        return abs(self.ours.error - self.theirs.error) > CLEARLY * spread

    @property
    def place(self) -> str:
        """The cell in words."""
        return f"{self.data_set} at {self.epsilon:g}"


@dataclass(frozen=True, slots=True)
class Score:
    """Cells compared, and those in which ours is lower, clearly lower, higher, clearly higher; the ratios' median."""

    cells: int
    lower: int
    clearly_lower: int
    higher: int
    clearly_higher: int
    median_ratio: float
    worst: Contest


def read(path: Path = SUMMARY) -> Cells:
    """The stored means of all private methods.

    The file has the standard deviation over seeds with divisor n, so that its root of n - 1 gives the standard error.
    """
    cells: Cells = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            if line["epsilon"] and line["error"]:
                error, deviation, seeds = float(line["error"]), float(line["error_sd"]), int(line["seeds"])
                found = Mean(line["method"], error, deviation / math.sqrt(seeds - 1) if seeds > 1 else math.inf)
                cells.setdefault((line["set"], float(line["epsilon"])), {})[found.method] = found
    return cells


def contests(cells: Cells, methods: Sequence[str], ours: str = DEFAULT) -> list[Contest]:
    """The default against the best of some methods, in all cells where both are there."""
    found = []
    for (data_set, epsilon), means in cells.items():
        rivals = [means[method] for method in methods if method in means]
        if rivals and ours in means:
            found.append(Contest(data_set, epsilon, means[ours], min(rivals, key=lambda mean: mean.error)))
    return found


def score(found: Sequence[Contest]) -> Score:
    """Count contests."""
    return Score(
        cells=len(found),
        lower=sum(contest.lower for contest in found),
        clearly_lower=sum(contest.lower and contest.clear for contest in found),
        higher=sum(contest.higher for contest in found),
        clearly_higher=sum(contest.higher and contest.clear for contest in found),
        median_ratio=statistics.median(contest.ratio for contest in found),
        worst=max(found, key=lambda contest: contest.ratio),
    )


PAGE = REPOSITORY / "docs" / "compare.md"
README = REPOSITORY / "README.md"
PICTURE = REPOSITORY / "docs" / "compare-utility.svg"
RESULTS = SUMMARY.with_name("results.md")
README_MARKS: Marks = ("<!-- peers: begin -->", "<!-- peers: end -->")

# Losses of this ratio have their reasons on the page, whether they are clear or not.
LARGE_LOSS = 1.1
COLOURS = {0.5: "#b2182b", 1.0: "#e08214", 5.0: "#2166ac"}

# README has the two hardest comparisons as numbers, and all of them in its picture.
SHORT = tuple(peer for peer in PEERS if peer.name.startswith("best "))


def parts() -> dict[Path, dict[Marks, str]]:
    """Every generated part, by page."""
    cells = read()
    return {
        PAGE: {
            table_marks("compare_accuracy"): opening(cells),
            table_marks("compare_peers"): by_peer(cells),
            table_marks("compare_sets"): by_set(cells),
            table_marks("compare_reasons"): reasons(cells),
            table_marks("compare_paired"): paired(RESULTS.read_text(encoding="utf-8")),
        },
        README: {README_MARKS: by_peer(cells, SHORT)},
    }


def opening(cells: Cells) -> str:
    """The hardest comparison as a sentence."""
    total = score(contests(cells, PRACTICE))
    return textwrap.fill(
        f"**Accuracy.** At equal epsilon and delta the test error of the default is lower than that of the best of "
        f"{len(_stored(cells, PRACTICE))} other methods in {total.lower} of {total.cells} cells (clearly in "
        f"{total.clearly_lower}) and higher in {total.higher} (clearly in {total.clearly_higher}), although the best "
        f"method and its settings are chosen on the test data. The median of the ratios is {total.median_ratio:.2f}, "
        f"the largest {total.worst.ratio:.2f} ({total.worst.place}).",
        120,
    )


def _stored(cells: Cells, methods: Sequence[str]) -> set[str]:
    return {method for means in cells.values() for method in means} & set(methods)


def by_peer(cells: Cells, peers: Sequence[Peer] = PEERS) -> str:
    """All cells, a row per peer."""
    return table(_HEADS, [_row(peer.name, score(contests(cells, peer.methods))) for peer in peers])


def by_set(cells: Cells) -> str:
    """Errors of the default and of the best peer of practice, a row per data set."""
    found = {(contest.data_set, contest.epsilon): contest for contest in contests(cells, PRACTICE)}
    epsilons = sorted({epsilon for _, epsilon in found})
    heads = ["data set"]
    for epsilon in epsilons:
        heads += [f"default, epsilon {epsilon:g}", "best peer"]
    rows = []
    for data_set in dict.fromkeys(name for name, _ in found):
        row = [data_set]
        for epsilon in epsilons:
            row += _errors(found[data_set, epsilon]) if (data_set, epsilon) in found else ("", "")
        rows.append(row)
    return table(heads, rows)


def reasons(cells: Cells) -> str:
    """Cells in which the best peer of practice is clearly better, or by a tenth; the largest losses first."""
    found = [c for c in contests(cells, PRACTICE) if c.higher and (c.clear or c.ratio >= LARGE_LOSS)]
    rows = [
        [
            contest.place,
            _number(contest.ours.error),
            f"{_number(contest.theirs.error)} ({contest.theirs.method})",
            f"{contest.ratio:.2f}",
            "yes" if contest.clear else "no",
            f'`"{size}"`',
            reason_for_size(contest.data_set, size),
        ]
        for contest in sorted(found, key=lambda contest: -contest.ratio)
        for size in (size_used(cells, contest),)
    ]
    return table(["cell", "default", "best peer", "ratio", "clearly higher", "size", "reason"], rows)


def size_used(cells: Cells, contest: Contest) -> str:
    """Which size was advised in a cell: the one that has the same mean."""
    means = cells[contest.data_set, contest.epsilon]
    return "all" if means["default, all"].error == contest.ours.error else "auto"


def paired(results: str) -> str:
    """The arena's own counts for the default, which compare seed by seed."""
    lines = [line for line in results.splitlines() if line.startswith((f"| {DEFAULT} |", "| ours | against |"))]
    heads, rule = lines[0], "|" + " --- |" * (lines[0].count("|") - 1)
    # The head is repeated by no other table of the report.
    return "\n".join([heads, rule, *dict.fromkeys(lines[1:])])


def pictures() -> dict[Path, str]:
    """The strip of ratios of every peer."""
    cells = read()
    rows = []
    for peer in PEERS:
        found = contests(cells, peer.methods)
        dots = tuple(
            Dot(contest.ratio, COLOURS[contest.epsilon], _label(contest), strong=contest.higher and contest.clear)
            for contest in found
        )
        total = score(found)
        rows.append(Strip(_SHORT_NAMES.get(peer.name, peer.name), dots, f"{total.lower} of {total.cells} lower"))
    largest = max(dot.value for row in rows for dot in row.dots)
    key = [*((colour, f"epsilon {epsilon:g}", False) for epsilon, colour in COLOURS.items())]
    key.append(("#ffffff", "with a rim: clearly higher", True))
    drawn = strips(
        rows,
        title="Test error of the default / that of the peer, a dot per data set and epsilon; below 0.1 at the left end",
        sides=("the default is better", "the peer is better"),
        key=key,
        # Losses take the room: how far below a tenth a ratio is matters less than every one above 1.
        ends=(0.1, max(2.5, largest)),
    )
    return {PICTURE: drawn}


_HEADS = ("against", "cells", "lower", "clearly lower", "higher", "clearly higher", "median ratio", "worst cell")
_SHORT_NAMES = {
    "best peer of practice in each cell": "best peer of practice",
    "best published method in each cell": "best published method",
}


def _row(name: str, total: Score) -> list[str]:
    worst = total.worst
    return [
        name,
        str(total.cells),
        f"{total.lower} ({total.lower / total.cells:.0%})",
        str(total.clearly_lower),
        str(total.higher),
        str(total.clearly_higher),
        f"{total.median_ratio:.2f}",
        f"{worst.place}: {worst.ratio:.2f} ({_number(worst.ours.error)} against {_number(worst.theirs.error)})",
    ]


def _errors(contest: Contest) -> tuple[str, str]:
    word = " (**clearly higher**)" if contest.clear else " (higher)"
    ours = _number(contest.ours.error) + (word if contest.higher else "")
    return ours, f"{_number(contest.theirs.error)} ({contest.theirs.method})"


def _label(contest: Contest) -> str:
    errors = f"{_number(contest.ours.error)} against {_number(contest.theirs.error)} ({contest.theirs.method})"
    return f"{contest.place}: {errors}"


def _number(error: float) -> str:
    """All digits that are stored."""
    return f"{error:.4g}"
