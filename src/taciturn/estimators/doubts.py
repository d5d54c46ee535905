"""Sentences for what released numbers say against the bounds or classes of a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from taciturn.core.errors import SuspiciousReleaseWarning
from taciturn.core.guard import warn_caller
from taciturn.core.visible import visible
from taciturn.fitting.suspicions import Suspicion

__all__ = ["warn_of_scored_labels", "warn_of_suspicions"]


def warn_of_suspicions(model: Any, suspicions: Iterable[Suspicion]) -> None:
    """Warn of what a fit released against its own bounds or classes; the certificate says it too."""
    for suspicion in suspicions:
        warn_caller(visible(_SENTENCES[suspicion.kind](model, suspicion)), SuspiciousReleaseWarning)


def warn_of_scored_labels(classes: Any, relation: str) -> None:
    """Warn that hardly a scored record has a label of the model, as a score released; its certificate says it too."""
    count = ", and n_public" if relation == "add-remove" else ""
    warn_caller(
        visible(
            f"y: expected labels among the classes {classes.tolist()!r} of the model, but the released counts say that "
            f"almost no record has one, so that the score is noise; check their spelling and type{count}."
        ),
        SuspiciousReleaseWarning,
    )


def _labels(model: Any, suspicion: Suspicion) -> str:
    return (
        f"classes={model.classes_.tolist()!r}: expected the labels that records have, but the released class shares "
        "say that almost no record has a stated label, so that the model is noise; check their spelling and type"
        f"{', and n_public' if model.relation == 'add-remove' else ''}."
    )


def _label(model: Any, suspicion: Suspicion) -> str:
    absent = ", ".join(repr(model.classes_.tolist()[code]) for code in suspicion.codes)
    return (
        "classes: expected labels that records have, but the released class shares say that almost no record has the "
        f"label {absent}; check its spelling, or leave out a class that is too rare."
    )


def _rows(model: Any, suspicion: Suspicion) -> str:
    bound = model.certificate_.public["x_bound"]
    return (
        f"x_bound={bound!r}: expected most cells within the bounds, but the released median row norm is at its "
        "ceiling, so that most cells lie at or beyond x_bound; unless they are codes of -1 and 1, give a larger "
        "x_bound, or scale the columns with BoundedScaler."
    )


def _target(model: Any, suspicion: Suspicion) -> str:
    # Where none were given, those that the fit used.
    bounds = model.y_bounds_ if model.y_bounds is None else model.y_bounds
    return (
        f"y_bounds={bounds!r}: expected most targets within the bounds, but {suspicion.what}, as released, "
        "says that most lie at or beyond them; give the range that the target can have, or use a classifier if it has "
        "two values only."
    )


_SENTENCES: dict[str, Callable[[Any, Suspicion], str]] = {
    "labels": _labels,
    "label": _label,
    "rows": _rows,
    "target": _target,
}
