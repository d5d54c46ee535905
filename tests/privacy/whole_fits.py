"""Every class with a twentieth of its noise, inside the real fit.

The patch is below everything: samplers draw less than they are asked for, so that plans, mechanisms and certificates
say what they always say. It lasts from the beginning of the public ``fit`` to its end, and no longer. Each class is
attacked by an entry of its own in the catalogue: one whose runs are a copy of the fit would find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from unittest.mock import patch

import numpy as np

from taciturn.audit import AuditResult
from taciturn.core.rng import Stream
from taciturn.methods.frank_wolfe import run as frank_wolfe_run
from taciturn.methods.frank_wolfe.run import FrankWolfeProblem
from taciturn.methods.registry import KINDS, classes_of
from taciturn.methods.screening import run as screening_run
from taciturn.methods.search.estimator import PrivateRandomizedSearch
from taciturn.privacy import mechanisms
from taciturn_research.attacks import all_entries, find_entries, scores
from taciturn_research.attacks.run import audit_entry

__all__ = ["PERSON_FITS", "WHOLE_FITS", "WholeFit", "a_twentieth_of_the_noise", "all_whole_fits", "less_noise"]

# One false alarm in a million, for every audit.
CONFIDENCE = 1.0 - 1e-6


@contextmanager
def less_noise(times: int) -> Iterator[None]:
    """A context in which every sampler of the library draws that many times too little."""
    normals, lattice = Stream.normals, mechanisms.lattice_normals
    geometrics, halves = mechanisms.two_sided_geometric, mechanisms.CanonicalLipschitz._half_epsilon
    inverse_temperature = FrankWolfeProblem.inverse_temperature.fget
    with ExitStack() as patches:

        def put(owner, name, broken):
            patches.enter_context(patch.object(owner, name, broken))

        put(mechanisms, "lattice_normals", lambda *given: np.rint(lattice(*given) / times).astype(np.int64))
        put(Stream, "normals", lambda self, size: normals(self, size) / times)
        put(mechanisms, "two_sided_geometric", lambda rate, below: geometrics(rate * times, below))
        put(mechanisms.CanonicalLipschitz, "_half_epsilon", lambda self, n: times * halves(self, n))
        # Vertices are drawn by weights, in compiled loops.
        put(FrankWolfeProblem, "inverse_temperature", property(lambda self: times * inverse_temperature(self)))
        for module in (mechanisms, mechanisms, frank_wolfe_run, screening_run):
            keys = module.noisy_keys
            put(module, "noisy_keys", lambda scores, noise, scale, keys=keys: keys(scores, noise, scale / times))
        yield


@contextmanager
def a_twentieth_of_the_noise(subject: str) -> Iterator[None]:
    """A context in which the public ``fit`` of a class, or a public function, draws a twentieth of its noise."""
    kinds = classes_of(*KINDS)
    kinds["PrivateRandomizedSearch"] = PrivateRandomizedSearch
    # The catalogue has functions under names of its own.
    owner, name = (kinds[subject], "fit") if subject in kinds else (scores, subject)
    original = getattr(owner, name)

    @wraps(original)
    def broken(*args, **kwargs):
        with less_noise(20):
            return original(*args, **kwargs)

    with patch.object(owner, name, broken):
        yield


@dataclass(frozen=True, slots=True)
class WholeFit:
    """An attack on a class by an entry of the catalogue.

    Parameters
    ----------
    entry : str
        Its name; what comes before a slash is the class.
    trials : int, default=80
        Runs on each data set: just enough for noise that is nearly gone.
    epsilon : float, default=0.5
        The budget.
    confidence : float, default=CONFIDENCE
        Of the lower bound.
    quick_trials : int, optional
        Runs in ``make test``, with a confidence of 99.9 %; half of ``trials`` by default, which find as much.
    """

    entry: str
    trials: int = 80
    epsilon: float = 0.5
    confidence: float = CONFIDENCE
    quick_trials: int | None = None

    @property
    def subject(self) -> str:
        """The class."""
        return self.entry.partition("/")[0]

    def __call__(self) -> AuditResult:
        """The audit."""
        (entry,) = (each for each in find_entries(self.entry) if each.name == self.entry)
        return audit_entry(entry, self.epsilon, trials=self.trials, confidence=self.confidence)

    def quick(self) -> WholeFit:
        """The audit of ``make test``."""
        return replace(self, trials=self.quick_trials or self.trials // 2, confidence=0.999)


WHOLE_FITS = (
    WholeFit("CorrelationSelector/peeling-order"),
    WholeFit("CorrelationSelector/canonical-lipschitz-order"),
    WholeFit("KendallSelector"),
    WholeFit("BlockVoteSelector/order"),
    WholeFit("PrivateScaler/order", trials=300, epsilon=1.0),
    WholeFit("FrankWolfeRegressor/order"),
    WholeFit("FrankWolfeClassifier/order"),
    WholeFit("SparsifiedRegressor/order"),
    WholeFit("SparsifiedClassifier/order"),
    WholeFit("ScreenedRegressor/none-option-order", quick_trials=80),
    WholeFit("ScreenedClassifier/none-option-order", quick_trials=80),
    WholeFit("HardThresholdRegressor"),
    WholeFit("HardThresholdClassifier"),
    WholeFit("SparseRegressor"),
    WholeFit("SparseRegressor/counts"),
    WholeFit("SparseRegressor/amounts"),
    WholeFit("SparseRegressor/weights", trials=120),
    WholeFit("SparseRegressor/exposure"),
    WholeFit("SparseClassifier"),
    WholeFit("SparseRegressor/variables"),
    WholeFit("SparseRegressor/inference", quick_trials=80),
    WholeFit("SparseSurvival"),
    WholeFit("ObjectivePerturbationRegressor", trials=120),
    WholeFit("ObjectivePerturbationClassifier", trials=120),
    WholeFit("TwoStageRegressor/order", trials=120),
    WholeFit("TwoStageClassifier/order", trials=120),
    WholeFit("ADMMClassifier/l1", trials=120),
    WholeFit("private_score/sampled", trials=120),
    WholeFit("private_score/all", trials=120),
    WholeFit("private_survival_curve", trials=120),
    WholeFit("PrivateRandomizedSearch", trials=400, quick_trials=120),
    WholeFit("private_cross_val_score", trials=200, quick_trials=120),
    WholeFit("CorrelationSelector/persons-order"),
    WholeFit("BlockVoteSelector/persons-order"),
    WholeFit("HardThresholdRegressor/persons"),
    WholeFit("HardThresholdClassifier/persons"),
    WholeFit("SparseRegressor/persons"),
    WholeFit("SparseClassifier/persons"),
)
"""At least one for every class that adds noise."""


def all_whole_fits() -> tuple[WholeFit, ...]:
    """These, and an attack on each model and selector of the registry that has none."""
    listed = {each.subject for each in WHOLE_FITS}
    unlisted = {entry.subject for entry in all_entries()} & (classes_of(*KINDS).keys() - classes_of("scaler").keys())
    return (*WHOLE_FITS, *(WholeFit(name) for name in sorted(unlisted - listed)))


PERSON_FITS = (
    WholeFit("CorrelationSelector/persons", trials=1000),
    WholeFit("HardThresholdRegressor/persons", trials=400),
    WholeFit("HardThresholdClassifier/persons", trials=400),
    WholeFit("SparseRegressor/persons", trials=400),
    WholeFit("SparseClassifier/persons", trials=200),
)
"""Persons with nine rows, of which each may count once or nine times."""
