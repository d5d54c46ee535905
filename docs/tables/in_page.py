"""Computed tables inside a page, each between two markers: printed, written or checked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

PAGES = Path(__file__).parents[1]
END = "<!-- /table -->"


def run(arguments: list[str], name: str, page_name: str, table: Callable[[], str]) -> int:
    """Print the table without arguments; ``--write`` puts it into the page, ``--check`` compares."""
    return run_all(arguments, name, page_name, lambda: {name: table()})


def run_all(arguments: list[str], script: str, page_name: str, tables: Callable[[], dict[str, str]]) -> int:
    """The same for several tables of one page, by their names in its markers."""
    if arguments not in ([], ["--write"], ["--check"]):
        print(f"usage: {script}.py [--write | --check]", file=sys.stderr)
        return 2
    path = PAGES / page_name
    text, status = path.read_text(encoding="utf-8"), 0
    for name, computed in tables().items():
        if not arguments:
            print(computed)
            continue
        start = f"<!-- table:{name} -->"
        before, _, rest = text.partition(start)
        current, found, after = rest.partition(END)
        if not found:
            print(f"{page_name}: the markers {start} and {END} are missing", file=sys.stderr)
            return 1
        if arguments == ["--write"]:
            text = f"{before}{start}\n{computed}\n{END}{after}"
        elif current.strip() != computed:
            print(f"{page_name} holds another table {name}; run {script}.py --write", file=sys.stderr)
            status = 1
    if arguments == ["--write"]:
        path.write_text(text, encoding="utf-8")
    return status


def run_picture(arguments: list[str], path: Path, draw: Callable[[], str]) -> int:
    """Write a picture, without arguments or with ``--write``; ``--check`` compares it with the file."""
    script = Path(sys.argv[0]).name
    if arguments not in ([], ["--write"], ["--check"]):
        print(f"usage: {script} [--write | --check]", file=sys.stderr)
        return 2
    drawn = draw()
    if arguments != ["--check"]:
        path.write_text(drawn, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
        print(f"{path.name} is another picture; run {script} --write", file=sys.stderr)
        return 1
    return 0
