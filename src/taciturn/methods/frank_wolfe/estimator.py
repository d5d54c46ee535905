"""Frank-Wolfe estimators, and those that keep the largest coefficients of such a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import is_classifier
from taciturn.core.validation import FloatArray, Invalid, check_choice, check_integer, check_real
from taciturn.engines.interface import ArraySource
from taciturn.kernels import gradients
from taciturn.losses import Loss, SquaredLoss
from taciturn.methods.base import PrivateClassifier, PrivateLinearModel, PrivateRegressor, PublicFacts, number_or_auto
from taciturn.methods.frank_wolfe import run as frank_wolfe_run
from taciturn.methods.frank_wolfe.plan import ClippedCount, plan_frank_wolfe
from taciturn.methods.frank_wolfe.run import count_nonzero, run_frank_wolfe, scale_target
from taciturn.methods.options import Auto, PrivateCount, RegressionLoss
from taciturn.methods.selection.run import keep_largest_columns
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget

# ---- Least squares and logistic regression over an L1 ball, by private Frank-Wolfe.
# Every step moves towards one vertex of the ball, chosen by the exponential mechanism on the gradient; all that the
# data ever release is the list of chosen vertices (Talwar, Thakurta and Zhang 2015, with the constants that make it
# private and noise that is two to three times smaller than theirs).

_AUTO_RADIUS = 10.0
# Budgets up to these leave one selection so much noise that sparse tables have one path: a test looks.
_NOISY_EPSILON, _NOISY_DELTA = 6.0, 0.1


class FrankWolfeModel(PrivateLinearModel):
    """A linear model over an L1 ball: what regressor and classifier share."""

    radius: float | Auto
    n_steps: int | Auto

    persons_refused = "its exact solvers know a record by a single row"
    _always_private = True

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        number_or_auto(radius=self.radius)
        if not 0.0 < self._mapped_radius < math.inf:
            raise ParameterError(
                "radius", self.radius, "a positive finite number also in units of x_bound", "rescale the features"
            )
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit to a dense or sparse table calls, so that a failure to do so spends nothing."""
        noisy = self._always_private and self.epsilon <= _NOISY_EPSILON and self.delta <= _NOISY_DELTA
        frank_wolfe_run.warm_up(sparse=sparse, noisy=noisy)
        if is_classifier(self) and n_classes != 2:
            gradients.warm_up()

    @property
    def _mapped_radius(self) -> float:
        """The radius of the ball for scaled features and a mapped target."""
        radius = number_or_auto(radius=self.radius)
        return (_AUTO_RADIUS if radius is None else radius / self._target_unit) * self._x_bound

    def _settings(self, facts: PublicFacts) -> dict[str, Any]:
        """What the plans of this family are made for."""
        return {
            "budget": Budget(self.epsilon, self.delta),
            "problem": self._problem(facts),
            "radius": self._mapped_radius,
            "n_steps": self.n_steps,
            "auto_clip": self._clips_by_median,
            "auto_radius": number_or_auto(radius=self.radius) is None,
        }

    @property
    def _clips_by_median(self) -> bool:
        """Whether the residual clip follows from private medians of the target."""
        return False

    def _plan(self, facts: PublicFacts) -> Any:
        return plan_frank_wolfe(**self._settings(facts), count=self._count_mechanism(facts.n_features))

    def _count_mechanism(self, n_features: int) -> ClippedCount | None:
        """How the number of nonzero coefficients is released; None for a model that keeps them all."""
        return None

    def _run(self, plan: Any, source: ArraySource, stream: Stream) -> FloatArray:
        plan, source, middle = scale_target(plan, source, stream)
        weights = self._weights(plan, source, stream)
        weights[:, -1] += middle
        return weights

    def _weights(self, plan: Any, source: ArraySource, stream: Stream) -> FloatArray:
        """The coefficients, the intercept last."""
        weights = self._solve(plan, source, stream.spawn("frank-wolfe"))
        return weights if self.fit_intercept else np.column_stack((weights, np.zeros(len(weights))))

    def _solve(self, plan: Any, source: ArraySource, stream: Stream) -> FloatArray:
        return run_frank_wolfe(plan, source, stream)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        stated: float | str | None = number_or_auto(radius=self.radius)
        if stated is None:
            stated = _AUTO_RADIUS * self._target_unit if plan.medians is None else "auto"
        return super()._described(plan, facts) | {"radius": stated, "n_steps": plan.n_steps}

    def _store(self, plan: Any, facts: PublicFacts, outcome: FloatArray) -> None:
        super()._store(plan, facts, outcome)
        self.n_iter_ = plan.n_steps


class FrankWolfeRegressionModel(PrivateRegressor, FrankWolfeModel):
    """Huber or squared loss over an L1 ball: what the regressors of this family share."""

    loss: RegressionLoss

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_choice(("huber", "squared"), loss=self.loss)

    def _loss(self, facts: PublicFacts) -> tuple[Loss, int]:
        return (SquaredLoss(), 1) if self.loss == "squared" else super()._loss(facts)

    @property
    def _clips_by_median(self) -> bool:
        return self.loss == "huber" and self._mapped_clip() is None

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        described = super()._described(plan, facts) | {"loss": self.loss}
        if self.loss == "huber":
            public = (self._mapped_clip() or 1.0) * self._target_unit
            described["residual_clip"] = public if plan.medians is None else "auto"
        return described


@dataclass(kw_only=True, eq=False, repr=False)
class FrankWolfeRegressor(FrankWolfeRegressionModel):
    r"""Least squares over an L1 ball by private Frank-Wolfe.

    .. math:: \min_{\|w\|_1 \le r} \sum_i \phi(\tilde x_i^\top w - \tilde y_i)

    with :math:`\phi` the Huber function with threshold ``residual_clip`` (default) or the square,
    :math:`\tilde x` clipped to ``[-x_bound, x_bound]`` and :math:`\tilde y` clipped to ``y_bounds``.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: one coordinate and sign per step, hence ``coef_`` and
    ``intercept_``. Sensitivity: ``data.sensitivity.gradient_scores``; for a target mapped to [-1, 1], one record moves
    the gradient of the Huber objective by at most ``residual_clip * x_bound`` in every coordinate, whatever the radius,
    but that of the square by ``(radius * x_bound + 1) * x_bound``. With ``residual_clip="auto"`` also two medians of
    the target, its middle and its distance from it: ``quantile_scores``. Public: the numbers of features and, except
    under add-remove, of records, the bounds, the number of steps, and the radius unless it is in units of a median.

    Parameters
    ----------
    %(ball_budget)s
    %(y_bounds)s
    %(radius_regressor)s
    %(huber_loss)s
    %(ball_steps)s

    Attributes
    ----------
    %(iterative_regressor_attributes)s

    References
    ----------
    Talwar, Thakurta and Zhang, *Nearly optimal private LASSO* (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import FrankWolfeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = 0.5 * X[:, 2] - 0.3 * X[:, 11]
    >>> model = FrankWolfeRegressor(x_bound=1.0, y_bounds=(-1, 1), radius=1.0, random_state=0).fit(X, y)
    >>> sorted(np.argsort(-np.abs(model.coef_))[:2].tolist())
    [2, 11]
    """

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    radius: float | Auto = "auto"
    loss: RegressionLoss = "huber"
    residual_clip: float | Auto = "auto"
    n_steps: int | Auto = "auto"
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class FrankWolfeClassifier(PrivateClassifier, FrankWolfeModel):
    r"""Logistic regression over an L1 ball by private Frank-Wolfe, for two classes or more.

    .. math:: \min_{\|W\|_{1,1} \le r} \sum_i \Bigl( \log \sum_k e^{w_k^\top \tilde x_i}
              - w_{y_i}^\top \tilde x_i \Bigr)

    For two classes there is one weight vector (the other is zero); for K > 2 one L1 ball holds the whole K x d matrix
    and each step chooses one of its 2 K d vertices.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: one coordinate, class and sign per step, hence
    ``coef_`` and ``intercept_``. Sensitivity: ``data.sensitivity.gradient_scores``; predicted minus true probability
    is at most one, so a record moves every entry of the gradient by at most ``x_bound``, whatever the number of
    classes. Public: the numbers of features and, except under add-remove, of records, the bounds, the radius, the
    classes and the number of steps.

    Parameters
    ----------
    %(ball_budget)s
    %(classes)s
    %(radius_classifier)s
    %(ball_steps)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s

    References
    ----------
    Talwar, Thakurta and Zhang, *Nearly optimal private LASSO* (2015).
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression* (for the logistic loss).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import FrankWolfeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = np.where(X[:, 4] + X[:, 9] > 0, "ill", "well")
    >>> model = FrankWolfeClassifier(x_bound=1.0, classes=("ill", "well"), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    x_bound: float | None = None
    classes: Any = None
    radius: float | Auto = "auto"
    n_steps: int | Auto = "auto"
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


# ---- Frank-Wolfe, then only the largest coefficients: the Sparsifier, made private.
# Khanna, Lu and Raff run private Frank-Wolfe and keep as many coefficients as a noisy count of a non-private model's
# says. A public number of coefficients does the same at no cost and is the default; the count is offered with the
# integer range without which it would leak.


class SparsifiedModel(FrankWolfeModel):
    """Frank-Wolfe whose largest coefficients are kept: what regressor and classifier share."""

    n_nonzero: int | PrivateCount
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


@dataclass(kw_only=True, eq=False, repr=False)
class SparsifiedRegressor(SparsifiedModel, FrankWolfeRegressionModel):
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

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    radius: float | Auto = "auto"
    loss: RegressionLoss = "huber"
    residual_clip: float | Auto = "auto"
    n_nonzero: int | PrivateCount = 10
    count_range: tuple[int, int] | None = None
    count_share: float = 0.05
    n_steps: int | Auto = "auto"
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class SparsifiedClassifier(SparsifiedModel, PrivateClassifier, FrankWolfeModel):
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

    x_bound: float | None = None
    classes: Any = None
    radius: float | Auto = "auto"
    n_nonzero: int | PrivateCount = 10
    count_range: tuple[int, int] | None = None
    count_share: float = 0.05
    n_steps: int | Auto = "auto"
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None
