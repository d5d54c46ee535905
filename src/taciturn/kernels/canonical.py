r"""The canonical Lipschitz mechanism, class by class in O(d k): a plain reference for the merged sampler.

Candidates are ranked by score. A subset of size k other than the top k belongs to the class (h, t) when
ranks 1..h are in it, rank h + 1 is not, and t is its last rank; its other ``k - h - 1`` members lie
anywhere in h + 2 .. t - 1, so the class has ``C(t - h - 2, k - h - 1)`` members. All members of a class have one
utility, ``head[h] + tail[t]``, and the largest of m independent noises is drawn at once.

``best_class_of_head`` treats all classes of one h: give it the logarithm of one exponential variate per t.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.kernels.compiled import compiled

__all__ = ["best_class_of_head", "best_class_of_head_numpy", "largest_noise"]


# Below this, -log(-expm1(-exp(z))) equals -z to the last bit.
_SMALL = -38.0


def largest_noise(z: FloatArray, gumbel: bool) -> FloatArray:
    r"""The largest of m noises from ``z = log(E / m)``, E exponential.

    The largest of m uniforms is ``exp(-E / m)``; the noise is its image under the quantile function,
    ``-log(-log u)`` for Gumbel, ``-log(1 - u)`` for exponential noise, written so that m may be astronomical.
    """
    if gumbel:
        return -z
    small = z < _SMALL
    with np.errstate(over="ignore"):
        shrunk = np.exp(np.where(small, 0.0, z))
    return np.where(small, -z, -np.log(-np.expm1(-shrunk)))


@compiled
def best_class_of_head(
    head: float,
    tail: FloatArray,
    log_factorial: FloatArray,
    k: int,
    h: int,
    log_exponentials: FloatArray,
    gumbel: bool,
) -> tuple[float, int]:  # pragma: no cover (compiled; its twin below is covered)
    """The best value ``head + tail[i] + noise`` over classes (h, t = k + 1 + i), and its t."""
    best, best_t = -math.inf, -1
    for i in range(tail.size):
        t = k + 1 + i
        log_size = log_factorial[t - h - 2] - log_factorial[k - h - 1] - log_factorial[t - k - 1]
        z = log_exponentials[i] - log_size
        noise = -z if gumbel or z < _SMALL else -math.log(-math.expm1(-math.exp(z)))
        value = head + tail[i] + noise
        if value > best:
            best, best_t = value, t
    return best, best_t


def best_class_of_head_numpy(
    head: float,
    tail: FloatArray,
    log_factorial: FloatArray,
    k: int,
    h: int,
    log_exponentials: FloatArray,
    gumbel: bool,
) -> tuple[float, int]:
    """The numpy twin of :func:`best_class_of_head`."""
    t = np.arange(k + 1, k + 1 + tail.size)
    log_sizes = log_factorial[t - h - 2] - log_factorial[k - h - 1] - log_factorial[t - k - 1]
    values = head + tail + largest_noise(log_exponentials - log_sizes, gumbel)
    winner = int(np.argmax(values))
    return float(values[winner]), int(t[winner])
