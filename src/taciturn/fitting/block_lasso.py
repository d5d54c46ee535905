r"""The features that enter the LASSO path of a small block of records first.

The path is followed from the penalty at which nothing is active downwards, by prediction and correction: along the
tangent to the next penalty at which a coefficient appears or vanishes, then Newton steps on the active coefficients.
For the squared loss the path is straight between these points and the prediction exact; for the logistic loss it is
curved and the Newton steps bring the solution back onto it. scikit-learn follows the first of these paths, with
warnings that would tell of the data, and not the second.

A vote must be a function of the block's records and of nothing else. So every sum over records that has to do with
all features runs on integers: no layout, chunk or thread can change it. Nothing here raises an error or a warning on
account of the values, and there is no randomness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.data.design import Design

__all__ = ["first_features"]


# Weights of records are rounded to a millionth of the largest, so that sums of products are exact.
_WEIGHT_BOUND = 1 << 20
# In squared lattice units: what rounding can leave of a constant column's variance is smaller.
_LEAST_VARIANCE = 2.0**-18
# A feature whose gradient falls with the penalty, to within rounding and more, is a copy of active ones.
_COLLINEAR = 1e-4
_CORRECTIONS = 2
_LAST_PENALTY = 1e-3
_LARGEST_COEFFICIENT = 1e3


def first_features(
    X: Any, x_bound: float, targets: FloatArray, k: int, *, logistic: bool, weights: FloatArray | None = None
) -> IntArray:
    r"""The k features that come first on the way down the path, fewer if the path ends before.

    For one target, those active as soon as k are:

    .. math:: \min_{b, w} \sum_i \phi(b + z_i \cdot w, y_i) + \alpha \|w\|_1, \qquad \alpha \downarrow,

    with the columns z of the block centred and divided by their standard deviations *in the block*, and
    :math:`\phi` half the squared residual or the logistic loss. With several targets, one path each; the k features
    that became active at the largest penalties are taken. Ties go to the lower column.

    The targets have a column each, of numbers or of 0 and 1 for the logistic loss; entries of X are clipped to
    ``x_bound``. Column numbers are in increasing order. ``weights`` are those of the records in the loss and in the
    moments of the columns; None for equal ones.
    """
    seen = None
    if sp.issparse(X):
        # A column without entries is constant and never enters.
        seen, places = np.unique(X.indices, return_inverse=True)
        X = sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], seen.size))
    if X.shape[0] < 2 or X.shape[1] == 0:
        return np.zeros(0, dtype=np.int64)
    columns = _Columns(Design(X, x_bound), weights)
    penalties: dict[int, float] = {}
    with np.errstate(all="ignore"):
        for target in targets.T:
            for feature, penalty in _path(columns, target, k, logistic, weights).items():
                penalties[feature] = max(penalty, penalties.get(feature, 0.0))
    first = sorted(penalties, key=lambda feature: (-penalties[feature], feature))[:k]
    chosen = np.sort(np.array(first, dtype=np.int64))
    return chosen if seen is None else seen[chosen].astype(np.int64)


class _Columns:
    """The columns of a block, centred and divided by their standard deviations; constant ones become zero."""

    def __init__(self, design: Design, weights: FloatArray | None = None) -> None:
        lattice = design.lattice
        n_rows = lattice.shape[0]
        squares = lattice.multiply(lattice) if sp.issparse(lattice) else lattice * lattice
        self._design, self._lattice = design, lattice
        # Where rows are those of persons their number must not be told by a refusal; a vote may be any function of its
        # block, so that sums beyond 64 bits, which no memory holds the rows for, would do no harm.
        self._n_records = None if weights is None else 1
        if weights is None:
            self._mean = design.rmatvec(np.ones(n_rows), 1) / n_rows
            variance = np.asarray(squares.sum(axis=0)).ravel() / n_rows - self._mean**2
        else:
            parts = np.rint(weights * (_WEIGHT_BOUND / float(weights.max())))
            self._mean = design.rmatvec(parts, _WEIGHT_BOUND, self._n_records) / float(parts.sum())
            variance = np.asarray(squares.T @ parts).ravel() / float(parts.sum()) - self._mean**2
        self.constant = variance < _LEAST_VARIANCE
        self._inverse = np.where(self.constant, 0.0, 1.0 / np.sqrt(np.where(self.constant, 1.0, variance)))

    def column(self, feature: int) -> FloatArray:
        """One of them."""
        raw = self._lattice[:, [feature]]
        dense = raw.toarray() if sp.issparse(raw) else raw
        return np.asarray((dense.ravel() - self._mean[feature]) * self._inverse[feature])

    def products(self, weights: FloatArray) -> FloatArray:
        """``Z.T @ weights`` for a few columns of weights, each rounded to a lattice of its own."""
        units = np.abs(weights).max(axis=0) / _WEIGHT_BOUND
        units[units == 0.0] = 1.0
        rounded = np.rint(weights / units)
        sums = self._design.rmatvec(rounded, _WEIGHT_BOUND, self._n_records)
        centred = sums - np.outer(self._mean, rounded.sum(axis=0))
        return np.asarray(centred * units * self._inverse[:, None])


def _path(
    columns: _Columns, target: FloatArray, k: int, logistic: bool, weights: FloatArray | None
) -> dict[int, float]:
    """The active features when k of them are, or at the end, with the penalty at which each became active."""
    level = float(target.mean() if weights is None else np.average(target, weights=weights))
    if (target == target[0]).all():
        return {}
    # Intercept first; one column and one coefficient more for each active feature.
    basis = np.ones((target.size, 1))
    theta = np.array([logit(level) if logistic else level])
    signs = np.zeros(1)
    active: dict[int, float] = {}
    residual, curvature = _derivatives(basis @ theta, target, logistic, weights)
    largest = penalty = float(np.abs(columns.products(residual[:, None])).max())
    dropped: list[int] = []
    # Coefficients seldom vanish again and few steps are halved; the bound is for blocks in which they do not stop.
    for _ in range(8 * k + 32):
        if len(active) == min(k, target.size - 1) or penalty <= _LAST_PENALTY * largest:
            break
        try:
            direction = np.linalg.solve(_gram(basis, curvature), signs)
        except np.linalg.LinAlgError:
            break
        moving = curvature * (basis @ direction)
        gradient, change = columns.products(np.column_stack((residual, moving))).T
        waits = _steps_to(penalty, gradient, change)
        waits[columns.constant] = np.inf
        waits[[*active, *dropped]] = np.inf
        dropped = []
        entering = int(np.argmin(waits))
        shrinking = direction * signs < 0.0
        ends = np.full(theta.size, np.inf)
        ends[shrinking] = np.maximum(-theta[shrinking] / direction[shrinking], 0.0)
        leaving = int(np.argmin(ends))
        step = min(waits[entering], ends[leaving], penalty / 2.0)
        penalty -= step
        theta = theta + step * direction
        try:
            for _ in range(_CORRECTIONS):
                residual, curvature = _derivatives(basis @ theta, target, logistic, weights)
                theta = theta + np.linalg.solve(_gram(basis, curvature), basis.T @ residual - penalty * signs)
        except np.linalg.LinAlgError:
            break
        if not (np.abs(theta) < _LARGEST_COEFFICIENT).all():
            break
        if step == ends[leaving]:
            feature = list(active)[leaving - 1]
            dropped = [feature]
            del active[feature]
            basis, theta, signs = (
                np.delete(basis, leaving, axis=1),
                np.delete(theta, leaving),
                np.delete(signs, leaving),
            )
        elif step == waits[entering]:
            active[entering] = penalty
            basis = np.column_stack((basis, columns.column(entering)))
            theta = np.append(theta, 0.0)
            signs = np.append(signs, np.sign(gradient[entering] - step * change[entering]))
        residual, curvature = _derivatives(basis @ theta, target, logistic, weights)
    return active


def _derivatives(
    margins: FloatArray, target: FloatArray, logistic: bool, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Minus the first and the second derivative of the loss, one each per record, times the weights."""
    if logistic:
        probability = expit(margins)
        first, second = target - probability, probability * (1.0 - probability)
    else:
        first, second = target - margins, np.ones(margins.size)
    return (first, second) if weights is None else (first * weights, second * weights)


def _gram(basis: FloatArray, curvature: FloatArray) -> FloatArray:
    return (basis * curvature[:, None]).T @ basis


def _steps_to(penalty: float, gradient: FloatArray, change: FloatArray) -> FloatArray:
    """By how much the penalty may fall until ``|gradient - step * change|`` reaches it, for each feature."""
    steps = np.full(gradient.size, np.inf)
    for sign in (1.0, -1.0):
        closing = 1.0 - sign * change
        possible = closing > _COLLINEAR
        reached = np.maximum(penalty - sign * gradient[possible], 0.0) / closing[possible]
        steps[possible] = np.minimum(steps[possible], reached)
    return steps
