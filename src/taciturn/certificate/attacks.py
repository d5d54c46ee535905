"""What a certificate says about attackers: its Gaussian parameter, and the power of tests of membership.

Both follow from the events alone, so that no file states them and nobody has to believe them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from taciturn.accounting import AttackRates, attack_rates, mu_of
from taciturn.accounting.attacks import highest_advantage, highest_power
from taciturn.certificate.claim import check_claim, check_work
from taciturn.core.errors import CertificateError
from taciturn.events import Event, NotPrivateEvent, for_group

if TYPE_CHECKING:
    from taciturn.certificate.certificate import Certificate

__all__ = ["proved_mu", "proved_rates"]


def proved_mu(certificate: Certificate) -> float | None:
    """The Gaussian parameter that the events prove; None where there is none."""
    return _from_events(certificate)[0] if _proves_something(certificate) else None


def proved_rates(certificate: Certificate) -> AttackRates | None:
    """Bounds on tests of membership that the events prove; None where nothing is proved."""
    if not _proves_something(certificate):
        return None
    rates = _from_events(certificate)[1]
    if not certificate.parts or not _holds(certificate):
        return rates
    # A sum of parts can be smaller than what the events prove together.
    stated = certificate.epsilon if certificate.is_proved else certificate.proved_epsilon
    epsilon = math.inf if stated is None else stated
    tpr = (
        min(rate, highest_power(level, epsilon, certificate.delta))
        for level, rate in zip(rates.fpr, rates.tpr, strict=True)
    )
    advantage = min(rates.advantage, highest_advantage(epsilon, certificate.delta))
    return AttackRates(rates.fpr, tuple(tpr), advantage)


def _proves_something(certificate: Certificate) -> bool:
    if certificate.status == "as published":
        return certificate.proved_epsilon is not None and not math.isinf(certificate.proved_epsilon)
    return certificate.is_proved


def _holds(certificate: Certificate) -> bool:
    """Whether the sum is proved; a copy may have been made by hand."""
    try:
        check_claim(certificate)
    except CertificateError:
        return False
    return True


def _from_events(certificate: Certificate) -> tuple[float | None, AttackRates]:
    event = certificate.event
    check_work(event, certificate.group_size)
    return _account(event, certificate.group_size, certificate.ordered)


@lru_cache(maxsize=32)
def _account(event: Event, group_size: int, ordered: bool) -> tuple[float | None, AttackRates]:
    # Hostile numbers may overflow on the way to an infinite epsilon; then nothing is proved.
    try:
        with np.errstate(all="ignore"):
            group = for_group(event, group_size)
            return mu_of(group, ordered=ordered), attack_rates(group, ordered=ordered)
    except (ArithmeticError, ValueError):
        return None, attack_rates(NotPrivateEvent())
