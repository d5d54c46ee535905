"""Predictions of fitted linear models, for numbers and for classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from taciturn.core.arrays import AnyArray, BoolArray, FloatArray
from taciturn.data.reading import read_table
from taciturn.sources import partitionwise

__all__ = ["ClassPredictor", "LinearPredictor"]


class LinearPredictor(BaseEstimator):
    """A fitted linear model: ``margins = X @ coef_.T + intercept_``."""

    invalid: str
    random_state: int | None
    coef_: Any
    intercept_: Any
    support_: BoolArray

    def _margins(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        product = X @ self.coef_.T
        margins: FloatArray = (product.toarray() if sp.issparse(product) else np.asarray(product)) + self.intercept_
        return margins

    def sparsify(self) -> Self:
        """Store ``coef_`` as a sparse matrix, which pays when most of it is zero."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
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


class ClassPredictor(ClassifierMixin, LinearPredictor):
    """A fitted linear model of classes: margins become probabilities and labels."""

    classes_: AnyArray

    @partitionwise
    def decision_function(self, X: Any) -> FloatArray:
        """Margins: shape (n_samples,) for two classes, (n_samples, n_classes) for more."""
        margins = self._margins(X)
        return margins.ravel() if self.classes_.size == 2 else margins

    @partitionwise
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, in the order of ``classes_``."""
        margins = self.decision_function(X)
        if self.classes_.size == 2:
            return np.column_stack((expit(-margins), expit(margins)))
        return np.asarray(softmax(margins, axis=1))

    @partitionwise
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities, finite where those underflow."""
        margins = self.decision_function(X)
        if self.classes_.size == 2:
            return np.column_stack((log_expit(-margins), log_expit(margins)))
        return np.asarray(log_softmax(margins, axis=1))

    @partitionwise
    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each sample."""
        margins = self.decision_function(X)
        codes = (margins > 0).astype(int) if self.classes_.size == 2 else margins.argmax(axis=1)
        labels: AnyArray = self.classes_[codes]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
