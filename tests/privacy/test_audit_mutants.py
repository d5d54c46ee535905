"""The audit finds out every mutant by its own promise, and says nothing against the code as it is."""

from dataclasses import replace
from pathlib import Path

import pytest
from mutants import KINDS, MUTANTS, claim_and_finding, is_flagged

# How far beyond its promise a mutant must be caught, so that it is not a matter of luck with a seed.
MARGIN = 1.25


SLOW = (
    "selection per feature",
    "printed class sizes",
    "slope of one",
    "blocks by position",
    "one price for all steps",
)


def is_whole_fit(mutant):
    return mutant.name.startswith("a twentieth of the noise")


def is_slow(mutant):
    """Replays of persons, which are quick, find what these find too."""
    return mutant.name in SLOW or "rows of a person" in mutant.name


def caught(mutant):
    """What was claimed by a mutant that the attack found out."""
    broken = mutant.caught()
    claimed, found = claim_and_finding(broken)
    assert is_flagged(broken)
    assert found > MARGIN * claimed
    return claimed


@pytest.mark.parametrize("mutant", [*filter(is_whole_fit, MUTANTS)], ids=lambda mutant: mutant.name)
def test_a_whole_fit_with_too_little_noise_is_caught(mutant):
    caught(replace(mutant, attack=mutant.attack.quick()))


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(each, marks=pytest.mark.slow if is_slow(each) or is_whole_fit(each) else (), id=each.name)
        for each in MUTANTS
    ],
)
def test_a_mutant_is_caught_and_the_same_attack_spares_what_is_sound(mutant):
    claimed = caught(mutant)
    # A patch does not outlast its attack, and breaks the code without touching what it promises.
    sound = mutant.spared()
    promised, found = claim_and_finding(sound)
    assert not is_flagged(sound)
    assert found <= promised * (1.0 + 1e-9)
    assert claimed == pytest.approx(promised, rel=1e-6)


def test_every_mutant_has_its_own_attack():
    assert len({mutant.name for mutant in MUTANTS}) == len({mutant.attack for mutant in MUTANTS}) == len(MUTANTS) >= 16
    # A published class is broken as it stands; everything else needs a patch, and its control must not have one.
    for mutant in MUTANTS:
        assert (mutant.control is None) != mutant.breaks.startswith("`published.")


def test_every_kind_of_bug_of_other_libraries_has_a_mutant_that_make_test_catches():
    listed = Path(__file__).parents[1].joinpath("slow_tests.txt").read_text(encoding="utf-8")
    quick = [each.name for each in MUTANTS if not (is_slow(each) or is_whole_fit(each) or f"[{each.name}]" in listed)]
    for names in KINDS.values():
        assert set(names) <= {mutant.name for mutant in MUTANTS}
        assert names[0] in quick
