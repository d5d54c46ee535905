"""What a fit leaves behind, compared to the bit: values, releases, errors, warnings and log records."""

from __future__ import annotations

import enum
import hashlib
import io
import logging
import math
import operator
import struct
import sys
import traceback
import types
import warnings
import weakref
from collections import Counter
from collections.abc import (
    Callable,
    Generator,
    Hashable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import solve
from scipy.special import betainccinv, betaincinv, ndtri
from sklearn.covariance import ledoit_wolf

from taciturn.core.errors import CertificateError, TaciturnError
from taciturn.core.validation import FloatArray
from taciturn.privacy.calibration import proves
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release, check_claim, lines_of_a_record
from taciturn.privacy.events import (
    ComposedEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceMaxEvent,
    OppositeSelectionsEvent,
    PermuteAndFlipEvent,
    PureEvent,
    RepeatAndSelectEvent,
    fold,
    for_group,
)
from taciturn.privacy.filter import chain_cost
from taciturn.privacy.gdp import gaussian_cost, selection_step
from taciturn.privacy.pipeline import certificate_of

# ---- Whether two results are the same to the bit.
# A result is taken apart: attributes, entries, arrays, closures, and what pickling would write of everything else. What
# cannot be taken apart is not taken to be the same.

Facts = dict[str, list[object]]
"""What there is to compare, by the ways that lead to it."""

_TEXT = (str, bytes, bool, int, type(None), enum.Enum, type(NotImplemented), type(...))
_OPAQUE = "cannot be compared"


class _Incomparable:
    """A value that equals nothing, not even itself."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def differing_facts(first: Any, second: Any) -> list[str]:
    """Names of the differing parts of two objects: attributes, entries, bits of arrays, certificates as text."""
    return differing_names(facts_of(first), facts_of(second))


def facts_of(thing: Any) -> Facts:
    """Return a snapshot of all that an object holds; later changes in place do not affect it."""
    facts: Facts = {}
    for name, content in _facts(thing, "", ()):
        facts.setdefault(name, []).append(content)
    return facts


def differing_names(one: Facts, other: Facts) -> list[str]:
    """Names of the parts that differ or cannot be compared."""
    names = [*one, *(name for name in other if name not in one)]
    return [name or "the result" for name in names if one.get(name) != other.get(name)]


def _facts(thing: Any, name: str, above: tuple[int, ...]) -> Iterator[tuple[str, object]]:
    """Iterate over the parts to compare, each with its path."""
    if id(thing) in above:
        yield f"{name} (loop)", above.index(id(thing))
        return
    inside = (*above, id(thing))
    yield f"{name} (type)" if name else "type", _name_of(type(thing))
    if isinstance(thing, type | types.ModuleType):
        yield name, _name_of(thing) if isinstance(thing, type) else thing.__name__
        return
    if isinstance(thing, Certificate):
        yield name, thing.to_json()
        return
    hidden = yield from _contents(thing, name, inside)
    attributes = [] if isinstance(thing, enum.Enum | types.FunctionType) else list(_attributes(thing))
    for key, content in attributes:
        yield from _facts(content, f"{name}.{key}" if name else key, inside)
    if hidden:
        yield from _state(thing, name, inside, seen=bool(attributes))


def _contents(thing: Any, name: str, inside: tuple[int, ...]) -> Generator[tuple[str, object], None, bool]:
    """Iterate over the contents of known kinds; return whether an object may hold more, besides attributes."""
    if isinstance(thing, _TEXT):
        yield name, repr(thing)
    elif isinstance(thing, float | complex) and not isinstance(thing, np.generic):
        # Signed zeros, and NaNs of different payload, differ in their bits.
        yield name, struct.pack("<2d", thing.real, thing.imag)
    elif isinstance(thing, np.generic | np.ndarray) and not thing.dtype.hasobject:
        yield name, (thing.dtype.str, str(thing.dtype), thing.shape, np.asarray(thing).tobytes())
    elif isinstance(thing, np.ndarray):
        yield from _facts([thing.dtype.str, thing.shape, thing.ravel().tolist()], name, inside)
    elif isinstance(thing, Mapping):
        yield f"{name} (order)", [repr(key) for key in thing]
        for place, (key, content) in enumerate(thing.items()):
            yield from _facts(key, f"{name} (key {place})", inside)
            yield from _facts(content, f"{name}[{key!r}]", inside)
        # A read-only view shows nothing but its entries.
        return type(thing) not in (dict, types.MappingProxyType)
    elif isinstance(thing, list | tuple | KeysView | ValuesView | ItemsView):
        yield f"{name} (length)", len(thing)
        for place, content in enumerate(thing):
            yield from _facts(content, f"{name}[{place}]", inside)
    elif isinstance(thing, set | frozenset):
        yield from _facts(sorted(thing, key=repr), name, inside)
    elif isinstance(thing, types.FunctionType):
        yield from _function(thing, name, inside)
    elif isinstance(thing, types.MethodType):
        yield from _facts([thing.__func__, thing.__self__], name, inside)
    elif isinstance(thing, memoryview):
        yield name, (thing.format, thing.shape, thing.tobytes())
    elif isinstance(thing, weakref.ref):
        yield from _facts([thing()], name, inside)
    else:
        return True
    return False


def _function(thing: types.FunctionType, name: str, inside: tuple[int, ...]) -> Iterator[tuple[str, object]]:
    """A function by its code, closure, defaults and attributes, without globals."""
    yield name, (thing.__module__, thing.__qualname__)
    cells = thing.__closure__ or ()
    carried = {
        "code": _code(thing.__code__),
        "closure": [_within(cell) for cell in cells],
        "defaults": [thing.__defaults__, thing.__kwdefaults__],
        "attributes": vars(thing),
    }
    for part, content in carried.items():
        yield from _facts(content, f"{name} ({part})", inside)


def _code(code: types.CodeType) -> list[object]:
    constants = [_code(each) if isinstance(each, types.CodeType) else each for each in code.co_consts]
    return [code.co_filename, code.co_firstlineno, code.co_code, code.co_names, code.co_varnames, constants]


def _within(cell: Any) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _state(thing: Any, name: str, inside: tuple[int, ...], *, seen: bool) -> Iterator[tuple[str, object]]:
    """One level of what pickling would write, for objects that may hold more than their attributes."""
    kind: Any = type(thing)
    try:
        reduced = thing.__reduce_ex__(4)
    except Exception:
        yield f"{name} ({_OPAQUE})" if name else _OPAQUE, _Incomparable()
        return
    if seen and kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
        # The state of an ordinary object is its attributes, which were compared already.
        return
    if isinstance(reduced, str):
        yield f"{name} (global)", reduced
        return
    for place, part in enumerate(reduced):
        content = list(part) if place in (3, 4) and part is not None else part
        if content is not thing:
            yield from _facts(content, f"{name} (state {place})", inside)


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Attributes of an object with a dictionary, with slots, or with both."""
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for key in (slots,) if isinstance(slots, str) else slots:
            own = f"_{kind.__name__.lstrip('_')}{key}" if key.startswith("__") and not key.endswith("__") else key
            if hasattr(thing, own) and own not in ("__dict__", "__weakref__"):
                yield own, getattr(thing, own)
    yield from getattr(thing, "__dict__", {}).items()


def _name_of(kind: type) -> tuple[str, int]:
    """The name of a class; a class that cannot be imported by its name equals only itself."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return f"{kind.__module__}.{kind.__qualname__}", 0 if found is kind else id(kind)


# ---- The choice of an event that distinguishes two data sets, from outcomes of runs on both.
# Every candidate is a statistic of the outcome beside a threshold. Statistics are made from the even runs and compared,
# threshold by threshold, on the odd ones, so that one with many parameters is not preferred for fitting noise.
# Candidates are ranked by the bound that they would give, not by the estimate: rare outcomes promise much and keep
# little.
#
# Nothing here needs to be right for an audit to be valid: whatever is chosen, other runs bound it.

Outcomes: TypeAlias = Any
"""Of many runs: a list of discrete ones, or a matrix whose rows are arrays."""

Bound = Callable[[Any, Any], FloatArray]
"""What an event shows, from how often it happened on the data set where it is likelier, and on the other one."""

_COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_THRESHOLDS = 512
_LISTED = 5
# Of the unit variance; keeps the covariance of constant coordinates invertible.
_RIDGE = 1e-6


def clopper_pearson(successes: Any, trials: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Bounds on a probability (Clopper and Pearson 1934), each wrong with probability at most ``tail``."""
    hits = np.asarray(successes, dtype=np.float64)
    misses = trials - hits
    # Clipped arguments are for bounds of 0 or 1.
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1.0), misses + 1.0, tail), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1.0, np.maximum(misses, 1.0), tail), 1.0)
    return low, high


def ratio_bound(trials: int, delta: float, tail: float) -> Bound:
    r"""``ln((p - delta) / q)`` with p bounded from below and q from above.

    An event S with :math:`P(S) > e^\varepsilon Q(S) + \delta` refutes (epsilon, delta)-DP.
    """
    low, high = clopper_pearson(np.arange(trials + 1), trials, tail)

    def bound(likelier: Any, other: Any) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(low[likelier] - delta, 0.0)) - np.log(high[other]))

    return bound


def gaussian_bound(trials: int, tail: float) -> Bound:
    r"""The least :math:`\mu` of a :math:`\mu`-GDP release with these errors.

    A test of level :math:`\alpha` with second error :math:`\beta` shows
    :math:`\mu \ge \Phi^{-1}(1 - \alpha) - \Phi^{-1}(\beta)`.
    """
    low, high = clopper_pearson(np.arange(trials + 1), trials, tail)

    def bound(likelier: Any, other: Any) -> FloatArray:
        return np.asarray(ndtri(low[likelier]) - ndtri(high[other]))

    return bound


@dataclass(frozen=True, slots=True)
class Statistic:
    """Numbers ``of(outcomes)``; ``words(comparison, threshold)`` says in words that a number compares so."""

    of: Callable[[Any], FloatArray]
    words: Callable[[str, float], str]


@dataclass(frozen=True, slots=True)
class OutcomeEvent:
    """A statistic that compares with a threshold, and the data set, 0 or 1, on which that is likelier."""

    statistic: Statistic
    comparison: str
    threshold: float
    likelier: int

    def count(self, outcomes: Outcomes) -> int:
        """Count how often the event happened."""
        return int(np.sum(_COMPARISONS[self.comparison](self.statistic.of(outcomes), self.threshold)))

    @property
    def words(self) -> str:
        """Describe the event in words."""
        return self.statistic.words(self.comparison, self.threshold)


def best_event(
    first: Outcomes,
    second: Outcomes,
    make: Callable[[Outcomes, Outcomes], Iterable[Statistic]],
    bound_of: Callable[[int], Bound],
) -> OutcomeEvent:
    """The event with the largest bound, of as many runs on one data set as on the other.

    ``make`` makes the statistics from the even runs; ``bound_of(trials)`` is what is to be large on the odd runs.
    """
    bound = bound_of(len(first[1::2]))
    candidates = (
        _best_threshold(statistic, first[1::2], second[1::2], bound) for statistic in make(first[::2], second[::2])
    )
    return max(candidates, key=operator.itemgetter(0))[1]


def _best_threshold(
    statistic: Statistic, first: Outcomes, second: Outcomes, bound: Bound
) -> tuple[float, OutcomeEvent]:
    samples = [np.sort(statistic.of(outcomes)) for outcomes in (first, second)]
    pooled = np.sort(np.concatenate(samples))
    places = np.linspace(0, pooled.size - 1, min(pooled.size, _THRESHOLDS)).astype(np.int64)
    thresholds = np.unique(pooled[places])
    # Also between values: if these form two clusters, a threshold at the edge of one would misplace later runs.
    thresholds = np.unique(np.concatenate((thresholds, (thresholds[1:] + thresholds[:-1]) / 2.0)))
    below = np.array([np.searchsorted(sample, thresholds, side="left") for sample in samples])
    up_to = np.array([np.searchsorted(sample, thresholds, side="right") for sample in samples])
    trials = len(first)
    candidates = []
    for comparison, counts in (("<", below), ("<=", up_to), (">", trials - up_to), (">=", trials - below)):
        for likelier in (0, 1):
            values = bound(counts[likelier], counts[1 - likelier])
            best = np.flatnonzero(values == values.max())
            place = int(best[best.size // 2])
            event = OutcomeEvent(statistic, comparison, float(thresholds[place]), likelier)
            candidates.append((float(values[place]), event))
    return max(candidates, key=operator.itemgetter(0))


def statistics_of(first: Outcomes, second: Outcomes, tail: float) -> Iterable[Statistic]:
    """Candidates for outcomes of any kind.

    Discrete: the place of an outcome in the order of likelihood ratios. Arrays: a linear score, every coordinate,
    whether it is zero, and the place of the set of non-zero coordinates in the order of likelihood ratios.
    """
    if isinstance(first, list):
        yield from _likelihood_order(first, second, tail, "the outcome")
        return
    yield linear_score(first, second)
    for column in range(first.shape[1]):
        yield Statistic(operator.itemgetter((slice(None), column)), partial(_compared, f"coordinate {column}"))
    for column in np.flatnonzero(np.any(np.concatenate((first, second)) == 0.0, axis=0)).tolist():
        yield Statistic(partial(_is_zero, column), partial(_zero_in_words, column))
    for order in _likelihood_order(_supports(first), _supports(second), tail, "the set of non-zero coordinates"):
        yield Statistic(partial(_of_supports, order), order.words)


def linear_score(first: FloatArray, second: FloatArray) -> Statistic:
    r"""The best linear score of two Gaussian laws with one covariance, :math:`\Sigma^{-1} (m_1 - m_2) \cdot x`.

    The covariance is shrunk towards the diagonal, as far as the number of runs demands.
    """
    means = first.mean(axis=0), second.mean(axis=0)
    within = np.concatenate((first - means[0], second - means[1]))
    scale = np.sqrt(np.mean(within**2, axis=0))
    scale[scale == 0.0] = 1.0
    covariance, _ = ledoit_wolf(within / scale, assume_centered=True)
    covariance[np.diag_indices_from(covariance)] += _RIDGE
    weights = solve(covariance, (means[0] - means[1]) / scale, assume_a="pos") / scale
    heaviest = int(np.argmax(np.abs(weights * scale)))
    name = f"a linear score (heaviest on coordinate {heaviest} of {weights.size})"
    return Statistic(lambda outcomes: outcomes @ weights, partial(_compared, name))


def _likelihood_order(first: list[Hashable], second: list[Hashable], tail: float, name: str) -> Iterable[Statistic]:
    """Ranks of outcomes by confident likelihood ratios, in each direction."""
    counts = Counter(first), Counter(second)
    seen = list(counts[0] | counts[1])
    times = [np.array([count[outcome] for outcome in seen]) for count in counts]
    ratio = ratio_bound(len(first), 0.0, tail)
    for likelier in (0, 1):
        order = np.argsort(-ratio(times[likelier], times[1 - likelier]), kind="stable")
        places = {seen[index]: place for place, index in enumerate(order.tolist())}
        yield Statistic(partial(_places_of, places), partial(_places_in_words, places, name))


def _places_of(places: dict[Hashable, int], outcomes: list[Hashable]) -> FloatArray:
    """Ranks of outcomes; unseen ones come last."""
    return np.array([places.get(outcome, len(places)) for outcome in outcomes], dtype=np.float64)


def _supports(outcomes: FloatArray) -> list[Hashable]:
    return [tuple(np.flatnonzero(outcome).tolist()) for outcome in outcomes]


def _of_supports(order: Statistic, outcomes: FloatArray) -> FloatArray:
    return order.of(_supports(outcomes))


def _is_zero(column: int, outcomes: FloatArray) -> FloatArray:
    return np.asarray(outcomes[:, column] == 0.0, dtype=np.float64)


def outcomes_in_words(name: str, outcomes: list[Hashable], *, none: bool = False) -> str:
    """Describe the event that an outcome is one of these, or none of them."""
    if not outcomes:
        return f"{name} is {'anything' if none else 'nothing'}"
    listed = ", ".join(map(_outcome_in_words, outcomes[:_LISTED]))
    if len(outcomes) == 1:
        return f"{name} is {'not ' if none else ''}{listed}"
    rest = f" and {len(outcomes) - _LISTED:,} more" if len(outcomes) > _LISTED else ""
    return f"{name} is {'none' if none else 'one'} of {listed}{rest}"


def _outcome_in_words(outcome: Hashable) -> str:
    # The order of a set of strings differs from process to process.
    return "{" + ", ".join(sorted(map(repr, outcome))) + "}" if isinstance(outcome, frozenset) else repr(outcome)


def _places_in_words(places: dict[Hashable, int], name: str, comparison: str, threshold: float) -> str:
    compare = _COMPARISONS[comparison]
    unseen = bool(compare(len(places), threshold))
    # If unseen outcomes belong to the event, only the list of the other outcomes is complete.
    listed = [outcome for outcome, place in places.items() if bool(compare(place, threshold)) != unseen]
    return outcomes_in_words(name, listed, none=unseen)


def _compared(name: str, comparison: str, threshold: float) -> str:
    return f"{name} {comparison} {threshold:.6g}"


def _zero_in_words(column: int, comparison: str, threshold: float) -> str:
    unlike_zero, zero = (bool(_COMPARISONS[comparison](value, threshold)) for value in (0.0, 1.0))
    words = {(False, True): "zero", (True, False): "not zero", (True, True): "anything", (False, False): "nothing"}
    return f"coordinate {column} is {words[unlike_zero, zero]}"


# ---- What a caller observes of a run: its result, warnings, errors, output and logs.


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a caller observes of a run.

    The result with its content at the end of the run, the error, whether it is a refusal of this package, every error
    that led to it with where it was raised, then warnings, printed text (of standard output, then of standard error)
    and records of logging in their order.
    """

    result: Any
    facts: Facts
    error: str | None
    refused: bool
    raised: tuple[str, ...]
    warnings: tuple[str, ...]
    printed: tuple[str, ...]
    logged: tuple[str, ...]


def observe(run: Callable[[], Any]) -> Observed:
    """Run, and record what a caller observes."""
    result, error, refused = None, None, False
    raised: tuple[str, ...] = ()
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(out),
        redirect_stderr(err),
        _logged() as records,
    ):
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as exception:
            error, refused = f"{type(exception).__name__}: {exception}", isinstance(exception, TaciturnError)
            raised = tuple(_described(each) for each in _chain(exception))
    return Observed(
        result,
        facts_of(result),
        error,
        refused,
        raised,
        tuple(f"{each.category.__name__}: {each.message}" for each in caught),
        tuple(text for text in (out.getvalue(), err.getvalue()) if text),
        tuple(records),
    )


def _chain(raised: BaseException) -> Iterator[BaseException]:
    """An error, its causes and contexts, suppressed ones included, and the members of groups."""
    waiting: list[BaseException] = [raised]
    seen: list[BaseException] = []
    while waiting:
        each = waiting.pop(0)
        if any(each is other for other in seen):
            continue
        seen.append(each)
        parts = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        waiting += [other for other in (each.__cause__, each.__context__, *parts) if other is not None]
        yield each


def _described(raised: BaseException) -> str:
    kind = type(raised)
    places = [
        f"{frame.f_code.co_qualname}:{line}"
        for frame, line in traceback.walk_tb(raised.__traceback__)
        # Replays draw outcomes in one fit and force them in the other.
        if not _is_ours(frame.f_globals.get("__name__", ""))
    ]
    # An error may hold a whole table; a digest differs if the table does.
    held = hashlib.blake2b(repr(facts_of([raised.args, vars(raised)])).encode(), digest_size=4).hexdigest()
    return f"{kind.__module__}.{kind.__qualname__}: {raised} (at {' > '.join(places)}, holding {held})"


def _is_ours(module: str) -> bool:
    return module in (__name__, "taciturn.audit.replay", "taciturn.privacy.transcript")


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect all records that loggers create at their levels, whether or not a handler shows them."""
    records: list[str] = []
    before = logging.getLogRecordFactory()

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        exception = record.exc_info[1] if record.exc_info else None
        chain = () if exception is None else map(_described, _chain(exception))
        where = f"{record.name}, {record.levelname}, {record.funcName}:{record.lineno}"
        records.append("; ".join((f"{where}: {record.getMessage()}", *chain)))
        return record

    logging.setLogRecordFactory(factory)
    try:
        yield records
    finally:
        logging.setLogRecordFactory(before)


# ---- Whether a certificate covers the releases that a fit made.
# A certificate states epsilon and delta, and lists releases from which these follow. The cost of a recorded release
# follows from its own parameters. The recorded releases are covered in three cases:
#
# - an accountant proves the claim of the certificate from the recorded releases alone, in their order;
# - the certificate is that of a privacy filter (:mod:`taciturn.privacy.filter`), and the budget of the filter covers
#   the recorded releases in their order;
# - the certificate does not rely on an order, and each recorded release matches one of its lines: the same kind of
#   noise, at least as large, and no line is used more often than it states. This is for releases with a joint cost,
#   such as the two quantiles of a column, where one record moves only one of them far; the lines state the joint cost.
#
# A release whose cost does not follow from its parameters is not covered.
#
# If a certificate lists releases about two halves of the records, a record pays for those about its own half. So do the
# recorded releases: those about one half (:func:`taciturn.privacy.transcript.block_of_records`) are compared with
# the lines of either half, never with both.

Recorded = tuple[object, np.ndarray]
"""A mechanism and its value before noise."""

# Quotients of rounded quotients, added up over the steps of a pipeline; the same as for the lines of a filter.
_ROUNDING = 1e-9


def certificate_in(result: Any) -> Certificate | None:
    """Find the certificate of an estimator, a pipeline or a score, or the result itself; None if there is none."""
    for found in (result, getattr(result, "certificate", None), getattr(result, "certificate_", None)):
        if isinstance(found, Certificate):
            return found
    try:
        return certificate_of(result)
    except CertificateError:
        return None


def uncovered(certificate: Certificate, releases: Iterable[Recorded]) -> str | None:
    """Describe the releases that a certificate with a proved number does not cover in one sentence; None if it does."""
    if not certificate.is_proved or math.isinf(certificate.epsilon):
        return None
    events = []
    for mechanism, value in releases:
        event = _event_of(mechanism, value)
        if event is None:
            return f"{mechanism!r} does not say what it costs"
        events.append(event)
    if not events or _proved(certificate, ComposedEvent(tuple(events))):
        return None
    if _holds(certificate) and (
        any(
            _bought(lines, events) or (not certificate.ordered and _listed(lines, events))
            for lines in lines_of_a_record(certificate.events)
        )
        or (
            certificate.bound == "gdp"
            and _in_order(events, *gaussian_cost(certificate.event, ordered=certificate.ordered))
        )
    ):
        return None
    n = sum(fold(ComposedEvent(tuple(events))).values())
    return (
        f"{n} release{'' if n == 1 else 's'} cost more than epsilon={certificate.epsilon:g} at "
        f"delta={certificate.delta:g}, which the certificate states"
    )


def dearer_trial(certificate: Certificate, releases: Iterable[Recorded]) -> str | None:
    """Describe a trial of a search that costs more than its certificate prices a trial at; None if it does not."""
    prices = [part for part in fold(certificate.event) if isinstance(part, RepeatAndSelectEvent)]
    if not certificate.is_proved or math.isinf(certificate.epsilon):
        return None
    if len(prices) != 1:
        return "the certificate has no price for a trial of a search"
    events = [_event_of(mechanism, value) for mechanism, value in releases]
    price = prices[0]
    if _in_order(events, price.noise_multiplier**-2.0, price.distance / price.mean):
        return None
    return f"a trial costs more than a Gaussian release of noise multiplier {price.noise_multiplier:g}"


def _in_order(events: Sequence[Event | None], squared: float, distance: float) -> bool:
    """Whether releases, as they were made one after the other, cost no more than a squared Gaussian parameter.

    From the last one to the first: what follows a selection makes it cheaper (:mod:`taciturn.privacy.gdp`).
    """
    spent, used = 0.0, 0.0
    for event in reversed(events):
        if event is None:
            return False
        for part, count in fold(event).items():
            if isinstance(part, ExponentialEvent):
                spent = selection_step(spent, part.epsilon, count)
            else:
                spent += gaussian_cost(part * count)[0]
            used += count * getattr(part, "distance", 0.0)
    return math.isfinite(squared) and spent <= (1.0 + _ROUNDING) * squared and used <= (1.0 + _ROUNDING) * distance


def _event_of(mechanism: Any, value: np.ndarray) -> Event | None:
    if hasattr(mechanism, "event_of"):
        event = mechanism.event_of(max(value.size, 1))
    else:
        event = getattr(mechanism, "event", None)
    return event if isinstance(event, Event) else None


def _proved(certificate: Certificate, event: Event) -> bool:
    """As certificates are checked (:mod:`taciturn.privacy.claim`), up to rounding."""
    try:
        with np.errstate(all="ignore"):
            whole = for_group(event, certificate.group_size)
            stated = certificate.epsilon * (1.0 + _ROUNDING)
            return proves(whole, stated, certificate.delta, ordered=certificate.ordered)
    except (ArithmeticError, ValueError):
        return False


def _holds(certificate: Certificate) -> bool:
    """Whether the claim of the certificate follows from its own lines."""
    try:
        check_claim(certificate)
    except CertificateError:
        return False
    return True


def _bought(lines: Sequence[Release], events: Iterable[Event]) -> bool:
    """Whether the budget of a privacy filter, which the lines spend, covers the releases."""
    spent = [(line.count, line.event) for line in lines if isinstance(line.event, GaussianEvent)]
    if len(spent) < len(lines) or any(line.remaining is None for line in lines):
        return False
    prices = math.fsum(count / event.noise_multiplier**2 for count, event in spent)
    distance = math.fsum(count * event.distance for count, event in spent)
    single = [one for event in events for one, count in fold(event).items() for _ in range(count)]
    used = math.fsum(getattr(event, "distance", 0.0) for event in single)
    return chain_cost(single) <= prices * (1.0 + _ROUNDING) and used <= distance * (1.0 + _ROUNDING)


def _listed(lines: Sequence[Release], events: Iterable[Event]) -> bool:
    """Whether every release can be given a line of its own, with as much noise of the same kind."""
    stated: dict[type[Event], list[float]] = {}
    for release in lines:
        kind, scale = type(release.event), _scale_of(release.event)
        if release.noise == "Gumbel" and kind is not ExponentialEvent:
            # The price of a selection in a filter, or of two opposite ones, is another kind of event.
            kind, scale = ExponentialEvent, release.scale
        selections = 2 if isinstance(release.event, OppositeSelectionsEvent) else 1
        stated.setdefault(kind, []).extend([scale] * (selections * release.count))
    made: dict[type[Event], list[float]] = {}
    for event, count in fold(ComposedEvent(tuple(events))).items():
        made.setdefault(type(event), []).extend([_scale_of(event)] * count)
    # In increasing order of scales: if any assignment works, then that of smallest to smallest does.
    return all(
        len(scales) <= len(stated.get(kind, ()))
        and all(
            scale >= line * (1.0 - _ROUNDING) for scale, line in zip(sorted(scales), sorted(stated[kind]), strict=False)
        )
        for kind, scales in made.items()
    )


def _scale_of(event: Event) -> float:
    """Scale of the noise in units of the sensitivity; NaN, which covers nothing, where an event has none."""
    if isinstance(event, GaussianEvent):
        return event.noise_multiplier
    if isinstance(event, ExponentialEvent | LaplaceMaxEvent | PermuteAndFlipEvent):
        return 2.0 / event.epsilon
    return 1.0 / event.epsilon if isinstance(event, PureEvent) else math.nan
