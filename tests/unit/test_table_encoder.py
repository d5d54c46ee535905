"""Memory of a read, and the encoder as an estimator."""

import gc
import pickle
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tables_on_disk import AGE, ILL, TABLE, N, bounds, expected_features

import taciturn.tables
from taciturn import FrankWolfeClassifier, certificate_of
from taciturn.core.errors import CertificateError, DataError, DataTypeError
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    Target,
    arrow_tables,
    read_batches,
    read_schema,
)

# ------------------------------------------------------------------ memory


@pytest.fixture
def two_threads():
    """How far Arrow reads ahead depends on their number."""
    before = pa.cpu_count()
    pa.set_cpu_count(2)
    yield
    pa.set_cpu_count(before)


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_tables, "_LEAST_BLOCK", 1 << 14)
    path = tmp_path / "t.csv"
    stated = TableBounds(Target("y", -1, 1), {"x": Column("number", 0, 1e6)})
    n_rows = 500_000
    csv.write_csv(pa.table({"y": np.zeros(n_rows), "x": np.arange(n_rows) / 7}), path)
    schema = read_schema(path)
    encoder = TableEncoder(bounds=stated).fit(schema)
    gc.collect()
    base = pa.total_allocated_bytes()

    def share():
        """Of the table as doubles, beside what was held before."""
        return (pa.total_allocated_bytes() - base) / (8 * n_rows)

    assert max(share() for _ in read_batches(path, encoder)) < 0.5
    # The same measure finds a table that is held as a whole, and sees it given up with the batches.
    selection = arrow_tables.ColumnSelection({"x": "number"})
    _, batches = arrow_tables.whole_batches(arrow_tables.TableFile(path, "csv", ",", False), schema, selection)
    held = [next(batches) for _ in range(400)]
    assert share() > 0.8
    del held
    # Arrow's threads may take a moment to let go.
    deadline = time.monotonic() + 20.0
    while share() > 0.5 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert share() < 0.5


# ------------------------------------------------------------------ the encoder as an estimator


def test_the_encoder_is_a_scikit_learn_transformer():
    encoder = TableEncoder(bounds=bounds())
    assert encoder.get_params() == {"bounds": bounds()}
    assert clone(encoder).bounds == bounds()
    assert clone(encoder).bounds is not encoder.bounds
    assert repr(encoder) == 'TableEncoder(bounds=TableBounds(target="ill", 5 columns))'
    fitted = pickle.loads(pickle.dumps(encoder.fit(TABLE)))
    assert np.array_equal(fitted.transform(TABLE), expected_features())
    frame = encoder.set_output(transform="pandas").transform(TABLE)
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()
    with pytest.raises(TypeError):
        TableEncoder(bounds())


def test_a_pipeline_with_an_encoder_costs_what_its_model_costs():
    model = FrankWolfeClassifier(classes=("no", "yes"), random_state=0)
    pipeline = make_pipeline(TableEncoder(bounds=bounds()), model).fit(TABLE.to_pandas(), ILL)
    assert certificate_of(pipeline) == pipeline[-1].certificate_
    assert pipeline.feature_names_in_.tolist() == ["age", "body mass", "smoker", "region.é"]

    class Learner(TableEncoder):
        """May do anything."""

    with pytest.raises(CertificateError, match="Learner"):
        certificate_of(make_pipeline(Learner(bounds=bounds()), model).fit(TABLE.to_pandas(), ILL))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((3, 4)), "^X: expected a table with named columns, got something else"),
        ({"age": [1]}, "^X: expected a table with named columns"),
        (TABLE.drop_columns("age"), '^table: expected a column "age", got a table without it'),
        (
            TABLE.append_column("age", pa.array(AGE)),
            "^table: expected every column name once, got the same one for columns 2 and 7; rename one",
        ),
        (TABLE.to_pandas().drop(columns="smoker"), '^table: expected a column "smoker"'),
        (pd.concat([TABLE.to_pandas()] * 2, axis=1), "^table: expected every column name once, got the same one"),
        (TABLE.to_pandas().assign(age="98765.4321"), '^column "age": expected numbers, got text'),
        (TABLE.to_pandas().assign(age=[1, "SECRET"] * (N // 2)), '^column "age": expected values of one type'),
        (
            TABLE.to_pandas().assign(age=pd.Timestamp(0)),
            '^column "age": expected numbers, got dates; state type =',
        ),
        (TABLE.to_pandas().assign(smoker="SECRET"), '^column "smoker": expected true and false, or 1 and 0'),
        (TABLE.to_pandas().assign(smoker=2), '^column "smoker": expected true and false, or 1 and 0'),
        (TABLE.to_pandas().assign(smoker=pd.Timestamp(0)), '^column "smoker": expected true and false'),
        (
            TABLE.to_pandas().assign(**{"region.é": pd.Timestamp(0)}),
            '^column "region.é": expected categories, got dates',
        ),
        (TABLE.to_pandas().assign(age=[np.nan] + [1.0] * (N - 1)), '^column "age": expected a value in every row'),
        (TABLE.to_pandas().assign(smoker=[None] + [True] * (N - 1)), '^column "smoker": expected a value in every row'),
    ],
)
def test_tables_in_memory_that_cannot_be_used(table, message):
    encoder = TableEncoder(bounds=bounds()).fit(TABLE)
    with pytest.raises((DataError, DataTypeError), match=message) as caught:
        encoder.transform(table)
    text = str(caught.value)
    assert "SECRET" not in text
    assert "98765" not in text
    # What Arrow said does not travel along either.
    assert caught.value.__context__ is None


def test_importing_the_room_is_cheap():
    heavy = ("pyarrow", "sklearn", "scipy", "numpy", "numba")
    code = f"import sys, taciturn.tables; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    for name in taciturn.tables.__all__:
        assert getattr(taciturn.tables, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        _ = taciturn.tables.magic
