"""Sparse least squares and logistic regression by private gradient steps and hard thresholding.

Every step adds Gaussian noise to a sum of per-record gradients, each clipped to a public L2 norm, and keeps the largest
coefficients. This is DP-IGHT with a sensitivity that holds, and the noise that T steps exactly need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import is_classifier
from taciturn.core.validation import (
    FloatArray,
    Invalid,
    check_choice,
    check_integer,
    check_positive,
    check_real,
    check_truth,
)
from taciturn.engines.interface import Source
from taciturn.methods import clipped_records
from taciturn.methods.base import PrivateClassifier, PrivateLinearModel, PrivateRegressor, PublicFacts, number_or_auto
from taciturn.methods.hard_threshold.plan import (
    HardThresholdPlan,
    PursuitPlan,
    ThresholdSettings,
    plan_hard_threshold,
    plan_pursuit,
    pursues,
)
from taciturn.methods.hard_threshold.run import run_hard_threshold, run_pursuit
from taciturn.methods.options import Auto, ThresholdMechanism
from taciturn.privacy import mechanisms
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget

# Longer steps leave the range in which proposals can be compared with sums.
_LARGEST_STEP = 1e12


class HardThresholdModel(PrivateLinearModel):
    """Gradient descent with hard thresholding: what regressor and classifier share."""

    n_nonzero: int
    row_bound: float | Auto
    clip_share: float | Auto
    mechanism: ThresholdMechanism
    n_steps: int | Auto
    step_size: float | Auto
    coef_bound: float | None
    average: bool

    persons_refused = None
    partitions_refused = None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        self._require_delta()
        self._require_public_count()
        check_integer(1, n_nonzero=self.n_nonzero)
        if number_or_auto(row_bound=self.row_bound) is not None:
            check_real(self._x_bound / 256.0, math.inf, closed="left", row_bound=self.row_bound)
        if number_or_auto(clip_share=self.clip_share) is not None:
            check_real(0.0, 1.0, closed="left", clip_share=self.clip_share)
        check_choice(("auto", "pursuit", "gaussian", "peeling"), mechanism=self.mechanism)
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)
        step = number_or_auto(step_size=self.step_size)
        if step is not None and not step * self._x_bound * self._x_bound < _LARGEST_STEP:
            raise ParameterError(
                "step_size", self.step_size, f"less than {_LARGEST_STEP:g} in units of x_bound", "rescale the features"
            )
        if self.coef_bound is not None:
            check_positive(coef_bound=self.coef_bound)
            if not 0.0 < self.coef_bound / self._target_unit * self._x_bound < math.inf:
                raise ParameterError(
                    "coef_bound", self.coef_bound, "a positive finite number also times x_bound", "rescale the features"
                )
        check_truth(average=self.average)

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit to a dense or sparse table calls, so that a failure to do so spends nothing."""
        mechanisms.warm_up()
        clipped_records.warm_up(sparse=sparse, n_classes=n_classes if is_classifier(self) else 0)

    def _plan(self, facts: PublicFacts) -> HardThresholdPlan | PursuitPlan:
        problem = self._problem(facts)
        row_bound, step = number_or_auto(row_bound=self.row_bound), number_or_auto(step_size=self.step_size)
        budget, mechanism = Budget(self.epsilon, self.delta), self.mechanism
        auto_clip = self._clips_by_median
        if mechanism == "auto":
            # What pursuit gains comes from clips that follow the residuals and the rows of the chosen columns.
            free = row_bound is None and step is None and (auto_clip or problem.loss.labelled)
            mechanism = "pursuit" if free and pursues(budget, self.n_nonzero, facts.n_features) else "gaussian"
        settings = ThresholdSettings(
            n_nonzero=self.n_nonzero,
            row_bound=None if row_bound is None else row_bound / self._x_bound,
            auto_clip=auto_clip,
            clip_share=number_or_auto(clip_share=self.clip_share),
            n_steps=self.n_steps,
            step=None if step is None else step * self._x_bound * self._x_bound,
            radius=None if self.coef_bound is None else self.coef_bound / self._target_unit * self._x_bound,
            average=bool(self.average),
        )
        # Without noise columns need not be chosen before their gradients are seen.
        if mechanism == "pursuit" and not math.isinf(self.epsilon):
            return plan_pursuit(budget, problem, settings)
        return plan_hard_threshold(budget, problem, settings, peeling=mechanism == "peeling")

    @property
    def _clips_by_median(self) -> bool:
        """Whether the residual clip follows from a private median."""
        return False

    def _run(self, plan: HardThresholdPlan | PursuitPlan, source: Source, stream: Stream) -> FloatArray:
        if isinstance(plan, PursuitPlan):
            return run_pursuit(plan, source, stream)
        return run_hard_threshold(plan, source, stream)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {
            "n_nonzero": int(self.n_nonzero),
            "row_bound": self.row_bound,
            "mechanism": self.mechanism,
            "n_steps": plan.n_steps,
            "step_size": self.step_size,
        }

    def _store(self, plan: Any, facts: PublicFacts, outcome: FloatArray) -> None:
        super()._store(plan, facts, outcome)
        self.n_iter_ = plan.n_iterations


@dataclass(kw_only=True, eq=False, repr=False)
class HardThresholdRegressor(PrivateRegressor, HardThresholdModel):
    r"""Sparse Huber regression by private gradient steps and hard thresholding.

    .. math:: w \leftarrow H_k\Bigl(w - \frac{\eta}{n} \Bigl(\sum_i \mathrm{clip}_C(\tilde x_i^\top w - \tilde y_i)
              \, \tilde x_i + \sigma Z\Bigr)\Bigr)

    with :math:`\tilde x` clipped to the L2 norm K = ``row_bound``, :math:`\tilde y` mapped from ``y_bounds`` to
    [-1, 1], C = ``residual_clip``, and :math:`H_k` keeping the ``n_nonzero`` largest coefficients. With
    ``mechanism="pursuit"`` columns join in rounds, and :math:`H_k` comes last.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: a noisy gradient per step, hence ``coef_`` and
    ``intercept_``; with "pursuit" or "peeling" the columns of a round or step and the gradient there; and what is
    "auto". Sensitivity: ``data.sensitivity.fixed_point_sum``; one record adds a vector of length C K at most to a
    gradient (``proposal_scores`` for choices of columns, ``quantile_scores`` for medians, ``curvature_sum`` for the
    step). T gradients with Gaussian noise of multiplier m are exactly :math:`\sqrt T / m`-GDP. Public: the numbers of
    features and of records (``n_public`` under add-remove) and all parameters.

    Parameters
    ----------
    %(hard_threshold_budget)s
    %(y_bounds)s
    %(hard_threshold_rows)s
    residual_clip : float or "auto", default="auto"
        Bound to which residuals are clipped, in the units of y: the threshold of a Huber loss. "auto": half the private
        median of the target's distance from the middle of its range; with "pursuit" 0.35 times a private median of the
        residuals of each round, about the private median of the target where there are records enough.
    clip_share : float or "auto", default="auto"
        A third of this share of the budget is spent on each of ``row_bound``, ``residual_clip`` and ``step_size`` that
        is "auto". "auto": 0.06, and with "pursuit" what keeps medians from failing.
    %(hard_threshold)s
    %(fit_intercept)s
        It is inside the row bound and never thresholded.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_regressor_attributes)s

    References
    ----------
    Wang and Gu, *Differentially private iterative gradient hard thresholding for sparse learning* (2019), whose noise
    is for gradients that are not bounded. Cai, Wang and Zhang, *The cost of privacy* (2021), for peeling.
    Blumensath and Davies, *Normalized iterative hard thresholding* (2010), for steps from curvature.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import HardThresholdRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = 0.5 * X[:, 2] - 0.3 * X[:, 11]
    >>> model = HardThresholdRegressor(x_bound=1.0, y_bounds=(-1, 1), n_nonzero=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [2, 11]
    """

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    n_nonzero: int = 10
    row_bound: float | Auto = "auto"
    residual_clip: float | Auto = "auto"
    clip_share: float | Auto = "auto"
    mechanism: ThresholdMechanism = "auto"
    n_steps: int | Auto = "auto"
    step_size: float | Auto = "auto"
    coef_bound: float | None = None
    average: bool = False
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    @property
    def _clips_by_median(self) -> bool:
        return self._mapped_clip() is None

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"residual_clip": self.residual_clip}


@dataclass(kw_only=True, eq=False, repr=False)
class HardThresholdClassifier(PrivateClassifier, HardThresholdModel):
    r"""Sparse logistic regression by private gradient steps and hard thresholding, for two classes or more.

    .. math:: W \leftarrow H_k\Bigl(W - \frac{\eta}{n} \Bigl(\sum_i (p_W(\tilde x_i) - e_{y_i})\, \tilde x_i^\top
              + \sigma Z\Bigr)\Bigr)

    with :math:`\tilde x` clipped to the L2 norm K = ``row_bound`` and :math:`H_k` keeping the ``n_nonzero`` features
    with the largest absolute sums over classes. For two classes there is one weight vector (the other is zero).

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: a noisy gradient per step, hence ``coef_`` and
    ``intercept_``; with "pursuit" or "peeling" the columns of a round or step and the gradient there; and what is
    "auto". Sensitivity: for two classes ``data.sensitivity.fixed_point_sum``, a vector of length K for one record; for
    more ``derivative_sum``, a matrix of norm :math:`\sqrt 2 K` whatever their number (``proposal_scores`` for choices
    of columns, ``quantile_scores`` for medians, ``curvature_sum`` for the step). T gradients with Gaussian noise of
    multiplier m are exactly :math:`\sqrt T / m`-GDP. Public: the numbers of features and of records (``n_public`` under
    add-remove), the classes and all parameters.

    Parameters
    ----------
    %(hard_threshold_budget)s
    %(classes)s
    %(hard_threshold_rows)s
    clip_share : float or "auto", default="auto"
        A third of this share of the budget is spent on each of ``row_bound`` and ``step_size`` that is "auto". "auto":
        0.06, and with "pursuit" what keeps medians from failing.
    %(hard_threshold)s
    %(fit_intercept)s
        It is inside the row bound and never thresholded.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s

    References
    ----------
    Those of :class:`HardThresholdRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import HardThresholdClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = np.where(X[:, 4] + X[:, 9] > 0, "ill", "well")
    >>> model = HardThresholdClassifier(x_bound=1.0, n_nonzero=2, classes=("ill", "well"), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    x_bound: float | None = None
    classes: Any = None
    n_nonzero: int = 10
    row_bound: float | Auto = "auto"
    clip_share: float | Auto = "auto"
    mechanism: ThresholdMechanism = "auto"
    n_steps: int | Auto = "auto"
    step_size: float | Auto = "auto"
    coef_bound: float | None = None
    average: bool = False
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None
