"""Scores of models, and what chooses by scores: searches of settings, and cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from taciturn.accounting import Budget
from taciturn.audit.engine import Pair
from taciturn.data.sensitivity import Relation
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier
from taciturn.methods.scores.cross_validation import CrossValidation, private_cross_val_score
from taciturn.methods.scores.function import ModelScore, PrivateScore, private_score
from taciturn.methods.scores.plan import ScorePlan, plan_score
from taciturn.methods.search.estimator import PrivateRandomizedSearch
from taciturn.methods.survival.curve import SurvivalCurve
from taciturn.methods.survival.function import private_survival_curve
from taciturn.privacy.certificate import Certificate
from taciturn_research.attacks.entry import Entry, ExactCase, SampledCase, quiet
from taciturn_research.attacks.laws import Law, law_of
from taciturn_research.attacks.neighbours import equal_records, lone_record, mislabelled_record, residual_jump

Table = tuple[np.ndarray, np.ndarray]

_TRIALS = 3_000
_N_OTHERS = 6
_CUTS = (1.0, 2.0, 3.0)
_DELTA = 1e-3


@dataclass(frozen=True, slots=True)
class ScoreRun:
    """A private score of a model, with its plan and certificate."""

    model: Any
    epsilon: float
    relation: str
    metric: str = "auto"

    def release(self, data: Table, random_state: int) -> PrivateScore | ModelScore:
        """Score the records, with a public number of records."""
        score: PrivateScore | ModelScore = private_score(
            self.model,
            *data,
            metric=self.metric,  # type: ignore[call-overload]
            epsilon=self.epsilon,
            relation=self.relation,
            n_public=_N_OTHERS + 1,
            random_state=random_state,
        )
        return score

    def __call__(self, data: Table, random_state: int) -> np.ndarray:
        """Release a score."""
        score = self.release(data, random_state)
        return np.array([score.value] if isinstance(score, PrivateScore) else score.counts)

    def certificate(self, pair: Pair) -> Certificate:
        """Certificate of the score."""
        return self.release(pair.first, 0).certificate


@dataclass(frozen=True, slots=True)
class AccuracyLaw:
    """The law of the accuracy of a model that always predicts 0, with the noise of the plan."""

    plan: ScorePlan

    def __call__(self, data: Table) -> Law:
        """The law of the counts."""
        _, y = data
        ends: dict[Any, int] = {"less": 0, "more": y.size}
        values: Law = {}
        for count, probability in law_of(self.plan.mechanism, int(np.sum(y == 0))).items():
            right = ends[count] if count in ends else int(count)
            value = min(max(right, 0), y.size) / y.size
            values[value] = values.get(value, 0.0) + probability
        return values


@dataclass(frozen=True, slots=True)
class CurveRun:
    """A private survival curve: signed times, negative without an event, with the plan of the curve."""

    epsilon: float
    relation: Relation

    def release(self, data: np.ndarray, random_state: int) -> SurvivalCurve:
        """Count the records."""
        return private_survival_curve(
            np.abs(data),
            data > 0.0,
            cuts=_CUTS,
            epsilon=self.epsilon,
            relation=self.relation,
            random_state=random_state,
        )

    def __call__(self, data: np.ndarray, random_state: int) -> np.ndarray:
        """The released counts."""
        return self.release(data, random_state).counts.ravel()

    def certificate(self, pair: Pair) -> Certificate:
        """Certificate of the curve."""
        return self.release(pair.first, 0).certificate_


def _accuracy_law(epsilon: float) -> ExactCase:
    # The model predicts the differing record correctly, and all others wrongly.
    pair = mislabelled_record(_N_OTHERS, "zero-out")
    model = DummyClassifier(strategy="constant", constant=0).fit([[0.0], [0.0]], [0, 1])
    claim = ScoreRun(model, epsilon, pair.relation).certificate(pair)
    plan = plan_score(Budget(epsilon, 0.0), "accuracy", finest=1, counts=False, relation=pair.relation, n_values=1)
    return ExactCase(AccuracyLaw(plan), pair, claim.delta, claim.epsilon)


def _squared_error(epsilon: float) -> SampledCase:
    pair = residual_jump(1.0, _N_OTHERS, 1, "add-remove")
    model = DummyRegressor(strategy="constant", constant=1.0).fit([[0.0]], [1.0])
    model.y_bounds = (-1.0, 1.0)
    run = ScoreRun(model, epsilon, pair.relation)
    claim = run.certificate(pair)
    return SampledCase(run, pair, claim.delta, claim.epsilon, "auto", _TRIALS)


def _all_measures(epsilon: float) -> SampledCase:
    pair = mislabelled_record(_N_OTHERS, "zero-out")
    model = DummyClassifier(strategy="constant", constant=0).fit([[0.0], [0.0]], [0, 1])
    run = ScoreRun(model, epsilon, pair.relation, "all")
    claim = run.certificate(pair)
    return SampledCase(run, pair, claim.delta, claim.epsilon, "auto", _TRIALS)


def _survival_curve(epsilon: float) -> SampledCase:
    # One record leaves the last interval for the first: every number at risk moves.
    others = np.array([0.5, -0.5, 1.5, -1.5, 2.5, -3.0])
    words = "A record has its event in the first interval instead of the last one"
    pair = Pair(np.append(others, 2.5), np.append(others, 0.5), "replace-one", words)
    run = CurveRun(epsilon, "replace-one")
    claim = run.certificate(pair)
    return SampledCase(run, pair, claim.delta, claim.epsilon, "auto", _TRIALS)


def _model(pair: Pair, epsilon: float) -> HardThresholdClassifier:
    return HardThresholdClassifier(
        epsilon=epsilon, delta=_DELTA, relation=pair.relation, x_bound=1.0, classes=(0, 1), fit_intercept=False,
        n_nonzero=1, n_steps=1, step_size=0.5,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SearchRun:
    """A search with few trials; its outcome is the model of the best one and its setting."""

    model: Any
    epsilon: float

    def fit(self, data: Table, random_state: int) -> PrivateRandomizedSearch:
        """Search."""
        search = PrivateRandomizedSearch(
            self.model, {"step_size": [0.25, 0.5]}, epsilon=self.epsilon, delta=_DELTA, mean_trials=1.2, test_size=0.1,
            random_state=random_state,
        )  # fmt: skip
        with quiet():
            return search.fit(*data)

    def __call__(self, data: Table, random_state: int) -> np.ndarray:
        """Release the best trial."""
        found = self.fit(data, random_state)
        # A score of one record is mostly noise, in which an event would look for its direction.
        return np.array([*np.ravel(found.best_estimator_.coef_), found.best_params_["step_size"]])


@dataclass(frozen=True, slots=True)
class CrossRun:
    """A cross-validation in two folds; its outcome is their scores."""

    model: Any
    epsilon: float

    def release(self, data: Table, random_state: int) -> CrossValidation:
        """Cross-validate."""
        with quiet():
            return private_cross_val_score(
                self.model, *data, cv=2, epsilon=self.epsilon, delta=_DELTA, random_state=random_state
            )

    def __call__(self, data: Table, random_state: int) -> np.ndarray:
        """Release the scores."""
        return np.array(self.release(data, random_state).scores)


def _search(epsilon: float) -> SampledCase:
    pair = lone_record([1.0], 2 * _N_OTHERS, "zero-out", labelled=True)
    run = SearchRun(_model(pair, 1.0), epsilon)
    claim = run.fit(pair.first, 0).certificate_
    return SampledCase(run, pair, claim.delta, claim.epsilon, "auto", _TRIALS // 10)


def _cross_validation(epsilon: float) -> SampledCase:
    pair = equal_records(4 * _N_OTHERS, "zero-out")
    # Fits and scores together cost about epsilon.
    run = CrossRun(_model(pair, 0.2 * epsilon), 0.953 * epsilon)
    claim = run.release(pair.first, 0).certificate
    return SampledCase(run, pair, claim.delta, claim.epsilon, "auto", _TRIALS // 5)


SCORES = (
    Entry("private_score/exact", "score", "law of an accuracy", _accuracy_law),
    Entry("private_score/sampled", "score", "a mean squared error", _squared_error),
    Entry("private_score/all", "score", "the histogram of all measures", _all_measures),
    Entry("private_survival_curve", "score", "numbers of records by interval and way of exit", _survival_curve),
    Entry("PrivateRandomizedSearch", "score", "the best of a random number of trials", _search),
    Entry("private_cross_val_score", "score", "scores of two folds", _cross_validation),
)
"""Every score."""
