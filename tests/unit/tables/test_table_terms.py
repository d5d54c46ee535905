"""Terms of a design: what they compute, the bounds that follow, and what is refused."""

import math
import pickle
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from sklearn.preprocessing import SplineTransformer
from tables_on_disk import write

from taciturn import SparseRegressor
from taciturn.app.cli.tables import find_features
from taciturn.app.model_file import Model
from taciturn.core.errors import DataError, ParameterError, SeveralProblemsError, TaciturnError
from taciturn.tables import (
    Column,
    TableBounds,
    TableEncoder,
    TableSchema,
    Target,
    cells,
    open_partitions,
    read_batches,
    read_schema,
    read_table,
    terms,
)

TARGET = Target("y", -50, 50)
COLUMNS = {
    "age": Column("number", 18, 100),
    "crp": Column("number", 0.5, 300),
    "change": Column("number", -2, 3),
    "sex": Column("boolean"),
    "region": Column("category", categories=("north", "south", "west"), reference="south"),
    "seen": Column("date", 0, 1000, since=date(2020, 1, 1)),
}
TERMS = (
    "age^2", "change^2", "change^3", "age:sex", "log(crp)", "spline(age, 30, 50, 70)", "spline(crp, 1, 5, 20, 100)",
    "age:region", "sex:region", "log(crp):age^2:sex", "spline(age, 30, 50, 60, 70):sex", "seen^2",
)  # fmt: skip
NAMES = [
    "age", "crp", "change", "sex", "region=north", "region=south", "region=west", "seen", "age^2", "change^2",
    "change^3", "age:sex", "log(crp)", "spline(age, 30, 50, 70)", "spline(crp, 1, 5, 20, 100) 1",
    "spline(crp, 1, 5, 20, 100) 2", "age:region=north", "age:region=south", "age:region=west", "sex:region=north",
    "sex:region=south", "sex:region=west", "log(crp):age^2:sex", "spline(age, 30, 50, 60, 70) 1:sex",
    "spline(age, 30, 50, 60, 70) 2:sex", "seen^2",
]  # fmt: skip
N = 300
RNG = np.random.default_rng(0)
AGE, CRP = RNG.uniform(10, 110, N).round(3), np.exp(RNG.normal(1, 2, N)).round(4)
CHANGE, SEX = RNG.normal(0, 3, N).round(3), RNG.random(N) < 0.5
REGION, SEEN = RNG.choice(["north", "south", "west", "moon"], N), RNG.integers(-50, 1100, N)
TABLE = pa.table(
    {
        "age": AGE,
        "crp": CRP,
        "change": CHANGE,
        "sex": SEX,
        "region": REGION,
        "seen": pa.array(np.datetime64("2020-01-01") + SEEN),
        "y": RNG.normal(0, 20, N),
    }
)


def stated(texts=TERMS, **changes):
    return replace(TableBounds(TARGET, COLUMNS, terms=tuple(texts)), **changes)


def truncated_powers(x, knots):
    """A restricted cubic spline as its definition has it, in Python's exact fractions of doubles."""
    from fractions import Fraction

    x, knots = Fraction(x), [Fraction(knot) for knot in knots]
    *inner, before, last = knots

    def cube(knot):
        return max(x - knot, Fraction(0)) ** 3

    for knot in inner:
        ratio = (last - knot) / (last - before)
        yield float((cube(knot) - ratio * cube(before) + (ratio - 1) * cube(last)) / (last - knots[0]) ** 2)


def of_records():
    """The terms of all records by their meaning, one record after the other, and their ranges by hand."""
    rows = []
    for age, crp, change, sex, region, seen in zip(AGE, CRP, CHANGE, SEX, REGION, SEEN, strict=True):
        age, crp, change = min(max(age, 18), 100), min(max(crp, 0.5), 300), min(max(change, -2), 3)
        seen, at = min(max(int(seen), 0), 1000), [region == each for each in ("north", "south", "west")]
        first = truncated_powers(age, (30, 50, 70))
        second = truncated_powers(crp, (1, 5, 20, 100))
        third = truncated_powers(age, (30, 50, 60, 70))
        rows.append(
            [age**2, change**2, change**3, age * sex, math.log(crp), *first, *second, *(age * each for each in at)]
            + [sex and each for each in at]
            + [math.log(crp) * age**2 * sex, *(each * sex for each in third), seen**2]
        )
    low, high = math.log(0.5), math.log(300)
    ends = [list(truncated_powers(*each)) for each in ((100, (30, 50, 70)), (300, (1, 5, 20, 100)))]
    last = list(truncated_powers(100, (30, 50, 60, 70)))
    ranges = [
        (18**2, 100**2), (0, 9), (-8, 27), (0, 100), (low, high), *((0, end) for each in ends for end in each),
        (0, 100), (0, 100), (0, 100), (-1, 1), (-1, 1), (-1, 1), (low * 1e4, high * 1e4), *((0, end) for end in last),
        (0, 1e6),
    ]  # fmt: skip
    return np.array(rows, dtype=float), np.array(ranges, dtype=float)


def test_terms_are_what_they_say_and_their_bounds_follow():
    bounds = stated().for_table(names_of(TABLE.column_names))
    assert bounds.feature_names == NAMES
    values, ranges = of_records()
    n_columns = len(NAMES) - len(ranges)
    assert np.allclose(bounds.feature_ranges[n_columns:], ranges, rtol=1e-12, atol=0)
    assert np.allclose(bounds.feature_units[n_columns:], (ranges[:, 1] - ranges[:, 0]) / 2, rtol=1e-12, atol=0)
    X = TableEncoder(bounds=bounds).fit(TABLE).transform(TABLE)
    expected = (values - ranges.mean(axis=1)) / ((ranges[:, 1] - ranges[:, 0]) / 2)
    assert np.allclose(X[:, n_columns:], expected, rtol=0, atol=1e-12)
    # The columns themselves are as without terms.
    plain = TableEncoder(bounds=stated(())).fit(TABLE).transform(TABLE)
    assert np.array_equal(X[:, :n_columns], plain)


def names_of(names):
    return TableSchema(tuple(names), ("number",) * len(names))


def test_ranges_hold_and_are_no_wider_than_values_are():
    """Of columns at their ends and between, no value is beyond its range, and some are at its ends."""
    bounds = stated().for_table(names_of(TABLE.column_names))
    numbers = {
        "age": np.linspace(18, 100, 9), "crp": np.geomspace(0.5, 300, 9), "change": np.linspace(-2, 3, 11),
        "sex": np.arange(2.0), "region": np.arange(3.0), "seen": np.linspace(0, 1000, 3),
    }  # fmt: skip
    raw = dict(zip(numbers, (grid.ravel() for grid in np.meshgrid(*numbers.values())), strict=True))
    rows, raw["region"] = raw["age"], (raw["region"] == np.arange(3.0)[:, None]).astype(float)
    for term in bounds.design_terms:
        out = np.empty((term.width, len(rows)))
        term.fill({name: np.atleast_2d(raw[name]) for name in term.columns}, out)
        for (low, high), values in zip(term.ranges, out, strict=True):
            assert low <= values.min()
            assert values.max() <= high
            if (low, high) != (-1.0, 1.0):
                assert (values.min(), values.max()) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


def test_splines_are_natural_splines_with_these_knots():
    """Against scikit-learn's B-splines and scipy's natural cubic splines, inside the knots and beyond them."""
    knots, x = (30.0, 45.0, 62.0, 70.0), np.linspace(18, 100, 400)
    column = Column("number", 18, 100)
    factor = terms.Factor("age", column, "spline", knots, "spline(age)")
    ours = factor.values(x[None, :])
    theirs = SplineTransformer(degree=3, knots=np.array(knots)[:, None], extrapolation="linear").fit_transform(
        x[:, None]
    )
    for row in ours:
        solution, *_ = np.linalg.lstsq(theirs, row, rcond=None)
        assert np.abs(theirs @ solution - row).max() < 1e-9 * np.abs(row).max()
    # A constant, the column and the k - 2 functions: as many as natural splines have knots, and not collinear.
    basis = np.column_stack((np.ones_like(x), x, ours.T))
    assert np.linalg.matrix_rank(basis / np.abs(basis).max(axis=0)) == len(knots)
    for place in range(len(knots) - 2):
        values = factor.values(np.array([knots]))[place]
        natural = CubicSpline(knots, values, bc_type="natural")
        inside = (x >= knots[0]) & (x <= knots[-1])
        assert np.allclose(ours[place][inside], natural(x[inside]), rtol=0, atol=1e-10 * np.abs(values).max())
        beyond = values[-1] + natural(knots[-1], 1) * (x[x > knots[-1]] - knots[-1])
        assert np.allclose(ours[place][x > knots[-1]], beyond, rtol=1e-12)


def test_splines_keep_their_digits_far_from_the_knots():
    column = Column("number", 0, 1e7)
    factor = terms.Factor("x", column, "spline", (30.0, 50.0, 70.0), "spline(x)")
    for x in (69.999, 70.0, 1e3, 1e5, 1e7):
        (exact,) = truncated_powers(x, (30, 50, 70))
        assert factor.values(np.array([[x]]))[0, 0] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("file", ["a.csv", "a.parquet", "a.feather", "a.ipc"])
@pytest.mark.parametrize("invalid", ["raise", "null"])
def test_terms_are_the_same_from_every_file_and_in_partitions(tmp_path, monkeypatch, file, invalid):
    monkeypatch.setattr("taciturn.tables.partitions._CELLS", 40 * len(NAMES))
    path, expected = write(tmp_path, file, TABLE), TableEncoder(bounds=stated()).fit(TABLE).transform(TABLE)
    X, _ = read_table(path, stated(), "y", invalid=invalid)
    assert np.array_equal(X, expected)
    with open_partitions(path, stated(), invalid=invalid) as table:
        assert table.offsets.size > 3
        assert table.names == NAMES
        assert np.array_equal(np.vstack([table.read(i)[0] for i in range(table.offsets.size)]), expected)
        # Some features alone: those of terms without those of their columns, and both.
        for columns in ([8], [11, 22], [0, 16, 18], [4, 25], list(range(8)), []):
            part = table.read(2, np.array(columns, dtype=np.int64))[0]
            assert np.array_equal(part, expected[table.offsets[2] :][: len(part), columns])
    encoder = TableEncoder(bounds=stated().for_table(read_schema(path)), invalid=invalid).fit(read_schema(path))
    assert np.array_equal(np.vstack(list(read_batches(path, encoder))), expected)
    # A model of the term alone needs its columns, and no others.
    encoder.used_ = np.array([name == "age:sex" for name in NAMES])
    narrow = write(tmp_path, f"narrow{file[1:]}", TABLE.select(["sex", "age"]))
    whole = np.vstack(list(read_batches(narrow, encoder)))
    place = NAMES.index("age:sex")
    assert np.array_equal(whole[:, place], expected[:, place])
    with pytest.raises(DataError, match='expected a column "age", got a table without it'):
        list(read_batches(write(tmp_path, f"other{file[1:]}", TABLE.select(["sex"])), encoder))


@pytest.mark.parametrize("kind", ["pandas", "objects", "polars", "batch"])
def test_terms_are_the_same_in_memory(kind):
    expected = TableEncoder(bounds=stated()).fit(TABLE).transform(TABLE)
    table = {
        "pandas": TABLE.to_pandas, "objects": lambda: TABLE.to_pandas().astype(object),
        "polars": lambda: pl.from_arrow(TABLE), "batch": lambda: TABLE.combine_chunks().to_batches()[0],
    }[kind]()  # fmt: skip
    assert np.array_equal(TableEncoder(bounds=stated()).fit(table).transform(table), expected)


def test_a_record_alone_has_the_terms_that_it_has_among_others():
    """To the last bit: vectorised logarithms and powers differ by the place in an array."""
    encoder = TableEncoder(bounds=stated()).fit(TABLE)
    whole = encoder.transform(TABLE)
    for row in range(0, N, 7):
        assert np.array_equal(encoder.transform(TABLE.slice(row, 1))[0], whole[row])
    order = np.random.default_rng(1).permutation(N)
    assert np.array_equal(encoder.transform(TABLE.take(order)), whole[order])


# ------------------------------------------------------------------ missing cells

GAPS = {
    "age": [None, 40.0, 40.0],
    "crp": [2.0, None, 2.0],
    "change": [1.0, 1.0, None],
    "sex": [True, True, True],
    "region": ["north", None, "north"],
    "seen": [date(2020, 2, 1)] * 3,
}
FILLS = {
    "age": 30.0,
    "crp": {"value": 4.0, "indicator": True},
    "change": {"indicator": True},
    "region": {"indicator": True},
}


def test_missing_cells_of_terms_follow_their_columns():
    bounds = stated(("age^2", "log(crp)", "change^2", "change:sex", "age:region", "sex:region"), missing=FILLS)
    table = pd.DataFrame(GAPS)
    encoder = TableEncoder(bounds=bounds).fit(table)
    X = dict(zip(encoder.get_feature_names_out(), encoder.transform(table).T, strict=True))
    filled = pd.DataFrame(GAPS).assign(age=[30.0, 40, 40], crp=[2.0, 4, 2], change=[1.0, 1, 1], region="north")
    complete = dict(zip(encoder.get_feature_names_out(), encoder.transform(filled).T, strict=True))
    # A value in the place of a cell counts in its terms.
    assert np.array_equal(X["age^2"], complete["age^2"])
    assert np.array_equal(X["log(crp)"], complete["log(crp)"])
    # Without a value the features of the term are 0, as those of the column.
    for name in ("change^2", "change:sex"):
        assert X[name].tolist() == [*complete[name][:2], 0.0]
    for name in ("age:region=north", "age:region=west", "sex:region=north"):
        assert X[name].tolist() == [complete[name][0], 0.0, complete[name][2]]


def test_a_missing_cell_without_a_rule_takes_its_record_out():
    bounds = stated(("age^2", "log(crp):sex", "sex:region"))
    table = pd.DataFrame(GAPS)
    with pytest.raises(SeveralProblemsError) as caught:
        TableEncoder(bounds=bounds).fit(table).transform(table)
    assert [re.match(r'column "(\w+)": expected a value', str(error))[1] for error in caught.value.errors] == [
        "age", "crp", "change", "region",
    ]  # fmt: skip
    encoder = TableEncoder(bounds=bounds, invalid="null").fit(table)
    X = encoder.transform(table)
    lacking = {
        name: np.flatnonzero(np.isnan(column)).tolist()
        for name, column in zip(encoder.get_feature_names_out(), X.T, strict=True)
    }
    assert lacking["age^2"] == [0]
    assert lacking["log(crp):sex"] == [1]
    assert lacking["sex:region=west"] == [1]


def test_the_test_of_missing_cells_rejects_terms_of_filled_middles(monkeypatch):
    def careless(self, term, sources, block, position):
        term.fill({name: sources[name][0] for name in term.columns}, block)

    monkeypatch.setattr(cells.Encoding, "_fill_term", careless)
    with pytest.raises(AssertionError):
        test_missing_cells_of_terms_follow_their_columns()


# ------------------------------------------------------------------ files and models


def test_terms_come_back_from_files():
    bounds = stated().for_table(names_of(TABLE.column_names))
    assert TableBounds.from_json(bounds.to_json()) == bounds
    assert pickle.loads(pickle.dumps(bounds)) == bounds
    assert pickle.loads(pickle.dumps(bounds)).feature_names == NAMES
    text = '[target]\nname = "y"\nlower = -50\nupper = 50\n[defaults]\nlower = 1\nupper = 2\n[terms]\nlist = ["a^2"]\n'
    read = TableBounds.from_toml(text)
    # The columns that the defaults describe are known with the table.
    resolved = read.for_table(names_of(["a", "y"]))
    assert (read.terms, resolved.feature_names) == (("a^2",), ["a", "a^2"])
    with pytest.raises(ParameterError, match='got "a"'):
        read.for_table(names_of(["b", "y"]))


def test_effects_of_terms_are_in_the_units_of_the_columns(tmp_path):
    """Without noise, a target that is linear in the terms gives back its coefficients, after model.json too."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"age": rng.uniform(18, 100, 4000), "sex": rng.random(4000) < 0.5, "crp": rng.uniform(0.5, 300, 4000)}
    )
    truth = {"age": -0.3, "sex": 1.0, "age^2": 0.004, "age:sex": 0.05, "log(crp)": 2.0}
    frame["y"] = (
        -0.3 * frame.age + frame.sex + 0.004 * frame.age**2 + 0.05 * frame.age * frame.sex + 2 * np.log(frame.crp)
    )
    columns = {name: COLUMNS[name] for name in ("age", "sex", "crp")}
    bounds = TableBounds(TARGET, columns, terms=("age^2", "age:sex", "log(crp)")).for_table(names_of(frame.columns))
    X = TableEncoder(bounds=bounds).fit(frame).transform(frame)
    places = find_features("age,sex,age^2,age:sex,log(crp)", bounds)
    model = SparseRegressor(
        epsilon=math.inf, delta=1e-6, x_bound=1.0, y_bounds=(-50, 50), columns=places, inference=True, random_state=0
    ).fit(X, frame.y)
    again = Model.from_json(Model(bounds, model, "").to_json())
    effects = again.summary().to_frame()["effect per unit"]
    for name, value in truth.items():
        assert effects[name] == pytest.approx(value, rel=2e-3), name
    assert np.array_equal(again.pipeline().predict(frame[["crp", "sex", "age"]]), model.predict(X))


def test_a_term_on_the_command_line_leaves_out_the_reference():
    bounds = stated().for_table(names_of(TABLE.column_names))

    def names(columns):
        return [bounds.feature_names[place] for place in find_features(columns, bounds)]

    assert names("region") == ["region=north", "region=west"]
    assert names("age,age:region") == ["age", "age:region=north", "age:region=west"]
    assert names("sex:region") == ["sex:region=north", "sex:region=west"]
    assert names('"spline(age, 30, 50, 70)",age^2') == ["age^2", "spline(age, 30, 50, 70)"]
    assert bounds.references == {"region": "region=south"}


def test_certificates_assume_that_terms_are_stated(tmp_path):
    stated_terms = "the terms and their knots were chosen without looking at these data"
    assert stated_terms in TableEncoder(bounds=stated()).assumptions
    assert stated_terms not in TableEncoder(bounds=stated(())).assumptions
    path = write(tmp_path, "t.csv", TABLE)
    for texts in (TERMS, ()):
        with open_partitions(path, stated(texts)) as table:
            assert (stated_terms in table.assumptions) == bool(texts)


# ------------------------------------------------------------------ refusals

HEAD = """
target = {name = "y", lower = 0, upper = 1}
[columns]
age = {type = "number", lower = 18, upper = 100}
dose = {type = "number", lower = 0, upper = 1}
free = {type = "number"}
sex = {type = "boolean"}
region = {type = "category", categories = ["north", "south"]}
seen = {type = "date", parts = ["year"], lower = 2000, upper = 2020}
notes = {type = "ignore"}
"a:b" = {type = "number", lower = 0, upper = 1}
a = {type = "boolean"}
b = {type = "boolean"}
huge = {type = "number", lower = -1e200, upper = 1e200}
"""


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ("agee^2", 'expected columns that enter the model, got "agee"; did you mean "age"? write terms as'),
        ("sqrt(age)", 'got "sqrt(age)"'),
        ("", 'got ""'),
        ("age", "expected more than a column by itself"),
        ("y^2", 'got "y"'),
        ("notes:sex", 'got "notes"'),
        ("log(dose)", "expected a column above zero in a logarithm, got one with lower=0.0; state a lower bound"),
        ("age^1", "expected a whole exponent from 2 to 9"),
        ("age^10", "expected a whole exponent from 2 to 9"),
        ("age^-1", 'got "age^-1"'),
        ("spline(age, 30, 50)", 'expected 3 to 20 knots in increasing order within the bounds of "age", from 18.0'),
        ("spline(age, 30, 50, 50)", "in increasing order"),
        ("spline(age, 10, 50, 70)", "within the bounds"),
        ("spline(age, 30, 50, 1e999)", "within the bounds"),
        ("spline(age)", 'got "spline(age)"'),
        ("sex^2", 'expected a column of numbers in a power, got "sex"'),
        ("log(region)", 'expected a column of numbers in a log, got "region"'),
        ("spline(region, 1, 2, 3)", "expected a column of numbers in a spline"),
        ("seen:sex", 'expected no date in parts, got "seen"'),
        ("free^2", 'expected a column whose lower and upper are stated, got "free"; state them'),
        ("age:age", "expected different columns in a product; write a square as age^2"),
        ("age:age^2", "expected different columns in a product"),
        ("a:b:sex", "expected a term that can be read in one way only; rename a column with a colon in its name"),
        ("huge^9", "expected a term whose range is 1e-301 to 1e301 wide"),
    ],
)  # fmt: skip
def test_a_term_that_cannot_be_computed_is_refused(term, message):
    text = f'{HEAD}[terms]\nlist = ["age^2", "{term}"]\n'
    with pytest.raises(ParameterError, match=re.escape(message)) as caught:
        TableBounds.from_toml(text)
    assert str(caught.value).startswith(f"terms.list='{term}': expected")


def test_terms_with_colons_in_names_are_read_where_there_is_one_way():
    columns = {"p:q": Column("number", 0, 1), "r": Column("boolean")}
    first, second = TableBounds(TARGET, columns, terms=("p:q^2", "r:p:q")).design_terms
    assert (first.columns, second.columns) == (["p:q"], ["r", "p:q"])


def test_all_problems_of_terms_and_columns_are_told_at_once():
    text = HEAD.replace("upper = 100", "upper = 1") + (
        '[terms]\nlist = ["log(dose)", "age^2", "nobody^2", "sex:dose", "dose:sex"]\n[table]\nencoding = "klingon"\n'
        'thousands = "."\ndecimal = "."\nfoo = 1\n[wrong]\n'
    )
    with pytest.raises(SeveralProblemsError) as caught:
        TableBounds.from_toml(text)
    told = [str(error).partition(": expected")[0] for error in caught.value.errors]
    # Nothing is said of a term whose column is refused.
    assert told == [
        "bounds='wrong'", "columns.\"age\".lower=18", "table='foo'", "table.encoding='klingon'", "table.thousands='.'",
        "terms.list='log(dose)'", "terms.list='nobody^2'",
    ]  # fmt: skip
    with pytest.raises(SeveralProblemsError) as caught:
        TableBounds.from_toml(HEAD + '[terms]\nlist = ["sex:dose", "dose:sex", "log(dose)"]\n[missing]\nage = 7\n')
    assert [str(error).partition(": expected")[0] for error in caught.value.errors] == [
        'missing."age"=7', "terms.list='dose:sex'", "terms.list='log(dose)'",
    ]  # fmt: skip


def test_lists_of_terms_are_limited():
    with pytest.raises(ParameterError, match="expected at most 1,000 of them"):
        stated([f"age^{i}" for i in range(1001)])
    many = Column("category", categories=tuple(map(str, range(150))))
    wide = {"a": many, "b": many}
    with pytest.raises(ParameterError, match="expected terms with at most 10,000 features together"):
        TableBounds(TARGET, wide, terms=("a:b",))
    for content in ("3", '"age^2"', "[1]", '[["age^2"]]'):
        with pytest.raises(ParameterError, match="^terms.list="):
            TableBounds.from_toml(f"{HEAD}[terms]\nlist = {content}\n")
    with pytest.raises(ParameterError, match="expected no key but list"):
        TableBounds.from_toml(f'{HEAD}[terms]\nlits = ["age^2"]\n')


def test_terms_need_a_dense_table(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:1 2:1\n0 2:1\n")
    bounds = TableBounds(Target("label", 0, 1), defaults=Column("number", -1, 1), terms=("1^2",))
    with pytest.raises(ParameterError, match="expected none for a libsvm table, whose zeros would fill up"):
        read_table(path, bounds, "label")


def test_terms_of_columns_whose_bounds_are_to_be_found_are_refused():
    with pytest.raises(ParameterError, match='expected a column whose lower and upper are stated, got "age"'):
        stated(("log(age)",), found_privately=("age",))


LETTERS = st.text(alphabet=st.sampled_from("age:^()23,. sexlogplinr\x00é"), max_size=24)


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(LETTERS, max_size=4))
def test_any_list_is_read_or_refused_in_sentences(texts):
    try:
        bounds = stated(texts)
    except TaciturnError as error:
        for each in getattr(error, "errors", [error]):
            assert re.match(r"terms\.list=.*: expected .*; .*\.$", str(each), flags=re.DOTALL)
        return
    names = [label for term in bounds.design_terms for label in term.labels]
    assert (
        len(names)
        == sum(term.width for term in bounds.design_terms)
        == sum(len(term.ranges) for term in bounds.design_terms)
    )
