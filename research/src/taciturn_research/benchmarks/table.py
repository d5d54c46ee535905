"""The table of results: which targets are met, and its file, in which every suite has a section of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taciturn_research.benchmarks.measuring import Row

__all__ = ["FASTER", "HEADINGS", "SLOWER", "cells_of", "excused", "met", "section_of", "with_sections"]

SLOWER = "cost of ours / cost of the baseline"
FASTER = "cost of the baseline / cost of ours"

HEADINGS = ("case", "measured", "target", "met", "what it is", "set-up, s", "why not")
_TITLE = """# Benchmarks

The last run of `make bench`, section by section; `python -m taciturn_research.benchmarks NAME` renews one of them.
Only ratios within one run mean anything.
"""


def met(row: Row, meaning: str) -> bool | None:
    """Whether a row meets its target; None where it has none."""
    if row["target"] is None:
        return None
    return bool(row["ratio"] >= row["target"] if _at_least(row, meaning) else row["ratio"] <= row["target"])


def excused(row: Row, meaning: str) -> bool:
    """Whether a row meets its target, or has none, or says why it does not."""
    return met(row, meaning) is not False or "why" in row


def cells_of(row: Row, meaning: str) -> tuple[str, ...]:
    """The row in words, for :data:`HEADINGS`."""
    fulfilled = met(row, meaning)
    target = "" if fulfilled is None else f"{'>=' if _at_least(row, meaning) else '<='} {row['target']:g}"
    return (
        str(row["case"]),
        f"{row['ratio']:.3g}",
        target,
        {None: "", True: "yes", False: "NO"}[fulfilled],
        str(row.get("what", meaning)),
        f"{row['setup']:.2f}" if "setup" in row else "",
        str(row["why"]) if fulfilled is False and "why" in row else "",
    )


def section_of(rows: Sequence[Row], meaning: str) -> str:
    """A suite as a table in Markdown."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + " --- |" * len(HEADINGS)]
    lines += ["| " + " | ".join(cells_of(row, meaning)) + " |" for row in rows]
    return "\n".join(lines)


def with_sections(text: str, sections: Mapping[str, str], order: Sequence[str]) -> str:
    """The file with some sections renewed, the others as they were, and those of no suite left out."""
    kept = {}
    for part in text.split("\n## ")[1:]:
        name, _, body = part.partition("\n")
        kept[name] = body.strip()
    kept |= sections
    found = "".join(f"\n## {name}\n\n{kept[name]}\n" for name in order if name in kept)
    return _TITLE + found


def _at_least(row: Row, meaning: str) -> bool:
    return meaning == FASTER and "what" not in row
