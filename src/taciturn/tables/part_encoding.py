"""Some of the features of a partition, encoded from stored columns as :func:`~taciturn.tables.read_table` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import IntArray
from taciturn.tables.bounds import TableBounds
from taciturn.tables.encoding import Encoding, target_numbers, target_reader
from taciturn.tables.libsvm import SparseEncoding, numeric_target
from taciturn.tables.schema import LABEL

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DensePart", "EncodedPart", "SparsePart", "sparse_batch"]

EncodedPart = tuple[Any, NDArray[Any], list[Any] | None]
"""Features, target, and the keys of persons."""

_INDICES, _VALUES = "indices", "values"


class DensePart:
    """The features at some places, for tables with named columns.

    Parameters
    ----------
    bounds : TableBounds
        Bounds of the table, resolved for it.
    columns : ndarray of int or None
        Places of the features, in increasing order; None for all.
    invalid : {"raise", "null"}
        As in :func:`~taciturn.tables.read_table`.
    found : sequence of str, default=()
        Columns whose bounds were found privately, without the records whose number is infinite: such a cell is NaN.

    Attributes
    ----------
    names : list of str
        The columns of the table that are read.
    """

    def __init__(self, bounds: TableBounds, columns: IntArray | None, invalid: str, found: Sequence[str] = ()) -> None:
        self._kept: IntArray | None = None
        if columns is not None:
            widths = [len(bounds.column_features(name, column)) for name, column in bounds.used]
            owners = np.repeat(np.arange(len(widths)), widths)
            needed = np.unique(owners[columns])
            # Places among the features of the columns that are read, which may have more than those asked for.
            kept = np.searchsorted(np.flatnonzero(np.isin(owners, needed)), columns)
            order = bounds.order or ()
            bounds = replace(bounds, order=tuple(order[at] for at in needed.tolist()))
            self._kept = None if kept.size == sum(widths[at] for at in needed.tolist()) else kept
        target = self._target = bounds.target
        self._person = bounds.person
        self._encoding = Encoding(bounds, invalid=invalid)
        self._fill = bounds.missing.get(target.name)
        self._to_target = target_reader(target, self._fill, invalid=invalid)
        named = () if self._person is None else (self._person,)
        self.names = [*(bounds.order or ()), target.name, *named]
        # The only feature of such a column, or the first one, where another says that a cell is missing.
        places = {name: place for place, name in enumerate(bounds.feature_names)}
        self._found = [(name, places[name]) for name in found if name in (bounds.order or ())]
        self._target_found = target.name in found

    def encode(self, batches: Sequence[pa.RecordBatch]) -> EncodedPart:
        """Encode batches of the columns ``names``, in order, as one block of rows."""
        X = np.empty((sum(batch.num_rows for batch in batches), self._encoding.n_features))
        targets = []
        keys: list[Any] | None = None if self._person is None else []
        start = 0
        for batch in batches:
            columns = batch.columns
            if keys is not None:
                keys += columns.pop().to_pylist()
            targets.append(self._targets(columns.pop()))
            part = X[start : start + batch.num_rows]
            self._encoding.fill(columns, part)
            for name, place in self._found:
                part[np.isinf(self._encoding.numbers(name, batch.column(name))), place] = np.nan
            start += batch.num_rows
        return X if self._kept is None else np.take(X, self._kept, axis=1), np.concatenate(targets), keys

    def _targets(self, values: Any) -> NDArray[Any]:
        targets = self._to_target(values)
        if self._target_found:
            targets[np.isinf(target_numbers(self._target, self._fill, values))] = np.nan
        return targets


class SparsePart:
    """The features at some places, for libsvm tables; parameters as for :class:`DensePart`."""

    names = (LABEL, _INDICES, _VALUES)

    def __init__(self, bounds: TableBounds, columns: IntArray | None, invalid: str) -> None:
        order = bounds.order or ()
        chosen = order if columns is None else tuple(order[at] for at in columns.tolist())
        self._target, self._fill, self._invalid = bounds.target, bounds.missing.get(bounds.target.name), invalid
        self._encoding = SparseEncoding(replace(bounds, order=chosen), invalid=invalid) if chosen else None

    def encode(self, batches: Sequence[pa.RecordBatch]) -> EncodedPart:
        """Encode batches of :func:`sparse_batch`."""
        parts, targets = [], []
        for batch in batches:
            labels, indices, values = (batch.column(name) for name in self.names)
            targets.append(numeric_target(self._target, self._fill, labels.to_numpy(), invalid=self._invalid))
            if self._encoding is None:
                parts.append(sp.csr_matrix((batch.num_rows, 0)))
                continue
            starts = indices.offsets.to_numpy()
            inside = slice(starts[0], starts[-1])
            entries = values.values.to_numpy()[inside], indices.values.to_numpy()[inside], starts - starts[0]
            width = int(entries[1].max(initial=0)) + 1
            parts.append(self._encoding.encode(sp.csr_matrix(entries, shape=(batch.num_rows, width))))
        return sp.vstack(parts, format="csr"), np.concatenate(targets), None


def sparse_batch(rows: Any, labels: NDArray[Any]) -> pa.RecordBatch:
    """Rows of a libsvm file as a record batch: the label, and lists of indices and of values."""
    import pyarrow as pa

    starts = pa.array(rows.indptr, pa.int32())
    columns = [
        pa.array(labels),
        pa.ListArray.from_arrays(starts, pa.array(rows.indices, pa.int32())),
        pa.ListArray.from_arrays(starts, pa.array(rows.data)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(SparsePart.names))
