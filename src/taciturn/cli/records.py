"""Tables in memory, encoded for a fit, and the bounds by which they are encoded."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.cli.methods import Task
from taciturn.cli.output import OutputFolder
from taciturn.cli.screen import print_note, stage
from taciturn.cli.table_facts import TableFacts
from taciturn.core.errors import (
    AccountError,
    DataError,
    ParameterError,
    SuspiciousReleaseWarning,
    TaciturnError,
    WeakBudgetWarning,
    WeakGuaranteeWarning,
)

if TYPE_CHECKING:
    from taciturn.certificate import Certificate
    from taciturn.tables import TableBounds

__all__ = [
    "EncodedTable",
    "check_labels",
    "check_share",
    "read_encoded_table",
    "warnings_as_notes",
    "with_person",
]


@dataclass(slots=True)
class EncodedTable:
    """A table in memory: encoded features, the target, and public facts.

    The bounds by which the features are encoded are provisional until :meth:`find_bounds` has found them; until then
    ``unbounded`` holds the columns whose bounds are to be found, neither clipped nor scaled. ``persons`` are the keys
    of the persons that rows are about, where the bounds name their column.
    """

    X: Any
    y: Any
    bounds: TableBounds
    facts: TableFacts
    invalid: str
    unbounded: Any = None
    persons: Any = None

    @property
    def task(self) -> Task:
        """The learning task."""
        return self.facts.task

    def target_parameters(self, estimator: Any = None) -> dict[str, Any]:
        """Parameters of an estimator that describe the target: its public bounds, or its public classes.

        They are left out if ``estimator`` does not have them: a selector that ranks targets needs no bounds.
        """
        target = self.bounds.target
        described = (
            {"classes": target.classes} if self.task == "classify" else {"y_bounds": (target.lower, target.upper)}
        )
        return described if estimator is None or described.keys() <= estimator.get_params().keys() else {}

    def labels(self) -> list[Any]:
        """The labels in the table, which count as public where the bounds file lists no classes."""
        import numpy as np

        labels: list[Any] = np.unique(self.y).tolist()
        return labels

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
        from taciturn import PrivateScaler

        to_find = self.facts.to_find
        try:
            with warnings.catch_warnings():
                # The fit that follows warns of the whole budget.
                warnings.simplefilter("ignore", WeakGuaranteeWarning)
                scaler = PrivateScaler(**self._admission(), **budget).fit(self.unbounded, persons=self.persons)
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
        self.bounds = self.facts.with_found(scaler.lower_, scaler.upper_)
        self._encode(scaler)
        self.unbounded = None
        certificate: Certificate = scaler.certificate_
        return certificate

    def _encode(self, scaler: Any) -> None:
        """Encode the columns whose bounds were found."""
        import numpy as np

        to_find, name = self.facts.to_find, self.bounds.target.name
        scaled = scaler.transform(self.unbounded)
        places = {feature: place for place, feature in enumerate(self.bounds.feature_names)}
        for at, column in enumerate(to_find):
            if column != name:
                # Where a cell is missing, the feature is the middle of the bounds, and another one says so.
                middle = np.isnan(scaled[:, at]) & self._may_lack(column)
                self.X[:, places[column]] = np.where(middle, 0.0, scaled[:, at])
        if name in to_find:
            self.y = self.unbounded[:, to_find.index(name)]

    def _may_lack(self, column: str) -> bool:
        """Whether cells of a column may be missing without a value in their place."""
        fill = self.facts.bounds.fill_of(column)
        return fill is not None and fill.value is None

    def _admission(self) -> dict[str, Any]:
        """How the search for bounds treats missing cells: one that has no value is left out, not its record."""
        lacking = [self._may_lack(column) for column in self.facts.to_find]
        if not any(lacking):
            return {"invalid": self.invalid}
        self._leave_out(lacking)
        return {"invalid": "null", "missing": "cell"}

    def _leave_out(self, lacking: list[bool]) -> None:
        """Leave a record with a cell that cannot be used out of the search in all columns, and out of the fit."""
        import numpy as np

        wrong = np.where(lacking, np.isinf(self.unbounded), ~np.isfinite(self.unbounded)).any(axis=1)
        self.unbounded[wrong] = np.nan
        self.X[wrong] = np.nan

    def fit(self, estimator: Any) -> None:
        """Fit an estimator, with its warnings as notes."""
        with warnings_as_notes():
            self._run(estimator)

    def _run(self, estimator: Any) -> None:
        with stage("fitting"):
            estimator.fit(self.X, self.y, persons=self.persons)

    def close(self) -> None:
        """Nothing has to be given back of a table in memory."""

    def compose_certificates(self, spent: Certificate | None, certificate: Certificate) -> Certificate:
        """The certificate of bounds and fit together, with the assumptions about a table on disk."""
        from taciturn.certificate import compose
        from taciturn.tables.schema import file_assumptions

        assumptions = file_assumptions(self.invalid, self.bounds.layout, sparse=self.facts.schema.sparse)
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


def read_encoded_table(table: Path, facts: TableFacts, *, invalid: str) -> EncodedTable:
    """Read a whole table; whatever can be wrong with it is found here, before any budget is spent."""
    from taciturn.tables import read_person_keys, read_table, read_unbounded_table

    bounds, schema, unbounded = facts.bounds, facts.schema, None
    if not facts.to_find:
        X, y = read_table(table, bounds, bounds.target.name, schema=schema, invalid=invalid)
    elif schema.sparse:
        raise DataError(
            "table: expected stated bounds for a libsvm file, whose columns are too many to find them; write "
            "[defaults] with lower and upper in the bounds file."
        )
    else:
        X, y, unbounded = read_unbounded_table(table, bounds, facts.to_find, schema, invalid=invalid)
    if facts.task == "classify" and bounds.target.classes is None:
        check_labels(bounds.target.name, y)
    return EncodedTable(X, y, bounds, facts, invalid, unbounded, read_person_keys(table, bounds, schema=schema))


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
