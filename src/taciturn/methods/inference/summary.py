"""Standard errors, confidence intervals and p-values of a fitted model, and their table."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from taciturn.core.errors import ParameterError, visible
from taciturn.core.validation import BoolArray, FloatArray, IndexArray
from taciturn.data.sensitivity import Relation
from taciturn.methods.inference.plan import InferencePlan
from taciturn.methods.inference.run import InferenceResult
from taciturn.privacy.calibration import epsilon_of
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.events import GaussianEvent
from taciturn.privacy.filter import PrivacyFilter

# ---- Standard errors, intervals and p-values of a fitted model, in the user's units.

# Finite budgets end here.
_MOST_EPSILON = 30.0


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What a fit with ``inference=True`` says about the errors of its coefficients.

    Standard errors are those of the coefficients of ``columns``, with that of the intercept last (NaN without one).

    Parameters
    ----------
    columns : ndarray of int
        The features of the model.
    std_error : ndarray of shape (n_columns + 1,)
        Standard errors; NaN where there are none.
    sampling, privacy : ndarray of shape (n_columns + 1,)
        The parts of the standard error that are due to the sample and to the noise. Their squares add up.
    confidence_level : float
        Of the intervals.
    n_records : int
        The public number of records that the coefficients were estimated from.
    split : bool
        Whether other records chose the columns.
    reason : str or None
        Why there are no standard errors, in a sentence; None if there are.
    """

    columns: IndexArray
    std_error: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    confidence_level: float
    n_records: int
    split: bool
    reason: str | None = None

    @property
    def quantile(self) -> float:
        """Of the normal distribution, for the confidence level."""
        return float(ndtri(0.5 + 0.5 * self.confidence_level))

    def intervals(self, coefficients: FloatArray) -> FloatArray:
        """Lower and upper ends for coefficients with these standard errors, one row each."""
        reach = self.quantile * self.std_error
        return np.column_stack((coefficients - reach, coefficients + reach))

    def p_values(self, coefficients: FloatArray) -> FloatArray:
        """Two-sided p-values of the hypotheses that coefficients are zero."""
        values: FloatArray = 2.0 * ndtr(-np.abs(coefficients / self.std_error))
        return values

    def spread(self, values: FloatArray, n_features: int) -> FloatArray:
        """Values of the columns in the places of all features; NaN elsewhere."""
        spread = np.full((n_features, *values.shape[1:]), np.nan)
        spread[self.columns] = values[: self.columns.size]
        return spread


def infer(
    plan: InferencePlan, outcome: InferenceResult, scale: float, intercept_scale: float, confidence_level: float
) -> Inference:
    """The standard errors of a fit, given what one mapped unit is for coefficients and for the intercept."""
    n_columns, intercept = outcome.columns.size, plan.start.problem.intercept
    units = np.full(n_columns + 1, scale)
    units[-1] = intercept_scale if intercept else math.nan

    def deviations(covariance: FloatArray | None) -> FloatArray:
        found = np.full(n_columns + 1, math.nan)
        if covariance is not None:
            found[: len(covariance)] = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        scaled: FloatArray = found * units
        return scaled

    sampling, privacy = deviations(outcome.sampling), deviations(outcome.privacy)
    reason = None if outcome.sampling is not None else _reason(plan, outcome)
    return Inference(
        outcome.columns, np.hypot(sampling, privacy), sampling, privacy, confidence_level, plan.n_step_rows, plan.split,
        reason,
    )  # fmt: skip


def _reason(plan: InferencePlan, outcome: InferenceResult) -> str:
    """Why there are no standard errors, and what would give some, from public facts and released numbers."""
    width = outcome.columns.size + plan.start.problem.intercept
    if not width:
        return "no column was chosen and there is no intercept."
    budget = plan.budget
    if math.isinf(budget.epsilon):
        return "the information matrix is singular: columns are collinear, or they separate the classes."
    # Eigenvalues below the noise cannot be told from it, nor from zero.
    least = 1.0 / (math.sqrt(2.0 * width) + 1.0)
    if outcome.clarity > 1.0:
        # The room grows with the root of records times the Gaussian parameter.
        needed = _needed(plan, outcome.room**-2, "about")
        return (
            "residuals have tails that are long for this budget, and noise leaves no room for more than a large "
            f"quantile of them; by what was released it takes {needed} for intervals that a skewed tail does not "
            "shift, or the logarithm of the target."
        )
    seen = outcome.clarity > least
    needed = _needed(plan, 1.0 / max(outcome.clarity, least), "about" if seen else "more than")
    collinear = "; collinear columns, such as all categories of one column, never are" * bool(outcome.columns.size)
    return (
        f"the released information matrix of {width} coefficient{'s' * (width > 1)} is not clear of its noise; by what "
        f"was released it takes {needed} to be so{collinear}."
    )


def _needed(plan: InferencePlan, factor: float, how: str) -> str:
    """How many records, or which epsilon, are so many times the number of records times the Gaussian parameter."""
    n_records = plan.start.problem.n_records + (plan.n_step_rows if plan.split else 0)
    mu = factor * PrivacyFilter(plan.budget).mu
    epsilon = epsilon_of(GaussianEvent(1.0 / mu), plan.budget.delta)
    needed = f"{how} {_rounded_up(factor * n_records):,} records"
    return f"{needed}, or epsilon {epsilon:.2g}," if epsilon <= _MOST_EPSILON else needed


def _rounded_up(number: float) -> int:
    """Two digits, no fewer than the number."""
    step: int = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return math.ceil(number / step) * step


def adjusted_p_values(p_values: FloatArray) -> FloatArray:
    """Adjust p-values by Benjamini and Hochberg, to bound the false discovery rate; NaN stays and does not count."""
    adjusted = np.full(p_values.shape, np.nan)
    known: BoolArray = ~np.isnan(p_values)
    order = np.argsort(p_values[known], kind="stable")[::-1]
    n_tests = order.size
    ranks = np.arange(n_tests, 0, -1)
    smallest = np.minimum.accumulate(np.minimum(p_values[known][order] * (n_tests / ranks), 1.0))
    values = np.empty(n_tests)
    values[order] = smallest
    adjusted[known] = values
    return adjusted


# ---- Coefficients with standard errors as a table: text, HTML, or a data frame.

INTERCEPT = "(intercept)"
"""The name of the last row."""

_LONGEST_NAME = 28


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientSummary:
    """The coefficients of a fit with ``inference=True``, with standard errors, p-values and intervals.

    Printed, it is a table as statistical packages show it. ``to_frame()`` returns a pandas DataFrame.

    **Privacy.** Post-processing of what the fit released: it costs nothing.

    Parameters
    ----------
    title : str
        What was fitted.
    facts : mapping
        Public facts for the header.
    names : sequence of str
        Names of the columns of the model.
    coefficients : ndarray of shape (n_columns + 1,)
        The intercept last.
    inference : Inference
        Their errors.
    odds : bool
        Whether exponentials of coefficients are odds ratios.
    units : ndarray of shape (n_columns,), default=None
        How many units of a table's column one unit of each feature is, where features were scaled; None for one.
    """

    title: str
    facts: Mapping[str, str]
    names: Sequence[str]
    coefficients: FloatArray
    inference: Inference
    odds: bool
    units: FloatArray | None = None

    @property
    def columns(self) -> dict[str, FloatArray]:
        """The table by columns: name of the column to values, the intercept last."""
        found, values = self.inference, self.coefficients
        intervals = found.intervals(values)
        p_values = found.p_values(values)
        adjusted = np.append(adjusted_p_values(p_values[:-1]), np.nan)
        table = {
            "coefficient": values,
            "std error": found.std_error,
            "sampling": found.sampling,
            "privacy": found.privacy,
            "z": values / found.std_error,
            "p": p_values,
            "p (BH)": adjusted,
            "lower": intervals[:, 0],
            "upper": intervals[:, 1],
        }
        if self.units is not None:
            units = np.append(self.units, 1.0)
            table |= {f"{name} per unit": table[name] / units for name in ("coefficient", "lower", "upper")}
            table["effect per unit"] = table.pop("coefficient per unit")
        if self.odds:
            suffix = " per unit" if self.units is not None else ""
            with np.errstate(over="ignore"):
                table["odds ratio"] = np.exp(table["effect per unit" if suffix else "coefficient"])
                table["odds lower"] = np.exp(table[f"lower{suffix}"])
                table["odds upper"] = np.exp(table[f"upper{suffix}"])
        return table

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, one row per column of the model and one for the intercept."""
        try:
            import pandas as pd
        except ImportError:
            raise ParameterError("to_frame", "pandas", "pandas, which is not installed", "install pandas") from None
        return pd.DataFrame(self.columns, index=pd.Index([*self.names, INTERCEPT], name="feature"))

    def __str__(self) -> str:
        columns = self.columns
        errors = ("coefficient", "std error", "sampling", "privacy", "z", "p", "p (BH)", "lower", "upper")
        blocks = [self._block({name: columns[name] for name in errors})]
        if self.units is not None:
            effects = ("effect per unit", "lower per unit", "upper per unit")
            heads = ("effect per unit", "lower", "upper")
            blocks.append(self._block({head: columns[name] for head, name in zip(heads, effects, strict=True)}))
        if self.odds:
            head = "odds ratio" if self.units is None else "odds ratio per unit"
            ratios = {head: columns["odds ratio"], "lower": columns["odds lower"], "upper": columns["odds upper"]}
            blocks.append(self._block(ratios, intercept=False))
        width = max(len(line) for block in blocks for line in block)
        ruled = [line for block in blocks for line in ("-" * width, *block)]
        facts = [f"{name + ':':<22}{visible(value)}" for name, value in self.facts.items()]
        notes = [line for note in self.notes for line in _wrapped(note, width)]
        return "\n".join((visible(self.title), "=" * width, *facts, *ruled, "=" * width, *notes))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = self.columns
        facts = "".join(f"<tr><th>{_safe(name)}</th><td>{_safe(value)}</td></tr>" for name, value in self.facts.items())
        head = "".join(f"<th>{_safe(name)}</th>" for name in ("feature", *columns))
        rows = ""
        for i, name in enumerate((*self.names, INTERCEPT)):
            cells = "".join(f"<td>{_number(column, values[i])}</td>" for column, values in columns.items())
            rows += f"<tr><th>{_safe(name)}</th>{cells}</tr>"
        notes = "".join(f"<p>{_safe(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{_safe(self.title)}</caption><tbody>{facts}</tbody></table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"
        )

    def _block(self, columns: Mapping[str, FloatArray], *, intercept: bool = True) -> list[str]:
        """Lines of a table, the names first."""
        names = [*map(_shortened, self.names), *([INTERCEPT] if intercept else [])]
        left = max(map(len, [*names, ""])) + 1
        cells = {head: [_number(head, value) for value in values[: len(names)]] for head, values in columns.items()}
        widths = {head: max(len(head), *map(len, texts), 7) + 1 for head, texts in cells.items() if texts}
        lines = [" " * left + "".join(f"{head:>{widths[head]}}" for head in widths)]
        for i, name in enumerate(names):
            lines.append(f"{name:<{left}}" + "".join(f"{cells[head][i]:>{widths[head]}}" for head in widths))
        return lines

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers cover, and what they do not."""
        found = self.inference
        if found.reason is not None:
            source = " The coefficients are those of the half that chose the columns." if found.split else ""
            return (f"No standard errors: {found.reason}{source}",)
        chosen = (
            "The columns were chosen on the other half of the records, drawn at random, and the intervals are for the "
            "population's coefficients of these columns."
            if found.split
            else "The columns were fixed without looking at the data, and the intervals are for the population's "
            "coefficients of these columns."
        )
        return (
            f"Intervals of {found.confidence_level:.4g} confidence include the sampling error and the noise for "
            f"privacy, whose squares add up to that of the standard error. {chosen} They hold for many records, "
            "whether or not the variance is constant or the model exact. They do not cover columns that were left out, "
            "values beyond the bounds, or a sample that does not represent the population.",
            "p (BH) is adjusted for the number of columns by Benjamini and Hochberg.",
        )


def _safe(text: str) -> str:
    return html.escape(visible(text))


def _shortened(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 11]}…{shown[-10:]}"


def _number(head: str, value: float) -> str:
    if np.isnan(value):
        return "" if head == "p (BH)" else "-"
    if head.startswith("p"):
        return "<0.001" if head in ("p", "p (BH)") and value < 0.001 else _plain(value)
    return f"{value:.2f}" if head == "z" else _plain(value)


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 60))


# ---- What a model with standard errors has besides others: fixed columns, fitted errors, and a summary.

FIXED_COLUMNS = "the columns of the model were chosen without looking at these data"
"""An assumption wherever the caller fixes the columns."""

INFERRED = ("coef_std_error_", "coef_interval_", "coef_p_value_", "inference_")


class InferringModel:
    """A linear model whose coefficients can have standard errors."""

    inference: bool
    confidence_level: float
    epsilon: float
    delta: float
    relation: Relation
    coef_: FloatArray
    intercept_: Any
    n_features_in_: int
    certificate_: Certificate
    inference_: Inference

    def _set_inference(
        self, plan: InferencePlan, outcome: InferenceResult, scale: float, intercept_scale: float
    ) -> None:
        """Set the fitted errors."""
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
