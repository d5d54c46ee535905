"""Checks that hold for every public class: a function of an entry of the registry, and the entries it applies to.

A check raises ``AssertionError`` where the class breaks the statement, so that
``test_checks_reject_broken_classes`` can show a class that each of them rejects.
"""

from collections.abc import Callable
from typing import Any

from every_class import ENTRIES, Entry

from taciturn import ParameterError

CHECKS: dict[str, tuple[Callable[[Entry], None], Callable[[Entry], Any]]] = {}
"""Checks and what they apply to, by name."""


def check(applies: Callable[[Entry], Any] = lambda entry: True):
    """Register a check for the entries to which it applies."""

    def register(function):
        assert function.__name__ not in CHECKS
        CHECKS[function.__name__] = (function, applies)
        return function

    return register


def pairs(entries=ENTRIES):
    """Every check with every entry to which it applies."""
    return [(name, entry) for name, (_, applies) in CHECKS.items() for entry in entries if applies(entry)]


def once(entry: Entry) -> bool:
    """Applies to one entry of each class: the setting makes no difference."""
    return entry.first


def has(*parameters: str):
    """Applies to classes with all of these parameters."""
    return lambda entry: all(name in entry.parameters for name in parameters)


def refusal(call, *data) -> str | None:
    """In what words a call refuses its parameters, if it does."""
    try:
        call(*data)
    except ParameterError as error:
        return str(error)
    return None
