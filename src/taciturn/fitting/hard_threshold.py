r"""Gradient steps on clipped records, each followed by hard thresholding.

One step is :math:`w \leftarrow H_k(w - \eta\, \tilde g / n)` with :math:`\tilde g` a noisy version of
:math:`\sum_i \psi_i \tilde x_i`, an exact sum of integers (:mod:`~taciturn.fitting.clipped_records`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from taciturn.core.arrays import BoolArray, FloatArray, IntArray
from taciturn.core.rng import Stream
from taciturn.data.fixed_point import ONE
from taciturn.fitting.clipped_records import ClippedRecords
from taciturn.mechanisms import GumbelTopK, RoundedGaussian

__all__ = [
    "CurvatureRelease",
    "Descent",
    "GaussianRelease",
    "GradientRelease",
    "PeelingRelease",
]


# Public offsets of proposals stay within this, which leaves room for sums beside them.
_LARGEST_OFFSET = 2.0**60
# Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more along chosen ones.
_LEAST_CURVATURE = 1.3


class GradientRelease(Protocol):
    """How sums become public."""

    @property
    def noise(self) -> float:
        """Standard deviation of what is added to a sum."""

    def release(
        self, sums: IntArray, current: FloatArray, grain: float, stream: Stream
    ) -> tuple[FloatArray, BoolArray]:
        """Noisy sums, zero where nothing was released, and the columns of which something was.

        The iterate is ``current``, and a step takes ``grain`` times the sums from it.
        """


@dataclass(frozen=True, slots=True)
class GaussianRelease:
    """All sums with Gaussian noise, or without any.

    Parameters
    ----------
    mechanism : RoundedGaussian or None
        The noise; None for none.
    """

    mechanism: RoundedGaussian | None

    @property
    def noise(self) -> float:
        """Standard deviation of what is added to a sum."""
        return 0.0 if self.mechanism is None else 2.0**self.mechanism.log2_scale

    def release(
        self, sums: IntArray, current: FloatArray, grain: float, stream: Stream
    ) -> tuple[FloatArray, BoolArray]:
        """The sums with noise."""
        noisy = sums if self.mechanism is None else self.mechanism.release(sums, stream.spawn("gradient"))
        return noisy.astype(np.float64), np.ones(sums.shape[1], dtype=bool)


@dataclass(frozen=True, slots=True)
class PeelingRelease:
    """The columns with the largest proposals by Gumbel noise, then Gaussian noise on the sums of these alone.

    Parameters
    ----------
    top_k : GumbelTopK
        Chooses the columns.
    mechanism : RoundedGaussian
        The noise on the chosen sums.
    n_features : int
        Columns that compete; a further one, the intercept, is always released.
    """

    top_k: GumbelTopK
    mechanism: RoundedGaussian
    n_features: int

    @property
    def noise(self) -> float:
        """Standard deviation of what is added to a sum."""
        return 2.0**self.mechanism.log2_scale

    def release(
        self, sums: IntArray, current: FloatArray, grain: float, stream: Stream
    ) -> tuple[FloatArray, BoolArray]:
        """Chosen sums with noise, zeros elsewhere."""
        limit = _LARGEST_OFFSET / len(sums)
        offsets = np.rint(np.clip(current / grain, -limit, limit)).astype(np.int64)
        scores = np.abs(offsets - sums).sum(axis=0)[: self.n_features]
        known = np.ones(sums.shape[1], dtype=bool)
        known[: self.n_features] = False
        known[self.top_k.release(scores, stream.spawn("columns"))] = True
        noisy = np.zeros(sums.shape)
        noisy[:, known] = self.mechanism.release(np.ascontiguousarray(sums[:, known]), stream.spawn("gradient"))
        return noisy, known


@dataclass(frozen=True, slots=True)
class CurvatureRelease:
    """The sum of the curvature terms, an underestimate on purpose: overshooting is noticed, creeping is not.

    Parameters
    ----------
    term_bound : int
        The integer that stands for a term of one.
    mechanism : RoundedGaussian or None
        The noise; None for none.
    """

    term_bound: int
    mechanism: RoundedGaussian | None

    def release(self, terms: FloatArray, stream: Stream) -> float:
        """The noisy sum minus two standard deviations."""
        integers = np.clip(np.rint(terms * self.term_bound), 0, self.term_bound).astype(np.int64)
        total, doubt = integers.sum(keepdims=True), 0.0
        if self.mechanism is not None:
            total = self.mechanism.release(total, stream)
            doubt = 2.0 * 2.0**self.mechanism.log2_scale
        return (float(total[0]) - doubt) / self.term_bound


@dataclass(frozen=True, slots=True)
class Descent:
    """The iteration, given how sums are released.

    Parameters
    ----------
    n_nonzero : int
        Columns kept, the intercept's not counted.
    n_steps : int
        Number of steps.
    n_rows : int
        The public number of records.
    step : float or None
        Length of a step for the mean gradient in units of scaled features. None: chosen along the way.
    radius : float or None
        L2 bound on the coefficients, the intercept's apart.
    average : bool
        Whether to return the mean of the second half of the iterates, thresholded once more.
    gradient : GradientRelease
        How sums become public.
    curvature : CurvatureRelease or None
        How the curvature of the first step becomes public; None with a given step.
    """

    n_nonzero: int
    n_steps: int
    n_rows: int
    step: float | None
    radius: float | None
    average: bool
    gradient: GradientRelease
    curvature: CurvatureRelease | None

    def run(self, records: ClippedRecords, stream: Stream) -> FloatArray:
        """The coefficients in units of scaled features, one row per output, the intercept last.

        All but the releases themselves is post-processing. A step of its own choice starts from the curvature along
        the first direction and is adapted to what two released gradients show of it along the last move.
        """
        grain = records.slope / (float(ONE) * records.weight_bound * self.n_rows)
        current = np.zeros((records.n_outputs, records.width))
        step, mean, n_averaged = self.step, np.zeros_like(current), 0
        before: tuple[FloatArray, FloatArray, BoolArray] | None = None
        for t in range(self.n_steps):
            # The first iterate is zero, and whatever the step the proposal is a multiple of the sums.
            taken = grain if step is None else step * grain
            noisy, known = self.gradient.release(records.sums(current), current, taken, stream)
            gradient = np.multiply(noisy, grain, out=noisy)
            if step is None:
                step = self._first_step(records, gradient, known, stream)
            elif self.step is None and before is not None:
                noise = self.gradient.noise * grain if t == 1 else math.inf
                step = max(_adapted(step, (current, gradient, known), before, noise), _shortest_step(records))
            before = current, gradient, known
            current = self._projected(current - step * gradient, known, records)
            if self.average and 2 * t >= self.n_steps - 1:
                n_averaged += 1
                mean += (current - mean) / n_averaged
        return self._projected(mean, np.ones(records.width, dtype=bool), records) if self.average else current

    def _first_step(self, records: ClippedRecords, gradient: FloatArray, known: BoolArray, stream: Stream) -> float:
        if self.curvature is None:
            raise TypeError("a step that is not given needs a release of the curvature")
        direction = _kept(-gradient, known, records, self.n_nonzero)
        length = float(np.linalg.norm(direction))
        terms = records.curvature_terms(direction / length if length > 0.0 else direction)
        share = self.curvature.release(terms, stream.spawn("curvature")) / self.n_rows
        share = min(max(share, _LEAST_CURVATURE / records.width), 1.0)
        return _shortest_step(records) / share

    def _projected(self, proposal: FloatArray, known: BoolArray, records: ClippedRecords) -> FloatArray:
        kept = _kept(proposal, known, records, self.n_nonzero)
        if self.radius is not None:
            weights = kept[:, : records.design.n_features]
            weights *= min(1.0, self.radius / max(float(np.linalg.norm(weights)), self.radius))
        return kept


def _shortest_step(records: ClippedRecords) -> float:
    """The step that can never overshoot: no direction bends more than all rows along it would."""
    return 1.0 / (records.loss.smoothness * records.norm**2)


def _kept(proposal: FloatArray, known: BoolArray, records: ClippedRecords, k: int) -> FloatArray:
    """The k columns with the largest absolute sums among those known, and the intercept."""
    n_features = records.design.n_features
    kept = np.zeros_like(proposal)
    kept[:, n_features:] = proposal[:, n_features:]
    if np.count_nonzero(known[:n_features]) <= k:
        columns = np.flatnonzero(known[:n_features])
    else:
        # Peeling leaves no more than k, so all are known here.
        sizes = np.abs(proposal[:, :n_features])
        sizes = sizes[0] if len(sizes) == 1 else sizes.sum(axis=0)
        columns = np.argpartition(sizes, n_features - k)[n_features - k :]
    kept[:, columns] = proposal[:, columns]
    return kept


def _adapted(
    step: float,
    here: tuple[FloatArray, FloatArray, BoolArray],
    before: tuple[FloatArray, FloatArray, BoolArray],
    noise: float,
) -> float:
    """The step after a look at how the gradient changed along the last move, where both ends of it are known.

    It becomes one over the curvature seen: at once where that is more than assumed, and by at most a factor of four
    where it is less even with two standard deviations of its noise added. The latter is for the first move alone, whose
    curvature is known: there it is a sign of clipped derivatives, later it may be one of an unusual direction, and an
    infinite ``noise`` rules it out.
    """
    columns = np.flatnonzero((here[0] != before[0]).any(axis=0) & here[2] & before[2])
    move = here[0][:, columns] - before[0][:, columns]
    size = float(np.sum(np.square(move)))
    if size == 0.0:
        return step
    seen = float(np.sum(move * (here[1][:, columns] - before[1][:, columns]))) / size
    at_most = seen + 2.0 * noise * math.sqrt(2.0 / size)
    if seen * step > 1.0:
        return 1.0 / seen
    return step if at_most * step >= 1.0 else min(1.0 / max(at_most, 0.25 / step), 4.0 * step)
