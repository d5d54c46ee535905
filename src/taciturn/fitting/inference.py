r"""Fits of the default model with standard errors.

Of the records one half, drawn at random without looking at them, chooses columns, coefficients to start from, and
clips. The other half steps on from there (:mod:`~taciturn.fitting.newton`). Columns are hence independent
of the records that tell their coefficients, and what is estimated is the population's coefficients of these columns.
Where the caller fixed the columns there is nothing to choose, and all records do both.

Privacy. One record is in one half. If neighbours differ in the first half, the second half acts on equal data and on
what the first half released. If they differ in the second half, the first half's releases have the same law. So the
cost is the larger of the two, and each half may spend the whole budget (:class:`taciturn.events.ParallelEvent`).
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from taciturn.certificate import Release
from taciturn.core.arrays import BoolArray, FloatArray, IndexArray
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.fitting.newton import Clips, NewtonEstimate, newton_step
from taciturn.fitting.releases import Releases, list_spends
from taciturn.fitting.sparse import SparseRun, spread_coefficients
from taciturn.fitting.sparse_choices import release_constant
from taciturn.fitting.sparse_descent import ColumnModel, Descent
from taciturn.fitting.sums import ResidualMagnitudes, RowNorms
from taciturn.fitting.suspicions import Suspicion
from taciturn.fitting.threads import one_thread
from taciturn.mechanisms.transcript import block_of_records, coupling, transcribing
from taciturn.planning.inference import CLIP_SHARE, SCORE_SHARE, SQUARED_STEP, InferencePlan
from taciturn.sources import ArraySource, DivisibleSource

__all__ = ["InferenceResult", "run_inference"]

# Quantiles of row norms and of residuals that clips are, and how far below them noise in ranks may take them.
_QUANTILE, _LEAST_QUANTILE = 0.98, 0.7
_RANKS = 8.0
# The residual clip opens until the noise in the gradient is this share of the sampling error, and that in the matrix of
# scores this share of its entries; and not beyond a multiple of the quantile, which few residuals reach. What lies
# beyond the clip is a bias that no standard error holds: errors of counts, costs and durations are skewed.
_NOISE_PER_ERROR, _NOISE_PER_SCORE, _MOST_ROOM = 1.0, 0.3, 2.0
# With less room than this the tails of residuals are long for the budget, and there are no standard errors.
_LEAST_ROOM = 1.3
# Deviation of a normal variable over its median magnitude.
_DEVIATION_PER_MEDIAN = 1.4826
_LEAST_SIZE, _MOST_RESIDUAL = 2.0**-8, 4.0


@dataclass(frozen=True, slots=True, eq=False)
class InferenceResult:
    """What a fit with standard errors releases, in mapped units.

    Parameters
    ----------
    coefficients : ndarray of shape (1, n_features + 1)
        Over all features, the intercept last.
    columns : ndarray of int
        The features of the model.
    sampling, privacy : ndarray of shape (p, p), or None
        As in :class:`~taciturn.fitting.newton.NewtonEstimate`.
    clarity : float
        Likewise.
    room : float
        How far noise lets the clip of residuals open, as a share of what it has to.
    n_steps : int
        Of all descents, and the Newton step.
    releases : tuple of Release
        What was paid for.
    suspicions : tuple of Suspicion
        What was released against bounds or classes.
    """

    coefficients: FloatArray
    columns: IndexArray
    sampling: FloatArray | None
    privacy: FloatArray | None
    clarity: float
    room: float
    n_steps: int
    releases: tuple[Release, ...]
    suspicions: tuple[Suspicion, ...] = ()


@one_thread()
def run_inference(plan: InferencePlan, source: DivisibleSource, stream: Stream) -> InferenceResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    first_budget, second_budget = plan.open_filters()
    first, second = _halves(plan, source, stream) if plan.split else (source, source)
    with _half(plan, 1, first):
        run = SparseRun(plan.start, first, stream.spawn("start"), first_budget)
        model = run.fit(keep=1.0 - plan.start_share + CLIP_SHARE * plan.start_share)
        mu = second_budget.mu * math.sqrt(1.0 if plan.split else 1.0 - plan.start_share)
        clips = _clips(plan, run, model, first_budget.mu, mu)
    with _half(plan, 2, second):
        releases = Releases(second_budget, plan.start.relation, second, stream.spawn("step"))
        descent = Descent(plan.start, second, releases, stream, mu)
        if model.n_columns or plan.start.intercept:
            estimate = newton_step(descent, model, clips)
            if clips.room < _LEAST_ROOM:
                estimate = NewtonEstimate(model, None, None, estimate.clarity)
        else:
            # There is nothing to estimate, and the budget is spent all the same.
            release_constant(plan.start, releases, second_budget.remaining)
            estimate = NewtonEstimate(model, None, None, 0.0)
    suspicions = run.releases.suspicions
    spends = list_spends(first_budget.spent(), half=1 if plan.split else None, suspicions=suspicions)
    if plan.split:
        spends += list_spends(second_budget.spent(), half=2)
    columns = np.arange(plan.start.n_features) if model.columns is None else model.columns
    return InferenceResult(
        spread_coefficients(plan.start, estimate.model), columns, estimate.sampling, estimate.privacy,
        estimate.clarity, clips.room / _LEAST_ROOM, estimate.model.n_steps, spends, suspicions,
    )  # fmt: skip


def _half(plan: InferencePlan, label: int, source: DivisibleSource) -> AbstractContextManager[None]:
    if not plan.split:
        return nullcontext()
    if isinstance(source, ArraySource):
        X = source.records.X
        # What a sparse table remembers of its own order is no part of what it says.
        content = (X.shape, X.indptr, X.indices, X.data) if sp.issparse(X) else X
        return block_of_records(label, (content, source.records.y))
    if transcribing():
        raise DataError("X: expected a table in memory for a replay of halves, got one in partitions; pass arrays.")
    return nullcontext()


def _halves(plan: InferencePlan, source: DivisibleSource, stream: Stream) -> tuple[DivisibleSource, DivisibleSource]:
    """The records in two halves.

    Half of the slots drawn at random where their number is public; a coin for each record under add-remove, where the
    others must not move to another half with it. Without privacy nothing has to be secret, and every fit has the same
    halves.
    """
    n_slots = source.n_slots
    with coupling():
        draws = (stream if math.isfinite(plan.budget.epsilon) else Stream.of(0)).spawn("halves")
        if plan.start.relation == "add-remove":
            first: BoolArray = draws.integers(2, n_slots) == 0
        else:
            first = np.zeros(n_slots, dtype=bool)
            first[np.argsort(draws.words(n_slots), kind="stable")[: plan.start.n_rows]] = True
    return source.divide(first)


def _clips(plan: InferencePlan, run: SparseRun, model: ColumnModel, first_mu: float, mu: float) -> Clips:
    """Clips of the step: large quantiles of row norms and of residuals of the records that the start was fitted to."""
    start, releases = plan.start, run.releases
    widest = 2.0 * math.sqrt(max(model.n_columns, 1))
    measures = start.regression and not start.huber
    share = (0.5 if measures else 1.0) * (releases.remaining - (1.0 - plan.start_share))
    slack = _RANKS / (start.n_rows * first_mu * math.sqrt(share))
    quantile = max(min(1.0 - slack, _QUANTILE), _LEAST_QUANTILE)
    norms = RowNorms(start.loss_at(1.0), model.columns, model.centre)
    norm = releases.row_norm("a large quantile of row norms", share, norms, widest, quantile)
    if not measures:
        return Clips(norm if releases.private else widest, model.size)
    clipping = replace(run.descent.clipping(model, norm, _MOST_RESIDUAL), product_bound=1)
    what = "a large quantile of residuals"
    magnitudes = ResidualMagnitudes(clipping, model.coefficients(clipping.constant))
    share = releases.remaining - (1.0 - plan.start_share)
    typical = min(2.0 * model.size, _MOST_RESIDUAL)
    clip = releases.quantile(what, share, magnitudes, _LEAST_SIZE, _MOST_RESIDUAL, quantile=quantile, typical=typical)
    if not releases.private:
        return Clips(widest, clip)
    # Residuals may be longer-tailed than their quantile tells: the clip opens where that costs little.
    per_column = plan.n_step_rows / max(model.n_columns + start.intercept, 1)
    of_gradient = _NOISE_PER_ERROR * mu * math.sqrt(SQUARED_STEP.gradient * per_column)
    of_scores = math.sqrt(_NOISE_PER_SCORE * mu * math.sqrt(SCORE_SHARE) * per_column)
    room = min(of_gradient, of_scores) * _DEVIATION_PER_MEDIAN * model.size / clip
    return Clips(norm, min(clip * min(max(room, 1.0), _MOST_ROOM), _MOST_RESIDUAL), room)
