"""Budgets, and the searches that turn a budget into the scale of a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from taciturn.core.errors import ParameterError
from taciturn.core.validation import FloatArray, check_delta, check_epsilon
from taciturn.privacy.events import (
    PURE_ONLY,
    ApproximateEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    NotPrivateEvent,
    ObjectivePerturbationEvent,
    OppositeSelectionsEvent,
    RepeatAndSelectEvent,
    count_alternatives,
    fold,
    in_order,
)


@dataclass(frozen=True, slots=True)
class Budget:
    r"""A target :math:`(\varepsilon, \delta)`.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, > 0 and at most 30. Infinity stands for the non-private counterpart of a model.
    delta : float
        Probability with which the bound may fail, in [0, 1). Zero asks for pure privacy.

    Examples
    --------
    >>> from taciturn import Budget
    >>> Budget(epsilon=1, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(part=True, epsilon=self.epsilon))
        object.__setattr__(self, "delta", check_delta(delta=self.delta))


# --- The edge of privacy: a root finder that always stops on the private side.
#
# ``excess(x)`` is positive where a target is missed and at most zero where it is met; minus infinity
# is a legitimate answer. The functions below never return a point they have not seen to be private.

_HALF = 0.5


def last_private(excess: Callable[[float], float], private: float, exposed: float, tolerance: float) -> float:
    """A private point within ``tolerance`` of the edge between two given points, in any order on the line.

    Chandrupatla's method ("A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives", Advances in Engineering Software 28, 1997): inverse quadratic interpolation where three
    points justify it, bisection elsewhere. The bracket itself is closed, not merely the last step, because the answer
    has to be the private end of it. ``excess`` is at most zero at ``private`` and positive at ``exposed``.
    """
    here, there = private, exposed
    f_here, f_there = excess(here), excess(there)
    share = _HALF
    if math.isfinite(f_here) and math.isfinite(f_there):
        share = f_here / (f_here - f_there)
    while True:
        width = abs(there - here)
        if width <= tolerance:
            break
        shortest = _HALF * tolerance / width
        point = here + min(max(share, shortest), 1.0 - shortest) * (there - here)
        if point in (here, there):
            break
        value = excess(point)
        if (value > 0.0) == (f_here > 0.0):
            last, f_last = here, f_here
        else:
            last, f_last = there, f_there
            there, f_there = here, f_here
        here, f_here = point, value
        share = _interpolated(here, there, last, f_here, f_there, f_last)
    return here if f_here <= 0.0 else there


def _interpolated(x1: float, x2: float, x3: float, f1: float, f2: float, f3: float) -> float:
    """Where between x1 (0) and x2 (1) to look next, given a third point x3 on the side of x1."""
    if not (math.isfinite(f1) and math.isfinite(f2) and math.isfinite(f3)):
        return _HALF
    xi = (x1 - x2) / (x3 - x2)
    phi = (f1 - f2) / (f3 - f2)
    if phi * phi >= xi or (1.0 - phi) ** 2 >= 1.0 - xi:
        return _HALF
    toward_far = f1 / (f2 - f1) * f3 / (f2 - f3)
    toward_last = (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
    return toward_far + toward_last


def first_private(
    excess: Callable[[float], float], start: float, low: float, high: float, tolerance: float
) -> float | None:
    """The smallest private point of ``[low, high]`` when large points are the private ones.

    Strides that double from ``start`` find a bracket. Returns None if even ``high`` is not private,
    and ``low`` if everything is.
    """
    point, stride = start, 1.0
    if excess(point) <= 0.0:
        private = point
        while private > low:
            point = max(low, private - stride)
            if excess(point) > 0.0:
                return last_private(excess, private, point, tolerance)
            private, stride = point, 2.0 * stride
        return low
    exposed = point
    while exposed < high:
        point = min(high, exposed + stride)
        if excess(point) <= 0.0:
            return last_private(excess, point, exposed, tolerance)
        exposed, stride = point, 2.0 * stride
    return None


# --- An event taken apart: the one place where event types and repeat counts are read.
#
# Every bound works on :class:`Pieces`, so that a count cannot be forgotten in one bound and remembered in another, and
# an event that is unknown here is unknown to all of them.
#
# A release that is :math:`(\varepsilon, \delta)`-DP is a function of this experiment: with probability :math:`\delta`
# show the record, otherwise answer by randomised response at :math:`\varepsilon` (Kairouz, Oh and Viswanath 2015;
# Murtagh and Vadhan 2016). Its pure part therefore joins the other pure pieces, and the chance that any of several such
# releases shows the record,
#
# .. math:: \ell = 1 - \prod_i (1 - \delta_i),
#
# is set aside: the whole is :math:`(\varepsilon, \ell + (1 - \ell)\,\delta')`-DP as soon as what remains is
# :math:`(\varepsilon, \delta')`-DP. The distances of samplers from their laws add up here too; what their sum costs
# depends on the epsilon of the whole (:func:`taciturn.privacy.calibration.remaining_delta`).
#
# Two opposite selections are two selections of ranges f and g for one record, in an unknown order. For k records, x of
# which move the first one far, their ranges are at most :math:`x f + (k - x) g` and :math:`(k - x) f + x g`. Neither
# exceeds :math:`k f`, and every bound rises with the ranges: both are charged at that. (Not at :math:`k f` and :math:`k
# g`: that is no smaller for bounds that are convex in the ranges, but the optimal composition of pure releases is not.)
# Their sum is :math:`k (f + g)` for every x, and so is the loss at most; ``spared`` says by how much less that is than
# what is charged.

Counted = tuple[tuple[float, int], ...]

# Smaller costs would vanish when squared. Taking them for this one overstates by nothing that matters.
_SMALLEST = 1e-150

_KNOWN = frozenset(
    (
        *PURE_ONLY,
        ApproximateEvent,
        ExponentialEvent,
        GaussianEvent,
        NotPrivateEvent,
        ObjectivePerturbationEvent,
        OppositeSelectionsEvent,
        RepeatAndSelectEvent,
    )
)


@dataclass(frozen=True, slots=True)
class Objective:
    """A perturbed objective's minimiser between neighbours that may differ in several records.

    ``log_jacobian`` bounds the logarithm of the ratio of Jacobians. ``shift`` is how far the linear term can move, in
    units of its noise, and ``directions`` the dimension of the space in which it moves: one per record that comes or
    goes. Each moves it by an equal part of the shift at most, and with ``fixed_sign`` to one side of the record's own
    direction only.
    """

    log_jacobian: float
    shift: float
    directions: int
    fixed_sign: bool = False


@dataclass(frozen=True, slots=True)
class BestOfTrials:
    """Trials of a mechanism that costs one Gaussian release of a ``noise_multiplier``, the best of which is released.

    Their number follows a truncated negative binomial law of a ``mean`` and a ``shape``.
    """

    noise_multiplier: float
    mean: float
    shape: float


@dataclass(frozen=True, slots=True)
class Pieces:
    """The elementary releases of a plan with their counts, sorted by what is known about them.

    ``selections`` are the ranges of bounded-range selections as runs, in order of execution if ``ordered``; together
    they are smaller than those listed by at least ``spared``. ``pure`` releases are epsilon-DP and nothing better,
    ``gaussians`` are noise multipliers, ``objectives`` minimisers of perturbed objectives, ``searches`` the best of a
    random number of trials. ``leak`` is the probability
    that some approximate release fails outright, and ``distance`` bounds the total-variation distance between
    everything as sampled and everything as the events say. ``private`` is False as soon as one release has no
    protection at all.
    """

    selections: Counted
    pure: Counted
    gaussians: Counted
    objectives: tuple[tuple[Objective, int], ...]
    leak: float
    distance: float
    private: bool
    ordered: bool = True
    spared: float = 0.0
    searches: tuple[tuple[BestOfTrials, int], ...] = ()


def pieces_of(event: Event, *, ordered: bool = True) -> Pieces:
    """Sort the elementary releases of an event, in which a branch of each parallel event is chosen already.

    Raises ParameterError if the cost of an event is not known, or if a branch is still to be chosen. Subclasses count
    as unknown: their meaning may have changed. Opposite selections never happen in a known order.
    """
    if count_alternatives(event) > 1:
        raise ParameterError(
            "event",
            type(event).__name__,
            "one branch of each parallel event",
            "account for each of taciturn.events.alternatives",
        )
    pure: dict[float, int] = {}
    gaussians: dict[float, int] = {}
    objectives: dict[Objective, int] = {}
    searches: dict[BestOfTrials, int] = {}
    opposite: list[tuple[float, int]] = []
    spared: list[float] = []
    failures: list[tuple[float, int]] = []
    distances: list[float] = []
    private = True
    for part, count in fold(event).items():
        _check_known(part)
        if isinstance(part, GaussianEvent):
            noise_multiplier = min(part.noise_multiplier, 1.0 / _SMALLEST)
            gaussians[noise_multiplier] = gaussians.get(noise_multiplier, 0) + count
        elif isinstance(part, ObjectivePerturbationEvent):
            objective = Objective(
                part.records * part.log_jacobian,
                max(part.records * part.shift, _SMALLEST),
                part.records * (2 if part.replaced else 1),
                part.fixed_sign,
            )
            objectives[objective] = objectives.get(objective, 0) + count
        elif isinstance(part, RepeatAndSelectEvent):
            trials = BestOfTrials(min(part.noise_multiplier, 1.0 / _SMALLEST), part.mean, part.shape)
            searches[trials] = searches.get(trials, 0) + count
        elif isinstance(part, OppositeSelectionsEvent):
            far = max(part.records * part.far, _SMALLEST)
            near = max(part.near, _SMALLEST) if part.records == 1 else far
            opposite += [(far, count), (near, count)]
            spared.append(count * (far - max(part.records * part.near, _SMALLEST)) if part.records > 1 else 0.0)
        elif isinstance(part, (*PURE_ONLY, ApproximateEvent)):
            epsilon = max(part.epsilon, _SMALLEST)
            pure[epsilon] = pure.get(epsilon, 0) + count
            if isinstance(part, ApproximateEvent):
                failures.append((part.delta, count))
        elif isinstance(part, NotPrivateEvent):
            private = False
        if isinstance(part, (GaussianEvent, ExponentialEvent, ObjectivePerturbationEvent, RepeatAndSelectEvent)):
            distances.append(part.distance * count)
    selections = [
        (max(run.epsilon, _SMALLEST), count)
        for run, count in in_order(event, ExponentialEvent)
        if isinstance(run, ExponentialEvent)
    ]
    return Pieces(
        selections=(*selections, *opposite),
        pure=tuple(pure.items()),
        gaussians=tuple(gaussians.items()),
        objectives=tuple(objectives.items()),
        leak=_any_failure(failures),
        distance=min(math.fsum(distances), 1.0),
        private=private,
        ordered=ordered and not opposite,
        spared=math.fsum(spared),
        searches=tuple(searches.items()),
    )


def _check_known(part: Event) -> None:
    if type(part) not in _KNOWN:
        raise ParameterError(
            "event",
            type(part).__name__,
            "events of taciturn.events, alone, composed or repeated",
            "describe the release by one of them, say PureEvent",
        )


def _any_failure(failures: list[tuple[float, int]]) -> float:
    """The chance of at least one failure; never above the union bound, rounding included."""
    union = math.fsum(delta * count for delta, count in failures)
    none = math.fsum(math.log1p(-delta) * count for delta, count in failures)
    return min(union, -math.expm1(none))


# --- What the minimiser of a perturbed objective costs.
#
# The release is :math:`\theta = \arg\min \sum_i \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2}\|\theta\|^2 + b \cdot
# \theta` with :math:`b \sim N(0, \sigma^2 I)`, convex :math:`\phi`, :math:`|\phi'| \|x\| \le G` and :math:`\phi''
# \|x\|^2 \le \beta`.
#
# **Zero-out and add-remove.** The map :math:`\theta \mapsto b = -\sum_i \phi_i' x_i - \Lambda \theta` is one to one, so
# the density of :math:`\theta` is that of b times a Jacobian, the determinant of :math:`A = \Lambda I + \sum_i \phi_i''
# x_i x_i^\top`. A further record x shifts b by :math:`\phi' x` and multiplies the determinant by :math:`1 + \phi''
# x^\top A^{-1} x`, which lies between 1 and :math:`1 + \beta/\Lambda = e^c`. In either direction the privacy loss is at
# most
#
# .. math:: c + L_v, \qquad L_v = \frac{v^2}{2} + v Z, \qquad |v| = |\phi'| \|x\| / \sigma \le \tau = G/\sigma,
#           \quad Z = \pm x \cdot b / (\sigma \|x\|) \sim N(0, 1) .
#
# v depends on b through :math:`\theta`; the direction of x does not, hence the normal law. (For a loss that depends on
# :math:`\theta` through more than one predictor, or a record of several rows, the direction would move, and nothing of
# this holds. Where :math:`\phi'` has kinks, as Huber's, the map is still Lipschitz both ways and densities exist almost
# everywhere.) For given b the loss is convex in v, hence at most its maximum over the ends of v's interval:
# :math:`\pm\tau`, or 0 and an end of fixed sign where :math:`\phi'` cannot change its sign for a given record. The
# logistic loss with labels 0 and 1 is such a loss; with labels between them, and Huber's loss, are not.
#
# **Several records.** If m records come or go, Jacobians multiply and b moves by :math:`\sigma \sum_j v_j u_j`, the
# directions :math:`u_j` being fixed unit vectors and each :math:`v_j` as above. Again the loss is convex in the
# :math:`v_j`, hence at most the largest of :math:`c + a_v/2 + \sqrt{a_v} Z_v` over the vertices v of a box, :math:`a_v
# = \|\sum_j v_j u_j\|^2` and each :math:`Z_v` standard normal. Replacing a record is m = 2: one goes, one comes, and
# only the one that comes enters the numerator of the ratio of determinants, so that c is that of one record.
#
# **In a plan.** Let :math:`H(\gamma)`, convex and not increasing, bound :math:`\sup_S P(S) - \gamma Q(S)` for whatever
# follows. With the objective's release before it the bound is :math:`E_P H(\gamma e^{-L})`, and
#
# .. math:: E_P H(\gamma e^{-L}) \le \sum_v w_v\, E H(\gamma e^{-c} e^{-a_v/2 - \sqrt{a_v} Z}), \qquad (*)
#
# with :math:`w_v = 1`, since H is not negative and one of the vertices attains the maximum. The term of v is what
# Gaussian noise in the same place, of squared shift :math:`a_v`, would give at :math:`\gamma e^{-c}`. It does not
# decrease in :math:`a_v`: along it :math:`e^{-a/2 - \sqrt{a} Z}` is a martingale, and H is convex. So an objective is a
# polynomial, weights by squared shift:
#
# * *Fixed sign*: a vertex is a set of j records, with :math:`a \le j^2 \tau^2`. The empty set has :math:`a = 0` and is
#   the maximum only if the loss of :math:`\{1\}` is negative, :math:`Z < -\sqrt{a}/2`, the probability of which is at
#   most 1/2. Hence :math:`\{j^2 \tau^2: \binom{m}{j},\; 0: \tfrac12\}`: :math:`\{\tau^2: 1, 0: \tfrac12\}` for one
#   record, :math:`\{4\tau^2: 1, \tau^2: 2, 0: \tfrac12\}` if it is replaced.
# * *Any sign*: the vertices are :math:`2^{m-1}` pairs :math:`\pm v`. By Parseval their :math:`a` add up to
#   :math:`2^{m-1} m \tau^2` over pairs, so the k-th largest is at most :math:`\tau^2 \min(m^2, 2^{m-1} m / k)`. Hence,
#   with k between powers of two, :math:`\{\min(m^2, 2^{m-1-i} m)\, \tau^2: 2^{i+1}\}` for :math:`i < m - 1`, and
#   :math:`\{m \tau^2: 2\}`: :math:`\{\tau^2: 2\}` for one record, :math:`\{4\tau^2: 2,\; 2\tau^2: 2\}` if it is
#   replaced.
#
# All of (*) holds for directions that earlier releases have chosen, as when columns are selected first. (Where they are
# not, and totals are small, parallel rows are the worst and the second term could be taken at 0 instead of
# :math:`2\tau^2`; it is too small to matter.)
#
# Every other release acts on H by an operation that is monotone, linear and commutes with rescaling :math:`\gamma`: a
# mean of :math:`H(\gamma/r)`, or the worst of several such means. So weights and scales move to the front, polynomials
# of several objectives multiply, and
#
# .. math:: \delta(\varepsilon) \le \sum_{(a, w)} w\, \delta'_a\bigl(\varepsilon - \textstyle\sum c\bigr)
#
# for the plan :math:`\delta'_a` in which the objectives are Gaussian releases of squared shift a in all, in whatever
# order and chosen by whatever was released before. A Gaussian plan of parameter :math:`x + a` is evaluated for it, x
# being the rest.
#
# **Rényi curves.** :math:`\sum_j v_j u_j` is at most :math:`t = m\tau` long, so the loss is at most :math:`c + t^2/2 +
# (t/m) \sum_j |Z_j|` with standard normal :math:`Z_j = u_j \cdot b / \sigma`, however they depend on each other. The
# exponential function is convex, so that :math:`E e^{s \sum_j |Z_j| / m} \le \sum_j E e^{s |Z_j|} / m = 2 e^{s^2/2}
# \Phi(s)` for every m (Jensen), with equality for parallel rows. These moments give a curve. The vertices give another:
# :math:`E e^{p(L - c)} \le \sum_v w_v e^{p(p+1) a_v/2}`, by (*) for :math:`H(\gamma) = \gamma^{-p}`. For one record of
# fixed sign the moment is that of :math:`\max(0, \tau^2/2 + \tau Z)`,
#
# .. math:: \Phi(-\tau/2) + e^{p(p+1)\tau^2/2}\, \Phi(p\tau + \tau/2) .
#
# References ---------- Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional
# regression* (2012). Redberg, Koskela and Wang, *Improving the privacy and practicality of objective perturbation for
# differentially private linear learners* (2023).

Terms = tuple[FloatArray, FloatArray]

# Beyond this many terms squared shifts are rounded up to a grid, at a cost of one part in as many.
_MOST_TERMS = 512


def head_start(pieces: Pieces) -> float:
    """The sum of the logarithms of the Jacobians' ratios: epsilon that is spent before any noise is looked at."""
    return math.fsum(count * objective.log_jacobian for objective, count in pieces.objectives)


def vertices(directions: int, fixed_sign: bool) -> dict[int, int | float]:
    r"""The polynomial of one objective: weights by squared shift in units of :math:`\tau^2`.

    ``directions`` is m, how many records come or go; ``fixed_sign``: :math:`\phi'` has one sign for a given record.
    """
    m = directions
    if fixed_sign:
        return {j * j: math.comb(m, j) for j in range(1, m + 1)} | {0: 0.5}
    weights: dict[int, int | float] = {}
    for i in range(m):
        squared = min(m * m, m << (m - 1 - i))
        weights[squared] = weights.get(squared, 0) + (2 << i if i < m - 1 else 2)
    return weights


def polynomial(pieces: Pieces) -> tuple[list[float], list[float]]:
    """All objectives of a plan together: squared shifts in increasing order, and the logarithms of their weights."""
    terms: Terms | None = None
    for objective, count in pieces.objectives:
        squares, log_weights = _power(objective.directions, objective.fixed_sign, count)
        scaled = squares * _unit(objective), log_weights
        terms = scaled if terms is None else _product(terms, scaled)
    return ([0.0], [0.0]) if terms is None else (terms[0].tolist(), terms[1].tolist())


def _unit(objective: Objective) -> float:
    """The squared shift of one record, in units of the noise."""
    return (objective.shift / objective.directions) ** 2


@lru_cache(maxsize=256)
def _power(directions: int, fixed_sign: bool, count: int) -> Terms:
    """So many objectives alike, in units of one record's squared shift."""
    if directions > _MOST_TERMS:
        # All vertices at the longest shift, which is what counts for so many anyway.
        base: Terms = (np.array([float(directions) ** 2]), np.array([directions * math.log(2.0)]))
    else:
        one = vertices(directions, fixed_sign)
        base = (np.array(list(one), dtype=np.float64), np.array([math.log(weight) for weight in one.values()]))
    terms: Terms = (np.zeros(1), np.zeros(1))
    while count:
        if count % 2:
            terms = _product(terms, base)
        count //= 2
        if count:
            base = _product(base, base)
    return terms


def _product(first: Terms, second: Terms) -> Terms:
    """Squared shifts add up, weights multiply, equal shifts are one term."""
    squares = np.add.outer(first[0], second[0]).ravel()
    log_weights = np.add.outer(first[1], second[1]).ravel()
    shifts, places = np.unique(squares, return_inverse=True)
    if shifts.size > _MOST_TERMS:
        step = shifts[-1] / _MOST_TERMS
        shifts, places = np.unique(np.ceil(squares / step), return_inverse=True)
        # Up, by more than the quotient was rounded.
        shifts = shifts * (step * (1.0 + 2.0**-50))
    largest = np.full(shifts.size, -np.inf)
    np.maximum.at(largest, places, log_weights)
    sums = np.zeros(shifts.size)
    np.add.at(sums, places, np.exp(log_weights - largest[places]))
    return shifts, largest + np.log(sums)


def log_moment(u: FloatArray) -> FloatArray:
    r"""A bound on :math:`\ln E e^{u X}` for :math:`u > 0`, X being the mean of any number of :math:`|Z_j|`.

    :math:`2 e^{u^2/2} \Phi(u)`, exact where all are one.
    """
    return np.asarray(math.log(2.0) + (0.5 * u * u + log_ndtr(u)))


def vertex_moment(past_one: FloatArray, objective: Objective) -> FloatArray:
    r"""A bound on :math:`\ln E e^{p(L - c)}` for the p given, from the vertices."""
    unit, growth = _unit(objective), 0.5 * past_one * (past_one + 1.0)
    if objective.fixed_sign and objective.directions == 1:
        tau = objective.shift
        return np.asarray(np.logaddexp(log_ndtr(-0.5 * tau), growth * unit + log_ndtr((past_one + 0.5) * tau)))
    squares, log_weights = _power(objective.directions, objective.fixed_sign, 1)
    return np.asarray(np.logaddexp.reduce(log_weights[:, None] + np.multiply.outer(squares * unit, growth), axis=0))
