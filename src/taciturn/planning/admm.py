"""Plans for private ADMM."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from taciturn.accounting import Budget
from taciturn.certificate import Release
from taciturn.losses import ScalarLoss
from taciturn.planning.listed import ListedReleases
from taciturn.planning.objective_perturbation import ObjectivePlan, plan_objective_perturbation

__all__ = ["ADMM_STEPS", "HALF_START", "NOISELESS_ADMM_STEPS", "ADMMPlan", "penalty_level", "plan_admm"]


ADMM_STEPS = 10
"""Default number of iterations with privacy: each of them spends a share of the budget."""
NOISELESS_ADMM_STEPS = 200
"""Iterations without privacy."""

HALF_START = 1.5
r"""Half thresholding sets :math:`|a| \le 1.5 \kappa^{2/3}` to zero."""

# The share of epsilon that the Jacobians of all iterations take.
_JACOBIAN_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ADMMPlan(ListedReleases):
    r"""How consensus ADMM will run.

    Parameters
    ----------
    minimisers : ObjectivePlan
        The local problems of all iterations, with :math:`\rho` for their regularisation.
    kappa : float
        Its strength in the proximal map.
    """

    arithmetic: ClassVar[str] = ObjectivePlan.arithmetic
    ordered: ClassVar[bool] = True

    minimisers: ObjectivePlan
    n_blocks: int
    n_steps: int
    penalty: str
    kappa: float
    releases: tuple[Release, ...]

    @property
    def budget(self) -> Budget:
        """What all iterations together may cost."""
        return self.minimisers.budget


def penalty_level(penalty: str, threshold: float) -> float:
    """The kappa at which the proximal map of a penalty sets everything up to ``threshold`` to zero."""
    return threshold if penalty == "l1" else float((threshold / HALF_START) ** 1.5)


def plan_admm(
    budget: Budget,
    loss: ScalarLoss,
    *,
    row_bound: float,
    relation: str,
    n_rows: int | None,
    n_features: int,
    intercept: bool,
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
    curvature = loss.smoothness * row_bound * row_bound
    if coupling != "auto":
        rho = float(coupling)
    elif private:
        rho = curvature / math.expm1(min(_JACOBIAN_SHARE * budget.epsilon / steps, 700.0))
    else:
        # As much as the typical curvature of a feature.
        rho = curvature * (n_rows or 1) / (n_features * n_blocks)
    minimisers = plan_objective_perturbation(
        budget,
        loss,
        row_bound=row_bound,
        relation=relation,
        n_rows=n_rows,
        n_features=n_features,
        intercept=intercept,
        n_outputs=steps,
        n_blocks=n_blocks,
        regularisation=rho,
        name="coupling",
    )
    records = n_rows or 1
    if strength == "auto":
        by_chance = 0.25 * records * row_bound * row_bound / (n_features * n_blocks * n_blocks)
        noise = minimisers.noise_scale * minimisers.noise_scale / n_blocks
        threshold = math.sqrt(2.0 * math.log(max(n_features, 2)) * (noise + by_chance)) / rho
        kappa = penalty_level(penalty, threshold)
    else:
        kappa = float(strength) * records / (rho * n_blocks)
    words = {"the minimiser of an objective with a random linear term": "a local minimiser per iteration"}
    releases = tuple(replace(release, what=words.get(release.what, release.what)) for release in minimisers.releases)
    return ADMMPlan(minimisers, n_blocks, steps, penalty, kappa, releases)
