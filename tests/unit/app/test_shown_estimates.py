"""Coefficients on a screen, in a report and in a notebook: not all are estimable, and classes have tables."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from reported import (
    EVIL,
    QUOTED,
    Tree,
    classification,
    drawings,
    faults_of,
    inferred,
    no_errors,
    partly,
    regression,
    tables,
    three_classes,
)

from taciturn.app.cli.show import print_model
from taciturn.app.export import coefficient_table
from taciturn.app.model_file import Model
from taciturn.app.report.model import model_report
from taciturn.core.errors import visible

CONFOUNDED = "region=north and region=south are not estimable at this budget: they are confounded with one another."
BOTH = pytest.mark.parametrize("task", ["regress", "classify"])


@pytest.fixture
def shown(capsys, monkeypatch):
    """What is printed of a model on a screen of 80 columns, with white space collapsed in sentences."""
    monkeypatch.setenv("COLUMNS", "80")

    def show(model, *, full):
        print_model(model, full=full)
        out = capsys.readouterr().out
        lines = [line for line in out.splitlines() if line.startswith("│")]
        rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
        return rows, " ".join(out.split())

    return show


def rows_of(root, start):
    return [
        {row.children[0].words(): [cell.words() for cell in row.children[1:]] for row in table.find("tr")}
        for table in tables(root, start)
    ]


def in_notebook(model):
    """Tables and sentences of the HTML of an estimator."""
    return Tree(model.estimator._repr_html_().partition('<div class="taciturn-card">')[2]).root


def unlike(weight):
    """A pattern of a weight as any display would write it."""
    return re.compile(rf"(?<![\d.]){re.escape(f'{weight:g}')}\d*(?![\d.])")


# ------------------------------------------------------------------ partly estimable


@BOTH
@pytest.mark.parametrize("full", [False, True])
def test_a_screen_marks_what_is_not_estimable(shown, task, full):
    rows, text = shown(partly(task), full=full)
    cells = {name: rest for name, *rest in rows}
    for name in ("region=north", "region=south"):
        assert cells[name] == ["-", "-", "-", "not estimable"]
    # Per year: the bounds are 100 years apart, and a coefficient is for half of that.
    assert cells["age"][0] == "+0.03"
    assert cells["(intercept)"][-1] == ("no interval" if task == "regress" else "")
    assert cells["(intercept)"][0] == ("-" if task == "regress" else "+0.25")
    if full or task == "classify":
        assert CONFOUNDED in text
    else:
        # More than two lines are a part of the whole.
        assert "not estimable, or without an interval: 3 (--full says why)" in text
    assert ("The model has all categories of region" in text) == full


@BOTH
def test_a_report_marks_what_is_not_estimable(task):
    page = model_report(partly(task))
    assert faults_of(page) == []
    root = Tree(page).root
    assert CONFOUNDED in root.words()
    (errors,) = rows_of(root, "Coefficients of")
    for name in ("region=north", "region=south"):
        assert errors[name] == ["not estimable", *[""] * 6]
        for ratios in rows_of(root, "Odds ratios of"):
            assert ratios[name] == ["not estimable", ""]
    assert len(rows_of(root, "Odds ratios of")) == (task == "classify")
    assert errors["(intercept)"][0] == ("no interval" if task == "regress" else "0.25")
    # An intercept without an error is not told in a sentence either.
    assert ("Intercept: 0.25." in root.words()) == (task == "classify")
    for kind in ("wide", "narrow"):
        (chart,) = [svg for svg in drawings(root, kind) if svg.find("circle")]
        groups = {group.find("title")[0].words(): len(group.find("circle")) for group in chart.find("g")}
        assert groups["region=north: not estimable"] == groups["region=south: not estimable"] == 0
        assert sum(groups.values()) == 2
        assert "2 of 2 intervals leave out" in chart.words()
        assert "2 more features are not estimable and have no point" in chart.words()


@BOTH
def test_a_notebook_marks_what_is_not_estimable(task):
    root = in_notebook(partly(task))
    (cells,) = rows_of(root, "4 of 5 features are in the model")
    width = 4 if task == "classify" else 3
    assert cells["feature"] == ["coefficient", "95% interval", "p", "odds ratio (95% interval)"][:width]
    assert cells["x3"] == cells["x4"] == ["not estimable", *[""] * (width - 1)]
    assert cells["(intercept)"][0] == ("no interval" if task == "regress" else "0.2500")
    assert "x3 and x4 are not estimable at this budget" in root.words()


@BOTH
def test_no_display_has_the_weight_of_what_is_not_estimable(shown, task):
    model = partly(task)
    stored = model.estimator.coef_
    stored[..., 3], stored[..., 4] = 7.531, -8.642
    displays = {
        "screen": shown(model, full=False)[1],
        "full screen": shown(model, full=True)[1],
        "report": Tree(model_report(model)).root.find("main")[0].words(),
        "notebook": in_notebook(model).words(),
        "summary": str(model.summary()) + model.summary()._repr_html_(),
        "frame": model.summary().to_frame().to_csv(),
    }
    for name, text in displays.items():
        assert not unlike(7.531).search(text), name
        assert not unlike(8.642).search(text), name
    # The model needs them for predictions, and the patterns would find them.
    assert unlike(7.531).search(model.to_json())
    # Without inference the two levels of a category are shown as a difference.
    assert unlike(16.17).search(Tree(model_report(no_errors(coef=stored.ravel()))).root.words())


def test_an_estimate_with_its_error_is_shown_whole(shown):
    rows, _ = shown(partly("classify"), full=False)
    assert rows[0] == ["age", "+0.03", "0.01", "0.011", "1.030 (1.008 to 1.053)"]
    (cells,) = rows_of(in_notebook(partly("classify")), "4 of 5")
    assert cells["x0"] == ["1.500", "0.4154 to 2.585", "0.011", "4.5 (1.5 to 13.3)"]


# ------------------------------------------------------------------ without errors


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (regression(), "effects"),
        (classification(["no", "yes"]), "odds ratios"),
        (classification([1, 2, 3]), "odds ratios"),
    ],
)
def test_without_inference_a_screen_has_the_weights_of_a_prediction_rule(shown, model, what):
    rows, text = shown(model, full=False)
    assert "4 of 5 features" in text
    assert "for a change of" in text
    sentence = f"prediction rule, without standard errors. Fit with --method auto --inference for intervals and {what}."
    assert sentence in text
    assert not any(word in text.replace(sentence, "") for word in ("odds", "effect", "per unit", "coefficient"))
    assert {row[0]: row[-1] for row in rows}["age"] == "50"


def test_where_there_are_none_at_all_the_reason_stands_beside_the_weights(shown):
    rows, text = shown(no_errors(), full=False)
    assert "No standard errors: the matrix is not clear of its noise" in text
    assert ["age", "+1.5", "50"] in rows
    assert "--inference" not in text
    root = in_notebook(no_errors())
    assert "No standard errors: the matrix is not clear of its noise" in root.words()
    assert "4 of 5 features have a weight in the prediction rule" in root.words()
    assert "per unit" not in text


# ------------------------------------------------------------------ three classes


def test_a_screen_has_the_first_table_and_all_in_full(shown):
    rows, text = shown(three_classes(), full=False)
    assert [row[0] for row in rows].count("age") == 1
    assert "classes that are not shown: 1 (--full prints them)" in text
    assert "y (<script>" in text
    rows, text = shown(three_classes(), full=True)
    assert [row[1] for row in rows if row[0] == "age"] == ["+0.03", "-0.01"]
    assert [row[-1] for row in rows if row[0] == "region=south"] == ["0.990 (0.952 to 1.030)", "not estimable"]
    assert f"y ({EVIL} against low): 4 of 5 features" in text
    assert "y (high against low): 4 of 5 features" in text
    gap = (
        "region=south is not estimable at this budget (high against low): it is confounded with age and the intercept."
    )
    assert gap in text


def test_a_report_has_a_table_per_class_against_the_reference():
    page = model_report(three_classes())
    assert faults_of(page) == []
    root = Tree(page).root
    subjects = [f"y ({EVIL} against low)", "y (high against low)"]
    assert [heading.words() for heading in root.find("h3")][:2] == subjects
    first, second = rows_of(root, "Coefficients of")
    assert first["age"][0] == "0.030"
    assert second["age"][0] == "-0.0100"
    assert (first["region=south"][0], second["region=south"][0]) == ("-0.010", "not estimable")
    assert len([svg for svg in drawings(root) if svg.find("circle")]) == 2
    assert "log-odds of a class against low, the reference" in root.words()
    assert "also called relative risk ratio" in root.words()


def test_a_notebook_has_a_table_per_class_against_the_reference():
    root = in_notebook(three_classes())
    first, second = rows_of(root, "4 of 5 features are in the model")
    assert first["x0"][0] == "1.500"
    assert second["x4"] == ["not estimable", "", "", ""]
    captions = [caption.words() for caption in root.find("caption")]
    assert captions[-2:] == [f"4 of 5 features are in the model ({label} against low)" for label in (EVIL, "high")]


def test_names_of_classes_cannot_reverse_text(shown):
    model = three_classes()
    model.estimator.classes_ = model.estimator.classes_.copy().astype(object)
    model.estimator.classes_[2] = "a\u202eb"
    made = Model(model.bounds, model.estimator, model.command)
    for text in (shown(made, full=True)[1], model_report(made), str(made.summary()), made.summary()._repr_html_()):
        assert "\u202e" not in text
        assert visible("a\u202eb") in text


def test_all_of_a_model_is_estimable_elsewhere(shown):
    for task in ("regress", "classify"):
        _, text = shown(inferred(task), full=True)
        assert "not estimable" not in text
        assert "no interval" not in text
    assert QUOTED in shown(inferred(), full=True)[1]


# ------------------------------------------------------------------ noise


def test_noise_as_large_as_a_coefficient_is_marked_on_screens_and_pages(shown):
    quiet, loud = inferred("classify"), inferred("classify")
    # The coefficient of region=north is 0.4; of its error 0.3 is noise, or 0.5.
    for model, noise in ((quiet, 0.3), (loud, 0.5)):
        found = model.estimator.inference_
        privacy = found.privacy.copy()
        privacy[0, 2] = noise
        model.estimator.inference_ = replace(found, privacy=privacy, std_error=np.hypot(found.sampling, privacy))
    meaning = "† The noise for privacy is about as large as this number, or larger."
    for full in (False, True):
        rows, text = shown(loud, full=full)
        assert [name for name, *rest in rows if "†" in "".join(rest)] == ["region=north"]
        assert meaning in text
    assert "†" not in shown(quiet, full=True)[1]
    root = Tree(model_report(loud)).root
    (errors,) = rows_of(root, "Coefficients of")
    assert [name for name in errors if "†" in name] == ["region=north †"]
    assert meaning in root.words()


@BOTH
def test_noise_is_marked_without_standard_errors_where_its_law_is_known(shown, task):
    model = inferred(task)
    del model.estimator.inference_
    coefficients = np.array([1.5, -0.75, 0.0, 0.4, -0.01])
    noise = np.array([0.1, 0.8, math.nan, 0.3, 0.02])
    shape = coefficients.shape if task == "regress" else (1, 5)
    model.estimator.coef_ = coefficients.reshape(shape)
    assert "†" not in shown(model, full=True)[1]
    model.estimator._noise_std = noise.reshape(shape)
    # The levels of the region are shown as a difference of 0.41, with noise of 0.3007.
    rows, text = shown(model, full=True)
    assert [name for name, *rest in rows if "†" in "".join(rest)] == [EVIL]
    assert "† The noise for privacy is about as large as this number, or larger." in text
    page = Tree(model_report(model)).root.words()
    assert f"{EVIL} †" in page
    again = Model.from_json(model.to_json()) if task == "classify" else None
    if again is not None:
        np.testing.assert_array_equal(again.estimator._noise_std, noise[None, :])
    table = coefficient_table(model)
    assert [row.term for row in table.rows if "noise" in row.note] == [EVIL]
