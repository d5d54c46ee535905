"""``taciturn select``."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.endings import complete
from taciturn.cli.methods import SelectionMethod, check_persons, new_selector, warm_up
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
from taciturn.cli.screen import console, format_command, print_certificate, print_line, print_note, shown_text
from taciturn.cli.signing import SIGNED, read_signing_key
from taciturn.cli.table_facts import gather_table_facts

__all__ = ["select"]


def select(
    context: typer.Context,
    table: TableFile,
    target: Target = None,
    task: TaskOption = None,
    keep: Annotated[int, typer.Option(min=1, help="Number of features to select.")] = 10,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    method: Annotated[SelectionMethod, typer.Option(help="The scores that rank the features.")] = "correlation",
    bounds: Bounds = None,
    private_bounds: PrivateBounds = None,
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    invalid: Invalid = "raise",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for selection.json and certificate.json.")
    ] = Path("selection"),
    memory: Memory = None,
    dask: Dask = None,
    account: AccountOption = None,
    seed: Seed = None,
    public: Public = False,
    sign: Sign = None,
) -> None:
    """Select features of a table privately, without fitting a model.

    Example: taciturn select genes.parquet --bounds bounds.toml --keep 20 --epsilon 2
    """
    key = read_signing_key(sign)
    payer = open_payer(account, seed)
    facts = gather_table_facts(table, target, task, bounds, find=private_bounds is not None)
    share = check_share(private_bounds, facts)
    budget: dict[str, Any] = {"relation": relation, "n_public": n_public, "account": payer, "random_state": seed}
    selector = new_selector(
        method,
        epsilon=(1.0 - share) * epsilon,
        delta=(1.0 - share) * delta,
        n_features_to_select=keep,
        invalid=invalid,
        **budget,
    )
    check_persons(selector, facts.bounds)
    check_opening(selector, facts, table, memory, dask)
    # Before anything is spent: the names of files need not be UTF-8.
    command = format_command(context)
    done = f"the selection in {output} is complete and its budget is spent: do not select again"
    with OutputFolder(output, public=public, done=done) as folder, ExitStack() as opened:
        paid: dict[str, Any] = {"what": type(selector).__name__, "relation": relation, "bounds": facts.bounds}
        with charge_refusals(payer, epsilon, delta, **paid):
            records = open_records(table, facts, selector, invalid=invalid, memory=memory, dask=dask)
            opened.callback(records.close)
        n_features = len(records.bounds.feature_names)
        if keep >= n_features:
            print_note(f"keep={keep} keeps all {n_features} features.")
        warm_up(selector, records.X)
        spent = records.pay_for_bounds(folder, share, epsilon, delta, **budget)
        records.fit(selector.set_params(**records.target_parameters(selector)))
        folder.add_release(selector.certificate_)
        certificate = records.compose_certificates(spent, selector.certificate_)
        folder.finish(certificate)
        names = [records.bounds.feature_names[place] for place in selector.get_support(indices=True)]
        content = {
            "format": "taciturn selection",
            "version": 1,
            "target": records.bounds.target.name,
            "features": names,
            "command": command,
            "certificate": json.loads(certificate.to_json()),
        }
        folder.write_result("selection.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        folder.sign(key)
    with complete(done):
        _print_names(names, n_features)
        print_certificate(certificate)
        print_payer(payer)
        print_line(f"written: {output}: selection.json, certificate.json{SIGNED if key else ''}")


def _print_names(names: list[str], n_features: int) -> None:
    from rich.table import Table

    table = Table(title=f"{len(names)} of {n_features:,} features, in the order of the table")
    table.add_column("feature", style="bold")
    for name in names:
        table.add_row(shown_text(name))
    console().print(table)
