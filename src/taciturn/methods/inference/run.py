r"""Fits of the default model with standard errors: coordinates, steps, and the sandwich covariance.

At starting coefficients :math:`\theta` let g be the gradient of the loss over all records, weighted by what their rows
say (:mod:`~taciturn.methods.inference.whitened`), H its Hessian and M the sum of squared gradients :math:`g_i
g_i^\top`. Released are :math:`\tilde g, \tilde H, \tilde M`, with independent noise of deviations :math:`\sigma_g,
\sigma_H, \sigma_M`. With :math:`s = -\tilde H^{-1} \tilde g`, the estimate :math:`\theta + s` differs from the
population's coefficients :math:`\theta_0` by

.. math:: -\tilde H^{-1} (g_0 + z_g + R - E (\theta - \theta_0)), \qquad E = \tilde H - H,

:math:`g_0` being the gradient at :math:`\theta_0`, whose covariance M estimates, and R what H misses of the change of
the gradient. E is nearly a matrix of a Gaussian orthogonal ensemble, so that :math:`\mathrm{Cov}(E v)` is at most
:math:`\sigma_H^2 (\|v\|^2 I + v v^\top) / 2` for a v that does not depend on it, and s stands for :math:`\theta_0 -
\theta`. Hence

.. math:: V = \tilde H^{-1} \bigl(M + \sigma_g^2 I + \tfrac{\sigma_H^2}{2} (\|s\|^2 I + s s^\top)\bigr) \tilde H^{-1}
          \Bigl(1 + \tfrac{\sigma_H^2}{2 p} (\mathrm{tr} \tilde H^{-1})^2\Bigr) .

The last factor is a margin for few records. All of that happens where rows have about the same second moment in every
direction, so that noise is the same share of the sampling error everywhere
(:mod:`~taciturn.methods.inference.algebra`). The page "Proof: standard errors and intervals"
(``docs/proof-inference.md``) has the conditions.

*Numbers.* The Hessian does not depend on where it is taken. Some gradients bring the start nearer to its end, and only
the last one is the estimate: the noise of H times earlier starts is a bias. *Labels.* The first steps are solved in a
model of rows that are normal, with weights that do not change; then H, the last gradient and M are taken at one start.

van der Vaart, *Asymptotic statistics* (1998), 5.7, for one-step estimators. White, *A heteroskedasticity-consistent
covariance matrix estimator* (1980).
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.linalg import helmert
from scipy.special import ndtri

from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, BoolArray, FloatArray, IndexArray, IntArray
from taciturn.engines.interface import ArraySource, Source
from taciturn.losses import LogLinkLoss, PoissonLoss, SquaredLoss
from taciturn.methods.descent import one_thread
from taciturn.methods.diagnostics import Diagnosis
from taciturn.methods.inference.algebra import (
    Errors,
    Noise,
    NormalDesign,
    Prior,
    Span,
    Whitening,
    equal_information,
    errors_of,
    noise_norm,
    rare_directions,
    shorten,
    tail_reaches,
)
from taciturn.methods.inference.plan import TUNING, Allotment, InferencePlan
from taciturn.methods.inference.whitened import (
    MATRIX_SCALE,
    ClippedDerivatives,
    ClippedSquares,
    Coordinates,
    InformationSum,
    LabelLoss,
    Lengths,
    LengthWeighing,
    LocalLoss,
    LogLinkModel,
    LongRows,
    MarginLoss,
    MarginNorms,
    NumberLoss,
    Residuals,
    ScoreProducts,
    ScoreSum,
    ScoreWeighing,
    Traces,
    Weighing,
)
from taciturn.methods.releases import Question, Releases, list_spends
from taciturn.methods.sparse.plan import TUNING as SPARSE_TUNING
from taciturn.methods.sparse.run import (
    SparseRun,
    count_rows,
    count_weights,
    mean_exposure,
    mean_unit,
    release_constant,
    residual_size,
    target_mean_of,
)
from taciturn.methods.sums import RowStatistic
from taciturn.privacy.claim import Release
from taciturn.privacy.transcript import block_of_records, coupling, transcribing

# The integer for a vector at its bound: sums over 2**26 records have room for it.
_FINEST_VECTOR = 1 << 34
# Without noise, bits of sums over records, and of squared norms in them.
_SUM_BITS, _SQUARE_BITS = 61, 46


@dataclass(frozen=True, slots=True, eq=False)
class WhitenedEstimate:
    """Coefficients of the columns and of the intercept, in mapped units, and what is known of their errors.

    ``coefficients`` have one row, or one per class, which is zero for the first. ``errors``, ``estimable`` and
    ``left_out`` are over those of one row, or of the other classes one after the other: their errors, None where there
    are none at all, whether they have an interval, and what is not identified of them. ``reason`` says in a word why
    none has one.
    """

    coefficients: FloatArray
    errors: Errors | None
    estimable: BoolArray
    left_out: FloatArray
    reason: str | None = None

    def without_errors(self, reason: str) -> WhitenedEstimate:
        """The same coefficients, and why nothing is known of their errors."""
        return replace(self, errors=None, estimable=np.zeros_like(self.estimable), reason=reason)


class _Estimation:
    """The releases of an estimation and its solution, for the records of a source and some columns."""

    def __init__(self, plan: InferencePlan, source: Source, releases: Releases, mu: float, columns: IndexArray) -> None:
        self._plan, self._source, self._releases = plan, source, releases
        problem = plan.start.problem
        self._n_records, self._mu = plan.n_step_rows, mu
        self._columns = None if columns.size == problem.n_features else columns
        self._width = columns.size + problem.intercept
        self._labels, self._intercept = not plan.start.regression, problem.intercept
        self._link: LogLinkLoss | None = None
        self._shift, self._exposure = 0.0, 1.0
        self._n_classes = problem.n_outputs if problem.n_outputs > 1 else 2
        self._coding = helmert(self._n_classes) if plan.n_outputs > 1 else None
        self._size = self._width * plan.n_outputs
        self._loss = problem.loss if self._labels or plan.start.log_link else SquaredLoss()
        self._at = self._coordinates(np.eye(self._width))
        self._bend: float | None = None
        self._has_tails, self._all_clear = False, False

    def _coordinates(self, matrix: FloatArray) -> Coordinates:
        return Coordinates.of(matrix, self._columns, intercept=self._intercept)

    @cached_property
    def _shares(self) -> Allotment:
        return self._plan.allot(self._width - self._intercept, self._mu)

    @property
    def _information_share(self) -> float:
        """What the information matrix of labels may cost: more where it says less along shortened tails."""
        planned = self._shares.information
        return max(planned, TUNING.tail_information) if self._has_tails else planned

    @property
    def _trace_room(self) -> float:
        """The bound on the information of a row of labels, over a large quantile."""
        if self._has_tails:
            return self._shares.trace_room * (TUNING.tail_trace_room if self._all_clear else 1.0)
        return self._shares.trace_room * TUNING.trace_room

    @property
    def _rank(self) -> float:
        """The largest quantile that noise in ranks leaves to residuals."""
        t = TUNING
        slack = t.ranks / (math.sqrt(t.quantile_share) * self._mu * self._n_records)
        return min(max(1.0 - slack, t.least_residual_quantile), t.residual_quantile)

    # ---- coefficients in their several forms

    def _beta(self, theta: FloatArray) -> FloatArray:
        """Coefficients of z, one row per output."""
        return theta @ self._at.matrix

    def _model(self, theta: FloatArray) -> LocalLoss:
        if self._labels:
            beta = self._of_classes(self._beta(theta))
            return LabelLoss(beta, self._loss.class_weights(self._n_classes), self._coding)
        if self._link is not None:
            return LogLinkModel(self._beta(theta), self._link, observed=not self._releases.private)
        return self._numbers(theta)

    def _numbers(self, theta: FloatArray) -> NumberLoss:
        beta = self._beta(theta)
        return NumberLoss(beta) if self._bend is None else NumberLoss(beta, self._bend, bends=True)

    def _of_classes(self, beta: FloatArray) -> FloatArray:
        return beta if self._coding is None else self._coding.T @ beta

    def _shown(self) -> FloatArray:
        """What coefficients of all outputs, in one vector, are multiplied with to get those that have errors."""
        if self._coding is None:
            return np.eye(self._width)
        return np.asarray(np.kron(self._coding[:, 1:] - self._coding[:, :1], np.eye(self._width)), dtype=np.float64)

    def _whole(self) -> FloatArray:
        """The coordinates of all outputs together."""
        return np.asarray(np.kron(np.eye(self._plan.n_outputs), self._at.matrix), dtype=np.float64)

    def _start(self, constants: FloatArray) -> FloatArray:
        """Coefficients theta of margins that are constant."""
        beta = np.zeros((self._plan.n_outputs, self._width))
        if self._intercept:
            beta[:, -1] = constants if self._coding is None else self._coding @ constants
        return self._theta(beta)

    def _theta(self, beta: FloatArray) -> FloatArray:
        """What :meth:`_beta` turns into these coefficients."""
        return np.asarray(np.linalg.solve(self._at.matrix.T, beta.T).T, dtype=np.float64)

    # ---- releases

    def _quantile(self, what: str, statistic: RowStatistic, grid: tuple[float, float], q: float) -> float:
        return self._releases.ask(self._quantile_of(what, statistic, grid, q))

    def _quantile_of(self, what: str, statistic: RowStatistic, grid: tuple[float, float], q: float) -> Question[float]:
        t = TUNING
        return self._releases.quantile_of(
            what, t.quantile_share, statistic, *grid, quantile=q, falls=True, ratio=t.grid_ratio
        )

    def _length(self, what: str, quantile: float) -> float:
        return self._releases.ask(self._length_of(what, quantile))

    def _length_of(self, what: str, quantile: float) -> Question[float]:
        root = math.sqrt(self._width)
        grid = TUNING.length_grid[0] * root, TUNING.length_grid[1] * root
        return self._quantile_of(what, Lengths(self._at, self._loss), grid, quantile)

    def _information(
        self, what: str, share: float, model: LocalLoss, weighing: Weighing, trace: float
    ) -> tuple[FloatArray, float]:
        return self._releases.ask(self._information_of(what, share, model, weighing, trace))

    def _information_of(
        self, what: str, share: float, model: LocalLoss, weighing: Weighing, trace: float
    ) -> Question[tuple[FloatArray, float]]:
        """The information matrix of a model and the deviation of its noise."""

        def terms(row_squared: int) -> InformationSum:
            return InformationSum(self._at, self._loss, model, weighing, trace, row_squared)

        size = model.n_outputs * self._width
        norm = math.sqrt(trace) / MATRIX_SCALE
        return self._releases.outer_products_of(what, share, terms, size, norm, finest=1 << self._square_bits)

    def _gram(self, what: str, share: float, weighing: LengthWeighing) -> tuple[FloatArray, float]:
        return self._releases.ask(self._gram_of(what, share, weighing))

    def _gram_of(self, what: str, share: float, weighing: LengthWeighing) -> Question[tuple[FloatArray, float]]:
        """The Gram matrix of weighted rows: the information of numbers."""
        numbers = NumberLoss(np.zeros((1, self._width)))
        return self._information_of(what, share, numbers, weighing, weighing.trace)

    def _gradient(
        self, what: str, share: float, model: LocalLoss, weighing: Weighing, bound: float
    ) -> tuple[FloatArray, float]:
        return self._releases.ask(self._gradient_of(what, share, model, weighing, bound))

    def _gradient_of(
        self, what: str, share: float, model: LocalLoss, weighing: Weighing, bound: float
    ) -> Question[tuple[FloatArray, float]]:
        """The gradient, one row per output, and the deviation of its noise."""

        def terms(norm: int) -> ScoreSum:
            return ScoreSum(self._at, self._loss, model, weighing, bound, norm)

        n_values = model.n_outputs * self._width
        moments = self._releases.moments_of(what, share, terms, n_values, _FINEST_VECTOR)

        def answer(sums: IntArray) -> tuple[FloatArray, float]:
            released, deviation = moments.answer(sums)
            return bound * released.reshape(model.n_outputs, self._width), bound * deviation

        return replace(moments, answer=answer)

    def _scores(self, model: LocalLoss, weighing: Weighing, bound: float) -> tuple[FloatArray, float]:
        """The matrix of scores, for all that remains, and the deviation of its noise."""

        def terms(row_squared: int) -> ScoreProducts:
            return ScoreProducts(self._at, self._loss, model, weighing, bound, row_squared)

        what, remaining = f"the matrix of scores of {self._size:,} coefficients", self._releases.remaining
        norm = bound / MATRIX_SCALE
        return self._releases.outer_products(what, remaining, terms, self._size, norm, finest=1 << self._square_bits)

    @property
    def _square_bits(self) -> int:
        """Bits of squared norms without noise: bounds of a log link are far from what most records have."""
        return _SQUARE_BITS if self._link is None else max(_SQUARE_BITS, _SUM_BITS - self._n_records.bit_length())

    # ---- the fit

    def run(self) -> WhitenedEstimate:
        """Spend the whole budget."""
        shares = self._shares
        if shares.at_once:
            return self._run_at_once()
        constants = self._constants(TUNING.start_share)
        whitening = Whitening.start(self._width)
        for number in range(1, shares.rounds + 1):
            norm = self._length(f"a quantile of row norms before Gram matrix {number}", TUNING.whitening_quantile)
            what = f"Gram matrix {number} of {self._width:,} columns, for coordinates"
            gram, deviation = self._gram(what, shares.gram, LengthWeighing(norm, shares.room))
            # Numbers leave out what noise hides and look again, so that a collinear direction may be stretched freely.
            longest = TUNING.longest_stretch if self._labels else math.inf
            whitening = whitening.refine(gram, deviation, TUNING.most_stretch, longest, TUNING.stretch_doubt)
            self._at = self._coordinates(whitening.matrix)
        if self._labels:
            self._shorten_tails(whitening.expected)
        if self._link is not None:
            return self._run_log_link(self._link)
        return self._run_labels(constants) if self._labels else self._run_numbers(constants)

    def _constants(self, share: float) -> FloatArray:
        """Margins to start from; and the threshold of Huber's loss, or the unit of a log link's, if it is that.

        Under a log link coefficients are those of means over the mean that was released.
        """
        start = self._plan.start
        if start.exposed:
            share *= 0.5
            self._exposure = mean_exposure(start, self._releases, share)
        constants = release_constant(start, self._releases, share, self._exposure)
        if isinstance(self._loss, LogLinkLoss):
            self._shift = float(constants[0])
            moved = replace(self._loss, offset=self._loss.offset - self._shift)
            self._link = moved.in_units_of(mean_unit(start, constants))
            return np.zeros(1)
        if start.huber:
            self._bend = residual_size(start, self._releases, round(float(constants[0]) * ONE), self._mu)
        return constants

    def _run_numbers(self, constants: FloatArray) -> WhitenedEstimate:
        shares, t, n = self._shares, TUNING, self._n_records
        # In units of a residual's deviation, if errors are normal.
        usual = float(ndtri(0.5 + 0.5 * self._rank))
        least = max(t.least_residual_room, t.usual_reach / usual)
        # Huber's loss has another matrix in the end, where it is known which residuals are beyond the threshold.
        planned = shares.information if self._bend is None else 0.5 * shares.information
        weighing, information, noise = self._weighted_rows("the information matrix", planned, usual * least)
        span = Span.of(self._at.matrix, information, self._threshold(noise))
        uncertainty = np.zeros(self._width)
        if 0 < span.n_left_out < self._width:
            weighing, information, noise, span, uncertainty = self._look_again(span, usual * least)
        curvature = information
        later = t.quantile_share * len(shares.gradients) if self._bend is None else planned
        theta = span.project(self._start(constants)[0])[None]
        for number, share in enumerate(self._gradient_shares(later), 1):
            model = self._numbers(theta)
            if self._bend is None:
                what = f"a large quantile of residuals before step {number}"
                size = self._quantile(what, Residuals(self._at, self._loss, model), t.residual_grid, self._rank)
                model = replace(model, clip=size * self._residual_room(share, usual, least, weighing.norm))
            elif number == len(shares.gradients):
                what = f"the information matrix of {self._width:,} coefficients before the last step"
                information, noise = self._information(what, planned, model, weighing, weighing.trace)
                span = span.renew(information, self._threshold(noise))
            bound = weighing.norm * model.clip
            what = f"the gradient of {self._width:,} coefficients before step {number}"
            if number == len(shares.gradients) and not self._plan.errors:
                share = self._releases.remaining
            gradient, deviation = self._gradient(what, share, model, weighing, bound)
            step = -(span.inverse @ gradient[0])
            theta = theta + step
        if not self._plan.errors:
            nothing = np.zeros(self._width, dtype=bool)
            return WhitenedEstimate(self._beta(theta), None, nothing, self._shown().T @ span.left_out)
        scores, of_scores = self._scores(model, weighing, bound)
        errors = Noise(noise, deviation, of_scores)
        found = self._estimate(theta, step, span, scores, errors, t.largest_coefficients, uncertainty)
        # Residuals that the last step takes beyond the threshold of Huber's loss are not those that it counted on.
        length = math.sqrt(max(float(step @ curvature @ step), 0.0) / n)
        far = self._bend is not None and length > t.longest_bent_step * self._bend
        return found if found.errors is None or not far else found.without_errors("far")

    def _run_at_once(self) -> WhitenedEstimate:
        """Least squares of a tall table in five passes: sums that do not depend on each other are made in one.

        A Gram matrix and products with the target, of which no residual is clipped, tell coordinates and where to
        start; the information matrix and two gradients of clipped residuals are released as in :meth:`_run_numbers`.
        """
        shares, t, plan, width = self._shares, TUNING, self._plan.start, self._width
        of_mean = target_mean_of(plan, self._releases, t.start_share)
        of_length = self._length_of("a quantile of row norms before the Gram matrix", t.whitening_quantile)
        (means, _), norm = self._releases.ask_together(of_mean, of_length)
        start = self._start(np.clip(means, -1.0, 1.0))
        weighing = LengthWeighing(norm, shares.room)
        # Neither targets nor their mean are beyond one.
        model = replace(self._numbers(start), clip=2.0)
        first, second, last = self._gradient_shares(2 * t.quantile_share + shares.gram + shares.information)
        (gram, noise), (gradient, _) = self._releases.ask_together(
            self._gram_of(f"the Gram matrix of {width:,} columns, for coordinates", shares.gram, weighing),
            self._gradient_of(f"the gradient of {width:,} coefficients at the start", first, model, weighing, 2 * norm),
        )
        values, vectors = np.linalg.eigh(gram)
        floored = np.maximum(values, noise_norm(noise, width))
        beta = start - gradient @ (vectors / floored) @ vectors.T
        whitening = Whitening.start(width).refine(gram, noise, t.most_stretch, math.inf, t.stretch_doubt)
        self._at = self._coordinates(whitening.matrix)

        usual = float(ndtri(0.5 + 0.5 * self._rank))
        least = max(t.least_residual_room, t.usual_reach / usual)
        model = NumberLoss(beta)
        residuals = Residuals(self._at, self._loss, model)
        norm, size = self._releases.ask_together(
            self._length_of("a large quantile of row norms", t.large_row_quantile),
            self._quantile_of("a large quantile of residuals", residuals, t.residual_grid, self._rank),
        )
        weighing = self._opened(norm, usual * least)
        model = replace(model, clip=size * self._residual_room(second, usual, least, weighing.norm))
        bound = weighing.norm * model.clip
        what = f"the gradient of {width:,} coefficients before step"
        (information, noise), (gradient, _) = self._releases.ask_together(
            self._gram_of(f"the information matrix of {width:,} coefficients", shares.information, weighing),
            self._gradient_of(f"{what} 1", second, model, weighing, bound),
        )
        span = Span.of(self._at.matrix, information, self._threshold(noise))
        theta = span.project(self._theta(beta)[0]) - span.inverse @ gradient[0]
        if 0 < span.n_left_out < width:
            beta = self._beta(theta[None])
            weighing, information, noise, span, _ = self._look_again(span, usual * least)
            theta = span.project(self._theta(beta)[0])
        model = replace(self._numbers(theta[None]), clip=size * self._residual_room(last, usual, least, weighing.norm))
        bound, remaining = weighing.norm * model.clip, self._releases.remaining
        gradient, _ = self._gradient(f"{what} 2", remaining, model, weighing, bound)
        theta = theta - span.inverse @ gradient[0]
        nothing = np.zeros(width, dtype=bool)
        return WhitenedEstimate(self._beta(theta[None]), None, nothing, self._shown().T @ span.left_out)

    def _residual_room(self, share: float, usual: float, least: float, norm: float) -> float:
        """The clip of residuals over their large quantile, opened until its noise is a share of the sampling variance.

        The matrix of scores, where there is one, has to stay sharp too.
        """
        t, unit = TUNING, usual * norm
        space, most = math.sqrt(t.noise_share * self._n_records * share) * self._mu, t.most_open_room
        if self._plan.errors:
            per_score = self._n_records * self._mu * math.sqrt(self._shares.scores)
            space = min(space, math.sqrt(t.score_noise * per_score))
            most = min(max(t.usual_residual_room, math.sqrt(t.sharp_scores * per_score) / unit), t.most_residual_room)
        return min(max(least, space / unit), most)

    def _gradient_shares(self, later: float) -> tuple[float, ...]:
        """What gradients may cost: the rest but for the scores and what comes ``later``, in the proportions planned.

        Second looks are paid for by gradients.
        """
        available = self._releases.remaining - self._shares.scores - later
        total = sum(self._shares.gradients)
        return tuple(available * share / total for share in self._shares.gradients)

    def _weighted_rows(self, what: str, share: float, unit: float) -> tuple[LengthWeighing, FloatArray, float]:
        """Weights of rows, the information matrix and its noise; ``unit`` is a large residual over its deviation."""
        t, per_column = TUNING, self._n_records * self._mu / self._width
        few = per_column < t.enough_for_large_rows
        quantile = t.row_quantile if few else t.large_row_quantile
        weighing = self._opened(self._length(f"a large quantile of row norms, for {what}", quantile), unit)
        information, noise = self._gram(f"{what} of {self._width:,} coefficients", share, weighing)
        return weighing, information, noise

    def _opened(self, norm: float, unit: float) -> LengthWeighing:
        """Weights of rows, given a large quantile of their norms: they get more space where noise allows."""
        shares, t = self._shares, TUNING
        room = math.sqrt(t.noise_share * self._n_records * shares.gradients[-1]) * self._mu / (2.0 * unit * norm)
        enough = self._n_records * self._mu / self._width >= t.enough_for_long_rows
        room = min(max(room, t.least_row_room if enough else 1.0), t.most_row_room)
        return LengthWeighing(norm * room, max(1.0, shares.trace_room / room**2))

    def _look_again(self, span: Span, unit: float) -> tuple[LengthWeighing, FloatArray, float, Span, FloatArray]:
        """Coordinates without what noise stretched, and sharper directions of coefficients that are not identified.

        A second information matrix finds directions that were left out by mistake, such as a rare category. What stays
        is moved until rows v'z of the directions v are not correlated with the rest.
        """
        t, share = TUNING, min(self._shares.information, TUNING.second_share)
        root = t.second_stretch * math.sqrt(self._width)
        self._at = self._coordinates(span.separate(self._at.matrix, self._n_records, root))
        weighing, information, noise = self._weighted_rows("the second information matrix", share, unit)
        span = span.recover(self._at.matrix, information, self._threshold(noise))
        uncertainty = np.zeros(self._width)
        for number in range(1, t.sharpenings + 1):
            if not 0 < span.n_left_out < self._width:
                break
            model = MarginLoss(span.left_out.T)
            what = f"a large quantile of distances from collinearity {number}"
            norms = MarginNorms(self._at, self._loss, model)
            clip = t.margin_room * self._quantile(what, norms, t.margin_grid, self._rank)
            what = f"the correlations of collinear directions {number} with {self._width:,} columns"
            sums, deviation = self._gradient(
                what, t.sharpening_share, replace(model, clip=clip), weighing, weighing.norm * clip
            )
            span, uncertainty = span.sharpen(self._at.matrix, information, sums, Noise(noise, deviation, 0.0))
            if float(uncertainty.max()) < t.sharp / math.sqrt(self._n_records):
                break
        return weighing, information, noise, span, uncertainty

    def _run_labels(self, constants: FloatArray) -> WhitenedEstimate:
        shares, t = self._shares, TUNING
        norm = self._length("a large quantile of row norms", t.label_row_quantile)
        weighing = LengthWeighing(norm, shares.room)
        gram, noise = self._shortened(weighing)
        later = self._information_share + t.early_information + 2 * t.quantile_share
        *gradients, early, last = self._gradient_shares(later)
        values, vectors = np.linalg.eigh(gram)
        gram = (vectors * np.maximum(values, noise_norm(noise, self._width))) @ vectors.T
        design, theta = self._design(gram), self._start(constants)
        prior = Prior(theta, self._at.matrix @ self._at.matrix.T / t.usual_log_odds**2)
        # Derivatives of several margins are up to the root of two.
        bound = norm * (1.0 if self._coding is None else math.sqrt(2.0))
        for number, share in enumerate(gradients, 1):
            what = f"the gradient of {self._size:,} coefficients before step {number}"
            gradient, deviation = self._gradient(what, share, self._model(theta), weighing, bound)
            theta = design.solve(theta, gradient, deviation, prior)
        # Directions that no row has, as those of levels that add up to the constant.
        n_null = int(np.count_nonzero(values <= t.null_doubt * noise))
        theta, gram = self._equalised(theta, gram, n_null, norm, early, len(gradients) + 1)
        design, model = self._design(gram), self._model(theta)
        final = self._score_weighing(model, design.information(theta), norm, last)
        bound, what = final.score, f"the information matrix of {self._size:,} coefficients"
        information, noise = self._information(what, self._information_share, model, final, final.trace)
        span = Span.of(self._whole(), information, self._label_threshold(information, noise))
        # Without what is not identified; weights are functions of where the gradient is taken.
        kept = span.project(theta.ravel()).reshape(theta.shape) if span.information.size else theta
        lost = design.size(theta - kept)
        model = self._model(kept)
        what = f"the gradient of {self._size:,} coefficients before the last step"
        final = replace(final, model=model)
        gradient, deviation = self._gradient(what, last, model, final, bound)
        step = -(span.inverse @ gradient.ravel())
        scores, of_scores = self._scores(model, final, bound)
        theta, length = kept + step.reshape(theta.shape), design.size(step.reshape(theta.shape))
        # A long step of large margins misses what curvature changes on the way.
        far = length > t.longest_last_step or length * design.deviation(theta) > t.longest_curved_step
        far = far or lost > t.most_left_out
        noises = Noise(noise, deviation, of_scores)
        found = self._estimate(theta, step, span, scores, noises, t.largest_log_odds)
        return found if found.errors is None or not far else found.without_errors("far")

    def _design(self, gram: FloatArray) -> NormalDesign:
        """The model of normal rows with this Gram matrix."""
        constant = np.linalg.solve(self._at.matrix.T, np.eye(self._width)[-1]) if self._intercept else None
        return NormalDesign(gram, constant, self._n_records, self._coding)

    def _score_weighing(
        self, model: LocalLoss, expected: FloatArray, norm: float, share: float, when: str = ""
    ) -> ScoreWeighing:
        """Weights by scores before a gradient that costs ``share``; ``expected`` is what the design tells of H.

        The bound of scores opens until the noise of the gradient, or of their matrix, is a share of the sampling
        variance along an ordinary direction.
        """
        t, variance = TUNING, float(np.median(np.linalg.eigvalsh(expected)))
        noisier = t.tail_noise if self._has_tails else 1.0
        of_gradient = math.sqrt(noisier * t.noise_share * share * variance) * self._mu
        of_scores = math.sqrt(noisier * t.score_noise * variance * self._mu * math.sqrt(self._shares.scores))
        bound = norm * min(max(min(of_gradient, of_scores) / norm, t.least_score_room), t.most_score_room)
        grid = t.trace_grid[0] * self._width, t.trace_grid[1] * self._width
        traces = Traces(self._at, self._loss, model)
        what = f"a large quantile of the information of rows{when}"
        trace = self._quantile(what, traces, grid, t.trace_quantile)
        return ScoreWeighing(model, bound, trace * self._trace_room)

    def _equalised(
        self, theta: FloatArray, gram: FloatArray, n_null: int, norm: float, share: float, number: int
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients after a Newton step, and the Gram matrix, in coordinates with the same information everywhere.

        Rows tell about labels what their uncertainty lets them. Directions along which labels are nearly certain are
        stretched; those that the few uncertain rows have to themselves are shortened, so that these rows, which are
        long in information, keep their weight.
        """
        t, design, model = TUNING, self._design(gram), self._model(theta)
        weighing = self._score_weighing(model, design.information(theta), norm, share, f" before step {number}")
        (information, noise), (gradient, _) = self._releases.ask_together(
            self._information_of(
                f"the information matrix of {self._size:,} coefficients before step {number}",
                t.early_information, model, weighing, weighing.trace,
            ),
            self._gradient_of(
                f"the gradient of {self._size:,} coefficients before step {number}",
                share, model, weighing, weighing.score,
            ),
        )  # fmt: skip
        values, vectors = np.linalg.eigh(information)
        floor = noise_norm(noise, self._size)
        floored = np.maximum(values, floor)
        # Bounds open further for long tails where noise hides no direction that rows have.
        self._all_clear = int(np.count_nonzero(values <= floor)) <= n_null * self._plan.n_outputs
        step = -((vectors / floored) @ (vectors.T @ gradient.ravel())).reshape(theta.shape)
        beta = self._beta(theta + step * min(1.0, t.longest_early_step / max(design.size(step), 1e-12)))
        # Of several outputs, which share their coordinates, the mean.
        n_outputs = self._plan.n_outputs
        blocks = information.reshape(n_outputs, self._width, n_outputs, self._width)
        information = np.einsum("kikj->ij", blocks) / n_outputs
        change = equal_information(information, noise / math.sqrt(n_outputs), gram, t.least_equal, t.most_equal)
        self._at = self._coordinates(change @ self._at.matrix)
        return self._theta(beta), change @ gram @ change.T

    def _run_log_link(self, loss: LogLinkLoss) -> WhitenedEstimate:
        """As for labels; derivatives are clipped where that touches next to no record."""
        shares, t, n = self._shares, TUNING, self._n_records
        norm = self._length("a large quantile of row norms", t.row_quantile)
        weighing = LengthWeighing(norm, shares.room)
        gram, noise = self._shortened(weighing)
        later = shares.information + t.quantile_share * (len(shares.gradients) + 1) + shares.clipped
        *gradients, last = self._gradient_shares(later)
        values, vectors = np.linalg.eigh(gram)
        gram = (vectors * np.maximum(values, noise_norm(noise, self._width))) @ vectors.T
        constant = np.linalg.solve(self._at.matrix.T, np.eye(self._width)[-1]) if self._intercept else None
        # Whatever the family, Poisson's equations have the solution that all equations of means have.
        counts = PoissonLoss(loss.offset, loss.least, math.exp(min(-loss.offset, 0.0)))
        # Means are those of the largest exposure times the exposure, which rows have nothing to do with on average.
        design = NormalDesign(gram, constant, n, loss=replace(counts, unit=counts.unit / self._exposure))
        theta = self._start(np.zeros(1))
        prior = Prior(theta, self._at.matrix @ self._at.matrix.T / t.usual_log_odds**2)
        usual = float(ndtri(0.5 + 0.5 * self._rank))
        least = max(t.least_residual_room, t.usual_reach / usual)
        for number, share in enumerate(gradients, 1):
            model = LogLinkModel(self._beta(theta), counts)
            model = replace(model, clip=least * self._derivative_size(model, number))
            what = f"the gradient of {self._size:,} coefficients before step {number}"
            gradient, deviation = self._gradient(what, share, model, weighing, norm * model.clip)
            theta = design.solve(theta, gradient, deviation, prior)
        model = LogLinkModel(self._beta(theta), loss)
        clip, bound = self._last_clip(model, norm, last, usual, least)
        model = replace(model, clip=clip)
        grid = t.trace_grid[0] * self._width, t.trace_grid[1] * self._width
        traces = Traces(self._at, self._loss, model)
        trace = self._quantile("a large quantile of the information of rows", traces, grid, t.trace_quantile)
        trace *= t.trace_room * shares.trace_room
        final = ScoreWeighing(model, bound, trace)
        what = f"the information matrix of {self._size:,} coefficients"
        information, noise = self._information(what, shares.information, model, final, trace)
        span = Span.of(self._whole(), information, self._threshold(noise))
        # Without what is not identified; weights are functions of where the gradient is taken.
        kept = span.project(theta.ravel()).reshape(theta.shape) if span.information.size else theta
        lost = design.size(theta - kept)
        model = replace(model, coefficients=self._beta(kept))
        what = f"the gradient of {self._size:,} coefficients before the last step"
        final = replace(final, model=model)
        gradient, deviation = self._gradient(what, last, model, final, bound)
        step = -(span.inverse @ gradient.ravel())
        scores, of_scores = self._scores(model, final, bound)
        theta, length = kept + step.reshape(theta.shape), design.size(step.reshape(theta.shape))
        far = length > t.longest_last_step or length * design.deviation(theta) > t.longest_curved_step
        far = far or lost > t.most_left_out
        noises = Noise(noise, deviation, of_scores)
        found = self._estimate(theta, step, span, scores, noises, t.largest_log_odds)
        return found if found.errors is None or not far else found.without_errors("far")

    def _derivative_size(self, model: LogLinkModel, number: int) -> float:
        """A large quantile of derivatives."""
        what = f"a large quantile of derivatives before step {number}"
        grid = TUNING.residual_grid[0], max(model.loss.lipschitz(math.inf), TUNING.residual_grid[1])
        return self._quantile(what, Residuals(self._at, self._loss, model), grid, self._rank)

    def _last_clip(
        self, model: LogLinkModel, norm: float, share: float, usual: float, least: float
    ) -> tuple[float, float]:
        """The clip of derivatives in the last gradient, and the bound of scores.

        Weights of rows keep what is estimated, clipped derivatives do not: where more than a few are clipped, none is,
        and only long and steep rows count less.
        """
        t, n, mu = TUNING, self._n_records, self._mu
        size = self._derivative_size(model, len(self._shares.gradients))
        space = min(
            math.sqrt(t.noise_share * n * share) * mu,
            math.sqrt(t.score_noise * n * mu * math.sqrt(self._shares.scores)),
        )
        clip = size * max(least, t.least_link_room, space / (usual * norm))
        open_clip = model.loss.lipschitz(math.inf)
        released = self._clipped_share(replace(model, clip=clip))
        if clip < open_clip and released <= t.most_clipped / math.sqrt(n):
            return clip, norm * clip
        steepest = float(model.loss.steepest(np.zeros(1))[0])
        return math.inf, norm * max(min(clip, open_clip), min(t.open_room * steepest, open_clip))

    def _clipped_share(self, model: LogLinkModel) -> float:
        """The released share of records with a clipped derivative, with one deviation of its noise."""

        def terms(unit: int) -> ClippedDerivatives:
            return ClippedDerivatives(self._at, self._loss, model, unit)

        counts, deviation = self._releases.counts("the number of clipped derivatives", self._shares.clipped, terms, 1)
        return (float(counts[0]) + deviation) / self._n_records

    def _shorten_tails(self, moments: FloatArray) -> None:
        """Change to coordinates in which long tails of columns are shorter, so that noise along them is larger.

        Long rows weigh less. If the model does not hold, a column whose tail weighs less has another coefficient. A
        row's influence on a coefficient is its entry along a column of A.
        """
        t, n = TUNING, self._n_records
        size = math.sqrt(max(float(np.median(np.linalg.eigvalsh(moments))), 0.0) / n)
        if size <= 0.0:
            return
        columns = self._at.matrix.T
        directions = columns / np.linalg.norm(columns, axis=1)[:, None]
        turned = self._coordinates(directions @ self._at.matrix / size)

        def terms(norm: int) -> LongRows:
            return LongRows(turned, self._loss, t.tail_levels, t.tail_entries, norm)

        n_values = len(t.tail_levels) * self._width
        what = f"counts of long rows along {self._width:,} directions"
        sums, deviation = self._releases.moments(what, t.tail_share, terms, n_values, _FINEST_VECTOR)
        unit = math.sqrt(t.tail_entries) / n
        shares = unit * sums.reshape(len(t.tail_levels), self._width)
        reaches = tail_reaches(shares, unit * deviation, t.tail_levels, t.tail_rank, t.steep_tail)
        factors = np.maximum(t.tail_reach / np.maximum(reaches, t.tail_reach), t.least_tail)
        if float(factors.min()) < 1.0:
            self._has_tails = True
            self._at = self._coordinates(shorten(directions, factors) @ self._at.matrix)

    def _shortened(self, weighing: LengthWeighing) -> tuple[FloatArray, float]:
        """The Gram matrix of rows and the deviation of its noise, in coordinates that do not stretch rare categories.

        Whitening stretches a direction that lives in few rows until weights take it back.
        """
        shares, t = self._shares, TUNING
        gram, noise = self._gram(f"the Gram matrix of {self._width:,} columns", shares.last_gram, weighing)
        values, vectors = np.linalg.eigh(gram)
        turned = self._coordinates(vectors.T @ self._at.matrix)

        def terms(norm: int) -> ClippedSquares:
            return ClippedSquares(turned, self._loss, weighing, norm)

        what = f"squares along {self._width:,} directions, of clipped rows"
        sums, _ = self._releases.moments(what, t.rare_share, terms, self._width, _FINEST_VECTOR)
        factors = rare_directions(values, noise, sums * weighing.trace, t.least_rare, t.most_rare)
        if float(factors.min()) >= t.hardly_rare:
            return gram, noise
        self._at = self._coordinates(factors[:, None] * turned.matrix)
        what = f"the Gram matrix of {self._width:,} columns, with shorter rows"
        return self._gram(what, shares.last_gram, weighing)

    def _threshold(self, noise: float) -> float:
        """What an eigenvalue has to exceed to be clear of noise of a deviation."""
        return noise_norm(noise, self._size) + noise

    def _label_threshold(self, information: FloatArray, noise: float) -> float:
        """The same where the design is known to have directions: only those below it can be noise alone."""
        whole = self._threshold(noise)
        n_doubtful = max(int(np.count_nonzero(np.linalg.eigvalsh(information) <= whole)), 1)
        return min(whole, max(TUNING.label_threshold * noise, noise_norm(noise, n_doubtful) + noise))

    def _estimate(
        self,
        theta: FloatArray,
        step: FloatArray,
        span: Span,
        scores: FloatArray,
        noise: Noise,
        most: float,
        uncertainty: FloatArray | float = 0.0,
    ) -> WhitenedEstimate:
        shown = self._shown()
        coefficients = self._of_classes(self._beta(theta))
        if self._coding is not None:
            coefficients = coefficients - coefficients[0]
        if self._intercept:
            coefficients[:, -1] += self._shift
        if not span.information.size:
            return WhitenedEstimate(
                coefficients, None, np.zeros(shown.shape[1], dtype=bool), np.eye(shown.shape[1]), "noise"
            )
        errors = errors_of(self._whole(), shown, span, step, scores, noise)
        errors = replace(errors, allowance=most * np.hypot(errors.allowance, uncertainty))
        clarity = 1.0 if self._link is not None else TUNING.least_clarity
        if self._labels:
            clarity = TUNING.least_label_clarity
        estimable = errors.estimable(TUNING.most_allowance, TUNING.least_degrees, clarity)
        if not self._labels and self._link is None and self._intercept and self._releases.private:
            # Residuals are clipped, and a skewed tail would move the constant.
            estimable[-1] = False
        return WhitenedEstimate(coefficients, errors, estimable, shown.T @ span.left_out)

    # ---- without noise

    def run_noiseless(self) -> WhitenedEstimate:
        """Newton's method in coordinates of the exact Gram matrix: maximum likelihood, and its sandwich."""
        constants = self._constants(0.5 * self._releases.remaining)
        remaining = self._releases.remaining
        numbers = NumberLoss(np.zeros((1, self._width)))
        gram, _ = self._noiseless_information(numbers, 0.0)
        values, vectors = np.linalg.eigh(gram)
        largest = max(float(values[-1]), 1e-300)
        # Directions of nothing but rounding stay as they are: stretching them would cost the others bits.
        shares = np.where(values > TUNING.least_eigenvalue * largest, values / largest, 1.0)
        self._at = self._coordinates((vectors / np.sqrt(shares)) @ vectors.T)
        theta = self._start(constants)
        # Labels that are nearly certain have no information left, and separate the classes.
        threshold = TUNING.least_eigenvalue * largest
        steepest = NumberLoss(np.zeros((1, self._width)))
        for _ in range(TUNING.noiseless_steps):
            model = self._model(theta)
            # The curvature of Huber's loss is that of the residuals within, and steps by it may not end.
            information, _ = self._noiseless_information(model if self._bend is None else steepest, 0.0)
            span = Span.of(self._whole(), information, threshold)
            bound = self._largest_score(model)
            norm = 1 << (_SUM_BITS - self._n_records.bit_length())
            sums = self._source.total(ScoreSum(self._at, self._loss, model, Weighing(), bound, norm))
            step = -(span.inverse @ (sums * (bound / norm)))
            if self._link is not None:
                # Exponentials are followed as far as they are nearly straight.
                reach = float(np.abs(step @ self._at.matrix).sum())
                step = step * min(1.0, TUNING.longest_noiseless_step / max(reach, 1e-300))
            theta = theta + step.reshape(theta.shape)
            if float(np.abs(step).max()) <= TUNING.least_step * (1.0 + float(np.abs(theta).max())):
                break
        model = self._model(theta)
        information, _ = self._noiseless_information(model, 0.5 * remaining)
        span = Span.of(self._whole(), information, threshold)
        scores, _ = self._scores(model, Weighing(), self._largest_score(model))
        found = self._estimate(theta, np.zeros(self._size), span, scores, Noise(0.0, 0.0, 0.0), TUNING.largest_log_odds)
        # Without noise the null space is exact but for rounding.
        shares = np.square(found.left_out).sum(axis=1)
        exact = shares <= math.sqrt(TUNING.least_eigenvalue)
        errors = found.errors
        n_collinear = self._plan.n_outputs * int(np.count_nonzero(values <= TUNING.least_eigenvalue * largest))
        if errors is None or ((self._labels or self._link is not None) and span.n_left_out > n_collinear):
            # Classes are separated where labels are certain, and there is no maximum of the likelihood; nor for counts
            # that are all zero in a category.
            return found.without_errors("noise")
        return replace(found, errors=replace(errors, allowance=np.zeros_like(errors.allowance)), estimable=exact)

    def _noiseless_information(self, model: LocalLoss, share: float) -> tuple[FloatArray, float]:
        what, trace = f"the information matrix of {self._size:,} coefficients", self._largest_length() ** 2
        if isinstance(model, LogLinkModel):
            trace *= max(model.loss.smoothness, 1.0)
        if share:
            return self._information(what, share, model, Weighing(), trace)
        row_squared = 1 << self._square_bits
        sums = self._source.total(InformationSum(self._at, self._loss, model, Weighing(), trace, row_squared))
        return sums.astype(np.float64) * (trace / MATRIX_SCALE**2 / row_squared), 0.0

    def _largest_length(self) -> float:
        """A bound on the norm of u, since no entry of z is larger than one."""
        return float(np.linalg.norm(np.abs(self._at.matrix).sum(axis=1)))

    def _largest_score(self, model: LocalLoss) -> float:
        steepest = math.sqrt(2.0) if self._labels else 1.0 + float(np.abs(model.coefficients).sum())
        if self._link is not None:
            steepest = self._link.lipschitz(math.inf)
        return steepest * self._largest_length()


# ---- Fits of the default model with standard errors.
# Of the records one half, drawn at random without looking at them, chooses columns. The other half estimates their
# coefficients. Columns are hence independent of the records that tell their coefficients, and what is estimated is the
# population's coefficients of these columns. Where the caller fixed the columns there is nothing to choose, and all
# records estimate.
#
# Privacy. One record is in one half. If neighbours differ in the first half, the second half acts on equal data and on
# what the first half released. If they differ in the second half, the first half's releases have the same law. So the
# cost is the larger of the two, and each half may spend the whole budget (:class:`taciturn.events.ParallelEvent`).


@dataclass(frozen=True, slots=True, eq=False)
class InferenceResult:
    """What a fit with standard errors releases, in mapped units.

    ``coefficients``, of shape (n_outputs, n_features + 1), are over all features, the intercept last; ``columns`` are
    those of the model. ``estimate`` is that of the columns. ``n_steps`` counts those of both halves. ``diagnoses`` are
    what releases say against bounds or classes.
    """

    coefficients: FloatArray
    columns: IndexArray
    estimate: WhitenedEstimate
    n_steps: int
    releases: tuple[Release, ...]
    diagnoses: tuple[Diagnosis, ...] = ()


@one_thread()
def run_inference(plan: InferencePlan, source: Source, stream: Stream) -> InferenceResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    first_budget, second_budget = plan.open_filters()
    problem, n_steps = plan.start.problem, 0
    spends: tuple[Release, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    second = source
    if plan.split:
        first, second = _halves(plan, source, stream)
        with _half(plan, 1, first):
            run = SparseRun(plan.start, first, stream.spawn("start"), first_budget)
            model = run.fit()
        columns = np.arange(problem.n_features) if model.columns is None else model.columns
        n_steps, diagnoses = model.n_steps, run.releases.diagnoses
        spends = list_spends(first_budget.spent(), half=1, diagnoses=diagnoses)
    else:
        fixed = plan.start.columns
        columns = np.arange(problem.n_features) if fixed is None else np.array(fixed, dtype=np.intp)
    with _half(plan, 2, second):
        releases = Releases(second_budget, problem.relation, second, stream.spawn("step"))
        second = count_rows(plan.start, releases)
        if plan.start.weighted:
            # In place of their number.
            whole = plan.start.counting(plan.n_step_rows)
            start = count_weights(whole, releases, SPARSE_TUNING.weight_share)
            plan = replace(plan, start=start, n_step_rows=start.problem.n_records)
        if columns.size or problem.intercept:
            estimate = estimate_columns(plan, second, releases, second_budget.mu, columns)
        else:
            # There is nothing to estimate, and the budget is spent all the same.
            release_constant(plan.start, releases, second_budget.remaining)
            empty = np.zeros((problem.n_outputs, 0))
            estimate = WhitenedEstimate(empty, None, np.zeros(0, dtype=bool), np.zeros((0, 0)), "empty")
    # What both halves say is told once.
    told = {each.kind for each in diagnoses}
    diagnoses += tuple(each for each in releases.diagnoses if each.kind not in told)
    spends += list_spends(second_budget.spent(), half=2 if plan.split else None, diagnoses=releases.diagnoses)
    coefficients = np.zeros((problem.n_outputs, problem.n_features + 1))
    coefficients[:, columns] = estimate.coefficients[:, : columns.size]
    if problem.intercept:
        coefficients[:, -1] = estimate.coefficients[:, -1]
    return InferenceResult(coefficients, columns, estimate, n_steps + 1, spends, diagnoses)


def estimate_columns(
    plan: InferencePlan, source: Source, releases: Releases, mu: float, columns: IndexArray
) -> WhitenedEstimate:
    """Estimate the coefficients of some columns for the whole budget of ``releases``, a Gaussian parameter of mu."""
    estimation = _Estimation(plan, source, releases, mu, columns)
    return estimation.run() if releases.private else estimation.run_noiseless()


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
