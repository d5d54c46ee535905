"""Does a forecast come true? Standard errors, intervals and scores on public sets, before and after the fit.

``python -m taciturn_research.benchmarks.study_forecast`` forecasts fits of six public sets that had no part in making
forecasts: from bounds with stated means, spreads and shares, from these with stated correlations, and from a half of
the set as a public table for fits of the other half. Two sets come with statsmodels, the others are found as
``taciturn.datasets.load_dataset`` says. ``--publish`` writes ``study_forecast.md`` beside this file.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from taciturn import BoundedScaler, SparseClassifier, SparseRegressor, forecast
from taciturn.datasets import load_dataset
from taciturn_research.harness import Config, Study, setting_of
from taciturn_research.pages import table

FloatArray = NDArray[np.float64]

SETS = ("fair", "randhie", "abalone", "covtype", "a9a", "phishing")
METHODS = ("stated", "correlated", "like")
EPSILONS = (0.1, 0.3, 1.0, 4.0)
SEEDS, MOST_ROWS, N_COLUMNS, SIMULATED = 5, 20_000, 10, 10
FACTOR, LIKELY = 1.5, 0.9
GRID = [
    Config(name, method, epsilon, setting_of(), seed)
    for name in SETS
    for method in METHODS
    for epsilon in EPSILONS
    for seed in range(SEEDS)
]


@lru_cache(maxsize=1)
def draw(name: str) -> tuple[FloatArray, NDArray[Any], str]:
    """Columns and target of a set, in a random order that is always the same; and what the target is."""
    if name in ("fair", "randhie"):
        data = import_module(f"statsmodels.datasets.{name}").load_pandas().data
        y = data.pop("affairs" if name == "fair" else "mdvis").to_numpy(dtype=float)
        X = data.to_numpy(dtype=float)
        y, kind = (np.where(y > 0.0, "yes", "no"), "labels") if name == "fair" else (y, "count")
    else:
        found = load_dataset(name)
        X, y, kind = found.X, found.y, "number" if name == "abalone" else "labels"
        if name == "covtype":
            X, y = X[:, :N_COLUMNS], np.where(y == np.unique(y)[1], "yes", "no")
        if name in ("a9a", "phishing"):
            X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
            X = X[:, ordinary_indicators(X)]
            y = np.where(y == np.unique(y)[1], "yes", "no")
    order = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    return np.asarray(X, dtype=np.float64)[order], y[order], kind


def ordinary_indicators(X: FloatArray) -> list[int]:
    """Some columns of zeros and one other number, neither of them rare, of which none is another one reversed."""
    shares = (X > 0.0).mean(axis=0)
    (usual,) = np.nonzero((shares > 0.1) & (shares < 0.9))
    chosen: list[int] = []
    for j in usual[np.argsort(np.abs(shares[usual] - 0.5), kind="stable")].tolist():
        if all(abs(np.corrcoef(X[:, j], X[:, other])[0, 1]) < 0.99 for other in chosen):
            chosen.append(j)
    return sorted(chosen[:N_COLUMNS])


def statements(X: FloatArray) -> dict[str, dict[str, float]]:
    """What somebody would state of each column who has read a description of the set."""
    found = {}
    for j, column in enumerate(X.T):
        low, high = float(column.min()), float(column.max())
        if np.unique(column).size == 2:
            found[f"x{j}"] = {"lower": low, "upper": high, "share": float((column == high).mean())}
        else:
            found[f"x{j}"] = {"lower": low, "upper": high, "mean": float(column.mean()), "spread": float(column.std())}
    return found


def measure(config: Config) -> Mapping[str, Any]:
    """Forecast and obtained standard errors by column, and scores."""
    warnings.simplefilter("ignore")
    X, y, kind = draw(config.data_set)
    stated = statements(X)
    scaler = BoundedScaler(
        lower=[each["lower"] for each in stated.values()], upper=[each["upper"] for each in stated.values()]
    )
    X = scaler.fit_transform(X)
    # The features that the model reads, in [-1, 1].
    facts: dict[str, Any] = {"x_bound": 1.0, "epsilon": config.epsilon, "n_nonzero": "all", "inference": True}
    model: Any
    if kind == "labels":
        model = SparseClassifier(classes=("no", "yes"), **facts)
        target: dict[str, float] = {"share": float((y == "yes").mean())}
    else:
        loss = "poisson" if kind == "count" else "squared"
        model = SparseRegressor(**facts | {"y_bounds": (float(y.min()), float(y.max())), "loss": loss})
        target = {"mean": float(y.mean()), "spread": float(y.std())}
    random = np.random.default_rng(config.seed)
    order = random.permutation(len(X))
    simulate = 0
    if config.method == "like":
        public, order = order[: len(X) // 2], order[len(X) // 2 :]
        simulate = SIMULATED
        n_test = order.size // 4
        test, order = order[:n_test], order[n_test:]
        found = forecast(model, n=order.size, like=(X[public], y[public]), simulate=simulate)
    else:
        pairs: dict[tuple[str, str], float] = {}
        if config.method == "correlated":
            ranks = np.asarray(spearmanr(X).statistic)
            pairs = {(f"x{i}", f"x{j}"): float(ranks[i, j]) for i, j in combinations(range(X.shape[1]), 2)}
        found = forecast(model, n=order.size, bounds=statements(X), target=target, correlation=pairs)
    fitted: dict[str, Any] = {"errors": [], "score": math.nan}
    try:
        model.set_params(random_state=config.seed).fit(X[order], y[order])
        fitted["errors"] = np.atleast_1d(model.coef_std_error_).tolist()
        if simulate:
            from taciturn.methods.forecast.run import PredictionTrial

            fitted["score"] = PredictionTrial.of(model, X[test], y[test], None).score
    except ValueError:
        fitted["errors"] = [math.nan] * X.shape[1]
    score = found.prediction("score")
    return {
        "forecast": np.ravel(found.to_frame()["std_error"]).tolist(),
        "low": [band.low for band in found.bands],
        "high": [band.high for band in found.bands],
        "probability": found.column_probability.tolist(),
        "obtained": fitted["errors"],
        "score": fitted["score"],
        "score_low": score.low,
        "score_high": score.high,
    }


def _share(values: list[bool]) -> str:
    return f"{sum(values):,} of {len(values):,} ({np.mean(values):.0%})" if values else "none"


def report(frame: Any) -> str:
    """How often forecasts came true, by way of forecasting and by set."""
    rows, border = [], []
    for (method, name), runs in frame.groupby(["method", "data_set"], sort=False):
        near, within, told, scores = [], [], [], []
        for _, cell in runs.groupby("epsilon"):
            obtained = np.array(cell["obtained"].tolist(), dtype=float)
            expected = np.array(cell["forecast"].tolist(), dtype=float)
            low, high = (np.array(cell[key].tolist(), dtype=float) for key in ("low", "high"))
            chances = np.array(cell["probability"].tolist(), dtype=float)
            exists = np.isfinite(obtained)
            with np.errstate(invalid="ignore"):
                for j in np.flatnonzero((exists.mean(axis=0) >= 0.5) & np.isfinite(expected).all(axis=0)):
                    ratio = np.median(expected[:, j]) / np.nanmedian(obtained[:, j])
                    near.append(bool(1.0 / FACTOR <= ratio <= FACTOR))
                known = exists & np.isfinite(low) & np.isfinite(high)
                within += ((low <= obtained) & (obtained <= high))[known].tolist()
            told += exists[chances > LIKELY].tolist() + (~exists[chances < 1.0 - LIKELY]).tolist()
            if method == "like":
                ends = cell["score_low"].to_numpy(), cell["score"].to_numpy(), cell["score_high"].to_numpy()
                scores += ((ends[0] <= ends[1]) & (ends[1] <= ends[2])).tolist()
        rows.append([method, name, _share(near), _share(within), _share(scores), _share(told)])
        border.append((method, near, within, scores, told))
    for method in METHODS:
        parts = [each for each in border if each[0] == method]
        sums = [[one for each in parts for one in each[place]] for place in range(1, 5)]
        rows.append([method, "all together", *map(_share, sums)])
    heads = [
        "forecast from", "set", f"error within a factor {FACTOR:g}", "error within its band", "score within its band",
        "intervals exist, or not, as forecast",
    ]  # fmt: skip
    listed = ", ".join(f"{epsilon:g}" for epsilon in EPSILONS)
    return f"""# Does a forecast come true?

`python -m taciturn_research.benchmarks.study_forecast`: epsilon {listed}, {SEEDS} fits each, at most {MOST_ROWS:,}
records. "stated": means, spreads and shares of each column and of the target. "correlated": rank correlations too.
"like": one half of the set is the public table, three quarters of the other half are fitted. Cells of the first column
are sets, budgets and columns with intervals in most fits; the median standard error counts. Bands and scores are of
single fits. The last column is of columns for which the forecast is above {LIKELY:.0%} or below {1.0 - LIKELY:.0%}.

{table(heads, rows)}
"""


PAGE = Path(__file__).with_suffix(".md")
STUDY = Study("taciturn_research.benchmarks.study_forecast", __doc__ or "", measure, report, PAGE)

if __name__ == "__main__":
    # By its name, since worker processes import it.
    from taciturn_research.benchmarks import study_forecast as named

    sys.exit(named.STUDY.main(named.GRID))
