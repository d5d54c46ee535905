"""Softmax residuals on the lattice, one record at a time.

A record's residual is a function of its own margins and label alone, to the last bit, and the same on every processor:
the exponential function is our own, and sums over classes are made in their order.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.kernels.compiled import compiled
from taciturn.kernels.exponentials import exponential, softmax_numpy

__all__ = ["softmax_residuals", "softmax_residuals_numpy", "warm_up"]


@compiled(error_model="numpy")
def softmax_residuals(
    margins: IntArray, unit: float, codes: IntArray, bound: int, out: FloatArray
) -> None:  # pragma: no cover (compiled; its twin below is covered)
    """``out = rint(bound * (softmax(unit * margins) - onehot))``; rows with a negative code are null and give zero."""
    n_rows, n_classes = margins.shape
    for i in range(n_rows):
        code = codes[i]
        if code < 0:
            for k in range(n_classes):
                out[i, k] = 0.0
            continue
        top = margins[i, 0]
        for k in range(1, n_classes):
            top = max(top, margins[i, k])
        total = 0.0
        for k in range(n_classes):
            out[i, k] = exponential((margins[i, k] - top) * unit)
            total += out[i, k]
        for k in range(n_classes):
            residual = out[i, k] / total - (1.0 if k == code else 0.0)
            out[i, k] = min(max(np.rint(residual * bound), -bound), bound)


@cache
def warm_up() -> None:
    """Compile :func:`softmax_residuals`, once a process."""
    softmax_residuals(np.zeros((1, 1), dtype=np.int64), 1.0, np.zeros(1, dtype=np.int64), 1, np.zeros((1, 1)))


def softmax_residuals_numpy(margins: IntArray, unit: float, codes: IntArray, bound: int, out: FloatArray) -> None:
    """The numpy twin of :func:`softmax_residuals`: the same bits."""
    weights = softmax_numpy((margins - margins.max(axis=1, keepdims=True)) * unit)
    known = codes >= 0
    weights[np.flatnonzero(known), codes[known]] -= 1.0
    weights[~known] = 0.0
    np.clip(np.rint(weights * bound), -bound, bound, out=out)
