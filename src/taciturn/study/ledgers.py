"""Certificates against the ledger of an account: whether an entry paid for what a certificate lists.

A certificate names the entry that reserved its price. The entry is looked up in the chain, and the releases of the
certificate are priced again: by :func:`taciturn.accounting.gdp.gaussian_cost` for the first pot of the account, and by
what can be proved at the reserved (epsilon, delta) for the second. A composed certificate names an entry for each of
its parts but does not say where the releases of one part end, so that its releases are divided among the entries in
order, as many to each as its price covers.

What this cannot tell: whether a file belongs to the result beside it. A certificate that was copied to another result
of the same plan looks the same; a signature over both helps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from taciturn.accounting import best_bound, proves
from taciturn.accounting.gdp import gaussian_cost
from taciturn.accounts.chain import LedgerEntry
from taciturn.accounts.price import DISTANCE_UNITS, GAUSSIAN_UNITS
from taciturn.accounts.state import person_column_of
from taciturn.certificate import Certificate, Release
from taciturn.certificate.claim import facts_of_parts
from taciturn.certificate.release import event_of_releases
from taciturn.core.errors import AccountError
from taciturn.modelfile.values import public_facts
from taciturn.study.agreement import LEAST_SHARE

__all__ = ["check_head", "check_heads"]

# Budgets are added up.
_ROUNDING = 1e-9


def check_head(certificate: Certificate, entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Check that entries of an account paid for everything that a certificate lists.

    Parameters
    ----------
    certificate : Certificate
        Of one fit, or of several composed.
    entries : sequence of LedgerEntry
        Of one account, as :func:`taciturn.accounts.contents.check_entries` returns them.

    Returns
    -------
    list of LedgerEntry
        The reservations that paid, in the order of the certificate.

    Raises
    ------
    AccountError
        If the certificate names no entry, one that is not in the chain or was given back, or one that paid for less or
        for more; if relation, unit, number of records, epsilon or delta differ.
    """
    if certificate.seeded:
        raise _wrong("seeded=True", "noise that cannot be replayed, which alone an account pays for")
    parts = list(_parts(certificate))
    if all(head is None for _, head in parts):
        raise AccountError(
            "account_head=None: expected a certificate of a fit that an account paid for; this one counts beside every "
            "account, fit with one."
        )
    paid = [None if head is None else _find(head, entries) for _, head in parts]
    _check_terms(certificate, entries)
    for (facts, _), entry in zip(parts, paid, strict=True):
        if entry is not None:
            _check_count(facts, entry, entries[0])
    found = [entry for entry in paid if entry is not None]
    if len({entry.sequence for entry in found}) < len(found):
        raise _wrong("account_head", "an entry for each part, and not the same one twice")
    numbers = ", ".join(str(entry.sequence) for entry in found)
    shares: list[tuple[Sequence[Release], LedgerEntry, bool]]
    if certificate.account_head is not None:
        shares = [(certificate.events, found[0], certificate.ordered)]
    else:
        shares = list(_shares(certificate.events, paid))
    if sum(len(releases) for releases, _, _ in shares) < len(certificate.events) or not all(
        _is_covered(releases, entry, ordered=ordered) for releases, entry, ordered in shares
    ):
        raise _wrong("events", f"releases that the price reserved by entry {numbers} covers")
    if not all(_is_used(releases, entry, ordered=ordered) for releases, entry, ordered in shares):
        raise _wrong("events", f"all releases that the price reserved by entry {numbers} paid for, found fewer")
    _check_budget(certificate, found, numbers)
    return found


def check_heads(
    certificates: Mapping[str, Certificate], entries: Sequence[LedgerEntry]
) -> dict[str, list[LedgerEntry] | AccountError]:
    """Check several certificates, also against one another: an entry pays for one fit.

    Parameters
    ----------
    certificates : mapping
        Certificates by the name of their file.
    entries : sequence of LedgerEntry
        As in :func:`check_head`.

    Returns
    -------
    dict
        By the same names: the reservations that paid, or what is wrong.
    """
    seen: dict[str, Any] = {}
    verdicts: dict[str, list[LedgerEntry] | AccountError] = {}
    for name, certificate in certificates.items():
        try:
            paid = check_head(certificate, entries)
            for head, facts in _facts_by_head(certificate).items():
                if seen.setdefault(head, facts) != facts:
                    raise _wrong("account_head", "an entry of its own, found that of another fit among these files")
            verdicts[name] = paid
        except AccountError as error:
            verdicts[name] = error
    return verdicts


def _facts_by_head(certificate: Certificate) -> dict[str, dict[str, Any]]:
    """The entries that a certificate names, with the public facts of what each of them paid for."""
    return {
        head: {name: fact for name, fact in facts.items() if name != "account_head"}
        for facts, head in _parts(certificate)
        if head is not None
    }


def _parts(certificate: Certificate) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """The facts of each part of a certificate, with the entry that it names."""
    if certificate.account_head is not None:
        yield certificate.public, certificate.account_head
        return
    for facts in facts_of_parts(certificate.public):
        head = facts.get("account_head") if facts is not certificate.public else None
        yield facts, head if isinstance(head, str) else None


def _find(head: str, entries: Sequence[LedgerEntry]) -> LedgerEntry:
    found = next((entry for entry in entries if entry.hash == head), None)
    if found is None:
        raise AccountError(
            f"account_head={head[:12]}...: expected an entry of account={entries[0].account!r}, found none among "
            f"{len(entries)}; the certificate is of another account, or this ledger is an older copy or was rewritten: "
            "do not spend from it, and look for the newest copy."
        )
    if found.kind != "reserved":
        raise _wrong(f"account_head={head[:12]}...", f"a reservation, found an entry that says {found.kind!r}")
    if any(entry.kind == "released" and entry.reservation == found.sequence for entry in entries):
        raise _wrong(f"account_head={head[:12]}...", "a reservation that was not given back before anything was read")
    return found


def _check_terms(certificate: Certificate, entries: Sequence[LedgerEntry]) -> None:
    terms = entries[0].facts
    for name in ("relation", "unit"):
        if getattr(certificate, name) != terms[name]:
            raise _wrong(f"{name}={getattr(certificate, name)!r}", f"{terms[name]!r}, as the account states")
    column = person_column_of(list(entries))
    for stated in public_facts("person column", certificate.public):
        if column is not None and stated != column:
            raise _wrong(f"person column {stated!r}", f"{column!r}, as the account states")


def _check_count(facts: Mapping[str, Any], entry: LedgerEntry, opened: LedgerEntry) -> None:
    stated, reserved, most = facts.get("records"), entry.facts["n"], opened.facts["n"]
    if stated != reserved:
        raise _wrong(f"records={stated!r}", f"{reserved!r}, for which entry {entry.sequence} was reserved")
    if reserved is not None and most is not None and reserved > most:
        raise _wrong(f"records={stated!r}", f"at most {most}, as the account states")


def _shares(
    releases: Sequence[Release], paid: Sequence[LedgerEntry | None]
) -> Iterator[tuple[Sequence[Release], LedgerEntry, bool]]:
    """Releases divided among entries in order; a part without an entry released nothing."""
    # Fewer releases cost no more, so that it is best to give each entry as many as its price covers.
    at = 0
    for entry in paid:
        if entry is not None:
            count = _count_covered(releases[at:], entry)
            yield releases[at : at + count], entry, entry.facts["ordered"]
            at += count


def _count_covered(releases: Sequence[Release], entry: LedgerEntry) -> int:
    ordered = entry.facts["ordered"]
    low, high = 0, len(releases)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_covered(releases[:middle], entry, ordered=ordered):
            low = middle
        else:
            high = middle - 1
    return low


def _is_covered(releases: Sequence[Release], entry: LedgerEntry, *, ordered: bool) -> bool:
    event, price = event_of_releases(releases), entry.price
    if price.epsilon:
        return proves(event, *price.pair, ordered=ordered)
    # Without the factor by which a price is raised, since that is what covers another machine's last digits.
    squared, distance = gaussian_cost(event, ordered=ordered)
    return (
        math.isfinite(squared)
        and Fraction(squared) * GAUSSIAN_UNITS <= price.gaussian
        and Fraction(distance) * DISTANCE_UNITS <= price.distance
    )


def _is_used(releases: Sequence[Release], entry: LedgerEntry, *, ordered: bool) -> bool:
    """Whether releases cost what was paid for them: a fit reserves the price of its plan, and no plan costs less."""
    event, price = event_of_releases(releases), entry.price
    if price.epsilon:
        epsilon, delta = price.pair
        return best_bound(event, delta, ordered=ordered).epsilon >= epsilon * LEAST_SHARE
    squared, _ = gaussian_cost(event, ordered=ordered)
    return Fraction(squared) * GAUSSIAN_UNITS >= price.gaussian * Fraction(LEAST_SHARE)


def _check_budget(certificate: Certificate, paid: Sequence[LedgerEntry], numbers: str) -> None:
    """The stated epsilon and delta against the budgets of the entries."""
    epsilon, delta = (math.fsum(entry.facts[name] for entry in paid) for name in ("epsilon", "delta"))
    if not math.isclose(certificate.delta, delta, rel_tol=_ROUNDING):
        raise _wrong(f"delta={certificate.delta!r}", f"{delta!r}, for which entry {numbers} was reserved")
    if certificate.group_size > 1:
        # The claim for a group is more than the budget, and follows from the events.
        return
    least = epsilon * LEAST_SHARE if certificate.account_head is not None and certificate.events else 0.0
    if not least <= certificate.epsilon <= epsilon * (1.0 + _ROUNDING):
        raise _wrong(f"epsilon={certificate.epsilon!r}", f"{epsilon!r}, for which entry {numbers} was reserved")


def _wrong(found: str, expected: str) -> AccountError:
    return AccountError(f"{found}: expected {expected}; do not rely on this certificate, ask for the one of the fit.")
