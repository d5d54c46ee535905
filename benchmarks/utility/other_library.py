"""Models of diffprivlib as competitors, fitted by a Python of their own: they need an older scikit-learn.

``make arena-other`` puts that Python into ``build/diffprivlib``. Without it the models are skipped.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.utility.methods import Fitted, Method
from benchmarks.utility.sets import DataSet, Problem

__all__ = ["OTHER_LIBRARY"]

INTERPRETER = Path(__file__).parents[2] / "build" / "diffprivlib" / "bin" / "python"

# Its linear regression draws noise for every pair of columns, one number at a time; tables are passed on dense.
MOST_COLUMNS = {"regression": 300, "classification": 20_000}

_SCRIPT = """
import json, sys
import numpy as np
import scipy.sparse as sp
from diffprivlib.models import LinearRegression, LogisticRegression

facts = json.loads(sys.argv[2])
with np.load(sys.argv[1]) as table:
    X, y = table["X"], table["y"]
if facts["task"] == "regression":
    model = LinearRegression(
        epsilon=facts["epsilon"], bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), random_state=facts["seed"]
    )
else:
    model = LogisticRegression(epsilon=facts["epsilon"], data_norm=facts["row_bound"], random_state=facts["seed"])
model.fit(X, y)
print(json.dumps({"coef": np.ravel(model.coef_).tolist(), "intercept": float(np.ravel(model.intercept_)[0])}))
"""


def _refuses(data_set: DataSet) -> str | None:
    if not INTERPRETER.exists():
        return "diffprivlib is not installed; run make arena-other"
    most = MOST_COLUMNS[data_set.task]
    return f"more than {most:,} columns" if data_set.n_columns > most else None


def _fit(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    facts = {"task": data_set.task, "epsilon": epsilon, "seed": seed, "row_bound": data_set.row_bound}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npz"
        np.savez(table, X=X, y=problem.y)
        command = [str(INTERPRETER), "-W", "ignore", "-c", _SCRIPT, str(table), json.dumps(facts)]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    coef = np.array(answer["coef"])
    return Fitted(np.ravel(problem.X_test @ coef) + answer["intercept"], coef != 0.0)


OTHER_LIBRARY = Method("diffprivlib", "another library", ("regression", "classification"), _fit, refuses=_refuses)
