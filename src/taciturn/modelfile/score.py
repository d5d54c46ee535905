"""``score.json``: one released number, or one released histogram with all measures, and its certificate."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn._version import __version__
from taciturn.certificate import Certificate
from taciturn.core.errors import DataError, TaciturnError
from taciturn.core.strict_json import parse_strictly
from taciturn.data.prediction_cells import N_DECILES, ClassCells, ErrorCells, MarginCells
from taciturn.data.target import check_y_bounds
from taciturn.estimators.model_score import ModelScore, PrivateScore
from taciturn.modelfile.values import public_facts, read_classes, read_numbers

if TYPE_CHECKING:
    from taciturn.modelfile.model import Model

__all__ = ["ScoreFile", "model_digest"]

_FORMAT = "taciturn score"
_NUMBER, _HISTOGRAM = 1, 2
"""Versions: one number, as always; one histogram."""

# Measures are computed again when a file is read. Another machine may round the last digits in another way.
_ROUNDING = 1e-6
_MOST_CELLS = 1 << 20
_SHARES = ("value", "lower", "upper", "baseline")


def model_digest(model: Model) -> str:
    """SHA-256 of the ``model.json`` of a model, in hexadecimal digits."""
    return hashlib.sha256(f"{model.to_json()}\n".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """A score with the digest of the model that it is of.

    Parameters
    ----------
    score : PrivateScore or ModelScore
        What was released.
    model : str
        See :func:`model_digest`.
    """

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
            raise DataError(_damaged("something else"))
        if type(content.get("version")) is not int or content["version"] != _HISTOGRAM:
            raise DataError(
                "score: expected all measures of a model, found one metric or another version; score the model again "
                "without --metric, with a budget of its own."
            )
        try:
            return cls(_read_score(content), _read_text("model_sha256", content))
        except TaciturnError:
            raise
        except KeyError as error:
            problem = f"no {error}"
        except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError):
            problem = "values of other types than a score has"
        raise DataError(_damaged(problem))


def _damaged(problem: str) -> str:
    return f"score: expected a complete score.json, found {problem}; the file is damaged, ask for a fresh copy."


def _read_text(key: str, content: dict[str, Any]) -> str:
    if not isinstance(content[key], str):
        raise DataError(_damaged(f"{key!r} that is no text"))
    return str(content[key])


def _measure_content(found: Any) -> dict[str, Any]:
    numbers = {key: getattr(found, key) for key in _SHARES}
    return {"name": found.name} | {key: value if math.isfinite(value) else None for key, value in numbers.items()}


def _cells_content(cells: MarginCells | ClassCells | ErrorCells) -> dict[str, Any]:
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
        raise DataError(_damaged("noise that is negative"))
    score = ModelScore(cells, tuple(counts.tolist()), deviation, labels, certificate)
    if _read_text("metric", content) != score.metric:
        raise DataError(_damaged("another metric"))
    _read_text("taciturn", content)
    _check_measures(score, content["measures"], content["confidence_level"])
    _check_facts(score)
    return score


def _read_cells(content: Any, n_classes: int) -> MarginCells | ClassCells | ErrorCells:
    if n_classes == 0:
        targets, errors = (_edges(key, content[key], 2) for key in ("targets", "errors"))
        if any(edge != int(edge) for edge in (*targets, *errors)):
            raise DataError(_damaged("edges that are not whole numbers"))
        bounds = check_y_bounds(read_numbers("y_bounds", content["y_bounds"], (2,)).tolist())
        if len(targets) * len(errors) > _MOST_CELLS:
            raise DataError(_damaged("more cells than a score has"))
        return ErrorCells(bounds, tuple(map(int, targets)), tuple(map(int, errors)))
    # An even number of bins a tenth, and twice that in the outer ones.
    edges = _edges("edges", content["edges"], 2 * (N_DECILES + 2))
    return MarginCells(edges) if n_classes == 2 else ClassCells(edges, n_classes)


def _edges(key: str, value: Any, multiple: int) -> tuple[float, ...]:
    """Numbers in increasing order, with a multiple of so many bins between them."""
    numbers = read_numbers(key, value, (len(value),))
    n_bins = numbers.size - 1
    if n_bins < 1 or n_bins > _MOST_CELLS or n_bins % multiple or (np.diff(numbers) <= 0.0).any():
        raise DataError(_damaged(f"{key!r} that are not edges in increasing order"))
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
        raise DataError(_damaged("measures that do not follow from its counts"))


def _is_near(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return type(one) in (int, float) and math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _check_facts(score: ModelScore) -> None:
    """Raise if the certificate is that of another release."""
    stated = score.certificate.public
    known = {"metric": "all", "cells": score.cells.n_cells}
    if score.labels:
        known["classes"] = list(score.labels)
    # As text, since true counts as 1 elsewhere.
    written = {name: [*map(json.dumps, public_facts(name, stated))] for name in (*known, "records")}
    if any(json.dumps(fact) not in written[name] for name, fact in known.items()):
        raise DataError(_damaged("the certificate of another release"))
    if not written["records"] or not all(re.fullmatch("[0-9]+", records) for records in written["records"]):
        raise DataError(_damaged("records that are not counted"))
