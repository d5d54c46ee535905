"""Bands of survival curves cover the truth at their level, unless they leave an error out."""

import numpy as np
import pytest

from taciturn.data.survival import exit_cells
from taciturn.methods.survival.curve import SurvivalCurve

CUTS = tuple(np.linspace(1.0, 5.0, 5).tolist())
# Of 300 bands that cover with probability 0.945, fewer than 262 do so with a probability below 1e-6.
N_TABLES, FEWEST = 300, 262
TABLES = {
    # Records, epsilon, mean time to the event and to censoring.
    "few records": (500, 1.0, 8.0, 5.0),
    "much noise": (1_000, 0.1, 8.0, 5.0),
    "four of five censored": (4_000, 1.0, 16.0, 3.5),
}


def deviation_of(epsilon):
    return 1.0 / (np.sqrt(2.0) * np.sinh(epsilon / 2.0))


def covered(name, stated=1.0):
    """How many bands cover the truth at each cut; ``stated`` is the share of the noise that they are told."""
    n_records, epsilon, mean, censoring = TABLES[name]
    rng = np.random.default_rng(7)
    stop = 1.0 - np.exp(-epsilon)
    truth = np.exp(-np.array(CUTS) / mean)
    hits = np.zeros(len(CUTS), dtype=int)
    for _ in range(N_TABLES):
        event, end = rng.exponential(mean, n_records), rng.exponential(censoring, n_records)
        signed = np.where(event <= end, event, -end)
        signed = np.where(np.abs(signed) > CUTS[-1], -CUTS[-1], signed)
        counts = np.bincount(exit_cells(signed, CUTS), minlength=15).astype(float)
        counts += rng.geometric(stop, 15) - rng.geometric(stop, 15)
        curve = SurvivalCurve(np.array(CUTS), counts.reshape(5, 3), stated * deviation_of(epsilon), 0.95, None)
        hits += (curve.lower <= truth) & (truth <= curve.upper)
    return hits


@pytest.mark.parametrize("name", TABLES)
def test_bands_cover_at_their_level(name):
    assert (covered(name) >= FEWEST).all()


def test_bands_that_leave_the_noise_out_do_not_cover():
    assert (covered("much noise", stated=0.0) < FEWEST).all()
    assert (covered("much noise", stated=0.5) < FEWEST).all()
