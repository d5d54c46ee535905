"""Plans for private ADMM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from taciturn.accounting import Budget
from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.fitting.admm import penalty_level, solve_admm
from taciturn.fitting.objective_perturbation import GeneralisedLinearLoss
from taciturn.fitting.threads import one_thread_if_small
from taciturn.planning.objective_perturbation import ObjectivePlan, plan_objective_perturbation

__all__ = ["ADMM_STEPS", "NOISELESS_ADMM_STEPS", "ADMMPlan", "plan_admm"]


ADMM_STEPS = 10
"""Iterations with privacy, unless told otherwise: each of them spends a share of the budget."""
NOISELESS_ADMM_STEPS = 200
"""Iterations without privacy."""

# What the Jacobians of all iterations take of epsilon.
_JACOBIAN_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ADMMPlan:
    r"""How consensus ADMM will run.

    Parameters
    ----------
    minimisers : ObjectivePlan
        The local problems of all iterations, with :math:`\rho` for their regularisation.
    n_steps : int
        Number of iterations.
    penalty : {"l1", "l1/2"}
        The penalty.
    kappa : float
        Its strength in the proximal map.
    releases : tuple of Release
        For the certificate.
    """

    minimisers: ObjectivePlan
    n_steps: int
    penalty: str
    kappa: float
    releases: tuple[Release, ...]

    @property
    def budget(self) -> Budget:
        """What all iterations together may cost."""
        return self.minimisers.budget

    def solve(
        self, blocks: Sequence[tuple[Any, FloatArray]], n_columns: int, n_penalised: int, stream: Stream
    ) -> FloatArray:
        """The consensus after the last iteration."""
        local = self.minimisers
        with one_thread_if_small(max(targets.size for _, targets in blocks), n_columns):
            return solve_admm(
                blocks,
                n_columns,
                penalty=self.penalty,
                kappa=self.kappa,
                coupling=local.regularisation,
                n_penalised=n_penalised,
                n_steps=self.n_steps,
                release=local.release,
                stream=stream,
            )


def plan_admm(
    budget: Budget,
    loss: GeneralisedLinearLoss,
    *,
    row_bound: float,
    relation: str,
    n_rows: int | None,
    n_features: int,
    n_coefficients: int,
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

    Parameters
    ----------
    budget : Budget
        For all iterations together; an infinite epsilon means no noise.
    loss : HuberLoss or LogisticLoss
        The loss of one record in its linear predictor.
    row_bound : float
        R, the L2 bound on the rows.
    relation : str
        What one record more or less means.
    n_rows : int or None
        The public number of records.
    n_features, n_coefficients, n_blocks : int
        Penalised columns, all columns, and blocks of records.
    n_steps : int or "auto"
        Number of iterations.
    penalty : {"l1", "l1/2"}
        The penalty.
    strength : float or "auto"
        Its weight beside the mean loss.
    coupling : float or "auto"
        :math:`\rho`.
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
        n_coefficients=n_coefficients,
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
    return ADMMPlan(minimisers, steps, penalty, kappa, releases)
