"""A session of a coordinator with sites: what is asked, what a site answers, and the source that is made of it."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp

from taciturn._version import __version__
from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.guard import guarded
from taciturn.core.validation import BoolArray, IntArray, NumberArray
from taciturn.data.design import Design
from taciturn.data.persons import KeyForms, PersonKeys, PersonRows
from taciturn.data.records import Measures
from taciturn.data.target import LabelMap, NumberMap, numeric_target, positive_target, target_signs
from taciturn.engines.interface import (
    Block,
    BlockBuilder,
    OpenTable,
    PartitionFacts,
    Source,
    TablePersons,
    Task,
    TruthValues,
    check_task,
)
from taciturn.engines.partitions import PartitionedSource
from taciturn.engines.sites import messages
from taciturn.engines.sites.pads import SessionKey, SitePads
from taciturn.engines.sites.plan import COORDINATED, ONE_SITE, PartyKeys, SitePlan

# ---- One site: it keeps its table, and answers requests of the plan with masked sums.

_BUILDERS = (BlockBuilder, NumberMap, LabelMap, Measures)
_MAPS: dict[Callable[..., Any], dict[str, Any]] = {
    np.asarray: {},
    numeric_target: {"y_bounds": tuple[float, float]},
    positive_target: {"y_bounds": tuple[float, float]},
    target_signs: {"middle": float},
}
# Parts of a division are drawn at random, so that a part of the rows of a site is near its part of all rows: with a
# probability of at least 1 - 2 exp(-32) it is no further away than this many roots of the number (Hoeffding 1963).
_ROOTS = 4.0
_CHECK = 1

_FAILED = (
    "sites: expected a request that the site can answer, got one that fails there; fit to a table of your own first."
)
_REPEATED = (
    "sites: expected a request that is numbered beyond those before, got a repeated number; open the sites again."
)
_FOREIGN = "sites: expected a request within the plan and its public numbers, got another; fit what the plan lists."
_ENDED = (
    "sites: expected at most the number of rounds that the plan states, got more; have the sites started again, or "
    "agree on a new plan."
)
_NOT_JOINED = (
    "sites: expected the session keys of all sites once, before any request, got others; open the sites again."
)


@dataclass(frozen=True, slots=True)
class TaskList:
    """The classes that requests may name: tasks, and what tasks are made of."""

    tasks: tuple[type, ...]
    parts: tuple[type, ...]


class _Nobody:
    """Learns the names of the columns in the place of an estimator."""


class _FailedSumError(Exception):
    """A sum that fails for the rows of this site, and not for the request alone; it has a shape all the same."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape


class Site:
    """One site, which has a table and answers messages.

    **Privacy.** Sums leave a site under pads that the other sites hold (:mod:`~taciturn.engines.sites.pads`): without
    these they are uniformly random, whatever the table holds. A refusal leaves in words that quote no record. Requests
    are checked against the plan and its public numbers; none is refused for a number of records, of labels or of values
    that the site has counted. In the place of a sum that fails for its rows random words leave it, as many as it has
    without rows: masks do not cancel then, and nobody learns at which site it failed, or the total of the others.

    Parameters
    ----------
    plan : SitePlan
        What was agreed.
    keys : PartyKeys
        The private keys of this site.
    table : OpenTable
        Its table, of which the number of rows, and of persons, is that of the plan.
    tasks : TaskList
        What requests may name.
    """

    def __init__(self, plan: SitePlan, keys: PartyKeys, table: OpenTable, tasks: TaskList) -> None:
        self.plan, self.name, self._table, self._tasks = plan, keys.name, table, tasks
        self._facts = plan.site(keys.name)
        keys.check(keys.name, self._facts.certificate, self._facts.key)
        if keys.pads is None:
            raise TypeError("the keys of a site have one for pads")
        self._own = keys.pads
        self._words = messages.Vocabulary((*_BUILDERS, *tasks.tasks, *tasks.parts), _MAPS)
        self._persons = self._checked_persons()
        self.n_requests = 0
        """Requests that were taken since the site runs, over all sessions."""
        self._begin()

    def _checked_persons(self) -> PersonKeys | None:
        """Whose rows the rows are; raises, to whoever runs the site, where public numbers are not those of the plan."""
        expected, table = self._facts, self._table
        if not table.has_row_order:
            raise DataError(
                "table: expected a table whose rows have an order that lasts, since halves of them are taken by their "
                "places, got another; state a unique key of a table in a database, &key=, or write it as Parquet."
            )
        rows = int(table.lengths.sum())
        if rows != expected.rows:
            raise DataError(
                f"table: expected the {expected.rows:,} rows that the plan states for {self.name!r}, got {rows:,}; "
                "agree on the public number, and leave cells of a record blank rather than its row out."
            )
        if table.has_persons != (expected.persons is not None):
            raise DataError(
                "table: expected numbers of persons in the plan and a column of keys in the bounds, or neither, got "
                "one of them; state both."
            )
        if not table.has_persons:
            return None
        keys = TablePersons(table).read()
        if keys.n_persons != expected.persons:
            raise DataError(
                f"table: expected the {expected.persons:,} persons that the plan states for {self.name!r}, got "
                f"{keys.n_persons:,}; agree on the public number."
            )
        return keys

    def _begin(self) -> None:
        self._key: SessionKey | None = SessionKey()
        self._pads: SitePads | None = None
        self._last, self._whole = 0, -1
        self._sources: dict[int, Source] = {}
        self._no_rows: Block | None = None

    def hello(self) -> bytes:
        """Begin a session: its first message has a new public key, and what is public about the columns."""
        self._begin()
        assert self._key is not None
        return messages.write(
            {
                "plan": self.plan.digest.hex(),
                "version": __version__,
                "site": self.name,
                "key": self._key.public.hex(),
                "table": describe_table(self._table),
            }
        )

    def answer(self, message: bytes) -> bytes:
        """The answer to a message of the coordinator."""
        try:
            request = self._words.read(message)
            if request["kind"] == "keys":
                self._join(request["keys"])
                return messages.write({"sum": None})
            number = request["number"]
            self._take(number)
            # What is logged or warned of on the way could quote records.
            sums = guarded(self._perform, silent=True)(request)
            return messages.write({"sum": self._masked(sums, number, message), "shape": sums.shape})
        except _FailedSumError as failed:
            words = np.frombuffer(secrets.token_bytes(8 * _n_words(failed.shape)), dtype=np.uint64)
            return messages.write({"sum": words, "shape": failed.shape})
        except TaciturnError as error:
            return messages.write({"refusal": str(error)})
        except Exception:
            # What is said of a failure could quote them too.
            return messages.write({"refusal": _FAILED})

    def _join(self, shown: Mapping[str, str]) -> None:
        """Derive the pads of this session, once."""
        key, self._key = self._key, None
        if key is None or list(shown) != list(self.plan.pinned) or shown[self.name] != key.public.hex():
            raise DataError(_NOT_JOINED)
        public = {name: bytes.fromhex(each) for name, each in shown.items()}
        self._pads = key.pads(self.name, self._own, self.plan.pinned, public, self.plan.digest)

    def _take(self, number: object) -> None:
        """Take the number of a request, which no later one may have, whatever becomes of this one."""
        if self._pads is None:
            raise DataError(_NOT_JOINED)
        if type(number) is not int or number <= self._last:
            raise DataError(_REPEATED)
        if self.n_requests >= self.plan.rounds:
            raise DataError(_ENDED)
        self._last, self.n_requests = number, self.n_requests + 1

    def _masked(self, sums: IntArray, number: int, message: bytes) -> Any:
        assert self._pads is not None
        words = np.append(sums.ravel(), _CHECK).astype(np.int64).view(np.uint64)
        return self._pads.mask(words, number, message)

    def _perform(self, request: Mapping[str, Any]) -> IntArray:
        """The site's own sum."""
        kind, source = request["kind"], request["source"]
        if kind == "open":
            self._open(source, request["builder"])
        elif kind == "divide":
            self._divide(source, request["into"], request["first"])
        elif kind == "sum" and source in self._sources:
            task = request["task"]
            if not isinstance(task, self._tasks.tasks) or not admissible(task, self._table.n_features):
                raise DataError(_FOREIGN)
            return self._sum(self._sources[source], task)  # type: ignore[arg-type]
        else:
            raise DataError(_FOREIGN)
        return np.zeros(1, dtype=np.int64)

    def _sum(self, source: Source, task: Task) -> IntArray:
        """The sum over a source. What fails without rows fails for the request; all else could tell of rows."""
        assert self._no_rows is not None
        shape, found = task(self._no_rows).shape, None
        with suppress(Exception):
            found = source.total(task)
        if found is None or found.shape != shape:
            raise _FailedSumError(shape)
        return found

    def _open(self, source: object, builder: object) -> None:
        """Read the table as a fit asks for it; what was opened before is let go."""
        self._sources, self._whole = {}, -1
        if type(source) is not int or not isinstance(builder, BlockBuilder) or not self._agrees(builder):
            raise DataError(_FOREIGN)
        keys = self._persons
        n_records = self._facts.rows if keys is None else keys.n_persons
        opened = self._table.read(_Nobody(), builder, n_records, None if keys is None else lambda: keys)
        self._sources, self._whole = {source: opened}, source
        self._no_rows = self._block_without_rows(builder)

    def _block_without_rows(self, builder: BlockBuilder) -> Block:
        shape = 0, self._table.n_features
        design = Design(sp.csr_array(shape) if self._table.is_sparse else np.zeros(shape), builder.x_bound)
        labelled = isinstance(builder.target, LabelMap)
        target: NumberArray = np.zeros(0, dtype=np.int64) if labelled else np.zeros(0)
        persons = None if self._persons is None else PersonRows(np.zeros(0, dtype=np.int64))
        return Block(design if builder.own_units else design.compacted(), target, persons)

    def _agrees(self, builder: BlockBuilder) -> bool:
        """Whether rows are read by the bounds that the table states, which the plan names."""
        table, target = self._table, builder.target
        agrees = builder.invalid == self.plan.invalid and builder.x_bound in (
            table.x_bound or builder.x_bound,
            math.inf,
        )
        if target is not None and table.classes is not None:
            labels = target.classes.tolist() if isinstance(target, LabelMap) else None
            agrees = agrees and labels == np.asarray(list(table.classes)).tolist()
        if target is not None and table.y_bounds is not None:
            stated = getattr(getattr(target, "function", None), "keywords", {}).get("y_bounds", table.y_bounds)
            agrees = agrees and isinstance(target, NumberMap) and tuple(stated) == tuple(table.y_bounds)
        measures = builder.measures or Measures()
        weight, exposure = table.weight_bound, table.exposure_bound
        agrees = agrees and measures.weight_bound in (None, weight or measures.weight_bound)
        return agrees and measures.exposure_bound in (None, exposure or measures.exposure_bound)

    def _divide(self, source: object, into: object, first: object) -> None:
        """Divide the table in two, once after it was opened, by a mask over the rows or persons of all sites."""
        counts = self.plan.lengths if self._persons is None else self.plan.person_counts
        if source != self._whole or not isinstance(first, np.ndarray) or counts is None:
            raise DataError(_FOREIGN)
        n_slots = int(counts.sum())
        if first.dtype != np.uint8 or first.size != (n_slots + 7) // 8:
            raise DataError(_FOREIGN)
        mask = np.unpackbits(first, count=n_slots).astype(bool)
        parts = np.split(mask, np.cumsum(counts)[:-1])
        if not isinstance(into, tuple) or len(into) != 2 or not drawn_at_random(parts):
            raise DataError(_FOREIGN)
        whole, self._whole = self._sources.pop(self._whole), -1
        own = parts[list(self.plan.pinned).index(self.name)]
        self._sources = dict(zip(into, whole.divide(own), strict=True))


def describe_table(table: OpenTable) -> dict[str, Any]:
    """What is public about the columns of a table, from its bounds and its names."""
    return {
        "names": table.names,
        "n_features": table.n_features,
        "is_sparse": table.is_sparse,
        "has_target": table.has_target,
        "has_persons": table.has_persons,
        "has_weight": table.has_weight,
        "has_exposure": table.has_exposure,
        "weight_bound": None if table.weight_bound is None else float(table.weight_bound),
        "exposure_bound": None if table.exposure_bound is None else float(table.exposure_bound),
        "classes": None if table.classes is None else tuple(table.classes),
        "y_bounds": None if table.y_bounds is None else tuple(float(each) for each in table.y_bounds),
        "x_bound": None if table.x_bound is None else float(table.x_bound),
        "groups": None if table.groups is None else tuple(tuple(int(j) for j in each) for each in table.groups),
        "person_column": table.person_column,
        "assumptions": table.assumptions,
    }


def drawn_at_random(parts: Sequence[BoolArray]) -> bool:
    """Whether a mask could be the result of a draw: of every site about the part that it has of all."""
    share = sum(int(part.sum()) for part in parts) / sum(part.size for part in parts)
    near = (abs(int(part.sum()) - share * part.size) <= _ROOTS * math.sqrt(part.size) for part in parts)
    return 0.25 <= share <= 0.75 and all(near)


def admissible(task: object, n_features: int) -> bool:
    """Whether the columns that a task names, at any depth, are columns of the table in increasing order."""
    if isinstance(task, tuple):
        return all(admissible(each, n_features) for each in task)
    if not is_dataclass(task):
        return True
    for each in fields(task):
        value = getattr(task, each.name)
        if each.name == "columns" and value is not None:
            places = np.asarray(value)
            inside = places.size == 0 or (places[0] >= 0 and places[-1] < n_features)
            if places.ndim != 1 or not inside or not (np.diff(places) > 0).all():
                return False
        if not admissible(value, n_features):
            return False
    return True


# ---- The coordinator: it asks all sites the same and adds what they answer.


class LostSiteError(Exception):
    """A site does not answer any more."""


class Channel(Protocol):
    """What leads to one site."""

    def send(self, message: bytes) -> None:
        """Send a message; LostSiteError if the site is gone."""

    def receive(self) -> bytes:
        """The next message of the site; LostSiteError if it is gone, or silent for too long."""

    def close(self) -> None:
        """End the session of the site."""


class LocalChannel:
    """A channel to a site in the same process: for trials without a network."""

    def __init__(self, site: Site) -> None:
        self._site, self._answer = site, site.hello()

    def send(self, message: bytes) -> None:
        """Have the message answered."""
        self._answer = self._site.answer(message)

    def receive(self) -> bytes:
        """The answer."""
        return self._answer

    def close(self) -> None:
        """Nothing is held."""


_WORDS = messages.Vocabulary(())


class Session:
    """A session of the coordinator with all sites of a plan, by one channel each.

    Every request has a number that no other has; one that fails is not repeated. A site that is lost ends the session.
    """

    def __init__(self, plan: SitePlan, channels: Mapping[str, Channel]) -> None:
        self.plan = plan
        self._channels = {name: channels[name] for name in plan.pinned}
        self.n_requests, self._source = 0, 0
        """Requests that were sent until now, each of which has its number."""
        self._over: str | None = None
        hellos = self._received()
        self.table = self._agreed(hellos)
        keys = {name: hello.get("key") for name, hello in hellos.items()}
        self._exchange({"kind": "keys", "keys": keys})

    def _agreed(self, hellos: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        """What all sites say of their columns, which is public."""
        first: Mapping[str, Any] | None = None
        for name, hello in hellos.items():
            if hello.get("version") != __version__:
                raise DataError(
                    f"sites: expected taciturn {__version__} at all sites, got another at {name!r}; install the same."
                )
            if hello.get("plan") != self.plan.digest.hex() or hello.get("site") != name:
                raise DataError(f"sites: expected the same plan at all sites, got another at {name!r}; copy this one.")
            first = hello.get("table") if first is None else first
            if not isinstance(first, dict) or hello.get("table") != first:
                raise DataError(
                    f"sites: expected the same columns and bounds at all sites, got others at {name!r}; compare the "
                    "names and types of its columns."
                )
        assert first is not None
        return first

    def open(self, builder: BlockBuilder) -> int:
        """Have all sites read their tables; gives the number of the source."""
        self._source += 1
        self._sum({"kind": "open", "source": self._source, "builder": builder})
        return self._source

    def divide(self, source: int, first: BoolArray) -> tuple[int, int]:
        """Have all sites divide a source; gives the numbers of the parts."""
        self._source += 2
        into = self._source - 1, self._source
        self._sum({"kind": "divide", "source": source, "into": into, "first": np.packbits(first)})
        return into

    def total(self, source: int, task: Task) -> IntArray:
        """The exact sum of a task over all sites."""
        return self._sum({"kind": "sum", "source": source, "task": task})

    def close(self) -> None:
        """End the session."""
        self._over = self._over or "sites: expected an open table, got a closed one; open the sites again."
        for channel in self._channels.values():
            channel.close()

    def _sum(self, request: Mapping[str, Any]) -> IntArray:
        self.n_requests += 1
        answers = self._exchange({"number": self.n_requests, **request})
        words = [answer.get("sum") for answer in answers.values()]
        shape, *others = (answer.get("shape") for answer in answers.values())
        if not all(isinstance(each, np.ndarray) and each.dtype == np.uint64 and each.ndim == 1 for each in words):
            raise self._ending("sums", "something else")
        sizes = {each.size for each in words}
        if any(other != shape for other in others) or sizes != {_n_words(shape)}:
            raise self._ending("sums of one form", "several")
        if any(int(each[-1]) == _CHECK for each in words):
            raise self._ending("masked sums", "one without a mask")
        total = np.zeros(words[0].size, dtype=np.uint64)
        for each in words:
            total += each
        signed: IntArray = total.view(np.int64)
        if int(signed[-1]) != _CHECK * len(words):
            raise self._ending("sums whose masks cancel", "others")
        return signed[:-1].reshape(shape)

    def _ending(self, expected: str, found: str) -> DataError:
        """The session ends: a site, or what is between, does not do what was agreed."""
        self._over = (
            f"sites: expected {expected}, got {found}; check that all sites run this version of taciturn with this "
            "plan, and can read their tables. What was reserved in an account counts as spent."
        )
        return DataError(self._over)

    def _exchange(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the sites answer to a request; the first refusal is raised when all of them have answered."""
        if self._over is not None:
            raise DataError(self._over)
        message = messages.write(request)
        for name, channel in self._channels.items():
            self._try(name, partial(channel.send, message))
        answers = self._received()
        for name, answer in answers.items():
            if "refusal" in answer:
                raise DataError(f"site {name!r}: {answer['refusal']}")
        return answers

    def _received(self) -> dict[str, Any]:
        read = {name: _WORDS.read(self._try(name, each.receive)) for name, each in self._channels.items()}
        if not all(isinstance(each, dict) for each in read.values()):
            raise self._ending("messages with names", "others")
        return read

    def _try(self, name: str, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except LostSiteError:
            self._over = (
                f"sites: expected an answer of every site, got none from {name!r}; see that it runs, and open the "
                "sites and fit again: what was reserved in an account counts as spent."
            )
        self.close()
        raise DataError(self._over)


def _n_words(shape: object) -> int:
    """How many words a sum of this shape has with its check; -1 for what is no shape."""
    if isinstance(shape, tuple) and all(type(length) is int and length >= 0 for length in shape):
        return math.prod(shape) + 1
    return -1


class SitesSource(PartitionedSource):
    """The tables of several sites as one, whose sums are added under masks.

    The coordinator gets no more than the total. Rows follow each other site by site, by the public numbers of the plan,
    so that halves are those of the pooled table. So do persons, whose slots are those of the pooled table if all keys
    of a site come before those of the next.
    """

    def __init__(self, session: Session, facts: PartitionFacts, number: int) -> None:
        super().__init__((), facts)
        self._session, self._number = session, number

    def total(self, task: Task) -> IntArray:
        """The exact sum of the task over all sites."""
        check_task(task)
        return self._session.total(self._number, task)

    def admit(self) -> Self:
        """The sites did so when they read their tables."""
        return self

    def divide(self, first: BoolArray) -> tuple[Self, Self]:
        """The records in two: those of the slots that are true in ``first``, and the others."""
        numbers = self._session.divide(self._number, first)
        counts = int(first.sum()), int(first.size - first.sum())
        of_first, of_others = (
            type(self)(
                self._session, PartitionFacts(count, self.n_features, self.facts.lengths, self.facts.n_persons), each
            )
            for count, each in zip(counts, numbers, strict=True)
        )
        return of_first, of_others


class SitesTable(OpenTable):
    """The tables of several sites, open for fits of the coordinator; :func:`open_sites` makes it.

    It has one partition for each site. All that is known of it is public: the plan has the numbers of rows and of
    persons, the sites tell the names and the bounds of the columns.
    """

    def __init__(self, session: Session, release: Callable[[], None] | None = None) -> None:
        self.session, self.plan, self._release = session, session.plan, release
        stated = session.table
        self.names, self.n_features, self.is_sparse = stated["names"], stated["n_features"], stated["is_sparse"]
        self.has_target, self.has_persons = stated["has_target"], stated["has_persons"]
        self.has_weight, self.has_exposure = stated["has_weight"], stated["has_exposure"]
        self.weight_bound, self.exposure_bound = stated["weight_bound"], stated["exposure_bound"]
        self.classes, self.y_bounds, self.x_bound = stated["classes"], stated["y_bounds"], stated["x_bound"]
        self.groups, self.person_column = stated["groups"], stated["person_column"]
        self.invalid = self.plan.invalid
        # Each site gathers them, or refuses a table in which they are scattered when it begins.
        self.gathers_persons = True
        self.assumptions = (*stated["assumptions"], COORDINATED, *((ONE_SITE,) if self.has_persons else ()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.plan.sites)} sites, {self.n_features} features)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; the sites wait for the next one."""
        self.session.close()
        if self._release is not None:
            self._release()
            self._release = None

    @property
    def lengths(self) -> IntArray:
        """The public numbers of rows of the sites."""
        return self.plan.lengths

    def check_method(self, names: Sequence[str], relation: str) -> None:
        """Raise for a method that the plan does not list, since its sites would refuse when all is reserved.

        Raise, too, for add-remove, which protects the numbers of rows that the plan states.
        """
        if set(names).isdisjoint(self.plan.methods):
            raise DataError(
                f"X: expected a method that the plan of the sites lists, got {names[0]}; use "
                f"{', '.join(self.plan.methods)}, or agree on a new plan."
            )
        if relation == "add-remove":
            raise ParameterError(
                "relation",
                relation,
                "'zero-out' or 'replace-one' for several sites, whose numbers of rows are public in the plan",
                "choose one of these",
            )

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What is known of the targets without reading them; DataError where that is not enough."""
        if isinstance(function, TruthValues) and self.y_bounds is not None:
            return [False]
        raise DataError(
            "classes: expected the classes of the target in the bounds of the sites, got none; state them there, since "
            "no site tells its labels."
        )

    def each_key_forms(self) -> list[KeyForms]:
        """Refused: no site tells its keys."""
        raise DataError("persons: expected keys that stay at their sites, got a request for them; fit at the sites.")

    def read_persons(self) -> PersonKeys:
        """How many persons there are, by the plan, which stands for the set of their keys."""
        counts = self.plan.person_counts
        assert counts is not None
        return PersonKeys(np.zeros(0, dtype=np.intp), int(counts.sum()), self.plan.digest.hex())

    def read(
        self, estimator: Any, builder: BlockBuilder, n_records: int | None, persons: Callable[[], PersonKeys] | None
    ) -> Source:
        """The source of the records that are not null; every site reads its table, and refuses it if it must."""
        if builder.target is not None and not self.has_target:
            raise DataError(f"y: {type(estimator).__name__} requires y to be passed, but the target y is None.")
        self.name_features(estimator)
        n_persons = None if persons is None else persons().n_persons
        facts = PartitionFacts(n_records, self.n_features, self.lengths, n_persons)
        return SitesSource(self.session, facts, self.session.open(builder))

    def _source(self, builder: Any, owners: Any, facts: Any) -> Any:
        raise TypeError("sites make their sources themselves")
