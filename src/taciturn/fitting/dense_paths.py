"""Frank-Wolfe paths over dense data: on the Gram matrix, and by margins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray, IntArray, NumberArray, WordArray
from taciturn.core.lattice import ONE
from taciturn.data.fixed_point import exact_block_rows
from taciturn.fitting.frank_wolfe_path import FrankWolfePath, FrankWolfeProblem, QuadraticPath
from taciturn.kernels.gram_frank_wolfe import all_columns
from taciturn.kernels.margin_frank_wolfe import advance_dense, dense_gradient, move_dense, residuals
from taciturn.kernels.residual_pieces import curve_table

__all__ = ["DensePath", "GramPath"]

# Of a block of rows whose part of the Gram matrix is computed at a time.
_BLOCK_ENTRIES = 1 << 21


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
        frozen = nothing.view()
        # As sparse paths have it, so that one compilation serves both.
        frozen.flags.writeable = False
        self.matrix = (frozen, nothing, nothing, nothing)
        self.y = y

    def _move(self, t: int, place: int, amount: int) -> None:
        self.b += amount * self.columns[0][place]

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        # The entries are halved already.
        self.columns = tuple(all_columns(self.columns[0][np.ix_(places, places)], 0))


class DensePath(FrankWolfePath):
    """Exact margins and a full gradient per step; any loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        self.scales = problem.radius / problem.sums
        self.y = problem.derivative.targets(targets)
        self.u = np.zeros_like(self.y)
        self.loss = (problem.derivative.logistic, curve_table(), problem.bound)
        self.data = self._in_fours(np.asarray(X).T)
        self.block = exact_block_rows(problem.bound)
        self.psi = np.empty(self.y.size)
        self.work = np.empty(self.n_features)

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

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.u, self.y

    def _keep(self, places: IntArray) -> None:
        self.data = self._in_fours(self.data[places])
        self.work = np.empty(places.size)

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.data, self.block, self.sampler, self.psi, self.work, self.bounds, self.names, chosen)
        reached: int = advance_dense(
            self.t, self.problem.inverse_temperature, self.scales, self.u, self.y, *self.loss, *state, words
        )
        return reached
