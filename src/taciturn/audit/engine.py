"""Audits: lower bounds on epsilon from exact laws, from searches, and from runs on two neighbours."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from numbers import Real
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from taciturn._version import __version__
from taciturn.audit.observing import (
    Bound,
    Outcomes,
    Statistic,
    best_event,
    gaussian_bound,
    linear_score,
    outcomes_in_words,
    ratio_bound,
    statistics_of,
)
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import (
    FloatArray,
    WordArray,
    check_choice,
    check_delta,
    check_integer,
    check_positive,
    check_real,
    check_truth,
)
from taciturn.data.sensitivity import Relation, check_relation
from taciturn.data.target import check_classes, check_y_bounds
from taciturn.privacy.gdp import epsilon_of_mu
from taciturn.privacy.transcript import Limit

# ---- Distances between two values before noise, as shares of the declared sensitivity.

# The difference of two doubles is rounded, once.
_ROUNDING = 1.0 + 2.0**-50

_NORMS: dict[str, Callable[[np.ndarray], float]] = {
    "linf": lambda change: float(np.abs(change).max(initial=0.0)),
    "l1": lambda change: float(np.abs(change).sum()),
    "l2": lambda change: float(np.linalg.norm(change)),
    "range": lambda change: float(np.ptp(change)) if change.size else 0.0,
}


def shares_of_limits(
    first: np.ndarray, second: np.ndarray, limits: tuple[Limit, ...]
) -> tuple[tuple[str, float, float], ...]:
    """For each limit its norm, the limit, and the distance as a share of it.

    Integers are compared exactly: a share is above 1 if and only if the distance is above the limit. Differences of
    doubles have the rounding of one subtraction taken off.
    """
    if first.dtype.kind in "iu":
        moves = [a - b for a, b in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)]
        return tuple((norm, limit, _exact_share(moves, norm, limit)) for norm, limit in limits)
    change = first.astype(np.float64).ravel() - second.astype(np.float64).ravel()
    return tuple((norm, limit, _ratio(_NORMS[norm](change), limit * _ROUNDING)) for norm, limit in limits)


def _exact_share(moves: list[int], norm: str, limit: float) -> float:
    squared = norm == "l2"
    if squared:
        distance = sum(move * move for move in moves)
    elif norm == "l1":
        distance = sum(abs(move) for move in moves)
    elif norm == "range":
        distance = max(moves, default=0) - min(moves, default=0)
    else:
        distance = max((abs(move) for move in moves), default=0)
    allowed = Fraction(limit) ** 2 if squared else Fraction(limit)
    share = _ratio(distance, allowed)
    # A comparison of fractions by doubles could be wrong by rounding.
    if distance > allowed:
        return max(math.sqrt(share) if squared else share, math.nextafter(1.0, 2.0))
    return min(math.sqrt(share) if squared else share, 1.0)


def _ratio(distance: Any, limit: Any) -> float:
    if limit == 0:
        return math.inf if distance else 0.0
    return float(distance / limit)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring data sets, chosen to be hard to protect.

    Parameters
    ----------
    first, second : object
        The data sets, for fits usually tuples (X, y). Under zero-out the number of records is public: give a record of
        one of them a label outside all classes. For a fit to numbers use add-remove, with ``n_public``, and leave the
        row out.
    relation : {"zero-out", "add-remove", "replace-one"}
        In what sense they are neighbours.
    words : str
        One sentence that says what is bad about them.
    """

    first: Any
    second: Any
    relation: Relation
    words: str

    def __post_init__(self) -> None:
        check_relation(self.relation)
        check_text(words=self.words)


def check_text(**named: object) -> str:
    """Raise if the value is not text."""
    ((name, value),) = named.items()
    if not isinstance(value, str):
        raise ParameterError(name, value, "text", "describe it in words")
    return value


def check_pair(neighbours: object) -> Pair:
    """Return the pair; raise if it is none."""
    if not isinstance(neighbours, Pair):
        # The value itself is two whole data sets, too long for a message.
        remedy = "build Pair(first, second, relation, words)"
        raise ParameterError("neighbours", type(neighbours).__name__, "a Pair", remedy)
    return neighbours


ROUTES = ("Clopper-Pearson", "Gaussian", "exact")
"""How a bound was found."""

_FORMAT = "taciturn-audit"
_SCHEMA = 1
_NUMBERS = ("lower_bound", "claimed")
# Laws are in double precision; a smaller excess over the claim is rounding.
_EXACT_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """A lower bound on epsilon, and the claim that it may refute.

    Parameters
    ----------
    lower_bound : float
        Epsilon is at least this.
    claimed : float or None
        The epsilon that was claimed at the same delta.
    delta : float
        Probability beyond epsilon.
    confidence : float
        Probability with which the procedure states a true bound; 1 for the exact route.
    trials : int
        Number of runs on each of the two data sets; 0 for the exact route.
    event, pair : str
        What tells the two data sets apart, and the two data sets, in words.
    route : {"Clopper-Pearson", "Gaussian", "exact"}
        How the bound was found.
    relation : {"zero-out", "add-remove", "replace-one"}
        In what sense they are neighbours.
    seed : int or None
        From which the seeds of all runs follow; None for the exact route.
    name : str, default=""
        What was audited.
    """

    lower_bound: float
    claimed: float | None
    delta: float
    confidence: float
    trials: int
    event: str
    route: str
    pair: str
    relation: str
    seed: int | None
    name: str = ""

    def __post_init__(self) -> None:
        check_real(0.0, math.inf, lower_bound=self.lower_bound)
        if self.claimed is not None:
            check_real(0.0, math.inf, claimed=self.claimed)
        check_delta(delta=self.delta)
        check_real(0.0, 1.0, confidence=self.confidence)
        check_integer(0, trials=self.trials)
        check_choice(ROUTES, route=self.route)
        check_relation(self.relation)
        if self.seed is not None:
            check_integer(0, seed=self.seed)
        for field in ("event", "pair", "name"):
            check_text(**{field: getattr(self, field)})

    @property
    def verdict(self) -> str:
        """Either "violated" or "no violation found"."""
        slack = _EXACT_SLACK if self.route == "exact" else 0.0
        violated = self.claimed is not None and self.lower_bound > self.claimed * (1.0 + slack) + slack
        return "violated" if violated else "no violation found"

    def to_json(self, indent: int | None = 2) -> str:
        """Return the result as JSON text; :meth:`from_json` restores it."""
        content = asdict(self)
        for field in _NUMBERS:
            # JSON has no infinity.
            content[field] = "inf" if content[field] == math.inf else content[field]
        head = {"format": _FORMAT, "schema": _SCHEMA, "taciturn": __version__}
        return json.dumps(head | content | {"verdict": self.verdict}, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> AuditResult:
        """Read what :meth:`to_json` wrote; the verdict is computed again."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError:
            content = None
        if not isinstance(content, dict) or (content.get("format"), content.get("schema")) != (_FORMAT, _SCHEMA):
            raise DataError(
                f"text: expected JSON with format {_FORMAT!r} and schema {_SCHEMA}, got something else; pass what "
                "AuditResult.to_json() of this version returned."
            )
        missing = [field.name for field in fields(cls) if field.name not in content]
        if missing:
            raise DataError(f"text: expected a complete result, found no {missing[0]}; ask for a fresh copy.")
        found: dict[str, Any] = {field.name: content[field.name] for field in fields(cls)}
        found |= {field: math.inf for field in _NUMBERS if found[field] == "inf"}
        return cls(**found)

    def __str__(self) -> str:
        subject = f"Audit of {self.name}" if self.name else "Audit"
        against = "no claim to compare with" if self.claimed is None else f"the claim is epsilon = {self.claimed:.6g}"
        if self.route == "exact":
            found, how = f"{self.lower_bound:.6g}", "computed from the laws of all outcomes"
        else:
            found = _rounded_down(self.lower_bound)
            how = (
                f"{self.confidence:.6g} confidence, {self.trials:,} runs on each data set, seed {self.seed}, "
                f"{self.route} bounds"
            )
            if self.route == "Gaussian":
                how += " for a release with a Gaussian trade-off"
        return (
            f"{subject}: {self.verdict}. Epsilon is at least {found} at delta = {self.delta:.6g} ({how}); {against}. "
            f"Event: {self.event}. Neighbours ({self.relation}): {self.pair}."
        )


def _rounded_down(number: float) -> str:
    """Round a lower bound down to four digits."""
    if number == 0.0 or math.isinf(number):
        return f"{number:.4g}"
    step = 10.0 ** (math.floor(math.log10(number)) - 3)
    return f"{math.floor(number / step) * step:.4g}"


# ---- The smallest epsilon of two laws in closed form.

# Tolerance for the sum of all probabilities.
_SUM_SLACK = 1e-9
# Smaller differences between epsilons, and smaller shares of delta, are rounding.
_TIE = 1e-12


def audit_exact(
    law: Callable[[Any], Mapping[Hashable, float]],
    neighbours: Pair,
    delta: float = 0.0,
    *,
    claimed: float | None = None,
    name: str = "",
) -> AuditResult:
    r"""The smallest epsilon of a release whose law has a closed form, on one pair of neighbours.

    With P and Q the laws on the two data sets, in both orders,

    .. math:: \varepsilon = \max_{S} \ln \frac{P(S) - \delta}{Q(S)},

    which is the smallest epsilon for which the hockey-stick divergence
    :math:`\sum_o \max(P(o) - e^\varepsilon Q(o), 0)` is at most delta. The best S holds the outcomes with the largest
    ratios P(o) / Q(o); so all of them are tried, one more outcome at a time. For delta = 0 epsilon is the largest
    absolute log-ratio, and infinite where one law allows what the other one excludes.

    Parameters
    ----------
    law : callable
        ``law(data)``: the probability of every outcome, as a mapping.
    neighbours : Pair
        The two data sets.
    delta : float, default=0.0
        Probability beyond epsilon.
    claimed : float, default=None
        The epsilon that was promised at this delta, for the verdict.
    name : str, default=""
        What is audited.

    Returns
    -------
    AuditResult
        With ``route="exact"``; the event lists the outcomes that attain the bound.

    Examples
    --------
    >>> from taciturn.audit import Pair, audit_exact
    >>> pair = Pair(1, 0, "replace-one", "the only record is the bit itself")
    >>> result = audit_exact(lambda bit: {bit: 0.75, 1 - bit: 0.25}, pair, claimed=1.0)
    >>> round(result.lower_bound, 4), result.verdict
    (1.0986, 'violated')
    """
    pair = check_pair(neighbours)
    delta = check_delta(delta=delta)
    claimed = None if claimed is None else check_real(0.0, math.inf, claimed=claimed)
    name = check_text(name=name)
    if not callable(law):
        raise ParameterError("law", type(law).__name__, "a callable law(data)", "wrap the law in a function")
    laws = _law_of(law, pair.first), _law_of(law, pair.second)
    outcomes = list(laws[0] | laws[1])
    first, second = (np.array([one.get(outcome, 0.0) for outcome in outcomes], dtype=np.float64) for one in laws)
    forward, backward = _worst_set(first, second, delta), _worst_set(second, first, delta)
    epsilon, members = max(forward, backward, key=lambda found: found[0])
    side = "second" if backward[0] > forward[0] else "first"
    return AuditResult(
        lower_bound=max(0.0, epsilon),
        claimed=claimed,
        delta=delta,
        confidence=1.0,
        trials=0,
        event=outcomes_in_words("the outcome", [outcomes[i] for i in members]) + f", likelier on the {side} data set",
        route="exact",
        pair=pair.words,
        relation=pair.relation,
        seed=None,
        name=name,
    )


def _law_of(law: Callable[[Any], Mapping[Hashable, float]], data: Any) -> dict[Hashable, float]:
    found = law(data)
    if isinstance(found, Mapping):
        found = {outcome: float(probability) for outcome, probability in found.items()}
        if all(p >= 0.0 for p in found.values()) and abs(math.fsum(found.values()) - 1.0) <= _SUM_SLACK:
            return found
    raise DataError(
        "law: expected a mapping from outcomes to probabilities that are not negative and sum to 1, got something "
        "else; enumerate all outcomes."
    )


def _worst_set(law: np.ndarray, other: np.ndarray, delta: float) -> tuple[float, list[int]]:
    """The largest ``ln((P(S) - delta) / Q(S))``, and S."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # Outcomes of probability zero under both laws have no ratio and come last.
        ratios = np.nan_to_num(np.log(law) - np.log(other), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        order = np.argsort(-ratios, kind="stable")
        above = np.cumsum(law[order]) - delta
        values = np.where(above > _TIE * delta, np.log(above) - np.log(np.cumsum(other[order])), -np.inf)
    best = values.max()
    attained = np.flatnonzero(values >= best - _TIE) if np.isfinite(best) else np.flatnonzero(values == best)
    return float(best), order[: attained[-1] + 1].tolist()


# ---- Hill climbing for the neighbours between which a statistic changes most.

Table = tuple[FloatArray, np.ndarray]
Function = Callable[[FloatArray, np.ndarray], Any]

# A larger excess over the declared sensitivity is not rounding.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """Largest change that a search found.

    Parameters
    ----------
    change, declared : float
        The change in the norm of the search, and the sensitivity that was declared, or None.
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
    relation, norm = check_relation(relation), check_choice(("linf", "l1", "l2"), norm=norm)
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
        expected = "(x_bound, target)"
        raise ParameterError("bounds", bounds, expected, "give the range of y as (low, high), or its labels as a list")
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


# ---- Runs on two neighbouring data sets, and the lower bound on epsilon that they give.

Run = Callable[[Any, int], Any]

_SIDES = ("first", "second")
# Large enough for a message between processes, small enough to share the work and to show progress.
_CHUNK_RUNS, _CHUNKS = 500, 50


def audit(
    run: Run,
    neighbours: Pair,
    delta: float,
    trials: int,
    confidence: float = 0.95,
    event: str | Callable[[Any], bool] = "auto",
    *,
    claimed: float | None = None,
    name: str = "",
    random_state: int = 0,
    n_jobs: int = 1,
    progress: bool = False,
) -> AuditResult:
    r"""A lower bound on epsilon, from many runs on two neighbouring data sets.

    With p and q the probabilities of an event on the two data sets, epsilon is at least

    .. math:: \ln \frac{p - \delta}{q} .

    The event, and the data set on which it is likelier, are chosen on the first half of the runs. The other half gives
    a lower bound on p and an upper bound on q (Clopper and Pearson), each wrong with probability at most
    (1 - confidence) / 2. So the stated bound exceeds epsilon with probability at most 1 - confidence, however the
    event was chosen.

    **Privacy.** The result quotes outcomes of the runs and their frequencies: audit public or synthetic data only.

    Parameters
    ----------
    run : callable
        ``run(data, random_state)``: one release. It returns something discrete (an integer, a truth value, a string,
        a tuple, a frozenset), or a one-dimensional array of finite numbers: coefficients, a mask, a transcript. With
        workers it must be picklable.
    neighbours : Pair
        The two data sets.
    delta : float
        Probability beyond epsilon.
    trials : int
        Number of runs on each data set, at least 8.
    confidence : float, default=0.95
        Probability with which the bound is a true one.
    event : {"auto", "gaussian"} or callable, default="auto"
        "auto" looks for the event. Discrete outcomes are put in the order of their likelihood ratios; for arrays,
        linear scores, coordinates and zero/non-zero patterns compete.

        "gaussian" is for arrays with a Gaussian trade-off, such as transcripts of noisy gradients, and delta > 0: both
        errors of a linear test bound :math:`\mu \ge \Phi^{-1}(1 - \alpha) - \Phi^{-1}(\beta)`, and
        :math:`\mu`-GDP gives epsilon at this delta. It sees far more than "auto" where delta is small. Of another kind
        of release it shows only that it is not :math:`\mu`-GDP, which a claimed epsilon need not promise.

        A callable ``event(outcome)`` says whether the event happened. It is fixed in advance, so all runs bound it.
        The side on which it is likelier, and whether the event or its opposite tells more, are not: four bounds share
        1 - confidence.
    claimed : float, default=None
        The epsilon that was promised at this delta, for the verdict.
    name : str, default=""
        What is audited.
    random_state : int, default=0
        From which a seed for every run follows; none is used twice.
    n_jobs : int, default=1
        Number of worker processes. The result is the same for any number.
    progress : bool, default=False
        Whether to draw a progress bar on the standard error stream.

    Returns
    -------
    AuditResult
        The bound, the event in words and the verdict.

    References
    ----------
    Jagielski, Ullman and Oprea, arXiv:2006.07709 (Clopper-Pearson bounds); Nasr et al., arXiv:2302.07956 (the
    Gaussian route).

    Examples
    --------
    Randomised response that keeps its bit with probability 3/4 is ln(3)-DP, and ln(3) is about 1.1.

    >>> import numpy as np
    >>> from taciturn.audit import Pair, audit
    >>> def respond(bit, random_state):
    ...     return bit if np.random.default_rng(random_state).random() < 0.75 else 1 - bit
    >>> pair = Pair(1, 0, "replace-one", "the only record is the bit itself")
    >>> result = audit(respond, pair, delta=0.0, trials=10_000, claimed=0.5, name="randomised response")
    >>> result.verdict
    'violated'
    >>> 1.0 < result.lower_bound < 1.0986
    True
    """
    pair = check_pair(neighbours)
    delta = check_delta(delta=delta)
    trials = check_integer(8, trials=trials)
    confidence = check_real(0.0, 1.0, closed="left", confidence=confidence)
    _check_callables(run, event, delta)
    claimed = None if claimed is None else check_real(0.0, math.inf, claimed=claimed)
    name = check_text(name=name)
    random_state = check_integer(0, random_state=random_state)
    n_jobs = check_integer(1, n_jobs=n_jobs)
    first, second = _outcomes(run, pair, _seeds(random_state, trials), n_jobs, check_truth(progress=progress), name)
    route = "Gaussian" if event == "gaussian" else "Clopper-Pearson"
    if callable(event):
        found, words = _given(event, first, second, delta, (1.0 - confidence) / 4.0)
    else:
        found, words = _chosen(event, first, second, delta, (1.0 - confidence) / 2.0)
    return AuditResult(
        lower_bound=found,
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        trials=trials,
        event=words,
        route=route,
        pair=pair.words,
        relation=pair.relation,
        seed=random_state,
        name=name,
    )


def _check_callables(run: object, event: object, delta: float) -> None:
    if not callable(run):
        expected = "a callable run(data, random_state)"
        raise ParameterError("run", type(run).__name__, expected, "wrap the release in a function")
    if callable(event):
        return
    if check_choice(("auto", "gaussian"), event=event) == "gaussian" and delta == 0.0:
        expected = "a number > 0 for event='gaussian'"
        raise ParameterError("delta", delta, expected, "Gaussian noise has no epsilon at delta=0; set delta")


def _chosen(event: str, first: Outcomes, second: Outcomes, delta: float, tail: float) -> tuple[float, str]:
    """Bound epsilon by the best event of the first half of the runs, on the second half."""
    gaussian = event == "gaussian"
    if gaussian and isinstance(first, list):
        raise DataError("event='gaussian': expected outcomes that are arrays, got discrete ones; set event='auto'.")
    (choosing_first, first), (choosing_second, second) = _halves(first), _halves(second)

    def bound_of(runs: int) -> Bound:
        return gaussian_bound(runs, tail) if gaussian else ratio_bound(runs, delta, tail)

    def statistics(one: Outcomes, other: Outcomes) -> Iterable[Statistic]:
        return [linear_score(one, other)] if gaussian else statistics_of(one, other, tail)

    chosen = best_event(choosing_first, choosing_second, statistics, bound_of)
    counts = chosen.count(first), chosen.count(second)
    found = max(0.0, float(bound_of(len(first))(counts[chosen.likelier], counts[1 - chosen.likelier])))
    words = f"{chosen.words}, likelier on the {_SIDES[chosen.likelier]} data set"
    return (epsilon_of_mu(found, delta) if gaussian else found), words


def _halves(outcomes: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Split runs into those that choose the event and those that bound it."""
    middle = len(outcomes) // 2
    return outcomes[:middle], outcomes[middle:]


def _given(
    event: Callable[[Any], bool], first: Outcomes, second: Outcomes, delta: float, tail: float
) -> tuple[float, str]:
    """Bound epsilon by an event fixed in advance, or its complement, in both directions, on all runs."""
    trials = len(first)
    bound = ratio_bound(trials, delta, tail)
    happened = [sum(bool(event(outcome)) for outcome in outcomes) for outcomes in (first, second)]
    name = getattr(event, "__name__", type(event).__name__)
    options = []
    for words, counts in ((name, happened), (f"not {name}", [trials - count for count in happened])):
        for likelier in (0, 1):
            found = float(bound(counts[likelier], counts[1 - likelier]))
            options.append((found, f"{words}, given in advance, likelier on the {_SIDES[likelier]} data set"))
    found, words = max(options)
    return max(0.0, found), words


def _seeds(random_state: int, trials: int) -> WordArray:
    """One seed for every run, the rows for the two data sets; all differ.

    They have 32 bits, the most that every generator takes, and are drawn in excess, because some are drawn twice.
    """
    wanted = 2 * trials
    words = np.random.PCG64(np.random.SeedSequence(random_state)).random_raw(wanted + wanted // 2 + 64)
    seeds = np.asarray(words >> np.uint64(32))
    _, places = np.unique(seeds, return_index=True)
    return seeds[np.sort(places)[:wanted]].reshape(2, trials)


def _outcomes(
    run: Run, pair: Pair, seeds: WordArray, n_jobs: int, progress: bool, name: str
) -> tuple[Outcomes, Outcomes]:
    """Outcomes of all runs, in the order of the seeds."""
    n_chunks = min(_CHUNKS, math.ceil(seeds.shape[1] / _CHUNK_RUNS))
    tasks = [
        (side, data, chunk.tolist())
        for side, data in enumerate((pair.first, pair.second))
        for chunk in np.array_split(seeds[side], n_chunks)
    ]
    collected: tuple[list[Any], list[Any]] = ([], [])
    jobs = (delayed(_run_chunk)(run, data, chunk) for _, data, chunk in tasks)
    with _progress(name or "audit", seeds.size, progress) as advance:
        results = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
        for (side, _, chunk), outcomes in zip(tasks, results, strict=True):
            collected[side].extend(outcomes)
            advance(len(chunk))
    return _of_one_kind(*collected)


def _run_chunk(run: Run, data: Any, seeds: list[int]) -> list[Any]:
    # One thread, as in a worker process: the order of floating-point sums must not depend on the number of jobs.
    with threadpool_limits(limits=1):
        return [_checked(run(data, seed)) for seed in seeds]


def _checked(outcome: Any) -> Any:
    """Convert an array outcome to doubles; return a discrete outcome unchanged."""
    if isinstance(outcome, np.ndarray):
        usable = outcome.ndim == 1 and outcome.size > 0 and outcome.dtype.kind in "biuf"
        if usable and np.isfinite(outcome).all():
            return outcome.astype(np.float64)
    elif not isinstance(outcome, float | np.floating) and _has_hash(outcome):
        return outcome
    raise DataError(
        "run: expected a discrete, hashable outcome or a one-dimensional array of finite numbers, got something else "
        f"({type(outcome).__name__}); return a tuple, or numbers as np.array([...])."
    )


def _has_hash(outcome: Any) -> bool:
    try:
        hash(outcome)
    except TypeError:
        return False
    return True


def _of_one_kind(first: list[Any], second: list[Any]) -> tuple[Outcomes, Outcomes]:
    kinds = {outcome.shape if isinstance(outcome, np.ndarray) else None for outcome in (*first, *second)}
    if len(kinds) > 1:
        raise DataError(
            "run: expected outcomes of one kind, got arrays of several lengths or beside discrete outcomes; return "
            "the same shape from every run."
        )
    return (first, second) if kinds == {None} else (np.array(first), np.array(second))


@contextmanager
def _progress(name: str, total: int, shown: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function that advances the progress bar, if one is shown."""
    if not shown:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs, time left"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.advance(task, done)
