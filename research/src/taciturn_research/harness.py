"""One harness for experiments: a grid of runs, results on disk, tables from them.

A run is a data set, a method, a budget, a setting and a seed. A description (the arena, a paper's experiment, the study
of coverage, a study of a default) lists the runs it wants and measures one of them. The harness runs what is not on
disk yet, in worker processes if asked to, and appends each result as a JSON line as soon as it is there. So a killed
run goes on where it stopped. A result depends on its run alone, neither on the number of workers nor on interruptions.

Examples
--------
>>> import tempfile
>>> results = Results(Path(tempfile.mkdtemp()) / "results.jsonl", Measured)
>>> grid = [Config("toy", "mean", 1.0, setting_of(clip=clip), seed) for clip in ("low", "high") for seed in range(2)]
>>> run(grid, lambda config: Measured(config, {"error": 0.5 * config.seed}), results)
>>> results.frame().groupby("clip")["error"].mean().to_dict()
{'high': 0.25, 'low': 0.25}
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from scipy.stats import binom
from threadpoolctl import threadpool_limits

from taciturn.core.errors import ParameterError

FILE_NAME = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Config:
    """A point of a grid: what is to be run.

    Parameters
    ----------
    data_set, method : str
        Names.
    epsilon : float or None
        None without privacy, or if the method has its own.
    setting : str
        Further settings as JSON, see :func:`setting_of`.
    seed : int
        Of data, split and noise.
    rows : int or None
        The number of training rows, or the limit on it.
    """

    data_set: str
    method: str
    epsilon: float | None = None
    setting: str = "{}"
    seed: int = 0
    rows: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(json.loads(self.setting))


def setting_of(**settings: Any) -> str:
    """Settings as JSON, the same for the same settings."""
    return json.dumps(settings, sort_keys=True)


class Finished(Protocol):
    """A dataclass that begins with the run of which it is the result; what follows is JSON."""

    @property
    def config(self) -> Config:
        """Of what."""


R = TypeVar("R", bound=Finished)


@dataclass(frozen=True, slots=True)
class Measured:
    """A result of measures by name."""

    config: Config
    values: Mapping[str, Any]


class Results(Generic[R]):
    """The results in a file, one JSON line each; of two results of a run the later one counts.

    The line that a killed run was writing is dropped.

    Parameters
    ----------
    path : Path
        Of the file. It and its folder are created with the first result.
    kind : type
        The dataclass of a result.
    keep : callable, default=None
        Whether a result counts, such as those of the present state of the code; None: all do.
    """

    def __init__(self, path: Path, kind: type[R], keep: Callable[[R], bool] | None = None) -> None:
        self._path = path
        self._optional = [each.name for each in fields(kind) if each.default is None]  # type: ignore[arg-type]
        self._finished: dict[Config, R] = {}
        self._whole: int | None = None
        self._begin = b""
        content = path.read_bytes() if path.exists() else b""
        for line in content.splitlines(keepends=True):
            try:
                entry = json.loads(line)
            except ValueError:
                if not line.endswith(b"\n"):
                    self._whole = len(content) - len(line)
                continue
            # Lines of earlier editions have no such field.
            if "config" in entry:
                result = kind(**{**entry, "config": Config(**entry["config"])})
                if keep is None or keep(result):
                    self._keep(result)
            self._begin = b"" if line.endswith(b"\n") else b"\n"

    def __contains__(self, config: Config) -> bool:
        return config in self._finished

    def __getitem__(self, config: Config) -> R:
        return self._finished[config]

    def __iter__(self) -> Iterator[R]:
        """In the order in which they were written."""
        return iter(self._finished.values())

    def add(self, result: R) -> None:
        """Append a result to the file at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._whole is not None:
            with self._path.open("r+b") as file:
                file.truncate(self._whole)
            self._whole = None
        with self._path.open("ab") as file:
            file.write(self._begin + self._line(result))
        self._begin = b""
        self._keep(result)

    def forget(self, methods: Collection[str]) -> None:
        """Drop all results of these methods, on disk too."""
        self._finished = {config: found for config, found in self._finished.items() if config.method not in methods}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        kept = self._path.with_suffix(".kept")
        kept.write_bytes(b"".join(map(self._line, self)))
        kept.replace(self._path)
        self._whole, self._begin = None, b""

    def frame(self, configs: Iterable[Config] | None = None) -> Any:
        """Results as a pandas DataFrame: a column for each part of the run, each setting and each measure.

        Parameters
        ----------
        configs : iterable of Config, default=None
            Which, in this order; None: all.
        """
        import pandas as pd

        return pd.DataFrame([_flat(found) for found in (self if configs is None else map(self.__getitem__, configs))])

    def _keep(self, result: R) -> None:
        self._finished.pop(result.config, None)
        self._finished[result.config] = result

    def _line(self, result: R) -> bytes:
        entry = asdict(result)  # type: ignore[call-overload]
        rare = {name for name in self._optional if entry[name] is None}
        return (json.dumps({name: value for name, value in entry.items() if name not in rare}) + "\n").encode()


def _flat(result: Any) -> dict[str, Any]:
    entry = asdict(result)
    config, values = entry.pop("config"), entry.pop("values", {})
    settings = json.loads(config.pop("setting"))
    return {**config, **settings, **values, **entry}


# ---------------------------------------------------------------------
# Running


def run(
    configs: Iterable[Config],
    measure: Callable[[Config], R],
    results: Results[R],
    *,
    again: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    title: str = "",
    additions: tuple[Path, ...] = (),
    ignored: tuple[type[Warning], ...] = (Warning,),
) -> None:
    """Run what is not among the results yet.

    Parameters
    ----------
    configs : iterable of Config
        What is wanted, in the order in which it is run.
    measure : callable
        The result of a run, a function of the run alone.
    results : Results
        What is there already, and where new results go.
    again : bool, default=False
        Whether runs that have a result are run once more, such as those on an exchanged file.
    jobs : int, default=1
        Number of worker processes.
    progress : Progress, default=None
        Where a bar is drawn; None draws none.
    title : str, default=""
        Of the bar.
    additions : tuple of Path, default=()
        Python files that are run in each process first, see :func:`read_additions`.
    ignored : tuple of types, default=(Warning,)
        Warnings that are not shown.
    """
    wanted = [config for config in dict.fromkeys(configs) if again or config not in results]
    if not wanted:
        return
    bar = None if progress is None else progress.add_task(title, total=len(wanted))
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
    for result in parallel(delayed(_measured)(measure, config, additions, ignored) for config in wanted):
        results.add(result)
        if progress is not None and bar is not None:
            progress.advance(bar)
    if progress is not None and bar is not None:
        progress.remove_task(bar)


def _measured(
    measure: Callable[[Config], R], config: Config, additions: tuple[Path, ...], ignored: tuple[type[Warning], ...]
) -> R:
    # A worker process knows nothing of what the first process has added.
    for path in additions:
        read_additions(path)
    # One thread, so that results and times do not depend on cores and workers.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        for kind in ignored:
            warnings.simplefilter("ignore", kind)
        return measure(config)


def progress_bars(console: Console | None) -> Progress:
    """Bars with the time that is left; None draws none."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    left = TextColumn("left"), TimeRemainingColumn()
    return Progress(*columns, *left, console=console, disable=console is None)


@cache
def read_additions(path: Path) -> None:
    """Run a Python file that adds data sets or methods, once in a process."""
    spec = spec_from_file_location(f"additions_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ParameterError("--with", path.name, "a Python file", "name it .py")
    module = module_from_spec(spec)
    # Dataclasses and pickle look a module up by its name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError("--with", path.name, "a file that runs", f"{type(error).__name__}: {error}") from error


def sign_test(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """One-sided p-value of "ours is larger" over paired runs; ties count for neither."""
    larger = sum(a > b for a, b in zip(ours, theirs, strict=True))
    smaller = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return float(binom.sf(larger - 1, larger + smaller, 0.5))


# ---------------------------------------------------------------------
# Studies, each a grid and a page


@dataclass(frozen=True, slots=True)
class Study:
    """A grid, what is measured of a run, and a page from all results.

    Parameters
    ----------
    name : str
        Of the module that ``python -m`` runs.
    about : str
        What the command does, for its help.
    measure : callable
        ``measure(config)``: measures of one run by name.
    report : callable
        ``report(frame)``: the page in Markdown, from all results as a DataFrame.
    page : Path
        The page that the repository holds; ``--publish`` writes it.
    """

    name: str
    about: str
    measure: Callable[[Config], Mapping[str, Any]]
    report: Callable[[Any], str]
    page: Path

    def parser(self) -> argparse.ArgumentParser:
        """The options that all studies have."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.name}", description=self.about)
        out = Path("build") / self.name.rpartition(".")[2]
        parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
        parser.add_argument("--out", type=Path, default=out, help=f"folder of runs and page; resumable ({out})")
        parser.add_argument("--publish", action="store_true", help="write the page over the one of the repository")
        parser.add_argument("--report-only", action="store_true", help="write the page on what is there; run nothing")
        return parser

    def run(self, options: argparse.Namespace, configs: Sequence[Config]) -> Results[Measured]:
        """Run what is missing, unless ``--report-only`` says otherwise."""
        results = Results(options.out / FILE_NAME, Measured)
        if not options.report_only:
            title = self.name.rpartition(".")[2]
            with progress_bars(Console(stderr=True)) as progress:
                run(configs, partial(_values, self.measure), results, jobs=options.jobs, progress=progress, title=title)
        return results

    def write(self, options: argparse.Namespace, frame: Any) -> None:
        """Write the page, below ``--out`` unless ``--publish`` says otherwise."""
        page = self.page if options.publish else options.out / self.page.name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(self.report(frame), encoding="utf-8")
        Console(stderr=True).print(f"written: {page}")

    def main(self, configs: Sequence[Config], arguments: Sequence[str] | None = None) -> int:
        """The command of a study whose page needs every run of its grid."""
        options = self.parser().parse_args(arguments)
        results = self.run(options, configs)
        missing = sum(config not in results for config in configs)
        if missing:
            raise SystemExit(f"{missing} of {len(configs)} runs are missing; leave out --report-only")
        self.write(options, results.frame(configs))
        return 0


def _values(measure: Callable[[Config], Mapping[str, Any]], config: Config) -> Measured:
    return Measured(config, measure(config))
