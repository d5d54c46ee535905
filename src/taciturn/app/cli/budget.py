"""The command budget and its screens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from taciturn.app.cli.output import replace_file
from taciturn.app.cli.screen import FAILED, console, print_error, print_line, shown_text, within_memory_limit
from taciturn.app.cli.show import read_ledger
from taciturn.app.cli.tables import Delta, Public, Relation, checked_budget
from taciturn.core.errors import AccountError, ParameterError, visible

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from taciturn.privacy.account import AccountState, Balance, Charge
    from taciturn.privacy.certificate import Certificate
    from taciturn.privacy.ledger import LedgerEntry


# --- An account on one screen: the guarantee, bars for its budgets, spending by date, the last fits.

_LAST = 5
_MOST_DATES = 6
_WIDTH = 30
_STYLES = ("blue", "yellow", "bright_black")
_BLOCKS, _LETTERS = "█▓░", "#=."


def print_account(entries: Sequence[LedgerEntry]) -> None:
    """Print the state of an account."""
    from rich.panel import Panel

    from taciturn.app.report.account import explain_account, list_affordable
    from taciturn.privacy.account import charges_of, state_of

    state, charges = state_of(entries[0], list(entries)), charges_of(list(entries))
    screen = console()
    screen.print(Panel(shown_text(" ".join(explain_account(state))), title=shown_text(f"Account {state.name}")))
    screen.print(_balances_table(state.balances))
    if state.total.gaussian:
        said = ", or ".join(f"epsilon {epsilon} at delta {delta:g}" for delta, epsilon in list_affordable(state))
        print_line(f"A Gaussian fit can still take {said}.")
    if any(charge.state != "released" for charge in charges):
        screen.print(_dates_table(charges, state.balances))
    if charges:
        shown = f"The last {_LAST} of {len(charges)} charges" if len(charges) > _LAST else "All charges"
        screen.print(_charges_table(charges[-_LAST:], state, shown))
    print_line(f"chain: {state.entries} {'entry' if state.entries == 1 else 'entries'}, intact, head {state.head}")


def print_history(entries: Sequence[LedgerEntry]) -> None:
    """Print every charge of an account."""
    from taciturn.privacy.account import charges_of, state_of

    state, charges = state_of(entries[0], list(entries)), charges_of(list(entries))
    console().print(
        _charges_table(charges, state, f"{state.name}: {len(charges)} {'charge' if len(charges) == 1 else 'charges'}")
    )


def history_as_json(entries: Sequence[LedgerEntry]) -> str:
    """Every charge of an account as a list of objects."""
    from taciturn.privacy.account import charges_of, state_of

    balances = state_of(entries[0], list(entries)).balances
    charges = [
        asdict(charge) | {"share": max(balance.share(charge.price) for balance in balances)}
        for charge in charges_of(list(entries))
    ]
    return json.dumps(charges, indent=2)


def _balances_table(balances: Sequence[Balance]) -> Table:
    from rich.table import Table

    from taciturn.app.report.account import format_share

    table = Table(box=None, padding=(0, 1))
    for heading in ("", "", "spent", "reserved", "left"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for balance in balances:
        table.add_row(balance.title, _bar(balance.shares, _WIDTH), *map(format_share, balance.shares))
    return table


def _dates_table(charges: Sequence[Charge], balances: Sequence[Balance]) -> Table:
    """What was spent or reserved by the end of each day, month or year: the finest that fits on a screen."""
    from rich.table import Table

    from taciturn.app.report.account import format_share
    from taciturn.privacy.account import cumulate

    times = [datetime.fromisoformat(charge.clock).astimezone(UTC) for charge in charges]
    form = next((form for form in ("%Y-%m-%d", "%Y-%m") if len({f"{t:{form}}" for t in times}) <= _MOST_DATES), "%Y")
    table = Table(box=None, padding=(0, 1), title="Spent or reserved by date", title_justify="left")
    table.add_column("", no_wrap=True)
    for balance in balances:
        table.add_column(balance.title, no_wrap=True)
    reached = [{f"{time.astimezone(UTC):{form}}": share for time, share in cumulate(charges, b)} for b in balances]
    width = _WIDTH // len(balances)
    for date in sorted(reached[0])[-_MOST_DATES:]:
        shares = [each[date] for each in reached]
        table.add_row(date, *(_bar((s, 0.0, 1.0 - s), width).append(f" {format_share(s)}") for s in shares))
    return table


def _charges_table(charges: Sequence[Charge], state: AccountState, title: str) -> Table:
    from rich.table import Table

    from taciturn.app.report.account import format_charge

    table = Table(box=None, padding=(0, 1, 0, 0), title=shown_text(title), title_justify="left")
    for heading in ("entry", "date", "what", "epsilon", "delta", "share", "state"):
        right = heading in ("entry", "epsilon", "delta", "share")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for charge in charges:
        ended = "given back" if charge.state == "released" else charge.state
        numbers = (f"{charge.epsilon:g}", f"{charge.delta:g}", format_charge(charge, state))
        table.add_row(str(charge.sequence), charge.clock[:10], shown_text(charge.what), *numbers, ended)
    return table


def _bar(shares: tuple[float, float, float], width: int) -> Text:
    """Spent, reserved and left; what is not nothing takes a character at least."""
    from rich.text import Text

    ascii_only = console().options.ascii_only
    spent, reserved = (max(round(share * width), int(share > 0.0)) for share in shares[:2])
    bar = Text()
    for count, character, style in zip(
        (spent, reserved, max(width - spent - reserved, 0)), _LETTERS if ascii_only else _BLOCKS, _STYLES, strict=True
    ):
        bar.append(character * count, style=style)
    return bar


# --- ``taciturn budget``: accounts that keep count of what was spent.

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
    from taciturn.app.cli.output import fingerprint_of
    from taciturn.privacy.account import Account
    from taciturn.privacy.ledger import location_of

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
    from taciturn.privacy.ledger import check_entries

    print_account(check_entries(read_ledger(account)))


def history(
    account: Where,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of a table.")] = False,
) -> None:
    """List every charge of an account: when, what, how much, and what became of it.

    Example: taciturn budget history sqlite:///study.db#patients-2026 --json
    """
    from taciturn.privacy.ledger import check_entries

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
    from taciturn.app.verify import check_heads
    from taciturn.privacy.ledger import check_entries

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
    from taciturn.app.report.account import account_page

    kind = output.suffix.lower()
    if kind not in (".jsonl", ".html"):
        raise ParameterError("output", str(output), "a name that ends in .jsonl or .html", "choose one of the two")
    entries = read_ledger(account)
    lines = "".join(f"{entry.to_json()}\n" for entry in entries)
    replace_file(output, lines if kind == ".jsonl" else account_page(entries), public=public)
    print_line(f"written: {output}, {len(entries)} entries, head {entries[-1].hash}")


_STEPS = "scale=0.1,select=0.15,fit=0.6,score=0.15"
_KNOWN = ("scale", "select", "fit", "score")
# What a step costs is stated at the delta of usual fits.
_USUAL_DELTA = 1e-6
_KEPT, _COLUMNS, _LEVEL = 10, 20, 1.96
_GRID_POINTS = 200


def plan(
    account: Annotated[
        str | None,
        typer.Argument(metavar="[URL#NAME]", help="The account whose rest is split.", show_default=False),
    ] = None,
    steps: Annotated[
        str, typer.Option(help="Steps and their shares; names that begin with scale, select, fit and score are known.")
    ] = _STEPS,
    epsilon: Annotated[float | None, typer.Option(help="The total, where there is no account.")] = None,
    delta: Delta = 1e-6,
    records: Annotated[int | None, typer.Option(min=1, help="Number of records. [default: the account's]")] = None,
    columns: Annotated[int, typer.Option(min=1, help="Number of columns, where there are no bounds.")] = _COLUMNS,
    bounds: Annotated[
        Path | None, typer.Option(help="Bounds of the columns, for what a fit may expect (taciturn plan).")
    ] = None,
    reserve: Annotated[
        bool, typer.Option("--reserve", help="Charge the account for the steps, and open an account for each.")
    ] = False,
) -> None:
    """Split a budget over the steps of a study, and say what each may expect; nothing private is read.

    With --reserve each step gets an account of its own, URL#NAME/STEP, that this one has paid for: pass it to the step.

    Example: taciturn budget plan sqlite:///study.db#patients-2026 --steps scale=0.1,select=0.2,fit=0.5,score=0.2
    """
    from rich.table import Table

    from taciturn.privacy.account import affordable_epsilon, open_account
    from taciturn.privacy.budget import Budget
    from taciturn.privacy.gdp import epsilon_of_mu, mu_of_budget

    shares = _parse_steps(steps)
    opened = open_account(account)
    if opened is None:
        if reserve or epsilon is None or records is None:
            raise ParameterError(
                "account", None, "an account, or --epsilon and --records without --reserve", "name one of the two"
            )
        mu = mu_of_budget(Budget(epsilon, delta))
    else:
        state = opened.state()
        records = state.n if records is None else records
        if records is None:
            raise ParameterError("records", None, "a number of records, as the account has none", "give --records")
        mu = state.left.mu
        if affordable_epsilon(state.left, _USUAL_DELTA) <= 0.0:
            raise ParameterError("account", account, "an account with something left for Gaussian fits", "open another")
    table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left", title=f"{records:,} records")
    for heading in ("step", "share", "epsilon", "what to expect"):
        table.add_column(heading, justify="right" if heading in ("share", "epsilon") else "left")
    for step, share in shares.items():
        part = mu * share**0.5
        at = epsilon_of_mu(part, _USUAL_DELTA)
        table.add_row(shown_text(step), f"{share:.0%}", f"{at:.3g}", _expected(step, at, records, columns, bounds))
    console().print(table)
    print_line(
        f"Each epsilon is that of a fit at delta {_USUAL_DELTA:g}; shares are of the squared Gaussian parameter."
    )
    if not reserve or opened is None:
        print_line("nothing was reserved; --reserve opens an account for each step that this one pays for")
        return
    parts = opened.set_aside(shares)
    for step, made in parts.items():
        least = affordable_epsilon(made.state().left, _USUAL_DELTA)
        print_line(f"opened for {step}: {made.url}#{made.name}, fits of epsilon {least:.3g} at delta {_USUAL_DELTA:g}")
    print_line(f"account {opened.name} has paid for them, and gets nothing back; head {opened.state().head}")


def _parse_steps(text: str) -> dict[str, float]:
    """Steps with their shares."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not name.strip() or name.strip() in found or not 0.0 < share <= 1.0:
            raise ParameterError(
                "steps", text, "NAME=SHARE with commas between them, each name once", f"write {_STEPS}"
            )
        found[name.strip()] = share
    if sum(found.values()) > 1.0 + 1e-9:
        raise ParameterError("steps", text, "shares that add up to at most 1", "lower some of them")
    return found


def _expected(step: str, epsilon: float, n: int, columns: int, bounds: Path | None) -> str:
    """What a step with a budget may expect, by the noise of its releases."""
    import math

    from taciturn.privacy.budget import Budget
    from taciturn.privacy.filter import PrivacyFilter

    kind = next((each for each in _KNOWN if step.startswith(each)), None)
    if kind is None:
        return ""
    whole = PrivacyFilter(Budget(epsilon, _USUAL_DELTA))
    if kind == "scale":
        # Two quantiles of each column: the chance that a score is so far off is one in twenty.
        off = 2.0 / whole.range_of(1.0, 2 * columns) * math.log(20.0 * _GRID_POINTS)
        return f"bounds of {columns} columns, each within {off / n:.1%} of the records of its quantile"
    if kind == "select":
        kept = min(_KEPT, columns)
        off = 2.0 / whole.range_of(1.0, kept) * 2.0 * math.log(20.0 * columns)
        return f"{kept} of {columns} columns: those ahead by {off / n:.2g} in correlation of scaled values are kept"
    if kind == "score":
        off = _LEVEL * math.hypot(0.5 / math.sqrt(n), 1.0 / (whole.mu * n))
        return f"an accuracy within {off:.2%}"
    return _expected_of_fit(epsilon, n, columns, bounds)


def _expected_of_fit(epsilon: float, n: int, columns: int, bounds: Path | None) -> str:
    from taciturn.app.cli.plan import default_model
    from taciturn.methods.forecast.function import forecast
    from taciturn.tables.bounds import TableBounds

    if bounds is None:
        from taciturn.methods.sparse.estimator import SparseClassifier

        made = forecast(SparseClassifier(epsilon=epsilon, x_bound=1.0), n=n, n_features=columns)
    else:
        stated = TableBounds.from_toml(bounds.read_text(encoding="utf-8"), folder=bounds.parent)
        model = default_model(stated, None, None, delta=_USUAL_DELTA, relation="zero-out", n=n)
        made = forecast(model.set_params(epsilon=epsilon), n=n, bounds=bounds)
    return f"{made.interval_probability:.0%} of the coefficients get an interval (taciturn plan says how wide)"


for _command in (create, plan, show, history, verify, export):
    budget.command()(within_memory_limit(_command))


def _read_certificate(path: Path) -> Certificate:
    """The certificate in a file: by itself, or inside a model, a selection or a score."""
    from taciturn.app.cli.output import CERTIFICATE_NAME
    from taciturn.app.cli.tables import read_text
    from taciturn.core.errors import CertificateError
    from taciturn.privacy.certificate import Certificate

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
