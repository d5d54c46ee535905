"""Computed tables inside a page, each between two markers, and pictures: printed, written or checked."""

from __future__ import annotations

import colorsys
import re
import sys
from collections.abc import Callable
from pathlib import Path

PAGES = Path(__file__).parents[1]
END = "<!-- /table -->"


def run(arguments: list[str], name: str, page_name: str, table: Callable[[], str]) -> int:
    """Print the table without arguments; ``--write`` puts it into the page, ``--check`` compares."""
    return run_all(arguments, name, page_name, lambda: {name: table()})


def run_all(arguments: list[str], script: str, page_name: str, tables: Callable[[], dict[str, str]]) -> int:
    """The same for several tables of one page, by their names in its markers."""
    if arguments not in ([], ["--write"], ["--check"]):
        print(f"usage: {script}.py [--write | --check]", file=sys.stderr)
        return 2
    path = PAGES / page_name
    text, status = path.read_text(encoding="utf-8"), 0
    for name, computed in tables().items():
        if not arguments:
            print(computed)
            continue
        start = f"<!-- table:{name} -->"
        before, _, rest = text.partition(start)
        current, found, after = rest.partition(END)
        if not found:
            print(f"{page_name}: the markers {start} and {END} are missing", file=sys.stderr)
            return 1
        if arguments == ["--write"]:
            text = f"{before}{start}\n{computed}\n{END}{after}"
        elif current.strip() != computed:
            print(f"{page_name} holds another table {name}; run {script}.py --write", file=sys.stderr)
            status = 1
    if arguments == ["--write"]:
        path.write_text(text, encoding="utf-8")
    return status


def run_picture(arguments: list[str], path: Path, draw: Callable[[], str]) -> int:
    """Write a picture, without arguments or with ``--write``; ``--check`` compares it with the file."""
    script = Path(sys.argv[0]).name
    if arguments not in ([], ["--write"], ["--check"]):
        print(f"usage: {script} [--write | --check]", file=sys.stderr)
        return 2
    drawn = in_both_schemes(draw())
    if arguments != ["--check"]:
        path.write_text(drawn, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != drawn:
        print(f"{path.name} is another picture; run {script} --write", file=sys.stderr)
        return 1
    return 0


# The background of the site in its dark scheme, and the text on it.
DARK, LIGHT_TEXT = "#0e1013", "#e6e8ea"
_COLOUR = re.compile(r"#(?:[0-9a-f]{6}|[0-9a-f]{3})\b", re.IGNORECASE)


def luminance(colour: str) -> float:
    """The relative luminance of WCAG, from 0 (black) to 1 (white)."""
    parts = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in _parts(colour))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(colour: str, background: str) -> float:
    """The contrast ratio of WCAG: 1 for the same colour, 21 for black and white; 4.5 is asked for of text."""
    darker, brighter = sorted((luminance(colour), luminance(background)))
    return (brighter + 0.05) / (darker + 0.05)


def on_dark(colour: str) -> str:
    """The colour with the contrast on the dark background that this one has on white, or 4.5 where that has more."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_parts(colour))
    # Greys are turned over; other colours become brighter if need be, and stay what they are.
    grey = saturation < 0.1
    asked = min(contrast(colour, "#ffffff"), contrast(LIGHT_TEXT, DARK) if grey else 4.5)
    steps = range(0 if grey else round(100.0 * lightness), 101)
    brighter = (_hexadecimal(colorsys.hls_to_rgb(hue, step / 100.0, saturation)) for step in steps)
    return next(found for found in brighter if contrast(found, DARK) >= asked)


def in_both_schemes(svg: str) -> str:
    """A picture with a transparent background, and with further colours for the dark scheme of a page.

    Browsers choose the scheme of a picture by that of the page around it. A picture that has colours for both already
    stays as it is.
    """
    if "prefers-color-scheme" in svg:
        return svg
    rules = []
    for colour in sorted({found.lower() for found in _COLOUR.findall(svg)}):
        for name in ("fill", "stroke"):
            # As an attribute, and as matplotlib writes it.
            rules.append(f'[{name}="{colour}"],[style*="{name}: {colour}"]{{{name}:{on_dark(colour)}!important}}')
    dark = f"@media(prefers-color-scheme:dark){{svg{{fill:{LIGHT_TEXT}}}{''.join(rules)}}}"
    # Of matplotlib's shapes only backgrounds have nothing but this.
    style = f'<style>{dark}[style="fill: #ffffff"]{{fill:none!important}}</style>'
    head, opening, body = re.split(r"(<svg[^>]*>)", svg, maxsplit=1)
    return f"{head}{opening}{style}{body}"


def _parts(colour: str) -> tuple[float, ...]:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    return tuple(int(digits[place : place + 2], 16) / 255.0 for place in (0, 2, 4))


def _hexadecimal(parts: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(255.0 * part):02x}" for part in parts)
