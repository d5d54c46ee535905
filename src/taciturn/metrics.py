"""Quality of a selection of features: against a known truth, against exact scores, and between repeats.

Selections are boolean masks over the features, as in ``support_``; of a model, take ``coef_ != 0``.

**Privacy.** The first three metrics compare a selection with exact results, so their values are not private: they are
for public or synthetic data, and for reports that the curator keeps. The stability of several private selections is
post-processing of these and costs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.errors import DataError
from taciturn.core.validation import AnyArray, BoolArray, IntArray, check_finite, check_integer

__all__ = [
    "TopGreatGood",
    "jaccard_stability",
    "nonzeros_under_uniform_screening",
    "support_f1",
    "top_great_good",
    "top_k_accuracy",
]


class TopGreatGood(NamedTuple):
    """Three grades of a selection; each implies the next."""

    top: bool
    great: bool
    good: bool


def top_k_accuracy(scores: ArrayLike, selected: ArrayLike) -> float:
    r"""The share of the selected features that belong to the top k, k being their number.

    .. math:: \frac{|S \cap T_k|}{k}, \qquad k = |S|,

    where :math:`T_k` are the k features with the largest scores, ties broken in favour of selected ones. An empty
    selection is right: 1.

    Parameters
    ----------
    scores : array-like of shape (n_features,)
        True importances, the larger the better: exact scores, or absolute values of true coefficients.
    selected : array-like of bool, shape (n_features,)
        The selection.

    Examples
    --------
    >>> from taciturn.metrics import top_k_accuracy
    >>> top_k_accuracy([9.0, 7.0, 5.0, 3.0], [True, False, True, False])
    0.5
    """
    ranks, k = _ranks_of_selected(scores, selected)
    return float(np.mean(ranks <= k)) if k else 1.0


def top_great_good(scores: ArrayLike, selected: ArrayLike) -> TopGreatGood:
    r"""Whether a selection of k features is TOP, GREAT, GOOD.

    * TOP: it is the top k.
    * GREAT: it holds the whole top k / 10, and nothing beyond the top 11 k / 10.
    * GOOD: it holds the whole top k / 100, and nothing beyond the top 3 k / 2.

    All four sizes are rounded up. So for k up to 10 the best feature must be there to be GREAT, for k up to 100 to be
    GOOD. Ties are broken in favour of selected features. An empty selection is all three.

    Parameters
    ----------
    scores : array-like of shape (n_features,)
        Exact scores, the larger the better.
    selected : array-like of bool, shape (n_features,)
        The selection.

    References
    ----------
    Shekelyan and Loukides, arXiv:2201.13376, as used in Figure 8 of Swope et al., *Feature Selection from
    Differentially Private Correlations*.

    Examples
    --------
    >>> from taciturn.metrics import top_great_good
    >>> top_great_good([9.0, 7.0, 5.0, 3.0], [True, False, True, False])
    TopGreatGood(top=False, great=True, good=True)
    """
    ranks, k = _ranks_of_selected(scores, selected)

    def holds(core: tuple[int, int], reach: tuple[int, int]) -> bool:
        """Whether the whole top ``core * k`` is selected and nothing beyond the top ``reach * k``."""
        # Fractions of k in integers: doubles would round 1.1 * 50 up to 56.
        inner, outer = (-(-k * above // below) for above, below in (core, reach))
        return bool(np.sum(ranks <= inner) == inner and np.all(ranks <= outer))

    return TopGreatGood(top=holds((1, 1), (1, 1)), great=holds((1, 10), (11, 10)), good=holds((1, 100), (3, 2)))


def support_f1(true: ArrayLike, estimated: ArrayLike) -> float:
    r"""The harmonic mean of precision and recall of a support.

    .. math:: F_1 = \frac{2 |A \cap B|}{|A| + |B|}

    Two empty supports agree: 1.

    Parameters
    ----------
    true, estimated : array-like of bool, shape (n_features,)
        The supports.

    Examples
    --------
    >>> from taciturn.metrics import support_f1
    >>> support_f1([True, True, False, False], [True, False, True, False])
    0.5
    """
    a, b = _mask("true", true), _mask("estimated", estimated)
    _check_alike("true and estimated", a, b)
    size = int(a.sum() + b.sum())
    return 2.0 * int((a & b).sum()) / size if size else 1.0


def jaccard_stability(supports: Sequence[ArrayLike]) -> float:
    r"""The mean similarity of the selections of several repeats.

    .. math:: \binom{m}{2}^{-1} \sum_{a < b} \frac{|S_a \cap S_b|}{|S_a \cup S_b|}

    Two empty supports agree: 1.

    Parameters
    ----------
    supports : sequence of array-like of bool, or array of bool of shape (n_repeats, n_features)
        At least two selections.

    Examples
    --------
    >>> from taciturn.metrics import jaccard_stability
    >>> jaccard_stability([[True, True, False], [True, False, False], [True, True, False]])
    0.6666666666666666
    """
    masks = [_mask("supports", support) for support in supports]
    if len(masks) < 2:
        raise DataError(f"supports: expected at least two selections, got {len(masks)}; repeat the selection.")
    _check_alike("supports", *masks)
    # Doubles, so that BLAS counts the common features.
    members = np.array(masks, dtype=np.float64)
    common = members @ members.T
    sizes = np.diag(common)
    first, second = np.triu_indices(len(masks), k=1)
    either = sizes[first] + sizes[second] - common[first, second]
    return float(np.mean(np.where(either > 0.0, common[first, second] / np.maximum(either, 1.0), 1.0)))


def nonzeros_under_uniform_screening(n_features: int, n_steps: int) -> float:
    r"""How many coefficients are expected to be left if updates and screenings hit features at random.

    Each of T steps sets one feature, drawn uniformly, to something, and then one, drawn uniformly, to zero. With
    q = 1 - 1/d a feature is never screened with probability :math:`q^T` and last screened in step i with probability
    :math:`q^{T-i}/d`; it is then left if it is updated in the steps that remain:

    .. math:: d\, q^T (1 - q^T) + \sum_{i=1}^{T} q^{T-i} (1 - q^{T-i})
              = d\, q^T (1 - q^T) + \frac{1 - q^T}{1 - q} - \frac{1 - q^{2T}}{1 - q^2}.

    It tends to :math:`d (d - 1) / (2 d - 1)`, about half of all features, as T grows, and to T as d grows. A screened
    model with that many coefficients says nothing about its rule.

    Parameters
    ----------
    n_features, n_steps : int
        d and T.

    References
    ----------
    Theorem 4 of *Differentially Private Iterative Screening Rules for Linear Regression*, whose limits
    (:math:`(d-1)^2 d / ((d-1) d + 1)` and T - 1) take 1/d for the chance q not to be updated, here corrected.

    Examples
    --------
    >>> from taciturn.metrics import nonzeros_under_uniform_screening
    >>> round(nonzeros_under_uniform_screening(20, 1000), 2)
    9.74
    """
    d, steps = check_integer(1, n_features=n_features), check_integer(1, n_steps=n_steps)
    if d == 1:
        return 0.0
    log_q = np.log1p(-1.0 / d)
    updated = -np.expm1(steps * log_q)
    never = d * np.exp(steps * log_q) * updated
    return float(never + d * updated - np.expm1(2.0 * steps * log_q) / np.expm1(2.0 * log_q))


def _ranks_of_selected(scores: ArrayLike, selected: ArrayLike) -> tuple[IntArray, int]:
    """Ranks from 1 of the selected features, and how many they are; of equal scores selected ones come first."""
    values, chosen = check_finite(scores=scores), _mask("selected", selected)
    _check_alike("scores and selected", values, chosen)
    order = np.lexsort((~chosen, -values))
    return np.flatnonzero(chosen[order]) + 1, int(chosen.sum())


def _mask(name: str, support: ArrayLike) -> BoolArray:
    mask = np.asarray(support)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise DataError(
            f"{name}: expected a boolean mask with one entry per feature, got shape {mask.shape} and type "
            f"{mask.dtype}; pass support_, or coef_ != 0."
        )
    return mask


def _check_alike(name: str, first: AnyArray, *others: AnyArray) -> None:
    if any(other.shape != first.shape for other in others):
        raise DataError(f"{name}: expected one number of features, got different ones; compare like with like.")
