"""A model on a screen: its coefficients by name and what they mean, with standard errors if it has some."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taciturn.cli.screen import console, print_line, print_sentence, shown_text
from taciturn.core.visible import visible
from taciturn.drawing.formats import format_estimate, format_odds, format_odds_estimate

if TYPE_CHECKING:
    from rich.table import Table

    from taciturn.estimators.summary import CoefficientSummary
    from taciturn.modelfile import Model

__all__ = ["ROWS_OF_A_SCREEN", "print_model"]

ROWS_OF_A_SCREEN = 10
"""Coefficients that fit on a screen of 24 lines beside what else is said of a model."""

_FEWEST_ROWS = 4
# Screens as wide as this show the parts of standard errors too.
_WIDE = 120
# Headings take two lines on narrower screens.
_NARROW = 60
_LONGEST_NAME, _SOME_NAME, _SHORTEST_NAME, _LONGEST_LABEL = 30, 18, 8, 16
_INTERCEPT = "(intercept)"


def print_model(model: Model, *, full: bool = True) -> None:
    """Print the coefficients, the largest first, and what they mean per unit of their column.

    Without ``full`` it is a part of one screen: the largest coefficients, with names and sentences cut short.
    """
    inference = getattr(model.estimator, "inference_", None)
    if inference is not None and inference.reason is None:
        _print_intervals(model, full=full)
        return
    most = None if full else ROWS_OF_A_SCREEN
    if inference is not None:
        notes = " ".join(model.inference_notes)
        print_sentence(notes)
        if most is not None:
            # Reasons of several lines leave less room.
            most = max(_FEWEST_ROWS, most + 1 - math.ceil(len(notes) / console().width))
    found = _Coefficients.of(model)
    first, *others = _groups(found)
    for group in (first, *others) if full else (first,):
        console().print(_table(found, group, most))
    if others and not full:
        print_line(f"classes that are not shown: {len(found.outputs) - len(first):,} (--full prints them)")


@dataclass(frozen=True)
class _Coefficients:
    """Coefficients by size: names, half-widths of the columns' bounds, and values, the intercept apart."""

    target: str
    outputs: list[str]
    n_features: int
    names: list[str]
    units: list[float]
    values: Any
    intercept: Any
    odds: bool

    @classmethod
    def of(cls, model: Model) -> _Coefficients:
        import numpy as np

        estimator, target = model.estimator, model.bounds.target.name
        stored = estimator.coef_
        values = np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored)
        used = np.flatnonzero(values.any(axis=0))
        order = used[np.argsort(-np.abs(values[:, used]).sum(axis=0), kind="stable")]
        outputs = [str(label) for label in getattr(estimator, "classes_", ())]
        odds = len(outputs) == 2
        return cls(
            f"{target} ({outputs[1]} against {outputs[0]})" if odds else target,
            outputs if len(values) > 1 else [],
            len(model.feature_names),
            [model.feature_names[j] for j in order],
            [model.bounds.feature_units[j] for j in order],
            values[:, order],
            np.atleast_1d(estimator.intercept_),
            odds,
        )

    @property
    def meaning_heading(self) -> str:
        parts = ("for a", "change of") if self.outputs else ("odds ratio" if self.odds else "effect", "per unit")
        return (" " if console().width >= _NARROW else "\n").join(parts)

    def meaning(self, j: int) -> str:
        """What a coefficient means in units of its column."""
        if self.outputs:
            # An effect per unit for every class would not fit on a screen.
            return f"{self.units[j]:.4g}"
        value = float(self.values[0, j])
        return format_odds(value, self.units[j]) if self.odds else f"{value / self.units[j]:+.4g}"


def _groups(found: _Coefficients) -> list[range]:
    """All outputs, or for many classes as many as fit beside one another."""
    n_outputs = len(found.values)
    if not found.outputs:
        return [range(n_outputs)]
    names = min(_SOME_NAME, max(map(len, [*found.names, _INTERCEPT])))
    label = max(10, *(min(len(label), _LONGEST_LABEL) for label in found.outputs))
    each = max(1, (_room([(found.meaning_heading, [])]) - names) // (label + 3))
    return [range(at, min(at + each, n_outputs)) for at in range(0, n_outputs, each)]


def _table(found: _Coefficients, group: range, most: int | None) -> Table:
    full = most is None
    shown = len(found.names) if most is None else min(len(found.names), most)
    table = _new_table(f"{found.target}: {len(found.names):,} of {found.n_features:,} features", full=full)
    # In pairs, as labels that are cut may be equal.
    columns = [
        (
            _cut(found.outputs[i], _LONGEST_LABEL) if found.outputs else "coefficient",
            [f"{value:+.4g}" for value in (*found.values[i, :shown], found.intercept[i])],
        )
        for i in group
    ]
    columns.append((found.meaning_heading, [*map(found.meaning, range(shown)), ""]))
    for head, _ in columns:
        table.add_column(shown_text(head), justify="right", no_wrap=True)
    longest = min(_LONGEST_NAME, _room(columns))
    for j in range(shown):
        table.add_row(_name(found.names[j], longest, full=full), *(cells[j] for _, cells in columns))
    _add_rest(table, len(found.names) - shown)
    table.add_row(_INTERCEPT, *(cells[-1] for _, cells in columns))
    return table


def _new_table(title: str, *, full: bool) -> Table:
    from rich.table import Table

    table = Table(title=shown_text(title if full else _cut(title, 76)))
    table.add_column("feature", style="bold", overflow="fold" if full else "ellipsis", no_wrap=not full)
    return table


def _add_rest(table: Table, n_more: int) -> None:
    if n_more:
        table.add_row(f"... {n_more:,} more (--full)", style="dim")


def _name(name: str, longest: int, *, full: bool) -> Any:
    return shown_text(name if full else _cut(name, max(longest, _SHORTEST_NAME)))


def _cut(text: str, most: int) -> str:
    """Shorten a text; the middle is left out, as names often differ at both ends."""
    shown = visible(text)
    if len(shown) <= most:
        return shown
    return f"{shown[: most - most // 2 - 1]}…{shown[-(most // 2) :]}"


def _print_intervals(model: Model, *, full: bool) -> None:
    """Print coefficients with standard errors, and effects or odds ratios per unit of their column."""
    summary = model.summary()
    columns, found, names = summary.columns, summary.inference, summary.names
    order = sorted(range(len(names)), key=lambda j: -abs(columns["coefficient"][j]))
    shown = order if full else order[:ROWS_OF_A_SCREEN]
    about = f"{model.bounds.target.name}: {len(order)} of {len(model.feature_names)} features"
    table = _new_table(f"{about}, from {found.n_records:,} {model.certificate.unit}s", full=full)
    level = f"{100.0 * found.confidence_level:g}% interval"
    numbers = {name: [float(value) for value in values] for name, values in columns.items()}
    cells = {
        "coefficient": [f"{number:+.4g}" for number in numbers["coefficient"]],
        "std error": [*map(_number, numbers["std error"])],
        "of which privacy": [*map(_number, numbers["privacy"])],
        level: [*map(_ends, numbers["lower"], numbers["upper"])],
        "p": [*map(_p_value, numbers["p"])],
        f"{'odds ratio' if summary.odds else 'effect'} per unit\n({level})": [*_per_unit(summary), ""],
    }
    _drop_columns(cells)
    for head in cells:
        table.add_column(head, justify="right", no_wrap=True)
    longest = min(_LONGEST_NAME, _room(cells.items()))
    for j in shown:
        table.add_row(_name(names[j], longest, full=full), *(column[j] for column in cells.values()))
    _add_rest(table, len(order) - len(shown))
    table.add_row(_INTERCEPT, *(column[len(names)] for column in cells.values()))
    console().print(table)
    if full:
        print_sentence(model.inference_notes[0])
    else:
        print_sentence(f"The {level}s include the sampling error and the noise for privacy.")


def _drop_columns(cells: dict[str, list[str]]) -> None:
    """Leave out columns that the report has too, the least important first, until names have room."""
    if console().width < _WIDE:
        for head in list(cells)[2:4]:
            del cells[head]
    for head in ("std error", "p", "coefficient"):
        if _room(cells.items()) < len(_INTERCEPT):
            del cells[head]


def _room(columns: Iterable[tuple[str, list[str]]]) -> int:
    """What columns leave of the screen for names; each has three characters beside its content."""
    taken = sum(3 + max(map(len, (*head.split("\n"), *cells))) for head, cells in columns)
    return console().width - 4 - taken


def _per_unit(summary: CoefficientSummary) -> list[str]:
    names, columns = ("coefficient", "lower", "upper"), summary.columns
    found = []
    for j, unit in enumerate([1.0] * len(summary.names) if summary.units is None else summary.units):
        value, lower, upper = (float(columns[name][j]) for name in names)
        if summary.odds:
            found.append(format_odds_estimate(value, lower, upper, float(unit)))
        else:
            found.append(format_estimate(value / unit, lower / unit, upper / unit))
    return found


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _ends(lower: float, upper: float) -> str:
    return "-" if math.isnan(lower) else f"{_number(lower)} to {_number(upper)}"


def _p_value(value: float) -> str:
    return "-" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"
