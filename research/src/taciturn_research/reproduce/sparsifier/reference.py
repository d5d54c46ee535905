"""The non-private reference, quickly: the same steps as Private LASSO without noise, with few columns looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from taciturn.core.validation import FloatArray, IntArray

__all__ = ["noiseless_frank_wolfe"]


# Columns that are equal have equal gradients but for rounding; the one chosen first stays the one chosen.
_CLEARLY_MORE = 1.0 + 1e-12
# A product with the whole matrix costs about as much as this many columns by themselves.
_FEW = 16


def noiseless_frank_wolfe(X: Any, target: FloatArray, *, radius: float, n_steps: int) -> FloatArray:
    r"""The weights of ``noisy_frank_wolfe`` without noise after ``n_steps`` steps of logistic regression.

    A step moves towards the largest entry of the gradient g. When predicted probabilities move by
    :math:`\Delta p`, an entry moves by at most :math:`\max_i |x_{ij}| \cdot \sum_i |\Delta p_i| / n`, so columns that
    were never chosen are looked at only when such moves add up to what they lack; and records that agree in all chosen
    columns have one margin, so they are kept as groups.
    """
    n_columns = X.shape[1]
    columns = sp.csc_array(X) if sp.issparse(X) else np.asfortranarray(X)
    reach = abs(columns).max(axis=0)
    reach = reach.toarray().ravel() if sp.issparse(X) else reach
    chosen = _Groups(target)
    sizes, seen, drift = np.full(n_columns, np.inf), np.zeros(n_columns), 0.0
    for t in range(1, n_steps + 1):
        gradient = chosen.gradient()
        largest = float(np.abs(gradient).max(initial=-1.0))
        doubtful = sizes + reach * (drift - seen) > largest
        doubtful[chosen.features] = False
        if doubtful.any():
            places = np.flatnonzero(doubtful)
            found = _entries(columns, places, chosen.residuals(target))
            sizes[places], seen[places] = np.abs(found), drift
            first = int(np.abs(found).argmax())
            if abs(found[first]) > _CLEARLY_MORE * largest:
                chosen.add(int(places[first]), _column(columns, int(places[first])), target)
                gradient = np.append(gradient, found[first])
        drift += chosen.step(int(np.abs(gradient).argmax()), gradient, 2.0 / (t + 2.0), radius)
    weights = np.zeros(n_columns)
    weights[chosen.features] = chosen.weights
    return weights


class _Groups:
    """Records that agree in the chosen columns, with their common margin and probability."""

    def __init__(self, target: FloatArray) -> None:
        self.n_rows = target.size
        self.features: list[int] = []
        self.weights = np.zeros(0)
        self.of = np.zeros(target.size, dtype=np.int64)
        self.values = np.zeros((0, 1))
        self.margins, self.probabilities = np.zeros(1), np.full(1, 0.5)
        self._count(target)

    def _count(self, target: FloatArray) -> None:
        self.shares = np.bincount(self.of) / self.n_rows
        self.positive = np.bincount(self.of, weights=target) / self.n_rows

    def gradient(self) -> FloatArray:
        """Of the mean loss, in the chosen columns."""
        gradient: FloatArray = self.values @ (self.shares * self.probabilities - self.positive)
        return gradient

    def residuals(self, target: FloatArray) -> FloatArray:
        """Of all records, divided by their number."""
        return (self.probabilities[self.of] - target) / self.n_rows

    def add(self, feature: int, column: FloatArray, target: FloatArray) -> None:
        """Choose a column: groups fall apart where its values differ."""
        values, codes = np.unique(column, return_inverse=True)
        pairs, self.of = np.unique(self.of * values.size + codes, return_inverse=True)
        before, code = np.divmod(pairs, values.size)
        self.values = np.vstack((self.values[:, before], values[code]))
        self.margins, self.probabilities = self.margins[before], self.probabilities[before]
        self.features.append(feature)
        self.weights = np.append(self.weights, 0.0)
        self._count(target)

    def step(self, place: int, gradient: FloatArray, share: float, radius: float) -> float:
        """Move towards a vertex; the mean move of the probabilities."""
        move = -np.sign(gradient[place]) * share * radius
        self.weights *= 1.0 - share
        self.weights[place] += move
        self.margins *= 1.0 - share
        self.margins += move * self.values[place]
        probabilities = expit(self.margins)
        moved = float(self.shares @ np.abs(probabilities - self.probabilities))
        self.probabilities = probabilities
        return moved


def _entries(columns: Any, places: IntArray, residuals: FloatArray) -> FloatArray:
    """The gradient at some places."""
    if places.size > _FEW:
        return np.asarray(columns.T @ residuals)[places]
    if not sp.issparse(columns):
        return np.array([columns[:, place] @ residuals for place in places])
    starts, rows, values = columns.indptr, columns.indices, columns.data
    spans = [slice(starts[place], starts[place + 1]) for place in places]
    return np.array([values[span] @ residuals[rows[span]] for span in spans])


def _column(columns: Any, place: int) -> FloatArray:
    column: FloatArray = columns[:, [place]].toarray().ravel() if sp.issparse(columns) else columns[:, place]
    return column
