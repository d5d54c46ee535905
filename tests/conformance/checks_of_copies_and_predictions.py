"""Fitted objects among others: copies, pipelines, searches in other processes; labels and units of predictions."""

import copy
import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from checks import check, has, once
from every_class import data_for, released, same
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from taciturn import (
    BoundedScaler,
    FrankWolfeRegressor,
    SuspiciousReleaseWarning,
    UnaccountedSearchWarning,
    certificate_of,
)

# ------------------------------------------------------------------ copies


def outcome(model, X):
    """What a fitted object makes of a table."""
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.transform(X))


@check(once)
def pickles_and_copies_are_equal(entry):
    X, y = data_for(entry)
    model = entry().fit(X, y)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert getattr(again, "certificate_", None) == model.certificate_
        assert released(again) == released(model)
        assert np.array_equal(outcome(again, X), outcome(model, X))


@check(lambda entry: once(entry) and hasattr(entry.kind, "sparsify"))
def coefficients_may_be_stored_sparse(entry):
    X, y = data_for(entry)
    model = entry().fit(X, y)
    coefficients, expected = model.coef_, model.predict(X)
    margins = getattr(model, "decision_function", model.predict)(X)
    assert sp.issparse(model.sparsify().coef_)
    for stored in (model, pickle.loads(pickle.dumps(model))):
        assert getattr(stored, "certificate_", None) == model.certificate_
        for table in (X, sp.csr_array(X)):
            assert np.allclose(getattr(stored, "decision_function", stored.predict)(table), margins, rtol=1e-12)
            assert stored.predict(table).dtype == expected.dtype
    # Exactly, and in the old shape.
    assert isinstance(model.densify().coef_, np.ndarray)
    assert np.array_equal(model.coef_, coefficients)


@check(once)
def clones_have_the_parameters_and_nothing_else(entry):
    X, y = data_for(entry)
    model = entry().fit(X, y)
    again = clone(model)
    assert vars(again) == entry().get_params() == model.get_params()
    assert released(again.fit(X, y)) == released(model)
    changed = entry.kind().set_params(**model.get_params())
    assert released(changed.fit(X, y)) == released(model)
    with pytest.raises(ValueError, match="Invalid parameter 'no_such'"):
        model.set_params(no_such=1)


# ------------------------------------------------------------------ pipelines and searches


@check(once)
def pipelines_have_one_certificate(entry):
    X, y = data_for(entry)
    alone = entry().fit(X, y)
    assert certificate_of(alone) == alone.certificate_
    # Bounds that the records keep: the map is the identity, and costs nothing.
    before = make_pipeline(BoundedScaler(lower=-1.0, upper=1.0), entry()).fit(X, y)
    assert same(entry, before[-1], alone)
    if not entry.proved:
        return
    total = certificate_of(before)
    assert (total.epsilon, total.delta) == (alone.certificate_.epsilon, alone.certificate_.delta)
    assert total.events == alone.certificate_.events
    if not entry.predicts:
        relation = {"relation": alone.certificate_.relation}
        model = FrankWolfeRegressor(epsilon=0.5, n_steps=2, **relation)
        both = make_pipeline(entry(), model).fit(X, data_for(BaseRegression)[1])
        parts = [step.certificate_ for step in both]
        total = certificate_of(both)
        assert total.delta == pytest.approx(parts[0].delta + parts[1].delta)
        assert 0.5 < total.epsilon <= sum(part.epsilon for part in parts) * (1.0 + 1e-9) or not parts[0].events
        assert total.events == parts[0].events + parts[1].events


class BaseRegression(BaseEstimator):
    """Asks for numbers as targets."""


@check(once)
def searches_run_in_two_processes(entry):
    X, y = data_for(entry)
    name, values = ("epsilon", [1.0, 2.0]) if "epsilon" in entry.parameters else ("lower", [-1.0, -2.0])
    if entry.needs_records:
        values = [30.0, 29.0]
    if entry.predicts:
        model, key = entry(), name
    else:
        # Through a model of which the score is one.
        model, key = make_pipeline(entry(), FrankWolfeRegressor(n_steps=2, random_state=0)), None
        key = f"{model.steps[0][0]}__{name}"
    search = GridSearchCV(model, {key: values}, cv=2, n_jobs=2, refit=True)
    private = "account" in entry.parameters or not entry.predicts
    with pytest.warns(UnaccountedSearchWarning, match="scores and the choice") if private else nullcontext():
        search.fit(X, y)
    alone = clone(model).set_params(**search.best_params_).fit(X, y)
    fitted = search.best_estimator_
    first, expected = (fitted, alone) if entry.predicts else (fitted[0], alone[0])
    assert released(first) == released(expected)
    # The same folds in this process.
    with pytest.warns(UnaccountedSearchWarning, match="KFold") if private else nullcontext():
        scores = cross_val_score(clone(model).set_params(**search.best_params_), X, y, cv=2)
    assert scores.mean() == pytest.approx(search.best_score_, rel=1e-9)


# ------------------------------------------------------------------ predictions


@check(lambda entry: entry.classifies)
def labels_may_be_of_any_type(entry):
    X, y = data_for(entry)
    several = entry().__sklearn_tags__().classifier_tags.multi_class
    lists = [("no", "yes"), (False, True), (10, 7)]
    for labels in [*lists, (0, 1, 2), ("a", "b", "c", "d")] if several else lists:
        codes = y if len(labels) == 2 else np.digitize(X[:, 1], np.linspace(-0.5, 0.5, len(labels) - 1))
        target = np.array(labels)[codes]
        # Of two classes one needs coefficients; the multinomial method as printed has them for both.
        n_outputs = 1 if len(labels) == 2 and (entry.proved or not several) else len(labels)
        for given in ({}, {"classes": labels}) if "classes" in entry.parameters else ({},):
            model = entry(**given).fit(X, target)
            assert model.classes_.tolist() == sorted(labels)
            assert model.coef_.shape == (n_outputs, 6)
            assert np.shape(model.intercept_) == (n_outputs,)
            assert model.decision_function(X).shape == ((len(X),) if len(labels) == 2 else (len(X), len(labels)))
            probabilities = model.predict_proba(X)
            assert probabilities.shape == (len(X), len(labels))
            assert np.allclose(probabilities.sum(axis=1), 1.0)
            assert np.allclose(np.exp(model.predict_log_proba(X)), probabilities)
            assert np.isfinite(model.predict_log_proba(1e4 * X)).all()
            assert model.predict(X).dtype == model.classes_.dtype
            chosen = np.searchsorted(model.classes_, model.predict(X))
            assert np.array_equal(probabilities[np.arange(len(X)), chosen], probabilities.max(axis=1))
            assert model.score(X, target) == np.mean(model.predict(X) == target)
    if not several:
        with pytest.raises(ValueError, match="Only binary classification is supported"):
            entry().fit(X, np.arange(len(X)) % 3)


@check(lambda entry: entry.proved and has("classes")(entry))
def a_label_of_another_type_decides_nothing_for_other_records(entry):
    X, y = data_for(entry)

    def fitted(labels, classes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousReleaseWarning)
            return released(entry(classes=classes).fit(X, labels))

    # Of the same type as the classes, but none of them, so that its record is null.
    for classes, odd, other in ((("0", "1"), 7, "7"), ((0, 1), "1", 7)):
        labels = [classes[int(above)] for above in y > 0]
        expected = fitted([*labels[:-1], other], classes)
        for target in ([*labels[:-1], odd], (*labels[:-1], odd), pd.Series([*labels[:-1], odd], dtype=object)):
            assert fitted(target, classes) == expected
        # Nor is a table refused, or admitted, by its last label.
        assert fitted([odd] * len(labels), classes) == fitted([other] * len(labels), classes)
        assert fitted([*[odd] * (len(labels) - 1), labels[-1]], classes) == fitted(
            [*[other] * (len(labels) - 1), labels[-1]], classes
        )


@check(lambda entry: entry.regresses and has("y_bounds")(entry))
def targets_have_the_units_of_the_user(entry):
    X, y = data_for(entry)
    unit = entry(y_bounds=(-1.0, 1.0)).fit(X, y)
    celsius = entry(y_bounds=(10.0, 50.0)).fit(X, 30.0 + 20.0 * y)
    assert np.allclose(celsius.coef_, 20.0 * unit.coef_)
    assert np.allclose(celsius.intercept_, 30.0 + 20.0 * unit.intercept_)
    assert np.allclose(celsius.predict(X), 30.0 + 20.0 * unit.predict(X))
    assert celsius.certificate_.public["y_bounds"] == [10.0, 50.0]
    # Targets beyond the bounds are clipped, and nothing tells of it.
    far = entry(y_bounds=(-0.1, 0.1)).fit(X, y)
    near = entry(y_bounds=(-0.1, 0.1)).fit(X, np.clip(y, -0.1, 0.1))
    assert released(far) == released(near)


@check(lambda entry: once(entry) and has("x_bound")(entry))
def features_beyond_their_bound_are_clipped_without_a_word(entry):
    X, y = data_for(entry)
    far = entry(x_bound=0.25).fit(X, y)
    assert released(far) == released(entry(x_bound=0.25).fit(np.clip(X, -0.25, 0.25), y))
    assert far.certificate_.public["x_bound"] == 0.25
