"""Columns with public bounds, mapped to [-1, 1]."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taciturn.certificate import Certificate
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import Guarded
from taciturn.core.validation import is_width
from taciturn.data.reading import admission_assumptions, check_invalid, read_judged_table, read_scaled, read_table
from taciturn.data.unit_range import centre_and_half, to_unit_range
from taciturn.sources import OpenTable, open_arguments, partitionwise

__all__ = ["BoundedScaler", "LinearScaler", "entry_name", "fact_of", "numbers_of", "one_per_column"]


class LinearScaler(Guarded, OneToOneFeatureMixin, TransformerMixin):
    """Values are clipped to ``lower_`` and ``upper_`` of their column and mapped to [-1, 1]."""

    invalid: str
    lower_: FloatArray
    upper_: FloatArray
    n_features_in_: int

    _formats: ClassVar[Any] = False
    """The formats of sparse tables that are taken, if any are."""

    def _read_table(self, X: Any, *, reset: bool) -> Any:
        read = read_judged_table if self.invalid == "null" else read_table
        return read(self, X, reset=reset, layouts=self._formats)

    @partitionwise
    def transform(self, X: Any) -> Any:
        """Clip to the bounds and map to [-1, 1].

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or dask array or data frame
            The features, in their own units. Those of dask are mapped when they are computed.
        """
        check_is_fitted(self)
        X = self._read_table(X, reset=False)
        if sp.issparse(X):
            _check_symmetric(self.lower_, self.upper_)
            out, bounds = _with_column_values(X, self.upper_)
            # Clipped before dividing: an overflow warning would tell of a value beyond the bounds.
            np.clip(out.data, -bounds, bounds, out=out.data)
            out.data /= bounds
            return out
        return to_unit_range(X, self.lower_, self.upper_)

    @partitionwise
    def inverse_transform(self, X: Any) -> Any:
        """Map [-1, 1] back to the bounds; what lies beyond -1 or 1 is clipped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Mapped features.
        """
        check_is_fitted(self)
        # The plain array that transform returned has lost its names, and rightly so.
        X = read_scaled(self, X, layouts=self._formats)
        if X.shape[1] != self.n_features_in_:
            raise DataError(
                f"X: expected {self.n_features_in_} columns, as in fit, got {X.shape[1]}; pass what transform returned."
            )
        if sp.issparse(X):
            _check_symmetric(self.lower_, self.upper_)
            out, bounds = _with_column_values(X, self.upper_)
            np.clip(out.data, -1.0, 1.0, out=out.data)
            out.data *= bounds
            return out
        centre, half = centre_and_half(self.lower_, self.upper_)
        out = np.clip(X, -1.0, 1.0)
        out *= half
        out += centre
        np.clip(out, self.lower_, self.upper_, out=out)
        np.copyto(out, self.lower_, where=X <= -1.0)
        np.copyto(out, self.upper_, where=X >= 1.0)
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.invalid == "null"
        return tags


class BoundedScaler(LinearScaler, BaseEstimator):
    r"""Map columns linearly from their public bounds to [-1, 1].

    A value x of a column with bounds l < u becomes

    .. math:: \frac{\min(\max(x, l), u) - (l + u) / 2}{(u - l) / 2},

    with l at -1 and u at 1 to the last bit. It stands before a private step in the place that
    ``MinMaxScaler`` has elsewhere: that one reads its bounds off the data, which one record can move.

    **Privacy.** Costs nothing: no fitted attribute depends on a value of the data (the values are looked at
    only to refuse NaN, infinity and text), and each record is mapped by itself. Values beyond the bounds are
    clipped silently, since their number would be a release.

    Parameters
    ----------
    lower, upper : float or array-like of shape (n_features,), default=-1.0, 1.0
        The range that each column can have by its nature, not its observed range. One number for all columns,
        or one for each, in the order of the columns.
    invalid : {"raise", "null"}, default="raise"
        What becomes of a record that is not admissible: one with a missing or infinite cell, or a cell that is no
        number. "raise" refuses the table, which tells of the record. "null" makes it a null record, absent from every
        statistic; ``transform`` then leaves NaN in place of such a cell, for the next step to see.

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_features_in_,)
        The bounds, one per column.
    certificate_ : Certificate
        The privacy statement: epsilon = 0, the bounds among the public facts.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where X has string names.

    See Also
    --------
    taciturn.certificate.certificate_of : The certificate of a whole pipeline.

    Notes
    -----
    Sparse X stays sparse and is accepted where ``lower == -upper`` in every column: then, and only then, zero
    is mapped to zero. Output is float64.

    Examples
    --------
    >>> from taciturn.scalers import BoundedScaler
    >>> ages_and_pressures = [[0, 120], [60, 80], [140, 300]]
    >>> BoundedScaler(lower=[0, 40], upper=[120, 200]).fit_transform(ages_and_pressures)
    array([[-1. ,  0. ],
           [ 0. , -0.5],
           [ 1. ,  1. ]])
    """

    _formats = ("csr", "csc")

    def __init__(self, *, lower: ArrayLike = -1.0, upper: ArrayLike = 1.0, invalid: str = "raise") -> None:
        self.lower = lower
        self.upper = upper
        self.invalid = invalid

    def fit(self, X: Any, y: Any = None) -> BoundedScaler:
        """Check the bounds against the columns of X, and certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            Only its shape and its column names are used.
        y : None
            Ignored.
        """
        check_invalid(self.invalid)
        X, *_ = open_arguments(X, None, None)
        assumptions: tuple[str, ...] = ()
        if isinstance(X, OpenTable):
            assumptions = X.assumptions
            X.name_features(self)
            n_columns, sparse = X.n_features, X.is_sparse
        else:
            X = self._read_table(X, reset=True)
            n_columns, sparse = X.shape[1], sp.issparse(X)
        lower = one_per_column("lower", self.lower, n_columns)
        upper = one_per_column("upper", self.upper, n_columns)
        _check_order(self.lower, lower, self.upper, upper)
        if sparse:
            _check_symmetric(lower, upper)
        self.lower_ = lower
        self.upper_ = upper
        self.certificate_ = Certificate(
            epsilon=0.0,
            delta=0.0,
            relation="zero-out",
            status="proved",
            events=(),
            public={"features": n_columns, "lower": fact_of(lower), "upper": fact_of(upper), "invalid": self.invalid},
            assumptions=(
                "the bounds were chosen without looking at these data",
                *admission_assumptions(self.invalid),
                *assumptions,
            ),
            seeded=False,
            arithmetic="exact",
            bound="pure",
        )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            symmetric = bool(np.all(np.asarray(self.lower) == -np.asarray(self.upper)))
        except (TypeError, ValueError):
            symmetric = False  # Bounds that fit will refuse; tags must not.
        tags.input_tags.sparse = symmetric
        return tags


def numbers_of(name: str, value: Any) -> NDArray[Any]:
    """A parameter that is one number or a list of numbers, as an array."""
    try:
        given = np.asarray(value)
    except ValueError:  # ragged
        given = np.empty((0, 0))
    if given.ndim > 1 or given.dtype.kind not in "iuf":
        raise ParameterError(
            name, value, "a number or one number per column of X", f"give one {name} for all, or a list"
        )
    return given


def one_per_column(name: str, value: Any, n_columns: int) -> FloatArray:
    """A bound for every column, from one number or from as many as there are columns."""
    given = numbers_of(name, value)
    if given.ndim == 1 and given.size != n_columns:
        raise ParameterError(
            f"len({name})",
            given.size,
            f"{n_columns}, the number of columns of X",
            "give one bound per column, or a single number for all",
        )
    bounds = np.empty(n_columns)
    bounds[:] = given
    bad = np.flatnonzero(~np.isfinite(bounds))
    if bad.size:
        raise ParameterError(
            entry_name(name, value, bad[0]),
            float(bounds[bad[0]]),
            "a finite number",
            "give a bound that every record keeps by the nature of the column",
        )
    return bounds


def _check_order(given_lower: Any, lower: FloatArray, given_upper: Any, upper: FloatArray) -> None:
    bad = np.flatnonzero(lower >= upper)
    if bad.size:
        j = bad[0]
        raise ParameterError(
            entry_name("lower", given_lower, j),
            float(lower[j]),
            f"a number below {entry_name('upper', given_upper, j)}={float(upper[j])!r}",
            "leave out a column that can have one value only, or widen its bounds",
        )
    with np.errstate(over="ignore"):
        bad = np.flatnonzero(~is_width(upper - lower))
    if bad.size:
        j = bad[0]
        raise ParameterError(
            entry_name("lower", given_lower, j),
            float(lower[j]),
            f"a number that differs from {entry_name('upper', given_upper, j)}={float(upper[j])!r} by 1e-301 to 1e301",
            "state the range that the column can have by its nature, or change its unit",
        )


def _check_symmetric(lower: FloatArray, upper: FloatArray) -> None:
    bad = np.flatnonzero(lower != -upper)
    if bad.size:
        raise ParameterError(
            "lower",
            float(lower[bad[0]]),
            f"{-float(upper[bad[0]])!r}, that is -upper, in every column of a sparse X, whose zeros would fill "
            "up otherwise",
            "widen the bounds until they are symmetric about zero, or pass a dense X",
        )


def entry_name(name: str, given: Any, j: int) -> str:
    """How a message calls the bound of column j."""
    return f"{name}[{j}]" if np.ndim(given) else name


def fact_of(bounds: FloatArray) -> float | list[float]:
    """For the certificate: one number where all columns share it."""
    return float(bounds[0]) if (bounds == bounds[0]).all() else bounds.tolist()


def _with_column_values(X: Any, values: FloatArray) -> tuple[Any, FloatArray]:
    """A copy of a sparse matrix, and each entry's column value."""
    out = X.copy()
    if out.format == "csr":
        return out, values[out.indices]
    return out, np.repeat(values, np.diff(out.indptr))
