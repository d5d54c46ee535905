"""Sums of products over records: correlations, gradients, fixed-point sums."""

from __future__ import annotations

import math

from taciturn.core.lattice import ONE
from taciturn.core.validation import check_integer, check_positive
from taciturn.data.sensitivity.base import Sensitivity, record_sum
from taciturn.kernels.gram_frank_wolfe import halvings_of
from taciturn.kernels.residual_pieces import LatticeDerivative

__all__ = [
    "correlation_scores",
    "fixed_point_sum",
    "gradient_scores",
    "lattice_gradient_scores",
    "target_parts",
]


def correlation_scores(x_bound: float, y_bound: float, relation: str) -> Sensitivity:
    r"""``s_j = max_c |sum_i x_ij y_ic|`` with ``|x_ij| <= x_bound``, ``|y_ic| <= y_bound``.

    Norm linf. y has one column for a numeric or binary target, and one column per class
    (one class against the rest, coded -1 and +1) for more.

    *Proof.* Each inner sum is a record sum with terms of size at most ``x_bound * y_bound``, so each of
    the (j, c) sums moves by at most ``record_sum(x_bound * y_bound)``. Absolute value and maximum over c
    are 1-Lipschitz in the sup norm. Attained by a record with x = x_bound, y = y_bound everywhere.
    Not monotone: one record raises some scores and lowers others.

    *Centred targets.* Let centres ``C_c`` in ``[-ONE, ONE]`` be public, as released ones are, and
    ``T = ONE + max_c |C_c|``. A target ``|z_ic| <= ONE`` becomes ``y_ic = rint((z_ic - C_c) ONE / T)``, a function of
    record i and public numbers. As ``|z_ic - C_c| <= T``, ``|y_ic| <= ONE``: the integers in the quotient are below
    2**34, so that doubles round it once and not beyond ONE. Hence ``y_bound = ONE``, whatever the centres.

    *Persons.* The integer targets of a person with m rows are at most ``y_bound // m``, so that its m products add up
    to no more than ``x_bound * y_bound`` in any sum.
    """
    return record_sum(check_positive(x_bound=x_bound) * check_positive(y_bound=y_bound), "linf", relation)


def target_parts(unit: int, relation: str) -> Sensitivity:
    r"""``sum_i a_i`` of vectors of integers ``a_ic >= 0`` with ``sum_c a_ic <= unit``. Norm l1.

    The parts of a class code are ``unit`` for its class and 0 for others. Those of a number z in [-h, h], h being half
    of ``unit``, are ``h + z`` and ``h - z``. So the sums hold the sizes of the classes, or the sum of the numbers
    beside how many there are.

    *Statement.* ``unit`` under zero-out and add-remove, ``2 unit`` under replace-one.

    *Proof.* :func:`record_sum`, as ``||a_i||_1 <= unit``; a null record has no parts. Attained by any record with a
    class or a number and, under replace-one, by records of different classes or by h and -h.

    *Persons.* Parts of a person's m rows are added up, divided by m and rounded down: at least 0, and of a sum that is
    at most ``unit``.
    """
    return record_sum(check_integer(1, unit=unit), "l1", relation)


def gradient_scores(x_bound: float, lipschitz: float, relation: str) -> Sensitivity:
    r"""``g_j = sum_i psi_i x_ij`` with ``|x_ij| <= x_bound`` and ``|psi_i| <= lipschitz``. Norm linf.

    The scores of the vertices ``+- e_j`` of an L1 ball are ``-+ g_j``; with one margin per class, ``psi_i`` has one
    entry per class and each of them obeys the bound.

    *Proof.* At weights that are already public, ``psi_i`` depends on record i alone. Each ``g_j`` is a record sum with
    terms of size at most ``lipschitz * x_bound``; changing the sign changes nothing. Not monotone: one record lowers
    the score of one sign and raises that of the other.
    """
    return record_sum(check_positive(x_bound=x_bound) * check_positive(lipschitz=lipschitz), "linf", relation)


def lattice_gradient_scores(
    derivative: LatticeDerivative, radius: float, n_rows: int, n_steps: int, relation: str
) -> Sensitivity:
    r""":func:`gradient_scores` of Frank-Wolfe *as computed* in finite arithmetic, for every path of the solver.

    Given the same vertices so far, in units of ``g`` for features in [-1, 1]. Norm linf over the scores ``sign * g_j``.
    ``n_rows`` is a public bound on the number of records.

    *Statement.* :math:`\Delta = R + 2^{-48} n (R + 1 + \lambda)`, and :math:`\lambda 2^{h-32}` more for the squared
    loss, where R is the bound of ``derivative`` over ONE and h the number of halvings of the Gram matrix.

    *Proof, exact scores.* Margins ``u_i = x_i . v`` are integers, functions of record i and the vertices.

    - Margin paths: ``psi_i`` is an integer clipped to [-R, R], a function of ``u_i``, ``y_i`` and public numbers,
      so the sum ``X' psi`` changes by ``x_ik psi_i``.
    - Sub-linear path: ``(P_i, q_i)`` is a function of ``u_i``, ``y_i`` and of the iteration at which the row was
      last cut; that is one at which it was touched or left its piece, which depend on record i and the vertices, or
      a public one. A and B change by ``x_ik P_i`` and ``x_ik q_i``, the score by ``x_ik (P_i + c q_i)``. Truncation
      is towards zero and ``|u_i| <= ONE ||v||_1 <= ONE S_t``, so ``|c r_i| <= radius ONE (1 + 2**-53)``, the excess
      being that of c, a rounded quotient. *Squared*: ``|c q - y|`` is at most that and ONE. *Huber*: on the sloping
      piece the computed ``c r - y`` is within the clip, at the cut and, c being monotone and the crossing verified,
      until the row is due; the exact one is within ``2**-52 (R + radius ONE)`` of it. *Logistic*: the value lies
      between the intercept of its piece and L at the margin, hence in (0, 1) and, for a positive margin, not above
      L(radius); L(-m) = 1 - L(m) and subtracting y = 1 lead to the same bound.
    - Gram paths: B changes by the record's own term and, since every entry of G is rounded down once, by at most one
      unit per unit of v, which is ``c S_t = radius 2**h``.

    *Proof, computed scores.* ``fl(fl(A) + fl(c fl(B)))`` differs from ``A + c B`` by ``2**-53 (2 |A| + 3 |c B|)``
    at most, to first order, with ``|A| <= n ONE (R + ONE)`` and ``|c B| <= n ONE radius ONE``; the product with the
    inverse temperature adds as much as 2**-52 of the score. On both neighbours, and with the excesses above, this is
    less than ``2**-48 n ONE (R + ONE + radius ONE)``.

    Attained, but for the rounding: x = 1, y = -1 with margin radius (squared, Huber), y = 0 (logistic).
    """
    bound = derivative.bound / ONE
    rounding = 2.0**-48 * n_rows * (bound + 1.0 + radius)
    floors = radius * 2.0 ** (halvings_of(n_rows, n_steps) - 32) if derivative.quadratic else 0.0
    return record_sum(bound + rounding + floors, "linf", relation)


def fixed_point_sum(row_bound_squared: int, weight_bound: int, relation: str) -> Sensitivity:
    r"""``sum_i r_i x_i`` over integer rows and integer weights. Norm l2, in lattice units.

    *Proof.* With ``||x_i||_2^2 <= row_bound_squared`` and ``|r_i| <= weight_bound``, both checked in
    integer arithmetic, one term has norm at most ``sqrt(row_bound_squared) * weight_bound`` exactly;
    then :func:`record_sum`. The factor 1 + 2**-50 covers the rounding of the square root.

    *Persons.* Weights ``|r_i| <= weight_bound // m`` on the m rows of a person: each term has at most the m-th part of
    the norm, and no coordinate of their sum exceeds ``ONE * weight_bound``, so that sums over n persons have the
    magnitude of n records.
    """
    bound = math.sqrt(check_integer(1, row_bound_squared=row_bound_squared))
    return record_sum(bound * check_integer(1, weight_bound=weight_bound) * (1.0 + 2.0**-50), "l2", relation)
