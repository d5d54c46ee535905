"""Run every Python block of the pages and of README.md, and compare what it prints with the text block below it.

A block fenced as ``python`` must run on its own, in the environment that the pages tell people to install; warnings
count as errors. If the next thing on the page is a block fenced as ``text``, that is its output. The example of
README.md draws its noise from the system, so that its output is not compared. Without arguments differences are
reported and the exit code is 1; ``--write`` puts the output of today into the pages instead.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
PAGES = sorted(Path(__file__).parents[1].glob("*.md"))
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?", re.DOTALL | re.MULTILINE)

# One process a page, one namespace a block.
RUN = """
import contextlib, io, json, sys
printed = []
for code in json.load(sys.stdin):
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(code, "example", "exec"), {"__name__": "__main__"})
        printed.append(out.getvalue())
    except Exception as error:
        printed.append(f"failed: {type(error).__name__}: {error}\\n")
json.dump(printed, sys.stdout)
"""


def outputs_of(page: Path) -> list[str]:
    """What the blocks of a page print, in order; "failed: ..." for one that raises."""
    blocks = [match["code"] for match in EXAMPLE.finditer(page.read_text(encoding="utf-8"))]
    if not blocks:
        return []
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN], input=json.dumps(blocks), stdout=subprocess.PIPE, text=True
    )
    return json.loads(run.stdout) if run.returncode == 0 else [f"failed: exit code {run.returncode}\n"] * len(blocks)


def main(arguments: list[str]) -> int:
    """Check or write."""
    if arguments not in ([], ["--write"]):
        print("usage: examples.py [--write]", file=sys.stderr)
        return 2
    wrong = 0
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        outputs = dict(zip([README, *PAGES], pool.map(outputs_of, [README, *PAGES]), strict=True))
    for page, printed_by_block in outputs.items():
        left = iter(printed_by_block)

        def renewed(match: re.Match[str], page: Path = page, left: Iterator[str] = left) -> str:
            nonlocal wrong
            printed = next(left)
            if page == README and not printed.startswith("failed: "):
                return match[0]
            if printed.startswith("failed: ") or printed != (match["text"] or ""):
                wrong += 1
                print(f"{page.name}: {match['code'].splitlines()[0]} ...\n{printed}", file=sys.stderr)
            shown = f"\n```text\n{printed}```\n" if printed else ""
            return f"```python\n{match['code']}```\n{shown}"

        new = EXAMPLE.sub(renewed, page.read_text(encoding="utf-8"))
        if arguments and page != README:
            page.write_text(new, encoding="utf-8")
    print(f"{sum(map(len, outputs.values()))} examples, {wrong} of them not as printed")
    return 1 if wrong and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
