import pickle

import numpy as np
import pytest

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.validation import (
    check_choice,
    check_claimed_epsilon,
    check_delta,
    check_epsilon,
    check_finite,
    check_integer,
    check_positive,
    check_real,
    without_data_values,
)


@pytest.mark.parametrize("check", [check_epsilon, check_claimed_epsilon])
@pytest.mark.parametrize("bad", [0, 5e-324, 9.9e-10, -1.0, float("nan"), "1", None, True, -float("inf"), 1e10])
def test_epsilon(check, bad):
    with pytest.raises(ParameterError, match=r"^epsilon=.*expected a number >= 1e-09 .*; give the privacy .*\.$"):
        check(epsilon=bad)


@pytest.mark.parametrize("check", [check_epsilon, check_claimed_epsilon])
@pytest.mark.parametrize("good", [1e-9, 1, 0.5, np.float32(2), np.int64(3), 30, float("inf")])
def test_good_epsilon(check, good):
    assert check(epsilon=good) == float(good)


def test_parts_of_a_budget_may_be_any_number():
    assert check_epsilon(part=True, epsilon=5e-324) == 5e-324
    with pytest.raises(ParameterError, match=r"^epsilon=0: expected a number > 0 and at most 30 .*; give"):
        check_epsilon(part=True, epsilon=0)


@pytest.mark.parametrize("large", [np.nextafter(30.0, 31.0), 74, 1e4, 1e9])
def test_budgets_end_at_thirty_and_claims_do_not(large):
    with pytest.raises(ParameterError, match=r"at most 30 \(infinity switches privacy off\); .*float\('inf'\)"):
        check_epsilon(epsilon=large)
    assert check_claimed_epsilon(epsilon=large) == large


@pytest.mark.parametrize("bad", [-1e-9, 1.0, 2, float("nan"), None, "0", False])
def test_delta(bad):
    with pytest.raises(ParameterError, match=r"^delta=.*expected a number in \[0, 1\); choose it well below"):
        check_delta(delta=bad)


def test_other_checks_name_parameter_value_expectation_and_remedy():
    with pytest.raises(ParameterError, match="^x_bound=inf: expected a finite number > 0; give a positive x_bound"):
        check_positive(x_bound=float("inf"))
    with pytest.raises(ParameterError, match=r"^gamma=1: expected a number in \[0, 1\); choose gamma"):
        check_real(0, 1, closed="left", gamma=1)
    assert check_real(0, 1, gamma=1) == 1.0
    with pytest.raises(ParameterError, match="^k=9: expected an integer from 1 to 8; choose k"):
        check_integer(1, 8, k=9)
    assert check_integer(1, k=np.int32(4)) == 4
    with pytest.raises(ParameterError, match="^rule='no': expected one of 'a', 'b'; set rule"):
        check_choice(("a", "b"), rule="no")
    with pytest.raises(ParameterError, match="^size='al': expected 'auto', 'all' or a whole number >= 1; set size"):
        check_choice(("auto", "all"), "a whole number >= 1", size="al")


def test_errors_are_value_errors_and_travel_between_processes():
    error = pickle.loads(pickle.dumps(ParameterError("k", 3, "less", "lower it")))
    assert isinstance(error, ValueError)
    assert isinstance(error, TaciturnError)
    assert str(error) == "k=3: expected less; lower it."


def test_finite_arrays_keep_integers_exact():
    assert check_finite(scores=np.array([2**62 + 1])).tolist() == [2**62 + 1]
    assert check_finite(scores=[1, 2]).dtype == np.int64
    assert check_finite(scores=np.float32([1.5])).dtype == np.float64
    assert check_finite(scores=np.array([7], dtype=np.uint64)).dtype == np.int64
    for bad in ([], [[1.0]], ["a"], [np.nan], [np.inf], [True], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(DataError, match="^scores: expected"):
            check_finite(scores=bad)


def test_messages_that_quote_data_are_reworded_without_a_trace():
    with pytest.raises(DataError) as caught:
        without_data_values("X", lambda: np.asarray([["alice"]], dtype=float))
    assert "alice" not in str(caught.value)
    assert "X: expected numbers" in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_type_errors_stay_type_errors():
    with pytest.raises(TypeError) as caught:
        without_data_values("X", lambda: float({"name": "alice"}))
    assert "alice" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("original", "kept"),
    [
        # Numbers of records may be private.
        ("Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required.", False),
        ("Found array with 0 feature(s) (shape=(43210, 0)) while a minimum of 1 is required.", False),
        ("Found input variables with inconsistent numbers of samples: [43210, 1999]", False),
        ("y should be a 1d array, got an array of shape (43210, 2) instead.", False),
        ("Found array with dim 3, while dim <= 2 is required.", True),
        ("X has 2 features, but Selector is expecting 3 features as input.", True),
        ("Expected 2D array, got 1D array instead:\narray=[43210.55 1.].\nReshape your data", False),
        ("Complex data not supported\n[[0.27+1.j]]\n", False),
        ("Input X contains NaN.\nSomething about alice", False),
        ("a new message that quotes 43210.55", False),
    ],
)
def test_only_messages_known_to_be_safe_pass(original, kept):
    def fail():
        raise ValueError(original)

    with pytest.raises(DataError) as caught:
        without_data_values("X", fail)
    assert (str(caught.value) == original) == kept
    for value in ("43210", "0.27", "alice"):
        assert value not in str(caught.value)


def test_results_pass_through():
    assert without_data_values("X", lambda: 3) == 3
