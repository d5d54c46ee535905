"""Every model as a plain estimator of scikit-learn, and what other programs make of it."""

import io
import pickle
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from every_class import BY_NAME, EVERY_CLASS, data_for, records
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import taciturn

MODELS = {name: entry for name, entry in EVERY_CLASS.items() if entry.predicts}


def made_up(kind="squared", *, classes=None, named=False):
    """A model whose coefficients were set, and which reaches both ends of its range."""
    if classes is not None:
        model = taciturn.SparseClassifier(classes=classes)
        n_outputs = 1 if len(classes) == 2 else len(classes)
        model.classes_ = np.array(sorted(classes))
        model.coef_ = np.random.default_rng(0).normal(size=(n_outputs, 6))
        model.intercept_ = np.linspace(-0.3, 0.4, n_outputs)
    else:
        exposed = {"exposure_bound": 2.0} if kind == "rates" else {}
        loss, bounds = {"gamma": ("gamma", (1.0, 50.0)), "squared": ("squared", (-0.5, 0.7))}.get(
            kind, ("poisson", (0.0, 9.0))
        )
        model = taciturn.SparseRegressor(loss=loss, y_bounds=bounds, **exposed)
        model.coef_, model.intercept_ = np.array([4.0, -3.0, 0.0, 2.0, 1.0, -5.0]), 0.25
        model.y_bounds_ = bounds
    model.support_ = (np.atleast_2d(model.coef_) != 0.0).any(axis=0)
    model.n_features_in_ = 6
    if named:
        model.feature_names_in_ = np.array(list("abcdef"), dtype=object)
    return model


HAND_MADE = {
    **{kind: made_up(kind) for kind in ("squared", "poisson", "rates", "gamma")},
    "two classes": made_up(classes=("ill", "well")),
    "truth": made_up(classes=(False, True)),
    "three classes": made_up(classes=(3, 1, 2)),
}
BY_HAND = pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in HAND_MADE.items()])


def test_a_made_up_regression_reaches_both_ends():
    # Without this a model that does not clip could pass below.
    for kind in ("squared", "poisson", "gamma"):
        predicted = HAND_MADE[kind].predict(50.0 * records()[0])
        counts = [np.isclose(predicted, end).sum() for end in (predicted.min(), predicted.max())]
        assert min(counts) > 3, kind


@pytest.mark.parametrize("name", [each for each in BY_NAME if each.values[0] in MODELS])
def test_every_model_has_the_same_predictions_as_its_plain_form(name):
    entry = MODELS[name]
    X, y = data_for(entry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = entry.usual().fit(X, y)
    plain = model.to_sklearn()
    check_is_fitted(plain)
    assert type(plain).__module__.startswith("sklearn.")
    assert plain.n_features_in_ == 6
    # Beyond the bounds, too.
    wider = np.vstack((X, 3.0 * X))
    if is_classifier(model):
        assert plain.predict(wider).tolist() == model.predict(wider).tolist()
        np.testing.assert_allclose(plain.predict_proba(wider), model.predict_proba(wider), rtol=1e-12, atol=1e-15)
        assert isinstance(plain, LogisticRegression)
    else:
        np.testing.assert_allclose(plain.predict(wider), model.predict(wider), rtol=1e-12, atol=1e-13)


@BY_HAND
def test_plain_forms_clip_and_link_as_the_model_does(model):
    X, _ = records()
    plain = model.to_sklearn()
    for table in (X, 50.0 * X):
        if is_classifier(model):
            np.testing.assert_allclose(plain.predict_proba(table), model.predict_proba(table), rtol=1e-12, atol=1e-15)
            assert plain.predict(table).dtype.kind == model.predict(table).dtype.kind
            assert plain.predict(table).tolist() == model.predict(table).tolist()
        else:
            expected = np.minimum(model.predict(table), np.exp(80.0))
            np.testing.assert_allclose(plain.predict(table), expected, rtol=1e-12, atol=1e-13)
    if not is_classifier(model):
        np.testing.assert_allclose(plain.predict(sp.csr_array(X)), plain.predict(X), rtol=1e-12, atol=1e-13)


def test_a_plain_form_does_not_follow_later_changes_and_leaves_the_model_alone():
    model = made_up()
    plain = model.to_sklearn()
    before = plain.predict(records()[0])
    model.coef_ *= 2.0
    assert plain.predict(records()[0]).tolist() == before.tolist()
    sparse = made_up().sparsify()
    assert sparse.to_sklearn().predict(records()[0]).tolist() == before.tolist()
    with pytest.raises(NotFittedError):
        taciturn.SparseRegressor().to_sklearn()


def test_names_of_features_are_asked_for_as_by_the_model():
    X = pd.DataFrame(records()[0], columns=list("abcdef"))
    for named in (made_up(named=True), made_up(classes=("no", "yes"), named=True)):
        plain = named.to_sklearn()
        if is_classifier(named):
            assert plain.predict(X).tolist() == named.predict(X).tolist()
        else:
            np.testing.assert_allclose(plain.predict(X), named.predict(X), rtol=1e-12, atol=1e-13)
        with pytest.raises(ValueError, match="feature names"):
            plain.predict(X.rename(columns={"a": "z"}))


def test_a_model_of_hazards_is_a_linear_one_and_a_clipped_one_a_pipeline():
    model = taciturn.SparseSurvival(cuts=(1.0,))
    model.coef_, model.intercept_, model.n_features_in_ = np.ones(6), 0.0, 6
    model.support_ = np.ones(6, dtype=bool)
    assert type(model.to_sklearn()) is LinearRegression
    assert type(made_up().to_sklearn()) is Pipeline


# ------------------------------------------------------------------ other programs


@BY_HAND
def test_onnx_has_the_same_predictions(model):
    skl2onnx = pytest.importorskip("skl2onnx", reason="needs skl2onnx and onnxruntime")
    runtime = pytest.importorskip("onnxruntime", reason="needs skl2onnx and onnxruntime")
    X = records()[0].astype(np.float32)
    written = skl2onnx.to_onnx(model.to_sklearn(), X[:1], options={"zipmap": False} if is_classifier(model) else None)
    session = runtime.InferenceSession(written.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": X})
    # Its arithmetic has 24 bits.
    if is_classifier(model):
        sure = np.ptp(np.sort(model.predict_proba(X))[:, -2:], axis=1) > 1e-5
        assert np.asarray(found[0])[sure].tolist() == model.predict(X)[sure].tolist()
        np.testing.assert_allclose(found[1], model.predict_proba(X), rtol=2e-5, atol=2e-6)
    else:
        np.testing.assert_allclose(found[0].ravel(), model.predict(X), rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@BY_HAND
def test_pmml_has_the_same_predictions(model, tmp_path, capfd):
    sklearn2pmml = pytest.importorskip("sklearn2pmml", reason="needs sklearn2pmml, jpmml_evaluator and Java")
    evaluator = pytest.importorskip("jpmml_evaluator", reason="needs sklearn2pmml, jpmml_evaluator and Java")
    X = pd.DataFrame(records(n=50)[0], columns=list("abcdef"))
    place = tmp_path / "model.pmml"
    try:
        sklearn2pmml.sklearn2pmml(
            sklearn2pmml.make_pmml_pipeline(model.to_sklearn(), active_fields=list(X), target_fields=["y"]), str(place)
        )
    except RuntimeError:
        if "is not supported" in capfd.readouterr().out:
            pytest.skip("sklearn2pmml does not know this version of scikit-learn yet")
        pytest.skip("needs Java") if shutil.which("java") is None else pytest.fail("not converted")
    found = evaluator.make_evaluator(str(place)).verify().evaluateAll(X)
    if is_classifier(model):
        for k, label in enumerate(model.classes_.tolist()):
            name = f"probability({str(label).lower() if isinstance(label, bool) else label})"
            np.testing.assert_allclose(found[name].astype(float), model.predict_proba(X.to_numpy())[:, k], rtol=1e-9)
    else:
        np.testing.assert_allclose(found.iloc[:, 0].astype(float), model.predict(X.to_numpy()), rtol=1e-9)


@BY_HAND
def test_skops_reads_it_without_untrusted_types(model):
    skops = pytest.importorskip("skops.io", reason="needs skops")
    written = skops.dumps(model.to_sklearn())
    assert skops.get_untrusted_types(data=written) == []
    X, _ = records()
    assert skops.loads(written).predict(X).tolist() == model.to_sklearn().predict(X).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "poisson", "two classes"])
def test_mlflow_saves_it_as_a_model_of_scikit_learn(name, tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn", reason="needs mlflow")
    model, place = HAND_MADE[name], tmp_path / "model"
    X, _ = records()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.save_model(model.to_sklearn(), str(place), pip_requirements=["scikit-learn"])
        assert mlflow.load_model(str(place)).predict(X).tolist() == model.to_sklearn().predict(X).tolist()


def test_joblib_needs_no_taciturn_to_read_it():
    written = pickle.dumps(made_up().to_sklearn())

    class Plain(pickle.Unpickler):
        def find_class(self, module, name):
            assert not module.startswith("taciturn")
            return super().find_class(module, name)

    Plain(io.BytesIO(written)).load()
