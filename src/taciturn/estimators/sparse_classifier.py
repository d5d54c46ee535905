"""The default for classes: sparse logistic regression that finds its own clips, columns and steps."""

from __future__ import annotations

from typing import Any

from taciturn.data.target import label_records
from taciturn.estimators._linear import PrivateClassifierMixin, labels_of
from taciturn.estimators.sparse import Sparse
from taciturn.losses import LogisticLoss, Loss, SoftmaxLoss

__all__ = ["SparseClassifier"]


class SparseClassifier(PrivateClassifierMixin, Sparse):
    r"""Sparse logistic regression: the default where a target is a class, for two classes or more.

    .. math:: \min_{\|W\|_{0} \le k,\, b} \; \sum_i \ell\bigl(W \tilde x_i + b;\, y_i\bigr)

    with the logistic (two classes, one weight vector) or multinomial loss whose derivatives are clipped at one half,
    rows :math:`\tilde x` centred and clipped to an L2 norm, and at most k features that matter to any class. Clips are
    private medians; where there are many columns, noisy correlations leave a few times k of them; a first noisy
    gradient descent on those tells which k stay, and a second one, on these alone, fits them. Where the budget is too
    small for a first descent, correlations choose the k columns at once. All classes share one budget.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released, each with its price on the certificate: the shares of
    the classes, medians of row lengths, columns or correlations, column means, two largest eigenvalues, noisy
    gradients, and with ``n_nonzero="auto"`` the size of the model. Sensitivities: ``data.sensitivity``
    (``fixed_point_sum`` or ``derivative_sum``, ``quantile_scores``, ``proposal_scores``, ``largest_eigenvalue``,
    ``loss_differences``). Later releases depend on earlier ones; prices are squared Gaussian parameters and never add
    up to more than the budget's (``accounting.filter`` has the theorem). Public: the numbers of features and of records
    (``n_public`` under add-remove), the classes and all parameters.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, row clips that do not bind, 500
        steps in each descent; derivatives are clipped at one half as ever.
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
    n_nonzero : int or "auto", default=10
        Features in the model, the intercept not counted. "auto": a private extended Bayesian information criterion
        chooses, never fewer than 3 of more. Where one class is rarer than one in five, give a number: clipped losses
        hardly see rare records.
    method : {"auto", "two-phase", "one-shot"}, default="auto"
        "two-phase": two descents. "one-shot": correlations and one descent. "auto" chooses by public facts; the choice
        and its reason are on the certificate.
    row_bound : float or "auto", default="auto"
        A public L2 norm that rows over all features have, in units of X; longer ones are clipped. "auto": their private
        median. The rows of columns that were chosen privately get medians of their own in any case.
    fit_intercept : bool, default=True
        Whether to centre, and to fit a constant.
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
    coef_std_ : ndarray of the shape of ``coef_``
        A bound on the standard deviation that the noise of the descents gives each coefficient, in the quadratic
        approximation and given the columns that were chosen; 0 for features that are not in the model. It follows from
        released numbers and from the worst curvature there can be, so it is mostly far from sharp. Sampling error is
        not in it, nor is what noisy clips do, which shows at small budgets.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
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
    >>> from taciturn import SparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 200))
    >>> y = np.where(X[:, 4] + X[:, 9] > 0, "ill", "well")
    >>> model = SparseClassifier(n_nonzero=2, classes=("ill", "well"), random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [4, 9]
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
        n_nonzero: int | str = 10,
        method: str = "auto",
        row_bound: float | str = "auto",
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
        self.method = method
        self.row_bound = row_bound
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SparseClassifier:
        """Bound, choose a road, spend the budget along it, certify.

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
        result = self._fit(records, codes, loss, n_outputs, None, {"classes": labels}, assumptions)
        self.classes_ = labels
        self.coef_ = result.coefficients[:, :-1] / self.x_bound
        self.coef_std_ = result.deviations / self.x_bound
        self.intercept_ = result.coefficients[:, -1].copy()
        self.support_ = (self.coef_ != 0.0).any(axis=0)
        return self
