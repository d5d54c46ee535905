"""The report as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterable

from taciturn.app.report.page import Page
from taciturn.charts import Markup, element
from taciturn_research.reproduce.pages.blocks import Block, Cell, Facts, Grid, Heading, Image, Paragraph, Stamped

__all__ = ["web_page"]

_MOST_LINES_UNFOLDED = 60
_MOST_BYTES_AS_SVG = 300_000
# Least widths of cells, and the number of letters from which on they have it.
_ROOM = {"14rem": 40, "7rem": 16}
_COLOURS = {"good": "plus", "bad": "minus", "neutral": "muted"}


def web_page(title: str, blocks: Iterable[Block]) -> str:
    """The whole file."""
    page = Page(title)
    for block in blocks:
        match block:
            case Heading(text, level):
                page.section(text, level)
            case Paragraph(text):
                page.paragraph(_inline(text))
            case Facts(pairs):
                page.facts((term, _inline(said)) for term, said in pairs)
            case Grid(caption, header, lines, numeric):
                cells = ([_in_table(cell) for cell in line] for line in lines)
                page.table(header, cells, caption, numeric, folded=len(lines) > _MOST_LINES_UNFOLDED)
            case Image(alt=alt, caption=caption, png=png, svg=svg):
                page.figure(svg if len(svg) < _MOST_BYTES_AS_SVG else png, alt, caption)
    return page.render()


def _in_table(cell: Cell) -> str | Markup:
    """As elsewhere, but text gets the room to be read where it shares the width with many columns."""
    inside, length = _inline(cell), len(str(cell))
    room = next((width for width, most in _ROOM.items() if length > most), None)
    return inside if room is None else element("div", inside, style=f"min-width: {room}")


def _inline(cell: Cell) -> str | Markup:
    if not isinstance(cell, Stamped):
        return cell
    # The word says it, the colour only helps to find it.
    word = element("strong", cell.word, style=f"color: var(--{_COLOURS[cell.tone]})")
    return element("span", cell.before, word, cell.after)
