"""Finished trials on disk, one JSON line each, so that a killed run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from taciturn._version import __version__
from taciturn.reproduce.experiment import Row

__all__ = ["Record", "Records", "versions"]

FILE_NAME = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """One finished trial.

    Parameters
    ----------
    experiment, case : str
        Names of the experiment and of the data set.
    trial, seed : int
        Number of the trial, from 0, and the seed that it got.
    data : str
        Digest of the data file, empty for synthetic data.
    rows : list of dict
        What it found.
    """

    experiment: str
    case: str
    trial: int
    seed: int
    data: str
    rows: list[Row]


@cache
def _source_digest() -> str:
    """Of the package's own files: trials of another state of the code are not mixed with those of this one."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\n" + path.read_bytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Versions of everything on which the numbers depend."""
    own = {"taciturn": __version__, "source": _source_digest(), "python": platform.python_version()}
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
        self._finished: list[Record] = []
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                # The line that a killed run was writing.
                continue
            if entry.pop("versions") == versions():
                self._finished.append(Record(**entry))
        self._begin = "\n" if text and not text.endswith("\n") else ""

    def add(self, record: Record) -> None:
        """Write down a finished trial at once, with the versions of what computed it."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(self._begin + json.dumps(asdict(record) | {"versions": versions()}) + "\n")
        self._begin = ""
        self._finished.append(record)

    def of(self, experiment: str, case: str) -> list[Record]:
        """Those of one experiment on one data set, by trial; if the data file was exchanged, on the later one."""
        found = [record for record in self._finished if (record.experiment, record.case) == (experiment, case)]
        return sorted(
            (record for record in found if record.data == found[-1].data),
            key=lambda record: record.trial,
        )

    def missing(self, experiment: str, case: str, data: str, trials: int) -> list[int]:
        """Which of the first trials are still to be run on that data file."""
        done = {record.trial for record in self.of(experiment, case) if record.data == data}
        return [trial for trial in range(trials) if trial not in done]
