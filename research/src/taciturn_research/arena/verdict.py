"""Is ours worse than the best rival? A sign test in every cell, and Holm's correction over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.privacy.budget import Budget
from taciturn.privacy.gdp import mu_of_budget
from taciturn_research.arena.catalogue import DATA_SETS
from taciturn_research.arena.methods import DELTA
from taciturn_research.arena.run import Cell
from taciturn_research.harness import sign_test

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """Ours against the rival with the lowest mean of a measure in a cell.

    Parameters
    ----------
    ours, best : Cell
        The two that are compared.
    measured : {"error", "log_loss"}
        By what.
    p_alone, p_value : float
        That ours is higher: of the cell by itself, and corrected over all cells.
    lower : bool
        Whether the mean is lower, over the seeds that both have.
    most_f1 : float
        The highest mean F1 of any rival of the cell.
    """

    ours: Cell
    best: Cell
    measured: str
    p_alone: float
    p_value: float
    lower: bool
    most_f1: float

    @property
    def word(self) -> str:
        """Lost: significantly higher after the correction, or nothing was released; else by the means."""
        return "lost" if self.p_value < LEVEL else "lower" if self.lower else "not higher"

    @property
    def higher(self) -> bool:
        """Whether ours is significantly higher in this cell by itself, without a correction."""
        return self.p_alone < LEVEL

    @property
    def higher_f1(self) -> bool:
        """Whether the support is nearer to the truth than that of the best rival."""
        return self.ours.f1 > self.best.f1


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number: what is below a level then is so with all tests together at that level."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()


def best_of(cells: Sequence[Cell], measured: str) -> Cell:
    """The cell of the lowest mean; one with fewer seeds has to be lower on these, since seeds differ in difficulty."""
    by_seeds = sorted(cells, key=lambda cell: -len(cell.values(measured)))
    best = by_seeds[0]
    for cell in by_seeds[1:]:
        values = cell.values(measured)
        if float(np.mean(values)) < float(np.mean(best.values(measured)[: len(values)])):
            best = cell
    return best


def judge(
    cells: Sequence[Cell], name: str, rivals: Callable[[Cell], bool], measured: str = "error"
) -> list[Verdict]:  # fmt: skip
    """The verdict on one of ours in each cell where it and a rival are finished.

    Parameters
    ----------
    cells : sequence of Cell
        Of all methods.
    name : str
        Which of ours.
    rivals : callable
        Whether a cell is one of those that ours is compared with.
    measured : {"error", "log_loss"}
        By what.
    """
    pairs = []
    for ours in cells:
        if ours.method != name:
            continue
        beside = (ours.data_set, ours.epsilon)
        found = [
            cell for cell in cells if (cell.data_set, cell.epsilon) == beside and rivals(cell) and cell.values(measured)
        ]
        if found:
            best = best_of(found, measured)
            pairs.append((ours, best, max(cell.f1 for cell in found)))
    raw = [_compared(ours.values(measured), best.values(measured)) for ours, best, _ in pairs]
    corrected = holm([p_value for p_value, _ in raw])
    return [
        Verdict(ours, best, measured, p_alone, p_value, lower, most_f1)
        for (ours, best, most_f1), (p_alone, lower), p_value in zip(pairs, raw, corrected, strict=True)
    ]


def _compared(ours: list[float], theirs: list[float]) -> tuple[float, bool]:
    """The p-value of a cell, and whether ours has the lower mean, over the seeds that both have."""
    n_seeds = min(len(ours), len(theirs))
    if n_seeds == 0:
        # A method that refuses to fit has lost, and leaves nothing to be tested.
        return 0.0, False
    ours, theirs = ours[:n_seeds], theirs[:n_seeds]
    return sign_test(ours, theirs), float(np.mean(ours)) < float(np.mean(theirs))


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cells there are, in how many ours is lower, significantly higher by itself, and lost."""

    n_cells: int
    lower: int
    higher: int
    lost: int


def tally(verdicts: Sequence[Verdict]) -> Tally:
    """Count verdicts."""
    return Tally(
        len(verdicts),
        sum(verdict.lower for verdict in verdicts),
        sum(verdict.higher for verdict in verdicts),
        sum(verdict.word == "lost" for verdict in verdicts),
    )


# ---------------------------------------------------------------------
# Who is compared with whom, and how often ours is lower or higher over all cells.


PREDICTION = "default, as advised"
"""The size that the page on the default advises for prediction, which the pages compare with the peers."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of ours against a group of rivals.

    Parameters
    ----------
    ours : str
        Name of the method.
    against : str
        The rivals in words.
    rivals : callable
        Whether a cell is one of theirs.
    measures : tuple of str
        By what they are compared.
    from_others : bool
        Whether settings of rivals were chosen on other sets.
    """

    ours: str
    against: str
    rivals: Callable[[Cell], bool]
    measures: tuple[str, ...] = ("error", "log_loss")
    from_others: bool = False


def of_practice(cell: Cell) -> bool:
    """A method that practitioners would use."""
    return cell.family == "practice"


def published(cell: Cell) -> bool:
    """A published method."""
    return cell.family == "published"


def published_at_k(cell: Cell) -> bool:
    """A published method that uses no more than k features, but for one in which its count may differ."""
    return published(cell) and cell.nonzeros <= DATA_SETS[cell.data_set].k + 1


def named(name: str) -> Callable[[Cell], bool]:
    """One method alone."""
    return lambda cell: cell.method == name


_PRACTICE = "best peer of practice"

COMPARISONS = (
    *(
        comparison
        for ours in (PREDICTION, "default, k auto", "default, all")
        for comparison in (
            Comparison(ours, _PRACTICE, of_practice),
            Comparison(ours, f"{_PRACTICE}, settings from other sets", of_practice, from_others=True),
            Comparison(ours, "first edition, k auto", named("first edition, k auto")),
        )
    ),
    Comparison("default", _PRACTICE, of_practice),
    Comparison("default", "first edition", named("first edition")),
    Comparison("default", "best published at the same k", published_at_k, ("error",)),
    Comparison("default", "best published", published, ("error",)),
)


def verdicts_of(comparison: Comparison, measured: str, cells: Sequence[Cell]) -> list[Verdict]:
    """The verdicts of a comparison; ``cells`` have the best settings by that measure."""
    return judge(cells, comparison.ours, comparison.rivals, measured)


# ---------------------------------------------------------------------
# A constant is the least that a model has to be better than.


MOST_ABOVE_CONSTANT = 1.05
ENOUGH_RECORDS = 25.0
"""Records times the Gaussian parameter from which on a log-loss above that is a fault."""


def above_constant(cells: Sequence[Cell], name: str, constant: str) -> tuple[int, list[tuple[Cell, Cell]]]:
    """In how many cells of enough records a method is judged, and those where its log-loss is far above a constant's.

    Parameters
    ----------
    cells : sequence of Cell
        Of all methods.
    name, constant : str
        The method, and the one that fits a constant without privacy.
    """
    constants = {cell.data_set: cell for cell in cells if cell.method == constant and cell.values("log_loss")}
    judged, above = 0, []
    for cell in cells:
        least = constants.get(cell.data_set)
        if cell.method != name or least is None or cell.epsilon is None or not cell.values("log_loss"):
            continue
        if cell.mean("records") * mu_of_budget(Budget(epsilon=cell.epsilon, delta=DELTA)) < ENOUGH_RECORDS:
            continue
        judged += 1
        count = min(len(cell.values("log_loss")), len(least.values("log_loss")))
        ours, theirs = (float(np.mean(each.values("log_loss")[:count])) for each in (cell, least))
        if ours > MOST_ABOVE_CONSTANT * theirs:
            above.append((cell, least))
    return judged, above
