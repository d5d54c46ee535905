r"""Neighbouring data sets that are hard to protect, one generator for each kind of release.

Sensitivities are attained on few data sets, and noise hides most of what happens elsewhere. These come near to them:
near ties that one record decides, one record alone against records that say nothing, a block that changes its mind.
Where no pair is known, :func:`~taciturn.audit.sensitivity_search` looks for one.

Records are rows (X, y) with features in [-1, 1] and targets in [-1, 1], or labels 0, 1, ..; the label
:data:`NULL_LABEL` is none of them and makes a null record. Under zero-out a labelled record becomes a null one; without
labels there is none, and the number of records, which is public, would change. Under add-remove the record is left out,
under replace-one it becomes its opposite.

Two kinds of pairs complete each other. Where a record brings a candidate nearer that trails by much, noise that is a
little too small shows most, and none at all does not show. Where it changes the order, that is the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from taciturn.audit.engine import Pair
from taciturn.core.errors import ParameterError
from taciturn.core.validation import FloatArray, check_integer, check_positive, check_real
from taciturn.data.sensitivity import Relation, check_relation

NULL_LABEL = 99
"""A label outside all classes."""


# ------------------------------------------------------------------ what a mechanism is shown


def opposing_scores(lead: float, n_leading: int = 1, n_trailing: int = 1, relation: Relation = "zero-out") -> Pair:
    """Scores that lead by ``lead`` and fall by one, the sensitivity, and trailing ones that rise by one.

    A set of candidates far behind is chosen rarely, and the logarithm of its probability then changes by nearly the
    whole epsilon of a selection; if it is chosen half of the time, by about half of that.
    """
    lead = check_real(0.0, math.inf, closed="left", lead=lead)
    counts = [check_integer(1, n_leading=n_leading), check_integer(1, n_trailing=n_trailing)]
    first, second = (np.repeat(scores, counts) for scores in ([lead, 0.0], [lead - 1.0, 1.0]))
    return Pair(first, second, relation, f"Scores that lead by {lead:g} fall by one, and those that trail rise by one")


def reversed_ranks(n_candidates: int, relation: Relation = "zero-out") -> Pair:
    """Scores from 1 down to 0 in equal steps, and in reverse order: each moves by one at most, the sensitivity.

    Whatever a selection of several candidates computes from their ranks, or counts, changes as much as it can.
    """
    first = np.linspace(1.0, 0.0, check_integer(2, n_candidates=n_candidates))
    return Pair(first, first[::-1].copy(), relation, f"The ranks of {n_candidates} scores between 0 and 1 are reversed")


def wide_gap(n_below: int, grid: Sequence[float], n_above: int | None = None) -> Pair:
    """Values, some of them after a third of an increasing grid and some after two thirds, and one more at its end.

    Every bin between them holds a quantile, the median where there are as many below as above, until one more value
    above them says that none of these does; bins above all others become less wrong, and bins below them more.
    """
    n_above = check_integer(1, n_above=n_below if n_above is None else n_above)
    places = [float(grid[len(grid) // 3]), float(grid[2 * len(grid) // 3])]
    first = np.repeat(places, [check_integer(1, n_below=n_below), n_above])
    words = f"{first.size} values in two places, between which any point is a quantile, and one more beyond them"
    return Pair(first, np.append(first, float(grid[-1])), "add-remove", words)


# ------------------------------------------------------------------ what a selection is shown


def near_tie(
    lead: float, level: int, relation: str, *, n_each: int = 1, labelled: bool = False, n_idle: int = 0
) -> Pair:
    """Columns that go with the target nearly equally well, and a record that goes with the worse ones alone.

    Sums of products with the target are ``level``, the number of the other records, for the ``n_each`` leading columns
    and less by ``lead`` for as many others. The record, which is absent from the second data set or replaced by its
    opposite, adds -1 to the former and +1 to the latter, and its opposite the contrary. Labels are all 1.

    ``n_idle`` more records are zeros, with targets that make the mean of all targets 0 or nearly so: where a released
    mean centres the target, it then leaves the sums as they are.
    """
    level = check_integer(1, level=level)
    lead = check_real(0.0, float(level), lead=lead)
    n_each = check_integer(1, n_each=n_each)
    others = np.tile(np.repeat([1.0, 1.0 - lead / level], n_each), (level, 1))
    row = np.repeat([-1.0, 1.0], n_each)
    y = np.ones(level + 1, dtype=np.int64 if labelled else np.float64)
    if check_integer(0, n_idle=n_idle) > 0:
        low = np.arange(n_idle) < (n_idle + level + 1) // 2
        y = np.concatenate((np.where(low, 0 if labelled else -1, 1).astype(y.dtype), y))
        others = np.vstack((np.zeros((n_idle, others.shape[1])), others))
    words = f"Columns that lead by the weight of {lead:g} records lose one, and those that trail win it"
    return _pair(np.vstack((others, row)), y, -row, y[-1], relation, words)


def rank_reversal(n_records: int, n_reversed: int = 0) -> Pair:
    """Two columns in the order of the target, and a record that is last in one of them and first in the other.

    Replaced by its mirror image it leaves all of its pairs in one column discordant and in the other concordant.
    ``n_reversed`` of the other records stand in reverse order in the second column, which then trails.
    """
    n_records = check_integer(3, n_records=n_records)
    check_integer(0, n_records - 1, n_reversed=n_reversed)
    order = np.linspace(-0.9, 0.9, n_records - 1)
    trailing = order.copy()
    trailing[:n_reversed] = trailing[:n_reversed][::-1]
    X = np.vstack((np.column_stack((order, trailing)), [1.0, -1.0]))
    words = f"The record with the largest target is first in one column and last in the other, of {n_records} records"
    return _pair(X, np.append(order, 1.0), [-1.0, 1.0], 1.0, "replace-one", words)


def turncoat_block(n_pairs: int, *, labelled: bool = False, decisive: bool = False) -> Pair:
    """Blocks of three records that vote for one of two columns, and a record that changes the vote of the last block.

    Of ``2 n_pairs`` blocks all but ``n_pairs - 1`` vote for the first column, until the record is replaced: then each
    column gets as many votes. One more block, if it is ``decisive``, votes for the second column, which then has the
    majority instead of half of the votes. Targets are -1 and 1, or labels 0 and 1.
    """
    check_integer(1, n_pairs=n_pairs)
    for_first = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]
    for_second = [[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]]
    n_blocks = 2 * n_pairs + decisive
    X = np.array(for_second * (n_pairs - 1 + decisive) + for_first * (n_pairs + 1))
    y = np.tile([1, 0, 1] if labelled else [1.0, -1.0, 1.0], n_blocks)
    end = "which decides" if decisive else "which makes a tie"
    words = f"The last of {n_blocks} blocks of three records votes for another column, {end}"
    return _pair(X, y, [-1.0, 1.0], 1.0, "replace-one", words)


# ------------------------------------------------------------------ what a fit is shown


def lone_record(
    row: Sequence[float],
    n_others: int,
    relation: str,
    *,
    labelled: bool = False,
    target: float = 1.0,
    other_targets: float = 0.0,
) -> Pair:
    """One record among rows of zeros, whose gradients are zero whatever the model.

    Its own gradient is hence all there is, and its opposite has the opposite one: two records with gradients of full
    length in opposite directions are as far apart as neighbours get. A row as long as rows may be makes the gradient as
    long as it may be. Targets are ``target`` and ``other_targets``, or labels, 1 and for the others 0 and 1 in turn.
    """
    n_others = check_integer(1, n_others=n_others)
    X = np.vstack((np.zeros((n_others, len(row))), row))
    y = np.append(np.arange(n_others) % 2, 1) if labelled else np.append(np.full(n_others, other_targets), target)
    words = f"One record alone has a gradient, {n_others:,} others have rows of zeros"
    return _pair(X, y, np.asarray(row), 0 if labelled else -1.0, relation, words)


def mislabelled_record(n_others: int, relation: str) -> Pair:
    """Records that a classifier soon gets right, for which it forgets them, and one like them with another label.

    Predicted minus true probability is at most one, which only a record that is predicted wrongly comes near to. The
    others have the label 1 and one feature of 1; the record has the label 0, and is null, absent or like them in the
    second set.
    """
    n_others = check_integer(1, n_others=n_others)
    X, y = np.ones((n_others + 1, 1)), np.append(np.ones(n_others, dtype=np.int64), 0)
    words = f"One record has another label than {n_others:,} others with the same features"
    return _pair(X, y, [1.0], 1, relation, words)


def equal_records(n_others: int, relation: str) -> Pair:
    """Records with the label 1 and one feature of 1; one is null, absent or of the other class in the second set.

    A model that has learnt from the others predicts it rightly, so that it counts in every score.
    """
    n_others = check_integer(1, n_others=n_others)
    X, y = np.ones((n_others + 1, 1)), np.ones(n_others + 1, dtype=np.int64)
    return _pair(X, y, [1.0], 0, relation, f"One of {n_others + 1:,} equal records")


def residual_jump(radius: float, n_others: int, n_columns: int, relation: str) -> Pair:
    """Records that a model fits exactly, and one with the largest residual there is.

    Rows are all ones and targets are those of ``w = radius e_1``, at most 1, so that without the record every gradient
    is zero there, and so is the duality gap, of which screening rules take the root. The record has the target
    ``-radius``.
    """
    radius = check_positive(radius=radius)
    if radius > 1.0:
        raise ParameterError("radius", radius, "at most 1, since targets are", "lower it")
    n_others, n_columns = check_integer(1, n_others=n_others), check_integer(1, n_columns=n_columns)
    X = np.ones((n_others + 1, n_columns))
    y = np.append(np.full(n_others, radius), -radius)
    words = f"One record has the opposite target of {n_others:,} others with the same features"
    return _pair(X, y, np.ones(n_columns), radius, relation, words)


def balanced_labels(n_each: int, n_classes: int, n_columns: int, relation: str) -> Pair:
    """Rows of ones with every label equally often, so that gradients at zero vanish, and one record more, of class 0.

    All entries of the gradient are then ties, and the record decides as many of them as there are columns and classes.
    """
    n_each, n_classes = check_integer(1, n_each=n_each), check_integer(2, n_classes=n_classes)
    y = np.append(np.repeat(np.arange(n_classes), n_each), 0)
    row = np.ones(check_integer(1, n_columns=n_columns))
    words = f"Each of {n_classes} classes has {n_each} records with the same features, and one class gets one more"
    return _pair(np.tile(row, (y.size, 1)), y, row, 1, relation, words)


def beyond_all_others(n_others: int, size: float) -> Pair:
    """Two columns within [-1, 1], and one row that holds ``size`` in both."""
    n_others, size = check_integer(2, n_others=n_others), check_positive(size=size)
    ordinary = np.linspace(-1.0, 1.0, n_others)
    X = np.column_stack((ordinary, ordinary[::-1]))
    words = f"One row holds {size:g}, and {n_others} others at most 1"
    return Pair(np.vstack((X, [size, size])), X, "add-remove", words)


def last_with_rows(pair: Pair, n_rows: int) -> Pair:
    """The same records as persons: the last one has ``n_rows`` equal rows, all others one.

    Data sets are rows (X, y, keys). Where each row counted as a record, the person would weigh ``n_rows`` times as much
    as the record did. Under add-remove the person is absent from the second data set, with all of its rows.
    """
    check_integer(1, n_rows=n_rows)
    n_records = len(pair.first[1])
    tables = []
    for X, y in (pair.first, pair.second):
        times = np.ones(len(y), dtype=np.int64)
        times[n_records - 1 :] = n_rows
        keys = np.repeat([f"person {number:06}" for number in range(len(y))], times)
        tables.append((np.repeat(X, times, axis=0), np.repeat(y, times), keys))
    words = f"{pair.words}; this record is a person with {n_rows} rows"
    return Pair(tables[0], tables[1], pair.relation, words)


def last_with_measure(pair: Pair, name: str, value: float) -> Pair:
    """The same records with a ``sample_weight`` or an ``exposure``: one, and ``value`` for the last of the first set.

    Data sets are the arguments of ``fit``: (X, y, None, weights, exposures).
    """
    tables = []
    for X, y in (pair.first, pair.second):
        measure = np.ones(len(y))
        measure[len(pair.first[1]) - 1 :] = value
        given = {"sample_weight": None, "exposure": None, name: measure}
        tables.append((X, y, None, given["sample_weight"], given["exposure"]))
    words = f"{pair.words}; this record has {'a weight' if name == 'sample_weight' else 'an exposure'} of {value:g}"
    return Pair(tables[0], tables[1], pair.relation, words)


def _pair(X: FloatArray, y: np.ndarray, other_row: ArrayLike, other_target: float, relation: str, words: str) -> Pair:
    """The last record absent, null or another one in the second data set."""
    relation = check_relation(relation)
    if relation == "replace-one":
        X2, y2 = X.copy(), y.copy()
        X2[-1], y2[-1] = other_row, other_target
        return Pair((X, y), (X2, y2), relation, words)
    if relation == "zero-out":
        if y.dtype.kind != "i":
            raise ParameterError(
                "relation", relation, "add-remove or replace-one without labels", "pass n_public to the model"
            )
        y2 = y.copy()
        y2[-1] = NULL_LABEL
        return Pair((X, y), (X, y2), relation, words)
    return Pair((X, y), (X[:-1], y[:-1]), relation, words)
