"""Tables and figures of papers, regenerated with ``taciturn.published`` beside the sound methods.

An :class:`Experiment` says what one trial computes; :func:`run_experiment` runs the trials that a folder does not hold
yet; :func:`write_report` turns what it holds into ``results.json``, ``reproduction.md``, ``reproduction.html`` and
figures. On the command line: ``taciturn reproduce list``.

**Privacy.** None. Results are compared with what is not private, and data are scaled by their own values as in the
papers, so all of this is for public data.
"""

from taciturn_research.reproduce.catalogue import EXPERIMENTS, find_experiment
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
