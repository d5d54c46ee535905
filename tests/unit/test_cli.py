import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from taciturn import __version__
from taciturn.cli import app

RUNNER = CliRunner()


def test_the_demo_shows_ten_features_and_the_certificate():
    result = RUNNER.invoke(app, ["demo", "--seed", "0"], env={"COLUMNS": "100"})
    assert result.exit_code == 0
    features = re.findall(r"│ ((?:mean|worst) [a-z ]+?|[a-z ]+? error)\s+│", result.output)
    assert len(features) == len(set(features)) == 10
    for part in ("epsilon", "zero-out", "proved", "In words", "reproduction only", "a person with 2 records"):
        assert part in result.output


def test_the_demo_without_a_seed_is_not_marked_as_seeded():
    result = RUNNER.invoke(app, ["demo", "--features", "2", "--epsilon", "0.5"], env={"COLUMNS": "100"})
    assert "reproduction only" not in result.output
    assert "epsilon = 0.5" in result.output


def test_version_and_help():
    assert RUNNER.invoke(app, ["--version"]).output.strip() == f"taciturn {__version__}"
    help_text = RUNNER.invoke(app, ["demo", "--help"], env={"COLUMNS": "100"}).output
    assert "Example: taciturn demo --epsilon 0.5 --features 5" in help_text


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["demo", "--epsilon", "-1"], 1, "taciturn: epsilon=-1.0: expected a number > 0"),
        (["demo", "--delta", "1"], 1, "taciturn: delta=1.0: expected a number in [0, 1)"),
        (["demo", "--features", "31"], 2, "Invalid value for '--features'"),
        (["demo", "--seed", "-1"], 1, "taciturn: random_state=-1: expected None or an integer >= 0"),
        (["demo", "--epsilon", "much"], 2, "Invalid value for '--epsilon'"),
        (["reproduce", "magic"], 1, "taciturn: name='magic': expected all or one of dpsis-table-1"),
        (["reproduce", "all", "--trials", "0"], 2, "Invalid value for '--trials'"),
        (["reproduce", "all", "--data", "no such folder"], 2, "Invalid value for '--data'"),
    ],
)
def test_refusals_end_with_one_sentence(arguments, code, sentence):
    run = subprocess.run(
        [sys.executable, "-m", "taciturn", *arguments], capture_output=True, text=True, check=False, env=None
    )
    assert run.returncode == code
    assert sentence in " ".join(run.stderr.split())
    assert "Traceback" not in run.stderr
