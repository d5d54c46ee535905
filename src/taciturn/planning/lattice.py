"""Noise on integers: lattices on which a wanted noise is a power of two, so that nothing is rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable

from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE, sum_magnitude
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, Sensitivity
from taciturn.data.sensitivity.descent import (
    GRAM_WEIGHTS,
    curvature_sum,
    derivative_sum,
    gram_matrix,
    jointly_clipped_sum,
)
from taciturn.losses import Loss
from taciturn.mechanisms import RoundedGaussian

__all__ = [
    "GRAM_ROW_SQUARED",
    "LARGEST_WEIGHT",
    "gradient_noise",
    "gram_noise",
    "joint_noise",
    "term_noise",
    "vector_noise",
]

LARGEST_WEIGHT = 16 * ONE
"""The largest integer that may stand for a derivative at its bound: sums of more would leave 64 bits."""

GRAM_ROW_SQUARED = 1 << 26
"""The largest squared norm of a row in a Gram matrix, in integers."""

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


def joint_noise(product: float, relation: str, noise_multiplier: float) -> tuple[int, int, RoundedGaussian]:
    """The integer for a derivative at its bound, the bound on products, and the noise on jointly clipped sums.

    ``product`` bounds the norm of a row times that of a derivative in units of its bound, in lattice units. Rows are
    centred, so that their entries are at most twice the bound.
    """
    unit = jointly_clipped_sum(1, relation).value * product * noise_multiplier
    weight_bound, log2_scale = _on_lattice(unit, LARGEST_WEIGHT // 2)
    product_bound = math.floor(product * weight_bound)
    sensitivity = jointly_clipped_sum(product_bound, relation).value
    magnitude = sum_magnitude(MOST_PRIVATE_ROWS, 2 * weight_bound)
    return weight_bound, product_bound, RoundedGaussian(sensitivity, log2_scale, magnitude)


def gram_noise(relation: str, noise_multiplier: float) -> tuple[int, RoundedGaussian]:
    """The squared norm of a row in a Gram matrix, and the noise on its weighted entries."""
    row_squared, log2_scale = _on_lattice(gram_matrix(1, relation).value * noise_multiplier, GRAM_ROW_SQUARED, bits=25)
    sensitivity = gram_matrix(row_squared, relation).value
    return row_squared, RoundedGaussian(sensitivity, log2_scale, MOST_PRIVATE_ROWS * max(GRAM_WEIGHTS) * row_squared)


def vector_noise(
    sensitivity: Callable[[int, str], Sensitivity], relation: str, noise_multiplier: float
) -> tuple[int, RoundedGaussian]:
    """The integer that stands for a norm of one, and the noise on a sum of vectors of at most that norm.

    ``sensitivity`` is that of the sum, for the integer and the relation.
    """
    unit, log2_scale = _on_lattice(sensitivity(1, relation).value * noise_multiplier, LARGEST_WEIGHT)
    return unit, RoundedGaussian(sensitivity(unit, relation).value, log2_scale, MOST_PRIVATE_ROWS * unit)


def term_noise(relation: str, noise_multiplier: float) -> tuple[int, RoundedGaussian]:
    """The integer that stands for a term of one, and the noise on a sum of such terms in [0, 1]."""
    term_bound, log2_scale = _on_lattice(noise_multiplier, LARGEST_WEIGHT)
    sensitivity = curvature_sum(term_bound, relation).value
    return term_bound, RoundedGaussian(sensitivity, log2_scale, MOST_PRIVATE_ROWS * term_bound)


def _on_lattice(noise: float, largest: int, bits: int = _WEIGHT_BITS) -> tuple[int, int]:
    """The largest weight, and the exponent of the noise, for noise of a given size per unit of that weight."""
    noise *= 1.0 + 2.0**-40
    log2_scale = min(max(bits + math.frexp(noise)[1], 5), _LARGEST_SCALE)
    # Never more than sums have room for, which matters for budgets beyond all use.
    weight_bound = min(math.floor(2.0**log2_scale / noise), largest)
    if weight_bound < 1:
        raise ParameterError("noise", noise, "noise that sums in 64 bits leave room for", "raise epsilon or delta")
    return weight_bound, log2_scale
