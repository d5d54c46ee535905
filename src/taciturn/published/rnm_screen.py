"""RNM-Screen: Frank-Wolfe that screens the coefficient of the smallest noisy score, as printed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.core.rng import Stream
from taciturn.events import NotPrivateEvent, PureEvent
from taciturn.published.screening_rule import ScreenedReproduction, ScreeningRule

__all__ = ["RNMScreen", "smallest_score"]

SIGN = (
    "line 11 also tells whether the smallest noisy score is negative, for which the noise of an index does not pay: "
    "with 600 features, and noise that is right for an index at epsilon = .1, one record can change the probability "
    "that nothing is screened by a factor of exp(28.6)"
)
LOOP = "line 7 loops over n scores where there are d; all d are computed here"
HALF = (
    "the sensitivity is stated for the mean of squared residuals and proved for half of that, which is what is "
    "minimised here"
)


def smallest_score(scores: FloatArray, noise_scale: float, stream: Stream) -> IndexArray:
    """The index of the smallest score after Laplace noise if that score is negative, and none otherwise."""
    if noise_scale > 0.0:
        scores = scores + noise_scale * stream.laplaces(scores.size)
    smallest = np.argmin(scores)
    return np.array([smallest] if scores[smallest] < 0.0 else [], dtype=np.intp)


class RNMScreen(ScreenedReproduction):
    r"""RNM-Screen as printed: Frank-Wolfe over an L1 ball that sets at most one coefficient to zero after every step.

    The start and the steps are those of :class:`ADPScreen` for half the squared residual. After each step, with the
    scores (Equation 1)

    .. math:: s_i = |g_i| + w_t \cdot g + \frac{\|x_{(i)}\|_2 + \|X w_t\|_2}{\sqrt n} \sqrt{\mathcal G}, \qquad
              g = \nabla \mathcal L(w_t), \quad \mathcal G = w_t \cdot g + \lambda \|g\|_\infty,

    the coefficient with the smallest :math:`s_j + \mathrm{Lap}(\Delta/\varepsilon_{iter})` becomes zero if that is
    negative, where

    .. math:: \Delta = \frac{2\lambda}{n} + \frac{2\lambda^2}{n} + \frac{2\lambda(1 + \lambda)}{n}, \qquad
              \varepsilon_{iter} = \frac{\varepsilon_{screen}}{\sqrt{8 T \ln(1/\delta_{screen})}}.

    There is no intercept. Features must lie in [-1, 1] and targets in :math:`[-\lambda, \lambda]`; nothing is clipped
    or checked. For use, see :class:`taciturn.ScreenedRegressor`.

    **Privacy.** As published, (epsilon, delta)-DP, which is false.
    ``certificate_.proved_epsilon`` composes, under zero-out, the steps, each :math:`4\lambda^2/(n b)`-DP for noise of
    scale b, and the screenings. Index and sign are a function of d noisy scores, each of which is
    :math:`\Delta_0/b'`-DP for noise of scale b' and the :math:`\Delta_0` of
    ``data.sensitivity.unscaled_rule``.

    Parameters
    ----------
    epsilon : float, default=5.0
        Claimed budget of steps and screenings together. ``float("inf")`` runs both without noise.
    delta : float, default=1/3000
        Claimed failure probability of both together, > 0.
    screen_share : float, default=0.02
        Share of epsilon for the screenings; the steps have the rest.
    screen_delta_share : float, default=0.25
        Share of delta for the screenings.
    epsilon_optimise, epsilon_screen : float, default=None
        The paper's own parametrisation: the budgets of steps and of screenings, in place of ``epsilon`` and its share;
        the claim is their sum. ``float("inf")`` runs one of them without noise. Give both or neither.
    delta_optimise, delta_screen : float, default=None
        The same for delta.
    radius : float, default=50.0
        Radius of the L1 ball.
    n_steps : int, default=1000
        T, of which the noise is a function.
    gradient_bound : float, default=1.0
        The constant of the steps' noise. What is given is used; too small a value shows in ``proved_epsilon`` and in
        the errata.
    %(published_seed)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Zero.
    n_iter_ : int
        Number of steps made, each with a screening.
    %(published_attributes)s

    Errata
    ------
    * Whether anything is screened depends on the sign of the smallest noisy score, and a common shift of d scores
      changes its probability d times. With noise that is right for the index at epsilon = .1, the logarithm of that
      probability can change by .48 (d = 10), 28.6 (d = 600), 476 (d = 10,000).
    * The sensitivity of the rule's third term is too small by the root of n (see :class:`ADPScreen`). Where
      :math:`\sqrt n > 4\lambda + 1`, not even the index alone is covered; at the published setting it is.
    * Equation 1 leaves out the radius (see :class:`ADPScreen`).
    * The steps take 1 for the Lipschitz constant of the squared loss, which is :math:`2\lambda`: 100 at the published
      setting.
    * The loss is stated as a mean of squares; the proof has half of that.
    * Line 7 of the algorithm loops over n scores instead of d. That is not reproduced: with n < d some coefficients
      would have no score, with n > d there are no such columns.
    * Theorem 4's limits for uniform screening, :math:`(d-1)^2 d/((d-1)d + 1)` and T - 1, use 1/d where (d - 1)/d
      belongs. They are :math:`d(d-1)/(2d-1)`, about half of all coefficients, and T.
    * The noise of steps and screenings follows from a composition theorem without its second-order term.
    * Features are scaled by observed values, which is a release of its own.

    Notes
    -----
    At the published setting the scores differ by less than one and the noise has a scale of 9,320: what is screened is
    a coefficient drawn at random.

    References
    ----------
    *Differentially Private Iterative Screening Rules for Linear Regression*, Algorithm 2 and Theorem 1.
    Raj et al., *Screening rules for convex problems* (2016).

    Examples
    --------
    >>> from taciturn.datasets import make_screening_linear
    >>> from taciturn.published import RNMScreen
    >>> X, y, _ = make_screening_linear(n_samples=500, n_features=100, random_state=0)
    >>> model = RNMScreen(n_steps=100, random_state=0).fit(X, y)
    >>> model.certificate_.status, model.certificate_.epsilon, model.certificate_.proved_epsilon > 5.0
    ('as published', 5.0, True)
    """

    loss = "squared"

    def __init__(
        self,
        *,
        epsilon: float = 5.0,
        delta: float = 1 / 3000,
        screen_share: float = 0.02,
        screen_delta_share: float = 0.25,
        epsilon_optimise: float | None = None,
        epsilon_screen: float | None = None,
        delta_optimise: float | None = None,
        delta_screen: float | None = None,
        radius: float = 50.0,
        n_steps: int = 1000,
        gradient_bound: float = 1.0,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.screen_share = screen_share
        self.screen_delta_share = screen_delta_share
        self.epsilon_optimise = epsilon_optimise
        self.epsilon_screen = epsilon_screen
        self.delta_optimise = delta_optimise
        self.delta_screen = delta_screen
        self.radius = radius
        self.n_steps = n_steps
        self.gradient_bound = gradient_bound
        self.random_state = random_state

    def _screenings(self) -> range:
        return range(1, self.n_steps + 1)

    def _screening_scale(self, rule: ScreeningRule) -> float:
        """The printed scale."""
        epsilon = self._epsilons()[1] / math.sqrt(8.0 * self.n_steps * math.log(1.0 / self._deltas()[1]))
        return rule.printed_sensitivity / epsilon

    def _screen(self, rule: ScreeningRule, n_columns: int, stream: Stream) -> Callable[[FloatArray], IndexArray]:
        return partial(smallest_score, noise_scale=self._screening_scale(rule), stream=stream)

    def _screening_release(self, rule: ScreeningRule, n_columns: int) -> Release:
        noise_scale = self._screening_scale(rule)
        if noise_scale == 0.0:
            what = f"the smallest of {n_columns:,} scores (an index), if it is negative"
            return Release(what, "none", 0.0, NotPrivateEvent(), self.n_steps)
        what = f"one of {n_columns:,} scores per step, of which the index and the sign of the smallest are used"
        multiplier = noise_scale / rule.sensitivity
        return Release(what, "Laplace", multiplier, PureEvent(1.0 / multiplier), n_columns * self.n_steps)

    def _errata(self, rule: ScreeningRule) -> tuple[str, ...]:
        errata = [SIGN]
        root = math.sqrt(rule.n_rows)
        if root > 4.0 * self.radius + 1.0:
            # Half of how far one record can move two scores apart is (3 + sqrt(n)) radius / n.
            excess = (3.0 + root) / (4.0 * (1.0 + self.radius))
            errata.append(
                f"as sqrt(n) > 4 radius + 1, the printed sensitivity is too small even for the index alone: two scores "
                f"can move apart by up to {excess:.3g} times what the noise is for"
            )
        return (*errata, *super()._errata(rule), HALF, LOOP)
