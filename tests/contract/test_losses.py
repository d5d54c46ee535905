"""One suite for every loss of the package, and for one that is defined here."""

import inspect
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from loss_checks import CHECKS, check_derivative, check_lipschitz, check_null_records, check_smoothness
from scipy.optimize import minimize

import taciturn.losses as room
from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.records import Records
from taciturn.data.target import numeric_target
from taciturn.engines import ArraySource
from taciturn.losses import (
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    PoissonLoss,
    ScalarLoss,
    SoftmaxLoss,
    SquaredLoss,
)
from taciturn.methods.base import WeightedLoss
from taciturn.methods.frank_wolfe.plan import plan_frank_wolfe
from taciturn.methods.frank_wolfe.run import PlainRun, open_run, run_frank_wolfe
from taciturn.methods.objective.plan import StoppingCriterion
from taciturn.methods.objective.run import gradient, minimise
from taciturn.methods.schedule import Problem


@dataclass(frozen=True, slots=True)
class PseudoHuberLoss(ScalarLoss):
    """``s**2 (sqrt(1 + (r / s)**2) - 1)``: quadratic for small residuals r, linear for large ones, smooth between."""

    scale: float

    labelled: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0

    def value(self, margins, targets):
        return self.scale**2 * (np.hypot(1.0, (margins - targets) / self.scale) - 1.0)

    def derivative(self, margins, targets):
        return (margins - targets) / np.hypot(1.0, (margins - targets) / self.scale)

    def second_derivative(self, margins, targets):
        return np.hypot(1.0, (margins - targets) / self.scale) ** -3

    def lipschitz(self, radius):
        """The derivative increases in the residual, which is at most ``radius + 1``."""
        return 1.0 / math.hypot(1.0 / (radius + 1.0), 1.0 / self.scale)


LOSSES = [
    *(SquaredLoss(), HuberLoss(0.7), HuberLoss(3.0), LogisticLoss(), SoftmaxLoss(), PseudoHuberLoss(0.5)),
    *(PoissonLoss(), PoissonLoss(1.5, -4.0, 0.3), GammaLoss(least=-2.0), GammaLoss(-0.7, -1.5)),
]
WEIGHTED = [WeightedLoss(LogisticLoss(), (1.0, 0.2)), WeightedLoss(SoftmaxLoss(), (0.1, 1.0, 0.5, 1.0))]


def test_every_loss_of_the_package_is_here():
    concrete = {cls for _, cls in inspect.getmembers(room, inspect.isclass) if issubclass(cls, Loss)}
    concrete = {cls for cls in concrete if not inspect.isabstract(cls)}
    assert concrete == {type(loss) for loss in LOSSES} - {PseudoHuberLoss}
    assert {cls.__name__ for cls in concrete} <= set(room.__all__)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("loss", [*LOSSES, *WEIGHTED], ids=repr)
def test_a_loss_is_what_it_says(loss, check):
    check(loss)


# ---------------------------------------------------------------------- losses that do not tell the truth


class SteepLogistic(LogisticLoss):
    """A derivative of up to two, and a stated Lipschitz constant of one."""

    def value(self, margins, targets):
        return 2.0 * super().value(margins, targets)

    def derivative(self, margins, targets):
        return 2.0 * super().derivative(margins, targets)


class TightSquare(SquaredLoss):
    """The mistake of some papers: one, whatever the ball."""

    def lipschitz(self, radius):
        return 1.0


class LooseHuber(HuberLoss):
    """A bound that is true and three times too large."""

    def lipschitz(self, radius):
        return 3.0 * super().lipschitz(radius)


class FlatHuber(HuberLoss):
    smoothness: ClassVar[float] = 0.25


class RoughLogistic(LogisticLoss):
    smoothness: ClassVar[float] = 1.0


class WrongDerivative(HuberLoss):
    def derivative(self, margins, targets):
        return 0.9 * super().derivative(margins, targets)


class NarrowPoisson(PoissonLoss):
    """The mistake to bound the derivative by the mean alone: a count of many where one is expected is left out."""

    def lipschitz(self, radius):
        return float(self.means(np.array([min(radius, self.offset - 1.0)]))[0]) / self.unit


class SmoothGamma(GammaLoss):
    """A curvature of one, as it is on average."""

    smoothness: ClassVar[float] = 1.0


class LoudNulls(LogisticLoss):
    """Null records count as records of the first class."""

    def integer_derivatives(self, margins, unit, target, radius, bound):
        return super().integer_derivatives(margins, unit, np.maximum(target, 0), radius, bound)


@pytest.mark.parametrize(
    ("loss", "check"),
    [
        (SteepLogistic(), check_lipschitz),
        (SteepLogistic(), check_smoothness),
        (TightSquare(), check_lipschitz),
        (LooseHuber(0.5), check_lipschitz),
        (FlatHuber(0.5), check_smoothness),
        (RoughLogistic(), check_smoothness),
        (WrongDerivative(0.5), check_derivative),
        (NarrowPoisson(1.5), check_lipschitz),
        (SmoothGamma(least=-2.0), check_smoothness),
        (LoudNulls(), check_null_records),
        # Weights that were not divided by the largest.
        (WeightedLoss(LogisticLoss(), (1.0, 3.0)), check_lipschitz),
        (WeightedLoss(SoftmaxLoss(), (1.0, 3.0, 1.0, 1.0)), check_lipschitz),
        (WeightedLoss(LogisticLoss(), (0.5, 0.2)), check_lipschitz),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_false_statements_are_rejected(loss, check):
    with pytest.raises(AssertionError):
        check(loss)


@pytest.mark.parametrize("missing", ["labelled", "smoothness", "lipschitz", "derivative", "second_derivative"])
def test_a_loss_that_states_too_little_cannot_be_made(missing):
    stated = {name: getattr(SquaredLoss, name) for name in ("labelled", "smoothness", "value", "derivative")}
    stated |= {name: getattr(SquaredLoss, name) for name in ("second_derivative", "lipschitz")}
    type("Complete", (ScalarLoss,), dict(stated))()
    del stated[missing]
    with pytest.raises(TypeError, match=missing):
        type("Silent", (ScalarLoss,), stated)()


# ---------------------------------------------------------------------- the new loss in a plan and in a fit


def regression(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = np.clip(X @ [0.6, 0.0, -0.3, 0.0] + 0.05 * rng.standard_normal(n), -1, 1)
    return X, y


def planned(loss, epsilon, n_rows, radius=0.8):
    return plan_frank_wolfe(
        Budget(epsilon, 0.0 if math.isinf(epsilon) else 1e-6),
        Problem(loss, "zero-out", n_rows, 4),
        radius=radius,
        n_steps="auto",
    )


def source_of(X, y):
    return ArraySource(Records(X, numeric_target(y, (-1.0, 1.0)), np.arange(len(y)), len(y)), 1.0, len(y))


def test_frank_wolfe_finds_the_minimiser_of_a_loss_it_has_never_seen():
    X, y = regression()
    loss = PseudoHuberLoss(0.5)
    (weights,) = run_frank_wolfe(planned(loss, math.inf, len(y)), source_of(X, y), Stream.of(0))

    def objective(halves):
        return float(loss.value(X @ (halves[:4] - halves[4:]), y).mean())

    simplex = {"type": "ineq", "fun": lambda halves: 0.8 - halves.sum()}
    best = minimize(objective, np.full(8, 0.05), bounds=[(0, None)] * 8, constraints=simplex, tol=1e-12)
    assert np.abs(weights).sum() <= 0.8 * (1 + 1e-12)
    assert loss.value(X @ weights, y).mean() <= best.fun + 1e-5


def test_its_plan_costs_what_any_loss_costs_and_its_noise_follows_its_own_constant():
    plans = [planned(loss, 1.0, 400) for loss in (PseudoHuberLoss(0.5), SquaredLoss())]
    assert plans[0].releases == plans[1].releases
    X, y = regression()
    design, target = Design(X, 1.0), numeric_target(y, (-1.0, 1.0))
    run = open_run(design, target, plans[0].problem.loss, 0.8, 5, 1, plans[0].noise_scale, 400)
    assert isinstance(run, PlainRun)
    assert run.influence == PseudoHuberLoss(0.5).lipschitz(0.8)
    (weights,) = run_frank_wolfe(replace(plans[0], n_steps=200), source_of(X, y), Stream.of(1))
    assert np.count_nonzero(weights) > 0


def test_no_record_moves_the_scores_by_more_than_declared():
    rng = np.random.default_rng(5)
    loss, radius = PseudoHuberLoss(0.5), 2.0
    X = rng.choice([-1.0, 1.0, 0.3], (40, 3))
    X[0], y = 1.0, rng.uniform(-1, 1, 40)
    y[0] = -1.0

    def scores(rows, vertices):
        run = open_run(Design(X[rows], 1.0), np.rint(y[rows] * ONE), loss, radius, 9, 1, 1.0, 40)
        for t, vertex in enumerate(vertices):
            run.weights *= 1 - 2 / (t + 2)
            run.weights[0, vertex] += radius * 2 / (t + 2)
        return run.scores(), run.sensitivity.value / run.grain

    largest = 0.0
    for vertices in ([], [0], [0, 1, 0], [2, 2, 2]):
        whole, limit = scores(np.arange(40), vertices)
        for i in range(40):
            moved = np.abs(whole - scores(np.delete(np.arange(40), i), vertices)[0]).max()
            assert moved <= limit
            largest = max(largest, moved / limit)
    assert largest > 0.99


def test_objective_perturbation_minimises_it_to_a_verified_gradient():
    X, y = regression()
    loss, tilt = PseudoHuberLoss(0.5), np.array([1.0, -2.0, 0.0, 0.5])
    weights = minimise(X, y, loss, 3.0, tilt, StoppingCriterion(1e-9))
    assert np.linalg.norm(gradient(X, y, loss, 3.0, tilt, weights)) <= 1e-9
