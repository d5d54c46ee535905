r"""The optimal composition of pure differential privacy.

Any adaptive composition of :math:`\varepsilon_i`-DP releases is a function of the same number of independent randomised
responses (Kairouz, Oh and Viswanath 2015). Their joint privacy loss is :math:`L = \sum_i \varepsilon_i (2K_i - n_i)`
with :math:`K_i \sim \mathrm{Bin}(n_i, 1/(1 + e^{-\varepsilon_i}))` over the distinct epsilons, and

.. math:: \delta(\varepsilon) = E\bigl[(1 - e^{\varepsilon - L})_+\bigr]

is exact. It is evaluated by enumeration. Each :math:`K_i` is confined to :math:`n_i p_i \pm \sqrt{n_i \ln(2/\eta)/2}`,
outside which it lies with probability at most :math:`\eta` (Hoeffding 1963), and every such :math:`\eta = 10^{-40}` is
charged to :math:`\delta`. Too many outcomes, or counts beyond the digits of a log-gamma function, fall back to the sum
of the epsilons, which is all that :math:`\delta = 0` permits anyway.

Every selection is a pure release too; Gaussian noise is not, on a sum or on an objective, and makes this bound
infinite.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import expit, gammaln, log_expit

from taciturn.core.validation import FloatArray
from taciturn.privacy.budget import Pieces

_MOST_OUTCOMES = 2_000_000
_LARGEST_COUNT = 10_000_000
_UNSEEN = 1e-40


def _applies(pieces: Pieces) -> bool:
    return pieces.private and not (pieces.gaussians or pieces.objectives or pieces.searches)


def _counts(pieces: Pieces) -> dict[float, int]:
    counts: dict[float, int] = {}
    for eps, count in (*pieces.selections, *pieces.pure):
        counts[eps] = counts.get(eps, 0) + count
    return counts


def _sum(pieces: Pieces) -> float:
    return math.fsum((*(eps * count for eps, count in _counts(pieces).items()), -pieces.spared))


def _binomial(eps: float, count: int) -> tuple[FloatArray, FloatArray]:
    """The privacy losses of ``count`` randomised responses and the logarithms of their chances."""
    reach = math.sqrt(0.5 * count * math.log(2.0 / _UNSEEN))
    mean = count * float(expit(eps))
    low, high = max(0, math.floor(mean - reach)), min(count, math.ceil(mean + reach))
    truths = np.arange(low, high + 1.0)
    lies = count - truths
    log_weights = (
        gammaln(count + 1.0)
        - gammaln(truths + 1.0)
        - gammaln(lies + 1.0)
        + truths * log_expit(eps)
        + lies * log_expit(-eps)
    )
    return eps * (truths - lies), log_weights


# One plan is asked for at many epsilons in a row.
@lru_cache(maxsize=1)
def _outcomes(pieces: Pieces) -> tuple[FloatArray, FloatArray, float] | None:
    """Joint losses, the logarithms of their chances, and the chance of all others; None if too many."""
    counts = _counts(pieces)
    if max(counts.values(), default=0) > _LARGEST_COUNT:
        return None
    groups = [_binomial(eps, count) for eps, count in counts.items()]
    if math.prod(len(losses) for losses, _ in groups) > _MOST_OUTCOMES:
        return None
    losses, log_weights = np.zeros(1), np.zeros(1)
    for more_losses, more_weights in groups:
        losses = np.add.outer(losses, more_losses).ravel()
        log_weights = np.add.outer(log_weights, more_weights).ravel()
    return losses, log_weights, _UNSEEN * len(groups)


def epsilon(pieces: Pieces, delta: float) -> float:
    r"""The smallest epsilon at this delta, as far as this bound knows.

    The best test at level :math:`\varepsilon` accepts the largest losses, so with :math:`P_j, Q_j` the probabilities of
    the :math:`j` largest losses under either data set :math:`\delta(\varepsilon) = \max_j (P_j - e^{\varepsilon} Q_j)`,
    and no root need be sought: :math:`\varepsilon = \max_j \ln((P_j - \delta) / Q_j)`.
    """
    if not _applies(pieces):
        return math.inf
    total = _sum(pieces)
    outcomes = None if delta <= 0.0 else _outcomes(pieces)
    if outcomes is None or delta <= outcomes[2]:
        return total
    losses, log_weights, unseen = outcomes
    log_target = math.log(delta - unseen)
    descending = np.argsort(-losses, kind="stable")
    losses, log_weights = losses[descending], log_weights[descending]
    log_p = np.logaddexp.accumulate(log_weights)
    log_q = np.logaddexp.accumulate(log_weights - losses)
    above = log_p > log_target
    if not above.any():
        return 0.0
    kept = log_p[above] + np.log(-np.expm1(log_target - log_p[above]))
    return min(max(float((kept - log_q[above]).max()), 0.0), total)


def log_delta(pieces: Pieces, eps: float) -> float:
    """The logarithm of the smallest delta at this epsilon, as far as this bound knows."""
    if not _applies(pieces):
        return 0.0
    if eps >= _sum(pieces):
        return -math.inf
    outcomes = _outcomes(pieces)
    if outcomes is None:
        return 0.0
    losses, log_weights, unseen = outcomes
    beyond = losses > eps
    seen = -np.exp(log_weights[beyond]) @ np.expm1(eps - losses[beyond])
    return min(math.log(float(seen) + unseen), 0.0)


def excess(pieces: Pieces, eps: float, delta: float) -> float:
    """At most zero if and only if this bound proves (eps, delta)."""
    if delta <= 0.0:
        return _sum(pieces) - eps if _applies(pieces) else math.inf
    return log_delta(pieces, eps) - math.log(delta)
