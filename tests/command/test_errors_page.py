"""The page of mistakes: every message names the place, the expectation and the remedy, and none quotes a cell."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MESSAGE = re.compile(r"taciturn: (?P<place>[^:]+(?:: )?[^:]*?): expected (?P<expectation>.+?); (?P<remedy>.+)\.")
IMPERATIVES = (
    "add", "ask", "change", "check", "choose", "close", "correct", "did you mean", "describe", "exchange", "fill",
    "give", "leave", "list", "mend", "name", "pass", "put", "rename", "run", "save", "say", "set", "state", "take",
    "unpack", "write",
)  # fmt: skip


@pytest.fixture(scope="module")
def script():
    """The script that makes the page."""
    sys.path.insert(0, str(DOCS / "tables"))
    try:
        spec = importlib.util.spec_from_file_location("errors_page", DOCS / "tables" / "errors.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules["errors_page"] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS / "tables"))
    return module


def check_message(line, marks):
    """One sentence with its three parts, and no cell."""
    found = MESSAGE.fullmatch(line)
    assert found, line
    assert found["remedy"].startswith(IMPERATIVES), found["remedy"]
    assert not any(mark in line for mark in marks), line


def test_every_message_has_its_three_parts_and_no_cell(script):
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^### (.+)\n\n```text\n(?:\$ taciturn (.+)\n)?((?:(?:taciturn: |  ).+\n)+)```$", page, re.MULTILINE
    )
    assert len(blocks) >= 40
    stated = [mistake for part in script.MISTAKES.values() for mistake in part]
    commands = {each.title: "" if script.USUAL.fullmatch(each.command) else each.command for each in stated}
    assert {title: command for titles, command, _ in blocks for title in titles.split("; ")} == commands
    assert len(commands) == len(stated)
    for _, _, said in blocks:
        for line in said.replace("\n  ", " ").splitlines():
            check_message(line, script.MARKS)
    # The mark of a cell stands in every table that is read for its cells.
    cells = [each for each in script.MISTAKES["Cells and missing values"] if "patients.csv" in each.files]
    assert all(any(mark in each.files["patients.csv"] for mark in script.MARKS) for each in cells)


@pytest.mark.parametrize(
    "line",
    [
        "taciturn: column \"age\": expected numbers, got ZEBRA; correct it.",
        "taciturn: column \"age\": expected numbers.",
        "taciturn: expected numbers; correct it.",
        "taciturn: column \"age\": got something else; correct it.",
        "taciturn: column \"age\": expected numbers; it is wrong.",
        "taciturn: column \"age\": expected numbers; correct it",
    ],
)  # fmt: skip
def test_a_message_without_one_of_them_is_found(script, line):
    check_message('taciturn: column "age": expected numbers; correct it.', script.MARKS)
    with pytest.raises(AssertionError):
        check_message(line, script.MARKS)


@pytest.mark.slow
def test_the_page_is_what_the_script_makes(script):
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    made = script.page()
    assert made in page
    assert not any(mark in made for mark in script.MARKS)
