"""Laws of the lattice samplers, with controls that must fail, and the Gaussian mechanisms on top."""

import math
import os
import subprocess
import sys
from bisect import bisect_right

import numpy as np
import pytest
from scipy import stats

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.events import GaussianEvent
from taciturn.kernels.gaussian import N_STRIPS, propose_numpy, strip_tables
from taciturn.privacy.mechanisms import (
    DISTANCE_PER_VALUE,
    FloatGaussian,
    RoundedGaussian,
    lattice_normals,
    rounded_normals,
)

THRESHOLD = 1e-4


def probabilities(scale, reach, *, discrete):
    """P(x) for x from -reach to reach, then P(|x| > reach)."""
    x = np.arange(1, reach + 1)
    if discrete:
        weights = np.exp(-0.5 * (np.arange(1, 40 * scale) / scale) ** 2)
        weights /= 1.0 + 2.0 * weights.sum()
        one_side, tail = weights[:reach], weights[reach:].sum()
    else:
        one_side = stats.norm.sf((x - 0.5) / scale) - stats.norm.sf((x + 0.5) / scale)
        tail = stats.norm.sf((reach + 0.5) / scale)
    centre = 1.0 - 2.0 * (one_side.sum() + tail)
    return np.concatenate((one_side[::-1], [centre], one_side, [2.0 * tail]))


def law_p_value(values, scale, *, discrete=False):
    """Chi-square test over every lattice point that is expected ten times, and the rest."""
    density = values.size / (scale * math.sqrt(2.0 * math.pi))
    reach = int(scale * math.sqrt(2.0 * math.log(density / 10.0)))
    inside = values[np.abs(values) <= reach]
    counts = np.bincount(inside + reach, minlength=2 * reach + 1)
    counts = np.append(counts, values.size - inside.size)
    expected = probabilities(scale, reach, discrete=discrete) * values.size
    return stats.chisquare(counts, expected).pvalue


def with_swapped_strips(one=10, other=11):
    """Tables that confuse the probabilities of two strips, and are otherwise consistent."""
    widths = np.diff([0, *strip_tables().cumulative])
    widths[[one, other]] = widths[[other, one]]
    cumulative = tuple(widths.cumsum().tolist())
    heads = np.array([value >> 96 for value in cumulative])
    guide = np.array([bisect_right(heads.tolist(), cell << 20) for cell in range(2048)])
    return strip_tables()._replace(cumulative=cumulative, heads=heads, guide=guide)


def without_acceptance_test():
    return strip_tables()._replace(squeeze=np.full(N_STRIPS, 2**32))


def always_slow(tables):
    return tables._replace(squeeze=np.zeros(N_STRIPS, dtype=np.int64), margin=2.0**33)


# ---------------------------------------------------------------------- law


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("log2_scale", [5, 6, 7])
def test_every_lattice_point_has_its_probability(log2_scale, discrete):
    values = lattice_normals(Stream.of(101), 10_000_000, log2_scale, discrete=discrete)
    assert law_p_value(values, 2**log2_scale, discrete=discrete) > THRESHOLD


@pytest.mark.slow
@pytest.mark.parametrize("discrete", [False, True])
def test_every_lattice_point_has_its_probability_in_many_draws(discrete):
    reach = 64 * 14
    counts = np.zeros(2 * reach + 1, dtype=np.int64)
    stream = Stream.of(102)
    for _ in range(30):
        values = lattice_normals(stream, 10_000_000, 6, discrete=discrete)
        counts += np.bincount(values + reach, minlength=counts.size)
    inner = 64 * 4
    kept = counts[reach - inner : reach + inner + 1]
    observed = np.append(kept, counts.sum() - kept.sum())
    expected = probabilities(64, inner, discrete=discrete) * counts.sum()
    assert stats.chisquare(observed, expected).pvalue > THRESHOLD


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"tables": without_acceptance_test}, id="no acceptance test"),
        pytest.param({"tables": with_swapped_strips}, id="two strips swapped"),
        pytest.param({"factor": 2 / 3}, id="two thirds of the scale"),
        pytest.param({"factor": 3 / 2}, id="three halves of the scale"),
        pytest.param({"factor": 1.005}, id="half a percent too wide"),
        pytest.param({"truncated": True}, id="truncated instead of rounded"),
    ],
)
def test_broken_samplers_fail_the_same_test(broken):
    if "tables" in broken:
        values = lattice_normals(Stream.of(103), 10_000_000, 6, tables=broken["tables"]())
    else:
        fine = lattice_normals(Stream.of(103), 10_000_000, 20) * 2.0**-14
        to_integer = np.trunc if broken.get("truncated") else np.rint
        values = to_integer(fine * broken.get("factor", 1.0)).astype(np.int64)
    assert law_p_value(values, 64) < THRESHOLD


def test_rescaling_alone_does_not_fail_the_test():
    fine = lattice_normals(Stream.of(103), 10_000_000, 20) * 2.0**-14
    assert law_p_value(np.rint(fine).astype(np.int64), 64) > THRESHOLD


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("log2_scale", [20, 40, 55])
def test_fine_lattices_are_normal(log2_scale, discrete):
    values = lattice_normals(Stream.of(104 * log2_scale), 1_000_000, log2_scale, discrete=discrete)
    standard = values * 2.0**-log2_scale
    assert stats.kstest(standard, "norm").pvalue > THRESHOLD
    for factor in (2 / 3, 3 / 2, 1.02):
        assert stats.kstest(standard[:200_000] * factor, "norm").pvalue < THRESHOLD


def test_tails_are_complete():
    values = rounded_normals(Stream.of(105), 10_000_000, 30) * 2.0**-30
    for cut in (2.0, 3.0, 4.0, 4.5, 5.0):
        expected = 2.0 * stats.norm.sf(cut) * values.size
        for sign in (1.0, -1.0):
            assert abs((sign * values > cut).sum() - expected / 2) < 5 * math.sqrt(expected / 2) + 1


@pytest.mark.parametrize("discrete", [False, True])
def test_slow_proposals_follow_the_same_law(discrete):
    for tables, passes in [(strip_tables(), True), (with_swapped_strips(10, 30), False)]:
        values = lattice_normals(Stream.of(106), 15_000, 6, discrete=discrete, tables=always_slow(tables))
        assert (law_p_value(values, 64, discrete=discrete) > THRESHOLD) == passes


class TwoTapes:
    """A stream that keeps the bits of proposals and the bits that settle them apart."""

    def __init__(self):
        self._proposals, self._extra = Stream.of(107), Stream.of(108)

    def words(self, size):
        return (self._extra if size == 6 else self._proposals).words(size)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("margin", [2.0**28, 2.0**33])
def test_settled_values_stand_where_fast_ones_would(margin, discrete):
    slow = always_slow(strip_tables())._replace(margin=margin)
    settled = lattice_normals(TwoTapes(), 4_000, 20, discrete=discrete, tables=slow)
    fast = lattice_normals(TwoTapes(), 4_000, 20, discrete=discrete)
    assert settled.size == fast.size == 4_000
    # Rejected slow proposals are made up for by fresh ones, at the end.
    assert np.array_equal(settled[:3_800], fast[:3_800])


@pytest.mark.parametrize("log2_scale", [6, 20, 40])
def test_mean_variance_and_low_bits(log2_scale):
    n = 2_000_000
    values = rounded_normals(Stream.of(109), n, log2_scale)
    scale = 2.0**log2_scale
    variance = scale**2 + 1 / 12
    standard = values / scale
    assert abs(standard.mean()) < 5 / math.sqrt(n)
    assert abs((standard**2).mean() - variance / scale**2) < 5 * math.sqrt(2 / n)
    if log2_scale > 8:
        counts = np.bincount(values & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > THRESHOLD
        assert stats.chisquare(np.bincount((values | 1) & 255, minlength=256)).pvalue < THRESHOLD


# ---------------------------------------------------------------------- sampling


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("log2_scale", [6, 7, 9, 12, 33, 40])
def test_both_kernels_give_the_same_values(log2_scale, discrete):
    compiled = lattice_normals(Stream.of(110), 20_000, log2_scale, discrete=discrete)
    twin = lattice_normals(Stream.of(110), 20_000, log2_scale, discrete=discrete, kernel=propose_numpy)
    assert np.array_equal(compiled, twin)


def test_keys_and_calls_differ():
    stream = Stream.of(111)
    draws = [rounded_normals(stream, 100, 20), rounded_normals(stream, 100, 20)]
    draws += [rounded_normals(Stream.of(112), 100, 20), rounded_normals(stream.spawn("a"), 100, 20)]
    assert len({draw.tobytes() for draw in draws}) == 4
    assert np.array_equal(rounded_normals(Stream.of(111), 100, 20), draws[0])


def test_unseeded_noise_ignores_numpy_and_never_repeats():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 (the global seed is what must not matter)
        draws.append(rounded_normals(Stream.of(), 100, 20))
    assert not np.array_equal(*draws)


FORKING = """
import os, numpy as np
from taciturn.core.rng import Stream
from taciturn.privacy.mechanisms import rounded_normals
stream = Stream.of()
rounded_normals(stream, 10, 20)
read, write = os.pipe()
child = os.fork()
mine = rounded_normals(stream, 100, 20).tobytes()
if child == 0:
    os.write(write, mine)
    os._exit(0)
os.waitpid(child, 0)
theirs = os.read(read, 10_000)
assert len(mine) == len(theirs) == 800
assert mine != theirs
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_draws_noise_of_its_own():
    subprocess.run([sys.executable, "-c", FORKING], check=True)


@pytest.mark.parametrize("size", [0, 1, 10, 8_191, 8_192, 8_193, 30_000])
def test_any_number_of_values(size):
    values = rounded_normals(Stream.of(113), size, 20)
    assert values.shape == (size,)
    assert values.dtype == np.int64


def test_few_values_need_few_words():
    class Counting:
        drawn = 0

        def words(self, size):
            self.drawn += size
            return Stream.of(114).words(size)

    stream = Counting()
    rounded_normals(stream, 10, 20)
    assert stream.drawn <= 64


@pytest.mark.parametrize("log2_scale", [5, 20, 55])
def test_values_stay_within_fourteen_scales(log2_scale):
    values = rounded_normals(Stream.of(115), 200_000, log2_scale)
    assert np.abs(values).max() < 14 * 2**log2_scale + 1
    assert np.abs(values).max() > 4 * 2**log2_scale


@pytest.mark.parametrize("log2_scale", [4, 56, -1, 20.0, True, None])
def test_scales_out_of_range_are_refused(log2_scale):
    with pytest.raises(ParameterError, match="log2_scale"):
        rounded_normals(Stream.of(116), 10, log2_scale)
    with pytest.raises(ParameterError, match="log2_scale"):
        RoundedGaussian(1.0, log2_scale, 0)


# ---------------------------------------------------------------------- mechanisms


def test_release_adds_integers_to_integers():
    mechanism = RoundedGaussian(l2_sensitivity=math.sqrt(3.0), log2_scale=12, magnitude=10**6)
    value = np.arange(-50, 50)
    released = mechanism.release(value, Stream.of(117))
    assert released.dtype == np.int64
    assert np.array_equal(released - value, rounded_normals(Stream.of(117), 100, 12))
    table = mechanism.release(value.reshape(10, 10), Stream.of(117))
    assert np.array_equal(table, released.reshape(10, 10))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint64"])
def test_release_takes_every_integer_type(dtype):
    mechanism = RoundedGaussian(1, 5, magnitude=1_000)
    value = np.array([0, 1, 100], dtype=dtype)
    noise = rounded_normals(Stream.of(118), 3, 5)
    assert (mechanism.release(value, Stream.of(118)) - noise).tolist() == [0, 1, 100]
    assert value.tolist() == [0, 1, 100]


def test_release_clips_to_the_public_magnitude():
    mechanism = RoundedGaussian(1, 5, magnitude=10)
    noise = rounded_normals(Stream.of(119), 2, 5)
    signed = mechanism.release(np.array([-(2**63), 2**63 - 1]), Stream.of(119)) - noise
    unsigned = mechanism.release(np.array([2**64 - 1, 3], dtype=np.uint64), Stream.of(119)) - noise
    assert signed.tolist() == [-10, 10]
    assert unsigned.tolist() == [10, 3]


@pytest.mark.parametrize("value", [[1.0, 2.0], [True, False], ["1"], [1 + 0j], [2**70]])
def test_release_refuses_what_is_not_on_the_lattice(value):
    with pytest.raises(DataError, match="integers") as refusal:
        RoundedGaussian(1, 5, magnitude=10).release(np.array(value), Stream.of(120))
    assert "2.0" not in str(refusal.value)


@pytest.mark.parametrize("log2_scale", [5, 40, 55])
def test_magnitude_guard_is_sharp(log2_scale):
    bound = 2**63 - 14 * 2**log2_scale - 1
    mechanism = RoundedGaussian(1, log2_scale, magnitude=bound - 1)
    extremes = np.array([bound - 1, 1 - bound])
    released = mechanism.release(np.repeat(extremes, 1_000), Stream.of(121)).reshape(2, -1)
    assert (released[0] > 0).all()
    assert (released[1] < 0).all()
    with pytest.raises(ParameterError, match="magnitude"):
        RoundedGaussian(1, log2_scale, magnitude=bound)


def test_event_is_gaussian_and_on_the_safe_side():
    event = RoundedGaussian(math.sqrt(2.0), 12, magnitude=0).event
    assert isinstance(event, GaussianEvent)
    assert event.noise_multiplier**2 * 2 < 4.0**12
    assert event.noise_multiplier == pytest.approx(4096 / math.sqrt(2.0), rel=1e-14)
    assert DISTANCE_PER_VALUE == 2.0**-118


@pytest.mark.parametrize("l2_sensitivity", [0, -1.0, math.inf, math.nan, "1"])
def test_sensitivity_must_be_positive(l2_sensitivity):
    with pytest.raises(ParameterError, match="l2_sensitivity"):
        RoundedGaussian(l2_sensitivity, 12, magnitude=0)
    with pytest.raises(ParameterError, match="l2_sensitivity"):
        FloatGaussian(l2_sensitivity, 1.0)


def test_the_two_mechanisms_name_their_arithmetic():
    assert RoundedGaussian.arithmetic == "exact"
    assert FloatGaussian.arithmetic == "float64"


def test_float_gaussian_adds_scaled_normals():
    mechanism = FloatGaussian(l2_sensitivity=0.5, scale=3.0)
    assert mechanism.event == GaussianEvent(6.0)
    value = np.linspace(-1.0, 1.0, 200_000)
    noise = mechanism.release(value, Stream.of(122)) - value
    assert stats.kstest(noise / 3.0, "norm").pvalue > THRESHOLD
    for factor in (2 / 3, 3 / 2):
        assert stats.kstest(noise / 3.0 * factor, "norm").pvalue < THRESHOLD
    assert mechanism.release([1, 2], Stream.of(123)).dtype == np.float64


def test_float_gaussian_refuses_what_is_not_a_number():
    with pytest.raises(DataError, match="finite"):
        FloatGaussian(1.0, 1.0).release([1.0, math.nan], Stream.of(124))
    with pytest.raises(ParameterError, match="scale"):
        FloatGaussian(1.0, 0.0)
