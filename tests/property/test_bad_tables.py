"""Bad tables, bounds and model files: each ends well or in one sentence, and no sentence holds a cell."""

import gzip
import json
import math
import os
import re
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet

from taciturn import SparseClassifier
from taciturn.app.model_file import Model
from taciturn.core.errors import SeveralProblemsError, TaciturnError, WeakBudgetWarning
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    TableLayout,
    Target,
    open_partitions,
    read_batches,
    read_schema,
    read_table,
)

WORD, NUMBER = "SECRET-7f3a", "98765.4321"
MARKS = re.compile(r"SECRET|7f3a|98765|4321", re.IGNORECASE)
BOUNDS = TableBounds(
    Target("y", classes=("yes", "no")),
    {
        "x": Column("number", -1, 1),
        "b": Column("boolean"),
        "c": Column("category", categories=("north", "south")),
        "text": Column("ignore"),
    },
)
# The same with terms and rules for single cells, none of which a good cell of BOUNDS needs.
RULED = replace(
    BOUNDS,
    columns=dict(BOUNDS.columns) | {"x": Column("number", -1, 1, missing_values=("k.A.",))},
    layout=TableLayout(encoding="utf-8", thousands="'", missing_values=("-999", ".")),
    terms=("x^2", "spline(x, -0.5, 0, 0.5, 0.75)", "x:b", "b:c", "c:x"),
)
SPARSE = TableBounds(Target("label", -1, 1), defaults=Column("number", -1, 1))


def check_sentence(error):
    """One sentence of ours for each problem, without a cell in it or in whatever travels along."""
    assert isinstance(error, TaciturnError), f"{type(error)}"
    if isinstance(error, SeveralProblemsError):
        for each in error.errors:
            check_sentence(each)
        return
    sentence = str(error)
    assert sentence.endswith("."), sentence
    assert "; " in sentence, sentence
    assert "\n" not in sentence
    assert len(sentence) < 700
    while error is not None:
        assert not MARKS.search(str(error)), "a cell was quoted"
        error = error.__context__ or error.__cause__


def ends_well_or_in_a_sentence(call):
    """Whether a call ends well; if not, in a sentence."""
    try:
        call()
    except Exception as error:
        check_sentence(error)
        return False
    return True


def every_way(path, bounds=BOUNDS):
    """Read a file in every way there is; whether all of them end well."""
    encoder = TableEncoder(bounds=bounds if bounds is SPARSE else replace(bounds, order=("x", "b", "c")))
    if bounds is SPARSE:
        encoder = TableEncoder(bounds=TableBounds(SPARSE.target, defaults=SPARSE.defaults, order=("1", "3")))
    encoder.fit(pa.table({name: [] for name in ("x", "b", "c", "1", "3")}))
    name = bounds.target.name
    ways = [
        lambda: read_schema(path, bounds.layout),
        lambda: read_table(path, bounds, name),
        lambda: list(read_batches(path, encoder)),
        lambda: list(read_batches(path, encoder, name)),
        lambda: check_partitions(path, bounds),
    ]
    return [ends_well_or_in_a_sentence(way) for way in ways] == [True] * len(ways)


def check_partitions(path, bounds):
    with open_partitions(path, bounds) as table:
        table.check()


HEAD = "y,x,b,c,text\n"
GOOD_ROW = f"yes,{NUMBER},true,{WORD},{WORD}\n"
GOOD = HEAD + GOOD_ROW + f"no,-0.5,0,north,{NUMBER}\n"

GOOD_TEXTS = {
    "plain": GOOD,
    "byte order mark": "\ufeff" + GOOD,
    "other line ends": GOOD.replace("\n", "\r\n"),
    "blank lines": GOOD.replace("\n", "\n\n"),
    "no last line end": GOOD[:-1],
    "line break in a cell": GOOD + f'yes,1,1,north,"{WORD}\n{WORD}"\n',
    "quotes in a cell": GOOD + f'yes,1,1,north,"{WORD}""{NUMBER}"\n',
    "numbers in quotes": GOOD + '"yes","1","1","north","x"\n',
    "unknown label and category": GOOD + f"{WORD},1,1,{WORD},x\n",
    "labels that are missing": GOOD + ",1,1,north,x\nNA,1,1,north,x\n",
    "infinity": GOOD + "yes,inf,1,north,x\nyes,-Infinity,1,north,x\n",
    "huge numbers": GOOD + f"yes,1e400,1,north,x\nyes,{'9' * 400},1,north,x\n",
    "an emoji": GOOD + "yes,1,1,\U0001f600,x\n",
    "a long cell": GOOD + f"yes,1,1,north,{'z' * 100_000}\n",
    "quotes in the middle of a cell": GOOD + f'yes,1,1,north,5" {WORD}"\nyes,1,1,north,x\n',
}
BAD_TEXTS = {
    "nothing but a header": HEAD,
    "a header without a line end": HEAD[:-1],
    "line ends": "\n\n\n",
    "a space": " ",
    "a short row": GOOD + f"yes,{NUMBER}\n",
    "a long row": GOOD + GOOD_ROW.replace("\n", f",{WORD}\n"),
    "a first row that is short": HEAD + f"{WORD}\n" + GOOD_ROW,
    "semicolons": GOOD.replace(",", ";"),
    "tabs and bars": GOOD.replace(",", "\t|"),
    "bars": GOOD.replace(",", "|"),
    "spaces": GOOD.replace(",", " "),
    "a name twice": GOOD.replace("text", "x", 1),
    "an empty name twice": GOOD.replace("b,c,text", "b,,", 1),
    "a name that is missing": GOOD.replace("x", "X", 1),
    "a target that is missing": GOOD.replace("y", "Y", 1),
    "words among numbers": GOOD + f"yes,{WORD},1,north,x\n",
    "a word far below": GOOD * 1 + GOOD_ROW * 3000 + f"yes,{WORD},1,north,x\n",
    "dates among numbers": GOOD + "yes,2011-11-11,1,north,x\n",
    "a comma as the point": GOOD + f'yes,"{NUMBER.replace(".", ",")}",1,north,x\n',
    "a thousands separator": GOOD + 'yes,"98765,4321.0",1,north,x\n',
    "words among truths": GOOD + f"yes,1,{WORD},north,x\n",
    "numbers among truths": GOOD + f"yes,1,{NUMBER},north,x\n",
    "a missing number": GOOD + "yes,,1,north,x\n",
    "a number called nan": GOOD + "yes,NAN,1,north,x\n",
    "a missing truth": GOOD + "yes,1,,north,x\n",
    "a missing category": GOOD + "yes,1,1,,x\n",
    "a column that nothing is stated about": GOOD.replace("\n", ",1\n").replace("text,1", "text,extra"),
    "no names": GOOD_ROW * 3,
    # Two rows would pass for one, or the rest of the table for a cell.
    "quotes that do not end": GOOD + f'yes,1,1,north,"{WORD}\n' * 2,
    "a quote that does not end": GOOD + f'yes,1,1,north,"{WORD}\n' + GOOD_ROW * 2,
    "a word after a quote": GOOD + f'yes,1,1,north,"{WORD}"{WORD}\n',
    "json": json.dumps({"y": [WORD], "x": [NUMBER]}),
    "html": f"<html><table><tr><td>{WORD}</td></tr></table></html>\n",
    "zeros inside": GOOD + f"yes,1\0,1,north,{WORD}\n",
    "zeros in the header": "\0" + GOOD,
    "utf-8": (GOOD + f"yes,1,1,{WORD}\xff,x\n").encode("latin-1"),
    "utf-8 in a number": (GOOD + f"yes,{NUMBER}\xff,1,north,x\n").encode("latin-1"),
    "utf-8 in the header": GOOD.encode().replace(b"text", b"te\xfft"),
    "utf-16": GOOD.encode("utf-16"),
    "utf-16 without a mark": GOOD.encode("utf-16-le"),
    "utf-32": GOOD.encode("utf-32"),
    "a zip": b"PK\x03\x04" + WORD.encode() * 20,
    "random bytes": np.random.default_rng(0).bytes(5000),
    "gzip without the name": gzip.compress(GOOD.encode()),
}


@pytest.mark.parametrize("what", GOOD_TEXTS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_texts_that_are_strange_but_good(tmp_path, what, suffix):
    text = GOOD_TEXTS[what].replace(",", "\t") if suffix == ".tsv" else GOOD_TEXTS[what]
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("z") else text.encode())
    assert every_way(path)


@pytest.mark.parametrize("what", GOOD_TEXTS)
def test_texts_that_are_good_are_good_by_more_rules(tmp_path, what):
    path = tmp_path / "t.csv"
    path.write_bytes(GOOD_TEXTS[what].encode())
    assert every_way(path, RULED)
    path.write_bytes(GOOD_TEXTS[what].encode("utf-16"))
    assert every_way(path, replace(RULED, layout=replace(RULED.layout, encoding="utf-16")))


@pytest.mark.parametrize("what", BAD_TEXTS)
def test_texts_that_are_bad_are_bad_by_more_rules(tmp_path, what):
    content = BAD_TEXTS[what]
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert not every_way(path, RULED)
    if isinstance(content, bytes):
        # In another encoding it is another text, which ends well or in a sentence.
        every_way(path, replace(RULED, layout=replace(RULED.layout, encoding="cp1252")))


@pytest.mark.parametrize("what", BAD_TEXTS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".svm"])
def test_texts_that_are_bad(tmp_path, what, suffix):
    content = BAD_TEXTS[what]
    content = content.encode() if isinstance(content, str) else content
    path = tmp_path / f"t{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("z") else content)
    assert not every_way(path, SPARSE if suffix == ".svm" else BOUNDS)


def test_the_check_rejects_what_others_say(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(BAD_TEXTS["words among numbers"])
    with pytest.raises(pa.ArrowInvalid) as theirs:
        csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"x": pa.float64()}))
    with pytest.raises(AssertionError):
        check_sentence(theirs.value)

    class ChattyError(TaciturnError):
        pass

    with pytest.raises(AssertionError, match="a cell was quoted"):
        check_sentence(ChattyError(f"x: expected a number, got {WORD}; correct it."))
    try:
        try:
            raise ValueError(WORD)
        except ValueError:
            raise ChattyError("x: expected a number, got text; correct it.") from None
    except ChattyError as error:
        with pytest.raises(AssertionError, match="a cell was quoted"):
            check_sentence(error)


# ------------------------------------------------------------------ files that break off


TABLE = pa.table(
    {
        "y": ["yes", "no"] * 40,
        "x": np.linspace(-1, 1, 80),
        "b": [True, False] * 40,
        "c": ["north", WORD] * 40,
        "text": [WORD, NUMBER] * 40,
    }
)
SVM = "".join(f"{i % 2} 1:{i / 7:.4f} 3:{NUMBER}\n" for i in range(60))


def whole(folder, name):
    path = folder / name
    if name.endswith(".parquet"):
        parquet.write_table(TABLE, path)
    elif name.endswith(".feather"):
        feather.write_feather(TABLE, str(path))
    elif name.endswith(".arrow"):
        feather.write_feather(TABLE, str(path), compression="uncompressed")
    elif name.endswith(".ipc"):
        with pa.ipc.new_stream(path, TABLE.schema) as writer:
            writer.write_table(TABLE)
    elif name.endswith(".svm.gz"):
        path.write_bytes(gzip.compress(SVM.encode()))
    else:
        path.write_bytes(gzip.compress((GOOD + GOOD_ROW * 100).encode()))
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.ipc", "t.csv.gz", "t.svm.gz"])
def test_files_that_break_off_or_are_damaged(tmp_path, name):
    path = whole(tmp_path, name)
    bounds = SPARSE if ".svm" in name else BOUNDS
    assert every_way(path, bounds)
    content = path.read_bytes()
    for share in (0.02, 0.3, 0.6, 0.95):
        path.write_bytes(content[: int(share * len(content))])
        assert not every_way(path, bounds)
    rng = np.random.default_rng(0)
    for _ in range(12):
        changed = bytearray(content)
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(changed))
        every_way(path, bounds)


BAD_LINES = [
    f"{WORD} 1:1", f"1 1:{WORD}", f"1 {WORD}:1", "1 3:1 1:1", "1 1:1 1:2", "1 -1:1", "1 99999999999:1", "1 5000000:1",
    "1,2 1:1", f"1 1:{NUMBER}:3", "1 1:nan", "nan 1:1", "1 :", "\xff", f"{{'{WORD}': 1}}", "1 1: 1", "1 1.5:1",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES)
def test_sparse_lines_that_are_bad(tmp_path, line):
    path = tmp_path / "t.svm"
    path.write_bytes((SVM + line + "\n" + SVM).encode("latin-1"))
    assert not every_way(path, SPARSE)


# ------------------------------------------------------------------ files that are no tables


@pytest.mark.parametrize("name", ["t.ods", "t", "t.gz", "t.parquet.gz", "t.csv.zip", "t.txt", ".csv", "csv", "t.csv."])
def test_names_of_other_formats(tmp_path, name):
    path = tmp_path / name
    path.write_text(GOOD)
    with pytest.raises(TaciturnError, match=r"^table='.*': expected a file named \.csv, \.tsv or \.libsvm") as caught:
        read_schema(path)
    check_sentence(caught.value)


def test_paths_that_lead_nowhere(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    closed = tmp_path / "closed.csv"
    closed.write_text(GOOD)
    closed.chmod(0)
    for name in ("folder.csv", "empty.csv", "loop.csv", "nobody.csv", "a\0b.csv", "x" * 300 + ".csv", "no/body.csv"):
        assert not every_way(tmp_path / name)
    if not os.access(closed, os.R_OK):
        assert not every_way(closed)


def test_a_million_columns_are_refused(tmp_path):
    path = tmp_path / "wide.csv"
    names = ",".join(f"x{i}" for i in range(1_000_000))
    path.write_text(f"{names}\n{','.join(['1'] * 1_000_000)}\n")
    with pytest.raises(
        TaciturnError, match=r"expected at most 50,000 columns, got 1,000,000; write so wide a table as"
    ):
        read_schema(path)
    path.write_text("x" * (1 << 24))
    with pytest.raises(TaciturnError, match="expected a line of text with the names of the columns, got a binary file"):
        read_schema(path)
    # A libsvm file may be wider.
    path = tmp_path / "wide.svm"
    path.write_text("1 1:1 100000:0.5\n")
    assert read_table(path, SPARSE, "label")[0].shape == (1, 100_000)


# ------------------------------------------------------------------ generated ones


CELLS = st.one_of(
    st.sampled_from(
        ["", "NA", "1", "0", "true", "yes", "no", "north", WORD, NUMBER, '"', ",", "\n", "\r", "\0", "é", "1e9"]
    ),
    st.text(max_size=6),
    st.floats().map(str),
)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(rows=st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=6), quote=st.booleans(), header=st.booleans())
def test_generated_texts(tmp_path_factory, rows, quote, header):
    def cell(value):
        return '"' + value.replace('"', '""') + '"' if quote else value

    path = tmp_path_factory.getbasetemp() / "generated.csv"
    lines = "".join(",".join(map(cell, row)) + "\n" for row in rows)
    path.write_bytes(((HEAD if header or MARKS.search(lines) else "") + lines).encode("utf-8", "surrogatepass"))
    every_way(path)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["a", "", "number", "category", "y", "x"]),
    st.lists(st.integers(0, 2), max_size=3),
    st.dictionaries(st.sampled_from(["a", "type", "lower"]), st.integers(0, 2), max_size=2),
)
TOML = """
[target]
name = "y"
classes = ["a", "b"]
[columns.x]
type = "number"
lower = 0
upper = 1
[columns."region x"]
type = "category"
categories = ["north", "south"]
[defaults]
lower = -1
upper = 1
[missing]
x = 0.5
"""


@settings(derandomize=True, deadline=None, max_examples=150)
@given(place=st.integers(0, len(TOML)), length=st.integers(0, 12), text=st.text("=[]\"'#\n.0a-e ", max_size=4))
def test_generated_bounds(place, length, text):
    changed = TOML[:place] + text + TOML[place + length :]
    if ends_well_or_in_a_sentence(lambda: TableBounds.from_toml(changed)):
        stated = TableBounds.from_toml(changed)
        assert TableBounds.from_json(stated.to_json()) == stated


@pytest.fixture(scope="module")
def model():
    encoder = TableEncoder(bounds=BOUNDS).fit(TABLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakBudgetWarning)
        estimator = SparseClassifier(classes=("no", "yes"), random_state=0).fit(encoder.transform(TABLE), TABLE["y"])
    return Model(encoder.bounds_, estimator, "test").to_json()


def places_in(content, path=()):
    """The paths to all values, whole branches included."""
    yield path
    children = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, child in children:
        yield from places_in(child, (*path, key))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(data=st.data())
def test_generated_model_files(model, data):
    content = json.loads(model)
    path = data.draw(st.sampled_from([path for path in places_in(content) if path]))
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = data.draw(VALUES)
    text = json.dumps(content)
    if ends_well_or_in_a_sentence(lambda: Model.from_json(text)):
        read = Model.from_json(text)
        assert np.isfinite(read.pipeline().decision_function(TABLE)).all()
        assert math.isfinite(read.certificate.delta)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(cut=st.floats(0, 1, exclude_max=True))
def test_model_files_that_break_off(model, cut):
    assert not ends_well_or_in_a_sentence(lambda: Model.from_json(model[: int(cut * len(model))]))
