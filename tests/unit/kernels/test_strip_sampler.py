"""The strip sampler as a machine: its tables, its two kernels, and the exact path behind them."""

import math
import subprocess
import sys
from bisect import bisect_right
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from taciturn.core.rng import Stream
from taciturn.kernels.gaussian import (
    EXTRA_WORDS,
    MARGIN,
    N_STRIPS,
    acceptance,
    acceptance_numpy,
    propose,
    propose_numpy,
    resolve,
    strip_tables,
)

ALL_ONES = 2**64 - 1


def run(kernel, words, log2_scale, discrete, *, room=None, **changed):
    """What a kernel makes of the words: its values and its slow rows."""
    tables = strip_tables()._replace(**changed)
    n_proposals = words.size // 2
    out = np.zeros(n_proposals if room is None else room, dtype=np.int64)
    slow = np.zeros((n_proposals, 2), dtype=np.int64)
    _, heads, guide, squeeze, margin = tables
    n_out, n_slow = kernel(words, log2_scale, discrete, heads, guide, squeeze, margin, out, slow)
    return out[:n_out], slow[:n_slow]


def pair(*, selection=0, negative=0, bits=0, offset=0):
    return np.array([selection << 33 | negative << 32 | bits, offset], dtype=np.uint64)


def undecidable():
    """Settings under which no proposal can be decided from its leading bits."""
    return {"squeeze": np.zeros(N_STRIPS, dtype=np.int64), "margin": 2.0**33}


# ---------------------------------------------------------------------- tables


@pytest.fixture(scope="module")
def exact_weights():
    with mpmath.workprec(500):
        yield [mpmath.exp(mpmath.mpf(-j * j) / 512) for j in range(N_STRIPS)]


def test_strip_probabilities_are_those_of_500_bits(exact_weights):
    with mpmath.workprec(500):
        total = mpmath.fsum(exact_weights)
        reached, expected = mpmath.mpf(0), []
        for weight in exact_weights:
            reached += weight
            expected.append(int(mpmath.floor(reached / total * 2**127)))
    cumulative = strip_tables().cumulative
    # The last entry is exactly one, which a rounded sum need not be.
    assert list(cumulative[:-1]) == expected[:-1]
    assert cumulative[-1] == 2**127


def test_strip_probabilities_increase_and_heads_follow_them():
    cumulative, heads, guide, _, _ = strip_tables()
    # The farthest strips weigh less than 2**-127 and may share a value.
    assert all(low < high for low, high in pairwise(cumulative[:200]))
    assert all(low <= high for low, high in pairwise(cumulative[199:]))
    assert heads.tolist() == [value >> 96 for value in cumulative]
    assert guide.size == 2048
    for cell, start in enumerate(guide.tolist()):
        reachable = [j for j in range(N_STRIPS) if heads[j] > cell << 20]
        assert start == reachable[0]


def test_squeeze_never_accepts_what_the_exponential_might_reject():
    with mpmath.workprec(200):
        for j, bits in enumerate(strip_tables().squeeze.tolist()):
            lowest = mpmath.exp(mpmath.mpf(-2 * j - 1) / 512) * 2**32
            assert bits + 1 <= lowest
            assert bits + 4 > lowest


def test_double_exponential_is_within_its_margin():
    stream = Stream.of(11)
    strips = stream.integers(N_STRIPS, 25_000)
    words = stream.words(25_000)
    fractions = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    vector = acceptance_numpy(strips, fractions)
    worst = 0.0
    with mpmath.workprec(120):
        rows = zip(strips.tolist(), words.tolist(), fractions.tolist(), vector.tolist(), strict=True)
        for strip, word, fraction, computed in rows:
            # Half a unit stands for the offset bits that have not been drawn.
            u = mpmath.ldexp(mpmath.mpf(2 * word + 1), -65)
            true = mpmath.exp(-u * (2 * strip + u) / 512) * 2**32
            worst = max(worst, abs(float(computed - true)), abs(float(acceptance(strip, fraction) - true)))
    assert worst < MARGIN
    assert worst < MARGIN / 16, "the double exponential is worse than this platform's usually are"


def test_tables_are_shared_and_cannot_be_written():
    tables = strip_tables()
    assert strip_tables() is tables
    with pytest.raises(ValueError, match="read-only"):
        tables.heads[0] = 0


def test_tables_do_not_depend_on_the_decimal_settings_of_the_program():
    script = (
        "import decimal; decimal.DefaultContext.prec = 3; decimal.setcontext(decimal.Context(prec=3))\n"
        "from taciturn.kernels.gaussian import strip_tables; print(hash(strip_tables().cumulative))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) == hash(strip_tables().cumulative)


def test_import_neither_compiles_nor_computes():
    script = (
        "import sys\n"
        "from taciturn.kernels import gaussian\n"
        "assert 'numba' not in sys.modules\n"
        "assert not gaussian.propose.dispatcher.signatures and not gaussian.acceptance.dispatcher.signatures\n"
        "assert gaussian.strip_tables.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# ---------------------------------------------------------------------- twins


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("log2_scale", [5, 6, 7, 9, 12, 33, 40, 55])
def test_compiled_and_numpy_kernels_agree(log2_scale, discrete):
    words = Stream.of(5).words(40_000)
    for room, changed in [(None, {}), (100, {}), (None, {"margin": 2.0**28}), (None, undecidable())]:
        compiled = run(propose, words, log2_scale, discrete, room=room, **changed)
        vectorised = run(propose_numpy, words, log2_scale, discrete, room=room, **changed)
        slow = compiled[1]
        assert np.array_equal(slow, vectorised[1])
        compiled[0][slow[:, 0]] = vectorised[0][slow[:, 0]] = 0
        assert np.array_equal(compiled[0], vectorised[0])


def test_kernels_stop_when_either_side_runs_out():
    words = Stream.of(6).words(2_000)
    for kernel in (propose, propose_numpy):
        everything, _ = run(kernel, words, 20, False)
        assert 950 < everything.size < 1_000
        some, _ = run(kernel, words, 20, False, room=10)
        assert np.array_equal(some, everything[:10])
        nothing, slow = run(kernel, words[:0], 20, False)
        assert nothing.size == slow.size == 0


def test_values_are_integers_of_64_bits_with_symmetric_signs():
    words = Stream.of(7).words(2_000)
    mirrored = words.copy()
    mirrored[0::2] ^= np.uint64(1 << 32)
    for kernel in (propose, propose_numpy):
        values, _ = run(kernel, words, 30, False)
        assert values.dtype == np.int64
        assert np.array_equal(run(kernel, mirrored, 30, False)[0], -values)


@pytest.mark.parametrize("log2_scale", [5, 20, 55])
def test_rounding_looks_at_one_bit(log2_scale):
    half = 1 << (67 - log2_scale)
    offsets = {half - 1: 0, half: 1, 3 * half - 1: 1, 3 * half: 2}
    for offset, expected in offsets.items():
        for kernel in (propose, propose_numpy):
            assert run(kernel, pair(offset=offset), log2_scale, False)[0].tolist() == [expected]
        assert resolve(0, offset, 0, log2_scale, False, strip_tables().cumulative) == expected


def test_discrete_law_drops_the_negative_zero():
    for kernel in (propose, propose_numpy):
        assert run(kernel, pair(negative=1), 20, True)[0].size == 0
        assert run(kernel, pair(negative=0), 20, True)[0].tolist() == [0]
        assert run(kernel, pair(negative=1), 20, False)[0].tolist() == [0]
    assert resolve(1 << 32, 0, 0, 20, True, strip_tables().cumulative) is None


# ---------------------------------------------------------------------- slow proposals


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("log2_scale", [6, 20, 40])
def test_exact_path_decides_like_the_fast_path(log2_scale, discrete):
    stream = Stream.of(8)
    words = stream.words(12_000)
    fast, slow = run(propose, words, log2_scale, discrete)
    assert slow.size == 0
    exact = []
    for first, offset in words.reshape(-1, 2).tolist():
        extra = int.from_bytes(stream.words(EXTRA_WORDS).tobytes(), "little")
        value = resolve(first, offset, extra, log2_scale, discrete, strip_tables().cumulative)
        if value is not None:
            exact.append(value)
    assert fast.tolist() == exact


@pytest.mark.parametrize("kernel", [propose, propose_numpy])
def test_slow_proposals_keep_their_place(kernel):
    words = Stream.of(9).words(4_000)
    fast, _ = run(kernel, words, 20, False)
    values, slow = run(kernel, words, 20, False, margin=2.0**28)
    assert 20 < len(slow) < 1_000
    extra = 2**352 // 3
    keep = np.ones(values.size, dtype=bool)
    for place, proposal in slow.tolist():
        first, offset = words[2 * proposal : 2 * proposal + 2].tolist()
        value = resolve(first, offset, extra, 20, False, strip_tables().cumulative)
        keep[place] = value is not None
        values[place] = value or 0
    assert np.array_equal(values[keep], fast)


@pytest.mark.parametrize("kernel", [propose, propose_numpy])
def test_everything_can_be_made_slow(kernel):
    words = Stream.of(10).words(1_000)
    values, slow = run(kernel, words, 20, False, **undecidable())
    assert values.size == 500
    assert slow.tolist() == [[i, i] for i in range(500)]


def test_a_head_on_the_border_is_slow_and_the_full_table_decides():
    cumulative, heads, *_ = strip_tables()
    for strip in [0, 1, 17, 60, 103, 150, 199]:
        head = int(heads[strip])
        for kernel in (propose, propose_numpy):
            assert run(kernel, pair(selection=head), 20, False)[1].tolist() == [[0, 0]]
        for selection in (cumulative[strip] - 1, cumulative[strip]):
            first = selection >> 96 << 33
            found = resolve(first, 0, selection & (1 << 96) - 1, 20, False, cumulative)
            # The offset and the acceptance bits are zero, so the value is the strip's left end.
            assert found == bisect_right(cumulative, selection) << 16
            assert found == strip + (selection == cumulative[strip]) << 16


def test_acceptance_bits_on_the_border_are_slow_and_the_exact_exponential_decides():
    offset = 3 << 62
    with mpmath.workprec(600):
        u = mpmath.mpf(3) / 4
        border = int(mpmath.floor(mpmath.exp(-u * u / 512) * 2**160))
    bits, rest = border >> 128, border & (1 << 128) - 1
    for kernel in (propose, propose_numpy):
        assert run(kernel, pair(bits=bits, offset=offset), 20, False)[1].tolist() == [[0, 0]]
        assert run(kernel, pair(bits=bits - 1, offset=offset), 20, False)[1].size == 0
        assert run(kernel, pair(bits=bits + 1, offset=offset), 20, False)[0].size == 0
    cumulative = strip_tables().cumulative
    assert resolve(bits, offset, rest << 96, 20, False, cumulative) == 3 << 14
    assert resolve(bits, offset, rest + 1 << 96, 20, False, cumulative) is None
    # The very last offset bits still count: they lower the probability below the border.
    assert resolve(bits, offset, (1 << 128) - 1 << 224 | rest << 96, 20, False, cumulative) is None


@pytest.mark.parametrize("log2_scale", [5, 6, 30, 55])
def test_the_largest_value_is_fourteen_scales(log2_scale):
    cumulative = strip_tables().cumulative
    extra = (1 << 96) - 1
    for negative in (0, 1):
        first = (ALL_ONES >> 33 << 33) | negative << 32
        value = resolve(first, ALL_ONES, extra, log2_scale, False, cumulative)
        assert value == (-1) ** negative * 14 * 2**log2_scale
    words = np.array([0, ALL_ONES, ALL_ONES, 0, 1 << 63, ALL_ONES], dtype=np.uint64)
    for kernel in (propose, propose_numpy):
        values, _ = run(kernel, words, log2_scale, False)
        assert np.abs(values).max() < 14 * 2**log2_scale + 1


def test_slow_proposals_are_rare():
    slow = run(propose, Stream.of(12).words(4_000_000), 20, False)[1]
    # About 224 / 2**31 + 2**-32 of them: 0.2 expected here, 5 or more once in 10**6 runs.
    assert len(slow) < 5
    assert math.isclose(strip_tables().margin, 2.0**-12)
