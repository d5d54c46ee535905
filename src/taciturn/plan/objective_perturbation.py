"""Plans for the minimiser of a perturbed objective, alone or after other releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from taciturn.accounting import Budget, calibrate
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_positive
from taciturn.data.sensitivity import approximate_minimiser, check_relation, objective_tilt
from taciturn.events import ComposedEvent, Event, GaussianEvent, NotPrivateEvent, ObjectivePerturbationEvent
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.solvers.objective_perturbation import GeneralisedLinearLoss, curvature_bound, minimise
from taciturn.solvers.threads import one_thread_if_small

__all__ = ["MOST_PER_PUBLIC_ROW", "ObjectivePlan", "check_regularisation", "plan_objective_perturbation"]

FloatArray = NDArray[np.float64]

MOST_PER_PUBLIC_ROW = 2
"""Records that there may be under add-remove, per record of the public number."""

# Output noise costs one part in 400 of the plan's squared parameter.
_OUTPUT_NOISE = 20.0
# Of the gradient that one record can have: what a minimiser may miss at least, and per record of the data. Rounding
# errors of the verified gradient are an eighth of the latter at most.
_TOLERANCE, _TOLERANCE_PER_RECORD = 2.0**-30, 2.0**-42
_TOLERANCE_PER_TERM = 2.0**-44
_NOISELESS_REGULARISATION = 1.0
# How long "auto" takes coefficients to be, in units of slope * sqrt(d) / R: predicted numbers stay within the target's
# range, logarithms of odds reach several units (benchmarks/study_two_stage.md).
_HUBER_COEFFICIENTS, _LOGISTIC_COEFFICIENTS = 0.3, 3.0


@dataclass(frozen=True, slots=True)
class ObjectivePlan:
    r"""How the minimiser of a perturbed objective will be released.

    Parameters
    ----------
    budget : Budget
        What all of the plan may cost.
    loss : HuberLoss or LogisticLoss
        :math:`\phi`.
    row_bound : float
        L2 bound on the rows.
    regularisation : float
        :math:`\Lambda`.
    noise_scale : float
        :math:`\sigma`, standard deviation of the linear term; 0 without privacy.
    tolerance : float
        Bound on the gradient's norm where the solver stops, apart from the rounding of the linear term.
    output_scale : float
        Standard deviation of the noise that covers what the tolerance leaves open; 0 without privacy.
    scale : float
        :math:`\sigma` in units of the largest change of the gradient between neighbours; 0 without privacy.
    releases : tuple of Release
        For the certificate.
    """

    budget: Budget
    loss: GeneralisedLinearLoss
    row_bound: float
    regularisation: float
    noise_scale: float
    tolerance: float
    output_scale: float
    scale: float
    releases: tuple[Release, ...]

    def solve(self, rows: Any, targets: FloatArray, stream: Stream) -> FloatArray:
        """The coefficients, one row per column of the targets.

        Rows are at most ``row_bound`` long. The noise is drawn once, whatever the solver makes of it.
        """
        n_columns = rows.shape[1]
        tolerance, output_scale = self.precision(n_columns)
        solutions = []
        with one_thread_if_small(*rows.shape):
            for target in targets.T:
                tilt = self.noise_scale * stream.spawn("objective").normals(n_columns)
                exact = minimise(rows, np.ascontiguousarray(target), self.loss, self.regularisation, tilt, tolerance)
                solutions.append(exact + output_scale * stream.spawn("output").normals(n_columns))
        return np.array(solutions)

    def precision(self, n_columns: int, offset: float = 0.0) -> tuple[float, float]:
        """The tolerance for a problem of so many columns, and the output noise that goes with it.

        A gradient is a difference of terms as large as the noise, and as an ``offset`` of the linear term that is
        already released; it cannot be known better than these are rounded.
        """
        size = self.noise_scale * math.sqrt(n_columns) + offset
        tolerance = self.tolerance + _TOLERANCE_PER_TERM * size
        return tolerance, self.output_scale * (tolerance / self.tolerance)


def check_regularisation(regularisation: float | str) -> None:
    """Refuse anything but "auto" or a positive number."""
    if isinstance(regularisation, str):
        check_choice(("auto",), regularisation=regularisation)
    else:
        check_positive(regularisation=regularisation)


def plan_objective_perturbation(
    budget: Budget,
    loss: GeneralisedLinearLoss,
    *,
    row_bound: float,
    relation: str,
    n_rows: int | None,
    n_outputs: int = 1,
    regularisation: float | str = "auto",
    before: Callable[[float], Event] | None = None,
) -> ObjectivePlan:
    r"""Plan objective perturbation.

    A larger :math:`\Lambda` spends less of epsilon on the ratio of Jacobians, :math:`\ln(1 + \beta/\Lambda)`, and
    leaves more of it to the noise, but pulls the coefficients towards zero. What the minimiser misses is
    :math:`H^{-1}(b + \Lambda w)`, H being the Hessian: "auto" minimises :math:`E\|b\|^2 + \Lambda^2 \|w\|^2` for
    coefficients w of the size that a loss of this slope and rows of this length suggest,
    :math:`q\, \mathrm{slope} \sqrt{d} / R` with q = 0.3 for Huber's loss and q = 3 for the logistic. Both terms then
    grow alike with d and with R, and what remains is

    .. math:: \min_\lambda \; \frac{1}{\tau(\lambda)^2} + (q \lambda)^2, \qquad \Lambda = \lambda R^2,

    :math:`1 / \tau` being the noise that the budget asks for, in units of what one record can do.

    Parameters
    ----------
    budget : Budget
        For all releases together; an infinite epsilon means no noise, and :math:`\Lambda = 1` for "auto".
    loss : HuberLoss or LogisticLoss
        The loss of one record in its linear predictor.
    row_bound : float
        R, the L2 bound on the rows.
    relation : str
        What one record more or less means.
    n_rows : int or None
        The public number of records.
    n_outputs : int, default=1
        How many objectives, each on all records, are minimised.
    regularisation : float or "auto"
        :math:`\Lambda`.
    before : callable, default=None
        What is released first, as a function of the noise scale in units of the largest change of the gradient.
    """
    check_regularisation(regularisation)
    relation = check_relation(relation)
    if n_rows is None:
        raise ParameterError(
            "n_public",
            None,
            "a public number of records under add-remove, to which the solver's precision is fitted",
            "pass one",
        )
    # A private number of records is taken to be at most twice the public one; more would be summed less precisely.
    records = MOST_PER_PUBLIC_ROW * n_rows if relation == "add-remove" else n_rows
    tolerance = loss.slope(math.inf) * row_bound * (_TOLERANCE + _TOLERANCE_PER_RECORD * records)
    what = "the minimiser of an objective with a random linear term"
    if math.isinf(budget.epsilon):
        exact = Release(what, "none", 0.0, NotPrivateEvent(), n_outputs)
        ridge = _NOISELESS_REGULARISATION if regularisation == "auto" else float(regularisation)
        return ObjectivePlan(Budget(math.inf, 0.0), loss, row_bound, ridge, 0.0, tolerance, 0.0, 0.0, (exact,))
    if budget.delta == 0.0:
        raise ParameterError("delta", 0.0, "a positive number", "the noise of objective perturbation is Gaussian")
    sensitivity = objective_tilt(loss.slope(math.inf), row_bound, relation)
    curvature = curvature_bound(loss) * row_bound * row_bound

    def scale_of(ridge: float) -> float:
        return calibrate(budget, lambda scale: _whole(scale, ridge, loss, curvature, relation, n_outputs, before))

    # Below this the Jacobians alone would spend the budget.
    least = curvature / math.expm1(min(budget.epsilon / n_outputs, 700.0))
    if regularisation == "auto":
        ridge = _best_regularisation(scale_of, least, loss, sensitivity.value / loss.slope(math.inf), row_bound)
    else:
        ridge = float(regularisation)
        if ridge <= least * 1.001:
            raise ParameterError(
                "regularisation", regularisation, f"more than {least:.6g}, which this epsilon needs", "raise it"
            )
    scale = scale_of(ridge)
    objective, output = _events(scale, ridge, loss, curvature, relation)
    output_scale = output.noise_multiplier * approximate_minimiser(tolerance, ridge, relation).value
    releases = (
        Release(what, "Gaussian", scale, objective, n_outputs),
        Release("by how much the computed minimiser misses it", "Gaussian", output.noise_multiplier, output, n_outputs),
    )
    return ObjectivePlan(
        budget, loss, row_bound, ridge, scale * sensitivity.value, tolerance, output_scale, scale, releases
    )


def _events(
    scale: float, ridge: float, loss: GeneralisedLinearLoss, curvature: float, relation: str
) -> tuple[ObjectivePerturbationEvent, GaussianEvent]:
    event = ObjectivePerturbationEvent(
        math.log1p(curvature / ridge),
        1.0 / scale,
        relation == "replace-one",
        # Labels are 0 or 1, never between.
        fixed_sign=isinstance(loss, LogisticLoss),
    )
    return event, GaussianEvent(_OUTPUT_NOISE * scale)


def _whole(
    scale: float,
    ridge: float,
    loss: GeneralisedLinearLoss,
    curvature: float,
    relation: str,
    n_outputs: int,
    before: Callable[[float], Event] | None,
) -> Event:
    parts = [event * n_outputs for event in _events(scale, ridge, loss, curvature, relation)]
    return ComposedEvent(tuple(parts) if before is None else (before(scale), *parts))


def _best_regularisation(
    scale_of: Callable[[float], float], least: float, loss: GeneralisedLinearLoss, unit: float, row_bound: float
) -> float:
    """The minimiser of noise and shrinkage together, to three digits, above the least admissible number."""
    size = (_HUBER_COEFFICIENTS if isinstance(loss, HuberLoss) else _LOGISTIC_COEFFICIENTS) / row_bound

    def cost(log_ridge: float) -> float:
        ridge = math.exp(log_ridge)
        return (unit * scale_of(ridge)) ** 2 + (size * ridge) ** 2

    low = math.log(1.01 * least)
    high = max(low, 2.0 * math.log(row_bound)) + 10.0
    return math.exp(float(minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-3}).x))
