"""``invalid="null"``: every fit is total, and a record that is not admissible is absent from all of it."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from every_class import PROVED, PUBLISHED, records, released, takes_sparse, target_for
from null_records import (
    CLASSIFIERS,
    NULL_ROWS,
    WITH_RELATION,
    WITH_TARGET,
    invalid_tables,
    null_model,
    one_null,
    outcome,
)
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline

import taciturn
from taciturn.audit import replay
from taciturn.core.errors import DataError, ParameterError
from taciturn.data.records import ADMISSIBLE
from taciturn.data.sensitivity import RELATIONS

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        pytest.param(name, relation, marks=() if relation == "zero-out" else pytest.mark.slow)
        for name in PROVED
        for relation in RELATIONS
        if name in WITH_RELATION or relation == "zero-out"
    ],
)
def test_all_invalid_records_are_the_same_null_record(name, relation):
    X, y = records()
    y = target_for(PROVED[name](), y)
    tables = list(invalid_tables(X))
    # How a table is read does not depend on the relation.
    tables = tables if relation == "zero-out" else tables[:5:2]
    outcomes = [outcome(null_model(name, relation), table, y) for table in tables]
    names = outcomes[-1].pop("feature_names_in_", None)
    assert names is None
    assert all(other == outcomes[0] for other in outcomes)


@pytest.mark.parametrize("name", [name for name in PROVED if takes_sparse(PROVED[name]())])
def test_null_records_of_sparse_tables(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    X[NULL_ROWS, 3] = 0.5
    expected = None
    for layout in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        for filling in (np.nan, np.inf):
            table = sp.coo_array(X)
            table.data[(table.col == 3) & np.isin(table.row, NULL_ROWS)] = filling
            found = outcome(null_model(name), layout(table), y)
            expected = expected or found
            assert found == expected


@pytest.mark.parametrize("name", WITH_RELATION)
def test_under_add_remove_a_null_record_is_no_record(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    without = outcome(null_model(name, "add-remove"), np.delete(X, NULL_ROWS, axis=0), np.delete(y, NULL_ROWS))
    assert outcome(null_model(name, "add-remove"), next(invalid_tables(X)), y) == without


@pytest.mark.parametrize("name", WITH_TARGET)
def test_a_record_without_a_usable_target_is_null(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    expected = outcome(null_model(name), next(invalid_tables(X)), y)
    fillings = [[np.nan, None, np.inf, pd.NA, pd.NaT]]
    if not is_classifier(PROVED[name]()):
        fillings.append(["text", 10**400, {}, (1, 2), 2j])
    for filling in fillings:
        cells = y.astype(object)
        for row, cell in zip(NULL_ROWS, filling, strict=True):
            cells[row] = cell
        for target in (cells, cells.tolist(), pd.Series(cells)):
            assert outcome(null_model(name), X, target) == expected


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_label_outside_the_classes_is_the_same_null_record(name):
    X, y = records()
    y = target_for(null_model(name), y)
    other = y.astype(object)
    other[list(NULL_ROWS)] = ["no", 2, -1, 0.5, "1"]
    assert outcome(null_model(name), X, other) == outcome(null_model(name), next(invalid_tables(X)), y)


@pytest.mark.parametrize("name", PROVED)
def test_admissible_tables_give_the_same_either_way(name):
    X, y = records()
    strict, total = PROVED[name](), PROVED[name]().set_params(invalid="null")
    y = target_for(strict, y)
    first, second = released(strict.fit(X, y)), released(total.fit(X, y))
    for name in ("certificate_", "survival_curve_"):
        first.pop(name, None), second.pop(name, None)
    assert first == second
    if hasattr(strict, "survival_curve_"):
        # It holds its certificate.
        curves = [model.survival_curve_ for model in (strict, total)]
        np.testing.assert_array_equal(curves[0].survival, curves[1].survival)
    assert strict.certificate_.events == total.certificate_.events
    assert (strict.certificate_.public["invalid"], total.certificate_.public["invalid"]) == ("raise", "null")
    assert ADMISSIBLE in strict.certificate_.assumptions
    assert ADMISSIBLE not in total.certificate_.assumptions


@pytest.mark.parametrize("name", PROVED)
def test_fits_are_total(name):
    X, y = records()
    y = target_for(PROVED[name](), y).astype(float)
    nothing = np.full_like(X, np.nan)
    for relation in RELATIONS if name in WITH_RELATION else ("zero-out",):
        null_model(name, relation).fit(nothing, y)
        one = nothing.copy()
        one[5] = X[5]
        null_model(name, relation).fit(one, y)
        if name in WITH_TARGET:
            null_model(name, relation).fit(X, np.full(len(y), np.nan))
    if name in WITH_RELATION:
        empty = released(null_model(name, "add-remove").fit(X[:0], y[:0]))
        assert empty == released(null_model(name, "add-remove").fit(nothing, y))
        with pytest.raises(DataError, match="expected records, got none"):
            null_model(name, "zero-out").fit(X[:0], y[:0])


@pytest.mark.parametrize("name", PROVED)
def test_frames_with_missing_values(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    X = np.round(X)
    columns = [f"c{j}" for j in range(X.shape[1])]
    missing = X.copy()
    missing[NULL_ROWS, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for public in ("WeakBudget", "WeakGuarantee", "DefaultBounds", "SuspiciousRelease"):
            warnings.simplefilter("ignore", getattr(taciturn, f"{public}Warning"))
        nullable = pd.DataFrame(missing, columns=columns).astype("Int64")
        expected = released(null_model(name).fit(nullable, y))
        integers = [[None if np.isnan(cell) else int(cell) for cell in column] for column in missing.T]
        frames = [
            pd.DataFrame(missing, columns=columns),
            nullable.astype(object),
            pl.DataFrame(dict(zip(columns, integers, strict=True))),
            pa.table(dict(zip(columns, integers, strict=True))),
        ]
        for frame in frames:
            assert released(null_model(name).fit(frame, y)) == expected
    assert null_model(name).fit(nullable, y).feature_names_in_.tolist() == columns


@pytest.mark.parametrize("name", PROVED)
def test_what_is_no_table_is_refused_all_the_same(name):
    X, y = records(60)
    y = target_for(PROVED[name](), y)
    for table in (X[:, 0], X[None], X[:, :0], [[1.0, 2.0], [3.0]], "text"):
        with pytest.raises(DataError):
            null_model(name).fit(table, y)
    with pytest.raises(DataError):
        null_model(name).fit(X.astype(complex), y)
    if name in WITH_TARGET:
        for target in (y[:-1], np.column_stack((y, y)), None):
            with pytest.raises(DataError):
                null_model(name).fit(X, target)
    with pytest.raises(ParameterError, match="invalid='drop': expected one of 'raise', 'null'"):
        PROVED[name]().set_params(invalid="drop").fit(X, y)


@pytest.mark.parametrize("name", PROVED)
def test_every_class_takes_the_parameter_and_tells_of_it(name):
    model = PROVED[name]()
    assert inspect.signature(type(model)).parameters["invalid"].default == "raise"
    assert not model.__sklearn_tags__().input_tags.allow_nan
    assert model.set_params(invalid="null").__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_may_be_taken_from_those_that_are_there(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    expected = PROVED[name]().set_params(invalid="null").fit(X, y.tolist())
    assert expected.classes_.tolist() == [0, 1]
    assert "the set of labels is public" in expected.certificate_.assumptions
    missing = y.astype(object)
    missing[list(NULL_ROWS)] = None
    for target in (missing, missing.tolist(), pd.Series(missing, dtype="Int64"), pl.Series(missing.tolist())):
        model = PROVED[name]().set_params(invalid="null").fit(X, target)
        assert model.classes_.tolist() == [0, 1]
        assert np.isin(model.predict(X), [0, 1]).all()


def test_reproductions_stay_as_printed():
    assert not any("invalid" in factory().get_params() for factory in PUBLISHED.values())


# ------------------------------------------------------------------ scores and scalers


def fitted(name):
    X, y = records()
    model = PROVED[name]()
    return model.fit(X, target_for(model, y)), X, target_for(model, y)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["FrankWolfeRegressor", "FrankWolfeClassifier"])
def test_scores_leave_null_records_out(name, relation):
    model, X, y = fitted(name)

    def score(table, target):
        given = {"relation": relation, "n_public": 300, "random_state": 3, "invalid": "null"}
        found = taciturn.private_score(model, table, target, **given)
        return found.value, found.std, found.certificate

    expected = score(next(invalid_tables(X)), y)
    for table in invalid_tables(X):
        assert score(table, y) == expected
    target = y.astype(object)
    target[list(NULL_ROWS)] = [None, np.nan, "x", pd.NA, 10**400]
    assert score(X, target) == expected
    if relation == "add-remove":
        assert score(np.delete(X, NULL_ROWS, axis=0), np.delete(y, NULL_ROWS)) == expected
        score(X[:0], y[:0])
    score(np.full_like(X, np.nan), y)
    strict = taciturn.private_score(model, X, y, relation=relation, n_public=300, random_state=3)
    assert (strict.value, strict.std) == score(X, y)[:2]
    assert ADMISSIBLE in strict.certificate.assumptions
    assert ADMISSIBLE not in expected[2].assumptions


@pytest.mark.parametrize("metric", ["mean squared error", "mean absolute error", "accuracy", "balanced accuracy"])
def test_scores_of_a_record_against_a_null_record_are_covered(metric):
    model, X, y = fitted("FrankWolfeClassifier" if "accuracy" in metric else "FrankWolfeRegressor")
    data, neighbour = one_null(X, y, 4)
    common = {"estimator": model, "metric": metric, "invalid": "null"}
    replay(taciturn.private_score, common | data, common | neighbour, relation="zero-out").raise_if_any()


def test_scalers_hand_null_records_on():
    X, y = records()
    broken = X.astype(object)
    broken[3, 1], broken[9, 0], broken[11, 2] = "text", np.inf, None
    scaler = taciturn.BoundedScaler(invalid="null").fit(broken)
    mapped = scaler.transform(broken)
    assert np.argwhere(np.isnan(mapped)).tolist() == [[3, 1], [9, 0], [11, 2]]
    assert np.array_equal(np.isnan(scaler.inverse_transform(mapped)), np.isnan(mapped))
    plain = X.copy()
    plain[[3, 9, 11], 0] = np.nan
    model = null_model("HardThresholdRegressor")
    through = make_pipeline(scaler, model).fit(broken, y)
    assert released(through[-1])["coef_"] == released(null_model("HardThresholdRegressor").fit(plain, y))["coef_"]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("invalid", ["raise", "null"])
@pytest.mark.parametrize("name", WITH_TARGET)
def test_no_refusal_tells_the_number_of_records(name, invalid):
    X, y = records(237)
    y = target_for(PROVED[name](), y)
    model = null_model(name, "add-remove").set_params(invalid=invalid)
    cases = [
        (X, y[:-1]),
        (X[:0], y[:0]) if invalid == "raise" else (X, y[:-2]),
        (X[:, :0], y),
        (X, np.column_stack((y, y))),
        (X, y[None]),
        (X[None], y),
        (sp.csr_array(X), y[:-1]),
    ]
    for table, target in cases:
        with pytest.raises(DataError) as caught:
            model.fit(table, target)
        assert not any(number in str(caught.value) for number in ("237", "236", "235", "sample(s)"))


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_refused_score_tells_the_number_of_records(relation):
    model, X, y = fitted("FrankWolfeRegressor")
    for invalid in ("raise", "null"):
        with pytest.raises(DataError, match="different lengths") as caught:
            taciturn.private_score(model, X, y[:-1], relation=relation, n_public=50, invalid=invalid)
        assert not any(number in str(caught.value) for number in ("300", "299"))
