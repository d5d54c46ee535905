r"""How many coefficients of the default model are not zero, where nobody says: a private extended BIC.

.. math:: \text{score}(k) = -\sum_i \mathrm{clip}_b\bigl(\ell_i(w_{(k)}) - \ell_i(w_{(r)})\bigr)
          - k\, \bigl(\tfrac12 \ln n + \gamma \ln d\bigr), \qquad
          \gamma = \max\bigl(0, 1 - \tfrac{\ln n}{2 \ln d}\bigr),

with :math:`w_{(k)}` the k heaviest of the released weights and r as many as hold nine tenths of their square. Scores
compete in one exponential mechanism; one record moves each by b at most.

References
----------
Chen and Chen, *Extended Bayesian information criteria for model selection with large model spaces* (2008).
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.core.arrays import FloatArray, IndexArray, IntArray
from taciturn.core.lattice import ONE
from taciturn.fitting.gradient_descent import columns_by_weight
from taciturn.fitting.releases import Releases
from taciturn.fitting.sparse_screening import clip_records
from taciturn.planning.sparse import LEAST_NONZERO, SparsePlan

__all__ = ["candidate_n_nonzero", "choose_n_nonzero"]

_FINE_UP_TO = 20
_COARSE_RATIO = 1.06
_REFERENCE = 0.9
# Ends of the clip on differences of losses.
_LEAST_CLIP = 0.15
_MOST_FOR_NUMBERS = 1.0
_MOST_FOR_CLASSES = 0.7


def choose_n_nonzero(
    plan: SparsePlan,
    releases: Releases,
    share: float,
    severity: float,
    columns: IndexArray | None,
    centre: FloatArray | None,
    target_mean: int,
    clip: float,
    weights: FloatArray,
    constants: FloatArray,
) -> int:
    """The number of nonzero coefficients.

    Parameters
    ----------
    plan : SparsePlan
        Public facts.
    releases : Releases
        Pays for the choice.
    share : float
        What it costs.
    severity : float
        Factor on the penalty of a column.
    columns : ndarray of int or None
        The columns that compete; None for all.
    centre : ndarray or None
        Taken from rows.
    target_mean : int
        Taken from the target.
    clip : float
        Unit of residuals.
    weights : ndarray of shape (n_outputs, n_columns)
        Released weights.
    constants : ndarray of shape (n_outputs,)
        Released margins of the constant.
    """
    d, n, n_features = weights.shape[1], plan.n_rows, plan.n_features
    candidates, order = candidate_n_nonzero(d), columns_by_weight(weights)
    squares = np.cumsum(np.square(weights).sum(axis=0)[order])
    reference = min(int(np.searchsorted(squares, _REFERENCE * squares[-1])) + 1, d)
    # No row is clipped: what a record can add is bounded by the clip of the differences alone.
    bound = 2.0 * math.sqrt(d + 1)
    clipping = clip_records(plan, columns, bound, clip, ONE, centre=centre, target_mean=target_mean)

    def model(k: int) -> FloatArray:
        kept = np.zeros_like(weights)
        kept[:, order[:k]] = weights[:, order[:k]]
        return np.column_stack((kept, constants * (ONE / clipping.constant))) if clipping.constant else kept

    extended = max(0.0, 1.0 - math.log(n) / (2.0 * math.log(n_features))) if n_features > 1 else 0.0
    penalty = severity * plan.n_outputs * (0.5 * math.log(n) + extended * math.log(n_features))
    place = releases.best_model(
        f"one of {candidates.size} numbers of nonzero coefficients",
        share,
        clipping,
        tuple(model(int(k)) for k in candidates),
        model(reference),
        penalty * candidates.astype(np.float64),
        (_LEAST_CLIP, _MOST_FOR_NUMBERS if plan.regression else _MOST_FOR_CLASSES),
    )
    return int(candidates[place])


def candidate_n_nonzero(d: int) -> IntArray:
    """Three to twenty, then in steps of six per cent, up to all columns."""
    candidates, k = list(range(min(LEAST_NONZERO, d), min(_FINE_UP_TO, d) + 1)), _FINE_UP_TO
    while k < d:
        k = min(d, math.ceil(_COARSE_RATIO * k))
        candidates.append(k)
    return np.array(candidates, dtype=np.int64)
