"""Frank-Wolfe with screening: at public iterations, coefficients that a rule singles out are set to zero.

A rule looks at the gradient at the current weights, which are released already, and so is the support. What it
releases is which coefficients are set to zero. Noise is in units of one record's influence.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray, IntArray, NumberArray
from taciturn.data.sensitivity import safe_rule, screening_test
from taciturn.engines.interface import ArraySource
from taciturn.methods.frank_wolfe.run import FrankWolfeRun, open_plan, rule_scores, weights_of
from taciturn.methods.screening.plan import GAUSSIAN_BITS, ScreenedPlan
from taciturn.privacy.mechanisms import RoundedGaussian, first_of, noisy_keys
from taciturn.privacy.transcript import Call, LoopSelection, answer, score_limits

# Far beyond what such noise can hide, and far from the end of 64-bit integers.
_LARGEST = 2**60


def run_screened(
    plan: ScreenedPlan, source: ArraySource, stream: Stream, watch: Callable[[float], None] | None = None
) -> FloatArray:
    """Coefficients in mapped units, a row per output; ``watch`` receives mean losses after screenings, not private."""
    adp, n_features = plan.rule == "adp", source.n_features
    run = open_plan(plan, source, by_margins=adp and plan.noise_scale > 0.0, norms=adp)
    steps, noise = stream.spawn("steps"), stream.spawn("screening")
    for t in plan.screenings:
        run.advance_to(t, steps)
        weighted = np.flatnonzero(run.coefficients())
        # Coordinates are numbered output by output; the intercept, which comes last, is never screened.
        support = weighted[weighted % (n_features + plan.problem.intercept) < n_features]
        if support.size:
            screened = screen(plan, run, support, noise)
            (run.exclude if plan.permanent else run.drop)(screened)
        if watch is not None:
            watch(run.mean_loss())
        if not run.candidates.any():
            # No coefficient is left, and none can be chosen any more.
            break
    else:
        run.advance_to(plan.n_steps, steps)
    return weights_of(plan, run)


def screen(plan: ScreenedPlan, run: FrankWolfeRun, support: IntArray, stream: Stream) -> IntArray:
    """The coordinates that the plan's rule sets to zero, of a support that is not empty and has no intercept."""
    return _RULES[plan.rule](plan, run, support, stream)


def _select(plan: ScreenedPlan, run: FrankWolfeRun, support: IntArray, stream: Stream) -> IntArray:
    r"""The coefficient with the smallest gradient, by the exponential mechanism on :math:`-|g_i|`."""
    return support[[_choose(plan, -np.abs(run.scores()[support]), run, stream)]]


def _choose(plan: ScreenedPlan, scores: NumberArray, run: FrankWolfeRun, stream: Stream) -> int:
    """The index of the chosen score."""
    if plan.selection_noise == 0.0:
        return first_of(*noisy_keys(scores, np.zeros(scores.size), 0.0))
    scale = plan.selection_noise * run.influence
    return answer(
        lambda: Call(
            LoopSelection("screened coefficient", scale, run.sensitivity, tuple(range(scores.size))),
            score_limits(run.sensitivity, run.grain),
            lambda outcome: scores,
        ),
        lambda: first_of(*noisy_keys(scores, stream.gumbels(scores.size), scale / run.grain)),
    )


def _select_or_none(plan: ScreenedPlan, run: FrankWolfeRun, support: IntArray, stream: Stream) -> IntArray:
    """A selection with one more candidate, "none", whose score is public."""
    scores = -np.abs(run.scores()[support])
    none = -np.rint(plan.threshold * (plan.problem.n_rows or 0) * run.influence / run.grain)
    # Integers stay integers, beyond the digits of doubles too.
    chosen = _choose(plan, np.append(scores, none.astype(scores.dtype)), run, stream)
    # The last index is that of "none".
    return support[chosen : chosen + 1]


def _select_and_test(plan: ScreenedPlan, run: FrankWolfeRun, support: IntArray, stream: Stream) -> IntArray:
    r"""A selection, then the safe rule on three noisy numbers.

    Column norms are replaced by their public bounds, which keeps a safe rule safe:
    :math:`\lambda |g_j| + w^\top g + 2 \kappa \lambda \sqrt{n G} < 0`. The root is taken after the noise.
    """
    scores = run.scores()
    chosen = support[[_choose(plan, -np.abs(scores[support]), run, stream)]]
    gradient: FloatArray = np.asarray(scores * run.grain, dtype=np.float64)
    inner = _inner(run.coefficients(), gradient)
    gap = inner + plan.radius * float(np.abs(gradient).max())
    values = np.array([plan.radius * abs(gradient[chosen[0]]), inner, gap])
    if plan.gaussian_noise > 0.0:
        declared = screening_test(
            plan.problem.loss.opposing_terms(plan.radius),
            plan.radius,
            run.influence,
            plan.problem.relation,
            error=run.derivative_error,
            rounding=run.rounding,
        )
        values = _noisy(values, declared.value, plan.gaussian_noise, stream)
    first, inner, gap = values.tolist()
    n_rows, condition = plan.problem.n_rows or 0, plan.problem.loss.condition(plan.radius)
    slack = 2.0 * condition * plan.radius * math.sqrt(n_rows * max(gap, 0.0))
    return chosen if first + inner + slack < 0.0 else chosen[:0]


def _apply_safe_rule(plan: ScreenedPlan, run: FrankWolfeRun, support: IntArray, stream: Stream) -> IntArray:
    """Screen all candidates, those without a coefficient too, whose score of the safe rule plus noise is negative."""
    if plan.problem.n_rows is None or run.norms is None:
        raise TypeError("the safe rule needs a public number of records and the norms of the columns")
    radius, n_rows, condition = plan.radius, plan.problem.n_rows, plan.problem.loss.condition(plan.radius)
    coefficients = run.coefficients()
    gradient: FloatArray = np.asarray(run.scores() * (run.grain / n_rows), dtype=np.float64)
    # Without noise nothing else would keep rounding from screening what is exactly on the edge.
    error = 0.0 if plan.gaussian_noise > 0.0 else run.derivative_error
    sizes = np.abs(gradient) + error
    inner = _inner(coefficients, gradient) + radius * error
    gap = inner + radius * float(sizes.max())
    n_features = run.norms.size - plan.problem.intercept
    # Clipped to public bounds, which hold by themselves where n is the number of records.
    scores = rule_scores(
        sizes[:n_features],
        np.minimum(run.norms[:n_features] / math.sqrt(n_rows), 1.0),
        inner=inner,
        gap=min(max(gap, 0.0), 2.0 * radius * run.influence),
        margin_norm=min(run.margin_norm() / math.sqrt(n_rows), radius),
        radius=radius,
        condition=condition,
    )
    if plan.gaussian_noise > 0.0:
        declared = safe_rule(
            plan.problem.loss.opposing_terms(radius),
            radius,
            run.influence,
            condition,
            n_rows,
            n_features,
            plan.problem.relation,
            error=run.derivative_error,
            rounding=run.rounding,
        )
        scores = _noisy(scores, declared.value, plan.gaussian_noise, stream)
    return np.flatnonzero((scores < 0.0) & run.candidates[:n_features])


_RULES = {"select": _select, "tested": _select_and_test, "none-option": _select_or_none, "adp": _apply_safe_rule}


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
    return mechanism.release(lattice, stream).astype(np.float64) * unit
