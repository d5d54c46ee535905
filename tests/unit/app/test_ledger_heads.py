"""Certificates of every class against the account that paid: covered by the price, and by nothing less."""

import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import taciturn
from taciturn import Account, Certificate, compose, private_score
from taciturn.app.verify import check_head
from taciturn.core.errors import AccountError
from taciturn.privacy.ledger import LedgerEntry, check_entries, replay_entries

N = 4000
CLASSES = {"classes": (0, 1)}
FITS = {
    **{
        name: CLASSES if name.endswith("Classifier") else {"y_bounds": (-1, 1)}
        for name in taciturn.__all__
        if name.endswith(("Classifier", "Regressor"))
    },
    "PrivateScaler": {},
    "CorrelationSelector": CLASSES | {"n_features_to_select": 2},
    "BlockVoteSelector": {"n_features_to_select": 2},
    "KendallSelector": {"n_features_to_select": 2},
}


@pytest.fixture(scope="module")
def paid(tmp_path_factory):
    """Certificates by class, and the entries of the account that paid for all of them."""
    url = f"sqlite:///{tmp_path_factory.mktemp('accounts') / 'study.db'}"
    account = Account.create(url, "everything", epsilon=25, delta=1e-3, n=N, approximate=(12, 5e-4))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 5))
    numbers = X[:, 0] / 2 + rng.normal(size=N) / 10
    labels = (numbers > 0).astype(int)
    certificates = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, parameters in FITS.items():
            fitted = getattr(taciturn, name)(**(parameters | {"account": account}))
            fitted.fit(X, labels if "classes" in parameters else numbers)
            certificates[name] = fitted.certificate_
        model = taciturn.SparseClassifier(account=account, inference=True, **CLASSES).fit(X, labels)
    certificates["standard errors"] = model.certificate_
    for delta in (0.0, 1e-6):
        certificates[f"private_score, {delta}"] = private_score(
            model, X, labels, delta=delta, account=account
        ).certificate
    return certificates, check_entries(account.entries())


KINDS = (*FITS, "standard errors", "private_score, 0.0", "private_score, 1e-06")


def rewritten(entries, sequence, change):
    """The same ledger with a change to one entry, and hashes that fit."""
    made = []
    for entry in entries:
        if entry.sequence == sequence:
            entry = change(entry)
        before = made[-1] if made else None
        fields = (entry.account, entry.kind, entry.reservation, entry.price, entry.details, entry.clock)
        made.append(LedgerEntry.append(before, *fields))
    return made


def discounted(entry):
    return replace(entry, gaussian=entry.gaussian * 999 // 1000, epsilon=entry.epsilon * 999 // 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_the_price_covers_what_was_released_and_a_thousandth_less_does_not(kind, paid):
    certificates, entries = paid
    certificate = Certificate.from_json(certificates[kind].to_json())
    (entry,) = check_head(certificate, entries)
    rewrite = rewritten(entries, entry.sequence, discounted)
    if entry.epsilon:
        # The (epsilon, delta) budget is charged the budget that the entry itself states.
        with pytest.raises(AccountError, match=f"entry {entry.sequence} .*an .epsilon, delta. price"):
            check_entries(rewrite)
    cheaper, _ = replay_entries(rewrite)[::-1]
    with pytest.raises(AccountError, match=f"price reserved by entry {entry.sequence} covers"):
        check_head(replace(certificate, account_head=cheaper[entry.sequence - 1].hash), cheaper)


def cheaper(event):
    """The same release with more noise."""
    factors = {"noise_multiplier": 1.5, "epsilon": 0.5, "shift": 0.5, "far": 0.5, "near": 0.5}
    changed = {name: getattr(event, name) * factor for name, factor in factors.items() if hasattr(event, name)}
    return replace(event, **changed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_that_lists_less_than_was_paid_for_is_refused(kind, paid):
    certificates, entries = paid
    certificate = certificates[kind]
    for events in ((), tuple(replace(line, event=cheaper(line.event)) for line in certificate.events)):
        with pytest.raises(AccountError, match="^events: expected all releases that the price reserved by entry"):
            check_head(replace(certificate, events=events), entries)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stated_epsilon_and_delta_are_those_of_the_entry(kind, paid):
    certificates, entries = paid
    certificate = certificates[kind]
    for name, value in (
        ("epsilon", certificate.epsilon * 1.01), ("epsilon", certificate.epsilon * 0.99),
        ("delta", 1e-5), ("delta", 1e-7),
    ):  # fmt: skip
        with pytest.raises(AccountError, match=f"^{name}={value!r}: expected .* for which entry"):
            check_head(replace(certificate, **{name: value}), entries)
    assert check_head(certificate.for_group(2), entries) == check_head(certificate, entries)


def test_a_selector_that_keeps_every_feature_leaves_its_budget(tmp_path):
    account = Account.create(f"sqlite:///{tmp_path / 'study.db'}", "all", epsilon=3, delta=1e-5, n=50)
    X = np.linspace(-1, 1, 150).reshape(50, 3)
    selector = taciturn.CorrelationSelector(n_features_to_select=3, y_bounds=(-1, 1), account=account).fit(X, X[:, 0])
    assert not selector.certificate_.events
    assert len(check_head(selector.certificate_, check_entries(account.entries()))) == 1


@pytest.mark.parametrize("first", KINDS)
def test_composed_certificates_are_covered_by_the_entries_of_their_parts(first, paid):
    certificates, entries = paid
    for second in KINDS:
        if second != first:
            whole = compose(certificates[first], certificates[second])
            assert [entry.hash for entry in check_head(whole, entries)] == [
                certificates[first].account_head,
                certificates[second].account_head,
            ]


def test_parts_of_parts_are_found_and_none_may_be_left_out(paid):
    certificates, entries = paid
    a, b, c = (certificates[name] for name in ("SparseRegressor", "CorrelationSelector", "private_score, 1e-06"))
    assert len(check_head(compose(compose(a, b), c), entries)) == 3
    for unpaid in itertools.product((True, False), repeat=3):
        parts = [
            replace(part, account_head=None) if left else part for part, left in zip((a, b, c), unpaid, strict=True)
        ]
        if any(unpaid):
            with pytest.raises(AccountError):
                check_head(compose(*parts), entries)
    with pytest.raises(AccountError, match="not the same one twice"):
        check_head(compose(a, a), entries)


def test_no_more_records_than_the_account_was_opened_for(paid):
    certificates, entries = paid
    fewer = json.dumps(entries[0].facts | {"n": N - 1})
    smaller = check_entries(rewritten(entries, 1, lambda opened: replace(opened, details=fewer)))
    head = next(entry.hash for entry in smaller if entry.kind == "reserved")
    first = next(c for c in certificates.values() if c.account_head == entries[1].hash)
    with pytest.raises(AccountError, match="expected at most 3999"):
        check_head(replace(first, account_head=head), smaller)
