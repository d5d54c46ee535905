import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE
from taciturn.data.target import check_classes, check_y_bounds, class_signs, label_codes, numeric_target


def test_numbers_are_clipped_and_mapped():
    target = numeric_target([10.0, 20.0, 15.0, 99.0, -99.0], (10.0, 20.0))
    assert target.tolist() == [-ONE, ONE, 0.0, ONE, -ONE]


def test_bounds_at_the_edge_of_double_precision():
    assert numeric_target([1.6e308, -1.6e308, 0.0], (-1.7e308, 1.7e308)).tolist() == pytest.approx(
        [ONE * 16 / 17, -ONE * 16 / 17, 0.0], abs=1
    )


def test_two_labels_need_one_column():
    signs = class_signs(label_codes(np.array(["a", "b", "c", "b"]), np.array(["a", "b"])), 2)
    assert signs.ravel().tolist() == [-1.0, 1.0, 0.0, 1.0]


def test_more_labels_are_coded_one_against_the_rest():
    signs = class_signs(label_codes(np.array([3, 1, 2, 9]), np.array([1, 2, 3])), 3)
    assert signs.tolist() == [[-1, -1, 1], [1, -1, -1], [-1, 1, -1], [0, 0, 0]]


@pytest.mark.parametrize(
    "bad",
    [
        (1, 1),
        (2, 1),
        (0, np.inf),
        (np.nan, 1),
        3,
        (1, 2, 3),
        ("a", "b"),
        None,
        (-1e308, 1e308),
        (0, 1e-323),
        ("0", "1"),
        "01",
        (False, True),
        (0, 10**400),
    ],
)
def test_bad_bounds_are_refused(bad):
    with pytest.raises(ParameterError, match="^y_bounds=.*low < high"):
        check_y_bounds(bad)


@pytest.mark.parametrize("bad", [[1], [1, 1], [], [[1, 2]], 5, "01", None])
def test_bad_classes_are_refused(bad):
    with pytest.raises(ParameterError, match="^classes=.*two different labels"):
        check_classes(bad)


def test_classes_may_be_any_collection():
    assert sorted(check_classes({3, 1}).tolist()) == [1, 3]
    assert check_classes(range(3)).tolist() == [0, 1, 2]


def test_labels_of_another_type_are_null_one_by_one():
    assert label_codes(np.array(["0", "1"]), np.array([0, 1])).tolist() == [-1, -1]
    assert label_codes(np.array([0, 1]), np.array(["0", "1"])).tolist() == [-1, -1]
    assert label_codes(np.array(["0", 1], dtype=object), np.array([0, 1])).tolist() == [-1, 1]
    assert label_codes(np.array([1, "a", 7], dtype=object), np.array(["a", 7], dtype=object)).tolist() == [-1, 0, 1]


def test_objects_have_the_codes_of_the_class_that_equals_them():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

    y = np.array(["b", 1, 1.0, True, np.int64(0), None, Odd(), "1", float("nan")], dtype=object)
    assert label_codes(y, np.array([0, 1])).tolist() == [-1, 1, 1, 1, 0, -1, -1, -1, -1]
    assert label_codes(y, np.array(["a", "b"])).tolist() == [1, -1, -1, -1, -1, -1, -1, -1, -1]
    moments = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")
    days = np.array([np.datetime64("2021-01-01"), 1577836800000000000], dtype=object)
    assert label_codes(days, moments).tolist() == [1, -1]
