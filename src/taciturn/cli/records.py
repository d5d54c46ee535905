"""The records of a table as a fit takes them, and their bounds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.cli.methods import Task
from taciturn.cli.output import OutputFolder
from taciturn.cli.screen import print_note, stage
from taciturn.cli.statement import Statement
from taciturn.core.errors import DataError, ParameterError, TaciturnError, WeakBudgetWarning

if TYPE_CHECKING:
    from taciturn.certificate import Certificate
    from taciturn.tables import TableBounds, TableSchema

__all__ = ["Records", "checked_share", "read_records"]


@dataclass(slots=True)
class Records:
    """A table in memory.

    Parameters
    ----------
    X, y : ndarray or sparse matrix, ndarray
        Encoded features and the target.
    bounds : TableBounds
        What they were encoded by; provisional where bounds are to be found.
    task : {"regress", "classify"}
        What the target asks for.
    schema : TableSchema
        Names and types of the table's columns.
    statement : Statement
        What was stated, and what is to be found.
    raw : ndarray, default=None
        The columns whose bounds are to be found, as they are.
    """

    X: Any
    y: Any
    bounds: TableBounds
    task: Task
    schema: TableSchema
    statement: Statement
    raw: Any = None

    def target_parameters(self, estimator: Any = None) -> dict[str, Any]:
        """What an estimator is told about the target: its public range, or its public classes.

        A selector that ranks targets needs no range; ``estimator`` tells whether this one has the parameter.
        """
        target = self.bounds.target
        told = {"classes": target.classes} if self.task == "classify" else {"y_bounds": (target.lower, target.upper)}
        return told if estimator is None or told.keys() <= estimator.get_params().keys() else {}

    def pay_for_bounds(
        self, folder: OutputFolder, share: float, epsilon: float, delta: float, **budget: Any
    ) -> Certificate | None:
        """State that the whole budget is about to be spent, and find bounds with a share of it, if there is one."""
        folder.begin(epsilon=epsilon, delta=delta, relation=budget["relation"])
        if not share:
            return None
        with stage("finding bounds"):
            spent = self.find_bounds(epsilon=share * epsilon, delta=share * delta, **budget)
        folder.released(spent)
        return spent

    def find_bounds(self, **budget: Any) -> Certificate:
        """Find bounds privately and encode the columns by them; return what that cost."""
        from taciturn import PrivateScaler

        to_find, name = self.statement.to_find, self.bounds.target.name
        try:
            scaler = PrivateScaler(**budget).fit(self.raw)
        except TaciturnError:
            scaler = None
        if scaler is None:
            raise ParameterError(
                "private_bounds",
                f"a budget of epsilon {budget['epsilon']:g}",
                f"more of it, or more records, to find the bounds of {len(to_find)} columns",
                "state bounds in a bounds file, or give more to it",
            )
        self.bounds = self.statement.with_found(scaler.lower_, scaler.upper_)
        scaled = scaler.transform(self.raw)
        places = {feature: place for place, feature in enumerate(self.bounds.feature_names)}
        for at, column in enumerate(to_find):
            if column != name:
                self.X[:, places[column]] = scaled[:, at]
        if name in to_find:
            self.y = self.raw[:, to_find.index(name)]
        self.raw = None
        return scaler.certificate_

    def fit(self, estimator: Any) -> None:
        """Fit, and pass on the warnings that rest on public facts; all others might tell of the data."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", WeakBudgetWarning)
            estimator.fit(self.X, self.y)
        for warning in caught:
            print_note(str(warning.message))

    def certificate_of_all(self, spent: Certificate | None, certificate: Certificate) -> Certificate:
        """The certificate of bounds and fit together, with what a table on disk assumes besides."""
        from taciturn.certificate import compose

        assumptions = ["the names and types of the table's columns are public"]
        if self.schema.sparse:
            assumptions.append("the largest column number of the table is public")
        held = certificate.assumptions
        if spent is not None:
            certificate = compose(spent, certificate)
            # Bounds that were found are paid for; they did come from the data.
            held = tuple(
                text.replace("the bounds were", "the bounds not found privately were")
                for text in certificate.assumptions
            )
        return replace(certificate, assumptions=(*held, *assumptions))


def checked_share(private_bounds: float | None, statement: Statement) -> float:
    """The share of the budget for bounds; none where all are stated."""
    if private_bounds is None:
        return 0.0
    if not 0.0 < private_bounds < 1.0:
        raise ParameterError("private_bounds", private_bounds, "a number in (0, 1)", "give it a share of the budget")
    return private_bounds if statement.to_find else 0.0


def read_records(table: Path, statement: Statement) -> Records:
    """Read a table whole; everything that can be wrong with it is found here, before anything is spent."""
    import numpy as np
    import scipy.sparse as sp

    from taciturn.tables import read_numbers, read_table

    unknown = len(statement.to_find)
    bounds = statement.with_found(np.full(unknown, -1.0), np.ones(unknown)) if unknown else statement.bounds
    X, y = read_table(table, bounds, bounds.target.name)
    if statement.task == "classify" and bounds.target.classes is None:
        _check_labels(bounds.target.name, y)
    raw = None
    if unknown:
        if sp.issparse(X):
            raise DataError(
                "table: expected stated bounds for a libsvm file, whose columns are too many to find them; write "
                "[defaults] with lower and upper in the bounds file."
            )
        raw = read_numbers(table, statement.to_find)
    return Records(X, y, bounds, statement.task, statement.schema, statement, raw)


def _check_labels(name: str, y: Any) -> None:
    """Labels that nobody stated must be labels, and more than one."""
    import numpy as np

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
