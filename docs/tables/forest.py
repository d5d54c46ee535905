"""The picture of README.md: odds ratios with intervals of its example, beside those of statsmodels without privacy.

The example is the first block of README.md, run as it stands there. Without arguments, or with ``--write``, the picture
is written; ``--check`` exits with 1 if the file holds another one.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import statsmodels.api as sm
from in_page import run_picture
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "pictures" / "forest.svg"
# What a row says, the column, and the step of it that the odds ratio is for.
ROWS = (
    ("happier marriage,\none step of five", "rate_marriage", 1),
    ("ten years of marriage", "yrs_married", 10),
    ("more religious,\none step of four", "religious", 1),
    ("four years of education", "educ", 4),
    ("occupation,\none step of six", "occupation", 1),
)
PRIVATE, PLAIN = "#00695c", "#757575"


def example() -> dict[str, object]:
    """The names that the first block of README.md leaves behind."""
    code = re.search(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    names: dict[str, object] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code[1], "README.md", "exec"), names)
    return names


def intervals(names: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """Log odds ratios per step with their limits: with privacy, and by statsmodels on the same columns."""
    X, y, model, scaler = names["X"], names["y"], names["model"], names["scaler"]
    steps = np.array([step for _, _, step in ROWS])
    order = [list(X.columns).index(column) for _, column, _ in ROWS]
    half = (np.asarray(scaler.upper) - np.asarray(scaler.lower)) / 2
    private = np.column_stack((model.coef_[0], model.coef_interval_))
    private = (private / half[:, None])[order] * steps[:, None]
    fit = sm.Logit(np.asarray(y), sm.add_constant(X)).fit(disp=0)
    plain = np.column_stack((fit.params, fit.conf_int()))[1:][order] * steps[:, None]
    return private, plain


def picture() -> str:
    """The picture as SVG."""
    mpl.rc_file(Path(__file__).with_name("matplotlibrc"))
    mpl.rcParams["svg.fonttype"] = "path"
    private, plain = intervals(example())
    figure = Figure(figsize=(7.6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(ROWS))[::-1]
    for values, shift, colour, marker in ((plain, 0.14, PLAIN, "s"), (private, -0.14, PRIVATE, "o")):
        odds = np.exp(values)
        axes.hlines(places + shift, odds[:, 1], odds[:, 2], color=colour, linewidth=2.2)
        axes.plot(odds[:, 0], places + shift, marker, color=colour, markersize=6)
    axes.axvline(1, color="#424242", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 0.7, 1, 1.4, 2, 2.8], labels=["0.5", "0.7", "1", "1.4", "2", "2.8"])
    axes.minorticks_off()
    axes.set_yticks(places, labels=[words for words, _, _ in ROWS])
    axes.tick_params(left=False)
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_xlabel("odds ratio of having had an affair, with 95 % interval")
    axes.set_ylim(-0.6, len(ROWS) - 0.2)
    last = places[1]
    axes.text(np.exp(plain[1, 2]) * 1.06, last + 0.14, "statsmodels, not private", color=PLAIN, va="center", fontsize=9)
    axes.text(
        np.exp(private[1, 2]) * 1.06, last - 0.18, "taciturn, epsilon = 1", color=PRIVATE, va="center", fontsize=9
    )
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


if __name__ == "__main__":
    sys.exit(run_picture(sys.argv[1:], PICTURE, picture))
