"""How well a public model predicts records: sums of their errors, counts of right and wrong labels."""

from __future__ import annotations

import math

from taciturn.core.validation import check_integer
from taciturn.data.sensitivity.base import Norm, Sensitivity, check_relation

__all__ = ["cell_counts", "error_sum", "outcome_counts"]


def error_sum(term_bound: int, norm: Norm, relation: str) -> Sensitivity:
    r"""``sum_i q_i`` of integers ``0 <= q_i <= term_bound``, one number, so that all norms agree.

    ``q_i`` says how far the prediction for record i is from its target, or whether it is right.

    *Proof.* The model is public, and a prediction depends on its own record alone; so ``q_i`` is a function of record
    i. Zero-out, add-remove: the sums differ by one term. Replace-one: by the difference of two numbers of the same
    interval, which is no longer than that. Attained under every relation, by a record that is predicted as badly as
    can be and, under replace-one, becomes one that is predicted exactly.

    *Persons.* The integers of a person's rows are added up, divided by m and rounded down: in the same interval.
    """
    return Sensitivity(float(check_integer(1, term_bound=term_bound)), norm, check_relation(relation))


def cell_counts(unit: int, relation: str) -> Sensitivity:
    r"""``unit`` times the numbers of records in cells, of which public numbers assign one to each record. Norm l2.

    The proof is that of :func:`outcome_counts`, where the cells are pairs of a class and of right or wrong.
    """
    return outcome_counts(unit, "l2", relation)


def outcome_counts(unit: int, norm: Norm, relation: str) -> Sensitivity:
    r"""``unit`` times the numbers of records in the cells of a public partition, by class and prediction.

    Cells are pairs of a class and of right or wrong, or of a class and a bin of the prediction, or of a bin of the
    target and one of the error (``data.prediction_cells``).

    *Statement.* ``unit`` in every norm under zero-out and add-remove; under replace-one ``2 unit`` in l1,
    ``sqrt(2) unit`` in l2 and ``unit`` in linf.

    *Proof.* As the model and the cells are public, and a prediction depends on its own record alone, the target of a
    record and the prediction for it decide which one of the numbers it is counted in; a null record is counted in none.
    So a record contributes ``unit`` to one coordinate. Zero-out, add-remove: the counts differ by one such
    contribution. Replace-one: by the difference of two of them, zero if they share their coordinate, and else of
    entries ``unit`` and ``-unit``. Attained by records of different cells. The factor 1 + 2**-50 covers the rounding of
    the square root. Counts of right predictions beside the sizes of classes would say the same and move by more: a
    record that is predicted rightly is counted in both.

    *Persons.* A person with k of its m rows in a cell contributes ``unit * k // m`` to it: a vector v of integers
    ``>= 0`` whose sum is at most ``unit``. Hence no norm of v exceeds ``unit``. Replace-one: ``||v - w||_1 <= 2 unit``;
    ``||v - w||_2**2 <= ||v||_2**2 + ||w||_2**2 <= 2 unit**2``, since ``v . w >= 0``; and entries of both are between 0
    and ``unit``.
    """
    relation = check_relation(relation)
    value = float(check_integer(1, unit=unit))
    if relation == "replace-one":
        value *= {"l1": 2.0, "l2": math.sqrt(2.0) * (1.0 + 2.0**-50), "linf": 1.0}[norm]
    return Sensitivity(value, norm, relation)
