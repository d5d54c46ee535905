"""What runs elsewhere is what runs in a clone: workflows, hooks and CI call make targets, on what the project names."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import taciturn

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SYSTEMS = {"ubuntu-latest", "macos-latest", "windows-latest"}
PYTHONS = {"3.11", "3.12", "3.13"}


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
    assert ran == {f"make {target}" for target in ("lint", "test", "test-oldest", "test-slow", "docs", "wheel")}
    (ci,) = re.findall(r"^exec (make .*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(ci.split()[1:]) <= targets()
    assert {"lint", "test", "examples"} <= set(ci.split())


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
    for name in set(found) - {"test-slow"}:
        assert set(trigger(found[name][0])) == {"push", "pull_request"}


def test_a_release_has_one_number():
    citation = read("CITATION.cff")
    assert citation["version"] == taciturn.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## (\d+\.\d+\.\d+)$", changelog, re.MULTILINE)
    assert released[0] == taciturn.__version__


def test_the_page_of_releases_names_targets_that_exist():
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    named = {target for line in re.findall(r"`make ([a-z -]+)`", page) for target in line.split()}
    assert {"lint", "test", "test-slow", "test-oldest", "docs", "wheel"} <= named <= targets()


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
