"""Steps of scikit-learn that hold nothing of the data: what has to be true of each, and why that is enough.

A step costs nothing if its fitted state follows from parameters, names and types alone, and if it maps every row by
itself. Then a neighbour of a table, mapped by the step, is a neighbour of the mapped table, and the guarantee of what
follows is the guarantee of the whole. What is not certain from the parameters becomes an assumption of the certificate,
in words; a step whose parameters let it learn is refused with the parameter to change.

Our own classes run inside a guard, which drops warnings and rewords errors that a cell may cause. Steps of scikit-learn
do not, so that their silence is assumed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.core.errors import CertificateError

__all__ = ["of_layout", "without_data"]

_SILENT = "no record makes a step of scikit-learn fail or warn; where one does, that tells of it"
_TRIED_ROWS = 7


def without_data(part: Any, which: str) -> tuple[str, ...] | None:
    """What has to be assumed for a fitted step to hold nothing of the data; None for a step that is not known here.

    Raises CertificateError for a known step whose parameters let it learn from the data. ``which`` names the step.
    """
    kind = type(part)
    if not kind.__module__.startswith("sklearn."):
        return None
    # Here rather than above: reading a certificate should not cost the import of scikit-learn.
    from sklearn.exceptions import NotFittedError
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
    from sklearn.utils.validation import check_is_fitted

    judges = {OneHotEncoder: _one_hot, SimpleImputer: _imputer, FunctionTransformer: _function}
    # A subclass may do anything.
    if kind not in judges:
        return None
    try:
        check_is_fitted(part)
    except NotFittedError:
        return None
    return judges[kind](part, which)


def of_layout(part: Any, which: str) -> tuple[str, ...]:
    """What has to be assumed of a ColumnTransformer beyond its parts; nothing for other composites."""
    columns = [spec[2] for spec in getattr(part, "transformers", ()) if len(spec) == 3]
    for chosen in columns:
        # It names columns by their names and types. Any other function is given the table, and may look at it.
        if callable(chosen) and type(chosen).__name__ != "make_column_selector":
            raise _refused(which, "columns by name, place or type", "a function that is given the table", "list them")
    # A sparse part makes the whole sparse where few cells are not zero: their share decides.
    sparse = any(_may_be_sparse(inner) for _, inner, *_ in getattr(part, "transformers_", ()))
    if not sparse or getattr(part, "sparse_threshold", 0.0) == 0.0:
        return ()
    return (f"whether {which} stores the encoded table dense or sparse is public",)


def _may_be_sparse(part: Any) -> bool:
    """Whether a part, or the last one inside it, is an encoder with a sparse result."""
    if hasattr(part, "transformer_list"):
        return any(_may_be_sparse(inner) for _, inner in part.transformer_list)
    return _may_be_sparse(part.steps[-1][1]) if hasattr(part, "steps") else getattr(part, "sparse_output", False)


def _one_hot(part: Any, which: str) -> tuple[str, ...]:
    """``categories_`` are those given, in the type of the column, and no column is counted.

    With ``min_frequency`` or ``max_categories`` categories are counted, and rare ones put together. ``drop`` chooses
    among the categories given. A row is encoded by itself.
    """
    if isinstance(part.categories, str):
        raise _refused(which, "categories=[[...]] with public lists", "those of the data", "list the categories")
    if part.min_frequency is not None or part.max_categories is not None:
        expected = "min_frequency=None and max_categories=None"
        raise _refused(which, expected, "categories that are counted", "put rare ones together by a public rule")
    if part.handle_unknown != "error":
        return (_SILENT,)
    unknown = f"every record has categories that are listed for {which}; a table with any other record is refused, and "
    return (f"{unknown}the refusal tells of it", _SILENT)


def _imputer(part: Any, which: str) -> tuple[str, ...]:
    """``statistics_`` are the constant, and each missing cell is filled in by itself.

    With ``keep_empty_features=False`` a column that is missing in all records is left out, and with ``add_indicator``
    columns are added for those that have missing cells: their number would be a release.
    """
    if part.strategy != "constant":
        raise _refused(which, "strategy='constant'", "a statistic of the data", "give fill_value, a public constant")
    if not part.keep_empty_features:
        expected = "keep_empty_features=True"
        raise _refused(which, expected, "one that leaves out columns by what is missing", "set that")
    if part.add_indicator:
        raise _refused(which, "add_indicator=False", "columns that depend on what is missing", "set that")
    return (_SILENT,)


def _function(part: Any, which: str) -> tuple[str, ...]:
    """A step without any state; whether the function maps every row by itself is not to be seen from outside.

    Universal functions of numpy with one argument do, cell by cell. Others are tried on a few rows that are made up, so
    that the common mistakes, say to subtract the mean of a column, are found; that they do nothing of the kind, and
    have not been given numbers that were computed from the data, is assumed.
    """
    # What FeatureUnion and ColumnTransformer put in the place of "passthrough" when they are fitted.
    if part.func is None:
        return ()
    if part.check_inverse and part.inverse_func is not None:
        expected = "check_inverse=False beside an inverse_func"
        raise _refused(which, expected, "a comparison on the data that may warn", "set that")
    if isinstance(part.func, np.ufunc) and part.func.nin == 1 and not part.kw_args:
        return (_SILENT,)
    if _mixes_rows(part):
        expected = "a function that treats every row by itself"
        raise _refused(which, expected, "one whose value for a row depends on other rows", "use public numbers in it")
    rows = f"the function of {which} treats every row by itself, and was chosen without looking at these data"
    return (rows, _SILENT)


def _mixes_rows(part: Any) -> bool:
    """Whether a function of made-up numbers gives other values for a row alone than for it among others."""
    rows = np.random.default_rng(0).uniform(0.1, 0.9, (_TRIED_ROWS, part.n_features_in_))
    names = getattr(part, "feature_names_in_", None)
    try:
        with np.errstate(all="ignore"):
            together = np.asarray(part.func(_as_table(rows, names), **(part.kw_args or {})), dtype=float)
            apart = [
                np.asarray(part.func(_as_table(rows[i : i + 1], names), **(part.kw_args or {})), dtype=float)
                for i in range(_TRIED_ROWS)
            ]
            return together.shape[0] != _TRIED_ROWS or not np.allclose(together, np.concatenate(apart), equal_nan=True)
    except Exception:
        # A function of text, say, which cannot be tried on numbers.
        return False


def _as_table(rows: Any, names: Any) -> Any:
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _refused(which: str, expected: str, got: str, remedy: str) -> CertificateError:
    return CertificateError(f"{which}: expected {expected}, got {got}; {remedy}, and fit again.")
