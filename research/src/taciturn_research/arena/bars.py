"""Who is compared with whom, and how often ours is lower or higher over all cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from taciturn_research.arena.catalogue import DATA_SETS
from taciturn_research.arena.summary import Cell
from taciturn_research.arena.verdict import Verdict, judge

__all__ = ["COMPARISONS", "PREDICTION", "Comparison", "verdicts_of"]

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
    """

    ours: str
    against: str
    rivals: Callable[[Cell], bool]
    measures: tuple[str, ...] = ("error", "log_loss")


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
