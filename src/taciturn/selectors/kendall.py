"""Private feature selection by rank correlation, which needs no bounds on the data.

The method is that of Dick, Gillenwater and Joseph, *Better private linear regression through better private feature
selection*, with sensitivities per relation and round and with all rounds accounted together.
"""

from __future__ import annotations

import math
from typing import Any

from taciturn.accounting import Budget
from taciturn.accounts import Account
from taciturn.core.arrays import IntArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.data.target import check_classes
from taciturn.fitting.kendall import run_kendall
from taciturn.fitting.procedure import PublicFacts
from taciturn.kernels import kendall
from taciturn.planning import KendallPlan, plan_kendall
from taciturn.selectors.base import PrivateSelector
from taciturn.sources import ArraySource

__all__ = ["KendallSelector"]


class KendallSelector(PrivateSelector):
    r"""Select features that go with the target and not with each other, by rank correlation, privately.

    The first feature is the one with the largest :math:`\tau(x_j, y)`. When m features S are selected, the next is the
    one with the largest

    .. math:: \tau(x_j, y) - \frac{1}{m} \sum_{s \in S} \tau(x_j, x_s), \qquad
        \tau(a, b) = \frac{1}{n - 1} \Bigl| \sum_{i < l} \mathrm{sign}(a_i - a_l)\, \mathrm{sign}(b_i - b_l) \Bigr|.

    That is Kendall's tau-a times n / 2, so that one record changes it by a constant. Only the order of values counts:
    they need no bounds, and any increasing transformation of a column leaves the selection as it is.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: the features in order of selection, of which
    ``support_`` keeps the set. Sensitivity: ``data.sensitivity.kendall_scores`` (1 in the first round and 2 in later
    ones, twice that under replace-one, 3/2 and 5/2 under add-remove). Scores are exact integers, rounded down to a
    public lattice under add-remove and beyond 2**20 records. Public: the numbers of features and, except under
    add-remove, of records, and the classes.

    Parameters
    ----------
    %(epsilon)s
    %(delta)s
        With 0 every round is a permute-and-flip, with more an exponential mechanism.
    %(relation)s
    %(n_public)s
        It is shown on the certificate; selections do not need it.
    classes : sequence, default=None
        The two public labels of a categorical target; a record with another label is a null record, absent from every
        pair. None: the target holds numbers, or false and true.
    %(n_features_to_select)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(selector_attributes)s

    Notes
    -----
    A round costs O(n log n) per feature. The ranks of a dense table are kept in 4 bytes a value; those of a sparse one
    are made again in every round, one column at a time.

    References
    ----------
    Dick, Gillenwater and Joseph, *Better private linear regression through better private feature selection*,
    arXiv:2306.00920.
    Knight, *A computer method for calculating Kendall's tau with ungrouped data* (1966).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import KendallSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.lognormal(sigma=3.0, size=(5000, 20))
    >>> X[:, 9] = X[:, 3] ** 2
    >>> y = np.log(X[:, 3]) - 0.7 * np.log(X[:, 17])
    >>> selector = KendallSelector(epsilon=1.0, n_features_to_select=2, random_state=0).fit(X, y)

    Columns 3 and 9 say the same, so one of them is enough.

    >>> np.flatnonzero(selector.support_).tolist()
    [9, 17]
    """

    persons_refused = "ranks compare single rows"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        classes: Any = None,
        n_features_to_select: int = 10,
        invalid: str = "raise",
        account: Account | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.classes = classes
        self.n_features_to_select = n_features_to_select
        self.invalid = invalid
        self.account = account
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        if self.classes is not None and check_classes(self.classes).size > 2:
            raise ParameterError(
                "classes",
                self.classes,
                "two labels, since more have no order to rank them by",
                "leave classes at None if the target is a number, or set one class against the rest",
            )

    def _plan(self, facts: PublicFacts) -> KendallPlan:
        private_count = self.relation == "add-remove" and not math.isinf(self.epsilon)
        return plan_kendall(
            Budget(self.epsilon, self.delta),
            facts.n_features,
            self._count(facts.n_features),
            self.relation,
            None if private_count else facts.n_rows,
        )

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit calls, so that a failure to do so spends nothing."""
        kendall.warm_up()

    def _run(self, plan: KendallPlan, facts: PublicFacts, source: ArraySource, stream: Stream) -> IntArray:
        return run_kendall(plan, source, stream)

    def _described(self, plan: KendallPlan, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"method": plan.method}
