"""The ledger of an account: location, prices, entries, and the hash chain over them."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from taciturn.core.errors import AccountError, ParameterError
from taciturn.core.validation import check_choice, check_delta, check_integer, check_real
from taciturn.data.sensitivity import UNITS, check_relation
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import best_bound
from taciturn.privacy.events import Event
from taciturn.privacy.gdp import gaussian_cost, mu_of_budget

# --- Where an account is: a database, and a name in it.
#
# URLs are written as SQLAlchemy writes them: ``sqlite:///study.db`` for a file beside the working directory,
# ``sqlite:////data/study.db`` for an absolute path, ``postgresql://user@host/database``. A name follows after ``#``.

_SQLITE = "sqlite:///"
_POSTGRESQL = re.compile(r"(postgresql|postgres)(\+psycopg)?://")
_LONGEST_NAME = 200


def location_of(text: str) -> tuple[str, str]:
    """The URL and the name in ``"sqlite:///study.db#patients-2026"``."""
    url, mark, name = text.rpartition("#")
    if not mark:
        raise ParameterError(
            "account", hide_password(text), "a URL and a name with # between them", "write sqlite:///study.db#name"
        )
    return check_url(url, "account"), check_name(name, "account")


def check_url(url: object, parameter: str = "url") -> str:
    """The URL of a database that accounts can be in; the parameter is named where it is wrong."""
    if isinstance(url, str):
        if url.startswith(_SQLITE) and url not in (_SQLITE, f"{_SQLITE}:memory:") and "?" not in url:
            return url
        if _POSTGRESQL.match(url):
            return url
    raise ParameterError(
        parameter,
        hide_password(url) if isinstance(url, str) else type(url).__name__,
        "sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        "name a database that outlasts this process",
    )


def check_name(name: object, parameter: str = "name") -> str:
    """The name of an account; the parameter is named where it is wrong."""
    if (
        isinstance(name, str)
        and 0 < len(name) <= _LONGEST_NAME
        and name.isprintable()
        and "#" not in name
        and unicodedata.normalize("NFC", name).strip() == name
    ):
        return name
    raise ParameterError(
        parameter, name, f"1 to {_LONGEST_NAME} printable characters, without # and blanks at the ends", "rename it"
    )


def sqlite_path(url: str) -> Path | None:
    """The file of an SQLite database; None for a server."""
    return Path(url.removeprefix(_SQLITE)).absolute() if url.startswith(_SQLITE) else None


def hide_password(url: str) -> str:
    """A URL that may be printed."""
    # A password may hold an @ that was not escaped.
    shown = re.sub(r"(://[^:/@?]*):[^/?]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:[^=&]*password|passfile)=)[^&]*", r"\1***", shown)


# --- What a fit costs an account, and what an account holds: four integers each.
#
# An account is a privacy filter with two budgets. The Gaussian budget is a total :math:`x = \mu^2` of squared Gaussian
# parameters, the (epsilon, delta) budget a pair (e, d) for releases that are known to be (e, d)-DP and nothing better.
# Beside them stands :math:`\eta`, the sum of the distances of all samplers from their laws.
#
# *Theorem.* Let the releases of an account be charged, each before it is made, either :math:`x_i` to the Gaussian
# budget, where the release is :math:`\sqrt{x_i}`-GDP given everything before it, or :math:`(e_i, d_i)` to the
# (epsilon, delta) budget, where it is :math:`(e_i, d_i)`-DP. Which release comes next, and its price, may depend on
# all earlier results. If the sums never exceed x, e and d, then for every real t
#
# .. math:: D(e^t) \le \delta_G(\sqrt x;\, t - e) + d,
#
# where D is the hockey-stick divergence of everything together and :math:`\delta_G(\mu; t)` that of :math:`N(\mu, 1)`
# from :math:`N(0, 1)`.
#
# The page "Proof: the privacy filter" (``docs/proof-filter.md``) has the proof, also for fits that
# overlap and for the integers below.
#
# With samplers, everything is :math:`(\varepsilon, \delta)`-DP if :math:`\delta_G(\sqrt x; \varepsilon - e) + d + (1 +
# e^\varepsilon)\,\eta \le \delta`. That is the statement of the account, for its *totals*: what happens to be spent so
# far is information, not a guarantee.
#
# Integers. Doubles add up to a different sum in a different order, and a sum that is rounded can be overdrawn. So
# prices are integers: squared parameters in units of :math:`10^{-15}`, raised by the factor :math:`1 + 2^{-40}`, which
# covers their own evaluation, and then up; epsilons in units of :math:`10^{-15}` and deltas in units of
# :math:`10^{-18}`, up from the decimal numbers that were asked for; distances in units of :math:`10^{-30}`, up. Totals
# are rounded down.
#
# References
# ----------
# Rogers, Roth, Ullman and Vadhan, *Privacy odometers and filters: pay-as-you-go composition* (2016). Smith and
# Thakurta, *Fully adaptive composition for Gaussian differential privacy* (2022). Haney, Shoemate, Tian, Vadhan,
# Vyrros, Xu and Zhang, *Concurrent composition for interactive differential privacy with adaptive privacy-loss
# parameters* (2023).

GAUSSIAN_UNITS = 10**15
"""A squared Gaussian parameter of 1, as an integer."""
EPSILON_UNITS = 10**15
"""An epsilon of 1 of the (epsilon, delta) budget, as an integer."""
DELTA_UNITS = 10**18
"""A delta of 1 of the (epsilon, delta) budget, as an integer."""
DISTANCE_UNITS = 10**30
"""A distance of 1 between samplers and laws, as an integer."""

_RAISED = 1 + Fraction(1, 2**40)
# Integers of databases have 64 bits, and the sum of a total and a price has to be one.
_MOST = 2**63 - 1
_LARGEST = 2**62
# Of the account's delta: for all samplers together, and for rounding. Fits keep back twice the latter, so that an
# account can pay for a fit with its own budget.
_DISTANCE_SHARE = 1e-7
_KEPT_BACK = 0.5e-6


@dataclass(frozen=True, slots=True, order=False)
class Price:
    """Four integers: what a release costs, what was spent, or what a total is.

    ``gaussian`` is a squared Gaussian parameter in units of 1e-15. ``epsilon`` (units of 1e-15) and ``delta`` (1e-18)
    are of the (epsilon, delta) budget. ``distance`` is that of samplers from their laws, in units of 1e-30.
    """

    gaussian: int = 0
    epsilon: int = 0
    delta: int = 0
    distance: int = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            check_integer(0, _MOST, **{each.name: getattr(self, each.name)})

    def __add__(self, other: Price) -> Price:
        return Price(*(mine + its for mine, its in zip(self.values, other.values, strict=True)))

    def __sub__(self, other: Price) -> Price:
        return Price(*(mine - its for mine, its in zip(self.values, other.values, strict=True)))

    @property
    def values(self) -> tuple[int, int, int, int]:
        """The four integers."""
        return self.gaussian, self.epsilon, self.delta, self.distance

    @property
    def mu(self) -> float:
        """The Gaussian parameter of the Gaussian budget."""
        return math.sqrt(self.gaussian / GAUSSIAN_UNITS)

    @property
    def pair(self) -> tuple[float, float]:
        """Epsilon and delta of the (epsilon, delta) budget."""
        return self.epsilon / EPSILON_UNITS, self.delta / DELTA_UNITS

    def fits(self, total: Price) -> bool:
        """Whether each of the integers is at most that of a total."""
        return all(mine <= its for mine, its in zip(self.values, total.values, strict=True))

    def times(self, count: int) -> Price:
        """So many of it."""
        return Price(*(count * mine for mine in self.values))

    def affordable(self, total: Price, count: int) -> int:
        """How many of it a total has room for, at most ``count``."""
        return min([count, *(its // mine for mine, its in zip(self.values, total.values, strict=True) if mine)])


def prices_of(event: Event, budget: Budget, *, ordered: bool = True) -> Iterable[Price]:
    """What a plan may be charged, Gaussian first; an account takes the first price that it can pay.

    The ``event`` is everything that the plan may release, in this order if ``ordered``. Of parallel events the dearest
    branch is charged, once. The (epsilon, delta) budget is charged the ``budget``, as the caller wrote it.
    ParameterError is raised if the plan is not private, or not within its budget.
    """
    bound = best_bound(event, budget.delta, ordered=ordered)
    if math.isinf(budget.epsilon) or not bound.epsilon <= budget.epsilon:
        raise ParameterError(
            "epsilon", budget.epsilon, "a finite budget that the releases keep to", "an account pays for private fits"
        )
    squared, distance = gaussian_cost(event, ordered=ordered)
    if math.isfinite(squared):
        yield Price(
            gaussian=min(math.ceil(Fraction(squared) * _RAISED * GAUSSIAN_UNITS), _LARGEST),
            distance=min(math.ceil(Fraction(distance) * DISTANCE_UNITS), _LARGEST),
        )
    # Delta of the budget already holds the charge for samplers, at the epsilon of this plan.
    pure = budget.delta == 0.0 or best_bound(event, 0.0, ordered=ordered).epsilon <= budget.epsilon
    yield Price(
        epsilon=decimal_units(budget.epsilon, EPSILON_UNITS),
        delta=0 if pure else decimal_units(budget.delta, DELTA_UNITS),
    )


def totals_of(epsilon: float, delta: float, approximate: tuple[float, float] = (0.0, 0.0)) -> Price:
    r"""The budgets of an account that states (epsilon, delta).

    The (epsilon, delta) budget is ``approximate``, which epsilon and delta include; the Gaussian one is the largest x
    with :math:`\delta_G(\sqrt x; \varepsilon - e) + d + (1 + e^\varepsilon)\,\eta \le \delta`.
    ParameterError is raised if ``approximate`` exceeds the whole, or nothing could ever be paid for.
    """
    whole = Budget(epsilon, delta)
    if math.isinf(whole.epsilon):
        raise ParameterError("epsilon", epsilon, "a finite number", "an account keeps a budget; choose one")
    pair = _checked_pair(approximate)
    if pair[0] > whole.epsilon or pair[1] > whole.delta:
        raise ParameterError(
            "approximate", approximate, f"at most epsilon={whole.epsilon!r} and delta={whole.delta!r}", "lower it"
        )
    shifted = _rounded_down(_decimal(whole.epsilon) - _decimal(pair[0]))
    rest = _rounded_down(_decimal(whole.delta) - _decimal(pair[1]))
    distance = min(_DISTANCE_SHARE * rest / (1.0 + math.exp(whole.epsilon)), _LARGEST / 2 / DISTANCE_UNITS)
    squared = 0.0
    if shifted > 0.0 and rest > 0.0:
        left = (rest - (1.0 + math.exp(whole.epsilon)) * distance) * (1.0 - _KEPT_BACK)
        squared = mu_of_budget(Budget(shifted, left)) ** 2
    totals = Price(
        gaussian=math.floor(Fraction(squared) / _RAISED * GAUSSIAN_UNITS),
        epsilon=math.floor(_decimal(pair[0]) * EPSILON_UNITS),
        delta=math.floor(_decimal(pair[1]) * DELTA_UNITS),
        distance=math.floor(Fraction(distance) * DISTANCE_UNITS),
    )
    if not totals.gaussian and not totals.epsilon:
        raise ParameterError(
            "delta",
            delta,
            "a number > 0, or an (epsilon, delta) budget",
            "raise delta, or give approximate=(epsilon, 0)",
        )
    return totals


def _checked_pair(approximate: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(approximate, list | tuple) or len(approximate) != 2:
        raise ParameterError("approximate", approximate, "a pair (epsilon, delta)", "give (0, 0) for none")
    epsilon, delta = approximate
    return check_real(0.0, math.inf, closed="left", approximate=epsilon), check_delta(approximate=delta)


def decimal_units(number: float, units: int) -> int:
    """A decimal number that the caller wrote in units, rounded up."""
    return math.ceil(_decimal(number) * units)


def _rounded_down(number: Fraction) -> float:
    """A double that is not larger."""
    nearest = float(number)
    return nearest if Fraction(nearest) <= number else math.nextafter(nearest, 0.0)


def _decimal(number: float) -> Fraction:
    """The decimal number that the caller wrote, without the error of its double."""
    return Fraction(repr(number))


# --- The entries of an account and the chain of hashes over them.
#
# An account is a list to which entries are appended and of which none is ever changed. The first one opens the account
# and states its totals. A reservation is an entry; that it was spent, or given back, is another one, which refers to
# it. Each entry holds the hash of the one before, and its own hash covers every field. So an entry cannot be edited,
# removed or moved without changing the hashes of all that follow, and the hash of the last one, the head, stands for
# them all.
#
# Whoever can write to the database can also write a new chain. They cannot make it end in a head that stands on a
# certificate somewhere else. A chain that was cut off behind that entry, or an older copy that was restored, is
# therefore noticed when a certificate is checked against it, and not before.

KINDS = ("opened", "reserved", "spent", "released")
"""What an entry can record."""

NO_ENTRY = "0" * 64
"""In the place of the hash before the first entry."""

_MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One entry of an account.

    ``sequence`` (1, 2, 3 and so on) orders the entries; the ``clock`` of the computer that wrote it is information.
    ``kind`` is "opened", "reserved", "spent" or "released", the last two with the sequence number of their
    ``reservation`` (0 for the other kinds). ``gaussian``, ``epsilon``, ``delta`` and ``distance`` are the totals of an
    account that is opened, the price of a reservation, also where it is released, and zeros where it is spent, since it
    counts from the moment at which it is reserved. ``details`` are JSON text: the terms of the account, or a
    description of the fit. ``previous`` is the hash of the entry before, and ``hash`` the SHA-256 of all of the above.
    """

    account: str
    sequence: int
    kind: str
    reservation: int
    gaussian: int
    epsilon: int
    delta: int
    distance: int
    details: str
    clock: str
    previous: str
    hash: str

    @classmethod
    def append(
        cls,
        before: LedgerEntry | None,
        account: str,
        kind: str,
        reservation: int,
        price: Price,
        details: str,
        clock: str,
    ) -> LedgerEntry:
        """The entry that follows another one, or the first."""
        sequence, previous = (1, NO_ENTRY) if before is None else (before.sequence + 1, before.hash)
        unsigned = (account, sequence, kind, reservation, *price.values, details, clock, previous)
        return cls(*unsigned, hash=_digest(unsigned))

    @property
    def price(self) -> Price:
        """The four integers."""
        return Price(self.gaussian, self.epsilon, self.delta, self.distance)

    @property
    def facts(self) -> dict[str, Any]:
        """What :attr:`details` say."""
        facts: dict[str, Any] = json.loads(self.details)
        return facts

    def to_json(self) -> str:
        """One line for auditors; :func:`entry_from_json` reads it back."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def is_intact(self) -> bool:
        """Whether the hash covers the fields as they stand."""
        values = tuple(getattr(self, field.name) for field in fields(self))
        return self.hash == _digest(values[:-1])


def _digest(values: tuple[Any, ...]) -> str:
    return hashlib.sha256(json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


def entry_from_json(line: str) -> LedgerEntry:
    """Read what :meth:`LedgerEntry.to_json` wrote; :func:`replay_entries` judges what it says."""
    try:
        content = json.loads(line) if len(line) <= _MOST_CHARACTERS else None
    except (ValueError, RecursionError):
        content = None
    kinds = {field.name: int if field.type == "int" else str for field in fields(LedgerEntry)}
    if (
        not isinstance(content, dict)
        or set(content) != set(kinds)
        or not all(type(content[name]) is kind for name, kind in kinds.items())
    ):
        raise AccountError("entries: expected one entry of an account per line, got something else; export it again.")
    return LedgerEntry(**content)


def replay_entries(entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, list[LedgerEntry]]:
    """Check a whole chain (hashes, order, states and totals), and return its first entry and all of them.

    AccountError names the first entry that is wrong, and how.
    """
    found = list(entries)
    try:
        return _replay(found)
    except ParameterError:
        raise AccountError(
            "entries: expected prices and totals of 64 bits, found others; do not rely on this ledger, restore a "
            "backup and compare."
        ) from None


def _replay(found: list[LedgerEntry]) -> tuple[LedgerEntry, list[LedgerEntry]]:
    if not found or found[0].kind != "opened":
        raise AccountError("entries: expected an account that begins with its opening, found none; restore a backup.")
    opened = found[0]
    before: LedgerEntry | None = None
    spent, pending = Price(), dict[int, Price]()
    for entry in found:
        _check_place(entry, before, opened.account)
        if not entry.is_intact():
            raise _wrong(entry, "a hash that covers its fields, found another: it was edited")
        if entry.kind == "opened" and before is not None:
            raise _wrong(entry, "no second opening")
        if entry.kind == "reserved":
            spent += entry.price
            if entry.reservation:
                raise _wrong(entry, "no reservation before it")
            if not spent.fits(opened.price):
                raise _wrong(entry, "totals that are not exceeded: the account is overdrawn")
            pending[entry.sequence] = entry.price
        elif entry.kind in ("spent", "released"):
            price = pending.pop(entry.reservation, None)
            expected = Price() if entry.kind == "spent" else price
            if price is None or entry.price != expected:
                raise _wrong(entry, "a reservation that is neither spent nor given back before, at its price")
            if entry.kind == "released":
                spent -= entry.price
        elif entry.kind != "opened":
            raise _wrong(entry, f"one of {', '.join(KINDS)}")
        before = entry
    return opened, found


def _check_place(entry: LedgerEntry, before: LedgerEntry | None, account: str) -> None:
    sequence = 1 if before is None else before.sequence + 1
    if entry.sequence != sequence:
        raise AccountError(
            f"entry {sequence}: expected it after entry {sequence - 1}, found entry {entry.sequence}; entries are "
            "missing or in another order, restore a backup and compare."
        )
    if entry.account != account:
        raise _wrong(entry, f"the account {account!r}")
    if entry.previous != (NO_ENTRY if before is None else before.hash):
        raise _wrong(entry, "the hash of the entry before it, found another: entries were exchanged or removed")
    if re.fullmatch("[0-9a-f]{64}", entry.hash) is None:
        raise _wrong(entry, "a hash")


def _wrong(entry: LedgerEntry, expected: str) -> AccountError:
    return AccountError(
        f"entry {entry.sequence} ({entry.kind!r:.20}): expected {expected}; do not rely on this ledger, restore a "
        "backup and compare."
    )


# --- What entries have to say: terms of an account, descriptions of fits, and totals that follow from the terms.

# Totals are rounded down by as much as prices are raised, so that another machine's last digits do no harm.


def check_entries(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Check what entries say by themselves, and return all of them, the opening first.

    That is the chain, the sums, and that the totals follow from the terms. AccountError names the first that is wrong.
    """
    _, found = replay_entries(entries)
    for entry in found:
        flaw = _find_flaw(entry)
        if flaw is not None:
            raise AccountError(
                f"entry {entry.sequence} ({entry.kind!r}): expected {flaw}, found something else; do not rely on this "
                "ledger, restore a backup and compare."
            )
    columns = [(entry, entry.facts.get("person_column")) for entry in found if entry.kind in ("opened", "reserved")]
    named = [(entry, column) for entry, column in columns if column is not None]
    for entry, column in named:
        if column != named[0][1]:
            raise AccountError(
                f"entry {entry.sequence} ({entry.kind!r}): expected persons by the column of entry "
                f"{named[0][0].sequence}, found another; do not rely on this ledger, restore a backup and compare."
            )
    return found


def _find_flaw(entry: LedgerEntry) -> str | None:
    """What was expected of the contents of an entry and is not there; None if all is well."""
    try:
        facts = json.loads(entry.details)
        datetime.fromisoformat(entry.clock)
        if entry.kind == "opened":
            return None if _are_allowed(entry.price, facts) else "totals that its epsilon and delta allow"
        if entry.kind == "reserved":
            _check_description(facts)
            return None if _is_stated(entry.price, facts) else "an (epsilon, delta) price that is the budget of the fit"
    except (KeyError, TypeError, ValueError, RecursionError):
        return "a time, and the terms of an account or the description of a fit"
    return None


def _are_allowed(totals: Price, facts: dict[str, Any]) -> bool:
    check_relation(facts["relation"])
    check_choice(UNITS, unit=facts["unit"])
    _check_column(facts)
    if facts["n"] is not None or facts["relation"] != "add-remove":
        check_integer(1, n=facts["n"])
    allowed = totals_of(facts["epsilon"], facts["delta"], facts["approximate"])
    return all(mine <= its * _RAISED + 1 for mine, its in zip(totals.values, allowed.values, strict=True))


def _is_stated(price: Price, facts: dict[str, Any]) -> bool:
    """Whether an (epsilon, delta) price is the budget of the fit, without its delta where the release is pure."""
    if not price.epsilon and not price.delta:
        return True
    epsilon, delta = decimal_units(facts["epsilon"], EPSILON_UNITS), decimal_units(facts["delta"], DELTA_UNITS)
    return price in (Price(epsilon=epsilon, delta=delta), Price(epsilon=epsilon))


def _check_description(facts: dict[str, Any]) -> None:
    Budget(facts["epsilon"], facts["delta"])
    _check_column(facts)
    if facts["n"] is not None:
        check_integer(0, n=facts["n"])
    if not isinstance(facts["what"], str) or not isinstance(facts["ordered"], bool):
        raise ParameterError("details", facts["what"], "a class, and whether its releases are ordered", "state both")


def _check_column(facts: dict[str, Any]) -> None:
    # Earlier versions wrote none.
    if not isinstance(facts.get("person_column", ""), str):
        raise ParameterError("person_column", facts["person_column"], "the name of a column", "state that")


# --- Where entries are kept: one append-only table of a database, the same in every kind of database.
#
# Plain ``sqlite3`` and ``psycopg`` rather than a layer above both. There is one table and a handful of statements, and
# what matters about them is when a transaction begins, what it locks and when it is on disk; a layer would decide that
# by itself. The default needs nothing that is not in Python.

COLUMNS = tuple(field.name for field in fields(LedgerEntry))
"""Columns of the table, named as the fields of an entry are."""

_LISTED = ", ".join(COLUMNS)

TABLE = """
CREATE TABLE IF NOT EXISTS taciturn_entries (
    account TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    kind TEXT NOT NULL,
    reservation BIGINT NOT NULL,
    gaussian BIGINT NOT NULL,
    epsilon BIGINT NOT NULL,
    delta BIGINT NOT NULL,
    distance BIGINT NOT NULL,
    details TEXT NOT NULL,
    clock TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (account, sequence),
    CHECK (kind IN ('opened', 'reserved', 'spent', 'released')),
    CHECK (gaussian >= 0 AND epsilon >= 0 AND delta >= 0 AND distance >= 0)
)
"""
"""The table, in words that both databases know."""


class Pages:
    """The entries of one account inside one transaction.

    ``execute`` runs a statement with question marks for its parameters and returns all rows.
    """

    def __init__(self, execute: Callable[[str, Sequence[Any]], list[Any]], account: str) -> None:
        self._execute, self._account = execute, account

    def opened(self) -> LedgerEntry:
        """The first entry, with the totals; AccountError if there is no such account."""
        found = self.entry(1)
        if found is not None:
            return found
        raise AccountError(
            f"account={self._account!r}: expected an account that was created, found none of this name; create it "
            "with Account.create or 'taciturn budget create', or check the name."
        )

    def entry(self, sequence: int) -> LedgerEntry | None:
        """The entry in this place, if there is one."""
        found = self._select("sequence = ?", sequence)
        return found[0] if found else None

    def last(self) -> LedgerEntry | None:
        """The entry that the next one follows; None where the account does not exist."""
        found = self._select("sequence = (SELECT max(sequence) FROM taciturn_entries WHERE account = ?)", self._account)
        return found[0] if found else None

    def all(self) -> list[LedgerEntry]:
        """Every entry, in order."""
        return self._select("1 = 1")

    def openings(self) -> list[LedgerEntry]:
        """The first entries of all accounts of the database."""
        rows = self._execute(f"SELECT {_LISTED} FROM taciturn_entries WHERE sequence = 1 ORDER BY account", ())
        return [LedgerEntry(*row) for row in rows]

    def spent(self) -> Price:
        """The sum of all reservations that were not given back: integers, added up without rounding."""
        of_kind = "coalesce(sum(CASE kind WHEN 'reserved' THEN {0} WHEN 'released' THEN -{0} ELSE 0 END), 0)"
        sums = ", ".join(of_kind.format(name) for name in ("gaussian", "epsilon", "delta", "distance"))
        (row,) = self._execute(f"SELECT {sums} FROM taciturn_entries WHERE account = ?", (self._account,))
        if min(row) < 0:
            raise AccountError(f"account={self._account!r}: expected sums that are not negative; verify this ledger.")
        return Price(*(int(value) for value in row))

    def settled(self, reservation: int) -> bool:
        """Whether a reservation was spent or given back."""
        return bool(self._select("reservation = ?", reservation))

    def append(self, entry: LedgerEntry) -> None:
        """Add an entry; it is there for others when the transaction ends."""
        marks = ", ".join("?" * len(COLUMNS))
        values = tuple(getattr(entry, name) for name in COLUMNS)
        self._execute(f"INSERT INTO taciturn_entries ({_LISTED}) VALUES ({marks})", values)

    def _select(self, condition: str, *values: Any) -> list[LedgerEntry]:
        rows = self._execute(
            f"SELECT {_LISTED} FROM taciturn_entries WHERE account = ? AND {condition} ORDER BY sequence",
            (self._account, *values),
        )
        return [LedgerEntry(*row) for row in rows]


class Ledger(Protocol):
    """A database with accounts in it. Connections are opened for one transaction each, so that none is shared."""

    def prepare(self) -> None:
        """Make the table, unless it is there."""

    def writing(self, account: str) -> AbstractContextManager[Pages]:
        """A transaction that excludes every other one on the account, and is on disk when it ends."""

    def reading(self, account: str) -> AbstractContextManager[Pages]:
        """A transaction that sees one state."""


def open_ledger(url: str) -> Ledger:
    """The database of a URL; nothing is connected to yet."""
    path = sqlite_path(url)
    if path is not None:
        from taciturn.privacy.databases import SQLiteLedger

        return SQLiteLedger(path)
    from taciturn.privacy.databases import PostgreSQLLedger

    return PostgreSQLLedger(url)
