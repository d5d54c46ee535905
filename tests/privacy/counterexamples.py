"""Small data sets and exact laws on which printed claims fail: for the tests, and for the numbers of docs/papers.md."""

from __future__ import annotations

import math

import numpy as np
from laws import count_published_tickets, laplace_max_law, permute_and_flip_law, published_canonical_law, subsets
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.linear_model import lars_path

from taciturn.audit import Pair, audit_exact
from taciturn.losses import LogisticLoss, SquaredLoss
from taciturn.published.screening import ScreeningRule, mean_loss

LOSSES = {"squared": SquaredLoss(), "logistic": LogisticLoss()}


def noise_scale_of(certificate, slope=1.0):
    """The scale a run really used, from its own certificate, in the units of the mean gradient."""
    facts = certificate.public
    return certificate.events[-1].scale * facts["radius"] * slope / facts["records"]


def epsilon_between(first, second, delta=0.0):
    """The smallest epsilon of two laws, given as arrays over the same outcomes."""
    pair = Pair(first, second, "zero-out", "two laws")
    return audit_exact(lambda law: dict(enumerate(np.asarray(law).tolist())), pair, delta).lower_bound


# ---------------------------------------------------------------------- many equal choices at once


def binomial_delta(epsilon, d, chances):
    """The exact hockey-stick divergence of two binomial numbers of d trials, the worse direction."""
    k = np.arange(d + 1)
    laws = [binom.logpmf(k, d, chance) for chance in chances]
    parts = []
    for one, other in (laws, laws[::-1]):
        gap = one - other
        beyond = gap > epsilon
        parts.append(-np.exp(one[beyond]) @ np.expm1(epsilon - gap[beyond]))
    return max(parts)


def binomial_epsilon(delta, d, chances):
    """The smallest epsilon of two binomial numbers of d trials."""
    return epsilon_between(*(binom.pmf(np.arange(d + 1), d, chance) for chance in chances), delta)


# ---------------------------------------------------------------------- Private LASSO and Sparsifier


def one_step_epsilon(epsilon, delta, residual, gradient_bound=1.0):
    """A private Frank-Wolfe step at given weights, T = 1, one column, half the squared residual.

    The only record is blank, or has x = 1 and this residual, which is its gradient. Scores and noise have the same
    factor, the radius over the number of records.
    """
    scale = gradient_bound * math.sqrt(8 * math.log(1 / delta)) / epsilon
    laws = [laplace_max_law(np.array([-shift, shift]) / scale) for shift in (0.0, residual)]
    return epsilon_between(*laws, delta)


def exact_count_law(exact, low, high, epsilon, precision=1.0):
    """The law of the scaled count, by enumeration of the noise: {value: probability}."""
    rate = epsilon / (high - low)
    weight = (1 - math.exp(-rate)) / (1 + math.exp(-rate))
    law = {}
    for k in range(-6000, 6001):
        c = min(max(min(max(exact, low), high) + k, low), high) * precision
        law[round(c, 9)] = law.get(round(c, 9), 0.0) + weight * math.exp(-rate * abs(k))
    return law


def kept_count_epsilon(counts, low, high, epsilon, precision, delta=0.0):
    """What the number of kept coefficients, the scaled count rounded down, tells about two counts."""

    def law(exact):
        kept = {}
        for c, probability in exact_count_law(exact, low, high, epsilon, precision).items():
            kept[math.floor(c)] = kept.get(math.floor(c), 0.0) + probability
        total = math.fsum(kept.values())
        return {c: probability / total for c, probability in kept.items()}

    return audit_exact(law, Pair(*counts, "zero-out", "two counts of non-zero coefficients"), delta).lower_bound


def tied_classes(p):
    """Two records of either label cancel; the fifth is blank, or all ones with the second label."""
    X = np.vstack((np.ones((4, p)), np.zeros((1, p))))
    more = X.copy()
    more[4] = 1.0
    return X, more, np.array([0, 0, 1, 1, 1])


def chance_of_following(scale, radius, n):
    """The probability that a column takes one of the two vertices that the fifth record favours."""
    shift = radius * 0.5 / n / scale
    law = laplace_max_law(np.array([-shift, shift, shift, -shift]))
    return law[1] + law[2]


# ---------------------------------------------------------------------- screening


def scores_of(rule, X, y, w, loss="squared"):
    """The module's Equation 1 on a whole data set."""
    objective = mean_loss(X, y, LOSSES[loss])
    image = objective.matrix @ w
    return rule.scores(w, objective.gradient(image), objective.column_norms, objective.prediction_norm(w, image))


def blanked(X, y):
    """The same with the last record blanked out."""
    kept = np.arange(len(y)) < len(y) - 1
    return X * kept[:, None], y * kept


def explicit_pair(n, d, radius):
    """Records without residual at any positive w on the sphere; the last is blank, or far off."""
    X, y = np.ones((n, d)), np.r_[np.full(n - 1, radius), -radius]
    return blanked(X, y), (X, y)


def largest_change(n, radius):
    """How far one record moves a score of Equation 1, and the printed bound on that."""
    rule, w = ScreeningRule.for_loss("squared", radius, n), radius * np.eye(3)[0]
    blank, whole = explicit_pair(n, 3, radius)
    return np.abs(scores_of(rule, *whole, w) - scores_of(rule, *blank, w)).max(), rule.printed_sensitivity


def parted_scores(n, radius):
    """How two scores move when a record appears: one column is full and one empty."""
    X, y, w = np.zeros((n, 2)), np.full(n, radius), radius * np.eye(2)[0]
    X[:, 0], y[-1] = 1.0, -radius
    rule = ScreeningRule.for_loss("squared", radius, n)
    return scores_of(rule, X, y, w) - scores_of(rule, *blanked(X, y), w), (X, y)


def chances_of_screening(radius, scale, n, d):
    """Per coefficient, on either data set; w is dense and positive."""
    rule, w = ScreeningRule.for_loss("squared", radius, n), np.full(d, radius / d)
    scores = [scores_of(rule, *data, w) for data in explicit_pair(n, d, radius)]
    assert all(np.ptp(s) < 1e-9 for s in scores)
    return [float(norm.cdf(-s[0] / scale)) for s in scores]


def tail(x):
    """The probability that a standard Laplace variable exceeds x."""
    return 0.5 * math.exp(-x) if x > 0 else 1 - 0.5 * math.exp(x)


def law_of_the_smallest(scores):
    """Probabilities that each index is reported, then that none is, under noise of scale one."""

    def density(z, j):
        return 0.5 * math.exp(-abs(z - scores[j])) * math.prod(tail(z - s) for i, s in enumerate(scores) if i != j)

    kinks = sorted({min(float(score), 0.0) for score in scores})
    law = [quad(density, -60.0, 0.0, (j,), points=kinks, limit=200)[0] for j in range(len(scores))]
    return np.array([*law, math.prod(tail(-score) for score in scores)])


def sign_test_log_ratio(d, epsilon_iter):
    """Change of the logarithm of the chance that nothing is screened, when all scores rise from 0 by the sensitivity.

    The noise is right for the index of the smallest score at ``epsilon_iter``.
    """
    return d * (math.log(tail(-epsilon_iter / 2)) - math.log(tail(0.0)))


def solution_on_the_surface(X, y, radius):
    """Least squares over the L1 ball by the homotopy of the lasso, and its duality gap."""
    _, _, path = lars_path(X, y, method="lasso")
    sizes = np.abs(path).sum(axis=0)
    k = int(np.searchsorted(sizes, radius))
    share = (radius - sizes[k - 1]) / (sizes[k] - sizes[k - 1])
    w = (1 - share) * path[:, k - 1] + share * path[:, k]
    g = X.T @ (X @ w - y) / len(y)
    return w, w @ g + radius * np.abs(g).max()


def screened_at_the_solution(radius, seed=0):
    """Equation 1 next to the solution of a small problem: how many of its coefficients are screened, of how many."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (400, 20))
    y = X @ rng.permutation(np.r_[3.0, -3.0, 2.0, -2.0, np.zeros(16)])
    w, _ = solution_on_the_surface(X, y, radius)
    support = w != 0.0
    # A little inside the ball the gap is no longer rounding.
    printed = scores_of(ScreeningRule.for_loss("squared", radius, 400), X, y, w * (1 - 1e-10)) < 0.0
    return int((printed & support).sum()), int(support.sum())


def logistic_pair(n, d, radius):
    """n - 1 equal records whose labels have the share that w predicts, hence no gradient; the last against it."""
    ones = math.floor((n - 1) * expit(radius))
    X, y = np.ones((n, d)), np.r_[np.ones(ones), np.zeros(n - ones)]
    return blanked(X, y), (X, y), np.full(d, math.log(ones / (n - 1 - ones)) / d)


def replaced_features_change(n, radius, target):
    """How far a coordinate of the gradient moves when the features of a record change and its target does not."""
    w = radius * np.eye(2)[0]
    y = np.r_[np.zeros(n - 1), target]
    tables = [np.vstack((np.zeros((n - 1, 2)), row)) for row in ([1.0, 1.0], [1.0, -1.0])]
    first, second = (X.T @ (X @ w - y) / n for X in tables)
    return abs(first[1] - second[1])


def repeated_screenings_epsilon(n, d, radius, n_steps, epsilon, delta):
    """RNM-Screen's rule at fixed dense weights on :func:`explicit_pair`: how often nothing is screened."""
    rule, w = ScreeningRule.for_loss("squared", radius, n), np.full(d, radius / d)
    scale = rule.printed_sensitivity * math.sqrt(8 * n_steps * math.log(1 / delta)) / epsilon
    scores = (scores_of(rule, *data, w) for data in explicit_pair(n, d, radius))
    chances = [math.prod(tail(-float(score) / scale) for score in one) for one in scores]
    return binomial_epsilon(delta, n_steps, chances)


def noisy_min_epsilon(sensitivity_over_scale):
    """The index of the smaller of two scores under Laplace noise, far apart, when either moves by its sensitivity."""
    scores, shift = np.array([0.0, 30.0]), sensitivity_over_scale * np.array([1.0, -1.0])
    return epsilon_between(*(laplace_max_law(-s) for s in (scores, scores + shift)))


# ---------------------------------------------------------------------- DP-SIS


def lifted_column(d):
    """Scores of d tied columns, and of the same with one record more that lifts the last but one."""
    return np.zeros(d), np.eye(d)[d - 2]


def printed_sizes_epsilon(d, k, epsilon, law=published_canonical_law):
    """Algorithm 2 on :func:`lifted_column`, gamma = 1/2: what a missing record costs, by enumeration."""
    return epsilon_between(*(law(scores, k, epsilon, 0.5) for scores in lifted_column(d)))


def chance_of_wrong_set(d, k, lead, epsilon, printed):
    """Top-k under exponential noise, gamma = 1/2, where the k best scores lead all others by ``lead``."""
    n_tickets = count_published_tickets(d, k) if printed else len(subsets(d, k))
    return 1.0 - float(permute_and_flip_law(np.r_[0.0, np.full(n_tickets - 1, -lead * epsilon / 4)])[0])


def scaled_by_largest_epsilon(n, epsilon):
    """DP-SIS, k = 1, two columns that are divided by their largest values in the data.

    n records have the value 1/2 in both columns and a target of 1. One record more has the value 1 in the second column
    alone and a target of 0, so that it adds nothing to any sum, but halves the second column.
    """
    X, y = np.full((n, 2), 0.5), np.ones(n)
    more = np.vstack((X, [0.0, 1.0])), np.append(y, 0.0)
    laws = []
    for table, target in ((X, y), more):
        scores = np.abs((table / np.abs(table).max(axis=0)).T @ target)
        laws.append(permute_and_flip_law(epsilon / 2 * scores))
    return epsilon_between(*laws)
