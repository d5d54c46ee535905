"""Remove any record, keep the vertices: no score may move by more than the declared sensitivity, on any path.

Two tempting shortcuts are run through the same test, which has to reject them: refreshing all rows when a statistic of
all rows says so, and putting off recuts when there are many.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.core.validation import ONE
from taciturn.data.sensitivity import lattice_gradient_scores
from taciturn.losses import HuberLoss, LogisticLoss, SquaredLoss
from taciturn.methods.frank_wolfe.run import PATHS, FrankWolfeProblem, open_path

SPARSE = ("sublinear", "columns", "margins")
N_STEPS, CLIP = 40, 0.5
LOSSES = {"squared": SquaredLoss(), "huber": HuberLoss(CLIP), "logistic": LogisticLoss()}
CASES = [(loss, path) for loss in LOSSES for path in PATHS if loss == "squared" or path not in ("columns", "gram")]


def make_records(loss, seed):
    """Ordinary records, and some at the edge of what is admissible."""
    rng = np.random.default_rng(seed)
    X = np.rint(np.where(rng.random((24, 6)) < 0.5, rng.uniform(-1, 1, (24, 6)), 0.0) * ONE)
    X[:8] = rng.choice([-ONE, ONE], (8, 6))
    X[:2] = ONE
    if loss == "logistic":
        y = rng.integers(0, 2, 24)
        y[0] = 0
    else:
        y = rng.choice([-ONE, 0, ONE, ONE // 3], 24)
        y[0] = -ONE
    return X, y


def make_histories(seed):
    """Steps that pile up on one column, that turn round, and random ones."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 6, N_STEPS)
    return (
        np.zeros(N_STEPS, dtype=np.int64),
        np.concatenate([np.zeros(N_STEPS // 2, dtype=np.int64), np.full(N_STEPS // 2, ~0)]),
        np.concatenate([np.full(3, 2), np.full(N_STEPS - 3, 5)]),
        np.where(rng.random(N_STEPS) < 0.5, columns, ~columns),
    )


def scores_along(open_run, history, screened=None):
    """Scores before every step and after the last; ``screened`` maps iterations to columns dropped there."""
    state = open_run()
    out = []
    for t, vertex in enumerate(history):
        if screened and t in screened:
            state.drop(np.array(screened[t]))
        out.append(state.scores())
        state.step(int(vertex))
    out.append(state.scores())
    return np.array(out)


def largest_change(open_run, n_records, history, screened=None):
    """Over all records and steps; ``open_run(valid)`` starts a run on the valid records."""
    everyone = np.ones(n_records, dtype=bool)
    whole = scores_along(lambda: open_run(everyone), history, screened)
    changes = []
    for i in range(n_records):
        valid = everyone.copy()
        valid[i] = False
        changes.append(np.abs(whole - scores_along(lambda valid=valid: open_run(valid), history, screened)).max())
    return max(changes) / ONE**2


@pytest.mark.parametrize("screened", [None, {5: [0], 12: [5, 2], 20: [1, 3], 21: [0], 33: [0, 1, 2, 3, 4, 5]}])
@pytest.mark.parametrize(("loss", "path"), CASES)
@pytest.mark.parametrize("radius", [0.8, 6.0])
def test_no_score_moves_by_more_than_its_sensitivity(loss, path, radius, screened):
    # A public n far above the actual one makes the unit of B coarse and brings its changes into the run.
    for n_rows in (24, 2_000_000):
        problem = FrankWolfeProblem(LOSSES[loss], radius, N_STEPS, 1.0, n_rows)
        sensitivity = lattice_gradient_scores(problem.derivative, radius, n_rows, N_STEPS, "zero-out").value
        reached = 0.0
        for seed in range(2):
            X, y = make_records(loss, seed)
            data = sp.csr_array(X) if path in SPARSE else X
            for history in make_histories(seed):
                change = largest_change(
                    lambda valid, d=data, y=y, problem=problem: open_path(d, y, problem, valid=valid, path=path),
                    len(y),
                    history,
                    screened,
                )
                assert change <= sensitivity
                reached = max(reached, change)
        assert reached >= 0.9 * sensitivity


class _Logistic:
    """Full gradients of the logistic loss, with derivatives that may be out of date."""

    def __init__(self, X, y, radius):
        self.X, self.y, self.radius = X / ONE, y, radius
        self.v, self.t = np.zeros(X.shape[1]), 0
        self.psi = 0.5 - self.y

    def margins(self):
        return self.radius * (self.X @ self.v) / max(self.t * (self.t + 1) / 2, 1)

    def exact(self):
        return 1.0 / (1.0 + np.exp(-self.margins())) - self.y

    def scores(self):
        return self.X.T @ self.psi * ONE**2

    def step(self, vertex):
        self.v[max(vertex, ~vertex)] += (self.t + 1) * (1 if vertex >= 0 else -1)
        self.t += 1
        self.refresh(self.X[:, max(vertex, ~vertex)] != 0.0)

    def refresh(self, touched):
        self.psi = self.exact()


class GlobalTrigger(_Logistic):
    """All rows are refreshed when the drift, summed over rows, passes a threshold.

    With this one the crowd below is refreshed one step later if it lacks a member.
    """

    def __init__(self, X, y, radius):
        super().__init__(X, y, radius)
        self.seen = self.margins()

    def refresh(self, touched):
        if np.abs(self.margins() - self.seen).sum() > 344.0:
            self.seen, self.psi = self.margins(), self.exact()


class CappedRecuts(_Logistic):
    """At most five rows a step are brought up to date, the others wait their turn."""

    def __init__(self, X, y, radius):
        super().__init__(X, y, radius)
        self.waiting = []

    def refresh(self, touched):
        stale = np.flatnonzero(touched & (np.abs(self.exact() - self.psi) > 0.01))
        self.waiting += [i for i in stale if i not in self.waiting]
        now, self.waiting = self.waiting[:5], self.waiting[5:]
        self.psi[now] = self.exact()[now]


def crowd():
    """Many equal records, and one whose derivative has the opposite sign, as has its second feature."""
    X = np.full((60, 3), float(ONE))
    X[0, 1] = -ONE
    y = np.zeros(60, dtype=np.int64)
    y[0] = 1
    history = np.concatenate([np.zeros(20, dtype=np.int64), np.full(30, ~0)])
    return X, y, history


@pytest.mark.parametrize(("kind", "allowed"), [(_Logistic, True), (GlobalTrigger, False), (CappedRecuts, False)])
def test_shortcuts_that_look_at_other_rows_are_rejected(kind, allowed):
    X, y, history = crowd()
    derivative = LogisticLoss().lattice_derivative(6.0)
    sensitivity = lattice_gradient_scores(derivative, 6.0, len(y), len(history), "zero-out").value
    change = largest_change(lambda valid: kind(X[valid], y[valid], 6.0), len(y), history)
    assert (change <= sensitivity) == allowed
    if not allowed:
        assert change > 1.4 * sensitivity
