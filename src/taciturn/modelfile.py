"""``model.json``: a fitted model with its feature names, bounds and certificate."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from taciturn import estimators
from taciturn._version import __version__
from taciturn.certificate import Certificate
from taciturn.core.errors import CertificateError, DataError, ParameterError, TaciturnError
from taciturn.core.validation import check_choice
from taciturn.data.target import check_y_bounds
from taciturn.tables import TableBounds, TableEncoder, TableSchema
from taciturn.tables.files import check_readable

__all__ = ["Model", "load"]

_FORMAT = "taciturn model"
_VERSION = 2
# Files of version 1 do not have these parameters; version 0.1 behaved like their defaults.
_ADDED_PARAMETERS = frozenset({"invalid"})
# What a class did before it had these parameters, which earlier files do not state.
_BEFORE_PARAMETERS = {"SparseRegressor": {"loss": "huber"}}
# Parameters of files of version 1 that have another name now.
_RENAMED = {"HardThreshold": {"threshold": "mechanism", "radius": "coef_bound"}}
# Parameters that were None in files of version 1 where they are "auto" now.
_AUTOMATIC = ("residual_clip", "row_bound", "threshold")
# Parameters that files of version 1 state for a target mapped to [-1, 1].
_OF_MAPPED_TARGET = ("residual_clip", "radius", "coef_bound")
_NAMED = {name: getattr(estimators, name) for name in estimators.__all__}
_CLASSES: dict[str, Any] = {
    name: kind for name, kind in _NAMED.items() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
}


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model with all that is needed to use it and to check its guarantee.

    **Privacy.** Holds the releases that the certificate lists and public facts: no seed, and no data.

    Parameters
    ----------
    bounds : TableBounds
        Public bounds of the columns, resolved for the table (:meth:`TableBounds.for_table`).
    estimator : object
        A fitted estimator of taciturn.
    command : str
        The command that made the model.

    See Also
    --------
    load : Read a file as a pipeline.
    """

    bounds: TableBounds
    estimator: Any
    command: str

    def __post_init__(self) -> None:
        name = type(self.estimator).__name__
        if _CLASSES.get(name) is not type(self.estimator):
            raise ParameterError("estimator", name, f"one of {', '.join(_CLASSES)}", "fit one of them")
        check_is_fitted(self.estimator)
        if self.task != self.bounds.target.task:
            raise ParameterError("estimator", name, f"one that can {self.bounds.target.task}", "fit another")
        if self.bounds.order is None:
            raise ParameterError("bounds", self.bounds, "bounds for a table", "pass bounds.for_table(schema)")
        if len(self.feature_names) != self.estimator.n_features_in_:
            raise ParameterError(
                "n_features_in_", self.estimator.n_features_in_, "one for each feature of the bounds", "fit them alike"
            )

    @property
    def task(self) -> str:
        """The learning task: "regress" or "classify"."""
        return "classify" if is_classifier(self.estimator) else "regress"

    @property
    def encoder(self) -> TableEncoder:
        """A fitted encoder, which maps tables to the features of the estimator."""
        names = self.bounds.order or ()
        # The least that a table needs to have; sparse, because only sparse tables may be this wide.
        schema = TableSchema(names, ("unknown",) * len(names), sparse=True)
        return TableEncoder(bounds=self.bounds).fit(schema)

    @property
    def certificate(self) -> Certificate:
        """Certificate of the fit."""
        certificate: Certificate = self.estimator.certificate_
        return certificate

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the coefficients."""
        return tuple(self.bounds.feature_names)

    def pipeline(self) -> Pipeline:
        """Return encoder and estimator as one fitted pipeline, which takes tables with named columns."""
        encoder = self.encoder
        if hasattr(self.estimator, "feature_names_in_"):
            # An estimator that was fitted with feature names warns if it predicts without them.
            encoder.set_output(transform="pandas")
        return Pipeline([("encode", encoder), ("model", self.estimator)])

    def to_json(self) -> str:
        """Return the model as JSON text; :meth:`from_json` restores it bit for bit."""
        estimator = self.estimator
        parameters = {name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()}
        # With the seed, a reader could remove the noise. The certificate says that there was one.
        del parameters["random_state"]
        if self.task == "regress":
            # The bounds of the fit: the parameter may have been set since.
            parameters["y_bounds"] = list(estimator.y_bounds_)
        sparse = sp.issparse(estimator.coef_)
        coefficients = estimator.coef_.toarray() if sparse else estimator.coef_
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "taciturn": __version__,
            "task": self.task,
            "target": self.bounds.target.name,
            "bounds": json.loads(self.bounds.to_json()),
            "features": self.feature_names,
            "estimator": type(estimator).__name__,
            "parameters": parameters,
            "coefficients": coefficients.tolist() if self.task == "classify" else coefficients.ravel().tolist(),
            "intercept": np.asarray(estimator.intercept_).tolist(),
            "classes": estimator.classes_.tolist() if self.task == "classify" else None,
            "n_steps": int(estimator.n_iter_) if hasattr(estimator, "n_iter_") else None,
            "sparse": sparse,
            "named": hasattr(estimator, "feature_names_in_"),
            "certificate": json.loads(self.certificate.to_json()),
            "command": self.command,
        }
        lines = (f'  "{key}": {json.dumps(value, allow_nan=False)}' for key, value in content.items())
        return "{\n" + ",\n".join(lines) + "\n}"

    @classmethod
    def from_json(cls, text: str) -> Model:
        """Read what :meth:`to_json` wrote; raise an error of one sentence if the text is damaged."""
        content = _parse(text)
        try:
            return cls._from_content(content)
        except TaciturnError:
            raise
        except KeyError as error:
            problem = f"no {error}"
        except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError):
            problem = "values of other types than a model has"
        raise DataError(_damaged(problem))

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Model:
        for key in ("taciturn", "command"):
            if not isinstance(content[key], str):
                raise DataError(_damaged(f"{key!r} that is no text"))
        bounds = TableBounds.from_json(json.dumps(content["bounds"]))
        if bounds.order is None or content["target"] != bounds.target.name:
            raise DataError(_damaged("bounds for another table"))
        names = bounds.feature_names
        if content["features"] != names:
            raise DataError(_damaged("features that do not follow from its bounds"))
        estimator = _new_estimator(content)
        _set_fitted(estimator, content, names)
        estimator.certificate_ = Certificate.from_json(json.dumps(content["certificate"]))
        _check_agreement(estimator, bounds)
        model = cls(bounds, estimator, content["command"])
        check_choice((model.task,), task=content["task"])
        return model


def load(path: str | os.PathLike[str]) -> Pipeline:
    """Read the fitted model of a ``model.json`` file.

    Parameters
    ----------
    path : str or path-like
        A file that ``taciturn fit`` wrote.

    Returns
    -------
    Pipeline
        Steps "encode" and "model". It takes DataFrames of pandas and polars and pyarrow tables with the columns of the
        training table, and predicts the same bits as the fitted model. ``taciturn.certificate_of`` returns its
        certificate.
    """
    path = Path(path)
    check_readable("model", path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    return Model.from_json(text).pipeline()


def _damaged(problem: str) -> str:
    return f"model: expected a complete model.json, found {problem}; the file is damaged, ask for a fresh copy."


def _parse(text: str) -> dict[str, Any]:
    """Parse the text; raise if its format or version is another."""
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, TypeError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(
            f"model: expected JSON with format {_FORMAT!r}, got something else; pass what taciturn fit wrote as "
            "model.json."
        )
    if content.get("version") not in (1, _VERSION) or isinstance(content["version"], bool):
        writer = content.get("taciturn")
        named = writer if isinstance(writer, str) and len(writer) < 20 and writer.isprintable() else "of that version"
        raise DataError(
            f"model: expected version {_VERSION}, which taciturn {__version__} reads, got another; read it with "
            f"taciturn {named}."
        )
    return content


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _new_estimator(content: dict[str, Any]) -> Any:
    """Make an estimator with the parameters of the file; it is not fitted."""
    name = content["estimator"]
    kind = _CLASSES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DataError(_damaged("an estimator that taciturn does not have"))
    stated = content["parameters"]
    if not isinstance(stated, dict) or "random_state" in stated:
        raise DataError(_damaged("parameters that an estimator does not have"))
    if content["version"] == 1:
        stated = _upgraded_parameters(kind.__name__, stated)
    stated = _BEFORE_PARAMETERS.get(kind.__name__, {}) | stated
    known = set(kind().get_params(deep=False)) - {"random_state"}
    if not known - _ADDED_PARAMETERS <= set(stated) <= known:
        raise DataError(_damaged("parameters that the estimator does not have"))
    estimator = kind(**{parameter: _restored(value) for parameter, value in stated.items()})
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


def _set_fitted(estimator: Any, content: dict[str, Any], names: list[str]) -> None:
    """Set the fitted attributes, after a check of their shapes."""
    n_features = len(names)
    estimator.n_features_in_ = n_features
    if _truth("named", content):
        estimator.feature_names_in_ = np.array(names, dtype=object)
    shape: tuple[int, ...] = (n_features,)
    if content["task"] == "classify":
        estimator.classes_ = _classes(content["classes"])
        n_outputs = 1 if estimator.classes_.size == 2 else estimator.classes_.size
        shape = (n_outputs, n_features)
        estimator.intercept_ = _numbers("intercept", content["intercept"], (n_outputs,))
    else:
        if content["classes"] is not None:
            raise DataError(_damaged("classes of a number"))
        estimator.intercept_ = float(_numbers("intercept", content["intercept"], ()))
        estimator.y_bounds_ = check_y_bounds(estimator.y_bounds)
    estimator.coef_ = _numbers("coefficients", content["coefficients"], shape)
    nonzero = estimator.coef_ != 0.0
    estimator.support_ = nonzero.any(axis=0) if nonzero.ndim == 2 else nonzero
    if content["n_steps"] is not None:
        if type(content["n_steps"]) is not int or content["n_steps"] < 0:
            raise DataError(_damaged("a number of steps that is none"))
        estimator.n_iter_ = content["n_steps"]
    if _truth("sparse", content):
        estimator.sparsify()


def _check_agreement(estimator: Any, bounds: TableBounds) -> None:
    """Raise if model, bounds and certificate contradict one another, because they come from different models."""
    certificate = estimator.certificate_
    if is_classifier(estimator):
        classes = estimator.classes_.tolist()
        for stated in (bounds.target.classes, estimator.classes):
            if stated is not None and not _same_labels(stated, classes):
                raise DataError(_damaged("classes that contradict its bounds"))
        if not all(_same_labels(stated, classes) for stated in _public_facts("classes", certificate.public)):
            raise CertificateError(_foreign("the certificate of a model with other classes"))
    if certificate.relation != estimator.relation:
        raise CertificateError(_foreign("the certificate of a fit under another relation"))
    if math.isinf(estimator.epsilon) and certificate.status != "not private":
        raise CertificateError(_foreign("a model without noise and a certificate that promises some"))


def _same_labels(stated: Any, classes: list[Any]) -> bool:
    labels = list(stated) if isinstance(stated, list | tuple) else []
    # True equals 1 in Python, but is another label.
    return {(type(label), label) for label in labels} == {(type(label), label) for label in classes}


def _public_facts(name: str, public: Mapping[str, Any]) -> Iterator[Any]:
    """Every public fact of this name, in a composed certificate those of all its parts."""
    for key, fact in public.items():
        if key == name:
            yield fact
        elif isinstance(fact, Mapping):
            yield from _public_facts(name, fact)


def _foreign(problem: str) -> str:
    return f"model: expected a certificate of this model, found {problem}; ask for a fresh copy of the file."


def _truth(key: str, content: dict[str, Any]) -> bool:
    if not isinstance(content[key], bool):
        raise DataError(_damaged(f"{key!r} that is neither true nor false"))
    return bool(content[key])


def _numbers(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Convert nested lists to an array of finite numbers of this shape; text is refused even if it looks like one."""
    if not all(type(entry) in (int, float) for entry in _leaves(value)):
        raise DataError(_damaged(f"{key!r} without numbers"))
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise DataError(_damaged(f"{key!r} of another shape, or not finite"))
    return array


def _leaves(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        return [value]
    return (leaf for row in value for leaf in (row if isinstance(row, list) else [row]))


def _classes(value: Any) -> np.ndarray:
    listed = value if isinstance(value, list) else []
    kinds = {type(label) for label in listed}
    if len(listed) < 2 or len(kinds) != 1 or not kinds <= {str, int, bool, float} or len(set(listed)) < len(listed):
        raise DataError(_damaged("classes that are not different labels of one type"))
    return np.array(listed)


def _plain(name: str, value: Any) -> Any:
    """Convert a parameter to JSON's types, which have no infinity."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(item is None or isinstance(item, str | bool | int | float) for item in items):
        raise ParameterError(name, value, "a number, a text, a list of them or None", "fit again with such a value")
    return "inf" if value == math.inf else items if isinstance(value, list | tuple) else value


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    # Labels are in lists, so that a class may be called "inf".
    return math.inf if value == "inf" else value
