"""Stata files (.dta) as record batches, read by pandas."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.core.errors import DataError
from taciturn.tables.files import TableFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StataReader", "stata_schema"]

_DATES = ("%tc", "%td", "%d", "%tw", "%tm", "%tq", "%th", "%ty")
"""Formats of dates. Moments with leap seconds, %tC, stay numbers."""


@dataclass(frozen=True, slots=True)
class _StataColumn:
    """The type of a column, from the head of the file, and the labels of its values."""

    type: Any
    labels: Mapping[int, str] | None

    def cells(self, values: Any) -> Any:
        """An Arrow array of the stated type; every cell is converted by itself."""
        import pyarrow as pa

        if self.labels is not None:
            return pa.array([self._label(value) for value in values.tolist()], pa.string()).dictionary_encode()
        if pa.types.is_string(self.type):
            # Stata has no missing text but the empty one, so that it counts as missing.
            return pa.array([value or None for value in values.tolist()], self.type)
        return pa.array(values, self.type, from_pandas=True, safe=not pa.types.is_timestamp(self.type))

    def _label(self, value: float) -> str | None:
        """The label of a value; one without a label is the text of its number."""
        if value != value:
            return None
        # Whole numbers arrive as doubles where a cell beside them is missing.
        whole = int(value) if value == int(value) else None
        if whole is None or self.labels is None:
            return repr(float(value))
        return self.labels.get(whole, str(whole))


def stata_schema(file: TableFile) -> Any:
    """The Arrow schema, which the head of the file states; no row is read. Columns with labelled values are text."""
    import pyarrow as pa

    return pa.schema([(name, column.type) for name, column in _columns(file).items()])


class StataReader:
    """The selected columns of a Stata file."""

    def __init__(self, file: TableFile, names: Sequence[str]) -> None:
        self._file, self._names = file, list(names)

    def count_rows(self) -> int:
        """The number of rows, which takes a pass over the file: what the head states may not be there."""
        return sum(len(frame) for frame in self._frames(1 << 16))

    def batches(self, n_rows: int) -> Iterator[pa.RecordBatch]:
        """Blocks of rows, all of the same types."""
        import pyarrow as pa

        columns = _columns(self._file)
        types = pa.schema([(name, columns[name].type) for name in self._names])
        for frame in self._frames(n_rows):
            arrays = [columns[name].cells(frame[name].to_numpy()) for name in self._names]
            yield pa.RecordBatch.from_arrays(arrays, schema=types)

    def _frames(self, n_rows: int) -> Iterator[Any]:
        with _open(self._file, chunksize=n_rows, columns=self._names) as reader:
            while True:
                # What pandas warns of may tell of a cell.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    frame = next(reader, None)
                if frame is None:
                    return
                yield frame


def _open(file: TableFile, **options: Any) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise DataError(
            f"{file.name}: expected pandas for a file named .dta; run pip install 'taciturn[stata]'."
        ) from None
    # pandas would make categories of all values of a block together, and refuse labels that two values share.
    return pd.read_stata(file.path, convert_categoricals=False, **options)


def _columns(file: TableFile) -> dict[str, _StataColumn]:
    """The columns by name, from the head of the file and the labels at its end."""
    # A reader that has read labels does not find long texts any more, so that rows are read by another one.
    with _open(file, iterator=True) as reader:
        labels = reader.value_labels()
        # pandas has no public way to tell types and which labels belong to which column.
        facts = zip(reader._varlist, reader._dtyplist, reader._fmtlist, reader._lbllist, strict=True)
        return {name: _column(dtype, form, labels.get(label)) for name, dtype, form, label in facts}


def _column(dtype: Any, form: str, labels: Mapping[Any, str] | None) -> _StataColumn:
    import pyarrow as pa

    if form.startswith(_DATES):
        return _StataColumn(pa.timestamp("ms"), None)
    # Long texts, strL, have no type of their own.
    if dtype is None or np.dtype(dtype).kind not in "if":
        return _StataColumn(pa.string(), None)
    if labels:
        known = {int(value): text for value, text in labels.items()}
        return _StataColumn(pa.dictionary(pa.int32(), pa.string()), known)
    return _StataColumn(pa.from_numpy_dtype(dtype), None)
