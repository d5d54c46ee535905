"""What the report says of how good a model is."""

import dataclasses

import pytest
from reported import EVIL, Tree, classification, made_score, regression

from taciturn.app.report.model import model_report
from taciturn.charts import format_estimate, square_point

LABELS = ["no", EVIL]


def section_of(root):
    """Elements of the section."""
    found, inside = [], False
    for element in root.find("main")[0].children:
        if element.name == "h2":
            inside = element.words() == "How good is it"
        if inside:
            found.append(element)
    return found


def rows_of(root, caption):
    (table,) = [t for t in root.find("table") if t.children[0].words() == caption]
    return [[cell.words() for cell in row.children] for row in table.find("tr")]


def test_the_section_is_there_with_a_score_and_only_then():
    page = model_report(classification(LABELS))
    assert not section_of(Tree(page).root)
    assert section_of(Tree(model_report(classification(LABELS), made_score(LABELS))).root)


@pytest.mark.parametrize("labels", [LABELS, ["low", EVIL, "high"], []], ids=["two", "three", "numbers"])
def test_every_measure_stands_beside_its_interval_and_baseline(labels):
    score = made_score(labels)
    model = classification(labels) if labels else regression()
    root = Tree(model_report(model, score)).root
    header, *rows = rows_of(root, "Measures of the model, beside the best constant prediction")
    assert header == ["measure", "value", "95% interval", "baseline"]
    assert [row[0] for row in rows] == [found.name for found in score.score.measures]
    for (_, value, interval, baseline), found in zip(rows, score.score.measures, strict=True):
        assert f"{value} ({interval})" == format_estimate(found.value, found.lower, found.upper)
        assert float(baseline.replace(",", "")) == pytest.approx(found.baseline, rel=1e-3)


def test_what_noise_leaves_open_is_said():
    score = made_score([], std=400.0)
    rows = rows_of(
        Tree(model_report(regression(), score)).root, "Measures of the model, beside the best constant prediction"
    )
    assert all(found.is_open for found in score.score.measures)
    assert [row[1] for row in rows[1:]] == ["open"] * 3
    assert rows[1][2] == "no end to 1.000"


def coordinate(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def test_charts_show_the_tenths_and_the_curve():
    score = made_score(LABELS)
    text = " ".join(element.words() for element in section_of(Tree(model_report(classification(LABELS), score)).root))
    assert text.count("occurred") >= 10
    page = model_report(classification(LABELS), score)
    told = [each for each in score.score.calibration if each.share is not None]
    assert len(told) > 5
    for each in told:
        x, y = square_point(each.predicted, each.share)
        assert f'cx="{coordinate(x)}" cy="{coordinate(y)}"' in page
    assert "ROC curve" in text
    numbers = model_report(regression(), made_score([]))
    assert "ROC curve" not in numbers
    rows = rows_of(Tree(model_report(classification(["a", "b", "c"]), made_score(["a", "b", "c"]))).root, "By class")
    assert [row[0] for row in rows[1:]] == ["a", "b", "c"]


def test_the_cost_of_the_score_is_told_and_so_is_its_absence():
    score = made_score(LABELS)
    text = section_of(Tree(model_report(classification(LABELS), score)).root)[1].words()
    assert "(epsilon = 0.5, delta = 1e-06)" in text
    public = dataclasses.replace(score.score.certificate, status="not private", epsilon=float("inf"), seeded=False)
    shown = dataclasses.replace(score, score=dataclasses.replace(score.score, certificate=public))
    text = section_of(Tree(model_report(classification(LABELS), shown)).root)[1].words()
    assert "without noise and may be shown only if these data are public" in text
