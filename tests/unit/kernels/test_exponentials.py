"""The exponential function of derivatives: near the true one, and the same bits compiled and in numpy."""

import mpmath
import numba
import numpy as np
import pytest

from taciturn.kernels import gradients
from taciturn.kernels.gradients import exact_logarithm, exponential_numpy, log_sum_exp, logistic_numpy, softmax_numpy

rng = np.random.default_rng(0)
HALVINGS = np.log(2.0) * np.arange(0.0, 1020.0, 0.5)
NEGATIVE = -np.concatenate(
    (
        rng.uniform(0.0, 1.0, 1500),
        rng.uniform(0.0, 708.0, 1500),
        # Where the nearest multiple of ln 2 changes, and on either side.
        HALVINGS, np.nextafter(HALVINGS, 0.0), np.nextafter(HALVINGS, 1e3),
        np.exp(rng.uniform(-700.0, 6.5, 1500)),
    )
)  # fmt: skip
NEGATIVE = NEGATIVE[NEGATIVE > -708.0]
EXTREMES = np.array(
    [-0.0, 0.0, -5e-324, -2.3e-308, -np.nextafter(708.0, 0.0), -708.0, -np.nextafter(708.0, 1e3), -746.0, -1e308,
     -np.inf, np.nan]
)  # fmt: skip


def relative_errors(values, arguments, true):
    with mpmath.workdps(50):
        return [abs(float((mpmath.mpf(float(v)) - t) / t)) for v, t in zip(values, map(true, arguments), strict=True)]


def test_the_exponential_is_within_its_bound():
    errors = relative_errors(exponential_numpy(NEGATIVE), NEGATIVE.tolist(), lambda x: mpmath.exp(mpmath.mpf(x)))
    assert max(errors) <= 2.0**-52
    # A bound that is not far from what happens.
    assert max(errors) > 2.0**-54


def test_the_logistic_function_is_within_its_bound_on_both_sides():
    z = np.concatenate((NEGATIVE, -NEGATIVE))
    errors = relative_errors(logistic_numpy(z), z.tolist(), lambda x: 1 / (1 + mpmath.exp(-mpmath.mpf(x))))
    assert max(errors) <= 2.0**-51


def test_fewer_terms_are_noticed(monkeypatch):
    monkeypatch.setattr(gradients, "_C13", 0.0)
    monkeypatch.setattr(gradients, "_TERMS", (0.0, 0.0, *gradients._TERMS[2:]))
    errors = relative_errors(exponential_numpy(NEGATIVE), NEGATIVE.tolist(), lambda x: mpmath.exp(mpmath.mpf(x)))
    assert max(errors) > 2.0**-52


def test_ends():
    assert exponential_numpy(np.array([0.0, -0.0, -5e-324])).tolist() == [1.0, 1.0, 1.0]
    assert exponential_numpy(np.array([-708.0, -1e308, -np.inf])).tolist() == [0.0, 0.0, 0.0]
    assert 0.0 < exponential_numpy(np.array([-707.99]))[0] < 1e-307
    assert logistic_numpy(np.array([-np.inf, -800.0, 0.0, 800.0, np.inf])).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert np.isnan(logistic_numpy(np.array([np.nan]))).all()
    assert exponential_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert float(logistic_numpy(0.0)) == 0.5


def over_arrays(function, **options):
    """A compiled loop that applies a kernel, which numba puts into it, to every number: in vectors, where it can."""

    @numba.njit(error_model="numpy", **options)
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    def apply(x):
        out = np.empty(x.size)
        loop(x, out)
        return out

    return apply


def sample(both_sides):
    x = np.concatenate((NEGATIVE, EXTREMES, -rng.uniform(0.0, 720.0, 300_000), -rng.exponential(1.0, 300_000)))
    return np.concatenate((x, -x)) if both_sides else x


def same_bits(first, second):
    return np.array_equal(np.asarray(first).view(np.int64), np.asarray(second).view(np.int64))


TWINS = {"exponential": (exponential_numpy, False), "logistic": (logistic_numpy, True)}


@pytest.mark.parametrize("name", TWINS)
def test_the_compiled_version_has_the_same_bits(name):
    twin, both_sides = TWINS[name]
    x, kernel = sample(both_sides), getattr(gradients, name)
    apply = over_arrays(kernel)
    in_vectors = apply(x)
    assert same_bits(in_vectors, twin(x))
    # One by one, from Python, and at any place of an array.
    few = x[:: x.size // 200]
    assert same_bits([kernel(float(each)) for each in few], twin(few))
    for shift in (1, 2, 3):
        assert same_bits(apply(x[shift:])[:1000], in_vectors[shift : shift + 1000])


def test_the_compiled_logarithm_has_the_same_bits():
    x = np.concatenate((rng.uniform(1.0, 2.0, 300_000), np.exp(rng.uniform(-700.0, 700.0, 300_000)), [1.0, 2.0, 0.5]))
    found = over_arrays(gradients.logarithm)(x)
    assert same_bits(found, exact_logarithm(x))
    assert same_bits([gradients.logarithm(float(each)) for each in x[:200]], found[:200])
    assert np.allclose(found, np.log(x), rtol=2.0**-50, atol=2.0**-52)
    assert not same_bits(found, np.log(x))


def _fuses():
    """Whether this processor has a fused multiplication and addition."""

    @numba.njit(fastmath={"contract"})
    def fused(a, b, c):
        return a * b + c

    return fused(1.0 + 2.0**-52, 1.0 - 2.0**-52, -1.0) != 0.0


@pytest.mark.skipif(not _fuses(), reason="nothing is fused on this processor")
def test_fused_operations_are_noticed():
    x = sample(False)
    assert not same_bits(over_arrays(gradients.exponential, fastmath={"contract"})(x), exponential_numpy(x))


def test_the_library_of_the_system_is_noticed():
    x = NEGATIVE
    assert not same_bits(np.exp(x), exponential_numpy(x))
    assert np.allclose(np.exp(x), exponential_numpy(x), rtol=2.0**-50, atol=0.0)


def test_softmax_and_log_sum_exp():
    margins = np.concatenate((rng.normal(0.0, 30.0, (300, 4)), np.zeros((1, 4)), 1e15 * rng.normal(size=(20, 4))))
    probabilities, logarithms = softmax_numpy(margins), log_sum_exp(margins)
    with mpmath.workdps(50):
        for row, ours, log in zip(margins.tolist(), probabilities, logarithms, strict=True):
            top = mpmath.mpf(max(row))
            powers = [mpmath.exp(mpmath.mpf(z) - top) for z in row]
            total = mpmath.fsum(powers)
            # Differences of margins are rounded before they are exponents.
            room = (max(row) - min(row)) * 2.0**-52 + 2.0**-50
            assert all(abs(p - q / total) <= room * (q / total) + 2.0**-1000 for p, q in zip(ours, powers, strict=True))
            assert abs(log - (top + mpmath.log(total))) <= 2.0**-51 * (abs(float(top)) + 2.0)
    order = rng.permutation(len(margins))
    assert same_bits(softmax_numpy(margins[order]), probabilities[order])
    assert same_bits(log_sum_exp(margins[order]), logarithms[order])


def test_logarithms():
    x = np.concatenate(
        (rng.uniform(1.0, 9.0, 2000), 1.0 + 10.0 ** rng.uniform(-15, 0, 500), 2.0 ** np.arange(1.0, 60.0))
    )
    errors = relative_errors(gradients._logarithm(x), x.tolist(), lambda v: mpmath.log(mpmath.mpf(v)))
    assert max(errors) <= 2.0**-51
    assert gradients._logarithm(np.ones(1)).tolist() == [0.0]
