"""Probabilities of all classes have the slope and the mean that the data have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from taciturn import SparseClassifier
from taciturn.core.validation import FloatArray, IndexArray
from taciturn.methods.sparse import run as fits
from taciturn.methods.sparse.plan import TUNING
from taciturn.methods.sparse.run import expected_slope

N_ROWS = 3000


def classes_table(n_rows: int, n_classes: int) -> tuple[FloatArray, IndexArray]:
    """Labels of a multinomial model on normal features."""
    rng = np.random.default_rng(5)
    X = np.clip(rng.standard_normal((n_rows, 10)) / 3.0, -1.0, 1.0)
    margins = X @ rng.standard_normal((10, n_classes)) * 1.2
    return X, np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)


def slope_needed(n_classes: int) -> float:
    """What logarithms of probabilities have to be multiplied with, on other records of the table; a median of seeds."""
    X, y = classes_table(N_ROWS + 20_000, n_classes)
    found = []
    for seed in range(5):
        model = SparseClassifier(
            epsilon=1.0, x_bound=1.0, n_nonzero="all", classes=tuple(range(n_classes)), random_state=seed
        ).fit(X[:N_ROWS], y[:N_ROWS])
        margins, codes = np.log(model.predict_proba(X[N_ROWS:])), y[N_ROWS:]

        def loss(logarithm: float, margins: FloatArray = margins, codes: IndexArray = codes) -> float:
            scaled = math.exp(logarithm) * margins
            return float(np.mean(logsumexp(scaled, axis=1) - scaled[np.arange(codes.size), codes]))

        found.append(math.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))
    return float(np.median(found))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_have_a_slope_of_one(monkeypatch: pytest.MonkeyPatch, n_classes: int) -> None:
    assert slope_needed(n_classes) == pytest.approx(1.0, abs=0.15)
    monkeypatch.setattr(fits, "recalibration_share", lambda plan, mu: 0.0)
    assert abs(slope_needed(n_classes) - 1.0) > 0.15


def test_a_biased_prior_of_the_slope_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "expected_slope", lambda per_column: 3.0 * expected_slope(per_column))
    assert abs(slope_needed(3) - 1.0) > 0.15


def test_expected_slopes_are_those_of_the_table_and_go_to_one() -> None:
    for place, slope in zip(TUNING.slopes_per_column, TUNING.expected_slopes, strict=True):
        assert expected_slope(place) == pytest.approx(slope)
    assert expected_slope(1e9) == 1.0
