"""Two neighbouring data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from taciturn.core.errors import ParameterError
from taciturn.data.sensitivity import check_relation

__all__ = ["Pair", "check_pair", "check_text"]


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
    relation: str
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
        raise ParameterError(
            "neighbours", type(neighbours).__name__, "a Pair", "build Pair(first, second, relation, words)"
        )
    return neighbours
