"""What the constructor and a single fit promise, whatever the table."""

import contextlib
import html
import inspect
import io
import logging
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from checks import check, has, once, refusal
from every_class import (
    DERIVED,
    FITTED,
    PUBLIC_FACTS,
    data_for,
    fitted_attributes,
    records,
    released,
    takes_sparse,
    target_for,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from taciturn import Certificate
from taciturn.privacy.certificate import in_short

DEFAULTS = {
    **{"epsilon": 1.0, "delta": 1e-6, "relation": "zero-out", "n_public": None, "classes": None, "n_nonzero": 10},
    **{"n_features_to_select": 10, "n_steps": "auto", "fit_intercept": True, "invalid": "raise", "random_state": None},
}
"""Parameters that mean the same in every class of the top level, and therefore have one default."""

CHOSEN = {"SparseRegressor": {"n_nonzero": "auto"}, "SparseClassifier": {"n_nonzero": "auto"}}
"""Defaults of the classes that can choose a number by themselves."""

RELATIONS = ("zero-out", "add-remove", "replace-one")
PROVED_STATUS = {"proved", "proved under a numerical assumption"}


# ------------------------------------------------------------------ the constructor


@check(once)
def constructors_assign_keywords_and_do_nothing_else(entry):
    parameters = inspect.signature(entry.kind).parameters.values()
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters)
    # Objects that stand any use of them but being kept.
    marks = {parameter.name: object() for parameter in parameters}
    model = entry.kind(**marks)
    assert vars(model).keys() == marks.keys()
    assert all(vars(model)[name] is mark for name, mark in marks.items())
    assert vars(entry.kind()) == entry.parameters


@check(lambda entry: entry.proved)
def parameters_follow_from_the_kind(entry):
    """One name, one default; bounds for numbers, labels for classes; a privacy budget wherever there is noise."""
    defaults = DEFAULTS | CHOSEN.get(entry.kind.__name__, {})
    for name, default in entry.parameters.items():
        assert name not in defaults or default == defaults[name], name
    selects = not entry.predicts and not entry.scales
    expected = {"y_bounds": entry.regresses, "classes": entry.classifies or selects}
    for name, wanted in expected.items():
        # Selection by ranks needs no bounds.
        assert (name in entry.parameters) == wanted or (selects and name == "y_bounds"), name
    budget = {"epsilon", "delta", "relation", "n_public", "random_state"}
    assert budget <= entry.parameters.keys() or not budget & entry.parameters.keys()


# ------------------------------------------------------------------ one fit


@check(once)
def fits_print_nothing(entry):
    X, y = data_for(entry)
    spoken, logged = io.StringIO(), []
    handler = logging.Handler()
    handler.emit = logged.append
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(spoken), contextlib.redirect_stderr(spoken):
            model = entry().fit(X, y)
            model.predict(X) if entry.predicts else model.transform(X)
    finally:
        logging.getLogger().removeHandler(handler)
    assert spoken.getvalue() == ""
    assert logged == []


def _logged(model, X, y):
    """Everything that is logged during a fit but the time and the place in the code."""
    found, logger = [], logging.getLogger("taciturn")
    handler = logging.Handler()
    handler.emit = lambda record: found.append((record.levelname, record.getMessage(), record.args, record.phase))
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(1)
    try:
        model.fit(X, y)
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
    return found


@check(lambda entry: entry.first and entry.proved and "epsilon" in entry.parameters)
def logs_tell_phases_and_public_facts(entry):
    """Tables of which the same is public give the same messages, whatever they hold and however long they take."""
    public = {"classes": (0, 1), "invalid": "null"}
    X, y = data_for(entry)
    other, y_other = data_for(entry, seed=1)
    other[::3] = np.nan
    other[1::3] *= 1e9
    messages = _logged(entry(**public), X, y)
    assert [phase for *_, phase in messages] == ["planned", "reserved", "reading", "running", "certified"]
    assert all(message.startswith(f"{entry.kind.__name__}: ") for _, message, *_ in messages)
    assert _logged(entry(**public), other, y_other) == messages
    # The number of records is private here.
    private = public | {"relation": "add-remove", "n_public": 100}
    assert _logged(entry(**private), X, y) == _logged(entry(**private), *data_for(entry, n=90, seed=2))


@check(lambda entry: entry.first and "epsilon" in entry.parameters)
def the_text_names_the_budget(entry):
    """Also where epsilon and delta have their defaults; whatever else is changed is printed as ever."""
    names = {"epsilon", "delta"} & entry.parameters.keys()
    plain = repr(entry.kind())
    assert plain == str(entry.kind())
    for model in (entry.kind(), entry(), entry(epsilon=0.25, random_state=5)):
        text = repr(model)
        assert all(f"{name}={getattr(model, name)!r}" in text for name in names), text
        again = eval(text, {entry.kind.__name__: entry.kind, "inf": math.inf})
        assert repr(again.get_params()) == repr(model.get_params())
    assert re.fullmatch(rf"{entry.kind.__name__}\([^)]*\)", plain)
    assert set(re.findall(r"(\w+)=", plain)) == names


@check(lambda entry: entry.first and entry.proved and "epsilon" in entry.parameters)
def notebooks_show_what_was_released(entry):
    """Below scikit-learn's diagram, once there is something to show; the diagram of a pipeline stays as it is."""
    X, y = data_for(entry)
    evil = "<script>alert(1)</script>"
    frame = pd.DataFrame(X, columns=[evil, "b", "c", "d", "e", "f"])
    model = entry()
    assert "taciturn-card" not in model._repr_html_()
    model.fit(frame, y)
    diagram, _, card = model._repr_html_().partition('<div class="taciturn-card">')
    assert "sk-top-container" in diagram
    assert card
    assert model._repr_mimebundle_()["text/html"].endswith(card)
    assert in_short(model.certificate_) in html.unescape(card)
    assert "<script" not in card
    assert evil not in model._repr_html_()
    if not entry.predicts and not entry.scales:
        kept = [name for name, keep in zip(frame.columns, model.get_support(), strict=True) if keep]
        assert all(f">{html.escape(name)}</th>" in card for name in kept)
    if entry.predicts:
        used = np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0))
        assert card.count('<th scope="row">') >= min(used.size, 10)
    pipeline = make_pipeline(FunctionTransformer(), model)
    assert "taciturn-card" not in pipeline._repr_html_()


@check(once)
def fits_leave_their_input_alone(entry):
    X, y = data_for(entry, n=80)
    # Unsorted values beyond the bounds, which have to be put right on the way.
    X[0], X[1] = 3.0, -3.0
    y = y if entry.classifies else 3.0 * y
    tables = [X, np.asfortranarray(X), pd.DataFrame(X, columns=list("abcdef"))]
    if takes_sparse(entry()):
        tables += [sp.csr_array(X), sp.csc_matrix(X)]
    for table in tables:
        before = pickle.dumps((table, y))
        model = entry().fit(table, y)
        for method in ("predict", "predict_proba", "transform"):
            if hasattr(model, method):
                getattr(model, method)(table)
        assert pickle.dumps((table, y)) == before, type(table)
    X.setflags(write=False)
    y.setflags(write=False)
    entry().fit(X, y)


@check()
def fits_keep_what_was_released_and_nothing_else(entry):
    X, y = data_for(entry)
    allowed = FITTED | PUBLIC_FACTS | DERIVED | entry.extras | ({"classes_"} if entry.classifies else set())
    for table in (X, pd.DataFrame(X, columns=list("abcdef"))):
        found = fitted_attributes(entry().fit(table, y))
        assert found <= allowed, found - allowed
        expected = {"certificate_", "n_features_in_", *entry.extras}
        expected |= {"coef_", "intercept_"} if entry.predicts else set()
        expected |= set() if entry.scales else {"support_"}
        assert expected <= found, expected - found
        assert ("feature_names_in_" in found) == (table is not X)


@check(once)
def a_second_fit_forgets_the_first(entry):
    X, y = data_for(entry, d=9, seed=3)
    names = [f"c{j}" for j in range(9)]
    first = entry().fit(pd.DataFrame(X, columns=names), np.where(y > 0, "yes", "no") if entry.classifies else y)
    X, y = data_for(entry)
    assert first.fit(X, y) is first
    assert released(first) == released(entry().fit(X, y))


# ------------------------------------------------------------------ randomness


@check(has("random_state"))
def seeds_reproduce_and_are_not_told(entry):
    X, y = data_for(entry)
    seed = 918_273_645
    one, other = (entry(random_state=seed).fit(X, y) for _ in range(2))
    assert released(one) == released(other)
    assert one.certificate_.seeded
    assert str(seed) not in one.certificate_.to_json() + str(one.certificate_)


@check(has("random_state"))
def fits_without_a_seed_differ(entry):
    # Nothing to find, so that noise decides; a scaler needs values that lie apart.
    X, y = data_for(entry, n=1000 if entry.needs_records else 120, d=6 if entry.scales else 60)
    X = np.random.default_rng(0).uniform(-1, 1, X.shape) if entry.scales else 0.0 * X
    fits = [entry(epsilon=3.0, random_state=None).fit(X, y) for _ in range(5)]
    assert not any(model.certificate_.seeded for model in fits)
    assert [entry(random_state=seed).__sklearn_tags__().non_deterministic for seed in (None, 3)] == [True, False]
    assert len({tuple(sorted(released(model).items())) for model in fits}) > 1


@check(has("epsilon"))
def an_infinite_epsilon_is_not_private_and_draws_no_noise(entry):
    X, y = data_for(entry)
    infinite = {name: math.inf for name in entry.parameters if name.startswith("epsilon")}
    # Records are assigned to blocks by chance under add-remove, with or without noise.
    given = {**infinite, "relation": "zero-out", "random_state": None}
    one, other = (entry(**given).fit(X, y) for _ in range(2))
    for certificate in (one.certificate_, other.certificate_):
        assert (certificate.status, certificate.epsilon) == ("not private", math.inf)
    # Some papers start or divide at random.
    assert released(one) == released(other) or not entry.proved


# ------------------------------------------------------------------ certificates


def check_certificate(certificate, model, relation):
    """What every certificate of a private fit says."""
    assert certificate.relation == relation
    assert 0.0 <= certificate.epsilon <= model.epsilon
    assert 0.0 <= certificate.delta <= getattr(model, "delta", 0.0)
    assert certificate.events
    assert certificate.public["features"] == model.n_features_in_
    assert certificate.assumptions
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert f"{certificate.epsilon:g}" in str(certificate)
    with pytest.raises(AttributeError):
        certificate.epsilon = 0.1


@check(lambda entry: entry.proved and has("relation")(entry))
def certificates_cover_every_relation(entry):
    X, y = data_for(entry)
    for relation in RELATIONS:
        model = entry(relation=relation, n_public=100).fit(X, y)
        certificate = model.certificate_
        check_certificate(certificate, model, relation)
        assert certificate.status in PROVED_STATUS
        assert certificate.public["records"] == (100 if relation == "add-remove" else 120)
        assert certificate.for_group(2).epsilon > certificate.epsilon


@check(lambda entry: not entry.proved)
def reproductions_state_a_claim_and_what_is_wrong_with_it(entry):
    X, y = data_for(entry)
    model = entry().fit(X, y)
    assert model.certificate_.status == "as published"
    assert model.certificate_.errata
    assert Certificate.from_json(model.certificate_.to_json()) == model.certificate_


@check(lambda entry: entry.proved and has("relation")(entry))
def a_private_number_of_records_decides_nothing_public(entry):
    X, y = records(121)
    y = target_for(entry(), y)
    labels = (0, 1) if entry.classifies else None
    layouts = [np.asarray, sp.csr_array] if takes_sparse(entry()) else [np.asarray]
    for layout in layouts:
        for n_public in (120,) if entry.needs_n_public else (120, None):
            model = entry(relation="add-remove", n_public=n_public, classes=labels)
            certificates = {model.fit(layout(X[:n]), y[:n]).certificate_ for n in (90, 121)}
            assert len(certificates) == 1
            (certificate,) = certificates
            assert certificate.public.get("records") == n_public
            assert not entry.predicts or any("there are at most" in text for text in certificate.assumptions)
    needed = refusal(entry(relation="add-remove", n_public=None).fit, X, y)
    assert (needed is not None) == entry.needs_n_public
    assert needed is None or needed.startswith("n_public=None: expected a public number of records")


@check(lambda entry: entry.proved and has("delta")(entry))
def a_budget_without_a_delta_is_kept_or_refused(entry):
    X, y = data_for(entry)
    model = entry(delta=0.0)
    needed = refusal(model.fit, X, y)
    assert (needed is not None) == entry.needs_delta
    if needed is None:
        assert (model.certificate_.delta, model.certificate_.status) == (0.0, "proved")
        assert model.certificate_.epsilon <= model.epsilon
    else:
        assert needed.startswith("delta=0.0: expected a")
        assert not hasattr(model, "certificate_")
        # Without noise there is nothing to refuse.
        assert entry(delta=0.0, epsilon=math.inf).fit(X, y).certificate_.status == "not private"
