"""Private gradient descent: its plan, its threads and its steps."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import brentq
from threadpoolctl import ThreadpoolController

from taciturn.core.rng import Stream
from taciturn.core.validation import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.privacy.mechanisms import GumbelTopK, RoundedGaussian

# ---- How one descent of the default model clips its records and how long it goes on, from public facts.
# A descent has p columns, the constant's among them, and spends a Gaussian parameter :math:`\mu_g` on gradients. Row
# and derivative are clipped together, to R times c, where R is a private quantile of the row norms and c a multiple of
# what a derivative typically is. Both *open* as noise falls below sampling error, so that the estimand is maximum
# likelihood (least squares) in the limit; until then a tighter clip needs less noise than it costs.
#
# Noise adds :math:`\sigma = R c / \mu_g` to the gradient, all steps together, whatever their number. What regularises
# is the *time* :math:`\tau`, the sum of the steps' lengths: a direction of curvature h is fitted to a share of :math:`1
# - e^{-h \tau}`, like a ridge penalty of :math:`1 / \tau`, and noise moves a weight by :math:`\tau \sigma` at most. A
# preconditioner shortens the way through steep directions and changes nothing else.
#
# In a direction without curvature nothing pulls back, and a descent is a random walk of its noise. A *damping*
# :math:`\rho` adds :math:`\rho w` to the gradient, so that the mean of the second half of the walk has a deviation of
# :math:`\sqrt 2 \sigma / \rho` instead of :math:`\sqrt{2/3} \tau \sigma`.

MOST_STEPS = 150
"""Steps of a descent with noise."""

LEAST_CLIP = 0.6
"""What residuals are clipped at while noise prevails, in units of their size."""

NOISELESS_STEPS = 500
"""Steps of a descent without privacy."""

LEAST_SKEWED_CLIP = 2.0
"""The same where targets are skewed, as counts and amounts are."""

# Damping by records times the Gaussian parameter per column. For numbers it grows less far: collinear columns that
# matter are told apart by it, and tall tables by whitened coordinates. Chosen by study_damping.
_DAMPING, _ENOUGH_TO_DAMP = 0.22, 25.0
_FEWER, _MORE = 1.5, 0.85
_MOST_OF_LABELS, _MOST_OF_NUMBERS = 40.0, 10.0
# How large weights usually are, in units of the size of targets over R.
_USUAL_OF_LABELS, _USUAL_OF_NUMBERS = 2.0, 0.5
# As many directions as these have weights of the typical size, whatever the others show.
_USUAL_DIRECTIONS = 3.0
# Steps are at least so many, as curvature changes on the way; so many where tables are large, and the last number
# where they are very large.
_LEAST_STEPS, _STEPS_OF_LARGE, _STEPS_OF_LARGEST = 8, 40, 24
# Entries that all steps with the same clips read together: with more of them steps are limited, first to those of
# large tables, then further.
_MANY_ENTRIES, _MOST_ENTRIES = 1.2e8, 5e8
_MOST_MOMENTUM, _MOST_ALONG = 0.9, 0.98
# Curvature falls on the way to a share of what is expected, where labels are nearly certain.
_LATE_CURVATURE = 0.25


@dataclass(frozen=True, slots=True)
class DescentRule:
    r"""Clips and time of a descent: R is the quantile ``norm_quantile`` of row norms.

    ``clip`` is c, in units of what a derivative typically is: one for labels, the residual size for numbers.
    ``time`` is :math:`\tau R^2 / \mu_g`. ``damping`` is :math:`\rho s / (\sigma R)` in directions without curvature, s
    being the size of targets, and ``typical`` how large weights usually are, in units of s / R.
    """

    norm_quantile: float
    clip: float
    time: float
    damping: float
    typical: float


def rule_for_labels(n_rows: int, mu: float, width: int, *, selects: bool = False) -> DescentRule:
    """The rule for derivatives of at most one, as those of the logistic loss are.

    A descent that selects columns ends before it follows directions of little curvature, where labels are nearly
    certain or rare; one that is used has to.
    """
    if math.isinf(mu):
        return DescentRule(1.0, math.inf, math.inf, 0.0, 1.0)
    signal = n_rows * mu / width
    clip = min(max(0.25 * (signal / 100.0) ** 0.6, 0.25), 1.0)
    time = 4.0 * min(signal ** (0.45 if signal > 1.0 else 0.3), 8.0 if selects else 40.0)
    damping = _damping(signal, _MOST_OF_LABELS)
    return DescentRule(_norm_quantile(n_rows, mu, width), clip, time, damping, _USUAL_OF_LABELS)


def rule_for_numbers(n_rows: int, mu: float, width: int, *, skewed: bool = False) -> DescentRule:
    """The rule for residuals; those of skewed targets are clipped later, since a clip moves what is estimated."""
    if math.isinf(mu):
        return DescentRule(1.0, math.inf, math.inf, 0.0, 1.0)
    clip = LEAST_CLIP * max(1.0, math.sqrt(n_rows * mu * mu / width / 20.0))
    clip = max(clip, LEAST_SKEWED_CLIP) if skewed else clip
    signal = n_rows * mu / (4.0 * width)
    time = min(max(1.5 * signal ** (0.35 if signal > 1.0 else 0.5), 0.1), 12.0)
    damping = _damping(n_rows * mu / width, _MOST_OF_NUMBERS)
    return DescentRule(_norm_quantile(n_rows, mu, width), clip, time / clip, damping, _USUAL_OF_NUMBERS)


def _damping(signal: float, most: float) -> float:
    """A strength of damping for records times the Gaussian parameter per column.

    Short descents are damped by their end. Where directions with information are clear of noise, others have none; but
    beyond a public number of records per column damping grows no more, so that it falls with the noise.
    """
    ratio = min(signal / _ENOUGH_TO_DAMP, most)
    return float(_DAMPING * ratio ** (_FEWER if ratio < 1.0 else _MORE))


def _norm_quantile(n_rows: int, mu: float, width: int) -> float:
    """The median at first; as the budget grows hardly any row is long."""
    return min(max(0.5, 1.0 - 50.0 * width / (n_rows * mu)), 0.98)


@dataclass(frozen=True, slots=True)
class StepRule:
    """So many steps of a length in units of one over the largest curvature, with momentum."""

    n_steps: int
    step: float
    momentum: float

    def momentum_along(self, curvatures: FloatArray) -> FloatArray:
        r"""Momentum by direction, of which one over ``curvatures`` is the longest step: none where steps are that long.

        With a step of a share r of it, :math:`(1 - \sqrt r)^2` converges fastest (Polyak 1964); more of it would only
        make noise and clipped gradients echo. Directions of little curvature get all of it.
        """
        share = np.minimum(_LATE_CURVATURE * self.step * curvatures, 1.0)
        return np.minimum(np.square(1.0 - np.sqrt(share)), self.momentum)


def step_rule(time: float, n_entries: float | None) -> StepRule:
    """Steps for a time over the largest curvature, infinite without privacy; fewer if each reads very many entries.

    Fewer steps have momentum. Where curvature is known along directions (``n_entries`` is not None), it is so large
    that the mean of the second half of the steps comes as far as without.
    """
    if math.isinf(time):
        return StepRule(NOISELESS_STEPS, 1.0, _MOST_MOMENTUM)
    most = float(MOST_STEPS)
    if n_entries is not None:
        limit = max(_MANY_ENTRIES / n_entries, min(_MOST_ENTRIES / n_entries, _STEPS_OF_LARGE), _STEPS_OF_LARGEST)
        most = min(limit, most)
    n_steps = round(min(max(math.ceil(time), _LEAST_STEPS), most))
    if time <= n_steps:
        return StepRule(n_steps, time / n_steps, 0.0)
    if n_entries is None:
        return StepRule(n_steps, 1.0, min(1.0 - n_steps / time, _MOST_MOMENTUM))
    return StepRule(n_steps, 1.0, _momentum_for(time, n_steps))


def _momentum_for(time: float, n_steps: int) -> float:
    """The momentum with which the mean of the second half of the steps reaches a share of the way like ``time`` steps.

    Under a constant gradient, of which steps without momentum go as far as their number.
    """
    numbers = np.arange(1, n_steps + 1)
    second = slice((n_steps - 1) // 2, None)
    plain = float(numbers[second].mean())

    def excess(momentum: float) -> float:
        ways = np.cumsum((1.0 - momentum**numbers) / (1.0 - momentum))
        return float(ways[second].mean()) / plain * n_steps - time

    return float(brentq(excess, 0.0, _MOST_ALONG)) if excess(_MOST_ALONG) > 0.0 else _MOST_ALONG


# ---- How many threads matrix products and compiled sums get.
# Products of small blocks are done sooner by one thread than they could be shared out: BLAS wakes all of its threads
# for them, which then wait at full speed. Where there are enough rows, they are shared out instead, a part to each
# thread, and every thread multiplies by itself. Sums of integers are the same for any number of threads.

# Multiplications that take about a tenth of a second.
_SMALL = 1e9
# Entries of a share that is worth a thread: about a millisecond of work.
_LEAST_SHARE = 1 << 21

# What may be used inside of one_thread, where BLAS is told to use one.
_allowed: ContextVar[int | None] = ContextVar("allowed threads", default=None)


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products in one thread, so that no worker computes otherwise than another."""
    before = _allowed.set(n_threads())
    try:
        with _thread_pools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _allowed.reset(before)


def one_thread_if_small(n_rows: int, n_columns: int) -> AbstractContextManager[Any]:
    """One thread for Gram matrices of this size, unless they are worth sharing."""
    return one_thread() if float(n_rows) * n_columns * n_columns < _SMALL else nullcontext()


def all_threads_if_large(n_columns: int) -> AbstractContextManager[Any]:
    """Inside of :func:`one_thread`, for a decomposition of so many columns: as many as outside if it is large."""
    if float(n_columns) ** 3 < _SMALL:
        return nullcontext()
    context: AbstractContextManager[Any] = _thread_pools().limit(limits=n_threads(), user_api="blas")
    return context


def n_threads() -> int:
    """The least of the processors of this process, ``OMP_NUM_THREADS`` and BLAS's limit; never a fact about data."""
    allowed = _allowed.get()
    if allowed is not None:
        return allowed
    stated = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    limits += [int(stated)] if stated.isdigit() else []
    limits += [pool.num_threads for pool in _thread_pools().lib_controllers if pool.user_api == "blas"]
    return max(1, min(limits))


def add_shares(part: Callable[[int, int], IntArray], n_rows: int, n_columns: int) -> IntArray:
    """The sum of ``part(start, stop)`` over shares of the rows, one to each thread; one share of a small table."""
    n_shares = min(n_threads(), max(1, n_rows * n_columns // _LEAST_SHARE))
    if n_shares == 1:
        return part(0, n_rows)
    edges = [n_rows * share // n_shares for share in range(n_shares + 1)]
    # Opened anew each time: threads that wait for work do not outlive a fork.
    with ThreadPoolExecutor(n_shares) as pool:
        # In the context of the caller, so that what it says of floating-point errors holds in every thread.
        shares = [pool.submit(copy_context().run, part, start, stop) for start, stop in pairwise(edges)]
        first, *others = (share.result() for share in shares)
    for other in others:
        first += other
    return first


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


# ---- The law of the errors that the noise of a descent leaves in its weights.
# Noise enters at every step, and what happens to it afterwards is known: the lengths of the steps, momentum, metric and
# average are public or released. Near the optimum a descent is linear, so that the errors are normal, and their
# variance is a sum over steps. Everything here is post-processing.


@dataclass(frozen=True, slots=True, eq=False)
class WeightNoise:
    """Variances, one or one each, of independent errors along orthonormal ``directions`` (None: the coordinates)."""

    variances: FloatArray
    directions: FloatArray | None

    def deviations(self, n_columns: int) -> FloatArray:
        """Standard deviations of the weights of the first columns."""
        if self.directions is None:
            return np.sqrt(np.broadcast_to(self.variances, n_columns))
        deviations: FloatArray = np.sqrt(np.square(self.directions[:n_columns]) @ self.variances)
        return deviations


@dataclass(frozen=True, slots=True, eq=False)
class LinearDescent:
    """A descent as if linear: per direction of a :class:`WeightNoise`, the step's factor and the gradient's change."""

    scales: FloatArray
    curvatures: FloatArray
    directions: FloatArray | None = None

    def noise(
        self, steps: Sequence[float], momentum: float | FloatArray, deviation: float, before: WeightNoise | None
    ) -> WeightNoise:
        """The law after so many steps with noise of a deviation on each coordinate, given that of their start.

        Momentum is that of all directions, or one number for each.
        """
        kept, added = propagate(steps, momentum, self.scales, self.curvatures)
        variances = deviation**2 * added
        if before is not None:
            variances = variances + np.square(kept) * before.variances
        return WeightNoise(variances, self.directions)


def propagate(
    steps: Sequence[float], momentum: float | FloatArray, scales: FloatArray, curvatures: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Per direction, what the mean of a linear descent's second half keeps of its start, and of noise of variance 1."""
    n_steps = len(steps)
    # The first row has the error of the start, row t + 1 that by the noise of step t: later rows are still zero.
    errors, velocities = np.zeros((2, n_steps + 1, scales.size))
    errors[0] = 1.0
    means, n_averaged = np.zeros_like(errors), 0
    for t, step in enumerate(steps):
        so_far = slice(t + 2)
        gradients = curvatures * errors[so_far]
        gradients[-1] += 1.0
        velocities[so_far] = momentum * velocities[so_far] - step * scales * gradients
        errors[so_far] += velocities[so_far]
        if 2 * t >= n_steps - 1:
            n_averaged += 1
            means[so_far] += (errors[so_far] - means[so_far]) / n_averaged
    return means[0], np.square(means[1:]).sum(axis=0)


# ---- Gradient descent on released sums: the one loop of all methods that make noisy gradient steps.
# One step is :math:`v \leftarrow \beta v - \eta \tilde g`, :math:`w \leftarrow \Pi(w + v)`, where :math:`\tilde g` is a
# released sum of clipped gradients and :math:`\Pi` a projection. All but the releases is post-processing. How much
# noise they add, and what that costs, is the plan's business.

# Deviations of noise that are not taken for curvature.
_DOUBT = 4.0
# Public offsets of proposals stay within this, which leaves room for sums beside them.
_LARGEST_OFFSET = 2.0**60


@dataclass(frozen=True, slots=True)
class Constraint:
    """What iterates are projected on: ``n_nonzero`` features, an L2 ball, both, or all; the intercept is free."""

    n_features: int
    n_nonzero: int | None = None
    radius: float | None = None

    def project(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray:
        """Thresholded among the known columns, then scaled into the ball; may change its argument."""
        kept = self.threshold(weights, known)
        if self.radius is not None:
            features = kept[:, : self.n_features]
            features *= min(1.0, self.radius / max(float(np.linalg.norm(features)), self.radius))
        return kept

    def threshold(self, weights: FloatArray, known: BoolArray | None = None) -> FloatArray:
        """The columns with the largest absolute sums among those known, and the intercept."""
        if self.n_nonzero is None:
            return weights
        d, k = self.n_features, self.n_nonzero
        kept = np.zeros_like(weights)
        kept[:, d:] = weights[:, d:]
        if known is not None and np.count_nonzero(known[:d]) <= k:
            columns = np.flatnonzero(known[:d])
        elif k >= d:
            columns = np.arange(d)
        else:
            # Peeling leaves no more than k, so all are known here.
            sizes = np.abs(weights[:, :d])
            sizes = sizes[0] if len(sizes) == 1 else sizes.sum(axis=0)
            columns = np.argpartition(sizes, d - k)[d - k :]
        kept[:, columns] = weights[:, columns]
        return kept


@dataclass(frozen=True, slots=True)
class Iterate:
    """Where step ``t`` begins, the released gradient there, and the columns of which it is known."""

    t: int
    weights: FloatArray
    gradient: FloatArray
    known: BoolArray


@dataclass(frozen=True, slots=True)
class CurvatureStep:
    """Steps from the released curvature along the first direction, adapted to what two released gradients show of it.

    The constraint keeps the columns along which the first step goes. ``curvature`` releases the curvature along a
    direction, as a share of the largest there can be, of which ``least_share`` is a lower bound. The step ``shortest``
    can never overshoot, and ``deviation`` is that of the noise of a coordinate of the gradient.
    """

    constraint: Constraint
    curvature: Callable[[FloatArray, Stream], float]
    least_share: float
    shortest: float
    deviation: float

    def length(self, step: float | None, here: Iterate, before: Iterate | None, stream: Stream) -> float:
        """One over the curvature, as far as it is known, after a step of length ``step`` from ``before``."""
        if step is None or before is None:
            direction = self.constraint.threshold(-here.gradient, here.known)
            norm = float(np.linalg.norm(direction))
            share = self.curvature(direction / norm if norm > 0.0 else direction, stream.spawn("curvature"))
            return self.shortest / min(max(share, self.least_share), 1.0)
        noise = self.deviation if here.t == 1 else math.inf
        return max(_adapted(step, here, before, noise), self.shortest)


@dataclass(frozen=True, slots=True)
class ShrinkingStep:
    """Steps of a guessed length, and one over the curvature as soon as two released gradients show more.

    Along noise a guess that is too long shows at once: the steepest direction grows until it prevails.
    """

    first: float

    def length(self, step: float | None, here: Iterate, before: Iterate | None, stream: Stream) -> float:
        """The step, after one of length ``step`` from ``before``; it never grows."""
        if step is None or before is None:
            return self.first
        # Noise lets curvature along a move seem larger by about this much.
        doubt = _DOUBT * math.sqrt(2.0 / here.gradient.size)
        shorter = _adapted(step, here, before, math.inf)
        return shorter if step > (1.0 + doubt) * shorter else step


@dataclass(frozen=True, slots=True, eq=False)
class Damping:
    r"""A quadratic penalty on weights along orthonormal ``directions`` (None: the coordinates), and what it pulls at.

    Directions without information would follow noise. ``strengths`` are for weights of a ``size`` that is typical;
    where the data show larger ones, by weights along directions that are ``clear``, from 0 to 1, the penalty is smaller
    in proportion to their squares. The last ``n_free`` coordinates are free.
    """

    strengths: FloatArray
    clear: FloatArray
    size: float
    n_free: int
    directions: FloatArray | None = None

    def at(self, weights: FloatArray) -> FloatArray:
        """The strengths along all directions."""
        if self.directions is None:
            return self.strengths
        return self._strengths(self._held(weights) @ self.directions)

    def _strengths(self, held: FloatArray) -> FloatArray:
        """The strengths, given weights along the directions."""
        along = np.square(held[0]) if len(held) == 1 else np.square(held).mean(axis=0)
        square = self.size**2
        typical = (_USUAL_DIRECTIONS * square + self.clear @ along) / (_USUAL_DIRECTIONS + float(self.clear.sum()))
        shrunk: FloatArray = self.strengths * min(1.0, float(square / typical))
        return shrunk

    def pull(self, weights: FloatArray) -> FloatArray:
        """The gradient of the penalty."""
        held = self._held(weights)
        if self.directions is None:
            return held * self.strengths
        along = held @ self.directions
        along *= self._strengths(along)
        return self._held(along @ self.directions.T)

    def _held(self, weights: FloatArray) -> FloatArray:
        """Weights with zero in the free coordinates."""
        held = weights.copy()
        held[:, held.shape[1] - self.n_free :] = 0.0
        return held


@dataclass(frozen=True, slots=True)
class GradientDescent:
    r"""The iteration, given the noise on sums, how long steps are and what iterates are projected on.

    The gradient is ``unit`` times the sums, and ``noise`` is None for none. ``step`` is :math:`\eta`,
    ``constraint`` :math:`\Pi` and ``momentum`` :math:`\beta`, in [0, 1), or a symmetric matrix with eigenvalues there.
    ``average`` returns the mean of the second half of the iterates rather than the last one. ``metric`` multiplies
    gradients: the inverse of a preconditioner, None for none. ``top_k`` is for peeling: it chooses the columns with the
    largest proposals, and only their sums and the intercept's are released; None releases all.
    """

    n_steps: int
    unit: float
    noise: RoundedGaussian | None
    step: float | CurvatureStep | ShrinkingStep
    constraint: Constraint
    momentum: float | FloatArray = 0.0
    average: bool = False
    metric: FloatArray | None = None
    top_k: GumbelTopK | None = None
    damping: Damping | None = None

    def run(
        self,
        sums: Callable[[FloatArray], IntArray],
        start: FloatArray,
        stream: Stream,
        watch: Callable[[float], None] | None = None,
    ) -> FloatArray:
        """The weights, one row per output, the intercept last; ``watch`` receives the length of each step.

        ``sums`` gives the exact sum of clipped gradients at some weights, and ``stream`` all noise.
        """
        current, velocity = start.copy(), np.zeros_like(start)
        mean, n_averaged = np.zeros_like(start), 0
        step, before = None if isinstance(self.step, CurvatureStep | ShrinkingStep) else self.step, None
        for t in range(self.n_steps):
            # From zero the proposal is a multiple of the sums whatever the step is.
            taken = self.unit if step is None else step * self.unit
            noisy, known = self.release(sums(current), current, taken, stream)
            noisy = np.multiply(noisy, self.unit, out=noisy)
            if self.damping is not None:
                noisy += self.damping.pull(current)
            here = Iterate(t, current, noisy, known)
            rule = self.step
            step = rule.length(step, here, before, stream) if isinstance(rule, CurvatureStep | ShrinkingStep) else rule
            if watch is not None:
                watch(step)
            move = -step * (here.gradient if self.metric is None else here.gradient @ self.metric)
            if isinstance(self.momentum, np.ndarray):
                velocity = velocity @ self.momentum + move
            else:
                velocity = self.momentum * velocity + move if self.momentum else move
            current, before = self.constraint.project(current + velocity, known), here
            if self.average and 2 * t >= self.n_steps - 1:
                n_averaged += 1
                mean += (current - mean) / n_averaged
        if not self.average:
            return current
        # A mean of projected weights is in the ball, which is convex, but not sparse.
        return mean if self.constraint.n_nonzero is None else self.constraint.project(mean)

    def release(self, sums: IntArray, current: FloatArray, unit: float, stream: Stream) -> tuple[FloatArray, BoolArray]:
        """Noisy sums at the iterate, zero where nothing was released, and the columns of which something was."""
        known = np.ones(sums.shape[1], dtype=bool)
        if self.noise is None:
            return sums.astype(np.float64), known
        if self.top_k is None:
            return self.noise.release(sums, stream.spawn("gradient")).astype(np.float64), known
        limit = _LARGEST_OFFSET / len(sums)
        offsets = np.rint(np.clip(current / unit, -limit, limit)).astype(np.int64)
        n_features = self.constraint.n_features
        scores = np.abs(offsets - sums).sum(axis=0)[:n_features]
        known[:n_features] = False
        known[self.top_k.release(scores, stream.spawn("columns"))] = True
        noisy = np.zeros(sums.shape)
        noisy[:, known] = self.noise.release(np.ascontiguousarray(sums[:, known]), stream.spawn("gradient"))
        return noisy, known


def columns_by_weight(weights: FloatArray) -> IndexArray:
    """Columns by the sum of absolute weights over outputs, the heaviest first; ties go to the lower column."""
    return np.argsort(-np.abs(weights).sum(axis=0), kind="stable")


def heaviest_columns(weights: FloatArray, k: int) -> IndexArray:
    """The k heaviest columns, in increasing order."""
    return np.sort(columns_by_weight(weights)[:k])


def _adapted(step: float, here: Iterate, before: Iterate, noise: float) -> float:
    """The step after a look at how the gradient changed along the last move, where both ends of it are known.

    It becomes one over the curvature seen: at once where that is more than assumed, and by at most a factor of four
    where it is less even with two standard deviations of its noise added. The latter is for the first move alone, whose
    curvature is known: there it is a sign of clipped derivatives, later it may be one of an unusual direction, and an
    infinite ``noise`` rules it out.
    """
    columns = np.flatnonzero((here.weights != before.weights).any(axis=0) & here.known & before.known)
    move = here.weights[:, columns] - before.weights[:, columns]
    size = float(np.sum(np.square(move)))
    if size == 0.0:
        return step
    seen = float(np.sum(move * (here.gradient[:, columns] - before.gradient[:, columns]))) / size
    at_most = seen + 2.0 * noise * math.sqrt(2.0 / size)
    if seen * step > 1.0:
        return 1.0 / seen
    return step if at_most * step >= 1.0 else min(1.0 / max(at_most, 0.25 / step), 4.0 * step)
