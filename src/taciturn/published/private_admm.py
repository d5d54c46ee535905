"""Private ADMM for sparse logistic regression, as its users describe it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray, check_choice, check_claimed_epsilon, check_integer, check_positive
from taciturn.losses import LogisticLoss
from taciturn.methods.objective.blocks import PENALTIES
from taciturn.methods.objective.plan import StoppingCriterion
from taciturn.methods.objective.run import minimise
from taciturn.methods.options import Penalty
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import NotPrivateEvent, PureEvent
from taciturn.published.base import SwitchedModel, state_claim

INFERRED = "the constants are inferred from later users of the method and from a derivation, not read in the article"
ONE_DRAW = (
    "code that goes with it draws the noise once and uses it in every iteration, which is no composition of private "
    "steps; here it is drawn anew"
)
INEXACT = (
    "code that goes with it makes some gradient steps in place of an exact minimiser, which the proof does not cover; "
    "here the minimiser is exact but for rounding"
)
UNIT_ROWS = "every row has a Euclidean norm of at most 1"
# Of the gradient's norm; far below what noise of any use hides.
_TOLERANCE = 1e-10


def gamma_noise(rate: float, size: int, stream: Stream) -> FloatArray:
    r"""A vector with density proportional to :math:`e^{-\gamma \|b\|_2}`.

    Its direction is uniform, its length has the Gamma law of a sum of as many exponentials as there are entries.
    """
    direction = stream.normals(size)
    length = float(stream.exponentials(size).sum()) / rate
    return direction * (length / float(np.linalg.norm(direction)))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateADMM(SwitchedModel):
    r"""Private ADMM as inferred: logistic regression with an L1 or L1/2 penalty and Gamma noise in every iteration.

    From zero, for t = 1, .., T,

    .. math:: w &\leftarrow \arg\min_w \frac1n \sum_i \ell(w; x_i, y_i)
              + \frac c2 \Bigl\| w - z - \frac vc \Bigr\|^2 + c\, b_t \cdot w, \qquad
              p(b_t) \propto e^{-\gamma \|b_t\|_2}, \\
              z &\leftarrow \arg\min_z \lambda P(z) + \frac c2 \Bigl\| w - z - \frac vc \Bigr\|^2, \qquad
              v \leftarrow v + c (z - w),

    with :math:`\gamma = (c n \varepsilon / T - 0.7) / 2`, so that a step is claimed to cost
    :math:`(2\gamma + 0.7)/(cn)` and T of them :math:`\varepsilon`. The result is z. There is no intercept; rows must
    have a norm of at most 1; nothing is clipped or checked. For use, see :class:`taciturn.ADMMClassifier`.

    **Privacy.** As published, epsilon-DP, where neighbours differ in a replaced record.
    ``certificate_.proved_epsilon`` composes, under zero-out, steps of
    :math:`\gamma/(cn) + \ln(1 + 1/(4cn))` each.

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget. ``float("inf")`` runs without noise.
    penalty : {"l1", "l1/2"}, default="l1"
        P.
    strength : float, default=0.01
        :math:`\lambda`.
    coupling : float, default=0.1
        c.
    n_steps : int, default=10
        T, of which the noise is a function.
    %(published_seed)s

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,)
        Zero.
    n_iter_ : int
        Number of iterations made.
    %(published_attributes)s

    Errata
    ------
    * The constants are inferred.
    * Code that goes with the method draws its noise once and minimises inexactly; neither is covered by the proof.
    * Basic composition over the iterations wastes most of the budget.

    References
    ----------
    Wang and Zhang, *Differential privacy for sparse classification learning* (2020), as used in Khanna, Lu and Raff,
    *Sparse Private LASSO Logistic Regression*.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.published import PrivateADMM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.4, 0.4, (5000, 5))
    >>> model = PrivateADMM(random_state=0).fit(X, X[:, 1] > 0)
    >>> model.certificate_.status, model.certificate_.epsilon, round(model.certificate_.proved_epsilon, 3)
    ('as published', 1.0, 0.498)
    """

    loss = "logistic"

    epsilon: float = 1.0
    penalty: Penalty = "l1"
    strength: float = 0.01
    coupling: float = 0.1
    n_steps: int = 10
    random_state: int | None = None

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        X, target, assumptions = self._read_both(X, y)
        n_rows, n_columns = X.shape
        rate = self._rate(n_rows)
        weights = self._solve(X, target, rate, stream.spawn("admm"))
        self.n_iter_ = int(self.n_steps)
        self._set_coefficients(weights)
        return state_claim(
            float(self.epsilon),
            0.0,
            (self._release(rate, n_rows),),
            public={
                "features": n_columns,
                "records": n_rows,
                "penalty": self.penalty,
                "strength": float(self.strength),
                "coupling": float(self.coupling),
                "n_steps": int(self.n_steps),
                "classes": self.classes_,
            },
            assumptions=(UNIT_ROWS, *assumptions),
            errata=(INFERRED, ONE_DRAW, INEXACT),
            seeded=stream.seeded,
        )

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_claimed_epsilon(epsilon=self.epsilon)
        check_choice(tuple(PENALTIES), penalty=self.penalty)
        check_positive(strength=self.strength)
        check_positive(coupling=self.coupling)
        check_integer(1, n_steps=self.n_steps)
        Stream.of(self.random_state)

    def _rate(self, n_rows: int) -> float:
        """Gamma; infinite without noise."""
        rate = (self.coupling * n_rows * self.epsilon / self.n_steps - 0.7) / 2.0
        if rate <= 0.0:
            raise ParameterError(
                "coupling",
                self.coupling,
                f"more than {0.7 * self.n_steps / (n_rows * self.epsilon):.3g} for so many records, steps and epsilon",
                "raise it, or make fewer steps",
            )
        return rate

    def _solve(self, X: Any, target: FloatArray, rate: float, stream: Stream) -> FloatArray:
        n_rows, n_columns = X.shape
        weight = self.coupling * n_rows
        consensus, multiplier = np.zeros(n_columns), np.zeros(n_columns)
        for _ in range(self.n_steps):
            noise = gamma_noise(rate, n_columns, stream.spawn("noise")) if math.isfinite(rate) else 0.0
            tilt = weight * (noise - consensus - multiplier / self.coupling)
            local = minimise(X, target, LogisticLoss(), weight, tilt, StoppingCriterion(_TOLERANCE * n_rows))
            consensus = PENALTIES[self.penalty](local - multiplier / self.coupling, self.strength / self.coupling)
            multiplier += self.coupling * (consensus - local)
        return consensus

    def _release(self, rate: float, n_rows: int) -> Release:
        what = "a minimiser per iteration"
        if math.isinf(rate):
            return Release(what, "none", 0.0, NotPrivateEvent(), int(self.n_steps))
        weight = self.coupling * n_rows
        cost = rate / weight + math.log1p(0.25 / weight)
        return Release(what, "Gamma", weight / rate, PureEvent(cost), int(self.n_steps))
