"""ADMM over blocks of records, and the two-stage method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray
from taciturn.engines.interface import ArraySource
from taciturn.methods.descent import one_thread_if_small
from taciturn.methods.objective.plan import HALF_START, ADMMPlan, TwoStagePlan
from taciturn.methods.objective.run import bounded_rows, one_against_rest, release_minimiser, run_objective
from taciturn.methods.selection.run import assign_blocks, run_block_vote
from taciturn.privacy.transcript import block_of_records

# ---- Consensus ADMM for a penalised sum of losses, with a random linear term in every local problem.
# .. math:: \min_{w_1, \dots, w_B, z} \sum_b \sum_{i \in b} \phi(x_i \cdot w_b; y_i) + \kappa \rho B\, P(z)
#           \quad \text{subject to } w_b = z .
#
# One iteration, with scaled multipliers u:
#
# .. math:: w_b &\leftarrow \arg\min_w \sum_{i \in b} \phi(x_i \cdot w; y_i) + \tfrac{\rho}{2} \|w - z + u_b\|^2
#           + t_b \cdot w, \qquad t_b \sim N(0, \sigma^2 I), \\
#           z &\leftarrow \mathrm{prox}_{\kappa P}\Bigl(\tfrac{1}{B} \sum_b (w_b + u_b)\Bigr), \qquad
#           u_b \leftarrow u_b + w_b - z .
#
# The records enter through the local minimisers alone, and each record through those of its own block: the rest is
# computed from them. So one iteration costs one record what one perturbed objective costs.

# Below this it moves nothing by more than 1e-199, and the formula would leave the doubles.
_HALF_LEAST = 1e-300


def soft_threshold(values: FloatArray, kappa: float) -> FloatArray:
    r"""The minimiser of :math:`\tfrac12 (z - a)^2 + \kappa |z|`."""
    shrunk: FloatArray = np.sign(values) * np.maximum(np.abs(values) - kappa, 0.0)
    return shrunk


def half_threshold(values: FloatArray, kappa: float) -> FloatArray:
    r"""The minimiser of :math:`\tfrac12 (z - a)^2 + \kappa |z|^{1/2}` (Xu, Chang, Xu and Zhang 2012).

    Zero for :math:`|a| \le \tfrac32 \kappa^{2/3}`, and beyond that the largest root of the stationarity condition,
    :math:`\tfrac23 a (1 + \cos(\tfrac{2\pi}{3} - \tfrac23 \arccos(\tfrac{\kappa}{4} (|a|/3)^{-3/2})))`.
    """
    if kappa < _HALF_LEAST:
        return values.copy()
    sizes = np.abs(values)
    kept = sizes > HALF_START * kappa ** (2.0 / 3.0)
    out = np.zeros_like(values)
    angle = np.arccos(np.minimum(0.25 * kappa * (sizes[kept] / 3.0) ** -1.5, 1.0))
    out[kept] = 2.0 / 3.0 * values[kept] * (1.0 + np.cos(2.0 / 3.0 * (np.pi - angle)))
    return out


PENALTIES: dict[str, Callable[[FloatArray, float], FloatArray]] = {"l1": soft_threshold, "l1/2": half_threshold}
"""The proximal map of each penalty."""


def run_admm(plan: ADMMPlan, source: ArraySource, stream: Stream) -> FloatArray:
    """Release the local minimisers of all iterations; return the last consensus as :func:`run_objective` does."""
    local, records = plan.minimisers, source.records
    rows, _ = bounded_rows(records.X, source.x_bound, local.row_bound, intercept=local.problem.intercept)
    targets = one_against_rest(records.y, 1)[:, 0]
    assigned = assign_blocks(local.problem.relation, records, plan.n_blocks, stream)
    blocks = [(rows[block], targets[block]) for block in assigned]
    weights = np.zeros((1, local.problem.n_features + 1))
    with one_thread_if_small(max(targets.size for _, targets in blocks), local.problem.n_columns):
        weights[0, : local.problem.n_columns] = solve_admm(plan, blocks, stream.spawn("admm"))
    return weights


def solve_admm(plan: ADMMPlan, blocks: Sequence[tuple[Any, FloatArray]], stream: Stream) -> FloatArray:
    """The consensus z after all iterations over blocks of rows and targets, which may be empty."""
    local, shrink = plan.minimisers, PENALTIES[plan.penalty]
    consensus = np.zeros(local.problem.n_columns)
    multipliers = np.zeros((len(blocks), local.problem.n_columns))
    minimisers = np.zeros_like(multipliers)
    for _ in range(plan.n_steps):
        for b, (rows, targets) in enumerate(blocks):
            offset = -local.regularisation * (consensus - multipliers[b])
            with block_of_records(b, (rows, targets)):
                minimisers[b] = release_minimiser(local, rows, targets, offset, stream)
        consensus = (minimisers + multipliers).mean(axis=0)
        # The intercept, which comes last, is not penalised.
        consensus[: local.problem.n_features] = shrink(consensus[: local.problem.n_features], plan.kappa)
        multipliers += minimisers - consensus
    return consensus


# ---- Two stages: blocks of records vote for features, then objective perturbation fits a model to the selected ones.


def run_two_stage(plan: TwoStagePlan, source: ArraySource, stream: Stream, *, n_jobs: int | None = None) -> FloatArray:
    """Release the selected features, then minimisers on them, zero for the others; joblib workers share blocks."""
    records, objective = source.records, plan.objective
    chosen = np.arange(records.n_features)
    if plan.votes.selection.method != "all":
        chosen = np.sort(run_block_vote(plan.votes, source, stream, n_jobs=n_jobs))
    selected = ArraySource(replace(records, X=records.columns(chosen)), source.x_bound, source.n_records)
    solution = run_objective(objective, selected, stream)
    weights = np.zeros((objective.problem.n_outputs, records.n_features + 1))
    weights[:, chosen] = solution[:, :-1]
    weights[:, -1] = solution[:, -1]
    return weights
