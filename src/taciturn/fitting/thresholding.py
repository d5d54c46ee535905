"""Where coefficients may lie: few non-zeros, reached by truncation."""

from __future__ import annotations

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.validation import check_integer

__all__ = ["keep_largest_columns"]


def keep_largest_columns(coefficients: FloatArray, k: int) -> FloatArray:
    """Zero all but the k columns with the largest absolute sums; equal ones are kept in order of their index.

    A function of released coefficients: post-processing, at no cost.
    """
    k = check_integer(1, k=k)
    kept = np.zeros_like(coefficients)
    largest = np.argsort(-np.abs(coefficients).sum(axis=0), kind="stable")[:k]
    kept[:, largest] = coefficients[:, largest]
    return kept
