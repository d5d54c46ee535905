"""What fits with standard errors promise besides coverage: shapes, columns, reasons, halves, summaries."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.base import clone

from taciturn import SparseClassifier, SparseRegressor
from taciturn.accounting import Budget, PrivacyFilter
from taciturn.core.errors import ParameterError, WeakBudgetWarning
from taciturn.methods.inference import run as runs
from taciturn.methods.inference import summary as inference_summary
from taciturn.methods.inference.summary import adjusted_p_values

D = 8
BOTH = pytest.mark.parametrize("kind", [SparseRegressor, SparseClassifier])


def data(kind, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, D))
    margins = X @ np.array([0, 0.4, 0, 0, -0.4, 0, 0, 0.3])
    if kind is SparseRegressor:
        return X, np.clip(margins + 0.15 * rng.standard_normal(n), -1, 1)
    return X, (rng.random(n) < 1 / (1 + np.exp(-4 * margins))).astype(int)


def make(kind, **parameters):
    given = {"inference": True, "n_nonzero": 3, "epsilon": 5.0, "random_state": 0} | parameters
    return kind(**given) if kind is SparseRegressor else kind(classes=(0, 1), **given)


@BOTH
def test_shapes_and_numbers(kind):
    model = make(kind).fit(*data(kind))
    inside = model.support_
    assert inside.sum() == 3
    assert model.coef_std_error_.shape == model.coef_p_value_.shape == (D,)
    assert model.coef_interval_.shape == (D, 2)
    for values in (model.coef_std_error_, model.coef_p_value_, *model.coef_interval_.T):
        np.testing.assert_array_equal(np.isnan(values), ~inside)
    coefficients, errors = model.coef_.ravel()[inside], model.coef_std_error_[inside]
    reach = norm.ppf(0.975) * errors
    np.testing.assert_allclose(model.coef_interval_[inside].T, [coefficients - reach, coefficients + reach])
    np.testing.assert_allclose(model.coef_p_value_[inside], 2 * norm.sf(np.abs(coefficients) / errors))
    found = model.inference_
    np.testing.assert_allclose(np.hypot(found.sampling, found.privacy), found.std_error)
    assert (found.privacy > 0).all()
    assert found.n_records == 2000
    assert found.split


@BOTH
def test_a_higher_level_is_a_wider_interval_of_the_same_fit(kind):
    X, y = data(kind)
    narrow, wide = (make(kind, confidence_level=level).fit(X, y) for level in (0.8, 0.99))
    np.testing.assert_array_equal(narrow.coef_, wide.coef_)
    ratio = np.ptp(wide.coef_interval_, axis=1) / np.ptp(narrow.coef_interval_, axis=1)
    np.testing.assert_allclose(ratio[narrow.support_], norm.ppf(0.995) / norm.ppf(0.9))


@BOTH
def test_predictions_come_from_the_estimate_with_the_intervals(kind):
    X, y = data(kind)
    model = make(kind).fit(X, y)
    if kind is SparseRegressor:
        expected = np.clip(X @ model.coef_ + model.intercept_, -1, 1)
        np.testing.assert_allclose(model.predict(X), expected)
    else:
        odds = np.exp(X @ model.coef_[0] + model.intercept_[0])
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], odds / (1 + odds))


def test_units_of_the_user():
    X, y = data(SparseRegressor)
    mapped = make(SparseRegressor).fit(X, y)
    user = make(SparseRegressor, x_bound=5.0, y_bounds=(10.0, 30.0)).fit(5 * X, 20 + 10 * y)
    np.testing.assert_allclose(user.coef_, 2 * mapped.coef_)
    np.testing.assert_allclose(user.coef_std_error_, 2 * mapped.coef_std_error_)
    assert user.inference_.std_error[0, -1] == pytest.approx(10 * mapped.inference_.std_error[0, -1])


# ------------------------------------------------------------------ columns


@BOTH
def test_columns_by_place_and_by_name(kind):
    X, y = data(kind)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    by_place = make(kind, columns=[4, 1]).fit(X, y)
    by_name = make(kind, columns=["c1", "c4"]).fit(frame, y)
    assert np.flatnonzero(by_place.support_).tolist() == [1, 4]
    np.testing.assert_array_equal(by_place.coef_, by_name.coef_)
    np.testing.assert_array_equal(by_place.coef_interval_, by_name.coef_interval_)
    assert not by_place.inference_.split
    assert by_place.inference_.n_records == 4000
    assert inference_summary.FIXED_COLUMNS in by_place.certificate_.assumptions
    assert by_place.certificate_.public["columns"] == [1, 4]
    assert "c4" in str(by_name.summary())


@BOTH
def test_fixed_columns_without_inference(kind):
    X, y = data(kind)
    model = make(kind, columns=[4, 1], inference=False).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [1, 4]
    assert not hasattr(model, "coef_interval_")
    # About the fit to these columns alone, whose streams and bounds are others.
    alone = make(kind, n_nonzero="all", inference=False).fit(X[:, [1, 4]], y)
    np.testing.assert_allclose(model.coef_.ravel()[[1, 4]], alone.coef_.ravel(), rtol=0.2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "at least one column"),
        ([1, 1], "each of them once"),
        ([D], f"a place from 0 to {D - 1}"),
        ([-1], f"a place from 0 to {D - 1}"),
        ([True], f"a place from 0 to {D - 1}"),
        ([1.5], f"a place from 0 to {D - 1}"),
        (["age"], "a name that X has"),
        ("age", "a list of places or names"),
        (3, "a list of places or names"),
    ],
)
def test_columns_that_are_none(columns, message):
    X, y = data(SparseRegressor, n=50)
    with pytest.raises(ParameterError, match=re.escape(message)):
        make(SparseRegressor, columns=columns).fit(X, y)


def test_other_parameters_are_checked():
    X, y = data(SparseRegressor, n=50)
    with pytest.raises(ParameterError, match="confidence_level"):
        make(SparseRegressor, confidence_level=1.0).fit(X, y)
    with pytest.raises(ParameterError, match="inference"):
        make(SparseRegressor, inference="yes").fit(X, y)
    three = np.arange(50) % 3
    with pytest.raises(ParameterError, match="inference=True: expected two classes"):
        SparseClassifier(inference=True, classes=(0, 1, 2)).fit(X, three)
    with pytest.raises(ParameterError, match="at most 500 columns"):
        make(SparseRegressor, n_nonzero="all").fit(np.zeros((20, 501)), np.zeros(20))


# ------------------------------------------------------------------ no standard errors


@BOTH
def test_no_interval_says_why_and_what_would_give_one(kind):
    X, y = data(kind, n=700)
    model = make(kind, epsilon=0.5, n_nonzero=6).fit(X, y)
    assert np.isnan(model.coef_std_error_).all()
    assert np.isnan(model.coef_interval_).all()
    assert np.isnan(model.coef_p_value_).all()
    reason = model.inference_.reason
    records, epsilon = re.search(r"(?:about|more than) ([\d,]+) records, or epsilon ([\d.]+),", reason).groups()
    # Noise falls as the Gaussian parameter grows, and information grows with the number of records.
    factor = int(records.replace(",", "")) / 700
    ratio = PrivacyFilter(Budget(float(epsilon), 1e-6)).mu / PrivacyFilter(Budget(0.5, 1e-6)).mu
    assert factor == pytest.approx(ratio, rel=0.15)
    assert factor > 1.5
    printed = " ".join(str(model.summary()).split())
    assert reason in printed
    assert "half that chose the columns" in printed


@BOTH
def test_collinear_columns_have_no_standard_errors_without_noise(kind):
    X, y = data(kind)
    X[:, 0] = X[:, 1]
    model = make(kind, epsilon=np.inf, columns=[0, 1]).fit(X, y)
    assert "collinear" in model.inference_.reason
    assert np.isnan(model.coef_std_error_).all()


def test_separable_classes_have_no_standard_errors_without_noise():
    X, _ = data(SparseClassifier)
    model = make(SparseClassifier, epsilon=np.inf, columns=[1]).fit(X, (X[:, 1] > 0).astype(int))
    assert "separate the classes" in model.inference_.reason


def test_an_intercept_alone():
    X, y = data(SparseRegressor, n=2000)
    # Too few records for any column: the mean of the target has an error too, if it is clear.
    with pytest.warns(WeakBudgetWarning, match="expected 8,906 records"):
        model = make(SparseRegressor, epsilon=0.03).fit(X, y)
    assert not model.support_.any()
    assert model.certificate_.public["method"] == "constant"
    assert model.inference_.columns.size == 0
    assert model.coef_interval_.shape == (D, 2)


def test_no_intercept_has_no_error():
    X, y = data(SparseRegressor)
    model = make(SparseRegressor, fit_intercept=False).fit(X, y)
    assert np.isnan(model.inference_.std_error[0, -1])
    assert np.isfinite(model.inference_.std_error[0, :-1]).all()
    assert model.intercept_ == 0.0


# ------------------------------------------------------------------ halves and certificates


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@BOTH
def test_each_half_spends_the_whole_budget_and_the_certificate_states_it_once(kind, relation):
    X, y = data(kind)
    model = make(kind, relation=relation, n_public=4000 if relation == "add-remove" else None).fit(X, y)
    certificate = model.certificate_
    assert certificate.epsilon == 5.0
    assert certificate.status == "proved"
    mu = PrivacyFilter(Budget(5.0, 1e-6)).mu
    for half in (1, 2):
        lines = [line for line in certificate.events if line.half == half]
        price = sum(line.count / line.event.noise_multiplier**2 for line in lines)
        assert price == pytest.approx(mu**2, rel=1e-5)
    assert "first half" in str(certificate)
    fixed = make(kind, relation=relation, n_public=4000 if relation == "add-remove" else None, columns=[1]).fit(X, y)
    assert {line.half for line in fixed.certificate_.events} == {None}
    assert fixed.certificate_.epsilon == 5.0


@pytest.mark.parametrize("relation", ["zero-out", "add-remove"])
def test_halves_are_drawn_at_random_and_do_not_depend_on_the_data(monkeypatch, relation):
    seen = []

    def spy(plan, source, stream, original=runs._halves):
        halves = original(plan, source, stream)
        seen.append([half.records.slots for half in halves])
        return halves

    monkeypatch.setattr(runs, "_halves", spy)
    X, y = data(SparseRegressor, n=1000)
    n_public = 1000 if relation == "add-remove" else None
    for seed, target in ((0, y), (0, -y), (1, y)):
        make(SparseRegressor, relation=relation, n_public=n_public, random_state=seed).fit(X, target)
    for first, second in seen:
        np.testing.assert_array_equal(np.sort(np.concatenate((first, second))), np.arange(1000))
        assert first.size == 500 or (relation == "add-remove" and 400 < first.size < 600)
        # Not by position: neither half lies in one part of the table.
        assert 150 < np.sum(first < 500) < 350
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    assert not np.array_equal(seen[0][0], seen[2][0])


@BOTH
def test_dense_and_sparse_tables_give_the_same_bits(kind):
    X, y = data(kind)
    X[np.abs(X) < 0.3] = 0.0
    dense, sparse = make(kind).fit(X, y), make(kind).fit(sp.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.coef_, sparse.coef_)
    np.testing.assert_array_equal(dense.coef_interval_, sparse.coef_interval_)


@BOTH
def test_a_fit_without_inference_leaves_no_errors_of_an_earlier_one(kind):
    X, y = data(kind)
    model = make(kind).fit(X, y)
    model.set_params(inference=False).fit(X, y)
    for name in ("coef_std_error_", "coef_interval_", "coef_p_value_", "inference_"):
        assert not hasattr(model, name)
    with pytest.raises(ParameterError, match="inference=False: expected True for a summary"):
        model.summary()
    np.testing.assert_array_equal(model.coef_, clone(model).fit(X, y).coef_)


# ------------------------------------------------------------------ summaries


def test_adjusted_p_values_are_those_of_benjamini_and_hochberg():
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 40):
        values = rng.uniform(0, 1, size) ** 3
        np.testing.assert_allclose(adjusted_p_values(values), multipletests(values, method="fdr_bh")[1])
    np.testing.assert_array_equal(adjusted_p_values(np.array([np.nan, 0.02])), [np.nan, 0.02])


@BOTH
def test_a_summary_has_what_was_fitted(kind):
    X, y = data(kind)
    model = make(kind).fit(pd.DataFrame(X, columns=[f"c{j}" for j in range(D)]), y)
    summary = model.summary()
    frame = summary.to_frame()
    columns = model.inference_.columns
    assert frame.index.tolist() == [*(f"c{j}" for j in columns), "(intercept)"]
    np.testing.assert_array_equal(frame["coefficient"][:-1], model.coef_.ravel()[columns])
    np.testing.assert_array_equal(frame[["lower", "upper"]][:-1], model.coef_interval_[columns])
    np.testing.assert_allclose(frame["z"], frame["coefficient"] / frame["std error"])
    assert ("odds ratio" in frame) == (kind is SparseClassifier)
    if kind is SparseClassifier:
        np.testing.assert_allclose(frame[["odds ratio", "odds lower"]], np.exp(frame[["coefficient", "lower"]]))
    text = str(summary)
    for word in ("epsilon 5", "zero-out", "2,000 for the coefficients", "c1", "sampling", "privacy", "population's"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 110
    assert summary._repr_html_().count("<tr>") == len(summary.facts) + 1 + len(frame)


def test_effects_per_unit():
    X, y = data(SparseClassifier)
    model = make(SparseClassifier).fit(X, y)
    plain, scaled = model.summary().to_frame(), model.summary(units=np.full(D, 4.0)).to_frame()
    np.testing.assert_allclose(scaled["effect per unit"][:-1], plain["coefficient"][:-1] / 4)
    np.testing.assert_allclose(scaled["odds ratio"][:-1], plain["odds ratio"][:-1] ** 0.25)
    assert scaled["effect per unit"].iloc[-1] == plain["coefficient"].iloc[-1]


@pytest.mark.parametrize("units", [np.ones(D - 1), np.ones(D + 1), np.zeros(D), -np.ones(D), np.full(D, np.nan), 2.0])
def test_units_are_checked(units):
    X, y = data(SparseRegressor, n=500)
    model = make(SparseRegressor).fit(X, y)
    with pytest.raises(ParameterError, match="units=.*: expected 8 positive finite numbers"):
        model.summary(units=units)


def test_names_are_escaped():
    X, y = data(SparseRegressor)
    names = ["<script>", *(f"c{j}" for j in range(1, D))]
    model = make(SparseRegressor, columns=[0, 1]).fit(pd.DataFrame(X, columns=names), y)
    assert "<script>" not in model.summary()._repr_html_()
