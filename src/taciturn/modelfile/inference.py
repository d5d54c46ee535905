"""Standard errors in ``model.json``: what a fit with ``inference=True`` said, and the checks when it is read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.certificate import Certificate
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import CertificateError, DataError
from taciturn.estimators.inference import Inference
from taciturn.estimators.inferring import restore_inference
from taciturn.modelfile.values import damaged, foreign, public_facts

__all__ = ["SPLIT_RECORDS", "check_inference_fact", "inference_to_content", "set_inference"]

SPLIT_RECORDS = "two halves of the records"
"""The public fact "inference" of a fit that splits the records."""

_ERRORS = ("std_error", "sampling", "privacy")
_KEYS = ("columns", *_ERRORS, "confidence_level", "n_records", "split", "reason")
_FACTS = {True: SPLIT_RECORDS, False: "all records"}
_LONGEST_REASON = 1000
# The three numbers are rounded once each.
_ROUNDING = 1e-12


def inference_to_content(estimator: Any) -> dict[str, Any] | None:
    """The errors of a fitted model in JSON's types, which have no NaN; None for a model without."""
    found: Inference | None = getattr(estimator, "inference_", None)
    if found is None:
        return None
    errors = {name: [value if math.isfinite(value) else None for value in getattr(found, name)] for name in _ERRORS}
    return {
        "columns": found.columns.tolist(),
        **errors,
        "confidence_level": found.confidence_level,
        "n_records": found.n_records,
        "split": found.split,
        "reason": found.reason,
    }


def set_inference(estimator: Any, content: Any) -> None:
    """Set the errors of a model whose coefficients are set, after a check that they belong to such coefficients."""
    if content is None:
        return
    if not hasattr(estimator, "inference") or (is_classifier(estimator) and estimator.classes_.size > 2):
        raise DataError(damaged("standard errors of a model that has none"))
    if not isinstance(content, dict) or sorted(content) != sorted(_KEYS):
        raise DataError(damaged(f"'inference' with other keys than {', '.join(_KEYS)}"))
    columns = _columns(content["columns"], estimator)
    errors = {name: _errors(name, content[name], columns.size + 1) for name in _ERRORS}
    _check_errors(errors, content["reason"])
    level, n_records, split = content["confidence_level"], content["n_records"], content["split"]
    if type(level) not in (int, float) or not 0.5 <= level < 1.0:
        raise DataError(damaged("a confidence level outside [0.5, 1)"))
    if type(n_records) is not int or n_records < 0:
        raise DataError(damaged("a number of records that is none"))
    if not isinstance(split, bool):
        raise DataError(damaged("'split' that is neither true nor false"))
    found = Inference(
        columns, **errors, confidence_level=float(level), n_records=n_records, split=split, reason=content["reason"]
    )
    restore_inference(estimator, found)


def check_inference_fact(estimator: Any) -> None:
    """Raise if the certificate says something else about the standard errors than the model does."""
    certificate: Certificate = estimator.certificate_
    found: Inference | None = getattr(estimator, "inference_", None)
    if found is None:
        # A composed certificate may be about other models too.
        if "inference" in certificate.public:
            raise CertificateError(foreign("the certificate of a fit with standard errors, and a model without"))
    elif _FACTS[found.split] not in public_facts("inference", certificate.public):
        raise CertificateError(foreign("standard errors that the certificate does not state so"))


def _columns(value: Any, estimator: Any) -> np.ndarray:
    """The features with errors: in order, each once, and all that have a coefficient other than zero."""
    listed = value if isinstance(value, list) else [None]
    if not all(type(column) is int and 0 <= column < estimator.n_features_in_ for column in listed):
        raise DataError(damaged("standard errors of features that the model does not have"))
    columns = np.array(listed, dtype=np.intp)
    if (np.diff(columns) <= 0).any():
        raise DataError(damaged("standard errors of features that are not in increasing order"))
    if estimator.support_.sum() != estimator.support_[columns].sum():
        raise DataError(damaged("standard errors of other features than those with coefficients"))
    return columns


def _errors(name: str, value: Any, size: int) -> FloatArray:
    """Numbers of at least zero, with NaN for null."""
    listed = value if isinstance(value, list) else []
    if len(listed) != size or not all(entry is None or type(entry) in (int, float) for entry in listed):
        raise DataError(damaged(f"{name!r} that is not a list of {size} numbers or nulls"))
    numbers = np.array([math.nan if entry is None else entry for entry in listed], dtype=np.float64)
    if not all(entry is None or 0.0 <= entry < math.inf for entry in listed):
        raise DataError(damaged(f"{name!r} with a number that is negative or not finite"))
    return numbers


def _check_errors(errors: dict[str, FloatArray], reason: Any) -> None:
    """Raise unless the parts add up, and unless there are either errors or a reason why there are none."""
    total, sampling, privacy = (errors[name] for name in _ERRORS)
    missing = np.isnan(total)
    if (missing != np.isnan(sampling)).any() or (missing != np.isnan(privacy)).any():
        raise DataError(damaged("standard errors without their parts, or parts without them"))
    if not np.allclose(total, np.hypot(sampling, privacy), rtol=_ROUNDING, atol=0.0, equal_nan=True):
        raise DataError(damaged("standard errors whose parts do not add up to them"))
    if reason is not None and (not isinstance(reason, str) or not 0 < len(reason) <= _LONGEST_REASON):
        raise DataError(damaged("a reason that is no sentence"))
    if (reason is not None) != bool(missing.all()):
        raise DataError(damaged("standard errors with a reason why there are none, or neither"))
