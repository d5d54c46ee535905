"""Tables that stand for a private one: drawn from what is stated about its columns, or taken from a public table.

**Privacy.** Everything here is public: bounds, and means, spreads, shares and effects that somebody states from
elsewhere. A table that is passed in must be public too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import betaincinv, ndtr, softmax

from taciturn.core.errors import ParameterError
from taciturn.core.validation import AnyArray, FloatArray
from taciturn.tables.bounds import TableBounds
from taciturn.tables.cells import Encoding
from taciturn.tables.columns import Column, closest_name, did_you_mean

# Nodes of a quantile function.
_NODES = 513
# Without a statement the target's deviation is this part of its range, and columns explain this share of its variance.
USUAL_SPREAD, USUAL_SHARE = 1.0 / 6.0, 0.25
# Without stated effects, every table that is drawn has another share, from none up to this one.
_LARGEST_SHARE = 0.7
# The largest spread of what is drawn, and the largest stated one, as statements are rounded.
_WIDEST, _ROUNDED = 0.999, 1.05
# Columns that have an effect where nobody states which.
USUAL_EFFECTS = 5
# Errors keep at least this share of the target's variance, whatever effects are stated.
_LEAST_ERROR = 0.02
# The variance of a standard logistic variable.
_LOGISTIC = math.pi**2 / 3.0
_SOLVING_STEPS, _SOLVED = 60, 1e-3
# Of tables without stated correlations: columns for each factor, and how many doublings strengths differ by.
_COLUMNS_PER_FACTOR, _STRENGTHS = 3, 2.0
_YEAR = 365.2425
_TWO = 2


class Population(Protocol):
    """Where rows come from."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the features."""

    @property
    def units(self) -> FloatArray:
        """How many units of its column one unit of each feature is."""

    @property
    def most_rows(self) -> float:
        """The largest number of different rows; infinity where rows are drawn."""

    @property
    def drawn(self) -> dict[tuple[int, int], tuple[FloatArray, AnyArray]]:
        """Rows that were drawn for standard errors, by their number and seed."""

    def draw(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Features as a model reads them, and the target in the units of y."""

    def rows_like(self, n: int, most: int) -> int:
        """How many rows to draw, ``most`` or fewer, which vary as much as what is known of a table of ``n`` records."""

    def draw_like(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """So many rows, which stand for a private table."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is stated about a column of a table.

    Parameters
    ----------
    name : str
        Its name.
    lower, upper : float
        Its bounds.
    mean, spread : float, default=None
        Mean and standard deviation; None: those of a uniform column between the bounds.
    shares : tuple of float, default=()
        For a column of categories, the shares of its levels; of a truth value, of false and true. Empty for numbers.
    levels : tuple, default=()
        What the cells of these levels are.
    assumed : bool, default=False
        Whether nobody stated the shares.
    """

    name: str
    lower: float = -1.0
    upper: float = 1.0
    mean: float | None = None
    spread: float | None = None
    shares: tuple[float, ...] = ()
    levels: tuple[Any, ...] = ()
    assumed: bool = False

    @property
    def width(self) -> float:
        """Between the bounds."""
        return self.upper - self.lower

    @property
    def centre(self) -> float:
        """The mean that is stated, or that of a uniform column."""
        return (self.lower + self.upper) / 2.0 if self.mean is None else self.mean

    @property
    def largest_deviation(self) -> float:
        """That of a column of the two bounds and no other value."""
        return math.sqrt(max((self.centre - self.lower) * (self.upper - self.centre), 0.0))

    @property
    def deviation(self) -> float:
        """The spread that is stated, or the usual one for the mean: that of a uniform column in the middle."""
        if self.spread is not None:
            return min(self.spread, _WIDEST * self.largest_deviation)
        return math.sqrt(max((self.centre - self.lower) * (self.upper - self.centre), 0.0) / 3.0)

    def quantiles(self) -> FloatArray:
        """The quantile function on an even grid of probabilities, of a beta distribution between the bounds.

        With this mean and spread; that of uniform columns is even.
        """
        grid = (np.arange(_NODES) + 0.5) / _NODES
        middle, variance = (self.centre - self.lower) / self.width, (self.deviation / self.width) ** 2
        if variance <= 0.0:
            return np.full(_NODES, self.centre)
        total = middle * (1.0 - middle) / variance - 1.0
        found: FloatArray = self.lower + self.width * betaincinv(middle * total, (1.0 - middle) * total, grid)
        return found

    def checked(self) -> ColumnFacts:
        """The facts; ParameterError where they contradict one another."""
        place = f"bounds[{self.name!r}]"
        if not (math.isfinite(self.width) and self.width > 0.0):
            raise ParameterError(
                place, (self.lower, self.upper), "a finite lower bound below the upper one", "swap or change them"
            )
        if self.shares:
            if min(self.shares) < 0.0 or not 0.999 < sum(self.shares) < 1.001:
                raise ParameterError(place, self.shares, "shares in [0, 1] that add up to 1", "correct them")
            return self
        if not self.lower < self.centre < self.upper:
            raise ParameterError(f"{place} mean", self.mean, "a mean between the bounds", "correct one of them")
        most = self.largest_deviation
        if self.spread is not None and not 0.0 < self.spread < _ROUNDED * most:
            raise ParameterError(
                f"{place} spread", self.spread, f"a standard deviation in (0, {most:.4g})", "correct it or the bounds"
            )
        return self


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What is stated about a target.

    ``family`` is "squared", "poisson", "gamma" or "labels". ``mean`` and ``spread`` are in the units of y, within the
    bounds ``lower`` and ``upper``. Labels have ``classes`` and their ``shares``.
    """

    family: str
    lower: float = -1.0
    upper: float = 1.0
    mean: float | None = None
    spread: float | None = None
    classes: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def centre(self) -> float:
        """The mean, or a usual one: the middle, a tenth of the largest count, the geometric mean of amounts."""
        if self.mean is not None:
            return self.mean
        if self.family == "poisson":
            return self.lower + 0.1 * (self.upper - self.lower)
        if self.family == "gamma":
            return math.sqrt(self.lower * self.upper)
        return (self.lower + self.upper) / 2.0

    @property
    def deviation(self) -> float:
        """The spread of a number, or the usual one."""
        return USUAL_SPREAD * (self.upper - self.lower) if self.spread is None else self.spread

    @property
    def frequencies(self) -> tuple[float, ...]:
        """Shares of the classes, or equal ones."""
        return self.shares or (1.0 / len(self.classes),) * len(self.classes)

    def checked(self) -> TargetFacts:
        """The facts; ParameterError where they contradict one another."""
        if self.family == "labels":
            wrong = len(self.frequencies) != len(self.classes) or min(self.frequencies) <= 0.0
            if wrong or not 0.999 < sum(self.frequencies) < 1.001:
                expected = f"{len(self.classes)} positive shares that add up to 1"
                raise ParameterError("target shares", self.shares, expected, "state the share of every class")
            return self
        if not self.lower < self.centre < self.upper:
            raise ParameterError("target mean", self.mean, "a mean within the bounds of y", "correct one of them")
        most = self.upper - self.lower
        if self.spread is not None and not 0.0 < self.spread < most:
            raise ParameterError("target spread", self.spread, f"a standard deviation in (0, {most:.4g})", "correct it")
        return self

    def draw(self, signal: FloatArray, random: np.random.Generator) -> AnyArray:
        """Targets of rows whose linear predictors, but for a constant, are ``signal``."""
        signal = signal - signal.mean()
        if self.family == "labels":
            return self._draw_labels(signal, random)
        if self.family == "squared":
            variance = self.deviation**2
            error = math.sqrt(max(variance - float(signal.var()), _LEAST_ERROR * variance))
            return self.centre + signal + error * random.standard_normal(signal.size)
        means = np.exp(np.minimum(signal, 30.0))
        means *= self.centre / means.mean()
        # What the stated variance has beyond that of the means and of the family, as a factor of gamma variables.
        own = means.mean() if self.family == "poisson" else 0.0
        usual = own if self.spread is None and self.family == "poisson" else self.deviation**2
        extra = (usual - float(means.var()) - own) / float(np.square(means).mean())
        if self.family == "gamma":
            extra = 1.0 if self.spread is None else max(extra, _LEAST_ERROR)
        if extra > 1e-6:
            means = means * random.gamma(1.0 / extra, extra, signal.size)
        found = random.poisson(np.minimum(means, 1e12)).astype(np.float64) if self.family == "poisson" else means
        clipped: AnyArray = np.clip(found, self.lower, self.upper)
        return clipped

    def _draw_labels(self, signal: FloatArray, random: np.random.Generator) -> AnyArray:
        shares = np.array(self.frequencies)
        margins = np.zeros((signal.size, shares.size))
        # Effects are those of the second class against the first.
        margins[:, 1] = signal
        constants = np.log(shares)
        for _ in range(_SOLVING_STEPS):
            missing = np.log(shares / np.maximum(softmax(margins + constants, axis=1).mean(axis=0), 1e-12))
            constants = constants + missing
            if float(np.abs(missing).max()) < _SOLVED:
                break
        chances = softmax(margins + constants, axis=1).cumsum(axis=1)
        codes = np.minimum((random.random(signal.size)[:, None] > chances).sum(axis=1), shares.size - 1)
        labels = np.empty(shares.size, dtype=object)
        labels[:] = self.classes
        found: AnyArray = np.array(labels[codes].tolist())
        return found


@dataclass(frozen=True)
class StatedPopulation:
    """Rows drawn from statements: each column by itself, with stated correlations, and a target by stated effects.

    Parameters
    ----------
    columns : tuple of ColumnFacts
        The columns of the table.
    target : TargetFacts
        The target.
    scaled : bool
        Whether columns of numbers are mapped from their bounds to [-1, 1] before the model reads them.
    bounds : TableBounds, default=None
        By which cells become features; None: each column is one feature.
    effects : mapping of str to float or float, default=None
        Coefficients by the name of a column or feature, per unit of the column; or the share of the target's variance
        that columns explain together, of which the first ones explain equal parts. None: a share that differs from
        table to table.
    correlation : mapping of pairs of str to float, default=None
        Rank correlations of columns, as those of a normal copula; other pairs have none. None: nothing is known of
        them, and every table that is drawn has others.
    """

    columns: tuple[ColumnFacts, ...]
    target: TargetFacts
    scaled: bool
    bounds: TableBounds | None = None
    effects: Mapping[str, float] | float | None = None
    correlation: Mapping[tuple[str, str], float] | None = None

    most_rows = math.inf

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return (
            tuple(column.name for column in self.columns) if self.bounds is None else tuple(self.bounds.feature_names)
        )

    @cached_property
    def units(self) -> FloatArray:
        """How many units of its column one unit of each feature is."""
        if self.bounds is not None:
            return np.array(self.bounds.feature_units)
        return np.array([column.width / 2.0 if self.scaled else 1.0 for column in self.columns])

    @cached_property
    def _mixing(self) -> FloatArray | None:
        """A root of the correlation matrix of the normal variables behind the columns; None for the identity."""
        if not self.correlation:
            return None
        places = {column.name: j for j, column in enumerate(self.columns)}
        matrix = np.eye(len(places))
        for pair, value in self.correlation.items():
            missing = next((name for name in pair if name not in places), None)
            if missing is not None or not -1.0 <= value <= 1.0:
                raise ParameterError(
                    "correlation", (*pair, value), "two names of columns and a number in [-1, 1]", "correct it"
                )
            first, second = (places[name] for name in pair)
            # Of a normal copula with this rank correlation.
            matrix[first, second] = matrix[second, first] = 2.0 * math.sin(math.pi * value / 6.0)
        values, vectors = np.linalg.eigh(matrix)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        # The nearest ones that there can be, if the stated ones contradict each other.
        found: FloatArray = root / np.sqrt(np.square(root).sum(axis=1, keepdims=True))
        return found

    @cached_property
    def _quantiles(self) -> list[FloatArray]:
        return [np.zeros(0) if column.shares else column.quantiles() for column in self.columns]

    def rows_like(self, n: int, most: int) -> int:
        """All of them: a population that is stated is known."""
        return most

    def draw_like(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Other rows each time."""
        return self.draw(n_rows, random)

    def draw(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Features as a model reads them, and the target in the units of y."""
        X = self._features(n_rows, random)
        coefficients = self.coefficients
        if self.effects is None:
            share = random.uniform(0.0, _LARGEST_SHARE)
            coefficients = coefficients * math.sqrt(self._signal(share) / self._signal(USUAL_SHARE))
        return X, self.target.draw(X @ coefficients, random)

    def _signal(self, share: float) -> float:
        """The variance of linear predictors that explain a share of the target's variance."""
        if self.target.family == "squared":
            return share * self.target.deviation**2
        return share / (1.0 - share) * (_LOGISTIC if self.target.family == "labels" else 1.0)

    @cached_property
    def drawn(self) -> dict[tuple[int, int], tuple[FloatArray, AnyArray]]:
        """Rows that were drawn, by their number and seed: budgets are compared on the same rows."""
        return {}

    def _features(self, n_rows: int, random: np.random.Generator) -> FloatArray:
        ranks = random.standard_normal((n_rows, len(self.columns)))
        mixing = _usual_mixing(len(self.columns), random) if self.correlation is None else self._mixing
        if mixing is not None:
            ranks = ranks @ mixing.T
        ranks = ndtr(ranks)
        cells: list[AnyArray] = []
        grid = (np.arange(_NODES) + 0.5) / _NODES
        for column, quantiles, rank in zip(self.columns, self._quantiles, ranks.T, strict=True):
            if column.shares:
                codes = np.searchsorted(np.cumsum(column.shares)[:-1], rank, side="right")
                cells.append(np.array(column.levels, dtype=object)[codes])
            else:
                cells.append(np.interp(rank, grid, quantiles))
        if self.bounds is not None:
            return _encoded(self.bounds, cells, n_rows)
        X = np.column_stack([each.astype(np.float64) for each in cells])
        for j, column in enumerate(self.columns):
            if self.scaled:
                X[:, j] = (X[:, j] - (column.lower + column.upper) / 2.0) / (column.width / 2.0)
        return np.clip(X, -1.0, 1.0) if self.scaled else X

    @cached_property
    def coefficients(self) -> FloatArray:
        """Of the features as a model reads them."""
        found = np.zeros(len(self.names))
        if isinstance(self.effects, Mapping):
            for name, value in self.effects.items():
                j = place_of(name, self.names)
                found[j] = float(value) * self.units[j]
            return found
        share = USUAL_SHARE if self.effects is None else float(self.effects)
        if share == 0.0:
            return found
        spreads = self._features(2048, np.random.default_rng(0)).std(axis=0)
        kept = np.flatnonzero(spreads > 1e-9)[:USUAL_EFFECTS]
        found[kept] = math.sqrt(self._signal(share) / max(kept.size, 1)) / spreads[kept]
        found[kept[1::2]] *= -1.0
        return found


def _usual_mixing(n_columns: int, random: np.random.Generator) -> FloatArray:
    """A root of the correlation matrix of a table about which nothing is known: another one for each table.

    Columns share a third as many factors, which explain a part of each column's variance: next to nothing in some
    tables, nearly everything in others.
    """
    strength = 2.0 ** random.uniform(-_STRENGTHS, _STRENGTHS)
    explained = random.random((n_columns, 1)) ** (1.0 / strength)
    loadings = random.standard_normal((n_columns, max(n_columns // _COLUMNS_PER_FACTOR, 1)))
    loadings *= np.sqrt(explained / np.square(loadings).sum(axis=1, keepdims=True))
    matrix = loadings @ loadings.T
    np.fill_diagonal(matrix, 1.0)
    found: FloatArray = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    return found


def place_of(name: str, names: Sequence[str]) -> int:
    """The feature of this name, or the last of at most two features of a column of this name."""
    listed = list(names)
    if name in listed:
        return listed.index(name)
    own = [j for j, feature in enumerate(listed) if feature.startswith(f"{name}=")]
    if 0 < len(own) <= _TWO:
        return own[-1]
    proposed = did_you_mean(closest_name(name, listed))
    raise ParameterError("effects", name, "the name of a feature", f"{proposed}choose one of those of the forecast")


def _encoded(bounds: TableBounds, cells: Sequence[AnyArray], n_rows: int) -> FloatArray:
    """Features of cells, by the code that encodes tables."""
    # Here rather than above: other populations do without Arrow.
    import pyarrow as pa

    encoding = Encoding(bounds)
    columns = [
        pa.array(_dates(column, each) if column.type == "date" else each.tolist() if each.dtype == object else each)
        for (_, column), each in zip(bounds.used, cells, strict=True)
    ]
    out = np.empty((n_rows, encoding.n_features))
    encoding.fill(columns, out)
    return out


def _dates(column: Column, numbers: Any) -> AnyArray:
    """Days that a column of dates counts, or days of its years."""
    if column.parts:
        first, days = np.datetime64("1970-01-01"), np.floor((numbers - 1970.0) * _YEAR)
    else:
        first, days = np.datetime64(column.since or "1970-01-01", "D"), np.rint(numbers)
    found: AnyArray = first + days.astype("timedelta64[D]")
    return found


@dataclass(frozen=True)
class PublicRows:
    """Rows of a public table that is like the private one.

    One unit of a feature is ``units`` of its column.
    """

    X: FloatArray
    y: AnyArray
    names: tuple[str, ...]
    units: FloatArray
    drawn: dict[tuple[int, int], tuple[FloatArray, AnyArray]] = field(default_factory=dict)

    @property
    def most_rows(self) -> int:
        """The number of rows."""
        return len(self.X)

    def draw(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Some of the rows, each at most once."""
        chosen = random.permutation(len(self.X))[:n_rows]
        return self.X[chosen], self.y[chosen]

    def rows_like(self, n: int, most: int) -> int:
        """So few that the public table's own sampling error is in what differs from trial to trial.

        Statistics of a private table differ from those of N public rows by 1/n + 1/N of a row's variance: as those of
        n N / (n + N) rows do from the table that they are drawn from, with replacement.
        """
        return min(most, math.ceil(n * len(self.X) / (n + len(self.X))))

    def draw_like(self, n_rows: int, random: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Rows with replacement."""
        chosen = random.integers(len(self.X), size=n_rows)
        return self.X[chosen], self.y[chosen]
