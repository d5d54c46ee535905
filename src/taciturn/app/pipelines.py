"""Fitted pipelines of scikit-learn as models with bounds, so that they have a model file and a report."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from taciturn.app.model_file import Model, check_agreement
from taciturn.core.errors import ParameterError
from taciturn.core.sklearn_base import is_classifier
from taciturn.methods.families import family_of
from taciturn.methods.scaling.estimator import BoundedScaler, PrivateScaler
from taciturn.privacy.pipeline import certificate_of
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import Column, TableSchema, Target
from taciturn.tables.reading import TableEncoder

_UNDERSTOOD = (
    "a ColumnTransformer of BoundedScaler, PrivateScaler, OneHotEncoder with its categories, SimpleImputer with a "
    "constant before one of them, and drop"
)
# Of numbers without bounds, and a category that no list has.
_WIDE, _UNLISTED = 1e6, "\x00 no category"


def model_of_pipeline(pipeline: Any, *, target: str, command: str = "made in Python") -> Model:
    """A fitted pipeline as a model with bounds, which can be written as ``model.json`` and reported on.

    The first step is a :class:`~taciturn.tables.TableEncoder`, or a ColumnTransformer whose parts have public
    parameters: the bounds file that says the same is made from them, and both are compared on rows with the ends of
    all bounds, values beyond them and an unlisted category. Other pipelines are refused.

    **Privacy.** No data are read. The certificate is that of the whole pipeline.

    Parameters
    ----------
    pipeline : Pipeline
        Two fitted steps, the second one a model of taciturn.
    target : str
        The name of the column that is predicted.
    command : str, default="made in Python"
        What made the model, for the report.
    """
    if len(getattr(pipeline, "steps", ())) != 2:
        raise ParameterError(
            "pipeline", type(pipeline).__name__, "a Pipeline of two steps", "fit encoder and model in one"
        )
    (_, first), (_, fitted) = pipeline.steps
    stated = _target(target, fitted)
    if isinstance(first, TableEncoder):
        bounds = first.bounds_
        if bounds.target.name != target:
            raise ParameterError("target", target, f"{bounds.target.name!r}, as the bounds say", "pass that")
    else:
        bounds = _bounds_of(first, stated)
        _compare(first, bounds)
    estimator = copy(fitted)
    estimator.certificate_ = certificate_of(pipeline)
    if hasattr(estimator, "feature_names_in_"):
        estimator.feature_names_in_ = np.array(bounds.feature_names, dtype=object)
    check_agreement(estimator, bounds)
    return Model(bounds, estimator, command)


def _target(name: str, fitted: Any) -> Target:
    if is_classifier(fitted):
        return Target(name, classes=tuple(fitted.classes_.tolist()))
    low, high = fitted.y_bounds_
    family = family_of(fitted)
    return Target(name, float(low), float(high), kind=family.kind if family.log_link else None)


def _bounds_of(transformer: Any, target: Target) -> TableBounds:
    columns, missing, found = dict[str, Column](), dict[str, Any](), list[str]()
    for _, part, names in getattr(transformer, "transformers_", ()):
        if isinstance(part, str) and part == "drop":
            continue
        if not all(isinstance(name, str) for name in names):
            raise ParameterError(
                "pipeline", names, "names of columns in the ColumnTransformer", "fit it to a data frame"
            )
        steps = [step for _, step in part.steps] if hasattr(part, "steps") else [part]
        if len(steps) == 2 and getattr(steps[0], "strategy", "") == "constant":
            missing |= dict.fromkeys(names, steps[0].fill_value)
            steps = steps[1:]
        (last,) = steps if len(steps) == 1 else (None,)
        columns |= dict(zip(names, _columns(last), strict=True))
        found += names if isinstance(last, PrivateScaler) else ()
    if not columns:
        raise _refusal(type(transformer).__name__)
    return TableBounds(target, columns, missing=missing, order=tuple(columns), found_privately=tuple(found))


def _columns(part: Any) -> Iterator[Column]:
    if isinstance(part, BoundedScaler | PrivateScaler):
        for low, high in zip(part.lower_.tolist(), part.upper_.tolist(), strict=True):
            yield Column("number", low, high)
    elif type(part).__name__ == "OneHotEncoder" and not isinstance(part.categories, str) and part.drop is None:
        for listed in part.categories:
            yield Column("category", categories=tuple(map(str, listed)))
    else:
        raise _refusal(type(part).__name__)


def _refusal(name: str) -> ParameterError:
    return ParameterError("pipeline", name, _UNDERSTOOD, "put what is public into a TableEncoder")


def _compare(transformer: Any, bounds: TableBounds) -> None:
    """Raise unless the bounds encode rows as the transformer does: ends, values beyond, categories, unlisted ones."""
    import pandas as pd

    values: dict[str, list[Any]] = {
        name: [*column.categories, _UNLISTED]
        if column.type == "category"
        else [column.lower, column.upper, 0.3 * column.lower + 0.7 * column.upper, -_WIDE, _WIDE]  # type: ignore[operator]
        for name, column in bounds.used
    }
    for name in bounds.missing:
        values[name].append(None if isinstance(values[name][0], str) else np.nan)
    n_rows = max(map(len, values.values()))
    frame = pd.DataFrame({name: [listed[i % len(listed)] for i in range(n_rows)] for name, listed in values.items()})
    names = list(map(str, getattr(transformer, "feature_names_in_", frame.columns)))
    whole = frame.reindex(columns=[*frame.columns, *(name for name in names if name not in frame)])[names]
    given = transformer.transform(whole)
    given = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
    kinds = tuple("category" if column.type == "category" else "number" for _, column in bounds.used)
    ours = TableEncoder(bounds=bounds).fit(TableSchema(bounds.order or (), kinds)).transform(frame)
    if given.shape != ours.shape or not np.allclose(given, ours, rtol=1e-12, atol=1e-12):
        raise ParameterError(
            "pipeline", type(transformer).__name__, _UNDERSTOOD, "its features are not those of such bounds"
        )
