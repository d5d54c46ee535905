"""What every private linear model has in common: bounded input, predictions, coefficient layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from taciturn.accounting import Budget
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import Guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_positive, check_truth, without_data_values
from taciturn.data.admission import PresentRecords, plain_labels
from taciturn.data.reading import admission_assumptions, check_invalid, read_records, read_table
from taciturn.data.sensitivity import check_relation, public_rows
from taciturn.data.target import check_classes

BOUNDS = "the bounds were chosen without looking at these data"

__all__ = ["PrivateClassifierMixin", "PrivateLinearModel", "PrivateRegressorMixin", "given", "labels_of"]


class PrivateLinearModel(Guarded, BaseEstimator):
    """Base of the linear models: ``margins = X @ coef_.T + intercept_``."""

    invalid = "raise"
    """For models that cannot be told otherwise."""

    def _check_public(self) -> None:
        """Refuse bad values of public parameters before any data are read."""
        check_invalid(self.invalid)
        Budget(self.epsilon, self.delta)
        Stream.of(self.random_state)
        check_relation(self.relation)
        check_positive(x_bound=self.x_bound)
        check_truth(fit_intercept=self.fit_intercept)
        if getattr(self, "classes", None) is not None:
            check_classes(self.classes)
        if self.n_public is not None:
            check_integer(1, n_public=self.n_public)

    def _check_gaussian(self) -> None:
        """Refuse what models that release values with Gaussian noise cannot do without."""
        if self.delta == 0.0 and not math.isinf(self.epsilon):
            raise ParameterError("delta", self.delta, "a number > 0", "the noise is Gaussian, which needs one")
        if self.relation == "add-remove" and self.n_public is None:
            raise ParameterError(
                "n_public", None, "a public number of records under add-remove", "pass one, or use relation='zero-out'"
            )

    def _read(self, X: Any, y: Any, *, numeric: bool) -> PresentRecords:
        empty = getattr(self, "relation", None) == "add-remove"
        records = read_records(self, X, y, invalid=self.invalid, numeric=numeric, empty=empty)
        self._warm_up(sparse=sp.issparse(records.X))
        return records

    def _warm_up(self, *, sparse: bool) -> None:
        """Compile what a fit of this layout calls, before its first draw: where that fails, no budget is spent."""

    def _public_facts(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        records = public_rows(self.relation, n_rows, self.n_public)
        facts: dict[str, Any] = {"features": n_columns} | ({} if records is None else {"records": records})
        return facts | {"x_bound": float(self.x_bound), "invalid": self.invalid}

    def _assumptions(self) -> tuple[str, ...]:
        """What every guarantee rests on that bounds and records make."""
        return BOUNDS, *admission_assumptions(self.invalid)

    def _margins(self, X: Any) -> Any:
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        product = X @ self.coef_.T
        return (product.toarray() if sp.issparse(product) else np.asarray(product)) + self.intercept_

    def sparsify(self) -> Any:
        """Store ``coef_`` as a sparse matrix, which pays when most of it is zero."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Store ``coef_`` as an array again."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            dense = self.coef_.toarray()
            self.coef_ = dense if is_classifier(self) else dense.ravel()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.invalid == "null"
        tags.non_deterministic = self.random_state is None
        return tags


class PrivateRegressorMixin(RegressorMixin):
    """A regressor whose score is bounded by its noise."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateClassifierMixin(ClassifierMixin):
    """A classifier whose score is bounded by its noise.

    ``decision_function``, ``predict_proba`` and ``predict`` follow from margins, as scikit-learn users expect them.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def decision_function(self, X: Any) -> np.ndarray:
        """Margins: shape (n_samples,) for two classes, (n_samples, n_classes) for more."""
        margins = self._margins(X)
        return margins.ravel() if self.classes_.size == 2 else margins

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of ``classes_``."""
        margins = self.decision_function(X)
        if self.classes_.size == 2:
            return np.column_stack((expit(-margins), expit(margins)))
        return softmax(margins, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities, finite where those underflow."""
        margins = self.decision_function(X)
        if self.classes_.size == 2:
            return np.column_stack((log_expit(-margins), log_expit(margins)))
        return log_softmax(margins, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample."""
        margins = self.decision_function(X)
        codes = (margins > 0).astype(int) if self.classes_.size == 2 else margins.argmax(axis=1)
        return self.classes_[codes]


def given(**named: Any) -> float | None:
    """A positive number, or None for "auto"."""
    ((name, value),) = named.items()
    if isinstance(value, str):
        check_choice(("auto",), **named)
        return None
    return check_positive(**{name: value})


def labels_of(y: np.ndarray, classes: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """The sorted labels, and the assumption that goes with taking them from y."""
    if classes is not None:
        return np.sort(check_classes(classes)), ()

    def distinct() -> np.ndarray:
        labels = plain_labels(y)
        check_classification_targets(labels)
        return np.unique(labels)

    found = without_data_values("y", distinct)
    if found.size < 2:
        raise DataError(
            "y: expected at least two classes, got one class; pass the public labels as classes=(...) if the "
            "others merely did not occur."
        )
    return found, ("the set of labels is public",)
