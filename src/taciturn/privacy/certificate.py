"""Certificates: what a fit released, at what cost, under which assumptions, in words and JSON."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import ROUND_CEILING, Context
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from taciturn._version import __version__
from taciturn.charts import (
    Markup,
    card,
    element,
    folded,
    format_percent,
    inline_drawing,
    odds_chart,
    posterior_range,
    round_safely,
)
from taciturn.core.errors import CertificateError, ParameterError, visible
from taciturn.core.validation import (
    check_choice,
    check_delta,
    check_integer,
    check_real,
    check_truth,
    refuse_constant,
    without_duplicates,
)
from taciturn.data.sensitivity import RELATIONS, UNITS, check_relation
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import AttackRates, attack_rates, best_bound, highest_advantage, highest_power, mu_of
from taciturn.privacy.claim import (
    DERIVED,
    MOST_REPEATS,
    STATUSES,
    Part,
    Release,
    Status,
    check_claim,
    check_disclosures,
    check_work,
    event_of_releases,
    in_pairs,
    list_side_channels,
    list_unprotected,
    only_pairs_halved,
    status_of,
)
from taciturn.privacy.events import Event, NotPrivateEvent, event_from_dict, event_to_dict, for_group

# --- A certificate in words: as a paragraph that a lawyer can read, in one line, and as a list of facts.

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
    sentences += [f"Here {relation_in_words(certificate)}.", f"Released: {released}."]
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
    trust = "as published, NOT verified" if certificate.status == "as published" else certificate.status
    seed = "; seeded: for reproduction only" if certificate.seeded else ""
    return f"{_claim(certificate)} for {_whose(certificate)} ({certificate.relation}), {trust}{seed}"


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
    claim = f"({_claim(certificate)}){seed}"
    if certificate.epsilon == 0.0:
        return f"Perfect privacy {claim}: the result does not depend on the data at all."
    replaced = certificate.relation == "replace-one"
    change = f"replacing {whose} by anything else" if replaced else f"leaving {whose} out of the data"
    factor = _rounded_up(math.exp(certificate.epsilon)) if certificate.epsilon < 700 else "an astronomical number"
    effect = f"{change} changes the probability of any outcome by a factor of at most {factor}"
    if certificate.delta > 0.0:
        effect += f", up to an additional probability of {_rounded_up(certificate.delta, 6)}"
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
    levels = "{}%, {}% and {}%".format(*(f"{100.0 * level:g}" for level in rates.fpr))
    powers = "{}, {} and {}".format(*(format_percent(power, up=True) for power in rates.tpr))
    gaussian = "" if mu is None else f"; its Gaussian parameter is mu = {_rounded_up(mu)}"
    return [
        f"A test of membership with false positive rates of {levels} has true positive rates of at most {powers}, and "
        f"the two differ by at most {format_percent(rates.advantage, up=True)} at any rate{gaussian}."
    ]


def _rounded_up(number: float, digits: int = 4) -> str:
    """A few digits, never less than the number: a bound that is rounded down is no bound."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(number)))
    return f"{float(rounded):.{digits}g}"


def _claim(certificate: Certificate) -> str:
    epsilon, delta = (_rounded_up(value, 6) for value in (certificate.epsilon, certificate.delta))
    return f"epsilon = {epsilon}, delta = {delta}"


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "(" + ", ".join(map(_fact, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_fact(item)}" for name, item in value.items()) + "}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# --- A certificate in a notebook: the guarantee, a small picture of what it means, and all its facts.

_SIDE = 150.0


def certificate_card(certificate: Certificate) -> str:
    """The certificate as HTML."""
    (_, guarantee), *facts = list_facts(certificate)
    said = [element("p", element("strong", in_short(certificate))), element("p", guarantee)]
    picture = _picture(certificate)
    head = [element("div", *said, *picture[:1]), *picture[1:]]
    return card(element("div", *head, class_="taciturn-side"), folded("What was released, assumed and public", facts))


def guarantee_lines(certificate: Certificate) -> Markup:
    """The guarantee in one line, and the rest of the certificate folded."""
    return Markup(
        element("p", element("strong", "Guarantee: "), in_short(certificate))
        + folded("The certificate", list_facts(certificate))
    )


def _picture(certificate: Certificate) -> tuple[Markup, ...]:
    """What an attacker can come to believe, in words and as a drawing; nothing where nothing is proved."""
    epsilon: float | None = certificate.epsilon
    if certificate.status == "as published":
        epsilon = certificate.proved_epsilon
    if epsilon is None or math.isinf(epsilon):
        return ()
    low, high = posterior_range(0.5, epsilon)
    beyond = ", up to delta" if certificate.delta else ""
    words = (
        f"Whoever believed with 50% that a {certificate.unit} is in the data believes it afterwards with at least "
        f"{format_percent(low, up=False)} and at most {format_percent(high, up=True)}{beyond}."
    )
    drawing = odds_chart(epsilon, "What an attacker can come to believe", _SIDE)
    alt = f"Belief after seeing the result against belief before. {words}"
    return element("p", words), inline_drawing(drawing, alt)


# --- What a certificate says about attackers: its Gaussian parameter, and the power of tests of membership.
#
# Both follow from the events alone, so that no file states them and nobody has to believe them.


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


# --- From JSON text to the fields of a certificate: every value is looked at before it is used.
#
# The text may come from anybody. Whatever is wrong with it is one sentence, found in bounded time; nothing is guessed
# and nothing is passed over, a field that is not known included: it could change what the others mean.

FORMAT = "taciturn-certificate"
SCHEMA = 1
ARITHMETICS = ("exact", "float64")
BOUNDS = ("gdp", "rdp", "pure", "sum", "none")

_MOST_CHARACTERS = 16_000_000
_MOST_DIGITS = 20
_DEEPEST_FACT = 100
_DEEPEST_EVENT = 32


def read_fields(text: str) -> dict[str, Any]:
    """What a certificate is made of, from what ``to_json`` wrote in this version or in 0.2."""
    content = _envelope(text)
    proved = content["proved_epsilon"]
    public, head = content["public"], content["account_head"]
    if head is not None and not is_head(head):
        raise _unexpected("account_head", head, "64 hexadecimal digits or null")
    if not isinstance(public, dict) or _deeper_than(public, _DEEPEST_FACT):
        raise _unexpected("public", public, "an object of facts")
    return {
        "epsilon": _number_or_infinity(content, "epsilon"),
        "delta": _number(content, "delta"),
        "relation": _word(content, "relation", RELATIONS),
        "status": _word(content, "status", STATUSES),
        "events": tuple(map(_release, _list(content, "events"))),
        "public": public,
        "assumptions": _texts(content, "assumptions"),
        "seeded": _truth(content, "seeded"),
        "arithmetic": _word(content, "arithmetic", ARITHMETICS),
        "bound": _word(content, "bound", BOUNDS),
        "group_size": _whole(content, "group_size"),
        "ordered": _truth(content, "ordered"),
        "proved_epsilon": None if proved is None else _number_or_infinity(content, "proved_epsilon"),
        "errata": _texts(content, "errata"),
        "parts": tuple(map(_part, _list(content, "parts"))),
        "unit": _word(content, "unit", UNITS),
        "account_head": head,
        **{name: _texts(content, name) for name in DERIVED},
    }


def _envelope(text: str) -> dict[str, Any]:
    """The content of a certificate of this schema, with no key too few or too many."""
    content = None
    if isinstance(text, str | bytes | bytearray) and len(text) <= _MOST_CHARACTERS:
        try:
            content = json.loads(
                text,
                parse_constant=refuse_constant,
                parse_float=_finite,
                parse_int=_short_integer,
                object_pairs_hook=without_duplicates,
            )
            # Half a surrogate pair is no text: it can be neither printed nor written.
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CertificateError(
            f"text: expected JSON with format {FORMAT!r}, got something else; pass what Certificate.to_json() returned."
        )
    schema = content.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        writer = content.get("taciturn")
        named = writer if isinstance(writer, str) and len(writer) < 20 and writer.isprintable() else "of that version"
        raise CertificateError(
            f"schema={reprlib.repr(schema)}: expected {SCHEMA}, the one this version of taciturn "
            f"({__version__}) writes; read the certificate with taciturn {named}."
        )
    keys = {"format", "schema", "taciturn", *(field.name for field in fields(Certificate)), *DERIVED}
    _check_keys(content, keys, "a certificate")
    if not isinstance(content["taciturn"], str):
        raise _unexpected("taciturn", content["taciturn"], "the version that wrote it")
    return content


def _check_keys(content: dict[str, Any], keys: set[str], whose: str) -> None:
    for key in sorted(keys - content.keys()):
        raise CertificateError(
            f"text: expected a complete certificate, found a problem with {key!r}; "
            "the file is damaged, ask for a fresh copy."
        )
    for key in content.keys() - keys:
        raise CertificateError(
            f"text: expected the fields of {whose}, got also {reprlib.repr(key)}; read it with the version of taciturn "
            "that wrote it."
        )


def _release(entry: Any) -> Release:
    if not isinstance(entry, dict):
        raise _unexpected("events", entry, "an object for each release")
    _check_keys(entry, {field.name for field in fields(Release)}, "a release")
    if _deeper_than(entry["event"], _DEEPEST_EVENT):
        raise _unexpected("event", entry["event"], f"at most {_DEEPEST_EVENT} events inside one another")
    if entry["half"] is not None and _whole(entry, "half") not in (1, 2):
        raise _unexpected("half", entry["half"], "1, 2 or null")
    return Release(
        what=_typed(entry, "what", str, "text"),
        noise=_typed(entry, "noise", str, "text"),
        scale=_number(entry, "scale"),
        event=event_from_dict(entry["event"]),
        count=_whole(entry, "count"),
        remaining=None if entry["remaining"] is None else _number(entry, "remaining"),
        half=entry["half"],
    )


def is_head(value: Any) -> bool:
    """Whether a value has the form of an account's head: a hash in hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _part(entry: Any) -> Part:
    if not isinstance(entry, dict):
        raise _unexpected("parts", entry, "an object for each part")
    _check_keys(entry, {field.name for field in fields(Part)}, "a part")
    return Part(_number(entry, "epsilon"), _number(entry, "delta"), _whole(entry, "releases"), _truth(entry, "ordered"))


def _typed(content: dict[str, Any], name: str, kind: Any, expected: str) -> Any:
    """A value of a type; true is no number."""
    value = content[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _unexpected(name, value, expected)
    return value


def _number(content: dict[str, Any], name: str) -> float:
    number: float = _typed(content, name, int | float, "a number")
    return number


def _number_or_infinity(content: dict[str, Any], name: str) -> float:
    return math.inf if content[name] == "inf" else _number(content, name)


def _whole(content: dict[str, Any], name: str) -> int:
    number: int = _typed(content, name, int, "a whole number")
    return number


def _truth(content: dict[str, Any], name: str) -> bool:
    truth: bool = _typed(content, name, bool, "true or false")
    return truth


def _word(content: dict[str, Any], name: str, words: tuple[Any, ...]) -> Any:
    value = content[name]
    if not isinstance(value, str) or value not in words:
        raise _unexpected(name, value, "one of " + ", ".join(map(repr, words)))
    return value


def _list(content: dict[str, Any], name: str) -> list[Any]:
    entries: list[Any] = _typed(content, name, list, "a list")
    return entries


def _texts(content: dict[str, Any], name: str) -> tuple[str, ...]:
    values = _list(content, name)
    if not all(isinstance(value, str) for value in values):
        raise _unexpected(name, values, "a list of sentences")
    return tuple(values)


def _unexpected(name: str, value: Any, expected: str) -> CertificateError:
    return CertificateError(
        f"{name}={reprlib.repr(value)}: expected {expected}; the certificate is damaged, ask for a fresh copy."
    )


def _deeper_than(value: Any, levels: int) -> bool:
    """Whether lists and objects lie inside one another more than so many times."""
    inside = [value]
    for _ in range(levels + 1):
        inside = [
            entry
            for outer in inside
            if isinstance(outer, dict | list)
            for entry in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not inside:
            return False
    return True


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _short_integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(digits)
    return int(digits)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The privacy statement of one fit, or of several composed.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee. For ``status="as published"`` it is what the paper claims.
    relation : {"zero-out", "add-remove", "replace-one"}
        The neighbouring relation.
    status : {"proved", "proved under a numerical assumption", "as published", "not private"}
        How far the guarantee can be trusted. The second one covers objective perturbation, whose proof takes the
        accuracy of a computation in double precision for granted; ``assumptions`` says of which.
    events : tuple of Release
        What was released, how often and at what scale, in order.
    public : mapping
        The facts that the guarantee treats as known to everybody.
    assumptions : tuple of str
        What must hold for the guarantee, in words.
    seeded : bool
        Whether the noise can be replayed by whoever knows the seed.
    arithmetic : {"exact", "float64"}
        "exact": sums are integers and released values lie on a lattice, so that the proof covers what the
        computer does. "float64": some released value is an ordinary double.
    bound : str
        Which of the valid composition bounds gave epsilon: "gdp", "rdp", "pure", "sum", or "none".
    group_size : int, default=1
        For how many records of one person the guarantee is stated, or for how many persons.
    ordered : bool, default=True
        Whether ``events`` are listed in the order in which they happened; False for composed certificates.
    proved_epsilon : float, default=None
        Beside a published claim: what can be proved for the same run at the same delta. Infinite if nothing can,
        None if nothing was computed.
    errata : tuple of str, default=()
        Mistakes of the publication that concern this run, in words.
    parts : tuple of Part, default=()
        Where what is proved is a sum: what each composed certificate proves by itself.
    unit : {"record", "person"}, default="record"
        Whose data neighbours differ in: those of one row, or all rows of one person. Relation, group size and the
        public number of records speak of this unit.
    account_head : str, default=None
        Hash of the entry with which an account reserved the cost of this fit; None for a fit without an account.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 4))
    >>> model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1), random_state=0).fit(X, X[:, 0])
    >>> certificate = model.certificate_
    >>> certificate.epsilon, certificate.relation, certificate.status, certificate.public["records"]
    (1.0, 'zero-out', 'proved', 2000)
    >>> print(f"{certificate.for_group(2).epsilon:.2f}")  # for a person with two records
    2.12
    """

    epsilon: float
    delta: float
    relation: str
    status: Status
    events: tuple[Release, ...]
    public: Mapping[str, Any]
    assumptions: tuple[str, ...]
    seeded: bool
    arithmetic: str
    bound: str
    group_size: int = 1
    ordered: bool = True
    proved_epsilon: float | None = None
    errata: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    unit: str = "record"
    account_head: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_real(0.0, math.inf, epsilon=self.epsilon))
        object.__setattr__(self, "delta", check_delta(delta=self.delta))
        check_relation(self.relation)
        check_choice(STATUSES, status=self.status)
        check_choice(ARITHMETICS, arithmetic=self.arithmetic)
        check_choice(BOUNDS, bound=self.bound)
        check_choice(UNITS, unit=self.unit)
        if self.account_head is not None and not is_head(self.account_head):
            raise CertificateError(
                "account_head: expected the 64 hexadecimal digits of an account's entry, got something else; ask for "
                "a fresh copy."
            )
        object.__setattr__(self, "group_size", check_integer(1, MOST_REPEATS, group_size=self.group_size))
        if self.proved_epsilon is not None:
            proved = check_real(0.0, math.inf, proved_epsilon=self.proved_epsilon)
            object.__setattr__(self, "proved_epsilon", proved)
        for name in ("seeded", "ordered"):
            object.__setattr__(self, name, check_truth(**{name: getattr(self, name)}))
        for name, kind in (("events", Release), ("assumptions", str), ("errata", str), ("parts", Part)):
            entries = getattr(self, name)
            if not isinstance(entries, list | tuple) or not all(isinstance(entry, kind) for entry in entries):
                raise CertificateError(
                    f"{name}: expected a list with a {kind.__name__} in each place, got something else; "
                    "ask for a fresh copy."
                )
            object.__setattr__(self, name, tuple(entries))
        if not isinstance(self.public, Mapping):
            raise CertificateError("public: expected facts by name, got something else; ask for a fresh copy.")
        frozen = MappingProxyType({str(name): _plain(value) for name, value in self.public.items()})
        object.__setattr__(self, "public", frozen)

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled. A copy states what the original does, and is not accounted for again.
        values = [getattr(self, field.name) for field in fields(self)]
        return (Certificate, tuple(dict(value) if isinstance(value, Mapping) else value for value in values))

    @property
    def is_proved(self) -> bool:
        """Whether epsilon and delta are proved, under a numerical assumption or without one."""
        return self.status in ("proved", "proved under a numerical assumption")

    @property
    def event(self) -> Event:
        """The cost of all releases together; releases about two halves of the records are parallel events."""
        return event_of_releases(self.events)

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Quantities that the guarantee does not protect, in words."""
        return list_unprotected(self)

    @property
    def side_channels(self) -> tuple[str, ...]:
        """What an observer of the computation may learn besides the releases, in words; outside the proof."""
        return list_side_channels(self)

    @property
    def mu(self) -> float | None:
        """The Gaussian parameter that the events prove, rounded up; None where there is none.

        Telling neighbours apart is no easier than telling N(mu, 1) from N(0, 1), up to the distance of the samplers
        from their laws. There is none for perturbed objectives, releases with a delta of their own, and where nothing
        is proved.
        """
        return _from_events(self)[0] if _proves_something(self) else None

    def attack_rates(self) -> AttackRates | None:
        """The best that any test of membership can do, by what the events prove.

        Returns
        -------
        AttackRates
            Upper bounds on the true positive rate at false positive rates of 0.001, 0.01 and 0.05 (``fpr``, ``tpr``),
            and on their largest difference (``advantage``). None where nothing is proved.
        """
        if not _proves_something(self):
            return None
        rates = _from_events(self)[1]
        if not self.parts or not _holds(self):
            return rates
        # A sum of parts can be smaller than what the events prove together.
        stated = self.epsilon if self.is_proved else self.proved_epsilon
        epsilon = math.inf if stated is None else stated
        pairs = zip(rates.fpr, rates.tpr, strict=True)
        tpr = tuple(min(rate, highest_power(level, epsilon, self.delta)) for level, rate in pairs)
        return AttackRates(rates.fpr, tpr, min(rates.advantage, highest_advantage(epsilon, self.delta)))

    def for_group(self, k: int) -> Certificate:
        """The guarantee for a person with up to k records, or for k persons, accounted anew at the same delta."""
        k = check_integer(1, k=k)
        if self.status == "as published":
            raise CertificateError(
                "status='as published': expected a proved guarantee to extend to groups; "
                "use the sound estimator of the same method."
            )
        if k == 1 or self.status == "not private":
            return replace(self, group_size=self.group_size * k)
        check_work(self.event, k * self.group_size)
        group = for_group(self.event, k * self.group_size)
        bound = best_bound(group, self.delta, ordered=self.ordered)
        if math.isinf(bound.epsilon):
            raise CertificateError(
                f"k={k}: expected a group small enough for a finite guarantee at delta={self.delta:g}; "
                "ask for fewer records, or fit with a smaller epsilon."
            )
        return replace(self, epsilon=bound.epsilon, bound=bound.name, group_size=k * self.group_size, parts=())

    def to_json(self, indent: int | None = 2) -> str:
        """The certificate as JSON text; :meth:`from_json` reads it back."""
        content: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "taciturn": __version__}
        content |= {name: getattr(self, name) for name in (*(field.name for field in fields(self)), *DERIVED)}
        content |= {
            "epsilon": _number_to_json(self.epsilon),
            "proved_epsilon": None if self.proved_epsilon is None else _number_to_json(self.proved_epsilon),
            "events": [
                {
                    "what": release.what,
                    "noise": release.noise,
                    "scale": release.scale,
                    "count": release.count,
                    "remaining": release.remaining,
                    "half": release.half,
                    "event": event_to_dict(release.event),
                }
                for release in self.events
            ],
            "public": dict(self.public),
            "parts": [asdict(part) for part in self.parts],
        }
        return json.dumps(content, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what :meth:`to_json` wrote, and account for it again.

        Raises
        ------
        CertificateError
            If the text is not a certificate, or states less than its events allow.
        """
        try:
            content = read_fields(text)
            stated = {name: content.pop(name) for name in DERIVED}
            certificate = cls(**content)
        except ParameterError as error:
            raise CertificateError(str(error)) from None
        check_claim(certificate)
        check_disclosures(certificate, stated)
        return certificate

    def __str__(self) -> str:
        return in_words(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return certificate_card(self)


def _number_to_json(number: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if math.isinf(number) else number


def _plain(value: Any) -> Any:
    """A public fact as plain JSON types, so that a round trip gives an equal certificate."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    return str(value)


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
    """The certificate of releases that were planned for a budget, and made in the order given if ``ordered``.

    The accounted epsilon is stated; where it is within a thousandth of the budget, the budget is, since calibration
    always stops a hair on the private side of it. The status follows: see :func:`taciturn.privacy.claim.status_of`.
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
        proved_epsilon=_issue_proved(certificates, parts) if published else None,
        parts=parts,
        unit=first.unit,
        errata=tuple(dict.fromkeys(erratum for part in certificates for erratum in part.errata)),
    )


def _facts(certificate: Certificate) -> dict[str, Any]:
    """The public facts of a part, and the entry of its account."""
    head = {} if certificate.account_head is None else {"account_head": certificate.account_head}
    return dict(certificate.public) | head


def _issue_proved(certificates: Iterable[Certificate], parts: Iterable[Part]) -> float | None:
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
