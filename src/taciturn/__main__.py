"""The command line, where the packages that it needs are installed: ``taciturn`` and ``python -m taciturn``."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

# The extra "cli" of pyproject.toml.
_NEEDED = ("jinja2", "pyarrow", "rich", "typer")


def main() -> None:
    """Run the command line, or say in one sentence, with exit code 1, what has to be installed first."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f"taciturn: the command line needs {', '.join(missing)}; run pip install 'taciturn[cli]'.")
    if sys.argv[1:2] in (["show"], ["verify"]):
        from taciturn.core.stand_ins import want_stand_ins

        want_stand_ins()
    from taciturn.app.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
