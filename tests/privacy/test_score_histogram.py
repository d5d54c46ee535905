"""The histogram of a score: over all small tables and neighbours no outcome is likelier by more than the budget."""

import importlib
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from laws import chi_square_p
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from taciturn import private_score
from taciturn.data.sensitivity import RELATIONS, outcome_counts
from taciturn.mechanisms import RoundedGaussian, TwoSidedGeometric
from taciturn.methods.scores import run as scores_run
from taciturn.methods.scores.plan import plan_score
from taciturn.privacy import mechanisms

# The function has the name of its module.
MODULE = importlib.import_module("taciturn.methods.scores.function")
EPSILON = 1.2
NULL = 9


class Echo(ClassifierMixin, BaseEstimator):
    """Predicts the log-odds that the first feature says."""

    def __init__(self, n_classes=2):
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y):
        raise AssertionError("a score fits nothing")

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        weights = np.exp(X[:, :1] * np.arange(self.classes_.size))
        return weights / weights.sum(axis=1, keepdims=True)


class EchoNumbers(RegressorMixin, BaseEstimator):
    """The same with numbers."""

    def __init__(self):
        self.coef_, self.y_bounds = None, (-3.0, 5.0)

    fit = Echo.fit

    def predict(self, X):
        return X[:, 0]


# Models, and what the records of a table can be: predictions of all kinds, true and wrong, and a null record.
SUBJECTS = {
    "two classes": (Echo(), [(2.0, 1), (2.0, 0), (-0.1, 0), (0.0, NULL)]),
    "three classes": (Echo(3), [(2.0, 2), (2.0, 0), (-3.0, 1), (0.0, NULL)]),
    "numbers": (EchoNumbers(), [(0.5, 0.5), (5.0, -3.0), (-1.0, 2.0), (np.nan, 0.0)]),
}


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """Plans are made once in a test; certificates, which have no influence on what is released, not at all."""
    monkeypatch.setattr(MODULE, "plan_score", cache(plan_score))
    monkeypatch.setattr(MODULE, "certify", lambda releases, budget, **given: None)
    monkeypatch.setattr(MODULE, "in_short", lambda certificate: "")


@pytest.fixture
def shown(monkeypatch):
    """``shown(subject, records, relation, delta)``: mechanism and the counts that it is shown."""
    seen = []

    def release(plan, sums, stream):
        seen.append((plan.mechanism, sums))
        return sums / plan.term_bound

    monkeypatch.setattr(MODULE, "release_sums", release)

    @cache
    def show(subject, records, relation, delta=0.0):
        model, _ = SUBJECTS[subject]
        X, y = np.array([[a] for a, _ in records]), np.array([b for _, b in records])
        private_score(
            model, X, y, metric="all", epsilon=EPSILON, delta=delta, relation=relation, n_public=3, invalid="null"
        )
        return seen.pop()

    return show


def neighbours(kinds, relation, n_records=3):
    for table in product(kinds, repeat=n_records):
        for i in range(n_records):
            rest = table[:i], table[i + 1 :]
            if relation == "add-remove":
                yield table, (*rest[0], *rest[1])
            elif relation == "replace-one":
                yield from ((table, (*rest[0], other, *rest[1])) for other in kinds)
            else:
                yield table, (*rest[0], (0.0, NULL) if kinds[-1][1] == NULL else (0.0, np.nan), *rest[1])


def worst_cost(shown, subject, relation, delta=0.0):
    """The largest log-ratio of geometric outcomes, or the largest distance in Gaussian sensitivities."""
    worst = 0.0
    for first, second in neighbours(SUBJECTS[subject][1], relation):
        (mechanism, one), (same, other) = (shown(subject, table, relation, delta) for table in (first, second))
        assert mechanism == same
        if isinstance(mechanism, TwoSidedGeometric):
            # Noise is independent, so that log-ratios of cells add up; in the tails they are attained together.
            worst = max(worst, float(np.abs(one - other).sum()) * mechanism.epsilon / mechanism.sensitivity)
        else:
            assert isinstance(mechanism, RoundedGaussian)
            worst = max(worst, float(np.linalg.norm(one - other)) / mechanism.l2_sensitivity)
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_outcome_is_likelier_by_more_than_the_budget_and_some_are_by_that_much(shown, subject, relation):
    assert worst_cost(shown, subject, relation) == pytest.approx(EPSILON, rel=1e-12)
    assert 1.0 - 1e-9 < worst_cost(shown, subject, relation, delta=0.3) <= 1.0


def counted_twice(monkeypatch):
    """Beside its cell a record is counted in the first cell, as a total would be."""
    original = scores_run.CellCounts.__call__

    def broken(self, block):
        counts = original(self, block)
        counts[0] += counts.sum()
        return counts

    monkeypatch.setattr(scores_run.CellCounts, "__call__", broken)


def null_records_counted(monkeypatch):
    """Records that the relation calls absent are counted in a cell, so that zero-out moves two."""
    from taciturn.data.target import MarginCells

    original = MarginCells.cells
    monkeypatch.setattr(MarginCells, "cells", lambda self, outputs, target: np.abs(original(self, outputs, target)))
    monkeypatch.setattr("taciturn.data.records.Records.keep", lambda self, present: self)


def noise_of_zero_out(monkeypatch):
    """The sensitivity of zero-out where a record is replaced."""
    broken = lambda unit, norm, relation: outcome_counts(unit, norm, "zero-out")  # noqa: E731
    monkeypatch.setattr("taciturn.methods.scores.plan.outcome_counts", broken)
    monkeypatch.setattr(MODULE, "plan_score", plan_score)


def scaled_by_the_data(monkeypatch):
    """Counts are divided by the number of records that are not null, as shares would be."""
    original = scores_run.CellCounts.__call__

    def broken(self, block):
        counts = original(self, block)
        return 6 * counts // max(1, int(counts.sum()))

    monkeypatch.setattr(scores_run.CellCounts, "__call__", broken)


@pytest.mark.parametrize(
    ("broken", "relation", "factor"),
    [
        (counted_twice, "zero-out", 2.0),
        (counted_twice, "add-remove", 2.0),
        (null_records_counted, "zero-out", 2.0),
        (noise_of_zero_out, "replace-one", 2.0),
        (scaled_by_the_data, "zero-out", 3.0),
    ],
)
def test_the_same_search_convicts_broken_variants(shown, monkeypatch, broken, relation, factor):
    broken(monkeypatch)
    assert worst_cost(shown, "two classes", relation) >= 0.99 * factor * EPSILON


def p_value():
    """Of the noise in all cells, under the law of two-sided geometric noise: no record is counted anywhere."""
    X, y = np.zeros((5, 1)), np.full(5, NULL)
    edge = 6
    counts = np.zeros(2 * edge + 1)
    for seed in range(40):
        noise = private_score(Echo(), X, y, metric="all", epsilon=EPSILON, random_state=seed).counts
        np.add.at(counts, np.clip(np.array(noise, dtype=int), -edge, edge) + edge, 1)
    decay = np.exp(-EPSILON)
    law = (1 - decay) / (1 + decay) * decay ** np.abs(np.arange(-edge, edge + 1))
    law[[0, -1]] = decay**edge / (1 + decay)
    return chi_square_p(counts, law)


def test_every_cell_has_noise_of_that_law(monkeypatch):
    assert p_value() > 1e-4
    draw = mechanisms.two_sided_geometric
    for factor in (1.5, 2 / 3):
        by = Fraction(factor)
        monkeypatch.setattr(mechanisms, "two_sided_geometric", lambda rate, below, by=by: draw(rate * by, below))
        assert p_value() < 1e-6
