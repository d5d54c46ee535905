"""A computed table inside a page, between two markers: printed, written or checked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

PAGES = Path(__file__).parents[1]
END = "<!-- /table -->"


def run(arguments: list[str], name: str, page_name: str, table: Callable[[], str]) -> int:
    """Print the table without arguments; ``--write`` puts it into the page, ``--check`` compares."""
    if arguments not in ([], ["--write"], ["--check"]):
        print(f"usage: {name}.py [--write | --check]", file=sys.stderr)
        return 2
    computed = table()
    if not arguments:
        print(computed)
        return 0
    path = PAGES / page_name
    start = f"<!-- table:{name} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(start)
    current, found, after = rest.partition(END)
    if not found:
        print(f"{page_name}: the markers {start} and {END} are missing", file=sys.stderr)
        return 1
    if arguments == ["--write"]:
        path.write_text(f"{before}{start}\n{computed}\n{END}{after}", encoding="utf-8")
        return 0
    if current.strip() != computed:
        print(f"{page_name} holds another table; run {name}.py --write", file=sys.stderr)
        return 1
    return 0
