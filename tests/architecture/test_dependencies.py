"""What the package needs: nothing more than it says, and nothing heavy before it is used."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
RESEARCH = tomllib.loads((ROOT / "research" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORT_NAMES = {"scikit-learn": "sklearn", "dp-accounting": "dp_accounting"}


def names_of(requirements):
    """Import names of the packages."""
    names = {re.match(r"[a-z0-9_-]+", requirement)[0] for requirement in requirements}
    return {IMPORT_NAMES.get(name, name) for name in names}


def run(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


def blocked(names):
    """Code after which these packages cannot be imported."""
    return f"import sys\nsys.modules.update(dict.fromkeys({sorted(names)}))\n"


# ------------------------------------------------------------------ what is installed


def test_the_oldest_packages_are_the_lower_bounds():
    bounds = {}
    extras = (EXTRAS[name] for name in ("cli", "dask", "docx", "excel", "stata", "postgresql", "dev"))
    further = [requirement for requirement in RESEARCH["dependencies"] if requirement != "taciturn[cli]"]
    for requirement in [*PROJECT["dependencies"], *further, *(asked for extra in extras for asked in extra)]:
        name, lowest = re.fullmatch(r"([a-z0-9_-]+)(?:\[[a-z]+\])?>=([0-9.]+)(?:,<[0-9.]+)?", requirement).groups()
        assert bounds.setdefault(name, lowest) == lowest
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    assert dict(line.split("==") for line in lines if not line.startswith("#")) == bounds


def test_the_extra_of_the_command_line_is_what_its_entry_point_asks_for():
    from taciturn.__main__ import _NEEDED

    assert set(_NEEDED) == names_of(EXTRAS["cli"]) == {"jinja2", "pyarrow", "rich", "typer"}
    assert PROJECT["scripts"] == {"taciturn": "taciturn.__main__:main"}


def test_only_research_needs_matplotlib():
    assert [extra for extra, needed in EXTRAS.items() if "matplotlib" in names_of(needed)] == []
    assert {"matplotlib", "taciturn"} <= names_of(RESEARCH["dependencies"])


# ------------------------------------------------------------------ what works without extras

WITHOUT_EXTRAS = """
import numpy as np, pandas as pd, scipy.sparse as sp
from sklearn.base import clone
import taciturn
import taciturn.audit

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (4000, 6))
y = X[:, 2] > 0.0
tables = (X, sp.csr_array(X), pd.DataFrame(X, columns=list("abcdef")))
model = taciturn.SparseClassifier(x_bound=1.0, classes=(False, True), n_nonzero=1, random_state=0)
fitted = [clone(model).fit(table, y) for table in tables]
coefficients = [model.coef_ for model in fitted]
assert all(np.flatnonzero(each).tolist() == [2] for each in coefficients), coefficients
assert all(np.array_equal(each, coefficients[0]) for each in coefficients)
assert "2.719" in str(fitted[0].certificate_)
for name in taciturn.__all__:
    getattr(taciturn, name)
print("fitted")
"""


def test_estimators_do_without_extras():
    extras = names_of(EXTRAS["cli"]) | {"matplotlib"}
    # pandas itself looks for pyarrow, and does without it.
    done = run(blocked(extras) + WITHOUT_EXTRAS)
    assert done.stdout == "fitted\n", done.stderr


@pytest.mark.parametrize("missing", ["jinja2", "pyarrow", "rich", "typer"])
def test_the_command_without_its_extra_says_what_to_install(missing):
    code = "import runpy\nsys.argv[1:] = ['--version']\nrunpy.run_module('taciturn', run_name='__main__')"
    done = run(blocked([missing]) + code)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"taciturn: the command line needs {missing}; run pip install 'taciturn[cli]'.\n"


WITHOUT_PYARROW = """
import pandas as pd
from taciturn.tables import TableBounds, TableEncoder

bounds = TableBounds.from_toml('target = {name = "y", lower = 0, upper = 1}')
TableEncoder(bounds=bounds).fit(pd.DataFrame({"a": [0.5], "y": [0.5]}))
"""


def test_tables_without_pyarrow_say_what_to_install():
    done = run(blocked(["pyarrow"]) + WITHOUT_PYARROW)
    sentence = "ModuleNotFoundError: TableEncoder needs pyarrow; run pip install 'taciturn[cli]'."
    assert done.stderr.splitlines()[-1] == sentence


# ------------------------------------------------------------------ what is imported, and when

# What an estimator needs of others whatever it does. scikit-learn imports pandas where it is installed, and pandas
# pyarrow: neither is there, so that whatever imports one of them fails.
BASELINE = blocked(["pandas", "pyarrow"]) + (
    "import lazy_loader, numpy, scipy.sparse, scipy.special, sklearn.base, sklearn.utils.multiclass\n"
)
IMPORTED = """
before = set(sys.modules)
from taciturn import SparseClassifier
def of_others():
    new = {name.partition(".")[0] for name in set(sys.modules) - before}
    return sorted(new - sys.stdlib_module_names - {"taciturn"})
print(of_others(), "taciturn.methods.objective.estimator" in sys.modules)
from taciturn.methods.registry import classes_of
classes_of("regressor", "classifier")
print(of_others(), "taciturn.methods.objective.estimator" in sys.modules)
"""
HEAVY = ("numba", "llvmlite", "dp_accounting", "cryptography", "jinja2", "rich", "typer")


def test_an_estimator_imports_what_scikit_learn_does_and_nothing_else():
    done = run(BASELINE + IMPORTED)
    assert done.stdout == "[] False\n[] True\n", done.stdout + done.stderr
    # The test would notice each of these.
    planted = IMPORTED.replace("from taciturn", f"import {', '.join(HEAVY)}\nfrom taciturn", 1)
    done = run(BASELINE + planted)
    assert set(HEAVY) <= set(ast.literal_eval(done.stdout.splitlines()[0].removesuffix(" False")))


def memory_after(code):
    """Largest resident memory, in kilobytes, of a new process that has run the code.

    Not by ``getrusage``, which also counts the process that started it.
    """
    show = "\nprint(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    return int(run(blocked(["pandas", "pyarrow"]) + code + show).stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to know the memory of a process")
def test_importing_an_estimator_takes_little_more_memory_than_scikit_learns_linear_models():
    theirs = memory_after("import sklearn.linear_model")
    # 0.94 when this was written; with numba, which used to be imported at once, 1.36.
    assert memory_after("from taciturn import SparseClassifier") < 1.1 * theirs
    assert memory_after("from taciturn import SparseClassifier\nimport numba") > 1.2 * theirs
