"""Fits by Pythons of their own, for packages whose versions clash with ours.

``make arena-other`` puts these Pythons into folders of ``build``. A worker is started on the first fit and reads jobs
from its standard input, one JSON line each: the file of a table and the facts about the fit. It answers with one line.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn_research.places import REPOSITORY

__all__ = ["FitFailedError", "ask", "is_there"]

BUILD = REPOSITORY / "build"

_LOOP = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import scipy.sparse as sp

def read(path):
    with np.load(path) as table:
        if "X" in table:
            X = table["X"]
        else:
            X = sp.csr_array((table["data"], table["indices"], table["indptr"]), shape=tuple(table["shape"]))
        return X, table["y"], table["X_test"] if "X_test" in table else None

answers = os.fdopen(os.dup(1), "w")
# What packages print must not be taken for an answer.
os.dup2(2, 1)
for job in sys.stdin:
    path, facts = json.loads(job)
    try:
        answer = fit(*read(path), facts)
    except Exception as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
"""


class FitFailedError(RuntimeError):
    """A fit elsewhere ended with an error, which is written down as a refusal."""


def _interpreter(environment: str) -> Path:
    return BUILD / environment / "bin" / "python"


def is_there(environment: str) -> bool:
    """Whether the environment has been made."""
    return _interpreter(environment).exists()


@cache
def _worker(environment: str, script: str) -> subprocess.Popen[str]:
    command = [str(_interpreter(environment)), "-c", script + _LOOP]
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    atexit.register(worker.kill)
    return worker


def ask(environment: str, script: str, X: Any, y: Any, facts: dict[str, Any], X_test: Any = None) -> dict[str, Any]:
    """Let a worker fit.

    Parameters
    ----------
    environment : str
        Folder of ``build`` with its Python.
    script : str
        Defines ``fit(X, y, X_test, facts)``, which returns what JSON can hold.
    X, y : arrays
        Training records; ``X`` may be sparse.
    facts : dict
        What else the script needs.
    X_test : ndarray or None
        Test records, for models that are not linear.

    Raises
    ------
    FitFailedError
        If the fit failed.
    """
    worker = _worker(environment, script)
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError(f"{environment}: the worker has no pipes")
    parts = {"y": y} if X_test is None else {"y": y, "X_test": X_test}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        if sp.issparse(X):
            np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, **parts)
        else:
            np.savez(path, X=X, **parts)
        worker.stdin.write(json.dumps([str(path), facts]) + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
    if not line:
        # The next fit gets a new worker.
        _worker.cache_clear()
    answer: dict[str, Any] = json.loads(line) if line else {"failure": "the worker ended"}
    if "failure" in answer:
        raise FitFailedError(f"{environment}: {answer['failure']}")
    return answer
