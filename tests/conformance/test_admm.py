"""scikit-learn's contract for private ADMM, sound and printed, and what the classifier refuses."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from taciturn import ADMMClassifier, Certificate
from taciturn.core.errors import DataError, ParameterError
from taciturn.published import PrivateADMM


def data(n=3000, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.where(X[:, 2] - X[:, 5] > 0, "ill", "well")


@pytest.mark.parametrize(
    "model", [ADMMClassifier(), ADMMClassifier(penalty="l1/2", n_blocks=2), PrivateADMM(epsilon=1e4)]
)
def test_check_estimator_with_no_expected_failures(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("n_blocks", [1, 3])
def test_layouts_names_and_copies(n_blocks):
    X, y = data()
    model = ADMMClassifier(classes=("ill", "well"), n_blocks=n_blocks, random_state=1)
    dense = clone(model).fit(X, y)
    sparse = clone(model).fit(sp.csc_array(X), y)
    assert sparse.coef_ == pytest.approx(dense.coef_, abs=1e-6)
    named = clone(model).fit(pd.DataFrame(X, columns=[f"gene {j}" for j in range(8)]), y)
    assert named.feature_names_in_[2] == "gene 2"
    assert np.array_equal(named.coef_, dense.coef_)
    again = pickle.loads(pickle.dumps(dense))
    assert np.array_equal(again.predict(X), dense.predict(X))
    assert Certificate.from_json(dense.certificate_.to_json()) == dense.certificate_
    assert dense.score(X, y) > 0.9


def test_records_with_another_label_are_null_records():
    X, y = data(600)
    spoiled = y.astype(object)
    spoiled[:50] = "unknown"
    model = ADMMClassifier(epsilon=math.inf, classes=("ill", "well"), n_steps=20)
    others = clone(model).fit(X[50:], y[50:])
    nulls = model.fit(X, spoiled)
    # They count in the public number of records, by which the penalty is weighed.
    assert np.sign(nulls.coef_) == pytest.approx(np.sign(others.coef_))
    whole = clone(model).set_params(strength=0.01, coupling=5.0).fit(X, spoiled)
    part = clone(model).set_params(strength=0.01 * 600 / 550, coupling=5.0).fit(X[50:], y[50:])
    assert whole.coef_ == pytest.approx(part.coef_, abs=1e-6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"penalty": "l2"}, "penalty"),
        ({"strength": 0.0}, "strength"),
        ({"strength": "strong"}, "strength"),
        ({"coupling": -1.0}, "coupling"),
        ({"n_steps": 0}, "n_steps"),
        ({"n_blocks": 0}, "n_blocks"),
        ({"delta": 0.0}, "delta"),
        ({"row_bound": 0.0}, "row_bound"),
        ({"relation": "add-remove"}, "n_public"),
        ({"coupling": 1e-9}, "^coupling="),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_and_nothing_is_spent(parameters, words):
    X, y = data(200)
    model = ADMMClassifier(**parameters)
    with pytest.raises(ParameterError, match=words):
        model.fit(X, y)
    assert not hasattr(model, "certificate_")


def test_two_classes_and_no_more():
    X, _ = data(300)
    with pytest.raises(DataError, match="Only binary classification is supported"):
        ADMMClassifier().fit(X, np.arange(300) % 3)


def test_only_what_is_paid_for_is_left_behind():
    X, y = data(500)
    model = ADMMClassifier().fit(X, y)
    left = vars(model).keys() - model.get_params().keys()
    assert left <= {
        "coef_", "intercept_", "n_iter_", "support_", "certificate_", "n_features_in_", "classes_"
    }  # fmt: skip
