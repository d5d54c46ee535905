"""The experiments of DP-IGHT: rows for everything that the paper prints or claims, and checks that can fail."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.datasets import Dataset
from taciturn_research.reproduce.dpight import EXPERIMENTS, claims, figure_1, tables
from taciturn_research.reproduce.dpight.common import DP_IGHT, EPSILONS, FRANK_WOLFE, IGHT, TWO_STAGE
from taciturn_research.reproduce.experiment import Numbers, judge_claim, judge_number

# Trials of experiments, some of them on real sets.
pytestmark = pytest.mark.slow


def small(case):
    """A panel of the figure on a smaller set."""
    return figure_1.setting(None, **dict(case.options) | {"n": 80, "s": 3})


def texts(name, *, test, n=120, d=60):
    """Counts of words, two of which decide the label."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (n, d)).astype(float)
    y = np.where(X[:, 0] + rng.normal(size=n) > X[:, 1], 1, -1)
    if not test:
        return Dataset(name, sp.csr_array(X), y, "classification")
    return Dataset(name, sp.csr_array(X[20:]), y[20:], "classification", sp.csr_array(X[:20]), y[:20])


def keys_of(rows):
    return [{key: value for key, value in row.items() if key != "value"} for row in rows]


def verdicts(experiment, rows):
    numbers = Numbers(rows)
    judged = [judge_number(published, numbers) for published in experiment.published]
    return judged + [judge_claim(claim, numbers) for claim in experiment.claims]


def rows_of_figure(experiment):
    return [row for case in experiment.cases for row in figure_1.errors(small(case), 0)]


# ------------------------------------------------------------------ every number and claim has its rows


def test_every_table_and_figure_is_there():
    items = {item for experiment in EXPERIMENTS for item in experiment.items}
    assert items == {"Table 1", "Table 2", "Table 3", *(f"Figure 1({panel})" for panel in "abcd")}
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    cells = {experiment.name: len(experiment.published) for experiment in EXPERIMENTS}
    # Four methods at five epsilons.
    assert cells["dpight-table-2"] == cells["dpight-table-3"] == 20


@pytest.mark.parametrize("experiment", [figure_1.FIGURE_1, figure_1.FIGURE_1_LARGE], ids=lambda each: each.name)
def test_every_claim_of_figure_1_has_its_rows(experiment):
    rows = rows_of_figure(experiment)
    assert all(verdict.outcome != "not run" for verdict in verdicts(experiment, rows))
    names = {case.options["name"] for case in experiment.cases}
    for each in (*experiment.pictures, *experiment.tables):
        assert each.where["set"] in names
    # Four published curves, and sound methods beside them, at every epsilon.
    for name in names:
        methods = [row["method"] for row in rows if row["set"] == name]
        assert {IGHT, FRANK_WOLFE, TWO_STAGE, DP_IGHT} <= set(methods)
        assert sum(method.startswith(("HardThreshold", "Sparse")) for method in set(methods)) == 2
        assert len(methods) == len(set(methods)) * len(EPSILONS)


@pytest.mark.parametrize("experiment", [tables.TABLE_2, tables.TABLE_3], ids=lambda each: each.name)
def test_every_printed_number_of_the_tables_has_a_row(experiment):
    real, stand_in = experiment.cases
    options = dict(real.options) | {"n_nonzero": 5}
    options |= {"n_features": 40} if "n_features" in options else {"n_test": 15}
    rows = tables.held_out_errors(tables.words(texts(real.dataset, test=True), **options), 0)
    keys = keys_of(rows)
    assert all(published.of in keys for published in experiment.published)
    assert all(verdict.outcome != "not run" for verdict in verdicts(experiment, rows))
    # The stand-in has rows of its own, which no printed number is compared with.
    assert stand_in.stands_in_for == real.dataset
    options = dict(stand_in.options) | {"n_nonzero": 5}
    rows = tables.held_out_errors(tables.words(texts(stand_in.dataset, test=False), **options), 0)
    assert len(rows) == len(keys)
    assert all(verdict.outcome == "not run" for verdict in verdicts(experiment, rows))


def test_every_claim_of_the_rates_has_its_rows():
    numbers = tables.numbers_of_records(None, largest=800)
    assert numbers == (50, 100, 200, 400, 800)
    rows = [row for seed in (0, 1) for row in tables.rates(numbers, seed)]
    assert all(verdict.outcome != "not run" for verdict in verdicts(tables.TABLE_1, rows))
    per_method = [row for row in rows if row["method"] == DP_IGHT]
    assert [row["measure"] for row in per_method].count("slope") == 2
    errors = [row for row in per_method if "n epsilon" in row][:5]
    assert [row["n epsilon"] for row in errors] == [n * tables.EPSILON for n in numbers]
    slope = next(row["value"] for row in per_method if row["measure"] == "slope")
    assert slope == pytest.approx(tables.log_slope(numbers, [row["value"] for row in errors]))


@pytest.mark.parametrize(
    ("run", "prepare"),
    [
        (figure_1.errors, lambda: small(figure_1.FIGURE_1.cases[1])),
        (tables.held_out_errors, lambda: tables.words(texts("made up", test=False), loss="squared", n_nonzero=5)),
        (tables.rates, lambda: (100, 200)),
    ],
    ids=["figure 1", "texts", "rates"],
)
def test_rows_are_a_function_of_what_was_prepared_and_of_the_seed(run, prepare):
    prepared = prepare()
    once = run(prepared, 1)
    assert run(prepared, 1) == once
    assert run(prepared, 2) != once


# ------------------------------------------------------------------ measures and data


def test_measures_by_hand():
    assert figure_1.relative_error(np.array([[3.0, 0.0]]), np.array([0.0, 4.0])) == pytest.approx(1.25)
    assert tables.half_mean_square(np.array([1.0, 0.0, 2.0]), np.array([0.0, 0.0, 4.0])) == pytest.approx(5 / 6)
    assert tables.misclassified(np.array([1, -1, 1, 1]), np.array([1, 1, 1, -1])) == 0.5
    assert tables.log_slope((1, 10, 100), [5.0, 0.05, 0.0005]) == pytest.approx(-2.0)
    X = np.random.default_rng(0).normal(size=(30, 8))
    largest = np.linalg.eigvalsh(X.T @ X / 30)[-1]
    assert tables.steepest_curvature(sp.csr_array(X)) == pytest.approx(largest)


def test_labels_as_printed_cannot_be_fitted_and_others_can(monkeypatch):
    monkeypatch.setattr(figure_1, "EPSILONS", (10.0,))
    found = {}
    for as_printed in (False, True):
        setting = figure_1.Panel("set", "logistic", 500, 10, as_printed)
        (found[as_printed],) = [row["value"] for row in figure_1.errors(setting, 0) if row["method"] == IGHT]
    assert found[False] < 0.7
    # Minus the weights is twice their length away from them.
    assert 1.7 < found[True] < 2.3


def test_without_a_test_part_a_fifth_is_kept_for_it():
    prepared = tables.words(texts("made up", test=False), loss="logistic", n_nonzero=5)
    lengths = sp.linalg.norm(prepared.X, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0.0], 1.0)
    X, y, X_test, y_test = tables._drawn(prepared, np.random.default_rng(0))
    assert (X.shape, X_test.shape) == ((96, 60), (24, 60))
    assert (y.size, y_test.size) == (96, 24)
    both = sp.vstack([X, X_test]).toarray()
    assert sorted(map(tuple, both)) == sorted(map(tuple, prepared.X.toarray()))


def test_the_publishers_test_part_is_kept_apart_and_features_are_drawn_alike():
    prepared = tables.words(texts("made up", test=True), loss="squared", n_nonzero=5, n_features=25, n_test=15)
    X, y, X_test, y_test = tables._drawn(prepared, np.random.default_rng(0))
    assert (X.shape, X_test.shape, y_test.size) == ((100, 25), (15, 25), 15)
    np.testing.assert_array_equal(y, prepared.y)
    assert y.dtype == np.float64
    # The same columns in both parts: each is found in the whole table, at the same place.
    places = [np.flatnonzero((prepared.X.toarray() == column[:, None]).all(axis=0)) for column in X.toarray().T]
    rows = prepared.X_test.toarray()
    kept = [int(place[0]) for place in places]
    assert kept == sorted(kept)
    assert set(map(tuple, X_test.toarray())) <= set(map(tuple, rows[:, kept]))


def test_the_cost_of_privacy_leaves_out_what_the_method_cannot_do():
    """Without noise there is none, although no method finds the weights exactly."""
    X, y, coef = tables._data(400, 0)
    np.testing.assert_allclose(np.abs(coef[coef != 0.0]), 1 / math.sqrt(3))
    assert np.var(y - X @ coef) == pytest.approx(0.1, rel=0.3)
    parameters = {"loss": "squared", "n_nonzero": 3, "n_steps": 10, "step_size": 1.0, "delta": 0.01}
    cheap = tables._distance(tables.DPIGHT, parameters | {"gradient_bound": 1e-6}, X, y, coef, 0)
    dear = tables._distance(tables.DPIGHT, parameters | {"gradient_bound": 100.0}, X, y, coef, 0)
    assert cheap < 1e-9 < 0.5 < dear


def test_the_stated_bound_is_that_of_the_corollary():
    coef = np.array([0.6, 0.0, -0.8])
    assert tables._stated_bound(coef, 100) == pytest.approx(6 * (math.sqrt(6) + math.sqrt(0.1) * math.log(100)))
    methods = figure_1._linear(figure_1.Panel("set", "squared", 100, 3, False), coef)
    assert methods[DP_IGHT].keywords["gradient_bound"] == pytest.approx(tables._stated_bound(coef, 100))
    assert methods[figure_1.RESIDUALS_OF_1].keywords["gradient_bound"] == 6.0


# ------------------------------------------------------------------ claims


def table(key, name, errors):
    return Numbers(
        {key: name, "epsilon": epsilon, "method": method, "value": value}
        for method, values in errors.items()
        for epsilon, value in zip(EPSILONS, values, strict=True)
    )


@pytest.mark.parametrize("experiment", [tables.TABLE_2, tables.TABLE_3], ids=lambda each: each.name)
def test_printed_numbers_are_ordered_as_the_paper_says(experiment):
    printed = Numbers({**published.of, "value": published.value} for published in experiment.published)
    assert all(judge_claim(claim, printed).outcome == "holds" for claim in experiment.claims)
    name = experiment.cases[0].name
    for method in (FRANK_WOLFE, TWO_STAGE, DP_IGHT, IGHT):
        values = [printed.mean({"data set": name, "method": method, "epsilon": epsilon}) for epsilon in EPSILONS]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == (1 if method == IGHT else 5)


def test_the_best_is_best_at_every_epsilon():
    check = claims.best_of_private("set", DP_IGHT, (FRANK_WOLFE, TWO_STAGE))
    others = {FRANK_WOLFE: [0.8] * 5, TWO_STAGE: [0.7] * 5}
    assert check(table("set", "set", others | {DP_IGHT: [0.6] * 5})).holds
    once = check(table("set", "set", others | {DP_IGHT: [0.6] * 4 + [0.75]}))
    assert not once.holds
    assert once.evidence.startswith("best at 4 of 5")
    with pytest.raises(LookupError):
        check(table("set", "another", others))


def test_near_is_nearer_to_the_non_private_fit_than_to_the_others():
    check = claims.near_non_private("set", DP_IGHT, (FRANK_WOLFE, TWO_STAGE))
    others = {IGHT: [0.1] * 5, FRANK_WOLFE: [0.9] * 5, TWO_STAGE: [0.5] * 5}
    assert check(table("set", "set", others | {DP_IGHT: [0.29] * 5})).holds
    assert not check(table("set", "set", others | {DP_IGHT: [0.31, *[0.29] * 4]})).holds


def test_smaller_than():
    check = claims.smaller_than("set", IGHT, 1.0)
    assert check(table("set", "set", {IGHT: [0.4] * 5})).holds
    assert not check(table("set", "set", {IGHT: [1.99] * 5})).holds


@pytest.mark.parametrize(
    ("slopes", "holds"), [((-2.1, -2.0, -2.05), True), ((-1.9, -2.0, -1.8), True), ((-1.7, -1.71, -1.72), False)]
)
def test_slopes_are_judged_by_their_standard_error(slopes, holds):
    rows = [{"method": "a", "measure": claims.SLOPE, "value": slope} for slope in slopes]
    # The second has mean -1.9 and a standard error of 0.058.
    assert claims.falls_like("a", -2.0)(Numbers(rows)).holds == holds
