r"""Sparse logistic regression by private ADMM, with an L1 or an L1/2 penalty.

Every iteration minimises a perturbed local objective with fresh noise, thresholds, and corrects (after Wang and Zhang,
with Gaussian noise, an exact minimiser and one accountant over all iterations).
"""

from __future__ import annotations

from typing import Any

from taciturn.accounts import Account
from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_integer
from taciturn.estimators.base import PrivateClassifier, number_or_auto
from taciturn.estimators.objective_perturbation import ObjectiveModel
from taciturn.fitting.admm import PENALTIES, run_admm
from taciturn.fitting.procedure import PublicFacts
from taciturn.losses import LogisticLoss
from taciturn.planning.admm import ADMMPlan, plan_admm
from taciturn.sources import ArraySource

__all__ = ["ADMMClassifier"]


class ADMMClassifier(PrivateClassifier, ObjectiveModel):
    r"""Sparse logistic regression for two classes by private consensus ADMM.

    .. math:: \min_w \frac{1}{n} \sum_i \bigl( \log(1 + e^{\tilde x_i \cdot w}) - y_i\, \tilde x_i \cdot w \bigr)
              + \alpha P(w), \qquad P(w) = \sum_j |w_j| \text{ or } \sum_j |w_j|^{1/2},

    with :math:`\tilde x` clipped to ``[-x_bound, x_bound]``, divided by it, with a 1 for the intercept and scaled down
    to a length of ``row_bound``. The records are cut into blocks; in each iteration every block minimises its own
    losses, tied to the common weights z by :math:`\tfrac{\rho}{2}\|w - z + u\|^2` and tilted by fresh Gaussian noise;
    then z is the thresholded mean. The returned coefficients are the last z; the intercept is not penalised.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the local minimisers of every iteration. One record
    is in one block and enters one of them per iteration, at the cost of one perturbed objective
    (``accounting.objective``) and of the noise for its solver's tolerance; thresholds and multipliers are computed
    from what is released. Public: the numbers of features and of records (``n_public`` under add-remove), of blocks
    and of iterations, the bounds, the classes, the penalty and its strength, and :math:`\rho`.

    Parameters
    ----------
    %(epsilon)s
        ``n_steps="auto"`` means 200 then.
    %(gaussian_budget)s
    %(classes)s
        Two of them.
    %(row_bound_implied)s
    penalty : {"l1", "l1/2"}, default="l1"
        The penalty P.
    strength : float or "auto", default="auto"
        :math:`\alpha`. "auto" suppresses what noise and chance alone would reach, by public facts.
    coupling : float or "auto", default="auto"
        :math:`\rho`. "auto" leaves three quarters of epsilon to the noise.
    n_steps : int or "auto", default="auto"
        Number of iterations; "auto" means 10.
    n_blocks : int, default=1
        Number of blocks of records: slices of the table, or, under add-remove, blocks assigned at random.
    %(fit_intercept)s
        Its entry counts towards the norm of a row.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s

    References
    ----------
    Wang and Zhang, *Differential privacy for sparse classification learning* (2020).
    Boyd, Parikh, Chu, Peleato and Eckstein, *Distributed optimization and statistical learning via the alternating
    direction method of multipliers* (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import ADMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = X[:, 4] + X[:, 9] > 0
    >>> model = ADMMClassifier(x_bound=1.0, classes=(False, True), row_bound=2.0, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [4, 9]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float | None = None,
        classes: Any = None,
        row_bound: float | str = "auto",
        penalty: str = "l1",
        strength: float | str = "auto",
        coupling: float | str = "auto",
        n_steps: int | str = "auto",
        n_blocks: int = 1,
        fit_intercept: bool = True,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.classes = classes
        self.row_bound = row_bound
        self.penalty = penalty
        self.strength = strength
        self.coupling = coupling
        self.n_steps = n_steps
        self.n_blocks = n_blocks
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.account = account
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_choice(tuple(PENALTIES), penalty=self.penalty)
        number_or_auto(strength=self.strength)
        number_or_auto(coupling=self.coupling)
        if self.n_steps != "auto":
            check_integer(1, n_steps=self.n_steps)
        check_integer(1, n_blocks=self.n_blocks)

    def _check_regularisation(self) -> None:
        """There is none: ``coupling`` takes its place."""

    def _loss(self, facts: PublicFacts) -> tuple[LogisticLoss, int]:
        _, n_outputs = super()._loss(facts)
        if n_outputs > 1:
            raise DataError(
                f"y: Only binary classification is supported. Expected two classes, got {n_outputs}; use "
                "FrankWolfeClassifier, or one class against the rest."
            )
        return LogisticLoss(), 1

    def _plan(self, facts: PublicFacts) -> ADMMPlan:
        problem = self._problem(facts, facts.n_features)
        del problem["n_outputs"]
        return plan_admm(
            **problem,
            n_blocks=int(self.n_blocks),
            n_steps=self.n_steps,
            penalty=self.penalty,
            strength=self.strength,
            coupling=self.coupling,
        )

    def _run(self, plan: ADMMPlan, source: ArraySource, stream: Stream) -> FloatArray:
        return run_admm(plan, source, stream)

    def _plan_facts(self, plan: ADMMPlan) -> dict[str, Any]:
        return {
            "row_bound": plan.minimisers.row_bound * self._x_bound,
            "penalty": plan.penalty,
            "threshold": plan.kappa,
            "coupling": plan.minimisers.regularisation,
            "n_steps": plan.n_steps,
            "n_blocks": plan.n_blocks,
            **plan.minimisers.facts,
        }

    def _store(self, plan: ADMMPlan, facts: PublicFacts, outcome: FloatArray) -> None:
        super()._store(plan, facts, outcome)
        self.n_iter_ = plan.n_steps

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
