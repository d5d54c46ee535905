"""Private LASSO, its multinomial form, and Sparsifier, as their papers print them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import (
    FloatArray,
    check_choice,
    check_claimed_epsilon,
    check_integer,
    check_positive,
    check_real,
)
from taciturn.data.records import PUBLIC_LABELS, public_labels
from taciturn.losses import Loss, SoftmaxLoss
from taciturn.methods.base import ClassPredictor
from taciturn.methods.options import PrintedLoss
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import NotPrivateEvent, PureEvent
from taciturn.published.base import (
    OBSERVED_BOUNDS,
    STEPS,
    BallModel,
    ReproducedModel,
    parts_of,
    state_claim,
    vertex_releases,
)

# ---- Private LASSO: Frank-Wolfe over an L1 ball with Laplace noise on every vertex, as printed.

COMPOSITION = (
    "the proof adds the steps up by a composition theorem of which it drops the second-order term; the proved epsilon "
    "comes from optimal composition instead"
)
NEIGHBOURS = (
    "it is left open whether neighbours differ by a missing or by a replaced record; a replaced record counts twice, "
    "and the noise is that of a missing one"
)
ASCENT = "the code takes the vertex with the largest noisy score instead of the smallest, and so climbs"


def noisy_frank_wolfe(
    X: Any,
    target: FloatArray,
    loss: Loss,
    *,
    radius: float,
    n_selections: int,
    noise_scale: float,
    stream: Stream,
    ascend: bool = False,
) -> FloatArray:
    r"""Frank-Wolfe on the mean loss from zero, with Laplace noise on the scores of the 2 d vertices.

    Step t = 1, 2, .. moves the share :math:`2 / (t + 2)` of the way to the vertex of the smallest noisy score, or
    the largest to ``ascend``.
    """
    n_rows, n_columns = X.shape
    # By columns: a step reads all of them once, for the gradient, and changes the margins by one.
    X = sp.csc_array(X) if sp.issparse(X) else np.asfortranarray(X)
    choose = np.argmax if ascend else np.argmin
    weights, margins = np.zeros(n_columns), np.zeros(n_rows)
    for t in range(1, n_selections + 1):
        gradient = X.T @ loss.derivative(margins, target) / n_rows
        scores = radius * np.concatenate((gradient, -gradient))
        if noise_scale > 0.0:
            scores += noise_scale * stream.laplaces(scores.size)
        side, feature = divmod(int(choose(scores)), n_columns)
        share = 2.0 / (t + 2.0)
        move = share * (-radius if side else radius)
        weights *= 1.0 - share
        weights[feature] += move
        margins *= 1.0 - share
        margins += move * (X[:, [feature]].toarray().ravel() if sp.issparse(X) else X[:, feature])
    return weights


class LassoModel(BallModel):
    """Frank-Wolfe with Laplace noise as printed: what Private LASSO and the Sparsifier share."""

    literal_appendix: bool

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        X, target, assumptions = self._read_both(X, y)
        self.n_iter_ = self.n_steps if self.literal_appendix else self.n_steps - 1
        weights, others = self._solve(X, target, stream)
        self._set_coefficients(weights)
        n_rows, n_columns = X.shape
        slope = self._loss().lipschitz(self.radius)
        releases = vertex_releases(
            f"one of {2 * n_columns:,} directions (a coefficient and a sign) per step",
            self.n_iter_,
            noise_scale=self.noise_scale(n_rows),
            sensitivity=self.radius * slope / n_rows,
        )
        return state_claim(
            self._claimed_epsilon(),
            self.delta,
            (*others, *releases),
            public=self._facts(X),
            assumptions=assumptions,
            errata=self._errata(n_columns),
            seeded=stream.seeded,
        )

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_choice(("logistic", "squared"), loss=self.loss)

    def _solve(self, X: Any, target: FloatArray, stream: Stream) -> tuple[FloatArray, tuple[Release, ...]]:
        """Weights, and what was released besides the selections."""
        weights = noisy_frank_wolfe(
            X,
            target,
            self._loss(),
            radius=self.radius,
            n_selections=self.n_iter_,
            noise_scale=self.noise_scale(X.shape[0]),
            stream=stream.spawn("frank-wolfe"),
            ascend=self.literal_appendix,
        )
        return weights, ()

    def _claimed_epsilon(self) -> float:
        return float(self.epsilon)

    def _facts(self, X: Any) -> dict[str, Any]:
        return super()._facts(X) | {"literal_appendix": bool(self.literal_appendix)}

    def _errata(self, n_columns: int) -> tuple[str, ...]:
        """The mistakes that concern this run."""
        steps = ASCENT if self.literal_appendix else STEPS
        short = self._short_noise(self._loss().lipschitz(self.radius), "the noise")
        return (COMPOSITION, NEIGHBOURS, steps, OBSERVED_BOUNDS, *short)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLasso(LassoModel):
    r"""Private LASSO as printed: Frank-Wolfe over an L1 ball with Laplace noise.

    From :math:`w_1 = 0`, for :math:`t = 1, \dots, T - 1`:

    .. math:: s_t = \arg\min_{s \in \{\pm\lambda e_j\}} \langle s, \nabla \mathcal L(w_t)\rangle
              + \mathrm{Lap}\Bigl(\frac{\lambda L \sqrt{8 T \ln(1/\delta)}}{n \varepsilon}\Bigr), \qquad
              w_{t+1} = (1 - \mu_t) w_t + \mu_t s_t, \quad \mu_t = \frac{2}{t+2},

    where :math:`\mathcal L` is a mean over n records, :math:`\lambda` the ``radius``, T is ``n_steps`` and L the
    ``gradient_bound``. There is no intercept. Features must lie in [-1, 1], and targets of a regression too; nothing
    is clipped or checked. For use, see :class:`taciturn.FrankWolfeClassifier` and
    :class:`taciturn.FrankWolfeRegressor`.

    **Privacy.** As published, (epsilon, delta)-DP. ``certificate_.proved_epsilon`` composes the selections actually
    made, each :math:`2\lambda L_0 / (n b)`-DP under zero-out for noise of scale b, where :math:`L_0` is the true
    Lipschitz constant: 1 for the logistic loss, :math:`\lambda + 1` for half the squared residual. With the true
    constant the claim holds up to an epsilon of about 8 at ``delta=1e-5`` (.758 is proved for 1, T = 1000).

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget. ``float("inf")`` runs without noise.
    delta : float, default=1e-6
        Claimed failure probability, > 0; the experiments take one over the number of records.
    radius : float, default=10.0
        Radius of the L1 ball.
    n_steps : int, default=1000
        T, of which the noise is a function.
    loss : {"logistic", "squared"}, default="logistic"
        "logistic" makes the model a classifier of two classes; "squared" (half the squared residual) a regressor.
    gradient_bound : float, default=1.0
        The constant L. What is given is used; too small a value shows in ``proved_epsilon`` and in the errata.
    literal_appendix : bool, default=False
        Follow the code of the appendix rather than the algorithm: T steps, to the vertex of the *largest* score. The
        code knows no L, which is the default of 1.
    %(published_seed)s

    Attributes
    ----------
    n_iter_ : int
        Number of selections made.
    %(published_model)s

    Errata
    ------
    * The noise follows from a composition theorem without its second-order term, which would give 1.044 for
      ``epsilon=1``; optimal composition saves the claim.
    * Whether neighbours differ by a missing or by a replaced record is left open. The noise is that of a missing one;
      for a replaced one 1.63 is proved where 1 is claimed.
    * The loop makes T - 1 steps, its noise is for T, and the code of the appendix makes T.
    * Followers take L = 1 for the squared loss, whose constant grows with the ball.
    * Features are scaled by their observed maxima, which is a release of its own.
    * The code of the appendix takes an argmax where the algorithm takes an argmin: it ascends.

    References
    ----------
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*, Algorithm 1 and Appendix B.
    Talwar, Thakurta and Zhang, *Nearly optimal private LASSO* (2015).

    Examples
    --------
    >>> from taciturn.datasets import make_sparsifier_logistic
    >>> from taciturn.published import PrivateLasso
    >>> X, y, _ = make_sparsifier_logistic(n_samples=2000, random_state=0)
    >>> model = PrivateLasso(delta=1e-5, n_steps=100, random_state=0).fit(X, y)
    >>> model.certificate_.status, model.certificate_.epsilon, round(model.certificate_.proved_epsilon, 3)
    ('as published', 1.0, 0.747)
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    radius: float = 10.0
    n_steps: int = 1000
    loss: PrintedLoss = "logistic"
    gradient_bound: float = 1.0
    literal_appendix: bool = False
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class MultinomialPrivateLasso(ClassPredictor, ReproducedModel):
    r"""Multinomial Private LASSO as printed: Frank-Wolfe with one noisy selection per feature and step.

    With K classes, d features and :math:`G = \nabla \mathcal L(W_t)`, a K x d matrix, step :math:`t = 1, \dots, T - 1`
    chooses for *every* feature i one of the 2 K vertices of the ball in :math:`\mathbb R^K`,

    .. math:: s_i = \arg\min_{s \in \{\pm\lambda e_k\}} \langle s, G_{:i} \rangle
              + \mathrm{Lap}\Bigl(\frac{\lambda L \sqrt{8 T \ln(K/\delta)}}{n \varepsilon / K}\Bigr),

    and moves the share 2 / (t + 2) of the way to the matrix with these columns. There is no intercept. Features must
    lie in [-1, 1]; nothing is clipped or checked. For use, see :class:`taciturn.FrankWolfeClassifier`.

    **Privacy.** As published, (epsilon, delta)-DP, which is false for many features.
    ``certificate_.proved_epsilon`` composes the d (T - 1) selections actually made, each
    :math:`2\lambda / (n b)`-DP under zero-out for noise of scale b.

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget. ``float("inf")`` runs without noise.
    delta : float, default=1e-6
        Claimed failure probability, > 0.
    radius : float, default=10.0
        Radius of the ball of each column.
    n_steps : int, default=1000
        T, of which the noise is a function.
    gradient_bound : float, default=2.0
        The constant L; the default is that of the paper's Theorem 4.
    %(published_seed)s

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        Coefficients, one row per class also where there are two.
    intercept_ : ndarray of shape (n_classes,)
        Zeros.
    n_iter_ : int
        Number of steps made, each with a selection per feature.
    support_ : ndarray of bool, shape (n_features,)
        Which features have a coefficient that is not zero.
    %(published_statement)s

    Errata
    ------
    * A step makes d selections, all of which see every record; the proof counts K. For K = 2 and d = 10,000 a single
      step with a claimed (1, 1e-5) has exactly delta(1) = .14 and epsilon(1e-5) = 4.6.
    * Every column has a ball of its own, so that the absolute coefficients may sum to d times the radius: another
      problem than the one stated.
    * Theorem 4's Lipschitz constant of 2 belongs to an induced matrix norm; entry by entry it is 1.
    * The loop makes T - 1 steps with noise for T.
    * Features are scaled by their observed maxima, which is a release of its own.

    References
    ----------
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*, Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.published import MultinomialPrivateLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 400))
    >>> y = rng.integers(0, 3, 2000)
    >>> model = MultinomialPrivateLasso(radius=1.0, n_steps=20, random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_).sum() > 100), model.certificate_.events[0].count
    (True, 7600)
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    radius: float = 10.0
    n_steps: int = 1000
    gradient_bound: float = 2.0
    random_state: int | None = None

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        records = self._read(X, y, numeric=False)
        X, y = records.X, records.y
        self.classes_ = public_labels(y)
        n_rows, n_columns = X.shape
        n_classes = self.classes_.size
        self.n_iter_ = self.n_steps - 1
        one_hot = (y[:, None] == self.classes_).astype(np.float64)
        self.coef_ = self._solve(X, one_hot, stream.spawn("frank-wolfe"))
        self.intercept_ = np.zeros(n_classes)
        self.support_ = (self.coef_ != 0.0).any(axis=0)
        slope = SoftmaxLoss().lipschitz(self.radius)
        return state_claim(
            float(self.epsilon),
            self.delta,
            vertex_releases(
                f"one of {2 * n_classes:,} directions (a class and a sign) per feature and step",
                n_columns * self.n_iter_,
                noise_scale=self.noise_scale(n_rows, n_classes),
                sensitivity=self.radius * slope / n_rows,
            ),
            public=self._facts(X) | {"classes": self.classes_},
            assumptions=(PUBLIC_LABELS,),
            errata=self._errata(n_columns, n_classes),
            seeded=stream.seeded,
        )

    def noise_scale(self, n_rows: int, n_classes: int) -> float:
        """Return the printed scale of the Laplace noise, in the units of the mean gradient."""
        root = math.sqrt(8.0 * self.n_steps * math.log(n_classes / self.delta))
        return self.radius * self.gradient_bound * root * n_classes / (n_rows * self.epsilon)

    def _solve(self, X: Any, one_hot: FloatArray, stream: Stream) -> FloatArray:
        (n_rows, n_columns), n_classes = X.shape, one_hot.shape[1]
        noise_scale, loss = self.noise_scale(n_rows, n_classes), SoftmaxLoss()
        features = np.arange(n_columns)
        weights = np.zeros((n_classes, n_columns))
        for t in range(1, self.n_iter_ + 1):
            gradient = (X.T @ loss.derivative(X @ weights.T, one_hot)).T / n_rows
            scores = self.radius * np.concatenate((gradient, -gradient))
            if noise_scale > 0.0:
                scores += noise_scale * stream.laplaces(scores.size).reshape(scores.shape)
            side, label = np.divmod(scores.argmin(axis=0), n_classes)
            share = 2.0 / (t + 2.0)
            weights *= 1.0 - share
            weights[label, features] += share * np.where(side, -self.radius, self.radius)
        return weights

    def _margins(self, X: Any) -> FloatArray:
        # Two classes have a row of weights each; what decides between them is the difference.
        margins: FloatArray = super()._margins(X)
        return margins[:, 1:] - margins[:, :1] if self.classes_.size == 2 else margins

    def _errata(self, n_columns: int, n_classes: int) -> tuple[str, ...]:
        """The mistakes that concern this run."""
        return (
            f"every step makes one selection for each of the {n_columns:,} features, all of which see every record, "
            f"while the proof counts one for each of the {n_classes:,} classes",
            f"every feature has a ball of its own, so that the absolute coefficients may sum to {n_columns:,} times "
            "the radius, which is not the stated problem",
            "the Lipschitz constant of 2 is that of an induced matrix norm; entry by entry it is 1",
            STEPS,
            OBSERVED_BOUNDS,
        )


# ---- Sparsifier: Private LASSO thinned to a noisy count of a non-private model's coefficients, as printed.

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


@dataclass(kw_only=True, eq=False, repr=False)
class Sparsifier(LassoModel):
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

    epsilon: float = 1.0
    delta: float = 1e-6
    count_share: float = 0.05
    epsilon_optimise: float | None = None
    epsilon_count: float | None = None
    count_range: tuple[float, float] | None = None
    precision: float = 1.0
    radius: float = 10.0
    n_steps: int = 1000
    n_count_steps: int = 1000
    loss: PrintedLoss = "logistic"
    gradient_bound: float = 1.0
    literal_appendix: bool = False
    random_state: int | None = None

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
            expected = "two numbers 0 <= low < high"
            raise ParameterError("count_range", self.count_range, expected, "give the least and the largest count")
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
