"""Runs the trials of an experiment that are not on disk yet."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from threadpoolctl import threadpool_limits

import taciturn
from taciturn._version import __version__
from taciturn.core.errors import DataError, SuspiciousReleaseWarning, WeakGuaranteeWarning
from taciturn.core.validation import check_integer
from taciturn.datasets import find_dataset, load_dataset
from taciturn_research.harness import FILE_NAME, Config, Results, progress_bars, run
from taciturn_research.reproduce.experiment import Experiment, Row, seed_of


@dataclass(frozen=True, slots=True)
class Trial:
    """One finished trial and its rows.

    Parameters
    ----------
    config : Config
        The data set is the case, the method the experiment, and the seed the number of the trial.
    seed : int
        Of the random numbers.
    data : str
        Digest of the data file, empty for synthetic data.
    rows : list of Row
        Its numbers.
    source : str
        Digest of the code, see :func:`source_digest`.
    versions : dict
        Of everything else on which the numbers depend.
    """

    config: Config
    seed: int
    data: str
    rows: list[Row]
    source: str
    versions: dict[str, str]


# What a paper claims, and why its numbers differ from ours: read after the trials, and no number depends on it.
_WORDS = ("claims.py", "reasons.py")
# Parts of the package on which no number depends: they come after the trials, or have nothing to do with them.
_AROUND = ("_version.py", "__init__.py", "__main__.py", "app", "audit", "charts", "tables")


def source_digest(experiment: Experiment) -> str:
    """Of the code that computes an experiment's numbers: trials of another state of it are not mixed with this one's.

    It is made of the subpackages of ``taciturn`` and of the folder in which the experiment's trials are defined. The
    modules that hold what the paper says are left out.
    """
    return _digest_with(Path(inspect.getfile(experiment.run)).parent)


@cache
def _digest_with(own: Path) -> str:
    root = Path(taciturn.__file__).parent
    below = [path for path in root.rglob("*.py") if path.relative_to(root).parts[0] not in _AROUND]
    digest = hashlib.sha256()
    computing = [path for path in own.glob("*.py") if path.name not in _WORDS]
    for path in sorted(below) + sorted(computing):
        digest.update(f"{path.parent.name}/{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def versions() -> dict[str, str]:
    """Versions of everything else on which the numbers depend."""
    own = {"taciturn": __version__, "python": platform.python_version()}
    return own | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}


def trials_in(folder: Path, experiments: Sequence[Experiment]) -> Results[Trial]:
    """The finished trials of a folder, as far as this state of the code computed them."""
    sources = {experiment.name: source_digest(experiment) for experiment in experiments}

    def counts(trial: Trial) -> bool:
        return trial.versions == versions() and trial.source == sources.get(trial.config.method)

    return Results(folder / FILE_NAME, Trial, counts)


def find_trials(trials: Results[Trial], experiment: Experiment, case: str) -> list[Trial]:
    """Those of one experiment on one case, in order; if the data file was exchanged, on the later one."""
    found = [trial for trial in trials if (trial.config.method, trial.config.data_set) == (experiment.name, case)]
    return sorted((trial for trial in found if trial.data == found[-1].data), key=lambda trial: trial.config.seed)


def run_experiment(
    experiment: Experiment,
    output: str | os.PathLike[str],
    *,
    trials: int | None = None,
    data: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    quick: bool = False,
    console: Console | None = None,
) -> list[str]:
    """Run an experiment; every finished trial is written down at once, and none that is there is run again.

    A trial's numbers depend on its experiment, case and number alone: neither on ``jobs`` nor on how often the
    run was interrupted. So the trials of the quick setting are the first ones of the full one.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    output : path
        The folder of the results.
    trials : int, default=None
        How many trials on each case. None: the experiment's own number, or its quick one.
    data : path, default=None
        Where data sets are looked for first; see ``load_dataset``.
    jobs : int, default=1
        Number of worker processes.
    quick : bool, default=False
        Whether None means the quick number of trials.
    console : Console, default=None
        Where the progress bar is drawn; None draws none.

    Returns
    -------
    list of str
        One sentence for each data set that was skipped, because it is not there or not as expected.
    """
    wanted = experiment.quick_trials if quick else experiment.trials
    if trials is not None:
        wanted = check_integer(1, trials=trials)
    check_integer(1, jobs=jobs)
    results = trials_in(Path(output), (experiment,))
    skipped: list[str] = []
    with progress_bars(console) as progress:
        # Case by case, so that no more than one data set is in memory.
        for case in experiment.cases_of(quick=quick):
            try:
                digest = "" if case.dataset is None else find_dataset(case.dataset, data)[1]
                configs = [Config(case.name, experiment.name, seed=trial) for trial in range(wanted)]
                configs = [config for config in configs if config not in results or results[config].data != digest]
                if not configs:
                    continue
                dataset = None if case.dataset is None else load_dataset(case.dataset, data)
            except DataError as error:
                skipped.append(str(error))
                continue
            # One thread here and in the trials: the order of floating-point sums must not depend on cores or jobs.
            with threadpool_limits(limits=1):
                prepared = experiment.prepare(dataset, **case.options)
            run(
                configs,
                partial(_trial, experiment, prepared, digest),
                results,
                again=True,
                jobs=jobs,
                progress=progress,
                title=f"{experiment.name}: {case.name}",
                # Budgets and bounds are those of the papers, which often take one over n for delta.
                ignored=(WeakGuaranteeWarning, SuspiciousReleaseWarning),
            )
    return skipped


def _trial(experiment: Experiment, prepared: Any, digest: str, config: Config) -> Trial:
    seed = seed_of(experiment.name, config.data_set, config.seed)
    rows = experiment.run(prepared, seed)
    return Trial(config, seed, digest, rows, source_digest(experiment), versions())
