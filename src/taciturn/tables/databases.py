"""Tables in databases, read in ranges of a key: PostgreSQL, DuckDB and SQLite."""

from __future__ import annotations

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from taciturn.core.errors import DataError, TaciturnError
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import (
    TableSchema,
    closest_name,
    did_you_mean,
    listed_names,
    parse_number,
    quoted,
    refusal,
)
from taciturn.tables.formats import (
    SheetStream,
    StoppableStream,
    TableFile,
    arrow_schema,
    check_readable,
    infer_types,
    open_sqlite,
    query_rows,
    stream_batches,
)
from taciturn.tables.partitions import (
    Cursor,
    RowRange,
    Spool,
    TablePartitions,
    check_memory,
    check_present,
    check_target,
    most_rows,
    no_rows,
    raise_column_problems,
    raise_problems,
    select_columns,
    selection_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Key = tuple[Any, ...]

# ---- Where a table is: the URL of a database, as accounts write it, with the table and its key behind a question mark.

_SCHEMES = ("duckdb", "postgresql", "sqlite")
_EXAMPLE = "postgresql://USER@HOST/DATABASE?table=NAME, duckdb:///FILE?table=NAME or sqlite:///FILE?table=NAME"

_PATIENCE = 30
"""Seconds to wait for a server, unless the URL says so."""

_UNIQUE_KEY = (
    "the key of the rows is unique and never missing; a table in which it is not is refused, and that tells of the rows"
)
"""What is assumed where no primary key says so."""

_SAME_ROWS = "nobody writes to the table while it is read, where a connection is lost and opened again"
"""What is assumed of a server's table, whose snapshot ends with the connection."""


def is_database(path: Any) -> bool:
    """Whether a table is named by the URL of a database rather than by a path."""
    return isinstance(path, str) and re.match(r"[A-Za-z][A-Za-z0-9+]+://", path) is not None


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table in a database: what opens the database, the name of the table, and the columns of its key.

    ``place`` is a file or the URL of a server, which may hold a password: it is never part of a message.
    """

    scheme: str
    place: str
    table: str
    key: tuple[str, ...]

    def __repr__(self) -> str:
        return f"DatabaseTable({self.scheme}, {self.table!r})"

    @classmethod
    def from_url(cls, url: str) -> DatabaseTable:
        """Read ``postgresql://user@host/database?table=visits&key=visit_id``, and similar URLs."""
        scheme, _, rest = url.partition("://")
        place, _, query = rest.partition("?")
        shown = f"{scheme}://..."
        if scheme not in _SCHEMES:
            raise refusal("table", shown, f"a path, or a URL such as {_EXAMPLE}", "write one of these")
        if "#" in rest:
            raise refusal("table", shown, f"a URL without #, such as {_EXAMPLE}", "name the table behind ?table=")
        stated: dict[str, str] = {}
        others: list[str] = []
        for part in filter(None, query.split("&")):
            name, _, value = part.partition("=")
            if name not in ("table", "key"):
                others.append(part)
            elif name in stated:
                raise refusal("table", shown, f"one {name}= in the URL", "state it once")
            else:
                stated[name] = unquote(value)
        if not stated.get("table"):
            raise refusal("table", shown, f"a URL such as {_EXAMPLE}", "name the table behind ?table=")
        if scheme == "postgresql":
            # Further settings are those of the client library, such as sslmode.
            if not any(part.startswith("connect_timeout=") for part in others):
                others.append(f"connect_timeout={_PATIENCE}")
            place = f"{scheme}://{place}?{'&'.join(others)}"
        elif not place.startswith("/") or not place[1:] or others:
            raise refusal("table", shown, f"a URL such as {_EXAMPLE}", "name a file, and nothing but table and key")
        else:
            place = unquote(place[1:])
        key = tuple(filter(None, stated.get("key", "").split(",")))
        return cls(scheme, place, stated["table"], key)


# ---- What is known of a table before a cell is read, and how its rows are asked for.

_ROW = "taciturn"
"""The name of the table within a query: a column behind it is one of the table, and no other of the query."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """How a column is read: its kind, the expression that gives its cells, and the type of the database.

    ``has_digits``: the cells are numbers that come as text, since no number of a processor holds them.
    """

    kind: str
    expression: str
    type: str = ""
    has_digits: bool = False


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Columns and primary key of a table, and the expression that numbers its rows where they have no key.

    ``has_whole_key``: no row lacks a part of the primary key.
    """

    columns: dict[str, StoredColumn]
    primary_key: tuple[str, ...]
    row_id: str | None
    has_whole_key: bool = True


def identifier(name: str) -> str:
    """A name within a query."""
    return '"' + name.replace('"', '""') + '"'


def column(name: str) -> str:
    """A column of the table within a query."""
    return f"{_ROW}.{identifier(name)}"


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows whose key is at least ``lower`` and before ``upper``; None for no end."""

    lower: Key | None
    upper: Key | None

    def condition(self, key: Sequence[str], value: Callable[[int, Any], str]) -> str:
        """The range in SQL. ``value`` writes a value of one of the columns of the key."""
        parts = []
        if self.lower is not None:
            parts.append(_compared(key, self.lower, value, ">"))
        if self.upper is not None:
            parts.append(_compared(key, self.upper, value, "<"))
        return " WHERE " + " AND ".join(parts) if parts else ""


def _compared(key: Sequence[str], end: Key, value: Callable[[int, Any], str], sign: str, place: int = 0) -> str:
    """Lexicographic order, column by column: not every database compares rows. The lower end is part of a range."""
    name, is_last = key[place], place + 1 == len(key)
    bound = value(place, end[place])
    if is_last:
        return f"{name} {'>=' if sign == '>' else '<'} {bound}"
    # The first comparison is for an index.
    beyond = f"{name} {sign} {value(place, end[place])}"
    return f"({name} {sign}= {bound} AND ({beyond} OR ({_compared(key, end, value, sign, place + 1)})))"


_WAITS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before a lost connection is opened again, for as long as a server needs to recover."""

_KEYS_AT_A_TIME = 10_000


class Database(ABC):
    """A table behind one connection, which is opened when it is needed and again when it was lost.

    No cell is kept. What drivers say of errors may quote cells, and passwords: it is replaced.
    """

    reads_text = False
    """Whether cells have types of their own, and come as text."""
    can_be_lost = False
    """Whether the connection is to another process, so that its view of the table can end before a fit does."""

    def __init__(self, table: DatabaseTable) -> None:
        self.table = table
        self.name = quoted(table.table)
        self._connection: Any = None
        self._was_open = False
        # Partitions are read ahead in another thread.
        self._lock = threading.Lock()

    @abstractmethod
    def _connect(self) -> Any:
        """A connection that cannot write, and whose rows do not change."""

    @abstractmethod
    def _is_alive(self, connection: Any) -> bool:
        """Whether a connection answers, after an error."""

    @abstractmethod
    def _facts(self, connection: Any) -> StoredTable:
        """What the database says of the table; no columns if there is none."""

    @abstractmethod
    def _key_rows(self, connection: Any, key: Sequence[str]) -> Iterator[Sequence[Key]]:
        """The keys of all rows in their order, some at a time."""

    @abstractmethod
    def _rows(
        self, connection: Any, names: Sequence[str], key: Sequence[str], within: KeyRange
    ) -> list[pa.RecordBatch]:
        """Columns of the rows of a range, in the order of the key."""

    @property
    def states_key(self) -> bool:
        """Whether the database says itself that the key is unique and never missing."""
        return not self.table.key and self._found.has_whole_key

    def facts(self) -> StoredTable:
        """Columns and key of the table; raise if there is none of this name."""
        found = self._answer(self._facts)
        if not found.columns:
            raise DataError(f"table {self.name}: expected a table of that name in the database, got none; check it.")
        self._found = found
        return found

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

    def edges(self, key: Sequence[str], n_rows: int) -> tuple[list[Key], list[int]]:
        """The first key of every ``n_rows`` rows, and how many rows there are from each on."""
        return self._answer(lambda connection: self._edges(connection, key, n_rows))

    def _edges(self, connection: Any, key: Sequence[str], n_rows: int) -> tuple[list[Key], list[int]]:
        edges: list[Key] = []
        counts: list[int] = []
        last: Key | None = None
        for each in chain.from_iterable(self._key_rows(connection, key)):
            if each == last or None in each:
                expected = "a key that is stated for every row, and for no two rows the same"
                raise DataError(f"table {self.name}: expected {expected}, got another; state unique columns as key=.")
            if not counts or counts[-1] == n_rows:
                edges.append(each)
                counts.append(0)
            counts[-1] += 1
            last = each
        return edges, counts

    def read(self, names: Sequence[str], key: Sequence[str], within: KeyRange) -> list[pa.RecordBatch]:
        """Columns of the rows of a range, in the order of the key."""
        return self._answer(lambda connection: self._rows(connection, names, key, within))

    def _answer(self, call: Callable[[Any], T]) -> T:
        """What a call gives for the connection, which is opened again where it was lost.

        Errors are raised outside the handler, so that logs do not show the original one as their context.
        """
        with self._lock:
            for wait in (*_WAITS, None):
                connection = None
                try:
                    if self._connection is None:
                        self._connection = self._connect()
                        self._was_open = True
                    connection = self._connection
                    return call(connection)
                except TaciturnError as error:
                    refused: TaciturnError | None = error
                except Exception:
                    refused = None
                if refused is not None:
                    break
                if connection is not None and self._is_alive(connection):
                    refused = DataError(
                        f"table {self.name}: expected rows that can be read, got an error of the database, which may "
                        "quote cells; read the columns with another program to see why."
                    )
                    break
                self._drop()
                if wait is None or not self._was_open:
                    break
                time.sleep(wait)
        raise refused or DataError(self._no_answer())

    def _no_answer(self) -> str:
        if self._was_open:
            return (
                f"table {self.name}: expected a database that keeps answering, got a connection that was lost and "
                "could not be opened again; start the server, then fit again: what was reserved in an account counts "
                "as spent."
            )
        return (
            f"table {self.name}: expected a database that can be opened, got none; check the address, the password and "
            "whether another program holds the database."
        )

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _query(self, columns: Iterable[str], rest: str) -> str:
        return f"SELECT {', '.join(columns)} FROM {self._relation()} AS {_ROW}{rest}"

    def _relation(self) -> str:
        """The table in SQL, with its schema if the name has one."""
        return ".".join(map(identifier, self.table.table.split(".", 1)))

    def _selected(self, names: Sequence[str]) -> list[str]:
        return [f"{self._found.columns[name].expression} AS {identifier(name)}" for name in names]

    def _parsed(self, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Numbers in place of their digits."""
        digits = {name for name, found in self._found.columns.items() if found.has_digits}
        return [_with_numbers(batch, digits) for batch in batches]


def _with_numbers(batch: pa.RecordBatch, digits: set[str]) -> pa.RecordBatch:
    import pyarrow as pa

    names = batch.schema.names
    if digits.isdisjoint(names):
        return batch
    columns = [
        # Cell by cell, each to the nearest double.
        pa.array([None if text is None else parse_number(text) for text in values.to_pylist()], pa.float64())
        if name in digits
        else values
        for name, values in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _finite_day(expression: str, day: str) -> str:
    """A day in SQL: that of a date or a moment, without the infinite ones, which are missing."""
    return f"CASE WHEN isfinite({expression}) THEN CAST({day} AS date) END"


def _needs(package: str, what: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"tables in {what} need {package}; run pip install 'taciturn[sql]'.")


# ---- PostgreSQL, through ADBC: columns arrive as Arrow arrays.

_POSTGRESQL_NUMBERS = ("int2", "int4", "int8", "float4", "float8")

_POSTGRESQL_SESSION = (
    "SET standard_conforming_strings = on",
    "SET extra_float_digits = 3",
    "SET DateStyle = 'ISO'",
    "SET TimeZone = 'UTC'",
    # One view of the table for all passes over it.
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
)

_POSTGRESQL_COLUMNS = """
SELECT CAST(a.attname AS text), CAST(b.typname AS text), format_type(a.atttypid, a.atttypmod)
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
JOIN pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""

_POSTGRESQL_KEY = """
SELECT CAST(a.attname AS text) FROM pg_index AS i
CROSS JOIN LATERAL unnest(CAST(i.indkey AS int2[])) WITH ORDINALITY AS k (attnum, place)
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = to_regclass({table}) AND i.indisprimary ORDER BY k.place
"""

_POSTGRESQL_KIND = "SELECT CAST(relkind AS text) FROM pg_class WHERE oid = to_regclass({table})"


class PostgreSQL(Database):
    """A table of a PostgreSQL server."""

    can_be_lost = True

    def __init__(self, table: DatabaseTable) -> None:
        super().__init__(table)
        try:
            import adbc_driver_postgresql.dbapi  # noqa: F401
        except ImportError:
            raise _needs("adbc-driver-postgresql", "PostgreSQL") from None

    def _connect(self) -> Any:
        from adbc_driver_postgresql import dbapi

        connection = dbapi.connect(self.table.place, autocommit=True)
        for statement in _POSTGRESQL_SESSION:
            self._execute(connection, statement)
        return connection

    def _is_alive(self, connection: Any) -> bool:
        try:
            # An error ends what a transaction may do.
            self._execute(connection, "ROLLBACK")
            self._execute(connection, _POSTGRESQL_SESSION[-1])
        except Exception:
            return False
        return True

    def _facts(self, connection: Any) -> StoredTable:
        table = _literal(self._relation())
        found = self._fetch(connection, _POSTGRESQL_COLUMNS.format(table=table))
        columns = {name: _postgresql_column(name, base, type) for name, base, type in found}
        key = tuple(name for (name,) in self._fetch(connection, _POSTGRESQL_KEY.format(table=table)))
        kind = self._fetch(connection, _POSTGRESQL_KIND.format(table=table))
        # Parts of a table have row numbers of their own, and views have none.
        return StoredTable(columns, key, f"{_ROW}.ctid" if kind == [("r",)] else None)

    def _key_rows(self, connection: Any, key: Sequence[str]) -> Iterator[Sequence[Key]]:
        columns = [f"CAST({each} AS text) AS key{place}" for place, each in enumerate(key)]
        for batch in self._stream(connection, self._query(columns, f" ORDER BY {', '.join(key)}")):
            yield list(zip(*(each.to_pylist() for each in batch.columns), strict=True))

    def _rows(
        self, connection: Any, names: Sequence[str], key: Sequence[str], within: KeyRange
    ) -> list[pa.RecordBatch]:
        types = {column(name): found.type for name, found in self._found.columns.items()}

        def value(place: int, text: str) -> str:
            return f"CAST({_literal(text)} AS {types.get(key[place], 'tid')})"

        rest = f"{within.condition(key, value)} ORDER BY {', '.join(key)}"
        return self._parsed(self._stream(connection, self._query(self._selected(names), rest)))

    @staticmethod
    def _execute(connection: Any, statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    @staticmethod
    def _stream(connection: Any, query: str) -> Iterator[pa.RecordBatch]:
        with connection.cursor() as cursor:
            cursor.execute(query)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def _fetch(self, connection: Any, query: str) -> list[Any]:
        return [
            row for batch in self._stream(connection, query) for row in zip(*map(_listed, batch.columns), strict=True)
        ]


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.to_pylist()
    return listed


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _postgresql_column(name: str, base: str, type: str) -> StoredColumn:
    cells = column(name)
    if base in _POSTGRESQL_NUMBERS:
        return StoredColumn("number", cells, type)
    if base == "bool":
        return StoredColumn("boolean", cells, type)
    if base == "numeric":
        return StoredColumn("number", f"CAST({cells} AS text)", type, has_digits=True)
    if base in ("date", "timestamp", "timestamptz"):
        return StoredColumn("date", _finite_day(cells, cells), type)
    return StoredColumn("category", f"CAST({cells} AS text)", type)


# ---- DuckDB: columns arrive as Arrow arrays.

_DUCKDB_NUMBER = re.compile(r"U?(?:TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\)")
_DUCKDB_WIDE = re.compile(r"U?HUGEINT|BIGNUM")
_DUCKDB_DAY = re.compile(r"DATE|TIMESTAMP.*")

_DUCKDB_LEAST_MEMORY = 1 << 28


class DuckDB(Database):
    """A table of a DuckDB file, which is opened for reading: others may read it meanwhile, and nobody writes to it.

    ``memory`` is the number of bytes for the database itself, which sorts the keys; it writes no temporary files.
    """

    def __init__(self, table: DatabaseTable, memory: int) -> None:
        super().__init__(table)
        try:
            import duckdb  # noqa: F401
        except ImportError:
            raise _needs("duckdb", "DuckDB") from None
        self._memory = max(_DUCKDB_LEAST_MEMORY, memory // 4)
        check_readable("table", Path(table.place))

    def _connect(self) -> Any:
        import duckdb

        config: dict[str, Any] = {
            "threads": "1",
            "memory_limit": f"{self._memory}B",
            "temp_directory": "",
            "autoinstall_known_extensions": "false",
        }
        connection = duckdb.connect(self.table.place, read_only=True, config=config)
        connection.execute("SET TimeZone = 'UTC'")
        return connection

    def _is_alive(self, connection: Any) -> bool:
        return True

    def _facts(self, connection: Any) -> StoredTable:
        schema, _, table = self.table.table.rpartition(".")
        where = "WHERE schema_name = ? AND table_name = ?"
        names = [schema or "main", table]
        found = connection.execute(
            f"SELECT column_name, data_type FROM duckdb_columns() {where} ORDER BY column_index", names
        ).fetchall()
        key = connection.execute(
            f"SELECT constraint_column_names FROM duckdb_constraints() {where} AND constraint_type = 'PRIMARY KEY'",
            names,
        ).fetchall()
        tables = connection.execute(f"SELECT 1 FROM duckdb_tables() {where}", names).fetchall()
        columns = {name: _duckdb_column(name, type) for name, type in found}
        numbered = bool(tables) and "rowid" not in {name.lower() for name in columns}
        return StoredTable(columns, tuple(key[0][0]) if key else (), f"{_ROW}.rowid" if numbered else None)

    def _key_rows(self, connection: Any, key: Sequence[str]) -> Iterator[Sequence[Key]]:
        found = connection.execute(self._query(key, f" ORDER BY {', '.join(key)}"))
        while rows := found.fetchmany(_KEYS_AT_A_TIME):
            yield rows

    def _rows(
        self, connection: Any, names: Sequence[str], key: Sequence[str], within: KeyRange
    ) -> list[pa.RecordBatch]:
        values: list[Any] = []
        rest = f"{within.condition(key, _placeholders(values))} ORDER BY {', '.join(key)}"
        found = connection.sql(self._query(self._selected(names), rest), params=values)
        return self._parsed(found.to_arrow_reader())


def _placeholders(values: list[Any]) -> Callable[[int, Any], str]:
    """Marks in a query, whose values are added to a list."""

    def value(_: int, given: Any) -> str:
        values.append(given)
        return "?"

    return value


def _duckdb_column(name: str, type: str) -> StoredColumn:
    cells = column(name)
    if _DUCKDB_NUMBER.fullmatch(type):
        return StoredColumn("number", cells)
    if _DUCKDB_WIDE.fullmatch(type):
        return StoredColumn("number", f"CAST({cells} AS VARCHAR)", has_digits=True)
    if type == "BOOLEAN":
        return StoredColumn("boolean", cells)
    if _DUCKDB_DAY.fullmatch(type):
        return StoredColumn("date", _finite_day(cells, cells))
    return StoredColumn("category", f"CAST({cells} AS VARCHAR)")


# ---- SQLite: two cells of a column may have different types, so that all are read as text, as those of a file are.


class SQLite(Database):
    """A table of an SQLite file."""

    reads_text = True

    def __init__(self, table: DatabaseTable, bounds: TableBounds) -> None:
        super().__init__(table)
        layout = bounds.layout
        stated: dict[str, Any] = {} if layout is None else {"missing_values": layout.missing_values}
        path = Path(table.place).absolute()
        check_readable("table", path)
        self.file = TableFile(path, "sqlite", ",", gzipped=False, part=table.table, **stated)
        self.selection: Any = None

    def _relation(self) -> str:
        return identifier(self.table.table)

    def _connect(self) -> Any:
        connection = open_sqlite(self.file.path)
        # One view of the table for all passes over it, from the first row that is read.
        connection.execute("BEGIN")
        return connection

    def _is_alive(self, connection: Any) -> bool:
        return True

    def _facts(self, connection: Any) -> StoredTable:
        name = self.table.table
        kind = connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        if kind is None or kind[0] not in ("table", "view"):
            return StoredTable({}, (), None)
        found = connection.execute(
            'SELECT name, pk, "notnull", upper(type) FROM pragma_table_info(?) ORDER BY cid', (name,)
        ).fetchall()
        columns = {each: StoredColumn("unknown", column(each)) for each, *_ in found}
        stated = sorted((place, each, not_null, type) for each, place, not_null, type in found if place)
        key = tuple(each for _, each, *_ in stated)
        # Columns of a primary key may be missing in SQLite, unless the key is one whole number.
        whole = all(not_null for *_, not_null, _ in stated) or [type for *_, type in stated] == ["INTEGER"]
        taken = {each.lower() for each in columns}
        free = next((each for each in ("rowid", "_rowid_", "oid") if each not in taken), None)
        numbered = kind[0] == "table" and not key and free is not None
        return StoredTable(columns, key, f"{_ROW}.{free}" if numbered else None, whole)

    def schema(self) -> TableSchema:
        """Names and kinds of the columns, as those of a file."""
        return arrow_schema(self.file)

    def select(self, bounds: TableBounds, schema: TableSchema, invalid: str) -> None:
        """Take the types by which columns are read."""
        self._schema = schema
        self.selection = infer_types(self.file, schema, selection_of(bounds, invalid))

    def _key_rows(self, connection: Any, key: Sequence[str]) -> Iterator[Sequence[Key]]:
        found = connection.execute(self._query(key, f" ORDER BY {', '.join(key)}"))
        while rows := found.fetchmany(_KEYS_AT_A_TIME):
            yield rows

    def _rows(
        self, connection: Any, names: Sequence[str], key: Sequence[str], within: KeyRange
    ) -> list[pa.RecordBatch]:
        values: list[Any] = []
        rest = f"{within.condition(key, _placeholders(values))} ORDER BY {', '.join(key)}"
        # A row without any cell would be left out, as a blank line is.
        mark = "row"
        while mark in names:
            mark += "_"
        query = self._query([f"1 AS {identifier(mark)}", *self._selected(names)], rest)

        def rows(stream: StoppableStream) -> Iterator[Sequence[Any]]:
            yield from query_rows(connection, query, values, self.file.name, stream)

        chosen = self.selection
        asked = replace(
            chosen,
            types={name: chosen.types[name] for name in names},
            inferred={name: kind for name, kind in chosen.inferred.items() if name in names},
        )
        stream = SheetStream(self.file.name, rows)
        return list(stream_batches(self.file, self._schema, asked, stream))


# ---- Partitions of a table in a database: ranges of its key.


class DatabasePartitions(TablePartitions):
    """A table in a database, of which one range of keys is in memory at a time; made by :func:`open_database`.

    ``edges`` are the first keys of the ranges, and ``counts`` their rows. ``is_ordered``: the key gives the rows an
    order that lasts, which numbers of rows within a file of a database do not.
    """

    def __init__(
        self,
        database: Database,
        key: tuple[str, ...],
        edges: Sequence[Key],
        counts: Sequence[int],
        partitions: Sequence[tuple[RowRange, ...]],
        bounds: TableBounds,
        schema: TableSchema,
        invalid: str,
        *,
        is_ordered: bool,
    ) -> None:
        super().__init__((), partitions, bounds, schema, invalid)
        self._database, self._key = database, key
        self._edges, self._counts = tuple(edges), tuple(counts)
        self.has_row_order = is_ordered
        if is_ordered and not database.states_key:
            self.assumptions = (*self.assumptions, _UNIQUE_KEY)
        if database.can_be_lost:
            self.assumptions = (*self.assumptions, _SAME_ROWS)

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def raise_problems(self) -> None:
        """After a refusal, raise everything that is wrong with the columns, unless they were checked before."""
        if self._checked:
            return
        if isinstance(self._database, SQLite):
            raise_problems([self._database.file], self.schema, self.bounds, invalid=self.invalid)
            return
        names = select_columns(self.bounds, with_target=True).names
        batches = (batch.columns for index in range(self.offsets.size) for batch in self._batches(index, names))
        raise_column_problems(self.bounds, batches, strict=self.invalid == "raise", with_target=True)

    @property
    def _name(self) -> str:
        return self._database.table.table

    def _new_spool(self) -> Spool:
        return Spool(self._database.name, 8 * self.n_rows * len(selection_of(self.bounds, self.invalid).types))

    def _like(self, partitions: Sequence[tuple[RowRange, ...]], bounds: TableBounds) -> DatabasePartitions:
        return DatabasePartitions(
            self._database,
            self._key,
            self._edges,
            self._counts,
            partitions,
            bounds,
            self.schema,
            self.invalid,
            is_ordered=self.has_row_order,
        )

    def _read_range(self, rows: RowRange, names: Sequence[str]) -> list[pa.RecordBatch]:
        start, stop = rows.groups.start, rows.groups.stop
        lower = self._edges[start] if start else None
        upper = self._edges[stop] if stop < len(self._edges) else None
        batches = self._database.read(list(names), self._key, KeyRange(lower, upper))
        if sum(batch.num_rows for batch in batches) != sum(self._counts[start:stop]):
            raise DataError(
                f"table {self._database.name}: expected the rows that it had when it was opened, got others; fit when "
                "nobody writes to it, or to a copy."
            )
        return Cursor(iter(batches)).take(rows.skip, rows.n_rows)


def open_database(url: str, bounds: TableBounds, *, invalid: str, memory: int) -> DatabasePartitions:
    """Open a table in a database to read it in partitions; parameters as in :func:`~taciturn.tables.open_partitions`.

    The keys of the rows are read once, and divided into ranges. The primary key gives the order of the rows, or the
    columns that the URL states. Without either, rows are found by where they are stored, and are in no order.
    """
    check_target(bounds, bounds.target.name, invalid)
    check_memory(memory)
    table = DatabaseTable.from_url(url)
    database: Database
    if table.scheme == "postgresql":
        database = PostgreSQL(table)
    else:
        database = DuckDB(table, memory) if table.scheme == "duckdb" else SQLite(table, bounds)
    try:
        return _opened(database, bounds, invalid, memory)
    except BaseException:
        database.close()
        raise


def _opened(database: Database, bounds: TableBounds, invalid: str, memory: int) -> DatabasePartitions:
    facts = database.facts()
    if isinstance(database, SQLite):
        schema = database.schema()
    else:
        schema = TableSchema(tuple(facts.columns), tuple(each.kind for each in facts.columns.values()))
    bounds = bounds.for_table(schema)
    for name in (bounds.target.name, *bounds.beside):
        check_present(name, schema)
    named = database.table.key or facts.primary_key
    for name in named:
        if name not in facts.columns:
            proposed = did_you_mean(closest_name(name, list(facts.columns)))
            expected = f"columns of the table, {listed_names(list(facts.columns))}"
            raise refusal("key", name, expected, f"{proposed}name them in the URL")
    if not named and (facts.row_id is None or bounds.person is not None):
        needed = "whose rows are found by it" if facts.row_id is None else "for persons, whose rows need an order"
        raise DataError(
            f"table {database.name}: expected a primary key, or a key in the URL, {needed}; add &key= with unique "
            "columns."
        )
    if isinstance(database, SQLite):
        database.select(bounds, schema, invalid)
    key = tuple(map(column, named)) if named else (str(facts.row_id),)
    edges, counts = database.edges(key, most_rows(bounds, memory))
    if not edges:
        raise DataError(no_rows(f"table {database.name}"))
    ranges = [(RowRange(0, range(place, place + 1), 0, n_rows),) for place, n_rows in enumerate(counts)]
    return DatabasePartitions(database, key, edges, counts, ranges, bounds, schema, invalid, is_ordered=bool(named))
