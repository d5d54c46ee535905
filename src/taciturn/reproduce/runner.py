"""Runs the trials of an experiment that are not on disk yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from taciturn.core.errors import DataError
from taciturn.core.validation import check_integer
from taciturn.reproduce.data import load_dataset
from taciturn.reproduce.experiment import Experiment, seed_of
from taciturn.reproduce.records import Record, Records

__all__ = ["run_experiment"]


@dataclass(slots=True)
class _Work:
    """What there is to do on one data set."""

    case: str
    digest: str
    trials: list[int]
    prepared: Any = field(repr=False)


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

    A trial's numbers depend on its experiment, data set and number alone: neither on ``jobs`` nor on how often the
    run was interrupted. So the trials of the quick setting are the first ones of the full one.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    output : path
        The folder of the results.
    trials : int, default=None
        How many trials on each data set. None: the experiment's own number, or its quick one.
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
    works = list(_works(experiment, records, wanted, data, skipped))
    tasks = (
        delayed(_trial)(experiment, work.prepared, work.case, work.digest, trial)
        for work in works
        for trial in work.trials
    )
    with _progress(console) as progress:
        bar = progress.add_task(experiment.name, total=sum(len(work.trials) for work in works))
        for record in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            records.add(record)
            progress.advance(bar)
    return skipped


def _works(
    experiment: Experiment,
    records: Records,
    trials: int,
    data: str | os.PathLike[str] | None,
    skipped: list[str],
) -> Iterator[_Work]:
    for case in experiment.cases:
        dataset, digest = None, ""
        if experiment.datasets:
            try:
                dataset = load_dataset(case, data)
            except DataError as error:
                skipped.append(str(error))
                continue
            digest = dataset.digest
        missing = records.missing(experiment.name, case, digest, trials)
        if missing:
            yield _Work(case, digest, missing, experiment.prepare(dataset))


def _trial(experiment: Experiment, prepared: Any, case: str, digest: str, trial: int) -> Record:
    seed = seed_of(experiment.name, case, trial)
    # One thread, as in a worker process: the order of floating-point sums must not depend on the number of jobs.
    with threadpool_limits(limits=1):
        rows = experiment.run(prepared, seed)
    return Record(experiment.name, case, trial, seed, digest, rows)


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
