"""What bounds files may say, and the template for them."""

import gzip
import pickle
import re
import sqlite3
import tomllib
from dataclasses import replace
from datetime import datetime

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tables_on_disk import BOUNDS, TABLE, bounds, read_schema_of

from taciturn import open_table
from taciturn.core.errors import DataError, ParameterError, SeveralProblemsError
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    TableLayout,
    TableSchema,
    Target,
    bounds_template,
    columns,
    detect_table,
    open_partitions,
    propose,
    read_batches,
    read_person_keys,
    read_schema,
    read_table,
)

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
        (
            HEAD + '[columns.x]\ntype = "boolean"\nlower = 0',
            "^columns.\"x\"='lower': expected no key but type, missing",
        ),
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
        (
            HEAD + "[defaults]\nlower = 0\nupper = 1\nstep = 1",
            "^defaults='step': expected no key but type",
        ),
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
        (HEAD + "[columns.age\n", r"^bounds='': expected TOML, found a mistake in line 5"),
        (HEAD + "lower = 0\n", "^bounds='': expected TOML, found a mistake in line 5"),
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
        (
            {},
            '^columns=.*: expected a section for every column of the table, such as "born", "age", .*; add one, with',
        ),
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
    with pytest.raises((ParameterError, SeveralProblemsError), match=message):
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
    with pytest.raises(DataError, match='^"t.csv": expected columns separated by commas, got one'):
        read_schema(path)


# ------------------------------------------------------------------ the template


def filled(template):
    """As an owner would fill it in."""
    text = re.sub(r"^# lower =$", "lower = -1", template, flags=re.MULTILINE)
    text = re.sub(r"^# upper =$", "upper = 1", text, flags=re.MULTILINE)
    text = re.sub(r"^# \[defaults\]\nlower", "[defaults]\nlower", text, flags=re.MULTILINE)
    return re.sub(r"^# (categories|classes) =$", r'\1 = ["a", "b"]', text, flags=re.MULTILINE)


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
    types = {"unknown": "ignore"}
    assert {name: column.type for name, column in stated.columns.items()} == {
        name: types.get(kind, kind)
        for name, kind in zip(schema.names, schema.kinds, strict=True)
        if name != schema.names[1]
    }
    # The template is TOML as it is, and its first parser tells every list that is missing at once.
    assert tomllib.loads(template)["target"]["name"] == schema.names[1]
    lists = sum(kind == "category" for name, kind in zip(schema.names, schema.kinds, strict=True)
                if name != schema.names[1])  # fmt: skip
    if lists:
        with pytest.raises((ParameterError, SeveralProblemsError)) as caught:
            bounds(template)
        assert str(caught.value).count("expected at least one category") == lists


def test_blanks_are_all_told():
    with pytest.raises(SeveralProblemsError) as caught:
        bounds(HEAD + "[columns.x]\nlower =\n[columns.y]\nupper = # what?\n")
    assert [str(error)[: str(error).index(";")] for error in caught.value.errors] == [
        "columns.x.lower='': expected a value, got a blank in line 6",
        "columns.y.upper='': expected a value, got a blank in line 8",
    ]


def test_a_template_of_a_wide_or_sparse_table_has_defaults():
    names = ("y", *(f"x{i}" for i in range(500)), "region")
    schema = TableSchema(names, ("number", *["number"] * 500, "category"))
    text = filled(bounds_template(schema, "y"))
    assert tomllib.loads(text)["defaults"] == {"lower": -1, "upper": 1}
    assert list(tomllib.loads(text)["columns"]) == ["region"]
    assert len(bounds(text).for_table(schema).feature_names) == 502
    narrow = TableSchema(names[:501], ("number",) * 501 if len(names[:501]) == 501 else ())
    defaults = "[defaults]\n# lower ="
    assert defaults in bounds_template(narrow, "y")
    assert defaults not in bounds_template(TableSchema(names[:500], ("number",) * 500), "y")
    sparse = TableSchema(("label", "1", "2"), ("number",) * 3, sparse=True)
    assert defaults in bounds_template(sparse, "label")
    assert "columns" not in bounds(filled(bounds_template(sparse, "label"))).columns


def test_a_template_holds_no_value_of_the_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("when,what,much,ok,who\n2011-11-11,SECRET-7f3a,98765.4321,true,SECRET\n")
    template = bounds_template(read_schema(path), "who")
    for cell in ("2011", "SECRET", "98765", "7f3a"):
        assert cell not in template
    assert template.index("[target]") < template.index("[columns")
    assert "# Days since a public day" in template
    with pytest.raises(ParameterError, match="^target='whom': expected the name of a column of the table"):
        bounds_template(read_schema(path), "whom")


# ------------------------------------------------------------------ names that look like values

WITHOUT_HEADER = {
    "a record of numbers": ["63", "1.5", "0"],
    "one number among words": ["male", "63", "north"],
    "a negative number": ["-0.25", "male"],
    "an exponent": ["1.5e-05", "male"],
    "a censored number": ["<5", "male"],
    "a decimal comma": ["1,5", "male"],
    "a share": ["63 %", "male"],
    "a day": ["1970-01-31", "male"],
    "a day in another order": ["31/12/1970", "male"],
    "a day with the name of a month": ["31-Jan-1970", "male"],
    "an American day": ["January 31, 1970", "male"],
    "a moment": ["1970-01-31T12:30:00Z", "male"],
    "a time": ["10:30 AM", "male"],
    "a truth": ["male", "False"],
    "a missing cell": ["male", "NA"],
    "an unknown cell": ["male", "?"],
    "an empty cell": ["male", "", "north"],
    "a blank cell": [" ", "male"],
    "an address": ["male", "jane@example.org"],
    "a cell twice, renamed": ["male", "male.1"],
    "an empty cell, renamed": ["male", "Unnamed: 1"],
    "few positions, which may be truths": ["0", "1"],
    "numbers that are no positions": ["1", "2", "3", "4", "6"],
    "years": ["2019", "2020", "2021", "2022", "2023"],
}
NAMED = {
    "ordinary names": ["age", "x1", "2nd visit", "24h", "T4", "no", "y", "n", "Na", "C34", "dose (mg)", "a=b", "x.1"],
    "other alphabets": ["年龄", "возраст", "größe"],
    "positions from zero": ["0", "1", "2", "3", "4"],
    "positions from one beside others": ["id", "1", "2", "3", "4", "5", "6", "ill"],
    "an index": ["", "age", "ill"],
    "an index and positions": ["", "0", "1", "2", "3", "4", "ill"],
    "an index, renamed": ["Unnamed: 0", "age"],
    "a number sign": ["#", "age", "%"],
}  # fmt: skip


def write_names(path, names):
    """A table with these names; its cells are of any kind."""
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in (names, [1] * len(names)):
            book.active.append(row)
        book.save(path)
        return
    delimiter = "\t" if ".tsv" in path.name else ","
    rows = [delimiter.join(f'"{name}"' for name in names), delimiter.join(["1"] * len(names))]
    text = "\n".join(rows).encode() + b"\n"
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.mark.parametrize("file", ["t.csv", "t.tsv", "t.csv.gz", "t.xlsx"])
@pytest.mark.parametrize("names", WITHOUT_HEADER.values(), ids=WITHOUT_HEADER)
def test_a_first_record_in_the_place_of_names_is_refused_and_not_quoted(tmp_path, names, file):
    path = tmp_path / file
    write_names(path, names)
    with pytest.raises(DataError, match=r"^\"t\.[a-z.]+\": expected names of columns") as caught:
        read_schema(path)
    said = str(caught.value).replace(path.name, "")
    assert not [name for name in names if len(name) > 2 and name in said]
    assert caught.value.__cause__ is None
    assert read_schema(path, TableLayout(header=True)).names == tuple(names)


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
def test_names_that_only_resemble_values_are_read(tmp_path, names):
    write_names(tmp_path / "t.csv", names)
    assert read_schema(tmp_path / "t.csv").names == tuple(names)


def test_a_number_in_the_first_row_of_a_sheet_is_no_name(tmp_path):
    write_names(tmp_path / "t.xlsx", [datetime(1970, 1, 31), "male"])
    with pytest.raises(DataError, match="expected names of columns, got one"):
        read_schema(tmp_path / "t.xlsx")


def test_names_of_formats_with_a_schema_are_names(tmp_path):
    table = pa.table({"2019": [1.0], "2020": [2.0]})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert read_schema(tmp_path / "t.parquet").names == ("2019", "2020")
    with sqlite3.connect(tmp_path / "t.sqlite") as database:
        database.execute('CREATE TABLE t ("2019", "2020")')
    database.close()
    assert read_schema(tmp_path / "t.sqlite").names == ("2019", "2020")


def test_every_reader_of_a_text_table_refuses_one_without_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("63,0.5\n64,0.25\n")
    stated = TableBounds(Target("0.5", 0, 1), {"63": Column("number", 0, 100)})
    readers = [
        lambda bounds: read_table(path, bounds, "0.5"),
        lambda bounds: open_partitions(path, bounds),
        lambda bounds: open_table(path, bounds),
        lambda bounds: list(read_batches(path, TableEncoder(bounds=bounds).fit(NUMBERS), "0.5")),
        lambda bounds: read_person_keys(path, replace(bounds, columns={}, person="63")),
    ]
    for read in readers:
        with pytest.raises(DataError, match="expected names of columns, got one"):
            read(stated)
        assert read(replace(stated, layout=TableLayout(header=True))) is not None
    with pytest.raises(DataError, match="expected names of columns, got one"):
        detect_table(path)
    assert detect_table(path, header=True).layout == TableLayout(header=True)


NUMBERS = TableSchema(("63", "0.5"), ("number", "number"))


def test_the_statement_that_names_are_names_is_kept_and_checked():
    text = HEAD + "[columns.x]\ntype = 'boolean'\n[table]\nheader = true\n"
    stated = bounds(text)
    assert stated.layout == TableLayout(header=True)
    assert TableBounds.from_json(stated.to_json()) == stated
    assert "header = true\n" in bounds_template(NUMBERS, "63", layout=TableLayout(header=True))
    for wrong in ("false", '"yes"', "1"):
        with pytest.raises(ParameterError, match=r"^table.header=.*: expected true.*; add a line of names"):
            bounds(text.replace("header = true", f"header = {wrong}"))


# ------------------------------------------------------------------ bounded work


def counted(monkeypatch, place, name):
    """The calls of a function, in a list that grows."""
    calls, call = [], getattr(place, name)
    monkeypatch.setattr(place, name, lambda *values, **options: calls.append(values) or call(*values, **options))
    return calls


@pytest.mark.parametrize("where", ["columns", "missing", "order"])
def test_unknown_names_are_searched_for_once_each(monkeypatch, where):
    """The names of the table are looked at once, and as many similar names are searched for as are told."""
    stated = {f"x{number}": Column("number", 0, 1) for number in range(400)}
    schema = TableSchema((*(f"c{number}" for number in range(400)), "ill"), ("number",) * 401)
    plain = counted(monkeypatch, columns, "_plain")
    similar = counted(monkeypatch, columns.difflib, "get_close_matches")
    if where == "missing":
        with pytest.raises(SeveralProblemsError, match="describe it in"):
            TableBounds(Target("ill", 0, 1), stated, missing=dict.fromkeys(schema.names[:400], 0.5))
    else:
        order = tuple(stated) if where == "order" else None
        with pytest.raises(SeveralProblemsError, match="table"):
            TableBounds(Target("ill", 0, 1), stated, order=order).for_table(schema)
    assert 400 < len(plain) < 4 * 400
    assert len(similar) <= 20


def test_the_indices_of_a_libsvm_file_are_no_names(monkeypatch):
    schema = TableSchema(("label", *map(str, range(1, 5001))), ("number",) * 5001, sparse=True)
    plain = counted(monkeypatch, columns, "_plain")
    with pytest.raises(SeveralProblemsError, match="the name of a column"):
        TableBounds(Target("label", 0, 1), {"x": Column("number", -1, 1)}).for_table(schema)
    assert len(plain) < 10
    persons = counted(monkeypatch, propose, "names_a_person")
    assert 'name = "label"' in bounds_template(schema, "label")
    assert len(persons) < 10


def test_long_names_are_not_compared(monkeypatch):
    similar = counted(monkeypatch, columns.difflib, "get_close_matches")
    assert columns.closest_name("a" * 10_000, ["a" * 9_999]) is None
    assert not similar
    assert columns.closest_name("aged", ["age", "b" * 10_000]) == "age"
    assert similar[0][1] == ["age"]


def test_keys_of_many_parts_are_refused_before_they_are_parsed(monkeypatch):
    parse = tomllib.loads
    deep = ".".join(["a"] * 21)
    good = f"""# {deep}
[target]
name = "ill"
classes = ["no", "yes"]
[columns."{deep}"]
type = "number"
lower = 0.5
upper = 1
"""
    texts = [f"{deep} = 1", f"[{deep}]", f"x = {{{deep} = 1}}", f"[[ {deep.replace('.', ' . ')} ]]",
             '"a".' * 20 + "'a' = 1", f'# """\n{deep} = 1\n# """', f'x = "#"\n{deep} = 1']  # fmt: skip
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was parsed"))
    for text in texts:
        with pytest.raises(ParameterError, match="expected keys of at most 20 parts"):
            TableBounds.from_toml(text)
    monkeypatch.setattr(tomllib, "loads", parse)
    assert list(TableBounds.from_toml(good).columns) == [deep]
    for other in (f'x = """\n{deep}\n"""', f"x = '''\n{deep}\n'''", f"x = '{deep}'", "x" * 1_000_000 + " = 1"):
        with pytest.raises(ParameterError, match="expected no key but"):
            TableBounds.from_toml(good + "[other]\n" + other)


def test_a_long_value_is_not_written_out_to_be_shortened():
    class Item:
        shown = 0

        def __repr__(self):
            Item.shown += 1
            return "x"

    text = str(columns.shorten([Item() for _ in range(10_000)]))
    assert text.startswith("[x, x, ")
    assert len(text) == 60
    assert Item.shown <= 60
