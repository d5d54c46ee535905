"""The experiments of Sparsifier: transcription, draws, measures, claims, and that no printed number lacks a row."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from taciturn.core.rng import Stream
from taciturn.datasets import Dataset, load_dataset
from taciturn.losses import LogisticLoss
from taciturn.published import Sparsifier
from taciturn.published.frank_wolfe import noisy_frank_wolfe
from taciturn_research.reproduce.experiment import Numbers, judge_claim, judge_number
from taciturn_research.reproduce.sparsifier import (
    EXPERIMENTS,
    appendix,
    claims,
    curves,
    methods,
    tables,
)
from taciturn_research.reproduce.sparsifier.methods import (
    FEWER,
    LASSO,
    PRINTED_SETS,
    REFERENCE,
    SETS,
    SPARSIFIER,
    STOPPED,
    RawRecords,
    Sample,
    by_columns,
    read,
    standardised,
    unit_rows,
)

# Trials of experiments, some of them on real sets.
pytestmark = pytest.mark.slow

DATA = Path(os.environ.get("TACITURN_DATA") or Path(__file__).parents[4] / "shared" / "data")
COLUMNS = dict(zip(PRINTED_SETS, (118, 54, 60, 68, 100, 112, 123, 300, 2000, 5000), strict=True))


@pytest.fixture(autouse=True)
def one_thread():
    """As in the trials of a run."""
    with threadpool_limits(limits=1):
        yield


def small_sample(n=120, d=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = (X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(n) > 0).astype(float)
    return Sample(X[: n - 20], y[: n - 20], X[n - 20 :], y[n - 20 :])


# ---------------------------------------------------------------------- what the paper prints


def test_printed_ratios_are_those_of_printed_counts_but_for_one():
    for name, line in PRINTED_SETS.items():
        for count, ratio in (line.lasso, line.sparsifier):
            if (name, count) != ("COVTYPE", 30.38):
                # Two digits, and as it seems not of the same runs.
                assert ratio == pytest.approx(count / line.non_private, rel=0.08)
    covtype = PRINTED_SETS["COVTYPE"]
    assert covtype.lasso[1] == pytest.approx(54 / covtype.non_private, abs=0.005)


def test_printed_counts_lie_in_the_printed_range():
    for name, line in PRINTED_SETS.items():
        root = math.sqrt(COLUMNS[name])
        assert math.floor(root) <= line.sparsifier[0] <= 2 * root
        assert math.floor(root) <= line.sparse_sparsifier[0] <= 2 * root
        assert line.lasso[0] <= COLUMNS[name]
        assert abs(line.sparse_lasso[0] - line.sparse_sparsifier[0]) <= 8


def test_printed_accuracies_of_colon_are_fractions_of_twelve_records():
    for accuracy, right in ((PRINTED_SETS["COLON"].sparse_sparsifier[1], 502), (83.33, 500)):
        assert accuracy == pytest.approx(100 * right / 600, abs=0.005)


def test_every_item_of_the_paper_is_there():
    items = {item for experiment in EXPERIMENTS for item in experiment.items}
    figures = {f"Figure {number}" for number in range(1, 6)}
    assert items == {"Table 1", "Table 2", *figures, "Section 5", "Appendix A", "Appendix B"}
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)
    assert len(tables.TABLES.published) == 10 * (5 + 6)
    places = [(*published.of.items(), published.item) for published in tables.TABLES.published]
    assert len(set(places)) == len(places)


# ---------------------------------------------------------------------- the reference


def wide_sample(sparse):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (150, 40)) * rng.uniform(0.2, 4.0, 40)
    X[rng.random(X.shape) < 0.6] = 0.0
    X = X.round(1)
    X[:, 7] = X[:, 3]  # equal columns: the first stays the one chosen
    y = (X @ rng.standard_normal(40) + rng.standard_normal(150) > 0).astype(float)
    return (sp.csr_array(X) if sparse else X), y


def slow_reference(X, y, n_steps):
    settings = {"radius": 10.0, "n_selections": n_steps, "noise_scale": 0.0, "stream": Stream.of(0)}
    return noisy_frank_wolfe(X, y, LogisticLoss(), **settings)


@pytest.mark.parametrize("sparse", [True, False])
def test_the_quick_reference_makes_the_same_steps(sparse):
    X, y = wide_sample(sparse)
    for n_steps in (1, 2, 30, 400):
        quick = methods.noiseless_frank_wolfe(X, y, radius=10.0, n_steps=n_steps)
        # Equal columns of a dense table may differ by rounding, so the table that decides is the sparse one.
        slow = slow_reference(sp.csr_array(X), y, n_steps)
        assert np.allclose(quick, slow, atol=1e-10)
        assert np.array_equal(quick != 0, slow != 0)
    assert quick[3] != 0
    assert quick[7] == 0


def test_columns_would_be_missed_if_moves_were_not_added_up(monkeypatch):
    X, y = wide_sample(sparse=True)
    step = methods._Groups.step
    monkeypatch.setattr(methods._Groups, "step", lambda self, *move: 0.0 * step(self, *move))
    blind = methods.noiseless_frank_wolfe(X, y, radius=10.0, n_steps=400)
    assert np.count_nonzero(blind) < np.count_nonzero(slow_reference(X, y, 400))


# ---------------------------------------------------------------------- records


def test_scalings_by_hand():
    X = np.array([[3.0, 0.0, -1.0], [-6.0, 0.0, 4.0]])
    assert np.array_equal(by_columns(X), [[0.5, 0.0, -0.25], [-1.0, 0.0, 1.0]])
    assert np.allclose(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])
    for scale in (by_columns, unit_rows):
        assert np.allclose(scale(sp.csr_array(X)).toarray(), scale(X))
    tissues = standardised(np.random.default_rng(0).gamma(2.0, 50.0, (30, 8)))
    assert np.allclose(tissues.mean(axis=0), 0.0)
    assert np.allclose(tissues.std(axis=0), 1.0)


def connections(n=400):
    rng = np.random.default_rng(1)
    X = np.column_stack((rng.uniform(0, 50, n), rng.integers(0, 3, n), rng.uniform(0, 9, n)))
    y = np.where(rng.random(n) < 0.7, -1, 1)
    return Dataset("kddcup99_10pct", X, y, "classification", categories={1: ("icmp", "tcp", "udp")})


def test_connections_are_coded_one_hot_drawn_in_proportion_and_scaled():
    data = connections()
    source = read(data, name="KDDCUP'99", n_records=100)
    assert source.X.shape == (400, 5)
    assert np.array_equal(source.X.toarray()[:, 1:4], np.eye(3)[data.X[:, 1].astype(int)])
    assert np.array_equal(source.y, data.y == -1)  # benign connections are the positive ones
    sample = source.sample(0)
    drawn = np.concatenate((sample.y, sample.y_test))
    assert drawn.size == 100
    assert drawn.sum() == 64  # 38,420 of 60,000
    lengths = np.linalg.norm(np.vstack((sample.X, sample.X_test.toarray())), axis=1)
    assert np.allclose(lengths, 1.0)


def test_both_parts_of_a_set_are_joined_and_a_fifth_is_for_the_test():
    X, y = np.arange(62.0)[:, None], np.r_[np.full(40, 1), np.full(22, -1)]
    data = Dataset("splice", X[:50], y[:50], "classification", X_test=X[50:], y_test=y[50:])
    source = read(data, name="SPLICE")
    sample = source.sample(5)
    assert (sample.y.size, sample.y_test.size) == (50, 12)
    assert sample.delta == 1 / 50
    assert sorted(np.r_[sample.X, sample.X_test].ravel()) == X.ravel().tolist()
    assert np.array_equal(sample.y_test, sample.X_test.ravel() < 40)
    assert np.array_equal(sample.X, source.sample(5).X)
    assert not np.array_equal(sample.X, source.sample(6).X)


def test_the_test_part_always_has_both_classes():
    y = np.r_[np.ones(38), np.zeros(2)]
    source = RawRecords("SPLICE", np.zeros((40, 1)), y)
    # Left to chance, two of forty records would all be left out of eight in six draws of ten.
    assert all(0 < source.sample(seed).y_test.sum() < 8 for seed in range(50))


def test_every_set_knows_where_its_positive_label_is():
    assert list(SETS) == list(PRINTED_SETS)
    assert [facts.positive for facts in SETS.values()] == [-1, 1, 1, 1, 1, 2, 1, 1, 1, 1]


# ---------------------------------------------------------------------- methods and measures


def test_measures_by_hand():
    records = np.array([[2.0, 1.0], [1.0, 0.0], [0.0, 3.0], [1.0, 5.0]])
    sample = Sample(None, np.ones(1), records, np.array([1.0, 1.0, 0.0, 1.0]))
    # Margins 2, 1, 0, 1 of which the last is right and the third, at 0, counts as negative.
    found = methods.measures(np.array([1.0, 0.0]), 0.0, sample)
    assert found == {"NZ": 1.0, "accuracy": 100.0, "AUC": 100.0}
    # With an intercept of -1.5 only the first is called positive; the order stays.
    assert methods.measures(np.array([1.0, 0.0]), -1.5, sample) == {"NZ": 1.0, "accuracy": 50.0, "AUC": 100.0}
    # Margins -1, 0, -3, -5: one of three pairs is in the wrong order.
    assert methods.measures(np.array([0.0, -1.0]), 0.0, sample)["AUC"] == pytest.approx(200 / 3)


def test_zeros_by_hand():
    truth = np.array([True, True, False, False, False])
    found = np.array([True, False, True, False, False])
    assert curves.zeros(truth, found) == {"correct zeros": 2.0, "incorrect zeros": 1.0, "F1": 0.5}


def test_sparsify_is_a_fit_of_sparsifier_with_a_known_count():
    sample = small_sample()
    settings = {"delta": sample.delta, "n_steps": methods.N_STEPS, "n_count_steps": 25}
    exact = int(np.count_nonzero(methods.noiseless_frank_wolfe(sample.X, sample.y, radius=4.0, n_steps=25)))
    for seed in range(2):
        model = Sparsifier(epsilon_optimise=2.95, epsilon_count=0.05, radius=4.0, random_state=seed, **settings).fit(
            sample.X, sample.y
        )
        weights = methods.sparsify(sample, seed, epsilon=3.0, radius=4.0, n_reference=exact)
        assert np.allclose(weights, model.coef_.ravel(), atol=1e-12)
        assert np.count_nonzero(weights) == int(model.count_)


def test_a_stopped_run_has_the_noise_of_a_thousand_steps():
    sample = small_sample()
    n = sample.y.size
    scale = 10.0 * math.sqrt(8 * 1000 * math.log(n)) / n
    expected = noisy_frank_wolfe(
        sample.X,
        sample.y,
        LogisticLoss(),
        radius=10.0,
        n_selections=14,
        noise_scale=scale,
        stream=Stream.of(2).spawn("frank-wolfe"),
    )
    assert np.allclose(methods.stopped_lasso(sample, 2, 15), expected, atol=1e-12)
    assert not np.allclose(methods.private_lasso(sample, 2, n_steps=15), expected)


def test_steps_until():
    looked_at = []

    def density(n_steps):
        looked_at.append(n_steps)
        return 5.0 * math.log(n_steps)

    assert tables.steps_until(20, density) == math.ceil(math.exp(4.0))
    assert len(looked_at) < 12
    assert tables.steps_until(15, lambda n_steps: n_steps - 1.0) == 16
    assert tables.steps_until(15, lambda n_steps: 14.9) == 1000


# ---------------------------------------------------------------------- rows


def places(rows):
    assert all(math.isfinite(row["value"]) for row in rows)
    found = [frozenset((key, value) for key, value in row.items() if key != "value") for row in rows]
    assert len(set(found)) == len(found)
    return set(found)


def check_rows(name, dataset, n_records):
    prepared = tables.TABLES.prepare(dataset, name=name, n_records=n_records, reference_steps=40)
    rows = tables.TABLES.run(prepared, 7)
    wanted = {frozenset(each.of.items()) for each in tables.TABLES.published if each.of["data set"] == name}
    assert len(wanted) == 10  # five and six, of which the number that Sparsifier keeps stands in both tables
    assert wanted <= places(rows)
    numbers = Numbers(rows)
    about = [claim for claim in tables.TABLES.claims if claim.statement.startswith(f"{name}:")]
    assert len(about) == 2
    assert all(judge_claim(claim, numbers).outcome != "not run" for claim in about)
    values = {(row["method"], row["measure"]): row["value"] for row in rows}
    for method in (LASSO, SPARSIFIER):
        assert values[method, "ratio"] == pytest.approx(values[method, "NZ"] / values[REFERENCE, "NZ"])
    assert values[SPARSIFIER, "NZ"] <= 2 * math.sqrt(COLUMNS[name])
    return prepared, rows


def test_tables_have_a_row_for_every_printed_number_of_the_synthetic_set():
    prepared, rows = check_rows(methods.SYNTHETIC_SET, None, 300)
    assert tables.TABLES.run(prepared, 7) == rows
    assert tables.TABLES.run(prepared, 8) != rows


REAL = [name for name, facts in SETS.items() if facts.dataset not in (None, "gisette")]
HEAVY = ("COLON", "KDDCUP'99", "COVTYPE", "A9A", "W8A", "PHISHING", "MUSHROOM")


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder of data sets, ../shared/data, is not here")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in REAL]
)
def test_tables_have_a_row_for_every_printed_number(name):
    prepared, _ = check_rows(name, load_dataset(SETS[name].dataset, DATA), 200 if name in HEAVY[1:] else None)
    assert prepared.source.X.shape[1] == COLUMNS[name]


@pytest.fixture
def briefly(monkeypatch):
    monkeypatch.setattr(curves, "EPSILONS", (1.0,))
    monkeypatch.setattr(curves, "RADII", (1.0, 10.0))
    for module in (curves, methods, appendix):
        monkeypatch.setattr(module, "N_STEPS", 25)


def test_curves_have_a_row_for_every_method_and_measure(briefly):
    experiment = curves.FIGURES_1_TO_4
    (case,) = experiment.cases
    prepared = experiment.prepare(None, **case.options, n_records=400)
    assert set(prepared.radii.values()) <= {1.0, 10.0}
    rows = experiment.run(prepared, 3)
    assert len(places(rows)) == 9 * 6
    numbers = Numbers(rows)
    assert [judge_claim(claim, numbers).outcome != "not run" for claim in experiment.claims] == [True] * 4
    for picture in experiment.pictures:
        assert len(numbers.summaries(picture.where)) == 9
    for summary in numbers.summaries({"measure": "correct zeros"}):
        lost = numbers.mean({**summary.of, "measure": "incorrect zeros"})
        # 100 coefficients are zeros of either kind, or not zero.
        assert summary.mean + lost + numbers.mean({**summary.of, "measure": "NZ"}) == 100
    assert experiment.run(prepared, 3) == rows
    assert experiment.run(prepared, 4) != rows


def test_the_curves_of_connections_are_about_accuracy(briefly):
    experiment = curves.FIGURE_5
    quick, full = experiment.cases
    assert (quick.setting, full.setting) == ("quick", "full")
    prepared = experiment.prepare(connections(), **quick.options | {"n_records": 200, "n_nonzero": 2})
    rows = experiment.run(prepared, 3)
    assert len(places(rows)) == 9 * 3
    numbers = Numbers(rows)
    (claim,) = experiment.claims
    assert judge_claim(claim, numbers).outcome != "not run"
    assert len(numbers.summaries(experiment.pictures[0].where)) == 9


def test_rows_of_the_appendices(briefly):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 7, (600, 6))
    labels = 1 + (X[:, 0] > 3).astype(int) + (X[:, 1] > 5)
    data = Dataset("covtype", X, (labels == 2).astype(int), "classification", extras={"y_multiclass": labels})
    experiment = appendix.APPENDIX_A
    prepared = experiment.prepare(data, n_records=300)
    rows = experiment.run(prepared, 1)
    assert len(places(rows)) == 2 * 3 * 4
    numbers = Numbers(rows)
    for summary in numbers.summaries({"measure": "share of NZ"}):
        assert summary.mean == pytest.approx(numbers.mean({**summary.of, "measure": "NZ"}) / 18)
    assert [judge_claim(claim, numbers).outcome for claim in experiment.claims] == ["does not hold"] * 2
    assert experiment.run(prepared, 1) == rows

    experiment = appendix.APPENDIX_B
    prepared = experiment.prepare(None, name=methods.SYNTHETIC_SET, n_records=300)
    numbers = Numbers([row for seed in range(2) for row in experiment.run(prepared, seed)])
    assert all(judge_claim(claim, numbers).outcome != "not run" for claim in experiment.claims)
    assert numbers.values({"method": appendix.LITERAL, "measure": "NZ"}) == [10.0, 10.0]


@pytest.mark.parametrize(("n_reference", "at_alpha", "at_beta"), [(7, 0.5012, 0.4768), (58, 0.4768, 0.5012)])
def test_the_private_count_is_a_coin_flip(n_reference, at_alpha, at_beta):
    # q**|k| (1 - q) / (1 + q) with q = exp(-.05 / 10), summed to both sides.
    q = math.exp(-0.005)
    assert (1 / (1 + q), q**10 / (1 + q)) == pytest.approx(sorted((at_alpha, at_beta), reverse=True), abs=5e-5)
    draws = [appendix.count_shares(seed, n_reference) for seed in range(10)]
    means = {key: np.mean([shares[key] for shares in draws]) for key in draws[0]}
    # 10,000 flips: five standard errors.
    assert means["counts at alpha"] == pytest.approx(at_alpha, abs=0.025)
    assert means["counts at beta"] == pytest.approx(at_beta, abs=0.025)
    assert sum(means.values()) == pytest.approx(1.0)


# ---------------------------------------------------------------------- claims


def made(values, **of):
    return [{**of, "value": value} for value in values]


def compared(sparsifier, baseline, name="A", method=STOPPED):
    rows = []
    for measure in ("accuracy", "AUC"):
        rows += made(sparsifier, **{"data set": name, "method": SPARSIFIER, "measure": measure})
        rows += made(baseline, **{"data set": name, "method": method, "measure": measure})
    return rows + made([1.0] * len(sparsifier), **{"data set": name, "method": SPARSIFIER, "measure": "NZ"})


UP = [60.0 + trial for trial in range(10)]
DOWN = [50.0 + 0.5 * trial for trial in range(10)]
MIXED = [value + (-1) ** trial * (1 + trial) for trial, value in enumerate(UP)]


def test_signed_ranks():
    # All ten differences of one sign: 2 / 2**10.
    assert claims.signed_rank(UP, DOWN) == pytest.approx(2 / 2**10)
    assert claims.signed_rank(DOWN, UP) == pytest.approx(2 / 2**10)
    assert claims.signed_rank(UP, UP) == 1.0
    assert claims.signed_rank(UP, MIXED) > 0.3
    # Pairs that agree say nothing.
    assert claims.signed_rank([*UP, 1.0], [*DOWN, 1.0]) == pytest.approx(2 / 2**10)


def test_never_better_and_often_better():
    never = claims.never_better("A", STOPPED)
    assert never(Numbers(compared(UP, DOWN))).holds
    assert never(Numbers(compared(UP, MIXED))).holds
    assert not never(Numbers(compared(DOWN, UP))).holds
    with pytest.raises(LookupError):
        never(Numbers(compared(UP, DOWN, method=FEWER)))
    often = claims.often_better(STOPPED)
    won, lost, even = compared(UP, DOWN, "A"), compared(DOWN, UP, "B"), compared(UP, MIXED, "C")
    assert often(Numbers([*won, *compared(UP, DOWN, "D"), *lost])).holds
    assert not often(Numbers([*won, *lost, *even])).holds
    assert not often(Numbers([*won, *lost])).holds  # half are not most
    with pytest.raises(LookupError):
        often(Numbers([]))


def test_denser_than_the_rest():
    def counts(reference_count, sparsifier, lasso):
        pairs = ((REFERENCE, reference_count), (SPARSIFIER, sparsifier), (LASSO, lasso))
        return [{"data set": "A", "method": method, "measure": "NZ", "value": value} for method, value in pairs]

    assert claims.denser_than_the_rest(Numbers(counts(7, 15, 100))).holds
    assert not claims.denser_than_the_rest(Numbers(counts(7, 100, 100))).holds
    assert not claims.denser_than_the_rest(Numbers(counts(120, 15, 100))).holds


def curve(method, values, measure="F1"):
    of = {"data set": "S", "method": method, "measure": measure}
    return [{**of, "epsilon": epsilon, "value": value} for epsilon, value in zip((0.1, 1.0), values, strict=True)]


def test_best_everywhere_and_few_lost():
    best = claims.best_everywhere("S", "F1", ("a", "b"), ("c", "d"))
    others = [*curve("c", (0.1, 0.4)), *curve("d", (0.2, 0.1))]
    assert best(Numbers([*curve("a", (0.3, 0.9)), *curve("b", (0.5, 0.5)), *others])).holds
    assert not best(Numbers([*curve("a", (0.3, 0.9)), *curve("b", (0.5, 0.3)), *others])).holds
    assert not best(Numbers([*curve("a", (0.2, 0.9)), *curve("b", (0.5, 0.5)), *others])).holds
    with pytest.raises(LookupError):
        best(Numbers(others))
    few = claims.few_lost("S", "a", 1.0)
    assert few(Numbers(curve("a", (1.0, 0.2), "incorrect zeros"))).holds
    assert not few(Numbers(curve("a", (1.1, 0.2), "incorrect zeros"))).holds


def test_the_smaller_claims_both_ways():
    below = claims.all_below({"method": "a"}, 0.5)
    assert below(Numbers(curve("a", (0.5, 0.1)))).holds
    assert not below(Numbers(curve("a", (0.6, 0.1)))).holds
    with pytest.raises(LookupError):
        below(Numbers(curve("b", (0.5, 0.1))))
    assert claims.above({"method": "a"}, 50.0)(Numbers(made([40.0, 61.0], method="a"))).holds
    assert not claims.above({"method": "a"}, 50.0)(Numbers(made([40.0, 60.0], method="a"))).holds
    assert claims.varies({"method": "a"})(Numbers(made([10.0, 20.0], method="a"))).holds
    assert not claims.varies({"method": "a"})(Numbers(made([10.0, 10.0], method="a"))).holds
    flip = claims.between_ends("a", 0.51, 0.48)

    def shares(alpha, beta):
        return Numbers(
            [
                {"method": "a", "measure": f"counts at {end}", "value": value}
                for end, value in (("alpha", alpha), ("beta", beta))
            ]
        )

    assert flip(shares(0.50, 0.475)).holds
    assert not flip(shares(0.50, 0.40)).holds
    assert not flip(shares(0.60, 0.48)).holds


# ---------------------------------------------------------------------- the paper's numbers


@pytest.mark.slow
def test_non_zeros_of_the_synthetic_set_hold():
    """Table 1, line SYNTHETIC: 7 without privacy, 100 for Private LASSO, 15.08 for Sparsifier."""
    (quick,) = (case for case in tables.TABLES.cases_of(quick=True) if case.options["name"] == methods.SYNTHETIC_SET)
    prepared = tables.TABLES.prepare(None, **quick.options)
    numbers = Numbers([row for seed in range(10) for row in tables.TABLES.run(prepared, seed)])
    line = {"data set": methods.SYNTHETIC_SET, "measure": "NZ"}
    for method in (REFERENCE, LASSO, SPARSIFIER):
        (published,) = (
            each for each in tables.TABLES.published if each.item == "Table 1" and each.of == {**line, "method": method}
        )
        assert judge_number(published, numbers).outcome == "holds", method
