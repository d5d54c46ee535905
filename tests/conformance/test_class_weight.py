"""Public weights of classes: what is estimated, what stays the same, and what is refused."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from taciturn import HardThresholdClassifier, ParameterError, SparseClassifier
from taciturn.app.model_file import Model
from taciturn.core.validation import ONE
from taciturn.data.records import WEIGHTS_OF_RECORDS, Records
from taciturn.data.target import LabelMap
from taciturn.engines import ArraySource
from taciturn.losses import LogisticLoss, SoftmaxLoss
from taciturn.methods import base as methods_base
from taciturn.methods.base import WeightedLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.sums import GradientSum
from taciturn.tables import Column, TableBounds, Target

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 4))
SCORES = np.column_stack((2.0 * X[:, 0], 1.5 * X[:, 1] - 1.0, np.zeros(N)))
THREE = np.argmax(SCORES + RNG.gumbel(size=SCORES.shape), axis=1)
TWO = (RNG.random(N) < 1.0 / (1.0 + np.exp(1.5 - 2.0 * X[:, 0] + X[:, 1]))).astype(int)


def fitted(y, class_weight, n=N, **parameters):
    given = {"x_bound": 1.0, "n_nonzero": "all", "classes": tuple(range(y.max() + 1)), "random_state": 0}
    return SparseClassifier(class_weight=class_weight, **(given | parameters)).fit(X[:n], y[:n])


def reference(y, class_weight, n_columns=4):
    model = LogisticRegression(C=np.inf, class_weight=class_weight, tol=1e-10, max_iter=1000).fit(X[:, :n_columns], y)
    model.coef_ = np.column_stack((model.coef_, np.zeros((len(model.coef_), 4 - n_columns))))
    return model


def centred(model):
    table = np.column_stack((model.coef_, model.intercept_))
    return table if len(table) == 1 else table - table.mean(axis=0)


@pytest.mark.parametrize(("y", "weights"), [(TWO, {0: 1.0, 1: 4.0}), (THREE, {0: 3.0, 2: 0.5})])
def test_without_privacy_it_is_scikit_learns_weighted_likelihood(y, weights):
    found, expected = fitted(y, weights, epsilon=math.inf), reference(y, weights)
    assert np.allclose(centred(found), centred(expected), atol=1e-4)
    # The same comparison sees that the weights matter.
    assert not np.allclose(centred(fitted(y, None, epsilon=math.inf)), centred(expected), atol=0.1)


@pytest.mark.parametrize(("y", "weights"), [(TWO, {0: 1.0, 1: 4.0}), (THREE, {0: 3.0, 2: 0.5})])
@pytest.mark.parametrize("size", ["all", 2])
def test_with_privacy_it_converges_to_that(y, weights, size):
    # The first two columns matter.
    expected = centred(reference(y, weights, 2 if size == 2 else 4))
    near, far = (np.abs(centred(fitted(y, weights, epsilon=e, n_nonzero=size)) - expected).max() for e in (20.0, 1.0))
    assert near < 0.06
    assert far < 0.5
    # Without weights the intercept is somewhere else altogether.
    assert np.abs(centred(fitted(y, None, epsilon=20.0, n_nonzero=size)) - expected).max() > 0.3


def test_a_constant_has_the_weighted_log_odds():
    model = SparseClassifier(x_bound=1.0, classes=(0, 1), class_weight={1: 3.0}, random_state=0)
    # mu is .237 at epsilon 1: n mu is below five.
    with pytest.warns(UserWarning, match="expected .* records or more"):
        model.fit(X[:20], np.zeros(20, dtype=int))
    assert model.certificate_.public["method"] == "constant"
    with pytest.warns(UserWarning, match="expected .* records or more"):
        plain = SparseClassifier(x_bound=1.0, classes=(0, 1), random_state=0).fit(X[:20], np.zeros(20, dtype=int))
    assert model.intercept_ - plain.intercept_ == pytest.approx(math.log(3.0))


@pytest.mark.parametrize("y", [TWO, THREE])
@pytest.mark.parametrize("n_nonzero", ["auto", "all", 2])
def test_equal_weights_change_no_bit(y, n_nonzero):
    plain = fitted(y, None, 3000, n_nonzero=n_nonzero)
    for weights in ({}, {0: 1.0}, dict.fromkeys(range(3 if y is THREE else 2), 7.0)):
        same = fitted(y, weights, 3000, n_nonzero=n_nonzero)
        assert np.array_equal(same.coef_, plain.coef_)
        assert np.array_equal(same.intercept_, plain.intercept_)
        assert same.certificate_.events == plain.certificate_.events
    # Only ratios matter.
    ratio, scaled = (fitted(y, {0: a, 1: b}, 3000, n_nonzero=n_nonzero) for a, b in ((1.0, 0.25), (8.0, 2.0)))
    assert np.array_equal(ratio.coef_, scaled.coef_) == (y is TWO)
    assert not np.array_equal(ratio.coef_, plain.coef_)


def test_the_certificate_states_the_weights():
    assert fitted(TWO, {1: 4.0}, 3000).certificate_.public["class_weight"] == [0.25, 1.0]
    assert "class_weight" not in fitted(TWO, None, 3000).certificate_.public


# ------------------------------------------------------------------ one record's part of a sum


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss()])
@pytest.mark.parametrize("weights", [(0.2, 1.0, 0.5), (1.0, 5.0, 0.5)])
def test_one_record_moves_a_sum_by_no_more_than_without_weights(loss, weights):
    # Also with weights beyond one, as by a defect: the bound does not rest on them.
    n_outputs = 3 if loss.multiclass else 1
    weighted = WeightedLoss(loss, weights[: max(n_outputs, 2)])
    rng = np.random.default_rng(1)
    rows, targets = rng.uniform(-1, 1, (500, 3)), rng.integers(0, max(n_outputs, 2), 500)
    product = 3 * ONE
    largest = {}
    for kind, each in (("plain", loss), ("weighted", weighted)):
        clipping = Clipping(None, 3, each, n_outputs, 9 * ONE * ONE, 0, ONE, 1.0, product_bound=product)
        norms = []
        for row, target in zip(rows, targets, strict=True):
            source = ArraySource(Records(row[None], np.array([target]), np.array([0]), 1), 1.0, 1)
            coefficients = rng.normal(0, 3, (n_outputs, 3))
            norms.append(np.linalg.norm(source.total(GradientSum(clipping, coefficients)).astype(float)))
        largest[kind] = max(norms) / ONE
    assert largest["weighted"] <= product
    assert largest["plain"] <= product
    if max(weights) == 1.0:
        assert largest["weighted"] <= largest["plain"] * 1.5


# ------------------------------------------------------------------ parameters and files


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("balanced", r"class_weight='balanced': expected a dictionary .*'balanced' would count the labels of the data"),
        ([1.0, 2.0], r"class_weight=\[1.0, 2.0\]: expected a dictionary from labels to public numbers"),
        ({0: 0.0}, r"class_weight={0: 0.0}: expected finite numbers > 0"),
        ({1: math.inf}, r"class_weight={1: inf}: expected finite numbers > 0"),
        ({1: "2"}, r"class_weight={1: '2'}: expected finite numbers > 0"),
        ({5: 1.0}, r"class_weight=5: expected labels among \[0, 1\]"),
    ],
)
def test_weights_that_are_refused(weights, message):
    with pytest.raises(ParameterError, match=message):
        fitted(TWO, weights, 500)


def test_a_class_without_the_parameter_has_none():
    assert "class_weight" not in HardThresholdClassifier().get_params()


# ------------------------------------------------------------------ standard errors


def weighted_errors(y, weights, model):
    """Those of the sandwich covariance of a weighted logistic regression at the coefficients of a model."""
    rows, beta = np.column_stack((X, np.ones(N))), np.append(model.coef_[0], model.intercept_)
    shares, own = 1.0 / (1.0 + np.exp(-(rows @ beta))), np.where(y == 1, weights[1], weights[0])
    bread = np.linalg.inv((rows * (own * shares * (1.0 - shares))[:, None]).T @ rows)
    scores = rows * (own * (shares - y))[:, None]
    return np.sqrt(np.diag(bread @ (scores.T @ scores) @ bread))[:-1]


def test_without_noise_errors_are_those_of_the_weighted_likelihood():
    weights = {0: 1.0, 1: 4.0}
    found = fitted(TWO, weights, epsilon=math.inf, inference=True)
    np.testing.assert_allclose(centred(found), centred(reference(TWO, weights)), atol=1e-5)
    np.testing.assert_allclose(found.coef_std_error_, weighted_errors(TWO, weights, found), rtol=1e-5)
    plain = fitted(TWO, None, epsilon=math.inf, inference=True)
    assert not np.allclose(plain.coef_std_error_, weighted_errors(TWO, weights, found), rtol=0.02)
    three = fitted(THREE, {0: 3.0, 2: 0.5}, epsilon=math.inf, inference=True)
    expected = centred(reference(THREE, {0: 3.0, 2: 0.5}))
    np.testing.assert_allclose(centred(three), expected, atol=1e-5)


@pytest.mark.parametrize("weights", [{0: 1.0, 1: 4.0}, {0: 3.0, 2: 0.5}], ids=["two", "three"])
@pytest.mark.parametrize("size", ["all", 2])
def test_weights_of_classes_are_weights_of_their_records_to_the_bit(weights, size):
    y = THREE if 2 in weights else TWO
    given = {"n_nonzero": size, "inference": True, "epsilon": 20.0}
    found = fitted(y, weights, **given)
    own = np.array([weights.get(label, 1.0) for label in range(y.max() + 1)])
    classes = tuple(range(y.max() + 1))
    same = SparseClassifier(x_bound=1.0, classes=classes, random_state=0, weight_bound=1.0, **given)
    same.fit(X, y, sample_weight=(own / own.max())[y])
    assert found.coef_.tobytes() == same.coef_.tobytes()
    assert found.coef_std_error_.tobytes() == same.coef_std_error_.tobytes()
    assert found.certificate_.events == same.certificate_.events
    assert np.isfinite(found.coef_std_error_).any()
    # Of classes nothing has to be assumed: the certificate has their weights.
    assert WEIGHTS_OF_RECORDS in same.certificate_.assumptions
    assert WEIGHTS_OF_RECORDS not in found.certificate_.assumptions
    assert found.certificate_.public["class_weight"] == (own / own.max()).tolist()
    # Both kinds of weights are multiplied.
    both = fitted(y, weights, weight_bound=1.0, **given)
    weighted = SparseClassifier(**both.get_params()).fit(X, y, sample_weight=np.where(X[:, 0] > 0, 1.0, 0.5))
    assert weighted.coef_.tobytes() != found.coef_.tobytes()


def test_intervals_cover_the_coefficients_that_labels_were_drawn_from():
    inside, start = [], math.log(4.0) - 1.5
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-1, 1, (8000, 4))
        y = (rng.random(8000) < 1.0 / (1.0 + np.exp(1.5 - 2.0 * rows[:, 0] + rows[:, 1]))).astype(int)
        model = SparseClassifier(
            x_bound=1.0, classes=(0, 1), class_weight={1: 4.0}, n_nonzero="all", inference=True, epsilon=4.0,
            random_state=seed,
        ).fit(rows, y)  # fmt: skip
        low, high = model.coef_interval_.T
        inside += ((low <= [2.0, -1.0, 0.0, 0.0]) & (high >= [2.0, -1.0, 0.0, 0.0])).tolist()
        assert abs(model.intercept_[0] - start) < 0.5
    assert np.mean(inside) > 0.85


def test_weights_of_classes_lie_between_zero_and_one():
    # A site reads its records by what a coordinator asks for.
    for weights in ((1.0, 2.0), (0.0, 1.0), (1.0,), (math.nan, 1.0)):
        with pytest.raises(ValueError, match="a number in"):
            LabelMap(np.array([0, 1]), weights)


def test_a_model_file_holds_the_weights():
    target = Target("y", classes=("a", "b"))
    bounds = TableBounds(target, {f"x{j}": Column("number", -1, 1) for j in range(4)}, order=("x0", "x1", "x2", "x3"))
    labels = np.where(TWO[:3000] == 1, "b", "a")
    model = SparseClassifier(x_bound=1.0, classes=("a", "b"), class_weight={"b": 2.0}, random_state=0)
    stored = Model(bounds, model.fit(X[:3000], labels), "test")
    restored = Model.from_json(stored.to_json())
    assert restored.estimator.class_weight == {"b": 2.0}
    assert restored.to_json() == stored.to_json()


def test_the_largest_of_many_weights_is_searched_for_once(monkeypatch):
    searched = []
    monkeypatch.setattr(methods_base, "max", lambda weights: searched.append(1) or max(weights), raising=False)
    weights = methods_base.weights_of_classes({"k3": 4.0}, np.array([f"k{number}" for number in range(500)]))
    assert len(searched) == 1
    assert (weights[3], weights[4], len(weights)) == (1.0, 0.25, 500)
