"""Whole fits that are killed: at the first random word of each, the witness writes down its price."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from broken_ledgers import LEDGERS
from ledger_harness import Verdict, Witness, judge, kill_at_random, main, run_program

from taciturn import Account, BudgetExceededError, SparseClassifier
from taciturn.core.rng import draws_noticed
from taciturn.privacy.ledger import Price

__all__ = ["kill_fits"]


def fit(account: Account | None) -> None:
    """One small fit."""
    rng = np.random.default_rng(0)
    SparseClassifier(epsilon=0.2, n_nonzero=1, account=account).fit(rng.uniform(-1, 1, (60, 3)), rng.random(60) < 0.5)


def fit_all(account: Account, price: Price, witness: Witness) -> None:
    """Fit until nothing is left."""
    while True:
        seen: list[Price] = []

        def notice(seen: list[Price] = seen) -> None:
            if not seen:
                witness.see(None, price)
                seen.append(price)

        try:
            with draws_noticed(notice):
                fit(account)
        except BudgetExceededError:
            assert not seen
            return
        assert seen


def play(order: dict[str, Any]) -> Verdict:
    """Rounds with a new account each, until enough fits were killed or something is wrong."""
    # Of so few records, which no verdict here depends on.
    warnings.simplefilter("ignore")
    verdict, terms = Verdict(), {"epsilon": 1.5, "delta": 1e-5, "n": 60}
    trial = Account.create(order["url"], f"{order['name']}-0", **terms)
    # Kernels are compiled here, once for all processes.
    fit(trial)
    (charge,) = trial.history()
    while verdict.kills < order["kills"] and not verdict.faults:
        verdict.rounds += 1
        account = LEDGERS[order["ledger"]].create(order["url"], f"{order['name']}-{verdict.rounds}", **terms)
        witness = Witness(Path(order["folder"]) / f"{account.name}.drawn")
        killed, failed = kill_at_random(
            lambda account=account, witness=witness: fit_all(account, charge.price, witness), 40, order["pause"]
        )
        verdict.kills += killed
        if failed:
            verdict.faults.append(f"{failed} processes failed, or did not end")
        judge(account, witness, verdict)
    return verdict


def kill_fits(url: str, folder: Path, *, kills: int, ledger: str = "account", pause: float = 0.05) -> Verdict:
    """The verdict on an account whose fits were killed, ``pause`` seconds apart on average."""
    name = f"fits {os.urandom(4).hex()}"
    order = locals() | {"folder": str(folder)}
    (verdict,) = run_program(Path(__file__), [order])
    return Verdict(**verdict)


if __name__ == "__main__":
    main(play)
