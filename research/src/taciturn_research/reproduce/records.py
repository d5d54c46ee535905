"""Finished trials on disk, one JSON line each, so that a killed run goes on where it stopped."""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import taciturn
from taciturn._version import __version__
from taciturn_research.reproduce.experiment import Experiment
from taciturn_research.reproduce.numbers import Row

__all__ = ["Record", "Records", "source_digest", "versions"]

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
