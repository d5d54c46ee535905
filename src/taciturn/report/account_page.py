"""The page of an account: what it guarantees, what is spent by fit and by date, and whether its chain is intact."""

from __future__ import annotations

from collections.abc import Sequence

from taciturn.accounts.chain import LedgerEntry
from taciturn.accounts.contents import check_entries
from taciturn.accounts.pots import Pot, pots_of
from taciturn.accounts.state import AccountState, Charge, charges_of, state_of
from taciturn.core.errors import AccountError
from taciturn.report.account_charts import MOST_FITS, dates_chart, fits_chart, pots_chart
from taciturn.report.account_words import explain_account, format_charge, format_share, list_affordable
from taciturn.report.page import Page

__all__ = ["account_page"]

_PARTS = ("spent", "reserved", "left")
_STATES = {"spent": "spent", "reserved": "reserved", "released": "given back"}


def account_page(entries: Sequence[LedgerEntry]) -> str:
    """Write the page of an account as one HTML file.

    It holds nothing that the ledger does not: prices, times and the classes that were fitted. A ledger that is damaged
    gets a page that says so and lists the entries as they stand.

    Parameters
    ----------
    entries : sequence of LedgerEntry
        All entries of an account.

    Returns
    -------
    str
        The text of the file.
    """
    try:
        found = check_entries(entries)
    except AccountError as error:
        return _damaged_page(entries, str(error))
    state, charges = state_of(found[0], found), charges_of(found)
    page = Page(f"Privacy account \u201c{state.name}\u201d")
    page.paragraph(
        f"{len(charges):,} {'fit' if len(charges) == 1 else 'fits'} on a budget of epsilon = {state.epsilon:.6g}, "
        f"delta = {state.delta:.6g}; opened {_minute(found[0].clock)}, last entry {_minute(found[-1].clock)}."
    )
    page.section("The guarantee")
    page.points(explain_account(state), ordered=True)
    page.facts(_terms(state))
    page.section("Spent, reserved and left")
    _draw(page, state, charges, found[0].clock)
    page.section("Every charge")
    _list_charges(page, state, charges)
    page.section("The chain")
    _describe_chain(page, state)
    return page.render()


def _terms(state: AccountState) -> list[tuple[str, str]]:
    terms = [
        ("relation", state.relation),
        ("unit", state.unit if state.person_column is None else f"{state.unit}, by the column {state.person_column}"),
        (f"number of {state.unit}s", "private" if state.n is None else f"at most {state.n:,}"),
        ("first pot", f"a total Gaussian parameter of mu = {state.total.mu:.4g}" if state.total.gaussian else "none"),
    ]
    epsilon, delta = state.approximate
    terms.append(("second pot", f"epsilon = {epsilon:.6g}, delta = {delta:.6g}" if epsilon else "none"))
    return terms


def _draw(page: Page, state: AccountState, charges: Sequence[Charge], opened: str) -> None:
    pots = pots_of(state)
    told = "; ".join(
        f"{pot.title}: " + ", ".join(map(" ".join, zip(map(format_share, pot.shares), _PARTS, strict=True)))
        for pot in pots
    )
    page.figure(
        pots_chart(pots, "Spent, reserved and left"),
        f"A bar for each pot. {told}.",
        "A reservation of a fit that is running, or that did not end, counts as spent.",
    )
    affordable = list_affordable(state)
    if state.total.gaussian:
        said = " or ".join(f"epsilon = {epsilon} at delta = {delta:.6g}" for delta, epsilon in affordable)
        page.paragraph(f"A Gaussian fit can still take {said} from the first pot.")
    if not charges:
        page.paragraph("Nothing has been charged yet.")
        return
    for pot in pots:
        if any(pot.share(charge.price) for charge in charges):
            _draw_pot(page, pot, charges, opened)


def _draw_pot(page: Page, pot: Pot, charges: Sequence[Charge], opened: str) -> None:
    concerned = [charge for charge in charges if pot.share(charge.price)]
    count = f"the last {MOST_FITS} fits" if len(concerned) > MOST_FITS else "all fits"
    page.section(f"By fit and by date: {pot.title}", level=3)
    page.figure(
        fits_chart(concerned, pot, f"By fit: {pot.title}"),
        f"A bar for each of {count}, which begins where the one before it ends; the table below has the numbers.",
        f"Shares of the {pot.title} that {count} took, each beginning where the one before ends. An outline is a "
        "reservation that was given back before data were read.",
    )
    page.figure(
        dates_chart(charges, pot, opened, f"By date: {pot.title}"),
        f"A line that rises in steps to {format_share(pot.shares[0] + pot.shares[1])} of the total.",
        "Spent or reserved until then, by the clocks of the computers that fitted (UTC).",
    )


def _list_charges(page: Page, state: AccountState, charges: Sequence[Charge]) -> None:
    rows = [
        (
            _minute(charge.clock),
            str(charge.sequence),
            charge.what,
            f"{charge.epsilon:.6g}",
            f"{charge.delta:.6g}",
            format_charge(charge, state),
            _STATES[charge.state],
        )
        for charge in charges
    ]
    header = ("time (UTC)", "entry", "what", "epsilon", "delta", "share of its pot", "state")
    page.table(header, rows, f"All {len(rows):,} charges", numeric={1, 3, 4, 5})
    page.paragraph(
        "Shares are of squared Gaussian parameters in the first pot, and of epsilon or delta in the second, whichever "
        "is larger. Fits add up in these units; their epsilons do not."
    )


def _describe_chain(page: Page, state: AccountState) -> None:
    page.paragraph(
        f"Verified when this page was written: all {state.entries:,} entries are in their order, each hash covers its "
        "entry and the one before, and the sums never exceed the totals."
    )
    page.code_block(state.head, "The head of the chain: the hash of the last entry")
    page.paragraph(
        "Keep the head in another place. A ledger that was edited, cut or set back to an older copy does not hold the "
        "heads that stand on later certificates: taciturn budget verify checks them, also on a JSONL export."
    )


def _damaged_page(entries: Sequence[LedgerEntry], problem: str) -> str:
    page = Page("Privacy account: the ledger is damaged")
    page.banner(problem)
    page.section("Entries as they stand")
    page.table(
        ("entry", "time", "account", "kind", "reservation", "details", "hash"),
        [
            (str(e.sequence), e.clock, e.account, e.kind, str(e.reservation), e.details, f"{e.hash[:12]}...")
            for e in entries
        ],
        "Nothing of this can be relied on",
        numeric={0, 4},
    )
    return page.render()


def _minute(clock: str) -> str:
    return clock[:16].replace("T", " ")
