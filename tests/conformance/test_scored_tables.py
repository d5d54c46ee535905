"""Scores on tables in partitions are those of memory, to the bit."""

import numpy as np
import pytest

from array_readers import BROKEN, ArrayReader, equal_edges
from taciturn import DataError, FrankWolfeClassifier, ParameterError, SparseClassifier, SparseRegressor, private_score
from taciturn.engines import PartitionedTable
from taciturn.engines.interface import ONE_PARTITION

da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N_ROWS = 420
RNG = np.random.default_rng(4)
X = RNG.uniform(-1.3, 1.3, (N_ROWS, 5))
SIGNAL = X[:, 1] - X[:, 3] + 0.4 * RNG.normal(size=N_ROWS)
TARGETS = {
    "two classes": np.where(SIGNAL > 0, "ill", "well"),
    "three classes": np.array(["a", "b", "c"])[np.digitize(SIGNAL, [-0.5, 0.5])],
    "numbers": np.clip(SIGNAL, -1, 1),
}
PERSONS = np.repeat(np.arange(N_ROWS // 3), 3)
EDGES = [0, 60, 150, 180, N_ROWS]


def fitted(kind):
    common = {"epsilon": 8.0, "x_bound": 1.0, "random_state": 2, "n_nonzero": 2}
    if kind == "numbers":
        return SparseRegressor(y_bounds=(-1, 1), **common).fit(X, TARGETS[kind])
    return SparseClassifier(classes=tuple(np.unique(TARGETS[kind]).tolist()), **common).fit(X, TARGETS[kind])


def scored(model, *table, **options):
    score = private_score(model, *table, metric="all", epsilon=2.0, random_state=5, **options)
    return score.counts, score.measures, score.certificate


def check_same_score(kind, engine=None, *, holes=False):
    model, features, target = fitted(kind), X.copy(), TARGETS[kind].copy()
    options = {"invalid": "null"} if holes else {}
    if holes:
        features[[3, 77], [0, 1]] = np.nan
    whole = scored(model, features, target, **options)
    reader = ArrayReader(features, target, edges=equal_edges(N_ROWS, 7))
    table = PartitionedTable(reader) if engine is None else PartitionedTable(reader, engine=engine)
    assert scored(model, table, **options) == whole
    return features, target, whole, options


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("holes", [False, True])
def test_streams_and_dask_give_the_scores_of_memory(kind, holes):
    features, target, whole, options = check_same_score(kind, holes=holes)
    chunks = da.from_array(features, chunks=(100, 2)), da.from_array(target, chunks=100)
    assert scored(fitted(kind), *chunks, **options) == whole


# Not the one that adds in single precision, which is exact for counts as small as these.
@pytest.mark.parametrize("broken", BROKEN[:2], ids=lambda kind: kind.__name__)
def test_the_same_check_rejects_broken_engines(broken):
    with pytest.raises(AssertionError):
        check_same_score("two classes", broken)


@pytest.mark.parametrize("relation", ["zero-out", "add-remove"])
def test_persons_count_once_on_partitions_too(relation):
    kind, model = "two classes", fitted("two classes")
    options = {"relation": relation, "n_public": N_ROWS // 3 if relation == "add-remove" else None}
    counts, measures, certificate = scored(model, X, TARGETS[kind], persons=PERSONS, **options)
    reader = ArrayReader(X, TARGETS[kind], PERSONS, edges=EDGES)
    found = scored(model, PartitionedTable(reader, has_persons=True), **options)
    assert found[:2] == (counts, measures)
    assert found[2].unit == certificate.unit == "person"
    assert set(found[2].assumptions) == {*certificate.assumptions, ONE_PARTITION}


def test_the_model_is_left_as_it_was():
    model = fitted("two classes")
    before = dict(vars(model))
    scored(model, PartitionedTable(ArrayReader(X, TARGETS["two classes"], edges=[0, N_ROWS])))
    assert vars(model) == before


def test_what_partitions_cannot_do_is_refused_in_one_sentence():
    table = PartitionedTable(ArrayReader(X, TARGETS["two classes"], edges=[0, N_ROWS]))
    with pytest.raises(ParameterError, match="one histogram has every measure"):
        private_score(fitted("two classes"), table, metric="accuracy")
    with pytest.raises(DataError, match="the features that the model was fitted to"):
        private_score(
            fitted("two classes"), PartitionedTable(ArrayReader(X[:, :4], TARGETS["two classes"], edges=[0, 5]))
        )

    class Other(FrankWolfeClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X)

    other = Other(classes=("ill", "well"), x_bound=1.0, epsilon=8.0, n_steps=3, random_state=0)
    with pytest.raises(ParameterError, match="a linear model of taciturn"):
        private_score(other.fit(X, TARGETS["two classes"]), table)
