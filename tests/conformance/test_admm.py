"""What private ADMM promises beyond the contract of every class: signals, null records, the coupling."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from taciturn import ADMMClassifier
from taciturn.core.errors import ParameterError


def data(n=3000, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.where(X[:, 2] - X[:, 5] > 0, "ill", "well")


@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csc_array])
def test_signals_are_found(n_blocks, layout):
    X, y = data()
    model = ADMMClassifier(classes=("ill", "well"), n_blocks=n_blocks, random_state=1).fit(layout(X), y)
    assert model.score(X, y) > 0.9


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


def test_a_coupling_that_privacy_cannot_afford_is_refused():
    model = ADMMClassifier(coupling=1e-9)
    with pytest.raises(ParameterError, match="^coupling="):
        model.fit(*data(200))
    assert not hasattr(model, "certificate_")
