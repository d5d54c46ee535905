"""Classes with one mistake each, by the check of the suite that has to reject them."""

import html
import logging
import sys
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from every_class import ENTRIES
from sklearn.base import BaseEstimator

from taciturn import (
    BoundedScaler,
    CorrelationSelector,
    DataError,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    HardThresholdRegressor,
    ParameterError,
)

SOUND = {entry.name: entry for entry in ENTRIES}
BROKEN = {}
"""Pairs of the entry of a sound class and of one that is broken, by the name of a check."""


def rejected_by(check, entry=None):
    """Register a class as one that a check must reject, in the setting of a class that it must accept."""

    def register(kind):
        base = SOUND[entry or next(cls.__name__ for cls in kind.__mro__ if cls.__name__ in SOUND)]
        BROKEN.setdefault(check, []).append((base, replace(base, kind=kind)))
        return kind

    return register


# ------------------------------------------------------------------ constructors and single fits


@rejected_by("constructors_assign_keywords_and_do_nothing_else")
class Positional(BoundedScaler):
    def __init__(self, lower=-1.0, upper=1.0, invalid="raise"):
        super().__init__(lower=lower, upper=upper, invalid=invalid)


@rejected_by("constructors_assign_keywords_and_do_nothing_else")
class Converting(BoundedScaler):
    def __init__(self, *, lower=-1.0, upper=1.0, invalid="raise"):
        super().__init__(lower=np.asarray(lower), upper=upper, invalid=invalid)


@rejected_by("parameters_follow_from_the_kind")
class OwnDefault(BoundedScaler):
    def __init__(self, *, lower=-1.0, upper=1.0, invalid="null"):
        super().__init__(lower=lower, upper=upper, invalid=invalid)


@rejected_by("fits_print_nothing")
class Printing(FrankWolfeRegressor):
    def fit(self, X, y):
        print("fitting", file=sys.stderr)  # noqa: T201
        return super().fit(X, y)


@rejected_by("fits_print_nothing")
class Logging(FrankWolfeRegressor):
    def fit(self, X, y):
        logging.getLogger("solver").warning("fitting")
        return super().fit(X, y)


@rejected_by("logs_tell_phases_and_public_facts")
class LoggingNullRecords(FrankWolfeRegressor):
    def _read(self, X, y, facts, persons=None):
        null = int(np.isnan(np.asarray(X, dtype=float)).any(axis=1).sum())
        logging.getLogger("taciturn").info("%d null records", null, extra={"phase": "reading"})
        return super()._read(X, y, facts, persons)


@rejected_by("logs_tell_phases_and_public_facts")
class LoggingRows(FrankWolfeRegressor):
    def _reserve(self, plan, facts):
        return super()._reserve(plan, replace(facts, n_records=facts.n_rows))


@rejected_by("logs_tell_phases_and_public_facts")
class Secretive(FrankWolfeRegressor):
    def _log(self, phase):
        pass


@rejected_by("the_text_names_the_budget")
class HidingDefaults(FrankWolfeRegressor):
    __repr__ = BaseEstimator.__repr__


@rejected_by("the_text_names_the_budget")
class NamingEpsilonAlone(FrankWolfeRegressor):
    def __repr__(self):
        return f"{type(self).__name__}(epsilon={self.epsilon})"


@rejected_by("notebooks_show_what_was_released")
class DiagramAlone(FrankWolfeRegressor):
    _repr_html_inner = BaseEstimator._repr_html_inner


@rejected_by("notebooks_show_what_was_released")
class Unescaped(FrankWolfeRegressor):
    def _repr_html_inner(self):
        return html.unescape(super()._repr_html_inner())


@rejected_by("fits_leave_their_input_alone")
class ClippingInPlace(FrankWolfeRegressor):
    def fit(self, X, y):
        if isinstance(X, np.ndarray) and X.flags.writeable:
            np.clip(X, -1.0, 1.0, out=X)
        return super().fit(X, y)


@rejected_by("fits_leave_their_input_alone")
class SortingInPlace(FrankWolfeRegressor):
    def predict(self, X):
        if sp.issparse(X):
            X.data[:] = np.clip(X.data, -1.0, 1.0)
        return super().predict(X)


@rejected_by("fits_keep_what_was_released_and_nothing_else")
class KeepingALoss(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.training_loss_ = 1.0 - self.score(X, y)
        return self


@rejected_by("fits_keep_what_was_released_and_nothing_else")
class KeepingATable(FrankWolfeRegressor):
    def fit(self, X, y):
        self._table = X
        return super().fit(X, y)


@rejected_by("fits_keep_what_was_released_and_nothing_else")
class WithoutCertificate(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        del self.certificate_
        return self


@rejected_by("a_second_fit_forgets_the_first")
class WarmStarting(FrankWolfeRegressor):
    def fit(self, X, y):
        before = getattr(self, "intercept_", 0.0)
        super().fit(X, y)
        self.intercept_ += before + 1.0
        return self


@rejected_by("seeds_reproduce_and_are_not_told")
class IgnoringSeeds(FrankWolfeRegressor):
    def fit(self, X, y):
        seed, self.random_state = self.random_state, None
        super().fit(X, y)
        self.random_state = seed
        return self


@rejected_by("fits_without_a_seed_differ")
@rejected_by("an_infinite_epsilon_is_not_private_and_draws_no_noise")
class AlwaysSeeded(FrankWolfeRegressor):
    def fit(self, X, y):
        given = self.get_params()
        self.set_params(random_state=3, epsilon=min(self.epsilon, 5.0))
        return super().fit(X, y).set_params(**given)


class Certified(FrankWolfeRegressor):
    """With a certificate of another fit."""

    def fit(self, X, y):
        super().fit(X, y)
        self.certificate_ = self.certify(X, y)
        return self


@rejected_by("certificates_cover_every_relation")
class Understating(Certified):
    def certify(self, X, y):
        return FrankWolfeRegressor(n_steps=3).fit(X, y).certificate_


@rejected_by("certificates_cover_every_relation")
class Overspending(Certified):
    def certify(self, X, y):
        given = {**self.get_params(), "epsilon": 1.5}
        return FrankWolfeRegressor(**given).fit(X, y).certificate_


@rejected_by("a_private_number_of_records_decides_nothing_public")
class Counting(Certified):
    def certify(self, X, y):
        given = {**self.get_params(), "relation": "add-remove", "n_public": X.shape[0]}
        return FrankWolfeRegressor(**given).fit(X, y).certificate_


@rejected_by("a_private_number_of_records_decides_nothing_public")
class DividingByTheirNumber(HardThresholdRegressor):
    def fit(self, X, y):
        given, self.n_public = self.n_public, self.n_public or X.shape[0]
        super().fit(X, y)
        self.n_public = given
        return self


@rejected_by("a_budget_without_a_delta_is_kept_or_refused")
class WithADelta(Certified):
    def certify(self, X, y):
        return FrankWolfeRegressor(epsilon=self.epsilon, n_steps=3).fit(X, y).certificate_


# ------------------------------------------------------------------ tables


@rejected_by("degenerate_tables_are_fitted")
class DividingByDeviations(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        with np.errstate(all="ignore"):
            self.coef_ = self.coef_ / np.asarray(sp.csr_array(X).toarray()).std(axis=0)
        return self


@rejected_by("degenerate_tables_are_fitted")
class RefusingConstants(FrankWolfeRegressor):
    def fit(self, X, y):
        if not np.ptp(sp.csr_array(X).toarray(), axis=0).any():
            raise ParameterError("x_bound", self.x_bound, "columns that vary", "drop the others")
        return super().fit(X, y)


@rejected_by("more_coefficients_than_features_are_all_features")
class WritingBeyond(HardThresholdRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.support_ = np.ones(max(self.n_nonzero, 1), dtype=bool)
        return self


@rejected_by("a_selection_of_all_features_costs_nothing")
class PayingForNothing(CorrelationSelector):
    def fit(self, X, y):
        super().fit(X, y)
        self.certificate_ = CorrelationSelector(n_features_to_select=1).fit(X, y).certificate_
        return self


@rejected_by("one_class_is_enough_where_labels_are_public")
class LabelsFromData(FrankWolfeClassifier):
    def fit(self, X, y):
        given, self.classes = self.classes, None
        super().fit(X, y)
        self.classes = given
        return self


@rejected_by("selectors_fit_to_one_class_or_none")
class EmptyHanded(CorrelationSelector):
    def fit(self, X, y):
        super().fit(X, y)
        self.support_ &= (np.asarray(y) != "z").any()
        return self


@rejected_by("no_records_are_refused_unless_their_number_is_private")
class InsistingOnRecords(FrankWolfeRegressor):
    def fit(self, X, y):
        if np.shape(X)[0] == 0:
            raise DataError("X: expected records, got none; pass some.")
        return super().fit(X, y)


@rejected_by("sparse_tables_are_read_as_dense_ones")
class HalvingSparse(HardThresholdRegressor):
    def fit(self, X, y):
        return super().fit(0.5 * X if sp.issparse(X) else X, y)


@rejected_by("sparse_tables_are_read_as_dense_ones")
class HalfOfSparse(FrankWolfeRegressor):
    def fit(self, X, y):
        return super().fit(X.maximum(0.0) if sp.issparse(X) else X, y)


@rejected_by("sparse_tables_are_read_as_dense_ones")
class ClippingParts(HardThresholdRegressor):
    def fit(self, X, y):
        if sp.issparse(X) and X.format == "csr":
            X = sp.csr_array((np.clip(X.data, -1.0, 1.0), X.indices, X.indptr), shape=X.shape)
        return super().fit(X, y)


@rejected_by("sparse_tables_are_refused_where_zero_is_not_mapped_to_zero", "BoundedScaler-shifted")
class FillingIn(BoundedScaler):
    def fit(self, X, y=None):
        return super().fit(X.toarray() if sp.issparse(X) else X, y)


@rejected_by("types_of_numbers_do_not_matter")
class PreferringFloats(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.intercept_ += float(np.asarray(X).dtype == np.float32)
        return self


@rejected_by("frames_are_tables_with_names")
class Nameless(FrankWolfeRegressor):
    def predict(self, X):
        return super().predict(np.asarray(X))


@rejected_by("frames_are_tables_with_names")
class Forgetful(FrankWolfeRegressor):
    def fit(self, X, y):
        return super().fit(np.asarray(X) if hasattr(X, "columns") else X, y)


@rejected_by("columns_keep_their_names_on_the_way_out")
class Renaming(CorrelationSelector):
    def get_feature_names_out(self, input_features=None):
        return np.array([f"column {j}" for j in range(self.support_.sum())], dtype=object)


@rejected_by("selections_are_columns_and_come_back")
class Complement(CorrelationSelector):
    def _get_support_mask(self):
        return ~self.support_
