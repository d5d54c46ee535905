r"""Every sensitivity of the package, each with relation, norm and proof.

Two data sets are neighbours when they differ in one record, in one of three senses:

``"zero-out"``
    One record of D is replaced by a *null* record in D': present in the public count n, absent from
    every statistic. The library's default.
``"add-remove"``
    D' has one record more or less; the number of records is private.
``"replace-one"``
    One record of D is another, arbitrary admissible record in D'; n is public.

The first two give the same bounds for statistics that do not use n: passing from D to D' removes (or
adds) one record's contribution. Under the third a contribution is removed *and* another one added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_integer, check_positive
from taciturn.kernels.gram_frank_wolfe import halvings_of
from taciturn.kernels.residual_pieces import ONE, residual_bound

__all__ = [
    "RELATIONS",
    "Norm",
    "Relation",
    "Sensitivity",
    "check_relation",
    "clipped_count",
    "correlation_scores",
    "fixed_point_sum",
    "gradient_scores",
    "lattice_gradient_scores",
    "public_rows",
    "quantile_scores",
    "record_sum",
]

Relation = Literal["zero-out", "add-remove", "replace-one"]
Norm = Literal["linf", "l1", "l2"]

RELATIONS: tuple[Relation, ...] = ("zero-out", "add-remove", "replace-one")


def check_relation(relation: str) -> Relation:
    """The relation, if it is one of the three."""
    return check_choice(RELATIONS, relation=relation)  # type: ignore[return-value]


def public_rows(relation: Relation, n_rows: int, n_public: int | None) -> int | None:
    """The number of records as far as it may be used or shown: under add-remove only what the caller made public."""
    return n_public if relation == "add-remove" else n_rows


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of a statistic between neighbouring data sets.

    Parameters
    ----------
    value : float
        The bound, > 0, in the units of the statistic.
    norm : {"linf", "l1", "l2"}
        The norm in which the change is measured; "linf" for scores that compete in a selection.
    relation : {"zero-out", "add-remove", "replace-one"}
        What "neighbouring" means.
    monotone : bool, default=False
        Whether all coordinates move in the same direction. A selection among monotone scores
        costs half, because two scores can then drift apart by ``value`` only, not by twice that.
    """

    value: float
    norm: Norm
    relation: Relation
    monotone: bool = False

    def __post_init__(self) -> None:
        check_positive(value=self.value)
        check_choice(("linf", "l1", "l2"), norm=self.norm)
        check_relation(self.relation)

    def require(self, norm: Norm) -> None:
        """Refuse to be used where another norm is needed."""
        if self.norm != norm:
            raise ParameterError(
                "norm", self.norm, f"a sensitivity in {norm}", "use the function made for this release"
            )

    @property
    def spread(self) -> float:
        """How far two coordinates can drift apart: ``value`` if monotone, else twice that."""
        return self.value if self.monotone else 2.0 * self.value


def record_sum(bound: float, norm: Norm, relation: str) -> Sensitivity:
    r"""``sum_i f(record_i)`` with ``||f|| <= bound`` for every admissible record.

    *Proof.* Zero-out, add-remove: the sums differ by one term, of norm at most ``bound``. Replace-one:
    they differ by ``f(a) - f(b)``, of norm at most ``2 bound`` by the triangle inequality, attained
    where f is odd.
    """
    relation = check_relation(relation)
    factor = 2.0 if relation == "replace-one" else 1.0
    return Sensitivity(factor * check_positive(bound=bound), norm, relation)


def correlation_scores(x_bound: float, y_bound: float, relation: str) -> Sensitivity:
    r"""``s_j = max_c |sum_i x_ij y_ic|`` with ``|x_ij| <= x_bound``, ``|y_ic| <= y_bound``.

    Norm linf. y has one column for a numeric or binary target, and one column per class
    (one class against the rest, coded -1 and +1) for more.

    *Proof.* Each inner sum is a record sum with terms of size at most ``x_bound * y_bound``, so each of
    the (j, c) sums moves by at most ``record_sum(x_bound * y_bound)``. Absolute value and maximum over c
    are 1-Lipschitz in the sup norm. Attained by a record with x = x_bound, y = y_bound everywhere.
    Not monotone: one record raises some scores and lowers others.
    """
    return record_sum(check_positive(x_bound=x_bound) * check_positive(y_bound=y_bound), "linf", relation)


def gradient_scores(x_bound: float, slope: float, relation: str) -> Sensitivity:
    r"""``g_j = sum_i psi_i x_ij`` with ``|x_ij| <= x_bound`` and ``|psi_i| <= slope``. Norm linf.

    The scores of the vertices ``+- e_j`` of an L1 ball are ``-+ g_j``; with one margin per class, ``psi_i`` has one
    entry per class and each of them obeys the bound.

    *Proof.* At weights that are already public, ``psi_i`` depends on record i alone. Each ``g_j`` is a record sum with
    terms of size at most ``slope * x_bound``; changing the sign changes nothing. Not monotone: one record lowers the
    score of one sign and raises that of the other.
    """
    return record_sum(check_positive(x_bound=x_bound) * check_positive(slope=slope), "linf", relation)


def lattice_gradient_scores(
    loss: str, clip: float, radius: float, n_rows: int, n_steps: int, relation: str
) -> Sensitivity:
    r""":func:`gradient_scores` of Frank-Wolfe *as computed* in finite arithmetic, for every path of the solver.

    Given the same vertices so far, in units of ``g`` for features in [-1, 1]. Norm linf over the scores ``sign * g_j``.
    ``n_rows`` is a public bound on the number of records.

    *Statement.* :math:`\Delta = R + 2^{-48} n (R + 1 + \lambda)`, and :math:`\lambda 2^{h-32}` more for the squared
    loss, where R is :func:`~taciturn.kernels.residual_pieces.residual_bound` over ONE and h the number of halvings
    of the Gram matrix.

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
    sharpness adds as much as 2**-52 of the score. On both neighbours, and with the excesses above, this is less
    than ``2**-48 n ONE (R + ONE + radius ONE)``.

    Attained, but for the rounding: x = 1, y = -1 with margin radius (squared, Huber), y = 0 (logistic).
    """
    bound = residual_bound(loss, clip, radius) / ONE
    rounding = 2.0**-48 * n_rows * (bound + 1.0 + radius)
    floors = radius * 2.0 ** (halvings_of(n_rows, n_steps) - 32) if loss == "squared" else 0.0
    return record_sum(bound + rounding + floors, "linf", relation)


def clipped_count(low: int, high: int, relation: str) -> Sensitivity:
    r"""An integer statistic clipped to ``low .. high``. One number, norm l1.

    *Proof.* Both values lie in an interval of that width, whatever the relation. For unstable statistics, such as the
    size of a fitted model's support, no smaller bound holds for all data.
    """
    check_integer(low + 1, high=high)
    return Sensitivity(float(high - low), "l1", check_relation(relation))


def quantile_scores(numerator: int, denominator: int, relation: str) -> Sensitivity:
    r"""Integer rank scores of the quantile ``a / b`` on a grid of bins ``(g_{j-1}, g_j]``. Norm linf.

    With ``s(g) = (b - a) #{v <= g} - a #{v > g}`` the score of bin j is
    ``-max(0, -s(g_j), s(g_{j-1}))``: zero for the bin that holds the quantile.

    *Proof.* One record contributes ``b - a`` or ``-a`` to every s(g): zero-out and add-remove move it
    by at most ``max(a, b - a)``, replace-one by at most ``(b - a) + a = b``. The bin score is a maximum
    of such terms and zero, hence moves by no more. Not monotone.
    """
    check_integer(1, denominator - 1, numerator=numerator)
    relation = check_relation(relation)
    value = denominator if relation == "replace-one" else max(numerator, denominator - numerator)
    return Sensitivity(float(value), "linf", relation)


def fixed_point_sum(row_bound_squared: int, weight_bound: int, relation: str) -> Sensitivity:
    r"""``sum_i r_i x_i`` over integer rows and integer weights. Norm l2, in lattice units.

    *Proof.* With ``||x_i||_2^2 <= row_bound_squared`` and ``|r_i| <= weight_bound``, both checked in
    integer arithmetic, one term has norm at most ``sqrt(row_bound_squared) * weight_bound`` exactly;
    then :func:`record_sum`. The factor 1 + 2**-50 covers the rounding of the square root.
    """
    bound = math.sqrt(check_integer(1, row_bound_squared=row_bound_squared))
    return record_sum(bound * check_integer(1, weight_bound=weight_bound) * (1.0 + 2.0**-50), "l2", relation)
