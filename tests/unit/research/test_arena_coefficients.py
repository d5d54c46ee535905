"""What the arena measures of coefficients, against numbers by hand, scikit-learn and statsmodels."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression, Ridge

from taciturn_research.arena.catalogue import DATA_SETS
from taciturn_research.arena.coefficients import UNREAD, fit_plainly, n_rare, readings
from taciturn_research.arena.methods import Fitted, calibration_slope, measure
from taciturn_research.arena.run import Cell, Plan, Result, results_in
from taciturn_research.arena.sets import Problem, draw
from taciturn_research.arena.study import FILE, SIZES, Pair, pairs_of, spread, write_study
from taciturn_research.arena.tables import RAW
from taciturn_research.harness import Config

CLASSES, NUMBERS = DATA_SETS["hospital"], DATA_SETS["randhie"]
PACKAGED = [data_set for data_set in RAW if data_set.name != "bank"]


def _problem(n_records=4000, *, numbers=False):
    """Two numbers, a level that 15 records have, one that none has, and the first number once more."""
    rng = np.random.default_rng(0)
    X = np.zeros((n_records, 5))
    X[:, :2] = rng.uniform(-1.0, 1.0, (n_records, 2))
    X[:15, 2] = 1.0
    X[:, 4] = X[:, 0]
    margins = 0.5 + 1.6 * X[:, 0] - X[:, 1]
    y = 0.3 * margins + 0.2 * rng.standard_normal(n_records) if numbers else rng.random(n_records) < _rate(margins)
    return Problem(X, y.astype(float if numbers else np.int64), X[:50], y[:50].astype(float), None)


def _rate(margins):
    return 1.0 / (1.0 + np.exp(-margins))


def _fit(problem, task, columns):
    return fit_plainly(problem, task, np.array(columns, dtype=np.intp).tobytes())


# ---------------------------------------------------------------------------------------------------------------------
# The fit without privacy


def test_the_fit_without_privacy_is_scikit_learns():
    columns = [0, 1, 2, 3, 4]
    problem = _problem()
    expected = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(problem.X, problem.y).coef_.ravel()
    coef, _ = _fit(problem, "classification", columns)
    assert coef == pytest.approx(expected, abs=1e-5)
    # What the records do not settle: an empty level has no weight, twins share theirs.
    assert coef[3] == 0.0
    assert coef[0] == pytest.approx(coef[4], abs=1e-9)
    problem = _problem(numbers=True)
    expected = Ridge(alpha=1.0).fit(problem.X, problem.y).coef_
    assert _fit(problem, "regression", columns)[0] == pytest.approx(expected, abs=1e-9)


def test_its_standard_errors_are_those_of_statsmodels():
    problem = _problem()
    expected = sm.Logit(problem.y, sm.add_constant(problem.X[:, :2])).fit(disp=0).bse[1:]
    assert _fit(problem, "classification", [0, 1])[1] == pytest.approx(expected, rel=0.01)
    problem = _problem(numbers=True)
    expected = sm.OLS(problem.y, sm.add_constant(problem.X[:, :2])).fit().bse[1:]
    assert _fit(problem, "regression", [0, 1])[1] == pytest.approx(expected, rel=0.01)


# ---------------------------------------------------------------------------------------------------------------------
# Readings


def _read(problem, coef, **more):
    coef = np.array(coef, dtype=float)
    return readings(CLASSES, problem, Fitted(np.zeros(50), coef != 0.0, coef, **more))


def test_coefficients_are_compared_with_a_fit_to_the_same_columns():
    problem = _problem()
    kept, _ = _fit(problem, "classification", [0, 1])
    told = _read(problem, [2.0 * kept[0], 2.0 * kept[1], 0, 0, 0])
    assert told["coef_error"] == pytest.approx(1.0)
    assert told["largest"] == pytest.approx(2.0)
    assert (told["signs"], told["rare"]) == (1.0, 0)
    assert told["coef"] == pytest.approx([2.0 * kept[0], 2.0 * kept[1], 0, 0, 0], rel=1e-5)
    # The fit to all columns halves the first of them, because its twin is there: it would say 3.0 and more.
    every, _ = _fit(problem, "classification", [0, 1, 2, 3, 4])
    assert 2.0 * abs(kept[0]) / np.abs(every).max() > 3.0
    assert _read(problem, [kept[0] / 2, kept[1] / 2, 0, 0, 0])["coef_error"] == pytest.approx(0.5)


def test_signs_count_where_they_are_clear():
    problem = _problem()
    (first, second), errors = _fit(problem, "classification", [0, 1])
    assert min(abs(first), abs(second)) > 10.0 * errors.max()
    assert _read(problem, [first, -second, 0, 0, 0])["signs"] == 0.5
    assert _read(problem, [-first, -second, 0, 0, 0])["signs"] == 0.0
    # The sign of an empty level is a matter of taste.
    assert _read(problem, [first, second, 0, -7.0, 0])["signs"] == 1.0
    assert _read(problem, [0, 0, 0, 1.0, 0])["signs"] is None
    assert _read(problem, [0, 0, 0, 1.0, 0])["coef_error"] is None


def test_rare_columns_are_counted_among_those_kept():
    problem = _problem()
    assert n_rare(problem, np.array([0, 1])) == 0
    assert n_rare(problem, np.array([0, 2, 3])) == 2
    # 15 of 3,000 records are half a per cent, which is not fewer.
    assert n_rare(_problem(3000), np.array([2])) == 0
    assert n_rare(_problem(3001), np.array([2])) == 1
    assert _read(problem, [1.0, 0, 0, 1.0, 0])["rare"] == 1
    nothing = _read(problem, [0, 0, 0, 0, 0])
    assert (nothing["rare"], nothing["coef_error"], nothing["largest"]) == (0, None, None)


def test_sets_that_are_no_raw_tables_are_not_read():
    assert readings(DATA_SETS["diabetes"], _problem(), Fitted(np.zeros(50), np.ones(5), np.ones(5))) == UNREAD
    assert readings(CLASSES, _problem(), Fitted(np.zeros(50), np.ones(5, dtype=bool))) == UNREAD


def test_intervals_are_judged_by_the_training_records():
    problem, shown = _problem(), np.array([0, 1])
    logit = sm.Logit(problem.y, sm.add_constant(problem.X[:, :2])).fit(disp=0, cov_type="HC0")
    truth, plain = logit.params[1:], 1.959963984540054 * logit.bse[1:]

    def told(coef, reach):
        return _read(problem, [*coef, 0, 0, 0], shown=shown, reach=np.array(reach))

    covered = told(truth + plain, 1.01 * plain)
    assert (covered["intervals"], covered["coverage"]) == (1.0, 1.0)
    assert covered["width"] == pytest.approx(1.01, rel=1e-3)
    assert told(truth + plain, 0.99 * plain)["coverage"] == 0.0
    half = told(truth, [math.nan, 3.0 * plain[1]])
    assert (half["intervals"], half["coverage"]) == (0.5, 1.0)
    assert half["width"] == pytest.approx(3.0, rel=1e-3)
    none = told(truth, [math.nan, math.nan])
    assert (none["intervals"], none["coverage"], none["width"]) == (0.0, None, None)


# ---------------------------------------------------------------------------------------------------------------------
# Predictions


def test_the_calibration_slope_is_that_of_a_logistic_regression_on_margins():
    rng = np.random.default_rng(1)
    margins = rng.normal(0.5, 2.0, 500)
    y = (rng.random(500) < _rate(margins)).astype(int)
    expected = sm.Logit(y, sm.add_constant(margins)).fit(disp=0).params[1]
    assert calibration_slope(CLASSES, y, margins) == pytest.approx(expected, rel=1e-6)
    # Margins that are too large by 2 have half of the slope, whatever is added to them.
    assert calibration_slope(CLASSES, y, 2.0 * margins + 3.0) == pytest.approx(expected / 2.0, rel=1e-6)
    assert calibration_slope(CLASSES, y, np.ones(500)) is None
    assert calibration_slope(CLASSES, (margins > 0.0).astype(int), margins) is None
    numbers = np.clip(margins / 10.0, -1.0, 1.0)
    assert calibration_slope(NUMBERS, 0.5 * numbers + 0.1, numbers) == pytest.approx(0.5)


def test_the_auc_counts_pairs_in_order():
    y, margins = np.array([0, 1, 0, 1, 1]), np.array([-1.0, 0.5, 0.5, 2.0, -2.0])
    # Six pairs: 2.0 is above both, .5 above one and ties with the other, -2.0 above none.
    problem = Problem(np.zeros((5, 1)), y, np.zeros((5, 1)), y, None)
    assert measure(CLASSES, problem, margins)["auc"] == pytest.approx((2.0 + 1.5 + 0.0) / 6.0)
    assert measure(NUMBERS, replace(problem, y_test=y * 1.0), margins)["auc"] is None


# ---------------------------------------------------------------------------------------------------------------------
# Raw tables


@pytest.mark.parametrize("data_set", PACKAGED, ids=lambda data_set: data_set.name)
def test_raw_tables_have_a_feature_for_every_level_and_the_same_records_for_all_seeds(data_set):
    problem, other = (draw(data_set, seed, None, None) for seed in (0, 1))
    assert np.array_equal(problem.X, other.X)
    assert problem.X.shape[1] == data_set.n_columns == len(data_set.names)
    assert np.abs(problem.X).max() <= 1.0
    for first, size in data_set.blocks:
        block = problem.X[:, first : first + size]
        assert np.array_equal(block.sum(axis=1), np.ones(len(block)))
        assert len({name.partition("=")[0] for name in data_set.names[first : first + size]}) == 1
    inside = {first + place for first, size in data_set.blocks for place in range(size)}
    assert {place for place, name in enumerate(data_set.names) if "=" in name} == inside
    # Public ranges are about those of the records: few values are clipped, and they vary.
    numbers = problem.X[:, [place for place in range(data_set.n_columns) if place not in inside]]
    assert (numbers < 1.0).mean() > 0.85
    assert numbers.std(axis=0).min() > 0.05


def test_the_hospital_has_what_makes_coefficients_wander():
    problem, names = draw(CLASSES, 0, None, None), list(CLASSES.names)
    counts = dict(zip(names, np.count_nonzero(problem.X, axis=0), strict=True))
    assert sum(counts[f"code=c{code}"] == 0 for code in range(1, 31)) == 13
    assert sum(0 < counts[f"ward=w{ward}"] < 0.005 * len(problem.X) for ward in range(1, 13)) == 3
    first, again = (problem.X[:, names.index(name)] for name in ("creatinine", "creatinine_again"))
    assert np.array_equal(first, again)


# ---------------------------------------------------------------------------------------------------------------------
# The study


def test_the_spread_is_over_seeds_that_keep_a_column():
    coefs = np.array([[1.0, 0.0, 5.0, 0.0], [3.0, 0.0, 0.0, 2.0], [5.0, 0.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0]])
    # The first column: deviations -2, 0, 2, 0; the last, kept by half of them, is constant; the others do not count.
    assert spread(coefs) == pytest.approx((math.sqrt(8.0 / 3.0) + 0.0) / 2.0)
    assert math.isnan(spread(np.zeros((4, 2))))


def _cell(method, errors, *, data_set="hospital", epsilon=1.0, **more):
    config = Config(data_set, method, epsilon, "{}", 0, None)
    results = tuple(
        Result(replace(config, seed=seed), error, None, 10, 0.1, **{name: each[seed] for name, each in more.items()})
        for seed, error in enumerate(errors)
    )
    return Cell(data_set, method, "default", epsilon, "{}", results)


def test_worse_is_more_than_one_per_cent_beyond_two_standard_errors():
    before = [1.0, 2.0] * 10
    pair = Pair("10", _cell("now", before), _cell("before", before))
    # A constant difference has no error: 1 % of 1.5 is .015, whichever way an AUC points.
    for added, worse in ((0.014, False), (0.016, True), (-0.016, False)):
        now = _cell("now", [value + added for value in before], auc=[value - added for value in before])
        assert replace(pair, now=now).worse("error") is worse
        assert Pair("10", now, _cell("before", before, auc=before)).worse("auc") is worse
    # Paired: the seeds differ by more than the versions. The same difference, noisy: 2 standard errors are .08.
    noisy = [value + 0.05 + noise for value, noise in zip(before, [0.18, -0.18] * 10, strict=True)]
    assert not replace(pair, now=_cell("now", noisy)).worse("error")


def test_the_page_shows_goals_that_are_met_and_missed(tmp_path, monkeypatch):
    plan = Plan(quick=True, epsilons=(1.0, 3.0), seeds=4, search_seeds=1, few_seeds=4)
    results = results_in(tmp_path)
    for _, now, before in SIZES:
        for method, growing in ((now, False), (before, True)):
            for epsilon in plan.epsilons:
                for seed in range(4):
                    scale = epsilon if growing else 1.0 / epsilon
                    config = Config("hospital", method.name, epsilon, "{}", seed, None)
                    results.add(
                        Result(
                            config, 0.3, None, 2, 0.1, log_loss=0.5, auc=0.8, calibration_slope=1.0, coef_error=0.2,
                            coef=[scale * seed, 1.0], signs=1.0, largest=scale, rare=2 * growing,
                        )
                    )  # fmt: skip
    monkeypatch.setattr("taciturn_research.arena.run.skipped", lambda method, data_set: None)
    page = write_study(results, plan, [CLASSES], tmp_path / "page")
    assert page.name == FILE
    text = page.read_text(encoding="utf-8")
    assert '| the spread of "all" falls with epsilon | now | 1 | 1 |  |' in text
    assert '| the spread of "all" falls with epsilon | before | 1 | 0 | hospital (0.5, 1.5) |' in text
    assert "| the median of the largest is at most 1.5 | before | 6 | 3 | hospital" in text
    assert 'no rare column is kept by "auto" and 10 from epsilon 1 on | now | 4 | 4 |  |' in text
    assert 'no rare column is kept by "auto" and 10 from epsilon 1 on | before | 4 | 0 | hospital' in text
    assert "| 10 | 3 | 2 / 2 | 0.17 / 1.50 | 0.20 / 0.20 | 1.00 / 1.00 | 0.33 / 3.00 | 0.0 / 2.0 |" in text
    assert pairs_of([]) == []
