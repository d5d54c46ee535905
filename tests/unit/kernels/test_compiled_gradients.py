"""Compiled sums of gradients are those of their numpy twin, to the bit; kernels that cut a corner are not."""

import math

import numba
import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.kernels import gradients
from taciturn.losses import (
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    ScalarLoss,
    SoftmaxLoss,
    SquaredLoss,
)
from taciturn.methods import clipped_records, descent
from taciturn.methods.clipped_records import ClippedRecords, Clipping, squared_row_norms

N = 700
KINDS = {
    "huber": (HuberLoss(0.3), 1, 0.3),
    "squared": (SquaredLoss(), 1, 4.0),
    "logistic": (LogisticLoss(), 1, 0.8),
    "poisson": (PoissonLoss(0.4, -5.0, 0.2), 1, 2.0),
    "gamma": (GammaLoss(0.4, -3.0), 1, 3.0),
    "softmax": (SoftmaxLoss(), 4, math.sqrt(2.0)),
    "softmax, clipped": (SoftmaxLoss(), 9, 0.6),
}
WEIGHTS = (3, 90_001, (1 << 37) - 5)


def open_records(
    kind,
    n_features,
    *,
    n_rows=N,
    weight=90_001,
    joint=False,
    persons=False,
    centred=True,
    constant=ONE // 3,
    measured=False,
):
    loss, n_outputs, slope = KINDS[kind]
    rng = np.random.default_rng(n_features)
    X = rng.uniform(-1.2, 1.2, (N, n_features)) * (rng.random((N, n_features)) < 0.8)
    X[:9] = rng.choice([-1.0, 1.0], (9, n_features))
    y = rng.integers(-1, max(2, n_outputs), N) if loss.labelled else rng.integers(-ONE, ONE, N).astype(float)
    centre = rng.integers(-ONE, ONE, n_features).astype(float) if centred else None
    row_squared = max(1, n_features) * ONE**2 // 4
    product = max(1, round(0.4 * weight * math.sqrt(row_squared))) if joint else None
    clipping = Clipping(
        None, n_features, loss, n_outputs, row_squared, constant, weight, slope, centre, product_bound=product
    )
    design = Design(X, 1.0)
    counts = rng.integers(1, 5, N) if persons else None
    measures = (rng.random(N), -3.0 * rng.random(N)) if measured else (None, None)
    return ClippedRecords(clipping, design, y, squared_row_norms(design, centre), counts, *measures)


def some_coefficients(records):
    rng = np.random.default_rng(1)
    shape = records.clipping.n_outputs, records.clipping.width
    sparse = rng.normal(0.0, 1.0, shape) * (rng.random(shape) < 0.2)
    return np.zeros(shape), rng.normal(0.0, 1.0, shape), sparse, rng.normal(0.0, 40.0, shape), np.full(shape, 1e306)


def agree(records):
    """Whether both give the same integers, at each of some coefficients."""
    return [np.array_equal(records.sums(w), records.sums_at(records.margins(w))) for w in some_coefficients(records)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [False, True])
def test_compiled_and_numpy_versions_are_equal_to_the_bit(kind, joint):
    for n_features in (1, 5, 67):
        for weight in WEIGHTS:
            assert all(agree(open_records(kind, n_features, weight=weight, joint=joint)))
        assert all(agree(open_records(kind, n_features, joint=joint, persons=True)))
        if "softmax" not in kind and kind != "logistic":
            assert all(agree(open_records(kind, n_features, joint=joint, measured=True)))
        assert all(agree(open_records(kind, n_features, joint=joint, centred=False, constant=0)))
    assert all(agree(open_records(kind, 0, joint=joint)))


def excess_in_numpy(records, models, reference, clip, unit):
    base = records.losses(reference)
    return [clipped_records.excess_integers(records.losses(model), base, clip, unit).sum() for model in models]


@pytest.mark.parametrize("kind", ["huber", "squared", "logistic"])
def test_sums_of_excess_losses_are_those_of_numpy_to_the_bit(kind):
    for n_features in (0, 1, 5, 67):
        for measured in (False, True):
            records = open_records(kind, n_features, measured=measured)
            for reference in some_coefficients(records):
                models = some_coefficients(records)
                for clip, unit in ((0.5, 2000.0), (1e-3, 2.0**40), (1e9, 1e6)):
                    expected = excess_in_numpy(records, models, reference, clip, unit)
                    assert records.excess_loss_sums(models, reference, clip, unit).tolist() == expected
                    # A unit in the last place of the clip, where differences reach it, is no rounding.
                    broken = excess_in_numpy(records, models, reference, 1.1 * clip, unit)
                    assert clip > 1.0 or broken != expected


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_steps_do_not_show(monkeypatch, kind):
    whole = [open_records(kind, 7, joint=True).sums(w) for w in some_coefficients(open_records(kind, 7))]
    monkeypatch.setattr(descent, "_LEAST_SHARE", 1)
    for n_threads, n_rows in ((2, 128), (5, 1), (1, 3)):
        monkeypatch.setattr(descent, "n_threads", lambda n=n_threads: n)
        monkeypatch.setattr(gradients, "_MOST_ROWS", n_rows)
        monkeypatch.setattr(gradients, "_LEAST_ROWS", 1)
        records = open_records(kind, 7, joint=True)
        for w, sums in zip(some_coefficients(records), whole, strict=True):
            assert np.array_equal(records.sums(w), sums)


def test_a_record_has_its_own_sum_wherever_it_stands():
    """The whole is the sum of its records, each alone."""
    for kind in KINDS:
        records = open_records(kind, 5)
        (_, w, *_) = some_coefficients(records)
        total = 0
        for i in range(0, N, 7):
            rows = slice(i, i + 1)
            alone = ClippedRecords(
                records.clipping, records.design.rows(i, i + 1), _target(records)[rows], records._squares[rows]
            )
            assert np.array_equal(alone.sums(w), alone.sums_at(records.margins(w)[rows]))
            total = total + alone.sums(w)
        chosen = np.arange(0, N, 7)
        several = ClippedRecords(
            records.clipping, Design(records.design.values[chosen], 1.0), _target(records)[chosen],
            records._squares[chosen],
        )  # fmt: skip
        assert np.array_equal(several.sums(w), total)


def _target(records):
    return records._codes if records.clipping.loss.labelled else np.rint(records._target * ONE)


def test_losses_that_kernels_do_not_know_are_summed_in_numpy():
    class Cubic(ScalarLoss):
        labelled, smoothness = False, 1.0

        def value(self, margins, targets):
            return np.abs(margins - targets) ** 3

        def derivative(self, margins, targets):
            return np.clip(np.clip(margins - targets, -9.0, 9.0) ** 3, -0.3, 0.3)

        def second_derivative(self, margins, targets):
            return 3.0 * (margins - targets) ** 2

        def lipschitz(self, radius):
            return 0.3

    records = open_records("huber", 5)
    object.__setattr__(records.clipping, "loss", Cubic())
    assert Cubic().curve is None
    assert all(agree(records))
    known = open_records("huber", 5)
    w = some_coefficients(known)[1]
    assert not np.array_equal(records.sums(w), known.sums(w))


def test_sums_beyond_64_bits_are_refused_before_anything_is_summed():
    records = open_records("huber", 5, weight=(1 << 37) - 5)
    records._n_terms = 1 << 12
    with pytest.raises(ParameterError, match="weight_bound"):
        records.sums(some_coefficients(records)[1])


# ------------------------------------------------------------------ corners that are cut


def test_sums_that_are_flushed_too_late_are_noticed(monkeypatch):
    heavy = {"weight": (1 << 37) - 5, "centred": False}
    assert all(agree(open_records("huber", 5, **heavy)))
    # Sums of all rows, of up to 2**53 each.
    monkeypatch.setattr(clipped_records, "exact_block_rows", lambda bound: N)
    assert not all(agree(open_records("huber", 5, **heavy)))


def test_bounds_of_rows_that_are_ignored_are_noticed(monkeypatch):
    @numba.njit(error_model="numpy")
    def weigh(weights, shift, unit, constant, factors, scales, bounds, targets, curve, numbers, offsets):
        exact(
            weights, shift, unit, constant, factors, scales, np.full(bounds.size, bounds.max()), targets,
            curve, numbers, offsets,
        )  # fmt: skip

    exact = numba.njit(error_model="numpy")(gradients.weigh_rows.py_func)
    monkeypatch.setattr(gradients, "weigh_rows", weigh)
    # Without a cache, which would have the code of the kernel as it is.
    monkeypatch.setattr(clipped_records, "gradient_sums", numba.njit(gradients.gradient_sums.py_func))
    # Clipped together, where the row alone says how large a weight may be.
    assert not all(agree(open_records("huber", 5, joint=True)))


def _fuses():
    @numba.njit(fastmath={"contract"})
    def fused(a, b, c):
        return a * b + c

    return fused(1.0 + 2.0**-52, 1.0 - 2.0**-52, -1.0) != 0.0


@pytest.mark.parametrize(
    "loss", [HuberLoss(0.4), LogisticLoss(), PoissonLoss(0.4, -5.0, 0.2), GammaLoss(0.4, -3.0)], ids=repr
)
def test_fused_operations_between_margin_and_weight_are_noticed(loss):
    """Each weight by itself, at a scale where the last bits of derivatives show."""
    n, scale = 20_000, 2.0**50
    rng = np.random.default_rng(2)
    products, factors, target = rng.normal(0.0, 3.0, n), rng.random(n), rng.random(n)
    margins = ((products - 0.1) * 0.3 + 0.7) * factors
    expected = np.clip(np.rint(loss.derivative(margins, target) * scale), -0.3 * scale, 0.3 * scale)

    def weights(**options):
        found, rows = products.copy(), (factors, np.full(n, scale), np.full(n, 0.3 * scale), target)
        weigh = numba.njit(error_model="numpy", **options)(gradients.weigh_rows.py_func)
        weigh(found, 0.1, 0.3, 0.7, *rows, loss.curve.code, loss.curve.numbers, np.zeros(n))
        return found

    assert np.array_equal(weights(), np.rint(expected))
    if _fuses():
        assert not np.array_equal(weights(fastmath={"contract"}), np.rint(expected))
