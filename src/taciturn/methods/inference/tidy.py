"""Coefficients as a tidy table: one row per coefficient, as R's broom names its columns, and what files hold of it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taciturn.charts import format_estimate, format_number
from taciturn.core.errors import visible

FORMAT, VERSION = "taciturn coefficients", 1
"""Name and version of the form of the JSON text."""

LEVEL = "y.level"
"""The first column of a table of three and more classes: the class that is compared with the reference."""

NUMBERS = (
    *("estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"),
    *("p.adjusted", "per", "ratio", "ratio.low", "ratio.high", "std.error.sampling", "std.error.privacy"),
)
"""The columns that hold numbers. The first six are those of ``tidy(model, conf.int = TRUE)`` in broom."""

COLUMNS = ("term", *NUMBERS, "note")
"""All columns but that of the class, in their order."""

INTERCEPT = "(Intercept)"
"""The term of the intercept, as R writes it."""

NOISY = "privacy noise as large as the coefficient"
"""The note of a coefficient that the noise for privacy may have made alone."""

REFERENCE_LEVEL = "reference level"
"""The note of a level of a category that the others are compared with."""

MARK, MEANING = "†", "† The noise for privacy is about as large as this number, or larger."
"""What marks such a coefficient on screens and pages, and the sentence that says so."""

_MOST_LOG = 690.0
# Of LaTeX and of Markdown.
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", MARK: r"$^\dagger$"},
        "\n": " ",
    }
)
_MARKDOWN = str.maketrans({**{letter: f"\\{letter}" for letter in r"\`*_[]|<>#&~$"}, "\n": " "})


@dataclass(frozen=True, slots=True)
class TidyRow:
    """One coefficient, for a change of its column by ``per``; NaN stands where nothing is known.

    ``note`` says why there is no number, or what a reader has to know about it.
    """

    term: str
    estimate: float = math.nan
    std_error: float = math.nan
    statistic: float = math.nan
    p_value: float = math.nan
    conf_low: float = math.nan
    conf_high: float = math.nan
    p_adjusted: float = math.nan
    per: float = math.nan
    ratio: float = math.nan
    ratio_low: float = math.nan
    ratio_high: float = math.nan
    sampling: float = math.nan
    privacy: float = math.nan
    note: str = ""
    level: str = ""

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values of :data:`NUMBERS`."""
        return (
            *(self.estimate, self.std_error, self.statistic, self.p_value, self.conf_low, self.conf_high),
            *(self.p_adjusted, self.per, self.ratio, self.ratio_low, self.ratio_high, self.sampling, self.privacy),
        )


def exponential(value: float) -> float:
    """A ratio by its logarithm, the largest that is shown instead of infinity."""
    return math.exp(min(value, _MOST_LOG))


@dataclass(frozen=True, slots=True)
class TidyTable:
    """The coefficients of a model, in the order of its features, the intercept last.

    **Privacy.** Post-processing of what the fit released: it costs nothing.

    Parameters
    ----------
    title : str
        What the coefficients are of.
    rows : sequence of TidyRow
        The coefficients. Those of three and more classes have a ``level``.
    ratio : str, default=""
        What exponentials of estimates are, such as "odds ratio".
    confidence_level : float, default=None
        Of the intervals; None where there are none.
    facts : mapping, default={}
        Public facts for the JSON text.
    notes : sequence of str, default=()
        What readers have to know, in sentences.
    """

    title: str
    rows: Sequence[TidyRow]
    ratio: str = ""
    confidence_level: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def has_levels(self) -> bool:
        """Whether there are three and more classes."""
        return any(row.level for row in self.rows)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Name of a column to its values, texts and numbers."""
        values: dict[str, list[Any]] = {LEVEL: [row.level for row in self.rows]} if self.has_levels else {}
        values["term"] = [row.term for row in self.rows]
        numbers = zip(*(row.numbers for row in self.rows), strict=True) if self.rows else [()] * len(NUMBERS)
        values |= {name: list(column) for name, column in zip(NUMBERS, numbers, strict=True)}
        return values | {"note": [row.note for row in self.rows]}

    def to_csv(self) -> str:
        """The table as CSV, with enough digits to be read back exactly and empty cells where nothing is known."""
        text = io.StringIO()
        writer, columns = csv.writer(text, lineterminator="\n"), self.columns
        writer.writerow(columns)
        for cells in zip(*columns.values(), strict=True):
            writer.writerow(
                "" if _is_missing(cell) else repr(cell) if isinstance(cell, float) else cell for cell in cells
            )
        return text.getvalue()

    def to_json(self) -> str:
        """The table as JSON: facts, ``notes``, and under ``coefficients`` a list of rows; null is what is not known."""
        columns = self.columns
        rows = [
            {name: None if _is_missing(cell) else cell for name, cell in zip(columns, cells, strict=True)}
            for cells in zip(*columns.values(), strict=True)
        ]
        head = {"format": FORMAT, "version": VERSION, **self.facts}
        head |= {"ratio": self.ratio or None, "conf.level": self.confidence_level, "notes": list(self.notes)}
        lines = [f'  "{key}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}' for key, value in head.items()]
        listed = ",\n".join(f"    {json.dumps(row, ensure_ascii=False, allow_nan=False)}" for row in rows)
        return "{\n" + ",\n".join([*lines, f'  "coefficients": [\n{listed}\n  ]']) + "\n}\n"

    # ------------------------------------------------------------------ for readers

    @property
    def header(self) -> list[str]:
        """Headings of the table for readers."""
        if self.confidence_level is None:
            return ["", "Weight", "For a change of"]
        interval = f"{100.0 * self.confidence_level:g}% interval"
        ratio = [f"{self.ratio[0].upper()}{self.ratio[1:]} ({interval})"] if self.ratio else []
        return ["", f"Coefficient ({interval})", *ratio, "Standard error", "p", "For a change of"]

    def groups(self) -> Iterator[tuple[str, list[list[str]]]]:
        """For each class its label, which is empty if there are no classes, and the lines of its table."""
        for level in dict.fromkeys(row.level for row in self.rows):
            yield level, [self._line(row) for row in self.rows if row.level == level]

    @property
    def footnotes(self) -> list[str]:
        """The notes, with what the mark of noise means where it occurs."""
        noisy = any(NOISY in row.note for row in self.rows)
        return [*([MEANING] if noisy else []), *self.notes]

    def _line(self, row: TidyRow) -> list[str]:
        term = row.term + (MARK if NOISY in row.note else "")
        change = "" if math.isnan(row.per) else f"{row.per:g}"
        if self.confidence_level is None:
            return [term, row.note if math.isnan(row.estimate) else format_number(row.estimate), change]
        if math.isnan(row.estimate):
            # What it is confounded with stands below the table.
            return [term, row.note.partition(":")[0], *[""] * (len(self.header) - 3), change]
        estimate = format_estimate(row.estimate, row.conf_low, row.conf_high)
        known = not math.isnan(row.ratio)
        ratio = [format_estimate(row.ratio, row.ratio_low, row.ratio_high) if known else ""] if self.ratio else []
        p = "<0.001" if row.p_value < 0.001 else f"{row.p_value:.3f}"
        return [term, estimate, *ratio, f"{row.std_error:.3g}", p, change]

    def to_markdown(self) -> str:
        """The table in Markdown."""
        head = [*map(_markdown, self.header)]
        rule = ["---", *["---:"] * (len(head) - 1)]
        blocks = [f"**{_markdown(self.title)}**"]
        for level, lines in self.groups():
            if level:
                blocks.append(f"*{_markdown(level)}*")
            cells = [head, rule, *([*map(_markdown, line)] for line in lines)]
            blocks.append("\n".join(f"| {' | '.join(line)} |" for line in cells))
        blocks += [_markdown(note) for note in self.footnotes]
        return "\n\n".join(blocks) + "\n"

    def to_latex(self) -> str:
        """The table in LaTeX; it needs the packages booktabs and threeparttable."""
        head, width = self.header, len(self.header)
        body = []
        for level, lines in self.groups():
            if level:
                body.append(rf"\multicolumn{{{width}}}{{l}}{{\textit{{{_latex(level)}}}}} \\")
            body += [" & ".join(map(_latex, line)) + r" \\" for line in lines]
        notes = [rf"\item {_latex(note)}" for note in self.footnotes]
        return "\n".join(
            (
                r"% \usepackage{booktabs, threeparttable}",
                r"\begin{table}",
                r"\begin{threeparttable}",
                rf"\caption{{{_latex(self.title)}}}",
                rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
                r"\toprule",
                " & ".join(map(_latex, head)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                *([r"\begin{tablenotes}", *notes, r"\end{tablenotes}"] if notes else []),
                r"\end{threeparttable}",
                r"\end{table}",
                "",
            )
        )


def _markdown(text: str) -> str:
    return visible(text).translate(_MARKDOWN)


def _latex(text: str) -> str:
    return visible(text).translate(_LATEX)


def marked(cells: list[str], marks: Sequence[bool]) -> list[str]:
    """Cells with the mark of noise behind some of them, so that numbers stay below one another."""
    if not any(marks):
        return cells
    return [f"{cell} {MARK if mark else ' '}" for cell, mark in zip(cells, marks, strict=True)]


def _is_missing(cell: Any) -> bool:
    return isinstance(cell, float) and not math.isfinite(cell)
