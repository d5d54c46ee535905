"""Privacy as a unit test: the same outcomes forced on a neighbouring data set must lead to the same results.

A fit that is private by composition is a chain of releases. Each may depend on the data through a value of declared
sensitivity, and everything else follows from outcomes that are public already. :func:`replay` checks the chain link by
link. It fits D and records every release: the mechanism with its public parameters, the value before noise, the
outcome. Then it fits the neighbour D' and forces the same outcomes. Now

- the releases and their parameters must be the same: nothing but outcomes decides what is released next;
- values before noise may differ by the declared sensitivity at most, integers without any tolerance;
- what the releases cost together, by their own parameters, must be covered by the certificate
  (:mod:`taciturn.audit.observing`);
- no stream may be drawn from but by a release, or for a secret that is declared as such;
- attributes, certificates, warnings, errors with all that led to them, printed text and records of logging must be the
  same to the bit, and what cannot be compared counts as a difference: nothing leaves the fit that no release has paid
  for;
- a fit that fails is a difference, also where both fail alike, because nothing behind the failure was compared. Only
  the same refusal of this package (a ``TaciturnError`` of equal type and text) on both sides is none, and the result
  lists what it left out.

One pair of fits finds what no number of runs would: an attribute that nobody pays for, a warning that depends on a
cell, a sensitivity that is too small by one unit, a release that is made twice and stated once.

What it does not see: whether a mechanism adds the noise that its parameters state, which is for
:func:`~taciturn.audit.audit`; random numbers from elsewhere than :class:`~taciturn.core.rng.Stream`, which are the same
in both fits if they are seeded; what happens in other threads and processes; what is written to files, or past
``sys.stdout`` and ``sys.stderr``; globals; time and memory; settings and neighbours that were not tried.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from taciturn.audit.engine import shares_of_limits
from taciturn.audit.observing import (
    Facts,
    Observed,
    certificate_in,
    dearer_trial,
    differing_names,
    facts_of,
    observe,
    uncovered,
)
from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.rng import Stream
from taciturn.data.persons import read_persons
from taciturn.data.sensitivity import Relation, check_relation
from taciturn.privacy.transcript import Call, Limit, left_out_block, open_block, open_trial, transcribed

OutcomeT = TypeVar("OutcomeT")

# Secrets other than noise, such as the block of a record, must be the same in both fits.
_SEED = 0


class ReplayError(TaciturnError, AssertionError):
    """A replay found a difference."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the fits of the two neighbours.

    Parameters
    ----------
    kind : {"release", "sensitivity", "cost", "draw", "result", "warning", "error", "output", "log"}
        What differs. Two kinds are about one fit: "cost", releases that the certificate does not cover, and "draw",
        random numbers that no release accounts for.
    words : str
        One sentence.
    """

    kind: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of a replay.

    Parameters
    ----------
    name : str
        What was fitted.
    relation : str
        In what sense the data sets are neighbours.
    differences : tuple of Difference
        Empty where the neighbour could not be told from the data, but for the noise.
    releases : tuple of (str, float)
        The releases in their order: the mechanism, and how much of its declared sensitivity the neighbour used up.
    error : str or None
        What both fits raised, if they did: a replay of refusals compares little.
    not_compared : tuple of str
        What this replay says nothing about, because the fits did not come that far or state no cost.
    """

    name: str
    relation: str
    differences: tuple[Difference, ...]
    releases: tuple[tuple[str, float], ...]
    error: str | None = None
    not_compared: tuple[str, ...] = ()

    @property
    def largest_share(self) -> float:
        """Largest change between the neighbours as a share of the declared sensitivity."""
        return max((share for _, share in self.releases), default=0.0)

    def raise_if_any(self) -> None:
        """Raise a :class:`ReplayError` with all differences, if there is one."""
        if self.differences:
            raise ReplayError(str(self))

    def __str__(self) -> str:
        head = f"Replay of {self.name} ({self.relation}): {_counted(len(self.releases), 'release')} compared"
        if not self.differences:
            found = f"no difference; at most {self.largest_share:.3g} of a declared sensitivity was used."
        else:
            found = f"{_counted(len(self.differences), 'difference')} found."
        return "\n".join(
            (
                f"{head}, {found}",
                *(f"- {each}" for each in self.differences),
                *(f"- not compared: {each}" for each in self.not_compared),
            )
        )


def replay(estimator: Any, data: Mapping[str, Any], neighbour: Mapping[str, Any], *, relation: Relation) -> Replay:
    """Fit a data set, force the outcomes of all its releases on a neighbour, and compare everything else.

    Everything that releases through the mechanisms of this package can be replayed: estimators, selectors, scalers,
    pipelines of these, functions such as :func:`~taciturn.private_score`, and your own.

    **Privacy.** The result quotes differences between two data sets: use public or synthetic data only.

    Parameters
    ----------
    estimator : object with ``fit``, or callable
        Cloned before each fit. A callable is called with the data. Where ``random_state`` is None it is set, so that
        secrets which are no noise (the blocks of :class:`~taciturn.BlockVoteSelector`) are the same in both fits.
    data, neighbour : mapping
        The arguments of ``fit``, or of the callable, by name. Under "zero-out" the neighbour has a null record in place
        of one of the records: one with a label outside ``classes`` or, with ``invalid="null"``, one with a cell that
        is NaN. Under "add-remove" one record is missing; where rows are assigned one by one it should be the last, or
        ``keys`` should be given. With ``persons`` a record is a person: all of its rows are null, missing, or others,
        and the last one is last in the order of the keys as text.
    relation : {"zero-out", "add-remove", "replace-one"}
        In what sense they are neighbours, which has to be that of the estimator.

    Returns
    -------
    Replay
        With ``differences`` and ``raise_if_any()``.

    References
    ----------
    T. Cebere, D. Erb, D. Desfontaines, A. Bellet and J. Fitzsimons, *Privacy in theory, bugs in practice: grey-box
    auditing of differential privacy libraries* (2026); its dp-recorder replays runs of any library in this way.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseClassifier
    >>> from taciturn.audit import replay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (50, 4))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with_a_null_record = y.copy()
    >>> with_a_null_record[7] = -1
    >>> model = SparseClassifier(x_bound=1.0, classes=(0, 1), n_nonzero=2)
    >>> found = replay(model, {"X": X, "y": y}, {"X": X, "y": with_a_null_record}, relation="zero-out")
    >>> found.differences
    ()
    >>> found.raise_if_any()
    """
    relation = check_relation(relation)
    run = _run_of(estimator)
    _check_relation_of(estimator, data, relation)
    _check_numbers(data, neighbour, relation)
    recorder = _Recorder()
    first = observe(lambda: _with(recorder, run, data))
    player = _Player(entries=recorder.entries)
    second = observe(lambda: _with(player, run, neighbour))
    differences = [*_costs(first.result, recorder), *_draws(recorder, player), *player.differences]
    if not player.diverged:
        differences += _blocks(recorder, player)
        if player.place < len(recorder.entries):
            missing = recorder.entries[player.place]
            differences.append(Difference("release", f"the neighbour's fit ends before {missing.mechanism!r}"))
        differences += _compare(first, second)
    name = getattr(estimator, "__name__", type(estimator).__name__)
    error = first.error if first.error == second.error else None
    left_out = tuple(_not_compared(first, second, diverged=player.diverged))
    return Replay(name, relation, tuple(differences), tuple(player.shares), error, left_out)


# ------------------------------------------------------------------ transcripts


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A release of the first fit."""

    mechanism: object
    limits: tuple[Limit, ...]
    value: np.ndarray
    outcome: Any
    block: int | None
    left_out: int | None
    trial: int | None

    def reads(self, block: int | None) -> bool:
        """Whether the release is about the records of a block; None stands for all records."""
        return self.block in (None, block) and (self.left_out is None or self.left_out != block)


@dataclass(slots=True)
class _Transcript:
    """What is seen of a fit: the records of every declared block, and where streams were drawn from by no release."""

    blocks: dict[int, Facts] = field(default_factory=dict)
    draws: list[str] = field(default_factory=list)

    def notice(self) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") == Stream.__module__:
            frame = frame.f_back
        self.draws.append(f"{frame.f_code.co_qualname} of {frame.f_globals.get('__name__')}")

    def block(self) -> int | None:
        """The block of the present release."""
        block = open_block()
        if block is None:
            return None
        label, records = block
        self.blocks.setdefault(label, facts_of(records))
        return label


@dataclass(slots=True)
class _Recorder(_Transcript):
    """Draws outcomes and records them."""

    entries: list[_Entry] = field(default_factory=list)

    def answer(self, call: Call, draw: Callable[[], OutcomeT]) -> OutcomeT:
        outcome = draw()
        # Copies, since later steps may work in place.
        value = np.array(call.value(outcome))
        where = self.block(), left_out_block(), open_trial()
        self.entries.append(_Entry(call.mechanism, call.limits, value, deepcopy(outcome), *where))
        return outcome


class _DivergedError(BaseException):
    """Ends a fit whose releases differ from the recorded ones; handlers of ordinary errors do not catch it."""


@dataclass(slots=True)
class _Player(_Transcript):
    """Answers with recorded outcomes."""

    entries: list[_Entry] = field(default_factory=list)
    place: int = 0
    diverged: bool = False
    differences: list[Difference] = field(default_factory=list)
    shares: list[tuple[str, float]] = field(default_factory=list)

    def answer(self, call: Call, draw: Callable[[], OutcomeT]) -> OutcomeT:
        if self.place == len(self.entries):
            self._diverge(f"the neighbour's fit goes on with {call.mechanism!r}")
        entry = self.entries[self.place]
        outcome: OutcomeT = deepcopy(entry.outcome)
        if (entry.mechanism, entry.limits, entry.block) != (call.mechanism, call.limits, self.block()):
            self._diverge(f"number {self.place + 1} is {entry.mechanism!r}, and {call.mechanism!r} for the neighbour")
        value = np.array(call.value(outcome))
        if (value.shape, value.dtype) != (entry.value.shape, entry.value.dtype):
            self._diverge(f"number {self.place + 1} ({entry.mechanism!r}) has a value of another shape or type")
        shares = shares_of_limits(entry.value, value, entry.limits)
        self.place += 1
        for norm, limit, share in shares:
            if share > 1.0:
                words = f"number {self.place} ({entry.mechanism!r}) changes by {share:.6g} of {limit:.6g} in {norm}"
                self.differences.append(Difference("sensitivity", words))
        self.shares.append((type(entry.mechanism).__name__, max((share for _, _, share in shares), default=0.0)))
        return outcome

    def _diverge(self, words: str) -> None:
        self.diverged = True
        self.differences.append(Difference("release", words))
        raise _DivergedError


# ------------------------------------------------------------------ runs


def _with(transcript: _Recorder | _Player, run: Callable[..., Any], data: Mapping[str, Any]) -> Any:
    with transcribed(transcript):
        try:
            return run(**data)
        except _DivergedError:
            return None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _run_of(estimator: Any) -> Callable[..., Any]:
    """Return the function that is run twice, with the same secrets."""
    if hasattr(estimator, "fit"):

        def run(**data: Any) -> Any:
            model = clone(estimator)
            unset = [name for name, value in model.get_params().items() if _is_seed(name) and value is None]
            return model.set_params(**dict.fromkeys(unset, _SEED)).fit(**data)

        return run
    if not callable(estimator):
        raise ParameterError(
            "estimator", type(estimator).__name__, "an estimator or a callable", "pass something that can be fitted"
        )
    seeded = "random_state" in inspect.signature(estimator).parameters

    def call(**data: Any) -> Any:
        return estimator(**({"random_state": _SEED} if seeded else {}) | data)

    return call


def _is_seed(name: str) -> bool:
    return name.rpartition("__")[2] == "random_state"


def _check_relation_of(estimator: Any, data: Mapping[str, Any], relation: str) -> None:
    own = estimator.get_params().get("relation", relation) if hasattr(estimator, "get_params") else relation
    own = data.get("relation", own)
    if own != relation:
        raise ParameterError("relation", relation, f"{own!r}, the estimator's own", "pass neighbours of that kind")


def _check_numbers(data: Mapping[str, Any], neighbour: Mapping[str, Any], relation: str) -> None:
    """Raise if two data sets cannot be neighbours."""
    counts = [np.shape(each["X"])[0] if "X" in each else None for each in (data, neighbour)]
    if data.get("persons") is not None:
        # Numbers of rows are private: that of the persons counts.
        counts = [read_persons(each["persons"], len(each["persons"])).n_persons for each in (data, neighbour)]
    if set(data) != set(neighbour) and relation != "add-remove":
        raise DataError("neighbour: expected the same arguments as in data, got others; pass both by name.")
    first, second = counts
    if first is None or second is None:
        return
    expected = 1 if relation == "add-remove" else 0
    if abs(first - second) != expected:
        raise DataError(
            f"neighbour: expected {'one record more or less' if expected else 'as many records'} under {relation}, got "
            "another number; change one record."
        )


# ------------------------------------------------------------------ results


def _compare(first: Observed, second: Observed) -> list[Difference]:
    found = []
    pairs = (
        ("error", first.raised, second.raised),
        ("warning", first.warnings, second.warnings),
        ("output", first.printed, second.printed),
        ("log", first.logged, second.logged),
    )
    for kind, one, other in pairs:
        if one != other:
            words = f"{'; '.join(one) or 'none'}; for the neighbour: {'; '.join(other) or 'none'}"
            found.append(Difference(kind, words))
    if first.raised and first.raised == second.raised and not first.refused:
        words = f"both fits raise {first.error}, which is no refusal of taciturn, and nothing behind it was compared"
        found.append(Difference("error", words))
    if first.error is None and second.error is None:
        found += [Difference("result", f"{name} differs") for name in differing_names(first.facts, second.facts)]
    return found


def _not_compared(first: Observed, second: Observed, *, diverged: bool) -> Iterator[str]:
    """What two fits leave out of the comparison, in words."""
    if diverged:
        yield "everything after the first release that differs"
    elif first.error is not None or second.error is not None:
        raised = f"both fits raised {first.error}" if first.error == second.error else "a fit raised an error"
        yield f"results, and releases after the error, since {raised}"
    if first.error is None:
        certificate = certificate_in(first.result)
        if certificate is None:
            yield "the cost of the releases, since the result has no certificate"
        elif not certificate.is_proved:
            yield f"the cost of the releases, since the status of the certificate is {certificate.status!r}"


def _costs(result: Any, recorder: _Recorder) -> list[Difference]:
    """Differences between the cost of the releases, for a record of any block, and the certificate."""
    certificate = certificate_in(result)
    if certificate is None:
        return []
    # Of the trials of a search each has a price of its own, and only the best is shown.
    found: dict[str | None, None] = {}
    for block in recorder.blocks or (None,):
        read = [entry for entry in recorder.entries if entry.reads(block)]
        for trial in dict.fromkeys(entry.trial for entry in read) or (None,):
            releases = [(entry.mechanism, entry.value) for entry in read if entry.trial == trial]
            found[uncovered(certificate, releases) if trial is None else dearer_trial(certificate, releases)] = None
    return [Difference("cost", words) for words in found if words is not None]


def _blocks(recorder: _Recorder, player: _Player) -> list[Difference]:
    """Releases by block: a record is in one block, and pays for the releases of that block alone."""
    changed = [
        label for label, facts in recorder.blocks.items() if differing_names(facts, player.blocks.get(label, {}))
    ]
    if len(changed) <= 1:
        return []
    return [Difference("cost", f"blocks {', '.join(map(str, changed))} change together, and are accounted apart")]


def _draws(recorder: _Recorder, player: _Player) -> list[Difference]:
    return [
        Difference("draw", f"{place} draws random numbers that no release accounts for")
        for place in dict.fromkeys((*recorder.draws, *player.draws))
    ]
