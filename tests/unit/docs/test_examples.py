"""The script that runs the examples of the pages rejects a page that does not show what its examples do."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "docs" / "tables" / "examples.py"

sys.path.insert(0, str(SCRIPT.parent))  # where it finds the script that it imports
spec = importlib.util.spec_from_file_location("examples", SCRIPT)
examples = importlib.util.module_from_spec(spec)
sys.modules["examples"] = examples  # dataclasses look their module up
spec.loader.exec_module(examples)
sys.path.remove(str(SCRIPT.parent))

SESSION = "<!-- examples: one session -->\n\n"
VARY = "<!-- numbers vary -->\n\n"
DRAW = 'from pathlib import Path\nPath("drawn.svg").write_text("<svg></svg>")'


def python(code, output=None):
    """A block, and what the page says that it prints."""
    return f"```python\n{code}\n```\n\n" + (f"```text\n{output}\n```\n\n" if output is not None else "")


def console(screen):
    return f"```console\n{screen}\n```\n\n"


def picture(name):
    return f"![What is to be seen](pictures/{name})\n"


def check(tmp_path, monkeypatch, text, *arguments):
    """The exit code for a single page with this text, and the text afterwards."""
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setattr(examples, "PAGES", [page])
    return examples.main(list(arguments)), page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        python("print(1)", "1"),
        python("x = 1"),
        python("def f(x: int): ...\n\n\nprint(f.__annotations__)", "{'x': <class 'int'>}"),
        SESSION + python("x = 1") + python("print(x + 1)", "2"),
        SESSION + console("$ echo one\none\n$ echo two\ntwo"),
        SESSION + console("$ echo one \\\n    two\none two"),
        SESSION + console('$ false || echo "exit code $?"\nexit code 1'),
        SESSION + '```toml title="facts.toml"\na = 1\n```\n\n' + console("$ cat facts.toml\na = 1"),
        SESSION + python(DRAW) + picture("drawn.svg"),
        SESSION + picture("screen.png"),  # a screenshot, which a script of its own makes
        SESSION + VARY + python("print('AUC 0.75, p <0.001')", "AUC 0.81, p 0.2"),
        SESSION + VARY + console("$ echo '│ age  │ -1.5 │'\n│ age │ +12.25 │"),
        SESSION + VARY + console("$ echo entry 0123456789ab...\nentry fedcba987654..."),
        "```console\n$ no lesson, so that this is not run\n```\n",
    ],
)
def test_a_page_that_shows_what_happens_is_accepted(tmp_path, monkeypatch, text):
    assert check(tmp_path, monkeypatch, text) == (0, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (python("print(1)", "2"), "print(1)"),
        (python("print(1)"), "print(1)"),
        (python("x = 1", "1"), "x = 1"),
        (python("raise ValueError('no')"), "failed: ValueError: no"),
        (python("x = 1") + python("print(x)", "1"), "failed: NameError"),
        (python("import warnings; warnings.warn('old')"), "failed: UserWarning"),
        (SESSION + console("$ echo one\ntwo"), "echo one"),
        (SESSION + console("$ false"), "exit code 1"),
        (SESSION + console("$ no-such-command"), "exit code 127"),
        (SESSION + VARY + python("print('AUC 0.75')", "accuracy 0.75"), "AUC"),
        (SESSION + VARY + console("$ echo not proved\nproved"), "not proved"),
        (SESSION + python("x = 1") + picture("drawn.svg"), "no example makes drawn.svg"),
        (SESSION + python(DRAW) + picture("drawn.svg") + picture("other.svg"), "no example makes other.svg"),
    ],
)
def test_a_page_that_shows_something_else_is_rejected(tmp_path, monkeypatch, capfd, text, problem):
    assert check(tmp_path, monkeypatch, text)[0] == 1
    assert problem in capfd.readouterr().err


def test_writing_puts_outputs_and_pictures_where_they_belong(tmp_path, monkeypatch):
    draw = python(DRAW) + picture("drawn.svg")
    old = SESSION + python("print(2)", "1") + VARY + console("$ echo 5\n4") + draw
    new = SESSION + python("print(2)", "2") + VARY + console("$ echo 5\n5") + draw
    assert check(tmp_path, monkeypatch, old, "--write") == (0, new)
    drawn = (tmp_path / "pictures" / "drawn.svg").read_text()
    assert drawn == examples.in_both_schemes("<svg></svg>") != "<svg></svg>"


def test_a_page_with_an_example_that_fails_is_not_written(tmp_path, monkeypatch):
    text = python("print(2)", "1") + python("raise ValueError")
    assert check(tmp_path, monkeypatch, text, "--write") == (1, text)


def test_pages_are_chosen_by_name(tmp_path, monkeypatch):
    assert check(tmp_path, monkeypatch, python("print(1)", "2"), "page.md")[0] == 1
    assert check(tmp_path, monkeypatch, python("print(1)", "2"), "no-such-page.md")[0] == 2
