"""CSV, Parquet and Arrow files as record batches of the columns that are wanted, in the types that were stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import DataError
from taciturn.tables.files import TableFile, each_without_cells, without_cells
from taciturn.tables.schema import MOST_COLUMNS, TableSchema, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Wanted", "arrow_schema", "stream_batches", "whole_batches"]

_CELLS = 1 << 22
"""About as many cells are held as one batch."""

# Larger blocks are slower, as they leave the processor's cache.
_LEAST_BLOCK, _MOST_BLOCK = 1 << 20, 1 << 30
_RELEASE_EVERY = 64
_LONGEST_HEADER = 1 << 24


@dataclass(frozen=True)
class Wanted:
    """The columns to read.

    Parameters
    ----------
    types : mapping of str to str
        The columns in order, each with "number", "boolean", "text", or "as it is".
    listed : mapping of str to frozenset, default={}
        Texts that are values of a column even where they look like a missing one, such as the category "NA".
    """

    types: Mapping[str, str]
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns, in order."""
        return list(self.types)


def arrow_schema(file: TableFile) -> TableSchema:
    """Names and kinds of the columns; those of a text table as its first rows suggest."""
    if file.format == "csv":
        options = _csv_options(file, Wanted({}))
        schema = without_cells(file, lambda: _opened_csv(file, options).schema)
    else:
        schema = without_cells(file, lambda: _opened(file).schema)
    names = tuple(without_cells(file, lambda: schema.names))
    if file.format == "csv":
        _check_delimiter(file, names)
    return TableSchema(names, tuple(map(kind_of, schema.types)))


def whole_batches(file: TableFile, schema: TableSchema, wanted: Wanted) -> tuple[int, Iterator[pa.RecordBatch]]:
    """The number of rows, and all of them in batches that are given up as they are handed out."""
    if file.format != "csv":
        n_rows = without_cells(file, lambda: _opened(file).count())
        return n_rows, stream_batches(file, schema, wanted)
    options = _csv_options(file, wanted, schema)
    batches = without_cells(file, lambda: _read_csv(file, options).to_batches(), schema.names)
    n_rows = sum(batch.num_rows for batch in batches)

    def hand_out() -> Iterator[pa.RecordBatch]:
        from pyarrow import default_memory_pool

        batches.reverse()
        while batches:
            yield _with_gaps(batches.pop(), wanted)
            # What was handed out is freed, but not given back by itself.
            if len(batches) % _RELEASE_EVERY == 0:
                default_memory_pool().release_unused()

    return n_rows, hand_out()


def stream_batches(file: TableFile, schema: TableSchema, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The rows in batches, of which one is held at a time."""
    if file.format == "csv":
        options = _csv_options(file, wanted, schema)
        for batch in each_without_cells(file, lambda: iter(_opened_csv(file, options)), schema.names):
            yield _with_gaps(batch, wanted)
        return
    rows = max(1, _CELLS // max(1, len(wanted.types)))
    for batch in each_without_cells(file, lambda: _opened(file, wanted).batches(rows)):
        yield batch


# ---------------------------------------------------------------------- CSV


def _csv_options(file: TableFile, wanted: Wanted, schema: TableSchema | None = None) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv

    header = without_cells(file, lambda: _header(file))
    width = header.count(file.delimiter.encode()) + 1
    if width > MOST_COLUMNS:
        raise DataError(
            f"{file.name}: expected at most {MOST_COLUMNS:,} columns, got {width:,}; write so wide a table as a libsvm "
            "file, or leave columns out."
        )
    types = {"number": pa.float64(), "boolean": pa.bool_(), "text": pa.dictionary(pa.int32(), pa.string())}
    # A line break inside a cell needs text, and looking for it in numbers takes time.
    has_text = schema is None or not set(schema.kinds) <= {"number", "boolean", "date"}
    return {
        "read_options": csv.ReadOptions(
            block_size=min(max(_LEAST_BLOCK, 64 * width, 4 * len(header)), _MOST_BLOCK),
        ),
        "parse_options": csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=has_text),
        "convert_options": csv.ConvertOptions(
            include_columns=wanted.names,
            column_types={name: types[kind] for name, kind in wanted.types.items() if kind in types},
        ),
    }


def _header(file: TableFile) -> bytes:
    """The first line of a text table, which is looked at before anything is parsed."""
    line = file.first_line(_LONGEST_HEADER)
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{file.name}: expected text in UTF-8, got UTF-16; save the table as UTF-8.")
    if b"\x00" in line or len(line) == _LONGEST_HEADER:
        raise DataError(
            f"{file.name}: expected a line of text with the names of the columns, got a binary file; write the table "
            "again, or name it after its format."
        )
    return line


def _check_delimiter(file: TableFile, names: tuple[str, ...]) -> None:
    if len(names) == 1 and any(other in names[0] for other in ",;\t|"):
        wanted = "tabs, as it is named .tsv" if file.delimiter == "\t" else "commas, as it is named .csv"
        raise DataError(
            f"{file.name}: expected columns separated by {wanted}, got one column whose name holds another "
            "delimiter; write the table with that one, or name it after its delimiter."
        )


def _opened_csv(file: TableFile, options: dict[str, Any]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    return csv.open_csv(pa.PythonFile(file.open(), "r"), **options)


def _read_csv(file: TableFile, options: dict[str, Any]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(pa.PythonFile(file.open(whole=True), "r"), **options)


def _with_gaps(batch: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    """Texts that stand for a missing value, such as an empty cell, as gaps."""
    import pyarrow as pa
    from pyarrow import compute, csv

    columns = batch.columns
    for i, (name, kind) in enumerate(wanted.types.items()):
        if kind == "text":
            gaps = [text for text in csv.ConvertOptions().null_values if text not in wanted.listed[name]]
            texts = columns[i].dictionary
            cleared = compute.if_else(compute.is_in(texts, pa.array(gaps, texts.type)), None, texts)
            columns[i] = pa.DictionaryArray.from_arrays(columns[i].indices, cleared)
    return pa.RecordBatch.from_arrays(columns, names=wanted.names)


# --------------------------------------------------- files with a schema of their own


def _opened(file: TableFile, wanted: Wanted | None = None) -> Any:
    return _Parquet(file, wanted) if file.format == "parquet" else _Arrow(file, wanted)


class _Parquet:
    """A Parquet file."""

    def __init__(self, file: TableFile, wanted: Wanted | None) -> None:
        from pyarrow import parquet

        schema = parquet.read_schema(file.path)
        texts = [] if wanted is None else [name for name, kind in wanted.types.items() if kind == "text"]
        plain = [name for name in texts if kind_of(schema.field(name).type) == "category"]
        self._file = parquet.ParquetFile(file.path, read_dictionary=plain)
        self._wanted = wanted

    @property
    def schema(self) -> Any:
        return self._file.schema_arrow

    def count(self) -> int:
        return int(self._file.metadata.num_rows)

    def batches(self, rows: int) -> Iterator[Any]:
        names = self._wanted.names
        # A name stands for every column that begins with it and a dot, so what comes back is chosen from once more.
        for batch in self._file.iter_batches(batch_size=rows, columns=names):
            yield batch.select(names)


class _Arrow:
    """An Arrow file (Feather is one), in the format with a footer or in the one for streams."""

    def __init__(self, file: TableFile, wanted: Wanted | None) -> None:
        import pyarrow as pa

        # Not mapped into memory: a file that is cut short meanwhile would end the process.
        self._source = pa.OSFile(str(file.path))
        self._wanted = wanted
        self.schema = self._reader([])[0]

    def _reader(self, fields: list[int]) -> tuple[Any, Iterator[Any]]:
        """The schema and the batches, as far as some of the fields are concerned; none stands for all."""
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=fields)
        self._source.seek(0)
        try:
            reader = pa.ipc.open_file(self._source, options=options)
        except pa.ArrowInvalid:
            self._source.seek(0)
            reader = pa.ipc.open_stream(self._source, options=options)
            return reader.schema, iter(reader)
        return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))

    def count(self) -> int:
        return sum(batch.num_rows for batch in self._reader([0])[1])

    def batches(self, rows: int) -> Iterator[Any]:
        names = self._wanted.names
        for batch in self._reader([self.schema.get_field_index(name) for name in names])[1]:
            chosen = batch.select(names)
            # Places of texts come from the file, and a damaged one could point anywhere.
            chosen.validate(full=True)
            for start in range(0, chosen.num_rows, rows):
                yield chosen.slice(start, rows)
