r"""Least squares and logistic regression over an L1 ball, by private Frank-Wolfe.

Every step moves towards one vertex of the ball, chosen by the exponential mechanism on the gradient; all that the
data ever release is the list of chosen vertices (Talwar, Thakurta and Zhang 2015, with the constants that make it
private and noise that is two to three times smaller than theirs).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer
from taciturn.estimators.base import PrivateClassifier, PrivateLinearModel, PrivateRegressor, number_or_auto
from taciturn.fitting import paths
from taciturn.fitting.frank_wolfe import run_frank_wolfe
from taciturn.fitting.procedure import PublicFacts
from taciturn.fitting.target_medians import scale_target
from taciturn.kernels import softmax
from taciturn.losses import Loss, SquaredLoss
from taciturn.planning.frank_wolfe import ClippedCount, plan_frank_wolfe
from taciturn.sources import ArraySource

__all__ = ["FrankWolfeClassifier", "FrankWolfeModel", "FrankWolfeRegressor"]

_AUTO_RADIUS = 10.0
# Budgets up to these leave one selection so much noise that sparse tables have one path: a test looks.
_NOISY_EPSILON, _NOISY_DELTA = 6.0, 0.1


class FrankWolfeModel(PrivateLinearModel):
    """A linear model over an L1 ball: what regressor and classifier share."""

    radius: float | str
    n_steps: int | str

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
        paths.warm_up(sparse=sparse, noisy=noisy)
        if is_classifier(self) and n_classes != 2:
            softmax.warm_up()

    @property
    def _mapped_radius(self) -> float:
        """The radius of the ball for scaled features and a mapped target."""
        radius = number_or_auto(radius=self.radius)
        return (_AUTO_RADIUS if radius is None else radius / self._target_unit) * self._x_bound

    def _problem(self, facts: PublicFacts) -> dict[str, Any]:
        """What the plans of this family are made for."""
        loss, n_outputs = self._loss(facts)
        return {
            "budget": Budget(self.epsilon, self.delta),
            "loss": loss,
            "radius": self._mapped_radius,
            "relation": self.relation,
            "n_rows": facts.n_records,
            "n_features": facts.n_features,
            "n_outputs": n_outputs,
            "intercept": bool(self.fit_intercept),
            "n_steps": self.n_steps,
            "auto_clip": self._clips_by_median,
            "auto_radius": number_or_auto(radius=self.radius) is None,
        }

    @property
    def _clips_by_median(self) -> bool:
        """Whether the residual clip follows from private medians of the target."""
        return False

    def _plan(self, facts: PublicFacts) -> Any:
        return plan_frank_wolfe(**self._problem(facts), count=self._count_mechanism(facts.n_features))

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


class FrankWolfeRegressor(PrivateRegressor, FrankWolfeModel):
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
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.y_bounds = y_bounds
        self.radius = radius
        self.loss = loss
        self.residual_clip = residual_clip
        self.n_steps = n_steps
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.account = account
        self.random_state = random_state

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
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.classes = classes
        self.radius = radius
        self.n_steps = n_steps
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.account = account
        self.random_state = random_state
