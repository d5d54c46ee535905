r"""Weights of the classes of a target: public numbers by which the losses of records are multiplied.

With weights the objective is :math:`\sum_i w_{y_i} \ell(W x_i + b;\, y_i)`, as for ``class_weight`` of scikit-learn.
Only ratios of weights matter to its minimum, so that they are divided by the largest. "balanced" weights would be one
over the numbers of records of each class, and are refused: these are the data's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taciturn.core.arrays import AnyArray, FloatArray, NumberArray
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_positive
from taciturn.losses import Loss

__all__ = ["WeightedLoss", "check_class_weight", "weight_loss", "weights_of_classes"]


# Derivatives are rounded twice: the first time with this many times the resolution, unless they are fine already.
_FINER, _COARSE = 1 << 8, 1 << 32


def check_class_weight(class_weight: object) -> None:
    """Raise ParameterError for weights that no fit could use."""
    if class_weight is None:
        return
    if not isinstance(class_weight, Mapping):
        raise ParameterError(
            "class_weight",
            class_weight,
            "a dictionary from labels to public numbers, or None ('balanced' would count the labels of the data)",
            "give numbers, such as one over the shares that the classes are known to have elsewhere",
        )
    for weight in class_weight.values():
        try:
            check_positive(weight=weight)
        except ParameterError:
            raise ParameterError(
                "class_weight", dict(class_weight), "finite numbers > 0", "give every label a positive one"
            ) from None


def weights_of_classes(class_weight: Mapping[Any, float] | None, labels: AnyArray) -> tuple[float, ...]:
    """The weight of each class over the largest; classes that are not listed have weight one, as in scikit-learn."""
    stated = dict(class_weight or {})
    weights = [float(stated.pop(label, 1.0)) for label in labels.tolist()]
    if stated:
        unknown = next(iter(stated))
        raise ParameterError("class_weight", unknown, f"labels among {labels.tolist()}", "correct or leave it out")
    largest = max(weights)
    return tuple(weight / largest for weight in weights)


def weight_loss(loss: Loss, weights: tuple[float, ...]) -> Loss:
    """The loss with weights; as it is where all are the same."""
    return loss if min(weights) == 1.0 else WeightedLoss(loss, weights)


@dataclass(frozen=True, slots=True)
class WeightedLoss(Loss):
    r"""A loss of labels times the weight of the record's class.

    *Constants.* Weights are in (0, 1] and one of them is 1. Derivatives, their L1 and L2 norms and second derivatives
    are those of the loss times a number of at most one, so that every bound of the loss holds, and is attained by
    records of the heaviest class. Sensitivities do not change.

    Parameters
    ----------
    loss : Loss
        Logistic or softmax.
    weights : tuple of float
        By the codes of the classes, in (0, 1], the largest 1.
    """

    loss: Loss
    weights: tuple[float, ...]

    labelled: ClassVar[bool] = True

    @property
    def multiclass(self) -> bool:
        """That of the loss."""
        return self.loss.multiclass

    @property
    def smoothness(self) -> float:
        """That of the loss."""
        return self.loss.smoothness

    @property
    def l1_factor(self) -> float:
        """That of the loss."""
        return self.loss.l1_factor

    @property
    def squared_l2_factor(self) -> float:
        """That of the loss."""
        return self.loss.squared_l2_factor

    def class_weights(self, n_classes: int) -> FloatArray:
        """The weights of the classes by their codes."""
        return np.array(self.weights)

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The loss times the weight."""
        return self.loss.value(margins, targets) * self._of_targets(targets)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """That of the loss times the weight."""
        weights = self._of_targets(targets)
        return self.loss.derivative(margins, targets) * (weights[:, None] if self.multiclass else weights)

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """That of the loss times the weight."""
        weights = self._of_targets(targets)
        return self.loss.second_derivative(margins, targets) * (weights[:, None, None] if self.multiclass else weights)

    def lipschitz(self, radius: float) -> float:
        """That of the loss, for records of the heaviest class."""
        return self.loss.lipschitz(radius)

    def record_values(self, margins: FloatArray, target: NumberArray) -> FloatArray:
        """The loss of each record times its weight; null records lose nothing."""
        return self.loss.record_values(margins, target) * self._of_codes(target)

    def integer_derivatives(
        self, margins: NumberArray, unit: float, target: NumberArray, radius: float, bound: int
    ) -> FloatArray:
        """Those of the loss times the weight; they are finer before they are rounded again, to numbers that fit."""
        finer = _FINER if bound <= _COARSE else 1
        integers = self.loss.integer_derivatives(margins, unit, target, radius, finer * bound)
        return np.rint(integers * (self._of_codes(target) / finer)[:, None])

    def _of_targets(self, targets: FloatArray) -> FloatArray:
        """The weights of records whose targets are 0 or 1, or one-hot rows."""
        weights = np.array(self.weights)
        return targets @ weights if self.multiclass else weights[np.asarray(targets, dtype=np.int64)]

    def _of_codes(self, target: NumberArray) -> FloatArray:
        """The weights of records with class codes; of null records, which add nothing, any."""
        return np.array(self.weights)[np.maximum(np.asarray(target, dtype=np.int64), 0)]
