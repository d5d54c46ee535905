"""What is asked of the replays of a class."""

from itertools import groupby

from taciturn_research.attacks.replays import replays_of


def by_class(cases):
    """Cases of every class and function by its name."""
    return {name: list(each) for name, each in groupby(sorted(cases, key=lambda c: c.name), lambda c: c.name)}


def replayed_without_a_difference(cases, sizes, pairs):
    """Replays of about so many pairs of neighbours for each relation, none of which told them apart."""
    repeats = max(1, pairs // len(cases))
    found = [each for case in cases for each in replays_of(case, sizes, repeats=repeats, seed=1)]
    for each in found:
        each.raise_if_any()
    # Refusals compare nothing: they are few, and all relations have been compared.
    compared = [each for each in found if each.error is None]
    assert len(compared) > len(found) / 2, [each.error for each in found]
    assert {each.relation for each in compared} == {"zero-out", "add-remove", "replace-one"}
    return found
