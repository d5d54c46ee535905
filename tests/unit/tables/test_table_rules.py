"""Rules for cells: dates, limits, codes, yes and no, and what stands for missing cells."""

import gzip
import json
import re
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from taciturn.core.errors import DataError, ParameterError, SeveralProblemsError
from taciturn.tables import (
    Column,
    Fill,
    TableBounds,
    TableEncoder,
    TableLayout,
    TableSchema,
    Target,
    formats,
    open_partitions,
    read_batches,
    read_schema,
    read_table,
    read_unbounded_table,
)

RULES = """
[table]
delimiter = ";"
decimal = ","
[target]
name = "ill"
classes = [false, true]
[columns.admitted]
type = "date"
since = 2000-01-01
lower = 2019-12-31
upper = 2020-12-31
format = "%d.%m.%Y"
[columns.seen]
type = "date"
parts = ["year", "month"]
lower = 2000
upper = 2040
[columns.crp]
type = "number"
censored = true
lower = 0
upper = 20
[columns.weight]
type = "number"
lower = 0
upper = 100
[columns.smoker]
type = "boolean"
[columns.icd]
type = "category"
categories = ["E11.9", "E11.1", "I10", "J44.0"]
group = 3
"""
TEXT = """\
admitted;seen;crp;weight;smoker;icd;ill
31.12.2020;2020-01-15;<5;62,5;ja;E11.4;Yes
1.7.2020;2040-12-31 23:59;> 12,5;50;NEIN;I10;no
31.12.2019;1999-03-01;7;0,0;y;Z00.1;JA
"""
DAYS = (date(2020, 12, 31) - date(2019, 12, 31)).days


def expected():
    """By hand, from the meaning of the rules."""
    middle = (date(2020, 7, 1) - date(2019, 12, 31)).days
    X = np.zeros((3, 1 + 13 + 1 + 1 + 1 + 3))
    X[:, 0] = [1.0, 2.0 * middle / DAYS - 1.0, -1.0]
    X[:, 1] = [0.0, 1.0, -1.0]
    X[[0, 1, 2], [2 + 0, 2 + 11, 2 + 2]] = 1.0
    X[:, 14] = np.array([5.0, 12.5, 7.0]) / 10.0 - 1.0
    X[:, 15] = np.array([62.5, 50.0, 0.0]) / 50.0 - 1.0
    X[:, 16] = [1.0, 0.0, 1.0]
    X[0, 17] = X[1, 18] = 1.0
    return X


NAMES = ["admitted", "seen year", *(f"seen month={month}" for month in range(1, 13)), "crp", "weight", "smoker",
         "icd=E11", "icd=I10", "icd=J44"]  # fmt: skip


def stated(text=RULES, **changes):
    bounds = TableBounds.from_toml(text)
    return TableBounds(**({name: getattr(bounds, name) for name in bounds.__slots__} | changes)) if changes else bounds


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_every_rule_is_read_from_text(table):
    for invalid in ("raise", "null"):
        X, y = read_table(table, stated(), "ill", invalid=invalid)
        assert np.allclose(X, expected(), rtol=0.0, atol=1e-15)
        assert y.tolist() == [1, 0, 1]
    bounds = stated().for_table(read_schema(table, stated().layout))
    assert bounds.feature_names == NAMES
    # The same after a journey through model.json, in blocks.
    again = TableBounds.from_json(bounds.to_json())
    assert again == bounds
    encoder = TableEncoder(bounds=again).fit(TableSchema(bounds.order, ("unknown",) * len(bounds.order)))
    (block,) = read_batches(table, encoder)
    assert np.array_equal(block, X)
    # One unit of a feature: half a year of days, half of forty years, no and yes.
    units = dict(zip(NAMES, bounds.feature_units, strict=True))
    assert (units["admitted"], units["seen year"], units["seen month=2"], units["crp"]) == (DAYS / 2, 20.0, 1.0, 10.0)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "typed"])
def test_tables_in_memory_follow_the_same_rules(table, kind):
    rows = [line.split(";") for line in TEXT.splitlines()]
    columns = {name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}
    if kind == "typed":
        columns["admitted"] = [date(2020, 12, 31), date(2020, 7, 1), date(2019, 12, 31)]
        columns["seen"] = [datetime(2020, 1, 15), datetime(2040, 12, 31, 23, 59), datetime(1999, 3, 1)]
        columns |= {"weight": [62.5, 50.0, 0.0], "smoker": [True, False, True]}
    made = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind, pa.table)(columns)
    encoder = TableEncoder(bounds=stated()).fit(made)
    assert encoder.get_feature_names_out().tolist() == NAMES
    assert np.allclose(encoder.transform(made), expected(), rtol=0.0, atol=1e-15)


def test_a_typed_file_follows_the_same_rules(tmp_path):
    path = tmp_path / "t.parquet"
    rows = [line.split(";") for line in TEXT.splitlines()]
    parquet.write_table(pa.table({name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}), path)
    X, y = read_table(path, stated(), "ill")
    assert np.allclose(X, expected(), rtol=0.0, atol=1e-15)
    assert y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("admitted", "2020-12-31", 'column "admitted": expected dates of the format "%d.%m.%Y", got other values'),
        ("admitted", "31.02.2020", 'column "admitted": expected dates of the format'),
        ("seen", "15.1.2020", 'column "seen": expected dates as in 2020-12-31, got other values'),
        ("crp", "<SECRET", 'column "crp": expected numbers, also with < or > before them, got other values'),
        ("weight", "<7", '"t.csv": expected numbers in column "weight", got something else'),
        ("weight", "62.5", '"t.csv": expected numbers in column "weight", got something else'),
        ("smoker", "SECRET", 'column "smoker": expected true and false, or 1 and 0, or yes and no, got other values'),
    ],
)
def test_a_cell_that_no_rule_covers_is_refused_by_column_or_null(table, column, cell, message):
    """A function of that cell alone: no other cell is read differently."""
    rows = [line.split(";") for line in TEXT.splitlines()]
    rows[2][rows[0].index(column)] = cell
    table.write_text("\n".join(map(";".join, rows)) + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_table(table, stated(), "ill")
    assert str(caught.value).startswith(message)
    assert cell not in str(caught.value)
    X, _ = read_table(table, stated(), "ill", invalid="null")
    encoder = TableEncoder(bounds=stated(), invalid="null").fit(read_schema(table, stated().layout))
    (block,) = read_batches(table, encoder)
    assert np.array_equal(block, X, equal_nan=True)
    assert np.isnan(X[1]).any()
    assert np.allclose(X[[0, 2]], expected()[[0, 2]], rtol=0.0, atol=1e-15)


def test_everything_that_is_wrong_is_told_at_once(table):
    rows = [line.split(";") for line in TEXT.splitlines()]
    rows[1][2], rows[3][2], rows[2][3], rows[1][4] = "SECRET", "", "SECRET", "SECRET"
    table.write_text("\n".join(map(";".join, rows)) + "\n", encoding="utf-8")
    with pytest.raises(SeveralProblemsError) as caught:
        read_table(table, stated(), "ill")
    assert [str(error).partition(": ")[0] for error in caught.value.errors] == [
        'column "crp"', 'column "crp"', '"t.csv"', 'column "smoker"',
    ]  # fmt: skip
    assert "SECRET" not in str(caught.value)
    # A table that is predicted in blocks says the same.
    told = str(caught.value)
    encoder = TableEncoder(bounds=stated()).fit(read_schema(table, stated().layout))
    for target in (None, "ill"):
        with pytest.raises(SeveralProblemsError) as caught:
            list(read_batches(table, encoder, target))
        assert str(caught.value) == told
    frame = pd.DataFrame({name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}).replace("", None)
    with pytest.raises(SeveralProblemsError) as caught:
        TableEncoder(bounds=stated()).fit(frame).transform(frame)
    assert [str(error).partition(": ")[0] for error in caught.value.errors] == [
        'column "crp"', 'column "crp"', 'column "weight"', 'column "smoker"',
    ]  # fmt: skip


# ------------------------------------------------------------------ names


def test_names_that_were_probably_meant_are_proposed():
    schema = TableSchema(("age", "body_mass", "region", "ill"), ("number", "number", "category", "boolean"))
    columns = {"Age": Column("boolean"), "Body mass": Column("boolean"), "regoin": Column("boolean")}
    with pytest.raises(SeveralProblemsError) as caught:
        TableBounds(Target("ill"), columns).for_table(schema)
    found = [str(error) for error in caught.value.errors]
    assert ['did you mean "age"?' in found[0], 'did you mean "body_mass"?' in found[1]] == [True, True]
    assert 'did you mean "region"?' in found[2]
    # Each once: a column that is proposed is not missing in addition.
    assert len(found) == 3


def test_a_table_without_a_header_is_not_quoted():
    """Similar names are proposed only where a name of the bounds is in the table, so that names are no cells."""
    cells = TableSchema(("ages", "7919.4242"), ("number", "number"))
    with pytest.raises(ParameterError) as caught:
        TableBounds(Target("ill"), {"age": Column("boolean")}).for_table(cells)
    assert "ages" not in str(caught.value)
    assert "7919" not in str(caught.value)


# ------------------------------------------------------------------ statements


def test_a_file_of_categories_becomes_part_of_the_bounds(tmp_path):
    (tmp_path / "icd.txt").write_text("\ufeffE11.9\n\n  I10 \nE11.1\nI10\n", encoding="utf-8")
    text = '[target]\nname = "y"\nclasses = [0, 1]\n[columns.x]\ntype = "category"\ncategories_file = "icd.txt"\n'
    assert TableBounds.from_toml(text, folder=tmp_path).columns["x"].categories == ("E11.9", "I10", "E11.1")
    grouped = TableBounds.from_toml(text + "group = 3\n", folder=tmp_path)
    assert grouped.columns["x"] == Column("category", categories=("E11", "I10"), group=3)
    # Published files hold the lines, not the name of the file.
    content = json.loads(grouped.to_json())["columns"]["x"]
    assert content == {"type": "category", "categories": ["E11", "I10"], "group": 3}
    assert TableBounds.from_json(grouped.to_json()) == grouped


HEAD = '[target]\nname = "y"\nclasses = [0, 1]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('type = "category"\ncategories_file = "t.csv"', ".categories_file='t.csv': expected the name of a text file"),
        ('type = "category"\ncategories_file = "no.txt"', ".categories_file='no.txt': expected a readable text file"),
        ('type = "category"\ncategories = ["a"]\ncategories_file = "a.txt"', "expected no list of categories beside"),
        ('type = "category"\ncategories = ["a"]\ngroup = 0', ".group=0: expected a number of characters"),
        ('type = "category"\ncategories = ["a"]\ngroup = true', ".group=True: expected a number of characters"),
        ('type = "number"\ncensored = 1', ".censored=1: expected true or false"),
        ('type = "number"\ncensord = true', 'did you mean "censored"?'),
        ('type = "date"', ".since=None: expected a public day"),
        ('type = "date"\nsince = 3', ".since=3: expected a public day"),
        ('type = "date"\nsince = 2000-01-01\nlower = 2021-01-01\nupper = 2020-01-01', "expected a number below"),
        ('type = "date"\nsince = 2000-01-01\nlower = 2021-01-01', ".upper=None: expected a finite number"),
        ('type = "date"\nsince = 2000-01-01\nformat = "%d.%m"', ".format='%d.%m': expected a format with year, month"),
        ('type = "date"\nsince = 2000-01-01\nformat = "%d %d %Y"', "expected a format with year, month"),
        ('type = "date"\nparts = ["day"]', '.parts=[\'day\']: expected "year", "month" or both'),
        ('type = "date"\nparts = ["year"]', ".lower=None: expected a finite number"),
        ('type = "date"\nparts = ["month"]\nlower = 2000', ".lower=2000: expected no bounds of months"),
        ('type = "date"\nparts = ["month"]\nsince = 2000-01-01', "expected no such key beside parts"),
    ],
)
def test_rules_that_cannot_be_used_are_named_with_their_place(tmp_path, text, message):
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(ParameterError) as caught:
        TableBounds.from_toml(f"{HEAD}[columns.x]\n{text}\n", folder=tmp_path)
    assert str(caught.value).startswith('columns."x"')
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('delimiter = "x"', "table.delimiter='x': expected one of"),
        ("delimiter = []", "table.delimiter=[]: expected one of"),
        ('decimal = "x"', "table.decimal='x': expected"),
        ("name = 3", "table.name=3: expected the name of a table or sheet"),
        ('delimeter = ";"', 'did you mean "delimiter"?'),
    ],
)
def test_layouts_that_cannot_be_used(text, message):
    with pytest.raises(ParameterError) as caught:
        TableBounds.from_toml(f"{HEAD}[table]\n{text}\n")
    assert message in str(caught.value)


def test_all_mistakes_of_a_bounds_file_are_told_at_once():
    text = HEAD + '[columns.a]\ntype = "category"\n[columns.b]\ntype = "magic"\n[columns.c]\ntype = "date"\n[other]\n'
    with pytest.raises(SeveralProblemsError) as caught:
        TableBounds.from_toml(text + '[table]\ndecimal = "x"\nfoo = 1\nname = 3\n[target.more]\n')
    assert [str(error).partition(":")[0] for error in caught.value.errors] == [
        "bounds='other'", "target='more'", 'columns."a".categories=[]', "columns.\"b\".type='magic'",
        'columns."c".since=None', "table='foo'", "table.decimal='x'", "table.name=3",
    ]  # fmt: skip
    # Several of one column, too.
    text = HEAD + '[columns.a]\ntype = "number"\nlower = "x"\nper = 0\nmissing_values = 3\ncensored = 1\ngroup = 1\n'
    with pytest.raises(SeveralProblemsError) as caught:
        TableBounds.from_toml(text)
    assert [str(error).partition(":")[0] for error in caught.value.errors] == [
        "columns.\"a\"='group'", 'columns."a".missing_values=3', "columns.\"a\".lower='x'", 'columns."a".per=0',
        'columns."a".censored=1',
    ]  # fmt: skip


def test_bounds_that_are_missing_are_told_together():
    text = HEAD + "".join(f'[columns.{name}]\ntype = "number"\n' for name in "abc")
    resolved = TableBounds.from_toml(text).for_table(TableSchema(("a", "b", "c", "y"), ("number",) * 4))
    assert resolved.unbounded == ["a", "b", "c"]
    with pytest.raises(ParameterError, match='expected lower and upper of "a", "b", "c"; state them'):
        TableEncoder(bounds=resolved).fit(pd.DataFrame({"a": [1], "b": [1], "c": [1], "y": [1]}))


# ------------------------------------------------------------------ missing cells

GAPS = """\
age,smoker,region,born,y
30,true,north,2020-01-01,1
,,,,2
70,false,elsewhere,2000-01-01,3
"""
COLUMNS = {
    "age": Column("number", 20, 100),
    "smoker": Column("boolean"),
    "region": Column("category", categories=("north", "south")),
    "born": Column("date", 0, 10_000, since=date(2000, 1, 1)),
}


def read_gaps(tmp_path, **changes):
    path = tmp_path / "t.csv"
    path.write_text(GAPS)
    bounds = TableBounds(Target("y", 0, 9), COLUMNS, **changes).for_table(read_schema(path))
    assert TableBounds.from_json(bounds.to_json()) == bounds
    return bounds, read_table(path, bounds, "y", schema=read_schema(path))[0]


def test_one_rule_speaks_for_all_columns(tmp_path):
    bounds, X = read_gaps(tmp_path, missing_default={"indicator": True})
    assert bounds.feature_names == [
        "age", "age missing", "smoker", "smoker missing", "region=north", "region=south", "region missing", "born",
        "born missing",
    ]  # fmt: skip
    # A gap is nothing in the features of its column, and one in its own.
    assert X[1].tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 1]
    assert X[[0, 2]][:, [1, 3, 6, 8]].any() == np.False_
    assert X[0, 0] == -0.75


def test_values_categories_and_indicators_by_column(tmp_path):
    fills = {"age": {"value": 40, "indicator": True}, "smoker": True, "region": "south", "born": 5000}
    bounds, X = read_gaps(tmp_path, missing=fills)
    assert bounds.feature_names == ["age", "age missing", "smoker", "region=north", "region=south", "born"]
    assert X[1].tolist() == [-0.5, 1, 1, 0, 1, 0]
    assert bounds.missing == {"age": Fill(40.0, True), "smoker": True, "region": "south", "born": 5000.0}


def test_a_default_value_is_for_the_columns_of_its_type(tmp_path):
    with pytest.raises(SeveralProblemsError) as caught:
        read_gaps(tmp_path, missing_default=50)
    assert [str(error).partition(":")[0] for error in caught.value.errors] == [
        'column "smoker"', 'column "region"', 'column "born"',
    ]  # fmt: skip
    bounds, X = read_gaps(
        tmp_path, missing_default=50, missing={name: {"indicator": True} for name in list(COLUMNS)[1:]}
    )
    assert bounds.missing["age"] == 50.0
    assert X[1, 0] == -0.25
    text = "[defaults]\nmissing = {indicator = true}\n" + HEAD + '[columns.x]\ntype = "number"\nlower = 0\nupper = 1\n'
    assert TableBounds.from_toml(text).missing_default == {"indicator": True}
    assert TableBounds.from_toml(text).defaults is None


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ({"indicator": False}, '^missing."age".indicator=False: expected true, or a value beside it'),
        ({"indicator": 1}, '^missing."age".indicator=1: expected true, or a value beside it'),
        ({}, '^missing."age".indicator=False: expected true'),
        ({"value": 500}, '^missing."age"=500: expected a number within the bounds'),
        ({"value": 50, "flag": True}, "^missing.\"age\"='flag': expected no key but value, indicator"),
    ],
    ids=str,
)
def test_fills_that_cannot_be_used(fill, message):
    with pytest.raises(ParameterError, match=message):
        TableBounds(Target("y", 0, 1), COLUMNS, missing={"age": fill})


def test_the_target_has_no_indicator():
    with pytest.raises(ParameterError, match="expected a value, as this is the target"):
        TableBounds(Target("y", 0, 1), COLUMNS, missing={"y": {"value": 0.5, "indicator": True}})


def test_columns_with_gaps_are_handed_on_unscaled_with_what_stands_for_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GAPS)
    schema = read_schema(path)
    found = ("age", "born")
    fills = {"age": 500.0, "smoker": True, "region": "north", "born": {"indicator": True}}
    bounds = TableBounds(Target("y", 0, 9), COLUMNS, missing=fills, found_privately=found).for_table(schema)
    numbers = read_unbounded_table(path, bounds, found, schema)[2]
    assert np.array_equal(numbers, [[30, 7305], [500, np.nan], [70, 0]], equal_nan=True)


# ------------------------------------------------------------------ what stands for missing cells, thousands, encodings

MARKED = """\
size;born;crp;ward;smoker;weight;plz;y
1.234,5;01.02.2020;<5;north;ja;80,5;01067;1
k.A.;k.A.;k.A.;k.A.;k.A.;999;.;1,5
999;02.02.2020;999;999;nein;k.A.;01067;3
2;.;<999;.;ja;999,0;99999;999
"""
MARKED_BOUNDS = """
[table]
delimiter = ";"
decimal = ","
thousands = "."
missing_values = ["k.A.", 999]
[target]
name = "y"
lower = 0
upper = 9
[columns]
size = {type = "number", lower = 0, upper = 2000}
born = {type = "date", since = 2020-01-01, lower = 0, upper = 99, format = "%d.%m.%Y", missing_values = ["."]}
crp = {type = "number", lower = 0, upper = 2000, censored = true}
ward = {type = "category", categories = ["north", "999"], missing_values = ["."]}
smoker = {type = "boolean"}
weight = {type = "number", lower = 0, upper = 999}
plz = {type = "category", categories = ["01067", "."]}
[defaults]
missing = {indicator = true}
[missing]
y = 2
"""


def marked_features():
    """By hand: what each cell says; None where it stands for a missing one."""
    columns = {
        "size": ([1234.5, None, None, 2.0], 2000), "born": ([31.0, None, 32.0, None], 99),
        # A limit is a number, not a code; a category of the list is a category.
        "crp": ([5.0, None, None, 999.0], 2000), "ward": ([0, None, 1, None], 2),
        "smoker": ([1.0, None, 0.0, 1.0], None),
        "weight": ([80.5, None, None, None], 999), "plz": ([0, 1, 0, -1], 2),
    }  # fmt: skip
    features = []
    for name, (cells, width) in columns.items():
        if name in ("ward", "plz"):
            features += [[float(cell == level) for cell in cells] for level in range(width)]
        elif width is None:
            features.append([0.0 if cell is None else cell for cell in cells])
        else:
            features.append([0.0 if cell is None else cell / (width / 2) - 1 for cell in cells])
        features.append([float(cell is None) for cell in cells])
    return np.array(features).T


@pytest.mark.parametrize("invalid", ["raise", "null"])
def test_stated_texts_stand_for_missing_cells(tmp_path, invalid):
    path, bounds = tmp_path / "t.csv", TableBounds.from_toml(MARKED_BOUNDS)
    path.write_text(MARKED)
    X, y = read_table(path, bounds, "y", invalid=invalid)
    assert np.allclose(X, marked_features(), rtol=0, atol=1e-12)
    assert y.tolist() == [1.0, 1.5, 3.0, 2.0]
    with open_partitions(path, bounds, invalid=invalid) as table:
        assert np.array_equal(table.read_all()[0], X)
    assert TableBounds.from_json(bounds.to_json()) == bounds


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "typed", "parquet"])
def test_stated_texts_stand_for_missing_cells_in_typed_tables_too(tmp_path, kind):
    rows = [line.split(";") for line in MARKED.splitlines()]
    columns = {name: list(cells) for name, cells in zip(rows[0], zip(*rows[1:], strict=True), strict=True)}
    if kind in ("typed", "parquet"):
        # Numbers as numbers, in which a code is a number.
        columns["size"], columns["weight"] = [1234.5, None, 999.0, 2.0], [80.5, 999.0, float("nan"), 999.0]
        columns["y"] = [1.0, 1.5, 3.0, 999.0]
    table = pa.table(columns)
    bounds = TableBounds.from_toml(MARKED_BOUNDS)
    if kind == "parquet":
        parquet.write_table(table, tmp_path / "t.parquet")
        X, y = read_table(tmp_path / "t.parquet", bounds, "y")
        assert y.tolist() == [1.0, 1.5, 3.0, 2.0]
    else:
        given = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}.get(kind, lambda: table)()
        X = TableEncoder(bounds=bounds).fit(given).transform(given)
    assert np.allclose(X, marked_features(), rtol=0, atol=1e-12)


def test_a_cell_that_stands_for_a_missing_one_needs_a_rule(tmp_path):
    """Missing cells without an entry refuse the table by the names of their columns, and by nothing else."""
    path = tmp_path / "t.csv"
    path.write_text(MARKED)
    text = MARKED_BOUNDS.replace("missing = {indicator = true}", "").replace("[defaults]", "").replace("y = 2", "")
    with pytest.raises(SeveralProblemsError) as caught:
        read_table(path, TableBounds.from_toml(text), "y")
    told = {str(error).split('"')[1] for error in caught.value.errors if "got missing ones" in str(error)}
    assert told == {"size", "born", "crp", "ward", "smoker", "weight", "y"}
    assert not re.search(r"999|k\.A", str(caught.value))
    X, y = read_table(path, TableBounds.from_toml(text), "y", invalid="null")
    assert np.flatnonzero(np.isnan(X).any(axis=1) | np.isnan(y)).tolist() == [1, 2, 3]


def test_numbers_with_other_groups_than_thousands_are_none(tmp_path):
    bounds = TableBounds(
        Target("y", 0, 1), {"x": Column("number", 0, 1e9)}, layout=TableLayout(";", ",", thousands=".")
    )
    for cell, number in (
        ("1.234", 1234.0),
        ("12.345.678,9", 12345678.9),
        ("-1.000", 0.0),
        ("1234,5", 1234.5),
        ("7", 7.0),
    ):
        (tmp_path / "t.csv").write_text(f"x;y\n{cell};0\n")
        (row,), _ = read_table(tmp_path / "t.csv", bounds, "y")
        assert row[0] == number / 5e8 - 1, cell
    for cell in ("1.5", "1.23", "12.3456", ".123", "1.234.5", "1..234", "1.234.567.8"):
        (tmp_path / "t.csv").write_text(f"x;y\n{cell};0\n1.234;0\n")
        with pytest.raises(DataError, match='column "x": expected numbers'):
            read_table(tmp_path / "t.csv", bounds, "y")
        X, _ = read_table(tmp_path / "t.csv", bounds, "y", invalid="null")
        assert np.isnan(X[:, 0]).tolist() == [True, False]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "latin-1", "windows-1252", "iso-8859-15", "cp850", "mac-roman"]
)
@pytest.mark.parametrize("gzipped", [False, True])
def test_tables_in_other_encodings_are_the_same_tables(tmp_path, monkeypatch, encoding, gzipped):
    monkeypatch.setattr(formats, "_RECODED", 37)
    rows = [f"{i / 10};{('Köln', 'Gießen', 'é;ñ', 'a')[i % 4]};{i % 2}" for i in range(500)]
    rows = [row.replace("é;ñ", '"é;\nñ"') for row in rows]
    content = "\n".join(["größe;städte;y", *rows, ""]).encode(encoding)
    path = tmp_path / ("t.csv.gz" if gzipped else "t.csv")
    path.write_bytes(gzip.compress(content) if gzipped else content)
    columns = {
        "größe": Column("number", 0, 50),
        "städte": Column("category", categories=("Köln", "Gießen", "é;\nñ")),
    }
    bounds = TableBounds(Target("y", classes=(0, 1)), columns, layout=TableLayout(";", encoding=encoding))
    X, y = read_table(path, bounds, "y")
    assert np.allclose(X[:, 0], np.arange(500) / 250 - 1, rtol=0, atol=1e-12)
    assert np.array_equal(X[:, 1:], [[float(i % 4 == place) for place in range(3)] for i in range(500)])
    assert y.tolist() == [i % 2 for i in range(500)]
    assert TableBounds.from_json(bounds.to_json()) == bounds
    with open_partitions(path, bounds) as table:
        assert np.array_equal(table.read_all()[0], X)


def test_bytes_without_a_meaning_in_the_encoding_are_refused_and_not_quoted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("x,y\n1,0\nSECRET\x81,1\n".encode("latin-1"))
    columns = {"x": Column("category", categories=("1",))}
    for layout, named in ((None, "UTF-8"), (TableLayout(encoding="cp1252"), "cp1252")):
        bounds = TableBounds(Target("y", 0, 1), columns, layout=layout)
        for invalid in ("raise", "null"):
            with pytest.raises(DataError, match=f"expected text in {named}, got another encoding; state it") as caught:
                read_table(path, bounds, "y", invalid=invalid)
            assert "SECRET" not in repr((caught.value, caught.value.__context__, caught.value.__cause__))
    for wrong in ("klingon", "utf-7", "idna", "rot13", "hex", "shift_jis", 5):
        with pytest.raises(ParameterError, match="^table.encoding="):
            TableLayout(encoding=wrong).checked()


def test_row_numbers_without_a_name_are_left_out(tmp_path):
    bounds = TableBounds(Target("y", 0, 1), {"x": Column("number", 0, 1)})
    for name in ('""', "Unnamed: 0"):
        (tmp_path / "t.csv").write_text(f"{name},x,y\n1,1,0\n2,0,1\n")
        assert read_table(tmp_path / "t.csv", bounds, "y")[0].tolist() == [[1.0], [-1.0]]
    # As a number that the defaults describe, the place of a record would be a feature.
    defaults = TableBounds(Target("y", 0, 1), defaults=Column("number", 0, 1))
    assert defaults.for_table(TableSchema(("", "x", "y"), ("number",) * 3)).order == ("x",)
    # A section decides, and another place is no place of row numbers.
    described = TableBounds(Target("y", 0, 1), {"": Column("number", 0, 9), "x": Column("number", 0, 1)})
    assert described.for_table(TableSchema(("", "x", "y"), ("number",) * 3)).order == ("", "x")
    with pytest.raises(ParameterError, match="expected a section for every column"):
        bounds.for_table(TableSchema(("x", "", "y"), ("number",) * 3))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[table]\nmissing_values = 3", "^table.missing_values=3: expected a list"),
        ('[table]\nmissing_values = [""]', "^table.missing_values=.*: expected a list of at most 1,000 texts"),
        ("[table]\nmissing_values = [[1]]", "^table.missing_values=.*: expected a list of at most 1,000 texts"),
        ("[table]\nmissing_values = [true]", "^table.missing_values=.*: expected a list of at most 1,000 texts"),
        ('[table]\nthousands = "_"', "^table.thousands='_': expected one of"),
        ('[table]\nthousands = "."', "^table.thousands='.': expected one of"),
        ('[columns]\nx = {type = "number", per = 0}', '^columns."x".per=0: expected a number above zero'),
        ('[columns]\nx = {type = "number", per = "a"}', "^columns.\"x\".per='a': expected a finite number"),
        (
            '[columns]\nx = {type = "date", parts = ["month"], per = 3}',
            '^columns."x".per=3: expected no such key beside',
        ),
        ('[columns]\nx = {type = "category", categories = ["a"], reference = "b"}', "^columns.\"x\".reference='b'"),
        (
            '[columns]\nx = {type = "code", lower = 1, upper = 3, reference = 4}',
            '^columns."x".reference=4: expected one',
        ),
        (
            '[columns]\nx = {type = "category", categories = ["a", "9"], missing_values = [9]}',
            "expected texts that are no",
        ),
    ],
)
def test_what_cannot_be_used_is_one_sentence(section, message):
    with pytest.raises(ParameterError, match=message):
        TableBounds.from_toml(HEAD + section)


def test_reference_levels_are_stated():
    text = HEAD + (
        '[columns]\na = {type = "category", categories = ["x", "y"]}\n'
        'b = {type = "code", lower = 1, upper = 3, reference = 2}\n'
        'c = {type = "category", categories = ["E11.9", "I10"], group = 3, reference = "I10.1"}\n'
        'd = {type = "date", parts = ["month"]}\n'
    )
    bounds = TableBounds.from_toml(text).for_table(TableSchema(("a", "b", "c", "d", "y"), ("category",) * 5))
    assert bounds.references == {"a": "a=x", "b": "b=2", "c": "c=I10", "d": "d month=1"}
    # A reference is a matter of display: the design has all levels.
    assert bounds.feature_names[:7] == ["a=x", "a=y", "b=1", "b=2", "b=3", "c=E11", "c=I10"]
    assert TableBounds.from_json(bounds.to_json()).references == bounds.references
