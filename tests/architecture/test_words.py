"""The field has words for these; ours are not used in their place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
FILES = sorted(
    [*(ROOT / "src").rglob("*.py"), *(ROOT / "research").rglob("*.py"), *(ROOT / "src").rglob("*.j2"), *PAGES]
)

OURS = {
    r"purses?": "privacy filter",
    r"roads?": "strategy",
    r"what one record more or less means": "the neighbouring relation",
    r"largest_slope_change": "smoothness",
    r"sharpness": "inverse temperature",
    r"stand_askew": "a verb and what it acts on",
    r"sizes? of the model": "number of nonzero coefficients",
}
"""What is not said, and what is said instead."""


def found(text: str, word: str) -> list[str]:
    """Occurrences, over line breaks too; an underscore parts words."""
    spaced = word.replace(" ", r"\s+")
    return re.findall(rf"(?<![a-z]){spaced}(?![a-z])", text, re.IGNORECASE)


@pytest.mark.parametrize("word", OURS)
def test_the_field_s_words_are_used(word):
    wrong = [path.relative_to(ROOT).as_posix() for path in FILES if found(path.read_text(encoding="utf-8"), word)]
    assert not wrong, f"say {OURS[word]!r}"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def choose_road(", r"roads?"),
        ("the\n    Road taken", r"roads?"),
        ("What one record\n    more or less means.", r"what one record more or less means"),
        ("task.sharpness", r"sharpness"),
    ],
)
def test_words_are_found_inside_names_and_over_lines(text, word):
    assert found(text, word)
    assert not found("a broad railroad track, abroad", r"roads?")
