"""A fit has compiled all that it calls when it draws its first random word: where that fails, nothing is lost.

Every case runs in a process of its own, since a process compiles once.
"""

import multiprocessing
import os
import pickle
import pkgutil
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp

import taciturn
from taciturn import kernels
from taciturn.core.rng import Stream
from taciturn.kernels.compiled import Kernel

CASES = {
    "HardThresholdRegressor": {},
    "HardThresholdClassifier": {"classes": 3},
    "SparseRegressor": {},
    "SparseClassifier": {"classes": 3},
    "SparseClassifier, two classes": {"classes": 2},
    "SparseClassifier, sparse": {"classes": 3, "sparse": True},
    "FrankWolfeRegressor, gram": {"loss": "squared"},
    "FrankWolfeRegressor, dense": {},
    "FrankWolfeRegressor, sublinear": {"sparse": True},
    "FrankWolfeRegressor, columns": {"sparse": True, "loss": "squared", "epsilon": float("inf"), "n_steps": 5},
    "FrankWolfeRegressor, margins": {"sparse": True, "epsilon": float("inf"), "n_steps": 5},
    "FrankWolfeClassifier": {"classes": 3},
    "SparsifiedClassifier": {"sparse": True, "classes": 2, "n_nonzero": "private-count", "n_steps": 5},
    "ScreenedRegressor, dense": {"rule": "adp", "permanent": True, "n_steps": 12, "screen_at": 2},
    "ScreenedRegressor, gram": {"loss": "squared", "permanent": True, "n_steps": 30, "screen_at": "every"},
    "ScreenedRegressor, sublinear": {"sparse": True, "permanent": True, "n_steps": 30, "screen_at": "every"},
    "ScreenedClassifier, margins": {
        **{"sparse": True, "classes": 2, "epsilon": float("inf")},
        **{"rule": "adp", "permanent": True, "n_steps": 30, "screen_at": 2},
    },
    "KendallSelector": {"n_features_to_select": 3},
    "KendallSelector, sparse": {"n_features_to_select": 3, "sparse": True},
}

COLD = ("HardThresholdRegressor", "SparseClassifier", "FrankWolfeRegressor, sublinear")


def dispatchers():
    modules = [import_module(f"taciturn.kernels.{module.name}") for module in pkgutil.iter_modules(kernels.__path__)]
    return {item.dispatcher for module in modules for item in vars(module).values() if isinstance(item, Kernel)}


def signatures():
    return {
        (kernel.py_func.__qualname__, str(signature)) for kernel in dispatchers() for signature in kernel.signatures
    }


def class_of(case):
    return getattr(taciturn, case.split(",")[0])


def compiled_by(case, warm):
    """Signatures compiled at the first draw, and at the end of a fit."""
    parameters = dict(CASES[case])
    kind = class_of(case)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (60, 12))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    if "classes" in parameters:
        n_classes = parameters["classes"]
        parameters["classes"] = tuple(range(n_classes))
        y = rng.integers(n_classes, size=60)
    if parameters.pop("sparse", False):
        X = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    if not warm:
        kind.warm_up = lambda self, *, sparse, n_classes=None: None
    at_first = []
    draw = Stream.words

    def words(self, size):
        if not at_first:
            at_first.append(signatures())
        return draw(self, size)

    Stream.words = words
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kind(random_state=0, **parameters).fit(X, y)
    return at_first[0], signatures()


def compiled_by_all():
    """:func:`compiled_by` for all cases with the warm-up and some without, each in a fork of this process."""
    context = multiprocessing.get_context("fork")
    # What is imported here is not imported in every fork.
    answers, _ = [], [dispatchers(), *(class_of(case) for case in CASES)]
    for case, warm in [*((case, True) for case in CASES), *((case, False) for case in COLD)]:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=lambda *asked, pipe=theirs: pipe.send(compiled_by(*asked)), args=(case, warm))
        child.start()
        theirs.close()
        answers.append((case, warm, ours.recv()))
        child.join()
    return answers


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps(compiled_by_all()))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_everything_is_compiled_at_the_first_draw():
    # In a process that has compiled nothing yet, which this one may have.
    done = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE, check=True)
    answers = pickle.loads(done.stdout)
    assert len(answers) == len(CASES) + len(COLD)
    for case, warm, (first, last) in answers:
        assert last, f"{case} calls no kernel"
        if warm:
            assert first == last, case
        else:
            assert first < last, f"{case} needs no warm-up"
