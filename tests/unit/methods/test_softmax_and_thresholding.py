"""Softmax on the lattice, thresholding, and constants of losses; the contract suite checks what every loss states."""

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.kernels.gradients import softmax_residuals, softmax_residuals_numpy
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss, SquaredLoss
from taciturn.methods.selection.run import keep_largest_columns


def test_the_lipschitz_constant_of_the_squared_loss_grows_with_the_ball():
    assert SquaredLoss().lipschitz(10.0) == 11.0


def test_softmax_kernel_equals_its_numpy_version_and_nulls_are_silent():
    rng = np.random.default_rng(3)
    margins = rng.integers(-(2**40), 2**40, (500, 3))
    codes = rng.integers(-1, 3, 500)
    ours, twin = np.empty((500, 3)), np.empty((500, 3))
    softmax_residuals(margins, 2.0**-38, codes, 65536, ours)
    softmax_residuals_numpy(margins, 2.0**-38, codes, 65536, twin)
    assert np.array_equal(ours, twin)
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
