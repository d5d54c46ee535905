"""What pages are made of, and how blocks become Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from taciturn.app.report.page import Page
from taciturn.charts import Markup, element

# ---------------------------------------------------------------------
# What pages are made of, before they are Markdown or HTML.


@dataclass(frozen=True, slots=True)
class Stamped:
    """A word that must be seen, such as "holds", between the text before it and after it; its tone colours it."""

    word: str
    tone: Literal["good", "bad", "neutral"]
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{self.before}{self.word}{self.after}"


Cell = str | Stamped


@dataclass(frozen=True, slots=True)
class Heading:
    """Begins an experiment (level 2), or one of its tables or figures (level 3)."""

    text: str
    level: Literal[2, 3]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A few sentences."""

    text: Cell


@dataclass(frozen=True, slots=True)
class Facts:
    """Terms, and what is to be said of them."""

    pairs: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; ``numeric`` are the columns that hold numbers."""

    caption: str
    header: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]
    numeric: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Image:
    """A figure, stored as PNG and as SVG.

    ``stem`` is its path below the folder of the report, without suffix; ``alt`` is what it shows, for those who do not
    see it.
    """

    stem: str
    alt: str
    caption: str
    png: bytes
    svg: bytes


Block = Heading | Paragraph | Facts | Grid | Image


# ---------------------------------------------------------------------
# The report as Markdown.


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escaped(text: str) -> str:
    r"""Text that means nothing to Markdown, also within a table.

    Examples
    --------
    >>> print(escaped("|w*| < 1 & n_rows"))
    \|w\*\| &lt; 1 &amp; n_rows
    """
    # An underscore inside a word begins nothing.
    text = re.sub(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)", r"\\\g<0>", re.sub(r"\s*\n\s*", " ", text))
    return re.sub("[&<>]", lambda match: _ENTITIES[match[0]], text)


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[Cell]], numeric: Iterable[int] = ()) -> str:
    """A table; columns of numbers are set to the right."""
    rules = ["---:" if column in set(numeric) else "---" for column in range(len(header))]
    rows = [[_cell(name) for name in header], rules, *([_cell(cell) for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def markdown_page(title: str, blocks: Iterable[Block]) -> str:
    """The whole file."""
    return "\n\n".join((f"# {escaped(title)}", *(_block(block) for block in blocks))) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {escaped(text)}"
        case Paragraph(text):
            return _cell(text)
        case Facts(pairs):
            return "\n".join(f"- {escaped(term)}: {_cell(said)}" for term, said in pairs)
        case Grid(caption, header, lines, numeric):
            return f"{escaped(caption)}:\n\n{markdown_table(header, lines, numeric)}"
        case Image(stem, alt, caption):
            return f"![{escaped(alt)}]({stem}.png)\n\n{escaped(caption)}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Stamped):
        return f"{escaped(cell.before)}**{escaped(cell.word)}**{escaped(cell.after)}"
    return escaped(cell)


# ---------------------------------------------------------------------
# The report as one self-contained HTML file.


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
