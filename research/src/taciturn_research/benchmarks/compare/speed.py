"""The speed on the page of comparisons: fits of the default beside those of other libraries, as they were measured."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taciturn_research.benchmarks.bench_peers import BASELINE, OURS, STORED, Measurement, ratio
from taciturn_research.benchmarks.compare.drawing import Dot, Strip, strips
from taciturn_research.benchmarks.peer_fits import METHODS, TABLES, TASKS
from taciturn_research.pages import REPOSITORY, Marks, table, table_marks

PAGE = REPOSITORY / "docs" / "compare.md"
PICTURE = REPOSITORY / "docs" / "compare-speed.svg"
COLOURS = {"small": "#b2182b", "medium": "#e08214", "wide": "#2166ac", "sparse": "#5aae61"}


def stored() -> dict[str, Any]:
    """The last run of ``python -m taciturn_research.benchmarks peers``."""
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def parts() -> dict[Path, dict[Marks, str]]:
    """Every generated part, by page."""
    run = stored()
    found = run["measurements"]
    blocks = {
        table_marks("compare_speed"): opening(found),
        table_marks("compare_run"): run_facts(run),
        table_marks("compare_faster"): against_peers(found),
        table_marks("compare_refusals"): refusals(found),
        table_marks("compare_first"): first_fits(found),
    }
    blocks |= {table_marks(f"compare_{task}"): times(found, task) for task in TASKS}
    return {PAGE: blocks}


def opening(found: Sequence[Measurement]) -> str:
    """Processor times beside those of other private libraries and of the baseline, as a sentence."""
    private = [name for name in METHODS if METHODS[name].private and name not in OURS]
    ranges = [f"{_range(found, name)} times that of {name}" for name in private if _cells(found, name)]
    return textwrap.fill(
        f"**Speed.** The processor time of a fit of the default is {' and '.join(ranges)}, and "
        f"{_range(found, BASELINE)} times that of {BASELINE}, which is not private.",
        120,
    )


def _range(found: Sequence[Measurement], name: str) -> str:
    """From the lowest to the highest ratio."""
    ratios = sorted(quotient for quotient, _, _ in _cells(found, name))
    return f"{_number(ratios[0])} to {_number(ratios[-1])}"


def run_facts(run: dict[str, Any]) -> str:
    """When, where, and with what."""
    before, after = run["load"]["before"], run["load"]["after"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run["versions"].items()))
    return textwrap.fill(
        f"Measured on {run['date']} ({run['machine']}; mean number of waiting processes {before:g} before and "
        f"{after:g} after) with {versions}.",
        120,
        break_on_hyphens=False,
    )


def times(found: Sequence[Measurement], task: str) -> str:
    """Processor time over that of the baseline, and seconds over those of the baseline; a row per method."""
    rows = []
    for name, method in METHODS.items():
        row = [name, "yes" if method.private else "no"]
        row += [_ratios(found, name, task, size) for size in TABLES]
        rows.append(row)
    seconds = [_of(found, BASELINE, task, size).get("cpu") for size in TABLES]
    rows.append([f"*processor seconds of {BASELINE}*", "", *("" if s is None else f"{s:.2g}" for s in seconds)])
    return table(["method", "private", *(f"{size}, {_shape(size)}" for size in TABLES)], rows)


def against_peers(found: Sequence[Measurement]) -> str:
    """How often the default takes less processor time, a row per peer; the worst ratio by name."""
    rows = []
    for name in METHODS:
        if name in OURS:
            continue
        cells = _cells(found, name)
        if not cells:
            rows.append([name, "0", "", "", ""])
            continue
        worst = max(cells, key=lambda cell: cell[0])
        best = min(cells, key=lambda cell: cell[0])
        rows.append(
            [
                name,
                str(len(cells)),
                str(sum(quotient < 1.0 for quotient, _, _ in cells)),
                f"{_number(best[0])} ({best[1]}, {best[2]})",
                f"{_number(worst[0])} ({worst[1]}, {worst[2]})",
            ]
        )
    return table(["against", "cells", "less processor time", "lowest ratio", "highest ratio"], rows)


def refusals(found: Sequence[Measurement]) -> str:
    """Tables that a method cannot take, in the words of its own error."""
    rows = [[m["table"], m["task"], m["method"], _cell_text(m["error"])] for m in found if "error" in m]
    return table(["table", "task", "method", "what it says"], rows) if rows else "Every method fits every table."


def first_fits(found: Sequence[Measurement]) -> str:
    """Processor seconds of the first fit in a process, on the small table, where compiling shows most."""
    rows = []
    for name in METHODS:
        cells = [_of(found, name, task, "small") for task in TASKS]
        rows.append([name, *(f"{cell['first']:.2g} ({cell['cpu']:.2g})" if "cpu" in cell else "" for cell in cells)])
    return table(["method", *(f"{task}: first (later ones)" for task in TASKS)], rows)


def pictures() -> dict[Path, str]:
    """A strip of ratios for every peer."""
    found = stored()["measurements"]
    rows = []
    for name in METHODS:
        cells = _cells(found, name) if name not in OURS else []
        if cells:
            dots = tuple(
                Dot(quotient, COLOURS[size], f"{size}, {task}: {quotient:.2g}", strong=task == "regression")
                for quotient, size, task in cells
            )
            note = "private" if METHODS[name].private else "not private"
            rows.append(Strip(name.replace("by cross-validation", "by CV"), dots, note))
    ratios = [dot.value for row in rows for dot in row.dots]
    key = [(colour, size, False) for size, colour in COLOURS.items()]
    drawn = strips(
        rows,
        title='Processor time of taciturn (n_nonzero="all") / that of the peer, a dot per table and task',
        sides=("taciturn takes less", "the peer takes less"),
        key=[*key, ("#ffffff", "with a rim: regression", True)],
        ends=(min(0.1, *ratios) / 1.2, max(10.0, *ratios) * 1.2),
    )
    return {PICTURE: drawn}


def _cells(found: Sequence[Measurement], name: str) -> list[tuple[float, str, str]]:
    """The ratio of the default with all columns to a peer, with table and task."""
    cells = [(ratio(found, OURS[0], name, task, size, "cpu"), size, task) for size in TABLES for task in TASKS]
    return [(quotient, size, task) for quotient, size, task in cells if quotient is not None]


def _of(found: Sequence[Measurement], name: str, task: str, size: str) -> Measurement:
    return next((m for m in found if (m["method"], m["task"], m["table"]) == (name, task, size)), {})


def _ratios(found: Sequence[Measurement], name: str, task: str, size: str) -> str:
    if "error" in _of(found, name, task, size):
        return "no fit"
    shown = [ratio(found, name, BASELINE, task, size, clock) for clock in ("cpu", "wall")]
    return "" if None in shown else " / ".join(_number(quotient) for quotient in shown if quotient is not None)


def _number(quotient: float) -> str:
    """Two digits, and all before the point."""
    return f"{quotient:.2g}" if quotient < 99.5 else f"{quotient:,.0f}"


def _shape(size: str) -> str:
    return f"{TABLES[size].rows:,} x {TABLES[size].columns:,}"


def _cell_text(error: str) -> str:
    """One line without marks of Markdown's tables."""
    return " ".join(error.split()).replace("|", "/")[:200].replace("<", "&lt;").replace(">", "&gt;")
