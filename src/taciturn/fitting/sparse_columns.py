"""The default model before its descents: the target's centre and clip, columns that go on, their centre."""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_setting import Setting, Target, lattice_square
from taciturn.fitting.two_phase import clipped_shares, heaviest, row_lengths, row_sums
from taciturn.planning.sparse import KEPT_OF_FEW, Road

__all__ = ["LABEL_CLIP", "centred_target", "column_centre", "median_length", "residual_clip", "screened_columns"]

LABEL_CLIP = 0.5
"""Predicted probabilities minus labels are clipped at one half: noise is halved, and only wrong guesses are clipped."""

# Shares of the budget.
_MEDIAN_SHARE = 0.03
_MEAN_SHARE = 0.01
_CLIPPED_SHARE = 0.01
_CENTRE_MEDIAN_SHARE = 0.015
_CENTRE_SHARE = 0.04

# Noisy means are used where they are this many standard deviations of their noise away from nothing.
_CLEAR_MEAN = 3.0
_CLEAR_RATE = 2.0
_CLEAR_COLUMN = 2.5

# Ends of the grids of medians, and what stands for a clip without privacy.
_LEAST_LENGTH = 2.0**-6
_LEAST_TARGET = 2.0**-8
_LEAST_KEPT = 0.02
_NOISELESS_CLIP = 16.0

# Entries clipped at half their root mean square: less noise, and hardly less correlation.
_ENTRY_CLIP = 0.5
# Gumbel noise is taken for k picks where it is so much smaller than Gaussian noise on all sums.
_GUMBEL_DEVIATION = math.pi / math.sqrt(6.0)
_GUMBEL_MARGIN = 1.1
# Rows of few large entries: noise on all sums does not grow with the number of columns kept, so more of them are.
_FEW_ENTRIES = 0.25
_SHARE_OF_FEW = 0.35


def centred_target(setting: Setting, releases: Releases, target: Target) -> tuple[Target, float, FloatArray]:
    """The target less its noisy mean, that mean, and the margins that a constant starts from."""
    start = np.zeros(setting.n_outputs)
    if not setting.intercept:
        return target, 0.0, start
    if setting.regression:
        terms = target.astype(np.int64)[:, None]
        means, deviation = releases.mean("the mean of the target", _MEAN_SHARE, terms, setting.n_rows)
        mean = round(float(np.clip(means[0], -1.0, 1.0)) * ONE)
        if abs(means[0]) <= _CLEAR_MEAN * deviation:
            mean = 0
        return target - mean, mean / ONE, start
    codes = np.arange(1, 2) if setting.n_outputs == 1 else np.arange(setting.n_outputs)
    terms = ONE * (target[:, None] == codes).astype(np.int64)
    rates, deviation = releases.mean("the share of each class", _MEAN_SHARE, terms, setting.n_rows)
    least = max(_CLEAR_RATE * deviation, 1.0 / setting.n_rows)
    if setting.n_outputs == 1:
        if least < 0.5 and abs(rates[0] - 0.5) > _CLEAR_RATE * deviation:
            rate = float(np.clip(rates[0], least, 1.0 - least))
            start[0] = math.log(rate / (1.0 - rate))
        return target, 0.0, start
    logarithms = np.log(np.maximum(rates, least))
    return target, 0.0, logarithms - logarithms.mean()


def residual_clip(setting: Setting, releases: Releases, target: Target) -> float:
    """The clip of derivatives: public, or the private median size of the target."""
    if not setting.regression:
        return LABEL_CLIP
    if setting.residual_clip is not None:
        return setting.residual_clip
    sizes = np.abs(target.astype(np.float64)) / ONE
    what = "the median size of the target"
    return releases.median(what, _MEDIAN_SHARE, sizes, _LEAST_TARGET, 1.0, _NOISELESS_CLIP)


def median_length(
    setting: Setting,
    releases: Releases,
    what: str,
    lengths: FloatArray,
    target: Target,
    widest: float,
    share: float = _MEDIAN_SHARE,
) -> float:
    """The private median length of the rows of records that are not null."""
    present = lengths[setting.present(target)]
    # A constant column lengthens rows, by the root of two at most.
    noiseless = math.sqrt(2.0) * max(float(present.max(initial=0.0)), _LEAST_LENGTH)
    return releases.median(what, share, present, _LEAST_LENGTH, max(widest, 1.0), noiseless)


def screened_columns(
    setting: Setting, releases: Releases, road: Road, design: Design, target: Target, start: FloatArray, slope: float
) -> IndexArray:
    """Columns that go on: those with the largest noisy correlations with the clipped target.

    Gumbel noise for entries that are clipped, or Gaussian noise for rows that are: the former grows with the number of
    columns that are kept, the latter does not. Which is smaller depends on how much of a row the clip of its entries
    keeps, of which the median is released.
    """
    k, d = road.n_screened, design.n_features
    if k is None:
        return np.arange(d)
    length = setting.row_bound
    if length is None:
        what = "the median length of a row"
        length = median_length(setting, releases, what, row_lengths(design), target, math.sqrt(d))
    entry = min(_ENTRY_CLIP * length / math.sqrt(d), 1.0) if releases.private else 1.0
    shares = clipped_shares(design, entry)[setting.present(target)]
    what = "the median share of a row's square that clipping its entries keeps"
    kept = releases.median(what, _CLIPPED_SHARE, shares, _LEAST_KEPT, 1.0, 1.0)
    margins = np.broadcast_to(start, (target.size, setting.n_outputs))
    share, more = road.screening_share, max(k, KEPT_OF_FEW * road.k)

    def gumbel_is_smaller(n_kept: int) -> bool:
        # Without noise correlations of entries as they are decide; and for very many columns rounding costs too much.
        if not releases.private or not releases.can_select(share, n_kept):
            return not releases.private
        return kept * length > _GUMBEL_MARGIN * _GUMBEL_DEVIATION * entry * math.sqrt(n_kept)

    if road.method == "two-phase" and kept < _FEW_ENTRIES and d > 3 * more and not gumbel_is_smaller(more):
        k, share = more, _SHARE_OF_FEW
    if gumbel_is_smaller(k):
        # Without columns rows are never clipped, and weights are the derivatives themselves.
        bare = design.columns(np.zeros(0, dtype=np.intp))
        records = setting.records(bare, target, None, 1.0, slope, ONE, constant=False)
        scores = np.abs(row_sums(design.clipped(entry), records.weights(margins), ONE)).sum(axis=1)
        weight = ONE if setting.n_outputs == 1 else 2 * ONE
        what = f"{k:,} of {d:,} columns"
        return np.sort(releases.largest_scores(what, share, scores, k, ONE, weight))
    what = f"correlations of {d:,} columns with the target"
    loss = setting.loss_at(slope)
    weight, noise = releases.noise(loss, lattice_square(length), what, share, setting.n_outputs * d)
    total = np.zeros((setting.n_outputs, d), dtype=np.int64)
    for rows, block in design.blocks():
        records = setting.records(block, target[rows], None, length, slope, weight, constant=False)
        total += records.sums_at(margins[rows])
    return heaviest(releases.noisy_sums(total, noise), k)


def column_centre(
    setting: Setting, releases: Releases, design: Design, target: Target, *, whole: bool
) -> FloatArray | None:
    """Noisy means of the columns where they are clearly not zero, in lattice units.

    ``whole`` tells whether these are all columns, for which a public bound on rows holds.
    """
    if not setting.intercept:
        return None
    d = design.n_features
    length = setting.row_bound if whole else None
    if length is None:
        what = "the median length of a row before it is centred"
        length = median_length(
            setting, releases, what, row_lengths(design), target, math.sqrt(d), share=_CENTRE_MEDIAN_SHARE
        )
    records = setting.records(design, target, None, length, 1.0, ONE, constant=False)
    means, deviation = releases.row_mean(f"the means of {d:,} columns", _CENTRE_SHARE, records, setting.n_rows)
    means[np.abs(means) < _CLEAR_COLUMN * deviation] = 0.0
    return np.clip(np.rint(means), -ONE, ONE)
