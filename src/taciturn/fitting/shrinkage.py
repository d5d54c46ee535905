r"""Weights of a descent shrunk by what its noise is known to have added to them.

Where few columns matter, most weights of a descent on all columns are noise. Their errors have a known law
(:mod:`~taciturn.fitting.weight_noise`). Given that law, a prior is fitted to the released weights themselves, a mixture
of normal laws with a mass at zero (Stephens, 2017), and weights become their posterior means: large ones stay, small
ones nearly vanish. That is post-processing and costs nothing, but it helps only if columns matter one by one. Where
many weak and correlated ones matter together, it would take the signal with the noise. So shrunk weights have to
predict better, by a private comparison of losses.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.lattice import ONE
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_descent import ColumnModel, Descent, least_share
from taciturn.planning.sparse import SparsePlan

__all__ = ["choose_shrinkage", "posterior_means", "shrinkage_share"]

# With less than this many records times the Gaussian parameter the comparison would be noise, and with fewer columns
# their law could not be told.
_LEAST_INFORMATION = 400.0
_LEAST_COLUMNS = 8
# Weights are compared at the slope that suits them best; recalibration tells it better afterwards.
_SLOPES = (0.25, 0.5, 1.0, 2.0, 4.0)
_CLIP = 0.5
# What shrunk weights have to gain per record, in units of losses: in doubt those that were fitted stay.
_LEAST_GAIN = 0.004
# The median magnitude of a standard normal law.
_NORMAL_MEDIAN = 0.6745
_EM_STEPS = 60


def shrinkage_share(plan: SparsePlan, mu: float) -> float:
    """The share of the budget for the comparison: none where public facts say that it would not pay.

    Weights of several classes are not recalibrated, so that nothing would repair their slope afterwards.
    """
    n_columns = plan.n_features if plan.columns is None else len(plan.columns)
    enough = plan.n_rows * mu >= _LEAST_INFORMATION and n_columns >= _LEAST_COLUMNS
    if plan.strategy.method != "dense" or plan.n_outputs > 1 or math.isinf(mu) or not enough:
        return 0.0
    return least_share(plan.n_rows, mu, 60.0, 0.005, 0.03)


def choose_shrinkage(
    plan: SparsePlan, releases: Releases, descent: Descent, model: ColumnModel, share: float
) -> ColumnModel:
    """The model with its weights as they are, or shrunk for one of two levels of noise.

    One is that of the law. The other is that of the weights themselves, as if most of them were noise: the law is for
    columns of even curvature, and too small where labels are nearly certain.
    """
    clipping = replace(descent.clipping(model, 1.0, model.size if plan.regression else 1.0), product_bound=1)
    constants = model.constants * (ONE / clipping.constant) if clipping.constant else None

    def coefficients(weights: FloatArray) -> FloatArray:
        return weights if constants is None else np.column_stack((weights, constants))

    choices = [model.weights]
    if model.noise is not None:
        deviations = model.noise.deviations(model.n_columns)
        ratios = model.weights / deviations
        typical = float(np.median(np.abs(ratios))) / _NORMAL_MEDIAN
        choices += [posterior_means(ratios, level) * deviations for level in (1.0, typical) if level > 0.0]
    place = releases.best_model(
        f"one of {len(choices)} degrees of shrinkage", share, clipping,
        tuple(coefficients(slope * weights) for weights in choices for slope in _SLOPES), coefficients(model.weights),
        np.repeat(_LEAST_GAIN * plan.n_rows * (np.arange(len(choices)) > 0), len(_SLOPES)), (_CLIP, _CLIP),
        # Sums count from the least there can be.
        -_CLIP * plan.n_rows - 1.0,
    )  # fmt: skip
    return replace(model, weights=choices[place // len(_SLOPES)])


def posterior_means(values: FloatArray, deviation: float) -> FloatArray:
    """What values with normal errors of a deviation are expected to be, under a prior that is fitted to all of them.

    The prior is a mixture of normal laws around zero, of widths from zero to the largest value in powers of two, and
    its shares are those of maximum likelihood with one more zero observed.
    """
    ratios = values / deviation
    largest = max(float(np.abs(ratios).max()), 2.0)
    widths = np.append(0.0, 2.0 ** np.arange(-1.0, math.ceil(math.log2(largest)) + 1.0))
    totals = 1.0 + np.square(widths)
    logarithms = -0.5 * (np.square(ratios)[..., None] / totals + np.log(totals))
    likelihoods = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    shares = np.full(widths.size, 1.0 / widths.size)
    for _ in range(_EM_STEPS):
        parts = shares * likelihoods
        parts /= parts.sum(axis=-1, keepdims=True)
        shares = parts.reshape(-1, widths.size).sum(axis=0)
        shares[0] += 1.0
        shares /= shares.sum()
    parts = shares * likelihoods
    parts /= parts.sum(axis=-1, keepdims=True)
    means: FloatArray = values * (parts @ (np.square(widths) / totals))
    return means
