"""What the default model finds out privately before its descents.

The target's mean and size, the columns that go on, and their means.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.lattice import ONE
from taciturn.fitting.clipped_records import Clipping
from taciturn.fitting.gradient_descent import heaviest_columns
from taciturn.fitting.releases import Ceiling, Releases
from taciturn.fitting.sparse_descent import least_share
from taciturn.fitting.sums import (
    CorrelationSum,
    EntryCorrelationSum,
    KeptShares,
    RowNorms,
    TargetMagnitudes,
    TargetSum,
)
from taciturn.fitting.suspicions import suspect_mean, suspect_shares
from taciturn.planning.sparse import COLUMNS_PER_NONZERO, MOST_CHOSEN, SparsePlan

__all__ = ["column_centre", "release_constant", "release_target_mean", "residual_size", "screen_columns"]

# Shares of the budget.
_NORM_SHARE = 0.02
_CLIPPED_SHARE = 0.01
_CENTRE_NORM_SHARE = 0.015
_CENTRE_SHARE = 0.04

# Noisy means are used where they are this many standard deviations of their noise away from zero.
_CLEAR_MEAN = 2.0
_CLEAR_RATE = 2.0
_CLEAR_COLUMN = 2.5
# Columns are centred with this many records times the Gaussian parameter per root of their number.
_ENOUGH_TO_CENTRE = 15.0
_MOST_CENTRED = 1 << 19

# Lower ends of grids.
_LEAST_TARGET = 2.0**-8
_LEAST_KEPT = 0.02
# Residuals are no smaller than this share of the target's range is expected to be.
_LEAST_SIZE = 0.04
# What the median magnitude of a target between -1 and 1 is expected to be.
_TYPICAL_SIZE = 0.2

# A few columns of truth values may well be all true in most records.
_ENOUGH_COLUMNS = 5

# Derivatives of screening: half the size of labels or of the target keeps most of the signal, and half of its noise.
_SCREENING_CLIP = 0.5
# Entries clipped at half their root mean square: less noise, and hardly less correlation.
_ENTRY_CLIP = 0.5
# Gumbel noise selects k columns where it is smaller than Gaussian noise on all sums by this factor.
_GUMBEL_DEVIATION = math.pi / math.sqrt(6.0)
_GUMBEL_MARGIN = 1.1
# Where rows have few large entries, Gaussian noise does not grow with the number of columns kept: more of them are.
_FEW_ENTRIES = 0.25
_SHARE_OF_FEW = 0.35
_SHARE_OF_MANY = 0.5


def release_target_mean(plan: SparsePlan, releases: Releases, mu: float) -> tuple[int, FloatArray]:
    """The noisy mean of a numeric target in lattice units, and the margins that a constant starts from."""
    if not plan.intercept:
        return 0, np.zeros(plan.n_outputs)
    share = least_share(plan.n_rows, mu, 10.0, 0.015, 0.1)
    if not plan.regression:
        return 0, _log_odds(plan, releases, share)
    means, deviation = _target_mean(plan, releases, share)
    clear = abs(means[0]) > _CLEAR_MEAN * deviation
    return round(float(np.clip(means[0], -1.0, 1.0)) * ONE) if clear else 0, np.zeros(1)


def release_constant(plan: SparsePlan, releases: Releases, share: float) -> FloatArray:
    """The best constant: the mean of a numeric target, shrunk by what its noise adds, or log-odds of the classes."""
    if not plan.regression:
        return _log_odds(plan, releases, share)
    means, deviation = _target_mean(plan, releases, share)
    mean = float(np.clip(means[0], -1.0, 1.0)) if plan.intercept else 0.0
    return np.array([mean * max(0.0, 1.0 - deviation**2 / max(mean**2, 1e-300))])


def _target_mean(plan: SparsePlan, releases: Releases, share: float) -> tuple[FloatArray, float]:
    what = "the mean of the target"
    means, deviation = releases.mean(what, share, TargetSum(), 1, plan.n_rows)
    releases.suspect(suspect_mean(what, float(means[0]), deviation))
    return means, deviation


def _log_odds(plan: SparsePlan, releases: Releases, share: float) -> FloatArray:
    # The share of the first of two classes follows from the other one only if every record has one of the two; as a
    # vector of norm one it costs nothing more.
    codes = (1, 0) if plan.n_outputs == 1 else tuple(range(plan.n_outputs))
    what = "the share of each class"
    rates, deviation = releases.mean(what, share, TargetSum(codes), len(codes), plan.n_rows)
    releases.suspect(suspect_shares(what, codes, rates, deviation))
    if not plan.intercept:
        return np.zeros(plan.n_outputs)
    least = max(_CLEAR_RATE * deviation, 1.0 / plan.n_rows)
    # The weight of a class counts like that many records of it.
    offsets = np.log(plan.loss_at(1.0).class_weights(len(codes)))
    if plan.n_outputs == 1:
        if least >= 0.5 or abs(rates[0] - 0.5) <= _CLEAR_RATE * deviation:
            return offsets[1:] - offsets[:1]
        rate = float(np.clip(rates[0], least, 1.0 - least))
        return np.array([math.log(rate / (1.0 - rate))]) + offsets[1:] - offsets[:1]
    logarithms = np.log(np.maximum(rates, min(least, 1.0 / plan.n_outputs))) + offsets
    centred: FloatArray = logarithms - logarithms.mean()
    return centred


def residual_size(plan: SparsePlan, releases: Releases, target_mean: int, mu: float) -> float:
    """How large residuals are at first: a public number, the private median magnitude of the target, 1 for labels."""
    if not plan.regression:
        return 1.0
    if plan.residual_clip is not None:
        return plan.residual_clip
    what, magnitudes = "the median magnitude of the target", TargetMagnitudes(target_mean)
    share = least_share(plan.n_rows, mu, 8.0, 0.02, 0.1)
    ceiling = Ceiling("target", plan.n_rows)
    size = releases.quantile(what, share, magnitudes, _LEAST_TARGET, 1.0, typical=_TYPICAL_SIZE, ceiling=ceiling)
    return max(size, _LEAST_SIZE)


def _ceiling(plan: SparsePlan, n_columns: int) -> Ceiling | None:
    """What it means if most rows of some columns are as long as they can be; nothing for a few columns."""
    return Ceiling("rows", plan.n_rows) if n_columns >= _ENOUGH_COLUMNS else None


def _clip_records(
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
    row_squared = _squared_in_lattice(bound)
    n_features = plan.n_features if columns is None else columns.size
    entry = min(round(math.sqrt(row_squared / (n_features + 1))), ONE) if plan.intercept and constant else 0
    loss, n_outputs = plan.loss_at(derivative_bound), plan.n_outputs
    return Clipping(
        columns, n_features, loss, n_outputs, row_squared, entry, weight, derivative_bound, centre, target_mean
    )


def _squared_in_lattice(bound: float) -> int:
    """The square of a bound in lattice units."""
    return max(1, math.floor((bound * ONE) ** 2))


def screen_columns(
    plan: SparsePlan, releases: Releases, target_mean: int, start: FloatArray, size: float
) -> tuple[IndexArray | None, bool]:
    """Columns that go on, None for all, and whether they are already those of the model.

    They are those with the largest noisy correlations with the clipped target.

    Gumbel noise for entries that are clipped, or Gaussian noise for rows that are: the former grows with the number of
    columns that are kept, the latter does not. Which is smaller depends on how much of a row the clip of its entries
    keeps, of which the median is released.
    """
    strategy, d = plan.strategy, plan.n_features
    k = strategy.n_screened
    if k is None:
        return None, False
    derivative_bound = _SCREENING_CLIP * size if releases.private else 16.0
    loss, norm = plan.loss_at(derivative_bound), plan.row_bound
    if norm is None:
        norms = RowNorms(loss, None, one_pass=True)
        norm = releases.row_norm("the median row norm", _NORM_SHARE, norms, math.sqrt(d), ceiling=_ceiling(plan, d))
    entry = min(_ENTRY_CLIP * norm / math.sqrt(d), 1.0) if releases.private else 1.0
    what = "the median share of its squared norm that a row keeps when its entries are clipped"
    kept = releases.quantile(what, _CLIPPED_SHARE, KeptShares(loss, entry), _LEAST_KEPT, 1.0, noiseless=lambda: 1.0)
    share, more = strategy.screening_share, max(k, COLUMNS_PER_NONZERO * strategy.n_nonzero)

    def gumbel_is_smaller(n_kept: int) -> bool:
        # Without noise correlations of entries as they are decide; and for very many columns rounding costs too much.
        if not releases.private or not releases.can_select(share, n_kept):
            return not releases.private
        return kept * norm > _GUMBEL_MARGIN * _GUMBEL_DEVIATION * entry * math.sqrt(n_kept)

    final = strategy.method == "one-shot"
    if not final and kept < _FEW_ENTRIES and plan.chooses_n_nonzero:
        # Texts and the like: hardly any column can be told from noise, and many together predict well.
        k, share, final = min(MOST_CHOSEN, max(d // 2, 1)), _SHARE_OF_MANY, True
    elif not final and kept < _FEW_ENTRIES and d > 3 * more and not gumbel_is_smaller(more):
        k, share = more, _SHARE_OF_FEW
    if gumbel_is_smaller(k):
        clipping = _clip_records(plan, None, 1.0, derivative_bound, ONE, target_mean=target_mean, constant=False)
        weight = ONE if plan.n_outputs == 1 else 2 * ONE
        correlations = EntryCorrelationSum(clipping, start, entry)
        places = releases.largest_correlations(f"{k:,} of {d:,} columns", share, correlations, k, ONE, weight)
        return np.sort(places), final
    what = f"correlations of {d:,} columns with the target"
    weight, noise = releases.noise(loss, _squared_in_lattice(norm), what, share, plan.n_outputs * d)
    clipping = _clip_records(plan, None, norm, derivative_bound, weight, target_mean=target_mean, constant=False)
    return heaviest_columns(releases.noisy_sums(CorrelationSum(clipping, start), noise), k), final


def column_centre(plan: SparsePlan, releases: Releases, columns: IndexArray | None, mu: float) -> FloatArray | None:
    """Noisy means of the columns where they are clearly not zero, in lattice units; None where noise would prevail."""
    d = plan.n_features if columns is None else columns.size
    # Squared norms of centred rows are exact for so many columns only.
    if not plan.intercept or d > _MOST_CENTRED or plan.n_rows * mu < _ENOUGH_TO_CENTRE * math.sqrt(d):
        return None
    # A public bound holds for rows over all columns.
    norm = plan.row_bound if columns is None else None
    if norm is None:
        norms = RowNorms(plan.loss_at(1.0), columns)
        what = "the median row norm before rows are centred"
        norm = releases.row_norm(what, _CENTRE_NORM_SHARE, norms, math.sqrt(d), ceiling=_ceiling(plan, d))
    clipping = _clip_records(plan, columns, norm, 1.0, ONE, constant=False)
    means, deviation = releases.row_mean(f"the means of {d:,} columns", _CENTRE_SHARE, clipping, plan.n_rows)
    means[np.abs(means) < _CLEAR_COLUMN * deviation] = 0.0
    return np.clip(np.rint(means), -ONE, ONE)
