"""Estimators: every run is the public ``fit``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.audit.engine import Pair
from taciturn.losses import HuberLoss, SquaredLoss
from taciturn.methods.frank_wolfe.estimator import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    SparsifiedClassifier,
    SparsifiedRegressor,
)
from taciturn.methods.frank_wolfe.plan import plan_frank_wolfe
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier, HardThresholdRegressor
from taciturn.methods.objective.estimator import (
    ADMMClassifier,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    TwoStageClassifier,
    TwoStageRegressor,
)
from taciturn.methods.schedule import Problem
from taciturn.methods.screening.estimator import ScreenedClassifier, ScreenedRegressor
from taciturn.methods.sparse.estimator import SparseClassifier, SparseRegressor
from taciturn.methods.sparse.plan import METHODS
from taciturn.methods.survival.estimator import SparseSurvival
from taciturn_research.attacks.entry import Entry, ExactCase, Fit, SampledCase, case_of_fit, exact_case_of_fit
from taciturn_research.attacks.laws import FrankWolfeLaw
from taciturn_research.attacks.mechanisms import GAUSSIAN_DELTA
from taciturn_research.attacks.neighbours import (
    balanced_labels,
    last_with_measure,
    last_with_rows,
    lone_record,
    mislabelled_record,
    near_tie,
    residual_jump,
    turncoat_block,
)
from taciturn_research.attacks.transformers import SELECTORS

_GAUSSIAN = {"delta": GAUSSIAN_DELTA}
# Runs are whole fits of milliseconds: fewer of them where little can be found, and few where a violation is obvious.
_TRIALS, _SLOW_TRIALS, _FEW_TRIALS = 6_000, 2_000, 500
# An audit of Gaussian noise in several gradients takes many runs.
_GAUSSIAN_TRIALS = 20_000
_REGRESSION, _CLASSIFICATION = "add-remove", "zero-out"
"""A label can make a record of a classifier null; a record of a regression has to be left out."""

# In units of 1 / epsilon, like the noise: the lead of one column over another, and of both over no column.
_LEAD, _LEVEL = 4.5, 12.0
# With weights this small, derivatives and their bounds stay near those at zero.
_SMALL = 0.01
# The residual of a target of one stays beyond the clipping bound under any noise.
_CLIP = 0.1
# The noise of the mean gradient is then small beside the weights after the first step.
_MANY = 200


def _model(kind: type, pair: Pair, epsilon: float, own: dict[str, Any]) -> Any:
    """Make a model with the public facts of the data, in mapped units."""
    y = pair.first[1]
    given: dict[str, Any] = {"n_public": y.size} if pair.relation == "add-remove" else {}
    if y.dtype.kind == "i":
        given["classes"] = tuple(range(int(y.max()) + 1))
    else:
        given["y_bounds"] = (-1.0, 1.0)
    return kind(epsilon=epsilon, relation=pair.relation, x_bound=1.0, fit_intercept=False, **(given | own))


# ------------------------------------------------------------------ Frank-Wolfe, thinned or screened


def _numbers_nearly_tied(epsilon: float) -> Pair:
    return near_tie(_LEAD / epsilon, math.ceil(_LEVEL / epsilon), _REGRESSION)


def _labels_nearly_tied(epsilon: float) -> Pair:
    return near_tie(_LEAD / epsilon, math.ceil(_LEVEL / epsilon), _CLASSIFICATION, labelled=True)


def _numbers_in_order(epsilon: float) -> Pair:
    return near_tie(1.0, 3, _REGRESSION)


def _labels_in_order(epsilon: float) -> Pair:
    return near_tie(1.0, 3, _CLASSIFICATION, labelled=True)


def _three_classes(epsilon: float) -> Pair:
    return balanced_labels(2, 3, 1, _CLASSIFICATION)


def _fitted_exactly(epsilon: float) -> Pair:
    return residual_jump(1.0, 10, 2, _REGRESSION)


def _frank_wolfe(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> SampledCase:
    pair = pair_of(epsilon)
    # Medians of the target would take a part of the budget, and tell neighbours apart by less; replays look at them.
    own = {"residual_clip": 1.0} | own if pair.first[1].dtype.kind != "i" else own
    # Screenings share the budget with steps and reveal little; a change of the order is found quickly or never.
    trials = _SLOW_TRIALS if "rule" in own or own.get("n_nonzero") == "private-count" else _TRIALS
    few = pair_of in (_numbers_in_order, _labels_in_order)
    return case_of_fit(_model(kind, pair, epsilon, own), pair, _FEW_TRIALS if few else trials, discrete=True)


def _frank_wolfe_law(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> ExactCase:
    pair = pair_of(epsilon)
    X, y = pair.first
    model = _model(kind, pair, epsilon, {"residual_clip": 1.0} | own)
    plan = plan_frank_wolfe(
        Budget(model.epsilon, model.delta),
        Problem(SquaredLoss() if model.loss == "squared" else HuberLoss(1.0), model.relation, y.size, X.shape[1]),
        radius=model.radius,
        n_steps=model.n_steps,
    )
    return exact_case_of_fit(model, pair, FrankWolfeLaw(plan))


# ------------------------------------------------------------------ descents


def _direction(epsilon: float) -> Pair:
    return lone_record((0.6, 0.8), 10, _REGRESSION)


def _opposite(epsilon: float) -> Pair:
    return lone_record((0.6, 0.8), 10, "replace-one")


def _one_column(epsilon: float) -> Pair:
    return lone_record((1.0, 0.0), 10, _REGRESSION)


def _mislabelled(epsilon: float) -> Pair:
    return mislabelled_record(_MANY, _CLASSIFICATION)


def _descent(
    kind: type, pair_of: Callable[[float], Pair], event: str, own: dict[str, Any], epsilon: float
) -> SampledCase:
    pair = pair_of(epsilon)
    trials = _GAUSSIAN_TRIALS if event == "gaussian" else _TRIALS
    return case_of_fit(_model(kind, pair, epsilon, _GAUSSIAN | own), pair, trials, event=event)


def _sparse(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> SampledCase:
    pair = pair_of(epsilon)
    model = _model(kind, pair, epsilon, _GAUSSIAN | {"row_bound": 1.0} | own)
    return case_of_fit(model, pair, _SLOW_TRIALS, event="gaussian")


def _alone(row: tuple[float, ...], labelled: bool, epsilon: float) -> Pair:
    return lone_record(row, _MANY, _CLASSIFICATION if labelled else _REGRESSION, labelled=labelled)


def _alone_and_large(y_bounds: tuple[float, float], epsilon: float) -> Pair:
    # Far from the mean that a log link starts from, which is one.
    return lone_record((1.0,), _MANY, _REGRESSION, target=y_bounds[1], other_targets=y_bounds[0])


def _alone_and_beyond(measure: str, pair_of: Callable[[float], Pair], epsilon: float) -> Pair:
    # Untrimmed, the record alone would count as ten do, or have ten times the largest exposure.
    return last_with_measure(pair_of(epsilon), measure, 10.0)


def _against_many(epsilon: float) -> Pair:
    # So many that the information matrix is clear of its noise.
    return residual_jump(1.0, math.ceil(300.0 / epsilon), 1, _REGRESSION)


def _one_more_label(epsilon: float) -> Pair:
    return balanced_labels(math.ceil(300.0 / epsilon), 2, 1, _CLASSIFICATION)


def _hazards(kind: type, own: dict[str, Any], epsilon: float) -> SampledCase:
    # One interval: a score is as long as it can be where an event comes at once, and where few rows are not zero it
    # has nearly all of its length in the feature. So many records that information is clear of its noise, with the same
    # times for every row: the hazard ratio is one.
    n_each = math.ceil(75.0 / epsilon)
    X = np.tile(np.repeat([1.0, -1.0, 0.0], [1, 1, 8]), 2 * n_each)[:, None]
    y = np.tile(np.repeat([0.5, -1.0], 10), n_each)
    first, second = ((np.append(X, [[row]], axis=0), np.append(y, 1e-6)) for row in (1.0, -1.0))
    words = f"One record has its event at once, in one or the other of two groups alike, of {y.size + 1:,} records"
    pair = Pair(first, second, "replace-one", words)
    model = kind(epsilon=epsilon, relation=pair.relation, x_bound=1.0, cuts=(1.0,), **(_GAUSSIAN | own))
    return case_of_fit(model, pair, _SLOW_TRIALS, event="gaussian")


# ------------------------------------------------------------------ perturbed objectives


def _objective(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> SampledCase:
    pair = pair_of(epsilon)
    # Large enough that the Jacobian takes a small part of epsilon, of which the audit sees less than of the noise.
    own = {"row_bound": 1.0, "regularisation": 8.0 / epsilon} | own
    return case_of_fit(_model(kind, pair, epsilon, _GAUSSIAN | own), pair, _SLOW_TRIALS)


def _admm(kind: type, penalty: str, epsilon: float) -> SampledCase:
    pair = _mislabelled(epsilon)
    own = {"row_bound": 1.0, "penalty": penalty, "strength": 1e-6, "coupling": 4.0 / epsilon, "n_steps": 2}
    return case_of_fit(_model(kind, pair, epsilon, _GAUSSIAN | own), pair, _SLOW_TRIALS)


def _two_stage(kind: type, decisive: bool, epsilon: float) -> SampledCase:
    pair = turncoat_block(1, labelled=kind is TwoStageClassifier, decisive=decisive)
    own = {"n_nonzero": 1, "n_blocks": 2 + decisive, "row_bound": 1.0, "regularisation": 4.0 / epsilon}
    return case_of_fit(_model(kind, pair, epsilon, _GAUSSIAN | own), pair, _FEW_TRIALS if decisive else _SLOW_TRIALS)


# ------------------------------------------------------------------ the entries

_ONE_STEP = {"n_steps": 1, "radius": _SMALL}
_TWO_SMALL_STEPS = {"n_steps": 2, "radius": _SMALL}
_TWO_STEPS = {"n_steps": 2, "radius": 1.0}
_SQUARED = _TWO_STEPS | {"loss": "squared"}
_COUNT = {"n_nonzero": "private-count", "count_range": (1, 2), "count_share": 0.5}
_SCREENED = {"n_steps": 2, "radius": _SMALL, "screen_at": "last", "screen_share": 0.8, "rule": "select"}
# A screening with these settings may keep the coefficient, so that only the step reveals the record.
_HARDLY_SCREENED = _GAUSSIAN | {"n_steps": 1, "radius": _SMALL, "screen_at": "last", "screen_share": 0.2}
_NEVER_SCREENED = _HARDLY_SCREENED | {"threshold": 0.0, "rule": "none-option"}
_GIVEN = {"row_bound": 1.0, "residual_clip": _CLIP, "step_size": 1e-3, "n_steps": 2}


def _entry(
    kind: type, variant: str, summary: str, case: Callable[..., SampledCase | ExactCase], *arguments: Any
) -> Entry:
    name = f"{kind.__name__}/{variant}" if variant else kind.__name__
    return Entry(name, "estimator", summary, partial(case, kind, *arguments))


ESTIMATORS = (
    _entry(FrankWolfeRegressor, "", "one step", _frank_wolfe, _numbers_nearly_tied, _ONE_STEP),
    _entry(FrankWolfeRegressor, "exact", "law of two steps", _frank_wolfe_law, _numbers_nearly_tied, _TWO_SMALL_STEPS),
    _entry(FrankWolfeRegressor, "squared", "two steps", _frank_wolfe, _numbers_nearly_tied, _SQUARED),
    _entry(FrankWolfeRegressor, "squared-exact", "law of two steps", _frank_wolfe_law, _numbers_nearly_tied, _SQUARED),
    _entry(FrankWolfeClassifier, "", "one step", _frank_wolfe, _labels_nearly_tied, _ONE_STEP),
    _entry(FrankWolfeClassifier, "three-classes", "one step", _frank_wolfe, _three_classes, _ONE_STEP),
    _entry(SparsifiedRegressor, "", "one step", _frank_wolfe, _numbers_nearly_tied, _ONE_STEP | {"n_nonzero": 1}),
    _entry(
        SparsifiedRegressor, "count", "two steps and a count", _frank_wolfe, _numbers_nearly_tied, _TWO_STEPS | _COUNT
    ),
    _entry(SparsifiedClassifier, "", "one step", _frank_wolfe, _labels_nearly_tied, _ONE_STEP | {"n_nonzero": 1}),
    *(
        entry
        for kind, tie in ((ScreenedRegressor, _numbers_nearly_tied), (ScreenedClassifier, _labels_nearly_tied))
        for entry in (
            _entry(kind, "select", "two steps and a screening", _frank_wolfe, tie, _SCREENED),
            _entry(kind, "none-option", "a step and a screening", _frank_wolfe, tie, _NEVER_SCREENED),
            _entry(kind, "tested", "a step and a screening", _frank_wolfe, tie, _HARDLY_SCREENED | {"rule": "tested"}),
            _entry(kind, "adp", "a step and a screening", _frank_wolfe, tie, _HARDLY_SCREENED | {"rule": "adp"}),
        )
    ),
    *(
        _entry(kind, "order", "one step, the order changes", _frank_wolfe, pair, _ONE_STEP | own)
        for kind, pair, own in (
            (FrankWolfeRegressor, _numbers_in_order, {}),
            (FrankWolfeClassifier, _labels_in_order, {}),
            (SparsifiedRegressor, _numbers_in_order, {"n_nonzero": 1}),
            (SparsifiedClassifier, _labels_in_order, {"n_nonzero": 1}),
        )
    ),
    *(
        _entry(kind, f"{rule}-order", "the order changes", _frank_wolfe, pair, own | {"rule": rule})
        for kind, pair in ((ScreenedRegressor, _numbers_in_order), (ScreenedClassifier, _labels_in_order))
        for rule, own in (
            # A step after the screening reveals the leading column.
            ("select", _SCREENED | {"n_steps": 3, "screen_at": 2}),
            ("none-option", _NEVER_SCREENED),
            ("tested", _HARDLY_SCREENED),
            ("adp", _HARDLY_SCREENED),
        )
    ),
    _entry(
        ScreenedRegressor,
        "adp-jump",
        "a step and a screening",
        _frank_wolfe,
        _fitted_exactly,
        _HARDLY_SCREENED | {"rule": "adp", "radius": 1.0, "screen_share": 0.8},
    ),
    _entry(HardThresholdRegressor, "", "two gradients", _descent, _direction, "gaussian", _GIVEN | {"n_nonzero": 2}),
    _entry(
        HardThresholdRegressor,
        "replace-one",
        "two gradients",
        _descent,
        _opposite,
        "gaussian",
        _GIVEN | {"n_nonzero": 2},
    ),
    _entry(
        HardThresholdRegressor,
        "peeling",
        "two choices of a column and its gradient",
        _descent,
        _one_column,
        "auto",
        _GIVEN | {"n_nonzero": 1, "mechanism": "peeling"},
    ),
    _entry(
        HardThresholdRegressor,
        "pursuit",
        "a choice of a column and two gradients",
        _descent,
        _one_column,
        "auto",
        _GIVEN | {"n_nonzero": 1, "mechanism": "pursuit"},
    ),
    _entry(
        HardThresholdClassifier,
        "",
        "four gradients",
        _descent,
        _mislabelled,
        "gaussian",
        {"row_bound": 1.0, "step_size": 100.0, "n_steps": 4, "n_nonzero": 1},
    ),
    _entry(
        ObjectivePerturbationRegressor,
        "",
        "one minimiser",
        _objective,
        partial(_alone, (1.0,), False),
        {"residual_clip": _CLIP},
    ),
    _entry(ObjectivePerturbationClassifier, "", "one minimiser", _objective, _mislabelled, {}),
    *(
        entry
        for kind in (TwoStageRegressor, TwoStageClassifier)
        for entry in (
            _entry(kind, "", "votes and a minimiser", _two_stage, False),
            _entry(kind, "order", "the majority changes", _two_stage, True),
        )
    ),
    _entry(ADMMClassifier, "l1", "two iterations", _admm, "l1"),
    _entry(ADMMClassifier, "half", "two iterations", _admm, "l1/2"),
    _entry(
        SparseRegressor,
        "",
        "all columns",
        _sparse,
        partial(_alone, (1.0,), False),
        {"n_nonzero": 1, "residual_clip": _CLIP},
    ),
    *(
        _entry(
            SparseRegressor,
            method,
            "one of two columns",
            _sparse,
            partial(_alone, (1.0, 0.0), False),
            {"n_nonzero": 1, "residual_clip": _CLIP, "method": method},
        )
        for method in METHODS[1:]
    ),
    *(
        _entry(
            SparseRegressor,
            name,
            "all columns, under a log link",
            _sparse,
            partial(_alone_and_large, bounds),
            {"n_nonzero": 1, "loss": loss, "y_bounds": bounds},
        )
        for name, loss, bounds in (("counts", "poisson", (0.0, 4.0)), ("amounts", "gamma", (0.5, 4.0)))
    ),
    _entry(
        SparseRegressor,
        "weights",
        "all columns, with a weight beyond its bound",
        _sparse,
        partial(_alone_and_beyond, "sample_weight", partial(_alone, (1.0,), False)),
        {"n_nonzero": 1, "residual_clip": _CLIP, "weight_bound": 1.0},
    ),
    _entry(
        SparseRegressor,
        "exposure",
        "all columns, under a log link, with an exposure beyond its bound",
        _sparse,
        partial(_alone_and_beyond, "exposure", partial(_alone_and_large, (0.0, 4.0))),
        {"n_nonzero": 1, "loss": "poisson", "y_bounds": (0.0, 4.0), "exposure_bound": 1.0},
    ),
    _entry(
        SparseRegressor,
        "variables",
        "one of two variables",
        _sparse,
        partial(_alone, (1.0, 1.0, 0.0), False),
        {"n_nonzero": 1, "residual_clip": _CLIP, "select": "variables", "groups": ((0, 1), (2,)), "method": "one-shot"},
    ),
    _entry(SparseClassifier, "", "all columns", _sparse, partial(_alone, (1.0,), True), {"n_nonzero": 1}),
    *(
        _entry(kind, "inference", "an estimate with errors", _sparse, pair_of, {"inference": True, "columns": (0,)})
        for kind, pair_of in ((SparseRegressor, _against_many), (SparseClassifier, _one_more_label))
    ),
    *(
        _entry(
            SparseClassifier,
            method,
            "one of two columns",
            _sparse,
            partial(_alone, (1.0, 0.0), True),
            {"n_nonzero": 1, "method": method},
        )
        for method in METHODS[1:]
    ),
    _entry(SparseSurvival, "", "three steps", _hazards, {}),
    _entry(SparseSurvival, "inference", "an estimate with errors", _hazards, {"inference": True}),
)
"""Every estimator."""


# ---------------------------------------------------------------------
# Fits in which a record is a person with several rows: the attacks on single records, on nine rows of one person.


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
