"""What a fit may be expected to give: standard errors, predictions, and what would improve them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from taciturn.core.errors import ParameterError
from taciturn.core.validation import BoolArray, FloatArray, check_integer
from taciturn.methods.forecast.advice import advise
from taciturn.methods.forecast.population import Population
from taciturn.methods.forecast.run import TEST_SHARE, Band, ErrorTrial, PredictionTrial, Trials
from taciturn.methods.forecast.statements import assumptions_of, rows_like, stated_population
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.methods.sparse.estimator import SparseClassifier, SparseModel, SparseRegressor

if TYPE_CHECKING:
    import pandas as pd

POWER = 0.8
"""Probability with which the smallest detectable effect is found significant."""

_TRIALS, _TRIALS_OF_MANY, _MANY = 10, 6, 60


def forecast(
    estimator: Any,
    *,
    n: int,
    n_features: int | None = None,
    bounds: Any = None,
    effects: Mapping[str, float] | float | None = None,
    like: Any = None,
    target: Mapping[str, Any] | None = None,
    correlation: Mapping[tuple[str, str], float] | None = None,
    simulate: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Forecast:
    """Forecast what a fit gives, before a budget is spent.

    Standard errors, intervals and predictions follow from public facts: the plan of a fit fixes the noise of every
    release, and bounds with a few stated numbers describe the columns. The estimation's own releases are run, with
    their noise, on some thousand rows that stand for ``n`` records.

    **Privacy.** Costs nothing: no private table is read, and nothing is reserved from an account. Whatever is stated
    must be known from elsewhere. A table given as ``like`` must be public.

    Parameters
    ----------
    estimator : SparseRegressor, SparseClassifier, or Pipeline of BoundedScaler and one of them
        The model with its budget, which need not be fitted. Standard errors are those of ``inference=True``.
    n : int
        The number of records, public or a wish.
    n_features : int, default=None
        The number of columns, for features within ``x_bound`` about which nothing else is stated.
    bounds : mapping, path, TableBounds or sequence of pairs, default=None
        The columns: ``{"age": (18, 100)}``, or ``{"age": {"lower": 18, "upper": 100, "mean": 50, "spread": 12},
        "smoker": {"lower": 0, "upper": 1, "share": 0.2}}``, or a ``bounds.toml``, whose section ``[plan]`` may state
        the same. Columns beyond ``x_bound`` are scaled by their bounds, as a BoundedScaler does.
    effects : mapping of str to float or float, default=None
        Coefficients by column, per unit of the column: differences, log-odds or logarithms of ratios. A number is the
        share of the target's variance that columns explain together, the first five of them. None: every trial has
        another share.
    like : tuple of (X, y), default=None
        A public table that is like the private one, in place of ``bounds``.
    target : mapping, default=None
        ``mean`` and ``spread`` of a target of numbers, or ``share`` of the second of two classes, ``shares`` of more.
    correlation : mapping of pairs of str to float, default=None
        Rank correlations of columns: ``{("age", "bmi"): 0.3}``. Other pairs have none, ``{}`` states that no pair has.
        None: every trial has others, such as tables have, so that bands are wide.
    simulate : int, default=0
        Tables of ``n`` rows on which the model is fitted and tested: its error, share of true columns and calibration.
    progress : callable, default=None
        Told the share that is done, from 0 to 1.

    Returns
    -------
    Forecast
        With ``std_errors``, ``interval_probability``, ``advice`` and ``to_frame()``.

    Examples
    --------
    >>> from taciturn import SparseRegressor, forecast
    >>> model = SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1), n_nonzero="all")
    >>> found = forecast(model, n=20_000, bounds={"age": (18, 100), "bmi": (15, 60)})
    >>> found.interval_probability
    1.0
    >>> bool((found.std_errors < 0.02).all())
    True
    """
    check_integer(1, n=n)
    check_integer(0, simulate=simulate)
    model, scaler = _taken_apart(estimator)
    population: Population
    if like is not None:
        population = rows_like(scaler, like)
        assumed: tuple[str, ...] = (f"records are like the {population.most_rows:,.0f} rows of the public table",)
    else:
        population = stated_population(model, scaler, n_features, bounds, effects, target, correlation)
        assumed = assumptions_of(population)
    return Forecast.of(Trials.of(model, population, n), assumed, simulate, progress)


def _taken_apart(estimator: Any) -> tuple[SparseModel, BoundedScaler | None]:
    """The model of a pipeline, and the scaler before it."""
    steps = [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
    model, scalers = steps[-1], [step for step in steps[:-1] if step not in (None, "passthrough")]
    if not isinstance(model, SparseRegressor | SparseClassifier):
        raise ParameterError(
            "estimator", type(model).__name__, "SparseRegressor or SparseClassifier", "forecast one of them"
        )
    if len(scalers) > 1 or not all(isinstance(step, BoundedScaler) for step in scalers):
        names = ", ".join(type(step).__name__ for step in scalers)
        raise ParameterError(
            "estimator", names, "no step before the model but BoundedScaler", "state the bounds that others would find"
        )
    return model, scalers[0] if scalers else None


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a fit with these public facts may be expected to give.

    Coefficients are those of the features that the model reads, as ``coef_`` has them. Bands hold what one fit gives in
    about nine of ten cases.

    Parameters
    ----------
    trials : Trials
        The model, its population and the number of records.
    errors : tuple of ErrorTrial
        Standard errors of fits; none where the fit would be refused.
    predictions : tuple of PredictionTrial
        Of simulated fits.
    refusal : str or None
        Why a fit with standard errors would be refused.
    assumptions : tuple of str
        What nobody stated, and what is assumed instead.
    """

    trials: Trials
    errors: tuple[ErrorTrial, ...]
    predictions: tuple[PredictionTrial, ...]
    refusal: str | None
    assumptions: tuple[str, ...]

    @classmethod
    def of(
        cls, trials: Trials, assumptions: tuple[str, ...], simulate: int, progress: Callable[[float], None] | None
    ) -> Forecast:
        """Run the trials."""
        inferring = trials.but(inference=True)
        n_errors = _TRIALS if inferring.width <= _MANY else _TRIALS_OF_MANY
        total, errors, predictions, refusal = n_errors + simulate, list[ErrorTrial](), list[PredictionTrial](), None
        for seed in range(n_errors):
            try:
                errors.append(inferring.estimate(seed))
            except ParameterError as error:
                refusal = str(error)
                break
            if progress is not None:
                progress(len(errors) / total)
        if refusal is not None and trials.model.inference:
            # Nothing would be fitted.
            simulate = 0
        for seed in range(simulate):
            predictions.append(trials.predict(seed))
            if progress is not None:
                progress((n_errors + seed + 1) / total)
        return cls(trials, tuple(errors), tuple(predictions), refusal, assumptions)

    # ---- standard errors by feature

    @property
    def n(self) -> int:
        """The number of records."""
        return self.trials.n

    @property
    def epsilon(self) -> float:
        """Of the budget."""
        return float(self.trials.model.epsilon)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.trials.population.names)

    @property
    def units(self) -> FloatArray:
        """How many units of its column one unit of each feature is."""
        return self.trials.population.units

    @cached_property
    def _all(self) -> FloatArray:
        """Standard errors by trial, table and feature."""
        n_features = len(self.feature_names)
        if not self.errors:
            return np.full((1, 1, n_features), np.nan)
        return np.stack([each.std_error for each in self.errors])

    @cached_property
    def std_errors(self) -> FloatArray:
        """Standard errors as ``coef_std_error_`` has them: NaN where most fits have no interval."""
        found = self._typical(self._all)
        if len(found) == 1:
            single: FloatArray = found[0]
            return single
        # The reference class has none.
        return np.vstack((np.full((1, found.shape[1]), np.nan), found))

    @staticmethod
    def _typical(values: FloatArray) -> FloatArray:
        """Medians over trials, of which those without a value have the largest; NaN where half of them have none."""
        medians: FloatArray = np.median(np.where(np.isfinite(values), values, np.inf), axis=0)
        return np.where(np.isfinite(medians), medians, np.nan)

    @property
    def worst_std_errors(self) -> FloatArray:
        """Standard errors by feature, of the class where they are largest."""
        return self.parts("std_error")

    def parts(self, name: str) -> FloatArray:
        """Typical "std_error", "sampling", "privacy" or "reach" by feature, of the class where it is largest."""
        if not self.errors:
            return np.full(len(self.feature_names), np.nan)
        found = self._typical(np.stack([getattr(each, name) for each in self.errors]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            worst: FloatArray = np.nanmax(found, axis=0)
        return worst

    @cached_property
    def widths(self) -> FloatArray:
        """Widths of the intervals."""
        return 2.0 * self.parts("reach")

    @cached_property
    def smallest_effects(self) -> FloatArray:
        """Coefficients that are found significant with a probability of 80 %."""
        return self.parts("reach") + float(ndtri(POWER)) * self.parts("std_error")

    @cached_property
    def bands(self) -> tuple[Band, ...]:
        """Bands of the standard error of each feature, of the class where it is largest."""
        return self._bands(self._all)

    @cached_property
    def width_bands(self) -> tuple[Band, ...]:
        """Bands of the width of the interval of each feature, of the class where it is widest."""
        if not self.errors:
            return self.bands
        return self._bands(2.0 * np.stack([each.reach for each in self.errors]))

    @staticmethod
    def _bands(values: FloatArray) -> tuple[Band, ...]:
        worst = np.where(np.isfinite(values), values, -np.inf).max(axis=1)
        return tuple(Band.of(column[column > 0.0].tolist(), positive=True) for column in worst.T)

    @cached_property
    def column_probability(self) -> FloatArray:
        """Probability of each column to get an interval; zero for those that no budget determines."""
        if not self.errors:
            return np.zeros(len(self.feature_names))
        found: FloatArray = np.isfinite(self._all).all(axis=1).mean(axis=0)
        return found

    @cached_property
    def determined(self) -> BoolArray:
        """Columns whose coefficients a table of this kind determines: not all levels of a category."""
        # Rare levels may be missing from a trial.
        return self._in_any_trial([~each.collinear for each in self.errors])

    @cached_property
    def interval_probability(self) -> float:
        """Probability that a coefficient gets an interval, on average over columns that a table determines."""
        chosen = self.column_probability[self._in_model]
        return float(chosen.mean()) if chosen.size else 0.0

    @property
    def _in_model(self) -> BoolArray:
        """Columns that the model may have, and that a table determines."""
        return self._in_any_trial([each.wanted for each in self.errors])

    def _in_any_trial(self, found: list[BoolArray]) -> BoolArray:
        return np.any(found, axis=0) if found else np.ones(len(self.feature_names), dtype=bool)

    @cached_property
    def budget_shares(self) -> dict[str, float]:
        """Shares of the budget by release of the estimation."""
        return dict(self.errors[0].spent) if self.errors else {}

    # ---- predictions

    def prediction(self, name: str) -> Band:
        """The band of a measure of simulated fits: "score", "error", "calibration" or "found"."""
        share = TEST_SHARE if math.isfinite(self.trials.population.most_rows) else 0.0
        band = Band.of([getattr(each, name) for each in self.predictions], drawn_share=share)
        return band.within(*self._limits(name))

    def _limits(self, name: str) -> tuple[float, float]:
        """The smallest and the largest value that a measure can have."""
        labels = is_classifier(self.trials.model)
        if name == "found" or (labels and name in ("score", "error")):
            return 0.0, 1.0
        return {"score": (-math.inf, 1.0), "error": (0.0, math.inf)}.get(name, (-math.inf, math.inf))

    # ---- words and tables

    @cached_property
    def weakest(self) -> int | None:
        """The feature that is least likely to get an interval, then the one with the widest in units of its spread."""
        kept = np.flatnonzero(self._in_model)
        if kept.size == 0:
            return None
        if not self.errors:
            return self._least_spread(kept)
        widths = np.nan_to_num(self.parts("std_error") * self.errors[0].spread, nan=np.inf)
        order = np.lexsort((-widths[kept], self.column_probability[kept]))
        return int(kept[order[0]])

    def _least_spread(self, kept: Any) -> int:
        X, _ = self.trials.population.draw(256, np.random.default_rng(0))
        return int(kept[np.argmin(X.std(axis=0)[kept])])

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What would help most: three improvements at most, each of which was tried."""
        return advise(self)

    def to_frame(self) -> pd.DataFrame:
        """A data frame of pandas with a row for each feature.

        ``std_error``, its band from ``low`` to ``high``, its parts ``sampling`` and ``privacy``, ``interval_width`` and
        ``smallest_effect`` are in units of the feature, of which ``unit`` is one in units of its column.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "std_error": self.parts("std_error"),
                "low": [band.low for band in self.bands],
                "high": [band.high for band in self.bands],
                "sampling": self.parts("sampling"),
                "privacy": self.parts("privacy"),
                "interval_width": self.widths,
                "smallest_effect": self.smallest_effects,
                "interval_probability": self.column_probability,
                "unit": self.units,
                "note": ["" if known else "collinear with other columns" for known in self.determined],
            },
            index=pd.Index(self.feature_names, name="feature"),
        )

    def at(self, *, n: int | None = None, **changes: Any) -> Forecast:
        """The forecast with another number of records or other parameters of the model, such as ``epsilon``."""
        return Forecast.of(self.trials.but(n=n, **changes), self.assumptions, len(self.predictions), None)

    def __repr__(self) -> str:
        return (
            f"Forecast({type(self.trials.model).__name__}, n={self.n:,}, epsilon={self.epsilon:g}, "
            f"interval_probability={self.interval_probability:.2f})"
        )
