"""The table of claimed and proved epsilons in docs/papers.md, read off the certificates of small runs.

Without arguments the table is printed. ``--write`` puts it into the page, between its two markers; ``--check``
exits with 1 if the page holds anything else there. What is claimed and what is proved depend on the settings and
on the numbers of features and records, not on what the records hold.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from in_page import run

from taciturn.published import (
    DPIGHT,
    DPSIS,
    ADPScreen,
    MultinomialPrivateLasso,
    PrivateADMM,
    PrivateLasso,
    RNMScreen,
    Sparsifier,
    TwoStage,
    TwoStageSelector,
)

DELTA = 1e-5
# The proved epsilons of a screening and of ADMM depend on the number of records; that of the screening papers.
N_ROWS, N_COUNTED_ROWS = 6, 3000
SETTINGS = {"delta": DELTA, "random_state": 0}
COUNTED = {**SETTINGS, "n_count_steps": 10}
DESCENT = {"loss": "logistic", **SETTINGS}
ONCE = {"screen_at": "last", "random_state": 0}

# What the row says, the model, the number of features.
ROWS = (
    ("`PrivateLasso`, logistic, T = 1,000", PrivateLasso(**SETTINGS), 4),
    ("`PrivateLasso`, squared, radius 10, L = 1", PrivateLasso(loss="squared", **SETTINGS), 4),
    ("the same with L = 11", PrivateLasso(loss="squared", gradient_bound=11.0, **SETTINGS), 4),
    ("`Sparsifier`, logistic, T = 1,000, range from √d to 2√d", Sparsifier(**COUNTED), 100),
    ("", Sparsifier(**COUNTED), 120),
    ("the same with `literal_appendix=True`", Sparsifier(literal_appendix=True, **COUNTED), 100),
    ("`MultinomialPrivateLasso`, K = 3, T = 100", MultinomialPrivateLasso(n_steps=100, **SETTINGS), 10),
    ("", MultinomialPrivateLasso(n_steps=100, **SETTINGS), 1000),
    ("`ADPScreen`, squared, radius 5, one screening, L = 1", ADPScreen(loss="squared", **ONCE), 600),
    ("the same with L = 10", ADPScreen(loss="squared", gradient_bound=10.0, **ONCE), 600),
    ("`ADPScreen`, logistic, radius 5, one screening", ADPScreen(**ONCE), 600),
    ("`RNMScreen`, radius 50, L = 1", RNMScreen(random_state=0), 600),
    ("the same with L = 100", RNMScreen(gradient_bound=100.0, random_state=0), 600),
    ("`DPSIS`, k = 1", DPSIS(n_features_to_select=1, random_state=0), 20),
    ("`DPSIS`, k = 5", DPSIS(n_features_to_select=5, random_state=0), 20),
    ("`TwoStageSelector`, k = 5", TwoStageSelector(n_features_to_select=5, random_state=0), 20),
    ("`TwoStage`, squared, k = 5", TwoStage(n_nonzero=5, loss="squared", **SETTINGS), 20),
    ("`DPIGHT`, logistic, Theorem 5.2", DPIGHT(**DESCENT), 4),
    (
        "`DPIGHT`, logistic, Corollary 5.8, δ = 0.01",
        DPIGHT(epsilon=2.0, variant="corollary-5.8", **(DESCENT | {"delta": 0.01})),
        4,
    ),
    (
        "`DPIGHT`, squared, Corollary 5.6",
        DPIGHT(variant="corollary-5.6", oracle=(1.0, 1.0, 1.0), loss="squared", **SETTINGS),
        4,
    ),
    ("`PrivateADMM`, T = 10", PrivateADMM(random_state=0), 4),
)

HEADER = ("| method and setting | features | claimed ε | proved ε | claim proved |", "|---|---|---|---|---|")


def certificate_of_run(model: object, n_features: int) -> object:
    """A run on random records, few where their number does not matter."""
    n_rows = N_COUNTED_ROWS if isinstance(model, ADPScreen | RNMScreen | PrivateADMM) else N_ROWS
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, n_features))
    y = np.arange(n_rows) % (3 if isinstance(model, MultinomialPrivateLasso) else 2)
    return model.fit(X, y).certificate_


def row(what: str, model: object, n_features: int) -> str:
    """One line."""
    certificate = certificate_of_run(model, n_features)
    proved = certificate.proved_epsilon
    # Rounded up: a bound that is rounded down is no bound.
    shown = "none (infinite)" if math.isinf(proved) else f"{math.ceil(proved * 1000) / 1000:.3f}"
    cells = (
        what or "the same",
        f"{n_features:,}",
        f"{certificate.epsilon:g}",
        shown,
        "yes" if proved <= certificate.epsilon else "no",
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The whole table."""
    return "\n".join((*HEADER, *(row(*entry) for entry in ROWS)))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], "published_claims", "papers.md", table))
