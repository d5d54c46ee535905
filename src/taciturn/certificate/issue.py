"""Certificates come from plans, and add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from taciturn.accounting import Budget, best_bound
from taciturn.certificate.certificate import Certificate
from taciturn.certificate.claim import check_claim, check_work
from taciturn.certificate.release import Part, Release, event_of_releases, only_pairs_halved
from taciturn.certificate.status import STATUSES, status_of
from taciturn.core.errors import CertificateError
from taciturn.events import for_group

__all__ = ["certify", "compose"]


def certify(
    releases: Iterable[Release],
    budget: Budget,
    *,
    relation: str,
    public: Mapping[str, Any],
    assumptions: Iterable[str] = (),
    seeded: bool,
    arithmetic: str,
    ordered: bool = True,
    unit: str = "record",
    account_head: str | None = None,
) -> Certificate:
    """The certificate of releases that were planned for a budget.

    The accounted epsilon is stated; where it is within a thousandth of the budget, the budget is, since
    calibration always stops a hair on the private side of it. ``ordered`` tells whether the releases were made in the
    order given. The status follows from the releases: see :func:`taciturn.certificate.status.status_of`.
    """
    releases = tuple(releases)
    event = event_of_releases(releases)
    bound = best_bound(event, budget.delta, ordered=ordered)
    bound_name = bound.name
    status = status_of(event)
    if status == "not private":
        epsilon, delta, bound_name = math.inf, 0.0, "none"
    else:
        epsilon, delta = bound.epsilon, budget.delta
        if not epsilon <= budget.epsilon:
            raise CertificateError(
                f"epsilon={epsilon!r}: expected at most the budget of {budget.epsilon!r}; "
                "this is a defect of the plan, please report it."
            )
        if epsilon > 0.999 * budget.epsilon:
            epsilon = budget.epsilon
    return Certificate(
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        status=status,
        events=releases,
        public=public,
        assumptions=tuple(assumptions),
        seeded=seeded,
        arithmetic=arithmetic,
        bound=bound_name,
        ordered=ordered,
        unit=unit,
        account_head=account_head,
    )


def compose(*certificates: Certificate) -> Certificate:
    """One certificate for several releases about the same records.

    All events are accounted together, once, at the sum of the deltas, in whatever order the fits were made; the
    result is never worse than the sum of the epsilons. All must be stated for one relation, unit and group size,
    except those that hold for any: nothing spent, and no number of records stated as public.

    Parameters
    ----------
    *certificates : Certificate
        At least one. Each is accounted for again, and refused if it states less than its events allow.

    Returns
    -------
    Certificate
        Of everything together, with the weakest of the statuses.

    Notes
    -----
    The statement holds for fits that were planned before the first result was looked at: how many, by which methods,
    with which budgets. It does **not** cover certificates whose budgets were chosen after looking at earlier results,
    a fit that was added because another one "did not work" included: the fits that would have followed every other
    result count as well, and their deltas add up over these branches.
    """
    if not certificates:
        raise CertificateError("certificates: expected at least one, got none; pass the ones to add up.")
    for certificate in certificates:
        if not isinstance(certificate, Certificate):
            raise CertificateError(
                f"certificates: expected certificates, got {type(certificate).__name__}; pass certificate_ of each fit."
            )
        check_claim(certificate)
    binding = [certificate for certificate in certificates if not _holds_for_any(certificate)] or certificates[:1]
    for name in ("relation", "unit", "group_size"):
        found = {getattr(certificate, name) for certificate in binding}
        if len(found) > 1:
            listed = ", ".join(sorted(map(repr, found)))
            raise CertificateError(
                f"{name}: expected one and the same, got {listed}; fit again with one {name} for all."
            )
    if len(certificates) == 1:
        return certificates[0]
    first = binding[0]
    worst = max(certificates, key=lambda certificate: STATUSES.index(certificate.status))
    parts = _parts(certificates)
    delta = math.fsum(part.delta for part in parts or certificates)
    releases = tuple(release for certificate in certificates for release in only_pairs_halved(certificate.events))
    event = event_of_releases(releases)
    check_work(event, first.group_size)
    epsilon = math.fsum(part.epsilon for part in (parts if worst.is_proved else certificates))
    bound_name = "none" if math.isinf(epsilon) else "sum"
    if worst.is_proved:
        bound = best_bound(for_group(event, first.group_size), delta, ordered=False)
        # A hair below the sum is the sum: calibrated plans stop short of their budgets by that much.
        if bound.epsilon < 0.999 * epsilon:
            bound_name, epsilon, parts = bound.name, bound.epsilon, ()
    published = worst.status == "as published"
    return Certificate(
        epsilon=epsilon,
        delta=delta,
        relation=first.relation,
        status=worst.status,
        events=releases,
        public={f"part {i}": _facts(part) for i, part in enumerate(certificates, start=1)},
        assumptions=tuple(dict.fromkeys(a for part in certificates for a in part.assumptions)),
        seeded=any(certificate.seeded for certificate in certificates),
        arithmetic="exact" if all(part.arithmetic == "exact" for part in certificates) else "float64",
        bound=bound_name,
        group_size=first.group_size,
        ordered=False,
        proved_epsilon=_proved(certificates, parts) if published else None,
        parts=parts,
        unit=first.unit,
        errata=tuple(dict.fromkeys(erratum for part in certificates for erratum in part.errata)),
    )


def _facts(certificate: Certificate) -> dict[str, Any]:
    """The public facts of a part, and the entry of its account."""
    head = {} if certificate.account_head is None else {"account_head": certificate.account_head}
    return dict(certificate.public) | head


def _proved(certificates: Iterable[Certificate], parts: Iterable[Part]) -> float | None:
    """What can be proved of parts together of which some are as published; None if nothing is known of one of them."""
    if any(part.status == "as published" and part.proved_epsilon is None for part in certificates):
        return None
    return math.fsum(part.epsilon for part in parts) if parts else math.inf


def _parts(certificates: Iterable[Certificate]) -> tuple[Part, ...]:
    """What each certificate proves by itself; nothing if that is not known of one of them."""
    parts: list[Part] = []
    for certificate in certificates:
        proved = certificate.epsilon if certificate.is_proved else certificate.proved_epsilon
        if proved is None or math.isinf(proved):
            return ()
        whole = Part(proved, certificate.delta, len(certificate.events), certificate.ordered)
        parts += certificate.parts or [whole]
    return tuple(parts)


def _holds_for_any(certificate: Certificate) -> bool:
    """Whether a certificate holds under every relation and for groups of every size."""
    # A published claim can cost something and list no events. And a row count that was public where it was
    # stated must not slip into a statement that protects it.
    free = not certificate.events and certificate.epsilon == 0.0
    return free and not _states_records(certificate.public)


def _states_records(public: Mapping[str, Any]) -> bool:
    return "records" in public or any(_states_records(fact) for fact in public.values() if isinstance(fact, Mapping))
