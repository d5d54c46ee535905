"""One Newton step from a private start, and the sandwich covariance behind standard errors."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, BoolArray, FloatArray, IndexArray
from taciturn.engines.interface import ArraySource, Source
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.descent import one_thread
from taciturn.methods.diagnostics import Diagnosis
from taciturn.methods.inference.plan import (
    CLIP_SHARE,
    CURVED_STEP,
    FIRST_STEP,
    SCORE_SHARE,
    SQUARED_STEP,
    TUNING,
    InferencePlan,
)
from taciturn.methods.releases import Releases, list_spends
from taciturn.methods.sparse.run import ColumnModel, Descent, SparseRun, release_constant, spread_coefficients
from taciturn.methods.sums import (
    CumulativeCounts,
    GradientSum,
    InformationMatrix,
    ResidualMagnitudes,
    RowNorms,
    ScoreMatrix,
)
from taciturn.privacy.claim import Release
from taciturn.privacy.transcript import block_of_records, coupling, transcribing

# ---- A Newton step on noisy sums, and the covariance of what it gives.
# At starting coefficients :math:`\theta` that do not depend on these records, or hardly do, let g be the gradient of
# the loss over all records, H its Hessian and M the sum of squared gradients :math:`g_i g_i^\top`. Released are
# :math:`\tilde g, \tilde H, \tilde M`, with independent noise of deviations :math:`\sigma_g, \sigma_H, \sigma_M`. With
# :math:`s = -\tilde H^{-1} \tilde g`, the estimate :math:`\theta + s` differs from the population's coefficients
# :math:`\theta_0` by
#
# .. math:: -\tilde H^{-1} (g_0 + z_g + R - E (\theta - \theta_0)), \qquad E = \tilde H - H,
#
# :math:`g_0` being the gradient at :math:`\theta_0`, whose covariance M estimates, and R what H misses of the change of
# the gradient. E is nearly a matrix of a Gaussian orthogonal ensemble, so that :math:`\mathrm{Cov}(E v)` is at most
# :math:`\sigma_H^2 (\|v\|^2 I + v v^\top) / 2` for a v that does not depend on it, and s stands for :math:`\theta_0 -
# \theta`. Hence
#
# .. math:: V = \tilde H^{-1} \bigl(M + \sigma_g^2 I + \tfrac{\sigma_H^2}{2} (\|s\|^2 I + s s^\top)\bigr) \tilde H^{-1}
#           \Bigl(1 + \tfrac{\sigma_H^2}{2 p} (\mathrm{tr} \tilde H^{-1})^2\Bigr) .
#
# The last factor is a margin for few records and no part of the identity: :math:`\tilde H^{-1}` is the very matrix that
# multiplies the error, and needs no correction. But s stands for :math:`\theta_0 - \theta` and depends on E. What that
# changes is of the order of the squared ratio of noise to information, and so is what the factor adds. It tends to one
# for many records. The page "Proof: standard errors and intervals" (``docs/proof-inference.md``) has the conditions.
#
# The matrix M makes V a sandwich, which needs no model of the variance. There is no covariance unless the least
# eigenvalue of :math:`\tilde H` exceeds :math:`\sigma_H (\sqrt{2 p} + 1)`, beyond what noise alone has.
#
# The Hessian of labels, or of Huber's loss, depends on where it is taken: if the start is off by a tenth, so is H, and
# the step with it. A first step with a part of the budget brings the start nearer.
#
# van der Vaart, *Asymptotic statistics* (1998), 5.7, for one-step estimators. White, *A heteroskedasticity-consistent
# covariance matrix estimator* (1980).

# Bits of sums over records without noise, and of squared norms and derivatives in them.
_SUM_BITS, _SQUARE_BITS, _WEIGHT_BITS = 62, 46, 24


@dataclass(frozen=True, slots=True)
class Clips:
    """What rows and derivatives are clipped to: norms in scaled units, and residuals in mapped ones, 1 for labels.

    ``room`` is how far noise lets the clip of residuals open, in units of their large quantile.
    """

    row_norm: float
    derivative: float
    room: float = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class NewtonEstimate:
    """Coefficients after a step, as they were before where there is no covariance, and what is known of their error.

    ``sampling`` and ``privacy`` are covariances of weights and intercept, the latter for rows that are not centred,
    of shape (p, p): from the sample, and from noise. They are None where the information matrix is not clear of its
    noise; ``clarity`` is its least eigenvalue as a share of what it has to exceed.
    """

    model: ColumnModel
    sampling: FloatArray | None
    privacy: FloatArray | None
    clarity: float


class _Step:
    """The clipped records of a step, its releases and its solution."""

    def __init__(self, descent: Descent, model: ColumnModel, clips: Clips) -> None:
        self._model, self._source, self._share = model, descent.source, descent.releases.remaining
        self._releases: Releases = descent.releases
        plan = descent.plan
        p = model.n_columns + plan.problem.intercept
        entry = min(clips.row_norm / math.sqrt(p), 1.0) if plan.problem.intercept else 0.0
        self._bound = math.hypot(clips.row_norm, entry)
        if not plan.regression or plan.huber:
            self._largest = clips.derivative
        else:
            most = TUNING.most_residual
            self._largest = min(TUNING.short_row * clips.derivative, most) if self._private else most
        self._clip = min(clips.derivative, self._largest) if self._private else self._largest
        self._clipping: Clipping = descent.clipping(model, self._bound, self._largest)
        self._smoothness = plan.loss_at(self._largest).smoothness
        self._product = self._bound * ONE * self._clip / self._largest
        self._shares = SQUARED_STEP if plan.regression and not plan.huber else CURVED_STEP
        # Without noise sums are as fine as 64 bits allow.
        bits = _SUM_BITS - (1 if self._private else self._count().bit_length()) - 1
        self._finest, self._finest_weight = 1 << min(bits, _SQUARE_BITS), 1 << min(bits - 18, _WEIGHT_BITS)
        self._start = model.coefficients(self._clipping.constant)

    @property
    def _private(self) -> bool:
        return self._releases.private

    def _count(self) -> int:
        """The number of records, for fits without privacy: it may differ from what is stated as public."""
        norms = RowNorms(self._clipping.loss, self._clipping.columns, self._clipping.centre, zeros=True)
        # Rows of a person share their weight up to rounding, for which sums have a bit more.
        return -(-int(self._source.total(CumulativeCounts(norms, (0.0,)))[-1]) // self._source.rank_weight)

    def run(self) -> NewtonEstimate:
        """Release the matrices and the gradient, and step."""
        width = self._clipping.width
        if self._shares is CURVED_STEP:
            self._approach()
        information, noise = self._information(self._shares.information)
        # The gradient comes before the matrix of its squares, which is clipped as it is.
        gradient, deviation, clipping = self._gradient(self._shares.gradient)
        scores = self._scores(clipping)
        values, vectors = np.linalg.eigh(information)
        clarity = float(values[0]) / self._threshold(noise)
        if clarity <= 1.0:
            return NewtonEstimate(self._model, None, None, clarity)
        inverse = (vectors / values) @ vectors.T
        step = -inverse @ gradient
        spread = 0.5 * noise**2 * (float(step @ step) * np.eye(width) + np.outer(step, step))
        inflation = 1.0 + noise**2 * float(np.trace(inverse)) ** 2 / (2.0 * width)
        sampling = inverse @ scores @ inverse * inflation
        privacy = inverse @ (deviation**2 * np.eye(width) + spread) @ inverse * inflation
        return self._estimate(self._start + step, sampling, privacy, clarity)

    def _approach(self) -> None:
        """Make a first step, along directions in which the information is clear of its noise."""
        information, noise = self._information(FIRST_STEP.information, " before the first step")
        gradient, _, _ = self._gradient(FIRST_STEP.gradient, " before the first step")
        values, vectors = np.linalg.eigh(information)
        clear = values > self._threshold(noise)
        self._start = self._start - vectors[:, clear] @ ((vectors[:, clear].T @ gradient) / values[clear])

    def _threshold(self, noise: float) -> float:
        """What an eigenvalue has to exceed to be clear of noise of a deviation."""
        return noise * (math.sqrt(2.0 * self._clipping.width) + 1.0)

    def run_noiseless(self) -> NewtonEstimate:
        """Newton's method: the maximum-likelihood or least-squares fit, and its sandwich."""
        for _ in range(TUNING.noiseless_steps):
            hessian = self._source.total(InformationMatrix(self._clipping, self._start, self._finest))
            values, vectors = np.linalg.eigh(hessian * (self._smoothness * self._clipping.norm**2 / self._finest))
            if not values[0] > TUNING.least_eigenvalue * values[-1]:
                break
            clipping = replace(self._clipping, weight_bound=self._finest_weight)
            gradient = self._source.total(GradientSum(clipping, self._start))[0] * self._unit(self._finest_weight)
            step = -(vectors / values) @ (vectors.T @ gradient)
            self._start = self._start + step
            if float(np.abs(step).max()) <= TUNING.least_step * (1.0 + float(np.abs(self._start).max())):
                break
        information, _ = self._information(self._shares.information)
        _, _, clipping = self._gradient(self._shares.gradient)
        scores = self._scores(clipping)
        values, vectors = np.linalg.eigh(information)
        if not values[0] > TUNING.least_eigenvalue * values[-1]:
            return NewtonEstimate(self._model, None, None, 0.0)
        inverse = (vectors / values) @ vectors.T
        return self._estimate(self._start, inverse @ scores @ inverse, np.zeros_like(inverse), math.inf)

    def _unit(self, weight: int) -> float:
        """What one unit of a gradient sum is."""
        return self._largest / (float(ONE) * weight)

    def _information(self, share: float, when: str = "") -> tuple[FloatArray, float]:
        """The Hessian, and the deviation of the noise on its diagonal."""
        clipping = replace(self._clipping, product_bound=1) if self._private else self._clipping

        def terms(row_squared: int) -> InformationMatrix:
            return InformationMatrix(clipping, self._start, row_squared)

        what = f"the information matrix of {clipping.width:,} coefficients{when}"
        matrix, noise = self._releases.outer_products(
            what, share * self._share, terms, clipping.width, clipping.norm, finest=self._finest
        )
        return self._smoothness * matrix, self._smoothness * noise

    def _gradient(self, share: float, when: str = "") -> tuple[FloatArray, float, Clipping]:
        """The gradient, the deviation of its noise, and how its terms are clipped."""
        width = self._clipping.width
        what = f"the gradient of {width:,} coefficients{when}"
        weight, product_bound, noise = self._releases.joint_noise(self._product, what, share * self._share, width)
        weight = weight if noise is not None else self._finest_weight
        clipping = replace(self._clipping, weight_bound=weight, product_bound=product_bound)
        gradient = self._releases.noisy_sums(GradientSum(clipping, self._start), noise)[0] * self._unit(weight)
        return gradient, (2.0**noise.log2_scale * self._unit(weight) if noise is not None else 0.0), clipping

    def _scores(self, clipping: Clipping) -> FloatArray:
        """The sum of squared terms of the gradient, without directions that noise made negative."""
        bound, weight = clipping.product_bound, clipping.weight_bound
        largest = float(bound) if bound is not None else self._product * weight

        def terms(row_squared: int) -> ScoreMatrix:
            return ScoreMatrix(clipping, self._start, largest, row_squared)

        what = f"the matrix of scores of {clipping.width:,} coefficients"
        matrix, _ = self._releases.outer_products(
            what, self._releases.remaining, terms, clipping.width, largest * self._unit(weight), finest=self._finest
        )
        values, vectors = np.linalg.eigh(matrix)
        scores: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return scores

    def _estimate(
        self, coefficients: FloatArray, sampling: FloatArray, privacy: FloatArray, clarity: float
    ) -> NewtonEstimate:
        """The model, and covariances for rows that are not centred."""
        model, d = self._model, self._model.n_columns
        constant = self._clipping.constant / ONE
        back = np.eye(self._clipping.width)
        if constant:
            back[d, d] = constant
            if model.centre is not None:
                back[d, :d] = -model.centre / ONE
        moved = replace(
            model,
            weights=coefficients[:, :d],
            constants=coefficients[:, d] * constant if constant else model.constants,
            n_steps=model.n_steps + 1,
        )
        return NewtonEstimate(moved, back @ sampling @ back.T, back @ privacy @ back.T, clarity)


# ---- Fits of the default model with standard errors.
# Of the records one half, drawn at random without looking at them, chooses columns, coefficients to start from, and
# clips. The other half steps on from there (:mod:`~taciturn.methods.inference.run`). Columns are hence independent
# of the records that tell their coefficients, and what is estimated is the population's coefficients of these columns.
# Where the caller fixed the columns there is nothing to choose, and all records do both.
#
# Privacy. One record is in one half. If neighbours differ in the first half, the second half acts on equal data and on
# what the first half released. If they differ in the second half, the first half's releases have the same law. So the
# cost is the larger of the two, and each half may spend the whole budget (:class:`taciturn.events.ParallelEvent`).


@dataclass(frozen=True, slots=True, eq=False)
class InferenceResult:
    """What a fit with standard errors releases, in mapped units.

    ``coefficients``, of shape (1, n_features + 1), are over all features, the intercept last; ``columns`` are those
    of the model. Covariances and ``clarity`` are as in :class:`NewtonEstimate`; ``room`` is how far noise lets the
    clip of residuals open, as a share of what it has to. ``n_steps`` counts all descents and the Newton step.
    ``diagnoses`` are what releases say against bounds or classes.
    """

    coefficients: FloatArray
    columns: IndexArray
    sampling: FloatArray | None
    privacy: FloatArray | None
    clarity: float
    room: float
    n_steps: int
    releases: tuple[Release, ...]
    diagnoses: tuple[Diagnosis, ...] = ()


@one_thread()
def run_inference(plan: InferencePlan, source: Source, stream: Stream) -> InferenceResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    first_budget, second_budget = plan.open_filters()
    first, second = _halves(plan, source, stream) if plan.split else (source, source)
    with _half(plan, 1, first):
        run = SparseRun(plan.start, first, stream.spawn("start"), first_budget)
        model = run.fit(keep=1.0 - plan.start_share + CLIP_SHARE * plan.start_share)
        mu = second_budget.mu * math.sqrt(1.0 if plan.split else 1.0 - plan.start_share)
        clips = _clips(plan, run, model, first_budget.mu, mu)
    with _half(plan, 2, second):
        releases = Releases(second_budget, plan.start.problem.relation, second, stream.spawn("step"))
        descent = Descent(plan.start, second, releases, stream, mu)
        if model.n_columns or plan.start.problem.intercept:
            # One step pays with what remains of the budget; without privacy there are as many as it takes.
            step = _Step(descent, model, clips)
            estimate = step.run() if releases.private else step.run_noiseless()
            if clips.room < TUNING.least_room:
                estimate = NewtonEstimate(model, None, None, estimate.clarity)
        else:
            # There is nothing to estimate, and the budget is spent all the same.
            release_constant(plan.start, releases, second_budget.remaining)
            estimate = NewtonEstimate(model, None, None, 0.0)
    diagnoses = run.releases.diagnoses
    spends = list_spends(first_budget.spent(), half=1 if plan.split else None, diagnoses=diagnoses)
    if plan.split:
        spends += list_spends(second_budget.spent(), half=2)
    columns = np.arange(plan.start.problem.n_features) if model.columns is None else model.columns
    return InferenceResult(
        spread_coefficients(plan.start, estimate.model), columns, estimate.sampling, estimate.privacy,
        estimate.clarity, clips.room / TUNING.least_room, estimate.model.n_steps, spends, diagnoses,
    )  # fmt: skip


def _half(plan: InferencePlan, label: int, source: Source) -> AbstractContextManager[None]:
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


def _halves(plan: InferencePlan, source: Source, stream: Stream) -> tuple[Source, Source]:
    """The records in two halves: slots drawn at random, or a coin for each record under add-remove.

    There the others must not move to another half with a record. Without privacy every fit has the same halves.
    """
    n_slots = source.n_slots
    with coupling():
        draws = (stream if math.isfinite(plan.budget.epsilon) else Stream.of(0)).spawn("halves")
        if plan.start.problem.relation == "add-remove":
            first: BoolArray = draws.integers(2, n_slots) == 0
        else:
            first = np.zeros(n_slots, dtype=bool)
            first[np.argsort(draws.words(n_slots), kind="stable")[: plan.start.problem.n_records]] = True
    return source.divide(first)


def _clips(plan: InferencePlan, run: SparseRun, model: ColumnModel, first_mu: float, mu: float) -> Clips:
    """Clips of the step: large quantiles of row norms and of residuals of the records that the start was fitted to."""
    start, releases = plan.start, run.releases
    widest = 2.0 * math.sqrt(max(model.n_columns, 1))
    measures = start.regression and not start.huber
    share = (0.5 if measures else 1.0) * (releases.remaining - (1.0 - plan.start_share))
    slack = TUNING.ranks / (start.problem.n_records * first_mu * math.sqrt(share))
    quantile = max(min(1.0 - slack, TUNING.quantile), TUNING.least_quantile)
    norms = RowNorms(start.loss_at(1.0), model.columns, model.centre)
    norm = releases.row_norm("a large quantile of row norms", share, norms, widest, quantile)
    if not measures:
        return Clips(norm if releases.private else widest, model.size)
    clipping = replace(run.descent.clipping(model, norm, TUNING.most_clip), product_bound=1)
    what = "a large quantile of residuals"
    magnitudes = ResidualMagnitudes(clipping, model.coefficients(clipping.constant))
    share = releases.remaining - (1.0 - plan.start_share)
    typical = min(2.0 * model.size, TUNING.most_clip)
    clip = releases.quantile(
        what, share, magnitudes, TUNING.least_clip, TUNING.most_clip, quantile=quantile, typical=typical
    )
    if not releases.private:
        return Clips(widest, clip)
    # Residuals may be longer-tailed than their quantile tells: the clip opens where that costs little.
    per_column = plan.n_step_rows / max(model.n_columns + start.problem.intercept, 1)
    of_gradient = TUNING.noise_per_error * mu * math.sqrt(SQUARED_STEP.gradient * per_column)
    of_scores = math.sqrt(TUNING.noise_per_score * mu * math.sqrt(SCORE_SHARE) * per_column)
    room = min(of_gradient, of_scores) * TUNING.deviation_per_median * model.size / clip
    return Clips(norm, min(clip * min(max(room, 1.0), TUNING.most_room), TUNING.most_clip), room)
