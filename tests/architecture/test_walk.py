"""A fit goes down through the subpackages, never back up into one above, and enters few files."""

import sys
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from taciturn import FrankWolfeRegressor, HardThresholdClassifier, ObjectivePerturbationRegressor, SparseClassifier

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "taciturn"


def layers():
    """Subpackages and their heights, from the import contract."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    listed = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {name.strip("() "): len(listed) - height for height, line in enumerate(listed) for name in line.split("|")}


HEIGHTS = layers()


class Walk:
    """Files of the package in which a call enters functions, and calls that go up."""

    def __init__(self, planted=()):
        # Files outside of the package that stand for a subpackage.
        self._planted = dict(planted)
        self.files, self.upwards = {}, set()

    def _place(self, code):
        path = code.co_filename
        if path in self._planted:
            return self._planted[path], path
        try:
            relative = Path(path).relative_to(PACKAGE)
        except ValueError:
            return None, path
        return relative.parts[0].removesuffix(".py"), relative.as_posix()

    def _enter(self, frame, event, argument):
        if event != "call":
            return
        place, file = self._place(frame.f_code)
        if place not in HEIGHTS:
            return
        self.files[file] = self.files.get(file, 0) + 1
        # Nobody calls what the interpreter runs by itself, as it does when it collects garbage.
        from_place, from_file = (None, "") if frame.f_back is None else self._place(frame.f_back.f_code)
        # The guard runs whatever is inside it. A function that was passed down, as a task is to a source, belongs to
        # whoever passed it.
        passed_down = "<locals>" in frame.f_code.co_qualname or frame.f_code.co_name == "__call__"
        counts = from_place in HEIGHTS and from_file != "core/guard.py" and not passed_down
        if counts and HEIGHTS[place] > HEIGHTS[from_place]:
            self.upwards.add((from_file, file, frame.f_code.co_name))

    def through(self, call, *arguments):
        before = sys.getprofile()
        sys.setprofile(self._enter)
        # A table is read ahead in another thread.
        threading.setprofile(self._enter)
        try:
            call(*arguments)
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
        return self


def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (3000, 200))
    return X, X[:, 3] - 0.5 * X[:, 8]


def model_and_target(kind, y):
    if kind in (SparseClassifier, HardThresholdClassifier):
        return kind(classes=(False, True), n_nonzero=3, random_state=0), y > 0
    return kind(random_state=0), np.clip(y, -1.0, 1.0)


@pytest.mark.parametrize(
    "kind", [SparseClassifier, HardThresholdClassifier, FrankWolfeRegressor, ObjectivePerturbationRegressor]
)
def test_a_fit_goes_down_through_the_subpackages(kind):
    X, y = table()
    model, target = model_and_target(kind, y)
    walk = Walk().through(model.fit, X, target)
    assert walk.upwards == set()
    # It was a walk through all of it.
    entered = {file.split("/")[0].removesuffix(".py") for file in walk.files}
    assert {"methods", "privacy", "engines", "data", "kernels", "core"} <= entered


def test_a_base_class_below_that_calls_a_hook_above_is_noticed(tmp_path):
    below, above = tmp_path / "below.py", tmp_path / "above.py"
    space = {"Base": BaseEstimator}
    exec(compile("class Template(Base):\n    def fit(self):\n        return self._plan()\n", str(below), "exec"), space)
    exec(compile("class Model(Template):\n    def _plan(self):\n        return 1\n", str(above), "exec"), space)
    walk = Walk({str(below): "privacy", str(above): "methods"}).through(space["Model"]().fit)
    assert walk.upwards == {(str(below), str(above), "_plan")}


def test_a_fit_to_an_array_enters_few_files():
    X, y = table()
    model, target = model_and_target(SparseClassifier, y)
    model.fit(X, target)
    walk = Walk().through(model.fit, X, target)
    assert 20 < len(walk.files) <= 35, sorted(walk.files)


def test_the_command_enters_few_files(tmp_path):
    """On a CSV file, from its header to the report."""
    pytest.importorskip("pyarrow")
    from taciturn.app.cli.main import app

    X, y = table()
    lines = (
        f"{str(row)[1:-1]},{'yes' if label else 'no'}" for row, label in zip(X[:, :9].tolist(), y > 0, strict=True)
    )
    header = ",".join([*(f"x{place}" for place in range(9)), "y"])
    (tmp_path / "table.csv").write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    (tmp_path / "bounds.toml").write_text(
        '[target]\nname = "y"\nclasses = ["no", "yes"]\n[defaults]\nlower = -1\nupper = 1\n', encoding="utf-8"
    )

    def fit(name):
        files = str(tmp_path / "table.csv"), "--bounds", str(tmp_path / "bounds.toml"), "-o", str(tmp_path / name)
        app(["fit", *files, "--seed", "0"], standalone_mode=False)

    # What is imported runs once, whatever the command does.
    fit("first")
    walk = Walk().through(fit, "second")
    assert (tmp_path / "second" / "report.html").exists()
    assert 40 < len(walk.files) <= 65, sorted(walk.files)
