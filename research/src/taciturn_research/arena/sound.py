"""The package's own models as competitors: everything proved, one setting each, nothing chosen on test data."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

import taciturn
from taciturn.accounting import Budget, PrivacyFilter
from taciturn_research.arena.methods import DELTA, Fitted, Method, fitted
from taciturn_research.arena.sets import DataSet, Problem

__all__ = [
    "DEFAULT",
    "DEFAULTS",
    "DEFAULT_ADVISED",
    "DEFAULT_ALL",
    "DEFAULT_AUTO",
    "OBJECTIVE_PERTURBATION",
    "SOUND",
    "advised_size",
]

SUFFIXES = {"regression": "Regressor", "classification": "Classifier"}
_ADVISED = "as advised"
# The page on the default advises "all" for prediction from this many records times the Gaussian parameter per column.
_ENOUGH_PER_COLUMN = 3.0


def advised_size(X: Any, epsilon: float) -> str:
    """The size that the page on the default advises for prediction, by public facts: also all columns of texts."""
    mu = PrivacyFilter(Budget(epsilon, DELTA)).mu
    enough = X.shape[0] * mu >= _ENOUGH_PER_COLUMN * X.shape[1]
    return "all" if enough or sp.issparse(X) else "auto"


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
        return fitted(model.fit(problem.X, problem.y), problem.X_test, problem.X.shape[1])

    tasks = tuple(task for task, suffix in SUFFIXES.items() if stem != "ADMM" or suffix == "Classifier")
    return Method(name, family, tasks, fit, refuses=missing, few=family == "sound")


DEFAULT = _sound("default", "default", "Sparse", "n_nonzero")
DEFAULT_AUTO = _sound("default, k auto", "default", "Sparse", n_nonzero="auto")
DEFAULT_ALL = _sound("default, all", "default", "Sparse", n_nonzero="all")
DEFAULT_ADVISED = _sound("default, as advised", "default", "Sparse", n_nonzero=_ADVISED)
DEFAULTS = (DEFAULT, DEFAULT_AUTO, DEFAULT_ALL, DEFAULT_ADVISED)

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
