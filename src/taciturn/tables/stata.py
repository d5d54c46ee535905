"""Stata files (.dta) as record batches, read by pandas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import DataError
from taciturn.tables.files import TableFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StataReader", "stata_schema"]

_FIRST_ROWS = 1000


def stata_schema(file: TableFile) -> Any:
    """The Arrow schema of the first rows. Labelled values count as text."""
    for batch in StataReader(file, None).batches(_FIRST_ROWS):
        return batch.schema
    raise DataError(f"{file.name}: expected at least one row, got none; add records.")


class StataReader:
    """The selected columns of a Stata file, or all of them for None."""

    def __init__(self, file: TableFile, names: Sequence[str] | None) -> None:
        self._file, self._names = file, None if names is None else list(names)

    def count_rows(self) -> int:
        """The number of rows, which takes a pass over the file: pandas does not tell it."""
        return sum(len(frame) for frame in self._frames(1 << 16))

    def batches(self, n_rows: int) -> Iterator[pa.RecordBatch]:
        """Blocks of rows. Stata has no missing text but the empty one, so that it counts as missing."""
        import pyarrow as pa

        for frame in self._frames(n_rows):
            texts = frame.select_dtypes(["object", "string"]).columns
            frame[texts] = frame[texts].astype(object).where(frame[texts] != "", None)
            yield from pa.Table.from_pandas(frame, preserve_index=False).combine_chunks().to_batches()

    def _frames(self, n_rows: int) -> Iterator[Any]:
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise DataError(
                f"{self._file.name}: expected pandas for a file named .dta; run pip install 'taciturn[stata]'."
            ) from None
        with pd.read_stata(self._file.path, chunksize=n_rows, columns=self._names) as reader:
            yield from reader
