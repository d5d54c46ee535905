"""private_score(metric="all"): measures against scikit-learn's, baselines, cells of single records, what is refused."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)
from sklearn.svm import LinearSVC

from taciturn import SparseClassifier, SparseRegressor, private_score
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import RELATIONS
from taciturn.data.target import ClassCells, ErrorCells, MarginCells, margin_edges
from taciturn.methods.scores.plan import count_bins
from taciturn.methods.scores.run import LinearOutputs

INF = float("inf")
BOUNDS = (0.0, 100.0)
N, HALF = 12_000, 2_000

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (N, 6))
SCORE = 2.5 * X[:, 0] - 1.5 * X[:, 2] + RNG.logistic(size=N)
# One class in three; and three of different sizes.
TWO = np.where(SCORE > 1.0, "yes", "no")
THREE = np.digitize(SCORE, [-1.0, 2.0])
NUMBERS = 50.0 + 8.0 * SCORE
TRAIN, TEST = slice(None, HALF), slice(HALF, None)


def model_of(kind, coefficients, intercept, **given):
    """A fitted model with these coefficients."""
    model = kind(**given)
    model.coef_, model.intercept_ = np.array(coefficients), np.array(intercept)
    model.n_features_in_ = 6
    if "classes" in given:
        model.classes_ = np.array(given["classes"])
    if "y_bounds" in given:
        model.y_bounds_ = given["y_bounds"]
    return model


@pytest.fixture(scope="module")
def two():
    # Not quite calibrated, on purpose.
    return model_of(SparseClassifier, [[3.0, 0.0, -1.5, 0.1, 0.0, 0.0]], [-0.8], classes=("no", "yes"))


@pytest.fixture(scope="module")
def three():
    weights = [[-2.0, 0, 1.0, 0, 0, 0], [0.0, 0, 0.2, 0, 0, 0], [1.5, 0, -1.0, 0, 0, 0]]
    return model_of(SparseClassifier, weights, [0.3, 0.6, -1.0], classes=(0, 1, 2))


@pytest.fixture(scope="module")
def numbers():
    return model_of(SparseRegressor, [18.0, 0, -11.0, 0.5, 0, 0], 51.0, y_bounds=BOUNDS)


def scored(model, y, rows=TEST, **given):
    return private_score(model, X[rows], y[rows], **{"metric": "all", "random_state": 0} | given)


def values(score):
    return {found.name: found.value for found in score.measures}


# ------------------------------------------------------------------ scikit-learn's values


def expected_two(model, y):
    probabilities = model.predict_proba(X[TEST])[:, 1]
    positive = y[TEST] == model.classes_[1]
    return {
        "AUC": roc_auc_score(positive, probabilities),
        "log loss": log_loss(positive, probabilities),
        "accuracy": accuracy_score(y[TEST], model.predict(X[TEST])),
        "calibration in the large": probabilities.mean() - positive.mean(),
    }


def expected_three(model, y):
    predicted = model.predict(X[TEST])
    return {
        "accuracy": accuracy_score(y[TEST], predicted),
        "balanced accuracy": balanced_accuracy_score(y[TEST], predicted),
        "log loss": log_loss(y[TEST], model.predict_proba(X[TEST])),
    }


def expected_numbers(model, y):
    truth, predicted = (np.clip(each, *BOUNDS) for each in (y[TEST], model.predict(X[TEST])))
    return {
        "R2": r2_score(truth, predicted),
        "mean absolute error": mean_absolute_error(truth, predicted),
        "mean squared error": mean_squared_error(truth, predicted),
    }


EXPECTED = {"two": (TWO, expected_two), "three": (THREE, expected_three), "numbers": (NUMBERS, expected_numbers)}


@pytest.mark.parametrize("kind", EXPECTED)
def test_without_noise_measures_are_those_of_scikit_learn(kind, request):
    y, expected = EXPECTED[kind]
    model = request.getfixturevalue(kind)
    exact = expected(model, y)
    assert values(scored(model, y, epsilon=INF)) == pytest.approx(exact, rel=1e-3, abs=1e-4)
    # Coarse bins are worse, but for what has an edge between bins; so is noise.
    loud = values(scored(model, y, epsilon=0.02))
    assert loud.keys() == exact.keys()
    assert max(abs(loud[name] - exact[name]) / exact[name] for name in exact) > 0.02


@pytest.mark.parametrize("kind", EXPECTED)
def test_errors_of_measures_fall_as_the_budget_grows(kind, request):
    y, expected = EXPECTED[kind]
    model = request.getfixturevalue(kind)
    exact = expected(model, y)
    errors = {}
    for epsilon in (0.1, 1.0, 10.0):
        found = [values(scored(model, y, epsilon=epsilon, random_state=seed)) for seed in range(12)]
        errors[epsilon] = {name: np.mean([abs(each[name] - exact[name]) for each in found]) for name in exact}
    for name in exact:
        assert errors[0.1][name] > 2.0 * errors[1.0][name] > 4.0 * errors[10.0][name], name


def test_models_of_other_libraries_have_the_same_measures():
    for y, kind in ((TWO, "two"), (THREE, "three")):
        model = LogisticRegression().fit(X[TRAIN], y[TRAIN])
        assert values(scored(model, y, epsilon=INF)) == pytest.approx(EXPECTED[kind][1](model, y), rel=1e-3, abs=1e-4)
    line = LinearRegression().fit(X[TRAIN], NUMBERS[TRAIN])
    line.y_bounds = BOUNDS
    assert values(scored(line, NUMBERS, epsilon=INF)) == pytest.approx(expected_numbers(line, NUMBERS), rel=1e-3)


def test_log_loss_without_noise_is_that_of_any_probability():
    table = np.concatenate((np.zeros((50, 6)), np.ones((2, 6))))
    model = model_of(SparseClassifier, [[4.0] * 6], [-12.0], classes=(0, 1))
    # Two records that the model is all but sure are of the other class.
    y = np.concatenate((np.zeros(50), np.zeros(2))).astype(int)
    y[0] = 1
    found = private_score(model, table, y, epsilon=INF, metric="all")["log loss"].value
    assert found == pytest.approx(log_loss(y, model.predict_proba(table)), rel=1e-2)
    # With noise, a probability below one in a hundred, or one in n, counts as that.
    noisy = private_score(model, table, y, epsilon=30.0, metric="all", random_state=0)["log loss"].value
    assert noisy == pytest.approx(log_loss(y, np.clip(model.predict_proba(table), 0.01, 0.99)), rel=1e-2)


class Reversed(SparseClassifier):
    """Predicts the contrary of what its coefficients say."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_a_subclass_is_asked_for_its_own_predictions(two):
    model = model_of(Reversed, two.coef_, two.intercept_, classes=("no", "yes"))
    score = scored(model, TWO, epsilon=INF)
    assert score["AUC"].value == pytest.approx(1.0 - scored(two, TWO, epsilon=INF)["AUC"].value, abs=1e-9)


def test_baselines_are_those_of_constant_predictions(two, three, numbers):
    positive = np.mean(TWO[TEST] == "yes")
    found = {each.name: each.baseline for each in scored(two, TWO, epsilon=INF).measures}
    entropy = log_loss(TWO[TEST] == "yes", np.full(N - HALF, positive))
    assert found == pytest.approx(
        {"AUC": 0.5, "log loss": entropy, "accuracy": 1.0 - positive, "calibration in the large": 0.0}, rel=1e-9
    )
    shares = np.bincount(THREE[TEST]) / (N - HALF)
    found = {each.name: each.baseline for each in scored(three, THREE, epsilon=INF).measures}
    entropy = -np.sum(shares * np.log(shares))
    assert found == pytest.approx({"accuracy": shares.max(), "balanced accuracy": 1 / 3, "log loss": entropy}, rel=1e-9)
    truth = np.clip(NUMBERS[TEST], *BOUNDS)
    constant = np.full(truth.size, truth.mean())
    found = {each.name: each.baseline for each in scored(numbers, NUMBERS, epsilon=INF).measures}
    assert found == pytest.approx(
        {
            "R2": 0.0,
            "mean absolute error": mean_absolute_error(truth, constant),
            "mean squared error": mean_squared_error(truth, constant),
        },
        rel=1e-3,
    )


def test_calibration_is_by_tenths_and_the_curve_is_that_of_the_counts(two):
    score = scored(two, TWO, epsilon=INF)
    probabilities, positive = two.predict_proba(X[TEST])[:, 1], TWO[TEST] == "yes"
    for k, each in enumerate(score.calibration):
        inside = (probabilities > k / 10) & (probabilities <= (k + 1) / 10)
        assert each.records == inside.sum()
        assert each.share == pytest.approx(positive[inside].mean(), abs=1e-12)
        assert each.predicted == pytest.approx(probabilities[inside].mean(), abs=1e-3)
        assert each.lower < each.share < each.upper
    false, true = np.array(score.roc).T
    assert np.trapezoid(true, false) == pytest.approx(roc_auc_score(positive, probabilities), abs=1e-4)
    assert scored(two, TWO, epsilon=0.5)["AUC"] in scored(two, TWO, epsilon=0.5).measures
    noisy = np.array(scored(two, TWO, epsilon=0.05).roc)
    assert (np.diff(noisy, axis=0) >= 0.0).all()


def test_recalls_are_by_class(three):
    score = scored(three, THREE, epsilon=INF)
    for code, each in enumerate(score.recalls):
        own = THREE[TEST] == code
        assert each.recall == pytest.approx(np.mean(three.predict(X[TEST])[own] == code), abs=1e-12)
        assert each.share == pytest.approx(own.mean(), abs=1e-12)
    assert score.calibration == score.roc == ()


# ------------------------------------------------------------------ done when


def test_one_release_tells_the_auc_within_two_hundredths(two):
    exact = expected_two(two, TWO)["AUC"]
    assert N - HALF == 10_000

    def worst(epsilon, **given):
        found = [scored(two, TWO, epsilon=epsilon, random_state=seed, **given)["AUC"].value for seed in range(25)]
        return max(abs(value - exact) for value in found)

    assert worst(0.5) < 0.02
    # A twentieth of the budget is not enough, which the same bound sees.
    assert worst(0.025) > 0.02


# ------------------------------------------------------------------ cells


def test_every_record_has_one_cell_and_null_records_have_none():
    rng = np.random.default_rng(0)
    margins = np.concatenate((rng.normal(0, 5, 500), [0.0, -0.0, INF, -INF, math.nan, 1e-300]))[:, None]
    codes = rng.integers(-1, 2, margins.size)
    cells = MarginCells(margin_edges(4, 1000))
    found = cells.cells(margins, codes)
    assert ((found == -1) == (codes < 0)).all()
    assert found.max() < cells.n_cells == 2 * (12 * 4 + 2)
    # A margin of zero predicts the first class, as predict does.
    half = cells.n_bins // 2
    assert cells.cells(np.array([[0.0], [1e-300]]), np.array([0, 0])).tolist() == [half - 1, half]
    # Not a number is as wrong as can be.
    assert cells.cells(np.full((2, 1), math.nan), np.array([0, 1])).tolist() == [cells.n_bins - 1, cells.n_bins]


def test_edges_are_tenths_cut_into_parts():
    edges = np.array(margin_edges(6, 10_000))
    probabilities = 1.0 / (1.0 + np.exp(-edges))
    tenths = [2 * 6 + 6 * k for k in range(9)]
    assert probabilities[tenths] == pytest.approx(np.arange(1, 10) / 10)
    assert edges[len(edges) // 2] == 0.0
    assert (edges == -edges[::-1]).all()
    assert probabilities[[0, -1]] == pytest.approx([1e-4, 1 - 1e-4])
    assert np.diff(probabilities[12:-12]) == pytest.approx(np.full(48, 0.1 / 6))


def test_cells_of_more_classes_are_those_of_softmax():
    rng = np.random.default_rng(1)
    margins, codes = rng.normal(0, 3, (400, 4)), rng.integers(-1, 4, 400)
    cells = ClassCells(margin_edges(2, 100), 4)
    found = cells.cells(margins, codes)
    weights = np.exp(margins - margins.max(axis=1, keepdims=True))
    own = (weights / weights.sum(axis=1, keepdims=True))[np.arange(400), np.maximum(codes, 0)]
    bins = np.searchsorted(cells.edges, np.log(own) - np.log1p(-own))
    wrong = margins.argmax(axis=1) != codes
    assert found[codes >= 0].tolist() == ((2 * codes + wrong) * cells.n_bins + bins)[codes >= 0].tolist()
    with np.errstate(invalid="ignore"):
        lost = cells.cells(np.array([[INF, INF, 0, 0], [math.nan, 0, 0, 0], [INF, 0, 0, 0]]), np.array([0, 1, 0]))
    assert lost.tolist() == [cells.n_bins, 3 * cells.n_bins, cells.n_bins - 1]


def test_cells_of_errors_are_all_that_records_can_be_in():
    cells = ErrorCells.of_bins((0.0, 1.0), 10, 16)
    steps = np.linspace(0, 1, 401)
    truth, predicted = (each.ravel() for each in np.meshgrid(steps, np.append(steps, math.nan)))
    target = np.rint((2.0 * truth - 1.0) * ONE)
    found = cells.cells(predicted[:, None], target)
    assert found.min() == 0
    assert set(found.tolist()) == set(range(cells.n_cells))
    # Half of the rectangle is out of reach near the middle.
    assert cells.n_cells < 10 * 16
    wrong = ONE + np.abs(target[np.isnan(predicted)])
    farthest = cells.cells(np.where(target < 0, 1.0, 0.0)[:, None], target)[np.isnan(predicted)]
    assert (found[np.isnan(predicted)] == farthest).all()
    assert wrong.max() == 2 * ONE


@pytest.mark.parametrize(
    "cells",
    [
        MarginCells(margin_edges(4, 500)),
        ClassCells(margin_edges(2, 500), 3),
        ErrorCells.of_bins(BOUNDS, 12, 18),
        ErrorCells.of_bins(BOUNDS, 200, 400),
    ],
)
def test_merged_cells_are_those_of_merged_bins(cells):
    rng = np.random.default_rng(2)
    coarse, groups = cells.coarser()
    outputs = rng.normal(0, 4, (3000, 3)) if not isinstance(cells, ErrorCells) else rng.uniform(-20, 120, (3000, 1))
    target = rng.integers(0, 2, 3000) if not isinstance(cells, ErrorCells) else rng.integers(-ONE, ONE + 1, 3000)
    assert groups.size == cells.n_cells
    assert coarse.n_cells < 0.6 * cells.n_cells
    assert (groups[cells.cells(outputs, target)] == coarse.cells(outputs, target)).all()


def test_outputs_are_functions_of_one_record_to_the_last_bit():
    rng = np.random.default_rng(4)
    table = rng.normal(0, 1e3, (301, 40)) * (rng.random((301, 40)) < 0.5)
    model = model_of(SparseClassifier, rng.normal(size=(3, 40)), rng.normal(size=3))
    outputs = LinearOutputs.of_model(model)
    whole = outputs(table)
    assert whole == pytest.approx(table @ model.coef_.T + model.intercept_)
    alone = np.vstack([outputs(table[i : i + 1]) for i in range(301)])
    shuffled = outputs(table[::-1])[::-1]
    assert whole.tobytes() == alone.tobytes() == np.ascontiguousarray(shuffled).tobytes()
    for layout in (sp.csr_array, sp.csc_array):
        assert outputs(layout(table)) == pytest.approx(whole, rel=1e-12)
        rows = np.vstack([outputs(layout(table[i : i + 1])) for i in range(301)])
        assert outputs(layout(table)).tobytes() == rows.tobytes()
    # An order of summation that depends on the place would be seen.
    moved = np.array([row @ model.coef_.T if i % 2 else row[::-1] @ model.coef_.T[::-1] for i, row in enumerate(table)])
    assert (moved + model.intercept_).tobytes() != whole.tobytes()


def test_bins_grow_with_records_and_shrink_with_noise():
    assert count_bins(10_000, 2.8).probabilities == 4
    assert count_bins(100, 2.8).probabilities == 2
    for facts in ((10**4, 2.8), (10**6, 2.8), (10**6, 0.3), (10**9, 0.0)):
        bins = count_bins(*facts)
        assert all(number % 2 == 0 for number in (bins.probabilities, bins.numbers, bins.errors))
    assert count_bins(10**6, 2.8).errors > count_bins(10**4, 2.8).errors
    assert count_bins(10**6, 2.8) == count_bins(2 * 10**6, 5.6)
    assert count_bins(5, 0.0) == count_bins(10**9, 0.0)


# ------------------------------------------------------------------ records, persons, certificates


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_certificate_states_one_release_of_the_whole_budget(two, relation):
    score = scored(two, TWO, epsilon=0.7, relation=relation, n_public=9000)
    certificate = score.certificate
    (release,) = certificate.events
    assert (certificate.epsilon, certificate.delta, certificate.status) == (0.7, 0.0, "proved")
    assert (release.noise, release.count, certificate.arithmetic) == ("two-sided geometric", 1, "exact")
    assert certificate.public["cells"] == score.cells.n_cells == len(score.counts)
    single = private_score(two, X[TEST], TWO[TEST], epsilon=0.7, relation=relation, n_public=9000)
    assert certificate.epsilon == single.certificate.epsilon
    # Every number has noise for half of the budget where a record is replaced.
    assert score.std == pytest.approx((2 if relation == "replace-one" else 1) * math.sqrt(2.0) / 0.7, rel=0.03)
    loaded = LogisticRegression().fit(X[TRAIN], TWO[TRAIN])
    moved = scored(loaded, TWO, epsilon=0.7, relation=relation, n_public=9000).certificate.arithmetic
    assert moved == ("float64" if relation == "add-remove" else "exact")


def test_persons_count_once_each(two):
    persons = np.arange(N - HALF) // 4
    score = scored(two, TWO, epsilon=INF, persons=persons)
    assert sum(score.counts) == pytest.approx((N - HALF) // 4)
    # Of persons with equally many rows the measures are those of the rows.
    single = scored(two, TWO, epsilon=INF)
    assert score["accuracy"].value == pytest.approx(single["accuracy"].value, rel=1e-6)
    assert score["AUC"].value == pytest.approx(single["AUC"].value, abs=1e-3)
    width = score["accuracy"].upper - score["accuracy"].lower
    assert width == pytest.approx(2.0 * (single["accuracy"].upper - single["accuracy"].lower), rel=0.01)


def test_null_records_are_left_out(two, numbers):
    labels = TWO.copy()
    labels[HALF : HALF + 1000] = "perhaps"
    score = scored(two, labels, epsilon=INF)
    assert sum(score.counts) == N - HALF - 1000
    without = private_score(two, X[HALF + 1000 :], TWO[HALF + 1000 :], epsilon=INF, metric="all")
    assert values(score) == pytest.approx(values(without), rel=1e-9)
    table = X[TEST].copy()
    table[::2, 1] = math.nan
    with pytest.raises(DataError, match="^X: expected finite numbers"):
        private_score(numbers, table, NUMBERS[TEST], epsilon=INF, metric="all")
    for relation in RELATIONS:
        score = private_score(
            numbers, table, NUMBERS[TEST], epsilon=INF, metric="all", invalid="null", relation=relation, n_public=10_000
        )
        assert sum(score.counts) == (N - HALF) // 2
    empty = private_score(numbers, table * math.nan, NUMBERS[TEST], epsilon=INF, metric="all", invalid="null")
    assert not any(empty.counts)
    assert all(found.is_open and found.value == found.baseline for found in empty.measures)


def test_noise_without_end_leaves_measures_open(two, three, numbers):
    for model, y in ((two, TWO), (three, THREE), (numbers, NUMBERS)):
        score = scored(model, y, rows=slice(0, 40), epsilon=0.001)
        assert [found for found in score.measures if found.is_open]
        for found in score.measures:
            assert found.lower <= found.value <= found.upper
        assert str(score).count("\n") == len(score.measures) + 1


def test_what_has_no_probabilities_is_refused_before_data_are_read():
    model = LinearSVC().fit(X[:200], TWO[:200])
    with pytest.raises(ParameterError, match="^estimator='LinearSVC': expected a classifier with predict_proba"):
        private_score(model, object(), object(), metric="all")


def test_scores_are_equal_by_what_was_released(two):
    score, same, other = (scored(two, TWO, epsilon=0.5, random_state=seed) for seed in (1, 1, 2))
    assert score == same != other
    assert hash(score) == hash(same)
    with pytest.raises(KeyError):
        score["F1"]
