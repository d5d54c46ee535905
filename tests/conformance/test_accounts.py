"""Fits that an account pays for: every class, searches, clones, and what is refused."""

import json
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from every_class import ENTRIES, as_parameters, data_for
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import Pipeline, make_pipeline

from taciturn import (
    Account,
    AccountError,
    BudgetExceededError,
    Certificate,
    CorrelationSelector,
    DataError,
    HardThresholdRegressor,
    ParameterError,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    UnaccountedSearchWarning,
    certificate_of,
    private_score,
)
from taciturn.core.rng import draws_noticed
from taciturn.data.persons import read_persons
from taciturn.privacy import ledger
from taciturn.privacy.certificate import compose
from taciturn.privacy.gdp import epsilon_of_mu, gaussian_cost
from taciturn.privacy.ledger import LedgerEntry, check_entries

RNG = np.random.default_rng(0)
N = 2_000
X = RNG.uniform(-1, 1, (N, 6))
LABELS = np.where(X[:, 0] + 0.3 * RNG.normal(size=N) > 0, "ill", "well")
NUMBERS = np.clip(X[:, 0] - 0.5 * X[:, 1], -1, 1)
CLASSES = ("ill", "well")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

ACCOUNTED = [entry for entry in ENTRIES if "account" in entry.parameters]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def account(url):
    return Account.create(url, "patients", epsilon=3.0, delta=1e-5, n=N)


def no_draw():
    raise AssertionError("a random word was drawn")


# ------------------------------------------------------------------ every class


def test_every_private_class_takes_an_account():
    assert {entry.kind.__name__ for entry in ENTRIES if entry.proved and entry.kind.__name__ != "BoundedScaler"} == {
        entry.kind.__name__ for entry in ACCOUNTED
    }


@pytest.mark.parametrize("entry", as_parameters(ACCOUNTED))
@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_a_fit_is_charged_what_its_certificate_costs(entry, relation, url):
    data = data_for(entry, n=400)
    account = Account.create(url, "a", epsilon=30.0, delta=0.01, n=400, relation=relation, approximate=(5.0, 1e-3))
    model = entry(account=account, relation=relation, random_state=None).fit(*data)
    (charge,) = account.history()
    certificate = model.certificate_
    assert charge.state == "spent"
    assert charge.what == entry.kind.__name__
    assert charge.head == certificate.account_head
    squared, distance = gaussian_cost(certificate.event, ordered=certificate.ordered)
    if math.isinf(squared):
        assert charge.price.gaussian == 0
        assert charge.price.pair == (model.epsilon, model.delta)
    else:
        # Of the certificate's own events, raised by 2**-40 and rounded up.
        assert squared * (1 - 1e-11) <= charge.price.gaussian / ledger.GAUSSIAN_UNITS <= squared * (1 + 1e-9) + 1e-14
        assert charge.price.distance / ledger.DISTANCE_UNITS >= distance * (1 - 1e-9)
    account.verify()
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("entry", as_parameters(ACCOUNTED))
def test_what_an_account_does_not_pay_for_is_refused_before_anything_is_drawn(entry, url):
    data = data_for(entry, n=400)
    account = Account.create(url, "a", epsilon=30.0, delta=0.01, n=399, approximate=(5.0, 1e-3))
    other = Account.create(url, "b", epsilon=30.0, delta=0.01, n=400, relation="replace-one", approximate=(5.0, 1e-3))
    persons = Account.create(url, "c", epsilon=30.0, delta=0.01, n=400, unit="person", approximate=(5.0, 1e-3))
    poor = Account.create(url, "d", epsilon=0.01, delta=1e-9, n=400, approximate=(0.001, 1e-10))
    refusals = [
        ({"account": account}, AccountError, "^n=400: expected at most the 399 records"),
        ({"account": other}, AccountError, "^relation='zero-out': expected 'replace-one'"),
        ({"account": persons}, AccountError, "^unit='record': expected 'person'"),
        ({"account": poor}, BudgetExceededError, "nothing was spent"),
        ({"account": f"{url}#nobody"}, AccountError, "^account='nobody': expected an account that was created"),
        ({"account": f"{url}.not#a"}, AccountError, "^account in 'study.db.not'"),
        (
            {"account": other, "relation": "replace-one", "random_state": 1},
            AccountError,
            "^random_state: expected None",
        ),
    ]
    for changes, kind, sentence in refusals:
        with draws_noticed(no_draw), pytest.raises(kind, match=sentence):
            entry(**({"relation": "zero-out", "random_state": None} | changes)).fit(*data)
    with draws_noticed(no_draw), pytest.raises(ParameterError, match="^epsilon=inf"):
        entry(account=other, relation="replace-one", random_state=None, epsilon=math.inf).fit(*data)
    for each in (account, other, persons, poor):
        assert each.history() == []


def visits(n=400, per_person=4):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, X[:, 0], np.arange(n) // per_person


def test_an_account_counts_persons_by_one_column(url):
    X, y, patients = visits()
    patient, visit = pd.Series(patients, name="patient"), pd.Series(np.arange(400), name="visit")
    fixed = {"epsilon": 20.0, "delta": 1e-3, "unit": "person"}
    opened = Account.create(url, "a", n=400, person_column="patient", **fixed)
    # An account of an earlier version states no column: the first fit that names one fixes it.
    earlier = Account.create(url, "b", n=400, **fixed)
    assert earlier.state().person_column is None
    CorrelationSelector(n_features_to_select=1, y_bounds=(-1, 1), account=earlier).fit(X, y, persons=patients)
    assert earlier.state().person_column is None
    for account in (opened, earlier):
        selector = CorrelationSelector(n_features_to_select=1, y_bounds=(-1, 1), account=account)
        selector.fit(X, y, persons=patient)
        charges = account.history()
        for keys, got in ((visit, "'visit'"), (np.arange(400), "keys without a name")):
            with (
                draws_noticed(no_draw),
                pytest.raises(AccountError, match=f"^persons: .* 'patient', .* got {got}; ") as e,
            ):
                selector.fit(X, y, persons=keys)
            assert "budgets of the same people add up and a second account does not protect them" in str(e.value)
        with pytest.raises(AccountError, match="'patient'"):
            private_score(SparseRegressor(y_bounds=(-1, 1)).fit(X, y), X, y, persons=visit, account=account)
        assert account.history() == charges
        assert account.state().person_column == "patient"
        account.verify()


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
def test_an_account_for_a_public_set_of_keys_refuses_every_other_set(relation, url):
    X, y, patients = visits()
    terms = {"epsilon": 20.0, "delta": 1e-3, "n": 100, "unit": "person", "relation": relation}
    account = Account.create(url, "a", persons=patients, **terms)
    again = Account.create(url, "b", persons=[f" {key}.0 " for key in patients[::-1]], **terms)
    # The digest is keyed: it does not tell that the two accounts are about the same persons.
    stated = [each.entries()[0].facts["persons"] for each in (account, again)]
    assert stated[0] != stated[1]
    assert read_persons(patients, 400).digest not in stated
    for each in (account, again):
        selector = CorrelationSelector(n_features_to_select=1, y_bounds=(-1, 1), relation=relation, account=each)
        selector.fit(X, y, persons=patients)
        for keys in (patients + 1, np.arange(400) // 5, np.where(patients == 7, 1000, patients)):
            with (
                draws_noticed(no_draw),
                pytest.raises(AccountError, match="^persons: expected the keys of all persons"),
            ):
                selector.fit(X, y, persons=keys)
        assert len(each.history()) == 1


def test_no_digest_of_a_private_set_of_keys_is_kept(url):
    X, y, patients = visits()
    terms = {"epsilon": 20.0, "delta": 1e-3, "n": 100, "unit": "person", "relation": "add-remove"}
    with pytest.raises(ParameterError, match="^persons='ndarray': expected None under add-remove"):
        Account.create(url, "a", persons=patients, **terms)
    account = Account.create(url, "a", **terms)
    selector = CorrelationSelector(
        n_features_to_select=1, y_bounds=(-1, 1), relation="add-remove", n_public=100, account=account
    )
    for keys in (patients, patients + 1):
        selector.fit(X, y, persons=keys)
    digest = read_persons(patients, 400).digest
    assert all(digest not in entry.details and "persons" not in entry.facts for entry in account.entries())


def test_a_ledger_that_counts_persons_by_two_columns_is_refused(url):
    X, y, patients = visits()
    account = Account.create(url, "a", epsilon=20.0, delta=1e-3, n=400, unit="person")
    for _ in range(2):
        CorrelationSelector(n_features_to_select=1, y_bounds=(-1, 1), account=account).fit(
            X, y, persons=pd.Series(patients, name="patient")
        )
    entries, made = account.entries(), []
    check_entries(entries)
    for entry in entries:
        details = entry.details.replace('"patient"', '"visit"') if entry.sequence == 4 else entry.details
        fields = (entry.account, entry.kind, entry.reservation, entry.price, details, entry.clock)
        made.append(LedgerEntry.append(made[-1] if made else None, *fields))
    with pytest.raises(AccountError, match="^entry 4 .*expected persons by the column of entry 2"):
        check_entries(made)


def test_an_account_pays_for_one_fit_with_its_own_budget(url):
    for i, model in enumerate((SparseRegressor(), HardThresholdRegressor(n_steps=3), SparseRegressor(inference=True))):
        account = Account.create(url, f"a{i}", epsilon=1.0, delta=1e-6, n=N)
        model.set_params(account=account).fit(X, NUMBERS)
        with pytest.raises(BudgetExceededError):
            SparseRegressor(account=account, epsilon=0.001).fit(X, NUMBERS)
        assert len(account.history()) == 1


def test_what_remains_is_what_a_fit_can_take(account):
    for epsilon in (1.0, 0.3, 0.7):
        SparseClassifier(account=account, epsilon=epsilon).fit(X, LABELS)
    remaining = account.remaining_epsilon(delta=1e-6)
    assert 0.1 < account.remaining_epsilon(delta=1e-5) < remaining
    assert account.remaining_epsilon(delta=1e-5) < 3.0
    with pytest.raises(BudgetExceededError, match=rf"about epsilon={math.floor(remaining * 1000) / 1000:g} at"):
        SparseClassifier(account=account, epsilon=1.0001 * remaining).fit(X, LABELS)
    SparseClassifier(account=account, epsilon=remaining).fit(X, LABELS)
    assert account.remaining_epsilon() < 0.01
    assert account.state().shares[2] < 1e-6


def test_standard_errors_are_charged_once(account):
    for inference in (False, True):
        SparseRegressor(account=account, inference=inference).fit(X, NUMBERS)
    plain, split = (charge.price.gaussian for charge in account.history())
    assert split == pytest.approx(plain, rel=1e-6)


def test_a_score_with_a_delta_is_gaussian_and_cheap(account):
    model = SparseClassifier(classes=CLASSES, random_state=0).fit(X, LABELS)
    for delta in (0.0, 1e-6):
        score = private_score(model, X, LABELS, epsilon=0.25, delta=delta, account=account)
        assert score.certificate.account_head == account.history()[-1].head
        assert score.value > 0.8
    pure, gaussian = account.history()
    assert gaussian.price.gaussian < pure.price.gaussian / 10
    assert {charge.what for charge in account.history()} == {"private_score"}


def test_a_selection_with_a_delta_is_not_pure_where_an_account_pays(account):
    # Of five features in six a pure mechanism is sharper, and costs an account much more.
    selector = CorrelationSelector(epsilon=0.5, delta=1e-6, n_features_to_select=5, random_state=0)
    assert selector.fit(X, NUMBERS).certificate_.public["method"] != "gumbel"
    paid = CorrelationSelector(epsilon=0.5, delta=1e-6, n_features_to_select=5, account=account)
    assert paid.fit(X, NUMBERS).certificate_.public["method"] == "gumbel"
    pure = CorrelationSelector(epsilon=0.5, delta=0.0, n_features_to_select=5, account=account).fit(X, NUMBERS)
    assert pure.certificate_.delta == 0.0
    cheap, dear = (charge.price.gaussian for charge in account.history())
    assert cheap < dear / 3


# ------------------------------------------------------------------ what is charged when a fit fails


def test_a_refusal_without_data_gives_back_and_one_that_read_them_does_not(account):
    model = SparseClassifier(account=account, classes=CLASSES, epsilon=0.1)
    for table, target, kind in (
        (X, LABELS[:-1], DataError),
        (X[0], LABELS, DataError),
        (X[:, :0], LABELS, DataError),
        (X[:0], LABELS[:0], DataError),
    ):
        with pytest.raises(kind):
            model.fit(table, target)
    with pytest.raises(ParameterError):
        clone(model).set_params(n_nonzero=0).fit(X, LABELS)
    assert {charge.state for charge in account.history()} <= {"released"}
    assert account.state().shares == (0.0, 0.0, 1.0)
    missing = X.copy()
    missing[7, 2] = math.nan
    with pytest.raises(DataError, match="finite"):
        model.fit(missing, LABELS)
    assert account.history()[-1].state == "reserved"
    assert account.state().shares[1] > 0.0
    account.verify()


def test_a_missing_label_is_a_refusal_that_read_data_however_labels_are_known(account):
    """Where labels are taken from the target their set is public, but not that one is missing."""
    target = (X[:, 0] > 0).astype(float)
    missing = target.copy()
    missing[5] = math.nan
    for classes in (None, (0.0, 1.0)):
        with pytest.raises(DataError, match="finite"):
            SparseClassifier(account=account, classes=classes, epsilon=0.1).fit(X, missing)
    assert [charge.state for charge in account.history()] == ["reserved"] * 2
    with pytest.raises(DataError, match="one class"):
        SparseClassifier(account=account, epsilon=0.1).fit(X, np.where(missing > 0, 1.0, math.nan))
    assert len(account.history()) == 2


def test_numbers_of_numpy_are_numbers(account):
    added = Account.create(account.url, "added", epsilon=1.0, delta=1e-6, n=None, relation="add-remove")
    SparseRegressor(account=added, relation="add-remove", n_public=np.int64(N), epsilon=0.5).fit(X, NUMBERS)
    assert len(added.history()) == 1


class Lengthless:
    """A target that only becomes an array when it is read."""

    def __array__(self, dtype=None, copy=None):
        return LABELS


def test_a_target_that_does_not_tell_its_length_is_not_scored(account):
    model = SparseClassifier(classes=CLASSES, random_state=0).fit(X, LABELS)
    with pytest.raises(DataError, match="^y: expected a 1d array"):
        private_score(model, X, Lengthless(), account=account)
    assert account.history() == []


# ------------------------------------------------------------------ copies and searches


def test_the_parameter_survives_clones_and_pickles(account, url):
    model = SparseClassifier(account=account, epsilon=0.1, n_nonzero=2)
    for copy in (clone(model), pickle.loads(pickle.dumps(model)), clone(model).set_params(account=f"{url}#patients")):
        copy.fit(X, LABELS)
    assert len(account.history()) == 3


def search(account, epsilon, **given):
    model = SparseClassifier(account=account, classes=CLASSES, epsilon=epsilon)
    return GridSearchCV(model, {"n_nonzero": [1, 2, 3]}, cv=KFold(4), n_jobs=2, **given)


def test_a_search_reserves_for_every_fit_and_warns(account, url):
    with pytest.warns(UnaccountedSearchWarning, match="fits are charged, but scores and the choice"):
        search(f"{url}#patients", 0.2).fit(X, LABELS)
    charges = account.history()
    assert len(charges) == 13
    assert {charge.state for charge in charges} == {"spent"}
    assert len({charge.price for charge in charges}) == 1
    account.verify()


FEW, THEIRS = X[:300], LABELS[:300]


def halving(model):
    return HalvingGridSearchCV(model, {"n_nonzero": [1, 2]}, cv=KFold(2), min_resources=100)


# Searches, and the number of fits of each.
SEARCHES = {
    "grid": (lambda m: GridSearchCV(m, {"n_nonzero": [1, 2, 3]}, cv=KFold(4)).fit(FEW, THEIRS), 13),
    "grid, no refit": (lambda m: GridSearchCV(m, {"n_nonzero": [1, 2]}, cv=2, refit=False).fit(FEW, THEIRS), 4),
    "two grids": (lambda m: GridSearchCV(m, [{"n_nonzero": [1]}, {"n_nonzero": [2, 3]}], cv=2).fit(FEW, THEIRS), 7),
    "randomised": (lambda m: RandomizedSearchCV(m, {"n_nonzero": [1, 2, 3]}, n_iter=2, cv=3).fit(FEW, THEIRS), 7),
    "few settings": (lambda m: RandomizedSearchCV(m, {"n_nonzero": [1, 2]}, n_iter=9, cv=3).fit(FEW, THEIRS), 7),
    "pipeline": (lambda m: GridSearchCV(Pipeline([("m", m)]), {"m__n_nonzero": [1]}, cv=3).fit(FEW, THEIRS), 4),
    "scores": (lambda m: cross_val_score(m, FEW, THEIRS), 5),
    "listed folds": (lambda m: cross_val_score(m, FEW, THEIRS, cv=list(KFold(3).split(FEW))), 3),
    "predictions": (lambda m: cross_val_predict(m, FEW, THEIRS, cv=3), 3),
    "permutations": (lambda m: permutation_test_score(m, FEW, THEIRS, cv=2, n_permutations=3), 8),
    "validation curve": (
        lambda m: validation_curve(m, FEW, THEIRS, param_name="n_nonzero", param_range=[1, 2], cv=2),
        4,
    ),
    "nested": (lambda m: cross_val_score(GridSearchCV(m, {"n_nonzero": [1, 2]}, cv=2), FEW, THEIRS, cv=2), 10),
}


@pytest.mark.filterwarnings("ignore::taciturn.UnaccountedSearchWarning", "ignore:The total space of parameters")
@pytest.mark.parametrize("kind", SEARCHES)
def test_an_unaffordable_search_is_refused_before_its_first_fit(kind, account):
    run, n_fits = SEARCHES[kind]
    left = account.state().left.gaussian
    # One fit too many at this budget: the account pays for n_fits - 1 of them.
    mu = math.sqrt((left / (n_fits - 0.5)) / ledger.GAUSSIAN_UNITS)
    dear = SparseClassifier(account=account, classes=CLASSES, epsilon=epsilon_of_mu(mu, 1e-6), n_nonzero=2)
    with pytest.raises(BudgetExceededError) as caught:
        run(dear)
    assert account.history() == []
    message = str(caught.value)
    assert f"got one of {n_fits} fits" in message
    assert f"can pay for {n_fits - 1}" in message
    assert "nothing was spent" in message
    # The remedy that it states is one.
    affordable = float(re.search(r"epsilon=([0-9.]+) for each", message)[1])
    assert affordable > 0.9 * epsilon_of_mu(math.sqrt(left / n_fits / ledger.GAUSSIAN_UNITS), 1e-6)
    run(clone(dear).set_params(epsilon=affordable))
    assert len(account.history()) == n_fits


@pytest.mark.filterwarnings("ignore::taciturn.UnaccountedSearchWarning")
def test_all_private_steps_and_all_candidates_count(account):
    steps = [("select", CorrelationSelector(account=account, classes=CLASSES, epsilon=0.1, n_features_to_select=3))]
    whole = Pipeline([*steps, ("model", SparseClassifier(account=account, classes=CLASSES, epsilon=0.1, n_nonzero=1))])
    # Each of the two steps alone could be paid for.
    dear = {"select__epsilon": 0.5, "model__epsilon": 1.0}
    refused = pytest.raises(BudgetExceededError, match=r"of 14 fits, .* multiply the epsilon of every step by 0\.\d+")
    with refused:
        GridSearchCV(clone(whole).set_params(**dear), {"model__n_nonzero": [1, 2]}, cv=3).fit(FEW, THEIRS)
    with refused:
        GridSearchCV(whole, {"model__epsilon": [0.1, 1.9]}, cv=3).fit(FEW, THEIRS)
    assert account.history() == []
    for part in whole:
        assert not hasattr(part, "certificate_")
    GridSearchCV(whole, {"model__epsilon": [0.1, 0.4]}, cv=3).fit(FEW, THEIRS)
    assert len(account.history()) == 14
    account.verify()


@pytest.mark.filterwarnings("ignore::taciturn.UnaccountedSearchWarning")
def test_a_search_in_other_processes_is_refused_as_well(account):
    with pytest.raises(BudgetExceededError, match="got one of 13 fits"):
        search(account, 1.5).fit(FEW, THEIRS)
    assert account.history() == []


def test_the_warning_names_the_number_of_fits_and_their_total(account):
    model = SparseClassifier(classes=CLASSES, epsilon=0.5, n_nonzero=1)
    with pytest.warns(
        UnaccountedSearchWarning, match=r"its 5 fits, which add up to at most epsilon=2\.5 and delta=5e-06"
    ):
        cross_val_score(model, FEW, THEIRS)
    with pytest.warns(UnaccountedSearchWarning, match="its 3 fits are charged"):
        GridSearchCV(model.set_params(account=account), {"epsilon": [0.1]}, cv=2).fit(FEW, THEIRS)
    # Budgets that differ have no total that the copy knows.
    with pytest.warns(UnaccountedSearchWarning, match="its 5 fits, which add up,"):
        GridSearchCV(model.set_params(account=None), {"epsilon": [0.1, 0.2]}, cv=2).fit(FEW, THEIRS)


@pytest.mark.parametrize("unknown", [halving, lambda m: RFE(m, n_features_to_select=5)], ids=["halving", "elimination"])
def test_a_search_of_an_unknown_number_of_fits_warns(account, unknown):
    model = SparseClassifier(account=account, classes=CLASSES, epsilon=0.1, n_nonzero=1)
    with pytest.warns(
        UnaccountedSearchWarning, match="the number of its fits is not known beforehand; each is charged"
    ):
        unknown(model).fit(FEW, THEIRS)


@pytest.mark.filterwarnings("ignore::taciturn.UnaccountedSearchWarning")
def test_the_number_of_folds_is_not_read_off_private_rows(url):
    # One fold for each record: as many fits as there are records, a number that add-remove keeps private.
    for rows in (20, 30):
        account = Account.create(url, f"a{rows}", epsilon=1.0, delta=1e-5, n=None, relation="add-remove")
        model = SparseRegressor(account=account, relation="add-remove", n_public=50, epsilon=0.9, n_nonzero=1)
        with pytest.warns(FitFailedWarning, match=r"BudgetExceededError: account='a\d+': expected a fit of"):
            cross_val_score(model, X[:rows], NUMBERS[:rows], cv=LeaveOneOut(), scoring="neg_max_error")
        assert len(account.history()) == 1


@pytest.mark.filterwarnings("ignore::taciturn.UnaccountedSearchWarning")
def test_a_fixed_threshold_is_no_search(account):
    model = SparseClassifier(account=account, classes=CLASSES, epsilon=0.1, n_nonzero=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnaccountedSearchWarning)
        FixedThresholdClassifier(model, threshold=0.3, pos_label="ill").fit(FEW, THEIRS)
    assert len(account.history()) == 1


def test_the_warning_knows_that_places_move_where_rows_come_and_go():
    model = SparseRegressor(relation="add-remove", n_public=N)
    with pytest.warns(UnaccountedSearchWarning, match="fold by a hash of a key of each row"):
        cross_val_score(model, X, NUMBERS, cv=KFold(2))


def test_a_fit_that_is_no_search_does_not_warn(account):
    clone(SparseClassifier(account=account, epsilon=0.1)).fit(X, LABELS)
    make_pipeline(clone(SparseClassifier(account=account, epsilon=0.1))).fit(X, LABELS)


# ------------------------------------------------------------------ certificates


def test_composed_certificates_keep_the_entries_of_their_parts(url):
    account = Account.create(url, "a", epsilon=10.0, delta=1e-3, n=N)
    scaler = PrivateScaler(account=account, epsilon=4.0, delta=1e-4, tail=0.2)
    pipeline = make_pipeline(scaler, CorrelationSelector(account=account, n_features_to_select=2, epsilon=0.5))
    pipeline.fit(X, NUMBERS)
    whole = certificate_of(pipeline)
    heads = [facts["account_head"] for facts in whole.public.values()]
    assert heads == [charge.head for charge in account.history()]
    assert whole.account_head is None
    assert Certificate.from_json(whole.to_json()) == whole
    assert compose(whole, whole).epsilon > whole.epsilon
    assert json.loads(whole.to_json())["unit"] == "record"
