"""A steward's policy about released files: what it demands, and whether verified files meet it, point by point."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from taciturn.app.verify import check_heads
from taciturn.charts import round_safely
from taciturn.core.errors import AccountError, CertificateError, TaciturnError
from taciturn.core.validation import as_real
from taciturn.data.sensitivity import RELATIONS, UNITS
from taciturn.privacy.certificate import Certificate, compose
from taciturn.privacy.claim import STATUSES, Status, recomputed_epsilon
from taciturn.privacy.ledger import LedgerEntry, check_entries
from taciturn.tables.columns import Problems, closest_name, did_you_mean, listed_names, refusal

if TYPE_CHECKING:
    from taciturn.app.verify import Verification

# Budgets are split with one multiplication, and another machine has other last digits.
_ROUNDING = 1e-9


class PolicyError(TaciturnError, ValueError):
    """Files that hold together do not meet a policy."""


@dataclass(frozen=True, slots=True)
class Point:
    """One demand of a policy, whether it is met, and what was found, in words."""

    name: str
    is_met: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a steward demands of files that somebody wants to release; None where nothing is demanded.

    The demands are about everything in the folder: a score beside the model is a release too, and their releases add
    up. Nothing is taken from a claim that can be recomputed.

    Parameters
    ----------
    epsilon : float, default=None
        The most that all releases together may cost, at the delta of their certificates.
    delta : float, default=None
        The largest sum of the deltas of the certificates.
    unit : {"record", "person"}, default=None
        Whose data every certificate must protect. Neither unit implies the other one.
    relation : {"zero-out", "add-remove", "replace-one"}, default=None
        The neighbouring relation of every certificate.
    seed : bool, default=None
        Whether noise from a seed is accepted; False refuses it.
    account : bool, default=None
        True: an entry of the account that ``--account`` names must have paid for every certificate.
    signature : bool, default=None
        True: the owner's key must have signed the files, and ``--public-key`` must name it.
    status : str, default=None
        The weakest status that is accepted, from "proved" to "not private".
    """

    epsilon: float | None = None
    delta: float | None = None
    unit: str | None = None
    relation: str | None = None
    seed: bool | None = None
    account: bool | None = None
    signature: bool | None = None
    status: str | None = None

    @classmethod
    def from_toml(cls, text: str) -> Policy:
        """Read a policy file; everything that is wrong with it is raised together."""
        try:
            content = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            expected = f"TOML such as epsilon = 1.0, found a mistake: {error}"
            raise refusal("policy", "", expected, "write one key in each line, and text in quotes") from None
        problems, known = Problems(), [field.name for field in fields(cls)]
        if not content:
            with problems.gathering():
                raise refusal("policy", "", f"at least one of {', '.join(known)}", "state what you demand")
        for key, value in content.items():
            with problems.gathering():
                if key not in known:
                    proposed = did_you_mean(closest_name(key, known))
                    expected = f"no key but {', '.join(known)}"
                    raise refusal("policy", key, expected, f"{proposed}correct it, or take it out")
                _check_demand(key, value)
        problems.raise_all()
        return cls(**content)

    def judge(self, found: Verification, ledger: Iterable[LedgerEntry] | None = None) -> Iterator[Point]:
        """The points of the policy in its order, for files that hold; ``ledger`` are the entries of an account."""
        entries = None if ledger is None else check_entries(ledger)
        for name, judged in _DEMANDS.items():
            demanded = getattr(self, name)
            if demanded is not None:
                yield Point(name, *judged(_Evidence(found.certificates, entries, found.signed_by), demanded))


def _check_demand(key: str, value: Any) -> None:
    """Raise unless a key of a policy has a value of its type."""
    place = f"policy.{key}"
    if key == "epsilon" and not 0.0 <= as_real(value) < math.inf:
        raise refusal(place, value, "a finite number >= 0", "state the most that all releases may cost, say 1.0")
    if key == "delta" and not 0.0 <= as_real(value) < 1.0:
        raise refusal(place, value, "a number in [0, 1)", "state the largest delta, say 1e-6")
    if key in ("seed", "account", "signature") and not isinstance(value, bool):
        raise refusal(place, value, "true or false, without quotes", "set it to one of them")
    words = {"unit": UNITS, "relation": RELATIONS, "status": STATUSES}.get(key)
    if words is not None and (not isinstance(value, str) or value not in words):
        raise refusal(place, value, f"one of {listed_names(list(words))}", "set it to one of them")


# --- What is found of each demand: whether it is met, and a few words, so that a point is one line.


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What verification found: certificates by file, the entries of the account, and the key that signed."""

    certificates: Mapping[str, Certificate]
    entries: list[LedgerEntry] | None
    signed_by: str | None

    def stated(self, name: str) -> list[str]:
        """What the certificates state under a name, each once."""
        return list(dict.fromkeys(getattr(certificate, name) for certificate in self.certificates.values()))


def _judge_epsilon(evidence: _Evidence, most: float) -> tuple[bool, str]:
    try:
        total = compose(*evidence.certificates.values())
    except CertificateError:
        return False, "certificates of different relations or units do not add up"
    cost = recomputed_epsilon(total)
    if math.isinf(cost):
        return False, f"nothing is proved (policy: at most {most:g})"
    several = f" of {len(evidence.certificates)} certificates" if len(evidence.certificates) > 1 else ""
    shown = round_safely(cost, up=True, digits=6)
    return cost <= most * (1.0 + _ROUNDING), f"{shown} at delta {total.delta:g}{several} (policy: at most {most:g})"


def _judge_delta(evidence: _Evidence, most: float) -> tuple[bool, str]:
    delta = math.fsum(certificate.delta for certificate in evidence.certificates.values())
    return delta <= most * (1.0 + _ROUNDING), f"{delta:g} (policy: at most {most:g})"


def _judge_unit(evidence: _Evidence, unit: str) -> tuple[bool, str]:
    return _among((unit,), evidence.stated("unit"))


def _judge_relation(evidence: _Evidence, relation: str) -> tuple[bool, str]:
    return _among((relation,), evidence.stated("relation"))


def _judge_status(evidence: _Evidence, weakest: Status) -> tuple[bool, str]:
    return _among(STATUSES[: STATUSES.index(weakest) + 1], evidence.stated("status"))


def _among(accepted: Sequence[str], stated: Sequence[str]) -> tuple[bool, str]:
    is_met = set(stated) <= set(accepted)
    return is_met, " and ".join(stated) + ("" if is_met else f" (policy: {' or '.join(accepted)})")


def _judge_seed(evidence: _Evidence, accepted: bool) -> tuple[bool, str]:
    seeded = [name for name, certificate in evidence.certificates.items() if certificate.seeded]
    if not seeded:
        return True, "the noise was not seeded"
    return accepted, f"{' and '.join(seeded)}: seeded, so that the seed undoes the noise"


def _judge_account(evidence: _Evidence, demanded: bool) -> tuple[bool, str]:
    if evidence.entries is None:
        return not demanded, "no account was given (--account)"
    name, verdicts = evidence.entries[0].account, check_heads(evidence.certificates, evidence.entries)
    unpaid = [file for file, verdict in verdicts.items() if isinstance(verdict, AccountError)]
    if unpaid:
        return not demanded, f"{name} did not pay for {' and '.join(unpaid)}"
    return True, f"{name} paid for {' and '.join(verdicts)}"


def _judge_signature(evidence: _Evidence, demanded: bool) -> tuple[bool, str]:
    if evidence.signed_by is None:
        return not demanded, "no public key was given (--public-key)"
    return True, f"by the key that was given, {evidence.signed_by[:16]}..."


_DEMANDS: Mapping[str, Callable[[_Evidence, Any], tuple[bool, str]]] = {
    "epsilon": _judge_epsilon,
    "delta": _judge_delta,
    "unit": _judge_unit,
    "relation": _judge_relation,
    "seed": _judge_seed,
    "account": _judge_account,
    "signature": _judge_signature,
    "status": _judge_status,
}
