"""Runs the trials of an experiment that are not on disk yet."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from taciturn.core.errors import DataError, SuspiciousReleaseWarning, WeakGuaranteeWarning
from taciturn.core.validation import check_integer
from taciturn.datasets import find_dataset, load_dataset
from taciturn_research.reproduce.experiment import Case, Experiment, seed_of
from taciturn_research.reproduce.records import Record, Records

__all__ = ["run_experiment"]


@dataclass(frozen=True, slots=True)
class _Work:
    """What there is to do on one case."""

    case: Case
    digest: str
    trials: list[int]


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
    records = Records(Path(output))
    skipped: list[str] = []
    works = list(_works(experiment, records, wanted, quick, data, skipped))
    with _progress(console) as progress:
        bar = progress.add_task(experiment.name, total=sum(len(work.trials) for work in works))
        for work in works:
            progress.update(bar, description=f"{experiment.name}: {work.case.name}")
            # Case by case, so that no more than one data set is in memory.
            try:
                dataset = None if work.case.dataset is None else load_dataset(work.case.dataset, data)
            except DataError as error:
                skipped.append(str(error))
                progress.advance(bar, len(work.trials))
                continue
            # One thread here and in the trials: the order of floating-point sums must not depend on cores or jobs.
            with threadpool_limits(limits=1):
                prepared = experiment.prepare(dataset, **work.case.options)
            tasks = (delayed(_trial)(experiment, prepared, work, trial) for trial in work.trials)
            for record in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
                records.add(experiment, record)
                progress.advance(bar)
    return skipped


def _works(
    experiment: Experiment,
    records: Records,
    trials: int,
    quick: bool,
    data: str | os.PathLike[str] | None,
    skipped: list[str],
) -> Iterator[_Work]:
    for case in experiment.cases_of(quick=quick):
        digest = ""
        if case.dataset is not None:
            try:
                _, digest = find_dataset(case.dataset, data)
            except DataError as error:
                skipped.append(str(error))
                continue
        missing = records.missing(experiment, case.name, digest, trials)
        if missing:
            yield _Work(case, digest, missing)


def _trial(experiment: Experiment, prepared: Any, work: _Work, trial: int) -> Record:
    seed = seed_of(experiment.name, work.case.name, trial)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # Budgets and bounds are those of the papers, which often take one over n for delta.
        for kind in (WeakGuaranteeWarning, SuspiciousReleaseWarning):
            warnings.simplefilter("ignore", kind)
        rows = experiment.run(prepared, seed)
    return Record(experiment.name, work.case.name, trial, seed, work.digest, rows)


def _progress(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials, time left"),
        TimeRemainingColumn(),
        console=console,
        disable=console is None,
    )
