"""Every loss: derivative against central differences, slope never passed and nearly reached."""

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.fitting.thresholding import keep_largest_columns
from taciturn.kernels.softmax import softmax_residuals, softmax_residuals_numpy
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss, SquaredLoss

SCALAR = [SquaredLoss(), HuberLoss(0.7), HuberLoss(3.0), LogisticLoss()]


def records(loss, radius, rng, n=4000):
    margins = np.concatenate((rng.uniform(-radius, radius, n), [radius, -radius] * 2))
    if isinstance(loss, LogisticLoss):
        targets = np.concatenate((rng.integers(0, 2, n), [0, 1, 1, 0]))
    else:
        targets = np.concatenate((rng.uniform(-1, 1, n), [-1, 1, 1, -1]))
    return margins, targets.astype(float)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_derivatives_match_central_differences(loss):
    margins, targets = records(loss, 5.0, np.random.default_rng(0))
    h = 1e-6
    numeric = (loss.value(margins + h, targets) - loss.value(margins - h, targets)) / (2 * h)
    assert np.allclose(loss.derivative(margins, targets), numeric, atol=1e-5)


@pytest.mark.parametrize("radius", [0.5, 1.0, 10.0])
@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_slopes_are_never_passed_and_reached(loss, radius):
    margins, targets = records(loss, radius, np.random.default_rng(1))
    steepest = np.abs(loss.derivative(margins, targets)).max()
    assert steepest <= loss.lipschitz(radius) * (1 + 1e-12)
    # The logistic slope is 1 / (1 + exp(-radius)); one is its bound for all radii.
    tight = 1 / (1 + np.exp(-radius)) if isinstance(loss, LogisticLoss) else 1.0
    assert steepest >= 0.99 * tight * loss.lipschitz(radius)


def test_the_squared_slope_is_not_one():
    assert SquaredLoss().lipschitz(10.0) == 11.0


def test_softmax_matches_central_differences_and_its_slope():
    rng = np.random.default_rng(2)
    margins, targets = rng.normal(0, 3, (200, 4)), np.eye(4)[rng.integers(0, 4, 200)]
    derivative = SoftmaxLoss().derivative(margins, targets)
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-6
        numeric = (SoftmaxLoss().value(margins + step, targets) - SoftmaxLoss().value(margins - step, targets)) / 2e-6
        assert np.allclose(derivative[:, k], numeric, atol=1e-5)
    wide = SoftmaxLoss().derivative(margins * 100, targets)
    assert 0.99 <= np.abs(wide).max() <= SoftmaxLoss().lipschitz(1.0)


def test_softmax_kernel_equals_its_twin_and_nulls_are_silent():
    rng = np.random.default_rng(3)
    margins = rng.integers(-(2**40), 2**40, (500, 3))
    codes = rng.integers(-1, 3, 500)
    ours, twin = np.empty((500, 3)), np.empty((500, 3))
    softmax_residuals(margins, 2.0**-38, codes, 65536, ours)
    softmax_residuals_numpy(margins, 2.0**-38, codes, 65536, twin)
    assert np.abs(ours - twin).max() <= 1.0
    assert (ours != twin).mean() < 1e-3
    assert not ours[codes < 0].any()
    assert np.abs(ours).max() <= 65536
    expected = 65536 * SoftmaxLoss().derivative(margins * 2.0**-38, np.eye(3)[codes])
    assert np.abs(ours - expected)[codes >= 0].max() <= 0.5 + 1e-6


def test_two_classes_agree_with_the_logistic_loss():
    z = np.linspace(-4, 4, 9)
    both = np.column_stack((np.zeros(9), z))
    y = np.arange(9) % 2
    assert np.allclose(SoftmaxLoss().value(both, np.eye(2)[y]), LogisticLoss().value(z, y))


def test_keeping_the_largest_columns():
    coefficients = np.array([[1.0, -3.0, 0.0, 2.0], [1.0, 0.0, 0.5, -0.5]])
    assert keep_largest_columns(coefficients, 2).tolist() == [[0, -3, 0, 2], [0, 0, 0, -0.5]]
    assert keep_largest_columns(coefficients, 9).tolist() == coefficients.tolist()
    assert keep_largest_columns(np.array([[1.0, -1.0, 1.0]]), 2).tolist() == [[1, -1, 0]]
    with pytest.raises(ParameterError, match="k=0"):
        keep_largest_columns(coefficients, 0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf])
def test_bad_thresholds_are_refused(bad):
    with pytest.raises(ParameterError, match="threshold="):
        HuberLoss(bad)
