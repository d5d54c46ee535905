"""Scripts that write the pages: nothing else imports them, so that a renamed name would break them unseen."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((ROOT / "docs" / "tables").glob("*.py"))


def run_without_main(scripts, folder):
    """Run everything of scripts but what they do when they are called, in one process."""
    code = f"import runpy\nfor script in {list(map(str, scripts))!r}: runpy.run_path(script, run_name='imported')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)


def test_scripts_find_the_names_that_they_import():
    assert {"audit", "examples", "papers"} <= {script.stem for script in SCRIPTS}
    done = run_without_main(SCRIPTS, SCRIPTS[0].parent)
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_gone_is_noticed(tmp_path):
    script = tmp_path / "page.py"
    script.write_text("from taciturn_research.attacks import NoSuchCase\n")
    assert "cannot import name 'NoSuchCase'" in run_without_main([script], tmp_path).stderr
