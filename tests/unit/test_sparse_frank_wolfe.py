"""The Frank-Wolfe kernels against slow twins, each other, and the limits they promise."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.accounting import Budget
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import lattice_gradient_scores
from taciturn.datasets import make_power_law_sparse
from taciturn.kernels.frank_wolfe import fetch_column, halvings_of, no_columns
from taciturn.kernels.frank_wolfe_sparse import curve_table, exact_residual, schedule_of, slope_part
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss, SquaredLoss
from taciturn.methods.frank_wolfe import run as frank_wolfe_run
from taciturn.methods.frank_wolfe.estimator import _NOISY_DELTA, _NOISY_EPSILON
from taciturn.methods.frank_wolfe.plan import plan_frank_wolfe
from taciturn.methods.frank_wolfe.run import PATHS, FrankWolfeProblem, choose_path, open_path
from taciturn.methods.schedule import Problem


def loss_named(name, clip=1.0):
    return {"squared": SquaredLoss(), "huber": HuberLoss(clip), "logistic": LogisticLoss()}[name]


def run(X, targets, loss, clip, radius, n_steps, noise_scale, stream, *, valid=None, path=None):
    """A whole run on records whose number is public."""
    problem = FrankWolfeProblem(loss_named(loss, clip), radius, n_steps, noise_scale, X.shape[0])
    return open_path(X, targets, problem, valid=valid, path=path).run(stream)


SPARSE = ("sublinear", "columns", "margins")
CLIP = 0.4


def make_data(seed=0, n=150, d=40, density=0.2):
    rng = np.random.default_rng(seed)
    X = np.rint(np.where(rng.random((n, d)) < density, rng.uniform(-1, 1, (n, d)), 0.0) * ONE)
    X[:, 3] = 0.0  # an empty column is a candidate too
    return X, rng


def make_targets(loss, rng, n):
    return rng.integers(0, 2, n) if loss == "logistic" else np.rint(rng.uniform(-1, 1, n) * ONE)


def make_history(rng, n_steps, d):
    columns = rng.integers(0, d, n_steps)
    return np.where(rng.random(n_steps) < 0.4, ~columns, columns)


def shaped(X, path):
    return sp.csr_array(X) if path in SPARSE else X


def paths_for(loss):
    return [name for name in PATHS if loss == "squared" or name not in ("columns", "gram")]


ALL = [(loss, path) for loss in ("squared", "huber", "logistic") for path in paths_for(loss)]


# ---------------------------------------------------------------------- derivatives


def logistic_approximation(margins):
    pieces = LogisticLoss().lattice_derivative(1.0).pieces
    piece = np.searchsorted(pieces.knots, margins * ONE, side="left")
    return (pieces.intercepts[piece] + pieces.slopes[piece] / 2**18 * margins * ONE) / ONE


def test_logistic_pieces_are_within_a_thousandth_and_inside_zero_one():
    margins = np.linspace(-15.0, 15.0, 600_001)
    values = logistic_approximation(margins)
    assert np.abs(values - 1.0 / (1.0 + np.exp(-margins))).max() < 1e-3
    assert 0.0 < values.min() < values.max() < 1.0
    # Rounded coefficients may step back at a knot, by a fraction of a lattice unit.
    assert np.diff(values).min() > -1.0 / ONE
    assert len(LogisticLoss().lattice_derivative(1.0).pieces.knots) == 20


@pytest.mark.parametrize("radius", [0.1, 0.5, 1.0, 1.4208, 3.0, 7.0, 20.0])
def test_no_logistic_derivative_exceeds_the_bound(radius):
    margins = np.linspace(-radius, radius, 200_001)
    values = logistic_approximation(margins) * ONE
    assert max(values.max(), ONE - values.min()) <= LogisticLoss().lattice_derivative(radius).bound
    assert LogisticLoss().lattice_derivative(radius).bound <= ONE / (1.0 + math.exp(-radius)) + 1e-3 * ONE + 1


def test_table_of_the_logistic_function_and_rounding_of_derivatives():
    margins = np.linspace(-20.0, 20.0, 4001) * ONE
    got = np.array([exact_residual(m, 0, True, curve_table(), ONE) for m in margins])
    assert np.abs(got / ONE - 1.0 / (1.0 + np.exp(-margins / ONE))).max() < 1e-5
    assert exact_residual(3.4 * ONE, ONE, False, curve_table(), 2 * ONE) == 2 * ONE
    assert exact_residual(0.25 * ONE, ONE, False, curve_table(), 2 * ONE) == -0.75 * ONE


@pytest.mark.parametrize("r", [0, 1, -1, 12345, -12345, 2**44, -(2**44)])
@pytest.mark.parametrize("slope", [0, 52, 64204, 2**18])
def test_slopes_truncate_towards_zero(slope, r):
    exact = slope * abs(r) // 2**18
    assert slope_part(slope, r) == (exact if r >= 0 else -exact)


# ---------------------------------------------------------------------- the schedule


@pytest.mark.parametrize("n_rows", [1, 1000, 20_242, 10_000_000])
@pytest.mark.parametrize("radius", [0.3, 10.0, 80.0])
@pytest.mark.parametrize("n_steps", [1, 7, 1000, 100_000])
def test_the_schedule_keeps_sums_in_64_bits_and_margins_fine(n_rows, radius, n_steps):
    scales, shifts, last = schedule_of(n_rows, radius, n_steps)
    t = np.arange(n_steps + 1)
    sums = np.maximum(t * (t + 1) // 2, 1)
    largest_r = [int(s) * ONE / 2.0 ** int(h) for s, h in zip(sums[[0, -1]], shifts[[0, -1]], strict=True)]
    assert np.all(n_rows * ONE * (sums * (ONE / np.exp2(shifts.astype(float)))) <= 2.0**62)
    assert max(largest_r) <= 2.0**44
    assert np.allclose(scales, radius * np.exp2(shifts.astype(float)) / sums, rtol=1e-15)
    assert np.all(np.diff(shifts) >= 0)
    assert np.all(shifts[last] == shifts)
    assert np.all((last == n_steps) | (shifts[np.minimum(last + 1, n_steps)] > shifts))
    # At the start of a stretch a unit of r is at most four lattice units of the margin.
    starts = np.flatnonzero(np.diff(shifts, prepend=shifts[0] - 1))
    if n_rows <= 20_242:
        assert np.all(scales[starts] <= 4.0)
        assert starts.size <= 5


def test_twenty_thousand_rows_are_recut_once_in_a_thousand_steps():
    assert np.unique(schedule_of(20_242, 10.0, 1000).shifts).size == 2


# ---------------------------------------------------------------------- kernels against twins


def cut_afresh(X, u, y, t, problem, pieces, schedule):
    """P and q of every row, from their definitions, in Python integers and numpy doubles."""
    p, q = np.zeros(len(y), dtype=np.int64), np.zeros(len(y), dtype=np.int64)
    for i in range(len(y)):
        shift = int(schedule.shifts[t])
        size = abs(int(u[i])) >> shift if shift >= 0 else abs(int(u[i])) << -shift
        r = size if u[i] >= 0 else -size
        piece = int(np.searchsorted(pieces.knots, schedule.scales[t] * r - pieces.shift * y[i], side="left"))
        p[i] = pieces.intercepts[piece] - pieces.keeps[piece] * y[i]
        q[i] = slope_part(int(pieces.slopes[piece]), r)
    return p, q


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
@pytest.mark.parametrize("n_rows", [150, 10_000_000])
@pytest.mark.parametrize("radius", [2.0, 30.0])
def test_rows_are_always_on_time(loss, n_rows, radius):
    # Every A, B at every iteration equals what cutting all rows afresh would give: nothing is late, nothing drifts.
    n_steps = 120
    X, rng = make_data(1)
    y = make_targets(loss, rng, len(X))
    problem = FrankWolfeProblem(loss_named(loss, CLIP), radius, n_steps, 1.0, n_rows)
    path = open_path(sp.csr_array(X), y, problem, path="sublinear")
    pieces, schedule = problem.derivative.pieces, schedule_of(n_rows, radius, n_steps)
    lattice = y * ONE if loss == "logistic" else y
    integers = X.astype(np.int64)
    u = np.zeros(len(X), dtype=np.int64)
    # Few columns, so that margins become large, cross zero and are left alone for a while.
    history = np.concatenate([make_history(rng, 60, 4), make_history(rng, 60, 40)])
    recut = 0
    for t, vertex in enumerate(history):
        p, q = cut_afresh(X, u, lattice.astype(np.int64), t, problem, pieces, schedule)
        np.testing.assert_array_equal(path.sums[0, path.ranks], integers.T @ p)
        np.testing.assert_array_equal(path.sums[1, path.ranks], integers.T @ q)
        path.step(int(vertex))
        u += (t + 1) * integers[:, max(vertex, ~vertex)] * (1 if vertex >= 0 else -1)
        changed = path.rows[8][: path.rows[9][0]]
        recut += np.count_nonzero(integers[changed, max(vertex, ~vertex)] == 0)
    assert (recut > 0) == (loss != "squared")
    assert (np.unique(schedule.shifts).size > 1) == (n_rows > 150)


@pytest.mark.parametrize(("loss", "path"), ALL)
def test_every_path_follows_the_gradient(loss, path):
    n_steps, radius = 200, 7.3
    X, rng = make_data(2)
    y = make_targets(loss, rng, len(X))
    problem = FrankWolfeProblem(loss_named(loss, CLIP), radius, n_steps, 1.0, len(X))
    state = open_path(shaped(X, path), y, problem, path=path)
    unit_X, unit_y = X / ONE, y if loss == "logistic" else y / ONE
    largest_sum = np.abs(unit_X).sum(axis=0).max()
    allowed = {"sublinear": 1e-3, "columns": 1e-5, "gram": 1e-5}.get(path, 2e-5)
    if loss != "logistic":
        allowed = 2e-5
    weights = np.zeros(X.shape[1])
    for t, vertex in enumerate(make_history(rng, n_steps, 8)):
        residual = unit_X @ weights - unit_y
        if loss == "huber":
            residual = np.clip(residual, -CLIP, CLIP)
        if loss == "logistic":
            residual = 1.0 / (1.0 + np.exp(-unit_X @ weights)) - unit_y
        error = np.abs(state.scores() / ONE**2 - unit_X.T @ residual).max()
        assert error <= allowed * problem.derivative.bound / ONE * largest_sum
        state.step(int(vertex))
        share = 2.0 / (t + 2.0)
        weights *= 1.0 - share
        weights[max(vertex, ~vertex)] += share * radius * (1 if vertex >= 0 else -1)


@pytest.mark.parametrize(("loss", "path"), ALL)
def test_without_noise_the_best_vertex_is_taken(loss, path):
    X, rng = make_data(3)
    y = make_targets(loss, rng, len(X))
    coefficients, vertices = run(shaped(X, path), y, loss, CLIP, 5.0, 80, 0.0, Stream.of(1), path=path)
    replay = open_path(shaped(X, path), y, FrankWolfeProblem(loss_named(loss, CLIP), 5.0, 80, 0.0, len(X)), path=path)
    weights = np.zeros(X.shape[1])
    for t, vertex in enumerate(vertices):
        scores = replay.scores()
        best = int(np.argmax(np.abs(scores)))
        assert vertex == (~best if scores[best] > 0 else best)
        replay.step(int(vertex))
        weights *= t / (t + 2.0)
        weights[best] += 2.0 / (t + 2.0) * 5.0 * (1 if vertex >= 0 else -1)
    np.testing.assert_allclose(coefficients, weights, atol=1e-12)
    assert np.abs(coefficients).sum() <= 5.0 * (1 + 1e-12)


@pytest.mark.parametrize("path", PATHS)
def test_ties_go_to_the_lowest_column(path):
    # Columns 2 and 5 are equal; 7 has more entries, which puts it first inside, and half their sum.
    X = np.zeros((8, 9))
    X[:4, [2, 5]] = ONE
    X[:, 7] = ONE // 4
    y = np.full(8, float(ONE))
    _, vertices = run(shaped(X, path), y, "squared", 1.0, 1.0, 1, 0.0, Stream.of(1), path=path)
    assert vertices[0] == 2
    _, vertices = run(shaped(0 * X, path), y, "squared", 1.0, 1.0, 1, 0.0, Stream.of(1), path=path)
    assert vertices[0] == 0


@pytest.mark.parametrize(("loss", "path"), ALL)
def test_rows_in_another_order_give_the_same_bits(loss, path):
    X, rng = make_data(4)
    y = make_targets(loss, rng, len(X))
    order = rng.permutation(len(X))
    first, vertices = run(shaped(X, path), y, loss, CLIP, 3.0, 150, 4.0, Stream.of(9), path=path)
    second, again = run(shaped(X[order], path), y[order], loss, CLIP, 3.0, 150, 4.0, Stream.of(9), path=path)
    np.testing.assert_array_equal(vertices, again)
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(("loss", "path"), ALL)
def test_null_records_contribute_nothing_and_count(loss, path):
    X, rng = make_data(5)
    y = make_targets(loss, rng, len(X))
    valid = rng.random(len(X)) < 0.7
    masked = np.where(valid[:, None], X, 0.0)
    one = run(shaped(X, path), y, loss, CLIP, 3.0, 60, 4.0, Stream.of(2), valid=valid, path=path)
    other = run(shaped(masked, path), y, loss, CLIP, 3.0, 60, 4.0, Stream.of(2), path=path)
    np.testing.assert_array_equal(one[1], other[1])


def test_levels_never_fall_below_the_scores(monkeypatch):
    # Few words at a time: the run pauses before almost every proposal, and there the bounds must hold.
    monkeypatch.setattr(frank_wolfe_run, "_WORDS", 15)
    pauses = 0
    for seed, loss, noise in ((0, "squared", 8.0), (1, "huber", 1.0), (2, "logistic", 0.3), (3, "logistic", 0.05)):
        X, rng = make_data(seed, density=0.1)
        y = make_targets(loss, rng, len(X))
        problem = FrankWolfeProblem(loss_named(loss, CLIP), 6.0, 200, noise, len(X))
        path = open_path(sp.csr_array(X), y, problem, path="sublinear")
        stream = Stream.of(seed)
        while path.t < problem.n_steps:
            path.t = path._advance(path.chosen, stream.words(15))
            if path.t < problem.n_steps:
                levels, blocks, total, table, facts, log2_block, _ = path.sampler
                x = np.abs(problem.inverse_temperature * path._scores())
                assert np.all(x < (levels.astype(np.int64) + facts[0]) / 4.0)
                bounds = table[levels]
                assert int(bounds.sum()) == int(total[0]) == int(blocks.sum())
                assert int(blocks[0]) == int(bounds[: 1 << log2_block].sum())
                pauses += 1
    assert pauses > 300


def popular_columns(loss, seed, n=300, d=60):
    """Columns as popular as one over their rank, with entries at the bound; the first are in nearly every row."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < np.minimum(0.97, 4.0 / np.arange(1, d + 1)), float(ONE), 0.0)
    y = rng.random(n) < 0.3
    return X, y.astype(np.int64) if loss == "logistic" else np.rint(np.where(y, 0.8, -0.4) * ONE)


def pauses_of(loss, noise, seed, interfere=lambda path: None):
    """For each pause of a run over popular columns: by how many levels the lowest bound is above its score."""
    X, y = popular_columns(loss, seed)
    problem = FrankWolfeProblem(loss_named(loss, CLIP), 6.0, 150, noise, len(X))
    path = open_path(sp.csr_array(X), y, problem, path="sublinear")
    stream, found = Stream.of(seed), []
    while path.t < problem.n_steps:
        path.t = path._advance(path.chosen, stream.words(15))
        if path.t < problem.n_steps:
            # Asked of a copy: looking must not bring scores up to date.
            sums, seen = path._sums.copy(), path.groups[3].copy()
            x = np.abs(problem.inverse_temperature * path._scores())
            path._sums[:], path.groups[3][:] = sums, seen
            levels, _, _, _, facts, _, _ = path.sampler
            found.append(float(np.min(levels.astype(np.int64) + facts[0] - 4.0 * x)))
            interfere(path)
    return path, np.array(found)


@pytest.mark.parametrize(("loss", "noise"), [("squared", 120.0), ("huber", 10.0), ("logistic", 20.0)])
def test_levels_hold_where_scores_are_left_behind(loss, noise):
    def more_room_than_there_is(path):
        path.groups[1][:, 1] += 1e3

    for seed in range(3):
        path, above = pauses_of(loss, noise, seed)
        assert above.size > 100
        assert above.min() > 0.0
        assert path.groups[-1][0] > 10, "no step has left scores behind"
        # Charges that are not paid leave levels below the scores, and this is where it shows.
        assert pauses_of(loss, noise, seed, more_room_than_there_is)[1].min() < 0.0


@pytest.mark.parametrize(("loss", "noise"), [("squared", 120.0), ("huber", 10.0), ("logistic", 20.0)])
def test_scores_left_behind_are_found_again(loss, noise):
    # A run that leaves scores behind, and one that takes the same steps and never does.
    X, y = popular_columns(loss, 5)
    problem = FrankWolfeProblem(loss_named(loss, CLIP), 6.0, 150, noise, len(X))
    path, replay = (open_path(sp.csr_array(X), y, problem, path="sublinear") for _ in range(2))
    _, vertices = path.run(Stream.of(5))
    for vertex in vertices:
        replay.step(int(vertex))
    behind = path._sums.copy()
    np.testing.assert_array_equal(path.sums, replay.sums)
    np.testing.assert_array_equal(path.rows[2], replay.rows[2])
    assert not np.array_equal(behind, replay.sums)


def test_groups_are_columns_of_like_weight():
    X, _ = popular_columns("huber", 7)
    problem = FrankWolfeProblem(loss_named("huber", CLIP), 6.0, 10, 10.0, len(X))
    path = open_path(sp.csr_array(X), np.zeros(len(X)), problem, path="sublinear")
    integers, numbers, group_of, _, _ = path.groups
    counts = np.count_nonzero(X, axis=0)[path.names]
    assert integers[0, 0] == 0
    assert integers[-1, 1] == counts.size
    np.testing.assert_array_equal(integers[1:, 0], integers[:-1, 1])
    for g, (start, stop, weight, entries) in enumerate(integers[:, :4].tolist()):
        assert counts[start] < 2 * max(counts[stop - 1], 1)
        assert np.all(group_of[start:stop] == g)
        assert weight == counts[start] * ONE
        assert entries == counts[start:stop].sum()
        # No derivative is beyond the clip.
        assert numbers[g, 0] == pytest.approx(counts[start] * CLIP / 10.0, rel=1e-3)


def test_columns_of_the_gram_matrix_are_right_and_slots_are_reused():
    X, _ = make_data(6, density=0.6)
    problem = FrankWolfeProblem(loss_named("squared", 1.0), 1.0, 50, 1.0, len(X))
    path = open_path(sp.csr_array(X), np.zeros(len(X)), problem, path="columns")
    gram = X.astype(np.int64).T @ X.astype(np.int64)
    columns = tuple(no_columns(X.shape[1], 4))
    for t, k in enumerate([0, 1, 0, 2, 4, 5, 0, 6, 0, 3, 3]):
        inner = int(path.ranks[k])
        slot = fetch_column(inner, t, 3, path.matrix, columns)
        np.testing.assert_array_equal(columns[0][slot][path.ranks], gram[k] >> 3)
    # Column 0 was always among the last three used; the empty column 3 passed through the slot of nobody.
    assert columns[1][path.ranks[0]] >= 0
    assert columns[1][path.ranks[3]] == -1


def test_halvings_are_just_enough():
    for n_rows, n_steps in ((1, 1), (3000, 1000), (20_242, 1000), (10**7, 10**5)):
        h = halvings_of(n_rows, n_steps)
        largest = n_rows * (n_steps * (n_steps + 1) // 2) << 32
        assert largest <= 2 ** (62 + h)
        assert h == 0 or largest > 2 ** (61 + h)


# ---------------------------------------------------------------------- choices and refusals


def test_the_choice_of_a_path_is_public():
    def problem(loss, noise, n_rows=20_242):
        return FrankWolfeProblem(loss_named(loss, 1.0), 10.0, 1000, noise, n_rows)

    assert choose_path(problem("squared", 1000.0), 47_236, sparse=True) == "sublinear"
    assert choose_path(problem("logistic", 3.0), 47_236, sparse=True) == "sublinear"
    assert choose_path(problem("squared", 2.0), 47_236, sparse=True) == "columns"
    assert choose_path(problem("logistic", 0.1), 47_236, sparse=True) == "margins"
    assert choose_path(problem("logistic", 0.0), 47_236, sparse=True) == "margins"
    assert choose_path(problem("squared", 10.0), 600, sparse=False) == "gram"
    assert choose_path(problem("squared", 10.0), 6000, sparse=False) == "dense"
    assert choose_path(problem("huber", 10.0), 600, sparse=False) == "dense"


def test_small_budgets_leave_sparse_tables_one_path():
    # What estimators compile before a fit is what it runs: the least noise is that of a single step.
    def path_at(epsilon, loss):
        facts = Problem(loss, "zero-out", 100, 10, intercept=True)
        plan = plan_frank_wolfe(Budget(epsilon, _NOISY_DELTA), facts, radius=10.0, n_steps=1)
        influence = FrankWolfeProblem(loss, 10.0, 1, 0.0, 100).sensitivity("zero-out").value
        problem = FrankWolfeProblem(loss, 10.0, 1, plan.noise_scale * influence, 100)
        return choose_path(problem, 11, sparse=True)

    for loss in (SquaredLoss(), HuberLoss(0.5), LogisticLoss()):
        assert path_at(_NOISY_EPSILON, loss) == "sublinear"
        assert path_at(30.0, loss) != "sublinear"


def test_problems_outside_the_limits_are_refused():
    good = {"loss": HuberLoss(1.0), "radius": 5.0, "n_steps": 10, "noise_scale": 1.0, "n_rows": 100}
    FrankWolfeProblem(**good)
    for change in (
        {"loss": SoftmaxLoss()},
        {"loss": HuberLoss(0.9 / ONE)},
        {"radius": 0.0},
        {"radius": 1e6},
        {"n_steps": 0},
        {"noise_scale": -1.0},
        {"noise_scale": 1e-20},
        {"n_rows": 2**28},
    ):
        with pytest.raises(ParameterError):
            FrankWolfeProblem(**{**good, **change})


def test_a_path_must_fit_the_data():
    X, _ = make_data()
    for data, loss, path in ((X, "squared", "sublinear"), (sp.csr_array(X), "squared", "gram"), (X, "huber", "gram")):
        with pytest.raises(ParameterError):
            run(data, np.zeros(len(X)), loss, 1.0, 1.0, 5, 1.0, Stream.of(1), path=path)
    with pytest.raises(ParameterError, match="n_rows"):
        open_path(X, np.zeros(len(X)), FrankWolfeProblem(loss_named("huber", 1.0), 1.0, 5, 1.0, len(X) - 1))
    with pytest.raises(ParameterError):
        run(sp.csr_array(X), np.zeros(len(X)), "squared", 1.0, 1.0, 5, 1e-8, Stream.of(1), path="sublinear")


def test_any_layout_and_type_gives_the_same_run():
    X, rng = make_data(7)
    y = make_targets("logistic", rng, len(X))
    want = run(sp.csr_array(X), y, "logistic", 1.0, 3.0, 40, 1.0, Stream.of(5))[1]
    frozen = sp.csr_array(X)
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for other in (
        sp.csc_matrix(X),
        sp.csr_matrix(X.astype(np.int32)),
        sp.csr_array(X.astype(np.float32)),
        frozen,
        wide,
    ):
        np.testing.assert_array_equal(run(other, y, "logistic", 1.0, 3.0, 40, 1.0, Stream.of(5))[1], want)
    dense = run(X, y, "logistic", 1.0, 3.0, 40, 1.0, Stream.of(5))[1]
    for other in (np.asfortranarray(X), X.astype(np.int64), X.astype(np.float32)):
        np.testing.assert_array_equal(run(other, y, "logistic", 1.0, 3.0, 40, 1.0, Stream.of(5))[1], dense)


def test_sizes_of_one():
    for X in (np.array([[float(ONE)]]), np.zeros((1, 3)), np.full((3, 1), -float(ONE))):
        for loss, path in ALL:
            coefficients, vertices = run(
                shaped(X, path), np.ones(len(X)), loss, 1.0, 2.0, 3, 1.0, Stream.of(1), path=path
            )
            assert coefficients.shape == (X.shape[1],)
            assert vertices.shape == (3,)


def test_memory_is_less_than_twice_the_data():
    X, _, _ = make_power_law_sparse(2000, 5000, 100, random_state=0)
    X.data = np.rint(X.data * ONE)
    problem = FrankWolfeProblem(SquaredLoss(), 1.0, 100, 5000.0, 2000)
    path = open_path(X, np.zeros(2000), problem, path="sublinear")
    held = (
        *path.matrix,
        *path.rows,
        *path.schedule,
        *path.sampler[:5],
        path.sums,
        path.bounds,
        path.names,
        *path.groups,
    )
    ours = sum(array.nbytes for array in {id(array): array for array in (*held, path.ranks, path.chosen)}.values())
    assert ours <= 2.0 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def test_sensitivity_is_the_bound_but_for_rounding():
    def declared(loss, clip, radius):
        derivative = loss_named(loss, clip).lattice_derivative(radius)
        return lattice_gradient_scores(derivative, radius, 20_242, 1000, "zero-out").value

    assert declared("squared", 1.0, 10.0) == pytest.approx(11.0, rel=1e-6)
    assert declared("squared", 1.0, 10.0) > 11.0
    assert declared("huber", 0.5, 10.0) == pytest.approx(0.5, rel=1e-6)
    # sigma(1) and the error of the pieces.
    assert declared("logistic", 1.0, 1.0) == pytest.approx(0.7321, rel=1e-3)
    replaced = lattice_gradient_scores(HuberLoss(0.5).lattice_derivative(10.0), 10.0, 20_242, 1000, "replace-one").value
    assert replaced == 2 * declared("huber", 0.5, 10.0)
