"""Files of all formats as record batches of selected columns, in the types that the bounds state."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import DataError
from taciturn.tables.conversions import parse_number
from taciturn.tables.files import TableFile, each_without_cells, without_cells
from taciturn.tables.layouts import DELIMITERS
from taciturn.tables.schema import MOST_COLUMNS, TableSchema, find_value, kind_of
from taciturn.tables.stata import StataReader, stata_schema
from taciturn.tables.streams import interruptible

if TYPE_CHECKING:
    import pyarrow as pa

    from taciturn.tables.sheets import SheetStream
    from taciturn.tables.streams import TableStream

__all__ = ["ColumnSelection", "arrow_schema", "infer_types", "read_first_texts", "stream_batches", "whole_batches"]

_CELLS = 1 << 22
"""Approximate number of cells in one batch."""

# Larger blocks are slower, because they do not fit into the processor's cache.
_LEAST_BLOCK, _MOST_BLOCK = 1 << 20, 1 << 30
_RELEASE_EVERY = 64
# More than the batches that Arrow reads ahead, and the longest wait for the end of its threads in seconds.
_MOST_AHEAD, _WAIT = 256, 1.0
_LONGEST_HEADER = 1 << 24


@dataclass(frozen=True)
class ColumnSelection:
    """The columns to read, in order, each with its type: "number", "text", or "as it is".

    Texts that are ``listed`` are values of a column even where they look like a missing one, such as the category "NA".
    A cell of a text table that is not of the stated type refuses the table, or is missing with ``invalid="null"``.
    ``inferred`` are Arrow types of columns that are read as they are; without one, a text table that is streamed has
    the type of its first rows.
    """

    types: Mapping[str, str]
    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    invalid: str = "raise"
    inferred: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns, in order."""
        return list(self.types)


def arrow_schema(file: TableFile) -> TableSchema:
    """Read names and kinds of the columns; the kinds of a text table are inferred from its first rows."""
    schema = without_cells(file, lambda: _SCHEMAS[file.format](file))
    names = tuple(without_cells(file, lambda: schema.names))
    if file.is_text:
        _check_delimiter(file, names)
    if file.format in ("csv", "xlsx") and not file.header:
        _check_names(file, names)
    return TableSchema(names, tuple(map(kind_of, schema.types)))


def whole_batches(
    file: TableFile, schema: TableSchema, selection: ColumnSelection
) -> tuple[int, Iterator[pa.RecordBatch]]:
    """Read all rows; return their number and the batches, each of which is freed once the next one is taken."""
    if not file.is_text:
        opened = without_cells(file, lambda: _READERS[file.format](file, schema, selection))
        return without_cells(file, opened.count_rows), _typed_batches(file, opened, selection)
    options = _csv_options(file, schema, selection)
    batches = _read_csv(file, options, schema.names, whole=True).to_batches()
    n_rows = sum(batch.num_rows for batch in batches)

    def hand_out() -> Iterator[pa.RecordBatch]:
        from pyarrow import default_memory_pool

        batches.reverse()
        while batches:
            yield _with_gaps(batches.pop(), selection, file.decimal)
            # Arrow keeps freed memory unless it is told to return it.
            if len(batches) % _RELEASE_EVERY == 0:
                default_memory_pool().release_unused()

    return n_rows, hand_out()


def infer_types(file: TableFile, schema: TableSchema, selection: ColumnSelection) -> ColumnSelection:
    """The selection with the types that columns of a text table have, read as they are; takes a pass over the file."""
    names = [name for name, kind in selection.types.items() if kind == "as it is"]
    if not file.is_text or not names:
        return selection
    options = _csv_options(file, schema, ColumnSelection(dict.fromkeys(names, "as it is")))
    found = _read_csv(file, options, schema.names).schema
    return replace(selection, inferred=dict(zip(found.names, found.types, strict=True)))


def stream_batches(
    file: TableFile,
    schema: TableSchema,
    selection: ColumnSelection,
    stream: TableStream | SheetStream | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the rows in batches, one of which is in memory at a time.

    ``stream`` is the opened file of a text table, where the caller watches how far it is read.
    """
    if not file.is_text:
        opened = without_cells(file, lambda: _READERS[file.format](file, schema, selection))
        yield from _typed_batches(file, opened, selection)
        return
    options = _csv_options(file, schema, selection)
    with (
        closing(stream or without_cells(file, file.open)) as opened,
        closing(without_cells(file, lambda: _CsvReader(opened, options), schema.names)) as reader,
    ):
        for batch in each_without_cells(file, lambda: reader, schema.names):
            yield _with_gaps(batch, selection, file.decimal)


def read_first_texts(file: TableFile, schema: TableSchema) -> dict[str, list[str]]:
    """The cells of the first block of a text table, by column and as text, without those that are missing."""
    from pyarrow import csv

    options = _csv_options(file, schema, ColumnSelection(dict.fromkeys(schema.names, "text")))
    with (
        closing(without_cells(file, file.open)) as stream,
        closing(without_cells(file, lambda: _CsvReader(stream, options), schema.names)) as reader,
    ):
        batch = without_cells(file, lambda: next(reader, None), schema.names)
    if batch is None:
        return {}
    gaps = set(csv.ConvertOptions().null_values)
    return {
        name: [cell.strip() for cell in column.to_pylist() if cell is not None and cell not in gaps and cell.strip()]
        for name, column in zip(schema.names, batch.columns, strict=True)
    }


# ---------------------------------------------------------------------- CSV


def _csv_schema(file: TableFile) -> Any:
    """Infer the Arrow schema of a text table from its first block."""
    from pyarrow import csv

    with closing(file.open()) as stream:
        header = interruptible(stream, lambda: stream.first_line(_LONGEST_HEADER))
        _check_header(file, header)
        width = header.count(file.delimiter.encode()) + 1
        if width > MOST_COLUMNS:
            raise DataError(
                f"{file.name}: expected at most {MOST_COLUMNS:,} columns, got {width:,}; write so wide a table as a "
                "libsvm file, or leave columns out."
            )
        options = {
            "read_options": csv.ReadOptions(block_size=_block_size(width, len(header))),
            "parse_options": csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(decimal_point=file.decimal),
        }
        with closing(_CsvReader(stream, options)) as reader:
            return reader.schema


def _csv_options(file: TableFile, schema: TableSchema, selection: ColumnSelection) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv

    text = pa.dictionary(pa.int32(), pa.string())
    # Arrow refuses a column with a cell that it cannot convert, so that numbers are read as text where one may be.
    types = {"number": pa.string() if selection.invalid == "null" else pa.float64(), "text": text}
    # A header of quoted names is at most twice as long as the names.
    header_size = sum(len(name.encode()) + 1 for name in schema.names)
    # Only text has line breaks in cells, and the search for them takes time.
    has_text = not set(schema.kinds) <= {"number", "boolean", "date"}
    return {
        "read_options": csv.ReadOptions(block_size=_block_size(len(schema.names), header_size)),
        "parse_options": csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=has_text),
        "convert_options": csv.ConvertOptions(
            include_columns=selection.names,
            column_types={name: types[kind] for name, kind in selection.types.items() if kind in types}
            | dict(selection.inferred),
            decimal_point=file.decimal,
        ),
    }


def _block_size(width: int, header_size: int) -> int:
    """Bytes that Arrow parses at a time: a row has to fit into one block."""
    return min(max(_LEAST_BLOCK, 64 * width, 4 * header_size), _MOST_BLOCK)


def _check_header(file: TableFile, line: bytes) -> None:
    """Raise if the first line is not a line of UTF-8 text."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{file.name}: expected text in UTF-8, got UTF-16; save the table as UTF-8.")
    if b"\x00" in line or len(line) == _LONGEST_HEADER:
        raise DataError(
            f"{file.name}: expected a line of text with the names of the columns, got a binary file; write the table "
            "again, or name it after its format."
        )


def _check_delimiter(file: TableFile, names: tuple[str, ...]) -> None:
    if file.format == "csv" and len(names) == 1 and any(other in names[0] for other in DELIMITERS):
        raise DataError(
            f"{file.name}: expected columns separated by {DELIMITERS[file.delimiter]}, got one column whose name holds "
            "another delimiter; state it as delimiter in [table] of the bounds file, which taciturn init does."
        )


def _check_names(file: TableFile, names: tuple[str, ...]) -> None:
    """Raise if the first line looks like a record, whose cells would be published as names. No name is quoted."""
    place = find_value(names)
    if place is not None:
        raise DataError(
            f"{file.name}: expected names of columns, got one for column {place} that looks like a value, as in a "
            "table without a header; add a line of names, or, if they are names, state header = true in [table] of "
            "the bounds file, which taciturn init --header does."
        )


class _CsvReader:
    """The batches of a stream that is read while they are asked for; a pending interrupt ends a read."""

    def __init__(self, stream: TableStream | SheetStream, options: dict[str, Any]) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self._stream = stream
        handle = _Handle(stream)
        # Called without an instruction of Python, after which another thread could run.
        self._released: SimpleQueue[Any] = SimpleQueue()
        self._handle = weakref.ref(handle, self._released.put)
        file = pa.PythonFile(handle, "r")
        del handle
        try:
            self._reader = interruptible(stream, lambda: csv.open_csv(file, **options))
        except BaseException:
            del file
            stream.stop()
            self._wait()
            raise
        self.schema = self._reader.schema

    def __iter__(self) -> _CsvReader:
        return self

    def __next__(self) -> Any:
        batch = interruptible(self._stream, lambda: next(self._reader, None))
        if batch is None:
            raise StopIteration
        return batch

    def close(self) -> None:
        """Stop the stream, and take what Arrow has read ahead, until it has nothing under way.

        Else the process could end in the middle of a read, or wait for one that is never made.
        """
        self._stream.stop()
        for _ in range(_MOST_AHEAD):
            with suppress(Exception):
                if next(self._reader, None) is None:
                    break
        self._reader = iter(())
        self._wait()

    def _wait(self) -> None:
        """Wait until nobody holds the handle: then the last thread of Arrow has left the interpreter."""
        with suppress(Empty):
            self._released.get(timeout=_WAIT)


class _Handle:
    """What Arrow reads of a stream, and holds as long as it may read."""

    __slots__ = ("__weakref__", "_stream", "closed")

    def __init__(self, stream: TableStream | SheetStream) -> None:
        self._stream, self.closed = stream, False

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        return self._stream.read(size)

    def close(self) -> None:
        """Leave the stream to whoever opened it."""
        self.closed = True


def _read_csv(file: TableFile, options: dict[str, Any], names: tuple[str, ...], *, whole: bool = False) -> Any:
    """The selected columns of a text table in memory; ``names`` are all of its columns."""
    import pyarrow as pa
    from pyarrow import csv

    def read() -> Any:
        with closing(file.open(whole=whole)) as stream:
            return interruptible(stream, lambda: csv.read_csv(pa.PythonFile(stream, "r"), **options))

    return without_cells(file, read, names)


def _with_gaps(batch: pa.RecordBatch, selection: ColumnSelection, decimal: str) -> pa.RecordBatch:
    """Replace texts that stand for a missing value, such as an empty cell, by nulls."""
    import pyarrow as pa
    from pyarrow import compute, csv

    columns = batch.columns
    for i, (name, kind) in enumerate(selection.types.items()):
        if kind == "text":
            listed = selection.listed.get(name, frozenset())
            gaps = [text for text in csv.ConvertOptions().null_values if text not in listed]
            texts = columns[i].dictionary
            cleared = compute.if_else(compute.is_in(texts, pa.array(gaps, texts.type)), None, texts)
            columns[i] = pa.DictionaryArray.from_arrays(columns[i].indices, cleared)
        elif kind == "number" and selection.invalid == "null":
            columns[i] = _parsed_numbers(columns[i], decimal)
    return pa.RecordBatch.from_arrays(columns, names=selection.names)


def _parsed_numbers(texts: pa.Array, decimal: str) -> pa.Array:
    """Parse every cell by itself: a missing one becomes null and what is no number NaN, whatever the others are."""
    import pyarrow as pa
    from pyarrow import compute, csv

    gaps = pa.array(csv.ConvertOptions().null_values, texts.type)
    texts = compute.if_else(compute.is_in(texts, gaps), None, texts)
    if decimal != ".":
        # A point is then no part of a number, as for Arrow.
        with_point = compute.match_substring(texts, ".")
        texts = compute.if_else(with_point, "a point", compute.replace_substring(texts, decimal, "."))
    try:
        # Python reads every text that Arrow reads as the same number, so that the choice changes the time alone.
        return compute.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        pass
    return pa.array([None if text is None else parse_number(text) for text in texts.to_pylist()], pa.float64())


# --------------------------------------------------- files with a schema of their own


def _typed_batches(file: TableFile, opened: Any, selection: ColumnSelection) -> Iterator[pa.RecordBatch]:
    n_rows = max(1, _CELLS // max(1, len(selection.types)))
    return each_without_cells(file, lambda: opened.batches(n_rows))


def _parquet_schema(file: TableFile) -> Any:
    from pyarrow import parquet

    return parquet.read_schema(file.path)


class _ParquetReader:
    """The selected columns of a Parquet file."""

    def __init__(self, file: TableFile, schema: TableSchema, selection: ColumnSelection) -> None:
        from pyarrow import parquet

        kinds = dict(zip(schema.names, schema.kinds, strict=True))
        texts = [name for name, kind in selection.types.items() if kind == "text" and kinds[name] == "category"]
        self._file = parquet.ParquetFile(file.path, read_dictionary=texts)
        self._names = selection.names

    def count_rows(self) -> int:
        return int(self._file.metadata.num_rows)

    def batches(self, n_rows: int) -> Iterator[Any]:
        # Parquet takes a name for every column that begins with it and a dot, hence the second selection.
        for batch in self._file.iter_batches(batch_size=n_rows, columns=self._names):
            yield batch.select(self._names)


def _ipc_schema(file: TableFile) -> Any:
    import pyarrow as pa

    return _open_ipc(pa.OSFile(str(file.path)), [])[0]


def _open_ipc(source: Any, fields: list[int]) -> tuple[Any, Iterator[Any]]:
    """Schema and batches of an Arrow file with a footer or of an Arrow stream; no fields stand for all of them."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=fields)
    source.seek(0)
    try:
        reader = pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:
        source.seek(0)
        reader = pa.ipc.open_stream(source, options=options)
        return reader.schema, iter(reader)
    return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))


class _IpcReader:
    """The selected columns of an Arrow file, which a Feather file is, too."""

    def __init__(self, file: TableFile, schema: TableSchema, selection: ColumnSelection) -> None:
        import pyarrow as pa

        # Not mapped into memory: the system would end the process if the file became shorter meanwhile.
        self._source = pa.OSFile(str(file.path))
        self._names = selection.names
        places = {name: place for place, name in enumerate(schema.names)}
        self._fields = [places[name] for name in self._names]

    def count_rows(self) -> int:
        return sum(batch.num_rows for batch in _open_ipc(self._source, [0])[1])

    def batches(self, n_rows: int) -> Iterator[Any]:
        for batch in _open_ipc(self._source, self._fields)[1]:
            chosen = batch.select(self._names)
            # Dictionary indices come from the file, and those of a damaged file may be out of range.
            chosen.validate(full=True)
            for start in range(0, chosen.num_rows, n_rows):
                yield chosen.slice(start, n_rows)


_SCHEMAS: Mapping[str, Callable[[TableFile], Any]] = {
    "csv": _csv_schema,
    "parquet": _parquet_schema,
    "arrow": _ipc_schema,
    "stata": stata_schema,
    "xlsx": _csv_schema,
    "sqlite": _csv_schema,
}
_READERS: Mapping[str, Callable[[TableFile, TableSchema, ColumnSelection], Any]] = {
    "parquet": _ParquetReader,
    "arrow": _IpcReader,
    "stata": lambda file, schema, selection: StataReader(file, selection.names),
}
