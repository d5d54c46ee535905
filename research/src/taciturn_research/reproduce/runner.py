"""Runs the trials of an experiment that are not on disk yet."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

import taciturn
from taciturn._version import __version__
from taciturn.core.errors import DataError, SuspiciousReleaseWarning, WeakGuaranteeWarning
from taciturn.core.validation import check_integer
from taciturn.datasets import find_dataset, load_dataset
from taciturn_research.reproduce.experiment import Case, Experiment, Row, seed_of

# ---------------------------------------------------------------------
# Finished trials on disk, one JSON line each, so that a killed run goes on where it stopped.


FILE_NAME = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """One finished trial and its rows; ``data`` is the digest of the data file, empty for synthetic data."""

    experiment: str
    case: str
    trial: int
    seed: int
    data: str
    rows: list[Row]


# What a paper claims, and why its numbers differ from ours: read after the trials, and no number depends on it.
_WORDS = ("claims.py", "reasons.py")
# Rooms that no number depends on: what they do comes after the trials, or has nothing to do with them.
_AROUND = ("_version.py", "__init__.py", "__main__.py", "cli", "audit", "report", "modelfile", "tables")


def source_digest(experiment: Experiment) -> str:
    """Of the code that computes an experiment's numbers: trials of another state of it are not mixed with this one's.

    It is made of the rooms of ``taciturn`` and of the folder in which the experiment's trials are defined, but for
    the modules that hold what the paper says.
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


class Records:
    """The finished trials of a folder, as far as this state of the code computed them.

    Parameters
    ----------
    folder : Path
        It is created if need be.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE_NAME
        self._finished: dict[tuple[str, str, str], list[Record]] = {}
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                # The line that a killed run was writing.
                continue
            source = entry.pop("source")
            if entry.pop("versions") == versions():
                self._keep(source, Record(**entry))
        self._begin = "\n" if text and not text.endswith("\n") else ""

    def add(self, experiment: Experiment, record: Record) -> None:
        """Write down a finished trial at once, with the versions of what computed it."""
        source = source_digest(experiment)
        entry = asdict(record) | {"source": source, "versions": versions()}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(self._begin + json.dumps(entry) + "\n")
        self._begin = ""
        self._keep(source, record)

    def find_trials(self, experiment: Experiment, case: str) -> list[Record]:
        """Those of one experiment on one case, by trial; if the data file was exchanged, on the later one."""
        found = self._finished.get((source_digest(experiment), experiment.name, case), [])
        return sorted(
            (record for record in found if record.data == found[-1].data),
            key=lambda record: record.trial,
        )

    def missing(self, experiment: Experiment, case: str, data: str, trials: int) -> list[int]:
        """Which of the first trials are still to be run on that data file."""
        done = {record.trial for record in self.find_trials(experiment, case) if record.data == data}
        return [trial for trial in range(trials) if trial not in done]

    def _keep(self, source: str, record: Record) -> None:
        self._finished.setdefault((source, record.experiment, record.case), []).append(record)


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
