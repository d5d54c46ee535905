"""Tables that ``fit`` takes in place of arrays: open for reading in partitions, with their target and their persons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from taciturn.core.arrays import AnyArray, IndexArray, IntArray
from taciturn.core.errors import DataError
from taciturn.core.validation import without_data_values
from taciturn.data.admission import judged_labels, plain_labels
from taciturn.data.persons import KeyForms, PersonKeys, key_forms, slots_in_parts
from taciturn.data.reading import has_truth_values, public_labels
from taciturn.sources.blocks import BlockBuilder, Partition, PartitionReader, accepted, quietly
from taciturn.sources.partitions import PartitionedSource, PartitionFacts
from taciturn.sources.streamed import StreamedSource

__all__ = [
    "ONE_PARTITION",
    "OpenTable",
    "PartitionedTable",
    "PartitionedTarget",
    "TablePersons",
    "is_open",
    "open_arguments",
    "stated_classes",
    "target_has_truth_values",
    "target_labels",
]

ONE_PARTITION = (
    "the rows of each person lie in one partition of the table; a table in which they do not is refused, and the "
    "refusal tells of it"
)
"""What the guarantee for persons rests on where a table is read in partitions."""

Engine = Callable[[Sequence[Partition], PartitionFacts], PartitionedSource]


class OpenTable(ABC):
    """A table in partitions, open for reading: ``fit`` takes it in place of arrays, and no record is in memory yet."""

    names: tuple[str, ...] | None
    """The names of the features, or None."""
    n_features: int
    has_target: bool
    has_persons: bool
    is_sparse: bool
    classes: Any = None
    """The public labels of the target, where the table states them."""
    y_bounds: tuple[float, float] | None = None
    """The public range of the target, where the table states it."""
    x_bound: float | None = None
    """The public bound on every feature, where the table states it."""
    person_column: str | None = None
    """The name of the column with the keys of the persons, where the table has one."""
    invalid: str | None = None
    """What becomes of cells that cannot be used, where the table decides that."""
    gathers_persons: bool = False
    """Whether rows of a person are in one partition wherever they are in the table, so that it is never refused."""
    assumptions: tuple[str, ...] = ()
    """What every certificate of a release from this table has to assume, in words."""

    @property
    @abstractmethod
    def lengths(self) -> IntArray:
        """The number of rows of each partition: private under add-remove, and where a record is a person."""

    @abstractmethod
    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition, in their order."""

    @abstractmethod
    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition, in their order."""

    @abstractmethod
    def _source(
        self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts
    ) -> PartitionedSource:
        """The source of the blocks that the builder makes."""

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features. The former is private as that of each partition is."""
        return int(self.lengths.sum()), self.n_features

    def read(
        self, estimator: Any, builder: BlockBuilder, n_records: int | None, persons: Callable[[], PersonKeys] | None
    ) -> PartitionedSource:
        """The source of the records that are not null; every partition is read once, and refused if it must be.

        Parameters
        ----------
        estimator : estimator
            Learns the names and the number of the columns.
        builder : BlockBuilder
            What becomes of the rows.
        n_records : int or None
            The public number of records, or None under add-remove.
        persons : callable or None
            Tells whose rows they are.
        """
        if builder.target is not None and not self.has_target:
            raise DataError(f"y: {type(estimator).__name__} requires y to be passed, but the target y is None.")
        self.name_features(estimator)
        owners: list[IndexArray | None] = [None] * self.lengths.size
        keys = None if persons is None else persons()
        if keys is not None:
            owners = list(np.split(keys.slots, np.cumsum(self.lengths)[:-1]))
        n_persons = None if keys is None else keys.n_persons
        facts = PartitionFacts(n_records, self.n_features, self.lengths, n_persons)
        return self._source(builder, owners, facts).admit()

    def name_features(self, estimator: Any) -> None:
        """Set what an estimator learns of the columns."""
        estimator.n_features_in_ = self.n_features
        if self.names is not None:
            estimator.feature_names_in_ = np.asarray(self.names, dtype=object)
        else:
            vars(estimator).pop("feature_names_in_", None)


@dataclass(frozen=True, slots=True)
class PartitionedTarget:
    """The target of an open table, in the place of ``y``."""

    table: OpenTable


@dataclass(frozen=True, slots=True)
class TablePersons:
    """The persons of an open table, in the place of ``persons``."""

    table: OpenTable

    @property
    def name(self) -> str | None:
        """The name of the column of keys, if it is known."""
        return self.table.person_column

    def read(self) -> PersonKeys:
        """Whose rows the rows are. Raises DataError if those of one person lie in several partitions."""
        parts = self.table.each_key_forms()
        slots, n_persons, digest = slots_in_parts(parts)
        held = np.concatenate([np.unique(each[each >= 0]) for each in slots])
        if np.unique(held).size < held.size:
            raise DataError(
                "persons: expected all rows of a person in one partition, got some in several; sort the table by "
                "person and cut it between persons, or fit in memory."
            )
        return PersonKeys(np.concatenate(slots), n_persons, digest)


class PartitionedTable(OpenTable):
    """A table behind a reader, run by an engine.

    Parameters
    ----------
    reader : PartitionReader
        Reads one partition at a time.
    engine : callable, default=StreamedSource
        ``engine(partitions, facts)`` gives the source that runs them: :class:`StreamedSource`, which reads one
        partition after the other in this process, :class:`DaskSource`, or an engine of one's own.
    has_target : bool, default=True
        Whether the reader gives targets.
    has_persons : bool, default=False
        Whether it gives keys of persons: the guarantee is then for all rows of a person together.
    classes : sequence, default=None
        The public labels of the target, where they are stated.
    y_bounds : tuple of float, default=None
        The public range of the target, where it is stated.
    x_bound : float, default=None
        The public bound on every feature, where it is stated.

    Attributes
    ----------
    names, n_features, shape
        As the reader states them.
    """

    def __init__(
        self,
        reader: PartitionReader,
        *,
        engine: Engine = StreamedSource,
        has_target: bool = True,
        has_persons: bool = False,
        classes: Any = None,
        y_bounds: tuple[float, float] | None = None,
        x_bound: float | None = None,
    ) -> None:
        self.reader, self.engine = reader, engine
        self.names = None if reader.names is None else tuple(reader.names)
        self.n_features = int(reader.n_features)
        self.is_sparse = bool(getattr(reader, "sparse", False))
        self.assumptions = tuple(getattr(reader, "assumptions", ()))
        self.has_target, self.has_persons = has_target, has_persons
        self.classes, self.y_bounds, self.x_bound = classes, y_bounds, x_bound

    def _read(self, index: int) -> tuple[Any, Any, Any]:
        """One partition without its features."""
        return self.reader.read(index, np.zeros(0, dtype=np.intp))

    @cached_property
    def lengths(self) -> IntArray:
        """The number of rows of each partition."""
        edges: IntArray = np.append(self.reader.offsets, self.reader.n_rows).astype(np.int64)
        return edges[1:] - edges[:-1]

    def each_target(self, function: Callable[[Any], Any]) -> list[Any]:
        """What a function gives for the targets of each partition, read one after the other."""
        return [accepted(quietly(lambda i: function(self._read(i)[1]), index)) for index in range(self.lengths.size)]

    def each_key_forms(self) -> list[KeyForms]:
        """The canonical keys of the persons of each partition, read one after the other."""
        return [
            accepted(quietly(lambda i, n: key_forms(self._read(i)[2], n), index, int(length)))
            for index, length in enumerate(self.lengths)
        ]

    def _source(
        self, builder: BlockBuilder, owners: list[IndexArray | None], facts: PartitionFacts
    ) -> PartitionedSource:
        partitions = [Partition(builder, self.reader, index, own) for index, own in enumerate(owners)]
        return self.engine(partitions, facts)


# ------------------------------------------------------------------ the arguments of fit


def open_arguments(X: Any, y: Any, persons: Any) -> tuple[Any, Any, Any]:
    """The arguments of ``fit``, with an open table and its target and persons where X is one or a dask collection."""
    given = [name for name, value in (("y", y), ("persons", persons)) if value is not None]
    if is_dask(X):
        # Here rather than above: dask is an extra.
        from taciturn.sources.dask_tables import DaskTable

        X = DaskTable(X, y, persons)
    elif not is_open(X):
        if is_dask(y) or is_dask(persons):
            raise DataError(
                "X: expected a dask collection beside a dask y or dask persons, got something else; compute() these, "
                "or make X one too."
            )
        return X, y, persons
    elif given:
        raise DataError(f"{given[0]}: expected None beside a table that has its own, got something; leave it out.")
    return X, PartitionedTarget(X) if X.has_target else None, TablePersons(X) if X.has_persons else None


def is_open(value: Any) -> bool:
    """Whether something is an open table, told by its type alone."""
    return issubclass(type(value), OpenTable)


def is_dask(value: Any) -> bool:
    """Whether something is an array, a data frame or a column of dask."""
    return type(value).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(value, "__dask_graph__")


def stated_classes(X: Any, classes: Any) -> Any:
    """The classes that are given or, for None, those that an open table states, if it does."""
    return X.classes if classes is None and isinstance(X, OpenTable) else classes


def target_labels(y: Any) -> AnyArray:
    """The distinct labels of a target, sorted, on the assumption that their set is public."""
    if isinstance(y, PartitionedTarget):
        parts = y.table.each_target(_distinct_labels)
        kinds = {part.dtype.kind for part in parts if part.size}
        kept = [part if len(kinds) == 1 else part.astype(object) for part in parts if part.size]
        y = np.concatenate(kept) if kept else np.zeros(0)
    return public_labels(y)


def target_has_truth_values(y: Any, *, invalid: str) -> bool:
    """Whether a target holds truth values, on the assumption that this is public."""
    if isinstance(y, PartitionedTarget):
        return all(y.table.each_target(_TruthValues(invalid)))
    return has_truth_values(y, invalid=invalid)


def _distinct_labels(y: Any) -> AnyArray:
    def distinct() -> AnyArray:
        labels, known = judged_labels(y)
        plain = plain_labels(labels[known], with_text=isinstance(y, list | tuple))
        if plain.dtype.kind != "O":
            return np.unique(plain)
        return np.fromiter(dict.fromkeys(plain.tolist()), dtype=object)

    return without_data_values("y", distinct)


@dataclass(frozen=True, slots=True)
class _TruthValues:
    invalid: str

    def __call__(self, y: Any) -> bool:
        return len(y) == 0 or has_truth_values(y, invalid=self.invalid)
