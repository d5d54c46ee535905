"""Ten seeded fits for every reproduction, and ten seeded scores of public models."""

from math import inf

import numpy as np
import scipy.sparse as sp
from seeded_cases import LABELS, Case
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


def _published(*cases):
    """Cases of (table, target, arguments)."""
    return tuple(
        Case(name, target, {"random_state": 11 + place, **arguments})
        for place, (name, target, arguments) in enumerate(cases)
    )


def _losses(first, second, few, explicit):
    """Ten cases of a class with both losses; ``few`` keeps them small, ``explicit`` are the last two."""
    return _published(
        ("dense", "numbers", {"loss": "squared", **few}),
        ("dense", "two", {"loss": "logistic", **few}),
        ("sparse", "numbers", {"loss": "squared", "epsilon": 5.0, **few}),
        ("sparse", "two", {"loss": "logistic", "epsilon": 5.0, **few}),
        ("dense", "numbers", {"loss": "squared", "epsilon": inf, **few}),
        ("dense", "two", {"loss": "logistic", "epsilon": 0.5, **few}),
        ("dense", "numbers", {"loss": "squared", **few, **first}),
        ("sparse", "two", {"loss": "logistic", **few, **second}),
        ("dense", "numbers", {"loss": "squared", **few, **explicit[0]}),
        ("sparse", "two", {"loss": "logistic", **few, **explicit[1]}),
    )


def _split(printed, cases):
    """The cases with the papers' own parts of a budget, as they were recorded; ``epsilon`` is that of the steps."""
    split = []
    for case in cases:
        given = dict(case.arguments)
        for total, parts in printed.items():
            first, second = parts
            values = {first: given.pop(total, parts[first]), second: given.pop(second, parts[second])}
            given |= values
        split.append(Case(case.table, case.target, given))
    return tuple(split)


_COUNTED = {"epsilon": {"epsilon_optimise": 0.95, "epsilon_count": 0.05}}
_ADP = {
    "epsilon": {"epsilon_optimise": 2.5, "epsilon_screen": 2.5},
    "delta": {"delta_optimise": 1 / 6000, "delta_screen": 1 / 6000},
}
_RNM = {
    "epsilon": {"epsilon_optimise": 4.9, "epsilon_screen": 0.1},
    "delta": {"delta_optimise": 1 / 4000, "delta_screen": 1 / 12000},
}

PUBLISHED = {
    "PrivateLasso": _losses(
        {"literal_appendix": True, "epsilon": 5.0},
        {"literal_appendix": True},
        {"n_steps": 20},
        ({"radius": 2.0, "gradient_bound": 4.0}, {"radius": 1.5, "delta": 1e-4}),
    ),
    "Sparsifier": _split(
        _COUNTED,
        _losses(
            {"literal_appendix": True, "epsilon_count": 0.5},
            {"count_range": (4, 12), "epsilon_count": 1.0},
            {"n_steps": 20, "n_count_steps": 30},
            ({"radius": 2.0, "gradient_bound": 4.0}, {"radius": 1.5, "precision": 1.5}),
        ),
    ),
    "ADPScreen": _split(
        _ADP,
        _losses(
            {"screen_at": "last"},
            {"screen_at": 5, "epsilon_screen": inf},
            # Noise at the printed share screens everything.
            {"n_steps": 20, "epsilon_screen": 500.0, "screen_at": 3},
            ({"radius": 2.0, "gradient_bound": 4.0}, {"radius": 1.5, "screen_at": 7}),
        ),
    ),
    "DPIGHT": _losses(
        {"variant": "corollary-5.6", "oracle": (1.0, 0.1, 1.0), "gradient_bound": 3.0},
        {"variant": "corollary-5.8", "gradient_bound": 3.0},
        {"n_nonzero": 3},
        ({"step_size": 0.5, "n_steps": 5}, {"step_size": 0.25, "n_steps": 4, "gradient_bound": 2.0}),
    ),
    "TwoStage": _losses(
        {"n_blocks": 10, "alpha": 0.01},
        {"n_blocks": 8, "alpha": 0.05},
        {"n_nonzero": 3},
        ({"radius": 2.0, "epsilon": 5.0}, {"alpha": 0.02}),
    ),
    "RNMScreen": _split(
        _RNM,
        _published(
            ("dense", "numbers", {"n_steps": 20}),
            ("sparse", "numbers", {"n_steps": 20}),
            ("dense", "numbers", {"n_steps": 20, "epsilon": 0.5}),
            ("dense", "numbers", {"n_steps": 20, "epsilon_screen": 5.0}),
            ("sparse", "numbers", {"n_steps": 20, "epsilon_screen": 5.0, "delta_screen": 1e-6}),
            ("dense", "numbers", {"n_steps": 20, "epsilon": inf}),
            ("sparse", "numbers", {"n_steps": 20, "epsilon": inf, "epsilon_screen": inf}),
            ("dense", "numbers", {"n_steps": 20, "gradient_bound": 100.0}),
            ("dense", "numbers", {"n_steps": 20, "radius": 2.0}),
            ("sparse", "numbers", {"n_steps": 20, "radius": 1.5, "epsilon": 20.0}),
        ),
    ),
    "MultinomialPrivateLasso": _published(
        ("dense", "three", {"n_steps": 20}),
        ("sparse", "three", {"n_steps": 20}),
        ("dense", "three", {"n_steps": 20, "epsilon": 0.5}),
        ("dense", "three", {"n_steps": 20, "epsilon": 5.0}),
        ("sparse", "three", {"n_steps": 20, "epsilon": inf}),
        ("dense", "two", {"n_steps": 20}),
        ("sparse", "three", {"n_steps": 30, "gradient_bound": 1.0}),
        ("dense", "three", {"n_steps": 15, "delta": 1e-4}),
        ("dense", "three", {"n_steps": 20, "radius": 2.0}),
        ("sparse", "three", {"n_steps": 20, "radius": 1.5, "epsilon": 5.0}),
    ),
    "PrivateADMM": _published(
        ("dense", "two", {}),
        ("sparse", "two", {}),
        ("dense", "two", {"epsilon": 0.5}),
        ("sparse", "two", {"epsilon": 5.0}),
        ("dense", "two", {"epsilon": inf}),
        ("dense", "two", {"penalty": "l1/2"}),
        ("sparse", "two", {"penalty": "l1/2", "epsilon": 5.0}),
        ("dense", "two", {"n_steps": 4}),
        ("dense", "two", {"strength": 0.05, "coupling": 0.5}),
        ("sparse", "two", {"strength": 0.002, "coupling": 1.0, "epsilon": 5.0}),
    ),
    "DPSIS": _published(
        ("dense", "numbers", {"n_features_to_select": 3}),
        ("sparse", "numbers", {}),
        ("dense", "numbers", {"n_features_to_select": 4, "epsilon": 0.5}),
        ("sparse", "numbers", {"n_features_to_select": 4, "epsilon": 5.0}),
        ("dense", "numbers", {"n_features_to_select": 4, "epsilon": inf}),
        ("dense", "numbers", {"n_features_to_select": 5, "gamma": 0.0}),
        ("sparse", "numbers", {"n_features_to_select": 5, "gamma": 0.25}),
        ("wide", "numbers", {"n_features_to_select": 2}),
        ("wide sparse", "numbers", {"n_features_to_select": 6, "epsilon": 20.0}),
        ("dense", "numbers", {"n_features_to_select": 12}),
    ),
    "TwoStageSelector": _published(
        ("dense", "numbers", {"n_features_to_select": 3}),
        ("sparse", "numbers", {}),
        ("dense", "numbers", {"n_features_to_select": 4, "epsilon": 0.5}),
        ("sparse", "numbers", {"n_features_to_select": 4, "epsilon": 5.0}),
        ("dense", "numbers", {"n_features_to_select": 4, "epsilon": inf}),
        ("dense", "numbers", {"n_features_to_select": 5, "alpha": 0.01}),
        ("sparse", "numbers", {"n_features_to_select": 5, "n_blocks": 6}),
        ("wide", "numbers", {"n_features_to_select": 2}),
        ("wide sparse", "numbers", {"n_features_to_select": 6, "epsilon": 20.0}),
        ("dense", "numbers", {"n_features_to_select": 12}),
    ),
}

# ------------------------------------------------------------------ scores


class PublicRegressor(RegressorMixin, BaseEstimator):
    """A model that anybody could have written down: no bit of a score depends on how a class of ours fits."""

    def __init__(self, y_bounds=(-1.0, 1.0)):
        self.y_bounds = y_bounds

    def fit(self, X, y):
        raise NotImplementedError

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        one, four = (np.asarray(X[:, [column]].todense() if sp.issparse(X) else X[:, [column]]) for column in (1, 4))
        return (0.5 * one - 0.5 * four).ravel()


class PublicClassifier(ClassifierMixin, PublicRegressor):
    """The same for labels, cut at public points."""

    def __init__(self, classes=LABELS):
        self.classes = classes

    @property
    def classes_(self):
        return np.array(self.classes)

    def predict(self, X):
        margin = PublicRegressor.predict(self, X)
        if len(self.classes) == 2:
            return self.classes_[(margin <= 0).astype(int)]
        return self.classes_[np.digitize(margin, [-0.1, 0.1])]


_NUMBERS, _WIDE_NUMBERS = PublicRegressor(), PublicRegressor(y_bounds=(-3.0, 5.0))
_CODES = {"model": PublicClassifier((0, 1, 2))}

SCORES = tuple(
    Case(name, target, {"random_state": 11 + place, **arguments})
    for place, (name, target, arguments) in enumerate(
        (
            ("dense", "numbers", {"model": _NUMBERS}),
            ("sparse", "numbers", {"model": _NUMBERS, "epsilon": 5.0, "metric": "mean absolute error"}),
            ("wide", "numbers", {"model": _WIDE_NUMBERS, "epsilon": 0.5, "delta": 1e-6}),
            ("dense", "two", {"model": PublicClassifier(), "relation": "add-remove", "n_public": 300}),
            ("sparse", "three", {**_CODES, "relation": "replace-one"}),
            ("bad", "numbers", {"model": _NUMBERS, "invalid": "null"}),
            ("wide sparse", "numbers", {"model": _WIDE_NUMBERS, "epsilon": inf}),
            ("dense", "three", {**_CODES, "metric": "balanced accuracy", "epsilon": 5.0}),
            ("bad", "two", {"model": PublicClassifier(), "invalid": "null", "metric": "balanced accuracy"}),
            ("wide", "numbers", {"model": _WIDE_NUMBERS, "relation": "replace-one", "metric": "mean absolute error"}),
        )
    )
)
"""Cases of ``private_score``, with the model among the arguments."""
