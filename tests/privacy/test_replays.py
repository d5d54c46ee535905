"""Every public class, replayed on random neighbours: no difference, and sensitivities that are nearly used up."""

from dataclasses import replace

import numpy as np
import pytest
from replays_compared import by_class, replayed_without_a_difference

from taciturn import BoundedScaler
from taciturn.core.errors import ParameterError
from taciturn.data import records
from taciturn.data.sensitivity import RELATIONS
from taciturn.events import ExponentialEvent, GaussianEvent, OppositeSelectionsEvent, RepeatedEvent
from taciturn.privacy import transcript
from taciturn.tables import reading
from taciturn_research.attacks.replays import SMALL, TABLE_REPLAYS, Sizes, all_replays, replays_of

BY_CLASS = by_class(all_replays())
# One line stands for many fits and scores: replays compare what each trial, or each fold, costs.
TOGETHER = ("PrivateRandomizedSearch", "private_cross_val_score")
# About so many pairs of neighbours for each relation and class; every setting of a class has one at least.
PAIRS = (8, pytest.param(24, marks=pytest.mark.slow))
OF_TABLES = by_class(TABLE_REPLAYS)
TABLES = Sizes((1, 2, 5, 40), (1, 2, 6))


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("name", BY_CLASS)
def test_no_class_tells_neighbours_apart_but_through_its_noise(name, pairs):
    found = replayed_without_a_difference(BY_CLASS[name], SMALL, pairs)
    if name == BoundedScaler.__name__:
        assert not any(each.releases for each in found)
        return
    # Half of the declared sensitivity would not have been enough: the neighbours are hard ones.
    assert 0.5 < max(each.largest_share for each in found) <= 1.0


@pytest.mark.parametrize("name", OF_TABLES)
def test_no_pipeline_and_no_table_in_partitions_tells_neighbours_apart_but_through_its_noise(name):
    found = replayed_without_a_difference(OF_TABLES[name], TABLES, 6)
    assert 0.25 < max(each.largest_share for each in found) <= 1.0


@pytest.mark.parametrize("name", ["CorrelationSelector behind an encoder", "CorrelationSelector behind columns"])
def test_replays_notice_a_type_that_one_cell_gives_to_a_column(name, monkeypatch):
    """A column whose cells are of several types has none that can be read."""

    def typed_together(column):
        cells = column.to_numpy(dtype=object)
        several = len({type(cell) for cell in cells if cell is not None}) > 1
        return reading.Cells(np.full(len(cells), None) if several else cells)

    monkeypatch.setattr(reading, "_pandas_column", typed_together)
    (case,) = OF_TABLES[name]
    assert any(
        each.kind in ("sensitivity", "release")
        for found in replays_of(case, TABLES, repeats=10, seed=2)
        for each in found.differences
    )


def untrimmed(name, values, n_rows, bound, invalid):
    return np.asarray(values, dtype=float) / bound


def over_their_largest(name, values, n_rows, bound, invalid):
    found = np.asarray(values, dtype=float)
    return found / max(float(np.max(found, initial=0.0)), 1e-9)


MEASURED = [(name, place) for name in OF_TABLES if "weights" in name for place in range(len(OF_TABLES[name]))]


@pytest.mark.parametrize(
    ("broken", "name", "place"),
    [
        *((untrimmed, *each) for each in MEASURED),
        *((over_their_largest, *each) for each in MEASURED if each[1] == 0),
    ],
)
def test_replays_notice_weights_and_exposures_that_are_not_their_record_s_alone(broken, name, place, monkeypatch):
    monkeypatch.setattr(records, "_shares", broken)
    case = OF_TABLES[name][place]
    assert any(found.differences for found in replays_of(case, TABLES, repeats=6, seed=2))


# ------------------------------------------------------------------ what is released is what the certificate lists


class Listener:
    """A transcript that draws, and keeps the mechanisms."""

    def __init__(self):
        self.mechanisms = []

    def notice(self):
        raise AssertionError("a draw outside of a release")

    def answer(self, call, draw):
        self.mechanisms.append(call.mechanism)
        return draw()


def costs(events):
    """How many releases of each kind there are, and what they cost: numbers that add up."""
    found = {}
    for event in events:
        single, times = (event.event, event.count) if isinstance(event, RepeatedEvent) else (event, 1)
        if isinstance(single, GaussianEvent):
            cost = single.noise_multiplier**-2
        else:
            cost = single.epsilon ** (2 if isinstance(single, ExponentialEvent) else 1)
        number, total = found.get(type(single), (0, 0.0))
        found[type(single)] = number + times, total + times * cost
    return found


# Filters price selections by what remains; a perturbed objective has an event of its own, and what covers its solver
# costs less than was planned; of two quantiles of a column, one costs less than its mechanism says by itself.
PRICED_OTHERWISE = ("Sparse", "ObjectivePerturbation", "TwoStage", "ADMM", "PrivateScaler")


def check_list(mechanisms, releases, *, costly):
    """Raise unless as many releases of as much cost were made as are listed."""
    events = [mechanism.event for mechanism in mechanisms if hasattr(mechanism, "event")]
    released = costs(events)
    others = len(mechanisms) - len(events)
    # A line of opposite selections stands for two of them.
    made = [release.count * (1 + isinstance(release.event, OppositeSelectionsEvent)) for release in releases]
    assert others + sum(count for count, _ in released.values()) == sum(made)
    if costly:
        listed = costs(release.total for release in releases)
        assert released.keys() == listed.keys()
        for kind, (count, total) in released.items():
            assert count == listed[kind][0]
            # Lattices and the charge for rounding make noise larger than it has to be, by very little.
            assert (1.0 - 1e-4) * listed[kind][1] <= total <= (1.0 + 1e-9) * listed[kind][1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [name for name in BY_CLASS if name not in (BoundedScaler.__name__, *TOGETHER)])
def test_what_passes_the_transcript_is_what_the_certificate_lists(name):
    rng = np.random.default_rng(7)
    costly = not name.startswith(PRICED_OTHERWISE)
    heard = 0
    for case in BY_CLASS[name]:
        for relation in RELATIONS:
            model, data, _ = case.draw(relation, SMALL, rng)
            if hasattr(model, "fit"):
                # Where steps cancel, a screening has no coefficient to choose from and makes no release. Fixed seeds
                # keep that from happening in one run and not in another.
                model.set_params(random_state=5)
            listener = Listener()
            try:
                with transcript.transcribed(listener):
                    fitted = model.fit(**data) if hasattr(model, "fit") else model(**data)
            except ParameterError:
                continue
            releases = (getattr(fitted, "certificate_", None) or fitted.certificate).events
            check_list(listener.mechanisms, releases, costly=costly)
            if not releases:
                continue
            heard += 1
            # A release that nobody lists, a count that is too low and, where prices are plain, noise that is too small.
            first, *others = releases
            broken = [others, [replace(first, count=first.count + 1), *others]]
            if costly:
                broken.append([replace(first, event=cheaper(first.event)), *others])
            for listed in broken:
                with pytest.raises(AssertionError):
                    check_list(listener.mechanisms, listed, costly=costly)
    assert heard


def cheaper(event):
    """The same event for a little less."""
    if isinstance(event, GaussianEvent):
        return replace(event, noise_multiplier=1.001 * event.noise_multiplier)
    return replace(event, epsilon=event.epsilon / 1.001)
