r"""Sparse logistic regression by private ADMM, with an L1 or an L1/2 penalty.

Every iteration minimises a perturbed local objective with fresh noise, thresholds, and corrects (after Wang and Zhang,
with Gaussian noise, an exact minimiser and one accountant over all iterations).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taciturn.accounting import Budget
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_positive
from taciturn.data.target import label_records
from taciturn.estimators._linear import PrivateClassifierMixin, labels_of
from taciturn.estimators._objective import PrivateObjective
from taciturn.fitting.admm import PENALTIES, run_admm
from taciturn.losses import LogisticLoss, ScalarLoss
from taciturn.planning.admm import ADMMPlan, plan_admm
from taciturn.sources import ArraySource

__all__ = ["ADMMClassifier"]


class ADMMClassifier(PrivateClassifierMixin, PrivateObjective):
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
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` is the non-private twin: no noise, ``n_steps="auto"`` means 200.
    delta : float, default=1e-6
        Probability beyond epsilon; more than 0, since the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    classes : sequence, default=None
        The two public labels; records with another label count as null records. None: taken from y, and the
        certificate then assumes that the set of labels is public.
    row_bound : float, default=None
        Public L2 bound on a row in the units of X, in which the intercept's entry counts as ``x_bound``. None: what
        ``x_bound`` implies.
    penalty : {"l1", "l1/2"}, default="l1"
        P.
    strength : float or "auto", default="auto"
        :math:`\alpha`. "auto" screens what noise and chance alone would reach, by public facts.
    coupling : float or "auto", default="auto"
        :math:`\rho`. "auto" leaves three quarters of epsilon to the noise.
    n_steps : int or "auto", default="auto"
        Number of iterations; "auto" means 10.
    n_blocks : int, default=1
        Into how many blocks the records are cut: slices of the table, or, under add-remove, at random.
    fit_intercept : bool, default=True
        Whether to add a constant column, which counts towards the row's length.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features)
        Coefficients in the units of X.
    intercept_ : ndarray of shape (1,)
        Intercept.
    n_iter_ : int
        Number of iterations made.
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
    >>> model = ADMMClassifier(classes=(False, True), row_bound=2.0, random_state=0).fit(X, y)
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
        row_bound: float | None = None,
        penalty: str = "l1",
        strength: float | str = "auto",
        coupling: float | str = "auto",
        n_steps: int | str = "auto",
        n_blocks: int = 1,
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
        self.penalty = penalty
        self.strength = strength
        self.coupling = coupling
        self.n_steps = n_steps
        self.n_blocks = n_blocks
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ADMMClassifier:
        """Bound, plan, solve, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            Labels of any type, two of them.
        """
        self._check_public()
        records = self._read(X, y, numeric=False)
        labels, assumptions = labels_of(records.y, self.classes)
        if labels.size > 2:
            raise DataError(
                f"y: Only binary classification is supported. Expected two classes, got {labels.size}; use "
                "FrankWolfeClassifier, or one class against the rest."
            )
        records, codes = label_records(records, labels, self.invalid)
        (weights,) = self._fit(replace(records, y=codes), LogisticLoss(), 1, {"classes": labels}, assumptions)
        self.classes_ = labels
        self.coef_ = weights[None, :-1] / self.x_bound
        self.intercept_ = weights[-1:].copy()
        self.support_ = self.coef_[0] != 0.0
        return self

    def _check_own(self) -> None:
        check_choice(tuple(PENALTIES), penalty=self.penalty)
        for name in ("strength", "coupling"):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(("auto",), **{name: value})
            else:
                check_positive(**{name: value})
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)
        check_integer(1, n_blocks=self.n_blocks)

    def _plan(self, loss: ScalarLoss, n_rows: int | None, n_columns: int, n_outputs: int) -> ADMMPlan:
        return plan_admm(
            Budget(self.epsilon, self.delta),
            loss,
            row_bound=self._row_bound(n_columns),
            relation=self.relation,
            n_rows=n_rows,
            n_features=n_columns,
            intercept=bool(self.fit_intercept),
            n_blocks=int(self.n_blocks),
            n_steps=self.n_steps,
            penalty=self.penalty,
            strength=self.strength,
            coupling=self.coupling,
        )

    def _run(self, plan: ADMMPlan, source: ArraySource, stream: Stream) -> FloatArray:
        self.n_iter_ = plan.n_steps
        return run_admm(plan, source, stream)

    def _plan_facts(self, plan: ADMMPlan) -> dict[str, Any]:
        return {
            "row_bound": plan.minimisers.row_bound * self.x_bound,
            "penalty": plan.penalty,
            "threshold": plan.kappa,
            "coupling": plan.minimisers.regularisation,
            "n_steps": plan.n_steps,
            "n_blocks": plan.n_blocks,
            **plan.minimisers.facts,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
