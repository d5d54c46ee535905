"""What private selectors have in common: targets and labels, the verbs of a fit, a set of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from taciturn.certificate import certify
from taciturn.core.arrays import BoolArray, FloatArray, IntArray
from taciturn.core.guard import Guarded, warn_caller
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_real, check_x_bound, without_data_values
from taciturn.data.admission import declares_truth_values
from taciturn.data.reading import check_lengths, read_records
from taciturn.data.sparse_layout import checked_layout
from taciturn.data.target import LabelMap, NumberMap, check_classes, numeric_target, stated_y_bounds
from taciturn.fitting.procedure import Persons, Plan, PrivateEstimator, PublicFacts
from taciturn.planning.top_k import TOP_K_MECHANISMS
from taciturn.sources import (
    ArraySource,
    BlockBuilder,
    OpenTable,
    partitionwise,
    stated_classes,
    target_has_truth_values,
)

__all__ = ["BoundedSelector", "FeatureMask", "PrivateSelector"]

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
    def transform(self, X: Any) -> Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        """
        return without_data_values("X", lambda: super(FeatureMask, self).transform(checked_layout(X)))

    def inverse_transform(self, X: Any) -> Any:
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
    mechanism: str
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
