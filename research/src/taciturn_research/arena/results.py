"""Finished fits on disk, one JSON line each, so that a killed run goes on where it stopped.

Unlike the records of a reproduction these outlive changes of the package: the published methods take an hour and do
not change with the default, whose own lines are dropped by name when it does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Config", "Result", "Results"]

FILE_NAME = "results.jsonl"


@dataclass(frozen=True, slots=True)
class Config:
    """What is to be fitted.

    Parameters
    ----------
    data_set, method : str
        Names.
    epsilon : float or None
        None without privacy.
    setting : str
        The setting as JSON.
    seed : int
        Of data, split and noise.
    rows : int or None
        The limit on training rows.
    """

    data_set: str
    method: str
    epsilon: float | None
    setting: str
    seed: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """What came out.

    Parameters
    ----------
    config : Config
        Of what.
    error : float or None
        On the test part; None if the method refused.
    f1 : float or None
        Of the support.
    nonzeros : int
        Number of features used.
    seconds : float
        Of the fit.
    refusal : str or None
        What the method said against its public parameters.
    support : list of int or None
        The features used, where later fits are compared with them.
    log_loss, calibration, slope : float or None
        Further measures of the test part, see ``measures``; None where they have no meaning.
    """

    config: Config
    error: float | None
    f1: float | None
    nonzeros: int
    seconds: float
    refusal: str | None = None
    support: list[int] | None = None
    log_loss: float | None = None
    calibration: float | None = None
    slope: float | None = None


class Results:
    """The finished fits of a folder.

    Parameters
    ----------
    folder : Path
        It is created if need be.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / FILE_NAME
        self._finished: dict[Config, Result] = {}
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                # The line that a killed run was writing.
                continue
            result = Result(Config(**entry.pop("config")), **entry)
            self._finished[result.config] = result
        self._begin = "\n" if text and not text.endswith("\n") else ""

    def __contains__(self, config: Config) -> bool:
        return config in self._finished

    def __getitem__(self, config: Config) -> Result:
        return self._finished[config]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._finished.values())

    def add(self, result: Result) -> None:
        """Write down a finished fit at once."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(self._begin + _line(result))
        self._begin = ""
        self._finished[result.config] = result

    def forget(self, methods: Collection[str]) -> None:
        """Drop all fits of these methods, on disk too."""
        self._finished = {config: found for config, found in self._finished.items() if config.method not in methods}
        kept = self._path.with_suffix(".kept")
        kept.write_text("".join(map(_line, self._finished.values())), encoding="utf-8")
        kept.replace(self._path)
        self._begin = ""


def _line(result: Result) -> str:
    entry = asdict(result)
    rare = {key for key in ("refusal", "support", "log_loss", "calibration", "slope") if entry[key] is None}
    return json.dumps({key: value for key, value in entry.items() if key not in rare}) + "\n"
