"""A record against a null record is what the declared sensitivities cover, and shortcuts are found out."""

import numpy as np
import pytest
from every_class import PROVED, records, released, target_for
from null_records import WITH_RELATION, null_model, one_null

from taciturn.audit import replay
from taciturn.core.rng import Stream
from taciturn.data import records as reading
from taciturn.data.records import Records
from taciturn.data.sensitivity import RELATIONS
from taciturn.methods.objective import blocks as objective_blocks
from taciturn.methods.scaling import estimator as scaling_estimator
from taciturn.methods.selection import run as selection_run
from taciturn.methods.selection.run import assign_blocks, blocks_by_slot

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")


def unexpected(name, found):
    """Differences, but for the minimiser of a perturbed objective, which is no value with noise on it."""
    objective = name.startswith(("ObjectivePerturbation", "TwoStage", "ADMM"))
    return [each for each in found.differences if not (objective and each.kind == "result")]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", WITH_RELATION)
def test_a_record_against_a_null_record_is_covered_by_every_declared_sensitivity(name, relation):
    X, y = records()
    # Corners move sums the most, and the largest target moves medians across.
    X[4], y[4] = np.sign(X[4] + 0.1), 1.0
    X[250], y[250] = 0.0, -1.0
    y = target_for(PROVED[name](), y)
    for row in (4, 250) if relation != "add-remove" else (299,):
        data, neighbour = one_null(X, y, row)
        if relation == "add-remove":
            # A null record is no record: as many rows as before would be refused by the replay.
            neighbour = {"X": np.delete(X, row, axis=0), "y": np.delete(y, row)}
        found = replay(null_model(name, relation), data, neighbour, relation=relation)
        assert unexpected(name, found) == []
        assert found.error is None


def keep_blank(self, present):
    """A null record as it used to be in regressions: a row of zeros with a target in the middle of its range."""
    blank = np.where(present[:, None], self.X, 0.0)
    y = np.where(present, self.y, 0.0)
    return Records(blank, y, self.slots, self.n_slots)


@pytest.mark.parametrize("name", ["HardThresholdRegressor", "SparseRegressor", "PrivateScaler"])
def test_a_null_record_that_only_looks_empty_is_found_out(name, monkeypatch):
    """It still is in every median, where it takes the place of the record on the other side."""
    X, y = records()
    X[X == 0.0] = 0.3
    X[4], y[4] = 1.0, 1.0
    data, neighbour = one_null(X, y, 4)
    replay(null_model(name), data, neighbour, relation="zero-out").raise_if_any()
    if name == "PrivateScaler":
        monkeypatch.setattr(
            scaling_estimator, "finite_rows", lambda table: np.nan_to_num(table, copy=False)[:, 0] < np.inf
        )
    else:
        monkeypatch.setattr(Records, "keep", keep_blank)
    assert replay(null_model(name), data, neighbour, relation="zero-out").differences


def test_null_records_keep_their_slots():
    slots = np.array([0, 1, 5, 6, 9])
    present = Records(np.zeros((5, 2)), np.zeros(5), slots, 10)
    for relation in ("zero-out", "replace-one"):
        blocks = assign_blocks(relation, present, 4, Stream.of(0))
        # Slots 0-1, 2-4, 5-6, 7-9.
        assert [slots[rows].tolist() for rows in blocks] == [[0, 1], [], [5, 6], [9]]
    drawn = assign_blocks("add-remove", present, 4, Stream.of(0))
    assert sorted(np.concatenate(drawn).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["BlockVoteSelector", "TwoStageRegressor", "TwoStageClassifier"])
def test_blocks_of_records_that_moved_up_are_found_out(name, monkeypatch):
    X, y = records(seed=3)
    # Without the last record all others move by one against the edges of the blocks.
    data, neighbour = one_null(X, target_for(PROVED[name](), y), 299)
    model = null_model(name, n_blocks=60)
    assert unexpected(name, replay(model, data, neighbour, relation="zero-out")) == []

    def by_position(relation, records, n_blocks, stream, keys=None):
        return blocks_by_slot(records.slots.size, n_blocks)

    for module in (selection_run, objective_blocks):
        monkeypatch.setattr(module, "assign_blocks", by_position)
    assert unexpected(name, replay(model, data, neighbour, relation="zero-out")) != []


def test_a_forgotten_mask_is_noticed(monkeypatch):
    X, y = records()
    _, neighbour = one_null(X, y, 4)
    monkeypatch.setattr(reading, "finite_rows", lambda table: np.ones(len(table), dtype=bool))
    model = null_model("FrankWolfeRegressor")
    found = released(null_model("FrankWolfeRegressor").fit(**neighbour))
    monkeypatch.undo()
    assert found != released(model.fit(**neighbour))
