"""Scalers with public bounds, and with bounds from private quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import Guarded
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, check_is_fitted
from taciturn.core.validation import FloatArray, Invalid, check_choice, check_integer, check_real, is_width
from taciturn.data.design import centre_and_half, to_unit_range
from taciturn.data.persons import PERSON_WEIGHT
from taciturn.data.records import (
    Records,
    admission_assumptions,
    check_invalid,
    finite_rows,
    names_of_columns,
    read_judged_table,
    read_scaled,
    read_table,
)
from taciturn.engines.interface import (
    ArraySource,
    BlockBuilder,
    OpenTable,
    Source,
    is_spark,
    open_arguments,
    partitionwise,
)
from taciturn.methods.base import Persons, PrivateEstimator, PublicFacts
from taciturn.methods.options import MissingCells
from taciturn.methods.scaling.plan import BoundsPlan, plan_bounds
from taciturn.methods.scaling.run import release_bounds
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import Certificate, certify

# ---- Columns with public bounds, mapped to [-1, 1].


def _column_beside(X: Any, y: Any) -> Any:
    """The target's column of a frame of Spark, which is no feature; other targets are ignored."""
    return y if is_spark(X) else None


class LinearScaler(Guarded, OneToOneFeatureMixin, TransformerMixin):
    """Values are clipped to ``lower_`` and ``upper_`` of their column and mapped to [-1, 1]."""

    invalid: Invalid
    lower_: FloatArray
    upper_: FloatArray
    n_features_in_: int

    _formats: ClassVar[Any] = False
    """The formats of sparse tables that are taken, if any are."""

    def _read_table(self, X: Any, *, reset: bool) -> Any:
        read = read_judged_table if self.invalid == "null" else read_table
        return read(self, X, reset=reset, layouts=self._formats)

    @partitionwise
    def transform(self, X: Any) -> FloatArray | Any:
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
    def inverse_transform(self, X: Any) -> FloatArray | Any:
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
    bounds : mapping of str to pairs of float, default=None
        Lower and upper bound of every column by its name, in place of the two: ``{"age": (18, 100)}``. X has to have
        these names, in any order.
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
    taciturn.privacy.pipeline.certificate_of : The certificate of a whole pipeline.

    Notes
    -----
    Sparse X stays sparse and is accepted where ``lower == -upper`` in every column: then, and only then, zero
    is mapped to zero. Output is float64.

    Examples
    --------
    >>> from taciturn import BoundedScaler
    >>> ages_and_pressures = [[0, 120], [60, 80], [140, 300]]
    >>> BoundedScaler(lower=[0, 40], upper=[120, 200]).fit_transform(ages_and_pressures)
    array([[-1. ,  0. ],
           [ 0. , -0.5],
           [ 1. ,  1. ]])
    """

    _formats = ("csr", "csc")

    def __init__(
        self,
        *,
        lower: ArrayLike = -1.0,
        upper: ArrayLike = 1.0,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        invalid: Invalid = "raise",
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.bounds = bounds
        self.invalid = invalid

    def fit(self, X: Any, y: Any = None) -> BoundedScaler:
        """Check the bounds against the columns of X, and certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            Only its shape and its column names are used.
        y : None
            Ignored, but for a column of a frame of Spark that is no feature, by its name.
        """
        check_invalid(self.invalid)
        stated_lower, stated_upper = self.lower, self.upper
        X, *_ = open_arguments(X, _column_beside(X, y), None)
        if self.bounds is not None:
            names = X.names if isinstance(X, OpenTable) else names_of_columns(X)
            stated_lower, stated_upper = self._named_bounds(names)
        assumptions: tuple[str, ...] = ()
        if isinstance(X, OpenTable):
            assumptions = X.assumptions
            X.name_features(self)
            n_columns, sparse = X.n_features, X.is_sparse
        else:
            X = self._read_table(X, reset=True)
            n_columns, sparse = X.shape[1], sp.issparse(X)
        lower = one_per_column("lower", stated_lower, n_columns)
        upper = one_per_column("upper", stated_upper, n_columns)
        _check_order(stated_lower, lower, stated_upper, upper)
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

    def _named_bounds(self, names: Any) -> tuple[list[Any], list[Any]]:
        """Lower and upper bounds in the order of the columns; raise unless every column has its own, by name."""
        bounds = self.bounds
        if not isinstance(bounds, Mapping):
            remedy = 'write {"age": (18, 100)}, or give lower and upper'
            raise ParameterError("bounds", bounds, "a mapping from names of columns to pairs of numbers", remedy)
        for name, default in (("lower", -1.0), ("upper", 1.0)):
            if not np.array_equal(getattr(self, name), default):
                raise ParameterError(name, getattr(self, name), "nothing beside bounds", "give bounds, or the two")
        if names is None:
            raise ParameterError(
                "bounds", list(bounds), "X with names of columns", "pass a data frame, or give lower and upper in order"
            )
        listed = [str(name) for name in names]
        for name in bounds:
            if name not in listed:
                raise ParameterError("bounds", name, "names that X has", "check the spelling, or leave it out")
        for name in listed:
            if name not in bounds:
                raise ParameterError(
                    "bounds", list(bounds), f"bounds of every column, and {name!r} has none", "state them, or drop it"
                )
            if isinstance(bounds[name], str) or np.shape(bounds[name]) != (2,):
                remedy = "write its lower and its upper bound"
                raise ParameterError(f"bounds[{name!r}]", bounds[name], "a pair of numbers", remedy)
        return [bounds[name][0] for name in listed], [bounds[name][1] for name in listed]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            pairs = (self.lower, self.upper) if self.bounds is None else np.transpose([*self.bounds.values()])
            symmetric = bool(np.all(np.asarray(pairs[0]) == -np.asarray(pairs[1])))
        except (TypeError, ValueError, AttributeError, IndexError):
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


# ---- Columns without public bounds, mapped to [-1, 1] from bounds that private quantiles find.

# Grids within these ends have points that differ by more than rounding and widths that do not overflow.
_LEAST, _MOST = 1e-300, 1e300


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(LinearScaler, PrivateEstimator):
    r"""Map columns linearly to [-1, 1] from bounds found privately.

    A value x of a column with bounds l < u becomes

    .. math:: \frac{\min(\max(x, l), u) - (l + u) / 2}{(u - l) / 2},

    where l and u are private estimates of the quantiles ``tail`` and ``1 - tail`` of the column, rounded outwards to a
    public grid: zero and, with either sign, all numbers of two significant digits from ``smallest`` to ``largest``.
    Where public bounds are known, ``BoundedScaler`` does the same at no cost.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: ``lower_`` and ``upper_``, by 2 d exponential
    mechanisms of equal noise under one accountant. Sensitivity: ``data.sensitivity.opposite_quantile_scores``. Scores
    are exact integers. Public: the number of columns, that of records (``n_public`` under add-remove) and all
    parameters. Neighbours differ in a whole row, which under zero-out and add-remove is absent from one of them and
    counts in no rank of any column; so is a record that ``invalid="null"`` makes null. With ``missing="cell"`` a cell
    that is no finite number counts in no rank of its column, and its record in those of the others: a record still adds
    to each score what it adds where it is present, or nothing. What ``transform`` returns for the fitted records is as
    sensitive as they are: let another private step follow.

    Parameters
    ----------
    %(epsilon)s
        The exact quantiles are then taken, on the same grid.
    %(delta)s
        0 is pure privacy, which needs more records.
    %(relation)s
    %(n_public_required)s
    smallest, largest : float or array-like of shape (n_features,), default=1e-3, 1e6
        Public ends of the grid: sizes below and above which values of a column need not be distinguished. One number
        for all columns, or one for each. A wide range costs little: the noise matters in proportion to the logarithm
        of the number of points, 90 for each power of ten.
    tail : float, default=0.05
        Share of values to clip at each end, at least 0.001 and less than 0.5.
    %(invalid)s
        ``transform`` then leaves NaN in place of such a cell, for the next step to see.
    missing : {"record", "cell"}, default="record"
        With ``invalid="null"``, what a cell that is no finite number takes out: its whole record, or itself alone, so
        that the bounds of every column come from the cells that it has.
    %(random_state)s

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_features_in_,)
        The bounds, one per column.
    %(common_attributes)s

    See Also
    --------
    BoundedScaler : For public bounds.
    taciturn.privacy.pipeline.certificate_of : The certificate of a whole pipeline.

    Notes
    -----
    The noise of 2 d quantiles must be small beside ``tail`` times the number of records; a fit that could not keep to
    that is refused before anything is spent. At the defaults 10 columns take about 3,700 records and 100 columns
    13,700; with ``persons`` a quarter more of them, as a person's rows can lie at both ends of a column.

    Where both bounds of a column coincide, nearly all of its values may be equal, as in a column of truth values that
    are rarely true. It gets a narrow range about that point (1 percent of it, or ``smallest``): the point becomes 0,
    what is larger 1 and what is smaller -1.

    The grid is fine near zero and coarse far from it. A column with a large offset, such as a year, is better for the
    subtraction of a public constant first. Sparse tables are refused, since their zeros would fill up.

    References
    ----------
    Smith, *Privacy-preserving statistical estimation with optimal convergence rates* (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import PrivateScaler
    >>> rng = np.random.default_rng(0)
    >>> incomes_and_flags = np.column_stack((rng.lognormal(10, 1, 5000), rng.random(5000) < 0.3))
    >>> scaler = PrivateScaler(epsilon=1.0, random_state=0).fit(incomes_and_flags)
    >>> scaler.lower_.tolist(), scaler.upper_.tolist()
    ([4300.0, 0.0], [120000.0, 1.0])
    """

    persons_refused = None
    partitions_refused = None

    smallest: ArrayLike = 1e-3
    largest: ArrayLike = 1e6
    tail: float = 0.05
    invalid: Invalid = "raise"
    missing: MissingCells = "record"
    account: Account | str | None = None
    random_state: int | None = None

    def _check_outcomes(self, table: OpenTable) -> None:
        """Bounds of columns are found without a target."""

    def fit(self, X: Any, y: Any = None, persons: Any = None) -> Self:
        """Find the bounds: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), dask array or data frame, or open table
            The features, in their own units.
        y : None
            Ignored, but for a column of a frame of Spark that is no feature, by its name.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together, and each person counts once in every quantile. A row without a key is a
            null row. None: every row is a record of its own.

        Returns
        -------
        self : object
            The fitted scaler.
        """
        self.check_parameters()
        X, _, persons = self._open(X, _column_beside(X, y), persons)
        facts, whose = self._person_facts(self._public_facts(X, y), persons)
        plan = self._plan(facts)
        with self._reserve(plan, facts) as reservation:
            stream = Stream.of(self.random_state)
            reservation.begin()
            self._log("reading")
            source = self._read(X, facts, whose)
            self._log("running")
            self.lower_, self.upper_ = release_bounds(plan, source, stream)
        smallest, largest = self._ends(facts.n_features)
        self.certificate_ = certify(
            plan.releases,
            plan.budget,
            relation=self.relation,
            public=self._public_description(facts)
            | {"tail": float(self.tail), "smallest": fact_of(smallest), "largest": fact_of(largest)}
            | ({"missing": self.missing} if self.missing == "cell" else {}),
            assumptions=(
                "the range of sizes was chosen without looking at these data",
                *self._admission(None),
                *facts.assumptions,
            ),
            seeded=stream.seeded,
            arithmetic=plan.arithmetic,
            ordered=plan.ordered,
            unit=facts.unit,
            account_head=reservation.head,
        )
        self._log("certified")
        return self

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        self._require_public_count()
        check_real(1e-3, 0.5, closed="left", tail=self.tail)
        check_choice(("record", "cell"), missing=self.missing)
        if self.missing == "cell" and self.invalid != "null":
            raise ParameterError("missing", self.missing, "invalid='null' beside it", "set both, or leave it out")
        for name in ("smallest", "largest"):
            given = getattr(self, name)
            for j, size in enumerate(numbers_of(name, given).flat):
                bound: dict[str, Any] = {entry_name(name, given, j): float(size)}
                check_real(_LEAST, _MOST, **bound)

    def _plan(self, facts: PublicFacts) -> BoundsPlan:
        smallest, largest = self._ends(facts.n_features)
        return plan_bounds(
            Budget(self.epsilon, self.delta),
            relation=self.relation,
            n_rows=check_integer(0, n_public=facts.n_records),
            tail=self.tail,
            smallest=smallest,
            largest=largest,
            weight=PERSON_WEIGHT if facts.unit == "person" else 1,
        )

    def _read(self, X: Any, facts: PublicFacts, persons: Persons | None = None) -> Source:
        """The records that are not null, in their own units and without a target."""
        if isinstance(X, OpenTable):
            builder = BlockBuilder(
                math.inf, self.invalid, None, numeric=True, sparse=False, own_units=True, gaps=self.missing == "cell"
            )
            return X.read(self, builder, facts.n_records, persons)
        table = self._read_table(X, reset=True)
        n_rows = table.shape[0]
        records = Records(table, np.zeros(n_rows), np.arange(n_rows), n_rows)
        if self.missing == "record":
            records = records.keep(finite_rows(table))
        return ArraySource(records if persons is None else records.of_persons(persons()), math.inf, facts.n_records)

    def _ends(self, n_columns: int) -> tuple[FloatArray, FloatArray]:
        """The ends of each column's grid, which needs the number of columns to be known."""
        smallest = one_per_column("smallest", self.smallest, n_columns)
        largest = one_per_column("largest", self.largest, n_columns)
        bad = np.flatnonzero(largest < 2.0 * smallest)
        if bad.size:
            j = bad[0]
            raise ParameterError(
                entry_name("largest", self.largest, j),
                float(largest[j]),
                f"at least twice {entry_name('smallest', self.smallest, j)}={float(smallest[j])!r}",
                "widen the range of sizes, which costs little",
            )
        return smallest, largest

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags
