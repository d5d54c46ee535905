"""Standard errors in model.json: bit for bit and back, in the units of the table, and every forgery one sentence."""

import copy
import dataclasses
import json
import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import taciturn
from taciturn import load
from taciturn.app.model_file import Model
from taciturn.core.errors import CertificateError, DataError, ParameterError, TaciturnError
from taciturn.methods.inference.summary import INFERRED, Inference, restore_inference
from taciturn.tables import Column, TableBounds, TableEncoder, Target

N = 6000
NAN = math.nan
RNG, RNG_OF_REASONS = np.random.default_rng(0), np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(20, 90, N),
        "smoker": RNG.random(N) < 0.4,
        "region": RNG.choice(["north", "south", "west"], N),
        "dose": RNG.uniform(-2, 3, N),
    }
)
COLUMNS = {
    "age": Column("number", 0, 110),
    "smoker": Column("boolean"),
    "region": Column("category", categories=("north", "south", "west")),
    "dose": Column("number", -2.5, 3),
}
FEATURES = ["age", "smoker", "region=north", "region=south", "region=west", "dose"]
SCORE = (FRAME["age"] - 55) / 30 + FRAME["smoker"] - FRAME["dose"] / 3 + RNG.normal(size=N)


def fitted(kind="regress", *, certain=False, **parameters):
    """A model; with labels that are certain it has no standard errors."""
    if kind == "regress":
        target, y, estimator = Target("y", -6, 6), SCORE.clip(-6, 6).to_numpy(), taciturn.SparseRegressor
        parameters["y_bounds"] = (-6, 6)
    else:
        target, y = (
            Target("y", classes=("ill", "well")),
            np.where((FRAME["age"] > 55) if certain else SCORE > 0.3, "well", "ill"),
        )
        estimator, parameters["classes"] = taciturn.SparseClassifier, ("ill", "well")
    encoder = TableEncoder(bounds=TableBounds(target, COLUMNS)).fit(FRAME)
    settings = {"epsilon": 4.0, "n_nonzero": 3, "inference": True, "random_state": 3} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", taciturn.WeakBudgetWarning)
        estimator = estimator(**settings).fit(encoder.transform(FRAME), y)
    return Model(encoder.bounds_, estimator, "taciturn fit table.csv --inference")


CASES = {
    "chosen": ("regress", {}),
    "fixed": ("regress", {"columns": [0, 1, 3, 5], "confidence_level": 0.9}),
    "no intercept": ("regress", {"columns": np.array([0, 5]), "fit_intercept": False}),
    "two classes": ("classify", {}),
    "fixed places": ("classify", {"columns": (np.int64(5), 0)}),
    "no errors": ("classify", {"certain": True, "columns": [0, 1, 5]}),
    "collinear": ("regress", {"columns": [0, 2, 3, 4]}),
    "no noise": ("regress", {"epsilon": math.inf}),
}


@pytest.fixture(scope="module")
def models():
    return {name: fitted(kind, **parameters) for name, (kind, parameters) in CASES.items()}


def same(first, second):
    """Equal to the last bit, NaN included."""
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()
    both_missing = first != first and second != second
    return type(first) is type(second) and (first == second or both_missing)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_standard_errors_come_back_bit_for_bit(models, tmp_path, name, stored):
    model = models[name]
    if stored == "sparse":
        model = Model(model.bounds, copy.deepcopy(model.estimator).sparsify(), model.command)
    path = tmp_path / "model.json"
    path.write_text(model.to_json(), encoding="utf-8")
    before, after = model.estimator, load(path)[-1]
    for field in dataclasses.fields(Inference):
        assert same(getattr(before.inference_, field.name), getattr(after.inference_, field.name)), field.name
    for attribute in set(INFERRED) - {"inference_"}:
        assert same(getattr(before, attribute), getattr(after, attribute)), attribute
    read = Model.from_json(model.to_json())
    assert read.to_json() == model.to_json()
    assert str(read.summary()) == str(model.summary())
    assert "NaN" not in model.to_json()


def test_the_cases_are_what_they_are_called(models):
    found = {name: model.estimator.inference_ for name, model in models.items()}
    assert found["chosen"].split
    assert not found["fixed"].split
    assert found["fixed"].confidence_level == 0.9
    assert found["fixed"].columns.tolist() == [0, 1, 3, 5]
    assert np.isnan(found["no intercept"].std_error[0, -1])
    assert np.isfinite(found["no intercept"].std_error[0, :-1]).all()
    # The intercept of a regression has none, unless there is no noise.
    assert found["fixed"].estimable[0].tolist() == [True, True, True, True, False]
    assert found["two classes"].estimable.all()
    assert np.isfinite(found["fixed"].degrees[0, :-1]).all()
    assert found["collinear"].confounded == ((), (2, 3, 4), (1, 3, 4), (1, 2, 4), (1, 2, 3))
    assert found["collinear"].allowance[0, 0] > 0
    assert found["no errors"].reason is not None
    assert np.isnan(found["no errors"].std_error).all()
    assert (found["no noise"].privacy == 0).all()


def test_a_model_without_inference_says_null_and_has_no_summary():
    model = fitted(inference=False)
    assert json.loads(model.to_json())["inference"] is None
    read = Model.from_json(model.to_json())
    assert not hasattr(read.estimator, "inference_")
    assert not hasattr(read.estimator, "coef_interval_")
    with pytest.raises(ParameterError, match="^inference=False: expected True for a summary; fit again"):
        read.summary()


def test_files_without_the_key_or_its_parameters_are_refused():
    content = json.loads(fitted(inference=False).to_json())
    with pytest.raises(DataError, match="found no 'inference'"):
        Model.from_json(json.dumps({name: value for name, value in content.items() if name != "inference"}))
    for parameter in ("columns", "inference", "confidence_level"):
        fewer = {name: value for name, value in content["parameters"].items() if name != parameter}
        with pytest.raises(DataError, match="parameters that the estimator does not have"):
            Model.from_json(json.dumps(content | {"parameters": fewer}))


# ------------------------------------------------------------------ the summary in the units of the table

HALVES = {"age": 55.0, "smoker": 1.0, "region=north": 1.0, "region=south": 1.0, "region=west": 1.0, "dose": 2.75}


@pytest.mark.parametrize("name", ["chosen", "fixed", "two classes"])
def test_the_summary_names_features_and_counts_in_units_of_columns(models, name):
    model = models[name]
    assert model.bounds.feature_units == [HALVES[feature] for feature in FEATURES]
    frame = model.summary().to_frame()
    found = model.estimator.inference_
    shown = [FEATURES[j] for j in found.columns]
    assert frame.index.tolist() == [*shown, "(intercept)"]
    quantiles = student.ppf(0.5 + found.confidence_level / 2, found.degrees[0])
    coefficients = np.ravel(model.estimator.coef_)
    for z, degrees, place, feature in zip(quantiles, found.degrees[0], found.columns, shown, strict=False):
        row, half, coefficient = frame.loc[feature], HALVES[feature], coefficients[place]
        error = math.sqrt(row["sampling"] ** 2 + row["privacy"] ** 2)
        assert row["coefficient"] == coefficient
        assert row["std error"] == pytest.approx(error, rel=1e-12)
        assert row["p"] == pytest.approx(2 * student.sf(abs(coefficient) / error, degrees), rel=1e-9)
        ends = (coefficient - z * error, coefficient + z * error)
        assert (row["lower"], row["upper"]) == pytest.approx(ends)
        assert row["effect per unit"] == pytest.approx(coefficient / half)
        assert (row["lower per unit"], row["upper per unit"]) == pytest.approx([end / half for end in ends])
        if name == "two classes":
            assert row["odds ratio"] == pytest.approx(math.exp(coefficient / half))
            assert row["odds lower"] == pytest.approx(math.exp(ends[0] / half))
            assert row["odds upper"] == pytest.approx(math.exp(ends[1] / half))


def test_an_interval_per_year_holds_the_slope_of_the_data(models):
    row = models["fixed"].summary().to_frame().loc["age"]
    # The data have 1 / 30 per year; with the wrong unit it would be off by a factor of 55.
    assert row["lower per unit"] - 0.002 < 1 / 30 < row["upper per unit"] + 0.002


def test_other_classes_have_no_summary():
    encoder = TableEncoder(bounds=TableBounds(Target("y", -6, 6), COLUMNS)).fit(FRAME)
    other = taciturn.FrankWolfeRegressor(y_bounds=(-6, 6), n_steps=5, random_state=0)
    other.fit(encoder.transform(FRAME), SCORE.clip(-6, 6))
    with pytest.raises(ParameterError, match="^estimator='FrankWolfeRegressor': expected SparseRegressor or Sparse"):
        Model(encoder.bounds_, other, "").summary()


def test_all_categories_of_a_column_are_told(models):
    note = "The model has all categories of region, which are collinear"
    collinear = models["collinear"]
    assert collinear.estimator.inference_.reason is None
    assert collinear.inference_notes[-1].startswith(note)
    assert collinear.inference_notes[:-1] == collinear.summary().notes
    # The other columns keep their rows, and those of the categories are empty.
    frame = collinear.summary().to_frame()
    assert frame.loc["age"].notna().all()
    assert frame.drop(columns="note").iloc[1:].isna().all(axis=None)
    named = "region=north, region=south, region=west and the intercept are not estimable at this budget"
    assert named in " ".join(str(collinear.summary()).split())
    assert models["fixed"].inference_notes == models["fixed"].summary().notes
    assert fitted(columns=[2, 3, 4], inference=False).inference_notes == ()


# ------------------------------------------------------------------ forgeries

FORGERIES = [
    *[("fixed", [key], KeyError, "other keys") for key in ("columns", "std_error", "split", "reason")],
    ("fixed", ["covariance"], [[1.0]], "other keys"),
    *[("fixed", [], value, "other keys") for value in ([], "x", 3, True)],
    *[("fixed", ["columns"], value, "") for value in (None, "0135", {}, [0, 1, 3], [0, 1, 3, 5, 5], 4)],
    ("fixed", ["columns"], [0, 1, 5, 3], "not in increasing order"),
    ("fixed", ["columns"], [0, 1, 1, 5], "not in increasing order"),
    ("fixed", ["columns"], [0, 1, 2, 5], "other features than those with coefficients"),
    ("fixed", ["columns"], [0, 1, 3, 6], "does not have"),
    ("fixed", ["columns"], [-1, 1, 3, 5], "does not have"),
    ("fixed", ["columns"], [0, True, 3, 5], "does not have"),
    ("fixed", ["columns"], [0.0, 1, 3, 5], "does not have"),
    *[("fixed", [name, 0, 0], -0.1, "negative or not finite") for name in ("std_error", "sampling", "privacy")],
    ("fixed", ["std_error", 0, 0], 10**400, "values of other types"),
    ("fixed", ["std_error", 0, 0], "0.1", "numbers or nulls"),
    ("fixed", ["std_error", 0, 0], True, "numbers or nulls"),
    ("fixed", ["std_error", 0, 0], [0.1], "numbers or nulls"),
    ("fixed", ["std_error"], [0.1], "numbers or nulls"),
    ("fixed", ["std_error"], [[0.1]], "numbers or nulls"),
    ("fixed", ["std_error"], [[0.1] * 5] * 2, "numbers or nulls"),
    ("fixed", ["std_error"], None, "numbers or nulls"),
    ("fixed", ["privacy"], {}, "numbers or nulls"),
    ("fixed", ["std_error", 0, 0], 0.0, "do not add up"),
    ("fixed", ["sampling", 0, 1], 0.0, "do not add up"),
    ("fixed", ["privacy", 0, -2], 7.0, "do not add up"),
    ("fixed", ["privacy", 0, -1], 7.0, "without their parts"),
    ("fixed", ["privacy", 0, 1], None, "without their parts"),
    ("fixed", ["std_error", 0, 1], None, "without their parts"),
    ("fixed", ["degrees", 0, 0], 0.0, "degrees of freedom below one"),
    ("fixed", ["degrees", 0, 0], -3.0, "negative or not finite"),
    ("fixed", ["degrees", 0, 0], "inf", "numbers or nulls"),
    ("fixed", ["degrees", 0, 0], 0.99, "degrees of freedom below one"),
    ("fixed", ["degrees"], [], "numbers or nulls"),
    ("no intercept", ["degrees", 0, -1], 5.0, "without a standard error"),
    ("fixed", ["allowance", 0, 0], -0.1, "negative or not finite"),
    ("fixed", ["allowance", 0, 0], None, "without an allowance"),
    ("fixed", ["allowance", 0, 0], True, "numbers or nulls"),
    ("no intercept", ["allowance", 0, -1], 0.1, "an allowance without one"),
    ("fixed", ["confounded"], None, "5 lists of other coefficients"),
    ("fixed", ["confounded"], [[]] * 4, "5 lists of other coefficients"),
    ("fixed", ["confounded"], [0] * 5, "5 lists of other coefficients"),
    ("no errors", ["confounded", 0], list(range(1000)), "lists of other coefficients"),
    *[("no errors", ["confounded", 0], [place], "no other coefficient") for place in (0, 4, -1, 1.0, "1", True, None)],
    ("no errors", ["confounded", 0], [1, 1], "confounded twice"),
    ("fixed", ["confounded", 0], [1], "in spite of a standard error"),
    *[("fixed", ["confidence_level"], v, "confidence level") for v in (1.0, 0.49, "0.9", None, True, [0.9])],
    *[("fixed", ["n_records"], value, "number of records") for value in (-1, 1.5, "5", None, True)],
    *[("fixed", ["split"], value, "neither true nor false") for value in (0, None, "no")],
    ("fixed", ["split"], True, "does not state so"),
    ("chosen", ["split"], False, "does not state so"),
    *[("fixed", ["reason"], value, "no sentence") for value in (3, "", "x" * 2000, [])],
    ("fixed", ["reason"], "there are none.", "a reason why there are none, or neither"),
    ("no errors", ["reason"], None, "a reason why there are none, or neither"),
    ("fixed", [], None, "a fit with standard errors, and a model without"),
]  # fmt: skip


def forged(model, path, value):
    content = json.loads(model.to_json())
    place, path = content, ["inference", *path]
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(("name", "path", "value", "message"), FORGERIES, ids=lambda part: str(part)[:30])
def test_a_forgery_is_one_sentence(models, name, path, value, message):
    with pytest.raises(TaciturnError, match=f"^model: expected a .*{message}") as caught:
        Model.from_json(forged(models[name], path, value))
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 300


def test_numbers_that_json_does_not_have_are_refused(models):
    for constant in ("NaN", "Infinity", "1e400"):
        text = forged(models["fixed"], ["std_error", 0, 0], "HERE").replace('"HERE"', constant)
        with pytest.raises(TaciturnError, match="^model: expected "):
            Model.from_json(text)


def test_intervals_that_overflow_are_refused(models):
    content = json.loads(models["fixed"].to_json())
    for name, value in (("std_error", 1.7e308), ("sampling", 1.7e308), ("privacy", 0.0)):
        content["inference"][name][0][0] = value
    with pytest.raises(DataError, match="intervals without ends"):
        Model.from_json(json.dumps(content))


def test_rounding_is_no_forgery(models):
    model = models["fixed"]
    error = float(model.estimator.inference_.std_error[0, 0])
    near = forged(model, ["std_error", 0, 0], float(np.nextafter(error, 1.0)))
    assert Model.from_json(near).estimator.coef_std_error_[0] == np.nextafter(error, 1.0)
    with pytest.raises(TaciturnError, match="do not add up"):
        Model.from_json(forged(model, ["std_error", 0, 0], error * (1 + 1e-9)))


def test_errors_of_classes_that_have_none_are_refused(models):
    errors = json.loads(models["fixed"].to_json())["inference"]
    encoder = TableEncoder(bounds=TableBounds(Target("y", -6, 6), COLUMNS)).fit(FRAME)
    other = taciturn.FrankWolfeRegressor(y_bounds=(-6, 6), n_steps=5, random_state=0)
    other.fit(encoder.transform(FRAME), SCORE.clip(-6, 6))
    content = json.loads(Model(encoder.bounds_, other, "").to_json()) | {"inference": errors}
    with pytest.raises(TaciturnError, match="standard errors of a model that has none"):
        Model.from_json(json.dumps(content))


# ------------------------------------------------------------------ partly estimable models, and several classes


@pytest.fixture(scope="module")
def three():
    """A model of three classes with made-up errors: no coefficient of the reference, and one that is not estimable."""
    encoder = TableEncoder(bounds=TableBounds(Target("y", classes=(0, 1, 2)), COLUMNS)).fit(FRAME)
    many = taciturn.SparseClassifier(classes=(0, 1, 2), epsilon=4.0, columns=[0, 1, 5], random_state=0)
    many.fit(encoder.transform(FRAME), np.digitize(SCORE, (-0.5, 0.5)))
    many.coef_, many.intercept_ = many.coef_ - many.coef_[0], many.intercept_ - many.intercept_[0]
    many.set_params(inference=True)
    sampling = np.array([[0.1, 0.2, 0.3, 0.4], [0.2, NAN, 0.1, 0.3]])
    found = Inference(
        np.array([0, 1, 5]),
        sampling * 5 / 4,
        sampling,
        sampling * 3 / 4,
        np.array([[20.5, math.inf, 8.0, math.inf], [30.0, math.inf, 4.0, math.inf]]),
        np.array([[0.0, 0.01, 0.0, 0.2], [0.0, 0.0, 0.3, 0.0]]),
        ((), (0, 3), (), ()),
        0.9,
        6000,
        split=False,
    )
    restore_inference(many, found)
    many.certificate_ = dataclasses.replace(
        many.certificate_, public=many.certificate_.public | {"inference": "all records"}
    )
    return Model(encoder.bounds_, many, "taciturn fit table.csv --inference")


def test_tables_of_several_classes_come_back_bit_for_bit(three):
    read = Model.from_json(three.to_json())
    for field in dataclasses.fields(Inference):
        before, after = (getattr(each.estimator.inference_, field.name) for each in (three, read))
        assert same(before, after), field.name
    for attribute, shape in {"coef_std_error_": (3, 6), "coef_interval_": (3, 6, 2), "coef_p_value_": (3, 6)}.items():
        before, after = (getattr(each.estimator, attribute) for each in (three, read))
        assert same(before, after), attribute
        assert after.shape == shape
        assert np.isnan(after[0]).all()
        np.testing.assert_array_equal(np.isfinite(after[1:].reshape(2, 6, -1)[..., 0]), [
            [True, True, False, False, False, True], [True, False, False, False, False, True],
        ])  # fmt: skip
    assert read.to_json() == three.to_json()
    assert str(read.summary()) == str(three.summary())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["coefficients", 0, 0], 0.1, "against a class whose coefficients are not zero"),
        (["intercept", 0], 0.1, "against a class whose coefficients are not zero"),
        (["inference", "std_error", 1], KeyError, "2 lists of 4 numbers or nulls"),
        (["inference", "degrees", 1, 1], 5.0, "without a standard error"),
        (["inference", "confounded", 0], [1], "in spite of a standard error"),
        (["inference", "confounded", 1], [1], "no other coefficient"),
    ],
    ids=str,
)
def test_forgeries_of_several_classes(three, path, value, message):
    content = json.loads(three.to_json())
    place = content
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(TaciturnError, match=f"^model: expected a .*{message}"):
        Model.from_json(json.dumps(content))


def test_errors_of_version_2_have_normal_quantiles_and_cannot_state_others(models):
    content = json.loads(models["fixed"].to_json()) | {"version": 2}
    errors = content["inference"]
    old = {key: errors[key][0] if key in ("std_error", "sampling", "privacy") else errors[key] for key in errors}
    before = {key: value for key, value in old.items() if key not in ("degrees", "allowance", "confounded")}
    read = Model.from_json(json.dumps(content | {"inference": before}))
    found = models["fixed"].estimator.inference_
    normal = dataclasses.replace(found, degrees=np.full((1, 5), math.inf), allowance=np.zeros((1, 5)))
    for field in dataclasses.fields(Inference):
        expected = getattr(normal, field.name)
        assert same(getattr(read.estimator.inference_, field.name), expected), field.name
    for key in ("degrees", "allowance", "confounded"):
        with pytest.raises(DataError, match="keys of a later version"):
            Model.from_json(json.dumps(content | {"inference": before | {key: old[key]}}))
    for wrong in (errors, before | {"std_error": None}, before | {"std_error": [[0.1] * 5]}):
        with pytest.raises(DataError, match="^model: expected a complete"):
            Model.from_json(json.dumps(content | {"inference": wrong}))
    with pytest.raises(DataError, match="^model: expected a complete"):
        Model.from_json(json.dumps(content | {"version": 3, "inference": before}))


def test_errors_that_no_certificate_states_are_refused(models):
    content = json.loads(models["fixed"].to_json())
    plain = json.loads(fitted(columns=[0, 1, 3, 5], inference=False).to_json())
    with pytest.raises(CertificateError, match="standard errors that the certificate does not state so"):
        Model.from_json(json.dumps(plain | {"inference": content["inference"]}))
    # Composed with the price of bounds, the certificate still states them.
    model = models["fixed"]
    estimator = copy.deepcopy(model.estimator)
    estimator.certificate_ = taciturn.compose(fitted(inference=False).certificate, model.certificate)
    composed = Model(model.bounds, estimator, "")
    assert Model.from_json(composed.to_json()).to_json() == composed.to_json()


@pytest.mark.parametrize("n_nonzero", [3, "all"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
@pytest.mark.parametrize("kind", ["regress", "classify"])
def test_too_few_records_are_refused_and_leave_nothing(kind, n_nonzero, epsilon):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20, 6))
    classes = {} if kind == "regress" else {"classes": (0, 1)}
    model = (taciturn.SparseRegressor if kind == "regress" else taciturn.SparseClassifier)(
        epsilon=epsilon, n_nonzero=n_nonzero, inference=True, fit_intercept=False, random_state=0, **classes
    )
    with pytest.raises(ParameterError, match=r"^inference=True: expected about [\d,]+ records .*nothing was spent\.$"):
        model.fit(X, X[:, 0] if kind == "regress" else X[:, 0] > 0)
    assert not hasattr(model, "certificate_")
    assert not hasattr(model, "coef_")


REASONS = {"noise": "is clear of its noise", "far": "the last step .* was long", "empty": "no column was chosen"}


@pytest.mark.parametrize("kind", REASONS)
def test_every_reason_is_written_and_printed(kind):
    # Columns that are zero, labels that are certain, and a target of zeros without an intercept.
    if kind == "far":
        model = fitted("classify", certain=True, columns=[0, 1, 5])
    else:
        X, y = np.zeros((6000, 5)), np.zeros(6000)
        if kind == "empty":
            X = RNG_OF_REASONS.uniform(-1, 1, (6000, 5))
        names = list("abcde")
        encoder = TableEncoder(
            bounds=TableBounds(Target("y", -6, 6), {name: Column("number", -1, 1) for name in names})
        ).fit(pd.DataFrame(X, columns=names))
        settings = {"columns": [0, 1]} if kind == "noise" else {"n_nonzero": "auto"}
        estimator = taciturn.SparseRegressor(
            inference=True, fit_intercept=False, y_bounds=(-6, 6), random_state=0, **settings
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", taciturn.WeakBudgetWarning)
            estimator.fit(encoder.transform(pd.DataFrame(X, columns=names)), y)
        model = Model(encoder.bounds_, estimator, "")
    found = model.estimator.inference_
    assert re.search(REASONS[kind], found.reason)
    assert np.isnan(found.std_error).all()
    assert (found.confounded, found.allowance.any()) == (((),) * found.std_error.size, False)
    read = Model.from_json(model.to_json())
    assert read.estimator.inference_.reason == found.reason
    assert found.reason in " ".join(str(read.summary()).split())
