"""One seed, one model: a table in memory and in a database, read in ranges of its key."""

import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from uuid import UUID

import numpy as np
import pytest

from array_readers import BROKEN
from taciturn import (
    CorrelationSelector,
    DataError,
    HardThresholdClassifier,
    HardThresholdRegressor,
    ParameterError,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    SparseSurvival,
    open_table,
    private_score,
)
from taciturn.core.errors import TaciturnError
from taciturn.engines import PartitionedTable, StreamedSource
from taciturn.methods.descent import step_rule
from taciturn.tables import Column, Fill, NumberPartitions, TableBounds, Target, read_person_keys, read_table
from taciturn.tables.columns import file_assumptions
from taciturn.tables.databases import _SAME_ROWS, _UNIQUE_KEY, Database, DatabaseTable, KeyRange, SQLite
from taciturn.tables.formats import open_sqlite

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N_ROWS = 420
COLUMNS = {
    "age": Column("number", 0, 100),
    "dose": Column("number", -1, 1),
    "smoker": Column("boolean"),
    "region": Column("category", categories=("hill", "dale", 'it\'s a "shore"')),
    "height": Column("number", 100, 220),
}
OTHERS = {name: Column("ignore") for name in ("visit", "person", "seen", "note")}
LABELS = TableBounds(Target("ill", classes=("no", "yes")), COLUMNS | OTHERS | {"pain": Column("ignore")})
NUMBERS = TableBounds(Target("pain", 0, 10), COLUMNS | OTHERS | {"ill": Column("ignore")})
TIMES = TableBounds(
    Target("height", kind="survival", event="smoker", cuts=(165.0, 180.0)),
    {name: COLUMNS[name] for name in ("age", "dose", "region")}
    | OTHERS
    | {"ill": Column("boolean"), "pain": Column("number", 0, 10)},
)
NULL = {"age": Fill(30), "height": Fill(indicator=True)}
ON_DISK = {
    *file_assumptions("raise", None, sparse=True),
    *file_assumptions("null", None, sparse=True),
    _UNIQUE_KEY,
    _SAME_ROWS,
}
SETTINGS = {"epsilon": 8.0, "random_state": 3, "n_nonzero": 2, "x_bound": 1.0}
TYPES = {
    "visit": "integer", "age": "double precision", "person": "varchar", "smoker": "boolean", "dose": "double precision",
    "region": "varchar", "height": "double precision", "seen": "date", "note": "varchar", "ill": "varchar",
    "pain": "double precision",
}  # fmt: skip


def records(*, holes=False):
    """Rows in the order of their key, in which the rows of a person lie apart."""
    rng = np.random.default_rng(5)
    age, dose, height = rng.uniform(10, 90, N_ROWS), rng.uniform(-1, 1, N_ROWS), rng.normal(170, 10, N_ROWS)
    signal = (age - 50) / 40 - dose + 0.3 * rng.normal(size=N_ROWS)
    table = {
        # With gaps, and negative.
        "visit": np.cumsum(rng.integers(1, 4, N_ROWS)) - 300,
        "age": age.round(3),
        "person": rng.permutation([f"p{place // 3}" for place in range(N_ROWS)]),
        "smoker": rng.random(N_ROWS) < 0.3,
        "dose": dose.round(5),
        "region": rng.choice(COLUMNS["region"].categories, N_ROWS),
        "height": height.round(2),
        "seen": [date(2020, 1, 1 + place % 28) for place in range(N_ROWS)],
        "note": ["dose, 5\nonce" for _ in range(N_ROWS)],
        "ill": np.where(signal > 0, "yes", "no"),
        "pain": np.clip(5 + 2 * signal, 0, 10).round(3),
    }
    rows = [
        [cell.item() if hasattr(cell, "item") else cell for cell in row] for row in zip(*table.values(), strict=True)
    ]
    if holes:
        for place, name in ((3, "age"), (77, "height"), (78, "dose"), (200, "ill"), (201, "smoker")):
            rows[place][list(table).index(name)] = None
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(table)}), rows


class Databases:
    """Tables with the same rows, stored in no order, in each database."""

    def __init__(self, folder, kind, server=None):
        self.folder, self.kind, self._server = folder, kind, server
        if kind == "sqlite":
            self.path = folder / "a study.db"
            self.base = f"sqlite:///{self.path}"
        elif kind == "duckdb":
            self.path = folder / "study.duckdb"
            self.base = f"duckdb:///{self.path}"
        else:
            self.base = server.url

    def run(self, *statements, rows=()):
        """Run statements, the last one with each of the rows."""
        *first, last = statements
        with closing(self.connect()) as connection:
            for statement in first:
                connection.execute(statement)
            if rows:
                mark = "%s" if self.kind == "postgresql" else "?"
                cursor = connection.cursor()
                cursor.executemany(f"{last} VALUES ({', '.join([mark] * len(rows[0]))})", rows)
            else:
                connection.execute(last)
            if self.kind == "sqlite":
                connection.commit()

    def connect(self):
        if self.kind == "sqlite":
            sqlite3.register_adapter(date, date.isoformat)
            return sqlite3.connect(self.path)
        if self.kind == "duckdb":
            return pytest.importorskip("duckdb").connect(str(self.path))
        return pytest.importorskip("psycopg").connect(self._server.url, autocommit=True)

    def store(self, name, rows, *, key="PRIMARY KEY (visit)", types=TYPES):
        listed = ", ".join([f'"{column}" {kind}' for column, kind in types.items()] + ([key] if key else []))
        shuffled = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
        cascade = " CASCADE" if self.kind == "postgresql" else ""
        self.run(
            f"DROP TABLE IF EXISTS {name}{cascade}",
            f"CREATE TABLE {name} ({listed})",
            f"INSERT INTO {name}",
            rows=shuffled,
        )

    def url(self, table="visits", **options):
        rest = "".join(f"&{name}={value}" for name, value in options.items())
        return f"{self.base}?table={table}{rest}"


KINDS = ["sqlite", *(pytest.param(kind, marks=pytest.mark.engines) for kind in ("duckdb", "postgresql"))]


@pytest.fixture(scope="module", params=KINDS)
def database(request, tmp_path_factory):
    kind = request.param
    if kind != "sqlite":
        pytest.importorskip("duckdb" if kind == "duckdb" else "adbc_driver_postgresql")
    server = request.getfixturevalue("postgresql") if kind == "postgresql" else None
    made = Databases(tmp_path_factory.mktemp(kind), kind, server)
    made.store("visits", records()[1])
    made.store("holes", records(holes=True)[1])
    made.store("unkeyed", records()[1], key="")
    made.run("DROP VIEW IF EXISTS seen_visits", "CREATE VIEW seen_visits AS SELECT * FROM visits")
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    parquet.write_table(records()[0], folder / "visits.parquet")
    parquet.write_table(records(holes=True)[0], folder / "holes.parquet")
    return folder


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr("taciturn.methods.sparse.run.step_rule", lambda time, _: step_rule(time, 5e8 / 8))
    # Partitions of 30 rows, so that small tables have several.
    monkeypatch.setattr("taciturn.tables.partitions._CELLS", 210)


def state(model):
    """What a fit leaves behind, to the bit, without what is assumed of a table on disk beyond its records."""
    kept = tuple(text for text in model.certificate_.assumptions if text not in ON_DISK)
    certificate = json.loads(replace(model.certificate_, assumptions=kept).to_json())
    names = ("coef_", "intercept_", "support_", "coef_std_error_", "baseline_hazard_", "scores_")
    return certificate, {name: np.asarray(vars(model)[name]).tobytes() for name in names if name in vars(model)}


def classifier(**changes):
    return SparseClassifier(**SETTINGS | {"classes": ("no", "yes")} | changes)


def regressor(**changes):
    return SparseRegressor(**SETTINGS | {"y_bounds": (0.0, 10.0)} | changes)


CASES = {
    "default": (classifier, LABELS, "visits"),
    "labels of the table": (lambda: classifier(classes=None), replace(LABELS, target=Target("ill")), "visits"),
    "inference": (lambda: regressor(inference=True), NUMBERS, "visits"),
    "null records": (lambda: classifier(invalid="null"), replace(LABELS, missing=NULL), "holes"),
    "dense": (lambda: regressor(n_nonzero="all"), NUMBERS, "visits"),
    "hard threshold": (lambda: HardThresholdClassifier(**SETTINGS, classes=("no", "yes")), LABELS, "visits"),
    "hard threshold of numbers": (
        lambda: HardThresholdRegressor(**SETTINGS, mechanism="peeling", y_bounds=(0.0, 10.0)), NUMBERS, "visits",
    ),
    "hazards": (
        lambda: SparseSurvival(epsilon=20.0, random_state=3, x_bound=1.0, cuts=(165.0, 180.0), inference=True),
        TIMES, "visits",
    ),
    "correlations": (
        lambda: CorrelationSelector(
            epsilon=8.0, random_state=3, n_features_to_select=2, x_bound=1.0, classes=("no", "yes")
        ), LABELS, "visits",
    ),
}  # fmt: skip


def check_same_model(folder, database, case, *, engine=None, table=None, **url):
    """A model that is fitted to a table in a database equals the one that is fitted to its arrays."""
    make, bounds, name = CASES[case]
    invalid = make().invalid
    with open_table(database.url(table or name, **url), bounds, invalid=invalid) as opened:
        assert opened.lengths.size == (14 if name == "visits" else 17)
        opened.engine = engine or opened.engine
        found = make().fit(opened)
    X, y = read_table(folder / f"{name}.parquet", bounds, bounds.target.name, invalid=invalid)
    assert state(found) == state(make().fit(X, y))
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_fit_has_the_bits_of_memory(folder, database, case):
    model = check_same_model(folder, database, case)
    assert _UNIQUE_KEY not in model.certificate_.assumptions


@pytest.mark.parametrize("memory", [1 << 26, None], ids=["streamed", "held"])
def test_persons_whose_rows_lie_apart_have_the_bits_of_memory(folder, database, memory):
    columns = {name: each for name, each in LABELS.columns.items() if name != "person"}
    bounds = TableBounds(LABELS.target, columns, person="person")
    X, y = read_table(folder / "visits.parquet", LABELS, "ill")
    whole = classifier(inference=True).fit(X, y, persons=read_person_keys(folder / "visits.parquet", bounds))
    with open_table(database.url(), bounds, memory=memory) as opened:
        model = classifier(inference=True).fit(opened)
    assert model.certificate_.unit == "person"
    assert state(model)[1] == state(whole)[1]


def test_scores_have_the_bits_of_memory(folder, database):
    X, y = read_table(folder / "visits.parquet", LABELS, "ill")
    model = classifier().fit(X, y)
    model.feature_names_in_ = np.array(read_names(database), dtype=object)
    settings = {"metric": "all", "epsilon": 2.0, "random_state": 5}
    whole = private_score(model, X, y, **settings)
    with open_table(database.url(), LABELS) as opened:
        found = private_score(model, opened, **settings)
    assert (found.counts, found.measures) == (whole.counts, whole.measures)
    assert set(found.certificate.assumptions) - set(whole.certificate.assumptions) <= ON_DISK
    assert found.certificate.events == whole.certificate.events


def read_names(database):
    with open_table(database.url(), LABELS) as opened:
        return list(opened.names)


def test_scales_have_the_bits_of_memory(folder, database):
    names = ["age", "height"]
    table = parquet.read_table(folder / "visits.parquet")
    settings = {"epsilon": 20.0, "random_state": 1, "tail": 0.1}
    whole = PrivateScaler(**settings).fit(np.column_stack([table.column(name).to_numpy() for name in names]))
    with open_table(database.url(), LABELS) as opened:
        numbers = PartitionedTable(NumberPartitions(opened.reader, names), has_target=False)
        found = PrivateScaler(**settings).fit(numbers)
    assert (found.lower_.tolist(), found.upper_.tolist()) == (whole.lower_.tolist(), whole.upper_.tolist())


# ------------------------------------------------------------------ broken variants are rejected


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_the_same_test_rejects_broken_engines(folder, database, broken):
    with pytest.raises(AssertionError):
        check_same_model(folder, database, "inference", engine=broken)


def loses_first(found):
    return [found[0].slice(1), *found[1:]]


def doubles_first(found):
    return [found[0].slice(0, 1), *found]


def reverses(found):
    return [batch.take(np.arange(batch.num_rows)[::-1]) for batch in reversed(found)]


@pytest.mark.parametrize("broken", [loses_first, doubles_first])
def test_a_range_that_loses_or_doubles_a_row_is_refused(folder, database, broken, monkeypatch):
    read = Database.read
    monkeypatch.setattr(Database, "read", lambda *given: broken(read(*given)))
    with pytest.raises(DataError, match="expected the rows that it had when it was opened, got others; fit when nobod"):
        check_same_model(folder, database, "inference")


def test_the_same_test_rejects_rows_in_another_order(folder, database, monkeypatch):
    read = Database.read
    monkeypatch.setattr(Database, "read", lambda *given: reverses(read(*given)))
    check_same_model(folder, database, "default")
    with pytest.raises(AssertionError):
        check_same_model(folder, database, "inference")


# ------------------------------------------------------------------ keys


def test_a_stated_key_gives_the_order_and_is_assumed(folder, database):
    for table in ("unkeyed", "seen_visits"):
        model = check_same_model(folder, database, "inference", table=table, key="visit")
        assert _UNIQUE_KEY in model.certificate_.assumptions
        assert (_SAME_ROWS in model.certificate_.assumptions) == (database.kind == "postgresql")


KEYS = {
    "text": (("a varchar", [f"k'{place:05d}\\" for place in range(N_ROWS)]),),
    "numbers as text": (("a varchar", sorted(map(str, range(N_ROWS)))),),
    "two columns": (
        ("a varchar", ["é" if place < 200 else "ü" for place in range(N_ROWS)]),
        ("b integer", [place % 200 - 100 if place < 200 else place for place in range(N_ROWS)]),
    ),
    "three columns": (
        ("a integer", [place // 100 for place in range(N_ROWS)]),
        ("b varchar", [f"{place // 10 % 10}" for place in range(N_ROWS)]),
        ("c integer", [place % 10 for place in range(N_ROWS)]),
    ),
}
TYPED_KEYS = {
    "uuid": (("a uuid", [UUID(int=place * 7919 << 60) for place in range(N_ROWS)]),),
    "bigint": (("a bigint", [(1 << 62) + 3 * place for place in range(N_ROWS)]),),
    "numeric": (("a numeric(30, 2)", [Decimal(place) / 4 - 50 for place in range(N_ROWS)]),),
    "date": (("a date", [date.fromordinal(700_000 + place) for place in range(N_ROWS)]),),
}


def rows_with_key(parts):
    columns = [values for _, values in parts]
    types = dict(part.split(" ", 1) for part, _ in parts)
    return [[*key, *row] for key, row in zip(zip(*columns, strict=True), records()[1], strict=True)], types | TYPES


def check_key(folder, database, parts):
    rows, types = rows_with_key(parts)
    names = [part.split(" ")[0] for part, _ in parts]
    database.store("keyed", rows, key=f"PRIMARY KEY ({', '.join(names)})", types=types)
    bounds = replace(NUMBERS, columns=NUMBERS.columns | {name: Column("ignore") for name in names})
    make = CASES["inference"][0]
    X, y = read_table(folder / "visits.parquet", NUMBERS, "pain")
    with open_table(database.url("keyed"), bounds) as opened:
        assert opened.lengths.tolist() == [30] * 14
        assert state(make().fit(opened)) == state(make().fit(X, y))


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_text_and_of_several_columns_give_the_order(folder, database, kind):
    check_key(folder, database, KEYS[kind])


@pytest.mark.parametrize("kind", TYPED_KEYS)
def test_keys_of_other_types_give_the_order(folder, database, kind):
    if database.kind == "sqlite":
        pytest.skip("SQLite has integers, numbers and text")
    check_key(folder, database, TYPED_KEYS[kind])


@pytest.mark.parametrize("kind", ["text NOT NULL", "text"])
def test_a_primary_key_that_sqlite_lets_be_missing_is_assumed(folder, kind):
    stored = Databases(folder, "sqlite")
    rows, types = rows_with_key([(f"a {kind}", [f"k{place:05d}" for place in range(N_ROWS)])])
    stored.store("keyed", rows, key="PRIMARY KEY (a)", types=types)
    bounds = replace(NUMBERS, columns=NUMBERS.columns | {"a": Column("ignore")})
    with open_table(stored.url("keyed"), bounds) as opened:
        assert (_UNIQUE_KEY in opened.assumptions) == (kind == "text")
    rows[200][0] = None
    if kind == "text":
        # As the certificate says.
        stored.store("keyed", rows, key="PRIMARY KEY (a)", types=types)
        with pytest.raises(DataError, match="expected a key that is stated for every row"):
            open_table(stored.url("keyed"), bounds)


@pytest.mark.parametrize("wrong", ["twice", "missing"])
def test_a_stated_key_that_is_none_is_refused(database, wrong):
    rows = records()[1]
    rows[200][0] = rows[201][0] if wrong == "twice" else None
    database.store("wrong", rows, key="")
    with pytest.raises(DataError, match='^table "wrong": expected a key that is stated for every row, and for no two'):
        open_table(database.url("wrong", key="visit"), LABELS)
    with pytest.raises(ParameterError, match="^key='nothing': expected columns of the table, "):
        open_table(database.url("wrong", key="nothing"), LABELS)


def test_without_a_key_sums_are_the_same_and_what_needs_an_order_is_refused(folder, database):
    check_same_model(folder, database, "default", table="unkeyed")
    check_same_model(folder, database, "correlations", table="unkeyed")
    with (
        open_table(database.url("unkeyed"), LABELS) as opened,
        pytest.raises(ParameterError, match="^inference=True: expected a table whose rows have an order .* &key=.$"),
    ):
        classifier(inference=True).fit(opened)
    columns = {name: each for name, each in LABELS.columns.items() if name != "person"}
    with pytest.raises(DataError, match="expected a primary key, .* for persons, whose rows need an order; add &key="):
        open_table(database.url("unkeyed"), TableBounds(LABELS.target, columns, person="person"))
    with pytest.raises(DataError, match="expected a primary key, or a key in the URL, whose rows are found by it; add"):
        open_table(database.url("seen_visits"), LABELS)


def test_ranges_of_keys_have_every_key_once():
    """In Python's order of tuples, which the condition in SQL has to be."""
    keys = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", keys)
        for lower in [None, *keys]:
            for upper in [None, *keys]:
                condition = KeyRange(lower, upper).condition("abc", lambda _, value: str(value))
                found = connection.execute(f"SELECT * FROM t{condition} ORDER BY a, b, c").fetchall()
                assert found == [k for k in keys if (lower is None or k >= lower) and (upper is None or k < upper)]


# ------------------------------------------------------------------ what is read


def test_only_needed_columns_are_read_and_a_range_at_a_time(database, monkeypatch):
    asked, read = [], Database.read

    def noted(self, names, key, within):
        found = read(self, names, key, within)
        asked.append((tuple(names), sum(batch.num_rows for batch in found)))
        return found

    monkeypatch.setattr(Database, "read", noted)
    with open_table(database.url(), LABELS, memory=1 << 26) as opened:
        assert asked == []
        opened.engine = partial(StreamedSource, memory=0)
        classifier(columns=[0, 1]).fit(opened)
    assert all(n_rows == 30 for _, n_rows in asked)
    assert {names for names, _ in asked[:14]} == {("age", "smoker", "dose", "region", "height", "ill")}
    assert {names for names, _ in asked[14:]} == {("age", "smoker", "ill"), ("ill",)}


def test_rows_do_not_change_while_a_table_is_open(database):
    """One view of the table for all passes: rows that move would take records from one half to the other."""
    database.store("changing", records()[1])
    with open_table(database.url("changing"), LABELS) as opened:
        before = state(classifier().fit(opened))
        if database.kind == "postgresql":
            database.run("DELETE FROM changing")
        else:
            first, words = [], "different configuration"
            if database.kind == "sqlite":
                first, words = ["PRAGMA busy_timeout = 0"], "locked"
            with pytest.raises(Exception, match=words):
                database.run(*first, "DELETE FROM changing")
        assert state(classifier().fit(opened)) == before


def move_rows(path):
    """Exchange the keys of the first and the third row, so that both have another place."""
    free = 10**9
    with closing(sqlite3.connect(path)) as connection:
        first, _, third = (key for (key,) in connection.execute("SELECT visit FROM changing ORDER BY visit LIMIT 3"))
        for before, after in ((first, free), (third, first), (free, third)):
            connection.execute("UPDATE changing SET visit = ? WHERE visit = ?", (after, before))
        connection.commit()


def numbers_while_rows_move(folder):
    """All features of an open table before rows move and after that."""
    stored = Databases(folder, "sqlite")
    stored.store("changing", records()[1])
    stored.run("PRAGMA journal_mode = WAL")
    try:
        with open_table(stored.url("changing"), LABELS) as opened:
            before = opened.reader.read(0, None)[0]
            move_rows(stored.path)
            return before, opened.reader.read(0, None)[0]
    finally:
        stored.run("PRAGMA journal_mode = DELETE")


def test_rows_of_sqlite_that_move_are_not_seen(folder, monkeypatch):
    before, after = numbers_while_rows_move(folder)
    np.testing.assert_array_equal(before, after)
    # A connection that begins a view with every query sees them.
    monkeypatch.setattr(SQLite, "_connect", lambda self: open_sqlite(self.file.path))
    before, after = numbers_while_rows_move(folder)
    assert not np.array_equal(before, after)


# ------------------------------------------------------------------ cells


def test_a_cell_never_changes_how_another_one_is_read(database):
    """Whatever stands in one cell, the others are the same; without it the record is null."""
    strange = {
        "sqlite": ("any", ["text", b"\x00\xff", "1e999", "9" * 400, 5, -1.5]),
        "duckdb": ("hugeint", [2**126, -(2**126)]),
        "postgresql": ("numeric", [Decimal("1e400"), Decimal("NaN"), Decimal("-1e-400"), Decimal("0.1")]),
    }[database.kind]
    bounds = TableBounds(Target("y", -1, 1), {"x": Column("number", 0, 10), "n": Column("ignore")})
    kind = "" if strange[0] == "any" else strange[0]
    rows = [[place, 2.5 if kind in ("", "numeric") else 2, 0.5] for place in range(60)]
    expected = None
    for cell in [rows[0][1], *strange[1]]:
        rows[31][1] = cell
        database.store("cells", rows, key="PRIMARY KEY (n)", types={"n": "integer", "x": kind, "y": "double precision"})
        with open_table(database.url("cells"), bounds, invalid="null") as opened:
            X, y, _ = opened.reader.read_all()
        others = np.delete(X, 31, axis=0)
        expected = others if expected is None else expected
        assert others.tobytes() == expected.tobytes()
        assert y.size == 60


def test_infinite_days_are_missing(database):
    if database.kind == "sqlite":
        pytest.skip("SQLite has no type of dates")
    rows = [[place, date(2020, 1, 1 + place), 0.5] for place in range(20)]
    for type in ("date", "timestamp", "timestamptz"):
        database.store("days", rows, key="PRIMARY KEY (n)", types={"n": "integer", "x": type, "y": "double precision"})
        database.run("UPDATE days SET x = 'infinity' WHERE n IN (3, 4)")
        day = Column("date", since=date(2020, 1, 1), lower=date(2020, 1, 1), upper=date(2020, 1, 21))
        bounds = TableBounds(Target("y", -1, 1), {"x": day, "n": Column("ignore")})
        with open_table(database.url("days"), bounds, invalid="null") as opened:
            X, _, _ = opened.reader.read_all()
        assert np.flatnonzero(np.isnan(X).any(axis=1)).tolist() == [3, 4]
        assert X[:3].ravel().tolist() == [-1.0, -0.9, -0.8]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://me:secret@host/db?table=t", "table='mysql://...': expected a path, or a URL such as postgresql://"),
        ("s3://bucket/t.parquet", "table='s3://...': expected a path"),
        ("sqlite:///study.db", "table='sqlite://...': expected a URL such as .*; name the table behind \\?table="),
        ("sqlite:///study.db#visits", "table='sqlite://...': expected a URL without #"),
        ("sqlite:///study.db?table=a&mode=rw", "table='sqlite://...': expected a URL such as .*; name a file"),
        ("sqlite://study.db?table=a", "table='sqlite://...': expected a URL such as .*; name a file"),
        ("duckdb:///?table=a", "table='duckdb://...': expected a URL such as .*; name a file"),
        ("postgresql://me:secret@host/db?table=a&table=b", "table='postgresql://...': expected one table= in the URL"),
        ("sqlite:///no.db?table=a", "table='.*/no.db': expected a file that exists"),
    ],
)
def test_urls_that_name_no_table_are_refused_without_passwords(url, words):
    with pytest.raises(ParameterError, match=f"^{words}") as refusal:
        open_table(url, LABELS)
    assert "secret" not in str(refusal.value)


def test_passwords_are_in_no_repr():
    table = DatabaseTable.from_url("postgresql://me:secret@host/db?table=a&sslmode=require&key=b,c")
    assert "secret" not in repr(table)
    assert table.place == "postgresql://me:secret@host/db?sslmode=require&connect_timeout=30"
    assert (table.table, table.key) == ("a", ("b", "c"))


def test_tables_that_are_not_there_are_named(database):
    with pytest.raises(DataError, match='^table "nothing": expected a table of that name in the database, got none'):
        open_table(database.url("nothing"), LABELS)
    with pytest.raises(ParameterError, match="^columns='gone': expected the name of a column of the table"):
        open_table(database.url(), replace(LABELS, columns=LABELS.columns | {"gone": Column("number", 0, 1)}))
    database.store("empty", records()[1][:1])
    database.run("DELETE FROM empty")
    with pytest.raises(DataError, match='^table "empty": expected at least one row below the header, got none'):
        open_table(database.url("empty"), LABELS)


@pytest.mark.parametrize("engine", ["dask"])
def test_workers_read_no_database(database, engine):
    with pytest.raises(DataError, match="^table: expected Parquet or Arrow files for workers, got a database, which"):
        open_table(database.url(), LABELS, engine=engine)


def test_every_column_with_wrong_cells_is_named_and_no_cell_is_quoted(database):
    wrong = replace(LABELS, columns=LABELS.columns | {"note": Column("number", 0, 1), "person": Column("boolean")})
    with pytest.raises(TaciturnError) as refusal, open_table(database.url(), wrong) as opened:
        opened.reader.check()
    words = str(refusal.value)
    assert '"note"' in words
    assert '"person"' in words
    assert "dose, 5" not in words
    assert "p1" not in words
    assert refusal.value.__context__ is None


def test_errors_of_a_database_quote_no_cell(database):
    """A view fails in the middle, with a cell in the message of the database."""
    failing = "CAST(note AS integer)" if database.kind != "sqlite" else "abs(-9223372036854775807 - 1)"
    names = ", ".join(name for name in TYPES if name != "height")
    database.run(
        "DROP VIEW IF EXISTS failing",
        f"CREATE VIEW failing AS SELECT {names}, CASE WHEN visit > 0 THEN {failing} ELSE 1.0 END AS height FROM visits",
    )
    with pytest.raises(TaciturnError) as refusal, open_table(database.url("failing", key="visit"), LABELS) as opened:
        classifier().fit(opened)
    assert "dose" not in str(refusal.value)
    assert "9223372036854775807" not in str(refusal.value)
    assert refusal.value.__cause__ is None


# ------------------------------------------------------------------ connections that end


@pytest.mark.engines
def test_a_killed_connection_changes_nothing(folder, tmp_path, postgresql, monkeypatch):
    pytest.importorskip("adbc_driver_postgresql")
    made = Databases(tmp_path, "postgresql", postgresql)
    made.store("visits", records()[1])
    killed, read = [], Database.read

    def interrupted(self, names, key, within):
        if len(killed) < 3:
            made.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            killed.append(threading.get_ident())
        return read(self, names, key, within)

    monkeypatch.setattr(Database, "read", interrupted)
    check_same_model(folder, made, "inference")
    assert len(killed) == 3


@pytest.mark.engines
def test_a_server_that_crashes_is_waited_for_and_one_that_is_gone_is_told(tmp_path, postgresql, monkeypatch):
    pytest.importorskip("adbc_driver_postgresql")
    made = Databases(tmp_path, "postgresql", postgresql)
    made.store("visits", records()[1])
    with open_table(made.url(), LABELS) as opened:
        before = state(classifier().fit(opened))
        postgresql.pause()
        back = threading.Timer(1.0, postgresql.resume)
        back.start()
        assert state(classifier().fit(opened)) == before
        back.join()
        postgresql.pause()
        monkeypatch.setattr("taciturn.tables.databases._WAITS", (0.0, 0.01))
        with pytest.raises(DataError, match='^table "visits": expected a database that keeps answering, got a connect'):
            classifier().fit(opened)
        with pytest.raises(DataError, match='^table "visits": expected a database that can be opened, got none; check'):
            open_table(made.url(), LABELS)
        postgresql.resume()
    wrong = postgresql.url.replace("taciturn@", "nobody:secret%zz@")
    with pytest.raises(DataError, match='^table "visits": expected a database that can be opened') as refusal:
        open_table(f"{wrong}?table=visits", LABELS)
    assert "secret" not in str(refusal.value)


def test_the_table_may_lie_beside_an_account(database):
    """Reserving writes to the file that the table is read from."""
    if database.kind == "duckdb":
        pytest.skip("accounts are in SQLite or PostgreSQL")
    from taciturn import Account

    account = Account.create(database.base, "visits", epsilon=20, delta=1e-5, n=N_ROWS)
    with open_table(database.url(), LABELS) as opened:
        classifier(account=account, random_state=None).fit(opened)
    assert account.remaining_epsilon(1e-5) < 19
