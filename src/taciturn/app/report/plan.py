"""The page of a plan: what to expect at each epsilon, and charts against epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taciturn.app.plan_file import MEASURES, PlanFile, PlannedFit
from taciturn.app.report.page import render
from taciturn.charts import Drawing, Layout, Markup, element, format_number, in_both_widths, round_ticks

_WIDE = Layout(640.0, 64.0, 20.0, 22.0)
_NARROW = Layout(320.0, 52.0, 12.0, 22.0, ticks=3)
_TOP, _HIGH, _BELOW = 16.0, 200.0, 44.0
_MOST_CHARTS = 4
_LINES = 5
# Numbers in between are shown without an exponent.
_SMALLEST, _LARGEST = 1e-4, 1e3

Points = Sequence[tuple[float, tuple[float, float, float]]]
"""Epsilons with a value and the ends of its band."""


def band_chart(points: Points, title: str) -> Drawing:
    """Draw values with their bands against epsilon, which has a logarithmic axis."""
    known = [(epsilon, band) for epsilon, band in points if math.isfinite(band[0])]
    ends = [end for _, band in known for end in band if math.isfinite(end)]
    low, high = min(0.0, *ends), max(ends)
    high = high if high > low else low + 1.0
    first, last = (math.log(known[place][0]) for place in (0, -1))

    def draw(layout: Layout) -> Drawing:
        bottom = _TOP + _HIGH

        def across(epsilon: float) -> float:
            share = (math.log(epsilon) - first) / (last - first) if last > first else 0.5
            return layout.left + share * layout.span

        def height(value: float) -> float:
            return bottom - _HIGH * (value - low) / (high - low)

        shapes = []
        for value in round_ticks(low, high, most=_LINES):
            y = height(value)
            right = layout.width - layout.right
            shapes.append(element("line", x1=layout.left, x2=right, y1=y, y2=y, class_="grid" if value else "axis"))
            shapes.append(element("text", f"{value:g}", x=layout.left - 7.0, y=y + 4.0, class_="small number"))
        for epsilon, _ in known:
            x = across(epsilon)
            shapes.append(element("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="grid"))
            shapes.append(element("text", f"{epsilon:g}", x=x, y=bottom + 18.0, class_="small middle"))
        shapes.append(
            element("text", "epsilon", x=layout.left + layout.span / 2.0, y=bottom + 38.0, class_="small middle")
        )
        banded = [(epsilon, band) for epsilon, band in known if math.isfinite(band[1]) and math.isfinite(band[2])]
        corners = [(across(e), height(min(band[2], high))) for e, band in banded]
        corners += [(across(e), height(max(band[1], low))) for e, band in reversed(banded)]
        if len(banded) > 1:
            shapes.append(element("path", d=_path(corners) + "Z", class_="region"))
        shapes.append(element("path", d=_path([(across(e), height(band[0])) for e, band in known]), class_="curve"))
        for epsilon, band in known:
            words = element("title", f"epsilon {epsilon:g}: {_range(band)}")
            spot = element("circle", cx=across(epsilon), cy=height(band[0]), r=4.0, class_="estimate clear")
            shapes.append(element("g", words, spot))
        return Drawing(title, layout.width, bottom + _BELOW, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def _path(corners: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in corners)


def _range(band: tuple[float, float, float]) -> str:
    shown = _ends(band)
    return f"{_shown(band[0])} ({shown})" if shown else _shown(band[0])


def _ends(band: tuple[float, float, float]) -> str:
    _, low, high = band
    return f"{_shown(low)} to {_shown(high)}" if math.isfinite(low) and math.isfinite(high) else ""


def _shown(value: float) -> str:
    """Three digits, which is more than a forecast knows."""
    if not math.isfinite(value):
        return "none"
    return f"{value:.3g}" if _SMALLEST <= abs(value) < _LARGEST else format_number(value)


def plan_page(plan: PlanFile) -> str:
    """Write the page of a plan as the text of one HTML file."""
    return render(
        "plan.html.j2",
        f"Plan for \u201c{plan.target}\u201d",
        plan=plan,
        fits=[_fit(fit, plan.score) for fit in plan.fits],
        charts=list(_charts(plan)),
        shares=[(name, f"{share:.1%}") for name, share in plan.shares.items()],
    )


def _fit(fit: PlannedFit, score: str) -> dict[str, Any]:
    names = MEASURES | {"score": score}
    rows = []
    for each in fit.features:
        numbers = (each.std_error, each.sampling, each.privacy)
        rows.append(
            (each.name, f"{each.change:g}", *map(_shown, numbers), _shown(each.width[0]), _ends(each.width),
             _shown(each.smallest_effect), f"{each.interval_probability:.0%}")
        )  # fmt: skip
    return {
        "epsilon": fit.epsilon,
        "title": f"{fit.epsilon:g}",
        "likely": f"{fit.interval_probability:.0%}",
        "sentence": f"{fit.interval_probability:.0%} of the coefficients that a table determines get an interval.",
        "rows": rows,
        "measures": [(names[name], _shown(band[0]), _ends(band)) for name, band in fit.measures.items()],
    }


def _charts(plan: PlanFile) -> list[dict[str, Any]]:
    """Of predictions, where they were simulated, and of the widths of some intervals."""
    series: list[tuple[str, Points]] = []
    for name, words in (("score", plan.score), ("error", MEASURES["error"])):
        series.append((words, [(fit.epsilon, fit.measures[name]) for fit in plan.fits if name in fit.measures]))
    last = {each.name: each for each in plan.fits[-1].features}
    widest = sorted(last, key=lambda name: -last[name].width[0] if math.isfinite(last[name].width[0]) else math.inf)
    for name in widest[:_MOST_CHARTS]:
        widths = [(fit.epsilon, each.width) for fit in plan.fits if (each := fit.feature(name)) is not None]
        series.append((f"width of the interval of {name}, for a change of {last[name].change:g}", widths))
    found = []
    for words, points in series:
        if sum(math.isfinite(band[0]) for _, band in points) > 1:
            told = "; ".join(f"at {epsilon:g} {_range(band)}" for epsilon, band in points if math.isfinite(band[0]))
            caption = f"{words[:1].upper()}{words[1:]} against epsilon, with the band of a single fit."
            found.append({"drawing": band_chart(points, words), "alt": f"By epsilon: {told}.", "caption": caption})
    return found
