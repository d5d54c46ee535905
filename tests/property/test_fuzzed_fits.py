"""Fits of every class to hostile tables end as fits to ordinary ones do: see ``fuzzed_fits.py``."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzzed_fits import classes, outcome
from sklearn.base import BaseEstimator

from taciturn.core.errors import DataError

SCRIPT = Path(__file__).with_name("fuzzed_fits.py")


def found_in(seed, first, last, every_class=True):
    """What a run in a process of its own found; warnings are errors there from the start."""
    command = [sys.executable, "-W", "error", str(SCRIPT), str(seed), str(first), str(last)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report = json.loads(done.stdout)
    # Settings that are refused test little: most trials must get as far as a result.
    assert report["results"] > 0.4 * report["trials"]
    assert not every_class or set(report["fitted"]) == {kind.__name__ for kind in classes()}
    return report["found"]


def test_hostile_tables_end_like_ordinary_ones():
    assert found_in(seed=16, first=0, last=40, every_class=False) == []


@pytest.mark.slow
def test_hostile_tables_of_every_class_end_like_ordinary_ones():
    assert found_in(seed=16, first=0, last=400) == []


@pytest.mark.slow
def test_many_hostile_tables_end_like_ordinary_ones():
    assert found_in(seed=17, first=0, last=8000) == []


@pytest.mark.parametrize(
    ("careless", "seen"),
    [
        (lambda X: X * X, "DEFECT RuntimeWarning"),
        (lambda X: 1 // int(abs(X).max() < 1e200), "DEFECT ZeroDivisionError"),
        (lambda X: _refuse(X), "DataError"),
    ],
)
def test_a_careless_class_is_noticed(careless, seen):
    class Careless(BaseEstimator):
        def fit(self, X, y):
            careless(X)
            return self

    ordinary, hostile = (outcome(Careless(), np.full((2, 2), size), np.zeros(2), 0) for size in (1.0, 1e300))
    assert ordinary == "a result"
    assert hostile.startswith(seen)


def _refuse(X):
    if abs(X).max() > 1e200:
        raise DataError("X: expected smaller numbers; divide them.")
