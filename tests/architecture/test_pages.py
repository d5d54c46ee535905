"""What pages have in common: a place in the site, limits at the end, every public name, a glossary with links."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from pathlib import Path

import pytest

import taciturn

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
WITHOUT_LIMITS = {
    "changelog.md": "a list of changes",
    "errors.md": "a list of messages",
    "glossary.md": "a list of words, each with a link to its page",
    "index.md": "the way to the other pages",
    **{page.name: "made from docstrings" for page in PAGES if page.name.startswith("reference")},
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


@pytest.mark.parametrize(
    "word", ["zero-out", "mu (μ)", "membership test", "advantage", "lattice", "Gaussian budget", "seeded"]
)
def test_the_glossary_has_the_words_of_certificates_and_reports(word):
    assert word in entries_of((PAGES[0].parent / "glossary.md").read_text(encoding="utf-8"))


# ------------------------------------------------------------------ the site


def pages_in(entry):
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in pages_in(part)]


def test_every_page_has_one_place_in_the_navigation():
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(pages_in(navigation)) == [page.name for page in PAGES]
    assert [name for entry in navigation for name in entry] == [
        "Home",
        "Tutorials",
        "How-to guides",
        "Explanation",
        "Reference",
    ]


def test_every_public_name_is_in_the_reference():
    listed = {
        name.rpartition(".")[2]
        for page in PAGES
        if page.name.startswith("reference")
        for name in re.findall(r"^::: (taciturn\.\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    # ``load`` is a member of the module that is listed.
    assert set(taciturn.__all__) - listed == {"__version__", "load"}
    assert "modelfile" in listed
