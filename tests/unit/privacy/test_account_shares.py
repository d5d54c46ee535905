"""Shares of an account that are set aside for the steps of a study."""

import numpy as np
import pytest

from taciturn import Account, AccountError, BudgetExceededError, ParameterError, SparseRegressor
from taciturn.privacy import account as accounts
from taciturn.privacy.ledger import Price, totals_of

STEPS = {"scale": 0.1, "fit": 0.6, "score": 0.3}


def opened(tmp_path, **changes):
    facts = {"epsilon": 3.0, "delta": 1e-5, "n": 2000} | changes
    return Account.create(f"sqlite:///{tmp_path / 'study.db'}", "study", **facts)


def sums(parts):
    total = Price()
    for part in parts.values():
        total = total + part.state().total
    return total


def test_what_steps_may_spend_is_charged_and_no_more_than_there_is(tmp_path):
    whole = opened(tmp_path)
    before = whole.state().total
    parts = whole.set_aside(STEPS)
    state, given = whole.state(), sums(parts)
    assert state.reserved == given
    assert given.fits(before)
    assert state.left == before - given
    for step, share in STEPS.items():
        got = parts[step].state()
        assert (got.n, got.relation, got.unit) == (2000, "zero-out", "record")
        # Nearly the share, and never above it.
        assert 0.999 * share < got.total.gaussian / before.gaussian <= share
        assert got.total.distance <= share * before.distance
    whole.verify()
    # A split that hands every step the whole is what these sums would show.
    assert not Price(*(3 * value for value in before.values)).fits(before)


def test_a_step_spends_from_its_own_account(tmp_path):
    whole = opened(tmp_path)
    parts = whole.set_aside({"fit": 0.5})
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    charged = whole.state()
    SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1), account=f"{whole.url}#study/fit").fit(X, X[:, 0])
    assert len(parts["fit"].history()) == 1
    assert whole.state() == charged
    with pytest.raises(BudgetExceededError):
        SparseRegressor(epsilon=2.5, x_bound=1.0, y_bounds=(-1, 1), account=parts["fit"]).fit(X, X[:, 0])


def test_a_crash_between_charge_and_opening_loses_budget_and_gives_none_away(tmp_path, monkeypatch):
    whole = opened(tmp_path)

    def fail(*arguments, **facts):
        raise KeyboardInterrupt

    monkeypatch.setattr(accounts.Account, "create", fail)
    with pytest.raises(KeyboardInterrupt):
        whole.set_aside({"fit": 0.5})
    monkeypatch.undo()
    assert whole.state().left.gaussian < 0.51 * whole.state().total.gaussian
    with pytest.raises(AccountError):
        Account.open(whole.url, "study/fit")


def test_what_somebody_else_took_in_between_is_not_given_twice(tmp_path, monkeypatch):
    whole = opened(tmp_path)
    before = whole.state()
    whole.set_aside({"one": 0.7})
    # As if the state had been read before the other one wrote.
    monkeypatch.setattr(accounts.Account, "state", lambda self: before)
    with pytest.raises(BudgetExceededError):
        whole.set_aside({"two": 0.7})
    monkeypatch.undo()
    with pytest.raises(AccountError):
        Account.open(whole.url, "study/two")


def test_names_and_shares_are_checked_before_anything_is_charged(tmp_path):
    whole = opened(tmp_path)
    whole.set_aside({"fit": 0.5})
    charged = whole.state()
    with pytest.raises(AccountError, match="not taken"):
        whole.set_aside({"fit": 0.2})
    for shares in ({}, {"a": 0.0}, {"a": 0.7, "b": 0.7}, {"a": -0.1}):
        with pytest.raises(ParameterError, match="shares"):
            whole.set_aside(shares)
    assert whole.state() == charged


def test_accounts_of_persons_are_refused(tmp_path):
    whole = opened(tmp_path, unit="person", person_column="id")
    with pytest.raises(AccountError, match="keys could differ"):
        whole.set_aside({"fit": 0.5})
    assert whole.history() == []


def test_totals_of_a_share_keep_to_both_parts_of_the_price():
    class State:
        epsilon, delta = 3.0, 1e-5
        total = left = totals_of(3.0, 1e-5)

    for share in (0.01, 0.2, 0.5, 0.99):
        found = totals_of(*accounts._part_of(State, share))
        assert found.gaussian <= share * State.total.gaussian
        assert found.distance <= share * State.total.distance
        assert found.gaussian >= 0.99 * share * State.total.gaussian
