"""``taciturn fit``."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.endings import complete
from taciturn.cli.methods import Method, add_inference, check_persons, check_two_classes, new_estimator, warm_up
from taciturn.cli.model_screen import print_model
from taciturn.cli.opening import Dask, Memory, check_opening, open_records
from taciturn.cli.options import (
    Bounds,
    Delta,
    Epsilon,
    Invalid,
    NPublic,
    PrivateBounds,
    Public,
    Relation,
    Seed,
    Sign,
    TableFile,
    Target,
    TaskOption,
)
from taciturn.cli.output import OutputFolder
from taciturn.cli.paying import AccountOption, charge_refusals, open_payer, print_payer
from taciturn.cli.records import check_share
from taciturn.cli.screen import format_command, print_certificate, print_line, stage
from taciturn.cli.signing import SIGNED, read_signing_key
from taciturn.cli.table_facts import gather_table_facts
from taciturn.tables.words import refusal

__all__ = ["fit", "parse_nonzero"]


def fit(
    context: typer.Context,
    table: TableFile,
    target: Target = None,
    task: TaskOption = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    method: Annotated[Method, typer.Option(help="The model; start with auto.")] = "auto",
    nonzero: Annotated[
        str | None,
        typer.Option(help="Number of features to keep, all, or auto to choose it privately. [default: 10]"),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns of the model, with commas between them. [default: it chooses them]")
    ] = None,
    inference: Annotated[
        bool, typer.Option("--inference", help="Standard errors, intervals and p-values for the coefficients.")
    ] = False,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence level of the intervals, in [0.5, 1). [default: 0.95]")
    ] = None,
    bounds: Bounds = None,
    private_bounds: PrivateBounds = None,
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    invalid: Invalid = "raise",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for model.json, certificate.json and report.html.")
    ] = Path("model"),
    memory: Memory = None,
    dask: Dask = None,
    account: AccountOption = None,
    seed: Seed = None,
    public: Public = False,
    sign: Sign = None,
    full: Annotated[bool, typer.Option("--full", help="Print all coefficients and the whole certificate.")] = False,
) -> None:
    """Fit a sparse model to a table privately; write the model, its certificate and a report.

    Example: taciturn fit patients.csv --bounds bounds.toml --epsilon 1 --nonzero 5 -o model
    """
    from taciturn.certificate.words import in_short
    from taciturn.modelfile import Model
    from taciturn.report import model_report

    key = read_signing_key(sign)
    payer = open_payer(account, seed)
    facts = gather_table_facts(table, target, task, bounds, find=private_bounds is not None)
    share = check_share(private_bounds, facts)
    kept, asked = parse_nonzero(nonzero), dict[str, Any]()
    add_inference(
        asked, method, inference=inference, confidence=confidence, columns=columns, nonzero=kept, bounds=facts.bounds
    )
    if inference:
        check_two_classes(facts.bounds.target.classes or ())
    budget: dict[str, Any] = {"relation": relation, "n_public": n_public, "account": payer, "random_state": seed}
    model = new_estimator(
        method,
        facts.task,
        kept,
        epsilon=(1.0 - share) * epsilon,
        delta=(1.0 - share) * delta,
        invalid=invalid,
        **asked,
        **budget,
    )
    model.check_parameters()
    check_persons(model, facts.bounds)
    check_opening(model, facts, table, memory, dask)
    # Before anything is spent: the names of files need not be UTF-8.
    command = format_command(context)
    done = f"the model in {output} is complete and its budget is spent: do not fit it again"
    with OutputFolder(output, public=public, done=done) as folder, ExitStack() as opened:
        paid: dict[str, Any] = {"what": type(model).__name__, "relation": relation, "bounds": facts.bounds}
        with charge_refusals(payer, epsilon, delta, **paid):
            records = open_records(table, facts, model, invalid=invalid, memory=memory, dask=dask)
            opened.callback(records.close)
        if inference and facts.task == "classify":
            check_two_classes(facts.bounds.target.classes or records.labels())
        warm_up(model, records.X)
        spent = records.pay_for_bounds(folder, share, epsilon, delta, **budget)
        model.set_params(**records.target_parameters())
        records.fit(model)
        folder.add_release(model.certificate_)
        model.certificate_ = records.compose_certificates(spent, model.certificate_)
        folder.finish(model.certificate_)
        fitted = Model(records.bounds, model, command)
        folder.write_result("model.json", fitted.to_json() + "\n")
        with complete(f"{done}; taciturn report writes its page"), stage("writing"):
            try:
                folder.write("report.html", model_report(fitted))
            finally:
                folder.sign(key)
    with complete(done):
        print_model(fitted, full=full)
        if full:
            print_certificate(fitted.certificate)
        else:
            print_line(f"guarantee: {in_short(fitted.certificate)}")
        print_payer(payer)
        files = f"model.json, certificate.json, report.html{SIGNED if key else ''}"
        print_line(f"written: {output}: {files}{'' if full else f' (taciturn show {output})'}")


def parse_nonzero(nonzero: str | None) -> int | str | None:
    """Parse a number of features; return "auto", "all" and None, the method's default, unchanged."""
    if nonzero is None or nonzero in ("auto", "all"):
        return nonzero
    if re.fullmatch("0*[1-9][0-9]{0,8}", nonzero):
        return int(nonzero)
    raise refusal("nonzero", nonzero, "a whole number > 0, auto or all", "change it or leave it out")
