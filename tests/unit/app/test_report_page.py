"""The kit of pages: structure, escaping, colours, print."""

import base64
import re

import pytest
from reported import EVIL, PNG, QUOTED, REPORTS, Tree, faults_of, kitchen_sink, regression

from taciturn.app.report.model import model_report
from taciturn.app.report.page import Page
from taciturn.core.errors import ParameterError


@pytest.mark.parametrize("name", REPORTS)
def test_pages_are_well_formed_accessible_and_load_nothing(name):
    assert faults_of(REPORTS[name]()) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('alt="A picture', 'title="A picture', "an image without alt"),
        (' id="drawing-1-desc"', "", "a label that does not exist"),
        (' role="img"', "", "a drawing without a role"),
        ("<figcaption>", "<figcaption hidden></figcaption><p>", "</figcaption> closes <p>"),
        ("<caption>Folded</caption>", "", "a table without caption"),
        (' scope="col"', "", "a heading cell without scope"),
        ("<h3 ", "<h5 ", "</h3> closes <h5>"),
        ("</h1>", "</h1><h1>again</h1>", "not one <h1>"),
        ('id="section-second-2"', 'id="section-second"', "an id twice"),
        ('href="#section-sixth"', 'href="#section-seventh"', "a link to nowhere"),
        ("<footer>", '<img alt="x" src="https://example.org/x.png"><footer>', "a source from elsewhere"),
        ("<footer>", '<link rel="stylesheet" href="#content"><footer>', "<link> can load something"),
        ("<footer>", "<script>alert(1)</script><footer>", "not one script"),
        ("<footer>", '<p onclick="x()">x</p><footer>', "an inline handler"),
        ("</script>", "//</script>", "a script that may not run"),
        ("default-src 'none'", "default-src *", "no policy against loading"),
        ("* { box-sizing", "@import url(//x); * { box-sizing", "a style that loads something"),
        ('lang="en"', "", "no language"),
        ("<td", "<td></td><td", "a ragged table"),
    ],
)
def test_broken_pages_are_caught(old, new, fault):
    page = kitchen_sink()
    assert old in page
    assert fault in faults_of(page.replace(old, new, 1))


def test_a_gap_between_headings_is_caught():
    page = kitchen_sink()
    assert "a gap between headings" in faults_of(re.sub(r"<(/?)h3", r"<\1h4", page))


# ------------------------------------------------------------------ escaping


@pytest.mark.parametrize("name", ["regression", "multi-class", "kit"])
def test_text_of_users_stays_text(name):
    page = REPORTS[name]()
    tree = Tree(page)
    assert len(tree.root.find("script")) == 1
    assert EVIL in tree.root.find("main")[0].words()
    assert "<script>alert" not in page
    # Were it markup, it would be seen.
    unescaped = page.replace("&lt;script&gt;", "<script>").replace("&lt;/script&gt;", "</script>")
    assert "not one script" in faults_of(unescaped)


def test_quotes_stay_inside_attributes_and_titles():
    root = Tree(model_report(regression())).root
    assert root.find("h1")[0].words() == root.find("title")[0].words() == f"Model of “{QUOTED}” (regression)"
    assert f"Weights of {QUOTED}" in [region.attributes.get("aria-label") for region in root.find("div")]


def test_characters_that_files_cannot_carry_are_shown_as_escapes():
    page = Page("half \ud800 null \x00 bell \x07 line\nend")
    text = page.render()
    assert text.encode("utf-8")
    assert "half \\ud800 null \\u0000 bell \\u0007 line\nend" in text


# ------------------------------------------------------------------ the kit


def test_contents_appear_with_the_sixth_section():
    page = Page("x")
    for number_of_sections in range(1, 7):
        page.section(f"Section {number_of_sections}")
        assert ("<nav" in page.render()) is (number_of_sections > 5)
    (nav,) = Tree(page.render()).root.find("nav")
    assert [link.words() for link in nav.find("a")] == [f"Section {i}" for i in range(1, 7)]


def test_what_would_break_a_page_is_refused():
    page = Page("x")
    with pytest.raises(ParameterError, match="level=3: expected an integer from 2 to 2"):
        page.section("too deep", level=3)
    page.section("fine")
    page.section("fine", level=3)
    with pytest.raises(ParameterError, match="level=1"):
        page.section("a second title", level=1)
    with pytest.raises(ParameterError, match=r"len\(row\)=1: expected 2"):
        page.table(["a", "b"], [["1", "2"], ["SECRET"]], "Caption")
    with pytest.raises(ParameterError, match="alt=' '"):
        page.figure(PNG, " ", "Caption")
    with pytest.raises(ParameterError, match="image='4 bytes': expected the content of a PNG or SVG file"):
        page.figure(b"GIF8", "An image", "Caption")
    assert faults_of(page.render()) == []


def test_an_image_is_embedded_as_it_is():
    page = Page("x")
    page.figure(PNG, "An image", "Caption")
    (image,) = Tree(page.render()).root.find("img")
    kind, _, content = image.attributes["src"].partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(content) == PNG


# ------------------------------------------------------------------ colours and print

PAIRS = [("ink", "paper"), ("ink", "panel"), ("muted", "paper"), ("muted", "panel"), ("link", "paper")]
PAIRS += [("link", "panel"), ("alarm", "alarm-panel"), ("plus", "paper"), ("minus", "paper"), ("ink", "region")]


def palettes():
    (style,) = Tree(Page("x").render()).root.find("style")
    blocks = re.findall(r":root \{(.*?)\}", style.text, re.S)
    assert len(blocks) == 3
    return dict(
        zip(("light", "dark", "print"), (dict(re.findall(r"--([\w-]+): (#\w{6});", b)) for b in blocks), strict=True)
    )


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_measured_as_the_guidelines_do():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("mode", ["light", "dark", "print"])
def test_text_and_bars_stand_out(mode):
    colours = palettes()[mode]
    assert {
        name: contrast(colours[name], colours[on]) for name, on in PAIRS if contrast(colours[name], colours[on]) < 4.5
    } == {}
    assert colours["plus"] != colours["minus"]


def test_print_is_black_on_white_without_buttons_and_keeps_figures_whole():
    (style,) = Tree(Page("x").render()).root.find("style")
    printed = style.text[style.text.index("@media print") :]
    assert palettes()["print"]["ink"] == "#000000"
    assert palettes()["print"]["paper"] == "#ffffff"
    hidden, beside_the_sheet = re.findall(r"([^{}]*)\{ display: none; \}", printed)
    assert {part.strip() for part in hidden.split(",")} >= {".copy", ".sort", ".skip", "nav"}
    assert beside_the_sheet.strip() == "#print-whole:not(:checked) ~ :not(.sheet)"
    (whole,) = re.findall(r"([^{}]*)\{ break-inside: avoid; \}", printed)
    assert {part.strip() for part in whole.split(",")} >= {"figure", "tr"}
    assert "prefers-reduced-motion" in style.text
