"""What a competitor is: a name, a grid of one public knob, and a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn_research.arena.sets import DataSet, Problem

__all__ = ["DELTA", "Fitted", "Method", "Setting", "fitted", "prepared", "shortened", "with_constant"]

DELTA = 1e-6
"""For everybody."""

Setting = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Predictions for the test part (margins of a classifier), and which features they use."""

    predicted: NDArray[np.float64]
    support: NDArray[np.bool_]


def fitted(model: Any, X_test: Any, n_columns: int) -> Fitted:
    """What a fitted linear model says; columns after the first ``n_columns`` are constants and no features."""
    predicted = model.decision_function(X_test) if hasattr(model, "decision_function") else model.predict(X_test)
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
    return Fitted(np.ravel(predicted), np.any(np.atleast_2d(coef) != 0.0, axis=0)[:n_columns])


def one_setting(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    """Nothing to choose."""
    return ({},)


def willing(data_set: DataSet) -> str | None:
    """No reason to leave a data set out."""
    return None


@dataclass(frozen=True, slots=True)
class Method:
    """A competitor.

    Parameters
    ----------
    name : str
        Its name.
    family : {"default", "first edition", "practice", "published", "sound", "non-private"}
        What ``--methods`` may name as well.
    tasks : tuple of str
        What it can fit.
    fit : callable
        ``fit(data_set, problem, epsilon, seed, **setting)`` returns a ``Fitted``.
    grid : callable
        ``grid(data_set, quick)``: the settings among which an oracle chooses.
    refuses : callable
        ``refuses(data_set)``: a reason to leave it out, or None.
    few : bool
        Whether it is judged on fewer seeds in the quick setting.
    """

    name: str
    family: str
    tasks: tuple[str, ...]
    fit: Callable[..., Fitted]
    grid: Callable[[DataSet, bool], tuple[Setting, ...]] = one_setting
    refuses: Callable[[DataSet], str | None] = willing
    few: bool = False

    @property
    def private(self) -> bool:
        """Whether it takes a budget."""
        return self.family != "non-private"


def with_constant(X: Any) -> Any:
    """A column of ones at the end, for methods without intercept."""
    ones = np.ones((X.shape[0], 1))
    return sp.hstack((X, ones), format="csr") if sp.issparse(X) else np.hstack((X, ones))


def shortened(X: Any, row_bound: float) -> Any:
    """Rows scaled down to an L2 norm of at most ``row_bound``."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    factors = row_bound / np.maximum(np.sqrt(np.ravel(squares)), row_bound)
    return sp.csr_array(sp.diags_array(factors) @ X) if sp.issparse(X) else X * factors[:, None]


def prepared(data_set: DataSet, problem: Problem) -> tuple[Any, Any, int]:
    """Features to fit and to judge on for methods without intercept, and how many constants they hold."""
    if not data_set.intercept:
        return problem.X, problem.X_test, 0
    return with_constant(problem.X), with_constant(problem.X_test), 1
