"""What every loss states about itself, checked by a search over admissible records.

Each check takes a loss and raises AssertionError if a statement is false, or a bound much larger than it need be.
"""

import math

import numpy as np

from taciturn.core.validation import ONE

RADII = (0.3, 1.0, 4.0, 50.0)
# Bounds hold for every radius, and are nearly attained in the largest ball.
LARGEST = RADII[-1]
_HAIR = 1.0 + 1e-9


def target_range(loss):
    """The ends of the range of the target as the loss takes it."""
    return (0.0, 1.0) if loss.labelled or loss.log_link else (-1.0, 1.0)


def admissible_records(loss, radius, n=20_000, seed=0):
    """Margins and targets as the loss takes them: corners, the diagonal z = y, and random records."""
    rng = np.random.default_rng(seed)
    if loss.multiclass:
        corners = np.where(rng.random((n // 2, 4)) < 0.5, -radius, radius)
        margins = np.vstack((corners, rng.uniform(-radius, radius, (n // 2, 4)), np.zeros((4, 4))))
        # Two classes that share the probability have the largest curvature.
        margins[: n // 4, 2:] = -radius
        margins[n // 8 : n // 4, :2] = radius
        return margins, np.eye(4)[rng.integers(0, 4, len(margins))]
    low, high = target_range(loss)
    targets = rng.integers(0, 2, n).astype(float) if loss.labelled else rng.uniform(low, high, n)
    targets[: n // 4] = rng.choice([low, high], n // 4)
    margins = rng.uniform(-radius, radius, n)
    margins[: n // 8] = rng.choice([-radius, radius], n // 8)
    close = slice(n // 2, 3 * n // 4)
    centres = np.log(np.maximum(targets[close], 1e-9)) + loss.offset if loss.log_link else targets[close]
    margins[close] = np.clip(centres + rng.normal(0, 0.3, n // 4), -radius, radius)
    margins[-10:] = 0.0
    return margins, targets


def check_derivative(loss):
    """The derivative is that of the value."""
    for radius in RADII:
        margins, targets = admissible_records(loss, radius)
        h = 1e-6
        found = loss.derivative(margins, targets)
        for step in _directions(margins):
            above, below = loss.value(margins + h * step, targets), loss.value(margins - h * step, targets)
            along = (found * step).sum(axis=1) if loss.multiclass else found
            np.testing.assert_allclose((above - below) / (2 * h), along, atol=1e-5 * (1.0 + radius) ** 2)


def check_second_derivative(loss):
    """The second derivative is that of the derivative, apart from kinks."""
    # A radius at which no corner of the ball lies on a kink.
    margins, targets = admissible_records(loss, 3.7)
    h, found = 1e-5, loss.second_derivative(margins, targets)
    smooth = 0
    for k, step in enumerate(_directions(margins)):
        here = loss.derivative(margins, targets)
        right = (loss.derivative(margins + h * step, targets) - here) / h
        left = (here - loss.derivative(margins - h * step, targets)) / h
        column = found[:, :, k] if loss.multiclass else found
        agree = np.abs(right - left) < 1e-3
        smooth += agree.mean()
        np.testing.assert_allclose(column[agree], 0.5 * (right + left)[agree], atol=1e-3)
    assert smooth > 0.99 * len(_directions(margins))


def check_lipschitz(loss):
    """No derivative passes the bound of its ball, and one comes within a hundredth of it."""
    for radius in RADII:
        margins, targets = admissible_records(loss, radius)
        assert np.abs(loss.derivative(margins, targets)).max() <= loss.lipschitz(radius) * _HAIR
    largest = np.abs(loss.derivative(*admissible_records(loss, LARGEST))).max()
    assert largest >= 0.99 * loss.lipschitz(LARGEST)
    assert all(loss.lipschitz(a) <= loss.lipschitz(b) for a, b in zip(RADII, (*RADII[1:], np.inf), strict=True))


def check_smoothness(loss):
    """No secant of the derivative is steeper than the smoothness, and some curvature comes within a hundredth of it."""
    steepest = 0.0
    for radius in RADII:
        margins, targets = admissible_records(loss, radius)
        others, _ = admissible_records(loss, radius, seed=1)
        for step in (others - margins, 1e-4 * (others - margins)):
            change = loss.derivative(margins + step, targets) - loss.derivative(margins, targets)
            rise = np.linalg.norm(change, axis=1) if loss.multiclass else np.abs(change)
            run = np.linalg.norm(step, axis=1) if loss.multiclass else np.abs(step)
            steep = run > 1e-9
            steepest = max(steepest, (rise[steep] / run[steep]).max())
        curvature = loss.second_derivative(margins, targets)
        largest = np.linalg.eigvalsh(curvature).max() if loss.multiclass else np.abs(curvature).max()
        assert largest <= loss.smoothness * _HAIR
        steepest = max(steepest, largest)
    assert 0.99 * loss.smoothness <= steepest <= loss.smoothness * (1 + 1e-6)


def check_norms(loss):
    """The norms of a record's derivative in all its margins, in units of the Lipschitz constant."""
    l1, l2 = 0.0, 0.0
    for radius in RADII:
        psi = loss.derivative(*admissible_records(loss, radius)) / loss.lipschitz(radius)
        psi = psi if loss.multiclass else psi[:, None]
        l1, l2 = max(l1, np.abs(psi).sum(axis=1).max()), max(l2, np.square(psi).sum(axis=1).max())
    assert 0.99 * loss.l1_factor <= l1 <= loss.l1_factor * _HAIR
    assert 0.98 * loss.squared_l2_factor <= l2 <= loss.squared_l2_factor * _HAIR


def check_null_records(loss):
    """A null record contributes exactly zero, and every other one exactly what it contributes alone."""
    rng = np.random.default_rng(3)
    n_outputs, unit = (4, 2.0**-20) if loss.multiclass else (1, 2.0**-20)
    margins = rng.integers(-3 * 2**20, 3 * 2**20, (300, n_outputs))
    low = math.ceil(target_range(loss)[0] * ONE)
    target = rng.integers(-1, max(n_outputs, 2), 300) if loss.labelled else rng.integers(low, ONE + 1, 300)
    present = loss.present(target)
    np.testing.assert_array_equal(present, target >= 0 if loss.labelled else np.ones(300, dtype=bool))
    integers = loss.integer_derivatives(margins, unit, target, 3.0, ONE)
    assert integers.shape == margins.shape
    np.testing.assert_array_equal(integers, np.rint(integers))
    assert not integers[~present].any()
    assert not loss.record_values(margins * unit, target)[~present].any()
    assert np.abs(integers).max() <= ONE
    numbers = np.eye(4)[target] if loss.multiclass else target if loss.labelled else target / ONE
    exact = loss.derivative(margins * unit if loss.multiclass else margins[:, 0] * unit, numbers).reshape(margins.shape)
    np.testing.assert_allclose(integers[present] / ONE, exact[present] / loss.lipschitz(3.0), atol=0.51 / ONE, rtol=0.0)
    for i in range(0, 300, 7):
        row = slice(i, i + 1)
        alone = loss.integer_derivatives(margins[row], unit, target[row], 3.0, ONE)
        np.testing.assert_array_equal(alone, integers[row])


def check_opposing_terms(loss):
    """No record's part of w . g or of the Wolfe gap lies further below zero than stated."""
    if loss.multiclass:
        return
    for radius in RADII:
        margins, targets = admissible_records(loss, radius)
        psi = loss.derivative(margins, targets)
        below, gap_below = loss.opposing_terms(radius)
        assert (-margins * psi).max() <= below * _HAIR
        assert (np.abs(psi) * (radius - margins * np.sign(psi))).max() <= gap_below * _HAIR


def check_special_forms(loss):
    """Whether the loss is quadratic, and whether the target decides the sign of the derivative."""
    for radius in RADII:
        margins, targets = admissible_records(loss, radius)
        if loss.is_quadratic(radius):
            np.testing.assert_allclose(loss.value(margins, targets), 0.5 * (margins - targets) ** 2, rtol=1e-12)
        if loss.fixed_sign:
            psi = loss.derivative(margins, targets)
            assert all((psi[targets == y] <= 0.0).all() or (psi[targets == y] >= 0.0).all() for y in np.unique(targets))
        lattice = loss.lattice_derivative(radius)
        if lattice is not None:
            assert lattice.quadratic == loss.is_quadratic(radius)
            assert lattice.logistic == loss.labelled
            assert np.abs(loss.derivative(margins, targets)).max() * ONE <= lattice.bound + 1


CHECKS = (
    check_derivative,
    check_second_derivative,
    check_lipschitz,
    check_smoothness,
    check_norms,
    check_null_records,
    check_opposing_terms,
    check_special_forms,
)


def _directions(margins):
    """Unit steps of the margins, one per output."""
    return list(np.eye(margins.shape[1])) if margins.ndim == 2 else [1.0]
