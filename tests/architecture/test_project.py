"""What the project promises about itself: examples that run, imports in order, names that exist."""

import ast
import doctest
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "src", ROOT / "research" / "src")
SOURCES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]


def test_the_readme_example_runs_as_printed():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL)
    assert len(code.strip().splitlines()) <= 16
    assert "random_state=0" in code
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == printed


MODULES = [
    ".".join(path.relative_to(folder).with_suffix("").parts)
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.filterwarnings("error::taciturn.DefaultBoundsWarning")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run_as_printed(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def commands_in(text, pattern):
    """Targets of ``make`` that a text calls."""
    return {target for line in re.findall(pattern, text, re.MULTILINE) for target in line.split()}


def test_ci_runs_the_tests_that_readme_names():
    readme = commands_in((ROOT / "README.md").read_text(encoding="utf-8"), r"(?:`|^)make ([a-z-]+)")
    defined = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    ran = commands_in((ROOT / ".ci" / "run").read_text(encoding="utf-8"), r"^exec make (.*)$") | {
        target
        for path in workflows
        for target in commands_in(path.read_text(encoding="utf-8"), r"run: make ([a-z-]+)$")
    }
    assert readme | ran <= defined
    # What README names beside them takes an hour or needs Spark; the site, which CI builds, begins with the demo.
    assert readme - ran == {"arena", "comparisons", "coverage", "demo", "test-engines"}
    assert {"lint", "test", "test-slow", "docs"} <= ran


def test_public_names_exist_and_are_documented():
    for name in taciturn.__all__:
        assert getattr(taciturn, name) is not None
        if name != "__version__":
            assert getattr(taciturn, name).__doc__
    with pytest.raises(AttributeError, match="attribute.*magic"):
        _ = taciturn.magic
    assert {*dir(taciturn), "__version__"} == set(taciturn.__all__)


def test_importing_the_package_is_cheap():
    heavy = ("numba", "scipy", "sklearn", "dp_accounting")
    code = f"import sys, taciturn; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_modules_are_documented():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert [str(path) for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_import_contracts_are_kept_and_can_fail(tmp_path):
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    kept = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert kept.returncode == 0, kept.stdout
    # The same contracts refuse numba outside kernels, upward imports, research and an unlisted subpackage.
    for place, line in (
        ("data/planted.py", "import numba"),
        ("core/planted.py", "import taciturn.events"),
        ("app/planted.py", "import taciturn_research.pages"),
        ("utils.py", "X = 1"),
    ):
        copy = tmp_path / place.replace("/", "_")
        shutil.copytree(ROOT / "src" / "taciturn", copy / "taciturn")
        shutil.copytree(
            ROOT / "research" / "src" / "taciturn_research",
            copy / "taciturn_research",
            ignore=lambda _, names: [name for name in names if "." in name and not name.endswith(".py")],
        )
        (copy / "taciturn" / place).write_text(line + "\n", encoding="utf-8")
        (copy / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        broken = subprocess.run(
            command, cwd=copy, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(copy)}
        )
        assert broken.returncode == 1, (place, broken.stdout)
        assert "BROKEN" in broken.stdout


@pytest.mark.parametrize("word", ["_param_validation", "_fit_context", "sklearn.utils._", "numpy.core"])
def test_no_private_names_of_other_libraries(word):
    assert not [path for path in SOURCES if word in path.read_text(encoding="utf-8")]


CLOCKS = {"perf_counter", "process_time", "monotonic", "getrusage", "get_traced_memory", "total_allocated_bytes"}


def measuring_tests(source):
    """The tests of a file that read a clock or a counter of memory, and are not marked as slow."""
    for each in ast.walk(ast.parse(source)):
        if not isinstance(each, ast.FunctionDef) or not each.name.startswith("test_"):
            continue
        if not any("mark.slow" in ast.unparse(decorator) for decorator in each.decorator_list) and CLOCKS & {
            node.attr for node in ast.walk(each) if isinstance(node, ast.Attribute)
        }:
            yield each.name


def test_only_slow_tests_measure_time_or_memory():
    files = (ROOT / "tests").rglob("test_*.py")
    found = {path.name: list(measuring_tests(path.read_text(encoding="utf-8"))) for path in files}
    assert {name: tests for name, tests in found.items() if tests} == {}
    planted = "def test_speed():\n    assert time.perf_counter() < 1"
    assert list(measuring_tests(planted)) == ["test_speed"]
    assert list(measuring_tests(f"@pytest.mark.slow\n{planted}")) == []


def evidence_problems(page: str) -> list[str]:
    """Files and tests that the table of evidence names and that are not there."""
    named = re.findall(r"`((?:tests|docs|src)/[^`]+)`", page)
    missing = []
    for path, _, test in (name.partition("::") for name in named):
        found = (ROOT / path).exists() and (not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"))
        missing += [] if found else [f"{path}::{test}" if test else path]
    return missing


def test_the_evidence_that_security_names_exists():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = page.split("## Statements and their evidence", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "statement" not in line]
    assert len(rows) >= 15
    assert all(re.search(r"`(?:tests|docs|src)/", row) for row in rows)
    assert evidence_problems(page) == []
    assert evidence_problems("`tests/unit/core/test_rng.py::test_of_nothing` `docs/no-page.md`") == [
        "tests/unit/core/test_rng.py::test_of_nothing",
        "docs/no-page.md",
    ]


def test_every_test_that_is_listed_as_slow_exists():
    listed = (ROOT / "tests" / "slow_tests.txt").read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed))
    for test in listed:
        file, _, name = test.partition("::")
        assert re.search(
            rf"^ *def {name.split('[')[0].split('::')[-1]}\(", (ROOT / file).read_text(encoding="utf-8"), re.M
        )
