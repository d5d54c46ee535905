"""A certificate in words: as a paragraph that a lawyer can read, in one line, and as a list of facts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from taciturn.certificate.release import in_pairs
from taciturn.core.errors import CertificateError
from taciturn.core.visible import visible
from taciturn.drawing.formats import format_percent, round_safely

if TYPE_CHECKING:
    from taciturn.certificate.certificate import Certificate

__all__ = ["in_short", "in_words", "list_facts", "relation_in_words"]

_RELATION_IN_WORDS = {
    "zero-out": (
        "two data sets are neighbours when they agree except for one record, which is present in one and "
        "blanked out in the other; the number of records is public"
    ),
    "add-remove": (
        "two data sets are neighbours when one has one record more than the other; the number of records "
        "is itself protected"
    ),
    "replace-one": (
        "two data sets are neighbours when they agree except for one record, which may be any other "
        "admissible record; the number of records is public"
    ),
}

_RELATION_OF_PERSONS_IN_WORDS = {
    "zero-out": (
        "two data sets are neighbours when they agree except for the rows of one person, which are all present in one "
        "and all blanked out in the other; the keys of the persons, and with them their number, are public, and how "
        "many rows a person has is protected"
    ),
    "add-remove": (
        "two data sets are neighbours when one has all rows of one person more than the other; the number of persons, "
        "and how many rows each of them has, are themselves protected"
    ),
    "replace-one": (
        "two data sets are neighbours when they agree except for the rows of one person, which may be any other "
        "admissible rows, and any number of them; the keys of the persons, and with them their number, are public"
    ),
}

_ARITHMETIC_IN_WORDS = {
    "exact": "exact (integer sums, and released values on a lattice)",
    "float64": "double precision (some releases are computed from rounded numbers)",
}

_HALVES_IN_WORDS = (
    "The two halves of the {unit}s are drawn at random without looking at the data, and one {unit} is in one of them, "
    "so that the cost is the larger of the two, not the sum."
)

_NO_RELEASE = "nothing that depends on the data"


def in_words(certificate: Certificate) -> str:
    """The whole statement."""
    public = "; ".join(_public(certificate))
    released = "; ".join(map(str, certificate.events)) or _NO_RELEASE
    sentences = [_guarantee(certificate)]
    if certificate.status == "as published":
        sentences.append(_proved(certificate))
    sentences += _attacks(certificate)
    sentences += [
        f"Here {relation_in_words(certificate)}.",
        f"Released: {released}.",
    ]
    if _is_halved(certificate):
        sentences.append(_HALVES_IN_WORDS.format(unit=certificate.unit))
    if public:
        sentences.append(f"Public facts: {public}.")
    if certificate.assumptions and certificate.status != "not private":
        opening = "This holds provided that "
        if certificate.status == "as published":
            opening = "What is claimed and what is proved presuppose that "
        sentences.append(opening + "; ".join(certificate.assumptions) + ".")
    if certificate.errata:
        numbered = (f"({number}) {text}" for number, text in enumerate(certificate.errata, start=1))
        sentences.append("Errata of the publication: " + "; ".join(numbered) + ".")
    if certificate.status != "not private":
        sentences.append(f"Arithmetic: {_ARITHMETIC_IN_WORDS[certificate.arithmetic]}.")
    return visible(" ".join(sentences))


def in_short(certificate: Certificate) -> str:
    """The guarantee in one line."""
    if certificate.status == "not private":
        return "no privacy guarantee: the result was computed without noise"
    claim = f"epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.6g}"
    trust = "as published, NOT verified" if certificate.status == "as published" else certificate.status
    seed = "; seeded: for reproduction only" if certificate.seeded else ""
    return f"{claim} for {_whose(certificate)} ({certificate.relation}), {trust}{seed}"


def list_facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Iterate over what :func:`in_words` states and more, as pairs of a name and a text, each thing once."""
    yield "guarantee", visible(_guarantee(certificate))
    if certificate.status == "as published":
        yield "proved", _proved(certificate)
    yield "relation", f"{certificate.relation}: {relation_in_words(certificate)}"
    yield from _attack_facts(certificate)
    if certificate.is_proved and certificate.epsilon:
        yield _group_fact(certificate)
    for release in certificate.events:
        yield "released", str(release)
    if not certificate.events:
        yield "released", _NO_RELEASE
    if _is_halved(certificate):
        yield "halves", _HALVES_IN_WORDS.format(unit=certificate.unit)
    if certificate.public:
        yield "public", visible("; ".join(_public(certificate)))
    if certificate.status != "not private":
        for assumption in certificate.assumptions:
            yield "assumed", visible(assumption)
    for erratum in certificate.errata:
        yield "erratum", visible(erratum)
    if certificate.status != "not private":
        yield "arithmetic", _ARITHMETIC_IN_WORDS[certificate.arithmetic]
    if certificate.account_head is not None:
        yield "paid by", f"entry {certificate.account_head} of an account"


def _attack_facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What is proved about attackers: tests of membership, and the Gaussian parameter."""
    rates, mu = certificate.attack_rates(), certificate.mu
    if rates is None:
        return
    pairs = zip(rates.fpr, rates.tpr, strict=True)
    powers = ", ".join(f"{format_percent(power, up=True)} at {100.0 * level:g}%" for level, power in pairs)
    yield "membership test", f"true positives at most {powers} false positives"
    yield "its advantage", f"at most {format_percent(rates.advantage, up=True)}"
    if mu is not None:
        yield "mu (Gaussian)", round_safely(mu, up=True)


def _group_fact(certificate: Certificate) -> tuple[str, str]:
    size = 2 * certificate.group_size
    units = f"{size} {certificate.unit}s"
    whom = f"{units} together" if certificate.unit == "person" else f"a person with {units}"
    try:
        pair = certificate.for_group(2)
    except CertificateError:
        return units, f"no finite epsilon for {whom} at the same delta"
    return units, f"epsilon = {round_safely(pair.epsilon, up=True)} for {whom}, at the same delta"


def _is_halved(certificate: Certificate) -> bool:
    return any(len(runs) > 1 for runs in in_pairs(certificate.events))


def _public(certificate: Certificate) -> list[str]:
    names = {"records": "persons"} if certificate.unit == "person" else {}
    return [f"{names.get(name, name)} = {_fact(value)}" for name, value in certificate.public.items()]


def relation_in_words(certificate: Certificate) -> str:
    """What neighbours are."""
    words = _RELATION_OF_PERSONS_IN_WORDS if certificate.unit == "person" else _RELATION_IN_WORDS
    return words[certificate.relation]


def _whose(certificate: Certificate) -> str:
    """Whose data neighbours differ in."""
    size = certificate.group_size
    if certificate.unit == "person":
        return "all rows of one person" if size == 1 else f"all rows of up to {size} persons"
    return "one record" if size == 1 else f"up to {size} records of one person"


def _guarantee(certificate: Certificate) -> str:
    """The first sentence, which says of a seed that there is one."""
    seed = ""
    if certificate.seeded:
        seed = ", but seeded and for reproduction only, since whoever knows the seed can undo the noise"
    if certificate.status == "not private":
        return f"No privacy guarantee{seed}: the result was computed without noise and may reveal any record."
    whose = _whose(certificate)
    claim = f"(epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.6g}){seed}"
    if certificate.epsilon == 0.0:
        return f"Perfect privacy {claim}: the result does not depend on the data at all."
    change = (
        f"replacing {whose} by anything else"
        if certificate.relation == "replace-one"
        else f"leaving {whose} out of the data"
    )
    factor = _rounded_up(math.exp(certificate.epsilon)) if certificate.epsilon < 700 else "an astronomical number"
    effect = f"{change} changes the probability of any outcome by a factor of at most {factor}"
    if certificate.delta > 0.0:
        effect += f", up to an additional probability of {certificate.delta:.6g}"
    if certificate.status == "as published":
        return f"As published, NOT verified {claim}: the authors claim that {effect}."
    # The assumption itself stands among the assumptions, in words.
    how = " under a numerical assumption" if certificate.status == "proved under a numerical assumption" else ""
    return f"Differentially private{how} {claim}: {effect}."


def _proved(certificate: Certificate) -> str:
    """What stands behind a published claim."""
    proved = certificate.proved_epsilon
    if proved is None:
        return "What can be proved for this run has not been computed."
    if math.isinf(proved):
        return "For this run nothing can be proved: no finite epsilon is known to hold at this delta."
    verdict = "so that the claim holds" if proved <= certificate.epsilon else "which is more than the claim"
    return f"For this run epsilon = {_rounded_up(proved)} can be proved at the same delta, {verdict}."


def _attacks(certificate: Certificate) -> list[str]:
    """What an attacker can achieve, by what is proved; nothing where nothing is."""
    rates, mu = certificate.attack_rates(), certificate.mu
    if rates is None:
        return []
    levels, powers = (
        "{}%, {}% and {}%".format(*(f"{100.0 * level:g}" for level in rates.fpr)),
        "{}%, {}% and {}%".format(*(_rounded_up(100.0 * power) for power in rates.tpr)),
    )
    gaussian = "" if mu is None else f"; its Gaussian parameter is mu = {_rounded_up(mu)}"
    return [
        f"A test of membership with false positive rates of {levels} has true positive rates of at most {powers}, and "
        f"the two differ by at most {_rounded_up(100.0 * rates.advantage)}% at any rate{gaussian}."
    ]


def _rounded_up(number: float) -> str:
    """Four digits, never fewer than the number: a bound that is rounded down is no bound."""
    if number == 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(number)) - 3)
    return f"{math.ceil(number / step) * step:.4g}"


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "(" + ", ".join(map(_fact, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_fact(item)}" for name, item in value.items()) + "}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
