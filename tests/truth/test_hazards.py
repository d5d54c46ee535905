"""Hazards: without noise the maximum of the likelihood and its errors; with noise intervals that cover the truth."""

import math

import numpy as np
import pytest
import statsmodels.api as sm

from taciturn import SparseSurvival
from taciturn.core.validation import ONE
from taciturn.methods.survival import hazards as hazards_module
from taciturn.methods.survival import run as run_module

CUTS = tuple(np.linspace(0.5, 5.0, 10).tolist())
LOG_RATIOS = np.array([0.8, -0.5, 0.3, 0.4, 0.0])


def followed(n, seed, rate=0.3, log_ratios=LOG_RATIOS):
    """Features on the lattice and signed times under observation."""
    rng = np.random.default_rng(seed)
    X = np.rint(rng.uniform(-1, 1, (n, log_ratios.size)) * ONE) / ONE
    event, end = rng.exponential(np.exp(-X @ log_ratios) / rate), rng.uniform(1.0, 5.0, n)
    return X, np.where(event <= end, event, -end)


def episodes(X, signed):
    """The rows that statsmodels needs: one for each record and interval in which it is observed."""
    times, events = np.minimum(np.abs(signed), CUTS[-1]), (signed > 0) & (signed <= CUTS[-1])
    rows, counts, exposed, owners = [], [], [], []
    for place, (start, stop) in enumerate(zip((0.0, *CUTS), CUTS, strict=False)):
        there = times > start
        marks = np.zeros((there.sum(), len(CUTS)))
        marks[:, place] = 1.0
        rows.append(np.column_stack((X[there], marks)))
        counts.append((events & (times <= stop))[there].astype(float))
        exposed.append(np.minimum(times[there], stop) - start)
        owners.append(np.flatnonzero(there))
    return np.vstack(rows), *(np.concatenate(parts) for parts in (counts, exposed, owners))


def test_without_noise_it_is_a_poisson_regression_on_episodes():
    X, signed = followed(3000, 1)
    model = SparseSurvival(x_bound=1.0, cuts=CUTS, epsilon=math.inf, inference=True).fit(X, signed)
    rows, counts, exposed, owners = episodes(X, signed)
    robust = {"cov_type": "cluster", "cov_kwds": {"groups": owners, "use_correction": False}}
    expected = sm.GLM(counts, rows, family=sm.families.Poisson(), offset=np.log(exposed)).fit(tol=1e-13, **robust)
    assert np.allclose(model.coef_, expected.params[:5], rtol=0, atol=1e-6)
    assert np.allclose(np.log(model.baseline_hazard_), expected.params[5:], rtol=0, atol=1e-6)
    # Each record is one cluster of its episodes.
    assert np.allclose(model.coef_std_error_, expected.bse[:5], rtol=1e-6)


def test_with_weights_it_is_a_weighted_one():
    X, signed = followed(3000, 1)
    weight = np.random.default_rng(2).uniform(0.0, 5.0, 3000)
    settings = {"x_bound": 1.0, "cuts": CUTS, "epsilon": math.inf, "inference": True, "weight_bound": 5.0}
    model = SparseSurvival(**settings).fit(X, signed, sample_weight=weight)
    rows, counts, exposed, owners = episodes(X, signed)
    poisson = sm.families.Poisson()
    glm = sm.GLM(counts, rows, family=poisson, offset=np.log(exposed), freq_weights=weight[owners])
    best = glm.fit(tol=1e-13, tol_criterion="params", maxiter=200).params
    scores = np.column_stack([np.bincount(owners, each, minlength=3000) for each in glm.score_obs(best, scale=1.0).T])
    bread = np.linalg.inv(glm.hessian(best, scale=1.0))
    errors = np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))
    assert np.allclose(model.coef_, best[:5], rtol=0, atol=1e-6)
    assert np.allclose(np.log(model.baseline_hazard_), best[5:], rtol=0, atol=1e-6)
    assert np.allclose(model.coef_std_error_, errors[:5], rtol=1e-6)
    # They are used, and the curve is that of what the records stand for.
    without = SparseSurvival(**settings).fit(X, signed)
    assert np.abs(without.coef_ - best[:5]).max() > 1e-3
    doubled = SparseSurvival(**settings | {"weight_bound": 10.0}).fit(X, signed, sample_weight=weight)
    assert np.allclose(doubled.survival_curve_.survival, model.survival_curve_.survival, rtol=0, atol=1e-5)
    assert np.abs(without.survival_curve_.survival - model.survival_curve_.survival).max() > 1e-3


@pytest.mark.slow
def test_with_ten_cuts_it_is_within_three_per_cent_of_cox():
    X, signed = followed(20_000, 2)
    model = SparseSurvival(x_bound=1.0, cuts=CUTS, epsilon=math.inf).fit(X, signed)
    times, events = np.minimum(np.abs(signed), CUTS[-1]), (signed > 0) & (signed <= CUTS[-1])
    cox = sm.PHReg(times, X, status=events.astype(int)).fit().params
    large = np.abs(cox) >= 0.3
    assert large.sum() >= 3
    assert np.allclose(model.coef_[large], cox[large], rtol=0.03)


WEIGHTS = hazards_module.HazardWeighing.weights


def looking(self, rows, share=0.2):
    """Weights that look at the event: what a record really adds, in place of the most that its row could."""
    found = WEIGHTS(self, rows)
    if not math.isfinite(self.score):
        return found
    # Fewer of them are below one.
    derivatives = self.model.derivatives(rows)
    size = np.abs(derivatives).max(axis=1) * rows.lengths
    return np.minimum(1.0, share * self.score / np.maximum(size, 1e-12))


def excess_deviance(log_ratios, logs, X, signed, best):
    """The deviance of hazards on episodes over that of a Poisson regression, per null deviance."""
    rows, counts, exposed, _ = episodes(X, signed)

    def deviance(coefficients):
        means = exposed * np.exp(rows @ coefficients)
        return 2.0 * np.sum(np.where(counts > 0.0, -np.log(means), 0.0) - counts + means)

    null = np.concatenate((np.zeros(log_ratios.size), np.full(len(CUTS), math.log(counts.sum() / exposed.sum()))))
    return (deviance(np.concatenate((log_ratios, logs))) - deviance(best)) / deviance(null)


@pytest.mark.slow
def test_fits_with_noise_lose_next_to_no_deviance_on_other_records(monkeypatch):
    X, signed = followed(20_000, 4)
    rows, counts, exposed, _ = episodes(X, signed)
    best = sm.GLM(counts, rows, family=sm.families.Poisson(), offset=np.log(exposed)).fit().params
    other = followed(20_000, 5)

    def excess():
        model = SparseSurvival(x_bound=1.0, cuts=CUTS, epsilon=5.0, random_state=0).fit(X, signed)
        return excess_deviance(model.coef_, np.log(model.baseline_hazard_), *other, best)

    assert excess() < 0.006
    monkeypatch.setattr(hazards_module.HazardWeighing, "weights", lambda self, rows: looking(self, rows, 0.05))
    assert excess() > 0.006


def test_survival_functions_follow_from_hazards():
    X, signed = followed(3000, 3)
    model = SparseSurvival(x_bound=1.0, cuts=CUTS, epsilon=math.inf).fit(X, signed)
    times = np.array([0.0, 0.3, 0.5, 2.2, 5.0])
    found = model.predict_survival_function(X[:7], times)
    for row, values in zip(X[:7], found, strict=True):
        for time, value in zip(times, values, strict=True):
            inside = np.clip(time, (0.0, *CUTS[:-1]), CUTS) - np.array((0.0, *CUTS[:-1]))
            assert math.isclose(value, math.exp(-inside @ model.baseline_hazard_ * math.exp(row @ model.coef_)))


# ------------------------------------------------------------------ intervals

# Of 200 intervals that cover with probability 0.94, fewer than 170 do so with a probability below 1e-6.
N_TABLES, FEWEST = 40, 170


def covered(rate, seed=0, n=4000, epsilon=4.0):
    hits = 0
    for table in range(N_TABLES):
        X, signed = followed(n, [seed, table], rate)
        model = SparseSurvival(x_bound=1.0, cuts=CUTS, epsilon=epsilon, inference=True, random_state=table)
        low, high = model.fit(X, signed).coef_interval_.T
        hits += int(np.sum((low <= LOG_RATIOS) & (high >= LOG_RATIOS)))
    return hits


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.3, 0.06], ids=["half of them with an event", "four of five censored"])
def test_intervals_of_hazard_ratios_cover(rate):
    assert covered(rate) >= FEWEST


@pytest.mark.slow
def test_weights_that_look_at_the_event_do_not_cover(monkeypatch):
    monkeypatch.setattr(hazards_module.HazardWeighing, "weights", looking)
    assert covered(0.3) < FEWEST


@pytest.mark.slow
def test_intervals_without_the_noise_do_not_cover(monkeypatch):
    # Where the noise is the larger part of the errors, and these are known nevertheless.
    little = {"n": 16_000, "epsilon": 0.6}
    assert covered(0.3, **little) >= FEWEST
    noise = run_module.Noise
    monkeypatch.setattr(run_module, "Noise", lambda *deviations: noise(0.0, 0.0, 0.0))
    assert covered(0.3, **little) < FEWEST
