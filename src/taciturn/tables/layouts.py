"""How the file of a table is written: ``[table]`` in ``bounds.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taciturn.core.validation import check_truth
from taciturn.tables.words import refusal

__all__ = ["DELIMITERS", "STATED_NAMES", "TableLayout"]

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Delimiters of text tables, with their names."""

STATED_NAMES = "the first line of the table holds names and no record, though names in it may look like values"
"""What a certificate assumes where ``header`` is stated."""


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
    header : bool, default=False
        Whether the first line of a text table or sheet is stated to hold names, whatever they look like. Otherwise
        names that look like values are refused, since they would publish the first record. Certificates assume it.
    """

    delimiter: str | None = None
    decimal: str = "."
    name: str | None = None
    header: bool = False

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
        check_truth(header=self.header)
        return self

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a certificate has to assume of a table that is read so."""
        return (STATED_NAMES,) if self.header else ()

    def to_content(self) -> dict[str, Any]:
        """The stated keys, without those that have their defaults."""
        stated = {"delimiter": self.delimiter, "decimal": self.decimal, "name": self.name, "header": self.header}
        return {key: value for key, value in stated.items() if value not in (None, ".", False)}
