"""Look at the built site and at a report in headless Chromium: accessibility, scripts, layout, search.

Usage: ``python docs/checks/browser.py SITE [REPORT.html ...]``. Every page is opened from disk in the light and in the
dark scheme: axe-core finds no violation of WCAG 2.1 A and AA, no script fails, and nothing is fetched from elsewhere.
In windows of three widths no page scrolls sideways, no text is clipped, and names in tables stay whole; code blocks are
cut off on telephones alone, where they scroll. The search finds a page from disk and over http. Each problem is one
line; the exit code is 1 if there is any.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, TimeoutError, sync_playwright

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
WIDE, MIDDLE, NARROW = {"width": 1280, "height": 900}, {"width": 800, "height": 900}, {"width": 360, "height": 780}
# What a reader does not see without scrolling, or sees in pieces: pairs of a problem and the text that has it.
LAYOUT = r"""() => {
  const found = [];
  const note = (problem, element) => found.push([problem, element.textContent.trim().slice(0, 60)]);
  for (const code of document.querySelectorAll("pre > code")) {
    if (code.scrollWidth > code.clientWidth + 1) note("a code block is cut off", code);
  }
  for (const name of document.querySelectorAll("td code, th code")) {
    if (/^[\w.]+$/.test(name.textContent) && name.getClientRects().length > 1) note("a name is broken", name);
  }
  for (const element of document.body.querySelectorAll("*")) {
    // The header repeats the title, as much of it as there is room for.
    if (!element.offsetParent || element.closest("svg, math, header")) continue;
    const hides = ["hidden", "clip"].includes(getComputedStyle(element).overflowX) && element.clientWidth > 1;
    if (hides && element.scrollWidth > element.clientWidth + 1 && element.textContent.trim()) note("clipped", element);
  }
  return found;
}"""
# A word, and the page that has to be among what the search finds for it.
SEARCHED = {"Ed25519": "certificates", "Kendall": "selectors"}
# The search lives in a shadow tree of its own, which has the focus while one types.
FOUND = """page => [...(document.activeElement?.shadowRoot?.querySelectorAll("a[href]") ?? [])]
  .some(link => link.href.includes(`/${page}.html`))"""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def problems_of_page(page: Page, address: str) -> Iterator[str]:
    """What is wrong with one page, as it stands in the window."""
    failures: list[str] = []

    def note_request(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            failures.append(f"fetches {request.url}")

    page.on("pageerror", lambda error: failures.append(f"a script failed: {error}"))
    page.on("request", note_request)
    page.goto(address)
    page.wait_for_load_state("load")
    yield from failures
    for violation in Axe().run(page, options=RULES).response["violations"]:
        nodes = violation["nodes"]
        targets = "; ".join(" ".join(map(str, node["target"])) for node in nodes[:3])
        yield f"{violation['id']} ({len(nodes)}): {violation['help']}: {targets}"


def problems_of_layout(page: Page, address: str, width: int) -> Iterator[str]:
    """Whether a reader has to scroll sideways, and what is cut off, broken or clipped."""
    page.goto(address)
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if too_wide > 0:
        yield f"is {too_wide} pixels wider than a window of {width}"
    for problem, text in page.evaluate(LAYOUT):
        if width > NARROW["width"] or problem != "a code block is cut off":
            yield f"{problem}: {text!r}"


def problems_of_search(browser: Browser, root: str, seconds: float = 15.0) -> Iterator[str]:
    """Words whose page the search does not find."""
    for word, expected in SEARCHED.items():
        page = browser.new_page(viewport=WIDE)
        page.goto(f"{root}/index.html")
        page.click(".md-search__button")
        page.keyboard.type(word)
        try:
            page.wait_for_function(FOUND, arg=expected, timeout=1000 * seconds)
        except TimeoutError:
            yield f"the search ({root.split(':')[0]}) does not find {expected} by {word!r}"
        page.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder on a loopback port of the system's choice."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def problems_of_pages(browser: Browser, pages: list[Path]) -> Iterator[str]:
    """What is wrong with pages on disk, in both schemes and in windows of three widths."""
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, viewport=WIDE)
        for path in pages:
            page = context.new_page()
            yield from (f"{path.name} ({scheme}): {problem}" for problem in problems_of_page(page, path.as_uri()))
            page.close()
        context.close()
    for window in (WIDE, MIDDLE, NARROW):
        width = window["width"]
        page = browser.new_page(viewport=window)
        for path in pages:
            problems = problems_of_layout(page, path.as_uri(), width)
            yield from (f"{path.name} ({width} pixels): {problem}" for problem in problems)
        page.close()


def main(arguments: list[str]) -> int:
    """Check."""
    if not arguments:
        print("usage: browser.py SITE [REPORT.html ...]", file=sys.stderr)
        return 2
    executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if executable is None:
        print("browser.py: there is no Chromium to look at the pages with; make ci-tools installs it", file=sys.stderr)
        return 1
    site, *reports = (Path(argument).resolve() for argument in arguments)
    # The page for addresses that do not exist is opened at any depth, and has its styles by the address of the site.
    pages = [*sorted(path for path in site.rglob("*.html") if path.name != "404.html"), *reports]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update"],
        )
        found = [*problems_of_pages(browser, pages), *problems_of_search(browser, site.as_uri())]
        with served(site) as root:
            found += problems_of_search(browser, root)
        browser.close()
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(pages)} pages in a browser, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
