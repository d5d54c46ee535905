"""The door of every release, where a fit can be recorded and replayed.

A mechanism does not hand out its noisy answer itself. It describes the release as a :class:`Call` and passes through
:func:`answer`, which draws and nothing else unless a transcript is open. :func:`taciturn.audit.replay` opens one to
record the calls of a fit, and another one to force the same outcomes on a neighbouring data set. Without a transcript
the cost is that of one context variable, and seeded noise is the same to the bit.

While a transcript is open, it is told of every draw of a :class:`~taciturn.core.rng.Stream` that no release makes. Such
a draw is noise that nobody accounts for, unless the code that makes it says that it is a :func:`coupling`.

A transcript holds values before noise. It is for audits of data that nobody stands behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from taciturn.core.rng import draws_noticed
from taciturn.core.validation import AnyArray
from taciturn.data.sensitivity import Sensitivity
from taciturn.privacy.events import ExponentialEvent

OutcomeT = TypeVar("OutcomeT")

Limit = tuple[Literal["l1", "l2", "linf", "range"], float]
"""A bound on what one record changes. "range": the largest difference of coordinates minus the smallest one, which
is all that a selection sees of a change of its scores."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One release, before it is made: its public ``mechanism``, noise included, and the ``limits`` of its sensitivity.

    ``value(outcome)`` is what the noise covers. Most values do not depend on the outcome; the linear term of a
    perturbed objective is known from its minimiser.
    """

    mechanism: object
    limits: tuple[Limit, ...]
    value: Callable[[Any], AnyArray]


@dataclass(frozen=True, slots=True)
class LoopSelection:
    """The public side of a selection that a solver makes in a loop of its own, with Gumbel noise.

    ``noise_scale`` is in units of the ``sensitivity``, which is that of the scores in the linf norm.
    """

    what: str
    noise_scale: float
    sensitivity: Sensitivity
    candidates: tuple[int, ...]

    @property
    def event(self) -> ExponentialEvent:
        """The cost of one selection, rounding left out."""
        return ExponentialEvent(self.sensitivity.spread / self.noise_scale)


class Transcript(Protocol):
    """What records or forces releases."""

    def answer(self, call: Call, draw: Callable[[], OutcomeT]) -> OutcomeT:
        """The outcome of a call: drawn, or taken from somewhere else."""

    def notice(self) -> None:
        """A stream draws, and no release does."""


_OPEN: ContextVar[Transcript | None] = ContextVar("transcript", default=None)
_BLOCK: ContextVar[tuple[int, Any] | None] = ContextVar("block of records", default=None)
_LEFT_OUT: ContextVar[int | None] = ContextVar("block of records that is left out", default=None)
_TRIAL: ContextVar[int | None] = ContextVar("trial of a search", default=None)


def answer(describe: Callable[[], Call], draw: Callable[[], OutcomeT]) -> OutcomeT:
    """The outcome of one release: ``draw()`` is the answer with fresh noise; only transcripts call ``describe()``."""
    transcript = _OPEN.get()
    if transcript is None:
        return draw()

    def accounted() -> OutcomeT:
        with draws_noticed(None):
            return draw()

    return transcript.answer(describe(), accounted)


def transcribing() -> bool:
    """Whether a transcript is open, for loops that release many times without coming back."""
    return _OPEN.get() is not None


@contextmanager
def transcribed(transcript: Transcript | None) -> Iterator[None]:
    """Send all releases of this context through a transcript, or through none: made-up data are no release."""
    token = _OPEN.set(transcript)
    try:
        with draws_noticed(None if transcript is None else transcript.notice):
            yield
    finally:
        _OPEN.reset(token)


@contextmanager
def coupling() -> Iterator[None]:
    """Draw what is no noise but a secret that does not depend on the data, such as which block a record is in.

    A proof compares fits with the same secret, and so does a replay.
    """
    with draws_noticed(None):
        yield


@contextmanager
def block_of_records(label: int, records: Any) -> Iterator[None]:
    """Make releases that read one block of the records, and no record of another block.

    One record is in one block, so that it pays for the releases of that block alone. A replay compares the ``records``.
    """
    token = _BLOCK.set((label, records))
    try:
        yield
    finally:
        _BLOCK.reset(token)


def open_block() -> tuple[int, Any] | None:
    """The label and the records of the block that the present release reads; None for all records."""
    return _BLOCK.get()


@contextmanager
def all_blocks_but(label: int) -> Iterator[None]:
    """Make releases that read the records of every block but one, as a fit to all folds but one does."""
    token = _LEFT_OUT.set(label)
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def left_out_block() -> int | None:
    """The label of the block that the present release does not read; None if there is none."""
    return _LEFT_OUT.get()


@contextmanager
def trial_of_search(number: int) -> Iterator[None]:
    """Make the releases of one trial of a search, of which only the best trial is shown.

    A replay compares what a trial costs with what the certificate says that one may.
    """
    token = _TRIAL.set(number)
    try:
        yield
    finally:
        _TRIAL.reset(token)


def open_trial() -> int | None:
    """The number of the present trial of a search; None outside of one."""
    return _TRIAL.get()


def score_limits(sensitivity: Sensitivity, unit: float = 1.0) -> tuple[Limit, ...]:
    """What one record changes in scores that compete, ``unit`` being one unit of theirs in those of the sensitivity."""
    return ("linf", sensitivity.value / unit), ("range", sensitivity.spread / unit)
