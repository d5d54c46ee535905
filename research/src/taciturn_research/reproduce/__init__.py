"""Tables and figures of papers, regenerated with ``taciturn.published`` beside the sound methods.

An :class:`Experiment` says what one trial computes; :func:`run_experiment` runs the trials that a folder does not hold
yet; :func:`write_report` turns what it holds into ``results.json``, ``reproduction.md``, ``reproduction.html`` and
figures. On the command line: ``taciturn reproduce list``.

**Privacy.** None. Results are compared with what is not private, and data are scaled by their own values as in the
papers, so all of this is for public data.
"""

from taciturn.core.errors import ParameterError
from taciturn_research.reproduce import dpight, dpsis, screening, sparsifier
from taciturn_research.reproduce.experiment import Case, Claim, Experiment, Finding, Picture, Published, Table
from taciturn_research.reproduce.pages import write_report
from taciturn_research.reproduce.runner import run_experiment

__all__ = [
    "EXPERIMENTS",
    "Case",
    "Claim",
    "Experiment",
    "Finding",
    "Picture",
    "Published",
    "Table",
    "find_experiment",
    "run_experiment",
    "write_report",
]

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
