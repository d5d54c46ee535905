"""Certificates of pipelines: which steps learn nothing from the data, and how the others compose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.core.errors import CertificateError
from taciturn.privacy.certificate import Certificate, compose

# --- Steps of scikit-learn that hold nothing of the data: what has to be true of each, and why that is enough.
#
# A step costs nothing if its fitted state follows from parameters, names and types alone, and if it maps every row by
# itself. Then a neighbour of a table, mapped by the step, is a neighbour of the mapped table, and the guarantee of what
# follows is the guarantee of the whole. What is not certain from the parameters becomes an assumption of the
# certificate, in words; a step whose parameters let it learn is refused with the parameter to change.
#
# A model around other models costs what these cost, if what it keeps beside them follows from parameters and from them.
#
# Our own classes run inside a guard, which drops warnings and rewords errors that a cell may cause. Steps of
# scikit-learn do not, so that their silence is assumed.

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
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, SplineTransformer

    judges = {
        OneHotEncoder: _one_hot,
        SimpleImputer: _imputer,
        FunctionTransformer: _function,
        PolynomialFeatures: _polynomials,
        SplineTransformer: _splines,
        HashingVectorizer: _hashes,
    }
    # A subclass may do anything.
    return judges[kind](part, which) if kind in judges and _is_fitted(part) else None


def parts_within(part: Any, which: str) -> tuple[list[tuple[str, Any]], tuple[str, ...]] | None:
    """The fitted parts of a model around others, and what has to be assumed for it to hold nothing else of the data.

    None for what is not known here. Raises CertificateError for a known one whose parameters let it learn.
    """
    kind = type(part)
    if not kind.__module__.startswith("sklearn."):
        return None
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import VotingClassifier, VotingRegressor
    from sklearn.feature_selection import SelectFromModel
    from sklearn.model_selection import FixedThresholdClassifier
    from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

    judges = {
        FixedThresholdClassifier: _threshold,
        TransformedTargetRegressor: _target,
        SelectFromModel: _selection,
        VotingClassifier: _votes,
        VotingRegressor: _votes,
        MultiOutputClassifier: _outputs,
        MultiOutputRegressor: _outputs,
    }
    return judges[kind](part, which) if kind in judges and _is_fitted(part) else None


def _is_fitted(part: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(part)
    except NotFittedError:
        return False
    return True


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
    if hasattr(part, "steps"):
        return _may_be_sparse(part.steps[-1][1])
    # Hashed words are sparse without a parameter that says so.
    return type(part).__name__ == "HashingVectorizer" or getattr(part, "sparse_output", False)


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
    return (_by_rows(which), _SILENT)


def _by_rows(which: str) -> str:
    return f"the function of {which} treats every row by itself, and was chosen without looking at these data"


def _polynomials(part: Any, which: str) -> tuple[str, ...]:
    """Only numbers of columns are kept, and the products of a row are its own."""
    return (_SILENT,)


def _splines(part: Any, which: str) -> tuple[str, ...]:
    """``bsplines_`` follow from the knots that are given, and a cell is evaluated by itself.

    In sparse results, a missing cell is first replaced by the smallest value of its column, which may be left in place.
    """
    if isinstance(part.knots, str):
        raise _refused(which, "knots=[[...]] with public positions", "those of the data", "list the knots")
    if part.sparse_output and getattr(part, "handle_missing", "error") == "zeros":
        expected = "sparse_output=False beside handle_missing='zeros'"
        raise _refused(which, expected, "one that fills in missing cells by values of other records", "set that")
    if part.extrapolation != "error":
        return (_SILENT,)
    beyond = f"every value lies between the first and the last knot of {which}; a table with any other is refused, and "
    return (f"{beyond}the refusal tells of it", _SILENT)


def _hashes(part: Any, which: str) -> tuple[str, ...]:
    """A step without any state; each text is split, hashed and scaled by itself."""
    if part.input != "content":
        raise _refused(which, "input='content'", "names of files or files", "read the texts first")
    if any(callable(getattr(part, name)) for name in ("preprocessor", "tokenizer", "analyzer")):
        return (_by_rows(which), _SILENT)
    return (_SILENT,)


def _threshold(part: Any, which: str) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """A fitted estimator; the threshold is a parameter. A table with other than two labels is refused."""
    return [("estimator", part.estimator_)], (_public_labels(), _SILENT)


def _target(part: Any, which: str) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """A transformer of the target, judged as a step, and a regressor.

    ``check_inverse`` compares targets with what becomes of them, and warns where they differ.
    """
    if part.check_inverse and not (part.transformer is None and part.func is None):
        raise _refused(which, "check_inverse=False", "a comparison on the data that may warn", "set that")
    return [("transformer", part.transformer_), ("regressor", part.regressor_)], (_SILENT,)


def _selection(part: Any, which: str) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """A fitted model, whose coefficients decide which columns are kept: a function of what was released."""
    if callable(part.max_features):
        raise _refused(which, "max_features as a number", "a function that is given the table", "give a number")
    if callable(part.importance_getter):
        expected = "importance_getter as a name"
        raise _refused(which, expected, "a function that may know more than the model", "name an attribute")
    return [("estimator", part.estimator_)], (_SILENT,)


def _votes(part: Any, which: str) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """Models of the same records, whose costs add up. A classifier numbers the labels that it finds."""
    labels = (_public_labels(),) if hasattr(part, "le_") else ()
    return list(part.named_estimators_.items()), (*labels, _SILENT)


def _outputs(part: Any, which: str) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """One model of the same records for each column of the target, whose costs add up.

    A classifier refuses targets that look like numbers rather than labels.
    """
    labels = (_public_labels(),) if type(part).__name__ == "MultiOutputClassifier" else ()
    return [(f"output {i}", each) for i, each in enumerate(part.estimators_, 1)], (*labels, _SILENT)


def _public_labels() -> str:
    from taciturn.data.records import PUBLIC_LABELS

    return PUBLIC_LABELS


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


def certificate_of(estimator: Any) -> Certificate:
    """The privacy statement of everything that a fitted estimator learned.

    An estimator with a ``certificate_`` has its own. For a ``Pipeline``, ``FeatureUnion`` or
    ``ColumnTransformer`` the certificates of all parts are composed, those of parts inside parts included; so are those
    of the models inside ``VotingClassifier``, ``VotingRegressor``, ``MultiOutputClassifier``, ``MultiOutputRegressor``,
    ``FixedThresholdClassifier``, ``TransformedTargetRegressor`` and ``SelectFromModel``. Parts that learn nothing from
    the data cost nothing: "passthrough", "drop", ``TableEncoder``, ``OneHotEncoder`` with given categories,
    ``SimpleImputer`` with a constant, ``FunctionTransformer`` with a function of single rows, ``PolynomialFeatures``,
    ``SplineTransformer`` with given knots, and ``HashingVectorizer``. What such a part takes for granted is among the
    assumptions of the certificate. Any other part without a certificate, say
    ``StandardScaler``, whose means and variances are the data's own, is refused: no statement could cover it.

    Parameters
    ----------
    estimator : object
        A fitted estimator.

    Returns
    -------
    Certificate
        For one fit of the whole. A second fit on the same records is a second certificate; add them with
        :func:`compose`.

    Notes
    -----
    The layout of the table (names, order and types of the columns, dense or sparse) counts as public.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from taciturn import CorrelationSelector
    >>> from taciturn import BoundedScaler, certificate_of
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(0, 50, (1000, 20)), rng.uniform(-1, 1, 1000)
    >>> selector = CorrelationSelector(epsilon=0.5, x_bound=1.0, y_bounds=(-1, 1))
    >>> pipeline = make_pipeline(BoundedScaler(lower=0, upper=50), selector)
    >>> certificate_of(pipeline.fit(X, y)).epsilon
    0.5
    """
    assumptions: list[str] = []
    parts = list(_parts(estimator, "", assumptions))
    if not parts:
        raise CertificateError(
            "estimator: expected at least one part that is fitted, got none; "
            "a pipeline that passes everything through has learned nothing to certify."
        )
    certificate = compose(*parts)
    if not assumptions:
        return certificate
    return replace(certificate, assumptions=tuple(dict.fromkeys((*certificate.assumptions, *assumptions))))


def _parts(estimator: Any, name: str, assumptions: list[str]) -> Iterable[Certificate]:
    """The certificates of an estimator and of the parts it is made of, in order.

    What parts without one assume is added to ``assumptions``.
    """
    certificate = getattr(estimator, "certificate_", None)
    if isinstance(certificate, Certificate):
        yield certificate
        return
    inner, assumed = _inner(estimator), None
    if inner is not None:
        assumed = of_layout(estimator, _named(estimator, name))
    elif (within := parts_within(estimator, _named(estimator, name))) is not None:
        inner, assumed = within
    else:
        assumed = _assumed(estimator, name)
    if assumed is None:
        raise CertificateError(_refusal(estimator, name))
    assumptions += assumed
    for inner_name, part, *_ in inner or ():
        yield from _parts(part, f"{name}.{inner_name}" if name else str(inner_name), assumptions)


def _inner(estimator: Any) -> Any:
    """``(name, part, ...)`` of the composites that only pass data on; None for everything else."""
    # By attribute, so that other libraries' pipelines count and nothing needs importing. The underscore of
    # the last one matters: a ColumnTransformer fits copies and leaves `transformers` as they were.
    for attribute in ("steps", "transformer_list", "transformers_"):
        inner = getattr(estimator, attribute, None)
        if inner is not None:
            return inner
    return None


def _assumed(part: Any, name: str) -> tuple[str, ...] | None:
    """What has to be assumed for a part to hold nothing of the data; None where it may hold some."""
    if part is None or isinstance(part, str):
        return () if part in (None, "passthrough", "drop") else None
    # Here rather than above, as it takes scikit-learn. The encoder maps each record by what was stated in public.
    from taciturn.tables.reading import TableEncoder

    return part.assumptions if type(part) is TableEncoder else without_data(part, _named(part, name))


def _named(part: Any, name: str) -> str:
    kind = type(part).__name__
    return f"{name!r} ({kind})" if name else kind


def _refusal(estimator: Any, name: str) -> str:
    # Here rather than above: reading a certificate should not cost the import of scikit-learn.
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    which = _named(estimator, name)
    if not hasattr(estimator, "fit"):
        return f"{which}: expected a fitted estimator, got something else; pass the estimator or pipeline itself."
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return f"{which}: expected a fitted estimator, got one that is not fitted; call fit first."
    if hasattr(estimator, "cv_results_"):
        return (
            f"{which}: expected a step with a certificate_, got a search, which fitted and scored on the data "
            "many times; choose its parameters without these data, then fit the private estimator once."
        )
    return (
        f"{which}: expected a step with a certificate_, got one that does not account for what it learns from "
        "the data; put BoundedScaler with public bounds or another private step in its place."
    )
