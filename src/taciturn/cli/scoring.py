"""``taciturn score``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.accounts.location import hide_password
from taciturn.cli.endings import complete
from taciturn.cli.options import Invalid, NPublic, Public, Relation, Seed, Sign, TableFile, checked_budget
from taciturn.cli.output import OutputFile, replace_file
from taciturn.cli.paying import AccountOption, charge_refusals, open_payer, print_payer
from taciturn.cli.records import warnings_as_notes, with_person
from taciturn.cli.score_screen import print_score
from taciturn.cli.screen import print_line, stage
from taciturn.cli.showing import ModelFile, read_model
from taciturn.cli.signing import read_signing_key, sign_beside
from taciturn.core.errors import ParameterError

if TYPE_CHECKING:
    from taciturn.estimators.model_score import ModelScore, PrivateScore
    from taciturn.modelfile import Model

__all__ = ["score"]


def score(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[
        float | None,
        typer.Option(callback=checked_budget, help="Privacy budget of the score. [default: none, for a public table]"),
    ] = None,
    delta: Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")] = 0.0,
    metric: Annotated[
        Literal["all", "auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"],
        typer.Option(help="all: every measure from one release. auto: accuracy, or mean squared error of a regressor."),
    ] = "all",
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    invalid: Invalid = "raise",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="JSON file for the score and its certificate. [default: score.json with --epsilon]"
        ),
    ] = None,
    account: AccountOption = None,
    seed: Seed = None,
    public: Public = False,
    sign: Sign = None,
) -> None:
    """Say how good a model is on a table that is public, or privately with a budget of its own.

    Example: taciturn score model/model.json holdout.csv --epsilon 0.5
    """
    from math import inf

    from taciturn.mechanisms import rounded_gaussian
    from taciturn.modelfile import ScoreFile, model_digest

    key = read_signing_key(sign)
    if key is not None and epsilon is None and output is None:
        raise ParameterError("sign", str(sign), "a file to sign", "name one with --output")
    if account is not None and epsilon is None:
        raise ParameterError("account", hide_password(account), "--epsilon beside it", "give a budget, or leave it out")
    payer = open_payer(account, seed)
    read = read_model(model)
    options = {
        "delta": delta,
        "relation": relation,
        "n_public": n_public,
        "invalid": invalid,
        "account": payer,
        "random_state": seed,
    }
    if epsilon is None:
        if output is not None and output.is_file():
            raise ParameterError("output", str(output), "a file that is not there yet", "choose another name")
        records = _read_records(read, table, invalid, needs_persons=False)
        result = _score(read, *records, metric, epsilon=inf, **options)
        if output is not None:
            text = ScoreFile(result, model_digest(read)).to_json()
            replace_file(output, text, public=public, exclusive=True)
            sign_beside(output, text, key, public=public)
        print_score(result, read.bounds.target.name)
        return
    place = Path("score.json") if output is None else output
    done = f"the score in {place} is complete and its budget is spent: do not score again"
    with OutputFile(place, public=public, done=done) as file:
        with charge_refusals(payer, epsilon, delta, what="private_score", relation=relation, bounds=read.bounds):
            records = _read_records(read, table, invalid, needs_persons=True)
        if delta > 0.0:
            # Gaussian noise is compiled before the file says that the budget is being spent.
            with stage("preparing"):
                rounded_gaussian.warm_up()
        file.begin(epsilon=epsilon, delta=delta, relation=relation)
        result = _score(read, *records, metric, epsilon=epsilon, **options)
        text = ScoreFile(result, model_digest(read)).to_json()
        file.finish(text)
        sign_beside(place, text, key, public=public)
    with complete(done):
        print_score(result, read.bounds.target.name)
        if payer is None:
            print_line("If these records were also used to fit the model, the certificates add up (taciturn.compose).")
        else:
            print_payer(payer)
        print_line(f"written: {place}{' and its signature' if key else ''}")


def _read_records(read: Model, table: Path, invalid: str, *, needs_persons: bool) -> tuple[Any, Any, Any]:
    """Features, targets, and keys of persons if the model's table had them; a public table may do without."""
    from taciturn.tables import read_person_keys, read_schema, read_table

    with stage(f"reading {table.name}"):
        X, y = read_table(table, read.bounds, read.bounds.target.name, invalid=invalid)
        person = read.bounds.person
        if person is None or (not needs_persons and person not in read_schema(table, read.bounds.layout).names):
            return X, y, None
        return X, y, read_person_keys(table, read.bounds)


def _score(read: Model, X: Any, y: Any, persons: Any, metric: Any, **options: Any) -> PrivateScore | ModelScore:
    from taciturn import private_score
    from taciturn.tables.schema import file_assumptions

    with stage("scoring"), warnings_as_notes():
        score: PrivateScore | ModelScore
        score = private_score(read.estimator, X, y, metric=metric, persons=persons, **options)
    certificate = score.certificate
    of_file = file_assumptions(options["invalid"], read.bounds.layout, sparse=hasattr(X, "tocsr"))
    assumptions = (*certificate.assumptions, *of_file)
    public = dict(certificate.public) if persons is None else with_person(certificate, read.bounds)
    return replace(score, certificate=replace(certificate, assumptions=assumptions, public=public))
