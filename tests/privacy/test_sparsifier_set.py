"""The Sparsifier paper's synthetic set at equal privacy: the sound version against the printed one."""

import numpy as np
import pytest

from taciturn import SparsifiedClassifier
from taciturn.datasets import make_sparsifier_logistic
from taciturn.methods.selection.run import keep_largest_columns
from taciturn.published import PrivateLasso


def scores(coef, X, y, truth):
    support = coef != 0
    f1 = 2 * np.sum(support & truth) / (support.sum() + truth.sum())
    return np.mean((X @ coef > 0) == (y == 1)), f1


@pytest.mark.slow
@pytest.mark.parametrize("n_sets", [5, 20])
def test_the_sound_version_is_ahead_of_the_printed_one(n_sets):
    sound, printed = [], []
    for seed in range(n_sets):
        X, y, coef = make_sparsifier_logistic(random_state=seed)
        delta = 1 / len(y)
        model = SparsifiedClassifier(
            epsilon=1.0, delta=delta, n_nonzero=10, classes=(0, 1), fit_intercept=False, random_state=seed
        ).fit(X, y)
        sound.append(scores(model.coef_.ravel(), X, y, coef != 0))
        assert model.certificate_.epsilon == 1.0
        # As printed, with the same fixed count of ten and the number of steps that serves it best.
        lasso = PrivateLasso(epsilon=1.0, delta=delta, radius=10.0, n_steps=200, random_state=seed).fit(X, y)
        kept = keep_largest_columns(np.atleast_2d(lasso.coef_), 10).ravel()
        printed.append(scores(kept, X, y, coef != 0))
    accuracy, f1 = np.mean(sound, axis=0)
    assert accuracy >= 0.95
    assert f1 >= 0.78
    assert accuracy > np.mean(printed, axis=0)[0]
    assert f1 > np.mean(printed, axis=0)[1]
