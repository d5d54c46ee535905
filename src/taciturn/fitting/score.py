"""Noisy sums over records, of which scores are made."""

from __future__ import annotations

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.core.rng import Stream
from taciturn.planning.score import ScorePlan

__all__ = ["release_sums"]


def release_sums(plan: ScorePlan, sums: IntArray, stream: Stream) -> FloatArray:
    """Release sums of integers between 0 and ``plan.term_bound``, in units of that bound."""
    noisy: IntArray = sums if plan.mechanism is None else plan.mechanism.release(sums, stream.spawn("score"))
    released: FloatArray = noisy / plan.term_bound
    return released
