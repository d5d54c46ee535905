"""Bad tables with types of their own, and places that hold no table."""

from __future__ import annotations

import io
import os
import sqlite3
import zipfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import openpyxl
import pyarrow as pa
from bad_inputs import CANARY, Case, on_table
from bad_text_tables import GOOD
from commands import HEADER, SECRET, patients
from pyarrow import feather, parquet

N = 12
COLUMNS = {
    "age": pa.array([float(CANARY), 20.5] * 6),
    "dose": pa.array([0.5, -0.25] * 6),
    "smoker": pa.array([True, False] * 6),
    "region": pa.array(["hill", "dale"] * 6),
    "ill": pa.array(["yes", "no"] * 6),
}


def changed(**columns):
    """The table with other columns; None takes one out."""
    arrays = {name: values for name, values in (COLUMNS | columns).items() if values is not None}
    return pa.table(
        {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in arrays.items()}
    )


BAD_COLUMNS = {
    "text for numbers": changed(age=[SECRET, CANARY] * 6),
    "dates for numbers": changed(age=[date(1970, 1, 31)] * N),
    "moments for numbers": changed(age=[datetime(1970, 1, 31, 12)] * N),
    "times for numbers": changed(age=[time(12)] * N),
    "durations for numbers": changed(age=[timedelta(days=3)] * N),
    "bytes for numbers": changed(age=[SECRET.encode()] * N),
    "lists for numbers": changed(age=[[float(CANARY)]] * N),
    "records for numbers": changed(age=[{"value": float(CANARY)}] * N),
    "nothing for numbers": changed(age=pa.nulls(N)),
    "gaps among numbers": changed(age=[float(CANARY), None] * 6),
    "nan among numbers": changed(age=[float(CANARY), float("nan")] * 6),
    "gaps among decimals": changed(age=[Decimal(CANARY), None] * 6),
    "gaps among categories": changed(region=["hill", None] * 6),
    "dates for categories": changed(region=[date(1970, 1, 31)] * N),
    "lists for categories": changed(region=[[SECRET]] * N),
    "records for categories": changed(region=[{"name": SECRET}] * N),
    "numbers for truths": changed(smoker=[float(CANARY), 1.0] * 6),
    "text for truths": changed(smoker=[SECRET, "true"] * 6),
    "dates for truths": changed(smoker=[date(1970, 1, 31)] * N),
    "gaps among truths": changed(smoker=[True, None] * 6),
    "lists as the target": changed(ill=[[SECRET]] * N),
    "a column less": changed(dose=None),
    "a column more": changed(name=[SECRET] * N),
    "no target": changed(ill=None),
    "no rows": changed().slice(0, 0),
    "a name twice": pa.Table.from_arrays([*changed().columns, changed()["age"]], [*COLUMNS, "age"]),
    "no columns": pa.table({}),
}


def written(table, suffix):
    """The bytes of a table in a format."""
    sink = pa.BufferOutputStream()
    if suffix == "parquet":
        parquet.write_table(table, sink)
    elif suffix == "feather":
        feather.write_feather(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue().to_pybytes()


def cases():
    """Every bad column in every format, damaged files, and places."""
    for name, table in BAD_COLUMNS.items():
        for suffix in ("parquet", "feather", "arrow"):
            if (suffix, name) == ("parquet", "durations for numbers"):
                continue  # the format has none
            arguments = on_table("fit", f"t.{suffix}")
            yield Case(f"{suffix}: {name}", arguments, {f"t.{suffix}": written(table, suffix)})
    for suffix in ("parquet", "feather", "arrow"):
        yield from _damaged(suffix)
    yield from _places()
    yield from _costly(stray="XFD2000", strings=1_000_000)


def heavy():
    """Costly tables in their full size, and files of millions of entries; large ones are made when they are needed."""
    yield from _costly(stray="XFD1048576", strings=8_000_000)
    bounds = '[target]\nname = "label"\nclasses = [0, 1]\n[columns.x]\ntype = "number"\nlower = -1\nupper = 1\n'

    def write_line(path: Path) -> None:
        path.write_text("1" + "".join(f" {index}:1" for index in range(1, 3_000_001)) + "\n0 1:1\n")

    for name, table in (("four million columns", "1 1:1 4000000:1\n0 2:1\n"), ("a long line", write_line)):
        files = {"t.svm": table, "bounds.toml": bounds}
        yield Case(f"fit svm: {name}", on_table("fit", "t.svm"), files, says="the name of a column of the table")
    names = [f"c{number}" for number in range(10_000)]
    files = {
        "t.csv": ",".join([*names, "ill"]) + "\n" + "1," * 10_000 + "yes\n",
        "bounds.toml": '[target]\nname = "ill"\nclasses = ["no", "yes"]\n'
        + "".join(f'[columns.x{number}]\ntype = "boolean"\n' for number in range(10_000)),
    }
    yield Case("fit csv: ten thousand unknown columns", on_table("fit", "t.csv"), files, says="more; mend these first")

    def write_values(path: Path) -> None:
        path.write_text('{"format": "taciturn model", "version": 2, "n": [' + "1," * 40_000_000 + "1]}")

    yield Case("show: forty million values", ("show", "m.json"), {"m.json": write_values}, says="the file is damaged")


def _workbook(change=lambda sheet: None, **parts):
    """What writes a workbook, with other texts for its parts."""

    def make(path: Path) -> None:
        book, written = openpyxl.Workbook(), io.BytesIO()
        for row in [HEADER, *patients(12)]:
            book.active.append(row)
        change(book.active)
        book.save(written)
        with zipfile.ZipFile(written) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                made = next((make for part, make in parts.items() if part in name), lambda text: text)
                new.writestr(name, made(old.read(name)))

    return make


def _stray(at):
    def change(sheet):
        sheet[at] = CANARY

    return _workbook(change)


_SST = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"


def _with_texts(n_strings):
    """A workbook with a list of distinct texts, in the place of a part that is not used."""
    start = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    theme = b"application/vnd.openxmlformats-officedocument.theme+xml"
    return _workbook(
        theme=lambda text: start + b"<si><t>a</t></si>" * n_strings + b"</sst>",
        Content_Types=lambda text: text.replace(theme, _SST),
    )


def _view(cell):
    def make(path: Path) -> None:
        with sqlite3.connect(path) as database:
            columns = f"{cell} AS age, 1 AS dose, 1 AS smoker, 'hill' AS region, 'yes' AS ill"
            database.execute(f"CREATE VIEW v AS SELECT {columns}")
        database.close()

    return make


def _costly(stray, strings):
    """Small files that would take hours or gigabytes."""
    tables = {
        f"a stray cell in {stray}": ("t.xlsx", _stray(stray), "rows of other lengths"),
        f"{strings} texts": ("t.xlsx", _with_texts(strings), "unpack to at most 200 times"),
        f"a text of {17 * strings} letters": (
            "t.xlsx",
            _workbook(theme=lambda text: text + b"a" * (17 * strings)),
            "unpack to at most 200 times",
        ),
        f"a cell of {100 * strings} bytes": ("t.sqlite", _view(f"zeroblob({100 * strings})"), "cells of at most"),
    }
    for name, (table, content, says) in tables.items():
        for command in ("fit", "predict", "init"):
            yield Case(f"{command}: {name}", on_table(command, table), {table: content}, says=says)


def _damaged(suffix):
    whole = written(changed(), suffix)
    other = {"parquet": "feather", "feather": "parquet", "arrow": "parquet"}[suffix]
    damaged = {
        "a tenth": whole[: len(whole) // 10],
        "a half": whole[: len(whole) // 2],
        "without its end": whole[:-12] if suffix != "arrow" else whole[: -len(whole) // 5],
        "without its beginning": whole[8:],
        "zeros in the middle": whole[: len(whole) // 3] + bytes(len(whole) // 3) + whole[2 * len(whole) // 3 :],
        "zeros": bytes(len(whole)),
        "another format": written(changed(), other),
        "text": GOOD.encode(),
        "a word": SECRET.encode(),
        "nothing": b"",
        "its first letters": whole[:6],
        "twice": whole + whole if suffix == "feather" else whole[: len(whole) - 3],
    }
    for name, content in damaged.items():
        if (suffix, name) in (("feather", "twice"), ("arrow", "twice")):
            continue  # the second footer is as good as the first, and a stream ends where it says so
        command = "predict" if name in ("a half", "zeros", "text") else "fit"
        yield Case(f"{command} {suffix}: {name}", on_table(command, f"t.{suffix}"), {f"t.{suffix}": content})


def _link(to):
    def make(path: Path) -> None:
        path.symlink_to(to)

    return make


def _folder(path: Path) -> None:
    path.mkdir()


def _places():
    places = {
        "a folder": ("t.csv", _folder),
        "a pipe": ("t.csv", os.mkfifo),
        "a pipe of Parquet": ("t.parquet", os.mkfifo),
        "endless zeros": ("t.csv", _link("/dev/zero")),
        "endless zeros in libsvm": ("t.svm", _link("/dev/zero")),
        "endless noise": ("t.feather", _link("/dev/urandom")),
        "nowhere": ("t.csv", _link("/dev/null")),
        "a link to itself": ("t.csv", _link("t.csv")),
        "a link to nothing": ("t.csv", _link("nobody.csv")),
        "a link to a folder": ("t.csv", _link(".")),
    }
    for name, (table, make) in places.items():
        for command in ("fit", "predict", "init"):
            yield Case(f"{command}: {name}", on_table(command, table), {table: make})
    for option, what in (("--bounds", "bounds"), ("model", "model")):
        for name in ("a folder", "a pipe", "endless zeros", "a link to itself", "a link to nothing"):
            make = places[name][1]
            arguments = ("fit", "patients.csv", option, "p", "-o", "out") if what == "bounds" else ("show", "p")
            yield Case(f"{what}: {name}", arguments, {"p": make})
    for name in ("nobody.csv", "no/body.csv", "x" * 300 + ".csv", "patients.csv/t.csv", "t.xlsx", "t", "t.csv.zip",
                 "t.parquet.gz", "t.sav", "t.CSV.bz2", "https://example.org/t.csv", "-", "/dev/stdin",
                 "a\nb.csv", "a\u202eb.csv", "nobody\x1b[31m.csv"):  # fmt: skip
        yield Case(f"a table called {name!r:.40}", on_table("fit", name) if name != "-" else on_table("predict", name))
