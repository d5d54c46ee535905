"""What the trials of the screening papers measure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from taciturn.core.validation import BoolArray, FloatArray
from taciturn.metrics import support_f1

__all__ = ["Curve", "explained_share", "recorded_steps", "support_rates"]


_POINTS = 50


def support_rates(true: BoolArray, support: BoolArray) -> dict[str, float]:
    """What Tables 1 and 2 of RNM-Screen have in their columns; "sparsity" is the share of NON-zeros."""
    return {
        "TPR": float(support[true].mean()),
        "FPR": float(support[~true].mean()),
        "F1": support_f1(true, support),
        "sparsity": float(support.mean()),
    }


def explained_share(factor: FloatArray, spreads: FloatArray, kept: BoolArray, others: BoolArray) -> float | None:
    """Mean R2 of least squares without intercept from the kept features to the others; None if there are no such.

    ``factor`` is any matrix with the same inner products as the features; ``spreads`` are their sums of squares about
    the means.
    """
    if not kept.any() or not others.any():
        return None
    fitted, *_ = np.linalg.lstsq(factor[:, kept], factor[:, others], rcond=None)
    left = np.square(factor[:, others] - factor[:, kept] @ fitted).sum(axis=0)
    total = spreads[others]
    # A constant is explained or not, as scikit-learn's score has it.
    shares = np.where(total > 0.0, 1.0 - left / np.where(total > 0.0, total, 1.0), left == 0.0)
    return float(shares.mean())


def recorded_steps(n_steps: int) -> tuple[int, ...]:
    """About fifty steps from the first to the last, at equal distances."""
    return tuple(np.unique(np.linspace(1, n_steps, min(n_steps, _POINTS)).round().astype(int)).tolist())


class Curve:
    """A quantity along the steps of a fit, ``quantity(weights, gradient)``: what a model's ``watch`` is set to."""

    def __init__(self, n_steps: int, quantity: Callable[[FloatArray, FloatArray], float]) -> None:
        self._steps = frozenset(recorded_steps(n_steps))
        self._quantity = quantity
        self.points: list[tuple[int, float]] = []

    def __call__(self, step: int, weights: FloatArray, gradient: FloatArray) -> None:
        """Take down a step, if it is one of those recorded."""
        if step in self._steps:
            self.points.append((step, float(self._quantity(weights, gradient))))
