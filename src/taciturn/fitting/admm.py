r"""Consensus ADMM for a penalised sum of losses, with a random tilt in every local problem.

.. math:: \min_{w_1, \dots, w_B, z} \sum_b \sum_{i \in b} \phi(x_i \cdot w_b; y_i) + \kappa \rho B\, P(z)
          \quad \text{subject to } w_b = z .

One iteration, with scaled multipliers u:

.. math:: w_b &\leftarrow \arg\min_w \sum_{i \in b} \phi(x_i \cdot w; y_i) + \tfrac{\rho}{2} \|w - z + u_b\|^2
          + t_b \cdot w, \qquad t_b \sim N(0, \sigma^2 I), \\
          z &\leftarrow \mathrm{prox}_{\kappa P}\Bigl(\tfrac{1}{B} \sum_b (w_b + u_b)\Bigr), \qquad
          u_b \leftarrow u_b + w_b - z .

The records enter through the local minimisers alone, and each record through those of its own block: the rest is
computed from them. So one iteration costs one record what one perturbed objective costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.mechanisms.transcript import block_of_records

__all__ = ["PENALTIES", "half_threshold", "penalty_level", "soft_threshold", "solve_admm"]


# Where half thresholding starts: |a| = 3/2 kappa^(2/3).
_HALF_START = 1.5
# Below this it moves nothing by more than 1e-199, and the formula would leave the doubles.
_HALF_LEAST = 1e-300


def soft_threshold(values: FloatArray, kappa: float) -> FloatArray:
    r"""The minimiser of :math:`\tfrac12 (z - a)^2 + \kappa |z|`."""
    shrunk: FloatArray = np.sign(values) * np.maximum(np.abs(values) - kappa, 0.0)
    return shrunk


def half_threshold(values: FloatArray, kappa: float) -> FloatArray:
    r"""The minimiser of :math:`\tfrac12 (z - a)^2 + \kappa |z|^{1/2}` (Xu, Chang, Xu and Zhang 2012).

    Zero for :math:`|a| \le \tfrac32 \kappa^{2/3}`, and beyond that the largest root of the stationarity condition,
    :math:`\tfrac23 a (1 + \cos(\tfrac{2\pi}{3} - \tfrac23 \arccos(\tfrac{\kappa}{4} (|a|/3)^{-3/2})))`.
    """
    if kappa < _HALF_LEAST:
        return values.copy()
    sizes = np.abs(values)
    kept = sizes > _HALF_START * kappa ** (2.0 / 3.0)
    out = np.zeros_like(values)
    angle = np.arccos(np.minimum(0.25 * kappa * (sizes[kept] / 3.0) ** -1.5, 1.0))
    out[kept] = 2.0 / 3.0 * values[kept] * (1.0 + np.cos(2.0 / 3.0 * (np.pi - angle)))
    return out


PENALTIES: dict[str, Callable[[FloatArray, float], FloatArray]] = {"l1": soft_threshold, "l1/2": half_threshold}
"""The proximal map of each penalty."""


def penalty_level(penalty: str, threshold: float) -> float:
    """The kappa at which the proximal map sets everything up to ``threshold`` to zero."""
    return threshold if penalty == "l1" else float((threshold / _HALF_START) ** 1.5)


def solve_admm(
    blocks: Sequence[tuple[Any, FloatArray]],
    n_columns: int,
    *,
    penalty: str,
    kappa: float,
    coupling: float,
    n_penalised: int,
    n_steps: int,
    release: Callable[[Any, FloatArray, FloatArray, Stream], FloatArray],
    stream: Stream,
) -> FloatArray:
    r"""The consensus z after all iterations.

    Parameters
    ----------
    blocks : sequence of (rows, targets)
        The records of each block; a block may be empty.
    n_columns : int
        Columns, an intercept's included.
    penalty : {"l1", "l1/2"}
        P.
    kappa : float
        Strength of the penalty in the proximal map.
    coupling : float
        :math:`\rho`.
    n_penalised : int
        The columns before this one are penalised; an intercept comes after them.
    n_steps : int
        Number of iterations.
    release : callable
        ``release(rows, targets, offset, stream)``: the minimiser of the losses, of :math:`\rho/2 \|w\|^2` and of a
        linear term, ``offset`` and fresh noise.
    stream : Stream
        Randomness of this run; every minimiser has its own.
    """
    shrink = PENALTIES[penalty]
    consensus = np.zeros(n_columns)
    multipliers = np.zeros((len(blocks), n_columns))
    local = np.zeros_like(multipliers)
    for _ in range(n_steps):
        for b, (rows, targets) in enumerate(blocks):
            with block_of_records(b, (rows, targets)):
                local[b] = release(rows, targets, -coupling * (consensus - multipliers[b]), stream)
        consensus = (local + multipliers).mean(axis=0)
        consensus[:n_penalised] = shrink(consensus[:n_penalised], kappa)
        multipliers += local - consensus
    return consensus
