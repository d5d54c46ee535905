"""Bad tables with types of their own, and places that hold no table."""

from __future__ import annotations

import os
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from bad_inputs import CANARY, Case, on_table
from bad_text_tables import GOOD
from commands import SECRET
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
