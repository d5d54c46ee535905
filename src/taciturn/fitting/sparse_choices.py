r"""What the default model finds out privately beside its descents.

Before its phases: the target's mean and clip, the columns that go on, their means. After a phase, where nobody says how
many coefficients are not zero, a private extended BIC does:

.. math:: \text{score}(k) = -\sum_i \mathrm{clip}_b\bigl(\ell_i(w_{(k)}) - \ell_i(w_{(r)})\bigr)
          - k\, \bigl(\tfrac12 \ln n + \gamma \ln d\bigr), \qquad
          \gamma = \max\bigl(0, 1 - \tfrac{\ln n}{2 \ln d}\bigr),

with :math:`w_{(k)}` the k heaviest of the released weights and r as many as hold nine tenths of their square. Scores
compete in one exponential mechanism; one record moves each by b at most.

References
----------
Chen and Chen, *Extended Bayesian information criteria for model selection with large model spaces* (2008).
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.fitting.clipped_records import Clipping
from taciturn.fitting.gradient_descent import columns_by_weight, heaviest_columns
from taciturn.fitting.releases import Releases
from taciturn.fitting.sums import (
    CorrelationSum,
    EntryCorrelationSum,
    KeptShares,
    RowNorms,
    TargetMagnitudes,
    TargetSum,
)
from taciturn.planning.sparse import COLUMNS_PER_NONZERO, LEAST_NONZERO, SparsePlan

__all__ = [
    "LABEL_CLIP",
    "MEDIAN_SHARE",
    "candidate_n_nonzero",
    "choose_n_nonzero",
    "clip_records",
    "column_centre",
    "release_target_mean",
    "residual_clip",
    "screen_columns",
    "squared_in_lattice",
]

LABEL_CLIP = 0.5
"""Predicted probabilities minus labels are clipped at one half: noise is halved, and only wrong guesses are clipped."""

MEDIAN_SHARE = 0.03
"""Share of the budget for a median."""

# Shares of the budget.
_MEAN_SHARE = 0.01
_CLIPPED_SHARE = 0.01
_CENTRE_MEDIAN_SHARE = 0.015
_CENTRE_SHARE = 0.04

# Noisy means are used where they are this many standard deviations of their noise away from zero.
_CLEAR_MEAN = 3.0
_CLEAR_RATE = 2.0
_CLEAR_COLUMN = 2.5

# Lower ends of the grids of medians, and the clip without privacy.
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

# Candidates for the number of nonzero coefficients, and the reference that their losses are compared with.
_FINE_UP_TO = 20
_COARSE_RATIO = 1.06
_REFERENCE = 0.9
# Ends of the clip on differences of losses.
_LEAST_CLIP = 0.15
_MOST_FOR_NUMBERS = 1.0
_MOST_FOR_CLASSES = 0.7


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
    return releases.median(what, MEDIAN_SHARE, magnitudes, _LEAST_TARGET, 1.0, lambda: _NOISELESS_CLIP)


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
    loss, n_outputs = plan.loss_at(derivative_bound), plan.n_outputs
    return Clipping(
        columns, n_features, loss, n_outputs, row_squared, entry, weight, derivative_bound, centre, target_mean
    )


def squared_in_lattice(bound: float) -> int:
    """The square of a bound in lattice units."""
    return max(1, math.floor((bound * ONE) ** 2))


def screen_columns(
    plan: SparsePlan, releases: Releases, target_mean: int, start: FloatArray, derivative_bound: float
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
        norm = releases.median_row_norm("the median row norm", MEDIAN_SHARE, norms, math.sqrt(d))
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


def column_centre(plan: SparsePlan, releases: Releases, columns: IndexArray | None) -> FloatArray | None:
    """Noisy means of the columns where they are clearly not zero, in lattice units."""
    if not plan.intercept:
        return None
    d = plan.n_features if columns is None else columns.size
    # A public bound holds for rows over all columns.
    norm = plan.row_bound if columns is None else None
    if norm is None:
        norms = RowNorms(plan.loss_at(1.0), columns)
        what = "the median row norm before rows are centred"
        norm = releases.median_row_norm(what, _CENTRE_MEDIAN_SHARE, norms, math.sqrt(d))
    clipping = clip_records(plan, columns, norm, 1.0, ONE, constant=False)
    means, deviation = releases.row_mean(f"the means of {d:,} columns", _CENTRE_SHARE, clipping, plan.n_rows)
    means[np.abs(means) < _CLEAR_COLUMN * deviation] = 0.0
    return np.clip(np.rint(means), -ONE, ONE)


def choose_n_nonzero(
    plan: SparsePlan,
    releases: Releases,
    share: float,
    severity: float,
    clipping: Clipping,
    weights: FloatArray,
    constants: FloatArray,
) -> int:
    """The number of nonzero coefficients, for released weights and margins of the constant.

    ``severity`` is a factor on the penalty of a column, and ``clipping`` clips no row.
    """
    d, n, n_features = weights.shape[1], plan.n_rows, plan.n_features
    candidates, order = candidate_n_nonzero(d), columns_by_weight(weights)
    squares = np.cumsum(np.square(weights).sum(axis=0)[order])
    reference = min(int(np.searchsorted(squares, _REFERENCE * squares[-1])) + 1, d)

    def model(k: int) -> FloatArray:
        kept = np.zeros_like(weights)
        kept[:, order[:k]] = weights[:, order[:k]]
        return np.column_stack((kept, constants * (ONE / clipping.constant))) if clipping.constant else kept

    extended = max(0.0, 1.0 - math.log(n) / (2.0 * math.log(n_features))) if n_features > 1 else 0.0
    penalty = severity * plan.n_outputs * (0.5 * math.log(n) + extended * math.log(n_features))
    place = releases.best_model(
        f"one of {candidates.size} numbers of nonzero coefficients",
        share,
        clipping,
        tuple(model(int(k)) for k in candidates),
        model(reference),
        penalty * candidates.astype(np.float64),
        (_LEAST_CLIP, _MOST_FOR_NUMBERS if plan.regression else _MOST_FOR_CLASSES),
    )
    return int(candidates[place])


def candidate_n_nonzero(d: int) -> IntArray:
    """Three to twenty, then in steps of six per cent, up to all columns."""
    candidates, k = list(range(min(LEAST_NONZERO, d), min(_FINE_UP_TO, d) + 1)), _FINE_UP_TO
    while k < d:
        k = min(d, math.ceil(_COARSE_RATIO * k))
        candidates.append(k)
    return np.array(candidates, dtype=np.int64)
