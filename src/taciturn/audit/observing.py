"""What a caller observes of a run: its result, warnings, errors, output and logs."""

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
from taciturn.core.errors import TaciturnError

__all__ = ["Observed", "observe"]


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
        # This room draws outcomes in one fit and forces them in the other.
        if not _is_ours(frame.f_globals.get("__name__", ""))
    ]
    # An error may hold a whole table; a digest differs if the table does.
    held = hashlib.blake2b(repr(facts_of([raised.args, vars(raised)])).encode(), digest_size=4).hexdigest()
    return f"{kind.__module__}.{kind.__qualname__}: {raised} (at {' > '.join(places)}, holding {held})"


def _is_ours(module: str) -> bool:
    return module in (__name__, "taciturn.audit.replaying", "taciturn.mechanisms.transcript")


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
