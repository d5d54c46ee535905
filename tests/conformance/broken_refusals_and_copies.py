"""Classes with one mistake each in what they refuse, or among other objects."""

import numpy as np
from broken_classes import rejected_by

from taciturn import DataError, FrankWolfeClassifier, FrankWolfeRegressor, published

# ------------------------------------------------------------------ refusals


@rejected_by("refusals_never_quote_the_table")
class Quoting(FrankWolfeRegressor):
    def fit(self, X, y):
        try:
            return super().fit(X, y)
        except DataError:
            raise DataError(f"X: expected numbers, got {X}.") from None


@rejected_by("refusals_never_quote_the_table")
class QuotingInTheContext(FrankWolfeRegressor):
    def predict(self, X):
        try:
            np.asarray(X, dtype=float)
        except (TypeError, ValueError):
            raise DataError("X: expected numbers, got text; encode it.")  # noqa: B904 (the original travels along)
        return super().predict(X)


@rejected_by("refusals_never_quote_the_table")
class Lenient(FrankWolfeRegressor):
    def fit(self, X, y):
        return super().fit(np.nan_to_num(X) if isinstance(X, np.ndarray) and X.dtype == float else X, y)


@rejected_by("refusals_never_quote_the_target")
class QuotingLabels(FrankWolfeClassifier):
    def fit(self, X, y):
        if np.ndim(y) == 1 and len({str(label) for label in y}) == 1:
            raise DataError(f"y: expected two classes, got {y[0]} alone.")
        return super().fit(X, y)


@rejected_by("refusals_never_quote_the_target")
class FillingInTargets(FrankWolfeRegressor):
    def fit(self, X, y):
        missing = isinstance(y, np.ndarray) and y.dtype == object
        return super().fit(X, [0.0 if value is None else value for value in y] if missing else y)


@rejected_by("huge_numbers_are_clipped_without_a_word")
class RefusingOutliers(FrankWolfeRegressor):
    def fit(self, X, y):
        if np.ndim(X) == 2 and np.abs(X).max() > 1e300:
            raise DataError("X: expected moderate numbers, got others; clip them.")
        return super().fit(X, y)


@rejected_by("bad_parameters_are_refused_before_data_are_read")
class ReadingFirst(FrankWolfeRegressor):
    def fit(self, X, y):
        np.asarray(X)
        return super().fit(X, y)


@rejected_by("bad_parameters_are_refused_before_data_are_read")
class Careless(FrankWolfeRegressor):
    def fit(self, X, y):
        self.n_public = None
        return super().fit(X, y)


# ------------------------------------------------------------------ company


@rejected_by("pickles_and_copies_are_equal")
class LosingItsCertificate(FrankWolfeRegressor):
    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "certificate_"}


@rejected_by("coefficients_may_be_stored_sparse")
class LosingItsShape(FrankWolfeClassifier):
    def densify(self):
        self.coef_ = self.coef_.toarray().ravel()
        return self


@rejected_by("clones_have_the_parameters_and_nothing_else")
class Drifting(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.n_public = 17
        return self


@rejected_by("pipelines_have_one_certificate")
@rejected_by("searches_run_in_two_processes")
class Numbered(FrankWolfeRegressor):
    fits = 0

    def fit(self, X, y):
        super().fit(X, y)
        # Another process counts for itself.
        type(self).fits += 1
        self.intercept_ += type(self).fits
        return self


@rejected_by("labels_may_be_of_any_type")
class NumberingLabels(FrankWolfeClassifier):
    def predict(self, X):
        return np.searchsorted(self.classes_, super().predict(X))


@rejected_by("a_label_of_another_type_decides_nothing_for_other_records")
class Promoting(FrankWolfeClassifier):
    def fit(self, X, y):
        # numpy makes text of all numbers beside one text.
        return super().fit(X, np.asarray(list(y)))


@rejected_by("targets_have_the_units_of_the_user")
class InUnitsOfItsOwn(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = self.coef_ / (self.y_bounds[1] - self.y_bounds[0])
        return self


@rejected_by("features_beyond_their_bound_are_clipped_without_a_word")
class Unbounded(FrankWolfeRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.intercept_ += float(np.abs(X).max())
        return self


@rejected_by("reproductions_state_a_claim_and_what_is_wrong_with_it", "RNMScreen")
class Proved(published.RNMScreen):
    def fit(self, X, y):
        super().fit(X, y)
        self.certificate_ = FrankWolfeRegressor().fit(X, y).certificate_
        return self


Proved.__name__ = "RNMScreen"
