"""Ten seeded fits for every class of the top level: the tables, the situations, and the options of each class.

A case is a situation (table, relation, budget, bounds) with the options of one class. Arguments are passed as they
stand here: one that a class no longer has is an error, not a case less.
"""

from dataclasses import dataclass, field
from functools import cache
from math import inf

import numpy as np
import scipy.sparse as sp

from taciturn.data.sensitivity import record_sum

# ------------------------------------------------------------------ tables

_SHAPES = {
    # Rows, columns, share of cells that are not zero, largest value.
    "dense": (300, 12, 0.8, 1.0),
    "sparse": (240, 60, 0.15, 1.0),
    "wide": (300, 12, 0.8, 2.0),
    "wide sparse": (240, 40, 0.2, 2.0),
    "bad": (300, 12, 0.8, 1.0),
}
LABELS = ("case", "control")


@cache
def table(name):
    """Features, and targets by kind: "numbers", "two" labels and "three" labels.

    The target of a wide table lies in [-3, 5], of all others in [-1, 1]. The bad one has cells that are no finite
    numbers, numbers that are missing, and labels that nobody announced.
    """
    n, d, share, largest = _SHAPES[name]
    rng = np.random.default_rng([ord(letter) for letter in name])
    X = np.round(rng.uniform(-1, 1, (n, d)), 2) * (rng.random((n, d)) < share)
    signal = 0.6 * X[:, 1] - 0.5 * X[:, 4] + 0.3 * X[:, 7] + 0.1 * rng.standard_normal(n)
    numbers = np.clip(np.round(signal, 2), -1, 1)
    two = np.where(numbers > 0, *LABELS).astype("U9")
    three = np.digitize(numbers, [-0.1, 0.1])
    X *= largest
    if name.startswith("wide"):
        numbers = 1.0 + 4.0 * numbers
    if name == "bad":
        X[[3, 17, 17, 90], [1, 4, 5, 0]] = [np.nan, inf, -inf, np.nan]
        numbers[[40, 41]] = [np.nan, inf]
        two[40], three[40] = "neither", 9
    features = sp.csr_array(X) if name.endswith("sparse") else X
    return features, {"numbers": numbers, "two": two, "three": three}


# ------------------------------------------------------------------ situations


@dataclass(frozen=True)
class Case:
    """A fit: on which table, to which target, with which arguments, and with which more of ``fit`` itself."""

    table: str
    target: str
    arguments: dict = field(default_factory=dict)
    fit_arguments: dict = field(default_factory=dict)


# The half-width of these y_bounds and the x_bound are powers of two, so that a conversion of units loses no bit.
_WIDE = {"x_bound": 2.0, "y_bounds": (-3.0, 5.0)}

_SITUATIONS = (
    ("dense", {}),
    ("sparse", {"epsilon": 5.0}),
    ("wide", {"epsilon": 0.5, **_WIDE}),
    ("dense", {"relation": "add-remove", "n_public": 300}),
    ("sparse", {"relation": "replace-one", "fit_intercept": False}),
    ("bad", {"epsilon": 5.0, "invalid": "null"}),
    ("wide sparse", {"epsilon": inf, **_WIDE}),
    ("sparse", {"epsilon": 5.0, "relation": "add-remove", "n_public": 250, "fit_intercept": False}),
    ("wide", {"epsilon": 5.0, **_WIDE}),
    ("wide sparse", {"epsilon": 5.0, "relation": "replace-one", **_WIDE}),
)


def _ten(*options, target="numbers", without=()):
    """The ten situations, each with one set of options.

    ``target`` and ``fit_arguments`` in an option are those of the case, all else is for the class.
    """
    cases = []
    for (name, situation), option in zip(_SITUATIONS, options, strict=True):
        kept = {key: value for key, value in situation.items() if key not in without}
        chosen = {"target": target, "fit_arguments": {}, "random_state": 11 + len(cases), **kept, **option}
        cases.append(Case(name, chosen.pop("target"), chosen, chosen.pop("fit_arguments")))
    return tuple(cases)


def _plain_and_in_units(plain, in_units, **kind):
    """Eight cases that set no parameter in units of the target, and two (the last) that do.

    The results were recorded when these parameters were stated for a target mapped to [-1, 1]; here they are four times
    that, in the units of y. The results stay.
    """
    assert len(plain) == 8
    assert len(in_units) == 2
    return _ten(*plain, *in_units, **kind)


def _classifier(plain, in_units, **kind):
    # Where labels are not all of the announced ones, the announcement is an argument.
    plain = [dict(option) for option in plain]
    plain[5].setdefault("classes", (0, 1, 2) if plain[5].get("target") == "three" else LABELS)
    return _plain_and_in_units(plain, in_units, target="two", without=("y_bounds",), **kind)


_SQUARED, _THREE, _TWO = {"loss": "squared"}, {"target": "three"}, {"classes": LABELS}


class PositivePart:
    """A score of one's own: a record adds at most 1 to any sum."""

    def __call__(self, X, y):
        return np.abs(np.maximum(X, 0).T @ y)

    def sensitivity(self, relation):
        return record_sum(1.0, "linf", relation)


# ------------------------------------------------------------------ estimators

PROVED = {
    "FrankWolfeRegressor": _plain_and_in_units(
        ({}, {}, _SQUARED, {"n_steps": 15}, _SQUARED, {}, {"n_steps": 200}, {"delta": 0.0, "n_steps": 20}),
        ({"radius": 8.0, "residual_clip": 2.0}, {"radius": 6.0, **_SQUARED}),
    ),
    "FrankWolfeClassifier": _classifier(
        ({}, {}, _THREE, _TWO, _THREE, _THREE, {"n_steps": 200}, {"delta": 0.0, "n_steps": 20}),
        ({"radius": 2.0}, {"radius": 1.5, **_THREE}),
    ),
    "SparsifiedRegressor": _plain_and_in_units(
        (
            {"n_nonzero": 4},
            {"n_nonzero": "private-count"},
            {**_SQUARED, "n_nonzero": 3},
            {"n_nonzero": "private-count", "count_range": (2, 6), "count_share": 0.2, "random_state": 5},
            {**_SQUARED, "n_steps": 20},
            {"n_nonzero": 2},
            {"n_nonzero": 5, "n_steps": 100},
            {"n_steps": 30},
        ),
        ({"radius": 8.0, "residual_clip": 2.0, "n_nonzero": 3}, {"radius": 6.0, **_SQUARED}),
    ),
    "SparsifiedClassifier": _classifier(
        (
            {"n_nonzero": 4},
            {"n_nonzero": "private-count"},
            {**_THREE, "n_nonzero": 3},
            {"n_nonzero": "private-count", "count_range": (2, 6), "count_share": 0.2, **_TWO},
            {"n_steps": 20},
            {**_THREE, "n_nonzero": 2},
            {"n_nonzero": 5, "n_steps": 100},
            {"n_steps": 30},
        ),
        ({"radius": 2.0, "n_nonzero": 3}, {"radius": 1.5, **_THREE}),
    ),
    "ScreenedRegressor": _plain_and_in_units(
        (
            {"random_state": 5},
            {"rule": "none-option", "n_steps": 20, "screen_at": 7, "random_state": 5},
            {**_SQUARED, "rule": "tested", "n_steps": 12, "screen_at": 3},
            {**_SQUARED, "rule": "adp", "n_steps": 12, "screen_at": "last"},
            {"n_steps": 30, "screen_at": 6, "permanent": True},
            {"rule": "none-option", "n_steps": 16, "screen_at": 4, "screen_share": 0.3, "permanent": True},
            {**_SQUARED, "rule": "adp", "permanent": True, "n_steps": 60},
            {"delta": 0.0, "n_steps": 12, "screen_at": 4},
        ),
        (
            {"radius": 8.0, "residual_clip": 2.0, "rule": "none-option", "threshold": 0.1, "n_steps": 20},
            {"radius": 6.0, "rule": "none-option", "threshold": 0.02, "n_steps": 30, "screen_at": 3},
        ),
    ),
    "ScreenedClassifier": _classifier(
        (
            {},
            {"rule": "none-option", "n_steps": 20, "screen_at": 4},
            {"rule": "tested", "n_steps": 12, "screen_at": 3},
            {"rule": "adp", "n_steps": 12, "screen_at": "last", **_TWO},
            {"n_steps": 30, "screen_at": 6, "permanent": True},
            {"rule": "none-option", "n_steps": 16, "screen_at": 4, "screen_share": 0.3, "permanent": True},
            {"rule": "adp", "permanent": True, "n_steps": 60},
            {"delta": 0.0, "n_steps": 12, "screen_at": 4},
        ),
        (
            {"radius": 2.0, "rule": "none-option", "threshold": 0.1, "n_steps": 20},
            {"radius": 1.5, "rule": "none-option", "threshold": 0.02, "n_steps": 30, "screen_at": 3},
        ),
    ),
    "HardThresholdRegressor": _plain_and_in_units(
        (
            {"n_nonzero": 4},
            {},
            {"n_nonzero": 3, "n_steps": 6},
            {"n_nonzero": 4, "row_bound": 2.0, "average": True},
            {"clip_share": 0.1},
            {"n_nonzero": 3},
            {"n_nonzero": 4},
            {"n_nonzero": 5, "step_size": 0.5, "n_steps": 4},
        ),
        (
            {"n_nonzero": 4, "residual_clip": 1.0, "coef_bound": 4.0},
            {"n_nonzero": 3, "residual_clip": 2.0, "row_bound": 3.0, "mechanism": "peeling"},
        ),
    ),
    "HardThresholdClassifier": _classifier(
        (
            {"n_nonzero": 4},
            {},
            {"n_nonzero": 3, "n_steps": 6, **_THREE},
            {"n_nonzero": 4, "row_bound": 2.0, "average": True, **_TWO},
            {"clip_share": 0.1, **_THREE},
            {"n_nonzero": 3, **_THREE},
            {"n_nonzero": 4},
            {"n_nonzero": 5, "step_size": 0.5, "n_steps": 4},
        ),
        ({"n_nonzero": 4, "coef_bound": 1.0}, {"n_nonzero": 3, "row_bound": 3.0, "mechanism": "peeling"}),
    ),
    "SparseSurvival": _ten(
        {"cuts": (0.2, 0.5, 1.0)},
        {"cuts": (0.5,)},
        {"cuts": (1.0, 2.0, 5.0), "columns": (1, 4)},
        {"cuts": (0.2, 0.5, 1.0), "inference": True, "epsilon": 20.0, "columns": (1, 4)},
        {"cuts": (0.1, 1.0)},
        {"cuts": (0.2, 0.5, 1.0)},
        {"cuts": (1.0, 2.0, 5.0), "inference": True},
        {"cuts": (0.3, 0.9)},
        {"cuts": (1.0, 2.0, 5.0), "columns": (1,), "inference": True, "epsilon": 20.0},
        {"cuts": (0.5, 4.0)},
        without=("y_bounds", "fit_intercept"),
    ),
    "SparseRegressor": _plain_and_in_units(
        (
            {"n_nonzero": 4},
            {},
            {"n_nonzero": "auto"},
            {"n_nonzero": 4, "method": "one-shot"},
            {"n_nonzero": 3, "method": "two-phase"},
            {"n_nonzero": "auto", "method": "two-phase"},
            {"n_nonzero": 4},
            {"n_nonzero": "auto", "row_bound": 1.5},
        ),
        (
            {"n_nonzero": 4, "residual_clip": 1.0, "method": "two-phase"},
            {"n_nonzero": 3, "residual_clip": 2.0, "row_bound": 3.0},
        ),
    ),
    "SparseClassifier": _classifier(
        (
            {"n_nonzero": 4},
            {},
            {"n_nonzero": "auto"},
            {"n_nonzero": 4, "method": "one-shot", **_TWO},
            {"n_nonzero": 3, "method": "two-phase", **_THREE},
            {"n_nonzero": 3, "method": "two-phase", **_THREE},
            {"n_nonzero": 4, **_THREE},
            {"n_nonzero": "auto", "row_bound": 1.5},
        ),
        ({"n_nonzero": 4, "method": "two-phase"}, {"n_nonzero": 3, "row_bound": 3.0}),
    ),
    "ObjectivePerturbationRegressor": _plain_and_in_units(
        ({}, {}, {}, {"regularisation": 20.0}, {}, {"row_bound": 2.0}, {}, {"row_bound": 1.0}),
        ({"residual_clip": 2.0}, {"residual_clip": 1.0, "row_bound": 3.0, "regularisation": 30.0}),
    ),
    "ObjectivePerturbationClassifier": _classifier(
        ({}, {}, _THREE, {"regularisation": 20.0, **_TWO}, _THREE, {"row_bound": 2.0}, {}, {"row_bound": 1.0}),
        ({"row_bound": 4.0, **_THREE}, {"row_bound": 3.0, "regularisation": 30.0}),
    ),
    "TwoStageRegressor": _plain_and_in_units(
        (
            {"n_nonzero": 4},
            {},
            {"n_nonzero": 3, "n_blocks": 10},
            {"n_nonzero": 4, "selection_share": 0.5},
            {"n_nonzero": 3, "regularisation": 20.0},
            {"n_nonzero": 3, "row_bound": 1.5},
            {"n_nonzero": 4},
            {"n_nonzero": 5, "n_blocks": 20},
        ),
        ({"n_nonzero": 4, "residual_clip": 2.0}, {"n_nonzero": 3, "residual_clip": 1.0, "row_bound": 3.0}),
    ),
    "TwoStageClassifier": _classifier(
        (
            {"n_nonzero": 4},
            {},
            {"n_nonzero": 3, "n_blocks": 10, **_THREE},
            {"n_nonzero": 4, "selection_share": 0.5, **_TWO},
            {"n_nonzero": 3, "regularisation": 20.0},
            {"n_nonzero": 3, "row_bound": 1.5},
            {"n_nonzero": 4},
            {"n_nonzero": 5, "n_blocks": 12},
        ),
        ({"n_nonzero": 4}, {"n_nonzero": 3, "row_bound": 3.0, **_THREE}),
    ),
    "ADMMClassifier": _classifier(
        (
            {},
            {"n_steps": 5},
            {"penalty": "l1/2", "strength": 0.001},
            {"n_blocks": 3, "strength": 0.002, **_TWO},
            {"penalty": "l1/2", "n_blocks": 4},
            {"row_bound": 2.0},
            {"n_steps": 40, "strength": 0.002},
            {"strength": 0.01, "n_blocks": 2},
        ),
        ({"coupling": 8.0, "strength": 0.02}, {"row_bound": 3.0, "penalty": "l1/2"}),
    ),
    # ------------------------------------------------------------------ selectors and scalers
    "CorrelationSelector": _ten(
        {"n_features_to_select": 3},
        {},
        {"mechanism": "peeling", "n_features_to_select": 4},
        {"mechanism": "gumbel", "n_features_to_select": 3, "score_func": PositivePart()},
        {"mechanism": "laplace"},
        {"target": "three", "classes": (0, 1, 2), "n_features_to_select": 3},
        {},
        {"delta": 0.0, "score_func": "quadrant", "n_features_to_select": 5},
        {"score_func": "sign", "n_features_to_select": 2},
        {"mechanism": "canonical-lipschitz", "gamma": 0.25, "n_features_to_select": 6},
        without=("fit_intercept",),
    ),
    "KendallSelector": _ten(
        {"n_features_to_select": 3},
        {},
        {"n_features_to_select": 4},
        {"target": "two", "classes": LABELS, "n_features_to_select": 3},
        {"n_features_to_select": 2},
        {"target": "two", "classes": LABELS, "n_features_to_select": 3},
        {},
        {"delta": 0.0, "n_features_to_select": 5},
        {"n_features_to_select": 2},
        {"delta": 0.0, "n_features_to_select": 6},
        without=("fit_intercept", "x_bound", "y_bounds"),
    ),
    "BlockVoteSelector": _ten(
        {"n_features_to_select": 3},
        {"n_features_to_select": 5},
        {"mechanism": "peeling", "n_features_to_select": 4, "n_blocks": 8},
        # So much budget that the blocks decide, not the noise.
        {"epsilon": 20.0, "mechanism": "gumbel", "n_features_to_select": 4, "fit_arguments": {"keys": range(300)}},
        {"mechanism": "laplace", "n_blocks": 6, "n_features_to_select": 4},
        {"target": "two", "classes": LABELS, "n_features_to_select": 3},
        {"n_features_to_select": 6},
        {"delta": 0.0, "n_features_to_select": 5},
        {"target": "three", "classes": (0, 1, 2), "n_features_to_select": 2},
        {"mechanism": "canonical-lipschitz", "gamma": 0.25, "n_features_to_select": 6},
        without=("fit_intercept",),
    ),
    "PrivateScaler": tuple(
        Case(name, "numbers", {"smallest": 0.1, "largest": 10.0, "tail": 0.2, "random_state": 11, **arguments})
        for name, arguments in (
            ("dense", {"epsilon": 20.0}),
            ("wide", {"epsilon": 20.0}),
            ("dense", {"epsilon": 30.0, "delta": 0.0}),
            ("wide", {"epsilon": 20.0, "relation": "add-remove", "n_public": 300}),
            ("wide", {"epsilon": 30.0, "relation": "replace-one"}),
            ("bad", {"epsilon": 20.0, "invalid": "null"}),
            ("wide", {"epsilon": inf}),
            ("dense", {"epsilon": 20.0, "smallest": np.linspace(0.05, 0.2, 12)}),
            ("wide", {"epsilon": 30.0, "tail": 0.3, "random_state": 12}),
            ("dense", {"epsilon": 5.0, "tail": 0.4, "random_state": 13}),
        )
    ),
    "BoundedScaler": tuple(
        Case(name, "numbers", arguments)
        for name, arguments in (
            ("dense", {}),
            ("sparse", {"lower": -0.5, "upper": 0.5}),
            ("wide", {"lower": -2.0, "upper": 2.0}),
            ("wide", {"lower": -1.0, "upper": 3.0}),
            ("bad", {"invalid": "null"}),
            ("wide sparse", {"lower": -2.0, "upper": 2.0}),
            ("dense", {"lower": -np.linspace(0.1, 1.0, 12), "upper": np.linspace(0.3, 2.0, 12)}),
            ("sparse", {"lower": -np.linspace(0.1, 1.0, 60), "upper": np.linspace(0.1, 1.0, 60)}),
            ("dense", {"lower": 0.0, "upper": 0.7}),
            ("bad", {"invalid": "null", "lower": -0.3, "upper": 0.9}),
        )
    ),
}
