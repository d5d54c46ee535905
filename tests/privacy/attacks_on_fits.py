"""Attacks on fits and on the sums inside them, beside the patches that break these."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
from scipy.special import expit
from sklearn.base import clone

from taciturn import ADMMClassifier, HardThresholdRegressor, SparseRegressor
from taciturn.accounting import PrivacyFilter
from taciturn.audit import Pair, audit, sensitivity_search
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.sensitivity import fixed_point_sum
from taciturn.data.target import numeric_target
from taciturn.engines import Block
from taciturn.losses import HuberLoss
from taciturn.methods import base, clipped_records
from taciturn.methods.clipped_records import ClippedRecords, Clipping, squared_row_norms
from taciturn.methods.descent import GradientDescent
from taciturn.methods.objective import blocks as objective_blocks
from taciturn.methods.objective.blocks import PENALTIES, soft_threshold
from taciturn.methods.releases import Releases
from taciturn.methods.sums import CumulativeCounts
from taciturn.privacy.certificate import compose

UNITS = (-1.0, 1.0)


def one_more(X, y, canary, answer, words):
    """The records (X, y) with and without one more, the last."""
    return Pair((np.vstack((X, canary)), np.append(y, answer)), (X, y), "add-remove", words)


# ------------------------------------------------------------------ gradients


def sums_by_numpy(records, coefficients):
    """Not by compiled loops, which what is patched is no part of."""
    return records.sums_at(records.margins(coefficients))


def residuals_unclipped():
    def weights(records, margins):
        residuals = margins[:, 0] - records._target
        return np.rint(residuals * records._row_bounds / records.clipping.derivative_bound)[:, None]

    return patch.multiple(ClippedRecords, weights=weights, sums=sums_by_numpy)


def descent(**settings):
    """One step along a gradient that is released with noise: coefficients are the transcript."""
    return HardThresholdRegressor(
        delta=1e-5, relation="add-remove", row_bound=1.0, residual_clip=0.05, n_steps=1, step_size=1.0,
        fit_intercept=False, random_state=0, **settings,
    )  # fmt: skip


def large_residual():
    model = descent(n_public=4)
    pair = one_more(0.5 * np.eye(2), np.zeros(2), [1.0, 0.0], 1.0, "one record with twenty times the largest residual")

    def run(data, seed):
        return model.set_params(random_state=seed).fit(*data).coef_

    certificate = model.fit(*pair.first).certificate_
    return audit(
        run, pair, certificate.delta, 60, event="gaussian", claimed=certificate.epsilon, name="HardThresholdRegressor"
    )


def sum_clipped():
    def sums_at(records, margins):
        clipping = records.clipping
        derivatives = clipping.loss.derivative(margins[:, 0], records._target)
        weights = np.rint(derivatives * (clipping.weight_bound / clipping.derivative_bound))
        total = records.design.rmatvec(weights, clipping.weight_bound)
        longest = math.sqrt(clipping.row_squared) * clipping.weight_bound
        return np.trunc(total * min(1.0, longest / max(float(np.linalg.norm(total)), 1.0))).astype(np.int64)[None]

    return patch.multiple(ClippedRecords, sums_at=sums_at, sums=sums_by_numpy)


def gradient_sums():
    """What one record can do to the first gradient, beside what it was declared to do."""
    row_squared, weight = (ONE // 2) ** 2, 1 << 10

    def gradient(X, y):
        design = Design(X, 1.0)
        norms, target = squared_row_norms(design), numeric_target(y, UNITS)
        clipping = Clipping(None, design.n_features, HuberLoss(0.5), 1, row_squared, 0, weight, 0.5)
        records = ClippedRecords(clipping, design, target, norms)
        return records.sums(np.zeros((1, design.n_features)))

    declared = fixed_point_sum(row_squared, weight, "add-remove").value
    return sensitivity_search(gradient, (1.0, UNITS), "add-remove", declared=declared, norm="l2")


# ------------------------------------------------------------------ control flow and public facts


def stops_at_an_exact_zero():
    exact = GradientDescent.run

    def run(self, sums, start, stream, watch=None):
        return exact(self, sums, start, stream, watch) if sums(start).any() else start

    return patch.object(GradientDescent, "run", run)


def first_gradient(seen, words):
    """What is seen of a fit to records whose gradient is zero, and of one more that has a gradient."""
    model = descent(n_public=4)
    pair = one_more(0.5 * np.eye(2), np.zeros(2), [1.0, 0.0], 1.0, words)

    def run(data, seed):
        return seen(model.set_params(random_state=seed).fit(*data))

    certificate = model.fit(*pair.first).certificate_
    return audit(run, pair, certificate.delta, 60, claimed=certificate.epsilon, name="HardThresholdRegressor")


def steps_taken():
    return first_gradient(lambda fitted: bool(fitted.coef_.any()), "a gradient of zero, and one record that has one")


def rows_counted_for_nothing():
    return patch.object(base, "public_rows", lambda relation, n_rows, n_public: n_rows)


def stated_number():
    return first_gradient(lambda fitted: fitted.certificate_.public["records"], "two records, and a third")


# ------------------------------------------------------------------ noise


def seeds_shared():
    exact = Stream.of
    return patch.object(Stream, "of", staticmethod(lambda random_state: exact(random_state // 2)))


def two_folds():
    """The difference of fits on two halves of the records: without noise, where both have the same."""
    model, half = descent(epsilon=0.3, n_public=5), 4
    X, y = np.tile(0.5 * np.eye(2), (4, 1)), np.tile(UNITS, 4)
    pair = one_more(X, y, [1.0, 0.0], 1.0, "one record in the second of two folds")

    def fits(data, seed):
        parts = ([array[rows] for array in data] for rows in (slice(half), slice(half, None)))
        return [clone(model).set_params(random_state=2 * seed + i).fit(*part) for i, part in enumerate(parts)]

    def run(data, seed):
        first, second = fits(data, seed)
        return second.coef_ - first.coef_

    composed = compose(*(fitted.certificate_ for fitted in fits(pair.first, 0)))
    return audit(run, pair, composed.delta, 60, claimed=composed.epsilon, name="two fits of HardThresholdRegressor")


class _OneDraw:
    """A stream whose children for objectives all draw the same."""

    def __init__(self, stream):
        self._stream, self._seed = stream, stream.spawn("objective").below(1 << 62)

    def spawn(self, label):
        return Stream.of(self._seed) if label == "objective" else self._stream.spawn(label)


def noise_reused():
    exact = objective_blocks.solve_admm

    def solve(plan, blocks, stream):
        return exact(plan, blocks, _OneDraw(stream))

    return patch.object(objective_blocks, "solve_admm", solve)


def two_minimisers():
    """Whether the noises of two iterations differ, computed from released minimisers as if the canary were not there.

    The first minimiser has rho w + g(w) = -b, the second rho (w' - z + u) + g(w') = -b', with g the gradient of the
    other records, which the attacker knows. With one draw both sides agree, but for the canary and for rounding.
    """
    X, y = np.array([[0.5], [-0.3], [0.8], [0.2]]), np.array([1, 0, 0, 1])
    model = ADMMClassifier(
        delta=1e-5, relation="add-remove", n_public=5, row_bound=1.0, classes=(0, 1), n_steps=2, fit_intercept=False,
        random_state=0,
    )  # fmt: skip
    pair = one_more(X, y, [[1.0]], 1, "one record, at the bound")
    certificate = model.fit(*pair.first).certificate_
    rho = certificate.public["coupling"]

    def gradient(w):
        return X.T @ (expit(X @ w) - y)

    def run(data, seed):
        released = []

        def recorded(values, kappa):
            released.append((values.copy(), soft_threshold(values, kappa)))
            return released[-1][1]

        with patch.dict(PENALTIES, {"l1": recorded}):
            model.set_params(random_state=seed).fit(*data)
        (w, z), (with_multiplier, _) = released
        w_next = with_multiplier - (w - z)
        difference = rho * (w_next - z + (w - z)) + gradient(w_next) - rho * w - gradient(w)
        return bool(np.abs(difference[0]) > 1e-5)

    return audit(run, pair, certificate.delta, 60, claimed=certificate.epsilon, name="ADMMClassifier")


# ------------------------------------------------------------------ the default model


def audit_default(attribute, pair, event, **settings):
    """Fits with all columns, whose coefficients are sums of noisy gradients."""
    model = SparseRegressor(
        delta=1e-5, relation="add-remove", row_bound=1.0, n_nonzero=1, fit_intercept=False, random_state=0, **settings
    )

    def run(data, seed):
        return getattr(model.set_params(random_state=seed).fit(*data), attribute)

    certificate = model.fit(*pair.first).certificate_
    return audit(run, pair, certificate.delta, 60, event=event, claimed=certificate.epsilon, name="SparseRegressor")


def one_price_for_all_steps():
    exact = PrivacyFilter.gaussian

    def gaussian(budget, what, share, count=1, distance=0.0):
        return exact(budget, what, share, count, distance) / math.sqrt(count)

    return patch.object(PrivacyFilter, "gaussian", gaussian)


def many_gradients():
    X, y = np.ones((4, 1)), np.ones(4)
    pair = one_more(X, y, [1.0], 1.0, "one record more with the largest derivative")
    return audit_default("coef_", pair, "gaussian", n_public=20_000, residual_clip=0.05)


def medians_unpaid():
    def quantile(releases, what, share, statistic, low, high, **ignored):
        grid = np.geomspace(low, high, 1_001)
        counts = releases.source.total(CumulativeCounts(statistic, tuple(grid)))
        return float(grid[min(np.searchsorted(counts[:-1], (counts[-1] + 1) // 2), grid.size - 1)])

    return patch.object(Releases, "quantile", quantile)


def decided_median():
    """How large a coefficient is, which the clip of the residuals bounds."""
    X, y = np.ones((100, 1)), np.repeat([0.0, 1.0], 50)
    pair = one_more(X, y, [1.0], 1.0, "as many small targets as large ones, and one record that decides the median")

    def large(coefficients):
        return abs(coefficients[0]) > 0.2

    return audit_default("coef_", pair, large, n_public=200, loss="huber")


def norms_uncentred():
    return patch.object(clipped_records, "squared_row_norms", lambda design, centre=None: squared_row_norms(design))


def centred_sums():
    """The same search as for plain gradients, with rows less a public centre."""
    row_squared, slope, weight = (ONE // 2) ** 2, 0.5, 1 << 10
    centre = np.full(3, 0.75 * ONE)
    clipping = Clipping(None, 3, HuberLoss(slope), 1, row_squared, 0, weight, slope, centre)

    def gradient(X, y):
        return clipping.records(Block(Design(X, 1.0), numeric_target(y, UNITS))).sums(np.zeros((1, 3)))

    declared = fixed_point_sum(row_squared, weight, "add-remove").value
    return sensitivity_search(gradient, (1.0, UNITS), "add-remove", declared=declared, norm="l2")
