"""Linear predictors in an objective that is minimised."""

from __future__ import annotations

import math

from taciturn.core.validation import check_integer, check_positive
from taciturn.data.sensitivity.base import Sensitivity, check_relation, record_sum

__all__ = ["approximate_minimiser", "objective_tilt"]


def objective_tilt(lipschitz: float, row_bound: float, relation: str) -> Sensitivity:
    r"""The gradient of ``sum_i phi(x_i . w; y_i)`` at one and the same w. Norm l2.

    *Proof.* A record's gradient is ``phi' x`` with ``|phi'| <= lipschitz`` and ``||x||_2 <= row_bound``; ``record_sum``
    does the rest. This is how far the linear term must be tilted for w to stay the minimiser.
    """
    return record_sum(check_positive(lipschitz=lipschitz) * check_positive(row_bound=row_bound), "l2", relation)


def approximate_minimiser(
    tolerance: float, regularisation: float, step: float, n_columns: int, relation: str
) -> Sensitivity:
    r"""A point of gradient at most ``tolerance`` of a convex objective with ``regularisation / 2 ||w||^2``, rounded to
    a lattice. Norm l2, in units of its ``step``.

    Whoever knows the exact minimiser learns by how much the computed one misses it, and nothing else.

    *Proof.* Gradients of a strongly convex function satisfy ``||grad J(w) - grad J(v)|| >= regularisation ||w - v||``.
    With v the minimiser, where the gradient vanishes, ``||w - v|| <= tolerance / regularisation``. Given the same v,
    the points computed from two data sets are at most twice that apart, whatever the relation. Rounding moves each of
    the ``n_columns`` coordinates of either point by at most half a step, hence their difference by at most
    ``sqrt(n_columns)`` steps.
    """
    distance = check_positive(tolerance=tolerance) / check_positive(regularisation=regularisation)
    steps = 2.0 * distance / check_positive(step=step)
    return Sensitivity(steps + math.sqrt(check_integer(1, n_columns=n_columns)), "l2", check_relation(relation))
