"""Weights and exposures: what they mean, the same bits from every source, and each of them judged by itself."""

import json
import math
from functools import partial

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from array_readers import ArrayReader, equal_edges
from taciturn import (
    BoundedScaler,
    DataError,
    DefaultBoundsWarning,
    ParameterError,
    SparseClassifier,
    SparseRegressor,
    SparseSurvival,
)
from taciturn.data.records import WEIGHTS_OF_RECORDS, Outcomes
from taciturn.engines import PartitionedTable
from taciturn.engines.partitions import StreamedSource

da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N = 900
COUNTS = {"loss": "poisson", "y_bounds": (0, 20), "exposure_bound": 3.0}
AMOUNTS = {"loss": "gamma", "y_bounds": (0.5, 20)}
ERRORS = {"inference": True, "columns": [0, 1], "epsilon": 20.0}
CASES = {
    "numbers": (SparseRegressor, {"y_bounds": (-4, 4), "n_nonzero": 2}),
    "counts": (SparseRegressor, COUNTS | {"n_nonzero": 2}),
    "one-shot": (SparseRegressor, COUNTS | {"n_nonzero": 2, "method": "one-shot"}),
    "amounts": (SparseRegressor, AMOUNTS | {"n_nonzero": "auto"}),
    "labels": (SparseClassifier, {"classes": (0, 1), "n_nonzero": "all"}),
    "three classes": (SparseClassifier, {"classes": (0, 1, 2), "n_nonzero": 2}),
    "numbers with errors": (SparseRegressor, {"y_bounds": (-4, 4)} | ERRORS),
    "counts with errors": (SparseRegressor, COUNTS | ERRORS),
    "amounts with errors": (SparseRegressor, AMOUNTS | ERRORS),
    "labels with errors": (SparseClassifier, {"classes": (0, 1)} | ERRORS),
    "labels with errors and weights of classes": (
        SparseClassifier,
        {"classes": (0, 1), "class_weight": {1: 3.0}} | ERRORS,
    ),
    "three classes with errors": (SparseClassifier, {"classes": (0, 1, 2)} | ERRORS),
    "times": (SparseSurvival, {"cuts": (0.3, 0.8, 1.5)}),
    "times with errors": (SparseSurvival, {"cuts": (0.3, 0.8, 1.5)} | ERRORS),
}
# A person who is followed over time is one record.
WITH_PERSONS = [name for name in CASES if not name.startswith("times")]
PERSONS = np.repeat([f"p{i:04d}" for i in range(N)], 3)[:N]


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch):
    monkeypatch.setattr("taciturn.methods.descent.MOST_STEPS", 8)
    # Enough of them, without noise, for a comparison to a millionth.
    monkeypatch.setattr("taciturn.methods.descent.NOISELESS_STEPS", 200)


def table(name):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (N, 4))
    signal, exposure = X[:, 0] - 0.5 * X[:, 1], rng.uniform(0.0, 3.5, N)
    if name.startswith(("counts", "one-shot", "amounts")):
        y = rng.poisson(2.0 * exposure * np.exp(signal)).astype(float) + 0.5 * name.startswith("amounts")
    elif name.startswith("numbers"):
        y = signal + 0.3 * rng.normal(size=N)
    elif name.startswith("times"):
        y = rng.exponential(np.exp(-signal)) * rng.choice([-1.0, 1.0], N)
    else:
        y = np.digitize(signal + 0.5 * rng.normal(size=N), [0.0] if name.startswith("labels") else [-0.3, 0.3])
    exposure[::50] = 0.0
    given = {"sample_weight": rng.uniform(0.0, 6.0, N)}
    if name.startswith(("counts", "one-shot")):
        given["exposure"] = exposure
    return X, y, given


def model_of(name, **settings):
    kind, own = CASES[name]
    return kind(**({"epsilon": 8.0, "random_state": 3, "x_bound": 1.0, "weight_bound": 5.0} | own | settings))


def state(model):
    return [
        model.coef_.tobytes(),
        np.asarray(model.intercept_).tobytes(),
        json.loads(model.certificate_.to_json())["events"],
    ]


class MeasuredReader(ArrayReader):
    """The same with weights and exposures beside the targets."""

    def __init__(self, *arrays, given, **more):
        super().__init__(*arrays, **more)
        self.given = given

    def read(self, index, columns):
        X, y, keys = super().read(index, columns)
        rows = slice(self.edges[index], self.edges[index + 1])
        weight, exposure = (
            None if self.given.get(name) is None else self.given[name][rows] for name in ("sample_weight", "exposure")
        )
        return X, Outcomes(y, weight, exposure), keys


def streamed(X, y, given, keys, edges, memory):
    reader = MeasuredReader(X, y, keys, given=given, edges=edges)
    has = {"has_weight": True, "has_exposure": "exposure" in given, "has_persons": keys is not None}
    return {"X": PartitionedTable(reader, engine=partial(StreamedSource, memory=memory), **has)}


def on_dask(X, y, given, keys, edges):
    chunks = (tuple(np.diff(edges).tolist()),)
    columns = {"y": y, **given} | ({} if keys is None else {"persons": keys})
    return {
        "X": da.from_array(X, chunks=(*chunks, 4)),
        **{k: da.from_array(v, chunks=chunks) for k, v in columns.items()},
    }


def check_same_bits(name, keys, **settings):
    X, y, given = table(name)
    edges = equal_edges(N, 5) if keys is None else [0, 300, 420, 900]
    whole = state(model_of(name, **settings).fit(X, y, persons=keys, **given))
    for arguments in (
        streamed(X, y, given, keys, edges, 1 << 30),
        streamed(X, y, given, keys, edges, 9000),
        on_dask(X, y, given, keys, edges),
    ):
        assert state(model_of(name, **settings).fit(**arguments)) == whole
    # They are read at all.
    alike = given | {"sample_weight": np.ones(N)}
    assert state(model_of(name, **settings).fit(X, y, persons=keys, **alike)) != whole
    return whole


@pytest.mark.parametrize(
    ("name", "persons"),
    [
        *((name, False) for name in CASES),
        *(pytest.param(name, True, marks=pytest.mark.slow) for name in WITH_PERSONS),
    ],
)
def test_one_seed_gives_the_same_bits_from_every_source(name, persons):
    check_same_bits(name, PERSONS if persons else None)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "counts")) for name in WITH_PERSONS]
)
def test_so_it_does_where_persons_count_by_their_rows(name):
    keys = np.repeat([f"p{i:04d}" for i in range(N)], np.random.default_rng(1).choice([1, 2, 3, 6], N))[:N]
    # No person is in two partitions.
    keys = np.array([f"{key}-{np.searchsorted([300, 420], place, side='right')}" for place, key in enumerate(keys)])
    by_rows = check_same_bits(name, keys, person_weight="sum")
    assert check_same_bits(name, keys) != by_rows


@pytest.mark.parametrize("name", ["counts", "labels with errors", "times"])
def test_rows_that_do_not_count_add_nothing(name):
    X, y, given = table(name)
    weight = given["sample_weight"].copy()
    weight[:40] = 0.0
    other = X.copy(), y.copy()
    other[0][:40], other[1][:40] = 0.9, y.max()
    first = model_of(name).fit(X, y, **(given | {"sample_weight": weight}))
    second = model_of(name).fit(*other, **(given | {"sample_weight": weight}))
    # Quantiles, which fix clips, count rows of every weight; sums do not.
    if "columns" not in CASES[name][1]:
        assert [event["what"] for event in state(first)[2]] == [event["what"] for event in state(second)[2]]
    exact = [
        model_of(name, epsilon=math.inf).fit(*rows, **(given | {"sample_weight": weight})) for rows in ((X, y), other)
    ]
    np.testing.assert_allclose(exact[0].coef_, exact[1].coef_, atol=1e-6)
    assert np.abs(model_of(name, epsilon=math.inf).fit(*other, **given).coef_ - exact[0].coef_).max() > 1e-3


def test_weights_above_the_bound_are_trimmed_and_the_certificate_says_so():
    X, y, given = table("numbers")
    weight = given["sample_weight"]
    model = model_of("numbers").fit(X, y, **given)
    assert state(model_of("numbers").fit(X, y, sample_weight=np.minimum(weight, 5.0))) == state(model)
    # Only ratios matter.
    assert state(model_of("numbers", weight_bound=10.0).fit(X, y, sample_weight=2.0 * weight)) == state(model)
    assert WEIGHTS_OF_RECORDS in model.certificate_.assumptions
    assert model.certificate_.public["weight_bound"] == 5.0
    assert "weight" not in " ".join(model_of("numbers").fit(X, y).certificate_.assumptions)
    counted = model_of("counts").fit(*table("counts")[:2], exposure=table("counts")[2]["exposure"])
    assert counted.certificate_.public["exposure_bound"] == 3.0
    assert any("exposure" in text for text in counted.certificate_.assumptions)


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, None])
@pytest.mark.parametrize("column", ["sample_weight", "exposure"])
def test_one_bad_cell_makes_its_own_record_null(column, bad):
    X, y, given = table("counts")
    odd = given | {column: [bad, *given[column][1:].tolist()]}
    with pytest.raises(DataError, match=f"^{column}: expected finite numbers of at least zero"):
        model_of("counts").fit(X, y, **odd)
    model = model_of("counts", invalid="null")
    missing = X.copy()
    missing[0] = math.nan
    assert state(model.fit(X, y, **odd)) == state(model_of("counts", invalid="null").fit(missing, y, **given))


def test_what_cannot_be_meant_is_refused_before_anything_is_spent():
    X, y, given = table("counts")
    for wrong in (given["sample_weight"][1:], np.ones((N, 2)), 1.0):
        with pytest.raises(DataError, match="sample_weight"):
            model_of("counts").fit(X, y, sample_weight=wrong)
    with pytest.raises(ParameterError, match="exposure_bound"):
        model_of("counts", exposure_bound=None).fit(X, y, exposure=given["exposure"])
    with pytest.raises(ParameterError, match="exposure_bound"):
        SparseRegressor(y_bounds=(0, 1), exposure_bound=1.0).fit(X, y)
    for bound in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match="weight_bound"):
            model_of("counts", weight_bound=bound).fit(X, y)
    with pytest.warns(DefaultBoundsWarning, match="weight_bound"):
        model_of("counts", weight_bound=None).fit(X, y, sample_weight=np.ones(N))
    table_of_its_own = streamed(X, y, given, None, [0, N], 1 << 30)["X"]
    with pytest.raises(DataError, match="sample_weight: expected None"):
        model_of("counts").fit(table_of_its_own, sample_weight=given["sample_weight"])
    # Nobody has exposures without a log link, and they are not passed over in silence.
    for name in ("times", "labels"):
        with pytest.raises(DataError, match="a table without exposures for .* use SparseRegressor, or"):
            model_of(name).fit(table_of_its_own)


def test_scikit_learn_routes_them_to_the_model():
    X, y, given = table("counts")
    with config_context(enable_metadata_routing=True):
        model = model_of("counts").set_fit_request(sample_weight=True, exposure=True)
        whole = make_pipeline(BoundedScaler(lower=-1.0, upper=1.0), model).fit(X, y, **given)
    assert state(whole[-1]) == state(model_of("counts").fit(X, y, **given))
