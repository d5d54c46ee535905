"""Bytes of text tables: quotes, limits, files that change while they are read, and what is no file at all."""

import contextlib
import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather

from taciturn.core.errors import DataError, ParameterError
from taciturn.tables import Column, TableBounds, TableSchema, Target, formats, read_schema, read_table
from taciturn.tables.formats import ColumnSelection, StoppableStream, TableStream, _Quotes, interruptible, table_file

BOUNDS = TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1), "t": Column("ignore")})
SCHEMA = TableSchema(("y", "x", "t"), ("number", "number", "category"))
HEAD = "y,x,t\n"
ROW = "0.5,0.25,word\n"


# ------------------------------------------------------------------ quotes


def by_hand(text):
    """One character at a time: "open" at the end, "broken", or "whole"."""
    state = "start"
    for character in text:
        if state == "quoted":
            state = "closed" if character == '"' else "quoted"
        elif character in ",\r\n":
            state = "start"
        elif state == "closed":
            if character != '"':
                return "broken"
            state = "quoted"
        elif state == "start":
            state = "quoted" if character == '"' else "plain"
    return "open" if state == "quoted" else "whole"


@settings(derandomize=True, deadline=None, max_examples=400)
@given(text=st.text('"",\na\r', max_size=24), cuts=st.lists(st.integers(0, 24), max_size=4))
@example(text='a,"b""', cuts=[5])
@example(text='"a"b', cuts=[3])
@example(text='a"b",c""\n"', cuts=[])
def test_quotes_are_followed_over_blocks_of_any_size(text, cuts):
    quotes = _Quotes(",")
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    for start, stop in zip([0, *ends], ends, strict=False):
        if not quotes.broken:
            quotes.check(text[start:stop].encode())
    assert ("broken" if quotes.broken else "open" if quotes.opened else "whole") == by_hand(text)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(rows=st.lists(st.tuples(st.text('"",\na\r ', max_size=6), st.text('"",\na\r ', max_size=6)), max_size=6))
def test_what_a_csv_writer_writes_is_whole(rows):
    import csv as plain
    import io

    text = io.StringIO()
    plain.writer(text).writerows(rows)
    quotes = _Quotes(",")
    quotes.check(b"\xef\xbb\xbf" + text.getvalue().encode())
    assert (quotes.opened, quotes.broken) == (False, False)


@pytest.mark.parametrize("rows_before", [0, 40_000, 90_000])
def test_an_open_quote_does_not_swallow_the_rest_of_the_table(tmp_path, rows_before):
    path = tmp_path / "t.csv"
    text = HEAD + ROW * rows_before + '0.5,0.25,"word\n' + ROW * 20
    path.write_text(text)
    # The reader alone takes twenty rows for a cell.
    taken = csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True))
    assert taken.num_rows == rows_before + 1
    with pytest.raises(DataError, match=r'^"t.csv": expected quotes around whole cells.*; close them'):
        read_table(path, BOUNDS, "y")


@pytest.mark.slow
def test_the_check_of_quotes_costs_little(tmp_path):
    """Every cell in quotes, which is the worst: less than a second for ten megabytes."""
    data = ('"1.5","2.25","he ""llo"\n' * 400_000).encode()
    quotes = _Quotes(",")
    start = time.process_time()
    for at in range(0, len(data), 1 << 20):
        quotes.check(data[at : at + (1 << 20)])
    assert not quotes.opened
    assert not quotes.broken
    assert time.process_time() - start < 1.0


# ------------------------------------------------------------------ what is no file on a disk


@pytest.fixture
def special(tmp_path):
    """A pipe, a socket, and devices behind links."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "zero.svm").symlink_to("/dev/zero")
    (tmp_path / "random.parquet").symlink_to("/dev/urandom")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as opened:
        # The name of a socket is short.
        before = os.getcwd()
        os.chdir(tmp_path)
        opened.bind("socket.csv")
        os.chdir(before)
        yield tmp_path


@pytest.mark.parametrize("name", ["pipe.csv", "zero.csv", "zero.svm", "random.parquet", "socket.csv"])
def test_pipes_and_devices_are_refused_without_being_opened(special, name):
    with pytest.raises(ParameterError, match=r"expected a file on a disk, got a pipe or a device; write what comes"):
        read_schema(special / name)


# ------------------------------------------------------------------ limits


def drain(stream):
    while stream.read(1 << 16):
        pass


def test_a_gzip_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress((HEAD + ROW).encode() + ROW.encode() * 200_000))
    unpacked = len(HEAD) + len(ROW) * 200_001
    assert path.stat().st_size < unpacked / 200
    monkeypatch.setattr(formats, "MOST_UNPACKED", unpacked)
    assert read_table(path, BOUNDS, "y")[0].shape == (200_001, 1)
    monkeypatch.setattr(formats, "MOST_UNPACKED", unpacked - 1)
    with pytest.raises(DataError, match=r"at most [\d,]+ bytes, got a larger one; unpack it"):
        read_table(path, BOUNDS, "y")


def test_an_endless_stream_of_zeros_stops_at_the_limit(tmp_path, monkeypatch):
    """Not after it: a block more at the most is unpacked."""
    path = tmp_path / "zeros.svm.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(bytes(1 << 26))
    monkeypatch.setattr(formats, "MOST_UNPACKED", 1 << 20)
    stream = TableStream(path, "zeros", gzipped=True)
    with pytest.raises(DataError, match="at most 1,048,576 bytes"):
        drain(stream)
    assert stream._count <= (1 << 20) + (1 << 16)
    stream.close()


def test_a_table_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + ROW * 100)
    monkeypatch.setattr("taciturn.tables.formats.machine_memory", lambda: 100)
    with pytest.raises(DataError, match="fits into memory, got a larger one; leave columns or rows out"):
        read_table(path, BOUNDS, "y")
    monkeypatch.undo()
    monkeypatch.setattr("taciturn.tables.partitions.machine_memory", lambda: 8 * 99)
    with pytest.raises(DataError, match="fits into memory") as caught:
        read_table(path, BOUNDS, "y")
    # The number of rows may be one of the things to protect.
    assert "100" not in str(caught.value)


def test_a_libsvm_line_without_end_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.svm"
    monkeypatch.setattr(formats, "_BLOCK", 64)
    monkeypatch.setattr(formats, "_LONGEST_LINE", 1000)
    lines = "".join(f"1 {' '.join(f'{i}:1' for i in range(1, n))}\n" for n in (2, 5, 100, 3, 1))
    path.write_text(lines + "1 1:1")
    bounds = TableBounds(Target("label", -1, 1), defaults=Column("number", -1, 1))
    X, y = read_table(path, bounds, "label")
    # In blocks shorter than lines: nothing is cut in two.
    assert np.diff(X.indptr).tolist() == [1, 4, 99, 2, 0, 1]
    assert y.tolist() == [1.0] * 6
    path.write_text(lines + "1 " + "1:1 " * 400)
    with pytest.raises(DataError, match="lines of at most 1,000 bytes, got a longer one; check the ends of lines"):
        read_schema(path)


# ------------------------------------------------------------------ files that change


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + ROW * 100_000)
    for size in (len(HEAD) + len(ROW) * 50_000, len(HEAD) + len(ROW) * 300_000):
        stream = TableStream(path, '"t.csv"', gzipped=False, delimiter=",")
        stream.read(1 << 16)
        os.truncate(path, size)
        with pytest.raises(DataError, match=r'"t.csv": expected a file that does not change .* wait until'):
            drain(stream)
        stream.close()


CUT_SHORT = """
import os, sys
from taciturn.core.errors import DataError
from taciturn.tables import Column, TableBounds, Target, partitions, read_table

batches = partitions.ipc_batches

def cut_after_the_first(*arguments):
    for batch in batches(*arguments):
        yield batch
        os.truncate(sys.argv[1], 100_000)

partitions.ipc_batches = cut_after_the_first
try:
    read_table(sys.argv[1], TableBounds(Target("y", 0, 1), {"x": Column("number", -1, 1)}), "y")
except DataError as error:
    print(error)
"""


def test_a_feather_file_that_is_cut_short_while_it_is_read_does_not_end_the_process(tmp_path):
    """A mapped file would: reading behind its new end is a bus error."""
    path = tmp_path / "t.feather"
    rows = 400_000
    table = pa.table({"y": np.zeros(rows), "x": np.linspace(-1, 1, rows)})
    feather.write_feather(table, str(path), compression="uncompressed", chunksize=1000)
    done = subprocess.run([sys.executable, "-c", CUT_SHORT, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert path.stat().st_size == 100_000
    assert done.stdout.startswith('"t.feather": expected a complete arrow file, got a damaged one')


# ------------------------------------------------------------------ interrupts


@pytest.mark.usefixtures("interrupts")
def test_a_request_to_stop_is_looked_at_between_two_reads():
    """A reader that never ends by itself, in a thread that receives no signal."""
    stream, ends = StoppableStream(), []

    def read_for_ever():
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            try:
                stream.check_stop()
            except InterruptedError:
                ends.append("stopped")
                raise

    with pytest.raises(KeyboardInterrupt):
        interruptible(stream, read_for_ever)
    # The reader has ended when the interrupt goes on, so that nobody reads a file that is closed.
    assert ends == ["stopped"]


@pytest.mark.parametrize("begins", [True, False])
def test_an_interrupt_while_the_reader_starts_stops_it_too(monkeypatch, begins):
    """The thread begins after the interrupt, or never."""
    stream, calls, start = StoppableStream(), [], threading.Thread.start

    def begin_late(self):
        start(threading.Thread(target=lambda: stream._stopped.wait() and start(self), daemon=True))
        raise KeyboardInterrupt

    def never_begin(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(formats, "_WAIT", 0.05)
    monkeypatch.setattr(formats.threading.Thread, "start", begin_late if begins else never_begin)
    with pytest.raises(KeyboardInterrupt):
        interruptible(stream, lambda: calls.append(1))
    assert stream.stopped
    assert not calls


def test_errors_and_results_of_an_interruptible_call_are_those_of_the_call():
    stream = StoppableStream()
    assert interruptible(stream, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(stream, lambda: 1 // 0)
    assert not stream.stopped


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("whole", [True, False])
def test_an_interrupt_ends_a_text_table_that_never_ends(tmp_path, monkeypatch, whole):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress((HEAD + ROW * 1000).encode()))
    unpack, reads = gzip.GzipFile.read, []

    def endless(self, size=-1):
        reads.append(size)
        if len(reads) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return unpack(self, size) or ROW.encode() * 1000

    monkeypatch.setattr(gzip.GzipFile, "read", endless)
    how = formats.infer_types if whole else lambda *what: list(formats.stream_batches(*what))
    with pytest.raises(KeyboardInterrupt):
        how(table_file(path), SCHEMA, ColumnSelection({"x": "as it is"}))
