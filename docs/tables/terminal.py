"""The picture of a terminal on the first page: what ``taciturn demo`` prints up to a fitted model.

The demo runs with a fixed seed, and rich draws its lines. Without arguments, or with
``--write``, the picture is written; ``--check`` exits with 1 if the file holds another one.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from in_page import run_picture
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "pictures" / "terminal.svg"
COLUMNS = 86
SHOWN = ("$ taciturn init ", "$ taciturn fit ")
# Without a font from elsewhere; the window is dark in both schemes, and told from a dark page by its outline.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "    {styles}",
    "    @media (prefers-color-scheme: dark) {{ .rich-terminal > rect {{ stroke: #6b7480 }} }}\n\n    {styles}",
)


def output() -> str:
    """What the demo prints."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [Path(sys.executable).with_name("taciturn"), "demo", "--seed", "1", "-o", "demo"],
            cwd=folder, env=os.environ | {"COLUMNS": str(COLUMNS), "NO_COLOR": "1"}, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
    # A seed is for pictures that must not change; nobody should copy it.
    return run.stdout.replace(" --seed 1", "").replace(" --seed ...", "").strip() + "\n"


def shown(printed: str) -> list[str]:
    """The steps of the demo that the picture shows, each with its comment, its command and what that prints."""
    steps = re.split(r"^(?=# )", printed, flags=re.MULTILINE)
    found = [next(step.strip() for step in steps if f"\n{command}" in step) for command in SHOWN]
    return [line for step in found for line in (*step.splitlines(), "")][:-1]


def picture() -> str:
    """The picture as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for line in shown(output()):
        style = "bright_black" if line.startswith("# ") else "bold green" if line.startswith("$ ") else ""
        console.print(Text(line, style=style), soft_wrap=False)
    drawn = console.export_svg(title="taciturn demo", code_format=FORMAT, unique_id="terminal")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


if __name__ == "__main__":
    sys.exit(run_picture(sys.argv[1:], PICTURE, picture))
