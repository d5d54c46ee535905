"""Two stages, one budget: blocks of records vote for features, objective perturbation fits a model on the winners.

The procedure of Kifer, Smith and Thakurta (2012), with blocks that suit the relation in force, a joint accountant and
noise that the proofs need and no more.
"""

from __future__ import annotations

from typing import Any

from taciturn.accounts import Account
from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer
from taciturn.estimators.objective_perturbation import (
    ObjectiveModel,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
)
from taciturn.fitting.procedure import PublicFacts
from taciturn.fitting.two_stage import run_two_stage
from taciturn.planning.block_vote import check_n_blocks, check_n_jobs
from taciturn.planning.two_stage import TwoStagePlan, check_selection_share, plan_two_stage
from taciturn.sources import ArraySource

__all__ = ["TwoStageClassifier", "TwoStageRegressor"]


class TwoStageModel(ObjectiveModel):
    """A selection before the fit: what regressor and classifier share."""

    n_nonzero: int
    n_blocks: int | str
    selection_share: float
    n_jobs: int | None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_integer(1, n_nonzero=self.n_nonzero)
        check_selection_share(self.selection_share)
        check_n_blocks(self.n_blocks)
        check_n_jobs(self.n_jobs)

    def _plan(self, facts: PublicFacts) -> TwoStagePlan:
        k = min(int(self.n_nonzero), facts.n_features)
        return plan_two_stage(
            **self._problem(facts, k),
            k=k,
            n_blocks=self.n_blocks,
            selection_share=float(self.selection_share),
            regularisation=self.regularisation,
        )

    def _run(self, plan: TwoStagePlan, source: ArraySource, stream: Stream) -> FloatArray:
        return run_two_stage(plan, source, stream, n_jobs=self.n_jobs)

    def _plan_facts(self, plan: TwoStagePlan) -> dict[str, Any]:
        return {
            "selected": plan.votes.selection.k,
            "blocks": plan.votes.n_blocks,
            "selection_share": float(self.selection_share),
            **super()._plan_facts(plan.objective),
        }


class TwoStageRegressor(TwoStageModel, ObjectivePerturbationRegressor):
    r"""Select features by the votes of blocks of records, then fit robust ridge regression on them, privately.

    The records are cut into disjoint blocks. Each follows its own LASSO path until ``n_nonzero`` features are active
    and votes for these (see :class:`taciturn.BlockVoteSelector`). The features S with the largest
    :math:`v_j + \text{Gumbel noise}` are selected, and

    .. math:: \min_{w \in \mathbb{R}^S} \sum_i \phi_C(\tilde x_i \cdot w - \tilde y_i)
              + \tfrac{\Lambda}{2} \|w\|^2 + b \cdot w, \qquad b \sim N(0, \sigma^2 I)

    is solved on them (see :class:`ObjectivePerturbationRegressor`).

    **Privacy.** (epsilon, delta)-DP under ``relation``, one accountant over both stages. Released: the set of selected
    features (``data.sensitivity.block_votes``), then ``coef_`` and ``intercept_``
    (``data.sensitivity.objective_tilt``, ``data.sensitivity.approximate_minimiser``, the theorem of
    ``accounting.objective``). Public: the numbers of features, of blocks and of records (``n_public`` under
    add-remove), the bounds, :math:`\Lambda` and the split.

    Parameters
    ----------
    %(two_stage_budget)s
    %(y_bounds)s
    %(block_votes)s
    %(row_bound_implied)s
        Here it is a bound on the selected features of a row.
    %(regularisation_regressor)s
    %(n_jobs)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(regressor_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import TwoStageRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10000, 30))
    >>> y = 0.5 * X[:, 4] - 0.4 * X[:, 20]
    >>> model = TwoStageRegressor(x_bound=1.0, y_bounds=(-1, 1), epsilon=2.0, n_nonzero=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist(), bool(model.score(X, y) > 0.95)
    ([4, 20], True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float | None = None,
        y_bounds: tuple[float, float] | None = None,
        n_nonzero: int = 10,
        n_blocks: int | str = "auto",
        selection_share: float = 0.8,
        row_bound: float | str = "auto",
        residual_clip: float | str = "auto",
        regularisation: float | str = "auto",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            n_public=n_public,
            x_bound=x_bound,
            y_bounds=y_bounds,
            row_bound=row_bound,
            residual_clip=residual_clip,
            regularisation=regularisation,
            fit_intercept=fit_intercept,
            invalid=invalid,
            account=account,
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.n_blocks = n_blocks
        self.selection_share = selection_share
        self.n_jobs = n_jobs


class TwoStageClassifier(TwoStageModel, ObjectivePerturbationClassifier):
    r"""Select features by the votes of blocks of records, then fit logistic regression on them, privately.

    The records are cut into disjoint blocks. Each follows its own path of L1-regularised logistic regression until
    ``n_nonzero`` features are active and votes for these (see :class:`taciturn.BlockVoteSelector`). The features with
    the largest :math:`v_j + \text{Gumbel noise}` are selected, and ridge-regularised logistic regression with a random
    linear term is solved on them, for K > 2 classes one against the rest each
    (see :class:`ObjectivePerturbationClassifier`).

    **Privacy.** (epsilon, delta)-DP under ``relation``, one accountant over both stages. Released: the set of selected
    features (``data.sensitivity.block_votes``), then ``coef_`` and ``intercept_``
    (``data.sensitivity.objective_tilt``, ``data.sensitivity.approximate_minimiser``, the theorem of
    ``accounting.objective``). Public: the numbers of features, of blocks and of records (``n_public`` under
    add-remove), the bounds, the classes, :math:`\Lambda` and the split.

    Parameters
    ----------
    %(two_stage_budget)s
    %(classes)s
    %(block_votes)s
    %(row_bound_implied)s
        Here it is a bound on the selected features of a row.
    %(regularisation_classifier)s
    %(n_jobs)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(classifier_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import TwoStageClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10000, 30))
    >>> y = np.where(X[:, 4] - X[:, 20] > 0, "ill", "well")
    >>> model = TwoStageClassifier(epsilon=2.0, x_bound=1.0, classes=("ill", "well"), n_nonzero=2, random_state=0)
    >>> model = model.fit(X, y)
    >>> np.flatnonzero(model.support_).tolist(), bool(model.score(X, y) > 0.95)
    ([4, 20], True)
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
        n_nonzero: int = 10,
        n_blocks: int | str = "auto",
        selection_share: float = 0.8,
        row_bound: float | str = "auto",
        regularisation: float | str = "auto",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            n_public=n_public,
            x_bound=x_bound,
            classes=classes,
            row_bound=row_bound,
            regularisation=regularisation,
            fit_intercept=fit_intercept,
            invalid=invalid,
            account=account,
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.n_blocks = n_blocks
        self.selection_share = selection_share
        self.n_jobs = n_jobs
