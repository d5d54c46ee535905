import base64
import hashlib
import itertools
import json
import math
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from taciturn import Budget, Certificate, FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.certificate import Release, certify, compose
from taciturn.core.errors import ParameterError
from taciturn.events import NotPrivateEvent, PureEvent
from taciturn.modelfile import Model
from taciturn.report import Page, model_report
from taciturn.report.charts import WHISKER, Bar, coefficient_chart, odds_chart, reach_of, shortened
from taciturn.report.formats import number, percent, rounded
from taciturn.report.odds import highest_power, posterior_range
from taciturn.tables import TableBounds, TableSchema

EVIL = '<script>alert(1)</script>&"'
QUOTED = "blood \"pressure\" 'systolic'"
PNG = b"\x89PNG\r\n\x1a\n" + b"not read any further"


# ------------------------------------------------------------------ models to report on


class Fitted:
    """Holds what a report may read, and nothing else: another attribute is an error."""

    __slots__ = ("classes_", "coef_", "coef_std_", "intercept_")

    def __init__(self, **attributes):
        for name, value in attributes.items():
            setattr(self, name, value)


def certificate_of_fit(epsilon=1.0, *, seeded=False, **changes):
    releases = (
        Release("the mean of the target", "Laplace", 10.0, PureEvent(epsilon / 4)),
        Release("a selected feature", "Gumbel", 4.0, PureEvent(epsilon / 4), count=3),
    )
    public = {"features": 4, "records": 12345, "nested": {"a list": list(range(30))}}
    details = {"relation": "zero-out", "public": public, "assumptions": ("bounds came first",), "arithmetic": "exact"}
    return certify(releases, Budget(epsilon, 1e-6), seeded=seeded, **(details | changes))


BOUNDS = f"""
[columns.age]
type = "number"
lower = 10
upper = 110
[columns.{json.dumps(EVIL)}]
type = "number"
lower = -0.5
upper = 0.5
[columns.smoker]
type = "boolean"
[columns.region]
type = "category"
categories = ["north", "south"]
[columns.id]
type = "ignore"
[missing]
age = 50
"""


def bounds_of(name, stated):
    kinds = ("number", "number", "boolean", "category", "category", "number")
    schema = TableSchema(("age", EVIL, "smoker", "region", "id", name), kinds)
    return TableBounds.from_toml(f"[target]\nname = {json.dumps(name)}\n{stated}\n{BOUNDS}").for_table(schema)


def regression(certificate=None, **fitted):
    bounds = bounds_of(QUOTED, "lower = 0\nupper = 250")
    values = {"coef_": np.array([20.0, -8.0, 0.0, 5.0, 1e-5]), "intercept_": 120.0, "coef_std_": np.full(5, 2.0)}
    return SimpleNamespace(
        task="regress",
        bounds=bounds,
        estimator=Fitted(**(values | fitted)),
        certificate=certificate or certificate_of_fit(),
        feature_names=bounds.feature_names,
        command=f"taciturn fit table.csv --target {QUOTED!r} -o out",
    )


def classification(classes, certificate=None):
    bounds = bounds_of("y", f"classes = {json.dumps(classes)}")
    n_outputs = 1 if len(classes) == 2 else len(classes)
    coefficients = np.arange(1.0, 5 * n_outputs + 1).reshape(n_outputs, 5) * np.array([1.0, -1.0, 0.0, 0.5, -0.25])
    return SimpleNamespace(
        task="classify",
        bounds=bounds,
        estimator=Fitted(coef_=coefficients, intercept_=np.zeros(n_outputs), classes_=np.array(classes)),
        certificate=certificate or certificate_of_fit(),
        feature_names=bounds.feature_names,
        command="taciturn fit table.csv",
    )


def without_noise():
    return certify(
        [Release("everything", "none", 0.0, NotPrivateEvent())],
        Budget(math.inf, 0.0),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    )


def as_published(proved):
    content = json.loads(certificate_of_fit().to_json()) | {"status": "as published", "proved_epsilon": proved}
    return Certificate.from_json(json.dumps(content | {"errata": ["Lemma 2 is false"]}))


def kitchen_sink():
    """A page with everything that the kit has."""
    page = Page(f"Title {EVIL}")
    page.paragraph(f"Head {EVIL}")
    page.banner(f"Banner {EVIL}")
    for title in (EVIL, "Second", "Second", "%%%", "%%%", "Sixth"):
        page.section(title)
    page.section("Part", level=3)
    page.points([EVIL, "two"])
    page.facts([(EVIL, EVIL)])
    page.table([EVIL, "n"], [[EVIL, "1"], ["b", "2"]], f"Caption {EVIL}", numeric={1})
    page.table(["long"], [[str(i)] for i in range(40)], "Folded", folded=True)
    page.figure(PNG, f"A picture {EVIL}", EVIL)
    page.figure(b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "An image", "Caption")
    page.figure(odds_chart(1.0, EVIL), f"A drawing {EVIL}", EVIL)
    page.code_block(EVIL, EVIL)
    page.code_block(EVIL, EVIL, folded=True)
    page.signature(["Name"])
    return page.render()


REPORTS = {
    "regression": lambda: model_report(regression()),
    "binary": lambda: model_report(classification([False, True], certificate_of_fit(2.0, seeded=True))),
    "multi-class": lambda: model_report(classification(["low", EVIL, "high"])),
    "not private": lambda: model_report(regression(without_noise())),
    "as published": lambda: model_report(regression(as_published(3.5))),
    "empty": lambda: model_report(regression(coef_=np.zeros(5))),
    "kit": kitchen_sink,
}


# ------------------------------------------------------------------ structure

VOID = {"meta", "img", "link", "input", "base", "br", "hr"}
LOADING = {"link", "iframe", "object", "embed", "base", "form", "audio", "video", "source", "image", "use"}


class Element:
    def __init__(self, name, attributes):
        self.name, self.attributes, self.children, self.text = name, attributes, [], ""

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, *names):
        return [found for found in self.walk() if found.name in names]

    def words(self):
        return self.text + "".join(child.words() for child in self.children)


class Tree(HTMLParser):
    """The elements of a page, and what is wrong with their nesting."""

    def __init__(self, text):
        super().__init__()
        self.root = Element("root", {})
        self.open, self.faults = [self.root], []
        self.feed(text)
        self.close()
        self.faults += [f"<{element.name}> is not closed" for element in self.open[1:]]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice")
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if self.open[-1].name != tag:
            self.faults.append(f"</{tag}> closes <{self.open[-1].name}>")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.open[-1].text += data


def faults_of(text):
    """What a reader, a screen reader or a browser would stumble over."""
    tree = Tree(text)
    root, faults = tree.root, list(tree.faults)

    def expect(condition, fault):
        if not condition:
            faults.append(fault)

    expect(text.startswith("<!doctype html>"), "no doctype")
    expect(root.find("html")[0].attributes.get("lang"), "no language")
    expect(root.find("title")[0].words().strip(), "no title")
    for name in ("h1", "main", "header", "footer"):
        expect(len(root.find(name)) == 1, f"not one <{name}>")
    levels = [int(heading.name[1]) for heading in root.find("h1", "h2", "h3", "h4", "h5", "h6")]
    expect(all(b <= a + 1 for a, b in itertools.pairwise(levels)), "a gap between headings")
    expect(all(heading.words().strip() for heading in root.find("h1", "h2", "h3", "h4")), "an empty heading")
    ids = [element.attributes["id"] for element in root.walk() if "id" in element.attributes]
    expect(len(set(ids)) == len(ids), "an id twice")
    for element in root.walk():
        named = element.attributes
        expect(element.name not in LOADING, f"<{element.name}> can load something")
        expect(not any(name.startswith("on") for name in named), "an inline handler")
        source = named.get("src", "data:")
        expect(source.startswith("data:image/"[: len(source)]), "a source from elsewhere")
        expect(named.get("href", "#").startswith("#"), "a link to elsewhere")
        expect(named.get("href", "#content")[1:] in ids, "a link to nowhere")
        for label in named.get("aria-labelledby", "").split():
            expect(label in ids, "a label that does not exist")
    for image in root.find("img"):
        expect(image.attributes.get("alt", "").strip(), "an image without alt")
    for drawing in root.find("svg"):
        expect(drawing.attributes.get("role") == "img", "a drawing without a role")
        labels = drawing.attributes.get("aria-labelledby", "").split()
        texts = {e.attributes.get("id"): e.words() for e in drawing.children if e.name in ("title", "desc")}
        expect(len(labels) == 2 and all(texts.get(label, "").strip() for label in labels), "a drawing without words")
    for figure in root.find("figure"):
        expect(any(caption.words().strip() for caption in figure.find("figcaption")), "a figure without caption")
    for table in root.find("table"):
        expect(table.children[0].name == "caption" and table.children[0].words().strip(), "a table without caption")
        expect(all("scope" in heading.attributes for heading in table.find("th")), "a heading cell without scope")
        widths = {len(row.children) for row in table.find("tr")}
        expect(len(widths) == 1, "a ragged table")
    policies = [m.attributes["content"] for m in root.find("meta") if "http-equiv" in m.attributes]
    scripts = root.find("script")
    expect(len(scripts) == 1, "not one script")
    digests = [base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode() for script in scripts]
    expect(len(policies) == 1 and f"script-src 'sha256-{digests[0]}';" in policies[0], "a script that may not run")
    expect(policies and policies[0].startswith("default-src 'none';"), "no policy against loading")
    styles = "".join(style.text for style in root.find("style"))
    expect("url(" not in styles and "@import" not in styles, "a style that loads something")
    return faults


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
        ("default-src &#x27;none&#x27;", "default-src *", "no policy against loading"),
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
    assert f"Coefficients: {QUOTED}" in [region.attributes.get("aria-label") for region in root.find("div")]


def test_characters_that_files_cannot_carry_are_replaced():
    page = Page("half \ud800 null \x00 bell \x07 line\nend")
    text = page.render()
    assert text.encode("utf-8")
    assert "half \ufffd null \ufffd bell \ufffd line\nend" in text


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
    blocks = re.findall(r":root \{(.*?)\}", style.text)
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
    (hidden,) = re.findall(r"([^{}]*)\{ display: none; \}", printed)
    assert {part.strip() for part in hidden.split(",")} >= {".copy", ".sort", ".skip", "nav"}
    (whole,) = re.findall(r"([^{}]*)\{ break-inside: avoid; \}", printed)
    assert {part.strip() for part in whole.split(",")} >= {"figure", "tr"}
    assert "prefers-reduced-motion" in style.text


# ------------------------------------------------------------------ bars


def drawn(drawing):
    """Bars and whiskers of a chart: name, left end, right end, kind; and the place of zero."""
    page = Page("x")
    page.section("x")
    page.figure(drawing, "Bars", "Bars")
    (svg,) = Tree(page.render()).root.find("svg")
    (zero,) = [float(line.attributes["x1"]) for line in svg.find("line") if line.attributes["class"] == "axis"]
    rows = []
    for group in svg.find("g"):
        (bar,) = group.find("rect")
        left = float(bar.attributes["x"])
        whiskers = [re.match(r"M([\d.]+) [\d.]+H([\d.]+)M", path.attributes["d"]) for path in group.find("path")]
        rows.append(
            SimpleNamespace(
                title=group.find("title")[0].words(),
                texts=[text.words() for text in group.find("text")],
                left=left,
                right=left + float(bar.attributes["width"]),
                kind=bar.attributes["class"],
                whisker=[(float(found[1]), float(found[2])) for found in whiskers],
            )
        )
    return zero, rows


def is_to_scale(zero, rows, bars):
    """Whether bars begin at zero, go the right way and have one scale, whiskers included."""
    scale = (rows[0].right - rows[0].left) / abs(bars[0].value)
    for row, bar in zip(rows, bars, strict=True):
        inner, outer = (row.left, row.right) if bar.value > 0 else (row.right, row.left)
        if abs(inner - zero) > 0.02 or abs(outer - (zero + scale * bar.value)) > 0.03:
            return False
        if row.kind != ("plus" if bar.value > 0 else "minus"):
            return False
        expected = [] if not bar.deviation else [zero + scale * (bar.value + s * 2.0 * bar.deviation) for s in (-1, 1)]
        found = [end for ends in row.whisker for end in ends]
        if len(found) != len(expected) or any(abs(a - b) > 0.05 for a, b in zip(found, expected, strict=True)):
            return False
    return True


BARS = [Bar("a", 5.0, 0.5), Bar("b", -3.0, 1.0), Bar("c", 0.75, 2.0), Bar("d", -0.5, 0.0), Bar("e", 0.25)]


def test_bars_and_whiskers_are_to_scale():
    assert WHISKER == 2.0
    zero, rows = drawn(coefficient_chart(BARS[::-1], "x", reach_of(BARS)))
    assert [row.texts[0] for row in rows] == ["a", "b", "c", "d", "e"]
    assert is_to_scale(zero, rows, BARS)
    assert all(205.0 <= end <= 565.0 for row in rows for ends in row.whisker for end in ends)


@pytest.mark.parametrize("fault", ["bar", "side", "colour", "whisker", "missing"])
def test_bars_that_lie_are_caught(fault):
    zero, rows = drawn(coefficient_chart(BARS, "x", reach_of(BARS)))
    row = rows[1]
    if fault == "bar":
        row.left += 1.0
    elif fault == "side":
        row.left, row.right = zero, zero + (row.right - row.left)
    elif fault == "colour":
        row.kind = "plus"
    elif fault == "whisker":
        row.whisker = [(row.whisker[0][0], row.whisker[0][1] - 1.0)]
    else:
        row.whisker = []
    assert not is_to_scale(zero, rows, BARS)


@pytest.mark.parametrize("reach", [(-1.0, 9.0), (-8.0, 0.0), (0.0, 1e-7), (-3e5, 2e6)])
def test_scales_have_a_few_round_numbers_with_zero(reach):
    ends = [Bar("x", end) for end in reach if end]
    body = str(coefficient_chart(ends, "x", reach).body)
    ticks = [float(tick) for tick in re.findall(r'class="small middle">([^<]+)<', body)]
    assert 0.0 in ticks
    assert 3 <= len(ticks) <= 7
    assert all(reach[0] <= tick <= reach[1] for tick in ticks)
    mantissas = {f"{tick:.6e}".split("e")[0].strip("-").rstrip("0").rstrip(".") for tick in np.diff(ticks)}
    assert len(mantissas) == 1
    assert mantissas <= {"1", "2", "5"}


def test_of_many_bars_the_largest_are_drawn():
    bars = [Bar(f"n{i}", (-1) ** i * (i + 1.0)) for i in range(100)]
    _, rows = drawn(coefficient_chart(bars, "x", reach_of(bars)))
    assert [row.texts[0] for row in rows] == [f"n{i}" for i in range(99, 59, -1)]


@pytest.mark.parametrize("name", ["x" * 100_000, "M" * 60, "血压" * 40, "a=" + "b" * 90, "\u0301" * 300])
def test_long_names_are_shortened_and_told_in_full(name):
    short = shortened(name, 195.0)
    assert len(short) < 40
    start, _, end = short.partition("…")
    assert start
    assert end
    assert name.startswith(start)
    assert name.endswith(end)
    _, (row,) = drawn(coefficient_chart([Bar(name, 1.0)], "x", (0.0, 1.0)))
    assert row.texts[0] == short
    assert row.title.startswith(f"{name}: ")
    assert shortened("age", 195.0) == "age"


# ------------------------------------------------------------------ odds

LEVELS = np.linspace(0.0, 1.0, 21)


def best_power(with_person, without, level):
    """The power of the best test of a level (Neyman and Pearson): the most telling outcomes first, the last in part."""
    order = sorted(range(len(without)), key=lambda o: -with_person[o] / without[o] if without[o] else -math.inf)
    power, left = 0.0, level
    for o in order:
        share = 1.0 if without[o] <= left else left / without[o]
        power, left = power + share * with_person[o], left - share * without[o]
    return power


def signal(epsilon, delta):
    """Randomised response that tells all with probability delta: laws with the person and without."""
    true = (1 - delta) / (1 + math.exp(-epsilon))
    law = np.array([1 - delta - true, true, delta, 0.0])
    return law, law[[1, 0, 3, 2]]


def delta_of(one, other, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((one, other), (other, one)))


def beyond(one, other, prior, claimed):
    """How far posteriors leave the range, and how probably each outcome is."""
    weights = prior * one + (1 - prior) * other
    posterior = prior * one / weights
    low, high = posterior_range(prior, claimed)
    return np.maximum(np.maximum(posterior - high, low - posterior), 0.0), weights


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("prior", [0.01, 0.3, 0.9])
def test_randomised_response_attains_the_curves(epsilon, prior):
    one, other = (law[:2] for law in signal(epsilon, 0.0))
    posterior = prior * one / (prior * one + (1 - prior) * other)
    assert posterior == pytest.approx(posterior_range(prior, epsilon))
    # Curves for half of epsilon would not hold it.
    assert beyond(one, other, prior, epsilon / 2)[0].min() > 1e-5


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1.0, 30.0, 800.0])
def test_curves_are_accurate_at_every_size(epsilon):
    with mpmath.workdps(50):
        for prior in (1e-9, 0.01, 0.5, 0.99):
            p, e = mpmath.mpf(prior), mpmath.exp(epsilon)
            low, high = posterior_range(prior, epsilon)
            assert high == pytest.approx(float(p * e / (1 + p * (e - 1))), rel=1e-13)
            assert low == pytest.approx(float(p / (p + (1 - p) * e)), rel=1e-13)
        level, delta = mpmath.mpf("0.05"), mpmath.mpf(1e-6)
        exact = min(mpmath.mpf(1), e * level + delta, 1 - (1 - delta - level) / e)
        assert highest_power(0.05, epsilon, 1e-6) == pytest.approx(float(exact), rel=1e-12)
    assert posterior_range(0.0, epsilon) == (0.0, 0.0)
    assert posterior_range(1.0, epsilon) == (1.0, 1.0)


def random_pairs(n_pairs):
    rng = np.random.default_rng(5)
    for _ in range(n_pairs):
        size = rng.integers(2, 7)
        yield tuple(rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), size=2) + 1e-9)


def test_no_pair_of_laws_goes_beyond_the_curves_by_more_than_delta():
    n_outside_too_often = 0
    for one, other in random_pairs(400):
        for epsilon in (0.1, 0.5, 2.0):
            delta = delta_of(one, other, epsilon)
            for prior in (0.05, 0.5, 0.8):
                excess, weights = beyond(one, other, prior, epsilon)
                assert (excess * weights).sum() <= delta + 1e-9
                assert weights[excess > 0.01].sum() <= delta / 0.01 + 1e-9
                n_outside_too_often += weights[excess > 0].sum() > delta + 1e-9
    # Delta does not bound how often a posterior lies outside, only how far on average: the sentence must not say more.
    assert n_outside_too_often > 100


def test_no_test_has_more_power_and_the_signal_has_as_much():
    for one, other in random_pairs(200):
        for epsilon in (0.1, 1.0):
            delta = delta_of(one, other, epsilon)
            for level in LEVELS:
                assert best_power(one, other, level) <= highest_power(level, epsilon, delta) + 1e-7
    for epsilon, delta in ((0.1, 0.0), (1.0, 1e-3), (3.0, 0.2)):
        one, other = signal(epsilon, delta)
        assert delta_of(one, other, epsilon) == pytest.approx(delta, abs=1e-12)
        powers = [best_power(one, other, level) for level in LEVELS]
        assert powers == pytest.approx([highest_power(level, epsilon, delta) for level in LEVELS])
    # Forgetting delta understates it.
    assert best_power(*signal(1.0, 1e-3), 0.05) > highest_power(0.05, 1.0, 0.0) + 5e-4


def test_the_region_is_drawn_where_it_is():
    body = str(odds_chart(2.0, "x").body)
    (outline,) = re.findall(r'd="M([^"]+)Z" class="region"', body)
    points = np.array([[float(c) for c in point.split()] for point in outline.split("L")])
    x, y = (points[:, 0] - points[:, 0].min()) / 300.0, 1.0 - (points[:, 1] - points[:, 1].min()) / 300.0
    half = len(x) // 2
    for prior, posterior, end in zip(x, y, [1] * half + [0] * half, strict=True):
        # Steep at the ends: the drawing is rounded to a hundredth of a pixel.
        near = [posterior_range(min(1.0, max(0.0, prior + s * 1e-4)), 2.0)[end] for s in (-1, 1)]
        assert near[0] - 1e-4 <= posterior <= near[1] + 1e-4


# ------------------------------------------------------------------ numbers


def test_bounds_are_rounded_to_the_safe_side():
    rng = np.random.default_rng(3)
    for value in np.exp(rng.uniform(-12, 12, 300)):
        up, down = (float(rounded(value, up=side).replace(",", "")) for side in (True, False))
        assert down <= value <= up
        assert up - down <= 1e-3 * value
    for share in rng.random(300):
        assert float(percent(share, up=False)[:-1]) <= 100 * share <= float(percent(share, up=True)[:-1])


def test_numbers_keep_four_digits():
    for value in (1.0, -0.123456, 98765.4321, 3.1e-9, -7.7e12, 0.0):
        assert float(number(value).replace(",", "")) == pytest.approx(value, rel=5e-4)


# ------------------------------------------------------------------ the report on a model


def table_of(root, caption):
    (table,) = [t for t in root.find("table") if t.children[0].words() == caption]
    return [[cell.words() for cell in row.children] for row in table.find("tr")]


def parts_of(root):
    """The words of the page by section."""
    found = {"": ""}
    for element in [*root.find("header")[0].children, *root.find("main")[0].children]:
        if element.name == "h2":
            found[element.words()] = ""
        found[list(found)[-1]] += element.words() + "\n"
    return found


def test_the_report_has_its_parts_in_order():
    assert list(parts_of(Tree(model_report(regression())).root))[1:] == [
        "The guarantee",
        "The model",
        "What an attacker can come to believe",
        "What was released",
        "What was assumed public",
        "How it was made",
        "The certificate",
    ]


def test_coefficients_are_told_in_the_units_of_the_columns():
    rows = table_of(Tree(model_report(regression())).root, f"Coefficients of {QUOTED}")
    assert rows[0] == ["feature", "coefficient", "effect per unit", "noise (standard deviation)"]
    table = {name: [float(cell) for cell in cells] for name, *cells in rows[1:]}
    assert list(table) == ["age", EVIL, "region=north", "region=south"]
    # From 10 to 110 are 100 years for a change of two encoded units, from -0.5 to 0.5 is one.
    assert table["age"] == [20.0, 20.0 * 2 / 100, 2.0]
    assert table[EVIL] == [-8.0, -8.0 * 2 / 1, 2.0]
    assert table["region=north"] == [5.0, 5.0, 2.0]
    assert table["region=south"] == [1e-5, 1e-5, 2.0]


def test_charts_of_several_classes_share_one_scale():
    model = classification(["low", "middle", "high"])
    root = Tree(model_report(model)).root
    charts = [svg for svg in root.find("svg") if svg.find("g")]
    assert len(charts) == 3
    assert [h.words() for h in root.find("h3")][:3] == ["Class low", "Class middle", "Class high"]
    scales = []
    for chart, coefficients in zip(charts, model.estimator.coef_, strict=True):
        widths = sorted(float(bar.attributes["width"]) for bar in chart.find("rect"))
        sizes = sorted(abs(value) for value in coefficients if value)
        scales += [width / size for width, size in zip(widths, sizes, strict=True)]
    # To a hundredth of a pixel; scales of their own would differ by a factor of 3.
    assert max(scales) == pytest.approx(min(scales), rel=0.01)
    assert "the score of one class minus that of another is the log-odds" in root.words()


def test_meaning_depends_on_the_task():
    one = parts_of(Tree(model_report(regression())).root)["The model"]
    two = parts_of(Tree(model_report(classification(["no", "yes"]))).root)["The model"]
    assert "change of the prediction, in the units of the target" in one
    assert "Intercept: 120.0. This is the prediction of" in one
    assert "log-odds of yes against no" in two
    assert "does not state how large the noise" in two
    assert "thin lines reach 2 standard deviations" in one


def test_the_guarantee_is_three_sentences_with_the_numbers_of_the_certificate():
    model = regression(certificate_of_fit(1.0))
    (points,) = [e for e in Tree(model_report(model)).root.find("ol") if "record" in e.words()]
    first, second, third = (item.words() for item in points.children)
    assert "left out of the data" in first
    assert "2.719 (epsilon = 1), up to an additional probability of 1e-06 (delta)" in first
    twice = model.certificate.for_group(2).epsilon
    assert 1.9999 < twice <= 2.0
    assert "with 2 records the factor is 7.39 (epsilon = 2), at the same delta" in second
    assert "not what is true of everybody" in third
    assert "bounds file" in third
    replaced = model_report(regression(certificate_of_fit(relation="replace-one")))
    assert "been replaced, no outcome" in replaced
    assert "left out of the data, no outcome" not in replaced
    group = model_report(regression(certificate_of_fit().for_group(3)))
    assert "the records (up to 3) of any one person" in group
    assert "For a person with 6 records" in group


def test_odds_are_told_in_a_table_and_in_words():
    root = Tree(model_report(regression(certificate_of_fit(1.0)))).root
    rows = table_of(root, "What a suspicion can become")[1:]
    for (before, least, most), prior in zip(rows, (0.01, 0.1, 0.5, 0.9), strict=True):
        assert before == f"{prior:.0%}"
        low = prior / (prior + (1 - prior) * math.e)
        high = prior * math.e / (1 + prior * (math.e - 1))
        assert 0.995 * 100 * low < float(least[:-1]) <= 100 * low
        assert 100 * high <= float(most[:-1]) < 1.005 * 100 * high
    words = parts_of(root)["What an attacker can come to believe"]
    assert "with a probability of at most 0.0001 the model takes" in words
    # 0.05 e + 1e-6 = 0.13592
    assert "points at 5% of the people who are not in the data points at no more than 13.6%" in words
    pure = certify(
        [Release("x", "Laplace", 1.0, PureEvent(1.0))],
        Budget(1.0, 0.0),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    )
    assert "Delta is for what lies beyond" not in model_report(regression(pure))


def test_releases_facts_assumptions_and_bounds_are_listed():
    model = regression()
    root = Tree(model_report(model)).root
    assert table_of(root, "Every release, in order")[1:] == [
        ["the mean of the target", "Laplace", "1", "10.00"],
        ["a selected feature", "Gumbel", "3", "4.000"],
    ]
    both = compose(certificate_of_fit(), certificate_of_fit())
    assert len(table_of(Tree(model_report(regression(both))).root, "Every release")) == 5
    facts = {e.children[0].words(): e.children[1].words() for e in root.find("dl")[0].children}
    assert facts["records"] == "12,345"
    assert facts["nested: a list"].endswith("18, 19 and 10 more")
    public = parts_of(root)["What was assumed public"]
    assert "bounds came first" in public
    assert f"Target: {QUOTED}, numbers from 0 to 250" in public
    assert table_of(root, "All 5 columns")[1:] == [
        ["age", "numbers from 10 to 110", "50 is filled in", "bounds file"],
        [EVIL, "numbers from -0.5 to 0.5", "refused", "bounds file"],
        ["smoker", "yes or no", "refused", "bounds file"],
        ["region", "one of: north, south", "refused", "bounds file"],
        ["id", "not used", "", "bounds file"],
    ]


def test_bounds_found_privately_are_told_apart():
    model = regression()
    content = json.loads(model.bounds.to_json()) | {"found_privately": ["age"]}
    model.bounds = TableBounds.from_json(json.dumps(content))
    sources = {row[0]: row[3] for row in table_of(Tree(model_report(model)).root, "All 5 columns")}
    assert sources["age"] == "found privately"
    assert sources["smoker"] == "bounds file"


def test_the_command_and_the_whole_certificate_are_in_the_file():
    model = regression()
    blocks = [pre.words() for pre in Tree(model_report(model)).root.find("pre")]
    assert blocks[0] == model.command
    assert Certificate.from_json(blocks[1]) == model.certificate


@pytest.mark.parametrize(
    ("certificate", "banners"),
    [
        (certificate_of_fit(), []),
        (certificate_of_fit(seeded=True), ["Seeded: whoever knows the seed can undo the noise."]),
        (without_noise(), ["Not private: "]),
        (as_published(3.5), ["As published, not verified: the guarantee is the authors' claim, and epsilon = 3.5 is"]),
        (as_published("inf"), ["As published, not verified: the guarantee is the authors' claim, and nothing is pr"]),
        (as_published(None), ["As published, not verified: the guarantee is the authors' claim, and nothing is pr"]),
    ],
    ids=["proved", "seeded", "not private", "published", "refuted", "unknown"],
)
def test_warnings_stand_at_the_top(certificate, banners):
    root = Tree(model_report(regression(certificate))).root
    found = [e.words() for e in root.find("header")[0].walk() if e.attributes.get("class") == "banner"]
    assert len(found) == len(banners)
    assert all(text.startswith(start) for text, start in zip(found, banners, strict=True))


@pytest.mark.parametrize("certificate", [without_noise(), as_published("inf"), as_published(None)])
def test_nothing_is_drawn_where_nothing_is_proved(certificate):
    odds = parts_of(Tree(model_report(regression(certificate))).root)["What an attacker can come to believe"]
    assert "Anything: nothing is proved that would limit it." in odds
    assert "13.6%" not in odds


def test_odds_of_a_published_claim_are_those_that_are_proved():
    root = Tree(model_report(regression(as_published(3.5)))).root
    assert "at epsilon = 3.5" in parts_of(root)["What an attacker can come to believe"]


def test_the_same_model_gives_the_same_report():
    assert model_report(regression()) == model_report(regression())
    assert model_report(regression()) != model_report(regression(intercept_=119.0))


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("kind", [FrankWolfeRegressor, FrankWolfeClassifier])
def test_a_model_that_was_really_fitted_is_reported(kind, stored):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    regress = kind is FrankWolfeRegressor
    stated = "lower = -1\nupper = 1" if regress else "classes = [0, 1]"
    bounds = TableBounds.from_toml(f'[target]\nname = "y"\n{stated}\n[defaults]\nlower = -10\nupper = 10')
    schema = TableSchema(("a", "b", "y"), ("number",) * 3)
    details = {"epsilon": 5.0, "n_steps": 20, "random_state": 0} | ({} if regress else {"classes": (0, 1)})
    estimator = kind(**details).fit(X, X[:, 0] if regress else X[:, 0] > 0)
    fitted = dict(zip("ab", estimator.coef_.ravel(), strict=True))
    model = Model.of(bounds, schema, estimator.sparsify() if stored == "sparse" else estimator, "the command")
    page = model_report(model)
    assert faults_of(page) == []
    caption = "Coefficients of y" if regress else "Coefficients of y (1 against 0)"
    rows = table_of(Tree(page).root, caption)[1:]
    assert {row[0]: float(row[1]) for row in rows} == pytest.approx({k: v for k, v in fitted.items() if v}, rel=1e-3)
    assert {row[0]: float(row[2]) for row in rows} == pytest.approx(
        {k: v / 10 for k, v in fitted.items() if v}, rel=1e-3
    )


def test_tables_of_wide_models_are_cut():
    names = [f"c{i}" for i in range(1500)]
    bounds = TableBounds.from_toml('[target]\nname = "y"\nlower = 0\nupper = 1\n[defaults]\nlower = 0\nupper = 4')
    schema = TableSchema((*names, "y"), ("number",) * 1501)
    model = regression(coef_=np.arange(1.0, 1501.0), coef_std_=np.ones(1500))
    model.bounds, model.feature_names = bounds.for_table(schema), names
    page = model_report(model)
    root = Tree(page).root
    rows = table_of(root, "Coefficients of y: the largest 1,000 of 1,500, the model file has all")
    assert len(rows) == 1001
    assert rows[1][:3] == ["c1499", "1,500", "750.0"]
    assert len(table_of(root, "1,000 of 1,500 columns")) == 1001
    assert "The 40 largest of 1,500 coefficients" in page
