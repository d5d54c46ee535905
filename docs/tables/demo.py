"""The part of docs/command.md between the marks of the demo: what ``taciturn demo`` prints.

Runs the demo with a fixed seed, leaves the certificate out, and writes the text into the page; ``--check`` compares
instead and exits with 1 if they differ.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "command.md"
BEGIN, END = "<!-- demo: begin -->\n", "<!-- demo: end -->\n"


def output() -> str:
    """What the demo prints, in lines of 86 columns."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [Path(sys.executable).with_name("taciturn"), "demo", "--seed", "1", "-o", "demo"],
            cwd=folder, env=os.environ | {"COLUMNS": "86", "NO_COLOR": "1"}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    # A seed is for pages that must not change; nobody should copy it.
    return run.stdout.replace(" --seed 1", "").replace(" --seed ...", "").strip() + "\n"


def shortened(text: str) -> str:
    """The same without the step that shows the coefficients a second time, and the certificate."""
    steps = [step for step in text.split("\n\n# ") if "$ taciturn show" not in step]
    return "\n".join(line.rstrip() for line in "\n\n# ".join(steps).splitlines()) + "\n"


def main(arguments: list[str]) -> int:
    """Write the part, or compare it."""
    page = PAGE.read_text(encoding="utf-8")
    part = f"{BEGIN}\n```text\n{re.sub(chr(10) * 3 + '+', chr(10) * 2, shortened(output()))}```\n\n{END}"
    start, stop = page.index(BEGIN), page.index(END) + len(END)
    changed = page[:start] + part + page[stop:]
    if "--check" in arguments:
        if changed != page:
            print("command.md: the demo prints something else; run python docs/tables/demo.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(changed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
