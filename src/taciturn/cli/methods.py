"""Names of models and selectors on the command line."""

from __future__ import annotations

import csv
import inspect
from typing import TYPE_CHECKING, Any, Literal, get_args

from taciturn.cli.screen import stage
from taciturn.core.errors import ParameterError
from taciturn.tables.words import refusal

if TYPE_CHECKING:
    from taciturn.tables import TableBounds

__all__ = [
    "Method",
    "SelectionMethod",
    "Task",
    "add_inference",
    "check_two_classes",
    "find_features",
    "methods_for",
    "new_estimator",
    "new_selector",
    "warm_up",
]

Task = Literal["regress", "classify"]

Method = Literal[
    "auto",
    "frank-wolfe",
    "sparsified",
    "screened",
    "hard-threshold",
    "objective-perturbation",
    "two-stage",
    "admm",
]
"""Values of ``--method``; auto is the default model."""

SelectionMethod = Literal["correlation", "block-vote", "kendall"]

_FAMILIES = {
    "auto": "Sparse",
    "frank-wolfe": "FrankWolfe",
    "sparsified": "Sparsified",
    "screened": "Screened",
    "hard-threshold": "HardThreshold",
    "objective-perturbation": "ObjectivePerturbation",
    "two-stage": "TwoStage",
    "admm": "ADMM",
}
_SELECTORS = {"correlation": "CorrelationSelector", "block-vote": "BlockVoteSelector", "kendall": "KendallSelector"}


def methods_for(task: Task) -> list[str]:
    """Methods for a task."""
    return [method for method in get_args(Method) if _class_of(method, task) is not None]


def new_estimator(method: str, task: Task, nonzero: int | str | None, **parameters: Any) -> Any:
    """Make a model that is not fitted yet; None for ``nonzero`` keeps the default of the method."""
    kind = _class_of(method, task)
    if kind is None:
        raise ParameterError("method", method, f"one of {', '.join(methods_for(task))}", f"choose one that can {task}")
    known = inspect.signature(kind).parameters
    if nonzero is not None:
        if "n_nonzero" not in known:
            raise ParameterError("nonzero", nonzero, f"nothing for the method {method}", "leave the option out")
        parameters["n_nonzero"] = nonzero
    # Tables are encoded as numbers in [-1, 1].
    return kind(x_bound=1.0, **parameters)


def add_inference(
    parameters: dict[str, Any],
    method: str,
    *,
    inference: bool,
    confidence: float | None,
    columns: str | None,
    nonzero: int | str | None,
    bounds: TableBounds,
) -> None:
    """Add the parameters of standard errors and of fixed columns, which the default model alone has."""
    for option, value in (("inference", inference), ("columns", columns)):
        if value and method != "auto":
            raise ParameterError("method", method, f"auto with --{option}", "choose auto, or leave the option out")
    if confidence is not None and not inference:
        raise ParameterError("confidence", confidence, "--inference beside it", "add --inference, or leave it out")
    if columns is not None:
        if nonzero is not None:
            raise ParameterError("nonzero", nonzero, "nothing beside --columns", "leave one of the two out")
        parameters["columns"] = find_features(columns, bounds)
    if inference:
        parameters["inference"] = True
        if confidence is not None:
            from taciturn.core.validation import check_real

            check_real(0.5, 1.0, closed="left", confidence=confidence)
            parameters["confidence_level"] = confidence


def find_features(columns: str, bounds: TableBounds) -> list[int]:
    """The places of the features that a list of names with commas between them stands for.

    A name is that of a column of the table or of a feature. A column stands for its features, also the one that says
    that a cell is missing, but for the first of its categories: all of these are collinear with the intercept.
    """
    features = bounds.feature_names
    places = {feature: [place] for place, feature in enumerate(features)}
    for name, column in bounds.used:
        own = bounds.column_features(name, column)
        if name in own or name not in places:
            places[name] = [places[feature][0] for feature in own if feature != column.reference(name)]
    found: list[int] = []
    # As a line of a CSV file, so that quotes allow names with commas.
    for name in next(csv.reader([columns], skipinitialspace=True), []):
        if name not in places:
            raise refusal("columns", name, "the name of a column or feature of the model", "check its spelling")
        found += places[name]
    if not found or len(set(found)) < len(found):
        raise refusal("columns", columns, "at least one feature, and each of them once", "change the list")
    return sorted(found)


def check_two_classes(classes: Any) -> None:
    """Raise if there are more than two classes, of which a model has no standard errors."""
    if len(classes) > 2:
        raise ParameterError(
            "inference", True, f"two classes (got {len(classes)})", "fit one class against the rest, or without it"
        )


def check_persons(model: Any, bounds: TableBounds) -> None:
    """Raise if the bounds name persons and the method has no guarantee for them, before anything is read or spent."""
    if bounds.person is not None and model.persons_refused is not None:
        raise ParameterError(
            "method",
            type(model).__name__,
            f"one for persons, as the bounds file has [person], and here {model.persons_refused}",
            "choose auto, or correlation for a selection, or take [person] out",
        )


def warm_up(model: Any, X: Any) -> None:
    """Compile what a fit to this table calls, before a file says that the budget is being spent."""
    import scipy.sparse as sp

    with stage("preparing"):
        model.warm_up(sparse=getattr(X, "is_sparse", sp.issparse(X)))


def new_selector(method: str, **parameters: Any) -> Any:
    """Make a selector that is not fitted yet; parameters that it does not have are ignored."""
    import taciturn

    kind = getattr(taciturn, _SELECTORS[method])
    known = inspect.signature(kind).parameters
    # Tables are encoded as numbers in [-1, 1].
    parameters = {"x_bound": 1.0} | parameters
    return kind(**{name: value for name, value in parameters.items() if name in known})


def _class_of(method: str, task: Task) -> Any:
    import taciturn

    name = _FAMILIES[method] + ("Regressor" if task == "regress" else "Classifier")
    return getattr(taciturn, name, None)
