"""Sparse logistic regression by private gradient steps and hard thresholding, for two classes or more."""

from __future__ import annotations

from typing import Any

from taciturn.data.target import label_records
from taciturn.estimators._linear import PrivateClassifierMixin, labels_of
from taciturn.estimators.hard_threshold import HardThreshold
from taciturn.losses import LogisticLoss, Loss, SoftmaxLoss

__all__ = ["HardThresholdClassifier"]


class HardThresholdClassifier(PrivateClassifierMixin, HardThreshold):
    r"""Sparse logistic regression by private gradient steps and hard thresholding, for two classes or more.

    .. math:: W \leftarrow H_k\Bigl(W - \frac{\eta}{n} \Bigl(\sum_i (p_W(\tilde x_i) - e_{y_i})\, \tilde x_i^\top
              + \sigma Z\Bigr)\Bigr)

    with :math:`\tilde x` clipped to the L2 norm K = ``row_bound`` and :math:`H_k` keeping the ``n_nonzero`` features
    with the largest absolute sums over classes. For two classes there is one weight vector (the other is zero).

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: a noisy gradient per step, hence ``coef_`` and
    ``intercept_``; with ``threshold="peeling"`` the columns of a step and the gradient there; and what is "auto".
    Sensitivity: for two classes ``data.sensitivity.fixed_point_sum``, a vector of length K for one record; for more
    ``derivative_sum``, a matrix of norm :math:`\sqrt 2 K` whatever their number (``proposal_scores`` for peeling,
    ``quantile_scores`` for the median, ``curvature_sum`` for the step). T gradients with Gaussian noise of multiplier m
    are exactly :math:`\sqrt T / m`-GDP. Public: the numbers of features and of records (``n_public`` under add-remove),
    the classes and all parameters.

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
    classes : sequence, default=None
        Public labels; records with another label count as null records. None: taken from y, and the certificate
        then assumes that the set of labels is public.
    n_nonzero : int, default=10
        Features kept after every step, the intercept not counted.
    row_bound : float or "auto", default="auto"
        Rows are clipped to this L2 norm, in units of X. "auto": their private median. At least ``x_bound / 256``.
    clip_share : float, default=0.06
        A third of this share of the budget is spent on each of ``row_bound`` and ``step_size`` that is "auto".
    threshold : {"gaussian", "peeling"}, default="gaussian"
        "gaussian": noise on every coordinate, the largest are kept. "peeling": the columns are chosen first, by Gumbel
        noise for a bound of ``x_bound`` per entry, and get half of what the steps may spend; noise on the chosen
        coordinates gets the other half. For dense rows and few features out of many.
    n_steps : int or "auto", default="auto"
        Number of steps, a function of public facts between 4 and 20.
    step_size : float or "auto", default="auto"
        Step for the mean gradient, features in their units. "auto": one over the curvature along
        the first step, a private number, adapted to what later gradients show of it.
    radius : float, default=None
        Optional L2 bound on the coefficients, in the units of ``FrankWolfeClassifier``; costs nothing.
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
    classes_ : ndarray
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the units of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
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
    >>> from taciturn import HardThresholdClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = np.where(X[:, 4] + X[:, 9] > 0, "ill", "well")
    >>> model = HardThresholdClassifier(n_nonzero=2, classes=("ill", "well"), random_state=0).fit(X, y)
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
        n_nonzero: int = 10,
        row_bound: float | str = "auto",
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
        self.classes = classes
        self.n_nonzero = n_nonzero
        self.row_bound = row_bound
        self.clip_share = clip_share
        self.threshold = threshold
        self.n_steps = n_steps
        self.step_size = step_size
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> HardThresholdClassifier:
        """Bound, plan, descend, certify.

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
        self.coef_ = weights[:, :-1] / self.x_bound
        self.intercept_ = weights[:, -1].copy()
        self.support_ = (self.coef_ != 0.0).any(axis=0)
        return self
