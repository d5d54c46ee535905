"""Replay finds every kind of leak that it looks for, and says nothing where there is none."""

import math
from types import MappingProxyType

import numpy as np
import pytest
import scipy.sparse as sp
from replayed_tables import kinds, tables
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline

from taciturn import (
    BlockVoteSelector,
    BoundedScaler,
    CorrelationSelector,
    FrankWolfeClassifier,
    HardThresholdClassifier,
    SparseClassifier,
    private_score,
)
from taciturn.audit import ReplayError, replay
from taciturn.audit.engine import shares_of_limits
from taciturn.audit.observing import differing_facts
from taciturn.core.errors import DataError, ParameterError, WeakBudgetWarning
from taciturn.core.guard import warn_caller
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.mechanisms import (
    CanonicalLipschitz,
    ExponentialMechanism,
    FloatGaussian,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    PrivateQuantile,
    RoundedGaussian,
    TwoSidedGeometric,
)
from taciturn.methods.frank_wolfe import run as frank_wolfe_run
from taciturn.privacy import transcript

UNIT = Sensitivity(1.0, "linf", "zero-out")


# ------------------------------------------------------------------ the door of releases

MECHANISMS = [
    (RoundedGaussian(4.0, 10, 1 << 20), np.array([3, 1])),
    (FloatGaussian(1.0, 2.0), np.array([3.0, 1.0])),
    (TwoSidedGeometric(2, 1.0), 7),
    (TwoSidedGeometric(2, 1.0), np.array([7, 8])),
    *((kind(UNIT, 1.0), np.array([3.0, 1.0, 2.0])) for kind in (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)),
    *((kind(UNIT, 2, 1.0), np.array([3, 1, 2, 5])) for kind in (GumbelTopK, LaplaceTopK, CanonicalLipschitz)),
    (PeelingTopK(PermuteAndFlip(UNIT, 1.0), 2), np.array([3, 1, 2, 5])),
    (PrivateQuantile((0.0, 1.0, 2.0), 0.5, "zero-out", 1.0), np.array([0.5, 1.5])),
]


class Listener:
    """A transcript that draws and listens."""

    def __init__(self):
        self.calls = []
        self.draws = 0

    def notice(self):
        self.draws += 1

    def answer(self, call, draw):
        outcome = draw()
        self.calls.append((call, outcome))
        return outcome


@pytest.mark.parametrize(("mechanism", "value"), MECHANISMS, ids=lambda each: type(each).__name__)
def test_every_mechanism_passes_the_transcript_and_draws_the_same_there(mechanism, value):
    listener = Listener()
    alone = mechanism.release(value, Stream.of(3))
    with transcript.transcribed(listener):
        heard = mechanism.release(value, Stream.of(3))
    assert np.array_equal(alone, heard)
    # All that a mechanism draws belongs to its release.
    assert listener.draws == 0
    assert len(listener.calls) == (2 if isinstance(mechanism, PeelingTopK) else 1)
    assert all(call.limits and all(limit > 0.0 for _, limit in call.limits) for call, _ in listener.calls)
    # The context ends with the listening.
    mechanism.release(value, Stream.of(3))
    assert len(listener.calls) <= 2
    assert not transcript.transcribing()


def test_a_transcript_is_closed_by_an_error():
    with pytest.raises(RuntimeError), transcript.transcribed(Listener()):
        raise RuntimeError
    assert not transcript.transcribing()


# ------------------------------------------------------------------ what is sound

SOUND = [
    SparseClassifier(classes=(0, 1), n_nonzero=2, method="two-phase"),
    HardThresholdClassifier(classes=(0, 1), n_nonzero=2, mechanism="peeling"),
    FrankWolfeClassifier(classes=(0, 1), n_steps=5),
    FrankWolfeClassifier(classes=(0, 1), n_steps=5, delta=0.0),
    CorrelationSelector(classes=(0, 1), n_features_to_select=2),
    make_pipeline(BoundedScaler(lower=-1.0, upper=1.0), CorrelationSelector(classes=(0, 1), n_features_to_select=2)),
]


@pytest.mark.parametrize("model", SOUND, ids=lambda model: type(model).__name__)
def test_sound_models_leave_no_difference_and_use_their_sensitivity(model):
    first, second = tables()
    if hasattr(model, "steps"):
        first, second = ({"X": each["X"], "y": each["y"]} for each in (first, second))
    found = replay(model, first, second, relation="zero-out")
    assert found.differences == ()
    assert found.error is None
    assert found.releases
    # The record is one that uses up nearly all of some declared sensitivity.
    assert 0.9 < found.largest_share <= 1.0
    found.raise_if_any()
    assert "no difference" in str(found)


def test_the_first_fit_of_a_process_is_like_all_others():
    frank_wolfe_run.warm_up.cache_clear()
    found = replay(FrankWolfeClassifier(classes=(0, 1), n_steps=3), *tables(), relation="zero-out")
    assert found.differences == ()
    assert len(found.releases) == 3


def test_functions_are_replayed_too():
    model = DummyClassifier(strategy="constant", constant=0).fit([[0.0], [0.0]], [0, 1])
    first, second = ({"estimator": model, **each} for each in tables())
    found = replay(private_score, first, second, relation="zero-out")
    assert found.differences == ()
    assert found.releases == (("TwoSidedGeometric", 1.0),)
    assert found.name == "private_score"


def test_keys_keep_records_in_their_blocks():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 4))
    y = X[:, 0]
    keys = np.arange(40)
    model = BlockVoteSelector(relation="add-remove", n_blocks=5, n_features_to_select=2, delta=1e-5)
    gone = np.arange(40) != 11
    found = replay(
        model, {"X": X, "y": y, "keys": keys}, {"X": X[gone], "y": y[gone], "keys": keys[gone]}, relation="add-remove"
    )
    assert found.differences == ()
    assert found.releases
    # Rows that move up without keys change blocks, which is no fault of the selector's.
    shifted = replay(model, {"X": X, "y": y}, {"X": X[gone], "y": y[gone]}, relation="add-remove")
    assert kinds(shifted) <= {"sensitivity"}


# ------------------------------------------------------------------ mutants


@pytest.mark.parametrize(
    ("function", "relation", "number"), [("target_parts", "replace-one", 1), ("correlation_scores", "zero-out", 2)]
)
def test_a_sensitivity_of_half_the_size_is_found(monkeypatch, function, relation, number):
    import taciturn.methods.selection.plan as module

    declared = getattr(module, function)

    def halved(*given):
        sensitivity = declared(*given)
        return Sensitivity(sensitivity.value / 2.0, sensitivity.norm, sensitivity.relation)

    monkeypatch.setattr(module, function, halved)
    model = CorrelationSelector(classes=(0, 1), relation=relation, n_features_to_select=2)
    first, second = tables()
    if relation == "replace-one":
        second["y"][0] = 1
    found = replay(model, first, second, relation=relation)
    assert kinds(found) == {"sensitivity"}
    assert found.largest_share == pytest.approx(2.0, rel=0.1)
    assert str(found).startswith(f"Replay of CorrelationSelector ({relation}): 2 releases compared, ")
    with pytest.raises(ReplayError, match=f"sensitivity: number {number}"):
        found.raise_if_any()


def test_a_sensitivity_too_small_by_one_unit_is_found():
    def released(X, random_state=None):
        mechanism = RoundedGaussian(15.0, 10, 1 << 20)
        return mechanism.release(np.array([int(X.sum())]), Stream.of(random_state)).tolist()

    table = np.array([[3], [15]])
    within = replay(released, {"X": table}, {"X": table - [[0], [15]]}, relation="replace-one")
    beyond = replay(released, {"X": table}, {"X": table - [[0], [16]]}, relation="replace-one")
    assert within.differences == ()
    assert within.largest_share == 1.0
    assert kinds(beyond) == {"sensitivity"}


class Unpaid(SparseClassifier):
    """Stores its training loss."""

    def fit(self, X, y):
        super().fit(X, y)
        known = y >= 0
        self.loss_ = float(np.mean(self.predict(X[known]) != y[known]))
        return self


class Alarming(SparseClassifier):
    """Warns where a label is missing, with a warning of ours, which the guard lets pass."""

    def fit(self, X, y):
        if (y < 0).any():
            warn_caller("a label is missing", WeakBudgetWarning)
        return super().fit(X, y)


class Quitting(FrankWolfeClassifier):
    """Takes fewer steps where a label is missing."""

    def fit(self, X, y):
        fitted = FrankWolfeClassifier(
            classes=self.classes, n_steps=self.n_steps - int((y < 0).any()), random_state=self.random_state
        ).fit(X, y)
        self.coef_ = fitted.coef_
        return self


class Refusing(SparseClassifier):
    """Refuses a missing label."""

    def fit(self, X, y):
        if (y < 0).any():
            raise DataError("y: a label is missing.")
        return super().fit(X, y)


class Later(BaseEstimator):
    """Releases once more where there are many positive labels."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        stream = Stream.of(self.random_state)
        mechanism = TwoSidedGeometric(1, 1.0)
        self.count_ = mechanism.release(int((y == 0).sum()), stream)
        if (y >= 0).all():
            self.again_ = mechanism.release(int((y == 0).sum()), stream)
        return self


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        (Unpaid(classes=(0, 1), n_nonzero=2), "result", "loss_ differs"),
        (Alarming(classes=(0, 1), n_nonzero=2), "warning", "a label is missing"),
        (Quitting(classes=(0, 1), n_steps=6), "release", "number 1 is LoopSelection"),
        (Refusing(classes=(0, 1), n_nonzero=2), "error", "a label is missing"),
        (Later(), "release", "ends before TwoSidedGeometric"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_mutants_are_found(model, kind, words):
    first, second = tables()
    found = replay(model, first, second, relation="zero-out")
    assert kind in kinds(found)
    assert words in str(found)
    if isinstance(model, Later):
        longer = replay(model, second, first, relation="zero-out")
        assert "goes on with TwoSidedGeometric" in str(longer)
    # The same data twice are no neighbours that anything could tell apart.
    assert replay(model, first, first, relation="zero-out").differences == ()


def test_a_release_that_bypasses_the_transcript_shows_in_the_result(monkeypatch):
    monkeypatch.setattr(ExponentialMechanism, "release", lambda self, scores, stream: int(np.argmax(scores)))
    monkeypatch.setattr(GumbelTopK, "release", lambda self, scores, stream: np.argsort(-scores)[: self.k])
    first, second = tables(n=3, d=4)
    first["X"][1:] = 0.0
    first["X"][0] = (0.0, 0.0, 1.0, 0.0)
    found = replay(
        CorrelationSelector(classes=(0, 1), n_features_to_select=1, mechanism="gumbel"),
        first,
        second,
        relation="zero-out",
    )
    assert kinds(found) == {"result"}
    assert [name for name, _ in found.releases] == ["TwoSidedGeometric"]


# ------------------------------------------------------------------ refusals and the tools below


def test_what_are_no_neighbours_is_refused():
    first, second = tables()
    model = SparseClassifier(classes=(0, 1))
    with pytest.raises(ParameterError, match="^relation='replace-one': expected 'zero-out'"):
        replay(model, first, second, relation="replace-one")
    with pytest.raises(DataError, match="as many records under zero-out"):
        replay(model, first, {name: value[1:] for name, value in second.items()}, relation="zero-out")
    with pytest.raises(DataError, match="one record more or less under add-remove"):
        replay(private_score, first | {"relation": "add-remove"}, second, relation="add-remove")
    with pytest.raises(ParameterError, match="^estimator='int'"):
        replay(3, first, second, relation="zero-out")


def test_integers_are_compared_exactly():
    big = np.array([2**60, -(2**60)])
    limit = math.sqrt(2.0)
    # One unit each has a distance of the root of two, which the nearest double below does not reach.
    below, above = (math.nextafter(limit, end) for end in (0.0, 2.0))
    ((_, _, share),) = shares_of_limits(big, big + 1, (("l2", below),))
    assert share > 1.0
    ((_, _, share),) = shares_of_limits(big, big + 1, (("l2", above),))
    assert share <= 1.0
    found = shares_of_limits(np.array([5, 5]), np.array([3, 8]), (("l1", 5.0), ("linf", 2.0), ("range", 10.0)))
    assert [share for _, _, share in found] == [1.0, 1.5, 0.5]
    assert shares_of_limits(np.zeros(0), np.zeros(0), (("l2", 1.0),))[0][2] == 0.0


def test_bits_are_compared():
    assert differing_facts({"a": np.array([0.0])}, {"a": np.array([-0.0])}) == ["['a']"]
    assert differing_facts({"a": 1}, {"a": 1.0}) == ["['a'] (type)", "['a']"]
    assert differing_facts(sp.csr_array([[1.0, 0.0]]), sp.csr_array([[1.0, 2.0]])) == ["indptr", "indices", "data"]
    assert differing_facts((1, 2), (1, 2, 3)) == [" (length)", "[2] (type)", "[2]"]
    assert differing_facts(UNIT, Sensitivity(1.0, "l2", "zero-out")) == ["norm"]
    assert differing_facts({1, 2}, {2, 1}) == []
    assert differing_facts(MappingProxyType({"a": 1}), MappingProxyType({"a": 1})) == []
    assert differing_facts(MappingProxyType({"a": 1}), MappingProxyType({"a": 2})) == ["['a']"]
    looped = {}
    looped["self"] = looped
    assert differing_facts(looped, looped) == []
