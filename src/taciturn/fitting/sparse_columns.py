"""Which columns of a released model stay: by their weights, and how many by a private comparison of losses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import softmax
from scipy.stats import entropy

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.fitting.gradient_descent import columns_by_weight
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_descent import ColumnModel, Descent, Gram
from taciturn.planning.sparse import LEAST_NONZERO, MOST_CHOSEN, SparsePlan

__all__ = ["SIZE_SHARE", "candidate_sizes", "choose_columns", "choose_size"]

SIZE_SHARE = 0.04
"""Share of the budget for the number of nonzero coefficients."""

_RATIO = 1.15
# Excess loss per record that a smaller model may have, and half of which the largest pays for its size.
_TOLERANCE = 0.004
# More than half of the columns have to gain this much.
_MORE_THAN_HALF = 0.02
_CLIP, _MOST_CLIP = 0.5, 4.0
# Eigenvalues of a Gram matrix below its noise are replaced by the rest of its trace.
_LEAST_REST = 0.05


def choose_columns(model: ColumnModel, k: int) -> ColumnModel:
    """The model with k columns."""
    order, weights = _path(model, k)
    return _cut(model, order, weights, k)


def choose_size(
    plan: SparsePlan, releases: Releases, descent: Descent, model: ColumnModel, start: FloatArray
) -> ColumnModel:
    """The model with as few columns as hold its loss; ``start`` are the margins of the best constant."""
    null_loss, surprise = _null_losses(plan, start)
    unit, clip = plan.n_rows * null_loss, min(max(surprise, _CLIP), _MOST_CLIP)
    sizes = candidate_sizes(model.n_columns)
    order, weights = _path(model, int(sizes[-1]))
    clipping = replace(descent.clipping(model, 1.0, 1.0 if not plan.regression else model.size), product_bound=1)
    constants = model.constants * (ONE / clipping.constant) if clipping.constant else None

    def spread(k: int | None) -> FloatArray:
        kept = np.zeros_like(model.weights) if k is not None else model.weights
        if k is not None:
            kept[:, order[:k]] = weights(k)
        return kept if constants is None else np.column_stack((kept, constants))

    # As in Akaike's criterion a column has to be worth one unit of likelihood, about two of losses of numbers.
    least = (2.0 if plan.regression else 1.0) * plan.n_outputs
    rate = max(0.5 * _TOLERANCE * unit / max(model.n_columns, 1), least)
    place = releases.best_model(
        f"one of {sizes.size} numbers of nonzero coefficients", SIZE_SHARE, clipping,
        tuple(spread(int(k)) for k in sizes), spread(None),
        rate * sizes + _MORE_THAN_HALF * unit * (2 * sizes > model.n_columns),
        (clip, clip), _TOLERANCE * unit,
    )  # fmt: skip
    return _cut(model, order, weights, int(sizes[place]))


def _null_losses(plan: SparsePlan, start: FloatArray) -> tuple[float, float]:
    """The mean loss of a constant, at most that of a coin and in its units, and its largest loss.

    Losses of rare classes are small on average, and large where the class is met.
    """
    if plan.regression:
        return 1.0, 0.0
    shares = softmax(start if plan.n_outputs > 1 else np.array([0.0, start[0]]))
    return min(float(entropy(shares)) / math.log(2.0), 1.0), -math.log(float(shares.min()))


def candidate_sizes(n_columns: int) -> IntArray:
    """Numbers of columns in a geometric progression, up to half of them where there are many."""
    most = min(n_columns, MOST_CHOSEN)
    sizes, k = {0, n_columns // 2, most}, float(min(LEAST_NONZERO, n_columns))
    while k < most:
        sizes.add(math.floor(k))
        k = max(k * _RATIO, k + 1.0)
    least = min(LEAST_NONZERO, n_columns)
    return np.array(sorted(size for size in sizes if size == 0 or least <= size <= most), dtype=np.int64)


def _cut(model: ColumnModel, order: IndexArray, weights: _Weights, k: int) -> ColumnModel:
    places = np.argsort(order[:k], kind="stable")
    return model.keep(order[:k][places], weights(k)[:, places])


class _Weights:
    """Weights of the first k columns of an order: as they are, or those that predict alike under a Gram matrix."""

    def __init__(self, model: ColumnModel, order: IndexArray, metric: FloatArray | None) -> None:
        self._weights, self._order, self._metric = model.weights, order, metric

    def __call__(self, k: int) -> FloatArray:
        columns = self._order[:k]
        if self._metric is None:
            return self._weights[:, columns]
        targets = self._metric[columns] @ self._weights.T
        solution: FloatArray = np.linalg.solve(self._metric[np.ix_(columns, columns)], targets).astype(np.float64)
        return solution.T


def _path(model: ColumnModel, k: int) -> tuple[IndexArray, _Weights]:
    """Columns in the order in which they are kept, and the weights of the first of them."""
    if model.gram is None:
        order = columns_by_weight(model.weights)
        return order, _Weights(model, order, None)
    metric = _denoised(model.gram, model.n_columns)
    order = _forward(model.weights, metric, k)
    return order, _Weights(model, order, metric)


def _denoised(gram: Gram, n_columns: int) -> FloatArray:
    """The Gram matrix of the features without what its noise may have added, and with at least a small diagonal."""
    matrix = gram.matrix[:n_columns, :n_columns]
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values - gram.noise, 0.0)
    mean = max(float(np.trace(matrix)), 1e-9) / n_columns
    rest = max(mean - float(kept.sum()) / n_columns, _LEAST_REST * mean)
    if gram.noise == 0.0:
        kept, rest = np.maximum(values, 0.0), 1e-9 * mean
    denoised: FloatArray = (vectors * kept) @ vectors.T + rest * np.eye(n_columns)
    return denoised


def _forward(weights: FloatArray, metric: FloatArray, k: int) -> IndexArray:
    """Forward selection of the fitted margins: each column explains the most of what the earlier ones do not."""
    covariances = metric @ weights.T
    rest, scales = covariances.copy(), np.diag(metric).copy()
    order: list[int] = []
    basis = np.zeros((0, len(metric)))
    for _ in range(min(k, len(metric))):
        gains = np.square(rest).sum(axis=1) / np.maximum(scales, 1e-12 * np.diag(metric))
        gains[order] = -1.0
        best = int(np.argmax(gains))
        order.append(best)
        # One step of a Cholesky factorisation takes the column out of all others.
        row = (metric[best] - basis[:, best] @ basis) / math.sqrt(max(scales[best], 1e-12 * metric[best, best]))
        basis = np.vstack((basis, row))
        rest -= np.outer(row, rest[best] / math.sqrt(max(scales[best], 1e-12 * metric[best, best])))
        scales -= np.square(row)
    return np.array(order, dtype=np.intp)
