"""Ledgers that were made up: entries at chosen times, without a database."""

import json
from datetime import UTC, datetime, timedelta

from taciturn.privacy.ledger import LedgerEntry, Price, totals_of

START = datetime(2026, 9, 1, 8, tzinfo=UTC)


def made_ledger(charges=(), *, name="patients-2026", approximate=(0.5, 2e-6), totals=None, **changes):
    """The entries of an account with charges ``(what, epsilon, share, state)``, a week apart.

    ``share`` is of the Gaussian budget if it is positive, and of the (epsilon, delta) budget if it is negative.
    """
    terms = {
        "epsilon": 3.0,
        "delta": 1e-5,
        "approximate": list(approximate),
        "relation": "zero-out",
        "unit": "record",
        "n": 20_000,
        "taciturn": "0.2.0",
    } | changes
    whole = totals_of(terms["epsilon"], terms["delta"], approximate) if totals is None else totals
    entries = [LedgerEntry.append(None, name, "opened", 0, whole, json.dumps(terms), START.isoformat())]
    for week, (what, epsilon, share, state) in enumerate(charges, start=1):
        clock = (START + timedelta(weeks=week)).isoformat()
        price = Price(gaussian=int(share * whole.gaussian)) if share > 0 else second_pot(whole, -share)
        facts = {"what": what, "epsilon": epsilon, "delta": 1e-6, "n": 20_000, "ordered": True, "taciturn": "0.2.0"}
        entries.append(LedgerEntry.append(entries[-1], name, "reserved", 0, price, json.dumps(facts), clock))
        if state != "reserved":
            back = price if state == "released" else Price()
            sequence = entries[-1].sequence
            entries.append(LedgerEntry.append(entries[-1], name, state, sequence, back, "{}", clock))
    return entries


def second_pot(whole, share):
    # The delta of every charge here.
    return Price(epsilon=int(share * whole.epsilon), delta=10**12)


STUDY = (
    ("PrivateScaler", 0.3, 0.02, "spent"),
    ("CorrelationSelector", 0.5, 0.12, "spent"),
    ("SparseClassifier", 0.8, 0.11, "released"),
    ("SparseClassifier", 0.8, 0.11, "spent"),
    ("ObjectivePerturbationClassifier", 0.3, -0.6, "spent"),
    ("private_score", 0.3, 0.00001, "reserved"),
)
