"""The room that 64 bits leave the scores of a selector, over all partitions of a table."""

import numpy as np
import pytest

from taciturn import CorrelationSelector
from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE
from taciturn.data.sensitivity import RELATIONS, correlation_scores
from taciturn.engines import add_partitions
from taciturn.mechanisms import LARGEST_SCORE
from taciturn.methods.base import PublicFacts

LABELS = np.array([0, 1])


def plan(n_records, *, labels=None, unit="record", **settings):
    facts = PublicFacts(n_records, n_records, 5, labels=labels, unit=unit)
    selector = CorrelationSelector(x_bound=1.0, y_bounds=(-1, 1), n_features_to_select=2, **settings)
    return selector._plan(facts)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "facts", [{}, {"score_func": "sign"}, {"labels": LABELS}, {"labels": LABELS, "unit": "person"}]
)
def test_more_records_than_scores_have_room_for_are_refused(relation, facts):
    most = 1 << 30
    plan(most, relation=relation, **facts)
    with pytest.raises(ParameterError, match=f"^n_rows={most + 1}: "):
        plan(most + 1, relation=relation, **facts)


def test_the_room_is_needed():
    """Two partitions that are within their own bounds: in their total one record moves a score from end to end."""
    record = int(correlation_scores(ONE, ONE, "zero-out").value)
    part = np.array([(1 << 30) * record])
    full, less = (np.abs(add_partitions(iter((part, part - each)))) for each in (0, record))
    assert int(less[0]) - int(full[0]) > (1 << 63)
    # At the limit scores stay integers that a selection takes.
    assert int(part[0]) == LARGEST_SCORE


def test_a_private_number_of_records_is_assumed_to_be_within_the_room():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, 4)), rng.uniform(-1, 1, 200)
    for relation, expected in (("add-remove", {"there are at most 1,073,741,824 records"}), ("zero-out", set())):
        selector = CorrelationSelector(
            x_bound=1.0, y_bounds=(-1, 1), n_features_to_select=2, relation=relation, random_state=0
        ).fit(X, y)
        assert {text for text in selector.certificate_.assumptions if "at most" in text} == expected
