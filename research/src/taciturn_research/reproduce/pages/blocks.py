"""What pages are made of, before they are Markdown or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Block", "Cell", "Facts", "Grid", "Heading", "Image", "Paragraph", "Stamped"]


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
