"""Variables: columns that stay or go together, from what is public of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from taciturn.core.errors import ParameterError

Names = Callable[[], Sequence[str] | None]
"""The names of the features, None where they have none."""


def find_places(parameter: str, columns: Iterable[Any], names: Names, n_features: int) -> list[int]:
    """The places of columns that a parameter lists by place or by name."""
    known: Sequence[str] | None = None
    places: list[int] = []
    for column in columns:
        if isinstance(column, str):
            known = names() if known is None else known
            found = [] if known is None else [place for place, name in enumerate(known) if name == column]
            if not found:
                raise ParameterError(parameter, column, "a name that X has", "check its spelling, or give places")
            places += found
        elif isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < n_features:
            places.append(int(column))
        else:
            raise ParameterError(
                parameter, column, f"a name, or a place from 0 to {n_features - 1}", "give one of those"
            )
    return places


def variables_of_groups(groups: Iterable[Iterable[Any]], names: Names, n_features: int) -> tuple[int, ...]:
    """For each feature the number of its variable, from 0 in their order; features in no group are their own."""
    owners = list(range(n_features))
    taken: set[int] = set()
    for group in groups:
        places = find_places("groups", group, names, n_features)
        if not places or len(set(places)) < len(places) or not taken.isdisjoint(places):
            raise ParameterError("groups", groups, "groups with columns, each of them once", "change them")
        taken.update(places)
        for place in places:
            owners[place] = min(places)
    return _numbered(owners)


def variables_of_names(names: Sequence[str]) -> tuple[int, ...]:
    """For each feature the number of its variable, from 0, as names tell it; raise where they are ambiguous.

    Names with the same text before the first ``=`` are of one variable, as those of :class:`TableEncoder` are, and
    ``x missing`` is of x. Of the others those with the same text before an underscore are, as ``OneHotEncoder`` names
    them ``x_level``, provided that all underscores at which a name can be cut give the same group. What comes before
    two underscores, the name of a step, stays part of the text. All other features are variables of their own.
    """
    before = [name.partition("=")[0] for name in names]
    counts = Counter(text for name, text in zip(names, before, strict=True) if "=" in name)
    known = set(names) | set(counts)
    owners: list[Any] = [None] * len(names)
    for place, name in enumerate(names):
        of_missing = name.removesuffix(" missing")
        if "=" in name and counts[before[place]] > 1:
            owners[place] = ("=", before[place])
        elif of_missing != name and of_missing in known:
            owners[place] = ("=", of_missing)
    rest = [place for place, owner in enumerate(owners) if owner is None]
    sharing: dict[str, list[int]] = {}
    for place in rest:
        for text in _cuts(names[place]):
            sharing.setdefault(text, []).append(place)
    for place in rest:
        found = {tuple(sharing[text]) for text in _cuts(names[place]) if len(sharing[text]) > 1}
        if len(found) > 1:
            raise ParameterError(
                "groups",
                None,
                f"names that can be cut at one underscore only, got {names[place][:60]!r}",
                "list the columns of each category in groups",
            )
        # A number beside its indicator of missing cells is one variable with it.
        owners[place] = found.pop() if found else ("=", names[place])
    return _numbered(owners)


def _cuts(name: str) -> list[str]:
    """What precedes each single underscore of a name, the name of a step included."""
    step, underscores, own = name.rpartition("__")
    return [step + underscores + own[:at] for at, letter in enumerate(own) if letter == "_" and 0 < at < len(own) - 1]


def _numbered(owners: Sequence[Any]) -> tuple[int, ...]:
    """Numbers of owners, in the order in which they first occur."""
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(owner, len(numbers)) for owner in owners)
