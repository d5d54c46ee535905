"""The site builds strictly, and its search finds pages by the words of the field."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def search():
    """The check of the search as a module."""
    pytest.importorskip("playwright", reason="its Node.js runs the search")
    spec = importlib.util.spec_from_file_location("check_search", ROOT / "docs" / "checks" / "search.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as make site builds it, elsewhere."""
    for package in ("zensical", "latex2mathml", "pymdownx", "mkdocstrings"):
        pytest.importorskip(package, reason="pages need taciturn[docs]")
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [ROOT / "zensical.toml", *ROOT.glob("*.md")]:
        shutil.copy(path, folder)
    (folder / "src").symlink_to(ROOT / "src", target_is_directory=True)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


def test_each_query_of_the_field_finds_its_page(search, site):
    assert len(search.QUERIES) >= 20
    assert search.problems_of(site, search.QUERIES) == []


@pytest.mark.parametrize(
    ("query", "page", "told"),
    [("zygote", "engines", "nothing"), ("Spark", "index", "engines.html"), ("Spark", "no-page", "engines.html")],
)
def test_a_query_that_misses_its_page_is_told(search, site, query, page, told):
    (problem,) = search.problems_of(site, {query: (page,)})
    assert problem.startswith(f"{query!r} does not find {page}, but ")
    assert told in problem


def test_only_the_first_hits_count(search, site):
    (hits,) = search.hits_of(site, ["epsilon"])
    pages = list(dict.fromkeys(hit.partition("#")[0].removesuffix(".html") for hit in hits))
    first = {hit.partition("#")[0].removesuffix(".html") for hit in hits[: search.FIRST]}
    later = [page for page in pages if page not in first]
    assert search.problems_of(site, {"epsilon": tuple(first)}) == []
    assert len(search.problems_of(site, {"epsilon": (later[0],)})) == 1
