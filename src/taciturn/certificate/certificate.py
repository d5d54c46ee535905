"""The certificate itself: fields, JSON, groups."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from taciturn._version import __version__
from taciturn.accounting import AttackRates, best_bound
from taciturn.certificate.attacks import proved_mu, proved_rates
from taciturn.certificate.claim import check_claim, check_work, with_parts
from taciturn.certificate.disclosures import DERIVED, check_disclosures, list_side_channels, list_unprotected
from taciturn.certificate.notebook import certificate_card
from taciturn.certificate.reading import ARITHMETICS, BOUNDS, FORMAT, SCHEMA, is_head, read_fields
from taciturn.certificate.release import MOST_REPEATS, Part, Release, event_of_releases
from taciturn.certificate.status import STATUSES, Status
from taciturn.certificate.words import in_words
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.core.validation import check_choice, check_delta, check_integer, check_real, check_truth
from taciturn.data.sensitivity import UNITS, check_relation
from taciturn.events import Event, event_to_dict, for_group

__all__ = ["Certificate"]


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
        return proved_mu(self)

    def attack_rates(self) -> AttackRates | None:
        """The best that any test of membership can do, by what the events prove.

        Returns
        -------
        AttackRates
            Upper bounds on the true positive rate at false positive rates of 0.001, 0.01 and 0.05 (``fpr``, ``tpr``),
            and on their largest difference (``advantage``). None where nothing is proved.
        """
        return proved_rates(self)

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

    # ------------------------------------------------------------------ JSON

    def to_json(self, indent: int | None = 2) -> str:
        """The certificate as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(
            {
                "format": FORMAT,
                "schema": SCHEMA,
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
                        "remaining": release.remaining,
                        "half": release.half,
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
                "parts": [asdict(part) for part in self.parts],
                "unit": self.unit,
                "account_head": self.account_head,
                "unprotected": list(self.unprotected),
                "side_channels": list(self.side_channels),
            },
            indent=indent,
            allow_nan=False,
        )

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
            certificate = with_parts(cls(**content))
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
