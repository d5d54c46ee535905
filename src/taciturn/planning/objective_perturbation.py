"""Plans for the minimiser of a perturbed objective, alone or composed with earlier releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from scipy.optimize import minimize_scalar

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_positive, check_real
from taciturn.data.sensitivity import check_relation, objective_tilt
from taciturn.events import ComposedEvent, Event, GaussianEvent, NotPrivateEvent, ObjectivePerturbationEvent
from taciturn.losses import ScalarLoss
from taciturn.mechanisms import DISTANCE_PER_VALUE
from taciturn.planning.listed import ListedReleases
from taciturn.planning.precision import (
    MOST_RECORDS,
    Resolution,
    check_resolved,
    is_resolved,
    noise_bound,
    noise_distance,
    noiseless_criterion,
    resolve,
    stopping_criterion,
)

__all__ = [
    "MOST_PER_PUBLIC_ROW",
    "ObjectivePlan",
    "check_regularisation",
    "objective_event",
    "plan_objective_perturbation",
]


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
# stay within the target's range, logarithms of odds reach several units (benchmarks/study_two_stage.md).
_HUBER_COEFFICIENTS, _LOGISTIC_COEFFICIENTS = 0.3, 3.0


@dataclass(frozen=True, slots=True)
class ObjectivePlan(ListedReleases):
    r"""How the minimiser of a perturbed objective will be released.

    Parameters
    ----------
    loss : ScalarLoss
        :math:`\phi`.
    regularisation : float
        :math:`\Lambda`.
    noise_scale : float
        :math:`\sigma`, standard deviation of the linear term; 0 without privacy.
    scale : float
        :math:`\sigma` in units of the largest change of the gradient between neighbours; 0 without privacy.
    n_records : int
        Upper bound on the number of records.
    n_outputs : int
        How many objectives, each on all records, are minimised.
    """

    arithmetic: ClassVar[str] = "float64"
    ordered: ClassVar[bool] = True

    budget: Budget
    loss: ScalarLoss
    row_bound: float
    regularisation: float
    noise_scale: float
    scale: float
    relation: str
    n_records: int
    n_features: int
    intercept: bool
    n_outputs: int
    releases: tuple[Release, ...]

    @property
    def n_coefficients(self) -> int:
        """Columns of the model, an intercept's included."""
        return self.n_features + self.intercept

    def resolution(self, offset: float = 0.0) -> Resolution:
        """How precisely a minimiser is found and released, next to a known linear term of this norm."""
        bound = noise_bound(self.noise_scale, self.n_coefficients) + offset
        criterion = stopping_criterion(
            self.loss, self.row_bound, self.regularisation, self.n_records, self.n_coefficients, bound
        )
        return resolve(criterion, self.regularisation, self.n_coefficients, _OUTPUT_NOISE * self.scale, self.relation)

    @property
    def facts(self) -> dict[str, float]:
        """For the certificate: where the solver stops, and the noise that covers the remaining error."""
        if self.noise_scale == 0.0:
            return {"gradient_tolerance": noiseless_criterion(self.loss, self.row_bound, self.n_records, 0.0).tolerance}
        found = self.resolution()
        return {"gradient_tolerance": found.criterion.tolerance, "output_noise": found.deviation}


def objective_event(
    loss: ScalarLoss, regularisation: float, row_bound: float, shift: float, relation: str, n_columns: int
) -> ObjectivePerturbationEvent:
    """The cost of releasing a minimiser whose b moves by up to ``shift`` standard deviations between neighbours.

    Labels of the logistic loss are 0 or 1, never between.
    """
    curvature = loss.smoothness * row_bound * row_bound
    return ObjectivePerturbationEvent(
        math.log1p(curvature / regularisation),
        shift,
        relation == "replace-one",
        distance=noise_distance(n_columns),
        fixed_sign=loss.fixed_sign,
    )


def check_regularisation(regularisation: float | str) -> None:
    """Refuse anything but "auto" or a positive number."""
    if isinstance(regularisation, str):
        check_choice(("auto",), "a finite number > 0", regularisation=regularisation)
    else:
        check_positive(regularisation=regularisation)


def plan_objective_perturbation(
    budget: Budget,
    loss: ScalarLoss,
    *,
    row_bound: float,
    relation: str,
    n_rows: int | None,
    n_features: int,
    intercept: bool = False,
    n_outputs: int = 1,
    n_blocks: int = 1,
    regularisation: float | str = "auto",
    name: str = "regularisation",
    before: Callable[[float], Event] | None = None,
) -> ObjectivePlan:
    r"""Plan objective perturbation.

    A larger :math:`\Lambda` spends less of epsilon on the ratio of Jacobians, :math:`\ln(1 + \beta/\Lambda)`, and
    leaves more of it to the noise, but shrinks the coefficients. The error of the minimiser is
    :math:`H^{-1}(b + \Lambda w)`, H being the Hessian: "auto" minimises :math:`E\|b\|^2 + \Lambda^2 \|w\|^2` for
    coefficients w of the size that a loss of this Lipschitz constant L and rows of this norm suggest,
    :math:`q L \sqrt{d} / R` with q = 0.3 for Huber's loss and q = 3 for the logistic. Both terms then
    grow alike with d and with R, and what remains is

    .. math:: \min_\lambda \; \frac{1}{\tau(\lambda)^2} + (q \lambda)^2, \qquad \Lambda = \lambda R^2,

    :math:`1 / \tau` being the noise scale for the budget, in units of the sensitivity of the gradient.

    An infinite epsilon means no noise, and :math:`\Lambda = 1` for "auto". Each of ``n_blocks`` blocks of records has
    an objective and a sampler of its own: one record is in one block, but a group of records can be in several, so that
    the distances of all samplers count. ``name`` is what error messages call :math:`\Lambda`. ``before`` is the event
    of earlier releases under the same budget, as a function of the noise scale in units of the largest change of the
    gradient.
    """
    check_regularisation(regularisation)
    relation = check_relation(relation)
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
    shape = n_features, intercept, n_outputs
    n_coefficients = n_features + intercept
    what = "the minimiser of an objective with a random linear term"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent(), n_outputs)
        ridge = _NOISELESS_REGULARISATION if regularisation == "auto" else float(regularisation)
        return ObjectivePlan(
            Budget(math.inf, 0.0), loss, row_bound, ridge, 0.0, 0.0, relation, records, *shape, (exact,)
        )
    if budget.delta == 0.0:
        raise ParameterError("delta", 0.0, "a positive number", "the noise of objective perturbation is Gaussian")
    check_real(_SMALLEST, _LARGEST, residual_clip=loss.lipschitz(math.inf))
    if not isinstance(regularisation, str) and not _SMALLEST <= regularisation <= _LARGEST:
        raise ParameterError(name, regularisation, f"a number in [{_SMALLEST:.3g}, {_LARGEST:.3g}]", "choose one there")
    sensitivity = objective_tilt(loss.lipschitz(math.inf), row_bound, relation)
    curvature = loss.smoothness * row_bound * row_bound

    def events(scale: float, ridge: float) -> tuple[ObjectivePerturbationEvent, GaussianEvent]:
        objective = objective_event(loss, ridge, row_bound, 1.0 / scale, relation, n_coefficients)
        # The records of a group can lie in all blocks: the distances of all samplers count.
        output = GaussianEvent(_OUTPUT_NOISE * scale, n_blocks * (n_coefficients * DISTANCE_PER_VALUE))
        return replace(objective, distance=n_blocks * objective.distance), output

    def scale_of(ridge: float) -> float:
        def whole(scale: float) -> Event:
            parts = [event * n_outputs for event in events(scale, ridge)]
            return ComposedEvent(tuple(parts) if before is None else (before(scale), *parts))

        return calibrate(budget, whole)

    def plan_of(ridge: float) -> ObjectivePlan:
        scale = scale_of(ridge)
        objective, output = events(scale, ridge)
        releases = (
            Release(what, "Gaussian", scale, objective, n_outputs),
            Release(
                "by how much the computed minimiser misses it", "Gaussian", output.noise_multiplier, output, n_outputs
            ),
        )
        noise_scale = scale * sensitivity.value
        return ObjectivePlan(budget, loss, row_bound, ridge, noise_scale, scale, relation, records, *shape, releases)

    # Below this the Jacobians alone would exceed the budget.
    least = curvature / math.expm1(min(budget.epsilon / n_outputs, 700.0))
    if regularisation == "auto":
        ridge = _best_regularisation(scale_of, least, loss, sensitivity.value / loss.lipschitz(math.inf), row_bound)
        plan = plan_of(ridge)
        # With very many records or columns double precision resolves the minimiser only for a larger one.
        while not is_resolved(plan.resolution(), row_bound, plan.noise_scale, _MOVED_BY_AUTO):
            plan = plan_of(2.0 * plan.regularisation)
    else:
        ridge = float(regularisation)
        if ridge <= least * 1.001:
            raise ParameterError(name, regularisation, f"more than {least:.6g}, which this epsilon needs", "raise it")
        plan = plan_of(ridge)
    found = plan.resolution()
    check_resolved(name, regularisation, found, row_bound=row_bound, noise_scale=plan.noise_scale)
    return plan


def _best_regularisation(
    scale_of: Callable[[float], float], least: float, loss: ScalarLoss, unit: float, row_bound: float
) -> float:
    """The regularisation that minimises noise plus shrinkage, to three digits, above the least admissible one."""
    size = (_LOGISTIC_COEFFICIENTS if loss.labelled else _HUBER_COEFFICIENTS) / row_bound

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        return (unit * scale_of(ridge)) ** 2 + (size * ridge) ** 2

    low = math.log(1.01 * least)
    high = max(low, 2.0 * math.log(row_bound)) + 10.0
    return math.exp(float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-3}).x))
