"""Counts of records and what is made of them."""

from __future__ import annotations

from taciturn.core.validation import check_integer
from taciturn.data.sensitivity.base import Sensitivity, check_relation

__all__ = ["clipped_count", "opposite_quantile_scores", "quantile_scores"]


def clipped_count(low: int, high: int, relation: str) -> Sensitivity:
    r"""An integer statistic clipped to ``low .. high``. One number, norm l1.

    *Proof.* Both values lie in an interval of that width, whatever the relation. For unstable statistics, such as the
    size of a fitted model's support, no smaller bound holds for all data.
    """
    check_integer(low + 1, high=high)
    return Sensitivity(float(high - low), "l1", check_relation(relation))


def quantile_scores(numerator: int, denominator: int, relation: str, weight: int = 1) -> Sensitivity:
    r"""Integer rank scores of the quantile ``a / b`` on a grid of bins ``(g_{j-1}, g_j]``. Norm linf.

    With ``s(g) = (b - a) #{v <= g} - a #{v > g}`` the score of bin j is
    ``-max(0, -s(g_j), s(g_{j-1}))``: zero for the bin that holds the quantile.

    *Proof.* One record contributes ``b - a`` or ``-a`` to every s(g): zero-out and add-remove move it
    by at most ``max(a, b - a)``, replace-one by at most ``(b - a) + a = b``. The bin score is a maximum
    of such terms and zero, hence moves by no more. Not monotone. A record without a value contributes nothing to any
    s(g), which lies between ``-a`` and ``b - a``: the same bounds hold with it on either side.

    *Persons.* Values count by integer weights, and those of one record add up to at most W, which is ``weight``: a
    person with m rows has ``W // m`` on each. With the weight p of its values up to g and p' of those beyond,
    ``p, p' >= 0`` and ``p + p' <= W``, it contributes ``(b - a) p - a p'`` to s(g), a number in
    ``[-a W, (b - a) W]``. So everything above holds with W times the bound.
    """
    check_integer(1, denominator - 1, numerator=numerator)
    relation = check_relation(relation)
    value = denominator if relation == "replace-one" else max(numerator, denominator - numerator)
    return Sensitivity(float(value * check_integer(1, weight=weight)), "linf", relation)


def opposite_quantile_scores(
    numerator: int, denominator: int, relation: str, weight: int = 1
) -> tuple[Sensitivity, Sensitivity]:
    r"""Rank scores of the quantile ``a / b`` of a column, and of the same quantile of its mirror image. Norm linf.

    Requires ``a / b >= 1/2``: an upper bound of the column, and a lower one.

    *Statement.* Between two neighbours one of the two sets of scores, whichever it is, has the first sensitivity, and
    the other one the second. Both are those of :func:`quantile_scores` under replace-one. Under zero-out and add-remove
    the scores of the second drift apart by at most ``b`` instead of ``2 a``.

    *Proof.* Let a record v be added to others. The score of a bin with ends g and g' is ``min(0, s(g'), -s(g))``, where
    v adds ``b - a`` or ``-a`` to s. So no score falls by more than ``a``. It rises by more than ``b - a`` only through
    ``-s(g)``, and only if ``v > g`` and ``s(g) > 0``: with p others up to g and p' beyond it, ``(b - a) p > a p'``. In
    the mirror image a score rises by more than ``b - a`` only if ``v < h`` for some h with ``(b - a) r > a r'``, with r
    others at h or beyond and r' before it. If both happen, then g < v < h, so that ``p' >= r`` and ``r' >= p``, hence
    ``(b - a)**2 p r > a**2 p r``, which contradicts ``a >= b - a``. So in one of the two sets no score rises by more
    than ``b - a`` or falls by more than ``a``. A record without a value in this column moves no score of it.

    Under replace-one both drifts can be full: a record that goes from one end of the column to the other. And of
    several records each may move another of the two: both drifts of k records can exceed ``k b``
    (:class:`taciturn.events.OppositeSelectionsEvent`).

    *Persons.* The same happens where the values of one record share a ``weight`` of W, more than 1, as those of a
    person's rows do: both sensitivities are then those of :func:`quantile_scores`. The second one would be wrong.
    Let all others lie at one point, and let a person have half of its rows far above it and half far below. Bins above
    the point rise by ``(2 a - b) W / 2`` and bins below all fall by ``a W``, in the column and, by symmetry, in its
    mirror image: both drifts are ``(2 a - b / 2) W``, more than ``b W`` where ``a / b > 3/4``.
    """
    check_integer(-(-denominator // 2), denominator - 1, numerator=numerator)
    one = quantile_scores(numerator, denominator, relation, weight)
    if one.relation == "replace-one" or weight > 1:
        return one, one
    a, b = float(numerator), float(denominator)
    return one, Sensitivity(a, "linf", one.relation, rise=b - a, fall=a)
