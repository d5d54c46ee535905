"""What ADP-Screen and RNM-Screen share: the screening rule, Frank-Wolfe around it, and the claim of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from taciturn.certificate import Certificate, Release
from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_claimed_epsilon, check_positive, check_real
from taciturn.data.sensitivity import unscaled_rule
from taciturn.events import NotPrivateEvent
from taciturn.losses import Loss
from taciturn.published._base import BallModel, check_printed_delta, classifies, parts_of, state_claim, vertex_releases
from taciturn.published.private_lasso import COMPOSITION

__all__ = [
    "ByGram",
    "ByMargins",
    "ScreenedReproduction",
    "ScreeningRule",
    "mean_loss",
    "random_start",
    "screened_frank_wolfe",
]

Watch = Callable[[int, FloatArray, FloatArray], None]

# Beyond these the costs leave the range of an accountant; logistic ones divide by a curvature of about exp(-radius).
LARGEST_RADIUS = {"squared": 1e6, "logistic": 600.0}

SCALED_BY_DATA = (
    "the experiments scale the features by values found in the data, a release that the claimed epsilon does not pay "
    "for"
)
SHOWN = "weights and gradient of a step, shown to watch"
UNSCALED_RULE = (
    "Equation 1 leaves out the radius of the ball: at a solution on its surface it screens every coefficient, those of "
    "the solution included"
)


@dataclass(frozen=True, slots=True)
class ScreeningRule:
    r"""Equation 1 as printed: coefficient i is screened where

    .. math:: s_i = |g_i| + w \cdot g + L (\|x_{(i)}\|_2 + \|Xw\|_2) \sqrt{\mathcal G / \mu} < 0, \qquad
              g = X^\top \nabla f(Xw), \quad \mathcal G = w \cdot g + \lambda \|g\|_\infty,

    for an objective f that is L-smooth and :math:`\mu`-strongly convex in the predictions.

    Parameters
    ----------
    radius : float
        :math:`\lambda`, of the L1 ball.
    n_rows : int
        n, the number of records.
    smoothness, convexity : float
        L and :math:`\mu`.
    largest_residual : float
        The largest derivative of one record's loss in its prediction.
    printed_residual : float
        The one in whose place the papers' sensitivities stand.
    """

    radius: float
    n_rows: int
    smoothness: float
    convexity: float
    largest_residual: float
    printed_residual: float

    @classmethod
    def for_loss(cls, loss: str, radius: float, n_rows: int) -> ScreeningRule:
        """Return the rule for the mean "squared" (half the square, targets up to the radius) or "logistic" loss."""
        if loss == "squared":
            return cls(radius, n_rows, 1.0 / n_rows, 1.0 / n_rows, 2.0 * radius, 2.0 * radius)
        steepest = float(expit(radius))
        convexity = steepest * float(expit(-radius)) / n_rows
        return cls(radius, n_rows, 0.25 / n_rows, convexity, steepest, 2.0 * steepest)

    def gap(self, weights: FloatArray, gradient: FloatArray) -> float:
        """The Wolfe gap."""
        # It is not negative in the ball, but for rounding.
        return max(float(weights @ gradient) + self.radius * float(np.abs(gradient).max()), 0.0)

    def scores(
        self, weights: FloatArray, gradient: FloatArray, column_norms: FloatArray, prediction_norm: float
    ) -> FloatArray:
        """One score per coefficient, from the gradient g and the Euclidean norms of the columns and of Xw."""
        slope = float(weights @ gradient)
        reach = self.smoothness * math.sqrt(self.gap(weights, gradient) / self.convexity)
        return np.abs(gradient) + slope + reach * (column_norms + prediction_norm)

    @property
    def printed_sensitivity(self) -> float:
        """Of one score: Theorem 1 of RNM-Screen, and Equations 2 and 3 of ADP-Screen without the root of d."""
        first = self.printed_residual / self.n_rows
        gap = 2.0 * self.radius * first
        return first + self.radius * first + self.smoothness * (1.0 + self.radius) * math.sqrt(gap / self.convexity)

    @property
    def sensitivity(self) -> float:
        """Of one score, as ``data.sensitivity.unscaled_rule`` proves it."""
        return unscaled_rule(self.radius, self.n_rows, self.smoothness, self.convexity, self.largest_residual).value


def random_start(radius: float, n_columns: int, stream: Stream) -> FloatArray:
    """A vector that is uniform in the L1 ball.

    Absolute values of Laplace variables over their sum and one exponential more are uniform on the simplex.
    """
    directions = stream.laplaces(n_columns)
    start: FloatArray = radius * directions / (np.abs(directions).sum() + stream.exponentials(1)[0])
    return start


@dataclass(frozen=True, slots=True)
class ByMargins:
    """The mean loss through its margins X w: for every loss and layout, a pass over X per gradient."""

    matrix: Any
    target: FloatArray
    loss: Loss

    @property
    def column_norms(self) -> FloatArray:
        """Euclidean norms of the features."""
        norms: FloatArray = np.sqrt((self.matrix * self.matrix).sum(axis=0))
        return norms

    def gradient(self, image: FloatArray) -> FloatArray:
        """Of the mean loss, where ``image`` is ``matrix @ weights``."""
        gradient: FloatArray = self.matrix.T @ self.loss.derivative(image, self.target) / self.target.size
        return gradient

    def prediction_norm(self, weights: FloatArray, image: FloatArray) -> float:
        """The Euclidean norm of X w."""
        return float(np.linalg.norm(image))


@dataclass(frozen=True, slots=True)
class ByGram:
    """The mean of half the squared residuals through X'X w, which is its gradient but for a constant."""

    matrix: FloatArray
    correlations: FloatArray
    n_rows: int

    @property
    def column_norms(self) -> FloatArray:
        """Euclidean norms of the features."""
        return np.sqrt(np.diag(self.matrix))

    def gradient(self, image: FloatArray) -> FloatArray:
        """Of the mean loss, where ``image`` is ``matrix @ weights``."""
        return (image - self.correlations) / self.n_rows

    def prediction_norm(self, weights: FloatArray, image: FloatArray) -> float:
        """The Euclidean norm of X w."""
        return math.sqrt(max(float(weights @ image), 0.0))


def mean_loss(X: Any, target: FloatArray, loss: Loss) -> ByMargins | ByGram:
    """The objective in the form in which a step is cheapest; both are by columns, of which a step needs one."""
    n_rows, n_columns = X.shape
    if sp.issparse(X):
        return ByMargins(sp.csc_array(X), target, loss)
    if loss.is_quadratic(math.inf) and n_columns <= n_rows:
        return ByGram(np.asfortranarray(X.T @ X), X.T @ target, n_rows)
    return ByMargins(np.asfortranarray(X), target, loss)


def screened_frank_wolfe(
    objective: ByMargins | ByGram,
    rule: ScreeningRule,
    start: FloatArray,
    *,
    n_steps: int,
    noise_scale: float,
    stream: Stream,
    screenings: range,
    screen: Callable[[FloatArray], IndexArray],
    watch: Watch | None = None,
) -> FloatArray:
    r"""Frank-Wolfe with Laplace noise on the scores of the 2 d vertices, and screening.

    Step t = 1, .., ``n_steps`` moves the share :math:`2 / (t + 2)` of the way to the vertex of the smallest noisy
    score. If t is one of ``screenings``, ``screen`` says from the scores of the rule which coefficients become zero.
    After each step ``watch`` is shown its number, the weights and the gradient.
    """
    matrix, column_norms = objective.matrix, objective.column_norms
    weights, image = start.copy(), matrix @ start
    gradient = objective.gradient(image)
    for t in range(1, n_steps + 1):
        scores = rule.radius * np.concatenate((gradient, -gradient))
        if noise_scale > 0.0:
            scores += noise_scale * stream.laplaces(scores.size)
        side, feature = divmod(int(np.argmin(scores)), start.size)
        share = 2.0 / (t + 2.0)
        move = share * (-rule.radius if side else rule.radius)
        weights *= 1.0 - share
        weights[feature] += move
        image *= 1.0 - share
        image += matrix[:, [feature]] @ np.array([move])
        gradient = objective.gradient(image)
        if t in screenings:
            screened = screen(rule.scores(weights, gradient, column_norms, objective.prediction_norm(weights, image)))
            screened = screened[weights[screened] != 0.0]
            if screened.size:
                image -= matrix[:, screened] @ weights[screened]
                weights[screened] = 0.0
                gradient = objective.gradient(image)
        if watch is not None:
            watch(t, weights, gradient)
    return weights


class ScreenedReproduction(BallModel):
    """Frank-Wolfe with Laplace noise, and a screening rule with noise of its own after some of the steps."""

    screen_share: float
    screen_delta_share: float
    epsilon_optimise: float | None
    epsilon_screen: float | None
    delta_optimise: float | None
    delta_screen: float | None

    watch: Watch | None = None
    """Called after each step with its number, the weights and the gradient, for the papers' figures of curves.

    The gradient is exact: the certificate of a watched fit counts what is shown as a release without noise.
    """

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        X, target, assumptions = self._read_both(X, y)
        n_rows, n_columns = X.shape
        rule = ScreeningRule.for_loss(self.loss, self.radius, n_rows)
        self.n_iter_ = self.n_steps
        noise_scale = self.noise_scale(n_rows)
        weights = screened_frank_wolfe(
            mean_loss(X, target, self._loss()),
            rule,
            random_start(self.radius, n_columns, stream.spawn("start")),
            n_steps=self.n_steps,
            noise_scale=noise_scale,
            stream=stream.spawn("frank-wolfe"),
            screenings=self._screenings(),
            screen=self._screen(rule, n_columns, stream.spawn("screening")),
            watch=self.watch,
        )
        self._set_coefficients(weights)
        selections = vertex_releases(
            f"one of {2 * n_columns:,} directions (a coefficient and a sign) per step",
            self.n_steps,
            noise_scale=noise_scale,
            sensitivity=self.radius * rule.largest_residual / n_rows,
        )
        shown = () if self.watch is None else (Release(SHOWN, "none", 0.0, NotPrivateEvent(), self.n_steps),)
        epsilons, deltas = self._epsilons(), self._deltas()
        return state_claim(
            float(self.epsilon if self.epsilon_screen is None else sum(epsilons)),
            self.delta if self.delta_screen is None else sum(deltas),
            (*selections, self._screening_release(rule, n_columns), *shown),
            public=self._facts(X),
            assumptions=assumptions,
            errata=self._errata(rule),
            seeded=stream.seeded,
        )

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_real(0.0, 1.0, closed="left", screen_share=check_positive(screen_share=self.screen_share))
        check_real(
            0.0, 1.0, closed="left", screen_delta_share=check_positive(screen_delta_share=self.screen_delta_share)
        )
        for name, epsilon in zip(("epsilon_optimise", "epsilon_screen"), self._epsilons(), strict=True):
            check_claimed_epsilon(**{name: epsilon})
        for name, delta in zip(("delta_optimise", "delta_screen"), self._deltas(), strict=True):
            check_printed_delta(**{name: delta})
        if sum(self._deltas()) >= 1.0:
            raise ParameterError(
                "delta_screen",
                self.delta_screen,
                "less than 1 together with delta_optimise",
                "choose both well below 1 / 2",
            )
        if self.radius > LARGEST_RADIUS[self.loss]:
            raise ParameterError(
                "radius",
                self.radius,
                f"at most {LARGEST_RADIUS[self.loss]:g} for loss={self.loss!r}",
                "choose a smaller ball, or rescale the features",
            )

    def _epsilons(self) -> tuple[float, float]:
        """Of the steps and of the screenings."""
        given = {"epsilon_optimise": self.epsilon_optimise, "epsilon_screen": self.epsilon_screen}
        return parts_of(self.epsilon, self.screen_share, **given)

    def _deltas(self) -> tuple[float, float]:
        """Of the steps and of the screenings."""
        given = {"delta_optimise": self.delta_optimise, "delta_screen": self.delta_screen}
        return parts_of(self.delta, self.screen_delta_share, **given)

    def _budget_of_steps(self) -> tuple[float, float]:
        return self._epsilons()[0], self._deltas()[0]

    def _read_both(self, X: Any, y: Any) -> tuple[Any, FloatArray, tuple[str, ...]]:
        X, target, assumptions = super()._read_both(X, y)
        return X, target, assumptions if classifies(self) else ("every target lies in [-radius, radius]",)

    def _screenings(self) -> range:
        """The steps after which the rule is applied."""
        raise NotImplementedError

    def _screen(self, rule: ScreeningRule, n_columns: int, stream: Stream) -> Callable[[FloatArray], IndexArray]:
        """Scores in, coefficients to be set to zero out."""
        raise NotImplementedError

    def _screening_release(self, rule: ScreeningRule, n_columns: int) -> Release:
        """What the screenings release, at what it costs."""
        raise NotImplementedError

    def _errata(self, rule: ScreeningRule) -> tuple[str, ...]:
        """The mistakes of both papers that concern this run."""
        errata = []
        excess = rule.sensitivity / rule.printed_sensitivity
        if excess > 1.0:
            errata.append(
                "the sensitivity of the rule's third term is a product of the sensitivities of its factors, which "
                f"does not bound the change of a product; what is proved of a score is {excess:.3g} times what is "
                "printed"
            )
        errata += self._short_noise(rule.largest_residual, "the noise of the steps")
        if self.radius > 1.0:
            errata.append(UNSCALED_RULE)
        return (*errata, COMPOSITION, SCALED_BY_DATA)
