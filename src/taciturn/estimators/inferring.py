"""What a model with standard errors has besides others: fixed columns, fitted errors, and a summary."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _get_feature_names, check_is_fitted

from taciturn.certificate import Certificate
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_real, check_truth
from taciturn.estimators.inference import Inference, infer
from taciturn.estimators.summary import CoefficientSummary
from taciturn.fitting.inference import InferenceResult
from taciturn.planning.inference import InferencePlan
from taciturn.sources import OpenTable

__all__ = ["FIXED_COLUMNS", "InferringModel", "restore_inference"]

FIXED_COLUMNS = "the columns of the model were chosen without looking at these data"
"""An assumption wherever the caller fixes the columns."""

_FITTED = ("coef_std_error_", "coef_interval_", "coef_p_value_", "inference_")


class InferringModel:
    """A linear model whose columns can be fixed, and whose coefficients can have standard errors."""

    columns: Any
    inference: bool
    confidence_level: float
    epsilon: float
    delta: float
    relation: str
    coef_: FloatArray
    intercept_: Any
    n_features_in_: int
    certificate_: Certificate
    inference_: Inference

    def _check_inference(self) -> None:
        """Raise ParameterError for a parameter that no fit could use."""
        check_truth(inference=self.inference)
        check_real(0.5, 1.0, closed="left", confidence_level=self.confidence_level)
        if self.columns is not None and (isinstance(self.columns, str) or not np.iterable(self.columns)):
            raise ParameterError("columns", self.columns, "a list of places or names, or None", "pass a list")

    def _fixed_columns(self, X: Any, n_features: int) -> tuple[int, ...] | None:
        """The columns that the caller fixed, by their places in increasing order."""
        if self.columns is None:
            return None
        names: Any = None
        places: list[int] = []
        for column in self.columns:
            if isinstance(column, str):
                if names is None:
                    names = X.names if isinstance(X, OpenTable) else _get_feature_names(X)
                found = [] if names is None else np.flatnonzero(np.asarray(names, dtype=object) == column).tolist()
                if not found:
                    raise ParameterError("columns", column, "a name that X has", "check its spelling, or give places")
                places += found
            elif isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < n_features:
                places.append(int(column))
            else:
                raise ParameterError(
                    "columns", column, f"a name, or a place from 0 to {n_features - 1}", "give one of those"
                )
        if not places or len(set(places)) < len(places):
            raise ParameterError("columns", self.columns, "at least one column, and each of them once", "change it")
        return tuple(sorted(places))

    def _set_inference(self, plan: Any, outcome: Any, scale: float, intercept_scale: float) -> None:
        """Set the fitted errors, or remove those of an earlier fit."""
        for name in _FITTED:
            vars(self).pop(name, None)
        if isinstance(plan, InferencePlan) and isinstance(outcome, InferenceResult):
            self.inference_ = infer(plan, outcome, scale, intercept_scale, float(self.confidence_level))
            self._spread_inference()

    def _spread_inference(self) -> None:
        """Set the errors by feature from those of the columns."""
        found, coefficients = self.inference_, self._column_coefficients()
        self.coef_std_error_ = found.spread(found.std_error, self.n_features_in_)
        self.coef_interval_ = found.spread(found.intervals(coefficients), self.n_features_in_)
        self.coef_p_value_ = found.spread(found.p_values(coefficients), self.n_features_in_)

    def _column_coefficients(self) -> FloatArray:
        """The coefficients of the model's columns, and the intercept."""
        dense = self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_
        values = np.asarray(dense, dtype=np.float64).ravel()[self.inference_.columns]
        return np.append(values, np.asarray(self.intercept_, dtype=np.float64).ravel())

    def summary(self, *, units: Any = None) -> CoefficientSummary:
        """The coefficients with standard errors, p-values and intervals as a table.

        **Privacy.** Post-processing of what the fit released: it costs nothing.

        Parameters
        ----------
        units : array-like of shape (n_features,), default=None
            How many units of the original column one unit of each feature is, where a scaler came before the model:
            effects and odds ratios are then shown per original unit too. None: features have their own units.

        Returns
        -------
        CoefficientSummary
            With ``print``, ``to_frame()``, and a table in notebooks.
        """
        check_is_fitted(self, "coef_")
        if not hasattr(self, "inference_"):
            raise ParameterError("inference", self.inference, "True for a summary", "fit again with inference=True")
        names = getattr(self, "feature_names_in_", None)
        columns = self.inference_.columns
        labels = [str(names[j]) if names is not None else f"x{j}" for j in columns]
        return CoefficientSummary(
            f"{type(self).__name__}: {self._outcome_in_words()}",
            self._header(),
            labels,
            self._column_coefficients(),
            self.inference_,
            is_classifier(self),
            None if units is None else self._checked_units(units)[columns],
        )

    def _checked_units(self, units: Any) -> FloatArray:
        found = np.asarray(units, dtype=np.float64)
        if found.shape != (self.n_features_in_,) or not np.all(np.isfinite(found) & (found > 0.0)):
            raise ParameterError(
                "units", units, f"{self.n_features_in_} positive finite numbers", "give one per feature"
            )
        return found

    def _outcome_in_words(self) -> str:
        if not is_classifier(self):
            return "least squares" if getattr(self, "loss", "squared") == "squared" else "Huber's loss"
        labels = self.classes_  # type: ignore[attr-defined]
        return f"log-odds of {labels[1]} against {labels[0]}"

    def _header(self) -> dict[str, str]:
        public, certificate = self.certificate_.public, self.certificate_
        found = self.inference_
        if not found.split:
            records = f"{found.n_records:,}"
        elif found.reason is None:
            records = f"{found.n_records:,} for the coefficients, the other half chose the columns"
        else:
            records = "one half chose the columns and their coefficients, the other one could not improve on them"
        private = certificate.status != "not private"
        budget = f"epsilon {certificate.epsilon:g}, delta {certificate.delta:g}" if private else "none: not private"
        return {
            f"{certificate.unit.capitalize()}s": records,
            "Budget": budget,
            "Relation": certificate.relation,
            "Strategy": str(public.get("method", "")),
            "Confidence level": f"{found.confidence_level:g}",
        }


def restore_inference(model: InferringModel, found: Inference) -> None:
    """Set the errors of a model whose coefficients are set, as a fit does."""
    model.inference_ = found
    model._spread_inference()
