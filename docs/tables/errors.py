"""The table of docs/errors.md: mistakes that people make, and what the command says about them.

Every mistake is made: its files are written into a folder, its command is run there, and what it prints is the text of
the page. The cells of the tables are marked, so that a test can tell that no message quotes one.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sqlite3
import sys
import tempfile
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
    "The file": [
        Mistake("The file is somewhere else", {}, "fit nobody.csv --bounds bounds.toml -o out"),
        on("empty.csv", b"", "The file is empty"),
        on("patients.sav", b"$FL2 ZEBRA", "The file is of SPSS"),
        on("patients.xls", b"ZEBRA", "The file is of an old spreadsheet program"),
        on("patients.json", '{"age": [79.194242]}', "The file is JSON"),
        on("patients.txt", GOOD, "The name of the file does not tell its format"),
        on("patients.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:60], "A packed file was cut off"),
        on("patients.csv", (GOOD + ROW.replace("hill", "h\xfcgel ZEBRA") + "\n").encode("latin-1"),
           "The text is not UTF-8"),
        on("patients.csv", GOOD.replace(",", ";"), "The delimiter is a semicolon, and nothing says so"),
        on("study.sqlite", database, "A database has several tables, and none is named"),
        on("patients.csv", GOOD + ROW + ",ZEBRA\n", "A row has more cells than the header has names"),
        on("patients.csv", GOOD + ROW.replace("yes", '"yes ZEBRA') + "\n", "A quote is never closed"),
        on("patients.csv", HEADER + "\n", "There is a header and no row"),
        on("patients.csv", GOOD.partition("\n")[2], "There is no header"),
    ],
    "Names": [
        stating("A name in other letters", bounds(Age=COLUMNS["age"], age=None)),
        stating("A name that is misspelt", bounds("[missing]\nregoin = \"hill\"\n")),
        stating("Columns about which nothing is stated", bounds(age=None, smoker=None)),
        on("patients.csv", GOOD.replace("crp", "age", 1), "Two columns of one name"),
        Mistake("The target is called otherwise", {}, "init patients.csv --target Ill -o template.toml"),
        stating("The column of persons is not there", bounds('[person]\ncolumn = "patient_id"\n')),
        Mistake("A table to predict lacks columns",
                {"new.csv": "age,crp,smoker\n79.194242,0.5,true\n"}, "predict model.json new.csv -o out"),
    ],
    "Cells": [
        cell("A word among numbers", age="ZEBRA"),
        cell("Numbers below a limit, and nothing says so", crp="<5"),
        cell("Decimal commas, and nothing says so", age='"79,194242"'),
        cell("Missing cells without anything that stands for them", age="", region="NA"),
        cell("A date of another format", seen="27.4.2021 ZEBRA"),
        cell("A third word among yes and no", smoker="ZEBRA"),
        cell("Several of these at once", age="ZEBRA", smoker="ZEBRA", seen="ZEBRA", region=""),
        Mistake("A table that has no numbers where bounds are to be found",
                {"patients.csv": table(age="inf"), "bounds.toml": bounds(age='type = "number"\n')},
                f"{FIT} --private-bounds 0.5"),
    ],
    "The bounds file": [
        stating("A value is not filled in", bounds(age='type = "number"\nlower = 0\nupper =\n')),
        stating("A quote is forgotten", bounds(region='type = "category"\ncategories = [hill]\n')),
        stating("Bounds the wrong way round", bounds(age='type = "number"\nlower = 110\nupper = 0\n')),
        stating("Bounds are missing, and none are to be found",
                bounds(age='type = "number"\n', crp='type = "number"\n')),
        stating("A type that there is not", bounds(age='type = "integer"\n')),
        stating("A key that is misspelt", bounds(age='type = "number"\nlower = 0\nuper = 110\n')),
        stating("Categories are missing", bounds(region='type = "category"\n')),
        stating("A file of categories is not there", bounds(region='type = "category"\ncategories_file = "r.txt"\n')),
        stating("A table in the place of a file of categories",
                bounds(region='type = "category"\ncategories_file = "patients.csv"\n')),
        stating("A date without a public day", bounds(seen='type = "date"\n')),
        stating("A format that is no format of dates", bounds(seen=f'{COLUMNS["seen"]}format = "DD.MM.YYYY"\n')),
        stating("A class twice", bounds(target=TARGET.replace('"yes"', '"no"'))),
        stating("What is filled in lies outside the bounds", bounds("[missing]\nage = 999\n")),
        stating("A delimiter that there is not", bounds('[table]\ndelimiter = "semicolon"\n')),
        stating("A term of a column that there is not", bounds('[terms]\nlist = ["aeg^2"]\n')),
        stating("A logarithm of a column that reaches zero", bounds('[terms]\nlist = ["log(crp)"]\n')),
        stating("An encoding that there is not", bounds('[table]\nencoding = "klingon"\n')),
        stating("Several of these at once",
                bounds("[missing]\nage = 999\n", region='type = "category"\n', seen='type = "date"\n')),
    ],
    "Options": [
        Mistake("No bounds at all", {}, "fit patients.csv -o out"),
        asking("No budget", "--epsilon 0"),
        asking("A delta that allows everything", "--delta 1"),
        asking("A number of features that is none", "--nonzero many"),
        asking("A task that contradicts the bounds file", "--task regress"),
        asking("A share that is none", "--private-bounds 1.5"),
        Mistake("Too few records to find bounds",
                {"bounds.toml": bounds(age='type = "number"\n')}, f"{FIT} --private-bounds 0.5"),
        Mistake("A template that is there already", {"template.toml": "# mine\n"},
                "init patients.csv --target ill -o template.toml"),
        Mistake("A model file that was cut off", {"model.json": '{"format": "taciturn model"'}, "show model.json"),
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


def page() -> str:
    """The table of the page: a heading for each part, and for each mistake the command and its messages."""
    lines = []
    for part, mistakes in said_about_all().items():
        lines += [f"## {part}", ""]
        for mistake, said in mistakes:
            lines += [f"**{mistake.title}**", "", "```text", f"$ taciturn {mistake.command}", said.strip(), "```", ""]
    return "\n".join(lines).strip()


if __name__ == "__main__":
    sys.exit(in_page.run(sys.argv[1:], "errors", "errors.md", page))
