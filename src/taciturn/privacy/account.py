"""Accounts: a budget in a database that fits reserve from before they draw noise."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NoReturn, Self

from taciturn._version import __version__
from taciturn.core.errors import AccountError, AccountWarning, BudgetExceededError, ParameterError
from taciturn.core.guard import warn_caller
from taciturn.core.validation import check_choice, check_delta, check_epsilon, check_integer
from taciturn.data.persons import read_persons
from taciturn.data.sensitivity import UNITS, Relation, Unit, check_relation
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event
from taciturn.privacy.gdp import epsilon_of_mu, mu_of_budget
from taciturn.privacy.ledger import (
    GAUSSIAN_UNITS,
    LedgerEntry,
    Price,
    check_entries,
    check_name,
    check_url,
    hide_password,
    location_of,
    open_ledger,
    prices_of,
    totals_of,
)


@dataclass(frozen=True, slots=True)
class Charge:
    """One reservation of an account, and what became of it.

    ``sequence`` is its place in the ledger, ``head`` its hash, as on the certificate, and ``clock`` its time by the
    clock of its computer. ``state`` is "reserved", "spent" or "released"; a fit that runs or did not end is "reserved",
    which counts as spent. ``what`` is the class that was fitted, or "private_score"; ``epsilon`` and ``delta`` are the
    budget of the fit.
    """

    sequence: int
    state: str
    what: str
    epsilon: float
    delta: float
    price: Price
    clock: str
    head: str


_BALANCES = {"gaussian": "Gaussian budget", "epsilon": "epsilon budget", "delta": "delta budget"}


@dataclass(frozen=True, slots=True)
class Balance:
    """One of the budgets of an account, in integers: the Gaussian one, or a part of its (epsilon, delta) budget.

    ``kind`` is the field of a price ("gaussian", "epsilon" or "delta"). Fits that ended ``spent``, others ``reserved``.
    """

    kind: str
    total: int
    spent: int
    reserved: int

    @property
    def title(self) -> str:
        """Its name in words."""
        return _BALANCES[self.kind]

    @property
    def shares(self) -> tuple[float, float, float]:
        """Spent, reserved and left, as shares of the total."""
        left = self.total - self.spent - self.reserved
        return self.spent / self.total, self.reserved / self.total, left / self.total

    def share(self, price: Price) -> float:
        """The share of the total that a price is."""
        paid: int = getattr(price, self.kind)
        return paid / self.total


@dataclass(frozen=True, slots=True)
class AccountState:
    """What an account states, and how much of it is left.

    ``epsilon`` and ``delta`` are the guarantee for everything that the account ever pays for; it includes
    ``approximate``, the (epsilon, delta) budget. ``n`` is the public number of records, or of persons. Of the
    ``total``, fits that ended ``spent`` a part, and others hold a ``reserved`` one. ``head`` is the hash of the last of
    so many ledger ``entries``. The ``person_column`` is fixed at the opening, or by the first fit that named one.
    """

    name: str
    epsilon: float
    delta: float
    approximate: tuple[float, float]
    relation: str
    unit: str
    n: int | None
    total: Price
    spent: Price
    reserved: Price
    entries: int
    head: str
    person_column: str | None = None

    @property
    def left(self) -> Price:
        """What can still be reserved."""
        return self.total - self.spent - self.reserved

    @property
    def balances(self) -> list[Balance]:
        """The budgets that are not empty from the start."""
        made = (
            Balance(kind, *(getattr(price, kind) for price in (self.total, self.spent, self.reserved)))
            for kind in _BALANCES
        )
        return [balance for balance in made if balance.total]

    @property
    def shares(self) -> tuple[float, float, float]:
        """Spent, reserved and left, as shares of the Gaussian budget; of the epsilon budget where there is none."""
        return self.balances[0].shares


def charges_of(entries: list[LedgerEntry]) -> list[Charge]:
    """All reservations with what became of them."""
    settled = {entry.reservation: entry.kind for entry in entries if entry.reservation}
    charges = []
    for entry in entries:
        if entry.kind == "reserved":
            state, facts = settled.get(entry.sequence, "reserved"), entry.facts
            fitted = facts["what"], facts["epsilon"], facts["delta"]
            charges.append(Charge(entry.sequence, state, *fitted, entry.price, entry.clock, entry.hash))
    return charges


def state_of(opened: LedgerEntry, entries: list[LedgerEntry]) -> AccountState:
    """The state that entries describe."""
    terms = opened.facts
    sums = {"spent": Price(), "reserved": Price(), "released": Price()}
    for charge in charges_of(entries):
        sums[charge.state] += charge.price
    epsilon, delta = terms["approximate"]
    return AccountState(
        name=opened.account,
        **{name: terms[name] for name in ("epsilon", "delta", "relation", "unit", "n")},
        approximate=(epsilon, delta),
        total=opened.price,
        spent=sums["spent"],
        reserved=sums["reserved"],
        entries=len(entries),
        head=entries[-1].hash,
        person_column=person_column_of(entries),
    )


def person_column_of(entries: list[LedgerEntry]) -> str | None:
    """The column by which an account counts persons: that of its opening, or of the first fit that named one."""
    stated = (entry.facts.get("person_column") for entry in entries if entry.kind in ("opened", "reserved"))
    return next((column for column in stated if column is not None), None)


def affordable_epsilon(left: Price, delta: float) -> float:
    """The largest epsilon of a Gaussian fit that what is left can pay for, rounded down."""
    # A fit with one unit less than this is within its budget, raised price and all.
    squared = max(left.gaussian - 2, 0) / GAUSSIAN_UNITS * (1.0 - 2.0**-39)
    if squared <= 0.0 or delta <= 0.0 or not left.distance:
        return 0.0
    epsilon = min(epsilon_of_mu(math.sqrt(squared), delta), 30.0)
    while epsilon > 0.0 and mu_of_budget(Budget(epsilon, delta)) ** 2 > squared:
        epsilon *= 1.0 - 1e-12
    return epsilon


def cumulate(charges: Iterable[Charge], balance: Balance) -> list[tuple[datetime, float]]:
    """The share of a budget that was spent or reserved by the time of each charge, in the order of the clock."""
    found, sum_of_shares = [], 0.0
    dated = [(datetime.fromisoformat(charge.clock), charge) for charge in charges if charge.state != "released"]
    for time, charge in sorted(dated, key=lambda each: each[0].timestamp()):
        sum_of_shares += balance.share(charge.price)
        found.append((time, sum_of_shares))
    return found


def _part_of(state: AccountState, share: float) -> tuple[float, float]:
    """Epsilon and delta of an account whose totals are at most a share of what is left of another one's."""
    wanted = math.floor(state.left.gaussian * share * _BELOW), math.floor(state.left.distance * share * _BELOW)
    low, high = 0.0, state.epsilon
    best: tuple[float, float] | None = None
    for _ in range(_BISECTIONS):
        epsilon = (low + high) / 2.0
        # So that samplers have their share: what they may add to delta falls as epsilon grows.
        delta = share * _BELOW**2 * state.delta * (1.0 + math.exp(epsilon)) / (1.0 + math.exp(state.epsilon))
        delta *= min(1.0, state.left.distance / max(state.total.distance, 1))
        try:
            found = totals_of(epsilon, delta)
            fits = found.gaussian <= wanted[0] and found.distance <= wanted[1]
        except ParameterError:
            low = epsilon
            continue
        if fits:
            low, best = epsilon, (epsilon, delta)
        else:
            high = epsilon
    if best is None:
        raise ParameterError("shares", share, "a share that something can be paid with", "raise it")
    return best


class Reservation:
    """What a fit may spend, as a context: entered when the price is reserved, left when the fit ends.

    A reservation is spent when the context is left. It is given back if the context fails before :meth:`begin`, after
    which data are read, and only by the process that reserved: a copy in a forked process could read data that this one
    believes were never read. In every other case (a later failure, a crash, a killed process) it counts as spent for
    good. If the ledger cannot be told how a context ended, this is a warning, and what was reserved counts as spent.

    ``entry`` is None for a fit without an account. ``settle(entry, kind)`` appends that it was "spent" or "released".
    """

    def __init__(self, entry: LedgerEntry | None, settle: Callable[[LedgerEntry, str], None] | None = None) -> None:
        self._entry, self._settle = entry, settle
        self._process = os.getpid()
        self._begun = self._ended = False

    @property
    def head(self) -> str | None:
        """The hash of the entry, which the certificate states; None without an account."""
        return None if self._entry is None else self._entry.hash

    def begin(self) -> None:
        """State that data are read from here on; AccountError in another process and behind the end of the context."""
        self._check_usable()
        self._begun = True

    def __enter__(self) -> Self:
        self._check_usable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entry is None or self._settle is None or self._process != os.getpid():
            return
        self._ended = True
        if kind is not None and self._begun:
            return
        outcome = "spent" if kind is None else "released"
        try:
            self._settle(self._entry, outcome)
        except AccountError as failure:
            warn_caller(
                f"account={self._entry.account!r}: entry {self._entry.sequence} could not be recorded as {outcome}, "
                f"and counts as spent; {failure}",
                AccountWarning,
            )

    def _check_usable(self) -> None:
        if self._entry is not None and (self._ended or self._process != os.getpid()):
            raise AccountError(
                f"account={self._entry.account!r}: expected one use of entry {self._entry.sequence}, by the process "
                "that reserved it; reserve for every fit, where it runs."
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a reservation belongs to the process that made it")


_USUAL_DELTA = 1e-6
# Shares are rounded down by this, and found in so many steps.
_BELOW, _BISECTIONS = 1.0 - 2.0**-20, 50
_SAME_PEOPLE = "budgets of the same people add up and a second account does not protect them"


class Account:
    r"""A privacy budget for one data set, kept in a database.

    Every private estimator, selector and scaler and ``private_score`` take an ``account``. They reserve their whole
    price in one transaction before the first random bit is drawn, and fail with ``BudgetExceededError`` if it is not
    there. The account survives the process, clones, pickles and parallel workers, since they all look at the same
    table.

    **Privacy.** Everything that an account pays for is together :math:`(\varepsilon, \delta)`-DP for the stated totals,
    also if each fit, its budget included, is chosen after looking at the results of earlier ones. The theorem is in
    :mod:`taciturn.privacy.ledger`. It covers all releases about the data set only if all of them go through the
    account. What the ledger holds (prices, classes that were fitted) follows from public facts and from what was
    released, but for two things that are outside of every certificate: its clock shows running times, and a reservation
    that is left behind shows that a fit was refused or ended early, which ``invalid="raise"`` tells in any case.

    Parameters
    ----------
    url : str
        The database: ``sqlite:///study.db``, or ``postgresql://user@host/database``.
    name : str
        The account's name in it.

    Notes
    -----
    Use :meth:`create` once, and afterwards :meth:`open` or the string ``"sqlite:///study.db#name"``.

    A data set is what its owner registered under a name. Rows may be left out of a fit if they are chosen without
    looking at the data; the fit is charged in full, and no row may be used twice in it. Under zero-out and replace-one
    rows can be chosen by their places, as ``KFold`` does. Under add-remove a row more or less moves the places of the
    others: each row has to be chosen by a rule about that row alone, such as a hash of its key, never by its place.
    Corrected or additional rows do not open a new budget.

    References
    ----------
    Rogers, Roth, Ullman and Vadhan, *Privacy odometers and filters: pay-as-you-go composition* (2016).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from taciturn import Account
    >>> url = f"sqlite:///{Path(tempfile.mkdtemp()) / 'study.db'}"
    >>> account = Account.create(url, "patients-2026", epsilon=3, delta=1e-5, n=20_000)
    >>> round(account.remaining_epsilon(delta=1e-5), 3)
    3.0
    >>> account.history()
    []
    """

    def __init__(self, url: str, name: str) -> None:
        self.url, self.name = check_url(url), check_name(name)

    def __repr__(self) -> str:
        return f"Account({hide_password(self.url)!r}, {self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Account) and (self.url, self.name) == (other.url, other.name)

    def __hash__(self) -> int:
        return hash((self.url, self.name))

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        *,
        epsilon: float,
        delta: float,
        n: int | None,
        relation: Relation = "zero-out",
        unit: Unit = "record",
        person_column: str | None = None,
        persons: Any = None,
        approximate: tuple[float, float] = (0, 0),
        fingerprint: str | None = None,
    ) -> Self:
        """Open an account under a new name. What is stated here is fixed for good.

        Parameters
        ----------
        url, name : str
            The database, which is made if it is a file, and the name of the account in it.
        epsilon, delta : float
            The guarantee for everything that the account ever pays for.
        n : int or None
            The public number of records, or of persons; None only under add-remove, where it is private.
        relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
            The neighbouring relation of all fits.
        unit : {"record", "person"}, default="record"
            Whose data neighbours differ in, for all fits.
        person_column : str, default=None
            With ``unit="person"``, the column with the keys of the persons. Fits whose keys come from another column,
            or have no name, as those of an array, are refused. None: the first fit that names a column fixes it.
        persons : array-like, default=None
            With ``unit="person"``, the keys of all persons, where their set is public: not under add-remove. The
            account keeps a keyed digest of the set. Fits with any other set of keys, a part of it included, are
            refused.
        approximate : tuple of float, default=(0, 0)
            An (epsilon, delta) budget, part of the whole, for fits that have no Gaussian parameter: objective
            perturbation, and what is built on it. (0, 0) refuses them.
        fingerprint : str, default=None
            A keyed fingerprint of the table in 64 hexadecimal digits (``taciturn budget create --fingerprint``). An
            account with the fingerprint of another one in the same database is refused. Fits do not look at it:
            changed content does not open a new budget.

        Returns
        -------
        Account
            The new account.

        Raises
        ------
        AccountError
            If the name or the fingerprint is taken, or the database cannot be used.
        """
        account = cls(url, name)
        check_epsilon(epsilon=epsilon)
        totals = totals_of(epsilon, delta, approximate)
        check_relation(relation)
        check_choice(UNITS, unit=unit)
        if n is not None or relation != "add-remove":
            check_integer(1, n=n)
        terms: dict[str, Any] = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "approximate": [float(value) for value in approximate],
            "relation": relation,
            "unit": unit,
            "n": None if n is None else int(n),
            "taciturn": __version__,
            "nonce": _nonce(),
        }
        if person_column is not None or persons is not None:
            terms |= _person_terms(person_column, persons, terms)
        if fingerprint is not None:
            terms["fingerprint"] = _checked_fingerprint(fingerprint)
        ledger = open_ledger(account.url)
        ledger.prepare()
        with ledger.writing(name) as pages:
            if pages.last() is not None:
                raise AccountError(
                    f"account={name!r}: expected a name that is not taken, and there is such an account already; "
                    "open it, or choose another name for other people."
                )
            if fingerprint is not None:
                _check_new(fingerprint, pages.openings())
            pages.append(LedgerEntry.append(None, name, "opened", 0, totals, _to_json(terms), _clock()))
        return account

    @classmethod
    def open(cls, url: str, name: str) -> Self:
        """An account that was created before; AccountError if there is none."""
        account = cls(url, name)
        with open_ledger(account.url).reading(name) as pages:
            pages.opened()
        return account

    def state(self) -> AccountState:
        """What the account states, and how much of it is spent, reserved and left; the entries are verified before."""
        entries = check_entries(self.entries())
        return state_of(entries[0], entries)

    def history(self) -> list[Charge]:
        """All reservations with what became of them, in the order of the ledger, which is verified before."""
        return charges_of(check_entries(self.entries()))

    def entries(self) -> list[LedgerEntry]:
        """Every entry of the ledger, for auditors."""
        with open_ledger(self.url).reading(self.name) as pages:
            pages.opened()
            return pages.all()

    def verify(self) -> None:
        """Check the chain of hashes, the order, the states and the totals of all entries, offline.

        AccountError names the first entry that is wrong. ``taciturn budget verify`` checks certificates against it.
        """
        check_entries(self.entries())

    def remaining_epsilon(self, delta: float = 1e-6) -> float:
        """The largest epsilon at this delta of a Gaussian fit that the account can still pay for.

        Fits whose budget another accountant calibrated (few selections, pure mechanisms) have a larger Gaussian
        parameter at the same epsilon, and may have to take less.
        """
        return affordable_epsilon(self.state().left, check_delta(delta=delta))

    def payable_fits(self, fits: Iterable[tuple[Event, Budget, bool, int]]) -> int:
        """How many of these fits the account could pay for now, one after another.

        A fit is the event of all that it may release, its budget, whether it releases in that order, and its number.
        """
        left, total = self.state().left, 0
        for event, budget, ordered, count in fits:
            for price in prices_of(event, budget, ordered=ordered):
                paid = price.affordable(left, count)
                left -= price.times(paid)
                total, count = total + paid, count - paid
            if count:
                break
        return total

    def set_aside(self, shares: Mapping[str, float]) -> dict[str, Account]:
        """Open an account for each step of a study, and charge this one for all that they may ever spend.

        A step has the share of the Gaussian budget that is left, and an account ``NAME/STEP`` of its own with the same
        relation and number of records. What a step does not spend is not given back.

        **Privacy.** The totals of a step are charged here before its account is there, in one transaction for all
        steps. Each account is a privacy filter with fixed parameters; filters that are used in any order, each also
        after looking at the results of the others, cost no more than the sum of their totals, which this account has
        paid. A crash in between loses budget and never spends it twice.

        Parameters
        ----------
        shares : mapping of str to float
            Names of steps, and their shares of what is left, which add up to at most 1.

        Returns
        -------
        dict of str to Account
            The accounts by step.

        Raises
        ------
        AccountError
            If a name is taken, or for an account of persons: the keys of one step could differ from those of another.
        """
        state = self.state()
        if state.unit != "record":
            raise AccountError(
                f"account={self.name!r}: expected an account of records to set shares aside, got one of "
                f"{state.unit}s, whose keys could differ between steps; let fits draw on this account itself."
            )
        if not shares or min(shares.values()) <= 0.0 or sum(shares.values()) > 1.0 + 1e-9:
            raise ParameterError(
                "shares", dict(shares), "positive shares that add up to at most 1", "lower some of them"
            )
        parts = {step: Account(self.url, f"{self.name}/{step}") for step in shares}
        budgets = {step: _part_of(state, share) for step, share in shares.items()}
        with open_ledger(self.url).reading(self.name) as pages:
            taken = {opening.account for opening in pages.openings()}
        for part in parts.values():
            if part.name in taken:
                raise AccountError(
                    f"account={part.name!r}: expected a name that is not taken, and there is such an account already; "
                    "choose another name for the step."
                )
        with open_ledger(self.url).writing(self.name) as pages:
            opened, last, spent = pages.opened(), pages.last(), pages.spent()
            for step, (epsilon, delta) in budgets.items():
                price = totals_of(epsilon, delta)
                if last is None or not (last.is_intact() and (spent + price).fits(opened.price)):
                    raise BudgetExceededError(_refusal(self.name, price, opened.price - spent, Budget(epsilon, delta)))
                details = {"what": f"account {parts[step].name}", "epsilon": epsilon, "delta": delta, "n": state.n}
                details |= {"ordered": True, "taciturn": __version__, "nonce": _nonce()}
                last = LedgerEntry.append(last, self.name, "reserved", 0, price, _to_json(details), _clock())
                pages.append(last)
                spent = spent + price
        for step, (epsilon, delta) in budgets.items():
            parts[step] = Account.create(
                self.url,
                parts[step].name,
                epsilon=epsilon,
                delta=delta,
                n=state.n,
                relation=check_relation(state.relation),
            )
        return parts

    def reserve(
        self,
        event: Event,
        budget: Budget,
        *,
        what: str,
        relation: str,
        unit: str = "record",
        n: int | None,
        seeded: bool = False,
        ordered: bool = True,
        person_column: str | None = None,
        person_digest: str | None = None,
    ) -> Reservation:
        """Set the price of a fit aside, in one transaction. Nothing may be drawn or read before.

        The ``event`` is everything that the fit may release, in this order if ``ordered``, and ``budget`` what it was
        calibrated for. Relation and unit have to be those of the account, and ``n``, the public number of records, at
        most that of the account. ``seeded`` noise can be replayed, and an account does not pay for it.
        ``person_digest`` is that of the set of keys (:attr:`taciturn.data.persons.PersonKeys.digest`): None where that
        is private, or nothing is fitted.

        Raises
        ------
        BudgetExceededError
            If the account has not enough left; nothing was spent.
        AccountError
            If the account is for other fits, or cannot be used.
        """
        if seeded:
            raise AccountError(
                f"random_state: expected None for a fit that account={self.name!r} pays for, got a seed, which undoes "
                "the noise; leave it out, or fit without an account."
            )
        prices = list(prices_of(event, budget, ordered=ordered))
        details = {
            "what": what,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "n": None if n is None else int(n),
            "ordered": ordered,
            "taciturn": __version__,
            "nonce": _nonce(),
        }
        if person_column is not None:
            details["person_column"] = person_column
        with open_ledger(self.url).writing(self.name) as pages:
            opened, last, spent = pages.opened(), pages.last(), pages.spent()
            if last is None or not (opened.is_intact() and last.is_intact() and spent.fits(opened.price)):
                raise AccountError(
                    f"account={self.name!r}: expected entries that nobody edited, found others; nothing was spent; run "
                    "'taciturn budget verify' and restore a backup."
                )
            _check_terms(opened, relation=relation, unit=unit, n=n)
            if unit == "person":
                # The entries are looked at only where the opening names no column.
                fixed = opened.facts.get("person_column") or person_column_of(pages.all())
                _check_keys(opened, fixed, person_column, person_digest)
            price = next((each for each in prices if (spent + each).fits(opened.price)), None)
            if price is None:
                raise BudgetExceededError(_refusal(self.name, prices[0], opened.price - spent, budget))
            entry = LedgerEntry.append(last, self.name, "reserved", 0, price, _to_json(details), _clock())
            pages.append(entry)
        return Reservation(entry, self._settle)

    def _settle(self, reservation: LedgerEntry, kind: str) -> None:
        price = reservation.price if kind == "released" else Price()
        with open_ledger(self.url).writing(self.name) as pages:
            # A file that was exchanged in the meantime has another entry, or none, in this place.
            if pages.entry(reservation.sequence) != reservation:
                raise AccountError(
                    f"account={self.name!r}: expected entry {reservation.sequence} as it was reserved, and it is not "
                    "there; verify this ledger."
                )
            if not pages.settled(reservation.sequence):
                pages.append(
                    LedgerEntry.append(pages.last(), self.name, kind, reservation.sequence, price, "{}", _clock())
                )


def open_account(account: Account | str | None) -> Account | None:
    """The account that a parameter names, without looking whether it is there."""
    if account is None or isinstance(account, Account):
        return account
    if isinstance(account, str):
        url, name = location_of(account)
        if hide_password(url) != url:
            raise ParameterError(
                "account",
                f"{hide_password(url)}#{name}",
                "a URL without a password, since parameters are printed and stored",
                "set PGPASSWORD or ~/.pgpass, or pass Account.open(url, name)",
            )
        return Account(url, name)
    raise ParameterError(
        "account", type(account).__name__, "an Account, or a string such as 'sqlite:///study.db#name'", "pass one"
    )


def _checked_fingerprint(fingerprint: str) -> str:
    if isinstance(fingerprint, str) and re.fullmatch("[0-9a-f]{64}", fingerprint):
        return fingerprint
    raise ParameterError("fingerprint", fingerprint, "64 hexadecimal digits", "make one with taciturn budget create")


def _check_new(fingerprint: str, openings: list[LedgerEntry]) -> None:
    """Raise if an account was opened for a table with this fingerprint."""
    for opened in openings:
        if opened.facts.get("fingerprint") == fingerprint:
            raise AccountError(
                f"fingerprint: expected a table without an account in this database, and account={opened.account!r} "
                "was opened for the same content; fit with that account, a second name is not a second budget."
            )


def _check_terms(opened: LedgerEntry, *, relation: str, unit: str, n: int | None) -> None:
    """Raise for a fit that the account was not opened for."""
    terms = opened.facts
    for name, value in (("relation", relation), ("unit", unit)):
        if terms[name] != value:
            raise AccountError(
                f"{name}={value!r}: expected {terms[name]!r}, for which account={opened.account!r} was opened; fit "
                f"under that, since {_SAME_PEOPLE}."
            )
    if n is not None and terms["n"] is not None and n > terms["n"]:
        raise AccountError(
            f"n={n}: expected at most the {terms['n']} {unit}s for which account={opened.account!r} was opened; fit "
            f"those, since {_SAME_PEOPLE}."
        )


def _person_terms(column: str | None, persons: Any, terms: dict[str, Any]) -> dict[str, Any]:
    """The terms of an account that fix whose rows the rows are."""
    if terms["unit"] != "person":
        raise ParameterError("unit", terms["unit"], "'person' beside a person_column or persons", "leave both out")
    if column is not None and not (isinstance(column, str) and column):
        raise ParameterError("person_column", type(column).__name__, "the name of a column", "name the one of the keys")
    fixed: dict[str, Any] = {} if column is None else {"person_column": column}
    if persons is not None:
        if terms["relation"] == "add-remove":
            # A digest of a private set would tell whether a guess of it is right.
            raise ParameterError(
                "persons", type(persons).__name__, "None under add-remove, where the set of keys is private", "omit it"
            )
        fixed["persons"] = _keyed_digest(read_persons(persons, len(persons)).digest, terms["nonce"])
    return fixed


def _keyed_digest(digest: str, nonce: str) -> str:
    """A digest that does not show whether two accounts are about the same persons."""
    return hashlib.blake2b(digest.encode(), key=nonce.encode(), digest_size=32).hexdigest()


def _check_keys(opened: LedgerEntry, fixed: str | None, column: str | None, digest: str | None) -> None:
    """Raise if the keys of a fit name other persons than those of the account."""
    if fixed is not None and column != fixed:
        found = "keys without a name" if column is None else repr(column)
        raise AccountError(
            f"persons: expected keys from the column {fixed!r}, by which account={opened.account!r} counts persons, "
            f"got {found}; pass that column of a data frame, since {_SAME_PEOPLE}."
        )
    stated = opened.facts.get("persons")
    if stated is not None and digest is not None and _keyed_digest(digest, opened.facts["nonce"]) != stated:
        raise AccountError(
            f"persons: expected the keys of all persons for which account={opened.account!r} was opened, got other "
            f"ones; fit those persons, since {_SAME_PEOPLE}."
        )


def _refusal(name: str, price: Price, left: Price, budget: Budget) -> str:
    cost = f"epsilon={budget.epsilon:g} and delta={budget.delta:g}"
    if price.gaussian:
        # A fit without delta is charged far more; the sentence says what it could be with one.
        delta = budget.delta or _USUAL_DELTA
        affordable = math.floor(affordable_epsilon(left, delta) * 1000) / 1000
        rest = f"at most mu={left.mu:.4g} (about epsilon={affordable:g} at delta={delta:g})"
        cost = f"mu={price.mu:.4g} ({cost})"
    else:
        epsilon, delta = left.pair
        rest = f"at most epsilon={epsilon:g} and delta={delta:g}, the rest of its (epsilon, delta) budget"
    return (
        f"account={name!r}: expected a fit of {rest}, which is left, got one of {cost}; nothing was spent; lower "
        "epsilon, or stop here."
    )


def _nonce() -> str:
    """What makes two entries differ that would be equal otherwise, in a ledger and in a copy of it."""
    return secrets.token_hex(16)


def _to_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, ensure_ascii=True, allow_nan=False)


def _clock() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
