"""Multinomial Private LASSO: one selection per feature and step, as printed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.certificate import Certificate
from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.data.reading import PUBLIC_LABELS, public_labels
from taciturn.estimators.prediction import ClassPredictor
from taciturn.losses import SoftmaxLoss
from taciturn.published._base import OBSERVED_BOUNDS, STEPS, ReproducedModel, state_claim, vertex_releases

__all__ = ["MultinomialPrivateLasso"]


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

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        radius: float = 10.0,
        n_steps: int = 1000,
        gradient_bound: float = 2.0,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.n_steps = n_steps
        self.gradient_bound = gradient_bound
        self.random_state = random_state

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
