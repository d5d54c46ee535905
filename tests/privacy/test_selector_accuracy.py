"""How much of the truth private selections find, on the papers' synthetic sets."""

from functools import cache

import numpy as np
import pytest

from taciturn import CorrelationSelector
from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import correlation_scores
from taciturn.datasets import make_screening_linear
from taciturn.methods.selection.plan import plan_top_k
from taciturn.methods.selection.run import select_top_k
from taciturn.metrics import support_f1, top_k_accuracy
from taciturn.published.dpsis import printed_top_k

REPEATS = 300


@cache
def synthetic_sets():
    """Scores and true weights of the synthetic set of DP-SIS (its equations 5 and 6), centred and scaled as there."""
    rng = np.random.default_rng(0)
    n, d = 100, 2000
    sets = []
    for _ in range(REPEATS):
        X = rng.standard_normal((n, d))
        w = np.zeros(d)
        signs = np.where(rng.random(8) < 0.4, -1.0, 1.0)
        w[rng.choice(d, 8, replace=False)] = signs * (4 * np.log(n) / np.sqrt(n) + np.abs(rng.standard_normal(8)))
        y = X @ w + np.sqrt(1.5) * rng.standard_normal(n)
        X -= X.mean(axis=0)
        y -= y.mean()
        sets.append((np.abs(X.T @ y) / (np.abs(X).max(axis=0) * np.abs(y).max()), np.abs(w)))
    return sets


@cache
def accuracy(method, k, epsilon):
    """The share of the k largest true weights that is found, at pure epsilon."""
    unit = correlation_scores(1.0, 1.0, "zero-out")
    plan = None if method == "printed" else plan_top_k(Budget(epsilon, 0.0), 2000, k, unit, method=method)
    shares = []
    for seed, (scores, importances) in enumerate(synthetic_sets()):
        stream = Stream.of(seed)
        chosen = select_top_k(plan, scores, stream) if plan else printed_top_k(scores, k, epsilon, 0.5, stream)
        shares.append(top_k_accuracy(importances, np.isin(np.arange(2000), chosen)))
    return float(np.mean(shares))


def test_auto_is_pure_and_at_least_twice_as_accurate_as_the_canonical_mechanism():
    plan = plan_top_k(Budget(10.0, 0.0), 2000, 5, correlation_scores(1.0, 1.0, "zero-out"))
    assert plan.budget.delta == 0.0
    auto, canonical = accuracy("auto", 5, 10.0), accuracy("canonical-lipschitz", 5, 10.0)
    assert auto >= 2 * canonical
    # Half the budget, which is twice the noise, would not do.
    assert accuracy("auto", 5, 5.0) < 2 * canonical


@pytest.mark.parametrize(
    ("method", "k", "shares"),
    [
        ("canonical-lipschitz", 5, {5.0: 0.012, 10.0: 0.042, 20.0: 0.285}),
        ("canonical-lipschitz", 8, {5.0: 0.010, 10.0: 0.029, 20.0: 0.083}),
        ("printed", 5, {5.0: 0.012, 10.0: 0.042, 20.0: 0.285}),
        ("auto", 5, {10.0: 0.182, 20.0: 0.444}),
        ("gumbel", 5, {10.0: 0.182, 20.0: 0.444}),
    ],
)
def test_shares_of_the_true_top_k_are_those_of_an_independent_reproduction(method, k, shares):
    found = {epsilon: accuracy(method, k, epsilon) for epsilon in shares}
    assert list(found.values()) == sorted(found.values())
    # The standard error is below .015 here, and larger there: twenty data sets.
    tolerances = {epsilon: 0.03 if share < 0.1 else 0.05 for epsilon, share in shares.items()}
    for epsilon, share in shares.items():
        assert found[epsilon] == pytest.approx(share, abs=tolerances[epsilon])
    # Half the budget would be seen.
    assert abs(found[10.0] - shares[20.0]) > tolerances[20.0]


@pytest.mark.parametrize(("correlation", "f1"), [(0.0, 0.904), (0.5, 0.973)])
def test_signs_find_what_wide_bounds_drown(correlation, f1):
    found = {"sign": [], "quadrant": [], "correlation": []}
    for seed in range(3):
        X, y, coef = make_screening_linear(correlation=correlation, random_state=seed)
        for score, values in found.items():
            selector = CorrelationSelector(
                epsilon=5.0,
                delta=1 / 3000,
                y_bounds=(-70.0, 70.0),
                n_features_to_select=70,
                mechanism="gumbel",
                score_func=score,
                random_state=seed,
            )
            values.append(support_f1(coef != 0, selector.fit(X, y).support_))
    means = {score: np.mean(values) for score, values in found.items()}
    assert means["sign"] == pytest.approx(f1, abs=0.05)
    assert means["quadrant"] == pytest.approx(f1, abs=0.06)
    # The range of the target is far wider than nearly all its values: products are small beside their bound.
    assert means["correlation"] < 0.4
