"""A person with several rows is one record: no release moves beyond its sensitivity when all of them go at once."""

from itertools import groupby

import pytest
from broken_persons import BROKEN

from taciturn_research.attacks.replays import PERSON_REPLAYS, SMALL, replays_of

BY_CLASS = {
    name: list(cases) for name, cases in groupby(sorted(PERSON_REPLAYS, key=lambda case: case.name), lambda c: c.name)
}
PAIRS = 15


@pytest.mark.parametrize("name", BY_CLASS)
def test_no_class_tells_apart_whether_a_person_is_there(name):
    cases = BY_CLASS[name]
    repeats = max(1, PAIRS // len(cases))
    found = [each for case in cases for each in replays_of(case, SMALL, repeats=repeats, seed=1)]
    for each in found:
        each.raise_if_any()
    compared = [each for each in found if each.error is None]
    assert len(compared) > len(found) / 2, [each.error for each in found]
    assert {each.relation for each in compared} == {"zero-out", "add-remove", "replace-one"}
    # Half of the declared sensitivity would not have been enough: the persons are hard ones.
    assert 0.5 < max(each.largest_share for each in found) <= 1.0


def test_every_class_that_accepts_persons_is_replayed():
    assert set(BY_CLASS) == {
        "SparseRegressor", "SparseClassifier", "HardThresholdRegressor", "HardThresholdClassifier",
        "CorrelationSelector", "BlockVoteSelector", "PrivateScaler", "private_score",
    }  # fmt: skip


@pytest.mark.parametrize(("broken", "name"), [(each, name) for each, (_, names) in BROKEN.items() for name in names])
def test_replays_notice_where_rows_are_not_one_person(broken, name):
    apply, _ = BROKEN[broken]
    with apply():
        for case in BY_CLASS[name]:
            if broken == "halves cut persons" and not case.own.get("inference"):
                continue
            for seed in range(1, 13):
                if any(each.differences for each in replays_of(case, SMALL, repeats=1, seed=seed)):
                    return
    pytest.fail(f"{name} passes although {broken}")
