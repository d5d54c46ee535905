"""The catalogue of audits: every mechanism, selector, estimator, scaler and score, by name.

An :class:`Entry` makes a case at a given epsilon: an object of the package, two neighbouring data sets that are hard to
protect, and the claim that the object makes of itself.
"""

from __future__ import annotations

from taciturn.core.errors import ParameterError
from taciturn_research.attacks.entry import KINDS, Entry, ExactCase, SampledCase
from taciturn_research.attacks.estimators import ESTIMATORS, PERSONS
from taciturn_research.attacks.mechanisms import MECHANISMS
from taciturn_research.attacks.registered import registered_entries
from taciturn_research.attacks.scores import SCORES
from taciturn_research.attacks.transformers import SCALERS, SELECTORS

__all__ = ["ENTRIES", "KINDS", "Entry", "ExactCase", "SampledCase", "all_entries", "find_entries"]

ENTRIES: tuple[Entry, ...] = (*MECHANISMS, *SELECTORS, *SCALERS, *ESTIMATORS, *PERSONS, *SCORES)
"""In the order in which ``all`` audits them."""


def all_entries() -> tuple[Entry, ...]:
    """The entries, and one for each model and selector of the registry that has none."""
    return (*ENTRIES, *registered_entries({entry.subject for entry in ENTRIES}))


def find_entries(name: str) -> tuple[Entry, ...]:
    """All entries for "all", those of a class by its name, or one by its own.

    Examples
    --------
    >>> from taciturn_research.attacks import find_entries
    >>> [entry.name for entry in find_entries("PermuteAndFlip")]
    ['PermuteAndFlip/exact', 'PermuteAndFlip/sampled', 'PermuteAndFlip/order']
    """
    entries = all_entries()
    found = tuple(entry for entry in entries if name in ("all", entry.subject, entry.name))
    if not found:
        known = ", ".join(dict.fromkeys(entry.subject for entry in entries))
        raise ParameterError("name", name, f"all, an entry, or one of {known}", "see taciturn audit list")
    return found
