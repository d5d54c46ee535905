"""What an experiment of a paper is: which data it needs, what one trial computes, and what the paper prints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["NOT_PRIVATE_SCALING", "SYNTHETIC", "Experiment", "Layout", "Published", "Row", "seed_of"]

Row = dict[str, Any]
"""One number of one trial: its ``value``, and under the other keys what it is the value of."""

NOT_PRIVATE_SCALING = "scaled by the data's own values: not private"
"""The stamp on results of data whose bounds were read off the data, as the papers do."""

SYNTHETIC = "synthetic"
"""Stands for the data set of an experiment that needs none."""


@dataclass(frozen=True, slots=True)
class Published:
    """A number as a paper prints it.

    Parameters
    ----------
    of : dict
        What it is the value of: the keys of a row without its ``value``.
    value : float
        The printed number.
    tolerance : float, default=0.0
        How far ours may be off where nothing is random. Where something is, two standard deviations count.
    reason : str, default=""
        Why ours differs, for the verdict.
    """

    of: Row
    value: float
    tolerance: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the numbers of an experiment are arranged where the paper prints none to set beside them.

    Parameters
    ----------
    lines : tuple of str
        Keys that name the lines of a table.
    across : str
        Key whose values are the columns.
    split : str, default=None
        Key of whose values each has a table of its own.
    mean_over : str, default=None
        Key of ``lines`` over whose values a first table takes the mean.
    figure : bool, default=False
        Whether to draw the numbers too: a panel per value of the first key of ``lines``, a curve per value of the
        second, ``across`` on a logarithmic axis.
    """

    lines: tuple[str, ...]
    across: str
    split: str | None = None
    mean_over: str | None = None
    figure: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or figure of a paper, with the sound methods beside the published ones.

    Parameters
    ----------
    name : str
        What the command line calls it.
    paper, item : str
        Where it comes from.
    summary : str
        What it measures, in one line.
    relation : str
        The neighbouring relation of the privacy claims.
    scaling : str
        How features and target were scaled.
    notes : tuple of str
        How what the paper leaves open was read.
    datasets : tuple of str
        Names for ``load_dataset``; each is run by itself. Empty where the trials make their own data.
    trials, quick_trials : int
        The paper's number of trials, and that of the quick setting.
    prepare : callable
        ``prepare(dataset)``: whatever has no randomness in it, computed once per data set. Gets None where there is
        no data set.
    run : callable
        ``run(prepared, seed)``: the rows of one trial, a function of its arguments alone.
    layout : Layout
        For the numbers that the paper does not print.
    published : tuple of Published
        The numbers that it prints.
    """

    name: str
    paper: str
    item: str
    summary: str
    relation: str
    scaling: str
    notes: tuple[str, ...]
    datasets: tuple[str, ...]
    trials: int
    quick_trials: int
    prepare: Callable[[Any], Any]
    run: Callable[[Any, int], list[Row]]
    layout: Layout
    published: tuple[Published, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        """What is run and recorded by itself: the data sets, or the synthetic one."""
        return self.datasets or (SYNTHETIC,)


def seed_of(*words: object) -> int:
    """A seed that depends on the words alone, so that no trial depends on the order or the place in which it runs.

    Examples
    --------
    >>> from taciturn.reproduce.experiment import seed_of
    >>> seed_of("table", "alon", 3) == seed_of("table", "alon", 3), seed_of("table", "alon", 3) == seed_of("table", 3)
    (True, False)
    """
    text = "\n".join(str(word) for word in words)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")
