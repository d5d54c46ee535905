"""Counts of row statistics, their medians and the largest row norm, against plain numpy."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.records import Records
from taciturn.engines import ArraySource
from taciturn.events import ExponentialEvent
from taciturn.losses import HuberLoss, LogisticLoss
from taciturn.mechanisms import PrivateQuantile
from taciturn.methods.releases import ScheduledMedians
from taciturn.methods.schedule import Schedule
from taciturn.methods.sums import (
    CumulativeCounts,
    KeptShares,
    RowNorms,
    TargetMagnitudes,
    TargetSum,
    largest_row_norm,
)
from taciturn.privacy.claim import Release
from taciturn.privacy.mechanisms import cumulative_counts

N_ROWS, N_FEATURES = 60, 5
CENTRE = np.array([ONE, -ONE // 2, 0, 17, 4000], dtype=float)


def table():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.3, 1.3, (N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) < 0.6)
    X[:3] = 0.0
    return X


def in_memory(y, X=None, n_partitions=4, layout=np.asarray):
    X = table() if X is None else X
    return ArraySource(Records(layout(X), y, np.arange(len(y)), len(y)), 1.0, len(y), n_partitions=n_partitions)


def integers(X):
    return np.rint(np.clip(X, -1, 1) * ONE)


def counted(values, grid):
    return [int((values <= point).sum()) for point in grid] + [len(values)]


NUMBERS = np.random.default_rng(0).integers(-ONE, ONE + 1, N_ROWS).astype(float)
CODES = np.random.default_rng(1).integers(-1, 2, N_ROWS)


@pytest.mark.parametrize("values", [np.zeros(0), np.array([0.5]), np.array([0.1, 0.2, 0.2, 0.9, 5.0, -3.0])])
def test_cumulative_counts_include_the_points_themselves(values):
    grid = (0.1, 0.2, 0.5)
    assert cumulative_counts(values, grid).tolist() == counted(values, grid)
    assert cumulative_counts(values, grid).dtype == np.int64


def test_sums_of_targets():
    assert in_memory(NUMBERS).total(TargetSum()).tolist() == [int(NUMBERS.sum())]
    assert in_memory(CODES).total(TargetSum((1, 0))).tolist() == [ONE * int((c == CODES).sum()) for c in (1, 0)]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("one_pass", [False, True])
def test_histograms_count_what_they_say(layout, one_pass):
    rows = integers(table())
    grid = tuple(np.geomspace(0.1, 2.5, 9))
    mean = 1234
    magnitudes = in_memory(NUMBERS, layout=layout).total(CumulativeCounts(TargetMagnitudes(mean), grid))
    assert magnitudes.tolist() == counted(np.abs(NUMBERS - mean) / ONE, grid)
    columns = np.array([0, 3])
    for loss, y in ((HuberLoss(1.0), NUMBERS), (LogisticLoss(), CODES)):
        present = np.ones(N_ROWS, dtype=bool) if y is NUMBERS else y >= 0
        source = in_memory(y, layout=layout)
        for chosen, centre in ((None, None), (None, CENTRE), (columns, CENTRE[columns])):
            own = rows if chosen is None else rows[:, chosen]
            # Rows of zeros are left out, whatever their distance from the centre.
            shown = present & own.any(axis=1)
            norms = np.linalg.norm(own - (0.0 if centre is None else centre), axis=1)[shown] / ONE
            found = source.total(CumulativeCounts(RowNorms(loss, chosen, centre, one_pass=one_pass), grid))
            assert found.tolist() == counted(norms, grid)
            every = RowNorms(loss, chosen, centre, one_pass=one_pass, zeros=True)
            norms = np.linalg.norm(own - (0.0 if centre is None else centre), axis=1)[present] / ONE
            assert source.total(CumulativeCounts(every, grid)).tolist() == counted(norms, grid)
        cap = math.floor(0.25 * ONE)
        squares = np.square(rows).sum(axis=1)
        kept = (np.abs(rows) * np.minimum(np.abs(rows), cap)).sum(axis=1) / np.maximum(squares, 1.0)
        kept[squares == 0.0] = 1.0
        shares = (0.1, 0.2, 0.4, 0.8, 1.0)
        assert source.total(CumulativeCounts(KeptShares(loss, 0.25), shares)).tolist() == counted(kept[present], shares)


@pytest.mark.parametrize("centre", [None, CENTRE])
def test_the_largest_row_norm_is_found_by_counting(centre):
    norms = np.square(integers(table()) - (0.0 if centre is None else centre)).sum(axis=1)
    found = largest_row_norm(in_memory(NUMBERS), RowNorms(HuberLoss(1.0), None, centre))
    assert found == math.sqrt(norms.max()) / ONE
    # Null records do not count.
    found = largest_row_norm(in_memory(CODES), RowNorms(LogisticLoss(), None, centre))
    assert found == math.sqrt(norms[CODES >= 0].max()) / ONE


@pytest.mark.parametrize("lattice", [0, 1, 2, 255, 256, ONE - 1, ONE])
def test_the_search_ends_at_every_norm(lattice):
    X = np.full((2, 3), lattice / ONE)
    found = largest_row_norm(in_memory(np.zeros(2), X), RowNorms(HuberLoss(1.0), None))
    assert found == math.sqrt(3 * lattice * lattice) / ONE


def test_no_records_have_no_norm():
    source = in_memory(np.zeros(0), np.zeros((0, 3)), n_partitions=1)
    assert largest_row_norm(source, RowNorms(HuberLoss(1.0), None)) == 0.0


def test_medians_from_counts_are_those_from_values():
    """The same draws choose the same point, whether values or sums of counts over partitions are scored."""
    grid = np.geomspace(0.05, 2.5, 12)
    values = np.linalg.norm(integers(table()), axis=1) / ONE
    values = values[values > 0.0]
    mechanism = PrivateQuantile(tuple(grid), 0.5, "replace-one", 0.4)
    norms, source = RowNorms(HuberLoss(1.0), None), in_memory(NUMBERS, n_partitions=7)
    release = Release("a median", "Gumbel", 5.0, ExponentialEvent(0.4))
    schedule, chosen = Schedule.of(Budget(1.0, 1e-6), median=release), set()
    for seed in range(40):
        expected = mechanism.release(values, Stream.of(seed).spawn("norms"))
        medians = ScheduledMedians(schedule, "replace-one", source, Stream.of(seed))
        assert medians.release("median", norms, grid, "norms") == expected
        chosen.add(expected)
    assert len(chosen) > 3
