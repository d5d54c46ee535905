"""What a command imports before it answers: scikit-learn and what it brings along take seconds."""

import json
import subprocess
import sys

import numpy as np
import pytest
from commands import BOUNDS, csv_text, patients, run, write_patients

HEAVY = ("sklearn", "scipy.stats", "pandas", "numba", "dp_accounting")

# The modules that a command of the program leaves behind, on standard error.
LISTED = f"""
import json, sys
from taciturn.__main__ import main
sys.argv = ["taciturn", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    found = [name for name in {HEAVY!r} if name in sys.modules]
    print(json.dumps([end.code, found]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick")
    rng, rows = np.random.default_rng(0), patients(3000)
    # A third of the labels at random, so that coefficients are far from infinite.
    noisy = [[*row[:-1], rng.choice(["no", "yes"]) if rng.random() < 0.33 else row[-1]] for row in rows]
    write_patients(folder, 10)
    (folder / "patients.csv").write_text(csv_text(noisy), encoding="utf-8")
    (folder / "typo.toml").write_text(BOUNDS.replace("lower = 0", "lowr = 0"), encoding="utf-8")
    stated = ("--bounds", "bounds.toml", "--epsilon", 8, "--seed", 1)
    for output, more in (("model", ("--inference", "--columns", "age,dose")), ("rule", ("--nonzero", 2))):
        done = run("fit", "patients.csv", *stated, *more, "-o", output, cwd=folder)
        assert done.code == 0, done
    return folder


def answer(folder, *arguments):
    """The exit code, the heavy modules that were imported, and what was printed."""
    done = subprocess.run(
        [sys.executable, "-c", LISTED, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    code, found = json.loads(done.stderr.splitlines()[-1])
    return code, found, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("show", "model"), 0, "odds ratio"),
        pytest.param(("show", "rule"), 0, "prediction rule", marks=pytest.mark.slow),
        pytest.param(("show", "model", "--format", "csv"), 0, "std.error", marks=pytest.mark.slow),
        pytest.param(("show", "model/certificate.json"), 0, "epsilon = 8", marks=pytest.mark.slow),
        (("verify", "model"), 0, "The files are consistent"),
        (("fit", "patients.csv", "--bounds", "typo.toml"), 1, 'did you mean "lower"?'),
    ],
    ids=["show", "weights", "table", "certificate", "verify", "fit"],
)
def test_an_answer_does_not_wait_for_scikit_learn(folder, arguments, code, says):
    ended, found, text = answer(folder, *arguments)
    assert ended == code, text
    assert says in text
    assert found == []


@pytest.mark.slow
def test_the_answer_is_the_same_with_scikit_learn(folder):
    # In this process it was imported by the fits.
    assert "sklearn" in sys.modules
    with_it = run("show", "model", "--format", "json", cwd=folder).out
    _, _, without = answer(folder, "show", "model", "--format", "json")
    assert without.startswith(with_it)


@pytest.mark.slow
def test_a_fit_is_made_of_classes_of_scikit_learn(folder):
    # Here the modules would be found: the list above is one that a command can fail.
    arguments = ("fit", "patients.csv", "--bounds", "bounds.toml", "--epsilon", "8", "-o", "again")
    code, found, text = answer(folder, *arguments)
    assert code == 0, text
    assert "sklearn" in found
