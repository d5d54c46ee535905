"""The screenshots of a report on docs/hospital.md and of its page to sign, by a headless Chromium.

Runs the page, writes its output and its pictures as ``examples.py --write hospital.md`` does, and takes the screenshots
of the report that this run wrote, so that all numbers on the page are of one fit. Needs Chromium, and what the page
tells people to install.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from examples import TABLES, run_page, write_page

PAGE = TABLES.parent / "hospital.md"
PICTURES = TABLES.parent / "pictures"
REPORT, REPORT_SIZE = PICTURES / "hospital-report.png", (820, 1510)
# What A4 holds between its margins, in pixels of 1/96 inch, and so much of its height as is shown.
SHEET, SHEET_SIZE = PICTURES / "hospital-sheet.png", (673, 800)


def shoot(report: Path, picture: Path, size: tuple[int, int], margin: int = 0) -> None:
    """Write the upper part of a page as a picture with few colours, which is a small file; a margin is white."""
    from PIL import Image, ImageOps  # Here, so that the script can be imported without matplotlib's packages.

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("screenshot.py: Chromium is not here")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size={},{}".format(*size)]
    subprocess.run(
        [browser, *flags, f"--screenshot={picture}", report.as_uri()], check=True, capture_output=True, timeout=120
    )
    with Image.open(picture) as image:
        framed = ImageOps.expand(ImageOps.expand(image.convert("RGB"), margin, "#ffffff"), 1, "#8a939c")
        framed.quantize(32, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> int:
    """Write the page and its pictures from one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outcome = run_page(PAGE, folder)
        if outcome.failed:
            print(*outcome.wrong, sep="", file=sys.stderr)
            return 1
        write_page(PAGE, outcome, folder)
        report = folder / "model" / "report.html"
        shoot(report, REPORT, REPORT_SIZE)
        printed = folder / "printed.html"
        printed.write_text(report.read_text(encoding="utf-8").replace("@media print", "@media all"), encoding="utf-8")
        shoot(printed, SHEET, SHEET_SIZE, margin=36)
    return 0


if __name__ == "__main__":
    sys.exit(main())
