"""Formulas in TeX become MathML while the site is built.

Pages and docstrings write ``$x^2$`` in a line and ``$$x^2$$`` on lines of its own. Browsers show MathML by themselves,
so that formulas need no script and appear on pages that are opened from a disk.
"""

from __future__ import annotations

import html
import re
import unicodedata
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

# What pymdownx.arithmatex leaves: a formula in a line, or one on lines of its own.
_MARKED = re.compile(r"\\\((?P<inline>.*)\\\)|\\\[(?P<block>.*)\\\]", re.DOTALL)
# Letters of an alphabet of their own. Browsers read the attribute for none of them; site.css has bold and monospace.
_LETTER = re.compile(r'<mi mathvariant="(script|double-struck)">([A-Za-z])</mi>')
# What the converter knows under another name.
_RENAMED = {r"\arg": r"\operatorname{arg}", r"\|": "‖", "{aligned}": "{align*}"}


def mathml(formula: str, display: str) -> str:
    """A formula as MathML; a command that the converter does not know raises ValueError."""
    renamed = formula
    for name, known in _RENAMED.items():
        renamed = renamed.replace(name, known)
    converted = convert(renamed, display=display)
    unknown = re.search(r"\\\W|\\\w+|<mi>&</mi>", converted)
    if unknown is not None:
        raise ValueError(f"{unknown[0]} in ${formula}$ cannot be converted to MathML; write it with other commands")
    return _LETTER.sub(lambda match: f"<mi>{_letter(match[1], match[2])}</mi>", converted)


def _letter(alphabet: str, letter: str) -> str:
    """The character of a letter; some alphabets have gaps, which older characters fill."""
    name = f"{alphabet} {'capital' if letter.isupper() else 'small'} {letter}".upper()
    try:
        return unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:
        return unicodedata.lookup(name)


class _Formulas(Treeprocessor):
    """Puts MathML in the place of formulas that ``pymdownx.arithmatex`` has found."""

    def run(self, root: Element) -> None:
        for element in root.iter():
            if element.get("class") == "arithmatex":
                # The text of a block is escaped already, that of a line is not.
                found = _MARKED.fullmatch(html.unescape(element.text or "").strip())
                inline, block = found["inline"], found["block"]
                converted = mathml(block, "block") if inline is None else mathml(inline, "inline")
                element.text = self.md.htmlStash.store(converted)


class Mathematics(Extension):
    """Needs ``pymdownx.arithmatex`` with ``generic``, which tells formulas from dollars."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  (the name is Markdown's)
        """Run after inline patterns, which mark formulas, and before whitespace is put between blocks."""
        md.treeprocessors.register(_Formulas(md), "mathematics", 15)


def makeExtension(**options: object) -> Mathematics:  # noqa: N802  (the name is Markdown's)
    """Called by Markdown."""
    return Mathematics(**options)
