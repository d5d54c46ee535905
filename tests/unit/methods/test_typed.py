"""Types of the public interface: mypy on a user's file, and words that types, docstrings and checks agree on."""

import inspect
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import taciturn
import taciturn.published
from taciturn.methods.registry import KINDS, classes_of

ROOT = Path(taciturn.__file__).parents[1]
CLASSES = classes_of(*KINDS) | {
    f"published.{name}": getattr(taciturn.published, name) for name in taciturn.published.__all__
}

ACCEPTED = """
import numpy as np
import taciturn

X, y = np.zeros((9, 2)), np.zeros(9)
model = taciturn.SparseRegressor(relation="add-remove", n_public=9, n_nonzero="all", invalid="null", row_bound=2.0)
reveal_type(model.fit(X, y))
reveal_type(model.predict(X))
reveal_type(model.score(X, y))
reveal_type(taciturn.SparseClassifier(inference=True).fit(X, y).predict_proba(X))
reveal_type(taciturn.PrivateScaler(missing="cell", invalid="null").fit_transform(X))
reveal_type(taciturn.CorrelationSelector(mechanism="gumbel").fit(X, y).transform(X))
reveal_type(taciturn.private_score(model, X, y, metric="all", relation="replace-one"))
reveal_type(taciturn.private_score(model, X, y))
"""
REVEALED = [
    "SparseRegressor",
    "numpy.ndarray",
    "float",
    "numpy.ndarray",
    "numpy.ndarray",
    "numpy.ndarray",
    "ModelScore",
    "PrivateScore",
]
REFUSED = [
    'taciturn.SparseRegressor(relation="add_remove")',
    'taciturn.SparseClassifier(invalid="drop")',
    'taciturn.SparseRegressor(n_nonzero="most")',
    'taciturn.SparseRegressor(loss="absolute")',
    'taciturn.HardThresholdRegressor(row_bound="automatic")',
    'taciturn.HardThresholdClassifier(mechanism="laplace")',
    'taciturn.ScreenedClassifier(rule="safe")',
    'taciturn.ADMMClassifier(penalty="l2")',
    'taciturn.CorrelationSelector(score_func="kendall")',
    'taciturn.PrivateScaler(missing="column")',
    'taciturn.BoundedScaler(invalid="ignore")',
    "taciturn.FrankWolfeRegressor(epsilom=1.0)",
    "taciturn.FrankWolfeRegressor(1.0)",
    "taciturn.FrankWolfeRegressor().coefficients_",
    'taciturn.private_score(object(), [[1.0]], [1.0], relation="add_remove")',
    'taciturn.private_score(object(), [[1.0]], [1.0], metric="auc")',
    'taciturn.Account.create("sqlite:///a.db", "a", epsilon=1.0, delta=0.0, n=9, unit="row")',
    'taciturn.open_table("a.csv", "b.toml", engine="spork")',
]


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy, which finds the package as users have it, says of a file of theirs by line."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("user")
    user = folder / "user.py"
    (folder / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\nfollow_imports = silent\n")
    user.write_text("\n".join([*ACCEPTED.strip().splitlines(), *REFUSED]))
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "--no-error-summary", user],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    found = {}
    for line, text in re.findall(r"^user\.py:(\d+): (\w+: .*)$", run.stdout, re.MULTILINE):
        found.setdefault(int(line), []).append(text)
    return found


def test_what_is_right_is_accepted_and_has_a_type(checked):
    lines = ACCEPTED.strip().splitlines()
    said = [text for number in range(1, len(lines) + 1) for text in checked.get(number, [])]
    assert [text.partition(":")[0] for text in said] == ["note"] * len(REVEALED)
    for text, expected in zip(said, REVEALED, strict=True):
        assert expected in text


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_wrong_is_refused(checked, call):
    number = len(ACCEPTED.strip().splitlines()) + 1 + REFUSED.index(call)
    assert any(text.startswith("error:") for text in checked.get(number, []))


def words_of(hint):
    """The words of a type, and whether it has nothing else."""
    parts = [hint] if typing.get_origin(hint) is typing.Literal else typing.get_args(hint)
    literals = [part for part in parts if typing.get_origin(part) is typing.Literal]
    return [word for each in literals for word in typing.get_args(each)], len(literals) == len(parts)


@pytest.mark.parametrize("name", CLASSES)
def test_types_docstrings_and_checks_have_the_same_words(name):
    cls = CLASSES[name]
    hints = {word: hint for base in reversed(cls.__mro__) for word, hint in typing.get_type_hints(base).items()}
    for parameter in inspect.signature(cls).parameters:
        hint = hints.get(parameter) or typing.get_type_hints(cls.__init__)[parameter]
        words, alone = words_of(hint)
        described = re.search(rf"^{parameter} : (.*), default=", inspect.getdoc(cls), re.MULTILINE)
        if described is not None:
            assert set(re.findall(r'"([^"]*)"', described[1])) == set(words), parameter
        if alone and words and hasattr(cls, "check_parameters"):
            with pytest.raises(taciturn.ParameterError) as refused:
                cls(**{parameter: "no such word"}).check_parameters()
            assert set(re.findall(r"'([^']*)'", str(refused.value))) - {"no such word"} == set(words), parameter
