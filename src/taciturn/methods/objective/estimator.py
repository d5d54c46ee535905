"""Estimators of objective perturbation, of private ADMM, and of the two-stage method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray, Invalid, check_choice, check_integer, check_real
from taciturn.engines.interface import ArraySource
from taciturn.losses import LogisticLoss
from taciturn.methods.base import PrivateClassifier, PrivateLinearModel, PrivateRegressor, PublicFacts, number_or_auto
from taciturn.methods.objective.blocks import PENALTIES, run_admm, run_two_stage
from taciturn.methods.objective.plan import (
    MOST_PER_PUBLIC_ROW,
    ADMMPlan,
    TwoStagePlan,
    check_regularisation,
    check_selection_share,
    plan_admm,
    plan_objective_perturbation,
    plan_two_stage,
)
from taciturn.methods.objective.run import run_objective
from taciturn.methods.options import Auto, Penalty
from taciturn.methods.selection.plan import check_n_blocks, check_n_jobs
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget

# ---- Robust and logistic regression by objective perturbation: one random linear term, one exact minimiser.
# All columns enter the model, so these are for tables of few columns; the two-stage classes below choose some first
# (Kifer, Smith and Thakurta 2012, with the constants of a proof that wastes less noise).

# In units of x_bound: below it the curvature of a record would be lost beside the regularisation.
_LEAST_ROW_BOUND = 2.0**-20

ROUNDING = (
    "the solver's arithmetic rounds as IEEE 754 says, and computes the derivative of the loss to 8 units in its last "
    "place"
)
"""The numerical assumption of :mod:`taciturn.methods.objective.plan`."""


class ObjectiveModel(PrivateLinearModel):
    """A model that minimises a perturbed objective: what regressors and classifiers share."""

    row_bound: float | Auto
    regularisation: float | Auto

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

    def _settings(self, facts: PublicFacts, n_columns: int) -> dict[str, Any]:
        """What the plans of this family are made for; ``n_columns`` of the features enter the objective."""
        return {
            "budget": Budget(self.epsilon, self.delta),
            "problem": self._problem(facts),
            "row_bound": self._mapped_row_bound(n_columns),
        }

    def _plan(self, facts: PublicFacts) -> Any:
        settings = self._settings(facts, facts.n_features)
        return plan_objective_perturbation(**settings, regularisation=self.regularisation)

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


class ObjectiveRegressionModel(PrivateRegressor, ObjectiveModel):
    """Huber loss: what the regressors of this family share."""

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        clip = (self._mapped_clip() or 1.0) * self._target_unit
        return super()._described(plan, facts) | {"residual_clip": clip}


class ObjectiveClassificationModel(PrivateClassifier, ObjectiveModel):
    """Logistic loss for each class: what the classifiers with any number of classes share."""

    def _loss(self, facts: PublicFacts) -> tuple[LogisticLoss, int]:
        # One against the rest: the theorem is about losses of one linear predictor, which the softmax is not.
        _, n_outputs = super()._loss(facts)
        return LogisticLoss(), n_outputs


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectivePerturbationRegressor(ObjectiveRegressionModel):
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

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    row_bound: float | Auto = "auto"
    residual_clip: float | Auto = "auto"
    regularisation: float | Auto = "auto"
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class ObjectivePerturbationClassifier(ObjectiveClassificationModel):
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
    Those of :class:`ObjectivePerturbationRegressor`.

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

    x_bound: float | None = None
    classes: Any = None
    row_bound: float | Auto = "auto"
    regularisation: float | Auto = "auto"
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


# ---- Sparse logistic regression by private ADMM, with an L1 or an L1/2 penalty.
# Every iteration minimises a perturbed local objective with fresh noise, thresholds, and corrects (after Wang and
# Zhang, with Gaussian noise, an exact minimiser and one accountant over all iterations).


@dataclass(kw_only=True, eq=False, repr=False)
class ADMMClassifier(PrivateClassifier, ObjectiveModel):
    r"""Sparse logistic regression for two classes by private consensus ADMM.

    .. math:: \min_w \frac{1}{n} \sum_i \bigl( \log(1 + e^{\tilde x_i \cdot w}) - y_i\, \tilde x_i \cdot w \bigr)
              + \alpha P(w), \qquad P(w) = \sum_j |w_j| \text{ or } \sum_j |w_j|^{1/2},

    with :math:`\tilde x` clipped to ``[-x_bound, x_bound]``, divided by it, with a 1 for the intercept and scaled down
    to a length of ``row_bound``. The records are cut into blocks; in each iteration every block minimises its own
    losses, tied to the common weights z by :math:`\tfrac{\rho}{2}\|w - z + u\|^2` and tilted by fresh Gaussian noise;
    then z is the thresholded mean. The returned coefficients are the last z; the intercept is not penalised.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the local minimisers of every iteration. One record
    is in one block and enters one of them per iteration, at the cost of one perturbed objective
    (``accounting.objective``) and of the noise for its solver's tolerance; thresholds and multipliers are computed
    from what is released. Public: the numbers of features and of records (``n_public`` under add-remove), of blocks
    and of iterations, the bounds, the classes, the penalty and its strength, and :math:`\rho`.

    Parameters
    ----------
    %(epsilon)s
        ``n_steps="auto"`` means 200 then.
    %(gaussian_budget)s
    %(classes)s
        Two of them.
    %(row_bound_implied)s
    penalty : {"l1", "l1/2"}, default="l1"
        The penalty P.
    strength : float or "auto", default="auto"
        :math:`\alpha`. "auto" suppresses what noise and chance alone would reach, by public facts.
    coupling : float or "auto", default="auto"
        :math:`\rho`. "auto" leaves three quarters of epsilon to the noise.
    n_steps : int or "auto", default="auto"
        Number of iterations; "auto" means 10.
    n_blocks : int, default=1
        Number of blocks of records: slices of the table, or, under add-remove, blocks assigned at random.
    %(fit_intercept)s
        Its entry counts towards the norm of a row.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s

    References
    ----------
    Wang and Zhang, *Differential privacy for sparse classification learning* (2020).
    Boyd, Parikh, Chu, Peleato and Eckstein, *Distributed optimization and statistical learning via the alternating
    direction method of multipliers* (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import ADMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = X[:, 4] + X[:, 9] > 0
    >>> model = ADMMClassifier(x_bound=1.0, classes=(False, True), row_bound=2.0, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [4, 9]
    """

    x_bound: float | None = None
    classes: Any = None
    row_bound: float | Auto = "auto"
    penalty: Penalty = "l1"
    strength: float | Auto = "auto"
    coupling: float | Auto = "auto"
    n_steps: int | Auto = "auto"
    n_blocks: int = 1
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_choice(tuple(PENALTIES), penalty=self.penalty)
        number_or_auto(strength=self.strength)
        number_or_auto(coupling=self.coupling)
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)
        check_integer(1, n_blocks=self.n_blocks)

    def _check_regularisation(self) -> None:
        """There is none: ``coupling`` takes its place."""

    def _loss(self, facts: PublicFacts) -> tuple[LogisticLoss, int]:
        _, n_outputs = super()._loss(facts)
        if n_outputs > 1:
            raise DataError(
                f"y: Only binary classification is supported. Expected two classes, got {n_outputs}; use "
                "FrankWolfeClassifier, or one class against the rest."
            )
        return LogisticLoss(), 1

    def _plan(self, facts: PublicFacts) -> ADMMPlan:
        return plan_admm(
            **self._settings(facts, facts.n_features),
            n_blocks=int(self.n_blocks),
            n_steps=self.n_steps,
            penalty=self.penalty,
            strength=self.strength,
            coupling=self.coupling,
        )

    def _run(self, plan: ADMMPlan, source: ArraySource, stream: Stream) -> FloatArray:
        return run_admm(plan, source, stream)

    def _plan_facts(self, plan: ADMMPlan) -> dict[str, Any]:
        return {
            "row_bound": plan.minimisers.row_bound * self._x_bound,
            "penalty": plan.penalty,
            "threshold": plan.kappa,
            "coupling": plan.minimisers.regularisation,
            "n_steps": plan.n_steps,
            "n_blocks": plan.n_blocks,
            **plan.minimisers.facts,
        }

    def _store(self, plan: ADMMPlan, facts: PublicFacts, outcome: FloatArray) -> None:
        super()._store(plan, facts, outcome)
        self.n_iter_ = plan.n_steps

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


# ---- Two stages, one budget: blocks of records vote for features, objective perturbation fits a model on the winners.
# The procedure of Kifer, Smith and Thakurta (2012), with blocks that suit the relation in force, a joint accountant and
# noise that the proofs need and no more.


class TwoStageModel(ObjectiveModel):
    """A selection before the fit: what regressor and classifier share."""

    n_nonzero: int
    n_blocks: int | Auto
    selection_share: float
    n_jobs: int | None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_integer(1, n_nonzero=self.n_nonzero)
        check_selection_share(self.selection_share)
        check_n_blocks(self.n_blocks)
        check_n_jobs(self.n_jobs)

    def _plan(self, facts: PublicFacts) -> TwoStagePlan:
        k = min(int(self.n_nonzero), facts.n_features)
        return plan_two_stage(
            **self._settings(facts, k),
            k=k,
            n_blocks=self.n_blocks,
            selection_share=float(self.selection_share),
            regularisation=self.regularisation,
        )

    def _run(self, plan: TwoStagePlan, source: ArraySource, stream: Stream) -> FloatArray:
        return run_two_stage(plan, source, stream, n_jobs=self.n_jobs)

    def _plan_facts(self, plan: TwoStagePlan) -> dict[str, Any]:
        return {
            "selected": plan.votes.selection.k,
            "blocks": plan.votes.n_blocks,
            "selection_share": float(self.selection_share),
            **super()._plan_facts(plan.objective),
        }


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStageRegressor(TwoStageModel, ObjectiveRegressionModel):
    r"""Select features by the votes of blocks of records, then fit robust ridge regression on them, privately.

    The records are cut into disjoint blocks. Each follows its own LASSO path until ``n_nonzero`` features are active
    and votes for these (see :class:`taciturn.BlockVoteSelector`). The features S with the largest
    :math:`v_j + \text{Gumbel noise}` are selected, and

    .. math:: \min_{w \in \mathbb{R}^S} \sum_i \phi_C(\tilde x_i \cdot w - \tilde y_i)
              + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w, \qquad b \sim N(0, \sigma^2 I)

    is solved on them (see :class:`ObjectivePerturbationRegressor`).

    **Privacy.** (epsilon, delta)-DP under ``relation``, one accountant over both stages. Released: the set of selected
    features (``data.sensitivity.block_votes``), then ``coef_`` and ``intercept_``
    (``data.sensitivity.objective_tilt``, ``data.sensitivity.approximate_minimiser``, the theorem of
    ``accounting.objective``). Public: the numbers of features, of blocks and of records (``n_public`` under
    add-remove), the bounds, :math:`\Lambda` and the split.

    Parameters
    ----------
    %(two_stage_budget)s
    %(y_bounds)s
    %(block_votes)s
    %(row_bound_implied)s
        Here it is a bound on the selected features of a row.
    %(regularisation_regressor)s
    %(n_jobs)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(regressor_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import TwoStageRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10000, 30))
    >>> y = 0.5 * X[:, 4] - 0.4 * X[:, 20]
    >>> model = TwoStageRegressor(x_bound=1.0, y_bounds=(-1, 1), epsilon=2.0, n_nonzero=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist(), bool(model.score(X, y) > 0.95)
    ([4, 20], True)
    """

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    n_nonzero: int = 10
    n_blocks: int | Auto = "auto"
    selection_share: float = 0.8
    row_bound: float | Auto = "auto"
    residual_clip: float | Auto = "auto"
    regularisation: float | Auto = "auto"
    fit_intercept: bool = True
    n_jobs: int | None = None
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStageClassifier(TwoStageModel, ObjectiveClassificationModel):
    r"""Select features by the votes of blocks of records, then fit logistic regression on them, privately.

    The records are cut into disjoint blocks. Each follows its own path of L1-regularised logistic regression until
    ``n_nonzero`` features are active and votes for these (see :class:`taciturn.BlockVoteSelector`). The features with
    the largest :math:`v_j + \text{Gumbel noise}` are selected, and ridge-regularised logistic regression with a random
    linear term is solved on them, for K > 2 classes one against the rest each
    (see :class:`ObjectivePerturbationClassifier`).

    **Privacy.** (epsilon, delta)-DP under ``relation``, one accountant over both stages. Released: the set of selected
    features (``data.sensitivity.block_votes``), then ``coef_`` and ``intercept_``
    (``data.sensitivity.objective_tilt``, ``data.sensitivity.approximate_minimiser``, the theorem of
    ``accounting.objective``). Public: the numbers of features, of blocks and of records (``n_public`` under
    add-remove), the bounds, the classes, :math:`\Lambda` and the split.

    Parameters
    ----------
    %(two_stage_budget)s
    %(classes)s
    %(block_votes)s
    %(row_bound_implied)s
        Here it is a bound on the selected features of a row.
    %(regularisation_classifier)s
    %(n_jobs)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(classifier_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import TwoStageClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10000, 30))
    >>> y = np.where(X[:, 4] - X[:, 20] > 0, "ill", "well")
    >>> model = TwoStageClassifier(epsilon=2.0, x_bound=1.0, classes=("ill", "well"), n_nonzero=2, random_state=0)
    >>> model = model.fit(X, y)
    >>> np.flatnonzero(model.support_).tolist(), bool(model.score(X, y) > 0.95)
    ([4, 20], True)
    """

    x_bound: float | None = None
    classes: Any = None
    n_nonzero: int = 10
    n_blocks: int | Auto = "auto"
    selection_share: float = 0.8
    row_bound: float | Auto = "auto"
    regularisation: float | Auto = "auto"
    fit_intercept: bool = True
    n_jobs: int | None = None
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None
