"""Intervals of all measures cover what is true of the population at their level, unless they leave an error out."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error, r2_score, roc_auc_score

from taciturn import HardThresholdClassifier, private_cross_val_score
from taciturn.data.target import ErrorCells, MarginCells, margin_edges, numeric_target
from taciturn.methods.scores import run as scores_run
from taciturn.methods.scores.plan import count_bins
from taciturn.methods.scores.run import measure_errors, measure_margins

BOUNDS = (0.0, 100.0)
POPULATION = 300_000
# Of 300 intervals that cover with probability 0.95, fewer than 266 do so with a probability below 1e-6.
N_TABLES, FEWEST = 300, 266
BUDGETS = {"small": (2_000, 0.2), "large": (4_000, 8.0)}


def deviation_of(epsilon):
    return 1.0 / (np.sqrt(2.0) * np.sinh(epsilon / 2.0))


def geometric_noise(rng, epsilon, size):
    stop = 1.0 - np.exp(-epsilon)
    return rng.geometric(stop, size) - rng.geometric(stop, size)


def labelled(rng, n_records, deviation):
    """Cells of a population, and the truth: a model that is too sure of itself, and one class in four."""
    score = rng.normal(-1.5, 1.2, POPULATION)
    codes = (rng.random(POPULATION) < 1.0 / (1.0 + np.exp(-score))).astype(int)
    margins = 1.3 * score
    probabilities = 1.0 / (1.0 + np.exp(-margins))
    cells = MarginCells(margin_edges(count_bins(n_records, deviation).probabilities, n_records))
    clipped = np.clip(probabilities, 1.0 / n_records, 1.0 - 1.0 / n_records)
    truth = (
        roc_auc_score(codes, margins),
        log_loss(codes, clipped),
        np.mean((margins > 0) == codes),
        probabilities.mean() - codes.mean(),
    )
    return cells, cells.cells(margins[:, None], codes), truth, measure_margins


def numeric(rng, n_records, deviation):
    """The same for numbers, with errors that have heavier tails than normal ones."""
    predicted = rng.normal(45.0, 12.0, POPULATION)
    y = np.clip(predicted + 5.0 * rng.standard_t(6, POPULATION), *BOUNDS)
    predicted = np.clip(predicted, *BOUNDS)
    bins = count_bins(n_records, deviation)
    cells = ErrorCells.of_bins(BOUNDS, bins.numbers, bins.errors)
    truth = r2_score(y, predicted), mean_absolute_error(y, predicted), mean_squared_error(y, predicted)
    return cells, cells.cells(predicted[:, None], numeric_target(y, BOUNDS)), truth, measure_errors


def covered(make, budget, stated=lambda deviation: deviation):
    """How many intervals cover the truth, by measure; ``stated`` is what they are told of the noise."""
    rng = np.random.default_rng(11)
    n_records, epsilon = BUDGETS[budget]
    deviation = deviation_of(epsilon)
    cells, places, truth, measure = make(rng, n_records, deviation)
    shares = np.bincount(places, minlength=cells.n_cells) / POPULATION
    counts = np.zeros(len(truth), dtype=int)
    for _ in range(N_TABLES):
        table = rng.multinomial(n_records, shares) + geometric_noise(rng, epsilon, cells.n_cells)
        found = measure(cells, table.astype(float), stated(deviation))
        counts += [each.lower <= value <= each.upper for each, value in zip(found, truth, strict=True)]
    return counts


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("make", [labelled, numeric])
def test_intervals_cover_at_their_level(make, budget):
    assert (covered(make, budget) >= FEWEST).all()


@pytest.mark.parametrize("make", [labelled, numeric])
def test_intervals_that_leave_out_the_noise_do_not_cover(make):
    assert (covered(make, "small", lambda deviation: 0.0) < FEWEST).all()
    # Nor do those that take the noise for half of what it is.
    assert (covered(make, "small", lambda deviation: 0.5 * deviation) < FEWEST).any()


@pytest.mark.parametrize("make", [labelled, numeric])
def test_intervals_that_leave_out_the_sampling_error_do_not_cover(make, monkeypatch):
    monkeypatch.setattr(scores_run, "cell_variances", lambda counts, deviation: np.full(counts.size, deviation**2))
    assert (covered(make, "large") < FEWEST).all()


def test_intervals_for_two_classes_are_no_wider_than_needed(monkeypatch):
    # A quarter less is not enough for some measure.
    monkeypatch.setattr(scores_run, "QUANTILE", 0.75 * scores_run.QUANTILE)
    assert (covered(labelled, "small") < FEWEST).any()
    assert (covered(labelled, "large") < FEWEST).any()


# ------------------------------------------------------------------ cross-validation

# Of 100 intervals that cover with probability 0.95, fewer than 82 do so with a probability below 1e-6.
N_CROSSED, FEWEST_CROSSED, N_FOLDS, N_RECORDS = 100, 82, 5, 600


def drawn_records(n_records, rng):
    X = rng.uniform(-1.0, 1.0, (n_records, 3))
    return X, (rng.random(n_records) < 1.0 / (1.0 + np.exp(X[:, 1] - 3.0 * X[:, 0]))).astype(int)


def test_intervals_of_a_cross_validation_cover_the_accuracy_of_a_fit_and_those_of_noise_alone_do_not():
    model = HardThresholdClassifier(x_bound=1.0, classes=(0, 1), n_nonzero=2, n_steps=2, epsilon=4.0)
    population, n_fitted = drawn_records(40_000, np.random.default_rng(99)), N_RECORDS * (N_FOLDS - 1) // N_FOLDS
    found, accuracies = [], []
    for seed in range(N_CROSSED):
        rng = np.random.default_rng(seed)
        table = drawn_records(N_RECORDS, rng)
        found.append(private_cross_val_score(model, *table, cv=N_FOLDS, epsilon=1.0, random_state=seed))
        if seed < 20:
            fitted = model.set_params(random_state=seed).fit(*drawn_records(n_fitted, rng))
            accuracies.append(fitted.score(*population))
    truth = np.mean(accuracies)
    assert sum(each.interval[0] <= truth <= each.interval[1] for each in found) >= FEWEST_CROSSED
    noise_alone = [abs(each.value - truth) <= 1.96 * each.std / np.sqrt(N_FOLDS) for each in found]
    assert sum(noise_alone) < FEWEST_CROSSED
