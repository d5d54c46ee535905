"""``taciturn fit``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.cli.methods import Method, Task, new_estimator
from taciturn.cli.options import Bounds, Delta, Epsilon, NPublic, PrivateBounds, Relation, Seed, TableFile, Target
from taciturn.cli.output import OutputFolder
from taciturn.cli.records import Records, checked_share, read_records
from taciturn.cli.screen import command_of, print_line, print_model, print_note, print_words, stage
from taciturn.cli.statement import state
from taciturn.core.errors import ParameterError

if TYPE_CHECKING:
    from taciturn.certificate import Certificate
    from taciturn.modelfile import Model

__all__ = ["fit", "parse_nonzero"]


def fit(
    context: typer.Context,
    table: TableFile,
    target: Target = None,
    task: Annotated[
        Task | None, typer.Option(help="regress or classify. [default: what the bounds file says of the target]")
    ] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    method: Annotated[Method, typer.Option(help="Which model; auto is the one to start with.")] = "auto",
    nonzero: Annotated[
        str | None, typer.Option(help="How many features to keep, or auto to choose that privately. [default: 10]")
    ] = None,
    bounds: Bounds = None,
    private_bounds: PrivateBounds = None,
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for model.json, certificate.json and report.html.")
    ] = Path("model"),
    seed: Seed = None,
) -> None:
    """Fit a sparse model to a table privately; write the model, its certificate and a report.

    Example: taciturn fit patients.csv --bounds bounds.toml --epsilon 1 --nonzero 5 -o model
    """
    statement = state(table, target, task, bounds, find=private_bounds is not None)
    share = checked_share(private_bounds, statement)
    budget: dict[str, Any] = {"relation": relation, "n_public": n_public, "random_state": seed}
    # Made before anything is read, so that bad options are refused first.
    model = new_estimator(
        method,
        statement.task,
        parse_nonzero(nonzero),
        epsilon=(1.0 - share) * epsilon,
        delta=(1.0 - share) * delta,
        **budget,
    )
    with OutputFolder(output) as folder:
        with stage(f"reading {table.name}"):
            records = read_records(table, statement)
        folder.begin(epsilon=epsilon, delta=delta, relation=relation)
        spent = None
        if share:
            with stage("finding bounds"):
                spent = records.find_bounds(epsilon=share * epsilon, delta=share * delta, **budget)
            folder.drawn(spent.to_json())
        with stage("fitting"):
            fitted = _fitted(model, records, command_of(context), spent)
        folder.drawn(fitted.certificate.to_json())
        with stage("writing"):
            folder.write("model.json", fitted.to_json() + "\n")
            folder.write("report.html", _report(fitted))
    print_model(fitted)
    print_words(fitted.certificate)
    print_line(f"written: {output}: model.json, certificate.json, report.html")


def _fitted(estimator: Any, records: Records, command: str, spent: Certificate | None) -> Model:
    """The model; its certificate has the price of the bounds in it, if they had one."""
    from taciturn.certificate import compose
    from taciturn.core.errors import WeakBudgetWarning
    from taciturn.modelfile import Model

    estimator.set_params(**records.target_parameters())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeakBudgetWarning)
        estimator.fit(records.X, records.y)
    for warning in caught:
        print_note(str(warning.message))
    if spent is not None:
        estimator.certificate_ = compose(spent, estimator.certificate_)
    return Model.of(records.bounds, records.schema, estimator, command)


def _report(model: Model) -> str:
    from taciturn.report import model_report

    return model_report(model)


def parse_nonzero(nonzero: str | None) -> int | str | None:
    """A number of features, "auto", or None for the method's own."""
    if nonzero is None or nonzero == "auto":
        return nonzero
    if nonzero.isdecimal() and int(nonzero) > 0:
        return int(nonzero)
    raise ParameterError("nonzero", nonzero, "a whole number > 0, or auto", "change it or leave it out")
