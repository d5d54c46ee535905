"""Run the blocks of one page in the current folder, for examples.py.

Reads JSON from standard input: whether the blocks share one namespace, and the blocks as pairs of a kind and a text.
Writes to standard output, as JSON, what each of them prints; "failed: ..." for one that does not end well.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

# A line that starts with "$ ", and those that it continues on by a backslash.
COMMAND = re.compile(r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n", re.MULTILINE)


def run_python(code: str, names: dict[str, object]) -> str:
    """What the code prints to standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        # An example has no imports from __future__ but its own.
        exec(compile(code, "example", "exec", dont_inherit=True), names)
    return out.getvalue()


def run_commands(screen: str) -> str:
    """The screen after the commands on it were run again: each, and below it what it writes to both outputs."""
    shown = ""
    for match in COMMAND.finditer(screen):
        done = subprocess.run(
            match["command"], shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        shown += match[0] + "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}\n{shown}")
    return shown


def run_block(kind: str, text: str, names: dict[str, object]) -> str:
    """Run Python code or commands, or write the file that the kind names."""
    if kind == "python":
        return run_python(text, names)
    if kind == "console":
        return run_commands(text)
    Path(kind).write_text(text, encoding="utf-8")
    return text


def main() -> None:
    """Run all blocks in order."""
    shared, blocks = json.load(sys.stdin)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for kind, text in blocks:
        try:
            printed.append(run_block(kind, text, names if shared else dict(names)))
        except Exception as error:
            printed.append(f"failed: {type(error).__name__}: {error}\n")
    json.dump(printed, sys.stdout)


if __name__ == "__main__":
    main()
