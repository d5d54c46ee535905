"""Searches of settings and cross-validation: the law of the number of trials, what a trial costs, and what is shown."""

import logging
import math
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import taciturn
from taciturn import (
    Account,
    BudgetExceededError,
    Certificate,
    DataError,
    FrankWolfeClassifier,
    HardThresholdClassifier,
    HardThresholdRegressor,
    ObjectivePerturbationClassifier,
    ParameterError,
    PrivateRandomizedSearch,
    SparseClassifier,
    private_cross_val_score,
)
from taciturn.accounting import epsilon_of
from taciturn.core.rng import Stream
from taciturn.events import (
    ComposedEvent,
    GaussianEvent,
    RepeatAndSelectEvent,
    event_from_dict,
    event_to_dict,
    for_group,
)
from taciturn.methods.scores import cross_validation
from taciturn.methods.search import estimator as searches
from taciturn.methods.search.estimator import number_of_trials
from taciturn.methods.search.plan import largest_epsilon, plan_search
from taciturn.privacy.budget import Budget
from taciturn.privacy.gdp import gaussian_cost
from taciturn.privacy.rdp import mean_trials, success_probability


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, (X[:, 0] > 0).astype(int)


def small(**given):
    """A search of quick fits, four of them on average."""
    model = HardThresholdClassifier(x_bound=1.0, classes=(0, 1), n_nonzero=2, n_steps=2)
    settings = {"epsilon": 4.0, "mean_trials": 4.0, "random_state": 0} | given
    model.set_params(**settings.pop("model", {}))
    return PrivateRandomizedSearch(model, {"n_steps": [1, 2, 3]}, **settings)


# ------------------------------------------------------------------ how many trials


LAWS = {0.0: lambda gamma: stats.logser(1 - gamma), 1.0: lambda gamma: stats.geom(gamma)}


def follows_its_law(draw, shape, mean=4.0, n=4000):
    law = LAWS[shape](success_probability(mean, shape))
    assert law.mean() == pytest.approx(mean)
    draws = np.array([draw(seed) for seed in range(n)])
    edges = np.array([1, 2, 3, 4, 6, 9, 14])
    observed = np.array(
        [np.sum((draws >= a) & (draws < b)) for a, b in zip(edges, [*edges[1:], math.inf], strict=True)]
    )
    cumulative = np.append(law.cdf(edges - 1), 1.0)
    return stats.chisquare(observed, n * np.diff(cumulative)).pvalue > 1e-7


@pytest.mark.parametrize("shape", LAWS)
def test_the_number_of_trials_follows_its_law(shape):
    assert follows_its_law(lambda seed: number_of_trials(4.0, shape, Stream.of(seed)), shape)
    # A fixed number, and the other law of the same mean.
    assert not follows_its_law(lambda seed: 4, shape)
    assert not follows_its_law(lambda seed: number_of_trials(4.0, 1.0 - shape, Stream.of(seed)), shape)


class Counting(PrivateRandomizedSearch):
    """Counts its trials in place of making them."""

    def _try(self, *given):
        self.made = getattr(self, "made", 0) + 1
        return searches._Trial({}, None, -math.inf, math.nan)


def trials_made(seed):
    search = Counting(**small(random_state=seed).get_params(deep=False))
    with pytest.raises(ParameterError, match="candidates that can be fitted"):
        search.fit(np.zeros((4, 1)), np.zeros(4, dtype=int))
    return search.made


def test_a_search_makes_as_many_trials_as_its_law_says(monkeypatch):
    plan = plan_search(Budget(4.0, 1e-6), 4.0, "logarithmic")
    monkeypatch.setattr(searches, "plan_search", lambda *given: plan)
    assert follows_its_law(trials_made, 0.0, n=600)
    monkeypatch.setattr(searches, "number_of_trials", lambda *given: 4)
    assert not follows_its_law(trials_made, 0.0, n=600)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("mean", [1.01, 3.0, 1000.0])
def test_parameters_of_laws_are_rounded_to_the_dear_side(shape, mean):
    gamma = success_probability(mean, shape)
    assert mean_trials(gamma, shape) >= mean
    assert mean_trials(gamma * (1 + 1e-9), shape) < mean * (1 + 1e-12)


# ------------------------------------------------------------------ what a trial costs


def test_every_trial_costs_what_it_may_and_hardly_less(monkeypatch):
    models = []
    original = searches.metric_of
    monkeypatch.setattr(searches, "metric_of", lambda model, metric: models.append(model) or original(model, metric))
    search = small(mean_trials=8.0).fit(*table())
    price = search.certificate_.events[0].event
    assert len(models) > 2
    for model in models:
        # The best one has the certificate of the search by now.
        if model is not search.best_estimator_:
            squared, _ = gaussian_cost(model.certificate_.event)
            assert 0.99 < squared * price.noise_multiplier**2 <= 1.0
    assert search.certificate_.epsilon == 4.0
    assert epsilon_of(GaussianEvent(price.noise_multiplier), 1e-6) < 0.7 * 4.0


def test_the_certificate_is_that_of_the_search_and_is_recomputed_when_it_is_read():
    search = small().fit(*table())
    assert search.best_estimator_.certificate_ is search.certificate_
    text = search.certificate_.to_json()
    assert Certificate.from_json(text) == search.certificate_
    event = search.certificate_.events[0].event
    assert event_from_dict(event_to_dict(event)) == event
    # As a plan that forgets that the best of several is shown.
    with pytest.raises(taciturn.CertificateError):
        Certificate.from_json(text.replace(f'"mean": {event.mean}', '"mean": 400.0'))
    group = for_group(event, 3)
    assert group.noise_multiplier == event.noise_multiplier / 3
    assert (group.mean, group.shape, group.distance) == (event.mean, event.shape, event.distance)


def test_fits_that_no_gaussian_release_can_pay_for_score_worst():
    X, y = table()
    dear = ObjectivePerturbationClassifier(x_bound=1.0, classes=(0, 1), row_bound=2.0)
    with pytest.raises(ParameterError, match="candidates that can be fitted at this budget"):
        PrivateRandomizedSearch(dear, {"regularisation": [1.0]}, epsilon=4.0, random_state=0).fit(X, y)
    # Of two candidates the one that is refused is never chosen.
    for seed in range(6):
        search = small(random_state=seed, mean_trials=40.0)
        search.param_distributions = {"n_steps": [1, *[-1] * 9]}
        with suppress(ParameterError):
            assert search.fit(X[:40], y[:40]).best_params_ == {"n_steps": 1}


def test_a_fit_whose_gaussian_cost_is_above_its_budget_gets_a_smaller_one():
    """Selections are calibrated by another bound, so that their Gaussian parameter may be too large."""
    X, y = table()
    model = FrankWolfeClassifier(x_bound=1.0, classes=(0, 1), n_steps=2)
    plan = plan_search(Budget(3.0, 1e-6), 4.0, "logarithmic")

    def price(epsilon):
        found = clone(model).set_params(epsilon=epsilon).plan_for(X, y)
        return found.cost, found.ordered

    epsilon = largest_epsilon(plan, price)
    assert gaussian_cost(price(epsilon)[0])[0] <= plan.noise_multiplier**-2
    assert gaussian_cost(price(1.01 * epsilon)[0])[0] > plan.noise_multiplier**-2


# ------------------------------------------------------------------ what is shown


def shown(seed, caplog, recwarn):
    """Log records and warnings of a search, and how many trials it made."""
    made = []
    original = searches.number_of_trials
    searches.number_of_trials = lambda *given: made.append(original(*given)) or made[-1]
    caplog.clear()
    recwarn.clear()
    try:
        with caplog.at_level(logging.INFO, "taciturn"):
            small(random_state=seed, epsilon=1.0).fit(*table(60))
    finally:
        searches.number_of_trials = original
    return made[0], len(caplog.records), len(recwarn)


def test_neither_logs_nor_warnings_reveal_the_number_of_trials(caplog, recwarn, monkeypatch):
    def numbers():
        found = [shown(seed, caplog, recwarn) for seed in range(8)]
        assert len({trials for trials, _, _ in found}) > 2
        return {rest for _, *rest in map(tuple, found) for rest in [tuple(rest)]}

    assert len(numbers()) == 1
    monkeypatch.setattr(searches, "in_secret", nullcontext)
    assert len(numbers()) > 2


ALL_THAT_IS_SHOWN = {
    "best_estimator_", "best_params_", "best_score_", "best_score_std_", "certificate_", "n_features_in_",
}  # fmt: skip


def shows_the_best_alone(kind):
    """Whether searches of a class keep what is paid for, and the same amount of it whatever the number of trials."""
    sizes, names = set(), set()
    for seed in range(6):
        plain = small(mean_trials=8.0, random_state=seed)
        search = kind(**plain.get_params(deep=False)).fit(*table())
        parameters = set(plain.get_params(deep=False))
        names |= set(vars(search)) - parameters - ALL_THAT_IS_SHOWN
        sizes.add(tuple(len(value) for _, value in sorted(vars(search).items()) if isinstance(value, list)))
    return not names and len(sizes) == 1


class AllScores(PrivateRandomizedSearch):
    """As other searches have it: the score of every trial is shown."""

    def _try(self, *given):
        trial = super()._try(*given)
        self.cv_results_ = [*getattr(self, "cv_results_", []), trial.score]
        return trial


class LastModel(PrivateRandomizedSearch):
    """The model of the last trial is left behind."""

    def _try(self, *given):
        trial = super()._try(*given)
        self._last = trial.model
        return trial


def test_nothing_of_the_other_trials_is_kept():
    assert shows_the_best_alone(PrivateRandomizedSearch)
    assert not shows_the_best_alone(AllScores)
    assert not shows_the_best_alone(LastModel)


def test_the_best_noisy_score_wins_and_the_first_of_equal_ones():
    calls = []

    class Recording(PrivateRandomizedSearch):
        def _try(self, *given):
            trial = super()._try(*given)
            calls.append(trial)
            return trial

    search = Recording(small().estimator, {"n_steps": [1, 2, 3]}, epsilon=4.0, mean_trials=9.0, random_state=3)
    search.fit(*table())
    assert len(calls) > 3
    scores = [trial.score for trial in calls]
    best = calls[scores.index(max(scores))]
    assert search.best_estimator_ is best.model
    assert search.best_score_ == max(scores)
    # Fresh noise in every trial: equal settings have other models.
    same = [trial for trial in calls if trial.params == calls[0].params]
    assert len({trial.model.coef_.tobytes() for trial in same}) == len(same)


def test_regressors_are_compared_by_their_error():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3))
    y = 0.5 * X[:, 0] + rng.uniform(-0.5, 0.5, 1000)
    model = HardThresholdRegressor(x_bound=1.0, y_bounds=(-1, 1), n_nonzero=1)
    search = PrivateRandomizedSearch(model, {"n_steps": [1, 20]}, epsilon=8.0, mean_trials=6.0, random_state=1)
    search.fit(X, y)
    # The variance of the errors is 1/12.
    assert -np.var(y) < search.best_score_ < -0.05
    assert search.score(X, y) > 0.2
    assert search.predict(X[:4]).shape == (4,)
    assert not hasattr(search, "predict_proba")


def test_without_noise_the_best_setting_is_found():
    X, y = table(400)
    search = small(epsilon=math.inf, mean_trials=30.0)
    search.param_distributions = {"n_steps": [1, 2], "fit_intercept": [True]}
    assert search.fit(X, y).certificate_.status == "not private"
    assert search.best_score_ > 0.8


# ------------------------------------------------------------------ records, persons, accounts


@pytest.mark.parametrize("relation", ["zero-out", "replace-one", "add-remove"])
def test_rows_of_a_person_are_in_one_part(relation, monkeypatch):
    X, y = table(240)
    persons = np.repeat(np.arange(80), 3)
    seen = []
    original = HardThresholdClassifier.fit

    def fit(self, X, y, persons=None):
        seen.append(set(persons))
        return original(self, X, y, persons)

    monkeypatch.setattr(HardThresholdClassifier, "fit", fit)
    public = {"n_public": 80} if relation == "add-remove" else {}
    search = small(model={"relation": relation, **public}, test_size=0.25)
    search.fit(X, y, persons=persons)
    assert search.certificate_.unit == "person"
    assert all(each == seen[0] for each in seen)
    if relation != "add-remove":
        assert len(seen[0]) == 60
    seen.clear()
    found = private_cross_val_score(search.estimator, X, y, persons=persons, cv=4, random_state=0)
    assert found.certificate.unit == "person"
    everybody = set(range(80))
    assert sorted(p for each in seen for p in everybody - each) == sorted(everybody)


def test_an_account_pays_once_from_its_approximate_budget(tmp_path):
    X, y = table()
    url = f"sqlite:///{tmp_path}/study.db"
    Account.create(url, "a", epsilon=6.0, delta=1e-5, n=300, approximate=(4.0, 2e-6))
    search = small(account=f"{url}#a", random_state=None).fit(X, y)
    (entry,) = Account.open(url, "a").history()
    assert search.certificate_.account_head is not None
    assert entry.what == "PrivateRandomizedSearch"
    with pytest.raises(BudgetExceededError):
        clone(search).fit(X, y)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"estimator": 3}, "a regressor or classifier of taciturn"),
        ({"param_distributions": {"epsilon": [1.0]}}, "that the search does not set"),
        ({"param_distributions": {"alpha": [1.0]}}, "a parameter of HardThresholdClassifier"),
        ({"mean_trials": 1.0}, "a number above 1"),
        ({"law": "poisson"}, "'logarithmic' or 'geometric'"),
        ({"metric": "all"}, "metric"),
        ({"test_size": 1.0}, "test_size"),
        ({"delta": 0.0}, "a number > 0"),
    ],
)
def test_wrong_parameters_are_refused_in_a_sentence(change, error):
    with pytest.raises(ParameterError, match=error):
        small().set_params(**change).fit(*table())


def test_tables_in_partitions_are_refused():
    from taciturn.engines import PartitionedTable

    with pytest.raises(DataError, match="a table in memory"):
        small().fit(object.__new__(PartitionedTable), None)


# ------------------------------------------------------------------ cross-validation


def test_cross_validation_costs_all_fits_but_one_and_one_score():
    X, y = table(3000)
    model = SparseClassifier(x_bound=1.0, classes=(0, 1), epsilon=0.7, n_nonzero=2)
    found = private_cross_val_score(model, X, y, cv=4, epsilon=0.4, random_state=0)
    fit = gaussian_cost(clone(model).plan_for(X, y).cost)[0]
    (line,) = found.certificate.events
    score = line.scale**-2.0
    expected = epsilon_of(GaussianEvent((3 * fit + score) ** -0.5), 1e-6)
    assert found.certificate.epsilon == pytest.approx(expected, rel=1e-4)
    # A saving over fits, as if a record were in one of them, is none that there is.
    assert epsilon_of(GaussianEvent((fit + score) ** -0.5), 1e-6) < 0.8 * found.certificate.epsilon
    assert isinstance(line.event, ComposedEvent)
    assert len(found.scores) == 4
    assert found.value == pytest.approx(np.mean(found.scores))
    assert found.interval[0] < found.value < found.interval[1]


def test_every_record_is_scored_once_and_fitted_elsewhere(monkeypatch):
    X, y = table(101)
    X[:, 2] = np.arange(101) / 101
    fitted, scored = [], []
    original, read = HardThresholdClassifier.fit, cross_validation.read_source

    def fit(self, X, y, persons=None):
        fitted.append(X[:, 2].copy())
        return original(self, X, y, persons)

    def read_source(asked, X, *given, **named):
        scored.append(X[:, 2].copy())
        return read(asked, X, *given, **named)

    monkeypatch.setattr(HardThresholdClassifier, "fit", fit)
    monkeypatch.setattr(cross_validation, "read_source", read_source)
    private_cross_val_score(small().estimator, X, y, cv=5, random_state=0)
    np.testing.assert_array_equal(np.sort(np.concatenate(scored)), X[:, 2])
    for kept, held in zip(fitted, scored, strict=True):
        assert not set(kept) & set(held)
        assert kept.size + held.size == 101
    assert {held.size for held in scored} == {20, 21}


def test_a_fold_without_records_is_refused_after_the_charge(tmp_path):
    """Where the number of records is private, a refusal that follows from it has to be paid for."""
    url = f"sqlite:///{tmp_path}/study.db"
    Account.create(url, "a", epsilon=20.0, delta=1e-5, n=10, relation="add-remove")
    model = HardThresholdClassifier(x_bound=1.0, classes=(0, 1), n_nonzero=1, relation="add-remove", n_public=10)
    with pytest.raises(DataError):
        private_cross_val_score(model, np.ones((1, 2)), np.ones(1, dtype=int), cv=2, account=f"{url}#a")
    assert len(Account.open(url, "a").history()) == 1


def test_one_record_cannot_be_fitted_and_scored():
    with pytest.raises(DataError, match="at least two records"):
        small().fit(np.ones((1, 2)), np.ones(1, dtype=int))


def test_events_of_searches_are_part_of_the_public_names():
    assert RepeatAndSelectEvent(2.0, 10.0).shape == 0.0
    for wrong in ({"mean": 0.5}, {"shape": -1.0}, {"noise_multiplier": 0.0}):
        with pytest.raises(ParameterError):
            RepeatAndSelectEvent(**({"noise_multiplier": 2.0, "mean": 10.0} | wrong))
