"""Text from files, as it is shown to people: nothing in it is invisible, or makes other text appear elsewhere."""

from __future__ import annotations

__all__ = ["visible"]

# Letters and marks that look like nothing: fillers, joiners, selectors of variants, an empty pattern of dots.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def visible(text: str) -> str:
    r"""The text with escapes for what cannot be seen.

    Column names, classes and file names are public, and whoever wrote them may have put in more than one sees: marks
    that turn the order of what follows around, letters without a width, commands for a terminal. They are written as
    Python, JSON and TOML write them. Tabs and ends of lines stay.

    Examples
    --------
    >>> print(visible("dose\u202egnorw"), visible("caf\u00e9"), visible("\x1b[31mred"))
    dose\u202egnorw café \u001b[31mred
    """
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(each if _shows(each) else _escape(ord(each)) for each in text)


def _shows(each: str) -> bool:
    return each in "\n\t" or (each.isprintable() and each not in _BLANK)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
