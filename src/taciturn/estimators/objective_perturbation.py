r"""Robust and logistic regression by objective perturbation: one random linear term, one exact minimiser.

All columns enter the model, so these are for tables of few columns; :mod:`taciturn.estimators.two_stage` chooses some
first (Kifer, Smith and Thakurta 2012, with the constants of a proof that wastes less noise).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.core.validation import check_positive
from taciturn.data.target import check_y_bounds, label_records, numeric_target
from taciturn.estimators._linear import PrivateClassifierMixin, PrivateRegressorMixin, labels_of
from taciturn.estimators._objective import PrivateObjective
from taciturn.losses import HuberLoss, LogisticLoss

__all__ = ["ObjectivePerturbationClassifier", "ObjectivePerturbationRegressor"]


class ObjectivePerturbationRegressor(PrivateRegressorMixin, PrivateObjective):
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
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, ``regularisation="auto"``
        means 1.
    delta : float, default=1e-6
        Probability beyond epsilon; more than 0, since the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of the target.
    row_bound : float, default=None
        Public L2 bound on a row in the units of X, in which the intercept's entry counts as ``x_bound``. None: what
        ``x_bound`` implies, its product with the root of the number of columns. A bound near the typical length
        costs the least noise.
    residual_clip : float, default=None
        C, the threshold of the Huber loss, in mapped units. None: 1, the largest residual of a model that predicts
        nothing.
    regularisation : float or "auto", default="auto"
        :math:`\Lambda` in mapped units. "auto" balances noise and shrinkage by public facts.
    fit_intercept : bool, default=True
        Whether to add a constant column, which counts towards the row's length and is shrunk like the others.
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
    support_ : ndarray of bool, shape (n_features,)
        Which coefficients are not zero.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

    Notes
    -----
    There is no ``n_iter_``: how many steps the solver makes depends on the data and would be a release.

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
    >>> model = ObjectivePerturbationRegressor(random_state=0).fit(X, y)
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
        x_bound: float = 1.0,
        y_bounds: tuple[float, float] = (-1.0, 1.0),
        row_bound: float | None = None,
        residual_clip: float | None = None,
        regularisation: float | str = "auto",
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
        self.row_bound = row_bound
        self.residual_clip = residual_clip
        self.regularisation = regularisation
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ObjectivePerturbationRegressor:
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
        clip = 1.0 if self.residual_clip is None else check_positive(residual_clip=self.residual_clip)
        records = self._read(X, y, numeric=True)
        records = replace(records, y=numeric_target(records.y, (low, high)))
        facts = {"y_bounds": (low, high), "residual_clip": clip}
        (weights,) = self._fit(records, HuberLoss(clip), 1, facts, ())
        half = high / 2.0 - low / 2.0
        self.coef_ = weights[:-1] * (half / self.x_bound)
        self.intercept_ = float(low / 2.0 + high / 2.0 + half * weights[-1])
        self.support_ = self.coef_ != 0.0
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions in the units of y."""
        return self._margins(X).ravel()


class ObjectivePerturbationClassifier(PrivateClassifierMixin, PrivateObjective):
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
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, ``regularisation="auto"``
        means 1.
    delta : float, default=1e-6
        Probability beyond epsilon; more than 0, since the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    classes : sequence, default=None
        Public labels; records with another label count as null records. None: taken from y, and the certificate
        then assumes that the set of labels is public.
    row_bound : float, default=None
        Public L2 bound on a row in the units of X, in which the intercept's entry counts as ``x_bound``; longer rows
        are shortened. None: what ``x_bound`` implies, its product with the root of the number of columns. A bound
        near the typical length costs the least noise.
    regularisation : float or "auto", default="auto"
        :math:`\Lambda` in units of features divided by ``x_bound``. "auto" balances noise and shrinkage by public
        facts.
    fit_intercept : bool, default=True
        Whether to add a constant column, which counts towards the row's length and is shrunk like the others.
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
    support_ : ndarray of bool, shape (n_features,)
        Which features have a coefficient that is not zero.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

    Notes
    -----
    There is no ``n_iter_``: how many steps the solver makes depends on the data and would be a release.

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
    >>> model = ObjectivePerturbationClassifier(classes=("ill", "well"), random_state=0).fit(X, y)
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
        x_bound: float = 1.0,
        classes: Any = None,
        row_bound: float | None = None,
        regularisation: float | str = "auto",
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
        self.row_bound = row_bound
        self.regularisation = regularisation
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ObjectivePerturbationClassifier:
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
        n_outputs = 1 if labels.size == 2 else labels.size
        weights = self._fit(replace(records, y=codes), LogisticLoss(), n_outputs, {"classes": labels}, assumptions)
        self.classes_ = labels
        self.coef_ = weights[:, :-1] / self.x_bound
        self.intercept_ = weights[:, -1].copy()
        self.support_ = (self.coef_ != 0.0).any(axis=0)
        return self
