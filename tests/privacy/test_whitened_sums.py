"""Sums in whitened coordinates: what one record or person adds, in exact integers, against what is declared."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import helmert
from scipy.special import expit, softmax

from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.persons import PersonRows
from taciturn.data.records import Records
from taciturn.data.sensitivity import RELATIONS, gram_matrix, jointly_clipped_sum
from taciturn.engines import ArraySource, Block
from taciturn.losses import GammaLoss, LogisticLoss, PoissonLoss, SoftmaxLoss, SquaredLoss
from taciturn.methods.inference.whitened import (
    MATRIX_SCALE,
    ClippedSquares,
    Coordinates,
    InformationSum,
    LabelLoss,
    Lengths,
    LengthWeighing,
    LogLinkModel,
    LongRows,
    MarginLoss,
    MarginNorms,
    NumberLoss,
    Residuals,
    ScoreProducts,
    ScoreSum,
    ScoreWeighing,
    Traces,
)

D, SQUARED, NORM = 3, 1 << 24, 1 << 30
WIDTH = D + 1
KINDS = ("numbers", "Huber", "labels", "classes", "margins", "counts", "amounts")


def setting(kind, seed, *, wild=True):
    """Loss, coordinates, local loss, weighing and its bounds on scores and traces."""
    rng = np.random.default_rng(seed)
    stretch = np.exp(rng.uniform(-1, 4 if wild else 1, WIDTH)) if wild else np.ones(WIDTH)
    rotation = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    at = Coordinates.of((rotation * stretch) @ rotation.T, None, intercept=True)
    size = 3.0 if wild else 0.5
    if kind in ("numbers", "Huber", "margins"):
        n_rows = 2 if kind == "margins" else 1
        coefficients, weighing, clip = rng.normal(0, size, (n_rows, WIDTH)), LengthWeighing(1.5, 1.3), 0.25
        local = (
            MarginLoss(coefficients, clip)
            if kind == "margins"
            else NumberLoss(coefficients, clip, bends=kind == "Huber")
        )
        return SquaredLoss(), at, local, weighing, weighing.norm * clip, weighing.trace
    if kind in ("counts", "amounts"):
        loss = PoissonLoss(0.2, -4.0, 0.3) if kind == "counts" else GammaLoss(0.2, -2.0)
        # Every other one is clipped, too, and has long rows; the others have large derivatives.
        clip, trace = (0.2, 0.5) if seed % 2 else (math.inf, 50.0)
        local = LogLinkModel(rng.normal(0, size, (1, WIDTH)), loss, clip)
        return loss, at, local, ScoreWeighing(local, 0.9, trace), 0.9, trace
    if kind == "labels":
        local = LabelLoss(rng.normal(0, size, (1, WIDTH)), np.array([1.0, 0.4]))
        return LogisticLoss(), at, local, ScoreWeighing(local, 0.9, 0.5), 0.9, 0.5
    local = LabelLoss(rng.normal(0, size, (4, WIDTH)), np.ones(4), helmert(4))
    return SoftmaxLoss(), at, local, ScoreWeighing(local, 5.0, 0.5), 5.0, 0.5


def tasks(kind, seed, **how):
    loss, at, local, weighing, bound, trace = setting(kind, seed, **how)
    found = {
        "gradient": ScoreSum(at, loss, local, weighing, bound, NORM),
        "scores": ScoreProducts(at, loss, local, weighing, bound, SQUARED),
    }
    if kind != "margins":
        found["information"] = InformationSum(at, loss, local, weighing, trace, SQUARED)
    else:
        found["squares"] = ClippedSquares(at, loss, weighing, NORM)
    if kind in ("labels", "margins"):
        found["long rows"] = LongRows(at, loss, (1.0, 2.0, 8.0), 2.0, NORM)
    return found


def records_of(kind, seed, n):
    """Cells and targets, some at and beyond every bound."""
    rng = np.random.default_rng(seed)
    pool = np.array([-1e300, -1.0, -0.37, 0.0, 5e-324, 0.61, 1.0, 1e300])
    X = np.where(rng.random((n, D)) < 0.5, rng.choice(pool, (n, D)), rng.uniform(-1, 1, (n, D)))
    if kind in ("labels", "classes"):
        return X, rng.integers(-1, 2 if kind == "labels" else 4, n)
    if kind in ("counts", "amounts"):
        return X, np.where(rng.random(n) < 0.3, rng.choice([0, ONE], n), rng.integers(0, ONE + 1, n))
    return X, rng.integers(-ONE, ONE + 1, n)


def l2(value):
    return sum(int(each) ** 2 for each in np.ravel(value))


VECTORS = ("gradient", "squares", "long rows")


def beyond(name, total, relation="zero-out"):
    """Whether a sum is more than a record may add, without rounding."""
    if name in VECTORS:
        return l2(total) > Fraction(jointly_clipped_sum(NORM, relation).value) ** 2
    upper = np.triu_indices(len(total))
    weighted = total[upper] * np.where(upper[0] == upper[1], 12, 17)
    return l2(weighted) > Fraction(gram_matrix(SQUARED, relation).value) ** 2


def share(name, total):
    """How much of the bound a sum takes."""
    return math.sqrt(l2(total)) / NORM if name in VECTORS else float(np.trace(total)) / SQUARED


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_one_record_adds_no_more_than_declared(kind, seed):
    X, y = records_of(kind, seed, 12)
    for name, task in tasks(kind, seed).items():
        terms = [task(Block(Design(X[[i]], 1.0), y[[i]])) for i in range(len(y))]
        assert not any(beyond(name, term) for term in terms)
        for relation in RELATIONS:
            # Neighbours under replace-one: the difference of two records' terms.
            if relation == "replace-one":
                assert not any(beyond(name, a - b, relation) for a, b in pairwise(terms))


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), n_rows=st.sampled_from([1, 2, 3, 5, 17, 1009]))
@settings(max_examples=25, deadline=None)
def test_one_person_adds_no_more_than_declared(kind, seed, n_rows):
    X, y = records_of(kind, seed, n_rows)
    if seed % 2:
        X, y = np.tile(X[:1], (n_rows, 1)), np.full(n_rows, y[0])
    block = Block(Design(X, 1.0), y, PersonRows(np.array([n_rows])))
    for name, task in tasks(kind, seed).items():
        assert not beyond(name, task(block))


@pytest.mark.parametrize("n_rows", [2972, 200_003])
@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_a_person_with_very_many_rows_counts_as_one(kind, n_rows):
    X, y = np.ones((n_rows, D)), np.full(n_rows, 0 if kind == "labels" else ONE)
    many, one = (Block(Design(X[:n], 1.0), y[:n], PersonRows(np.array([n]))) for n in (n_rows, 1))
    for name, task in tasks(kind, 3, wild=False).items():
        assert not beyond(name, task(many))
        # Rounding of very many vectors in a matrix takes some of the space for it.
        if name == "gradient" or n_rows < 10_000:
            np.testing.assert_allclose(share(name, task(many)), share(name, task(one)), rtol=0.03)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "margins"])
def test_the_bounds_are_nearly_attained(kind):
    largest = {}
    for seed in range(40):
        X, y = records_of(kind, seed, 10)
        for name, task in tasks(kind, seed).items():
            terms = (task(Block(Design(X[[i]], 1.0), y[[i]])) for i in range(len(y)))
            largest[name] = max(largest.get(name, 0.0), *(share(name, term) for term in terms))
    assert min(largest.values()) > 0.9
    assert max(largest.values()) <= 1.0


@dataclass(frozen=True, slots=True, eq=False)
class UnweightedScores(ScoreSum):
    """Scores as they are, and no check of their norms."""

    def __call__(self, block):
        total = 0
        for rows in self.pieces(block):
            psi = self.model.derivatives(rows) * rows.present[:, None]
            terms = (psi[:, :, None] * rows.u[:, None, :]).reshape(len(psi), -1) * (self.at.unit / self.bound)
            total = total + np.rint(terms * self.norm).astype(object).sum(axis=0)
        return total


@pytest.mark.parametrize("kind", KINDS)
def test_scores_without_weights_are_beyond_the_bound(kind):
    X, y = records_of(kind, 1, 40)
    whole = tasks(kind, 1)["gradient"]
    broken = UnweightedScores(whole.at, whole.loss, whole.model, whole.weighing, whole.bound, whole.norm)
    assert any(beyond("gradient", broken(Block(Design(X[[i]], 1.0), y[[i]]))) for i in range(len(y)))


# ------------------------------------------------------------------ the same bits everywhere


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_records_one_by_one(kind):
    X, y = records_of(kind, 5, 300)
    order = np.random.default_rng(0).permutation(len(y))
    kept = order[:211]
    for task in tasks(kind, 5).values():
        terms = [task(Block(Design(X[[i]], 1.0), y[[i]])) for i in range(len(y))]
        for places in (np.arange(len(y)), order, kept):
            records = Records(X[places], y[places], np.arange(places.size), places.size)
            for n_partitions in (1, 3, 50):
                found = ArraySource(records, 1.0, places.size, n_partitions=n_partitions).total(task)
                np.testing.assert_array_equal(found, sum(terms[i] for i in places))


@pytest.mark.parametrize("kind", ["numbers", "labels", "classes", "margins", "counts", "amounts"])
def test_numbers_for_quantiles_are_those_of_the_records_one_by_one(kind):
    X, y = records_of(kind, 6, 200)
    loss, at, local, _, _, _ = setting(kind, 6)
    statistics = [Lengths(at, loss), MarginNorms(at, loss, local) if kind == "margins" else Traces(at, loss, local)]
    if kind in ("numbers", "counts", "amounts"):
        statistics.append(Residuals(at, loss, local))
    for statistic in statistics:
        whole = statistic.values(Block(Design(X, 1.0), y))
        parts = [statistic.values(Block(Design(X[[i]], 1.0), y[[i]])) for i in range(len(y))]
        np.testing.assert_array_equal(whole, np.concatenate(parts))
        assert whole.size == np.count_nonzero(loss.present(y))


# ------------------------------------------------------------------ what they are, in plain numpy


def plain(kind, X, y, at, local):
    """Rows, derivatives, their largest norms and curvatures over outputs, in floating point."""
    Z = np.column_stack((np.clip(X, -1, 1), np.ones(len(X))))
    U, margins = Z @ at.matrix.T, Z @ local.coefficients.T
    if kind in ("numbers", "Huber"):
        residuals = margins[:, 0] - y / ONE
        inside = np.abs(residuals) <= local.clip if kind == "Huber" else np.ones(len(y))
        psi = np.clip(residuals, -local.clip, local.clip)[:, None]
        return U, psi, np.full(len(y), local.clip), np.asarray(inside, float)[:, None, None], np.ones(len(y))
    if kind in ("counts", "amounts"):
        loss, t = local.loss, y / ONE
        m = np.exp(np.clip(margins[:, 0] - loss.offset, loss.least, 0.0))
        if kind == "counts":
            psi, steep, curved = (m - t) / loss.unit, np.maximum(m, 1 - m) / loss.unit, m / loss.unit
        else:
            psi, steep, curved = 1 - t / m, np.maximum(1, 1 / m - 1), np.ones(len(y))
        psi, steep = np.clip(psi, -local.clip, local.clip)[:, None], np.minimum(steep, local.clip)
        return U, psi, steep, curved[:, None, None], curved
    if kind == "labels":
        weights, rates = local.weights[np.maximum(y, 0)], expit(margins[:, 0])
        steep = np.maximum(local.weights[1] * (1 - rates), local.weights[0] * rates)
        curved = (weights * rates * (1 - rates))[:, None, None]
        return U, ((rates - (y == 1)) * weights)[:, None], steep, curved, rates * (1 - rates)
    rates = softmax(margins, axis=1)
    psi = rates - np.eye(4)[np.maximum(y, 0)]
    steep = np.max([np.linalg.norm(rates - e, axis=1) for e in np.eye(4)], axis=0)
    curved = np.einsum("ik,kl->ikl", rates, np.eye(4)) - rates[:, :, None] * rates[:, None, :]
    coded = np.einsum("ak,ikl,bl->iab", local.coding, curved, local.coding)
    return U, psi @ local.coding.T, steep, coded, 1 - np.square(rates).sum(axis=1)


@pytest.mark.parametrize("kind", ["numbers", "Huber", "labels", "classes", "counts", "amounts"])
def test_sums_are_those_of_numpy(kind):
    rng = np.random.default_rng(8)
    X, y = np.rint(rng.uniform(-1, 1, (400, D)) * ONE) / ONE, records_of(kind, 8, 400)[1]
    loss, at, local, weighing, bound, trace = setting(kind, 8, wild=False)
    U, psi, steep, curved, traces = plain(kind, X, y, at, local)
    lengths = np.linalg.norm(U, axis=1)
    if isinstance(weighing, LengthWeighing):
        reach = weighing.norm / lengths
        w = np.minimum(1, reach) * np.minimum(1, weighing.room * reach)
    else:
        w = np.minimum(1, np.minimum(bound / (steep * lengths), trace / (traces * lengths**2)))
    assert np.mean(w < 0.999) > 0.1
    w = w * loss.present(y)
    scores = np.einsum("i,ik,ij->ikj", w, psi, U).reshape(len(y), -1)
    information = np.einsum("i,ikl,ia,ib->kalb", w, curved, U, U).reshape(scores.shape[1], -1)
    block, found = Block(Design(X, 1.0), y), tasks(kind, 8, wild=False)
    unit = 1 / (SQUARED * MATRIX_SCALE**2)
    np.testing.assert_allclose(found["gradient"](block) * (bound / NORM), scores.sum(axis=0), atol=1e-5 * bound)
    np.testing.assert_allclose(
        found["scores"](block) * (bound**2 * unit), scores.T @ scores, rtol=5e-4, atol=5e-3 * bound**2
    )
    np.testing.assert_allclose(found["information"](block) * (trace * unit), information, rtol=5e-4, atol=5e-3 * trace)
    # Weights that look at the label are others, and so is the sum: they would move what is estimated.
    seen = np.minimum(1, bound / np.maximum(np.linalg.norm(psi, axis=1) * lengths, 1e-9)) * loss.present(y)
    looked = np.einsum("i,ik,ij->kj", seen, psi, U).ravel()
    if kind in ("labels", "classes", "counts", "amounts"):
        assert np.abs(found["gradient"](block) * (bound / NORM) - looked).max() > 0.1 * bound


def test_rows_of_a_person_share_one_weight():
    rng = np.random.default_rng(9)
    counts = rng.integers(1, 6, 60)
    X, y = np.rint(rng.uniform(-1, 1, (counts.sum(), D)) * ONE) / ONE, rng.integers(0, 2, counts.sum())
    loss, at, local, _, bound, trace = setting("labels", 9, wild=False)
    local = replace(local, weights=np.ones(2))
    weighing = ScoreWeighing(local, bound, trace)
    U, psi, steep, _, traces = plain("labels", X, y, at, local)
    lengths, owners = np.linalg.norm(U, axis=1), np.repeat(np.arange(60), counts)

    def mean(values):
        return np.bincount(owners, values) / counts

    w = np.minimum(1, np.minimum(bound / mean(steep * lengths), trace / mean(traces * lengths**2)))
    sums = np.array([w[p] * (psi * U)[owners == p].mean(axis=0) for p in range(60)])
    block = Block(Design(X, 1.0), y, PersonRows(counts))
    gradient = ScoreSum(at, loss, local, weighing, bound, NORM)(block) * (bound / NORM)
    np.testing.assert_allclose(gradient, sums.sum(axis=0), atol=2e-3 * bound)
    unit = bound**2 / (SQUARED * MATRIX_SCALE**2)
    scores = ScoreProducts(at, loss, local, weighing, bound, SQUARED)(block) * unit
    np.testing.assert_allclose(scores, sums.T @ sums, rtol=5e-4, atol=5e-3 * bound**2)
    # A clip of each person's sum looks at its labels.
    whole = np.array([(psi * U)[owners == p].mean(axis=0) for p in range(60)])
    clipped = whole * np.minimum(1, bound / np.linalg.norm(whole, axis=1))[:, None]
    assert np.abs(clipped.sum(axis=0) - gradient).max() > 0.05 * bound


def test_clipped_squares_are_those_of_numpy():
    X, y = records_of("numbers", 4, 300)
    loss, at, _, weighing, _, trace = setting("numbers", 4, wild=False)
    U = np.column_stack((np.rint(np.clip(X, -1, 1) * ONE) / ONE, np.ones(len(X)))) @ at.matrix.T
    reach = weighing.norm / np.linalg.norm(U, axis=1)
    w = np.minimum(1, reach) ** 2 * np.minimum(1, weighing.room * reach)
    found = ClippedSquares(at, loss, weighing, NORM)(Block(Design(X, 1.0), y)) * (trace / NORM)
    np.testing.assert_allclose(found, (w[:, None] * U**2).sum(axis=0), rtol=1e-6)
    # Without the clip of long rows they are the diagonal of the Gram matrix, from which they tell rare directions.
    assert (found < 0.99 * ((w / np.minimum(1, reach))[:, None] * U**2).sum(axis=0)).any()


@dataclass(frozen=True, slots=True, eq=False)
class EveryEntryInFull(LongRows):
    """Counts that do not look at how many entries of a record are long, and no check of their norms."""

    def __call__(self, block):
        total = 0
        for rows in self.pieces(block):
            sizes = np.abs(rows.u) * self.at.unit
            cells = [(sizes > low) & (sizes <= high) for low, high in pairwise((*self.levels, math.inf))]
            terms = np.concatenate(cells, axis=1) * rows.present[:, None] / math.sqrt(self.n_entries)
            total = total + np.trunc(terms * self.norm).astype(object).sum(axis=0)
        return total


def test_long_rows_are_those_of_numpy_and_count_less_along_many_entries():
    X, y = records_of("labels", 4, 300)
    loss, at, *_ = setting("labels", 4)
    levels = (1.0, 2.0, 8.0)
    U = np.column_stack((np.rint(np.clip(X, -1, 1) * ONE) / ONE, np.ones(len(X)))) @ at.matrix.T
    cells = np.stack([(np.abs(U) > a) & (np.abs(U) <= b) for a, b in pairwise((*levels, math.inf))], axis=1)
    shares = (y >= 0) / np.sqrt(np.maximum(cells.sum(axis=(1, 2)), 2.0))
    block = Block(Design(X, 1.0), y)
    found = LongRows(at, loss, levels, 2.0, NORM)(block) / NORM
    np.testing.assert_allclose(found, (cells * shares[:, None, None]).sum(axis=0).ravel(), rtol=1e-6, atol=1e-6)
    broken = EveryEntryInFull(at, loss, levels, 2.0, NORM)
    assert any(beyond("long rows", broken(Block(Design(X[[i]], 1.0), y[[i]]))) for i in range(len(y)))


def test_rows_of_a_person_are_parts_of_one_count():
    X, y = np.ones((6, D)), np.ones(6, dtype=int)
    loss, at, *_ = setting("labels", 4)
    task = LongRows(at, loss, (1.0, 2.0, 8.0), 2.0, NORM)
    one, many = (task(Block(Design(X[:n], 1.0), y[:n], PersonRows(np.array([n])))) for n in (1, 6))
    assert l2(one) > 0
    np.testing.assert_allclose(many, one, rtol=1e-6)
