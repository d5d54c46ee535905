"""Attacks on printed algorithms, against what they claim, and on what mends them."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from counterexamples import scores_of
from scipy.stats import binom, norm

from taciturn import CorrelationSelector, FrankWolfeClassifier
from taciturn.audit import Pair, audit, audit_exact
from taciturn.core.rng import Stream
from taciturn.published import DPSIS, ADPScreen, MultinomialPrivateLasso, PrivateLasso, RNMScreen, Sparsifier
from taciturn.published.screening import ScreeningRule


def blanked(X, y, canary, answer, words):
    """One record more than (X, y), or a row of zeros in its place: these models have no intercept and count rows."""
    row = np.asarray(canary, dtype=np.float64)
    whole = np.vstack((X, row)), np.append(y, answer)
    return Pair(whole, (np.vstack((X, 0.0 * row)), np.append(y, 0.0)), "zero-out", words)


def audit_model(model, statistic, pair, trials):
    """Fits with many seeds, against the certificate of one."""

    def run(data, seed):
        return statistic(model.set_params(random_state=seed).fit(*data))

    certificate = model.set_params(random_state=0).fit(*pair.first).certificate_
    return audit(run, pair, certificate.delta, trials, claimed=certificate.epsilon, name=type(model).__name__)


# ------------------------------------------------------------------ Private LASSO


def lasso(gradient_bound):
    """The first step goes to feature 0, where it satisfies all records but one; that has a residual of 34 then."""
    radius, reached, n_others = 50.0, 2.0 / 3.0 * 50.0, 5000
    X = np.zeros((n_others, 3))
    X[:, 0] = 1.0 / reached
    pair = blanked(X, np.ones(n_others), np.ones(3), -1.0, "a record that a model which suits all others fails")
    model = PrivateLasso(loss="squared", radius=radius, delta=1e-5, n_steps=3, gradient_bound=gradient_bound)
    return audit_model(model, lambda fitted: bool(fitted.coef_.sum() > reached / 2.0), pair, 250)


def lasso_with_slope_one():
    return lasso(1.0)


def lasso_with_its_slope():
    return lasso(51.0)


# ------------------------------------------------------------------ DP-SIS


def top_k(selector):
    pair = blanked(
        np.ones((2, 6)), np.array([1.0, -1.0]), np.eye(6)[4], 1.0, "six tied columns, and a record that lifts the fifth"
    )
    return audit_model(selector, lambda fitted: tuple(np.flatnonzero(fitted.support_).tolist()), pair, 250)


def printed_class_sizes():
    return top_k(DPSIS(epsilon=0.1, n_features_to_select=5))


def true_class_sizes():
    return top_k(CorrelationSelector(epsilon=0.1, n_features_to_select=5, mechanism="canonical-lipschitz"))


# ------------------------------------------------------------------ Sparsifier


def sparsifier(literal_appendix):
    pair = blanked(np.eye(2)[[0, 0]], np.ones(2), [0.0, 1.0], 1.0, "the only record that needs the second feature")
    model = Sparsifier(
        loss="squared", epsilon_optimise=1e-3, epsilon_count=0.05, delta=1e-5, count_range=(1, 2), n_steps=30,
        n_count_steps=30, literal_appendix=literal_appendix,
    )  # fmt: skip
    return audit_model(model, lambda fitted: int(fitted.support_.sum()), pair, 60)


def overwritten_count():
    return sparsifier(True)


def noisy_count():
    return sparsifier(False)


# ------------------------------------------------------------------ screening


def residual_free_pair(n_rows, n_columns, radius):
    """At positive weights on the sphere no record has a residual but the last, which has the largest there is."""
    X, y = np.ones((n_rows - 1, n_columns)), np.full(n_rows - 1, radius)
    return blanked(X, y, np.ones(n_columns), -radius, "one record with a residual, where no other has one")


def smallest_score(pick):
    radius, n_rows, n_columns = 50.0, 3000, 6
    pair = residual_free_pair(n_rows, n_columns, radius)
    model = RNMScreen(
        epsilon_optimise=0.01,
        epsilon_screen=0.5,
        delta_optimise=1 / 4000,
        delta_screen=1e-5,
        radius=radius,
        n_steps=1,
        random_state=0,
    )
    certificate = model.fit(*pair.first).certificate_
    rule, weights = ScreeningRule.for_loss("squared", radius, n_rows), np.full(n_columns, radius / n_columns)
    # The weights are released already, so that a data set is as good as its scores.
    scored = Pair(*(scores_of(rule, *data, weights) for data in (pair.first, pair.second)), pair.relation, pair.words)

    def run(scores, seed):
        return pick(model, rule, scores, Stream.of(seed))

    return audit(run, scored, certificate.delta, 2000, claimed=certificate.epsilon, name="RNMScreen")


def sign_and_index():
    return smallest_score(lambda model, rule, scores, stream: tuple(model._screen(rule, scores.size, stream)(scores)))


def index_alone():
    """The same noise without the test of the sign."""
    return smallest_score(
        lambda model, rule, scores, stream: int(
            np.argmin(scores + model._screening_scale(rule) * stream.laplaces(scores.size))
        )
    )


def printed_screening():
    """Of 600 equal scores it matters only how many are negative: a binomial number."""
    radius, n_rows, n_columns = 5.0, 3000, 600
    pair = residual_free_pair(n_rows, n_columns, radius)
    model = ADPScreen(
        epsilon_optimise=0.01,
        epsilon_screen=2.5,
        loss="squared",
        radius=radius,
        n_steps=1,
        screen_at="last",
        random_state=0,
    )
    certificate = model.fit(*pair.first).certificate_
    rule, weights = ScreeningRule.for_loss("squared", radius, n_rows), np.full(n_columns, radius / n_columns)
    scale, numbers = model._screening_scale(rule, n_columns), np.arange(n_columns + 1)

    def law(data):
        chance = norm.cdf(-scores_of(rule, *data, weights)[0] / scale)
        return dict(zip(numbers.tolist(), binom.pmf(numbers, n_columns, chance), strict=True))

    return audit_exact(law, pair, certificate.delta, claimed=certificate.epsilon, name="ADPScreen")


def true_screening():
    with patch.object(ScreeningRule, "printed_sensitivity", ScreeningRule.sensitivity):
        return printed_screening()


# ------------------------------------------------------------------ multinomial


def directions(model, n_columns, statistic, trials):
    words = "each row with either label, and one more that pulls every column the same way"
    pair = blanked(np.ones((2, n_columns)), np.array([0.0, 1.0]), np.ones(n_columns), 1.0, words)
    return audit_model(model, statistic, pair, trials)


def selection_per_feature():
    """How many of 10,000 columns move the way of the canary."""

    def moved(fitted):
        return np.array([np.count_nonzero((fitted.coef_[1] > 0.0) | (fitted.coef_[0] < 0.0))])

    return directions(MultinomialPrivateLasso(delta=0.01, n_steps=2), 10_000, moved, 300)


def selection_per_step():
    model = FrankWolfeClassifier(delta=0.01, n_steps=1, classes=(0.0, 1.0), fit_intercept=False)
    return directions(model, 10_000, lambda fitted: bool(fitted.coef_.sum() > 0.0), 60)
