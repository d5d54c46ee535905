"""Selectors of features."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from taciturn.core.errors import ParameterError
from taciturn.core.guard import Guarded, warn_caller
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import SelectorMixin, check_is_fitted
from taciturn.core.validation import (
    ONE,
    BoolArray,
    FloatArray,
    IntArray,
    Invalid,
    check_choice,
    check_integer,
    check_real,
    check_x_bound,
    without_data_values,
)
from taciturn.data.records import check_lengths, checked_layout, declares_truth_values, read_records
from taciturn.data.sensitivity import Sensitivity
from taciturn.data.target import LabelMap, NumberMap, check_classes, numeric_target, stated_y_bounds, target_signs
from taciturn.engines.interface import (
    ArraySource,
    BlockBuilder,
    OpenTable,
    partitionwise,
    stated_classes,
    target_has_truth_values,
)
from taciturn.kernels import ranks
from taciturn.losses import LogisticLoss, SquaredLoss
from taciturn.methods.base import BOUNDS, Persons, Plan, PrivateEstimator, PublicFacts
from taciturn.methods.options import Auto, SelectionScore, TopKMechanism
from taciturn.methods.schedule import Problem
from taciturn.methods.selection.plan import (
    TOP_K_MECHANISMS,
    BlockVotePlan,
    CorrelationPlan,
    KendallPlan,
    check_n_blocks,
    check_n_jobs,
    plan_block_vote,
    plan_correlation,
    plan_kendall,
    plan_top_k,
)
from taciturn.methods.selection.run import (
    CorrelationSums,
    declared_scores,
    plain_scores,
    release_centres,
    run_block_vote,
    run_kendall,
    select_top_k,
    target_columns,
)
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import certify
from taciturn.privacy.mechanisms import LARGEST_SCORE

# ---- What private selectors have in common: targets and labels, the verbs of a fit, a set of features.

KIND_OF_TARGET = "whether the target holds numbers or truth values is public"
"""An assumption wherever the labels are not given, since one record could change it."""


class FeatureMask(Guarded, SelectorMixin):
    """A selector that keeps the features of ``support_``."""

    n_features_to_select: int
    random_state: int | None
    support_: BoolArray

    def _count(self, n_features: int) -> int:
        """How many features are selected: no more than there are."""
        if self.n_features_to_select <= n_features:
            return int(self.n_features_to_select)
        warn_caller(
            f"n_features_to_select={self.n_features_to_select} is more than the {n_features} features of X; "
            "all of them are selected.",
            UserWarning,
        )
        return n_features

    @partitionwise
    def transform(self, X: Any) -> FloatArray | Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        """
        return without_data_values("X", lambda: super(FeatureMask, self).transform(checked_layout(X)))

    def inverse_transform(self, X: Any) -> FloatArray | Any:
        """Put the selected columns back in their places, with zeros in the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_selected_features)
            What :meth:`transform` returned.
        """
        return without_data_values("X", lambda: super(FeatureMask, self).inverse_transform(checked_layout(X)))

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags


class PrivateSelector(FeatureMask, PrivateEstimator):
    """Base of the private selectors: ``support_`` and ``certificate_`` are all that a fit leaves behind."""

    classes: Any

    def fit(self, X: Any, y: Any = None, persons: Any = None) -> Self:
        """Select features: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            The features; an open table has its target and its persons with it.
        y : array-like of shape (n_samples,)
            A numeric or categorical target. None for an open table.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together, and each person counts once. A row without a key is a null row. None:
            every row is a record of its own. Methods without a proof for persons refuse keys.

        Returns
        -------
        self : object
            The fitted selector.
        """
        return self._fit(X, y, persons)

    def _fit(self, X: Any, y: Any, persons: Any, **by_row: Any) -> Self:
        self.check_parameters()
        X, y, persons = self._open(X, y, persons)
        self._check_persons(persons)
        facts, whose = self._person_facts(self._public_facts(X, y), persons)
        self._warn_of_defaults(facts)
        plan = self._plan(facts)
        self.warm_up(sparse=X.is_sparse if isinstance(X, OpenTable) else sp.issparse(X))
        with self._reserve(plan, facts) as reservation:
            stream = Stream.of(self.random_state)
            check_lengths(X, y)
            reservation.begin()
            self._log("reading")
            source = self._read(X, y, facts, whose)
            self._log("running")
            selected = self._run(plan, facts, source, stream, **by_row)
        kind_of_target = () if self.classes is not None else (KIND_OF_TARGET,)
        self.certificate_ = certify(
            plan.releases,
            plan.budget,
            relation=self.relation,
            public=self._described(plan, facts),
            assumptions=(
                *self._assumptions(),
                *self._admission(self._most_records(facts)),
                *kind_of_target,
                *facts.assumptions,
            ),
            seeded=stream.seeded,
            arithmetic=self._arithmetic(plan),
            ordered=plan.ordered,
            unit=facts.unit,
            account_head=reservation.head,
        )
        self.support_ = np.zeros(facts.n_features, dtype=bool)
        self.support_[selected] = True
        self._log("certified")
        return self

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_integer(1, n_features_to_select=self.n_features_to_select)
        if self.classes is not None:
            check_classes(self.classes)

    def _public_facts(self, X: Any, y: Any) -> PublicFacts:
        """Labels are those given, or false and true; never taken from y, where each of them would be a release."""
        facts = super()._public_facts(X, y)
        classes = stated_classes(X, self.classes)
        if classes is not None:
            return replace(facts, labels=check_classes(classes))
        truth_values = target_has_truth_values(y, invalid=self.invalid)
        return replace(facts, labels=np.array([False, True])) if truth_values else facts

    def _read(self, X: Any, y: Any, facts: PublicFacts, persons: Persons | None = None) -> Any:
        """A source of the records that are not null, with class codes or mapped numbers for targets."""
        null, target = self.invalid == "null", self._target_map(facts)
        numeric = null and facts.labels is None
        if isinstance(X, OpenTable):
            builder = BlockBuilder(
                self._x_bound, self.invalid, target, numeric, truth_values=True, own_units=self._reads_own_units
            )
            return X.read(self, builder, facts.n_records, persons)
        empty = null and self.relation == "add-remove"
        records = read_records(self, X, y, invalid=self.invalid, numeric=numeric, empty=empty)
        if declares_truth_values(y):
            # Truth values of a nullable column arrive as numbers.
            records = replace(records, y=records.y.astype(bool))
        if persons is not None:
            records = records.of_persons(persons())
        return ArraySource(target(records), self._x_bound, facts.n_records)

    def _target_map(self, facts: PublicFacts) -> NumberMap | LabelMap:
        """What gives records numbers in the units of the method, or class codes, for targets."""
        if facts.labels is None:
            return NumberMap(self._number_map(), remedy="if it holds labels, pass the labels as classes=(...)")
        return LabelMap(facts.labels)

    def _number_map(self) -> Callable[[FloatArray], FloatArray]:
        """What maps a numeric target to the units of the method; it can be pickled."""
        return np.asarray

    @property
    def _reads_own_units(self) -> bool:
        """Whether scores read features in their own units."""
        return False

    def _run(self, plan: Any, facts: PublicFacts, source: Any, stream: Stream) -> IntArray:
        """Release the selected features."""
        raise NotImplementedError

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        """Public facts for the certificate."""
        selected = min(int(self.n_features_to_select), facts.n_features)
        labels = {} if facts.labels is None else {"classes": facts.labels}
        return self._public_description(facts) | {"selected": selected} | labels

    def _most_records(self, facts: PublicFacts) -> int | None:
        """The largest number of records whose sums 64-bit integers have room for; None where there is no limit."""
        return None

    def _assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, apart from the records and the kind of target."""
        return ()

    def _arithmetic(self, plan: Plan) -> str:
        """Either "exact", or "float64" where the scores are not computed exactly."""
        return plan.arithmetic

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.invalid == "null"
        return tags


class BoundedSelector(PrivateSelector):
    """Base of the selectors with public bounds and a top-k mechanism."""

    y_bounds: tuple[float, float] | None
    mechanism: TopKMechanism
    gamma: float

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_x_bound(self._x_bound)
        check_choice(TOP_K_MECHANISMS, mechanism=self.mechanism)
        check_real(0.0, 1.0, closed="left", gamma=self.gamma)
        stated_y_bounds(self.y_bounds)

    def _number_map(self) -> Callable[[FloatArray], FloatArray]:
        return partial(numeric_target, y_bounds=self._y_bounds)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        y_bounds = {} if facts.labels is not None else {"y_bounds": self._y_bounds}
        return super()._described(plan, facts) | {"x_bound": float(self._x_bound)} | y_bounds


# ---- Private selection by sample and aggregate: disjoint blocks of records vote for features.
# The first of the two stages of Kifer, Smith and Thakurta (2012), with blocks that suit the relation in force and a
# top-k mechanism that needs to know no more than that one record sways one block.


@dataclass(kw_only=True, eq=False, repr=False)
class BlockVoteSelector(BoundedSelector):
    r"""Select the features for which most blocks of records vote, privately.

    The records are cut into disjoint blocks :math:`B_1, \dots, B_m`. Each follows its own LASSO path, from the
    penalty at which no coefficient is active downwards, until k of them are:

    .. math:: \min_{b, w} \sum_{i \in B} \phi(b + z_i \cdot w, y_i) + \alpha \|w\|_1, \qquad \alpha \downarrow,

    and votes for these k features, :math:`v_j = \#\{B : j \text{ active in } B\}`. :math:`\phi` is half the squared
    residual for a numeric target and the logistic loss for labels (with more than two classes one path each, one
    against the rest, and the k features that came first on any). There is no penalty to choose. Columns are centred
    and scaled by the block's own moments, which costs nothing: a vote may be any function of its block.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the set of selected features, nothing else.
    Sensitivity: ``data.sensitivity.block_votes`` (1 under each relation, since one record belongs to one
    block). Votes are integers. Public: the numbers of features, of blocks and, except under add-remove, of records,
    the bounds and the classes. A block that cannot be fitted votes for nothing, silently.

    Parameters
    ----------
    %(epsilon)s
    %(delta)s
    %(relation)s
        Blocks are slices of the table, except under add-remove, where each record is assigned at random.
    %(n_public)s
        ``n_blocks="auto"`` needs it.
    %(x_bound)s
    %(selected_target)s
    %(n_features_to_select)s
        A block votes for as many.
    n_blocks : int or "auto", default="auto"
        Number of blocks. "auto": the square root of the public number of records, rounded down. The noise is of the
        order of ``n_features_to_select / epsilon`` votes, so that more and smaller blocks help where features are easy
        to find.
    %(top_k)s
    %(n_jobs)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(selector_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
    Park and Hastie, *L1-regularization path algorithm for generalized linear models* (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import BlockVoteSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = np.clip(X[:, 3] - X[:, 17], -1, 1)
    >>> selector = BlockVoteSelector(x_bound=1.0, y_bounds=(-1, 1), n_features_to_select=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(selector.support_).tolist()
    [3, 17]
    """

    persons_refused = None

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    classes: Any = None
    n_features_to_select: int = 10
    n_blocks: int | Auto = "auto"
    mechanism: TopKMechanism = "auto"
    gamma: float = 0.5
    n_jobs: int | None = None
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    def fit(self, X: Any, y: Any = None, persons: Any = None, keys: Any = None) -> Self:
        """Select features: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            A numeric or categorical target.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together. Blocks are of whole persons, and each person counts once in its block. A
            row without a key is a null row. None: every row is a record of its own.
        keys : array-like of shape (n_samples,), default=None
            Under add-remove only: the person of each record, as numbers or text. Records of one key are then in one
            block, so that the guarantee of this selection covers all records of a person together. Keys are hashed
            with a secret of the fit's own, drawn independently of the data. The certificate is about single records;
            with ``persons`` it is about persons, under every relation.

        Returns
        -------
        self : object
            The fitted selector.
        """
        if keys is not None and persons is not None:
            raise ParameterError("keys", type(keys).__name__, "None where persons are given", "leave keys out")
        if keys is not None and self.relation != "add-remove":
            raise ParameterError(
                "relation",
                self.relation,
                "'add-remove' where keys are given, since a replaced record would move between two blocks",
                "leave keys out, or set relation='add-remove'",
            )
        return self._fit(X, y, persons, keys=keys)

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_n_blocks(self.n_blocks)
        check_n_jobs(self.n_jobs)

    def _plan(self, facts: PublicFacts) -> BlockVotePlan:
        n_classes = 0 if facts.labels is None else facts.labels.size
        loss, n_outputs = LogisticLoss() if n_classes else SquaredLoss(), n_classes if n_classes > 2 else 1
        return plan_block_vote(
            Budget(self.epsilon, self.delta),
            Problem(loss, self.relation, facts.n_records, facts.n_features, n_outputs),
            self._count(facts.n_features),
            n_blocks=self.n_blocks,
            method=self.mechanism,
            gamma=self.gamma,
            accounted=self.account is not None,
        )

    def _run(
        self, plan: BlockVotePlan, facts: PublicFacts, source: ArraySource, stream: Stream, *, keys: Any = None
    ) -> IntArray:
        return run_block_vote(plan, source, stream, keys=keys, n_jobs=self.n_jobs)

    def _described(self, plan: BlockVotePlan, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"method": plan.selection.method, "blocks": plan.n_blocks}

    def _assumptions(self) -> tuple[str, ...]:
        return ("the bounds and the number of blocks were chosen without looking at these data",)


# ---- Private sure independence screening: the features that go most with the target, one at a time.
# The method is that of Swope et al., *Feature Selection from Differentially Private Correlations*, with the
# sensitivity of the relation in force, with class sizes that make its top-k mechanism private, and with a released mean
# of the target in place of the observed one.

SCORES = ("correlation", "sign", "quadrant")
"""Names of the built-in scores."""

DECLARATION = "the sensitivity declared for the score is right"


@dataclass(kw_only=True, eq=False, repr=False)
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

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    classes: Any = None
    n_features_to_select: int = 10
    mechanism: TopKMechanism = "auto"
    gamma: float = 0.5
    score_func: SelectionScore | Callable[..., Any] = "correlation"
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

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
            return CorrelationPlan(selection.schedule, selection, None, 1)
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


# ---- Private feature selection by rank correlation, which needs no bounds on the data.
# The method is that of Dick, Gillenwater and Joseph, *Better private linear regression through better private feature
# selection*, with sensitivities per relation and round and with all rounds accounted together.


@dataclass(kw_only=True, eq=False, repr=False)
class KendallSelector(PrivateSelector):
    r"""Select features that go with the target and not with each other, by rank correlation, privately.

    The first feature is the one with the largest :math:`\tau(x_j, y)`. When m features S are selected, the next is the
    one with the largest

    .. math:: \tau(x_j, y) - \frac{1}{m} \sum_{s \in S} \tau(x_j, x_s), \qquad
        \tau(a, b) = \frac{1}{n - 1} \Bigl| \sum_{i < l} \mathrm{sign}(a_i - a_l)\, \mathrm{sign}(b_i - b_l) \Bigr|.

    That is Kendall's tau-a times n / 2, so that one record changes it by a constant. Only the order of values counts:
    they need no bounds, and any increasing transformation of a column leaves the selection as it is.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the features in order of selection, of which
    ``support_`` keeps the set. Sensitivity: ``data.sensitivity.kendall_scores`` (1 in the first round and 2 in later
    ones, twice that under replace-one, 3/2 and 5/2 under add-remove). Scores are exact integers, rounded down to a
    public lattice under add-remove and beyond 2**20 records. Public: the numbers of features and, except under
    add-remove, of records, and the classes.

    Parameters
    ----------
    %(epsilon)s
    %(delta)s
        With 0 every round is a permute-and-flip, with more an exponential mechanism.
    %(relation)s
    %(n_public)s
        It is shown on the certificate; selections do not need it.
    classes : sequence, default=None
        The two public labels of a categorical target; a record with another label is a null record, absent from every
        pair. None: the target holds numbers, or false and true.
    %(n_features_to_select)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(selector_attributes)s

    Notes
    -----
    A round costs O(n log n) per feature. The ranks of a dense table are kept in 4 bytes a value; those of a sparse one
    are made again in every round, one column at a time.

    References
    ----------
    Dick, Gillenwater and Joseph, *Better private linear regression through better private feature selection*,
    arXiv:2306.00920.
    Knight, *A computer method for calculating Kendall's tau with ungrouped data* (1966).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import KendallSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.lognormal(sigma=3.0, size=(5000, 20))
    >>> X[:, 9] = X[:, 3] ** 2
    >>> y = np.log(X[:, 3]) - 0.7 * np.log(X[:, 17])
    >>> selector = KendallSelector(epsilon=1.0, n_features_to_select=2, random_state=0).fit(X, y)

    Columns 3 and 9 say the same, so one of them is enough.

    >>> np.flatnonzero(selector.support_).tolist()
    [9, 17]
    """

    persons_refused = "ranks compare single rows"

    classes: Any = None
    n_features_to_select: int = 10
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        if self.classes is not None and check_classes(self.classes).size > 2:
            raise ParameterError(
                "classes",
                self.classes,
                "two labels, since more have no order to rank them by",
                "leave classes at None if the target is a number, or set one class against the rest",
            )

    def _plan(self, facts: PublicFacts) -> KendallPlan:
        private_count = self.relation == "add-remove" and not math.isinf(self.epsilon)
        return plan_kendall(
            Budget(self.epsilon, self.delta),
            facts.n_features,
            self._count(facts.n_features),
            self.relation,
            None if private_count else facts.n_rows,
        )

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit calls, so that a failure to do so spends nothing."""
        ranks.warm_up()

    def _run(self, plan: KendallPlan, facts: PublicFacts, source: ArraySource, stream: Stream) -> IntArray:
        return run_kendall(plan, source, stream)

    def _described(self, plan: KendallPlan, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"method": plan.method}
