"""Whole fits with standard errors: each release is replayed, order and partitions do not matter, mutants are caught."""

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from replays_compared import by_class

from taciturn import ParameterError, SparseClassifier, SparseRegressor
from taciturn.audit.replay import replay
from taciturn.data.sensitivity import RELATIONS
from taciturn.engines import PartitionedTable
from taciturn.methods import releases
from taciturn.methods.inference import run as runs
from taciturn.methods.inference.whitened import InformationSum, ScoreSum, Weighing
from taciturn_research.attacks.replays import PERSON_REPLAYS, TABLE_REPLAYS, Sizes, all_replays

SIZES = Sizes((5, 40), (1, 2, 6))

# What a fit with standard errors can release, by what is fitted. A name ends where numbers follow.
SHARED = ("a quantile of row norms before Gram matrix", "Gram matrix 1 of", "the matrix of scores of")
RELEASED = {
    "numbers": (
        *SHARED,
        "the information matrix of",
        "the second information matrix of",
        "a large quantile of distances from collinearity 1",
        "the correlations of collinear directions 1",
        "a large quantile of residuals before step",
        "the gradient of",
    ),
    "Huber": (*SHARED, "the information matrix of", "the gradient of"),
    "labels": (
        *SHARED,
        "the Gram matrix of",
        "squares along",
        "a large quantile of the information of rows before step 4",
        "a large quantile of the information of rows",
        "the information matrix of",
        "the gradient of",
    ),
}
RARE = "with shorter rows"


def what_is_fitted(case):
    if case.targets == (0,):
        return "Huber" if case.own.get("loss") == "huber" else "numbers"
    return "labels"


def listed(case, relation, seed):
    """What the certificates of some fits of a case list."""
    found, rng = set(), np.random.default_rng(seed)
    for _ in range(4):
        model, data, _ = case.draw(relation, SIZES, rng)
        try:
            found |= {line.what for line in model.set_params(random_state=1).fit(**data).certificate_.events}
        except ParameterError:
            continue
    return found


CASES = [case for case in (*all_replays(), *PERSON_REPLAYS, *TABLE_REPLAYS) if case.own.get("inference")]
COLLINEAR = by_class(case for case in CASES if case.around is not None and "copy" in case.name)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", COLLINEAR)
def test_replays_reach_every_release(name, relation):
    for place, case in enumerate(COLLINEAR[name]):
        found = listed(case, relation, place)
        for what in RELEASED[what_is_fitted(case)]:
            assert any(line.startswith(what) for line in found), (what, case, found)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("persons", [False, True])
def test_replays_reach_the_release_for_rare_categories(persons):
    cases = [case for each in COLLINEAR.values() for case in each if case.persons == persons]
    labels = [case for case in cases if what_is_fitted(case) == "labels"]
    assert any(line.endswith(RARE) for case in labels for seed in range(6) for line in listed(case, RELATIONS[0], seed))


def test_replays_have_numbers_labels_and_three_classes_with_persons_and_in_partitions():
    kinds = {(what_is_fitted(case), case.targets, case.persons) for case in CASES}
    for persons in (False, True):
        for what, targets in (("numbers", (0,)), ("Huber", (0,)), ("labels", (2,)), ("labels", (3,))):
            assert (what, targets, persons) in kinds
    assert {case.targets for case in TABLE_REPLAYS if "partitions" in case.name} == {(0,), (2,), (3,)}


# ------------------------------------------------------------------ one pair of neighbours, and what is broken

N = 400


def table(kind, n=N):
    """Short rows, and a long one last with a target that is far from the others: 2 columns and a copy."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.2, 0.2, (n, 3))
    X[:, 2] = X[:, 1]
    signal = X @ [1.0, -1.0, 0.5]
    y = np.clip(signal + 0.1 * rng.standard_normal(n), -0.4, 0.4)
    if kind != "numbers":
        y = np.digitize(signal + 0.4 * rng.standard_normal(n), (0.0,) if kind == "labels" else (-0.2, 0.2))
    X[-1], y[-1] = 1.0, (-1.0 if kind == "numbers" else 0)
    return X, y


def model_of(kind, relation="zero-out", **own):
    given = {"inference": True, "n_nonzero": "all", "epsilon": 30.0, "relation": relation} | own
    if kind == "numbers":
        return SparseRegressor(**({"invalid": "null"} if relation == "zero-out" else {}), **given)
    return SparseClassifier(classes=(0, 1) if kind == "labels" else (0, 1, 2), **given)


def replayed(kind, relation):
    X, y = table(kind)
    X2, y2 = X.copy(), y.copy()
    own = {}
    if relation == "zero-out":
        if kind == "numbers":
            X2[-1] = np.nan
        else:
            y2[-1] = -1
    elif relation == "add-remove":
        X2, y2, own["n_public"] = X[:-1], y[:-1], N
    else:
        X2[-1], y2[-1] = -1.0, (1.0 if kind == "numbers" else 1)
    return replay(model_of(kind, relation, **own), {"X": X, "y": y}, {"X": X2, "y": y2}, relation=relation)


class UnweightedScores(ScoreSum):
    """Scores without their weights, which nothing bounds."""

    def __call__(self, block):
        whole = ScoreSum(self.at, self.loss, self.model, Weighing(), 50.0 * self.bound, self.norm)
        return 50 * whole(block)


class UnboundedInformation(InformationSum):
    """Information without weights: traces are as large as they are."""

    def __call__(self, block):
        whole = InformationSum(self.at, self.loss, self.model, Weighing(), 2500.0 * self.trace, self.row_squared)
        return 2500 * whole(block)


@contextmanager
def half_the_noise_of_gradients():
    """Sums of scores get half the noise that they are charged for."""
    original = releases.vector_noise

    def half(*given):
        unit, noise = original(*given)
        return unit, replace(noise, log2_scale=noise.log2_scale - 1)

    with patch.object(releases, "vector_noise", half):
        yield


BROKEN = {
    "scores without weights": (lambda: patch.object(runs, "ScoreSum", UnweightedScores), "sensitivity"),
    "information without weights": (lambda: patch.object(runs, "InformationSum", UnboundedInformation), "sensitivity"),
    "half the noise of gradients": (half_the_noise_of_gradients, "cost"),
}
KINDS = pytest.mark.parametrize("kind", ["numbers", "labels", "classes"])


@KINDS
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_long_row_uses_up_the_sensitivities_and_no_more(kind, relation):
    found = replayed(kind, relation)
    found.raise_if_any()
    assert found.error is None
    assert 0.7 < found.largest_share <= 1.0


@KINDS
@pytest.mark.parametrize("broken", BROKEN)
def test_a_replay_notices_what_is_broken(broken, kind):
    apply, what = BROKEN[broken]
    with apply():
        found = replayed(kind, "zero-out")
    assert what in {each.kind for each in found.differences}


# ------------------------------------------------------------------ the same bits in any order and in any partitions


class Parts:
    """Rows of arrays in partitions."""

    names = None

    def __init__(self, X, y, edges):
        self._X, self._y, self._edges = X, y, [0, *edges, len(y)]
        self.n_rows, self.n_features = X.shape
        self.offsets = np.array(self._edges[:-1], dtype=np.int64)

    def read(self, index, columns):
        rows = slice(self._edges[index], self._edges[index + 1])
        return self._X[rows] if columns is None else self._X[rows][:, columns], self._y[rows], None


def bits(model):
    found = model.inference_
    arrays = (model.coef_, np.asarray(model.intercept_), found.std_error, found.degrees, found.allowance)
    return [array.tobytes() for array in arrays]


@KINDS
def test_order_and_partitions_do_not_change_a_bit(kind):
    X, y = table(kind)
    whole = bits(model_of(kind, random_state=4).fit(X, y))
    order = np.random.default_rng(0).permutation(N)
    assert bits(model_of(kind, random_state=4).fit(X[order], y[order])) == whole
    for edges in ([1], [17, 17, 390], list(range(40, N, 40))):
        parts = PartitionedTable(Parts(X[order], y[order], edges))
        assert bits(model_of(kind, random_state=4).fit(parts)) == whole
    # Null records are no records, wherever they are.
    none = np.full((3, 3), np.nan if kind == "numbers" else 0.5)
    padded, labels = np.vstack((none[:1], X, none[1:])), np.concatenate(([-1], y, [-1, -1]))
    given = {"relation": "add-remove", "n_public": N, "invalid": "null", "random_state": 4}
    with_nulls, without = (model_of(kind, **given).fit(*each) for each in ((padded, labels), (X, y)))
    assert bits(with_nulls) == bits(without)
    assert bits(without) != bits(model_of(kind, **given).fit(X[1:], y[1:]))
