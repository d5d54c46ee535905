"""Every public class, replayed on random neighbours: no difference, and sensitivities that are nearly used up."""

from itertools import groupby

import pytest

from taciturn import BoundedScaler
from taciturn.audit.catalogue.replays import REPLAYS, SMALL, replays_of

BY_CLASS = {name: list(cases) for name, cases in groupby(sorted(REPLAYS, key=lambda case: case.name), lambda c: c.name)}
# So many pairs of neighbours for each relation and class, in whatever settings it has.
PAIRS = 15


@pytest.mark.parametrize("name", BY_CLASS)
def test_no_class_tells_neighbours_apart_but_through_its_noise(name):
    cases = BY_CLASS[name]
    repeats = max(1, PAIRS // len(cases))
    found = [each for case in cases for each in replays_of(case, SMALL, repeats=repeats, seed=1)]
    for each in found:
        each.raise_if_any()
    # Refusals compare nothing: they are few, and all relations have been compared.
    compared = [each for each in found if each.error is None]
    assert len(compared) > len(found) / 2, [each.error for each in found]
    assert {each.relation for each in compared} == {"zero-out", "add-remove", "replace-one"}
    if name == BoundedScaler.__name__:
        assert not any(each.releases for each in found)
        return
    # Half of the declared sensitivity would not have been enough: the neighbours are hard ones.
    assert 0.5 < max(each.largest_share for each in found) <= 1.0
