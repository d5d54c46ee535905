"""How the file of a table is written: ``[table]`` in ``bounds.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taciturn.tables.words import refusal

__all__ = ["DELIMITERS", "TableLayout"]

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Delimiters of text tables, with their names."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    r"""How the file of a table is written, where its name does not say so.

    Parameters
    ----------
    delimiter : {",", ";", "\t", "|"}, default=None
        Between the cells of a text table. None: tabs in a file named .tsv, commas in others.
    decimal : {".", ","}, default="."
        The decimal point of a text table.
    name : str, default=None
        The table of an SQLite file, or the sheet of a workbook. None: the only one.
    """

    delimiter: str | None = None
    decimal: str = "."
    name: str | None = None

    def checked(self) -> TableLayout:
        """Return the layout; raise if a fact cannot be used."""
        if self.delimiter is not None and self.delimiter not in tuple(DELIMITERS):
            raise refusal(
                "table.delimiter", self.delimiter, 'one of ",", ";", "\\t" and "|"', "write the table with one of them"
            )
        if self.decimal not in (".", ","):
            raise refusal("table.decimal", self.decimal, '"." or ","', "write numbers with one of them")
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise refusal("table.name", self.name, "the name of a table or sheet", "write it in quotes")
        return self

    def to_content(self) -> dict[str, Any]:
        """The stated keys, without those that have their defaults."""
        stated = {"delimiter": self.delimiter, "decimal": self.decimal, "name": self.name}
        return {key: value for key, value in stated.items() if value not in (None, ".")}
