r"""How one descent of the default model clips its records and how long it goes on, from public facts.

A descent has p columns, the constant's among them, and spends a Gaussian parameter :math:`\mu_g` on gradients. Row and
derivative are clipped together, to R times c, where R is a private quantile of the row norms and c a multiple of what a
derivative typically is. Both *open* as noise falls below sampling error, so that the estimand is maximum likelihood
(least squares) in the limit; until then a tighter clip needs less noise than it costs.

Noise adds :math:`\sigma = R c / \mu_g` to the gradient, all steps together, whatever their number. What regularises is
the *time* :math:`\tau`, the sum of the steps' lengths: a direction of curvature h is fitted to a share of
:math:`1 - e^{-h \tau}`, like a ridge penalty of :math:`1 / \tau`, and noise moves a weight by :math:`\tau \sigma` at
most. A preconditioner shortens the way through steep directions and changes nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = [
    "LEAST_CLIP",
    "MOST_STEPS",
    "NOISELESS_STEPS",
    "DescentRule",
    "StepRule",
    "rule_for_labels",
    "rule_for_numbers",
    "step_rule",
]

MOST_STEPS = 150
"""Steps of a descent with noise."""

LEAST_CLIP = 0.6
"""What residuals are clipped at while noise prevails, in units of their size."""

NOISELESS_STEPS = 500
"""Steps of a descent without privacy."""

# Steps are at least so many, as curvature changes on the way.
_LEAST_STEPS = 8
# Entries that all steps with the same clips read together.
_MOST_ENTRIES = 5e8
_MOST_MOMENTUM = 0.9


@dataclass(frozen=True, slots=True)
class DescentRule:
    r"""Clips and time of a descent.

    Parameters
    ----------
    norm_quantile : float
        The quantile of row norms that is R.
    clip : float
        c, in units of what a derivative typically is: one for labels, the residual size for numbers.
    time : float
        :math:`\tau R^2 / \mu_g`.
    """

    norm_quantile: float
    clip: float
    time: float


def rule_for_labels(n_rows: int, mu: float, width: int, *, selects: bool = False) -> DescentRule:
    """The rule for derivatives of at most one, as those of the logistic loss are.

    A descent that selects columns ends before it follows directions of little curvature, where labels are nearly
    certain or rare; one that is used has to.
    """
    if math.isinf(mu):
        return DescentRule(1.0, math.inf, math.inf)
    signal = n_rows * mu / width
    clip = min(max(0.25 * (signal / 100.0) ** 0.6, 0.25), 1.0)
    time = 4.0 * min(signal ** (0.45 if signal > 1.0 else 0.3), 8.0 if selects else 40.0)
    return DescentRule(_norm_quantile(n_rows, mu, width), clip, time)


def rule_for_numbers(n_rows: int, mu: float, width: int) -> DescentRule:
    """The rule for residuals."""
    if math.isinf(mu):
        return DescentRule(1.0, math.inf, math.inf)
    clip = LEAST_CLIP * max(1.0, math.sqrt(n_rows * mu * mu / width / 20.0))
    signal = n_rows * mu / (4.0 * width)
    time = min(max(1.5 * signal ** (0.35 if signal > 1.0 else 0.5), 0.1), 12.0)
    return DescentRule(_norm_quantile(n_rows, mu, width), clip, time / clip)


def _norm_quantile(n_rows: int, mu: float, width: int) -> float:
    """The median at first; as the budget grows hardly any row is long."""
    return min(max(0.5, 1.0 - 50.0 * width / (n_rows * mu)), 0.98)


@dataclass(frozen=True, slots=True)
class StepRule:
    """So many steps of a length in units of one over the largest curvature, with momentum."""

    n_steps: int
    step: float
    momentum: float


def step_rule(time: float, n_entries: float) -> StepRule:
    """Steps that take a time in units of one over the largest curvature, infinite without privacy.

    There are fewer of them, with more momentum, where each reads very many entries.
    """
    if math.isinf(time):
        return StepRule(NOISELESS_STEPS, 1.0, _MOST_MOMENTUM)
    most = min(max(_MOST_ENTRIES / n_entries, _LEAST_STEPS), MOST_STEPS)
    n_steps = round(min(max(math.ceil(time), _LEAST_STEPS), most))
    if time <= n_steps:
        return StepRule(n_steps, time / n_steps, 0.0)
    return StepRule(n_steps, 1.0, min(1.0 - n_steps / time, _MOST_MOMENTUM))
