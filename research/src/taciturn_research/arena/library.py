"""Classes of ``taciturn`` and of ``taciturn.published`` as competitors.

Sound classes have one setting each, and nothing is chosen on test data. Published ones have a grid, and an oracle
chooses.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

import taciturn
from taciturn.accounting import Budget, PrivacyFilter
from taciturn.methods.options import PrintedLoss
from taciturn.published import DPIGHT, ADPScreen, PrivateADMM, PrivateLasso, RNMScreen, Sparsifier, TwoStage
from taciturn_research.arena.methods import DELTA, Fitted, Method, Setting, fitted, prepared, shortened
from taciturn_research.arena.sets import DataSet, Problem
from taciturn_research.arena.tables import K

# ---------------------------------------------------------------------
# The package's own models as competitors: everything proved, one setting each, nothing chosen on test data.


SUFFIXES = {"regression": "Regressor", "classification": "Classifier"}
_ADVISED = "as advised"
# The page on the default advises "all" for prediction from this many records times the Gaussian parameter per column.
_ENOUGH_PER_COLUMN = 3.0


def advised_size(X: Any, epsilon: float) -> str:
    """The size that the page on the default advises for prediction, by public facts: also all columns of texts."""
    mu = PrivacyFilter(Budget(epsilon, DELTA)).mu
    enough = X.shape[0] * mu >= _ENOUGH_PER_COLUMN * X.shape[1]
    return "all" if enough or sp.issparse(X) else "auto"


def named(data_set: DataSet, X: Any) -> Any:
    """The features of a raw table with their names, as an encoder hands them on."""
    if not data_set.names:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(data_set.names))


def _sound(name: str, family: str, stem: str, *takes: str, **parameters: Any) -> Method:
    """A model by the stem of its class; ``takes`` names the public facts of a data set that it is told.

    Its class is looked up on the first fit, so that the arena runs without models that are not there.
    """

    def missing(data_set: DataSet) -> str | None:
        wanted = stem + SUFFIXES[data_set.task]
        return None if wanted in taciturn.__all__ else f"taciturn has no {wanted}"

    def fit(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
        told = {"n_nonzero": data_set.k, "row_bound": data_set.row_bound}
        own = {"classes": (0, 1)} if data_set.task == "classification" else {"y_bounds": (-1.0, 1.0)}
        kind = getattr(taciturn, stem + SUFFIXES[data_set.task])
        chosen = own | {fact: told[fact] for fact in takes} | parameters
        if chosen.get("n_nonzero") == _ADVISED:
            chosen["n_nonzero"] = advised_size(problem.X, epsilon)
        model = kind(epsilon=epsilon, delta=DELTA, x_bound=1.0, random_state=seed, **chosen)
        model.fit(named(data_set, problem.X), problem.y)
        return fitted(model, named(data_set, problem.X_test), problem.X.shape[1])

    tasks = tuple(task for task, suffix in SUFFIXES.items() if stem != "ADMM" or suffix == "Classifier")
    return Method(name, family, tasks, fit, refuses=missing, few=family == "sound")


DEFAULT = _sound("default", "default", "Sparse", "n_nonzero")
DEFAULT_AUTO = _sound("default, k auto", "default", "Sparse", n_nonzero="auto")
DEFAULT_ALL = _sound("default, all", "default", "Sparse", n_nonzero="all")
DEFAULT_ADVISED = _sound("default, as advised", "default", "Sparse", n_nonzero=_ADVISED)
DEFAULTS = (DEFAULT, DEFAULT_AUTO, DEFAULT_ALL, DEFAULT_ADVISED)


def _intervals(name: str, size: int | Literal["all"]) -> Method:
    """The default with intervals, on a sample of the training records that is drawn with replacement by the seed.

    The sampling error that intervals state is then that of the sample, and its population the training records.
    """

    def fit(data_set: DataSet, problem: Problem, epsilon: float, seed: int) -> Fitted:
        rows = np.random.default_rng((seed, 900)).integers(problem.y.size, size=problem.y.size)
        own = {"classes": (0, 1)} if data_set.task == "classification" else {"y_bounds": (-1.0, 1.0)}
        kind = getattr(taciturn, "Sparse" + SUFFIXES[data_set.task])
        model = kind(
            epsilon=epsilon, delta=DELTA, x_bound=1.0, n_nonzero=size, inference=True, random_state=seed, **own
        ).fit(named(data_set, problem.X[rows]), problem.y[rows])
        found = fitted(model, named(data_set, problem.X_test), problem.X.shape[1])
        shown = np.asarray(model.inference_.columns, dtype=np.intp)
        # The last one is the intercept's.
        return replace(found, shown=shown, reach=np.asarray(model.inference_.reach[0])[: shown.size])

    def unread(data_set: DataSet) -> str | None:
        return None if data_set.names else "coefficients are read of raw tables alone"

    return Method(name, "intervals", tuple(SUFFIXES), fit, refuses=unread, few=True)


INTERVALS = (_intervals("intervals", K), _intervals("intervals, all", "all"))

# A method of practice rather than of ours: dense, and in use elsewhere.
OBJECTIVE_PERTURBATION = _sound("ObjectivePerturbation", "practice", "ObjectivePerturbation", "row_bound")

SOUND = (
    _sound("FrankWolfe", "sound", "FrankWolfe"),
    _sound("Sparsified", "sound", "Sparsified", "n_nonzero"),
    _sound("Screened", "sound", "Screened"),
    _sound("HardThreshold", "sound", "HardThreshold", "n_nonzero"),
    _sound("TwoStage, sound", "sound", "TwoStage", "n_nonzero"),
    _sound("ADMM", "sound", "ADMM", "row_bound"),
)


# ---------------------------------------------------------------------
# The published methods as competitors: at their claimed epsilon, with the best of a few settings on the test data.
#
# They get for free what their papers leave open: the features are scaled for them, targets are mapped to [-1, 1], those
# without intercept get a constant column on real data (and may keep one coefficient more for it), and k is the true one
# wherever they take one. Noise is for the papers' constants: a gradient of at most 1 for the squared loss, which is
# what they claim and less than what is true.


BOTH = ("regression", "classification")

# Beyond so many columns a thousand steps, each with noise for every vertex, are left to the full setting.
MANY_COLUMNS = 20_000


def _loss(data_set: DataSet) -> PrintedLoss:
    return "logistic" if data_set.task == "classification" else "squared"


def _private_lasso(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    X, X_test, _ = prepared(data_set, problem)
    model = PrivateLasso(epsilon=epsilon, delta=DELTA, loss=_loss(data_set), random_state=seed, **setting)
    return fitted(model.fit(X, problem.y), X_test, problem.X.shape[1])


def _sparsifier(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    """The paper's shares of .95 and .05; its count is told to be k or k + 1, so that few steps decide between them."""
    X, X_test, constants = prepared(data_set, problem)
    k = data_set.k + constants
    model = Sparsifier(
        epsilon_optimise=0.95 * epsilon,
        epsilon_count=0.05 * epsilon,
        delta=DELTA,
        count_range=(k, k + 1),
        n_count_steps=10,
        loss=_loss(data_set),
        random_state=seed,
        **setting,
    )
    return fitted(model.fit(X, problem.y), X_test, problem.X.shape[1])


def _adp_screen(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    """Two halves of the budget, and one screening, after the last step: with more of them nothing is left."""
    X, X_test, _ = prepared(data_set, problem)
    model = ADPScreen(
        epsilon_optimise=epsilon / 2.0,
        delta_optimise=DELTA / 2.0,
        epsilon_screen=epsilon / 2.0,
        delta_screen=DELTA / 2.0,
        screen_at="last",
        loss=_loss(data_set),
        random_state=seed,
        **setting,
    )
    return fitted(model.fit(X, problem.y), X_test, problem.X.shape[1])


def _rnm_screen(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    """The paper's shares: .98 of epsilon and .75 of delta for the steps."""
    X, X_test, _ = prepared(data_set, problem)
    model = RNMScreen(
        epsilon_optimise=0.98 * epsilon,
        delta_optimise=0.75 * DELTA,
        epsilon_screen=0.02 * epsilon,
        delta_screen=0.25 * DELTA,
        random_state=seed,
        **setting,
    )
    return fitted(model.fit(X, problem.y), X_test, problem.X.shape[1])


def _dp_ight(data_set: DataSet, problem: Problem, epsilon: float, seed: int, step: float, n_steps: int) -> Fitted:
    """Rows are scaled down to the public bound, as the paper does; ``step`` is in units of a public step."""
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    flatness = 4.0 if data_set.task == "classification" else 1.0
    model = DPIGHT(
        epsilon=epsilon,
        delta=DELTA,
        gradient_bound=row_bound,
        n_nonzero=data_set.k + constants,
        n_steps=n_steps,
        step_size=step * flatness * math.sqrt(X.shape[1]) / row_bound**2,
        loss=_loss(data_set),
        random_state=seed,
    )
    return fitted(model.fit(shortened(X, row_bound), problem.y), X_test, problem.X.shape[1])


def _two_stage(data_set: DataSet, problem: Problem, epsilon: float, seed: int, **setting: Any) -> Fitted:
    X, X_test, constants = prepared(data_set, problem)
    model = TwoStage(
        epsilon=epsilon,
        delta=DELTA,
        n_nonzero=data_set.k + constants,
        loss=_loss(data_set),
        random_state=seed,
        **setting,
    )
    return fitted(model.fit(X, problem.y), X_test, problem.X.shape[1])


def _private_admm(
    data_set: DataSet, problem: Problem, epsilon: float, seed: int, strength: float, coupling: float
) -> Fitted:
    """Rows are scaled down to the public bound and divided by it; the coupling is raised to what the noise needs."""
    X, X_test, constants = prepared(data_set, problem)
    row_bound = math.hypot(data_set.row_bound, constants)
    n_steps = 10
    model = PrivateADMM(
        epsilon=epsilon,
        strength=strength,
        coupling=max(coupling, 1.4 * n_steps / (X.shape[0] * epsilon)),
        n_steps=n_steps,
        random_state=seed,
    )
    return fitted(model.fit(shortened(X, row_bound) / row_bound, problem.y), X_test, problem.X.shape[1])


# Radius and number of steps together, since the best number falls with the budget; the papers make a thousand.
_QUICK_BALLS = {
    "regression": ((0.3, 10), (1, 10), (1, 30), (3, 30), (3, 100)),
    "classification": ((1, 30), (10, 30), (10, 100), (30, 1000)),
}
_FULL_BALLS = {
    "regression": ((0.3, 10), (1, 10), (3, 10), (1, 30), (3, 30), (1, 100), (3, 100), (3, 1000)),
    "classification": ((1, 30), (3, 30), (10, 30), (3, 100), (10, 100), (30, 100), (10, 1000), (30, 1000)),
}
_QUICK_STEPS = {
    "regression": ((0.1, 10), (0.3, 10), (1, 10), (3, 10), (0.3, 50)),
    "classification": ((0.1, 10), (1, 10), (5, 10), (0.3, 50), (2, 50)),
}
_FULL_STEPS = {
    "regression": ((0.1, 10), (0.3, 10), (1, 10), (3, 10), (0.1, 50), (0.3, 50), (1, 50), (0.3, 200)),
    "classification": ((0.1, 10), (1, 10), (5, 10), (0.3, 50), (1, 50), (3, 50), (10, 50), (0.3, 200)),
}
_QUICK_STAGES = {
    "regression": ((0.03, 0.1), (0.03, 0.3), (0.03, 1), (0.003, 1)),
    "classification": ((0.1, 1), (0.03, 1), (0.01, 1), (0.003, 1)),
}
_FULL_STAGES = {
    "regression": ((0.1, 0.1), (0.03, 0.1), (0.1, 0.3), (0.03, 0.3), (0.01, 0.3), (0.1, 1), (0.03, 1), (0.003, 1)),
    "classification": tuple((alpha, 1) for alpha in (0.3, 0.1, 0.05, 0.03, 0.01, 0.003, 0.001, 0.0003)),
}
_QUICK_PENALTIES = ((1e-4, 0.01), (1e-2, 0.01), (1e-4, 0.1), (1e-2, 0.1))
_FULL_PENALTIES = tuple((strength, coupling) for coupling in (0.003, 0.01, 0.1, 1.0) for strength in (1e-4, 1e-2))


def _settings(keys: tuple[str, str], pairs: tuple[tuple[float, float], ...]) -> tuple[Setting, ...]:
    return tuple(dict(zip(keys, pair, strict=True)) for pair in pairs)


def _balls(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    pairs = (_QUICK_BALLS if quick else _FULL_BALLS)[data_set.task]
    if quick and data_set.n_columns > MANY_COLUMNS:
        pairs = tuple(pair for pair in pairs if pair[1] < 1000)
    return _settings(("radius", "n_steps"), pairs)


def _steps(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return _settings(("step", "n_steps"), (_QUICK_STEPS if quick else _FULL_STEPS)[data_set.task])


def _stages(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return _settings(("alpha", "radius"), (_QUICK_STAGES if quick else _FULL_STAGES)[data_set.task])


def _penalties(data_set: DataSet, quick: bool) -> tuple[Setting, ...]:
    return _settings(("strength", "coupling"), _QUICK_PENALTIES if quick else _FULL_PENALTIES)


_published = partial(Method, family="published")

PUBLISHED = (
    _published("PrivateLasso", tasks=BOTH, fit=_private_lasso, grid=_balls),
    _published("Sparsifier", tasks=BOTH, fit=_sparsifier, grid=_balls),
    _published("ADPScreen", tasks=BOTH, fit=_adp_screen, grid=_balls),
    _published("RNMScreen", tasks=("regression",), fit=_rnm_screen, grid=_balls),
    _published("DPIGHT", tasks=BOTH, fit=_dp_ight, grid=_steps),
    _published("TwoStage", tasks=BOTH, fit=_two_stage, grid=_stages),
    _published("PrivateADMM", tasks=("classification",), fit=_private_admm, grid=_penalties),
)
