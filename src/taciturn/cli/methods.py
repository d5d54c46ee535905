"""Names of models and selectors on the command line."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_args

from taciturn.cli.screen import stage
from taciturn.core.errors import ParameterError

__all__ = [
    "Method",
    "SelectionMethod",
    "Task",
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
    return kind(**parameters)


def warm_up(model: Any, X: Any) -> None:
    """Compile what a fit to this table calls, before a file says that the budget is being spent."""
    import scipy.sparse as sp

    with stage("preparing"):
        model.warm_up(sparse=sp.issparse(X))


def new_selector(method: str, **parameters: Any) -> Any:
    """Make a selector that is not fitted yet; parameters that it does not have are ignored."""
    import taciturn

    kind = getattr(taciturn, _SELECTORS[method])
    known = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in parameters.items() if name in known})


def _class_of(method: str, task: Task) -> Any:
    import taciturn

    name = _FAMILIES[method] + ("Regressor" if task == "regress" else "Classifier")
    return getattr(taciturn, name, None)
