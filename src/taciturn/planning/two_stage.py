"""Plans for a selection of features by votes, followed by objective perturbation on the selected ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting import Budget
from taciturn.certificate import Release
from taciturn.core.validation import check_integer, check_positive, check_real
from taciturn.data.sensitivity import block_votes
from taciturn.events import ExponentialEvent, NotPrivateEvent
from taciturn.losses import ScalarLoss
from taciturn.mechanisms import GumbelTopK
from taciturn.planning.block_vote import BlockVotePlan, number_of_blocks
from taciturn.planning.listed import ListedReleases
from taciturn.planning.objective_perturbation import ObjectivePlan, plan_objective_perturbation
from taciturn.planning.top_k import TopKPlan

__all__ = ["TwoStagePlan", "check_selection_share", "plan_two_stage"]


@dataclass(frozen=True, slots=True)
class TwoStagePlan(ListedReleases):
    """How features will be selected, and how a model will be fitted to them."""

    arithmetic: ClassVar[str] = ObjectivePlan.arithmetic
    ordered: ClassVar[bool] = True

    votes: BlockVotePlan
    objective: ObjectivePlan
    releases: tuple[Release, ...]

    @property
    def budget(self) -> Budget:
        """What both stages together may cost."""
        return self.objective.budget


def check_selection_share(selection_share: float) -> None:
    """Refuse a share outside (0, 1)."""
    check_real(0.0, 1.0, closed="left", selection_share=selection_share)
    check_positive(selection_share=selection_share)


def plan_two_stage(
    budget: Budget,
    loss: ScalarLoss,
    *,
    n_features: int,
    k: int,
    selection_share: float,
    row_bound: float,
    relation: str,
    n_rows: int | None,
    intercept: bool = False,
    n_blocks: int | str = "auto",
    n_outputs: int = 1,
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
    k = check_integer(1, n_features, k=k)
    blocks = number_of_blocks(n_blocks, n_rows)
    selects = k < n_features
    ratio = 2.0 * math.sqrt(selection_share / (1.0 - selection_share) * n_outputs / k)
    objective = plan_objective_perturbation(
        budget,
        loss,
        row_bound=row_bound,
        relation=relation,
        n_rows=n_rows,
        n_features=k,
        intercept=intercept,
        n_outputs=n_outputs,
        regularisation=regularisation,
        before=(lambda scale: ExponentialEvent(ratio / scale) * k) if selects else None,
    )
    what = f"which {k:,} of {n_features:,} features get the most votes"
    if not selects:
        selection = TopKPlan(k, objective.budget, "all", None, ())
    elif objective.scale == 0.0:
        exact = Release(what, "none", 0.0, NotPrivateEvent())
        selection = TopKPlan(k, objective.budget, "exact", None, (exact,))
    else:
        sensitivity = block_votes(relation)
        noise = GumbelTopK(sensitivity, k, ratio / objective.scale)
        release = Release(what, "Gumbel", noise.scale / sensitivity.value, ExponentialEvent(noise.epsilon), k)
        selection = TopKPlan(k, objective.budget, "gumbel", noise, (release,))
    votes = BlockVotePlan(selection, relation, blocks, loss.labelled, n_outputs)
    return TwoStagePlan(votes, objective, (*selection.releases, *objective.releases))
