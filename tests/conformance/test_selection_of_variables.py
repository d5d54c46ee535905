"""Which columns and variables the default model keeps: no empty levels, whole categories, as few as suffice."""

import json
import warnings
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder

from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.errors import ParameterError
from taciturn.methods.sparse import run as sparse_run
from taciturn.methods.sparse.variables import variables_of_names
from taciturn.tables import TableBounds, TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.core.errors.WeakBudgetWarning")

ALL = [SparseRegressor, SparseClassifier]
N_CODES, N_EMPTY = 30, 13
GROUPS = [list(range(N_CODES)), [30, 31, 32, 33], [34, 35]]


def hospital(kind, n=8000):
    """Codes of which 13 are on the public list and on no record, and the last wards are rare; then three numbers."""
    rng = np.random.default_rng(5)
    shares = np.append(1.0 / np.arange(1, N_CODES - N_EMPTY + 1) ** 1.1, np.zeros(N_EMPTY))
    codes = rng.choice(N_CODES, n, p=shares / shares.sum())
    wards = rng.choice(4, n, p=[0.6, 0.3, 0.097, 0.003])
    numbers = np.clip(rng.normal(0.0, [0.4, 0.4, 0.1], (n, 3)), -1.0, 1.0)
    X = np.column_stack((np.eye(N_CODES)[codes], np.eye(4)[wards], np.eye(2)[rng.integers(0, 2, n)], numbers))
    weights = np.zeros(X.shape[1])
    weights[[1, 3, 6, 30, 36, 38]] = 1.2, -1.0, 1.4, -0.6, 1.5, 3.0
    margins = X @ weights
    if kind is SparseClassifier:
        return X, (rng.logistic(size=n) + margins > 0.5).astype(int)
    return X, np.clip(0.15 * margins + 0.15 * rng.standard_normal(n), -1.0, 1.0)


def rare_ones(X):
    """Levels with fewer than half a per cent of the records."""
    return np.flatnonzero(X[:, :36].mean(axis=0) < 0.005)


# ------------------------------------------------------------------ columns of hardly any record


def kept_rare(kind, n_nonzero, epsilon, seeds=3):
    X, y = hospital(kind)
    rare = rare_ones(X)
    assert rare.size > N_EMPTY
    fits = [kind(n_nonzero=n_nonzero, epsilon=epsilon, random_state=seed).fit(X, y) for seed in range(seeds)]
    return [(int(fit.support_[rare].sum()), bool(fit.support_[[3, 36]].all())) for fit in fits]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("n_nonzero", [10, "auto"])
def test_empty_and_rare_levels_are_not_chosen(kind, epsilon, n_nonzero):
    assert kept_rare(kind, n_nonzero, epsilon) == [(0, True)] * 3


def test_without_a_look_at_second_moments_they_are():
    def nothing_comes_first(model, gram, members, n_records):
        return model.weights, np.zeros(len(members), dtype=bool)

    with patch.object(sparse_run, "identified_weights", nothing_comes_first):
        assert sum(n_rare for n_rare, _ in kept_rare(SparseClassifier, 10, 3.0)) > 3


def test_a_strong_column_of_small_range_is_kept():
    # Its second moment is within the noise of the Gram matrix; its weight stands out.
    X, _ = hospital(SparseClassifier)
    rng = np.random.default_rng(2)
    X[:, 38] = np.clip(rng.normal(0.0, 0.06, len(X)), -1, 1)
    y = (rng.logistic(size=len(X)) + 40.0 * X[:, 38] > 0.0).astype(int)
    for seed in range(3):
        assert SparseClassifier(n_nonzero=3, random_state=seed).fit(X, y).support_[38]


# ------------------------------------------------------------------ forward selection


def explained(metric, weights, columns):
    """What these columns explain of the margins, by definition: by a projection, and not by updates of it."""
    columns = list(columns)
    covariances = (metric @ weights.T)[columns]
    return float((covariances * np.linalg.solve(metric[np.ix_(columns, columns)], covariances)).sum())


@pytest.mark.parametrize("members", [[[j] for j in range(7)], [[0, 4], [1], [2, 3, 6], [5]]])
def test_each_variable_explains_the_most_of_what_the_earlier_ones_do_not(members):
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((40, 7)) @ rng.standard_normal((7, 7))
    metric, weights = rows.T @ rows, rng.standard_normal((2, 7))
    members = [np.array(columns) for columns in members]
    first = np.ones(len(members), dtype=bool)
    order = sparse_run._forward(metric, metric @ weights.T, members, first, len(members))
    assert sorted(order) == list(range(len(members)))
    for t, chosen in enumerate(order):
        before = [j for taken in order[:t] for j in members[taken]]
        gains = {j: explained(metric, weights, [*before, *members[j]]) for j in order[t:]}
        assert max(gains, key=gains.get) == chosen
    # Those that come first come first, whatever the others explain.
    first[order[0]] = False
    assert sparse_run._forward(metric, metric @ weights.T, members, first, len(members))[-1] == order[0]


# ------------------------------------------------------------------ whole variables


def kept_variables(model, groups, n_features):
    """Which variables are kept; raise if one is kept in part."""
    rest = [[j] for j in range(n_features) if not any(j in group for group in groups)]
    kept = []
    for number, group in enumerate([*groups, *rest]):
        if model.support_[list(group)].any():
            assert model.support_[list(group)].all()
            kept.append(number)
    return kept


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("n_nonzero", [1, 2, "auto"])
def test_levels_of_a_category_stay_or_go_together(kind, relation, n_nonzero):
    X, y = hospital(kind)
    model = kind(
        select="variables", groups=GROUPS, n_nonzero=n_nonzero, relation=relation, n_public=len(X), random_state=1
    ).fit(X, y)
    kept = kept_variables(model, GROUPS, X.shape[1])
    assert n_nonzero == "auto" or len(kept) == n_nonzero
    public = model.certificate_.public
    assert (public["select"], public["variables"], public["n_nonzero"]) == ("variables", 6, n_nonzero)
    # The same columns one by one are no whole categories.
    by_column = kind(n_nonzero=8, random_state=1).fit(X, y)
    with pytest.raises(AssertionError):
        kept_variables(by_column, GROUPS, X.shape[1])


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("method", ["one-shot", "two-phase"])
def test_they_do_so_where_correlations_choose(kind, method):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (1500, 900))
    y = 0.5 * X[:, 300] - 0.4 * X[:, 451]
    y = (y > 0).astype(int) if kind is SparseClassifier else y
    groups = [list(range(j, j + 3)) for j in range(0, 900, 3)]
    for design in (X, np.where(np.abs(X) > 0.98, X, 0.0)):
        model = kind(select="variables", groups=groups, n_nonzero=2, method=method, random_state=0).fit(design, y)
        kept = kept_variables(model, groups, 900)
        assert len(kept) == 2
        assert design is not X or kept == [100, 150]
    assert any(release.what.endswith("of 300 variables") for release in model.certificate_.events) == (
        method == "one-shot"
    ) or any("correlations of 900 columns" in release.what for release in model.certificate_.events)


def test_variables_with_standard_errors_are_whole_too():
    X, y = hospital(SparseRegressor)
    model = SparseRegressor(
        select="variables", groups=GROUPS, n_nonzero=2, inference=True, epsilon=20.0, random_state=0
    ).fit(X, y)
    assert len(kept_variables(model, GROUPS, X.shape[1])) == 2
    wide = np.random.default_rng(0).uniform(-1, 1, (300, 600))
    with pytest.raises(ParameterError, match="at most 500 columns \\(got 599\\)"):
        SparseRegressor(select="variables", groups=[range(598)], n_nonzero=2, inference=True).fit(wide, wide[:, 0])


# ------------------------------------------------------------------ where variables are known from


BOUNDS = TableBounds.from_toml(
    """
[target]
name = "ill"
classes = ["no", "yes"]
[columns.age]
type = "number"
lower = 18
upper = 100
[columns.sex]
type = "category"
categories = ["f", "m"]
[columns.ward]
type = "category"
categories = ["a", "b", "c", "never"]
[columns.seen]
type = "date"
parts = ["year", "month"]
lower = 2010
upper = 2020
[missing]
ward = {indicator = true}
"""
)


def patients(n=3000):
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "age": rng.uniform(18, 100, n),
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(["a", "b", "c"], n),
            "seen": [
                f"{year}-{month:02}-01"
                for year, month in zip(rng.integers(2010, 2021, n), rng.integers(1, 13, n), strict=True)
            ],
        }
    )
    table.loc[rng.random(n) < 0.2, "ward"] = None
    risk = (table.age - 60) / 20 + 2 * (table.ward == "c")
    return table, np.where(risk + rng.logistic(size=n) > 0, "yes", "no")


def test_bounds_names_and_lists_give_the_same_variables():
    table, y = patients()
    encoder = TableEncoder(bounds=BOUNDS).fit(table)
    X, names = encoder.transform(table), encoder.get_feature_names_out().tolist()
    groups = encoder.bounds_.feature_groups
    assert [[names[j] for j in group] for group in groups] == [
        ["age"],
        ["sex=f", "sex=m"],
        ["ward=a", "ward=b", "ward=c", "ward=never", "ward missing"],
        ["seen year", *(f"seen month={month}" for month in range(1, 13))],
    ]
    assert encoder.bounds_.indicator_blocks == [groups[1], groups[2], groups[3][1:]]
    stated = {"classes": ("no", "yes"), "n_nonzero": 2, "select": "variables", "random_state": 0}
    by_place = SparseClassifier(groups=groups, **stated).fit(X, y)
    assert by_place.support_.tolist() == [j in (*groups[0], *groups[2]) for j in range(len(names))]
    by_name = SparseClassifier(groups=[[names[j] for j in group] for group in groups], **stated)
    frame = pd.DataFrame(X, columns=names)
    assert np.array_equal(by_name.fit(frame, y).coef_, by_place.coef_)
    # By names alone a year is a variable of its own: what is before "=" is not the name of the column.
    alone = SparseClassifier(**stated).fit(frame, y)
    assert alone.certificate_.public["variables"] == len(groups) + 1
    assert np.array_equal(alone.support_, by_place.support_)
    with pytest.raises(ParameterError, match="^groups=None: expected groups of columns, as X has no names"):
        SparseClassifier(**stated).fit(X, y)


def test_names_of_one_hot_encoders_are_read_where_they_can_be():
    table, y = patients()
    encoder = OneHotEncoder(sparse_output=False, dtype=float).set_output(transform="pandas")
    frame = encoder.fit_transform(table[["sex", "ward"]].fillna("none"))
    model = SparseClassifier(classes=("no", "yes"), select="variables", n_nonzero=1, random_state=0).fit(frame, y)
    assert frame.columns[model.support_].tolist() == ["ward_a", "ward_b", "ward_c", "ward_none"]
    assert variables_of_names(["sex_f", "sex_m", "age", "code_a_1", "num__x", "cat__sex_f", "cat__sex_m"]) == (
        *(0, 0, 1, 2, 3, 4, 4),
    )
    assert variables_of_names(["pay_<=50", "pay_>50", "a missing", "a", "_x", "y_"]) == (0, 0, 1, 1, 2, 3)
    assert variables_of_names(["a b=1=2", "a b=2", "a b missing", "c=1"]) == (0, 0, 0, 1)
    # Wherever they are cut, these are the same variable.
    assert variables_of_names(["blood_type_a", "blood_type_b"]) == (0, 0)
    for names in (["blood_type_a", "blood_type_b", "blood_sugar"], ["a_b_c", "a_b_d", "a_c"]):
        with pytest.raises(ParameterError, match=f"cut at one underscore only, got '{names[0]}'; list the columns"):
            variables_of_names(names)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"select": "rows"}, "^select='rows': expected one of 'columns', 'variables'"),
        ({"groups": [[0, 1]]}, 'None with select="columns"; set select="variables"'),
        ({"select": "variables", "groups": "ab"}, "^groups='ab': expected lists of places or names"),
        ({"select": "variables", "groups": ["ab"]}, "^groups=.*expected lists of places or names"),
        ({"select": "variables", "groups": [[0, 99]]}, "^groups=99: expected a name, or a place from 0 to 38"),
        ({"select": "variables", "groups": [["x"]]}, "^groups='x': expected a name that X has"),
        ({"select": "variables", "groups": [[0, 1], [1, 2]]}, "groups with columns, each of them once"),
        ({"select": "variables", "groups": [[]]}, "groups with columns, each of them once"),
    ],
)
def test_groups_that_are_none_are_refused(wrong, message):
    X, y = hospital(SparseClassifier, 60)
    with pytest.raises(ParameterError, match=message):
        SparseClassifier(**wrong).fit(X, y)


# ------------------------------------------------------------------ sizes


@pytest.mark.parametrize("kind", ALL)
def test_auto_is_the_default(kind):
    X, y = hospital(kind, 2000)
    stated, unstated = (kind(random_state=0, **given).fit(X, y) for given in ({"n_nonzero": "auto"}, {}))
    assert np.array_equal(stated.coef_, unstated.coef_)
    assert unstated.certificate_.public["n_nonzero"] == "auto"


@pytest.mark.parametrize("kind", ALL)
def test_noise_keeps_no_column(kind):
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, (4000, 20)), rng.uniform(-1, 1, 4000)
    y = (y > 0).astype(int) if kind is SparseClassifier else y
    # Numbers lose less by a fit to noise than labels, so that a comparison has to be sharper.
    for epsilon in (1.0, 3.0) if kind is SparseClassifier else (3.0, 9.0):
        for seed in range(3):
            assert not kind(epsilon=epsilon, random_state=seed).fit(X, y).support_.any()


@pytest.mark.parametrize("kind", ALL)
def test_small_tables_whose_sizes_cannot_be_compared_keep_all(kind):
    X, y = hospital(kind, 400)
    X = X[:, 30:]
    model = kind(epsilon=1.0, random_state=0).fit(X, y)
    assert model.support_.all()
    assert model.certificate_.public["method"] == "dense"
    assert not any("numbers of" in release.what for release in model.certificate_.events)


def test_old_files_have_the_size_that_they_state():
    from taciturn.app.model_file import Model

    with open("tests/data/written_by_0_2.json", encoding="utf-8") as file:
        models = json.load(file)["models"]
    for name in ("SparseRegressor", "SparseClassifier"):
        written = models[name]
        assert written["parameters"].keys().isdisjoint({"select", "groups"})
        estimator = Model.from_content(written).estimator
        assert (estimator.select, estimator.groups) == ("columns", None)
        assert estimator.n_nonzero == written["parameters"]["n_nonzero"]
        # The present form states all of them.
        present = json.loads(Model.from_content(written).to_json())
        del present["parameters"]["select"]
        with pytest.raises(Exception, match="parameters that the estimator does not have"):
            Model.from_content(present)


# ------------------------------------------------------------------ what is chosen by noise is paid for


def test_a_variable_has_the_score_of_its_best_column():
    from taciturn.data.sensitivity import proposal_scores
    from taciturn.methods import releases

    seen = []

    def release(self, scores, stream):
        seen.append((self.sensitivity.value, scores.copy()))
        return np.arange(self.k)

    rng = np.random.default_rng(1)
    X = np.where(rng.random((400, 900)) < 0.5, 1.0, -1.0)
    y = (rng.random(400) < 0.5).astype(int)
    groups = [list(range(j, j + 3)) for j in range(0, 900, 3)]
    model = SparseClassifier(
        select="variables", groups=groups, n_nonzero=2, method="one-shot", invalid="null", random_state=0
    )
    with patch.object(releases.GumbelTopK, "release", release), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(X, y)
        # The first record is null, under zero-out.
        X[0] = np.nan
        clone(model).fit(X, y)
    (bound, first), (_, second) = [pair for pair in seen if pair[1].size == 300]
    assert bound == proposal_scores(1 << 30, 1 << 30, "zero-out").value or bound > 0.0
    moves = np.abs(first - second)
    assert 0.1 * bound < moves.max() <= bound
