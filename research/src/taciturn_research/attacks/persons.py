"""Fits in which a record is a person with several rows: the attacks on single records, on nine rows of one person."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from taciturn_research.attacks.entry import Entry, ExactCase, Fit, SampledCase, case_of_fit
from taciturn_research.attacks.estimators import ESTIMATORS
from taciturn_research.attacks.neighbours import last_with_rows
from taciturn_research.attacks.selectors import SELECTORS

__all__ = ["PERSONS"]

_N_ROWS = 9

_ATTACKS = {
    "SparseRegressor": "persons",
    "SparseClassifier": "persons",
    "SparseRegressor/inference": "persons-inference",
    "HardThresholdRegressor": "persons",
    "HardThresholdClassifier": "persons",
    "CorrelationSelector/peeling": "persons",
    "CorrelationSelector/peeling-order": "persons-order",
    "BlockVoteSelector/order": "persons-order",
}
"""By the name of an entry, what tells the one with persons from others of the same class."""


def _with_persons(case: Callable[[float], SampledCase | ExactCase], epsilon: float) -> SampledCase:
    single = case(epsilon)
    if not isinstance(single, SampledCase) or not isinstance(single.run, Fit):
        raise TypeError("expected an attack on whole fits")
    pair = last_with_rows(single.pair, _N_ROWS)
    return case_of_fit(single.run.model, pair, single.trials, event=single.event, discrete=single.run.discrete)


PERSONS = tuple(
    Entry(
        f"{entry.subject}/{_ATTACKS[entry.name]}",
        entry.kind,
        f"{entry.summary}; a person with {_N_ROWS} rows",
        partial(_with_persons, entry.case),
    )
    for entry in (*SELECTORS, *ESTIMATORS)
    if entry.name in _ATTACKS
)
"""Of the classes that accept persons, at least one of each family."""
