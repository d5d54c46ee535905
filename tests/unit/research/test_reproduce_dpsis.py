"""The experiments of DP-SIS: rows for everything that the paper prints or claims, and checks that can fail."""

import math
from pathlib import Path

import numpy as np
import pytest

from taciturn import BlockVoteSelector, CorrelationSelector
from taciturn.datasets import DATASETS, Dataset, load_dataset, make_dpsis_instability
from taciturn.metrics import top_great_good
from taciturn.published import DPSIS, TwoStageSelector
from taciturn_research.harness import sign_test
from taciturn_research.reproduce.dpsis import (
    EXPERIMENTS,
    accuracy,
    claims,
    common,
    figures,
)
from taciturn_research.reproduce.dpsis.common import BLOCK_VOTE, CORRELATION, DP_SIS, TWO_STAGE, choose, score
from taciturn_research.reproduce.experiment import Numbers, judge_claim, judge_number

# Trials of experiments, some of them on real sets.
pytestmark = pytest.mark.slow

SHARED = Path(__file__).parents[4] / "shared" / "data"


def made_up(name="made up", n_rows=60, n_columns=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = (X[:, :3].sum(axis=1) > 0).astype(np.int64)
    return Dataset(name, 7.0 * X + 3.0, y, "classification")


def keys_of(rows):
    return [{key: value for key, value in row.items() if key != "value"} for row in rows]


def verdicts(experiment, rows):
    numbers = Numbers(rows)
    judged = [judge_number(published, numbers) for published in experiment.published]
    return judged + [judge_claim(claim, numbers) for claim in experiment.claims]


# ------------------------------------------------------------------ every number and claim has its rows


def test_every_table_and_figure_is_there():
    items = {item for experiment in EXPERIMENTS for item in experiment.items}
    assert items == {"Table 1", "Section 5", *(f"Figure {number}" for number in range(1, 9))}
    drawn = {picture.item for experiment in EXPERIMENTS for picture in experiment.pictures}
    assert drawn == {f"Figure {number}" for number in range(1, 9)}
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)


def test_every_printed_number_of_table_1_has_a_row():
    rows = []
    for case in figures.TABLE_1.cases:
        rows += figures.sizes_and_r2(common.scale_and_fit(made_up(case.dataset)), 0)
    keys = keys_of(rows)
    assert len(figures.TABLE_1.published) == 3 * 19
    assert all(published.of in keys for published in figures.TABLE_1.published)
    assert all(verdict.outcome != "not run" for verdict in verdicts(figures.TABLE_1, rows))
    # A stand-in never answers for the set of the paper.
    assert not any(published.of["data set"] == "yeoh_filtered" for published in figures.TABLE_1.published)


NAMED = ("alon", "borovecki", "chin", "chowdary", "christensen", "sorlie", "yeoh", "yeoh_filtered")
"""The sets about which the paper says something by name, and the stand-ins."""


@pytest.mark.parametrize("experiment", [accuracy.MICROARRAYS, figures.FIGURE_8], ids=lambda each: each.name)
def test_every_claim_about_real_sets_has_its_rows_and_without_them_is_not_run(experiment):
    cases = [case for case in experiment.cases if case.name in NAMED]
    assert len(cases) >= 2
    prepared = {case.name: experiment.prepare(made_up(case.dataset, 30, 40)) for case in cases}
    rows = {name: [row for seed in (0, 1) for row in experiment.run(each, seed)] for name, each in prepared.items()}
    complete = [row for each in rows.values() for row in each]
    assert all(verdict.outcome != "not run" for verdict in verdicts(experiment, complete))
    missing = "yeoh" if experiment is accuracy.MICROARRAYS else "chin"
    without = [row for name, each in rows.items() if name != missing for row in each]
    assert [verdict.outcome for verdict in verdicts(experiment, without)].count("not run") >= 1


def test_the_cases_of_synthetic_sets_have_rows_for_their_claims():
    rows = [row for seed in (0, 1) for row in accuracy.fresh_accuracies(accuracy.no_set(None, n_features=40), seed)]
    assert {row["k"] for row in rows} == {"5", "8"}
    assert all(verdict.outcome != "not run" for verdict in verdicts(accuracy.SYNTHETIC, rows))
    rows = []
    for case in figures.FIGURE_1.cases:
        rows += figures.picks(figures.setting(None, repeats=2, **case.options), 0)
    assert all(verdict.outcome != "not run" for verdict in verdicts(figures.FIGURE_1, rows))


@pytest.mark.parametrize(
    ("run", "prepare"),
    [
        (accuracy.accuracies, lambda: accuracy.score_set(made_up())),
        (accuracy.fresh_accuracies, lambda: accuracy.no_set(None, n_features=40)),
        (figures.measures, lambda: figures.rank_set(made_up(n_columns=12))),
        (figures.picks, lambda: figures.setting(None, outliers=True, repeats=2)),
    ],
    ids=["accuracies", "fresh accuracies", "order statistics", "picks"],
)
def test_rows_are_a_function_of_what_was_prepared_and_of_the_seed(run, prepare):
    prepared = prepare()
    once = run(prepared, 1)
    assert run(prepared, 1) == once
    assert run(prepared, 2) != once


# ------------------------------------------------------------------ the data and the selections


def test_printed_sizes_are_those_of_the_sets_but_for_two_columns():
    shapes = {name: (line.n, line.p) for name, line in common.PRINTED_SETS.items()}
    differing = {name for name, shape in shapes.items() if DATASETS[name].shape != shape}
    assert differing == {"sorlie", "su"} == set(figures._COLUMNS)
    assert all(0.0 < line.r2 < 1.0 and round(line.r2, 4) == line.r2 for line in common.PRINTED_SETS.values())


def test_the_set_is_scaled_as_stated_and_zeros_are_no_reference():
    scaled = common.scale_and_fit(made_up())
    np.testing.assert_allclose(scaled.X.min(axis=0), -1.0)
    np.testing.assert_allclose(scaled.X.max(axis=0), 1.0)
    assert np.abs(scaled.y).max() == pytest.approx(1.0)
    assert scaled.y.mean() == pytest.approx(0.0, abs=1e-12)
    assert np.flatnonzero(common.reference_top(np.array([0.0, -3.0, 1.0, 2.0]), 2)).tolist() == [1, 3]
    assert np.flatnonzero(common.reference_top(np.array([0.0, -3.0, 0.0, 2.0]), 3)).tolist() == [1, 3]


def test_r2_is_that_of_the_lasso_by_its_own_definition():
    scaled = common.scale_and_fit(made_up())
    # At the minimum no column has a correlation with the residuals above the penalty, and those of the model reach it.
    centred = scaled.X - scaled.X.mean(axis=0)
    residuals = scaled.y - centred @ scaled.coef
    slopes = centred.T @ residuals / scaled.y.size
    assert np.abs(slopes).max() <= 0.1 + 1e-3
    np.testing.assert_allclose(np.abs(slopes[scaled.coef != 0.0]), 0.1, atol=1e-3)
    assert scaled.r2 == pytest.approx(1.0 - np.sum(residuals**2) / np.sum(scaled.y**2))
    (row,) = [row for row in figures.sizes_and_r2(scaled, 0) if row["measure"] == figures.R2]
    assert row["value"] == scaled.r2


def test_noise_on_shared_scores_selects_what_whole_fits_select():
    scaled = common.scale_and_fit(made_up())
    scored = score(scaled.X, scaled.y, (4, 7))
    differing = dict.fromkeys((DP_SIS, TWO_STAGE, CORRELATION, BLOCK_VOTE), 0)
    for seed in range(4):
        for k in (4, 7):
            chosen = choose(scored, k, 20.0, seed)
            public = {"n_features_to_select": k, "random_state": seed}
            for method, selector in (
                (DP_SIS, DPSIS(epsilon=20.0, **public)),
                (TWO_STAGE, TwoStageSelector(epsilon=20.0, **public)),
                (CORRELATION, CorrelationSelector(epsilon=20.0, delta=0.0, **public)),
                (BLOCK_VOTE, BlockVoteSelector(epsilon=20.0, delta=0.0, **public)),
            ):
                whole = selector.fit(scaled.X, scaled.y).get_support(indices=True).tolist()
                assert sorted(chosen[method].tolist()) == whole
                differing[method] += sorted(choose(scored, k, 1.0, seed)[method].tolist()) != whole
    # Another budget would be seen.
    assert min(differing.values()) >= 4


def test_accuracies_are_shares_of_k_and_bounded_by_the_ceiling():
    top = np.array([True, True, False, False, True, *[False] * 35])
    scored = score(*_ordered_table(), (4,))
    rows = accuracy.accuracies(accuracy.Question("by hand", scored, {"4": (4, top)}), 0)
    by_method = {(row["method"], row["epsilon"]): row["value"] for row in rows}
    ceiling = by_method[accuracy.CEILING, 20.0]
    assert ceiling == 0.75
    assert {row["value"] for row in rows} <= {0.0, 0.25, 0.5, 0.75}
    # Scores far apart: DP-SIS takes the first four columns, of which the reference has two.
    assert by_method[DP_SIS, 20.0] == 0.5


def _ordered_table():
    """Columns whose correlation sums with the target fall by far: 300, 250, 200, 150, and nothing."""
    y = np.tile([1.0, -1.0], 200)
    X = np.zeros((400, 40))
    for column, sum_ in enumerate((300, 250, 200, 150)):
        X[:sum_, column] = y[:sum_]
    return X, y


def test_sis_is_the_selector_without_noise_and_every_method_picks_five():
    for seed in range(5):
        X, y, _ = make_dpsis_instability(random_state=seed)
        selected = figures.selected(X, y, seed)
        assert all(support.sum() == 5 for support in selected.values())
        standardised = (X - X.mean(axis=0)) / X.std(axis=0)
        sound = CorrelationSelector(epsilon=math.inf, n_features_to_select=5).fit(standardised, y - y.mean())
        np.testing.assert_array_equal(selected[figures.SIS], sound.support_)
        top = np.argsort(-np.abs(np.corrcoef(X.T, y)[-1, :-1]))[:5]
        assert set(np.flatnonzero(selected[figures.SIS])) == set(top)


def test_picks_are_counted_per_thousand_and_sis_finds_the_first_features():
    rows = figures.picks(figures.setting(None, outliers=False, repeats=20), 0)
    for method in (figures.SIS, figures.TWO_STAGE, figures.BLOCK_VOTE):
        by_feature = {row["feature"]: row["value"] for row in rows if row["method"] == method and "feature" in row}
        assert sorted(by_feature) == list(range(1, 101))
        # Five picks in each data set.
        assert sum(by_feature.values()) == pytest.approx(5000.0)
        (first,) = [row["value"] for row in rows if row["method"] == method and "features" in row]
        assert first == pytest.approx(np.mean([by_feature[feature] for feature in range(1, 6)]))
    # Over a hundred picks each, of which chance alone would make five true ones.
    means = {row["method"]: row["value"] for row in rows if "features" in row}
    assert means[figures.SIS] > 800.0 > means[figures.TWO_STAGE] > 200.0


# ------------------------------------------------------------------ measures


def test_top_great_and_good_are_those_of_the_papers_example():
    k = 200
    ranks = set(range(1, k + 1))

    def judged(ranks):
        every = np.arange(1, 1001)
        return top_great_good(-every, np.isin(every, list(ranks)))

    assert judged(ranks) == (True, True, True)
    nearly = judged(ranks - {21} | {220})
    assert not nearly.top
    assert nearly.great
    for worse in (ranks - {20} | {220}, ranks - {21} | {221}):
        assert not judged(worse).great
        assert judged(worse).good
    assert judged(ranks - {3} | {300}).good
    for worst in (ranks - {2} | {300}, ranks - {3} | {301}):
        assert not judged(worst).good


def test_order_statistics_of_a_table_with_scores_far_apart():
    y = np.tile([1, -1], 200)
    X = np.zeros((400, 14))
    for column in range(14):
        X[: 400 - 24 * column, column] = y[: 400 - 24 * column]
    prepared = figures.rank_set(Dataset("by hand", X, (y + 1) // 2, "classification"))
    assert prepared.rank.tolist() == list(range(1, 15))
    rows = figures.measures(prepared, 0)
    at_20 = {row["measure"]: row["value"] for row in rows if row["method"] == DP_SIS and row["epsilon"] == 20.0}
    assert at_20["TOP"] == at_20["GREAT"] == at_20["GOOD"] == 1.0
    # The LASSO keeps one of columns that say the same.
    assert at_20[figures.ACCURACY] <= 0.2


# ------------------------------------------------------------------ claims


def cells(differences, n=20):
    """Accuracies of twenty trials in which DP-SIS is ahead by a difference, for each cell."""
    rows = []
    for (name, k, epsilon), difference in differences.items():
        for trial in range(n):
            place = {"data set": name, "k": k, "epsilon": epsilon}
            spread = 0.001 * (trial % 2)
            rows.append({**place, "method": DP_SIS, "value": 0.4 + max(difference, 0.0) + spread})
            rows.append({**place, "method": TWO_STAGE, "value": 0.4 + max(-difference, 0.0) + spread})
    return Numbers(rows)


def test_sign_test_and_holm_by_hand():
    assert sign_test([1.0] * 5, [0.0] * 5) == pytest.approx(1 / 32)
    assert sign_test([1.0, 1.0, 0.0], [0.0, 0.0, 1.0]) == pytest.approx(0.5)
    assert sign_test([0.3, 0.3], [0.3, 0.3]) == 1.0
    # Thresholds 0.0125, 0.0167, 0.025, 0.05: the third fails, and the fourth with it.
    assert claims.holm([0.03, 0.01, 0.016, 0.04]) == [False, True, True, False]
    assert claims.holm([0.02, 0.02, 0.02]) == [False] * 3


def test_claims_on_all_cells():
    never, many = claims.two_stage_never_better(), claims.better_on_many_sets()
    ahead = cells({("a", "5", 1.0): 0.2, ("a", "5", 2.0): 0.0, ("b", "5", 2.0): 0.1, ("c", "5", 2.0): 0.0})
    assert never(ahead).holds
    assert "0 of 4 cells, DP-SIS in 2" in never(ahead).evidence
    assert many(ahead).holds
    assert "0.20, on a at epsilon = 1" in many(ahead).evidence
    mixed = cells({("a", "5", 1.0): 0.2, ("a", "5", 2.0): -0.2, ("b", "5", 2.0): 0.0, ("c", "5", 2.0): 0.0})
    assert not never(mixed).holds
    assert not many(mixed).holds
    # Of the other k nothing is said.
    assert claims.two_stage_never_better(k="5")(cells({("a", "5", 1.0): 0.0, ("a", "8", 1.0): -0.3})).holds


def test_claims_on_single_sets():
    above = claims.better_above("a", (2.0, 5.0), ("5",))
    assert above(cells({("a", "5", 1.0): -0.1, ("a", "5", 2.0): 0.1, ("a", "5", 5.0): 0.1})).holds
    assert not above(cells({("a", "5", 2.0): 0.0, ("a", "5", 5.0): 0.1})).holds
    with pytest.raises(LookupError):
        above(cells({("b", "5", 2.0): 0.1}))
    same = claims.no_difference(("a", "b"))
    assert same(cells({("a", "5", 1.0): 0.0, ("b", "5", 1.0): 0.0, ("c", "5", 1.0): 0.4})).holds
    for difference in (0.2, -0.2):
        assert not same(cells({("a", "5", 1.0): 0.0, ("b", "5", 1.0): difference})).holds
    here = claims.better_here_not_there("a", "b", 5.0, ("5",))
    assert here(cells({("a", "5", 5.0): 0.2, ("b", "5", 5.0): 0.0})).holds
    assert not here(cells({("a", "5", 5.0): 0.2, ("b", "5", 5.0): 0.2})).holds
    assert not here(cells({("a", "5", 5.0): 0.0, ("b", "5", 5.0): 0.0})).holds


def test_claims_on_means_and_on_r2():
    least = claims.mean_at_least((1.0, 2.0))
    assert least(cells({("a", "5", 1.0): 0.1, ("b", "5", 1.0): -0.05, ("a", "5", 2.0): 0.0})).holds
    assert not least(cells({("a", "5", 1.0): 0.1, ("a", "5", 2.0): -0.05})).holds
    names = ("a", "b", "c", "d", "e")
    follows = claims.gain_follows_r2({name: 0.1 * place for place, name in enumerate(names)}, (5.0, 10.0))
    rising = {(name, "5", epsilon): 0.05 * place for place, name in enumerate(names) for epsilon in (5.0, 10.0)}
    assert follows(cells(rising)).holds
    falling = {(name, k, epsilon): 0.25 - gain for (name, k, epsilon), gain in rising.items()}
    assert not follows(cells(falling)).holds
    assert not follows(cells(dict.fromkeys(rising, 0.1))).holds
    # At one epsilon is not enough.
    assert not follows(cells({cell: gain if cell[2] == 5.0 else 0.1 for cell, gain in rising.items()})).holds


def test_the_claim_of_figure_1():
    def numbers(sis, two_stage):
        return Numbers(
            {"set": name, "method": method, "feature": feature, "value": value}
            for name in ("W1", "W1/W2")
            for method, value in ((figures.SIS, sis), (figures.TWO_STAGE, two_stage))
            for feature in range(1, 101)
        )

    assert figures.first_features_go_to_sis(numbers(962.0, 490.0)).holds
    assert not figures.first_features_go_to_sis(numbers(490.0, 490.0)).holds


@pytest.mark.parametrize(
    ("shares", "holds"), [((0.9, 0.98, 1.0, 0.2), True), ((0.1, 0.98, 1.0, 0.2), False), ((0.9, 0.8, 1.0, 0.2), False)]
)
def test_the_claim_of_figure_8(shares, holds):
    measures = ("TOP", "GREAT", "GOOD", figures.ACCURACY)
    rows = [
        {"data set": "chin", "method": DP_SIS, "epsilon": 20.0, "measure": measure, "value": value}
        for measure, value in zip(measures, shares, strict=True)
    ]
    assert figures.order_statistics_are_found("chin")(Numbers(rows)).holds == holds


# ------------------------------------------------------------------ real data


@pytest.mark.skipif(not (SHARED / "alon.npz").is_file(), reason="the data set alon is not here")
def test_more_is_found_at_a_larger_epsilon():
    prepared = accuracy.score_set(load_dataset("alon", SHARED))
    numbers = Numbers(row for seed in range(10) for row in accuracy.accuracies(prepared, seed))

    def mean(method, epsilon):
        return numbers.mean({"data set": "alon", "k": "5", "method": method, "epsilon": epsilon})

    # Nine coefficients of alon are not zero.
    assert mean(accuracy.CEILING, 1.0) == 1.0
    for method in (DP_SIS, CORRELATION):
        assert mean(method, 0.1) < 0.1 < mean(method, 20.0)
    # As on most sets, two-stage finds next to nothing.
    assert mean(TWO_STAGE, 20.0) < mean(DP_SIS, 20.0) / 2.0


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "christensen.npz").is_file(), reason="the data set christensen is not here")
def test_the_claim_on_christensen_holds():
    prepared = accuracy.score_set(load_dataset("christensen", SHARED))
    numbers = Numbers(row for seed in range(40) for row in accuracy.accuracies(prepared, seed))
    (claim,) = [claim for claim in accuracy.MICROARRAYS.claims if claim.item == "Figure 2"]
    assert claim.check(numbers).holds
