"""The arena: its statistics, its bookkeeping, and the scaling of its data sets."""

import json
import os
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest
from sklearn.preprocessing import MaxAbsScaler

from taciturn.core.errors import DataError, ParameterError
from taciturn.datasets import make_screening_linear, make_sparsifier_logistic
from taciturn_research.arena import run as running
from taciturn_research.arena.catalogue import DATA_SETS, METHODS
from taciturn_research.arena.library import DEFAULT
from taciturn_research.arena.methods import Fitted, Method, error_of, shortened
from taciturn_research.arena.peers import NON_PRIVATE, l1_support
from taciturn_research.arena.report import write_report
from taciturn_research.arena.run import QUICK, Cell, Plan, Result, best_setting, results_in, run, summarise
from taciturn_research.arena.sets import GENERATED, REAL, SYNTHETIC, DataSet, Records, draw
from taciturn_research.arena.verdict import holm, judge, published
from taciturn_research.harness import FILE_NAME, Config, Results, sign_test

SHARED = Path(os.environ.get("TACITURN_DATA") or Path(__file__).parents[4] / "shared" / "data")
SEEDS = 20


# ---------------------------------------------------------------------------------------------------------------------
# Statistics


def test_the_sign_test_counts_seeds_with_a_higher_error():
    ours = [1.0] * 15 + [0.0] * 5
    p_value = sum(comb(20, i) for i in range(15, 21)) / 2**20
    assert p_value == 21_700 / 2**20
    assert sign_test(ours, [0.5] * 20) == pytest.approx(p_value, rel=1e-12)
    # The other way round it is the other tail.
    assert sign_test([0.5] * 20, ours) == pytest.approx(sum(comb(20, i) for i in range(5, 21)) / 2**20, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_sign_test_is_scipys_binomial_test_without_ties(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = rng.integers(0, 4, (2, 20))
    higher, lower = int((ours > theirs).sum()), int((ours < theirs).sum())
    assert higher + lower < 20
    expected = binomtest(higher, higher + lower, 0.5, alternative="greater").pvalue
    assert sign_test(ours, theirs) == pytest.approx(expected, rel=1e-10)
    counted_as_higher = binomtest(20 - lower, 20, 0.5, alternative="greater").pvalue
    assert sign_test(ours, theirs) != pytest.approx(counted_as_higher, rel=1e-3)


def test_equal_errors_are_no_evidence():
    assert sign_test([0.3] * 20, [0.3] * 20) == 1.0


def test_holm_by_hand():
    # Sorted: .005 * 4, .01 * 3, .03 * 2, and .04 * 1 raised to the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def _cell(method, errors, *, data_set="toy", f1=0.5, epsilon=1.0):
    family = "default" if method == "default" else "published"
    config = Config(data_set, method, epsilon, "{}", 0, None)
    results = tuple(Result(replace(config, seed=i), error, f1, 3, 0.1) for i, error in enumerate(errors))
    return Cell(data_set, method, family, epsilon, "{}", results)


def test_what_must_be_lost_is_lost_and_nothing_else():
    theirs = _cell("DPIGHT", [0.5] * SEEDS)
    always, mostly = [0.6] * SEEDS, [0.6] * 13 + [0.4] * 7
    words = {
        name: judge([_cell("default", errors), theirs], "default", published)[0].word
        for name, errors in {"always": always, "mostly": mostly, "never": [0.4] * SEEDS}.items()
    }
    assert words == {"always": "lost", "mostly": "not higher", "never": "lower"}


def test_a_lower_mean_does_not_hide_a_loss_in_nearly_every_seed():
    ours = [0.51] * 19 + [0.0]
    (verdict,) = judge([_cell("default", ours), _cell("DPIGHT", [0.5] * SEEDS)], "default", published)
    assert np.mean(ours) < 0.5
    assert verdict.word == "lost"


def test_one_bad_cell_among_many_is_corrected_for():
    fifteen = [0.6] * 15 + [0.4] * 5
    alone = [_cell("default", fifteen), _cell("DPIGHT", [0.5] * SEEDS)]
    assert judge(alone, "default", published)[0].word == "lost"
    others = [
        _cell(method, [error] * SEEDS, data_set=f"toy {i}")
        for i in range(9)
        for method, error in (("default", 0.4), ("DPIGHT", 0.5))
    ]
    verdict = judge([*alone, *others], "default", published)[0]
    assert verdict.p_value == pytest.approx(10 * 21_700 / 2**20)
    assert verdict.word == "not higher"


def test_a_method_that_refuses_has_lost():
    refused = Cell("toy", "default", "default", 1.0, "{}", (), "epsilon: too small")
    (verdict,) = judge([refused, _cell("DPIGHT", [0.5] * SEEDS)], "default", published)
    assert verdict.word == "lost"


def test_the_best_published_method_of_the_same_cell_is_compared_with():
    cells = [
        _cell("default", [0.4] * SEEDS, f1=0.6),
        _cell("DPIGHT", [0.5] * SEEDS, f1=0.55),
        _cell("TwoStage", [0.9] * SEEDS, f1=0.7),
        _cell("PrivateLasso", [0.1] * SEEDS, epsilon=5.0),
    ]
    (verdict,) = judge(cells, "default", published)
    assert verdict.best.method == "DPIGHT"
    assert verdict.higher_f1
    assert verdict.most_f1 == pytest.approx(0.7)


# ---------------------------------------------------------------------------------------------------------------------
# Bookkeeping

PLAN = Plan(quick=True, epsilons=(1.0,), seeds=4, search_seeds=2)
SMALL = [DATA_SETS["diabetes"], DATA_SETS["breast cancer"]]
RIVALS = [METHODS["PrivateLasso"], METHODS["DPIGHT"]]


class Killed(Results):
    """Dies after so many results, in the middle of a line."""

    left = 10

    def add(self, result):
        if self.left == 0:
            with self._path.open("a", encoding="utf-8") as file:
                file.write('{"config": {"data_set": "dia')
            raise KeyboardInterrupt
        self.left -= 1
        super().add(result)


def _lines(folder):
    """What is in the file, without times; half a line is none."""
    found = []
    for line in (folder / FILE_NAME).read_text().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        del entry["seconds"]
        found.append(json.dumps(entry, sort_keys=True))
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    run(PLAN, SMALL[:1], RIVALS, results_in(folder), jobs=1)
    return folder


def test_a_killed_run_goes_on_and_ends_with_the_same_results(whole, tmp_path):
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(PLAN, SMALL[:1], RIVALS, Killed(tmp_path / FILE_NAME, Result), jobs=1)
    assert len(_lines(tmp_path)) == 20
    run(PLAN, SMALL[:1], RIVALS, results_in(tmp_path), jobs=1)
    parts, expected = _lines(tmp_path), _lines(whole)
    assert len(parts) == len(set(parts)) == len(expected)
    assert set(parts) == set(expected)
    # Nothing is left to be done.
    before = (tmp_path / FILE_NAME).read_bytes()
    run(PLAN, SMALL[:1], RIVALS, results_in(tmp_path), jobs=1)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_every_method_of_a_cell_has_all_seeds_at_one_setting(whole):
    cells = summarise(results_in(whole), PLAN, SMALL, [NON_PRIVATE, *RIVALS])
    assert [(cell.data_set, cell.method) for cell in cells] == [
        ("diabetes", name) for name in (NON_PRIVATE.name, "PrivateLasso", "DPIGHT")
    ]
    for cell in cells:
        assert [result.config.seed for result in cell.results] == list(range(PLAN.seeds))
        assert len({result.config.setting for result in cell.results}) == 1
        assert all(result.f1 is not None for result in cell.results if cell.family == "published")


def _fill(results, data_set, method, plan, epsilon, error):
    """Results of a whole grid; ``error(setting number, seed)``, None for a refusal."""
    rows = data_set.training_rows(plan.quick)
    for number, setting in enumerate(method.grid(data_set, plan.quick)):
        for seed in range(plan.seeds):
            value = error(number, seed)
            config = Config(data_set.name, method.name, epsilon, json.dumps(setting, sort_keys=True), seed, rows)
            results.add(Result(config, value, 0.5, 3, 0.1, refusal="no" if value is None else None))


def test_the_oracle_takes_the_lowest_mean_of_the_search_seeds_alone(tmp_path):
    data_set, method = DATA_SETS["diabetes"], METHODS["DPIGHT"]
    settings = [json.dumps(setting, sort_keys=True) for setting in method.grid(data_set, True)]
    # Of the first, one seed beyond the search is very good; of the second, both of the search are; the third refuses.
    table = {0: [0.6, 0.6, 0.0, 0.0], 1: [0.5, 0.6, 0.9, 0.9], 2: [None] * 4}
    results = results_in(tmp_path / "one")
    _fill(results, data_set, method, PLAN, 1.0, lambda number, seed: table.get(number, [0.7] * 4)[seed])
    assert best_setting(results, data_set, method, PLAN, 1.0) == (settings[1], None)
    assert best_setting(results, data_set, method, PLAN, 5.0) is None


def test_forgetting_a_method_keeps_the_others(tmp_path):
    results = results_in(tmp_path)
    for name in ("default", "DPIGHT", "default"):
        for epsilon in (1.0, 5.0):
            results.add(Result(Config("toy", name, epsilon, "{}", 0, None), 0.1, None, 1, 0.1))
    results.forget({"default"})
    assert {result.config.method for result in results} == {"DPIGHT"}
    again = results_in(tmp_path)
    assert [result.config.epsilon for result in again] == [1.0, 5.0]
    assert Config("toy", "default", 1.0, "{}", 0, None) not in again


def test_an_absent_file_is_told_and_the_others_run(tmp_path, monkeypatch):
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    results = results_in(tmp_path)
    plan = replace(PLAN, epsilons=(1.0,), seeds=1, search_seeds=1)
    (sentence,) = run(plan, [DATA_SETS["splice"], DATA_SETS["diabetes"]], RIVALS[:1], results, jobs=1)
    assert "splice.npz" in sentence
    assert {result.config.data_set for result in results} == {"diabetes"}


def test_a_refusal_is_written_down_and_a_bug_is_not(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise ParameterError("epsilon", 0.1, "more", "raise it")

    config = Config("diabetes", "refuses", 1.0, "{}", 0, None)
    monkeypatch.setitem(METHODS, "refuses", Method("refuses", "sound", ("regression",), refuse))
    result = running.fit(config)
    assert result.error is None
    assert result.refusal == "epsilon=0.1: expected more; raise it."

    def stumble(*arguments):
        raise ZeroDivisionError

    monkeypatch.setitem(METHODS, "refuses", Method("refuses", "sound", ("regression",), stumble))
    with pytest.raises(ZeroDivisionError):
        running.fit(config)


def test_the_report_shows_lost_cells_as_lost(tmp_path):
    plan = replace(QUICK, epsilons=(1.0,), seeds=SEEDS)
    results = results_in(tmp_path / "results")
    for data_set, error in zip(SMALL, (0.9, 0.1), strict=True):
        _fill(results, data_set, DEFAULT, plan, 1.0, lambda number, seed, error=error: error)
        _fill(results, data_set, METHODS["DPIGHT"], plan, 1.0, lambda number, seed: 0.5 + 0.01 * number)
    # One seed is missing: an unfinished cell is not judged, however good it looks.
    _fill(results, SMALL[0], METHODS["PrivateLasso"], replace(plan, seeds=19), 1.0, lambda number, seed: 0.0)
    text = write_report(results, plan, SMALL, list(METHODS.values()), tmp_path / "report").read_text()
    assert "lower: 1, not higher: 0, lost: 1" in text
    assert "Cells lost: diabetes at 1." in text
    (row,) = [line for line in text.splitlines() if line.startswith("| diabetes | 1 |")]
    assert row.endswith("| **lost** |")
    assert "0.900 / 0.50" in row
    assert "DPIGHT | n_steps 10, step 0.1 | 0.500 / 0.50" in row
    assert "| PrivateLasso |" not in text
    header, *rows = (tmp_path / "report" / "summary.csv").read_text().splitlines()
    assert header.startswith("set,epsilon,method,setting,seeds,error")
    assert 'breast cancer,1,DPIGHT,"n_steps 10, step 0.1",20,0.5,0,,,,0.5,3,0.1,,,,,,,' in rows
    for picture in (tmp_path / "report" / "figures").glob("*.png"):
        assert picture.stat().st_size < 60_000


# ---------------------------------------------------------------------------------------------------------------------
# Data


def _stacked(first, second):
    return sp.vstack((first, second), format="csr") if sp.issparse(first) else np.vstack((first, second))


def _dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _depends_on_others(scale, X):
    """Whether rows are scaled otherwise when a far larger one stands behind them."""
    alone, together = _dense(scale(X)), _dense(scale(_stacked(X, 50 * X[-1:] + X[:1])))
    return not np.array_equal(alone, together[:-1])


def _raw_rows(data_set):
    if data_set in SYNTHETIC:
        return 3.0 * np.random.default_rng(0).standard_normal((20, data_set.n_columns))
    try:
        records = data_set.records(0, SHARED)
    except DataError as error:
        pytest.skip(str(error))
    rows = np.random.default_rng(0).choice(records.y.size, 60, replace=False)
    return records.X[rows].astype(np.float64)


@pytest.mark.parametrize("data_set", [*SYNTHETIC, *GENERATED, *REAL], ids=lambda data_set: data_set.name)
def test_scaling_is_by_public_constants(data_set):
    X = _raw_rows(data_set)
    scaled = _dense(data_set.scale(X))
    assert scaled.shape[1] == data_set.n_columns
    assert np.abs(scaled).max() <= 1.0
    assert np.ptp(scaled) > 0.5
    assert not _depends_on_others(data_set.scale, X)


def test_scaling_by_the_datas_own_maximum_would_be_seen():
    X = _raw_rows(DATA_SETS["diabetes"])
    assert _depends_on_others(lambda X: MaxAbsScaler().fit_transform(X), X)


@pytest.mark.parametrize("data_set", REAL, ids=lambda data_set: data_set.name)
def test_targets_of_real_sets_lie_within_their_public_bounds(data_set):
    try:
        problem = draw(data_set, 0, 500, SHARED)
    except DataError as error:
        pytest.skip(str(error))
    for y in (problem.y, problem.y_test):
        assert np.abs(y).max() <= 1.0
        if data_set.task == "classification":
            assert set(np.unique(y)) == {0, 1}
    assert problem.y.size <= 500


def _counted(n_train=None):
    """A hundred rows that hold their own numbers."""
    X = np.arange(100.0)[:, None] * [[1.0, 1.0]]
    records = Records(X, np.arange(100.0), n_train, None)
    bounds = (0.0, 99.0)
    return DataSet("counted", "regression", 2, 1, 1.0, lambda seed, folder: records, lambda X: X, "", bounds, "mse")


def test_a_split_is_the_same_for_every_method_and_another_for_every_seed():
    one, again, other = (draw(_counted(), seed, None, None) for seed in (0, 0, 1))
    assert np.array_equal(one.X, again.X)
    assert not np.array_equal(one.X_test, other.X_test)
    rows = np.concatenate((one.X[:, 0], one.X_test[:, 0]))
    assert sorted(rows) == list(range(100))
    assert one.X_test.shape[0] == 20
    # The target goes with its row.
    assert np.allclose((one.y + 1.0) / 2.0 * 99.0, one.X[:, 0])


def test_a_limit_on_rows_thins_the_training_part_alone():
    whole, thinned = (draw(_counted(70), 3, rows, None) for rows in (None, 25))
    assert np.array_equal(whole.X_test, thinned.X_test)
    assert sorted(whole.X_test[:, 0]) == list(range(70, 100))
    assert thinned.X.shape[0] == 25
    assert set(thinned.X[:, 0]) <= set(range(70))


def test_errors_by_hand():
    regression = _counted()
    y = np.array([-1.0, 1.0])
    # A prediction beyond the bounds counts as the bound: residuals 0.5 and 0, variance 1.
    assert error_of(regression, y, np.array([-0.5, 7.0])) == pytest.approx(0.125)
    labels = np.array([0, 0, 1, 1])
    margins = np.array([-2.0, 1.0, 0.5, 3.0])
    assert error_of(replace(regression, error="misclassified"), labels, margins) == 0.25
    # Of four pairs one is in the wrong order.
    assert error_of(replace(regression, error="auc"), labels, margins) == 0.25


def test_a_constant_prediction_has_an_auc_of_one_half():
    assert error_of(replace(_counted(), error="auc"), np.array([0, 1, 1]), np.zeros(3)) == 0.5


def test_rows_are_shortened_to_the_bound_and_not_lengthened():
    X = np.array([[3.0, 4.0], [0.3, 0.4]])
    for table in (X, sp.csr_array(X)):
        assert np.allclose(_dense(shortened(table, 1.0)), [[0.6, 0.8], [0.3, 0.4]])


def test_the_non_private_fit_finds_what_is_there():
    X, y, coef = make_screening_linear(800, 100, random_state=0)
    regression = DATA_SETS["screening"]
    assert np.array_equal(l1_support(regression, X, y), coef != 0)
    X, y, coef = make_sparsifier_logistic(3000, 30, random_state=0)
    found = l1_support(replace(DATA_SETS["Sparsifier logistic"], k=7), X, y)
    assert np.array_equal(found, coef > 0.5)
    assert isinstance(NON_PRIVATE.fit(replace(regression, k=3), draw(SMALL[0], 0, None, None), None, 0), Fitted)


def test_the_readme_tells_how_every_set_is_scaled():
    text = (Path(running.__file__).parent / "README.md").read_text(encoding="utf-8")
    for data_set in DATA_SETS.values():
        assert f"| {data_set.name} | {data_set.k} | {data_set.row_bound:g} | {data_set.scaling} |" in text
