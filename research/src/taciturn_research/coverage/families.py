"""Coverage for counts, amounts, times to an event, weights, exposures and grouped rows: ``python -m`` this module.

Every cell has a model that holds, so that the population's coefficients are those that records are drawn from, and
five columns. A run draws records, fits with ``inference=True`` and asks which intervals of nominal 95 % cover them.
Runs follow from their seeds; those that the file of results holds already are not made again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from taciturn import SparseClassifier, SparseRegressor, SparseSurvival
from taciturn.core.errors import TaciturnError
from taciturn_research.pages import table

Numbers = NDArray[np.float64]

N_RECORDS, EPSILON, RUNS = 20_000, 3.0, 200
COEFFICIENTS = np.array([0.6, -0.4, 0.0, 0.3, 0.5])
CUTS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
LEAST, LOWEST, HIGHEST = 0.91, 0.93, 0.97
"""No cell may have less coverage, and the average over cells lies between the others."""

_SIZE = 1.0
_MOST_WEIGHT = 20.0
_MOST_EXPOSURE = 2.0
_MOST_ROWS = 9


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Records of one run, as ``fit`` takes them."""

    X: Numbers
    y: Any
    given: dict[str, Any]


def _rows(rng: np.random.Generator, n: int, correlation: float) -> Numbers:
    columns = rng.standard_normal((n, COEFFICIENTS.size))
    for j in range(1, COEFFICIENTS.size):
        columns[:, j] = correlation * columns[:, j - 1] + math.sqrt(1.0 - correlation**2) * columns[:, j]
    return np.clip(columns / 3.0, -1.0, 1.0)


def _counts(rng: np.random.Generator, means: Numbers, *, overdispersed: bool) -> Numbers:
    if overdispersed:
        means = means * rng.gamma(_SIZE, 1.0 / _SIZE, means.size)
    return rng.poisson(means).astype(float)


def _times(rng: np.random.Generator, margins: Numbers, rate: float) -> tuple[Numbers, Numbers]:
    """Events at hazards that change at the cuts, and leaving at a uniform time: one pair (event, time)."""
    hazards = rate * np.array([1.0, 1.3, 0.8, 1.1, 0.9, 1.2])
    ends = np.concatenate(([0.0], CUTS))
    cumulative = np.concatenate(([0.0], np.cumsum(hazards * np.diff(ends))))
    needed = rng.exponential(size=margins.size) * np.exp(-margins)
    death = np.interp(needed, cumulative, ends)
    death[needed > cumulative[-1]] = math.inf
    leaves = rng.uniform(1.0, 8.0, margins.size)
    return (death <= leaves).astype(float), np.minimum(death, leaves)


@dataclass(frozen=True, slots=True)
class FamilyCell:
    """A family and a design.

    Parameters
    ----------
    family : {"numbers", "labels", "counts", "amounts", "hazards"}
        What is fitted.
    design : str
        What is particular, in words.
    correlation : float, default=0.0
        Of neighbouring columns.
    overdispersed : bool, default=False
        Negative binomial counts of size 1.
    censored : float, default=0.5
        About the share of records without an event.
    weighted : bool, default=False
        Weights from 1 to 20, a function of the row.
    person_weight : {"mean", "sum"}, default=None
        Persons with 1 to 9 rows that hang together, and how they count.
    exposed : bool, default=False
        Exposures from 0 to 2, a function of the row and of chance.
    """

    family: str
    design: str
    correlation: float = 0.0
    overdispersed: bool = False
    censored: float = 0.5
    weighted: bool = False
    person_weight: str | None = None
    exposed: bool = False

    @property
    def name(self) -> str:
        """Family and design."""
        return f"{self.family}, {self.design}"

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Records of one run."""
        given: dict[str, Any] = {}
        n, shared = N_RECORDS, np.zeros(N_RECORDS)
        if self.person_weight is not None:
            n_persons = N_RECORDS // 5
            given["persons"] = np.repeat(np.arange(n_persons), rng.integers(1, _MOST_ROWS + 1, n_persons))
            n = given["persons"].size
            shared = rng.standard_normal(n_persons)[given["persons"]]
        X = _rows(rng, n, self.correlation)
        margins = X @ COEFFICIENTS
        if self.weighted:
            given["sample_weight"] = 1.0 + (_MOST_WEIGHT - 1.0) * (X[:, 0] > 0.4)
        if self.exposed:
            # Those with a large first column are followed for longer.
            given["exposure"] = _MOST_EXPOSURE * rng.random(n) ** np.where(X[:, 0] > 0.0, 0.5, 2.0)
            margins = margins + np.log(given["exposure"])
        return Drawn(X, self._targets(rng, margins, shared), given)

    def _targets(self, rng: np.random.Generator, margins: Numbers, shared: Numbers) -> Any:
        if self.family == "numbers":
            return margins + 0.3 * shared[: margins.size] + 0.5 * rng.standard_normal(margins.size)
        if self.family == "labels":
            return (rng.random(margins.size) < expit(margins - 0.3)).astype(int)
        if self.family == "hazards":
            return _times(rng, margins, {0.5: 0.18, 0.8: 0.055}[self.censored])
        # A share of a person's own with a mean of one leaves the mean of its rows as it is.
        means = 2.0 * np.exp(margins + 0.4 * shared[: margins.size] - 0.08 * bool(self.person_weight))
        if self.family == "counts":
            return _counts(rng, means, overdispersed=self.overdispersed)
        return 100.0 * means * rng.gamma(2.0, 0.5, margins.size)

    def model(self, seed: int) -> Any:
        """The model of one run."""
        common: dict[str, Any] = {"x_bound": 1.0, "epsilon": EPSILON, "inference": True, "random_state": seed}
        common |= {"weight_bound": _MOST_WEIGHT} if self.weighted else {}
        if self.family == "hazards":
            return SparseSurvival(cuts=CUTS, **common)
        common |= {"columns": range(COEFFICIENTS.size)}
        common |= {} if self.person_weight is None else {"person_weight": self.person_weight}
        common |= {"exposure_bound": _MOST_EXPOSURE} if self.exposed else {}
        if self.family == "labels":
            return SparseClassifier(classes=(0, 1), **common)
        families: dict[str, dict[str, Any]] = {
            "numbers": {"y_bounds": (-5.0, 5.0)},
            "counts": {"loss": "poisson", "y_bounds": (0, 60 if self.overdispersed else 30)},
            "amounts": {"loss": "gamma", "y_bounds": (2.0, 4000.0)},
        }
        return SparseRegressor(**families[self.family], **common)


NAMED: tuple[FamilyCell, ...] = (
    *(FamilyCell(family, "independent") for family in ("counts", "amounts", "hazards")),
    *(FamilyCell(family, "AR .95", correlation=0.95) for family in ("counts", "amounts", "hazards")),
    FamilyCell("counts", "overdispersed", overdispersed=True),
    FamilyCell("hazards", "80 % censored", censored=0.8),
    *(FamilyCell(family, "weights 1 to 20", weighted=True) for family in ("numbers", "labels", "counts", "amounts")),
    *(
        FamilyCell(family, f"persons with 1 to 9 rows, {how}", person_weight=how)
        for family in ("numbers", "counts")
        for how in ("mean", "sum")
    ),
    FamilyCell("counts", "exposures 0 to 2", exposed=True),
    FamilyCell("hazards", "weights 1 to 20", weighted=True),
)
"""The cells that decide."""


def run_once(cell: FamilyCell, seed: int) -> dict[str, Any]:
    """Which intervals of one run cover; None for a coefficient without one."""
    drawn = cell.draw(np.random.default_rng((seed, NAMED.index(cell))))
    model = cell.model(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(drawn.X, drawn.y, **drawn.given)
        except TaciturnError:
            return {"cell": cell.name, "seed": seed, "covered": [None] * COEFFICIENTS.size}
    ends = model.coef_interval_
    hits = [
        None if math.isnan(low) else bool(low <= truth <= high)
        for (low, high), truth in zip(ends.tolist(), COEFFICIENTS.tolist(), strict=True)
    ]
    return {"cell": cell.name, "seed": seed, "covered": hits}


def rows_of(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[FamilyCell, int, int, float, float, float]]:
    """Cell, runs, intervals, the share of coefficients with one, coverage and its standard error over runs."""
    for cell in NAMED:
        own = [run["covered"] for run in runs if run["cell"] == cell.name]
        hits = [hit for covered in own for hit in covered if hit is not None]
        if not hits:
            continue
        coverage = float(np.mean(hits))
        means = [
            np.mean([hit for hit in covered if hit is not None])
            for covered in own
            if any(h is not None for h in covered)
        ]
        error = max(float(np.std(means) / math.sqrt(len(means))), math.sqrt(0.05 * 0.95 / len(hits)))
        yield cell, len(own), len(hits), len(hits) / (len(own) * COEFFICIENTS.size), coverage, error


def report(runs: Sequence[dict[str, Any]]) -> str:
    """The page: a row per cell, and whether what is asked holds."""
    rows, coverages = [], []
    for cell, n_runs, _, share, coverage, error in rows_of(runs):
        coverages.append((coverage, error))
        rows.append([cell.family, cell.design, f"{n_runs}", f"{share:.0%}", f"{coverage:.3f}", f"{error:.3f}"])
    average = float(np.mean([coverage for coverage, _ in coverages])) if coverages else math.nan
    lowest = min((coverage for coverage, _ in coverages), default=math.nan)
    holds = LOWEST <= average <= HIGHEST and lowest >= LEAST
    return f"""# Coverage by family

`python -m taciturn_research.coverage.families` fits {N_RECORDS:,} records with five columns at epsilon {EPSILON:g} and
compares intervals of nominal 95 % with the coefficients that records are drawn from. The standard error is over runs.

{table(("family", "design", "runs", "with interval", "coverage", "std error"), rows)}

Average {average:.3f}, lowest {lowest:.3f}: {"as" if holds else "**not** as"} asked, which is {LOWEST} to {HIGHEST} on
average and no cell below {LEAST}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the runs that are missing, one seed of every cell after the other, and write the page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each cell")
    parser.add_argument("--out", type=Path, required=True, help="file of results, a line of JSON for each run")
    parser.add_argument("--page", type=Path, default=None, help="Markdown file for the page")
    options = parser.parse_args(arguments)
    runs = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {(run["cell"], run["seed"]) for run in runs}
    with options.out.open("a", encoding="utf-8") as file:
        for seed in range(options.runs):
            for cell in NAMED:
                if (cell.name, seed) not in known:
                    runs.append(run_once(cell, seed))
                    file.write(json.dumps(runs[-1]) + "\n")
                    file.flush()
    page = report(runs)
    if options.page is not None:
        options.page.write_text(page, encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
