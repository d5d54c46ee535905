"""Screened fits end to end: steps and screenings follow the exact law at the stated scales."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from laws import chi_square_p, softmax_law
from scipy.special import expit, ndtr
from scipy.stats import norm

from taciturn import ScreenedClassifier, ScreenedRegressor
from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.data.records import Records
from taciturn.data.sensitivity import safe_rule, screening_test
from taciturn.data.target import numeric_target
from taciturn.engines import ArraySource
from taciturn.losses import HuberLoss, LogisticLoss, SquaredLoss
from taciturn.methods.schedule import Problem
from taciturn.methods.screening.plan import plan_screened
from taciturn.methods.screening.run import run_screened

RADIUS, N_STEPS, RUNS, N = 1.5, 3, 2_000, 9
LOSSES = {"huber": HuberLoss(0.5), "squared": SquaredLoss(), "logistic": LogisticLoss()}
# What one record can do at most; for two classes with the error of the solver's pieces.
INFLUENCE = {"huber": 0.5, "squared": RADIUS + 1, "logistic": expit(RADIUS) + 1e-3}
KAPPA = {"huber": 1.0, "squared": 1.0, "logistic": 0.25 / np.sqrt(expit(RADIUS) * expit(-RADIUS))}


def table(loss):
    rng = np.random.default_rng(5)
    X = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (N, 2))
    return X, rng.integers(0, 2, N) if loss == "logistic" else rng.choice([-1.0, -0.25, 0.5, 1.0], N)


def model(loss, rule, seed=None, **more):
    common = {
        "epsilon": 3.0,
        "delta": 1e-3,
        "radius": RADIUS,
        "n_steps": N_STEPS,
        "rule": rule,
        "screen_at": 2,
        "screen_share": 0.4,
        "threshold": 0.1,
        "fit_intercept": False,
        "random_state": seed,
        **more,
    }
    if loss == "logistic":
        return ScreenedClassifier(classes=(0, 1), **common)
    return ScreenedRegressor(loss=loss, residual_clip=0.5, **common)


def scales_of(certificate):
    """Noise of steps, of selections in screenings and of Gaussian releases, zero-out sensitivities."""
    factor = 2.0 if certificate.relation == "replace-one" else 1.0
    gumbel = [event.scale * factor for event in certificate.events if event.noise == "Gumbel"]
    gaussian = [event.scale for event in certificate.events if event.noise == "Gaussian"]
    return gumbel[0], gumbel[1] if len(gumbel) > 1 else None, gaussian[0] if gaussian else None


def screening_law(loss, rule, relation, w, g, X, select_noise, gauss_noise):
    """{screened coordinates: probability} at one point, all from the definitions."""
    influence = INFLUENCE[loss]
    support = np.flatnonzero(w)
    if support.size == 0:
        return {(): 1.0}
    inner = w @ g
    gap = inner + RADIUS * np.abs(g).max()
    if rule == "adp":
        norms, size = np.sqrt((X**2).sum(axis=0) / N), np.linalg.norm(X @ w) / np.sqrt(N)
        scores = (RADIUS * np.abs(g) + inner) / N + KAPPA[loss] * (RADIUS * norms + size) * np.sqrt(gap / N)
        opposing = LOSSES[loss].opposing_terms(RADIUS)
        declared = safe_rule(opposing, RADIUS, influence, KAPPA[loss], N, g.size, relation).value
        goes = ndtr(-scores / (gauss_noise * declared))
        return {
            tuple(np.flatnonzero(pattern)): np.prod(np.where(pattern, goes, 1 - goes))
            for pattern in product([0, 1], repeat=g.size)
        }
    scores = -np.abs(g[support])
    if rule == "none-option":
        scores = np.append(scores, -0.1 * N * influence)
    law = softmax_law(scores / (select_noise * influence))
    out = {(int(j),): p for j, p in zip(support, law, strict=False)}
    if rule == "none-option":
        out[()] = law[-1]
    if rule == "tested":
        sd = gauss_noise * screening_test(LOSSES[loss].opposing_terms(RADIUS), RADIUS, influence, relation).value
        z = np.linspace(-9.0, 9.0, 4001)
        weight = norm.pdf(z) / norm.pdf(z).sum()
        slack = 2 * KAPPA[loss] * RADIUS * np.sqrt(N * np.maximum(gap + sd * z, 0.0))
        passed = {
            key: float(weight @ norm.cdf(-(RADIUS * abs(g[key[0]]) + inner + slack) / (np.sqrt(2) * sd))) for key in out
        }
        kept = sum(p * (1 - passed[key]) for key, p in out.items())
        out = {key: p * passed[key] for key, p in out.items()} | {(): kept}
    return out


def law_of_fits(loss, rule, X, y, scales, relation="zero-out", permanent=False):
    """{final coefficients: probability}."""
    step_noise, select_noise, gauss_noise = scales
    phi = LOSSES[loss]

    def gradient(w):
        return X.T @ phi.derivative(X @ w, y.astype(float))

    states = {(0.0, 0.0, 0, 0): 1.0}
    for t in range(N_STEPS):
        after = {}
        for (*w, out0, out1), p in states.items():
            w = np.array(w)
            alive = np.flatnonzero(np.array([out0, out1]) == 0)
            if alive.size == 0:
                after[(*w, out0, out1)] = after.get((*w, out0, out1), 0.0) + p
                continue
            g = gradient(w)[alive]
            chances = softmax_law(np.concatenate((-g, g)) / (step_noise * INFLUENCE[loss]))
            for vertex, chance in enumerate(chances):
                new = (1 - 2 / (t + 2)) * w
                new[alive[vertex % alive.size]] += (1 if vertex < alive.size else -1) * RADIUS * 2 / (t + 2)
                moved = [(new, (out0, out1), chance)]
                if (t + 1) % 2 == 0:
                    moved = []
                    law = screening_law(loss, rule, relation, new, gradient(new), X, select_noise, gauss_noise)
                    for gone, q in law.items():
                        rest, out = new.copy(), np.array([out0, out1])
                        rest[list(gone)] = 0.0
                        if permanent:
                            out[list(gone)] = 1
                        moved.append((rest, tuple(out), chance * q))
                for rest, out, q in moved:
                    key = (*np.round(rest, 9) + 0.0, *out)
                    after[key] = after.get(key, 0.0) + p * q
        states = after
    final = {}
    for (*w, _, _), p in states.items():
        key = tuple(np.round(w, 6) + 0.0)
        final[key] = final.get(key, 0.0) + p
    return final


DENSE, SPARSE = np.asarray, sp.csr_matrix
CASES = [
    ("huber", "select", "zero-out", False, DENSE),
    ("squared", "select", "replace-one", True, SPARSE),
    ("logistic", "select", "add-remove", False, SPARSE),
    ("logistic", "none-option", "zero-out", True, DENSE),
    ("huber", "none-option", "replace-one", False, SPARSE),
    ("squared", "tested", "zero-out", False, DENSE),
    ("logistic", "tested", "replace-one", True, SPARSE),
    ("huber", "tested", "add-remove", False, DENSE),
    ("squared", "adp", "zero-out", False, DENSE),
    ("logistic", "adp", "replace-one", True, DENSE),
]


@pytest.mark.parametrize(("loss", "rule", "relation", "permanent", "layout"), CASES)
def test_coefficients_follow_the_exact_law_and_no_other_scale(loss, rule, relation, permanent, layout):
    X, y = table(loss)
    estimator = model(loss, rule, 0, relation=relation, permanent=permanent, n_public=N)
    certificate = estimator.fit(layout(X), y).certificate_
    # The plan of the fit, made once: making it takes longer than following it.
    given = ("n_steps", "rule", "screen_at", "screen_share", "threshold", "permanent")
    plan = plan_screened(
        Budget(estimator.epsilon, estimator.delta),
        Problem(LOSSES[loss], relation, N, X.shape[1]),
        radius=RADIUS,
        **{name: getattr(estimator, name) for name in given},
    )
    assert plan.releases == certificate.events
    target = y if loss == "logistic" else numeric_target(y, (-1.0, 1.0))
    source = ArraySource(Records(layout(X), target, np.arange(N), N), 1.0, N)
    counts = {}
    for seed in range(RUNS):
        solution = run_screened(plan, source, Stream.of(seed))
        key = tuple(np.round(solution.ravel(), 6) + 0.0)
        counts[key] = counts.get(key, 0) + 1
    scales = scales_of(certificate)

    def p_value(factors):
        wrong = [None if scale is None else scale * factor for scale, factor in zip(scales, factors, strict=True)]
        law = law_of_fits(loss, rule, X, y, wrong, relation, permanent)
        assert set(counts) <= set(law)
        return chi_square_p([counts.get(key, 0) for key in law], list(law.values()))

    assert p_value((1.0, 1.0, 1.0)) > 1e-4
    assert p_value((0.5, 1.0, 1.0)) < 1e-4


@pytest.mark.parametrize(
    ("rule", "factors"),
    [("select", (1, 0.25, 1)), ("none-option", (1, 0.4, 1)), ("tested", (1, 1, 0.1)), ("adp", (1, 1, 0.2))],
)
def test_too_little_noise_in_a_screening_is_told_apart(rule, factors):
    # The power of the test above for the second and third scale: the laws themselves are far apart.
    X, y = table("huber")
    scales = scales_of(model("huber", rule, 0).fit(X, y).certificate_)
    true = law_of_fits("huber", rule, X, y, scales)
    wrong = [None if scale is None else scale * factor for scale, factor in zip(scales, factors, strict=True)]
    other = law_of_fits("huber", rule, X, y, wrong)
    keys = list(true)
    assert chi_square_p([round(RUNS * true[key]) for key in keys], [other[key] for key in keys]) < 1e-4


@pytest.mark.parametrize("rule", ["select", "none-option"])
@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_neighbours_stay_within_the_accounted_range(loss, rule):
    X, y = table(loss)
    certificate = model(loss, rule, 0).fit(X, y).certificate_
    scales = scales_of(certificate)
    allowed = sum(event.event.epsilon * event.count for event in certificate.events)
    worst = {1.0: 0.0, 0.15: 0.0}
    for i, factor in product(range(N), worst):
        less = tuple(None if scale is None else scale * factor for scale in scales)
        whole = law_of_fits(loss, rule, X, y, less)
        rest = law_of_fits(loss, rule, np.delete(X, i, axis=0), np.delete(y, i), less)
        worst[factor] = max(worst[factor], *(abs(np.log(whole[key] / rest[key])) for key in whole))
    assert 0.1 * allowed < worst[1.0] <= allowed
    assert worst[0.15] > allowed
