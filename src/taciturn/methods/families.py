"""Families of regressions: the loss, the link and the words of each. Nothing else asks which family a model is of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from taciturn.core.errors import ParameterError
from taciturn.core.validation import FloatArray
from taciturn.losses import GammaLoss, LogLinkLoss, PoissonLoss

# The least mean that a model of counts predicts, over the largest; that of amounts is the least amount.
_LEAST_MEAN = 2.0**-16
# Beyond this, exponentials of margins and their quotients lose digits.
_WIDEST = 2.0**16


@dataclass(frozen=True, slots=True)
class Family:
    """A family of regressions.

    Parameters
    ----------
    loss : str
        The name of its loss, as a parameter of estimators.
    in_words : str
        What is fitted, for headings.
    kind : str, default="number"
        What the target is called in a bounds file.
    ratio : str, default=""
        What the exponential of a coefficient is; empty where it is nothing, under the identity as link.
    deviance_power : int, default=0
        The power of the variance function of a log link: the unit deviance is Tweedie's of this power.
    make : callable, default=None
        The loss of one record for an offset and a least margin; None for an identity link.
    positive : bool, default=False
        Whether the target has to be positive.
    """

    loss: str
    in_words: str
    kind: str = "number"
    ratio: str = ""
    deviance_power: int = 0
    make: Callable[[float, float], LogLinkLoss] | None = None
    positive: bool = False

    @property
    def log_link(self) -> bool:
        """Whether margins are logarithms of means."""
        return self.make is not None

    def check_bounds(self, y_bounds: tuple[float, float]) -> None:
        """Raise ParameterError for a range that the target cannot have."""
        low, high = y_bounds
        if self.log_link and not (low > 0.0 if self.positive else low >= 0.0):
            expected = f"a lower end {'above' if self.positive else 'of at least'} zero for loss={self.loss!r}"
            remedy = f"give the range of {self.kind}s, such as {'(1, 5000)' if self.positive else '(0, 20)'}"
            raise ParameterError("y_bounds", y_bounds, expected, remedy)
        if self.positive and high / low > _WIDEST:
            raise ParameterError(
                "y_bounds", y_bounds, f"ends of a ratio of at most {_WIDEST:,.0f}", "raise the lower end"
            )

    def least_mean(self, y_bounds: tuple[float, float]) -> float:
        """The least mean that a model predicts: the lower end of the range, or nearly zero."""
        low, high = y_bounds
        return low if self.positive else max(low, _LEAST_MEAN * high)

    def link_loss(self, y_bounds: tuple[float, float], exposure: float = 1.0) -> LogLinkLoss:
        """The loss of one record under a log link, for margins that are logarithms of means in the units of y.

        They are those of an exposure of one, and ``exposure`` is the largest.
        """
        if self.make is None:
            raise TypeError(f"{self.loss}: the link is the identity")
        high = y_bounds[1]
        return self.make(math.log(high) - math.log(exposure), math.log(self.least_mean(y_bounds) / high))

    def explained_deviance(self, y: FloatArray, means: FloatArray, weights: FloatArray | None) -> float:
        """D squared, the share of the deviance that predictions explain, as scikit-learn computes it."""
        # Here rather than above: a fit should not cost the import of metrics.
        from sklearn.metrics import d2_tweedie_score

        return float(d2_tweedie_score(y, means, sample_weight=weights, power=self.deviance_power))


def plural(ratio: str) -> str:
    """Several ratios of a kind: "ratios of means" for "ratio of means"."""
    return ratio.replace("ratio", "ratios", 1)


FAMILIES = {
    family.loss: family
    for family in (
        Family("squared", "least squares"),
        Family("huber", "Huber's loss"),
        Family("poisson", "Poisson regression with a log link", "count", "rate ratio", 1, PoissonLoss),
        Family("gamma", "gamma regression with a log link", "amount", "ratio of means", 2, GammaLoss, positive=True),
    )
}
"""Families by the names of their losses."""

HAZARDS = Family("hazards", "hazards that are constant between public cuts", "survival", "hazard ratio")
"""The family of times to an event, which no loss of a regressor has."""

LOSS_OF_KIND = {family.kind: family.loss for family in FAMILIES.values() if family.log_link}
"""Losses by the kinds of targets that a bounds file may state."""


def family_of(estimator: Any) -> Family:
    """The family of a model by its ``loss``; least squares for one that has none."""
    loss = getattr(estimator, "loss", "")
    return HAZARDS if loss == HAZARDS.loss else FAMILIES.get(loss, FAMILIES["squared"])
