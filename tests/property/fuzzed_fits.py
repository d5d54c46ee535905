"""Fits of every public class to hostile tables under random settings; prints what must not happen. Run with -W error.

Each trial draws a class, public settings and two tables of one shape and layout: an ordinary one, and one whose cells
are at the ends of what doubles can hold. Under the same seed both must end alike: with the same refusal, word for word,
or with a result, and with the same warnings. All else would be a release that nobody paid for.

Usage: python -W error fuzzed_fits.py SEED FIRST LAST [CLASS]
"""

import inspect
import json
import math
import sys
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier, is_regressor

import taciturn
from taciturn.core.errors import (
    DefaultBoundsWarning,
    SuspiciousReleaseWarning,
    TaciturnError,
    WeakBudgetWarning,
    WeakGuaranteeWarning,
)

LARGEST, SMALLEST, TINY = sys.float_info.max, 5e-324, sys.float_info.min
CELLS = (LARGEST, -LARGEST, SMALLEST, -SMALLEST, TINY, 1e154, -1e154, 1e-160, 1.0, -0.0, 0.0, 2.0**53, 1e300, 1e-300)

# Settings that a user may choose without looking at the data, and what stands for "all else at its default".
SETTINGS = {
    "epsilon": (0.01, 1.0, 30.0, math.inf),
    "delta": (0.0, 1e-12, 1e-6, 0.1),
    "relation": ("zero-out", "add-remove", "replace-one"),
    "n_public": (None, 1, 50, 10**6),
    "x_bound": (1e-301, 1e-300, 1e-150, 1e-5, 1.0, 1e5, 1e150, 1e300, 5e300),
    "y_bounds": ((-1.0, 1.0), (0.0, 1e-301), (0.0, 1e-300), (-5e300, 5e300), (1e300, 1e301), (-1e-5, 1e150)),
    "radius": ("auto", 1e-300, 1e-8, 1.0, 1e8, 1e300),
    "loss": ("huber", "squared"),
    "residual_clip": ("auto", 1e-300, 1e-6, 1.0, 1e300),
    "coef_bound": (None, 1e-300, 1e-8, 1.0, 1e8, 1e300),
    "clip_share": (1e-9, 0.06, 0.9),
    "row_bound": ("auto", 1e-300, 1e-3, 1.0, 1e5, 1e300),
    "threshold": ("auto", 0.0, 0.5),
    "step_size": ("auto", 1e-300, 1.0, 1e300),
    "average": (False, True),
    "cuts": ((0.5,), (1e-300, 1e300), (0.1, 0.2, 0.3, 0.4)),
    "columns": (None, (0,), ()),
    "inference": (False, True),
    "n_nonzero": (1, 2, 10, "auto"),
    "n_features_to_select": (1, 2, 10),
    "invalid": ("raise", "null"),
    "n_blocks": (1, 2, 7, "auto"),
    "n_steps": (1, 3, 20),
    "screen_at": (1, 2, "every", "last"),
    "rule": ("select", "tested", "none-option", "adp"),
    "screen_share": (1e-6, 0.1, 0.999),
    "permanent": (False, True),
    "count_range": (None, (1, 2)),
    "count_share": (1e-6, 0.05, 0.99),
    "method": ("auto", "one-shot", "two-phase"),
    "mechanism": ("auto", "canonical-lipschitz", "peeling", "laplace", "gumbel", "gaussian"),
    "gamma": (0.5, 1e-3),
    "score_func": ("correlation", "sign", "quadrant"),
    "regularisation": ("auto", 1e-300, 1e-6, 1.0, 1e6, 1e300),
    "strength": ("auto", 1e-300, 1.0, 1e300),
    "coupling": ("auto", 1e-300, 1.0, 1e300),
    "penalty": ("l1", "l1/2", "l2"),
    "fit_intercept": (True, False),
    "smallest": (1e-300, 1e-3, 1.0),
    "largest": (10.0, 1e6, 1e300),
    "tail": (0.05, 0.2, 0.45),
    "lower": (-1.0, 0.0, -5e300),
    "upper": (1.0, 1e-301, 5e300),
}
SHORT = {"n_steps": 3, "n_blocks": 4, "cuts": (0.2, 0.5, 1.0)}
OURS = (WeakBudgetWarning, WeakGuaranteeWarning, DefaultBoundsWarning)
OUR_WORDS = r"n_features_to_select="


def classes():
    """Every public class that is fitted; one that fits other models ends as they do."""
    found = (getattr(taciturn, name) for name in taciturn.__all__)
    kinds = [kind for kind in found if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
    return [kind for kind in kinds if "estimator" not in inspect.signature(kind).parameters]


def settings_of(kind, rng):
    """Random settings of a class, most of them at their defaults or short."""
    chosen = {}
    for name in inspect.signature(kind).parameters:
        if name in SETTINGS and rng.random() < (0.9 if name in ("epsilon", "relation") else 0.35):
            options = SETTINGS[name]
            chosen[name] = options[rng.integers(len(options))]
        elif name in SHORT:
            chosen[name] = SHORT[name]
    return chosen


def ordinary_table(n, d, rng):
    return np.round(rng.uniform(-1.0, 1.0, (n, d)), 3)


def hostile_table(n, d, rng):
    X = ordinary_table(n, d, rng)
    for j in range(d):
        match rng.integers(7):
            case 0:
                X[:, j] = rng.choice(CELLS, n)
            case 1:
                X[:, j] = rng.choice(CELLS)
            case 2:
                X[:, j] = X[:, rng.integers(d)]
            case 3:
                X[:, j] = np.where(np.arange(n) % 2, LARGEST, -LARGEST)
            case 4:
                X[:, j] *= 10.0 ** float(rng.integers(-300, 300))
            case 5:
                X[rng.integers(n), j] = rng.choice(CELLS)
            case _:
                pass
    return X


def numbers(n, rng, hostile):
    y = np.round(rng.uniform(-1.0, 1.0, n), 3)
    if hostile:
        match rng.integers(4):
            case 0:
                y = rng.choice(CELLS, n)
            case 1:
                y[rng.integers(n)] = rng.choice(CELLS)
            case 2:
                y[:] = rng.choice(CELLS)
            case _:
                pass
    return y


def labels(n, stated, rng, hostile):
    y = rng.integers(stated, size=n)
    if hostile:
        match rng.integers(4):
            case 0:
                y[:] = 0
            case 1:
                # None of the labels: null records, all of them.
                y[:] = stated + 3
            case 2:
                y[rng.integers(n)] = stated + 3
            case _:
                pass
    return y


def follow_up(n, rng, hostile):
    """Events and times."""
    return rng.integers(2, size=n), np.abs(numbers(n, rng, hostile))


LAYOUTS = {
    "array": lambda X: X,
    "columns first": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_array,
}


def outcome(model, X, y, seed):
    """How a fit and the use of its result end: one line, the same for all tables of one shape."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        for category in OURS:
            warnings.filterwarnings("always", category=category)
        warnings.filterwarnings("always", message=OUR_WORDS)
        # What follows from releases differs between tables, as releases do.
        warnings.filterwarnings("ignore", category=SuspiciousReleaseWarning)
        try:
            model.fit(X, y)
            _use(model, X, y, seed)
            line = "a result"
        except TaciturnError as error:
            line = f"{type(error).__name__}: {error}"
            if "computation failed" in line:
                line = f"DEFECT {line}"
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            line = f"DEFECT {type(error).__name__}: {error} at {where.filename.rpartition('/')[2]}:{where.lineno}"
    return " | ".join([line, *(str(warning.message) for warning in caught)])


def _use(model, X, y, seed):
    if _moderate(model):
        for name in {"coef_", "intercept_", "lower_", "upper_"} & vars(model).keys():
            assert np.isfinite(np.asarray(getattr(model, name), dtype=float)).all(), f"{name} is not finite"
    if hasattr(model, "transform"):
        model.transform(X)
    if hasattr(model, "predict"):
        if is_classifier(model) or is_regressor(model):
            taciturn.private_score(model, X, y, random_state=seed)
        else:
            # Cells of 1e308 overflow in any linear prediction.
            zeros = np.zeros(X.shape)
            model.predict_survival_function(pd.DataFrame(zeros, columns=X.columns) if hasattr(X, "columns") else zeros)


def _moderate(model):
    """Whether no setting is so extreme that results may overflow in the units of the data."""
    values = [value for given in model.get_params().values() for value in np.ravel(np.array(given, dtype=object))]
    sizes = [abs(float(value)) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    return all(size == 0.0 or 1e-100 < size < 1e100 for size in sizes)


def trial(seed, number, only=None):
    """One trial: its class, its description, how the ordinary and how the hostile table ended."""
    rng = np.random.default_rng([seed, number])
    kinds = [kind for kind in classes() if only is None or kind.__name__ == only]
    kind = kinds[rng.integers(len(kinds))]
    given = settings_of(kind, rng)
    n, d = int(rng.choice([1, 2, 3, 6, 25, 120])), int(rng.choice([1, 2, 3, 8, 30]))
    layout = str(rng.choice(list(LAYOUTS)))
    parameters = inspect.signature(kind).parameters
    stated = int(rng.integers(2, 4))
    by_label = is_classifier(kind()) or ("classes" in parameters and rng.random() < 0.5)
    if by_label:
        given["classes"] = tuple(range(stated))
    if "random_state" in parameters:
        given["random_state"] = number
    ends = []
    for hostile in (False, True):
        X = hostile_table(n, d, rng) if hostile else ordinary_table(n, d, rng)
        if kind is taciturn.SparseSurvival:
            y = follow_up(n, rng, hostile)
        else:
            y = labels(n, stated, rng, hostile) if by_label else numbers(n, rng, hostile)
        ends.append(outcome(kind(**given), LAYOUTS[layout](X), y, number))
    described = f"{number}: {kind.__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())}), {n} x {d}, {layout}"
    return kind.__name__, described, *ends


def main(seed, first, last, only=None):
    found, fitted, results = [], set(), 0
    for number in range(int(first), int(last)):
        name, described, ordinary, hostile = trial(int(seed), number, only)
        if ordinary.startswith("a result"):
            results += 1
            fitted.add(name)
        if ordinary != hostile or "DEFECT" in ordinary:
            found.append([described, ordinary, hostile])
    report = {"found": found, "fitted": sorted(fitted), "results": results, "trials": int(last) - int(first)}
    json.dump(report, sys.stdout, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
