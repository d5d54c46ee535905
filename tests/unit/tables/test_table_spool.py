"""Copies of text tables in a private folder, which is gone afterwards, and tables that are folders of files."""

import gc
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pyarrow as pa
import pytest
from tables_on_disk import TABLE, N, bounds, write

from taciturn.core.errors import DataError, ParameterError
from taciturn.tables import Column, TableBounds, Target, open_partitions, partitions, read_schema, read_table

FORMATS = ["t.csv", "t.tsv.gz", "t.ipc"]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of this test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


# ------------------------------------------------------------------ copies


@pytest.mark.parametrize("name", FORMATS)
def test_the_copy_is_private_and_removed_when_the_table_is_closed(tmp_path, temporary, name):
    path = write(tmp_path, name)
    seen = []
    with open_partitions(path, bounds(), progress=seen.append) as table:
        (folder,) = temporary.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert seen == sorted(seen)
        assert seen[-1:] == ([] if name == "t.ipc" else [1.0])
        # Only what the bounds name: a column that is left out stays where it was.
        (file,) = folder.iterdir()
        names = pa.ipc.open_file(pa.OSFile(str(file))).schema.names
        assert names == ["age", "body mass", "smoker", "region.é", "ill"]
        # The copy is the table now.
        path.unlink()
        table.read(0)
    assert not list(temporary.iterdir())
    with pytest.raises(DataError, match="^table: expected an open table, got one that was closed; open it again"):
        table.read(0)
    table.close()


def test_a_table_that_is_forgotten_leaves_nothing(tmp_path, temporary):
    path = write(tmp_path, "t.csv")
    table = open_partitions(path, bounds())
    other = table.with_bounds(table.bounds)
    del table
    gc.collect()
    assert list(temporary.iterdir())
    other.read(0)
    del other
    gc.collect()
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("failure", ["cell", "interrupt", "disk"])
def test_a_copy_that_fails_leaves_nothing(tmp_path, temporary, monkeypatch, failure):
    monkeypatch.setattr(partitions, "_CELLS", 200)
    path = tmp_path / "t.csv"
    path.write_text("y,x\n" + "0,1\n" * 500 + ("0,\n" if failure == "cell" else ""))
    stated = TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)})
    writes = []
    new_file = pa.ipc.new_file

    def write_some(*args, **options):
        writes.append(args)
        if len(writes) == 2 and failure == "disk":
            raise OSError(28, "No space left on device")
        return new_file(*args, **options)

    def interrupt(fraction):
        if failure == "interrupt" and writes:
            raise KeyboardInterrupt

    monkeypatch.setattr(pa.ipc, "new_file", write_some)
    expected, message = {
        "cell": (DataError, '^column "x": expected a value in every row'),
        "interrupt": (KeyboardInterrupt, "^$"),
        "disk": (DataError, '^"t.csv": expected free space for temporary files of its size, got less; set TMPDIR'),
    }[failure]
    with pytest.raises(expected, match=message):
        open_partitions(path, stated, progress=interrupt)
    assert writes
    assert not list(temporary.iterdir())


def test_space_is_looked_for_first(tmp_path, temporary, monkeypatch):
    path = write(tmp_path, "t.csv")
    free = [path.stat().st_size]
    usage = partitions.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(partitions.shutil, "disk_usage", lambda _: usage._replace(free=free[0]))
    with pytest.raises(DataError, match='^"t.csv": expected free space for temporary files of its size'):
        open_partitions(path, bounds())
    assert not list(temporary.iterdir())
    free[0] += 1
    open_partitions(path, bounds()).close()
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="set TMPDIR to a folder on another disk"):
        open_partitions(path, bounds())


def test_a_view_without_an_end_does_not_fill_the_disk(tmp_path, temporary, monkeypatch):
    database = sqlite3.connect(tmp_path / "t.sqlite")
    database.execute(
        "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, x AS y FROM c"
    )
    database.close()
    monkeypatch.setattr(partitions, "_CELLS", 10_000)
    usage, looks = partitions.shutil.disk_usage(tmp_path), []

    def filling(_):
        looks.append(1)
        return usage._replace(free=max(0, 1_000_000 - 100_000 * len(looks)))

    monkeypatch.setattr(partitions.shutil, "disk_usage", filling)
    stated = TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)})
    with pytest.raises(DataError, match='^"t.sqlite": expected free space for temporary files of its size, got less'):
        open_partitions(tmp_path / "t.sqlite", stated)
    # Parts were written until there was no space for the next one.
    assert 5 < len(looks) < 10
    assert not list(temporary.iterdir())


def test_a_forked_process_and_a_copy_do_not_remove_what_is_not_theirs(tmp_path, temporary):
    table = open_partitions(write(tmp_path, "t.csv"), bounds())
    with warnings.catch_warnings():
        # Other tests leave threads behind; this child runs none of their code.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        table.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert list(temporary.iterdir())
    table.read(0)
    table.close()
    assert not list(temporary.iterdir())


ENDS = """
import sys
from taciturn.tables import Column, TableBounds, Target, open_partitions
table = open_partitions(sys.argv[1], TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)}))
table.read(0)
import os, tempfile
print(len(os.listdir(tempfile.gettempdir())))
if sys.argv[2] == "exception":
    raise SystemError
"""


@pytest.mark.parametrize("end", ["quiet", "exception"])
def test_the_end_of_the_process_removes_the_copy(tmp_path, temporary, end):
    path = tmp_path / "t.csv"
    path.write_text("y,x\n0,1\n")
    environment = dict(os.environ) | {"TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", ENDS, path, end], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "1\n", done.stderr
    assert ("SystemError" in done.stderr) == (end == "exception")
    assert not list(temporary.iterdir())


def test_a_text_table_that_is_written_meanwhile_is_refused(tmp_path, temporary):
    path = tmp_path / "t.csv"
    path.write_text("y,x\n" + "0,1\n" * 200_000)

    def touch(fraction):
        os.utime(path, ns=(1, 1))

    stated = TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)})
    with pytest.raises(DataError, match='^"t.csv": expected a file that does not change while it is read'):
        open_partitions(path, stated, progress=touch)
    assert not list(temporary.iterdir())


# ------------------------------------------------------------------ folders


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".ipc"])
def test_a_folder_of_files_is_a_table(tmp_path, monkeypatch, ending):
    folder = tmp_path / "table"
    folder.mkdir()
    whole = write(tmp_path, f"whole{ending}")
    cuts = [0, 1, 100, 100, 130, N]
    # In the order of their names, not in that in which they were written.
    for i in (3, 0, 4, 2, 1):
        write(folder, f"part-{i}{ending}", TABLE.slice(cuts[i], cuts[i + 1] - cuts[i]))
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.csv").write_text("")
    assert read_schema(folder) == read_schema(whole)
    X, y = read_table(whole, bounds(), "ill")
    for cells in (1 << 20, 250):
        monkeypatch.setattr(partitions, "_CELLS", cells)
        with open_partitions(folder, bounds()) as table:
            parts = [table.read(index) for index in range(table.offsets.size)]
            assert (len(parts) == 1) == (cells > 250)
            assert np.vstack([part[0] for part in parts]).tobytes() == X.tobytes()
            assert np.concatenate([part[1] for part in parts]).tolist() == y.tolist()


def test_folders_that_are_no_table(tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    with pytest.raises(ParameterError, match="^table='table': expected a folder with Parquet or Arrow files, got none"):
        open_partitions(folder, bounds())
    first = write(folder, "a.parquet")
    (folder / "year=2020").mkdir()
    with pytest.raises(ParameterError, match="a folder of files, got one with folders in it, whose names may be colu"):
        open_partitions(folder, bounds())
    (folder / "year=2020").rmdir()
    for other in ("b.csv", "b.arrow"):
        path = write(folder, other)
        with pytest.raises(ParameterError, match="a folder of Parquet files alone, or of Arrow files alone"):
            open_partitions(folder, bounds())
        path.unlink()
    for table in (
        TABLE.select(TABLE.column_names[::-1]),
        TABLE.drop_columns("born"),
        TABLE.set_column(1, "age", TABLE["age"].cast("string")),
    ):
        path = write(folder, "b.parquet", table)
        with pytest.raises(DataError, match='^"b.parquet": expected the columns of "a.parquet", with the same names'):
            open_partitions(folder, bounds())
        path.unlink()
    first.write_bytes(b"PAR1")
    with pytest.raises(DataError, match='^"a.parquet": expected a complete parquet file'):
        open_partitions(folder, bounds())
