"""Exceptions and warnings, and the logger."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class TaciturnError(Exception):
    """Base of every error that taciturn raises on purpose."""


class ParameterError(TaciturnError, ValueError):
    """A public parameter is out of range.

    Parameters
    ----------
    parameter, expected, remedy : str
        Name of the offending parameter, what would have been accepted, and what to do about it, as an imperative.
    value : object
        What was given. Public by definition: never pass a value from the data here.
    """

    def __init__(self, parameter: str, value: object, expected: str, remedy: str) -> None:
        super().__init__(f"{parameter}={value!r}: expected {expected}; {remedy}.")
        self._arguments = (parameter, value, expected, remedy)

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, object, str, str]]:
        # Exceptions cross process borders (joblib); the default would replay the message alone.
        return (type(self), self._arguments)


class DataError(TaciturnError, ValueError):
    """The data cannot be used as they are; the message describes them without quoting them."""


class DataTypeError(DataError, TypeError):
    """The data are of a type that cannot be used."""


class SeveralProblemsError(TaciturnError, ValueError):
    """Several things are wrong; the message has one sentence for each of at least two errors, on a line of its own."""

    def __init__(self, errors: Iterable[TaciturnError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))

    def __reduce__(self) -> tuple[type[SeveralProblemsError], tuple[tuple[TaciturnError, ...]]]:
        return (type(self), (self.errors,))


class CertificateError(TaciturnError, ValueError):
    """A certificate cannot be read, or certificates cannot be combined."""


class AccountError(TaciturnError, RuntimeError):
    """An account cannot be used: it is not there, it is damaged, or it is for other fits."""


class BudgetExceededError(AccountError):
    """A fit costs more than its account has left; nothing was spent."""


class StreamError(TaciturnError, RuntimeError):
    """A random stream would have been shared between two copies."""


class AccountWarning(UserWarning):
    """A ledger could not be told how a fit ended; what was reserved counts as spent."""


class WeakBudgetWarning(UserWarning):
    """Public facts say that a fit will be mostly noise."""


class WeakGuaranteeWarning(UserWarning):
    """Public facts say that a budget protects little: epsilon from 10 to 30, or delta of at least one over n."""


class DefaultBoundsWarning(UserWarning):
    """A fit clips to bounds that nobody stated, or to one that columns of different ranges share.

    ``x_bound`` or ``y_bounds`` was not given, or one ``x_bound`` other than 1 for several columns.
    """


class SuspiciousReleaseWarning(UserWarning):
    """Released numbers say that bounds or classes do not fit the records; the budget is spent."""


class UnaccountedSearchWarning(UserWarning):
    """A search compares scores that are not private, and chooses by them."""


# ---- The progress of a computation under the logger ``taciturn``: phases and public facts, nothing from the data.
# Whoever reads a log may not be allowed to see the data, so that a message is a release like any other. Messages and
# their number follow from public facts; the times that :mod:`logging` adds to them are a side channel, as running time
# is, and certificates say so.

_LOGGER = logging.getLogger("taciturn")
_LOGGER.addHandler(logging.NullHandler())


# Inside of a search, whose trials nobody may count.
_secret: ContextVar[bool] = ContextVar("inside of a secret number of fits", default=False)


@contextmanager
def in_secret() -> Iterator[None]:
    """Without log records and warnings of ours: a search makes a secret number of fits, and shows one of them."""
    before = _secret.set(True)
    try:
        yield
    finally:
        _secret.reset(before)


def is_secret() -> bool:
    """Whether a warning or a log record would reveal the number of fits."""
    return _secret.get()


def log_phase(what: str, phase: str, details: str = "") -> None:
    """Log that a computation enters a phase, which the record has as ``phase``; ``details`` are public facts."""
    if is_secret():
        return
    said = f"{phase} {details}" if details else phase
    _LOGGER.info("%s: %s", what, said, extra={"phase": phase})


# ---- Text from files, as it is shown to people: nothing in it is invisible, or makes other text appear elsewhere.

# Letters and marks that look like nothing: fillers, joiners, selectors of variants, an empty pattern of dots.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def visible(text: str) -> str:
    r"""The text with escapes for what cannot be seen.

    Column names, classes and file names are public, and whoever wrote them may have put in more than one sees: marks
    that turn the order of what follows around, letters without a width, commands for a terminal. They are written as
    Python, JSON and TOML write them. Tabs and ends of lines stay.

    Examples
    --------
    >>> print(visible("dose\u202egnorw"), visible("caf\u00e9"), visible("\x1b[31mred"))
    dose\u202egnorw café \u001b[31mred
    """
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(each if _shows(each) else _escape(ord(each)) for each in text)


def _shows(each: str) -> bool:
    return each in "\n\t" or (each.isprintable() and each not in _BLANK)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
