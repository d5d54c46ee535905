"""What ``make release-check`` looks at passes today, and broken variants of it do not."""

import io
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from tools import bill, distributions, lock, release_check
from tools.release_check import Check, CheckError, Release

import taciturn

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
RESEARCH = lock.read_project(ROOT / lock.RESEARCH)
LOCKED = (ROOT / lock.LOCK).read_text(encoding="utf-8")
# From the newest release on: what comes after it stands above, as "Unreleased", and make release-check refuses that.
CHANGELOG = re.sub(
    r"^## Unreleased\n.*?(?=^## )",
    "",
    (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    flags=re.MULTILINE | re.DOTALL,
)
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
VERSION = taciturn.__version__


# ------------------------------------------------------------------ version and tree


def test_a_release_has_one_number_and_one_date():
    assert Release(ROOT).version == VERSION
    assert release_check.version_problems(VERSION, CHANGELOG, CITATION) == []


@pytest.mark.parametrize(
    ("version", "changelog", "citation", "word"),
    [
        ("9.9.9", CHANGELOG, CITATION, "_version.py says 9.9.9, the changelog"),
        (VERSION, CHANGELOG, CITATION | {"version": "0.1.0"}, "CITATION.cff 0.1.0"),
        (VERSION, CHANGELOG, CITATION | {"date-released": "2020-01-01"}, "CITATION.cff 2020-01-01"),
        (VERSION, "## Unreleased\n\n" + CHANGELOG, CITATION, "'Unreleased', which is not a version"),
        (VERSION, f"## {VERSION}\n", CITATION, "not a version and a date"),
        (VERSION, "", CITATION, "nothing"),
    ],
)
def test_another_version_or_date_is_refused(version, changelog, citation, word):
    problems = release_check.version_problems(version, changelog, citation)
    assert word in "; ".join(problems)


def test_the_r_package_has_the_version_of_the_release():
    description = (ROOT / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    assert release_check.r_problems(release_check.Release(ROOT).version, description) == []
    assert release_check.r_problems("9.9", description) != []
    assert release_check.r_problems("9.9", "Package: taciturn\n") != []


def test_the_recipe_for_conda_asks_for_what_pyproject_does():
    version = release_check.Release(ROOT).version
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert release_check.conda_problems(version, PROJECT, yaml.safe_load(text)) == []
    for here, there in (("numba >=0.61.2", "numba >=0.5"), ("    - scipy >=1.15\n", ""), (version, "9.9.9")):
        assert here in text
        changed = yaml.safe_load(text.replace(here, there))
        assert release_check.conda_problems(version, PROJECT, changed) != []


def test_a_tree_with_changes_is_refused():
    assert release_check.tree_problems("") == []
    problems = release_check.tree_problems(" M src/taciturn/losses.py\n?? notes.txt\n")
    assert problems == ["src/taciturn/losses.py is not committed", "notes.txt is not committed"]


def test_a_tag_of_another_version_is_refused():
    assert release_check.tag_problems([VERSION, f"v{VERSION}", "paper"], VERSION) == []
    assert release_check.tag_problems(["v9.9.9"], VERSION) == ["the commit is tagged v9.9.9"]


# ------------------------------------------------------------------ the lock


def test_the_lock_has_every_package_within_its_bounds():
    assert lock.lock_problems(PROJECT, RESEARCH, LOCKED) == []
    assert "hatchling" in {pin.name for pin in lock.pins_in(LOCKED)}
    # What builds the package is locked too, by an extra that asks for the same.
    assert set(PYPROJECT["build-system"]["requires"]) <= set(PROJECT["optional-dependencies"]["release"])


@pytest.mark.parametrize("name", ["pytest", "numpy", "zensical", "matplotlib", "pyarrow", "hatchling"])
def test_a_lock_that_lacks_a_package_is_refused(name):
    without = re.sub(rf"^{name}==.*\n", "", LOCKED, flags=re.MULTILINE)
    assert without != LOCKED
    (problem, *_) = lock.lock_problems(PROJECT, RESEARCH, without)
    assert problem.startswith(name)
    assert "has no version for Python 3.11" in problem


@pytest.mark.parametrize(
    ("pattern", "line", "word"),
    [
        (r"^pytest==.*$", "pytest==8.0", "does not allow pytest==8.0"),
        (r"^dp-accounting==.*$", "dp-accounting==0.7", "does not allow dp-accounting==0.7"),
        (r"^pytest==.*$", "pytest>=9", "is not one version"),
        (r"^numpy==.*$", "numpy==2.4 ; python_full_version < '3.12'", "numpy>=2.2 has no version for Python 3.12"),
        (r"^ruff==.*$", "ruff==0.17 ; sys_platform == 'linux'", "ruff>=0.8 has no version for Python 3.11 on darwin"),
        (r"^pytest==.*$", "--index-url https://packages.example/simple\npytest==9", "names an index or a file"),
        (r"^pytest==.*$", "pytest @ file:///somewhere/pytest.whl", "names an index or a file"),
    ],
)
def test_a_lock_with_a_wrong_line_is_refused(pattern, line, word):
    broken = re.sub(pattern, line, LOCKED, flags=re.MULTILINE)
    assert broken != LOCKED
    assert word in "; ".join(lock.lock_problems(PROJECT, RESEARCH, broken))


# ------------------------------------------------------------------ wheel, sdist and the page of an index

INFO = f"taciturn-{VERSION}.dist-info"
WHEEL = ["taciturn/__init__.py", "taciturn/py.typed", f"{INFO}/METADATA", f"{INFO}/licenses/LICENSE"]


def test_a_wheel_holds_the_package_alone():
    assert distributions.wheel_problems(WHEEL, VERSION) == []
    other = ("tests/conftest.py", "docs/index.md", "tools/lock.py", "taciturn_research/pages.py")
    for name in (*other, "taciturn/__pycache__/x.py", "taciturn/k.nbi"):
        (problem,) = distributions.wheel_problems([*WHEEL, name], VERSION)
        assert name in problem
    for name in WHEEL:
        assert distributions.wheel_problems([each for each in WHEEL if each != name], VERSION) == [f"{name} is missing"]


def test_an_sdist_holds_what_git_tracks():
    tracked = ["README.md", "tests/conftest.py"]
    sizes = {f"taciturn-{VERSION}/{name}": 10 for name in [*tracked, "PKG-INFO"]}
    assert distributions.sdist_problems(sizes, tracked, VERSION) == []
    stray = sizes | {f"taciturn-{VERSION}/notes.txt": 10}
    assert distributions.sdist_problems(stray, tracked, VERSION) == ["notes.txt is not tracked by git"]
    assert distributions.sdist_problems(sizes, [*tracked, "Makefile"], VERSION) == ["Makefile is missing"]
    large = sizes | {f"taciturn-{VERSION}/README.md": 10**7}
    (problem,) = distributions.sdist_problems(large, tracked, VERSION)
    assert problem.startswith("README.md has 10,000,000 bytes")


def shown_page():
    """README as the build hands it to an index."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for rule in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_the_page_of_an_index_leads_to_no_file():
    page = shown_page()
    assert distributions.page_problems(page) == []
    assert "## Licence" in page
    assert distributions.page_problems((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("link", ["[a](docs/a.md)", "![a](a.png)", '<img src="a.png">', "<a href='docs/a.html'>"])
def test_links_to_files_are_found(link):
    assert len(distributions.page_problems(f"text {link} text")) == 1
    assert distributions.page_problems(f"`{link}` [b](https://example.org/b) [c](#c)") == []


# ------------------------------------------------------------------ the bill of materials


def raw_bill():
    """What the generator prints, in small: an installer, addresses and a path among it."""

    def component(name, **fields):
        places = [{"type": "distribution", "url": f"file:///home/somebody/{name}.whl"}]
        facts = {
            "bom-ref": f"{name}==1.0",
            "type": "library",
            "name": name,
            "version": "1.0",
            "externalReferences": places,
        }
        return facts | fields

    def licensed(identifier):
        return [{"license": {"id": identifier, "acknowledgement": "declared"}}]

    parts = [
        component("taciturn", licenses=licensed("Apache-2.0")),
        component("scipy", licenses=[{"license": {"name": "License :: OSI Approved :: BSD License"}}]),
        component("numpy", licenses=[{"expression": "BSD-3-Clause AND Zlib"}], purl="pkg:pypi/numpy@1.0"),
        component("pip", licenses=licensed("MIT")),
    ]
    tool = {"type": "application", "group": "CycloneDX", "name": "cyclonedx-py", "version": "7"}
    tools = {"components": [tool | {"externalReferences": [{"type": "website", "url": "https://example.org"}]}]}
    return {
        "serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79",
        "metadata": {"timestamp": "2026-11-18T00:00:00Z", "tools": tools},
        "components": parts,
    }


REQUIRES = {
    "taciturn": ["scipy>=1", "numpy>=2", 'pip; extra == "dev"'],
    "scipy": ["numpy", 'win-only; sys_platform == "never"'],
    "NumPy": [],
    "pip": [],
}
NEEDS = {"numpy": [], "scipy": ["numpy"], "taciturn": ["numpy", "scipy"]}


def test_needs_are_those_without_extras_that_nobody_asks_for():
    assert bill.needs_of(REQUIRES) == NEEDS
    asked = REQUIRES | {"taciturn": ["scipy[fast]"], "scipy": ['numpy; extra == "fast"', 'pip; extra == "slow"']}
    assert bill.needs_of(asked) == {"numpy": [], "scipy": ["numpy"], "taciturn": ["scipy"]}


def test_a_bill_has_what_the_package_needs_and_nothing_of_the_machine():
    cleaned = bill.clean_bill(raw_bill(), NEEDS, "0" * 64)
    assert [component["name"] for component in cleaned["components"]] == ["numpy", "scipy"]
    assert cleaned["metadata"]["component"]["name"] == "taciturn"
    assert bill.bill_problems(cleaned, {"numpy", "scipy"}) == []
    assert bill.licence_problems(cleaned) == []
    shuffled = raw_bill()
    shuffled["components"].reverse()
    assert json.dumps(bill.clean_bill(shuffled, NEEDS, "0" * 64)) == json.dumps(cleaned)


def test_a_bill_with_a_place_or_without_a_package_is_refused():
    cleaned = bill.clean_bill(raw_bill(), NEEDS, "0" * 64)
    assert bill.bill_problems(cleaned, {"numba"}) == ["numba is not in it"]
    for place in ("https://packages.example/simple", "file:///x", "/home/somebody/x.whl", "C:\\Users\\x"):
        cleaned["components"][0]["description"] = place
        assert len(bill.bill_problems(cleaned, set())) >= 1, place


@pytest.mark.parametrize(
    ("licences", "word"),
    [
        (None, "numpy declares no licence"),
        ([{"license": {"name": "ask the author"}}], "numpy declares no licence"),
        ([{"license": {"id": "GPL-3.0-only"}}], "numpy is under GPL-3.0-only"),
        ([{"expression": "MIT AND LGPL-3.0-or-later"}], "numpy is under"),
        ([{"license": {"id": "MIT"}}, {"license": {"id": "AGPL-3.0-only"}}], "numpy is under"),
    ],
)
def test_a_licence_that_is_missing_or_not_compatible_is_refused(licences, word):
    raw = raw_bill()
    (numpy,) = [component for component in raw["components"] if component["name"] == "numpy"]
    numpy["licenses"] = licences
    if licences is None:
        del numpy["licenses"]
    (problem,) = bill.licence_problems(bill.clean_bill(raw, NEEDS, "0" * 64))
    assert problem.startswith(word)


@pytest.mark.parametrize(
    ("expression", "compatible"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("GPL-3.0-only AND MIT OR BSD-3-Clause", True),
        ("GPL-3.0-only AND (MIT OR BSD-3-Clause)", False),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("(MIT OR GPL-2.0-only) AND GPL-2.0-only", False),
        ("no licence", False),
    ],
)
def test_expressions_of_licences_are_read(expression, compatible):
    assert bill.is_compatible(expression) is compatible


# ------------------------------------------------------------------ the screen


def passes(release):
    return "as it should be"


def fails(release):
    raise CheckError("something is wrong")


def breaks(release):
    raise KeyError("numpy")


@pytest.mark.parametrize(
    ("checks", "failed", "shown"),
    [
        ([Check("a", passes), Check("b", passes, ("a",))], 0, ["passed a", "passed b", "as it should be"]),
        ([Check("a", fails), Check("b", passes)], 1, ["FAILED a", "something is wrong", "passed b"]),
        ([Check("a", breaks), Check("b", passes)], 1, ["FAILED a", "KeyError: 'numpy'", "passed b"]),
        ([Check("a", fails), Check("b", passes, ("a",))], 2, ["FAILED b", "not run: it needs a"]),
    ],
)
def test_every_check_has_a_line_and_failures_are_counted(checks, failed, shown):
    console = Console(record=True, width=200, file=io.StringIO())
    assert release_check.run_checks(tuple(checks), Release(ROOT), console) == failed
    text = console.export_text()
    assert all(part in text for part in shown)
    assert len(text.strip().splitlines()) == len(checks)


def test_checks_run_after_what_they_need():
    names = [check.name for check in release_check.CHECKS]
    assert all(names.index(need) < names.index(check.name) for check in release_check.CHECKS for need in check.needs)


def test_an_unknown_check_is_refused(capsys):
    assert release_check.main(["wheels"]) == 2
    assert "no check is called wheels" in capsys.readouterr().err
