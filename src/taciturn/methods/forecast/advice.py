"""What would improve a fit, tried out: every sentence is about a forecast with one fact changed, at the same seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from taciturn.core.errors import ParameterError
from taciturn.core.validation import BoolArray
from taciturn.methods.base import PublicFacts
from taciturn.methods.forecast.population import USUAL_SHARE, ColumnFacts, StatedPopulation
from taciturn.methods.forecast.run import ErrorTrial, Trials
from taciturn.methods.forecast.statements import stated_population
from taciturn.methods.sparse.estimator import SparseModel

# Trials of a comparison, and of a claim that intervals will exist: every one of them has to have them.
_QUICK, _SURE = 4, 8
_LIKELY = 0.9
# Squares of bounds beyond it, or of their inverses, may be no doubles: nothing is advised.
_FARTHEST = 1e100
# Searches end when ends differ by this factor, and look so far. What is advised has a little room.
_CLOSE, _LARGEST_EPSILON, _MOST_RECORDS, _ROOM = 1.08, 30.0, 2**27, 1.1
# Bounds that are so many spreads from the mean on either side lose next to nothing; they are proposed if they are
# narrower by this factor.
_SPREADS, _NARROWER = 4.0, 0.7
# What an improvement has to lower a standard error by, and how many are told.
_WORTH, _MOST_TOLD = 0.95, 3
_FEWEST, _MOST_CLASSES = 3, 5
_ENOUGH = "this budget"
_POWER = float(ndtri(0.8))


class Forecasting(Protocol):
    """What advice needs of a forecast."""

    @property
    def trials(self) -> Trials:
        """The model, its population and the number of records."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""

    @property
    def weakest(self) -> int | None:
        """The feature that is least likely to get an interval."""

    @property
    def interval_probability(self) -> float:
        """Probability that a coefficient gets an interval."""

    @property
    def determined(self) -> BoolArray:
        """Columns whose coefficients a table of this kind determines."""


def tried(trials: Trials, n_trials: int) -> tuple[ErrorTrial, ...]:
    """Trials with standard errors; none where public facts refuse the fit."""
    try:
        return tuple(_each(trials, n_trials))
    except ParameterError:
        return ()


def _each(trials: Trials, n_trials: int, n_groups: int | None = 1) -> Iterator[ErrorTrial]:
    inferring = trials.but(inference=True, n_groups=n_groups)
    for seed in range(n_trials):
        yield inferring.estimate(seed)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a forecast is to reach.

    ``kind`` is "width", for intervals no wider than a value, "power", for an effect of a value to be found with a
    probability of 80 %, or "intervals", for every coefficient that a table determines to have an interval. Values are
    per unit of the feature. ``n_trials`` is of a judgement; 0 for the usual number.
    """

    kind: str
    feature: int = 0
    value: float = 0.0
    n_trials: int = 0

    def met(self, trials: Trials) -> bool:
        """Whether typical trials reach it; for intervals all of them."""
        try:
            if self.kind == "intervals":
                # Of all the columns that a model may choose, as a forecast has them.
                found = _each(trials, self.n_trials or _SURE, None)
                return all(np.isfinite(each.std_error[:, each.wanted]).all() for each in found)
            reached = [self._reached(each) for each in _each(trials, self.n_trials or _QUICK)]
        except ParameterError:
            return False
        return float(np.median(reached)) <= self.value

    def _reached(self, trial: ErrorTrial) -> float:
        reach, error = trial.reach[:, self.feature], trial.std_error[:, self.feature]
        found = 2.0 * reach if self.kind == "width" else reach + _POWER * error
        return float(np.max(np.where(np.isfinite(found), found, np.inf)))


def smallest_epsilon(trials: Trials, wish: Wish) -> float | None:
    """The smallest epsilon that reaches a wish, within a few per cent; None beyond 30."""

    def met(epsilon: float) -> bool:
        return wish.met(trials.but(epsilon=epsilon))

    return _smallest(met, float(trials.model.epsilon), 2.0**-6, _LARGEST_EPSILON)


def smallest_n(trials: Trials, wish: Wish) -> int | None:
    """The smallest number of records that reaches a wish, within a few per cent; None beyond a hundred million."""

    def met(n: float) -> bool:
        return wish.met(trials.but(n=math.ceil(n)))

    found = _smallest(met, float(trials.n), 8.0, float(_MOST_RECORDS))
    return None if found is None else math.ceil(found)


def most_columns(trials: Trials, wish: Wish) -> int | None:
    """The largest number of columns that reach a wish if they are fixed beforehand; None if one does not."""
    own = list(range(trials.n_features)) if trials.model.columns is None else list(trials.model.columns)
    low, high = 0, len(own) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wish.met(trials.but(columns=own[:middle])) else (low, middle)
    return low or None


def _smallest(met: Callable[[float], bool], start: float, least: float, most: float) -> float | None:
    """The smallest argument of an increasing condition."""
    low = high = min(max(start, least), most)
    if met(high):
        while low > least and met(low):
            high, low = low, low / 2.0
        if low <= least:
            return high
    else:
        while not met(high):
            if high >= most:
                return None
            low, high = high, min(2.0 * high, most)
    while high / low > _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


def round_up(value: float, digits: int = 2) -> float:
    """A number with few digits that is no smaller."""
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.12g}")


def remedy(model: SparseModel, facts: PublicFacts) -> str | None:
    """What would give intervals to a fit that public facts refuse, if values are spread evenly within bounds.

    A pure function of parameters and public facts, as a refusal has to be.
    """
    ways = _ways(model, facts)
    return None if not ways else f"if values spread over their bounds, {ways} would give every column an interval"


def advice_after(model: SparseModel, facts: PublicFacts) -> str:
    """What would have given intervals to a fit that has none, because noise hides what they need."""
    ways = _ways(model, facts)
    if ways == _ENOUGH:
        return (
            "Values that spread over their bounds would have intervals at this budget: columns are collinear, or use "
            "little of their bounds; drop or narrow them."
        )
    return f"If values spread over their bounds, {ways} would give every column an interval." if ways else ""


def _ways(model: SparseModel, facts: PublicFacts) -> str:
    """The epsilon, records and columns with which a fit has all intervals; empty where none are found."""
    if facts.n_records is None or (facts.labels is not None and len(facts.labels) > _MOST_CLASSES):
        return ""
    y_bounds = getattr(model, "y_bounds", None)
    bounds = np.abs(np.array([model.x_bound or 1.0, *(() if y_bounds is None else y_bounds)], dtype=np.float64))
    if not np.all((bounds == 0.0) | ((bounds > 1.0 / _FARTHEST) & (bounds < _FARTHEST))):
        return ""
    classes = {} if facts.labels is None else {"classes": tuple(facts.labels.tolist())}
    own = type(model)(**model.get_params(deep=False) | classes | {"account": None, "random_state": None})
    fixed = None if facts.columns is None else list(facts.columns)
    population = stated_population(own, None, facts.n_features, None, USUAL_SHARE, None, {})
    trials = Trials.of(own, population, facts.n_records, 1, columns=fixed, groups=None, select="columns")
    wish = Wish("intervals", n_trials=_QUICK)
    if wish.met(trials):
        return _ENOUGH
    epsilon, n = smallest_epsilon(trials, wish), smallest_n(trials, wish)
    columns = most_columns(trials.but(n=math.ceil(trials.n / _ROOM)), wish)
    ways = [] if epsilon is None else [f"epsilon {round_up(_ROOM * epsilon):g}"]
    ways += [] if n is None else [f"{round_up(_ROOM * n):,.0f} records"]
    ways += [] if columns is None else [f"{columns} column{'s' * (columns > 1)} fixed beforehand"]
    return " or ".join([*([", ".join(ways[:-1])] if ways[1:] else []), *ways[-1:]])


# ---- Improvements.


@dataclass(frozen=True, slots=True)
class _Change:
    """A fact that could be changed: how it is said, and what it gives for the weakest column."""

    words: str
    trials: Trials
    feature: int
    unit: float


def advise(forecast: Forecasting) -> tuple[str, ...]:
    """What would help the weakest column most, what costs nothing first."""
    weakest, trials = forecast.weakest, forecast.trials
    if weakest is None:
        return ("no coefficient is determined by a table like this: drop columns that others determine",)
    name = forecast.feature_names[weakest]
    if forecast.interval_probability < _LIKELY:
        return tuple(_ways_to_intervals(forecast, weakest, name))
    before = _error(tried(trials, _QUICK), weakest) / trials.population.units[weakest]
    found = []
    for change in _changes(forecast, weakest):
        after = _error(tried(change.trials, _QUICK), change.feature) / change.unit
        ratio = after / before
        if ratio <= _WORTH:
            found.append((ratio, change.words))
    return tuple(
        f"the standard error of {name} {_in_words(ratio)} with {words}" for ratio, words in sorted(found)[:_MOST_TOLD]
    ) or (f"every column gets an interval; that of {name} is the widest, and no single change would narrow it much",)


def _ways_to_intervals(forecast: Forecasting, weakest: int, name: str) -> Iterator[str]:
    """What would give every determined coefficient an interval: each way was tried."""
    trials, wish = forecast.trials, Wish("intervals")
    epsilon, n = smallest_epsilon(trials, wish), smallest_n(trials, wish)
    ways = [each.words for each in _changes(forecast, weakest, free=True) if wish.met(each.trials)][:1]
    # A budget that does in most trials is at the border: a little more of it does.
    if epsilon is not None:
        own = float(trials.model.epsilon)
        ways.append(f"epsilon {round_up(_ROOM * max(epsilon, own)):g} in place of {own:g}")
    if n is not None:
        ways.append(f"{round_up(_ROOM * max(n, trials.n)):,.0f} records in place of {trials.n:,}")
    for words in ways:
        yield f"every column, the weakest being {name}, gets an interval with {words}"
    if not ways:
        yield f"no epsilon up to {_LARGEST_EPSILON:g} gives {name} an interval: drop it, or narrow its bounds"


def _error(errors: Sequence[ErrorTrial], feature: int) -> float:
    """A typical standard error of a feature; infinite without one."""
    if not errors:
        return math.inf
    found = [float(np.max(each.std_error[:, feature])) for each in errors]
    return float(np.median([value if math.isfinite(value) else math.inf for value in found]))


def _in_words(ratio: float) -> str:
    """What happens to a standard error."""
    return "halves" if 0.45 <= ratio <= 0.55 else f"falls by {1.0 - ratio:.0%}"


def _changes(forecast: Forecasting, weakest: int, *, free: bool = False) -> Iterator[_Change]:
    """Facts that could be changed, those that cost nothing first."""
    trials = forecast.trials
    units, model = trials.population.units, trials.model
    yield from _narrower(trials, weakest)
    chosen = trials.chosen_columns()
    if chosen is not None:
        kept = sorted({*chosen[: len(chosen) - 1], weakest}) if weakest not in chosen else sorted(chosen)
        words = f"{len(kept)} columns fixed beforehand, so that no half of the records has to choose them"
        yield _Change(words, trials.but(columns=kept), weakest, units[weakest])
        if len(kept) >= 2 * _FEWEST:
            yield _Change(
                f"n_nonzero={len(kept) // 2} in place of {len(kept)}", trials.but(n_nonzero=len(kept) // 2), weakest,
                units[weakest],
            )  # fmt: skip
    else:
        own = [j for j in range(len(units)) if forecast.determined[j]] if model.columns is None else []
        if len(own) >= 2 * _FEWEST:
            kept = sorted({*own[: len(own) // 2], weakest})
            words = f"{len(kept)} columns in place of {len(own)}"
            yield _Change(words, trials.but(columns=kept), weakest, units[weakest])
    if not free:
        epsilon = float(model.epsilon)
        if math.isfinite(epsilon):
            yield _Change(
                f"epsilon {2.0 * epsilon:g} in place of {epsilon:g}", trials.but(epsilon=2.0 * epsilon), weakest,
                units[weakest],
            )  # fmt: skip
        yield _Change(f"{2 * trials.n:,} records in place of {trials.n:,}", trials.but(n=2 * trials.n), weakest,
                      units[weakest])  # fmt: skip


def _narrower(trials: Trials, weakest: int) -> Iterator[_Change]:
    """Narrower bounds of the weakest column, where its mean and spread are stated."""
    population = trials.population
    if not isinstance(population, StatedPopulation) or not population.scaled:
        return
    name = population.names[weakest]
    for place, column in enumerate(population.columns):
        if column.name != name or column.shares or column.spread is None:
            continue
        near = _near(column)
        if near.width > _NARROWER * column.width:
            return
        columns = (*population.columns[:place], near, *population.columns[place + 1 :])
        bounds = population.bounds
        if bounds is not None:
            stated = replace(bounds.columns[name], lower=near.lower, upper=near.upper)
            bounds = replace(bounds, columns={**bounds.columns, name: stated})
        other = replace(population, columns=columns, bounds=bounds)
        words = f"{name} in {near.lower:g} to {near.upper:g} instead of {column.lower:g} to {column.upper:g}"
        yield _Change(words, trials.but(population=other), weakest, other.units[weakest])


def _near(column: ColumnFacts) -> ColumnFacts:
    """The column within bounds that its spread needs, rounded outwards."""
    reach = _SPREADS * column.deviation
    step = 10.0 ** math.floor(math.log10(2.0 * reach)) / 2.0
    lower = max(math.floor((column.centre - reach) / step) * step, column.lower)
    upper = min(math.ceil((column.centre + reach) / step) * step, column.upper)
    return replace(column, lower=lower, upper=upper)
