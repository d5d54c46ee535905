"""Follow every link, picture and script of the built site, of reports and of Markdown files to its target on disk.

Usage: ``python docs/checks/links.py SITE [FILE.html|FILE.md ...]``. A target is a file that exists, and an anchor that
the file has. Every page of the site is reached from its first one. Links to other sites are not followed, since the
check needs no network; anything that a page would *load* from elsewhere is a problem. Each problem is one line; the
exit code is 1 if there is any.

General link checkers fetch pages like a browser and take half a minute for what is on disk here, and one of them
gives up the rights of root first and then cannot read a private folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import markdown
from bs4 import BeautifulSoup

SOURCES = {"a": "href", "link": "href", "area": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}


@cache
def tree_of(path: Path) -> BeautifulSoup:
    """A page as a tree; of Markdown with the anchors that its headings get."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = markdown.markdown(text, extensions=["fenced_code", "tables", "toc"])
    return BeautifulSoup(text, "html.parser")


@cache
def anchors_of(path: Path) -> frozenset[str]:
    """Names that a link into a page may have behind its #."""
    return frozenset(element["id"] for element in tree_of(path)(id=True))


def targets_of(path: Path) -> Iterator[tuple[str, str]]:
    """The kind and the address of everything that a page links to or loads."""
    for kind, attribute in SOURCES.items():
        for element in tree_of(path)(kind, attrs={attribute: True}):
            yield kind, element[attribute].strip()


def problems_of(path: Path, reached: set[Path]) -> Iterator[str]:
    """Targets of one page that do not exist; files that do are added to ``reached``."""
    for kind, address in targets_of(path):
        parts = urlsplit(address)
        if parts.scheme in ("data", "mailto", "javascript"):
            continue
        if parts.scheme or parts.netloc:
            if kind != "a":
                yield f"{path.name}: loads {address} from elsewhere"
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            yield f"{path.name}: {address}: there is no such file"
            continue
        reached.add(target)
        if parts.fragment and target.suffix in (".html", ".md") and unquote(parts.fragment) not in anchors_of(target):
            yield f"{path.name}: {address}: {target.name} has no such anchor"


def main(arguments: list[str]) -> int:
    """Check."""
    if not arguments:
        print("usage: links.py SITE [FILE ...]", file=sys.stderr)
        return 2
    site, *files = (Path(argument).resolve() for argument in arguments)
    # The page for addresses that do not exist is opened at any depth, and links by the address of the site.
    pages = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    reached = {site / "index.html"}
    problems = [problem for path in [*pages, *files] for problem in problems_of(path, reached)]
    problems += [f"{path.name}: no page links to it" for path in pages if path not in reached]
    print(*dict.fromkeys(problems), sep="\n", end="\n" if problems else "")
    print(f"links of {len(pages) + len(files)} pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
