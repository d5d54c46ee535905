"""The certificate itself: fields, JSON, groups."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from taciturn._version import __version__
from taciturn.accounting import best_bound
from taciturn.certificate.release import Release
from taciturn.certificate.words import in_words
from taciturn.core.errors import CertificateError
from taciturn.core.validation import check_choice, check_delta, check_integer, check_real
from taciturn.data.sensitivity import check_relation
from taciturn.events import (
    ComposedEvent,
    Event,
    event_from_dict,
    event_to_dict,
    for_group,
)

__all__ = ["STATUSES", "Certificate", "Status"]

Status = Literal["proved", "proved under a numerical assumption", "as published", "not private"]
STATUSES: tuple[Status, ...] = ("proved", "proved under a numerical assumption", "as published", "not private")
"""The strongest first: what is composed has the last one of its parts."""

_FORMAT = "taciturn-certificate"
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Certificate:
    """The privacy statement of one fit, or of several composed.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee. For ``status="as published"`` it is what the paper claims.
    relation : {"zero-out", "add-remove", "replace-one"}
        What one record more or less means.
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
        For how many records of one person the guarantee is stated.
    ordered : bool, default=True
        Whether ``events`` are listed in the order in which they happened; False for composed certificates.
    proved_epsilon : float, default=None
        Beside a published claim: what can be proved for the same run at the same delta. Infinite if nothing can,
        None if nothing was computed.
    errata : tuple of str, default=()
        Mistakes of the publication that concern this run, in words.
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

    def __post_init__(self) -> None:
        check_real(0.0, math.inf, epsilon=self.epsilon)
        check_delta(delta=self.delta)
        check_relation(self.relation)
        check_choice(STATUSES, status=self.status)
        check_choice(("exact", "float64"), arithmetic=self.arithmetic)
        check_integer(1, group_size=self.group_size)
        if self.proved_epsilon is not None:
            check_real(0.0, math.inf, proved_epsilon=self.proved_epsilon)
        for name in ("seeded", "ordered"):
            if not isinstance(getattr(self, name), bool):
                raise CertificateError(f"{name}={getattr(self, name)!r}: expected true or false; ask for a fresh copy.")
        listed = not isinstance(self.assumptions, str) and not isinstance(self.errata, str)
        if not listed or not isinstance(self.public, Mapping):
            raise CertificateError("text: expected lists and facts in their places; ask for a fresh copy.")
        object.__setattr__(self, "events", tuple(self.events))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "errata", tuple(self.errata))
        if not all(isinstance(erratum, str) for erratum in self.errata):
            raise CertificateError("errata: expected sentences, got something else; ask for a fresh copy.")
        frozen = MappingProxyType({str(name): _plain(value) for name, value in self.public.items()})
        object.__setattr__(self, "public", frozen)

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled; the JSON form can, and holds everything.
        return (Certificate.from_json, (self.to_json(),))

    @property
    def is_proved(self) -> bool:
        """Whether epsilon and delta are proved, under a numerical assumption or without one."""
        return self.status in ("proved", "proved under a numerical assumption")

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
        group = for_group(self.event, k * self.group_size)
        bound = best_bound(group, self.delta, ordered=self.ordered)
        if math.isinf(bound.epsilon):
            raise CertificateError(
                f"k={k}: expected a group small enough for a finite guarantee at delta={self.delta:g}; "
                "ask for fewer records, or fit with a smaller epsilon."
            )
        return replace(self, epsilon=bound.epsilon, bound=bound.name, group_size=k * self.group_size)

    # ------------------------------------------------------------------ JSON

    def to_json(self, indent: int | None = 2) -> str:
        """The certificate as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(
            {
                "format": _FORMAT,
                "schema": _SCHEMA,
                "taciturn": __version__,
                "epsilon": _number_to_json(self.epsilon),
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
                "ordered": self.ordered,
                "proved_epsilon": None if self.proved_epsilon is None else _number_to_json(self.proved_epsilon),
                "errata": list(self.errata),
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
                epsilon=_number_from_json(content["epsilon"]),
                delta=content["delta"],
                relation=content["relation"],
                status=content["status"],
                events=tuple(
                    Release(
                        what=release["what"],
                        noise=release["noise"],
                        scale=release["scale"],
                        event=event_from_dict(release["event"], exact=content["delta"] == 0.0),
                        count=release["count"],
                    )
                    for release in content["events"]
                ),
                public=content["public"],
                assumptions=content["assumptions"],
                seeded=content["seeded"],
                arithmetic=content["arithmetic"],
                bound=content["bound"],
                group_size=content["group_size"],
                ordered=content["ordered"],
                proved_epsilon=_number_from_json(content["proved_epsilon"]),
                errata=content["errata"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            missing = str(error) if isinstance(error, KeyError) else "a field of another type"
            raise CertificateError(
                f"text: expected a complete certificate, found a problem with {missing}; "
                "the file is damaged, ask for a fresh copy."
            ) from None

    def __str__(self) -> str:
        return in_words(self)


def _number_to_json(number: float) -> float | str:
    """JSON has no infinity."""
    return "inf" if math.isinf(number) else number


def _number_from_json(value: Any) -> Any:
    return math.inf if value == "inf" else value


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
