"""The page on features, and the file with what each answer rests on: probes and documents."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from taciturn_research.arena.peers import BUILD
from taciturn_research.pages import REPOSITORY, Marks, table, table_marks

PAGE = REPOSITORY / "docs" / "compare-features.md"
FACTS = Path(__file__).with_name("features.toml")
PROBED = Path(__file__).with_name("probed.json")
SOURCES = Path(__file__).with_name("features.md")
ANSWERS = ("yes", "partly", "no", "not found")
LIMIT = 600.0


class Cell(NamedTuple):
    """An answer, what it rests on, and where that was found; no source means that a probe ran."""

    answer: str
    seen: str
    source: str | None


def facts() -> dict[str, Any]:
    """The features, and what documents say."""
    return tomllib.loads(FACTS.read_text(encoding="utf-8"))


def probed() -> dict[str, Any]:
    """The stored answers of the probes."""
    stored: dict[str, Any] = json.loads(PROBED.read_text(encoding="utf-8"))
    return stored


def cells(facts: dict[str, Any], probed: dict[str, Any]) -> dict[tuple[str, str], Cell]:
    """Every cell by feature and library.

    Raises
    ------
    ValueError
        If a cell has no answer, two of them, or an unknown one.
    """
    found = {}
    for feature in facts["feature"]:
        name, documented = feature["id"], feature.get("documented", {})
        for library in facts["libraries"]:
            if library in facts.get("read", {}):
                source = facts["read"][library]["source"]
                found[name, library] = Cell(*documented.get(library, ("not found", "nothing in what was read", source)))
                continue
            seen = probed["libraries"][library]["answers"].get(name)
            if (seen is None) == (library not in documented):
                raise ValueError(f"{name}, {library}: {'no answer' if seen is None else 'a probe and a document'}")
            cell = Cell(*documented[library]) if seen is None else Cell(seen[0], seen[1], None)
            if cell.answer not in ANSWERS:
                raise ValueError(f"{name}, {library}: {cell.answer}: {cell.seen}")
            found[name, library] = cell
    return found


def parts() -> dict[Path, dict[Marks, str]]:
    """Every generated part, by page."""
    known, stored = facts(), probed()
    found = cells(known, stored)
    return {
        PAGE: {
            table_marks("compare_versions"): versions(known, stored),
            table_marks("compare_features"): answers(known, found),
        },
        SOURCES: {table_marks("compare_sources"): sources(known, found)},
    }


def pictures() -> dict[Path, str]:
    """None: the page is a table."""
    return {}


def versions(facts: dict[str, Any], probed: dict[str, Any]) -> str:
    """Versions, how they were asked, and when."""
    rows = []
    for library, title in facts["libraries"].items():
        if library in facts["read"]:
            read = facts["read"][library]
            rows.append([title, f"[{read['version']}]({read['source']})", "read", read["date"]])
        else:
            stored = probed["libraries"][library]
            packages = ", ".join(f"{name} {number}" for name, number in stored["versions"].items())
            rows.append([title, packages, "probes and documents", stored["date"]])
    return table(["library", "version", "how", "date"], rows)


def answers(facts: dict[str, Any], found: dict[tuple[str, str], Cell]) -> str:
    """A table for each group: a row per feature, a column per library."""
    blocks = []
    for group in dict.fromkeys(feature["group"] for feature in facts["feature"]):
        rows = [
            [feature["text"], *(_marked(found[feature["id"], library]) for library in facts["libraries"])]
            for feature in facts["feature"]
            if feature["group"] == group
        ]
        blocks.append(f"### {group}\n\n{table(['', *facts['libraries'].values()], rows)}")
    return "\n\n".join(blocks)


def sources(facts: dict[str, Any], found: dict[tuple[str, str], Cell]) -> str:
    """How every cell is known, feature by feature; libraries in which nothing was found share a line."""
    lines = []
    for feature in facts["feature"]:
        lines += [f"## {feature['text']}", ""]
        without = []
        for library, title in facts["libraries"].items():
            cell = found[feature["id"], library]
            if cell.answer == "not found" and library in facts.get("read", {}):
                without.append(title)
                continue
            where = "probe" if cell.source is None else _linked(cell.source)
            lines += _wrapped(f"- {title}: {cell.answer}; {_plain(cell.seen)} ({where})")
        if without:
            lines += _wrapped(f"- {', '.join(without)}: not found in what was read")
        lines.append("")
    return "\n".join(lines).rstrip()


def probe_all() -> int:
    """Run every probe in the environment of its library, store the answers; 1 if one of them is unclear."""
    stored: dict[str, Any] = {"libraries": {}}
    unclear = []
    known = facts()
    for library in known["libraries"]:
        if library in known["read"]:
            continue
        python = Path(sys.executable) if library == "taciturn" else BUILD / library / "bin" / "python"
        if not python.exists():
            raise SystemExit(f"build has no {library}; run make comparisons")
        places = [REPOSITORY / "research" / "src"] + ([REPOSITORY / "src"] if library == "taciturn" else [])
        done = subprocess.run(
            [str(python), "-P", "-m", "taciturn_research.benchmarks.compare.probing", library],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))},
        )
        found = json.loads(done.stdout)
        unclear += [
            f"{library}, {name}: {seen}" for name, (answer, seen) in found["answers"].items() if answer == "unclear"
        ]
        stored["libraries"][library] = found
    PROBED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    for sentence in unclear:
        print(sentence, file=sys.stderr)
    return 1 if unclear else 0


def _wrapped(item: str) -> list[str]:
    """An item of a list in lines of at most 120 characters; addresses are not broken."""
    return textwrap.wrap(item, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _marked(cell: Cell) -> str:
    return {"yes": "**yes**", "not found": "\u2013"}.get(cell.answer, cell.answer)


def _linked(source: str) -> str:
    return f"<{source}>" if source.startswith("https://") else source


def _plain(seen: str) -> str:
    """What a library says must not be read as Markdown; names in quotation marks are code."""
    parts = re.split(r'"([\w.]+)"', seen)
    for place in range(0, len(parts), 2):
        for character in "_*<>[]|":
            parts[place] = parts[place].replace(character, f"\\{character}")
    parts[1::2] = [f"`{name}`" for name in parts[1::2]]
    return "".join(parts).rstrip(".")
