"""Audits of laws that can be written down, and what an audit says."""

import dataclasses
import json
import math
from itertools import chain, combinations

import numpy as np
import pytest

from taciturn.audit import AuditResult, Pair, audit_exact
from taciturn.core.errors import DataError, ParameterError

TRUTH = math.log(3.0)
BIT = Pair(1, 0, "replace-one", "The only record is the bit itself")


def exact(first, second, delta=0.0, **settings):
    pair = Pair(first, second, "zero-out", "Two laws")
    return audit_exact(lambda law: dict(enumerate(np.asarray(law, dtype=float))), pair, delta, **settings)


def exponential_law(utilities):
    weights = np.exp(utilities)
    return weights / weights.sum()


def permute_and_flip_law(utilities):
    """For three candidates: in random order, each is taken with its probability, else the next one is asked."""
    p = np.exp(utilities - np.max(utilities))
    return [p[j] * (1 - (p[j - 1] + p[j - 2]) / 2 + p[j - 1] * p[j - 2] / 3) for j in range(3)]


EPSILON = 0.7
# One candidate falls as far as it can, the others rise; far behind, it does not count in the sum of the weights.
TIE, BEHIND = np.array([0.0, 1e-9, 0.0]), np.array([-40.0, 0.0, 1e-9])
DRIFT = np.array([-EPSILON / 2, EPSILON / 2, EPSILON / 2])


@pytest.mark.parametrize("law", [exponential_law, permute_and_flip_law])
def test_selections_cost_exactly_their_epsilon(law):
    result = exact(law(BEHIND), law(BEHIND + DRIFT), claimed=EPSILON)
    assert result.lower_bound == pytest.approx(EPSILON, rel=1e-9)
    assert result.verdict == "no violation found"
    assert result.event == "the outcome is 0, likelier on the first data set"
    assert (result.trials, result.confidence, result.route) == (0, 1.0, "exact")
    halved = exact(law(BEHIND), law(BEHIND + 2 * DRIFT), claimed=EPSILON)
    assert halved.lower_bound == pytest.approx(2 * EPSILON, rel=1e-9)
    assert halved.verdict == "violated"


def test_near_ties_by_their_closed_forms():
    grown = math.exp(EPSILON)
    # Weights 1, 1, 1 and 1, e^eps, e^eps up to a factor.
    expected = math.log((1 + 2 * grown) / 3)
    assert exact(exponential_law(TIE), exponential_law(TIE + DRIFT)).lower_bound == pytest.approx(expected, abs=1e-8)
    # Asked in random order: 1/3, and 1/3 of e^-eps, being taken only if it comes first.
    found = exact(permute_and_flip_law(TIE), permute_and_flip_law(TIE + DRIFT)).lower_bound
    assert found == pytest.approx(EPSILON, abs=1e-8)


def test_what_only_one_law_allows_is_infinitely_telling():
    result = exact([0.5, 0.3, 0.2], [0.0, 0.6, 0.4], claimed=5.0)
    assert (result.lower_bound, result.verdict) == (math.inf, "violated")
    assert result.event == "the outcome is 0, likelier on the first data set"
    # A delta that covers the difference forgives it, to the last digit: 0.1 + 0.2 is more than 0.3 in doubles.
    first, second = [0.1, 0.2, 0.1, 0.6], [0.0, 0.0, 0.4, 0.6]
    assert exact(first, second, 0.3 - 1e-6).lower_bound == math.inf
    # In the other order: (0.4 - 0.3) / 0.1 for the third outcome, (1 - 0.3) / 0.7 for the last two.
    assert exact(first, second, 0.3).lower_bound == pytest.approx(0.0, abs=1e-12)
    missing = audit_exact(lambda bit: {bit: 1.0}, BIT)
    assert missing.lower_bound == math.inf


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.3])
def test_randomised_response_with_delta(delta):
    result = audit_exact(lambda bit: {bit: 0.75, 1 - bit: 0.25}, BIT, delta)
    assert result.lower_bound == pytest.approx(math.log((0.75 - delta) / 0.25))
    assert audit_exact(lambda bit: {bit: 0.75, 1 - bit: 0.25}, BIT, 0.5).lower_bound == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
def test_no_set_of_outcomes_is_worse(delta):
    rng = np.random.default_rng(0)
    sets = [list(s) for s in chain.from_iterable(combinations(range(6), size) for size in range(1, 7))]
    for _ in range(50):
        p, q = rng.dirichlet(np.full(6, 0.7), 2)
        ratios = [(a[s].sum() - delta) / b[s].sum() for s in sets for a, b in ((p, q), (q, p))]
        assert exact(p, q, delta).lower_bound == pytest.approx(max(0.0, math.log(max(ratios))), abs=1e-12)


def test_all_outcomes_that_attain_the_bound_are_named():
    result = exact([0.2, 0.4, 0.1, 0.3], [0.4, 0.2, 0.2, 0.2])
    assert result.event == "the outcome is one of 0, 2, likelier on the second data set"


@pytest.mark.parametrize("law", [{0: 0.5, 1: 0.4}, {0: 1.2, 1: -0.2}, {0: math.nan, 1: 1.0}, [0.5, 0.5]])
def test_laws_are_checked(law):
    with pytest.raises(DataError, match="^law: expected a mapping from outcomes to probabilities"):
        audit_exact(lambda data: law, BIT)
    with pytest.raises(ParameterError, match="^law='dict': expected a callable"):
        audit_exact({}, BIT)


def test_rounding_is_no_violation():
    at = exact([0.75, 0.25], [0.25, 0.75], claimed=TRUTH * (1 - 5e-10))
    assert at.lower_bound > at.claimed
    assert at.verdict == "no violation found"
    assert exact([0.75, 0.25], [0.25, 0.75], claimed=TRUTH * (1 - 2e-9)).verdict == "violated"
    assert dataclasses.replace(at, route="Clopper-Pearson").verdict == "violated"


# ------------------------------------------------------------------ results


@pytest.mark.parametrize(
    "result",
    [
        exact([0.5, 0.5], [0.0, 1.0], claimed=1.0, name="a law"),
        exact([0.5, 0.5], [0.25, 0.75], 0.1),
        exact([0.5, 0.5], [0.25, 0.75], claimed=math.inf),
    ],
    ids=["infinite", "no claim", "infinite claim"],
)
def test_results_survive_json(result):
    text = result.to_json()
    assert json.loads(text)["verdict"] == result.verdict
    assert AuditResult.from_json(text) == result
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.lower_bound = 0.0


def test_damaged_text_is_refused():
    content = json.loads(exact([0.5, 0.5], [0.25, 0.75]).to_json())
    for text in ("{", "[]", json.dumps(content | {"schema": 2}), json.dumps(content | {"format": "letter"})):
        with pytest.raises(DataError, match="^text: expected JSON with format 'taciturn-audit' and schema 1"):
            AuditResult.from_json(text)
    for field in ("lower_bound", "seed", "relation"):
        with pytest.raises(DataError, match=f"found no {field}"):
            AuditResult.from_json(json.dumps({name: content[name] for name in content if name != field}))
    for field, value in (
        ("event", 3),
        ("lower_bound", "much"),
        ("delta", 2.0),
        ("route", "guess"),
        ("trials", -1),
        ("seed", 0.5),
    ):
        with pytest.raises(ParameterError, match=f"^{field}="):
            AuditResult.from_json(json.dumps(content | {field: value}))


def test_results_in_words():
    result = AuditResult(
        lower_bound=1.23456,
        claimed=1.0,
        delta=1e-6,
        confidence=0.95,
        trials=20_000,
        event="the outcome is 1, likelier on the first data set",
        route="Clopper-Pearson",
        pair="a near tie",
        relation="zero-out",
        seed=7,
        name="a selector",
    )
    assert str(result) == (
        "Audit of a selector: violated. Epsilon is at least 1.234 at delta = 1e-06 (0.95 confidence, 20,000 runs on "
        "each data set, seed 7, Clopper-Pearson bounds); the claim is epsilon = 1. Event: the outcome is 1, likelier "
        "on the first data set. Neighbours (zero-out): a near tie."
    )
    assert "Gaussian trade-off" in str(dataclasses.replace(result, route="Gaussian"))
    assert "no claim to compare with" in str(dataclasses.replace(result, claimed=None))
    assert "at least inf" in str(exact([1.0, 0.0], [0.0, 1.0]))
