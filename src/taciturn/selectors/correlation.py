"""Private sure independence screening: the features that go most with the target, one at a time.

The method is that of Swope et al., *Feature Selection from Differentially Private Correlations*, with the
sensitivity of the relation in force and with class sizes that make its top-k mechanism private.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_positive, check_real
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.data.sensitivity import correlation_scores
from taciturn.data.target import check_classes, check_y_bounds, label_signs, numeric_target
from taciturn.plan import plan_top_k
from taciturn.plan.top_k import TOP_K_MECHANISMS
from taciturn.selectors._base import PrivateSelector, numbers_of

__all__ = ["CorrelationSelector"]


class CorrelationSelector(PrivateSelector):
    r"""Select the features with the largest absolute correlation sums, privately.

    The score of feature j is

    .. math:: s_j = \max_c \Bigl| \sum_i \tilde x_{ij} \, \tilde y_{ic} \Bigr|,

    with :math:`\tilde x` clipped to ``[-x_bound, x_bound]`` and divided by ``x_bound``, and
    :math:`\tilde y` either one column, the numeric target mapped from ``y_bounds`` to [-1, 1], or one column of
    -1 and +1 per class (one against the rest).

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the set of selected features, nothing else.
    Sensitivity: ``data.sensitivity.correlation_scores`` (1 in these units, 2 under replace-one). Sums are exact
    integers. Public: the numbers of features and, except under add-remove, of records, the bounds and the
    classes. Values beyond the bounds are clipped silently, since their number would be a release.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` selects without noise and certifies nothing.
    delta : float, default=1e-6
        Probability beyond epsilon. Left unused, and certified as 0, where the mechanism is pure.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, shown on the certificate under add-remove. Selections do not need it.
    x_bound : float, default=1.0
        Public bound on every feature value. Centre and scale features by public constants first.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of a numeric target.
    classes : sequence, default=None
        Public labels of a categorical target; records with another label count as null records. None: y is a numeric
        target, or true and false. Whole numbers that are codes of categories need their ``classes``.
    n_features_to_select : int, default=10
        How many features to select. All of them cost nothing.
    mechanism : {"auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"}, default="auto"
        "auto" takes the one that tells the smallest differences apart; with delta = 0 only the pure ones compete.
    gamma : float, default=0.5
        Parameter of the canonical Lipschitz mechanism, in [0, 1).
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only, and the certificate
        says so.

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features_in_,)
        The selected features.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where X has string names.

    References
    ----------
    Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*.
    Fan and Lv, *Sure independence screening for ultrahigh dimensional feature space* (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import CorrelationSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = np.clip(X[:, 3] - X[:, 17], -1, 1)
    >>> selector = CorrelationSelector(epsilon=1.0, n_features_to_select=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(selector.support_).tolist()
    [3, 17]
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
        classes: Any = None,
        n_features_to_select: int = 10,
        mechanism: str = "auto",
        gamma: float = 0.5,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.y_bounds = y_bounds
        self.classes = classes
        self.n_features_to_select = n_features_to_select
        self.mechanism = mechanism
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> CorrelationSelector:
        """Bound, plan, select, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            A numeric or categorical target.
        """
        self._check_public()
        X, y = self._read(X, y)
        target, target_bound, facts = self._target(y)
        n_rows, n_columns = X.shape
        stream = Stream.of(self.random_state)
        # Lattice units: a product of two full-scale values.
        sensitivity = correlation_scores(ONE, target_bound, self.relation)
        plan = plan_top_k(
            Budget(self.epsilon, self.delta),
            n_columns,
            self._count(n_columns),
            sensitivity,
            method=self.mechanism,
            gamma=self.gamma,
        )
        sums = Design(X, self.x_bound).rmatvec(target, target_bound)
        selected = plan.select(np.abs(sums).max(axis=1), stream)
        public = self._public_facts(n_rows, n_columns)
        self._conclude(
            selected,
            plan.releases,
            plan.budget,
            public=public | {"method": plan.method, "x_bound": float(self.x_bound), **facts},
            assumptions=("the bounds were chosen without looking at these data",),
            seeded=stream.seeded,
            arithmetic=plan.arithmetic,
        )
        return self

    def _check_public(self) -> None:
        super()._check_public()
        check_positive(x_bound=self.x_bound)
        check_choice(TOP_K_MECHANISMS, mechanism=self.mechanism)
        check_real(0.0, 1.0, closed="left", gamma=self.gamma)
        check_y_bounds(self.y_bounds)
        if self.classes is not None:
            check_classes(self.classes)

    def _target(self, y: np.ndarray) -> tuple[np.ndarray, int, dict[str, Any]]:
        """Integer weights (one column per sum), their bound, public facts."""
        classes = (False, True) if self.classes is None and y.dtype.kind == "b" else self.classes
        if classes is not None:
            labels = check_classes(classes)
            return label_signs(y, labels), 1, {"classes": labels}
        y = numbers_of(y)
        if y.dtype.kind not in "iuf":
            raise DataError(
                "y: expected numbers, or labels together with their public list; pass the labels as classes=(...)."
            )
        bounds = check_y_bounds(self.y_bounds)
        return numeric_target(y, bounds)[:, None], ONE, {"y_bounds": bounds}
