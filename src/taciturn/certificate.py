"""Certificates: what was released, at what cost, under which assumptions.

A certificate is a frozen value. It holds no data and nothing computed from data beyond what was released;
it can be printed, stored as JSON, added up with others and read for a person who holds several records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from taciturn._version import __version__
from taciturn.accounting import Budget, best_bound
from taciturn.core.errors import CertificateError
from taciturn.core.validation import check_choice, check_delta, check_integer
from taciturn.data.sensitivity import check_relation
from taciturn.events import (
    ComposedEvent,
    Event,
    NotPrivateEvent,
    event_from_dict,
    event_to_dict,
    for_group,
)

__all__ = ["Certificate", "Release", "certify", "compose"]

Status = Literal["proved", "as published", "not private"]
STATUSES: tuple[Status, ...] = ("proved", "as published", "not private")
ARITHMETICS = ("exact", "float64")

_FORMAT = "taciturn-certificate"
_SCHEMA = 1

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


@dataclass(frozen=True, slots=True)
class Release:
    """One kind of release.

    Parameters
    ----------
    what : str
        In words: "the indices of 10 of 30 features".
    noise : str
        The noise: "Gumbel", "exponential", "Laplace", "Gaussian", "two-sided geometric", "none".
    scale : float
        Its scale (standard deviation for Gaussian noise), in units of the sensitivity.
    event : Event
        The cost of one.
    count : int, default=1
        How often.
    """

    what: str
    noise: str
    scale: float
    event: Event
    count: int = 1

    @property
    def total(self) -> Event:
        """The cost of all of them."""
        return self.event * self.count

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if isinstance(self.event, NotPrivateEvent):
            return f"{self.what} ({times}, without noise)"
        return f"{self.what} ({times}, {self.noise} noise of {self.scale:.4g} sensitivities)"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The privacy statement of one fit, or of several composed.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee. For ``status="as published"`` it is what the paper claims.
    relation : {"zero-out", "add-remove", "replace-one"}
        What one record more or less means.
    status : {"proved", "as published", "not private"}
        How far the guarantee can be trusted.
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
        Which of the valid composition bounds gave epsilon.
    group_size : int, default=1
        For how many records of one person the guarantee is stated.
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

    def __post_init__(self) -> None:
        check_relation(self.relation)
        check_choice(STATUSES, status=self.status)
        check_choice(ARITHMETICS, arithmetic=self.arithmetic)
        object.__setattr__(self, "events", tuple(self.events))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        frozen = MappingProxyType({str(name): _plain(value) for name, value in self.public.items()})
        object.__setattr__(self, "public", frozen)

    @property
    def event(self) -> Event:
        """The cost of all releases together."""
        return ComposedEvent(tuple(release.total for release in self.events))

    def for_group(self, k: int) -> Certificate:
        """The guarantee for a person with up to k records, accounted anew at the same delta."""
        k = check_integer(1, k=k)
        if self.status == "as published":
            raise CertificateError(
                "status='as published': expected a proved guarantee to extend to groups; "
                "use the sound estimator of the same method."
            )
        if k == 1 or self.status == "not private":
            return replace(self, group_size=self.group_size * k)
        bound = best_bound(for_group(self.event, k * self.group_size), self.delta)
        return replace(self, epsilon=bound.epsilon, bound=bound.name, group_size=k * self.group_size)

    # ------------------------------------------------------------------ JSON

    def to_json(self, indent: int | None = 2) -> str:
        """The certificate as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(
            {
                "format": _FORMAT,
                "schema": _SCHEMA,
                "taciturn": __version__,
                "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
                "delta": self.delta,
                "relation": self.relation,
                "status": self.status,
                "events": [
                    {
                        "what": release.what,
                        "noise": release.noise,
                        "scale": release.scale,
                        "count": release.count,
                        "event": event_to_dict(release.event),
                    }
                    for release in self.events
                ],
                "public": dict(self.public),
                "assumptions": list(self.assumptions),
                "seeded": self.seeded,
                "arithmetic": self.arithmetic,
                "bound": self.bound,
                "group_size": self.group_size,
            },
            indent=indent,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what :meth:`to_json` wrote."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError:
            content = None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise CertificateError(
                f"text: expected JSON with format {_FORMAT!r}, got something else; "
                "pass what Certificate.to_json() returned."
            )
        if content.get("schema") != _SCHEMA:
            raise CertificateError(
                f"schema={content.get('schema')!r}: expected {_SCHEMA}, the one this version of taciturn "
                f"({__version__}) writes; read the certificate with taciturn {content.get('taciturn')}."
            )
        try:
            return cls(
                epsilon=float(content["epsilon"]),
                delta=check_delta(delta=content["delta"]),
                relation=content["relation"],
                status=content["status"],
                events=tuple(
                    Release(
                        what=release["what"],
                        noise=release["noise"],
                        scale=release["scale"],
                        event=event_from_dict(release["event"]),
                        count=release["count"],
                    )
                    for release in content["events"]
                ),
                public=content["public"],
                assumptions=tuple(content["assumptions"]),
                seeded=content["seeded"],
                arithmetic=content["arithmetic"],
                bound=content["bound"],
                group_size=content["group_size"],
            )
        except (KeyError, TypeError) as error:
            missing = str(error) if isinstance(error, KeyError) else "a field of another type"
            raise CertificateError(
                f"text: expected a complete certificate, found a problem with {missing}; "
                "the file is damaged, ask for a fresh copy."
            ) from None

    # ------------------------------------------------------------------ words

    def __str__(self) -> str:
        public = "; ".join(f"{name} = {_in_words(value)}" for name, value in self.public.items())
        sentences = [
            self._guarantee_in_words(),
            f"Here {_RELATION_IN_WORDS[self.relation]}.",
            "Released: " + ("; ".join(map(str, self.events)) or "nothing that depends on the data") + ".",
        ]
        if public:
            sentences.append(f"Public facts: {public}.")
        if self.assumptions:
            sentences.append("This holds provided that " + "; ".join(self.assumptions) + ".")
        if self.seeded:
            sentences.append(
                "The noise came from a fixed seed: whoever knows the seed can undo the protection, so this "
                "run is for reproduction only."
            )
        if self.status != "not private":
            sentences.append(
                "Arithmetic: "
                + (
                    "exact (integer sums, and released values on a lattice)."
                    if self.arithmetic == "exact"
                    else "double precision (some released values are not on a lattice)."
                )
            )
        return " ".join(sentences)

    def _guarantee_in_words(self) -> str:
        if self.status == "not private":
            return "No privacy guarantee: the result was computed without noise and may reveal any record."
        whose = "one record" if self.group_size == 1 else f"up to {self.group_size} records of one person"
        claim = f"epsilon = {self.epsilon:.6g}, delta = {self.delta:.6g}"
        if self.epsilon == 0.0:
            return f"Perfect privacy ({claim}): the result does not depend on the data at all."
        factor = f"{math.exp(self.epsilon):.4g}" if self.epsilon < 700 else "an astronomical number"
        change = (
            f"replacing {whose} by anything else"
            if self.relation == "replace-one"
            else f"leaving {whose} out of the data"
        )
        effect = f"{change} changes the probability of any outcome by a factor of at most {factor}"
        if self.delta > 0.0:
            effect += f", up to an additional probability of {self.delta:.6g}"
        if self.status == "as published":
            return f"As published, NOT verified ({claim}): the authors claim that {effect}."
        return f"Differentially private ({claim}): {effect}."


def certify(
    releases: Iterable[Release],
    budget: Budget,
    *,
    relation: str,
    public: Mapping[str, Any],
    assumptions: Iterable[str] = (),
    seeded: bool,
    arithmetic: str,
) -> Certificate:
    """The certificate of releases that were planned for a budget.

    The accounted epsilon is stated; where it is within a thousandth of the budget, the budget is, since
    calibration always stops a hair on the private side of it.
    """
    releases = tuple(releases)
    event = ComposedEvent(tuple(release.total for release in releases))
    bound = best_bound(event, budget.delta)
    if any(isinstance(release.event, NotPrivateEvent) for release in releases):
        status: Status = "not private"
        epsilon, delta = math.inf, 0.0
    else:
        status = "proved"
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
        bound=bound.name,
    )


def compose(*certificates: Certificate) -> Certificate:
    """One certificate for several releases about the same records.

    All events are accounted together, once, at the sum of the deltas; the result is never worse than the sum
    of the epsilons.
    """
    if not certificates:
        raise CertificateError("certificates: expected at least one, got none; pass the ones to add up.")
    for name in ("relation", "group_size"):
        found = {getattr(certificate, name) for certificate in certificates}
        if len(found) > 1:
            listed = ", ".join(sorted(map(repr, found)))
            raise CertificateError(
                f"{name}: expected one and the same, got {listed}; fit again with one {name} for all."
            )
    if len(certificates) == 1:
        return certificates[0]
    first = certificates[0]
    delta = math.fsum(certificate.delta for certificate in certificates)
    releases = tuple(release for certificate in certificates for release in certificate.events)
    event = ComposedEvent(tuple(release.total for release in releases))
    worst = max(certificates, key=lambda certificate: STATUSES.index(certificate.status))
    summed = math.fsum(certificate.epsilon for certificate in certificates)
    bound_name, epsilon = "sum", summed
    if worst.status == "proved":
        bound = best_bound(for_group(event, first.group_size), delta)
        if bound.epsilon < summed:
            bound_name, epsilon = bound.name, bound.epsilon
    return Certificate(
        epsilon=epsilon,
        delta=delta,
        relation=first.relation,
        status=worst.status,
        events=releases,
        public={f"part {i}": dict(part.public) for i, part in enumerate(certificates, start=1)},
        assumptions=tuple(dict.fromkeys(a for part in certificates for a in part.assumptions)),
        seeded=any(certificate.seeded for certificate in certificates),
        arithmetic="exact" if all(part.arithmetic == "exact" for part in certificates) else "float64",
        bound=bound_name,
        group_size=first.group_size,
    )


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


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "(" + ", ".join(map(_in_words, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_in_words(item)}" for name, item in value.items()) + "}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
