"""Is the default worse than the best published method? A sign test in every cell, and Holm's correction over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from benchmarks.utility.summary import Cell

__all__ = ["LEVEL", "Verdict", "holm", "judge", "sign_test"]

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """The default against the published method with the lowest mean error of a cell.

    Parameters
    ----------
    ours, best : Cell
        The two that are compared.
    p_value : float
        That ours has the higher error, corrected over all cells.
    word : {"lower", "not higher", "lost"}
        "lost": significantly higher, or nothing was released; else whether the mean is lower.
    most_f1 : float
        The highest mean F1 of any published method of the cell.
    """

    ours: Cell
    best: Cell
    p_value: float
    word: str
    most_f1: float

    @property
    def higher_f1(self) -> bool:
        """Whether the support is nearer to the truth than that of the best published method."""
        return self.ours.f1 > self.best.f1


def sign_test(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The probability of at least so many seeds with the higher value for ours if either were as likely.

    Seeds with equal values are dropped.
    """
    differences = np.subtract(ours, theirs)
    higher, lower = int(np.sum(differences > 0.0)), int(np.sum(differences < 0.0))
    return float(binom.sf(higher - 1, higher + lower, 0.5))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number: what is below a level then is so with all tests together at that level."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected.tolist()


def judge(cells: Sequence[Cell], default: str) -> list[Verdict]:
    """The verdict on a default in each cell where it and a published method are finished.

    Parameters
    ----------
    cells : sequence of Cell
        Of all methods.
    default : str
        Which of ours.
    """
    pairs = []
    for ours in cells:
        if ours.method != default:
            continue
        beside = (ours.data_set, ours.epsilon)
        published = [
            cell
            for cell in cells
            if cell.family == "published" and (cell.data_set, cell.epsilon) == beside and cell.results
        ]
        if published:
            best = min(published, key=lambda cell: cell.error)
            pairs.append((ours, best, max(cell.f1 for cell in published)))
    # A method that refuses to fit has lost, and leaves nothing to be tested.
    raw = [sign_test(ours.errors, best.errors) if ours.results else 0.0 for ours, best, _ in pairs]
    verdicts = []
    for (ours, best, most_f1), p_value in zip(pairs, holm(raw), strict=True):
        word = "lost" if p_value < LEVEL else "lower" if ours.error < best.error else "not higher"
        verdicts.append(Verdict(ours, best, p_value, word, most_f1))
    return verdicts
