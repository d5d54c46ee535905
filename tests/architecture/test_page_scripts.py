"""Scripts that write the pages: nothing else imports them, so that a renamed name would break them unseen."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs" / "tables").glob("*.py"))


def run_without_main(script):
    """Run everything of a script but what it does when it is called."""
    code = f"import runpy; runpy.run_path({str(script)!r}, run_name='imported')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=script.parent, check=False)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_finds_the_names_that_it_imports(script):
    done = run_without_main(script)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_gone_is_noticed(tmp_path):
    script = tmp_path / "page.py"
    script.write_text("from taciturn.audit.catalogue import NoSuchCase\n")
    assert "cannot import name 'NoSuchCase'" in run_without_main(script).stderr
