"""Intervals, p-values and summaries of made-up errors: Student's t, allowances, gaps, and tables per class."""

import math

import numpy as np
import pytest
from scipy import stats

from taciturn.methods.inference.summary import CoefficientSummary, Inference

NAN, INF = math.nan, math.inf


def errors(std_error, degrees=INF, allowance=0.0, confounded=None, **changes):
    """Errors of one or several tables, all due to the sample."""
    total = np.atleast_2d(np.array(std_error, dtype=float))
    details = {
        "columns": np.arange(total.shape[1] - 1),
        "std_error": total,
        "sampling": total,
        "privacy": 0.0 * total,
        "degrees": np.broadcast_to(np.array(degrees, dtype=float), total.shape),
        "allowance": np.broadcast_to(np.array(allowance, dtype=float), total.shape),
        "confounded": confounded or ((),) * total.shape[1],
        "confidence_level": 0.95,
        "n_records": 1000,
        "split": False,
    }
    return Inference(**(details | changes))


def summary(found, names=("age", "BMI", "weight"), coefficients=None, **changes):
    values = np.full(found.std_error.shape, 0.7) if coefficients is None else np.atleast_2d(coefficients)
    words = {"ratio": "odds ratio"} if "classes" in changes else {"has_shifted_intercept": True}
    words |= {"title": "A model", "facts": {"Budget": "epsilon 1"}} | changes
    return CoefficientSummary(names=names, coefficients=values, inference=found, **words)


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
@pytest.mark.parametrize("degrees", [1.0, 2.5, 30.0, 1e6, INF])
@pytest.mark.parametrize("allowance", [0.0, 0.3])
def test_intervals_and_p_values_are_those_of_students_t(level, degrees, allowance):
    values = np.array([[-2.0, -0.31, 0.0, 0.29, 5.0]])
    found = errors([0.4, 0.2, 0.1, 1.0, 0.7], degrees, allowance, confidence_level=level)
    law = stats.norm if math.isinf(degrees) else stats.t(degrees)
    reach = law.ppf(0.5 + level / 2) * found.std_error + allowance
    np.testing.assert_allclose(found.intervals(values), np.stack((values - reach, values + reach), axis=-1), rtol=1e-9)
    beyond = np.maximum(np.abs(values) - allowance, 0.0)
    np.testing.assert_allclose(found.p_values(values), 2 * law.sf(beyond / found.std_error), rtol=1e-9)


def agree(found, values, p_values):
    """Whether p-values are below one minus the level exactly where intervals leave out zero."""
    lower, upper = np.moveaxis(found.intervals(values), -1, 0)
    return np.array_equal(p_values < 1 - found.confidence_level, (lower > 0) | (upper < 0))


def random_errors():
    rng = np.random.default_rng(0)
    shape = (3, 2000)
    degrees = np.where(rng.random(shape) < 0.3, INF, rng.uniform(1, 50, shape))
    allowance = np.where(rng.random(shape) < 0.5, 0.0, rng.uniform(0, 1, shape))
    return errors(rng.uniform(0.1, 1, shape), degrees, allowance), rng.normal(0, 1.5, shape)


def test_p_values_are_small_where_the_interval_leaves_out_zero():
    found, values = random_errors()
    p_values = found.p_values(values)
    assert agree(found, values, p_values)
    assert 0.1 < np.mean(p_values < 0.05) < 0.9


def test_p_values_of_another_law_are_caught():
    found, values = random_errors()
    ratios = np.abs(values) / found.std_error
    normal = 2 * stats.norm.sf(np.maximum(np.abs(values) - found.allowance, 0) / found.std_error)
    without_allowance = 2 * stats.t.sf(ratios, np.minimum(found.degrees, 1e9))
    one_sided = found.p_values(values) / 2
    assert not any(agree(found, values, p_values) for p_values in (normal, without_allowance, one_sided))


def test_an_exact_fit_has_errors_of_zero():
    found = errors([0.0, 0.0, 0.0], allowance=[0.0, 0.0, 0.5])
    values = np.array([[1.0, 0.0, 0.4]])
    assert found.p_values(values).tolist() == [[0.0, 1.0, 1.0]]
    assert found.intervals(values).tolist() == [[[1.0, 1.0], [0.0, 0.0], [pytest.approx(-0.1), 0.9]]]


def test_what_has_no_standard_error_has_nothing_else():
    found = errors([0.1, NAN])
    values = np.array([[1.0, 1.0]])
    assert np.isnan(found.p_values(values)).tolist() == [[False, True]]
    assert np.isnan(found.intervals(values)).tolist() == [[[False, False], [True, True]]]


def test_values_are_spread_over_features_and_classes():
    one = errors([0.1, 0.2, 0.3], columns=np.array([1, 3]))
    np.testing.assert_array_equal(one.spread(one.std_error, 5), [NAN, 0.1, NAN, 0.2, NAN])
    several = errors([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], columns=np.array([0, 2]))
    expected = [[NAN] * 3, [0.1, NAN, 0.2], [0.4, NAN, 0.5]]
    np.testing.assert_array_equal(several.spread(several.std_error, 3), expected)
    assert several.spread(several.intervals(np.ones((2, 3))), 3).shape == (3, 3, 2)
    np.testing.assert_array_equal(several.of_intercept(several.std_error), [NAN, 0.3, 0.6])
    assert several.of_intercept(several.intervals(np.ones((2, 3)))).shape == (3, 2)
    assert errors([0.1, 0.2, 0.3, 0.4]).of_intercept(np.array([[1.0, 2.0]])) == 2.0


# ------------------------------------------------------------------ what is not estimable


SHIFTED = "The intercept has no interval, because a skewed tail of the errors would shift it."
PARTLY = errors([0.1, NAN, NAN, 0.2], confounded=((), (2,), (1,), ()))


def test_no_number_of_a_coefficient_without_error_is_shown():
    made = summary(PARTLY, coefficients=[0.5, 987.654, -987.654, 0.1], classes=("no", "yes"), units=np.ones(3))
    frame = made.to_frame()
    assert frame.pop("note").tolist() == [
        "", "not estimable: confounded with weight", "not estimable: confounded with BMI", ""
    ]  # fmt: skip
    assert frame.loc[["BMI", "weight"]].isna().to_numpy().all()
    assert frame.loc["age"].notna().all()
    for text in (str(made), made._repr_html_()):
        assert "987" not in text
        # Text repeats the mark in the tables of effects, of odds ratios and of the parts of errors.
        assert text.count("not estimable") - text.count("not estimable at this budget") == (
            8 if text == str(made) else 2
        )
    assert made.marks(0) == ["", "not estimable", "not estimable", ""]
    assert made.order(0) == [0, 1, 2]
    # Of three p-values one is left, and is not adjusted for the others.
    assert frame["p (BH)"]["age"] == frame["p"]["age"]


@pytest.mark.parametrize(
    ("std_error", "confounded", "sentences"),
    [
        (
            [0.1, NAN, NAN, 0.2],
            ((), (2,), (1,), ()),
            ["BMI and weight are not estimable at this budget: they are confounded with one another."],
        ),
        (
            [0.1, 0.1, NAN, 0.2],
            ((), (), (0, 1), ()),
            ["weight is not estimable at this budget: it is confounded with age and BMI."],
        ),
        (
            [0.1, NAN, NAN, 0.2],
            ((), (0, 2), (0, 1), ()),
            ["BMI and weight are not estimable at this budget: they are confounded with age and one another."],
        ),
        (
            [NAN, 0.1, NAN, NAN],
            ((3,), (), (), (0,)),
            [
                "age and the intercept are not estimable at this budget: they are confounded with one another.",
                "weight is not estimable at this budget.",
            ],
        ),
        ([0.1, NAN, NAN, 0.2], None, ["BMI and weight are not estimable at this budget."]),
        ([0.1, 0.2, 0.3, NAN], None, [SHIFTED]),
        ([0.1, 0.2, 0.3, 0.4], None, []),
    ],
)  # fmt: skip
def test_every_group_has_its_sentence(std_error, confounded, sentences):
    made = summary(errors(std_error, confounded=confounded))
    assert list(made.gaps) == sentences
    assert made.notes[: len(sentences)] == tuple(sentences)


def test_the_intercept_of_classes_is_estimable_or_not():
    made = summary(errors([0.1, 0.2, 0.3, NAN]), classes=("no", "yes"))
    assert made.marks(0)[-1] == "not estimable"
    assert made.gaps == ("the intercept is not estimable at this budget.",)
    assert summary(errors([0.1, 0.2, 0.3, NAN])).marks(0)[-1] == "no interval"


def test_a_model_without_intercept_has_no_row_for_one():
    made = summary(errors([0.1, 0.2, 0.3, NAN]), intercept=False)
    assert made.to_frame().index.tolist() == ["age", "BMI", "weight"]
    assert "(intercept)" not in str(made) + made._repr_html_()
    assert made.gaps == ()


def test_long_lists_of_names_are_cut():
    names = [f"c{j}" for j in range(50)]
    (sentence,) = summary(errors([NAN] * 49 + [0.1, 0.1]), names).gaps
    assert sentence.startswith("c0, c1, c2, ")
    assert sentence.endswith("c10 and 38 more are not estimable at this budget.")


def test_names_in_sentences_are_escaped():
    made = summary(PARTLY, ("age", "BMI", "<b>\u202e"))
    assert "\u202e" not in str(made)
    assert "<b>" not in made._repr_html_()


def test_a_reason_leaves_no_number():
    found = errors([NAN] * 4, reason="the noise is too large.")
    made = summary(found, coefficients=[987.654] * 4, units=np.ones(3), classes=("no", "yes"))
    assert made.notes == ("No standard errors: the noise is too large.",)
    assert made.gaps == ()
    assert "987" not in str(made) + made._repr_html_()
    assert "odds ratio" not in str(made)
    frame = made.to_frame()
    assert frame.pop("note").tolist() == ["not estimable"] * 4
    assert frame.isna().to_numpy().all()


def test_students_t_and_allowances_are_stated():
    (note,) = summary(errors([0.1, 0.2, 0.3, 0.4])).notes
    assert "Student" not in note
    assert "wider" not in note
    found = errors([0.1, 0.2, NAN, 0.4], [12.25, INF, INF, 40.0], [0.0, 0.125, 0.0, 0.0], ((), (), (0,), ()))
    note = summary(found).notes[-1]
    assert "Student's t with 12 or more degrees of freedom" in note
    assert "wider by up to 0.125 on either side" in note
    frame = summary(found).to_frame()
    np.testing.assert_array_equal(frame["df"], [12.25, INF, NAN, 40.0])
    np.testing.assert_array_equal(frame["allowance"], [0.0, 0.125, NAN, 0.0])


# ------------------------------------------------------------------ three and more classes


def three(**changes):
    found = errors([[0.1, 0.2, 0.3, 0.4], [0.2, NAN, 0.1, 0.2]], confounded=((), (0,), (), ()))
    coefficients = [[0.5, -1.0, 0.1, 0.3], [0.1, 987.654, -0.5, 0.2]]
    return summary(found, coefficients=coefficients, classes=("low", "middle", "high"), **changes)


def test_every_class_but_the_reference_has_a_table():
    made = three(units=np.array([50.0, 1.0, 1.0]))
    text = str(made)
    assert made.subjects == ["middle against low", "high against low"]
    assert text.index("middle against low") < text.index("high against low")
    assert "low against" not in text
    assert "987" not in text + made._repr_html_()
    assert made._repr_html_().count("<table>") == 3
    gap = "BMI is not estimable at this budget (high against low): it is confounded with age."
    assert made.gaps == (gap,)
    assert "p (BH) is adjusted for the number of columns and classes" in text
    assert [made.order(k) for k in (0, 1)] == [[1, 0, 2], [2, 0, 1]]


def test_the_frame_has_classes_and_features():
    frame = three().to_frame()
    assert frame.index.names == ["class", "feature"]
    assert frame.index.tolist()[:4] == [("middle", name) for name in ("age", "BMI", "weight", "(intercept)")]
    assert frame.loc["high"].loc["weight", "coefficient"] == -0.5
    assert frame.loc["high"].loc["weight", "odds ratio"] == math.exp(-0.5)
    # Five p-values of columns in both tables are adjusted together.
    p_values = frame["p"].drop("(intercept)", level="feature").dropna()
    expected = stats.false_discovery_control(p_values)
    np.testing.assert_allclose(frame["p (BH)"].dropna(), expected)


# ------------------------------------------------------------------ the width of a terminal

LONG = "education=university or another long degree"


def longest_line(made):
    return max(map(len, str(made).splitlines()))


def widest_summary(coefficient, **changes):
    """Long names, numbers with exponents, a coefficient without an error, and units of columns."""
    found = errors([[2.345e-05, 1.234e-05, 0.3, NAN], [0.2, NAN, 1.234e-05, 0.2]], confounded=((), (0,), (), (1,)))
    names, coefficients = (LONG, "a" * 27, "BMI"), [[coefficient, -1.0, 0.1, 0.3], [0.1, 9.0, coefficient, 0.2]]
    words = {"units": np.array([1e5, 1.0, 1e-5]), "steps": (10.0, None, 5.0), "classes": ("no" * 40, "yes", "b" * 90)}
    return summary(found, names, coefficients, ratio="incidence rate ratio", **(words | changes))


@pytest.mark.parametrize("coefficient", [0.7, -1.2345e-05, -123456.0])
def test_every_line_fits_a_terminal_of_80_columns(coefficient):
    made = widest_summary(coefficient, title="A model " * 20, facts={"Records": "1,234 " * 20})
    assert longest_line(made) <= 80
    # Nothing is lost: every column of a statistical package, and the parts of the standard error.
    headings = " ".join(line for line in str(made).splitlines() if line.startswith(" " * 16)).split()
    assert {"coefficient", "lower", "upper", "p", "(BH)", "sampling", "privacy", "z", "ratio", "effect"} < {*headings}
    assert "educa" in str(made)
    assert "degree" in str(made)


def test_a_table_in_one_piece_is_caught(monkeypatch):
    whole = ("coefficient", "std error", "sampling", "privacy", "z", "p", "p (BH)", "lower", "upper")

    def blocks(self, table):
        yield self._block({name: self.columns[name][table] for name in whole}, table, self.rows)

    monkeypatch.setattr(CoefficientSummary, "_blocks", blocks)
    assert longest_line(widest_summary(0.7)) > 80


def test_noise_as_large_as_a_coefficient_is_marked_in_text_and_notebooks():
    found = errors([0.1, 0.5, 0.3, 0.4], privacy=np.array([[0.05, 0.4, 0.1, 0.1]]))
    made = summary(found, coefficients=[0.5, 0.3, -0.4, 0.7])
    for text in (str(made), made._repr_html_()):
        assert text.count("†") == 2
        assert "The noise for privacy is about as large as this number, or larger." in text
    (marked,) = [line for line in str(made).splitlines() if "†" in line and "The noise" not in line]
    assert marked.split()[:3] == ["BMI", "0.3", "†"]
    assert "†" not in str(summary(errors([0.1, 0.5, 0.3, 0.4])))
