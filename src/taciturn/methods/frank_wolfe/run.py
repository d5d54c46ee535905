"""Private Frank-Wolfe: steps, paths, medians, and the screening rule of its non-private counterpart."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    FRACTION_BITS,
    ONE,
    BoolArray,
    FloatArray,
    IndexArray,
    IntArray,
    NumberArray,
    WordArray,
    check_choice,
    check_integer,
    check_positive,
    check_real,
)
from taciturn.data.design import Design, exact_block_rows
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, Sensitivity, gradient_scores, lattice_gradient_scores
from taciturn.engines.interface import ArraySource, Block
from taciturn.kernels import frank_wolfe as kernels
from taciturn.kernels import frank_wolfe_sparse as sublinear
from taciturn.kernels.vertex_sampler import WEIGHT_ERROR, new_sampler
from taciturn.losses import HuberLoss, LogisticLoss, Loss, SquaredLoss
from taciturn.methods.frank_wolfe.plan import (
    LARGEST_RADIUS,
    NOISELESS_STEPS,
    SMALLEST_RADIUS,
    ClippedCount,
    FrankWolfePlan,
)
from taciturn.methods.releases import ScheduledMedians
from taciturn.methods.sums import TargetMagnitudes
from taciturn.privacy.mechanisms import first_of, noisy_keys
from taciturn.privacy.transcript import Call, LoopSelection, answer, coupling, transcribed, transcribing

# ---- The safe screening rule of Raj et al. for linear models over an L1 ball, with the radius where it belongs.
# Problem: :math:`\min_{\|w\|_1 \le \lambda} f(Xw)`, f with a gradient that is L-Lipschitz, and :math:`\mu`-strongly
# convex, in :math:`u = Xw`. With :math:`g = X^\top \nabla f(u)` and the Wolfe gap :math:`G = w^\top g + \lambda
# \|g\|_\infty`, the score of column i is
#
# .. math:: s_i = \lambda |g_i| + w^\top g + L (\lambda \|x_{(i)}\|_2 + \|Xw\|_2) \sqrt{G / \mu},
#
# and :math:`s_i < 0` implies that :math:`w^*_i = 0` in every solution.
#
# *Proof.* Let :math:`u^* = X w^*`. Optimality gives :math:`\nabla f(u^*)^\top (u - u^*) \ge 0`, so :math:`G \ge \nabla
# f(u)^\top (u - u^*) \ge (\nabla f(u) - \nabla f(u^*))^\top (u - u^*) \ge \mu \|u - u^*\|^2`, and the gradients at u
# and u* differ by at most :math:`\rho = L \sqrt{G/\mu}` in norm. Hence :math:`\lambda |g^*_i| \le \lambda |g_i| +
# \lambda \|x_{(i)}\| \rho`, and :math:`w^{*\top} g^* = u^\top \nabla f(u^*) + (u^* - u)^\top \nabla f(u^*) \le w^\top g
# + \|u\| \rho`. If the sum of the right-hand sides is negative, then :math:`\lambda |g^*_i| < -w^{*\top} g^* = \lambda
# \|g^*\|_\infty`: column i is not among those of the largest gradient, and only these carry weight at an optimum. ∎
#
# Without the factor :math:`\lambda` in front of :math:`|g_i|` and :math:`\|x_{(i)}\|` this holds for the unit ball
# only (Raj, Olbrich, Gärtner, Schölkopf and Jaggi, *Screening rules for convex problems*, 2016, Theorem 11).

# Of a block of rows whose squares are held at a time.
_BLOCK_ENTRIES = 1 << 18


def safe_rule_scores(X: Any, y: Any, coef: Any, *, radius: float, loss: str = "squared") -> FloatArray:
    r"""Scores of the safe rule: a negative one proves that the coefficient is zero in every solution.

    Not private: a plain function of the data.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The features.
    y : array-like of shape (n_samples,)
        Numbers, or labels 0 and 1 for the logistic loss.
    coef : array-like of shape (n_features,)
        Any point of the ball.
    radius : float
        :math:`\lambda`.
    loss : {"squared", "logistic"}, default="squared"
        Half the squared residual, or the logistic loss; summed over records. For the logistic loss X must lie in
        [-1, 1], which bounds the margins and with them the curvature.

    Returns
    -------
    ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> scores = safe_rule_scores(X, [4.0, 1.0], [1.0, 0.0], radius=1.0)
    >>> (scores < 0).tolist()
    [False, True]
    """
    check_positive(radius=radius)
    kinds: dict[str, Loss] = {"squared": SquaredLoss(), "logistic": LogisticLoss()}
    phi = kinds[check_choice(tuple(kinds), loss=loss)]
    check_real(0.0, phi.largest_radius, radius=radius)
    weights = np.asarray(coef, dtype=np.float64)
    if np.abs(weights).sum() > radius * (1.0 + 1e-9):
        raise ParameterError("coef", "a point outside", "a point of the L1 ball", "project it onto the ball first")
    margins = np.asarray(X @ weights).ravel()
    residuals = phi.derivative(margins, np.asarray(y, dtype=np.float64))
    gradient = np.asarray(X.T @ residuals).ravel()
    norms = column_norms(X)
    # Rounding must not screen what is exactly on the edge, as the support is at a solution.
    error = 2.0**-40 * float(norms.max() * np.linalg.norm(residuals))
    inner = float(weights @ gradient) + radius * error
    return rule_scores(
        np.abs(gradient) + error,
        norms,
        inner=inner,
        gap=max(inner + radius * (float(np.abs(gradient).max()) + error), 0.0),
        margin_norm=float(np.linalg.norm(margins)),
        radius=radius,
        condition=phi.condition(radius),
    )


def rule_scores(
    sizes: FloatArray,
    norms: FloatArray,
    *,
    inner: float,
    gap: float,
    margin_norm: float,
    radius: float,
    condition: float,
) -> FloatArray:
    r"""The scores from their parts, in sums or in means over records.

    ``sizes`` hold :math:`|g_i|`, ``norms`` :math:`\|x_{(i)}\|_2`; ``inner`` is :math:`w^\top g`, ``gap`` G,
    ``margin_norm`` :math:`\|Xw\|_2` and ``condition`` :math:`L/\sqrt\mu`. For means divide sizes, inner product and gap
    by n, the norms by its root.
    """
    third = condition * (radius * norms + margin_norm) * math.sqrt(gap)
    scores: FloatArray = radius * sizes + inner + third
    return scores


def column_norms(X: Any, present: BoolArray | None = None) -> FloatArray:
    """Euclidean norms of the columns, over the rows that are present; sums of squared integers are exact to 2**53."""
    rows = np.ones(X.shape[0]) if present is None else present.astype(np.float64)
    if sp.issparse(X):
        return np.sqrt(np.asarray(X.astype(np.float64).power(2).T @ rows, dtype=np.float64))
    total = np.zeros(X.shape[1])
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block = slice(start, start + step)
        total += rows[block] @ np.square(X[block], dtype=np.float64)
    return np.sqrt(total)


# ---- A target centred and a problem scaled by private medians, before Frank-Wolfe begins.

_Plan = TypeVar("_Plan", bound=FrankWolfePlan)

_MIDDLES = np.linspace(-1.0, 1.0, 513)
MAGNITUDES = np.geomspace(2.0**-10, 1.0, 50)
"""Grid of the median distance of a mapped target from its middle."""


def _no_columns() -> IndexArray:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class MappedTargets:
    """The target in mapped units."""

    columns: IndexArray = field(default_factory=_no_columns)

    def values(self, block: Block) -> FloatArray:
        """The targets of a block."""
        return np.asarray(block.target, dtype=np.float64) / ONE


def release_middle(medians: ScheduledMedians) -> int:
    """A private median of the target in lattice units."""
    edge = medians.release("middle", MappedTargets(), _MIDDLES, "middle of the target")
    # The grid names upper ends of bins.
    return round((edge - 0.5 * float(_MIDDLES[1] - _MIDDLES[0])) * ONE)


def scale_target(plan: _Plan, source: ArraySource, stream: Stream) -> tuple[_Plan, ArraySource, float]:
    """The plan and the source in units of the medians that the plan asks for, if any, and the middle of the target.

    Targets less the middle stay within the bounds: farther ones have residuals beyond the clip on either side.
    """
    if plan.medians is None:
        return plan, source, 0.0
    medians = ScheduledMedians(plan.schedule, plan.problem.relation, source, stream)
    middle = release_middle(medians) if plan.medians.centred else 0
    distance = medians.release("distance", TargetMagnitudes(middle), MAGNITUDES, "residual clip")
    loss = plan.problem.loss
    if not isinstance(loss, HuberLoss):
        raise TypeError("only residuals are clipped by medians of the target")
    scaled = replace(
        plan,
        problem=replace(plan.problem, loss=HuberLoss(loss.threshold * distance)),
        radius=plan.radius * (distance if plan.medians.scales_radius else 1.0),
    )
    records = replace(source.records, y=np.clip(source.records.y - middle, -ONE, ONE))
    return scaled, ArraySource(records, source.x_bound, source.n_records), middle / ONE


# ---- Frank-Wolfe over an L1 ball on integer scores: the public numbers of a run, and what all paths share.
# A run draws, at step t = 0, 1, .., the vertex ``sign * radius * e_j`` with probability proportional to ``exp(-sign
# g_j / noise_scale)``, ``g = sum_i psi_i x_i``, and moves ``w <- (1 - mu) w + mu * vertex``, ``mu = 2 / (t + 2)``,
# from w = 0. Features are lattice integers in [-ONE, ONE] that stand for [-1, 1].
#
# Charges for finite arithmetic: the sensitivity of the scores *as computed* is
# ``data.sensitivity.lattice_gradient_scores``. A selection then has a bounded range of twice that over the noise scale,
# plus :data:`SELECTION_CHARGE`, as sampled within a total variation distance of
# ``frank_wolfe.plan.SELECTION_LEFTOVER``.

SELECTION_CHARGE = 4.0 * WEIGHT_ERROR
"""What rounding adds to the bounded range of one selection; ``mechanisms.rounding_charge`` pays more."""

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
    """The public numbers of a run, for a loss with a ``lattice_derivative`` at this radius; n counts null records too.

    ``noise_scale`` is that of the exponential mechanism in units of ``g``; 0 for the best vertex at every step.
    """

    loss: Loss
    radius: float
    n_steps: int
    noise_scale: float
    n_rows: int
    relation: str = "zero-out"
    derivative: sublinear.LatticeDerivative = field(init=False, repr=False, compare=False)

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

    Columns go by the caller's numbers outside. Inside, where paths order them anew or no longer hold all of them,
    by their *places*. :class:`PlainRun` has the same attributes. ``grain`` is one unit of the scores, ``influence``
    how far one record can move a score under zero-out, rounding included, and ``sensitivity`` the same under the
    neighbouring relation of the run, all in units of the gradient. ``derivative_error`` is how far a record's
    derivative, as computed, can be from that of the loss; ``rounding`` bounds the relative rounding error of a
    product of coefficients and scores, in units of one record's part. ``candidates`` can still be chosen by a step.
    ``norms`` are Euclidean norms of the columns in scaled units, null records left out; None unless they were asked
    for.
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
    """A run on ``A = -X' y`` and ``B = G v`` for the squared loss, without margins; subclasses hold columns of G."""

    a: IntArray
    y: NumberArray
    matrix: tuple[Any, ...]
    columns: tuple[Any, ...]

    def __init__(self, problem: FrankWolfeProblem, n_features: int) -> None:
        super().__init__(problem, n_features)
        self.halvings = kernels.halvings_of(problem.n_rows, problem.n_steps)
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
        reached: int = kernels.advance_by_columns(
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


# ---- Frank-Wolfe over an L1 ball by full gradients and one noisy maximum over all vertices per step.


class PlainRun:
    """A run in progress: any loss, any layout, several outputs; coordinates are output by output, column by column.

    ``noise_scale`` and the rest are as for :func:`open_run`, ``n_rows`` is a public bound on the number of records.
    """

    def __init__(
        self,
        design: Design,
        target: NumberArray,
        loss: Loss,
        radius: float,
        n_outputs: int,
        noise_scale: float,
        n_rows: int,
        relation: str = "zero-out",
    ) -> None:
        self.design, self.radius, self.noise_scale, self.t = design, radius, noise_scale, 0
        self.weights = np.zeros((n_outputs, design.shape[1]))
        self.candidates = np.ones(self.weights.size, dtype=bool)
        self.norms: FloatArray | None = None
        # Coefficients on a lattice that leaves room for exact margins: ONE * ||w||_1 * 2**bits <= 2**53.
        self._bits = 52 - FRACTION_BITS - max(0, math.ceil(math.log2(radius)))
        # Weights of a record, at most ONE in absolute value, stand for derivatives up to the Lipschitz constant.
        self.influence = loss.lipschitz(radius)
        self.sensitivity = gradient_scores(1.0, self.influence, relation)
        self.grain = self.influence / (ONE * ONE)
        # Half a unit of the derivatives, and the change of a derivative when rounded coefficients move its margin.
        moved = loss.smoothness * design.shape[1] * 2.0 ** -(self._bits + 1)
        rounded = 0.5 * self.influence / ONE + min(moved, 2.0 * self.influence)
        self.derivative_error = max(rounded, self.influence / ONE)
        self.rounding = ROUNDING_PER_RECORD * n_rows
        self._loss, self._target, self._unit = loss, target, 2.0 ** -(self._bits + FRACTION_BITS)

    def scores(self) -> IntArray:
        """The gradient before the next step, in units of ``grain``."""
        lattice = np.rint(np.ldexp(self.weights, self._bits))
        margins = self.design.matvec(lattice.T)
        psi = self._loss.integer_derivatives(margins, self._unit, self._target, self.radius, ONE)
        return self.design.rmatvec(psi, ONE).T.ravel()

    def coefficients(self) -> FloatArray:
        """The iterate in units of scaled features."""
        return self.weights.ravel()

    def margin_norm(self) -> float:
        """``||X w||_2``."""
        margins, rows = self._margins()
        # Margins as a share of the radius, whose squares neither overflow nor vanish.
        return self.radius * float(np.linalg.norm(margins[rows] / self.radius))

    def mean_loss(self) -> float:
        """The mean loss of the records that are not null; not private."""
        margins, rows = self._margins()
        return float(self._loss.record_values(margins[rows], self._target[rows]).mean())

    def _margins(self) -> tuple[FloatArray, IndexArray]:
        """Margins, and which records are not null."""
        lattice = np.rint(np.ldexp(self.weights, self._bits))
        margins = self.design.matvec(lattice.T).astype(np.float64) * self._unit
        return margins, np.flatnonzero(self._loss.present(self._target))

    def advance_to(self, t: int, stream: Stream) -> None:
        """Draw vertices and step until iteration t."""
        while self.t < t:
            alive = np.flatnonzero(self.candidates)
            vertex = self._vertex(alive, self.scores()[alive], stream)
            share = 2.0 / (self.t + 2.0)
            self.weights *= 1.0 - share
            sign = 1.0 if vertex < alive.size else -1.0
            self.weights.flat[alive[vertex % alive.size]] += share * sign * self.radius
            self.t += 1

    def _vertex(self, alive: IntArray, gradient: IntArray, stream: Stream) -> int:
        """The index of the chosen vertex: positive signs first, then negative ones."""
        scores = np.concatenate((-gradient, gradient))
        if self.noise_scale == 0.0:
            return first_of(*noisy_keys(scores, np.zeros(scores.size), 0.0))
        noise_scale = self.noise_scale * self.influence
        return answer(
            lambda: Call(
                LoopSelection("vertex", noise_scale, self.sensitivity, tuple(alive.tolist())),
                (("linf", self.sensitivity.value / self.grain),),
                lambda outcome: gradient,
            ),
            lambda: first_of(*noisy_keys(scores, stream.gumbels(scores.size), self.noise_scale * ONE * ONE)),
        )

    def drop(self, coordinates: IntArray) -> None:
        """Set coefficients to zero, between two steps."""
        self.weights.flat[coordinates] = 0.0

    def exclude(self, coordinates: IntArray) -> None:
        """Drop coordinates for good: they are no candidates any more."""
        self.drop(coordinates)
        self.candidates[coordinates] = False


# ---- Private Frank-Wolfe with a scalar margin: five paths to the same selections, and the choice among them.
# path       data    losses   cost of a step                                 set-up    logistic derivative
# sublinear  sparse  all      rows of the chosen column, times their length  O(nnz)    within 1e-3
# columns    sparse  squared  O(d), and a column of X'X when it is new       O(nnz)
# margins    sparse  all      one pass over X                                O(nnz)    within 1e-5
# gram       dense   squared  O(d)                                           O(n d d)
# dense      dense   all      one pass over X                                O(n d)    within 1e-5
#
# :func:`choose_path` looks at public numbers alone. Paths round differently, so a choice that depended on the data
# would make the rounding of every score depend on every record.

# Above this many features the Gram matrix of dense data costs more than it saves.
_GRAM_FEATURES = 2000
# Below this much noise, in units of R, popular columns are chosen so often that full passes are as fast.
_LEAST_NOISE = 0.25
# Of a block of rows whose part of the Gram matrix is computed at a time.
_PATHS_BLOCK_ENTRIES = 1 << 21
_FEWEST_SLOTS = 8


def _frozen(array: Any, kind: type) -> NDArray[Any]:
    """A read-only view in one type: compiled once, whatever the caller's array allows."""
    view: NDArray[Any] = np.ascontiguousarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view


class _SparsePath(FrankWolfePath):
    """A sparse matrix by row and by column; columns are numbered by falling popularity inside."""

    def __init__(self, X: Any, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        X = sp.csr_array(X)
        indices, values = _frozen(X.indices, np.int32), _frozen(X.data, np.int32)
        self.names = np.argsort(-sublinear.count_columns(indices, self.n_features), kind="stable").astype(np.int32)
        self.ranks[self.names] = np.arange(self.n_features, dtype=np.int32)
        self.matrix = sublinear.pack(_frozen(X.indptr, np.int64), indices, values, self.ranks)

    def _keep(self, places: IntArray) -> None:
        new = np.full(self.names.size, -1, dtype=np.int64)
        new[places] = np.arange(places.size)
        row_starts, row_entries, column_starts, column_entries = sublinear.keep_columns(self.matrix, new, places.size)
        # Read-only as before: another type would be compiled anew, in the middle of a run.
        self.matrix = _frozen(row_starts, np.int64), row_entries, column_starts, column_entries


class _MarginPath(FrankWolfePath):
    """Exact margins and a full gradient per step; any loss."""

    y: IntArray
    u: IntArray

    def __init__(self, problem: FrankWolfeProblem, n_features: int) -> None:
        super().__init__(problem, n_features)
        self.scales = problem.radius / problem.sums
        self.loss = (problem.derivative.logistic, sublinear.curve_table(), problem.bound)
        self.work = np.empty(n_features)

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.u, self.y

    def _keep(self, places: IntArray) -> None:
        self.work = np.empty(places.size)


class SublinearPath(_SparsePath):
    """Scores kept up to date row by row, vertices drawn without looking at all columns; any loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.derivative_error = problem.derivative.pieces_error
        if problem.noise_scale > 0.0 and problem.largest_exponent > 2.0**32:
            raise ParameterError(
                "noise_scale",
                problem.noise_scale,
                "more noise than that for this path",
                "leave the choice to choose_path",
            )
        self.pieces = tuple(problem.derivative.pieces)
        self.schedule = tuple(sublinear.schedule_of(problem.n_rows, problem.radius, problem.n_steps))
        self.rows: tuple[Any, ...] = tuple(sublinear.new_rows(problem.derivative.targets(targets), problem.n_steps))
        self._sums = np.zeros((2, self.n_features), dtype=np.int64)
        sublinear.reset(0, self.rows, self.pieces, self.schedule)
        self._group()
        sublinear.catch_up_all(self._sums, self.matrix, self.rows[2], self.groups)

    def _group(self) -> None:
        self.groups = tuple(sublinear.group_columns(self.matrix, self.problem.inverse_temperature, self.problem.bound))
        # The mean length of the row of an entry, to which empty rows do not count.
        lengths = np.diff(self.matrix[0])
        self.row_length = float(np.square(lengths).sum() / max(lengths.sum(), 1))

    @property
    def sums(self) -> IntArray:
        """A and B, brought up to date."""
        sublinear.catch_up_all(self._sums, self.matrix, self.rows[2], self.groups)
        return self._sums

    def _scores(self) -> FloatArray:
        a, b = self.sums
        scores: FloatArray = a + self.schedule[0][self.t] * b
        return scores

    def _move(self, t: int, place: int, amount: int) -> None:
        sums, shifts = self.sums, self.schedule[1]
        _, n_rows = sublinear.touch(t, place, amount, self.matrix, self.rows)
        if shifts[t] != shifts[t - 1]:
            sublinear.reset(t, self.rows, self.pieces, self.schedule)
            sublinear.leave_behind(self.groups[0], self.groups[4])
        else:
            sublinear.recut(t, n_rows, 0.0, False, sums, self.matrix, self.rows, self.pieces, self.schedule)
        # Levels of the sampler have not followed.
        sublinear.end_epochs(self.groups[0])

    def _integers(self) -> tuple[IntArray, IntArray]:
        return self.rows[0], self.rows[1]

    def _keep(self, places: IntArray) -> None:
        self._sums = np.ascontiguousarray(self.sums[:, places])
        super()._keep(places)
        self._group()

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self._sums, self.matrix, self.rows, self.pieces, self.schedule, self.groups, self.sampler)
        start = (self.t, self.problem.inverse_temperature, self.row_length)
        reached: int = sublinear.advance(*start, *state, self.bounds, self.names, chosen, words)
        return reached


class ColumnPath(_SparsePath, QuadraticPath):
    """Columns of the Gram matrix, computed as they are needed; squared loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.y = problem.derivative.targets(targets)
        kernels.sparse_gradient(self.matrix, -self.y.astype(np.int32), self.work)
        self.a = self.work.astype(np.int64)
        self._open_slots()

    def _open_slots(self) -> None:
        """As much memory as the matrix takes by row. How many columns fit decides how long a step takes, no more."""
        n_slots = max(_FEWEST_SLOTS, self.matrix[1].size // self.a.size)
        self.columns = tuple(kernels.no_columns(self.a.size, min(n_slots, self.problem.n_steps + 1)))

    def _move(self, t: int, place: int, amount: int) -> None:
        slot = kernels.fetch_column(place, self.t, self.halvings, self.matrix, self.columns)
        self.b += amount * self.columns[0][slot]

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        QuadraticPath._keep(self, places)
        self._open_slots()


class MarginPath(_SparsePath, _MarginPath):
    """Exact margins of sparse data."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(X, problem)
        self.y = problem.derivative.targets(targets)
        self.u = np.zeros_like(self.y)
        self.psi = np.empty(self.y.size, dtype=np.int32)

    def _scores(self) -> FloatArray:
        kernels.residuals(self.u, self.y, self.scales[self.t], *self.loss, self.psi)
        kernels.sparse_gradient(self.matrix, self.psi, self.work)
        return self.work

    def _move(self, t: int, place: int, amount: int) -> None:
        kernels.move_sparse(self.matrix, place, amount, self.u)

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        _MarginPath._keep(self, places)

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.matrix, self.sampler, self.psi, self.work, self.bounds, self.names, chosen)
        reached: int = kernels.advance_sparse(
            self.t, self.problem.inverse_temperature, self.scales, self.u, self.y, *self.loss, *state, words
        )
        return reached


class GramPath(QuadraticPath):
    """The whole Gram matrix; squared loss."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        y = problem.derivative.targets(targets).astype(np.float64)
        gram = np.zeros((self.n_features, self.n_features), dtype=np.int64)
        self.a = np.zeros(self.n_features, dtype=np.int64)
        # Products of doubles that hold integers, exact in blocks of up to 2**21 rows; few rows at a time save memory.
        block = min(exact_block_rows(ONE), max(1, _PATHS_BLOCK_ENTRIES // self.n_features))
        for start in range(0, X.shape[0], block):
            part = np.asarray(X[start : start + block], dtype=np.float64)
            gram += (part.T @ part).astype(np.int64)
            self.a -= (part.T @ y[start : start + block]).astype(np.int64)
        self.columns = tuple(kernels.all_columns(gram, self.halvings))
        nothing: IntArray = np.zeros(0, dtype=np.int64)
        # As sparse paths have it, so that one compilation serves both.
        self.matrix = (_frozen(nothing, np.int64), nothing, nothing, nothing)
        self.y = y

    def _move(self, t: int, place: int, amount: int) -> None:
        self.b += amount * self.columns[0][place]

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        # The entries are halved already.
        self.columns = tuple(kernels.all_columns(self.columns[0][np.ix_(places, places)], 0))


class DensePath(_MarginPath):
    """Exact margins of dense data."""

    def __init__(self, X: Any, targets: NumberArray, problem: FrankWolfeProblem) -> None:
        super().__init__(problem, X.shape[1])
        self.y = problem.derivative.targets(targets)
        self.u = np.zeros_like(self.y)
        self.data = self._in_fours(np.asarray(X).T)
        self.block = exact_block_rows(problem.bound)
        self.psi = np.empty(self.y.size)

    @staticmethod
    def _in_fours(columns: Any) -> NDArray[np.float32]:
        """One column after the other, padded to a multiple of four; single precision holds 17-bit integers."""
        data = np.zeros((-(-columns.shape[0] // 4) * 4, columns.shape[1]), dtype=np.float32)
        data[: columns.shape[0]] = columns
        return data

    def _scores(self) -> FloatArray:
        kernels.residuals(self.u, self.y, self.scales[self.t], *self.loss, self.psi)
        kernels.dense_gradient(self.data, self.psi, self.block, self.work)
        return self.work

    def _move(self, t: int, place: int, amount: int) -> None:
        kernels.move_dense(self.data, place, amount, self.u)

    def _keep(self, places: IntArray) -> None:
        super()._keep(places)
        self.data = self._in_fours(self.data[places])

    def _advance(self, chosen: IntArray, words: WordArray) -> int:
        state = (self.data, self.block, self.sampler, self.psi, self.work, self.bounds, self.names, chosen)
        reached: int = kernels.advance_dense(
            self.t, self.problem.inverse_temperature, self.scales, self.u, self.y, *self.loss, *state, words
        )
        return reached


PATHS: dict[str, type[FrankWolfePath]] = {
    "sublinear": SublinearPath,
    "columns": ColumnPath,
    "margins": MarginPath,
    "gram": GramPath,
    "dense": DensePath,
}
_SPARSE = ("sublinear", "columns", "margins")
_QUADRATIC = ("columns", "gram")


def choose_path(problem: FrankWolfeProblem, n_features: int, *, sparse: bool, by_margins: bool = False) -> str:
    """The path by public facts: noise, loss, d, layout, ``by_margins`` for exact ones; never the number of records."""
    quadratic = problem.derivative.quadratic and not by_margins
    if not sparse:
        return "gram" if quadratic and n_features <= _GRAM_FEATURES else "dense"
    if problem.noise_scale >= _LEAST_NOISE * problem.bound / ONE:
        return "sublinear"
    return "columns" if quadratic else "margins"


class _Zeros:
    """Words for a run whose result nobody sees."""

    def words(self, size: int) -> WordArray:
        return np.zeros(size, dtype=np.uint64)


@cache
def warm_up(*, sparse: bool, noisy: bool = False) -> None:
    """Compile all that the paths of a layout call; ``noisy``: a sparse table has the sub-linear path alone."""
    X = np.full((1, 8), ONE)
    for name in PATHS:
        if sparse == (name in _SPARSE) and (name == "sublinear" or not (sparse and noisy)):
            problem = FrankWolfeProblem(SquaredLoss(), 1.0, 2, 1.0, 1)
            run = open_path(sp.csr_array(X) if sparse else X, np.zeros(1), problem, path=name)
            run.step(0)
            with transcribed(None):
                run.advance_to(2, _Zeros())  # type: ignore[arg-type]
            run.scores()
            run.exclude(np.arange(1, 8))


def open_path(
    X: Any, targets: NumberArray, problem: FrankWolfeProblem, *, valid: BoolArray | None = None, path: str | None = None
) -> FrankWolfePath:
    """A run from zero over the L1 ball, before its first step.

    X and targets hold lattice integers in [-ONE, ONE] of any numeric type, sparse X without duplicates; targets of the
    logistic loss are labels 0 and 1. Records that are not ``valid`` are null: they contribute nothing, but count in n.
    :func:`choose_path` decides, unless a key of :data:`PATHS` is given.
    """
    sparse = sp.issparse(X)
    name = choose_path(problem, X.shape[1], sparse=sparse) if path is None else path
    if sparse != (name in _SPARSE) or (name in _QUADRATIC and not problem.derivative.quadratic):
        raise ParameterError("path", name, "a path for this layout and loss", "leave it to choose_path")
    if X.shape[0] > problem.n_rows:
        # The number itself may be private.
        raise ParameterError("n_rows", problem.n_rows, "a bound on the number of records", "give a larger one")
    if valid is not None and not valid.all():
        X, targets = (X.tocsr() if sparse else X)[valid], targets[valid]
    return PATHS[name](X, targets, problem)  # type: ignore[call-arg, arg-type]


# ---- Frank-Wolfe over an L1 ball with a selection per step.
# Everything is on the lattice: X by construction, w (which is released anyway) rounded so that margins are exact
# integers, residuals rounded to integers and clipped. A record's residual then depends on that record and the released
# w alone, and the gradient is an exact integer sum: removing a record removes its own term and changes nothing else.

# Room for 64-bit sums of scores: n (radius + 3) may not pass this.
_ROOM = 2**30


def run_frank_wolfe(plan: FrankWolfePlan, source: ArraySource, stream: Stream) -> FloatArray:
    """The coefficients in mapped units, one row per output."""
    run = open_plan(plan, source)
    run.advance_to(plan.n_steps, stream)
    return weights_of(plan, run)


def weights_of(plan: FrankWolfePlan, run: FrankWolfeRun) -> FloatArray:
    """The iterate in mapped units, one row per output; the intercept is a multiple of the entry of its column."""
    weights = run.coefficients().reshape(plan.problem.n_outputs, -1).copy()
    if plan.problem.intercept:
        weights[:, -1] *= plan.constant / ONE
    return weights


def count_nonzero(plan: FrankWolfePlan, source: ArraySource, stream: Stream) -> int:
    """The noisy, clipped number of features with a nonzero coefficient in the noiseless solution."""
    if plan.counting is None:
        raise TypeError("this plan does not count")
    coefficients = run_frank_wolfe(replace(plan, n_steps=NOISELESS_STEPS, noise_scale=0.0), source, stream)
    used = coefficients[:, : source.n_features].any(axis=0)
    return release_count(plan.counting, int(np.count_nonzero(used)), stream)


def release_count(count: ClippedCount, exact: int, stream: Stream) -> int:
    """Release a clipped count with noise, clipped again."""
    clipped = min(max(exact, count.low), count.high)
    if count.low < count.high and not math.isinf(count.epsilon):
        clipped = min(max(int(count.mechanism.release(clipped, stream)), count.low), count.high)
    return clipped


FrankWolfeRun = FrankWolfePath | PlainRun
"""Frank-Wolfe in progress."""


def open_plan(
    plan: FrankWolfePlan, source: ArraySource, *, by_margins: bool = False, norms: bool = False
) -> FrankWolfeRun:
    """The run of a plan before its first step; see :func:`open_run`."""
    problem = plan.problem
    return open_run(
        source.design(constant=plan.constant),
        source.records.y,
        problem.loss,
        plan.radius,
        plan.n_steps,
        problem.n_outputs,
        plan.noise_scale,
        # A public guess of a private number of records may guide steps and noise; arithmetic cannot rely on it.
        None if problem.relation == "add-remove" else problem.n_rows,
        relation=problem.relation,
        # The fast samplers have a distance from their law, which a delta of zero has no room for.
        plainly=plan.budget.delta == 0.0 and plan.noise_scale > 0.0,
        by_margins=by_margins,
        norms=norms,
    )


def open_run(
    design: Design,
    target: NumberArray,
    loss: Loss,
    radius: float,
    n_steps: int,
    n_outputs: int,
    noise_scale: float,
    n_rows: int | None,
    *,
    relation: str = "zero-out",
    plainly: bool = False,
    by_margins: bool = False,
    norms: bool = False,
) -> FrankWolfeRun:
    """A run before its first step, by the fastest path to the same selections that public facts allow.

    The intercept column is one of the design's. The target holds lattice values, or class codes (-1 for null
    records). ``noise_scale`` is that of the Gumbel noise in units of the largest influence of one record, 0 for
    none. ``n_rows`` is None where the number of records is private: then nothing depends on it but the time a step
    takes. ``relation`` is for the declared sensitivity of the scores alone. ``plainly`` weighs all vertices in
    every step, since the fast samplers are up to 2**-110 a step away from the law; ``by_margins`` keeps margins
    exact, where some paths keep a rounded Gram matrix; ``norms`` states the norms of the columns.
    """
    bound = MOST_PRIVATE_ROWS if n_rows is None else n_rows
    present = loss.present(target)
    fits = not plainly and _fits(design, radius, n_steps, noise_scale, bound)
    # Only where it fits: beyond the largest radius the bound of a derivative is no integer any more.
    derivative = loss.lattice_derivative(radius) if fits else None
    if derivative is None:
        plain = PlainRun(design, target, loss, radius, n_outputs, noise_scale, bound, relation)
        plain.norms = column_norms(design.lattice, present) / ONE if norms else None
        return plain
    influence = lattice_gradient_scores(derivative, radius, bound, n_steps, "zero-out").value
    problem = FrankWolfeProblem(loss, radius, n_steps, noise_scale * influence, bound, relation)
    X = design.compact()
    name = choose_path(problem, X.shape[1], sparse=sp.issparse(X), by_margins=by_margins)
    path = open_path(X, target, problem, valid=present, path=name)
    path.norms = column_norms(X, present) / ONE if norms else None
    return path


def _fits(design: Design, radius: float, n_steps: int, noise_scale: float, n_rows: int) -> bool:
    """Whether the fast paths have room for a problem; by public facts, whatever the records hold."""
    if not SMALLEST_RADIUS <= radius <= LARGEST_RADIUS or n_steps > MOST_STEPS:
        return False
    resolved = noise_scale == 0.0 or n_rows / noise_scale < 2.0**49
    return resolved and design.shape[1] <= MOST_FEATURES and n_rows * (radius + 3.0) <= _ROOM
