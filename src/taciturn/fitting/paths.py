r"""Private Frank-Wolfe with a scalar margin: five paths to the same selections, and the choice among them.

==============  ======  =========  =============================================  ========  ===================
path            data    losses     cost of a step                                 set-up    logistic derivative
==============  ======  =========  =============================================  ========  ===================
``sublinear``   sparse  all        rows of the chosen column, times their length  O(nnz)    within 1e-3
``columns``     sparse  squared    O(d), and a column of X'X when it is new       O(nnz)
``margins``     sparse  all        one pass over X                                O(nnz)    within 1e-5
``gram``        dense   squared    O(d)                                           O(n d d)
``dense``       dense   all        one pass over X                                O(n d)    within 1e-5
==============  ======  =========  =============================================  ========  ===================

:func:`choose_path` looks at public numbers alone. Paths round differently, so a choice that depended on the data would
make the rounding of every score depend on every record.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import BoolArray, NumberArray, WordArray
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.fitting.dense_paths import DensePath, GramPath
from taciturn.fitting.frank_wolfe_path import FrankWolfePath, FrankWolfeProblem
from taciturn.fitting.sparse_paths import ColumnPath, MarginPath, SublinearPath
from taciturn.losses import SquaredLoss
from taciturn.mechanisms.transcript import transcribed

__all__ = [
    "PATHS",
    "choose_path",
    "open_path",
    "warm_up",
]

PATHS: dict[str, type[FrankWolfePath]] = {
    "sublinear": SublinearPath,
    "columns": ColumnPath,
    "margins": MarginPath,
    "gram": GramPath,
    "dense": DensePath,
}

# Above this many features the Gram matrix of dense data costs more than it saves.
_GRAM_FEATURES = 2000
# Below this much noise, in units of R, popular columns are chosen so often that full passes are as fast.
_LEAST_NOISE = 0.25


def choose_path(problem: FrankWolfeProblem, n_features: int, *, sparse: bool, by_margins: bool = False) -> str:
    """The name of the path for a problem, from public facts: the noise, the loss, d, and the layout of X.

    The number of records does not enter, so that it may be private. ``by_margins`` asks for exact margins.
    """
    quadratic = problem.derivative.quadratic and not by_margins
    if not sparse:
        return "gram" if quadratic and n_features <= _GRAM_FEATURES else "dense"
    if problem.noise_scale >= _LEAST_NOISE * problem.bound / ONE:
        return "sublinear"
    return "columns" if quadratic else "margins"


_SPARSE = ("sublinear", "columns", "margins")
_QUADRATIC = ("columns", "gram")


class _Zeros:
    """Words for a run whose result nobody sees."""

    def words(self, size: int) -> WordArray:
        return np.zeros(size, dtype=np.uint64)


@cache
def warm_up(*, sparse: bool) -> None:
    """Compile all that the paths of a layout call, once a process: each makes two steps over one record."""
    X = np.full((1, 8), ONE)
    for name in PATHS:
        if sparse == (name in _SPARSE):
            problem = FrankWolfeProblem(SquaredLoss(), 1.0, 2, 1.0, 1)
            run = open_path(sp.csr_array(X) if sparse else X, np.zeros(1), problem, path=name)
            run.step(0)
            with transcribed(None):
                run.advance_to(2, _Zeros())  # type: ignore[arg-type]
            run.scores()
            run.exclude(np.arange(1, 8))


def open_path(
    X: Any, targets: NumberArray, problem: FrankWolfeProblem, *, valid: BoolArray | None = None, path: str | None = None
) -> FrankWolfePath:
    """A run from zero over the L1 ball, before its first step.

    X and targets hold lattice integers in [-ONE, ONE] of any numeric type, sparse X without duplicates; targets of the
    logistic loss are labels 0 and 1. Records that are not ``valid`` are null: they contribute nothing, but count in n.
    :func:`choose_path` decides, unless a key of :data:`PATHS` is given.
    """
    sparse = sp.issparse(X)
    name = choose_path(problem, X.shape[1], sparse=sparse) if path is None else path
    if sparse != (name in _SPARSE) or (name in _QUADRATIC and not problem.derivative.quadratic):
        raise ParameterError("path", name, "a path for this layout and loss", "leave it to choose_path")
    if X.shape[0] > problem.n_rows:
        # The number itself may be private.
        raise ParameterError("n_rows", problem.n_rows, "a bound on the number of records", "give a larger one")
    if valid is not None and not valid.all():
        X, targets = (X.tocsr() if sparse else X)[valid], targets[valid]
    return PATHS[name](X, targets, problem)  # type: ignore[call-arg, arg-type]
