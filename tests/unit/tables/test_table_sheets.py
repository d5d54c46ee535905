"""Workbooks, Stata files, SQLite tables, other delimiters, and what is said about formats that are not read."""

import os
import signal
import sqlite3
import subprocess
import sys
import warnings
import zipfile
from contextlib import closing
from datetime import datetime
from functools import partial

import numpy as np
import openpyxl
import pandas as pd
import pytest

from taciturn.core.errors import DataError, ParameterError
from taciturn.tables import (
    TableBounds,
    TableEncoder,
    TableLayout,
    TableSchema,
    formats,
    open_partitions,
    read_batches,
    read_person_keys,
    read_schema,
    read_table,
)
from taciturn.tables.formats import StoppableStream, table_file

BOUNDS = """
[target]
name = "ill"
classes = [false, true]
[person]
column = "patient"
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
[columns.region]
type = "category"
categories = ["north", "a\\nb", "7"]
[columns.admitted]
type = "date"
since = 2000-01-01
lower = 2019-01-01
upper = 2022-01-01
[missing]
age = 50
smoker = {indicator = true}
"""
N = 300
RNG = np.random.default_rng(0)
ROWS = [
    (
        f"P{i // 2}",
        None if i % 7 == 0 else int(RNG.integers(-5, 130)),
        float(RNG.normal(0.4, 0.3)),
        None if i % 11 == 0 else bool(RNG.random() < 0.5),
        str(RNG.choice(["north", "moon", "a\nb", 'q"u,o', "7"])),
        datetime(2020, 1, 1 + i % 28, 12 * (i % 2)),
        "yes" if RNG.random() < 0.5 else "no",
    )
    for i in range(N)
]
NAMES = ("patient", "age", "body mass", "smoker", "region", "admitted", "ill")


def expected():
    """By numpy, from the rows as they are."""
    _, age, mass, smoker, region, admitted, ill = map(np.array, zip(*ROWS, strict=True))
    days = np.array([(day - datetime(2019, 1, 1)).days for day in admitted])
    width = (datetime(2022, 1, 1) - datetime(2019, 1, 1)).days
    ages = np.array([50 if each is None else each for each in age], dtype=float)
    X = [
        np.clip(ages / 55.0 - 1.0, -1, 1),
        np.clip((mass - 0.4) / 0.3, -1, 1),
        [bool(each) for each in smoker],
        [each is None for each in smoker],
        *(region == each for each in ("north", "a\nb", "7")),
        2.0 * days / width - 1.0,
    ]
    return np.column_stack(X).astype(float), ill == "yes"


def write_workbook(path, *, more=False):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "visits"
    sheet.append([*NAMES, None, None])
    for row in ROWS:
        sheet.append(row)
    # As a spreadsheet program leaves them: rows and columns that were used once.
    sheet.append([None] * 12)
    sheet.cell(row=N + 5, column=3).value = None
    if more:
        book.create_sheet("other").append(["x"])
    book.save(path)


def write_database(path, *, more=False):
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE visits (patient, age, "body mass", smoker, region, admitted, ill)')
        rows = [(*row[:5], row[5].isoformat(" "), row[6]) for row in ROWS]
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        if more:
            database.execute("CREATE VIEW other AS SELECT age FROM visits")
    database.close()


def write_stata(path):
    columns = dict(zip(NAMES, zip(*ROWS, strict=True), strict=True))
    frame = pd.DataFrame(columns).rename(columns={"body mass": "body_mass"})
    frame["age"] = frame["age"].astype(float)
    frame["smoker"] = [np.nan if each is None else float(each) for each in columns["smoker"]]
    frame.to_stata(path, write_index=False)


@pytest.mark.parametrize("name", ["t.xlsx", "t.sqlite", "T.DB", "t.dta"])
def test_every_format_gives_the_same_table(tmp_path, monkeypatch, name):
    path, text = tmp_path / name, BOUNDS
    {"x": write_workbook, "a": write_stata}.get(name[-1], write_database)(path)
    if name.endswith(".dta"):
        text = BOUNDS.replace("body mass", "body_mass")
    bounds = TableBounds.from_toml(text)
    schema = read_schema(path)
    assert schema.names == (tuple(each.replace(" ", "_") for each in NAMES) if "dta" in name else NAMES)
    monkeypatch.setattr(formats, "_LEAST_BLOCK", 4000)
    monkeypatch.setattr(formats, "_CELLS", 400)
    monkeypatch.setattr(formats, "_ROWS", 17)
    wanted, ill = expected()
    for invalid in ("raise", "null"):
        X, y = read_table(path, bounds, "ill", invalid=invalid)
        assert np.allclose(X, wanted, rtol=0.0, atol=1e-12)
        assert y.tolist() == ill.astype(int).tolist()
    assert read_person_keys(path, bounds) == [row[0] for row in ROWS]
    blocks = list(read_batches(path, TableEncoder(bounds=bounds).fit(schema), "ill"))
    assert len(blocks) > 2
    assert np.array_equal(np.vstack([rows for rows, _ in blocks]), X)


@pytest.mark.parametrize("write", [write_workbook, write_database])
def test_a_part_is_named_in_the_path_or_in_the_bounds(tmp_path, write):
    path = tmp_path / ("t.xlsx" if write is write_workbook else "t.sqlite")
    write(path, more=True)
    with pytest.raises(
        DataError, match='expected the name of one of its (sheets|tables), "[a-z]+", "[a-z]+"; state it'
    ):
        read_schema(path)
    for named in (read_schema(f"{path}#visits"), read_schema(path, TableLayout(name="visits"))):
        assert named.names == NAMES
    stated = TableBounds.from_toml(BOUNDS + '[table]\nname = "visits"\n')
    assert read_table(path, stated, "ill")[0].shape == expected()[0].shape
    # The path is the more special of the two.
    with pytest.raises(DataError, match='did you mean "visits"'):
        read_table(f"{path}#Visits", stated, "ill")


def test_a_hash_in_the_name_of_another_file_is_part_of_it(tmp_path):
    (tmp_path / "a#b.csv").write_text("x,y\n1,2\n")
    assert read_schema(tmp_path / "a#b.csv").names == ("x", "y")


def test_cells_of_sheets_keep_every_bit():
    rng = np.random.default_rng(1)
    numbers = (rng.standard_normal(300) * 10.0 ** rng.integers(-300, 300, 300)).tolist()
    written = b"".join([formats._as_text([[number]]) for number in numbers]).decode().split()
    assert np.array(written, dtype=float).tobytes() == np.array(numbers).tobytes()


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        (
            "t.xlsx",
            lambda path: path.write_bytes(b"PK\x03\x04SECRET" * 9),
            "expected a complete xlsx file, got",
        ),
        ("t.sqlite", lambda path: path.write_bytes(b"SECRET" * 900), "expected a complete sqlite file, got a damaged"),
        ("t.dta", lambda path: path.write_bytes(b"SECRET" * 900), "expected a complete stata file, got a damaged"),
        ("t.sqlite", lambda path: sqlite3.connect(path).execute("VACUUM").connection.close(), "expected a "),
    ],
)
def test_damaged_files_are_refused_without_their_content(tmp_path, name, make, message):
    path = tmp_path / name
    make(path)
    with pytest.raises((DataError, ParameterError)) as caught:
        read_schema(path)
    assert message in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_text_in_another_encoding_is_not_quoted(tmp_path):
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x TEXT)")
        database.execute("INSERT INTO t VALUES (CAST(? AS TEXT))", (b"SECRET\xff\xfe",))
    database.close()
    with pytest.raises(DataError, match="expected text in UTF-8") as caught:
        read_schema(path)
    assert "SECRET" not in str(caught.value)


# ------------------------------------------------------------------ bounded work


def test_a_workbook_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    write_workbook(tmp_path / "t.xlsx")
    monkeypatch.setattr(formats, "machine_memory", lambda: 1000)
    with pytest.raises(DataError, match="expected a workbook that unpacks to at most 1,000 bytes, got a larger one"):
        read_schema(tmp_path / "t.xlsx")


def test_a_stray_cell_does_not_make_every_row_as_wide_as_the_sheet(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["x", "y"])
    book.active["XFD3000"] = 1
    book.save(tmp_path / "t.xlsx")
    rows = list(formats._workbook_rows(tmp_path / "t.xlsx", "t", None, StoppableStream()))
    assert len(rows) == 3000
    assert [len(row) for row in rows if row] == [2, 16384]


def repacked(path, **changes):
    """Write a workbook again with other texts in the parts whose names end so; return the path."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            for end, change in changes.items():
                content = change(content) if end in name else content
            packed.writestr(name, content)
    return path


def test_rows_behind_the_last_one_of_a_sheet_are_refused(tmp_path, monkeypatch):
    assert formats._LAST_ROW == 1_048_576
    monkeypatch.setattr(formats, "_LAST_ROW", 2000)
    write_workbook(tmp_path / "t.xlsx")
    last = f'r="{N + 1}"'.encode()
    path = repacked(tmp_path / "t.xlsx", sheet1=lambda text: text.replace(last, b'r="123456789012"'))
    with pytest.raises(DataError, match="expected at most 2,000 rows, the last of a sheet, got a row behind them"):
        read_table(path, TableBounds.from_toml(BOUNDS), "ill")


def never(*arguments, **options):
    raise AssertionError("the workbook was parsed")


def test_parts_that_unpack_to_hundreds_of_times_their_size_are_refused_before_they_are_parsed(tmp_path, monkeypatch):
    write_workbook(tmp_path / "t.xlsx")
    bomb = b"<t>" + b"a" * (1 << 24) + b"</t>"
    path = repacked(tmp_path / "t.xlsx", theme=lambda text: text + bomb)
    monkeypatch.setattr(openpyxl, "load_workbook", never)
    with pytest.raises(DataError, match="expected a workbook whose parts unpack to at most 200 times their size"):
        read_schema(path)
    # A part that states another size than it has is found before it is unpacked as a whole.
    with zipfile.ZipFile(path) as packed:
        (theme,) = (part for part in packed.infolist() if "theme" in part.filename)
    stated, other = (size.to_bytes(4, "little") for size in (theme.file_size, 1000))
    path.write_bytes(path.read_bytes().replace(stated, other))
    unpacked = []
    read = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, size=-1: unpacked.append(size) or read(self, size))
    with pytest.raises(DataError, match="expected a complete"):
        read_schema(path)
    assert max(unpacked) <= 1 << 20
    assert min(unpacked) > 0


def test_what_is_held_in_memory_has_a_limit_that_sheets_have_not(tmp_path, monkeypatch):
    write_workbook(tmp_path / "t.xlsx")
    monkeypatch.setattr(formats, "_MOST_HELD", 15_000)
    assert read_schema(tmp_path / "t.xlsx").names == NAMES
    # The name of a part does not make it a sheet.
    path = repacked(
        tmp_path / "t.xlsx", Content_Types=lambda text: text.replace(b"spreadsheetml.worksheet+xml", b"other+xml")
    )
    monkeypatch.setattr(openpyxl, "load_workbook", never)
    with pytest.raises(DataError, match="expected at most 15,000 bytes of distinct texts in a workbook, got more"):
        read_schema(path)


ENDLESS = """CREATE VIEW visits AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
SELECT x AS age, x AS "body mass" FROM c"""


def make_view(path, sql):
    with sqlite3.connect(path) as database:
        database.execute(sql)
    database.close()
    return path


def drain(stream):
    while stream.read(10_000):
        pass


def test_a_view_without_an_end_has_a_limit(tmp_path):
    rows = partial(formats._database_rows, make_view(tmp_path / "t.sqlite", ENDLESS), "t", None)
    stream = formats.SheetStream("t", rows, most=100_000)
    with pytest.raises(DataError, match="expected a table of at most 100,000 bytes as text, got a larger one, or a vi"):
        drain(stream)
    stream.close()


@pytest.mark.parametrize(
    "cell", ["zeroblob(900000000)", "replace(hex(zeroblob(400000)), '0', '0000')", "zeroblob(1048577)"]
)
def test_cells_of_gigabytes_are_refused_before_they_are_made(tmp_path, cell):
    path = make_view(tmp_path / "t.sqlite", f"CREATE VIEW visits AS SELECT {cell} AS age")
    with pytest.raises(DataError, match="expected cells of at most 1,048,576 bytes, got a larger one"):
        read_schema(path)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_a_query_that_never_has_a_row(tmp_path, monkeypatch):
    path = make_view(tmp_path / "t.sqlite", f"{ENDLESS} WHERE x < 0")
    choose = formats._choose

    def interrupt(*arguments):
        # The file is open, and the query comes next.
        os.kill(os.getpid(), signal.SIGINT)
        return choose(*arguments)

    monkeypatch.setattr(formats, "_choose", interrupt)
    with pytest.raises(KeyboardInterrupt):
        read_schema(path)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_ends_the_unpacking_of_a_workbook(tmp_path, monkeypatch):
    write_workbook(tmp_path / "t.xlsx")
    read, reads = formats._WatchedFile.read, []

    def interrupt(self, size=-1):
        reads.append(size)
        if len(reads) == 5:
            os.kill(os.getpid(), signal.SIGINT)
            # The handler runs in the main thread, which stops the stream.
            assert self._stream._stopped.wait(60)
        return read(self, size)

    monkeypatch.setattr(formats._WatchedFile, "read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        read_schema(tmp_path / "t.xlsx")
    assert len(reads) == 5


# ------------------------------------------------------------------ packages and formats that are not there


@pytest.mark.parametrize(("missing", "name", "extra"), [("openpyxl", "t.xlsx", "excel"), ("pandas", "t.dta", "stata")])
def test_a_package_that_is_not_there_is_named_with_its_extra(tmp_path, missing, name, extra):
    (write_workbook if missing == "openpyxl" else write_stata)(tmp_path / name)
    code = f"""
import sys
sys.modules[{missing!r}] = None
from taciturn.tables import read_schema
try:
    read_schema({str(tmp_path / name)!r})
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"expected {missing} for a file named" in done.stdout
    assert f"pip install 'taciturn[{extra}]'" in done.stdout


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("t.sav", "save it in SPSS as .csv or as Stata's .dta"),
        ("t.xls", "save it in the spreadsheet program as .xlsx or .csv"),
        ("t.sas7bdat", "write it in SAS with proc export"),
        ("t.json", "write it as .csv or .parquet"),
        ("t.rds", "write it in R with write.csv"),
        ("t.txt", "name it .csv, and state its delimiter in [table]"),
        ("t.csv.zip", "unpack it first"),
        ("t.xyz", "save the table in one of these formats"),
    ],
)
def test_other_formats_get_a_remedy(tmp_path, name, remedy):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(ParameterError) as caught:
        read_schema(tmp_path / name)
    assert remedy in str(caught.value)


# ------------------------------------------------------------------ delimiters


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_other_delimiters_and_decimal_commas_are_read_as_stated(tmp_path, delimiter):
    path = tmp_path / "t.csv"
    quote = '"' if delimiter == "," else ""
    path.write_text(f"x{delimiter}y\n{quote}1,5{quote}{delimiter}{quote}0,25{quote}\n{quote}-3,0{quote}{delimiter}1\n")
    layout = TableLayout(delimiter, ",")
    assert read_schema(path, layout) == TableSchema(("x", "y"), ("number", "number"))
    text = f"""
[table]
delimiter = {delimiter!r}
decimal = ","
[target]
name = "y"
lower = 0
upper = 1
[columns.x]
type = "number"
lower = -3
upper = 3
"""
    if delimiter == "\t":
        text = text.replace("'\\t'", '"\\t"')
    stated = TableBounds.from_toml(text)
    for invalid in ("raise", "null"):
        X, y = read_table(path, stated, "y", invalid=invalid)
        assert (X.tolist(), y.tolist()) == ([[0.5], [-1.0]], [0.25, 1.0])
    # A point is then no part of a number: of that cell alone.
    path.write_text(f"x{delimiter}y\n1.5{delimiter}1\n{quote}-3,0{quote}{delimiter}1\n")
    with pytest.raises(DataError, match='expected numbers in column "x"'):
        read_table(path, stated, "y")
    X, _ = read_table(path, stated, "y", invalid="null")
    assert (np.isnan(X[0, 0]), X[1, 0]) == (True, -1.0)


def test_a_model_knows_the_layout_of_its_table_and_typed_files_need_none(tmp_path):
    write_workbook(tmp_path / "t.xlsx")
    stated = TableBounds.from_toml(BOUNDS + '[table]\ndelimiter = ";"\ndecimal = ","\n')
    resolved = stated.for_table(TableSchema(NAMES, ("unknown",) * len(NAMES)))
    assert TableBounds.from_json(resolved.to_json()).layout == TableLayout(";", ",")
    assert read_table(tmp_path / "t.xlsx", resolved, "ill")[0].shape == expected()[0].shape


def test_a_database_that_is_locked_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "t.sqlite"
    connect = sqlite3.connect
    monkeypatch.setattr(formats.sqlite3, "connect", lambda *names, **options: connect(*names, timeout=0.0, **options))
    with closing(connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE t (age, ill)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match="got one that another program has locked; wait until that program has"):
            read_schema(path)
        other.execute("ROLLBACK")
    assert read_schema(path).names == ("age", "ill")


# ------------------------------------------------------------------ labels of Stata


def write_labelled(path, codes, labels, **more):
    """A column of whole numbers with labels, and a target."""
    frame = pd.DataFrame({"answer": pd.array(codes, "Int8"), "ill": np.arange(len(codes)) % 2, **more})
    frame.to_stata(path, write_index=False, version=118, value_labels={"answer": labels})


LABELLED = """
[target]
name = "ill"
classes = [0, 1]
[columns.answer]
type = "category"
categories = ["never", "often", "7"]
[missing]
answer = {indicator = true}
"""


@pytest.mark.parametrize("invalid", ["raise", "null"])
def test_a_value_without_a_label_is_its_number_and_changes_no_other_row(tmp_path, invalid):
    path, bounds = tmp_path / "t.dta", TableBounds.from_toml(LABELLED)
    codes, labels = [1, 2, 1, 2, 2, 1], {1: "never", 2: "often"}
    write_labelled(path, codes, labels)
    before = read_table(path, bounds, "ill", invalid=invalid)[0]
    assert before.tolist() == [[code == 1, code == 2, 0, 0] for code in codes]
    for odd, encoded in ((7, [0, 0, 1, 0]), (9, [0, 0, 0, 0]), (None, [0, 0, 0, 1])):
        write_labelled(path, [*codes, odd], labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            X = read_table(path, bounds, "ill", invalid=invalid)[0]
            with open_partitions(path, bounds, invalid=invalid) as table:
                assert np.array_equal(table.read(0)[0], X)
        assert np.array_equal(X[:-1], before)
        assert X[-1].tolist() == encoded
    # A number without a label beside a missing cell, which makes doubles of the whole numbers in its block.
    write_labelled(path, [7, None], labels)
    assert read_table(path, bounds, "ill", invalid=invalid)[0].tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]


def test_labels_that_two_values_share_are_one_category(tmp_path):
    path = tmp_path / "t.dta"
    write_labelled(path, [1, 2, 3], {1: "never", 2: "often", 3: "often"})
    X = read_table(path, TableBounds.from_toml(LABELLED), "ill")[0]
    assert X.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]


def test_types_of_a_stata_file_come_from_its_head_and_not_from_its_rows(tmp_path, monkeypatch):
    path = tmp_path / "t.dta"
    days = pd.to_datetime(["2020-01-01", "2020-02-01", None])
    write_labelled(path, [1, 2, None], {1: "never"}, name=["a", "", "long " * 900], age=[1.5, None, 3.0], seen=days)
    schema = read_schema(path)
    assert schema.names == ("answer", "ill", "name", "age", "seen")
    assert schema.kinds == ("category", "number", "category", "number", "date")
    selection = formats.ColumnSelection(dict.fromkeys(schema.names, "as it is"))
    file = table_file(path)
    (whole,) = formats.stream_batches(file, schema, selection)
    assert whole.to_pydict()["name"] == ["a", None, "long " * 900]
    # A missing cell in one block changes the types of none.
    monkeypatch.setattr(formats, "_CELLS", 1)
    single = list(formats.stream_batches(file, schema, selection))
    assert [batch.schema for batch in single] == [whole.schema] * 3
    assert [row for batch in single for row in batch.to_pylist()] == whole.to_pylist()
    # The rows are not there, and the schema is: what they hold refuses nothing before the charge.
    monkeypatch.setattr(pd.io.stata.StataReader, "read", lambda *_, **__: pytest.fail("rows were read"))
    assert read_schema(path) == schema
