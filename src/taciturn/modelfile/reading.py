"""From the content of ``model.json`` to a fitted estimator, with the checks of a file that may be hostile."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from taciturn import estimators
from taciturn._version import __version__
from taciturn.core.errors import CertificateError, DataError
from taciturn.data.target import check_y_bounds
from taciturn.modelfile.inference import check_inference_fact, set_inference
from taciturn.modelfile.values import (
    damaged,
    foreign,
    from_plain,
    public_facts,
    read_classes,
    read_numbers,
    read_truth,
)
from taciturn.tables import TableBounds

__all__ = [
    "CLASSES",
    "FORMAT",
    "NOT_STORED",
    "VERSION",
    "check_agreement",
    "check_format",
    "new_estimator",
    "set_fitted",
]

FORMAT = "taciturn model"
"""Name of the form of the file."""

VERSION = 2
"""Version of the form that is written."""

NOT_STORED = frozenset({"account", "random_state"})
"""Parameters that no file holds: with the seed a reader could remove the noise, and an account's URL is the owner's."""

# Earlier files do not have these parameters; earlier versions behaved like their defaults.
_ADDED_PARAMETERS = frozenset({"invalid", "columns", "inference", "confidence_level", "class_weight"})
# What a class did before it had these parameters, which earlier files do not state.
_BEFORE_PARAMETERS = {"SparseRegressor": {"loss": "huber"}}
# Parameters of files of version 1 that have another name now.
_RENAMED = {"HardThreshold": {"threshold": "mechanism", "radius": "coef_bound"}}
# Parameters that were None in files of version 1 where they are "auto" now.
_AUTOMATIC = ("residual_clip", "row_bound", "threshold")
# Parameters that files of version 1 state for a target mapped to [-1, 1].
_OF_MAPPED_TARGET = ("residual_clip", "radius", "coef_bound")
_NAMED = {name: getattr(estimators, name) for name in estimators.__all__}
CLASSES: dict[str, Any] = {
    name: kind for name, kind in _NAMED.items() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
}
"""Estimators by the names that a file gives them."""


def check_format(content: Any) -> dict[str, Any]:
    """Return the content of a file; raise if its format or version is another."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(
            f"model: expected JSON with format {FORMAT!r}, got something else; pass what taciturn fit wrote as "
            "model.json."
        )
    if content.get("version") not in (1, VERSION) or isinstance(content["version"], bool):
        writer = content.get("taciturn")
        named = writer if isinstance(writer, str) and len(writer) < 20 and writer.isprintable() else "of that version"
        raise DataError(
            f"model: expected version {VERSION}, which taciturn {__version__} reads, got another; read it with "
            f"taciturn {named}."
        )
    return content


def new_estimator(content: dict[str, Any]) -> Any:
    """Make an estimator with the parameters of the file; it is not fitted."""
    name = content["estimator"]
    kind = CLASSES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DataError(damaged("an estimator that taciturn does not have"))
    stated = content["parameters"]
    if not isinstance(stated, dict) or not NOT_STORED.isdisjoint(stated):
        raise DataError(damaged("parameters that an estimator does not have"))
    if content["version"] == 1:
        stated = _upgraded_parameters(kind.__name__, stated)
    stated = _BEFORE_PARAMETERS.get(kind.__name__, {}) | stated
    known = set(kind().get_params(deep=False)) - NOT_STORED
    if not known - _ADDED_PARAMETERS <= set(stated) <= known:
        raise DataError(damaged("parameters that the estimator does not have"))
    estimator = kind(**{parameter: from_plain(value) for parameter, value in stated.items()})
    estimator.check_parameters()
    return estimator


def _upgraded_parameters(kind: str, stated: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a file of version 1 in today's names, units and words for automatic choices."""
    renamed = next((names for family, names in _RENAMED.items() if kind.startswith(family)), {})
    parameters = {renamed.get(name, name): value for name, value in stated.items()}
    for name in _AUTOMATIC:
        if name in parameters and parameters[name] is None:
            parameters[name] = "auto"
    if "y_bounds" in parameters:
        low, high = check_y_bounds(parameters["y_bounds"])
        for name in _OF_MAPPED_TARGET:
            if type(parameters.get(name)) in (int, float):
                parameters[name] *= high / 2.0 - low / 2.0
    return parameters


def set_fitted(estimator: Any, content: dict[str, Any], names: list[str]) -> None:
    """Set the fitted attributes, after a check of their shapes."""
    n_features = len(names)
    estimator.n_features_in_ = n_features
    if read_truth("named", content):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    shape: tuple[int, ...] = (n_features,)
    if content["task"] == "classify":
        estimator.classes_ = read_classes(content["classes"])
        n_outputs = 1 if estimator.classes_.size == 2 else estimator.classes_.size
        shape = (n_outputs, n_features)
        estimator.intercept_ = read_numbers("intercept", content["intercept"], (n_outputs,))
    else:
        if content["classes"] is not None:
            raise DataError(damaged("classes of a number"))
        estimator.intercept_ = float(read_numbers("intercept", content["intercept"], ()))
        estimator.y_bounds_ = check_y_bounds(estimator.y_bounds)
    estimator.coef_ = read_numbers("coefficients", content["coefficients"], shape)
    nonzero = estimator.coef_ != 0.0
    estimator.support_ = nonzero.any(axis=0) if nonzero.ndim == 2 else nonzero
    if content["n_steps"] is not None:
        if type(content["n_steps"]) is not int or content["n_steps"] < 0:
            raise DataError(damaged("a number of steps that is none"))
        estimator.n_iter_ = content["n_steps"]
    # Files of earlier versions have no such key.
    set_inference(estimator, content.get("inference"))
    if read_truth("sparse", content):
        estimator.sparsify()


def check_agreement(estimator: Any, bounds: TableBounds) -> None:
    """Raise if model, bounds and certificate contradict one another, because they come from different models."""
    certificate = estimator.certificate_
    if is_classifier(estimator):
        classes = estimator.classes_.tolist()
        for stated in (bounds.target.classes, estimator.classes):
            if stated is not None and not _same_labels(stated, classes):
                raise DataError(damaged("classes that contradict its bounds"))
        if not all(_same_labels(stated, classes) for stated in public_facts("classes", certificate.public)):
            raise CertificateError(foreign("the certificate of a model with other classes"))
    if certificate.relation != estimator.relation:
        raise CertificateError(foreign("the certificate of a fit under another relation"))
    if bounds.person is not None and certificate.unit != "person":
        raise CertificateError(foreign("bounds that name persons and a certificate about single records"))
    if math.isinf(estimator.epsilon) and certificate.status != "not private":
        raise CertificateError(foreign("a model without noise and a certificate that promises some"))
    check_inference_fact(estimator)


def _same_labels(stated: Any, classes: list[Any]) -> bool:
    labels = list(stated) if isinstance(stated, list | tuple) else []
    # True equals 1 in Python, but is another label.
    return {(type(label), label) for label in labels} == {(type(label), label) for label in classes}
