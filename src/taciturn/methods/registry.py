"""The registry of methods: one line each, read by commands, error texts, model files, audits and conformance tests."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Method:
    """A method by its name on the command line, and the public classes of its module, "" where it has none."""

    name: str
    module: str
    regressor: str = ""
    classifier: str = ""
    selector: str = ""
    scaler: str = ""
    survival: str = ""

    def load(self, kind: str) -> Any:
        """Return the class for a kind: ``"regressor"``, ``"classifier"``, ``"selector"``, ``"scaler"``, ``"survival"``.

        None if there is none.
        """
        own = getattr(self, kind)
        return getattr(import_module(self.module), own) if own else None


KINDS = ("regressor", "classifier", "selector", "scaler", "survival")
"""What classes do."""

_HERE = "taciturn.methods"

METHODS = [
    Method("auto", f"{_HERE}.sparse.estimator", "SparseRegressor", "SparseClassifier"),
    Method("frank-wolfe", f"{_HERE}.frank_wolfe.estimator", "FrankWolfeRegressor", "FrankWolfeClassifier"),
    Method("sparsified", f"{_HERE}.frank_wolfe.estimator", "SparsifiedRegressor", "SparsifiedClassifier"),
    Method("screened", f"{_HERE}.screening.estimator", "ScreenedRegressor", "ScreenedClassifier"),
    Method("hard-threshold", f"{_HERE}.hard_threshold.estimator", "HardThresholdRegressor", "HardThresholdClassifier"),
    Method(
        "objective-perturbation",
        f"{_HERE}.objective.estimator",
        "ObjectivePerturbationRegressor",
        "ObjectivePerturbationClassifier",
    ),
    Method("two-stage", f"{_HERE}.objective.estimator", "TwoStageRegressor", "TwoStageClassifier"),
    Method("admm", f"{_HERE}.objective.estimator", classifier="ADMMClassifier"),
    Method("correlation", f"{_HERE}.selection.estimator", selector="CorrelationSelector"),
    Method("block-vote", f"{_HERE}.selection.estimator", selector="BlockVoteSelector"),
    Method("kendall", f"{_HERE}.selection.estimator", selector="KendallSelector"),
    Method("bounded", f"{_HERE}.scaling.estimator", scaler="BoundedScaler"),
    Method("private", f"{_HERE}.scaling.estimator", scaler="PrivateScaler"),
    Method("hazards", f"{_HERE}.survival.estimator", survival="SparseSurvival"),
]


def method_names(*kinds: str) -> list[str]:
    """Names of the methods that have a class of one of these kinds, in the order of the registry."""
    return [method.name for method in METHODS if any(getattr(method, kind) for kind in kinds)]


def find_class(name: str, kind: str) -> Any:
    """Return the class of a kind that a method has, or None."""
    return next((method.load(kind) for method in METHODS if method.name == name), None)


def classes_of(*kinds: str) -> dict[str, Any]:
    """Return the classes of these kinds by their names, in the order of the registry."""
    found = ((getattr(method, kind), method.load(kind)) for method in METHODS for kind in kinds)
    return {name: loaded for name, loaded in found if name}


def list_accepting(refusal: str) -> str:
    """Names, for a sentence, of the classes whose reason against something, such as ``persons_refused``, is None."""
    classes = classes_of(*KINDS)
    *names, last = [name for name, kind in classes.items() if getattr(kind, refusal, "none stated") is None]
    return f"{', '.join(names)} or {last}"
