"""Linear predictors in an objective that is minimised."""

from __future__ import annotations

from taciturn.core.validation import check_positive
from taciturn.data.sensitivity.base import Sensitivity, check_relation, record_sum

__all__ = ["approximate_minimiser", "objective_tilt"]


def objective_tilt(slope: float, row_bound: float, relation: str) -> Sensitivity:
    r"""The gradient of ``sum_i phi(x_i . w; y_i)`` at one and the same w. Norm l2.

    *Proof.* A record's gradient is ``phi' x`` with ``|phi'| <= slope`` and ``||x||_2 <= row_bound``; ``record_sum``
    does the rest. This is how far the linear term must be tilted for w to stay the minimiser.
    """
    return record_sum(check_positive(slope=slope) * check_positive(row_bound=row_bound), "l2", relation)


def approximate_minimiser(tolerance: float, regularisation: float, relation: str) -> Sensitivity:
    r"""A point of gradient at most ``tolerance`` of a convex objective with ``regularisation / 2 ||w||^2``. Norm l2.

    Whoever knows the exact minimiser learns by how much the computed one misses it, and nothing else.

    *Proof.* Gradients of a strongly convex function satisfy ``||grad J(w) - grad J(v)|| >= regularisation ||w - v||``.
    With v the minimiser, where the gradient vanishes, ``||w - v|| <= tolerance / regularisation``. Given the same v,
    the points computed from two data sets are at most twice that apart, whatever the relation.
    """
    distance = check_positive(tolerance=tolerance) / check_positive(regularisation=regularisation)
    return Sensitivity(2.0 * distance, "l2", check_relation(relation))
