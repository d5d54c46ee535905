"""Pictures of pages can be read in the light and in the dark scheme, and no text leaves them."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from taciturn.charts import text_width

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = sorted(DOCS.rglob("*.svg"))
DRAWN = '<svg xmlns="http://www.w3.org/2000/svg">{}</svg>'
BACKGROUND = '<path d="M0 0h9v9z" style="fill: #ffffff"/>'


@pytest.fixture(scope="module")
def in_page():
    return script("in_page")


def script(name):
    """A script of the pages as a module."""
    sys.path.insert(0, str(DOCS / "tables"))
    try:
        spec = importlib.util.spec_from_file_location(name, DOCS / "tables" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(DOCS / "tables"))


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_each_picture_has_colours_for_both_schemes_and_no_background(path):
    drawn = path.read_text(encoding="utf-8")
    ElementTree.fromstring(drawn)
    assert "@media" in drawn
    assert "prefers-color-scheme" in drawn
    assert not re.search(r'<rect[^>]* fill="(white|#fff|#ffffff|#fcfcfa)"', drawn)
    assert 'style="fill: #ffffff"/>' not in drawn or '[style="fill: #ffffff"]{fill:none!important}</style>' in drawn


def test_a_picture_gets_a_dark_scheme_once(in_page):
    drawn = DRAWN.format(f'{BACKGROUND}<path stroke="#222" style="fill: #00695c"/>')
    both = in_page.in_both_schemes(drawn)
    assert in_page.in_both_schemes(both) == both
    style = ElementTree.fromstring(both)[0].text
    assert f'[stroke="#222"],[style*="stroke: #222"]{{stroke:{in_page.on_dark("#222")}!important}}' in style
    assert f"{{fill:{in_page.on_dark('#00695c')}!important}}" in style
    # Behind the other rules, so that a white background goes in the dark scheme too.
    assert style.endswith('[style="fill: #ffffff"]{fill:none!important}')
    assert both.endswith(drawn.partition(">")[2])


@pytest.mark.parametrize(
    "colour", ["#000000", "#222", "#00695c", "#b3261e", "#0072b2", "#d55e00", "#757575", "#2166ac"]
)
def test_what_can_be_read_on_white_can_be_read_on_the_dark_background(in_page, colour):
    assert in_page.contrast("#000000", "#ffffff") == pytest.approx(21.0)
    asked = min(4.5, in_page.contrast(colour, "#ffffff"))
    assert in_page.contrast(in_page.on_dark(colour), in_page.DARK) >= asked


def test_grey_lines_stay_pale_and_other_colours_keep_their_hue(in_page):
    assert in_page.contrast(in_page.on_dark("#cccccc"), in_page.DARK) < 2.0
    assert in_page.on_dark("#f2c14e")[:5] == "#f2c1"
    red, green, blue = (int(in_page.on_dark("#00695c")[place : place + 2], 16) for place in (1, 3, 5))
    assert red < blue < green


def test_colours_of_diagrams_can_be_read_in_both_schemes(in_page):
    style = script("diagrams").STYLE
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in style.split("@media")]
    assert set(schemes[0]) == set(schemes[1]) >= {"ink", "pale", "main", "other"}
    for colours, background in zip(schemes, ("#ffffff", in_page.DARK), strict=True):
        for name in ("ink", "pale", "main", "other"):
            assert in_page.contrast(colours[name], background) >= 4.5, (name, background)


DIAGRAMS = [path for path in PICTURES if ".strong { font-weight: 600; }" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.name)
def test_no_text_of_a_diagram_leaves_it(path):
    assert len(DIAGRAMS) >= 5
    tree = ElementTree.parse(path).getroot()
    _, _, width, height = map(float, tree.get("viewBox").split())
    for line in tree.iter("{http://www.w3.org/2000/svg}text"):
        classes = (line.get("class") or "").split()
        size = 12.0 if "small" in classes else 14.0
        long = text_width(line.text, size)
        x = float(line.get("x")) - long * (0.5 if "middle" in classes else 1.0 if "end" in classes else 0.0)
        assert x >= 0.0, line.text
        assert x + long <= width, line.text
        assert size <= float(line.get("y")) <= height, line.text
