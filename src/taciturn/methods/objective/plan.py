"""Plans of objective perturbation, of private ADMM, and of the two-stage method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_integer, check_positive, check_real
from taciturn.data.sensitivity import approximate_minimiser, block_votes, check_relation, objective_tilt
from taciturn.losses import Loss
from taciturn.methods.schedule import Problem, Schedule, ScheduledPlan
from taciturn.methods.selection.plan import BlockVotePlan, TopKPlan, number_of_blocks
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event, ExponentialEvent, GaussianEvent, ObjectivePerturbationEvent
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE, GumbelTopK, RoundedGaussian

# ---- The precision to which the minimiser of a perturbed objective is found, from public facts alone.
# .. math:: J(\theta) = \sum_{i \le n} \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2}\|\theta\|^2 + b \cdot \theta,
#           \qquad \|x_i\| \le R, \quad |\phi'| R \le G, \quad \phi'' R^2 \le \beta, \quad \phi \ge 0, \quad \|b\| \le
#           B,
#
# in d dimensions. n is an upper bound on the number of records; B is the bound on the noise (:func:`noise_bound`) plus
# the norm of the public part of b. Where a solver stops, and the noise that covers the remaining error, are functions
# of these numbers, never of b or of the data.
#
# **Norm of the minimiser.** Its gradient vanishes, and :math:`J(\theta^*) \le J(0) \le n \phi_0` with :math:`\phi_0 =
# \max_y \phi(0; y)`. So
#
# .. math:: \|\theta^*\| \le W = \frac{1}{\Lambda} \min\bigl(nG + B,\; B + \sqrt{B^2 + 2 \Lambda n \phi_0}\bigr),
#
# and every point where J is at most J(0) is within 2W: losses fall by at most :math:`n G \|\theta\|` from J(0).
#
# **Error of computed gradients.** *Numerical assumption*: sums, products and roots of doubles are rounded as IEEE 754
# says, and :math:`\phi'` is computed to 8 units in its last place. Let :math:`u = 2^{-53}`, :math:`du < 10^{-3}`,
# :math:`n \le 2^{32}` and :math:`\|\theta\| \le 2W`. For any order of summation,
#
# * a margin is off by at most :math:`1.01\, d u \cdot R \cdot 2W` (Cauchy and Schwarz), hence :math:`\phi'` by that
#   times :math:`\max \phi''`, and by 8u of its own bound: the gradient by :math:`2.02\, u n \beta d W + 8 u n G`;
# * sums over blocks of 256 rows lose :math:`1.01 \cdot 256\, u n G`; adding up fewer than :math:`2^{25}` of them with
#   their own losses, :math:`1.1\, u (nG + 2 \Lambda W + B)`; and :math:`\Lambda\theta` is off by :math:`2 u \Lambda W`.
#
# A step of gradient descent, :math:`\theta - g/L` with :math:`L = n\beta + \Lambda`, is rounded by :math:`2.03\, u W +
# 3.1\, u (nG + 2\Lambda W + B) / L`, which is L times as much in terms of the gradient. Altogether, gradient and step
# are off by at most
#
# .. math:: u\,[2.03\, n\beta(d+1) W + 274\, nG + 13\, \Lambda W + 5 B] \le e_0 = T / 3.5, \qquad
#           T = 8u\,[n \beta (d+1) W + 140\, nG + 6 \Lambda W + 3 B] .
#
# **The tolerance** is :math:`t = 2^{-30} G + 2^{-44} B + T`. A point is accepted if and only if it is within 2W and its
# computed gradient within 0.7 t. (What rounding does to a norm, a relative du, is within the slack of what follows.)
#
# * *Accepted points are good*: with the b that was drawn the gradient is at most
#   :math:`0.7 t + e_0`. The exact normal variable is nearer than :math:`2^{-49} B` to the b that was drawn: rounding
#   it to a lattice of step :math:`2^{-50} \sigma` takes at most :math:`2^{-51} \sigma \sqrt d`, products and a sum
#   :math:`4uB`. And :math:`0.7 t + T/3.5 + 2^{-49} B \le t`.
# * *There are good points, and they are found*: by :func:`taciturn.methods.objective.run.descend`, as
#   :math:`(\sqrt2 + 1) e_0 < 0.7 \cdot 3.5\, e_0 \le 0.7 t`. Since :math:`L W / e_0 \le 3.5 / 16u`, it takes at most
#   :math:`2 (L/\Lambda) \ln(L^2 W^2 / 2 e_0^2) < 140\, L / \Lambda` steps. So nothing is ever returned that is not
#   within the tolerance. (Newton's steps are tried first, and are not known to have failed.) \square
#
# **The output noise** covers that two computed points with the same minimiser may be :math:`2t/\Lambda` apart. Where it
# would move the prediction for a row of norm R by more than a tenth of the range of the target, or by a tenth of a log
# odds, and would also exceed the least effect of b itself on a coefficient, :math:`\sigma / L`, the model would be
# useless, and the setting is refused.

MAGNITUDE = 1 << 62
"""Bound on the released integers before noise."""

MOST_RECORDS = 2**32
"""The analysis of summation errors covers no more records."""

_UNIT = 2.0**-53
_PER_SLOPE, _PER_TERM = 2.0**-30, 2.0**-44
_STEPS_PER_CONDITION = 140.0
# Without privacy a solver stops where rounding usually lets it: nothing has to be proved.
_NOISELESS_PER_RECORD = 2.0**-42

# Gradient descent would take 140 times as many steps; Newton's method takes a few.
_LARGEST_CONDITION = 2.0**30
_MOST_MOVED = 0.1
# The lattice is so much finer than the noise that rounding to it costs an eighth of the noise at most.
_LATTICE_BITS = 3
_LARGEST_SCALE = 55

# By how many standard deviations the norm of the linear term may exceed its mean, and how likely more is.
_BEYOND = 13.0
_BEYOND_PROBABILITY = 2.0**-121


def noise_bound(noise_scale: float, n_columns: int) -> float:
    r"""The norm that b does not exceed, :math:`\sigma (\sqrt d + 13)`, but with a probability below :math:`2^{-121}`.

    *Proof.* The norm is a Lipschitz function of normal variables with a mean of at most :math:`\sqrt d`; it exceeds
    its mean by 13 with probability at most :math:`e^{-13^2/2} < 2^{-121}` (Gaussian concentration).
    """
    return noise_scale * (math.sqrt(n_columns) + _BEYOND)


def noise_distance(n_columns: int) -> float:
    """Total variation distance of the sampled b from a normal vector within :func:`noise_bound`."""
    return n_columns * DISTANCE_PER_VALUE + _BEYOND_PROBABILITY


@dataclass(frozen=True, slots=True)
class StoppingCriterion:
    """When a solver stops: the exact gradient is within ``tolerance`` and the point within ``largest_norm``.

    Beyond that norm the rounding of gradients is not covered. ``smoothness`` bounds the eigenvalues of J's Hessian.
    ``descent_steps`` steps of gradient descent meet the criterion from zero, whatever the data. 0 is for fits
    without privacy: the result of Newton's steps is taken as it is.
    """

    tolerance: float
    largest_norm: float = math.inf
    smoothness: float = 1.0
    descent_steps: int = 0


@dataclass(frozen=True, slots=True)
class Resolution:
    """How precisely a minimiser is released: on a lattice whose ``step`` is a power of two, with noise on it."""

    criterion: StoppingCriterion
    step: float
    output: RoundedGaussian

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a coefficient."""
        return float(self.step * 2.0**self.output.log2_scale)


def stopping_criterion(
    loss: Loss, row_bound: float, regularisation: float, n_records: int, n_columns: int, bound: float
) -> StoppingCriterion:
    """The stopping criterion of a private minimiser, as derived above; ``bound`` is B."""
    slope = loss.lipschitz(math.inf) * row_bound
    curvature = n_records * loss.smoothness * row_bound * row_bound
    at_zero = float(loss.value(np.zeros(1), np.ones(1))[0])
    level = bound + math.sqrt(bound * bound + 2.0 * regularisation * n_records * at_zero)
    reach = min(n_records * slope + bound, level) / regularisation
    rounding = curvature * (n_columns + 1) * reach + 140.0 * n_records * slope + 6.0 * regularisation * reach
    tolerance = _PER_SLOPE * slope + _PER_TERM * bound + 8.0 * _UNIT * (rounding + 3.0 * bound)
    largest = (curvature + regularisation) * (1.0 + 2.0**-40)
    return StoppingCriterion(
        tolerance, 2.0 * reach, largest, math.ceil(_STEPS_PER_CONDITION * largest / regularisation)
    )


def noiseless_criterion(loss: Loss, row_bound: float, n_records: int, bound: float) -> StoppingCriterion:
    """The stopping criterion without privacy: the result is taken as it is."""
    per_record = _PER_SLOPE + _NOISELESS_PER_RECORD * n_records
    return StoppingCriterion(loss.lipschitz(math.inf) * row_bound * per_record + _PER_TERM * bound)


def resolve(
    criterion: StoppingCriterion, regularisation: float, n_columns: int, noise_multiplier: float, relation: str
) -> Resolution:
    """Choose the output lattice for a criterion, and noise on it of at least ``noise_multiplier`` sensitivities."""
    scale = max(5, math.frexp(noise_multiplier * math.sqrt(n_columns))[1] + _LATTICE_BITS)
    if scale > _LARGEST_SCALE:
        raise ParameterError(
            "noise", noise_multiplier, "noise that integers of 64 bits leave room for", "raise epsilon or delta"
        )
    exponent = math.frexp(criterion.tolerance / regularisation)[1] - scale - 1
    while True:
        step = math.ldexp(1.0, exponent)
        sensitivity = approximate_minimiser(criterion.tolerance, regularisation, step, n_columns, relation)
        output = RoundedGaussian(sensitivity.value, scale, MAGNITUDE)
        # On a coarse lattice its own step is all that counts, and the noise is eight times that.
        if output.event.noise_multiplier >= noise_multiplier:
            return Resolution(criterion, step, output)
        exponent += 1


def is_resolved(resolution: Resolution, row_bound: float, noise_scale: float, most_moved: float = _MOST_MOVED) -> bool:
    """Whether the output noise moves predictions by little, or coefficients by less than the linear term does."""
    return resolution.deviation <= max(most_moved / row_bound, noise_scale / resolution.criterion.smoothness)


def check_resolved(
    name: str, value: float | str, resolution: Resolution, *, row_bound: float, noise_scale: float
) -> None:
    """Refuse a ``value`` of the parameter ``name`` at which double precision does not tell minimisers apart."""
    condition = resolution.criterion.descent_steps / _STEPS_PER_CONDITION
    if condition > _LARGEST_CONDITION or not is_resolved(resolution, row_bound, noise_scale):
        raise ParameterError(
            name,
            value,
            "a number at which double precision resolves the minimiser (the noise that covers its rounding would move "
            f"predictions by {resolution.deviation * row_bound:.2g})",
            "raise it, or lower row_bound",
        )


# ---- Plans for the minimiser of a perturbed objective, alone or composed with earlier releases.

MOST_PER_PUBLIC_ROW = 2
"""Under add-remove, the assumed bound on the number of records over the public number."""

# Output noise costs one part in 400 of the plan's squared parameter.
_OUTPUT_NOISE = 20.0
# The largest effect of output noise on predictions that "auto" accepts.
_MOVED_BY_AUTO = 0.01
_NOISELESS_REGULARISATION = 1.0
# Beyond these bounds products of doubles would overflow or underflow.
_SMALLEST, _LARGEST = 2.0**-200, 2.0**200
# The norm of coefficients that "auto" expects, in units of L sqrt(d) / R for a Lipschitz constant L: predicted numbers
# stay within the target's range, logarithms of odds reach several units (research: study_two_stage.md).
_HUBER_COEFFICIENTS, _LOGISTIC_COEFFICIENTS = 0.3, 3.0
# The curvature that "auto" expects of a record of labels, over the largest: chosen on breast cancer, wine, splice and
# phishing, where log-losses of a few hundred records exceeded a constant's by up to two thirds. A numeric target has
# its mean in the intercept, which more regularisation would shrink.
_LOGISTIC_CURVATURE = 0.5


@dataclass(frozen=True, slots=True)
class ObjectivePlan(ScheduledPlan):
    r"""How the minimiser of a perturbed objective will be released.

    The loss of the problem is :math:`\phi`, its features enter the objective, and each of its outputs has an
    objective on all records. The schedule has the "minimiser", "output" noise, and what comes before them; its
    common scale is :math:`\sigma` in units of the largest change of the gradient between neighbours.
    ``regularisation`` is :math:`\Lambda`, ``noise_scale`` is :math:`\sigma`, the standard deviation of the linear
    term (0 without privacy), and ``n_records`` is an upper bound.
    """

    problem: Problem
    schedule: Schedule
    row_bound: float
    regularisation: float
    noise_scale: float
    n_records: int

    def resolution(self, offset: float = 0.0) -> Resolution:
        """How precisely a minimiser is found and released, next to a known linear term of this norm."""
        problem, ridge = self.problem, self.regularisation
        bound = noise_bound(self.noise_scale, problem.n_columns) + offset
        criterion = stopping_criterion(problem.loss, self.row_bound, ridge, self.n_records, problem.n_columns, bound)
        return resolve(criterion, ridge, problem.n_columns, _OUTPUT_NOISE * self.schedule.scale, problem.relation)

    @property
    def facts(self) -> dict[str, float]:
        """For the certificate: where the solver stops, and the noise that covers the remaining error."""
        if self.noise_scale == 0.0:
            criterion = noiseless_criterion(self.problem.loss, self.row_bound, self.n_records, 0.0)
            return {"gradient_tolerance": criterion.tolerance}
        found = self.resolution()
        return {"gradient_tolerance": found.criterion.tolerance, "output_noise": found.deviation}


def objective_event(
    problem: Problem, regularisation: float, row_bound: float, shift: float, n_columns: int
) -> ObjectivePerturbationEvent:
    """The cost of a minimiser whose b moves by up to ``shift`` deviations between neighbours; labels are 0 or 1."""
    curvature = problem.loss.smoothness * row_bound * row_bound
    return ObjectivePerturbationEvent(
        math.log1p(curvature / regularisation),
        shift,
        problem.relation == "replace-one",
        distance=noise_distance(n_columns),
        fixed_sign=problem.loss.fixed_sign,
    )


def check_regularisation(regularisation: float | str) -> None:
    """Refuse anything but "auto" or a positive number."""
    if isinstance(regularisation, str):
        check_choice(("auto",), "a finite number > 0", regularisation=regularisation)
    else:
        check_positive(regularisation=regularisation)


def plan_objective_perturbation(
    budget: Budget,
    problem: Problem,
    *,
    row_bound: float,
    regularisation: float | str = "auto",
    n_blocks: int = 1,
    name: str = "regularisation",
    what: str = "the minimiser of an objective with a random linear term",
    before: Callable[[Schedule], None] | None = None,
) -> ObjectivePlan:
    r"""Plan objective perturbation.

    A larger :math:`\Lambda` spends less of epsilon on the ratio of Jacobians, :math:`\ln(1 + \beta/\Lambda)`, and
    leaves more of it to the noise, but shrinks the coefficients. The error of the minimiser is
    :math:`(H + \Lambda I)^{-1}(b + \Lambda w)`, H being the Hessian of the records: "auto" minimises
    :math:`(E\|b\|^2 + \Lambda^2 \|w\|^2) / (h + \Lambda)^2` for coefficients w of the size that a loss of this
    Lipschitz constant L and rows of this norm suggest, :math:`q L \sqrt{d} / R` with q = 0.3 for Huber's loss and
    q = 3 for the logistic. Both terms then grow alike with d and with R, and what remains is

    .. math:: \min_\lambda \; \frac{1 / \tau(\lambda)^2 + (q \lambda)^2}{(1 + \lambda R^2 / h)^2},
              \qquad \Lambda = \lambda R^2,

    :math:`1 / \tau` being the noise scale for the budget, in units of the sensitivity of the gradient. h is the
    curvature that n records are expected to have in each direction, :math:`n \beta / 2d` for the logistic loss, so that
    few records are shrunk more. It is infinite for Huber's loss, whose intercept holds the mean of the target.

    An infinite epsilon means no noise, and :math:`\Lambda = 1` for "auto". Each of ``n_blocks`` blocks of records has
    an objective and a sampler of its own: one record is in one block, but a group of records can be in several, so that
    the distances of all samplers count. ``name`` is what error messages call :math:`\Lambda`, and ``what`` is what the
    certificate calls the minimiser. ``before`` lists earlier releases under the same budget.
    """
    check_regularisation(regularisation)
    loss, relation, n_rows = problem.loss, check_relation(problem.relation), problem.n_rows
    if n_rows is None:
        raise ParameterError(
            "n_public",
            None,
            "a public number of records under add-remove, which determines the precision of the solver",
            "pass one",
        )
    # The certificate assumes that a private number of records is at most twice the public one.
    records = MOST_PER_PUBLIC_ROW * n_rows if relation == "add-remove" else n_rows
    if records > MOST_RECORDS:
        raise ParameterError(
            "n_public", n_rows, f"at most {MOST_RECORDS // 2:,}, for which sums are exact enough", "lower it"
        )

    def schedule_at(ridge: float) -> Schedule:
        schedule = Schedule(budget, arithmetic="float64")
        if before is not None:
            before(schedule)

        def minimiser(b: float) -> Event:
            event = objective_event(problem, ridge, row_bound, 1.0 / b, problem.n_columns)
            # The records of a group can lie in all blocks: the distances of all samplers count.
            return replace(event, distance=n_blocks * event.distance)

        schedule.add("minimiser", what, minimiser, problem.n_outputs, noise="Gaussian", scale_at=lambda b: b)
        if schedule.private:
            distance = n_blocks * (problem.n_columns * DISTANCE_PER_VALUE)
            missed = "by how much the computed minimiser misses it"
            schedule.add("output", missed, lambda b: GaussianEvent(_OUTPUT_NOISE * b, distance), problem.n_outputs)
        return schedule.calibrate()

    if math.isinf(budget.epsilon):
        ridge = _NOISELESS_REGULARISATION if regularisation == "auto" else float(regularisation)
        return ObjectivePlan(problem, schedule_at(ridge), row_bound, ridge, 0.0, records)
    if budget.delta == 0.0:
        raise ParameterError("delta", 0.0, "a positive number", "the noise of objective perturbation is Gaussian")
    check_real(_SMALLEST, _LARGEST, residual_clip=loss.lipschitz(math.inf))
    if not isinstance(regularisation, str) and not _SMALLEST <= regularisation <= _LARGEST:
        raise ParameterError(name, regularisation, f"a number in [{_SMALLEST:.3g}, {_LARGEST:.3g}]", "choose one there")
    sensitivity = objective_tilt(loss.lipschitz(math.inf), row_bound, relation)
    curvature = loss.smoothness * row_bound * row_bound

    def plan_at(ridge: float) -> ObjectivePlan:
        schedule = schedule_at(ridge)
        return ObjectivePlan(problem, schedule, row_bound, ridge, schedule.scale * sensitivity.value, records)

    # Below this the Jacobians alone would exceed the budget.
    least = curvature / math.expm1(min(budget.epsilon / problem.n_outputs, 700.0))
    if regularisation == "auto":
        unit = sensitivity.value / loss.lipschitz(math.inf)
        held = n_rows * curvature / problem.n_columns * _LOGISTIC_CURVATURE if loss.labelled else math.inf
        ridge = _best_regularisation(lambda at: schedule_at(at).scale, least, loss, unit, row_bound, held)
        plan = plan_at(ridge)
        # With very many records or columns double precision resolves the minimiser only for a larger one.
        while not is_resolved(plan.resolution(), row_bound, plan.noise_scale, _MOVED_BY_AUTO):
            plan = plan_at(2.0 * plan.regularisation)
    else:
        ridge = float(regularisation)
        if ridge <= least * 1.001:
            raise ParameterError(name, regularisation, f"more than {least:.6g}, which this epsilon needs", "raise it")
        plan = plan_at(ridge)
    found = plan.resolution()
    check_resolved(name, regularisation, found, row_bound=row_bound, noise_scale=plan.noise_scale)
    return plan


# What was found for public numbers, since the fits of a search and of a cross-validation ask for the same again.
_FOUND: dict[tuple[float, ...], float] = {}


def _best_regularisation(
    scale_of: Callable[[float], float], least: float, loss: Loss, unit: float, row_bound: float, held: float
) -> float:
    """The regularisation that minimises noise plus shrinkage, to three digits, above the least admissible one.

    ``held`` is the curvature that the records are expected to have in each direction.
    """
    size = (_LOGISTIC_COEFFICIENTS if loss.labelled else _HUBER_COEFFICIENTS) / row_bound

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        return ((unit * scale_of(ridge)) ** 2 + (size * ridge) ** 2) / (1.0 + ridge / held) ** 2

    low = math.log(1.01 * least)
    high = max(low, 2.0 * math.log(row_bound)) + 10.0
    # One value of the cost stands for the budget and for everything else that it pays for.
    asked = (low, high, size, unit, cost(0.5 * (low + high)))
    if asked not in _FOUND:
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
        if len(_FOUND) >= 1000:
            _FOUND.clear()
        _FOUND[asked] = math.exp(float(found.x))
    return _FOUND[asked]


# ---- Plans for private ADMM.

ADMM_STEPS = 10
"""Default number of iterations with privacy: each of them spends a share of the budget."""
NOISELESS_ADMM_STEPS = 200
"""Iterations without privacy."""

HALF_START = 1.5
r"""Half thresholding sets :math:`|a| \le 1.5 \kappa^{2/3}` to zero."""

# The share of epsilon that the Jacobians of all iterations take.
_JACOBIAN_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ADMMPlan(ScheduledPlan):
    r"""Consensus ADMM: local ``minimisers`` regularised by :math:`\rho`, and a proximal map of strength ``kappa``."""

    schedule: Schedule
    minimisers: ObjectivePlan
    n_blocks: int
    n_steps: int
    penalty: str
    kappa: float


def penalty_level(penalty: str, threshold: float) -> float:
    """The kappa at which the proximal map of a penalty sets everything up to ``threshold`` to zero."""
    return threshold if penalty == "l1" else float((threshold / HALF_START) ** 1.5)


def plan_admm(
    budget: Budget,
    problem: Problem,
    *,
    row_bound: float,
    n_blocks: int,
    n_steps: int | str,
    penalty: str,
    strength: float | str,
    coupling: float | str,
) -> ADMMPlan:
    r"""Plan private consensus ADMM.

    One record is in one block, so that an iteration costs one perturbed objective with :math:`\Lambda = \rho`, whatever
    the number of blocks. (Several records can be in several blocks: fewer in each, which costs no more, but all of the
    blocks' samplers may then be off their laws, and their distances are charged.)

    "auto" takes the :math:`\rho` at which the Jacobians of all iterations, each :math:`\ln(1 + \beta/\rho)`, take a
    quarter of epsilon. The value that is thresholded holds the gradient and the noise over :math:`\rho`; the "auto"
    strength sets to zero what these reach by chance where a feature has no effect,

    .. math:: \text{threshold} = \frac{1}{\rho} \sqrt{2 \ln d \Bigl(\frac{\sigma^2}{B} + \frac{n R^2 s^2}{d B^2}\Bigr)},

    s being the standard deviation of the loss's derivative (1/2 for the logistic one) and rows of length R being spread
    evenly over the d features.

    The budget is for all iterations together; an infinite epsilon means no noise. ``strength`` is the weight of the
    penalty beside the mean loss, ``coupling`` is :math:`\rho`.
    """
    private = not math.isinf(budget.epsilon)
    steps = (ADMM_STEPS if private else NOISELESS_ADMM_STEPS) if n_steps == "auto" else int(n_steps)
    curvature, n_features = problem.loss.smoothness * row_bound * row_bound, problem.n_features
    if coupling != "auto":
        rho = float(coupling)
    elif private:
        rho = curvature / math.expm1(min(_JACOBIAN_SHARE * budget.epsilon / steps, 700.0))
    else:
        # As much as the typical curvature of a feature.
        rho = curvature * (problem.n_rows or 1) / (n_features * n_blocks)
    minimisers = plan_objective_perturbation(
        budget,
        replace(problem, n_outputs=steps),
        row_bound=row_bound,
        regularisation=rho,
        n_blocks=n_blocks,
        name="coupling",
        what="a local minimiser per iteration",
    )
    records = problem.n_rows or 1
    if strength == "auto":
        by_chance = 0.25 * records * row_bound * row_bound / (n_features * n_blocks * n_blocks)
        noise = minimisers.noise_scale * minimisers.noise_scale / n_blocks
        threshold = math.sqrt(2.0 * math.log(max(n_features, 2)) * (noise + by_chance)) / rho
        kappa = penalty_level(penalty, threshold)
    else:
        kappa = float(strength) * records / (rho * n_blocks)
    return ADMMPlan(minimisers.schedule, minimisers, n_blocks, steps, penalty, kappa)


# ---- Plans for a selection of features by votes, followed by objective perturbation on the selected ones.


@dataclass(frozen=True, slots=True)
class TwoStagePlan(ScheduledPlan):
    """How features will be selected, and how a model will be fitted to them; the schedule covers both."""

    schedule: Schedule
    votes: BlockVotePlan
    objective: ObjectivePlan


def check_selection_share(selection_share: float) -> None:
    """Refuse a share outside (0, 1)."""
    check_real(0.0, 1.0, closed="left", selection_share=selection_share)
    check_positive(selection_share=selection_share)


def plan_two_stage(
    budget: Budget,
    problem: Problem,
    *,
    k: int,
    selection_share: float,
    row_bound: float,
    n_blocks: int | str = "auto",
    regularisation: float | str = "auto",
) -> TwoStagePlan:
    r"""Plan a selection of k features by Gumbel noise on votes, and objective perturbation on those.

    One accountant covers both. Of the plan's squared privacy parameter, apart from what the Jacobians take,
    :math:`k e^2 / 4` belongs to k selections of range e and :math:`\tau^2` to an objective of shift :math:`\tau`; the
    first is a share s of both for

    .. math:: e = 2 \tau \sqrt{\frac{s}{1 - s} \cdot \frac{\text{number of objectives}}{k}} .

    A selection of all features costs nothing. ``n_blocks`` is as for :func:`number_of_blocks`, and what the fit needs
    as for :func:`plan_objective_perturbation`.
    """
    check_selection_share(selection_share)
    n_features = problem.n_features
    k = check_integer(1, n_features, k=k)
    blocks = number_of_blocks(n_blocks, problem.n_rows)
    ratio = 2.0 * math.sqrt(selection_share / (1.0 - selection_share) * problem.n_outputs / k)
    sensitivity = block_votes(problem.relation)

    def votes_at(b: float) -> GumbelTopK:
        return GumbelTopK(sensitivity, k, ratio / b)

    def list_votes(schedule: Schedule) -> None:
        schedule.add(
            "votes",
            f"which {k:,} of {n_features:,} features get the most votes",
            lambda b: ExponentialEvent(ratio / b),
            k if schedule.private else 1,
            scale_at=lambda b: votes_at(b).scale / sensitivity.value,
        )

    objective = plan_objective_perturbation(
        budget,
        replace(problem, n_features=k),
        row_bound=row_bound,
        regularisation=regularisation,
        before=list_votes if k < n_features else None,
    )
    schedule = objective.schedule
    if k == n_features:
        selection = TopKPlan(Schedule(schedule.budget), k, "all", None)
    else:
        method, noise = ("gumbel", votes_at(schedule.scale)) if schedule.private else ("exact", None)
        selection = TopKPlan(Schedule.of(schedule.budget, selection=schedule["votes"]), k, method, noise)
    return TwoStagePlan(schedule, BlockVotePlan(selection.schedule, problem, selection, blocks), objective)
