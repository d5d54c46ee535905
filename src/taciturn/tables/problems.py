"""Problems that are told together, so that a table or a bounds file is mended once and not once per run."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from taciturn.core.errors import DataError, SeveralProblemsError, TaciturnError
from taciturn.tables.words import quoted

__all__ = ["KnownNames", "Problems", "closest_name", "did_you_mean", "listed_names"]

_MOST_NAMES = 10
_MOST_TOLD = 20
# Names are not searched for among more, nor similar ones among more or among longer ones, which would take seconds.
_MOST_KNOWN, _MOST_COMPARED, _LONGEST_COMPARED = 50_000, 2000, 100


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


class KnownNames:
    """Names among which the one that was probably meant is searched for, in bounded work for any number of searches.

    No more similar names are proposed than problems are told.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._plain = {_plain(other): other for other in names} if len(names) <= _MOST_KNOWN else {}
        short = [plain for plain in self._plain if len(plain) <= _LONGEST_COMPARED]
        self._short = short if len(short) <= _MOST_COMPARED else []
        self._searches = 0

    def closest(self, name: str, *, alike: bool = True) -> str | None:
        """The name that was probably meant, as :func:`closest_name` finds it."""
        plain = _plain(name)
        if (same := self._plain.get(plain)) is not None:
            return same
        if not alike or len(plain) > _LONGEST_COMPARED or self._searches >= _MOST_TOLD:
            return None
        self._searches += 1
        similar = difflib.get_close_matches(plain, self._short, n=1)
        return self._plain[similar[0]] if similar else None


def closest_name(name: str, names: Collection[str], *, alike: bool = True) -> str | None:
    """The name that was probably meant: the same but for capitals, spaces and signs, or with ``alike`` a similar one.

    Examples
    --------
    >>> from taciturn.tables.problems import closest_name
    >>> closest_name("Age", ["age", "dose"]), closest_name("Body mass", ["body_mass"]), closest_name("x", ["age"])
    ('age', 'body_mass', None)
    """
    return KnownNames(names).closest(name, alike=alike)


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
