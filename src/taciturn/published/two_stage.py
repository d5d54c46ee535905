"""The two-stage method and its selector, as the paper prints them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.linear_model import Lasso

from taciturn.core.errors import ParameterError
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import BaseEstimator
from taciturn.core.validation import (
    FloatArray,
    IndexArray,
    IntArray,
    check_choice,
    check_claimed_epsilon,
    check_integer,
    check_positive,
)
from taciturn.data.records import read_records
from taciturn.data.sensitivity import block_votes
from taciturn.data.target import target_numbers
from taciturn.losses import LogisticLoss
from taciturn.methods.objective.plan import StoppingCriterion
from taciturn.methods.objective.run import minimise
from taciturn.methods.options import Auto, PrintedLoss
from taciturn.methods.selection.estimator import FeatureMask
from taciturn.methods.selection.run import blocks_by_slot
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import NotPrivateEvent, ObjectivePerturbationEvent
from taciturn.privacy.mechanisms import LaplaceTopK
from taciturn.published.base import Reproduction, SwitchedModel, check_printed_delta, classifies, state_claim

# ---- Two-stage selection: features counted over LASSO fits on slices of the records, as its users describe it.

SHIFTED_SLICES = (
    "blocks are slices of the list of records and their number is the root of its length: where a record is missing "
    "rather than blanked out every block may change, and a count may move by their number"
)
UNPRINTED_NOISE = (
    "the paper does not print how the counts are made private; Laplace noise of scale 2 k / epsilon on every count is "
    "inferred"
)
SHARED_SCALE = (
    "the experiments centre and scale features and target by all the data before they are cut into blocks, so that one "
    "record sways every block; the claimed epsilon does not pay for it"
)
COMPARED_PENALTIES = "the penalty was settled on after comparing results for several on the same data"


@guarded
def lasso_counts(X: Any, y: FloatArray, n_blocks: int, alpha: float) -> IntArray:
    """In how many slices of the records each coefficient of a LASSO is not zero."""
    table = X.tocsr() if sp.issparse(X) else X
    model = Lasso(alpha=alpha)
    counts = np.zeros(X.shape[1], dtype=np.int64)
    for rows in blocks_by_slot(y.size, n_blocks):
        counts += model.fit(table[rows], y[rows]).coef_ != 0.0
    return counts


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStageSelector(FeatureMask, Reproduction, BaseEstimator):
    r"""The selection of the two-stage method, as the authors of DP-SIS use it for a baseline.

    The n records are cut into :math:`\lfloor\sqrt n\rfloor` slices. On each of them,

    .. math:: \hat w_b = \arg\min_{w, w_0} \frac{1}{2 n_b} \sum_{i \in b} (y_i - w_0 - x_i \cdot w)^2
              + \lambda \|w\|_1,

    and the k features with the largest :math:`\#\{b : \hat w_{bj} \ne 0\} + \mathrm{Lap}(2k / \varepsilon)` are
    selected. Nothing is clipped or checked. For use, see :class:`taciturn.BlockVoteSelector`.

    **Privacy.** As published, epsilon-DP. Under zero-out, for blocks that are scaled by public constants, that is
    proved: every count moves by at most 1 (``data.sensitivity.block_votes``), however many features a block
    counts for, because only the set is released and not the counts. Where a record is missing rather than blanked out,
    every block changes, and the bound is worse by their number.

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget. ``float("inf")`` counts without noise and settles ties at random.
    n_blocks : int or "auto", default="auto"
        "auto" is the square root of the number of records, rounded down.
    alpha : float, default=0.1
        :math:`\lambda`, the printed value.
    n_features_to_select : int, default=10
        k. All features cost nothing.
    %(published_seed)s

    Attributes
    ----------
    support_ : ndarray of bool, shape (n_features_in_,)
        The selected features.
    %(published_statement)s

    Errata
    ------
    * Slices of the list, and their number from the true n: with a record more or less, every slice shifts and a count
      can move by the number of blocks.
    * How the counts are made private is not printed. Laplace noise of scale :math:`2k/\varepsilon` on every count, the
      largest noisy counts taken, is inferred.
    * Features and target are centred and scaled by all the data before they are cut.
    * :math:`\lambda` was chosen after results for several values had been compared.

    References
    ----------
    Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*, Sections 2.2, 3
    and 5. Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression*
    (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.published import TwoStageSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = X[:, 3] - X[:, 17]
    >>> selector = TwoStageSelector(n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [3, 17]
    >>> selector.certificate_.status, selector.certificate_.epsilon, selector.certificate_.proved_epsilon
    ('as published', 1.0, 1.0)
    """

    epsilon: float = 1.0
    n_blocks: int | Auto = "auto"
    alpha: float = 0.1
    n_features_to_select: int = 10
    random_state: int | None = None

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        records = read_records(self, X, y, invalid="raise", numeric=False)
        X, y = records.X, target_numbers(records.y, remedy="code labels as numbers")
        n_rows, n_columns = X.shape
        n_blocks = self._number_of_blocks(n_rows)
        k = self._count(n_columns)
        counts = lasso_counts(X, y, n_blocks, self.alpha)
        self.support_ = np.zeros(n_columns, dtype=bool)
        self.support_[self._selected(counts, k, stream.spawn("top-k"))] = True
        return self._claim(n_rows, n_columns, n_blocks, k, stream.seeded)

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_claimed_epsilon(epsilon=self.epsilon)
        check_positive(alpha=self.alpha)
        check_integer(1, n_features_to_select=self.n_features_to_select)
        if self.n_blocks != "auto":
            check_integer(1, n_blocks=self.n_blocks)
        Stream.of(self.random_state)

    def _number_of_blocks(self, n_rows: int) -> int:
        if isinstance(self.n_blocks, str):
            return math.isqrt(n_rows)
        if self.n_blocks > n_rows:
            raise ParameterError("n_blocks", self.n_blocks, f"at most {n_rows}, one per record", "take fewer blocks")
        return int(self.n_blocks)

    def _selected(self, counts: IntArray, k: int, stream: Stream) -> IndexArray:
        if math.isinf(self.epsilon):
            # Many counts are equal; the first columns are no better than the others.
            return np.lexsort((stream.uniforms(counts.size), -counts))[:k]
        return self._mechanism(k).release(counts, stream)

    def _mechanism(self, k: int) -> LaplaceTopK:
        return LaplaceTopK(block_votes("zero-out"), k, float(self.epsilon))

    def _claim(self, n_rows: int, n_columns: int, n_blocks: int, k: int, seeded: bool) -> Certificate:
        private = not math.isinf(self.epsilon)
        what = f"which {k:,} of {n_columns:,} features are counted most often"
        if k == n_columns:
            releases: tuple[Release, ...] = ()
        elif private:
            noise = self._mechanism(k)
            releases = (Release(what, "Laplace", noise.scale, noise.event),)
        else:
            releases = (Release(what, "none", 0.0, NotPrivateEvent()),)
        return Certificate(
            epsilon=float(self.epsilon),
            delta=0.0,
            relation="zero-out",
            status="as published" if private else "not private",
            events=releases,
            public={
                "features": n_columns,
                "selected": k,
                "records": n_rows,
                "blocks": n_blocks,
                "alpha": float(self.alpha),
            },
            assumptions=("features and target were scaled by public constants",),
            seeded=seeded,
            arithmetic="exact",
            bound="none",
            proved_epsilon=(float(self.epsilon) if releases else 0.0) if private else None,
            errata=(SHIFTED_SLICES, UNPRINTED_NOISE, SHARED_SCALE, COMPARED_PENALTIES),
        )


# ---- The two-stage method whole: features counted over slices, then objective perturbation on the winners, as printed.

INFERRED_SPLIT = (
    "the papers that compare with it print neither how the budget is split nor the constants of the second stage; two "
    "halves and the constants of Algorithm 1 of Kifer et al. are taken"
)
EXACT_MINIMISER = "the proof is for the exact minimiser, and what a solver misses of it is not paid for"
OTHER_SPENDING = (
    "a public implementation spends half of epsilon on the selection, then the whole of it on the fit, and leaves the "
    "target as it is; neither is done here"
)
PRESUMED_BALL = (
    "the gradient of the squared loss is bounded only where the coefficients are, so that a ball must be given"
)

# What regularisation is left where no noise asks for any, per record.
_NOISELESS = 1e-9


@dataclass(kw_only=True, eq=False, repr=False)
class TwoStage(SwitchedModel):
    r"""The two-stage method of Kifer, Smith and Thakurta, as the authors of Sparsifier and DP-SIS use it.

    Half of epsilon selects k features as :class:`TwoStageSelector` does (for labels too: their codes 0 and 1 are
    numbers). The other half, :math:`\varepsilon' = \varepsilon/2`, pays for

    .. math:: \min_w \sum_i \phi(x_i \cdot w; y_i) + \tfrac{\Lambda}{2} \|w\|_2^2 + b \cdot w, \quad
              \Lambda = \frac{2\beta}{\varepsilon'}, \quad
              b \sim N\Bigl(0, \frac{G^2 (8 \ln(2/\delta) + 4 \varepsilon')}{\varepsilon'^2} I\Bigr)

    on these features, without intercept. :math:`\phi` is the logistic loss with :math:`G = \sqrt k` and
    :math:`\beta = k/4`, or half the squared residual within :math:`\|w\|_2 \le r`, with
    :math:`G = \sqrt k (r \sqrt k + 1)` and :math:`\beta = k`. Nothing is clipped or checked. For use, see
    :class:`taciturn.TwoStageClassifier` and :class:`taciturn.TwoStageRegressor`.

    **Privacy.** As published, (epsilon, delta)-DP. Under zero-out, for blocks that are scaled by public constants,
    features and targets in [-1, 1] and an exact minimiser, that is proved, and less is spent than claimed. (A ball is
    the limit of smooth penalties, under which the theorem holds for the squared loss made linear outside.)

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget of both stages. ``float("inf")``: no noise and next to no regularisation.
    delta : float, default=1e-6
        Claimed delta, all of it the second stage's.
    n_blocks : int or "auto", default="auto"
        "auto" is the square root of the number of records, rounded down.
    alpha : float, default=0.1
        Penalty of the LASSO in a block, the printed value.
    n_nonzero : int, default=10
        k. All features cost nothing.
    radius : float, default=1.0
        r, with ``loss="squared"`` only.
    loss : {"logistic", "squared"}, default="logistic"
        "logistic" makes a classifier of two classes, "squared" a regressor.
    %(published_seed)s

    Attributes
    ----------
    %(published_model)s

    Errata
    ------
    * Those of :class:`TwoStageSelector`.
    * How the budget is split and the constants of the second stage are not printed where the method is compared with.
    * The proof is for the exact minimiser.
    * A public implementation spends half of epsilon, then all of it, and leaves the target unclipped.
    * The squared loss has a bounded gradient in a bounded domain only.

    References
    ----------
    Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
    Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.published import TwoStage
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = 0.8 * X[:, 3] - 0.6 * X[:, 17]
    >>> model = TwoStage(epsilon=4.0, n_nonzero=2, loss="squared", random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [3, 17]
    >>> model.certificate_.status, model.certificate_.proved_epsilon <= model.certificate_.epsilon
    ('as published', True)
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    n_blocks: int | Auto = "auto"
    alpha: float = 0.1
    n_nonzero: int = 10
    radius: float = 1.0
    loss: PrintedLoss = "logistic"
    random_state: int | None = None

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        X, y, assumptions = self._read_both(X, y)
        n_rows, n_columns = X.shape
        k = min(int(self.n_nonzero), n_columns)
        selector = TwoStageSelector(
            epsilon=self.epsilon / 2.0, n_blocks=self.n_blocks, alpha=self.alpha, n_features_to_select=k
        )
        n_blocks = selector._number_of_blocks(n_rows)
        counts = lasso_counts(X, y, n_blocks, self.alpha)
        chosen = np.sort(selector._selected(counts, k, stream.spawn("top-k")))
        table = X[:, chosen].tocsr() if sp.issparse(X) else X[:, chosen]
        slope, curvature, ridge, sigma = self._constants(k, n_rows)
        tilt = sigma * stream.spawn("objective").normals(k)
        weights = np.zeros(n_columns)
        weights[chosen] = self._minimiser(table, y, ridge, tilt, slope)
        self._set_coefficients(weights)
        first = selector._claim(n_rows, n_columns, n_blocks, k, stream.seeded)
        what = "the minimiser of an objective with a random linear term"
        second = Release(what, "none", 0.0, NotPrivateEvent())
        if sigma > 0.0:
            cost = ObjectivePerturbationEvent(math.log1p(curvature / ridge), slope / sigma, replaced=False)
            second = Release(what, "Gaussian", sigma / slope, cost)
        errata = (
            SHIFTED_SLICES,
            UNPRINTED_NOISE,
            SHARED_SCALE,
            COMPARED_PENALTIES,
            INFERRED_SPLIT,
            EXACT_MINIMISER,
            OTHER_SPENDING,
        )
        return state_claim(
            float(self.epsilon),
            float(self.delta),
            (*first.events, second),
            public=dict(first.public) | {"loss": self.loss, "regularisation": ridge} | self._ball(),
            assumptions=(*assumptions, *first.assumptions),
            errata=errata if classifies(self) else (*errata, PRESUMED_BALL),
            seeded=stream.seeded,
        )

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_choice(("squared", "logistic"), loss=self.loss)
        check_claimed_epsilon(epsilon=self.epsilon)
        check_printed_delta(delta=self.delta)
        check_positive(alpha=self.alpha)
        check_integer(1, n_nonzero=self.n_nonzero)
        check_positive(radius=self.radius)
        if self.n_blocks != "auto":
            check_integer(1, n_blocks=self.n_blocks)
        Stream.of(self.random_state)

    def _ball(self) -> dict[str, float]:
        return {} if classifies(self) else {"radius": float(self.radius)}

    def _constants(self, k: int, n_rows: int) -> tuple[float, float, float, float]:
        """G, beta, Lambda and sigma."""
        root = math.sqrt(k)
        slope, curvature = (root, k / 4.0) if classifies(self) else (root * (root * float(self.radius) + 1.0), float(k))
        if math.isinf(self.epsilon):
            return slope, curvature, _NOISELESS * n_rows, 0.0
        half = float(self.epsilon) / 2.0
        sigma = slope * math.sqrt(8.0 * math.log(2.0 / self.delta) + 4.0 * half) / half
        return slope, curvature, 2.0 * curvature / half, sigma

    def _minimiser(self, table: Any, y: FloatArray, ridge: float, tilt: FloatArray, slope: float) -> FloatArray:
        if classifies(self):
            return minimise(table, y, LogisticLoss(), ridge, tilt, StoppingCriterion(slope * (1e-9 + 1e-13 * y.size)))
        gram = table.T @ table
        gram = gram.toarray() if sp.issparse(gram) else gram
        return smallest_in_ball(gram + ridge * np.eye(tilt.size), table.T @ y - tilt, float(self.radius))


def smallest_in_ball(hessian: FloatArray, right: FloatArray, radius: float) -> FloatArray:
    """The minimiser of ``w . hessian w / 2 - right . w`` over the L2 ball."""
    values, vectors = np.linalg.eigh(hessian)
    turned = vectors.T @ right

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(turned / (values + multiplier))) - radius

    multiplier = 0.0
    if excess(0.0) > 0.0:
        # Even an identity would be enough: ||right|| / multiplier <= radius.
        multiplier = brentq(excess, 0.0, 1.01 * float(np.linalg.norm(right)) / radius, xtol=1e-300, rtol=1e-14)
    minimiser: FloatArray = vectors @ (turned / (values + multiplier))
    return minimiser
