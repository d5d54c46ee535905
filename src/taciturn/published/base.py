"""What the reproductions share: claims as certificates, and models whose kind follows from their loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from scipy.special import expit, log_expit
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.guard import Guarded
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import ClassifierMixin, RegressorMixin
from taciturn.core.validation import (
    AnyArray,
    FloatArray,
    check_claimed_epsilon,
    check_delta,
    check_integer,
    check_positive,
)
from taciturn.data.records import PUBLIC_LABELS, Records, public_labels, read_records
from taciturn.losses import LogisticLoss, Loss, SquaredLoss
from taciturn.methods.base import LinearPredictor, Represented
from taciturn.methods.docstrings import fill
from taciturn.methods.options import PrintedLoss
from taciturn.privacy.calibration import epsilon_of
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release, event_of_releases
from taciturn.privacy.events import LaplaceMaxEvent, NotPrivateEvent

ROUNDING = "rounding errors of double precision are neglected"
STEPS = "the algorithm makes T - 1 steps with noise for T"
OBSERVED_BOUNDS = (
    "the experiments divide every feature by its largest value in the data, a release that the claimed epsilon does "
    "not pay for"
)


def vertex_releases(what: str, n_selections: int, *, noise_scale: float, sensitivity: float) -> tuple[Release, ...]:
    """The choices of vertices by Laplace noise, at what they cost rather than at what is claimed.

    ``sensitivity`` is how far one record can truly move a score; a noise scale of 0 stands for none.
    """
    if n_selections == 0:
        return ()
    if noise_scale == 0.0:
        return (Release(what, "none", 0.0, NotPrivateEvent(), n_selections),)
    cost = LaplaceMaxEvent(2.0 * sensitivity / noise_scale)
    return (Release(what, "Laplace", noise_scale / sensitivity, cost, n_selections),)


def state_claim(
    epsilon: float,
    delta: float,
    releases: Iterable[Release],
    *,
    public: Mapping[str, Any],
    assumptions: Iterable[str],
    errata: Iterable[str],
    seeded: bool,
    features: str = "every feature value lies in [-1, 1]",
    relation: str = "zero-out",
) -> Certificate:
    """The certificate of a run: the claimed pair, and what its releases can be proved to cost at that delta."""
    releases = tuple(releases)
    private = not math.isinf(epsilon)
    spent = event_of_releases(releases)
    return Certificate(
        epsilon=epsilon,
        delta=delta if private else 0.0,
        relation=relation,
        status="as published" if private else "not private",
        events=releases,
        public=public,
        assumptions=(features, *assumptions, ROUNDING),
        seeded=seeded,
        arithmetic="float64",
        bound="none",
        proved_epsilon=epsilon_of(spent, delta) if private else None,
        errata=tuple(errata),
    )


def check_printed_delta(**named: Any) -> None:
    """Raise ParameterError for what is no failure probability, or zero, for which no noise is printed."""
    if check_delta(**named) == 0.0:
        ((name, value),) = named.items()
        raise ParameterError(name, value, "a number in (0, 1)", "the noise is calibrated to its logarithm")


def parts_of(total: float, share: float, **given: float | None) -> tuple[float, float]:
    """The two parts of a total, by the share of the second one, or as both are given by name."""
    (first_name, first), (second_name, second) = given.items()
    if first is None and second is None:
        return total * (1.0 - share), total * share
    if first is None or second is None:
        missing = first_name if first is None else second_name
        raise ParameterError(missing, None, "a number where the other part is one", "give both parts, or neither")
    return first, second


class Reproduction(Guarded, Represented):
    """A published method: a fit runs the algorithm as printed and states its claim."""

    random_state: int | None
    certificate_: Certificate

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = fill(cls.__doc__)

    def fit(self, X: Any, y: Any) -> Self:
        """Run the algorithm and state its claim.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features, in the range that the description of the method states.
        y : array-like of shape (n_samples,)
            Numbers in such a range, or labels of any type for a classifier.
        """
        self.check_parameters()
        self.certificate_ = self._run(X, y, Stream.of(self.random_state))
        return self

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        raise NotImplementedError

    def _run(self, X: Any, y: Any, stream: Stream) -> Certificate:
        """Set the fitted attributes, and return the claim."""
        raise NotImplementedError


class ReproducedModel(Reproduction, LinearPredictor):
    """A linear model without intercept and with the parameters that all of these have."""

    epsilon: float
    delta: float
    radius: float
    n_steps: int
    gradient_bound: float

    invalid = "raise"
    """These have no such parameter."""

    def _read(self, X: Any, y: Any, *, numeric: bool) -> Records:
        return read_records(self, X, y, invalid=self.invalid, numeric=numeric)

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_claimed_epsilon(epsilon=self.epsilon)
        check_printed_delta(delta=self.delta)
        check_positive(radius=self.radius)
        check_positive(gradient_bound=self.gradient_bound)
        check_integer(1, n_steps=self.n_steps)

    def _facts(self, X: Any) -> dict[str, Any]:
        n_rows, n_columns = X.shape
        return {
            "features": n_columns,
            "records": n_rows,
            "radius": float(self.radius),
            "n_steps": int(self.n_steps),
            "gradient_bound": float(self.gradient_bound),
        }


class HasLoss(Protocol):
    """A model whose loss is a parameter."""

    loss: PrintedLoss


def classifies(model: HasLoss) -> bool:
    """Whether the loss makes the model a classifier."""
    return model.loss == "logistic"


Method = TypeVar("Method", bound=Callable[..., Any])


def for_classifiers(method: Method) -> Method:
    """Offer a method only where the loss makes the model a classifier."""
    offered: Method = available_if(classifies)(method)
    return offered


class SwitchedModel(ReproducedModel):
    """A classifier of two classes with ``loss="logistic"``, a regressor with ``loss="squared"``."""

    loss: PrintedLoss
    classes_: AnyArray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if classifies(self):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(poor_score=True, multi_class=False)
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    def _loss(self) -> Loss:
        return LogisticLoss() if classifies(self) else SquaredLoss()

    def _read_both(self, X: Any, y: Any) -> tuple[Any, FloatArray, tuple[str, ...]]:
        """Features, target as the loss needs it (labels as 0 and 1), and what is assumed of the target."""
        records = self._read(X, y, numeric=not classifies(self))
        X, y = records.X, records.y
        if not classifies(self):
            return X, y, ("every target lies in [-1, 1]",)
        labels = public_labels(y)
        if labels.size > 2:
            raise DataError(
                f"y: Only binary classification is supported. Expected two classes, got {labels.size}; use "
                "MultinomialPrivateLasso."
            )
        self.classes_ = labels
        return X, (y == labels[1]).astype(np.float64), (PUBLIC_LABELS,)

    def _set_coefficients(self, weights: FloatArray) -> None:
        self.coef_ = weights[None, :] if classifies(self) else weights
        self.intercept_ = np.zeros(1) if classifies(self) else 0.0
        self.support_ = weights != 0.0

    def predict(self, X: Any) -> AnyArray:
        """Labels (the second where its probability exceeds one half), or numbers."""
        margins: FloatArray = self._margins(X).ravel()
        return self.classes_[(margins > 0.0).astype(int)] if classifies(self) else margins

    @for_classifiers
    def decision_function(self, X: Any) -> FloatArray:
        """Margins, positive for the second class."""
        margins: FloatArray = self._margins(X).ravel()
        return margins

    @for_classifiers
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the two classes."""
        positive = expit(self.decision_function(X))
        return np.column_stack((1.0 - positive, positive))

    @for_classifiers
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities, finite where those underflow."""
        margins = self.decision_function(X)
        return np.column_stack((log_expit(-margins), log_expit(margins)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier, coefficient of determination of a regressor."""
        kind: Any = ClassifierMixin if classifies(self) else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))


class BallModel(SwitchedModel):
    """Frank-Wolfe over an L1 ball with Laplace noise on the scores of the vertices."""

    def _budget_of_steps(self) -> tuple[float, float]:
        """Epsilon and delta of the steps."""
        return self.epsilon, self.delta

    def noise_scale(self, n_rows: int) -> float:
        """Return the printed scale of the Laplace noise of a step, in the units of the mean gradient."""
        epsilon, delta = self._budget_of_steps()
        root = math.sqrt(8.0 * self.n_steps * math.log(1.0 / delta))
        return self.radius * self.gradient_bound * root / (n_rows * epsilon)

    def _facts(self, X: Any) -> dict[str, Any]:
        facts = super()._facts(X) | {"loss": self.loss}
        return facts | {"classes": self.classes_} if classifies(self) else facts

    def _short_noise(self, lipschitz: float, noise: str) -> tuple[str, ...]:
        """The mistake of a gradient bound below the true Lipschitz constant; none if it is not below."""
        if self.gradient_bound >= lipschitz:
            return ()
        return (
            f"one record can move the gradient by {lipschitz:g} and not only by gradient_bound = "
            f"{self.gradient_bound:g}: {noise} is too small by a factor of {lipschitz / self.gradient_bound:g}",
        )
