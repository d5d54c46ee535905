"""Cells are judged one by one: what one of them says changes nothing about another."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from taciturn import BoundedScaler, FrankWolfeRegressor, ObjectivePerturbationRegressor
from taciturn.core.errors import DataError, SeveralProblemsError
from taciturn.data.records import (
    Records,
    blanked,
    declares_truth_values,
    finite_rows,
    judged_labels,
    judged_numbers,
    judged_table,
    plain_labels,
    public_labels,
    read_part,
)
from taciturn.data.target import label_codes

NUMBERS = [
    (1, 1.0),
    (True, 1.0),
    (np.float32(0.5), 0.5),
    (Decimal("0.25"), 0.25),
    (Fraction(1, 4), 0.25),
    ("1.5", 1.5),
    (b"2", 2.0),
    (2**70, 2.0**70),
    (np.uint8(7), 7.0),
]


class Refusing:
    def __float__(self):
        raise RuntimeError("17")


NO_NUMBERS = [
    None, float("nan"), float("inf"), "text", "", pd.NA, pd.NaT, 1j, 10**400, {}, [1, 2], (), object(), Refusing(),
    Decimal("sNaN"), Decimal("Infinity"), datetime.date(2020, 1, 1), pd.Timestamp("2020"), np.datetime64("2020"), "nan",
]  # fmt: skip


def column_of(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


@pytest.mark.parametrize("other", [1.0, "text", None, 1j, Refusing()])
def test_a_cell_means_the_same_beside_any_other(other):
    for cell, expected in NUMBERS:
        assert judged_numbers(column_of([cell, other]))[0] == expected
    for cell in NO_NUMBERS:
        assert np.isnan(judged_numbers(column_of([cell, other]))[0])


def test_text_and_dates_alone_mean_what_they_mean_beside_objects():
    assert judged_numbers(np.array(["1.5", "x"])).tolist()[0] == 1.5
    assert judged_numbers(np.array(["1.5", "1_0"])).tolist() == [1.5, 10.0]
    assert np.isnan(judged_numbers(np.array(["2020", "2021"], dtype="M8[ns]"))).all()


def test_lists_are_read_cell_by_cell():
    # numpy itself would make text of both numbers.
    assert np.array_equal(judged_table([[1, "x"], [2, 3]]), [[1.0, np.nan], [2.0, 3.0]], equal_nan=True)
    assert judged_table([[1, 2], [3]]).ndim == 1


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2, 3], "b": ["x", "2", None], "c": pd.array([True, None, False], dtype="boolean")}),
        pl.DataFrame({"a": [1, 2, 3], "b": ["x", "2", None], "c": [True, None, False]}),
        pa.table({"a": [1, 2, 3], "b": ["x", "2", None], "c": [True, None, False]}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_columns_of_frames_do_not_decide_about_each_other(frame):
    expected = [[1.0, np.nan, 1.0], [2.0, 2.0, np.nan], [3.0, np.nan, 0.0]]
    assert np.array_equal(judged_table(frame), expected, equal_nan=True)
    assert finite_rows(judged_table(frame)).tolist() == [False, False, False]


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_array])
def test_rows_of_sparse_tables_are_judged_by_their_entries(layout):
    X = np.array([[0.0, 1.0], [np.nan, 2.0], [0.0, 0.0], [3.0, np.inf]])
    table = judged_table(layout(X))
    assert finite_rows(table).tolist() == [True, False, True, False]
    assert blanked(table, finite_rows(table)).toarray().tolist() == [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert np.isnan(X[1, 0])


def test_parts_of_one_cell_that_add_up_to_infinity_are_no_number():
    table = sp.csr_array((np.array([1.7e308, 1.7e308]), np.array([0, 0]), np.array([0, 2, 2])), shape=(2, 1))
    assert finite_rows(judged_table(table)).tolist() == [False, True]


def test_labels_are_missing_or_they_are_labels():
    labels, present = judged_labels(column_of(["a", None, 3, float("nan"), pd.NA, pd.NaT, float("inf"), "", np.nan]))
    assert present.tolist() == [True, False, True, False, False, False, False, True, False]
    assert labels[0] == "a"
    whole, there = judged_labels(column_of([1, None, 0]))
    assert whole[there].tolist() == [1, 0]
    # A label beyond 64 bits is a label.
    assert judged_labels(column_of([10**30, None]))[0][0] == 10**30


def test_labels_that_are_public_as_a_set_have_one_type():
    assert plain_labels(column_of([1, 0])).dtype == np.int64
    assert plain_labels(column_of([True, False])).dtype == bool
    for mixed in (["a", 1], [10**30, 1], [(1, 2), 3]):
        assert plain_labels(column_of(mixed)).dtype == object


@pytest.mark.parametrize("odd", [None, "x", 0.5, np.array([1, 2]), float("nan")], ids=repr)
def test_no_label_decides_how_another_one_is_read(odd):
    # As doubles these two classes would be one and the same.
    classes = np.array([2**53, 2**53 + 1])
    labels, _ = judged_labels(column_of([odd, 2**53 + 1, 2**53, None]))
    assert label_codes(labels, classes).tolist() == [-1, 1, 0, -1]


@pytest.mark.parametrize("column_type", [pl.Series, pa.array, lambda cells: pd.Series(cells, dtype="object"), list])
def test_a_missing_label_does_not_round_the_others(column_type):
    labels, known = judged_labels(column_type([2**53 + 1, 2**53, None]))
    assert known.tolist() == [True, True, False]
    assert label_codes(labels, np.array([2**53, 2**53 + 1])).tolist() == [1, 0, -1]


def test_labels_that_are_public_as_a_set_are_not_read_anew_for_one_of_them():
    assert public_labels(["b", "a"]).dtype == np.dtype("<U1")
    assert public_labels(pd.Series(["b", "a"], dtype=object)).dtype == object
    assert public_labels([1, 0]).dtype == np.int64
    assert public_labels([1.0, True, 0]).tolist() == [0.0, 1.0]
    with pytest.raises(DataError, match="^Unknown label type"):
        # As doubles two of these would be one.
        public_labels([1.0, 2**53 + 1, 2**53])
    for mixed in ([0, 1, "x"], (0, 1, "x"), pd.Series([0, 1, "x"], dtype=object), column_of(["x", 0, 1])):
        with pytest.raises(DataError, match=r"^y: expected labels that are all text or all numbers, got both; pass"):
            public_labels(mixed)
    for table in (np.zeros((3, 2)), [[1, 2], [3, 4]]):
        with pytest.raises(DataError, match="^y: expected a 1d array"):
            public_labels(table)


def test_truth_values_are_a_type_and_not_what_a_column_happens_to_hold():
    with_a_gap = [True, None, False]
    for column in (
        np.array([True, False]),
        pd.Series([True, False]),
        pd.Series(with_a_gap, dtype="boolean"),
        pl.Series(with_a_gap, dtype=pl.Boolean),
        pa.array(with_a_gap),
    ):
        assert declares_truth_values(column)
    for column in (column_of(with_a_gap), [True, False], np.array([0, 1]), pd.Series([1, 0]), pl.Series([1, 0])):
        assert not declares_truth_values(column)


def test_present_records_keep_their_slots():
    X = sp.csc_array(np.eye(4))
    kept = Records(X, np.arange(4), np.arange(4), 4).keep(np.array([True, False, True, True]))
    kept = kept.keep(np.array([False, True, True]))
    assert (kept.slots.tolist(), kept.y.tolist(), kept.n_slots, kept.n_features) == ([2, 3], [2, 3], 4, 4)
    assert kept.X.toarray().tolist() == np.eye(4)[2:].tolist()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_refusal_names_the_columns_with_text_or_missing_cells(frame):
    cells = {"age": [0.5] * 60, "sex": ["Smith, 4711"] * 60, "crp": [None, *[0.5] * 59], "bmi": [np.inf, *[0.5] * 59]}
    y = np.zeros(60)
    missing = "X: expected finite numbers in columns 'crp', 'bmi', got NaN or infinity; "
    text = "X: expected numbers in column 'sex', got text or objects; "
    names = [name for name in cells if name != "sex"]
    fitted = FrankWolfeRegressor(random_state=0).fit(frame(dict.fromkeys(names, cells["age"])), y)
    numeric = frame({name: cells[name] for name in names})
    for call in (
        lambda: FrankWolfeRegressor().fit(numeric, y),
        lambda: fitted.predict(numeric),
        lambda: BoundedScaler(lower=0.0, upper=1.0).fit_transform(numeric),
        lambda: read_part(numeric, y, invalid="raise", numeric=True),
    ):
        with pytest.raises(DataError) as caught:
            call()
        assert str(caught.value).startswith(missing)
    # All of them at once, and no cell.
    with pytest.raises(SeveralProblemsError) as caught:
        FrankWolfeRegressor().fit(frame(cells), y)
    first, second = str(caught.value).split("\n")
    assert (first.startswith(text), second.startswith(missing)) == (True, True)
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_refusal_lists_ten_columns_at_most_and_none_without_names():
    table = np.full((60, 13), np.nan)
    with pytest.raises(DataError, match="in columns 'a0', .*, 'a9' and 3 others, got NaN"):
        FrankWolfeRegressor().fit(pd.DataFrame(table, columns=[f"a{j}" for j in range(13)]), np.zeros(60))
    with pytest.raises(DataError, match="^X: expected finite numbers, got NaN or infinity; "):
        FrankWolfeRegressor().fit(table, np.zeros(60))


def test_complex_tables_are_refused_by_their_type():
    with pytest.raises(DataError, match="expected real numbers"):
        judged_table(np.ones((2, 2), dtype=complex))


@pytest.mark.parametrize("missing", [None, np.nan, np.inf, -np.inf])
def test_a_target_that_is_missing_among_objects_is_refused_before_the_fit(missing):
    """It used to pass: the fixed-point number of NaN is -2**63, and one record decided the whole model."""
    X, y = np.zeros((60, 2)), np.zeros(60, dtype=object)
    y[3] = missing
    for model in (ObjectivePerturbationRegressor(random_state=0), FrankWolfeRegressor(random_state=0)):
        with pytest.raises(DataError, match=r"^(X or )?y: expected finite numbers, got NaN or infinity; .*\.$"):
            model.fit(X, y)
        assert not hasattr(model, "certificate_")


def test_integers_beyond_doubles_are_no_finite_numbers():
    X = np.zeros((60, 2), dtype=object)
    model = FrankWolfeRegressor(random_state=0).fit(X, np.zeros(60))
    X[3, 1] = 10**400
    for call in (lambda: model.predict(X), lambda: model.fit(X, np.zeros(60))):
        with pytest.raises(DataError, match="expected finite numbers, got NaN or infinity"):
            call()


# ------------------------------------------------------------------ targets in lists, and labels with gaps

ODD_TARGETS = (None, "x", [], [1.0, 2.0], [[0.5]], np.ones(2), np.array([0.5]), {"a": 1})


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("odd", ODD_TARGETS, ids=repr)
def test_one_odd_target_of_a_list_changes_no_other(nested, odd):
    numbers = [0.25, -0.5, 0.75]
    y = [[value] for value in numbers] if nested else list(numbers)
    assert judged_numbers([*y, odd])[:3].tolist() == numbers
    labels, known = judged_labels([*y, odd])
    assert label_codes(labels[known], np.array(numbers))[:3].tolist() == [0, 1, 2]
    # numpy nests lists only if all of them are.
    assert nested is (np.array(y, dtype=object).ndim == 2)


@pytest.mark.parametrize(
    "column",
    [
        lambda values: pd.Series(values, dtype="object").astype("category"),
        lambda values: pa.array(values).dictionary_encode(),
        lambda values: pl.Series(values),
    ],
    ids=["pandas", "pyarrow", "polars"],
)
def test_a_gap_rounds_no_large_label(column):
    large = [2**53, 2**53 + 1, 2**53]
    classes = np.array([2**53, 2**53 + 1])
    for values in (large, [*large, None]):
        labels, known = judged_labels(column(values))
        assert label_codes(labels[known], classes).tolist() == [0, 1, 0]
