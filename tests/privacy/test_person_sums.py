"""What the rows of one person add to every sum, in integers, against the bound on one record."""

from fractions import Fraction
from math import ceil, isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.core.validation import ONE
from taciturn.data.design import Design
from taciturn.data.persons import MANY_ROWS, PERSON_WEIGHT, PersonRows
from taciturn.data.records import Records
from taciturn.data.sensitivity import (
    RELATIONS,
    curvature_sum,
    derivative_sum,
    error_sum,
    gram_matrix,
    jointly_clipped_sum,
    loss_differences,
    opposite_quantile_scores,
    outcome_counts,
    proposal_scores,
    quantile_scores,
    target_parts,
)
from taciturn.engines import ArraySource, Block
from taciturn.losses import HuberLoss, LogisticLoss, SoftmaxLoss
from taciturn.mechanisms import PrivateQuantile
from taciturn.methods.clipped_records import ClippedRecords, Clipping
from taciturn.methods.scaling.run import ColumnCounts
from taciturn.methods.scores.run import ErrorSum, OutcomeCounts
from taciturn.methods.selection.run import CorrelationSums, TargetParts
from taciturn.methods.sums import (
    ClippedRowSum,
    CorrelationSum,
    CumulativeCounts,
    CurvatureSum,
    EntryCorrelationSum,
    ExcessLossSums,
    GradientSum,
    GramMatrix,
    MarginCounts,
    ResidualMoments,
    ResidualSum,
    RowNorms,
    SlopeMoments,
    TargetSum,
    WeightSum,
)

D, WEIGHT, PRODUCT, SQUARED = 3, 40_000, 10**9, 1 << 24
LOSSES = {"numbers": (HuberLoss(0.5), 1), "labels": (LogisticLoss(), 1), "classes": (SoftmaxLoss(), 4)}
# Numbers up to 16 divide the weight of a person; the others have to be rounded.
ROWS = st.sampled_from([*range(1, 10), 17, 19, 97, 1009])


def person(seed, n_rows, loss):
    """A block that holds nothing but the rows of one person, with extreme cells."""
    rng = np.random.default_rng(seed)
    pool = np.array([-1e300, -1.0, -0.37, 0.0, 5e-324, 0.61, 1.0, 1e300])
    X = rng.choice(pool, (n_rows, D)) if rng.random() < 0.7 else np.tile(rng.choice(pool, D), (n_rows, 1))
    if loss.labelled:
        y = rng.integers(0, 4 if loss.multiclass else 2, n_rows)
    else:
        y = rng.choice([-ONE, -7, 0, 1, ONE], n_rows).astype(np.float64)
    y = y if rng.random() < 0.5 else np.full(n_rows, y[0])
    return Block(Design(X, 1.0), y, PersonRows(np.array([n_rows])))


HEAVY = (*range(1, 40), 97, 1009, 2972, 65_537, 720_721, 1_441_439)


def test_weights_in_ranks_add_up_to_no_more_than_one_person():
    for n_rows in HEAVY:
        persons = PersonRows(np.array([n_rows]))

        def whole(rows, weights, n_rows=n_rows):
            return np.array([len(np.arange(n_rows)[rows]) if weights is None else weights.sum()])

        counted = int(persons.weighed(whole)[0])
        assert 0.9 * PERSON_WEIGHT < counted <= PERSON_WEIGHT
        # However many rows there are, half of them are half of a person.
        half = persons.cell_shares(np.arange(n_rows) % 2, 2, PERSON_WEIGHT, np.ones(n_rows))
        assert 0 <= half.min() <= half.sum() <= PERSON_WEIGHT
        assert n_rows < 2 or abs(int(half[0]) / PERSON_WEIGHT - (n_rows + 1) // 2 / n_rows) < 1e-3
    # Rounded to the nearest, the weights of some persons would be those of two.
    assert max(n_rows * round(PERSON_WEIGHT / n_rows) for n_rows in HEAVY) > 1.9 * PERSON_WEIGHT


@pytest.mark.parametrize("weight", [1, 3, 7, 40_000, 65_537])
def test_rows_at_their_bound_are_rounded_down(weight, monkeypatch):
    clipping = Clipping(None, D, HuberLoss(0.5), 1, ONE * ONE, 0, weight, 0.5, None)

    def largest():
        found = []
        for n_rows in (1, 2, 3, 5, 7, 9, 97, 1009):
            rows = np.zeros((n_rows, D))
            rows[:, 0] = 1.0
            block = Block(Design(rows, 1.0), np.full(n_rows, float(ONE)), PersonRows(np.array([n_rows])))
            found.append(l2(ClippedRowSum(clipping, weight)(block)))
        return max(found)

    assert largest() <= clipping.row_squared * weight**2
    if weight in (3, 7):
        # To the nearest, two rows of weight 3 / 2 would be four.
        monkeypatch.setattr("taciturn.methods.clipped_records.np.floor", np.rint)
        assert largest() > clipping.row_squared * weight**2


def clippings(loss, n_outputs, *, joint):
    bound = 0.5 if not loss.labelled else 1.0
    row_squared = 2 * ONE * ONE
    product = PRODUCT if joint else None
    centre = np.array([0.0, 500.0, -ONE])
    return Clipping(None, D, loss, n_outputs, row_squared, 30_000, WEIGHT, bound, centre, product_bound=product)


def l2(value):
    return sum(int(each) ** 2 for each in np.ravel(value))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", LOSSES)
@given(seed=st.integers(0, 10**6), n_rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_gradients_of_a_person_keep_the_bound_on_one_record(kind, joint, seed, n_rows):
    loss, n_outputs = LOSSES[kind]
    block, clipping = person(seed, n_rows, loss), clippings(loss, n_outputs, joint=joint)
    coefficients = np.random.default_rng(seed).normal(0.0, 3.0, (n_outputs, D + 1))
    total = GradientSum(clipping, coefficients)(block)
    bound = jointly_clipped_sum(PRODUCT, "zero-out") if joint else None
    bound = bound or derivative_sum(clipping.row_squared, WEIGHT, loss.squared_l2_factor, "zero-out")
    assert l2(total) <= Fraction(bound.value) ** 2
    # Row by row, the rule itself.
    records = clipping.records(block)
    weights = records.weights(records.margins(coefficients)).astype(np.int64)
    norms = np.square(records._dense_rows(0, n_rows)).sum(axis=1).astype(np.int64)
    for row, squared in zip(weights.tolist(), norms.tolist(), strict=True):
        size = sum(weight * weight for weight in row)
        if joint:
            assert size <= (WEIGHT // n_rows) ** 2
            assert size <= isqrt(PRODUCT**2 // (n_rows**2 * squared)) ** 2
        else:
            assert size <= loss.squared_l2_factor * (WEIGHT // n_rows) ** 2
            assert size * squared * n_rows**2 <= loss.squared_l2_factor * WEIGHT**2 * clipping.row_squared
    entries = EntryCorrelationSum(clipping, coefficients[:, -1], 0.3)(block)
    most = proposal_scores(ONE, ceil(loss.l1_factor * WEIGHT), "zero-out").value
    assert np.abs(entries).sum(axis=1).max() <= most


@pytest.mark.parametrize("kind", ["numbers", "labels"])
@given(seed=st.integers(0, 10**6), n_rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_gram_matrices_of_a_person_are_positive_with_a_bounded_trace(kind, seed, n_rows):
    loss, n_outputs = LOSSES[kind]
    clipping = clippings(loss, n_outputs, joint=False)
    at = np.random.default_rng(seed).normal(0.0, 3.0, (1, D + 1)) if kind == "labels" else None
    for task in (GramMatrix(clipping, SQUARED), GramMatrix(clipping, SQUARED, at)):
        matrix = task(person(seed, n_rows, loss))
        assert int(np.trace(matrix)) <= SQUARED
        assert np.linalg.eigvalsh(matrix.astype(np.float64))[0] >= -1e-6 * SQUARED
        upper = np.triu_indices(D + 1)
        weighted = matrix[upper] * np.where(upper[0] == upper[1], 12, 17)
        assert l2(weighted) <= Fraction(gram_matrix(SQUARED, "zero-out").value) ** 2


@given(seed=st.integers(0, 10**6), n_rows=ROWS)
@settings(max_examples=80, deadline=None)
def test_terms_of_a_person_are_means_of_its_rows(seed, n_rows):
    rng = np.random.default_rng(seed)
    numbers, labels = person(seed, n_rows, HuberLoss(1.0)), person(seed, n_rows, LogisticLoss())
    of_numbers, of_labels = (clippings(loss, 1, joint=False) for loss in (HuberLoss(0.5), LogisticLoss()))
    coefficients = rng.normal(0.0, 3.0, (1, D + 1))
    direction = coefficients / np.linalg.norm(coefficients)
    curvature = CurvatureSum(of_numbers, direction, ONE)(numbers)
    assert 0 <= curvature[0] <= curvature_sum(ONE, "zero-out").value
    models = (coefficients, -coefficients)
    losses = ExcessLossSums(of_numbers, models, np.zeros((1, D + 1)), 0.7, ONE / 0.7)(numbers)
    assert np.abs(losses).max() <= loss_differences(ONE, "zero-out").value
    moments = ResidualMoments(of_numbers, coefficients, 0.5, 0.2, ONE)(numbers)
    assert l2(moments) <= ONE**2
    assert l2(ClippedRowSum(of_numbers, WEIGHT)(numbers)) <= of_numbers.row_squared * WEIGHT**2
    assert abs(int(ResidualSum(of_labels, coefficients, ONE)(labels)[0])) <= ONE
    classes = clippings(SoftmaxLoss(), 4, joint=False)
    slopes = SlopeMoments(classes, rng.normal(0.0, 3.0, (4, D + 1)), 0.5, ONE)(person(seed, n_rows, SoftmaxLoss()))
    assert l2(slopes) <= ONE**2
    cells = MarginCounts(of_labels, coefficients, 1.5, 8, ONE)(labels)
    assert cells.min() >= 0
    assert cells.sum() <= outcome_counts(ONE, "l1", "zero-out").value
    assert abs(int(TargetSum()(numbers)[0])) <= ONE
    assert l2(TargetSum((0, 1))(labels)) <= ONE**2
    correlations = CorrelationSum(of_labels, np.zeros(1))(labels)
    assert l2(correlations) <= of_labels.row_squared * WEIGHT**2


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@given(seed=st.integers(0, 10**6), n_rows=ROWS)
@settings(max_examples=60, deadline=None)
def test_selections_and_scores_of_a_person(n_classes, seed, n_rows):
    rng = np.random.default_rng(seed)
    X = rng.choice([-5.0, -1.0, 0.0, 0.5, 1.0, 9.0], (n_rows, D))
    persons = PersonRows(np.array([n_rows]))
    y = rng.integers(0, n_classes, n_rows) if n_classes else rng.integers(-ONE, ONE + 1, n_rows).astype(np.float64)
    block = Block(Design(X, 1.0), y, persons)
    for signs in (False, True):
        centres = tuple(rng.integers(-ONE, ONE + 1, n_classes if n_classes > 2 else 1).tolist())
        sums = CorrelationSums(n_classes, centres, signs, n_classes > 0)(block)
        assert np.abs(sums).max() <= ONE * ONE
    parts = TargetParts(n_classes, 2 * ONE, signed_target=False)(block)
    assert parts.min() >= 0
    assert 2 * ONE - n_classes - 2 <= parts.sum() <= target_parts(2 * ONE, "zero-out").value
    grid = (-1.0, 0.0, 0.7)
    counts = ColumnCounts((grid,) * D)
    for values, mirrored in counts.split(counts(block)):
        counted = n_rows * (PERSON_WEIGHT // n_rows) if n_rows <= MANY_ROWS else PERSON_WEIGHT
        assert values[-1] == mirrored[-1] == counted <= PERSON_WEIGHT
    predictions = Block(Design(rng.integers(0, 3, (n_rows, 1)).astype(float), 9.0), rng.integers(0, 3, n_rows), persons)
    outcomes = OutcomeCounts(3, PERSON_WEIGHT)(predictions)
    assert outcomes.min() >= 0
    assert outcomes.sum() <= outcome_counts(PERSON_WEIGHT, "l1", "zero-out").value
    wrong = Block(Design(rng.choice([-ONE, ONE, np.nan], (n_rows, 1)), 9.0), np.full(n_rows, float(ONE)), persons)
    high, low = ErrorSum(2, (2 * ONE) ** 2)(wrong).tolist()
    assert (high << 31) + low <= error_sum((2 * ONE) ** 2, "l1", "zero-out").value


@pytest.mark.parametrize("quantile", [0.5, 0.7, 0.95])
@pytest.mark.parametrize("relation", RELATIONS)
def test_rank_scores_move_by_the_weight_of_one_person(quantile, relation):
    rng = np.random.default_rng(3)
    grid = tuple(np.linspace(-1.0, 1.0, 6))
    mechanism = PrivateQuantile(grid, quantile, relation, 1.0, weight=PERSON_WEIGHT)
    fraction = Fraction(quantile).limit_denominator(1000)
    bound = quantile_scores(fraction.numerator, fraction.denominator, relation, PERSON_WEIGHT).value
    largest = 0.0

    class Columns:
        columns = None

        @staticmethod
        def values(block):
            return block.design(None).values[:, 0]

    def scores(values, slots):
        records = Records(np.array(values)[:, None], np.zeros(len(values)), np.array(slots), 9, True)
        return mechanism.count_scores(ArraySource(records, 1.0, 9).total(CumulativeCounts(Columns, grid)))

    for _ in range(300):
        others = rng.uniform(-1.2, 1.2, 8) if rng.random() < 0.5 else np.full(8, 0.1)
        rows = [rng.choice([-1.2, 1.2, rng.uniform(-1, 1)], rng.integers(1, 10)) for _ in range(2)]
        with_person = scores([*others, *rows[0]], [*range(8), *[8] * rows[0].size])
        other = rows[1] if relation == "replace-one" else rows[1][:0]
        without = scores([*others, *other], [*range(8), *[8] * other.size])
        largest = max(largest, float(np.abs(with_person - without).max()))
    assert 0.9 * bound < largest <= bound


def test_opposite_quantiles_of_a_person_are_not_those_of_a_record():
    """The smaller of the two drifts of a record does not hold for a person with rows at both ends."""
    grid = tuple(np.linspace(-1.0, 1.0, 21))
    fraction = Fraction(95, 100)
    a, b = fraction.numerator, fraction.denominator
    mechanism = PrivateQuantile(grid, 0.95, "zero-out", 1.0, weight=PERSON_WEIGHT)
    task = ColumnCounts((grid,))

    def drifts(rows):
        found = []
        for side in range(2):
            scores = []
            for table in (np.zeros(60), np.append(np.zeros(60), rows)):
                slots = np.append(np.arange(60), np.full(table.size - 60, 60))
                records = Records(table[:, None], np.zeros(table.size), slots, 61, True)
                (counts,) = task.split(ArraySource(records, np.inf, 61).total(task))
                scores.append(mechanism.count_scores(counts[side]))
            moves = scores[1] - scores[0]
            found.append(int(moves.max() - moves.min()))
        return sorted(found)

    of_record = opposite_quantile_scores(a, b, "zero-out")
    near, far = (each.spread * PERSON_WEIGHT for each in sorted(of_record, key=lambda each: each.spread))
    one = drifts(np.array([0.5]))
    assert one[0] <= near
    assert one[1] <= far
    both_ends = drifts(np.array([-0.5, 0.5]))
    assert both_ends[0] > near
    assert both_ends == [round((2 * a - b / 2) * PERSON_WEIGHT)] * 2
    # What is declared for persons covers it.
    assert all(each.spread >= both_ends[1] for each in opposite_quantile_scores(a, b, "zero-out", PERSON_WEIGHT))


def test_a_person_counts_once_in_row_norms_and_magnitudes():
    X = np.array([[0.0], [1.0], [0.5], [0.5]])
    source = ArraySource(Records(X, np.zeros(4), np.array([0, 0, 1, 2]), 4, True), 1.0, 4)
    # The row of zeros is left out, and its weight with it.
    counts = source.total(CumulativeCounts(RowNorms(HuberLoss(1.0), None), (0.25, 0.75)))
    assert counts.tolist() == [0, 2 * PERSON_WEIGHT, 2 * PERSON_WEIGHT + PERSON_WEIGHT // 2]


def test_losses_beyond_all_doubles_keep_the_bound():
    loss, n_outputs = LOSSES["classes"]
    clipping = clippings(loss, n_outputs, joint=False)
    design, codes = Design(np.tile([1.0, 0.0, -1.0], (4, 1)), 1.0), np.array([0, 1, 2, 2])
    # Margins of 1e308 and of -1e308: their difference is infinite, and that of two such losses no number.
    huge = np.zeros((n_outputs, D + 1))
    huge[:, 0] = 1.5e308, -1.5e308, 1.5e308, -1.5e308
    with np.errstate(all="ignore"):
        for persons in (PersonRows(np.array([4])), None):
            sums = ExcessLossSums(clipping, (-huge, huge), huge, 0.7, ONE / 0.7)(Block(design, codes, persons))
            assert np.abs(sums).max() <= (ONE if persons is not None else 4 * ONE)


def test_sums_that_forget_the_number_of_rows_break_their_bounds():
    loss = HuberLoss(0.5)
    block = person(1, 9, loss)
    X, y = np.ones((9, D)), np.full(9, float(ONE))
    clipping = clippings(loss, 1, joint=True)
    design = Design(X, 1.0)
    norms = np.square(design.lattice - clipping.centre).sum(axis=1)
    for counts, holds in ((block.row_counts, True), (None, False)):
        total = ClippedRecords(clipping, design, y, norms, counts).sums(np.zeros((1, D + 1)))
        assert (l2(total) <= PRODUCT**2) is holds


# ------------------------------------------------------------------ persons with very many rows


def many_rows(n_rows, loss=None, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (n_rows, D)), rng.uniform(-ONE, ONE, n_rows).round()
    return X, y, Block(Design(X, 1.0), y, PersonRows(np.array([n_rows])))


@pytest.mark.parametrize("n_rows", [9, 65, 5000, 50_000])
def test_a_person_with_many_rows_counts_as_finely_as_one_with_few(n_rows):
    X, y, block = many_rows(n_rows)
    clipping = Clipping(None, D, HuberLoss(4.0), 1, 4 * ONE * ONE, ONE, WEIGHT, 4.0)
    lattice, residuals = np.column_stack((np.rint(X * ONE), np.full(n_rows, ONE))), y / ONE
    gradient = GradientSum(clipping, np.zeros((1, D + 1)))(block)[0]
    exact = -(residuals[:, None] * lattice).mean(axis=0) * WEIGHT / 4.0
    size = np.abs(lattice).max() * WEIGHT / 4.0
    assert np.abs(gradient - exact).max() < 2e-3 * size
    gram = GramMatrix(clipping, SQUARED)(block) / SQUARED * clipping.row_squared
    assert np.abs(gram - lattice.T @ lattice / n_rows).max() < 2e-3 * clipping.row_squared
    if n_rows > WEIGHT:
        # With a part of the weight for each row nothing is left of it.
        norms = np.square(np.rint(X * ONE)).sum(axis=1)
        parts = ClippedRecords(clipping, Design(X, 1.0), y, norms, np.full(n_rows, n_rows))
        assert not parts.sums(np.zeros((1, D + 1))).any()


def test_means_of_terms_near_the_end_of_64_bits():
    rng = np.random.default_rng(2)
    for n_rows in (3, 100, 4097):
        terms = rng.integers(-(2**62), 2**62, (2 * n_rows, 2))
        terms[:n_rows] = 2**62 - 1
        means = PersonRows(np.array([n_rows, n_rows])).mean_terms(terms)
        for place in range(2):
            total = [sum(map(int, column)) for column in terms[place * n_rows : (place + 1) * n_rows].T]
            expected = [int(abs(each) // n_rows) * (1 if each >= 0 else -1) for each in total]
            assert means[place].tolist() == expected


@pytest.mark.parametrize("n_rows", [(70, 90), (70, 1), (65, 5), (400, 3)])
def test_replaced_persons_with_cut_gram_matrices_keep_the_bound(n_rows):
    """The bound of matrices that are cut to integers: of opposite rows it is nearly reached, and never passed."""
    row_squared = 1 << 12
    bound = gram_matrix(row_squared, "replace-one").value
    clipping = Clipping(None, D, HuberLoss(1.0), 1, ONE * ONE, 0, WEIGHT, 1.0)
    upper, weights = np.triu_indices(D), np.where(np.eye(D)[np.triu_indices(D)] == 1.0, 12, 17)
    largest = 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        matrices = []
        for which, number in enumerate(n_rows):
            rows = np.zeros((number, D))
            rows[:, which] = 1.0
            rows += rng.normal(0.0, 0.3 * (seed % 3), (number, D))
            matrices.append(
                GramMatrix(clipping, row_squared)(
                    Block(Design(rows, 1.0), np.zeros(number), PersonRows(np.array([number])))
                )
            )
        moved = (matrices[0] - matrices[1])[upper] * weights
        largest = max(largest, float(np.sqrt(l2(moved))))
    assert 0.95 * bound < largest <= bound


# ------------------------------------------------------------------ persons that count by their rows


@given(seed=st.integers(0, 10**6), n_rows=ROWS, most=st.sampled_from([1, 3, 8, 64, 1000]))
@settings(max_examples=60, deadline=None)
def test_persons_that_count_by_their_rows_keep_the_bound_of_one_record(seed, n_rows, most):
    rng = np.random.default_rng(seed)
    loss = HuberLoss(0.5)
    block, clipping = person(seed, n_rows, loss).counting_rows(most), clippings(loss, 1, joint=True)
    coefficients = rng.normal(0.0, 3.0, (1, D + 1))
    share = min(n_rows, most) / most
    assert l2(GradientSum(clipping, coefficients)(block)) <= (share * PRODUCT) ** 2 * (1 + 1e-9)
    matrix = GramMatrix(clippings(loss, 1, joint=False), SQUARED)(block)
    assert int(np.trace(matrix)) <= share * SQUARED * (1 + 1e-9)
    assert abs(int(TargetSum()(block)[0])) <= share * ONE
    assert int(WeightSum(loss)(block)[0]) == pytest.approx(share * ONE, abs=1.0)
    moments = ResidualMoments(clippings(loss, 1, joint=False), coefficients, 0.5, 0.2, ONE)(block)
    assert l2(moments) <= ONE**2
    ranks = CumulativeCounts(RowNorms(loss, None, zeros=True), (0.5, 1.0))(block)
    assert ranks.max() <= PERSON_WEIGHT


def test_rows_that_count_without_a_limit_pass_the_bound(monkeypatch):
    X, y = np.ones((40, D)), np.full(40, float(ONE))
    block, clipping = Block(Design(X, 1.0), y, PersonRows(np.array([40]))), clippings(HuberLoss(0.5), 1, joint=True)
    assert l2(GradientSum(clipping, np.zeros((1, D + 1)))(block.counting_rows(8))) <= PRODUCT**2
    monkeypatch.setattr("taciturn.engines.interface.np.minimum", lambda rows, most: rows)
    unlimited = Block(Design(X, 1.0), y, PersonRows(np.array([40]))).counting_rows(8)
    monkeypatch.undo()
    assert l2(GradientSum(clipping, np.zeros((1, D + 1)))(unlimited)) > 20 * PRODUCT**2
