"""A person with several rows is one record: no release moves beyond its sensitivity when all of them go at once."""

import pytest
from broken_persons import BROKEN, OF_INFERENCE
from replays_compared import by_class, replayed_without_a_difference

from taciturn_research.attacks.replays import PERSON_REPLAYS, SMALL, replays_of

BY_CLASS = by_class(PERSON_REPLAYS)
# About so many pairs of neighbours for each relation and class; every setting of a class has one at least.
PAIRS = (8, pytest.param(24, marks=pytest.mark.slow))


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("name", BY_CLASS)
def test_no_class_tells_apart_whether_a_person_is_there(name, pairs):
    found = replayed_without_a_difference(BY_CLASS[name], SMALL, pairs)
    # Half of the declared sensitivity would not have been enough: the persons are hard ones.
    assert 0.5 < max(each.largest_share for each in found) <= 1.0


def test_every_class_that_accepts_persons_is_replayed():
    assert set(BY_CLASS) == {
        "SparseRegressor", "SparseClassifier", "HardThresholdRegressor", "HardThresholdClassifier",
        "CorrelationSelector", "BlockVoteSelector", "PrivateScaler", "private_score",
        "PrivateRandomizedSearch", "private_cross_val_score",
    }  # fmt: skip


@pytest.mark.parametrize(("broken", "name"), [(each, name) for each, (_, names) in BROKEN.items() for name in names])
def test_replays_notice_where_rows_are_not_one_person(broken, name):
    apply, _ = BROKEN[broken]
    with apply():
        for case in BY_CLASS[name]:
            if broken in OF_INFERENCE and not case.own.get("inference"):
                continue
            for seed in range(1, 13):
                if any(each.differences for each in replays_of(case, SMALL, repeats=1, seed=seed)):
                    return
    pytest.fail(f"{name} passes although {broken}")
