"""Cards for notebooks: self-contained HTML without scripts, in the text colour of whatever surrounds it.

Text is drawn in the current colour, and shapes in colours that stand out from white and from black, so that a card can
be read on a light and on a dark background without knowing which one it is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taciturn.drawing.markup import Markup, element
from taciturn.drawing.svg import Drawing

__all__ = ["card", "folded", "inline_drawing", "table"]

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


def _cell(name: str, text: str, place: int, scope: str) -> Markup:
    return element(name, text, scope=scope if name == "th" else None, class_="taciturn-number" if place else None)
