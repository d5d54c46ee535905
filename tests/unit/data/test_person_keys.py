"""Keys of persons, the order of their rows, and fits that depend on neither."""

import datetime
import decimal
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from taciturn import (
    BlockVoteSelector,
    CorrelationSelector,
    DataError,
    HardThresholdRegressor,
    ParameterError,
    PrivateScaler,
    SparseClassifier,
    SparseRegressor,
    private_score,
)
from taciturn.core.validation import ONE
from taciturn.data.persons import PersonRows, canonical_key, read_persons
from taciturn.data.records import Records
from taciturn.engines import ArraySource
from taciturn.losses import HuberLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.inference.whitened import (
    Coordinates,
    InformationSum,
    LengthWeighing,
    NumberLoss,
    ScoreProducts,
    ScoreSum,
)
from taciturn.methods.scaling.run import ColumnCounts
from taciturn.methods.selection.run import CorrelationSums
from taciturn.methods.sums import (
    CumulativeCounts,
    CurvatureSum,
    GradientSum,
    GramMatrix,
    RowNorms,
    TargetSum,
)

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

EQUAL = (
    (7, 7.0, "7", "007", " 7 ", "7.0", "+7", np.int8(7), np.float32(7.0), decimal.Decimal("7.00"), b"7"),
    (0, -0.0, "-0", "00.00", "0"),
    (0.5, ".5", "0.50", np.float64(0.5)),
    (-3, "-3", "-003.0"),
    ("Ann", " Ann", b"Ann", np.str_("Ann")),
    (10**30, "1" + 30 * "0", 1e30),
    (10**5000, "1" + 5000 * "0"),
    (datetime.date(2020, 1, 2), "2020-01-02", np.datetime64("2020-01-02")),
    (uuid.UUID(int=5), str(uuid.UUID(int=5))),
)
MISSING = (
    None,
    "",
    "  ",
    float("nan"),
    np.nan,
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "D"),
    np.inf,
    decimal.Decimal("NaN"),
)


@pytest.mark.parametrize("keys", EQUAL)
def test_equal_keys_have_one_form_whatever_their_type(keys):
    assert len({canonical_key(key) for key in keys}) == 1


def test_different_keys_have_different_forms():
    forms = [canonical_key(keys[0]) for keys in EQUAL]
    others = [canonical_key(key) for key in ("ann", "1e5", 1e5, "0x7", "7a", True, "-", ".", "seven")]
    assert len({*forms, *others}) == len(forms) + len(others)


@pytest.mark.parametrize("key", [*MISSING, object(), (1, 2), [1]], ids=lambda key: type(key).__name__)
def test_missing_and_unreadable_keys_belong_to_nobody(key):
    assert canonical_key(key) is None


KEYS = [3, 10, None, 3, 2]
CONTAINERS = {
    "list": KEYS,
    "tuple": tuple(KEYS),
    "objects": np.array(KEYS, dtype=object),
    "floats": np.array(KEYS, dtype=np.float64),
    "texts": ["3", "10", "", "3", "2"],
    "pandas": pd.Series(KEYS),
    "pandas with a mask": pd.Series(KEYS, dtype="Int64"),
    "categories": pd.Series(KEYS).astype("category"),
    "polars": pl.Series(KEYS),
    "pyarrow": pa.array(KEYS),
    "chunks": pa.chunked_array([KEYS[:2], KEYS[2:]]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_slots_follow_the_forms_and_not_the_container(name):
    keys = read_persons(CONTAINERS[name], 5)
    # In the order of texts: "10", "2", "3".
    assert keys.slots.tolist() == [2, 0, -1, 2, 1]
    assert keys.n_persons == 3


def test_one_key_does_not_decide_how_others_are_read():
    plain = read_persons([1, "1", 2.0, "x"], 4)
    for odd in (object(), "text", None, 7.5, float("inf")):
        assert read_persons([1, "1", 2.0, odd], 4).slots[:3].tolist() == plain.slots[:3].tolist() == [0, 0, 1]


def test_large_integers_with_a_missing_one_are_not_rounded():
    big = 2**60
    keys = read_persons(pd.Series([big, big + 1, None], dtype="Int64"), 3)
    assert keys.n_persons == 2


@pytest.mark.parametrize(
    "bad", [5, [1, 2], np.zeros((5, 1)), [1, 2, 3, 4, 5, 6]], ids=["number", "short", "2d", "long"]
)
def test_other_numbers_of_keys_are_refused_without_quoting_them(bad):
    with pytest.raises(DataError, match="^persons: expected one key per row of X"):
        read_persons(bad, 5)


# ------------------------------------------------------------------ sums


def grouped(X, y, persons, n_partitions=1):
    keys = read_persons(persons, len(y))
    records = Records(X, y, np.arange(len(y)), len(y)).of_persons(keys)
    return ArraySource(records, 1.0, keys.n_persons, n_partitions=n_partitions)


rng = np.random.default_rng(5)
OWNERS = rng.permutation(np.repeat(np.arange(23), rng.integers(1, 10, 23)))
X = rng.uniform(-1.2, 1.2, (OWNERS.size, 4))
NUMBERS = rng.integers(-ONE, ONE + 1, OWNERS.size).astype(np.float64)
LOSS = HuberLoss(0.5)
CLIPPING = Clipping(None, 4, LOSS, 1, 2 * ONE * ONE, 20_000, 50_000, 0.5, product_bound=2 * 10**9)
COEFFICIENTS = rng.normal(size=(1, 5))
AT = Coordinates.of(rng.normal(size=(5, 5)), None, intercept=True)
NUMBER_LOSS, WEIGHING = NumberLoss(COEFFICIENTS, clip=0.5), LengthWeighing(1.5, 1.2)
TASKS = {
    "gradient": GradientSum(CLIPPING, COEFFICIENTS),
    "Gram matrix": GramMatrix(Clipping(None, 4, LOSS, 1, 2 * ONE * ONE, 20_000, ONE, 0.5), 1 << 26),
    "information": InformationSum(AT, LOSS, NUMBER_LOSS, WEIGHING, WEIGHING.trace, 1 << 26),
    "gradient in coordinates": ScoreSum(AT, LOSS, NUMBER_LOSS, WEIGHING, 0.5 * WEIGHING.norm, 1 << 34),
    "scores": ScoreProducts(AT, LOSS, NUMBER_LOSS, WEIGHING, 0.5 * WEIGHING.norm, 1 << 26),
    "curvature": CurvatureSum(CLIPPING, COEFFICIENTS / 3.0, ONE),
    "target": TargetSum(),
    "correlations": CorrelationSums(0, ONE),
    "counts": ColumnCounts(((-0.5, 0.0, 0.5),) * 4),
    "norms": CumulativeCounts(RowNorms(LOSS, None), (0.5, 1.0, 1.5)),
}


@pytest.mark.parametrize(
    ("name", "layout"),
    # Quantiles are of dense columns.
    [(name, layout) for name in TASKS for layout in ("dense", "csr", "csc") if layout == "dense" or name != "counts"],
)
def test_sums_do_not_depend_on_partitions_or_on_the_order_of_rows(name, layout):
    def table(cells):
        return cells if layout == "dense" else sp.csr_array(cells).asformat(layout)

    expected = grouped(X, NUMBERS, OWNERS).total(TASKS[name])
    order = np.random.default_rng(1).permutation(OWNERS.size)
    for n_partitions in (1, 2, 7, 23, 50):
        found = grouped(table(X[order]), NUMBERS[order], OWNERS[order], n_partitions).total(TASKS[name])
        assert np.array_equal(found, expected)


def test_no_partition_holds_a_part_of_a_person():
    source = grouped(X, NUMBERS, OWNERS, n_partitions=7)
    counts = np.bincount(OWNERS)
    assert sum(block.persons.counts.size for block in source._blocks) == counts.size
    assert sorted(np.concatenate([block.persons.counts for block in source._blocks])) == sorted(counts)


def test_halves_are_of_whole_persons():
    source = grouped(X, NUMBERS, OWNERS)
    first, second = source.divide(np.arange(23) % 2 == 0)
    assert (first.n_records, second.n_records) == (12, 11)
    assert not set(first.records.slots) & set(second.records.slots)
    assert first.records.slots.size + second.records.slots.size == OWNERS.size


def test_means_are_cut_towards_zero_and_shares_rounded_down():
    persons = PersonRows.of_slots(np.array([0, 0, 0, 4, 4, 7]))
    assert persons.counts.tolist() == [3, 2, 1]
    assert persons.starts.tolist() == [0, 3, 5]
    assert persons.mean_terms(np.array([-1, -1, 0, 3, 2, -9])).tolist() == [0, 2, -9]
    assert persons.cell_shares(np.array([0, 1, 1, 0, -1, 2]), 3, 100).tolist() == [33 + 50, 66, 100]
    assert persons.of_rows.tolist() == [3, 3, 3, 2, 2, 1]
    nobody = PersonRows.of_slots(np.zeros(0, dtype=np.intp))
    assert nobody.mean_terms(np.zeros(0, dtype=np.int64)).sum() == 0


# ------------------------------------------------------------------ fits

TARGET = np.clip(0.6 * X[:, 1], -1.0, 1.0)
FIXED = {"row_bound": 1.5, "residual_clip": 0.5, "step_size": 0.1, "n_steps": 3, "mechanism": "gaussian"}


def test_a_person_with_one_row_is_a_record():
    records = np.random.default_rng(2).permutation(60)
    table, y = X[:60], TARGET[:60]
    model = HardThresholdRegressor(random_state=1, **FIXED)
    alone = model.fit(table, y).coef_
    assert np.array_equal(model.fit(table, y, persons=records).coef_, alone)
    assert model.certificate_.unit == "person"


@pytest.mark.parametrize(
    "model",
    [
        SparseRegressor(epsilon=20.0, n_nonzero=2),
        SparseRegressor(epsilon=30.0, n_nonzero=2, inference=True),
        HardThresholdRegressor(epsilon=5.0),
        CorrelationSelector(n_features_to_select=2),
        BlockVoteSelector(n_features_to_select=2, n_blocks=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_fits_depend_on_neither_the_order_of_rows_nor_on_rows_of_nobody(model):
    model.set_params(random_state=3)

    def fitted(table, y, persons):
        found = model.fit(table, y, persons=persons)
        return getattr(found, "coef_", found.support_), found.certificate_.to_json()

    expected, certificate = fitted(X, TARGET, OWNERS)
    order = np.random.default_rng(4).permutation(OWNERS.size)
    found = fitted(X[order], TARGET[order], OWNERS[order])
    # Within a block or half, rows of one person may come in another order; votes are functions of sets of rows.
    assert np.allclose(found[0], expected, rtol=0.0, atol=1e-12)
    nobody = np.array([*OWNERS, None, "", np.nan], dtype=object)
    more = np.vstack((X, np.full((3, 4), 1e6))), np.append(TARGET, [1.0, -1.0, 1.0])
    found = fitted(*more, nobody)
    assert np.array_equal(found[0], expected)
    assert found[1] == certificate


def test_the_certificate_is_about_persons():
    model = SparseRegressor(random_state=0).fit(X, TARGET, persons=OWNERS)
    certificate = model.certificate_
    assert (certificate.unit, certificate.public["records"]) == ("person", 23)
    assert certificate.public["estimand"].startswith("means over persons")
    assert any("the set of keys of the persons is public" in each for each in certificate.assumptions)
    private = SparseRegressor(relation="add-remove", n_public=20, random_state=0).fit(X, TARGET, persons=OWNERS)
    assert private.certificate_.public["records"] == 20
    assert not any("is public" in each for each in private.certificate_.assumptions)
    plain = SparseRegressor(random_state=0).fit(X, TARGET).certificate_
    assert (plain.unit, plain.public["records"]) == ("record", OWNERS.size)
    assert "estimand" not in plain.public


def test_a_person_without_usable_rows_keeps_its_slot():
    y = np.where(OWNERS == 3, 7, TARGET > 0)
    model = SparseClassifier(classes=(0, 1), random_state=0).fit(X, y, persons=OWNERS)
    assert model.certificate_.public["records"] == 23


def test_no_key_at_all_is_refused_where_the_number_of_persons_is_public():
    nobody = [None] * OWNERS.size
    with pytest.raises(DataError, match="^persons: expected at least one key"):
        SparseRegressor().fit(X, TARGET, persons=nobody)
    SparseRegressor(relation="add-remove", n_public=5, random_state=0).fit(X, TARGET, persons=nobody)


def test_quantiles_and_scores_count_each_person_once():
    # One person with many rows that lie far out, against many persons with one row each.
    table = np.append(np.linspace(0.0, 1.0, 400), np.full(4000, 50.0))[:, None]
    persons = np.append(np.arange(400), np.full(4000, 400))
    scaler = PrivateScaler(epsilon=20.0, tail=0.1, largest=100.0, random_state=0)
    assert scaler.fit(table).upper_[0] > 40.0
    assert scaler.fit(table, persons=persons).upper_[0] < 1.5
    assert scaler.certificate_.unit == "person"
    model = SparseClassifier(classes=(0, 1), epsilon=20.0, n_nonzero=1, random_state=0)
    cells = np.append(np.tile([-1.0, 1.0], 200), np.full(4000, 1.0))[:, None]
    labels = np.append(np.tile([0, 1], 200), np.zeros(4000, dtype=int))
    model.fit(cells, labels, persons=persons)
    score = private_score(model, cells, labels, epsilon=20.0, persons=persons, random_state=0)
    assert score.value == pytest.approx(400 / 401, abs=0.01)
    assert (score.certificate.unit, score.certificate.public["records"]) == ("person", 401)
    assert private_score(model, cells, labels, epsilon=20.0, random_state=0).value < 0.2


def test_scores_of_ones_own_are_refused_for_persons():
    class Score:
        def __call__(self, X, y):
            return np.abs(X.T @ y)

        def sensitivity(self, relation):
            from taciturn.data.sensitivity import record_sum

            return record_sum(1.0, "linf", relation)

    selector = CorrelationSelector(score_func=Score(), n_features_to_select=1)
    with pytest.raises(ParameterError, match="^score_func='Score': expected one of .* where persons are given"):
        selector.fit(X, TARGET, persons=OWNERS)


def test_keys_of_blocks_are_refused_beside_persons():
    selector = BlockVoteSelector(relation="add-remove", n_public=23, n_features_to_select=1)
    with pytest.raises(ParameterError, match="^keys='ndarray': expected None where persons are given"):
        selector.fit(X, TARGET, persons=OWNERS, keys=OWNERS)


def test_keys_of_any_size_and_kind_of_number_are_read():
    """One key may neither fill the memory nor be lost for the type that its column has."""
    large, small = (canonical_key(decimal.Decimal(text)) for text in ("1E+99999999999", "1E-99999999999"))
    assert len(large) < 100
    assert large != small
    assert canonical_key(decimal.Decimal("1.0E+99999999999")) == large
    assert canonical_key(decimal.Decimal("1E+2")) == canonical_key(100) == "100"
    assert canonical_key(np.longdouble(7.5)) == "7.5"
    masked = np.ma.array(np.arange(5), mask=[True, True, False, False, False])
    keys = read_persons(masked, 5)
    assert keys.n_persons == 3
    assert keys.slots.tolist() == [-1, -1, 0, 1, 2]
