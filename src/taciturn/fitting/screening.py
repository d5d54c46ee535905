r"""Frank-Wolfe with screening: at public iterations, coefficients that a rule singles out are set to zero.

A rule looks at the gradient at the current weights, which are released already, and so is the support. What it
releases is which coefficients go. Rules hold noise, in units of one record's influence, and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from taciturn.core.arrays import AnyArray, FloatArray, IntArray
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.fixed_point import ONE
from taciturn.data.sensitivity import safe_rule, screening_test
from taciturn.fitting.frank_wolfe import Run
from taciturn.fitting.safe_rule import column_norms, rule_scores
from taciturn.losses import Loss
from taciturn.mechanisms import RoundedGaussian
from taciturn.mechanisms.base import first_of, noisy_keys
from taciturn.mechanisms.transcript import Call, LoopSelection, answer, score_limits

__all__ = [
    "GAUSSIAN_BITS",
    "NoisyRule",
    "OptionalSelection",
    "Problem",
    "Rule",
    "SelectionRule",
    "TestedSelection",
    "solve_screened",
]


GAUSSIAN_BITS = 24
"""Gaussian noise has a standard deviation of two to this power lattice units."""

# Far beyond what such noise can hide, and far from the end of 64-bit integers.
_LARGEST = 2**60


@dataclass(frozen=True)
class Problem:
    """What a rule may look at beside the run: data, loss and public numbers.

    Parameters
    ----------
    design : Design
        The features, intercept column included.
    target : ndarray of shape (n_samples,)
        As the run has it.
    loss : Loss
        The loss of one record.
    radius : float
        Radius of the ball in units of scaled features.
    n_rows : int or None
        A public number of records.
    relation : str
        What one record more or less means.
    """

    design: Design
    target: AnyArray
    loss: Loss
    radius: float
    n_rows: int | None
    relation: str

    @cached_property
    def rows(self) -> IntArray:
        """The records that are not null."""
        return np.flatnonzero(self.loss.present(self.target))

    @cached_property
    def norms(self) -> FloatArray:
        """Euclidean norms of the columns, null records left out."""
        return column_norms(self.design.lattice[self.rows]) / ONE

    @property
    def condition(self) -> float:
        """The loss's factor in the safe rule."""
        return self.loss.condition(self.radius)


class Rule(Protocol):
    """Which coefficients to set to zero."""

    def screen(self, run: Run, support: IntArray, problem: Problem, stream: Stream) -> IntArray:
        """Coordinates out of the support, which is not empty; ``support`` leaves the intercept out."""


@dataclass(frozen=True, slots=True)
class SelectionRule:
    r"""The coefficient with the smallest gradient, by the exponential mechanism on :math:`-|g_i|`.

    Parameters
    ----------
    noise : float
        Gumbel scale in units of one record's influence; 0 for none.
    """

    noise: float

    def screen(self, run: Run, support: IntArray, problem: Problem, stream: Stream) -> IntArray:
        """One coordinate, always."""
        return support[[self.choose(-np.abs(run.scores()[support]), run, stream)]]

    def choose(self, scores: AnyArray, run: Run, stream: Stream) -> int:
        """The place of the winner."""
        if self.noise == 0.0:
            return first_of(*noisy_keys(scores, np.zeros(scores.size), 0.0))
        scale = self.noise * run.influence
        return answer(
            lambda: Call(
                LoopSelection("screened coefficient", scale, run.sensitivity, tuple(range(scores.size))),
                score_limits(run.sensitivity, run.grain),
                lambda outcome: scores,
            ),
            lambda: first_of(*noisy_keys(scores, stream.gumbels(scores.size), scale / run.grain)),
        )


@dataclass(frozen=True, slots=True)
class OptionalSelection:
    """A selection with one more candidate, "none", whose score is public.

    Parameters
    ----------
    selection : SelectionRule
        The mechanism.
    threshold : float
        The gradient below which a coefficient is rather screened than not, as a share of the largest possible one.
    """

    selection: SelectionRule
    threshold: float

    def screen(self, run: Run, support: IntArray, problem: Problem, stream: Stream) -> IntArray:
        """One coordinate, or none."""
        scores = -np.abs(run.scores()[support])
        none = -np.rint(self.threshold * (problem.n_rows or 0) * run.influence / run.grain)
        # Integers stay integers, beyond the digits of doubles too.
        winner = self.selection.choose(np.append(scores, none.astype(scores.dtype)), run, stream)
        return support[winner : winner + 1]


@dataclass(frozen=True, slots=True)
class TestedSelection:
    r"""A selection, then the safe rule on three noisy numbers.

    Column norms are replaced by their public bounds, which keeps a safe rule safe:
    :math:`\lambda |g_j| + w^\top g + 2 \kappa \lambda \sqrt{n G} < 0`. The root is taken after the noise.

    Parameters
    ----------
    selection : SelectionRule
        The mechanism.
    noise : float
        Standard deviation in units of the sensitivity, rounding included; 0 for none.
    """

    selection: SelectionRule
    noise: float

    def screen(self, run: Run, support: IntArray, problem: Problem, stream: Stream) -> IntArray:
        """One coordinate if it passes the test."""
        scores = run.scores()
        chosen = support[[self.selection.choose(-np.abs(scores[support]), run, stream)]]
        gradient = scores * run.grain
        inner = _inner(run.coefficients(), gradient)
        gap = inner + problem.radius * float(np.abs(gradient).max())
        values = np.array([problem.radius * abs(gradient[chosen[0]]), inner, gap])
        if self.noise > 0.0:
            declared = screening_test(
                problem.loss.opposing_terms(problem.radius),
                problem.radius,
                run.influence,
                problem.relation,
                error=run.derivative_error,
                rounding=run.rounding,
            )
            values = _noisy(values, declared.value, self.noise, stream)
        first, inner, gap = values.tolist()
        n_rows = problem.n_rows or 0
        slack = 2.0 * problem.condition * problem.radius * math.sqrt(n_rows * max(gap, 0.0))
        return chosen if first + inner + slack < 0.0 else chosen[:0]


@dataclass(frozen=True, slots=True)
class NoisyRule:
    """Every score of the safe rule with Gaussian noise; all coefficients whose noisy score is negative go.

    Parameters
    ----------
    noise : float
        Standard deviation in units of the l2 sensitivity, rounding included; 0 for none.
    """

    noise: float

    def screen(self, run: Run, support: IntArray, problem: Problem, stream: Stream) -> IntArray:
        """Features that are still candidates, those without weight included."""
        radius, n_rows = problem.radius, problem.n_rows or problem.rows.size
        coefficients, gradient = run.coefficients(), run.scores() * (run.grain / n_rows)
        # Without noise nothing else would keep rounding from screening what is exactly on the edge.
        error = 0.0 if self.noise > 0.0 else run.derivative_error
        sizes = np.abs(gradient) + error
        inner = _inner(coefficients, gradient) + radius * error
        gap = inner + radius * float(sizes.max())
        n_features = problem.design.n_features
        # Clipped to public bounds, which hold by themselves where n is the number of records.
        scores = rule_scores(
            sizes[:n_features],
            np.minimum(problem.norms[:n_features] / math.sqrt(n_rows), 1.0),
            inner=inner,
            gap=min(max(gap, 0.0), 2.0 * radius * run.influence),
            margin_norm=min(run.margin_norm() / math.sqrt(n_rows), radius),
            radius=radius,
            condition=problem.condition,
        )
        if self.noise > 0.0:
            declared = safe_rule(
                problem.loss.opposing_terms(radius),
                radius,
                run.influence,
                problem.condition,
                n_rows,
                n_features,
                problem.relation,
                error=run.derivative_error,
                rounding=run.rounding,
            )
            scores = _noisy(scores, declared.value, self.noise, stream)
        return np.flatnonzero((scores < 0.0) & run.candidates[:n_features])


def _inner(coefficients: FloatArray, gradient: FloatArray) -> float:
    """Their inner product, rounded once per product and once more."""
    weighted = np.flatnonzero(coefficients)
    return math.fsum((coefficients[weighted] * gradient[weighted]).tolist())


def _noisy(values: FloatArray, sensitivity: float, noise: float, stream: Stream) -> FloatArray:
    """Values with rounded Gaussian noise of ``noise`` sensitivities, on a lattice that makes this exact.

    Rounding to the lattice moves each value by one unit at most between neighbours, hence the vector by the square
    root of its length on top of the sensitivity.
    """
    room = math.sqrt(values.size)
    # A hair more noise, for the rounding of these quotients.
    unit = sensitivity / (2.0**GAUSSIAN_BITS / (noise * (1.0 + 2.0**-40)) - room)
    mechanism = RoundedGaussian(sensitivity / unit + room, GAUSSIAN_BITS, _LARGEST)
    lattice = np.rint(np.clip(values / unit, -float(_LARGEST), float(_LARGEST))).astype(np.int64)
    noisy: FloatArray = mechanism.release(lattice, stream) * unit
    return noisy


def solve_screened(
    run: Run,
    rule: Rule,
    problem: Problem,
    *,
    n_steps: int,
    screenings: Sequence[int],
    permanent: bool,
    stream: Stream,
    watch: Callable[[float], None] | None = None,
) -> FloatArray:
    """The coefficients after all steps, coordinate by coordinate.

    Parameters
    ----------
    run : Run
        Frank-Wolfe before its first step.
    rule : Rule
        Which coefficients go.
    problem : Problem
        What the rule may look at.
    n_steps : int
        Number of Frank-Wolfe steps.
    screenings : sequence of int
        After how many steps coefficients are screened, in rising order.
    permanent : bool
        Whether a screened coordinate is no candidate any more.
    stream : Stream
        Randomness of this solution.
    watch : callable, default=None
        Receives the mean loss after each screening, which is not private.
    """
    steps, noise = stream.spawn("steps"), stream.spawn("screening")
    n_columns, n_features = problem.design.shape[1], problem.design.n_features
    for t in screenings:
        run.advance_to(t, steps)
        weighted = np.flatnonzero(run.coefficients())
        support = weighted[weighted % n_columns < n_features]
        if support.size:
            screened = rule.screen(run, support, problem, noise)
            (run.exclude if permanent else run.drop)(screened)
        if watch is not None:
            watch(run.mean_loss())
        if not run.candidates.any():
            # Nothing has weight, and nothing can get any.
            return run.coefficients()
    run.advance_to(n_steps, steps)
    return run.coefficients()
