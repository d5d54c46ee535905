"""What a caller is willing to spend."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.core.validation import check_delta, check_epsilon

__all__ = ["Budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    r"""A target :math:`(\varepsilon, \delta)`.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, > 0 and at most 30. Infinity stands for the non-private twin of a model.
    delta : float
        Probability with which the bound may fail, in [0, 1). Zero asks for pure privacy.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(part=True, epsilon=self.epsilon))
        object.__setattr__(self, "delta", check_delta(delta=self.delta))
