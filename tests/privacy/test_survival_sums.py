"""What survival releases moves by no more than its declared sensitivity, and other ways to count move by more."""

import math

import numpy as np
import pytest

from taciturn.data.records import Records
from taciturn.data.sensitivity import RELATIONS, outcome_counts
from taciturn.data.survival import EXITS, SurvivalMap, event_marks, exit_intervals
from taciturn.engines.interface import ArraySource
from taciturn.methods.survival.curve import ExitCounts

CUTS = tuple(np.linspace(0.2, 1.0, 5).tolist())
UNIT = 1 << 10
EXIT_COUNTS = ExitCounts(CUTS, UNIT)


def counted(signed, task=EXIT_COUNTS):
    """The sum of a task over records with these signed times."""
    signed = np.asarray(signed, dtype=np.float64)
    records = Records(np.zeros((signed.size, 1)), signed, np.arange(signed.size), signed.size)
    return ArraySource(SurvivalMap(CUTS[-1])(records), 1.0, signed.size).total(task).astype(float)


class AtRisk(ExitCounts):
    """Events beside numbers at risk, which a record takes part in as long as it is observed."""

    __slots__ = ()

    def __call__(self, block):
        signed = np.asarray(block.target, dtype=np.float64)
        at_risk = exit_intervals(signed, self.cuts)[:, None] >= np.arange(len(self.cuts))
        counts = np.concatenate((event_marks(signed, self.cuts).sum(axis=0), at_risk.sum(axis=0)))
        return self.unit * counts.astype(np.int64)


def neighbours(relation, rng):
    """Pairs of records that differ: present and absent, or one and another."""
    times = np.concatenate((rng.uniform(-1.3, 1.3, 24), CUTS, -np.array(CUTS), [0.0, 5.0, -5.0]))
    for first in times:
        yield from ((first, second) for second in (times if relation == "replace-one" else [0.0]))


NORMS = {"l1": lambda move: np.abs(move).sum(), "l2": np.linalg.norm}


def largest_move(relation, norm, task=EXIT_COUNTS):
    rng = np.random.default_rng(1)
    return max(NORMS[norm](counted([a], task) - counted([b], task)) for a, b in neighbours(relation, rng))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_of_exits_reach_their_sensitivity_and_never_pass_it(relation, norm):
    bound = outcome_counts(UNIT, norm, relation).value
    assert bound * (1.0 - 1e-9) <= largest_move(relation, norm) <= bound


@pytest.mark.parametrize("relation", RELATIONS)
def test_numbers_at_risk_pass_it(relation):
    broken = largest_move(relation, "l2", AtRisk(CUTS, UNIT))
    assert broken > 1.5 * outcome_counts(UNIT, "l2", relation).value
    if relation != "replace-one":
        assert math.isclose(broken, UNIT * math.sqrt(len(CUTS) + 1))


def test_a_record_is_counted_once_whatever_its_time():
    rng = np.random.default_rng(2)
    signed = rng.uniform(-3.0, 3.0, 500)
    assert counted(signed).sum() == 500 * UNIT
    assert counted(signed).size == EXITS * len(CUTS)
