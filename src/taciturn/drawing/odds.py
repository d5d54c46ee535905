r"""Posterior beliefs of an attacker who wants to know whether a person is in the data.

Let P and Q be the laws of the release with the person and without, (epsilon, delta)-indistinguishable in both
directions. Let a signal S reveal, with probability delta, whether the person is in the data, and otherwise tell the
truth with probability :math:`e^\varepsilon / (1 + e^\varepsilon)` (randomised response). No test of an
(epsilon, delta)-indistinguishable pair is more powerful than the best test on S [1]_, so by Blackwell's theorem the
release is a random function of S and reveals no more. Given S, the posterior is an end of :func:`posterior_range`,
except with probability delta. Given the release it is a mean of those: beyond the range by at most delta on average,
and by more than t with probability at most delta / t (Markov).

References
----------
.. [1] Kairouz, Oh and Viswanath, *The composition theorem for differential privacy* (2015).
"""

from __future__ import annotations

import math

__all__ = ["posterior_range"]


def posterior_range(prior: float, epsilon: float) -> tuple[float, float]:
    r"""Lowest and highest posterior probability for the prior probability ``prior``, up to delta.

    .. math:: \frac{p}{p + (1 - p) e^{\varepsilon}} \quad\text{and}\quad \frac{p}{p + (1 - p) e^{-\varepsilon}}

    Examples
    --------
    >>> low, high = posterior_range(0.5, 1.0)
    >>> round(low, 4), round(high, 4)
    (0.2689, 0.7311)
    """
    if prior in (0.0, 1.0):
        return prior, prior
    # In terms of exp(-epsilon), which cannot overflow.
    factor = math.exp(-epsilon)
    return prior * factor / (prior * factor + 1.0 - prior), prior / (prior + (1.0 - prior) * factor)
