"""Cells that are missing where bounds are found: the exact law that hides them, and the bounds that they leave."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from laws import softmax_law

from taciturn import Budget, PrivateScaler
from taciturn.core.errors import ParameterError
from taciturn.data.records import Records
from taciturn.data.sensitivity import RELATIONS
from taciturn.engines import ArraySource
from taciturn.methods.scaling import plan as scaling_plan
from taciturn.methods.scaling.plan import plan_bounds
from taciturn.methods.scaling.run import ColumnCounts

TAIL, EPSILON = 0.25, 4.0


@pytest.fixture
def never_refused(monkeypatch):
    """Tables of a few records, on which everything can be enumerated, support no bound that is worth having."""
    monkeypatch.setattr(scaling_plan, "_CHANCE", 1e300)


def laws_of_counts(plan, column, fill=None):
    """Laws of a column's lower and upper bound, from the counts that a fit takes; ``fill`` replaces missing cells."""
    if fill is not None:
        column = np.where(np.isnan(column), fill(column), column)
    n_rows = column.size
    source = ArraySource(Records(column[:, None], np.zeros(n_rows), np.arange(n_rows), n_rows), np.inf, n_rows)
    task = ColumnCounts((plan.quantiles[0].grid,))
    ((values, mirrored),) = task.split(source.total(task))
    quantile = plan.quantiles[0]
    unit = Fraction(quantile.quantile).limit_denominator(1000).denominator
    return [softmax_law(quantile.count_scores(each) / unit / quantile.scale) for each in (mirrored, values)]


def largest_loss(plan, relation, fill=None):
    """The largest log-ratio of all neighbours of a few cells, missing ones among them."""
    cells = (-9.0, -1.05, 0.3, 1.95, 9.0, np.nan)
    worst = 0.0
    for others in (places for n in range(1, 4) for places in combinations_with_replacement(cells, n)):
        tables = [np.array([*others, cell]) for cell in cells]
        neighbours = combinations_with_replacement(tables, 2)
        if relation != "replace-one":
            # A record that is absent is in no count, whether its row is there or not.
            neighbours = product(tables, [np.array(others)])
        for one, other in neighbours:
            pairs = zip(laws_of_counts(plan, one, fill), laws_of_counts(plan, other, fill), strict=True)
            ratios = [np.log(np.asarray(a, float)) - np.log(np.asarray(b, float)) for a, b in pairs]
            worst = max(worst, sum(ratio.max() for ratio in ratios), sum(-ratio.min() for ratio in ratios))
    return worst


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.usefixtures("never_refused")
def test_missing_cells_stay_within_the_budget(relation):
    plan = plan_bounds(
        Budget(EPSILON, 0.0), relation=relation, n_rows=5, tail=TAIL, smallest=np.array([1.0]), largest=np.array([2.0])
    )
    found = largest_loss(plan, relation)
    assert (0.6 if relation == "replace-one" else 0.8) * EPSILON < found <= EPSILON
    # What one would do without privacy, the mean of the cells that are there, lets one record move all gaps.
    with np.errstate(invalid="ignore"):
        assert largest_loss(plan, relation, lambda column: np.nanmean([0.0, *column])) > 1.1 * EPSILON


@pytest.mark.parametrize("persons", [None, np.arange(4000) // 2])
def test_bounds_come_from_the_cells_that_are_there(persons):
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.uniform(0.0, 100.0, 4000), rng.uniform(5000.0, 9000.0, 4000)))
    holed = X.copy()
    holed[rng.random(X.shape) < 0.4] = np.nan
    settings = {"epsilon": np.inf, "invalid": "null"}
    scaler = PrivateScaler(missing="cell", **settings).fit(holed, persons=persons)
    whole = PrivateScaler(**settings).fit(X, persons=persons)
    assert np.allclose(scaler.lower_, whole.lower_, rtol=0.2)
    assert np.allclose(scaler.upper_, whole.upper_, rtol=0.05)
    assert scaler.certificate_.public["missing"] == "cell"
    assert "missing" not in whole.certificate_.public
    assert np.array_equal(np.isnan(scaler.transform(holed)), np.isnan(holed))
    # A column is not moved by the gaps of another, which it is where whole records go.
    one = X.copy()
    one[X[:, 1] > 7000.0, 0] = np.nan
    assert PrivateScaler(missing="cell", **settings).fit(one, persons=persons).upper_[1] == whole.upper_[1]
    assert PrivateScaler(**settings).fit(one, persons=persons).upper_[1] < 7500.0
    with pytest.raises(ParameterError, match="^missing='cell': expected invalid='null' beside it"):
        PrivateScaler(missing="cell").fit(X)
    with pytest.raises(ParameterError, match="^missing='row'"):
        PrivateScaler(missing="row", invalid="null").fit(X)
