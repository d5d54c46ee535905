"""Each public name has its place in the reference, and each public class a page of its own with an example."""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import taciturn

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted((DOCS / "classes").glob("*.md"))
DIRECTIVE = re.compile(r"^::: (taciturn[\w.]*)$", re.MULTILINE)

PUBLIC = {name: getattr(taciturn, name) for name in taciturn.__all__ if name != "__version__"}
CLASSES = {
    name: each for name, each in PUBLIC.items() if inspect.isclass(each) and not issubclass(each, (Exception, Warning))
}


def named_by(text):
    """The last parts of the names that a page shows."""
    return [name.rpartition(".")[2] for name in DIRECTIVE.findall(text)]


def in_nav(entry):
    """The files that a part of the nav names."""
    if isinstance(entry, str):
        return {entry}
    return {path for part in (entry.values() if isinstance(entry, dict) else entry) for path in in_nav(part)}


def has_example(name, text):
    """Whether a page shows an example in a docstring, or a picture."""
    module, _, last = next(path for path in DIRECTIVE.findall(text) if path.endswith(f".{name}")).rpartition(".")
    docstring = getattr(importlib.import_module(module), last).__doc__
    return (
        ">>> " in docstring
        or "![" in text
        or any(">>> " in (PUBLIC[each].__doc__ or "") for each in named_by(text)[1:])
    )


def test_each_public_class_has_a_page():
    assert len(CLASSES) > 20
    assert set(CLASSES) <= {path.stem for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_of_a_class_shows_it_with_an_example(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"---\ntitle: {path.stem}\n---\n")
    assert named_by(text)[0] == path.stem
    assert has_example(path.stem, text)
    assert f"classes/{path.name}" in in_nav(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])


def test_each_public_name_is_shown_once():
    shown = [name for path in DOCS.rglob("*.md") for name in named_by(path.read_text(encoding="utf-8"))]
    assert {name: shown.count(name) for name in PUBLIC} == dict.fromkeys(PUBLIC, 1)
