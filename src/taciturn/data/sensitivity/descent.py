"""What gradient descent on clipped records releases besides :func:`~taciturn.data.sensitivity.fixed_point_sum`."""

from __future__ import annotations

import math

from taciturn.core.validation import check_integer, check_real
from taciturn.data.sensitivity.base import Sensitivity, check_relation, record_sum
from taciturn.data.sensitivity.sums import fixed_point_sum

__all__ = [
    "GRAM_WEIGHTS",
    "curvature_sum",
    "derivative_sum",
    "gram_matrix",
    "jointly_clipped_sum",
    "loss_differences",
    "proposal_scores",
]

GRAM_WEIGHTS = (12, 17)
"""What the entries of a released Gram matrix on and off its diagonal are multiplied by."""


def derivative_sum(row_bound_squared: int, weight_bound: int, squared_l2_factor: float, relation: str) -> Sensitivity:
    r"""``sum_i r_i x_i'`` over integer rows and one integer weight per margin, as one long vector. Norm l2.

    ``r_i`` stands for the derivative of record i in its margins, and satisfies ``||r_i||_2**2 <= f * weight_bound**2``
    in integers, where f is ``squared_l2_factor``: 1 for a single margin, 2 for softmax
    (``losses.Loss.squared_l2_factor``).

    *Proof.* One term has the norm ``||r_i||_2 ||x_i||_2``, at most the square root of f times that of
    :func:`fixed_point_sum`, the rounding of the root and of the product covered by 1 + 2**-50. Attained for softmax by
    a record whose label has probability zero and another probability one.

    *Persons.* On the m rows of a person ``||r_i||_2**2 <= f * (weight_bound // m)**2``, row by row in integers.
    """
    single = fixed_point_sum(row_bound_squared, weight_bound, relation)
    if squared_l2_factor == 1.0:
        return single
    root = math.sqrt(check_real(1.0, math.inf, squared_l2_factor=squared_l2_factor))
    return Sensitivity(root * single.value * (1.0 + 2.0**-50), "l2", single.relation)


def jointly_clipped_sum(product_bound: int, relation: str) -> Sensitivity:
    r"""``sum_i r_i x_i'`` over integer rows and one integer weight per margin, ``||r_i|| ||x_i|| <= S``. Norm l2.

    S is ``product_bound``, and r is clipped record by record: a long row leaves less room for its derivative. Any other
    sum of integer vectors of norm at most S, each a function of its own record and of public numbers, moves as much.

    *Proof.* A record's term is the matrix :math:`r_i x_i^\top`, whose Frobenius norm is the product of the two norms;
    then :func:`record_sum`. Attained by a record whose derivative is clipped, but for rounding.

    *Persons.* On the m rows of a person ``||r_i|| <= min(W // m, isqrt(S**2 // (m**2 N_i)))``, where N is the squared
    norm of the row and W the integer for a derivative at its bound, so that ``||r_i|| ||x_i|| <= S / m``. Vectors of
    norm at most S are summed over the person's rows, divided by m and cut towards zero.
    """
    return record_sum(float(check_integer(1, product_bound=product_bound)), "l2", relation)


def gram_matrix(row_squared: int, relation: str) -> Sensitivity:
    r"""Entries of ``sum_i x_i x_i'`` on and above its diagonal, times :data:`GRAM_WEIGHTS`. Norm l2.

    Integer rows with :math:`\|x_i\|^2 \le Q`, which is ``row_squared``.

    *Proof.* With the weights a = 12 and b = 17, :math:`b^2 \le 2 (a^2 + 1/2) = 289`. So the squared norm of a
    symmetric matrix A that is released like this is :math:`a^2 \sum_j A_{jj}^2 + b^2 \sum_{j < k} A_{jk}^2 \le
    (a^2 + 1/2) \|A\|_F^2`. Zero-out and add-remove: :math:`A = x x^\top`, of Frobenius norm :math:`\|x\|^2 \le Q`.
    Replace-one: :math:`\|x x^\top - z z^\top\|_F^2 = \|x\|^4 + \|z\|^4 - 2 (x \cdot z)^2 \le 2 Q^2`, attained by
    orthogonal rows. The factor 1 + 2**-50 covers the rounding of the roots.

    *Persons.* The m rows of a person are divided by the root of m and cut to integers *before* they are multiplied, so
    that :math:`\sum_k \|x_k\|^2 \le Q` in integers, and the person adds :math:`A = \sum_k x_k x_k^\top`, positive
    semidefinite with a trace of at most Q. Hence :math:`\|A\|_F \le \operatorname{tr} A \le Q`, and for a person
    replaced :math:`\|A - B\|_F^2 = \|A\|_F^2 + \|B\|_F^2 - 2 \operatorname{tr} A B \le 2 Q^2`, since the trace of a
    product of two such matrices is not negative. Where the vector of a record is its whole gradient (the middle of a
    sandwich), a person adds :math:`g g^\top` with the sum g of its rows' gradients, :math:`\|g\|^2 \le Q`: a single
    vector, as above.
    """
    value = math.sqrt(GRAM_WEIGHTS[0] ** 2 + 0.5) * check_integer(1, row_squared=row_squared)
    if check_relation(relation) == "replace-one":
        value *= math.sqrt(2.0)
    return Sensitivity(value * (1.0 + 2.0**-50), "l2", check_relation(relation))


def proposal_scores(entry_bound: int, weight_sum: int, relation: str) -> Sensitivity:
    r"""``s_j = sum_k |u_jk - sum_i r_ik x_ij|`` for public integers u. Norm linf, in lattice units.

    Integer rows with ``|x_ij| <= entry_bound`` and integer weights with ``sum_k |r_ik| <= weight_sum``: one weight, or
    one per class, where :math:`\|p - e_y\|_1 = 2 (1 - p_y) \le 2`.

    *Proof.* By the triangle inequality ``s_j`` moves by no more than the sums inside move in total, and one record
    contributes ``sum_k |r_ik| |x_ij| <= entry_bound * weight_sum`` to them; then :func:`record_sum`. Not monotone: one
    record brings some sums nearer to u and others farther from it.

    *Clipped entries.* Those of ``Design.clipped`` are integers in [-ONE, ONE], each a function of one cell on the
    lattice: ``entry_bound`` is ONE, and the proof holds word for word.

    *Persons.* ``sum_k |r_ik| <= weight_sum / m`` on each of a person's m rows, which add up to ``weight_sum``.
    """
    bound = check_integer(1, entry_bound=entry_bound) * check_integer(1, weight_sum=weight_sum)
    return record_sum(float(bound), "linf", relation)


def curvature_sum(term_bound: int, relation: str) -> Sensitivity:
    r"""``sum_i q_i`` of integers ``0 <= q_i <= term_bound``, one number. Norm l2.

    *Proof.* Zero-out, add-remove: the sums differ by one term. Replace-one: by the difference of two numbers of the
    same interval, which is no longer than that. Attained under every relation.

    *Persons.* The integers of a person's rows are added up, divided by m and rounded down: in the same interval.
    """
    return Sensitivity(float(check_integer(1, term_bound=term_bound)), "l2", check_relation(relation))


def loss_differences(term_bound: int, relation: str) -> Sensitivity:
    r"""``s_k = sum_i clip(l_i(w_k) - l_i(w_0), b)`` for public weights, one score per k, in integers. Norm linf.

    Terms are integers of size at most ``term_bound``; what depends on k alone may be added, and sums may count only
    from a public number on.

    *Proof.* Every score is a record sum with terms of that size, whatever the loss, and the larger of two numbers moves
    by no more than either does. Not monotone: a record may gain by
    one choice of weights and lose by another.

    *Persons.* The terms of a person's rows are added up, divided by m and cut towards zero: of the same size at most.
    """
    return record_sum(float(check_integer(1, term_bound=term_bound)), "linf", relation)
