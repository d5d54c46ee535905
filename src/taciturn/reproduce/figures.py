"""Curves of an experiment, a panel per data set, drawn if matplotlib is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from taciturn.reproduce.experiment import Experiment, Layout
from taciturn.reproduce.summary import Summary

__all__ = ["draw_figures"]

_PANELS_ACROSS = 3


def draw_figures(experiment: Experiment, summaries: Sequence[Summary], folder: Path) -> list[str] | None:
    """Draw a PNG and an SVG per value of the splitting key; return the names of the PNGs, or None without matplotlib.

    Parameters
    ----------
    experiment : Experiment
        Its layout says what is drawn.
    summaries : sequence of Summary
        The numbers; the band around a curve is one standard deviation of a trial.
    folder : Path
        Where the files go.
    """
    if find_spec("matplotlib") is None:
        return None
    split = experiment.layout.split
    names = []
    for number, value in enumerate(dict.fromkeys(summary.of.get(split) for summary in summaries), start=1):
        part = [summary for summary in summaries if summary.of.get(split) == value]
        title = experiment.name if split is None else f"{experiment.name}, {split} = {value}"
        figure = _panels(experiment.layout, part, title)
        for suffix in ("svg", "png"):
            figure.savefig(folder / f"{experiment.name}-{number}.{suffix}", dpi=110)
        names.append(f"{experiment.name}-{number}.png")
    return names


def _panels(layout: Layout, summaries: Sequence[Summary], title: str) -> Any:
    from matplotlib.figure import Figure

    panel_key, curve_key = layout.lines
    panels = list(dict.fromkeys(summary.of[panel_key] for summary in summaries))
    rows = math.ceil(len(panels) / _PANELS_ACROSS)
    figure = Figure(figsize=(4.0 * _PANELS_ACROSS, 2.6 * rows + 0.8), layout="constrained")
    grid = figure.subplots(rows, _PANELS_ACROSS, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=False):
        inside = [summary for summary in summaries if summary.of[panel_key] == panel]
        for curve in dict.fromkeys(summary.of[curve_key] for summary in inside):
            points = [summary for summary in inside if summary.of[curve_key] == curve]
            x = [point.of[layout.across] for point in points]
            mean = [point.mean for point in points]
            (line,) = axes.plot(x, mean, marker=".", label=curve)
            low, high = ([point.mean + sign * (point.sd or 0.0) for point in points] for sign in (-1.0, 1.0))
            axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set(title=panel, xscale="log", xlabel=layout.across)
        axes.label_outer()
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(title)
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure
