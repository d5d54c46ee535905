"""Two stages, one budget: blocks of records vote for features, objective perturbation fits a model on the winners.

The procedure of Kifer, Smith and Thakurta (2012), with blocks that suit the relation in force, a joint accountant and
noise that the proofs need and no more.
"""

from __future__ import annotations

from typing import Any

from taciturn.accounting import Budget
from taciturn.core.arrays import FloatArray
from taciturn.core.rng import Stream
from taciturn.core.validation import check_integer
from taciturn.estimators.objective_perturbation import (
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
)
from taciturn.fitting.two_stage import run_two_stage
from taciturn.losses import ScalarLoss
from taciturn.planning.block_vote import check_n_blocks, check_n_jobs
from taciturn.planning.two_stage import TwoStagePlan, check_selection_share, plan_two_stage
from taciturn.sources import ArraySource

__all__ = ["TwoStageClassifier", "TwoStageRegressor"]


class _TwoStage:
    """A selection before the fit: shared by regressor and classifier."""

    def _check_public(self) -> None:
        super()._check_public()
        check_integer(1, n_nonzero=self.n_nonzero)
        check_selection_share(self.selection_share)
        check_n_blocks(self.n_blocks)
        check_n_jobs(self.n_jobs)

    def _plan(self, loss: ScalarLoss, n_rows: int, n_columns: int, n_outputs: int) -> TwoStagePlan:
        k = min(int(self.n_nonzero), n_columns)
        return plan_two_stage(
            Budget(self.epsilon, self.delta),
            loss,
            n_features=n_columns,
            k=k,
            selection_share=float(self.selection_share),
            row_bound=self._row_bound(k),
            relation=self.relation,
            n_rows=n_rows,
            intercept=bool(self.fit_intercept),
            n_blocks=self.n_blocks,
            n_outputs=n_outputs,
            regularisation=self.regularisation,
        )

    def _run(self, plan: TwoStagePlan, source: ArraySource, stream: Stream) -> FloatArray:
        return run_two_stage(plan, source, stream, n_jobs=self.n_jobs)

    def _plan_facts(self, plan: TwoStagePlan) -> dict[str, Any]:
        facts: dict[str, Any] = super()._plan_facts(plan.objective)
        selection = {
            "selected": plan.votes.selection.k,
            "blocks": plan.votes.n_blocks,
            "selection_share": float(self.selection_share),
        }
        return selection | facts


class TwoStageRegressor(_TwoStage, ObjectivePerturbationRegressor):
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
    epsilon : float, default=1.0
        Privacy budget of this fit, both stages together. ``float("inf")`` is the non-private twin: no noise,
        ``regularisation="auto"`` means 1.
    delta : float, default=1e-6
        Probability beyond epsilon; more than 0, since the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means. Blocks are slices of the list of records, except under add-remove, where
        each record is assigned at random.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    y_bounds : tuple of float, default=(-1.0, 1.0)
        Public range of the target.
    n_nonzero : int, default=10
        How many features to select, and for how many a block votes. All of them cost nothing.
    n_blocks : int or "auto", default="auto"
        "auto" is the square root of the public number of records, rounded down.
    selection_share : float, default=0.8
        What the selection gets of the plan's squared parameter, in (0, 1).
    row_bound : float, default=None
        Public L2 bound on a row of selected features, as for :class:`ObjectivePerturbationRegressor`.
    residual_clip : float, default=None
        Threshold of the Huber loss of the fit, in mapped units. None: 1.
    regularisation : float or "auto", default="auto"
        :math:`\Lambda` in mapped units. "auto" balances noise and shrinkage by public facts.
    fit_intercept : bool, default=True
        Whether the fit has a constant column, which counts towards the row's length.
    n_jobs : int, default=None
        Number of joblib workers over which the blocks are shared. The result is the same for any number.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of X and y.
    intercept_ : float
        Intercept in the units of y.
    support_ : ndarray of bool, shape (n_features,)
        Which coefficients are not zero.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

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
    >>> model = TwoStageRegressor(epsilon=2.0, n_nonzero=2, random_state=0).fit(X, y)
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
        x_bound: float = 1.0,
        y_bounds: tuple[float, float] = (-1.0, 1.0),
        n_nonzero: int = 10,
        n_blocks: int | str = "auto",
        selection_share: float = 0.8,
        row_bound: float | None = None,
        residual_clip: float | None = None,
        regularisation: float | str = "auto",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        invalid: str = "raise",
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
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.n_blocks = n_blocks
        self.selection_share = selection_share
        self.n_jobs = n_jobs


class TwoStageClassifier(_TwoStage, ObjectivePerturbationClassifier):
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
    epsilon : float, default=1.0
        Privacy budget of this fit, both stages together. ``float("inf")`` is the non-private twin: no noise,
        ``regularisation="auto"`` means 1.
    delta : float, default=1e-6
        Probability beyond epsilon; more than 0, since the noise is Gaussian.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means. Blocks are slices of the list of records, except under add-remove, where
        each record is assigned at random.
    n_public : int, default=None
        A public row count, required under add-remove.
    x_bound : float, default=1.0
        Public bound on every feature value.
    classes : sequence, default=None
        Public labels; records with another label count as null records. None: taken from y, and the certificate
        then assumes that the set of labels is public.
    n_nonzero : int, default=10
        How many features to select, and for how many a block votes. All of them cost nothing.
    n_blocks : int or "auto", default="auto"
        "auto" is the square root of the public number of records, rounded down.
    selection_share : float, default=0.8
        What the selection gets of the plan's squared parameter, in (0, 1).
    row_bound : float, default=None
        Public L2 bound on a row of selected features, as for :class:`ObjectivePerturbationClassifier`.
    regularisation : float or "auto", default="auto"
        :math:`\Lambda` in units of features divided by ``x_bound``. "auto" balances noise and shrinkage by public
        facts.
    fit_intercept : bool, default=True
        Whether the fit has a constant column, which counts towards the row's length.
    n_jobs : int, default=None
        Number of joblib workers over which the blocks are shared. The result is the same for any number.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients in the units of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    support_ : ndarray of bool, shape (n_features,)
        Which features have a coefficient that is not zero.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str
        Names of the features, where X has string names.

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
    >>> model = TwoStageClassifier(epsilon=2.0, n_nonzero=2, classes=("ill", "well"), random_state=0).fit(X, y)
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
        x_bound: float = 1.0,
        classes: Any = None,
        n_nonzero: int = 10,
        n_blocks: int | str = "auto",
        selection_share: float = 0.8,
        row_bound: float | None = None,
        regularisation: float | str = "auto",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        invalid: str = "raise",
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
            random_state=random_state,
        )
        self.n_nonzero = n_nonzero
        self.n_blocks = n_blocks
        self.selection_share = selection_share
        self.n_jobs = n_jobs
