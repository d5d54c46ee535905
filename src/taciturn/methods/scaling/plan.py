"""Plans for bounding columns by private quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.core.errors import ParameterError
from taciturn.core.validation import FloatArray
from taciturn.data.sensitivity import opposite_quantile_scores
from taciturn.methods.schedule import Schedule, ScheduledPlan
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import OppositeSelectionsEvent
from taciturn.privacy.mechanisms import PrivateQuantile, quantile_fraction, rounding_charge

# Accepted probability, by a union bound, that some bound lies beyond all records of its column. The union bound takes
# the worst case at every point of the grid: the true probability is much smaller.
_CHANCE = 0.1


@dataclass(frozen=True, slots=True)
class BoundsPlan(ScheduledPlan):
    """A lower and an upper bound of every column by "quantiles": one per column for the upper, symmetric about 0."""

    schedule: Schedule
    quantiles: tuple[PrivateQuantile, ...]


def plan_bounds(
    budget: Budget,
    *,
    relation: str,
    n_rows: int,
    tail: float,
    smallest: FloatArray,
    largest: FloatArray,
    weight: int = 1,
) -> BoundsPlan:
    r"""Plan the quantiles ``tail`` and ``1 - tail`` of every column, all under one accountant.

    All have the same noise. A column costs two selections: the scores of one of its quantiles drift apart as far as
    those of a quantile can, and those of the other by what is left (``data.sensitivity.opposite_quantile_scores``).
    Which one is which depends on the neighbours.

    A bound that misses its rank by t leaves ``tail n`` records beyond it, give or take t and what its bin holds. With
    noise of b ranks on a grid of m points it misses by t or more with probability at most :math:`m e^{-t / b}`. So
    :math:`b \log(2 d m / p) \le \mathrm{tail} \cdot n` is required, with p = 0.1: else some of the 2 d bounds lies too
    often beyond all records, where nothing holds it back from the end of the grid.

    An infinite epsilon means exact quantiles, rounded outwards to the :func:`decimal_grid` of each column, which ends
    at its ``smallest`` and ``largest``. ``weight`` is the integer that stands for one record in counts, as in
    :class:`~taciturn.mechanisms.PrivateQuantile`.
    """
    n_columns = smallest.size
    fraction = quantile_fraction(1.0 - tail)
    first, second = opposite_quantile_scores(fraction.numerator, fraction.denominator, relation, weight)

    def pair(b: float) -> OppositeSelectionsEvent:
        # Of noise that is fitted to the first; rounding costs both the same.
        far = 1.0 / b
        near = (far - rounding_charge()) * (second.spread / first.spread) + rounding_charge()
        return OppositeSelectionsEvent(far, min(near, far))

    schedule = Schedule(budget, ordered=False)
    what = "a column's lower and upper quantile"
    schedule.add("quantiles", what, pair, n_columns, scale_at=lambda b: 2.0 / pair(b).far)
    schedule.calibrate()
    # Without privacy the cost, on which the scores do not depend, may be anything.
    cost = pair(schedule.scale).far if schedule.private else 1.0
    by_range: dict[tuple[float, float], PrivateQuantile] = {}
    for ends in set(zip(smallest.tolist(), largest.tolist(), strict=True)):
        by_range[ends] = PrivateQuantile(decimal_grid(*ends), 1.0 - tail, relation, cost, weight=weight)
    quantiles = tuple(by_range[ends] for ends in zip(smallest.tolist(), largest.tolist(), strict=True))
    if not schedule.private:
        return BoundsPlan(schedule, quantiles)
    finest = max(quantiles, key=lambda quantile: len(quantile.grid))
    needed = math.ceil(finest.scale * math.log(2 * n_columns * len(finest.grid) / _CHANCE) / tail)
    if n_rows < needed:
        raise ParameterError(
            "epsilon",
            budget.epsilon,
            f"enough for two bounds per column, but n_features={n_columns} at tail={tail:g} would take "
            f"{needed:,} records, not n_samples={n_rows:,}",
            "give public bounds to BoundedScaler, raise epsilon, or scale fewer columns",
        )
    return BoundsPlan(schedule, quantiles)


def decimal_grid(smallest: float, largest: float) -> tuple[float, ...]:
    """Zero and, with either sign, all numbers of two significant digits from ``smallest`` to ``largest``.

    Adjacent points differ by 1 to 10 percent; bounds of truth values, codes, counts and percentages are points.
    """
    # One power more than needed at either end: logarithms are rounded.
    first, last = math.floor(math.log10(smallest)) - 2, math.floor(math.log10(largest))
    sizes = [float(f"{digits}e{exponent}") for exponent in range(first, last + 1) for digits in range(10, 100)]
    inside = [size for size in sizes if smallest <= size <= largest]
    return (*(-size for size in reversed(inside)), 0.0, *inside)
