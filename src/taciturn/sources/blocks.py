"""The records of one partition, on the lattice."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from taciturn.core.arrays import IndexArray, NumberArray
from taciturn.data.design import Design

__all__ = ["Block"]

Value = TypeVar("Value")


class Block:
    """The records of one partition, and what tasks need again in the next round.

    Parameters
    ----------
    design : Design
        All features, without an intercept column.
    target : ndarray of shape (n_rows,)
        The mapped target: lattice numbers, or class codes with -1 for null records.

    Notes
    -----
    A fit asks many sums of the same columns in a row, for instance one gradient per step. The block remembers what
    they share: the columns, and one value per name that :meth:`recall` is called with. Keys are compared by content, so
    that a task which was pickled finds what its predecessor left. Other columns begin another phase: everything that
    belongs to the earlier ones is forgotten, and memory stays bounded.
    """

    def __init__(self, design: Design, target: NumberArray) -> None:
        self._whole, self.target = design, target
        self._phase: tuple[bytes | None, str | None] = (None, None)
        self._design = design
        self._memo: dict[str, tuple[Hashable, Any]] = {}

    @property
    def n_rows(self) -> int:
        """The number of records that are stored here."""
        return self._whole.shape[0]

    def design(self, columns: IndexArray | None, layout: str | None = None) -> Design:
        """Some of the features, or all of them for None.

        Parameters
        ----------
        columns : ndarray of int or None
            Which.
        layout : {"csr", "csc"}, default=None
            How sparse features are stored; None for as they are.
        """
        phase = None if columns is None else columns.tobytes(), layout
        if phase != self._phase:
            chosen = self._whole if columns is None else self._whole.columns(columns)
            self._design = chosen if layout is None else chosen.in_layout(layout)
            self._phase, self._memo = phase, {}
        return self._design

    def recall(self, name: str, key: Hashable, compute: Callable[[], Value]) -> Value:
        """What ``compute`` returned for this name and key since the columns of :meth:`design` were last changed.

        One value is kept per name, that of the latest key. The key has to determine the value, by its content.
        """
        kept = self._memo.get(name)
        if kept is None or kept[0] != key:
            kept = self._memo[name] = key, compute()
        value: Value = kept[1]
        return value
