"""Whole numbers that are codes of categories, and targets of text in columns of every package."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from taciturn import DataError, FrankWolfeClassifier, ParameterError, SparseClassifier, private_score
from taciturn.tables import Column, TableBounds, TableEncoder, TableSchema

SHARED = Path(os.environ.get("TACITURN_DATA") or Path(__file__).parents[4] / "shared" / "data")

HEAD = 'target = {name = "y", classes = ["a", "b"]}\n'
TABLE = pa.table({"stage": [1, 3, 9], "grade": [0.0, 2.0, 1.0], "y": ["a", "b", "a"]})


def bounds(text):
    return TableBounds.from_toml(HEAD + text)


def test_codes_are_categories():
    grades = '[columns.grade]\ntype = "code"\nlower = 0\nupper = 2'
    stated = bounds(f'[defaults]\ntype = "code"\nlower = 1\nupper = 3\n{grades}')
    encoder = TableEncoder(bounds=stated).fit(TABLE)
    assert encoder.get_feature_names_out().tolist() == [
        *("stage=1", "stage=2", "stage=3"),
        *("grade=0", "grade=1", "grade=2"),
    ]
    # A code beyond the range has no feature, like an unlisted category.
    expected = [[1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 0]]
    assert encoder.transform(TABLE).tolist() == expected
    assert encoder.transform(TABLE.to_pandas()).tolist() == expected
    # It is a short form: files hold the categories.
    listed = bounds('[columns.grade]\ntype = "category"\ncategories = ["0", "1", "2"]')
    assert stated.columns["grade"] == listed.columns["grade"] == Column("code", 0, 2).checked("here")
    assert TableBounds.from_json(stated.to_json()) == stated


def test_bounds_of_numbers_are_written_as_before():
    stated = bounds("[defaults]\nlower = 0\nupper = 9")
    assert '"defaults": {"lower": 0.0, "upper": 9.0}' in stated.to_json()
    assert TableBounds.from_json(stated.to_json()) == stated


def test_missing_codes_are_filled_in_with_a_code():
    stated = bounds('[columns.stage]\ntype = "code"\nlower = 1\nupper = 3\n[missing]\nstage = 2')
    table = pa.table({"stage": [None, 3], "y": ["a", "b"]})
    schema = TableSchema(("stage", "y"), ("number", "category"))
    assert TableEncoder(bounds=stated).fit(schema).transform(table).tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(ParameterError, match="expected one of the categories"):
        bounds('[columns.stage]\ntype = "code"\nlower = 1\nupper = 3\n[missing]\nstage = 4')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lower = 0.5\nupper = 3", r'^columns."x".lower=0.5: expected a whole number, as the column holds codes'),
        ("upper = 3", r'^columns."x".lower=None: expected a whole number'),
        ("lower = true\nupper = 3", r'^columns."x".lower=True: expected a whole number'),
        ("lower = 3\nupper = 3", r'^columns."x".upper=3: expected a code above lower=3, and at most 1,000 codes'),
        ("lower = 0\nupper = 1000", r'^columns."x".upper=1000: expected .* at most 1,000 codes; .* type = "category"'),
        (
            'lower = 0\nupper = 3\ncategories = ["1"]',
            r'^columns."x"=.categories.: expected no key but type, lower, upper',
        ),
    ],
)
def test_mistakes_are_told_with_their_place(text, message):
    with pytest.raises(ParameterError, match=message):
        bounds(f'[columns.x]\ntype = "code"\n{text}')


@pytest.mark.skipif(not (SHARED / "splice.npz").exists(), reason="the data set splice is not here")
def test_letters_of_genes_are_categories_and_no_numbers():
    data = np.load(SHARED / "splice.npz")

    def table(X):
        return pa.table({f"base {j}": X[:, j] for j in range(X.shape[1])})

    def error(kind, seed):
        stated = TableBounds.from_toml(
            f'target = {{name = "y", classes = [-1, 1]}}\n[defaults]\ntype = "{kind}"\nlower = 1\nupper = 4'
        )
        encoder = TableEncoder(bounds=stated).fit(table(data["X"]))
        model = SparseClassifier(epsilon=5.0, x_bound=1.0, classes=(-1, 1), n_nonzero=10, random_state=seed)
        model.fit(encoder.transform(table(data["X"])), data["y"])
        return np.mean(model.predict(encoder.transform(table(data["X_test"]))) != data["y_test"])

    # Means over 5 seeds were .162 and .086.
    numbers, codes = (np.mean([error(kind, seed) for seed in range(2)]) for kind in ("number", "code"))
    assert numbers > 0.13
    assert codes < 0.11


# ------------------------------------------------------------------ targets of text

N = 500
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 4))
TEXT = np.where(X[:, 1] + 0.1 * RNG.normal(size=N) > 0, "yes", "no")
TARGETS = {
    "pandas": pd.Series(TEXT.astype(object), index=np.arange(N)[::-1]),
    "pandas string": pd.Series(TEXT, dtype="string"),
    "pandas arrow": pd.Series(TEXT, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": pd.Series(TEXT, dtype="category"),
    "polars": pl.Series(TEXT),
    "polars category": pl.Series(TEXT, dtype=pl.Categorical),
    "polars enum": pl.Series(TEXT, dtype=pl.Enum(["yes", "no"])),
    "pyarrow": pa.array(TEXT.tolist()),
    "pyarrow chunks": pa.chunked_array([TEXT[:99].tolist(), TEXT[99:].tolist()]),
    "pyarrow dictionary": pa.array(TEXT.tolist()).dictionary_encode(),
}


@pytest.mark.parametrize("classes", [None, ("yes", "no")])
@pytest.mark.parametrize("invalid", ["raise", "null"])
@pytest.mark.parametrize("kind", [SparseClassifier, FrankWolfeClassifier])
@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
def test_a_target_of_text_is_understood_in_every_column(kind, invalid, classes):
    def fitted(y):
        return kind(x_bound=1.0, classes=classes, invalid=invalid, random_state=0).fit(X, y)

    expected = fitted(TEXT)
    assert expected.score(X, TEXT) > 0.8
    exact = private_score(expected, X, TEXT, random_state=0).value
    for name, y in TARGETS.items():
        model = fitted(y)
        assert np.array_equal(model.coef_, expected.coef_), name
        assert model.classes_.tolist() == ["no", "yes"], name
        assert model.score(X, y) == expected.score(X, TEXT), name
        assert private_score(model, X, y, random_state=0).value == exact, name
    # Other labels give other fits.
    assert not np.array_equal(fitted(np.where(TEXT == "no", "yes", "no")).coef_, expected.coef_)


@pytest.mark.parametrize("name", [name for name in TARGETS if name.startswith("pandas")])
@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
def test_a_missing_text_is_refused_in_words_or_null(name):
    y = TARGETS[name].copy()
    y.iloc[7] = None
    model = SparseClassifier(x_bound=1.0, classes=("no", "yes"), random_state=0)
    with pytest.raises(DataError, match=r"got NaN or infinity; fill in or drop missing values"):
        model.fit(X, y)
    null = np.where(np.arange(N) == 7, "neither", TEXT)
    left = model.set_params(invalid="null").fit(X, y).coef_
    assert np.array_equal(left, model.fit(X, null).coef_)
