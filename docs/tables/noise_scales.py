"""The table of noise scales in docs/accounting.md, computed by the package.

Without arguments the table is printed. ``--write`` puts it into the page, between its two markers; ``--check``
exits with 1 if the page holds anything else there.
"""

from __future__ import annotations

import math
import sys

from in_page import run

from taciturn.accounting import Budget, best_bound, calibrate
from taciturn.events import ExponentialEvent, GaussianEvent, LaplaceMaxEvent, PermuteAndFlipEvent

EPSILONS = (0.1, 1.0, 4.9)
STEPS = (100, 1000, 4000)
DELTA = 1e-5
GUMBEL_DEVIATION = math.pi / math.sqrt(6.0)
LAPLACE_DEVIATION = math.sqrt(2.0)

HEADER = (
    "| ε | T | Gumbel b (sd) | proved by | exponential b (sd) | Laplace b (sd) | Gaussian σ |",
    "|---|---|---|---|---|---|---|",
)


def digits(value: float) -> str:
    """Four significant digits."""
    return f"{value:#.4g}".rstrip(".")


def row(epsilon: float, steps: int) -> str:
    """One line: the smallest scales at which ``steps`` releases meet (epsilon, DELTA)."""
    budget = Budget(epsilon, DELTA)
    gumbel = calibrate(budget, lambda b: ExponentialEvent(2.0 / b) * steps)
    flip = calibrate(budget, lambda b: PermuteAndFlipEvent(2.0 / b) * steps)
    laplace = calibrate(budget, lambda b: LaplaceMaxEvent(2.0 / b) * steps)
    gaussian = calibrate(budget, lambda sigma: GaussianEvent(sigma) * steps)
    bound = best_bound(ExponentialEvent(2.0 / gumbel) * steps, DELTA).name
    cells = (
        f"{epsilon:g}",
        f"{steps:,}",
        f"{digits(gumbel)} ({digits(GUMBEL_DEVIATION * gumbel)})",
        bound,
        f"{digits(flip)} ({digits(flip)})",
        f"{digits(laplace)} ({digits(LAPLACE_DEVIATION * laplace)})",
        digits(gaussian),
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The whole table."""
    return "\n".join((*HEADER, *(row(epsilon, steps) for epsilon in EPSILONS for steps in STEPS)))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], "noise_scales", "accounting.md", table))
