"""Hard thresholding releases what it declares: sensitivities by search, noise by audit, peeling by its exact law."""

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from laws import chi_square_p, ordered_law, softmax_law
from scipy.stats import beta, norm

import taciturn.methods.descent as solver
from taciturn.accounting import Budget
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.records import Records
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, curvature_sum, derivative_sum, fixed_point_sum, proposal_scores
from taciturn.engines import ArraySource, Block
from taciturn.engines.interface import add_partitions
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.methods.clipped_records import ClippedRecords, Clipping, squared_row_norms
from taciturn.methods.hard_threshold.plan import ThresholdSettings, plan_hard_threshold
from taciturn.methods.hard_threshold.run import run_hard_threshold
from taciturn.methods.releases import LARGEST_WEIGHT
from taciturn.methods.schedule import Problem
from taciturn.methods.sums import CurvatureSum
from taciturn.privacy.gdp import epsilon_of_mu

LOSSES = {"huber": (HuberLoss(0.3), 1), "logistic": (LogisticLoss(), 1), "softmax": (SoftmaxLoss(), 4)}
WEIGHT_BOUND, ROW_SQUARED, CONSTANT, D = 70_001, (3 * ONE // 2) ** 2, ONE // 3, 6
RELATIONS = ("zero-out", "add-remove", "replace-one")


def make_records(loss, n_outputs, seed, n=30):
    """Ordinary records, and some far beyond every bound."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, D)) < 0.6, rng.uniform(-1, 1, (n, D)), 0.0)
    X[: n // 2] = rng.choice([-1.0, 1.0], (n // 2, D))
    X[n // 2] = 0.0
    if isinstance(loss, HuberLoss):
        return X, rng.choice([-ONE, ONE, ONE // 3], n).astype(float)
    y = rng.integers(0, max(n_outputs, 2), n)
    y[3] = -1
    return X, y


def make_coefficients(n_outputs, seed):
    """Iterates as they might be released: none, large ones, and ones that make records certain of a wrong class."""
    rng = np.random.default_rng(seed)
    start = np.zeros((n_outputs, D + 1))
    sure = start.copy()
    sure[0] = 300.0
    return (
        start,
        rng.normal(0, 1, start.shape),
        rng.normal(0, 30, start.shape),
        sure,
        1e6 * rng.normal(size=start.shape),
    )


def open_records(X, y, loss, n_outputs, constant=CONSTANT, kind=ClippedRecords, layout=np.asarray):
    design = Design(layout(X), 1.0)
    bound = loss.lipschitz(math.inf)
    clipping = Clipping(None, design.n_features, loss, n_outputs, ROW_SQUARED, constant, WEIGHT_BOUND, bound)
    return kind(clipping, design, y, squared_row_norms(design))


def changes(X, y, loss, n_outputs, coefficients, statistic, **how):
    """What removing each record does to a statistic."""
    whole = statistic(open_records(X, y, loss, n_outputs, **how), coefficients)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        yield whole - statistic(open_records(X[others], y[others], loss, n_outputs, **how), coefficients)


def gradient_norm(name, relation="zero-out"):
    return derivative_sum(ROW_SQUARED, WEIGHT_BOUND, 2.0 if name == "softmax" else 1.0, relation).value


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("constant", [0, CONSTANT])
@pytest.mark.parametrize("name", LOSSES)
def test_no_sum_moves_by_more_than_its_sensitivity(name, constant, layout):
    loss, n_outputs = LOSSES[name]
    limit, reached = gradient_norm(name), 0.0
    for seed in range(3):
        X, y = make_records(loss, n_outputs, seed)
        for coefficients in make_coefficients(n_outputs, seed):
            here = coefficients[:, : D + (constant > 0)]
            for change in changes(X, y, loss, n_outputs, here, ClippedRecords.sums, constant=constant, layout=layout):
                # Exact integers: no rounding can hide an excess.
                squared = sum(int(value) ** 2 for value in change.ravel())
                assert squared <= limit**2
                reached = max(reached, math.sqrt(squared))
    assert reached >= 0.999 * limit


class UnclippedRows(ClippedRecords):
    """Rows keep their length."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._row_bounds[:], self._factors[:] = WEIGHT_BOUND, 1.0


class RoundedAfterClipping(ClippedRecords):
    """Softmax residuals rounded to the nearest integer, each on its own, at a coarse scale."""

    def weights(self, margins):
        labels = np.eye(self.clipping.n_outputs)[self._codes]
        raw = self.clipping.loss.derivative(margins, labels) * self._row_bounds[:, None] / 1e4
        return 1e4 * np.ceil(np.abs(raw)) * np.sign(raw)

    def sums(self, coefficients):
        return self.sums_at(self.margins(coefficients))


class CommonScale(ClippedRecords):
    """Rows are clipped to a multiple of the longest of all, which one record decides."""

    def __init__(self, clipping, design, target, norms):
        super().__init__(clipping, design, target, norms)
        share = np.sqrt(clipping.row_squared / (norms.max() + clipping.constant**2)) * (1 - 1e-9)
        self._row_bounds[:] = np.floor(clipping.weight_bound * share)


@pytest.mark.parametrize(
    ("name", "kind"), [("huber", UnclippedRows), ("logistic", UnclippedRows), ("softmax", RoundedAfterClipping)]
)
def test_tempting_shortcuts_are_caught(name, kind):
    loss, n_outputs = LOSSES[name]
    X, y = make_records(loss, n_outputs, 0)
    reached = max(
        np.linalg.norm(change)
        for coefficients in make_coefficients(n_outputs, 0)
        for change in changes(X, y, loss, n_outputs, coefficients, kind.sums, kind=kind)
    )
    assert reached > 1.05 * gradient_norm(name)


def test_scales_taken_from_the_data_are_caught():
    loss, n_outputs = LOSSES["huber"]
    X = np.full((60, D), 0.1)
    X[0] = 1.0
    y = np.full(60, float(ONE))
    (largest, *_) = (
        np.linalg.norm(change)
        for change in changes(X, y, loss, n_outputs, np.zeros((1, D + 1)), ClippedRecords.sums, kind=CommonScale)
    )
    assert largest > 3 * gradient_norm("huber")


@pytest.mark.parametrize("name", LOSSES)
def test_no_proposal_and_no_curvature_moves_by_more_than_its_sensitivity(name):
    loss, n_outputs = LOSSES[name]
    limit = proposal_scores(ONE, (2 if name == "softmax" else 1) * WEIGHT_BOUND, "zero-out").value
    reached = {"proposal": 0.0, "curvature": 0.0}
    for seed in range(3):
        X, y = make_records(loss, n_outputs, seed)
        # One short row at the bound of the entries has the largest influence on a single column.
        X[0] = [1.0, *[0.0] * (D - 1)]
        offsets = np.random.default_rng(seed).integers(-(10**9), 10**9, (n_outputs, D + 1))
        for coefficients in make_coefficients(n_outputs, seed):

            def proposals(records, here, offsets=offsets):
                return np.abs(offsets - records.sums(here)).sum(axis=0)[:D]

            def curvature(records, here):
                length = np.linalg.norm(here)
                clipping = SimpleNamespace(columns=None, records=lambda block: records)
                block = Block(records.design, np.zeros(records.design.shape[0]))
                return CurvatureSum(clipping, here / length if length else here, 1000)(block)[0] / 1000

            for change in changes(X, y, loss, n_outputs, coefficients, proposals):
                reached["proposal"] = max(reached["proposal"], np.abs(change).max())
            for change in changes(X, y, loss, n_outputs, coefficients, curvature):
                reached["curvature"] = max(reached["curvature"], abs(change))
        # A row along the direction has the full curvature.
        aligned = np.zeros((n_outputs, D + 1))
        aligned[0, :D] = X[5] / np.linalg.norm(X[5])
        for change in changes(X, y, loss, n_outputs, aligned, curvature):
            reached["curvature"] = max(reached["curvature"], abs(change))
    assert 0.99 * limit <= reached["proposal"] <= limit
    assert 0.95 <= reached["curvature"] <= curvature_sum(1000, "zero-out").value / 1000


def test_replaced_records_count_twice_except_in_sums_of_one_sign():
    assert derivative_sum(9, 5, 1.0, "replace-one") == fixed_point_sum(9, 5, "replace-one")
    assert fixed_point_sum(9, 5, "replace-one").value == pytest.approx(30)
    assert derivative_sum(9, 5, 2.0, "replace-one").value == pytest.approx(30 * math.sqrt(2))
    assert derivative_sum(9, 5, 2.0, "add-remove").value == pytest.approx(15 * math.sqrt(2))
    assert proposal_scores(3, 5, "replace-one").value == 30
    assert {curvature_sum(7, relation).value for relation in RELATIONS} == {7.0}


def test_softmax_residuals_have_the_stated_norm():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(5, 0.1), 100_000)
    squared = ((p - np.eye(5)[0]) ** 2).sum(axis=1)
    assert squared.max() <= 2.0
    assert squared.max() > 1.98
    assert np.abs(p - np.eye(5)[0]).sum(axis=1).max() <= 2.0 + 1e-12


def in_memory(X, y):
    return ArraySource(Records(X, y, np.arange(len(y)), len(y)), 1.0, len(y))


def make_plan(*, epsilon=8.0, peeling=False, **changes):
    problem = Problem(HuberLoss(0.3), "zero-out", n_rows=2, n_features=3)
    settings = ThresholdSettings(n_nonzero=2, row_bound=1.5, clip_share=0.06, n_steps=4, step=1e-9)
    facts = {name: changes.pop(name) for name in tuple(changes) if hasattr(problem, name)}
    return plan_hard_threshold(
        Budget(epsilon, 1e-5), replace(problem, **facts), replace(settings, **changes), peeling=peeling
    )


def test_more_records_than_sums_have_room_for_are_refused():
    """Partitions check their own rows. Their total would wrap: one record would move a sum from end to end."""
    make_plan(n_rows=MOST_PRIVATE_ROWS)
    with pytest.raises(ParameterError, match="^n_rows="):
        make_plan(n_rows=MOST_PRIVATE_ROWS + 1)
    record, part = ONE * LARGEST_WEIGHT, np.array([MOST_PRIVATE_ROWS * ONE * LARGEST_WEIGHT])
    ends = [int(add_partitions(iter((part, part - less)))[0]) for less in (0, record)]
    assert ends == [-(2**63), 2**63 - record]


@pytest.mark.parametrize("mechanism", ["gaussian", "peeling"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 30.0])
def test_mechanisms_cost_no_more_than_the_certificate_says(name, relation, mechanism, epsilon):
    loss, n_outputs = LOSSES[name]
    plan = make_plan(
        loss=loss, relation=relation, peeling=mechanism == "peeling", epsilon=epsilon, n_outputs=n_outputs, step=None
    )
    weight_bound, noise, top_k = plan.gradient_mechanisms(ROW_SQUARED, CONSTANT)
    factor = 2.0 if name == "softmax" else 1.0
    # Peeling releases two columns and the intercept, which bound a record as well.
    squared = ROW_SQUARED if mechanism == "gaussian" else min(ROW_SQUARED, 2 * ONE**2 + CONSTANT**2)
    assert noise.l2_sensitivity == derivative_sum(squared, weight_bound, factor, relation).value
    stated = plan.releases[-1].event.noise_multiplier
    actual = noise.event.noise_multiplier
    assert stated <= actual <= stated * (1 + 2e-3)
    if mechanism == "peeling":
        assert top_k.event == plan.releases[-2].event * 2
        assert plan.releases[-2].count == 2 * plan.n_steps
    _, curvature = plan.curvature_mechanism()
    assert curvature.event.noise_multiplier >= plan.releases[0].event.noise_multiplier


def test_softmax_sums_are_those_of_the_derivative():
    loss, n_outputs = LOSSES["softmax"]
    X, y = make_records(loss, n_outputs, 1)
    for coefficients in make_coefficients(n_outputs, 1):
        sums = open_records(X, y, loss, n_outputs).sums(coefficients)
        rows = np.column_stack((X, np.full(len(y), CONSTANT / ONE)))
        rows *= np.minimum(1, math.sqrt(ROW_SQUARED) / ONE / np.linalg.norm(rows, axis=1))[:, None]
        residuals = loss.derivative(rows @ coefficients.T, np.eye(n_outputs)[y])
        residuals[y < 0] = 0.0
        # Weights are truncated to integers and entries are rounded.
        assert np.allclose(sums / (ONE * WEIGHT_BOUND), residuals.T @ rows, atol=2e-3)


# ------------------------------------------------------------------ the transcript of a fit


def transcripts(plan, X, y, n_runs, monkeypatch, halved=False):
    """Per run the projection of all noisy gradients on the worst record's, in units of its length times sqrt(T)."""
    recorded = []
    original = solver.GradientDescent.release

    def recording(self, sums, current, grain, stream):
        mechanism = self.noise
        if halved:
            mechanism = solver.RoundedGaussian(mechanism.l2_sensitivity, mechanism.log2_scale - 1, mechanism.magnitude)
        noisy, known = original(replace(self, noise=mechanism), sums, current, grain, stream)
        recorded.append(noisy[0] / mechanism.l2_sensitivity)
        return noisy, known

    monkeypatch.setattr(solver.GradientDescent, "release", recording)
    stream, source = Stream.of(len(y)), in_memory(X, y)
    for _ in range(n_runs):
        run_hard_threshold(plan, source, stream.spawn("run"))
    monkeypatch.undo()
    direction = -np.array([1.0, 1.0, 1.0]) / math.sqrt(3.0)
    along = np.array(recorded) @ direction
    return along.reshape(n_runs, plan.n_steps).mean(axis=1)


def audited_epsilon(present, absent, delta, confidence=1e-7):
    """A lower bound on epsilon: one threshold between the two, rates by Clopper and Pearson, Gaussian trade-off."""
    hits, false = int(np.sum(present > 0.5)), int(np.sum(absent > 0.5))
    power = beta.ppf(confidence, hits, len(present) - hits + 1)
    level = beta.ppf(1 - confidence, false + 1, len(absent) - false)
    return epsilon_of_mu(max(norm.ppf(power) - norm.ppf(level), 0.0), delta)


def test_the_transcript_shows_what_the_certificate_says_and_half_the_noise_is_caught(monkeypatch):
    # The first record is longer than the row bound and its residual stays at the clip: the worst there is.
    X, y = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), np.array([float(ONE), 0.0])
    plan, n_runs = make_plan(n_steps=2), 1800
    absent = transcripts(plan, X[1:], y[1:], n_runs, monkeypatch)
    found = audited_epsilon(transcripts(plan, X, y, n_runs, monkeypatch), absent, 1e-5)
    assert 0.7 * 8.0 < found <= 8.0
    broken = transcripts(plan, X, y, 400, monkeypatch, halved=True)
    broken_absent = transcripts(plan, X[1:], y[1:], 400, monkeypatch, halved=True)
    assert audited_epsilon(broken, broken_absent, 1e-5) > 1.3 * 8.0


# ------------------------------------------------------------------ peeling


def law_of_two(scores, scale):
    law = Counter()
    for winners, probability in ordered_law(softmax_law, scores / scale, 2).items():
        law[tuple(sorted(winners))] += probability
    return law


def test_peeled_columns_follow_their_exact_law():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (8, 4))
    y = rng.uniform(-1, 1, 8)
    plan = make_plan(n_rows=8, n_features=4, peeling=True, n_steps=1, step=1.0, row_bound=1.0, epsilon=25.0)
    counts, stream, source = Counter(), Stream.of(1), in_memory(X, np.rint(y * ONE))
    for _ in range(2500):
        weights = run_hard_threshold(plan, source, stream.spawn("run"))
        counts[tuple(np.flatnonzero(weights[0, :4]).tolist())] += 1
    # From the definition: rows clipped to norm 1, the gradient at zero, selections of the stated range at
    # sensitivity 0.3, the largest residual times the largest entry.
    scale = 2 * 0.3 / plan.releases[0].event.epsilon
    residuals = np.clip(-y, -0.3, 0.3)
    clipped = X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None]
    laws = {
        "right": law_of_two(np.abs(clipped.T @ residuals), scale),
        "rows as they are": law_of_two(np.abs(X.T @ residuals), scale),
        "half the noise": law_of_two(np.abs(clipped.T @ residuals), scale / 2),
    }
    p = {name: chi_square_p([counts[cell] for cell in law], list(law.values())) for name, law in laws.items()}
    assert p.pop("right") > 1e-6
    assert max(p.values()) < 1e-9


def test_peeling_scores_are_the_proposed_coefficients():
    records = open_records(*make_records(LOSSES["huber"][0], 1, 0), *LOSSES["huber"], constant=0)
    seen = []

    class Spy(solver.GradientDescent):
        def release(self, sums, current, grain, stream):
            seen.append(current / grain - sums)
            return solver.GradientDescent.release(self, sums, current, grain, stream)

    def run(n_steps):
        constraint = solver.Constraint(records.clipping.width, 6)
        return Spy(n_steps, grain / 0.7, None, 0.7, constraint).run(
            records.sums, np.zeros((1, records.clipping.width)), Stream.of(0)
        )

    grain = 0.7 * 0.3 / (ONE * WEIGHT_BOUND * 30)
    iterates = [run(n_steps) for n_steps in (1, 2, 3)]
    # With nothing thresholded the proposal is the next iterate.
    for proposal, iterate in zip(seen[-3:], iterates, strict=True):
        assert np.allclose(proposal * grain, iterate, atol=1e-9)
