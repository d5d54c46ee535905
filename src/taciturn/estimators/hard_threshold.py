r"""Sparse least squares and logistic regression by private gradient steps and hard thresholding.

Every step adds Gaussian noise to a sum of per-record gradients, each clipped to a public length, and keeps the largest
coefficients. This is DP-IGHT with a sensitivity that holds, and the noise that T steps exactly need.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.accounting import Budget
from taciturn.certificate import certify
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import MOST_PRIVATE_ROWS
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_positive, check_real, check_truth
from taciturn.data.admission import PresentRecords
from taciturn.data.sensitivity import public_rows
from taciturn.data.target import check_y_bounds, numeric_target
from taciturn.estimators._linear import PrivateLinearModel, PrivateRegressorMixin, given
from taciturn.fitting.hard_threshold import run_hard_threshold
from taciturn.kernels import softmax
from taciturn.losses import HuberLoss, Loss
from taciturn.mechanisms import rounded_gaussian
from taciturn.planning.hard_threshold import plan_hard_threshold
from taciturn.sources import ArraySource

__all__ = ["HardThreshold", "HardThresholdRegressor"]

# Longer steps leave the range in which proposals can be compared with sums.
_LARGEST_STEP = 1e12


class HardThreshold(PrivateLinearModel):
    """Bound, plan, descend, certify: shared by regressor and classifier."""

    def _check_public(self) -> None:
        super()._check_public()
        self._check_gaussian()
        check_integer(1, n_nonzero=self.n_nonzero)
        if given(row_bound=self.row_bound) is not None:
            check_real(self.x_bound / 256.0, math.inf, closed="left", row_bound=self.row_bound)
        check_real(0.0, 1.0, closed="left", clip_share=self.clip_share)
        check_positive(clip_share=self.clip_share)
        check_choice(("gaussian", "peeling"), threshold=self.threshold)
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)
        step = given(step_size=self.step_size)
        if step is not None and not step * self.x_bound * self.x_bound < _LARGEST_STEP:
            raise ParameterError(
                "step_size", self.step_size, f"less than {_LARGEST_STEP:g} in units of x_bound", "rescale the features"
            )
        if self.radius is not None:
            check_positive(radius=self.radius)
            if not 0.0 < self.radius * self.x_bound < math.inf:
                raise ParameterError(
                    "radius", self.radius, "a positive finite number also times x_bound", "rescale the features"
                )
        check_truth(average=self.average)

    def _warm_up(self, *, sparse: bool) -> None:
        rounded_gaussian.warm_up()
        if is_classifier(self):
            softmax.warm_up()

    def _fit(
        self,
        records: PresentRecords,
        target: np.ndarray,
        loss: Loss,
        n_outputs: int,
        facts: dict[str, Any],
        assumptions: tuple[str, ...],
    ) -> np.ndarray:
        """Coefficients in mapped units, one row per output, the intercept last and zero where there is none."""
        n_rows, n_columns = records.n_slots, records.n_features
        stream = Stream.of(self.random_state)
        row_bound, step = given(row_bound=self.row_bound), given(step_size=self.step_size)
        n_public = public_rows(self.relation, n_rows, self.n_public)
        plan = plan_hard_threshold(
            Budget(self.epsilon, self.delta),
            loss,
            relation=self.relation,
            n_rows=n_public,
            n_features=n_columns,
            n_outputs=n_outputs,
            intercept=bool(self.fit_intercept),
            n_nonzero=self.n_nonzero,
            row_bound=None if row_bound is None else row_bound / self.x_bound,
            auto_clip=facts.get("residual_clip") == "auto",
            clip_share=self.clip_share,
            threshold=self.threshold,
            n_steps=self.n_steps,
            step=None if step is None else step * self.x_bound * self.x_bound,
            radius=None if self.radius is None else self.radius * self.x_bound,
            average=bool(self.average),
        )
        source = ArraySource(replace(records, y=target), self.x_bound, n_public)
        coefficients = run_hard_threshold(plan, source, stream)
        self.n_iter_ = plan.n_steps
        if self.relation == "add-remove":
            # Sums of more could leave 64-bit integers, and refusing them would tell their number.
            assumptions = (*assumptions, f"there are at most {MOST_PRIVATE_ROWS:,} records")
        public = self._public_facts(n_rows, n_columns) | {
            "n_nonzero": int(self.n_nonzero),
            "row_bound": self.row_bound,
            "threshold": self.threshold,
            "n_steps": plan.n_steps,
            "step_size": self.step_size,
        }
        self.certificate_ = certify(
            plan.releases,
            plan.budget,
            relation=self.relation,
            public=public | facts,
            assumptions=(*self._assumptions(), *assumptions),
            seeded=stream.seeded,
            arithmetic="exact",
            ordered=plan.ordered,
        )
        return coefficients


class HardThresholdRegressor(PrivateRegressorMixin, HardThreshold):
    r"""Sparse Huber regression by private gradient steps and hard thresholding.

    .. math:: w \leftarrow H_k\Bigl(w - \frac{\eta}{n} \Bigl(\sum_i \mathrm{clip}_C(\tilde x_i^\top w - \tilde y_i)
              \, \tilde x_i + \sigma Z\Bigr)\Bigr)

    with :math:`\tilde x` clipped to the L2 norm K = ``row_bound``, :math:`\tilde y` mapped from ``y_bounds`` to
    [-1, 1], C = ``residual_clip``, and :math:`H_k` keeping the ``n_nonzero`` largest coefficients.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: a noisy gradient per step, hence ``coef_`` and
    ``intercept_``; with ``threshold="peeling"`` the columns of a step and the gradient there; and what is "auto".
    Sensitivity: ``data.sensitivity.fixed_point_sum``; one record adds a vector of length C K at most to a gradient
    (``proposal_scores`` for peeling, ``quantile_scores`` for medians, ``curvature_sum`` for the step). T gradients with
    Gaussian noise of multiplier m are exactly :math:`\sqrt T / m`-GDP. Public: the numbers of features and of records
    (``n_public`` under add-remove) and all parameters.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin, iterative hard thresholding itself:
        no noise, ``n_steps="auto"`` means 500, clips that are "auto" do not bind.
    delta : float, default=1e-6
        Probability beyond epsilon, > 0: the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of the target.
    n_nonzero : int, default=10
        Features kept after every step, the intercept not counted.
    row_bound : float or "auto", default="auto"
        Rows are clipped to this L2 norm, in units of X. "auto": their private median. At least ``x_bound / 256``.
    residual_clip : float or "auto", default="auto"
        Residuals are clipped to this, for a target mapped to [-1, 1]. "auto": half the private median of the target's
        distance from the middle of its range.
    clip_share : float, default=0.06
        A third of this share of the budget is spent on each of ``row_bound``, ``residual_clip`` and ``step_size`` that
        is "auto".
    threshold : {"gaussian", "peeling"}, default="gaussian"
        "gaussian": noise on every coordinate, the largest are kept. "peeling": the columns are chosen first, by Gumbel
        noise for a bound of ``x_bound`` per entry, and get half of what the steps may spend; noise on the chosen
        coordinates gets the other half. For dense rows and few features out of many.
    n_steps : int or "auto", default="auto"
        Number of steps, a function of public facts between 4 and 20.
    step_size : float or "auto", default="auto"
        Step for the mean gradient, features in their units and the target mapped. "auto": one over the curvature along
        the first step, a private number, adapted to what later gradients show of it.
    radius : float, default=None
        Optional L2 bound on the coefficients, in the units of ``FrankWolfeRegressor``; costs nothing.
    average : bool, default=False
        Whether to average the second half of the iterates and threshold the mean; costs nothing.
    fit_intercept : bool, default=True
        Whether to add a constant column, inside the row clip and never thresholded.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of X and y.
    intercept_ : float
        Intercept in the units of y.
    n_iter_ : int
        Number of steps made.
    support_ : ndarray of bool, shape (n_features,)
        Which features were kept.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

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
    >>> model = HardThresholdRegressor(n_nonzero=2, random_state=0).fit(X, y)
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
        n_nonzero: int = 10,
        row_bound: float | str = "auto",
        residual_clip: float | str = "auto",
        clip_share: float = 0.06,
        threshold: str = "gaussian",
        n_steps: int | str = "auto",
        step_size: float | str = "auto",
        radius: float | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        invalid: str = "raise",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.y_bounds = y_bounds
        self.n_nonzero = n_nonzero
        self.row_bound = row_bound
        self.residual_clip = residual_clip
        self.clip_share = clip_share
        self.threshold = threshold
        self.n_steps = n_steps
        self.step_size = step_size
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> HardThresholdRegressor:
        """Bound, plan, descend, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The target.
        """
        self._check_public()
        low, high = check_y_bounds(self.y_bounds)
        clip = given(residual_clip=self.residual_clip)
        records = self._read(X, y, numeric=True)
        facts = {"y_bounds": (low, high), "residual_clip": self.residual_clip}
        loss = HuberLoss(1.0 if clip is None else clip)
        (weights,) = self._fit(records, numeric_target(records.y, (low, high)), loss, 1, facts, ())
        half = high / 2.0 - low / 2.0
        self.coef_ = weights[:-1] * (half / self.x_bound)
        self.intercept_ = low / 2.0 + high / 2.0 + half * float(weights[-1])
        self.support_ = self.coef_ != 0.0
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the units of y."""
        return self._margins(X).ravel()
