"""Frank-Wolfe paths over sparse data: sub-linear, by Gram columns, and by margins."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray, IntArray, NumberArray, WordArray
from taciturn.core.errors import ParameterError
from taciturn.fitting.frank_wolfe_path import FrankWolfePath, FrankWolfeProblem, QuadraticPath
from taciturn.kernels.gram_frank_wolfe import fetch_column, no_columns
from taciturn.kernels.margin_frank_wolfe import advance_sparse, move_sparse, residuals, sparse_gradient
from taciturn.kernels.residual_pieces import curve_table
from taciturn.kernels.sparse_frank_wolfe import advance, new_pace
from taciturn.kernels.sparse_rows import count_columns, keep_columns, move, new_rows, pack, reset, schedule_of

__all__ = ["ColumnPath", "MarginPath", "SublinearPath"]

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
        self.a = np.zeros(self.n_features, dtype=np.int64)
        self.b = np.zeros(self.n_features, dtype=np.int64)
        self.pace, self.spare = new_pace(), np.full(1, -1.0)
        reset(0, self.a, self.b, self.matrix, self.rows, self.pieces, self.schedule)

    def _scores(self) -> FloatArray:
        scores: FloatArray = self.a + self.schedule[0][self.t] * self.b
        return scores

    def _move(self, t: int, place: int, amount: int) -> None:
        move(t, place, amount, 0.0, self.a, self.b, self.matrix, self.rows, self.pieces, self.schedule)
        # Levels of the sampler have not followed.
        self.spare[0] = -1.0

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.rows[0], self.rows[1]

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        self.a, self.b = self.a[places], self.b[places]
        self.spare[0] = -1.0

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.a, self.b, self.matrix, self.rows, self.pieces, self.schedule, self.sampler)
        reached: int = advance(
            self.t,
            self.problem.inverse_temperature,
            *state,
            self.pace,
            self.spare,
            self.bounds,
            self.names,
            chosen,
            words,
        )
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


class MarginPath(_SparsePath):
    """Exact margins and a full gradient per step; any loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.scales = problem.radius / problem.sums
        self.y = problem.derivative.targets(targets)
        self.u = np.zeros_like(self.y)
        self.loss = (problem.derivative.logistic, curve_table(), problem.bound)
        self.psi = np.empty(self.y.size, dtype=np.int32)
        self.work = np.empty(self.n_features)

    def _scores(self) -> FloatArray:
        residuals(self.u, self.y, self.scales[self.t], *self.loss, self.psi)
        sparse_gradient(self.matrix, self.psi, self.work)
        return self.work

    def _move(self, t: int, place: int, amount: int) -> None:
        move_sparse(self.matrix, place, amount, self.u)

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.u, self.y

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        self.work = np.empty(places.size)

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.matrix, self.sampler, self.psi, self.work, self.bounds, self.names, chosen)
        reached: int = advance_sparse(
            self.t, self.problem.inverse_temperature, self.scales, self.u, self.y, *self.loss, *state, words
        )
        return reached
