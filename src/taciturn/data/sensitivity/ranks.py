"""Rank statistics: what one record can do to Kendall's tau."""

from __future__ import annotations

from taciturn.core.validation import check_integer
from taciturn.data.sensitivity.base import Sensitivity, check_relation

__all__ = ["kendall_scores"]


def kendall_scores(n_selected: int, steps: int, relation: str) -> Sensitivity:
    r"""Scores of a round of Kendall selection, in which m features are selected already. Norm linf.

    With :math:`\tau(a, b) = |K(a, b)| / (n - 1)`, where K counts concordant less discordant pairs and n counts all
    records, and :math:`t = \lfloor \mathrm{steps} \cdot \tau \rfloor`, the score of column j is

    .. math:: t(x_j, y) \text{ for } m = 0, \qquad m\, t(x_j, y) - \sum_{s} t(x_j, x_s) \text{ for } m > 0.

    *Statement.* In units of ``steps`` for m = 0, of ``m * steps`` for m > 0: 1 and 2 under zero-out, 2 and 4 under
    replace-one, 3/2 and 5/2 under add-remove. Under add-remove and for m = 0 a further record raises no score by more
    than 1 and lowers none by more than 3/2, so that two scores drift apart by 5/2 at most. The number of steps must not
    depend on a private n.

    *Proof.* A record takes part in at most n - 1 pairs, and each pair adds -1, 0 or 1 to K. Ties need no other
    normalisation, so nothing else in tau depends on the data but, under add-remove, n.

    - Zero-out: n stays, K moves by at most n - 1, tau by at most 1.
    - Replace-one: n - 1 pairs go and as many come, so tau moves by at most 2.
    - Add-remove: let D have n records and D' one less. ``|K| = |K'| + e`` with ``|e| <= n - 1``, and K' has at most
      (n - 1)(n - 2) / 2 pairs, so ``tau - tau' = e / (n - 1) - |K'| / ((n - 1)(n - 2))`` lies in [-3/2, 1]. For n = 2
      there is no pair in D', and the difference lies in [0, 1].

    If tau rises by at most r, t rises by at most r ``steps`` rounded up, because ``floor(u + i) = floor(u) + i`` for
    integers i: rounding costs nothing where r ``steps`` is an integer. For m > 0 a score is the sum of m differences
    of two such t: of numbers in [-1, 1], [-2, 2] or [-3/2, 1], which gives 2, 4 and 5/2.

    All are attained, by a record that is first in x_j and x_s and last in y. Zero-out: x_j, y and x_s agree on the
    others. Replace-one: so they do, and the record becomes one that is first in x_j and y and last in x_s. Add-remove:
    x_j and y agree on the others, and K = 0 between x_j and x_s. The drift of 5/2 is attained by such an x_j beside a
    column with K = 0 between it and y on the others, in which the record is last. Not monotone.
    """
    check_integer(0, n_selected=n_selected)
    check_integer(1, steps=steps)
    relation = check_relation(relation)
    rise = 2 * steps if relation == "replace-one" else steps
    fall = -(-3 * steps // 2) if relation == "add-remove" else rise
    if n_selected:
        return Sensitivity(float(n_selected * (rise + fall)), "linf", relation)
    return Sensitivity(float(max(rise, fall)), "linf", relation, rise=float(rise), fall=float(fall))
