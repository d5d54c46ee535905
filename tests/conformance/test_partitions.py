"""Sparse* and HardThreshold* give the same bits whatever partitions a table is cut into."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.records import Records
from taciturn.engines import ArraySource, add_partitions
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.methods.hard_threshold.plan import ThresholdSettings, plan_hard_threshold
from taciturn.methods.hard_threshold.run import run_hard_threshold
from taciturn.methods.schedule import Problem
from taciturn.methods.sparse.plan import plan_sparse
from taciturn.methods.sparse.run import run_sparse

N_ROWS = 300
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_matrix, "csc": sp.csc_matrix}
LOSSES = {"numbers": (None, 1), "two classes": (LogisticLoss(), 1), "three classes": (SoftmaxLoss(), 3)}


def table(kind, n_features):
    """Some cells empty, some rows null, some columns correlated with the target."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-1.2, 1.2, (N_ROWS, n_features)) * (rng.random((N_ROWS, n_features)) < 0.7) + 0.1
    signal = X[:, 1] - X[:, 3] + 0.3 * rng.normal(size=N_ROWS) + 0.2
    n_classes = 3 if kind == "three classes" else 2
    y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    return X, np.rint(np.clip(0.4 * signal, -1, 1) * ONE) if kind == "numbers" else y


def source(kind, n_features, layout, n_partitions, make=ArraySource):
    X, y = table(kind, n_features)
    slots = np.delete(np.arange(N_ROWS), [0, 17, 18, 250])
    records = Records(LAYOUTS[layout](X[slots]), y[slots], slots, N_ROWS)
    return make(records, 1.0, N_ROWS, n_partitions=n_partitions)


def fit_sparse(kind, n_partitions, layout="dense", n_features=8, make=ArraySource, epsilon=8.0, **changes):
    loss, n_outputs = LOSSES[kind]
    facts = {"n_nonzero": 3, "method": "two-phase", "row_bound": None, "residual_clip": None}
    intercept = changes.pop("intercept", True)
    problem = Problem(loss or HuberLoss(1.0), "zero-out", N_ROWS, n_features, n_outputs, intercept)
    plan = plan_sparse(Budget(epsilon, 1e-6), problem, **facts | changes)
    return run_sparse(plan, source(kind, n_features, layout, n_partitions, make), Stream.of(3)).coefficients


def fit_hard_threshold(kind, n_partitions, layout="dense", n_features=8, make=ArraySource, epsilon=8.0, **changes):
    loss, n_outputs = LOSSES[kind]
    intercept, peeling = changes.pop("intercept", True), changes.pop("peeling", False)
    problem = Problem(loss or HuberLoss(1.0), "zero-out", N_ROWS, n_features, n_outputs, intercept)
    settings = ThresholdSettings(n_nonzero=3, auto_clip=loss is None, clip_share=0.06, **changes)
    plan = plan_hard_threshold(Budget(epsilon, 1e-6), problem, settings, peeling=peeling)
    return run_hard_threshold(plan, source(kind, n_features, layout, n_partitions, make), Stream.of(3))


SPARSE = {
    "two-phase": {},
    "screened by Gumbel noise": {"n_features": 120, "n_nonzero": 2},
    "screened by Gaussian noise": {"n_features": 120, "n_nonzero": 2, "row_bound": 0.5},
    "one-shot": {"method": "one-shot", "n_features": 40},
    "n_nonzero chosen": {"n_nonzero": None},
    "dense": {"n_nonzero": 8},
    "dense, Huber": {"n_nonzero": 8, "huber": True},
    "constant": {"method": "auto", "epsilon": 0.05},
    "public bounds, no intercept": {"row_bound": 1.5, "residual_clip": 0.3, "intercept": False},
    "no noise": {"epsilon": math.inf},
}
HARD_THRESHOLD = {
    "gaussian": {},
    "peeling": {"peeling": True, "average": True},
    "public step": {"step": 0.5, "row_bound": 1.5, "intercept": False},
    "no noise": {"epsilon": math.inf},
}
FITS = [(fit_sparse, name, changes) for name, changes in SPARSE.items()]
FITS += [(fit_hard_threshold, name, changes) for name, changes in HARD_THRESHOLD.items()]


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr("taciturn.methods.descent.MOST_STEPS", 8)
    monkeypatch.setattr("taciturn.methods.descent.NOISELESS_STEPS", 12)
    monkeypatch.setattr("taciturn.methods.hard_threshold.plan.NOISELESS_STEPS", 12)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("fit", "name", "changes"), FITS, ids=[f"{fit.__name__}, {name}" for fit, name, _ in FITS])
def test_partitions_and_layouts_do_not_show(fit, name, changes, kind):
    whole = fit(kind, 1, **changes)
    assert np.isfinite(whole).all()
    assert whole[:, :8].any() == (name != "constant")
    for n_partitions in (4, 41):
        assert np.array_equal(fit(kind, n_partitions, **changes), whole)
    for layout in ("csr", "csc"):
        assert np.array_equal(fit(kind, 4, layout, **changes), whole)


class Compacted(ArraySource):
    """Integers alone, as a source that does not keep its table holds them."""

    def design(self, *, constant=0):
        return super().design(constant=constant).compacted()


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("fit", "name", "changes"), FITS, ids=[f"{fit.__name__}, {name}" for fit, name, _ in FITS])
def test_compacted_tables_do_not_show(fit, name, changes, kind):
    whole = fit(kind, 1, **changes)
    assert np.array_equal(fit(kind, 4, make=Compacted, **changes), whole)
    assert np.array_equal(fit(kind, 4, "csr", make=Compacted, **changes), whole)


class Coarse(ArraySource):
    """Tables that were rounded to half the bits on their way."""

    def design(self, *, constant=0):
        records, unit = self.records, 2.0**-8
        return Design(np.rint(records.X / unit) * unit, self.x_bound).compacted()


def test_a_coarser_table_shows():
    assert not np.array_equal(fit_sparse("numbers", 1, make=Coarse), fit_sparse("numbers", 1))


class LosesPartition(ArraySource):
    def total(self, task):
        return add_partitions(task(block) for block in self._blocks[: max(1, len(self._blocks) - 1)])


@pytest.mark.parametrize("fit", [fit_sparse, fit_hard_threshold])
def test_a_lost_partition_shows(fit):
    assert np.array_equal(fit("numbers", 1, make=LosesPartition), fit("numbers", 1))
    assert not np.array_equal(fit("numbers", 41, make=LosesPartition), fit("numbers", 1))
