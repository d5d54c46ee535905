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
from numpy.typing import NDArray

from taciturn.core.arrays import BoolArray, FloatArray, IntArray, NumberArray, WordArray
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.data.fixed_point import exact_block_rows
from taciturn.fitting.frank_wolfe_path import FrankWolfePath, FrankWolfeProblem, QuadraticPath
from taciturn.kernels.column_groups import catch_up_all, end_epochs, group_columns, leave_behind
from taciturn.kernels.gram_frank_wolfe import all_columns, fetch_column, no_columns
from taciturn.kernels.margin_frank_wolfe import (
    advance_dense,
    advance_sparse,
    dense_gradient,
    move_dense,
    move_sparse,
    residuals,
    sparse_gradient,
)
from taciturn.kernels.residual_pieces import curve_table
from taciturn.kernels.sparse_frank_wolfe import advance
from taciturn.kernels.sparse_matrix import count_columns, keep_columns, pack
from taciturn.kernels.sparse_rows import new_rows, recut, reset, schedule_of, touch
from taciturn.losses import SquaredLoss
from taciturn.mechanisms.transcript import transcribed

__all__ = [
    "PATHS",
    "ColumnPath",
    "DensePath",
    "GramPath",
    "MarginPath",
    "SublinearPath",
    "choose_path",
    "open_path",
    "warm_up",
]

# Above this many features the Gram matrix of dense data costs more than it saves.
_GRAM_FEATURES = 2000
# Below this much noise, in units of R, popular columns are chosen so often that full passes are as fast.
_LEAST_NOISE = 0.25
# Of a block of rows whose part of the Gram matrix is computed at a time.
_BLOCK_ENTRIES = 1 << 21
_FEWEST_SLOTS = 8


def _frozen(array: Any, kind: type) -> NDArray[Any]:
    """A read-only view in one type: compiled once, whatever the caller's array allows."""
    view: NDArray[Any] = np.ascontiguousarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view


class _SparsePath(FrankWolfePath):
    """A sparse matrix by row and by column; columns are numbered by falling popularity inside."""

    def __init__(self, X: Any, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        X = sp.csr_array(X)
        indices, values = _frozen(X.indices, np.int32), _frozen(X.data, np.int32)
        self.names = np.argsort(-count_columns(indices, self.n_features), kind="stable").astype(np.int32)
        self.ranks[self.names] = np.arange(self.n_features, dtype=np.int32)
        self.matrix = pack(_frozen(X.indptr, np.int64), indices, values, self.ranks)

    def _keep(self, places: IntArray) -> None:
        new = np.full(self.names.size, -1, dtype=np.int64)
        new[places] = np.arange(places.size)
        row_starts, row_entries, column_starts, column_entries = keep_columns(self.matrix, new, places.size)
        # Read-only as before: another type would be compiled anew, in the middle of a run.
        self.matrix = _frozen(row_starts, np.int64), row_entries, column_starts, column_entries


class _MarginPath(FrankWolfePath):
    """Exact margins and a full gradient per step; any loss."""

    y: IntArray
    u: IntArray

    def __init__(self, problem: FrankWolfeProblem, n_features: int) -> None:
        super().__init__(problem, n_features)
        self.scales = problem.radius / problem.sums
        self.loss = (problem.derivative.logistic, curve_table(), problem.bound)
        self.work = np.empty(n_features)

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.u, self.y

    def _keep(self, places: IntArray) -> None:
        self.work = np.empty(places.size)


class SublinearPath(_SparsePath):
    """Scores kept up to date row by row, vertices drawn without looking at all columns; any loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.derivative_error = problem.derivative.pieces_error
        if problem.noise_scale > 0.0 and problem.largest_exponent > 2.0**32:
            raise ParameterError(
                "noise_scale",
                problem.noise_scale,
                "more noise than that for this path",
                "leave the choice to choose_path",
            )
        self.pieces = tuple(problem.derivative.pieces)
        self.schedule = tuple(schedule_of(problem.n_rows, problem.radius, problem.n_steps))
        self.rows: tuple[Any, ...] = tuple(new_rows(problem.derivative.targets(targets), problem.n_steps))
        self._sums = np.zeros((2, self.n_features), dtype=np.int64)
        reset(0, self.rows, self.pieces, self.schedule)
        self._group()
        catch_up_all(self._sums, self.matrix, self.rows[2], self.groups)

    def _group(self) -> None:
        self.groups = tuple(group_columns(self.matrix, self.problem.inverse_temperature, self.problem.bound))
        # The mean length of the row of an entry, to which empty rows do not count.
        lengths = np.diff(self.matrix[0])
        self.row_length = float(np.square(lengths).sum() / max(lengths.sum(), 1))

    @property
    def sums(self) -> IntArray:
        """A and B, brought up to date."""
        catch_up_all(self._sums, self.matrix, self.rows[2], self.groups)
        return self._sums

    def _scores(self) -> FloatArray:
        a, b = self.sums
        scores: FloatArray = a + self.schedule[0][self.t] * b
        return scores

    def _move(self, t: int, place: int, amount: int) -> None:
        sums, shifts = self.sums, self.schedule[1]
        _, n_rows = touch(t, place, amount, self.matrix, self.rows)
        if shifts[t] != shifts[t - 1]:
            reset(t, self.rows, self.pieces, self.schedule)
            leave_behind(self.groups[0], self.groups[4])
        else:
            recut(t, n_rows, 0.0, False, sums, self.matrix, self.rows, self.pieces, self.schedule)
        # Levels of the sampler have not followed.
        end_epochs(self.groups[0])

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.rows[0], self.rows[1]

    def _keep(self, places: IntArray) -> None:
        self._sums = np.ascontiguousarray(self.sums[:, places])
        super()._keep(places)
        self._group()

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self._sums, self.matrix, self.rows, self.pieces, self.schedule, self.groups, self.sampler)
        start = (self.t, self.problem.inverse_temperature, self.row_length)
        reached: int = advance(*start, *state, self.bounds, self.names, chosen, words)
        return reached


class ColumnPath(_SparsePath, QuadraticPath):
    """Columns of the Gram matrix, computed as they are needed; squared loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.y = problem.derivative.targets(targets)
        sparse_gradient(self.matrix, -self.y.astype(np.int32), self.work)
        self.a = self.work.astype(np.int64)
        self._open_slots()

    def _open_slots(self) -> None:
        """As much memory as the matrix takes by row. How many columns fit decides how long a step takes, no more."""
        n_slots = max(_FEWEST_SLOTS, self.matrix[1].size // self.a.size)
        self.columns = tuple(no_columns(self.a.size, min(n_slots, self.problem.n_steps + 1)))

    def _move(self, t: int, place: int, amount: int) -> None:
        slot = fetch_column(place, self.t, self.halvings, self.matrix, self.columns)
        self.b += amount * self.columns[0][slot]

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        QuadraticPath._keep(self, places)
        self._open_slots()


class MarginPath(_SparsePath, _MarginPath):
    """Exact margins of sparse data."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.y = problem.derivative.targets(targets)
        self.u = np.zeros_like(self.y)
        self.psi = np.empty(self.y.size, dtype=np.int32)

    def _scores(self) -> FloatArray:
        residuals(self.u, self.y, self.scales[self.t], *self.loss, self.psi)
        sparse_gradient(self.matrix, self.psi, self.work)
        return self.work

    def _move(self, t: int, place: int, amount: int) -> None:
        move_sparse(self.matrix, place, amount, self.u)

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        _MarginPath._keep(self, places)

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.matrix, self.sampler, self.psi, self.work, self.bounds, self.names, chosen)
        reached: int = advance_sparse(
            self.t, self.problem.inverse_temperature, self.scales, self.u, self.y, *self.loss, *state, words
        )
        return reached


class GramPath(QuadraticPath):
    """The whole Gram matrix; squared loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        y = problem.derivative.targets(targets).astype(np.float64)
        gram = np.zeros((self.n_features, self.n_features), dtype=np.int64)
        self.a = np.zeros(self.n_features, dtype=np.int64)
        # Products of doubles that hold integers, exact in blocks of up to 2**21 rows; few rows at a time save memory.
        block = min(exact_block_rows(ONE), max(1, _BLOCK_ENTRIES // self.n_features))
        for start in range(0, X.shape[0], block):
            part = np.asarray(X[start : start + block], dtype=np.float64)
            gram += (part.T @ part).astype(np.int64)
            self.a -= (part.T @ y[start : start + block]).astype(np.int64)
        self.columns = tuple(all_columns(gram, self.halvings))
        nothing: IntArray = np.zeros(0, dtype=np.int64)
        # As sparse paths have it, so that one compilation serves both.
        self.matrix = (_frozen(nothing, np.int64), nothing, nothing, nothing)
        self.y = y

    def _move(self, t: int, place: int, amount: int) -> None:
        self.b += amount * self.columns[0][place]

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        # The entries are halved already.
        self.columns = tuple(all_columns(self.columns[0][np.ix_(places, places)], 0))


class DensePath(_MarginPath):
    """Exact margins of dense data."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        self.y = problem.derivative.targets(targets)
        self.u = np.zeros_like(self.y)
        self.data = self._in_fours(np.asarray(X).T)
        self.block = exact_block_rows(problem.bound)
        self.psi = np.empty(self.y.size)

    @staticmethod
    def _in_fours(columns: Any) -> NDArray[np.float32]:
        """One column after the other, padded to a multiple of four; single precision holds 17-bit integers."""
        data = np.zeros((-(-columns.shape[0] // 4) * 4, columns.shape[1]), dtype=np.float32)
        data[: columns.shape[0]] = columns
        return data

    def _scores(self) -> FloatArray:
        residuals(self.u, self.y, self.scales[self.t], *self.loss, self.psi)
        dense_gradient(self.data, self.psi, self.block, self.work)
        return self.work

    def _move(self, t: int, place: int, amount: int) -> None:
        move_dense(self.data, place, amount, self.u)

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        self.data = self._in_fours(self.data[places])

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.data, self.block, self.sampler, self.psi, self.work, self.bounds, self.names, chosen)
        reached: int = advance_dense(
            self.t, self.problem.inverse_temperature, self.scales, self.u, self.y, *self.loss, *state, words
        )
        return reached


PATHS: dict[str, type[FrankWolfePath]] = {
    "sublinear": SublinearPath,
    "columns": ColumnPath,
    "margins": MarginPath,
    "gram": GramPath,
    "dense": DensePath,
}
_SPARSE = ("sublinear", "columns", "margins")
_QUADRATIC = ("columns", "gram")


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


class _Zeros:
    """Words for a run whose result nobody sees."""

    def words(self, size: int) -> WordArray:
        return np.zeros(size, dtype=np.uint64)


@cache
def warm_up(*, sparse: bool, noisy: bool = False) -> None:
    """Compile all that the paths of a layout call, once a process: each makes two steps over one record.

    ``noisy`` says that there is too much noise for any path of a sparse table but the sub-linear one.
    """
    X = np.full((1, 8), ONE)
    for name in PATHS:
        if sparse == (name in _SPARSE) and (name == "sublinear" or not (sparse and noisy)):
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
