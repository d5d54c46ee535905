r"""Frank-Wolfe, then only the largest coefficients: the Sparsifier, made private.

Khanna, Lu and Raff run private Frank-Wolfe and keep as many coefficients as a noisy count of a non-private model's
says. A public number of coefficients does the same at no cost and is the default; the count is offered with the
integer range without which it would leak.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.accounts import Account
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer, check_real
from taciturn.estimators.frank_wolfe import FrankWolfeClassifier, FrankWolfeModel, FrankWolfeRegressor
from taciturn.fitting.frank_wolfe import count_nonzero
from taciturn.fitting.procedure import PublicFacts
from taciturn.fitting.top_k import keep_largest_columns
from taciturn.planning.frank_wolfe import ClippedCount
from taciturn.sources import ArraySource

__all__ = ["SparsifiedClassifier", "SparsifiedRegressor"]


class SparsifiedModel(FrankWolfeModel):
    """Frank-Wolfe whose largest coefficients are kept: what regressor and classifier share."""

    n_nonzero: int | str
    count_range: tuple[int, int] | None
    count_share: float

    # What is counted privately are the coefficients of a run without noise.
    _always_private = False

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        # The ends of a range that depends on the number of features are valid for any number.
        self._count_mechanism(1)

    def _count_mechanism(self, n_features: int) -> ClippedCount | None:
        if self.n_nonzero != "private-count":
            check_integer(1, n_nonzero=self.n_nonzero)
            return None
        share = check_real(0.0, 1.0, closed="left", count_share=self.count_share)
        if share == 0.0:
            raise ParameterError("count_share", share, "a number in (0, 1)", "give the count a share of epsilon")
        root = math.sqrt(n_features)
        low, high = (math.ceil(root), math.floor(2.0 * root)) if self.count_range is None else self._given_range()
        return ClippedCount(low, high, self.relation, share * self.epsilon)

    def _given_range(self) -> tuple[int, int]:
        """The two ends of ``count_range``; :class:`ClippedCount` refuses what are no integers."""
        given: Any = self.count_range
        try:
            low, high = given
        except (TypeError, ValueError):
            return 0, 0
        return (int(low) if isinstance(low, np.integer) else low, int(high) if isinstance(high, np.integer) else high)

    def _weights(self, plan: Any, source: ArraySource, stream: Stream) -> FloatArray:
        weights = super()._weights(plan, source, stream)
        private = self.n_nonzero == "private-count"
        k = count_nonzero(plan, source, stream.spawn("count")) if private else int(self.n_nonzero)
        return np.column_stack((keep_largest_columns(weights[:, :-1], k), weights[:, -1]))

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"n_nonzero": self.n_nonzero}


class SparsifiedRegressor(SparsifiedModel, FrankWolfeRegressor):
    r"""Least squares over an L1 ball by private Frank-Wolfe, thinned to the largest coefficients.

    The objective and the solver are those of :class:`FrankWolfeRegressor`; afterwards all but the ``n_nonzero``
    largest coefficients (in absolute value, in mapped units) are set to zero. The intercept is not counted.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Thinning to a public number is post-processing and costs
    nothing more than :class:`FrankWolfeRegressor`. ``n_nonzero="private-count"`` also releases a count, with a share
    of epsilon of its own and one accountant over both.

    Parameters
    ----------
    %(ball_budget)s
    %(y_bounds)s
    %(radius_regressor)s
    %(huber_loss)s
    %(private_count)s
    %(ball_steps)s

    Attributes
    ----------
    %(iterative_regressor_attributes)s

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
    >>> model = SparsifiedRegressor(x_bound=1.0, y_bounds=(-1, 1), n_nonzero=2, radius=1.0, random_state=0).fit(X, y)
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
        x_bound: float | None = None,
        y_bounds: tuple[float, float] | None = None,
        radius: float | str = "auto",
        loss: str = "huber",
        residual_clip: float | str = "auto",
        n_nonzero: int | str = 10,
        count_range: tuple[int, int] | None = None,
        count_share: float = 0.05,
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
        account: Account | str | None = None,
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
            account=account,
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.count_range = count_range
        self.count_share = count_share


class SparsifiedClassifier(SparsifiedModel, FrankWolfeClassifier):
    r"""Logistic regression over an L1 ball by private Frank-Wolfe, thinned to the largest coefficients.

    The objective and the solver are those of :class:`FrankWolfeClassifier`; afterwards only the ``n_nonzero``
    features with the largest coefficients (summed over classes in absolute value) are kept. Intercepts are not
    counted.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Thinning to a public number is post-processing and costs
    nothing. ``n_nonzero="private-count"`` also releases a count, with a share of epsilon of its own and one
    accountant over both.

    Parameters
    ----------
    %(ball_budget)s
    %(classes)s
    %(radius_classifier)s
    %(private_count)s
    %(ball_steps)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s

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
    >>> model = SparsifiedClassifier(x_bound=1.0, n_nonzero=2, classes=(False, True), random_state=0).fit(X, y)
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
        x_bound: float | None = None,
        classes: Any = None,
        radius: float | str = "auto",
        n_nonzero: int | str = 10,
        count_range: tuple[int, int] | None = None,
        count_share: float = 0.05,
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
        account: Account | str | None = None,
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
            account=account,
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.count_range = count_range
        self.count_share = count_share
