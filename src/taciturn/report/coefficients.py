"""The coefficients of a model as charts and tables, with an explanation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.drawing.charts import MOST_BARS, Bar, coefficient_chart, find_scale, select_largest
from taciturn.drawing.formats import format_number, format_odds
from taciturn.report.intervals import show_intervals
from taciturn.report.page import Page

if TYPE_CHECKING:
    from taciturn.modelfile import Model

__all__ = ["show_coefficients"]

_MOST_ROWS = 1000


def show_coefficients(page: Page, model: Model) -> None:
    """Add a chart and a table for each output, and their explanation."""
    outputs = list(_outputs(model))
    used = {bar.name for _, _, bars in outputs for bar in bars}
    page.paragraph(
        f"{len(used):,} of {len(model.feature_names):,} features have a coefficient other than zero. {_meaning(model)}"
    )
    page.paragraph(
        "Columns of numbers are mapped from their bounds to [-1, 1], so a coefficient tells what changes from the "
        "middle of the bounds to the upper bound; the effect per unit is the change for one unit of the column in the "
        "table. Yes-or-no columns and categories are 1 or 0, and both numbers are the change from no to yes."
    )
    found = getattr(model.estimator, "inference_", None)
    if not used:
        page.paragraph("The model is its intercept alone.")
    if found is not None:
        for note in model.inference_notes:
            page.paragraph(note)
        if found.reason is None:
            ((subject, intercept, _),) = outputs
            show_intervals(page, subject, model.summary())
            page.paragraph(_about_intercept(model, intercept))
            return
    elif used:
        page.paragraph(_about_noise(model))
    units = dict(zip(model.feature_names, model.bounds.feature_units, strict=True))
    # All charts share one scale.
    reach = find_scale([bar for _, _, bars in outputs for bar in bars])
    for subject, intercept, bars in outputs:
        if len(outputs) > 1:
            page.section(subject[0].upper() + subject[1:], level=3)
        if bars:
            _show_bars(page, subject, bars, reach, units, odds=_has_odds(model))
        page.paragraph(_about_intercept(model, intercept))


def _outputs(model: Model) -> Iterator[tuple[str, float, list[Bar]]]:
    """Name, intercept and nonzero coefficients, by size, of each output."""
    estimator, names = model.estimator, model.feature_names
    coefficients = _rows(estimator.coef_)
    subjects = _subjects(model)
    for i, (subject, intercept) in enumerate(zip(subjects, np.atleast_1d(estimator.intercept_), strict=True)):
        bars = [Bar(str(names[j]), float(coefficients[i, j])) for j in np.flatnonzero(coefficients[i])]
        yield subject, float(intercept), sorted(bars, key=lambda bar: -abs(bar.value))


def _rows(array: Any) -> np.ndarray:
    """One row per output, from any layout of the coefficients."""
    return np.atleast_2d(array.toarray() if hasattr(array, "toarray") else array)


def _subjects(model: Model) -> list[str]:
    target = model.bounds.target.name
    if model.task == "regress":
        return [target]
    classes = [str(label) for label in model.estimator.classes_]
    return (
        [f"{target} ({classes[1]} against {classes[0]})"]
        if len(classes) == 2
        else [f"class {label}" for label in classes]
    )


def _show_bars(
    page: Page, subject: str, bars: list[Bar], reach: tuple[float, float], units: dict[str, float], *, odds: bool
) -> None:
    shown = f"{len(bars):,}" if len(bars) <= MOST_BARS else f"{MOST_BARS} largest of {len(bars):,}"
    first = ", ".join(f"{bar.name} ({format_number(bar.value)})" for bar in bars[:3])
    page.figure(
        coefficient_chart(bars, f"Coefficients: {subject}", reach),
        f"Horizontal bars of {len(select_largest(bars))} coefficients by size, positive ones to the right of zero and "
        f"negative ones to the left. The largest: {first}. The table below has the numbers.",
        f"The {shown} coefficients of {subject} other than zero.",
    )
    header = ["feature", "coefficient", "effect per unit", *(["odds ratio per unit"] if odds else [])]
    rows = [
        [
            bar.name,
            format_number(bar.value),
            format_number(bar.value / units[bar.name]),
            *([format_odds(bar.value, units[bar.name])] if odds else []),
        ]
        for bar in bars[:_MOST_ROWS]
    ]
    rest = "" if len(bars) <= _MOST_ROWS else f": the largest {_MOST_ROWS:,} of {len(bars):,}, the model file has all"
    page.table(header, rows, f"Coefficients of {subject}{rest}", numeric=set(range(1, len(header))))


def _has_odds(model: Model) -> bool:
    return model.task == "classify" and len(model.estimator.classes_) == 2


def _meaning(model: Model) -> str:
    if model.task == "regress":
        return "A coefficient is a change of the prediction, in the units of the target."
    if _has_odds(model):
        classes = model.estimator.classes_
        return (
            f"A coefficient is a change of the log-odds of {classes[1]} against {classes[0]}: 0.7 more about doubles "
            "the odds, 0.7 less about halves them. The odds ratio is the factor by which the odds change; it is stated "
            "for a smaller change than one unit where the bounds of a column are closer together."
        )
    return (
        "Every class has a score of its own, and a coefficient is a change of that score: the score of one class minus "
        "that of another is the log-odds of the one against the other."
    )


def _about_intercept(model: Model, intercept: float) -> str:
    return (
        f"Intercept: {format_number(intercept)}. This is the {_unit(model)} of a record with every column of numbers "
        "in the middle of its bounds, and zeros elsewhere."
    )


def _unit(model: Model) -> str:
    if model.task == "regress":
        return "prediction"
    return "log-odds" if _has_odds(model) else "score"


def _about_noise(model: Model) -> str:
    if model.certificate.status == "not private":
        return "There is no noise in these numbers. How they would differ in another sample is not stated here."
    return (
        "These numbers contain the noise that protects the records. How large it is in each coefficient is not stated "
        "here, nor how coefficients would differ in another sample."
    )
