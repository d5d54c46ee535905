"""Coefficients with their standard errors and intervals as a chart and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.drawing.charts import MOST_BARS
from taciturn.drawing.forest import Estimate, forest_chart
from taciturn.drawing.formats import format_number, format_odds, format_ratio, odds_step
from taciturn.report.page import Page

if TYPE_CHECKING:
    from taciturn.estimators.summary import CoefficientSummary

__all__ = ["show_intervals"]

_MOST_ROWS = 1000


def show_intervals(page: Page, subject: str, summary: CoefficientSummary) -> None:
    """Add a forest plot, a table of errors and one of effects per unit, for a model that has standard errors."""
    columns, found = summary.columns, summary.inference
    names = list(summary.names)
    order = sorted(range(len(names)), key=lambda j: -abs(columns["coefficient"][j]))
    level = f"{100.0 * found.confidence_level:g}%"
    if names:
        _show_chart(page, subject, summary, order, level)
    shown = order[:_MOST_ROWS]
    rest = "" if shown == order else f": the largest {_MOST_ROWS:,} of {len(order):,}, the model file has all"
    whom = "persons" if "Persons" in summary.facts else "records"
    errors = ("coefficient", "std error", "sampling", "privacy")
    header = ["feature", "coefficient", "standard error", "of which sampling", "of which privacy", f"{level} interval"]
    page.table(
        [*header, "p", "p (BH)"],
        [
            [
                "(intercept)" if j == len(names) else names[j],
                *(_number(columns[name][j]) for name in errors),
                _interval(columns["lower"][j], columns["upper"][j]),
                *(_format_p(columns[name][j]) for name in ("p", "p (BH)")),
            ]
            for j in [*shown, len(names)]
        ],
        f"Coefficients of {subject} and their errors, from {found.n_records:,} {whom}{rest}",
        numeric={1, 2, 3, 4, 5, 6, 7},
    )
    if not names:
        return
    header = ["feature", "effect per unit", f"{level} interval"]
    if summary.odds:
        header += ["odds ratio per unit", f"{level} interval of the odds ratio"]
    page.table(
        header,
        [[names[j], *_effects(summary, columns, j)] for j in shown],
        f"Effects on {subject} per unit of the column in the table{rest}",
        numeric=set(range(1, len(header))),
    )


def _effects(summary: CoefficientSummary, columns: dict[str, FloatArray], j: int) -> Iterator[str]:
    """The effect of one unit of a column and its interval, and the same for the odds ratio if there is one."""
    unit = 1.0 if summary.units is None else float(summary.units[j])
    value, lower, upper = (float(columns[name][j]) for name in ("coefficient", "lower", "upper"))
    yield _number(value / unit)
    yield _interval(lower / unit, upper / unit)
    if summary.odds:
        yield format_odds(value, unit)
        step = odds_step(unit) / unit
        yield "none" if math.isnan(lower) else f"{format_ratio(lower * step)} to {format_ratio(upper * step)}"


def _show_chart(page: Page, subject: str, summary: CoefficientSummary, order: list[int], level: str) -> None:
    columns, found = summary.columns, summary.inference
    estimates = [
        Estimate(
            summary.names[j],
            float(columns["coefficient"][j]),
            float(columns["lower"][j]),
            float(columns["upper"][j]),
            found.quantile * float(found.sampling[j]),
        )
        for j in order
        if math.isfinite(found.std_error[j])
    ]
    shown = estimates[:MOST_BARS]
    clear = [estimate.name for estimate in shown if estimate.is_clear]
    what = "Odds ratios" if summary.odds else "Coefficients"
    reference = "1, no difference in odds" if summary.odds else "zero"
    first = f": {', '.join(clear[:3])}" if clear else ""
    told = f"{len(clear)} of {len(shown)} intervals leave out {reference}{first}"
    cut = f"The {len(shown)} largest of {len(order):,}" if len(shown) < len(order) else what
    change = "from the middle of its bounds to the upper bound, or from no to yes"
    page.figure(
        forest_chart(estimates, f"{what} with intervals: {subject}", odds=summary.odds),
        f"A point and a horizontal interval for each of {len(shown)} features, the largest coefficient first, and a "
        f"line at {reference}. {told}. The tables below have the numbers.",
        f"{cut} of {subject}, with {level} intervals, for a change of each column {change}. The thin line is the "
        "interval; its thick part is what the sampling error alone would give. Filled points have an interval that "
        f"leaves out {reference}.",
    )


def _number(value: float) -> str:
    return "none" if np.isnan(value) else format_number(float(value))


def _interval(lower: float, upper: float) -> str:
    return "none" if np.isnan(lower) else f"{format_number(float(lower))} to {format_number(float(upper))}"


def _format_p(value: float) -> str:
    if np.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"
