r"""Gradient steps on clipped records, each followed by hard thresholding.

One step is :math:`w \leftarrow H_k(w - \eta\, \tilde g / n)` with :math:`\tilde g` a noisy version of
:math:`\sum_i \psi_i \tilde x_i`. Rows are clipped to an L2 norm without being changed: a row beyond the bound gets a
smaller weight instead, which is the same sum. Weights and entries are integers, so are the sums, and one record
changes nothing but its own term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import FRACTION_BITS, ONE
from taciturn.kernels.softmax import softmax_residuals
from taciturn.losses import HuberLoss, LogisticLoss, Loss, SoftmaxLoss
from taciturn.mechanisms import GumbelTopK, RoundedGaussian

__all__ = [
    "ClippedRecords",
    "CurvatureRelease",
    "Descent",
    "GaussianRelease",
    "GradientRelease",
    "PeelingRelease",
    "squared_row_norms",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Covers the rounding of norms, roots and quotients, so that bounds on integers hold exactly.
_ROOM = 1.0 - 2.0**-28
# Public offsets of proposals stay within this, which leaves room for sums beside them.
_LARGEST_OFFSET = 2.0**60
# Probabilities are zero or one long before.
_LARGEST_MARGIN = 2.0**24
# Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more along chosen ones.
_LEAST_CURVATURE = 1.3


def squared_row_norms(design: Design) -> FloatArray:
    """Squared L2 norms of the rows, in lattice units."""
    lattice = design.lattice
    if sp.issparse(lattice):
        return np.asarray(lattice.power(2).sum(axis=1), dtype=np.float64).ravel()
    norms: FloatArray = np.einsum("ij,ij->i", lattice, lattice)
    return norms


def largest_slope_change(loss: Loss) -> float:
    """The largest second derivative of the loss in its margins (largest eigenvalue, for several)."""
    return {LogisticLoss: 0.25, SoftmaxLoss: 0.5}.get(type(loss), 1.0)


class ClippedRecords:
    """Sums over records, every row clipped to an L2 norm and every derivative to the slope of the loss.

    Parameters
    ----------
    design : Design
        The features, without an intercept column.
    target : ndarray of shape (n_samples,)
        Lattice values for a regression, class codes (-1 for null records) for a classification.
    loss : Loss
        The loss of one record; its derivative is at most ``slope``.
    n_outputs : int
        Rows of the coefficient matrix: 1, or the number of classes.
    norms : ndarray of shape (n_samples,)
        Squared row norms in lattice units.
    row_squared : int
        Public bound on the squared norm of a clipped row, the constant included, in lattice units.
    constant : int
        Entry of the intercept column in lattice units; 0 for no such column.
    weight_bound : int
        The integer that stands for a derivative at its bound.
    """

    def __init__(
        self,
        design: Design,
        target: FloatArray | IntArray,
        loss: Loss,
        n_outputs: int,
        norms: FloatArray,
        row_squared: int,
        constant: int,
        weight_bound: int,
    ) -> None:
        self.design, self.loss, self.n_outputs = design, loss, n_outputs
        self.row_squared, self.constant, self.weight_bound = row_squared, constant, weight_bound
        self.slope = loss.threshold if isinstance(loss, HuberLoss) else 1.0
        factors = np.sqrt(row_squared / np.maximum(norms + float(constant) ** 2, 1.0)) * _ROOM
        # weight_bound times the factor of the row, rounded down: its square times that of the norm is in bounds.
        self._row_bounds = np.floor(weight_bound * np.minimum(factors, 1.0))
        self._factors = self._row_bounds / weight_bound
        if isinstance(loss, HuberLoss):
            self._target = target.astype(np.float64) / ONE
        else:
            null = target < 0
            self._row_bounds[null], self._factors[null] = 0.0, 0.0
            self._codes = target.astype(np.int64)
            self._target = np.where(null, 0.0, target)

    @property
    def width(self) -> int:
        """Columns of the coefficient matrix."""
        return self.design.n_features + (self.constant > 0)

    @property
    def norm(self) -> float:
        """The bound on a clipped row, in units of scaled features."""
        return math.sqrt(self.row_squared) / ONE

    def margins(self, coefficients: FloatArray) -> FloatArray:
        """Products of clipped rows with coefficients, one column per output."""
        n_features = self.design.n_features
        support = np.flatnonzero(coefficients[:, :n_features].any(axis=0))
        weights = coefficients[:, support]
        largest = float(np.abs(weights).sum(axis=1).max(initial=0.0))
        # Half of what exact products allow, and rounding adds less than the other half: partial sums stay below 2**53.
        bits = 36 - math.frexp(largest)[1] if largest > 0.0 else 0
        integers = np.rint(np.ldexp(weights, bits)).T
        lattice = self.design.lattice
        if sp.issparse(lattice) and lattice.format == "csr":
            # Taking columns out of rows is slower than a product with all of them.
            spread = np.zeros((n_features, self.n_outputs))
            spread[support] = integers
            products = np.asarray(lattice @ spread)
        else:
            products = np.asarray(lattice[:, support] @ integers)
        products *= 2.0 ** -(bits + FRACTION_BITS)
        if self.constant:
            products += coefficients[:, n_features] * (self.constant / ONE)
        products *= self._factors[:, None]
        return products

    def weights(self, coefficients: FloatArray) -> FloatArray:
        """Derivatives as integer weights of the rows as they are, one column per output."""
        # Only steps beyond all reason overflow; a margin that is not a number then counts as zero.
        margins = np.nan_to_num(self.margins(coefficients), copy=False)
        if self.n_outputs == 1:
            psi = self.loss.derivative(margins[:, 0], self._target)
            psi *= self._row_bounds / self.slope
            np.rint(psi, out=psi)
            return np.clip(psi, -self._row_bounds, self._row_bounds, out=psi)[:, None]
        integers, fine = np.empty(margins.shape), 1 << 40
        np.clip(margins, -_LARGEST_MARGIN, _LARGEST_MARGIN, out=margins)
        softmax_residuals(np.rint(margins * 2.0**32).astype(np.int64), 2.0**-32, self._codes, fine, integers)
        integers *= (self._row_bounds * (_ROOM / fine))[:, None]
        np.trunc(integers, out=integers)
        # Never the case but for a defect of the exponential function; the bound must not rest on that.
        beyond = np.square(integers).sum(axis=1) > 2.0 * np.square(self._row_bounds)
        integers[beyond | (np.abs(integers).sum(axis=1) > 2.0 * self._row_bounds)] = 0.0
        return integers

    def sums(self, coefficients: FloatArray) -> IntArray:
        """``sum_i r_i x_i`` with the integers of :meth:`weights`, one row per output, the intercept last."""
        weights = self.weights(coefficients)
        sums = np.empty((self.n_outputs, self.width), dtype=np.int64)
        sums[:, : self.design.n_features] = self.design.rmatvec(weights, self.weight_bound).T
        if self.constant:
            sums[:, -1] = weights.sum(axis=0).astype(np.int64) * self.constant
        return sums

    def curvature_terms(self, direction: FloatArray) -> FloatArray:
        """Per record the squared margin of a unit direction over its bound: numbers in [0, 1]."""
        terms = np.square(self.margins(direction)).sum(axis=1) / self.norm**2
        return np.minimum(terms, 1.0)


class GradientRelease(Protocol):
    """How sums become public."""

    @property
    def noise(self) -> float:
        """Standard deviation of what is added to a sum."""

    def release(self, sums: IntArray, current: FloatArray, grain: float, stream: Stream) -> tuple[FloatArray, Mask]:
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

    def release(self, sums: IntArray, current: FloatArray, grain: float, stream: Stream) -> tuple[FloatArray, Mask]:
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

    def release(self, sums: IntArray, current: FloatArray, grain: float, stream: Stream) -> tuple[FloatArray, Mask]:
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
        before: tuple[FloatArray, FloatArray, Mask] | None = None
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

    def _first_step(self, records: ClippedRecords, gradient: FloatArray, known: Mask, stream: Stream) -> float:
        if self.curvature is None:
            raise TypeError("a step that is not given needs a release of the curvature")
        direction = _kept(-gradient, known, records, self.n_nonzero)
        length = float(np.linalg.norm(direction))
        terms = records.curvature_terms(direction / length if length > 0.0 else direction)
        share = self.curvature.release(terms, stream.spawn("curvature")) / self.n_rows
        share = min(max(share, _LEAST_CURVATURE / records.width), 1.0)
        return _shortest_step(records) / share

    def _projected(self, proposal: FloatArray, known: Mask, records: ClippedRecords) -> FloatArray:
        kept = _kept(proposal, known, records, self.n_nonzero)
        if self.radius is not None:
            weights = kept[:, : records.design.n_features]
            weights *= min(1.0, self.radius / max(float(np.linalg.norm(weights)), self.radius))
        return kept


def _shortest_step(records: ClippedRecords) -> float:
    """The step that can never overshoot: no direction bends more than all rows along it would."""
    return 1.0 / (largest_slope_change(records.loss) * records.norm**2)


def _kept(proposal: FloatArray, known: Mask, records: ClippedRecords, k: int) -> FloatArray:
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
    here: tuple[FloatArray, FloatArray, Mask],
    before: tuple[FloatArray, FloatArray, Mask],
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
