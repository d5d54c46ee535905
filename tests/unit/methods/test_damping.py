"""Descents get no weight in directions of which the data say nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn import SparseClassifier
from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray
from taciturn.methods import descent as rules
from taciturn.methods.descent import Constraint, Damping, GradientDescent
from taciturn.privacy.mechanisms import RoundedGaussian

N_COLUMNS = 400


def random_walk(strength: float, n_steps: int = 150) -> FloatArray:
    """Weights of a descent of time one along noise that has, over all steps, a deviation of one, and nothing else."""
    damping = Damping(np.full(1, strength), np.zeros(1), 1.0, 0) if strength else None
    # A share of 1 / n_steps of the budget leaves every step the root of n_steps times the noise.
    walk = GradientDescent(
        n_steps, math.sqrt(n_steps) * 2.0**-20, RoundedGaussian(1.0, 20, 1 << 40), 1.0 / n_steps,
        Constraint(N_COLUMNS), average=True, damping=damping,
    )  # fmt: skip
    zeros = np.zeros((1, N_COLUMNS), dtype=np.int64)
    return walk.run(lambda _: zeros, np.zeros((1, N_COLUMNS)), Stream.of(0))


def test_a_damped_random_walk_has_the_deviation_that_the_rule_states() -> None:
    # The relative error of the deviation of 400 normal numbers is about .035.
    assert np.std(random_walk(0.0)) == pytest.approx(math.sqrt(2.0 / 3.0), rel=0.2)
    assert np.std(random_walk(40.0)) == pytest.approx(math.sqrt(2.0) / 40.0, rel=0.2)


def test_the_pull_is_the_gradient_of_a_penalty_and_leaves_the_constant_free() -> None:
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    damping = Damping(np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4), 1e9, 1, directions)
    weights = rng.standard_normal((2, 4))
    held = weights * (1.0, 1.0, 1.0, 0.0)
    matrix = (directions * damping.strengths) @ directions.T
    assert damping.pull(weights)[:, :3] == pytest.approx((held @ matrix)[:, :3])
    assert np.all(damping.pull(weights)[:, 3] == 0.0)


def test_large_weights_in_clear_directions_are_damped_less_elsewhere() -> None:
    damping = Damping(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 2.0, 0, np.eye(2))
    # Three directions of size 2 and one of size 6 have a mean square of 12.
    assert damping.at(np.array([[6.0, 50.0]])) == pytest.approx([0.0, 4.0 / 12.0])
    assert damping.at(np.array([[0.1, 50.0]])) == pytest.approx([0.0, 1.0])


def hospital(n_rows: int) -> tuple[FloatArray, FloatArray]:
    """A table with a full set of indicators, of which four are of empty codes, and a duplicate."""
    rng = np.random.default_rng(7)
    codes = np.eye(12)[rng.choice(8, n_rows, p=np.arange(8, 0, -1) / 36.0)]
    numbers = np.clip(rng.standard_normal((n_rows, 2)) / 3.0, -1.0, 1.0)
    X = np.hstack((codes, numbers, numbers[:, :1]))
    margins = X @ np.array([0.8, -0.8, 0.5, 0.0, 0.0, 1.0, -0.5, 0.0, *[0.0] * 4, 2.0, -1.5, 0.0]) - 0.3
    return X, margins + rng.logistic(size=n_rows)


def spreads(epsilon: float) -> tuple[float, float]:
    """The median standard deviation of coefficients over seeds, and the median of the largest of a fit."""
    X, y = hospital(8000)
    settings = {"epsilon": epsilon, "x_bound": 1.0, "n_nonzero": "all", "classes": (False, True)}
    models = [SparseClassifier(**settings, random_state=seed).fit(X, y > 0.0) for seed in range(8)]
    found = np.array([model.coef_.ravel() for model in models])
    return float(np.median(found.std(axis=0, ddof=1))), float(np.median(np.abs(found).max(axis=1)))


def test_the_spread_of_coefficients_falls_with_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = spreads(1.0), spreads(9.0)
    assert large[0] < 0.8 * small[0]
    # The largest true coefficient is 2, which a pair of equal columns shares.
    assert large[1] < 3.0
    monkeypatch.setattr(rules, "_damping", lambda *facts: 0.0)
    small, large = spreads(1.0), spreads(9.0)
    assert large[0] > 1.5 * small[0]
    assert large[1] > 3.0
