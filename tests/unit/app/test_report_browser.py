"""Pages as a real browser shows them: by window, in the dark, printed, without scripts, for a screen reader."""

import base64
import json
import os
import re
import select
import subprocess
import time
import zlib
from pathlib import Path

import pytest
from reported import EVIL, REPORTS, as_published, at_length, certificate_of_fit, without_noise

from taciturn.app.plan_file import PlanFile, PlannedFeature, PlannedFit
from taciturn.app.report.model import model_report
from taciturn.app.report.plan import plan_page

fcntl = pytest.importorskip("fcntl")
CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 60.0

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs Chromium at {CHROMIUM}")]


class Browser:
    """One headless Chromium, spoken to over two pipes."""

    def __init__(self, folder):
        (to_browser, self._write), (self._read, from_browser) = _high_pipe(), _high_pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        command = [str(CHROMIUM), *flags, "--disable-background-networking", f"--user-data-dir={folder / 'profile'}"]
        # Chromium reads commands from descriptor 3 and answers on 4.
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(folder)},
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session, self.events = b"", 0, None, []

    def open_window(self):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def send(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "Chromium does not answer"
            received = os.read(self._read, 1 << 16)
            assert received, "Chromium has ended"
            self._buffer += received
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer = json.loads(message)
        self.events.append(answer)
        return answer

    def show(self, path, *, width=1200, dark=False, media="screen", scripts=True):
        """Load a page in a window of a width."""
        self.events.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.send("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self._next()
        # What the page still has to say comes before the answer to this.
        self.ask("1")

    def ask(self, expression):
        """The value of an expression on the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def complaints(self):
        """Errors and warnings of the console, and everything that was requested beside the page itself."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append("exception")
            if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            if method == "Runtime.consoleAPICalled":
                found.append("console")
            if method == "Network.requestWillBeSent" and not parameters["request"]["url"].startswith(
                ("file:", "data:")
            ):
                found.append("request")
        return found


def _high_pipe():
    """A pipe whose ends are not among the descriptors that Chromium is given."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        started.open_window()
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, render in REPORTS.items():
        (folder / f"{name}.html").write_text(render(), encoding="utf-8")
    spoiled = (folder / "regression.html").read_text(encoding="utf-8")
    spoiled = spoiled.replace("<footer>", '<p style="color: #999">faint</p><p style="width: 1500px">wide</p><footer>')
    spoiled = spoiled.replace("<footer>", "<script>alert(1)</script><footer>", 1)
    (folder / "spoiled.html").write_text(spoiled, encoding="utf-8")
    narrow = "@media screen and (max-width: 40rem) { svg.wide { display: none; } }"
    for name in ("regression", "odds ratios"):
        page = (folder / f"{name}.html").read_text(encoding="utf-8")
        assert narrow in page
        # As it was: a chart that is wider than a narrow window, with its numbers at the far end.
        scrolling = page.replace(narrow, "svg.narrow { display: none; } svg.wide { min-width: 30rem; }")
        (folder / f"scrolling {name}.html").write_text(scrolling, encoding="utf-8")
    cards = "".join(cert._repr_html_() for cert in (certificate_of_fit(), without_noise(), as_published(3.5)))
    for name, colours in (("light", "color: #111; background: #fff"), ("dark", "color: #ddd; background: #111")):
        page = f'<!doctype html><meta charset="utf-8"><title>x</title><body style="{colours}">{cards}</body>'
        (folder / f"cards, {name}.html").write_text(page, encoding="utf-8")
    return {path.stem: path for path in folder.iterdir()}


# The lowest contrast of any visible text with what is painted behind it, and that text.
LOWEST_CONTRAST = """(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (channels(colour).length === 3 || channels(colour)[3] === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  let lowest = [21, ""];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("script, title, desc")) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(element.closest("svg") ? style.fill : style.color), luminance(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < lowest[0]) lowest = [ratio, texts.currentNode.data];
  }
  return lowest;
})()"""


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_fit_are_readable_and_say_nothing_to_the_console(browser, pages, name, dark):
    for width in (1200, 400):
        browser.show(pages[name], width=width, dark=dark)
        assert browser.complaints() == []
        assert browser.ask("innerWidth") == width
        assert browser.ask("document.documentElement.scrollWidth") <= width
    lowest, text = browser.ask(LOWEST_CONTRAST)
    assert lowest >= 4.5, text
    background = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_a_spoiled_page_is_caught(browser, pages):
    browser.show(pages["spoiled"])
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())
    assert browser.ask("document.documentElement.scrollWidth") > 1200
    lowest, text = browser.ask(LOWEST_CONTRAST)
    assert text == "faint"
    assert lowest < 3.0


# Labels of drawings that reach beyond their drawing or the window: how far, and what they say.
CUT_OFF = """(() => {
  const found = [];
  for (const text of document.querySelectorAll("svg text")) {
    if (!text.checkVisibility()) continue;
    const [label, image] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
    const beyond = Math.max(image.left - label.left, label.right - image.right, image.top - label.top,
      label.bottom - image.bottom, -label.left, label.right - innerWidth);
    if (beyond > 0.5) found.push([beyond, text.textContent]);
  }
  return found;
})()"""
LABELS = "[...document.querySelectorAll('svg text')].filter((text) => text.checkVisibility()).length"


@pytest.mark.parametrize("name", REPORTS)
def test_no_label_of_a_drawing_is_cut_off_in_any_window(browser, pages, name):
    for width in (1200, 700, 400, 360):
        browser.show(pages[name], width=width)
        assert browser.ask(CUT_OFF) == [], width
    if name in ("regression", "multi-class", "intervals", "odds ratios", "account"):
        assert browser.ask(LABELS) > 10


@pytest.mark.parametrize("name", ["regression", "odds ratios"])
def test_numbers_at_the_far_end_of_a_wide_drawing_are_noticed(browser, pages, name):
    browser.show(pages[f"scrolling {name}"], width=360)
    assert len(browser.ask(CUT_OFF)) >= 4


@pytest.mark.parametrize("name", ["light", "dark"])
def test_cards_of_notebooks_are_readable_on_any_background(browser, pages, name):
    for width in (900, 360):
        browser.show(pages[f"cards, {name}"], width=width)
        browser.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert browser.complaints() == []
        assert browser.ask(CUT_OFF) == []
        assert browser.ask("document.documentElement.scrollWidth") <= width
        lowest, text = browser.ask(LOWEST_CONTRAST)
        assert lowest >= 4.5, text
    # Certificates that prove something have a picture.
    assert browser.ask("document.querySelectorAll('svg').length") == 2


def first_pixel(png):
    """The colour at the top left, which no filter of PNG changes."""
    content, place = b"", 8
    while place < len(png):
        length, kind = int.from_bytes(png[place : place + 4]), png[place + 4 : place + 8]
        if kind == b"IDAT":
            content += png[place + 8 : place + 8 + length]
        place += length + 12
    return tuple(zlib.decompress(content)[1:4])


@pytest.mark.parametrize(
    ("settings", "colour"),
    [({}, (255, 255, 255)), ({"dark": True}, (20, 24, 29)), ({"scripts": False}, (255, 255, 255))],
    ids=["light", "dark", "no scripts"],
)
def test_screenshots_are_painted(browser, pages, settings, colour, tmp_path):
    blank_page = tmp_path / "blank.html"
    blank_page.write_text("<!doctype html><title>blank</title>", encoding="utf-8")
    browser.show(blank_page, **settings)
    blank = browser.send("Page.captureScreenshot")["data"]
    browser.show(pages["binary"], **settings)
    picture = browser.send("Page.captureScreenshot")["data"]
    assert first_pixel(base64.b64decode(picture)) == colour
    assert len(picture) > 5 * len(blank)


def test_everything_can_be_read_without_scripts(browser, pages):
    words = "document.querySelector('main').textContent"
    browser.show(pages["regression"])
    assert browser.ask("document.querySelectorAll('button').length") > 5
    with_scripts = browser.ask(words)
    browser.show(pages["regression"], scripts=False)
    assert browser.ask("document.querySelectorAll('button').length") == 0
    without = browser.ask(words)
    # Buttons to copy are all that scripts add to the words.
    assert with_scripts.count("Copy") == 2
    assert without == with_scripts.replace("Copy", "")
    assert EVIL in without


COLUMN = "[...document.querySelectorAll('table')[0].tBodies[0].rows].map(row => row.cells[{}].textContent)"
SORT = "document.querySelectorAll('table')[0].querySelectorAll('.sort')[{}].click()"


def test_tables_are_sorted_by_number_and_by_name(browser, pages):
    browser.show(pages["regression"])
    shown = [float(cell) for cell in browser.ask(COLUMN.format(1))]
    assert shown != sorted(shown, reverse=True)
    for expected in (sorted(shown, reverse=True), sorted(shown)):
        browser.ask(SORT.format(1))
        assert [float(cell) for cell in browser.ask(COLUMN.format(1))] == expected
    assert browser.ask("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "ascending"
    # The level that others are compared with is not in the table.
    browser.ask(SORT.format(0))
    assert browser.ask(COLUMN.format(0)) == [EVIL, "age", "region=south"]
    assert browser.ask("document.querySelectorAll('th[aria-sort]').length") == 1
    assert browser.complaints() == []


def test_the_command_is_selected_where_it_cannot_be_copied(browser, pages):
    browser.show(pages["regression"])
    browser.ask("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.ask("document.querySelector('.copy').click()")
    assert browser.ask("document.querySelector('.copy').textContent") == "Selected: press Ctrl+C"
    assert browser.ask("getSelection().toString()") == browser.ask("document.querySelector('pre').textContent")


def test_copying_copies_the_command(browser, pages):
    browser.show(pages["regression"])
    browser.ask("Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { copied = t; }}})")
    browser.ask("document.querySelector('.copy').click()")
    assert browser.ask("copied") == browser.ask("document.querySelector('pre').textContent")
    assert browser.ask("document.querySelector('.copy').textContent") == "Copied"


def test_the_first_tab_leads_past_the_head(browser, pages):
    browser.show(pages["regression"])
    assert browser.ask("document.querySelector('.skip').getBoundingClientRect().right") < 0
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.ask("document.activeElement.className") == "skip"
    assert browser.ask("document.activeElement.getBoundingClientRect().left") >= 0
    assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_print_hides_buttons_and_is_black_on_white_even_in_the_dark(browser, pages):
    browser.show(pages["regression"], dark=True, media="print")
    hidden = "['.copy', '.sort', '.skip', 'nav'].map(s => getComputedStyle(document.querySelector(s)).display)"
    assert browser.ask(hidden) == ["none"] * 4
    assert browser.ask("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.ask("getComputedStyle(document.querySelector('.sheet')).display") == "block"
    assert browser.ask("getComputedStyle(document.querySelector('main')).display") == "none"
    browser.ask("document.querySelector('#print-whole').click()")
    assert browser.ask("getComputedStyle(document.querySelector('main')).display") == "block"
    assert browser.ask(LOWEST_CONTRAST)[0] >= 4.5


def sheets(browser):
    """How many sheets of A4 the page prints on."""
    # A window that pretends to be a screen would print as one.
    browser.send("Emulation.setEmulatedMedia", media="")
    pdf = base64.b64decode(browser.send("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF-")
    # 210 x 297 mm in points, to a point.
    assert set(re.findall(rb"/MediaBox \[0 0 (\d+)[.\d]* (\d+)[.\d]*\]", pdf)) <= {(b"594", b"841"), (b"595", b"841")}
    return len(re.findall(rb"/Type /Page\b", pdf))


MODELS = [name for name in REPORTS if name not in ("account", "damaged account", "kit")]


@pytest.mark.parametrize("name", MODELS)
def test_a_report_prints_as_a_sheet_to_sign_or_as_a_whole(browser, pages, name):
    browser.show(pages[name])
    # One sheet of paper has two sides.
    assert sheets(browser) <= 2
    browser.ask("document.querySelector('#print-whole').click()")
    assert 3 <= sheets(browser) <= 13


def test_pages_without_a_sheet_print_as_a_whole(browser, pages):
    for name in ("kit", "account"):
        browser.show(pages[name])
        assert 2 <= sheets(browser) <= 12


def test_nothing_of_a_long_certificate_is_left_out_of_the_page_to_sign(browser, tmp_path):
    page = tmp_path / "long.html"
    page.write_text(model_report(at_length()), encoding="utf-8")
    browser.show(page, width=674, media="print")
    text = browser.ask("document.querySelector('.sheet').innerText")
    for assumption in at_length().certificate.assumptions:
        assert " ".join(assumption.split()) in " ".join(text.split())
    assert "…" not in text


def test_one_button_prints_everything(browser, pages):
    browser.show(pages["regression"])
    browser.ask(
        "window.printed = []; window.print = () => printed.push(document.querySelector('#print-whole').checked)"
    )
    texts = "[...document.querySelectorAll('.printing button')].map(b => b.textContent)"
    assert browser.ask(texts) == ["Print everything", "Print the page to sign"]
    for _ in range(2):
        browser.ask("document.querySelectorAll('.printing button').forEach(b => b.click())")
    assert browser.ask("window.printed") == [True, False] * 2


def test_a_screen_reader_hears_names_of_images_tables_and_headings(browser, pages):
    browser.show(pages["kit"])
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    named = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n.get("ignored")]
    images = [name for role, name in named if role in ("image", "img")]
    assert len(images) == 3
    assert all(images)
    assert ("table", f"Caption {EVIL}") in named
    headings = [n for n in nodes if n["role"]["value"] == "heading" and not n.get("ignored")]
    levels = [p["value"]["value"] for n in headings for p in n["properties"] if p["name"] == "level"]
    assert levels == [1, 2, 2, 2, 2, 2, 2, 3]
    assert {"main", "navigation", "banner", "contentinfo"} <= {role for role, _ in named}


def planned(epsilon):
    band = (0.4 / epsilon, 0.3 / epsilon, 0.5 / epsilon)
    features = tuple(PlannedFeature(name, 1.0, band[0] / 4.0, 0.05, 0.06, 0.3, 1.0, band) for name in ("age", EVIL))
    return PlannedFit(epsilon, 0.9, features, {"score": (0.7, 0.65, 0.75)})


def test_the_slider_of_a_plan_shows_one_budget_at_a_time(browser, tmp_path):
    plan = PlanFile(
        "ill", "SparseClassifier", 20_000, 1e-6, "zero-out", 0.95, "AUC", tuple(map(planned, (0.5, 1.0, 4.0))),
        {"the gradient": 1.0}, ("a wish",), ("an improvement",), ("an assumption",),
    )  # fmt: skip
    (tmp_path / "plan.html").write_text(plan_page(plan), encoding="utf-8")
    shown = (
        "[...document.querySelectorAll('[data-choice]')].filter(e => e.checkVisibility()).map(e => e.dataset.choice)"
    )
    # Without scripts all of them are there.
    browser.show(tmp_path / "plan.html", scripts=False)
    assert len(browser.ask(shown)) == 3
    for width in (1200, 360):
        browser.show(tmp_path / "plan.html", width=width)
        seen = []
        for place in range(3):
            move = f"s.value = {place}; s.dispatchEvent(new Event('input'))"
            browser.ask(f"{{ const s = document.querySelector('input[type=range]'); {move} }}")
            (only,) = browser.ask(shown)
            seen.append(only.split(":")[0])
        assert seen == ["epsilon 0.5", "epsilon 1", "epsilon 4"]
        assert browser.ask("document.documentElement.scrollWidth <= innerWidth")
        assert browser.complaints() == []
