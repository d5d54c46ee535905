"""Counts of records and what is made of them."""

from __future__ import annotations

from taciturn.core.validation import check_integer
from taciturn.data.sensitivity.base import Sensitivity, check_relation

__all__ = ["clipped_count", "quantile_scores"]


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
