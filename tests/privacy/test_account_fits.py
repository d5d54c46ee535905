"""Fits and their accounts: what is charged when something fails, at every stage of a fit."""

import os
import sys
from unittest.mock import patch

import numpy as np
import pytest

from taciturn import (
    Account,
    AccountError,
    AccountWarning,
    BudgetExceededError,
    CorrelationSelector,
    DataError,
    ParameterError,
    PrivateScaler,
    SparseClassifier,
    private_score,
)
from taciturn.core.rng import draws_noticed
from taciturn.privacy.ledger import Pages

RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (400, 3))
y = X[:, 0] > 0.0
WITH_A_HOLE = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)

FITS = {
    "classifier": lambda account, X, y: SparseClassifier(n_nonzero=1, account=account).fit(X, y),
    "selector": lambda account, X, y: CorrelationSelector(n_features_to_select=1, account=account).fit(X, y),
    "scaler": lambda account, X, y: PrivateScaler(tail=0.2, smallest=0.1, largest=10, account=account).fit(X),
}


@pytest.fixture
def account(memory):
    return Account.create(f"sqlite:///{memory / 'study.db'}", "people", epsilon=3, delta=1e-5, n=400)


@pytest.fixture
def drawn():
    """A list that grows with every random word."""
    seen = []
    with draws_noticed(lambda: seen.append(1)):
        yield seen


def states(account):
    account.verify()
    return [charge.state for charge in account.history()]


class _PlantedError(Exception):
    pass


def failing(error):
    def fail(*args, **kwargs):
        raise error

    return fail


@pytest.mark.parametrize("error", [_PlantedError, KeyboardInterrupt], ids=lambda error: error.__name__)
@pytest.mark.parametrize(
    ("place", "left_behind"),
    [
        ("methods.base.PrivateLinearModel.check_parameters", []),
        ("methods.sparse.estimator.SparseClassifier._public_facts", []),
        ("methods.sparse.estimator.SparseClassifier._plan", []),
        ("methods.sparse.estimator.SparseClassifier.warm_up", []),
        ("privacy.ledger.Pages.append", []),
        ("methods.base.check_lengths", ["released"]),
        ("privacy.account.Reservation.begin", ["released"]),
        ("methods.sparse.estimator.SparseClassifier._read", ["reserved"]),
        ("methods.sparse.estimator.SparseClassifier._run", ["reserved"]),
        ("core.rng.Stream.words", ["reserved"]),
        ("methods.sparse.estimator.SparseClassifier._certify", ["reserved"]),
        ("methods.sparse.estimator.SparseClassifier._store", ["reserved"]),
        ("privacy.account.Account._settle", ["reserved"]),
    ],
)
def test_what_is_charged_when_a_stage_fails(place, left_behind, error, account, drawn):
    with patch(f"taciturn.{place}", failing(error)), pytest.raises(error):
        SparseClassifier(n_nonzero=1, account=account).fit(X, y)
    assert states(account) == left_behind
    before_drawing = not left_behind or "released" in left_behind or place.endswith(("_read", "_run", "words"))
    assert bool(drawn) != before_drawing


@pytest.mark.parametrize("fit", FITS)
def test_a_fit_is_spent(fit, account, drawn):
    FITS[fit](account, X, y)
    (charge,) = account.history()
    assert charge.state == "spent"
    assert drawn


def test_an_account_pays_for_one_fit_of_its_own_budget(memory, drawn):
    account = Account.create(f"sqlite:///{memory / 'one.db'}", "people", epsilon=1, delta=1e-6, n=400)
    model = SparseClassifier(epsilon=1.0, delta=1e-6, n_nonzero=1, account=account)
    model.fit(X, y)
    drawn.clear()
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert states(account) == ["spent"]
    assert not drawn


@pytest.mark.parametrize("fit", FITS)
def test_a_refusal_that_read_data_is_charged(fit, account, drawn):
    with pytest.raises(DataError):
        FITS[fit](account, WITH_A_HOLE, y)
    assert states(account) == ["reserved"]
    assert not drawn


def test_a_score_is_spent_and_a_refused_one_is_charged(account, drawn):
    model = SparseClassifier(n_nonzero=1).fit(X, y)
    drawn.clear()
    with pytest.raises(DataError):
        private_score(model, WITH_A_HOLE, y, epsilon=0.5, delta=1e-6, account=account)
    assert states(account) == ["reserved"]
    assert not drawn
    private_score(model, X, y, epsilon=0.5, delta=1e-6, account=account)
    assert states(account) == ["reserved", "spent"]


@pytest.mark.parametrize("fit", ["classifier", "selector"])
def test_mistakes_of_the_caller_are_not_charged(fit, account, drawn):
    total = account.state().total
    with pytest.raises(DataError):
        FITS[fit](account, X, y[:-1])
    with pytest.raises(ParameterError):
        SparseClassifier(epsilon=-1.0, account=account).fit(X, y)
    with pytest.raises(AccountError, match="random_state"):
        SparseClassifier(random_state=0, account=account).fit(X, y)
    with pytest.raises(AccountError, match="relation"):
        SparseClassifier(relation="replace-one", account=account).fit(X, y)
    with pytest.raises(AccountError, match="n=800"):
        FITS[fit](account, np.vstack((X, X)), np.hstack((y, y)))
    with pytest.raises(BudgetExceededError):
        SparseClassifier(epsilon=5.0, account=account).fit(X, y)
    assert account.state().left == total
    assert not drawn


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("loss", ["removed", "emptied", "another", "a folder"])
def test_without_a_ledger_nothing_is_drawn(fit, loss, account, memory, drawn):
    path = memory / "study.db"
    path.unlink()
    if loss == "emptied":
        path.touch()
    elif loss == "another":
        Account.create(account.url, "others", epsilon=3, delta=1e-5, n=400)
    elif loss == "a folder":
        path.mkdir()
    with pytest.raises(AccountError):
        FITS[fit](account, X, y)
    assert not drawn
    assert loss != "removed" or not path.exists(), "a missing ledger is not made by looking for it"


def test_without_a_server_nothing_is_drawn(postgresql, drawn):
    account = Account.create(postgresql.url, os.urandom(4).hex(), epsilon=3, delta=1e-5, n=400)
    postgresql.pause()
    try:
        with pytest.raises(AccountError, match="a server that can be read"):
            SparseClassifier(n_nonzero=1, account=account).fit(X, y)
    finally:
        postgresql.resume()
    assert not drawn
    SparseClassifier(n_nonzero=1, account=account).fit(X, y)
    assert states(account) == ["spent"]


@pytest.mark.parametrize("fit", FITS)
def test_a_ledger_that_is_lost_during_a_fit_does_not_lose_the_fit(fit, account, memory):
    """The account has its reservation, which counts as spent; the model is there, and a warning says what is not."""
    path, away = memory / "study.db", memory / "away.db"
    moved = []

    def lose():
        if not moved:
            moved.append(path.rename(away))

    with (
        draws_noticed(lose),
        pytest.warns(AccountWarning, match="entry 2 could not be recorded as spent, and counts as spent") as told,
    ):
        fitted = FITS[fit](account, X, y)
    assert told[0].filename == __file__
    assert fitted.certificate_.account_head is not None
    away.rename(path)
    assert states(account) == ["reserved"]


def test_a_reservation_that_cannot_be_given_back_leaves_the_error_of_the_fit(account):
    appended = Pages.append

    def refuse(pages, entry):
        if entry.kind == "released":
            raise AccountError("the disk is full")
        appended(pages, entry)

    with (
        patch.object(Pages, "append", refuse),
        pytest.warns(AccountWarning, match="could not be recorded as released.*the disk is full"),
        pytest.raises(DataError),
    ):
        SparseClassifier(n_nonzero=1, account=account).fit(X, y[:-1])
    assert states(account) == ["reserved"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")
def test_two_hundred_killed_fits(tmp_path):
    from killed_fits import kill_fits

    verdict = kill_fits(f"sqlite:///{tmp_path / 'study.db'}", tmp_path, kills=200)
    assert not verdict.faults, verdict
    assert verdict.kills >= 200
    assert verdict.drawn
    assert verdict.orphans


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")
def test_two_hundred_killed_fits_on_postgresql(postgresql, tmp_path):
    from killed_fits import kill_fits

    verdict = kill_fits(postgresql.url, tmp_path, kills=200)
    assert not verdict.faults, verdict
    assert verdict.kills >= 200


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")
def test_killed_fits_show_a_ledger_that_records_late(memory):
    from killed_fits import kill_fits

    url = f"sqlite:///{memory / 'study.db'}"
    verdict = kill_fits(url, memory, kills=400, ledger="record after the noise")
    assert "more was drawn than is recorded" in verdict.faults, verdict
