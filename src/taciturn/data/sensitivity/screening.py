r"""What screening rules look at: three numbers about a point of the L1 ball, and the safe rule's scores.

Notation: radius :math:`\lambda`, features in [-1, 1], numeric targets in [-1, 1]; at public weights w with
:math:`\|w\|_1 \le \lambda` record i has the margin :math:`z_i`, :math:`|z_i| \le \lambda`, and the derivative
:math:`\psi_i`, :math:`|\psi_i| \le I`; the gradient is :math:`g = \sum_i \psi_i x_i` and the Wolfe gap
:math:`G = w^\top g + \lambda \|g\|_\infty \ge 0`.

Adding a record moves :math:`w^\top g` by :math:`z \psi` and the gap by a number between the smallest and the largest
:math:`\psi (z + \lambda t)`, :math:`|t| \le 1`, since the gap is the largest of the sums
:math:`\sum_i \psi_i (z_i \pm \lambda x_{ik})` and each of them moves by one such term. How far below zero these terms
can be is bounded for a replaced record, which may take such a term away and bring the largest one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer, check_positive
from taciturn.data.sensitivity.base import Sensitivity, check_relation

__all__ = ["safe_rule", "screening_test", "unscaled_rule"]

# For a handful of roundings of the declared value itself.
_ROUNDING_ROOM = 1.0 + 2.0**-40


class _Moves(NamedTuple):
    """Largest changes of ``|g_j|``, ``w . g`` and the gap."""

    gradient: float
    inner: float
    gap: float


def screening_test(
    opposing: tuple[float, float],
    radius: float,
    influence: float,
    relation: str,
    *,
    error: float = 0.0,
    rounding: float = 0.0,
) -> Sensitivity:
    r"""The three numbers :math:`(\lambda |g_j|, w^\top g, G)` of one column j. Norm l2.

    ``influence`` is the bound I on one record's derivative as computed, ``error`` how far that can be from the loss's,
    ``rounding`` a bound on the rounding errors of sums over records, in units of one record's part.

    *Proof.* Zero-out, add-remove: :math:`\lambda |g_j|` and :math:`w^\top g` move by at most :math:`\lambda I`, the gap
    by at most :math:`2 \lambda I`: together :math:`\sqrt 6\, \lambda I`, attained by x = 1 where z = lambda. This
    needs no more than that every score moves by at most I, so it covers scores as they are computed.

    Replace-one: the first moves by :math:`2 \lambda I`. The others by the largest term, as above, and the largest
    negative one: at most ``opposing[0]`` for :math:`w^\top g`, a bound on :math:`-z \psi`, and ``opposing[1]`` for the
    gap, a bound on :math:`|\psi| (\lambda - z \operatorname{sign} \psi)`. Both are properties of the loss, which proves
    them (``Loss.opposing_terms``).

    Derivatives as computed differ from these by at most e, which adds :math:`\lambda e` and :math:`2 \lambda e`.
    """
    moves = _moves(opposing, radius, influence, relation, error)
    value = math.hypot(radius * moves.gradient, moves.inner, moves.gap)
    return Sensitivity(value * (_ROUNDING_ROOM + rounding), "l2", check_relation(relation))


def safe_rule(
    opposing: tuple[float, float],
    radius: float,
    influence: float,
    condition: float,
    n_rows: int,
    n_features: int,
    relation: str,
    *,
    error: float = 0.0,
    rounding: float = 0.0,
) -> Sensitivity:
    r"""The safe rule's scores of all columns, with a public number n of records. Norm l2.

    .. math:: s_i = \frac{\lambda |g_i| + w^\top g}{n} + \kappa (\lambda a_i + b) \sqrt{G / n}, \qquad
              a_i = \frac{\|x_{(i)}\|}{\sqrt n}, \quad b = \frac{\|Xw\|}{\sqrt n},

    where :math:`\kappa` is ``condition``; a is clipped to 1, b to lambda and G / n to :math:`2 \lambda I`, which
    changes nothing where n is the number of records. ``error`` and ``rounding`` as for :func:`screening_test`.

    *Proof.* The first two terms: :func:`screening_test`, over n. For the third put :math:`\alpha = a_i` (or
    :math:`b / \lambda`) and :math:`\gamma^2 = G / (2 \lambda I n)`, all in [0, 1]. Between neighbours :math:`\alpha^2`
    differs by at most u = 1/n and :math:`\gamma^2` by at most ku, where k is 1, or the gap's change over
    :math:`2 \lambda I` for a replaced record. Say the product falls, from :math:`\alpha \gamma` to no less than
    :math:`\sqrt{(\alpha^2 - u)_+ (\gamma^2 - ku)_+}`. The difference grows in alpha where :math:`1 - ku/\gamma^2 \le
    1 - u/\alpha^2`, and in gamma elsewhere, so it is largest on alpha = 1 or on gamma = 1. There it first falls and
    then rises in the other variable: its maximum is at an end, one of :math:`\sqrt{ku}`, :math:`\sqrt u` and
    :math:`1 - \sqrt{(1 - u)(1 - ku)}`. There are two such products, each times
    :math:`\kappa \lambda \sqrt{2 \lambda I}`. Every score moves at most that far, the vector :math:`\sqrt d` times as
    far.

    So the third term moves by :math:`\Theta(1 / \sqrt n)`, not by 1/n. Attained, up to O(1/n), by records x = 1,
    y = 1 at w = e_1, where the gap is zero, and another one with y = -1.
    """
    moves = _moves(opposing, radius, influence, relation, error)
    largest_gap = 2.0 * radius * influence
    u = 1.0 / check_integer(1, n_rows=n_rows)
    ku = min(moves.gap / largest_gap * u, 1.0)
    product = max(math.sqrt(ku), math.sqrt(u), 1.0 - math.sqrt((1.0 - u) * (1.0 - ku)))
    third = 2.0 * check_positive(condition=condition) * radius * math.sqrt(largest_gap) * product
    each = (radius * moves.gradient + moves.inner) * u + third
    value = math.sqrt(check_integer(1, n_features=n_features)) * each
    return Sensitivity(value * (_ROUNDING_ROOM + rounding), "l2", check_relation(relation))


def unscaled_rule(
    radius: float, n_rows: int, smoothness: float, convexity: float, largest_residual: float
) -> Sensitivity:
    r"""The scores of the safe rule as ADP-Screen and RNM-Screen print it, without the radius. Zero-out, norm linf.

    With n records, features in [-1, 1], :math:`\|w\|_1 \le \lambda` and derivatives of the loss of at most
    :math:`\rho` (``largest_residual``) per record,

    .. math:: \Delta = \frac{\rho}{n} + \frac{\lambda\rho}{n} + L (1 + \lambda) \sqrt{2 \lambda\rho / \mu}.

    *Proof.* One record contributes at most :math:`\rho/n` to :math:`g_i`, :math:`\lambda\rho/n` to :math:`w \cdot g`
    and, since :math:`|x \cdot (w - z)| \le 2\lambda` for every z of the ball, :math:`2\lambda\rho/n` to the gap
    :math:`\mathcal G = \max_z (w - z) \cdot g`. Hence :math:`\|x_{(i)}\|^2/n`, :math:`\|Xw\|^2/(n\lambda^2)` and
    :math:`\mathcal G/(2\lambda\rho)` lie in [0, 1] and change by at most :math:`u = 1/n` each. For numbers
    :math:`\alpha, \gamma` of [0, 1] whose squares change by at most u, the product changes by at most
    :math:`\sqrt u`. Where one grows and the other falls, that is the change of one of them. Where both grow, to given
    ends, the product changes most if both squares grow by u, or one from zero. In the second case it is no larger than
    that end, which is at most :math:`\sqrt u`. In the first, with beginnings p and q,

    .. math:: (p^2 + u)(q^2 + u) = p^2 q^2 + u (p^2 + q^2 + u) \le p^2 q^2 + u (1 + p q) \le (p q + \sqrt u)^2,

    because the larger of :math:`p^2, q^2` is at most :math:`1 - u` and the smaller at most pq. The third term is
    :math:`L \sqrt{2\lambda\rho n/\mu}` times the product for the column plus :math:`\lambda` times that for
    :math:`Xw`.

    Attained for half the squared residual with targets in :math:`[-\lambda, \lambda]`: n - 1 records x = (1, .., 1)
    and y = :math:`\lambda` without residual at :math:`w = \lambda e_1`, and one with y = :math:`-\lambda`.
    """
    residuals = (1.0 + radius) * largest_residual / n_rows
    products = smoothness * (1.0 + radius) * math.sqrt(2.0 * radius * largest_residual / convexity)
    return Sensitivity(residuals + products, "linf", "zero-out")


def _moves(opposing: tuple[float, float], radius: float, influence: float, relation: str, error: float) -> _Moves:
    """How far one record moves the parts; the proof is with :func:`screening_test`."""
    below, gap_below = opposing
    check_positive(radius=radius)
    check_positive(influence=influence)
    if check_relation(relation) != "replace-one":
        return _Moves(influence, radius * influence, 2.0 * radius * influence)
    if not math.isfinite(gap_below):
        raise ParameterError("radius", radius, "a radius whose square is finite", "rescale the features")
    return _Moves(
        2.0 * influence,
        radius * influence + min(below + radius * error, radius * influence),
        2.0 * radius * influence + min(gap_below + 2.0 * radius * error, 2.0 * radius * influence),
    )
