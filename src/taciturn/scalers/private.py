"""Columns without public bounds, mapped to [-1, 1] from bounds that private quantiles find."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.certificate import certify
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer, check_real
from taciturn.data.admission import PresentRecords, finite_rows
from taciturn.data.persons import PERSON_WEIGHT
from taciturn.fitting.procedure import Persons, PrivateEstimator, PublicFacts
from taciturn.fitting.quantiles import release_bounds
from taciturn.planning.quantiles import BoundsPlan, plan_bounds
from taciturn.scalers.bounded import LinearScaler, entry_name, fact_of, numbers_of, one_per_column
from taciturn.sources import ArraySource, BlockBuilder, OpenTable, Source

__all__ = ["PrivateScaler"]


# Grids within these ends have points that differ by more than rounding and widths that do not overflow.
_LEAST, _MOST = 1e-300, 1e300


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
    taciturn.certificate.certificate_of : The certificate of a whole pipeline.

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

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        smallest: ArrayLike = 1e-3,
        largest: ArrayLike = 1e6,
        tail: float = 0.05,
        invalid: str = "raise",
        missing: str = "record",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.smallest = smallest
        self.largest = largest
        self.tail = tail
        self.invalid = invalid
        self.missing = missing
        self.account = account
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, persons: Any = None) -> Self:
        """Find the bounds: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), dask array or data frame, or open table
            The features, in their own units.
        y : None
            Ignored.
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
        X, _, persons = self._open(X, None, persons)
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
        records = PresentRecords(table, np.zeros(n_rows), np.arange(n_rows), n_rows)
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
