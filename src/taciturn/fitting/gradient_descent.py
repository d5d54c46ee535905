r"""Gradient descent on released sums: the one loop of all methods that make noisy gradient steps.

One step is :math:`v \leftarrow \beta v - \eta \tilde g`, :math:`w \leftarrow \Pi(w + v)`, where :math:`\tilde g` is a
released sum of clipped gradients and :math:`\Pi` a projection. All but the releases is post-processing. How much noise
they add, and what that costs, is the plan's business.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.core.rng import Stream
from taciturn.mechanisms import GumbelTopK, RoundedGaussian

__all__ = [
    "Constraint",
    "CurvatureStep",
    "GradientDescent",
    "ShrinkingStep",
    "columns_by_weight",
    "heaviest_columns",
]

# Deviations of noise that are not taken for curvature.
_DOUBT = 4.0
# Public offsets of proposals stay within this, which leaves room for sums beside them.
_LARGEST_OFFSET = 2.0**60


@dataclass(frozen=True, slots=True)
class Constraint:
    """What iterates are projected on: ``n_nonzero`` columns, an L2 ball, both, or all weights.

    Of the columns the first ``n_features`` count; a further one, the intercept, is never constrained.
    """

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
    """Steps of a length that is a guess, and one over the curvature as soon as two released gradients show more.

    Along noise, of which most directions consist, a guess that is too long shows at once: the steepest direction grows
    until it prevails.
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


@dataclass(frozen=True, slots=True)
class GradientDescent:
    r"""The iteration, given the noise on sums, how long steps are and what iterates are projected on.

    Parameters
    ----------
    n_steps : int
        Number of steps.
    unit : float
        The gradient is this times the sums.
    noise : RoundedGaussian or None
        The noise on sums that are released; None for none.
    step : float, CurvatureStep or ShrinkingStep
        :math:`\eta`.
    constraint : Constraint
        :math:`\Pi`.
    momentum : float, default=0.0
        :math:`\beta`, in [0, 1).
    average : bool, default=False
        Whether to return the mean of the second half of the iterates rather than the last one.
    metric : ndarray of shape (width, width), default=None
        What gradients are multiplied by: the inverse of a preconditioner. None: nothing.
    top_k : GumbelTopK, default=None
        Peeling: chooses the columns with the largest proposals, and only their sums and the intercept's are released.
        None: all are.
    """

    n_steps: int
    unit: float
    noise: RoundedGaussian | None
    step: float | CurvatureStep | ShrinkingStep
    constraint: Constraint
    momentum: float = 0.0
    average: bool = False
    metric: FloatArray | None = None
    top_k: GumbelTopK | None = None

    def run(
        self,
        sums: Callable[[FloatArray], IntArray],
        start: FloatArray,
        stream: Stream,
        watch: Callable[[float], None] | None = None,
    ) -> FloatArray:
        """The weights, one row per output, the intercept last.

        ``sums`` gives the exact sum of clipped gradients at some weights, and ``stream`` all noise. ``watch`` receives
        the length of each step.
        """
        current, velocity = start.copy(), np.zeros_like(start)
        mean, n_averaged = np.zeros_like(start), 0
        step, before = None if isinstance(self.step, CurvatureStep | ShrinkingStep) else self.step, None
        for t in range(self.n_steps):
            # From zero the proposal is a multiple of the sums whatever the step is.
            taken = self.unit if step is None else step * self.unit
            noisy, known = self.release(sums(current), current, taken, stream)
            here = Iterate(t, current, np.multiply(noisy, self.unit, out=noisy), known)
            rule = self.step
            step = rule.length(step, here, before, stream) if isinstance(rule, CurvatureStep | ShrinkingStep) else rule
            if watch is not None:
                watch(step)
            move = -step * (here.gradient if self.metric is None else here.gradient @ self.metric)
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
        """Noisy sums, zero where nothing was released, and the columns of which something was.

        The iterate is ``current``, and a step takes ``unit`` times the sums from it.
        """
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
