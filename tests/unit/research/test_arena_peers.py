"""The arena's peers of practice and its measures: what they release is bounded, and what they count is right."""

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss as log_loss_of_scikit_learn

from taciturn_research.arena import peers
from taciturn_research.arena.catalogue import DATA_SETS, METHODS
from taciturn_research.arena.library import DEFAULT_ADVISED, advised_size
from taciturn_research.arena.methods import calibration_error, log_loss, log_odds, slope, willing
from taciturn_research.arena.peers import (
    FitFailedError,
    ask,
    boosted_least_squares,
    clipped_gradient,
    private_descent,
    with_categories,
)
from taciturn_research.arena.report import compared, write_report
from taciturn_research.arena.run import Cell, Plan, Result, best_setting, results_in, setting_from_others, summarise
from taciturn_research.arena.sets import GENERATED, Problem, draw
from taciturn_research.arena.verdict import COMPARISONS, above_constant, judge, of_practice, published_at_k, tally
from taciturn_research.harness import Config

WITHOUT_NOISE = 1e9
REGRESSION = DATA_SETS["diabetes"]
CLASSES = DATA_SETS["breast cancer"]


# ---------------------------------------------------------------------------------------------------------------------
# Methods


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.uniform(-1.0, 1.0, (400, 4)), np.ones(400)))
    y = np.clip(X @ [0.3, -0.2, 0.1, 0.0, 0.2] + 0.1 * rng.standard_normal(400), -1.0, 1.0)
    return X, y


@pytest.mark.parametrize(("n_rounds", "clip"), [(1, 1.0), (30, 1.0)])
def test_adassp_without_noise_is_least_squares(table, n_rounds, clip):
    X, y = table
    rng = np.random.default_rng(1)
    coef = boosted_least_squares(X, y, mu=WITHOUT_NOISE, row_bound=3.0, n_rounds=n_rounds, clip=clip, rng=rng)
    expected = LinearRegression(fit_intercept=False).fit(X, y).coef_
    assert coef == pytest.approx(expected, abs=1e-6)
    noisy = boosted_least_squares(X, y, mu=1.0, row_bound=3.0, n_rounds=n_rounds, clip=clip, rng=rng)
    assert noisy != pytest.approx(expected, abs=1e-2)


class _Recorded:
    """Noise that is zero, and remembers how much of it was asked for."""

    def __init__(self):
        self.sizes = []

    def standard_normal(self, size=None):
        self.sizes.append(size)
        return 0.0 if size is None else np.zeros(size)


def test_adassp_draws_noise_for_every_release(table):
    X, y = table
    rng = _Recorded()
    boosted_least_squares(X, y, mu=1.0, row_bound=3.0, n_rounds=3, clip=0.5, rng=rng)
    # An eigenvalue, the Gram matrix, and a vector in each round.
    assert rng.sizes == [None, (5, 5), 5, 5, 5]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_one_record_moves_a_clipped_gradient_by_no_more_than_the_clip(make):
    rng = np.random.default_rng(2)
    X, derivatives, clip = 3.0 * rng.standard_normal((50, 6)), rng.standard_normal(50), 0.7
    norms = np.linalg.norm(X, axis=1)

    def gradient(rows):
        return clipped_gradient(make(X[rows]), norms[rows], derivatives[rows], clip)

    whole = gradient(np.arange(50))
    moved = [np.linalg.norm(whole - gradient(np.delete(np.arange(50), row))) for row in range(50)]
    assert max(moved) <= clip * (1.0 + 1e-9)
    # Records within the clip are not scaled: without clipping some would move it further.
    lengths = np.abs(derivatives) * norms
    assert moved == pytest.approx(np.minimum(lengths, clip))
    assert lengths.max() > 2.0 * clip


@pytest.mark.parametrize("logistic", [False, True])
def test_a_descent_without_noise_and_clipping_finds_the_minimum(table, logistic):
    X, y = table
    if logistic:
        y = (y > 0.2).astype(np.float64)
        y[::5] = 1.0 - y[::5]
        expected = LogisticRegression(C=np.inf, fit_intercept=False).fit(X, y).coef_.ravel()
    else:
        expected = LinearRegression(fit_intercept=False).fit(X, y).coef_
    settings = {"mu": WITHOUT_NOISE, "n_steps": 2000, "step": 1.0, "rng": np.random.default_rng(3)}
    coef = private_descent(X, y, logistic=logistic, clip=10.0, **settings)
    assert coef == pytest.approx(expected, abs=1e-3)
    clipped = private_descent(X, y, logistic=logistic, clip=0.05, **settings)
    assert clipped != pytest.approx(expected, abs=1e-2)


def test_the_noise_of_a_descent_is_that_of_its_steps_together():
    n_steps, mu, clip, step = 4, 0.5, 2.0, 3.0
    X, y = np.zeros((10, 3000)), np.zeros(10)
    rng = np.random.default_rng(4)
    coef = private_descent(X, y, logistic=False, mu=mu, clip=clip, n_steps=n_steps, step=step, rng=rng)
    # Velocities are sums of noise with weights; the mean of the last two positions is linear in the four draws.
    scale = clip * math.sqrt(n_steps) / mu
    velocity, position, total = np.zeros(4), np.zeros(4), np.zeros(4)
    for number in range(n_steps):
        velocity = 0.8 * velocity + 0.2 * np.eye(4)[number] / 10
        position = position - step * velocity
        total += position * (number >= 2) / 2.0
    expected = scale * np.linalg.norm(total)
    assert np.std(coef) == pytest.approx(expected, rel=0.06)
    assert np.std(coef) != pytest.approx(expected / math.sqrt(n_steps), rel=0.06)


def test_categories_take_the_place_of_their_indicators():
    data_set = replace(DATA_SETS["abalone"], blocks=((0, 3),))
    X = np.array([[0.0, 1.0, 0.0, 0.5], [0.0, 0.0, 0.0, -0.5], [0.0, 0.0, 1.0, 0.1]])
    assert with_categories(data_set, sp.csr_array(X)).tolist() == [[0.5, 2.0], [-0.5, 0.0], [0.1, 3.0]]


def test_a_worker_answers_and_its_errors_are_told(monkeypatch):
    monkeypatch.setattr(peers, "_interpreter", lambda environment: sys.executable)
    script = """
def fit(X, y, X_test, facts):
    print("not an answer")
    if facts["fail"]:
        raise ValueError("no")
    return {"total": float(X.sum() + y.sum())}
"""
    X, y = np.ones((3, 2)), np.arange(3.0)
    for made in (X, sp.csr_array(X)):
        assert ask("nowhere", script, made, y, {"fail": False}) == {"total": 9.0}
    with pytest.raises(FitFailedError, match="nowhere: ValueError: no"):
        ask("nowhere", script, X, y, {"fail": True})
    assert ask("nowhere", script, X, y, {"fail": False}) == {"total": 9.0}


# ---------------------------------------------------------------------------------------------------------------------
# Measures


def test_the_calibration_error_by_hand():
    # Two bins: three records at .9 of which two are positive, one at .1 which is.
    margins = np.log(np.array([9.0, 9.0, 9.0, 1.0 / 9.0]))
    y = np.array([1, 1, 0, 1])
    assert calibration_error(CLASSES, y, margins) == pytest.approx((0.7 + 0.9) / 4)
    # Neighbours of .9 in the same bin cancel, those of another do not.
    assert calibration_error(CLASSES, np.array([1, 0]), np.zeros(2)) == 0.0
    assert calibration_error(CLASSES, np.array([0, 1]), np.array([-9.0, 9.0])) < 1e-3
    # Of a regression: means of .5 and 0, a standard deviation of 1; a prediction of 7 counts as 1.
    assert calibration_error(REGRESSION, np.array([-1.0, 1.0]), np.array([0.0, 7.0])) == pytest.approx(0.5)


def test_the_log_loss_is_scikit_learns_and_stays_finite():
    rng = np.random.default_rng(5)
    margins, y = 3.0 * rng.standard_normal(50), rng.integers(0, 2, 50)
    expected = log_loss_of_scikit_learn(y, 1.0 / (1.0 + np.exp(-margins)))
    assert log_loss(y, margins) == pytest.approx(expected, rel=1e-9)
    assert log_loss(np.array([0]), np.array([1e6])) == pytest.approx(30.0)
    assert log_odds(np.array([-5.0, 0.0, 0.5])) == pytest.approx([-math.log(999.0), 0.0, math.log(3.0)])


def test_the_slope_sees_shrinkage_and_not_a_shift():
    margins = np.array([-1.0, 0.0, 3.0])
    assert slope(margins, 0.5 * margins + 7.0) == pytest.approx(0.5)
    assert slope(np.zeros(3), margins) is None


@pytest.mark.parametrize("data_set", GENERATED, ids=lambda data_set: data_set.name)
def test_true_margins_are_those_of_the_records(data_set):
    problem = draw(data_set, 0, None, None)
    assert problem.X.shape[1] == data_set.n_columns
    assert problem.truth.size == data_set.n_columns
    if problem.margins is None:
        assert data_set.name in ("lognormal", "pure noise")
    elif data_set.task == "regression":
        residuals = problem.y_test - problem.margins
        assert abs(residuals.mean()) < 4.0 * residuals.std() / math.sqrt(residuals.size)
        assert slope(problem.margins, problem.y_test) == pytest.approx(1.0, abs=0.1)
    else:
        assert calibration_error(data_set, problem.y_test, problem.margins) < 0.03
        assert calibration_error(data_set, problem.y_test, 2.0 * problem.margins) > 0.03 * (problem.y.mean() > 0.1)


# ---------------------------------------------------------------------------------------------------------------------
# Counts


def _cell(method, family, errors, *, data_set="diabetes", epsilon=1.0, log_losses=None, nonzeros=3):
    config = Config(data_set, method, epsilon, "{}", 0, None)
    log_losses = log_losses or [None] * len(errors)
    results = tuple(
        Result(replace(config, seed=i), error, 0.5, nonzeros, 0.1, log_loss=log_losses[i])
        for i, error in enumerate(errors)
    )
    return Cell(data_set, method, family, epsilon, "{}", results)


def test_cells_are_counted_with_and_without_the_correction():
    cells = []
    for name, ours in (("a", [0.6] * 10), ("b", [0.6] * 6 + [0.4] * 4), ("c", [0.4] * 10)):
        cells += [_cell("auto", "default", ours, data_set=name), _cell("DP-GD", "practice", [0.5] * 10, data_set=name)]
    total = tally(judge(cells, "auto", of_practice))
    assert (total.n_cells, total.lower, total.higher, total.lost) == (3, 1, 1, 1)
    # In a hundred cells ten seeds are too few for Holm, and enough for a cell by itself.
    many = [replace(cell, data_set=f"{cell.data_set} {i}") for i in range(40) for cell in cells]
    total = tally(judge(many, "auto", of_practice))
    assert (total.n_cells, total.lower, total.higher, total.lost) == (120, 40, 40, 0)


def test_seeds_that_only_one_of_two_has_do_not_count():
    ours = _cell("auto", "default", [0.4] * 3 + [0.9] * 7)
    (verdict,) = judge([ours, _cell("DP-EBM", "practice", [0.5] * 3)], "auto", of_practice)
    assert verdict.lower
    assert verdict.p_alone == 1.0
    (verdict,) = judge([ours, _cell("DP-EBM", "practice", [0.5] * 10)], "auto", of_practice)
    assert not verdict.lower


def test_a_peer_with_few_seeds_is_compared_on_these():
    hard = [0.3] * 3 + [0.5] * 7
    ours, full = _cell("auto", "default", hard), _cell("DP-GD", "practice", hard)
    # Its mean over three easy seeds is lower than that of all ten, and higher than that of the same three.
    for few, best in (([0.35] * 3, "DP-GD"), ([0.25] * 3, "DP-EBM")):
        (verdict,) = judge([ours, _cell("DP-EBM", "practice", few), full], "auto", of_practice)
        assert verdict.best.method == best


def test_the_log_loss_has_a_best_peer_of_its_own():
    cells = [
        _cell("auto", "default", [0.4] * 10, log_losses=[0.7] * 10),
        _cell("DP-GD", "practice", [0.3] * 10, log_losses=[0.9] * 10),
        _cell("AdaSSP", "practice", [0.5] * 10, log_losses=[0.6] * 10),
    ]
    by_error, by_log_loss = (judge(cells, "auto", of_practice, what)[0] for what in ("error", "log_loss"))
    assert (by_error.best.method, by_log_loss.best.method) == ("DP-GD", "AdaSSP")
    assert by_log_loss.higher
    # A regression has none, and no verdict about it.
    assert (
        judge([_cell("auto", "default", [0.4]), _cell("DP-GD", "practice", [0.3])], "auto", of_practice, "log_loss")
        == []
    )


def test_published_methods_at_the_same_k_use_no_more_features():
    k = REGRESSION.k
    assert published_at_k(_cell("Sparsifier", "published", [0.5], nonzeros=k + 1))
    assert not published_at_k(_cell("PrivateLasso", "published", [0.5], nonzeros=k + 2))
    assert not published_at_k(_cell("DP-GD", "practice", [0.5], nonzeros=k))


def test_the_oracle_may_choose_another_setting_for_the_log_loss(tmp_path):
    plan, method, results = (
        Plan(quick=True, epsilons=(1.0,), seeds=2, search_seeds=2),
        METHODS["DP-GD"],
        results_in(tmp_path),
    )
    grid = method.grid(CLASSES, True)
    assert len(grid) == 6
    for number, setting in enumerate(grid):
        text = json.dumps(setting, sort_keys=True)
        for seed in range(2):
            config = Config(CLASSES.name, method.name, 1.0, text, seed, None)
            results.add(Result(config, 0.1 * number, 0.5, 3, 0.1, log_loss=1.0 - 0.1 * number))
    chosen = [best_setting(results, CLASSES, method, plan, 1.0, what)[0] for what in ("error", "log_loss")]
    assert [json.loads(setting) for setting in chosen] == [dict(grid[0]), dict(grid[5])]


def test_the_comparison_shows_ours_beside_the_best_peer(tmp_path):
    plan, results = Plan(quick=True, epsilons=(1.0,), seeds=10), results_in(tmp_path)
    errors = {"default, k auto": 0.61, "default": 0.4, "first edition": 0.7, "ObjectivePerturbation": 0.5}
    for name, error in errors.items():
        for seed in range(10):
            results.add(Result(Config(REGRESSION.name, name, 1.0, "{}", seed, None), error, 0.5, 3, 0.1))
    # As if the other environments were there.
    methods = [replace(method, refuses=willing) for method in METHODS.values()]
    text = compared(results, plan, [REGRESSION], methods, "error")
    (row,) = [line for line in text.splitlines() if line.startswith("diabetes")]
    assert row.split() == [
        "diabetes",
        "1",
        ".",
        "0.6100!",
        ".",
        "0.4000+",
        ".",
        "0.7000",
        "0.5000",
        "ObjectivePerturbation",
    ]
    assert "default against first edition: lower in 1 of 1 (100%)" in text
    assert {comparison.ours for comparison in COMPARISONS} == {
        *("default", "default, k auto", "default, all", "default, as advised")
    }


def test_the_report_marks_cells_that_are_higher(tmp_path):
    plan, results = Plan(quick=True, epsilons=(1.0,), seeds=10), results_in(tmp_path)
    for data_set, error in ((REGRESSION, 0.61), (CLASSES, 0.4)):
        for name, value in (("default, as advised", error), ("ObjectivePerturbation", 0.5)):
            for seed in range(10):
                results.add(Result(Config(data_set.name, name, 1.0, "{}", seed, None), value, 0.5, 3, 0.1))
    report = write_report(results, plan, [REGRESSION, CLASSES], list(METHODS.values()), tmp_path / "report").read_text()
    assert "| default, as advised | best peer of practice | error | 2 | 1 (50%) | 1 (50%) | 1 |" in report
    assert "| diabetes | 1 | 0.610 | 0.500 | ObjectivePerturbation | 0.00098 |" in report
    assert "| breast cancer | 1 | 0.400 | 0.500 |" not in report


def test_the_advised_size_follows_the_records_per_column():
    # mu is .237 at epsilon 1: thirteen records per column are enough for all of them.
    assert advised_size(np.zeros((1_300, 100)), 1.0) == "all"
    assert advised_size(np.zeros((1_200, 100)), 1.0) == "auto"
    assert advised_size(np.zeros((1_200, 100)), 5.0) == "all"
    assert advised_size(sp.csr_matrix((1_200, 100)), 1.0) == "all"
    X, y = np.random.default_rng(0).uniform(-1, 1, (400, 40)), np.zeros(400)
    problem = Problem(X, y, X, y, None, None)
    for epsilon, name in ((1.0, "default, k auto"), (25.0, "default, all")):
        found, same = (each.fit(REGRESSION, problem, epsilon, 0) for each in (DEFAULT_ADVISED, METHODS[name]))
        assert np.array_equal(found.predicted, same.predicted)


def test_settings_from_other_sets_have_no_say_in_their_own(tmp_path):
    plan, method, results = (
        Plan(quick=True, epsilons=(1.0,), seeds=4, search_seeds=2),
        METHODS["DP-GD"],
        results_in(tmp_path),
    )
    sets = [DATA_SETS[name] for name in ("breast cancer", "dense logistic", "digits", "rare class")]
    # On the second and fourth set the first setting is lower; on the others it has 9 and 1 times the lower loss.
    losses = {0: (0.9, 0.1, 0.3, 0.1), 1: (0.1, 0.2, 0.9, 0.15)}
    for place, data_set in enumerate(sets):
        for number, setting in enumerate(method.grid(data_set, True)):
            for seed in range(2):
                config = Config(data_set.name, method.name, 1.0, json.dumps(setting, sort_keys=True), seed, None)
                results.add(Result(config, losses.get(number, (5.0,) * 4)[place], None, 3, 0.1))
    found = [
        method.grid(data_set, True).index(
            json.loads(setting_from_others(results, data_set, sets, method, plan, 1.0, "error")[0])
        )
        for data_set in sets
    ]
    assert found == [0, 1, 0, 1]
    own = [best_setting(results, each, method, plan, 1.0)[0] for each in sets]
    assert [method.grid(sets[0], True).index(json.loads(setting)) for setting in own] == [1, 0, 0, 0]
    cells = summarise(results, plan, sets, [method], from_others=True)
    assert [(cell.data_set, cell.error, len(cell.results)) for cell in cells] == [
        ("breast cancer", pytest.approx(0.9), 2), ("dense logistic", pytest.approx(0.2), 2),
        ("digits", pytest.approx(0.3), 2), ("rare class", pytest.approx(0.15), 2),
    ]  # fmt: skip
    assert setting_from_others(results_in(tmp_path / "none"), sets[0], sets, method, plan, 1.0, "error") is None


def test_log_losses_above_that_of_a_constant_are_counted_where_there_are_records():
    def cell(method, log_losses, epsilon=1.0, records=200, data_set="breast cancer"):
        made = _cell(
            method, "default", [0.1] * len(log_losses), data_set=data_set, epsilon=epsilon, log_losses=log_losses
        )
        return replace(made, results=tuple(replace(result, records=records) for result in made.results))

    # mu is .237 at epsilon 1: 105 records are 24.9, 106 are 25.1.
    constant = cell("constant", [0.6, 0.7, 0.1], epsilon=None)
    for log_losses, records, expected in (
        ([0.68, 0.69], 106, (1, 1)), ([0.68, 0.68], 106, (1, 0)), ([0.9, 0.9], 105, (0, 0)),
    ):  # fmt: skip
        judged, above = above_constant([constant, cell("ours", log_losses, records=records)], "ours", "constant")
        assert (judged, len(above)) == expected
    assert above_constant([constant, cell("ours", [9.0], data_set="digits")], "ours", "constant") == (0, [])
