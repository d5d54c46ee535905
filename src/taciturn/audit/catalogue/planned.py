"""Runs of estimators whose plan is made once: what a fit does between its plan and its certificate, and nothing else.

Features, targets and coefficients are in mapped units, which those of the catalogue's models are: bounds of one, no
intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from taciturn.audit.catalogue.laws import Law
from taciturn.constraints import keep_largest_columns
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.data.target import label_codes, numeric_target
from taciturn.losses import HuberLoss
from taciturn.plan import FrankWolfePlan
from taciturn.plan.admm import ADMMPlan
from taciturn.plan.hard_threshold import HardThresholdPlan
from taciturn.plan.objective_perturbation import ObjectivePlan
from taciturn.solvers.objective_perturbation import bounded_rows

__all__ = ["Alternating", "Descents", "Minimisers", "Steps", "StepsLaw", "Table", "n_outputs_of"]

Table = tuple[np.ndarray, np.ndarray]

_RANGE = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Steps:
    """Frank-Wolfe steps, with or without screening and thinning.

    Parameters
    ----------
    plan : FrankWolfePlan or ScreenedPlan
        How many, and with how much noise.
    n_classes : int
        0 for a regression.
    thin : int or "private-count" or None
        How many coefficients are kept; None for all.
    """

    plan: Any
    n_classes: int = 0
    thin: Any = None

    def __call__(self, data: Table, random_state: int) -> tuple[float, ...]:
        """The coefficients, of which there are few: steps have a length that is not random."""
        X, y = data
        design, target, n_outputs = Design(X, 1.0), _target(y, self.n_classes), n_outputs_of(self.n_classes)
        stream = Stream.of(random_state)
        weights = self.plan.solve(design, target, n_outputs, stream.spawn("frank-wolfe"))
        if self.thin is not None:
            counted = self.thin == "private-count"
            kept = self.plan.count(design, target, n_outputs, stream.spawn("count")) if counted else self.thin
            weights = keep_largest_columns(weights, kept)
        return tuple(weights.ravel().tolist())


@dataclass(frozen=True, slots=True)
class StepsLaw:
    """The law of Frank-Wolfe steps of a regression, over all paths, from gradients in real arithmetic.

    Parameters
    ----------
    plan : FrankWolfePlan
        Of it the loss, the radius, the number of steps and the noise scale are used.
    """

    plan: FrankWolfePlan

    def __call__(self, data: Table) -> Law:
        """The probability of every vector of coefficients."""
        X, y = data
        plan = self.plan
        noise = plan.noise_scale * plan.loss.slope(plan.radius)
        vertices = plan.radius * np.vstack((np.eye(X.shape[1]), -np.eye(X.shape[1])))
        paths = [(np.zeros(X.shape[1]), 1.0)]
        for t in range(plan.n_steps):
            share = 2.0 / (t + 2.0)
            paths = [
                ((1.0 - share) * w + share * vertex, chance * probability)
                for w, chance in paths
                for vertex, probability in zip(
                    vertices,
                    softmax(-vertices @ (X.T @ plan.loss.derivative(X @ w, y)) / (plan.radius * noise)).tolist(),
                    strict=True,
                )
            ]
        law: Law = {}
        for w, chance in paths:
            # Paths that meet differ by rounding.
            end = tuple(np.round(w, 12).tolist())
            law[end] = law.get(end, 0.0) + chance
        return law


@dataclass(frozen=True, slots=True)
class Descents:
    """Gradient steps with hard thresholding.

    Parameters
    ----------
    plan : HardThresholdPlan
        How many, and with how much noise.
    n_classes : int
        0 for a regression.
    """

    plan: HardThresholdPlan
    n_classes: int = 0

    def __call__(self, data: Table, random_state: int) -> np.ndarray:
        """The coefficients."""
        X, y = data
        target, n_outputs = _target(y, self.n_classes), n_outputs_of(self.n_classes)
        weights = self.plan.solve(Design(X, 1.0), target, n_outputs, False, Stream.of(random_state))
        return np.ravel(weights[:, :-1])


@dataclass(frozen=True, slots=True)
class Minimisers:
    """The minimiser of a perturbed objective.

    Parameters
    ----------
    plan : ObjectivePlan
        With how much noise.
    """

    plan: ObjectivePlan

    def __call__(self, data: Table, random_state: int) -> np.ndarray:
        """The coefficients."""
        X, y = data
        regression = isinstance(self.plan.loss, HuberLoss)
        target = _target(y, 0 if regression else 2)
        known = np.ones(y.size, dtype=bool) if regression else target >= 0
        rows, shrunk = bounded_rows(X[known], 1.0, self.plan.row_bound, intercept=False)
        targets = (target / ONE * shrunk if regression else target[known].astype(np.float64))[:, None]
        return np.ravel(self.plan.solve(rows, targets, Stream.of(random_state).spawn("minimiser")))


@dataclass(frozen=True, slots=True)
class Alternating:
    """Iterations of ADMM on one block.

    Parameters
    ----------
    plan : ADMMPlan
        How many, and with how much noise.
    """

    plan: ADMMPlan

    def __call__(self, data: Table, random_state: int) -> np.ndarray:
        """The coefficients."""
        X, y = data
        target = _target(y, 2)
        rows, _ = bounded_rows(X, 1.0, self.plan.minimisers.row_bound, intercept=False)
        block = rows[target >= 0], target[target >= 0].astype(np.float64)
        return self.plan.solve([block], X.shape[1], X.shape[1], Stream.of(random_state).spawn("admm"))


def _target(y: np.ndarray, n_classes: int) -> Any:
    return label_codes(y, np.arange(n_classes)) if n_classes else numeric_target(y, _RANGE)


def n_outputs_of(n_classes: int) -> int:
    """Rows of the coefficient matrix."""
    return n_classes if n_classes > 2 else 1
