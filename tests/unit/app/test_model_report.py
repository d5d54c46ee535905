"""What the report on a model says."""

import dataclasses
import hashlib
import json
import math
import re

import numpy as np
import pytest
from reported import (
    EVIL,
    QUOTED,
    Tree,
    as_published,
    certificate_of_fit,
    classification,
    drawings,
    faults_of,
    inferred,
    made_score,
    regression,
    three_classes,
    without_noise,
)

from taciturn import Budget, Certificate, FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.app.model_file import Model, shown_weights
from taciturn.app.report.model import model_report
from taciturn.charts import format_odds, format_odds_estimate, format_percent, format_ratio
from taciturn.events import GaussianEvent, PureEvent
from taciturn.privacy.certificate import certify, compose
from taciturn.privacy.claim import Release
from taciturn.tables import TableBounds, TableSchema

# ------------------------------------------------------------------ the report on a model


def table_of(root, caption):
    (table,) = [t for t in root.find("table") if t.children[0].words() == caption]
    return [[cell.words() for cell in row.children] for row in table.find("tr")]


def parts_of(root):
    """The words of the page by section."""
    found = {"": ""}
    for element in [*root.find("header")[0].children, *root.find("main")[0].children]:
        if element.name == "h2":
            found[element.words()] = ""
        found[list(found)[-1]] += element.words() + "\n"
    return found


def test_the_report_has_its_parts_in_order():
    assert list(parts_of(Tree(model_report(regression())).root))[1:] == [
        "The guarantee",
        "The model",
        "What an attacker can come to believe",
        "What was released",
        "What was assumed public",
        "How it was made",
        "The certificate",
    ]


def test_weights_are_told_with_the_change_of_the_column_that_they_are_for():
    rows = table_of(Tree(model_report(regression())).root, f"Weights of {QUOTED}")
    assert rows[0] == ["feature", "weight", "for a change of"]
    table = {name: [float(cell) for cell in cells] for name, *cells in rows[1:]}
    # The model has both regions, so that one is shown against the other.
    assert list(table) == ["age", EVIL, "region=south"]
    assert table["region=south"] == [-5.0, 1.0]
    # From 10 to 110 are 100 years for a change of two encoded units, from -0.5 to 0.5 is one.
    assert table["age"] == [20.0, 50.0]
    assert table[EVIL] == [-8.0, 0.5]


@pytest.mark.parametrize(
    "model", [regression(), classification(["no", "yes"]), classification(["low", "middle", "high"])]
)
def test_without_errors_there_is_no_effect_and_no_odds_ratio(model):
    words = parts_of(Tree(model_report(model)).root)["The model"]
    assert "These are the weights of a prediction rule, without standard errors" in words
    sentence = (
        f"(taciturn fit --inference) gives intervals and {'effects' if model.task == 'regress' else 'odds ratios'}."
    )
    assert sentence in words
    rest = words.replace(sentence, "")
    assert not any(word in rest for word in ("odds ratio", "effect", "per unit", "coefficient", "p-value", "interval"))


@pytest.mark.parametrize("unit", [0.1, 0.04, 3e-4])
def test_odds_ratios_of_columns_with_narrow_bounds_say_for_which_change(unit):
    shown, _, step = format_odds(3.0, unit).partition(" per ")
    assert unit < float(step) * 10 <= 20 * unit
    assert float(shown) == pytest.approx(math.exp(3.0 * float(step) / unit), rel=1e-3)
    estimate = format_odds_estimate(3.0, 2.0, 4.0, unit)
    assert estimate.endswith(f" per {step}")
    value, lower, upper = map(float, re.match(r"(\S+) \((\S+) to (\S+)\)", estimate).groups())
    exact = [math.exp(number * float(step) / unit) for number in (3.0, 2.0, 4.0)]
    assert [value, lower, upper] == pytest.approx(exact, rel=0.06)


@pytest.mark.parametrize("logarithm", [0.7, -0.7, 0.00431, -3e-5, 2e-9, -4e-8, 20.0, -20.0, 600.0])
def test_ratios_keep_digits_of_their_difference_from_one(logarithm):
    shown = format_ratio(logarithm)
    near = re.fullmatch(r"1([+-]\S+)", shown)
    beyond = float(near[1]) if near else float(shown.replace(",", "")) - 1.0
    assert beyond == pytest.approx(math.expm1(logarithm), rel=0.06 if near else 0.01)
    assert (format_ratio(0.0), format_ratio(1e4), format_ratio(-1e4)) == ("1", ">1e+299", "<1e-299")


def sheet_of(page):
    (sheet,) = [e for e in Tree(page).root.find("section") if e.attributes["class"] == "sheet"]
    (facts,) = sheet.find("dl")
    return sheet, {row.children[0].words(): row.children[1].words() for row in facts.children}


def test_the_page_to_sign_has_the_fields_of_the_registry():
    model = regression()
    page = model_report(model)
    sheet, facts = sheet_of(page)
    certificate = model.certificate
    assert QUOTED in sheet.words()
    (guarantee,) = Tree(page).root.find("main")[0].find("ol")
    assert guarantee.children[0].words() in sheet.words()
    # Fields of the table in docs/certificates.md, and where they are on the page.
    assert facts["Variant"].startswith("approximate differential privacy")
    assert facts["Privacy unit"] == "one record"
    assert facts["Relation"].startswith("zero-out: two data sets are neighbours when")
    assert facts["Budget"].startswith("epsilon = 1, delta = 1e-06")
    assert all(part in facts["Not protected"] for part in certificate.unprotected)
    assert facts["Assumed"] == "; ".join(certificate.assumptions)
    assert facts["Outside the proof"] == "; ".join(certificate.side_channels)
    assert "12,345 records" in facts["Data"]
    assert "from 0 to 250" in facts["Data"]
    for part in ("proved", "exact arithmetic", f"bound: {certificate.bound}", "not seeded", "true positive rates"):
        assert part in facts["How far proved"]
    releases = [item.words() for item in sheet.find("li")]
    # With the digits of the table of releases.
    assert releases == [
        "1 x Laplace noise of 10.00: the mean of the target",
        "3 x Gumbel noise of 4.000: a selected feature",
    ]
    assert facts["Command"] == model.command
    assert facts["Date of the fit"] == "not stated"
    labels = [span.words() for span in sheet.find("span")]
    assert labels[-3:] == ["Name and function", "Place and date", "Signature"]
    assert hashlib.sha256(b"the text of model.json\n").hexdigest() in facts["Files"]
    other = sheet_of(model_report(regression(certificate_of_fit(seeded=True).for_group(3))))[1]
    assert "the noise was seeded" in other["How far proved"]
    assert other["Privacy unit"] == "one record, groups of up to 3"
    gaussian = certify(
        [Release("x", "Gaussian", 10.0, GaussianEvent(10.0))], Budget(1.0, 1e-6), relation="zero-out", public={},
        seeded=False, arithmetic="exact",
    )  # fmt: skip
    stated = sheet_of(model_report(regression(gaussian)))[1]
    rho = float(re.search(r"rho = ([\d.]+)", stated["Budget"])[1])
    # A Gaussian mechanism of scale 10 has mu = 1/10 and rho = mu^2 / 2.
    assert 0.005 <= rho < 0.00501
    assert sheet_of(model_report(regression(without_noise())))[1]["Budget"] == "none"


@pytest.mark.parametrize("model", [inferred("regress"), inferred("classify"), three_classes(), regression()])
def test_the_page_to_sign_has_the_numbers_of_the_page(model):
    """Coefficients, intervals and ratios to sign are those of the tables above, in the same digits."""
    root = Tree(model_report(model)).root
    sheet, _ = sheet_of(model_report(model))
    above = {cell.words() for table in root.find("main")[0].find("table") for cell in table.find("td")}
    signed = [cell.words() for table in sheet.find("table") for cell in table.find("td") if cell.words()]
    assert len(signed) >= 7
    # The intercept of a prediction rule stands in a sentence.
    told = root.find("main")[0].words()
    assert all(text in above or f"Intercept: {text}." in told for text in signed)
    names = {row.children[0].words().removesuffix(" †") for table in sheet.find("table") for row in table.find("tr")}
    assert {"age", "(intercept)"} <= names


def test_the_page_to_sign_has_every_assumption_and_release_and_the_cost_of_the_score():
    model, score = classification(["no", "yes"]), made_score(["no", "yes"])
    certificate, other = model.certificate, score.score.certificate
    sheet, facts = sheet_of(model_report(model, score))
    words = sheet.words()
    for each in (*certificate.events, *other.events):
        assert each.subject in words
    for text in (*certificate.assumptions, *other.assumptions):
        assert text in facts["Assumed"]
    assert "…" not in words
    assert "AUC" in facts["How good it is"]
    together = compose(certificate, other)
    # More than either, and what one accountant says of both.
    assert together.epsilon > max(certificate.epsilon, other.epsilon)
    stated = float(re.match(rf"epsilon = ([\d.]+), delta = {together.delta:.6g}", facts["Budget"])[1])
    # Never less than it is, in the digits that verify and a policy print.
    assert together.epsilon <= stated <= together.epsilon * (1 + 1e-5)
    # An attacker sees the score too: rates of the model alone would be too small.
    least = format_percent(together.attack_rates().tpr[0], up=True)
    assert least != format_percent(certificate.attack_rates().tpr[0], up=True)
    assert f"of everything together, has true positive rates of at most {least}" in facts["How far proved"]
    # What is said of the proof, the seed and the account is about the score, too.
    assert not certificate.seeded
    assert "the noise was seeded: for reproduction only" in facts["How far proved"]
    paid = made_score(["no", "yes"], account_head="ab" * 32)
    entry = sheet_of(model_report(model, paid))[1]["Account entry"]
    assert entry == f"none: no account keeps count of several releases for the model; {'ab' * 32} for its score"
    alone = sheet_of(model_report(model))[1]
    assert "not seeded" in alone["How far proved"]
    assert alone["Account entry"] == "none: no account keeps count of several releases"
    assert "of everything together" not in alone["How far proved"]
    assert "How good it is" not in alone


def test_charts_of_several_classes_share_one_scale():
    model = classification(["low", "middle", "high"])
    root = Tree(model_report(model)).root
    charts = drawings(root)
    assert len(charts) == 3
    assert [h.words() for h in root.find("h3")][:3] == ["Class low", "Class middle", "Class high"]
    scales = []
    for chart, coefficients in zip(charts, shown_weights(model.estimator, model.bounds)[0], strict=True):
        widths = sorted(float(bar.attributes["width"]) for bar in chart.find("rect"))
        sizes = sorted(abs(value) for value in coefficients if value)
        scales += [width / size for width, size in zip(widths, sizes, strict=True)]
    # To a hundredth of a pixel; scales of their own would differ by a factor of 3.
    assert max(scales) == pytest.approx(min(scales), rel=0.01)
    assert "the score of one class minus that of another is the log-odds" in root.words()


def test_meaning_depends_on_the_task():
    one = parts_of(Tree(model_report(regression())).root)["The model"]
    two = parts_of(Tree(model_report(classification(["no", "yes"]))).root)["The model"]
    assert "change of the prediction, in the units of the target" in one
    # That of the first region.
    assert "Intercept: 125.0. This is the prediction of" in one
    assert "compared with a reference level (region=north)" in one
    assert "log-odds of yes against no" in two
    assert all("how much noise each of them contains" in part for part in (one, two))


def test_the_guarantee_is_three_sentences_with_the_numbers_of_the_certificate():
    model = regression(certificate_of_fit(1.0))
    (points,) = [e for e in Tree(model_report(model)).root.find("ol") if "record" in e.words()]
    first, second, third = (item.words() for item in points.children)
    assert "left out of the data" in first
    assert "2.719 (epsilon = 1), up to an additional probability of 1e-06 (delta)" in first
    twice = model.certificate.for_group(2).epsilon
    assert 1.9999 < twice <= 2.0
    assert "with 2 records the factor is 7.39 (epsilon = 2), at the same delta" in second
    assert "not facts about the population" in third
    assert "bounds file" in third
    replaced = model_report(regression(certificate_of_fit(relation="replace-one")))
    assert "been replaced, no outcome" in replaced
    assert "left out of the data, no outcome" not in replaced
    group = model_report(regression(certificate_of_fit().for_group(3)))
    assert "the records (up to 3) of any one person" in group
    assert "For a person with 6 records" in group


def test_odds_are_told_in_a_table_and_in_words():
    root = Tree(model_report(regression(certificate_of_fit(1.0)))).root
    rows = table_of(root, "What a suspicion can become")[1:]
    for (before, least, most), prior in zip(rows, (0.01, 0.1, 0.5, 0.9), strict=True):
        assert before == f"{prior:.0%}"
        low = prior / (prior + (1 - prior) * math.e)
        high = prior * math.e / (1 + prior * (math.e - 1))
        assert 0.995 * 100 * low < float(least[:-1]) <= 100 * low
        assert 100 * high <= float(most[:-1]) < 1.005 * 100 * high
    words = parts_of(root)["What an attacker can come to believe"]
    assert "by more than one percentage point with a probability of at most 0.0001." in words
    # 0.05 e + 1e-6 = 0.13592 is what epsilon and delta alone would give.
    _, *tests = table_of(root, "Tests of membership")
    assert [row[0] for row in tests] == ["0.1%", "1%", "5%", "largest difference"]
    rates = certificate_of_fit(1.0).attack_rates()
    for (_, shown), exact in zip(tests, (*rates.tpr, rates.advantage), strict=True):
        assert 100.0 * exact <= float(shown[:-1]) < 1.01 * 100.0 * exact
    assert float(tests[2][1][:-1]) <= 13.6
    pure = certify(
        [Release("x", "Laplace", 1.0, PureEvent(1.0))],
        Budget(1.0, 0.0),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    )
    assert "Delta is for what lies beyond" not in model_report(regression(pure))


def test_classes_of_truth_values_have_one_name_on_a_page():
    public = {"records": 12345, "classes": (False, True)}
    root = Tree(model_report(classification([False, True], certificate_of_fit(public=public)))).root
    assert "log-odds of True against False" in root.words()
    assert "Target: y, classes False, True." in root.words()
    listed = {row.find("dt")[0].words(): row.find("dd")[0].words() for row in root.find("dl")[0].children}
    assert listed["classes"] == "False, True"
    assert "no, yes" not in root.words()


def test_releases_facts_assumptions_and_bounds_are_listed():
    model = regression()
    root = Tree(model_report(model)).root
    assert table_of(root, "Every release, in order")[1:] == [
        ["the mean of the target", "Laplace", "1", "10.00"],
        ["a selected feature", "Gumbel", "3", "4.000"],
    ]
    both = compose(certificate_of_fit(), certificate_of_fit())
    assert len(table_of(Tree(model_report(regression(both))).root, "Every release")) == 5
    facts = {e.children[0].words(): e.children[1].words() for e in root.find("dl")[0].children}
    assert facts["records"] == "12,345"
    assert facts["nested: a list"].endswith("18, 19 and 10 more")
    public = parts_of(root)["What was assumed public"]
    assert "bounds came first" in public
    assert f"Target: {QUOTED}, numbers from 0 to 250" in public
    assert table_of(root, "All 5 columns")[1:] == [
        ["age", "numbers from 10 to 110", "50 is filled in", "bounds file"],
        [EVIL, "numbers from -0.5 to 0.5", "refused", "bounds file"],
        ["smoker", "yes or no", "refused", "bounds file"],
        ["region", "one of: north, south", "refused", "bounds file"],
        ["id", "not used", "", "bounds file"],
    ]


def test_bounds_found_privately_are_told_apart():
    model = regression()
    content = json.loads(model.bounds.to_json()) | {"found_privately": ["age"]}
    model.bounds = TableBounds.from_json(json.dumps(content))
    sources = {row[0]: row[3] for row in table_of(Tree(model_report(model)).root, "All 5 columns")}
    assert sources["age"] == "found privately"
    assert sources["smoker"] == "bounds file"


def test_the_report_says_what_happens_to_missing_values():
    raised, null = regression(), regression()
    null.estimator.invalid = "null"
    gaps = [table_of(Tree(model_report(model)).root, "All 5 columns") for model in (raised, null)]
    assert {row[2] for row in gaps[0]} - {row[2] for row in gaps[1]} == {"refused"}
    assert {row[2] for row in gaps[1]} - {row[2] for row in gaps[0]} == {"the record is left out"}


def test_the_command_and_the_whole_certificate_are_in_the_file():
    model = regression()
    blocks = [pre.words() for pre in Tree(model_report(model)).root.find("pre")]
    assert blocks[0] == model.command
    assert Certificate.from_json(blocks[1]) == model.certificate


@pytest.mark.parametrize(
    ("certificate", "banners"),
    [
        (certificate_of_fit(), []),
        (certificate_of_fit(seeded=True), ["Seeded: whoever knows the seed can undo the noise."]),
        (without_noise(), ["Not private: "]),
        (as_published(3.5), ["As published, not verified: the guarantee is the authors' claim, and epsilon = 3.5 is"]),
        (as_published("inf"), ["As published, not verified: the guarantee is the authors' claim, and nothing is pr"]),
        (as_published(None), ["As published, not verified: the guarantee is the authors' claim, and nothing is pr"]),
    ],
    ids=["proved", "seeded", "not private", "published", "refuted", "unknown"],
)
def test_warnings_stand_at_the_top(certificate, banners):
    root = Tree(model_report(regression(certificate))).root
    found = [e.words() for e in root.find("header")[0].walk() if e.attributes.get("class") == "banner"]
    assert len(found) == len(banners)
    assert all(text.startswith(start) for text, start in zip(found, banners, strict=True))


def test_a_numerical_assumption_is_named_in_the_first_line():
    assumed = dataclasses.replace(certificate_of_fit(), status="proved under a numerical assumption")
    named = "relation: zero-out, proved under a numerical assumption)"
    assert named in Tree(model_report(regression(assumed))).root.words()
    assert "numerical" not in Tree(model_report(regression())).root.words()


@pytest.mark.parametrize("certificate", [without_noise(), as_published("inf"), as_published(None)])
def test_nothing_is_drawn_where_nothing_is_proved(certificate):
    odds = parts_of(Tree(model_report(regression(certificate))).root)["What an attacker can come to believe"]
    assert "There is no proved limit" in odds
    assert "13.6%" not in odds


def test_odds_of_a_published_claim_are_those_that_are_proved():
    root = Tree(model_report(regression(as_published(3.5)))).root
    assert "at epsilon = 3.5" in parts_of(root)["What an attacker can come to believe"]


def test_the_same_model_gives_the_same_report():
    assert model_report(regression()) == model_report(regression())
    assert model_report(regression()) != model_report(regression(intercept_=119.0))


@pytest.mark.parametrize("stored", ["dense", "sparse"])
@pytest.mark.parametrize("kind", [FrankWolfeRegressor, FrankWolfeClassifier])
def test_a_model_that_was_really_fitted_is_reported(kind, stored):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    regress = kind is FrankWolfeRegressor
    stated = "lower = -1\nupper = 1" if regress else "classes = [0, 1]"
    bounds = TableBounds.from_toml(f'[target]\nname = "y"\n{stated}\n[defaults]\nlower = -10\nupper = 10')
    schema = TableSchema(("a", "b", "y"), ("number",) * 3)
    details = {"epsilon": 5.0, "n_steps": 20, "random_state": 0} | ({} if regress else {"classes": (0, 1)})
    estimator = kind(**details).fit(X, X[:, 0] if regress else X[:, 0] > 0)
    fitted = dict(zip("ab", estimator.coef_.ravel(), strict=True))
    model = Model(bounds.for_table(schema), estimator.sparsify() if stored == "sparse" else estimator, "the command")
    page = model_report(model)
    assert faults_of(page) == []
    caption = "Weights of y" if regress else "Weights of y (1 against 0)"
    rows = table_of(Tree(page).root, caption)[1:]
    assert {row[0]: float(row[1]) for row in rows} == pytest.approx({k: v for k, v in fitted.items() if v}, rel=1e-3)
    assert {float(row[2]) for row in rows} == {10.0}


def test_tables_of_wide_models_are_cut():
    names = [f"c{i}" for i in range(1500)]
    bounds = TableBounds.from_toml('[target]\nname = "y"\nlower = 0\nupper = 1\n[defaults]\nlower = 0\nupper = 4')
    schema = TableSchema((*names, "y"), ("number",) * 1501)
    model = regression(coef_=np.arange(1.0, 1501.0))
    model.bounds, model.feature_names = bounds.for_table(schema), names
    page = model_report(model)
    root = Tree(page).root
    rows = table_of(root, "Weights of y: the largest 1,000 of 1,500, the model file has all")
    assert len(rows) == 1001
    assert rows[1] == ["c1499", "1,500", "2.000"]
    assert len(table_of(root, "1,000 of 1,500 columns")) == 1001
    assert "The 40 largest of 1,500 weights" in page
