"""Pipelines of scikit-learn as models with bounds: the same predictions from their file, or a refusal."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import taciturn
from taciturn import ParameterError
from taciturn.app.model_file import Model
from taciturn.app.pipelines import _compare, model_of_pipeline
from taciturn.app.report.model import model_report
from taciturn.tables import TableBounds, TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N = 1500
rng = np.random.default_rng(0)
X = pd.DataFrame(
    {"age": rng.uniform(10, 99, N), "dose": rng.uniform(0, 5, N), "region": rng.choice(["n", "s", "w", "x"], N),
     "id": range(N)}
)  # fmt: skip
Y = np.where(0.05 * (X.age - 50) + (X.region == "s") + rng.logistic(size=N) > 0, "yes", "no")
REGIONS = OneHotEncoder(categories=[["n", "s", "w"]], handle_unknown="ignore")


def scaler():
    return taciturn.BoundedScaler(lower=[18, 0], upper=[90, 5])


def pipeline(*parts, model=None):
    model = model or taciturn.SparseClassifier(epsilon=5.0, x_bound=1.0, classes=("no", "yes"), random_state=0)
    return make_pipeline(ColumnTransformer([(f"p{at}", *part) for at, part in enumerate(parts)]), model)


PARTS = (REGIONS, ["region"]), (scaler(), ["age", "dose"])


def test_a_column_transformer_becomes_a_file_with_the_same_predictions():
    fitted = pipeline(*PARTS).fit(X, Y)
    model = model_of_pipeline(fitted, target="ill")
    assert model.feature_names == ("region=n", "region=s", "region=w", "age", "dose")
    read = Model.from_json(model.to_json())
    # Values beyond the bounds and an unlisted region are among the rows.
    assert (X.region == "x").any()
    assert (X.age < 18).any()
    np.testing.assert_allclose(read.pipeline().predict_proba(X), fitted.predict_proba(X), rtol=1e-12)
    assert read.certificate.epsilon == taciturn.certificate_of(fitted).epsilon
    page = model_report(read)
    assert "region=s" in page
    assert json.loads(model.to_json())["command"] == "made in Python"


def test_a_regression_with_a_constant_for_missing_cells_becomes_one_too():
    gaps = X.assign(age=X.age.where(X.index % 7 > 0))
    target = (0.01 * X.age).clip(0, 1)
    model = taciturn.SparseRegressor(epsilon=5.0, x_bound=1.0, y_bounds=(0, 1), random_state=0)
    filled = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=50.0, keep_empty_features=True),
        taciturn.BoundedScaler(lower=18, upper=90),
    )
    fitted = pipeline((filled, ["age"]), ("drop", ["dose"]), model=model).fit(gaps, target)
    made = model_of_pipeline(fitted, target="risk")
    assert dict(made.bounds.missing) == {"age": 50.0}
    np.testing.assert_allclose(made.pipeline().predict(gaps), fitted.predict(gaps), rtol=1e-12)


def test_a_table_encoder_becomes_one_as_it_is():
    bounds = TableBounds.from_toml("""
        target = {name = "ill", classes = ["no", "yes"]}
        [columns]
        age = {type = "number", lower = 18, upper = 90}
        dose = {type = "ignore"}
        region = {type = "ignore"}
        id = {type = "ignore"}
    """)
    classifier = taciturn.SparseClassifier(epsilon=5.0, x_bound=1.0, classes=("no", "yes"), random_state=0)
    fitted = make_pipeline(TableEncoder(bounds=bounds), classifier).fit(X.assign(ill=Y), Y)
    made = model_of_pipeline(fitted, target="ill")
    assert made.pipeline().predict(X).tolist() == fitted.predict(X).tolist()
    with pytest.raises(ParameterError, match="target='sick': expected 'ill', as the bounds say"):
        model_of_pipeline(fitted, target="sick")


@pytest.mark.parametrize(
    "part",
    [
        (StandardScaler(), ["age"]),
        (OneHotEncoder(handle_unknown="ignore"), ["region"]),
        (OneHotEncoder(categories=[["n", "s", "w", "x"]], drop="first"), ["region"]),
        (make_pipeline(SimpleImputer(), taciturn.BoundedScaler(lower=18, upper=90)), ["age"]),
    ],
    ids=["fitted to data", "categories of the data", "one left out", "means of the data"],
)
def test_what_has_parameters_of_the_data_is_refused(part):
    with pytest.raises(ParameterError, match="expected a ColumnTransformer of BoundedScaler"):
        model_of_pipeline(pipeline(part).fit(X, Y), target="ill")


def test_bounds_that_encode_otherwise_are_noticed():
    fitted = pipeline(*PARTS).fit(X, Y)
    bounds = model_of_pipeline(fitted, target="ill").bounds
    _compare(fitted[0], bounds)
    others = (
        replace(bounds.columns["age"], upper=91.0),
        replace(bounds.columns["age"], lower=17.0),
        replace(bounds.columns["region"], categories=("s", "n", "w")),
    )
    for name, column in zip(("age", "age", "region"), others, strict=True):
        changed = replace(bounds, columns={**bounds.columns, name: column})
        with pytest.raises(ParameterError, match="its features are not those of such bounds"):
            _compare(fitted[0], changed)
