"""Losses of one record in its linear predictor.

A loss is ``phi(z, y)`` for one record with margin ``z = x @ w``; sums over records, and whether they are divided by
n, belong to the caller. Features are scaled to [-1, 1] and numeric targets to [-1, 1], so that over the L1 ball of
radius r every margin lies in [-r, r]. Losses hold no data and draw no noise.

A loss states its own constants. Privacy rests on ``lipschitz(radius)``, a bound on ``|d phi / d z|`` over all
admissible records and all weights in the ball: one record moves every coordinate of the gradient by at most that much.
Objective perturbation rests on ``smoothness`` too, a bound on the second derivative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import log_softmax, wrightomega

from taciturn.core.validation import ONE, BoolArray, FloatArray, IntArray, NumberArray, check_positive
from taciturn.data.design import round_weights
from taciturn.kernels.frank_wolfe_sparse import LatticeDerivative, logistic_derivative, residual_derivative
from taciturn.kernels.gradients import (
    DerivativeCurve,
    exponential_numpy,
    logistic_numpy,
    softmax_numpy,
    softmax_residuals,
)

__all__ = [
    "GammaLoss",
    "HuberLoss",
    "LogLinkLoss",
    "LogisticLoss",
    "Loss",
    "PoissonLoss",
    "ScalarLoss",
    "SoftmaxLoss",
    "SquaredLoss",
]


class Loss(ABC):
    """One record's loss in the linear predictor.

    What is abstract has no default: a loss that leaves it out cannot be instantiated. The other members have defaults
    that hold for every loss.
    """

    __slots__ = ()

    fixed_sign: ClassVar[bool] = False
    """Whether the target alone decides the sign of the derivative."""

    largest_radius: ClassVar[float] = math.inf
    """Largest radius for which :meth:`condition` is accurate in double precision."""

    log_link: ClassVar[bool] = False
    """Whether the margin is the logarithm of the target's mean."""

    @property
    @abstractmethod
    def labelled(self) -> bool:
        """Whether targets are classes. A record with a negative class code is null: it contributes nothing."""

    @property
    @abstractmethod
    def multiclass(self) -> bool:
        """Whether a record has one margin per class."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Bound on the second derivative; on the largest eigenvalue of the Hessian in several margins."""

    @property
    @abstractmethod
    def l1_factor(self) -> float:
        """Bound on the L1 norm of a record's derivative over the Lipschitz constant."""

    @property
    @abstractmethod
    def squared_l2_factor(self) -> float:
        """Bound on the squared L2 norm of a record's derivative over the squared Lipschitz constant."""

    @abstractmethod
    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """``phi(z, y)``, one number per record."""

    @abstractmethod
    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """``d phi / d z``, elementwise."""

    @abstractmethod
    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The second derivative of each record; one Hessian per record for several margins."""

    @abstractmethod
    def lipschitz(self, radius: float) -> float:
        """``sup |d phi / d z|`` over admissible records and the L1 ball of this radius; infinite if unbounded."""

    @abstractmethod
    def record_values(self, margins: FloatArray, target: NumberArray) -> FloatArray:
        """The loss of each record, from margins with one column per output and a target as a fit holds it."""

    @abstractmethod
    def integer_derivatives(
        self, margins: NumberArray, unit: float, target: NumberArray, radius: float, bound: int
    ) -> FloatArray:
        """Derivatives as integers of size at most ``bound``, which stands for ``lipschitz(radius)``.

        Null records get exactly zero. Every row is a function of its own record alone, to the last bit. Margins, one
        column per output, are integers in units of ``unit``; targets are lattice values for a regression, class codes
        (negative for null records) for a classification.
        """

    def present(self, target: NumberArray) -> BoolArray:
        """Which records are not null. Null records of a regression never reach a loss: the reader leaves them out."""
        return np.asarray(target >= 0 if self.labelled else np.ones(target.size, dtype=bool))

    def class_weights(self, n_classes: int) -> FloatArray:
        """By which the loss of a record is multiplied, by the code of its class: ones where nothing is."""
        return np.ones(n_classes)

    def is_quadratic(self, radius: float) -> bool:
        """Whether the loss is half the squared residual for all margins within the radius."""
        return False

    def condition(self, radius: float) -> float:
        r""":math:`L / \sqrt\mu` for margins within the radius: smoothness over the root of the strong convexity.

        The safe screening rule needs it. Infinite: the loss is not known to be strongly convex.
        """
        return math.inf

    def opposing_terms(self, radius: float) -> tuple[float, float]:
        r"""Bounds on :math:`-z \phi'` and on :math:`|\phi'| (\lambda - z \operatorname{sign} \phi')` in the ball.

        They bound how far below zero one record's part of :math:`w^\top g` can lie, and its part of the Wolfe gap
        (``data.sensitivity.screening_test``). The bounds here hold for every loss, since :math:`|z| \le \lambda`.
        """
        largest = radius * self.lipschitz(radius)
        return largest, 2.0 * largest

    def lattice_derivative(self, radius: float) -> LatticeDerivative | None:
        """The derivative as the compiled Frank-Wolfe paths compute it; None where they cannot."""
        return None

    @property
    def curve(self) -> DerivativeCurve | None:
        """The derivative as compiled sums of gradients compute it, to the bit; None where they cannot."""
        return None


class ScalarLoss(Loss):
    """A loss of a single margin.

    A subclass states ``labelled`` and ``smoothness`` and implements ``value``, ``derivative``, ``second_derivative``
    and ``lipschitz``.
    """

    __slots__ = ()

    multiclass: ClassVar[bool] = False
    l1_factor: ClassVar[float] = 1.0
    squared_l2_factor: ClassVar[float] = 1.0

    def targets(self, target: NumberArray) -> FloatArray:
        """The target of each record in units of the loss; 0 for null records."""
        return np.where(target < 0, 0.0, target) if self.labelled else np.asarray(target, dtype=np.float64) / ONE

    def record_values(self, margins: FloatArray, target: NumberArray) -> FloatArray:
        """The loss of each record."""
        values: FloatArray = np.where(self.present(target), self.value(margins[:, 0], self.targets(target)), 0.0)
        return values

    def integer_derivatives(
        self, margins: NumberArray, unit: float, target: NumberArray, radius: float, bound: int
    ) -> FloatArray:
        """The rounded derivatives, in one column."""
        psi = self.derivative(margins[:, 0].astype(np.float64) * unit, self.targets(target))
        integers = round_weights(psi, bound / self.lipschitz(radius), bound)
        integers[~self.present(target)] = 0.0
        return integers[:, None]


@dataclass(frozen=True, slots=True)
class HuberLoss(ScalarLoss):
    """``r**2 / 2`` for residuals up to ``threshold`` and linear beyond; the derivative is the clipped residual.

    Parameters
    ----------
    threshold : float
        Where the loss turns linear, in mapped units (the target's range is [-1, 1]).
    """

    threshold: float

    labelled: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_positive(threshold=self.threshold)

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Quadratic, then linear."""
        size = np.abs(margins - targets)
        inner = np.minimum(size, self.threshold)
        return inner * (size - 0.5 * inner)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The clipped residual."""
        return np.clip(margins - targets, -self.threshold, self.threshold)

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """One up to the threshold, zero beyond."""
        return (np.abs(margins - targets) <= self.threshold).astype(np.float64)

    def lipschitz(self, radius: float) -> float:
        """The threshold, or the largest residual, ``|z| + |y| <= radius + 1``, where that is smaller."""
        return min(self.threshold, radius + 1.0)

    def is_quadratic(self, radius: float) -> bool:
        """Where no residual reaches the threshold."""
        return self.threshold >= radius + 1.0

    def condition(self, radius: float) -> float:
        """That of the squared loss, with which the safe rule screens. It is a heuristic beyond the threshold."""
        return 1.0

    def opposing_terms(self, radius: float) -> tuple[float, float]:
        r"""Bounds for residuals clipped at a threshold C.

        *Proof.* For :math:`z > 0` the derivative is at least :math:`-\min(C, 1 - z)`, so :math:`-z \phi' \le z \min(C,
        1 - z)`: 1/4, or C (1 - C) for C < 1/2. For :math:`\phi' > 0` it is at most :math:`\min(C, z + 1)`, and
        :math:`(\lambda - z) \min(C, z + 1)` is at most :math:`(\lambda + 1)^2 / 4`, or :math:`C (\lambda + 1 - C)` for
        :math:`C < (\lambda + 1) / 2`.
        """
        below = 0.25 if self.threshold >= 0.5 else self.threshold * (1.0 - self.threshold)
        half = (radius + 1.0) / 2.0
        return below, half * half if self.threshold >= half else self.threshold * (radius + 1.0 - self.threshold)

    def lattice_derivative(self, radius: float) -> LatticeDerivative | None:
        """The clipped residual, three linear pieces; None where the threshold is below one lattice unit."""
        if self.is_quadratic(radius):
            return residual_derivative(radius)
        return None if self.threshold < 1.0 / ONE else residual_derivative(radius, self.threshold)

    @property
    def curve(self) -> DerivativeCurve:
        """The clipped residual."""
        return DerivativeCurve("residual", (self.threshold, 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class SquaredLoss(HuberLoss):
    """``(z - y)**2 / 2``: no threshold. The Lipschitz constant grows with the ball: ``radius + 1``, never 1."""

    threshold: float = field(default=math.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        """Nothing to check."""


# The least mean of a log link, as a share of the largest: about one unit of the lattice.
_LEAST_MARGIN = -11.0


@dataclass(frozen=True, slots=True)
class LogLinkLoss(ScalarLoss):
    """A loss of a target in [0, 1] whose mean is ``exp(z - offset)``, z - offset being clipped to [least, 0].

    Beyond the range, which is public, the mean stays what it is at the end, and the loss is linear. Means are
    computed by our own exponential function, so that they have the same bits everywhere. A subclass states, beside
    what every loss does, ``steepest`` and ``information``, which do not look at the target.

    Parameters
    ----------
    offset : float, default=0.0
        The margin at the upper end of the target's range.
    least : float, default=-11.0
        The logarithm of the least mean over the largest, negative.
    """

    offset: float = 0.0
    least: float = _LEAST_MARGIN

    labelled: ClassVar[bool] = False
    log_link: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(range=-self.least)

    def means(self, margins: FloatArray) -> FloatArray:
        """The mean of the target, as a share of the upper end of its range."""
        return exponential_numpy(np.clip(margins - self.offset, self.least, 0.0))

    @abstractmethod
    def in_units_of(self, mean: float) -> LogLinkLoss:
        """A multiple of the loss whose curvature is about one where the target has this mean."""

    @abstractmethod
    def least_size(self, mean: float) -> float:
        """What the loss in these units says of the size of derivatives before the data do; 0 for nothing."""

    @abstractmethod
    def steepest(self, margins: FloatArray) -> FloatArray:
        """The largest absolute derivative over all targets."""

    @abstractmethod
    def information(self, margins: FloatArray) -> FloatArray:
        """The expected second derivative, if the mean is right."""

    def _ends(self, radius: float) -> tuple[float, float]:
        """The least and the largest mean in the ball."""
        least, largest = self.means(np.array([-radius, radius])).tolist()
        return least, largest

    def _beyond(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Margins within the range, and by how much they are outside."""
        shifted = margins - self.offset
        inside = np.clip(shifted, self.least, 0.0)
        return inside, shifted - inside

    def _is_inside(self, margins: FloatArray) -> FloatArray:
        return ((margins - self.offset >= self.least) & (margins <= self.offset)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class PoissonLoss(LogLinkLoss):
    r"""``(exp(z) - y z) / unit``: minus the log-likelihood of a count, for any target of which ``exp(z)`` is the mean.

    Its derivative is the mean minus the target, over the unit. With both in [0, 1], and the mean m between its ends,
    that is at most ``max(m, 1 - m) / unit`` in size, attained at targets 0 and 1; its second derivative is m / unit.
    """

    unit: float = 1.0

    def __post_init__(self) -> None:
        """Check the range and the unit."""
        check_positive(range=-self.least)
        check_positive(unit=self.unit)

    @property
    def smoothness(self) -> float:
        """That of the largest mean."""
        return 1.0 / self.unit

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The negative log-likelihood, continued linearly."""
        inside, beyond = self._beyond(margins)
        means = exponential_numpy(inside)
        return (means * (1.0 + beyond) - targets * (inside + beyond)) / self.unit

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The mean minus the target."""
        return (self.means(margins) - targets) / self.unit

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The mean, zero beyond the range."""
        return self.information(margins) * self._is_inside(margins)

    def lipschitz(self, radius: float) -> float:
        """The largest mean in the ball, or one less the smallest."""
        least, largest = self._ends(radius)
        return max(largest, 1.0 - least) / self.unit

    def steepest(self, margins: FloatArray) -> FloatArray:
        """For targets 0 and 1."""
        means = self.means(margins)
        largest: FloatArray = np.maximum(means, 1.0 - means) / self.unit
        return largest

    def information(self, margins: FloatArray) -> FloatArray:
        """The mean."""
        return self.means(margins) / self.unit

    def in_units_of(self, mean: float) -> PoissonLoss:
        """Divided by the mean."""
        return replace(self, unit=mean)

    def least_size(self, mean: float) -> float:
        """A quarter of what a single event is: clips of so many sizes leave rare events some weight."""
        return 0.25 / (mean * math.exp(min(self.offset, 700.0)))

    @property
    def curve(self) -> DerivativeCurve:
        """The mean minus the target."""
        return DerivativeCurve("poisson", (self.offset, self.least, self.unit))


@dataclass(frozen=True, slots=True)
class GammaLoss(LogLinkLoss):
    r"""``z + y exp(-z)``: minus the log-likelihood of an amount, for any positive target of which exp(z) is the mean.

    Its derivative is :math:`1 - y / m`. With the target in [0, 1] that is at most :math:`\max(1, 1 / m - 1)` in size,
    attained at targets 0 and 1; its second derivative is y / m.
    """

    @property
    def smoothness(self) -> float:
        """That of the largest target at the least mean."""
        return 1.0 / self._ends(math.inf)[0]

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The negative log-likelihood, continued linearly."""
        inside, beyond = self._beyond(margins)
        ratios = targets / exponential_numpy(inside)
        return inside + ratios + beyond * (1.0 - ratios)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """One minus the target over its mean."""
        return 1.0 - targets / self.means(margins)

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The target over its mean, zero beyond the range."""
        return targets / self.means(margins) * self._is_inside(margins)

    def lipschitz(self, radius: float) -> float:
        """At the least mean in the ball, or for a target of next to nothing."""
        return max(1.0, 1.0 / self._ends(radius)[0] - 1.0)

    def steepest(self, margins: FloatArray) -> FloatArray:
        """For targets 0, which are below the range, and 1."""
        largest: FloatArray = np.maximum(1.0, 1.0 / self.means(margins) - 1.0)
        return largest

    def information(self, margins: FloatArray) -> FloatArray:
        """One."""
        return np.ones(margins.shape)

    def in_units_of(self, mean: float) -> GammaLoss:
        """The same: its curvature is one at every mean."""
        return self

    def least_size(self, mean: float) -> float:
        """Nothing: amounts have no unit of their own."""
        return 0.0

    @property
    def curve(self) -> DerivativeCurve:
        """One minus the target over its mean."""
        return DerivativeCurve("gamma", (self.offset, self.least, 1.0))


@dataclass(frozen=True, slots=True)
class LogisticLoss(ScalarLoss):
    """``log(1 + exp(z)) - y z`` for y in {0, 1}."""

    labelled: ClassVar[bool] = True
    smoothness: ClassVar[float] = 0.25
    fixed_sign: ClassVar[bool] = True
    # Beyond this the second derivative in the ball, about exp(-radius), is lost in double precision.
    largest_radius: ClassVar[float] = 500.0

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The negative log-likelihood."""
        return np.logaddexp(0.0, margins) - targets * margins

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Predicted probability minus label."""
        return logistic_numpy(margins) - targets

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """``p (1 - p)`` for the predicted probability p."""
        probabilities = logistic_numpy(margins)
        return probabilities * (1.0 - probabilities)

    def lipschitz(self, radius: float) -> float:
        """One, whatever the ball."""
        return 1.0

    def condition(self, radius: float) -> float:
        r"""The second derivative lies between :math:`\sigma(\lambda) \sigma(-\lambda)` and 1/4."""
        # The root of sigma(r) sigma(-r) is 1 / (2 cosh(r / 2)).
        return 0.25 * 2.0 * math.cosh(radius / 2.0)

    def opposing_terms(self, radius: float) -> tuple[float, float]:
        r"""Suprema of :math:`z \sigma(-z)` and :math:`(\lambda - z) \sigma(z)`.

        *Proof.* The first has its maximum W(1/e) = 0.2785 where z = 1 + exp(-z), or is largest at z = lambda. The
        second is stationary where :math:`\lambda - z = 1 + e^z`, where it is :math:`e^z = W(e^{\lambda - 1})`.
        """
        peak = float(wrightomega(-1.0))
        below = peak if radius >= 1.0 + peak else radius / (1.0 + math.exp(radius))
        # Below the smallest margin the stationary point gives a bound that is not attained.
        return below, float(wrightomega(radius - 1.0))

    def lattice_derivative(self, radius: float) -> LatticeDerivative | None:
        """A fine table of the logistic function, or its piecewise linear approximation."""
        return logistic_derivative(radius)

    @property
    def curve(self) -> DerivativeCurve:
        """Probability minus label."""
        return DerivativeCurve("logistic")


@dataclass(frozen=True, slots=True)
class SoftmaxLoss(Loss):
    r"""``log sum_k exp(z_k) - z_y`` for margins with one column per class and targets one-hot.

    The derivative is :math:`p - e_y` for the predicted probabilities p. Its L1 norm is :math:`2 (1 - p_y) \le 2`, its
    squared L2 norm :math:`(1 - p_y)^2 + \sum_{k \ne y} p_k^2 \le 2 (1 - p_y)^2 \le 2`. The Hessian
    :math:`\mathrm{diag}(p) - p p^\top` has eigenvalues of at most 1/2 (its rows have absolute sums
    :math:`2 p_k (1 - p_k)`).
    """

    labelled: ClassVar[bool] = True
    multiclass: ClassVar[bool] = True
    smoothness: ClassVar[float] = 0.5
    l1_factor: ClassVar[float] = 2.0
    squared_l2_factor: ClassVar[float] = 2.0

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The negative log-likelihood, one number per record."""
        return np.asarray(-np.sum(targets * log_softmax(margins, axis=1), axis=1), dtype=np.float64)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """Predicted probabilities minus one-hot labels; every entry lies in [-1, 1]."""
        return softmax_numpy(margins) - targets

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """``diag(p) - p p'`` for each record, of shape (n_samples, n_classes, n_classes)."""
        probabilities = softmax_numpy(margins)
        return probabilities[:, :, None] * (np.eye(margins.shape[1]) - probabilities[:, None, :])

    def lipschitz(self, radius: float) -> float:
        """One, entrywise: the norm that is dual to one L1 ball over all classes together."""
        return 1.0

    def record_values(self, margins: FloatArray, target: NumberArray) -> FloatArray:
        """The loss of each record; a null record has an empty one-hot row and loses nothing."""
        codes = np.asarray(target, dtype=np.int64)
        return self.value(margins, np.eye(margins.shape[1])[codes] * self.present(codes)[:, None])

    def integer_derivatives(
        self, margins: NumberArray, unit: float, target: NumberArray, radius: float, bound: int
    ) -> FloatArray:
        """The rounded derivatives, one column per class."""
        integers = np.empty(margins.shape)
        codes: IntArray = np.asarray(target, dtype=np.int64)
        softmax_residuals(margins, unit, codes, bound, integers)
        return integers

    @property
    def curve(self) -> DerivativeCurve:
        """Probabilities minus the label."""
        return DerivativeCurve("softmax")
