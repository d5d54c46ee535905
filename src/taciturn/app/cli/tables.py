"""Tables and methods as commands take them: options, opened tables, progress of passes."""

from __future__ import annotations

import csv
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.app.cli.output import OutputFolder
from taciturn.app.cli.screen import check_memory_limit, pass_bar, print_note, share_bar, stage
from taciturn.core.errors import (
    AccountError,
    DataError,
    ParameterError,
    SuspiciousReleaseWarning,
    TaciturnError,
    WeakBudgetWarning,
    WeakGuaranteeWarning,
)
from taciturn.methods.registry import find_class, method_names

if TYPE_CHECKING:
    from taciturn.privacy.certificate import Certificate
    from taciturn.tables.bounds import TableBounds
    from taciturn.tables.columns import TableSchema
    from taciturn.tables.partitions import TablePartitions


# --- Names of models and selectors on the command line.

Task = Literal["regress", "classify", "survive"]

# Typer reads the names from these annotations, and a type checker sees text.
if TYPE_CHECKING:
    Method = str
    SelectionMethod = str
    SelectedUnit = str
else:
    SelectedUnit = Literal["columns", "variables"]
    Method = Literal[tuple(method_names("regressor", "classifier"))]
    SelectionMethod = Literal[tuple(method_names("selector"))]

_KINDS = {"regress": "regressor", "classify": "classifier", "survive": "survival"}
# Times to an event have one method, which is not chosen by its name.
_OF_TIMES = "hazards"


def methods_for(task: Task) -> list[str]:
    """Methods for a task."""
    return method_names(_KINDS[task])


def new_estimator(method: str, task: Task, nonzero: int | str | None, **parameters: Any) -> Any:
    """Make a model that is not fitted yet; None for ``nonzero`` keeps the default of the method."""
    kind = find_class(_OF_TIMES if task == "survive" and method == "auto" else method, _KINDS[task])
    if kind is None and task == "survive":
        raise ParameterError("method", method, "auto for times to an event", "choose auto, or leave the option out")
    if kind is None:
        raise ParameterError("method", method, f"one of {', '.join(methods_for(task))}", f"choose one that can {task}")
    known = inspect.signature(kind).parameters
    if nonzero is not None:
        if "n_nonzero" not in known:
            remedy = "leave the option out"
            if task == "survive":
                remedy += "; --columns names the columns of a model of hazards, which keeps all of them"
            raise ParameterError("nonzero", nonzero, f"nothing for the method {method}", remedy)
        parameters["n_nonzero"] = nonzero
    # Tables are encoded as numbers in [-1, 1].
    return kind(x_bound=1.0, **parameters)


def add_inference(
    parameters: dict[str, Any],
    method: str,
    *,
    inference: bool,
    confidence: float | None,
    columns: str | None,
    nonzero: int | str | None,
    bounds: TableBounds,
) -> None:
    """Add the parameters of standard errors and of fixed columns, which the default model alone has."""
    for option, value in (("inference", inference), ("columns", columns)):
        if value and method != "auto":
            raise ParameterError("method", method, f"auto with --{option}", "choose auto, or leave the option out")
    if confidence is not None and not inference:
        raise ParameterError("confidence", confidence, "--inference beside it", "add --inference, or leave it out")
    if columns is not None:
        if nonzero is not None:
            raise ParameterError("nonzero", nonzero, "nothing beside --columns", "leave one of the two out")
        parameters["columns"] = find_features(columns, bounds)
    elif bounds.target.task == "survive":
        # Baseline hazards are in the place of an intercept, with which all levels of a category are collinear.
        left_out = {block[0] for block in bounds.indicator_blocks}
        if left_out:
            parameters["columns"] = [place for place in range(len(bounds.feature_names)) if place not in left_out]
    if inference:
        parameters["inference"] = True
        if confidence is not None:
            from taciturn.core.validation import check_real

            check_real(0.5, 1.0, closed="left", confidence=confidence)
            parameters["confidence_level"] = confidence


def add_variables(
    parameters: dict[str, Any], method: str, select: str, *, columns: str | None, bounds: TableBounds
) -> None:
    """Add the parameters that choose whole columns of the table, which the default model alone has."""
    if select == "columns":
        return
    if bounds.target.task == "survive":
        remedy = "leave it out, and name the columns of the model with --columns"
        raise ParameterError("select", select, "nothing for times to an event", remedy)
    if method != "auto":
        raise ParameterError("method", method, "auto with --select variables", "choose auto, or leave the option out")
    if columns is not None:
        raise ParameterError("select", select, "nothing beside --columns", "leave one of the two out")
    parameters |= {"select": select, "groups": bounds.feature_groups}


def find_features(columns: str, bounds: TableBounds) -> list[int]:
    """The places of the features that a list of names with commas between them stands for.

    A name is that of a column of the table or of a feature. A column stands for its features, also the one that says
    that a cell is missing, but for its reference category: all of these are collinear with the intercept. So does a
    term.
    """
    from taciturn.tables.columns import refusal

    features = bounds.feature_names
    places = {feature: [place] for place, feature in enumerate(features)}
    for name, column in bounds.used:
        own = bounds.column_features(name, column)
        if name in own or name not in places:
            places[name] = [places[feature][0] for feature in own if feature != column.reference_feature(name)]
    for written, term in zip(bounds.terms, bounds.design_terms, strict=True):
        of_term = zip(term.labels, term.at_reference, strict=True)
        places[written] = [places[feature][0] for feature, left_out in of_term if not left_out]
    found: list[int] = []
    # As a line of a CSV file, so that quotes allow names with commas.
    for name in next(csv.reader([columns], skipinitialspace=True), []):
        if name not in places:
            raise refusal("columns", name, "the name of a column or feature of the model", "check its spelling")
        found += places[name]
    if not found or len(set(found)) < len(found):
        raise refusal("columns", columns, "at least one feature, and each of them once", "change the list")
    return sorted(found)


def check_persons(model: Any, bounds: TableBounds) -> None:
    """Raise if the bounds name persons and the method has no guarantee for them, before anything is read or spent."""
    if bounds.person is not None and model.persons_refused is not None:
        raise ParameterError(
            "method",
            type(model).__name__,
            f"one for persons, as the bounds file has [person], and here {model.persons_refused}",
            "choose auto, or correlation for a selection, or take [person] out",
        )


def check_kind(method: str, bounds: TableBounds) -> None:
    """Raise if the bounds state a kind of target, weights or exposures that the method has no family for."""
    stated = [] if bounds.target.kind is None else [f"kind = {bounds.target.kind!r}"]
    stated += [f"[{name}]" for name in ("weight", "exposure") if getattr(bounds, name) is not None]
    if stated and method != "auto":
        expected = f"auto, as the bounds file has {stated[0]}"
        raise ParameterError("method", method, expected, "choose auto, or take it out of the bounds file")


def check_plain_target(command: str, bounds: TableBounds) -> None:
    """Raise if the bounds have a target, weights or exposures that a command cannot take into account."""
    stated = ['kind = "survival"'] if bounds.target.task == "survive" else []
    stated += [f"[{name}]" for name in ("weight", "exposure") if getattr(bounds, name) is not None]
    if stated:
        expected = f"a bounds file without {stated[0]} for taciturn {command}, which has no use for it"
        remedy = "fit takes it into account: name its columns with --columns, or take it out for this command"
        raise ParameterError("bounds", stated[0], expected, remedy)


def warm_up(model: Any, X: Any) -> None:
    """Compile what a fit to this table calls, before a file says that the budget is being spent."""
    import scipy.sparse as sp

    with stage("preparing"):
        model.warm_up(sparse=getattr(X, "is_sparse", sp.issparse(X)))


def new_selector(method: str, **parameters: Any) -> Any:
    """Make a selector that is not fitted yet; parameters that it does not have are ignored."""
    kind = find_class(method, "selector")
    known = inspect.signature(kind).parameters
    # Tables are encoded as numbers in [-1, 1].
    parameters = {"x_bound": 1.0} | parameters
    return kind(**{name: value for name, value in parameters.items() if name in known})


# --- Options that several commands share.


def checked_budget(epsilon: float | None) -> float | None:
    """Check the whole budget before anything is read; the parts of a budget that is too large may pass the check."""
    if epsilon is not None:
        # The check loads numpy, before the command itself checks the memory limit.
        check_memory_limit()
        from taciturn.core.validation import check_epsilon

        check_epsilon(epsilon=epsilon)
    return epsilon


TableFile = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV or libsvm file, also .gz; Parquet, Feather, Arrow, .xlsx, .dta or SQLite.", show_default=False
    ),
]
Target = Annotated[str | None, typer.Option(help="Column to predict. [default: the target of the bounds file]")]
TaskOption = Annotated[
    Literal["regress", "classify"] | None,
    typer.Option(help="regress or classify. [default: the one that the bounds file implies]"),
]
Bounds = Annotated[
    Path | None, typer.Option(help="Public bounds of the columns (TOML); taciturn init writes a template.")
]
Epsilon = Annotated[float, typer.Option(callback=checked_budget, help="Privacy budget, from 1e-9 to 30, or inf.")]
Delta = Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")]
PrivateBounds = Annotated[
    float | None, typer.Option(help="Share of the budget, in (0, 1), that finds bounds that the bounds file lacks.")
]
Relation = Annotated[Literal["zero-out", "add-remove", "replace-one"], typer.Option(help="The neighbouring relation.")]
NPublic = Annotated[int | None, typer.Option(min=1, help="Public number of records, for add-remove.")]
Invalid = Annotated[
    Literal["raise", "null"],
    typer.Option(
        help="A record with an unusable cell: raise refuses the table, null leaves the record out of all sums."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed for reproduction; whoever knows it can remove the noise.")]
Public = Annotated[
    bool, typer.Option("--public", help="Let others read the files. [default: the owner alone, permissions 0600]")
]
Sign = Annotated[
    Path | None,
    typer.Option(help="Private Ed25519 key (PEM file) that signs the files. [default: they are not signed]"),
]


# --- Public facts about a table, known before its rows are read: bounds, target, task, and bounds still to be found.

_MOST_BOUNDS = 1 << 24
"""Largest size of a bounds file in bytes: hundreds for each column of the widest admissible table."""

_PROVISIONAL = (-1.0, 1.0)
"""Bounds of a column until its bounds are found."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Public facts about a table.

    The bounds are resolved for the table; those of the columns ``to_find`` are provisional. These are columns of
    numbers without public bounds, in the order of the table, the target last if it is one of them.
    """

    bounds: TableBounds
    task: Task
    to_find: tuple[str, ...]
    schema: TableSchema

    def with_found(self, lower: Any, upper: Any) -> TableBounds:
        """The bounds with those that were found privately in place of the provisional ones."""
        bounds = self.bounds
        found = dict(zip(self.to_find, zip(map(float, lower), map(float, upper), strict=True), strict=True))
        if bounds.target.name in found:
            low, high = found.pop(bounds.target.name)
            bounds = replace(bounds, target=replace(bounds.target, lower=low, upper=high))
        columns = dict(bounds.columns)
        for name, (low, high) in found.items():
            columns[name] = replace(columns[name], lower=low, upper=high)
        return replace(bounds, columns=columns)


def gather_table_facts(
    table: Path, target: str | None, task: Task | None, bounds_file: Path | None, *, find: bool
) -> TableFacts:
    """Combine the options, the bounds file and the header of the table.

    With ``find``, bounds that the bounds file does not state may be found privately; otherwise it must state all.
    """
    from taciturn.tables.bounds import TableBounds, missing_column
    from taciturn.tables.columns import Target

    stated = None
    if bounds_file is not None:
        text = read_text(bounds_file, "bounds", _MOST_BOUNDS)
        stated = TableBounds.from_toml(text, folder=bounds_file.parent)
    if stated is None and not find:
        raise ParameterError(
            "bounds",
            None,
            "public bounds of the columns",
            "write a template with taciturn init and fill it in, or give --private-bounds a share of the budget",
        )
    from taciturn.tables.reading import read_schema

    with stage(f"reading the columns of {table.name}"):
        schema = read_schema(table, None if stated is None else stated.layout)
    if stated is None:
        if target is None:
            raise ParameterError("target", None, "the name of a column", "name one with --target")
        stated = TableBounds(target=Target(target))
    elif target is not None and target != stated.target.name:
        raise ParameterError(
            "target", target, f"the column that the bounds file names, {stated.target.name!r}", "change one of the two"
        )
    task = _choose_task(task, stated)
    if not schema.sparse and stated.target.name not in schema.names:
        # Checked first: the other messages name columns, and in a table without a header these names are cells.
        raise DataError(missing_column(stated.target.name, schema))
    to_find: tuple[str, ...] = ()
    if find:
        stated, to_find = _add_provisional_bounds(stated, task, schema)
    elif task == "regress" and stated.target.lower is None:
        raise ParameterError("target", stated.target.name, "bounds in the bounds file", "state lower and upper")
    resolved = stated.for_table(schema).require_bounds()
    if stated.row_numbers(schema) is not None:
        print_note("the first column has no name, as the row numbers of R and pandas: it is left out.")
    return TableFacts(resolved, task, to_find, schema)


def _choose_task(task: Task | None, stated: TableBounds) -> Task:
    """The task that the option names or the bounds file implies; raise if they contradict."""
    from_bounds: Task | None = None
    if stated.target.task == "survive":
        from_bounds = "survive"
    elif stated.target.classes:
        from_bounds = "classify"
    elif stated.target.lower is not None:
        from_bounds = "regress"
    if task is None and from_bounds is None:
        raise ParameterError("task", None, "regress or classify", "choose one with --task, or describe the target")
    if task is not None and from_bounds is not None and task != from_bounds:
        raise ParameterError("task", task, f"{from_bounds}, as the bounds file describes the target", "change one")
    return task or from_bounds or "regress"


def _add_provisional_bounds(
    stated: TableBounds, task: Task, schema: TableSchema
) -> tuple[TableBounds, tuple[str, ...]]:
    """The bounds with provisional ones for every column of numbers that they do not describe, and these columns."""
    from taciturn.tables.columns import Column, Problems

    columns, to_find, target, problems = dict(stated.columns), [], stated.target, Problems()
    lower, upper = _PROVISIONAL
    for name, kind in zip(schema.names, schema.kinds, strict=True):
        if name in (target.name, *stated.beside, stated.person, stated.row_numbers(schema)):
            continue
        if name in columns:
            if not columns[name].is_bounded:
                columns[name] = replace(columns[name], lower=lower, upper=upper)
                to_find.append(name)
        elif stated.defaults is not None and kind == "number":
            continue
        elif kind == "number":
            columns[name] = Column("number", *_PROVISIONAL)
            to_find.append(name)
        elif kind == "boolean":
            columns[name] = Column("boolean")
        else:
            with problems.gathering():
                raise DataError(
                    f"column {name[:60]!r}: expected numbers or truth values where nothing is stated, got a {kind} "
                    'column; describe it or leave it out (type = "ignore") in a bounds file.'
                )
    problems.raise_all()
    if task == "regress" and target.lower is None:
        target = replace(target, lower=lower, upper=upper)
        to_find.append(target.name)
    # At once, because what is filled in for missing cells need not lie within provisional bounds.
    found = tuple(to_find)
    return replace(stated, target=target, columns=columns, found_privately=found), found


def read_text(path: Path, what: str, most: int) -> str:
    """Read a UTF-8 file of at most ``most`` bytes; raise with one sentence if that fails."""
    from taciturn.tables.formats import check_readable

    check_readable(what, path)
    try:
        size = path.stat().st_size
        if size <= most:
            with path.open("rb") as file:
                # At most the size that was checked: the file may be growing.
                return file.read(size).decode("utf-8-sig")
        problem = f"more than {most:,} bytes"
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except OSError as error:
        problem = (error.strerror or "an error").lower()
    raise DataError(f"{what} {path.name!r}: expected a text file that can be read ({problem}); check the name.")


# --- Tables for a fit: arrays where the method or the table asks for them, and else open for reading in partitions.


class StreamEngine:
    """Reads partitions one after the other in this process, and tells ``watch`` how far it is.

    ``memory`` are the bytes for the whole process.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.watch: Callable[[int, int], None] | None = None

    def __call__(self, partitions: Any, facts: Any) -> Any:
        """The source of some partitions."""
        from taciturn.engines.partitions import StreamedSource, held_memory

        return StreamedSource(partitions, facts, memory=held_memory(self._memory), watch=self._tell)

    def _tell(self, done: int, n_partitions: int) -> None:
        if self.watch is not None:
            self.watch(done, n_partitions)


@dataclass(slots=True)
class Table:
    """A table on disk and its public facts, for a fit.

    ``X``, ``y`` and ``persons``, with weights and exposures in ``measured``, are the arguments of ``fit``: arrays
    without an ``engine``, and with one an open table whose partitions it runs. The bounds of the columns
    ``facts.to_find`` are provisional until :meth:`find_bounds` has found them. ``disconnect`` ends what the engine
    needs.
    """

    partitions: TablePartitions
    facts: TableFacts
    engine: Any = None
    disconnect: Callable[[], None] | None = None
    X: Any = None
    y: Any = None
    persons: Any = None
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> TableBounds:
        """The bounds by which features are encoded."""
        return self.partitions.bounds

    @property
    def invalid(self) -> str:
        """What happens to cells that cannot be used."""
        return self.partitions.invalid

    @property
    def task(self) -> Task:
        """The learning task."""
        return self.facts.task

    def target_parameters(self, estimator: Any = None) -> dict[str, Any]:
        """Parameters of an estimator that describe the target: its public bounds, or its public classes.

        Those that ``estimator`` does not have are left out: a selector that ranks targets needs no bounds.
        """
        from taciturn.methods.families import LOSS_OF_KIND

        target = self.bounds.target
        by_task: dict[str, dict[str, Any]] = {
            "classify": {"classes": target.classes},
            "regress": {"y_bounds": (target.lower, target.upper)},
            "survive": {"cuts": target.cuts},
        }
        described = by_task[self.task]
        loss = LOSS_OF_KIND.get(target.kind or "")
        described |= {} if loss is None else {"loss": loss}
        for name in ("weight", "exposure"):
            if (measured := getattr(self.bounds, name)) is not None:
                described[f"{name}_bound"] = measured.upper
        known = described.keys() if estimator is None else estimator.get_params().keys()
        return {name: value for name, value in described.items() if name in known}

    def labels(self) -> list[Any]:
        """The labels in the table, which count as public where the bounds file lists no classes."""
        import numpy as np

        from taciturn.engines.interface import PartitionedTarget, target_labels

        labels: list[Any] = (
            np.unique(self.y) if self.engine is None else target_labels(PartitionedTarget(self.X))
        ).tolist()
        return labels

    def open(self, *, release: bool = False) -> None:
        """Read the arrays, or open the table for the engine; ``release`` if no bounds are to be found any more."""
        from taciturn.data.records import Outcomes

        if self.engine is None:
            self.X = None
            self.X, found, self.persons = self.partitions.read_all(release=release)
            outcomes = Outcomes.of(found)
            self.y, self.measured = outcomes.y, outcomes.given
        else:
            from taciturn.engines.partitions import PartitionedTable

            self.X = PartitionedTable.of_files(self.partitions, self.engine)

    def pay_for_bounds(
        self, folder: OutputFolder, share: float, epsilon: float, delta: float, **budget: Any
    ) -> Certificate | None:
        """Write down that the whole budget is about to be spent, and find bounds with a share of it, if any."""
        folder.begin(epsilon=epsilon, delta=delta, relation=budget["relation"])
        if not share:
            return None
        with stage("finding bounds"):
            spent = self.find_bounds(epsilon=share * epsilon, delta=share * delta, **budget)
        folder.add_release(spent)
        return spent

    def find_bounds(self, **budget: Any) -> Certificate:
        """Find bounds privately and encode the columns by them; return the certificate of that release."""
        from taciturn.methods.scaling.estimator import PrivateScaler

        to_find = self.facts.to_find
        fills = [self.bounds.fill_of(column) for column in to_find]
        # A missing cell that has no value is left out of the search, not its record.
        lacking = any(fill is not None and fill.value is None for fill in fills)
        admission: dict[str, Any] = {"invalid": "null", "missing": "cell"} if lacking else {"invalid": self.invalid}
        try:
            with warnings.catch_warnings():
                # The fit that follows warns of the whole budget.
                warnings.simplefilter("ignore", WeakGuaranteeWarning)
                scaler = PrivateScaler(**admission, **budget).fit(self._unbounded(), persons=self.persons)
        except AccountError:
            raise
        except TaciturnError:
            scaler = None
        if scaler is None:
            raise ParameterError(
                "private_bounds",
                f"a budget of epsilon {budget['epsilon']:g}",
                f"more of it, or more records, to find the bounds of {len(to_find)} columns",
                "state bounds in a bounds file, or give more to it",
            )
        self.partitions = self.partitions.with_bounds(
            self.facts.with_found(scaler.lower_, scaler.upper_), found=to_find
        )
        self.open(release=True)
        certificate: Certificate = scaler.certificate_
        return certificate

    def _unbounded(self) -> Any:
        """The columns whose bounds are to be found, neither clipped nor scaled."""
        from taciturn.tables.partitions import NumberPartitions

        numbers = NumberPartitions(self.partitions, self.facts.to_find)
        if self.engine is None:
            return numbers.read_all()
        from taciturn.engines.partitions import PartitionedTable

        return PartitionedTable.of_files(numbers, self.engine)

    def fit(self, estimator: Any) -> None:
        """Fit an estimator, with its warnings as notes."""
        with warnings_as_notes():
            if self.engine is not None:
                self._fit_in_partitions(estimator)
                return
            with stage("fitting"):
                estimator.fit(self.X, self.y, persons=self.persons, **self.measured)

    def _fit_in_partitions(self, estimator: Any) -> None:
        refused = None
        with self._passes():
            try:
                estimator.fit(self.X)
            except DataError as error:
                refused = error
        if refused is not None:
            self.partitions.raise_problems()
            raise refused
        # As after a fit to the arrays of a table in memory; the names are in the bounds of the model.
        vars(estimator).pop("feature_names_in_", None)

    @contextmanager
    def _passes(self) -> Iterator[None]:
        """Show the passes that a fit makes over the table in this process; elsewhere that it runs."""
        if not isinstance(self.engine, StreamEngine):
            with stage("fitting on dask"):
                yield
            return
        with pass_bar("fitting") as self.engine.watch:
            try:
                yield
            finally:
                self.engine.watch = None

    def close(self) -> None:
        """Remove the copy of a text table, and leave the cluster."""
        self.partitions.close()
        if self.disconnect is not None:
            self.disconnect()

    def compose_certificates(self, spent: Certificate | None, certificate: Certificate) -> Certificate:
        """The certificate of bounds and fit together, with the assumptions about a table on disk."""
        from taciturn.privacy.certificate import compose
        from taciturn.tables.columns import file_assumptions

        layout, sparse, terms = self.bounds.layout, self.facts.schema.sparse, self.bounds.terms
        assumptions = file_assumptions(self.invalid, layout, sparse=sparse, terms=terms)
        held = certificate.assumptions
        if spent is not None:
            certificate = compose(spent, certificate)
            # Bounds that were found privately do depend on the data, and are paid for.
            held = tuple(
                text.replace("the bounds were", "the bounds not found privately were")
                for text in certificate.assumptions
            )
        # A table in partitions has given them to the certificate of the fit already, in another place.
        assumed = (*(text for text in dict.fromkeys(held) if text not in assumptions), *assumptions)
        return replace(certificate, assumptions=assumed, public=with_person(certificate, self.bounds))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings of public facts and of releases as notes; drop all others, which may tell of the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for kind in (WeakBudgetWarning, WeakGuaranteeWarning, SuspiciousReleaseWarning):
            warnings.simplefilter("always", kind)
        yield
    for warning in caught:
        print_note(str(warning.message))


def with_person(certificate: Certificate, bounds: TableBounds) -> dict[str, Any]:
    """The public facts of a certificate, with the column that names the persons it is about."""
    return dict(certificate.public) | ({} if bounds.person is None else {"person column": bounds.person})


def check_share(private_bounds: float | None, facts: TableFacts) -> float:
    """The share of the budget that finds bounds: zero if all bounds are stated."""
    if private_bounds is None:
        return 0.0
    if not 0.0 < private_bounds < 1.0:
        raise ParameterError("private_bounds", private_bounds, "a number in (0, 1)", "give it a share of the budget")
    return private_bounds if facts.to_find else 0.0


def read_whole_table(table: Path, facts: TableFacts, *, invalid: str) -> Table:
    """Read a table into memory; whatever can be wrong with it is found here, before any budget is spent."""
    from taciturn.tables.partitions import open_partitions

    if facts.to_find and facts.schema.sparse:
        raise DataError(
            "table: expected stated bounds for a libsvm file, whose columns are too many to find them; write "
            "[defaults] with lower and upper in the bounds file."
        )
    opened = open_partitions(table, facts.bounds, schema=facts.schema, invalid=invalid, in_memory=True)
    records = Table(opened, facts)
    records.open(release=not facts.to_find)
    opened.check(to_find=facts.to_find)
    if facts.task == "classify" and facts.bounds.target.classes is None:
        check_labels(facts.bounds.target.name, records.y)
    return records


def check_labels(name: str, y: Any) -> None:
    """Raise if a target without stated classes holds fractions, or one class only."""
    import numpy as np

    y = np.asarray(y)
    if y.dtype.kind == "f" and not np.equal(np.mod(y, 1.0), 0.0).all():
        raise DataError(
            f"target {name[:60]!r}: expected labels, got numbers with fractions; list the classes in the bounds file, "
            "or fit with --task regress."
        )
    if len(np.unique(y)) < 2:
        raise DataError(
            f"target {name[:60]!r}: expected at least two classes, got one where none are stated; list the classes in "
            "the bounds file."
        )


Memory = Annotated[
    str | None,
    typer.Option(help="Memory for the command, such as 1GB; larger tables are streamed. [default: half of all]"),
]
Dask = Annotated[
    str | None, typer.Option(help="Address of a dask scheduler whose workers read the table, such as tcp://host:8786.")
]

_DECIMAL = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# A packed text table unpacks to about this many times its size.
_UNPACKED = 4


def parse_memory(memory: str | None) -> int:
    """Bytes of memory; half of the machine's for None."""
    from taciturn.tables.columns import refusal
    from taciturn.tables.formats import machine_memory

    if memory is None:
        return machine_memory() // 2
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([KMGT]?)(I?)B?", memory.strip().upper())
    units = _BINARY if found is not None and found[3] else _DECIMAL
    if found is None or found[2] not in units:
        raise refusal("memory", memory, "a size such as 800MB or 1.5GB", "change it or leave it out")
    return int(float(found[1]) * units[found[2]])


def check_opening(model: Any, facts: TableFacts, table: Path, memory: str | None, dask: str | None) -> None:
    """Raise if the method needs all records in memory and the options or the size of the table forbid it."""
    limit = parse_memory(memory)
    if model.partitions_refused is None:
        return
    remedy = "choose auto, hard-threshold or, for a selection, correlation"
    if dask is not None:
        raise ParameterError("dask", dask, f"a method that reads tables in partitions (not {_name(model)})", remedy)
    # How many rows a person has is private, and must not refuse a table.
    if facts.bounds.person is None and _size(table, facts) > limit:
        raise DataError(
            f"table: expected one that fits the memory for {_name(model)}, which needs all records at once, got a "
            f"larger one; {remedy}, which stream it."
        )


def open_records(
    table: Path, facts: TableFacts, model: Any, *, invalid: str, memory: str | None, dask: str | None
) -> Table:
    """The records of a table for a fit: in memory, or read in partitions where the method can.

    Rows of persons may be scattered over a table, which costs a copy of it where it is read in partitions, so that a
    table of persons is read so only where it has to be. No size of it is refused: how many rows a person has is
    private. The result has to be closed.
    """
    limit = parse_memory(memory)
    whole = model.partitions_refused is not None
    if facts.bounds.person is not None:
        whole = whole or _size(table, facts) <= limit
    if dask is None and whole and not table.is_dir():
        with stage(f"reading {table.name}"):
            return read_whole_table(table, facts, invalid=invalid)
    from taciturn.engines.partitions import open_files

    engine, disconnect = _connect(dask) if dask is not None else (StreamEngine(limit), None)
    with ExitStack() as undone:
        if disconnect is not None:
            undone.callback(disconnect)
        with share_bar(f"reading {table.name}") as progress:
            opened = open_files(
                table, facts.bounds, engine, schema=facts.schema, invalid=invalid, memory=limit, progress=progress
            )
            undone.callback(opened.close)
            if facts.to_find:
                # Else a cell that cannot be used would be found when the bounds are paid for.
                opened.check(progress, facts.to_find)
        records = Table(opened, facts, engine, disconnect)
        records.open()
        if facts.task == "classify" and facts.bounds.target.classes is None:
            check_labels(facts.bounds.target.name, records.labels())
        undone.pop_all()
    return records


def _connect(address: str) -> tuple[Any, Callable[[], None]]:
    """The engine on a cluster, and what leaves the cluster."""
    from taciturn.engines.dask import DaskSource, connect

    with stage("connecting to dask"):
        return DaskSource, connect(address)


def _size(table: Path, facts: TableFacts) -> int:
    """About the bytes of a table as doubles: by its rows and features, or by the size of its text."""
    from taciturn.tables.formats import table_files
    from taciturn.tables.partitions import store_facts

    size = 0
    for file in table_files(table, facts.bounds.layout):
        stored = store_facts(file) if file.has_groups else None
        if stored is not None:
            size += 8 * sum(stored.group_rows) * len(facts.bounds.feature_names)
        else:
            size += file.path.stat().st_size * (_UNPACKED if file.is_packed else 1)
    return size


def _name(model: Any) -> str:
    return type(model).__name__
