"""What pages have in common: each ends with its limits, and the glossary has its words in order and with links."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
WITHOUT_LIMITS = {
    "changelog.md": "a list of changes",
    "errors.md": "a list of messages",
    "glossary.md": "a list of words, each with a link to its page",
    "index.md": "the way to the other pages",
    "papers.md": "a list of publications",
    "reference.md": "made from docstrings",
    "releasing.md": "rules of the project, for contributors",
}
"""Pages that describe nothing which could have limits of its own."""

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def problem_of(text: str) -> str | None:
    """What is wrong with the end of a page; None if nothing is."""
    sections = re.split(r"^## ", FENCE.sub("", text), flags=re.MULTILINE)[1:]
    titles = [section.partition("\n")[0] for section in sections]
    if titles.count("Limits") != 1:
        return "expected one section Limits"
    if titles[-1] != "Limits":
        return f"expected Limits as the last section, got {titles[-1]}"
    bullets = re.findall(r"^\* \S", sections[-1], re.MULTILINE)
    return None if 2 <= len(bullets) <= 6 else f"expected two to six bullets, got {len(bullets)}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in WITHOUT_LIMITS], ids=lambda page: page.name
)
def test_a_page_ends_with_its_limits(page):
    assert problem_of(page.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    "end",
    [
        "## Use\n",
        "## Limits\n\n* One.\n* Two.\n\n## References\n\n* A paper.\n",
        "## Limits\n\n* One.\n* Two.\n\n## Limits\n\n* One.\n* Two.\n",
        "## Limits\n\nNone.\n",
        "## Limits\n" + "\n* One more." * 7,
        "## Use\n\n```md\n## Limits\n\n* One.\n* Two.\n```\n",
    ],
)
def test_a_page_without_limits_at_its_end_is_noticed(end):
    assert problem_of(f"# Page\n\nWords.\n\n{end}") is not None
    assert problem_of("# Page\n\n## Limits\n\n* One.\n* Two.\n") is None


def entries_of(text: str) -> dict[str, str]:
    """Words of the glossary and what is said about them."""
    return {
        entry.partition("\n")[0]: entry.partition("\n")[2] for entry in re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    }


def as_sorted(word: str) -> str:
    """Letters without accents and case."""
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z ]", " ", plain).strip()


def test_the_glossary_is_in_order_and_every_word_has_a_link():
    text = (PAGES[0].parent / "glossary.md").read_text(encoding="utf-8")
    entries = entries_of(re.sub(r"^## [A-Z]\n", "", text, flags=re.MULTILINE))
    assert len(entries) > 80
    assert list(entries) == sorted(entries, key=as_sorted)
    assert not [word for word, said in entries.items() if not re.search(r"\]\(([a-z-]+\.md)?(#[a-z0-9_-]+)?\)", said)]
    assert not [word for word, said in entries.items() if len(re.findall(r"\.\s", said)) > 3], "at most three sentences"


@pytest.mark.parametrize("word", ["zero-out", "mu (μ)", "membership test", "advantage", "lattice", "pot", "seeded"])
def test_the_glossary_has_the_words_of_certificates_and_reports(word):
    assert word in entries_of((PAGES[0].parent / "glossary.md").read_text(encoding="utf-8"))
