"""Seeded fits give what they gave when they were recorded, to the bit.

The record is no proof that a result is right; other tests are. It shows that work on the code changed none. Where a
result changes on purpose, ``python tests/conformance/seeded_fits.py --write`` records it anew, and the diff shows
which ones did.
"""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import seeded_fits
from seeded_fits import (
    CASES,
    described_fit,
    described_score,
    differences,
    fitted,
    recorded,
    run_with_common_kernels,
    scored,
)
from sklearn.base import BaseEstimator

import taciturn
from taciturn import published

RECORDED = recorded()
ALONE = sorted(name for name in CASES if name != "private_score" and not name.endswith(", elsewhere"))


# In few processes, since each takes seconds to start.
_GROUPS = [list(CASES)[place::4] for place in range(4)]


@pytest.mark.parametrize("names", _GROUPS, ids=[f"group {place}" for place in range(4)])
def test_fits_are_equal_to_the_bit(names):
    found = run_with_common_kernels(*names)
    if found.returncode == 2:
        pytest.skip("the fits were recorded on another system or with other packages; record them before a change")
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_public_class_has_ten_cases():
    classes = {
        name
        for module in (taciturn, published)
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) and issubclass(getattr(module, name), BaseEstimator)
    }
    # It draws settings, and fits models that have cases.
    classes.remove("PrivateRandomizedSearch")
    alone = {name for name in CASES if not name.endswith(", elsewhere")}
    assert alone == {*classes, "private_score"}
    assert set(CASES) == set(RECORDED["fits"])
    assert all(len(CASES[name]) == 10 for name in alone)
    assert all(len(cases) == len(RECORDED["fits"][name]) for name, cases in CASES.items())


def nudged(value):
    """The last entry moved by the least step there is."""
    moved = np.array(value)
    moved.flat[-1] = not moved.flat[-1] if moved.dtype == bool else np.nextafter(moved.flat[-1], np.inf)
    return moved


@pytest.mark.parametrize("name", ALONE)
def test_one_bit_of_one_result_is_noticed(name):
    case = CASES[name][0]
    model = fitted(name, case)
    before = described_fit(model, case)
    assert not differences([before], [described_fit(fitted(name, case), case)])
    attribute = next(each for each in ("coef_", "lower_", "support_") if hasattr(model, each))
    setattr(model, attribute, nudged(getattr(model, attribute)))
    assert any(f": {attribute} was" in line for line in differences([before], [described_fit(model, case)]))


@pytest.mark.parametrize("name", sorted({*ALONE} - {"BoundedScaler"}))
def test_one_bit_of_one_event_is_noticed(name):
    case = CASES[name][1]
    model = fitted(name, case)
    before = described_fit(model, case)
    *others, last = model.certificate_.events
    rescaled = replace(last, scale=float(np.nextafter(last.scale, np.inf)))
    model.certificate_ = replace(model.certificate_, events=(*others, rescaled))
    lines = differences([before], [described_fit(model, case)])
    assert ["events was" in line for line in lines] == [True, False]
    assert "numbers was" in lines[1]


def test_one_bit_of_a_score_is_noticed():
    score = scored(CASES["private_score"][1])
    before = described_score(score)
    (line,) = differences([before], [described_score(replace(score, value=float(nudged(score.value))))])
    assert "value was" in line


def test_words_for_what_was_released_change_by_the_reviewed_table_alone(monkeypatch):
    case = CASES["FrankWolfeRegressor"][0]
    model = fitted("FrankWolfeRegressor", case)
    before = described_fit(model, case)
    old = {event.what for event in model.certificate_.events}
    events = tuple(replace(event, what=f"again: {event.what}") for event in model.certificate_.events)
    model.certificate_ = replace(model.certificate_, events=events)
    (line,) = differences([before], [described_fit(model, case)])
    assert ": texts was" in line
    monkeypatch.setattr(seeded_fits, "REWORDED", {what: f"again: {what}" for what in old})
    assert not differences([before], [described_fit(model, case)])


def test_a_case_less_and_a_result_less_are_noticed():
    first, *others = RECORDED["fits"]["FrankWolfeRegressor"]
    assert differences([first, *others], others[:9])
    assert differences([first], [{name: value for name, value in first.items() if name != "coef_"}])
