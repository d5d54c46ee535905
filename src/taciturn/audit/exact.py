"""The smallest epsilon of two laws in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from taciturn.audit.events import outcomes_in_words
from taciturn.audit.pair import Pair, check_pair, check_text
from taciturn.audit.result import AuditResult
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import check_delta, check_real

__all__ = ["audit_exact"]

# Tolerance for the sum of all probabilities.
_SUM_SLACK = 1e-9
# Smaller differences between epsilons, and smaller shares of delta, are rounding.
_TIE = 1e-12


def audit_exact(
    law: Callable[[Any], Mapping[Hashable, float]],
    neighbours: Pair,
    delta: float = 0.0,
    *,
    claimed: float | None = None,
    name: str = "",
) -> AuditResult:
    r"""The smallest epsilon of a release whose law has a closed form, on one pair of neighbours.

    With P and Q the laws on the two data sets, in both orders,

    .. math:: \varepsilon = \max_{S} \ln \frac{P(S) - \delta}{Q(S)},

    which is the smallest epsilon for which the hockey-stick divergence
    :math:`\sum_o \max(P(o) - e^\varepsilon Q(o), 0)` is at most delta. The best S holds the outcomes with the largest
    ratios P(o) / Q(o); so all of them are tried, one more outcome at a time. For delta = 0 epsilon is the largest
    absolute log-ratio, and infinite where one law allows what the other one excludes.

    Parameters
    ----------
    law : callable
        ``law(data)``: the probability of every outcome, as a mapping.
    neighbours : Pair
        The two data sets.
    delta : float, default=0.0
        Probability beyond epsilon.
    claimed : float, default=None
        The epsilon that was promised at this delta, for the verdict.
    name : str, default=""
        What is audited.

    Returns
    -------
    AuditResult
        With ``route="exact"``; the event lists the outcomes that attain the bound.

    Examples
    --------
    >>> from taciturn.audit import Pair, audit_exact
    >>> pair = Pair(1, 0, "replace-one", "the only record is the bit itself")
    >>> result = audit_exact(lambda bit: {bit: 0.75, 1 - bit: 0.25}, pair, claimed=1.0)
    >>> round(result.lower_bound, 4), result.verdict
    (1.0986, 'violated')
    """
    pair = check_pair(neighbours)
    delta = check_delta(delta=delta)
    claimed = None if claimed is None else check_real(0.0, math.inf, claimed=claimed)
    name = check_text(name=name)
    if not callable(law):
        raise ParameterError("law", type(law).__name__, "a callable law(data)", "wrap the law in a function")
    laws = _law_of(law, pair.first), _law_of(law, pair.second)
    outcomes = list(laws[0] | laws[1])
    first, second = (np.array([one.get(outcome, 0.0) for outcome in outcomes], dtype=np.float64) for one in laws)
    forward, backward = _worst_set(first, second, delta), _worst_set(second, first, delta)
    epsilon, members = max(forward, backward, key=lambda found: found[0])
    side = "second" if backward[0] > forward[0] else "first"
    return AuditResult(
        lower_bound=max(0.0, epsilon),
        claimed=claimed,
        delta=delta,
        confidence=1.0,
        trials=0,
        event=outcomes_in_words("the outcome", [outcomes[i] for i in members]) + f", likelier on the {side} data set",
        route="exact",
        pair=pair.words,
        relation=pair.relation,
        seed=None,
        name=name,
    )


def _law_of(law: Callable[[Any], Mapping[Hashable, float]], data: Any) -> dict[Hashable, float]:
    found = law(data)
    if isinstance(found, Mapping):
        found = {outcome: float(probability) for outcome, probability in found.items()}
        if all(p >= 0.0 for p in found.values()) and abs(math.fsum(found.values()) - 1.0) <= _SUM_SLACK:
            return found
    raise DataError(
        "law: expected a mapping from outcomes to probabilities that are not negative and sum to 1, got something "
        "else; enumerate all outcomes."
    )


def _worst_set(law: np.ndarray, other: np.ndarray, delta: float) -> tuple[float, list[int]]:
    """The largest ``ln((P(S) - delta) / Q(S))``, and S."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # Outcomes of probability zero under both laws have no ratio and come last.
        ratios = np.nan_to_num(np.log(law) - np.log(other), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        order = np.argsort(-ratios, kind="stable")
        above = np.cumsum(law[order]) - delta
        values = np.where(above > _TIE * delta, np.log(above) - np.log(np.cumsum(other[order])), -np.inf)
    best = values.max()
    attained = np.flatnonzero(values >= best - _TIE) if np.isfinite(best) else np.flatnonzero(values == best)
    return float(best), order[: attained[-1] + 1].tolist()
