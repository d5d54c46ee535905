r"""Frank-Wolfe over an L1 ball on integer scores: the public numbers of a run, and what all paths share.

A run draws, at step t = 0, 1, .., the vertex ``sign * radius * e_j`` with probability proportional to ``exp(-sign
g_j / noise_scale)``, ``g = sum_i psi_i x_i``, and moves ``w <- (1 - mu) w + mu * vertex``, ``mu = 2 / (t + 2)``,
from w = 0. Features are lattice integers in [-ONE, ONE] that stand for [-1, 1].

Charges for finite arithmetic: the sensitivity of the scores *as computed* is
``data.sensitivity.lattice_gradient_scores``. A selection then has a bounded range of twice that over the noise scale,
plus :data:`SELECTION_CHARGE`, as sampled within a total variation distance of
``planning.frank_wolfe.SELECTION_LEFTOVER``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray, IntArray, NumberArray, WordArray
from taciturn.core.errors import ParameterError
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer, check_real
from taciturn.data.sensitivity import Sensitivity, lattice_gradient_scores
from taciturn.kernels.gram_frank_wolfe import advance_by_columns, halvings_of
from taciturn.kernels.residual_pieces import LatticeDerivative
from taciturn.kernels.vertex_sampler import WEIGHT_ERROR, new_sampler
from taciturn.losses import Loss
from taciturn.mechanisms.transcript import Call, LoopSelection, answer, coupling, transcribing
from taciturn.planning.frank_wolfe import LARGEST_RADIUS, SMALLEST_RADIUS

__all__ = [
    "MOST_FEATURES",
    "MOST_STEPS",
    "ROUNDING_PER_RECORD",
    "SELECTION_CHARGE",
    "FrankWolfePath",
    "FrankWolfeProblem",
    "QuadraticPath",
]

SELECTION_CHARGE = 4.0 * WEIGHT_ERROR
"""What rounding adds to the bounded range of one selection; ``mechanisms.base.rounding_charge`` pays more."""

ROUNDING_PER_RECORD = 2.0**-48
"""A sum of products that is rounded once per product and once more, on both neighbours, in units of one record's part:
each product is within 2**-52 of itself, and n records make up the whole."""

MOST_STEPS = 1_000_000
MOST_FEATURES = 1 << 26
# Words asked for at a time: 64 KB, some 1,600 proposals.
_WORDS = 1 << 13
# Data are copied without the columns dropped for good once these are a fifth of them.
_WORTH_KEEPING = 0.8
_GONE = -1


@dataclass(frozen=True, slots=True)
class FrankWolfeProblem:
    """The public numbers of a run.

    Parameters
    ----------
    loss : Loss
        The loss of one record; one with a ``lattice_derivative`` at this radius.
    noise_scale : float
        Scale of the exponential mechanism in units of ``g``; 0 for the best vertex at every step.
    n_rows : int
        Number of records, null ones included.
    """

    loss: Loss
    radius: float
    n_steps: int
    noise_scale: float
    n_rows: int
    relation: str = "zero-out"
    derivative: LatticeDerivative = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_real(SMALLEST_RADIUS, LARGEST_RADIUS, radius=self.radius)
        check_integer(1, MOST_STEPS, n_steps=self.n_steps)
        check_real(0.0, math.inf, closed="left", noise_scale=self.noise_scale)
        derivative = self.loss.lattice_derivative(self.radius)
        if derivative is None:
            raise ParameterError("loss", self.loss, "a loss with a lattice derivative", "weigh all vertices plainly")
        object.__setattr__(self, "derivative", derivative)
        # |A| <= n ONE (R + ONE) has to stay below 2**62.
        if check_integer(1, n_rows=self.n_rows) * (self.radius + 3.0) > 2.0**30:
            raise ParameterError(
                "n_rows",
                self.n_rows,
                f"at most {int(2.0**30 / (self.radius + 3.0)):,} records at this radius, for 64-bit sums",
                "use a smaller radius or a sample of the records",
            )
        if self.noise_scale > 0.0 and self.largest_exponent > 2.0**50:
            raise ParameterError(
                "noise_scale", self.noise_scale, "0, or noise that double precision can resolve", "use no noise"
            )

    @property
    def bound(self) -> int:
        """R: the largest derivative of one record, in lattice units."""
        return self.derivative.bound

    def sensitivity(self, relation: str) -> Sensitivity:
        """Of the scores as computed, in units of ``g``."""
        return lattice_gradient_scores(self.derivative, self.radius, self.n_rows, self.n_steps, relation)

    @property
    def inverse_temperature(self) -> float:
        """One over the noise scale, in units of integer scores."""
        return 1.0 / (self.noise_scale * ONE * ONE) if self.noise_scale > 0.0 else math.inf

    @property
    def largest_exponent(self) -> float:
        """``n R / noise_scale``: no score is larger, in units of the noise; infinite without noise."""
        return self.inverse_temperature * self.n_rows * self.bound * ONE

    @property
    def sums(self) -> IntArray:
        """S_t for t = 0 .. n_steps, one instead of zero."""
        t = np.arange(self.n_steps + 1, dtype=np.int64)
        sums: IntArray = np.maximum(t * (t + 1) // 2, 1)
        return sums


class FrankWolfePath:
    """A run in progress; subclasses differ in how they keep the scores.

    Columns go by the caller's numbers outside. Inside, where paths order them anew or no longer hold all of them, by
    their *places*. :class:`~taciturn.fitting.plain.PlainRun` has the same attributes.

    Attributes
    ----------
    grain : float
        One unit of the scores, in units of the gradient.
    influence : float
        How far one record can move a score under zero-out, rounding included, in units of the gradient.
    sensitivity : Sensitivity
        The same under the neighbouring relation of the run.
    derivative_error : float
        How far a record's derivative, as computed, can be from that of the loss.
    rounding : float
        Bound on the relative rounding error of a product of coefficients and scores, in units of one record's part.
    candidates : ndarray of bool
        The coordinates that a step can still choose.
    norms : ndarray or None
        Euclidean norms of the columns in scaled units, null records left out; None unless they were asked for.
    """

    def __init__(self, problem: FrankWolfeProblem, n_features: int) -> None:
        check_integer(1, MOST_FEATURES, n_features=n_features)
        self.problem, self.n_features, self.t = problem, n_features, 0
        self.influence = problem.sensitivity("zero-out").value
        self.sensitivity = problem.sensitivity(problem.relation)
        self.grain = 1.0 / (ONE * ONE)
        self.derivative_error = 2.0**-15
        self.rounding = ROUNDING_PER_RECORD * problem.n_rows
        self.sampler = tuple(new_sampler(n_features))
        self.bounds = np.empty(n_features)
        # The number of the column at each place, its complement where the column is no candidate any more.
        self.names = np.arange(n_features, dtype=np.int32)
        self.ranks = self.names.copy()
        self.chosen = np.zeros(problem.n_steps, dtype=np.int64)
        self.vertices = np.zeros(problem.n_steps, dtype=np.int64)
        self.iterate: IntArray = np.zeros(n_features, dtype=np.int64)
        self.candidates = np.ones(n_features, dtype=bool)
        self.norms: FloatArray | None = None
        self._counted = 0

    def scores(self) -> FloatArray:
        """``ONE**2 * g`` before the next step; 0 for columns that are no longer held."""
        scores = np.zeros(self.n_features)
        scores[np.maximum(self.names, ~self.names)] = self._scores()
        return scores

    def coefficients(self) -> FloatArray:
        """The iterate in units of scaled features."""
        # Exact integers up to here; two roundings make them coefficients.
        return self.iterate.astype(np.float64) * (self.problem.radius / int(self.problem.sums[self.t]))

    def margin_norm(self) -> float:
        """``||X w||_2``."""
        return float(np.linalg.norm(self._margins()[0]))

    def mean_loss(self) -> float:
        """The mean loss of the records; not private."""
        margins, targets = self._margins()
        return float(self.problem.loss.value(margins, targets).mean())

    def step(self, vertex: int) -> None:
        """Take the next step towards a given vertex, k for +e_k or ``~k`` for -e_k."""
        self.chosen[self.t] = self.ranks[vertex] if vertex >= 0 else ~int(self.ranks[~vertex])
        amount = self.t + 1 if vertex >= 0 else -self.t - 1
        self._move(self.t + 1, int(self.ranks[max(vertex, ~vertex)]), amount)
        self.t += 1
        self._count()

    def advance_to(self, t: int, stream: Stream) -> None:
        """Draw vertices and step until iteration t."""
        if self.problem.noise_scale == 0.0:
            # The words decide nothing.
            with coupling():
                self._draw_to(t, stream)
        elif transcribing():
            while self.t < t:
                self._answer_step(stream)
        else:
            self._draw_to(t, stream)

    def _draw_to(self, t: int, stream: Stream) -> None:
        while self.t < t:
            self.t = self._advance(self.chosen[:t], stream.words(_WORDS))
        self._count()

    def _answer_step(self, stream: Stream) -> None:
        """One step through an open transcript; the sampler draws as always, but from words of its own."""
        t, scores = self.t, self.scores()[self.candidates]
        candidates = tuple(np.flatnonzero(self.candidates).tolist())

        def draw() -> int:
            self._draw_to(t + 1, stream)
            return int(self.vertices[t])

        vertex = answer(
            lambda: Call(
                LoopSelection("vertex", self.problem.noise_scale, self.sensitivity, candidates),
                # Vertices compete in pairs, with scores of either sign: a change of one is as good as a range of two.
                (("linf", self.sensitivity.value / self.grain),),
                lambda outcome: scores,
            ),
            draw,
        )
        if self.t == t:
            self.step(vertex)

    def run(self, stream: Stream) -> tuple[FloatArray, IntArray]:
        """Take all steps; the coefficients and the vertices, k for +e_k and ``~k`` for -e_k."""
        self.advance_to(self.problem.n_steps, stream)
        return self.coefficients(), self.vertices

    def drop(self, columns: IntArray) -> None:
        """Set coefficients to zero, between two steps."""
        for column in columns:
            if self.iterate[column]:
                self._move(self.t, int(self.ranks[column]), -int(self.iterate[column]))
        self.iterate[columns] = 0

    def exclude(self, columns: IntArray) -> None:
        """Drop columns for good: they are no candidates any more, and in the end their data go."""
        self.drop(columns)
        self.candidates[columns] = False
        places = self.ranks[columns]
        places = places[places >= 0]
        self.names[places] = np.minimum(self.names[places], ~self.names[places])
        kept = np.flatnonzero(self.names >= 0)
        if 0 < kept.size <= _WORTH_KEEPING * self.names.size:
            self._keep(kept)
            self.names = self.names[kept]
            self.ranks[:] = _GONE
            self.ranks[self.names] = np.arange(kept.size, dtype=np.int32)
            self.sampler = tuple(new_sampler(kept.size))
            self.bounds = np.empty(kept.size)

    def _count(self) -> None:
        """Bring the iterate up to date with the vertices chosen so far."""
        chosen = self.chosen[self._counted : self.t]
        downwards = chosen < 0
        columns = self.names[np.where(downwards, ~chosen, chosen)].astype(np.int64)
        steps = np.arange(self._counted + 1, self.t + 1)
        np.add.at(self.iterate, columns, np.where(downwards, -steps, steps))
        self.vertices[self._counted : self.t] = np.where(downwards, ~columns, columns)
        self._counted = self.t

    def _scores(self) -> FloatArray:
        """:meth:`scores` by place."""
        raise NotImplementedError

    def _margins(self) -> tuple[FloatArray, FloatArray]:
        """Margins and targets of the records."""
        u, y = self._integers()
        return u.astype(np.float64) * (self.problem.radius / int(self.problem.sums[self.t]) / ONE), y / ONE

    def _integers(self) -> tuple[IntArray, IntArray]:
        """``X v`` and the targets, in lattice units."""
        raise NotImplementedError

    def _move(self, t: int, place: int, amount: int) -> None:
        """Add a multiple of one column to what follows from v, and bring it to iteration t."""
        raise NotImplementedError

    def _keep(self, places: IntArray) -> None:
        """Hold on to these places only."""
        raise NotImplementedError

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        """Draw and step until ``chosen`` is full or the words are used up; returns the iteration reached."""
        raise NotImplementedError


class QuadraticPath(FrankWolfePath):
    """A run on ``A = -X' y`` and ``B = G v`` for the squared loss, without margins.

    Subclasses have ``a``, the targets ``y`` in lattice units, and the matrix and the columns of the Gram matrix G that
    the kernel takes.
    """

    a: IntArray
    y: NumberArray
    matrix: tuple[Any, ...]
    columns: tuple[Any, ...]

    def __init__(self, problem: FrankWolfeProblem, n_features: int) -> None:
        super().__init__(problem, n_features)
        self.halvings = halvings_of(problem.n_rows, problem.n_steps)
        self.scales = problem.radius * 2.0**self.halvings / problem.sums
        self.b: IntArray = np.zeros(n_features, dtype=np.int64)
        self.work = np.empty(n_features)

    def _scores(self) -> FloatArray:
        scores: FloatArray = self.a + self.scales[self.t] * self.b
        return scores

    def _keep(self, places: IntArray) -> None:
        self.a, self.b, self.work = self.a[places], self.b[places], np.empty(places.size)

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.a, self.b, self.matrix, self.columns, self.sampler, self.work, self.bounds, self.names)
        reached: int = advance_by_columns(
            self.t, self.problem.inverse_temperature, self.halvings, self.scales, *state, chosen, words
        )
        return reached

    def margin_norm(self) -> float:
        """The root of ``w' G w``, but for the halving of G: not for noise to be added to."""
        return math.sqrt(max(self._quadratic(), 0.0))

    def mean_loss(self) -> float:
        """The mean loss of the records, but for the halving of G; not private."""
        weights = self.coefficients()[np.maximum(self.names, ~self.names)]
        energy = float(self.y.astype(np.float64) @ self.y) / ONE**2
        return 0.5 * (self._quadratic() + 2.0 * float(weights @ self.a) / ONE**2 + energy) / self.y.size

    def _quadratic(self) -> float:
        weights = self.coefficients()[np.maximum(self.names, ~self.names)]
        scale = self.problem.radius * 2.0**self.halvings / int(self.problem.sums[self.t]) / ONE**2
        return scale * float(weights @ self.b)
