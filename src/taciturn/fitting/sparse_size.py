r"""How many columns the default model keeps, where nobody says: a private extended Bayesian information criterion.

.. math:: \text{score}(k) = -\sum_i \mathrm{clip}_b\bigl(\ell_i(w_{(k)}) - \ell_i(w_{(r)})\bigr)
          - k\, \bigl(\tfrac12 \ln n + \gamma \ln d\bigr), \qquad
          \gamma = \max\bigl(0, 1 - \tfrac{\ln n}{2 \ln d}\bigr),

with :math:`w_{(k)}` the k heaviest of the released weights and r as many as hold nine tenths of their square. Scores
compete in one exponential mechanism; one record moves each by b at most.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_setting import Setting, Target
from taciturn.fitting.two_phase import by_weight, record_losses

__all__ = ["LEAST_FEATURES", "candidate_sizes", "chosen_size"]

LEAST_FEATURES = 3
"""No model of a chosen size is smaller, unless there are fewer columns."""

_FINE_UP_TO = 20
_COARSE_RATIO = 1.06
_REFERENCE = 0.9
# Ends of the clip on differences of losses.
_LEAST_CLIP = 0.15
_MOST_FOR_NUMBERS = 1.0
_MOST_FOR_CLASSES = 0.7


def chosen_size(
    setting: Setting,
    releases: Releases,
    share: float,
    severity: float,
    design: Design,
    target: Target,
    centre: FloatArray | None,
    clip: float,
    weights: FloatArray,
    constants: FloatArray,
    n_features: int,
) -> int:
    """The size of the model.

    Parameters
    ----------
    setting : Setting
        Public facts.
    releases : Releases
        Pays for the choice.
    share : float
        What it costs.
    severity : float
        Factor on the price of a column.
    design, target
        The columns that compete, and the target.
    centre : ndarray or None
        Taken from rows.
    clip : float
        Unit of residuals.
    weights : ndarray of shape (n_outputs, n_columns)
        Released weights.
    constants : ndarray of shape (n_outputs,)
        Released margins of the constant.
    n_features : int
        Columns of the whole table, among which these were found.
    """
    d, n = design.n_features, setting.n_rows
    sizes, order = candidate_sizes(d), by_weight(weights)
    squares = np.cumsum(np.square(weights).sum(axis=0)[order])
    reference = min(int(np.searchsorted(squares, _REFERENCE * squares[-1])) + 1, d)
    # No row is clipped: what a record can add is bounded by the clip of the differences alone.
    records = setting.records(design, target, centre, 2.0 * math.sqrt(d + 1), clip, ONE)

    def losses(k: int) -> FloatArray:
        kept = np.zeros_like(weights)
        kept[:, order[:k]] = weights[:, order[:k]]
        if records.constant:
            kept = np.column_stack((kept, constants * (ONE / records.constant)))
        return record_losses(records, kept)

    base = losses(reference)
    excesses = [losses(int(k)) - base for k in sizes]
    extended = max(0.0, 1.0 - math.log(n) / (2.0 * math.log(n_features))) if n_features > 1 else 0.0
    price = severity * setting.n_outputs * (0.5 * math.log(n) + extended * math.log(n_features))
    clips = _LEAST_CLIP, _MOST_FOR_NUMBERS if setting.regression else _MOST_FOR_CLASSES
    place = releases.size(
        f"one of {sizes.size} sizes of the model", share, excesses, price * sizes.astype(np.float64), clips
    )
    return int(sizes[place])


def candidate_sizes(d: int) -> IntArray:
    """Three to twenty, then in steps of six per cent, up to all columns."""
    sizes, size = list(range(min(LEAST_FEATURES, d), min(_FINE_UP_TO, d) + 1)), _FINE_UP_TO
    while size < d:
        size = min(d, math.ceil(_COARSE_RATIO * size))
        sizes.append(size)
    return np.array(sizes, dtype=np.int64)
