"""Problems that are told together, so that a table or a bounds file is mended once and not once per run."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from taciturn.core.errors import DataError, SeveralProblemsError, TaciturnError
from taciturn.tables.words import quoted

__all__ = ["Problems", "closest_name", "did_you_mean", "listed_names"]

_MOST_NAMES = 10
_MOST_TOLD = 20
# Similar names are not searched for among more, which would take seconds.
_MOST_COMPARED = 2000


class Problems:
    """Errors that are gathered one by one and raised together."""

    def __init__(self) -> None:
        self.found: list[TaciturnError] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Keep an error of the block for :meth:`raise_all`."""
        try:
            yield
        except SeveralProblemsError as error:
            self.found += error.errors
        except TaciturnError as error:
            self.found.append(error)

    def raise_all(self) -> None:
        """Raise what was found: one error as it is, several as one."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            rest = len(self.found) - _MOST_TOLD
            told = self.found[:_MOST_TOLD]
            if rest > 0:
                told.append(DataError(f"table: expected none of the above, got {rest:,} more; mend these first."))
            raise SeveralProblemsError(told)


def closest_name(name: str, names: Iterable[str], *, alike: bool = True) -> str | None:
    """The name that was probably meant: the same but for capitals, spaces and signs, or with ``alike`` a similar one.

    Examples
    --------
    >>> from taciturn.tables.problems import closest_name
    >>> closest_name("Age", ["age", "dose"]), closest_name("Body mass", ["body_mass"]), closest_name("x", ["age"])
    ('age', 'body_mass', None)
    """
    plain = {_plain(other): other for other in names}
    if (same := plain.get(_plain(name))) is not None:
        return same
    similar = difflib.get_close_matches(_plain(name), plain, n=1) if alike and len(plain) <= _MOST_COMPARED else []
    return plain[similar[0]] if similar else None


def did_you_mean(name: str | None) -> str:
    """The beginning of a remedy, if there is a name to propose."""
    return "" if name is None else f"did you mean {quoted(name)}? "


def listed_names(names: list[str]) -> str:
    """Names in quotes, the first ten of them."""
    rest = len(names) - _MOST_NAMES
    return ", ".join(map(quoted, names[:_MOST_NAMES])) + (f" and {rest:,} more" if rest > 0 else "")


def _plain(name: str) -> str:
    """A name without capitals, spaces and signs; as it is if nothing is left."""
    return re.sub(r"[\W_]+", "", name).casefold() or name
