"""One fit of each method, and what is measured of it."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from taciturn.core.errors import WeakBudgetWarning
from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray
from taciturn.losses import LogisticLoss
from taciturn.published import PrivateLasso, Sparsifier
from taciturn.published.frank_wolfe import noisy_count, noisy_frank_wolfe
from taciturn_research.reproduce.sparsifier.printed import COUNT_EPSILON, N_STEPS, RADIUS
from taciturn_research.reproduce.sparsifier.samples import Sample

__all__ = [
    "coefficients",
    "fit_soundly",
    "largest_entry",
    "measures",
    "private_lasso",
    "sparsify",
    "stopped_lasso",
]


def measures(weights: FloatArray, intercept: float, sample: Sample) -> dict[str, float]:
    """Non-zero coefficients, and accuracy and AUC on the test part in percent."""
    margins = sample.X_test @ weights + intercept
    right = (margins > 0.0) == (sample.y_test == 1.0)
    return {
        "NZ": float(np.count_nonzero(weights)),
        "accuracy": 100.0 * float(right.mean()),
        "AUC": 100.0 * float(roc_auc_score(sample.y_test, margins)),
    }


def private_lasso(sample: Sample, seed: int, *, n_steps: int = N_STEPS, epsilon: float = 1.0) -> FloatArray:
    """Private LASSO as printed, with noise for its steps."""
    model = PrivateLasso(epsilon=epsilon, delta=sample.delta, radius=RADIUS, n_steps=n_steps, random_state=seed)
    return coefficients(model.fit(sample.X, sample.y))


def stopped_lasso(sample: Sample, seed: int, n_steps: int) -> FloatArray:
    """Private LASSO with the noise of 1000 steps, stopped after fewer: at most what the whole run would spend."""
    # The noise goes with the root of the steps over epsilon.
    return private_lasso(sample, seed, n_steps=n_steps, epsilon=math.sqrt(n_steps / N_STEPS))


def sparsify(sample: Sample, seed: int, *, epsilon: float, radius: float, n_reference: int) -> FloatArray:
    """What a fit of ``Sparsifier`` gives whose non-private model is known to have ``n_reference`` coefficients."""
    n_rows, n_columns = sample.X.shape
    model = Sparsifier(
        epsilon_optimise=epsilon - COUNT_EPSILON,
        epsilon_count=COUNT_EPSILON,
        delta=sample.delta,
        radius=radius,
        n_steps=N_STEPS,
    )
    stream = Stream.of(seed)
    count = noisy_count(n_reference, *model.count_ends(n_columns), COUNT_EPSILON, stream.spawn("count"))
    weights = noisy_frank_wolfe(
        sample.X,
        sample.y,
        LogisticLoss(),
        radius=radius,
        n_selections=N_STEPS - 1,
        noise_scale=model.noise_scale(n_rows),
        stream=stream.spawn("frank-wolfe"),
    )
    kept = np.argsort(-np.abs(weights), kind="stable")[: int(count)]
    thinned = np.zeros(n_columns)
    thinned[kept] = weights[kept]
    return thinned


def fit_soundly(model: Any, X: Any, y: FloatArray) -> Any:
    """Fit without the warning for small tables: what they give is what the trial is to show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakBudgetWarning)
        return model.fit(X, y)


def coefficients(model: Any) -> FloatArray:
    """The weights of a model for two classes."""
    return np.asarray(model.coef_, dtype=np.float64).ravel()


def largest_entry(X: Any) -> float:
    """The bound that the sound methods are given, read off the data."""
    return float(abs(X).max())
