"""Plans for a selection of columns by votes and the minimiser of a perturbed objective on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from taciturn.accounting import Budget
from taciturn.certificate import Release
from taciturn.core.validation import check_integer, check_positive, check_real
from taciturn.data.sensitivity import block_votes
from taciturn.events import ExponentialEvent, NotPrivateEvent
from taciturn.fitting.objective_perturbation import GeneralisedLinearLoss
from taciturn.mechanisms import GumbelTopK
from taciturn.planning.objective_perturbation import ObjectivePlan, plan_objective_perturbation
from taciturn.planning.top_k import TopKPlan

__all__ = ["TwoStagePlan", "check_selection_share", "plan_two_stage"]


@dataclass(frozen=True, slots=True)
class TwoStagePlan(ObjectivePlan):
    """A selection of columns, then an :class:`ObjectivePlan` on them; budget and releases are those of both.

    Parameters
    ----------
    selection : TopKPlan
        Which columns.
    """

    selection: TopKPlan


def check_selection_share(selection_share: float) -> None:
    """Refuse a share of nothing or of everything."""
    check_real(0.0, 1.0, closed="left", selection_share=selection_share)
    check_positive(selection_share=selection_share)


def plan_two_stage(
    budget: Budget,
    loss: GeneralisedLinearLoss,
    *,
    n_columns: int,
    k: int,
    selection_share: float,
    row_bound: float,
    relation: str,
    n_rows: int | None,
    n_coefficients: int,
    n_outputs: int = 1,
    regularisation: float | str = "auto",
) -> TwoStagePlan:
    r"""Plan a selection of k columns by Gumbel noise on votes, and objective perturbation on those.

    One accountant covers both. Of the plan's squared parameter, apart from what the Jacobians take,
    :math:`k e^2 / 4` belongs to k selections of range e and :math:`\tau^2` to an objective of shift :math:`\tau`; the
    first is a share s of both for

    .. math:: e = 2 \tau \sqrt{\frac{s}{1 - s} \cdot \frac{\text{number of objectives}}{k}} .

    Parameters
    ----------
    budget : Budget
        For both stages together; an infinite epsilon means no noise.
    loss : HuberLoss or LogisticLoss
        The loss of one record in its linear predictor.
    n_columns, k : int
        ``1 <= k <= n_columns``; all columns are selected for nothing.
    selection_share : float
        s, in (0, 1).
    row_bound, relation, n_rows, n_coefficients, n_outputs, regularisation
        As for :func:`plan_objective_perturbation`, of the selected columns.
    """
    check_selection_share(selection_share)
    k = check_integer(1, n_columns, k=k)
    selects = k < n_columns
    ratio = 2.0 * math.sqrt(selection_share / (1.0 - selection_share) * n_outputs / k)
    objective = plan_objective_perturbation(
        budget,
        loss,
        row_bound=row_bound,
        relation=relation,
        n_rows=n_rows,
        n_coefficients=n_coefficients,
        n_outputs=n_outputs,
        regularisation=regularisation,
        before=(lambda scale: ExponentialEvent(ratio / scale) * k) if selects else None,
    )
    what = f"which {k:,} of {n_columns:,} features get the most votes"
    if not selects:
        selection = TopKPlan(k, objective.budget, "all", None, ())
    elif objective.scale == 0.0:
        exact = Release(what, "none", 0.0, NotPrivateEvent())
        selection = TopKPlan(k, objective.budget, "exact", None, (exact,))
    else:
        votes = block_votes(relation)
        noise = GumbelTopK(votes, k, ratio / objective.scale)
        release = Release(what, "Gumbel", noise.scale / votes.value, ExponentialEvent(noise.epsilon), k)
        selection = TopKPlan(k, objective.budget, "gumbel", noise, (release,))
    stages = {field.name: getattr(objective, field.name) for field in fields(objective)}
    stages["releases"] = (*selection.releases, *objective.releases)
    return TwoStagePlan(**stages, selection=selection)
