"""Private selection by sample and aggregate: disjoint blocks of records vote for features.

The first of the two stages of Kifer, Smith and Thakurta (2012), with blocks that suit the relation in force and a
top-k mechanism that needs to know no more than that one record sways one block.
"""

from __future__ import annotations

from typing import Any, Self

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.core.arrays import IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.fitting.blocks import run_block_vote
from taciturn.fitting.procedure import PublicFacts
from taciturn.planning.block_vote import BlockVotePlan, check_n_blocks, check_n_jobs, plan_block_vote
from taciturn.selectors.base import BoundedSelector
from taciturn.sources import ArraySource

__all__ = ["BlockVoteSelector"]


class BlockVoteSelector(BoundedSelector):
    r"""Select the features for which most blocks of records vote, privately.

    The records are cut into disjoint blocks :math:`B_1, \dots, B_m`. Each follows its own LASSO path, from the
    penalty at which no coefficient is active downwards, until k of them are:

    .. math:: \min_{b, w} \sum_{i \in B} \phi(b + z_i \cdot w, y_i) + \alpha \|w\|_1, \qquad \alpha \downarrow,

    and votes for these k features, :math:`v_j = \#\{B : j \text{ active in } B\}`. :math:`\phi` is half the squared
    residual for a numeric target and the logistic loss for labels (with more than two classes one path each, one
    against the rest, and the k features that came first on any). There is no penalty to choose. Columns are centred
    and scaled by the block's own moments, which costs nothing: a vote may be any function of its block.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the set of selected features, nothing else.
    Sensitivity: ``data.sensitivity.block_votes`` (1 under each relation, since one record belongs to one
    block). Votes are integers. Public: the numbers of features, of blocks and, except under add-remove, of records,
    the bounds and the classes. A block that cannot be fitted votes for nothing, silently.

    Parameters
    ----------
    %(epsilon)s
    %(delta)s
    %(relation)s
        Blocks are slices of the table, except under add-remove, where each record is assigned at random.
    %(n_public)s
        ``n_blocks="auto"`` needs it.
    %(x_bound)s
    %(selected_target)s
    %(n_features_to_select)s
        A block votes for as many.
    n_blocks : int or "auto", default="auto"
        Number of blocks. "auto": the square root of the public number of records, rounded down. The noise is of the
        order of ``n_features_to_select / epsilon`` votes, so that more and smaller blocks help where features are easy
        to find.
    %(top_k)s
    %(n_jobs)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(selector_attributes)s

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
    Park and Hastie, *L1-regularization path algorithm for generalized linear models* (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import BlockVoteSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = np.clip(X[:, 3] - X[:, 17], -1, 1)
    >>> selector = BlockVoteSelector(x_bound=1.0, y_bounds=(-1, 1), n_features_to_select=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(selector.support_).tolist()
    [3, 17]
    """

    persons_refused = None

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float | None = None,
        y_bounds: tuple[float, float] | None = None,
        classes: Any = None,
        n_features_to_select: int = 10,
        n_blocks: int | str = "auto",
        mechanism: str = "auto",
        gamma: float = 0.5,
        n_jobs: int | None = None,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.y_bounds = y_bounds
        self.classes = classes
        self.n_features_to_select = n_features_to_select
        self.n_blocks = n_blocks
        self.mechanism = mechanism
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.invalid = invalid
        self.account = account
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, persons: Any = None, keys: Any = None) -> Self:
        """Select features: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            A numeric or categorical target.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together. Blocks are of whole persons, and each person counts once in its block. A
            row without a key is a null row. None: every row is a record of its own.
        keys : array-like of shape (n_samples,), default=None
            Under add-remove only: the person of each record, as numbers or text. Records of one key are then in one
            block, so that the guarantee of this selection covers all records of a person together. Keys are hashed
            with a secret of the fit's own, drawn independently of the data. The certificate is about single records;
            with ``persons`` it is about persons, under every relation.

        Returns
        -------
        self : object
            The fitted selector.
        """
        if keys is not None and persons is not None:
            raise ParameterError("keys", type(keys).__name__, "None where persons are given", "leave keys out")
        if keys is not None and self.relation != "add-remove":
            raise ParameterError(
                "relation",
                self.relation,
                "'add-remove' where keys are given, since a replaced record would move between two blocks",
                "leave keys out, or set relation='add-remove'",
            )
        return self._fit(X, y, persons, keys=keys)

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_n_blocks(self.n_blocks)
        check_n_jobs(self.n_jobs)

    def _plan(self, facts: PublicFacts) -> BlockVotePlan:
        n_classes = 0 if facts.labels is None else facts.labels.size
        return plan_block_vote(
            Budget(self.epsilon, self.delta),
            facts.n_features,
            self._count(facts.n_features),
            self.relation,
            n_blocks=self.n_blocks,
            n_rows=facts.n_records,
            logistic=n_classes > 0,
            n_outputs=n_classes if n_classes > 2 else 1,
            method=self.mechanism,
            gamma=self.gamma,
            accounted=self.account is not None,
        )

    def _run(
        self, plan: BlockVotePlan, facts: PublicFacts, source: ArraySource, stream: Stream, *, keys: Any = None
    ) -> IntArray:
        return run_block_vote(plan, source, stream, keys=keys, n_jobs=self.n_jobs)

    def _described(self, plan: BlockVotePlan, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"method": plan.selection.method, "blocks": plan.n_blocks}

    def _assumptions(self) -> tuple[str, ...]:
        return ("the bounds and the number of blocks were chosen without looking at these data",)
