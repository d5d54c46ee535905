"""The law of Frank-Wolfe steps over all paths, written from the definition and not from a solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from taciturn.methods.frank_wolfe.plan import FrankWolfePlan
from taciturn_research.attacks.laws import Law

__all__ = ["FrankWolfeLaw"]


@dataclass(frozen=True, slots=True)
class FrankWolfeLaw:
    """The law of Frank-Wolfe steps of a regression, from gradients in real arithmetic.

    Features, targets and coefficients are in mapped units, which those of the catalogue's models are: bounds of one, no
    intercept. Of the plan the loss, the radius, the number of steps and the noise scale are used.
    """

    plan: FrankWolfePlan

    def __call__(self, data: tuple[np.ndarray, np.ndarray]) -> Law:
        """The probability of every vector of coefficients."""
        X, y = data
        plan = self.plan
        noise = plan.noise_scale * plan.problem.loss.lipschitz(plan.radius)
        vertices = plan.radius * np.vstack((np.eye(X.shape[1]), -np.eye(X.shape[1])))
        paths = [(np.zeros(X.shape[1]), 1.0)]
        for t in range(plan.n_steps):
            share = 2.0 / (t + 2.0)
            paths = [
                ((1.0 - share) * w + share * vertex, chance * probability)
                for w, chance in paths
                for vertex, probability in zip(
                    vertices,
                    softmax(
                        -vertices @ (X.T @ plan.problem.loss.derivative(X @ w, y)) / (plan.radius * noise)
                    ).tolist(),
                    strict=True,
                )
            ]
        law: Law = {}
        for w, chance in paths:
            # Paths that meet differ by rounding.
            end = tuple(np.round(w, 12).tolist())
            law[end] = law.get(end, 0.0) + chance
        return law
