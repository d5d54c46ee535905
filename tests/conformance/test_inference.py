"""What fits with standard errors promise besides coverage: shapes, columns, reasons, halves, summaries."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone

from taciturn import Account, SparseClassifier, SparseRegressor
from taciturn.accounting import Budget, PrivacyFilter
from taciturn.core.errors import ParameterError
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
    found = model.inference_
    for values in (found.std_error, found.sampling, found.privacy, found.degrees, found.allowance):
        assert values.shape == (1, 4)
    assert found.columns.tolist() == np.flatnonzero(inside).tolist()
    coefficients, errors = model.coef_.ravel()[inside], model.coef_std_error_[inside]
    # Errors are estimated too: the quantiles are Student's, and wider than normal ones.
    degrees = found.degrees[0, :-1]
    assert ((degrees > 3) & (degrees < 1000)).all()
    reach = student.ppf(0.975, degrees) * errors + found.allowance[0, :-1]
    assert (reach > 1.005 * norm.ppf(0.975) * errors).all()
    np.testing.assert_allclose(model.coef_interval_[inside].T, [coefficients - reach, coefficients + reach])
    beyond = np.maximum(np.abs(coefficients) - found.allowance[0, :-1], 0)
    np.testing.assert_allclose(model.coef_p_value_[inside], 2 * student.sf(beyond / errors, degrees))
    np.testing.assert_allclose(np.hypot(found.sampling, found.privacy), found.std_error)
    assert (found.privacy[0, :-1] > 0).all()
    # Residuals are clipped, and a skewed tail would move the intercept of a regression; labels have no tail.
    assert found.estimable[0].tolist() == [True, True, True, kind is SparseClassifier]
    reach = student.ppf(0.975, found.degrees[0, -1]) * model.intercept_std_error_ + found.allowance[0, -1]
    middle = np.atleast_1d(model.intercept_)[0]
    np.testing.assert_allclose(model.intercept_interval_, [middle - reach, middle + reach])
    assert np.isnan(model.intercept_std_error_) == (kind is SparseRegressor)
    assert found.confounded == ((), (), (), ())
    assert found.reason is None
    assert found.n_records == 2000
    assert found.split


@BOTH
def test_a_higher_level_is_a_wider_interval_of_the_same_fit(kind):
    X, y = data(kind)
    narrow, wide = (make(kind, confidence_level=level).fit(X, y) for level in (0.8, 0.99))
    np.testing.assert_array_equal(narrow.coef_, wide.coef_)
    np.testing.assert_array_equal(narrow.coef_std_error_, wide.coef_std_error_)
    ratio = np.ptp(wide.coef_interval_, axis=1) / np.ptp(narrow.coef_interval_, axis=1)
    degrees = narrow.inference_.degrees[0, :-1]
    assert not narrow.inference_.allowance.any()
    np.testing.assert_allclose(ratio[narrow.support_], student.ppf(0.995, degrees) / student.ppf(0.9, degrees))


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
    np.testing.assert_array_equal(user.inference_.degrees, mapped.inference_.degrees)
    # The intercept has an error without noise alone.
    mapped = make(SparseRegressor, epsilon=np.inf).fit(X, y)
    user = make(SparseRegressor, epsilon=np.inf, x_bound=5.0, y_bounds=(10.0, 30.0)).fit(5 * X, 20 + 10 * y)
    np.testing.assert_allclose(user.coef_std_error_, 2 * mapped.coef_std_error_)
    assert user.inference_.std_error[0, -1] == pytest.approx(10 * mapped.inference_.std_error[0, -1])


def test_allowances_have_the_units_of_the_coefficients():
    X, y = data(SparseRegressor, n=20_000)
    X[:, 0] = X[:, 1]
    mapped = make(SparseRegressor, columns=[0, 1, 4]).fit(X, y)
    user = make(SparseRegressor, columns=[0, 1, 4], x_bound=5.0, y_bounds=(10.0, 30.0)).fit(5 * X, 20 + 10 * y)
    assert mapped.inference_.allowance[0, 2] > 0
    np.testing.assert_allclose(user.inference_.allowance[0, :-1], 2 * mapped.inference_.allowance[0, :-1])
    np.testing.assert_allclose(np.ptp(user.coef_interval_, axis=1), 2 * np.ptp(mapped.coef_interval_, axis=1))


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
    with pytest.raises(ParameterError, match="at most 500 columns"):
        make(SparseRegressor, n_nonzero="all").fit(np.zeros((20, 501)), np.zeros(20))


# ------------------------------------------------------------------ no standard errors


def records_needed(error):
    """The number of records that a refusal names."""
    return int(
        re.search(r"about ([\d,]+) records for 7 coefficients at this budget", str(error.value))[1].replace(",", "")
    )


@BOTH
@pytest.mark.parametrize("columns", [None, (0, 1, 3, 4, 6, 7)])
def test_what_public_facts_doom_is_refused_before_anything_is_spent(kind, columns, tmp_path):
    X, y = data(kind, n=300)
    account = Account.create(f"sqlite:///{tmp_path / 'study.db'}", "a", epsilon=3.0, delta=1e-5, n=300)
    model = make(kind, epsilon=0.5, n_nonzero=6, columns=columns, account=account)
    with pytest.raises(ParameterError, match="inference=True.*nothing was spent") as refused:
        model.fit(X, y)
    assert not account.history()
    assert not hasattr(model, "coef_")
    # Other records of the same number are refused in the same words.
    with pytest.raises(ParameterError, match=re.escape(str(refused.value))):
        model.fit(np.zeros_like(X), y[::-1].copy())
    # As many records as it names are enough, and fewer are not.
    n_needed = records_needed(refused)
    assert n_needed > 600
    enough, (X, y) = clone(model).set_params(account=None), data(kind, n=n_needed)
    assert enough.fit(X, y).inference_.n_records == (n_needed // 2 if columns is None else n_needed)
    fewer = int(0.85 * n_needed)
    with pytest.raises(ParameterError, match="7 coefficients at this budget"):
        enough.fit(X[:fewer], y[:fewer])


@BOTH
def test_more_epsilon_or_fewer_columns_need_fewer_records(kind):
    X, y = data(kind, n=100)
    needed = []
    for epsilon in (0.2, 0.4):
        with pytest.raises(ParameterError) as refused:
            make(kind, epsilon=epsilon, n_nonzero=6).fit(X, y)
        needed.append(records_needed(refused))
    # What counts is the number of records times the Gaussian parameter.
    ratio = PrivacyFilter(Budget(0.4, 1e-6)).mu / PrivacyFilter(Budget(0.2, 1e-6)).mu
    assert needed[0] / needed[1] == pytest.approx(ratio, rel=0.05)
    with pytest.raises(ParameterError, match="for 3 coefficients") as refused:
        make(kind, epsilon=0.4, n_nonzero=2).fit(X, y)
    assert int(re.search(r"about ([\d,]+) records", str(refused.value))[1].replace(",", "")) < needed[1] / 2


@BOTH
def test_without_noise_collinear_columns_leave_the_others_their_errors(kind):
    X, y = data(kind)
    X[:, 0] = X[:, 1]
    model = make(kind, epsilon=np.inf, columns=[0, 1, 4]).fit(X, y)
    found = model.inference_
    assert found.reason is None
    assert found.estimable[0].tolist() == [False, False, True, True]
    assert found.confounded == ((1,), (0,), (), ())
    # Of all that fit equally well the shortest; the others are those of a fit with one of the two.
    alone = make(kind, epsilon=np.inf, columns=[1, 4]).fit(X, y)
    coefficients, expected = model.coef_.ravel(), alone.coef_.ravel()
    np.testing.assert_allclose(coefficients[[0, 1]], expected[1] / 2, atol=1e-6)
    np.testing.assert_allclose(coefficients[4], expected[4], atol=1e-6)
    np.testing.assert_allclose(found.std_error[0, 2:], alone.inference_.std_error[0, 1:], atol=1e-6)
    assert not found.allowance.any()
    printed = " ".join(str(model.summary()).split())
    assert "x0 and x1 are not estimable at this budget: they are confounded with one another." in printed


@BOTH
def test_collinear_columns_are_named_and_the_others_keep_their_intervals(kind):
    X, y = data(kind, n=20_000)
    X[:, 0] = X[:, 1]
    model = make(kind, columns=[0, 1, 4, 7], epsilon=3.0).fit(X, y)
    found = model.inference_
    assert found.estimable[0].tolist() == [False, False, True, True, kind is SparseClassifier]
    assert found.confounded[:2] == ((1,), (0,))
    assert found.confounded[2:4] == ((), ())
    frame = model.summary().to_frame()
    notes = frame.pop("note")
    assert notes[["x0", "x1"]].tolist() == [f"not estimable: confounded with {name}" for name in ("x1", "x0")]
    assert notes[["x4", "x7"]].tolist() == ["", ""]
    assert notes["(intercept)"] == ("no interval" if kind is SparseRegressor else "")
    assert frame.loc[["x0", "x1"]].isna().all(axis=None)
    assert frame.loc[["x4", "x7"]].notna().all(axis=None)


def test_separable_classes_have_no_standard_errors_without_noise():
    X, _ = data(SparseClassifier)
    model = make(SparseClassifier, epsilon=np.inf, columns=[1]).fit(X, (X[:, 1] > 0).astype(int))
    assert "separate the classes" in model.inference_.reason
    assert np.isnan(model.coef_std_error_).all()


def test_labels_that_are_certain_have_no_intervals_and_a_reason():
    X, _ = data(SparseClassifier)
    model = make(SparseClassifier, columns=[1]).fit(X, (X[:, 1] > 0).astype(int))
    assert np.isnan(model.coef_std_error_).all()
    assert np.isnan(model.coef_p_value_).all()
    assert model.inference_.reason.startswith("the last step towards the estimate was long")
    assert model.inference_.reason in " ".join(str(model.summary()).split())


@BOTH
def test_columns_that_say_nothing_have_no_intervals(kind):
    X, y = data(kind)
    model = make(kind, columns=[0, 1], fit_intercept=False).fit(np.zeros_like(X), y)
    assert np.isnan(model.coef_std_error_).all()
    assert model.inference_.reason.startswith("no direction of the released information matrix of 2 coefficients")


def test_a_model_of_nothing_says_so():
    X, y = data(SparseRegressor)
    model = make(SparseRegressor, n_nonzero="auto", epsilon=1.0, fit_intercept=False).fit(X, np.zeros_like(y))
    assert not model.support_.any()
    assert model.inference_.reason == "no column was chosen and there is no intercept."
    assert model.inference_.std_error.shape == (1, 1)
    assert np.isnan(model.inference_.std_error).all()
    assert model.certificate_.epsilon == 1.0


def test_an_intercept_alone_has_no_interval_in_a_regression():
    X, y = data(SparseRegressor)
    y = np.random.default_rng(0).permutation(y)
    model = make(SparseRegressor, n_nonzero="auto", epsilon=1.0).fit(X, y)
    assert not model.support_.any()
    assert model.inference_.columns.size == 0
    assert model.coef_interval_.shape == (D, 2)
    assert np.isnan(model.inference_.std_error).all()
    assert abs(model.intercept_ - y.mean()) < 0.05


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
    for name in inference_summary.INFERRED:
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
    assert max(map(len, text.splitlines())) <= 80
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


def test_a_check_of_a_table_counts_persons_and_not_rows():
    X, y = data(SparseRegressor, n=2000)
    model = make(SparseRegressor, columns=[1, 4], epsilon=1.0)
    model.check_table(X, y)
    with pytest.raises(ParameterError, match="inference=True: expected about"):
        model.check_table(X, y, np.arange(2000) // 100)
    with pytest.raises(ParameterError, match="inference=True: expected about"):
        model.fit(X, y, persons=np.arange(2000) // 100)
