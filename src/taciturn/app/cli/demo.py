"""``taciturn demo``."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path
from typing import Annotated

import typer

from taciturn.app.cli.output import replace_file
from taciturn.app.cli.screen import print_line
from taciturn.app.cli.tables import Delta, Epsilon, Seed
from taciturn.core.errors import ParameterError

# Public upper bounds of the measurements in Wolberg's breast cancer data: round numbers that the mean of a measurement
# rarely exceeds. The bound is a tenth of it for standard errors, and one and a half times it for the worst values.
_LIMITS = {
    "radius": 25,
    "texture": 40,
    "perimeter": 160,
    "area": 1500,
    "smoothness": 0.2,
    "compactness": 0.2,
    "concavity": 0.2,
    "concave points": 0.1,
    "symmetry": 0.4,
    "fractal dimension": 0.1,
}
_TARGET, _CLASSES = "diagnosis", ("benign", "malignant")
# The other patients, of 569, are new to the model.
_N_TRAINING = 450


def demo(
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    features: Annotated[int, typer.Option(min=1, max=30, help="Number of features to keep.")] = 5,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files of the demo.")] = Path(
        "taciturn-demo"
    ),
    seed: Seed = None,
) -> None:
    """Run every step on scikit-learn's breast cancer data: init, fit, show, predict, score.

    Example: taciturn demo --epsilon 0.5 --features 3
    """
    from taciturn.app.cli.main import app

    if output.exists():
        raise ParameterError("output", str(output), "a folder that is not there yet", "choose another, or remove it")
    table, new, bounds = output / "patients.csv", output / "new-patients.csv", output / "bounds.toml"
    model = output / "model" / "model.json"
    names = _write_tables(table, new)
    replace_file(bounds, _bounds_text(names), public=True)
    seeded = [] if seed is None else ["--seed", str(seed)]
    budget = ["--epsilon", f"{epsilon:g}", "--delta", f"{delta:g}", "--nonzero", str(features)]
    steps: list[tuple[str, list[str]]] = [
        (
            "A template for what is public about the columns. It holds no value of the table.",
            ["init", str(table), "--target", _TARGET, "-o", str(output / "template.toml")],
        ),
        (
            "Its owner fills in ranges and classes from what the measurements can be (here: bounds.toml), then fits.",
            ["fit", str(table), "--bounds", str(bounds), *budget, *seeded, "-o", str(output / "model")],
        ),
        ("What was released, and at what cost.", ["show", str(model)]),
        ("Predictions for patients that the model has not seen.", ["predict", str(model), str(new), "-o",
          str(output / "predictions.csv")]),
        ("How good they are. These patients' data are public, so that the score may be exact.",
         ["score", str(model), str(new)]),
    ]  # fmt: skip
    for explanation, arguments in steps:
        print_line(f"\n# {explanation}\n$ taciturn {shlex.join(arguments)}")
        ended = app(arguments, standalone_mode=False)
        if ended:
            raise typer.Exit(ended)
    print_line(f"\nOpen {output / 'model' / 'report.html'} in a browser.")


def _write_tables(table: Path, new: Path) -> list[str]:
    """Write the patients for the fit and those for predictions as CSV; return the names of the measurements."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    # The order of the data set is not random.
    order = np.random.default_rng(0).permutation(len(data.target))
    table.parent.mkdir(parents=True)
    for path, rows in ((table, order[:_N_TRAINING]), (new, order[_N_TRAINING:])):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, _TARGET])
        # The data set labels malignant as 0.
        writer.writerows([*data.data[row].tolist(), _CLASSES[1 - int(data.target[row])]] for row in rows)
        replace_file(path, text.getvalue(), public=True)
    return names


def _bounds_text(names: list[str]) -> str:
    listed = ", ".join(f'"{label}"' for label in _CLASSES)
    sections = [f'[target]\nname = "{_TARGET}"\nclasses = [{listed}]']
    sections += [f'[columns."{name}"]\ntype = "number"\nlower = 0\nupper = {_limit(name):g}' for name in names]
    return "\n\n".join(sections) + "\n"


def _limit(name: str) -> float:
    """Public upper bound of one measurement."""
    (limit,) = (limit for measure, limit in _LIMITS.items() if measure in name)
    return limit / 10 if name.endswith("error") else 1.5 * limit if name.startswith("worst") else limit
