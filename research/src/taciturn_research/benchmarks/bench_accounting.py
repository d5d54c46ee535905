"""Calibrating a plan by the closed form against dp-accounting's privacy-loss distributions."""

from __future__ import annotations

import time

import dp_accounting

from taciturn.accounting import Budget, calibrate
from taciturn.events import GaussianEvent

TARGET = 100.0
"""How many times faster a calibration has to be."""


def rows() -> list[dict[str, object]]:
    """One row; ``ratio`` is dp-accounting's time over ours, so larger is better."""
    n_steps, epsilon, delta = 1000, 1.0, 1e-5

    def ours() -> float:
        return calibrate(Budget(epsilon, delta), lambda scale: GaussianEvent(scale) * n_steps)

    def theirs() -> float:
        found: float = dp_accounting.calibrate_dp_mechanism(
            dp_accounting.pld.PLDAccountant,
            lambda sigma: dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(sigma), n_steps),
            epsilon,
            delta,
            bracket_interval=dp_accounting.LowerEndpointAndGuess(50.0, 150.0),
            tol=0.01,
        )
        return found

    ours()
    start = time.perf_counter()
    for _ in range(20):
        ours()
    mine = (time.perf_counter() - start) / 20
    start = time.perf_counter()
    theirs()
    baseline = time.perf_counter() - start
    case = f"calibrate {n_steps} Gaussian releases, closed form against dp-accounting's PLD"
    return [{"case": case, "ours": mine, "baseline": baseline, "ratio": baseline / mine, "target": TARGET}]
