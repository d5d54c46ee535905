"""Audits and replays of classes that are in the registry of methods and have none of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from taciturn.audit.engine import Pair
from taciturn.methods.registry import classes_of
from taciturn_research.attacks.entry import Entry, SampledCase, case_of_fit
from taciturn_research.attacks.mechanisms import GAUSSIAN_DELTA
from taciturn_research.attacks.neighbours import lone_record, near_tie

__all__ = ["registered_entries", "unlisted_classes"]

_TRIALS = 2_000
_PAIRS: dict[str, tuple[str, Callable[[], Pair]]] = {
    "regressor": ("estimator", lambda: lone_record((0.6, 0.8), 10, "add-remove")),
    "classifier": ("estimator", lambda: lone_record((0.6, 0.8), 10, "zero-out", labelled=True)),
    "survival": ("estimator", lambda: lone_record((0.6, 0.8), 10, "add-remove")),
    "selector": ("selector", lambda: near_tie(1.0, 3, "add-remove")),
}
"""For each kind of class what the catalogue calls it, and neighbours that are hard to protect."""


def unlisted_classes(kind: str, listed: Collection[str]) -> dict[str, type]:
    """Classes of a kind that the registry has and that are not listed, by name."""
    return {name: each for name, each in classes_of(kind).items() if name not in listed}


def registered_entries(listed: Collection[str]) -> tuple[Entry, ...]:
    """An entry for every model and selector of the registry whose name is not listed."""
    return tuple(
        Entry(name, called, "a whole fit, on neighbours for any method", partial(_case, each, pair_of))
        for kind, (called, pair_of) in _PAIRS.items()
        for name, each in unlisted_classes(kind, listed).items()
    )


def _case(kind: type, pair_of: Callable[[], Pair], epsilon: float) -> SampledCase:
    pair = pair_of()
    _, y = pair.first
    given: dict[str, Any] = {
        **{"epsilon": epsilon, "relation": pair.relation, "n_public": y.size, "x_bound": 1.0, "fit_intercept": False},
        **{"y_bounds": (-1.0, 1.0), "n_features_to_select": 1, "delta": GAUSSIAN_DELTA},
    }
    if y.dtype.kind == "i":
        given["classes"] = (0, 1)
    known = inspect.signature(kind).parameters
    return case_of_fit(kind(**{name: value for name, value in given.items() if name in known}), pair, _TRIALS)
