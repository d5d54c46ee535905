"""The page of a report: its style and its frame."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Sequence

from taciturn._version import __version__
from taciturn.charts import Drawing, Markup, element
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer

# -----------------------------------------------------------------------------
# Colours, style sheet and script of a page.

_LIGHT = {
    "paper": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1a1f26",
    "muted": "#55606d",
    "line": "#d3dae1",
    "link": "#0a5aa8",
    "plus": "#1c6fb8",
    "minus": "#b4530a",
    "region": "#cfe2f3",
    "alarm": "#8f1414",
    "alarm-panel": "#fdeceb",
}
_DARK = {
    "paper": "#14181d",
    "panel": "#1d232a",
    "ink": "#e7ebef",
    "muted": "#a6b0bb",
    "line": "#3a444f",
    "link": "#85bdf7",
    "plus": "#69aeea",
    "minus": "#f0a05c",
    "region": "#24405c",
    "alarm": "#ffb3ab",
    "alarm-panel": "#3d1715",
}
_PRINT = {
    "paper": "#ffffff",
    "panel": "#ffffff",
    "ink": "#000000",
    "muted": "#333333",
    "line": "#999999",
    "link": "#000000",
    "plus": "#1f4e79",
    "minus": "#8a3f00",
    "region": "#dddddd",
    "alarm": "#000000",
    "alarm-panel": "#ffffff",
}


def _root(scheme: str, colours: dict[str, str]) -> str:
    declared = " ".join(f"--{name}: {value};" for name, value in colours.items())
    return f":root {{ color-scheme: {scheme}; {declared} }}"


STYLE = f"""
{_root("light", _LIGHT)}
@media (prefers-color-scheme: dark) {{ {_root("dark", _DARK)} }}
* {{ box-sizing: border-box; }}
html {{ font: 100%/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }}
body {{ margin: 0; color: var(--ink); background: var(--paper); overflow-wrap: break-word; }}
header, nav, main, footer {{ max-width: 54rem; margin: 0 auto; padding: 0 1.25rem; }}
header {{ padding-top: 2rem; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.35rem; line-height: 1.25; margin: 2.5rem 0 .75rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }}
h3 {{ font-size: 1.08rem; margin: 1.75rem 0 .5rem; }}
p, ul, ol, dl {{ margin: .75rem 0; }}
li {{ margin: .4rem 0; }}
header p {{ color: var(--muted); }}
a {{ color: var(--link); }}
.skip {{ position: absolute; left: -100rem; top: 0; padding: .5rem 1rem; background: var(--paper); }}
.skip:focus {{ left: 0; z-index: 1; }}
:focus-visible {{ outline: 3px solid var(--link); outline-offset: 2px; }}
main:focus {{ outline: none; }}
.banner {{ margin: 1rem 0; padding: .75rem 1rem; color: var(--alarm); background: var(--alarm-panel);
  border: 2px solid var(--alarm); border-radius: .375rem; font-weight: 600; }}
nav {{ margin-top: 1.5rem; }}
nav div {{ padding: .75rem 1rem; background: var(--panel); border-radius: .375rem; }}
nav p {{ margin: 0; font-weight: 600; }}
nav ol {{ margin: .25rem 0 0; padding-left: 1.5rem; columns: 17rem; }}
nav li {{ margin: 0; padding: .1rem 0; break-inside: avoid; }}
dl div {{ display: grid; grid-template-columns: minmax(8rem, 15rem) 1fr; gap: 0 1.25rem; padding: .35rem 0;
  border-bottom: 1px solid var(--line); }}
dt {{ color: var(--muted); }}
dd {{ margin: 0; }}
dt, dd {{ min-width: 0; overflow-wrap: anywhere; }}
.scroll {{ overflow-x: auto; margin: 1.5rem 0; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; line-height: 1.4; }}
caption {{ text-align: left; padding-bottom: .4rem; font-weight: 600; }}
th, td {{ padding: .4rem .75rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }}
tr > :last-child {{ padding-right: 0; }}
thead th {{ vertical-align: bottom; font-weight: 400; color: var(--muted); border-bottom: 2px solid var(--muted); }}
tbody th {{ font-weight: inherit; overflow-wrap: anywhere; min-width: 8rem; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
thead .number {{ white-space: normal; }}
.sort {{ font: inherit; color: inherit; background: none; border: 0; padding: 0 0 0 .3em; cursor: pointer; }}
.sort::after {{ content: "\\2195"; }}
th[aria-sort] {{ color: var(--ink); }}
th[aria-sort="ascending"] .sort::after {{ content: "\\2191"; }}
th[aria-sort="descending"] .sort::after {{ content: "\\2193"; }}
figure {{ margin: 1.25rem 0; }}
figure .scroll {{ margin: 0; }}
figcaption {{ margin-top: .5rem; font-size: .92rem; color: var(--muted); }}
svg, img {{ display: block; max-width: 100%; height: auto; }}
svg.wide, img.wide {{ width: 100%; }}
img.wide {{ min-width: 30rem; }}
svg.narrow {{ width: 100%; max-width: 26rem; }}
@media not screen {{ svg.narrow {{ display: none; }} }}
@media screen and (min-width: 40.01rem) {{ svg.narrow {{ display: none; }} }}
@media screen and (max-width: 40rem) {{ svg.wide {{ display: none; }} }}
img {{ background: #ffffff; }}
svg text {{ fill: currentColor; font-size: 13px; }}
svg.narrow text {{ paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }}
svg .small {{ fill: var(--muted); font-size: 12px; }}
svg .number {{ text-anchor: end; }}
svg .middle {{ text-anchor: middle; }}
svg .plus {{ fill: var(--plus); }}
svg .minus {{ fill: var(--minus); }}
svg .grid {{ stroke: var(--line); }}
svg .axis {{ stroke: var(--muted); }}
svg .region {{ fill: var(--region); }}
svg .curve {{ stroke: var(--plus); stroke-width: 2; fill: none; }}
svg .interval {{ stroke: var(--plus); stroke-width: 1.5; fill: none; }}
svg .sampling {{ stroke: var(--plus); stroke-width: 5; }}
svg .estimate {{ fill: var(--paper); stroke: var(--plus); stroke-width: 2; }}
svg .clear {{ fill: var(--plus); }}
svg .none {{ stroke: currentColor; stroke-dasharray: 5 4; fill: none; }}
.code {{ margin: 1rem 0; }}
.code p {{ display: flex; justify-content: space-between; align-items: center; gap: 1rem; margin: 0 0 .25rem;
  min-height: 2rem; font-size: .92rem; color: var(--muted); }}
pre {{ margin: 0; padding: .75rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: .375rem;
  font: .85rem/1.5 ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }}
.copy {{ font: inherit; flex: none; color: var(--link); background: var(--paper); border: 1px solid var(--link);
  border-radius: .375rem; padding: .15rem .75rem; cursor: pointer; }}
summary {{ cursor: pointer; color: var(--link); padding: .25rem 0; }}
.sheet {{ display: none; }}
#print-whole {{ margin: 1rem .4rem 0 max(1.25rem, calc(50% - 25.75rem)); vertical-align: baseline; }}
#print-whole + label {{ color: var(--muted); font-size: .85rem; }}
footer {{ margin-top: 3rem; padding-top: 1rem; padding-bottom: 2rem; border-top: 1px solid var(--line);
  color: var(--muted); font-size: .92rem; }}
@media (max-width: 32rem) {{
  dl div {{ grid-template-columns: 1fr; }}
  h1 {{ font-size: 1.55rem; }}
}}
@media (prefers-reduced-motion: no-preference) {{ html {{ scroll-behavior: smooth; }} }}
@media print {{
  {_root("light", _PRINT)}
  @page {{ size: A4; margin: 14mm 16mm 15mm;
    @bottom-right {{ content: counter(page) " / " counter(pages); font-size: 9pt; }} }}
  html {{ font-size: 10pt; line-height: 1.4; }}
  header, nav, main, footer {{ max-width: none; padding-left: 0; padding-right: 0; }}
  header {{ padding-top: 0; }}
  .skip, .copy, .sort, nav, details:not([open]), #print-whole, #print-whole + label {{ display: none; }}
  h2 {{ margin-top: 1.5rem; }}
  h1, h2, h3, caption, summary, .code p {{ break-after: avoid; }}
  figure, tr, li, dl div, .banner, .short {{ break-inside: avoid; }}
  thead {{ display: table-header-group; }}
  p, li {{ orphans: 3; widows: 3; }}
  .scroll {{ overflow: visible; }}
  svg.wide, img.wide {{ min-width: 0; max-width: 16cm; }}
  svg:not(.wide) {{ max-width: 8.5cm; }}
  th, td {{ padding-top: .2rem; padding-bottom: .2rem; }}
  svg .plus, svg .minus, svg .region, svg .estimate {{ print-color-adjust: exact; }}
  a {{ text-decoration: none; }}
  #print-whole:not(:checked) ~ :not(.sheet) {{ display: none; }}
  #print-whole:checked ~ .sheet {{ break-before: page; }}
  .sheet {{ display: block; font-size: 8.5pt; line-height: 1.3; }}
  .sheet .title {{ font-size: 14pt; font-weight: 600; margin: 0 0 2mm; }}
  .sheet p, .sheet dl, .sheet ul {{ margin: 0 0 2mm; }}
  .sheet dl div {{ grid-template-columns: 29mm 1fr; gap: 0 3mm; padding: .7mm 0; }}
  .sheet .list {{ margin: 2.5mm 0 0; color: var(--muted); }}
  .sheet ul {{ padding-left: 4mm; }}
  .sheet li {{ margin: 0; }}
  .sheet .blank {{ height: 9mm; margin: 0; border-bottom: 1px solid var(--muted); color: var(--muted); }}
  .signature {{ display: grid; grid-template-columns: repeat(3, 1fr); gap: 8mm; margin-top: 13mm; }}
  .signature span {{ border-top: 1px solid var(--ink); padding-top: 1mm; }}
}}
"""

# Everything is readable without it: it only adds sorting and copying.
SCRIPT = """
"use strict";
(() => {
  const value = (row, column, numeric) => {
    const text = row.cells[column].textContent.trim();
    if (!numeric) return text;
    const number = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? -Infinity : number;
  };
  const sort = (heading) => {
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const numeric = heading.classList.contains("number");
    const now = heading.getAttribute("aria-sort");
    const up = now ? now === "descending" : !numeric;
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = Array.from(body.rows);
    rows.sort((a, b) => {
      const [x, y] = [value(a, column, numeric), value(b, column, numeric)];
      const order = numeric ? x - y || 0 : x.localeCompare(y, undefined, {numeric: true});
      return up ? order : -order;
    });
    body.append(...rows);
  };
  for (const heading of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.setAttribute("aria-label", "Sort by " + heading.textContent);
    button.addEventListener("click", () => sort(heading));
    heading.append(button);
  }
  const copy = async (block, button) => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 4000);
  };
  for (const label of document.querySelectorAll(".code p")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(label.nextElementSibling, button));
    label.append(button);
  }
})();
"""


# -----------------------------------------------------------------------------
# One self-contained HTML file, built from text, tables and figures.

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
    >>> from taciturn.app.report.page import Page
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
