"""Steps of scikit-learn in a private pipeline: which hold nothing of the data, and which are refused."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LinearRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from taciturn import (
    BoundedScaler,
    CertificateError,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    certificate_of,
    compose,
)
from taciturn.privacy.pipeline import without_data

N = 3000
RNG = np.random.default_rng(0)
AGE = RNG.uniform(18, 90, N)
WARD = RNG.choice(["north", "south", "icu"], N)
DOSE = np.where(RNG.random(N) < 0.1, np.nan, RNG.lognormal(2, 1, N))
RISK = 0.04 * (AGE - 50) + 1.5 * (WARD == "icu") + RNG.normal(0, 0.5, N)
TABLE = pd.DataFrame({"age": AGE, "ward": WARD, "dose": DOSE, "visit": RNG.integers(1, 5, N)})
ILL = pd.Series(np.where(RISK > 0.5, "yes", "no"), name="ill")

SILENT = "no record makes a step of scikit-learn fail or warn; where one does, that tells of it"


def wards(**changes):
    given = {"categories": [["icu", "north", "south"]], "handle_unknown": "ignore", "sparse_output": False}
    return OneHotEncoder(**(given | changes))


def doses(**changes):
    return SimpleImputer(**({"strategy": "constant", "fill_value": 0.0, "keep_empty_features": True} | changes))


def classifier(**changes):
    return SparseClassifier(epsilon=1.0, x_bound=1.0, classes=("no", "yes"), n_nonzero=3, random_state=0, **changes)


def columns(ward=None, dose=None, **changes):
    dose = make_pipeline(dose or doses(), FunctionTransformer(np.log1p), BoundedScaler(lower=0.0, upper=6.0))
    parts = [
        ("age", BoundedScaler(lower=18.0, upper=90.0), ["age"]),
        ("ward", ward or wards(), ["ward"]),
        ("dose", dose, ["dose"]),
    ]
    return ColumnTransformer(parts, **changes)


def test_a_study_with_scikit_learn_alone_gets_one_certificate():
    study = make_pipeline(columns(), classifier()).fit(TABLE, ILL)
    assert study.score(TABLE, ILL) > 0.8
    certificate = certificate_of(study)
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("proved", 1.0, 1e-6)
    # Only the model spends; what the steps of scikit-learn take for granted is said once.
    assert certificate.events == study[-1].certificate_.events
    assert certificate.assumptions.count(SILENT) == 1
    assert set(study[-1].certificate_.assumptions) < set(certificate.assumptions)


def test_what_the_steps_spend_is_added_up():
    parts = [("numbers", PrivateScaler(epsilon=0.5, random_state=0), ["age", "visit"]), ("ward", wards(), ["ward"])]
    study = make_pipeline(ColumnTransformer(parts, remainder="drop"), classifier()).fit(TABLE, ILL)
    certificate = certificate_of(study)
    assert 1.0 < certificate.epsilon <= 1.5
    assert certificate.status == "proved"


# ------------------------------------------------------------------ why they cost nothing


def state(step, table):
    """Everything that a fit leaves behind beside the parameters, private attributes included."""
    given = step.get_params()
    return pickle.dumps({name: value for name, value in vars(step.fit(table)).items() if name not in given})


def splines(**changes):
    return SplineTransformer(**({"degree": 2, "knots": [[20.0, 1.0], [50.0, 2.0], [90.0, 4.0]]} | changes))


def one_changed(table, value):
    other = table.astype(float)
    other.iloc[3, 0] = value
    return other


NUMBERS = TABLE[["age", "visit"]].astype(float)
MISSING = pd.DataFrame({"dose": [np.nan] * 20})
KNOWN = [
    (wards(), TABLE[["ward"]], pd.DataFrame({"ward": ["north"] * 20})),
    (wards(drop="first"), TABLE[["ward"]], pd.DataFrame({"ward": ["icu"] * 20})),
    (wards(sparse_output=True), TABLE[["ward"]], pd.DataFrame({"ward": ["elsewhere"] * 20})),
    (doses(), TABLE[["dose"]], MISSING),
    (doses(fill_value=None), TABLE[["dose"]], MISSING),
    (FunctionTransformer(np.log1p), TABLE[["dose"]], MISSING),
    (FunctionTransformer(lambda rows: rows / 10.0, kw_args={}), TABLE[["age"]], TABLE[["age"]] * 7),
    (PolynomialFeatures(2), NUMBERS, NUMBERS * 7),
    (PolynomialFeatures((1, 3), interaction_only=True), NUMBERS, one_changed(NUMBERS, 1e6)),
    (splines(), NUMBERS, NUMBERS * 7),
    (splines(sparse_output=True), NUMBERS, one_changed(NUMBERS, 1e6)),
    (splines(extrapolation="linear", include_bias=False), NUMBERS, one_changed(NUMBERS, -1e6)),
    (HashingVectorizer(n_features=16), TABLE["ward"], TABLE["ward"][::-1]),
    (FunctionTransformer(np.digitize, kw_args={"bins": [30.0, 60.0]}), TABLE[["age"]], TABLE[["age"]] * 7),
]
LEARNING = [
    (wards(categories="auto"), *KNOWN[0][1:], "categories"),
    (wards(min_frequency=5, handle_unknown="infrequent_if_exist"), *KNOWN[0][1:], "max_categories=None"),
    (wards(max_categories=2), pd.DataFrame({"ward": ["icu"] * 20}), KNOWN[0][2], "min_frequency=None"),
    (doses(strategy="mean"), TABLE[["dose"]], TABLE[["dose"]] * 2, "strategy='constant'"),
    (doses(strategy="most_frequent"), TABLE[["dose"]], TABLE[["dose"]] * 2, "strategy='constant'"),
    (doses(keep_empty_features=False), TABLE[["dose"]], MISSING, "keep_empty_features=True"),
    (doses(add_indicator=True), TABLE[["dose"]].fillna(1.0), MISSING, "add_indicator=False"),
    (splines(knots="uniform"), NUMBERS, one_changed(NUMBERS, 1e6), "knots=[[...]]"),
    (splines(knots="quantile"), NUMBERS, NUMBERS * 2, "knots=[[...]]"),
]


@pytest.mark.parametrize(("step", "table", "other"), KNOWN, ids=lambda value: type(value).__name__)
def test_the_state_of_a_step_without_data_is_the_same_whatever_the_data(step, table, other):
    assert state(step, table) == state(step, other)
    assert without_data(step.fit(table), "'a' (Step)") is not None


@pytest.mark.parametrize(("step", "table", "other", "expected"), LEARNING, ids=lambda value: str(value)[:12])
def test_a_step_that_may_learn_is_refused_with_the_parameter_to_change(step, table, other, expected):
    # The comparison above tells these apart.
    assert state(step, table) != state(step, other)
    with pytest.raises(CertificateError) as caught:
        certificate_of(Pipeline([("a", step.fit(table)), ("model", classifier())]))
    message = str(caught.value)
    assert message.startswith(f"'a' ({type(step).__name__}): expected ")
    assert expected in message
    assert message.endswith(", and fit again.")


@pytest.mark.parametrize(("step", "table", "other"), KNOWN[:5] + KNOWN[6:], ids=lambda value: type(value).__name__)
def test_steps_without_data_map_every_row_by_itself(step, table, other):
    step.fit(table)
    whole = step.transform(table[:6])
    rows = [step.transform(table[i : i + 1]) for i in range(6)]
    dense = [np.asarray(part.toarray() if hasattr(part, "toarray") else part) for part in (whole, *rows)]
    assert np.array_equal(dense[0], np.concatenate(dense[1:]), equal_nan=True)


@pytest.mark.parametrize(
    "known", [OneHotEncoder, PolynomialFeatures, SelectFromModel, VotingRegressor, MultiOutputRegressor]
)
def test_a_subclass_may_do_anything(known):
    own = type("Own", (known,), {})
    given = {
        OneHotEncoder: lambda: own(categories=[["icu", "north", "south"]]).fit(TABLE[["ward"]]),
        PolynomialFeatures: lambda: own().fit(NUMBERS),
        SelectFromModel: lambda: own(regressor().fit(UNIT, TARGET), prefit=True).fit(UNIT, TARGET),
        VotingRegressor: lambda: own([("a", regressor())]).fit(UNIT, TARGET),
        MultiOutputRegressor: lambda: own(regressor()).fit(UNIT, BOTH),
    }
    with pytest.raises(CertificateError, match="expected a step with a certificate_"):
        certificate_of(Pipeline([("a", given[known]())]))


def test_a_missing_cell_takes_over_the_smallest_value_in_sparse_splines():
    if "handle_missing" not in splines().get_params():
        pytest.skip("this scikit-learn has no handle_missing")
    step = splines(sparse_output=True, handle_missing="zeros")
    with pytest.raises(CertificateError, match="expected sparse_output=False beside handle_missing='zeros'"):
        without_data(step.fit(NUMBERS), "'s' (SplineTransformer)")
    assert without_data(step.set_params(sparse_output=False).fit(NUMBERS), "s") == (SILENT,)


def test_what_else_new_steps_assume():
    (beyond, _) = without_data(splines(extrapolation="error").fit(NUMBERS), "'s' (SplineTransformer)")
    assert beyond.startswith("every value lies between the first and the last knot of 's' (SplineTransformer)")
    (function, _) = without_data(HashingVectorizer(tokenizer=str.split, token_pattern=None), "'h' (HashingVectorizer)")
    assert function.startswith("the function of 'h' (HashingVectorizer) treats every row by itself")
    with pytest.raises(CertificateError, match="expected input='content'"):
        without_data(HashingVectorizer(input="filename"), "h")
    # Bins that KBinsDiscretizer finds are the data's own; scikit-learn has no parameter for given ones.
    with pytest.raises(CertificateError, match="expected a step with a certificate_"):
        certificate_of(Pipeline([("bins", KBinsDiscretizer(3, strategy="uniform").fit(NUMBERS))]))


# ------------------------------------------------------------------ models around certified models

UNIT = RNG.uniform(-1, 1, (2000, 5))
TARGET = np.clip(UNIT[:, 0] - 0.5 * UNIT[:, 1], -1, 1)
BOTH = np.column_stack((TARGET, -TARGET))
LABELS = (TARGET > 0).astype(int)


def regressor(epsilon=0.5, **changes):
    given = {"epsilon": epsilon, "x_bound": 1.0, "y_bounds": (-1.0, 1.0), "n_nonzero": 2, "random_state": 0}
    return SparseRegressor(**(given | changes))


def binary(epsilon=0.5):
    return SparseClassifier(epsilon=epsilon, x_bound=1.0, classes=(0, 1), n_nonzero=2, random_state=0)


def cubed(**changes):
    given = {"func": np.cbrt, "inverse_func": cube, "check_inverse": False}
    return TransformedTargetRegressor(regressor(), **(given | changes))


def cube(target):
    return target**3


FITTED = regressor(0.25).fit(UNIT, TARGET)
# A model, its target, and the epsilons of the parts that spend.
AROUND = {
    "threshold": (FixedThresholdClassifier(binary(), threshold=0.3), LABELS, [0.5]),
    "target": (cubed(), TARGET, [0.5]),
    "target, a transformer": (
        cubed(func=None, inverse_func=None, transformer=FunctionTransformer(np.cbrt)),
        TARGET,
        [0.5],
    ),
    "target, as it is": (cubed(func=None, inverse_func=None, check_inverse=True), TARGET, [0.5]),
    "prefit": (make_pipeline(SelectFromModel(FITTED, prefit=True, max_features=3), regressor()), TARGET, [0.25, 0.5]),
    "selected": (make_pipeline(SelectFromModel(regressor(0.25), threshold="mean"), regressor()), TARGET, [0.25, 0.5]),
    "vote": (VotingRegressor([("a", regressor()), ("b", regressor(0.25)), ("c", "drop")]), TARGET, [0.5, 0.25]),
    "classes vote": (VotingClassifier([("a", binary()), ("b", make_pipeline(binary(0.25)))]), LABELS, [0.5, 0.25]),
    "outputs": (MultiOutputRegressor(regressor()), BOTH, [0.5, 0.5]),
    "classes of outputs": (MultiOutputClassifier(binary()), BOTH > 0, [0.5, 0.5]),
    "frozen": (FixedThresholdClassifier(FrozenEstimator(binary().fit(UNIT, LABELS)), threshold=0.3), LABELS, [0.5]),
}


@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
@pytest.mark.parametrize("name", AROUND)
def test_models_around_certified_models_cost_what_these_cost(name):
    model, target, epsilons = AROUND[name]
    certificate = certificate_of(model.fit(UNIT, target.astype(int) if target.dtype == bool else target))
    parts = [regressor(epsilon).fit(UNIT, TARGET).certificate_ for epsilon in epsilons]
    assert certificate.epsilon == pytest.approx(compose(*parts).epsilon, rel=1e-9)
    assert certificate.status == "proved"
    assert SILENT in certificate.assumptions
    # A classifier around others encodes labels, or refuses more than two, by what it finds.
    found = any("labels" in text and "public" in text for text in certificate.assumptions)
    assert found == (name in ("threshold", "frozen", "classes vote", "classes of outputs"))


@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
@pytest.mark.parametrize("name", AROUND)
def test_models_around_certified_models_keep_nothing_of_a_record(name):
    model, target, _ = AROUND[name]
    other, changed = UNIT.copy(), target.copy()
    # A whole record, with the label of another one: the set of labels stays.
    other[7], changed[7] = -other[7], changed[8]
    states = []
    for table, y in ((UNIT, target), (other, changed)):
        fitted = deepcopy(model).fit(table, y.astype(int) if y.dtype == bool else y)
        fitted = fitted[0] if hasattr(fitted, "steps") else fitted
        # Parts with a certificate are paid for, and nothing else may differ.
        spent = ("estimator_", "estimators_", "named_estimators_", "regressor_", *fitted.get_params())
        states.append(pickle.dumps({key: value for key, value in vars(fitted).items() if key not in spent}))
    assert states[0] == states[1]


def test_near_misses_around_models_are_refused():
    def refused(model, match, target=TARGET):
        with pytest.raises(CertificateError, match=match):
            certificate_of(model.fit(UNIT, target))

    own = "expected a step with a certificate_"
    refused(SelectFromModel(LassoCV(cv=2)), rf"^'estimator' \(LassoCV\): {own}")
    refused(SelectFromModel(LassoCV(cv=2).fit(UNIT, TARGET), prefit=True), rf"^'estimator' \(LassoCV\): {own}")
    by_table = SelectFromModel(FITTED, prefit=True, max_features=lambda table: int((table[:, 0] > 0).sum() > 9) + 1)
    refused(by_table, "expected max_features as a number")
    by_rule = SelectFromModel(FITTED, prefit=True, importance_getter=lambda model: TARGET[:5])
    refused(by_rule, "expected importance_getter as a name")
    refused(cubed(check_inverse=True), "expected check_inverse=False")
    refused(
        cubed(
            check_inverse=True,
            func=None,
            inverse_func=None,
            transformer=FunctionTransformer(np.cbrt, inverse_func=cube, check_inverse=False),
        ),
        "expected check_inverse=False",
    )
    refused(cubed(func=lambda y: y - y.mean(), inverse_func=cube), "one whose value for a row depends on other rows")
    learned = cubed(func=None, inverse_func=None, transformer=StandardScaler())
    refused(learned, rf"^'transformer' \(StandardScaler\): {own}")
    refused(VotingRegressor([("a", regressor()), ("b", LinearRegression())]), rf"^'b' \(LinearRegression\): {own}")
    refused(MultiOutputRegressor(LinearRegression()), rf"^'output 1' \(LinearRegression\): {own}", BOTH)
    with pytest.raises(CertificateError, match="call fit first"):
        certificate_of(VotingRegressor([("a", regressor())]))


# ------------------------------------------------------------------ functions


def test_functions_of_other_rows_are_found_out():
    for function in (
        lambda rows: rows - rows.mean(axis=0),
        lambda rows: (rows - np.min(rows, axis=0)) / (np.max(rows, axis=0) - np.min(rows, axis=0) + 1e-9),
        lambda rows: rows[:-1],
        lambda rows: np.sort(rows, axis=0),
    ):
        for table in (TABLE[["age", "visit"]], TABLE[["age"]].to_numpy()):
            step = FunctionTransformer(function).fit(table)
            with pytest.raises(CertificateError, match="one whose value for a row depends on other rows"):
                without_data(step, "'f' (FunctionTransformer)")


def test_functions_that_cannot_be_seen_through_are_an_assumption():
    def shout(table):
        return table.apply(lambda column: column.str.upper())

    upper = FunctionTransformer(shout).fit(TABLE[["ward"]])
    rows = "the function of 'f' (FunctionTransformer) treats every row by itself, and was chosen without looking at "
    assert without_data(upper, "'f' (FunctionTransformer)") == (f"{rows}these data", SILENT)
    # What numpy does cell by cell needs no such words.
    assert without_data(FunctionTransformer(np.log1p).fit(AGE[:, None]), "") == (SILENT,)
    with pytest.raises(CertificateError, match="check_inverse=False beside an inverse_func"):
        without_data(FunctionTransformer(np.log1p, inverse_func=np.expm1).fit(AGE[:, None]), "f")


# ------------------------------------------------------------------ what is assumed


def test_a_category_that_is_not_listed_is_assumed_away_where_it_is_refused():
    strict = make_pipeline(columns(ward=wards(handle_unknown="error")), classifier()).fit(TABLE, ILL)
    (assumed,) = [text for text in certificate_of(strict).assumptions if text.startswith("every record has categories")]
    assert "'columntransformer.ward' (OneHotEncoder)" in assumed


def test_the_share_of_zeros_may_decide_the_layout():
    sparse = wards(sparse_output=True)
    for ward in (sparse, make_pipeline(sparse), FeatureUnion([("a", sparse)])):
        study = make_pipeline(columns(ward=ward), classifier()).fit(TABLE, ILL)
        assert any("stores the encoded table dense or sparse" in text for text in certificate_of(study).assumptions)
        study = make_pipeline(columns(ward=ward, sparse_threshold=0.0), classifier()).fit(TABLE, ILL)
        assert not any("dense or sparse" in text for text in certificate_of(study).assumptions)


def test_hashed_words_are_sparse():
    parts = [("age", BoundedScaler(lower=18.0, upper=90.0), ["age"]), ("ward", HashingVectorizer(n_features=8), "ward")]
    study = make_pipeline(ColumnTransformer(parts), classifier()).fit(TABLE, ILL)
    assert any("stores the encoded table dense or sparse" in text for text in certificate_of(study).assumptions)


def test_columns_may_be_chosen_by_name_and_type_but_not_by_a_look_at_the_table():
    by_type = make_column_selector(dtype_include=object)
    parts = [("age", BoundedScaler(lower=18.0, upper=90.0), ["age"]), ("ward", wards(), by_type)]
    table = TABLE.astype({"ward": object})
    assert certificate_of(make_pipeline(ColumnTransformer(parts), classifier()).fit(table, ILL)).epsilon == 1.0
    parts[1] = ("ward", wards(), lambda table: ["ward"] if table["ward"].nunique() < 5 else [])
    with pytest.raises(CertificateError, match="got a function that is given the table; list them"):
        certificate_of(make_pipeline(ColumnTransformer(parts), classifier()).fit(table, ILL))


def test_a_scaler_that_learns_is_refused_by_name_in_a_column_transformer():
    parts = [("age", StandardScaler(), ["age"]), ("ward", wards(), ["ward"])]
    study = make_pipeline(ColumnTransformer(parts), classifier()).fit(TABLE, ILL)
    with pytest.raises(CertificateError, match=r"^'columntransformer.age' \(StandardScaler\): expected a step with"):
        certificate_of(study)
