"""Two stages: blocks of records vote for features, then objective perturbation fits a model to the selected ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.fitting.blocks import run_block_vote
from taciturn.fitting.objective_perturbation import run_objective
from taciturn.planning.two_stage import TwoStagePlan
from taciturn.sources import ArraySource

__all__ = ["run_two_stage"]


def run_two_stage(plan: TwoStagePlan, source: ArraySource, stream: Stream, *, n_jobs: int | None = None) -> FloatArray:
    """Release the selected features, then the minimisers on them.

    As :func:`run_objective` returns them, with zeros for the other features; ``n_jobs`` joblib workers share the
    blocks.
    """
    records, objective = source.records, plan.objective
    chosen = np.arange(records.n_features)
    if plan.votes.selection.method != "all":
        chosen = np.sort(run_block_vote(plan.votes, source, stream, n_jobs=n_jobs))
    selected = ArraySource(replace(records, X=records.columns(chosen)), source.x_bound, source.n_records)
    solution = run_objective(objective, selected, stream)
    weights = np.zeros((objective.n_outputs, records.n_features + 1))
    weights[:, chosen] = solution[:, :-1]
    weights[:, -1] = solution[:, -1]
    return weights
