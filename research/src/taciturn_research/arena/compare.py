"""One screen: ours beside the first edition and the best peer of practice, a line per data set and epsilon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taciturn_research.arena.bars import COMPARISONS, of_practice, verdicts_of
from taciturn_research.arena.methods import Method
from taciturn_research.arena.results import Results
from taciturn_research.arena.run import Plan
from taciturn_research.arena.sets import DataSet
from taciturn_research.arena.summary import Cell, summarise
from taciturn_research.arena.verdict import best_of, tally

__all__ = ["compared"]

_OURS = ("default, as advised", "default, k auto", "default, all", "default")
_FIRST = ("first edition, k auto", "first edition")


def compared(
    results: Results, plan: Plan, data_sets: Sequence[DataSet], methods: Sequence[Method], measured: str
) -> str:  # fmt: skip
    """The table, and the counts over all cells.

    Ours are marked by comparison with the best peer: + lower, - higher, ! significantly higher in this cell alone.

    Parameters
    ----------
    results : Results
        Finished fits.
    plan : Plan
        Which of them count.
    data_sets, methods : sequences
        In the order of the table.
    measured : {"error", "log_loss"}
        What is shown.
    """
    cells = summarise(results, plan, data_sets, methods, measured)
    marks = {}
    counts = []
    for comparison in COMPARISONS:
        if measured not in comparison.measures:
            continue
        verdicts = verdicts_of(comparison, measured, cells)
        total = tally(verdicts)
        if total.n_cells:
            counts.append(
                f"{comparison.ours} against {comparison.against}: lower in {total.lower} of {total.n_cells} "
                f"({total.lower / total.n_cells:.0%}), significantly higher in {total.higher} "
                f"({total.higher / total.n_cells:.0%}), lost after Holm {total.lost}"
            )
        if comparison.rivals is of_practice:
            for verdict in verdicts:
                place = (verdict.ours.data_set, verdict.ours.epsilon, comparison.ours)
                marks[place] = "+" if verdict.lower else "!" if verdict.higher else "-"
    heads = f"{'set':<23}{'eps':>4}  {'auto':>7}{'all':>8}{'k':>8}   {'1st auto':>8}{'1st k':>8}   best peer"
    lines = [heads]
    for data_set in data_sets:
        for epsilon in plan.epsilons:
            found = {c.method: c for c in cells if (c.data_set, c.epsilon) == (data_set.name, epsilon)}
            peers = [cell for cell in found.values() if of_practice(cell) and cell.values(measured)]
            shown = [cell for name, cell in found.items() if name in (*_OURS, *_FIRST) and cell.values(measured)]
            if not shown and not peers:
                continue
            best = best_of(peers, measured) if peers else None
            ours = [
                _number(found.get(name), measured) + marks.get((data_set.name, epsilon, name), " ") for name in _OURS
            ]
            first = [_number(found.get(name), measured) for name in _FIRST]
            peer = "" if best is None else f"{_number(best, measured)} {best.method}"
            lines.append(f"{data_set.name:<23}{epsilon:>4g}  {''.join(ours)}  {' '.join(first)}  {peer}")
    return "\n".join([*lines, "", *counts])


def _number(cell: Cell | None, measured: str) -> str:
    values = cell.values(measured) if cell is not None else []
    return f"{np.mean(values):7.4f}" if values else f"{'.':>7}"
