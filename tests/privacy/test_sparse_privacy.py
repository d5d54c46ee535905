"""The default model tells no more than its certificate says: two runs on neighbours, with the same answers throughout.

Everything that leaves a fit is a function of what its mechanisms answered; what they are asked moves between
neighbours by no more than they declare; and what they cost is what was paid.
"""

import math
from copy import copy
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import taciturn.methods.base as procedure
import taciturn.methods.sparse.run as fits
from taciturn import SparseClassifier, SparseRegressor
from taciturn.accounting import Budget, PrivacyFilter, calibrate
from taciturn.core.rng import Stream
from taciturn.data.records import Records
from taciturn.data.sensitivity import RELATIONS, loss_differences
from taciturn.engines import ArraySource
from taciturn.events import GaussianEvent
from taciturn.mechanisms import ExponentialMechanism, GumbelTopK, RoundedGaussian
from taciturn.methods import clipped_records, releases, sums
from taciturn.methods.clipped_records import ClippedRecords, excess_integers
from taciturn.methods.releases import Releases
from taciturn.methods.sums import CumulativeCounts
from taciturn.privacy.gdp import selection_step

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.core.errors.WeakBudgetWarning")

N, N_PUBLIC = 151, 170


class LeakError(AssertionError):
    """Something moved that must not, or further than it may."""


@dataclass(frozen=True)
class Step:
    """One release: the mechanism, what it was asked, what it answered."""

    mechanism: object
    value: np.ndarray
    answer: object

    def ratio(self, other):
        """How far the neighbour's value is away, in units of what is declared."""
        if self.mechanism != other.mechanism or self.value.shape != other.value.shape:
            raise LeakError("another release")
        pairs = zip(self.value.ravel().tolist(), other.value.ravel().tolist(), strict=True)
        changes = [a - b for a, b in pairs]  # integers of any size
        if isinstance(self.mechanism, RoundedGaussian):
            return math.sqrt(sum(change**2 for change in changes)) / self.mechanism.l2_sensitivity
        sensitivity = self.mechanism.sensitivity
        return max(max(map(abs, changes)) / sensitivity.value, (max(changes) - min(changes)) / sensitivity.spread)


def transcript(monkeypatch, model, X, y, answers=None, n_held=None):
    """All steps of a fit, with given answers if there are any, and with a number of records that stays public."""
    steps = []
    with monkeypatch.context() as patch:
        for kind in (RoundedGaussian, ExponentialMechanism, GumbelTopK):

            def release(self, value, stream, original=kind.release):
                if answers is not None and len(steps) == len(answers):
                    raise LeakError("one release more")
                answer = original(self, value, stream) if answers is None else answers[len(steps)].answer
                assert np.asarray(value).dtype == np.int64
                steps.append(Step(self, np.array(value), answer))
                return answer

            patch.setattr(kind, "release", release)
        if n_held is not None:
            patch.setattr(procedure, "public_rows", lambda *facts: n_held)
        fitted = clone(model).fit(X, y)
    return steps, fitted


def what_each_step_is(steps, certificate):
    """The certificate's lines, one per step; they must come in the order of the steps and at their price."""
    lines, mechanisms = [], iter(step.mechanism for step in steps)
    for line in certificate.events:
        mechanism = next(mechanisms)
        if isinstance(mechanism, RoundedGaussian):
            same = [mechanism, *(next(mechanisms) for _ in range(line.count - 1))]
            assert all(line.scale <= one.event.noise_multiplier <= line.scale * (1 + 1e-4) for one in same)
            lines += [line.what] * line.count
        else:
            assert line.count == (mechanism.k if isinstance(mechanism, GumbelTopK) else 1)
            assert line.scale == 2.0 / mechanism.epsilon
            lines.append(line.what)
    assert next(mechanisms, None) is None
    return lines


def price(steps):
    """What the mechanisms that were really used cost in their order, as a squared Gaussian parameter."""
    total = 0.0
    for step in reversed(steps):
        mechanism = step.mechanism
        if isinstance(mechanism, RoundedGaussian):
            total += mechanism.event.noise_multiplier**-2
        else:
            for _ in range(getattr(mechanism, "k", 1)):
                total = selection_step(total, mechanism.epsilon)
    return total


def compare(monkeypatch, model, first, second):
    """Ratios by line of the certificate; raises LeakError where a neighbour shows."""
    held = len(first[1]) if model.relation == "zero-out" else None
    steps, fitted = transcript(monkeypatch, model, *first)
    again, other = transcript(monkeypatch, model, *second, answers=steps, n_held=held)
    ratios = [here.ratio(there) for here, there in zip(steps, again, strict=False)]
    reached = {}
    for line, step, ratio in zip(what_each_step_is(steps, fitted.certificate_), steps, ratios, strict=False):
        reached[line] = max(reached.get(line, 0.0), ratio)
        if ratio > 1.0:
            raise LeakError(f"moved too far: {line}")
        # Values beyond the magnitude would be clipped, which is allowed, but would hide how far they move.
        assert not isinstance(step.mechanism, RoundedGaussian) or np.abs(step.value).max() <= step.mechanism.magnitude
    if len(again) != len(steps):
        raise LeakError("one release less")
    for name in ("coef_", "intercept_", "n_iter_", "support_"):
        if not np.array_equal(getattr(fitted, name), getattr(other, name)):
            raise LeakError(f"something else in {name}")
    if fitted.certificate_ != other.certificate_:
        raise LeakError("something else on the certificate")
    return reached, steps, fitted


# ------------------------------------------------------------------ tables and their neighbours

WIDTHS = {"none": 12, "gumbel": 80, "gaussian": 120, "wide": 210}


def table(n_classes, screening, scale=1.0):
    """Dense rows, or rows of a few ones; numbers for no classes."""
    rng, d = np.random.default_rng(0), WIDTHS[screening]
    X = rng.uniform(-scale, scale, (N - 1, d)) if screening != "gaussian" else (rng.random((N - 1, d)) < 0.04) * 1.0
    signal = (X[:, 1] - X[:, 3]) / scale + 0.3 * rng.normal(size=N - 1)
    if not n_classes:
        return X, np.clip(0.4 * signal, -1, 1)
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def make_model(n_classes, relation="zero-out", **parameters):
    parameters = {"n_nonzero": 6, "epsilon": 3.0, "random_state": 1} | parameters
    common = {"relation": relation, "n_public": N_PUBLIC} | parameters
    return SparseClassifier(classes=range(n_classes), **common) if n_classes else SparseRegressor(**common)


def adversaries(model, X, y, layout=np.asarray):
    """Records far beyond the row bound along fitted weights, with the worst target and others, and a short one."""
    weights = np.atleast_2d(clone(model).fit(layout(X), y).coef_)
    along = weights[0] if len(weights) == 1 else weights[0] - weights[1]
    x = np.where(along != 0.0, np.sign(along), np.random.default_rng(2).choice([-1.0, 1.0], along.size))
    worst, opposite = (-1.0, 1.0) if isinstance(model, SparseRegressor) else ((0, 1) if len(weights) == 1 else (1, 0))
    # Half of the entries with the other sign: as long, and orthogonal, which is what moves a Gram matrix most.
    turned = np.where(np.arange(x.size) % 2, -x, x)
    return (x, worst), (x, opposite), (turned, opposite), (0.01 * x, 0)


def with_record(X, y, record, layout=np.asarray):
    return layout(np.vstack((X, record[0]))), np.append(y, record[1])


@dataclass(frozen=True)
class Case:
    """A fit in which some releases are made: beginnings of their lines on the certificate."""

    n_classes: int
    releases: tuple[str, ...]
    parameters: dict
    screening: str = "none"
    layout: object = np.asarray
    method: str = "dense"


GRAM, SIZE, NORMS = "the Gram matrix", "one of", "a quantile of row norms"
SLOPE = "derivatives of the loss by the slope"
MEASURED, MOMENTS, COUNTS = "the median magnitude of residuals", "moments", "numbers of records"
PHASES = "a gradient", "a gradient"
WEAK, STRONG = {"n_nonzero": "all", "epsilon": 1.0}, {"n_nonzero": "all", "epsilon": 8.0}
FOUR, AUTO = {"n_nonzero": 4, "method": "two-phase"}, {"n_nonzero": "auto", "method": "two-phase", "epsilon": 8.0}
SHOT, NOTHING = {"n_nonzero": 6, "method": "one-shot"}, {"epsilon": 0.05}
GIVEN = {"row_bound": 1.5, "fit_intercept": False}
CASES = {
    "numbers": Case(0, (GRAM, MEASURED, MOMENTS), STRONG),
    "numbers, Huber": Case(0, (GRAM, MOMENTS), STRONG | {"loss": "huber"}),
    "numbers, given bounds": Case(0, (GRAM,), STRONG | GIVEN | {"residual_clip": 0.2}, layout=sp.csr_array),
    "numbers, weak": Case(0, (NORMS, MEASURED), WEAK, layout=sp.csr_array),
    "two classes": Case(2, (GRAM, COUNTS), STRONG, layout=sp.csr_array),
    "two classes, weak": Case(2, (NORMS,), WEAK),
    "three classes": Case(3, (GRAM, SLOPE), STRONG),
    "three classes, given bounds": Case(3, (), WEAK | GIVEN, layout=sp.csr_array),
    "numbers, wide": Case(0, (MEASURED,), {"n_nonzero": "all"}, "wide"),
    "three classes, wide": Case(3, (NORMS,), {"n_nonzero": "all"}, "wide", sp.csr_array),
    "two-phase": Case(0, PHASES, FOUR, method="two-phase"),
    "two-phase, Gumbel noise": Case(3, ("20 of 80 columns", *PHASES), FOUR, "gumbel", method="two-phase"),
    "two-phase, Gaussian noise": Case(2, ("corr", *PHASES), FOUR, "gaussian", sp.csr_array, "two-phase"),
    "auto": Case(0, (GRAM, SIZE, *PHASES, MOMENTS), AUTO, layout=sp.csr_array, method="two-phase"),
    "auto, Huber": Case(0, (SIZE, *PHASES), AUTO | {"loss": "huber"}, "gumbel", method="two-phase"),
    "auto, two classes": Case(2, (GRAM, SIZE, *PHASES, COUNTS), AUTO, method="two-phase"),
    "auto, none": Case(3, (SIZE, "the share of each class"), AUTO, "gaussian", sp.csr_array, "two-phase"),
    "one-shot": Case(0, ("corr",), SHOT, "gaussian", sp.csr_array, "one-shot"),
    "one-shot, Gumbel noise": Case(2, ("6 of 80 columns",), SHOT, "gumbel", method="one-shot"),
    "constant": Case(0, ("the mean of the target",), NOTHING, method="constant"),
    "constant, three classes": Case(3, ("the share of each class",), NOTHING, layout=sp.csr_array, method="constant"),
}


@pytest.fixture
def short(monkeypatch):
    """Descents of a few steps: their number changes nothing here but the time that it takes."""
    monkeypatch.setattr("taciturn.methods.descent.MOST_STEPS", 12)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", CASES)
def test_neighbours_with_the_same_answers_look_the_same(monkeypatch, name, relation):
    case = CASES[name]
    X, y = table(case.n_classes, case.screening)
    model = make_model(case.n_classes, relation, **case.parameters)
    worst, *others = adversaries(model, X, y, case.layout)
    with_worst = with_record(X, y, worst, case.layout)
    if relation == "replace-one":
        neighbours = [with_record(X, y, other, case.layout) for other in others]
    else:
        neighbours = [(case.layout(X), y)]
    reached = {}
    for neighbour in neighbours:
        found, steps, fitted = compare(monkeypatch, model, with_worst, neighbour)
        reached = {line: max(ratio, reached.get(line, 0.0)) for line, ratio in found.items()}
    # The strategy is the one that was meant, and the budget is spent on what was released, to the last thousandth.
    assert fitted.certificate_.public["method"] == case.method
    for start in case.releases:
        assert sum(line.startswith(start) for line in reached) >= case.releases.count(start), start
    whole = calibrate(Budget(model.epsilon, model.delta), GaussianEvent) ** -2
    assert 0.999 * whole < price(steps) <= whole
    assert (fitted.certificate_.epsilon, fitted.certificate_.bound) == (model.epsilon, "gdp")
    # Near enough to the bounds for one that is half as large to be seen, but where losses and labels agree, or where
    # margins of a fit stay within a bound that is a number.
    loose = SIZE, "the share of each class", SLOPE
    assert all(ratio > 0.5 for line, ratio in reached.items() if not line.startswith(loose))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("relation", RELATIONS)
def test_null_records_are_asked_about_nothing(monkeypatch, n_classes, relation):
    X, y = table(n_classes, "none")
    model = make_model(n_classes, relation, n_nonzero="auto")
    spoiled = y.copy()
    spoiled[:20] = 99
    steps, fitted = transcript(monkeypatch, model, X, spoiled)
    again, other = transcript(monkeypatch, model, X[20:], y[20:], n_held=None if relation == "add-remove" else N - 1)
    assert all(here.ratio(there) == 0.0 for here, there in zip(steps, again, strict=True))
    assert np.array_equal(fitted.coef_, other.coef_)
    assert not np.array_equal(fitted.coef_, clone(model).fit(X, y).coef_)


# ------------------------------------------------------------------ the same comparison refuses what is broken


class UnclippedRows(ClippedRecords):
    """Rows keep their length."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._row_bounds[:], self._factors[:] = self.clipping.weight_bound, 1.0


class UnclippedDerivatives(ClippedRecords):
    """Residuals are put in units of their clip, but not clipped to it."""

    def weights(self, margins):
        unit = self.clipping.weight_bound / self.clipping.derivative_bound
        return np.rint((margins[:, 0] - self._target) * unit)[:, None]

    def sums(self, coefficients):
        return self.sums_at(self.margins(coefficients))


class GramMatrixOfWholeRows(ClippedRecords):
    """The Gram matrix is that of rows as they are."""

    def gram_matrix(self, row_squared, coefficients=None):
        whole = copy(self)
        whole._factors = np.ones_like(self._factors)
        return ClippedRecords.gram_matrix(whole, row_squared, coefficients)


SoundMoments, SoundSlopes = sums.ResidualMoments, sums.SlopeMoments


@dataclass(frozen=True, slots=True, eq=False)
class WholeMoments(SoundMoments):
    """Vectors of a norm of up to two."""

    def __call__(self, block):
        return SoundMoments(self.clipping, self.coefficients, self.reach, self.clip, 2 * self.unit)(block)


def true_centre(plan, releases, columns, mu):
    design = releases.source.design()
    return np.rint((design if columns is None else design.columns(columns)).lattice.mean(axis=0))


def true_quantile(self, what, share, statistic, low, high, **ignored):
    self._budget.selection(what, share)
    grid = np.geomspace(low, high, 1_001)
    counts = self.source.total(CumulativeCounts(statistic, tuple(grid)))
    return float(grid[min(np.searchsorted(counts[:-1], (counts[-1] + 1) // 2), grid.size - 1)])


def true_mean(plan, releases, mu):
    return round(releases.source.records.y.mean()), np.zeros(1)


def true_gram_matrix(self, what, share, clipping):
    matrix = self.source.total(sums.GramMatrix(clipping, 1 << 26)) * (clipping.norm**2 / (1 << 26))
    return matrix, 1e-3 * float(np.trace(matrix))


def fit_by_private_rows(self, original=fits.SparseRun.fit):
    model = original(self)
    return replace(model, weights=model.weights * (1.0 - 1.0 / len(self.descent.source.records.y)))


def true_number(relation, n_rows, n_public):
    return n_rows


def as_zero_out(budget, relation, source, stream):
    return Releases(budget, "zero-out", source, stream)


CLIPPED = clipped_records, "ClippedRecords"
BROKEN = {
    "rows are not clipped": (*CLIPPED, UnclippedRows, "zero-out", "moved too far"),
    "the bound on derivatives is ignored": (*CLIPPED, UnclippedDerivatives, "zero-out", "moved too far: a gradient"),
    "Gram matrix of whole rows": (*CLIPPED, GramMatrixOfWholeRows, "zero-out", "moved too far: the Gram matrix"),
    "Gram matrix of other weights": (releases, "GRAM_WEIGHTS", (12, 24), "zero-out", "moved too far: the Gram matrix"),
    "Gram matrix read off the data": (Releases, "gram_matrix", true_gram_matrix, "zero-out", "moved too far"),
    "moments of a norm of two": (sums, "ResidualMoments", WholeMoments, "zero-out", "moved too far: moments"),
    "centre read off the data": (fits, "column_centre", true_centre, "zero-out", "moved too far"),
    "target's mean read off": (fits, "release_target_mean", true_mean, "zero-out", "moved too far"),
    "quantiles read off the data": (Releases, "quantile", true_quantile, "zero-out", "another release"),
    "number of records under add-remove": (
        *(procedure, "public_rows", true_number),
        *("add-remove", "moved too far|another release|something else on the certificate"),
    ),
    "number of records in the result": (
        *(fits.SparseRun, "fit", fit_by_private_rows),
        *("zero-out", "something else in coef_"),
    ),
    "replacement at half its price": (fits, "Releases", as_zero_out, "replace-one", "moved too far"),
}


def lopsided():
    """Short rows beside one long record, and a target whose clipped residuals do not add up to zero."""
    X, _ = table(0, "none", scale=0.05)
    y = np.where(np.arange(N - 1) % 10 < 7, 0.1, -0.25)
    return X, y + 0.01 * np.sign(X[:, 0])


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", [None, *BROKEN])
def test_broken_variants_are_refused(monkeypatch, name):
    X, y = lopsided()
    *patch, relation, reason = BROKEN[name] if name else ("replace-one", None)
    model = make_model(0, relation, n_nonzero=6, method="two-phase", epsilon=8.0)
    worst, opposite, *_ = adversaries(model, X, y)
    other = with_record(X, y, opposite) if relation == "replace-one" else (X, y)
    if reason is None:
        compare(monkeypatch, model, with_record(X, y, worst), other)
        return
    monkeypatch.setattr(*patch)
    with pytest.raises(LeakError, match=f"^({reason})"):
        compare(monkeypatch, model, with_record(X, y, worst), other)


class LongSlopes(SoundSlopes):
    """Vectors of a norm of up to eight."""

    def __call__(self, block):
        return SoundSlopes(self.clipping, self.coefficients, self.bound, 8 * self.unit)(block)


@pytest.mark.usefixtures("short")
def test_longer_derivatives_by_a_slope_are_refused(monkeypatch):
    X, y = table(3, "none")
    model = make_model(3, **STRONG)
    with_worst = with_record(X, y, adversaries(model, X, y)[0])
    monkeypatch.setattr(sums, "SlopeMoments", LongSlopes)
    with pytest.raises(LeakError, match="moved too far: derivatives of the loss"):
        compare(monkeypatch, model, with_worst, (X, y))


# ------------------------------------------------------------------ sensitivities by search


def scores_of(monkeypatch, relation, excesses, tolerance=0.0):
    """What the choice among models selects from, for excess losses with one column per model."""
    seen, zeros = [], np.zeros(len(excesses))
    source = ArraySource(Records(np.zeros((1, 1)), np.zeros(1), np.arange(1), 1), 1.0, 1)

    # Compiled sums have the same bits: tests/unit/kernels/test_compiled_gradients.py.
    def in_numpy(models, reference, clip, unit):
        assert reference is None
        return np.array([excess_integers(excesses[:, j], zeros, clip, unit).sum() for j in models], dtype=np.int64)

    records = SimpleNamespace(excess_loss_sums=in_numpy)
    clipping = SimpleNamespace(columns=None, records=lambda block: records)
    with monkeypatch.context() as patch:
        patch.setattr(ExponentialMechanism, "release", lambda self, scores, stream: seen.append(scores) or 0)
        choices = Releases(PrivacyFilter(Budget(1.0, 1e-6), 1e-20), relation, source, Stream.of(0))
        models = range(excesses.shape[1])
        choices.best_model(
            "a model", 0.1, clipping, tuple(models), None, 3.0 * np.array(models), (0.15, 1.0), tolerance
        )
    return seen[0]


def moves(draw, statistic, relation, rng):
    """How far a statistic moves between some neighbours with a first record that differs."""
    for _ in range(150):
        records = np.array([draw(rng) for _ in range(5)])
        other = np.vstack((draw(rng), records[1:])) if relation == "replace-one" else records[1:]
        yield np.abs(statistic(records) - statistic(other)).max()


@pytest.mark.parametrize("tolerance", [0.0, 0.25])
@pytest.mark.parametrize("relation", RELATIONS)
def test_loss_differences_move_as_far_as_declared(monkeypatch, relation, tolerance):
    def excesses(rng):
        return rng.choice([-1e6, -0.1, 0.0, 0.1, 1e6], 4)

    declared = loss_differences(1 << 20, relation).value
    found = max(
        moves(
            excesses,
            lambda records: scores_of(monkeypatch, relation, records, tolerance),
            relation,
            np.random.default_rng(0),
        )
    )
    assert 0.999 * declared < found <= declared
