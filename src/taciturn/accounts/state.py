"""What entries say of an account: its reservations, and what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.accounting import Budget
from taciturn.accounting.gdp import epsilon_of_mu, mu_of_budget
from taciturn.accounts.chain import LedgerEntry
from taciturn.accounts.price import GAUSSIAN_UNITS, Price

__all__ = ["AccountState", "Charge", "affordable_epsilon", "charges_of", "person_column_of", "state_of"]


@dataclass(frozen=True, slots=True)
class Charge:
    """One reservation of an account, and what became of it.

    Parameters
    ----------
    sequence : int
        The place of the reservation in the ledger.
    state : {"reserved", "spent", "released"}
        "reserved" for a fit that is running, or that did not end; it counts as spent.
    what : str
        The class that was fitted, or "private_score".
    epsilon, delta : float
        The budget of the fit.
    price : Price
        What was reserved, as integers.
    clock : str
        The time of the reservation by the clock of its computer.
    head : str
        The hash of the reservation, as on the certificate.
    """

    sequence: int
    state: str
    what: str
    epsilon: float
    delta: float
    price: Price
    clock: str
    head: str


@dataclass(frozen=True, slots=True)
class AccountState:
    """What an account states, and how much of it is left.

    Parameters
    ----------
    name : str
        The data set, as its owner calls it.
    epsilon, delta : float
        The guarantee for everything that the account ever pays for.
    approximate : tuple of float
        The second pot (epsilon, delta), which the guarantee includes.
    relation, unit : str
        The neighbouring relation, and whose data neighbours differ in.
    n : int or None
        The public number of records, or of persons.
    total, spent, reserved : Price
        Integers: what there was, what fits that ended took, and what others hold.
    entries : int
        Entries of the ledger.
    head : str
        The hash of the last one.
    person_column : str or None
        The column with the keys of the persons, fixed at the opening or by the first fit that named one.
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
    def shares(self) -> tuple[float, float, float]:
        """Spent, reserved and left, as shares of the first pot; of the second one where there is no first."""
        pot = "gaussian" if self.total.gaussian else "epsilon"
        spent, reserved, left = (getattr(each, pot) for each in (self.spent, self.reserved, self.left))
        total = getattr(self.total, pot)
        return spent / total, reserved / total, left / total


def charges_of(entries: list[LedgerEntry]) -> list[Charge]:
    """All reservations with what became of them."""
    settled = {entry.reservation: entry.kind for entry in entries if entry.reservation}
    charges = []
    for entry in entries:
        if entry.kind == "reserved":
            facts = entry.facts
            charges.append(
                Charge(
                    entry.sequence,
                    settled.get(entry.sequence, "reserved"),
                    facts["what"],
                    facts["epsilon"],
                    facts["delta"],
                    entry.price,
                    entry.clock,
                    entry.hash,
                )
            )
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
        epsilon=terms["epsilon"],
        delta=terms["delta"],
        approximate=(epsilon, delta),
        relation=terms["relation"],
        unit=terms["unit"],
        n=terms["n"],
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
