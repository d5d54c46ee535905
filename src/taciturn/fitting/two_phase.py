r"""Noisy gradient descent without thresholding, for weights that are thresholded once, and what is done around it.

Everything here is a function of records, of public numbers and of mechanisms; how much noise these add, and what that
costs, is the plan's business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.fitting.clipped_records import ClippedRecords, squared_row_norms
from taciturn.mechanisms import RoundedGaussian

__all__ = [
    "Descent",
    "by_weight",
    "clipped_shares",
    "descent_spread",
    "heaviest",
    "record_losses",
    "row_lengths",
    "row_sums",
]


# Squared residuals count up to this many residual clips.
_LARGEST_RESIDUAL = 2.0


@dataclass(frozen=True, slots=True)
class Descent:
    r"""Steps :math:`v \leftarrow \beta v - \eta (\nabla + \sigma Z)`, :math:`w \leftarrow \Pi(w + v)`.

    Parameters
    ----------
    n_steps : int
        How many.
    step : float
        :math:`\eta`, for sums over records in units of scaled features.
    momentum : float
        :math:`\beta`, in [0, 1).
    average : bool
        Whether to return the mean of the second half of the iterates rather than the last one.
    radius : float or None
        L2 bound on the weights, the intercept's apart.
    noise : RoundedGaussian or None
        On every sum; None for none.
    """

    n_steps: int
    step: float
    momentum: float
    average: bool
    radius: float | None
    noise: RoundedGaussian | None

    def run(self, records: ClippedRecords, start: FloatArray, stream: Stream) -> FloatArray:
        """The weights, one row per output, the intercept's last."""
        grain = self.step * records.slope / (float(ONE) * records.weight_bound)
        current, velocity, mean, n_averaged = start.copy(), np.zeros_like(start), np.zeros_like(start), 0
        for t in range(self.n_steps):
            sums = records.sums(current)
            noisy = sums if self.noise is None else self.noise.release(sums, stream.spawn("gradient"))
            velocity = self.momentum * velocity - grain * noisy
            current = self._projected(current + velocity, records.design.n_features)
            if 2 * t >= self.n_steps - 1:
                n_averaged += 1
                mean += (current - mean) / n_averaged
        return mean if self.average else current

    def _projected(self, weights: FloatArray, n_features: int) -> FloatArray:
        if self.radius is not None:
            features = weights[:, :n_features]
            features *= min(1.0, self.radius / max(float(np.linalg.norm(features)), self.radius))
        return weights


def descent_spread(n_steps: int, momentum: float, average: bool) -> float:
    r"""How much of the noise of one step a coefficient can gather over all of them, as a factor on its deviation.

    *Statement.* For a quadratic objective whose matrix has eigenvalues between 0 and :math:`1/\eta`, and without
    projection, the standard deviation of each coefficient is at most this factor times :math:`\eta \sigma`.

    *Proof.* In the eigenvectors the steps are scalar and independent. In a direction of curvature h the noise of a
    step moves the iterate j steps later by :math:`\eta \rho_j`, where :math:`\rho_j = (1 + \beta - \eta h) \rho_{j-1}
    - \beta \rho_{j-2}` and :math:`\rho_0 = 1`. The roots of this recursion have the product :math:`\beta`. Real ones
    lie in [0, 1], and :math:`\rho_j = \sum_i r_1^i r_2^{j-i}` grows as they move apart, up to
    :math:`s_j = \sum_{i \le j} \beta^i` at h = 0. Complex ones have the modulus :math:`\sqrt\beta`, and
    :math:`|\rho_j| \le (j + 1) \beta^{j/2} \le s_j`, because a geometric mean is below the arithmetic one. So
    :math:`|\rho_j| \le 1 / (1 - \beta)`, a mean of iterates moves by no more times the share of them that come later,
    and independent steps add squares. Every direction obeys the bound, hence every coordinate does.
    """
    first = n_steps // 2 if average else n_steps - 1
    response = 1.0 / (1.0 - momentum)
    kept = np.arange(first, n_steps)
    shares = [np.count_nonzero(kept >= s) / kept.size for s in range(n_steps)]
    return response * math.sqrt(math.fsum(share * share for share in shares))


def by_weight(weights: FloatArray) -> IndexArray:
    """Columns by the sum of absolute weights over outputs, the heaviest first; ties go to the lower column."""
    return np.argsort(-np.abs(weights).sum(axis=0), kind="stable")


def heaviest(weights: FloatArray, k: int) -> IndexArray:
    """The k heaviest columns, in increasing order."""
    return np.sort(by_weight(weights)[:k])


def row_sums(design: Design, weights: FloatArray, weight_bound: int) -> IntArray:
    """``X' weights`` by blocks of rows: memory for the sums alone."""
    total = np.zeros((design.shape[1], *weights.shape[1:]), dtype=np.int64)
    for rows, block in design.blocks():
        total += block.rmatvec(weights[rows], weight_bound)
    return total


def row_lengths(design: Design) -> FloatArray:
    """L2 norms of the rows in units of scaled features, by blocks of rows."""
    lengths = np.empty(design.shape[0])
    for rows, block in design.blocks():
        lengths[rows] = np.sqrt(squared_row_norms(block)) / ONE
    return lengths


def clipped_shares(design: Design, share: float) -> FloatArray:
    """``sum_j |x_ij| min(|x_ij|, share) / |x_i|**2``: what a row keeps of its norm when entries are clipped.

    Zero rows keep everything. Sums are exact, so that a row's share does not depend on the rows around it.
    """
    kept, cap = np.ones(design.shape[0]), math.floor(share * ONE)
    for rows, block in design.blocks():
        lattice = block.lattice
        if design.is_sparse:
            products = lattice.copy()
            sizes = np.abs(lattice.data)
            products.data = sizes * np.minimum(sizes, cap)
        else:
            sizes = np.abs(lattice)
            products = sizes * np.minimum(sizes, cap)
        norms = squared_row_norms(block)
        np.divide(np.asarray(products.sum(axis=1)).ravel(), norms, out=kept[rows], where=norms > 0.0)
    return kept


def record_losses(records: ClippedRecords, coefficients: FloatArray) -> FloatArray:
    """What each record loses: half a squared residual in units of the clip, up to a bound, or the log-loss of a class.

    Each number is a function of one record alone, to the last bit.
    """
    if records.loss.labelled:
        return records.losses(coefficients)
    residuals = np.abs(records.residuals(coefficients)) / records.slope
    return 0.5 * np.square(np.minimum(residuals, _LARGEST_RESIDUAL))
