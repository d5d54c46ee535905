"""The eight real sets of RNM-Screen, scaled as its printed numbers ask for, and the LASSO that says what is true."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.preprocessing import PowerTransformer

from taciturn.core.validation import BoolArray, FloatArray
from taciturn.datasets import Dataset
from taciturn.metrics import support_f1

TRANSFORMED = "Yeo-Johnson"
UNTRANSFORMED = "untransformed"

# Penalties are tried at this ratio, down to far below any that leaves a third of the features.
_RATIO, _TRIED = 0.9, 250
# Between those that leave too few and those that leave too many.
_FINE = 150


@dataclass(frozen=True, slots=True)
class RealSet:
    """What the paper says of a set, outright or by its numbers.

    ``label`` is its name in the tables, ``n_true`` how many non-zeros the LASSO had, with and without the transform.
    The features of LIBSVM's sets are there scaled to [-1, 1].
    """

    label: str
    n_steps: int
    n_true: dict[str, int]
    libsvm: bool


def _set(label: str, n_steps: int, n_true: int, untransformed: int | None = None, *, libsvm: bool = False) -> RealSet:
    return RealSet(label, n_steps, {TRANSFORMED: n_true, UNTRANSFORMED: untransformed or n_true}, libsvm)


SETS = {
    "abalone": _set("Abalone", 100, 3, libsvm=True),
    "housing": _set("Housing", 100, 4, libsvm=True),
    "bodyfat": _set("Body Fat", 100, 5, libsvm=True),
    "pyrim": _set("Pyrim", 100, 9, libsvm=True),
    "triazines": _set("Triazines", 100, 19, libsvm=True),
    "residential": _set("Residential Buildings", 200, 31, 32),
    "communities": _set("Communities and Crime", 200, 41),
    "blogfeedback": _set("BlogFeedback", 1000, 88, 93),
}
"""By the name of the data set. Of the LASSO's non-zeros the paper says "approximately d/3"; Table 2's TPR and FPR are
fractions of whole numbers and leave one choice each. Without the transform, Table 5's F1 of a single coefficient,
2 / (n_true + 1), leaves 32 for Residential Buildings and 93 to 96 for BlogFeedback."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A scaled set and what of it all trials share.

    ``factor`` is a root of the Gram matrix of the features and the target, of no more rows than columns. ``spreads``
    are the sums of squares of the features about their means. ``references`` are LASSO weights, a row each, with as
    many non-zeros as the paper's; the penalty is not printed.
    """

    label: str
    transform: str
    X: FloatArray
    y: FloatArray
    factor: FloatArray
    spreads: FloatArray
    references: FloatArray
    n_steps: int

    def mean_squared_error(self, weights: FloatArray) -> float:
        """Of predictions without intercept."""
        return float(np.square(self.factor[:, -1] - self.factor[:, :-1] @ weights).sum() / self.y.size)


def pose(dataset: Dataset, *, transform: str) -> Problem:
    """Scale a set and find the LASSO's weights."""
    known = SETS[dataset.name]
    X, y = scaled(dataset, transform)
    # numpy's stubs know only the pair that the other modes return.
    factor = cast(FloatArray, np.linalg.qr(np.column_stack((X, y)), mode="r"))
    return Problem(
        known.label,
        transform,
        X,
        y,
        factor,
        np.square(X - X.mean(axis=0)).sum(axis=0),
        lasso_weights(factor[:, :-1], factor[:, -1], known.n_true[transform]),
        known.n_steps,
    )


def scaled(dataset: Dataset, transform: str) -> tuple[FloatArray, FloatArray]:
    """Features whose largest absolute value is 1, and the target: of unit variance, or of largest absolute value 1."""
    X = np.nan_to_num(np.asarray(dataset.X, dtype=np.float64), nan=0.0)
    y = dataset.y - dataset.extras["y_cost"] if dataset.name == "residential" else dataset.y.astype(np.float64)
    if SETS[dataset.name].libsvm:
        low, width = X.min(axis=0), np.ptp(X, axis=0)
        X = np.where(width > 0.0, 2.0 * (X - low) / np.where(width > 0.0, width, 1.0) - 1.0, 0.0)
    if transform == TRANSFORMED:
        X = PowerTransformer().fit_transform(X)
        y = PowerTransformer().fit_transform(y[:, None]).ravel()
    else:
        y = y / np.abs(y).max()
    return X / np.abs(X).max(), y


def lasso_weights(X: FloatArray, y: FloatArray, n_true: int) -> FloatArray:
    """Solutions of scikit-learn's LASSO without intercept with that many non-zeros, or as nearly so as there are."""
    model = Lasso(fit_intercept=False)

    def path(penalties: FloatArray) -> FloatArray:
        return np.array([model.set_params(alpha=penalty).fit(X, y).coef_ for penalty in penalties])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        penalties = [np.abs(X.T @ y).max() / y.size]
        sizes = [0]
        while sizes[-1] <= 1.3 * n_true + 1.0 and len(sizes) < _TRIED:
            penalties.append(_RATIO * penalties[-1])
            sizes.append(int(np.count_nonzero(path(np.array(penalties[-1:])))))
        enough = np.flatnonzero(np.array(sizes) >= n_true)
        first = enough[0] if enough.size else len(sizes) - 1
        last = np.flatnonzero(np.array(sizes) <= n_true)[-1]
        fine = path(np.geomspace(penalties[max(first - 1, 0)], penalties[min(last + 1, len(sizes) - 1)], _FINE))
    off = np.abs(np.count_nonzero(fine, axis=1) - n_true)
    nearest: FloatArray = fine[off == off.min()]
    return nearest


# ---------------------------------------------------------------------
# What the trials of the screening papers measure.


_POINTS = 50


def support_rates(true: BoolArray, support: BoolArray) -> dict[str, float]:
    """What Tables 1 and 2 of RNM-Screen have in their columns; "sparsity" is the share of NON-zeros."""
    return {
        "TPR": float(support[true].mean()),
        "FPR": float(support[~true].mean()),
        "F1": support_f1(true, support),
        "sparsity": float(support.mean()),
    }


def explained_share(factor: FloatArray, spreads: FloatArray, kept: BoolArray, others: BoolArray) -> float | None:
    """Mean R2 of least squares without intercept from the kept features to the others; None if there are no such.

    ``factor`` is any matrix with the same inner products as the features; ``spreads`` are their sums of squares about
    the means.
    """
    if not kept.any() or not others.any():
        return None
    fitted, *_ = np.linalg.lstsq(factor[:, kept], factor[:, others], rcond=None)
    left = np.square(factor[:, others] - factor[:, kept] @ fitted).sum(axis=0)
    total = spreads[others]
    # A constant is explained or not, as scikit-learn's score has it.
    shares = np.where(total > 0.0, 1.0 - left / np.where(total > 0.0, total, 1.0), left == 0.0)
    return float(shares.mean())


def recorded_steps(n_steps: int) -> tuple[int, ...]:
    """About fifty steps from the first to the last, at equal distances."""
    return tuple(np.unique(np.linspace(1, n_steps, min(n_steps, _POINTS)).round().astype(int)).tolist())


class Curve:
    """A quantity along the steps of a fit, ``quantity(weights, gradient)``: what a model's ``watch`` is set to."""

    def __init__(self, n_steps: int, quantity: Callable[[FloatArray, FloatArray], float]) -> None:
        self._steps = frozenset(recorded_steps(n_steps))
        self._quantity = quantity
        self.points: list[tuple[int, float]] = []

    def __call__(self, step: int, weights: FloatArray, gradient: FloatArray) -> None:
        """Take down a step, if it is one of those recorded."""
        if step in self._steps:
            self.points.append((step, float(self._quantity(weights, gradient))))
