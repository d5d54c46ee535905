"""The experiments of RNM-Screen and ADP-Screen: rows for every printed number, measures, checks of claims."""

import math
from dataclasses import replace
from functools import lru_cache
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from taciturn.core.rng import Stream
from taciturn.datasets import DATASETS, Dataset, make_screening_linear
from taciturn.losses import SquaredLoss
from taciturn.metrics import nonzeros_under_uniform_screening
from taciturn.published import ADPScreen, RNMScreen
from taciturn.published.screening import ScreeningRule, mean_loss, random_start, screened_frank_wolfe
from taciturn_research.harness import sign_test
from taciturn_research.reproduce.experiment import Numbers
from taciturn_research.reproduce.screening import EXPERIMENTS, adp, claims, printed, real, synthetic
from taciturn_research.reproduce.screening.printed import (
    DP_FW,
    NP_FW,
    NP_FW_SCREENED,
    ORACLE,
    PRESELECT,
    STEPWISE,
    row_keys,
)
from taciturn_research.reproduce.screening.sets import (
    SETS,
    TRANSFORMED,
    UNTRANSFORMED,
    Curve,
    explained_share,
    lasso_weights,
    pose,
    recorded_steps,
    scaled,
    support_rates,
)
from taciturn_research.reproduce.screening.synthetic import RNM

# Trials of experiments, some of them on real sets.
pytestmark = pytest.mark.slow

LABELS = [known.label for known in SETS.values()]
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
SMALL = {"n_samples": 200, "n_features": 80, "n_steps": 100}


def stand_in(name):
    """Something small in place of a real set: skewed columns, one constant, for one set missing values."""
    rng = np.random.default_rng(len(name))
    d = 2 * min(max(SETS[name].n_true.values()), 12) + 3
    normal = rng.standard_normal((200, d))
    X = 3.0 * normal + 0.3 * normal**2
    X[:, 1] = 1.0
    y = normal @ rng.laplace(size=d) + rng.standard_normal(200)
    if name == "communities":
        X[::30, 2] = np.nan
    return Dataset(name, X, y, "regression", extras={"y_cost": rng.uniform(0.0, 2.0, 200)})


@lru_cache
def posed(name, transform):
    """What a stand-in is prepared to, with fewer non-zeros and steps."""
    known = SETS[name]
    reduced = replace(known, n_true={transform: reduced_size(known, transform)}, n_steps=min(known.n_steps, 60))
    with patch.dict(SETS, {name: reduced}):
        return pose(stand_in(name), transform=transform)


def reduced_size(known, transform):
    return min(known.n_true[transform], 12)


@lru_cache
def real_rows():
    return [
        row
        for case in real.RNM_REAL.cases
        for seed in (1, 2)
        for row in real.measured_rows(posed(case.dataset, case.options["transform"]), seed)
    ]


@lru_cache
def rows_of(name):
    """Those of two trials of every case, on small data."""
    if name == "rnm-real":
        return real_rows()
    experiment, options = BY_NAME[name], {} if name == "rnm-theorem-4" else SMALL
    return [
        row
        for case in experiment.cases
        for seed in (1, 2)
        for row in experiment.run(experiment.prepare(None, **case.options, **options), seed)
    ]


# ---------------------------------------------------------------------- every number has a row


@pytest.mark.parametrize("name", BY_NAME)
def test_every_printed_number_and_every_claim_finds_its_rows(name):
    experiment = BY_NAME[name]
    rows = rows_of(name)
    keys = [{key: value for key, value in row.items() if key != "value"} for row in rows]
    missing = [published.of for published in experiment.published if published.of not in keys]
    assert missing == []
    numbers = Numbers(rows)
    for claim in experiment.claims:
        assert claim.check(numbers).evidence
    # Nothing that JSON cannot hold.
    assert all(isinstance(row["value"], int | float) and math.isfinite(row["value"]) for row in rows)


def test_all_tables_and_figures_are_there():
    items = {experiment.name: set(experiment.items) for experiment in EXPERIMENTS}
    assert {"Table 1", "Figure 1"} <= items["rnm-synthetic"]
    assert {"Table 2", "Table 3", "Table 4", "Table 5", "Figure 2"} <= items["rnm-real"]
    assert "Theorem 4" in items["rnm-theorem-4"]
    figures = {"ADP-Screen Figure 1", "ADP-Screen Figure 2", "RNM-Screen Figure 3", "RNM-Screen Figure 4"}
    experiments = {f"{paper} experiment {which}" for paper in ("ADP-Screen", "RNM-Screen") for which in "AB"}
    assert figures | experiments <= items["adp-synthetic"]


@pytest.mark.parametrize("name", BY_NAME)
def test_pictures_and_tables_have_numbers(name):
    experiment, numbers = BY_NAME[name], Numbers(rows_of(name))
    for shown in (*experiment.pictures, *experiment.tables):
        found = [summary for summary in numbers.summaries(shown.where) if shown.across in summary.of]
        assert len(found) > 3
    for picture in experiment.pictures:
        if picture.kind == "curves":
            points = numbers.summaries(picture.where)
            per_curve = len(points) / len({tuple(v for k, v in p.of.items() if k != "step") for p in points})
            assert 40 <= per_curve <= 60


def test_rows_are_a_function_of_what_is_prepared_and_of_the_seed():
    problem = posed("abalone", TRANSFORMED)
    assert real.measured_rows(problem, 5) == real.measured_rows(posed.__wrapped__("abalone", TRANSFORMED), 5)
    assert real.measured_rows(problem, 5) != real.measured_rows(problem, 6)
    for experiment in (synthetic.RNM_SYNTHETIC, adp.ADP_SYNTHETIC):
        setting = experiment.prepare(None, **experiment.cases[0].options, **SMALL)
        assert experiment.run(setting, 5) == experiment.run(setting, 5)
        assert experiment.run(setting, 5) != experiment.run(setting, 6)
    assert synthetic.left_rows(None, 5) == synthetic.left_rows(None, 5) != synthetic.left_rows(None, 6)


# ---------------------------------------------------------------------- what is printed


def totals(fraction, candidates):
    """The denominators of which a number with three digits is a fraction."""
    return [n for n in candidates if abs(round(fraction * n) / n - fraction) <= 5e-4 + 1e-12]


def test_printed_rates_are_fractions_of_whole_numbers():
    for row in synthetic.PRINTED.values():
        assert totals(row["TPR"], [70]) == [70]
        assert totals(row["FPR"], [530]) == [530]
    # An average over twenty trials would be a fraction of 1400; the averages printed beside them are no fractions.
    assert totals(synthetic.PRINTED["uncorrelated"]["sparsity"], [600]) == []
    for name, known, tpr, fpr in zip(
        SETS, SETS.values(), *(printed.TABLE_2[rate] for rate in ("TPR", "FPR")), strict=True
    ):
        d, n_true = DATASETS[name].shape[1], known.n_true[TRANSFORMED]
        assert n_true in totals(tpr, [n_true])
        assert d - n_true in totals(fpr, [d - n_true])
        assert abs(n_true - d / 3) <= 6
    # BlogFeedback has one number of non-zeros near a third of 280 that both rates allow.
    possible = range(75, 110)
    assert [n for n in totals(0.580, possible) if 280 - n in totals(0.453, [280 - n])] == [88]
    for name, f1 in (("residential", 0.061), ("blogfeedback", 0.021)):
        assert round(2 / (SETS[name].n_true[UNTRANSFORMED] + 1), 3) == f1
        assert round(2 / (SETS[name].n_true[TRANSFORMED] + 1), 3) != f1


def test_printed_tables_agree_where_they_repeat_each_other():
    assert printed.TABLE_2["F1"] == printed.TABLE_3[RNM]["F1"]
    assert printed.TABLE_4["F1"] == printed.TABLE_5[RNM]["F1"]
    # Oracle-K keeps K coefficients, so that the mean F1 of twenty trials is a fraction of 20 K.
    for table, transform in ((printed.TABLE_3, TRANSFORMED), (printed.TABLE_5, UNTRANSFORMED)):
        for known, f1 in zip(SETS.values(), table[ORACLE]["F1"], strict=True):
            total = 20 * known.n_true[transform]
            assert totals(f1, [total]) == [total]
    assert len(printed.PRINTED) == 8 * (5 + 8 + 3 + 6)


def test_theorem_4_as_printed_and_as_it_is():
    assert synthetic.printed_limits(600, 200) == (pytest.approx(599.0, abs=0.01), 199.0)

    class Enumerated:
        """In place of a generator: the next of all sequences."""

        def __init__(self, d, steps):
            self.all = product(product(range(d), repeat=2), repeat=steps)

        def integers(self, d, size):
            return np.array(next(self.all)).reshape(size)

    for d, steps in ((2, 1), (2, 4), (3, 3)):
        sequences = Enumerated(d, steps)
        count = d ** (2 * steps)
        mean = sum(synthetic.simulate(d, steps, sequences) for _ in range(count)) / count
        assert mean == pytest.approx(nonzeros_under_uniform_screening(d, steps))
    # By the printed expression for finite T, almost every coefficient would be left.
    q, d, steps = 2 / 3, 3, 3
    as_printed = d * q**steps * (1 - q**steps) + sum(
        q ** (steps - i) * (1 - (1 - q) ** (steps - i)) for i in range(1, 4)
    )
    assert abs(as_printed - nonzeros_under_uniform_screening(d, steps)) > 0.2
    rows = {(r["d"], r["steps"], r["by"]): r["value"] for r in synthetic.left_rows(None, 0)}
    assert rows["600", synthetic.FOREVER, synthetic.CORRECTED] == pytest.approx(600 * 599 / 1199)


# ---------------------------------------------------------------------- measures


def test_rates_on_a_case_counted_by_hand():
    true = np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    support = np.array([1, 0, 0, 1, 0, 0, 0, 0], dtype=bool)
    rates = support_rates(true, support)
    # The printed definition: correct / (correct + (incorrect non-zeros + incorrect zeros) / 2).
    assert rates == {"TPR": 1 / 3, "FPR": 1 / 5, "F1": pytest.approx(1 / (1 + (1 + 2) / 2)), "sparsity": 2 / 8}
    assert support_rates(true, np.zeros(8, dtype=bool))["F1"] == 0.0


def test_explained_share_is_the_score_of_a_regression_without_intercept():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) + 1.0
    X[:, 4] = X[:, 0] - 2 * X[:, 1]
    X[:, 5] = 0.0
    factor, spreads = np.linalg.qr(X, mode="r"), np.square(X - X.mean(axis=0)).sum(axis=0)
    kept, others = np.arange(6) < 2, np.arange(6) >= 2
    share = explained_share(factor, spreads, kept, others)

    def score(fit_intercept):
        model = LinearRegression(fit_intercept=fit_intercept).fit(X[:, kept], X[:, others])
        return r2_score(X[:, others], model.predict(X[:, kept]))

    assert share == pytest.approx(score(False))
    assert abs(share - score(True)) > 0.05
    assert explained_share(factor, spreads, kept, np.zeros(6, dtype=bool)) is None
    assert explained_share(factor, spreads, np.zeros(6, dtype=bool), others) is None


def test_sign_test_counts_signs_and_not_sizes():
    ours = [1.0] * 9 + [0.0]
    assert sign_test(ours, [0.5] * 10) == pytest.approx((10 + 1) / 2**10)
    assert sign_test([0.6] * 9 + [-9.0], [0.5] * 10) == pytest.approx(11 / 2**10)
    assert sign_test([0.5] * 10, ours) == pytest.approx(1 - 1 / 2**10)
    assert sign_test([1.0, 1.0], [1.0, 1.0]) == 1.0


def test_steps_that_are_recorded():
    assert recorded_steps(3) == (1, 2, 3)
    steps = recorded_steps(1000)
    assert (steps[0], steps[-1]) == (1, 1000)
    assert 40 <= len(steps) <= 60


def test_curves_see_the_fit_and_do_not_change_it():
    X, y, _ = make_screening_linear(200, 80, random_state=0)
    plain = RNMScreen(n_steps=60, random_state=3).fit(X, y)
    watched = RNMScreen(n_steps=60, random_state=3)
    watched.watch = curve = Curve(60, lambda w, g: np.mean((X @ w - y) ** 2))
    assert np.array_equal(watched.fit(X, y).coef_, plain.coef_)
    assert [step for step, _ in curve.points] == list(recorded_steps(60))
    assert curve.points[-1][1] == pytest.approx(np.mean((plain.predict(X) - y) ** 2))
    assert curve.points[0][1] != pytest.approx(curve.points[-1][1], rel=0.01)


def test_a_watched_fit_can_prove_nothing():
    X, y, _ = make_screening_linear(200, 80, random_state=0)
    plain, watched = RNMScreen(n_steps=5, random_state=3), RNMScreen(n_steps=5, random_state=3)
    watched.watch = Curve(5, lambda w, g: 0.0)
    assert math.isfinite(plain.fit(X, y).certificate_.proved_epsilon)
    *paid, shown = watched.fit(X, y).certificate_.events
    assert tuple(paid) == plain.certificate_.events
    assert (shown.noise, shown.count) == ("none", 5)
    assert math.isinf(watched.certificate_.proved_epsilon)


@pytest.mark.parametrize("epsilon_screen", [2.5, math.inf])
def test_the_gap_is_that_of_the_weights_that_are_left(epsilon_screen):
    X, y, _ = make_screening_linear(200, 80, random_state=0)
    model, seen = (
        ADPScreen(
            **{"epsilon_optimise": 2.5, "epsilon_screen": epsilon_screen},
            loss="squared",
            n_steps=30,
            screen_at=7,
            random_state=1,
        ),
        [],
    )
    rule = ScreeningRule.for_loss("squared", 5.0, 200)
    model.watch = lambda t, w, g: seen.append((rule.gap(w, g), w.copy()))
    model.fit(X, y)
    for gap, w in seen:
        slopes = X.T @ (X @ w - y) / 200
        vertices = 5.0 * np.vstack((np.eye(80), -np.eye(80)))
        assert gap == pytest.approx(max((w - z) @ slopes for z in vertices), rel=1e-9)
    assert np.array_equal(seen[-1][1], model.coef_)


# ---------------------------------------------------------------------- real sets


def test_scaling():
    for name in SETS:
        dataset = stand_in(name)
        X, y = scaled(dataset, UNTRANSFORMED)
        assert np.abs(X).max() == pytest.approx(1.0)
        assert np.abs(y).max() == pytest.approx(1.0)
        raw = np.nan_to_num(dataset.X)
        if SETS[name].libsvm:
            assert np.all(X[:, 1] == 0.0)
            varying = np.arange(X.shape[1]) != 1
            assert np.allclose(X[:, varying].min(axis=0), -1.0)
            assert np.allclose(X[:, varying].max(axis=0), 1.0)
        else:
            assert np.allclose(X, raw / np.abs(raw).max())
        target = dataset.y - dataset.extras["y_cost"] if name == "residential" else dataset.y
        assert np.allclose(y, target / np.abs(target).max())
    X, y = scaled(stand_in("housing"), TRANSFORMED)
    assert [y.mean(), y.std()] == [pytest.approx(0.0, abs=1e-12), pytest.approx(1.0)]
    deviations = X.std(axis=0)
    # One scale for all columns, so that they keep their common variance.
    assert deviations[1] == 0.0
    assert np.allclose(np.delete(deviations, 1), deviations[0])
    assert np.abs(X).max() == pytest.approx(1.0)


def test_problems_keep_the_inner_products_and_the_number_of_nonzeros():
    for name in ("abalone", "pyrim", "residential"):
        problem = posed(name, TRANSFORMED)
        n_true = reduced_size(SETS[name], TRANSFORMED)
        assert set(np.count_nonzero(problem.references, axis=1)) == {n_true}
        both = np.column_stack((problem.X, problem.y))
        assert np.allclose(problem.factor.T @ problem.factor, both.T @ both)
        w = np.random.default_rng(0).standard_normal(problem.X.shape[1])
        assert problem.mean_squared_error(w) == pytest.approx(np.mean((problem.X @ w - problem.y) ** 2))


def test_the_lasso_keeps_the_largest_of_orthogonal_columns():
    X = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 20)))[0]
    sizes = np.linspace(2.0, 1.0, 20) * np.resize([1.0, -1.0], 20)
    weights = lasso_weights(X, X @ sizes, 6)
    assert len(weights) > 5
    for w in weights:
        assert np.flatnonzero(w).tolist() == list(range(6))
        # Soft thresholding by a penalty between the sixth and the seventh size.
        lost = np.abs(sizes[:6]) - np.abs(w[:6])
        assert np.ptp(lost) < 1e-6
        assert abs(sizes[6]) - 1e-6 <= lost[0] < abs(sizes[5])
    assert np.ptp(np.abs(weights).sum(axis=1)) > 0.1


def test_dp_fw_is_rnm_screen_without_screening():
    problem = posed("triazines", TRANSFORMED)
    (n, d), radius, stream = problem.X.shape, 3.0, Stream.of(8)
    split = {"epsilon_optimise": 5.0, "epsilon_screen": 1.0, "delta_optimise": 1 / n, "delta_screen": 1e-3}
    whole = RNMScreen(**split, radius=radius, n_steps=problem.n_steps)
    expected = {
        scale: screened_frank_wolfe(
            mean_loss(problem.X, problem.y, SquaredLoss()),
            ScreeningRule.for_loss("squared", radius, n),
            random_start(radius, d, stream.spawn("start")),
            n_steps=problem.n_steps,
            noise_scale=scale * whole.noise_scale(n),
            stream=stream.spawn("frank-wolfe"),
            screenings=range(0),
            screen=None,
        )
        for scale in (1.0, 1.1)
    }
    found = real.private_frank_wolfe(problem, radius, 8)
    assert np.allclose(found, expected[1.0])
    assert not np.allclose(found, expected[1.1])
    assert np.all(found != 0.0)


def test_the_methods_differ_as_their_names_say():
    rows = {tuple(row.values())[:4]: row["value"] for row in real_rows() if "step" not in row}
    for name, transform in product(SETS, (TRANSFORMED, UNTRANSFORMED)):
        place, problem = (SETS[name].label, transform), posed(name, transform)
        true, d = np.count_nonzero(problem.references[0]), problem.X.shape[1]
        assert rows[*place, ORACLE, "sparsity"] == pytest.approx(true / d)
        assert rows[*place, DP_FW, "sparsity"] == 1.0
        assert rows[*place, PRESELECT, "sparsity"] <= true / d
        assert rows[*place, NP_FW, "MSE"] <= rows[*place, PRESELECT, "MSE"] * 1.05
        assert rows[*place, RNM, "sparsity"] < 1.0


def test_the_screening_of_rnm_screen_sees_nothing():
    X, y, _ = make_screening_linear(random_state=0)
    supports = [
        RNMScreen(epsilon_optimise=4.9, epsilon_screen=epsilon, random_state=1).fit(X, y).support_
        for epsilon in (0.1, 1e-9, math.inf)
    ]
    assert np.array_equal(supports[0], supports[1])
    assert not np.array_equal(supports[0], supports[2])


# ---------------------------------------------------------------------- claims accept and reject


def numbers_of(cells):
    """Rows of trials from values by their keys; a number stands for ten equal trials."""
    rows = []
    for keys, values in cells:
        rows += [{**keys, "value": value} for value in (values if isinstance(values, list) else [values] * 10)]
    return Numbers(rows)


def test_significance_on_exactly_these_sets():
    def check(expected, f1):
        numbers = numbers_of(
            [
                (row_keys(label, TRANSFORMED, method, "F1"), f1[label][place])
                for label in f1
                for place, method in enumerate("ab")
            ]
        )
        return claims.exactly_these(TRANSFORMED, "F1", "a", "b", expected, tuple(f1))(numbers)

    clear, even = (0.6, 0.5), (0.5, 0.5)
    mixed = ([0.6] * 6 + [0.4] * 4, 0.5)
    assert check(("x",), {"x": clear, "y": even, "z": mixed}).holds
    assert check((), {"y": even, "z": mixed, "w": (0.4, 0.5)}).holds
    assert not check((), {"x": clear, "y": even}).holds
    assert not check(("x", "y"), {"x": clear, "y": mixed}).holds
    assert "on x:" in check(("x",), {"x": clear}).evidence


def test_errors_that_fall():
    def check(last):
        cells = [
            (row_keys("x", TRANSFORMED, RNM, STEPWISE) | {"step": step}, value)
            for step, value in ((100, last), (1, 1.0))
        ]
        return claims.error_falls(("x",))(numbers_of(cells)).holds

    assert check(0.5)
    assert not check(1.5)
    with pytest.raises(LookupError):
        claims.error_falls(("y",))(numbers_of([]))


def test_identical_results():
    def check(changed):
        cells = [
            (
                row_keys(label, TRANSFORMED, method, measure),
                0.5 + changed * (label == LABELS[2]) * (method == NP_FW_SCREENED),
            )
            for label, method, measure in product(LABELS, (NP_FW, NP_FW_SCREENED), ("F1", "MSE"))
        ]
        return claims.identical(numbers_of(cells))

    assert check(0.0).holds
    assert not check(1e-6).holds
    assert LABELS[2] in check(1e-6).evidence


def test_lower_r2_but_on_one_set():
    def check(*exceptions):
        cells = [
            (
                row_keys(label, transform, RNM, "R2"),
                0.5 - 0.1 * (transform == UNTRANSFORMED) * (-1) ** (label in exceptions),
            )
            for label, transform in product(LABELS, (TRANSFORMED, UNTRANSFORMED))
        ]
        return claims.lower_r2(numbers_of(cells)).holds

    assert check("BlogFeedback")
    assert not check()
    assert not check("BlogFeedback", "Pyrim")


def synthetic_numbers(**changes):
    """What the paper describes, with changes by method and measure on the correlated set."""
    methods = {
        RNM: {"TPR": 0.8, "FPR": 0.4, "F1": 0.3, "sparsity": 0.5},
        synthetic.BLIND: {"TPR": 0.8, "FPR": 0.4},
        synthetic.ADP: {"TPR": 0.0, "F1": 0.0, "sparsity": 0.0},
    }
    cells = []
    for name in synthetic.CORRELATIONS:
        for method, measures in methods.items():
            for measure, value in measures.items():
                value += 0.1 * (name == synthetic.CORRELATED and measure == "F1" and method == RNM)
                if name == synthetic.CORRELATED:
                    value = changes.get(f"{method.split('-')[0]}_{measure}", value)
                cells.append(({"data set": name, "method": method, "measure": measure}, value))
    return numbers_of(cells)


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (synthetic.better_f1, {"RNM_F1": [0.3] * 6 + [-0.1] * 4}),
        (synthetic.tells_apart, {"RNM_TPR": 0.4}),
        (synthetic.finds_nothing, {"ADP_TPR": 0.06}),
        (synthetic.less_sparse, {"ADP_sparsity": 0.6}),
        (synthetic.correlation_helps, {"RNM_F1": 0.29}),
    ],
)
def test_claims_on_the_synthetic_sets(check, change):
    assert check(synthetic_numbers()).holds
    assert not check(synthetic_numbers(**change)).holds


def adp_numbers(**changes):
    """Every share as the paper has it, or as a change says for (method, screening, coefficients)."""
    shares = {adp.EVERY: 0.01, adp.FIFTIETH: 0.1, adp.LAST: 0.5}
    cells = []
    for method, screening, among in product((adp.A, adp.B, synthetic.ADP), shares, (adp.TRUE, adp.OTHER)):
        share = 1.0 if method == adp.A else shares[screening]
        share = changes.get("shares", {}).get((method, screening, among), share)
        values = share if isinstance(share, list) else [share - 0.004 * (method != adp.A), share] * 5
        cells.append((adp._of(adp.LINEAR, method, screening, among), values))
    for step, (without, noisy) in {1: (5.0, 4.0), **changes.get("gaps", {50: (1.0, 2.0), 99: (0.1, 1.0)})}.items():
        for method, gap in ((adp.NONPRIVATE, without), (adp.PRIVATE, noisy)):
            cells.append(({"loss": adp.LINEAR, "measure": adp.GAP, "method": method, "step": step}, gap))
    return numbers_of(cells)


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        (adp.no_discrimination, {"shares": {(synthetic.ADP, adp.FIFTIETH, adp.TRUE): [0.3, 0.31] * 5}}),
        (adp.no_discrimination, {"shares": {(synthetic.ADP, adp.LAST, adp.OTHER): 0.4}}),
        (adp.overscreens, {"shares": {(synthetic.ADP, adp.EVERY, adp.TRUE): 0.2}}),
        (adp.screens_nothing, {"shares": {(adp.A, adp.FIFTIETH, adp.OTHER): [1.0] * 9 + [0.998]}}),
        (adp.mimics, {"shares": {(adp.B, adp.LAST, adp.TRUE): 0.6}}),
        (adp.smaller_gap, {"gaps": {50: (1.0, 2.0), 99: (1.0, 0.9)}}),
    ],
)
def test_claims_on_adp_screen(check, changes):
    assert check(adp.LINEAR)(adp_numbers()).holds
    assert not check(adp.LINEAR)(adp_numbers(**changes)).holds
    with pytest.raises(LookupError):
        check(adp.LOGISTIC)(adp_numbers())


def test_proportion_to_the_number_of_features():
    def check(large):
        cells = [
            ({"d": d, "steps": synthetic.FOREVER, "by": synthetic.CORRECTED}, v)
            for d, v in (("60", 30.0), ("600", large))
        ]
        return synthetic.stays_in_proportion(numbers_of(cells)).holds

    assert check(300.0)
    assert not check(30.0)
