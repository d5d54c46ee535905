r"""Frank-Wolfe, then only the largest coefficients: the Sparsifier, made private.

Khanna, Lu and Raff run private Frank-Wolfe and keep as many coefficients as a noisy count of a non-private model's
says. A public number of coefficients does the same at no cost and is the default; the count is offered with the
integer range without which it would leak.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer, check_real
from taciturn.estimators.frank_wolfe import FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.fitting.thresholding import keep_largest_columns
from taciturn.planning import ClippedCount

__all__ = ["SparsifiedClassifier", "SparsifiedRegressor"]


class _Sparsified:
    """Keep the features with the largest coefficients, the intercept apart."""

    def _check_public(self) -> None:
        super()._check_public()
        # The ends of a range that depends on the number of features are right for any number.
        self._count_mechanism(1)

    def _count_mechanism(self, n_columns: int) -> ClippedCount | None:
        if self.n_nonzero != "private-count":
            check_integer(1, n_nonzero=self.n_nonzero)
            return None
        share = check_real(0.0, 1.0, closed="left", count_share=self.count_share)
        if share == 0.0:
            raise ParameterError("count_share", share, "a number in (0, 1)", "give the count a share of epsilon")
        root = math.sqrt(n_columns)
        low, high = (math.ceil(root), math.floor(2.0 * root)) if self.count_range is None else self._range()
        return ClippedCount(low, high, self.relation, share * self.epsilon)

    def _range(self) -> tuple[int, int]:
        """The two ends as they were given; :class:`ClippedCount` refuses what are no integers."""
        try:
            low, high = self.count_range
        except (TypeError, ValueError):
            return 0, 0
        return tuple(int(end) if isinstance(end, np.integer) else end for end in (low, high))

    def _public_facts(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        return super()._public_facts(n_rows, n_columns) | {"n_nonzero": self.n_nonzero}

    def _thin(self, coefficients: np.ndarray, count: Callable[[], int]) -> np.ndarray:
        k = count() if self.n_nonzero == "private-count" else self.n_nonzero
        kept = keep_largest_columns(coefficients[:, :-1], k)
        return np.column_stack((kept, coefficients[:, -1]))


class SparsifiedRegressor(_Sparsified, FrankWolfeRegressor):
    r"""Least squares over an L1 ball by private Frank-Wolfe, thinned to the largest coefficients.

    The objective and the solver are those of :class:`FrankWolfeRegressor`; afterwards all but the ``n_nonzero``
    largest coefficients (in absolute value, in mapped units) are set to zero. The intercept is not counted.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Thinning to a public number is post-processing and costs
    nothing. ``n_nonzero="private-count"`` also releases a count, with a share of epsilon of its own and one
    accountant over both.

    Parameters
    ----------
    epsilon, delta, relation, n_public, x_bound, y_bounds, radius
        As in :class:`FrankWolfeRegressor`.
    loss, residual_clip, n_steps, fit_intercept, invalid, random_state
        As in :class:`FrankWolfeRegressor`.
    n_nonzero : int or "private-count", default=10
        How many coefficients to keep. "private-count": as many as the noiseless solution has, clipped to
        ``count_range`` and noised; at common budgets this is a coin flip between the ends of the range.
    count_range : tuple of int, default=None
        Public integer range of the count. None: from the square root of the number of features to twice that.
    count_share : float, default=0.05
        Share of epsilon for the count.

    Attributes
    ----------
    coef_, intercept_, n_iter_, support_, certificate_, n_features_in_, feature_names_in_
        As in :class:`FrankWolfeRegressor`.

    References
    ----------
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparsifiedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = 0.5 * X[:, 2] - 0.3 * X[:, 11]
    >>> model = SparsifiedRegressor(n_nonzero=2, radius=1.0, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [2, 11]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float = 1.0,
        y_bounds: tuple[float, float] = (-1.0, 1.0),
        radius: float = 10.0,
        loss: str = "huber",
        residual_clip: float | None = None,
        n_nonzero: int | str = 10,
        count_range: tuple[int, int] | None = None,
        count_share: float = 0.05,
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            n_public=n_public,
            x_bound=x_bound,
            y_bounds=y_bounds,
            radius=radius,
            loss=loss,
            residual_clip=residual_clip,
            n_steps=n_steps,
            fit_intercept=fit_intercept,
            invalid=invalid,
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.count_range = count_range
        self.count_share = count_share


class SparsifiedClassifier(_Sparsified, FrankWolfeClassifier):
    r"""Logistic regression over an L1 ball by private Frank-Wolfe, thinned to the largest coefficients.

    The objective and the solver are those of :class:`FrankWolfeClassifier`; afterwards only the ``n_nonzero``
    features with the largest coefficients (summed over classes in absolute value) are kept. Intercepts are not
    counted.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Thinning to a public number is post-processing and costs
    nothing. ``n_nonzero="private-count"`` also releases a count, with a share of epsilon of its own and one
    accountant over both.

    Parameters
    ----------
    epsilon, delta, relation, n_public, x_bound, classes, radius, n_steps, fit_intercept, invalid, random_state
        As in :class:`FrankWolfeClassifier`.
    n_nonzero : int or "private-count", default=10
        How many features to keep. "private-count": as many as the noiseless solution uses, clipped to
        ``count_range`` and noised; at common budgets this is a coin flip between the ends of the range.
    count_range : tuple of int, default=None
        Public integer range of the count. None: from the square root of the number of features to twice that.
    count_share : float, default=0.05
        Share of epsilon for the count.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, support_, certificate_, n_features_in_, feature_names_in_
        As in :class:`FrankWolfeClassifier`.

    References
    ----------
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparsifiedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = X[:, 4] + X[:, 9] > 0
    >>> model = SparsifiedClassifier(n_nonzero=2, classes=(False, True), random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [4, 9]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float = 1.0,
        classes: Any = None,
        radius: float = 10.0,
        n_nonzero: int | str = 10,
        count_range: tuple[int, int] | None = None,
        count_share: float = 0.05,
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            n_public=n_public,
            x_bound=x_bound,
            classes=classes,
            radius=radius,
            n_steps=n_steps,
            fit_intercept=fit_intercept,
            invalid=invalid,
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.count_range = count_range
        self.count_share = count_share
