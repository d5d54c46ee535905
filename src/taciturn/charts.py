"""Charts as SVG and notebook HTML, and how numbers are formatted in them."""

from __future__ import annotations

import html
import math
import statistics
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from taciturn.core.errors import visible


class Markup(str):
    """Text that is markup already. Only this module makes it, mostly by :func:`element`."""

    __slots__ = ()

    def __html__(self) -> str:
        """The markup itself, which templates do not escape again."""
        return str(self)


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Make one element: plain text in it is escaped, and markup is not.

    ``class_`` stands for class and ``aria_label`` for aria-label; None leaves the attribute out.

    Examples
    --------
    >>> element("p", "1 < 2", element("b", "yes"), class_="sum")
    '<p class="sum">1 &lt; 2<b>yes</b></p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else _escaped(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def _plain(value: str | float) -> str:
    """Format coordinates to a hundredth, which keeps the page short."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    # HTML and UTF-8 exclude some characters, and some characters change the direction of others.
    return html.escape(visible(text))


# --- Numbers and public facts as text.

_DIGITS = 4
_MOST_LISTED = 20
_LEAST_SHARE = 1e-6
# Numbers beyond are written with an exponent.
_LEAST_ERROR, _MOST_ERROR = 1e-4, 1e5


def format_number(value: float) -> str:
    """Format a number with four digits, without an exponent if that is short.

    Examples
    --------
    >>> [format_number(value) for value in (0.5, -1234.56, 1e-6, 0.0)]
    ['0.5000', '-1,235', '1.000e-06', '0']
    """
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{_DIGITS - 1}e}"
    return f"{value:,.{max(0, _DIGITS - 1 - math.floor(math.log10(abs(value))))}f}"


def format_estimate(value: float, lower: float, upper: float) -> str:
    """Format a number with its interval: as many decimals in all three as show two digits of the error.

    Examples
    --------
    >>> format_estimate(-0.00773, -0.4143, 0.3988), format_estimate(1.0301, 1.0283, 1.0319)
    ('-0.01 (-0.41 to 0.40)', '1.0301 (1.0283 to 1.0319)')
    """
    form = estimate_form(value, lower, upper)
    return f"{value:{form}} ({lower:{form}} to {upper:{form}})"


def estimate_form(value: float, lower: float, upper: float) -> str:
    """The form in which a number, its interval and its errors are written: with the same decimals.

    Examples
    --------
    >>> estimate_form(1.0301, 1.0283, 1.0319), estimate_form(1e9, 0.0, 2e9)
    ('z.4f', '.3g')
    """
    # The interval of an odds ratio is shorter on one side.
    half = min(value - lower, upper - value)
    if _LEAST_ERROR <= half < _MOST_ERROR and max(abs(value), abs(lower), abs(upper)) < _MOST_ERROR:
        # Without a minus before a zero.
        return f"z.{max(0, 1 - math.floor(math.log10(half)))}f"
    return ".3g"


# Exponentials beyond are not finite.
_MOST_LOG = 690.0
# Ratios nearer to 1 need more digits, or are written as a difference from 1.
_NEAR, _NEAREST = 1e-2, 1e-6


def format_ratio(log_ratio: float) -> str:
    """Format the exponential of a number with four digits, or with three digits of its difference from 1.

    Examples
    --------
    >>> [format_ratio(value) for value in (0.7, 0.0043, -2e-8, 0.0, 30.0)]
    ['2.014', '1.00431', '1-2.0e-08', '1', '1.069e+13']
    """
    if abs(log_ratio) > _MOST_LOG:
        return ">1e+299" if log_ratio > 0.0 else "<1e-299"
    beyond = math.expm1(log_ratio)
    if abs(beyond) >= _NEAR or beyond == 0.0:
        return format_number(math.exp(log_ratio)) if beyond else "1"
    if abs(beyond) < _NEAREST:
        return f"1{beyond:+.1e}"
    return f"{1.0 + beyond:.{2 - math.floor(math.log10(abs(beyond)))}f}"


def odds_step(unit: float) -> float:
    """The change of a column that an odds or rate ratio is stated for: 1, or a power of ten if the bounds are closer.

    Where a column ranges over 0.2 there is no change by 1, and its ratio would be out of all proportion. The
    ``unit`` is half the width of the bounds of the column.

    Examples
    --------
    >>> [odds_step(unit) for unit in (1e308, 50.0, 0.5, 0.1, 0.0004)]
    [1.0, 1.0, 1.0, 0.1, 0.0001]
    """
    return 1.0 if unit >= 0.5 else 10.0 ** math.floor(math.log10(2.0 * unit))


def shown_change(unit: float, step: float | None) -> float:
    """The change of a column that its effect is shown for: the one that the bounds file states, or :func:`odds_step`.

    Examples
    --------
    >>> shown_change(50.0, 10.0), shown_change(50.0, None), shown_change(0.1, None)
    (10.0, 1.0, 0.1)
    """
    return odds_step(unit) if step is None else step


def format_change(name: str, step: float | None) -> str:
    """The name of a feature, with the change of its column that an effect is shown for, if one is stated.

    Examples
    --------
    >>> format_change("age", 10.0), format_change("age", None)
    ('age (per 10)', 'age')
    """
    return name if step is None else f"{name} (per {step:g})"


def format_odds(coefficient: float, unit: float, step: float | None = None) -> str:
    """Format the odds ratio for a change of a column by ``step``, or by one unit or less (:func:`odds_step`).

    Examples
    --------
    >>> format_odds(1.5, 50.0), format_odds(3.0, 0.1), format_odds(1.5, 50.0, 10.0)
    ('1.030', '20.09 per 0.1', '1.350 per 10')
    """
    step = odds_step(unit) if step is None else step
    return format_ratio(coefficient * step / unit) + ("" if step == 1.0 else f" per {step:g}")


def format_odds_estimate(coefficient: float, lower: float, upper: float, unit: float, step: float | None = None) -> str:
    """Format the odds ratio for a change of a column with its interval; ``step`` as in :func:`format_odds`.

    Examples
    --------
    >>> format_odds_estimate(1.483, 1.394, 1.572, 50.0), format_odds_estimate(0.3, 0.2, 0.4, 0.1)
    ('1.0301 (1.0283 to 1.0319)', '1.35 (1.22 to 1.49) per 0.1')
    >>> format_odds_estimate(1.5, 1.0, 2.0, 50.0, 10.0)
    '1.35 (1.22 to 1.49) per 10'
    """
    step = odds_step(unit) if step is None else step
    ratios = (math.exp(min(number * step / unit, _MOST_LOG)) for number in (coefficient, lower, upper))
    return format_estimate(*ratios) + ("" if step == 1.0 else f" per {step:g}")


def round_safely(value: float, *, up: bool, digits: int = _DIGITS) -> str:
    """Round a bound to a few digits: upper bounds up, lower bounds down.

    Rounded is the shortest decimal number that is read as the value, so that 0.1 stays 0.1.

    Examples
    --------
    >>> round_safely(2.71801, up=True), round_safely(2.71899, up=False), round_safely(0.1, up=True)
    ('2.719', '2.718', '0.1')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{context.create_decimal(repr(float(value))).normalize():,f}"


def format_percent(share: float, *, up: bool) -> str:
    """Format a bound on a probability as a percentage: upper bounds are rounded up, lower bounds down.

    Examples
    --------
    >>> format_percent(0.731058, up=True), format_percent(0.268941, up=False), format_percent(1e-9, up=False)
    ('73.2%', '26.8%', '0%')
    """
    return "0%" if share < _LEAST_SHARE and not up else f"{round_safely(100.0 * share, up=up, digits=3)}%"


def format_fact(value: Any) -> str:
    """Format a public fact; long lists are shortened."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        # Truth values in a list are labels of classes, which stand as they are wherever results are shown.
        listed = ", ".join(str(each) if isinstance(each, bool) else format_fact(each) for each in value[:_MOST_LISTED])
        return listed if len(value) <= _MOST_LISTED else f"{listed} and {len(value) - _MOST_LISTED:,} more"
    return str(value)


def flatten_facts(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Iterate over nested facts, as pairs of a name and a text."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from flatten_facts(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", format_fact(value)


# --- Inline SVG images, and where the rows of a chart have their names, marks and numbers.

_FONT, _SMALL, _GAP = 13.0, 12.0, 10.0
# Widths of letters in wide sans-serif fonts (DejaVu Sans, Verdana), in sizes of the font.
_SLIM, _NARROWEST = frozenset(" .,:;'|!()[]/-fijlrt"), 0.46
_BASELINE = 4.5
# Between two labels of an axis.
_BETWEEN = 4.0


@dataclass(frozen=True, slots=True)
class Drawing:
    """An inline SVG image of a size in pixels.

    ``body`` is made by :func:`taciturn.charts.element`. ``narrow`` is the same image for a narrow window. An
    image that has one fills the width of the page, and one without it keeps its size.
    """

    title: str
    width: float
    height: float
    body: Markup
    narrow: Drawing | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in a chart of rows: margins of the marks, height of a row, number of ticks.

    With ``stacked`` the name and the number of a row stand above its mark, so that both are seen in a narrow window;
    else they stand in the margins to its left and right.
    """

    width: float
    left: float
    right: float
    row: float
    ticks: int = 6
    stacked: bool = False

    @property
    def span(self) -> float:
        """Width of the marks."""
        return self.width - self.left - self.right

    def middle(self, top: float) -> float:
        """Height of the mark of a row that begins at ``top``."""
        return top + self.row - 13.0 if self.stacked else top + self.row / 2.0

    def labels(self, top: float, name: str, number: str) -> tuple[Markup, Markup]:
        """The name and the number of a row that begins at ``top``."""
        base = top + _FONT if self.stacked else self.middle(top) + _BASELINE
        right = element("text", number, x=self.width - 2.0, y=base, class_="number")
        if self.stacked:
            room = self.width - 2.0 - text_width(number) - _GAP
            return element("text", shorten(visible(name), room), x=0.0, y=base), right
        room = self.left - _GAP
        return element("text", shorten(visible(name), room), x=room, y=base, class_="number"), right


WIDE = Layout(640.0, 205.0, 75.0, 22.0)
NARROW = Layout(320.0, 12.0, 12.0, 36.0, ticks=3, stacked=True)


def in_both_widths(draw: Callable[[Layout], Drawing], wide: Layout = WIDE, narrow: Layout = NARROW) -> Drawing:
    """Draw a chart for a wide window and for a narrow one."""
    return replace(draw(wide), narrow=draw(narrow))


def draw_ticks(layout: Layout, ticks: list[tuple[float, str, bool]], top: float, bottom: float) -> list[Markup]:
    """Lines across a chart with their labels above it: place, label, and whether the line is the axis.

    Labels lie inside the image. Of two that would overlap the second is left out with its line, unless it is the axis.
    """
    places: dict[float, tuple[float, float]] = {}
    for x, label, _ in sorted(ticks, key=lambda tick: not tick[2]):
        half = text_width(label, _SMALL) / 2.0
        middle = min(max(x, half), layout.width - half)
        if all(abs(middle - other) >= half + reach + _BETWEEN for other, reach in places.values()):
            places[x] = middle, half
    shapes = []
    for x, label, is_axis in ticks:
        if x in places:
            shapes.append(element("line", x1=x, x2=x, y1=top - 4.0, y2=bottom, class_="axis" if is_axis else "grid"))
            shapes.append(element("text", label, x=places[x][0], y=top - 9.0, class_="small middle"))
    return shapes


def shorten(name: str, room: float) -> str:
    """Shorten a name to the width ``room``; the middle is left out, as names often differ at both ends."""
    if text_width(name) <= room:
        return name
    # At most as many letters as fit if all are narrow, so that very long names take no more time.
    kept = min(len(name), math.ceil(room / (_FONT * _NARROWEST)))
    while kept > 2 and text_width(name[: kept - kept // 2]) + text_width("…" + name[len(name) - kept // 2 :]) > room:
        kept -= 1
    return f"{name[: kept - kept // 2]}…{name[len(name) - kept // 2 :]}"


def text_width(text: str, font: float = _FONT) -> float:
    """Upper estimate of the width of a text: that of wide fonts, as it is not known which one is used."""

    def width(letter: str) -> float:
        if unicodedata.east_asian_width(letter) in "WF":
            return 1.05
        if letter in _SLIM:
            return _NARROWEST
        return 1.0 if letter in "mwMW@%" else 0.84 if letter in "=+<>~" else 0.79 if letter.isupper() else 0.64

    return font * sum(map(width, text))


# --- Posterior beliefs of an attacker who wants to know whether a person is in the data.
#
# Let P and Q be the laws of the release with the person and without, (epsilon, delta)-indistinguishable in both
# directions. Let a signal S reveal, with probability delta, whether the person is in the data, and otherwise tell the
# truth with probability :math:`e^\varepsilon / (1 + e^\varepsilon)` (randomised response). No test of an
# (epsilon, delta)-indistinguishable pair is more powerful than the best test on S [1]_, so by Blackwell's theorem the
# release is a random function of S and reveals no more. Given S, the posterior is an end of :func:`posterior_range`,
# except with probability delta. Given the release it is a mean of those: beyond the range by at most delta on average,
# and by more than t with probability at most delta / t (Markov).
#
# .. [1] Kairouz, Oh and Viswanath, *The composition theorem for differential privacy* (2015).


def posterior_range(prior: float, epsilon: float) -> tuple[float, float]:
    r"""Lowest and highest posterior probability for the prior probability ``prior``, up to delta.

    .. math:: \frac{p}{p + (1 - p) e^{\varepsilon}} \quad\text{and}\quad \frac{p}{p + (1 - p) e^{-\varepsilon}}

    Examples
    --------
    >>> low, high = posterior_range(0.5, 1.0)
    >>> round(low, 4), round(high, 4)
    (0.2689, 0.7311)
    """
    if prior in (0.0, 1.0):
        return prior, prior
    # In terms of exp(-epsilon), which cannot overflow.
    factor = math.exp(-epsilon)
    return prior * factor / (prior * factor + 1.0 - prior), prior / (prior + (1.0 - prior) * factor)


# --- Charts of one share against another: a square with axes from 0 to 100%.

SIDE = 300.0
"""The side of a square in pixels, unless another one is asked for."""

_MARGIN_LEFT, _MARGIN = 62.0, 14.0


def square_point(x: float, y: float, side: float = SIDE) -> tuple[float, float]:
    """The place of two shares on the drawing."""
    return _MARGIN_LEFT + side * x, _MARGIN + side * (1.0 - y)


def square_axes(x_label: str, y_label: str, side: float = SIDE) -> list[Markup]:
    """Lines at quarters, their numbers, and the names of both axes."""
    left, right, top, bottom = _MARGIN_LEFT, _MARGIN_LEFT + side, _MARGIN, _MARGIN + side
    shapes = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = square_point(share, share, side)
        kind = "grid" if share else "axis"
        shapes += [
            element("line", x1=x, x2=x, y1=top, y2=bottom, class_=kind),
            element("line", x1=left, x2=right, y1=y, y2=y, class_=kind),
            element("text", f"{share:.0%}", x=x, y=bottom + 18.0, class_="small middle"),
            element("text", f"{share:.0%}", x=left - 7.0, y=y + 4.0, class_="small number"),
        ]
    turned = f"translate(14 {top + side / 2.0:g}) rotate(-90)"
    return [
        *shapes,
        element("text", x_label, x=left + side / 2.0, y=bottom + 38.0, class_="middle"),
        element("text", y_label, x=0.0, y=0.0, transform=turned, class_="middle"),
    ]


def draw_square(title: str, shapes: list[Markup], side: float = SIDE) -> Drawing:
    """The drawing of these shapes."""
    return Drawing(title, _MARGIN_LEFT + side + 20.0, _MARGIN + side + 46.0, Markup("".join(shapes)))


# --- Survival by time, with its band.


def survival_chart(
    times: Sequence[float], survival: Sequence[float], lower: Sequence[float], upper: Sequence[float], title: str
) -> Drawing:
    """Draw the share without an event by time, and its band; a curve ends where it is no number."""
    end = float(times[-1])
    edges = [0.0, *(float(time) / end for time in times)]

    def steps(values: Sequence[float]) -> list[str]:
        """Corners of a function that is known at the ends of intervals, and joined by lines between them."""
        known = [1.0, *(float(value) for value in values)]
        return ["{:.2f} {:.2f}".format(*square_point(x, y)) for x, y in zip(edges, known, strict=True) if y == y]

    bottom = _MARGIN + SIDE
    shapes = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        (left, y), (right, _) = square_point(0.0, share), square_point(1.0, share)
        shapes.append(element("line", x1=left, x2=right, y1=y, y2=y, class_="grid" if share else "axis"))
        shapes.append(element("text", f"{share:.0%}", x=left - 7.0, y=y + 4.0, class_="small number"))
    for time in round_ticks(0.0, end, most=5):
        x, _ = square_point(time / end, 0.0)
        shapes.append(element("line", x1=x, x2=x, y1=_MARGIN, y2=bottom, class_="grid" if time else "axis"))
        shapes.append(element("text", f"{time:g}", x=x, y=bottom + 18.0, class_="small middle"))
    shapes += [
        element("text", "time", x=_MARGIN_LEFT + SIDE / 2.0, y=bottom + 38.0, class_="middle"),
        element("path", d="M" + "L".join(steps(upper) + steps(lower)[::-1]) + "Z", class_="region"),
        element("path", d="M" + "L".join(steps(survival)), class_="curve"),
    ]
    return draw_square(title, shapes)


# --- Charts as inline SVG: coefficients as bars, and the posterior beliefs of an attacker as a region.

MOST_BARS = 40

_BAR, _TOP = 12.0, 24.0
_CURVE_POINTS = 100


@dataclass(frozen=True, slots=True)
class Bar:
    """One coefficient: its name and its value."""

    name: str
    value: float


def coefficient_chart(bars: Sequence[Bar], title: str, reach: tuple[float, float]) -> Drawing:
    """Draw horizontal bars by size, positive values to the right of zero and negative ones to the left, at most 40.

    ``reach`` are the ends of the scale: :func:`find_scale` of the bars of all charts that are to be compared.
    """
    bars = sorted(bars, key=lambda bar: -abs(bar.value))[:MOST_BARS]
    low, high = reach

    def draw(layout: Layout) -> Drawing:
        def place(value: float) -> float:
            return layout.left + (value - low) * (layout.span / (high - low))

        bottom = _TOP + layout.row * len(bars)
        ticks = [(place(tick), f"{tick:g}", tick == 0.0) for tick in round_ticks(low, high, layout.ticks)]
        shapes = draw_ticks(layout, ticks, _TOP, bottom)
        shapes += [_row(bar, _TOP + layout.row * i, layout, place) for i, bar in enumerate(bars)]
        return Drawing(title, layout.width, bottom + 6.0, Markup("".join(shapes)))

    return in_both_widths(draw)


def find_scale(bars: Sequence[Bar]) -> tuple[float, float]:
    """Return the smallest range that holds zero and all bars."""
    values = [0.0, *(bar.value for bar in bars)]
    low, high = min(values), max(values)
    return (low, high) if low < high else (-1.0, 1.0)


def _row(bar: Bar, top: float, layout: Layout, place: Callable[[float], float]) -> Markup:
    zero, end = place(0.0), place(bar.value)
    name, number = layout.labels(top, bar.name, format_number(bar.value))
    y, kind = layout.middle(top) - _BAR / 2.0, "minus" if bar.value < 0.0 else "plus"
    shape = element("rect", x=min(zero, end), y=y, width=abs(end - zero), height=_BAR, class_=kind)
    return element("g", element("title", f"{bar.name}: {format_number(bar.value)}"), name, shape, number)


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between the ends, including zero: about ``most``."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def odds_chart(epsilon: float, title: str, side: float = SIDE) -> Drawing:
    """Draw the range of posterior beliefs against the prior belief at this epsilon, in a square of a side in pixels."""

    def at(prior: float, posterior: float) -> str:
        return "{:.2f} {:.2f}".format(*square_point(prior, posterior, side))

    # Points are denser at the ends, where the curves are steep for a large epsilon.
    priors = [(1.0 - math.cos(math.pi * k / _CURVE_POINTS)) / 2.0 for k in range(_CURVE_POINTS + 1)]
    lower = [at(prior, posterior_range(prior, epsilon)[0]) for prior in priors]
    upper = [at(prior, posterior_range(prior, epsilon)[1]) for prior in priors]
    shapes = [
        element("path", d="M" + "L".join(upper + lower[::-1]) + "Z", class_="region"),
        *square_axes("believed before", "believed afterwards", side),
        element("path", d=f"M{at(0.0, 0.0)}L{at(1.0, 1.0)}", class_="none"),
        element("path", d="M" + "L".join(upper), class_="curve"),
        element("path", d="M" + "L".join(lower), class_="curve"),
    ]
    return draw_square(title, shapes, side)


# --- Coefficients with their intervals as inline SVG: a forest plot.

_WIDE = Layout(640.0, 180.0, 185.0, 24.0)
_NARROW = replace(NARROW, row=40.0)
_FOREST_TOP, _FOOT = 24.0, 26.0
_RADIUS, _CAP = 4.0, 4.0
# An interval of so many times the typical one is cut, so that the others can be read.
_MOST_HALVES = 3.0
# Nothing is cut unless that shortens the axis by a third.
_LEAST_CUT = 1.5
# Ratios on an axis: powers of ten, with more numbers between them the shorter the axis is.
_MANTISSAS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
_FEWEST_TICKS, _MOST_TICKS = 4, 7


@dataclass(frozen=True, slots=True)
class Estimate:
    """One coefficient with its interval, and how far the interval would reach for the sampling error alone.

    A coefficient without an interval has a ``mark`` in its place, and none of its numbers is drawn.
    """

    name: str
    value: float
    lower: float
    upper: float
    sampling: float
    mark: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether there is an interval, and it leaves out zero."""
        return not self.mark and (self.lower > 0.0 or self.upper < 0.0)


def forest_chart(estimates: Sequence[Estimate], title: str, *, ratio: str = "") -> Drawing:
    """Draw a point and an interval for each coefficient, at most 40, in the order given.

    With a ``ratio``, such as "odds ratio", the numbers are exponentials, on a logarithmic axis with a line at 1; else
    the line is at zero.
    """
    estimates = estimates[:MOST_BARS]
    low, high = find_reach([estimate for estimate in estimates if not estimate.mark])

    def draw(layout: Layout) -> Drawing:
        def place(value: float) -> float:
            return layout.left + (min(max(value, low), high) - low) * (layout.span / (high - low))

        bottom = _FOREST_TOP + layout.row * len(estimates)
        plain = [(tick, f"{tick:g}") for tick in round_ticks(low, high, layout.ticks)]
        ticks = _ratio_ticks(low, high) if ratio else plain
        shapes = draw_ticks(layout, [(place(at), label, at == 0.0) for at, label in ticks], _FOREST_TOP, bottom)
        shapes += [
            _forest_row(
                estimate,
                _FOREST_TOP + layout.row * i,
                layout,
                place,
                (low, high),
                _numbers(estimate, ratio=bool(ratio)),
            )
            for i, estimate in enumerate(estimates)
        ]
        middle = layout.left + layout.span / 2.0
        what = f"{ratio} (logarithmic)" if ratio else "coefficient"
        shapes.append(element("text", what, x=middle, y=bottom + 18.0, class_="small middle"))
        return Drawing(title, layout.width, bottom + _FOOT, Markup("".join(shapes)))

    return in_both_widths(draw, _WIDE, _NARROW)


def find_reach(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Ends of the axis: they hold zero, all points, and all intervals but those much wider than most."""
    if not estimates:
        return -1.0, 1.0
    points = [estimate.value for estimate in estimates]
    typical = statistics.median(0.5 * (estimate.upper - estimate.lower) for estimate in estimates)
    first = max(min(0.0, *(e.lower for e in estimates)), -_MOST_LOG)
    last = min(max(0.0, *(e.upper for e in estimates)), _MOST_LOG)
    low = max(first, min(0.0, *points) - _MOST_HALVES * typical)
    high = min(last, max(0.0, *points) + _MOST_HALVES * typical)
    if last - first <= _LEAST_CUT * (high - low):
        low, high = first, last
    return (low, high) if low < high else (-1.0, 1.0)


def _numbers(estimate: Estimate, *, ratio: bool) -> str:
    if estimate.mark:
        return estimate.mark
    numbers = (estimate.value, estimate.lower, estimate.upper)
    return format_estimate(*((math.exp(min(number, _MOST_LOG)) for number in numbers) if ratio else numbers))


def _forest_row(
    estimate: Estimate,
    top: float,
    layout: Layout,
    place: Callable[[float], float],
    reach: tuple[float, float],
    numbers: str,
) -> Markup:
    title = element("title", f"{estimate.name}: {numbers}")
    name, number = layout.labels(top, estimate.name, numbers)
    if estimate.mark:
        return element("g", title, name, number)
    left, right, value = place(estimate.lower), place(estimate.upper), place(estimate.value)
    inner = (place(estimate.value - estimate.sampling), place(estimate.value + estimate.sampling))
    middle = layout.middle(top)
    shapes = [
        title,
        name,
        element("line", x1=left, x2=right, y1=middle, y2=middle, class_="interval"),
        element("line", x1=inner[0], x2=inner[1], y1=middle, y2=middle, class_="sampling"),
        _end(left, middle, -1.0, cut=estimate.lower < reach[0]),
        _end(right, middle, 1.0, cut=estimate.upper > reach[1]),
        element("circle", cx=value, cy=middle, r=_RADIUS, class_="estimate clear" if estimate.is_clear else "estimate"),
        number,
    ]
    return element("g", *shapes)


def _end(x: float, middle: float, side: float, *, cut: bool) -> Markup:
    """The end of an interval: a bar across it, or an arrow where it goes on beyond the axis."""
    tip, back = (x + 2.0 * side, x - 4.0 * side) if cut else (x, x)
    top, bottom = middle - _CAP, middle + _CAP
    d = f"M{back:.2f} {top:.2f}L{tip:.2f} {middle:.2f}L{back:.2f} {bottom:.2f}"
    return element("path", d=d, class_="interval cut" if cut else "interval")


def _ratio_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Places and labels of round ratios, among them 1."""
    first, last = math.floor(low / math.log(10.0)), math.ceil(high / math.log(10.0))
    if last - first > _MOST_TICKS:
        step = math.ceil((last - first) / (_MOST_TICKS - 1))
        powers = [k * step for k in range(math.ceil(first / step), math.floor(last / step) + 1)]
        ticks = [(k * math.log(10.0), f"1e{k}" if k else "1") for k in powers]
        return [tick for tick in ticks if low <= tick[0] <= high]
    for mantissas in _MANTISSAS:
        ratios = [m * 10.0**k for k in range(first, last + 1) for m in mantissas]
        found = [(math.log(ratio), f"{ratio:g}") for ratio in ratios if low <= math.log(ratio) <= high]
        if _FEWEST_TICKS <= len(found) <= _MOST_TICKS:
            return found
    ratios = [ratio for ratio in round_ticks(math.exp(low), math.exp(high)) if ratio > 0.0]
    if not any(math.isclose(ratio, 1.0) for ratio in ratios):
        ratios.append(1.0)
    return [(0.0 if math.isclose(ratio, 1.0) else math.log(ratio), f"{ratio:g}") for ratio in sorted(ratios)]


# --- Cards for notebooks: self-contained HTML without scripts, in the text colour of whatever surrounds it.
#
# Text is drawn in the current colour, and shapes in colours that stand out from white and from black, so that a card
# can be read on a light and on a dark background without knowing which one it is on.

_STYLE = """
.taciturn-card { max-width: 46rem; margin: .5rem 0; line-height: 1.45; color: inherit; }
.taciturn-card p { margin: .3rem 0; }
.taciturn-card .taciturn-side { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; }
.taciturn-card .taciturn-side > div { flex: 1 1 17rem; }
.taciturn-card table { border-collapse: collapse; min-width: 20rem; margin: .5rem 0; color: inherit; background: none; }
.taciturn-card caption { text-align: left; padding: .2rem 0; color: inherit; caption-side: top; }
.taciturn-card tr, .taciturn-card tbody tr:nth-child(odd), .taciturn-card tbody tr:hover { background: none; }
.taciturn-card th, .taciturn-card td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0;
  color: inherit; border: 0; border-bottom: 1px solid rgba(128, 128, 128, .4); overflow-wrap: anywhere; }
.taciturn-card .taciturn-number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.taciturn-card summary { cursor: pointer; }
.taciturn-card svg { display: block; max-width: 100%; height: auto; }
.taciturn-card svg text { fill: currentColor; font-size: 13px; }
.taciturn-card svg .small { font-size: 12px; }
.taciturn-card svg .number { text-anchor: end; }
.taciturn-card svg .middle { text-anchor: middle; }
.taciturn-card svg .grid { stroke: currentColor; stroke-opacity: .2; }
.taciturn-card svg .axis { stroke: currentColor; stroke-opacity: .6; }
.taciturn-card svg .region { fill: #3d85c6; fill-opacity: .3; }
.taciturn-card svg .curve { stroke: #3d85c6; stroke-width: 2; fill: none; }
.taciturn-card svg .none { stroke: currentColor; stroke-dasharray: 5 4; fill: none; }
"""


def card(*parts: Markup) -> Markup:
    """Put parts into one card."""
    return element("div", element("style", Markup(_STYLE)), *parts, class_="taciturn-card")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Markup:
    """Make a table whose first column has names and whose other columns have numbers."""
    head = element("tr", *(_cell("th", text, place, "col") for place, text in enumerate(header)))
    lines = (
        element("tr", *(_cell("td" if place else "th", text, place, "row") for place, text in enumerate(row)))
        for row in rows
    )
    return element("table", element("caption", caption), element("thead", head), element("tbody", *lines))


def folded(label: str, facts: Iterable[tuple[str, str]]) -> Markup:
    """Make a list of facts that is hidden until its label is opened."""
    rows = (element("tr", element("th", name, scope="row"), element("td", words)) for name, words in facts)
    return element("details", element("summary", label), element("table", element("tbody", *rows)))


def inline_drawing(drawing: Drawing, alt: str) -> Markup:
    """Make a drawing in its own size; without ids, as a notebook may show it many times."""
    return element(
        "svg",
        element("title", drawing.title),
        drawing.body,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=alt,
        viewBox=f"0 0 {drawing.width:g} {drawing.height:g}",
        width=drawing.width,
        height=drawing.height,
    )


def standalone_drawing(drawing: Drawing) -> Markup:
    """Make a drawing that can be a file of its own, with its styles."""
    body = Markup(element("style", Markup(_STYLE.replace(".taciturn-card svg", "svg"))) + drawing.body)
    return inline_drawing(replace(drawing, body=body), drawing.title)


def _cell(name: str, text: str, place: int, scope: str) -> Markup:
    return element(name, text, scope=scope if name == "th" else None, class_="taciturn-number" if place else None)
