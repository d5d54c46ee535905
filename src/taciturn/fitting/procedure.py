"""The six verbs of a fit: validate public facts, plan, reserve, read, run, certify.

Everything that is fitted to private data is made of them, in this order. The base classes of models, selectors and
scalers spell them out once each; a class adds its parameters, its plan and its runner. What a verb may see:

========  ==========================================================  ===============================================
verb      sees                                                        gives
========  ==========================================================  ===============================================
validate  parameters; of the table its shape, its names, and what     :class:`PublicFacts`
          an assumption of the certificate makes public
plan      parameters and public facts                                 mechanisms and their costs
reserve   the cost of the plan                                        a reservation in the account, if there is one
read      the table                                                   a source: bounded records on the lattice
run       the plan, the source, random streams                        what is released
certify   the plan and what was released                              a certificate
========  ==========================================================  ===============================================

Kernels are compiled between planning and reserving, so that a failure to do so spends nothing. From ``read`` on a
reservation is not given back, whatever happens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from taciturn.accounting import Budget
from taciturn.accounts import Account, Reservation, open_account
from taciturn.certificate import Certificate
from taciturn.certificate.words import in_short
from taciturn.core.arrays import AnyArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import Guarded
from taciturn.core.logs import log_phase
from taciturn.core.rng import Stream
from taciturn.core.validation import NO_RECORDS, check_delta, check_epsilon, check_integer, check_x_bound
from taciturn.data.persons import PersonKeys, column_of_keys, read_persons
from taciturn.data.reading import admission_assumptions, check_invalid, table_shape
from taciturn.data.sensitivity import check_public_count, check_relation, public_rows
from taciturn.data.target import DEFAULT_X_BOUND, stated_y_bounds
from taciturn.events import Event
from taciturn.fitting.docstrings import fill
from taciturn.fitting.public_warnings import warn_of_default_bounds, warn_of_weak_guarantee
from taciturn.fitting.representation import Represented
from taciturn.fitting.searches import consider_search
from taciturn.sources import OpenTable, TablePersons, open_arguments
from taciturn.sources.open_tables import ONE_PARTITION

__all__ = [
    "BOUNDS",
    "ESTIMAND",
    "Persons",
    "Plan",
    "PricedPlan",
    "PrivateEstimator",
    "PublicFacts",
    "check_common_parameters",
    "person_assumptions",
    "public_persons",
    "reserve_cost",
]

BOUNDS = "the bounds were chosen without looking at these data"
"""An assumption wherever bounds are parameters."""

Persons = Callable[[], PersonKeys]
"""Tells whose rows the rows of a table are."""

ESTIMAND = (
    "means over persons: each person counts once, by the mean over its rows, coarsely where it has thousands of them"
)
"""What is estimated where a record is a person, for the certificate."""

_ONE_KEY = "all rows about one person carry the same key, and a row without a key is about nobody"
_PUBLIC_KEYS = "the set of keys of the persons is public"


def person_assumptions(relation: str) -> tuple[str, ...]:
    """What the guarantee for a person rests on: under add-remove the keys are private."""
    return (_ONE_KEY,) if relation == "add-remove" else (_ONE_KEY, _PUBLIC_KEYS)


def public_persons(keys: PersonKeys, relation: str, n_public: int | None) -> int | None:
    """The number of persons as far as it may be used or shown."""
    if relation != "add-remove" and keys.n_persons == 0:
        raise DataError("persons: expected at least one key, got none; leave persons out if every row is a record.")
    return public_rows(relation, keys.n_persons, n_public)


class PricedPlan(Protocol):
    """What an account needs of a plan."""

    @property
    def budget(self) -> Budget:
        """What everything together may cost."""

    @property
    def cost(self) -> Event:
        """What everything that is released costs together."""

    @property
    def ordered(self) -> bool:
        """Whether releases are made in the order in which they are listed."""


class Plan(PricedPlan, Protocol):
    """What a certificate needs of a plan."""

    @property
    def arithmetic(self) -> str:
        """Either "exact", or "float64" where a release cannot be put on a lattice."""


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What may be known of a table before a cell of it is read.

    Parameters
    ----------
    n_rows : int or None
        Rows of the table, null records included. Private under add-remove, and where a record is a person. None for a
        table in partitions under add-remove: its rows are not counted before all is reserved.
    n_records : int or None
        The public number of records: that of the rows or persons, or ``n_public`` under add-remove.
    n_features : int
        Columns of the table.
    labels : ndarray or None
        The classes, sorted; None for a target of numbers.
    assumptions : tuple of str
        What the certificate has to assume for these facts to be public.
    columns : tuple of int or None
        Columns that the caller fixed, in increasing order; None where all may be used.
    unit : {"record", "person"}
        What a record is: a row, or all rows of a person.
    person_column : str or None
        The column that the keys of the persons come from, if it has a name.
    person_digest : str or None
        Of the set of keys of the persons; None under add-remove, where the set is private.
    """

    n_rows: int | None
    n_records: int | None
    n_features: int
    labels: AnyArray | None = None
    assumptions: tuple[str, ...] = ()
    columns: tuple[int, ...] | None = None
    unit: str = "record"
    person_column: str | None = None
    person_digest: str | None = None

    @property
    def counted_rows(self) -> int:
        """Rows of a table in memory."""
        if self.n_rows is None:
            raise TypeError("the rows of this table are not counted before all is reserved")
        return self.n_rows

    @property
    def stated_records(self) -> int:
        """The public number of records, for plans that need one."""
        if self.n_records is None:
            raise TypeError("the parameters have to be checked before a number of records is needed")
        return self.n_records


def check_common_parameters(
    *,
    epsilon: float,
    delta: float,
    relation: str,
    n_public: int | None,
    invalid: str,
    account: Account | str | None,
    random_state: int | None,
) -> None:
    """Raise ParameterError for a value of a common parameter that nothing could be made with, whatever the data."""
    check_invalid(invalid)
    check_epsilon(epsilon=epsilon)
    check_delta(delta=delta)
    Stream.of(random_state)
    open_account(account)
    check_relation(relation)
    if n_public is not None:
        check_integer(1, n_public=n_public)


def reserve_cost(
    account: Account | str | None,
    plan: PricedPlan,
    *,
    what: str,
    relation: str,
    unit: str,
    n_records: int | None,
    seeded: bool,
    person_column: str | None = None,
    person_digest: str | None = None,
) -> Reservation:
    """Reserve what a plan costs from an account, if there is one; everything is public until here.

    What protects little is told of before anything is spent.
    """
    budget = f"epsilon = {plan.budget.epsilon:g}, delta = {plan.budget.delta:g}, {relation}"
    number = "a private number of" if n_records is None else f"{n_records:,}"
    log_phase(what, "planned", f"for {budget}, {number} {unit}s")
    warn_of_weak_guarantee(plan.budget, n_records, unit)
    opened = open_account(account)
    if opened is None:
        log_phase(what, "reserved", "nothing, as there is no account")
        return Reservation(None)
    reservation = opened.reserve(
        plan.cost,
        plan.budget,
        what=what,
        relation=relation,
        unit=unit,
        n=n_records,
        seeded=seeded,
        ordered=plan.ordered,
        person_column=person_column,
        person_digest=person_digest,
    )
    log_phase(what, "reserved", f"from account {opened.name!r}")
    return reservation


class PrivateEstimator(Guarded, Represented):
    """Base of everything that is fitted to private data and leaves a certificate behind."""

    epsilon: float
    delta: float
    relation: str
    n_public: int | None
    random_state: int | None
    certificate_: Certificate

    account: Account | str | None

    invalid: str = "raise"
    """For classes without this parameter."""

    x_bound: float | None = math.inf
    """For classes that need no bounds."""

    y_bounds: tuple[float, float] | None

    persons_refused: ClassVar[str | None] = "there is no proof for persons with several rows"
    """Why a record of this class cannot be a person with several rows, as the end of a sentence; None if it can."""

    partitions_refused: ClassVar[str | None] = "it needs more of the records than sums"
    """Why this class cannot be fitted to a table in partitions, as the end of a sentence; None if it can."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = fill(cls.__doc__)

    def __sklearn_clone__(self) -> Any:
        # Searches make their copies in the process that was asked, and fit them wherever they like.
        if self.epsilon != math.inf:
            consider_search(self)
        return super().__sklearn_clone__()

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_common_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            n_public=self.n_public,
            invalid=self.invalid,
            account=self.account,
            random_state=self.random_state,
        )

    def plan_for(self, X: Any, y: Any) -> PricedPlan:
        """What a fit to a table would release and cost, from public facts; nothing is reserved or drawn."""
        self.check_parameters()
        plan: PricedPlan = self._plan(self._public_facts(X, y))
        return plan

    def _plan(self, facts: PublicFacts) -> Any:
        """The mechanisms of a fit and their costs, from the budget and public facts."""
        raise NotImplementedError

    def _open(self, X: Any, y: Any, persons: Any) -> tuple[Any, Any, Any]:
        """The arguments of a fit, with an open table in place of a dask collection; no cell is looked at."""
        X, y, persons = open_arguments(X, y, persons)
        self.__dict__.pop("_table_bounds", None)
        if isinstance(X, OpenTable):
            self._check_table(X)
            self._table_bounds = {"x_bound": X.x_bound, "y_bounds": X.y_bounds}
        return X, y, persons

    def _check_table(self, table: OpenTable) -> None:
        """Raise where a class cannot be fitted to a table in partitions, or states other bounds than the table does."""
        if self.partitions_refused is not None:
            raise DataError(
                f"X: expected a table in memory for {type(self).__name__}, since {self.partitions_refused}; use "
                "SparseRegressor, SparseClassifier, HardThresholdClassifier or CorrelationSelector, or compute() the "
                "table."
            )
        stated_y_bounds(table.y_bounds)
        if table.x_bound is not None:
            check_x_bound(table.x_bound)
        for name in ("x_bound", "y_bounds", "invalid"):
            stated, own = getattr(table, name), getattr(self, name, None)
            if stated is not None and own is not None and np.any(np.asarray(own) != np.asarray(stated)):
                raise ParameterError(name, own, f"{stated!r}, which the table states", "pass that")

    def _check_persons(self, persons: Any) -> None:
        """Raise where persons are given to a class that has no guarantee for them."""
        if persons is not None and self.persons_refused is not None:
            raise ParameterError(
                "persons",
                type(persons).__name__,
                f"None for {type(self).__name__}, since {self.persons_refused}",
                "use SparseRegressor, SparseClassifier or CorrelationSelector, or pass one row per person",
            )

    @property
    def _x_bound(self) -> float:
        """The public bound on every feature value: that of an open table, or 1, where none is given."""
        stated = self._bound_of("x_bound")
        return DEFAULT_X_BOUND if stated is None else stated

    @property
    def _y_bounds(self) -> tuple[float, float]:
        """The public range of the target: that of an open table, or (-1, 1), where none is given."""
        return stated_y_bounds(self._bound_of("y_bounds"))

    def _bound_of(self, name: str) -> Any:
        """A bound as it is given, or as the table states it that is being fitted; None for neither."""
        given = getattr(self, name, None)
        return vars(self).get("_table_bounds", {}).get(name) if given is None else given

    def _warn_of_defaults(self, facts: PublicFacts) -> None:
        """Warn of bounds that nobody gave; those of a target count where it holds numbers."""
        asked = ("x_bound", "y_bounds") if facts.labels is None else ("x_bound",)
        warn_of_default_bounds(*(name for name in asked if hasattr(self, name) and self._bound_of(name) is None))

    def _require_public_count(self) -> None:
        """Raise where sums are divided by a number of records that is private."""
        check_public_count(self.relation, self.n_public)

    def _require_delta(self) -> None:
        """Raise where the noise is Gaussian and the budget has no delta."""
        if self.delta == 0.0 and not math.isinf(self.epsilon):
            raise ParameterError("delta", self.delta, "a number > 0", "the noise is Gaussian, which needs one")

    def _public_facts(self, X: Any, y: Any) -> PublicFacts:
        """What may be known of the table before a cell of it is read."""
        assumptions = X.assumptions if isinstance(X, OpenTable) else ()
        if isinstance(X, OpenTable) and self.relation == "add-remove":
            return PublicFacts(None, self.n_public, X.n_features, assumptions=assumptions)
        n_rows, n_features = table_shape(X)
        if n_rows == 0 and not (self.relation == "add-remove" and self.invalid == "null"):
            raise DataError(f"X: {NO_RECORDS}.")
        n_records = public_rows(check_relation(self.relation), n_rows, self.n_public)
        return PublicFacts(n_rows, n_records, n_features, assumptions=assumptions)

    def _person_facts(self, facts: PublicFacts, persons: Any) -> tuple[PublicFacts, Persons | None]:
        """Public facts with the number of persons, where a record is one, and how to tell whose rows the rows are.

        Keys are read here where their set is public, and else not before they are asked for, when all is reserved.
        """
        if persons is None:
            return facts, None
        in_partitions = isinstance(persons, TablePersons)
        read: Persons = persons.read if in_partitions else partial(read_persons, persons, facts.counted_rows)
        n_records, digest = self.n_public, None
        if self.relation != "add-remove":
            keys = read()
            n_records, digest, read = public_persons(keys, self.relation, None), keys.digest, lambda: keys
        together = (ONE_PARTITION,) if in_partitions and not persons.table.gathers_persons else ()
        assumptions = (*facts.assumptions, *person_assumptions(self.relation), *together)
        described = replace(
            facts,
            n_records=n_records,
            assumptions=assumptions,
            unit="person",
            person_column=column_of_keys(persons),
            person_digest=digest,
        )
        return described, read

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit to a dense or sparse table calls, so that a failure to do so spends nothing.

        ``n_classes`` is the number of classes, where it is known already.
        """

    def _log(self, phase: str) -> None:
        """Log a phase of the fit; the last one, "certified", with its guarantee."""
        log_phase(type(self).__name__, phase, in_short(self.certificate_) if phase == "certified" else "")

    def _reserve(self, plan: Plan, facts: PublicFacts) -> Reservation:
        """Set the cost of the plan aside before the first cell is read and the first noise is drawn."""
        return reserve_cost(
            self.account,
            plan,
            what=type(self).__name__,
            relation=self.relation,
            unit=facts.unit,
            n_records=facts.n_records,
            seeded=self.random_state is not None,
            person_column=facts.person_column,
            person_digest=facts.person_digest,
        )

    def _public_description(self, facts: PublicFacts) -> dict[str, Any]:
        """Public facts of every fit, for the certificate."""
        described: dict[str, Any] = {"features": facts.n_features}
        if facts.n_records is not None:
            described["records"] = facts.n_records
        estimand = {"estimand": ESTIMAND} if facts.unit == "person" else {}
        return described | {"invalid": self.invalid} | estimand

    def _admission(self, most_records: int | None) -> tuple[str, ...]:
        """What is assumed of the records: that they are admissible, and how many there are at most."""
        # Refusing more records would reveal their number where it is private.
        limited = most_records is not None and self.relation == "add-remove"
        limit = (f"there are at most {most_records:,} records",) if limited else ()
        return *admission_assumptions(self.invalid), *limit
