"""Entries of the catalogue, and the cases that they make at a given epsilon."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from taciturn.accounting import epsilon_of
from taciturn.audit.engine import Pair, Run
from taciturn.core.errors import SuspiciousReleaseWarning, WeakBudgetWarning, WeakGuaranteeWarning
from taciturn.events import Event
from taciturn.privacy.certificate import Certificate

Outcome = np.ndarray | tuple[float, ...]

KINDS = ("mechanism", "selector", "estimator", "scaler", "score")
"""What can be audited."""


@dataclass(frozen=True, slots=True)
class SampledCase:
    """Runs on two data sets, for :func:`~taciturn.audit.audit`.

    ``run(data, random_state)``, which is picklable, makes one release. ``delta`` and ``claimed`` are the claim of the
    object itself: its certificate, or its event. ``trials`` is the default number of runs on each data set.
    """

    run: Run
    pair: Pair
    delta: float
    claimed: float
    event: str
    trials: int


@dataclass(frozen=True, slots=True)
class ExactCase:
    """Two laws in closed form, for :func:`~taciturn.audit.audit_exact`.

    ``law(data)`` is the probability of every outcome; ``delta`` and ``claimed`` are read off the object itself.
    """

    law: Callable[[Any], Mapping[Hashable, float]]
    pair: Pair
    delta: float
    claimed: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One subject of an audit: ``case(epsilon)`` at any budget.

    The name is that of a public class or function, then after a slash what tells the entry from others of the same one.
    """

    name: str
    kind: str
    summary: str
    case: Callable[[float], SampledCase | ExactCase]

    @property
    def subject(self) -> str:
        """The name of the class or function."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Fit:
    """The public ``fit`` of a clone of the model, from bounds to certificate.

    ``discrete``: few vectors of coefficients are possible, which are then told apart one by one.
    """

    model: Any
    discrete: bool = False

    def __call__(self, data: Any, random_state: int) -> Outcome:
        """The coefficients, the selected features, or the bounds."""
        fitted = fit(self.model, data, random_state)
        if hasattr(fitted, "coef_"):
            coefficients = np.ravel(fitted.coef_)
            return tuple(coefficients.tolist()) if self.discrete else coefficients
        if hasattr(fitted, "lower_"):
            return np.concatenate((fitted.lower_, fitted.upper_))
        return tuple(np.flatnonzero(fitted.support_).tolist())


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of tables this small, whose noise dominates and whose cells lie at their bounds."""
    with warnings.catch_warnings():
        for kind in (WeakBudgetWarning, WeakGuaranteeWarning, SuspiciousReleaseWarning):
            warnings.simplefilter("ignore", kind)
        yield


def fit(model: Any, data: Any, random_state: int) -> Any:
    """A fitted clone."""
    with quiet():
        return clone(model).set_params(random_state=random_state).fit(*data)


def case_of_fit(model: Any, pair: Pair, trials: int, *, event: str = "auto", discrete: bool = False) -> SampledCase:
    """Make the case of a model: every run is a whole fit, and the claim is that of its certificate."""
    certificate: Certificate = fit(model, pair.first, 0).certificate_
    return SampledCase(Fit(model, discrete), pair, certificate.delta, certificate.epsilon, event, trials)


def exact_case_of_fit(model: Any, pair: Pair, law: Callable[[Any], Mapping[Hashable, float]]) -> ExactCase:
    """Make the case of a model whose law has a closed form."""
    claim = case_of_fit(model, pair, trials=0)
    return ExactCase(law, pair, claim.delta, claim.claimed)


def case_of_event(
    cost: Event, run: Run, pair: Pair, trials: int, *, delta: float = 0.0, event: str = "auto"
) -> SampledCase:
    """Make the case of a release with this cost, at a delta."""
    return SampledCase(run, pair, delta, epsilon_of(cost, delta), event, trials)
