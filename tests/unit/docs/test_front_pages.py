"""README and the first page of the site open alike, pages install from a clone, README's figures are stored ones."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
FIRST_PAGE = ROOT / "docs" / "index.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]

SNIPPET = re.compile(r'^--8<-- "README\.md:([\w-]+)"\n', re.MULTILINE)
MARK = re.compile(r"^<!-- --8<-- \[\w+:[\w-]+\] -->\n\n?", re.MULTILINE)
AFTER_THE_CARDS = r"</div>\n"


def snippet(readme, name):
    return readme.partition(f"<!-- --8<-- [start:{name}] -->\n")[2].partition(f"<!-- --8<-- [end:{name}] -->\n")[0]


def first_screen(text):
    """Everything up to the cards, without what the two have to write differently: paths, and how a button is marked."""
    screen = re.split(AFTER_THE_CARDS, text, maxsplit=1)[0]
    screen = MARK.sub("", screen).replace("](docs/", "](")
    screen = re.sub(r"^\*\*(\[.*\]\(.*\))\*\*$", r"\1", screen, flags=re.MULTILINE)
    screen = re.sub(r"(?<=\))\{ \.md-button [^}]*\}$", "", screen, flags=re.MULTILINE)
    return [line for line in screen.splitlines() if line]


def both_screens(readme, page):
    return first_screen(readme), first_screen(SNIPPET.sub(lambda match: snippet(readme, match[1]), page))


def test_readme_and_the_first_page_have_one_first_screen():
    readme, page = both_screens(README.read_text(encoding="utf-8"), FIRST_PAGE.read_text(encoding="utf-8"))
    assert readme == page
    text = "\n".join(readme)
    assert text.count("[Start here: first steps, 10 minutes](start.md)") == 1
    assert text.count("![") == 1
    assert text.count("```python") == 1
    assert [line for line in readme if line.startswith("- **")] == [
        "- **Analyst: I have a table and must publish**",
        "- **Reviewer: I must judge a result**",
        "- **Researcher: I compare or extend methods**",
    ]


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("I must judge a result", "I audit a result"),
        ("](certificates.md#verifying-a-folder)", "](certificates.md)"),
        ("first steps, 10 minutes", "first steps"),
        ('--8<-- "README.md:about"\n', ""),
        ("pictures/forest.svg", "pictures/text.svg"),
    ],
)
def test_another_first_screen_is_noticed(here, there):
    page = FIRST_PAGE.read_text(encoding="utf-8")
    assert here in page
    readme, changed = both_screens(README.read_text(encoding="utf-8"), page.replace(here, there))
    assert readme != changed


def installs(text):
    """What pages tell readers to install with pip."""
    return re.findall(r"pip install\s+((?:'[^']*'|[^`\s])+)", text)


def test_pages_install_from_a_clone():
    found = {page.name: installs(page.read_text(encoding="utf-8")) for page in PAGES}
    wrong = {name: what for name, named in found.items() for what in named if not re.fullmatch(r"'\.\[[\w,]+\]'", what)}
    assert wrong == {}
    assert {"README.md", "start.md", "hospital.md"} <= {name for name, named in found.items() if named}
    assert installs("run `pip install taciturn`, or pip install 'taciturn[cli]' matplotlib") == [
        "taciturn",
        "'taciturn[cli]'",
    ]


@pytest.fixture
def intervals(monkeypatch):
    """The script of README's table of intervals."""
    script = ROOT / "docs" / "tables" / "intervals.py"
    monkeypatch.syspath_prepend(str(script.parent))
    spec = importlib.util.spec_from_file_location("intervals", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(intervals, folder, monkeypatch, text):
    page = folder / "README.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys.modules["in_page"], "PAGES", folder / "docs")
    (folder / "docs").mkdir(exist_ok=True)
    return intervals.run(["--check"], "intervals", "../README.md", intervals.table)


def test_readme_has_the_stored_coverage_and_another_one_is_rejected(intervals, tmp_path, monkeypatch):
    text = README.read_text(encoding="utf-8")
    assert check(intervals, tmp_path, monkeypatch, text) == 0
    (row,) = re.findall(r"^\| both, on samples of real tables .*$", text, re.MULTILINE)
    flattering = re.sub(r"\(0\.\d{3} to", "(0.950 to", row, count=1)
    assert flattering != row
    assert check(intervals, tmp_path, monkeypatch, text.replace(row, flattering)) == 1


def test_averages_are_those_of_the_cells(intervals):
    page = "# One\n\nwords\n\n| task | width |\n| --- | --- |\n| a | 1.00 |\n| b | 1.30 |\n\n| task |\n| --- |\n| c |\n"
    rows = list(intervals.rows_of(page, "# One"))
    assert rows == [{"task": "a", "width": "1.00"}, {"task": "b", "width": "1.30"}]
    assert intervals.spread([row["width"] for row in rows]) == "1.15 (1.00 to 1.30)"
    assert intervals.spread(["90%", "", "100%"]) == "95% (90% to 100%)"
    assert intervals.spread(["", ""]) == ""
