"""Tables on disk and in memory: formats, bounds, encoding, and what they never say."""

import gc
import gzip
import pickle
import re
import subprocess
import sys
import time
import tomllib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import taciturn.tables
from taciturn import BoundedScaler, FrankWolfeClassifier, certificate_of
from taciturn.core.errors import CertificateError, DataError, DataTypeError, ParameterError
from taciturn.data.target import label_codes
from taciturn.data.unit_range import to_unit_range
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    TableSchema,
    Target,
    arrow_tables,
    bounds_template,
    libsvm,
    read_batches,
    read_numbers,
    read_schema,
    read_table,
)

BOUNDS = """
[target]
name = "ill"
classes = ["no", "yes"]
[columns.age]
type = "number"
lower = 0
upper = 110
[columns."body mass"]
type = "number"
lower = 0.1
upper = 0.7
[columns.smoker]
type = "boolean"
[columns."region.é"]
type = "category"
categories = ["north", "south", "NA", "a\\nb"]
[columns.born]
type = "ignore"
"""
N = 240
RNG = np.random.default_rng(0)
AGE = RNG.integers(-10, 130, N)
MASS = RNG.normal(0.4, 0.3, N)
SMOKER = RNG.random(N) < 0.4
REGION = RNG.choice(["north", "south", "moon", "NA", "a\nb"], N)
ILL = RNG.choice(["yes", "no", "perhaps"], N)
TABLE = pa.table(
    {
        "born": pa.array(np.arange(N).astype("datetime64[D]")),
        "age": AGE,
        "ill": ILL,
        "body mass": MASS,
        "smoker": SMOKER,
        "region.é": REGION,
    }
)


def bounds(text=BOUNDS):
    return TableBounds.from_toml(text)


def expected_features():
    """By other means: the scaler for numbers, comparisons for the rest."""
    numbers = np.column_stack((AGE, MASS)).astype(float)
    scaled = BoundedScaler(lower=[0, 0.1], upper=[110, 0.7]).fit_transform(numbers)
    listed = [(category == REGION).astype(float) for category in ("north", "south", "NA", "a\nb")]
    return np.column_stack((scaled, SMOKER, *listed))


def write(folder, name):
    path = folder / name
    if ".parquet" in name or ".pq" in name:
        parquet.write_table(TABLE, path, row_group_size=70)
    elif name.endswith(".ipc"):
        with pa.ipc.new_stream(path, TABLE.schema) as writer:
            writer.write_table(TABLE, max_chunksize=50)
    elif name.endswith((".feather", ".arrow")):
        feather.write_feather(TABLE, str(path), compression="lz4" if name.endswith("r") else "uncompressed")
    else:
        options = csv.WriteOptions(delimiter="\t" if ".tsv" in name else ",")
        text = pa.BufferOutputStream()
        csv.write_csv(TABLE, text, options)
        content = text.getvalue().to_pybytes()
        if "strange" in name:
            # A byte order mark, other line ends outside of cells, and blank lines.
            lines = content.replace(b'"a\nb"', b'"a\0b"').replace(b"\n", b"\r\n\r\n")
            content = b"\xef\xbb\xbf" + lines.replace(b"\0", b"\n")
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


FILES = [
    "a.csv", "a.tsv", "a.csv.gz", "A.TSV.GZ", "strange.csv", "a.parquet", "a.b.pq", "a.feather", "a.arrow", "a.ipc",
]  # fmt: skip


# ------------------------------------------------------------------ reading


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_table(tmp_path, monkeypatch, name):
    path = write(tmp_path, name) if name != "A.TSV.GZ" else write(tmp_path, "a.tsv.gz").rename(tmp_path / name)
    schema = read_schema(path)
    assert schema.names == tuple(TABLE.column_names)
    assert schema.kinds == ("date", "number", "category", "number", "boolean", "category")
    X, y = read_table(path, bounds(), "ill")
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert np.array_equal(X, expected_features())
    assert y[ILL != "perhaps"].tolist() == ILL[ILL != "perhaps"].tolist()
    assert set(y[ILL == "perhaps"]).isdisjoint({"yes", "no", "perhaps"})
    # In blocks of a few rows.
    monkeypatch.setattr(arrow_tables, "_LEAST_BLOCK", 2000)
    monkeypatch.setattr(arrow_tables, "_CELLS", 60)
    encoder = TableEncoder(bounds=bounds()).fit(schema)
    blocks = list(read_batches(path, encoder))
    assert len(blocks) > 2
    assert np.array_equal(np.vstack(blocks), X)
    pairs = list(read_batches(path, encoder, "ill"))
    assert np.array_equal(np.vstack([rows for rows, _ in pairs]), X)
    assert np.array_equal(np.concatenate([labels for _, labels in pairs]), y)


@pytest.mark.parametrize(
    "table",
    [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), TABLE.combine_chunks().to_batches()[0], TABLE.to_pandas()[::-1]],
    ids=["arrow", "pandas", "polars", "batch", "reversed"],
)
def test_tables_in_memory_are_encoded_as_those_on_disk(table):
    encoder = TableEncoder(bounds=bounds()).fit(table)
    step = -1 if isinstance(table, pd.DataFrame) and table.index[0] else 1
    assert np.array_equal(encoder.transform(table), expected_features()[::step])
    assert encoder.get_feature_names_out().tolist() == [
        "age", "body mass", "smoker", "region.é=north", "region.é=south", "region.é=NA", "region.é=a\nb",
    ]  # fmt: skip
    assert encoder.feature_names_in_.tolist() == ["age", "body mass", "smoker", "region.é"]


def test_the_order_of_the_columns_is_that_of_the_fit():
    encoder = TableEncoder(bounds=bounds()).fit(TABLE)
    other = TABLE.select(TABLE.column_names[::-1]).append_column("more", pa.array(["x"] * N))
    assert np.array_equal(encoder.transform(other), expected_features())


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    ends=st.lists(st.lists(FINITE, min_size=2, max_size=2, unique=True).map(sorted), min_size=1, max_size=4),
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=12),
)
def test_the_map_to_the_unit_range_is_the_masked_one_bit_for_bit(ends, values):
    lower, upper = np.array(ends).T
    X = np.concatenate((np.repeat(np.array(values)[:, None], lower.size, axis=1), lower[None], upper[None]))
    centre = lower / 2.0 + upper / 2.0
    half = np.maximum(upper - centre, centre - lower)
    expected = (np.clip(X, lower, upper) - centre) / half
    expected[lower >= X] = -1.0
    expected[upper <= X] = 1.0
    assert np.array_equal(to_unit_range(X, lower, upper), expected)
    to_unit_range(X, lower, upper, out=X)
    assert np.array_equal(X, expected)


def test_values_beyond_are_clipped_and_unlisted_ones_are_zeros_without_a_word(recwarn):
    table = pa.table({"x": [np.inf, -np.inf, 1e300, 0.0], "c": ["SECRET", "", "a", "a"]})
    stated = TableBounds(Target("y"), {"x": Column("number", -1, 3), "c": Column("category", categories=("a", "b"))})
    encoded = TableEncoder(bounds=stated).fit_transform(table)
    assert encoded.tolist() == [[1, 0, 0], [-1, 0, 0], [1, 1, 0], [-0.5, 1, 0]]
    assert not recwarn


def test_one_record_is_encoded_by_itself_and_fit_looks_at_no_value():
    encoder = TableEncoder(bounds=bounds()).fit(TABLE)
    whole = encoder.transform(TABLE)
    changed = pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(100, 1), TABLE.slice(8)])
    after = encoder.transform(changed)
    assert np.array_equal(np.delete(after, 7, axis=0), np.delete(whole, 7, axis=0))
    assert np.array_equal(after[7], whole[100])
    # The same for a table of other values, and for none.
    for other in (changed, TABLE.slice(0, 0), read_schema_of(TABLE)):
        fitted = TableEncoder(bounds=bounds()).fit(other)
        assert pickle.dumps(vars(fitted)) == pickle.dumps(vars(encoder))


def read_schema_of(table):
    kinds = ("date", "number", "category", "number", "boolean", "category")
    return TableSchema(tuple(table.column_names), kinds)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array(["2", None, "3"]), None),
        (pa.array([2, None, 3]), None),
        (pa.array([2.0, np.nan, 3.0]), None),
        (pa.array(["2", None, "3"]).dictionary_encode(), None),
        (pa.array(["2", None, "3"], pa.string_view()), None),
        (pa.array([True, None, False]), ("true", "false")),
    ],
    ids=["text", "integers", "doubles", "dictionary", "view", "truth"],
)
def test_categories_are_compared_as_text_and_gaps_filled(values, texts):
    first, second = texts or ("2", "3")
    column = Column("category", categories=(second, first))
    stated = TableBounds(Target("y"), {"c": column}, missing={"c": second})
    encoded = TableEncoder(bounds=stated).fit_transform(pa.table({"c": values}))
    assert encoded.tolist() == [[0, 1], [1, 0], [1, 0]]
    without = TableEncoder(bounds=TableBounds(Target("y"), {"c": column}))
    with pytest.raises(
        DataError, match=r'^column "c": expected a value in every row, got missing ones; say in \[missi'
    ):
        without.fit_transform(pa.table({"c": values}))


@pytest.mark.parametrize(
    "values",
    [[1, None, 0], [1.0, np.nan, 0.0], [True, None, False], ["true", None, "false"], ["1", None, "0"]],
    ids=str,
)
def test_truth_values_of_every_kind(values):
    stated = TableBounds(Target("y"), {"b": Column("boolean")}, missing={"b": True})
    assert TableEncoder(bounds=stated).fit_transform(pa.table({"b": values})).tolist() == [[1], [1], [0]]
    frame = pd.DataFrame({"b": values})
    assert TableEncoder(bounds=stated).fit_transform(frame).tolist() == [[1], [1], [0]]


def test_missing_cells_of_text_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('y,x,c,b\n1,,NA,\n2,NA,"",true\n3,nan,NULL,NaN\n4,7,north,0\n')
    stated = TableBounds(
        Target("y", 0, 10),
        {"x": Column("number", 0, 10), "c": Column("category", categories=("NA", "north")), "b": Column("boolean")},
        missing={"x": 2.5, "c": "north", "b": True},
    )
    X, y = read_table(path, stated, "y")
    # The category that is called NA is not a gap, the word in a column of numbers is.
    assert X.tolist() == [[-0.5, 1, 0, 1], [-0.5, 0, 1, 1], [-0.5, 0, 1, 1], [0.4, 0, 1, 0]]
    assert y.tolist() == [1, 2, 3, 4]
    assert read_numbers(path, ["y"]).tolist() == [[1], [2], [3], [4]]
    with pytest.raises(DataError, match='^column "x": expected a value in every row'):
        read_numbers(path, ["y", "x"])


# ------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("classes", "cells", "codes"),
    [
        (["a", "b"], ["b", "a", "", "c", "NA", "b"], [1, 0, -1, -1, -1, 1]),
        (["NA", ""], ["", "NA", "x", "", "NA", "y"], [1, 0, -1, 1, 0, -1]),
        ([1, 0], ["1", "0", "1.0", "2", "x", ""], [0, 1, 0, -1, -1, -1]),
        ([-1, -2], ["-1", "-2", "-3", "nan", "inf", "1e400"], [0, 1, -1, -1, -1, -1]),
        ([False, True], ["true", "0", "False", "1", "yes", ""], [1, 0, 0, 1, -1, -1]),
        (["1", "2"], ["1", "2", "3", "1.0", "", "01"], [0, 1, -1, -1, -1, -1]),
    ],
    ids=str,
)
def test_labels_outside_the_list_become_null_records(tmp_path, classes, cells, codes):
    path = tmp_path / "t.csv"
    path.write_text("y,x\n" + "".join(f'"{cell}",0.5\n' for cell in cells))
    stated = TableBounds(Target("y", classes=tuple(classes)), {"x": Column("number", -1, 1)})
    _, y = read_table(path, stated, "y")
    assert label_codes(y, np.array(classes)).tolist() == codes
    # What an estimator does with them: nothing.
    model = FrankWolfeClassifier(classes=classes, random_state=0).fit(np.ones((6, 1)), y)
    assert model.certificate_.public["records"] == 6
    # The same labels with types of their own.
    known = np.array(codes) >= 0
    frame = pd.DataFrame({"y": pd.Series([classes[code] for code in np.array(codes)[known]]), "x": 0.0})
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    _, y = read_table(tmp_path / "t.parquet", stated, stated.target.name)
    assert label_codes(y, np.array(classes)).tolist() == np.array(codes)[known].tolist()


def test_a_missing_label_is_filled_where_the_owner_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,x\n,0.5\n1,0.5\n")
    stated = TableBounds(Target("y", classes=(0, 1)), {"x": Column("number", -1, 1)}, missing={"y": 0})
    assert read_table(path, stated, "y")[1].tolist() == [0, 1]


def test_a_target_of_numbers_has_no_gaps_and_no_infinity(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y,x\n,0.5\n-inf,0\n99,0\n")
    stated = TableBounds(Target("y", -5, 5), {"x": Column("number", -1, 1)})
    with pytest.raises(DataError, match='^column "y": expected a value in every row'):
        read_table(path, stated, stated.target.name)
    filled = TableBounds(stated.target, stated.columns, missing={"y": 1})
    # Finite numbers stay as they are: estimators clip, and a public score wants the truth.
    assert read_table(path, filled, filled.target.name)[1].tolist() == [1, -5, 99]


def test_labels_that_nobody_stated_come_from_the_table(tmp_path):
    stated = TableBounds(Target("y"), {"x": Column("number", -1, 1)})
    for cells, labels in ((["b", "a"], ["b", "a"]), ([2, 1], [2, 1]), (["true", "false"], [True, False])):
        path = tmp_path / "t.csv"
        path.write_text("y,x\n" + "".join(f"{cell},0\n" for cell in cells))
        y = read_table(path, stated, stated.target.name)[1]
        assert y.tolist() == labels
        assert y.dtype == np.array(labels).dtype
    path.write_text("y,x\na,0\n,0\n")
    with pytest.raises(DataError, match='^column "y": expected a label in every row, got missing ones'):
        read_table(path, stated, stated.target.name)


def test_the_target_must_be_the_one_of_the_bounds(tmp_path):
    path = write(tmp_path, "a.csv")
    with pytest.raises(ParameterError, match="^target='age': expected the column that .* describes, 'ill'"):
        read_table(path, bounds(), "age")
    encoder = TableEncoder(bounds=bounds()).fit(TABLE)
    with pytest.raises(ParameterError, match="^target='age'"):
        next(read_batches(path, encoder, "age"))
    csv.write_csv(TABLE.drop_columns("ill"), path)
    with pytest.raises(DataError, match='^table: expected a column "ill", got a table without it'):
        read_table(path, bounds(), "ill")
    assert np.array_equal(np.vstack(list(read_batches(path, encoder))), expected_features())


# ------------------------------------------------------------------ libsvm


@pytest.mark.parametrize("name", ["t.libsvm", "t.svm", "t.libsvm.gz"])
def test_sparse_tables(tmp_path, monkeypatch, name):
    monkeypatch.setattr(libsvm, "_BLOCK", 200)
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((60, 9)) < 0.3, rng.normal(0, 2, (60, 9)), 0.0)
    dense[:, 2] = dense[:, 2] != 0.0
    dense[:, 8] = 0.0
    labels = rng.choice([-1, 1, 5], 60)
    lines = [
        " ".join([str(label), *(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value)])
        for label, row in zip(labels, dense, strict=True)
    ]
    text = "\n".join(["# a comment", *lines]).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    schema = read_schema(path)
    assert schema.names == ("label", *map(str, range(1, 9)))
    assert schema.sparse
    stated = bounds("""
    target = {name = "label", classes = [-1, 1]}
    columns = {3 = {type = "boolean"}, 5 = {type = "ignore"}, 6 = {type = "number", lower = -3, upper = 3}}
    defaults = {lower = -1, upper = 1}
    """)
    X, y = read_table(path, stated, "label")
    assert X.format == "csr"
    used = [0, 1, 2, 3, 5, 6, 7]
    scaler = BoundedScaler(lower=[-1, -1, -1, -1, -3, -1, -1], upper=[1, 1, 1, 1, 3, 1, 1])
    assert np.array_equal(X.toarray(), scaler.fit_transform(dense[:, used]))
    assert label_codes(y, np.array([-1, 1])).tolist() == [{-1: 0, 1: 1, 5: -1}[label] for label in labels]
    encoder = TableEncoder(bounds=stated).fit(schema)
    pairs = list(read_batches(path, encoder, "label"))
    assert len(pairs) > 2
    assert np.array_equal(np.vstack([rows.toarray() for rows, _ in pairs]), X.toarray())
    # A file whose last columns are empty, or that has more of them, suits the same model.
    path = tmp_path / "other.svm"
    path.write_text("nan 1:1 3:1\nnan 77:5 8:0.5\n".replace("77:5 8:0.5", "8:0.5 77:5"))
    (rows,) = read_batches(path, encoder)
    assert rows.toarray().tolist() == [[1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0.5]]


def test_sparse_tables_that_cannot_be_used(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:0.5 2:nan\n2 0:1\n")
    assert read_schema(path).names == ("label", "0", "1", "2")
    filled = bounds(
        'target = {name = "label", lower = 0, upper = 9}\ndefaults = {lower = -1, upper = 1}\n[missing]\n2 = 1'
    )
    assert read_table(path, filled, filled.target.name)[0].toarray().tolist() == [[0, 0.5, 1], [1, 0, 0]]
    for text, message in (
        (
            '[columns]\n2 = {type = "number", lower = 0, upper = 1}',
            r'^columns."2"=\(0.0, 1.0\): expected numbers with lowe',
        ),
        ('[columns]\n2 = {type = "category", categories = ["1"]}', "^columns.\"2\"='category': expected numbers with"),
        ('[columns]\n1 = {type = "boolean"}', '^column "1": expected true and false, or 1 and 0'),
        ("", '^column "2": expected a value in every row'),
    ):
        stated = bounds('target = {name = "label", lower = 0, upper = 9}\ndefaults = {lower = -1, upper = 1}\n' + text)
        if "boolean" in text:
            stated = TableBounds(stated.target, stated.columns, stated.defaults, {"2": 0})
        with pytest.raises((DataError, ParameterError), match=message):
            read_table(path, stated, stated.target.name)
    with pytest.raises(DataError, match='^table: expected a column "y", .* a libsvm file is called "label"'):
        read_table(path, TableBounds(Target("y", 0, 9), defaults=Column("number", -1, 1)), "y")


# ------------------------------------------------------------------ memory


@pytest.fixture
def two_threads():
    """How far Arrow reads ahead depends on their number."""
    before = pa.cpu_count()
    pa.set_cpu_count(2)
    yield
    pa.set_cpu_count(before)


@pytest.mark.usefixtures("two_threads")
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_tables, "_LEAST_BLOCK", 1 << 14)
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
    # The same measure finds a table that is held as a whole, and sees it given up with the batches.
    wanted = arrow_tables.Wanted({"x": "number"})
    _, batches = arrow_tables.whole_batches(arrow_tables.TableFile(path, "csv", ",", False), schema, wanted)
    held = [next(batches) for _ in range(400)]
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
    assert encoder.get_params() == {"bounds": bounds()}
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
    assert certificate_of(pipeline) == pipeline[-1].certificate_
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
        (TABLE.to_pandas().assign(age="98765.4321"), '^column "age": expected numbers, got text'),
        (TABLE.to_pandas().assign(age=[1, "SECRET"] * (N // 2)), '^column "age": expected values of one type'),
        (TABLE.to_pandas().assign(age=pd.Timestamp(0)), '^column "age": expected numbers, got dates; derive a number'),
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


def test_importing_the_room_is_cheap():
    heavy = ("pyarrow", "sklearn", "scipy", "numpy", "numba")
    code = f"import sys, taciturn.tables; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    for name in taciturn.tables.__all__:
        assert getattr(taciturn.tables, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        _ = taciturn.tables.magic


# ------------------------------------------------------------------ bounds


def test_bounds_come_back_from_json():
    text = BOUNDS + '[defaults]\nlower = -0.1\nupper = 1e300\n[missing]\nage = 50\nsmoker = true\nill = "no"\n'
    stated = bounds(text)
    assert TableBounds.from_json(stated.to_json()) == stated
    resolved = stated.for_table(read_schema_of(TABLE))
    assert resolved.order == ("age", "body mass", "smoker", "region.é")
    assert TableBounds.from_json(resolved.to_json()) == resolved
    assert resolved.for_table(read_schema_of(TABLE)) is resolved
    found = TableBounds(stated.target, stated.columns, found_privately=("age",))
    assert TableBounds.from_json(found.to_json()).found_privately == ("age",)
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(TypeError):
        stated.columns["age"] = Column("ignore")


HEAD = '[target]\nname = "y"\nlower = 0\nupper = 1\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "^target=None: expected a section with keys and values; "),
        ("[target]\nname = 3", "^target.name=3: expected the name of the column to predict"),
        ("[target]\nlower = 3", "^target.name=None: expected the name"),
        ('[target]\nname = "y"\nlower = 3', "^target.upper=None: expected a finite number"),
        ('[target]\nname = "y"\nlower = 3\nupper = 3', "^target.lower=3: expected a number below target.upper=3.0"),
        ('[target]\nname = "y"\nlower = 3\nupper = inf', "^target.upper=inf: expected a finite number"),
        ('[target]\nname = "y"\nclasses = "ab"', "^target.classes='ab': expected a list"),
        ('[target]\nname = "y"\nclasses = [1]', r"^target.classes=\[1\]: expected at least two different labels"),
        ('[target]\nname = "y"\nclasses = [1, 1]', r"^target.classes=\[1, 1\]: expected at least two"),
        ('[target]\nname = "y"\nclasses = [1, "a"]', "^target.classes=.*: expected at least two different labels, all"),
        (
            '[target]\nname = "y"\nclasses = [1, true]',
            "^target.classes=.*: expected at least two different labels, all",
        ),
        (
            '[target]\nname = "y"\nclasses = [1.5, 2.5]',
            "^target.classes=.*: expected at least two different labels, al",
        ),
        (
            '[target]\nname = "y"\nclasses = [[1], [2]]',
            "^target.classes=.*: expected at least two different labels, al",
        ),
        ('[target]\nname = "y"\nclasses = [1, 0xffffffffffffffff]', "^target.classes=.*: expected labels below"),
        (HEAD + "classes = [0, 1]", r"^target.classes=\[0, 1\]: expected no classes beside lower and upper"),
        (HEAD + "step = 1", "^target='step': expected no key but name, lower, upper, classes"),
        (HEAD + "[colums]", "^bounds='colums': expected no key but target, columns, defaults, missing"),
        (HEAD + "[order]", "^bounds='order': expected no key but"),
        ("columns = 3\n" + HEAD, "^columns=3: expected a section with keys and values"),
        (HEAD + "[columns]\nx = 3", '^columns."x"=3: expected a section with keys and values'),
        (HEAD + "[columns.x]\nlower = 0", '^columns."x".type=None: expected one of "number", "boolean", "category"'),
        (HEAD + '[columns.x]\ntype = "nubmer"', "^columns.\"x\".type='nubmer': expected one of"),
        (HEAD + '[columns.x.z]\ntype = "number"', '^columns."x".type=None: .* put names with dots in quotes'),
        (HEAD + '[columns.x]\ntype = "number"\nupper = 1', '^columns."x".lower=None: expected a finite number'),
        (HEAD + '[columns.x]\ntype = "number"\nlower = 2\nupper = 1', '^columns."x".lower=2: expected a number below'),
        (HEAD + '[columns.x]\ntype = "number"\nlower = nan\nupper = 1', '^columns."x".lower=nan: expected a finite'),
        (HEAD + '[columns.x]\ntype = "number"\nlower = true\nupper = 1', '^columns."x".lower=True: expected a finite'),
        (HEAD + '[columns.x]\ntype = "number"\nlower = "0"\nupper = 1', "^columns.\"x\".lower='0': .* without quotes"),
        (HEAD + '[columns.x]\ntype = "number"\nlower = 1990-01-01\nupper = 1', '^columns."x".lower=datetime.date'),
        (HEAD + f'[columns.x]\ntype = "number"\nlower = 0\nupper = 0x{"f" * 5000}', '^columns."x".upper=.a very long'),
        (
            HEAD + '[columns.x]\ntype = "number"\nlower = 0\nuper = 1',
            "^columns.\"x\"='uper': expected no key but type, l",
        ),
        (HEAD + '[columns.x]\ntype = "boolean"\nlower = 0', "^columns.\"x\"='lower': expected no key but type;"),
        (HEAD + '[columns.x]\ntype = "category"', r'^columns."x".categories=\[\]: expected at least one category'),
        (HEAD + '[columns.x]\ntype = "category"\ncategories = []', r'^columns."x".categories=\[\]: expected at least'),
        (HEAD + '[columns.x]\ntype = "category"\ncategories = "a"', "^columns.\"x\".categories='a': expected a list"),
        (HEAD + '[columns.x]\ntype = "category"\ncategories = [1]', '^columns."x".categories=1: expected text'),
        (
            HEAD + '[columns.x]\ntype = "category"\ncategories = ["a", "a"]',
            "^columns.\"x\".categories='a': expected ever",
        ),
        (HEAD + '[columns.y]\ntype = "boolean"', "^target.name='y': expected a column without a section"),
        (HEAD + "[defaults]\nlower = 0", "^defaults.upper=None: expected a finite number"),
        (HEAD + "[defaults]\nlower = 0\nupper = 1\nstep = 1", "^defaults='step': expected no key but lower, upper"),
        (HEAD + "[missing]\nx = 1", '^missing."x"=1: expected a column that enters the model'),
        (HEAD + "[missing]\ny = 2", '^missing."y"=2: expected a number within the bounds, from 0.0 to 1.0'),
        (HEAD + "[defaults]\nlower = 0\nupper = 1\n[missing]\nx = 2", '^missing."x"=2: expected a number within'),
        (HEAD + "[defaults]\nlower = 0\nupper = 1\n[missing]\nx = []", r'^missing."x"=\[\]: expected a finite number'),
        (HEAD + '[columns.x]\ntype = "boolean"\n[missing]\nx = 1', '^missing."x"=1: expected true or false'),
        (HEAD + '[columns.x]\ntype = "ignore"\n[missing]\nx = 1', '^missing."x"=1: expected a column that enters'),
        (
            HEAD + '[columns.x]\ntype = "category"\ncategories = ["a"]\n[missing]\nx = "b"',
            "^missing.\"x\"='b': expected one of the categories of the column",
        ),
        (
            '[target]\nname = "y"\nclasses = [0, 1]\n[missing]\ny = true',
            '^missing."y"=True: expected one of the classes',
        ),
        ('[target]\nname = "y"\n[missing]\ny = 1', '^missing."y"=1: expected one of the classes'),
        (HEAD + "[columns.age\n", r"^bounds='\[columns.age': expected TOML, found a mistake in line 5"),
        (HEAD + "lower = 0\n", "^bounds='lower = 0': expected TOML, found a mistake in line 5"),
        (HEAD + "[columns.x]\nlower = # what?\n", "^columns.x.lower='': expected a value, got a blank in line 6"),
        (HEAD + f"x = {'[' * 5000}", "^bounds=.*: expected TOML"),
        (HEAD + f"x = {'9' * 5000}", "^bounds=.*: expected TOML"),
        ("\x00", "^bounds=.*: expected TOML, found a mistake in line 1"),
    ],
)
def test_mistakes_in_bounds_are_one_sentence_with_the_place(text, message):
    with pytest.raises(ParameterError, match=message) as caught:
        bounds(text)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "; " in sentence
    assert len(sentence) < 400


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": {"agee": Column("boolean")}}, "^columns='agee': expected the name of a column of the table"),
        ({"missing": {"agee": 1}, "defaults": Column("number", 0, 1)}, "^missing='agee': expected the name"),
        ({}, '^columns=.*: expected a section for every column of the table, such as "born"; add one, with type'),
        ({"defaults": Column("number", 0, 1)}, '^columns=.* that is not plainly one of numbers, such as "born"'),
        (
            {"columns": {name: Column("ignore") for name in TABLE.column_names if name != "ill"}},
            "^columns=.*: expected at least one column that enters the model",
        ),
        ({"columns": {"x" * 100: Column("boolean")}}, r"^columns='x{57}\.\.\.': "),
    ],
    ids=str,
)
def test_bounds_that_do_not_fit_the_table(changes, message):
    stated = TableBounds(**({"target": Target("ill")} | changes))
    with pytest.raises(ParameterError, match=message):
        stated.for_table(read_schema_of(TABLE))


def test_two_features_of_one_name_are_refused():
    stated = TableBounds(
        Target("y"), {"a": Column("category", categories=("b",)), "a=b": Column("number", 0, 1), "c": Column("boolean")}
    )
    with pytest.raises(ParameterError, match="^columns='a=b': expected features with different names"):
        stated.for_table(TableSchema(("a", "a=b", "c", "y"), ("category", "number", "boolean", "number")))


def test_one_column_only_is_a_hint_at_the_delimiter(tmp_path):
    encoder = TableEncoder(bounds=bounds()).fit(TABLE)
    with pytest.raises(DataError, match="and check the delimiter, as there is one column only"):
        encoder.transform(pa.table({"age body": [1]}))
    path = tmp_path / "t.csv"
    path.write_text("age;ill\n98765.4321;SECRET\n")
    with pytest.raises(DataError, match='^"t.csv": expected columns separated by commas, as it is named .csv, got one'):
        read_schema(path)


# ------------------------------------------------------------------ the template


def filled(template):
    """As an owner would fill it in."""
    text = re.sub(r"^lower =$", "lower = -1", template, flags=re.MULTILINE)
    text = re.sub(r"^upper =$", "upper = 1", text, flags=re.MULTILINE)
    return re.sub(r"^(categories|classes) =$", r'\1 = ["a", "b"]', text, flags=re.MULTILINE)


KINDS = ("number", "boolean", "category", "date", "unknown")


@settings(derandomize=True, deadline=None, max_examples=15)
@given(
    names=st.lists(st.text(max_size=12), min_size=2, max_size=8, unique=True),
    kinds=st.lists(st.sampled_from(KINDS), min_size=8, max_size=8),
)
def test_a_template_parses_once_it_is_filled_in(names, kinds):
    schema = TableSchema(("first", *(f"c{name}" for name in names)), ("boolean", *kinds[: len(names)]))
    template = bounds_template(schema, schema.names[1])
    stated = bounds(filled(template)).for_table(schema)
    assert stated.target.name == schema.names[1]
    types = {"date": "ignore", "unknown": "ignore"}
    assert {name: column.type for name, column in stated.columns.items()} == {
        name: types.get(kind, kind)
        for name, kind in zip(schema.names, schema.kinds, strict=True)
        if name != schema.names[1]
    }
    if "=\n" in template:
        with pytest.raises(ParameterError, match=": expected a value, got a blank in line ") as caught:
            bounds(template)
        first = next(i for i, line in enumerate(template.split("\n"), start=1) if line.endswith("="))
        assert f"in line {first};" in str(caught.value)


def test_a_template_of_a_wide_or_sparse_table_has_defaults():
    names = ("y", *(f"x{i}" for i in range(500)), "region")
    schema = TableSchema(names, ("number", *["number"] * 500, "category"))
    text = filled(bounds_template(schema, "y"))
    assert tomllib.loads(text)["defaults"] == {"lower": -1, "upper": 1}
    assert list(tomllib.loads(text)["columns"]) == ["region"]
    assert len(bounds(text).for_table(schema).feature_names) == 502
    narrow = TableSchema(names[:501], ("number",) * 501 if len(names[:501]) == 501 else ())
    assert "[defaults]" in bounds_template(narrow, "y")
    assert "[defaults]" not in bounds_template(TableSchema(names[:500], ("number",) * 500), "y")
    sparse = TableSchema(("label", "1", "2"), ("number",) * 3, sparse=True)
    assert "[defaults]" in bounds_template(sparse, "label")
    assert "columns" not in bounds(filled(bounds_template(sparse, "label"))).columns


def test_a_template_holds_no_value_of_the_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,what,much,ok,who\n2011-11-11,SECRET-7f3a,98765.4321,true,SECRET\n")
    template = bounds_template(read_schema(path), "who")
    for cell in ("2011", "SECRET", "98765", "7f3a"):
        assert cell not in template
    assert template.index("[target]") < template.index("[columns")
    assert "days since a public day" in template
    with pytest.raises(ParameterError, match="^target='whom': expected the name of a column of the table"):
        bounds_template(read_schema(path), "whom")
