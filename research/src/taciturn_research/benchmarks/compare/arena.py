"""The arena's stored means (``taciturn_research/arena/summary.csv``), and how often the default is lower or higher."""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DEFAULT", "PEERS", "PRACTICE", "PUBLISHED", "Contest", "Mean", "Peer", "Score", "contests", "read", "score"]

SUMMARY = Path(__file__).parents[2] / "arena" / "summary.csv"
DEFAULT = "default, as advised"
PRACTICE = ("DP-GD", "ObjectivePerturbation", "AdaSSP", "boosted AdaSSP", "DP-EBM", "diffprivlib")
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
