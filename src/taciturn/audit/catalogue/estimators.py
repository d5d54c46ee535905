"""Estimators: the plan is made once and its solver is run again and again, or every run is a whole fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from taciturn.accounting import Budget
from taciturn.audit.catalogue.entry import Case, Entry, ExactCase, case_of_fit, exact_case_of_fit
from taciturn.audit.catalogue.mechanisms import GAUSSIAN_DELTA
from taciturn.audit.catalogue.planned import Alternating, Descents, Minimisers, Steps, StepsLaw, n_outputs_of
from taciturn.audit.neighbours import (
    balanced_labels,
    lone_record,
    mislabelled_record,
    near_tie,
    residual_jump,
    turncoat_block,
)
from taciturn.audit.pair import Pair
from taciturn.estimators import (
    ADMMClassifier,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    HardThresholdClassifier,
    HardThresholdRegressor,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    ScreenedClassifier,
    ScreenedRegressor,
    SparseClassifier,
    SparseRegressor,
    SparsifiedClassifier,
    SparsifiedRegressor,
    TwoStageClassifier,
    TwoStageRegressor,
)
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss, SquaredLoss
from taciturn.plan import ClippedCount, plan_frank_wolfe, plan_screened
from taciturn.plan.admm import plan_admm
from taciturn.plan.hard_threshold import plan_hard_threshold
from taciturn.plan.objective_perturbation import plan_objective_perturbation
from taciturn.plan.sparse import METHODS

__all__ = ["ESTIMATORS"]

_GAUSSIAN = {"delta": GAUSSIAN_DELTA}
_TRIALS, _FIT_TRIALS, _FEW_TRIALS = 20_000, 3_000, 2_000
_REGRESSION, _CLASSIFICATION = "add-remove", "zero-out"
"""Of a classifier's records a label makes null ones; those of a regression have to be left out."""

# In units of 1 / epsilon, like the noise: how far one column trails another, and how far both lead no column at all.
_LEAD, _LEVEL = 4.5, 12.0
# Weights this small leave derivatives where they are at zero, and bounds on them hardly above.
_SMALL = 0.01
# A target of one is so far beyond that no noise brings its residual back within.
_CLIP = 0.1
# Noise on the mean gradient then is small beside the weights that a first step makes.
_MANY = 200


def _model(kind: type, pair: Pair, epsilon: float, own: dict[str, Any]) -> Any:
    """A model in mapped units, with what it has to know of the data."""
    _, y = pair.first
    given = {"n_public": y.size} if pair.relation == "add-remove" else {}
    if y.dtype.kind == "i":
        given["classes"] = tuple(range(int(y.max()) + 1))
    return kind(epsilon=epsilon, relation=pair.relation, fit_intercept=False, **given, **own)


def _n_classes(model: Any) -> int:
    return len(getattr(model, "classes", ()))


def _loss(model: Any) -> Any:
    n_classes = _n_classes(model)
    if n_classes:
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss()
    return SquaredLoss() if getattr(model, "loss", "huber") == "squared" else HuberLoss(model.residual_clip or 1.0)


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


def _frank_wolfe(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> Case:
    pair = pair_of(epsilon)
    model = _model(kind, pair, epsilon, own)
    thin = own.get("n_nonzero")
    run = Steps(_steps_plan(model, *pair.first[0].shape), _n_classes(model), thin)
    # A count takes thousands of steps of its own, and a change of the order shows at once or never.
    trials = _FIT_TRIALS if thin == "private-count" else _TRIALS
    few = pair_of in (_numbers_in_order, _labels_in_order)
    return case_of_fit(model, pair, _FEW_TRIALS if few else trials, run=run)


def _frank_wolfe_law(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> ExactCase:
    pair = pair_of(epsilon)
    model = _model(kind, pair, epsilon, own)
    return exact_case_of_fit(model, pair, StepsLaw(_steps_plan(model, *pair.first[0].shape)))


def _steps_plan(model: Any, n_rows: int, n_columns: int) -> Any:
    facts = {
        "radius": model.radius,
        "relation": model.relation,
        "n_rows": n_rows,
        "n_vertices": 2 * n_outputs_of(_n_classes(model)) * n_columns,
        "n_steps": model.n_steps,
    }
    budget = Budget(model.epsilon, model.delta)
    if isinstance(model, ScreenedRegressor | ScreenedClassifier):
        facts |= {
            name: getattr(model, name) for name in ("rule", "screen_at", "screen_share", "threshold", "permanent")
        }
        return plan_screened(budget, _loss(model), n_features=n_columns, **facts)
    count = None
    if getattr(model, "n_nonzero", None) == "private-count":
        low, high = model.count_range
        count = ClippedCount(low, high, model.relation, model.count_share * model.epsilon)
    return plan_frank_wolfe(budget, _loss(model), count=count, **facts)


# ------------------------------------------------------------------ descents


def _direction(epsilon: float) -> Pair:
    return lone_record((0.6, 0.8), 10, _REGRESSION)


def _opposite(epsilon: float) -> Pair:
    return lone_record((0.6, 0.8), 10, "replace-one")


def _one_column(epsilon: float) -> Pair:
    return lone_record((1.0, 0.0), 10, _REGRESSION)


def _mislabelled(epsilon: float) -> Pair:
    return mislabelled_record(_MANY, _CLASSIFICATION)


def _descent(kind: type, pair_of: Callable[[float], Pair], event: str, own: dict[str, Any], epsilon: float) -> Case:
    pair = pair_of(epsilon)
    model = _model(kind, pair, epsilon, _GAUSSIAN | own)
    n_rows, n_columns = pair.first[0].shape
    plan = plan_hard_threshold(
        Budget(model.epsilon, model.delta),
        _loss(model),
        relation=model.relation,
        n_rows=n_rows,
        n_features=n_columns,
        n_outputs=1,
        intercept=False,
        n_nonzero=model.n_nonzero,
        row_bound=model.row_bound,
        auto_clip=False,
        clip_share=model.clip_share,
        threshold=model.threshold,
        n_steps=model.n_steps,
        step=model.step_size,
        radius=None,
        average=False,
    )
    return case_of_fit(model, pair, _TRIALS, run=Descents(plan, _n_classes(model)), event=event)


def _sparse(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> Case:
    pair = pair_of(epsilon)
    model = _model(kind, pair, epsilon, _GAUSSIAN | {"row_bound": 1.0} | own)
    return case_of_fit(model, pair, _FIT_TRIALS, event="gaussian")


def _alone(row: tuple[float, ...], labelled: bool, epsilon: float) -> Pair:
    return lone_record(row, _MANY, _CLASSIFICATION if labelled else _REGRESSION, labelled=labelled)


# ------------------------------------------------------------------ perturbed objectives


def _objective(kind: type, pair_of: Callable[[float], Pair], own: dict[str, Any], epsilon: float) -> Case:
    pair = pair_of(epsilon)
    # So much that Jacobians take a small part of epsilon, which shows less than noise does.
    own = {"row_bound": 1.0, "regularisation": 8.0 / epsilon} | own
    model = _model(kind, pair, epsilon, _GAUSSIAN | own)
    plan = plan_objective_perturbation(
        Budget(model.epsilon, model.delta),
        _loss(model),
        row_bound=model.row_bound,
        relation=model.relation,
        n_rows=pair.first[1].size,
        regularisation=model.regularisation,
    )
    return case_of_fit(model, pair, _TRIALS, run=Minimisers(plan))


def _admm(kind: type, penalty: str, epsilon: float) -> Case:
    pair = _mislabelled(epsilon)
    own = {"row_bound": 1.0, "penalty": penalty, "strength": 1e-6, "coupling": 4.0 / epsilon, "n_steps": 2}
    model = _model(kind, pair, epsilon, _GAUSSIAN | own)
    n_rows, n_columns = pair.first[0].shape
    plan = plan_admm(
        Budget(model.epsilon, model.delta),
        _loss(model),
        row_bound=model.row_bound,
        relation=model.relation,
        n_rows=n_rows,
        n_features=n_columns,
        n_blocks=model.n_blocks,
        n_steps=model.n_steps,
        penalty=model.penalty,
        strength=model.strength,
        coupling=model.coupling,
    )
    return case_of_fit(model, pair, _TRIALS // 2, run=Alternating(plan))


def _two_stage(kind: type, epsilon: float) -> Case:
    pair = turncoat_block(1, labelled=kind is TwoStageClassifier)
    own = {"n_nonzero": 1, "n_blocks": 2, "row_bound": 1.0, "regularisation": 4.0 / epsilon}
    return case_of_fit(_model(kind, pair, epsilon, _GAUSSIAN | own), pair, _FIT_TRIALS)


# ------------------------------------------------------------------ the entries

_ONE_STEP = {"n_steps": 1, "radius": _SMALL}
_TWO_SMALL_STEPS = {"n_steps": 2, "radius": _SMALL}
_TWO_STEPS = {"n_steps": 2, "radius": 1.0}
_SQUARED = _TWO_STEPS | {"loss": "squared"}
_COUNT = {"n_nonzero": "private-count", "count_range": (1, 2), "count_share": 0.5}
_SCREENED = {"n_steps": 2, "radius": _SMALL, "screen_at": "last", "screen_share": 0.8, "rule": "select"}
# These may leave the coefficient as it is, and then all that shows is the step.
_HARDLY_SCREENED = _GAUSSIAN | {"n_steps": 1, "radius": _SMALL, "screen_at": "last", "screen_share": 0.2}
_NEVER_SCREENED = _HARDLY_SCREENED | {"threshold": 0.0, "rule": "none-option"}
_GIVEN = {"row_bound": 1.0, "residual_clip": _CLIP, "step_size": 1e-3, "n_steps": 2}


def _entry(kind: type, variant: str, summary: str, case: Callable[..., Case | ExactCase], *arguments: Any) -> Entry:
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
            # A step after the screening shows what leads.
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
        _GIVEN | {"n_nonzero": 1, "threshold": "peeling"},
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
    _entry(TwoStageRegressor, "", "votes and a minimiser", _two_stage),
    _entry(TwoStageClassifier, "", "votes and a minimiser", _two_stage),
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
    _entry(SparseClassifier, "", "all columns", _sparse, partial(_alone, (1.0,), True), {"n_nonzero": 1}),
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
)
"""Every estimator."""
