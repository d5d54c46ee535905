"""What every private linear model has in common: bounds, targets and classes, coefficients, predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin

from taciturn.certificate import Release, certify
from taciturn.core.arrays import AnyArray, FloatArray
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_choice, check_positive, check_truth, check_x_bound
from taciturn.data.reading import PUBLIC_LABELS, check_lengths, read_records
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS
from taciturn.data.target import LabelMap, NumberMap, check_classes, numeric_target, stated_y_bounds
from taciturn.estimators.prediction import ClassPredictor, LinearPredictor
from taciturn.fitting.class_weights import check_class_weight, weight_loss, weights_of_classes
from taciturn.fitting.procedure import BOUNDS, Persons, PrivateEstimator, PublicFacts
from taciturn.losses import HuberLoss, LogisticLoss, Loss, SoftmaxLoss
from taciturn.sources import (
    ArraySource,
    BlockBuilder,
    DivisibleSource,
    OpenTable,
    partitionwise,
    stated_classes,
    target_labels,
)

__all__ = ["PrivateClassifier", "PrivateLinearModel", "PrivateRegressor", "number_or_auto"]


class PrivateLinearModel(LinearPredictor, PrivateEstimator):
    """Base of the private linear models.

    A run gives coefficients in mapped units, of features divided by ``x_bound`` and of targets mapped to [-1, 1]: one
    row per output, the intercept last and zero where there is none.
    """

    x_bound: float | None
    fit_intercept: bool

    def fit(self, X: Any, y: Any = None, persons: Any = None) -> Self:
        """Fit the model: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            The features; an open table has its target and its persons with it.
        y : array-like of shape (n_samples,)
            The target: numbers for a regressor, labels of any type for a classifier. None for an open table.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together, and each person counts once. A row without a key is a null row. None:
            every row is a record of its own. Methods without a proof for persons refuse keys.

        Returns
        -------
        self : object
            The fitted model.
        """
        self.check_parameters()
        X, y, persons = self._open(X, y, persons)
        self._check_persons(persons)
        facts, whose = self._person_facts(self._public_facts(X, y), persons)
        self._warn_of_defaults(facts)
        plan = self._plan(facts)
        sparse = X.is_sparse if isinstance(X, OpenTable) else sp.issparse(X)
        self.warm_up(sparse=sparse, n_classes=None if facts.labels is None else len(facts.labels))
        with self._reserve(plan, facts) as reservation:
            stream = Stream.of(self.random_state)
            check_lengths(X, y)
            reservation.begin()
            self._log("reading")
            source = self._read(X, y, facts, whose)
            self._log("running")
            outcome = self._run(plan, source, stream)
            self._certify(plan, facts, outcome, seeded=stream.seeded, account_head=reservation.head)
            self._store(plan, facts, outcome)
        self._log("certified")
        self._warn_of_releases(outcome)
        return self

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_x_bound(self._x_bound)
        check_truth(fit_intercept=self.fit_intercept)

    def _loss(self, facts: PublicFacts) -> tuple[Any, int]:
        """The loss of one record, and the number of outputs."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, facts: PublicFacts, persons: Persons | None = None) -> DivisibleSource:
        target, numeric = self._target_map(facts), facts.labels is None
        if isinstance(X, OpenTable):
            builder = BlockBuilder(self._x_bound, self.invalid, target, numeric)
            return X.read(self, builder, facts.n_records, persons)
        empty = self.relation == "add-remove"
        records = read_records(self, X, y, invalid=self.invalid, numeric=numeric, empty=empty)
        if persons is not None:
            records = records.of_persons(persons())
        return ArraySource(target(records), self._x_bound, n_records=facts.n_records)

    @property
    def _target_unit(self) -> float:
        """What a mapped target of 1 is in the units of y: half the width of ``y_bounds``, 1 for labels."""
        return 1.0

    def _target_map(self, facts: PublicFacts) -> NumberMap | LabelMap:
        """What gives records lattice numbers or class codes for targets."""
        raise NotImplementedError

    def _run(self, plan: Any, source: ArraySource, stream: Stream) -> Any:
        """What the plan releases about the source."""
        raise NotImplementedError

    def _certify(self, plan: Any, facts: PublicFacts, outcome: Any, *, seeded: bool, account_head: str | None) -> None:
        """Set the certificate."""
        self.certificate_ = certify(
            self._released(plan, outcome),
            plan.budget,
            relation=self.relation,
            public=self._described(plan, facts),
            assumptions=(*self._assumptions(plan), *facts.assumptions),
            seeded=seeded,
            arithmetic=plan.arithmetic,
            ordered=plan.ordered,
            unit=facts.unit,
            account_head=account_head,
        )

    def _released(self, plan: Any, outcome: Any) -> Iterable[Release]:
        """The releases that were made."""
        releases: tuple[Release, ...] = plan.releases
        return releases

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        """Public facts for the certificate."""
        return self._public_description(facts) | {"x_bound": float(self._x_bound)}

    def _assumptions(self, plan: Any) -> tuple[str, ...]:
        """What the guarantee rests on."""
        return BOUNDS, *self._admission(self._most_records)

    @property
    def _most_records(self) -> int | None:
        """The largest number of records for which the arithmetic is proved."""
        # Sums of more could leave 64-bit integers.
        return MOST_PRIVATE_ROWS

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        """Set the fitted attributes: what was released, and public facts."""
        self._set_coefficients(outcome)

    def _warn_of_releases(self, outcome: Any) -> None:
        """Warn of bounds or classes that released numbers speak against."""

    def _set_coefficients(self, weights: FloatArray) -> None:
        """Set ``coef_``, ``intercept_`` and ``support_`` in the user's units."""
        raise NotImplementedError


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """A linear model of a target with a public range."""

    y_bounds: tuple[float, float] | None
    residual_clip: float | str
    y_bounds_: tuple[float, float]

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        stated_y_bounds(self.y_bounds)
        self._mapped_clip()

    @property
    def _target_unit(self) -> float:
        low, high = self._y_bounds
        # Halving first keeps bounds near the largest double from overflowing.
        return high / 2.0 - low / 2.0

    def _mapped_clip(self) -> float | None:
        """``residual_clip`` for a mapped target; None for "auto"."""
        clip = number_or_auto(residual_clip=self.residual_clip)
        if clip is None:
            return None
        if not 0.0 < clip / self._target_unit < math.inf:
            raise ParameterError(
                "residual_clip", clip, "a positive finite number also in units of y_bounds", "give one of their size"
            )
        return clip / self._target_unit

    def _loss(self, facts: PublicFacts) -> tuple[Any, int]:
        return HuberLoss(self._mapped_clip() or 1.0), 1

    def _target_map(self, facts: PublicFacts) -> NumberMap:
        return NumberMap(partial(numeric_target, y_bounds=self._y_bounds))

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        self.y_bounds_ = self._y_bounds
        super()._store(plan, facts, outcome)

    def _set_coefficients(self, weights: FloatArray) -> None:
        low, high = self._y_bounds
        half = self._target_unit
        self.coef_ = weights[0, :-1] * (half / self._x_bound)
        self.intercept_ = low / 2.0 + high / 2.0 + half * float(weights[0, -1])
        self.support_ = self.coef_ != 0.0

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"y_bounds": self._y_bounds}

    @partitionwise
    def predict(self, X: Any) -> FloatArray:
        """Predictions in the units of y, clipped to ``y_bounds_``."""
        return np.clip(self._margins(X).ravel(), *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateClassifier(ClassPredictor, PrivateLinearModel):
    """A linear model of labels, with a softmax or logistic link."""

    classes: Any

    class_weight: Mapping[Any, float] | None = None
    """For classes without this parameter."""

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        if self.classes is not None:
            check_classes(self.classes)
        check_class_weight(self.class_weight)
        if self.class_weight is not None and getattr(self, "inference", False) is True:
            raise ParameterError("inference", True, "False where classes have weights", "leave one of the two out")

    def _public_facts(self, X: Any, y: Any) -> PublicFacts:
        facts = super()._public_facts(X, y)
        classes = stated_classes(X, self.classes)
        if classes is not None:
            return replace(facts, labels=np.sort(check_classes(classes)))
        labels = target_labels(y)
        return replace(facts, labels=labels, assumptions=(*facts.assumptions, PUBLIC_LABELS))

    def _loss(self, facts: PublicFacts) -> tuple[Loss, int]:
        """The loss of one record, and the number of outputs."""
        n_classes, weights = _labels(facts).size, self._class_weights(facts)
        loss, n_outputs = (LogisticLoss(), 1) if n_classes == 2 else (SoftmaxLoss(), n_classes)
        return weight_loss(loss, weights), n_outputs

    def _class_weights(self, facts: PublicFacts) -> tuple[float, ...]:
        return weights_of_classes(self.class_weight, _labels(facts))

    def _target_map(self, facts: PublicFacts) -> LabelMap:
        return LabelMap(_labels(facts))

    def _set_coefficients(self, weights: FloatArray) -> None:
        self.coef_ = weights[:, :-1] / self._x_bound
        self.intercept_ = weights[:, -1].copy()
        self.support_ = (self.coef_ != 0.0).any(axis=0)

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        self.classes_ = _labels(facts)
        super()._store(plan, facts, outcome)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        weights = {} if self.class_weight is None else {"class_weight": list(self._class_weights(facts))}
        return super()._described(plan, facts) | {"classes": _labels(facts)} | weights


def number_or_auto(**named: Any) -> float | None:
    """A positive number, or None for "auto"."""
    ((name, value),) = named.items()
    if isinstance(value, str):
        check_choice(("auto",), "a finite number > 0", **named)
        return None
    return check_positive(**{name: value})


def _labels(facts: PublicFacts) -> AnyArray:
    if facts.labels is None:
        raise TypeError("a classifier's public facts hold its labels")
    return facts.labels
