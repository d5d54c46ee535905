r"""The precision to which the minimiser of a perturbed objective is found, from public facts alone.

.. math:: J(\theta) = \sum_{i \le n} \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2}\|\theta\|^2 + b \cdot \theta,
          \qquad \|x_i\| \le R, \quad |\phi'| R \le G, \quad \phi'' R^2 \le \beta, \quad \phi \ge 0, \quad \|b\| \le B,

in d dimensions. n is an upper bound on the number of records; B is the bound on the noise (:func:`noise_bound`) plus
the norm of the public part of b. Where a solver stops, and the noise that covers the remaining error, are functions of
these numbers, never of b or of the data.

**Norm of the minimiser.** Its gradient vanishes, and :math:`J(\theta^*) \le J(0) \le n \phi_0` with
:math:`\phi_0 = \max_y \phi(0; y)`. So

.. math:: \|\theta^*\| \le W = \frac{1}{\Lambda} \min\bigl(nG + B,\; B + \sqrt{B^2 + 2 \Lambda n \phi_0}\bigr),

and every point where J is at most J(0) is within 2W: losses fall by at most :math:`n G \|\theta\|` from J(0).

**Error of computed gradients.** *Numerical assumption*: sums, products and roots of doubles are rounded as IEEE
754 says, and :math:`\phi'` is computed to 8 units in its last place. Let :math:`u = 2^{-53}`, :math:`du < 10^{-3}`,
:math:`n \le 2^{32}` and :math:`\|\theta\| \le 2W`. For any order of summation,

* a margin is off by at most :math:`1.01\, d u \cdot R \cdot 2W` (Cauchy and Schwarz), hence :math:`\phi'` by that
  times :math:`\max \phi''`, and by 8u of its own bound: the gradient by :math:`2.02\, u n \beta d W + 8 u n G`;
* sums over blocks of 256 rows lose :math:`1.01 \cdot 256\, u n G`; adding up fewer than :math:`2^{25}` of them with
  their own losses, :math:`1.1\, u (nG + 2 \Lambda W + B)`; and :math:`\Lambda\theta` is off by :math:`2 u \Lambda W`.

A step of gradient descent, :math:`\theta - g/L` with :math:`L = n\beta + \Lambda`, is rounded by
:math:`2.03\, u W + 3.1\, u (nG + 2\Lambda W + B) / L`, which is L times as much in terms of the gradient. Altogether,
gradient and step are off by at most

.. math:: u\,[2.03\, n\beta(d+1) W + 274\, nG + 13\, \Lambda W + 5 B] \le e_0 = T / 3.5, \qquad
          T = 8u\,[n \beta (d+1) W + 140\, nG + 6 \Lambda W + 3 B] .

**The tolerance** is :math:`t = 2^{-30} G + 2^{-44} B + T`. A point is accepted if and only if it is within 2W and its
computed gradient within 0.7 t. (What rounding does to a norm, a relative du, is within the slack of what follows.)

* *Accepted points are good*: with the b that was drawn the gradient is at most
  :math:`0.7 t + e_0`. The exact normal variable is nearer than :math:`2^{-49} B` to the b that was drawn: rounding
  it to a lattice of step :math:`2^{-50} \sigma` takes at most :math:`2^{-51} \sigma \sqrt d`, products and a sum
  :math:`4uB`. And :math:`0.7 t + T/3.5 + 2^{-49} B \le t`.
* *There are good points, and they are found*: by :func:`taciturn.fitting.minimiser.descend`, as
  :math:`(\sqrt2 + 1) e_0 < 0.7 \cdot 3.5\, e_0 \le 0.7 t`. Since :math:`L W / e_0 \le 3.5 / 16u`, it takes at most
  :math:`2 (L/\Lambda) \ln(L^2 W^2 / 2 e_0^2) < 140\, L / \Lambda` steps. So nothing is ever returned that is not within
  the tolerance. (Newton's steps are tried first, and are not known to have failed.) \square

**The output noise** covers that two computed points with the same minimiser may be :math:`2t/\Lambda` apart. Where it
would move the prediction for a row of norm R by more than a tenth of the range of the target, or by a tenth of a log
odds, and would also exceed the least effect of b itself on a coefficient, :math:`\sigma / L`, the model would be
useless, and the setting is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.data.sensitivity import approximate_minimiser
from taciturn.losses import ScalarLoss
from taciturn.mechanisms import DISTANCE_PER_VALUE, RoundedGaussian

__all__ = [
    "MAGNITUDE",
    "MOST_RECORDS",
    "Resolution",
    "StoppingCriterion",
    "check_resolved",
    "is_resolved",
    "noise_bound",
    "noise_distance",
    "noiseless_criterion",
    "resolve",
    "stopping_criterion",
]

MAGNITUDE = 1 << 62
"""Bound on the released integers before noise."""

MOST_RECORDS = 2**32
"""The analysis of summation errors covers no more records."""

_UNIT = 2.0**-53
_PER_SLOPE, _PER_TERM = 2.0**-30, 2.0**-44
_STEPS_PER_CONDITION = 140.0
# Without privacy a solver stops where rounding usually lets it: nothing has to be proved.
_NOISELESS_PER_RECORD = 2.0**-42

# Gradient descent would take 140 times as many steps; Newton's method takes a few.
_LARGEST_CONDITION = 2.0**30
_MOST_MOVED = 0.1
# The lattice is so much finer than the noise that rounding to it costs an eighth of the noise at most.
_LATTICE_BITS = 3
_LARGEST_SCALE = 55

# By how many standard deviations the norm of the linear term may exceed its mean, and how likely more is.
_BEYOND = 13.0
_BEYOND_PROBABILITY = 2.0**-121


def noise_bound(noise_scale: float, n_columns: int) -> float:
    r"""The norm that b does not exceed, :math:`\sigma (\sqrt d + 13)`, but with a probability below :math:`2^{-121}`.

    *Proof.* The norm is a Lipschitz function of normal variables with a mean of at most :math:`\sqrt d`; it exceeds
    its mean by 13 with probability at most :math:`e^{-13^2/2} < 2^{-121}` (Gaussian concentration).
    """
    return noise_scale * (math.sqrt(n_columns) + _BEYOND)


def noise_distance(n_columns: int) -> float:
    """Total variation distance of the sampled b from a normal vector within :func:`noise_bound`."""
    return n_columns * DISTANCE_PER_VALUE + _BEYOND_PROBABILITY


@dataclass(frozen=True, slots=True)
class StoppingCriterion:
    """When a solver stops: a point is accepted if its gradient and its own norm are small enough.

    Parameters
    ----------
    tolerance : float
        Bound on the norm of the exact gradient.
    largest_norm : float, default=inf
        Bound on the norm of a point. Beyond it the rounding of gradients is not covered.
    smoothness : float, default=1.0
        Bound on the eigenvalues of J's Hessian.
    descent_steps : int, default=0
        Number of steps of gradient descent that meet the criterion from zero, whatever the data. 0: the result of
        Newton's steps is taken as it is, which is for fits without privacy.
    """

    tolerance: float
    largest_norm: float = math.inf
    smoothness: float = 1.0
    descent_steps: int = 0


@dataclass(frozen=True, slots=True)
class Resolution:
    """How precisely a minimiser is found and released.

    Parameters
    ----------
    step : float
        Step of the output lattice, a power of two.
    output : RoundedGaussian
        The noise on that lattice.
    """

    criterion: StoppingCriterion
    step: float
    output: RoundedGaussian

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a coefficient."""
        return float(self.step * 2.0**self.output.log2_scale)


def stopping_criterion(
    loss: ScalarLoss, row_bound: float, regularisation: float, n_records: int, n_columns: int, bound: float
) -> StoppingCriterion:
    """The stopping criterion of a private minimiser, as derived above; ``bound`` is B."""
    slope = loss.lipschitz(math.inf) * row_bound
    curvature = n_records * loss.smoothness * row_bound * row_bound
    at_zero = float(loss.value(np.zeros(1), np.ones(1))[0])
    level = bound + math.sqrt(bound * bound + 2.0 * regularisation * n_records * at_zero)
    reach = min(n_records * slope + bound, level) / regularisation
    rounding = curvature * (n_columns + 1) * reach + 140.0 * n_records * slope + 6.0 * regularisation * reach
    tolerance = _PER_SLOPE * slope + _PER_TERM * bound + 8.0 * _UNIT * (rounding + 3.0 * bound)
    largest = (curvature + regularisation) * (1.0 + 2.0**-40)
    return StoppingCriterion(
        tolerance, 2.0 * reach, largest, math.ceil(_STEPS_PER_CONDITION * largest / regularisation)
    )


def noiseless_criterion(loss: ScalarLoss, row_bound: float, n_records: int, bound: float) -> StoppingCriterion:
    """The stopping criterion without privacy: the result is taken as it is."""
    per_record = _PER_SLOPE + _NOISELESS_PER_RECORD * n_records
    return StoppingCriterion(loss.lipschitz(math.inf) * row_bound * per_record + _PER_TERM * bound)


def resolve(
    criterion: StoppingCriterion, regularisation: float, n_columns: int, noise_multiplier: float, relation: str
) -> Resolution:
    """Choose the output lattice for a criterion, and noise on it of at least ``noise_multiplier`` sensitivities."""
    scale = max(5, math.frexp(noise_multiplier * math.sqrt(n_columns))[1] + _LATTICE_BITS)
    if scale > _LARGEST_SCALE:
        raise ParameterError(
            "noise", noise_multiplier, "noise that integers of 64 bits leave room for", "raise epsilon or delta"
        )
    exponent = math.frexp(criterion.tolerance / regularisation)[1] - scale - 1
    while True:
        step = math.ldexp(1.0, exponent)
        sensitivity = approximate_minimiser(criterion.tolerance, regularisation, step, n_columns, relation)
        output = RoundedGaussian(sensitivity.value, scale, MAGNITUDE)
        # On a coarse lattice its own step is all that counts, and the noise is eight times that.
        if output.event.noise_multiplier >= noise_multiplier:
            return Resolution(criterion, step, output)
        exponent += 1


def is_resolved(resolution: Resolution, row_bound: float, noise_scale: float, most_moved: float = _MOST_MOVED) -> bool:
    """Whether the output noise moves predictions by little, or coefficients by less than the linear term does."""
    return resolution.deviation <= max(most_moved / row_bound, noise_scale / resolution.criterion.smoothness)


def check_resolved(
    name: str, value: float | str, resolution: Resolution, *, row_bound: float, noise_scale: float
) -> None:
    """Refuse a ``value`` of the parameter ``name`` at which double precision does not tell minimisers apart."""
    condition = resolution.criterion.descent_steps / _STEPS_PER_CONDITION
    if condition > _LARGEST_CONDITION or not is_resolved(resolution, row_bound, noise_scale):
        raise ParameterError(
            name,
            value,
            "a number at which double precision resolves the minimiser (the noise that covers its rounding would move "
            f"predictions by {resolution.deviation * row_bound:.2g})",
            "raise it, or lower row_bound",
        )
