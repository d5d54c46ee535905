"""The report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from taciturn_research.reproduce.pages.blocks import Block, Cell, Facts, Grid, Heading, Image, Paragraph, Stamped

__all__ = ["escaped", "markdown_page", "markdown_table"]

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
