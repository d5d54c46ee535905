"""The frame of a page and its parts, as templates."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from taciturn._version import __version__
from taciturn.charts import Drawing, format_fact, format_number, round_safely
from taciturn.core.errors import ParameterError, visible
from taciturn.core.validation import check_integer

_DEEPEST_LEVEL = 4
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SVG_HEAD = 1000
_EVERYTHING = 1 << 24


class Outline:
    """Sections and drawings of a page, as its template adds them: their anchors, and the list of contents."""

    def __init__(self) -> None:
        self.sections: list[tuple[str, str]] = []
        self._ids: set[str] = set()
        self._level = 1
        self._n_drawings = 0

    def anchor(self, title: str, level: int) -> str:
        """The anchor of a new section; a section of level 3 belongs to the last one of level 2."""
        self._level = check_integer(2, min(self._level + 1, _DEEPEST_LEVEL), level=level)
        slug = "section-" + (re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled")
        anchor, number = slug, 1
        while anchor in self._ids:
            number += 1
            anchor = f"{slug}-{number}"
        self._ids.add(anchor)
        if level == 2:
            self.sections.append((title, anchor))
        return anchor

    def next_drawing(self) -> str:
        """The anchor of a new drawing."""
        self._n_drawings += 1
        return f"drawing-{self._n_drawings}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("taciturn.app.report", "."),
        autoescape=True,
        extensions=["jinja2.ext.do"],
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # HTML and UTF-8 exclude some characters, and some characters change the direction of others.
        finalize=lambda value: value if hasattr(value, "__html__") else visible(str(value)),
    )
    made.filters |= {
        "g": lambda value: f"{value:.6g}",
        "n": lambda value: f"{value:,}",
        "number": format_number,
        "up": lambda value: round_safely(value, up=True),
        "fact": format_fact,
        "whole": lambda text: _cut(text, _EVERYTHING),
    }
    digest = hashlib.sha256(made.get_template("script.js").render().encode()).digest()
    made.globals |= {"version": __version__, "script_digest": base64.b64encode(digest).decode()}
    return made


def _cut(text: str, most: int) -> str:
    """A text in one line, at most so long; what a template wrote becomes text, which is escaped again."""
    plain = text.unescape() if isinstance(text, Markup) else text
    shown = visible(" ".join(plain.split()))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def render(template: str, title: str, **context: Any) -> str:
    """Render the template of a page: one HTML file that loads nothing. All text in it is escaped."""
    return _environment().get_template(template).render({"outline": Outline(), "title": title} | context)


class Page:
    """A page that is put together part by part.

    Parts appear in the order in which they are added; those before the first section belong to the head of the page.
    A page of more than five sections has a list of contents.

    Examples
    --------
    >>> from taciturn.app.report.page import Page
    >>> page = Page("Two numbers")
    >>> page.section("Numbers")
    >>> page.table(["name", "value"], [["one", "1"], ["two", "2"]], "All of them.", numeric={1})
    >>> page.render().startswith("<!doctype html>")
    True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._outline = Outline()
        self._parts: Any = _environment().get_template("parts.html.j2").make_module({"outline": self._outline})
        self._head: list[str] = []
        self._main: list[str] = []

    def section(self, title: str, level: int = 2) -> None:
        """Begin a section; a section of level 3 belongs to the last one of level 2."""
        self._main.append(self._parts.section(title, level))

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._add(self._parts.paragraph(text))

    def points(self, texts: Iterable[str], *, ordered: bool = False) -> None:
        """Add a list of sentences."""
        self._add(self._parts.points(texts, ordered))

    def banner(self, text: str) -> None:
        """Add a prominent warning."""
        self._add(self._parts.banner(text))

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Add pairs of a term and its description."""
        self._add(self._parts.facts(facts))

    def table(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        caption: str,
        numeric: Collection[int] = (),
        *,
        folded: bool = False,
    ) -> None:
        """Add a table, which can be sorted if scripts run, and is hidden until its caption is opened if ``folded``.

        The first cell of each row is its heading; ``numeric`` are the columns that hold numbers.
        """
        rows = [tuple(row) for row in rows]
        wrong = next((len(row) for row in rows if len(row) != len(header)), None)
        if wrong is not None:
            raise ParameterError(
                "len(row)", wrong, f"{len(header)}, the number of columns", "give every row a cell each"
            )
        self._add(self._parts.table(header, rows, caption, numeric, folded))

    def figure(self, image: Drawing | bytes, alt: str, caption: str) -> None:
        """Add a drawing, or the content of a PNG or SVG file, with an alternative text and a caption below it."""
        if not alt.strip():
            raise ParameterError("alt", alt, "a text that stands for the image", "say what it shows")
        self._add(self._parts.figure(_data_uri(image) if isinstance(image, bytes) else image, alt, caption))

    def code_block(self, text: str, label: str, *, folded: bool = False) -> None:
        """Add text to copy, such as a command; with ``folded`` it is hidden until its label is opened."""
        self._add(self._parts.code_block(text, label, folded))

    def render(self) -> str:
        """Return the whole file."""
        parts = {"head_blocks": self._head, "blocks": self._main}
        return render("page.html.j2", self.title, **parts, outline=self._outline)

    def _add(self, part: str) -> None:
        (self._main if self._main else self._head).append(part)


def _data_uri(content: bytes) -> str:
    kind = "png" if content.startswith(_PNG_SIGNATURE) else "svg+xml" if b"<svg" in content[:_SVG_HEAD] else None
    if kind is None:
        raise ParameterError("image", f"{len(content)} bytes", "the content of a PNG or SVG file", "save it as PNG")
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
