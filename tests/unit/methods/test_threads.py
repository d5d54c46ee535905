"""How many threads sums get: facts about the machine and its settings; and what they change, which is nothing."""

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from taciturn import SparseClassifier
from taciturn.engines import ArraySource
from taciturn.methods import descent
from taciturn.methods.descent import add_shares, all_threads_if_large, n_threads, one_thread

CELLS = np.random.default_rng(0).integers(-(2**20), 2**20, (1000, 3))


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def many(monkeypatch):
    """A machine with eight processors whose BLAS has four threads."""

    class Pool:
        user_api, num_threads = "blas", 4

    class Controller:
        lib_controllers = (Pool,)

    monkeypatch.setattr(descent, "_thread_pools", Controller)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return Pool


def test_the_least_limit_counts(monkeypatch, many):
    assert n_threads() == 4
    many.num_threads = 16
    assert n_threads() == 8
    for stated, expected in (("3", 3), ("2,4", 2), ("0", 1), ("", 8), ("many", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", stated)
        assert n_threads() == expected
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5})
    assert n_threads() == 1


def test_limits_of_threadpoolctl_count():
    with threadpool_limits(1):
        assert n_threads() == 1


def test_blas_has_one_thread_inside_and_sums_as_many_as_outside():
    before, outside = blas_threads(), n_threads()
    with one_thread():
        assert blas_threads() == {1}
        assert n_threads() == outside
        with one_thread():
            assert n_threads() == outside
        with all_threads_if_large(100):
            assert blas_threads() == {1}
        with all_threads_if_large(2000):
            assert blas_threads() == {outside}
        assert blas_threads() == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1001])
def test_shares_are_all_rows_once(monkeypatch, n):
    monkeypatch.setattr(descent, "n_threads", lambda: n)
    monkeypatch.setattr(descent, "_LEAST_SHARE", 1)
    seen = []

    def part(start, stop):
        seen.append((start, stop))
        return CELLS[start:stop].sum(axis=0)

    assert np.array_equal(add_shares(part, *CELLS.shape), CELLS.sum(axis=0))
    assert len(seen) == n
    assert sum(stop - start for start, stop in seen) == 1000


def test_threads_keep_what_the_caller_says_of_floating_point_errors(monkeypatch):
    monkeypatch.setattr(descent, "n_threads", lambda: 3)
    monkeypatch.setattr(descent, "_LEAST_SHARE", 1)

    def part(start, stop):
        return (np.ones(2) / np.zeros(2)).astype(bool).astype(np.int64)

    with np.errstate(divide="ignore"):
        assert add_shares(part, *CELLS.shape).tolist() == [3, 3]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        add_shares(part, *CELLS.shape)


def test_small_tables_are_one_share_and_errors_come_back(monkeypatch):
    monkeypatch.setattr(descent, "n_threads", lambda: 4)
    shares = []

    def part(start, stop):
        shares.append((start, stop))
        return np.zeros(1, dtype=np.int64)

    add_shares(part, 1000, 3)
    assert shares == [(0, 1000)]
    add_shares(part, 1 << 21, 2)
    assert sorted(shares[1:]) == [(0, 1 << 20), (1 << 20, 1 << 21)]

    def failing(start, stop):
        raise MemoryError

    with pytest.raises(MemoryError):
        add_shares(failing, 1 << 21, 2)


def test_a_fit_leaves_blas_one_thread_while_it_runs(monkeypatch):
    seen, total = [], ArraySource.total

    def watched(source, task):
        seen.append(blas_threads())
        return total(source, task)

    monkeypatch.setattr(ArraySource, "total", watched)
    before = blas_threads()
    X = CELLS / 2.0**20
    SparseClassifier(classes=(0, 1), epsilon=8.0, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    assert seen
    assert all(found == {1} for found in seen)
    assert blas_threads() == before
