"""Neighbouring tables for replays, and the kinds of differences that one found."""

import numpy as np


def tables(n=60, d=5, seed=0):
    """A table, and the same one without the label of its first record, which is as influential as can be."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[0] = 1.0
    y = (X[:, 0] > 0).astype(int)
    y[0] = 0
    nulled = y.copy()
    nulled[0] = -1
    return {"X": X, "y": y}, {"X": X, "y": nulled}


def kinds(found):
    return {difference.kind for difference in found.differences}
