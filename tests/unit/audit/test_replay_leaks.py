"""What a replay has to report although the outcomes, the parameters and the sensitivities are all right.

Every test breaks something small and stands beside the same thing unbroken.
"""

import array
import collections
import datetime
import functools
import logging
import math
import sys
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
from replayed_tables import kinds, tables
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

import taciturn.methods.descent as gradient_descent
import taciturn.methods.objective.blocks as admm
import taciturn.methods.objective.run as objective_perturbation
from taciturn import (
    ADMMClassifier,
    BlockVoteSelector,
    BoundedScaler,
    CorrelationSelector,
    HardThresholdClassifier,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    PrivateScaler,
    SparseClassifier,
    compose,
    private_score,
)
from taciturn.accounting import Budget
from taciturn.audit import ReplayError, replay
from taciturn.audit.observing import differing_facts, uncovered
from taciturn.core.errors import CertificateError, DataError
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import ExponentialEvent, GaussianEvent, PureEvent
from taciturn.mechanisms import ExponentialMechanism, GumbelTopK, RoundedGaussian, TwoSidedGeometric
from taciturn.privacy import transcript
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release
from taciturn.privacy.filter import PrivacyFilter, chain_cost


def replayed(model, **sizes):
    return replay(model, *tables(**sizes), relation="zero-out")


# ------------------------------------------------------------------ costs


def repeated(monkeypatch, mechanism, times):
    """Release everything several times, and tell the last; the certificate does not know."""
    once = mechanism.release

    def release(self, value, stream):
        for _ in range(times - 1):
            once(self, value, stream)
        return once(self, value, stream)

    monkeypatch.setattr(mechanism, "release", release)


COSTS = {
    "one after the other": (HardThresholdClassifier(classes=(0, 1), n_nonzero=2), RoundedGaussian),
    "a privacy filter": (SparseClassifier(classes=(0, 1), n_nonzero=2), RoundedGaussian),
    "selections of a privacy filter": (
        SparseClassifier(classes=(0, 1), n_nonzero=2, method="two-phase"),
        ExponentialMechanism,
    ),
    "pairs of quantiles": (
        PrivateScaler(epsilon=25.0, delta=1e-6, tail=0.4, smallest=0.1, largest=10.0, invalid="null"),
        ExponentialMechanism,
    ),
    "one selection": (CorrelationSelector(classes=(0, 1), n_features_to_select=2, mechanism="gumbel"), GumbelTopK),
    "a pipeline": (
        make_pipeline(
            BoundedScaler(lower=-1.0, upper=1.0),
            CorrelationSelector(classes=(0, 1), n_features_to_select=2, mechanism="gumbel"),
        ),
        GumbelTopK,
    ),
    "blocks": (ADMMClassifier(classes=(0, 1), n_blocks=4, n_steps=2), RoundedGaussian),
}


@pytest.mark.parametrize("name", COSTS)
def test_releases_that_the_certificate_does_not_state_are_found(name, monkeypatch):
    model, mechanism = COSTS[name]
    first, second = tables()
    if isinstance(model, PrivateScaler):
        nulled = first["X"].copy()
        nulled[0] = np.nan
        first, second = {"X": first["X"]}, {"X": nulled}
    sound = replay(model, first, second, relation="zero-out")
    assert sound.differences == ()
    # Noise that covers what a solver misses is cheap: it takes more of it.
    times = 200 if name == "blocks" else 2
    repeated(monkeypatch, mechanism, times)
    found = replay(model, first, second, relation="zero-out")
    assert kinds(found) == {"cost"}
    assert len(found.releases) > len(sound.releases)
    # It takes no neighbour to see it.
    assert kinds(replay(model, first, first, relation="zero-out")) == {"cost"}


def test_gradients_that_are_averaged_are_found(monkeypatch):
    release = gradient_descent.GradientDescent.release

    def averaged(self, sums, current, grain, stream):
        found = [release(self, sums, current, grain, stream) for _ in range(9)]
        return np.mean([gradient for gradient, _ in found], axis=0), found[0][1]

    monkeypatch.setattr(gradient_descent.GradientDescent, "release", averaged)
    found = replayed(HardThresholdClassifier(classes=(0, 1), n_nonzero=2))
    assert kinds(found) == {"cost"}
    assert "which the certificate states" in str(found)


def test_a_function_that_scores_twice_is_found():
    model = DummyClassifier(strategy="constant", constant=0).fit([[0.0], [0.0]], [0, 1])

    def twice(X, y, random_state=None):
        private_score(model, X, y, random_state=random_state)
        return private_score(model, X, y, random_state=random_state)

    def once(X, y, random_state=None):
        return private_score(model, X, y, random_state=random_state)

    assert kinds(replayed(once)) == set()
    assert kinds(replayed(twice)) == {"cost"}


def test_less_noise_than_stated_is_found():
    class Louder(CorrelationSelector):
        def fit(self, X, y):
            stated = super().fit(X, y).certificate_
            self.certificate_ = replace(stated, epsilon=self.stated)
            return self

    model = Louder(classes=(0, 1), n_features_to_select=2)
    model.stated = None
    for stated, expected in ((1.0, set()), (1.1, set()), (0.9, {"cost"})):
        Louder.stated = stated
        assert kinds(replayed(model)) == expected


@pytest.mark.parametrize("deltas", [(0.0, 0.0), (1e-6, 0.0, 1e-5, 1e-6, 0.0, 1e-5)])
def test_the_releases_of_a_long_pipeline_are_covered_and_many_more_are_not(deltas, monkeypatch):
    selectors = [
        CorrelationSelector(classes=(0, 1), n_features_to_select=11 - place, epsilon=1.9 / (1 + place), delta=delta)
        for place, delta in enumerate(deltas)
    ]
    model = make_pipeline(*selectors, SparseClassifier(classes=(0, 1), n_nonzero=2, epsilon=2.9))
    assert replayed(model, d=12).differences == ()
    repeated(monkeypatch, RoundedGaussian, 20)
    assert kinds(replayed(model, d=12)) == {"cost"}


@pytest.mark.parametrize(("share", "covered"), [(0.0, True), (5e-10, True), (1e-8, False)])
def test_costs_are_compared_up_to_a_billionth(share, covered):
    # Each is proved by itself, so that the sum is what is stated and the lines cover the releases one by one.
    stated = [
        certify(
            [Release("one of ten", "Gumbel", 2.0 / epsilon, ExponentialEvent(epsilon))],
            Budget(epsilon, 0.0), relation="zero-out", public={}, seeded=False, arithmetic="exact",
        )
        for epsilon in (0.1, 0.3)
    ]  # fmt: skip
    made = [
        (ExponentialMechanism(Sensitivity(1.0, "linf", "zero-out"), epsilon * (1.0 + share)), np.zeros(10))
        for epsilon in (0.1, 0.3)
    ]
    assert (uncovered(compose(*stated), made) is None) == covered


@dataclass(frozen=True)
class Unpriced:
    """A mechanism that does not say what it costs."""

    def release(self, value, stream):
        return transcript.answer(
            lambda: transcript.Call(self, (("l1", 1.0),), lambda outcome: np.array([value])),
            lambda: value + int(stream.laplaces(1)[0]),
        )


def test_a_release_without_a_price_is_found_where_something_is_certified():
    def uncertified(X, y, random_state=None):
        return Unpriced().release(int((y >= 0).sum()), Stream.of(random_state))

    def certified(X, y, random_state=None):
        model = CorrelationSelector(classes=(0, 1), random_state=random_state).fit(X, y)
        model.count_ = uncertified(X, y, random_state)
        return model

    assert kinds(replayed(uncertified)) == set()
    found = replayed(certified)
    assert kinds(found) == {"cost"}
    assert "Unpriced() does not say what it costs" in str(found)


def test_blocks_that_share_a_record_are_found(monkeypatch):
    model = ADMMClassifier(classes=(0, 1), n_blocks=4, n_steps=2)
    assert kinds(replayed(model)) == set()
    solve = admm.solve_admm

    def overlapping(plan, blocks, stream):
        return solve(plan, [blocks[0], blocks[0], *blocks[2:]], stream)

    monkeypatch.setattr(admm, "solve_admm", overlapping)
    found = replayed(model)
    assert kinds(found) == {"cost"}
    assert "blocks 0, 1 change together" in str(found)


def test_the_cost_of_a_chain_is_what_the_filter_sold():
    budget = PrivacyFilter(Budget(1.0, 1e-6))
    events = [
        GaussianEvent(budget.gaussian("a mean", share=0.25)),
        ExponentialEvent(budget.selection("a median", share=0.25)),
        *[ExponentialEvent(budget.selection("three more", share=0.2, count=3))] * 3,
        GaussianEvent(budget.gaussian("the rest", share=budget.remaining)),
    ]
    assert chain_cost(events) == pytest.approx(budget.mu**2, rel=1e-9)
    # A selection is dearer the less comes after it.
    assert chain_cost([*events[:1], *events[5:], *events[1:5]]) > 1.01 * budget.mu**2
    assert chain_cost([PureEvent(0.1)]) == np.inf
    assert chain_cost([]) == 0.0


# ------------------------------------------------------------------ objective perturbation


@pytest.mark.parametrize("kind", [ObjectivePerturbationClassifier, ObjectivePerturbationRegressor])
@pytest.mark.parametrize("by_little", [False, True])
def test_a_solver_that_fails_on_one_neighbour_is_found(kind, by_little, monkeypatch):
    first, second = tables()
    if kind is ObjectivePerturbationRegressor:
        model = kind(epsilon=5.0, invalid="null")
        second["X"] = first["X"].copy()
        second["X"][0] = np.nan
        second["y"] = first["y"]
    else:
        model = kind(classes=(0, 1), epsilon=5.0)
    assert replay(model, first, second, relation="zero-out").differences == ()
    minimise = objective_perturbation.minimise
    n_failures = []

    def failing(rows, targets, *rest):
        point = minimise(rows, targets, *rest)
        if targets.size != 60:
            return point
        n_failures.append(1)
        return point + 1e-4 if by_little else np.zeros_like(point)

    monkeypatch.setattr(objective_perturbation, "minimise", failing)
    # The forced fit shows every digit. The fit that draws shows what no record of any influence could explain.
    for pair in ((second, first), (first, second))[: 1 if by_little else 2]:
        n_failures.clear()
        found = replay(model, *pair, relation="zero-out")
        assert n_failures
        assert kinds(found) == {"sensitivity"}


# ------------------------------------------------------------------ results


class Loop:
    """Refers to itself."""

    def __init__(self, secret):
        self.own, self.secret = self, secret


class Marked(float):
    """A number that carries more."""


def marked(secret):
    number = Marked(1.0)
    number.more = secret
    return number


def holding(secret):
    def told():
        return secret

    return told


HIDING_PLACES = {
    "bytearray": lambda s: bytearray([s]),
    "memoryview": lambda s: memoryview(bytes([s])),
    "deque": lambda s: collections.deque([s]),
    "array": lambda s: array.array("d", [s]),
    "partial": lambda s: functools.partial(print, s),
    "closure": holding,
    "default": lambda s: lambda x=s: x,
    "code": lambda s: eval(f"lambda: {s}"),
    "mask": lambda s: np.ma.array(np.zeros(9), mask=np.arange(9) == s),
    "range": range,
    "slice": slice,
    "datetime": lambda s: datetime.datetime(2020, 1, 1 + s),
    "iterator": lambda s: iter([s]),
    "keys": lambda s: {s: 1}.keys(),
    "values": lambda s: {1: s}.values(),
    "order of keys": lambda s: {s: None, 3 - s: None},
    "bound method": lambda s: [s].append,
    "method": lambda s: Loop(s).__repr__,
    "generator of numpy": np.random.default_rng,
    "objects": lambda s: np.array([s, "text"], dtype=object),
    "attribute of a number": marked,
    "not a number": lambda s: np.uint64(0x7FF8000000000000 + s).view(np.float64).item(),
    "loop": Loop,
    "class": lambda s: type("Made", (), {"secret": s}),
    "error": lambda s: ValueError("text", s),
}


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_everything_that_can_hold_a_number_is_compared(place):
    hide = HIDING_PLACES[place]
    assert differing_facts({"a_": hide(1)}, {"a_": hide(2)})
    if place != "class":
        assert differing_facts({"a_": hide(1)}, {"a_": hide(1)}) == []
    same = hide(1)
    assert differing_facts(same, same) == []


@pytest.mark.parametrize("make", [threading.Lock, lambda: (i for i in ()), lambda: Stream.of(1)])
def test_what_cannot_be_compared_is_no_match(make):
    assert any("cannot be compared" in name for name in differing_facts({"a_": make()}, {"a_": make()}))


def test_functions_and_classes_of_modules_are_compared_by_name():
    assert differing_facts([holding, Loop, len, np.sum, sys], [holding, Loop, len, np.sum, sys]) == []
    assert all(differing_facts(*pair) for pair in ((holding, marked), (len, sum), (Loop, Marked)))


def test_a_result_is_what_it_was_when_its_fit_ended():
    shared = []

    def appended(X, y):
        shared.append(int((y >= 0).sum()))
        return shared

    assert kinds(replayed(appended)) == {"result"}


# ------------------------------------------------------------------ errors and output


def chained(X, y):
    try:
        raise ValueError(f"{int((y < 0).sum())} labels are missing")
    except ValueError as error:
        raise RuntimeError("no fit") from error


def handled(X, y):
    try:
        raise ValueError(f"{int((y < 0).sum())} labels are missing")
    except ValueError:
        raise RuntimeError("no fit") from None


def typed(X, y):
    kind = type("RuntimeError", (KeyError if (y < 0).any() else ValueError,), {})
    raise kind("no fit")


def elsewhere(X, y):
    if (y < 0).any():
        raise RuntimeError("no fit")
    raise RuntimeError("no fit")


def carrying(X, y):
    error = RuntimeError("no fit")
    error.labels = y
    raise error


def failing(X, y):
    raise RuntimeError("no fit")


def refusing(X, y):
    raise DataError("X: expected another table, got this one; pass that.")


def printing(X, y):
    sys.stdout.write(str(int((y < 0).sum())))


def printing_errors(X, y):
    sys.stderr.write(str(int((y < 0).sum())))


def logging_counts(X, y):
    logger = logging.getLogger("taciturn.tests.silent")
    logger.propagate = False
    logger.handlers = [logging.NullHandler()]
    logger.warning("%d labels are missing", (y < 0).sum())


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (chained, "error"),
        (handled, "error"),
        (typed, "error"),
        (elsewhere, "error"),
        (carrying, "error"),
        (printing, "output"),
        (printing_errors, "output"),
        (logging_counts, "log"),
    ],
)
def test_all_that_a_caller_can_see_is_compared(run, kind, capsys):
    assert kinds(replayed(run)) == {kind}
    first, _ = tables()
    if kind != "error":
        assert kinds(replay(run, first, first, relation="zero-out")) == set()
    assert capsys.readouterr() == ("", "")


def test_a_failure_on_both_sides_is_a_difference():
    found = replayed(failing)
    assert kinds(found) == {"error"}
    assert found.error == "RuntimeError: no fit"
    assert "both fits raise RuntimeError: no fit, which is no refusal of taciturn" in str(found)
    with pytest.raises(ReplayError):
        found.raise_if_any()
    # What a caller sees of the failure may differ besides, which is another difference.
    assert all("for the neighbour" in each.words for each in replayed(chained).differences)


def test_the_same_refusal_on_both_sides_is_no_difference_and_says_what_was_not_compared():
    found = replayed(refusing)
    assert found.differences == ()
    assert found.error == "DataError: X: expected another table, got this one; pass that."
    (left_out,) = found.not_compared
    assert left_out == f"results, and releases after the error, since both fits raised {found.error}"
    assert f"not compared: {left_out}" in str(found)


def test_a_refusal_of_another_type_or_text_is_a_difference():
    def typed_refusal(X, y):
        raise (DataError if (y < 0).any() else CertificateError)("X: no.")

    def counting_refusal(X, y):
        raise DataError(f"y: expected labels, {int((y < 0).sum())} are missing.")

    for run in (typed_refusal, counting_refusal):
        found = replayed(run)
        assert kinds(found) == {"error"}
        assert found.error is None
        assert found.not_compared == ("results, and releases after the error, since a fit raised an error",)


def test_a_replay_says_where_it_compared_no_cost():
    assert replayed(SparseClassifier(classes=(0, 1), n_nonzero=2)).not_compared == ()
    (left_out,) = replayed(Accounted()).not_compared
    assert left_out == "the cost of the releases, since the result has no certificate"
    (left_out,) = replayed(SparseClassifier(classes=(0, 1), n_nonzero=2, epsilon=math.inf)).not_compared
    assert left_out == "the cost of the releases, since the status of the certificate is 'not private'"


# ------------------------------------------------------------------ draws


class Coarse(BaseEstimator):
    """Tells whether a count is large, with noise of its own, which is seeded alike in both fits."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        noise = Stream.of(self.random_state).normals(1)[0]
        self.many_ = bool((y >= 0).sum() + 0.01 * noise > 30)
        return self


class Accounted(Coarse):
    """The same by a mechanism."""

    def fit(self, X, y):
        count = TwoSidedGeometric(1, 1.0).release(int((y >= 0).sum()), Stream.of(self.random_state))
        self.many_ = count > 30
        return self


def test_draws_that_no_release_makes_are_found():
    found = replayed(Coarse())
    assert kinds(found) == {"draw"}
    assert "Coarse.fit of" in str(found)
    assert kinds(replayed(Accounted())) == set()


def test_secrets_that_are_declared_are_no_noise(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 4))
    model = BlockVoteSelector(relation="add-remove", n_blocks=5, n_features_to_select=2, delta=1e-5)
    pair = {"X": X, "y": X[:, 0]}, {"X": X[:-1], "y": X[:-1, 0]}
    assert replay(model, *pair, relation="add-remove").differences == ()
    monkeypatch.setattr(
        "taciturn.methods.selection.run.coupling", lambda: transcript.transcribed(transcript._OPEN.get())
    )
    found = replay(model, *pair, relation="add-remove")
    assert kinds(found) == {"draw"}
    assert "random_blocks" in str(found)
