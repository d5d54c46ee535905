"""``model.json``: a fitted model with its names, bounds and certificate, as text that anybody can read."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Iterable, Mapping
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
from taciturn.estimators import SparseRegressor
from taciturn.tables import TableBounds, TableEncoder, TableSchema
from taciturn.tables.files import check_readable

__all__ = ["Model", "load"]

_FORMAT = "taciturn model"
_VERSION = 1
_TASKS = ("regress", "classify")
# Files of version 0.1 do not have them; their defaults are what 0.1 did.
_ADDED_PARAMETERS = frozenset({"invalid"})
_NAMED = {name: getattr(estimators, name) for name in estimators.__all__}
_KINDS = {name: kind for name, kind in _NAMED.items() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)}


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model, with everything that is needed to use it and to defend it.

    **Privacy.** Holds what the certificate says was released, what was stated in public, and nothing else: no seed, no
    data.

    Parameters
    ----------
    task : {"regress", "classify"}
        What the model does.
    bounds : TableBounds
        The public statement about the table, for its columns in order.
    encoder : TableEncoder
        Fitted, with these bounds.
    estimator : object
        A fitted estimator of taciturn.
    command : str
        What was typed to make the model.

    See Also
    --------
    load : From a file to a pipeline.
    """

    task: str
    bounds: TableBounds
    encoder: TableEncoder
    estimator: Any
    command: str

    def __post_init__(self) -> None:
        check_choice(_TASKS, task=self.task)
        name = type(self.estimator).__name__
        if _KINDS.get(name) is not type(self.estimator):
            raise ParameterError("estimator", name, f"one of {', '.join(_KINDS)}", "fit one of them")
        check_is_fitted(self.estimator)
        check_is_fitted(self.encoder)
        if (self.task == "classify") != is_classifier(self.estimator):
            raise ParameterError("task", self.task, f"the task of {name}", "name the other one")
        if self.task != self.bounds.target.task:
            raise ParameterError("task", self.task, "the task of the target in the bounds", "describe it in [target]")
        if self.encoder.bounds_ != self.bounds:
            raise ParameterError(
                "bounds", self.bounds, "those of the encoder, for a table", "pass bounds.for_table(schema) to both"
            )
        if len(self.feature_names) != self.estimator.n_features_in_:
            raise ParameterError(
                "n_features_in_", self.estimator.n_features_in_, "one for each feature of the encoder", "fit them alike"
            )

    @classmethod
    def of(cls, bounds: TableBounds, schema: TableSchema, estimator: Any, command: str) -> Model:
        """The model of an estimator that was fitted on a table with these names, encoded by these bounds."""
        bounds = bounds.for_table(schema)
        task = "classify" if is_classifier(estimator) else "regress"
        return cls(task, bounds, TableEncoder(bounds=bounds).fit(schema), estimator, command)

    @property
    def certificate(self) -> Certificate:
        """The privacy statement."""
        certificate: Certificate = self.estimator.certificate_
        return certificate

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features, in the order of the coefficients."""
        return tuple(self.bounds.feature_names)

    def pipeline(self) -> Pipeline:
        """Encoder and estimator as one fitted pipeline, which takes tables with named columns."""
        encoder = TableEncoder(bounds=self.bounds).fit(_schema_of(self.bounds))
        if hasattr(self.estimator, "feature_names_in_"):
            # An estimator that has seen names wants to see them again.
            encoder.set_output(transform="pandas")
        return Pipeline([("encode", encoder), ("model", self.estimator)])

    def to_json(self) -> str:
        """The model as JSON text; :meth:`from_json` reads it back, bit for bit."""
        estimator = self.estimator
        parameters = {name: _plain(name, value) for name, value in estimator.get_params(deep=False).items()}
        # A file must not undo the noise: of a seed the certificate says that there was one.
        del parameters["random_state"]
        if isinstance(estimator, SparseRegressor):
            # As they were at the fit, whatever was set since.
            parameters["y_bounds"] = list(estimator._y_bounds)
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
            "coefficient_std": estimator.coef_std_.tolist() if hasattr(estimator, "coef_std_") else None,
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
        """Read what :meth:`to_json` wrote; whatever is wrong with it is one sentence."""
        content = _envelope(text)
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
        estimator = _estimator(content)
        _set_fitted(estimator, content, names)
        estimator.certificate_ = Certificate.from_json(json.dumps(content["certificate"]))
        _check_agreement(estimator, bounds)
        model = cls.of(bounds, _schema_of(bounds), estimator, content["command"])
        check_choice((model.task,), task=content["task"])
        return model


def load(path: str | os.PathLike[str]) -> Pipeline:
    """The fitted model of a ``model.json`` file.

    Parameters
    ----------
    path : str or path-like
        What ``taciturn fit`` wrote.

    Returns
    -------
    Pipeline
        Steps "encode" and "model". It takes DataFrames of pandas and polars and pyarrow tables with the columns of the
        table that the model was fitted on, and predicts bit for bit what the fitted model did.
        ``taciturn.certificate_of`` has its privacy statement.
    """
    path = Path(path)
    check_readable("model", path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    return Model.from_json(text).pipeline()


def _schema_of(bounds: TableBounds) -> TableSchema:
    """The least that a table needs to have."""
    names = bounds.order or ()
    # Sparse, lest the width of the table be limited.
    return TableSchema(names, ("unknown",) * len(names), sparse=True)


def _damaged(problem: str) -> str:
    return f"model: expected a complete model.json, found {problem}; the file is damaged, ask for a fresh copy."


def _envelope(text: str) -> dict[str, Any]:
    """The content of a file of this format and version."""
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except (ValueError, TypeError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(
            f"model: expected JSON with format {_FORMAT!r}, got something else; pass what taciturn fit wrote as "
            "model.json."
        )
    if content.get("version") != _VERSION or isinstance(content["version"], bool):
        writer = content.get("taciturn")
        named = writer if isinstance(writer, str) and len(writer) < 20 and writer.isprintable() else "of that version"
        raise DataError(
            f"model: expected version {_VERSION}, which taciturn {__version__} reads, got another; read it with "
            f"taciturn {named}."
        )
    return content


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _estimator(content: dict[str, Any]) -> Any:
    """An estimator with its parameters, not fitted."""
    name = content["estimator"]
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise DataError(_damaged("an estimator that taciturn does not have"))
    stated = content["parameters"]
    if not isinstance(stated, dict) or "random_state" in stated:
        raise DataError(_damaged("parameters that an estimator does not have"))
    known = set(kind().get_params(deep=False)) - {"random_state"}
    if not known - _ADDED_PARAMETERS <= set(stated) <= known:
        raise DataError(_damaged("parameters that the estimator does not have"))
    estimator = kind(**{parameter: _restored(value) for parameter, value in stated.items()})
    estimator._check_public()
    if hasattr(estimator, "y_bounds"):
        check_y_bounds(estimator.y_bounds)
    return estimator


def _set_fitted(estimator: Any, content: dict[str, Any], names: list[str]) -> None:
    """What a fit leaves behind, checked for its shape."""
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
    estimator.coef_ = _numbers("coefficients", content["coefficients"], shape)
    nonzero = estimator.coef_ != 0.0
    estimator.support_ = nonzero.any(axis=0) if nonzero.ndim == 2 else nonzero
    if content["coefficient_std"] is not None:
        estimator.coef_std_ = _numbers("coefficient_std", content["coefficient_std"], shape)
    if content["n_steps"] is not None:
        if type(content["n_steps"]) is not int or content["n_steps"] < 0:
            raise DataError(_damaged("a number of steps that is none"))
        estimator.n_iter_ = content["n_steps"]
    if isinstance(estimator, SparseRegressor):
        estimator._y_bounds = check_y_bounds(estimator.y_bounds)
    if _truth("sparse", content):
        estimator.sparsify()


def _check_agreement(estimator: Any, bounds: TableBounds) -> None:
    """Raise if model, bounds and certificate contradict one another: then some of them are another model's."""
    certificate = estimator.certificate_
    if is_classifier(estimator):
        classes = estimator.classes_.tolist()
        for stated in (bounds.target.classes, estimator.classes):
            if stated is not None and not _same_labels(stated, classes):
                raise DataError(_damaged("classes that contradict its bounds"))
        if not all(_same_labels(stated, classes) for stated in _stated("classes", certificate.public)):
            raise CertificateError(_foreign("the certificate of a model with other classes"))
    if certificate.relation != estimator.relation:
        raise CertificateError(_foreign("the certificate of a fit under another relation"))
    if math.isinf(estimator.epsilon) and certificate.status != "not private":
        raise CertificateError(_foreign("a model without noise and a certificate that promises some"))


def _same_labels(stated: Any, classes: list[Any]) -> bool:
    labels = list(stated) if isinstance(stated, list | tuple) else []
    # True is 1 to Python, and another label.
    return {(type(label), label) for label in labels} == {(type(label), label) for label in classes}


def _stated(name: str, public: Mapping[str, Any]) -> Iterable[Any]:
    """A public fact wherever it stands, in the parts of what was composed included."""
    for key, fact in public.items():
        if key == name:
            yield fact
        elif isinstance(fact, Mapping):
            yield from _stated(name, fact)


def _foreign(problem: str) -> str:
    return f"model: expected a certificate of this model, found {problem}; ask for a fresh copy of the file."


def _truth(key: str, content: dict[str, Any]) -> bool:
    if not isinstance(content[key], bool):
        raise DataError(_damaged(f"{key!r} that is neither true nor false"))
    return bool(content[key])


def _numbers(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite numbers in a certain shape; text that looks like a number is none."""
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
    """A parameter in JSON's types, which have no infinity."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(item is None or isinstance(item, str | bool | int | float) for item in items):
        raise ParameterError(name, value, "a number, a text, a list of them or None", "fit again with such a one")
    return "inf" if value == math.inf else items if isinstance(value, list | tuple) else value


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    # Labels stand in lists, so that a class may well be called so.
    return math.inf if value == "inf" else value
