"""Persons with several rows: errors do not grow with the rows of each, and standard errors are those of persons."""

import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

from taciturn import HardThresholdRegressor, SparseClassifier, SparseRegressor

sys.path.append(str(Path(__file__).parents[1] / "privacy"))
from whole_fits import less_noise

TRUTH = np.array([0.5, -0.3, 0.2, 0.0, 0.0])
RUNS = 20


def error(model, n_rows, seed, times=1):
    """The distance of coefficients from the truth, for persons who differ and have so many rows each."""
    rng = np.random.default_rng((n_rows, seed))
    owners = np.repeat(np.arange(1500), n_rows)
    X = rng.uniform(-1.0, 1.0, (owners.size, 5))
    y = X @ TRUTH + 0.2 * rng.standard_normal(1500)[owners] + 0.2 * rng.standard_normal(owners.size)
    with less_noise(1 / times) if times > 1 else nullcontext():
        fitted = model.set_params(random_state=seed).fit(X, y, persons=owners)
    return float(np.linalg.norm(fitted.coef_ - TRUTH))


@pytest.mark.parametrize(
    "model",
    [SparseRegressor(n_nonzero="all", y_bounds=(-2, 2)), HardThresholdRegressor(n_nonzero=5, y_bounds=(-2, 2))],
    ids=lambda model: type(model).__name__,
)
def test_the_error_does_not_grow_with_the_rows_of_a_person(model):
    one, three, nine = (np.mean([error(model, n_rows, seed) for seed in range(RUNS)]) for n_rows in (1, 3, 9))
    assert max(three, nine) < 1.1 * one
    # Group privacy for nine rows takes nine times the noise, which the same comparison rejects.
    as_group = np.mean([error(model, 9, seed, times=9) for seed in range(RUNS)])
    assert as_group > 1.1 * one
    assert as_group > 3.0 * nine


def table(seed, *, labelled):
    """Rows of 4,000 persons with 1 to 9 rows, whose features and errors hang together, and true coefficients."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(4000), rng.integers(1, 10, 4000))
    features = 0.9 * rng.uniform(-1.0, 1.0, (4000, 4))[owners] + 0.1 * rng.uniform(-1.0, 1.0, (owners.size, 4))
    truth = TRUTH[:4]
    if not labelled:
        errors = 0.3 * rng.standard_normal(4000)[owners] + 0.1 * rng.standard_normal(owners.size)
        return features, features @ truth + errors, owners, truth
    # Most rows of a person share the number that decides their label, whose law is logistic in every row.
    shared = np.where(rng.random(owners.size) < 0.7, rng.random(4000)[owners], rng.random(owners.size))
    return features, (shared < 1.0 / (1.0 + np.exp(-2.0 * features @ truth))).astype(int), owners, 2.0 * truth


def coverage(model, *, labelled, by_person):
    covered = []
    for seed in range(40):
        X, y, owners, truth = table(seed, labelled=labelled)
        fitted = model.set_params(random_state=seed).fit(X, y, persons=owners if by_person else None)
        low, high = fitted.coef_interval_.T
        known = np.isfinite(low)
        covered += ((low <= truth) & (truth <= high))[known].tolist()
    assert len(covered) >= 100
    return np.mean(covered)


@pytest.mark.parametrize("labelled", [False, True], ids=["numbers", "labels"])
def test_without_noise_errors_are_those_of_clusters(labelled):
    X, y, owners, _ = table(3, labelled=labelled)
    kind, target = (SparseClassifier, {"classes": (0, 1)}) if labelled else (SparseRegressor, {"y_bounds": (-3, 3)})
    model = kind(epsilon=float("inf"), inference=True, columns=(0, 1, 2, 3), **target).fit(X, y, persons=owners)
    weights, design = 1.0 / np.bincount(owners)[owners], sm.add_constant(X, prepend=False)
    if labelled:
        # A sandwich by hand: statsmodels has none for weighted labels in clusters.
        exact = sm.GLM(y, design, family=sm.families.Binomial(), freq_weights=weights).fit()
        rates = exact.predict(design)
        scores = design * (weights * (rates - y))[:, None]
        inverse = np.linalg.inv(design.T @ (design * (weights * rates * (1.0 - rates))[:, None]))
        by_person = np.array([np.bincount(owners, column) for column in scores.T])
        of_clusters, of_rows = (inverse @ (each @ each.T) @ inverse for each in (by_person, scores.T))
        expected, independent = np.sqrt(np.diag(of_clusters)), np.sqrt(np.diag(of_rows))
    else:
        least_squares = sm.WLS(y, design, weights=weights)
        exact = least_squares.fit(cov_type="cluster", cov_kwds={"groups": owners, "use_correction": False})
        expected, independent = exact.bse, least_squares.fit(cov_type="HC0").bse
    assert np.allclose(np.append(model.coef_, model.intercept_), exact.params, rtol=0.0, atol=2e-4)
    assert np.allclose(model.inference_.std_error[0], expected, rtol=2e-3)
    # Rows as if they were independent are another matter.
    assert np.all(model.inference_.std_error[0] > 1.2 * independent)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [False, True], ids=["numbers", "labels"])
@pytest.mark.parametrize("columns", [(0, 1, 2, 3), None], ids=["fixed", "halves"])
def test_intervals_cover_the_truth_where_the_rows_of_a_person_hang_together(labelled, columns):
    own = {"columns": columns} if columns is not None else {"n_nonzero": 3}
    kind, target = (SparseClassifier, {"classes": (0, 1)}) if labelled else (SparseRegressor, {"y_bounds": (-3, 3)})
    model = kind(epsilon=8.0, inference=True, **own, **target)
    found = coverage(model, labelled=labelled, by_person=True)
    assert found > 0.88
    # As if rows were independent, standard errors are too small.
    assert coverage(model, labelled=labelled, by_person=False) < found - 0.05
