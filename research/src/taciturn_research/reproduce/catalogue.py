"""Every experiment, by name."""

from __future__ import annotations

from taciturn.core.errors import ParameterError
from taciturn_research.reproduce import dpight, dpsis, screening, sparsifier
from taciturn_research.reproduce.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    *screening.EXPERIMENTS,
    *dpsis.EXPERIMENTS,
    *dpight.EXPERIMENTS,
    *sparsifier.EXPERIMENTS,
)
"""In the order in which ``all`` runs them."""


def find_experiment(name: str) -> Experiment:
    """The experiment of that name."""
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            return experiment
    known = ", ".join(experiment.name for experiment in EXPERIMENTS)
    raise ParameterError("name", name, f"all or one of {known}", "see taciturn reproduce list")
