"""The selection of k of d scores."""

from __future__ import annotations

import numpy as np

from taciturn.core.arrays import IntArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite
from taciturn.mechanisms import first_k_of
from taciturn.planning.top_k import TopKPlan

__all__ = ["select_top_k"]


def select_top_k(plan: TopKPlan, scores: object, stream: Stream) -> IntArray:
    """Release the indices of the k largest scores, by the mechanism of the plan."""
    if plan.mechanism is not None:
        return plan.mechanism.release(scores, stream.spawn("top-k"))
    exact = check_finite(scores=scores)
    return first_k_of(exact, np.zeros(exact.size), plan.k)
