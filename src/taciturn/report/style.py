"""Colours, style sheet and script of a page."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

_LIGHT = {
    "paper": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1a1f26",
    "muted": "#55606d",
    "line": "#d3dae1",
    "link": "#0a5aa8",
    "plus": "#1c6fb8",
    "minus": "#b4530a",
    "region": "#cfe2f3",
    "alarm": "#8f1414",
    "alarm-panel": "#fdeceb",
}
_DARK = {
    "paper": "#14181d",
    "panel": "#1d232a",
    "ink": "#e7ebef",
    "muted": "#a6b0bb",
    "line": "#3a444f",
    "link": "#85bdf7",
    "plus": "#69aeea",
    "minus": "#f0a05c",
    "region": "#24405c",
    "alarm": "#ffb3ab",
    "alarm-panel": "#3d1715",
}
_PRINT = {
    "paper": "#ffffff",
    "panel": "#ffffff",
    "ink": "#000000",
    "muted": "#333333",
    "line": "#999999",
    "link": "#000000",
    "plus": "#1f4e79",
    "minus": "#8a3f00",
    "region": "#dddddd",
    "alarm": "#000000",
    "alarm-panel": "#ffffff",
}


def _root(scheme: str, colours: dict[str, str]) -> str:
    declared = " ".join(f"--{name}: {value};" for name, value in colours.items())
    return f":root {{ color-scheme: {scheme}; {declared} }}"


STYLE = f"""
{_root("light", _LIGHT)}
@media (prefers-color-scheme: dark) {{ {_root("dark", _DARK)} }}
* {{ box-sizing: border-box; }}
html {{ font: 100%/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }}
body {{ margin: 0; color: var(--ink); background: var(--paper); overflow-wrap: break-word; }}
header, nav, main, footer {{ max-width: 54rem; margin: 0 auto; padding: 0 1.25rem; }}
header {{ padding-top: 2rem; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.35rem; line-height: 1.25; margin: 2.5rem 0 .75rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }}
h3 {{ font-size: 1.08rem; margin: 1.75rem 0 .5rem; }}
p, ul, ol, dl {{ margin: .75rem 0; }}
li {{ margin: .4rem 0; }}
header p {{ color: var(--muted); }}
a {{ color: var(--link); }}
.skip {{ position: absolute; left: -100rem; top: 0; padding: .5rem 1rem; background: var(--paper); }}
.skip:focus {{ left: 0; z-index: 1; }}
:focus-visible {{ outline: 3px solid var(--link); outline-offset: 2px; }}
main:focus {{ outline: none; }}
.banner {{ margin: 1rem 0; padding: .75rem 1rem; color: var(--alarm); background: var(--alarm-panel);
  border: 2px solid var(--alarm); border-radius: .375rem; font-weight: 600; }}
nav {{ margin-top: 1.5rem; }}
nav div {{ padding: .75rem 1rem; background: var(--panel); border-radius: .375rem; }}
nav p {{ margin: 0; font-weight: 600; }}
nav ol {{ margin: .25rem 0 0; padding-left: 1.5rem; columns: 17rem; }}
nav li {{ margin: 0; padding: .1rem 0; break-inside: avoid; }}
dl div {{ display: grid; grid-template-columns: minmax(8rem, 15rem) 1fr; gap: 0 1.25rem; padding: .35rem 0;
  border-bottom: 1px solid var(--line); }}
dt {{ color: var(--muted); }}
dd {{ margin: 0; }}
dt, dd {{ min-width: 0; overflow-wrap: anywhere; }}
.scroll {{ overflow-x: auto; margin: 1.5rem 0; }}
table {{ border-collapse: collapse; width: 100%; font-size: .92rem; line-height: 1.4; }}
caption {{ text-align: left; padding-bottom: .4rem; font-weight: 600; }}
th, td {{ padding: .4rem .75rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }}
tr > :last-child {{ padding-right: 0; }}
thead th {{ vertical-align: bottom; font-weight: 400; color: var(--muted); border-bottom: 2px solid var(--muted); }}
tbody th {{ font-weight: inherit; overflow-wrap: anywhere; min-width: 8rem; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
thead .number {{ white-space: normal; }}
.sort {{ font: inherit; color: inherit; background: none; border: 0; padding: 0 0 0 .3em; cursor: pointer; }}
.sort::after {{ content: "\\2195"; }}
th[aria-sort] {{ color: var(--ink); }}
th[aria-sort="ascending"] .sort::after {{ content: "\\2191"; }}
th[aria-sort="descending"] .sort::after {{ content: "\\2193"; }}
figure {{ margin: 1.25rem 0; }}
figure .scroll {{ margin: 0; }}
figcaption {{ margin-top: .5rem; font-size: .92rem; color: var(--muted); }}
svg, img {{ display: block; max-width: 100%; height: auto; }}
svg.wide, img.wide {{ width: 100%; }}
img.wide {{ min-width: 30rem; }}
svg.narrow {{ width: 100%; max-width: 26rem; }}
@media not screen {{ svg.narrow {{ display: none; }} }}
@media screen and (min-width: 40.01rem) {{ svg.narrow {{ display: none; }} }}
@media screen and (max-width: 40rem) {{ svg.wide {{ display: none; }} }}
img {{ background: #ffffff; }}
svg text {{ fill: currentColor; font-size: 13px; }}
svg.narrow text {{ paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }}
svg .small {{ fill: var(--muted); font-size: 12px; }}
svg .number {{ text-anchor: end; }}
svg .middle {{ text-anchor: middle; }}
svg .plus {{ fill: var(--plus); }}
svg .minus {{ fill: var(--minus); }}
svg .grid {{ stroke: var(--line); }}
svg .axis {{ stroke: var(--muted); }}
svg .region {{ fill: var(--region); }}
svg .curve {{ stroke: var(--plus); stroke-width: 2; fill: none; }}
svg .interval {{ stroke: var(--plus); stroke-width: 1.5; fill: none; }}
svg .sampling {{ stroke: var(--plus); stroke-width: 5; }}
svg .estimate {{ fill: var(--paper); stroke: var(--plus); stroke-width: 2; }}
svg .clear {{ fill: var(--plus); }}
svg .none {{ stroke: currentColor; stroke-dasharray: 5 4; fill: none; }}
.code {{ margin: 1rem 0; }}
.code p {{ display: flex; justify-content: space-between; align-items: center; gap: 1rem; margin: 0 0 .25rem;
  min-height: 2rem; font-size: .92rem; color: var(--muted); }}
pre {{ margin: 0; padding: .75rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: .375rem;
  font: .85rem/1.5 ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }}
.copy {{ font: inherit; flex: none; color: var(--link); background: var(--paper); border: 1px solid var(--link);
  border-radius: .375rem; padding: .15rem .75rem; cursor: pointer; }}
summary {{ cursor: pointer; color: var(--link); padding: .25rem 0; }}
.sheet {{ display: none; }}
#print-whole {{ margin: 1rem .4rem 0 max(1.25rem, calc(50% - 25.75rem)); vertical-align: baseline; }}
#print-whole + label {{ color: var(--muted); font-size: .85rem; }}
footer {{ margin-top: 3rem; padding-top: 1rem; padding-bottom: 2rem; border-top: 1px solid var(--line);
  color: var(--muted); font-size: .92rem; }}
@media (max-width: 32rem) {{
  dl div {{ grid-template-columns: 1fr; }}
  h1 {{ font-size: 1.55rem; }}
}}
@media (prefers-reduced-motion: no-preference) {{ html {{ scroll-behavior: smooth; }} }}
@media print {{
  {_root("light", _PRINT)}
  @page {{ size: A4; margin: 14mm 16mm 15mm;
    @bottom-right {{ content: counter(page) " / " counter(pages); font-size: 9pt; }} }}
  html {{ font-size: 10pt; line-height: 1.4; }}
  header, nav, main, footer {{ max-width: none; padding-left: 0; padding-right: 0; }}
  header {{ padding-top: 0; }}
  .skip, .copy, .sort, nav, details:not([open]), #print-whole, #print-whole + label {{ display: none; }}
  h2 {{ margin-top: 1.5rem; }}
  h1, h2, h3, caption, summary, .code p {{ break-after: avoid; }}
  figure, tr, li, dl div, .banner, .short {{ break-inside: avoid; }}
  thead {{ display: table-header-group; }}
  p, li {{ orphans: 3; widows: 3; }}
  .scroll {{ overflow: visible; }}
  svg.wide, img.wide {{ min-width: 0; max-width: 16cm; }}
  svg:not(.wide) {{ max-width: 8.5cm; }}
  th, td {{ padding-top: .2rem; padding-bottom: .2rem; }}
  svg .plus, svg .minus, svg .region, svg .estimate {{ print-color-adjust: exact; }}
  a {{ text-decoration: none; }}
  #print-whole:not(:checked) ~ :not(.sheet) {{ display: none; }}
  #print-whole:checked ~ .sheet {{ break-before: page; }}
  .sheet {{ display: block; font-size: 8.5pt; line-height: 1.3; }}
  .sheet .title {{ font-size: 14pt; font-weight: 600; margin: 0 0 2mm; }}
  .sheet p, .sheet dl, .sheet ul {{ margin: 0 0 2mm; }}
  .sheet dl div {{ grid-template-columns: 29mm 1fr; gap: 0 3mm; padding: .7mm 0; }}
  .sheet .list {{ margin: 2.5mm 0 0; color: var(--muted); }}
  .sheet ul {{ padding-left: 4mm; }}
  .sheet li {{ margin: 0; }}
  .sheet .blank {{ height: 9mm; margin: 0; border-bottom: 1px solid var(--muted); color: var(--muted); }}
  .signature {{ display: grid; grid-template-columns: repeat(3, 1fr); gap: 8mm; margin-top: 13mm; }}
  .signature span {{ border-top: 1px solid var(--ink); padding-top: 1mm; }}
}}
"""

# Everything is readable without it: it only adds sorting and copying.
SCRIPT = """
"use strict";
(() => {
  const value = (row, column, numeric) => {
    const text = row.cells[column].textContent.trim();
    if (!numeric) return text;
    const number = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? -Infinity : number;
  };
  const sort = (heading) => {
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const numeric = heading.classList.contains("number");
    const now = heading.getAttribute("aria-sort");
    const up = now ? now === "descending" : !numeric;
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = Array.from(body.rows);
    rows.sort((a, b) => {
      const [x, y] = [value(a, column, numeric), value(b, column, numeric)];
      const order = numeric ? x - y || 0 : x.localeCompare(y, undefined, {numeric: true});
      return up ? order : -order;
    });
    body.append(...rows);
  };
  for (const heading of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.setAttribute("aria-label", "Sort by " + heading.textContent);
    button.addEventListener("click", () => sort(heading));
    heading.append(button);
  }
  const copy = async (block, button) => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 4000);
  };
  for (const label of document.querySelectorAll(".code p")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(label.nextElementSibling, button));
    label.append(button);
  }
})();
"""
