"""Laws of mechanisms on few candidates, written from their definitions and not from their samplers.

A law maps outcomes to probabilities. Of the mechanism only its public numbers are used, such as its noise scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
from scipy.special import ndtr, softmax

from taciturn.core.validation import FloatArray
from taciturn.mechanisms import (
    CanonicalLipschitz,
    ExponentialMechanism,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    PrivateQuantile,
    RoundedGaussian,
    TwoSidedGeometric,
)
from taciturn.methods.frank_wolfe.plan import FrankWolfePlan

Law = dict[Any, float]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# Laplace noise beyond this has a probability below 1e-30.
_FAR, _PIECES = 70.0, 40
# Outcomes within this many noise scales are distinct; those beyond count as one outcome on each side.
_GEOMETRIC_REACH, _GAUSSIAN_REACH = 40.0, 9.0


@singledispatch
def law_of(mechanism: Any, value: Any) -> Law:
    """The law of ``mechanism.release(value, stream)``, where the number of outcomes is small."""
    raise TypeError(f"no law is known for {type(mechanism).__name__}")


# ------------------------------------------------------------------ one of several candidates


@law_of.register
def _(mechanism: ExponentialMechanism, scores: FloatArray) -> Law:
    return _by_index(_softmax(scores / mechanism.scale))


@law_of.register
def _(mechanism: PermuteAndFlip, scores: FloatArray) -> Law:
    return _by_index(_permute_and_flip(scores / mechanism.scale))


@law_of.register
def _(mechanism: LaplaceNoisyMax, scores: FloatArray) -> Law:
    return {j: p for (j,), p in _laplace_sets(scores / mechanism.scale, 1).items()}


def _by_index(probabilities: FloatArray) -> Law:
    return dict(enumerate(probabilities.tolist()))


def _softmax(utilities: FloatArray) -> FloatArray:
    weights = np.exp(utilities - np.max(utilities))
    return np.asarray(weights / weights.sum())


def _permute_and_flip(utilities: FloatArray) -> FloatArray:
    r"""Candidates come in random order, and i is taken with probability :math:`p_i = e^{u_i - \max u}`.

    With uniform times of arrival :math:`P(j) = p_j \int_0^1 \prod_{i \ne j} (1 - p_i t)\, dt`, a polynomial that 64
    nodes integrate exactly up to 128 candidates.
    """
    chances = np.exp(utilities - np.max(utilities))
    passed = 1.0 - np.outer((_NODES + 1.0) / 2.0, chances)
    others = [np.prod(np.delete(passed, j, axis=1), axis=1) for j in range(chances.size)]
    return np.array([p * float(_WEIGHTS @ passing) / 2.0 for p, passing in zip(chances, others, strict=True)])


# ------------------------------------------------------------------ several of them


@law_of.register
def _(mechanism: GumbelTopK, scores: FloatArray) -> Law:
    return _rounds(_softmax, scores / mechanism.scale, mechanism.k)


@law_of.register
def _(mechanism: PeelingTopK, scores: FloatArray) -> Law:
    def one(left: FloatArray) -> FloatArray:
        return np.array(list(law_of(mechanism.selection, left).values()))

    return _rounds(one, np.asarray(scores, dtype=np.float64), mechanism.k)


@law_of.register
def _(mechanism: LaplaceTopK, scores: FloatArray) -> Law:
    """The law of the selected sets: a test on sets does not use their order."""
    return _laplace_sets(scores / mechanism.scale, mechanism.k)


@law_of.register
def _(mechanism: CanonicalLipschitz, scores: FloatArray) -> Law:
    unit, gamma = mechanism.sensitivity.spread / 2.0, mechanism.gamma
    subsets = list(combinations(range(len(scores)), mechanism.k))
    utilities = []
    for chosen in subsets:
        worst_inside = min(scores[j] for j in chosen) / unit
        best_outside = max(scores[j] for j in range(len(scores)) if j not in chosen) / unit
        utilities.append((1.0 - gamma) * max(worst_inside, best_outside) - gamma * worst_inside)
    law = _softmax if mechanism.noise == "gumbel" else _permute_and_flip
    return dict(zip(subsets, law(-0.5 * mechanism.epsilon * np.array(utilities)).tolist(), strict=True))


def _rounds(one: Callable[[FloatArray], FloatArray], scores: FloatArray, k: int) -> Law:
    """Candidates are chosen one after the other, without replacement."""
    law: Law = {}
    for winners in permutations(range(scores.size), k):
        left, probability = list(range(scores.size)), 1.0
        for winner in winners:
            probability *= float(one(scores[left])[left.index(winner)])
            left.remove(winner)
        law[winners] = probability
    return law


def _laplace_sets(utilities: FloatArray, k: int) -> Law:
    r"""The k largest of ``u_j + L_j``: :math:`\sum_{b \in S} \int f_b \prod_{a \in S - b} (1 - F_a) \prod_{c \notin S}
    F_c`, b being the smallest of them.
    """
    places, weights = _between_kinks(utilities)
    distance = places[:, None] - utilities
    tail = 0.5 * np.exp(-np.abs(distance))
    above = np.where(distance > 0.0, tail, 1.0 - tail)
    below = np.where(distance > 0.0, 1.0 - tail, tail)
    law: Law = {}
    for chosen in combinations(range(utilities.size), k):
        others = [j for j in range(utilities.size) if j not in chosen]
        under = weights * np.prod(below[:, others], axis=1)
        law[chosen] = sum(
            float(under @ (tail[:, b] * np.prod(above[:, [a for a in chosen if a != b]], axis=1))) for b in chosen
        )
    return law


def _between_kinks(utilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of an integral over the line, in pieces on which densities are smooth."""
    kinks = np.unique(np.concatenate((utilities, [np.min(utilities) - _FAR, np.max(utilities) + _FAR])))
    edges = np.unique(np.concatenate([np.linspace(a, b, _PIECES + 1) for a, b in pairwise(kinks)]))
    middles, halves = (edges[1:] + edges[:-1]) / 2.0, (edges[1:] - edges[:-1]) / 2.0
    return (middles[:, None] + halves[:, None] * _NODES).ravel(), (halves[:, None] * _WEIGHTS).ravel()


# ------------------------------------------------------------------ numbers


@law_of.register
def _(mechanism: PrivateQuantile, values: FloatArray) -> Law:
    """The score of a bin is the distance of its edges to the quantile, in ranks."""
    edges = [-math.inf, *mechanism.grid[:-1], math.inf]
    below = np.array([np.sum(values <= edge) for edge in edges])
    ranks = below - mechanism.quantile * len(values)
    misses = np.maximum(0.0, np.maximum(-ranks[1:], ranks[:-1]))
    return dict(zip(mechanism.grid, _softmax(-misses / mechanism.scale).tolist(), strict=True))


@law_of.register
def _(mechanism: TwoSidedGeometric, value: int) -> Law:
    rate = mechanism.epsilon / mechanism.sensitivity
    reach = math.ceil(_GEOMETRIC_REACH / rate)
    unit = math.tanh(rate / 2.0)
    law: Law = {k: unit * math.exp(-rate * abs(k - value)) for k in range(-reach, reach + 1)}
    # The remainder of a geometric series, on each side.
    law["less"] = math.exp(-rate * (reach + 1 + value)) / (1.0 + math.exp(-rate))
    law["more"] = math.exp(-rate * (reach + 1 - value)) / (1.0 + math.exp(-rate))
    return law


@law_of.register
def _(mechanism: RoundedGaussian, value: int) -> Law:
    scale = 2.0**mechanism.log2_scale
    reach = math.ceil(_GAUSSIAN_REACH * scale)
    edges = np.arange(-reach, reach + 2) - 0.5 - value
    # Differences of the smaller tail keep their digits.
    lower, upper = ndtr(edges / scale), ndtr(-edges / scale)
    inside = np.where(edges[1:] <= 0.0, np.diff(lower), -np.diff(upper))
    law: Law = dict(zip(range(-reach, reach + 1), inside.tolist(), strict=True))
    return law | {"less": float(lower[0]), "more": float(upper[-1])}


# ---------------------------------------------------------------------
# The law of Frank-Wolfe steps over all paths, written from the definition and not from a solver.


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
        loss, noise = plan.problem.loss, plan.noise_scale * plan.problem.loss.lipschitz(plan.radius)
        vertices = plan.radius * np.vstack((np.eye(X.shape[1]), -np.eye(X.shape[1])))
        paths = [(np.zeros(X.shape[1]), 1.0)]
        for t in range(plan.n_steps):
            share = 2.0 / (t + 2.0)
            paths = [
                ((1.0 - share) * w + share * vertex, chance * probability)
                for w, chance in paths
                for vertex, probability in zip(
                    vertices,
                    softmax(-vertices @ (X.T @ loss.derivative(X @ w, y)) / (plan.radius * noise)).tolist(),
                    strict=True,
                )
            ]
        law: Law = {}
        for w, chance in paths:
            # Paths that meet differ by rounding.
            end = tuple(np.round(w, 12).tolist())
            law[end] = law.get(end, 0.0) + chance
        return law
