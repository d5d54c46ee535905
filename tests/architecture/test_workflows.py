"""What runs elsewhere is what runs in a clone: workflows, hooks and CI call make targets, on what the project names."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

import taciturn

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SYSTEMS = {"ubuntu-latest", "macos-latest", "windows-latest"}
PYTHONS = {"3.11", "3.12", "3.13", "3.14"}


def read(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def jobs():
    return {name: (path, job) for path in WORKFLOWS for name, job in read(path)["jobs"].items()}


def targets():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def trigger(path):
    # YAML 1.1 reads the key "on" as a truth value.
    return read(path)[True]


def test_every_command_is_a_make_target():
    for name, (path, job) in jobs().items():
        # One, and no more: a clone runs the same by its name.
        (command,) = commands(job)
        assert re.fullmatch(r"make [a-z-]+", command), (path, name)
        assert command.removeprefix("make ") in targets()
        assert read(path)["defaults"]["run"]["shell"] == "bash"
        assert read(path)["permissions"] == {"contents": "read"}
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert [each.split("@")[0] for each in uses] == ["actions/checkout", "actions/setup-python"]


def test_everything_runs_somewhere():
    ran = {command for _, job in jobs().values() for command in commands(job)}
    tests = {"test", "test-newest", "test-oldest", "test-slow"}
    assert ran == {f"make {target}" for target in tests | {"lint", "docs", "wheel", "release-check"}}
    (ci,) = re.findall(r"^exec (make .*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(ci.split()[1:]) <= targets()
    # Two cores have ten minutes: the pages' examples run in make docs, README's is a test.
    assert {"lint", "test", "site"} <= set(ci.split())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^docs: examples lessons site ", makefile, re.MULTILINE)


def test_tests_run_on_every_python_and_system_with_oldest_and_newest_packages():
    found = jobs()
    matrix = found["test"][1]["strategy"]["matrix"]
    assert set(matrix) == {"os", "python"}
    assert (set(matrix["os"]), set(matrix["python"])) == (SYSTEMS, PYTHONS)
    assert set(found["test-oldest"][1]["strategy"]["matrix"]["os"]) == SYSTEMS
    assert found["test-oldest"][1]["steps"][1]["with"] == {"python-version": min(PYTHONS)}
    for name in ("test", "test-oldest", "wheel"):
        assert found[name][1]["runs-on"] == "${{ matrix.os }}"
        assert found[name][1]["strategy"]["fail-fast"] is False
    for name in ("test", "wheel"):
        assert found[name][1]["steps"][1]["with"] == {"python-version": "${{ matrix.python }}"}
    # The versions that the package claims to support, and no others.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: "
    claimed = {each.removeprefix(prefix) for each in project["classifiers"] if re.fullmatch(rf"{prefix}3\.\d+", each)}
    assert claimed == PYTHONS
    assert project["requires-python"] == f">={min(PYTHONS)}"


def test_checks_run_on_every_change_and_slow_tests_every_night():
    found = jobs()
    assert found["test-slow"][0].name == "nightly.yml"
    (entry,) = trigger(found["test-slow"][0])["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* \*", entry["cron"])
    assert found["test-newest"][0] == found["test-slow"][0]
    for name in set(found) - {"test-slow", "test-newest", "release-check"}:
        assert set(trigger(found[name][0])) == {"push", "pull_request"}


def test_releases_are_checked_where_a_commit_is_tagged():
    path = jobs()["release-check"][0]
    tags = trigger(path)["push"]["tags"]
    assert any(fnmatch(taciturn.__version__, tag) for tag in tags)
    assert any(fnmatch(f"v{taciturn.__version__}", tag) for tag in tags)
    assert not any(fnmatch("nightly", tag) for tag in tags)


def check_schema(name, *paths):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_workflows_follow_their_schema(tmp_path):
    done = check_schema("github-workflows", *WORKFLOWS)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on:", "run-on:"), encoding="utf-8")
    assert check_schema("github-workflows", broken).returncode == 1


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("cff-version: 1.2.0", "cff-version: 1.3.0"),
        ("date-released: 2026-11-18", "date-released: 18 November"),
        ("type: conference-paper", "type: talk"),
        ("family-names: Wang", "surname: Wang"),
    ],
)
def test_the_citation_follows_its_schema(tmp_path, line, broken):
    done = check_schema("citation-file-format", ROOT / "CITATION.cff")
    assert done.returncode == 0, done.stdout
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert line in text
    wrong = tmp_path / "CITATION.cff"
    wrong.write_text(text.replace(line, broken), encoding="utf-8")
    assert check_schema("citation-file-format", wrong).returncode == 1


def test_the_citation_is_complete():
    citation = read("CITATION.cff")
    preferred = citation["preferred-citation"]
    assert all(citation[key] == value for key, value in preferred.items())
    assert {"title", "authors", "version", "date-released", "license"} <= set(preferred)
    assert citation["authors"] == [{"name": "The taciturn maintainers"}]
    assert citation["abstract"]
    assert len(citation["references"]) == 5
    # Identifiers of persons that a paper prints; the project has no address.
    addresses = re.findall(r"https?://\S+", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert all(address.startswith("https://orcid.org/") for address in addresses)


def test_the_page_of_releases_names_targets_that_exist():
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    named = {target for line in re.findall(r"`make ([a-z -]+)`", page) for target in line.split()}
    assert {"lint", "test", "test-slow", "test-oldest", "lock", "wheel", "sbom", "release-check"} <= named <= targets()


def test_the_hook_is_make_lint():
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["entry"], hook["pass_filenames"]) == ("local", "make lint", False)
    assert re.search(hook["files"], "src/taciturn/losses.py")
    assert re.search(hook["files"], "pyproject.toml")


def test_virtual_environments_are_found_on_every_system():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "SCRIPTS := Scripts" in makefile
    assert "SCRIPTS := bin" in makefile
    assert "/bin/" not in makefile


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_are_complete(path):
    form = read(path)
    if path.stem == "config":
        assert form == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "labels", "body"} == set(form)
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert asked
    assert len({part["id"] for part in asked}) == len(asked)
    assert all(part["attributes"]["label"] for part in asked)


def test_forms_send_wrong_guarantees_to_a_private_report():
    for name in ("ISSUE_TEMPLATE/bug.yml", "ISSUE_TEMPLATE/wrong-number.yml", "PULL_REQUEST_TEMPLATE.md"):
        text = (ROOT / ".github" / name).read_text(encoding="utf-8")
        assert "SECURITY.md" in text
        assert "privately" in text
    assert "## Reporting" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
