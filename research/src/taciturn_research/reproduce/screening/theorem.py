"""Theorem 4 of RNM-Screen: how many coefficients uniform updates and screenings leave.

*Differentially Private Iterative Screening Rules for Linear Regression*, Section 5.3 and appendix C.
"""

from __future__ import annotations

import numpy as np

from taciturn.datasets import Dataset
from taciturn.metrics import nonzeros_under_uniform_screening
from taciturn_research.reproduce.experiment import Claim, Experiment, Finding, Published, Table, seed_of
from taciturn_research.reproduce.numbers import Numbers, Row
from taciturn_research.reproduce.screening.synthetic import RNM_PAPER

__all__ = ["THEOREM_4", "printed_limits", "simulate"]

SIZES = (60, 600)
STEPS = 200
FOREVER = "for ever"
"""Steps enough that nothing changes any more: each feature is updated and screened 30 times on average."""
_TIMES = 30
# Beside which the number of steps is small.
_MANY = 10**9
SIMULATED, CORRECTED = "simulated", "corrected formula"


def printed_limits(n_features: int, n_steps: int) -> tuple[float, float]:
    """The two limits as they are printed: of ever more steps, and of ever more features."""
    d = float(n_features)
    return (d - 1.0) ** 2 * d / ((d - 1.0) * d + 1.0), n_steps - 1.0


def simulate(n_features: int, n_steps: int, rng: np.random.Generator) -> int:
    """How many coefficients are left when every step sets a random one, then zeroes a random one."""
    left = np.zeros(n_features, dtype=bool)
    for updated, screened in rng.integers(n_features, size=(n_steps, 2)):
        left[updated] = True
        left[screened] = False
    return int(left.sum())


def no_data(dataset: Dataset | None) -> None:
    """Nothing is to be prepared."""


def left_rows(prepared: None, seed: int) -> list[Row]:
    """Numbers of coefficients by the corrected formula and by simulation."""
    rng = np.random.default_rng(seed_of(seed, "steps"))
    rows: list[Row] = []
    for d in SIZES:
        for steps, count in ((str(STEPS), STEPS), (FOREVER, _TIMES * d)):
            rows.append({"d": str(d), "steps": steps, "by": SIMULATED, "value": simulate(d, count, rng)})
            rows.append(_formula(d, steps, count))
    rows.append(_formula(_MANY, str(STEPS), STEPS) | {"d": "ever more"})
    return rows


def _formula(n_features: int, steps: str, n_steps: int) -> Row:
    value = nonzeros_under_uniform_screening(n_features, n_steps)
    return {"d": str(n_features), "steps": steps, "by": CORRECTED, "value": value}


def stays_in_proportion(numbers: Numbers) -> Finding:
    """The share that is left for ever is the same for few and for many features, and not small."""
    shares = {d: numbers.mean({"d": str(d), "steps": FOREVER, "by": CORRECTED}) / d for d in SIZES}
    holds = max(shares.values()) - min(shares.values()) < 0.05 and min(shares.values()) > 0.1
    return Finding(holds, ", ".join(f"{share:.3f} of {d}" for d, share in shares.items()))


_REASON = (
    "the proof takes 1/d for the chance that a feature is not updated, which is (d - 1)/d; simulation agrees with "
    "d (d - 1)/(2 d - 1) and T"
)

THEOREM_4 = Experiment(
    name="rnm-theorem-4",
    paper=RNM_PAPER,
    summary="how many coefficients are left if updates and screenings hit features at random",
    relation="none: there are no data",
    scaling="none: there are no data",
    notes=(
        "Printed: (d-1)^2 d/((d-1) d + 1) as the number of steps grows, T - 1 as that of features does; evaluated here "
        f"for the d of the synthetic sets and for T = {STEPS}.",
        f"'{FOREVER}' is {_TIMES} steps for each feature, after which less than 1e-10 of the sum is missing.",
    ),
    trials=20,
    quick_trials=20,
    prepare=no_data,
    run=left_rows,
    published=(
        *(
            Published(
                "Theorem 4",
                {"d": str(d), "steps": FOREVER, "by": CORRECTED},
                round(printed_limits(d, STEPS)[0], 3),
                tolerance=0.5,
                reason=_REASON,
            )
            for d in SIZES
        ),
        Published(
            "Theorem 4",
            {"d": "ever more", "steps": str(STEPS), "by": CORRECTED},
            printed_limits(_MANY, STEPS)[1],
            tolerance=0.5,
            reason=_REASON,
        ),
    ),
    claims=(
        Claim(
            "Theorem 4",
            "Run for ever, it leaves a number of coefficients that is proportional to d.",
            stays_in_proportion,
        ),
    ),
    tables=(Table("Theorem 4", ("d", "steps"), "by"),),
)
