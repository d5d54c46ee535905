"""Coefficients as tables for other programs and for papers."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from reported import EVIL, QUOTED, classification, inferred, no_errors, partly, regression, three_classes

from taciturn.app.export import coefficient_table, to_docx
from taciturn.app.model_file import Model
from taciturn.methods.inference.tidy import COLUMNS, LEVEL

BROOM = ["term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"]
WITH = [("a regression", inferred("regress")), ("two classes", inferred("classify")), ("gaps", partly("classify")),
        ("gaps of a regression", partly("regress")), ("three classes", three_classes())]  # fmt: skip
WITHOUT = [("none at all", no_errors()), ("weights", regression()), ("of two", classification(["no", "yes"])),
           ("of three", classification([1, 2, 3]))]  # fmt: skip
EVERY = pytest.mark.parametrize(
    "model", [model for _, model in WITH + WITHOUT], ids=[name for name, _ in WITH + WITHOUT]
)


def rows_of(model):
    """The rows of the CSV text, numbers as R reads them."""
    rows = list(csv.DictReader(io.StringIO(coefficient_table(model).to_csv())))
    texts = ("term", "note", LEVEL)
    return [{key: cell if key in texts else float(cell or "nan") for key, cell in row.items()} for row in rows]


def with_steps(model, **steps):
    """The same model, with changes that effects are stated for."""
    columns = {name: replace(column, per=steps.get(name)) if name in steps else column
               for name, column in model.bounds.columns.items()}  # fmt: skip
    return Model(replace(model.bounds, columns=columns), model.estimator, model.command)


# ------------------------------------------------------------------ the tidy table


def test_the_columns_are_those_of_broom_and_some_more():
    head = coefficient_table(inferred("classify")).to_csv().splitlines()[0].split(",")
    assert head[:7] == BROOM
    assert head == list(COLUMNS)
    # As broom has it for several classes.
    assert coefficient_table(three_classes()).to_csv().splitlines()[0].split(",")[:8] == [LEVEL, *BROOM]


def test_numbers_are_for_one_unit_of_the_column_and_follow_from_one_another():
    # Age has bounds from 10 to 110, so that a coefficient of 1.5 is one of 0.03 for a year.
    row = rows_of(inferred("classify"))[0]
    assert row["term"] == "age"
    assert row["per"] == 1.0
    assert row["estimate"] == pytest.approx(1.5 / 50)
    assert row["std.error"] == pytest.approx(0.5 / 50)
    assert (row["std.error.sampling"], row["std.error.privacy"]) == pytest.approx((0.3 / 50, 0.4 / 50))
    assert row["statistic"] == pytest.approx(3.0)
    assert row["p.value"] == pytest.approx(math.erfc(3.0 / math.sqrt(2.0)))
    assert row["conf.low"] == pytest.approx(0.03 - 1.959963984540054 * 0.01)
    assert row["conf.high"] == pytest.approx(0.03 + 1.959963984540054 * 0.01)
    logs = [math.log(row[name]) for name in ("ratio", "ratio.low", "ratio.high")]
    assert logs == pytest.approx([row[name] for name in ("estimate", "conf.low", "conf.high")])


def test_the_change_that_the_bounds_file_states_is_the_unit():
    plain, stated = rows_of(inferred("classify"))[0], rows_of(with_steps(inferred("classify"), age=10.0))[0]
    assert stated["per"] == 10.0
    for name in ("estimate", "std.error", "conf.low", "conf.high", "std.error.privacy"):
        assert stated[name] == pytest.approx(10.0 * plain[name])
    assert stated["ratio"] == pytest.approx(plain["ratio"] ** 10)
    assert (stated["statistic"], stated["p.value"]) == (plain["statistic"], plain["p.value"])


@EVERY
def test_no_ratio_stands_without_its_interval(model):
    for row in rows_of(model):
        missing = {math.isnan(row[name]) for name in ("ratio", "ratio.low", "ratio.high")}
        assert len(missing) == 1
        assert missing == {True} or not math.isnan(row["conf.low"])


@pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in WITHOUT])
def test_weights_are_named_so_and_have_no_errors(model):
    table, rows = coefficient_table(model), rows_of(model)
    for row in rows:
        assert all(math.isnan(row[name]) for name in (*BROOM[2:], "ratio"))
        assert row["note"] in ("weight of a prediction rule, without a standard error", "reference level")
    assert "Coefficient" not in table.to_markdown()
    assert "inference" in " ".join(table.notes) or "No standard errors" in " ".join(table.notes)


def test_what_is_not_estimable_has_a_note_and_no_number():
    rows = {row["term"]: row for row in rows_of(partly("classify"))}
    assert rows["region=north"]["note"] == "not estimable: confounded with region=south"
    assert all(math.isnan(rows["region=north"][name]) for name in BROOM[1:])
    assert {row["term"]: row["note"] for row in rows_of(partly("regress"))}["(Intercept)"] == "no interval"
    assert "region=north and region=south are not estimable at this budget" in coefficient_table(partly()).to_markdown()


def test_the_reference_level_has_a_row_without_a_number():
    model = inferred("classify", coef=np.array([1.5, -0.75, 0.0, 0.0, -0.01]))
    errors = model.estimator.inference_
    keep = [0, 1, 3, 4]  # all but region=north, of the columns and the intercept
    kept = {
        name: getattr(errors, name)[:, keep] for name in ("std_error", "sampling", "privacy", "degrees", "allowance")
    }
    model.estimator.inference_ = replace(errors, columns=np.array([0, 1, 4]), confounded=((),) * 4, **kept)
    rows = rows_of(model)
    assert [row["term"] for row in rows] == ["age", EVIL, "region=north", "region=south", "(Intercept)"]
    assert rows[2]["note"] == "reference level"
    assert all(math.isnan(rows[2][name]) for name in BROOM[1:])
    # With both levels in the model nothing is left out.
    assert not any(row["note"] == "reference level" for row in rows_of(inferred("classify")))


def test_several_classes_have_their_rows_each():
    rows = rows_of(three_classes())
    assert [row[LEVEL] for row in rows] == [EVIL] * 5 + ["high"] * 5
    assert rows[0]["estimate"] == pytest.approx(1.5 / 50)
    assert rows[5]["estimate"] == pytest.approx(-0.5 / 50)


def test_noise_as_large_as_a_coefficient_is_marked():
    table = coefficient_table(three_classes())
    marked = [(row.level, row.term) for row in table.rows if "noise" in row.note]
    # 0.1 with noise of 0.1; the others have less noise, or no number at all.
    assert marked == [("high", "region=north")]
    assert table.to_markdown().count("region=north†") == 1
    assert "† The noise for privacy is about as large as this number, or larger." in table.to_markdown()
    assert "†" not in coefficient_table(inferred("regress", privacy=np.zeros((1, 5)))).to_markdown()


def test_the_csv_text_has_every_digit():
    model = partly("classify")
    for row, made in zip(rows_of(model), coefficient_table(model).rows, strict=True):
        assert [row[name] for name in BROOM[1:]] == pytest.approx(made.numbers[:6], rel=0, abs=0, nan_ok=True)


@EVERY
def test_the_json_text_has_the_same_rows_and_null_for_nothing(model):
    content = json.loads(coefficient_table(model).to_json(), parse_constant=pytest.fail)
    assert (content["format"], content["version"]) == ("taciturn coefficients", 1)
    assert content["epsilon"] == model.certificate.epsilon
    assert content["task"] == model.task
    for row, read in zip(content["coefficients"], rows_of(model), strict=True):
        plain = {key: math.nan if value is None else value for key, value in row.items()}
        assert list(plain) == list(read)
        assert {key: repr(value) for key, value in plain.items()} == {key: repr(value) for key, value in read.items()}


# ------------------------------------------------------------------ for readers


def unescaped(text):
    """The text without commands and escapes of LaTeX."""
    return re.sub(r"\\[&%$#_{}]|\\text\w+\{\}|\$\^\\dagger\$", "", text)


@EVERY
def test_a_table_in_latex_is_regular_and_escaped(model):
    text = coefficient_table(model).to_latex()
    body = text[text.index("\\toprule") : text.index("\\bottomrule")]
    width = len(re.search(r"\{tabular\}\{(\w+)\}", text)[1])
    for line in body.splitlines():
        if line.endswith(r"\\") and "multicolumn" not in line:
            assert unescaped(line).count("&") == width - 1
        assert not re.search(r"[%$#_<>|~^]", unescaped(line)), line
    for name in ("table", "threeparttable", "tabular", "tablenotes"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1


@EVERY
def test_a_table_in_markdown_is_regular_and_has_no_markup_of_names(model):
    blocks = coefficient_table(model).to_markdown()
    lines = [line for line in blocks.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert "<script>" not in blocks


def test_summaries_write_themselves_in_latex_and_as_a_frame():
    pd = pytest.importorskip("pandas")
    summary = inferred("classify").summary()
    assert r"\begin{tabular}" in summary.to_latex()
    assert "1.030 (1.010 to 1.051)" in summary.to_latex()
    frame = summary.tidy()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns[:7]) == BROOM
    # Features of an estimator without a bounds file have their own units.
    alone = inferred("classify").estimator.summary().tidy()
    assert alone["estimate"].tolist() == [1.5, -0.75, 0.4, -0.01, 0.25]
    assert set(alone["per"].dropna()) == {1.0}


@EVERY
def test_a_word_document_holds_the_same_cells(model):
    docx = pytest.importorskip("docx", reason="needs python-docx")
    table = coefficient_table(model)
    document = docx.Document(io.BytesIO(to_docx(table)))
    groups = list(table.groups())
    assert len(document.tables) == len(groups)
    for made, (_, lines) in zip(document.tables, groups, strict=True):
        cells = [[cell.text for cell in row.cells] for row in made.rows]
        assert cells == [table.header, *lines]
    text = "\n".join(paragraph.text for paragraph in document.paragraphs)
    assert all(note in text for note in table.footnotes)


def test_the_title_says_what_is_modelled():
    assert coefficient_table(inferred("classify")).title == "y (yes against no)"
    assert coefficient_table(inferred("regress")).title == QUOTED
