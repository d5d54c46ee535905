"""Standard errors, confidence intervals and p-values of a fitted model, and their table."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from taciturn.charts import format_change, shown_change
from taciturn.core.errors import ParameterError, visible
from taciturn.core.sklearn_base import check_is_fitted, is_classifier
from taciturn.core.validation import BoolArray, FloatArray, IndexArray
from taciturn.data.sensitivity import Relation
from taciturn.methods.families import FAMILIES, Family
from taciturn.methods.inference.run import WhitenedEstimate
from taciturn.methods.inference.tidy import INTERCEPT as TIDY_INTERCEPT
from taciturn.methods.inference.tidy import MARK, MEANING, NOISY, TidyRow, TidyTable, exponential, marked
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import Certificate

# ---- Standard errors, intervals and p-values of a fitted model, in the user's units.


@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """What a fit with ``inference=True`` says about the errors of its coefficients.

    There is one table of coefficients for a regression and for two classes. For more classes there is one per class
    but the first of ``classes_``, with the log-odds of that class against the first, the reference.

    Parameters
    ----------
    columns : ndarray of int
        The features of the model.
    std_error : ndarray of shape (n_tables, n_columns + 1)
        Standard errors of the coefficients of ``columns``, with that of the intercept last. NaN where there is none.
    sampling, privacy : ndarray of shape (n_tables, n_columns + 1)
        The parts of the standard error that are due to the sample and to the noise. Their squares add up.
    degrees : ndarray of shape (n_tables, n_columns + 1)
        Degrees of freedom of Student's quantile, at least 1. Infinite for the normal one and without a standard error.
    allowance : ndarray of shape (n_tables, n_columns + 1)
        By how much an interval is wider on either side, because a direction that the data do not determine was left
        out. Zero where there is no standard error.
    confounded : tuple of tuples of int
        For each of the ``n_columns + 1`` coefficients the places of those that it is confounded with, where
        ``n_columns`` is the intercept. Empty for one that is estimable, or if they are not known.
    confidence_level : float
        Of the intervals.
    n_records : int
        The public number of records that the coefficients were estimated from.
    split : bool
        Whether other records chose the columns.
    reason : str or None
        Why there are no standard errors at all, in a sentence; None if there are some.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = X @ [0.5, -0.2] + rng.uniform(-0.3, 0.3, 20_000)
    >>> model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1), columns=(0, 1), inference=True, random_state=0)
    >>> inference = model.fit(X, y).inference_
    >>> inference.estimable  # regressions have no interval of the intercept
    array([[ True,  True, False]])
    >>> print(np.round([inference.std_error[0], inference.sampling[0], inference.privacy[0]], 4))
    [[0.0023 0.0023    nan]
     [0.0022 0.0022    nan]
     [0.0007 0.0008    nan]]
    """

    columns: IndexArray
    std_error: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    degrees: FloatArray
    allowance: FloatArray
    confounded: tuple[tuple[int, ...], ...]
    confidence_level: float
    n_records: int
    split: bool
    reason: str | None = None

    @property
    def estimable(self) -> BoolArray:
        """Whether coefficients have a standard error."""
        return ~np.isnan(self.std_error)

    @property
    def quantiles(self) -> FloatArray:
        """Student's quantiles for the confidence level."""
        share = 0.5 + 0.5 * self.confidence_level
        # The normal quantile apart, as not every version of scipy takes infinite degrees of freedom.
        normal = np.isinf(self.degrees)
        quantiles: FloatArray = np.where(normal, ndtri(share), stdtrit(np.where(normal, 1.0, self.degrees), share))
        return quantiles

    @property
    def reach(self) -> FloatArray:
        """By how much intervals extend on either side."""
        return self.quantiles * self.std_error + self.allowance

    def intervals(self, coefficients: FloatArray) -> FloatArray:
        """Lower and upper ends for coefficients with these standard errors, on a last axis."""
        reach = self.reach
        return np.stack((coefficients - reach, coefficients + reach), axis=-1)

    def p_values(self, coefficients: FloatArray) -> FloatArray:
        """Two-sided p-values of the hypotheses that coefficients are zero.

        They are below one minus the confidence level exactly where the interval leaves out zero.
        """
        beyond = np.maximum(np.abs(coefficients) - self.allowance, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Without noise an exact fit has standard errors of zero.
            ratios = np.where(beyond == 0.0, 0.0 * self.std_error, beyond / self.std_error)
        normal = np.isinf(self.degrees)
        tails = np.where(normal, ndtr(-ratios), stdtr(np.where(normal, 1.0, self.degrees), -ratios))
        values: FloatArray = 2.0 * tails
        return values

    def spread(self, values: FloatArray, n_features: int) -> FloatArray:
        """Values of the columns in the places of all features, NaN elsewhere.

        Several tables have a row each, below that of the reference class.
        """
        n_tables = len(values)
        spread = np.full((n_tables + 1, n_features, *values.shape[2:]), np.nan)
        spread[1:, self.columns] = values[:, : self.columns.size]
        return spread[1] if n_tables == 1 else spread

    def of_intercept(self, values: FloatArray) -> Any:
        """Values of the intercept alone; several tables have a row each, below that of the reference class."""
        last = values[:, -1]
        if len(last) == 1:
            return float(last[0]) if last.ndim == 1 else last[0]
        return np.concatenate((np.full_like(last[:1], np.nan), last))


# ---- From what was released to standard errors, or to a reason why there are none.

# Two coefficients are confounded if they share this much of what is left out.
_CONFOUNDED = 0.1
_HIDDEN = "no direction"
_REASONS = {
    "empty": "no column was chosen and there is no intercept.",
    "noise": (
        f"{_HIDDEN} of the released information matrix of {{width}} coefficient{{s}} is clear of its noise; more "
        "records, a larger epsilon or fewer columns would help, or bounds that are nearer to the columns' values."
    ),
    "far": (
        "the last step towards the estimate was long for the curvature of the loss, so that its error is not known; "
        "more records or a larger epsilon would help, or fewer columns."
    ),
    "singular": "the information matrix is zero: columns are constant, or they separate the classes.",
}


class EstimationPlan(Protocol):
    """What is public about an estimation."""

    @property
    def budget(self) -> Budget:
        """What everything together may cost."""

    @property
    def n_outputs(self) -> int:
        """Rows of coefficients that are estimated."""

    @property
    def intercept(self) -> bool:
        """Whether the last coefficient of a row is that of a constant."""

    @property
    def n_step_rows(self) -> int:
        """The public number of records that estimate."""

    @property
    def split(self) -> bool:
        """Whether other records chose the columns."""


class EstimationResult(Protocol):
    """What an estimation released."""

    @property
    def columns(self) -> IndexArray:
        """The features of the model."""

    @property
    def estimate(self) -> WhitenedEstimate:
        """The coefficients of these, and what is known of their errors."""


def infer(
    plan: EstimationPlan, outcome: EstimationResult, scale: float, intercept_scale: float, confidence_level: float
) -> Inference:
    """The standard errors of a fit, given what one mapped unit is for coefficients and for the intercept."""
    estimate, n_columns, intercept = outcome.estimate, outcome.columns.size, plan.intercept
    shape = plan.n_outputs, n_columns + 1
    units = np.full(n_columns + 1, scale)
    units[-1] = intercept_scale

    def spread(values: FloatArray, other: float) -> FloatArray:
        """Values of estimable coefficients in their tables."""
        found = np.full(shape, other)
        found[:, : n_columns + intercept] = np.where(estimate.estimable, values, other).reshape(plan.n_outputs, -1)
        return found

    errors = estimate.errors
    if errors is None or not estimate.estimable.any():
        nothing = np.full(shape, math.nan)
        sampling = privacy = nothing
        degrees, allowance = np.full(shape, math.inf), np.zeros(shape)
    else:
        sampling = spread(np.sqrt(errors.sampling), math.nan) * units
        privacy = spread(np.sqrt(errors.privacy), math.nan) * units
        degrees, allowance = spread(errors.degrees, math.inf), spread(errors.allowance, 0.0) * units
    reason = None
    if np.isnan(sampling).all():
        kind = "singular" if math.isinf(plan.budget.epsilon) and estimate.reason == "noise" else estimate.reason
        width = n_columns + intercept
        reason = _REASONS[kind or "noise"].format(width=width, s="s" * (width > 1))
    known = ~np.isnan(sampling).any(axis=0)
    return Inference(
        outcome.columns, np.hypot(sampling, privacy), sampling, privacy, degrees, allowance,
        _confounded(estimate.left_out, plan.n_outputs, known) if reason is None else ((),) * (n_columns + 1),
        confidence_level, plan.n_step_rows, plan.split, reason,
    )  # fmt: skip


def hidden_by_noise(found: Inference) -> bool:
    """Whether there are no standard errors because noise hides what they need."""
    return found.reason is not None and found.reason.startswith(_HIDDEN)


def _confounded(left_out: FloatArray, n_tables: int, known: BoolArray) -> tuple[tuple[int, ...], ...]:
    """For each coefficient that is not known the others of its group: those that share what is left out."""
    shared = np.abs(left_out @ left_out.T)
    width = len(shared) // n_tables
    linked = shared.reshape(n_tables, width, n_tables, width).max(axis=(0, 2)) > _CONFOUNDED
    linked &= ~known[:width, None] & ~known[None, :width]
    _, groups = connected_components(linked, directed=False)
    members = [tuple(np.flatnonzero((groups == groups[j]) & (np.arange(width) != j)).tolist()) for j in range(width)]
    return tuple(members[j] if j < width and not known[j] else () for j in range(known.size))


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

NOT_ESTIMABLE, NO_INTERVAL = "not estimable", "no interval"
"""Marks of rows without a standard error."""

# A terminal of the usual width shows every line whole.
_WIDTH = 80
_LONGEST_NAME, _SHORTEST_NAME, _MOST_NAMED = 28, 16, 12
# Few rows have them, and a sentence states how large they are.
_IN_FRAMES = ("df", "allowance")


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientSummary:
    r"""The coefficients of a fit with ``inference=True``, with standard errors, p-values and intervals.

    Printed, it is a table as statistical packages show it, or one per class but the reference. ``to_frame()`` returns a
    pandas DataFrame. A coefficient without a standard error is not shown: the number in ``coef_`` is a weight of the
    prediction rule and no estimate.

    **Privacy.** Post-processing of what the fit released: it costs nothing.

    Parameters
    ----------
    title : str
        What was fitted.
    facts : mapping
        Public facts for the header.
    names : sequence of str
        Names of the columns of the model.
    coefficients : ndarray of shape (n_tables, n_columns + 1)
        The intercept last.
    inference : Inference
        Their errors.
    classes : sequence of str, default=()
        The classes, the reference first; none for a regression.
    units : ndarray of shape (n_columns,), default=None
        How many units of a table's column one unit of each feature is, where features were scaled; None for one.
    intercept : bool, default=True
        Whether the model has an intercept.
    steps : sequence of float or None, default=None
        The change of the table's column for which the effect of each column is shown, such as 10 for an effect per 10
        years. None: one unit, for one column or for all.
    ratio : str, default=""
        What exponentials of coefficients are, such as "odds ratio"; empty if they are nothing.
    has_shifted_intercept : bool, default=False
        Whether clipped residuals may shift the intercept, so that it has no interval.
    advice : str, default=""
        A sentence on what would give standard errors, where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = X @ [0.5, -0.2] + rng.uniform(-0.3, 0.3, 20_000)
    >>> model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1), columns=(0, 1), inference=True, random_state=0)
    >>> lines = str(model.fit(X, y).summary()).splitlines()
    >>> print(*lines[8:11], sep="\n")
                 coefficient std error   lower   upper       p  p (BH)
    x0                0.4991  0.002283  0.4946  0.5036  <0.001  <0.001
    x1               -0.2011  0.002292 -0.2056 -0.1966  <0.001  <0.001
    """

    title: str
    facts: Mapping[str, str]
    names: Sequence[str]
    coefficients: FloatArray
    inference: Inference
    classes: Sequence[str] = ()
    units: FloatArray | None = None
    intercept: bool = True
    ratio: str = ""
    has_shifted_intercept: bool = False
    steps: Sequence[float | None] | None = None
    advice: str = ""

    @property
    def subjects(self) -> list[str]:
        """What each table is about, such as "yes against no"; an empty text for a regression."""
        return [f"{label} against {self.classes[0]}" for label in self.classes[1:]] or [""]

    @property
    def rows(self) -> list[str]:
        """The names of the columns, and that of the intercept if there is one."""
        return [*self.names, INTERCEPT] if self.intercept else [*self.names]

    @property
    def effect_rows(self) -> list[str]:
        """The rows, with the change that an effect is shown for where one is stated."""
        steps = [None] * len(self.names) if self.steps is None else self.steps
        return [*map(format_change, self.names, steps), *self.rows[len(self.names) :]]

    @property
    def columns(self) -> dict[str, FloatArray]:
        """Name of a column to its values, one row per table, in the order of ``rows``; NaN where nothing is known."""
        found = self.inference
        values = np.where(found.estimable, self.coefficients, np.nan)
        intervals, p_values = found.intervals(values), found.p_values(values)
        adjusted = np.full(p_values.shape, np.nan)
        adjusted[:, :-1] = adjusted_p_values(p_values[:, :-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            z = values / found.std_error
        table = {
            "coefficient": values,
            "std error": found.std_error,
            "sampling": found.sampling,
            "privacy": found.privacy,
            "df": np.where(found.estimable, found.degrees, np.nan),
            "allowance": np.where(found.estimable, found.allowance, np.nan),
            "z": z,
            "p": p_values,
            "p (BH)": adjusted,
            "lower": intervals[..., 0],
            "upper": intervals[..., 1],
        }
        if self.units is not None:
            units = np.append(self.units, 1.0)
            if self.steps is not None and any(step is not None for step in self.steps):
                # Of a frame: what one unit is that effects are shown for.
                changes = np.array([*(1.0 if step is None else step for step in self.steps), 1.0])
                units = units / changes
                table["unit"] = np.broadcast_to(changes, values.shape)
            table |= {f"{name} per unit": table[name] / units for name in ("coefficient", "lower", "upper")}
            table["effect per unit"] = table.pop("coefficient per unit")
        if self.ratio:
            suffix = " per unit" if self.units is not None else ""
            with np.errstate(over="ignore"):
                table[self.ratio] = np.exp(table["effect per unit" if suffix else "coefficient"])
                table[self._ratio_ends[0]] = np.exp(table[f"lower{suffix}"])
                table[self._ratio_ends[1]] = np.exp(table[f"upper{suffix}"])
        return {name: numbers[:, : len(self.rows)] for name, numbers in table.items()}

    @property
    def _ratio_ends(self) -> tuple[str, str]:
        """Names of the columns with the ends of a ratio's interval: "odds lower" for an odds ratio."""
        word = self.ratio.split()[0]
        return f"{word} lower", f"{word} upper"

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, one row per column of the model and one for the intercept.

        The rows of three and more classes have two names, the class and the feature. Whatever is not estimable is NaN,
        and the column ``note`` says why; it is empty for the others.
        """
        pd = _pandas("to_frame")
        index: Any = pd.Index(self.rows, name="feature")
        if len(self.subjects) > 1:
            index = pd.MultiIndex.from_product((self.classes[1:], self.rows), names=("class", "feature"))
        numbers = {name: values.ravel() for name, values in self.columns.items()}
        return pd.DataFrame({**numbers, "note": [*self._row_notes()]}, index=index)

    @property
    def changes(self) -> list[float]:
        """The change of its column that each effect is shown for: the one that is stated, one unit, or less."""
        units = [1.0] * len(self.names) if self.units is None else [float(unit) for unit in self.units]
        steps = [None] * len(units) if self.steps is None else self.steps
        return [shown_change(unit, step) for unit, step in zip(units, steps, strict=True)]

    @property
    def stated_changes(self) -> list[float | None]:
        """Those changes, None where it is one unit and nobody stated it."""
        steps = [None] * len(self.names) if self.steps is None else self.steps
        return [
            None if step is None and change == 1.0 else change for step, change in zip(steps, self.changes, strict=True)
        ]

    @property
    def shares(self) -> list[float]:
        """Those changes in units of the features; the intercept has none, and comes last with a one."""
        units = [1.0] * len(self.names) if self.units is None else [float(unit) for unit in self.units]
        return [*(change / unit for change, unit in zip(self.changes, units, strict=True)), 1.0]

    def tidy_table(self) -> TidyTable:
        """The coefficients as a tidy table, each for the change of its column that effects are shown for."""
        return TidyTable(
            self.title,
            [row for table in range(len(self.subjects)) for row in self._tidy_rows(table)],
            self.ratio,
            self.inference.confidence_level,
            notes=(*self.notes, *self.adjustment),
        )

    def noisy(self, table: int) -> list[bool]:
        """Whether the noise for privacy in each coefficient of a table is as large as the coefficient."""
        privacy, sizes = self.inference.privacy[table], np.abs(self.coefficients[table])
        return [bool(noise > 0.0 and noise >= size) for noise, size in zip(privacy, sizes, strict=True)][
            : len(self.rows)
        ]

    def _tidy_rows(self, table: int) -> Iterator[TidyRow]:
        columns = {name: values[table].tolist() for name, values in self.columns.items()}
        level = self.classes[1 + table] if len(self.subjects) > 1 else ""
        changes, notes = [*self.changes, math.nan], [*self._notes_of_rows(table)]
        noisy, terms = self.noisy(table), [*self.names, *([TIDY_INTERCEPT] if self.intercept else [])]
        for j, (term, share) in enumerate(zip(terms, self.shares, strict=False)):
            estimate, error, low, high, sampling, privacy = (
                columns[name][j] * share
                for name in ("coefficient", "std error", "lower", "upper", "sampling", "privacy")
            )
            known = bool(self.ratio) and j < len(self.names) and not math.isnan(estimate)
            ratio, ratio_low, ratio_high = (
                exponential(value) if known else math.nan for value in (estimate, low, high)
            )
            yield TidyRow(
                term,
                estimate,
                error,
                columns["z"][j],
                columns["p"][j],
                low,
                high,
                columns["p (BH)"][j],
                changes[j],
                ratio,
                ratio_low,
                ratio_high,
                sampling,
                privacy,
                note=NOISY if noisy[j] else notes[j],
                level=level,
            )

    def tidy(self) -> Any:
        """The coefficients as a pandas DataFrame with the columns of ``tidy`` in R's broom, and some more.

        Estimates, errors and intervals are for a change of the column by what ``per`` says.
        """
        return _pandas("tidy").DataFrame(self.tidy_table().columns)

    def to_latex(self) -> str:
        """The coefficients as a table in LaTeX, with intervals, ratios and notes (booktabs and threeparttable)."""
        return self.tidy_table().to_latex()

    def marks(self, table: int) -> list[str]:
        """Why rows of a table have no standard error, in a word or two; an empty text for those that have one."""
        found = self.inference
        marks = ["" if known else NOT_ESTIMABLE for known in found.estimable[table, : len(self.rows)]]
        if self.intercept and marks[-1] and self._intercept_is_shifted:
            marks[-1] = NO_INTERVAL
        return marks

    def _row_notes(self) -> Iterator[str]:
        """For each row of each table why it has no standard error, with what it is confounded with."""
        for table in range(len(self.subjects)):
            yield from self._notes_of_rows(table)

    def _notes_of_rows(self, table: int) -> Iterator[str]:
        for j, mark in enumerate(self.marks(table)):
            others = self.inference.confounded[j] if mark else ()
            yield f"{mark}: confounded with {self._listed(others)}" if others else mark

    def order(self, table: int) -> list[int]:
        """Places of the columns, the largest coefficient first and those that are not estimable last."""
        sizes = np.where(self.inference.estimable, np.abs(self.coefficients), -1.0)[table, :-1]
        return [int(j) for j in np.argsort(-sizes, kind="stable")]

    @property
    def incomplete(self) -> list[int]:
        """Places of rows without a standard error in at least one table."""
        return [j for j in range(len(self.rows)) if not self.inference.estimable[:, j].all()]

    @property
    def _intercept_is_shifted(self) -> bool:
        """Whether the intercept of a regression lacks an interval for a reason of its own."""
        found = self.inference
        return self.has_shifted_intercept and found.reason is None and not found.confounded[-1]

    @property
    def gaps(self) -> tuple[str, ...]:
        """Sentences about coefficients without a standard error, one per group that is confounded."""
        found = self.inference
        if found.reason is not None:
            return ()
        groups: dict[tuple[tuple[int, ...], frozenset[int]], list[int]] = {}
        last = []
        for j in self.incomplete:
            missing = tuple(np.flatnonzero(~found.estimable[:, j]).tolist())
            others = found.confounded[j]
            if j == len(self.names) and self._intercept_is_shifted:
                last.append("The intercept has no interval, because a skewed tail of the errors would shift it.")
            else:
                groups.setdefault((missing, frozenset((j, *others) if others else ())), []).append(j)
        return (*(self._gap(missing, group, members) for (missing, group), members in groups.items()), *last)

    def _gap(self, missing: tuple[int, ...], group: frozenset[int], members: list[int]) -> str:
        subjects = self.subjects
        which = "" if len(missing) == len(subjects) else f" ({', '.join(subjects[k] for k in missing)})"
        verb, they = ("is", "it is") if len(members) == 1 else ("are", "they are")
        sentence = f"{self._listed(members)} {verb} not estimable at this budget{which}"
        others = sorted(group.difference(members))
        if not group:
            return f"{sentence}."
        whom = [self._listed(others)] if others else []
        whom += ["one another"] if len(members) > 1 else []
        return f"{sentence}: {they} confounded with {' and '.join(whom)}."

    def _listed(self, places: Sequence[int]) -> str:
        """Names in a sentence."""
        names = ["the intercept" if j == len(self.names) else _shortened(self.names[j]) for j in places]
        if len(names) > _MOST_NAMED:
            names[_MOST_NAMED - 1 :] = [f"{len(names) - _MOST_NAMED + 1} more"]
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

    @property
    def _below(self) -> tuple[str, ...]:
        """Sentences below a printed table."""
        is_marked = any(any(self.noisy(table)) for table in range(len(self.subjects)))
        return (*((MEANING,) if is_marked else ()), *self.notes, *self.adjustment)

    def __str__(self) -> str:
        blocks = [lines for table in range(len(self.subjects)) for lines in self._blocks(table)]
        rule = "-" * _WIDTH
        ruled = [line for block in blocks for line in (rule, *block)]
        facts = [line for name, value in self.facts.items() for line in _wrapped(f"{name + ':':<22}{value}", " " * 22)]
        notes = [line for note in self._below for line in _wrapped(note)]
        return "\n".join((*_wrapped(self.title), "=" * _WIDTH, *facts, *ruled, "=" * _WIDTH, *notes))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = {name: values for name, values in self.columns.items() if name not in _IN_FRAMES}
        facts = "".join(f"<tr><th>{_safe(name)}</th><td>{_safe(value)}</td></tr>" for name, value in self.facts.items())
        head = "".join(f"<th>{_safe(name)}</th>" for name in ("feature", *columns))
        tables = ""
        for k, subject in enumerate(self.subjects):
            rows, noisy = "", self.noisy(k)
            for i, (name, mark) in enumerate(zip(self.rows, self.marks(k), strict=True)):
                texts = [_number(column, values[k, i]) for column, values in columns.items()]
                texts[0] = mark or texts[0] + (MARK if noisy[i] else "")
                rows += f"<tr><th>{_safe(name)}</th>{''.join(f'<td>{text}</td>' for text in texts)}</tr>"
            caption = f"<caption>{_safe(subject)}</caption>" if len(self.subjects) > 1 else ""
            tables += f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        notes = "".join(f"<p>{_safe(note)}</p>" for note in self._below)
        return f"<table><caption>{_safe(self.title)}</caption><tbody>{facts}</tbody></table>{tables}{notes}"

    def _blocks(self, table: int) -> Iterator[list[str]]:
        """Lines of the tables of intervals, of effects, of ratios, and of what standard errors consist of."""
        columns = {name: values[table] for name, values in self.columns.items()}
        subject = _wrapped(self.subjects[table]) if len(self.subjects) > 1 else []
        intervals = ("coefficient", "std error", "lower", "upper", "p", "p (BH)")
        yield [*subject, *self._block({name: columns[name] for name in intervals}, table, self.rows)]
        if self.inference.reason is not None:
            return
        if self.units is not None:
            effects = ("effect per unit", "lower per unit", "upper per unit")
            heads = ("effect per unit", "lower", "upper")
            shown = {head: columns[name] for head, name in zip(heads, effects, strict=True)}
            yield self._block(shown, table, self.effect_rows)
        if self.ratio:
            head = self.ratio if self.units is None else f"{self.ratio} per unit"
            lower, upper = self._ratio_ends
            ratios = {head: columns[self.ratio], "lower": columns[lower], "upper": columns[upper]}
            yield self._block(ratios, table, self.effect_rows[: len(self.names)])
        yield self._block({name: columns[name] for name in ("sampling", "privacy", "z")}, table, self.rows)

    def _block(self, columns: Mapping[str, FloatArray], table: int, rows: Sequence[str]) -> list[str]:
        """Lines of a table of some of the rows, the names first; a mark stands in the place of the first number."""
        n_rows = len(rows)
        marks = self.marks(table)[:n_rows]
        cells = {head: [_number(head, value) for value in values[:n_rows]] for head, values in columns.items()}
        first = next(iter(cells))
        cells[first] = [mark or text for text, mark in zip(cells[first], marks, strict=True)]
        if first == "coefficient":
            cells[first] = marked(cells[first], self.noisy(table))
        widths = {head: max(len(head), *map(len, texts), 7) + 1 for head, texts in cells.items() if texts}
        room = max(_SHORTEST_NAME, _WIDTH - 1 - sum(widths.values()))
        names = [_shortened(row, min(room, _LONGEST_NAME)) for row in rows]
        left = max(map(len, [*names, ""])) + 1
        lines = [" " * left + "".join(f"{head:>{widths[head]}}" for head in widths)]
        for i, name in enumerate(names):
            line = f"{name:<{left}}" + "".join(f"{cells[head][i]:>{widths[head]}}" for head in widths)
            lines.append(line.rstrip())
        return lines

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not estimable and why, what the numbers cover, and what they do not."""
        found = self.inference
        if found.reason is not None:
            source = " The weights are those of the half that chose the columns." if found.split else ""
            return (f"No standard errors: {found.reason}{source}{self.advice and f' {self.advice}'}",)
        chosen = (
            "The columns were chosen on the other half of the records, drawn at random, and the intervals are for the "
            "population's coefficients of these columns."
            if found.split
            else "The columns were fixed without looking at the data, and the intervals are for the population's "
            "coefficients of these columns."
        )
        known, further = found.estimable, ""
        if np.isfinite(least := found.degrees[known].min()):
            whole = math.floor(least)
            further += f" Their quantiles are those of Student's t with {whole:,} or more degrees of freedom."
        if most := found.allowance[known].max():
            further += (
                f" Intervals are wider by up to {most:.3g} on either side for directions that were left out, because "
                "the data do not determine them."
            )
        return (
            *self.gaps,
            f"The {100.0 * found.confidence_level:g}% confidence intervals include the sampling error and the noise "
            f"for privacy, whose squares add up to that of the standard error.{further} {chosen} They hold for "
            "many records, whether or not the variance is constant. If the model is not exact, they are for a fit in "
            "which long rows weigh less. They do not cover columns that were left out, values beyond the bounds, or a "
            "sample that does not represent the population.",
        )

    @property
    def adjustment(self) -> tuple[str, ...]:
        """A note on adjusted p-values, if there are any."""
        tests = "columns and classes" if len(self.subjects) > 1 else "columns"
        note = f"p (BH) is adjusted for the number of {tests} by Benjamini and Hochberg."
        return (note,) if self.inference.reason is None else ()


def _pandas(method: str) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise ParameterError(method, "pandas", "pandas, which is not installed", "install pandas") from None
    return pd


def _safe(text: str) -> str:
    return html.escape(visible(text))


def _shortened(name: str, longest: int = _LONGEST_NAME) -> str:
    shown = visible(name)
    last = min(10, longest // 2)
    return shown if len(shown) <= longest else f"{shown[: longest - last - 1]}…{shown[-last:]}"


def _number(head: str, value: float) -> str:
    if np.isnan(value):
        return "" if head == "p (BH)" else "-"
    if head.startswith("p"):
        return "<0.001" if head in ("p", "p (BH)") and value < 0.001 else _plain(value)
    return f"{value:.2f}" if head == "z" else _plain(value)


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of a text; those below the first one are indented."""
    return textwrap.wrap(visible(text), _WIDTH, subsequent_indent=indent)


# ---- What a model with standard errors has besides others: fixed columns, fitted errors, and a summary.

FIXED_COLUMNS = "the columns of the model were chosen without looking at these data"
"""An assumption wherever the caller fixes the columns."""

INFERRED = (
    *("coef_std_error_", "coef_interval_", "coef_p_value_"),
    *("intercept_std_error_", "intercept_interval_", "inference_"),
)


class InferringModel:
    """A linear model whose coefficients can have standard errors."""

    inference: bool
    confidence_level: float
    fit_intercept: bool
    epsilon: float
    delta: float
    relation: Relation
    coef_: FloatArray
    intercept_: Any
    n_features_in_: int
    certificate_: Certificate
    coef_std_error_: FloatArray
    coef_interval_: FloatArray
    coef_p_value_: FloatArray
    intercept_std_error_: FloatArray | float
    intercept_interval_: FloatArray
    inference_: Inference

    def _set_inference(
        self, plan: EstimationPlan, outcome: EstimationResult, scale: float, intercept_scale: float
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
        self.intercept_std_error_ = found.of_intercept(found.std_error)
        self.intercept_interval_ = found.of_intercept(found.intervals(coefficients))

    def _column_coefficients(self) -> FloatArray:
        """The coefficients of the model's columns and the intercept, one row per table: the reference has none."""
        dense = self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_
        weights = np.column_stack((np.atleast_2d(dense)[:, self.inference_.columns], np.atleast_1d(self.intercept_)))
        return weights[-len(self.inference_.std_error) :].astype(np.float64)

    def summary(self, *, units: Any = None) -> CoefficientSummary:
        """The coefficients with standard errors, p-values and intervals as a table.

        **Privacy.** Post-processing of what the fit released: it costs nothing.

        Parameters
        ----------
        units : array-like of shape (n_features,), default=None
            How many units of the original column one unit of each feature is, where a scaler came before the model:
            effects and ratios are then shown per original unit too. None: features have their own units.

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
            self._class_names(),
            None if units is None else self._checked_units(units)[columns],
            bool(self.fit_intercept),
            self._ratio,
            not self._ratio,
            advice=self._advice(),
        )

    def _advice(self) -> str:
        """What would give a fit standard errors that has none; nothing for one that has some."""
        return ""

    def _checked_units(self, units: Any) -> FloatArray:
        found = np.asarray(units, dtype=np.float64)
        if found.shape != (self.n_features_in_,) or not np.all(np.isfinite(found) & (found > 0.0)):
            raise ParameterError(
                "units", units, f"{self.n_features_in_} positive finite numbers", "give one per feature"
            )
        return found

    @property
    def _family(self) -> Family:
        """The family of a regression."""
        return FAMILIES["squared"]

    @property
    def _ratio(self) -> str:
        """What exponentials of coefficients are."""
        return "odds ratio" if is_classifier(self) else self._family.ratio

    def _outcome_in_words(self) -> str:
        labels = self._class_names()
        if not labels:
            return self._family.in_words
        return f"log-odds of {labels[1] if len(labels) == 2 else 'each class'} against {labels[0]}"

    def _class_names(self) -> list[str]:
        """The classes as text, the reference first; none for a regression."""
        return [str(label) for label in self.classes_] if is_classifier(self) else []  # type: ignore[attr-defined]

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
