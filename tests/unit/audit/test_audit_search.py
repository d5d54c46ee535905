"""The search for the largest change between neighbours."""

import dataclasses
import math

import numpy as np
import pytest

from taciturn.audit import sensitivity_search
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.sensitivity import RELATIONS, correlation_scores
from taciturn.data.target import class_signs, label_codes, numeric_target


def correlations(X, y):
    return np.abs(Design(X, 1.0).rmatvec(numeric_target(y, (-1.0, 1.0))[:, None], ONE)).max(axis=1) / ONE**2


def class_correlations(X, y):
    return (
        np.abs(Design(X, 1.0).rmatvec(class_signs(label_codes(y, np.array(["a", "b", "c"])), 3), 1)).max(axis=1) / ONE
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("scores", "target"), [(correlations, (-1.0, 1.0)), (class_correlations, ["a", "b", "c"])], ids=["range", "labels"]
)
def test_a_search_reaches_the_sensitivity_and_an_understated_one_is_exceeded(scores, target, relation):
    declared = correlation_scores(1.0, 1.0, relation).value
    result = sensitivity_search(scores, (1.0, target), relation, declared=declared)
    assert 0.99 <= result.ratio <= 1.0
    assert result.verdict == "not exceeded"
    assert dataclasses.replace(result, declared=0.9 * declared).verdict == "exceeded"
    (X, y), (X2, y2) = result.pair.first, result.pair.second
    assert np.max(np.abs(scores(X, y) - scores(X2, y2))) == result.change
    if relation == "replace-one":
        assert np.sum(np.any(X != X2, axis=1) | (y != y2)) == 1
    else:
        assert [row.tolist() for row in X2] in [np.delete(X, i, axis=0).tolist() for i in range(5)]
        assert len(y2) == len(y) - 1


def test_a_search_stays_within_the_bounds():
    seen = []

    def function(X, y):
        seen.append((np.abs(X).max(), y.min(), y.max(), X.shape))
        return X.sum(axis=0) * y.sum()

    sensitivity_search(function, (2.0, (3.0, 5.0)), "add-remove", n_records=4, n_columns=2, rounds=50, restarts=2)
    largest, low, high, shapes = zip(*seen, strict=True)
    assert (max(largest), min(low), max(high)) == (2.0, 3.0, 5.0)
    assert set(shapes) == {(4, 2), (3, 2)}


def test_two_numbers_are_labels_in_a_list_and_a_range_in_a_tuple():
    for target, between in (([0, 1], False), ((0, 1), True)):
        seen = set()
        sensitivity_search(lambda X, y, seen=seen: [seen.update(y.tolist()), y.sum()][1:], (1.0, target), "zero-out")
        assert (seen > {0.0, 1.0}) == between
        assert seen >= {0, 1}


@pytest.mark.parametrize(("norm_name", "largest"), [("linf", 1.0), ("l2", math.sqrt(3.0)), ("l1", 3.0)])
def test_norms(norm_name, largest):
    result = sensitivity_search(lambda X, y: X.T @ y, (1.0, (-1.0, 1.0)), "zero-out", norm=norm_name)
    assert 0.99 * largest <= result.change <= largest * (1 + 1e-12)
    assert (result.declared, result.ratio, result.verdict) == (None, None, "not exceeded")


def test_a_search_climbs():
    # All fifteen entries have to agree, which no random table does; each that does helps.
    def squared_sum(X, y):
        return [X.sum() ** 2]

    largest = 15.0**2 - 12.0**2
    settings = {"bounds": (1.0, (-1.0, 1.0)), "relation": "zero-out", "declared": largest}
    assert 0.99 <= sensitivity_search(squared_sum, **settings).ratio <= 1.0
    assert sensitivity_search(squared_sum, **settings, rounds=1, restarts=500).ratio < 0.9


def test_a_search_in_words():
    settings = {"bounds": (1.0, (-1.0, 1.0)), "relation": "zero-out"}
    words = str(sensitivity_search(lambda X, y: X.T @ y, **settings, declared=0.5))
    assert words.startswith("Sensitivity search: exceeded. The largest change found: ")
    assert words.endswith(" is left out.")
    assert "none was declared" in str(sensitivity_search(lambda X, y: X.T @ y, **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bounds": 1.0}, "^bounds=1.0: expected "),
        ({"bounds": (1.0, "ab")}, "^bounds="),
        ({"bounds": (0.0, (-1.0, 1.0))}, "^x_bound=0.0: "),
        ({"bounds": (1.0, (1.0, -1.0))}, "^y_bounds="),
        ({"bounds": (1.0, ["a"])}, "^classes="),
        ({"relation": "swap"}, "^relation='swap'"),
        ({"norm": "l3"}, "^norm='l3'"),
        ({"declared": 0.0}, "^declared=0.0"),
        ({"n_records": 1}, "^n_records=1"),
        ({"rounds": 0}, "^rounds=0"),
    ],
)
def test_searches_check_their_parameters(settings, message):
    def unreachable(X, y):
        raise AssertionError("the function was called")

    with pytest.raises(ParameterError, match=message):
        sensitivity_search(unreachable, **({"bounds": (1.0, (-1.0, 1.0)), "relation": "zero-out"} | settings))


@pytest.mark.parametrize("function", [lambda X, y: y, lambda X, y: [np.nan], lambda X, y: []])
def test_a_searched_function_has_finite_values_in_one_shape(function):
    with pytest.raises(DataError, match="^function: expected finite numbers in one shape"):
        sensitivity_search(function, (1.0, (-1.0, 1.0)), "zero-out")
