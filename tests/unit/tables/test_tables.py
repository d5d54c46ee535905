"""Reading tables of every format: values, targets, libsvm."""

import gzip
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet
from tables_on_disk import FILES, ILL, TABLE, N, bounds, expected_features, read_schema_of, write

from taciturn import BoundedScaler, FrankWolfeClassifier
from taciturn.core.errors import DataError, ParameterError
from taciturn.data.design import to_unit_range
from taciturn.data.target import label_codes
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    TableSchema,
    Target,
    formats,
    read_batches,
    read_schema,
    read_table,
    read_unbounded_table,
)

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
    monkeypatch.setattr(formats, "_LEAST_BLOCK", 2000)
    monkeypatch.setattr(formats, "_CELLS", 60)
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
    schema = read_schema(path)
    same_X, same_y, numbers = read_unbounded_table(path, stated.for_table(schema), ["y"], schema)
    assert (same_X.tolist(), same_y.tolist(), numbers.tolist()) == (X.tolist(), y.tolist(), [[1], [2], [3], [4]])
    # What is filled in counts where bounds are to be found, too.
    numbers = read_unbounded_table(path, stated.for_table(schema), ["y", "x"], schema)[2]
    assert numbers.tolist() == [[1, 2.5], [2, 2.5], [3, 2.5], [4, 7]]
    path.write_text("y,x,c,b\n1,inf,NA,true\n")
    with pytest.raises(DataError, match='^column "x": expected a finite number in every row'):
        read_unbounded_table(path, stated.for_table(schema), ["y", "x"], schema)


def test_a_cell_that_is_no_number_changes_no_other_cell(tmp_path):
    """With "null" cells are parsed one by one, to the same bits whether or not another cell can be parsed."""
    rng = np.random.default_rng(0)
    texts = [repr(float(number)) for number in rng.standard_normal(500) * 10.0 ** rng.integers(-300, 300, 500)]
    texts += ["1e400", "-1E5", ".5", "5.", "-0", "Infinity", "1e-400"]
    stated = TableBounds(Target("y", 0, 1), {"x": Column("number", -1e300, 1e300)})
    found = []
    for more in ("1", "forty"):
        path = tmp_path / f"{more}.csv"
        path.write_text("\n".join(["x,y", *(f"{text},1" for text in texts), f"{more},1"]) + "\n")
        schema = TableSchema(("x", "y"), ("number", "number"))
        bounds = stated.for_table(schema)
        numbers = read_unbounded_table(path, bounds, ["x"], schema, invalid="null")[2]
        found.append(numbers[:-1, 0])
    assert found[0].tobytes() == found[1].tobytes() == np.array(texts, dtype=np.float64).tobytes()
    assert np.isnan(numbers[-1, 0])
    with pytest.raises(DataError, match='^"forty.csv": expected numbers in column "x"'):
        read_table(path, bounds, "y", schema=schema)


# ------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("classes", "cells", "codes"),
    [
        (["a", "b"], ["b", "a", "", "c", "NA", "b"], [1, 0, -1, -1, -1, 1]),
        (["NA", ""], ["", "NA", "x", "", "NA", "y"], [1, 0, -1, 1, 0, -1]),
        ([1, 0], ["1", "0", "1.0", "2", "x", ""], [0, 1, 0, -1, -1, -1]),
        ([-1, -2], ["-1", "-2", "-3", "nan", "inf", "1e400"], [0, 1, -1, -1, -1, -1]),
        ([False, True], ["true", "0", "False", "1", "maybe", ""], [1, 0, 0, 1, -1, -1]),
        ([False, True], ["Yes", "nein", "JA", "no", "perhaps", ""], [1, 0, 1, 0, -1, -1]),
        (["1", "2"], ["1", "2", "3", "1.0", "", "01"], [0, 1, -1, 0, -1, -1]),
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
    monkeypatch.setattr(formats, "_BLOCK", 200)
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
