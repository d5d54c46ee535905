"""A picture per data set: error and F1 against epsilon, a line per method; and one of all cells against the peers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from taciturn_research.arena.sets import DataSet
from taciturn_research.arena.summary import Cell

__all__ = ["draw_pictures", "file_name"]

ERRORS = {"mse": "MSE / Var(y)", "misclassified": "misclassified", "auc": "1 - AUC"}

# Errors of 0 have a place on a logarithmic axis.
_LEAST_ERROR = 1e-4

# Ours in bold, the first edition dotted, peers of practice and published ones solid, the other sound ones faint.
_STYLES: dict[str, dict[str, Any]] = {
    "default": {"linewidth": 2.6, "marker": "o", "zorder": 3},
    "first edition": {"linewidth": 1.6, "linestyle": ":", "marker": "."},
    "practice": {"linewidth": 1.4, "marker": "s", "markersize": 3},
    "published": {"linewidth": 1.0, "marker": "."},
    "sound": {"linewidth": 0.8, "linestyle": "--", "marker": ".", "alpha": 0.6},
}


def file_name(data_set: DataSet) -> str:
    """Of a data set's picture."""
    return re.sub(r"[^a-z0-9]+", "-", data_set.name.lower()) + ".png"


def draw_pictures(data_sets: Sequence[DataSet], cells: Sequence[Cell], folder: Path) -> list[str]:
    """Draw the pictures of all data sets with finished cells.

    Parameters
    ----------
    data_sets : sequence of DataSet
        Which.
    cells : sequence of Cell
        What is finished.
    folder : Path
        It is created if need be.

    Returns
    -------
    list of str
        Names of the data sets that have a picture; none without matplotlib.
    """
    if find_spec("matplotlib") is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for data_set in data_sets:
        inside = [cell for cell in cells if cell.data_set == data_set.name and cell.results]
        if any(cell.epsilon is not None for cell in inside):
            _picture(data_set, inside).savefig(folder / file_name(data_set), dpi=72)
            drawn.append(data_set.name)
    return drawn


def _picture(data_set: DataSet, cells: Sequence[Cell]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    private = [(cell.epsilon, cell) for cell in cells if cell.epsilon is not None]
    for family, style in _STYLES.items():
        ours = family in ("default", "first edition")
        colours = ("black", "dimgray", "darkgray") if ours else [f"C{place}" for place in range(10)]
        names = dict.fromkeys(cell.method for _, cell in private if cell.family == family)
        for name, colour in zip(names, colours, strict=False):
            points = sorted((point for point in private if point[1].method == name), key=itemgetter(0))
            epsilons = [epsilon for epsilon, _ in points]
            left.plot(epsilons, [cell.error for _, cell in points], label=name, color=colour, **style)
            right.plot(epsilons, [cell.f1 for _, cell in points], color=colour, **style)
    for cell in cells:
        if cell.epsilon is None:
            left.axhline(cell.error, color="black", linestyle=":", label=cell.method)
            right.axhline(1.0 if np.isnan(cell.f1) else cell.f1, color="black", linestyle=":")
    budgets = sorted({epsilon for epsilon, _ in private})
    for axes, label in ((left, ERRORS[data_set.error]), (right, "F1 of the support")):
        axes.set(xscale="log", xlabel="epsilon", ylabel=label)
        axes.set_xticks(budgets, [f"{budget:g}" for budget in budgets])
        axes.minorticks_off()
    right.set_ylim(-0.02, 1.02)
    if data_set.error == "mse":
        # Beyond the error of a constant one failure looks like another.
        left.set_ylim(0.0, 1.5)
    figure.suptitle(f"{data_set.name}: {data_set.n_columns:,} features, k = {data_set.k}")
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize="x-small")
    return figure
