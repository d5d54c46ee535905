"""What the page of an account says and draws."""

import dataclasses
import json

import pytest
from ledgers_made import STUDY, made_ledger
from reported import EVIL, Tree, faults_of

from taciturn.app.report.account import (
    MOST_FITS,
    account_page,
    balances_chart,
    dates_chart,
    explain_account,
    fits_chart,
    format_charge,
    list_affordable,
)
from taciturn.privacy.account import charges_of, cumulate, state_of
from taciturn.privacy.ledger import Price


def words_of(entries):
    return Tree(account_page(entries)).root.find("body")[0].words()


def state_and_charges(entries):
    return state_of(entries[0], entries), charges_of(entries)


def rectangles(drawing, kind):
    """Places and widths of the bars of a class."""
    found = Tree(f"<svg>{drawing.body}</svg>").root.find("rect")
    return [
        (float(bar.attributes["x"]), float(bar.attributes["width"]))
        for bar in found
        if bar.attributes["class"] == kind and float(bar.attributes["height"]) > 12
    ]


@pytest.mark.parametrize("charges", [(), STUDY[:1], STUDY, STUDY + (("SparseClassifier", 0.1, 0.0001, "spent"),) * 60])
def test_the_page_is_one_sound_file(charges):
    assert faults_of(account_page(made_ledger(charges))) == []


def test_it_states_the_guarantee_what_is_left_every_charge_and_the_head():
    entries = made_ledger(STUDY)
    said = words_of(entries)
    state, charges = state_and_charges(entries)
    for sentence in explain_account(state):
        assert sentence in said
    for charge in charges:
        assert charge.what in said
    for delta, epsilon in list_affordable(state):
        assert f"epsilon = {epsilon} at delta = {delta:g}" in said
    assert entries[-1].hash in said
    assert "Verified when this page was written: all 12 entries" in said
    assert "given back" in said
    assert "60% of (epsilon, delta)" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "leaving one record out of the data"),
        ({"unit": "person"}, "leaving all records of one person out of the data"),
        ({"relation": "replace-one"}, "replacing one record by any other"),
        ({"relation": "replace-one", "unit": "person"}, "replacing all records of one person by any others"),
    ],
)
def test_the_guarantee_is_in_the_words_of_relation_and_unit(changes, words):
    assert words in explain_account(state_and_charges(made_ledger(**changes))[0])[0]


def test_names_are_escaped():
    page = account_page(made_ledger([(EVIL, 0.3, 0.02, "spent")], name=f"a {EVIL}"))
    assert EVIL not in page
    assert faults_of(page) == []


# ------------------------------------------------------------------ pictures


def test_bars_are_as_long_as_the_shares_and_fill_their_row():
    state, _ = state_and_charges(made_ledger(STUDY))
    assert [balance.kind for balance in state.balances] == ["gaussian", "epsilon", "delta"]
    drawing = balances_chart(state.balances, "title")
    spent, left = rectangles(drawing, "plus"), rectangles(drawing, "region")
    (start, first), second, third = spent
    whole = left[0][0] + left[0][1] - start
    assert first / whole == pytest.approx(0.25, abs=0.001)
    assert second[1] / whole == pytest.approx(0.6, abs=0.001)
    assert third[1] / whole == pytest.approx(0.5, abs=0.001)


def test_each_fit_begins_where_the_one_before_it_ends_and_what_was_given_back_takes_nothing():
    entries = made_ledger(STUDY)
    state, charges = state_and_charges(entries)
    first = state.balances[0]
    drawing = fits_chart([charge for charge in charges if charge.price.gaussian], first, "title")
    (scaler, selector, classifier), (back,) = rectangles(drawing, "plus"), rectangles(drawing, "estimate")
    assert scaler[0] + scaler[1] == pytest.approx(selector[0], abs=0.02)
    assert selector[0] + selector[1] == pytest.approx(classifier[0], abs=0.02)
    assert back[0] == classifier[0]


def test_earlier_fits_are_counted_though_not_drawn():
    entries = made_ledger([("SparseClassifier", 0.1, 0.01, "spent")] * (MOST_FITS + 10))
    state, charges = state_and_charges(entries)
    bars = rectangles(fits_chart(charges, state.balances[0], "title"), "plus")
    assert len(bars) == MOST_FITS
    assert bars[0][0] - bars[0][1] * 10 == pytest.approx(205.0, abs=0.2)


def test_dates_add_up_in_the_order_of_the_clock_without_what_was_given_back():
    entries = made_ledger(STUDY)
    state, charges = state_and_charges(entries)
    shares = [round(share, 6) for _, share in cumulate(reversed(charges), state.balances[0])]
    assert shares == [0.02, 0.14, 0.25, 0.25, 0.25001]
    assert dates_chart(charges, state.balances[0], entries[0].clock, "title").body.count("<path") == 2


def test_a_charge_of_the_epsilon_delta_budget_says_so():
    state, charges = state_and_charges(made_ledger(STUDY))
    assert [format_charge(charge, state) for charge in charges] == [
        "2%",
        "12%",
        "11%",
        "11%",
        "60% of (epsilon, delta)",
        "<0.1%",
    ]


# ------------------------------------------------------------------ damage


def edited(entries, **changes):
    return [*entries[:3], dataclasses.replace(entries[3], **changes), *entries[4:]]


DAMAGED = {
    "edited": lambda entries: edited(entries, gaussian=1),
    "deleted": lambda entries: [*entries[:3], *entries[4:]],
    "exchanged": lambda entries: [*entries[:3], entries[5], entries[4], entries[3], *entries[6:]],
    "no opening": lambda entries: entries[1:],
    "totals beyond the terms": lambda entries: made_ledger(totals=Price(gaussian=2 * entries[0].gaussian)),
    "terms that are none": lambda entries: made_ledger(relation="friends"),
    "a time that is none": lambda entries: edited_and_hashed(entries, clock="yesterday"),
    "a description that is none": lambda entries: edited_and_hashed(entries, details=json.dumps({"what": "a fit"})),
    "details that are no JSON": lambda entries: edited_and_hashed(entries, details="{"),
}


def edited_and_hashed(entries, **changes):
    """The last entry with other contents and a hash that covers them."""
    last = dataclasses.replace(entries[-1], **changes)
    made = type(last).append(
        entries[-2], last.account, last.kind, last.reservation, last.price, last.details, last.clock
    )
    return [*entries[:-1], made]


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_ledger_gets_a_page_that_says_so_and_draws_nothing(how):
    page = account_page(DAMAGED[how](made_ledger(STUDY)))
    assert faults_of(page) == []
    assert "the ledger is damaged" in page
    assert 'class="banner"' in page
    assert "<svg" not in page


def test_an_intact_ledger_has_no_banner():
    assert 'class="banner"' not in account_page(made_ledger(STUDY))
