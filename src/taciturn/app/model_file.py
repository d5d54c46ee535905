"""Model files: a portable JSON of coefficients, names, bounds and certificate."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from taciturn._version import __version__
from taciturn.core.errors import CertificateError, DataError, ParameterError, TaciturnError
from taciturn.core.sklearn_base import check_is_fitted, is_classifier
from taciturn.core.validation import ONE, BoolArray, FloatArray, check_choice, parse_strictly
from taciturn.data.survival import EXITS, check_cuts
from taciturn.data.target import (
    DEFAULT_X_BOUND,
    N_DECILES,
    ClassCells,
    ErrorCells,
    MarginCells,
    MeanCells,
    check_y_bounds,
)
from taciturn.engines.interface import ENCODER
from taciturn.methods.base import NOISE
from taciturn.methods.families import HAZARDS, family_of
from taciturn.methods.inference.summary import Inference, restore_inference
from taciturn.methods.registry import classes_of
from taciturn.methods.scores.function import ModelScore, PrivateScore
from taciturn.methods.survival.curve import SurvivalCurve
from taciturn.privacy.certificate import Certificate
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import TableSchema
from taciturn.tables.formats import check_readable
from taciturn.tables.reading import TableEncoder

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from taciturn.methods.inference.summary import CoefficientSummary


# --- Values of ``model.json``: numbers, labels and parameters, checked when they are read.


def damaged(problem: str, what: str = "model") -> DataError:
    """The error of a file that cannot be what a command wrote."""
    return DataError(
        f"{what}: expected a complete {what}.json, found {problem}; the file is damaged, ask for a fresh copy."
    )


def foreign(problem: str) -> CertificateError:
    """The error of a certificate of another model."""
    return CertificateError(
        f"model: expected a certificate of this model, found {problem}; ask for a fresh copy of the file."
    )


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Whatever a file that is damaged leads to becomes one sentence."""
    try:
        yield
    except TaciturnError:
        raise
    except KeyError as error:
        raise damaged(f"no {error}", what) from None
    except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError):
        raise damaged(f"values of other types than a {what} has", what) from None


def _read_text(key: str, content: dict[str, Any], what: str = "model") -> str:
    if not isinstance(content[key], str):
        raise damaged(f"{key!r} that is no text", what)
    return str(content[key])


def public_facts(name: str, public: Mapping[str, Any]) -> Iterator[Any]:
    """Every public fact of this name, in a composed certificate those of all its parts."""
    for key, fact in public.items():
        if key == name:
            yield fact
        elif isinstance(fact, Mapping):
            yield from public_facts(name, fact)


def read_truth(key: str, content: dict[str, Any]) -> bool:
    """Read true or false."""
    if not isinstance(content[key], bool):
        raise damaged(f"{key!r} that is neither true nor false")
    return bool(content[key])


def read_numbers(key: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Convert nested lists to an array of finite numbers of this shape; text is refused even if it looks like one."""
    if _lengths(value) != shape:
        raise damaged(f"{key!r} of another shape, or not finite")
    if not all(type(entry) in (int, float) for entry in _leaves(value)):
        raise damaged(f"{key!r} without numbers")
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise damaged(f"{key!r} of another shape, or not finite")
    return array


def _lengths(value: Any) -> tuple[int, ...]:
    """The shape of nested lists by the first of each."""
    return (len(value), *_lengths(value[0] if value else None)) if isinstance(value, list) else ()


def _leaves(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        return [value]
    return (leaf for row in value for leaf in (row if isinstance(row, list) else [row]))


def read_classes(value: Any) -> np.ndarray:
    """Read different labels of one type."""
    listed = value if isinstance(value, list) else []
    kinds = {type(label) for label in listed}
    if len(listed) < 2 or len(kinds) != 1 or not kinds <= {str, int, bool, float} or len(set(listed)) < len(listed):
        raise damaged("classes that are not different labels of one type")
    return np.array(listed)


def to_plain(name: str, value: Any) -> Any:
    """Convert a parameter to JSON's types, which have no infinity."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    elif name == "columns" and value is not None:
        # Any iterable of names and places, also numpy's integers.
        value = [item.item() if isinstance(item, np.generic) else item for item in value]
    elif name == "groups" and value is not None:
        return [to_plain("columns", group) for group in value]
    elif isinstance(value, Mapping):
        # Pairs, since JSON's keys are text.
        return [to_plain(name, (label, weight)) for label, weight in value.items()]
    items = list(value) if isinstance(value, list | tuple) else [value]
    if not all(item is None or isinstance(item, str | bool | int | float) for item in items):
        raise ParameterError(name, value, "a number, a text, a list of them or None", "fit again with such a value")
    return "inf" if value == math.inf else items if isinstance(value, list | tuple) else value


def from_plain(name: str, value: Any) -> Any:
    """Restore a parameter from JSON's types."""
    if name == "groups" and value is not None:
        return tuple(map(tuple, value))
    if isinstance(value, list):
        pairs = all(isinstance(item, list) and len(item) == 2 for item in value) and value
        return dict(value) if pairs else tuple(value)
    # Labels are in lists, so that a class may be called "inf".
    return math.inf if value == "inf" else value


# --- Standard errors in ``model.json``: what a fit with ``inference=True`` said, and the checks when it is read.

SPLIT_RECORDS = "two halves of the records"
"""The public fact "inference" of a fit that splits the records."""

_ERRORS = ("std_error", "sampling", "privacy")
_NUMBERS = (*_ERRORS, "degrees", "allowance")
_KEYS = ("columns", *_NUMBERS, "confounded", "confidence_level", "n_records", "split", "reason")
_FACTS = {True: SPLIT_RECORDS, False: "all records"}
_LONGEST_REASON = 1000
# The three numbers are rounded once each.
_ROUNDING = 1e-12


def inference_to_content(estimator: Any) -> dict[str, Any] | None:
    """The errors of a fitted model in JSON's types, which have neither NaN nor infinity; None for a model without."""
    found: Inference | None = getattr(estimator, "inference_", None)
    if found is None:
        return None
    numbers = {
        name: [[value if math.isfinite(value) else None for value in row] for row in getattr(found, name).tolist()]
        for name in _NUMBERS
    }
    return {
        "columns": found.columns.tolist(),
        **numbers,
        "confounded": [list(places) for places in found.confounded],
        "confidence_level": found.confidence_level,
        "n_records": found.n_records,
        "split": found.split,
        "reason": found.reason,
    }


def set_inference(estimator: Any, content: Any) -> None:
    """Set the errors of a model whose coefficients are set, after a check that they belong to such coefficients."""
    if content is None:
        return
    if not hasattr(estimator, "inference"):
        raise damaged("standard errors of a model that has none")
    if not isinstance(content, dict) or sorted(content) != sorted(_KEYS):
        raise damaged(f"'inference' with other keys than {', '.join(_KEYS)}")
    columns = _columns(content["columns"], estimator)
    shape = (_count_tables(estimator), columns.size + 1)
    numbers = {name: _errors(name, content[name], shape) for name in _NUMBERS}
    _check_errors(numbers, content["reason"])
    level, n_records, split = content["confidence_level"], content["n_records"], content["split"]
    if type(level) not in (int, float) or not 0.5 <= level < 1.0:
        raise damaged("a confidence level outside [0.5, 1)")
    if type(n_records) is not int or n_records < 0:
        raise damaged("a number of records that is none")
    if not isinstance(split, bool):
        raise damaged("'split' that is neither true nor false")
    numbers["degrees"][np.isnan(numbers["degrees"])] = math.inf
    numbers["allowance"][np.isnan(numbers["std_error"])] = 0.0
    found = Inference(
        columns,
        **numbers,
        confounded=_confounded(content["confounded"], np.isnan(numbers["std_error"])),
        confidence_level=float(level),
        n_records=n_records,
        split=split,
        reason=content["reason"],
    )
    with np.errstate(over="ignore"):
        reach = found.reach[found.estimable]
    if not np.isfinite(reach).all():
        raise damaged("intervals without ends")
    restore_inference(estimator, found)


def _count_tables(estimator: Any) -> int:
    """How many tables of coefficients there are; the reference class of three and more has zeros."""
    n_rows = len(np.atleast_2d(estimator.coef_))
    if n_rows == 1:
        return 1
    if estimator.coef_[0].any() or estimator.intercept_[0]:
        raise damaged("standard errors against a class whose coefficients are not zero")
    return n_rows - 1


def check_inference_fact(estimator: Any) -> None:
    """Raise if the certificate says something else about the standard errors than the model does."""
    certificate: Certificate = estimator.certificate_
    found: Inference | None = getattr(estimator, "inference_", None)
    if found is None:
        # A composed certificate may be about other models too.
        if "inference" in certificate.public:
            raise foreign("the certificate of a fit with standard errors, and a model without")
    elif _FACTS[found.split] not in public_facts("inference", certificate.public):
        raise foreign("standard errors that the certificate does not state so")


def _columns(value: Any, estimator: Any) -> np.ndarray:
    """The features with errors: in order, each once, and all that have a coefficient other than zero."""
    listed = value if isinstance(value, list) else [None]
    if not all(type(column) is int and 0 <= column < estimator.n_features_in_ for column in listed):
        raise damaged("standard errors of features that the model does not have")
    columns = np.array(listed, dtype=np.intp)
    if (np.diff(columns) <= 0).any():
        raise damaged("standard errors of features that are not in increasing order")
    if estimator.support_.sum() != estimator.support_[columns].sum():
        raise damaged("standard errors of other features than those with coefficients")
    return columns


def _errors(name: str, value: Any, shape: tuple[int, int]) -> FloatArray:
    """Numbers of at least zero, with NaN for null."""
    rows = value if isinstance(value, list) and all(isinstance(row, list) for row in value) else []
    listed = [entry for row in rows for entry in row]
    if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
        raise damaged(f"{name!r} that is not {shape[0]} lists of {shape[1]} numbers or nulls")
    if not all(entry is None or type(entry) in (int, float) for entry in listed):
        raise damaged(f"{name!r} that is not {shape[0]} lists of {shape[1]} numbers or nulls")
    numbers = np.array([math.nan if entry is None else entry for entry in listed], dtype=np.float64)
    if not all(entry is None or 0.0 <= entry < math.inf for entry in listed):
        raise damaged(f"{name!r} with a number that is negative or not finite")
    return numbers.reshape(shape)


def _check_errors(numbers: dict[str, FloatArray], reason: Any) -> None:
    """Raise unless the parts add up, and unless there are either errors or a reason why there are none."""
    total, sampling, privacy = (numbers[name] for name in _ERRORS)
    missing = np.isnan(total)
    if (missing != np.isnan(sampling)).any() or (missing != np.isnan(privacy)).any():
        raise damaged("standard errors without their parts, or parts without them")
    if not np.allclose(total, np.hypot(sampling, privacy), rtol=_ROUNDING, atol=0.0, equal_nan=True):
        raise damaged("standard errors whose parts do not add up to them")
    if (numbers["degrees"] < 1.0).any() or np.isfinite(numbers["degrees"][missing]).any():
        raise damaged("degrees of freedom below one, or without a standard error")
    if np.isnan(numbers["allowance"][~missing]).any() or (numbers["allowance"][missing] > 0.0).any():
        raise damaged("standard errors without an allowance, or an allowance without one")
    if reason is not None and (not isinstance(reason, str) or not 0 < len(reason) <= _LONGEST_REASON):
        raise damaged("a reason that is no sentence")
    if (reason is not None) != bool(missing.all()):
        raise damaged("standard errors with a reason why there are none, or neither")


def _confounded(value: Any, missing: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Places of other coefficients, for those that lack a standard error alone."""
    n_places = missing.shape[1]
    rows = value if isinstance(value, list) and all(isinstance(row, list) for row in value) else []
    if len(rows) != n_places or any(len(row) >= n_places for row in rows):
        raise damaged(f"'confounded' that is not {n_places} lists of other coefficients")
    for j, row in enumerate(rows):
        if not all(type(place) is int and 0 <= place < n_places and place != j for place in row):
            raise damaged("coefficients confounded with what is no other coefficient")
        if len(set(row)) < len(row) or (row and not missing[:, j].any()):
            raise damaged("coefficients confounded twice, or in spite of a standard error")
    return tuple(tuple(row) for row in rows)


# --- From the content of ``model.json`` to a fitted estimator, with the checks of a file that may be hostile.

FORMAT = "taciturn model"
"""Name of the form of the file."""

VERSION = 3
"""Version of the form that is written."""

_BEFORE = 2
"""The version of taciturn 0.2, which is read, too."""

_ADDED = frozenset({"select", "groups", "weight_bound", "person_weight", "exposure_bound"})
"""Parameters that files of the version before do not state; they have their defaults."""

NOT_STORED = frozenset({"account", "random_state"})
"""Parameters that no file holds: with the seed a reader could remove the noise, and an account's URL is the owner's."""

CLASSES: dict[str, Any] = classes_of("regressor", "classifier", "survival")
"""Estimators by the names that a file gives them."""


def check_format(content: Any) -> dict[str, Any]:
    """Return the content of a file; raise if its format or version is another."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(
            f"model: expected JSON with format {FORMAT!r}, got something else; pass what taciturn fit wrote as "
            "model.json."
        )
    if content.get("version") not in (VERSION, _BEFORE):
        writer = content.get("taciturn")
        named = writer if isinstance(writer, str) and len(writer) < 20 and writer.isprintable() else "of that version"
        raise DataError(
            f"model: expected version {_BEFORE} or {VERSION}, which taciturn {__version__} reads, got another; read it "
            f"with taciturn {named}."
        )
    return content


def _present_inference(content: dict[str, Any]) -> Any:
    """The errors in the present form; those of version 2 are of one table and have normal quantiles."""
    found = content["inference"]
    if content["version"] == VERSION or not isinstance(found, dict):
        return found
    size = len(found["std_error"])
    added = {"degrees": [[None] * size], "allowance": [[0.0] * size], "confounded": [[]] * size}
    if not added.keys().isdisjoint(found):
        raise damaged("'inference' with keys of a later version")
    return found | added | {name: [found[name]] for name in _ERRORS}


def new_estimator(content: dict[str, Any]) -> Any:
    """Make an estimator with the parameters of the file; it is not fitted."""
    name = content["estimator"]
    kind = CLASSES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise damaged("an estimator that taciturn does not have")
    stated = content["parameters"]
    if not isinstance(stated, dict) or not NOT_STORED.isdisjoint(stated):
        raise damaged("parameters that an estimator does not have")
    added = set() if content["version"] == VERSION else _ADDED.difference(stated)
    if set(stated) != set(kind().get_params(deep=False)) - NOT_STORED - added:
        raise damaged("parameters that the estimator does not have")
    estimator = kind(**{parameter: from_plain(parameter, value) for parameter, value in stated.items()})
    estimator.check_parameters()
    return estimator


def _noise_to_content(estimator: Any) -> list[Any] | None:
    """The deviations of the noise in each coefficient, null where there is no coefficient; None where not known."""
    noise = getattr(estimator, NOISE, None)
    # Standard errors have it as one of their parts.
    if noise is None or getattr(estimator, "inference_", None) is not None:
        return None
    rows = [[value if math.isfinite(value) else None for value in row] for row in np.atleast_2d(noise).tolist()]
    return rows if is_classifier(estimator) else rows[0]


def _set_noise(estimator: Any, content: Any) -> None:
    if content is None:
        return
    if getattr(estimator, "inference_", None) is not None:
        raise damaged("noise beside the parts of standard errors")
    coefficients = np.atleast_2d(estimator.coef_)
    numbers = _errors("noise", content if is_classifier(estimator) else [content], coefficients.shape)
    if (np.isnan(numbers) & (coefficients != 0.0)).any():
        raise damaged("coefficients without the noise of others")
    setattr(estimator, NOISE, numbers.reshape(np.shape(estimator.coef_)))


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
            raise damaged("classes of a number")
        estimator.intercept_ = float(read_numbers("intercept", content["intercept"], ()))
        if task_of(estimator) == "survive":
            _set_hazards(estimator, content["hazards"])
        else:
            estimator.y_bounds_ = check_y_bounds(estimator.y_bounds)
    estimator.coef_ = read_numbers("coefficients", content["coefficients"], shape)
    nonzero = estimator.coef_ != 0.0
    estimator.support_ = nonzero.any(axis=0) if nonzero.ndim == 2 else nonzero
    if content["n_steps"] is not None:
        if type(content["n_steps"]) is not int or content["n_steps"] < 0:
            raise damaged("a number of steps that is none")
        estimator.n_iter_ = content["n_steps"]
    set_inference(estimator, _present_inference(content))
    # Files of the version before have none.
    _set_noise(estimator, content.get("noise"))
    if read_truth("sparse", content):
        estimator.sparsify()


def _read_date(value: Any) -> str | None:
    """The day of a fit, None in files of the version before."""
    if value is not None and (not isinstance(value, str) or re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII) is None):
        raise damaged("a date that is no day")
    return value


def task_of(estimator: Any) -> str:
    """The learning task of a model: "regress", "classify" or "survive"."""
    if is_classifier(estimator):
        return "classify"
    return "survive" if family_of(estimator) is HAZARDS else "regress"


def _hazards_content(estimator: Any) -> dict[str, Any]:
    curve = estimator.survival_curve_
    return {
        "baseline": estimator.baseline_hazard_.tolist(),
        "exits": curve.counts.tolist(),
        "noise_std": float(curve.std),
    }


def _set_hazards(estimator: Any, content: Any) -> None:
    """Set the baseline hazards, and the numbers of exits from which the survival curve is computed."""
    if not isinstance(content, dict) or sorted(content) != ["baseline", "exits", "noise_std"]:
        raise damaged("'hazards' with other keys than baseline, exits, noise_std")
    estimator.cuts_ = np.asarray(check_cuts(estimator.cuts))
    size = estimator.cuts_.size
    estimator.baseline_hazard_ = read_numbers("baseline", content["baseline"], (size,))
    exits = read_numbers("exits", content["exits"], (size, EXITS))
    deviation = float(read_numbers("noise_std", content["noise_std"], ()))
    if (estimator.baseline_hazard_ < 0.0).any() or deviation < 0.0:
        raise damaged("a hazard or noise that is negative")
    if estimator.intercept_:
        raise damaged("an intercept beside baseline hazards")
    level = float(estimator.confidence_level)
    estimator.survival_curve_ = SurvivalCurve(estimator.cuts_, exits, deviation, level, estimator.certificate_)


def check_agreement(estimator: Any, bounds: TableBounds) -> None:
    """Raise if model, bounds and certificate contradict one another, because they come from different models."""
    certificate = estimator.certificate_
    if is_classifier(estimator):
        classes = estimator.classes_.tolist()
        for stated in (bounds.target.classes, estimator.classes):
            if stated is not None and not _same_labels(stated, classes):
                raise damaged("classes that contradict its bounds")
        if not all(_same_labels(stated, classes) for stated in public_facts("classes", certificate.public)):
            raise foreign("the certificate of a model with other classes")
    if certificate.relation != estimator.relation:
        raise foreign("the certificate of a fit under another relation")
    if bounds.person is not None and certificate.unit != "person":
        raise foreign("bounds that name persons and a certificate about single records")
    if math.isinf(estimator.epsilon) and certificate.status != "not private":
        raise foreign("a model without noise and a certificate that promises some")
    if bounds.target.kind is not None and family_of(estimator).kind != bounds.target.kind:
        raise damaged("a model of another kind of target than its bounds state")
    if task_of(estimator) == "survive" and tuple(estimator.cuts_.tolist()) != bounds.target.cuts:
        raise damaged("cuts that contradict its bounds")
    for name, measured in (("weight_bound", bounds.weight), ("exposure_bound", bounds.exposure)):
        stated = getattr(estimator, name, None)
        if measured is not None and stated != measured.upper:
            raise damaged(f"a {name} that contradicts its bounds")
    check_inference_fact(estimator)


def _same_labels(stated: Any, classes: list[Any]) -> bool:
    labels = list(stated) if isinstance(stated, list | tuple) else []
    # True equals 1 in Python, but is another label.
    return {(type(label), label) for label in labels} == {(type(label), label) for label in classes}


# --- ``score.json``: one released number, or one released histogram with all measures, and its certificate.

_FORMAT = "taciturn score"
_NUMBER, _HISTOGRAM = 1, 2
"""Versions: one number, as always; one histogram."""

# Measures are computed again when a file is read. Another machine may round the last digits in another way.
_SCORE_ROUNDING = 1e-6
_MOST_CELLS = 1 << 20
_LARGEST_LOGARITHM = 700.0
_SHARES = ("value", "lower", "upper", "baseline")


def model_digest(model: Model) -> str:
    """SHA-256 of the ``model.json`` of a model, in hexadecimal digits: of the file that it was read from, if any."""
    return model.digest or _text_digest(model.to_json())


def _text_digest(text: str) -> str:
    return hashlib.sha256(f"{text.removesuffix(chr(10))}\n".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """A score as it was released, with the digest of the model that it is of (:func:`model_digest`)."""

    score: PrivateScore | ModelScore
    model: str

    def to_json(self) -> str:
        """Return the text of ``score.json``: strict JSON, in which an end that is infinite is null."""
        score = self.score
        head = {"format": _FORMAT, "version": _NUMBER, "taciturn": __version__, "model_sha256": self.model}
        tail = {"certificate": json.loads(score.certificate.to_json())}
        if isinstance(score, PrivateScore):
            number = {"metric": score.metric, "value": score.value, "noise_std": score.std}
            return json.dumps(head | number | tail, indent=2, allow_nan=False) + "\n"
        content = (
            head
            | {"version": _HISTOGRAM, "metric": score.metric, "confidence_level": score.confidence_level}
            | {"measures": [_measure_content(found) for found in score.measures]}
            | {"classes": list(score.labels) or None, "cells": _cells_content(score.cells)}
            | {"counts": list(score.counts), "noise_std": score.std}
            | tail
        )
        lines = (f'  "{key}": {json.dumps(value, allow_nan=False)}' for key, value in content.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> ScoreFile:
        """Read a histogram with all measures; raise an error of one sentence if the text is damaged.

        The measures are computed again from the released counts, and others are refused.
        """
        content = parse_strictly(text)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise damaged("something else", "score")
        if type(content.get("version")) is not int or content["version"] != _HISTOGRAM:
            raise DataError(
                "score: expected all measures of a model, found one metric or another version; score the model again "
                "without --metric, with a budget of its own."
            )
        with _reading("score"):
            return cls(_read_score(content), _read_text("model_sha256", content, "score"))


def _measure_content(found: Any) -> dict[str, Any]:
    numbers = {key: getattr(found, key) for key in _SHARES}
    return {"name": found.name} | {key: value if math.isfinite(value) else None for key, value in numbers.items()}


def _cells_content(cells: MarginCells | ClassCells | ErrorCells | MeanCells) -> dict[str, Any]:
    if isinstance(cells, MeanCells):
        edges = {"means": list(cells.means), "targets": list(cells.targets)}
        return {"y_bounds": list(cells.y_bounds), **edges, "power": cells.power}
    if isinstance(cells, ErrorCells):
        return {"y_bounds": list(cells.y_bounds), "targets": list(cells.targets), "errors": list(cells.errors)}
    return {"edges": list(cells.edges)}


def _read_score(content: dict[str, Any]) -> ModelScore:
    certificate = Certificate.from_json(json.dumps(content["certificate"]))
    labels = () if content["classes"] is None else tuple(read_classes(content["classes"]).tolist())
    cells = _read_cells(content["cells"], len(labels))
    counts = read_numbers("counts", content["counts"], (cells.n_cells,))
    deviation = float(read_numbers("noise_std", content["noise_std"], ()))
    if deviation < 0.0:
        raise damaged("noise that is negative", "score")
    score = ModelScore(cells, tuple(counts.tolist()), deviation, labels, certificate)
    if _read_text("metric", content, "score") != score.metric:
        raise damaged("another metric", "score")
    _read_text("taciturn", content, "score")
    _check_measures(score, content["measures"], content["confidence_level"])
    _check_facts(score)
    return score


def _read_means(content: Any) -> MeanCells:
    bounds = check_y_bounds(read_numbers("y_bounds", content["y_bounds"], (2,)).tolist())
    means, targets, power = (
        _edges("means", content["means"], 2),
        _edges("targets", content["targets"], 1),
        content["power"],
    )
    if any(edge != int(edge) for edge in targets) or (targets[0], targets[-1]) != (-ONE, ONE):
        raise damaged("edges that are not those of targets", "score")
    if type(power) is not int or power not in (1, 2) or bounds[0] < 0.0 or (power == 2 and bounds[0] == 0.0):
        raise damaged("the deviance of no family", "score")
    if len(means) * len(targets) > _MOST_CELLS or max(map(abs, means)) > _LARGEST_LOGARITHM:
        raise damaged("more cells than a score has", "score")
    return MeanCells(bounds, means, tuple(map(int, targets)), power)


def _read_cells(content: Any, n_classes: int) -> MarginCells | ClassCells | ErrorCells | MeanCells:
    if n_classes == 0 and "means" in content:
        return _read_means(content)
    if n_classes == 0:
        targets, errors = (_edges(key, content[key], 2) for key in ("targets", "errors"))
        if any(edge != int(edge) for edge in (*targets, *errors)):
            raise damaged("edges that are not whole numbers", "score")
        bounds = check_y_bounds(read_numbers("y_bounds", content["y_bounds"], (2,)).tolist())
        if len(targets) * len(errors) > _MOST_CELLS:
            raise damaged("more cells than a score has", "score")
        return ErrorCells(bounds, tuple(map(int, targets)), tuple(map(int, errors)))
    # An even number of bins a tenth, and twice that in the outer ones.
    edges = _edges("edges", content["edges"], 2 * (N_DECILES + 2))
    return MarginCells(edges) if n_classes == 2 else ClassCells(edges, n_classes)


def _edges(key: str, value: Any, multiple: int) -> tuple[float, ...]:
    """Numbers in increasing order, with a multiple of so many bins between them."""
    numbers = read_numbers(key, value, (len(value),))
    n_bins = numbers.size - 1
    if n_bins < 1 or n_bins > _MOST_CELLS or n_bins % multiple or (np.diff(numbers) <= 0.0).any():
        raise damaged(f"{key!r} that are not edges in increasing order", "score")
    return tuple(numbers.tolist())


def _check_measures(score: ModelScore, stated: Any, level: Any) -> None:
    """Raise unless the measures follow from the counts."""
    computed = [_measure_content(found) for found in score.measures]
    same = (
        type(level) is float
        and level == score.confidence_level
        and [each["name"] for each in stated] == [each["name"] for each in computed]
    )
    if not same or not all(
        _is_near(one[key], other[key]) for one, other in zip(stated, computed, strict=True) for key in _SHARES
    ):
        raise damaged("measures that do not follow from its counts", "score")


def _is_near(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return type(one) in (int, float) and math.isclose(one, other, rel_tol=_SCORE_ROUNDING, abs_tol=_SCORE_ROUNDING)


def _check_facts(score: ModelScore) -> None:
    """Raise if the certificate is that of another release."""
    stated = score.certificate.public
    known = {"metric": "all", "cells": score.cells.n_cells}
    if score.labels:
        known["classes"] = list(score.labels)
    # As text, since true counts as 1 elsewhere.
    written = {name: [*map(json.dumps, public_facts(name, stated))] for name in (*known, "records")}
    if any(json.dumps(fact) not in written[name] for name, fact in known.items()):
        raise damaged("the certificate of another release", "score")
    if not written["records"] or not all(re.fullmatch("[0-9]+", records) for records in written["records"]):
        raise damaged("records that are not counted", "score")


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model, its bounds, resolved for the table (:meth:`TableBounds.for_table`), and the command that made it.

    **Privacy.** Holds the releases that the certificate lists and public facts: no seed, and no data.
    """

    bounds: TableBounds
    estimator: Any
    command: str
    digest: str | None = None
    """SHA-256 of the text that it was read from, which an earlier version may have written in another form."""
    date: str | None = None
    """The day of the fit, in universal time; None for a model of an earlier version, or made in Python."""

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
        """The learning task: "regress", "classify" or "survive"."""
        return task_of(self.estimator)

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
        from sklearn.pipeline import Pipeline

        encoder, estimator = self.encoder, self.estimator
        if hasattr(estimator, "feature_names_in_"):
            # An estimator that was fitted with feature names warns if it predicts without them.
            encoder.set_output(transform="pandas")
        if ENCODER in vars(estimator):
            # One that was fitted to an open table would encode what is encoded already.
            estimator = copy(estimator)
            delattr(estimator, ENCODER)
        return Pipeline([("encode", encoder), ("model", estimator)])

    def summary(self) -> CoefficientSummary:
        """The coefficients with standard errors, p-values and intervals, by feature and per unit of the columns.

        A column of numbers is mapped from its bounds to [-1, 1], so that one unit of the feature is half the width of
        the bounds. Of truth values and categories it is the change from no to yes. Where the bounds state ``per``,
        effects are those of that change of the column.

        **Privacy.** Post-processing of what the fit released: it costs nothing.
        """
        if not hasattr(self.estimator, "inference"):
            name = type(self.estimator).__name__
            raise ParameterError(
                "estimator", name, "SparseRegressor or SparseClassifier for a summary", "fit one with inference=True"
            )
        found: CoefficientSummary = self.estimator.summary(units=self.bounds.feature_units)
        names, steps, columns = self.feature_names, self.bounds.feature_steps, found.inference.columns
        return replace(found, names=[names[j] for j in columns], steps=[steps[j] for j in columns])

    @property
    def inference_notes(self) -> tuple[str, ...]:
        """What the numbers cover, or why there are none, in sentences; none for a model without inference."""
        if getattr(self.estimator, "inference_", None) is None:
            return ()
        summary = self.summary()
        chosen, missing = set(summary.names), {summary.rows[j] for j in summary.incomplete}
        whole = []
        for name, column in self.bounds.used:
            own = self.bounds.column_features(name, column)
            if column.type == "category" and chosen.issuperset(own) and not missing.isdisjoint(own):
                whole.append(name)
        if not whole:
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
        # Bounds of the fit: the parameter may have been set since.
        if self.task == "regress":
            parameters["y_bounds"] = list(estimator.y_bounds_)
        elif self.task == "survive":
            parameters["cuts"] = estimator.cuts_.tolist()
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
            "noise": _noise_to_content(estimator),
            "n_steps": int(estimator.n_iter_) if hasattr(estimator, "n_iter_") else None,
            "sparse": sparse,
            "named": hasattr(estimator, "feature_names_in_"),
            "certificate": json.loads(self.certificate.to_json()),
            "command": self.command,
            "date": self.date,
        }
        if self.task == "survive":
            content["hazards"] = _hazards_content(estimator)
        lines = (f'  "{key}": {json.dumps(value, allow_nan=False)}' for key, value in content.items())
        return "{\n" + ",\n".join(lines) + "\n}"

    @classmethod
    def from_json(cls, text: str) -> Model:
        """Read what :meth:`to_json` wrote; raise an error of one sentence if the text is damaged."""
        return cls.from_content(parse_strictly(text), _text_digest(text))

    @classmethod
    def from_content(cls, content: Any, digest: str | None = None) -> Model:
        """Make a model from the parsed content of a file, as :meth:`from_json` does."""
        content = check_format(content)
        with _reading("model"):
            _read_text("taciturn", content)
            command = _read_text("command", content)
            bounds = TableBounds.from_json(json.dumps(content["bounds"]))
            if bounds.order is None or content["target"] != bounds.target.name:
                raise damaged("bounds for another table")
            names = bounds.feature_names
            if content["features"] != names:
                raise damaged("features that do not follow from its bounds")
            estimator = new_estimator(content)
            estimator.certificate_ = Certificate.from_json(json.dumps(content["certificate"]))
            set_fitted(estimator, content, names)
            check_agreement(estimator, bounds)
            model = cls(bounds, estimator, command, digest, _read_date(content.get("date")))
            check_choice((model.task,), task=content["task"])
            return model


def shown_weights(estimator: Any, bounds: TableBounds) -> tuple[FloatArray, FloatArray, list[str]]:
    """Weights and intercepts, one row per output, as they are shown, and the levels that others are compared with.

    Of a category with all of its levels in the model, every record has one, so that a number could be added to their
    weights and taken from the intercept. They are shown as differences from the reference level, whose weight goes to
    the intercept. Predictions are the same.
    """
    stored, names = estimator.coef_, bounds.feature_names
    values = np.array(np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored), dtype=np.float64)
    intercepts = np.array(np.atleast_1d(estimator.intercept_), dtype=np.float64)
    references = []
    for first, *others in bounds.indicator_blocks if getattr(estimator, "fit_intercept", True) else ():
        levels = [first, *(place for place in others if "=" in names[place])]
        if values[:, levels].any(axis=0).all():
            intercepts += values[:, first]
            values[:, [*others, first]] -= values[:, [first]]
            references.append(names[first])
    return values, intercepts, references


def shown_noise(estimator: Any, bounds: TableBounds) -> FloatArray | None:
    """The deviations of the noise in the weights as :func:`shown_weights` has them; None where they are not known."""
    stored = getattr(estimator, NOISE, None)
    if stored is None:
        return None
    noise = np.nan_to_num(np.atleast_2d(np.array(stored, dtype=np.float64)))
    dense = estimator.coef_.toarray() if sp.issparse(estimator.coef_) else estimator.coef_
    values, names = np.atleast_2d(dense), bounds.feature_names
    for first, *others in bounds.indicator_blocks if getattr(estimator, "fit_intercept", True) else ():
        levels = [first, *(place for place in others if "=" in names[place])]
        if values[:, levels].any(axis=0).all():
            # A difference has the noise of both.
            noise[:, others] = np.hypot(noise[:, others], noise[:, [first]])
            noise[:, first] = 0.0
    return noise


def noisy_weights(estimator: Any, bounds: TableBounds) -> BoolArray:
    """Whether the noise in each weight, as it is shown, is as large as the weight; false where it is not known."""
    weights, noise = shown_weights(estimator, bounds)[0], shown_noise(estimator, bounds)
    if noise is None:
        return np.zeros(weights.shape, dtype=bool)
    found: BoolArray = (weights != 0.0) & (noise >= np.abs(weights))
    return found


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
