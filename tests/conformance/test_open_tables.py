"""Tables in partitions and dask collections as arguments of fit: what is read when, and what is refused."""

import copy
import math
import re
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from every_class import ENTRIES
from sklearn.pipeline import make_pipeline

from array_readers import ArrayReader, equal_edges
from taciturn import (
    Account,
    BoundedScaler,
    BudgetExceededError,
    CorrelationSelector,
    DataError,
    DefaultBoundsWarning,
    ParameterError,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    certificate_of,
)
from taciturn.engines import DaskSource, PartitionedTable, StreamedSource

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

N_ROWS = 300
rng = np.random.default_rng(1)
X = rng.uniform(-1.0, 1.0, (N_ROWS, 6))
NUMBERS, LABELS = np.clip(0.7 * X[:, 0], -1.0, 1.0), np.where(X[:, 0] > 0, "well", "ill")
CLASSES = ("ill", "well")
ACCEPTING = {
    "SparseRegressor", "SparseClassifier", "HardThresholdRegressor", "HardThresholdClassifier",
    "CorrelationSelector", "PrivateScaler", "SparseSurvival",
}  # fmt: skip
PRIVATE = {entry.kind.__name__: entry for entry in reversed(ENTRIES) if hasattr(entry.kind, "partitions_refused")}


def reader_of(y=NUMBERS, keys=None, table=X, n_partitions=5, **given):
    return ArrayReader(table, y, keys, edges=equal_edges(len(table), n_partitions), **given)


def dask_pair(table=X, y=NUMBERS, chunks=70):
    return da.from_array(table, chunks=(chunks, -1)), da.from_array(y, chunks=chunks)


class UnreadableReader(ArrayReader):
    def read(self, index, columns):
        raise AssertionError("a partition was read")


# ------------------------------------------------------------------ which classes


def test_every_private_class_takes_partitions_or_refuses_them():
    assert {name for name, entry in PRIVATE.items() if entry.kind.partitions_refused is None} == ACCEPTING


@pytest.mark.parametrize("name", sorted(set(PRIVATE) - ACCEPTING))
def test_a_class_that_needs_memory_names_those_that_do_not(name):
    model = PRIVATE[name]()
    lazy = da.from_delayed(dask.delayed(_unreadable)(), shape=X.shape, dtype=float)
    for table, y in ((PartitionedTable(UnreadableReader(X, NUMBERS, edges=[0, N_ROWS])), None), (lazy, lazy[:, 0])):
        with pytest.raises(DataError) as refusal:
            model.fit(table, y)
        words = str(refusal.value)
        assert words.startswith(f"X: expected a table in memory for {name}, since ")
        assert words.endswith(", or compute() the table.")
        assert (
            set(re.findall(r"\w+(?:Regressor|Classifier|Selector|Scaler|Survival)\b", words.partition("; use ")[2]))
            == ACCEPTING
        )


def _unreadable():
    raise AssertionError("a partition was read")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": math.inf}, "epsilon=inf: expected a finite number for a table in partitions"),
        ({"score_func": lambda X, y: X}, "score_func='<lambda>': expected one of"),
    ],
)
def test_correlations_of_partitions_are_bounded_and_named(changes, words):
    selector = CorrelationSelector(**changes)
    if "score_func" in changes:
        changes["score_func"].sensitivity = lambda relation: selector_sensitivity(relation)
    with pytest.raises(ParameterError) as refusal:
        selector.fit(PartitionedTable(UnreadableReader(X, NUMBERS, edges=[0, N_ROWS])))
    assert str(refusal.value).startswith(words)
    assert str(refusal.value).endswith("or compute() the table.")


def selector_sensitivity(relation):
    from taciturn.data.sensitivity import record_sum

    return record_sum(1.0, "linf", relation)


# ------------------------------------------------------------------ what is read when


@pytest.mark.parametrize("relation", ["zero-out", "add-remove"])
def test_nothing_is_read_before_the_price_is_reserved(relation, tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    account = Account.create(url, "study", epsilon=0.5, delta=1e-6, n=N_ROWS, relation=relation)
    model = SparseClassifier(classes=CLASSES, relation=relation, n_public=N_ROWS, account=account)
    with pytest.raises(BudgetExceededError):
        model.fit(PartitionedTable(UnreadableReader(X, LABELS, edges=[0, 100, N_ROWS])))
    parts = [dask.delayed(_unreadable)() for _ in range(3)]
    frame = dd.from_delayed(parts, meta=pd.DataFrame({"a": [0.5], "y": ["ill"]}), verify_meta=False)
    expected = BudgetExceededError if relation == "add-remove" else DataError
    # Rows of a frame are counted, unless their number is private.
    with pytest.raises(expected):
        model.fit(frame[["a"]], frame["y"])


def test_a_table_that_fits_is_read_once_and_divided_without_reading():
    reader = reader_of(LABELS)
    SparseClassifier(classes=CLASSES, n_nonzero=2, inference=True, epsilon=8.0).fit(PartitionedTable(reader))
    assert reader.reads == [(index, None) for index in range(5)]


def test_a_table_that_does_not_fit_is_read_by_the_columns_of_its_tasks():
    reader = reader_of(LABELS)
    model = SparseClassifier(classes=CLASSES, columns=[1, 4], epsilon=8.0)
    model.fit(PartitionedTable(reader, engine=partial(StreamedSource, memory=0)))
    # All cells are looked at once, since one of them may be refused.
    assert reader.reads[:5] == [(index, None) for index in range(5)]
    assert {columns for _, columns in reader.reads[5:]} == {(), (1, 4)}


@pytest.mark.parametrize("memory", [0, 4_000, 12_000, 1 << 30])
def test_memory_between_rounds_stays_within_its_limit(memory):
    sizes, opened = [], []

    def engine(partitions, facts):
        opened.append(StreamedSource(partitions, facts, memory=memory, watch=lambda *_: note()))
        return opened[-1]

    def note():
        sizes.append(sum(block.n_bytes() for block in opened[0]._held.values()))

    SparseClassifier(classes=CLASSES, n_nonzero=2, epsilon=8.0).fit(PartitionedTable(reader_of(LABELS), engine=engine))
    assert max(sizes) <= memory
    # It is used, where it holds one block: 60 rows of six doubles.
    assert (max(sizes) > 0) == (memory >= 60 * 6 * 8 + 60 * 16)


def test_progress_is_told_after_every_partition():
    told = []
    engine = partial(StreamedSource, watch=lambda done, of: told.append((done, of)))
    CorrelationSelector(n_features_to_select=2).fit(PartitionedTable(reader_of(), engine=engine))
    # The admission of all records, the mean of the target, and the sums of products.
    assert told == [(done, 5) for done in (1, 2, 3, 4, 5)] * 3


# ------------------------------------------------------------------ refusals are those of memory


def spoiled(kind):
    table, y = X.copy(), (LABELS if "label" in kind else NUMBERS).copy()
    if kind == "cell":
        table[250, 3] = np.nan
    elif kind == "target":
        y[250] = np.inf
    elif kind == "missing label":
        y = y.astype(object)
        y[250] = None
    return table, y


@pytest.mark.parametrize("kind", ["cell", "target", "missing label"])
@pytest.mark.parametrize("engine", ["streamed", "dask", "dask from a reader"])
def test_refusals_are_those_of_memory(kind, engine):
    table, y = spoiled(kind)
    model = SparseClassifier(classes=CLASSES) if "label" in kind else SparseRegressor()
    with pytest.raises((DataError, ParameterError)) as in_memory:
        model.fit(table, y)
    source = StreamedSource if engine == "streamed" else DaskSource
    arguments = (
        dask_pair(table, y) if engine == "dask" else (PartitionedTable(reader_of(y, table=table), engine=source),)
    )
    with pytest.raises(type(in_memory.value)) as refusal:
        model.fit(*arguments)
    assert str(refusal.value) == str(in_memory.value)


@pytest.mark.filterwarnings("ignore::taciturn.SuspiciousReleaseWarning")
@pytest.mark.parametrize("foreign", [1, 60, 300])
@pytest.mark.parametrize("engine", ["streamed", "dask"])
def test_records_with_labels_of_another_type_are_null(foreign, engine):
    """Whether they are one, a partition or the whole table: it is never refused, nor other labels read anew."""
    y, other = LABELS.astype(object), LABELS.astype(object)
    y[:foreign], other[:foreign] = 1, "no class"
    models = [SparseClassifier(classes=CLASSES, n_nonzero=2, random_state=0) for _ in range(3)]
    models[0].fit(X, other)
    models[1].fit(X, y.tolist())
    models[2].fit(*(dask_pair(X, y) if engine == "dask" else (PartitionedTable(reader_of(y)),)))
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes() == models[2].coef_.tobytes()


class Quoting(ArrayReader):
    def read(self, index, columns):
        if index == 3:
            raise KeyError("patient 4711")
        return super().read(index, columns)


@pytest.mark.parametrize("engine", [StreamedSource, DaskSource])
def test_what_goes_wrong_in_a_partition_is_not_quoted(engine, caplog):
    table = PartitionedTable(Quoting(X, NUMBERS, edges=equal_edges(N_ROWS, 5)), engine=engine)
    with pytest.raises(DataError) as refusal:
        SparseRegressor().fit(table)
    assert str(refusal.value).startswith("X or y: expected partitions that can be read, got one that cannot; ")
    assert "4711" not in caplog.text
    error = refusal.value
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("kind", [KeyError, TypeError, ValueError, MemoryError])
def test_a_graph_that_fails_is_not_quoted(kind, caplog):
    def fail(block):
        raise kind("patient 4711")

    features, y = dask_pair()
    with pytest.raises(DataError) as refusal:
        SparseRegressor().fit(features.map_blocks(fail, dtype=float, meta=np.zeros((0, 0))), y)
    assert str(refusal.value).startswith("X or y: expected partitions that dask can compute, got one that fails; ")
    assert refusal.value.__context__ is None
    assert refusal.value.__cause__ is None
    assert "4711" not in caplog.text
    # The target and the keys of persons are computed on other ways.
    labels = y.map_blocks(fail, dtype=float, meta=np.zeros(0))
    keys = y.map_blocks(fail, dtype=float, meta=np.zeros(0))
    for call in (
        lambda: SparseClassifier().fit(features, labels),
        lambda: SparseRegressor(n_public=10, relation="add-remove").fit(features, y, persons=keys),
    ):
        with pytest.raises(DataError) as refusal:
            call()
        assert "4711" not in "".join(traceback.format_exception(refusal.value))


# ------------------------------------------------------------------ persons

OWNERS = np.repeat(np.arange(100), 3)


@pytest.mark.parametrize("relation", ["zero-out", "add-remove"])
def test_persons_in_two_partitions_are_refused(relation):
    table = PartitionedTable(ArrayReader(X, NUMBERS, OWNERS, edges=[0, 150, 151, N_ROWS]), has_persons=True)
    with pytest.raises(DataError) as refusal:
        SparseRegressor(relation=relation, n_public=100).fit(table)
    assert str(refusal.value).startswith(
        "persons: expected all rows of a person in one partition, got some in several; "
    )


def test_rows_without_a_key_may_lie_anywhere():
    keys = OWNERS.astype(object)
    keys[::7] = None
    models = [SparseRegressor(n_nonzero=2, epsilon=8.0, random_state=0) for _ in range(2)]
    models[0].fit(X, NUMBERS, persons=keys)
    models[1].fit(PartitionedTable(ArrayReader(X, NUMBERS, keys, edges=[0, 90, 150, N_ROWS]), has_persons=True))
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes()


def test_keys_that_nobody_asked_for_are_not_ignored():
    table = PartitionedTable(ArrayReader(X, NUMBERS, OWNERS, edges=[0, 150, N_ROWS]))
    with pytest.raises(DataError, match="persons: expected a table that is opened with has_persons=True"):
        SparseRegressor().fit(table)


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda: (PartitionedTable(reader_of()), NUMBERS), "y: expected None beside a table that has its own"),
        (lambda: (X, dask_pair()[1]), "X: expected a dask collection beside a dask y"),
        (lambda: (dask_pair()[0], NUMBERS), "y: expected an array or series of dask beside a dask X"),
        (lambda: (dask_pair()[0], dask_pair()[1][:200]), "X or y: expected one target per record"),
        (lambda: (dask_pair()[0], dask_pair()[0]), "y: expected a 1d array"),
        (lambda: (dask_pair()[1], dask_pair()[1]), "X: expected a table with two dimensions"),
        (lambda: (dask_pair()[0],), "y: SparseRegressor requires y to be passed"),
        (lambda: (PartitionedTable(reader_of(None), has_target=False),), "y: SparseRegressor requires y to be passed"),
        (lambda: (PartitionedTable(reader_of(), y_bounds=(0.0, 5.0)),), "y_bounds=(-1, 1): expected (0.0, 5.0), "),
        (lambda: (PartitionedTable(reader_of(), x_bound=2.0),), "x_bound=1.0: expected 2.0, which the table states"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, words):
    with pytest.raises(DataError if not words[1:].startswith("_") else ParameterError) as refusal:
        SparseRegressor(x_bound=1.0, y_bounds=(-1, 1)).fit(*arguments())
    assert str(refusal.value).startswith(words)


def test_bounds_that_are_not_given_are_those_that_the_table_states():
    table = PartitionedTable(reader_of(), x_bound=2.0, y_bounds=(0.0, 5.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DefaultBoundsWarning)
        found = SparseRegressor(n_nonzero=2, random_state=0).fit(table)
    stated = SparseRegressor(n_nonzero=2, random_state=0, x_bound=2.0, y_bounds=(0.0, 5.0)).fit(X, NUMBERS)
    assert found.certificate_ == stated.certificate_
    assert found.coef_.tobytes() == stated.coef_.tobytes()
    assert found.y_bounds_ == (0.0, 5.0)
    # What one table stated says nothing of the next.
    with pytest.warns(DefaultBoundsWarning):
        again = found.fit(X, NUMBERS)
    assert again.y_bounds_ == (-1.0, 1.0)


def test_a_table_that_states_its_classes_needs_no_assumption():
    models = [SparseClassifier(n_nonzero=2, random_state=0), SparseClassifier(n_nonzero=2, random_state=0)]
    models[0].set_params(classes=CLASSES).fit(X, LABELS)
    models[1].fit(PartitionedTable(reader_of(LABELS), classes=CLASSES))
    assert models[0].certificate_.to_json() == models[1].certificate_.to_json()
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes()


def test_truth_values_are_recognised_in_partitions():
    selectors = [CorrelationSelector(n_features_to_select=2, random_state=0) for _ in range(3)]
    y = X[:, 0] > 0
    selectors[0].fit(X, y)
    selectors[1].fit(PartitionedTable(reader_of(y)))
    selectors[2].fit(*dask_pair(y=y))
    assert len({each.certificate_.to_json() for each in selectors}) == 1
    assert selectors[0].certificate_.public["classes"] == [False, True]


def test_names_of_an_earlier_fit_do_not_stay():
    model = SparseRegressor(n_nonzero=2)
    model.fit(PartitionedTable(reader_of(names=list("abcdef"))))
    assert model.feature_names_in_.tolist() == list("abcdef")
    model.fit(PartitionedTable(reader_of()))
    assert not hasattr(model, "feature_names_in_")
    with_names = SparseRegressor(columns=["b", "e"]).fit(PartitionedTable(reader_of(names=list("abcdef"))))
    assert with_names.certificate_.public["columns"] == [1, 4]


# ------------------------------------------------------------------ predictions, scalers, pipelines


def test_predictions_of_dask_are_dask_and_the_same():
    features, _ = dask_pair()
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=4)
    classifier = SparseClassifier(classes=CLASSES, n_nonzero=2, random_state=0).fit(X, LABELS)
    regressor = SparseRegressor(n_nonzero=2, random_state=0).fit(frame.compute(), NUMBERS)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        lazy = getattr(classifier, method)(features)
        assert isinstance(lazy, da.Array)
        expected = getattr(classifier, method)(X)
        assert (lazy.dtype, lazy.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(lazy.compute(), expected)
    np.testing.assert_array_equal(regressor.predict(frame).compute(), regressor.predict(frame.compute()))


def test_predictions_of_an_open_table_are_those_of_its_arrays():
    classifier = SparseClassifier(classes=CLASSES, n_nonzero=2, random_state=0).fit(X, LABELS)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        of_partitions = getattr(classifier, method)(PartitionedTable(reader_of(), engine=StreamedSource))
        of_arrays = getattr(classifier, method)(X)
        assert (of_partitions.dtype, of_partitions.shape) == (of_arrays.dtype, of_arrays.shape)
        if of_arrays.dtype.kind == "f":
            # BLAS may round a product differently where a row stands elsewhere in its block.
            np.testing.assert_allclose(of_partitions, of_arrays, rtol=1e-13, atol=1e-15)
        else:
            assert of_partitions.tolist() == of_arrays.tolist()
    with pytest.raises(DataError, match="features of the one that the model was fitted to, got another"):
        classifier.predict(PartitionedTable(reader_of(table=X[:, :5])))


def test_seeds_and_accounts_stay_with_the_driver():
    model = SparseRegressor(n_nonzero=2, random_state=4711).fit(X, NUMBERS)
    before = copy.deepcopy(model.get_params())
    lazy = model.predict(dask_pair()[0])
    assert model.get_params() == before
    nodes = [value for value in _values(dict(lazy.__dask_graph__())) if isinstance(value, SparseRegressor)]
    assert nodes
    assert all(node.random_state is None for node in nodes)


def _values(value, depth=0):
    """All objects that a graph of dask holds."""
    yield value
    if depth > 8:
        return
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    inner = [*inner, *getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in slots)]
    if type(value).__module__.split(".")[0] in ("builtins", "dask", "taciturn", "functools"):
        for each in inner:
            yield from _values(each, depth + 1)


def test_a_pipeline_on_dask_is_that_of_memory():
    raw = 50.0 + 40.0 * X

    def pipeline():
        return make_pipeline(
            BoundedScaler(lower=0.0, upper=100.0),
            CorrelationSelector(n_features_to_select=3, random_state=0),
            SparseRegressor(n_nonzero=2, random_state=0),
        )

    whole, lazy = pipeline().fit(raw, NUMBERS), pipeline().fit(*dask_pair(raw))
    assert whole[-1].coef_.tobytes() == lazy[-1].coef_.tobytes()
    assert certificate_of(whole).to_json() == certificate_of(lazy).to_json()
    # Predictions are products of doubles by BLAS, whose last bit depends on where a row stands in its block.
    np.testing.assert_allclose(lazy.predict(dask_pair(raw)[0]).compute(), whole.predict(raw), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("scaler", [BoundedScaler(upper=0.5), PrivateScaler(epsilon=20.0, tail=0.2, random_state=0)])
def test_scalers_map_dask_to_dask(scaler):
    features, _ = dask_pair()
    expected = scaler.fit(X).transform(X)
    lazy = scaler.fit(features).transform(features)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), expected)
    np.testing.assert_array_equal(scaler.inverse_transform(lazy).compute(), scaler.inverse_transform(expected))
    with pytest.raises(DataError, match="for transform, got an open table"):
        scaler.fit(PartitionedTable(reader_of())).transform(PartitionedTable(reader_of()))


# ------------------------------------------------------------------ the page


def test_the_example_of_dask_prints_what_its_page_says(capsys):
    """Examples are run where dask is not installed; this one is not among them."""
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")
    example = re.search(r"^```py\n(?P<code>.*?)^```\n\n```text\n(?P<text>.*?)^```\n", page, re.DOTALL | re.MULTILINE)
    exec(compile(example["code"], "example", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == example["text"]


@pytest.mark.parametrize("bounds", [{"x_bound": 1e308}, {"y_bounds": (-1e308, 1e308)}])
def test_bounds_of_a_table_whose_width_is_no_number_are_refused_before_it_is_read(bounds):
    table = PartitionedTable(UnreadableReader(X, NUMBERS, edges=[0, N_ROWS]), **bounds)
    with pytest.raises(ParameterError, match=f"^{next(iter(bounds))}=.*1e-301 to"):
        SparseRegressor(random_state=0).fit(table)
