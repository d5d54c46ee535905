"""Rows and derivatives that are clipped together: bounds in integers, without exception, and what a record moves."""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.sensitivity import GRAM_WEIGHTS, RELATIONS, cell_counts, gram_matrix, jointly_clipped_sum
from taciturn.engines import Block
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.methods.clipped_records import ClippedRecords, Clipping, squared_row_norms
from taciturn.methods.releases import GRAM_ROW_SQUARED, LARGEST_WEIGHT
from taciturn.methods.sums import MarginCounts, ResidualMoments, ResidualSum, SlopeMoments

LOSSES = {"numbers": HuberLoss(0.3), "two classes": LogisticLoss(), "three classes": SoftmaxLoss()}
ENTRIES = st.sampled_from([0.0, 1.0, -1.0, 1.0 / ONE, 0.3, -0.77])
CENTRES = st.sampled_from([0, ONE, -ONE, 1, -12345])
SIZES = st.sampled_from([0.0, 1e-9, 0.4, -3.0, 50.0, -1e6, 1e300])


@dataclass(frozen=True)
class Record:
    """One record, how it is clipped, and where the derivative is taken."""

    kind: str
    entries: list
    centre: list
    constant: int
    weight_bound: int
    product_bound: int
    row_squared: int
    slope: float
    coefficients: list
    target: int

    def clip(self, records=ClippedRecords):
        """The clipped record, and its integer row."""
        X, centre = np.array([self.entries]), np.array(self.centre, dtype=float)
        design, n_outputs = Design(X, 1.0), 3 if self.kind == "three classes" else 1
        clipping = Clipping(
            None, 3, LOSSES[self.kind], n_outputs, self.row_squared, self.constant, self.weight_bound, self.slope,
            centre, product_bound=self.product_bound,
        )  # fmt: skip
        numbers = self.kind == "numbers"
        target = np.array([float(self.target * ONE)] if numbers else [min(max(self.target, 0), max(n_outputs - 1, 1))])
        row = [round(x * ONE) - c for x, c in zip(self.entries, self.centre, strict=True)]
        row += [self.constant] if self.constant else []
        return records(clipping, design, target, squared_row_norms(design, centre)), row

    def weights_of(self, records=ClippedRecords):
        clipped, row = self.clip(records)
        return clipped.weights(clipped.margins(self.all_coefficients)), row

    @property
    def all_coefficients(self):
        signs = np.array([[1.0], [-1.0], [0.5]]) if self.kind == "three classes" else np.ones((1, 1))
        return signs * np.array(self.coefficients[: 3 + (self.constant > 0)])

    def exceeds(self, records=ClippedRecords):
        """Whether the product of the two norms is beyond its bound, in integers."""
        weights, row = self.weights_of(records)
        product = sum(int(weight) ** 2 for weight in weights[0]) * sum(x * x for x in row)
        return product > self.product_bound**2


RECORDS = st.builds(
    Record,
    kind=st.sampled_from(list(LOSSES)),
    entries=st.lists(ENTRIES, min_size=3, max_size=3),
    centre=st.lists(CENTRES, min_size=3, max_size=3),
    constant=st.sampled_from([0, 1, ONE // 3, ONE]),
    weight_bound=st.one_of(st.integers(1, LARGEST_WEIGHT // 2), st.sampled_from([1, LARGEST_WEIGHT // 2])),
    product_bound=st.one_of(st.integers(1, 2**18), st.integers(1, 2**36)),
    row_squared=st.sampled_from([1, ONE, ONE * ONE, 7 * ONE * ONE + 1]),
    slope=st.sampled_from([1e-3, 0.3, 1.0, math.sqrt(2.0), 16.0]),
    coefficients=st.lists(SIZES, min_size=4, max_size=4),
    target=st.integers(-1, 2),
)
many = settings(max_examples=150, deadline=None, derandomize=True, database=None)
looking = settings(max_examples=2000, deadline=None, derandomize=True, database=None, phases=(Phase.generate,))


@many
@given(RECORDS)
def test_products_of_norms_are_within_their_bound(record):
    assert not record.exceeds()


class RoundedBounds(ClippedRecords):
    """Bounds on weights are rounded to the nearest integer, not down."""

    def __init__(self, clipping, design, target, norms):
        super().__init__(clipping, design, target, norms)
        squares = np.maximum(norms + float(clipping.constant) ** 2, 1.0)
        self._row_bounds = np.minimum(np.rint(clipping.product_bound / np.sqrt(squares)), clipping.weight_bound)


class ConstantForgotten(ClippedRecords):
    """Norms of rows without their last entry."""

    def __init__(self, clipping, design, target, norms):
        super().__init__(clipping, design, target, norms - float(clipping.constant) ** 2)


class UnclippedClasses(ClippedRecords):
    """Several derivatives are clipped one by one."""

    def _joint_weights(self, integers, scale):
        integers *= scale * self.clipping.weight_bound
        return np.clip(np.trunc(integers), -self._row_bounds[:, None], self._row_bounds[:, None])


@pytest.mark.parametrize("broken", [RoundedBounds, ConstantForgotten, UnclippedClasses])
def test_broken_clips_are_noticed(broken):
    find(RECORDS, lambda record: record.exceeds(broken), settings=looking)


def narrow_case(m, t):
    """A squared norm q and a product S with S**2 + 1 == m**2 * q: m times the norm is beyond S, by next to nothing."""
    modulus = m * m
    root = pow(next(a for a in range(2, m) if pow(a, (m - 1) // 2, m) == m - 1), (m - 1) // 4, m)
    # One step of Newton's method takes a root of minus one from m to its square.
    root = (root - (root * root + 1) * pow(2 * root, -1, modulus)) % modulus
    product_bound = root + t * modulus
    assert (product_bound**2 + 1) % modulus == 0
    return product_bound, (product_bound**2 + 1) // modulus


def narrow_weight(records, product_bound, squares):
    clipping = Clipping(None, 1, HuberLoss(16.0), 1, ONE, 0, LARGEST_WEIGHT // 2, 16.0, product_bound=product_bound)
    # With a residual at its bound the weight is as large as the row allows.
    clipped = records(clipping, Design(np.zeros((1, 1)), 1.0), np.array([-16.0 * ONE]), np.array([float(squares)]))
    return int(clipped.weights(np.zeros((1, 1)))[0, 0])


class NoRoom(ClippedRecords):
    """A quotient of rounded numbers, rounded down."""

    def __init__(self, clipping, design, target, norms):
        super().__init__(clipping, design, target, norms)
        self._row_bounds = np.minimum(np.floor(clipping.product_bound / np.sqrt(norms)), clipping.weight_bound)


def test_rounding_of_roots_and_quotients_is_covered():
    passed = set()
    for m in (4129, 12289, 65537):
        for t in (50, 99, 1000):
            product_bound, squares = narrow_case(m, t)
            assert squares < 2**53
            for records in (ClippedRecords, NoRoom):
                weight = narrow_weight(records, product_bound, squares)
                assert m - 1 <= weight + 1 <= m + 1
                if weight**2 * squares > product_bound**2:
                    passed.add(records)
    assert passed == {NoRoom}


# ------------------------------------------------------------------ what one record moves, by enumeration


def changes(terms, relation):
    """Of all pairs of records; ``terms`` has a row for each."""
    terms = np.asarray(terms, dtype=float)
    pairs = terms[:, None] - terms[None] if relation == "replace-one" else terms[None]
    return np.sqrt(np.square(pairs).sum(axis=-1)).max()


@pytest.mark.parametrize("relation", RELATIONS)
def test_jointly_clipped_sums_move_as_far_as_declared(relation):
    bound, numbers = 6, range(-6, 7)
    terms = [
        (r * x, r * z, s * x, s * z)
        for r, s, x, z in product(numbers, (-2, 0, 2), range(-3, 4), (0, 2))
        if (r * r + s * s) * (x * x + z * z) <= bound**2
    ]
    declared = jointly_clipped_sum(bound, relation).value
    assert changes(terms, relation) == declared
    assert (declared == 2 * bound) == (relation == "replace-one")


def gram_terms(row_squared, weights):
    """Weighted entries of the squares of all integer rows of four columns within a bound."""
    upper = np.triu_indices(4)
    on_and_off = np.where(upper[0] == upper[1], *weights)
    rows = [row for row in product(range(-3, 4), repeat=4) if sum(x * x for x in row) <= row_squared]
    return [np.outer(row, row)[upper] * on_and_off for row in rows]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("row_squared", [4, 6])
def test_gram_matrices_move_as_far_as_declared(relation, row_squared):
    declared = gram_matrix(row_squared, relation).value
    largest = changes(gram_terms(row_squared, GRAM_WEIGHTS), relation)
    assert 0.997 * declared < largest <= declared
    # Other weights, and one of two orthogonal rows alone.
    assert changes(gram_terms(row_squared, (12, 18)), relation) > declared
    assert (largest > gram_matrix(row_squared, "zero-out").value) == (relation == "replace-one")


@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_of_cells_move_as_far_as_declared(relation):
    clipping = Clipping(None, 1, LogisticLoss(), 1, ONE * ONE, ONE, 1, 1.0, product_bound=1)

    def counts(x, label):
        block = Block(Design(np.array([[x]]), 1.0), np.array([label]))
        return MarginCounts(clipping, np.array([[2.0, 0.3]]), 1.5, 4, 7)(block)

    terms = np.array([counts(x, label).ravel() for x in np.linspace(-1, 1, 21) for label in (0, 1)])
    assert (terms.sum(axis=1) == 7).all()
    assert ((terms > 0).sum(axis=1) == 1).all()
    assert set(terms.argmax(axis=1)) == set(range(8))
    declared = cell_counts(7, relation).value
    assert changes(terms, relation) == pytest.approx(declared, rel=1e-12)
    assert changes(terms, relation) <= declared
    assert not counts(0.3, -1).any()


# ------------------------------------------------------------------ moments of margins and residuals


def moments_of(record, unit, reach, clip, task=ResidualMoments):
    X = np.array([record.entries])
    clipping = record.clip()[0].clipping
    block = Block(Design(X, 1.0), np.array([float(record.target * ONE)]))
    return task(clipping, record.all_coefficients, reach, clip, unit)(block)


class RoundedMoments(ResidualMoments):
    """Terms rounded to the nearest integer, away from zero as well."""

    def __call__(self, block):
        doubled = replace(self, unit=2**20 * self.unit)
        return np.rint(ResidualMoments.__call__(doubled, block) / 2**20).astype(np.int64)


NUMBERS = RECORDS.map(lambda record: replace(record, kind="numbers"))
UNITS, REACHES = st.one_of(st.integers(1, 9), st.integers(1, LARGEST_WEIGHT)), st.sampled_from([1e-3, 0.5, 90.0])


def too_long(given, task):
    record, unit, reach, clip = given
    return sum(int(term) ** 2 for term in moments_of(record, unit, reach, clip, task)) > unit**2


MOMENTS = st.tuples(NUMBERS, UNITS, REACHES, REACHES)


@many
@given(MOMENTS)
def test_moments_of_one_record_are_within_their_bound(given):
    assert not too_long(given, ResidualMoments)


def test_moments_that_are_too_long_are_noticed():
    find(MOMENTS, lambda given: too_long(given, RoundedMoments), settings=looking)


CLASSES = RECORDS.map(lambda record: replace(record, kind="three classes"))


def of_labels(record, task, *numbers):
    X = np.array([record.entries])
    clipped = record.clip()[0]
    return task(clipped.clipping, record.all_coefficients, *numbers)(Block(Design(X, 1.0), clipped._codes))


class SumOfBoth(SlopeMoments):
    """Two derivatives that have a norm of one each."""

    def __call__(self, block):
        return SlopeMoments(self.clipping, self.coefficients, self.bound, 2 * self.unit)(block)


def too_steep(given, task):
    record, unit, bound = given
    return sum(int(term) ** 2 for term in of_labels(record, task, bound, unit)) > unit**2


SLOPES = st.tuples(CLASSES, UNITS, REACHES)


@many
@given(SLOPES)
def test_derivatives_by_a_slope_are_within_their_bound(given):
    assert not too_steep(given, SlopeMoments)


def test_derivatives_by_a_slope_that_are_too_long_are_noticed():
    record, unit, bound = find(SLOPES, lambda given: too_steep(given, SumOfBoth), settings=looking)
    first, second = of_labels(record, SlopeMoments, bound, unit)
    assert first**2 + second**2 > unit**2 / 4


@many
@given(RECORDS.map(lambda record: replace(record, kind="two classes")), UNITS)
def test_residuals_of_labels_are_within_their_bound(record, unit):
    assert abs(int(of_labels(record, ResidualSum, unit)[0])) <= unit


def test_gram_matrices_have_room_for_the_largest_rows():
    """Integers of 64 bits hold sums of so many weighted squares."""
    assert max(GRAM_WEIGHTS) * GRAM_ROW_SQUARED * 2**26 < 2**63
