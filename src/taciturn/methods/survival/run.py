r"""Fits of hazards that are constant between cuts: first hazards, coordinates, Newton steps, and the sandwich.

Numbers of records by interval and way of exit give hazards that are the same for all records. In whitened coordinates
(:mod:`~taciturn.methods.survival.hazards`) three Newton steps follow, each with an information matrix and a gradient of
its own: the information of survival data depends on where it is taken, by the logarithmic link and because records at a
high hazard leave early. The last step is the estimate, with the covariance of
:mod:`~taciturn.methods.inference.run`.

Features are centred by released means, so that logarithms of hazards hardly depend on coefficients. What is not
identified, such as a hazard of an interval without events, stays at its start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray, IndexArray
from taciturn.data.survival import EXITS
from taciturn.engines.interface import Source
from taciturn.losses import SquaredLoss
from taciturn.methods.descent import one_thread
from taciturn.methods.inference.algebra import Errors, Noise, Span, Whitening, errors_of, noise_norm
from taciturn.methods.inference.plan import TUNING as WHITENING
from taciturn.methods.inference.run import WhitenedEstimate
from taciturn.methods.inference.whitened import (
    MATRIX_SCALE,
    Coordinates,
    InformationSum,
    Lengths,
    LengthWeighing,
    NumberLoss,
    Weighing,
)
from taciturn.methods.releases import Releases, list_spends
from taciturn.methods.sums import CumulativeCounts, RowStatistic
from taciturn.methods.survival.curve import ExitCounts
from taciturn.methods.survival.hazards import (
    HazardInformation,
    HazardModel,
    HazardScore,
    HazardScoreProducts,
    HazardWeighing,
    InformationBounds,
    ScoreBounds,
    contrasts_of,
)
from taciturn.methods.survival.plan import TUNING, SurvivalPlan
from taciturn.privacy.claim import Release

# The integer for a vector at its bound: sums over 2**26 records have room for it.
_FINEST_VECTOR = 1 << 34
# Without noise, bits of sums over records, and of squared norms in them.
_SUM_BITS, _SQUARE_BITS = 61, 46
# Exponents of the grid on which bounds are searched for then.
_POWERS = -40, 120
_LOSS = SquaredLoss()


@dataclass(frozen=True, slots=True, eq=False)
class SurvivalResult:
    """What a fit releases: coefficients of features in [-1, 1] and hazards where all of them are zero.

    ``coefficients`` are over all features. ``exits`` are the numbers of records by interval and way of exit, and
    ``deviation`` is that of their noise. ``estimate`` is that of the ``columns`` of the model.
    """

    coefficients: FloatArray
    hazards: FloatArray
    exits: FloatArray
    deviation: float
    columns: IndexArray
    estimate: WhitenedEstimate
    releases: tuple[Release, ...]
    n_steps: int


@one_thread()
def run_survival(plan: SurvivalPlan, cuts: tuple[float, ...], source: Source, stream: Stream) -> SurvivalResult:
    """Spend the budget of the plan on the records of a source, whose targets are signed times."""
    budget = plan.open_filter()
    releases = Releases(budget, plan.relation, source, stream.spawn("hazards"))
    fit = _Hazards(plan, cuts, source, releases, budget.mu)
    estimate, n_steps = fit.run() if releases.private else fit.run_noiseless()
    n_columns = plan.n_columns
    columns = np.arange(n_columns) if plan.columns is None else np.array(plan.columns, dtype=np.intp)
    coefficients = np.zeros(plan.n_features)
    coefficients[columns] = estimate.coefficients[0, :n_columns]
    return SurvivalResult(
        coefficients,
        fit.hazards(estimate.coefficients[0]),
        fit.exits,
        fit.deviation,
        columns,
        _of_columns(estimate, n_columns),
        list_spends(budget.spent()),
        n_steps,
    )


def _of_columns(estimate: WhitenedEstimate, n_columns: int) -> WhitenedEstimate:
    """The part of an estimate that is about the columns."""
    errors = estimate.errors
    if errors is not None:
        errors = Errors(
            *(
                values[:n_columns]
                for values in (errors.sampling, errors.privacy, errors.degrees, errors.allowance, errors.clarity)
            )
        )
    return replace(
        estimate,
        coefficients=estimate.coefficients[:, :n_columns],
        errors=errors,
        estimable=estimate.estimable[:n_columns],
        left_out=estimate.left_out[:n_columns],
    )


class _Hazards:
    """The releases of a fit and its solution.

    Coefficients theta belong to whitened features, a constant and contrasts of intervals; beta to centred features, the
    constant and contrasts.
    """

    def __init__(
        self, plan: SurvivalPlan, cuts: tuple[float, ...], source: Source, releases: Releases, mu: float
    ) -> None:
        self._plan, self._cuts, self._source, self._releases, self._mu = plan, cuts, source, releases, mu
        self._columns = None if plan.columns is None else np.array(plan.columns, dtype=np.intp)
        self._width = plan.n_columns + 1
        self._contrasts = np.zeros((len(cuts), 0))
        self._lengths = np.diff(cuts, prepend=0.0)
        self._at = self._coordinates(np.eye(self._width))
        self._first_logs = np.zeros(len(cuts))
        self.exits, self.deviation = np.zeros((len(cuts), EXITS)), 0.0

    def _coordinates(self, matrix: FloatArray) -> Coordinates:
        return Coordinates.of(matrix, self._columns, intercept=True)

    # ---- coefficients in their several forms

    @property
    def _size(self) -> int:
        return self._width + int(self._contrasts.shape[1])

    @property
    def _whole(self) -> FloatArray:
        """Coordinates of centred features, the constant and contrasts together."""
        matrix = np.eye(self._size)
        matrix[: self._width - 1, : self._width - 1] = self._at.matrix[:-1, :-1]
        return matrix

    def _model(self, theta: FloatArray) -> HazardModel:
        coefficients: FloatArray = theta[None, : self._width] @ self._at.matrix
        logs = self._first_logs + self._contrasts @ theta[self._width :]
        return HazardModel(self._cuts, coefficients, logs, self._contrasts)

    def hazards(self, beta: FloatArray) -> FloatArray:
        """Hazards of a record whose features are all zero."""
        n_columns = self._width - 1
        # Rows of the coordinates are those of features less their centre.
        shift = np.linalg.solve(self._at.matrix[:-1, :-1], self._at.matrix[:-1, -1])
        logs = self._first_logs + self._contrasts @ beta[self._width :]
        constant = beta[n_columns] + float(shift @ beta[:n_columns])
        with np.errstate(over="ignore"):
            rates: FloatArray = np.exp(np.clip(logs + constant, -700.0, 700.0)) / self._lengths
        return np.minimum(rates, np.finfo(np.float64).max)

    # ---- releases

    def _quantile(self, what: str, statistic: RowStatistic, grid: tuple[float, float], q: float) -> float:
        t = TUNING
        return self._releases.quantile(
            what, t.quantile_share, statistic, *grid, quantile=q, falls=True, ratio=t.grid_ratio
        )

    def _start(self, share: float) -> None:
        """Hazards that are the same for all records, from numbers of exits."""
        self.exits, self.deviation = self._exit_counts(share)
        at_risk = np.cumsum(self.exits.sum(axis=1)[::-1])[::-1]
        noise = self.deviation * np.sqrt(EXITS * np.arange(len(self._cuts), 0, -1))
        events = np.maximum(self.exits[:, 0], self.deviation if self._releases.private else TUNING.least_events)
        exposed = np.maximum(at_risk - 0.5 * (self.exits[:, 0] + self.exits[:, 1]), np.maximum(noise, 1.0))
        self._first_logs = np.log(events / exposed)

    def _clear_contrasts(self) -> FloatArray:
        """Contrasts of intervals, of which those that have too few events for the last matrix share one."""
        t, model = TUNING, self._model(np.zeros(self._width))
        what = "a large quantile of possible information, for contrasts of intervals"
        trace = self._quantile(what, InformationBounds(self._at, _LOSS, model), t.bound_grid, t.bound_quantile)
        noise = trace * t.trace_room * (1.0 + t.contrast_norm**2 / self._width) * self._plan.matrix_noise
        wanted = t.contrast_clarity * (noise_norm(noise, self._plan.size) + noise) / t.contrast_norm**2
        events = np.maximum(self.exits[:, 0], self.deviation)
        return contrasts_of(events, _grouped(events, wanted), t.contrast_norm)

    def _exit_counts(self, share: float) -> tuple[FloatArray, float]:
        n_intervals = len(self._cuts)
        what = "numbers of records by interval and way of exit"
        counts, deviation = self._releases.counts(
            what, share, lambda unit: ExitCounts(self._cuts, unit), EXITS * n_intervals
        )
        return counts.reshape(n_intervals, EXITS), deviation

    def _gram(self, what: str, share: float, weighing: LengthWeighing) -> tuple[FloatArray, float]:
        """The Gram matrix of weighted rows."""
        numbers, trace = NumberLoss(np.zeros((1, self._width))), weighing.trace

        def terms(row_squared: int) -> InformationSum:
            return InformationSum(self._at, _LOSS, numbers, weighing, trace, row_squared)

        norm = math.sqrt(trace) / MATRIX_SCALE
        return self._releases.outer_products(what, share, terms, self._width, norm, finest=1 << _SQUARE_BITS)

    def _information(self, what: str, share: float, weighing: HazardWeighing, trace: float) -> tuple[FloatArray, float]:
        """The information matrix and the deviation of its noise."""

        def terms(row_squared: int) -> HazardInformation:
            return HazardInformation(self._at, _LOSS, weighing.model, weighing, trace, row_squared)

        norm = math.sqrt(trace) / MATRIX_SCALE
        return self._releases.outer_products(what, share, terms, self._size, norm, finest=1 << _SQUARE_BITS)

    def _gradient(self, what: str, share: float, weighing: HazardWeighing, bound: float) -> tuple[FloatArray, float]:
        """The gradient and the deviation of its noise."""

        def terms(norm: int) -> HazardScore:
            return HazardScore(self._at, _LOSS, weighing.model, weighing, bound, norm)

        sums, deviation = self._releases.moments(what, share, terms, self._size, _FINEST_VECTOR)
        return bound * sums, bound * deviation

    def _scores(self, weighing: HazardWeighing, bound: float) -> tuple[FloatArray, float]:
        """The matrix of scores, for all that remains, and the deviation of its noise."""

        def terms(row_squared: int) -> HazardScoreProducts:
            return HazardScoreProducts(self._at, _LOSS, weighing.model, weighing, bound, row_squared)

        what, remaining = f"the matrix of scores of {self._size:,} coefficients", self._releases.remaining
        norm = bound / MATRIX_SCALE
        return self._releases.outer_products(what, remaining, terms, self._size, norm, finest=1 << _SQUARE_BITS)

    # ---- the fit

    def run(self) -> tuple[WhitenedEstimate, int]:
        """Spend the whole budget."""
        plan, t, of = self._plan, TUNING, WHITENING
        self._start(t.exit_share)
        whitening = Whitening.start(self._width)
        for number in range(1, plan.rounds + 1):
            root = math.sqrt(self._width)
            grid = t.length_grid[0] * root, t.length_grid[1] * root
            what = f"a quantile of row norms before Gram matrix {number}"
            norm = self._quantile(what, Lengths(self._at, _LOSS), grid, t.whitening_quantile)
            what = f"Gram matrix {number} of {self._width:,} columns, for coordinates"
            gram, deviation = self._gram(what, plan.gram_share, LengthWeighing(norm, plan.room))
            whitening = whitening.refine(gram, deviation, of.most_stretch, of.longest_stretch, of.stretch_doubt)
            self._at = self._coordinates(whitening.matrix)
        self._at = self._coordinates(_centred(whitening.matrix))
        self._contrasts = self._clear_contrasts()
        theta, lost = np.zeros(self._size), 0.0
        of_last = 0.0 if not plan.inference else t.score_share
        for number, (matrix_share, gradient_share) in enumerate(plan.step_shares, 1):
            is_last = number == len(plan.step_shares)
            model = self._model(theta)
            what = f"a large quantile of possible scores before step {number}"
            bound = self._quantile(what, ScoreBounds(self._at, _LOSS, model), t.bound_grid, t.bound_quantile)
            what = f"a large quantile of possible information before step {number}"
            trace = self._quantile(what, InformationBounds(self._at, _LOSS, model), t.bound_grid, t.bound_quantile)
            trace *= t.trace_room
            what = f"the information matrix of {self._size:,} coefficients before step {number}"
            information, noise = self._information(what, matrix_share, HazardWeighing(model, bound, trace), trace)
            span = Span.of(self._whole, information, noise_norm(noise, self._size) + noise)
            if is_last and span.information.size:
                # Without what is not identified; weights are functions of where the gradient is taken.
                kept = span.project(theta)
                lost = float(np.linalg.norm((theta - kept)[: self._width]))
                # What would move margins by much is kept for the prediction, which then has no intervals.
                theta = kept if lost <= t.most_left_out else theta
            weighing = HazardWeighing(self._model(theta), bound, trace)
            what = f"the gradient of {self._size:,} coefficients before step {number}"
            share = self._releases.remaining - of_last if is_last else gradient_share
            gradient, deviation = self._gradient(what, share, weighing, bound)
            step = -(span.inverse @ gradient)
            length = float(np.linalg.norm(step[: self._width]))
            if not is_last:
                step = step * min(1.0, t.longest_step / max(length, 1e-300))
            theta = theta + step
        if not plan.inference:
            return self._estimate(theta), len(plan.step_shares)
        scores, of_scores = self._scores(weighing, bound)
        found = self._estimate(theta, step, span, scores, Noise(noise, deviation, of_scores))
        # A long step misses what curvature changes on the way.
        far = length > t.longest_last_step or lost > t.most_left_out
        return found if found.errors is None or not far else found.without_errors("far"), len(plan.step_shares)

    def _estimate(
        self,
        theta: FloatArray,
        step: FloatArray | None = None,
        span: Span | None = None,
        scores: FloatArray | None = None,
        noise: Noise | None = None,
    ) -> WhitenedEstimate:
        beta, nothing = (theta @ self._whole)[None], np.zeros(self._size, dtype=bool)
        if step is None or span is None or scores is None or noise is None or not span.information.size:
            return WhitenedEstimate(beta, None, nothing, np.eye(self._size), "noise")
        t = TUNING
        errors = errors_of(self._whole, np.eye(self._size), span, step, scores, noise)
        errors = replace(errors, allowance=t.largest_log_hazards * errors.allowance)
        estimable = errors.estimable(t.most_allowance, t.least_degrees, t.least_clarity)
        return WhitenedEstimate(beta, errors, estimable, span.left_out)

    # ---- without noise

    def run_noiseless(self) -> tuple[WhitenedEstimate, int]:
        """Newton's method in coordinates of the exact Gram matrix: maximum likelihood, and its sandwich."""
        t, remaining = TUNING, self._releases.remaining
        self._start(0.2 * remaining)
        n_intervals = len(self._cuts)
        self._contrasts = contrasts_of(np.ones(n_intervals), np.arange(n_intervals), 1.0)
        trace = float(self._width)
        row_squared = 1 << _SQUARE_BITS
        numbers = NumberLoss(np.zeros((1, self._width)))
        gram = self._source.total(InformationSum(self._at, _LOSS, numbers, Weighing(), trace, row_squared))
        values, vectors = np.linalg.eigh(gram.astype(np.float64))
        largest = max(float(values[-1]), 1e-300)
        # Directions of nothing but rounding stay as they are: stretching them would cost the others bits.
        shares = np.where(values > t.least_eigenvalue * largest, values / largest, 1.0)
        self._at = self._coordinates(_centred((vectors / np.sqrt(shares)) @ vectors.T))
        theta, n_steps = np.zeros(self._size), 0
        while n_steps < t.noiseless_steps:
            n_steps += 1
            weighing, bound, trace = self._without_weights(theta)
            norm = 1 << (_SUM_BITS - max(self._plan.n_step_rows, 1).bit_length())
            sums = self._source.total(HazardScore(self._at, _LOSS, weighing.model, weighing, bound, norm))
            information = self._source.total(
                HazardInformation(self._at, _LOSS, weighing.model, weighing, trace, row_squared)
            ).astype(np.float64) * (trace / MATRIX_SCALE**2 / row_squared)
            span = self._exact_span(information)
            step = -(span.inverse @ (sums * (bound / norm)))
            length = float(np.linalg.norm(step))
            theta = theta + step * min(1.0, t.longest_step / max(length, 1e-300))
            if float(np.abs(step).max(initial=0.0)) <= t.least_step * (1.0 + float(np.abs(theta).max(initial=0.0))):
                break
        weighing, bound, trace = self._without_weights(theta)
        share = self._releases.remaining if not self._plan.inference else 0.5 * self._releases.remaining
        what = f"the information matrix of {self._size:,} coefficients"
        information, _ = self._information(what, share, weighing, trace)
        if not self._plan.inference:
            return self._estimate(theta), n_steps
        span = self._exact_span(information)
        scores, _ = self._scores(weighing, bound)
        found = self._estimate(theta, np.zeros(self._size), span, scores, Noise(0.0, 0.0, 0.0))
        if found.errors is None:
            return found, n_steps
        # Without noise the null space is exact but for rounding.
        exact = np.square(found.left_out).sum(axis=1) <= math.sqrt(t.least_eigenvalue)
        size = found.errors.allowance.size
        errors = replace(found.errors, allowance=np.zeros(size), degrees=np.full(size, math.inf))
        return replace(found, errors=errors, estimable=exact), n_steps

    def _exact_span(self, information: FloatArray) -> Span:
        largest = max(float(np.abs(np.diag(information)).max()), 1e-300)
        return Span.of(self._whole, information, TUNING.least_eigenvalue * largest)

    def _without_weights(self, theta: FloatArray) -> tuple[HazardWeighing, float, float]:
        """Weights of one, with bounds on scores and information that no record passes."""
        model = self._model(theta)
        statistics = ScoreBounds(self._at, _LOSS, model), InformationBounds(self._at, _LOSS, model)
        bound, trace = (self._maximum(statistic) for statistic in statistics)
        return HazardWeighing(model), bound, trace

    def _maximum(self, statistic: RowStatistic) -> float:
        """A power of two that no number of a statistic passes."""
        grid = tuple(2.0**k for k in range(*_POWERS))
        counts = self._source.total(CumulativeCounts(statistic, grid))
        return grid[min(int(np.searchsorted(counts[:-1], counts[-1])), len(grid) - 1)]


def _grouped(events: FloatArray, least: float) -> IndexArray:
    """Groups of neighbouring intervals that have so many events each, where there are as many."""
    groups, total, group = np.zeros(events.size, dtype=np.intp), 0.0, 0
    for place, number in enumerate(events):
        if total >= least and float(events[place:].sum()) >= least:
            group, total = group + 1, 0.0
        groups[place] = group
        total += float(number)
    return groups


def _centred(whitening: FloatArray) -> FloatArray:
    """Coordinates of features less their mean, of unit variance, and last of the constant, from those of all together.

    Whitening makes the second moment of rows a multiple of one: its inverse is known, and with it the mean.
    """
    precision = whitening.T @ whitening
    features, cross = precision[:-1, :-1], precision[:-1, -1]
    mean = -np.linalg.solve(features, cross)
    constant = max(float(precision[-1, -1] + cross @ mean), 1e-300)
    values, vectors = np.linalg.eigh(features / constant)
    root = (vectors * np.sqrt(np.maximum(values, 1e-300))) @ vectors.T
    matrix = np.eye(len(precision))
    matrix[:-1, :-1], matrix[:-1, -1] = root, -(root @ mean)
    return matrix
