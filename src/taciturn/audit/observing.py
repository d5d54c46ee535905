"""What a caller sees of a run: its result, what it warns of, raises, prints and logs."""

from __future__ import annotations

import hashlib
import io
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from taciturn.audit.bits import Facts, facts_of

__all__ = ["Observed", "observed"]


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a caller sees of a run.

    Parameters
    ----------
    result : object
        What it returned.
    facts : Facts
        What that held at the end of the run.
    error : str or None
        What it raised.
    raised : tuple of str
        The error, and every error that led to it, with all that they hold and where they were raised.
    warnings, printed, logged : tuple of str
        In their order; printed text on standard output, then on standard error.
    """

    result: Any
    facts: Facts
    error: str | None
    raised: tuple[str, ...]
    warnings: tuple[str, ...]
    printed: tuple[str, ...]
    logged: tuple[str, ...]


def observed(run: Callable[[], Any]) -> Observed:
    """Run, and look."""
    result, error = None, None
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
            error = f"{type(exception).__name__}: {exception}"
            raised = tuple(_described(each) for each in _chain(exception))
    return Observed(
        result,
        facts_of(result),
        error,
        raised,
        tuple(f"{each.category.__name__}: {each.message}" for each in caught),
        tuple(text for text in (out.getvalue(), err.getvalue()) if text),
        tuple(records),
    )


def _chain(raised: BaseException) -> Iterator[BaseException]:
    """An error, its causes and what was being handled, whether or not it would be printed; groups with their parts."""
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
        # Outcomes are drawn in one fit and forced in the other, by us.
        if not _is_ours(frame.f_globals.get("__name__", ""))
    ]
    # All that it holds may be a table: a digest is as different.
    held = hashlib.blake2b(repr(facts_of([raised.args, vars(raised)])).encode(), digest_size=4).hexdigest()
    return f"{kind.__module__}.{kind.__qualname__}: {raised} (at {' > '.join(places)}, holding {held})"


def _is_ours(module: str) -> bool:
    return module in (__name__, "taciturn.audit.replaying", "taciturn.mechanisms.transcript")


@contextmanager
def _logged() -> Iterator[list[str]]:
    """The records that loggers make, at the levels to which they are set, whatever becomes of them."""
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
