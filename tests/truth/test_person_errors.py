"""Persons with several rows: errors do not grow with the rows of each, and standard errors are those of persons."""

import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm

from taciturn import HardThresholdRegressor, SparseClassifier, SparseRegressor
from taciturn.data.records import Records
from taciturn.engines import ArraySource
from taciturn.losses import LogisticLoss
from taciturn.methods.inference.whitened import Coordinates, InformationSum, LabelLoss, ScoreSum, ScoreWeighing

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


# ------------------------------------------------------------------ one weight from rows, and the rows that count


def test_weights_from_rows_converge_to_the_truth_where_clipped_sums_do_not():
    rng, truth, bound, n_persons = np.random.default_rng(0), np.array([1.5, -1.5]), 0.5, 20_000
    owners = np.repeat(np.arange(n_persons), rng.integers(1, 10, n_persons))
    X = rng.uniform(-1.0, 1.0, (owners.size, 2))
    y = (rng.random(owners.size) < 1.0 / (1.0 + np.exp(-X @ truth))).astype(int)
    source = ArraySource(Records(X, y, owners, n_persons, True), 1.0, n_persons)
    at, loss, theta = Coordinates.of(np.eye(2), None, intercept=False), LogisticLoss(), np.zeros(2)
    for _ in range(12):
        model = LabelLoss(theta[None], np.ones(2))
        weighing = ScoreWeighing(model, bound / 2.0)
        gradient = source.total(ScoreSum(at, loss, model, weighing, bound / 2.0, 1 << 34)) * (bound / 2.0 / 2.0**34)
        information = source.total(InformationSum(at, loss, model, weighing, 1.0, 1 << 30)) / 2.0**30
        theta = theta - np.linalg.solve(information, gradient)
    # Many persons are weighted down.
    rows = next(iter(ScoreSum(at, loss, model, weighing, 1.0, 1).pieces(source._blocks[0])))
    assert np.mean(weighing.weights(rows) < 0.95) > 0.3
    assert np.abs(theta - truth).max() < 0.05
    clipped = np.zeros(2)
    for _ in range(300):
        terms = (1.0 / (1.0 + np.exp(-X @ clipped)) - y)[:, None] * X
        sums = np.column_stack([np.bincount(owners, column) for column in terms.T])
        sums *= np.minimum(1.0, bound / np.maximum(np.linalg.norm(sums, axis=1), 1e-12))[:, None]
        clipped = clipped - 6.0 * sums.mean(axis=0)
    assert np.abs(clipped - truth).min() > 0.15


@pytest.mark.parametrize("inference", [False, True])
def test_persons_count_once_or_by_their_rows(inference):
    """Without noise: least squares of persons' means, or of rows, with the errors of clusters."""
    rng = np.random.default_rng(1)
    n_rows = rng.integers(1, 10, 800)
    n_rows[0] = 3000
    owners = np.repeat(np.arange(800), n_rows)
    X = rng.uniform(-1.0, 1.0, (owners.size, 2))
    y = np.where(n_rows > 5, 1.5, 0.5)[owners] * X[:, 0] + 0.3 * rng.standard_normal(owners.size)
    limits = {}
    for how, weight in (("mean", 1.0 / n_rows[owners]), ("sum", np.ones(owners.size))):
        best = sm.WLS(y, sm.add_constant(X), weights=weight).fit()
        limits[how] = best.params[1:]
        model = SparseRegressor(
            x_bound=1.0, y_bounds=(-4, 4), n_nonzero="all", epsilon=np.inf, person_weight=how, inference=inference
        ).fit(X, y, persons=owners)
        assert np.abs(model.coef_ - best.params[1:]).max() < 1e-4
        if inference:
            scores = sm.add_constant(X) * (weight * best.resid)[:, None]
            of_persons = np.column_stack([np.bincount(owners, column) for column in scores.T])
            bread = np.linalg.inv((sm.add_constant(X) * weight[:, None]).T @ sm.add_constant(X))
            errors = np.sqrt(np.diag(bread @ (of_persons.T @ of_persons) @ bread))[1:]
            assert np.abs(model.coef_std_error_ / errors - 1.0).max() < 1e-3
        words = model.certificate_.public["estimand"]
        assert words.startswith("means over persons" if how == "mean" else "sums over rows")
    assert np.abs(limits["mean"] - limits["sum"]).max() > 0.2


def test_rows_that_count_are_estimated_with_noise():
    rng = np.random.default_rng(2)
    n_rows = rng.integers(1, 10, 6000)
    owners = np.repeat(np.arange(6000), n_rows)
    X = rng.uniform(-1.0, 1.0, (owners.size, 2))
    y = np.where(n_rows > 5, 1.5, 0.5)[owners] * X[:, 0] + 0.3 * rng.standard_normal(owners.size)
    pooled = np.linalg.lstsq(X, y, rcond=None)[0][0]
    settings = {"x_bound": 1.0, "y_bounds": (-4, 4), "n_nonzero": "all", "epsilon": 5.0, "random_state": 0}
    for inference in (False, True):
        by_rows, once = (
            SparseRegressor(person_weight=how, inference=inference, **settings).fit(X, y, persons=owners)
            for how in ("sum", "mean")
        )
        assert abs(by_rows.coef_[0] - pooled) < 0.06 < abs(once.coef_[0] - pooled)
        assert "numbers of rows" in " ".join(release.subject for release in by_rows.certificate_.events)
