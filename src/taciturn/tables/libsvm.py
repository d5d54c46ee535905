"""libsvm files: sparse rows of numbers, with the target in front."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.errors import DataError
from taciturn.data.unit_range import to_unit_range
from taciturn.tables.bounds import TableBounds, missing_column
from taciturn.tables.columns import Target
from taciturn.tables.encoding import Labels, bounded_target, feature_bounds, missing_value, not_boolean
from taciturn.tables.files import TableFile, each_without_cells
from taciturn.tables.schema import LABEL, TableSchema, is_index
from taciturn.tables.words import quoted, refusal

if TYPE_CHECKING:
    from taciturn.tables.sheets import SheetStream
    from taciturn.tables.streams import TableStream

__all__ = ["SparseEncoding", "libsvm_blocks", "libsvm_schema", "numeric_target"]

_BLOCK = 1 << 23
"""Approximate number of bytes that are parsed at a time."""

_LONGEST_LINE = 1 << 26
"""In bytes: an entry for each of the columns that a file may have."""

_MOST_INDEX = 4_000_000


def libsvm_blocks(file: TableFile, stream: TableStream | SheetStream | None = None) -> Iterator[tuple[Any, FloatArray]]:
    """Read rows and labels in blocks; the column of an entry is its index in the file.

    ``stream`` is the opened file, where the caller watches how far it is read.
    """
    from sklearn.datasets import load_svmlight_file

    def blocks() -> Iterator[tuple[Any, FloatArray]]:
        with stream or file.open() as opened:
            for lines in _whole_lines(file, opened):
                rows, labels = load_svmlight_file(io.BytesIO(lines), zero_based=True)
                if rows.shape[1] > _MOST_INDEX + 1:
                    raise DataError(
                        f"{file.name}: expected indices up to {_MOST_INDEX:,}, got larger ones; number the columns "
                        "from 1 on."
                    )
                if labels.size:
                    yield rows, labels

    return each_without_cells(file, blocks)


def _whole_lines(file: TableFile, opened: TableStream | SheetStream) -> Iterator[bytes]:
    """Read blocks of bytes that end at the end of a line."""
    rest: list[bytes] = []
    length = 0
    while data := opened.read(_BLOCK):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, data[:cut]])
            rest, length = [], 0
        rest.append(data[cut:])
        length += len(data) - cut
        if length > _LONGEST_LINE:
            raise DataError(
                f"{file.name}: expected lines of at most {_LONGEST_LINE:,} bytes, got a longer one; check the ends of "
                "lines."
            )
    if length:
        yield b"".join(rest)


def libsvm_schema(file: TableFile) -> TableSchema:
    """The target and one column for every index up to the largest, which takes a pass over the file."""
    first, last = 1, 0
    for rows, _ in libsvm_blocks(file):
        if rows.nnz:
            last = max(last, int(rows.indices.max()))
            first = min(first, int(rows.indices.min()))
    names = (LABEL, *map(str, range(first, last + 1)))
    return TableSchema(names, ("number",) * len(names), sparse=True)


class SparseEncoding:
    """The map from entries with an index to features.

    The bounds are those for a table (:meth:`TableBounds.for_table`): names are indices, and the encoding of every
    column maps zero to zero. ``invalid`` is that of :class:`~taciturn.tables.encoding.Encoding`, for entries.
    """

    def __init__(self, bounds: TableBounds, *, invalid: str = "raise") -> None:
        self._strict = invalid == "raise"
        bounds.require_bounds()
        self._names = bounds.order or ()
        for name, column in bounds.used:
            if not is_index(name):
                raise DataError(missing_column(name, TableSchema((LABEL,), ("number",), sparse=True)))
            other = column.type not in ("number", "boolean")
            if other or (column.type == "number" and column.ends[0] != -column.ends[1]):
                raise refusal(
                    f"columns.{quoted(name)}",
                    column.type if other else (column.lower, column.upper),
                    "numbers with lower = -upper in a libsvm table, whose zeros would fill up otherwise",
                    "widen the bounds until they are symmetric about zero",
                )
            fill = bounds.fill_of(name)
            if fill is not None and fill.indicator:
                raise refusal(
                    f"missing.{quoted(name)}",
                    "indicator",
                    "a value in a libsvm table",
                    "fill in a value, or take it out",
                )
        self._upper = feature_bounds(bounds)[1]
        self._truths = np.array([column.type == "boolean" for _, column in bounds.used])
        self._fills = np.array([float(bounds.missing.get(name, math.nan)) for name in self._names])
        # Indices beyond the largest admissible one share one more place.
        indices = np.array([min(int(name), _MOST_INDEX + 1) for name in self._names])
        self._place = np.full(int(indices.max()) + 2, -1, dtype=np.int64)
        self._place[indices] = np.arange(indices.size)

    def encode(self, rows: Any) -> sp.csr_matrix:
        """Encode rows; indices that do not enter the model are dropped."""
        columns = self._place[np.minimum(rows.indices, self._place.size - 1)]
        kept = columns >= 0
        at_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[kept]
        columns, entries = columns[kept], rows.data[kept]
        gaps = np.isnan(entries)
        entries[gaps] = self._fills[columns[gaps]]
        if self._strict:
            self._check(columns[np.isnan(entries)], missing_value)
        wrong = self._truths[columns] & (entries != 0.0) & (entries != 1.0)
        if self._strict:
            self._check(columns[wrong], not_boolean)
        entries[wrong] = np.nan
        bounds = self._upper[columns]
        entries = to_unit_range(entries, -bounds, bounds, out=entries)
        indptr = np.concatenate(([0], np.cumsum(np.bincount(at_row, minlength=rows.shape[0]))))
        out = sp.csr_matrix((entries, columns, indptr), shape=(rows.shape[0], len(self._names)))
        out.sort_indices()
        return out

    def _check(self, wrong: IntArray, sentence: Callable[[str], str]) -> None:
        """Raise if there is a column with a wrong entry, and name the first one."""
        if wrong.size:
            raise DataError(sentence(self._names[wrong.min()]))


def numeric_target(target: Target, fill: Any, labels: FloatArray, *, invalid: str = "raise") -> NDArray[Any]:
    """Convert the numbers at the beginnings of the lines to targets."""
    if target.task == "regress":
        return bounded_target(target, fill, labels, invalid=invalid)
    if target.classes is None:
        return labels
    return Labels(target, fill).from_numbers(labels)
