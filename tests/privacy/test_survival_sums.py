"""What survival releases moves by no more than its declared sensitivity, and other ways to count move by more."""

import math
from dataclasses import replace

import numpy as np
import pytest

from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.data.sensitivity import GRAM_WEIGHTS, RELATIONS, gram_matrix, jointly_clipped_sum, outcome_counts
from taciturn.data.survival import EXITS, SurvivalMap, event_marks, exit_intervals
from taciturn.engines.interface import ArraySource
from taciturn.losses import SquaredLoss
from taciturn.methods.inference.whitened import MATRIX_SCALE, Coordinates
from taciturn.methods.survival import hazards
from taciturn.methods.survival.curve import ExitCounts
from taciturn.methods.survival.hazards import (
    HazardInformation,
    HazardModel,
    HazardScore,
    HazardScoreProducts,
    HazardWeighing,
    contrasts_of,
)

CUTS = tuple(np.linspace(0.2, 1.0, 5).tolist())
UNIT = 1 << 10
NORM, ROW_SQUARED = 1 << 30, 1 << 22
EXIT_COUNTS = ExitCounts(CUTS, UNIT)


def counted(signed, task=EXIT_COUNTS, weight=None):
    """The sum of a task over records with these signed times."""
    signed = np.asarray(signed, dtype=np.float64)
    records = Records(np.zeros((signed.size, 1)), signed, np.arange(signed.size), signed.size, weight=weight)
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


def test_a_record_with_a_weight_counts_for_that_part_of_one():
    rng = np.random.default_rng(4)
    signed, weight = rng.uniform(-1.3, 1.3, 500), rng.choice([0.0, 0.2, 1.0 / 3.0, 1.0], 500)
    alone = [counted([time], weight=np.array([part])) for time, part in zip(signed, weight, strict=True)]
    assert np.array_equal(counted(signed, weight=weight), sum(alone))
    assert [each.sum() for each in alone] == np.floor(UNIT * weight).tolist()
    assert max(np.linalg.norm(each) for each in alone) == outcome_counts(UNIT, "l2", "zero-out").value
    # Weights that nobody trimmed would be more than one record.
    assert counted([0.5], weight=np.array([1.5])).sum() > outcome_counts(UNIT, "l1", "zero-out").value


# ------------------------------------------------------------------ scores and information of hazards

N_COLUMNS = 3
# Replacing is the hardest; the others move sums by the terms that it compares.
_RELATIONS = ["replace-one", *(pytest.param(each, marks=pytest.mark.slow) for each in RELATIONS[:2])]


def setting(seed):
    """Coordinates, a model and bounds as a fit may have them, at coefficients that are not small."""
    rng = np.random.default_rng(seed)
    matrix = np.eye(N_COLUMNS + 1)
    matrix[:-1] = rng.normal(0.0, 1.5, (N_COLUMNS, N_COLUMNS + 1))
    contrasts = contrasts_of(rng.uniform(1.0, 9.0, len(CUTS)), np.array([0, 0, 1, 2, 2]), 1.5)
    coefficients = np.append(rng.normal(0.0, 1.0, N_COLUMNS), 0.2)[None]
    model = HazardModel(CUTS, coefficients, rng.normal(-1.5, 0.5, len(CUTS)), contrasts)
    return Coordinates.of(matrix, None, intercept=True), HazardWeighing(model, rng.uniform(1.0, 4.0), rng.uniform(1, 9))


def tasks(seed):
    at, weighing = setting(seed)
    common = at, SquaredLoss(), weighing.model, weighing
    return {
        "score": HazardScore(*common, weighing.score, NORM),
        "products": HazardScoreProducts(*common, weighing.score, ROW_SQUARED),
        "information": HazardInformation(*common, weighing.trace, ROW_SQUARED),
    }


def summed(task, rows, signed, weight=None):
    """The sum of a task over some records."""
    X, y = np.atleast_2d(rows), np.atleast_1d(signed).astype(np.float64)
    weight = None if weight is None else np.atleast_1d(weight)
    return ArraySource(Records(X, y, np.arange(y.size), y.size, weight=weight), 1.0, y.size).total(task).astype(float)


def odd_records(seed, n=60):
    """Records at the corners of what is admissible, and in between: events early and late, censored, no time at all."""
    rng = np.random.default_rng([seed, 1])
    rows = np.rint(np.clip(rng.normal(0.0, 1.0, (n, N_COLUMNS)), -1.0, 1.0) * ONE) / ONE
    rows[: n // 3] = np.sign(rows[: n // 3])
    times = rng.choice([1e-9, 0.1, 0.2, 0.7, 1.0], n) * rng.choice([-1.0, 1.0], n)
    return rows, times


def length(name, sums):
    """The norm in which a sum is released."""
    if name == "score":
        return np.linalg.norm(sums)
    upper = np.triu_indices(len(sums))
    return np.linalg.norm(sums[upper] * np.where(upper[0] == upper[1], *GRAM_WEIGHTS))


def bound_of(name, relation):
    return jointly_clipped_sum(NORM, relation).value if name == "score" else gram_matrix(ROW_SQUARED, relation).value


def moves(name, relation, change=lambda task: task):
    """The largest moves of a sum between neighbours over several settings, in units of its sensitivity."""
    largest = 0.0
    # Bounds on scores and on information together: there is room for long terms in few settings.
    for seed in range(6):
        task, (rows, times) = change(tasks(seed)[name]), odd_records(seed)
        terms = [summed(task, row, time) for row, time in zip(rows, times, strict=True)]
        sizes = np.array([length(name, term) for term in terms])
        if relation == "replace-one":
            long = np.argsort(-sizes)[:30]
            found = max(length(name, terms[i] - terms[j]) for i in long for j in long)
        else:
            found = sizes.max()
        largest = max(largest, found / bound_of(name, relation))
    return largest


@pytest.mark.parametrize("name", ["score", "products", "information"])
@pytest.mark.parametrize("relation", _RELATIONS)
def test_no_neighbour_moves_a_sum_of_hazards_beyond_its_sensitivity_and_some_come_near(name, relation):
    assert 0.6 < moves(name, relation) <= 1.0


def expanded(task):
    """A record as one row for each interval in which it is observed, each of which may be as long as a record."""

    class Expanded(type(task)):
        __slots__ = ()

        def __call__(self, block):
            total = 0
            for place in range(len(CUTS)):
                part = replace(
                    self.model, log_means=np.where(np.arange(len(CUTS)) == place, self.model.log_means, -40.0)
                )
                one = replace(self, model=part, weighing=replace(self.weighing, model=part))
                total = total + type(task).__call__(one, block)
            return total

    return Expanded(**{name: getattr(task, name) for name in task.__dataclass_fields__})


@pytest.mark.slow
def test_a_record_that_is_expanded_into_rows_passes_the_sensitivity():
    assert moves("score", "zero-out", expanded) > 1.5


@pytest.mark.parametrize("name", ["score", "products", "information"])
def test_a_record_adds_the_same_to_the_last_bit_wherever_it_is(name):
    task = tasks(1)[name]
    rows, times = odd_records(1, 400)
    alone = sum(summed(task, row, time) for row, time in zip(rows, times, strict=True))
    assert np.array_equal(summed(task, rows, times), alone)
    assert np.array_equal(summed(task, rows[::-1], times[::-1]), alone)


# A score has its weight once, and their products have it twice.
@pytest.mark.parametrize(("name", "power"), [("score", 1), ("products", 2), ("information", 1)])
def test_what_a_record_adds_has_its_weight(name, power):
    for seed in range(2):
        task, (rows, times) = tasks(seed)[name], odd_records(seed)
        weight = np.random.default_rng(seed).choice([0.0, 0.3, 0.5, 1.0], times.size)
        alone = [summed(task, *each) for each in zip(rows, times, weight, strict=True)]
        assert np.array_equal(summed(task, rows, times, weight), sum(alone))
        for row, time, part, found in zip(rows, times, weight, alone, strict=True):
            whole = summed(task, row, time)
            # But for the rounding of vectors.
            assert np.allclose(found, part**power * whole, rtol=0, atol=3e-3 * bound_of(name, "zero-out"))
            assert length(name, found) <= bound_of(name, "zero-out")
    # Of a weight beyond one, whatever is too long becomes zero.
    for row, time in zip(rows, times, strict=True):
        assert length(name, summed(task, row, time, 1.5)) <= bound_of(name, "zero-out")


def test_weights_do_not_look_at_the_target():
    _, _weighing = setting(2)
    rows, times = odd_records(2)
    found = []

    class Heard(HazardScore):
        __slots__ = ()

        def __call__(self, block):
            found.extend(self.weighing.weights(part) for part in self.episodes(block))
            return super().__call__(block)

    task = tasks(2)["score"]
    heard = Heard(**{name: getattr(task, name) for name in task.__dataclass_fields__})
    summed(heard, rows, times)
    summed(heard, rows, -0.5 * times)
    assert np.array_equal(*found)
    assert found[0].min() < 0.5 < found[0].max() <= 1.0


@pytest.mark.slow
def test_vectors_that_are_too_long_become_zero(monkeypatch):
    # Without weights a record could add any norm: the check of its integers is what the guarantee rests on.
    monkeypatch.setattr(hazards.HazardWeighing, "weights", lambda self, rows: np.ones(len(rows.z)))
    for name in ("score", "products", "information"):
        assert moves(name, "zero-out") <= 1.0


@pytest.mark.slow
def test_bounds_hold_for_every_target_and_are_reached():
    at, weighing = setting(3)
    model = weighing.model
    ratios = {"score": 0.0, "information": 0.0}
    for seed in range(4):
        rows, times = odd_records(seed)
        for row, time in zip(rows, times, strict=True):
            steep = float(summed_bound(hazards.ScoreBounds(at, SquaredLoss(), model), row, time))
            trace = float(summed_bound(hazards.InformationBounds(at, SquaredLoss(), model), row, time))
            plain = HazardWeighing(model)
            score = summed(HazardScore(at, SquaredLoss(), model, plain, 2.0 * steep, NORM), row, time)
            matrix = summed(HazardInformation(at, SquaredLoss(), model, plain, 2.0 * trace, ROW_SQUARED), row, time)
            ratios["score"] = max(ratios["score"], np.linalg.norm(score) / NORM * 2.0)
            ratios["information"] = max(ratios["information"], np.trace(matrix) / ROW_SQUARED * 2.0 / MATRIX_SCALE**2)
    assert 0.6 < ratios["score"] <= 1.0 + 1e-6
    assert 0.9 < ratios["information"] <= 1.02


def summed_bound(statistic, row, time):
    records = Records(np.atleast_2d(row), np.array([time]), np.arange(1), 1)
    (block,) = ArraySource(records, 1.0, 1)._blocks
    return statistic.values(block)[0]
