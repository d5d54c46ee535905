"""DP-SIS: sure independence screening by the canonical Lipschitz mechanism, with the class sizes as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import BaseEstimator
from taciturn.core.validation import FloatArray, IntArray, check_claimed_epsilon, check_integer, check_real
from taciturn.data.records import read_records
from taciturn.data.target import target_numbers
from taciturn.kernels.ranks import largest_noise
from taciturn.methods.selection.estimator import FeatureMask
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release
from taciturn.privacy.events import NotPrivateEvent, PureEvent
from taciturn.published.base import Reproduction, state_claim

CLASS_SIZES = (
    "the class sizes let a subset stand in several classes, up to k of them and more the better its members rank, so "
    "that one record can change its probability by a factor of k however small epsilon is; what is proved is "
    "epsilon + ln(k)"
)
NEIGHBOURS = (
    "the sensitivity of 1 is that of a missing record, while the definition given lets neighbours differ in a record; "
    "a replaced record counts twice"
)
OBSERVED_MOMENTS = (
    "the experiments centre features and target by their means in the data and divide them by their largest values, "
    "releases that the claimed epsilon does not pay for"
)


def printed_top_k(scores: FloatArray, k: int, epsilon: float, gamma: float, stream: Stream) -> IntArray:
    r"""Algorithm 2 for normalised scores and ``1 <= k < d``: the indices of one class (H, T), drawn at random.

    Sizes follow line 15, :math:`m \leftarrow m (t - h - 1) / (k - h - 1)`, but as logarithms, and
    :math:`-\log(1 - U^{1/m})` is computed from ``log(-log(U)) - log(m)``: the printed forms overflow from about
    d = 1e5, k = 100 on. The law is that of the printed ones in exact arithmetic.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    head_weight, tail_weight = (1.0 - gamma) * epsilon / 2.0, gamma * epsilon / 2.0
    best = (tail_weight - head_weight) * ranked[k - 1] + float(stream.exponentials(1)[0])
    winner = (k - 1, k)
    tails = np.arange(k + 1, scores.size + 1)
    log_sizes = np.zeros(tails.size)
    for h in range(k - 1, -1, -1):
        if h < k - 1:
            log_sizes += np.log((tails - h - 1.0) / (k - h - 1.0))
        # Minus a Gumbel variate is the logarithm of an exponential one, here of -log(U).
        noise = largest_noise(-stream.gumbels(tails.size) - log_sizes, gumbel=False)
        values = tail_weight * ranked[k:] - head_weight * ranked[h] + noise
        place = int(np.argmax(values))
        if values[place] > best:
            best, winner = float(values[place]), (h, int(tails[place]))
    h, t = winner
    # The body may begin at rank h + 1, although h is said to be the length of the head.
    body = order[h : t - 1][np.argsort(stream.words(t - 1 - h))[: k - h - 1]]
    return np.concatenate((order[:h], body, order[t - 1 : t]))


@dataclass(kw_only=True, eq=False, repr=False)
class DPSIS(FeatureMask, Reproduction, BaseEstimator):
    r"""DP-SIS as printed: the features with the largest correlations, by a canonical Lipschitz mechanism.

    With the scores :math:`x_i = |\langle X_{\cdot i}, y\rangle|` in decreasing order :math:`x_{[1]} \ge \dots \ge
    x_{[d]}`, the top k and the classes (h, t), h = 0, .., k - 1 and t = k + 1, .., d, compete with

    .. math:: \frac{(2\gamma - 1)\varepsilon}{2} x_{[k]} + Z_1 \qquad\text{and}\qquad
              \frac{\gamma\varepsilon}{2} x_{[t]} - \frac{(1 - \gamma)\varepsilon}{2} x_{[h+1]} + Z_m, \quad
              m = \binom{t-h-1}{k-h-1},

    where :math:`Z_m` is the largest of m exponential variates. Of the winning class a member is drawn: ranks 1 to h,
    rank t, and any k - h - 1 ranks between. Features and target must lie in [-1, 1]; nothing is clipped or checked.
    The experiments centre every column and the target and divide them by their largest absolute value. For use, see
    :class:`taciturn.CorrelationSelector`.

    **Privacy.** As published, epsilon-DP. ``certificate_.proved_epsilon`` is :math:`\varepsilon + \ln k` under
    zero-out, for bounds that are public. *Proof.* Call each member of each class a ticket. Every class has a fixed
    number of tickets with one utility, and utilities move by at most :math:`\varepsilon / 2` between neighbours, since
    order statistics move by at most 1. A subset whose first h' ranks belong to it and whose last is t has the tickets
    of (0, t), .., (h', t), one to k of them; the best is that of (h', t), and it has the subset's true utility, a
    continuous function of the scores. The top k has one ticket, of its true utility. So the probability of a
    subset lies between q and k q, where q is that of its best ticket. Go from x to x' on a straight line. Between two
    crossings of scores the subset's classes stay, and :math:`\log q` changes by at most :math:`\varepsilon` times
    the share of the way, as in permute-and-flip. At a crossing the best ticket may change its class but not its
    utility, and tickets of one utility are equally likely: q is continuous. Hence
    :math:`q(x) \le e^\varepsilon q(x')`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Claimed budget. ``float("inf")`` selects without noise: sure independence screening itself.
    gamma : float, default=0.5
        Weight of the worst member against the best outsider, in [0, 1).
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
    * The size of class (h, t) is :math:`\binom{t-h-2}{k-h-1}`, since rank h + 1 is not a member. With the printed size
      classes overlap: 19 tickets for the 15 subsets of d = 6, k = 2. A swap of two nearly equal scores changes the
      number of tickets of a subset, and its probability by a factor of up to k.
    * Differential privacy is defined for data sets that differ on one example. If that example may be replaced by
      another, scores move by 2 and not by 1.
    * Features and target are centred and scaled by what is observed, which is a release of its own.
    * The expansion of :math:`1 - u^y` is printed with log(x) for log(u). It replaces the exact form below y = 1e-8.
      Neither is needed with logarithms of sizes.
    * :math:`c_{d,k} = \binom{d}{k} k^k / d^k \le k` is false (26 for k = 5 and large d);
      :math:`\ln c_{d,k} \le k` is true.

    References
    ----------
    Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*, Algorithms 1
    and 2. Shekelyan and Loukides, *Differentially private top-k selection via canonical Lipschitz mechanism*,
    arXiv:2201.13376.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn.published import DPSIS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 40))
    >>> y = np.clip(X[:, 3] - X[:, 17], -1, 1)
    >>> selector = DPSIS(n_features_to_select=2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [3, 17]
    >>> selector.certificate_.status, selector.certificate_.epsilon, round(selector.certificate_.proved_epsilon, 3)
    ('as published', 1.0, 1.693)
    """

    epsilon: float = 1.0
    gamma: float = 0.5
    n_features_to_select: int = 10
    random_state: int | None = None

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        records = read_records(self, X, y, invalid="raise", numeric=False)
        X, y = records.X, target_numbers(records.y, remedy="code two labels as -1 and 1")
        n_rows, n_columns = X.shape
        k = self._count(n_columns)
        scores = np.abs(np.asarray(X.T @ y))
        self.support_ = np.zeros(n_columns, dtype=bool)
        self.support_[self._selected(scores, k, stream)] = True
        return state_claim(
            float(self.epsilon),
            0.0,
            self._releases(n_columns, k),
            public={"features": n_columns, "selected": k, "records": n_rows, "gamma": float(self.gamma)},
            assumptions=("every target lies in [-1, 1]",),
            errata=(CLASS_SIZES, NEIGHBOURS, OBSERVED_MOMENTS) if k > 1 else (NEIGHBOURS, OBSERVED_MOMENTS),
            seeded=stream.seeded,
        )

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_claimed_epsilon(epsilon=self.epsilon)
        check_real(0.0, 1.0, closed="left", gamma=self.gamma)
        check_integer(1, n_features_to_select=self.n_features_to_select)
        Stream.of(self.random_state)

    def _selected(self, scores: FloatArray, k: int, stream: Stream) -> IntArray:
        if k == scores.size or math.isinf(self.epsilon):
            return np.argsort(-scores, kind="stable")[:k]
        return printed_top_k(scores, k, self.epsilon, self.gamma, stream.spawn("top-k"))

    def _releases(self, n_columns: int, k: int) -> tuple[Release, ...]:
        if k == n_columns:
            return ()
        what = f"which {k:,} of {n_columns:,} features score highest"
        if math.isinf(self.epsilon):
            return (Release(what, "none", 0.0, NotPrivateEvent()),)
        return (Release(what, "exponential", 2.0 / self.epsilon, PureEvent(self.epsilon + math.log(k))),)
