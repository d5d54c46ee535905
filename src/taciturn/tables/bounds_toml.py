"""The parser of ``bounds.toml``, which names the place of a mistake."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from taciturn.core.errors import ParameterError
from taciturn.tables.problems import Problems
from taciturn.tables.words import refusal, shorten

__all__ = ["parse_toml"]

_BLANK = re.compile(r"^\s*(\w+)\s*=\s*(?:#.*)?$")
_HEADER = re.compile(r"^\s*\[(.+)\]\s*(?:#.*)?$")
# Comments and texts, in which dots mean nothing, and then keys of many parts.
_NO_KEYS = re.compile(
    r'''#[^\n]*|"""(?:[^"\\]|\\.|"(?!""))*+"""|"(?:[^"\\\n]|\\.)*+"|'''
    r"""'''(?:[^']|'(?!''))*+'''|'[^'\n]*+'""",
    re.DOTALL,
)
_DEEP = re.compile(r"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){20}")
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the sections of ``bounds.toml``; the error about a value that was not filled in names its place."""
    # The parser takes time and memory by the square of the number of parts.
    if _DEEP.search(_NO_KEYS.sub("text", text)):
        raise refusal(
            "bounds", "", "keys of at most 20 parts with dots between them", "put column names with dots in quotes"
        )
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = _PLACE.search(str(error))
    line = int(found[1]) if found and found[1] else None
    problems = Problems()
    for place, number in _blanks(text, line):
        with problems.gathering():
            raise ParameterError(
                place,
                "",
                f"a value, got a blank in line {number}",
                "fill it in from knowledge of the column, not from the table",
            )
    problems.raise_all()
    # The message does not quote the line: the file may be a table.
    raise refusal(
        "bounds",
        "",
        "TOML" if line is None else f"TOML, found a mistake in line {line}",
        "write names and text in quotes, and lists in square brackets",
    )


def _blanks(text: str, first: int | None) -> list[tuple[str, int]]:
    """Sections and line numbers of the keys without a value, if the mistake in line ``first`` is one of them."""
    section, found = "", []
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            section = f"{header[1]}."
        elif blank := _BLANK.match(line):
            found.append((str(shorten(section + blank[1])), number))
    return found if found and (first is None or found[0][1] <= first) else []
