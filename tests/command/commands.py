"""How the tests run the command, and the small tables that they run it on."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taciturn.app.cli import main as cli_main

INSTALLED = Path(sys.executable).with_name("taciturn")

BOUNDS = """\
[target]
name = "ill"
classes = ["no", "yes"]

[columns.age]
type = "number"
lower = 0
upper = 100

[columns.dose]
type = "number"
lower = -1
upper = 1

[columns.smoker]
type = "boolean"

[columns.region]
type = "category"
categories = ["hill", "dale"]
"""

SECRET = "SECRET-7f3a"
"""Stands in cells, and must never stand in a message."""


@dataclass(frozen=True)
class Run:
    """What a command ended with."""

    code: int
    out: str
    err: str


def run(*arguments, cwd=None, out=None) -> Run:
    """The command in this process, through the same door as from a shell; ``out`` is another standard output."""
    out, err = io.StringIO() if out is None else out, io.StringIO()
    before, folder = sys.argv, os.getcwd()
    sys.argv = ["taciturn", *map(str, arguments)]
    try:
        if cwd is not None:
            os.chdir(cwd)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli_main.main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
    finally:
        sys.argv = before
        os.chdir(folder)
    return Run(code, out.getvalue(), err.getvalue())


def run_installed(*arguments, cwd) -> Run:
    """The installed command in a process of its own."""
    environment = os.environ | {"COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        [INSTALLED, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    return Run(done.returncode, done.stdout, done.stderr)


def patients(n_rows=400, seed=0) -> list[list[object]]:
    """Records whose illness depends on age and dose."""
    rng = np.random.default_rng(seed)
    age, dose = rng.uniform(0, 100, n_rows).round(2), rng.uniform(-1, 1, n_rows).round(4)
    ill = (age - 50) / 50 + dose + 0.3 * rng.normal(size=n_rows) > 0
    smoker, region = rng.random(n_rows) < 0.5, rng.choice(["hill", "dale"], n_rows)
    return [
        [a, d, str(bool(s)).lower(), r, "yes" if i else "no"]
        for a, d, s, r, i in zip(age.tolist(), dose.tolist(), smoker, region.tolist(), ill, strict=True)
    ]


HEADER = ["age", "dose", "smoker", "region", "ill"]


def csv_text(rows, header=HEADER, separator=",") -> str:
    """A table as text."""
    return "\n".join(separator.join(map(str, row)) for row in [header, *rows]) + "\n"


def write_patients(folder: Path, n_rows=400, seed=0) -> tuple[Path, Path]:
    """A table and its bounds file."""
    table, bounds = folder / "patients.csv", folder / "bounds.toml"
    table.write_text(csv_text(patients(n_rows, seed)), encoding="utf-8")
    bounds.write_text(BOUNDS, encoding="utf-8")
    return table, bounds


def sentences(run: Run) -> list[str]:
    """The sentences of a refusal, one for every problem, checked to have no traceback and no secret."""
    assert run.code == 1, run
    assert "Traceback" not in run.err
    assert SECRET not in run.err + run.out
    lines = [line for line in run.err.splitlines() if line.strip() and not line.startswith("note: ")]
    assert lines
    for line in lines:
        assert line.startswith("taciturn: ")
        assert line.endswith(".")
        assert "a defect (" not in line, line
    return lines


def one_sentence(run: Run) -> str:
    """The sentence of a refusal, checked to be one."""
    lines = sentences(run)
    assert len(lines) == 1, lines
    return lines[0]
