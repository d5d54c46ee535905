"""``taciturn predict``."""

from __future__ import annotations

import csv
import io
import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from taciturn.cli.endings import complete
from taciturn.cli.options import Public, TableFile
from taciturn.cli.output import AtomicFile
from taciturn.cli.screen import counter, print_line
from taciturn.cli.showing import ModelFile, read_model
from taciturn.core.errors import ParameterError

__all__ = ["predict"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that spreadsheets take for a formula."""


def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file for the predictions.")] = Path(
        "predictions.csv"
    ),
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas", help="Put an apostrophe before labels that a spreadsheet would take for formulas."
        ),
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="Column that is copied to the predictions, as their first, such as an id.")
    ] = None,
    invalid: Annotated[
        Literal["raise", "null"],
        typer.Option(help="A row with an unusable cell: raise refuses the table, null leaves its prediction empty."),
    ] = "raise",
    public: Public = False,
) -> None:
    """Predict for every row of a table; a classifier also gives the probability of each class.

    The table needs the columns whose coefficients are not all zero. It is streamed, so it may be larger than memory.
    Predictions are as sensitive as the table that they are made for: the certificate covers the training records alone.

    Example: taciturn predict model/model.json new-patients.csv -o predictions.csv
    """
    from taciturn.tables import read_batches
    from taciturn.tables.files import split_part

    for source in (model, split_part(table)[0]):
        if output.exists() and source.exists() and output.samefile(source):
            raise ParameterError("output", str(output), "a file that is not read", "choose another name")
    read = read_model(model)
    estimator = read.estimator
    probabilities = hasattr(estimator, "predict_proba")
    header = ["prediction", *(f"P({label})" for label in estimator.classes_)] if probabilities else ["prediction"]
    keyed = [] if key is None else [key]
    n_rows = 0
    with AtomicFile(output, public=public) as file, counter(f"predicting {table.name}", "rows") as advance:
        file.write(_lines([[*keyed, *header]]))
        for block in read_batches(table, read.encoder.set_params(invalid=invalid), key=key):
            X, keys = (block, None) if key is None else block
            rows: Iterable[list[Any]] = _rows(estimator, X, len(header))
            if keys is not None:
                rows = map(operator.add, ([cell] for cell in keys), rows)
            file.write(_lines(map(_without_formulas, rows) if escape_formulas else rows))
            n_rows += X.shape[0]
            advance(X.shape[0])
    with complete(f"the predictions in {output} are complete"):
        print_line(f"written: {output}, {n_rows:,} predictions")


def _rows(estimator: Any, X: Any, width: int) -> list[list[Any]]:
    """The predictions of all rows, and the probabilities of the classes; empty for rows that cannot be read."""
    import numpy as np

    rows: list[list[Any]] = [[""] * width for _ in range(X.shape[0])]
    # Rows of a sparse matrix have their sums at the same cost.
    known = np.flatnonzero(np.isfinite(np.asarray(X.sum(axis=1)).ravel()))
    if known.size:
        kept = X if known.size == len(rows) else X[known]
        predicted = estimator.predict(kept).tolist()
        shares = estimator.predict_proba(kept).tolist() if width > 1 else [[]] * len(predicted)
        for at, value, share in zip(known.tolist(), predicted, shares, strict=True):
            rows[at] = [value, *share]
    return rows


def _without_formulas(row: list[Any]) -> list[Any]:
    """The cells of a row, with an apostrophe before texts that a spreadsheet would compute."""
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in row]


def _lines(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
