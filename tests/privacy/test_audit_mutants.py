"""The audit finds out every mutant by its own promise, and says nothing against the code as it is."""

import pytest
from mutants import MUTANTS, claim_and_finding, is_flagged

# How far beyond its promise a mutant must be caught, so that it is not a matter of luck with a seed.
MARGIN = 1.25


SLOW = (
    "selection per feature",
    "printed class sizes",
    "slope of one",
    "blocks by position",
    "one price for all steps",
)


def is_slow(mutant):
    """Replays of persons, which are quick, find what these find too; one class is enough in the quick tests."""
    return mutant.name in SLOW or ("person" in mutant.name and "Correlation" not in mutant.name)


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(each, marks=pytest.mark.slow if is_slow(each) else (), id=each.name) for each in MUTANTS],
)
def test_a_mutant_is_caught_and_the_same_attack_spares_what_is_sound(mutant):
    broken, sound = mutant.caught(), mutant.spared()
    claimed, found = claim_and_finding(broken)
    assert is_flagged(broken)
    assert found > MARGIN * claimed
    # A patch does not outlast its attack, and breaks the code without touching what it promises.
    promised, found = claim_and_finding(sound)
    assert not is_flagged(sound)
    assert found <= promised * (1.0 + 1e-9)
    assert claimed == pytest.approx(promised, rel=1e-6)


def test_every_mutant_has_its_own_attack():
    assert len({mutant.name for mutant in MUTANTS}) == len({mutant.attack for mutant in MUTANTS}) == len(MUTANTS) >= 16
    # A published class is broken as it stands; everything else needs a patch, and its control must not have one.
    for mutant in MUTANTS:
        assert (mutant.control is None) != mutant.breaks.startswith("`published.")
