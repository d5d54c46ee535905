"""Hill climbing for the neighbours between which a statistic changes most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.random import Generator

from taciturn.audit.pair import Pair
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import check_choice, check_integer, check_positive
from taciturn.data.sensitivity import check_relation
from taciturn.data.target import check_classes, check_y_bounds

__all__ = ["SearchResult", "sensitivity_search"]

Table = tuple[FloatArray, np.ndarray]
Function = Callable[[FloatArray, np.ndarray], Any]

# A larger excess over the declared sensitivity is not rounding.
_SLACK = 1e-9
_NORMS: dict[str, Callable[[FloatArray], float]] = {
    "linf": lambda change: float(np.max(np.abs(change))),
    "l1": lambda change: float(np.sum(np.abs(change))),
    "l2": lambda change: float(np.linalg.norm(change)),
}


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """Largest change that a search found.

    Parameters
    ----------
    change : float
        In the norm of the search.
    declared : float or None
        The sensitivity that was declared.
    norm : {"linf", "l1", "l2"}
        How changes are measured.
    pair : Pair
        Neighbours (X, y) that attain it.
    """

    change: float
    declared: float | None
    norm: str
    pair: Pair

    @property
    def ratio(self) -> float | None:
        """Largest change as a share of the declared sensitivity."""
        return None if self.declared is None else self.change / self.declared

    @property
    def verdict(self) -> str:
        """Either "exceeded" or "not exceeded"."""
        exceeded = self.declared is not None and self.change > self.declared * (1.0 + _SLACK)
        return "exceeded" if exceeded else "not exceeded"

    def __str__(self) -> str:
        found = f"largest change found: {self.change:.6g} in the {self.norm} norm ({self.pair.relation})"
        if self.declared is None:
            return f"Sensitivity search: {found}; none was declared. {self.pair.words}."
        return f"Sensitivity search: {self.verdict}. The {found}; declared: {self.declared:.6g}. {self.pair.words}."


@dataclass(slots=True)
class _State:
    """A table and the index of its changing record; under replace-one the last row is its replacement."""

    X: FloatArray
    y: np.ndarray
    changing: int


def sensitivity_search(
    function: Function,
    bounds: tuple[float, Sequence[Any]],
    relation: str,
    *,
    declared: float | None = None,
    norm: str = "linf",
    n_records: int = 5,
    n_columns: int = 3,
    rounds: int = 200,
    restarts: int = 5,
    random_state: int = 0,
) -> SearchResult:
    r"""The largest change of a score or transcript between neighbours, by hill-climbing.

    .. math:: \max_{D \sim D'} \| f(D) - f(D') \|

    Each restart begins with a random table. A round changes a few of its entries, rows or targets, or the record by
    which the neighbours differ, and keeps the result unless the change has become smaller.

    Parameters
    ----------
    function : callable
        ``function(X, y)``: the statistic, an array of finite numbers with a shape that does not depend on the number
        of rows.
    bounds : tuple
        ``(x_bound, target)``: every feature value lies in [-x_bound, x_bound]. A target that is a tuple of two numbers
        is the range of y; a list, or a tuple of anything else, holds the labels.
    relation : {"zero-out", "add-remove", "replace-one"}
        Under the first two the function is called with one row left out, under the third with one row replaced.
    declared : float, default=None
        The declared sensitivity.
    norm : {"linf", "l1", "l2"}, default="linf"
        The norm of the change.
    n_records, n_columns : int, default=5, 3
        Size of the tables.
    rounds, restarts : int, default=200, 5
        Rounds of each climb, and number of climbs.
    random_state : int, default=0
        Seed of the search.

    Returns
    -------
    SearchResult
        The change, the pair that attains it and the verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.audit import sensitivity_search
    >>> result = sensitivity_search(lambda X, y: X.T @ y, (1.0, (-1.0, 1.0)), "replace-one", declared=1.0)
    >>> round(result.change, 2), result.verdict
    (2.0, 'exceeded')
    """
    relation, norm = check_relation(relation), check_choice(tuple(_NORMS), norm=norm)
    declared = None if declared is None else check_positive(declared=declared)
    shape = check_integer(2, n_records=n_records), check_integer(1, n_columns=n_columns)
    rounds, restarts = check_integer(1, rounds=rounds), check_integer(1, restarts=restarts)
    rng = np.random.default_rng(check_integer(0, random_state=random_state))
    tables = _Tables(*_check_bounds(bounds), *shape, relation == "replace-one")

    def climbed() -> tuple[float, _State]:
        state = tables.draw(rng)
        change = _change(function, tables.neighbours(state), norm)
        for _ in range(rounds):
            proposal = tables.move(state, rng)
            proposed = _change(function, tables.neighbours(proposal), norm)
            # Ties are accepted, too: many statistics are constant almost everywhere.
            if proposed >= change:
                state, change = proposal, proposed
        return change, state

    change, state = max((climbed() for _ in range(restarts)), key=itemgetter(0))
    becomes = "replaced" if tables.replace else "left out"
    words = f"Found by search: record {state.changing} of 0 to {n_records - 1} is {becomes}"
    return SearchResult(change, declared, norm, Pair(*tables.neighbours(state), relation, words))


def _change(function: Function, neighbours: tuple[Table, Table], norm: str) -> float:
    values = [np.asarray(function(*table), dtype=np.float64) for table in neighbours]
    if values[0].shape != values[1].shape or values[0].size == 0 or not all(np.isfinite(v).all() for v in values):
        raise DataError(
            "function: expected finite numbers in one shape whatever the number of rows, got something else; try it "
            "on tables of both sizes."
        )
    return _NORMS[norm](np.ravel(values[0] - values[1]))


def _check_bounds(bounds: Any) -> tuple[float, tuple[float, float] | np.ndarray]:
    """The bound on features, and the range of y or its labels."""
    if not isinstance(bounds, tuple) or len(bounds) != 2 or not isinstance(bounds[1], tuple | list):
        raise ParameterError(
            "bounds", bounds, "(x_bound, target)", "give the range of y as (low, high), or its labels as a list"
        )
    x_bound, target = check_positive(x_bound=bounds[0]), bounds[1]
    ranged = isinstance(target, tuple) and len(target) == 2 and all(isinstance(end, Real) for end in target)
    return x_bound, check_y_bounds(target) if ranged else check_classes(target)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Random tables within the bounds, and moves between them."""

    x_bound: float
    target: tuple[float, float] | np.ndarray
    n_records: int
    n_columns: int
    replace: bool

    def draw(self, rng: Generator) -> _State:
        """Draw a random table: on average half of its rows are uniform, half at the bounds."""
        n_rows = self.n_records + self.replace
        X = np.where(rng.random((n_rows, 1)) < 0.5, self._corners(n_rows, rng), self._inside(n_rows, rng))
        return _State(X, self._targets(n_rows, rng), int(rng.integers(self.n_records)))

    def move(self, state: _State, rng: Generator) -> _State:
        """Return a copy after one or a few random moves."""
        state = _State(state.X.copy(), state.y.copy(), state.changing)
        for _ in range(rng.geometric(0.6)):
            self._move(state, rng)
        return state

    def _move(self, state: _State, rng: Generator) -> None:
        row, other = rng.integers(len(state.X), size=2)
        column = rng.integers(self.n_columns)
        match rng.integers(8):
            case 0:
                state.X[row, column] = self._inside(1, rng)[0, 0]
            case 1:
                state.X[row, column] = self._corners(1, rng)[0, 0]
            case 2:
                state.X[row, column] *= -1.0
            case 3:
                state.X[row] *= -1.0
            case 4:
                state.y[row] = self._targets(1, rng)[0]
            case 5:
                state.X[row], state.y[row] = self._corners(1, rng)[0], self._targets(1, rng)[0]
            case 6:
                state.X[row], state.y[row] = state.X[other], state.y[other]
            case 7:
                state.changing = int(rng.integers(self.n_records))

    def neighbours(self, state: _State) -> tuple[Table, Table]:
        """Return the table and its neighbour, with one record left out or replaced."""
        X, y = state.X[: self.n_records], state.y[: self.n_records]
        if not self.replace:
            return (X, y), (np.delete(X, state.changing, axis=0), np.delete(y, state.changing))
        X2, y2 = X.copy(), y.copy()
        X2[state.changing], y2[state.changing] = state.X[-1], state.y[-1]
        return (X, y), (X2, y2)

    def _inside(self, n_rows: int, rng: Generator) -> FloatArray:
        return rng.uniform(-self.x_bound, self.x_bound, (n_rows, self.n_columns))

    def _corners(self, n_rows: int, rng: Generator) -> FloatArray:
        return rng.choice([-self.x_bound, self.x_bound], (n_rows, self.n_columns))

    def _targets(self, n_rows: int, rng: Generator) -> np.ndarray:
        values = rng.choice(self.target, n_rows)
        if isinstance(self.target, tuple):
            values = np.where(rng.random(n_rows) < 0.5, values, rng.uniform(*self.target, n_rows))
        return values
