"""Every class reads a sparse table by what it says, not by how it is stored, and refuses one that says nothing."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from every_class import EVERY_CLASS, records, released, takes_sparse, target_for

from taciturn.core.errors import DataError
from taciturn.data.records import canonical_layout, checked_layout

# So few records are a warning of the default model, and none of this matter.
pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

SPARSE = [name for name, factory in EVERY_CLASS.items() if takes_sparse(factory())]


def test_broken_tables_are_refused_by_every_class_before_anything_reads_them():
    here = Path(__file__).parent
    run = subprocess.run([sys.executable, str(here / "every_class_reads.py")], capture_output=True, text=True, cwd=here)
    # A negative code is the signal that ended the process.
    assert run.returncode == 0, run.stderr[-2000:]
    outcomes = json.loads(run.stdout)
    assert {call.split(".")[0] for call in outcomes} == set(SPARSE)
    assert {call.split(".")[1].split(":")[0] for call in outcomes} >= {
        "fit", "predict", "predict_proba", "decision_function", "transform", "score", "private_score"
    }  # fmt: skip
    assert {call: kind for call, (kind, _) in outcomes.items() if kind != "DataError"} == {}
    # The place is a value of the data.
    assert [
        call for call, (_, message) in outcomes.items() if "99" in message or "build the table" not in message
    ] == []


def stored_otherwise(X):
    """The same table, stored in every way that scipy knows."""
    entries = sp.coo_array(X)
    zeros = np.argwhere(X == 0.0)[::3].T
    with_zeros = sp.coo_array(
        (
            np.append(entries.data, np.zeros(zeros.shape[1])),
            (np.append(entries.row, zeros[0]), np.append(entries.col, zeros[1])),
        ),
        shape=X.shape,
    )
    in_parts = sp.csr_array(X)
    # Three quarters and a quarter are exact in doubles.
    order = np.repeat(np.arange(in_parts.nnz), 2)
    parts = sp.csr_array(
        (
            in_parts.data[order] * np.tile([0.75, 0.25], in_parts.nnz),
            in_parts.indices[order],
            2 * in_parts.indptr,
        ),
        shape=X.shape,
    )
    backwards = sp.csr_array(X)
    for start, stop in zip(backwards.indptr[:-1], backwards.indptr[1:], strict=True):
        backwards.data[start:stop] = backwards.data[start:stop][::-1].copy()
        backwards.indices[start:stop] = backwards.indices[start:stop][::-1].copy()
    backwards.has_sorted_indices = True  # A flag that has gone stale, as after a change of the arrays.
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    spare = sp.csr_array(X)
    spare.indices, spare.data = np.append(spare.indices, [77, -1]), np.append(spare.data, [5.0, 6.0])
    return {
        "matrix": sp.csr_matrix(X),
        "csc": sp.csc_array(X),
        "coo": entries,
        "bsr": sp.bsr_array(X, blocksize=(2, 3)),
        "lil": sp.lil_array(X),
        "dok": sp.dok_array(X),
        "dia": sp.dia_array(X),
        "int64 indices": wide,
        "explicit zeros": with_zeros.tocsr(),
        "explicit zeros, csc": with_zeros.tocsc(),
        "entries in parts": parts,
        "unsorted": backwards,
        "room for more entries": spare,
    }


@pytest.mark.parametrize("name", SPARSE)
def test_the_layout_of_a_table_decides_nothing(name):
    X, y = records(n=80)
    # Quarters, so that an entry in two parts is their exact sum.
    X = np.round(4.0 * X) / 4.0
    factory = EVERY_CLASS[name]
    y = target_for(factory(), y)
    fitted = factory().fit(sp.csr_array(X), y)
    expected = released(fitted)
    for layout, table in stored_otherwise(X).items():
        assert released(factory().fit(table, y)) == expected, layout
        for method in ("predict", "decision_function", "transform"):
            if hasattr(fitted, method):
                ours, theirs = (getattr(fitted, method)(t) for t in (table, sp.csr_array(X)))
                difference = abs(ours - theirs)
                assert difference.max() == 0, (layout, method)


def test_the_callers_table_stays_as_it_is():
    X, y = records(n=60)
    # Those that have to be put in order before they can be read.
    untidy = ("explicit zeros, csc", "entries in parts", "unsorted", "room for more entries")
    for layout, table in stored_otherwise(X).items():
        if layout not in untidy:
            continue
        before = {name: np.copy(getattr(table, name)) for name in ("data", "indices", "indptr") if hasattr(table, name)}
        for name in SPARSE:
            model = EVERY_CLASS[name]()
            model.fit(table, target_for(model, y))
        for name, array in before.items():
            assert np.array_equal(getattr(table, name), array), (layout, name)


def test_a_sum_of_entries_of_one_cell_can_be_too_large():
    X, y = records(n=60)
    table = sp.csr_array(X)
    table.data[:] = 0.0
    row = np.flatnonzero(np.diff(table.indptr) >= 2)[0]
    table.indices[table.indptr[row] : table.indptr[row] + 2] = 0
    table.data[table.indptr[row] : table.indptr[row] + 2] = 1.7e308
    model = EVERY_CLASS["FrankWolfeRegressor"]()
    with pytest.raises(DataError, match=r"^X: expected finite numbers"):
        model.fit(table, y)


def test_integers_in_parts_do_not_wrap_around():
    table = sp.coo_array((np.array([200, 100], dtype=np.uint8), ([0, 0], [1, 1])), shape=(2, 3))
    assert checked_layout(table).toarray()[0, 1] == 300.0


def test_a_sound_table_is_not_copied():
    table = sp.csr_array(records(n=30)[0])
    read = canonical_layout(checked_layout(table))
    assert np.shares_memory(read.data, table.data)
    assert np.shares_memory(read.indices, table.indices)
