r"""Robust and logistic regression by objective perturbation: one random linear term, one exact minimiser.

All columns enter the model, so these are for tables of few columns; :mod:`taciturn.estimators.two_stage` chooses some
first (Kifer, Smith and Thakurta 2012, with the constants of a proof that wastes less noise).
"""

from __future__ import annotations

import math
from typing import Any

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_real
from taciturn.estimators.base import PrivateClassifier, PrivateLinearModel, PrivateRegressor, number_or_auto
from taciturn.fitting.objective_perturbation import run_objective
from taciturn.fitting.procedure import PublicFacts
from taciturn.losses import LogisticLoss
from taciturn.planning.objective_perturbation import (
    MOST_PER_PUBLIC_ROW,
    check_regularisation,
    plan_objective_perturbation,
)
from taciturn.sources import ArraySource

__all__ = ["ObjectiveModel", "ObjectivePerturbationClassifier", "ObjectivePerturbationRegressor"]

# In units of x_bound: below it the curvature of a record would be lost beside the regularisation.
_LEAST_ROW_BOUND = 2.0**-20

ROUNDING = (
    "the solver's arithmetic rounds as IEEE 754 says, and computes the derivative of the loss to 8 units in its last "
    "place"
)
"""The numerical assumption of :mod:`taciturn.planning.precision`."""


class ObjectiveModel(PrivateLinearModel):
    """A model that minimises a perturbed objective: what regressors and classifiers share."""

    row_bound: float | str
    regularisation: float | str

    persons_refused = "several rows move a perturbed objective's minimum in no fixed direction"

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        self._require_delta()
        self._require_public_count()
        if number_or_auto(row_bound=self.row_bound) is not None:
            check_real(self._x_bound * _LEAST_ROW_BOUND, math.inf, closed="left", row_bound=self.row_bound)
        self._check_regularisation()

    def _check_regularisation(self) -> None:
        check_regularisation(self.regularisation)

    def _problem(self, facts: PublicFacts, n_columns: int) -> dict[str, Any]:
        """What the plans of this family are made for; ``n_columns`` of the features enter the objective."""
        loss, n_outputs = self._loss(facts)
        return {
            "budget": Budget(self.epsilon, self.delta),
            "loss": loss,
            "row_bound": self._mapped_row_bound(n_columns),
            "relation": self.relation,
            "n_rows": facts.stated_records,
            "n_features": facts.n_features,
            "intercept": bool(self.fit_intercept),
            "n_outputs": n_outputs,
        }

    def _plan(self, facts: PublicFacts) -> Any:
        return plan_objective_perturbation(**self._problem(facts, facts.n_features), regularisation=self.regularisation)

    def _mapped_row_bound(self, n_columns: int) -> float:
        """``row_bound`` in units of ``x_bound``; for "auto" what the bounds on the entries imply."""
        implied = math.sqrt(n_columns + bool(self.fit_intercept))
        row_bound = number_or_auto(row_bound=self.row_bound)
        return implied if row_bound is None else min(row_bound / self._x_bound, implied)

    def _run(self, plan: Any, source: ArraySource, stream: Stream) -> FloatArray:
        return run_objective(plan, source, stream)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | self._plan_facts(plan)

    def _plan_facts(self, plan: Any) -> dict[str, Any]:
        """What the certificate says about the plan."""
        return {"row_bound": plan.row_bound * self._x_bound, "regularisation": plan.regularisation, **plan.facts}

    def _assumptions(self, plan: Any) -> tuple[str, ...]:
        return *super()._assumptions(plan), ROUNDING

    @property
    def _most_records(self) -> int | None:
        return None if self.n_public is None else MOST_PER_PUBLIC_ROW * self.n_public


class ObjectivePerturbationRegressor(PrivateRegressor, ObjectiveModel):
    r"""Robust ridge regression by objective perturbation.

    .. math:: \min_w \sum_i \phi_C(\tilde x_i \cdot w - \tilde y_i) + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w,
              \qquad b \sim N(0, \sigma^2 I)

    with :math:`\phi_C` the Huber function with threshold ``residual_clip``, :math:`\tilde x` clipped to
    ``[-x_bound, x_bound]`` and divided by it, with a 1 for the intercept, and :math:`\tilde y` mapped from ``y_bounds``
    to [-1, 1]. A record whose row is longer than ``row_bound`` is scaled down as a whole, its target included.

    **Privacy.** (epsilon, delta)-DP under ``relation``, by the theorem of ``accounting.objective``: one record tilts
    the objective by at most :math:`C R` (``data.sensitivity.objective_tilt``) and changes the Jacobian by a factor of
    at most :math:`1 + R^2/\Lambda`. The minimiser is found to a public gradient tolerance, which covers what double
    precision does to gradients (``planning.precision``), and released on a lattice with further noise for the rest
    (``data.sensitivity.approximate_minimiser``). Settings in which that would be too coarse are refused. Released:
    ``coef_`` and ``intercept_``. Public: the numbers of features and of records (``n_public`` under add-remove), the
    bounds and :math:`\Lambda`.

    Parameters
    ----------
    %(epsilon)s
        ``regularisation="auto"`` means 1 then.
    %(gaussian_budget)s
    %(y_bounds)s
    %(row_bound_implied)s
    %(regularisation_regressor)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(regressor_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
    Redberg, Koskela and Wang, *Improving the privacy and practicality of objective perturbation* (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import ObjectivePerturbationRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 3))
    >>> y = 0.5 * X[:, 0] - 0.3 * X[:, 2]
    >>> model = ObjectivePerturbationRegressor(x_bound=1.0, y_bounds=(-1, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
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
        y_bounds: tuple[float, float] | None = None,
        row_bound: float | str = "auto",
        residual_clip: float | str = "auto",
        regularisation: float | str = "auto",
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
        self.row_bound = row_bound
        self.residual_clip = residual_clip
        self.regularisation = regularisation
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.account = account
        self.random_state = random_state

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        clip = (self._mapped_clip() or 1.0) * self._target_unit
        return super()._described(plan, facts) | {"residual_clip": clip}


class ObjectivePerturbationClassifier(PrivateClassifier, ObjectiveModel):
    r"""Ridge-regularised logistic regression by objective perturbation, for two classes or more.

    .. math:: \min_w \sum_i \bigl( \log(1 + e^{\tilde x_i \cdot w}) - y_i\, \tilde x_i \cdot w \bigr)
              + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w, \qquad b \sim N(0, \sigma^2 I)

    with :math:`\tilde x` clipped to ``[-x_bound, x_bound]`` and divided by it, with a 1 for the intercept, and
    shortened to ``row_bound``. For K > 2 classes there are K such objectives, each class against the rest, with noise
    of their own and one budget: each is a loss of one linear predictor, which the theorem needs and the softmax is not.

    **Privacy.** (epsilon, delta)-DP under ``relation``, by the theorem of ``accounting.objective``: one record tilts
    each objective by at most :math:`R` (``data.sensitivity.objective_tilt``) and changes its Jacobian by a factor of
    at most :math:`1 + R^2/(4\Lambda)`. The minimiser is found to a public gradient tolerance, which covers what double
    precision does to gradients (``planning.precision``), and released on a lattice with further noise for the rest
    (``data.sensitivity.approximate_minimiser``). Settings in which that would be too coarse are refused. Released:
    ``coef_`` and ``intercept_``. Public: the numbers of features and of records (``n_public`` under add-remove), the
    bounds, the classes and :math:`\Lambda`.

    Parameters
    ----------
    %(epsilon)s
        ``regularisation="auto"`` means 1 then.
    %(gaussian_budget)s
    %(classes)s
    %(row_bound_implied)s
    %(regularisation_classifier)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(classifier_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
    Redberg, Koskela and Wang, *Improving the privacy and practicality of objective perturbation* (2023).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import ObjectivePerturbationClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 3))
    >>> y = np.where(X[:, 0] + X[:, 2] > 0, "ill", "well")
    >>> model = ObjectivePerturbationClassifier(x_bound=1.0, classes=("ill", "well"), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
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
        row_bound: float | str = "auto",
        regularisation: float | str = "auto",
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
        self.row_bound = row_bound
        self.regularisation = regularisation
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.account = account
        self.random_state = random_state

    def _loss(self, facts: PublicFacts) -> tuple[LogisticLoss, int]:
        # One against the rest: the theorem is about losses of one linear predictor, which the softmax is not.
        _, n_outputs = super()._loss(facts)
        return LogisticLoss(), n_outputs
