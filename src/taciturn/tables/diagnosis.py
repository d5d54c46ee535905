"""Everything that is wrong with the columns of a table that was refused, told at once and without a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from taciturn.core.errors import DataError, TaciturnError
from taciturn.tables.arrow_tables import ColumnSelection, stream_batches
from taciturn.tables.bounds import TableBounds
from taciturn.tables.columns import Column
from taciturn.tables.conversions import is_missing
from taciturn.tables.encoding import Cells, Encoding, missing_value, target_reader
from taciturn.tables.files import TableFile, wrong_numbers
from taciturn.tables.problems import Problems
from taciturn.tables.schema import TableSchema

__all__ = ["raise_column_problems", "raise_file_problems"]


def raise_file_problems(
    file: TableFile, schema: TableSchema, bounds: TableBounds, selection: ColumnSelection, *, strict: bool
) -> None:
    """Read a table again, in text where its cells are text, and raise everything that is wrong with its columns.

    ``selection`` has the columns that enter the model and then maybe the target, as for ``invalid="null"``.
    """
    try:
        found = _Findings(bounds, file if file.is_text else None, strict=strict)
        for batch in stream_batches(file, schema, selection):
            columns = batch.columns
            if bounds.target.name in selection.types:
                found.look_at_target(columns.pop())
            found.look_at(columns)
    except TaciturnError:
        # The file as a whole cannot be read, which the first refusal said.
        return
    found.problems.raise_all()


def raise_column_problems(bounds: TableBounds, batches: Iterable[Sequence[Any]], *, strict: bool) -> None:
    """Raise everything that is wrong with the columns of a table in memory, given in blocks of rows."""
    found = _Findings(bounds, None, strict=strict)
    for columns in batches:
        found.look_at(columns)
    found.problems.raise_all()


class _Findings:
    """What is wrong with columns: once for each column that it has missing cells, and once that it has wrong ones.

    ``text`` is the file of a table of text, in which a number that is NaN was no number, and a missing one is null.
    """

    def __init__(self, bounds: TableBounds, text: TableFile | None, *, strict: bool) -> None:
        self.problems = Problems()
        self._bounds, self._text, self._strict = bounds, text, strict
        self._encoding = Encoding(bounds, invalid="raise" if strict else "null")
        target = bounds.target
        fill = bounds.missing.get(target.name)
        self._to_target = target_reader(target, fill, invalid="raise" if strict else "null")
        self._told: set[str] = set()

    def look_at(self, columns: Sequence[Any]) -> None:
        """Look at a block of the columns that enter the model."""
        for at, ((name, column), values) in enumerate(zip(self._bounds.used, columns, strict=True)):
            if self._is_wrong_number(column, values):
                self._tell(wrong_numbers(self._text, name))  # type: ignore[arg-type]
            else:
                try:
                    self._encoding.check(at, values)
                except DataError as error:
                    self._tell(str(error))
            if self._strict and self._bounds.fill_of(name) is None and _has_gaps(values, text=self._text is not None):
                self._tell(missing_value(name))

    def look_at_target(self, values: Any) -> None:
        """Look at a block of the target."""
        target = self._bounds.target
        if target.task == "regress" and self._is_wrong_number(Column("number"), values):
            self._tell(wrong_numbers(self._text, target.name))  # type: ignore[arg-type]
            return
        try:
            self._to_target(values)
        except DataError as error:
            self._tell(str(error))

    def _is_wrong_number(self, column: Column, values: Any) -> bool:
        """Whether a plain number of a table of text is none."""
        if self._text is None or not self._strict or column.type != "number" or column.censored:
            return False
        return bool(np.isnan(values.drop_null().to_numpy(zero_copy_only=False)).any())

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self.problems.found.append(DataError(sentence))


def _has_gaps(values: Any, *, text: bool) -> bool:
    """Whether cells are missing; numbers of a typed table may be NaN instead."""
    from pyarrow import compute, types

    if isinstance(values, Cells):
        return any(map(is_missing, values.distinct()[0]))
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    nan_is_null = not text and types.is_floating(values.type)
    return bool(compute.any(compute.is_null(values, nan_is_null=nan_is_null)).as_py())
