"""Plans for Frank-Wolfe with screening."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_integer, check_positive, check_real
from taciturn.methods.frank_wolfe.plan import (
    LARGEST_RADIUS,
    SMALLEST_RADIUS,
    FrankWolfePlan,
    choose_steps,
    influences,
    list_selection,
    list_steps,
    plan_target,
)
from taciturn.methods.schedule import Problem, Schedule
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import GaussianEvent
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE

SCREENING_RULES = ("select", "tested", "none-option", "adp")
"""Names of the rules."""

GAUSSIAN_BITS = 24
"""Gaussian noise of a screening has a standard deviation of two to this power lattice units."""

# Of what the tested rule spends on screening, half goes to the selection and half to the test.
_HALF = math.sqrt(0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedPlan(FrankWolfePlan):
    """How many steps and screenings will be made, and with how much noise.

    The order of the releases is not that of execution, since steps and screenings alternate. Coefficients are
    screened after the steps ``screenings`` by a ``rule``: "select", "tested", "none-option" or "adp".
    ``selection_noise`` is the Gumbel scale of a screening's selection in the units of the steps',
    ``gaussian_noise`` the standard deviation of its Gaussian noise in units of its sensitivity, rounding included;
    0 for none. ``threshold`` is the gradient of the candidate "none", as a share of the largest possible one.
    ``permanent``: screened coefficients never come back.
    """

    screenings: tuple[int, ...]
    rule: str
    selection_noise: float
    gaussian_noise: float
    threshold: float
    permanent: bool


def check_screening(rule: str, screen_at: int | str, screen_share: float, threshold: float | None) -> None:
    """Raise ParameterError for bad parameters of screening."""
    check_choice(SCREENING_RULES, rule=rule)
    if isinstance(screen_at, str):
        check_choice(("every", "last"), screen_at=screen_at)
    else:
        check_integer(1, screen_at=screen_at)
    check_real(0.0, 1.0, closed="left", screen_share=screen_share)
    check_positive(screen_share=screen_share)
    if threshold is not None:
        check_real(0.0, 1.0, threshold=threshold)


def screening_times(screen_at: int | str, n_steps: int) -> tuple[int, ...]:
    """After which steps coefficients are screened."""
    if screen_at == "last":
        return (n_steps,)
    every = 1 if screen_at == "every" else int(screen_at)
    return tuple(range(every, n_steps + 1, every))


def plan_screened(
    budget: Budget,
    problem: Problem,
    *,
    radius: float,
    n_steps: int | str,
    rule: str,
    screen_at: int | str,
    screen_share: float,
    threshold: float | None,
    permanent: bool,
    auto_clip: bool = False,
    auto_radius: bool = False,
) -> ScreenedPlan:
    r"""Plan private Frank-Wolfe with screening.

    One accountant covers both. With T steps, m screenings and a share s, the ranges of one step and of one screening
    are in the ratio :math:`\sqrt{(1 - s) / T} : \sqrt{s / m}`, so that s is the screenings' share of the sum of
    squares; without a delta, where ranges add up, :math:`(1 - s) / T : s / m`.

    ``screen_at`` is the public schedule of screenings. A ``threshold`` of None is one over the root of ``n_rows``.
    ``auto_clip`` and ``auto_radius`` are those of :func:`~taciturn.methods.frank_wolfe.plan.plan_target`.
    """
    check_screening(rule, screen_at, screen_share, threshold)
    problem, radius, medians = plan_target(budget, problem, radius, auto_clip, auto_radius)
    _check_facts(budget, problem, radius, rule)
    steps = choose_steps(n_steps, budget, problem, radius, medians)
    screenings = screening_times(screen_at, steps)
    schedule = Schedule(budget, ordered=False)
    if medians is not None:
        medians.list_in(schedule, 1.0)
    _list_releases(schedule, problem, rule, float(screen_share) if screenings else 0.0, steps, len(screenings))
    schedule.calibrate()
    relation = problem.relation
    gaussian_noise = schedule["gaussian"].scale if "gaussian" in schedule else 0.0
    # Gaussian noise has to fit its lattice.
    if gaussian_noise * math.sqrt(max(problem.n_features, 3)) >= 2.0 ** (GAUSSIAN_BITS - 1):
        raise ParameterError("epsilon", budget.epsilon, f"more with rule={rule!r}", "raise it or use rule='select'")
    return ScreenedPlan(
        problem,
        schedule,
        radius,
        steps,
        influences(schedule["steps"], relation),
        medians=medians,
        screenings=screenings,
        rule=rule,
        selection_noise=influences(schedule["selection"], relation) if "selection" in schedule else 0.0,
        gaussian_noise=gaussian_noise,
        threshold=none_threshold(threshold, problem.n_rows),
        permanent=permanent,
    )


def none_threshold(threshold: float | None, n_rows: int | None) -> float:
    """The gradient of the candidate "none", as a share of the largest possible one."""
    if threshold is not None:
        return float(threshold)
    # What |sum_i psi_i x_i| / (n max|psi|) reaches by chance, for features of size one and derivatives at the clip.
    return 0.0 if n_rows is None else 1.0 / math.sqrt(n_rows)


def _check_facts(budget: Budget, problem: Problem, radius: float, rule: str) -> None:
    loss = problem.loss
    if rule in ("tested", "adp"):
        largest = min(loss.largest_radius, LARGEST_RADIUS)
        if not SMALLEST_RADIUS <= radius <= largest:
            raise ParameterError(
                "radius",
                radius,
                f"{SMALLEST_RADIUS:g} to {largest:g} in units of x_bound with rule={rule!r}",
                "rescale the features, or use rule='select'",
            )
        if loss.multiclass:
            raise ParameterError(
                "rule",
                rule,
                "'select' or 'none-option' for more than two classes",
                "use one of these: Only binary classification is supported by the safe rule",
            )
        if math.isinf(loss.condition(radius)):
            raise ParameterError("rule", rule, "'select' or 'none-option' for this loss", "it is not strongly convex")
        if budget.delta == 0.0 and not math.isinf(budget.epsilon):
            raise ParameterError("delta", 0.0, f"a positive number with rule={rule!r}", "its noise is Gaussian")
    if rule != "select" and problem.relation == "add-remove" and problem.n_rows is None:
        raise ParameterError(
            "n_public", None, f"a public number of records with rule={rule!r} under add-remove", "pass one"
        )


_SCREENING_WORDS = {
    "select": "which coefficient is screened",
    "tested": "which coefficient is a candidate for screening",
    "none-option": "which coefficient is screened, if any",
    "adp": "which coefficients are screened",
}


def _list_releases(
    schedule: Schedule, problem: Problem, rule: str, share: float, n_steps: int, n_screenings: int
) -> None:
    """List the steps, then what the screenings release."""
    power = 0.5 if schedule.budget.delta > 0.0 else 1.0
    list_steps(schedule, problem, ((1.0 - share) / n_steps) ** power, n_steps)
    if not n_screenings:
        return
    part = (share / n_screenings) ** power
    # At a common scale b: a selection has the range part / b; Gaussian noise that costs as much has mu = part / (2 b).
    select_part = {"adp": 0.0, "tested": _HALF}.get(rule, 1.0) * part
    gauss_part = {"adp": 1.0, "tested": _HALF}.get(rule, 0.0) * part
    what, distance = _SCREENING_WORDS[rule], DISTANCE_PER_VALUE * (problem.n_features if rule == "adp" else 3)
    if select_part:
        list_selection(schedule, "selection", what, problem.relation, select_part, n_screenings)
        what = "three numbers of the test of a screening"
    # Without noise a test shows no more than which coefficient is screened.
    if gauss_part and (schedule.private or not select_part):
        schedule.add("gaussian", what, lambda b: GaussianEvent(2.0 * b / gauss_part, distance), n_screenings)
