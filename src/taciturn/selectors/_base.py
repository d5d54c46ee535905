"""What every private selector has in common: public parameters, bounded reading, a set of features, a certificate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from taciturn.accounting import Budget
from taciturn.certificate import Certificate, Release, certify
from taciturn.core.errors import DataError
from taciturn.core.guard import Guarded, warn_caller
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer, without_data_values
from taciturn.data.admission import PresentRecords, declares_truth_values
from taciturn.data.reading import admission_assumptions, check_invalid, read_records
from taciturn.data.sensitivity import check_relation, public_rows
from taciturn.data.sparse_layout import checked_layout
from taciturn.data.target import check_classes

__all__ = ["KIND_OF_TARGET", "PrivateSelector", "labels_or_numbers", "numbers_of"]

KIND_OF_TARGET = "whether the target holds numbers or truth values is public"
"""An assumption wherever the labels are not given, since one record could change it."""


class PrivateSelector(Guarded, SelectorMixin, BaseEstimator):
    """Base of the selectors: ``support_`` and ``certificate_`` are all that a fit leaves behind."""

    invalid = "raise"
    """For selectors that cannot be told otherwise."""

    def _check_public(self) -> None:
        """Refuse bad values of public parameters before any data are read."""
        check_invalid(self.invalid)
        Budget(self.epsilon, self.delta)
        Stream.of(self.random_state)
        check_relation(self.relation)
        check_integer(1, n_features_to_select=self.n_features_to_select)
        if self.n_public is not None:
            check_integer(1, n_public=self.n_public)

    def _read(self, X: Any, y: Any) -> PresentRecords:
        null = self.invalid == "null"
        # The type of the column tells truth values from numbers, where no record may decide that for the others.
        truth = declares_truth_values(y)
        numeric = null and self.classes is None and not truth
        empty = null and self.relation == "add-remove"
        records = read_records(self, X, y, invalid=self.invalid, numeric=numeric, empty=empty)
        self._warm_up(sparse=sp.issparse(records.X))
        # Truth values of a nullable column arrive as numbers.
        return replace(records, y=records.y.astype(bool)) if truth else records

    def _warm_up(self, *, sparse: bool) -> None:
        """Compile what a fit of this layout calls, before its first draw: where that fails, no budget is spent."""

    def _count(self, n_columns: int) -> int:
        """How many features are selected: no more than there are."""
        if self.n_features_to_select <= n_columns:
            return int(self.n_features_to_select)
        warn_caller(
            f"n_features_to_select={self.n_features_to_select} is more than the {n_columns} features of X; "
            "all of them are selected.",
            UserWarning,
        )
        return n_columns

    def _public_facts(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        records = public_rows(self.relation, n_rows, self.n_public)
        facts = {"features": n_columns, "selected": min(int(self.n_features_to_select), n_columns)}
        return facts | ({} if records is None else {"records": records}) | {"invalid": self.invalid}

    def _conclude(
        self,
        selected: np.ndarray,
        releases: Iterable[Release],
        budget: Budget,
        *,
        public: dict[str, Any],
        assumptions: Iterable[str],
        seeded: bool,
        arithmetic: str,
    ) -> None:
        """Set what a fit leaves behind."""
        assumptions = (*assumptions, *admission_assumptions(self.invalid))
        if self.classes is None:
            assumptions = (*assumptions, KIND_OF_TARGET)
        self.certificate_: Certificate = certify(
            releases,
            budget,
            relation=self.relation,
            public=public,
            assumptions=assumptions,
            seeded=seeded,
            arithmetic=arithmetic,
        )
        self.support_ = np.zeros(public["features"], dtype=bool)
        self.support_[selected] = True

    def transform(self, X: Any) -> Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        """
        return without_data_values("X", lambda: super(PrivateSelector, self).transform(checked_layout(X)))

    def inverse_transform(self, X: Any) -> Any:
        """Put the selected columns back in their places, with zeros in the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_selected_features)
            What :meth:`transform` returned.
        """
        return without_data_values("X", lambda: super(PrivateSelector, self).inverse_transform(checked_layout(X)))

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.invalid == "null"
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags


def labels_or_numbers(y: np.ndarray, classes: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """The public labels of a categorical target, or None, and the target: doubles if there are no labels.

    Labels are never taken from y, where each of them would be a release. Truth values need none, on the assumption
    :data:`KIND_OF_TARGET`. All numbers become doubles one by one, so that no record decides the type of the others.
    """
    if classes is None and _all_truth_values(y):
        classes = (False, True)
    if classes is not None:
        return check_classes(classes), y
    y = numbers_of(y)
    if y.dtype.kind not in "iuf":
        raise DataError(
            "y: expected numbers, or labels together with their public list; pass the labels as classes=(...)."
        )
    return None, y.astype(np.float64)


def numbers_of(y: np.ndarray) -> np.ndarray:
    """Numbers that arrive as objects, as a data frame's column may, are numbers; text is not, whatever it says."""
    if y.dtype.kind != "O" or any(isinstance(value, str | bytes) for value in y):
        return y
    try:
        numbers = y.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return y
    if not np.isfinite(numbers).all():
        raise DataError(
            "y: expected finite numbers, got missing or infinite ones; fill them in or leave these records out."
        )
    return numbers


def _all_truth_values(y: np.ndarray) -> bool:
    return y.dtype.kind == "b" or (y.dtype.kind == "O" and all(isinstance(value, bool | np.bool_) for value in y))
