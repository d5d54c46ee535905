"""``taciturn demo``."""

from __future__ import annotations

import csv
import gzip
import io
import random
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from taciturn.app.cli.output import replace_file
from taciturn.app.cli.screen import print_line
from taciturn.app.cli.tables import Delta, Epsilon, Seed
from taciturn.core.errors import ParameterError

# Of the RAND Health Insurance Experiment, which is in the public domain, as statsmodels and Cameron and Trivedi,
# "Microeconometrics" (2005), have it: 20,190 years of insured persons.
_DATA = "health-insurance.csv.gz"
_TARGET, _CLASSES = "frequent", ("no", "yes")
# Visits to a doctor within the year from which on they are frequent.
_FREQUENT = 6
_N_TRAINING = 18_000
_COLUMNS = "health,limitation,conditions,coinsurance"
_BOUNDS = f"""\
[target]
name = "{_TARGET}"
classes = ["no", "yes"]

[columns.health]
type = "category"
categories = ["excellent", "good", "fair", "poor"]

[columns.limitation]
type = "boolean"

[columns.conditions]
type = "number"
lower = 0
upper = 60
per = 10

[columns.coinsurance]
type = "number"
lower = 0
upper = 100
per = 25
"""


def demo(
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    features: Annotated[
        int | None, typer.Option(min=1, max=6, help="Number of features to keep. [default: all, by their columns]")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files of the demo.")] = Path(
        "taciturn-demo"
    ),
    seed: Seed = None,
) -> None:
    """Run every step on the RAND Health Insurance Experiment: init, fit, show, predict, score.

    Each record is a year of an insured person: the health that was stated, a physical limitation, an index of chronic
    conditions, the share of each bill that the person paid, and whether there were six or more visits to a doctor.

    Example: taciturn demo --epsilon 0.5 --features 3
    """
    from taciturn.app.cli.main import app

    if output.exists():
        raise ParameterError("output", str(output), "a folder that is not there yet", "choose another, or remove it")
    table, new, bounds = output / "patients.csv", output / "new-patients.csv", output / "bounds.toml"
    model = output / "model" / "model.json"
    _write_tables(table, new)
    replace_file(bounds, _BOUNDS, public=True)
    seeded = [] if seed is None else ["--seed", str(seed)]
    kept = ["--columns", _COLUMNS] if features is None else ["--nonzero", str(features)]
    budget = ["--epsilon", f"{epsilon:g}", "--delta", f"{delta:g}", "--inference", *kept]
    steps: list[tuple[str, list[str]]] = [
        (
            "A template for what is public about the columns. It holds no value of the table.",
            ["init", str(table), "--target", _TARGET, "-o", str(output / "template.toml")],
        ),
        (
            "Its owner fills in ranges and categories from what the columns can be (here: bounds.toml), then fits.",
            ["fit", str(table), "--bounds", str(bounds), *budget, *seeded, "-o", str(output / "model")],
        ),
        ("What was released, and at what cost.", ["show", str(model)]),
        ("Predictions for records that the model has not seen.", ["predict", str(model), str(new), "-o",
          str(output / "predictions.csv")]),
        ("How good they are. These data are public, so that the score may be exact.",
         ["score", str(model), str(new)]),
    ]  # fmt: skip
    for explanation, arguments in steps:
        print_line(f"\n# {explanation}\n$ taciturn {shlex.join(arguments)}")
        ended = app(arguments, standalone_mode=False)
        if ended:
            raise typer.Exit(ended)
    print_line(f"\nOpen {output / 'model' / 'report.html'} in a browser.")


def _write_tables(table: Path, new: Path) -> None:
    """Write the records for the fit and those for predictions as CSV."""
    packed = files("taciturn.app.cli").joinpath(_DATA).read_bytes()
    header, *rows = csv.reader(io.StringIO(gzip.decompress(packed).decode()))
    # The years of a person follow one another.
    random.Random(0).shuffle(rows)
    table.parent.mkdir(parents=True)
    for path, part in ((table, rows[:_N_TRAINING]), (new, rows[_N_TRAINING:])):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*header[:-1], _TARGET])
        writer.writerows([*cells, _CLASSES[int(visits) >= _FREQUENT]] for *cells, visits in part)
        replace_file(path, text.getvalue(), public=True)
