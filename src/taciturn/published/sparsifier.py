"""Sparsifier: Private LASSO thinned to a noisy count of a non-private model's coefficients, as printed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.certificate import Release
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_claimed_epsilon, check_integer, check_positive, check_real
from taciturn.events import NotPrivateEvent, PureEvent
from taciturn.published._base import parts_of
from taciturn.published.private_lasso import PrivateLasso, noisy_frank_wolfe

__all__ = ["Sparsifier", "double_geometric", "noisy_count"]

PRINTED_COUNT_STEPS = 50_000

OVERWRITTEN = "the code clips the exact count again after the noise was added, and so releases it without noise"


def double_geometric(rate: float, stream: Stream) -> float:
    r"""A whole number k with probability proportional to :math:`e^{-\mathtt{rate}|k|}`.

    The difference of two geometric numbers with success probability :math:`1 - e^{-\mathtt{rate}}`, each the whole
    part of an exponential one.
    """
    first, second = np.floor(stream.exponentials(2) / rate)
    return float(first - second)


def noisy_count(exact: int, low: float, high: float, epsilon: float, stream: Stream) -> float:
    """Clip, add noise, clip; with ends that are not integers, the result need not be one."""
    clipped = min(max(float(exact), low), high)
    return min(max(clipped + double_geometric(epsilon / (high - low), stream), low), high)


class Sparsifier(PrivateLasso):
    r"""Sparsifier as printed: Private LASSO, of which only the c largest coefficients are kept.

    .. math:: c_0 &= \mathrm{clip}(\|\hat w_{NP}\|_0, \alpha, \beta) \\
              c_1 &= \mathrm{clip}\bigl(c_0 + \mathrm{DoubleGeometric}(1 - e^{-\varepsilon_1/(\beta-\alpha)}),
                     \alpha, \beta\bigr) \\
              c &= \mathrm{clip}(\rho c_1, 0, d)

    for the non-private Frank-Wolfe solution :math:`\hat w_{NP}`; then :class:`PrivateLasso` runs with
    :math:`(\varepsilon_2, \delta)` and all but the c largest coefficients are set to zero. The paper does not say what
    to do with a fractional c; it is rounded down. For use, see :class:`taciturn.SparsifiedClassifier` and
    :class:`taciturn.SparsifiedRegressor`.

    **Privacy.** As published, (epsilon, delta)-DP. ``certificate_.proved_epsilon`` composes the count
    and the selections if both ends of ``count_range`` are integers, and is infinite otherwise and for
    ``literal_appendix=True``.

    Parameters
    ----------
    epsilon, delta, radius, n_steps, loss, gradient_bound, random_state
        As in :class:`PrivateLasso`; ``epsilon`` is the claimed budget of optimiser and count together.
    count_share : float, default=0.05
        Share of epsilon for the count; the optimiser has the rest.
    epsilon_optimise, epsilon_count : float, default=None
        The paper's own parametrisation: the budgets of the optimiser and of the count, in place of ``epsilon`` and its
        share; the claim is their sum. Give both or neither.
    count_range : tuple of float, default=None
        :math:`(\alpha, \beta)`. None: the printed :math:`(\sqrt d, 2 \sqrt d)`, which is a pair of integers only
        where d is a square.
    precision : float, default=1.0
        :math:`\rho`, by which the count is multiplied.
    n_count_steps : int, default=1000
        Steps of the non-private Frank-Wolfe, at most the 50,000 of the experiments.
    literal_appendix : bool, default=False
        Follow the code of the appendix: the noisy count is overwritten by the exact one, and the private steps are
        those of ``PrivateLasso(literal_appendix=True)``.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, support_, certificate_, n_features_in_, feature_names_in_
        As in :class:`PrivateLasso`.
    count_ : float
        c, before it is rounded down.

    Errata
    ------
    * The printed ends :math:`\sqrt d` and :math:`2\sqrt d` are rarely integers. The noise is, so that the fractional
      part of the count tells whether the true one was clipped, and no finite epsilon holds at a small delta. The number
      kept, c rounded down, hides the fraction only while :math:`\rho = 1`.
    * The code of the appendix overwrites the noisy count by the exact one, on the line after the noise.
    * That code ascends (see :class:`PrivateLasso`), calls two functions by names that it does not define, and would
      stop at a product with :math:`\rho` that is not an integer; here the product is rounded down.
    * The last clip is to d where the rest of the algorithm has p.
    * The utility proof takes (p - c) / (c + 1) for a function that decreases as c decreases; it increases.
    * The mistakes of :class:`PrivateLasso`.

    Notes
    -----
    At the printed share of .05 the noise is twenty times as wide as the range: the released count is one of its two
    ends with probability .98, whatever the data.

    References
    ----------
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*, Algorithm 2 and Appendix B.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.datasets import make_sparsifier_logistic
    >>> from taciturn.published import Sparsifier
    >>> X, y, _ = make_sparsifier_logistic(n_samples=2000, random_state=0)
    >>> model = Sparsifier(delta=1 / 2000, n_steps=100, n_count_steps=100, random_state=0).fit(X, y)
    >>> bool(np.count_nonzero(model.coef_) == model.count_), 10 <= model.count_ <= 20
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        count_share: float = 0.05,
        epsilon_optimise: float | None = None,
        epsilon_count: float | None = None,
        count_range: tuple[float, float] | None = None,
        precision: float = 1.0,
        radius: float = 10.0,
        n_steps: int = 1000,
        n_count_steps: int = 1000,
        loss: str = "logistic",
        gradient_bound: float = 1.0,
        literal_appendix: bool = False,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            radius=radius,
            n_steps=n_steps,
            loss=loss,
            gradient_bound=gradient_bound,
            literal_appendix=literal_appendix,
            random_state=random_state,
        )
        self.count_share = count_share
        self.epsilon_optimise = epsilon_optimise
        self.epsilon_count = epsilon_count
        self.count_range = count_range
        self.precision = precision
        self.n_count_steps = n_count_steps

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_real(0.0, 1.0, closed="left", count_share=check_positive(count_share=self.count_share))
        for name, epsilon in zip(("epsilon_optimise", "epsilon_count"), self._epsilons(), strict=True):
            check_claimed_epsilon(**{name: epsilon})
        check_positive(precision=self.precision)
        check_integer(1, PRINTED_COUNT_STEPS, n_count_steps=self.n_count_steps)
        self.count_ends(1)

    def count_ends(self, n_columns: int) -> tuple[float, float]:
        """Return the ends of the count's range: ``count_range``, or the printed ones for so many features."""
        if self.count_range is None:
            root = math.sqrt(n_columns)
            return root, 2.0 * root
        try:
            low, high = (float(end) for end in self.count_range)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0.0 <= low < high < math.inf:
            raise ParameterError(
                "count_range", self.count_range, "two numbers 0 <= low < high", "give the least and the largest count"
            )
        return low, high

    def _solve(self, X: Any, target: FloatArray, stream: Stream) -> tuple[FloatArray, tuple[Release, ...]]:
        n_columns = X.shape[1]
        low, high = self.count_ends(n_columns)
        counting = stream.spawn("count")
        noiseless = noisy_frank_wolfe(
            X,
            target,
            self._loss(),
            radius=self.radius,
            n_selections=self.n_count_steps,
            noise_scale=0.0,
            stream=counting,
        )
        exact = int(np.count_nonzero(noiseless))
        count = noisy_count(exact, low, high, self._epsilons()[1], counting)
        if self.literal_appendix:
            count = min(max(float(exact), low), high)
        self.count_ = min(max(count * self.precision, 0.0), float(n_columns))
        weights, _ = super()._solve(X, target, stream)
        kept = np.argsort(-np.abs(weights), kind="stable")[: int(self.count_)]
        thinned = np.zeros(n_columns)
        thinned[kept] = weights[kept]
        return thinned, self._count_releases(low, high)

    def _count_releases(self, low: float, high: float) -> tuple[Release, ...]:
        what = f"a count of coefficients between {low:g} and {high:g}"
        epsilon = self._epsilons()[1]
        if self.literal_appendix or math.isinf(epsilon):
            return (Release(what, "none", 0.0, NotPrivateEvent()),)
        # Whole parts can lie further apart than the ends do, up to the next integer.
        share = math.ceil(high - low) / (high - low)
        noisy = Release(what, "two-sided geometric", 1.0 / epsilon, PureEvent(share * epsilon))
        if low.is_integer() and high.is_integer():
            return (noisy,)
        return (noisy, Release("the fractional part of that count", "none", 0.0, NotPrivateEvent()))

    def _claimed_epsilon(self) -> float:
        return float(self.epsilon if self.epsilon_count is None else sum(self._epsilons()))

    def _epsilons(self) -> tuple[float, float]:
        """Of the optimiser and of the count."""
        given = {"epsilon_optimise": self.epsilon_optimise, "epsilon_count": self.epsilon_count}
        return parts_of(self.epsilon, self.count_share, **given)

    def _budget_of_steps(self) -> tuple[float, float]:
        return self._epsilons()[0], self.delta

    def _facts(self, X: Any) -> dict[str, Any]:
        return super()._facts(X) | {
            "count_range": self.count_ends(X.shape[1]),
            "precision": float(self.precision),
            "n_count_steps": int(self.n_count_steps),
        }

    def _errata(self, n_columns: int) -> tuple[str, ...]:
        low, high = self.count_ends(n_columns)
        errata = super()._errata(n_columns)
        if self.literal_appendix:
            return (OVERWRITTEN, *errata)
        if low.is_integer() and high.is_integer():
            return errata
        fraction = (
            f"the ends of the count's range, {low:g} and {high:g}, are not integers while the noise is, so that the "
            "fractional part of the count shows whether the true one was clipped"
        )
        return (fraction, *errata)
