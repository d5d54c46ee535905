"""One certificate for a pipeline: what adds up, what costs nothing, what is refused."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import Normalizer, StandardScaler

from taciturn import Budget, CorrelationSelector, compose
from taciturn.core.errors import CertificateError, UnaccountedSearchWarning
from taciturn.events import PureEvent
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release
from taciturn.privacy.pipeline import certificate_of

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 10.0, (300, 8))
Y = RNG.uniform(-1.0, 1.0, 300)


def scaler():
    return BoundedScaler(lower=0.0, upper=10.0)


def selector(epsilon=0.5, k=3, **changes):
    return CorrelationSelector(epsilon=epsilon, delta=0.0, n_features_to_select=k, **changes)


def spent(epsilon=1.0, **changes):
    details = {"relation": "zero-out", "public": {"records": 300}, "seeded": False, "arithmetic": "exact"}
    releases = [Release("a test value", "Laplace", 1.0, PureEvent(epsilon))] if epsilon else []
    return certify(releases, Budget(10.0, 0.0), **(details | changes))


def test_an_estimator_with_a_certificate_has_its_own():
    fitted = selector().fit(X / 10, Y)
    assert certificate_of(fitted) is fitted.certificate_


def test_a_pipeline_of_scaler_and_selector():
    pipeline = make_pipeline(scaler(), selector()).fit(X, Y)
    certificate = certificate_of(pipeline)
    assert certificate == compose(pipeline[0].certificate_, pipeline[1].certificate_)
    assert (certificate.epsilon, certificate.delta, certificate.status) == (0.5, 0.0, "proved")
    assert certificate.events == pipeline[1].certificate_.events
    assert certificate.public["part 1"] == {"features": 8, "lower": 0.0, "upper": 10.0, "invalid": "raise"}
    assert certificate.public["part 2"]["selected"] == 3
    assert len(certificate.assumptions) == 3


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_the_steps_that_spend_set_the_relation(relation):
    pipeline = make_pipeline(scaler(), selector(relation=relation)).fit(X, Y)
    assert certificate_of(pipeline).relation == relation


def test_two_private_steps_are_added_up():
    pipeline = make_pipeline(scaler(), selector(0.5, 5), selector(0.25, 2)).fit(X, Y)
    certificate = certificate_of(pipeline)
    assert certificate.epsilon == pytest.approx(0.75)
    # The scaler releases nothing, each selector a mean and a set.
    assert [part.releases for part in certificate.parts] == [0, 2, 2]


def test_steps_that_pass_data_through_are_ignored():
    pipeline = Pipeline(
        [("nothing", "passthrough"), ("scale", scaler()), ("none", None), ("inner", Pipeline([("select", selector())]))]
    )
    assert certificate_of(pipeline.fit(X, Y)).epsilon == 0.5


def test_unions_and_column_transformers_are_composed():
    union = make_union(selector(0.5), selector(0.25), "passthrough", "drop")
    parts = make_column_transformer((scaler(), [0, 1, 2, 3]), ("passthrough", [4]), ("drop", [5]), remainder=scaler())
    pipeline = make_pipeline(parts, union).fit(X, Y)
    certificate = certificate_of(pipeline)
    assert certificate.epsilon == pytest.approx(0.75)
    assert [part["features"] for part in certificate.public.values()] == [4, 2, 7, 7]


def test_what_was_not_private_stays_so():
    pipeline = make_pipeline(scaler(), selector(float("inf"))).fit(X, Y)
    assert certificate_of(pipeline).status == "not private"


@pytest.mark.parametrize(
    ("estimator", "which"),
    [
        (make_pipeline(StandardScaler(), selector()), "'standardscaler' (StandardScaler)"),
        (make_pipeline(scaler(), selector(), LinearRegression()), "'linearregression' (LinearRegression)"),
        (make_pipeline(make_pipeline(VarianceThreshold())), "'pipeline.variancethreshold' (VarianceThreshold)"),
        (make_pipeline(Normalizer(), selector()), "'normalizer' (Normalizer)"),
        (FeatureUnion([("a", scaler()), ("b", StandardScaler())]), "'b' (StandardScaler)"),
        (ColumnTransformer([("a", scaler(), [0]), ("b", StandardScaler(), [1])]), "'b' (StandardScaler)"),
        (
            ColumnTransformer([("a", scaler(), [0])], remainder=StandardScaler()),
            "'remainder' (StandardScaler)",
        ),
        (LinearRegression(), "LinearRegression"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_step_that_does_not_account_for_itself_is_refused_by_name(estimator, which):
    with pytest.raises(CertificateError) as caught:
        certificate_of(estimator.fit(X, Y))
    message = str(caught.value)
    assert message.startswith(f"{which}: expected a step with a certificate_, got one that does not account")
    assert message.endswith("put BoundedScaler with public bounds or another private step in its place.")
    assert message.count(". ") == 0


def test_a_search_is_refused_though_its_best_estimator_is_private():
    pipeline = make_pipeline(selector(), LinearRegression())
    search = GridSearchCV(pipeline, {"correlationselector__n_features_to_select": [1, 2]}, cv=2)
    with pytest.warns(UnaccountedSearchWarning, match=r"^CorrelationSelector: a search .* nothing keeps count"):
        search.fit(X, Y)
    with pytest.raises(CertificateError, match=r"^GridSearchCV: expected .*, got a search, .* many times; .*\.$"):
        certificate_of(search)
    assert certificate_of(search.best_estimator_[0]).epsilon == 0.5


@pytest.mark.parametrize(
    ("estimator", "which"),
    [
        (selector(), "CorrelationSelector"),
        (make_pipeline(scaler(), selector()), "'boundedscaler' (BoundedScaler)"),
        (ColumnTransformer([("a", scaler(), [0])]), "ColumnTransformer"),
        (GridSearchCV(selector(), {}), "GridSearchCV"),
        (StandardScaler(), "StandardScaler"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unfitted_estimators_are_refused(estimator, which):
    with pytest.raises(CertificateError) as caught:
        certificate_of(estimator)
    assert str(caught.value) == (f"{which}: expected a fitted estimator, got one that is not fitted; call fit first.")


@pytest.mark.parametrize("thing", [3, "a pipeline", [selector()], spent()], ids=lambda value: type(value).__name__)
def test_other_things_are_refused(thing):
    with pytest.raises(CertificateError, match=r": expected a fitted estimator, got something else; .*\.$"):
        certificate_of(thing)


def test_a_pipeline_that_learned_nothing_has_no_certificate():
    with pytest.raises(CertificateError, match="expected at least one part that is fitted, got none"):
        certificate_of(Pipeline([("nothing", "passthrough")]).fit(X))


def test_reading_a_certificate_does_not_load_scikit_learn():
    code = "import sys, taciturn.privacy.pipeline as c; print(c.certificate_of.__name__, 'sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["certificate_of", "False"]


# ------------------------------------------------------------------ certificates that cost nothing


@pytest.mark.parametrize("order", [1, -1])
def test_what_costs_nothing_takes_relation_and_group_from_the_others(order):
    free = scaler().fit(X).certificate_
    costly = spent(relation="replace-one").for_group(3)
    total = compose(*[free, costly][::order])
    assert (total.relation, total.group_size) == ("replace-one", 3)
    assert total.epsilon == costly.epsilon == pytest.approx(3.0)
    assert compose(free, free).epsilon == 0.0
    assert compose(free) is free


def test_those_that_spend_still_have_to_agree():
    free = scaler().fit(X).certificate_
    with pytest.raises(CertificateError, match="relation: expected one and the same, got 'add-remove', 'zero-out'"):
        compose(free, spent(), spent(relation="add-remove", public={}))


def test_a_claim_without_events_is_not_free():
    claim = dataclasses.replace(spent(public={}), status="as published", events=())
    with pytest.raises(CertificateError, match="relation: expected one and the same"):
        compose(claim, spent(relation="replace-one"))


def test_a_public_row_count_does_not_slip_into_a_statement_that_protects_it():
    everything = selector(k=8).fit(X / 10, Y).certificate_
    assert everything.epsilon == 0.0
    assert everything.public["records"] == 300
    private = spent(relation="add-remove", public={})
    for free in (everything, compose(everything, everything)):
        with pytest.raises(CertificateError, match="relation: expected one and the same"):
            compose(free, private)
