"""private_score: what it computes, from which inputs, what its certificate says, and what it refuses."""

import dataclasses
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from taciturn import (
    BoundedScaler,
    Certificate,
    CorrelationSelector,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    SuspiciousReleaseWarning,
    certificate_of,
    compose,
    private_score,
)
from taciturn.core.errors import CertificateError, DataError, ParameterError
from taciturn.data.sensitivity import RELATIONS
from taciturn.methods.scores import run as score_sums

# The function has the name of its module.
INF = float("inf")
BOUNDS = (-20.0, 80.0)
WIDTH = 100.0
STEP = WIDTH / 2**17

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 5))
SIGNS = np.where(X[:, 1] + 0.3 * RNG.normal(size=400) > 0, "yes", "no")
THREE = np.digitize(X[:, 2] + 0.2 * RNG.normal(size=400), [-0.3, 0.3])
NUMBERS = 30.0 + 60.0 * X[:, 0] + 20.0 * RNG.normal(size=400)


@pytest.fixture(scope="module")
def binary():
    return FrankWolfeClassifier(epsilon=5.0, classes=("no", "yes"), random_state=0).fit(X, SIGNS)


@pytest.fixture(scope="module")
def triple():
    return FrankWolfeClassifier(epsilon=5.0, classes=(0, 1, 2), random_state=0).fit(X, THREE)


@pytest.fixture(scope="module")
def regressor():
    return FrankWolfeRegressor(epsilon=5.0, y_bounds=BOUNDS, random_state=0).fit(X, NUMBERS)


def noiseless(model, X, y, **given):
    return private_score(model, X, y, epsilon=INF, **given).value


# ------------------------------------------------------------------ values


def test_labels_without_noise_give_the_values_of_scikit_learn(binary, triple):
    for model, y in ((binary, SIGNS), (triple, THREE)):
        predictions = model.predict(X)
        assert noiseless(model, X, y) == accuracy_score(y, predictions)
        balanced = noiseless(model, X, y, metric="balanced accuracy")
        assert balanced == pytest.approx(balanced_accuracy_score(y, predictions), rel=1e-14)
        assert balanced != accuracy_score(y, predictions)


def test_numbers_without_noise_give_those_of_clipped_numbers_but_for_the_lattice(regressor):
    y, predictions = np.clip(NUMBERS, *BOUNDS), np.clip(regressor.predict(X), *BOUNDS)
    assert (y != NUMBERS).any()
    squared, absolute = (noiseless(regressor, X, NUMBERS, metric=f"mean {kind} error") for kind in WORDS)
    # Both numbers are rounded to half a step, and distances reach the width.
    assert squared == pytest.approx(mean_squared_error(y, predictions), abs=2.0 * WIDTH * STEP)
    assert absolute == pytest.approx(mean_absolute_error(y, predictions), abs=STEP)
    assert abs(squared - mean_squared_error(NUMBERS, predictions)) > 2.0 * WIDTH * STEP
    assert abs(absolute - mean_absolute_error(NUMBERS, predictions)) > STEP


WORDS = ("squared", "absolute")


def test_the_default_metric_is_that_of_the_estimator(binary, regressor):
    assert private_score(binary, X, SIGNS).metric == "accuracy"
    assert private_score(regressor, X, NUMBERS).metric == "mean squared error"


def test_records_with_other_labels_are_counted_and_never_right(binary):
    y = SIGNS.copy()
    y[:100] = "perhaps"
    right = binary.predict(X)[100:] == y[100:]
    assert noiseless(binary, X, y) == right.sum() / 400
    # In no class of their own, and in none of the others.
    assert noiseless(binary, X, y, metric="balanced accuracy") == pytest.approx(
        balanced_accuracy_score(y[100:], binary.predict(X)[100:]), rel=1e-14
    )


def test_a_class_without_records_counts_as_always_wrong(triple):
    present = THREE != 2
    shares = [np.mean(triple.predict(X[k == THREE]) == k) for k in (0, 1)]
    value = noiseless(triple, X[present], THREE[present], metric="balanced accuracy")
    assert value == pytest.approx(sum(shares) / 3, rel=1e-14)


class Given(RegressorMixin, BaseEstimator):
    """Predicts what it was given."""

    def __init__(self, predictions, y_bounds=(0.0, 1.0)):
        self.predictions, self.y_bounds, self.coef_ = predictions, y_bounds, None

    def fit(self, X, y):
        raise AssertionError("a score fits nothing")

    def predict(self, X):
        return np.array(self.predictions)


@pytest.mark.parametrize(
    ("prediction", "error"), [(math.nan, 1.0), (INF, 0.5), (-INF, 0.5), (1e300, 0.5), (0.75, 0.25)]
)
def test_predictions_are_bounded_and_none_is_worse_than_no_number(prediction, error):
    value = noiseless(Given([prediction]), [[0.0]], [0.5], metric="mean absolute error")
    assert value == pytest.approx(error, abs=2.0**-16)


def test_sums_are_exact_in_blocks_and_stop_at_a_public_limit(monkeypatch):
    predictions = np.random.default_rng(1).uniform(0, 1, 50)
    model, y = Given(predictions.tolist()), np.zeros(50)
    lattice = [round(p * 2**17) for p in (np.rint((2 * predictions - 1) * 2**16) + 2**16) / 2**17]
    exact = sum(distance**2 for distance in lattice) / 50 / 2**34
    assert noiseless(model, np.zeros((50, 1)), y) == exact
    monkeypatch.setattr(score_sums, "_BLOCK", 7)
    assert noiseless(model, np.zeros((50, 1)), y) == exact
    monkeypatch.setattr(score_sums, "_LARGEST_SUM", 2**34)
    assert noiseless(model, np.zeros((50, 1)), y) == 1 / 50


def test_noise_comes_from_the_seed_or_from_nowhere_known(binary):
    def value(seed):
        return private_score(binary, X, SIGNS, epsilon=0.1, random_state=seed).value

    assert value(1) == value(1)
    assert len({value(seed) for seed in range(8)}) > 1
    assert len({value(None) for _ in range(8)}) > 1


def test_values_stay_within_the_range_of_the_metric(binary, regressor):
    for seed in range(20):
        for metric in ("accuracy", "balanced accuracy"):
            score = private_score(binary, X[:3], SIGNS[:3], epsilon=0.05, metric=metric, random_state=seed)
            assert 0.0 <= score.value <= 1.0
        assert 0.0 <= private_score(regressor, X[:3], NUMBERS[:3], epsilon=0.05, random_state=seed).value <= WIDTH**2


def test_deviations_are_public_and_in_the_units_of_the_metric(binary, regressor):
    geometric = 1.0 / (math.sqrt(2.0) * math.sinh(0.25))
    assert private_score(binary, X, SIGNS, epsilon=0.5).std == pytest.approx(geometric / 400)
    # The lattice is so fine that its noise is that of Laplace.
    laplace = math.sqrt(2.0) / 0.5 / 400
    assert private_score(regressor, X, NUMBERS, epsilon=0.5).std == pytest.approx(laplace * WIDTH**2)
    absolute = private_score(regressor, X, NUMBERS, epsilon=0.5, metric="mean absolute error", relation="replace-one")
    assert absolute.std == pytest.approx(laplace * WIDTH)
    balanced = private_score(binary, X, SIGNS, epsilon=0.5, metric="balanced accuracy", random_state=0)
    sizes = np.array([np.sum(label == SIGNS) for label in ("no", "yes")])
    assert balanced.std == pytest.approx(np.linalg.norm(geometric / sizes) / 2, rel=0.1)
    # Noise without end tells nothing: each share is then anything between 0 and 1.
    lost = private_score(binary, X, SIGNS, epsilon=1e-9, metric="balanced accuracy", random_state=2)
    assert lost.std <= math.sqrt(0.5) / 2
    assert private_score(binary, X, SIGNS, epsilon=INF).std == 0.0


def test_under_add_remove_sums_are_divided_by_what_is_public(binary):
    right = np.sum(binary.predict(X) == SIGNS)
    assert noiseless(binary, X, SIGNS, relation="add-remove", n_public=1000) == right / 1000
    assert noiseless(binary, X, SIGNS, relation="add-remove", n_public=10) == 1.0
    # Where the number of records is public, it is theirs.
    assert noiseless(binary, X, SIGNS, relation="replace-one", n_public=1000) == right / 400


# ------------------------------------------------------------------ inputs


@pytest.mark.parametrize("kind", ["csr", "csc", "pandas", "polars"])
def test_all_tables_give_the_same_score(binary, regressor, kind):
    names = [f"x{j}" for j in range(5)]
    table = {
        "csr": lambda: sp.csr_matrix(X),
        "csc": lambda: sp.csc_array(X),
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "polars": lambda: pl.DataFrame(X, schema=names),
    }[kind]()
    series = {"pandas": pd.Series, "polars": lambda y: pl.Series(values=y)}.get(kind, list)
    for model, y in ((binary, SIGNS), (regressor, NUMBERS)):
        expected = private_score(model, X, y, random_state=0)
        score = private_score(model, table, series(y), random_state=0)
        # Products round by layout, which may move a prediction by one step of the lattice.
        assert score.value == pytest.approx(expected.value, rel=1e-6)
        assert (score.std, score.certificate) == (expected.std, expected.certificate)


def test_labels_of_every_type_are_compared_by_value():
    for classes, y in (
        ((False, True), X[:, 1] > 0),
        ((False, True), pd.Series(X[:, 1] > 0, dtype="boolean")),
        ((1, 2), np.where(X[:, 1] > 0, 2.0, 1.0)),
        (("a", "b"), pd.Series(np.where(X[:, 1] > 0, "b", "a"), dtype="category")),
    ):
        model = FrankWolfeClassifier(epsilon=INF, classes=classes).fit(X, y)
        assert 0.9 < noiseless(model, X, y) <= 1.0
        assert noiseless(model, X, y) == np.mean(model.predict(X) == np.asarray(y))


def test_a_pipeline_transforms_and_learns_nothing(regressor):
    wide = 10.0 * X + 10.0
    for y, model, metric in (
        (SIGNS, FrankWolfeClassifier(epsilon=5.0, classes=("no", "yes"), random_state=0), "accuracy"),
        (NUMBERS, FrankWolfeRegressor(epsilon=5.0, y_bounds=BOUNDS, random_state=0), "mean squared error"),
    ):
        scaler = BoundedScaler(lower=0.0, upper=20.0)
        pipeline = make_pipeline(FunctionTransformer(), make_pipeline(scaler, model)).fit(wide, y)
        inner = pipeline[-1]
        direct = private_score(inner[-1], inner[0].transform(wide[:50]), y[:50], random_state=3)
        before = inner[0].lower_.copy(), inner[-1].coef_.copy()
        score = private_score(pipeline, wide[:50], y[:50], random_state=3)
        assert score == direct
        assert score.metric == metric
        assert all(map(np.array_equal, before, (inner[0].lower_, inner[-1].coef_)))


def test_bounds_are_those_of_the_fit(regressor):
    model = FrankWolfeRegressor(epsilon=5.0, y_bounds=BOUNDS, random_state=0).fit(X, NUMBERS)
    expected = private_score(model, X, NUMBERS, random_state=0)
    assert private_score(model.set_params(y_bounds=(0.0, 1.0)), X, NUMBERS, random_state=0) == expected
    # Without a certificate the attribute is all there is.
    del model.certificate_
    assert private_score(model, X, NUMBERS, random_state=0).certificate.public["y_bounds"] == [0.0, 1.0]


def test_models_of_other_libraries_are_scored_too():
    model = LogisticRegression().fit(X, THREE)
    assert noiseless(model, X, THREE) == model.score(X, THREE)
    line = LinearRegression().fit(X, NUMBERS)
    line.y_bounds = BOUNDS
    assert noiseless(line, X, NUMBERS) == pytest.approx(
        mean_squared_error(np.clip(NUMBERS, *BOUNDS), np.clip(line.predict(X), *BOUNDS)), abs=2.0 * WIDTH * STEP
    )


# ------------------------------------------------------------------ certificates


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("metric", ["accuracy", "balanced accuracy"])
def test_the_certificate_states_one_release_and_what_is_public(binary, relation, metric):
    score = private_score(binary, X, SIGNS, epsilon=0.7, delta=1e-6, metric=metric, relation=relation, n_public=90)
    certificate = score.certificate
    # Geometric noise leaves delta unused.
    assert (certificate.epsilon, certificate.delta, certificate.status) == (0.7, 0.0, "proved")
    assert (certificate.relation, certificate.bound, certificate.seeded) == (relation, "pure", False)
    assert certificate.arithmetic == ("float64" if relation == "add-remove" else "exact")
    assert dict(certificate.public) == {
        "metric": metric,
        "records": 90 if relation == "add-remove" else 400,
        "classes": ["no", "yes"],
        "invalid": "raise",
    }
    (release,) = certificate.events
    assert (release.noise, release.scale, release.count) == ("two-sided geometric", 1.0 / 0.7, 1)
    assert release.event.epsilon == 0.7
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "each prediction depends on its own record alone" in str(certificate)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_delta_that_helps_is_on_the_certificate(binary, regressor, relation):
    for model, y, metric in ((binary, SIGNS, "balanced accuracy"), (regressor, NUMBERS, "mean squared error")):
        given = {"metric": metric, "relation": relation, "n_public": 400}
        certificate = private_score(model, X, y, epsilon=1.0, delta=0.2, **given).certificate
        assert certificate.events[0].noise == "Gaussian"
        assert (certificate.epsilon, certificate.delta, certificate.bound) == (1.0, 0.2, "gdp")


def test_without_noise_nothing_is_promised(binary):
    certificate = private_score(binary, X, SIGNS, epsilon=INF).certificate
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("not private", INF, 0.0)


def test_a_score_on_the_training_records_composes_with_the_fit(binary):
    score = private_score(binary, X, SIGNS, epsilon=0.7)
    total = compose(certificate_of(binary), score.certificate)
    assert binary.certificate_.epsilon < total.epsilon <= binary.certificate_.epsilon + 0.7
    assert total.delta == binary.certificate_.delta
    assert total.events == (*binary.certificate_.events, *score.certificate.events)
    # Two scores of two pure releases add up.
    assert compose(score.certificate, score.certificate).epsilon == pytest.approx(1.4)
    replaced = private_score(binary, X, SIGNS, relation="replace-one").certificate
    with pytest.raises(CertificateError, match="^relation: expected one and the same"):
        compose(binary.certificate_, replaced)


def test_nothing_else_leaves(binary):
    score = private_score(binary, X, SIGNS)
    assert [field.name for field in dataclasses.fields(score)] == ["value", "std", "metric", "certificate"]
    assert (type(score.value), type(score.std)) == (float, float)
    with pytest.raises(dataclasses.FrozenInstanceError):
        score.value = 1.0
    # Two tables of one size differ in the value alone.
    other = private_score(binary, X[::-1], np.full(400, "never"))
    assert dataclasses.replace(score, value=0.0) == dataclasses.replace(other, value=0.0)


# ------------------------------------------------------------------ refusals


class Untouchable:
    """Data that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("data were read")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0: expected a number >= 1e-09"),
        ({"epsilon": -1.0}, "epsilon=-1.0: expected a number >= 1e-09"),
        ({"epsilon": math.nan}, "epsilon=nan: expected a number >= 1e-09"),
        ({"epsilon": "1"}, "epsilon='1': expected a number >= 1e-09"),
        ({"epsilon": 1e-300}, "epsilon=1e-300: expected a number >= 1e-09"),
        ({"delta": 1.0}, "delta=1.0: expected a number in"),
        ({"delta": -0.1}, "delta=-0.1: expected a number in"),
        ({"relation": "add-remove"}, "n_public=None: expected a public number of records"),
        ({"relation": "swap"}, "relation='swap': expected one of"),
        ({"n_public": 0}, "n_public=0: expected an integer"),
        ({"random_state": -1}, "random_state=-1: expected None or an integer"),
        ({"metric": "f1"}, "metric='f1': expected one of 'auto', 'accuracy', 'balanced accuracy'"),
        ({"metric": "mean squared error"}, "metric='mean squared error': expected one of 'auto', 'accuracy'"),
        ({"metric": None}, "metric=None: expected one of"),
    ],
)
def test_bad_parameters_are_refused_before_data_are_read(binary, given, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}"):
        private_score(binary, Untouchable(), Untouchable(), **given)


def test_metrics_of_labels_are_not_for_numbers(regressor):
    with pytest.raises(ParameterError, match="^metric='accuracy': expected one of 'auto', 'mean squared error'"):
        private_score(regressor, Untouchable(), Untouchable(), metric="accuracy")


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (CorrelationSelector(), "estimator='CorrelationSelector': expected a fitted classifier or regressor"),
        ("model.json", "estimator='str': expected a fitted classifier or regressor"),
        (None, "estimator='NoneType': expected a fitted classifier or regressor"),
        (LinearRegression().fit(X, NUMBERS), "estimator='LinearRegression': expected a regressor with public y_bounds"),
        (make_pipeline(LinearRegression()).fit(X, NUMBERS), "estimator='LinearRegression': expected a regressor with"),
        (Given([0.0], y_bounds=(1.0, 0.0)), r"y_bounds=\(1.0, 0.0\): expected two finite numbers"),
        (Given([0.0], y_bounds=(-1e200, 1e200)), r"y_bounds=.* mean squared error is a positive finite number"),
        (Given([0.0], y_bounds=(0.0, 1e-200)), r"y_bounds=.* mean squared error is a positive finite number"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_data_are_read(estimator, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}"):
        private_score(estimator, Untouchable(), Untouchable())


def test_models_have_to_be_fitted():
    for model in (FrankWolfeClassifier(), make_pipeline(FrankWolfeRegressor())):
        with pytest.raises(NotFittedError):
            private_score(model, Untouchable(), Untouchable())


def changed(array, value):
    array = array.astype(object) if isinstance(value, str) else array.copy()
    array[7] = value
    return array


def looks_up(X):
    return {}["Smith, 4711"]


@pytest.mark.parametrize(
    ("table", "numbers", "sentence"),
    [
        (changed(X, math.nan), NUMBERS, "X: expected finite numbers, got NaN or infinity"),
        (changed(X, -INF), NUMBERS, "X: expected finite numbers, got NaN or infinity"),
        (changed(X, "Smith, 4711"), NUMBERS, "X: expected numbers, got text or objects"),
        (X[:, :4], NUMBERS, "X has 4 features"),
        (X[0], NUMBERS, "X: expected a table with two dimensions"),
        (X, changed(NUMBERS, math.nan), "y: expected finite numbers, got NaN or infinity"),
        (X, changed(NUMBERS, "Smith, 4711"), "y: expected numbers, got text or objects"),
        (X, NUMBERS[:-1], "X or y: expected one target per record, got X and y of different lengths"),
        (X, np.column_stack((NUMBERS, NUMBERS)), "y: expected a 1d array"),
        (X, None, "y: expected a 1d array"),
        (X[:0], NUMBERS[:0], "y: expected records, got none"),
    ],
)
def test_bad_data_are_refused_without_being_quoted(regressor, table, numbers, sentence):
    with pytest.raises(DataError, match=f"^{sentence}") as caught:
        private_score(regressor, table, numbers)
    assert "4711" not in str(caught.value)
    # Nor does what others said travel along.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_a_step_of_a_pipeline_says_is_not_passed_on(regressor):
    pipeline = make_pipeline(FunctionTransformer(), regressor)
    assert private_score(pipeline, X, NUMBERS, random_state=0) == private_score(regressor, X, NUMBERS, random_state=0)
    pipeline[0].func = looks_up
    with pytest.raises(DataError, match="^X: expected records that the estimator can predict, and it failed") as caught:
        private_score(pipeline, X, NUMBERS)
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None


def test_large_numbers_overflow_in_silence(regressor):
    large = np.full((400, 5), 1e308) * np.array([1, -1, 1, -1, 1])
    # Warnings are errors in these tests, and this one would tell that a record is large.
    with pytest.warns(RuntimeWarning, match="overflow|invalid"):
        regressor.predict(large)
    with np.errstate(over="raise", invalid="raise"):
        private_score(regressor, large, NUMBERS)


@pytest.mark.parametrize("metric", ["accuracy", "balanced accuracy", "all"])
def test_a_label_of_another_type_decides_nothing_for_other_records(triple, metric):
    expected = private_score(triple, X, [*THREE[:-1].tolist(), 17], metric=metric, random_state=0)
    for invalid in ("raise", "null"):
        given = {"metric": metric, "invalid": invalid, "random_state": 0}
        found = private_score(triple, X, [*THREE[:-1].tolist(), "1"], **given)
        assert found.counts == expected.counts if metric == "all" else found.value == expected.value


@pytest.mark.parametrize("metric", ["balanced accuracy", "all"])
def test_labels_of_another_type_are_told_by_the_released_counts(triple, metric):
    given = {"epsilon": 5.0, "metric": metric, "random_state": 0}
    with pytest.warns(SuspiciousReleaseWarning) as caught:
        score = private_score(triple, X, THREE.astype(str), **given)
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).startswith("y: expected labels among the classes [0, 1, 2] of the model, but the ")
    (release,) = score.certificate.events
    assert release.what.endswith(": it says that almost no record has a stated label")
    # Warnings are errors in these tests: where labels are classes, where noise could say the same, and without noise.
    usual = private_score(triple, X, THREE, **given)
    assert "it says" not in usual.certificate.events[0].what
    private_score(triple, X, THREE.astype(str), **given | {"epsilon": 0.01})
    private_score(triple, X, THREE.astype(str), **given | {"epsilon": INF})
    private_score(triple, X, THREE.astype(str), **given | {"metric": "accuracy"})
