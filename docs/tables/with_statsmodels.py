"""The example of docs/coming-from.md that imports statsmodels, and what it prints.

Examples of the pages run where only what taciturn needs is installed, so that this one has a script of its own: it
runs the block fenced as ``py`` in the development environment, and its output stands below it in the page.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys

from in_page import PAGES, run

PAGE = "coming-from.md"
BLOCK = re.compile(r"^```py\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def table() -> str:
    """What the block prints, as a block of text."""
    (code,) = BLOCK.findall((PAGES / PAGE).read_text(encoding="utf-8"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, PAGE, "exec"), {"__name__": "__main__"})
    return f"```text\n{printed.getvalue()}```"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], "with_statsmodels", PAGE, table))
