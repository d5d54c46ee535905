"""``taciturn budget``: accounts that keep count of what was spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from taciturn.cli.endings import FAILED
from taciturn.cli.ledger_files import read_ledger
from taciturn.cli.limits import within_memory_limit
from taciturn.cli.options import Delta, Public, Relation, checked_budget
from taciturn.cli.output import replace_file
from taciturn.cli.screen import print_error, print_line
from taciturn.core.errors import AccountError, ParameterError
from taciturn.core.visible import visible

if TYPE_CHECKING:
    from taciturn.certificate import Certificate

__all__ = ["budget"]

budget = typer.Typer(
    name="budget",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Accounts: privacy budgets in a database, from which every fit reserves before it draws noise.",
    epilog="Example: taciturn budget create sqlite:///study.db#patients-2026 --epsilon 3 --delta 1e-5 --records 20000",
)

_MOST_CERTIFICATE = 1 << 30
"""Largest size of a file with a certificate in bytes, model files included."""

Where = Annotated[
    str,
    typer.Argument(
        metavar="URL#NAME", help="The account, such as sqlite:///study.db#patients-2026.", show_default=False
    ),
]


def create(
    account: Where,
    epsilon: Annotated[float, typer.Option(callback=checked_budget, help="For everything that it ever pays for.")],
    delta: Delta,
    records: Annotated[
        int | None, typer.Option(min=1, help="Public number of records, or of persons. Required except for add-remove.")
    ] = None,
    relation: Relation = "zero-out",
    unit: Annotated[Literal["record", "person"], typer.Option(help="Whose data neighbours differ in.")] = "record",
    person_column: Annotated[
        str | None, typer.Option(help="Column with the keys of the persons, with --unit person. Others are refused.")
    ] = None,
    approximate: Annotated[
        tuple[float, float],
        typer.Option(help="Epsilon and delta, part of the whole, for fits by objective perturbation.", metavar="E D"),
    ] = (0.0, 0.0),
    fingerprint: Annotated[
        Path | None, typer.Option(help="Table whose keyed fingerprint is stored, to notice it under a second name.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="File with the secret key of the fingerprint, at least 16 bytes.")
    ] = None,
) -> None:
    """Open an account. What is stated here is fixed for good.

    Example: taciturn budget create sqlite:///study.db#patients-2026 --epsilon 3 --delta 1e-5 --records 20000
    """
    from taciturn.accounts import Account
    from taciturn.accounts.location import location_of
    from taciturn.cli.fingerprints import fingerprint_of

    url, name = location_of(account)
    if (fingerprint is None) != (key is None):
        raise ParameterError("key", key and str(key), "--fingerprint TABLE and --key FILE together", "give both")
    if unit == "person" and person_column is None:
        raise ParameterError(
            "person_column", None, "the column with the keys of the persons", "name it with --person-column"
        )
    opened = Account.create(
        url,
        name,
        epsilon=epsilon,
        delta=delta,
        n=records,
        relation=relation,
        unit=unit,
        person_column=person_column,
        approximate=approximate,
        fingerprint=None if fingerprint is None or key is None else fingerprint_of(fingerprint, key),
    )
    print_line(f"opened: account {name}, epsilon {epsilon:g}, delta {delta:g}, head {opened.state().head}")
    print_line("pass it to what spends: taciturn fit --account, select and score; account= in Python")


def show(account: Where) -> None:
    """Show what an account guarantees, what is spent, reserved and left, and the last fits.

    Example: taciturn budget show sqlite:///study.db#patients-2026
    """
    from taciturn.accounts.contents import check_entries
    from taciturn.cli.budget_screen import print_account

    print_account(check_entries(read_ledger(account)))


def history(
    account: Where,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of a table.")] = False,
) -> None:
    """List every charge of an account: when, what, how much, and what became of it.

    Example: taciturn budget history sqlite:///study.db#patients-2026 --json
    """
    from taciturn.accounts.contents import check_entries
    from taciturn.cli.budget_screen import history_as_json, print_history

    entries = check_entries(read_ledger(account))
    if as_json:
        print_line(history_as_json(entries))
    else:
        print_history(entries)


def verify(
    ledger: Annotated[
        str, typer.Argument(metavar="URL#NAME|FILE", help="The account, or a JSONL export of it.", show_default=False)
    ],
    certificates: Annotated[
        list[Path] | None,
        typer.Argument(help="Certificates, models, selections or scores, or folders of fits.", show_default=False),
    ] = None,
) -> None:
    """Check the chain of an account, its totals, and that it paid for what certificates list; offline on an export.

    Example: taciturn budget verify ledger.jsonl model score.json
    """
    from taciturn.accounts.contents import check_entries
    from taciturn.study.ledgers import check_heads

    entries = check_entries(read_ledger(ledger))
    found = {str(path): _read_certificate(path) for path in certificates or ()}
    verdicts = check_heads(found, entries)
    print_line(f"account {entries[0].account}: chain and totals hold, {len(entries)} entries, head {entries[-1].hash}")
    reached = 0
    for name, verdict in verdicts.items():
        if isinstance(verdict, AccountError):
            print_error(f"{name}: {verdict}")
        else:
            numbers = ", ".join(str(entry.sequence) for entry in verdict)
            print_line(f"{name}: paid for by entry {numbers}")
            reached = max(reached, *(entry.sequence for entry in verdict))
    if reached:
        print_line(f"certificates reach entry {reached}: a ledger cut or set back to before it would have been noticed")
    elif not verdicts:
        print_line("no certificate given: a ledger that was cut at its end, or set back, looks the same without one")
    if any(isinstance(verdict, AccountError) for verdict in verdicts.values()):
        raise typer.Exit(FAILED)


def export(
    account: Where,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="ledger.jsonl, one entry per line for auditors, or account.html, a page."),
    ],
    public: Public = False,
) -> None:
    """Write an account as JSONL for auditors, or as one HTML page with pictures.

    Example: taciturn budget export sqlite:///study.db#patients-2026 --output ledger.jsonl
    """
    from taciturn.report import account_page

    kind = output.suffix.lower()
    if kind not in (".jsonl", ".html"):
        raise ParameterError("output", str(output), "a name that ends in .jsonl or .html", "choose one of the two")
    entries = read_ledger(account)
    lines = "".join(f"{entry.to_json()}\n" for entry in entries)
    replace_file(output, lines if kind == ".jsonl" else account_page(entries), public=public)
    print_line(f"written: {output}, {len(entries)} entries, head {entries[-1].hash}")


for _command in (create, show, history, verify, export):
    budget.command()(within_memory_limit(_command))


def _read_certificate(path: Path) -> Certificate:
    """The certificate in a file: by itself, or inside a model, a selection or a score."""
    from taciturn.certificate import Certificate
    from taciturn.cli.output import CERTIFICATE_NAME
    from taciturn.cli.table_facts import read_text
    from taciturn.core.errors import CertificateError

    text = read_text(path / CERTIFICATE_NAME if path.is_dir() else path, "certificate", _MOST_CERTIFICATE)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict) and isinstance(content.get("certificate"), dict):
        text = json.dumps(content["certificate"])
    try:
        return Certificate.from_json(text)
    except CertificateError as error:
        raise AccountError(f"{visible(str(path))}: {error}") from None
