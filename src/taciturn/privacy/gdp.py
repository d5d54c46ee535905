r"""One Gaussian number for a whole plan.

A release is :math:`\mu`-GDP if telling two neighbouring data sets apart from it is no easier than
telling :math:`N(\mu, 1)` from :math:`N(0, 1)` (Dong, Roth and Su 2022). Then it is
:math:`(\varepsilon, \delta(\varepsilon))`-DP for every :math:`\varepsilon \ge 0` with

.. math:: \delta(\varepsilon) = \Phi(-\varepsilon/\mu + \mu/2)
          - e^{\varepsilon}\, \Phi(-\varepsilon/\mu - \mu/2),

and adaptive composition adds squares. In terms of :math:`x = \mu^2` the pieces cost:

*Gaussian, noise multiplier* :math:`\sigma`: add :math:`1/\sigma^2`, exactly.

*Pure* :math:`\varepsilon`-*DP*: add :math:`(2\,\Phi^{-1}(1/(1 + e^{-\varepsilon})))^2`. The trade-off
curve of randomised response has one kink, and a convex Gaussian curve through it lies below.

*Bounded-range selections*: a selection of range :math:`e` executed before releases that are jointly
:math:`\mu`-GDP gives :math:`(\mu + e^2/(8\mu))`-GDP in all, and a selection alone is
:math:`\sqrt{\pi/8}\,e`-GDP. Going backwards through the selections, last executed first,

.. math:: x \leftarrow F(x, e) = \begin{cases} x + e^2/4 + e^4/(64x) & x \ge e^2/8 \\
          \min(x + \pi e^2/8,\; e^2/2) & x < e^2/8 \end{cases} .

:math:`F` does not decrease in :math:`x` and has slope at most one. What is executed *after* a
selection may enter its :math:`x`; what is executed before may not. Passing the selections alone
through :math:`F` and adding everything else afterwards is hence valid for every interleaving.

For :math:`T` equal selections :math:`\mu = \nu_T e` with constants that depend on :math:`T` alone.

*Objective perturbation* is not Gaussian, but a sum of what Gaussian releases cost, at an epsilon smaller by the
logarithm of the Jacobians' ratio: the weights and squared shifts are those of a polynomial
(:mod:`taciturn.privacy.budget`), and each shift is added to the x of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from scipy.special import erfcx, log_expit, log_ndtr, ndtri_exp

from taciturn.core.validation import check_integer
from taciturn.privacy.budget import Budget, Pieces, head_start, last_private, pieces_of, polynomial
from taciturn.privacy.events import Event, alternatives

_EXACT_STEPS = 100_000
_LARGEST_MU = 1e6
# Relative width of the brackets in which roots are enclosed.
_ROOT = 1e-13


# ------------------------------------------------------------------ selections


def selection_step(x: float, selection_range: float, count: int = 1) -> float:
    """``F(x, e)``, ``count`` times: the squared GDP parameter after so many more, earlier, selections of range e."""
    unit = selection_range * selection_range
    return unit * _climbed(x / unit, count)


def nu(steps: int) -> float:
    r"""The constant :math:`\nu_T`: T equal selections of range e are :math:`\nu_T e`-GDP.

    :math:`\nu_1^2 = \pi/8` and :math:`\nu_{k+1}^2 = \nu_k^2 + 1/4 + 1/(64 \nu_k^2)`, so that
    :math:`\nu_T^2 = T/4 + O(\ln T)`, where T/4 is the central limit. Exact up to 100,000 steps and an
    upper bound with a relative error below 1e-9 beyond.
    """
    return math.sqrt(_nu_squared(check_integer(1, steps=steps)))


@lru_cache(maxsize=1024)
def _nu_squared(steps: int) -> float:
    return _climbed(0.0, steps)


def _climbed(y: float, steps: int) -> float:
    r"""``F`` applied ``steps`` times in units where the range is one.

    Beyond the exact steps, :math:`y_k \ge y_0 + k/4` and the midpoint rule for the convex function
    :math:`k \mapsto 1/(16(4y_0 + k))` bound what the last term of F contributes:

    .. math:: y_n \le y_0 + n/4 + \tfrac{1}{16} \ln\bigl(1 + n/(4y_0 - 1/2)\bigr).
    """
    if y < 0.125:
        y, steps = min(y + math.pi / 8.0, 0.5), steps - 1
    for _ in range(min(steps, _EXACT_STEPS)):
        y += 0.25 + 0.015625 / y
    beyond = steps - _EXACT_STEPS
    if beyond > 0:
        y += 0.25 * beyond + 0.0625 * math.log1p(beyond / (4.0 * y - 0.5))
    return y


def _selections_squared(pieces: Pieces) -> float:
    if not pieces.ordered:
        # What F adds falls as x grows, and in any order x is at least what the selections of one range have
        # contributed by themselves. So each range costs at most what it would cost alone.
        totals: dict[float, int] = {}
        for selection_range, count in pieces.selections:
            totals[selection_range] = totals.get(selection_range, 0) + count
        return math.fsum(_nu_squared(count) * eps * eps for eps, count in totals.items())
    x = 0.0
    for selection_range, count in reversed(pieces.selections):
        unit = selection_range * selection_range
        x = unit * (_nu_squared(count) if x == 0.0 else _climbed(x / unit, count))
    return x


# ------------------------------------------------------------------ whole plans


def mu_squared(event: Event, *, ordered: bool = True) -> float:
    """The squared GDP parameter of a plan, its ``leak`` apart; infinite where it has none.

    ``ordered`` tells whether the releases happen in the order of the event; False holds for every order.
    """
    every = [pieces_of(each, ordered=ordered) for each in alternatives(event)]
    return max(math.inf if pieces.objectives else mu_squared_of(pieces) for pieces in every)


def gaussian_cost(event: Event, *, ordered: bool = True) -> tuple[float, float]:
    """What a privacy filter charges for a plan: its squared GDP parameter, and the distance of its samplers.

    Of parallel events the dearest branch counts, for each of the two. The parameter is infinite where the plan is not
    Gaussian: where it has no protection, may fail outright, or minimises a perturbed objective.
    """
    every = [pieces_of(each, ordered=ordered) for each in alternatives(event)]
    squared = max(math.inf if pieces.objectives or pieces.leak else mu_squared_of(pieces) for pieces in every)
    return squared, max(pieces.distance for pieces in every)


@lru_cache(maxsize=64)
def mu_squared_of(pieces: Pieces) -> float:
    """The squared GDP parameter of everything but the objectives and the ``leak``; infinite with searches."""
    if not pieces.private or pieces.searches:
        return math.inf
    terms = [_selections_squared(pieces)]
    terms += [count / noise_multiplier / noise_multiplier for noise_multiplier, count in pieces.gaussians]
    terms += [count * pure_to_mu(eps) * pure_to_mu(eps) for eps, count in pieces.pure]
    return math.fsum(terms)


def pure_to_mu(eps: float) -> float:
    r""":math:`2\,\Phi^{-1}(1/(1 + e^{-\varepsilon}))`, at most :math:`\varepsilon\sqrt{\pi/2}`."""
    linear = eps * math.sqrt(math.pi / 2.0)
    # The quantile loses its digits next to one half, where the linear bound is exact to eps**2.
    return linear if eps < 1e-4 else min(linear, -2.0 * float(ndtri_exp(log_expit(-eps))))


def epsilon(pieces: Pieces, delta: float) -> float:
    """The smallest epsilon at this delta, as far as this bound knows."""
    squared = mu_squared_of(pieces)
    if not pieces.objectives:
        return epsilon_of_mu(math.sqrt(squared), delta)
    shifts, log_weights = polynomial(pieces)
    # All terms at the largest shift are a looser bound, hence a private starting point.
    whole = _log_of_sum(log_weights)
    loose = epsilon_of_mu(math.sqrt(squared + shifts[-1]), delta * math.exp(-whole) if whole < 700.0 else 0.0)
    start = head_start(pieces)
    if math.isinf(loose) or loose == 0.0 or len(shifts) == 1:
        return start + loose
    target = math.log(delta)

    def missing(eps: float) -> float:
        return _log_sum(squared, shifts, log_weights, eps) - target

    return start + (0.0 if missing(0.0) <= 0.0 else last_private(missing, loose, 0.0, _ROOT * loose))


def log_delta(pieces: Pieces, eps: float) -> float:
    """The logarithm of the smallest delta at this epsilon, as far as this bound knows."""
    squared = mu_squared_of(pieces)
    if not pieces.objectives:
        return min(log_delta_of_mu(eps, math.sqrt(squared)), 0.0)
    left = eps - head_start(pieces)
    return 0.0 if left < 0.0 else min(_log_sum(squared, *polynomial(pieces), left), 0.0)


def _log_sum(squared: float, shifts: Sequence[float], log_weights: Sequence[float], eps: float) -> float:
    """The logarithm of the weighted sum of what Gaussian plans have for delta at this epsilon."""
    return _log_of_sum(
        [
            log_weight + log_delta_of_mu(eps, math.sqrt(squared + shift))
            for shift, log_weight in zip(shifts, log_weights, strict=True)
        ]
    )


def _log_of_sum(logs: Sequence[float]) -> float:
    largest = max(logs)
    return largest if math.isinf(largest) else largest + math.log(math.fsum(math.exp(log - largest) for log in logs))


def excess(pieces: Pieces, eps: float, delta: float) -> float:
    """At most zero if and only if this bound proves (eps, delta); close to linear in log-scales."""
    squared = mu_squared_of(pieces)
    if pieces.objectives:
        proved = log_delta(pieces, eps)
        if proved == 0.0 or delta <= 0.0:
            return math.inf
        # Exponents of Gaussian tails grow like squares of scales.
        return -math.inf if math.isinf(proved) else math.log(math.log(delta) / proved)
    if squared == 0.0:
        return -math.inf
    allowed = _mu_of(eps, delta) if eps > 0.0 else 0.0
    if allowed == 0.0 or math.isinf(squared):
        return math.inf
    return math.log(squared) - 2.0 * math.log(allowed)


# ------------------------------------------------------------------ conversions


def log_delta_of_mu(eps: float, mu: float) -> float:
    r"""The logarithm of :math:`\delta(\varepsilon)` for a mu-GDP release.

    With :math:`y_\pm = \varepsilon/\mu \pm \mu/2` and Mills' ratio :math:`R = \Phi(-\cdot)/\varphi`,
    :math:`\delta = \varphi(y_-)\,(R(y_-) - R(y_+))`, which stays accurate in the tail where the two
    terms of the usual form agree to many digits.
    """
    if mu == 0.0 or (math.isinf(eps) and not math.isinf(mu)):
        return -math.inf
    if math.isinf(mu):
        return 0.0
    near, far = eps / mu - mu / 2.0, eps / mu + mu / 2.0
    if near > 1e3:
        # Astronomically small; the second term may be dropped, and R(y) < 1/y.
        difference = 1.0 / near
    elif mu < 1e-4:
        # -R' = 1 - y R(y) is convex: the trapezoid overstates its integral, by a share of mu**2.
        difference = mu * (1.0 - 0.5 * (near * _mills(near) + far * _mills(far)))
    elif near > 0.0:
        difference = _mills(near) - _mills(far)
    else:
        first = float(log_ndtr(-near))
        return first + math.log(-math.expm1(eps + float(log_ndtr(-far)) - first))
    return -0.5 * near * near - 0.5 * math.log(2.0 * math.pi) + math.log(difference)


def _mills(y: float) -> float:
    return math.sqrt(math.pi / 2.0) * float(erfcx(y / math.sqrt(2.0)))


def delta_of_mu(eps: float, mu: float) -> float:
    """The smallest delta at which every mu-GDP release is (eps, delta)-DP."""
    return math.exp(log_delta_of_mu(eps, mu))


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest epsilon at which every mu-GDP release is (epsilon, delta)-DP, rounded up."""
    if mu == 0.0:
        return 0.0
    if delta <= 0.0 or math.isinf(mu):
        return math.inf
    target = math.log(delta)

    def missing(eps: float) -> float:
        return log_delta_of_mu(eps, mu) - target

    if missing(0.0) <= 0.0:
        return 0.0
    # Concentrated privacy with rho = mu**2 / 2 is a looser bound, hence a private starting point.
    loose = mu * mu / 2.0 + mu * math.sqrt(-2.0 * target)
    # Beyond this the loose bound is as good, to six digits, and the search would leave the range of doubles.
    return loose if mu > _LARGEST_MU else last_private(missing, loose, 0.0, _ROOT * loose)


def mu_of_budget(budget: Budget) -> float:
    """The largest mu for which every mu-GDP release meets the budget, rounded down."""
    return _mu_of(budget.epsilon, budget.delta)


@lru_cache(maxsize=1024)
def _mu_of(eps: float, delta: float) -> float:
    if math.isinf(eps):
        return math.inf
    if delta <= 0.0:
        return 0.0
    target = math.log(delta)

    def missing(log_mu: float) -> float:
        return log_delta_of_mu(eps, math.exp(log_mu)) - target

    # What concentrated privacy allows, written without cancellation for small eps.
    allowed = math.sqrt(2.0) * eps / (math.sqrt(eps - target) + math.sqrt(-target))
    private = exposed = math.log(allowed)
    while missing(exposed) <= 0.0:
        private, exposed = exposed, exposed + 0.5
    return math.exp(last_private(missing, private, exposed, _ROOT))
