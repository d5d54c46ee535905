"""One self-contained HTML file, built from text, tables and figures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Sequence

from taciturn._version import __version__
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer
from taciturn.drawing.markup import Markup, element
from taciturn.drawing.svg import Drawing
from taciturn.report.style import SCRIPT, STYLE

__all__ = ["Page"]

_DEEPEST_LEVEL = 4
_SECTIONS_WITHOUT_CONTENTS = 5
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SVG_HEAD = 1000
# Tables up to this long are not split between printed pages.
_MOST_ROWS_TOGETHER = 15


class Page:
    """One HTML file that loads nothing, with styles for print and dark mode; it works without its script.

    Blocks appear in the order in which they are added; those before the first section belong to the head of the page.
    All text is escaped. A page of more than five sections has a list of contents.

    Parameters
    ----------
    title : str
        Heading of the page.
    lang : str, default="en"
        Language of the text.

    Examples
    --------
    >>> from taciturn.report import Page
    >>> page = Page("Two numbers")
    >>> page.section("Numbers")
    >>> page.table(["name", "value"], [["one", "1"], ["two", "2"]], "All of them.", numeric={1})
    >>> page.render().startswith("<!doctype html>")
    True
    """

    def __init__(self, title: str, lang: str = "en") -> None:
        self.title = title
        self.lang = lang
        self._head: list[Markup] = []
        self._main: list[Markup] = []
        self._sections: list[tuple[str, str]] = []
        self._ids: set[str] = set()
        self._level = 1
        self._n_figures = 0
        self._sheet: list[Markup] = []

    def section(self, title: str, level: int = 2) -> None:
        """Begin a section; a section of level 3 belongs to the last one of level 2."""
        deepest = min(self._level + 1, _DEEPEST_LEVEL)
        self._level = check_integer(2, deepest, level=level)
        anchor = self._anchor(title)
        if level == 2:
            self._sections.append((title, anchor))
        self._main.append(element(f"h{level}", title, id=anchor))

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._add(element("p", text))

    def points(self, texts: Iterable[str], *, ordered: bool = False) -> None:
        """Add a list of sentences."""
        self._add(element("ol" if ordered else "ul", *(element("li", text) for text in texts)))

    def banner(self, text: str) -> None:
        """Add a prominent warning."""
        self._add(element("div", text, class_="banner", role="note"))

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Add pairs of a term and its description."""
        self._add(element("dl", *(element("div", element("dt", a), element("dd", b)) for a, b in facts)))

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
        classes = ["number" if column in numeric else None for column in range(len(header))]
        head = (element("th", text, scope="col", class_=kind) for text, kind in zip(header, classes, strict=True))
        lines = [
            element(
                "tr",
                *(
                    element("td" if column else "th", text, scope=None if column else "row", class_=classes[column])
                    for column, text in enumerate(row)
                ),
            )
            for row in rows
        ]
        inside = element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *head)),
            element("tbody", *lines),
            class_="sortable" if len(rows) > _MOST_ROWS_TOGETHER else "sortable short",
        )
        block = _scrolling(inside, caption)
        self._add(element("details", element("summary", caption), block) if folded else block)

    def figure(self, image: Drawing | bytes, alt: str, caption: str) -> None:
        """Add a drawing, or the content of a PNG or SVG file, with an alternative text and a caption below it."""
        if not alt.strip():
            raise ParameterError("alt", alt, "a text that stands for the image", "say what it shows")
        if isinstance(image, bytes):
            inside = _embedded(image, alt, caption)
        else:
            self._n_figures += 1
            inside = _inline(image, alt, f"drawing-{self._n_figures}", "wide" if image.narrow else None)
            if image.narrow:
                inside = Markup(inside + _inline(image.narrow, alt, f"drawing-{self._n_figures}-narrow", "narrow"))
        self._add(element("figure", inside, element("figcaption", caption)))

    def code_block(self, text: str, label: str, *, folded: bool = False) -> None:
        """Add text to copy, such as a command; with ``folded`` it is hidden until its label is opened."""
        pre = element("pre", element("code", text))
        if folded:
            self._add(element("details", element("summary", label), element("div", element("p"), pre, class_="code")))
        else:
            self._add(element("div", element("p", element("span", label)), pre, class_="code"))

    def sheet(
        self,
        title: str,
        sentences: Iterable[str],
        facts: Iterable[tuple[str, str]],
        releases: Iterable[str],
        blanks: Iterable[str],
        signatures: Iterable[str],
    ) -> None:
        """Set the page to sign, which is seen in print only, and there alone unless the whole is asked for.

        It has sentences, facts, a list of releases, lines to fill in, and lines for signatures. The caller keeps it
        short enough for one sheet of paper.
        """
        self._sheet = [
            element("p", title, class_="title"),
            *(element("p", sentence) for sentence in sentences),
            element("dl", *(element("div", element("dt", name), element("dd", text)) for name, text in facts)),
            element("p", "Released: how often, and with which noise (its scale in sensitivities)", class_="list"),
            element("ul", *(element("li", text) for text in releases)),
            *(element("p", element("span", label), class_="blank") for label in blanks),
            element("div", *(element("span", label) for label in signatures), class_="signature"),
        ]

    def render(self) -> str:
        """Return the whole file."""
        digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
        policy = (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        head = element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", self.title),
            element("style", Markup(STYLE)),
        )
        body = element(
            "body",
            element("a", "Skip to the content", class_="skip", href="#content"),
            *self._choice_of_print(),
            element("header", element("h1", self.title), *self._head),
            self._contents(),
            element("main", *self._main, id="content", tabindex="-1"),
            element("footer", f"Written by taciturn {__version__}. This file is complete and loads nothing."),
            *([element("section", *self._sheet, class_="sheet", aria_label="Page to sign")] if self._sheet else []),
            element("script", Markup(SCRIPT)),
        )
        return f"<!doctype html>\n{element('html', head, body, lang=self.lang)}\n"

    def _choice_of_print(self) -> tuple[Markup, ...]:
        """What decides whether print shows more than the page to sign; style sheets see what follows it."""
        if not self._sheet:
            return ()
        label = "Print more than the page to sign"
        return element("input", type="checkbox", id="print-whole"), element("label", label, for_="print-whole")

    def _add(self, block: Markup) -> None:
        (self._main if self._level > 1 else self._head).append(block)

    def _anchor(self, title: str) -> str:
        slug = "section-" + (re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled")
        anchor, number = slug, 1
        while anchor in self._ids:
            number += 1
            anchor = f"{slug}-{number}"
        self._ids.add(anchor)
        return anchor

    def _contents(self) -> Markup:
        if len(self._sections) <= _SECTIONS_WITHOUT_CONTENTS:
            return Markup("")
        entries = (element("li", element("a", title, href=f"#{anchor}")) for title, anchor in self._sections)
        inside = element("div", element("p", "Contents"), element("ol", *entries))
        return element("nav", inside, aria_label="Contents")


def _scrolling(inside: Markup, label: str) -> Markup:
    """Make a box that scrolls sideways, also by keyboard, so that the page does not."""
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=label)


def _embedded(content: bytes, alt: str, caption: str) -> Markup:
    # SVG files, too, become images: an image cannot run scripts or load anything.
    kind = "png" if content.startswith(_PNG_SIGNATURE) else "svg+xml" if b"<svg" in content[:_SVG_HEAD] else None
    if kind is None:
        raise ParameterError("image", f"{len(content)} bytes", "the content of a PNG or SVG file", "save it as PNG")
    source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    return _scrolling(element("img", alt=alt, src=source, class_="wide"), caption)


def _inline(drawing: Drawing, alt: str, anchor: str, kind: str | None) -> Markup:
    return element(
        "svg",
        element("title", drawing.title, id=f"{anchor}-title"),
        element("desc", alt, id=f"{anchor}-desc"),
        drawing.body,
        role="img",
        aria_labelledby=f"{anchor}-title {anchor}-desc",
        viewBox=f"0 0 {drawing.width:g} {drawing.height:g}",
        width=drawing.width,
        height=drawing.height,
        class_=kind,
    )
