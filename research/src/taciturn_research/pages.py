"""Pages of the repository: tables in Markdown, and generated parts between two marks, written or checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
"""Pages are written there, and environments of other libraries are made there."""

Marks = tuple[str, str]
"""The mark before a generated part, and the one after it."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


class MissingMarksError(ValueError):
    """A page has no place for a generated part."""


def table_marks(name: str) -> Marks:
    """The marks that the pages in ``docs`` use."""
    return f"<!-- table:{name} -->", "<!-- /table -->"


def renewed(text: str, parts: Mapping[Marks, str]) -> str:
    """The page with every generated part replaced.

    Parameters
    ----------
    text : str
        The page.
    parts : mapping of Marks to str
        What stands between which marks.

    Raises
    ------
    MissingMarksError
        If marks are missing.
    """
    for (begin, end), part in parts.items():
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise MissingMarksError(f"the marks {begin} and {end} are missing")
        text = f"{before}{begin}\n\n{part}\n\n{end}{after}"
    return text


def write(path: Path, parts: Mapping[Marks, str]) -> None:
    """Put the parts into a page."""
    path.write_text(_renewed_page(path, parts), encoding="utf-8")


def differing(path: Path, parts: Mapping[Marks, str]) -> bool:
    """Whether a page holds anything else between the marks."""
    return path.read_text(encoding="utf-8") != _renewed_page(path, parts)


def _renewed_page(path: Path, parts: Mapping[Marks, str]) -> str:
    try:
        return renewed(path.read_text(encoding="utf-8"), parts)
    except MissingMarksError as error:
        raise MissingMarksError(f"{path.name}: {error}") from None
