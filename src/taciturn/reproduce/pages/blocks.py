"""What pages are made of, before they are Markdown or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Block", "Cell", "Facts", "Grid", "Heading", "Image", "Paragraph", "Stamped"]


@dataclass(frozen=True, slots=True)
class Stamped:
    """A word that must be seen, between the text before it and after it.

    Parameters
    ----------
    word : str
        Such as "holds".
    tone : {"good", "bad", "neutral"}
        What the word is coloured by, where there are colours.
    before, after : str, default=""
        The rest of the text.
    """

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

    Parameters
    ----------
    stem : str
        Its path below the folder of the report, without suffix.
    alt : str
        What it shows, for those who do not see it.
    caption : str
        What stands below it.
    png, svg : bytes
        The content of the files.
    """

    stem: str
    alt: str
    caption: str
    png: bytes
    svg: bytes


Block = Heading | Paragraph | Facts | Grid | Image
