r"""Rényi curves, added over one public grid of orders and converted once.

A release is :math:`(\alpha, \tau)`-RDP if its Rényi divergence of order :math:`\alpha` between neighbours is at most
:math:`\tau` (Mironov 2017); adaptive composition adds the :math:`\tau`. A curve :math:`\tau(\alpha)` gives

.. math:: \varepsilon = \tau(\alpha) + \ln(1 - 1/\alpha) - \frac{\ln(\delta\alpha)}{\alpha - 1}

for every order, so the smallest over a fixed grid is valid (Canonne, Kamath and Steinke 2020,
proposition 12). The curves of the pieces:

*Gaussian, noise multiplier* :math:`\sigma`: :math:`\alpha / (2\sigma^2)`.

*Pure* :math:`\varepsilon`-*DP*: randomised response, see :func:`pure_curve`.

*Bounded range* :math:`e`: two outcomes, see :func:`selection_curve`.

*Objective perturbation*: see :func:`objective_curve`.

*The best of a random number of trials*: see :func:`trials_curve`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from taciturn.core.validation import FloatArray
from taciturn.privacy.budget import BestOfTrials, Objective, Pieces, log_moment, vertex_moment

ORDERS: FloatArray = 1.0 + np.concatenate([np.geomspace(0.02, 63.0, 200), np.geomspace(66.0, 1e5 - 1.0, 110)])
"""Dense up to 64, spaced by factors up to 100,000. Public and fixed: no order is fitted to a plan."""
ORDERS.setflags(write=False)

_PAST_ONE: FloatArray = ORDERS - 1.0
_LOG_SHARE: FloatArray = np.log1p(-1.0 / ORDERS)
_LOG_ORDERS: FloatArray = np.log(ORDERS)
# More than the rounding errors of the few logarithms in a curve, which are below 40 in size.
_ROUNDING: FloatArray = 1e-14 * (1.0 + 1.0 / _PAST_ONE)
# Where order times epsilon is below this, second-order bounds are exact to four digits or more, and
# the closed forms would be differences of nearly equal numbers.
_SMALL = 1e-2


def selection_curve(selection_range: float) -> FloatArray:
    r"""The Rényi curve of one selection whose log-ratios span at most :math:`e`.

    Two-point distributions are extremal: the ratio is :math:`v` or :math:`v/E` with :math:`E = e^{e}` and
    :math:`1 \le v \le E`, the larger with probability :math:`(E-v)/(E-1)`. With :math:`A = E - E^{1-\alpha}` and
    :math:`B = 1 - E^{1-\alpha}` the moment of order :math:`\alpha - 1` is

    .. math:: f(v) = v^{\alpha-1}\,\frac{A - vB}{E - 1},

    a log-concave function of :math:`v` with its maximum at :math:`v = (\alpha-1)A / (\alpha B)`. By the inequality of
    weighted means :math:`(\alpha-1)E + E^{1-\alpha} \ge \alpha` and :math:`E^{\alpha} + \alpha - 1 \ge \alpha E`, which
    say that this point lies in :math:`[1, E]`; there :math:`A - vB = A/\alpha`, and
    :math:`\tau = \ln f / (\alpha - 1)`. Never above :math:`\alpha e^2/8`.
    """
    quadratic = ORDERS * (selection_range * selection_range / 8.0)
    exact = ORDERS * selection_range >= _SMALL
    order, past_one = ORDERS[exact], _PAST_ONE[exact]
    log_a = np.log(-np.expm1(-order * selection_range))
    log_b = np.log(-np.expm1(-past_one * selection_range))
    log_v = _LOG_SHARE[exact] + log_a - log_b
    rest = log_a - math.log(-math.expm1(-selection_range)) - _LOG_ORDERS[exact]
    closed = selection_range + log_v + rest / past_one + _ROUNDING[exact]
    quadratic[exact] = np.minimum(quadratic[exact], closed)
    return quadratic


def pure_curve(eps: float) -> FloatArray:
    r"""The Rényi curve of one pure release, for which randomised response is extremal:

    .. math:: \tau = \frac{1}{\alpha - 1}
              \ln \frac{e^{(\alpha-1)\varepsilon} + e^{-\alpha\varepsilon}}{1 + e^{-\varepsilon}}
              \le \min(\varepsilon,\; \alpha \varepsilon^2 / 2) .
    """
    quadratic = np.minimum(ORDERS * (eps * eps / 2.0), eps)
    exact = ORDERS * eps >= _SMALL
    moment = np.logaddexp(_PAST_ONE[exact] * eps, -ORDERS[exact] * eps) - math.log1p(math.exp(-eps))
    closed = moment / _PAST_ONE[exact] + (1.0 + eps) * _ROUNDING[exact]
    quadratic[exact] = np.minimum(quadratic[exact], closed)
    return quadratic


def objective_curve(objective: Objective) -> FloatArray:
    r"""The Rényi curve of the minimiser of a perturbed objective.

    .. math:: \tau(\alpha) = c + \frac{\ln E\, e^{(\alpha - 1)(L - c)}}{\alpha - 1}

    with :math:`c` the logarithm of the Jacobians' ratio and L - c at most :math:`t^2/2 + t M`, t being the shift and M
    the mean of as many absolute values of standard normal numbers as there are directions, or the largest loss of a
    few vertices; see :mod:`taciturn.privacy.budget`.
    """
    by_length = _PAST_ONE * (0.5 * objective.shift * objective.shift)
    by_length += log_moment(_PAST_ONE * objective.shift)
    moment = np.minimum(by_length, vertex_moment(_PAST_ONE, objective))
    total = objective.log_jacobian + moment / _PAST_ONE
    return total + (1.0 + total) * _ROUNDING


def trials_curve(trials: BestOfTrials) -> FloatArray:
    r"""The Rényi curve of the best of a random number K of trials, of which only the best is released.

    Let K follow the truncated negative binomial law of shape :math:`\eta \ge 0` and parameter :math:`\gamma`, and
    let one trial have the curve :math:`\tau`. Then for every pair of orders :math:`\alpha > 1, \hat\alpha \ge 1`

    .. math:: \tau(\alpha) + (1 + \eta) \Bigl(1 - \frac{1}{\hat\alpha}\Bigr) \tau(\hat\alpha)
              + \frac{(1 + \eta) \ln(1/\gamma)}{\hat\alpha} + \frac{\ln E K}{\alpha - 1}

    bounds the curve of what is released (Papernot and Steinke 2022, theorem 2). A trial that is :math:`\mu`-GDP has
    :math:`\tau(\alpha) = \alpha \mu^2 / 2`, since it is a function of a Gaussian release of that cost. Curves do
    not fall with the order, so that later values bound earlier ones.
    """
    one = ORDERS / (2.0 * trials.noise_multiplier**2)
    log_gamma = math.log(success_probability(trials.mean, trials.shape))
    constant = (1.0 + trials.shape) * float(np.min((1.0 - 1.0 / ORDERS) * one - log_gamma / ORDERS))
    bound = one + math.log(trials.mean) / _PAST_ONE + constant
    bound += (1.0 + bound) * _ROUNDING
    least: FloatArray = np.minimum.accumulate(bound[::-1])[::-1]
    return least


@lru_cache(maxsize=256)
def success_probability(mean: float, shape: float) -> float:
    r"""The parameter :math:`\gamma` of a truncated negative binomial law with this mean, rounded down.

    The mean falls as it grows, from infinity to 1, and a smaller one has a larger cost.
    """
    low, high = 0.0, 1.0
    while True:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            return low
        low, high = (middle, high) if mean_trials(middle, shape) >= mean else (low, middle)


def mean_trials(gamma: float, shape: float) -> float:
    r"""The mean of a truncated negative binomial law: :math:`\eta (1 - \gamma) / (\gamma (1 - \gamma^\eta))`."""
    log_gamma = math.log(gamma)
    # At shape 0, the logarithmic law, the quotient is its limit.
    per_shape = -log_gamma if shape == 0.0 else -math.expm1(shape * log_gamma) / shape
    return -math.expm1(log_gamma) / (gamma * per_shape)


@lru_cache(maxsize=64)
def curve(pieces: Pieces) -> FloatArray:
    """The Rényi curve of a whole plan on :data:`ORDERS`, its ``leak`` apart."""
    if not pieces.private:
        return np.full_like(ORDERS, math.inf)
    ranges: dict[float, int] = {}
    for selection_range, count in pieces.selections:
        ranges[selection_range] = ranges.get(selection_range, 0) + count
    gaussian = math.fsum(count / sigma / sigma / 2.0 for sigma, count in pieces.gaussians)
    total = ORDERS * gaussian
    for selection_range, count in ranges.items():
        total += count * selection_curve(selection_range)
    for eps, count in pieces.pure:
        total += count * pure_curve(eps)
    for objective, count in pieces.objectives:
        total += count * objective_curve(objective)
    for trials, count in pieces.searches:
        total += count * trials_curve(trials)
    total.setflags(write=False)
    return total


def exceeds(pieces: Pieces, delta: float, epsilon: float) -> bool:
    """Whether :func:`epsilon` is certainly larger than a number, by the same conversion up to its rounding."""
    tau = curve(pieces)
    if delta <= 0.0 or not tau.any():
        return False
    converted = tau + _LOG_SHARE - (math.log(delta) + _LOG_ORDERS) / _PAST_ONE
    least = float(np.where(delta * delta + np.expm1(-tau) > 0.0, 0.0, converted).min())
    return least * (1.0 - 1e-9) > epsilon


def epsilon(pieces: Pieces, delta: float) -> float:
    """The smallest epsilon at this delta, as far as this bound knows."""
    tau = curve(pieces)
    if delta <= 0.0:
        return math.inf if tau.any() else 0.0
    # Imported here because it takes over a second on its own, and calibration rarely comes this way.
    from dp_accounting import rdp as dp_rdp

    return float(dp_rdp.compute_epsilon(ORDERS, tau, delta)[0])


def log_delta(pieces: Pieces, eps: float) -> float:
    r"""The logarithm of the smallest delta at this epsilon, as far as this bound knows.

    The conversion of :func:`epsilon` solved for :math:`\delta`, and the bound
    :math:`\delta \le \sqrt{1 - e^{-\tau}}` on total variation that holds at every epsilon.
    """
    tau = curve(pieces)
    if not tau.any():
        return -math.inf
    if math.isinf(eps):
        return -math.inf if pieces.private else 0.0
    converted = _PAST_ONE * (tau - eps + _LOG_SHARE) - _LOG_ORDERS
    variation = 0.5 * math.log(-math.expm1(-float(tau[0])))
    return min(float(converted.min()), variation, 0.0)


def excess(pieces: Pieces, eps: float, delta: float) -> float:
    """At most zero if and only if this bound proves (eps, delta)."""
    if delta <= 0.0:
        return math.inf if curve(pieces).any() else -math.inf
    return log_delta(pieces, eps) - math.log(delta)
