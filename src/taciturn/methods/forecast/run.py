"""Trials of a fit on rows that stand for a private table: its own releases, at the noise of the real one.

A trial asks for the same sums as the fit and adds noise of the same scale, because the plan follows from public facts.
Sums over m rows that were drawn count n / m times, so that a trial of a million records costs as much as one of
thousands, and the matrices of a sandwich covariance are what a million records would have. Standard errors therefore
need no table of n rows. Predictions do, as far as memory allows: their error includes that of the coefficients.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, stdtrit
from sklearn.base import is_classifier
from sklearn.metrics import roc_auc_score

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import AnyArray, BoolArray, FloatArray, IndexArray, IntArray
from taciturn.data.records import Outcomes
from taciturn.engines.interface import Source, Task
from taciturn.methods.base import PublicFacts
from taciturn.methods.forecast.population import Population, StatedPopulation
from taciturn.methods.inference.plan import InferencePlan
from taciturn.methods.inference.run import InferenceResult, estimate_columns
from taciturn.methods.inference.summary import Inference, infer
from taciturn.methods.releases import Releases
from taciturn.methods.sparse.estimator import SparseModel
from taciturn.methods.sparse.plan import LEAST_NONZERO

DRAWN_ROWS = 2048
"""Rows that stand for a table where standard errors are forecast: eight for each coefficient, if that is more."""

_ROWS_PER_COEFFICIENT = 8
# Entries of a table that is drawn for predictions, and rows for testing them.
_MOST_ENTRIES, _TEST_ROWS, TEST_SHARE = 1 << 23, 4000, 0.25
# Groups of columns for which the standard errors of a model that chooses are tried.
_MOST_GROUPS = 4
# Eigenvalues of nothing but rounding, and the share in their directions from which a column is not determined.
_COLLINEAR, _FREE = 1e-9, 1e-6
# Of a band.
_BAND = 0.9
_NEWTON_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class StandIn:
    """A source whose rows stand for ``n_records``: every sum counts so many times more, rounded to a whole number.

    Rows are exchangeable, so that a half of the records is a half of the rows, whichever were asked for.
    """

    rows: Source
    n_records: int | None
    factor: float

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.rows.n_features

    @property
    def offsets(self) -> IntArray:
        """The first row of each partition."""
        return self.rows.offsets

    @property
    def rank_weight(self) -> int:
        """The integer that stands for one record in counts of values."""
        return self.rows.rank_weight

    @property
    def n_slots(self) -> int:
        """Rows that are here."""
        return self.rows.n_slots

    def total(self, task: Task) -> IntArray:
        """The sum over the rows, times the factor."""
        found: IntArray = np.rint(self.rows.total(task) * self.factor).astype(np.int64)
        return found

    def divide(self, first: BoolArray) -> tuple[Self, Self]:
        """Two halves of the rows, each for a half of the records."""
        even = np.arange(self.n_slots) % 2 == 0
        parts = self.rows.divide(even)
        n_first = None if self.n_records is None else self.n_records // 2
        counts = (n_first, None if self.n_records is None or n_first is None else self.n_records - n_first)
        return tuple(  # type: ignore[return-value]
            type(self)(part, count, self.factor) for part, count in zip(parts, counts, strict=True)
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """Without warnings about a fit that nobody makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True, slots=True)
class Trials:
    """A model that is to be fitted to ``n`` records of a population, and trials of it.

    ``model`` has no account and no seed: nothing is charged, and the noise of a trial follows from its number.
    """

    model: SparseModel
    population: Population
    n: int
    n_groups: int = _MOST_GROUPS

    @classmethod
    def of(
        cls, model: SparseModel, population: Population, n: int, n_groups: int = _MOST_GROUPS, **changes: Any
    ) -> Trials:
        """Trials of a copy of the model, which no search notices.

        Where the model chooses columns, standard errors are tried for ``n_groups`` of models that it may choose.
        """
        parameters = model.get_params(deep=False) | {"account": None, "random_state": None} | changes
        if parameters["relation"] == "add-remove":
            parameters["n_public"] = n
        copy = type(model)(**parameters)
        copy.check_parameters()
        return cls(copy, population, n, n_groups)

    def but(
        self,
        n: int | None = None,
        population: Population | None = None,
        n_groups: int | None = None,
        **changes: Any,
    ) -> Trials:
        """The same with other facts."""
        n_groups = self.n_groups if n_groups is None else n_groups
        return Trials.of(self.model, population or self.population, self.n if n is None else n, n_groups, **changes)

    # ---- standard errors

    @property
    def n_features(self) -> int:
        """Features of a table."""
        return len(self.population.names)

    @property
    def width(self) -> int:
        """Features that the model may have."""
        return self.n_features if self.model.columns is None else len(list(self.model.columns))

    def chosen_columns(self) -> list[int] | None:
        """Columns that a model which chooses them may be expected to have; None where they are fixed, or refused."""
        inferring = self.but(inference=True)
        with _quietly():
            X, y = inferring._draw(256, np.random.default_rng(0))
            try:
                facts, plan, _ = inferring._open(X, y)
            except ParameterError:
                return None
        groups: list[IndexArray] = inferring._groups(plan, facts)
        return [int(j) for j in groups[0]] if plan.split else None

    def estimate(self, seed: int) -> ErrorTrial:
        """Standard errors of one fit with ``inference=True``; ParameterError where public facts refuse it."""
        with _quietly():
            model = self.model
            fewest = min(_ROWS_PER_COEFFICIENT * self.width, 4 * DRAWN_ROWS)
            X, y = self._recall(max(self.population.rows_like(self.n, DRAWN_ROWS), fewest), seed)
            facts, plan, rows = self._open(X, y)
            source = StandIn(rows, plan.n_step_rows, plan.n_step_rows / len(X))
            groups = self._groups(plan, facts)
            found = [self._group(plan, source, columns, Stream.of(seed)) for columns in groups]
        spreads = X.std(axis=0)
        intercept = bool(model.fit_intercept)
        collinear = np.zeros(self.n_features, dtype=bool)
        for columns in groups:
            collinear |= _collinear(X[:, columns], columns, self.n_features, intercept=intercept)
        return ErrorTrial.merge([each for each, _ in found], found[0][1], spreads, collinear, complete=not plan.split)

    def _group(
        self, plan: InferencePlan, source: Source, columns: IndexArray, stream: Stream
    ) -> tuple[Inference, dict[str, float]]:
        budget = plan.open_filters()[1]
        releases = Releases(budget, plan.start.problem.relation, source, stream.spawn("step"))
        estimate = estimate_columns(plan, source, releases, budget.mu, columns)
        outcome = InferenceResult(np.zeros((1, 1)), columns, estimate, 0, ())
        unit = self.model._target_unit
        found = infer(plan, outcome, unit / self.model._x_bound, unit, float(self.model.confidence_level))
        spent = {spend.what: spend.price / budget.mu**2 for spend in budget.spent()} if budget.private else {}
        return found, spent

    # ---- predictions

    def predict(self, seed: int) -> PredictionTrial:
        """How good the predictions of one fit are, on rows that it has not seen."""
        with _quietly():
            random = np.random.default_rng([seed, 2])
            most = int(min(self.n, max(_MOST_ENTRIES // self.n_features, DRAWN_ROWS)))
            finite = math.isfinite(self.population.most_rows)
            n_test = int(TEST_SHARE * self.population.most_rows) if finite else _TEST_ROWS
            X, y = self._draw(most + n_test, random)
            X_test, y_test, X, y = X[:n_test], y[:n_test], X[n_test:], y[n_test:]
            facts, plan, rows = self._open(X, y)
            source = rows if len(X) == self.n else StandIn(rows, self.n, self.n / len(X))
            model = self.model
            outcome = model._run(plan, source, Stream.of(seed))
            model._store(plan, facts, outcome)
            return PredictionTrial.of(model, X_test, y_test, self._truth)

    @property
    def _truth(self) -> FloatArray | None:
        return self.population.coefficients if isinstance(self.population, StatedPopulation) else None

    # ---- what both share

    def _recall(self, n_rows: int, seed: int) -> tuple[FloatArray, AnyArray]:
        drawn = self.population.drawn
        if (n_rows, seed) not in drawn:
            drawn[n_rows, seed] = self.population.draw_like(n_rows, np.random.default_rng([seed, 1]))
        return drawn[n_rows, seed]

    def _draw(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        return self.population.draw(int(min(n_rows, self.population.most_rows)), random)

    def _open(self, X: FloatArray, y: AnyArray) -> tuple[PublicFacts, Any, Source]:
        """The public facts, the plan and the rows of a fit to ``n`` records for which these rows stand."""
        measures = self.model._measures(X, None, None)
        facts = replace(self.model._public_facts(X, y), n_records=self.n, measures=measures)
        plan = self.model.unadvised_plan(facts)
        return facts, plan, self.model._read(X, Outcomes(y, None, None), facts)

    def _groups(self, plan: InferencePlan, facts: PublicFacts) -> list[IndexArray]:
        """Columns that models of the planned size have: those with effects first, then others."""
        everything = np.arange(facts.n_features)
        if not plan.split:
            return [everything if facts.columns is None else np.array(facts.columns, dtype=np.intp)]
        variables = everything if facts.variables is None else np.array(facts.variables)
        truth = self._truth
        largest = np.zeros(int(variables.max()) + 1)
        np.maximum.at(largest, variables, np.zeros(facts.n_features) if truth is None else np.abs(truth))
        order, size = np.argsort(-largest, kind="stable"), plan.start.strategy.n_nonzero
        if plan.start.chooses_n_nonzero and truth is not None and largest.any():
            size = max(int(np.count_nonzero(largest)), LEAST_NONZERO)
        size = max(min(size, order.size), 1)
        # The last group has as many as the others, some of them again.
        starts = [min(at, order.size - size) for at in range(0, order.size, size)][: self.n_groups]
        return [np.flatnonzero(np.isin(variables, order[at : at + size])) for at in starts]


def _collinear(X: FloatArray, columns: IndexArray, n_features: int, *, intercept: bool) -> BoolArray:
    """Columns whose coefficients no table of this kind determines, as those of all levels of a category."""
    rows = np.column_stack((X, np.ones(len(X)))) if intercept else X
    lengths = np.sqrt(np.square(rows).sum(axis=0))
    values, vectors = np.linalg.eigh((rows / np.maximum(lengths, 1e-300)).T @ (rows / np.maximum(lengths, 1e-300)))
    free = np.square(vectors[:, values <= _COLLINEAR * max(float(values[-1]), 1e-300)]).sum(axis=1)
    found = np.zeros(n_features, dtype=bool)
    found[columns] = free[: columns.size] > _FREE
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ErrorTrial:
    """Standard errors of one trial, by feature; of several classes there is a row for each but the first.

    ``sampling`` and ``privacy`` are the parts of ``std_error``, ``reach`` is half the width of the interval. NaN stands
    where there is none. ``spread`` is the deviation of each feature, and ``collinear`` says which coefficients no
    budget could determine, and ``wanted`` which others the model may have. ``spent`` are shares of the budget by
    release.
    """

    std_error: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    reach: FloatArray
    spread: FloatArray
    collinear: BoolArray
    wanted: BoolArray
    spent: Mapping[str, float]

    @classmethod
    def merge(
        cls,
        found: list[Inference],
        spent: Mapping[str, float],
        spread: FloatArray,
        collinear: BoolArray,
        *,
        complete: bool,
    ) -> ErrorTrial:
        """One trial from those of several groups of columns.

        Unless they are ``complete``, columns of no group have the errors of others in units of their spread.
        """
        tried = np.zeros(spread.size, dtype=bool)
        shape = len(found[0].std_error), spread.size
        values = {name: np.full(shape, np.nan) for name in ("std_error", "sampling", "privacy", "reach")}
        for each in found:
            tried[each.columns] = True
            for name, value in values.items():
                value[:, each.columns] = getattr(each, name)[:, : each.columns.size]
        if not complete and not tried.all():
            own = np.maximum(spread, 1e-300)
            known = values["std_error"][:, tried]
            # An ordinary column of those that were tried, so that as many have no error as of those.
            share = np.isfinite(known).mean(axis=1)
            for value in values.values():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    usual = np.nanmedian(value[:, tried] * own[tried], axis=1)
                value[:, ~tried] = np.where(share[:, None] >= 0.5, usual[:, None] / own[~tried], np.nan)
        wanted = (tried if complete else np.ones_like(tried)) & ~collinear
        return cls(**values, spread=spread, collinear=collinear, wanted=wanted, spent=spent)


@dataclass(frozen=True, slots=True)
class PredictionTrial:
    """How good the predictions of one trial are.

    ``score`` is R2, D2 of a log link, the area under the ROC curve of two classes or accuracy of more; ``error`` is the
    root mean squared error, or the share of wrong labels. ``calibration`` is the slope of the target on the predictions
    or of log-odds on margins: 1 if they are neither too bold nor too timid. ``found`` is the share of the columns with
    an effect that the model has. NaN stands where there is none.
    """

    score: float
    error: float
    calibration: float
    found: float

    @classmethod
    def of(cls, model: Any, X: FloatArray, y: AnyArray, truth: FloatArray | None) -> PredictionTrial:
        """Those of a fitted model on test rows."""
        found = math.nan
        if truth is not None and truth.any():
            found = float(np.mean(model.support_[truth != 0.0]))
        if is_classifier(model):
            labels = model.classes_
            error = float(np.mean(model.predict(X) != y))
            if labels.size > 2:
                return cls(1.0 - error, error, math.nan, found)
            margins, occurred = model.decision_function(X), y == labels[1]
            several = 0 < occurred.sum() < occurred.size
            score = float(roc_auc_score(occurred, margins)) if several else math.nan
            return cls(score, error, _slope_of_labels(margins, occurred.astype(float)), found)
        predicted = model.predict(X)
        error = math.sqrt(float(np.mean(np.square(predicted - y))))
        variance = float(predicted.var())
        slope = float(np.cov(predicted, y, bias=True)[0, 1]) / variance if variance > 0.0 else math.nan
        return cls(float(model.score(X, y)), error, slope, found)


def _slope_of_labels(margins: FloatArray, occurred: FloatArray) -> float:
    """The slope of a logistic regression of labels on margins; NaN if they do not vary."""
    if margins.std() < 1e-9 or occurred.min() == occurred.max():
        return math.nan
    rows = np.column_stack((margins, np.ones(margins.size)))
    found = np.array([1.0, 0.0])
    for _ in range(_NEWTON_STEPS):
        chances = expit(rows @ found)
        information = (rows * (chances * (1.0 - chances))[:, None]).T @ rows + 1e-9 * np.eye(2)
        found = found + np.clip(np.linalg.solve(information, rows.T @ (occurred - chances)), -2.0, 2.0)
    return float(found[0])


@dataclass(frozen=True, slots=True)
class Band:
    """A value that is expected, and the ends between which that of one fit lies in about nine of ten cases."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], *, positive: bool = False, drawn_share: float = 0.0) -> Band:
        """The band of a further value beside some; by their logarithms if they are positive.

        If each value is of this share of the same public rows, drawn without replacement, values differ less than those
        of tables do, by the factor ``1 - drawn_share`` of the variance, and share the deviation of these rows.
        """
        known = np.array([value for value in values if math.isfinite(value)])
        if known.size == 0:
            return cls(math.nan, math.nan, math.nan)
        if positive:
            logs = cls.of(np.log(np.maximum(known, 1e-300)).tolist())
            return cls(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high))
        middle = float(known.mean())
        if known.size < 3:
            return cls(middle, math.nan, math.nan)
        quantile = float(stdtrit(known.size - 1, 0.5 + 0.5 * _BAND))
        wider = (1.0 + drawn_share) / (1.0 - drawn_share) + 1.0 / known.size
        reach = quantile * float(known.std(ddof=1)) * math.sqrt(wider)
        return cls(middle, middle - reach, middle + reach)

    def within(self, least: float, most: float) -> Band:
        """The same band, of a measure that has limits."""
        return replace(self, low=max(self.low, least), high=min(self.high, most))
