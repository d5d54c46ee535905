"""Private sure independence screening: the features that go most with the target, one at a time.

The method is that of Swope et al., *Feature Selection from Differentially Private Correlations*, with the
sensitivity of the relation in force and with class sizes that make its top-k mechanism private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.accounting import Budget
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_positive, check_real
from taciturn.data.admission import PresentRecords
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.data.sensitivity import Sensitivity, correlation_scores
from taciturn.data.target import check_classes, check_y_bounds, class_signs, label_records, numeric_target
from taciturn.fitting.top_k import select_top_k
from taciturn.planning import plan_top_k
from taciturn.planning.top_k import TOP_K_MECHANISMS
from taciturn.selectors._base import PrivateSelector, labels_or_numbers

__all__ = ["CorrelationSelector"]

SCORES = ("correlation", "sign", "quadrant")
"""Names of the built-in scores."""

# Sums of products of two numbers below 2**450 are far from the largest double.
_MOST_BITS = 450

BOUNDS = "the bounds were chosen without looking at these data"
DECLARATION = "the sensitivity declared for the score is right"


class CorrelationSelector(PrivateSelector):
    r"""Select the features with the largest absolute correlation sums, privately.

    The score of feature j is

    .. math:: s_j = \max_c \Bigl| \sum_i \tilde x_{ij} \, \tilde y_{ic} \Bigr|,

    with :math:`\tilde x` clipped to ``[-x_bound, x_bound]`` and divided by ``x_bound``, and
    :math:`\tilde y` either one column, the numeric target mapped from ``y_bounds`` to [-1, 1], or one column of
    -1 and +1 per class (one against the rest). Other scores take signs instead of values, or are the caller's own.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the set of selected features, nothing else.
    Sensitivity: ``data.sensitivity.correlation_scores`` (1 in these units, 2 under replace-one), or what a callable
    declares. Sums are exact integers, those of a callable excepted. Public: the numbers of features and, except under
    add-remove, of records, the bounds and the classes. Values beyond the bounds are clipped silently, since their
    number would be a release.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` selects without noise and certifies nothing; bounds are there for
        privacy alone, so nothing is clipped or rounded then. On standardised columns the result is the top of
        ``abs(sklearn.feature_selection.r_regression(X, y))``, whatever the bounds.
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
    score_func : {"correlation", "sign", "quadrant"} or callable, default="correlation"
        What is summed. "correlation": the products above. "sign": a numeric target counts by the side of the middle
        of ``y_bounds`` on which it lies (-1, 0 or +1), which wastes no budget on bounds that are wide beside most
        targets; labels are signs already. "quadrant": features too count by their signs, about 0.

        A callable is called as ``score_func(X, y)`` and returns one finite number per feature, the larger the better.
        X is clipped to ``[-x_bound, x_bound]``; y is mapped to [-1, 1], or consists of -1 and +1, with one column per
        class if there are more than two. Null records are rows of zeros with y = 0, except under add-remove, where they
        are left out. Its method ``sensitivity(relation)`` returns a ``data.sensitivity.Sensitivity`` in the linf norm:
        the most that any score can change when one row becomes null, is left out, or becomes another, as the relation
        has it. The guarantee is as good as that statement.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
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

    A score of one's own: how far the positive parts of a feature go with the target. One row adds at most 1.

    >>> from taciturn.data.sensitivity import record_sum
    >>> class PositivePart:
    ...     def __call__(self, X, y):
    ...         return np.abs(np.maximum(X, 0).T @ y)
    ...
    ...     def sensitivity(self, relation):
    ...         return record_sum(1.0, "linf", relation)
    >>> y = np.clip(np.maximum(X[:, 5], 0) + np.minimum(X[:, 8], 0), -1, 1)
    >>> selector.set_params(score_func=PositivePart(), n_features_to_select=1).fit(X, y).get_support(indices=True)
    array([5])
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
        score_func: str | Callable[..., Any] = "correlation",
        invalid: str = "raise",
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
        self.score_func = score_func
        self.invalid = invalid
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
        records, weights, unit, facts = self._target(self._read(X, y))
        n_rows, n_columns = records.n_slots, records.n_features
        stream = Stream.of(self.random_state)
        own = callable(self.score_func)
        # Lattice units: a product of two full-scale values.
        sensitivity = self._declared() if own else correlation_scores(ONE, unit, self.relation)
        plan = plan_top_k(
            Budget(self.epsilon, self.delta),
            n_columns,
            self._count(n_columns),
            sensitivity,
            method=self.mechanism,
            gamma=self.gamma,
        )
        selected = select_top_k(plan, self._scores(records, weights, unit), stream)
        public = self._public_facts(n_rows, n_columns)
        public |= {"method": plan.method, "score": self._score_name(), "x_bound": float(self.x_bound), **facts}
        self._conclude(
            selected,
            plan.releases,
            plan.budget,
            public=public,
            assumptions=(BOUNDS, DECLARATION) if own else (BOUNDS,),
            seeded=stream.seeded,
            arithmetic="float64" if own else plan.arithmetic,
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
        if callable(self.score_func):
            self._declared()
        else:
            check_choice(SCORES, score_func=self.score_func)

    def _score_name(self) -> str:
        if isinstance(self.score_func, str):
            return self.score_func
        return str(getattr(self.score_func, "__name__", type(self.score_func).__name__))

    def _declared(self) -> Sensitivity:
        """What a callable says of itself, if it fits this fit."""
        declare = getattr(self.score_func, "sensitivity", None)
        declared = declare(self.relation) if callable(declare) else None
        fits = isinstance(declared, Sensitivity) and (declared.norm, declared.relation) == ("linf", self.relation)
        if not fits:
            raise ParameterError(
                "score_func",
                self._score_name(),
                f"a callable whose method sensitivity({self.relation!r}) returns a Sensitivity in the linf norm under "
                "that relation",
                "declare it, for sums over records with record_sum of taciturn.data.sensitivity",
            )
        return declared

    def _target(self, records: PresentRecords) -> tuple[PresentRecords, np.ndarray, int, dict[str, Any]]:
        """Records that are not null, their weights (one column per sum), what stands for 1 in them, public facts."""
        labels, y = labels_or_numbers(records.y, self.classes)
        if labels is not None:
            records, codes = label_records(records, labels, self.invalid)
            return records, class_signs(codes, labels.size), 1, {"classes": labels}
        low, high = bounds = check_y_bounds(self.y_bounds)
        # Halving first keeps bounds near the largest double from overflowing.
        middle = low / 2.0 + high / 2.0
        unit = 1
        if self.score_func in ("sign", "quadrant"):
            weights = np.subtract(y > middle, y < middle, dtype=np.float64)
        elif math.isinf(self.epsilon):
            weights = (y - middle) / (high / 2.0 - low / 2.0)
        else:
            weights, unit = numeric_target(y, bounds), ONE
        return records, weights[:, None], unit, {"y_bounds": bounds}

    def _scores(self, records: PresentRecords, weights: np.ndarray, unit: int) -> np.ndarray:
        """One score per feature: integers, except without privacy and from callables."""
        X = records.X
        private = not math.isinf(self.epsilon)
        x_bound = self.x_bound
        if callable(self.score_func):
            bounded = _by_entry(lambda entries: np.clip(entries, -x_bound, x_bound), X) if private else X
            if self.relation != "add-remove":
                # A callable may divide by the number of rows, which is public.
                bounded, weights = records.in_slots(bounded), records.in_slots(weights)
            return self._own_scores(bounded, weights / unit)
        if self.score_func == "quadrant":
            X, x_bound = _by_entry(np.sign, X), 1.0
        sums = Design(X, x_bound).rmatvec(weights, unit) if private else _plain_sums(X, weights)
        return np.abs(sums).max(axis=1)

    def _own_scores(self, X: Any, y: np.ndarray) -> np.ndarray:
        """The scores of a callable; its errors, which may quote data, are not passed on."""
        scores = None
        with suppress(Exception):
            scores = np.asarray(self.score_func(X, y[:, 0] if y.shape[1] == 1 else y), dtype=np.float64)
        if scores is None or scores.shape != X.shape[1:] or not np.isfinite(scores).all():
            raise DataError(
                "score_func: expected one finite number per feature, and the callable failed or returned something "
                "else; try it on made-up data within the bounds."
            )
        return scores


def _plain_sums(X: Any, weights: np.ndarray) -> np.ndarray:
    """``X' weights`` without privacy; by a power of two smaller where doubles could not hold it, in the same order."""
    weights = np.nan_to_num(weights)
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0)), float(np.abs(weights).max(initial=0.0))
    of_x, of_weights = (max(0, math.frexp(value)[1] - _MOST_BITS) for value in largest)
    if of_x or of_weights:
        X = _by_entry(lambda entries: np.ldexp(entries, -of_x), X)
        weights = np.ldexp(weights, -of_weights)
    return np.asarray(X.T @ weights)


def _by_entry(function: Callable[[np.ndarray], np.ndarray], X: Any) -> Any:
    """X with a function that keeps zeros applied to every entry."""
    if not sp.issparse(X):
        return function(X)
    return type(X)((function(X.data), X.indices, X.indptr), shape=X.shape, copy=False)
