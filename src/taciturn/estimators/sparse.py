r"""The default: a sparse linear model that finds its own clips, columns and steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.accounting import Budget
from taciturn.certificate import certify
from taciturn.core.errors import ParameterError, WeakBudgetWarning
from taciturn.core.guard import warn_caller
from taciturn.core.lattice import MOST_PRIVATE_ROWS
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_real
from taciturn.data.admission import PresentRecords
from taciturn.data.sensitivity import public_rows
from taciturn.data.target import check_y_bounds, numeric_target
from taciturn.estimators._linear import PrivateLinearModel, PrivateRegressorMixin, given
from taciturn.fitting.sparse import SparseResult, run_sparse
from taciturn.kernels import softmax
from taciturn.losses import Loss
from taciturn.mechanisms import rounded_gaussian
from taciturn.planning.sparse import METHODS, plan_sparse
from taciturn.sources import ArraySource

__all__ = ["EIGENVALUE", "Sparse", "SparseRegressor"]

EIGENVALUE = (
    "LAPACK computes the largest eigenvalue of a Gram matrix of m columns with a relative error of at most 4 m 2**-53"
)
"""The numerical assumption of ``data.sensitivity.largest_eigenvalue``."""

# Beyond these a clip of residuals in [-2, 2] does nothing, or leaves nothing.
_LEAST_CLIP, _MOST_CLIP = 2.0**-16, 16.0


class Sparse(PrivateLinearModel):
    """Bound, choose a road, spend the budget along it, certify: shared by regressor and classifier."""

    def _check_public(self) -> None:
        super()._check_public()
        self._check_gaussian()
        check_choice(METHODS, method=self.method)
        if not isinstance(self.n_nonzero, str):
            check_integer(1, n_nonzero=self.n_nonzero)
        else:
            check_choice(("auto",), n_nonzero=self.n_nonzero)
            if self.method == "one-shot":
                raise ParameterError(
                    "method", "one-shot", "two-phase or auto for a number of features that is chosen", "give n_nonzero"
                )
        if given(row_bound=self.row_bound) is not None:
            check_real(self.x_bound / 64.0, math.inf, closed="left", row_bound=self.row_bound)

    def _warm_up(self, *, sparse: bool) -> None:
        rounded_gaussian.warm_up()
        if is_classifier(self):
            softmax.warm_up()

    def _fit(
        self,
        records: PresentRecords,
        target: np.ndarray,
        loss: Loss | None,
        n_outputs: int,
        clip: float | None,
        facts: dict[str, Any],
        assumptions: tuple[str, ...],
    ) -> SparseResult:
        """What the fit releases, in mapped units."""
        n_rows, n_columns = records.n_slots, records.n_features
        stream = Stream.of(self.random_state)
        n_public = public_rows(self.relation, n_rows, self.n_public)
        row_bound = given(row_bound=self.row_bound)
        plan = plan_sparse(
            Budget(self.epsilon, self.delta),
            loss,
            relation=self.relation,
            n_rows=n_public,
            n_features=n_columns,
            n_outputs=n_outputs,
            intercept=bool(self.fit_intercept),
            n_nonzero=None if isinstance(self.n_nonzero, str) else int(self.n_nonzero),
            method=self.method,
            row_bound=None if row_bound is None else row_bound / self.x_bound,
            residual_clip=clip,
        )
        if n_public < plan.enough_records:
            warn_caller(
                f"epsilon={self.epsilon!r}: expected {plan.enough_records:,} records or more at this budget (got "
                f"{n_public:,}), as fits of fewer may be worse than a constant; raise epsilon or add records.",
                WeakBudgetWarning,
            )
        result = run_sparse(plan, ArraySource(replace(records, y=target), self.x_bound, n_public), stream)
        self.n_iter_ = result.n_steps
        if self.relation == "add-remove":
            # Sums of more could leave 64-bit integers, and refusing them would tell their number.
            assumptions = (*assumptions, f"there are at most {MOST_PRIVATE_ROWS:,} records")
        public = self._public_facts(n_rows, n_columns) | {
            "n_nonzero": self.n_nonzero if isinstance(self.n_nonzero, str) else int(self.n_nonzero),
            "row_bound": self.row_bound,
            "method": plan.strategy.method,
            "reason": plan.strategy.reason,
            "prices": "every release is listed as the Gaussian one that costs as much",
        }
        self.certificate_ = certify(
            result.releases,
            plan.budget,
            relation=self.relation,
            public=public | facts,
            assumptions=(
                *self._assumptions(),
                *assumptions,
                *((EIGENVALUE,) if math.isfinite(plan.budget.epsilon) else ()),
            ),
            seeded=stream.seeded,
            arithmetic="exact",
        )
        return result


class SparseRegressor(PrivateRegressorMixin, Sparse):
    r"""Sparse robust regression: the default where a target is a number.

    .. math:: \min_{\|w\|_0 \le k,\, b} \; \sum_i h_C\bigl(\tilde x_i^\top w + b - \tilde y_i\bigr)

    with :math:`h_C` the Huber loss, rows :math:`\tilde x` centred and clipped to an L2 norm, :math:`\tilde y` mapped
    from ``y_bounds`` to [-1, 1]. Clips are private medians; where there are many columns, noisy correlations leave a
    few times k of them; a first noisy gradient descent on those tells which k stay, and a second one, on these alone,
    fits them. Where the budget is too small for a first descent, correlations choose the k columns at once.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released, each with its price on the certificate: the mean of
    the target, medians of its size and of row lengths, columns or correlations, column means, two largest eigenvalues,
    noisy gradients, and with ``n_nonzero="auto"`` the size of the model. Sensitivities: ``data.sensitivity``
    (``fixed_point_sum``, ``quantile_scores``, ``proposal_scores``, ``largest_eigenvalue``, ``loss_differences``). Later
    releases depend on earlier ones; prices are squared Gaussian parameters and never add up to more than the budget's
    (``accounting.filter`` has the theorem). Public: the numbers of features and of records (``n_public`` under
    add-remove) and all parameters.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, clips that do not bind, 500
        steps in each descent.
    delta : float, default=1e-6
        Probability beyond epsilon, > 0: the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of the target; predictions are clipped to it.
    n_nonzero : int or "auto", default=10
        Features in the model, the intercept not counted. "auto": a private extended Bayesian information criterion
        chooses, never fewer than 3 of more. It keeps neighbours of true features where columns are strongly correlated.
    method : {"auto", "two-phase", "one-shot"}, default="auto"
        "two-phase": two descents. "one-shot": correlations and one descent. "auto" chooses by public facts; the choice
        and its reason are on the certificate.
    row_bound : float or "auto", default="auto"
        A public L2 norm that rows over all features have, in units of X; longer ones are clipped. "auto": their private
        median. The rows of columns that were chosen privately get medians of their own in any case.
    residual_clip : float or "auto", default="auto"
        Residuals are clipped to this, for a target mapped to [-1, 1]. "auto": the private median of the target's
        distance from its mean.
    fit_intercept : bool, default=True
        Whether to centre, and to fit a constant.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of X and y.
    coef_std_ : ndarray of shape (n_features,)
        A bound on the standard deviation that the noise of the descents gives each coefficient, in the quadratic
        approximation and given the columns that were chosen; 0 for features that are not in the model. It follows from
        released numbers and from the worst curvature there can be, so it is mostly far from sharp. Sampling error is
        not in it, nor is what noisy clips do, which shows at small budgets.
    intercept_ : float
        Intercept in the units of y.
    n_iter_ : int
        Number of gradient steps made.
    support_ : ndarray of bool, shape (n_features,)
        Which features are in the model.
    certificate_ : Certificate
        The privacy statement of this fit, with the road taken and the reason.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

    Warns
    -----
    WeakBudgetWarning
        Where the number of records times the Gaussian parameter of the budget is below 40: public facts say that the
        fit may be worse than a constant.

    References
    ----------
    Dong, Roth and Su, *Gaussian differential privacy* (2022), for the accounting. Chen and Chen, *Extended Bayesian
    information criteria for model selection with large model spaces* (2008). Fan and Lv, *Sure independence screening
    for ultrahigh dimensional feature space* (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 200))
    >>> y = 0.5 * X[:, 2] - 0.3 * X[:, 11]
    >>> model = SparseRegressor(n_nonzero=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [2, 11]
    >>> model.certificate_.public["method"]
    'two-phase'
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
        n_nonzero: int | str = 10,
        method: str = "auto",
        row_bound: float | str = "auto",
        residual_clip: float | str = "auto",
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
        self.method = method
        self.row_bound = row_bound
        self.residual_clip = residual_clip
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SparseRegressor:
        """Bound, choose a road, spend the budget along it, certify.

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
        if clip is not None:
            check_real(_LEAST_CLIP, _MOST_CLIP, residual_clip=clip)
        records = self._read(X, y, numeric=True)
        facts = {"y_bounds": (low, high), "residual_clip": self.residual_clip}
        result = self._fit(records, numeric_target(records.y, (low, high)), None, 1, clip, facts, ())
        (weights,) = result.coefficients
        half = high / 2.0 - low / 2.0
        self.coef_ = weights[:-1] * (half / self.x_bound)
        self.coef_std_ = result.deviations[0] * (half / self.x_bound)
        self.intercept_ = low / 2.0 + high / 2.0 + half * float(weights[-1])
        self.support_ = self.coef_ != 0.0
        self._y_bounds = low, high
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the units of y, clipped to ``y_bounds``."""
        return np.clip(self._margins(X).ravel(), *self._y_bounds)
