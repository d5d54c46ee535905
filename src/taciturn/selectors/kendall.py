"""Private feature selection by rank correlation, which needs no bounds on the data.

The method is that of Dick, Gillenwater and Joseph, *Better private linear regression through better private feature
selection*, with sensitivities per relation and round and with all rounds accounted together.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from taciturn.accounting import Budget
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.data.admission import PresentRecords
from taciturn.data.sensitivity import public_rows
from taciturn.data.target import check_classes, label_records
from taciturn.fitting.kendall import run_kendall
from taciturn.kernels import kendall
from taciturn.planning import plan_kendall
from taciturn.selectors._base import PrivateSelector, labels_or_numbers
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
    epsilon : float, default=1.0
        Privacy budget of this fit. ``float("inf")`` selects without noise and certifies nothing.
    delta : float, default=1e-6
        Probability beyond epsilon. With 0 every round is a permute-and-flip, with more an exponential mechanism.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        What one record more or less means.
    n_public : int, default=None
        A public row count, shown on the certificate under add-remove. Selections do not need it.
    classes : sequence, default=None
        The two public labels of a categorical target; records with another label count as null records, absent from
        every pair. None: y is a numeric target, or true and false.
    n_features_to_select : int, default=10
        How many features to select. All of them cost nothing.
    invalid : {"raise", "null"}, default="raise"
        Records with a cell that is missing, infinite or no number, or without a usable target: "raise" refuses the fit,
        which tells of them; "null" makes them null records, absent from every statistic.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only, and the certificate
        says so.

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features_in_,)
        The selected features.
    certificate_ : Certificate
        The privacy statement of this fit.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where X has string names.

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
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.classes = classes
        self.n_features_to_select = n_features_to_select
        self.invalid = invalid
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> KendallSelector:
        """Rank, plan, select, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features.
        y : array-like of shape (n_samples,)
            A numeric target, or one with two labels.
        """
        self._check_public()
        records, facts = self._target(self._read(X, y))
        n_rows, n_columns = records.n_slots, records.n_features
        private_count = self.relation == "add-remove" and not math.isinf(self.epsilon)
        plan = plan_kendall(
            Budget(self.epsilon, self.delta),
            n_columns,
            self._count(n_columns),
            self.relation,
            None if private_count else n_rows,
        )
        stream = Stream.of(self.random_state)
        source = ArraySource(records, math.inf, public_rows(self.relation, n_rows, self.n_public))
        selected = run_kendall(plan, source, stream)
        self._conclude(
            selected,
            plan.releases,
            plan.budget,
            public=self._public_facts(n_rows, n_columns) | {"method": plan.method, **facts},
            assumptions=(),
            seeded=stream.seeded,
            arithmetic=plan.arithmetic,
        )
        return self

    def _warm_up(self, *, sparse: bool) -> None:
        kendall.warm_up()

    def _check_public(self) -> None:
        super()._check_public()
        if self.classes is not None and check_classes(self.classes).size > 2:
            raise ParameterError(
                "classes",
                self.classes,
                "two labels, since more have no order to rank them by",
                "leave classes at None if the target is a number, or set one class against the rest",
            )

    def _target(self, records: PresentRecords) -> tuple[PresentRecords, dict[str, Any]]:
        """Records that are not null, with a target that can be ranked; public facts."""
        labels, y = labels_or_numbers(records.y, self.classes)
        if labels is not None:
            records, codes = label_records(records, labels, self.invalid)
            return replace(records, y=codes), {"classes": labels}
        return replace(records, y=y), {}
