"""The default model before its phases: the target's mean and clip, the columns that go on, their means."""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.lattice import ONE
from taciturn.fitting.clipped_records import Clipping
from taciturn.fitting.gradient_descent import heaviest_columns
from taciturn.fitting.releases import Releases
from taciturn.fitting.sums import (
    CorrelationSum,
    EntryCorrelationSum,
    KeptShares,
    RowNorms,
    TargetMagnitudes,
    TargetSum,
    largest_row_norm,
)
from taciturn.planning.sparse import COLUMNS_PER_NONZERO, SparsePlan
from taciturn.sources import Source

__all__ = [
    "LABEL_CLIP",
    "clip_records",
    "column_centre",
    "median_row_norm",
    "release_target_mean",
    "residual_clip",
    "screen_columns",
    "squared_in_lattice",
]

LABEL_CLIP = 0.5
"""Predicted probabilities minus labels are clipped at one half: noise is halved, and only wrong guesses are clipped."""

# Shares of the budget.
_MEDIAN_SHARE = 0.03
_MEAN_SHARE = 0.01
_CLIPPED_SHARE = 0.01
_CENTRE_MEDIAN_SHARE = 0.015
_CENTRE_SHARE = 0.04

# Noisy means are used where they are this many standard deviations of their noise away from zero.
_CLEAR_MEAN = 3.0
_CLEAR_RATE = 2.0
_CLEAR_COLUMN = 2.5

# Lower ends of the grids of medians, and the clip without privacy.
_LEAST_NORM = 2.0**-6
_LEAST_TARGET = 2.0**-8
_LEAST_KEPT = 0.02
_NOISELESS_CLIP = 16.0

# Entries clipped at half their root mean square: less noise, and hardly less correlation.
_ENTRY_CLIP = 0.5
# Gumbel noise selects k columns where it is smaller than Gaussian noise on all sums by this factor.
_GUMBEL_DEVIATION = math.pi / math.sqrt(6.0)
_GUMBEL_MARGIN = 1.1
# Where rows have few large entries, Gaussian noise does not grow with the number of columns kept: more of them are.
_FEW_ENTRIES = 0.25
_SHARE_OF_FEW = 0.35


def release_target_mean(plan: SparsePlan, releases: Releases) -> tuple[int, FloatArray]:
    """The noisy mean of a numeric target in lattice units, and the margins that a constant starts from."""
    start = np.zeros(plan.n_outputs)
    if not plan.intercept:
        return 0, start
    if plan.regression:
        means, deviation = releases.mean("the mean of the target", _MEAN_SHARE, TargetSum(), 1, plan.n_rows)
        if abs(means[0]) <= _CLEAR_MEAN * deviation:
            return 0, start
        return round(float(np.clip(means[0], -1.0, 1.0)) * ONE), start
    codes = (1,) if plan.n_outputs == 1 else tuple(range(plan.n_outputs))
    rates, deviation = releases.mean("the share of each class", _MEAN_SHARE, TargetSum(codes), len(codes), plan.n_rows)
    least = max(_CLEAR_RATE * deviation, 1.0 / plan.n_rows)
    if plan.n_outputs == 1:
        if least < 0.5 and abs(rates[0] - 0.5) > _CLEAR_RATE * deviation:
            rate = float(np.clip(rates[0], least, 1.0 - least))
            start[0] = math.log(rate / (1.0 - rate))
        return 0, start
    logarithms = np.log(np.maximum(rates, least))
    return 0, logarithms - logarithms.mean()


def residual_clip(plan: SparsePlan, releases: Releases, target_mean: int) -> float:
    """The clip of derivatives: public, or the private median magnitude of the target."""
    if not plan.regression:
        return LABEL_CLIP
    if plan.residual_clip is not None:
        return plan.residual_clip
    what, magnitudes = "the median magnitude of the target", TargetMagnitudes(target_mean)
    return releases.median(what, _MEDIAN_SHARE, magnitudes, _LEAST_TARGET, 1.0, lambda: _NOISELESS_CLIP)


def median_row_norm(
    source: Source, releases: Releases, what: str, norms: RowNorms, widest: float, share: float = _MEDIAN_SHARE
) -> float:
    """The private median row norm of the records that are not null."""

    def noiseless() -> float:
        # A constant column lengthens rows, by the root of two at most.
        return math.sqrt(2.0) * max(largest_row_norm(source, norms), _LEAST_NORM)

    return releases.median(what, share, norms, _LEAST_NORM, max(widest, 1.0), noiseless)


def clip_records(
    plan: SparsePlan,
    columns: IndexArray | None,
    bound: float,
    derivative_bound: float,
    weight: int,
    *,
    centre: FloatArray | None = None,
    target_mean: int = 0,
    constant: bool = True,
) -> Clipping:
    """Records with rows clipped to a bound; the constant column is as large as others of the same row."""
    row_squared = squared_in_lattice(bound)
    n_features = plan.n_features if columns is None else columns.size
    entry = min(round(math.sqrt(row_squared / (n_features + 1))), ONE) if plan.intercept and constant else 0
    return Clipping(
        columns,
        n_features,
        plan.loss_at(derivative_bound),
        plan.n_outputs,
        row_squared,
        entry,
        weight,
        derivative_bound,
        centre,
        target_mean,
    )


def squared_in_lattice(bound: float) -> int:
    """The square of a bound in lattice units."""
    return max(1, math.floor((bound * ONE) ** 2))


def screen_columns(
    plan: SparsePlan, source: Source, releases: Releases, target_mean: int, start: FloatArray, derivative_bound: float
) -> IndexArray | None:
    """Columns that go on: those with the largest noisy correlations with the clipped target; None for all.

    Gumbel noise for entries that are clipped, or Gaussian noise for rows that are: the former grows with the number of
    columns that are kept, the latter does not. Which is smaller depends on how much of a row the clip of its entries
    keeps, of which the median is released.
    """
    strategy, d = plan.strategy, plan.n_features
    k = strategy.n_screened
    if k is None:
        return None
    loss, norm = plan.loss_at(derivative_bound), plan.row_bound
    if norm is None:
        norms = RowNorms(loss, None, one_pass=True)
        norm = median_row_norm(source, releases, "the median row norm", norms, math.sqrt(d))
    entry = min(_ENTRY_CLIP * norm / math.sqrt(d), 1.0) if releases.private else 1.0
    what = "the median share of its squared norm that a row keeps when its entries are clipped"
    kept = releases.median(what, _CLIPPED_SHARE, KeptShares(loss, entry), _LEAST_KEPT, 1.0, lambda: 1.0)
    share, more = strategy.screening_share, max(k, COLUMNS_PER_NONZERO * strategy.n_nonzero)

    def gumbel_is_smaller(n_kept: int) -> bool:
        # Without noise correlations of entries as they are decide; and for very many columns rounding costs too much.
        if not releases.private or not releases.can_select(share, n_kept):
            return not releases.private
        return kept * norm > _GUMBEL_MARGIN * _GUMBEL_DEVIATION * entry * math.sqrt(n_kept)

    if strategy.method == "two-phase" and kept < _FEW_ENTRIES and d > 3 * more and not gumbel_is_smaller(more):
        k, share = more, _SHARE_OF_FEW
    if gumbel_is_smaller(k):
        clipping = clip_records(plan, None, 1.0, derivative_bound, ONE, target_mean=target_mean, constant=False)
        weight = ONE if plan.n_outputs == 1 else 2 * ONE
        correlations = EntryCorrelationSum(clipping, start, entry)
        return np.sort(releases.largest_correlations(f"{k:,} of {d:,} columns", share, correlations, k, ONE, weight))
    what = f"correlations of {d:,} columns with the target"
    weight, noise = releases.noise(loss, squared_in_lattice(norm), what, share, plan.n_outputs * d)
    clipping = clip_records(plan, None, norm, derivative_bound, weight, target_mean=target_mean, constant=False)
    return heaviest_columns(releases.noisy_sums(CorrelationSum(clipping, start), noise), k)


def column_centre(
    plan: SparsePlan, source: Source, releases: Releases, columns: IndexArray | None
) -> FloatArray | None:
    """Noisy means of the columns where they are clearly not zero, in lattice units."""
    if not plan.intercept:
        return None
    d = plan.n_features if columns is None else columns.size
    # A public bound holds for rows over all columns.
    norm = plan.row_bound if columns is None else None
    if norm is None:
        norms = RowNorms(plan.loss_at(1.0), columns)
        what = "the median row norm before rows are centred"
        norm = median_row_norm(source, releases, what, norms, math.sqrt(d), share=_CENTRE_MEDIAN_SHARE)
    clipping = clip_records(plan, columns, norm, 1.0, ONE, constant=False)
    means, deviation = releases.row_mean(f"the means of {d:,} columns", _CENTRE_SHARE, clipping, plan.n_rows)
    means[np.abs(means) < _CLEAR_COLUMN * deviation] = 0.0
    return np.clip(np.rint(means), -ONE, ONE)
