"""Streams: right laws with complete tails, reproducible when seeded, never shared."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from scipy import stats

from taciturn.core.errors import ParameterError, StreamError
from taciturn.core.rng import Stream

N = 200_000
LAWS = {
    "uniforms": stats.uniform(),
    "exponentials": stats.expon(),
    "gumbels": stats.gumbel_r(),
    "laplaces": stats.laplace(),
    "normals": stats.norm(),
}


class Replay(Stream):
    """A stream whose first words are given."""

    __slots__ = ("_first",)

    def __init__(self, first):
        super().__init__(bytes(32), seeded=True)
        self._first = list(first)

    def words(self, size):
        out = super().words(size)
        given = self._first[:size]
        out[: len(given)] = given
        self._first = self._first[size:]
        return out


@pytest.mark.parametrize("name", LAWS)
def test_law_is_right_and_other_scales_are_rejected(name):
    sample = getattr(Stream.of(11), name)(N)
    assert stats.kstest(sample, LAWS[name].cdf).pvalue > 1e-4
    for factor in (2 / 3, 3 / 2):
        assert stats.kstest(sample * factor, LAWS[name].cdf).pvalue < 1e-6


@pytest.mark.parametrize("name", LAWS)
def test_odd_sizes_and_empty_draws(name):
    draw = getattr(Stream.of(1), name)
    assert draw(0).shape == (0,)
    assert draw(1).shape == (1,)
    assert draw(20_001).shape == (20_001,)


def test_neighbouring_draws_are_independent():
    normals = Stream.of(2).normals(N)
    assert abs(np.corrcoef(normals[:-1], normals[1:])[0, 1]) < 5 / np.sqrt(N)
    half = N // 2
    assert abs(np.corrcoef(normals[:half], normals[half:])[0, 1]) < 5 / np.sqrt(half)


@pytest.mark.parametrize("name", ["uniforms", "exponentials", "gumbels", "laplaces", "normals"])
@pytest.mark.parametrize("word", [0, 1, 2**64 - 1, 2**64 - 2])
def test_extreme_words_give_finite_values(name, word):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(getattr(Replay([word] * 4), name)(4)).all()


def test_tails_are_extended_beyond_one_word():
    # Three words of zeros push the uniform below 2**-126, and Gumbel far up through the other end.
    assert Replay([0, 0, 5 << 50]).uniforms(1)[0] < 2.0**-126
    assert Replay([0, 0, 5 << 50]).exponentials(1)[0] > 126 * np.log(2)
    assert Replay([1, 0, 5 << 50]).gumbels(1)[0] > 126 * np.log(2)
    # The lower tail of a Gumbel variable is doubly exponential: E around 88 is far out.
    assert Replay([0, 0, 5 << 50]).gumbels(1)[0] < -np.log(126 * np.log(2))


def test_short_words_are_uniform_inside():
    # Words whose leading bits are all equal to 7: the fraction must come from the next word.
    sample = np.array([Replay([7 << 1]).uniforms(1)[0] * 2.0**63 - 7 for _ in range(3)])
    assert ((sample > 0) & (sample <= 1)).all()
    stream = Stream.of(4)
    fractions, short = stream._fractions(np.full(20_000, 7 << 1, dtype=np.uint64))
    assert short.size == 20_000
    assert stats.kstest(fractions * 2.0**63 - 7, "uniform").pvalue > 1e-4


def test_gumbel_is_accurate_at_both_ends():
    # u = 1 - p with p = 8.5 / 2**64, where log(1 - p) in plain doubles would be zero.
    upper = Replay([(8 << 1) | 1, 1 << 63]).gumbels(1)[0]
    assert upper == pytest.approx(-np.log(8.5 * 2.0**-64), abs=1e-12)
    lower = Replay([8 << 1, 1 << 63]).gumbels(1)[0]
    assert lower == pytest.approx(-np.log(-np.log(8.5 * 2.0**-64)), abs=1e-14)
    middle = (1 << 62) | 1
    assert Replay([middle]).gumbels(1)[0] == pytest.approx(-np.log(-np.log(1 - 0.125)), abs=1e-12)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000, 2**40 + 1, 2**63])
def test_integers_cover_their_range_evenly(bound):
    sample = Stream.of(3).integers(bound, 60_000)
    assert sample.min() >= 0
    assert int(sample.max()) < bound
    if bound == 1:
        assert not sample.any()
    elif bound <= 1000:
        assert stats.chisquare(np.bincount(sample, minlength=bound)).pvalue > 1e-4
    else:
        assert stats.kstest(sample / bound, "uniform").pvalue > 1e-4


def test_modulo_bias_would_be_caught():
    biased = Stream.of(3).words(60_000) % np.uint64(2**63 + 2**62)
    assert stats.kstest(biased / (2**63 + 2**62), "uniform").pvalue < 1e-6


def test_big_integers_are_uniform():
    bound = 3 * 10**40
    stream = Stream.of(8)
    sample = np.array([stream.below(bound) / bound for _ in range(20_000)])
    assert stats.kstest(sample, "uniform").pvalue > 1e-4
    assert {stream.below(1) for _ in range(5)} == {0}
    assert {stream.below(3) for _ in range(200)} == {0, 1, 2}


def test_seeded_streams_repeat_and_say_so():
    assert Stream.of(5).seeded
    assert not Stream.of().seeded
    assert np.array_equal(Stream.of(5).words(100), Stream.of(np.int64(5)).words(100))
    assert not np.array_equal(Stream.of(5).words(100), Stream.of(6).words(100))
    assert "seeded=True" in repr(Stream.of(5))


def test_unseeded_streams_ignore_the_global_seed():
    np.random.seed(0)  # noqa: NPY002
    first = Stream.of().words(8)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, Stream.of().words(8))


def test_children_differ_from_parent_and_each_other():
    def draws(parent):
        return [parent.spawn("stage").words(50), parent.spawn("stage").words(50), parent.words(50)]

    a, b, c = draws(Stream.of(1))
    assert not np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert all(np.array_equal(x, y) for x, y in zip((a, b, c), draws(Stream.of(1)), strict=True))
    assert Stream.of(1).spawn("x").seeded
    assert not Stream.of().spawn("x").seeded


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_of_secure_streams_draw_other_numbers(duplicate):
    stream = Stream.of()
    assert not np.array_equal(duplicate(stream).words(8), stream.words(8))
    assert not np.array_equal(duplicate(stream).words(8), duplicate(stream).words(8))


def test_one_pickle_read_twice_gives_two_streams():
    stored = pickle.dumps(Stream.of())
    assert not np.array_equal(pickle.loads(stored).words(8), pickle.loads(stored).words(8))


def test_the_key_is_not_in_the_pickle():
    stream = Stream.of()
    assert stream._key not in pickle.dumps(stream)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_seeded_streams_refuse_to_be_copied(duplicate):
    with pytest.raises(StreamError, match="a seeded stream cannot be copied"):
        duplicate(Stream.of(1))


def _draw(stream):
    return stream.words(8)


def test_joblib_workers_draw_different_numbers():
    stream = Stream.of()
    results = joblib.Parallel(n_jobs=2)(joblib.delayed(_draw)(stream) for _ in range(4))
    results.append(stream.words(8))
    assert len({tuple(words.tolist()) for words in results}) == 5


def _send_words(stream, pipe):
    try:
        pipe.send(stream.words(8).tolist())
    except StreamError as error:
        pipe.send(str(error))


def _in_fork(stream):
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with warnings.catch_warnings():
        # Python warns of forking where threads run; that is the situation under test.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = context.Process(target=_send_words, args=(stream, theirs))
        child.start()
    answer = ours.recv()
    child.join()
    return answer


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_children_never_repeat_their_parent():
    stream = Stream.of()
    assert _in_fork(stream) != _in_fork(stream)
    assert _in_fork(stream) != stream.words(8).tolist()
    assert "forked process" in _in_fork(Stream.of(1))


# libc's fork calls none of Python's hooks. PyDLL keeps the lock, so that the child comes back to Python with it.
RAW_FORK = """
import ctypes, os, sys
from taciturn.core.errors import StreamError
from taciturn.core.rng import Stream

def words(stream):
    try:
        return stream.words(8).tobytes()
    except StreamError:
        return b"refused"

def child_words(stream):
    spawned = stream.spawn("before")
    read, write = os.pipe()
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        try:
            os.write(write, words(stream) + b"|" + words(spawned))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    mine = words(stream) + b"|" + words(spawned)
    return mine, os.read(read, 1000)

mine, theirs = child_words(Stream.of())
assert len(mine) == len(theirs) == 129
assert mine[:64] != theirs[:64] and mine[65:] != theirs[65:]
mine, theirs = child_words(Stream.of(1))
assert theirs == b"refused|refused", theirs
assert len(mine) == 129
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks_behind_pythons_back_never_repeat_their_parent():
    done = subprocess.run([sys.executable, "-c", RAW_FORK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _twins(random_state):
    """Two streams in one state, as two resumptions of one snapshot of a machine hold them."""
    first, second = Stream.of(random_state), Stream.of(random_state)
    second._open(first._key)
    return first, second


def test_children_of_one_state_differ_unless_they_are_seeded():
    first, second = _twins(None)
    assert first.words(4).tolist() == second.words(4).tolist()
    assert first.spawn("stage").words(4).tolist() != second.spawn("stage").words(4).tolist()
    first, second = _twins(5)
    assert first.spawn("stage").words(4).tolist() == second.spawn("stage").words(4).tolist()


def test_bad_bounds_are_refused():
    for bad in (0, -1, 2**63 + 1):
        with pytest.raises(ParameterError, match="bound="):
            Stream.of(0).integers(bad, 3)
    with pytest.raises(ParameterError, match="bound=0"):
        Stream.of(0).below(0)


@pytest.mark.parametrize("bad", [-1, 1.5, "7", True, np.random.RandomState(0)])
def test_bad_random_states_are_refused(bad):
    with pytest.raises(ParameterError, match="random_state=.*expected None or an integer >= 0"):
        Stream.of(bad)
