"""Columns as they are, for whoever finds bounds for them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError
from taciturn.tables.arrow_tables import Wanted, arrow_schema, whole_batches
from taciturn.tables.bounds import lacking
from taciturn.tables.encoding import numbers_of
from taciturn.tables.files import table_file
from taciturn.tables.words import quoted

__all__ = ["read_numbers"]


def read_numbers(path: str | os.PathLike[str], names: Sequence[str]) -> FloatArray:
    """Some columns of numbers of a table on disk, neither clipped nor scaled.

    **Privacy.** What is returned is as sensitive as the table. A column with anything but finite numbers in it is
    refused by its name.

    Parameters
    ----------
    path : str or path-like
        A file as in :func:`taciturn.tables.read_schema`, except libsvm.
    names : sequence of str
        The columns.

    Returns
    -------
    ndarray of shape (n_rows, n_names)
        The columns, in the order of ``names``.
    """
    file = table_file(path)
    schema = arrow_schema(file)
    for name in names:
        if name not in schema.names:
            raise DataError(lacking(name, schema))
    n_rows, batches = whole_batches(file, schema, Wanted(dict.fromkeys(names, "number")))
    numbers = np.empty((n_rows, len(names)))
    start = 0
    for batch in batches:
        stop = start + batch.num_rows
        for at, (name, values) in enumerate(zip(names, batch.columns, strict=True)):
            numbers[start:stop, at] = numbers_of(name, values)
        start = stop
    for at, name in enumerate(names):
        if not np.isfinite(numbers[:, at]).all():
            raise DataError(
                f"column {quoted(name)}: expected a finite number in every row where bounds are to be found, got "
                "others; state its bounds, and what to fill in for missing values in [missing], in a bounds file."
            )
    return numbers
