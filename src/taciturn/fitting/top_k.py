"""The selection of k of d scores, or of the k largest columns of coefficients."""

from __future__ import annotations

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite, check_integer
from taciturn.mechanisms import first_k_of
from taciturn.planning.top_k import TopKPlan

__all__ = ["keep_largest_columns", "select_top_k"]


def select_top_k(plan: TopKPlan, scores: object, stream: Stream) -> IntArray:
    """Release the indices of the k largest scores, by the mechanism of the plan."""
    if plan.mechanism is not None:
        return plan.mechanism.release(scores, stream.spawn("top-k"))
    exact = check_finite(scores=scores)
    return first_k_of(exact, np.zeros(exact.size), plan.k)


def keep_largest_columns(coefficients: FloatArray, k: int) -> FloatArray:
    """Zero all but the k columns with the largest absolute sums; equal ones are kept in order of their index.

    A function of released coefficients: post-processing, at no cost.
    """
    k = check_integer(1, k=k)
    kept = np.zeros_like(coefficients)
    largest = np.argsort(-np.abs(coefficients).sum(axis=0), kind="stable")[:k]
    kept[:, largest] = coefficients[:, largest]
    return kept
