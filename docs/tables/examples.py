"""Run every Python block of the pages and compare what it prints with the text block below it.

A block fenced as ``python`` must run on its own. If the next thing on the page is a block fenced as ``text``,
that is its output. Without arguments differences are reported and the exit code is 1; ``--write`` puts the
output of today into the pages instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGES = sorted(Path(__file__).parents[1].glob("*.md"))
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def output_of(code: str) -> str:
    """What the code prints, in a process of its own; warnings count as errors."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    return run.stdout if run.returncode == 0 else f"failed: {run.stderr.strip().splitlines()[-1]}\n"


def main(arguments: list[str]) -> int:
    """Check or write."""
    if arguments not in ([], ["--write"]):
        print("usage: examples.py [--write]", file=sys.stderr)
        return 2
    wrong = 0
    for page in PAGES:
        source = page.read_text(encoding="utf-8")

        def renewed(match: re.Match[str], page: Path = page) -> str:
            nonlocal wrong
            printed = output_of(match["code"])
            if printed.startswith("failed: ") or printed != (match["text"] or ""):
                wrong += 1
                print(f"{page.name}: {match['code'].splitlines()[0]} ...\n{printed}", file=sys.stderr)
            shown = f"\n```text\n{printed}```\n" if printed else ""
            return f"```python\n{match['code']}```\n{shown}"

        new = EXAMPLE.sub(renewed, source)
        if arguments:
            page.write_text(new, encoding="utf-8")
    return 1 if wrong and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
