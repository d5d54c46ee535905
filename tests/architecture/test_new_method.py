"""A method in a file of its own is everywhere by one line of the registry."""

import json
import subprocess
import sys
from pathlib import Path

import checks_of_copies_and_predictions
import checks_of_fits
import checks_of_refusals
import checks_of_tables
import numpy as np
import pytest
from checks import CHECKS, pairs
from every_class import all_entries
from joblib import parallel_config
from mutants import claim_and_finding, is_flagged, mutants_with_less_noise
from sklearn.utils.estimator_checks import check_estimator

from taciturn.methods import registry
from taciturn_research.attacks import find_entries
from taciturn_research.attacks.replays import SMALL, all_replays, replays_of

LINE = 'METHODS.append(Method("marginal", "new_method", regressor="MarginalRegressor"))'
SUITE = (checks_of_fits, checks_of_tables, checks_of_refusals, checks_of_copies_and_predictions)


@pytest.fixture
def new_method(monkeypatch):
    """The registry with one line more, for as long as a test lasts."""
    monkeypatch.setattr(registry, "METHODS", [*registry.METHODS])
    exec(LINE, vars(registry))


@pytest.mark.usefixtures("new_method")
@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
def test_a_new_method_is_in_the_conformance_suite():
    (entry,) = (each for each in all_entries() if each.name == "MarginalRegressor")
    applied = pairs([entry])
    assert len(applied) > 25
    # Other processes do not know the line.
    with parallel_config(backend="threading"):
        for name, _ in applied:
            CHECKS[name][0](entry)
    results = check_estimator(entry(), on_skip=None)
    assert len(results) > 40


@pytest.mark.usefixtures("new_method")
def test_a_new_method_is_replayed():
    (case,) = (each for each in all_replays() if each.name == "MarginalRegressor")
    found = list(replays_of(case, SMALL, repeats=5, seed=1))
    for each in found:
        each.raise_if_any()
    assert 0.5 < max(each.largest_share for each in found) <= 1.0


@pytest.mark.usefixtures("new_method")
def test_a_new_method_is_audited_and_a_mutant_of_its_whole_fit_is_caught():
    assert [entry.name for entry in find_entries("MarginalRegressor")] == ["MarginalRegressor"]
    (mutant,) = (each for each in mutants_with_less_noise() if each.name.endswith(": MarginalRegressor"))
    broken, sound = mutant.caught(), mutant.spared()
    assert is_flagged(broken)
    assert not is_flagged(sound)
    assert claim_and_finding(broken)[0] == claim_and_finding(sound)[0]


def run(folder, *commands):
    """Exit codes and what commands write to standard error, in one process whose registry has the line."""
    path = [str(Path(__file__).parent), *sys.path]
    code = f"""
import contextlib, io, json, sys
sys.path[:] = {path!r}
from taciturn.methods.registry import METHODS, Method
{LINE}
from taciturn.__main__ import main
ends = []
for arguments in {commands!r}:
    sys.argv = ["taciturn", *arguments]
    err, code = io.StringIO(), 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    ends.append((code, err.getvalue()))
print(json.dumps(ends))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_new_method_is_in_the_command_and_in_errors_that_list_methods(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (500, 2)).round(3)
    rows = "\n".join(f"{a},{b},{np.clip(a, -1, 1)}" for a, b in X)
    (tmp_path / "table.csv").write_text(f"a,b,y\n{rows}\n", encoding="utf-8")
    columns = "".join(f'[columns.{name}]\ntype = "number"\nlower = -1\nupper = 1\n' for name in "ab")
    (tmp_path / "bounds.toml").write_text(
        f'target = {{name = "y", lower = -1, upper = 1}}\n{columns}', encoding="utf-8"
    )
    fit = ("fit", "table.csv", "--bounds", "bounds.toml", "-o", "model", "--method")
    # A method that only classifies is refused with a list of those that do not.
    fitted, refused = run(tmp_path, (*fit, "marginal"), (*fit, "admm"))
    assert fitted[0] == 0, fitted
    assert '"MarginalRegressor"' in (tmp_path / "model" / "model.json").read_text(encoding="utf-8")
    assert refused[0] != 0
    assert "marginal" in refused[1]
