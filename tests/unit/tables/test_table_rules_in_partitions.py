"""Columns with rules of their own and missing cells, in partitions: the same bits as in memory, from every format."""

import datetime
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from taciturn.core.errors import DataError, SeveralProblemsError
from taciturn.tables import (
    Column,
    TableBounds,
    Target,
    open_partitions,
    partitions,
    read_schema,
    read_table,
    read_unbounded_table,
)

N = 240
BOUNDS = """
[table]
delimiter = ";"
decimal = ","
[target]
name = "y"
lower = 0
upper = 10
[columns]
dose = {type = "number", lower = 0, upper = 5}
crp = {type = "number", censored = true, lower = 0, upper = 9}
born = {type = "date", since = 2000-01-01, lower = 2000-01-01, upper = 2020-01-01}
seen = {type = "date", parts = ["year", "month"], lower = 2000, upper = 2020}
smoker = {type = "boolean"}
code = {type = "category", categories = ["E11.9", "I10", "NA"], group = 3}
base = {type = "code", lower = 1, upper = 3}
[missing]
dose = {indicator = true}
crp = {value = 3, indicator = true}
born = 2010-05-05
seen = {indicator = true}
smoker = {indicator = true}
code = {indicator = true}
base = 2
y = 4
"""
STATED = TableBounds.from_toml(BOUNDS)
NUMBERS = ["dose", "crp", "born", "y"]
FORMATS = ["t.csv", "t.parquet", "t.arrow", "t.xlsx", "t.sqlite", "t.dta"]


def cells(**changes):
    rng = np.random.default_rng(8)
    days = [datetime.date(1999, 1, 1) + datetime.timedelta(34 * day) for day in range(N)]
    columns = {
        "y": rng.normal(5, 3, N).tolist(),
        # Numbers that a workbook holds exactly.
        "dose": (rng.integers(-8, 50, N) / 8).tolist(),
        "crp": rng.choice(["<5", "0,5", "7", "> 8"], N).tolist(),
        "born": days,
        "seen": days[::-1],
        "smoker": rng.choice(["ja", "NEIN", "yes", "0"], N).tolist(),
        "code": rng.choice(["E11.1", "I10", "I10.5", "Z99"], N).tolist(),
        "base": rng.integers(0, 5, N).tolist(),
    }
    missing = {name: rng.random(N) < 0.1 for name in columns}
    gone = {
        name: [None if gap else cell for cell, gap in zip(columns[name], missing[name], strict=True)]
        for name in columns
    }
    return gone | changes


def write(folder, name, columns):
    path, frame = folder / name, pd.DataFrame(columns, dtype=object)
    texts = frame.map(
        lambda cell: "" if cell is None else str(cell).replace(".", ",") if isinstance(cell, float) else str(cell)
    )
    table = pa.table({key: pa.array(values) for key, values in columns.items()})
    if name == "t.csv":
        texts.to_csv(path, sep=";", index=False)
    elif name == "t.parquet":
        parquet.write_table(table, path, row_group_size=31)
    elif name == "t.arrow":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=17)
    elif name == "t.xlsx":
        frame.to_excel(path, index=False)
    elif name == "t.sqlite":
        with sqlite3.connect(path) as database:
            frame.map(lambda cell: str(cell) if isinstance(cell, datetime.date) else cell).to_sql(
                "t", database, index=False
            )
        database.close()
    else:
        typed = {key: pd.to_datetime(frame[key]) for key in ("born", "seen")}
        typed |= {key: frame[key].astype(float) for key in ("y", "dose", "base")}
        frame.assign(**typed).fillna(dict.fromkeys(("crp", "smoker", "code"), "")).to_stata(path, write_index=False)
    return path


@pytest.mark.parametrize("invalid", ["raise", "null"])
@pytest.mark.parametrize("name", FORMATS)
def test_partitions_have_the_bits_of_the_table_in_memory(tmp_path, monkeypatch, name, invalid):
    monkeypatch.setattr(partitions, "_CELLS", 300)
    path = write(tmp_path, name, cells())
    schema = read_schema(path, STATED.layout)
    bounds = STATED.for_table(schema)
    X, y = read_table(path, bounds, "y", schema=schema, invalid=invalid)
    numbers = read_unbounded_table(path, bounds, NUMBERS, schema, invalid=invalid)[2]
    some = np.array([0, 1, 4, 6, 9, 18, 21, 24, 25])
    with open_partitions(path, bounds, schema=schema, invalid=invalid) as table:
        places = range(table.offsets.size)
        assert len(places) > 10
        table.check(to_find=NUMBERS)
        assert np.array_equal(np.vstack([table.read(index)[0] for index in places]), X)
        assert np.array_equal(np.concatenate([table.read(index)[1] for index in places]), y)
        assert np.array_equal(np.vstack([table.read(index, some)[0] for index in places]), X[:, some])
        streamed = np.vstack([table.read_numbers(index, NUMBERS) for index in places])
    assert np.array_equal(streamed, numbers, equal_nan=True)
    # The rules were at work: gaps have features of their own, and only a gap without a value is no number.
    assert {"dose missing", "seen month=12", "code=E11", "base=3"} <= set(bounds.feature_names)
    assert np.isnan(numbers).any(axis=0).tolist() == [True, False, False, False]


@pytest.mark.parametrize("name", FORMATS)
def test_all_problems_of_the_columns_are_told_at_once(tmp_path, monkeypatch, name):
    monkeypatch.setattr(partitions, "_CELLS", 300)
    wrong = {"smoker": ["ja"] * (N - 1) + ["maybe"], "crp": ["low", *["5"] * (N - 1)]}
    path = write(tmp_path, name, cells(**wrong))
    with pytest.raises(SeveralProblemsError) as in_memory:
        read_table(path, STATED, "y")
    with pytest.raises(SeveralProblemsError) as in_partitions, open_partitions(path, STATED) as table:
        table.check()
    assert str(in_partitions.value) == str(in_memory.value)
    assert len(in_partitions.value.errors) == 2


@pytest.mark.parametrize("parts", [("year",), ("month",), ("year", "month")])
def test_missing_dates_without_an_entry_refuse_or_make_null(tmp_path, parts):
    stated = {"lower": 2000, "upper": 2020} if "year" in parts else {}
    bounds = TableBounds(Target("y", 0, 1), {"seen": Column("date", parts=parts, **stated)})
    path = tmp_path / "t.csv"
    path.write_text("y,seen\n0,2001-05-06\n1,\n", encoding="utf-8")
    with pytest.raises(DataError, match='^column "seen": expected a value in every row'):
        open_partitions(path, bounds)
    with open_partitions(path, bounds, invalid="null") as table:
        assert np.isnan(table.read(0)[0]).any(axis=1).tolist() == [False, True]
