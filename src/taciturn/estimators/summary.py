"""Coefficients with standard errors as a table: text, HTML, or a data frame."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.visible import visible
from taciturn.estimators.inference import Inference, adjusted_p_values

__all__ = ["INTERCEPT", "CoefficientSummary"]

INTERCEPT = "(intercept)"
"""The name of the last row."""

_LONGEST_NAME = 28


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientSummary:
    """The coefficients of a fit with ``inference=True``, with standard errors, p-values and intervals.

    Printed, it is a table as statistical packages show it. ``to_frame()`` returns a pandas DataFrame.

    **Privacy.** Post-processing of what the fit released: it costs nothing.

    Parameters
    ----------
    title : str
        What was fitted.
    facts : mapping
        Public facts for the header.
    names : sequence of str
        Names of the columns of the model.
    coefficients : ndarray of shape (n_columns + 1,)
        The intercept last.
    inference : Inference
        Their errors.
    odds : bool
        Whether exponentials of coefficients are odds ratios.
    units : ndarray of shape (n_columns,), default=None
        How many units of a table's column one unit of each feature is, where features were scaled; None for one.
    """

    title: str
    facts: Mapping[str, str]
    names: Sequence[str]
    coefficients: FloatArray
    inference: Inference
    odds: bool
    units: FloatArray | None = None

    @property
    def columns(self) -> dict[str, FloatArray]:
        """The table by columns: name of the column to values, the intercept last."""
        found, values = self.inference, self.coefficients
        intervals = found.intervals(values)
        p_values = found.p_values(values)
        adjusted = np.append(adjusted_p_values(p_values[:-1]), np.nan)
        table = {
            "coefficient": values,
            "std error": found.std_error,
            "sampling": found.sampling,
            "privacy": found.privacy,
            "z": values / found.std_error,
            "p": p_values,
            "p (BH)": adjusted,
            "lower": intervals[:, 0],
            "upper": intervals[:, 1],
        }
        if self.units is not None:
            units = np.append(self.units, 1.0)
            table |= {f"{name} per unit": table[name] / units for name in ("coefficient", "lower", "upper")}
            table["effect per unit"] = table.pop("coefficient per unit")
        if self.odds:
            suffix = " per unit" if self.units is not None else ""
            with np.errstate(over="ignore"):
                table["odds ratio"] = np.exp(table["effect per unit" if suffix else "coefficient"])
                table["odds lower"] = np.exp(table[f"lower{suffix}"])
                table["odds upper"] = np.exp(table[f"upper{suffix}"])
        return table

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, one row per column of the model and one for the intercept."""
        try:
            import pandas as pd
        except ImportError:
            raise ParameterError("to_frame", "pandas", "pandas, which is not installed", "install pandas") from None
        return pd.DataFrame(self.columns, index=pd.Index([*self.names, INTERCEPT], name="feature"))

    def __str__(self) -> str:
        columns = self.columns
        errors = ("coefficient", "std error", "sampling", "privacy", "z", "p", "p (BH)", "lower", "upper")
        blocks = [self._block({name: columns[name] for name in errors})]
        if self.units is not None:
            effects = ("effect per unit", "lower per unit", "upper per unit")
            heads = ("effect per unit", "lower", "upper")
            blocks.append(self._block({head: columns[name] for head, name in zip(heads, effects, strict=True)}))
        if self.odds:
            head = "odds ratio" if self.units is None else "odds ratio per unit"
            ratios = {head: columns["odds ratio"], "lower": columns["odds lower"], "upper": columns["odds upper"]}
            blocks.append(self._block(ratios, intercept=False))
        width = max(len(line) for block in blocks for line in block)
        ruled = [line for block in blocks for line in ("-" * width, *block)]
        facts = [f"{name + ':':<22}{visible(value)}" for name, value in self.facts.items()]
        notes = [line for note in self.notes for line in _wrapped(note, width)]
        return "\n".join((visible(self.title), "=" * width, *facts, *ruled, "=" * width, *notes))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = self.columns
        facts = "".join(f"<tr><th>{_safe(name)}</th><td>{_safe(value)}</td></tr>" for name, value in self.facts.items())
        head = "".join(f"<th>{_safe(name)}</th>" for name in ("feature", *columns))
        rows = ""
        for i, name in enumerate((*self.names, INTERCEPT)):
            cells = "".join(f"<td>{_number(column, values[i])}</td>" for column, values in columns.items())
            rows += f"<tr><th>{_safe(name)}</th>{cells}</tr>"
        notes = "".join(f"<p>{_safe(note)}</p>" for note in self.notes)
        return (
            f"<table><caption>{_safe(self.title)}</caption><tbody>{facts}</tbody></table>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"
        )

    def _block(self, columns: Mapping[str, FloatArray], *, intercept: bool = True) -> list[str]:
        """Lines of a table, the names first."""
        names = [*map(_shortened, self.names), *([INTERCEPT] if intercept else [])]
        left = max(map(len, [*names, ""])) + 1
        cells = {head: [_number(head, value) for value in values[: len(names)]] for head, values in columns.items()}
        widths = {head: max(len(head), *map(len, texts), 7) + 1 for head, texts in cells.items() if texts}
        lines = [" " * left + "".join(f"{head:>{widths[head]}}" for head in widths)]
        for i, name in enumerate(names):
            lines.append(f"{name:<{left}}" + "".join(f"{cells[head][i]:>{widths[head]}}" for head in widths))
        return lines

    @property
    def notes(self) -> tuple[str, ...]:
        """What the numbers cover, and what they do not."""
        found = self.inference
        if found.reason is not None:
            source = " The coefficients are those of the half that chose the columns." if found.split else ""
            return (f"No standard errors: {found.reason}{source}",)
        chosen = (
            "The columns were chosen on the other half of the records, drawn at random, and the intervals are for the "
            "population's coefficients of these columns."
            if found.split
            else "The columns were fixed without looking at the data, and the intervals are for the population's "
            "coefficients of these columns."
        )
        return (
            f"Intervals of {found.confidence_level:.4g} confidence include the sampling error and the noise for "
            f"privacy, whose squares add up to that of the standard error. {chosen} They hold for many records, "
            "whether or not the variance is constant or the model exact. They do not cover columns that were left out, "
            "values beyond the bounds, or a sample that does not represent the population.",
            "p (BH) is adjusted for the number of columns by Benjamini and Hochberg.",
        )


def _safe(text: str) -> str:
    return html.escape(visible(text))


def _shortened(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 11]}…{shown[-10:]}"


def _number(head: str, value: float) -> str:
    if np.isnan(value):
        return "" if head == "p (BH)" else "-"
    if head.startswith("p"):
        return "<0.001" if head in ("p", "p (BH)") and value < 0.001 else _plain(value)
    return f"{value:.2f}" if head == "z" else _plain(value)


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 60))
