"""Docstrings as Markdown, for the reference pages.

The docstrings of the package carry a little reStructuredText: roles such as ``:class:``, formulas in TeX, and
sections that the docstring parser does not know. Formulas are marked by dollars, as ``mathematics.py`` reads them.
"""

from __future__ import annotations

import inspect
import re

import griffe

from taciturn.methods.docstrings import fill

_ITS_OWN = re.compile(r"^(References|Notes|Errata|See Also)\n-+\n((?:.*\n?)*?)(?=^[A-Z][a-z ]+\n-+$|\Z)", re.MULTILINE)
# Several names that are explained elsewhere; the parser would give all of them the type of the first.
_ELSEWHERE = re.compile(r"^(\w+(?:, \w+)+)\n    (As in (?:.*(?:\n    .*)*))\n?", re.MULTILINE)
_EMPTY = re.compile(r"^(?:Parameters|Attributes)\n-+\n+(?=[A-Z][a-z ]+\n-+$|\Z)", re.MULTILINE)
_FIRST_KNOWN = re.compile(r"^(?:Parameters|Attributes|Returns|Raises|Examples)\n-+$", re.MULTILINE)


def to_markdown(docstring: str) -> str:
    """The docstring without roles and directives, its unknown sections put before the known ones."""
    # Names that run over a line leave the rest of a raw docstring indented.
    docstring = inspect.cleandoc(re.sub(r"(?<!\\)\\\n[ ]*", "", docstring))
    text = re.sub(
        r"^([ ]*)\.\. math::[ ]*(.*(?:\n\1[ ]+\S.*)*)",
        lambda match: f"{match[1]}$${_lines(match[2])}$$",
        docstring,
        flags=re.MULTILINE,
    )
    text = re.sub(r":math:`([^`]*)`", lambda match: f"${_on_one_line(match[1])}$", text)
    text = re.sub(r":[a-z]+:`~?([^`]*)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    # Two powers in one paragraph would be read as bold text.
    text = re.sub(r"(`[^`]+`)|(?<=\d)\*\*(?=-?\d)", lambda match: match[1] or "^", text)
    # The parser would take the first of several choices for the default.
    text = re.sub(r"^(\w+(?:, \w+)* : )\{([^{}]*)\}", r"\1one of \2", text, flags=re.MULTILINE)
    text = re.sub(r"^(``.*``)\n    (\S.*(?:\n    .*)*)", _item, text, flags=re.MULTILINE)
    shared = "".join(f"{_listed(match[1])}: {' '.join(match[2].split())}\n\n" for match in _ELSEWHERE.finditer(text))
    text = _EMPTY.sub("", _ELSEWHERE.sub("", text))
    moved = shared.replace(": As in", ": as in") + "".join(
        _paragraph(match[1], match[2].strip()) for match in _ITS_OWN.finditer(text)
    )
    if not moved:
        return text
    text = _ITS_OWN.sub("", text)
    first = _FIRST_KNOWN.search(text)
    place = first.start() if first else len(text)
    return f"{text[:place].rstrip()}\n\n{moved}{text[place:]}".rstrip()


def _on_one_line(formula: str) -> str:
    """A formula without line breaks, and without spaces at its ends, which would make its dollars plain ones."""
    return " ".join(formula.split())


def _lines(formula: str) -> str:
    """A displayed formula; several lines of it are aligned, as Sphinx does by itself."""
    formula = _on_one_line(formula)
    return rf"\begin{{aligned}}{formula}\end{{aligned}}" if r"\\" in formula and r"\begin" not in formula else formula


def _listed(names: str) -> str:
    """Names as code."""
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _paragraph(title: str, text: str) -> str:
    """A section as a paragraph with a bold title, or as a list below it."""
    gap = "\n\n" if text.startswith("* ") else " "
    return f"**{title.capitalize()}.**{gap}{text}\n\n"


def _item(match: re.Match[str]) -> str:
    """A term and its indented explanation as an item of a list."""
    return f"* {match[1]}: {' '.join(match[2].split())}\n"


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(fill(obj.docstring.value) or "")
