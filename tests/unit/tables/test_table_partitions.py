"""Tables on disk in partitions: the same bits as in memory, whatever the file, its groups and the columns asked for."""

import pickle
import threading
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tables_on_disk import BOUNDS, FILES, TABLE, N, bounds, write

from taciturn.core.errors import DataError, ParameterError, SeveralProblemsError
from taciturn.tables import (
    Column,
    TableBounds,
    Target,
    formats,
    open_partitions,
    partitions,
    read_person_keys,
    read_schema,
    read_table,
    read_unbounded_table,
)
from taciturn.tables.formats import TableFile
from taciturn.tables.partitions import StoredFile, cut_rows

RNG = np.random.default_rng(3)


def gaps(values, share=0.1):
    return pa.array(values, mask=RNG.random(N) < share)


MESSY = (
    TABLE.append_column("visits", gaps(RNG.integers(0, 20, N)))
    .append_column("dose", gaps(RNG.normal(0, 3, N)))
    .append_column("urgent", gaps(RNG.random(N) < 0.5))
    .append_column("ward", gaps(RNG.choice(["a", "b", "c", "none"], N)))
    .append_column("patient", gaps(RNG.choice([f"p{i}" for i in range(60)], N)))
)
MESSY_BOUNDS = f"""{BOUNDS}
[columns]
visits = {{type = "number", lower = 0, upper = 10}}
dose = {{type = "number", lower = -1, upper = 4}}
urgent = {{type = "boolean"}}
ward = {{type = "category", categories = ["b", "a"]}}
[missing]
visits = 2
dose = 0
urgent = true
ward = "a"
[person]
column = "patient"
"""
SPARSE_BOUNDS = TableBounds(Target("label", classes=(-1, 1)), {"3": Column("boolean")}, Column("number", -2, 2))


@pytest.fixture
def small(monkeypatch):
    """Blocks and partitions of a few rows."""
    monkeypatch.setattr(formats, "_LEAST_BLOCK", 3000)
    monkeypatch.setattr(partitions, "_CELLS", 400)
    monkeypatch.setattr(formats, "_BLOCK", 300)


def write_sparse(path, n_rows=80):
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((n_rows, 9)) < 0.3, rng.normal(0, 2, (n_rows, 9)), 0.0)
    dense[:, 2] = dense[:, 2] != 0.0
    labels = rng.choice([-1, 1, 5], n_rows)
    path.write_text(
        "".join(
            " ".join([str(label), *(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value)]) + "\n"
            for label, row in zip(labels, dense, strict=True)
        )
    )
    return path


def whole(table, columns=None):
    """All partitions one after the other, features as dense ones."""
    parts = [table.read(index, columns) for index in range(table.offsets.size)]
    X = np.vstack([X.toarray() if table.sparse else X for X, _, _ in parts])
    keys = None if parts[0][2] is None else [key for _, _, some in parts for key in some]
    return X, np.concatenate([y for _, y, _ in parts]), keys


def same_bits(found, expected):
    return (found.shape, found.dtype, found.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())


# ------------------------------------------------------------------ the same bits


@pytest.mark.parametrize("invalid", ["raise", "null"])
@pytest.mark.parametrize("name", FILES)
def test_partitions_together_are_the_table_in_memory(tmp_path, small, name, invalid):
    path = write(tmp_path, name.lower(), MESSY).rename(tmp_path / name)
    stated = bounds(MESSY_BOUNDS)
    X, y = read_table(path, stated, "ill", invalid=invalid)
    with open_partitions(path, stated, invalid=invalid) as table:
        assert (table.n_rows, table.n_features, table.sparse) == (*X.shape, False)
        assert table.names == stated.for_table(read_schema(path)).feature_names == table.bounds.feature_names
        assert table.offsets.dtype == np.int64
        assert table.offsets.size > 4
        sizes = np.diff([*table.offsets, table.n_rows])
        assert sizes.max() * table.n_features <= 400
        found, labels, keys = whole(table)
        assert same_bits(found, X)
        assert same_bits(labels, y)
        assert keys == read_person_keys(path, stated)
        for index in (0, table.offsets.size - 1):
            block = table.read(index)[0]
            assert block.flags.c_contiguous
            assert same_bits(block, X[table.offsets[index] :][: sizes[index]])
        # Some features, some categories of a column, none: in another order than the partitions'.
        for columns in ([0], [1, 5, 9], [3, 4], [2, 6, 10, 11], [], list(range(12))):
            places = np.array(columns, dtype=np.int64)
            for index in (2, 0, 3):
                rows = slice(table.offsets[index], table.offsets[index] + sizes[index])
                part, labels, _ = table.read(index, places)
                assert same_bits(part, np.ascontiguousarray(X[rows, columns]))
                assert same_bits(labels, y[rows])
                assert part.flags.c_contiguous


@pytest.mark.parametrize("name", ["t.libsvm", "t.svm.gz"])
def test_sparse_partitions_together_are_the_table_in_memory(tmp_path, small, name):
    import gzip

    path = write_sparse(tmp_path / name)
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    X, y = read_table(path, SPARSE_BOUNDS, "label")
    with open_partitions(path, SPARSE_BOUNDS) as table:
        assert (table.n_rows, table.n_features, table.sparse) == (*X.shape, True)
        assert table.offsets.size > 4
        found, labels, keys = whole(table)
        assert keys is None
        assert same_bits(found, X.toarray())
        assert same_bits(labels, y)
        for index in range(table.offsets.size):
            part = table.read(index)[0]
            rows = X[table.offsets[index] :][: part.shape[0]]
            assert part.format == "csr"
            assert part.has_sorted_indices
            assert [part.indptr.tolist(), part.indices.tolist(), part.data.tobytes()] == [
                rows.indptr.tolist(), rows.indices.tolist(), rows.data.tobytes(),
            ]  # fmt: skip
        for columns in ([0], [2, 5, 8], []):
            assert same_bits(whole(table, np.array(columns, dtype=np.int64))[0], X.toarray()[:, columns].copy())


@pytest.mark.parametrize("labels", [["b", "a", "c"], [2, 1, 0], [1, 0, 2.5], [True, False, True], ["1", "x", "2"]])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_labels_that_nobody_stated_have_the_type_of_the_whole_column(tmp_path, small, name, labels):
    """A reader that takes the type of the first rows takes the last label for a mistake."""
    cells = [labels[0], labels[1]] * 300 + [labels[2]] * 3
    path = write(tmp_path, name, pa.table({"y": cells, "x": np.linspace(-1, 1, 603)}))
    stated = TableBounds(Target("y"), {"x": Column("number", -1, 1)})
    y = read_table(path, stated, "y")[1]
    with open_partitions(path, stated) as table:
        assert same_bits(whole(table)[1], y)


@pytest.mark.parametrize("n_groups", [1, 7, 41, 240])
@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_row_groups_of_any_size_give_the_same_rows(tmp_path, small, monkeypatch, name, n_groups):
    path = write(tmp_path, name, rows=-(-N // n_groups))
    expected = read_table(path, bounds(), "ill")[0]
    calls = []
    batches = partitions.GroupReader._batches
    monkeypatch.setattr(partitions.GroupReader, "_batches", lambda *args: calls.append(args) or batches(*args))
    table = open_partitions(path, bounds())
    assert same_bits(whole(table)[0], expected)
    if n_groups == 1:
        # The group is decoded once, though it is cut into partitions.
        assert table.offsets.size == 5
        assert len(calls) == 1
    else:
        assert len(calls) <= min(n_groups, 2 * N // 57)
    backwards = [table.read(index)[0] for index in reversed(range(table.offsets.size))]
    assert same_bits(np.vstack(backwards[::-1]), expected)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(files=st.lists(st.lists(st.integers(0, 30), max_size=6), min_size=1, max_size=4), most=st.integers(1, 25))
def test_the_cut_keeps_rows_in_order_and_partitions_bounded(files, most):
    facts = [StoredFile(TableFile(None, "parquet", ",", False), (0, 0, 0), tuple(rows)) for rows in files]
    cut = cut_rows(facts, most)
    rows_of = [[(place, group, row) for group, n in enumerate(rows) for row in range(n)] for place, rows in
               enumerate(files)]  # fmt: skip
    found = []
    for ranges in cut:
        for rows in ranges:
            inside = [row for row in rows_of[rows.place] if row[1] in rows.groups]
            found += inside[rows.skip : rows.skip + rows.n_rows]
    assert found == [row for rows in rows_of for row in rows]
    sizes = [sum(rows.n_rows for rows in ranges) for ranges in cut]
    assert all(0 < size <= most for size in sizes)
    # Whole groups are merged as far as they go; ranges of a large group stay by themselves.
    for (ranges, (following, *_)), size in zip(pairwise(cut), sizes, strict=False):
        group_rows = [facts[rows.place].group_rows[rows.groups[0]] for rows in (ranges[0], following)]
        assert max(group_rows) > most or size + group_rows[1] > most


def test_only_the_columns_of_the_features_are_read(tmp_path, monkeypatch):
    path = write(tmp_path, "t.parquet", MESSY)
    asked = []
    read = partitions.GroupReader.read
    monkeypatch.setattr(
        partitions.GroupReader, "read", lambda self, rows, names: asked.append(list(names)) or read(self, rows, names)
    )
    table = open_partitions(path, bounds(MESSY_BOUNDS))
    for columns, names in (
        ([], []),
        ([0], ["age"]),
        ([4, 5], ["region.é"]),
        ([1, 6, 8], ["body mass", "region.é", "dose"]),
    ):
        table.read(0, np.array(columns, dtype=np.int64))
        assert asked.pop() == [*names, "ill", "patient"]
    table.read_numbers(0, ["body mass"])
    assert asked.pop() == ["body mass"]


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet"])
def test_copies_and_threads_read_the_same(tmp_path, small, name):
    path = write(tmp_path, name, MESSY)
    with open_partitions(path, bounds(MESSY_BOUNDS)) as table:
        X, _, keys = whole(table)
        copy = pickle.loads(pickle.dumps(table))
        assert len(pickle.dumps(table)) < 20_000
        assert same_bits(whole(copy)[0], X)
        copy.close()
        found = {}

        def read(thread):
            order = np.random.default_rng(thread).permutation(table.offsets.size).tolist()
            found[thread] = {index: table.read(index) for index in order}

        threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for parts in found.values():
            assert same_bits(np.vstack([parts[index][0] for index in range(table.offsets.size)]), X)
            assert [key for index in range(table.offsets.size) for key in parts[index][2]] == keys


# ------------------------------------------------------------------ bounds to be found


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.ipc"])
def test_columns_whose_bounds_are_to_be_found(tmp_path, small, name):
    path = write(tmp_path, name)
    columns = {"age": Column("number", -1, 1), "body mass": Column("number", -1, 1), "smoker": Column("boolean")}
    ignored = {"born": Column("ignore"), "ill": Column("ignore"), "region.é": Column("ignore")}
    stated = TableBounds(Target("y", -1, 1), columns | ignored)
    path = write(tmp_path, name, TABLE.append_column("y", pa.array(np.linspace(-9, 9, N))))
    schema = read_schema(path)
    resolved = stated.for_table(schema)
    names = ["body mass", "age", "y"]
    X, y, numbers = read_unbounded_table(path, resolved, names, schema)
    with open_partitions(path, resolved, schema=schema) as table:
        found = np.vstack([table.read_numbers(index, names) for index in range(table.offsets.size)])
        assert same_bits(found, numbers)
        assert same_bits(whole(table)[0], X)
        assert same_bits(whole(table)[1], y)
        wider = TableBounds(
            Target("y", -5, 5), columns | ignored | {"age": Column("number", 0, 99)}, order=resolved.order
        )
        other = table.with_bounds(wider)
        assert same_bits(whole(other)[0], read_table(path, wider, "y", schema=schema)[0])
        with pytest.raises(
            ParameterError, match="^bounds=.*: expected the columns and types that the table was opened"
        ):
            table.with_bounds(
                TableBounds(stated.target, columns | ignored | {"age": Column("boolean")}, order=resolved.order)
            )


def test_numbers_that_are_not_finite_are_refused_by_name(tmp_path, small):
    values = np.linspace(-1, 1, 900)
    values[700] = np.inf
    path = write(tmp_path, "t.parquet", pa.table({"y": np.zeros(900), "x": values}))
    stated = TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)})
    schema = read_schema(path)
    with pytest.raises(DataError) as expected:
        read_unbounded_table(path, stated.for_table(schema), ["x"], schema)
    table = open_partitions(path, stated)
    at = int(np.searchsorted(table.offsets, 700, side="right")) - 1
    assert np.isfinite(table.read_numbers(0, ["x"])).all()
    with pytest.raises(DataError) as found:
        table.read_numbers(at, ["x"])
    assert str(found.value) == str(expected.value)
    lenient = open_partitions(path, TableBounds(Target("y", 0, 1), stated.columns), invalid="null")
    assert np.isinf(lenient.read_numbers(at, ["x"])).sum() == 1


# ------------------------------------------------------------------ refusals


X_NUMBER = TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)})
X_TRUTH = TableBounds(Target("y", 0, 1), {"x": Column("boolean")})
X_CATEGORY = TableBounds(Target("y", 0, 1), {"x": Column("category", categories=("a",))})
BAD = {
    "missing": ({"y": [0.0, 1.0], "x": [0.5, None]}, X_NUMBER),
    "missing target": ({"y": [0.0, None], "x": [1.0, 0.5]}, X_NUMBER),
    "missing label": ({"y": ["a", None], "x": [1.0, 0.5]}, TableBounds(Target("y"), X_NUMBER.columns)),
    "text": ({"y": [0.0, 1.0], "x": ["SECRET", "1"]}, X_NUMBER),
    "truth": ({"y": [0.0, 1.0], "x": ["SECRET", "1"]}, X_TRUTH),
    "two": ({"y": [0.0, 1.0], "x": [2, 1]}, X_TRUTH),
    "date": ({"y": [0.0, 1.0], "x": np.arange(2).astype("datetime64[D]")}, X_CATEGORY),
    "no target": ({"x": [0.5, 0.1]}, X_NUMBER),
    "no column": ({"y": [0.5, 0.1]}, TableBounds(X_NUMBER.target, X_NUMBER.columns, order=("x",))),
    "undescribed": ({"y": [0.5, 0.1], "x": [1, 2], "z": [1, 2]}, X_NUMBER),
    "empty": ({"y": np.zeros(0), "x": np.zeros(0)}, X_NUMBER),
}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.arrow", "t.ipc"])
@pytest.mark.parametrize("case", BAD)
def test_refusals_are_those_of_the_table_in_memory(tmp_path, case, name):
    columns, stated = BAD[case]
    path = write(tmp_path, name, pa.table(columns))

    def sentence(read):
        with pytest.raises((DataError, ParameterError)) as caught:
            read()
        return type(caught.value), str(caught.value)

    if case == "date" and "sv" in name:
        # Dates of a text table are text.
        assert open_partitions(path, stated).read(0)[0].tolist() == [[0.0], [0.0]]
        return
    expected = sentence(lambda: read_table(path, stated, "y"))
    assert sentence(lambda: open_partitions(path, stated).check()) == expected
    assert "SECRET" not in expected[1]


@pytest.mark.parametrize("text", ["1 1:0.5 2:nan\n", "2 3:0.5\n", "nan 1:1\n", "1 1:1 junk\n", "1 5:1 4:1\n", "\n"])
def test_refusals_of_sparse_tables(tmp_path, text):
    path = tmp_path / "t.svm"
    path.write_text("0 1:1\n" * 3 + text if text.strip() else text)
    stated = TableBounds(Target("label", 0, 9), {"3": Column("boolean")}, Column("number", -1, 1))
    for target in (stated.target, Target("y", 0, 9)):
        described = TableBounds(target, stated.columns if "3:" in text else {}, stated.defaults)
        with pytest.raises((DataError, ParameterError)) as expected:
            read_table(path, described, target.name)
        with pytest.raises((DataError, ParameterError)) as found:
            open_partitions(path, described)
        assert str(found.value) == str(expected.value)


def test_a_table_of_parquet_files_is_checked_once_and_in_full(tmp_path, small, monkeypatch):
    values = np.linspace(-1, 1, 900)
    values[850] = np.nan
    path = write(tmp_path, "t.parquet", pa.table({"y": np.zeros(900), "x": values, "z": values[::-1].copy()}))
    described = {"x": Column("number", -1, 1), "z": Column("number", -1, 1)}
    table = open_partitions(path, TableBounds(Target("y", 0, 1), described))
    # Early partitions hide it.
    table.read(1)
    seen = []
    with pytest.raises(SeveralProblemsError) as expected:
        read_table(path, table.bounds, "y")
    with pytest.raises(SeveralProblemsError) as found:
        table.check(seen.append)
    assert str(found.value) == str(expected.value)
    assert [str(error).split(":")[0] for error in found.value.errors] == ['column "x"', 'column "z"']
    table = open_partitions(path, TableBounds(Target("y", 0, 1), described, missing={"x": 0, "z": 0}))
    table.check(seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    monkeypatch.setattr(partitions.GroupReader, "read", None)
    table.check()


def test_null_records_take_stated_classes_and_parameters_are_checked(tmp_path):
    path = write(tmp_path, "t.csv")
    open_ended = bounds(BOUNDS.replace('classes = ["no", "yes"]', ""))
    with pytest.raises(ParameterError, match="^invalid='null': expected stated classes of the target"):
        open_partitions(path, open_ended, invalid="null")
    with pytest.raises(ParameterError, match="^memory=1000: expected"):
        open_partitions(path, bounds(), memory=1000)
    sparse = write_sparse(tmp_path / "t.svm")
    keyed = TableBounds(Target("label", -5, 5), defaults=Column("number", -2, 2), person="7")
    with pytest.raises(ParameterError, match="^person.column='7': expected a table with named columns"):
        open_partitions(sparse, keyed)
    with open_partitions(sparse, SPARSE_BOUNDS) as table, pytest.raises(ParameterError, match="named columns"):
        table.read_numbers(0, ["1"])


# ------------------------------------------------------------------ files that change, memory


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, name):
    path = write(tmp_path, name)
    table = open_partitions(path, bounds())
    table.read(0)
    write(tmp_path, name, TABLE.slice(0, N - 1))
    with pytest.raises(DataError, match=rf'^"{name}": expected a file that does not change while it is read, got'):
        table.read(0)
    path.unlink()
    with pytest.raises(DataError, match=rf'^"{name}": expected'):
        table.read(0)


def test_partitions_are_as_small_as_the_memory_asks(tmp_path):
    n_rows = 40_000
    path = tmp_path / "t.parquet"
    table = pa.table({f"x{i}": np.zeros(n_rows) for i in range(40)} | {"y": np.zeros(n_rows)})
    parquet.write_table(table, path)
    stated = TableBounds(Target("y", 0, 1), defaults=Column("number", -1, 1))
    assert open_partitions(path, stated).offsets.size == -(-n_rows // ((1 << 20) // 40))
    cells = (1 << 26) // 1024
    parts = open_partitions(path, stated, memory=1 << 26)
    assert parts.offsets.size == -(-n_rows // (cells // 40))
    # A record batch is read as a whole.
    arrow = tmp_path / "t.arrow"
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table)
    open_partitions(arrow, stated, memory=1 << 26)
    wide = pa.table({f"x{i}": np.zeros(n_rows) for i in range(200)} | {"y": np.zeros(n_rows)})
    with pa.ipc.new_file(arrow, wide.schema) as writer:
        writer.write_table(wide)
    with pytest.raises(DataError, match='^"t.arrow": expected row groups or record batches that can be read in half'):
        open_partitions(arrow, stated, memory=1 << 26)


@pytest.mark.parametrize(("allowed", "most"), [(200, 100), (1, 1), (1 << 20, 256), (-1, 256)])
def test_rows_of_persons_are_gathered_in_as_many_files_as_the_system_allows(monkeypatch, allowed, most):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    assert partitions._most_files() == most
