"""Noise on integers: lattices on which a wanted noise is a power of two, so that nothing is rounded up."""

from __future__ import annotations

import math

from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE, sum_magnitude
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS
from taciturn.data.sensitivity.descent import curvature_sum, derivative_sum
from taciturn.losses import Loss
from taciturn.mechanisms import RoundedGaussian

__all__ = ["LARGEST_WEIGHT", "gradient_noise", "term_noise"]

LARGEST_WEIGHT = 16 * ONE
"""The largest integer that may stand for a derivative at its bound: sums of more would leave 64 bits."""

_WEIGHT_BITS = 16
_LARGEST_SCALE = 54


def gradient_noise(
    loss: Loss, row_squared: int, relation: str, noise_multiplier: float, entry_bound: int = ONE
) -> tuple[int, RoundedGaussian]:
    """The integer that stands for a derivative at its bound, and the noise on sums of rows times such integers.

    ``row_squared`` bounds the squared norm of a row in lattice units, ``noise_multiplier`` is noise over sensitivity,
    and ``entry_bound`` bounds the entries of a row, for the room that sums need.
    """
    factor = loss.squared_l2_factor
    weight_bound, log2_scale = _on_lattice(
        derivative_sum(row_squared, 1, factor, relation).value * noise_multiplier, LARGEST_WEIGHT * ONE // entry_bound
    )
    sensitivity = derivative_sum(row_squared, weight_bound, factor, relation).value
    magnitude = sum_magnitude(MOST_PRIVATE_ROWS, weight_bound * entry_bound // ONE)
    return weight_bound, RoundedGaussian(sensitivity, log2_scale, magnitude)


def term_noise(relation: str, noise_multiplier: float) -> tuple[int, RoundedGaussian]:
    """The integer that stands for a term of one, and the noise on a sum of such terms in [0, 1]."""
    term_bound, log2_scale = _on_lattice(noise_multiplier, LARGEST_WEIGHT)
    sensitivity = curvature_sum(term_bound, relation).value
    return term_bound, RoundedGaussian(sensitivity, log2_scale, MOST_PRIVATE_ROWS * term_bound)


def _on_lattice(noise: float, largest: int) -> tuple[int, int]:
    """The largest weight, and the exponent of the noise, for noise of a given size per unit of that weight."""
    noise *= 1.0 + 2.0**-40
    log2_scale = min(max(_WEIGHT_BITS + math.frexp(noise)[1], 5), _LARGEST_SCALE)
    # Never more than sums have room for, which matters for budgets beyond all use.
    weight_bound = min(math.floor(2.0**log2_scale / noise), largest)
    if weight_bound < 1:
        raise ParameterError("noise", noise, "noise that sums in 64 bits leave room for", "raise epsilon or delta")
    return weight_bound, log2_scale
