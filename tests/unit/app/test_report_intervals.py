"""Standard errors in a report: numbers by the formulas of a textbook, and points and intervals where they belong."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from reported import (
    EVIL,
    QUOTED,
    Tree,
    drawings,
    errors_of,
    faults_of,
    inferred,
    no_errors,
    regression,
    tables,
    three_classes,
)
from scipy.stats import norm

from taciturn.app.cli.show import print_model
from taciturn.app.report.model import model_report
from taciturn.charts import Estimate, find_reach, forest_chart
from taciturn.core.errors import visible

NAMES = {0: "age", 1: EVIL, 3: "region=north", 4: "region=south"}
# Half the width of the bounds in reported.py.
UNITS = {"age": 50.0, EVIL: 0.5, "region=north": 1.0, "region=south": 1.0}
SUBJECTS = {"regress": QUOTED, "classify": "y (yes against no)"}


def table_of(root, start):
    (table,) = tables(root, start)
    header, *rows = [[cell.words() for cell in row.children] for row in table.find("tr")]
    return header, {row[0]: row[1:] for row in rows}


def number(text):
    return float(text.replace(",", ""))


def ends(text):
    lower, upper = text.split(" to ")
    return [number(lower), number(upper)]


def by_hand(model):
    """Coefficient, errors, interval and p of every row, and p adjusted by Benjamini and Hochberg, from definitions."""
    found = model.estimator.inference_
    z = norm.ppf(1 - (1 - found.confidence_level) / 2)
    rows = {}
    for k, (place, name) in enumerate(NAMES.items()):
        rows[name] = (float(np.ravel(model.estimator.coef_)[place]), found.sampling[0, k], found.privacy[0, k])
    intercept = float(np.ravel(model.estimator.intercept_)[0])
    rows["(intercept)"] = (intercept, found.sampling[0, -1], found.privacy[0, -1])
    told = {}
    for name, (value, sampling, privacy) in rows.items():
        error = math.sqrt(sampling**2 + privacy**2)
        told[name] = {
            "values": [value, error, sampling, privacy],
            "interval": [value - z * error, value + z * error],
            "p": 2 * (1 - norm.cdf(abs(value) / error)),
        }
    tested = sorted((told[name]["p"], name) for name in NAMES.values())
    for rank, (_, name) in enumerate(tested, start=1):
        # The smallest over all larger p-values.
        told[name]["adjusted"] = min(min(1.0, p * len(tested) / r) for r, (p, _) in enumerate(tested, 1) if r >= rank)
    return told


def p_agrees(text, p):
    return p < 0.001 if text == "<0.001" else abs(float(text) - p) <= 0.0005001


@pytest.mark.parametrize("task", ["regress", "classify"])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_table_of_errors_is_what_the_formulas_say(task, level):
    model = inferred(task, confidence_level=level)
    page = model_report(model)
    assert faults_of(page) == []
    header, rows = table_of(Tree(page).root, f"Coefficients of {SUBJECTS[task]} and their errors, from 12,345 records")
    assert header == [
        "feature", "coefficient", "standard error", "of which sampling", "of which privacy",
        f"{100 * level:g}% interval", "p", "p (BH)",
    ]  # fmt: skip
    # The largest coefficient first, the intercept last.
    assert list(rows) == ["age", EVIL, "region=north", "region=south", "(intercept)"]
    for name, told in by_hand(model).items():
        *values, interval, p, adjusted = rows[name]
        unit = UNITS.get(name, 1.0)
        low, high = (end / unit for end in told["interval"])
        # Numbers have as many decimals as show two digits of the error.
        room = 0.03 * (high - low)
        assert [number(text) for text in values] == pytest.approx([each / unit for each in told["values"]], abs=room)
        assert ends(interval) == pytest.approx([low, high], abs=room)
        decimals = {len(text.partition(".")[2]) for text in (*values, *interval.split(" to "))}
        assert len(decimals) == 1
        assert p_agrees(p, told["p"])
        assert p_agrees(adjusted, told["adjusted"]) if name != "(intercept)" else adjusted == ""


def test_ratios_are_told_per_unit_of_the_column():
    model = inferred("classify")
    header, rows = table_of(Tree(model_report(model)).root, f"Odds ratios of {SUBJECTS['classify']} per unit")
    assert header == ["feature", "odds ratio per unit", "95% interval of the odds ratio"]
    assert list(rows) == ["age", EVIL, "region=north", "region=south"]
    for name, told in by_hand(model).items():
        if name == "(intercept)":
            continue
        ratios = [math.exp(end / UNITS[name]) for end in (told["values"][0], *told["interval"])]
        room = 0.05 * (ratios[2] - ratios[1])
        assert [number(rows[name][0]), *ends(rows[name][1])] == pytest.approx(ratios, abs=room)


@pytest.mark.parametrize("model", [inferred("regress"), inferred("classify"), three_classes()])
def test_the_forest_plot_and_the_table_have_the_same_numbers(model):
    root = Tree(model_report(model)).root
    what = "Odds ratios of" if model.task == "classify" else "Coefficients of"
    captions = tables(root, what)
    charts = [svg for svg in drawings(root) if svg.find("circle")]
    assert len(charts) == len(captions)
    for chart, table in zip(charts, captions, strict=True):
        titles = {group.find("title")[0].words() for group in chart.find("g")}
        for row in table.find("tr")[1:]:
            name, *cells = [cell.words() for cell in row.children]
            interval = cells[1] if len(cells) == 2 else cells[4]
            if not name.startswith("(intercept)"):
                expected = f"{name}: {cells[0]} ({interval})" if interval else f"{name}: {cells[0]}"
                assert expected.replace(" †", "") in titles


@pytest.mark.parametrize(("split", "words"), [(True, "chosen on the other half of the records"), (False, "were fixed")])
def test_the_page_says_what_the_intervals_cover(split, words):
    text = Tree(model_report(inferred(split=split))).root.words()
    assert words in text
    assert "The 95% confidence intervals include the sampling error and the noise for privacy" in text
    assert "They do not cover columns that were left out, values beyond the bounds" in text
    assert "prediction rule" not in text


def test_without_errors_the_reason_stands_beside_the_bars():
    page = model_report(no_errors())
    assert faults_of(page) == []
    root = Tree(page).root
    assert f"No standard errors: the matrix is not clear of its noise {EVIL}." in root.words()
    assert "The weights are those of the half that chose the columns" in root.words()
    header, rows = table_of(root, f"Weights of {QUOTED}")
    assert header == ["feature", "weight", "for a change of"]
    assert [number(cell) for cell in rows["age"]] == [1.5, 50.0]
    # Of four weights one is that of the reference level, which has no bar.
    assert [len(svg.find("rect")) for svg in (*drawings(root), *drawings(root, "narrow"))] == [3, 3]
    assert not root.find("circle")
    assert "NaN" not in page.lower()


def test_a_model_without_inference_says_how_to_get_intervals_and_has_none():
    page = model_report(regression())
    words = Tree(page).root.find("main")[0].words()
    assert "interval" not in words.replace("gives intervals and effects", "")
    assert "standard error" not in words.replace("without standard errors", "")
    assert "These are the weights of a prediction rule" in words


def test_a_model_of_its_intercept_alone_has_a_table_and_no_chart():
    model = inferred(coef=np.zeros(5))
    model.estimator.inference_ = errors_of(np.array([], dtype=int), [[0.3]], [[0.4]])
    page = model_report(model)
    assert faults_of(page) == []
    _, rows = table_of(Tree(page).root, "Coefficients of")
    # Of its error 0.4 is noise, and it is 0.25.
    assert list(rows) == ["(intercept) †"]
    assert not Tree(page).root.find("circle")


# ------------------------------------------------------------------ the chart


def chart_of(page, kind="wide"):
    (svg,) = [svg for svg in drawings(Tree(page).root, kind) if svg.find("circle")]
    return svg


def drawn(svg):
    """By title: the place of the point, both ends, those of the thick part, filled or not, and cut ends."""
    rows = {}
    for group in svg.find("g"):
        (circle,) = group.find("circle")
        spans = {line.attributes["class"]: line.attributes for line in group.find("line")}
        rows[group.find("title")[0].words()] = (
            float(circle.attributes["cx"]),
            *(float(spans["interval"][end]) for end in ("x1", "x2")),
            *(float(spans["sampling"][end]) for end in ("x1", "x2")),
            "clear" in circle.attributes["class"],
            sum("cut" in path.attributes["class"] for path in group.find("path")),
        )
    return rows


def ticks(svg):
    lines = [line for line in svg.find("line") if line.attributes["class"] in ("axis", "grid")]
    labels = [t.words() for t in svg.children if t.name == "text"][: len(lines)]
    return {float(label): float(line.attributes["x1"]) for label, line in zip(labels, lines, strict=True)}


@pytest.mark.parametrize("kind", ["wide", "narrow"])
@pytest.mark.parametrize("task", ["regress", "classify"])
def test_points_and_intervals_are_to_scale(task, kind):
    model = inferred(task)
    svg = chart_of(model_report(model), kind)
    rows, axis = list(drawn(svg).values()), ticks(svg)
    (reference,) = [float(line.attributes["x1"]) for line in svg.find("line") if line.attributes["class"] == "axis"]
    assert axis[1.0 if task == "classify" else 0.0] == reference
    # Two ticks make the scale: linear in the coefficient, which is logarithmic in the odds ratio.
    first, last = min(axis), max(axis)
    position = math.log if task == "classify" else float
    scale = (axis[last] - axis[first]) / (position(last) - position(first))
    assert all(abs(x - reference - scale * position(tick)) < 0.05 for tick, x in axis.items())
    z = norm.ppf(0.975)
    told = by_hand(model)
    order = ["age", EVIL, "region=north", "region=south"]
    for name, (point, left, right, inner_left, inner_right, filled, cut) in zip(order, rows, strict=True):
        value, _, sampling, _ = (number / UNITS[name] for number in told[name]["values"])
        lower, upper = (number / UNITS[name] for number in told[name]["interval"])
        expected = [value, lower, upper, value - z * sampling, value + z * sampling]
        places = [(x - reference) / scale for x in (point, left, right, inner_left, inner_right)]
        n_seen = 5 if not cut else 1
        assert places[:n_seen] == pytest.approx(expected[:n_seen], abs=0.02 / scale + 1e-3)
        assert filled == (lower > 0 or upper < 0)
    assert sum(not row[-1] for row in rows) >= 2


def test_a_chart_that_lies_is_caught():
    svg = chart_of(model_report(inferred("classify")))
    honest = drawn(svg)
    axis = ticks(svg)
    # A linear axis of odds ratios would not have equal ratios at equal distances.
    assert (axis[2.0] - axis[1.0]) == pytest.approx(axis[1.0] - axis[0.5], abs=0.02)
    assert any(row[5] for row in honest.values())
    assert not all(row[5] for row in honest.values())


def test_titles_tell_the_odds_ratio_and_its_interval_in_full():
    model = inferred("classify")
    titles = list(drawn(chart_of(model_report(model))))
    assert titles[1].startswith(f"{EVIL}: ")
    for (name, told), title in zip(list(by_hand(model).items())[:4], titles, strict=True):
        value, lower, upper = map(
            float, re.match(r"(\S+) \((\S+) to (\S+)\)$", title.removeprefix(f"{name}: ")).groups()
        )
        expected = [math.exp(x / UNITS[name]) for x in (told["values"][0], *told["interval"])]
        # Two digits of the shorter side of the interval.
        assert [value, lower, upper] == pytest.approx(expected, abs=0.051 * (expected[0] - expected[1]))


def test_the_chart_has_words_for_those_who_do_not_see_it():
    svg = chart_of(model_report(inferred("classify")))
    named = {e.name: e.words() for e in svg.children if e.name in ("title", "desc")}
    assert named["title"] == "Odds ratios with intervals: y (yes against no)"
    assert "a line at 1, no difference in odds" in named["desc"]
    assert f"2 of 4 intervals leave out 1, no difference in odds: age, {EVIL}." in named["desc"]


def estimates(n=6, **widest):
    made = [Estimate(f"n{i}", 1.0 - 0.3 * i, 0.5 - 0.3 * i, 1.5 - 0.3 * i, 0.2) for i in range(n)]
    return [*made, Estimate("wide", 0.1, widest.get("lower", -1e3), widest.get("upper", 1e3), 0.2)]


@pytest.mark.parametrize("odds", [False, True])
def test_an_interval_much_wider_than_others_is_cut_with_arrows(odds):
    low, high = find_reach(estimates())
    assert -4 < low < -1
    assert 1.5 <= high < 4
    ratio = "odds ratio" if odds else ""
    svg = Tree(f"<svg>{forest_chart(estimates(), 'x', ratio=ratio).body}</svg>").root.find("svg")[0]
    rows = drawn(svg)
    *others, wide = rows.values()
    assert all(row[6] == 0 for row in others)
    assert wide[6] == 2
    assert all(180.0 <= x <= 455.0 for row in rows.values() for x in row[:5])
    # The numbers are not cut.
    assert ("(-1000 to 1000)" if not odds else "(0 to 4.6e+299)") in list(rows)[-1]


def test_an_interval_a_little_wider_than_others_is_drawn_whole(monkeypatch):
    *narrow, wide = estimates(lower=-0.5, upper=2.6)
    tallest = max(estimate.value for estimate in narrow) + 3.0 * 0.5
    assert tallest < wide.upper
    assert find_reach([*narrow, wide])[1] == wide.upper
    drawing = forest_chart([*narrow, wide], "x")
    assert "cut" not in drawing.body
    # The names have room beside their numbers in a narrow window, too.
    named = forest_chart([Estimate("conditions (per 10)", 0.573, 0.499, 0.648, 0.06)], "x", ratio="odds ratio").narrow
    assert ">conditions (per 10)</text>" in named.body
    monkeypatch.setattr("taciturn.charts._LEAST_CUT", 1.0)
    assert "cut" in forest_chart([*narrow, wide], "x").body


def test_the_caption_explains_arrows_where_there_are_any():
    arrows = "An arrow marks an interval that goes on beyond the axis"
    wide = errors_of([0, 1, 3, 4], [np.array([0.3, 0.12, 0.4, 40.0, 0.05])], [np.array([0.4, 0.05, 0.3, 0.0, 0.12])])
    model = inferred()
    for found, cut in ((model.estimator.inference_, False), (wide, True)):
        model.estimator.inference_ = found
        page = model_report(model)
        assert ('class="interval cut"' in page) == (arrows in Tree(page).root.words()) == cut


@pytest.mark.parametrize("reach", [(-0.05, 0.02), (-0.3, 0.1), (0.0, 1.4), (-3.0, 1.0), (-8.0, 9.0), (-500.0, 3.0)])
def test_axes_of_odds_ratios_have_a_few_round_numbers_with_one(reach):
    ends_of_axis = [Estimate("a", end, end - 1e-9 * (end > 0), end + 1e-9 * (end < 0), 0.0) for end in reach]
    svg = Tree(f"<svg>{forest_chart(ends_of_axis, 'x', ratio='odds ratio').body}</svg>").root.find("svg")[0]
    axis = ticks(svg)
    assert 1.0 in axis
    assert 3 <= len(axis) <= 9
    places = sorted(axis.values())
    assert min(b - a for a, b in itertools.pairwise(places)) > 14.0
    assert all(180.0 <= x <= 455.0 for x in places)


def test_hostile_numbers_do_not_break_the_page():
    for coefficient in (1e300, -1e300, 800.0, 1e-300):
        model = inferred("classify", coef=np.array([coefficient, -0.75, 0.0, 0.4, -0.01]))
        assert faults_of(model_report(model)) == []
    huge = np.full((1, 5), 1e200)
    assert faults_of(model_report(inferred(std_error=huge * math.sqrt(2), sampling=huge, privacy=huge))) == []


def test_names_that_reverse_text_are_escaped():
    drawing = forest_chart([Estimate("a\u202eb", 1.0, 0.5, 1.5, 0.2)], "x")
    assert "\u202e" not in str(drawing.body)
    assert visible("a\u202eb") in str(drawing.body)


# ------------------------------------------------------------------ effects for a stated change


def per_ten(model):
    """The model, with effects of the age per 10 years and the second region as the reference."""
    columns = dict(model.bounds.columns)
    columns["age"] = replace(columns["age"], per=10)
    columns["region"] = replace(columns["region"], reference="south")
    return replace(model, bounds=replace(model.bounds, columns=columns))


@pytest.mark.parametrize("task", ["regress", "classify"])
def test_effects_are_those_of_the_stated_change_wherever_they_are_shown(task, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    model, told = per_ten(inferred(task)), by_hand(inferred(task))
    shares = {name: (10 if name == "age" else 1) / unit for name, unit in UNITS.items()}
    expected = {
        name: [share * end for end in (told[name]["values"][0], *told[name]["interval"])]
        for name, share in shares.items()
    }
    shown = math.exp if task == "classify" else float
    page = model_report(model)
    assert faults_of(page) == []
    root = Tree(page).root
    # The tables.
    _, rows = table_of(root, "Coefficients of")
    assert list(rows) == ["age (per 10)", EVIL, "region=north", "region=south", "(intercept)"]
    for name, cells in zip(UNITS, rows.values(), strict=False):
        room = 0.05 * (expected[name][2] - expected[name][1])
        assert [number(cells[0]), *ends(cells[4])] == pytest.approx(expected[name], abs=room)
    if task == "classify":
        _, rows = table_of(root, "Odds ratios of")
        for name, cells in zip(UNITS, rows.values(), strict=True):
            ratios = [math.exp(end) for end in expected[name]]
            assert [number(cells[0]), *ends(cells[1])] == pytest.approx(ratios, abs=0.05 * (ratios[2] - ratios[1]))
    # The forest plot: the stated change where there is one, and one unit elsewhere.
    titles = [each.words() for each in drawings(root)[0].find("title")]
    for name, label in (("age", "age (per 10)"), ("region=north", "region=north")):
        (title,) = [each for each in titles if each.startswith(f"{label}: ")]
        numbers = [float(text) for text in re.findall(r"-?[\d.]+", title.removeprefix(label))]
        ratios = [shown(end) for end in expected[name]]
        assert numbers == pytest.approx(ratios, abs=0.05 * (ratios[2] - ratios[1]))
    # The data frame, with the unit beside it.
    frame = model.summary().to_frame()
    assert frame["unit"].tolist() == [10.0, 1.0, 1.0, 1.0, 1.0]
    assert frame["effect per unit"].tolist()[:4] == pytest.approx([each[0] for each in expected.values()])
    assert ("odds ratio" in frame) == (task == "classify")
    if task == "classify":
        assert frame["odds ratio"]["age"] == pytest.approx(math.exp(expected["age"][0]))
    assert "unit" not in inferred(task).summary().to_frame()
    assert re.search(r"^age \(per 10\) ", str(model.summary()), flags=re.MULTILINE)
    # The screen.
    print_model(model)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ age")]
    cell = line.strip("│ ").split("│")[-1].strip()
    ratios = [shown(end) for end in expected["age"]]
    assert cell.endswith(" per 10")
    numbers = [float(text) for text in re.findall(r"-?[\d.]+", cell.removesuffix(" per 10"))]
    assert numbers == pytest.approx(ratios, abs=0.05 * (ratios[2] - ratios[1]))
    # What the owner stated.
    words = root.words()
    assert "effects are for a change by 10" in words
    assert "compared with south" in words


def test_weights_are_those_of_the_stated_change_too(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    model = per_ten(no_errors())
    _, rows = table_of(Tree(model_report(model)).root, f"Weights of {QUOTED}")
    assert [number(cell) for cell in rows["age (per 10)"]] == [1.5 * 10 / 50, 10.0]
    assert [number(cell) for cell in rows[EVIL]] == [-0.75, 0.5]
    print_model(model)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│ age")]
    assert [float(cell) for cell in line.strip("│").split("│")[1:]] == [0.3, 10.0]
