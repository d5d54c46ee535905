r"""Frank-Wolfe over an L1 ball with a selection per step.

From ``w = 0``, step t = 0, 1, .. chooses a vertex ``s = +- radius * e_j`` of the ball, the one with the largest
``-<s, g> + noise`` for the gradient ``g = sum_i psi_i x_i``, and moves ``w <- (1 - mu_t) w + mu_t s``,
``mu_t = 2 / (t + 2)``. The number of steps is fixed in advance.

Everything is on the lattice: X by construction, w (which is released anyway) rounded so that margins are exact
integers, residuals rounded to integers and clipped. A record's residual then depends on that record and the released
w alone, and the gradient is an exact integer sum: removing a record removes its own term and changes nothing else.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray, NumberArray
from taciturn.core.lattice import ONE
from taciturn.core.rng import Stream
from taciturn.data.design import Design
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, lattice_gradient_scores
from taciturn.fitting.frank_wolfe_path import MOST_FEATURES, MOST_STEPS, FrankWolfePath, FrankWolfeProblem
from taciturn.fitting.paths import choose_path, open_path
from taciturn.fitting.plain import PlainRun
from taciturn.fitting.safe_rule import column_norms
from taciturn.losses import Loss
from taciturn.planning.frank_wolfe import LARGEST_RADIUS, NOISELESS_STEPS, SMALLEST_RADIUS, ClippedCount, FrankWolfePlan
from taciturn.sources import ArraySource

__all__ = ["FrankWolfeRun", "count_nonzero", "open_plan", "open_run", "release_count", "run_frank_wolfe", "weights_of"]


# Room for 64-bit sums of scores: n (radius + 3) may not pass this.
_ROOM = 2**30


def run_frank_wolfe(plan: FrankWolfePlan, source: ArraySource, stream: Stream) -> FloatArray:
    """The coefficients in mapped units, one row per output."""
    run = open_plan(plan, source)
    run.advance_to(plan.n_steps, stream)
    return weights_of(plan, run)


def weights_of(plan: FrankWolfePlan, run: FrankWolfeRun) -> FloatArray:
    """The iterate in mapped units, one row per output; the intercept is a multiple of the entry of its column."""
    weights = run.coefficients().reshape(plan.n_outputs, -1).copy()
    if plan.intercept:
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
    return open_run(
        source.design(constant=plan.constant),
        source.records.y,
        plan.loss,
        plan.radius,
        plan.n_steps,
        plan.n_outputs,
        plan.noise_scale,
        # A public guess of a private number of records may guide steps and noise; arithmetic cannot rely on it.
        None if plan.relation == "add-remove" else plan.n_rows,
        relation=plan.relation,
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

    The lattice of the features is built once: 32-bit integers that the path arranges in its own way, or the doubles
    that full gradients multiply.

    The intercept column is one of the design's. The target holds lattice values, or class codes (-1 for null records).
    ``noise_scale`` is that of the Gumbel noise in units of the largest influence of one record, 0 for none. ``n_rows``
    is None where the number of records is private: then nothing depends on it but the time a step takes. ``relation``
    is for the declared sensitivity of the scores; no step depends on it. ``plainly`` weighs all vertices in every step,
    since the fast samplers are up to 2**-110 a step away from the law; ``by_margins`` keeps margins exact, where some
    paths keep a rounded Gram matrix; ``norms`` states the norms of the columns.
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
