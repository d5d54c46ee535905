"""The table of docs/errors.md: mistakes that people make, and what the command says about them.

Every mistake is made: its files are written into a folder, its command is run there, and what it prints is the text of
the page. The cells of the tables are marked, so that a test can tell that no message quotes one.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import sqlite3
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import in_page

from taciturn.app.cli import main as cli_main

MARKS = ("ZEBRA", "194242")
"""Stand in the cells of the tables, and in no message."""

HEADER = "age,crp,smoker,region,seen,ill"
ROW = "79.194242,0.5,true,hill,2021-04-27,yes"
OTHER = "20.5,0.25,false,dale,2020-01-31,no"
GOOD = "\n".join([HEADER, *[ROW, OTHER] * 6]) + "\n"

TARGET = '[target]\nname = "ill"\nclasses = ["no", "yes"]\n'
COLUMNS = {
    "age": 'type = "number"\nlower = 0\nupper = 110\n',
    "crp": 'type = "number"\nlower = 0\nupper = 300\n',
    "smoker": 'type = "boolean"\n',
    "region": 'type = "category"\ncategories = ["hill", "dale"]\n',
    "seen": 'type = "date"\nsince = 2000-01-01\nlower = 2015-01-01\nupper = 2025-01-01\n',
}


def bounds(more: str = "", *, target: str = TARGET, **columns: str | None) -> str:
    """The bounds file with other sections; None takes one out."""
    stated = {name: text for name, text in (COLUMNS | columns).items() if text is not None}
    return target + "".join(f"[columns.{name}]\n{text}" for name, text in stated.items()) + more


def table(**cells: str) -> str:
    """The table with other cells in one row."""
    row = dict(zip(HEADER.split(","), ROW.split(","), strict=True)) | cells
    return GOOD + ",".join(row.values()) + "\n"


def database(path: Path) -> None:
    """An SQLite file with two tables."""
    with contextlib.closing(sqlite3.connect(path)) as opened:
        for name in ("visits", "patients"):
            opened.execute(f"CREATE TABLE {name} (age, ill)")
        opened.commit()


FIT = "fit patients.csv --bounds bounds.toml -o out"
USUAL = re.compile(r"fit \S+ --bounds bounds\.toml -o out")
"""Not shown: the message names the file."""

Content = str | bytes | Callable[[Path], object]


@dataclass(frozen=True)
class Mistake:
    """What somebody did, the files that are different from good ones, and the command."""

    title: str
    files: dict[str, Content] = field(default_factory=dict)
    command: str = FIT


def on(name: str, content: Content, title: str) -> Mistake:
    """A fit to another file."""
    return Mistake(title, {name: content}, f"fit {name} --bounds bounds.toml -o out")


def cell(title: str, more: str = "", **cells: str) -> Mistake:
    """A fit to a table with other cells in one row."""
    return Mistake(title, {"patients.csv": table(**cells), "bounds.toml": bounds(more)})


def stating(title: str, text: str) -> Mistake:
    """A fit with another bounds file."""
    return Mistake(title, {"bounds.toml": text})


def asking(title: str, options: str) -> Mistake:
    """A fit with other options."""
    return Mistake(title, {}, f"{FIT} {options}")


MISTAKES: dict[str, list[Mistake]] = {
    "Files and formats": [
        Mistake("File not found", {}, "fit nobody.csv --bounds bounds.toml -o out"),
        on("empty.csv", b"", "Empty file"),
        on("patients.sav", b"$FL2 ZEBRA", "SPSS file (`.sav`)"),
        on("patients.xls", b"ZEBRA", "Old Excel file (`.xls`)"),
        on("patients.json", '{"age": [79.194242]}', "JSON file"),
        on("patients.txt", GOOD, "Another suffix (`.txt`)"),
        on("patients.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:60], "Truncated `.gz` file"),
        on("patients.csv", (GOOD + ROW.replace("hill", "h\xfcgel ZEBRA") + "\n").encode("latin-1"),
           "Text in another encoding than UTF-8"),
        on("patients.csv", GOOD.replace(",", ";"), "Semicolons as delimiters"),
        on("study.sqlite", database, "A database with several tables"),
        on("patients.csv", GOOD + ROW + ",ZEBRA\n", "Rows with too many cells"),
        on("patients.csv", GOOD + ROW.replace("yes", '"yes ZEBRA') + "\n", "Unclosed quote"),
        on("patients.csv", HEADER + "\n", "No rows"),
        on("patients.csv", GOOD.partition("\n")[2], "No header"),
    ],
    "Names of columns": [
        stating("Upper and lower case in a column name", bounds(Age=COLUMNS["age"], age=None)),
        stating("Misspelt column name", bounds("[missing]\nregoin = \"hill\"\n")),
        stating("Columns without a section in the bounds file", bounds(age=None, smoker=None)),
        on("patients.csv", GOOD.replace("crp", "age", 1), "Duplicate column names"),
        Mistake("Target column not found", {}, "init patients.csv --target Ill -o template.toml"),
        stating("Column of persons not found", bounds('[person]\ncolumn = "patient_id"\n')),
        Mistake("Missing columns in a table to predict",
                {"new.csv": "age,crp,smoker\n79.194242,0.5,true\n"}, "predict model.json new.csv -o out"),
    ],
    "Cells and missing values": [
        cell("Text in a column of numbers", age="ZEBRA"),
        cell("Numbers such as `<5`", age="<5"),
        cell("Decimal commas", age='"79,194242"'),
        cell("Missing values", age="", region="NA"),
        cell("Dates in another format", seen="27.4.2021 ZEBRA"),
        cell("A third value in a column of yes and no", smoker="ZEBRA"),
        cell("Several problems in cells", age="ZEBRA", smoker="ZEBRA", seen="ZEBRA", region=""),
        Mistake("No finite number to find bounds from",
                {"patients.csv": table(age="inf"), "bounds.toml": bounds(age='type = "number"\n')},
                f"{FIT} --private-bounds 0.5"),
    ],
    "The bounds file": [
        stating("Value not filled in", bounds(age='type = "number"\nlower = 0\nupper =\n')),
        stating("Text without quotes", bounds(region='type = "category"\ncategories = [hill]\n')),
        stating("Lower bound above the upper one", bounds(age='type = "number"\nlower = 110\nupper = 0\n')),
        stating("Missing bounds",
                bounds(age='type = "number"\n', crp='type = "number"\n')),
        stating("Unknown type", bounds(age='type = "integer"\n')),
        stating("Misspelt key", bounds(age='type = "number"\nlower = 0\nuper = 110\n')),
        stating("Missing categories", bounds(region='type = "category"\n')),
        stating("File of categories not found", bounds(region='type = "category"\ncategories_file = "r.txt"\n')),
        stating("A table as the file of categories",
                bounds(region='type = "category"\ncategories_file = "patients.csv"\n')),
        stating("Date without a day to count from", bounds(seen='type = "date"\n')),
        stating("Unknown date format", bounds(seen=f'{COLUMNS["seen"]}format = "DD.MM.YYYY"\n')),
        stating("Duplicate classes", bounds(target=TARGET.replace('"yes"', '"no"'))),
        stating("Replacement of missing values outside the bounds", bounds("[missing]\nage = 999\n")),
        stating("Unknown delimiter", bounds('[table]\ndelimiter = "semicolon"\n')),
        stating("Term of an unknown column", bounds('[terms]\nlist = ["aeg^2"]\n')),
        stating("Logarithm of a column that reaches zero", bounds('[terms]\nlist = ["log(crp)"]\n')),
        stating("Unknown encoding", bounds('[table]\nencoding = "klingon"\n')),
        stating("Several problems in the bounds file",
                bounds("[missing]\nage = 999\n", region='type = "category"\n', seen='type = "date"\n')),
    ],
    "Options": [
        Mistake("No bounds file", {}, "fit patients.csv -o out"),
        asking("Epsilon of zero", "--epsilon 0"),
        asking("Delta of one", "--delta 1"),
        asking("Number of features that is no number", "--nonzero many"),
        asking("Task that contradicts the bounds file", "--task regress"),
        asking("Share of the budget above one", "--private-bounds 1.5"),
        Mistake("Too few records to find bounds",
                {"bounds.toml": bounds(age='type = "number"\n')}, f"{FIT} --private-bounds 0.5"),
        Mistake("Existing output file", {"template.toml": "# mine\n"},
                "init patients.csv --target ill -o template.toml"),
        Mistake("Truncated model file", {"model.json": '{"format": "taciturn model"'}, "show model.json"),
    ],
}  # fmt: skip


def run(command: str) -> str:
    """What a command prints on standard error, in this process; it has to end with code 1."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["taciturn", *command.split()]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli_main.main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    if code != 1 and "--seed" not in command:
        raise AssertionError(f"{command}: exit code {code}\n{out.getvalue()}{err.getvalue()}")
    return err.getvalue()


def said_about_all() -> dict[str, list[tuple[Mistake, str]]]:
    """Make every mistake in a folder of its own, and return what is said."""
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as model, contextlib.chdir(model):
        _write({})
        run(f"{FIT} --nonzero all --epsilon inf --seed 1")
        text = Path("out/model.json").read_text(encoding="utf-8")
    said: dict[str, list[tuple[Mistake, str]]] = {}
    for part, mistakes in MISTAKES.items():
        for mistake in mistakes:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                Path("model.json").write_text(text, encoding="utf-8")
                _write(mistake.files)
                said.setdefault(part, []).append((mistake, run(mistake.command)))
    assert os.getcwd() == home
    return said


def _write(files: dict[str, Content]) -> None:
    for name, content in ({"patients.csv": GOOD, "bounds.toml": bounds()} | files).items():
        path = Path(name)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def shown(command: str, said: str) -> str:
    """The block of a message: the command, unless it is the usual fit, and every sentence in lines of the page."""
    lines = [] if USUAL.fullmatch(command) else [f"$ taciturn {command}"]
    for sentence in said.strip().splitlines():
        lines += textwrap.wrap(sentence, 86, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def page() -> str:
    """The table of the page: a heading for each part, and one for all mistakes that have the same message."""
    lines = []
    for part, mistakes in said_about_all().items():
        lines += [f"## {part}", ""]
        titles: dict[str, list[str]] = {}
        for mistake, said in mistakes:
            titles.setdefault(shown(mistake.command, said), []).append(mistake.title)
        for block, those in titles.items():
            lines += [f"### {'; '.join(those)}", "", "```text", block, "```", ""]
    return "\n".join(lines).strip()


if __name__ == "__main__":
    sys.exit(in_page.run(sys.argv[1:], "errors", "errors.md", page))
