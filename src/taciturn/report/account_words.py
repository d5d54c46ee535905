"""What an account guarantees, in sentences."""

from __future__ import annotations

import math

from taciturn.accounts.pots import pots_of
from taciturn.accounts.state import AccountState, Charge, affordable_epsilon
from taciturn.drawing.formats import round_safely

__all__ = ["explain_account", "format_charge", "format_share", "list_affordable"]

_USUAL_DELTA = 1e-6


def explain_account(state: AccountState) -> tuple[str, str, str]:
    """Three sentences: the guarantee, that fits may be chosen along the way, and what is not covered."""
    whose = "one record" if state.unit == "record" else "all records of one person"
    change = f"leaving {whose} out of the data"
    if state.relation == "replace-one":
        change = f"replacing {whose} by any others" if state.unit == "person" else "replacing one record by any other"
    beyond = f", up to an additional probability of {state.delta:.6g}" if state.delta else ""
    return (
        f"Everything that this account ever pays for is together differentially private (epsilon = "
        f"{state.epsilon:.6g}, delta = {state.delta:.6g}, relation: {state.relation}): {change} changes the "
        f"probability of any outcome by a factor of at most {round_safely(math.exp(state.epsilon), up=True)}{beyond}.",
        "This also holds if each fit, its budget included, is chosen after looking at earlier results.",
        "It covers what the account pays for and nothing else: a fit, a score or a look at the data outside the "
        "account is not in it.",
    )


def list_affordable(state: AccountState) -> list[tuple[float, str]]:
    """The largest epsilon of a Gaussian fit that can still be paid for, at the usual delta and at the account's."""
    deltas = dict.fromkeys(delta for delta in (_USUAL_DELTA, state.delta) if delta)
    return [(delta, round_safely(affordable_epsilon(state.left, delta), up=False)) for delta in deltas]


def format_charge(charge: Charge, state: AccountState) -> str:
    """The share of its pot that a charge is; of the second pot, that of epsilon or delta, whichever is larger."""
    share = max(pot.share(charge.price) for pot in pots_of(state))
    return f"{format_share(share)} of 2nd" if charge.price.epsilon else format_share(share)


def format_share(share: float) -> str:
    """A share of a pot as a percentage with one decimal; a small one does not become nothing.

    Examples
    --------
    >>> [format_share(share) for share in (0.0, 0.00001, 0.12345, 1.0)]
    ['0%', '<0.1%', '12.3%', '100%']
    """
    if 0.0 < share < 0.001:
        return "<0.1%"
    return f"{100.0 * share:.1f}".removesuffix(".0") + "%"
