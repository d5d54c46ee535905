"""The picture of docs/inference.md: rows before and after whitening, each beside the noise of a released matrix.

Rows are drawn with correlation 0.97. Ellipses hold 90 % of a normal law with the second moment of the rows, and the
circle of the noise has the same radius in both panels. Without arguments, or with ``--write``, the picture is written;
``--check`` exits with 1 if the file holds another one.
"""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from in_page import run_picture
from matplotlib.figure import Figure

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "whitening.svg"
ROWS, NOISE, LINES = "#00695c", "#c62828", "#9e9e9e"
# Radius for 90 % of a normal law in the plane, and the noise in units of the longest axis.
REACH, SHARE = math.sqrt(-2.0 * math.log(0.1)), 0.3
CORRELATION, N_ROWS = 0.97, 150


def panels() -> list[tuple[str, np.ndarray, np.ndarray]]:
    """The title of each panel, its rows, and the square root of their second moment."""
    moment = np.array([[1.0, CORRELATION], [CORRELATION, 1.0]])
    values, vectors = np.linalg.eigh(moment)
    root = (vectors * np.sqrt(values)) @ vectors.T
    standard = np.random.default_rng(4).standard_normal((N_ROWS, 2))
    longest = math.sqrt(values[-1])
    return [
        ("as the columns are", standard @ root / longest, root / longest),
        ("whitened", standard, np.eye(2)),
    ]


def picture() -> str:
    """The picture as SVG."""
    mpl.rc_file(Path(__file__).with_name("matplotlibrc"))
    mpl.rcParams["svg.fonttype"] = "path"
    figure = Figure(figsize=(7.6, 3.7), layout="constrained")
    turn = np.linspace(0.0, 2.0 * math.pi, 241)
    circle = np.column_stack((np.cos(turn), np.sin(turn))) * REACH
    notes = (
        "along the short axis\nthe noise is larger than the rows",
        "the noise is the same share\nin every direction",
    )
    for number, (title, rows, root) in enumerate(panels()):
        axes = figure.add_subplot(1, 2, number + 1)
        axes.plot(*rows.T, ".", color=ROWS, markersize=3, alpha=0.45)
        axes.plot(*(circle @ root).T, color=ROWS, linewidth=2.0)
        axes.plot(*(SHARE * circle).T, color=NOISE, linewidth=2.0)
        axes.set_title(title, fontsize=11)
        axes.set_xlabel(notes[number], fontsize=9)
        axes.set_aspect("equal")
        axes.set_xlim(-2.6, 2.6)
        axes.set_ylim(-2.6, 2.6)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_color(LINES)
        if number == 0:
            axes.text(-2.4, 2.15, "second moment of the rows", color=ROWS, fontsize=9)
            axes.text(0.55, -0.95, "privacy noise", color=NOISE, fontsize=9)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(run_picture(sys.argv[1:], PICTURE, picture))
