r"""Least squares and logistic regression over an L1 ball, by private Frank-Wolfe.

Every step moves towards one vertex of the ball, chosen by the exponential mechanism on the gradient; all that the
data ever release is the list of chosen vertices (Talwar, Thakurta and Zhang 2015, with the constants that make it
private and noise that is two to three times smaller than theirs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.accounting import Budget
from taciturn.certificate import certify
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import MOST_PRIVATE_ROWS
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_positive
from taciturn.data.admission import PresentRecords
from taciturn.data.sensitivity import public_rows
from taciturn.data.target import check_y_bounds, label_records, numeric_target
from taciturn.estimators._linear import (
    PrivateClassifierMixin,
    PrivateLinearModel,
    PrivateRegressorMixin,
    labels_of,
)
from taciturn.fitting import paths
from taciturn.fitting.frank_wolfe import count_nonzero, run_frank_wolfe
from taciturn.kernels import softmax
from taciturn.losses import HuberLoss, LogisticLoss, Loss, SoftmaxLoss, SquaredLoss
from taciturn.planning import ClippedCount, plan_frank_wolfe
from taciturn.sources import ArraySource

__all__ = ["FrankWolfeClassifier", "FrankWolfeRegressor"]


class _FrankWolfe(PrivateLinearModel):
    """Bound, plan, solve, certify: shared by regressor and classifier."""

    def _check_public(self) -> None:
        super()._check_public()
        check_positive(radius=self.radius)
        if not 0.0 < self.radius * self.x_bound < math.inf:
            raise ParameterError(
                "radius", self.radius, "a positive finite number also times x_bound", "rescale the features"
            )
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)

    def _warm_up(self, *, sparse: bool) -> None:
        paths.warm_up(sparse=sparse)
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
        """Coefficients in mapped units, one row per output, the intercept last."""
        n_rows, n_columns = records.n_slots, records.n_features
        stream = Stream.of(self.random_state)
        n_records = public_rows(self.relation, n_rows, self.n_public)
        plan = self._plan(loss, n_records, n_columns, n_outputs)
        source = ArraySource(replace(records, y=target), self.x_bound, n_records)
        coefficients = self._solve(plan, source, stream.spawn("frank-wolfe"))
        if not self.fit_intercept:
            coefficients = np.column_stack((coefficients, np.zeros(n_outputs)))
        coefficients = self._thin(coefficients, lambda: count_nonzero(plan, source, stream.spawn("count")))
        self.n_iter_ = plan.n_steps
        if self.relation == "add-remove":
            # Sums of more could leave 64-bit integers, and refusing them would tell their number.
            assumptions = (*assumptions, f"there are at most {MOST_PRIVATE_ROWS:,} records")
        public = self._public_facts(n_rows, n_columns)
        public |= {"radius": float(self.radius), "n_steps": plan.n_steps, **facts}
        self.certificate_ = certify(
            plan.releases,
            plan.budget,
            relation=self.relation,
            public=public,
            assumptions=(*self._assumptions(), *assumptions),
            seeded=stream.seeded,
            arithmetic="exact",
            ordered=plan.ordered,
        )
        return coefficients

    def _plan(self, loss: Loss, n_rows: int | None, n_features: int, n_outputs: int) -> Any:
        """From the budget and public facts to steps and noise."""
        return plan_frank_wolfe(
            Budget(self.epsilon, self.delta),
            loss,
            radius=self.radius * self.x_bound,
            relation=self.relation,
            n_rows=n_rows,
            n_features=n_features,
            n_outputs=n_outputs,
            intercept=bool(self.fit_intercept),
            n_steps=self.n_steps,
            count=self._count_mechanism(n_features),
        )

    def _solve(self, plan: Any, source: ArraySource, stream: Stream) -> np.ndarray:
        return run_frank_wolfe(plan, source, stream)

    def _count_mechanism(self, n_columns: int) -> ClippedCount | None:
        """How the number of coefficients is counted, where it is; Frank-Wolfe itself keeps them all."""
        return None

    def _thin(self, coefficients: np.ndarray, count: Callable[[], int]) -> np.ndarray:
        """Post-processing of the coefficients; ``count`` makes the release of :meth:`_count_mechanism`."""
        return coefficients


class FrankWolfeRegressor(PrivateRegressorMixin, _FrankWolfe):
    r"""Least squares over an L1 ball by private Frank-Wolfe.

    .. math:: \min_{\|w\|_1 \le r} \sum_i \phi(\tilde x_i^\top w - \tilde y_i)

    with :math:`\phi` the Huber function with threshold ``residual_clip`` (default) or the square,
    :math:`\tilde x` clipped to ``[-x_bound, x_bound]`` and :math:`\tilde y` mapped from ``y_bounds`` to [-1, 1].

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: one coordinate and sign per step, hence ``coef_`` and
    ``intercept_``. Sensitivity: ``data.sensitivity.gradient_scores``; one record moves the gradient of the Huber
    objective by at most ``residual_clip * x_bound`` in every coordinate, whatever the radius, but that of the square
    by ``(radius * x_bound + 1) * x_bound``. Public: the numbers of features and, except under add-remove, of records,
    the bounds, the radius and the number of steps.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, ``n_steps="auto"`` means 5000.
    delta : float, default=1e-6
        Probability beyond epsilon.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, used under add-remove by ``n_steps="auto"``.
    x_bound : float, default=1.0
        Public bound on every feature value.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of the target.
    radius : float, default=10.0
        L1 bound on the coefficients for a target mapped to [-1, 1] and features in their own units: in the units of
        y the bound is ``radius`` times half the width of ``y_bounds``.
    loss : {"huber", "squared"}, default="huber"
        "huber" needs noise for ``residual_clip`` only.
    residual_clip : float, default=None
        Threshold of the Huber loss, in mapped units. None: 1, the largest residual of a model that predicts nothing.
    n_steps : int or "auto", default="auto"
        Number of steps, a function of public facts.
    fit_intercept : bool, default=True
        Whether to add a constant column, which shares the ball.
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
        Which coefficients are not zero.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

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
    >>> model = FrankWolfeRegressor(radius=1.0, random_state=0).fit(X, y)
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
        x_bound: float = 1.0,
        y_bounds: tuple[float, float] = (-1.0, 1.0),
        radius: float = 10.0,
        loss: str = "huber",
        residual_clip: float | None = None,
        n_steps: int | str = "auto",
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
        self.radius = radius
        self.loss = loss
        self.residual_clip = residual_clip
        self.n_steps = n_steps
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> FrankWolfeRegressor:
        """Bound, plan, solve, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            The target.
        """
        self._check_public()
        low, high = check_y_bounds(self.y_bounds)
        loss = self._loss()
        records = self._read(X, y, numeric=True)
        facts: dict[str, Any] = {"y_bounds": (low, high), "loss": self.loss}
        if self.loss == "huber":
            facts["residual_clip"] = self._threshold()
        target = numeric_target(records.y, (low, high))
        (weights,) = self._fit(records, target, loss, 1, facts, ())
        self._set_coefficients(weights, low, high)
        return self

    def _loss(self) -> Loss:
        if check_choice(("huber", "squared"), loss=self.loss) == "squared":
            return SquaredLoss()
        return HuberLoss(self._threshold())

    def _threshold(self) -> float:
        return 1.0 if self.residual_clip is None else check_positive(residual_clip=self.residual_clip)

    def _set_coefficients(self, weights: np.ndarray, low: float, high: float) -> None:
        half = high / 2.0 - low / 2.0
        self.coef_ = weights[:-1] * (half / self.x_bound)
        self.intercept_ = float(low / 2.0 + high / 2.0 + half * weights[-1])
        self.support_ = self.coef_ != 0.0

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the units of y."""
        return self._margins(X).ravel()


class FrankWolfeClassifier(PrivateClassifierMixin, _FrankWolfe):
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
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, ``n_steps="auto"`` means 5000.
    delta : float, default=1e-6
        Probability beyond epsilon.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, used under add-remove by ``n_steps="auto"``.
    x_bound : float, default=1.0
        Public bound on every feature value.
    classes : sequence, default=None
        Public labels; records with another label count as null records. None: taken from y, and the certificate
        then assumes that the set of labels is public.
    radius : float, default=10.0
        L1 bound on the coefficients.
    n_steps : int or "auto", default="auto"
        Number of steps, a function of public facts.
    fit_intercept : bool, default=True
        Whether to add a constant column, which shares the ball.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the units of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    n_iter_ : int
        Number of steps made.
    support_ : ndarray of bool, shape (n_features,)
        Which features have a coefficient that is not zero.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

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
    >>> model = FrankWolfeClassifier(classes=("ill", "well"), random_state=0).fit(X, y)
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
        x_bound: float = 1.0,
        classes: Any = None,
        radius: float = 10.0,
        n_steps: int | str = "auto",
        fit_intercept: bool = True,
        invalid: str = "raise",
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
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> FrankWolfeClassifier:
        """Bound, plan, solve, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Labels of any type.
        """
        self._check_public()
        records = self._read(X, y, numeric=False)
        labels, assumptions = labels_of(records.y, self.classes)
        records, codes = label_records(records, labels, self.invalid)
        loss: Loss = LogisticLoss() if labels.size == 2 else SoftmaxLoss()
        n_outputs = 1 if labels.size == 2 else labels.size
        weights = self._fit(records, codes, loss, n_outputs, {"classes": labels}, assumptions)
        self.classes_ = labels
        self._set_coefficients(weights)
        return self

    def _set_coefficients(self, weights: np.ndarray) -> None:
        self.coef_ = weights[:, :-1] / self.x_bound
        self.intercept_ = weights[:, -1].copy()
        self.support_ = (self.coef_ != 0.0).any(axis=0)
