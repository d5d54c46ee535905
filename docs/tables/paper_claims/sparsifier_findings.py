"""Numbers on Private LASSO, Sparsifier, the multinomial form and the code of their appendix."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from paper_claims.claim import Finding, down, near, up
from paper_claims.exact import exact
from paper_claims.reproduced import reproduced
from taciturn import HardThresholdClassifier
from taciturn.accounting import Budget, calibrate, epsilon_of
from taciturn.datasets import make_sparsifier_logistic
from taciturn.events import ExponentialEvent, LaplaceMaxEvent
from taciturn.losses import LogisticLoss, SoftmaxLoss
from taciturn.published import MultinomialPrivateLasso, PrivateLasso, Sparsifier

DELTA, STEPS = 1e-5, 1000
GUMBEL, LAPLACE = math.pi / math.sqrt(6.0), math.sqrt(2.0)


def one_step(epsilon: float) -> float:
    """Of one selection under the printed noise, for a missing record."""
    return epsilon / math.sqrt(2 * STEPS * math.log(1 / DELTA))


def composition() -> Finding:
    """Algorithm 1 at epsilon = 1, delta = 1e-5, for a missing record."""
    proved = epsilon_of(LaplaceMaxEvent(one_step(1.0)) * STEPS, DELTA)
    literal = 1.0 + STEPS * one_step(1.0) * math.expm1(one_step(1.0))
    gumbel = calibrate(Budget(1.0, DELTA), lambda b: ExponentialEvent(2.0 / b) * STEPS)
    return Finding(
        claimed=1.0,
        upper=proved,
        argument=literal,
        numbers={
            "proved": up(proved),
            "literal": near(literal, 4),
            "ratio": near(LAPLACE * 2.0 / one_step(1.0) / (GUMBEL * gumbel)),
        },
    )


def replaced_record() -> Finding:
    """The same for a replaced record; with Gumbel noise of the printed scale it would be proved."""
    proved = epsilon_of(LaplaceMaxEvent(2.0 * one_step(1.0)) * STEPS, DELTA)
    gumbel = epsilon_of(ExponentialEvent(2.0 * one_step(1.0)) * STEPS, DELTA)
    return Finding(claimed=1.0, upper=proved, numbers={"proved": up(proved), "gumbel": up(gumbel)})


def large_epsilon() -> Finding:
    """Where the claim of Algorithm 1 is no longer proved."""
    nine = epsilon_of(LaplaceMaxEvent(one_step(9.0)) * STEPS, DELTA)
    eight = epsilon_of(LaplaceMaxEvent(one_step(8.0)) * STEPS, DELTA)
    return Finding(claimed=9.0, upper=nine, numbers={"nine": up(nine), "eight": up(eight)})


def logistic_constant() -> Finding:
    """Corollary 1, on the largest ball of the experiments."""
    found = float(np.abs(LogisticLoss().derivative(np.array([50.0]), np.array([0.0])))[0])
    return Finding(claimed=1.0, lower=found, upper=float(expit(50.0)))


def curvature() -> Finding:
    """The constant beta in the proof of Theorem 1, attained by a record of ones at w = 0."""
    X = np.ones((1, 3))
    hessian = X.T @ X * expit(0.0) * (1 - expit(0.0))
    return Finding(claimed=0.25, lower=float(np.abs(hessian).max()), upper=LogisticLoss().smoothness)


def bias() -> Finding:
    """Theorem 2 in units of L lambda, p = 100, alpha = 10: what may be lost by keeping c coefficients."""
    p, alpha, beta = 100, 10, 20
    printed = [(p - c) / (c + 1) for c in (alpha, beta)]
    # The p - c smallest of p numbers with a sum of at most lambda sum up to at most lambda (p - c) / p.
    sharp = (p - alpha) / p
    return Finding(
        claimed=1.0,
        lower=sharp,
        upper=sharp,
        argument=printed[0],
        numbers={"alpha": near(printed[0]), "beta": near(printed[1]), "sharp": near(sharp)},
    )


def integer_ends() -> Finding:
    """Theorem 3 where p is a square."""
    X = np.random.default_rng(0).uniform(-1, 1, (6, 100))
    model = Sparsifier(delta=DELTA, n_count_steps=10, random_state=0)
    proved = model.fit(X, np.arange(6) % 2).certificate_.proved_epsilon
    literal = 0.05 + 0.95 + STEPS * one_step(0.95) * math.expm1(one_step(0.95))
    return Finding(claimed=1.0, upper=proved, argument=literal, numbers={"proved": up(proved)})


def fractional_ends() -> Finding:
    """Theorem 3 where p is not a square, p = 120."""
    low, high = math.sqrt(120), 2 * math.sqrt(120)
    twice = exact.kept_count_epsilon((15, 5), low, high, 0.05, 2.0, DELTA)
    once = exact.kept_count_epsilon((5, 30), low, high, 0.05, 1.0)
    features = (118, 54, 60, 68, 100, 112, 123, 300, 2000, 5000)
    fractional = sum(math.isqrt(p) ** 2 != p for p in features)
    return Finding(
        claimed=1.0,
        lower=twice,
        numbers={"twice": down(twice), "once": down(once, 4), "sets": f"{fractional} of {len(features)}"},
    )


def overwritten_count() -> Finding:
    """Appendix B: supports on two neighbours, epsilon = 0.001, delta = 1e-6, over seeds; a set of one size each."""
    X, y = np.eye(2)[[0, 1, 0]], np.ones(3)
    settings = {"loss": "squared", "epsilon_optimise": 1e-3, "epsilon_count": 0.05}
    settings |= {"count_range": (1, 2), "literal_appendix": True}
    laws = []
    for table, target in ((X, y), (X * [[1], [0], [1]], y * [1, 0, 1])):
        sizes = [
            int(
                Sparsifier(n_steps=60, n_count_steps=50, random_state=seed, **settings)
                .fit(table, target)
                .support_.sum()
            )
            for seed in range(10)
        ]
        # The count is a function of the data, so that all seeds agree.
        assert len(set(sizes)) == 1
        laws.append(np.eye(3)[sizes[0]])
    return Finding(claimed=1.0, lower=exact.epsilon_between(*laws, 1e-6))


def ascent() -> Finding:
    """The loss that the appendix's code reaches without noise, against that of zero coefficients."""
    X, y, _ = make_sparsifier_logistic(n_samples=2000, random_state=0)
    found = {}
    for literal in (True, False):
        model = PrivateLasso(epsilon=math.inf, n_steps=200, literal_appendix=literal).fit(X, y)
        margins = X @ model.coef_[0]
        found[literal] = float(np.mean(np.logaddexp(0, margins) - y * margins)), model.score(X, y)
    return Finding(
        claimed=math.log(2.0),
        lower=found[True][0],
        numbers={
            "loss": near(found[True][0]),
            "accuracy": near(100 * found[True][1], 2),
            "right_loss": near(found[False][0]),
            "right_accuracy": near(100 * found[False][1], 2),
        },
    )


def softmax_constant() -> Finding:
    """Theorem 4: the largest entry of the gradient of one record."""
    return Finding(claimed=2.0, upper=SoftmaxLoss().lipschitz(50.0))


def multinomial() -> Finding:
    """Theorem 5: one step, two classes, exact, by the number of features."""
    _, more, y = exact.tied_classes(100)
    model = MultinomialPrivateLasso(epsilon=1.0, delta=DELTA, n_steps=2, random_state=0).fit(more, y)
    chance = exact.chance_of_following(exact.noise_scale_of(model.certificate_), 10.0, 5)
    found = {p: exact.binomial_epsilon(DELTA, p, (0.5, chance)) for p in (100, 1000, 10_000, 100_000)}
    X = np.random.default_rng(0).uniform(-1, 1, (6, 10_000))
    proved = MultinomialPrivateLasso(n_steps=100, delta=DELTA, random_state=0).fit(X, np.arange(6) % 3).certificate_
    # Both in units of the radius over the number of records.
    printed = MultinomialPrivateLasso(n_steps=100, delta=DELTA, radius=1.0).noise_scale(1, 3)
    gumbel = calibrate(Budget(1.0, DELTA), lambda b: ExponentialEvent(2.0 / b) * 100)
    return Finding(
        claimed=1.0,
        lower=found[1000],
        numbers={
            **{f"p{p}": down(value) for p, value in found.items()},
            "proved": up(proved.proved_epsilon),
            "ratio": near(LAPLACE * printed / (GUMBEL * gumbel)),
        },
    )


def stated_ball() -> Finding:
    """The sum of absolute coefficients over the radius, after 30 steps on 40 features and four classes."""
    X = np.random.default_rng(0).uniform(-1, 1, (300, 40))
    model = MultinomialPrivateLasso(radius=1.0, n_steps=30, random_state=0).fit(X, np.arange(300) % 4)
    found = float(np.abs(model.coef_).sum())
    return Finding(claimed=1.0, lower=found, numbers={"found": down(found)})


def informative_count() -> Finding:
    """The chance that the count is an end of its range, p = 100, epsilon_1 = 0.05; at most one half, as read here."""
    law = exact.exact_count_law(15, 10, 20, 0.05)
    ends = law[10] + law[20]
    return Finding(claimed=0.5, lower=ends, numbers={"ends": down(100 * ends)})


def table_2() -> Finding:
    """Printed numbers, and the sound model on the synthetic set at epsilon = 1."""
    found = reproduced("Sparsifier", "Table 2")
    X, y, _ = make_sparsifier_logistic(random_state=0)
    scores = {}
    for name, model in (
        ("printed", Sparsifier(delta=1 / 8000, n_count_steps=1000, random_state=0)),
        ("sound", HardThresholdClassifier(epsilon=1.0, delta=1 / 8000, n_nonzero=10, x_bound=1.0, random_state=0)),
    ):
        model.fit(X[:8000], y[:8000])
        scores[name] = (
            near(100 * model.score(X[8000:], y[8000:]), 3),
            near(100 * roc_auc_score(y[8000:], model.decision_function(X[8000:])), 3),
        )
    numbers = {
        "sound": " / ".join(scores["sound"]),
        "printed": " / ".join(scores["printed"]),
    }
    return replace(found, numbers={**found.numbers, **numbers})
