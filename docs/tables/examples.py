"""Run every example of the pages and of README.md, and compare what it prints with what stands on the page.

A block fenced as ``python`` must run on its own, in the environment that the pages tell people to install; warnings
count as errors. If the next thing on the page is a block fenced as ``text``, that is its output. Every
page has a process and an empty folder of its own.

A lesson, whose blocks build on each other, has the line ``<!-- examples: one session -->``:

* its ``python`` blocks share one namespace;
* ``$`` lines of a block fenced as ``console`` are commands, and what stands below each is its output;
* a block fenced with a title, such as ``toml title="bounds.toml"``, is a file, which is written to the folder;
* its blocks make the pictures ``pictures/*.svg`` that the page shows, under the same names, in the folder.

Fits with an account take no seed. A line ``<!-- numbers vary -->`` before a block says that its output is compared up
to the numbers in it.

Without arguments differences are reported and the exit code is 1. ``--write`` puts the output of today into the pages
instead, and the pictures beside them. Names of pages, such as ``wide.md``, limit both to these pages.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from in_page import in_both_schemes

TABLES = Path(__file__).parent
PAGES = [TABLES.parents[1] / "README.md", *sorted(TABLES.parent.glob("*.md"))]

SESSION = "<!-- examples: one session -->\n"
EXAMPLE = re.compile(
    r"^(?P<varies><!-- numbers vary -->\n\n?)?"
    r"(?:```python\n(?P<python>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?"
    r"|```console\n(?P<console>.*?)^```\n"
    r'|```\w+ title="(?P<name>[\w.-]+)"\n(?P<file>.*?)^```\n)',
    re.DOTALL | re.MULTILINE,
)
PICTURE = re.compile(r"!\[[^]]*\]\(pictures/([\w.-]+\.svg)\)")
NUMBER = re.compile(r"[<+-]?\b(?:[0-9a-f]{12,}|\d[\d.,]*(?:e[+-]?\d+)?)")
SPACE_AND_LINES = re.compile(r"[\s\u2500-\u259f]+")


@dataclass
class Outcome:
    """What became of a page: its new text, how many examples it has, and what is wrong with it."""

    text: str
    n_examples: int = 0
    wrong: list[str] = field(default_factory=list)
    failed: bool = False


def without_numbers(text: str) -> str:
    """The words of an output: numbers replaced, spaces and lines of tables and bars collapsed."""
    return SPACE_AND_LINES.sub(" ", NUMBER.sub("#", text)).strip()


def environment() -> dict[str, str]:
    """Commands of this interpreter first, a fixed width, no colour, and figures without a screen."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    fixed = {"COLUMNS": "86", "NO_COLOR": "1", "MATPLOTLIBRC": str(TABLES / "matplotlibrc")}
    fixed["SOURCE_DATE_EPOCH"] = "1767225600"  # 2026-01-01, on pictures and pages that name a day
    return os.environ | fixed | {"PATH": path}


def outputs_of(matches: list[re.Match[str]], folder: Path, *, shared: bool) -> list[str]:
    """What the examples print, in order; "failed: ..." for one that does not end well."""
    blocks = [
        ("python", found["python"]) if found["python"] is not None
        else ("console", found["console"]) if found["console"] is not None
        else (found["name"], found["file"])
        for found in matches
    ]  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-W", "error", TABLES / "session.py"],
        input=json.dumps([shared, blocks]), stdout=subprocess.PIPE, text=True, cwd=folder, env=environment(),
    )  # fmt: skip
    return json.loads(run.stdout) if run.returncode == 0 else [f"failed: exit code {run.returncode}\n"] * len(blocks)


def as_shown(match: re.Match[str], printed: str) -> str:
    """The block with this output."""
    if match["python"] is None:
        start, end = (place - match.start() for place in match.span("console" if match["name"] is None else "file"))
        return match[0][:start] + printed + match[0][end:]
    shown = f"\n```text\n{printed}```\n" if printed else ""
    return f"{match['varies'] or ''}```python\n{match['python']}```\n{shown}"


def run_page(page: Path, folder: Path) -> Outcome:
    """Run the examples of a page in an empty folder."""
    text = page.read_text(encoding="utf-8")
    shared = SESSION in text
    matches = [match for match in EXAMPLE.finditer(text) if shared or match["python"] is not None]
    outcome = Outcome(text, len(matches))
    if not matches:
        return outcome
    parts, end = [], 0
    for match, printed in zip(matches, outputs_of(matches, folder, shared=shared), strict=True):
        failed = printed.startswith("failed: ")
        new = as_shown(match, printed)
        before, after = (without_numbers(both) if match["varies"] else both for both in (match[0], new))
        if failed or before != after:
            outcome.failed |= failed
            first = match[0].removeprefix(match["varies"] or "").splitlines()[1]
            outcome.wrong.append(f"{page.name}: {first} ...\n{printed}")
        parts += [text[end : match.start()], new]
        end = match.end()
    outcome.text = "".join([*parts, text[end:]])
    if shared:
        for name in sorted(set(PICTURE.findall(text))):
            if not (folder / name).is_file():
                outcome.failed = True
                outcome.wrong.append(f"{page.name}: no example makes {name}\n")
    return outcome


def write_page(page: Path, outcome: Outcome, folder: Path) -> None:
    """Put the new output into the page, and the pictures that it shows beside it."""
    page.write_text(outcome.text, encoding="utf-8")
    pictures = page.parent / "pictures"
    if SESSION in outcome.text:
        for name in sorted(set(PICTURE.findall(outcome.text))):
            pictures.mkdir(exist_ok=True)
            drawn = (folder / name).read_text(encoding="utf-8")
            (pictures / name).write_text(in_both_schemes(drawn), encoding="utf-8")


def check_page(page: Path, write: bool) -> Outcome:
    """Run a page in a folder of its own; write it if it ran to its end."""
    with tempfile.TemporaryDirectory() as name:
        outcome = run_page(page, Path(name))
        if write and not outcome.failed:
            write_page(page, outcome, Path(name))
    return outcome


def main(arguments: list[str]) -> int:
    """Check or write."""
    write = "--write" in arguments
    names = [argument for argument in arguments if argument != "--write"]
    if unknown := set(names) - {page.name for page in PAGES}:
        print(f"usage: examples.py [--write] [PAGE ...]; there is no page {', '.join(unknown)}", file=sys.stderr)
        return 2
    pages = [page for page in PAGES if not names or page.name in names]
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        outcomes = list(pool.map(lambda page: check_page(page, write), pages))
    wrong = [problem for outcome in outcomes for problem in outcome.wrong]
    print(*wrong, sep="", end="", file=sys.stderr)
    print(f"{sum(outcome.n_examples for outcome in outcomes)} examples, {len(wrong)} of them not as printed")
    return 1 if any(outcome.failed for outcome in outcomes) or (wrong and not write) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
