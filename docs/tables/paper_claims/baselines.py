"""Baselines of the papers: the two-stage method of Kifer, Smith and Thakurta, and the ADMM of Wang and Zhang."""

from __future__ import annotations

import math

import numpy as np

from paper_claims.claim import FALSE, HOLDS, UNPROVED, Claim, Finding, Paper, down, near, up
from taciturn.accounting import epsilon_of
from taciturn.published import PrivateADMM, TwoStage, TwoStageSelector
from taciturn.published.two_stage import lasso_counts

VOTES = "`BlockVoteSelector` ([selectors](selectors.md))"
SELECTION = "unit/published/test_two_stage_selector.py"
WHOLE = "unit/published/test_published_two_stage.py"


def table(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random records; what is claimed and proved does not depend on them."""
    X = np.random.default_rng(0).uniform(-1, 1, (n, d))
    return X, np.arange(n) % 2


def selection_noise() -> Finding:
    """Laplace noise of scale 2 k / epsilon on every count."""
    proved = TwoStageSelector(n_features_to_select=5, random_state=0).fit(*table(100, 20)).certificate_.proved_epsilon
    return Finding(claimed=1.0, upper=proved)


def slices() -> Finding:
    """How far a count moves when the first record of a list is missing."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (100, 6)), rng.standard_normal(100)
    whole = lasso_counts(X, y, 10, 0.1)
    missing = lasso_counts(X[1:], y[1:], math.isqrt(99), 0.1)
    found = float(np.abs(whole - missing).max())
    return Finding(claimed=1.0, lower=found, numbers={"found": near(found)})


def common_scale() -> Finding:
    """How far a count moves when one record sets the largest value of a column."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 6))
    y = X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(100)
    spoiled = X.copy()
    spoiled[0, 1] = 50.0
    one, other = (lasso_counts(t / np.abs(t).max(axis=0), y, 10, 0.1) for t in (X, spoiled))
    found = float(np.abs(one - other).max())
    return Finding(claimed=1.0, lower=found, numbers={"found": near(found)})


def both_stages() -> Finding:
    """Two halves of the budget and the constants of Algorithm 1 of Kifer et al."""
    proved = (
        TwoStage(n_nonzero=5, delta=1e-5, loss="squared", random_state=0)
        .fit(*table(100, 20))
        .certificate_.proved_epsilon
    )
    return Finding(claimed=1.0, upper=proved, numbers={"proved": up(proved)})


def whole_budget_twice() -> Finding:
    """Half of epsilon for the selection, all of it for the fit."""
    first, second = (
        TwoStage(epsilon=epsilon, n_nonzero=5, delta=1e-5, loss="squared", random_state=0)
        .fit(*table(100, 20))
        .certificate_.events[i]
        for epsilon, i in ((1.0, 0), (2.0, 1))
    )
    proved = epsilon_of(first.total + second.total, 1e-5)
    return Finding(claimed=1.0, upper=proved, numbers={"proved": up(proved)})


def admm() -> Finding:
    """Ten iterations with fresh noise, for a missing record."""
    X, y = table(3000, 4)
    proved = PrivateADMM(random_state=0).fit(X, y).certificate_.proved_epsilon
    return Finding(claimed=1.0, upper=proved, numbers={"proved": up(proved), "wasted": down(1.0 / proved)})


CLAIMS = (
    Claim(
        "Two-stage selection, noise",
        "privacy",
        "k features by Laplace noise of scale 2k/ε on counts are ε-private. The noise is inferred, not printed.",
        HOLDS,
        selection_noise,
        "Each count moves by at most 1 and only the set is released; for a blanked record.",
        (f"{SELECTION}::test_what_the_certificate_admits",),
        VOTES,
        "None at the same mechanism.",
    ),
    Claim(
        "Two-stage selection, slices",
        "privacy",
        "A missing record moves a count by at most 1.",
        FALSE,
        slices,
        "Blocks are slices of a list, √n of them: 100 records, 6 columns, the first record missing: a count moves by "
        "{found}.",
        (f"{SELECTION}::test_a_missing_record_moves_counts_further_than_one",),
        "`BlockVoteSelector` draws blocks at random under add-remove, their number from public facts",
        "A count moves by at most 1.",
    ),
    Claim(
        "Two-stage selection, scaling in the paper on DP-SIS",
        "privacy",
        "The same with columns scaled by all the data.",
        FALSE,
        common_scale,
        "One record sets the largest value of a column: a count moves by {found} of 10.",
        (f"{SELECTION}::test_a_common_scale_moves_counts_further_than_one",),
        "`BlockVoteSelector` scales within blocks, and follows the path in place of a penalty chosen on the data",
        "A count moves by at most 1.",
    ),
    Claim(
        "Two stages, whole",
        "privacy",
        "Two halves of the budget with the constants of Kifer et al. are (ε, δ)-private. The split is inferred.",
        HOLDS,
        both_stages,
        "ε = {proved} is proved for the exact minimiser and a blanked record.",
        (f"{WHOLE}::test_what_the_certificate_admits",),
        "`TwoStageRegressor` also covers the solver's error ([tolerance](models.md#tolerance-and-output-noise))",
        "Huber's loss needs no ball.",
    ),
    Claim(
        "Two stages, a public implementation",
        "privacy",
        "Half of ε for the selection and all of ε for the fit are (ε, δ)-private.",
        UNPROVED,
        whole_budget_twice,
        "ε = {proved} is proved for a stated 1. It also leaves targets unclipped.",
        (f"{WHOLE}::test_spending_the_whole_epsilon_twice_would_not_be_covered",),
        "`TwoStageRegressor`, `TwoStageClassifier`: one accountant for both stages",
        "None.",
    ),
    Claim(
        "Private ADMM",
        "privacy",
        "Iterations that cost (2γ + 0.7)/(cn) each add up to ε. The constants are inferred from users of the method.",
        HOLDS,
        admm,
        "n = 3,000, ten iterations: ε = {proved} is proved for a stated 1, with noise drawn afresh. Code that draws it "
        "once, or stops the solver early, is not covered.",
        ("privacy/test_admm_privacy.py::test_the_printed_claim_holds_with_room_to_spare_under_zero_out",),
        "`ADMMClassifier`: Gaussian noise, one accountant",
        "The stated ε is {wasted} times what is spent.",
    ),
)

BASELINES = Paper("Baselines of the papers", "Baselines", "B", CLAIMS)
