"""Sensitivities of everything that is released, each with its relation, norm and proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE, check_choice, check_integer, check_positive, check_real
from taciturn.kernels.frank_wolfe import halvings_of
from taciturn.kernels.frank_wolfe_sparse import LatticeDerivative

__all__ = [
    "GRAM_WEIGHTS",
    "MOST_PRIVATE_ROWS",
    "RELATIONS",
    "UNITS",
    "Norm",
    "Relation",
    "Sensitivity",
    "approximate_minimiser",
    "block_votes",
    "cell_counts",
    "check_public_count",
    "check_relation",
    "clipped_count",
    "correlation_scores",
    "curvature_sum",
    "derivative_sum",
    "error_sum",
    "fixed_point_sum",
    "gradient_scores",
    "gram_matrix",
    "jointly_clipped_sum",
    "kendall_scores",
    "lattice_gradient_scores",
    "loss_differences",
    "objective_tilt",
    "opposite_quantile_scores",
    "outcome_counts",
    "proposal_scores",
    "public_rows",
    "quantile_scores",
    "record_sum",
    "safe_rule",
    "screening_test",
    "target_parts",
    "unscaled_rule",
]


# -----------------------------------------------------------------------------
# What a sensitivity is: relation, norm, and the bound on a sum over records from which the others follow.

Relation = Literal["zero-out", "add-remove", "replace-one"]
Norm = Literal["linf", "l1", "l2"]
Unit = Literal["record", "person"]

UNITS = ("record", "person")
"""Whose data neighbours differ in: those of one row, or all rows of one person."""

RELATIONS: tuple[Relation, ...] = ("zero-out", "add-remove", "replace-one")

MOST_PRIVATE_ROWS = 1 << 26
"""A private number of records is assumed to be at most this, so that sums fit 64 bits without a look at it."""


def check_relation(relation: str) -> Relation:
    """The relation, if it is one of the three."""
    return check_choice(RELATIONS, relation=relation)  # type: ignore[return-value]


def public_rows(relation: str, n_rows: int, n_public: int | None) -> int | None:
    """The number of records as far as it may be used or shown: under add-remove only what the caller made public."""
    return n_public if relation == "add-remove" else n_rows


def check_public_count(relation: str, n_public: int | None) -> None:
    """Refuse add-remove without a public number of records, where a method needs one."""
    if relation == "add-remove" and n_public is None:
        raise ParameterError(
            "n_public", None, "a public number of records under add-remove", "pass one, or use relation='zero-out'"
        )


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
    rise, fall : float, default=None
        Of two neighbours, in one of the two directions, no coordinate rises by more than ``rise`` or falls by more than
        ``fall``; the larger one is ``value``. None: both are ``value``, or none falls if monotone.
    """

    value: float
    norm: Norm
    relation: Relation
    monotone: bool = False
    rise: float | None = None
    fall: float | None = None

    def __post_init__(self) -> None:
        check_positive(value=self.value)
        if self.rise is None and self.fall is None:
            object.__setattr__(self, "rise", self.value)
            object.__setattr__(self, "fall", 0.0 if self.monotone else self.value)
        if self.rise is None or self.fall is None or max(self.rise, self.fall) != self.value:
            raise ParameterError(
                "rise", (self.rise, self.fall), f"a rise and a fall, the larger one {self.value:g}", "give both or none"
            )
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
        """How far two coordinates can drift apart: the sum of rise and fall."""
        return (self.rise or 0.0) + (self.fall or 0.0)


def record_sum(bound: float, norm: Norm, relation: str) -> Sensitivity:
    r"""``sum_i f(record_i)`` with ``||f|| <= bound`` for every admissible record.

    *Proof.* Zero-out, add-remove: the sums differ by one term, of norm at most ``bound``. Replace-one:
    they differ by ``f(a) - f(b)``, of norm at most ``2 bound`` by the triangle inequality, attained
    where f is odd.

    *Persons.* Let record i be a person with m rows, and ``f(record_i)`` the sum of integer terms ``t_1, .., t_m``. If
    ``||t_k|| <= bound / m`` for each of them, then ``||f|| <= bound`` by the triangle inequality. The same holds if
    ``||t_k|| <= bound`` and f is their sum divided by m and cut towards zero, coordinate by coordinate: the mean of
    vectors of a ball lies in it, and to cut makes no coordinate larger. So the bound is that of one record, whatever m.
    """
    relation = check_relation(relation)
    factor = 2.0 if relation == "replace-one" else 1.0
    return Sensitivity(factor * check_positive(bound=bound), norm, relation)


# -----------------------------------------------------------------------------
# Counts of records and what is made of them.


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


# -----------------------------------------------------------------------------
# Linear predictors in an objective that is minimised.


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


# -----------------------------------------------------------------------------
# Rank statistics: what one record can do to Kendall's tau.


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


# -----------------------------------------------------------------------------
# How well a public model predicts records: sums of their errors, counts of right and wrong labels.


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
    target and one of the error (``data.prediction_cells``), or of an interval and a way to leave observation in it
    (``data.survival``).

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
    and ``unit``. The same holds of a record with a weight in [0, 1], which contributes that part of ``unit``, rounded
    down.
    """
    relation = check_relation(relation)
    value = float(check_integer(1, unit=unit))
    if relation == "replace-one":
        value *= {"l1": 2.0, "l2": math.sqrt(2.0) * (1.0 + 2.0**-50), "linf": 1.0}[norm]
    return Sensitivity(value, norm, relation)


# -----------------------------------------------------------------------------
# What screening rules look at: three numbers about a point of the L1 ball, and the safe rule's scores.
#
# Notation: radius :math:`\lambda`, features in [-1, 1], numeric targets in [-1, 1]; at public weights w with
# :math:`\|w\|_1 \le \lambda` record i has the margin :math:`z_i`, :math:`|z_i| \le \lambda`, and the derivative
# :math:`\psi_i`, :math:`|\psi_i| \le I`; the gradient is :math:`g = \sum_i \psi_i x_i` and the Wolfe gap
# :math:`G = w^\top g + \lambda \|g\|_\infty \ge 0`.
#
# Adding a record moves :math:`w^\top g` by :math:`z \psi` and the gap by a number between the smallest and the largest
# :math:`\psi (z + \lambda t)`, :math:`|t| \le 1`, since the gap is the largest of the sums
# :math:`\sum_i \psi_i (z_i \pm \lambda x_{ik})` and each of them moves by one such term. How far below zero these terms
# can be is bounded for a replaced record, which may take such a term away and bring the largest one.

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


# -----------------------------------------------------------------------------
# Sums of products over records: correlations, gradients, fixed-point sums.


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


# -----------------------------------------------------------------------------
# What gradient descent on clipped records releases besides :func:`~taciturn.data.sensitivity.fixed_point_sum`.

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

    *Hazards.* The vector of a record is the sum of ``r_j t_j`` over the intervals j of follow-up, with as many terms
    for every record and zeros where it is not observed. It is not a number times a row, so that to cut its parts can
    lengthen it: it is rounded to integers as a whole, and one whose squared norm is not at most ``S**2`` (less 2**-40
    of it, for sums of squares in doubles) becomes zero. Its weight is a function of the row and of released numbers. If
    it were expanded into a row for each interval, the record would add as many vectors of norm S as it is observed.

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

    *Hazards.* A record adds :math:`\sum_j v_j v_j^\top` with one integer vector for each interval of follow-up and
    :math:`\sum_j \|v_j\|^2 \le Q`, which is checked in integers; else it adds nothing. That is a positive semidefinite
    matrix with a trace of at most Q, as the one of a person below.

    *Persons.* The m rows of a person are divided by the root of m and cut to integers *before* they are multiplied, so
    that :math:`\sum_k \|x_k\|^2 \le Q` in integers, and the person adds :math:`A = \sum_k x_k x_k^\top`, positive
    semidefinite with a trace of at most Q. Hence :math:`\|A\|_F \le \operatorname{tr} A \le Q`, and for a person
    replaced :math:`\|A - B\|_F^2 = \|A\|_F^2 + \|B\|_F^2 - 2 \operatorname{tr} A B \le 2 Q^2`, since the trace of a
    product of two such matrices is not negative. Where the vector of a record is its whole gradient (the middle of a
    sandwich), a person adds :math:`g g^\top` with the sum g of its rows' gradients, :math:`\|g\|^2 \le Q`: a single
    vector, as above.

    *Persons with many rows.* The m vectors of a person are not divided, and what it adds is :math:`\tilde A`, the mean
    :math:`A = \sum_k v_k v_k^\top / m` with every entry cut towards zero. Its vectors are shorter: :math:`\sum_k
    \|v_k\|^2 \le m (Q - 2p)` in integers for p columns (:func:`gram_room`), and :math:`Q \ge 4p`, or it adds nothing.
    A is positive semidefinite with a trace of at most :math:`Q - 2p`, and :math:`\|\tilde A - A\|_F < p`, as each of
    :math:`p^2` entries moves by less than one. Zero-out and add-remove: :math:`\|\tilde A\|_F \le \|A\|_F \le Q`.
    Replace-one, both with many rows: :math:`\|\tilde A - \tilde B\|_F \le \sqrt 2 (Q - 2p) + 2p \le \sqrt 2 Q`. With
    a B of trace Q that is not cut: :math:`\|\tilde A - B\|_F \le \sqrt{(Q - 2p)^2 + Q^2} + p \le \sqrt 2 Q`, since
    :math:`(Q - 2p)^2 + Q^2 \le (\sqrt 2 Q - p)^2` where :math:`3p \le (4 - 2\sqrt 2) Q`, which :math:`Q \ge 4p` gives.
    """
    value = math.sqrt(GRAM_WEIGHTS[0] ** 2 + 0.5) * check_integer(1, row_squared=row_squared)
    if check_relation(relation) == "replace-one":
        value *= math.sqrt(2.0)
    return Sensitivity(value * (1.0 + 2.0**-50), "l2", check_relation(relation))


def gram_room(n_columns: int) -> int:
    """What the squared norms of a person's many rows leave of their bound, for entries that are cut to integers."""
    return 2 * check_integer(1, n_columns=n_columns)


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


# -----------------------------------------------------------------------------
# Votes of disjoint blocks of records.


def block_votes(relation: str) -> Sensitivity:
    r"""``v_j``, the number of blocks that vote for feature j. Norm linf.

    The records are cut into a public number of disjoint blocks. Each block votes for any set of features, at most
    once for each, and its vote is a function of its own records alone.

    *Proof.* If neighbours differ in the records of one block only, the other votes are equal and the two votes of
    that block differ by at most 1 in each coordinate. That one block is concerned follows

    - under zero-out and replace-one, where blocks are fixed sets of the n public slots: the record blanked out or
      replaced is one in its slot, and every other record stays in its own;
    - under add-remove, where each record is assigned by randomness of its own, or by a function of its own key that
      is drawn independently of the data: give the common records, which come in the same order, the same blocks on
      both sides. That changes neither law, and the record more or less touches its own block alone. The release is
      then a mixture over assignments of laws that are close one by one, with the same weights on both sides, hence as
      close itself. The records of one key are assigned together, so that the bound also holds for all records of a
      key added or removed at once.

    *Persons.* The slots are those of persons, and the rows of one person are in one block; under add-remove the person
    draws once. So one block is concerned, as above.

    Two ways fail: slices of a list of private length shift every block under add-remove, and keys under replace-one
    move a record between *two* blocks. Attained by a block that changes its mind. Not monotone: it votes for some
    features instead of others.
    """
    return Sensitivity(1.0, "linf", check_relation(relation))
