"""Runs that lose coefficients and columns: the scores follow, and what is out for good is never chosen again."""

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.losses import HuberLoss, LogisticLoss, SquaredLoss
from taciturn.methods.frank_wolfe.run import PATHS, FrankWolfeProblem, open_path

SPARSE = ("sublinear", "columns", "margins")
CLIP, RADIUS, N_STEPS = 0.5, 3.0, 60
LOSSES = {"squared": SquaredLoss(), "huber": HuberLoss(CLIP), "logistic": LogisticLoss()}
CASES = [(loss, path) for loss in LOSSES for path in PATHS if loss == "squared" or path not in ("columns", "gram")]


def records(loss, n=40, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = np.rint(np.where(rng.random((n, d)) < 0.6, rng.uniform(-1, 1, (n, d)), 0.0) * ONE)
    y = rng.integers(0, 2, n) if loss == "logistic" else np.rint(rng.uniform(-1, 1, n) * ONE)
    return X, y


def opened(loss, path, X, y, noise=1.0):
    problem = FrankWolfeProblem(LOSSES[loss], RADIUS, N_STEPS, noise, len(X))
    return open_path(sp.csr_array(X) if path in SPARSE else X, y, problem, path=path)


def plain_gradient(loss, X, y, w):
    target = y if loss == "logistic" else y / ONE
    return (X / ONE).T @ LOSSES[loss].derivative(X / ONE @ w, target)


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize(("loss", "path"), CASES)
def test_scores_are_those_of_the_weights_that_are_left(loss, path, forever):
    X, y = records(loss)
    state = opened(loss, path, X, y)
    rng = np.random.default_rng(1)
    w, alive = np.zeros(X.shape[1]), np.arange(X.shape[1])
    # Derivatives of the sub-linear path lie on chords of the logistic curve; units of B are public and may be coarse.
    tolerance = 40 * (2e-3 if (loss, path) == ("logistic", "sublinear") else 1e-4)
    for t in range(40):
        column, sign = rng.choice(alive), rng.choice([-1, 1])
        state.step(int(column) if sign > 0 else ~int(column))
        w *= 1 - 2 / (t + 2)
        w[column] += sign * RADIUS * 2 / (t + 2)
        if t % 3 == 2:
            gone = rng.choice(np.flatnonzero(w), 1)
            w[gone] = 0.0
            if forever and alive.size > 3:
                state.exclude(gone)
                alive = np.setdiff1d(alive, gone)
            else:
                state.drop(gone)
        assert state.coefficients() == pytest.approx(w, abs=1e-12)
        scores = state.scores() / ONE**2
        assert np.abs(scores - plain_gradient(loss, X, y, w))[alive].max() < tolerance
    if forever:
        # The data of most columns are gone by now, and the candidates are known by their old numbers.
        assert state.names.size < X.shape[1]
        assert np.flatnonzero(state.candidates).tolist() == alive.tolist()


@pytest.mark.parametrize("noise", [0.0, 2.0])
@pytest.mark.parametrize(("loss", "path"), CASES)
def test_what_is_excluded_is_never_chosen_again_and_the_rest_is(loss, path, noise):
    X, y = records(loss)
    # The column that would always win, and enough others for the data to be copied.
    X[:, 7] = ONE
    y[:] = 1 if loss == "logistic" else ONE
    state = opened(loss, path, X, y, noise)
    stream = Stream.of(0)
    state.advance_to(10, stream)
    assert 7 in np.maximum(state.vertices[:10], ~state.vertices[:10])
    for gone in ([7], [0, 1, 2]):
        state.exclude(np.array(gone))
        before = state.t
        state.advance_to(before + 20, stream)
        chosen = np.maximum(state.vertices[before : state.t], ~state.vertices[before : state.t])
        assert set(chosen) <= set(np.flatnonzero(state.candidates))
        assert not state.coefficients()[gone].any()
    assert np.abs(state.coefficients()).sum() > 0.0


@pytest.mark.parametrize(("loss", "path"), CASES)
def test_the_last_candidate_is_chosen_whatever_the_noise(loss, path):
    X, y = records(loss, d=5)
    state = opened(loss, path, X, y, noise=50.0)
    state.exclude(np.array([0, 1, 2, 4]))
    state.advance_to(30, Stream.of(1))
    assert set(np.maximum(state.vertices[:30], ~state.vertices[:30])) == {3}
