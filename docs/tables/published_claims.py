"""The table of claimed and proved epsilons in docs/published.md, read off the certificates of small runs.

Without arguments the table is printed. ``--write`` puts it into the page, between its two markers; ``--check``
exits with 1 if the page holds anything else there. What is claimed and what is proved depend on the settings and
on the number of features, not on the records.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from in_page import run

from taciturn.published import MultinomialPrivateLasso, PrivateLasso, Sparsifier

DELTA = 1e-5
N_ROWS = 6
SETTINGS = {"delta": DELTA, "random_state": 0}
COUNTED = {**SETTINGS, "n_count_steps": 10}

# What the row says, the model, the number of features.
ROWS = (
    ("`PrivateLasso`, logistic, T = 1,000", PrivateLasso(epsilon=0.1, **SETTINGS), 4),
    ("", PrivateLasso(epsilon=1.0, **SETTINGS), 4),
    ("", PrivateLasso(epsilon=4.9, **SETTINGS), 4),
    ("`PrivateLasso`, squared, radius 10, L = 1", PrivateLasso(loss="squared", **SETTINGS), 4),
    ("the same with L = 11", PrivateLasso(loss="squared", gradient_bound=11.0, **SETTINGS), 4),
    ("`Sparsifier`, logistic, T = 1,000, range from √d to 2√d", Sparsifier(**COUNTED), 100),
    ("", Sparsifier(**COUNTED), 120),
    ("the same with `literal_appendix=True`", Sparsifier(literal_appendix=True, **COUNTED), 100),
    ("`MultinomialPrivateLasso`, K = 3, T = 100", MultinomialPrivateLasso(n_steps=100, **SETTINGS), 10),
    ("", MultinomialPrivateLasso(n_steps=100, **SETTINGS), 100),
    ("", MultinomialPrivateLasso(n_steps=100, **SETTINGS), 1000),
    ("", MultinomialPrivateLasso(n_steps=100, **SETTINGS), 10_000),
)

HEADER = ("| method and setting | features | claimed ε | proved ε | claim proved |", "|---|---|---|---|---|")


def certificate_of_run(model: object, n_features: int) -> object:
    """A run on a few random records."""
    X = np.random.default_rng(0).uniform(-1, 1, (N_ROWS, n_features))
    y = np.arange(N_ROWS) % (3 if isinstance(model, MultinomialPrivateLasso) else 2)
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
    sys.exit(run(sys.argv[1:], "published_claims", "published.md", table))
