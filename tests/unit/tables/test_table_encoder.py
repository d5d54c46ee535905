"""Memory of a read, and the encoder as an estimator."""

import gc
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tables_on_disk import AGE, ILL, TABLE, N, bounds, expected_features

import taciturn.tables
from taciturn import CorrelationSelector, FrankWolfeClassifier, certificate_of
from taciturn.audit import replay
from taciturn.core.errors import CertificateError, DataError, DataTypeError, ParameterError
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    TableLayout,
    Target,
    formats,
    open_partitions,
    read_batches,
    read_schema,
)
from taciturn.tables.columns import read_day

# ------------------------------------------------------------------ memory


@pytest.fixture
def two_threads():
    """How far Arrow reads ahead depends on their number."""
    before = pa.cpu_count()
    pa.set_cpu_count(2)
    yield
    pa.set_cpu_count(before)


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_LEAST_BLOCK", 1 << 14)
    path = tmp_path / "t.csv"
    stated = TableBounds(Target("y", -1, 1), {"x": Column("number", 0, 1e6)})
    n_rows = 500_000
    csv.write_csv(pa.table({"y": np.zeros(n_rows), "x": np.arange(n_rows) / 7}), path)
    schema = read_schema(path)
    encoder = TableEncoder(bounds=stated).fit(schema)
    gc.collect()
    base = pa.total_allocated_bytes()

    def share():
        """Of the table as doubles, beside what was held before."""
        return (pa.total_allocated_bytes() - base) / (8 * n_rows)

    assert max(share() for _ in read_batches(path, encoder)) < 0.5
    # The same measure finds a table that is held as a whole, and sees it given up with the table.
    held = open_partitions(path, stated, in_memory=True)
    assert share() > 0.8
    del held
    # Arrow's threads may take a moment to let go.
    deadline = time.monotonic() + 20.0
    while share() > 0.5 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert share() < 0.5


# ------------------------------------------------------------------ the encoder as an estimator


def test_the_encoder_is_a_scikit_learn_transformer():
    encoder = TableEncoder(bounds=bounds())
    assert encoder.get_params() == {"bounds": bounds(), "invalid": "raise"}
    assert clone(encoder).bounds == bounds()
    assert clone(encoder).bounds is not encoder.bounds
    assert repr(encoder) == 'TableEncoder(bounds=TableBounds(target="ill", 5 columns))'
    fitted = pickle.loads(pickle.dumps(encoder.fit(TABLE)))
    assert np.array_equal(fitted.transform(TABLE), expected_features())
    frame = encoder.set_output(transform="pandas").transform(TABLE)
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()
    with pytest.raises(TypeError):
        TableEncoder(bounds())


def test_a_pipeline_with_an_encoder_costs_what_its_model_costs():
    model = FrankWolfeClassifier(classes=("no", "yes"), random_state=0)
    pipeline = make_pipeline(TableEncoder(bounds=bounds()), model).fit(TABLE.to_pandas(), ILL)
    own = pipeline[-1].certificate_
    assert replace(certificate_of(pipeline), assumptions=own.assumptions) == own
    assert pipeline.feature_names_in_.tolist() == ["age", "body mass", "smoker", "region.é"]

    class Learner(TableEncoder):
        """May do anything."""

    with pytest.raises(CertificateError, match="Learner"):
        certificate_of(make_pipeline(Learner(bounds=bounds()), model).fit(TABLE.to_pandas(), ILL))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((3, 4)), "^X: expected a table with named columns, got something else"),
        ({"age": [1]}, "^X: expected a table with named columns"),
        (TABLE.drop_columns("age"), '^table: expected a column "age", got a table without it'),
        (
            TABLE.append_column("age", pa.array(AGE)),
            "^table: expected every column name once, got the same one for columns 2 and 7; rename one",
        ),
        (TABLE.to_pandas().drop(columns="smoker"), '^table: expected a column "smoker"'),
        (pd.concat([TABLE.to_pandas()] * 2, axis=1), "^table: expected every column name once, got the same one"),
        (TABLE.to_pandas().assign(age="98765.4321"), '^column "age": expected numbers, got'),
        (TABLE.to_pandas().assign(age=[1, "SECRET"] * (N // 2)), '^column "age": expected numbers, got other values'),
        (
            TABLE.to_pandas().assign(**{"region.é": ["north", b"SECRET"] * (N // 2)}),
            '^column "region.é": expected text, numbers or truth values, got other values; make them text',
        ),
        (
            TABLE.to_pandas().assign(age=pd.Timestamp(0)),
            '^column "age": expected numbers, got dates; state type =',
        ),
        (TABLE.to_pandas().assign(smoker="SECRET"), '^column "smoker": expected true and false, or 1 and 0'),
        (TABLE.to_pandas().assign(smoker=2), '^column "smoker": expected true and false, or 1 and 0'),
        (TABLE.to_pandas().assign(smoker=pd.Timestamp(0)), '^column "smoker": expected true and false'),
        (
            TABLE.to_pandas().assign(**{"region.é": pd.Timestamp(0)}),
            '^column "region.é": expected categories, got dates',
        ),
        (TABLE.to_pandas().assign(age=[np.nan] + [1.0] * (N - 1)), '^column "age": expected a value in every row'),
        (TABLE.to_pandas().assign(smoker=[None] + [True] * (N - 1)), '^column "smoker": expected a value in every row'),
    ],
)
def test_tables_in_memory_that_cannot_be_used(table, message):
    encoder = TableEncoder(bounds=bounds()).fit(TABLE)
    with pytest.raises((DataError, DataTypeError), match=message) as caught:
        encoder.transform(table)
    text = str(caught.value)
    assert "SECRET" not in text
    assert "98765" not in text
    # What Arrow said does not travel along either.
    assert caught.value.__context__ is None


# ------------------------------------------------------------------ one cell never decides how another one is read


class Hostile:
    """Raises whatever it is asked."""

    def _refuse(self, *_):
        raise RuntimeError("SECRET")

    __eq__ = __ne__ = __lt__ = __gt__ = __float__ = __int__ = __index__ = __str__ = __repr__ = __hash__ = _refuse
    __len__ = __iter__ = __getitem__ = __bool__ = __array__ = __getattr__ = _refuse
    __class__ = property(_refuse)


class BadFloat(float):
    """A float that cannot be converted."""

    def __float__(self):
        raise ValueError("SECRET")


EAST = timezone(timedelta(hours=13))
ODD = {
    "decimal": Decimal("1.5"),
    "precise decimal": Decimal("0.1234567890123456789012345678901234567890"),
    "vast decimal": Decimal("1e999999999"),
    "decimal nan": Decimal("sNaN"),
    "aware": datetime(2020, 6, 30, 23, 59, tzinfo=EAST),
    "naive": datetime(2020, 6, 30, 0, 1),
    "timestamp": pd.Timestamp("2020-06-30 00:01", tz="America/New_York"),
    "date": date(2020, 6, 30),
    "datetime64": np.datetime64("2020-06-30T00:01:00", "ns"),
    "far datetime64": np.datetime64(2**60, "D"),
    "timedelta": timedelta(1),
    "timedelta64": np.timedelta64(1, "ns"),
    "float": 0.5,
    "float32": np.float32(0.1),
    "long double": np.longdouble("1e4000"),
    "infinite": float("inf"),
    "bool": True,
    "numpy bool": np.bool_(False),
    "integer": 7,
    "huge integer": -(10**400),
    "longest integer": 10**5000,
    "numpy integer": np.uint64(2**64 - 1),
    "bytes": b"1",
    "none": None,
    "nan": float("nan"),
    "na": pd.NA,
    "nat": pd.NaT,
    "numpy nat": np.datetime64("NaT", "D"),
    "number as text": "1.50",
    "word": "elsewhere",
    "empty": "",
    "no character": "\ud800",
    "fraction": Fraction(10**400, 3),
    "complex": 1 + 2j,
    "list": [1, 2],
    "array": np.arange(2),
    "dictionary": {"a": 1},
    "hostile": Hostile(),
    "bad float": BadFloat(1.0),
}
DAYS = [date(2020, 6, 30), date(1999, 12, 31), date(2020, 2, 29), date(2021, 3, 1)]
MOMENTS = [datetime(2020, 6, 30, 23, 30), datetime(1999, 12, 31, 0, 30), datetime(2020, 2, 29), datetime(2021, 3, 1)]
NUMBERS, SINCE = Column("number", -10, 10), Column("date", since=date(2020, 1, 1), lower=-400, upper=400)
KINDS = {
    "whole decimals": (NUMBERS, [Decimal(k) for k in (1, 2, -3, 4)]),
    "decimals": (NUMBERS, [Decimal("0.3"), Decimal("1.10"), Decimal("7"), Decimal("-1E+1")]),
    "integers": (NUMBERS, [1, 2, -3, 40]),
    "floats": (NUMBERS, [0.1, 2.0, -3.5, 4.0]),
    "truth as numbers": (NUMBERS, [True, False, True, True]),
    "censored": (Column("number", 0, 10, censored=True), ["<5", "7", ">9.5", "1"]),
    "truth values": (Column("boolean"), [True, False, False, True]),
    "words for truth": (Column("boolean"), ["yes", "no", "0", "TRUE"]),
    "numbers for truth": (Column("boolean"), [1.0, 0.0, 1.0, 1.0]),
    "decimal codes": (Column("category", categories=("1", "2", "1.5")), [Decimal(k) for k in (1, 2, 3, 1)]),
    "codes": (Column("code", 1, 3), [1, 2, 3, 9]),
    "float codes": (Column("code", 1, 3), [1.0, 2.0, 3.0, 2.0]),
    "words": (Column("category", categories=("north", "south")), ["north", "south", "west", "south"]),
    "truth categories": (Column("category", categories=("true", "false")), [True, False, False, True]),
    "groups": (Column("category", categories=("I10", "J45"), group=3), ["I10.1", "J45", "I10", "K2"]),
    "days": (SINCE, DAYS),
    "moments": (SINCE, MOMENTS),
    "aware moments": (SINCE, [moment.replace(tzinfo=UTC) for moment in MOMENTS]),
    "days as text": (SINCE, [str(day) for day in DAYS]),
    "days by a format": (replace(SINCE, format="%d.%m.%Y"), [day.strftime("%d.%m.%Y") for day in DAYS]),
    "parts of days": (Column("date", lower=1990, upper=2030, parts=("year", "month")), MOMENTS),
}
FRAMES = {
    "objects": lambda cells: pd.DataFrame({"c": pd.Series(cells, dtype=object)}),
    "inferred": lambda cells: pd.DataFrame({"c": cells}),
    "polars": lambda cells: pl.DataFrame({"c": pl.Series(cells, dtype=pl.Object)}),
    "categorical": lambda cells: pd.DataFrame(
        {"c": pd.Categorical.from_codes(range(len(cells)), categories=pd.Index(cells, dtype=object))}
    ),
}


def encoded(column, frame, *, invalid, missing=None):
    stated = TableBounds(
        Target("y"), {"c": column}, missing={} if missing is None else {"c": missing}, layout=TableLayout(decimal=".")
    )
    return TableEncoder(bounds=stated, invalid=invalid).fit(frame).transform(frame)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", ["objects", "inferred", "polars"])
def test_one_odd_cell_changes_no_other_row(kind, container, recwarn):
    """At the beginning, where types are found, and at the end; the others are encoded as without it, to the bit."""
    column, cells = KINDS[kind]
    made = FRAMES[container]
    alone = encoded(column, FRAMES["objects"](cells), invalid="raise")
    # The same cells in a column of their own type are read alike.
    assert np.array_equal(encoded(column, pd.DataFrame({"c": cells}), invalid="raise"), alone)
    assert np.array_equal(encoded(column, pa.table({"c": cells}), invalid="raise"), alone)
    for name, odd in ODD.items():
        for at in (0, len(cells)) if container == "objects" else (0,):
            others = [*cells[:at], odd, *cells[at:]]
            try:
                frame = made(others)
            except (TypeError, ValueError, OverflowError, RuntimeError, pl.exceptions.PolarsError):
                # No such column can be made, so that nothing is encoded.
                assert container != "objects", name
                continue
            if container == "inferred" and frame["c"].dtype.kind == "c":
                # A column of complex numbers by its type, which is public.
                continue
            found = encoded(column, frame, invalid="null")
            assert np.array_equal(np.delete(found, at, axis=0), alone), (name, at)
            # Strict: the same, or a refusal that quotes nothing.
            if not np.isnan(found[at]).any():
                assert np.array_equal(encoded(column, frame, invalid="raise"), found), (name, at)
                continue
            with pytest.raises(DataError, match='^column "c": expected') as caught:
                encoded(column, frame, invalid="raise")
            assert "SECRET" not in str(caught.value)
            assert caught.value.__context__ is None
    assert not recwarn


def test_the_comparison_finds_a_type_that_one_cell_gives_to_all():
    """With the time zone of the first moment, which Arrow gives to all of them, another day begins for the others."""
    column, cells = KINDS["aware moments"]
    together = pa.array([ODD["timestamp"], *cells], from_pandas=True)
    found = encoded(column, pa.table({"c": together}), invalid="null")
    assert not np.array_equal(found[1:], encoded(column, pa.table({"c": cells}), invalid="null"))


@pytest.mark.parametrize(
    ("column", "cell", "feature"),
    [
        (NUMBERS, Decimal("-5.0"), -0.5),
        (NUMBERS, -(10**400), -1.0),
        (NUMBERS, Fraction(10**400, 3), 1.0),
        (NUMBERS, np.float32(5), 0.5),
        (NUMBERS, np.bool_(True), 0.1),
        (NUMBERS, "5", np.nan),
        (Column("boolean"), Decimal("1.0"), 1.0),
        (Column("boolean"), 2, np.nan),
        (Column("category", categories=("1",)), Decimal("1.00"), 1.0),
        (Column("category", categories=("1",)), np.int8(1), 1.0),
        (Column("category", categories=("1",)), b"1", np.nan),
        (Column("category", categories=("1",)), "elsewhere", 0.0),
        (Column("category", categories=("1",)), Decimal("1e999999999"), 0.0),
        (SINCE, datetime(2020, 1, 1, 23, tzinfo=EAST), 0.0),
        (SINCE, np.datetime64("2020-01-01T23", "ns"), 0.0),
        (SINCE, 0, np.nan),
    ],
    ids=str,
)
def test_cells_without_a_type_are_read_as_the_bounds_state(column, cell, feature):
    for container in ("objects", "polars", "categorical"):
        found = encoded(column, FRAMES[container]([cell]), invalid="null")
        assert np.array_equal(found, [[feature]], equal_nan=True), container


def test_what_is_filled_in_for_missing_cells_stands_for_no_wrong_one():
    frame = FRAMES["objects"]([5, None, pd.NA, Decimal("NaN"), pd.NaT, np.datetime64("NaT", "D")])
    assert encoded(NUMBERS, frame, invalid="raise", missing=0).ravel().tolist() == [0.5, 0, 0, 0, 0, 0]
    with pytest.raises(DataError, match='^column "c": expected numbers, got other values'):
        encoded(NUMBERS, FRAMES["objects"]([5, "SECRET"]), invalid="raise", missing=0)
    # As for a file: with "null", a cell that cannot be read is a missing one.
    assert encoded(NUMBERS, FRAMES["objects"]([5, "SECRET"]), invalid="null", missing=0).ravel().tolist() == [0.5, 0]


def test_the_scale_of_a_decimal_type_changes_nothing():
    """One decimal with more digits gives all others of its column a larger scale."""
    texts = ["0.3", "1.1", "7", "123456789012.3", "0.07"]
    codes = Column("category", categories=("7", "1.1"))
    for column in (NUMBERS, codes, Column("number", -1e13, 1e13)):
        found = [
            encoded(
                column, pa.table({"c": pa.array(list(map(Decimal, texts)), pa.decimal128(38, scale))}), invalid="null"
            )
            for scale in (2, 5, 20)
        ]
        assert np.array_equal(found[0], found[1])
        assert np.array_equal(found[0], found[2])
    assert found[0][0, 0] == 0.3 / 1e13


def test_columns_without_a_type_are_not_taken_for_numbers_by_their_cells():
    """Whether [defaults] are for them would depend on the first cells."""
    stated = TableBounds(Target("y", 0, 1), defaults=Column("number", 0, 1))
    for cells in ([1, 2], ["a", 2], [], [Decimal(1)]):
        frame = pd.DataFrame({"c": pd.Series(cells, dtype=object), "n": pd.Series(dtype=float), "y": 0.0})
        with pytest.raises(ParameterError, match="a section for every column of the table that is not plainly one of"):
            TableEncoder(bounds=stated).fit(frame)


def test_invalid_is_one_of_two():
    with pytest.raises(ParameterError, match="^invalid='drop': expected 'raise' or 'null'|^invalid='drop'"):
        TableEncoder(bounds=bounds(), invalid="drop").fit(TABLE)


def test_a_pipeline_states_what_its_encoder_takes_for_granted():
    stated = TableBounds(Target("y"), {"c": Column("category", categories=("1", "2"))})
    frame = FRAMES["objects"]([Decimal(1), Decimal(2)] * 20)
    y = np.arange(40) % 2
    certificates = {}
    for invalid in ("raise", "null"):
        model = CorrelationSelector(classes=(0, 1), n_features_to_select=1, x_bound=1.0, invalid="null", random_state=0)
        pipeline = make_pipeline(TableEncoder(bounds=stated, invalid=invalid), model).fit(frame, y)
        certificates[invalid] = certificate_of(pipeline)
    refused = [text for text in certificates["raise"].assumptions if "the refusal tells of it" in text]
    assert refused == [
        "every cell of the table can be read as its column is stated, or is missing where the bounds say what to fill "
        "in; a table with any other cell is refused, and the refusal tells of it"
    ]
    assert any(text.startswith("a refusal") for text in certificates["raise"].side_channels)
    assert set(certificates["raise"].assumptions) == {*certificates["null"].assumptions, *refused}
    assert not any(text.startswith("a refusal") for text in certificates["null"].side_channels)
    assert "the names and types of the table's columns are public" in certificates["null"].assumptions


def test_a_replay_finds_no_difference_where_one_cell_has_another_type():
    """One decimal with a fraction among whole ones; a column typed from all of its cells is found out."""
    stated = TableBounds(Target("y"), {"c": Column("category", categories=("1", "2"))})
    cells = [Decimal(1), Decimal(2)] * 20
    odd = [Decimal("1.5"), *cells[1:]]
    y = np.arange(40) % 2
    model = CorrelationSelector(classes=(0, 1), n_features_to_select=1, x_bound=1.0, relation="replace-one")
    pipeline = make_pipeline(TableEncoder(bounds=stated), model)
    first, second = ({"X": FRAMES["objects"](each), "y": y} for each in (cells, odd))
    found = replay(pipeline, first, second, relation="replace-one")
    found.raise_if_any()
    assert found.error is None
    assert 0.0 < found.largest_share <= 1.0

    class TypedTogether(TableEncoder):
        """Compares the text of cells in the one type that Arrow finds for all of them."""

        def transform(self, X):
            texts = [str(cell) for cell in pa.array(X["c"], from_pandas=True).to_pylist()]
            return np.array([[text == "1", text == "2"] for text in texts], dtype=float)

    broken = make_pipeline(TypedTogether(bounds=stated), model)
    assert {each.kind for each in replay(broken, first, second, relation="replace-one").differences} == {"sensitivity"}


def test_importing_the_subpackage_is_cheap():
    heavy = ("pyarrow", "sklearn", "scipy", "numpy", "numba")
    code = f"import sys, taciturn.tables; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    for name in taciturn.tables.__all__:
        assert getattr(taciturn.tables, name).__doc__
    with pytest.raises(AttributeError, match="attribute.*magic"):
        _ = taciturn.tables.magic


def test_a_moment_whose_day_is_no_day_is_a_cell_without_one():
    class Odd(datetime):
        def date(self):
            return "no day"

    assert read_day(Odd(2020, 1, 31), None) is None
    assert read_day(datetime(2020, 1, 31), None) == date(2020, 1, 31)
