"""What the check of a privacy filter's list leaves to rounding: so much for the whole list, not for each line."""

import dataclasses
import math

import pytest
from scipy.optimize import brentq

from taciturn.accounting import Budget, PrivacyFilter
from taciturn.events import ExponentialEvent, GaussianEvent
from taciturn.privacy.filter import chain_cost, chain_holds
from taciturn.privacy.gdp import selection_step

EVENTS = {"gaussian": GaussianEvent, "selection": ExponentialEvent}


def dearer(spend, more):
    """The same line with a release that costs more than its price."""
    whole = spend.remaining + spend.price + more
    if spend.mechanism == "gaussian":
        return dataclasses.replace(spend, parameter=1.0 / math.sqrt(spend.price + more))
    least = spend.parameter * (1.0 - 1e-9)
    wider = brentq(lambda w: selection_step(spend.remaining, w) - whole, least, 2.0 * spend.parameter, xtol=1e-15)
    return dataclasses.replace(spend, parameter=wider)


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_what_lines_cost_too_much_may_not_add_up(kind):
    filled = PrivacyFilter(Budget(1.0, 1e-6))
    for _ in range(999):
        getattr(filled, kind)("a share", 1e-3)
    getattr(filled, kind)("the rest", filled.remaining)
    honest = filled.spent()
    more = 0.5e-9 * filled.mu**2
    assert chain_holds(honest)
    assert chain_holds([dearer(honest[0], more), *honest[1:]])
    forged = [dearer(spend, more) for spend in honest]
    # No line is off by more than rounding might be. Together they are not what the prices say.
    cost = chain_cost(EVENTS[kind](spend.parameter) for spend in forged)
    assert cost > (1.0 + 1e-7) * math.fsum(spend.price for spend in forged)
    assert not chain_holds(forged)


def test_numbers_that_are_none_do_not_pass():
    filled = PrivacyFilter(Budget(1.0, 1e-6))
    filled.gaussian("everything", 1.0)
    (only,) = filled.spent()
    assert not chain_holds([dataclasses.replace(only, parameter=math.nan)])
    assert not chain_holds([dataclasses.replace(only, remaining=math.nan)])
