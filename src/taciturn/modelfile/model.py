"""A fitted model with all that is needed to use it, written to ``model.json`` and read from it."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from taciturn._version import __version__
from taciturn.certificate import Certificate
from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.strict_json import parse_strictly
from taciturn.core.validation import check_choice
from taciturn.data.target import DEFAULT_X_BOUND
from taciturn.modelfile.inference import inference_to_content
from taciturn.modelfile.reading import (
    CLASSES,
    FORMAT,
    NOT_STORED,
    VERSION,
    check_agreement,
    check_format,
    new_estimator,
    set_fitted,
)
from taciturn.modelfile.values import damaged, to_plain
from taciturn.tables import TableBounds, TableEncoder, TableSchema
from taciturn.tables.files import check_readable

if TYPE_CHECKING:
    from taciturn.estimators.summary import CoefficientSummary

__all__ = ["Model", "load"]


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
        if CLASSES.get(name) is not type(self.estimator):
            raise ParameterError("estimator", name, f"one of {', '.join(CLASSES)}", "fit one of them")
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
        """A fitted encoder, which maps tables to the features of the estimator.

        Tables need the columns whose coefficients are not all zero; a model of zeros counts rows by its first column.
        """
        names = self.bounds.order or ()
        # The least that a table needs to have; sparse, because only sparse tables may be this wide.
        schema = TableSchema(names, ("unknown",) * len(names), sparse=True)
        encoder = TableEncoder(bounds=self.bounds).fit(schema)
        coefficients = self.estimator.coef_
        if sp.issparse(coefficients):
            coefficients = coefficients.toarray()
        used = (np.atleast_2d(coefficients) != 0.0).any(axis=0)
        used[0] |= not used.any()
        encoder.used_ = used
        return encoder

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

    def summary(self) -> CoefficientSummary:
        """The coefficients with standard errors, p-values and intervals, by feature and per unit of the columns.

        A column of numbers is mapped from its bounds to [-1, 1], so that one unit of the feature is half the width of
        the bounds. Of truth values and categories it is the change from no to yes.

        **Privacy.** Post-processing of what the fit released: it costs nothing.

        Returns
        -------
        CoefficientSummary
            With ``print``, ``to_frame()``, and a table in notebooks.
        """
        if not hasattr(self.estimator, "inference"):
            name = type(self.estimator).__name__
            raise ParameterError(
                "estimator", name, "SparseRegressor or SparseClassifier for a summary", "fit one with inference=True"
            )
        found: CoefficientSummary = self.estimator.summary(units=self.bounds.feature_units)
        names = self.feature_names
        return replace(found, names=[names[j] for j in found.inference.columns])

    @property
    def inference_notes(self) -> tuple[str, ...]:
        """What the intervals cover, or why there are none, in sentences; none for a model without inference."""
        if getattr(self.estimator, "inference_", None) is None:
            return ()
        summary = self.summary()
        chosen = set(summary.names)
        whole = [
            name for name, column in self.bounds.used
            if column.type == "category" and chosen.issuperset(self.bounds.column_features(name, column))
        ]  # fmt: skip
        if summary.inference.reason is None or not whole:
            return summary.notes
        listed = ", ".join(whole)
        return (
            *summary.notes,
            f"The model has all categories of {listed}, which are collinear with the intercept where every record has "
            "one of them: leave one category out, as the one that others are compared with.",
        )

    def to_json(self) -> str:
        """Return the model as JSON text; :meth:`from_json` restores it bit for bit."""
        estimator = self.estimator
        stored = ((name, value) for name, value in estimator.get_params(deep=False).items() if name not in NOT_STORED)
        parameters = {name: to_plain(name, value) for name, value in stored}
        if parameters.get("x_bound", math.inf) is None:
            parameters["x_bound"] = DEFAULT_X_BOUND
        if self.task == "regress":
            # The bounds of the fit: the parameter may have been set since.
            parameters["y_bounds"] = list(estimator.y_bounds_)
        sparse = sp.issparse(estimator.coef_)
        coefficients = estimator.coef_.toarray() if sparse else estimator.coef_
        content = {
            "format": FORMAT,
            "version": VERSION,
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
            "inference": inference_to_content(estimator),
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
        return cls.from_content(parse_strictly(text))

    @classmethod
    def from_content(cls, content: Any) -> Model:
        """Make a model from the parsed content of a file, as :meth:`from_json` does."""
        content = check_format(content)
        try:
            return cls._from_content(content)
        except TaciturnError:
            raise
        except KeyError as error:
            problem = f"no {error}"
        except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError):
            problem = "values of other types than a model has"
        raise DataError(damaged(problem))

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Model:
        for key in ("taciturn", "command"):
            if not isinstance(content[key], str):
                raise DataError(damaged(f"{key!r} that is no text"))
        bounds = TableBounds.from_json(json.dumps(content["bounds"]))
        if bounds.order is None or content["target"] != bounds.target.name:
            raise DataError(damaged("bounds for another table"))
        names = bounds.feature_names
        if content["features"] != names:
            raise DataError(damaged("features that do not follow from its bounds"))
        estimator = new_estimator(content)
        set_fitted(estimator, content, names)
        estimator.certificate_ = Certificate.from_json(json.dumps(content["certificate"]))
        check_agreement(estimator, bounds)
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
        training table whose coefficients are not all zero, and predicts the same bits as the fitted model.
        ``taciturn.certificate_of`` returns its certificate.
    """
    path = Path(path)
    check_readable("model", path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    return Model.from_json(text).pipeline()
