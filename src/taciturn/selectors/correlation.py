"""Private sure independence screening: the features that go most with the target, one at a time.

The method is that of Swope et al., *Feature Selection from Differentially Private Correlations*, with the
sensitivity of the relation in force, with class sizes that make its top-k mechanism private, and with a released mean
of the target in place of the observed one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer
from taciturn.data.sensitivity import Sensitivity
from taciturn.data.target import target_signs
from taciturn.fitting.correlation import (
    CorrelationSums,
    declared_scores,
    plain_scores,
    release_centres,
    target_columns,
)
from taciturn.fitting.procedure import BOUNDS, Plan, PublicFacts
from taciturn.fitting.top_k import select_top_k
from taciturn.mechanisms import LARGEST_SCORE
from taciturn.planning import CorrelationPlan, plan_correlation, plan_top_k
from taciturn.selectors.base import BoundedSelector
from taciturn.sources import OpenTable

__all__ = ["CorrelationSelector"]

SCORES = ("correlation", "sign", "quadrant")
"""Names of the built-in scores."""

DECLARATION = "the sensitivity declared for the score is right"


class CorrelationSelector(BoundedSelector):
    r"""Select the features with the largest absolute covariance with the target, privately.

    The score of feature j is

    .. math:: s_j = \max_c \Bigl| \sum_i \tilde x_{ij} \, \frac{\tilde y_{ic} - m_c}{1 + \max_k |m_k|} \Bigr|,

    with :math:`\tilde x` clipped to ``[-x_bound, x_bound]`` and divided by ``x_bound``, and
    :math:`\tilde y` either one column, the numeric target mapped from ``y_bounds`` to [-1, 1], or one column of
    -1 and +1 per class (one against the rest). Other scores take signs instead of values, or are the caller's own.
    :math:`m_c` is the mean of column c of the target, with noise. With the exact mean the sum would be n times the
    covariance, so that columns that hardly vary score next to nothing; features need no means of their own.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the means of the target, or the sizes of the
    classes, for a twentieth of epsilon, and the set of selected features. A callable is shown the target as it is, and
    the set is all that is released. Sensitivity: ``data.sensitivity.target_parts`` for the means, and
    ``data.sensitivity.correlation_scores`` (1 in these units, 2 under replace-one), or what a callable
    declares. Sums are exact integers, those of a callable excepted. Public: the numbers of features and, except under
    add-remove, of records, the bounds and the classes. Values beyond the bounds are clipped silently, since their
    number would be a release. Sums have room for 2**30 records: more are refused where their number is public, and
    assumed not to be there under add-remove.

    Parameters
    ----------
    %(epsilon)s
        Nothing is clipped or rounded then, since bounds serve privacy alone: on columns of one variance the result is
        the top of ``abs(sklearn.feature_selection.r_regression(X, y))``, whatever the bounds.
    %(delta)s
    %(relation)s
    %(n_public)s
        It is shown on the certificate; selections do not need it.
    %(x_bound)s
        Centre and scale features by public constants first.
    %(selected_target)s
    %(n_features_to_select)s
    %(top_k)s
    score_func : {"correlation", "sign", "quadrant"} or callable, default="correlation"
        What is summed. "correlation": the products above. "sign": a numeric target counts by the side of the middle
        of ``y_bounds`` on which it lies (-1, 0 or +1), so that bounds may be wide compared with most targets; labels
        are signs already. "quadrant": features count by their signs too, about 0.

        A callable is called as ``score_func(X, y)`` and returns one finite number per feature, the larger the better.
        X is clipped to ``[-x_bound, x_bound]``; y is mapped to [-1, 1], or consists of -1 and +1, with one column per
        class if there are more than two. Null records are rows of zeros with y = 0, except under add-remove, where they
        are left out. Its method ``sensitivity(relation)`` returns a ``data.sensitivity.Sensitivity`` in the linf norm:
        the most that any score can change between neighbours. The guarantee is as good as that statement.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(selector_attributes)s

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
    >>> selector = CorrelationSelector(x_bound=1.0, y_bounds=(-1, 1), n_features_to_select=2, random_state=0).fit(X, y)
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

    persons_refused = None
    partitions_refused = None

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float | None = None,
        y_bounds: tuple[float, float] | None = None,
        classes: Any = None,
        n_features_to_select: int = 10,
        mechanism: str = "auto",
        gamma: float = 0.5,
        score_func: str | Callable[..., Any] = "correlation",
        invalid: str = "raise",
        account: Account | str | None = None,
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
        self.account = account
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        if isinstance(self.score_func, str):
            check_choice(SCORES, score_func=self.score_func)
        else:
            self._declared_sensitivity()

    def _plan(self, facts: PublicFacts) -> CorrelationPlan:
        most = self._most_records(facts)
        if most is not None and facts.n_records is not None:
            # Partitions check their own rows, and nobody checks the total.
            check_integer(0, most, n_rows=facts.n_records)
        budget, k = Budget(self.epsilon, self.delta), self._count(facts.n_features)
        settings: dict[str, Any] = {
            "method": self.mechanism,
            "gamma": self.gamma,
            "accounted": self.account is not None,
        }
        if not isinstance(self.score_func, str):
            selection = plan_top_k(budget, facts.n_features, k, self._declared_sensitivity(), **settings)
            return CorrelationPlan(selection, None, 1, selection.releases)
        labelled = facts.labels is not None
        # Counts of records are integers, rows of a person share what stands for one, and a number has two parts.
        counted = facts.unit == "record" and self._signed_target(facts)
        part_unit = (1 if counted else ONE) * (1 if labelled else 2)
        return plan_correlation(
            budget, facts.n_features, k, self.relation, labelled=labelled, part_unit=part_unit, **settings
        )

    def _signed_target(self, facts: PublicFacts) -> bool:
        """Whether targets are labels or signs, and not integers of the lattice."""
        return facts.labels is not None or self.score_func in ("sign", "quadrant")

    def _most_records(self, facts: PublicFacts) -> int | None:
        if math.isinf(self.epsilon) or not isinstance(self.score_func, str):
            return None
        return LARGEST_SCORE // (ONE * ONE)

    def _number_map(self) -> Callable[[FloatArray], FloatArray]:
        low, high = self._y_bounds
        # Halving first keeps bounds near the largest double from overflowing.
        middle = low / 2.0 + high / 2.0
        if self.score_func in ("sign", "quadrant"):
            return partial(target_signs, middle=middle)
        if math.isinf(self.epsilon):
            return partial(_scaled_target, middle=middle, half=high / 2.0 - low / 2.0)
        return super()._number_map()

    @property
    def _reads_own_units(self) -> bool:
        # A value below half a unit of the lattice has a sign.
        return self.score_func == "quadrant"

    def _check_table(self, table: OpenTable) -> None:
        super()._check_table(table)
        in_memory, remedy = "for a table in partitions, whose sums are of bounded integers", "or compute() the table"
        if not isinstance(self.score_func, str):
            raise ParameterError(
                "score_func", self._score_name(), f"one of {SCORES} {in_memory}", f"name one, {remedy}"
            )
        if math.isinf(self.epsilon):
            raise ParameterError("epsilon", self.epsilon, f"a finite number {in_memory}", f"give one, {remedy}")

    def _check_persons(self, persons: Any) -> None:
        super()._check_persons(persons)
        if persons is not None and not isinstance(self.score_func, str):
            raise ParameterError(
                "score_func",
                self._score_name(),
                f"one of {SCORES} where persons are given, since a sensitivity is declared for single rows",
                "choose one of these, or pass one row per person",
            )

    def _run(self, plan: CorrelationPlan, facts: PublicFacts, source: Any, stream: Stream) -> IntArray:
        n_classes = 0 if facts.labels is None else facts.labels.size
        private, signed = not math.isinf(self.epsilon), self._signed_target(facts)
        scores: FloatArray | IntArray
        if not isinstance(self.score_func, str):
            weights = target_columns(source.records.y, n_classes) / (ONE if private and not signed else 1)
            scores = declared_scores(
                self.score_func, source, weights, clip=private, in_slots=self.relation != "add-remove"
            )
        elif private:
            centres = release_centres(plan, source, n_classes, signed_target=signed, stream=stream)
            sums = source.total(CorrelationSums(n_classes, centres, self.score_func == "quadrant", signed))
            scores = np.abs(sums).max(axis=1)
        else:
            scores = plain_scores(source.records, n_classes, signs=self.score_func == "quadrant")
        return select_top_k(plan.selection, scores, stream)

    def _described(self, plan: CorrelationPlan, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"method": plan.selection.method, "score": self._score_name()}

    def _assumptions(self) -> tuple[str, ...]:
        return (BOUNDS,) if isinstance(self.score_func, str) else (BOUNDS, DECLARATION)

    def _arithmetic(self, plan: Plan) -> str:
        return plan.arithmetic if isinstance(self.score_func, str) else "float64"

    def _score_name(self) -> str:
        if isinstance(self.score_func, str):
            return self.score_func
        return str(getattr(self.score_func, "__name__", type(self.score_func).__name__))

    def _declared_sensitivity(self) -> Sensitivity:
        """The sensitivity that a callable declares, for the relation and the norm of this fit."""
        declare = getattr(self.score_func, "sensitivity", None)
        declared = declare(self.relation) if callable(declare) else None
        if isinstance(declared, Sensitivity) and (declared.norm, declared.relation) == ("linf", self.relation):
            return declared
        raise ParameterError(
            "score_func",
            self._score_name(),
            f"a callable whose method sensitivity({self.relation!r}) returns a Sensitivity in the linf norm under "
            "that relation",
            "declare it, for sums over records with record_sum of taciturn.data.sensitivity",
        )


def _scaled_target(y: FloatArray, middle: float, half: float) -> FloatArray:
    """A target in units of half of its range, not clipped: without privacy bounds serve no purpose."""
    return (y - middle) / half
