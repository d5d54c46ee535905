"""Attacks on mechanisms, their accounting, their noise and a scaler, beside the patches that break these."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from taciturn import BlockVoteSelector
from taciturn.accounting import Budget, calibrate, epsilon_of
from taciturn.audit import Pair, audit, audit_exact
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.data import sensitivity
from taciturn.data.sensitivity import correlation_scores
from taciturn.events import ComposedEvent, Event, GaussianEvent
from taciturn.mechanisms import ExponentialMechanism, RoundedGaussian
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.methods.selection import run as selection_run
from taciturn.methods.selection.plan import plan_top_k
from taciturn.methods.selection.run import blocks_by_slot, select_top_k
from taciturn.privacy import mechanisms

DELTA = 1e-5

# ------------------------------------------------------------------ noise


def half_the_gaussian_noise():
    exact = mechanisms.rounded_normals
    return patch.object(
        mechanisms, "rounded_normals", lambda stream, size, log2_scale: exact(stream, size, log2_scale - 1)
    )


def noisy_sum():
    log2_scale = 20
    bound = math.floor(2**log2_scale / calibrate(Budget(4.0, DELTA), GaussianEvent))
    mechanism = RoundedGaussian(bound, log2_scale, 2**40)

    def run(records, seed):
        return mechanism.release(records.sum(axis=0), Stream.of(seed))

    others = np.array([[3, -5], [2, 2]])
    pair = Pair(np.vstack((others, [bound, 0])), others, "add-remove", "one record at the bound, along one axis")
    claimed = epsilon_of(mechanism.event, DELTA)
    return audit(run, pair, DELTA, 1000, event="gaussian", claimed=claimed, name="RoundedGaussian")


def half_the_gumbel_noise():
    exact = Stream.gumbels
    return patch.object(Stream, "gumbels", lambda stream, size: 0.5 * exact(stream, size))


def scores_of(data):
    X, y = data
    return np.abs(X.T @ y)


def chosen_column():
    mechanism = ExponentialMechanism(correlation_scores(1.0, 1.0, "add-remove"), 2.0)

    def run(data, seed):
        return mechanism.release(scores_of(data), Stream.of(seed))

    tied, canary = np.ones((3, 101)), np.r_[1.0, np.full(100, -1.0)]
    words = "101 tied columns, and a record that lifts one and lowers the others"
    pair = Pair((np.vstack((tied, canary)), np.ones(4)), (tied, np.ones(3)), "add-remove", words)
    return audit(run, pair, 0.0, 2000, claimed=epsilon_of(mechanism.event, 0.0), name="ExponentialMechanism")


# ------------------------------------------------------------------ accounting and sensitivity


def planned_selection(relation, epsilon, k, statistic, pair, trials):
    """Correlations in a planned top-k; the claim is what its releases are accounted at."""
    n_columns = pair.first[0].shape[1]
    plan = plan_top_k(Budget(epsilon, DELTA), n_columns, k, correlation_scores(1.0, 1.0, relation), method="gumbel")

    def run(data, seed):
        return statistic(select_top_k(plan, scores_of(data), Stream.of(seed)))

    claimed = epsilon_of(ComposedEvent(tuple(release.total for release in plan.releases)), DELTA)
    return audit(run, pair, DELTA, trials, claimed=claimed, name="top-k by Gumbel noise")


def dropped_count():
    return patch.object(Event, "__mul__", lambda event, count: event)


def fifty_selections():
    tied, canary = np.ones((3, 100)), np.repeat([1.0, -1.0], 50)
    words = "100 tied columns, and a record that lifts one half and lowers the other"
    pair = Pair((np.vstack((tied, canary)), np.ones(4)), (tied, np.ones(3)), "add-remove", words)
    return planned_selection("add-remove", 1.0, 50, lambda chosen: np.array([np.sum(chosen < 50)]), pair, 600)


def noise_of_zero_out():
    exact = sensitivity.record_sum

    def halved(bound, norm, relation):
        return replace(exact(bound, norm, "zero-out"), relation=relation)

    return patch.object(sensitivity, "record_sum", halved)


def replaced_record():
    tied, canary = np.ones((3, 21)), np.r_[1.0, np.full(20, -1.0)]
    first, second = (np.vstack((tied, sign * canary)) for sign in (1.0, -1.0))
    words = "21 tied columns, and a record that is replaced by its opposite"
    pair = Pair((first, np.ones(4)), (second, np.ones(4)), "replace-one", words)
    return planned_selection("replace-one", 2.0, 1, lambda chosen: int(chosen[0]), pair, 2000)


# ------------------------------------------------------------------ guards


@contextmanager
def scores_unchecked():
    with (
        patch.object(mechanisms, "check_finite", lambda scores: np.asarray(scores)),
        patch.object(mechanisms, "check_finite", lambda scores: np.asarray(scores)),
        patch.object(mechanisms, "first_of", lambda major, minor: int(np.argmax(major))),
    ):
        yield


def missing_value():
    mechanism = ExponentialMechanism(correlation_scores(1.0, 1.0, "replace-one"), 1.0)

    def run(data, seed):
        try:
            return mechanism.release(scores_of(data), Stream.of(seed))
        except DataError:
            return "refused"

    first, second = np.full((4, 3), 0.5), np.full((4, 3), 0.5)
    first[3, 0] = second[3, 1] = np.nan
    words = "a record without a number in one column, or in another"
    pair = Pair((first, np.ones(4)), (second, np.ones(4)), "replace-one", words)
    return audit(run, pair, 0.0, 200, claimed=epsilon_of(mechanism.event, 0.0), name="ExponentialMechanism")


def bounds_from_the_data():
    exact = BoundedScaler.fit

    def fit(scaler, X, y=None):
        exact(scaler, X)
        scaler.lower_, scaler.upper_ = np.min(X, axis=0), np.max(X, axis=0)
        return scaler

    return patch.object(BoundedScaler, "fit", fit)


def scaled_neighbour():
    """Outputs of the other rows, which are certain: one law has all of its probability where the other has none."""
    others = np.array([[0.1, -0.2], [0.3, 0.4]])

    def law(X):
        return {tuple(BoundedScaler().fit(X).transform(X)[: len(others)].ravel().tolist()): 1.0}

    pair = Pair(np.vstack((others, [1.0, -1.0])), others, "add-remove", "one record at the bounds, beyond all others")
    certificate = BoundedScaler().fit(pair.first).certificate_
    return audit_exact(law, pair, certificate.delta, claimed=certificate.epsilon, name="BoundedScaler")


# ------------------------------------------------------------------ blocks


def blocks_by_position():
    return patch.object(
        selection_run,
        "assign_blocks",
        lambda relation, records, n_blocks, stream, keys=None: blocks_by_slot(records.n_slots, n_blocks),
    )


def shifted_blocks():
    """From row to row either column 0 or column 1 changes, in turn: blocks of two see one of them, or the other."""
    n_blocks = 10
    rows = np.tile([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], (n_blocks // 2, 1))
    target = np.tile([-1.0, 1.0], n_blocks)
    pair = Pair(
        (rows, target), (rows[:-1], target[:-1]), "add-remove", "the last record is missing, and all slices move"
    )
    selector = BlockVoteSelector(relation="add-remove", n_blocks=n_blocks, n_features_to_select=1, random_state=0)

    def run(data, seed):
        return int(np.argmax(selector.set_params(random_state=seed).fit(*data).support_))

    certificate = selector.fit(*pair.first).certificate_

    def first_column(outcome):
        return outcome == 0

    return audit(
        run, pair, certificate.delta, 40, event=first_column, claimed=certificate.epsilon, name="BlockVoteSelector"
    )
