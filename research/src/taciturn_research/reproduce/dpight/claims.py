"""What DP-IGHT says about its errors, checked on ours."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from taciturn_research.reproduce.dpight.common import EPSILONS, IGHT
from taciturn_research.reproduce.experiment import Finding, Numbers, checker

SLOPE = "slope"
"""The measure of a fitted slope, in rows of the rates."""


@checker
def best_of_private(numbers: Numbers, name: str, method: str, others: Sequence[str], *, key: str = "set") -> Finding:
    """The mean error is below those of the others at every epsilon."""
    means = {
        each: [numbers.mean({key: name, "method": each, "epsilon": epsilon}) for epsilon in EPSILONS]
        for each in (method, *others)
    }
    won = [all(means[method][i] < means[other][i] for other in others) for i in range(len(EPSILONS))]
    said = "; ".join(f"{each}: {', '.join(f'{mean:.3g}' for mean in found)}" for each, found in means.items())
    return Finding(all(won), f"best at {sum(won)} of {len(won)} epsilons ({_budgets()}). {said}")


@checker
def near_non_private(numbers: Numbers, name: str, method: str, others: Sequence[str]) -> Finding:
    """At every epsilon the mean error is nearer to that of IGHT than to the best of the others."""
    near, parts = [], []
    for epsilon in EPSILONS:
        place = {"set": name, "epsilon": epsilon}
        ours, twin, *theirs = (numbers.mean({**place, "method": each}) for each in (method, IGHT, *others))
        near.append(ours - twin < min(theirs) - ours)
        parts.append(f"{ours:.3g} between {twin:.3g} and {min(theirs):.3g}")
    return Finding(
        all(near), f"nearer to IGHT at {sum(near)} of {len(near)} epsilons ({_budgets()}): {'; '.join(parts)}"
    )


@checker
def smaller_than(numbers: Numbers, name: str, method: str, most: float) -> Finding:
    """The mean error is below a number; it does not depend on epsilon."""
    mean = numbers.mean({"set": name, "method": method, "epsilon": EPSILONS[0]})
    return Finding(mean < most, f"{mean:.3g}")


@checker
def falls_like(numbers: Numbers, method: str, rate: float) -> Finding:
    """The slope is at most the rate, within two standard errors over the trials."""
    slopes = numbers.values({"method": method, "measure": SLOPE})
    error = stdev(slopes) / len(slopes) ** 0.5
    mean = fmean(slopes)
    return Finding(mean - 2.0 * error <= rate, f"slope {mean:.2f} (standard error {error:.2f}) beside {rate:.3g}")


def _budgets() -> str:
    return ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
