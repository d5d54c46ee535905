"""The commands plan and budget plan, and what was planned beside what was obtained."""

import json
import re

import numpy as np
import pytest
from commands import BOUNDS, csv_text, one_sentence, run, write_patients

from taciturn import Account
from taciturn.app.plan_file import PlanFile

EXPECTED = """
[plan]
correlation = [["age", "dose", 0.3]]
[plan.target]
share = 0.3
[plan.columns.age]
mean = 55
spread = 14
[plan.columns.dose]
mean = 0.0
spread = 0.2
[plan.columns.smoker]
share = 0.2
[plan.columns.region.shares]
hill = 0.7
[plan.effects]
age = 0.02
smoker = 0.4
"""
NUMBERS = BOUNDS.replace('\n[columns.region]\ntype = "category"\ncategories = ["hill", "dale"]\n', "")
NUMBERS_EXPECTED = re.sub(r"\[plan.columns.region.shares\]\nhill = 0.7\n", "", EXPECTED)


def write_bounds(folder, text=NUMBERS + NUMBERS_EXPECTED):
    (folder / "bounds.toml").write_text(text, encoding="utf-8")


def write_expected(folder, n_rows):
    """A table of the law that the plan expects."""
    rng = np.random.default_rng(0)
    age, dose = rng.multivariate_normal([55, 0], [[14**2, 0.3 * 14 * 0.2], [0.3 * 14 * 0.2, 0.2**2]], n_rows).T
    smoker = rng.random(n_rows) < 0.2
    ill = rng.random(n_rows) < 1 / (1 + np.exp(0.95 - 0.02 * (age - 55) - 0.4 * smoker))
    cells = zip(age.round(2).tolist(), dose.round(4).tolist(), smoker.tolist(), ill.tolist(), strict=True)
    rows = [[a, d, str(s).lower(), "hill", "yes" if i else "no"] for a, d, s, i in cells]
    (folder / "patients.csv").write_text(csv_text(rows), encoding="utf-8")


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    write_bounds(folder)
    done = run("plan", "--bounds", "bounds.toml", "--n", 20_000, "--epsilon", "0.2,2", "--nonzero", "all",
               "--power", "smoker=1.3", "--target-width", "age=0.001", "--simulate", 3, cwd=folder)  # fmt: skip
    assert done.code == 0, done.err
    return folder, done


def test_a_plan_is_one_screen_and_says_what_it_assumes(planned):
    _, done = planned
    lines = done.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for words in ("ε 0.2", "ε 2", "smoker", "get an interval", "AUC", "records", "nothing private was read or spent"):
        assert words in done.out
    assert "spread evenly" not in done.out


def test_the_files_hold_what_the_screen_shows(planned):
    folder, _ = planned
    plan = PlanFile.from_json((folder / "plan" / "plan.json").read_text(encoding="utf-8"))
    assert [fit.epsilon for fit in plan.fits] == [0.2, 2.0]
    tight, loose = (fit.feature("smoker") for fit in plan.fits)
    assert tight.std_error > loose.std_error > 0.0
    assert tight.width[1] < tight.width[0] < tight.width[2]
    assert plan.fits[0].measures["score"][0] > 0.5
    page = (folder / "plan" / "plan.html").read_text(encoding="utf-8")
    assert page.count('data-choice="') == 2
    # It loads nothing.
    assert not re.findall(r"(?:src|href)=\"(?!#|data:)", page)
    assert json.loads((folder / "plan" / "plan.json").read_text())["format"] == "taciturn plan"


def test_every_option_reaches_the_model_that_is_forecast(tmp_path):
    write_bounds(tmp_path)
    wide = ("plan", "--bounds", "bounds.toml", "--n", 20_000, "--epsilon", "1", "-o")
    options = ("--relation", "add-remove", "--delta", 1e-9, "--columns", "age,dose")
    for name, more in (("usual", ("--nonzero", "all")), ("other", (*options, "--nonzero", "all"))):
        assert run(*wide, name, *more, cwd=tmp_path).code == 0
    usual, other = (PlanFile.from_json((tmp_path / name / "plan.json").read_text()) for name in ("usual", "other"))
    assert (usual.relation, usual.delta, usual.n) == ("zero-out", 1e-6, 20_000)
    assert (other.relation, other.delta) == ("add-remove", 1e-9)
    # A column that the model does not have has no interval.
    assert np.isfinite(usual.fits[0].feature("smoker").std_error)
    assert np.isnan(other.fits[0].feature("smoker").std_error)


def test_wishes_name_an_epsilon_and_a_number_of_records(planned):
    _, done = planned
    words = " ".join(done.out.split())
    assert re.search(r"[Aa] ratio of 1.3 of smoker, found with 80 % power, needs .*[\d,]+ records at epsilon", words)
    assert "An interval of age no wider than 0.001" in words


def test_a_public_table_may_stand_for_the_private_one(tmp_path):
    write_patients(tmp_path, 1500)
    (tmp_path / "bounds.toml").write_text(BOUNDS)
    done = run("plan", "--bounds", "bounds.toml", "--n", 5000, "--epsilon", "1", "--like", "patients.csv", "--columns",
               "age,dose", cwd=tmp_path)  # fmt: skip
    assert done.code == 0, done.err
    assert "1,500 rows of the public table" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--epsilon", "a"), "epsilon='a': expected"),
        (("--epsilon", "1,50"), "epsilon=50.0"),
        (("--power", "smoker"), "power='smoker': expected NAME=NUMBER"),
        (("--power", "smoker=1"), "a ratio other than 1"),
        (("--target-width", "weight=1"), "'weight': expected the name of a feature"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_sentence(arguments, said, tmp_path):
    write_bounds(tmp_path)
    done = run("plan", "--bounds", "bounds.toml", "--n", 500, "--epsilon", "1", *arguments, cwd=tmp_path)
    assert done.code == 1
    assert said in one_sentence(done)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[plan.columns.weight]\nmean = 3", "weight"),
        ("[plan]\nshare = 1", "plan"),
        ('[plan]\ncorrelation = [["age", "dose"]]', "lists of two columns"),
        ('[plan.effects]\nage = "x"', "numbers"),
        ("[plan.columns.age]\nmean = 300", "between the bounds"),
    ],
)
def test_expectations_are_checked(text, said, tmp_path):
    write_bounds(tmp_path, f"{NUMBERS}\n{text}\n")
    done = run("plan", "--bounds", "bounds.toml", "--n", 500, "--epsilon", "1", cwd=tmp_path)
    assert done.code == 1
    assert said in one_sentence(done)


def test_a_fit_does_not_look_at_expectations_and_its_report_shows_them(planned, tmp_path):
    folder, _ = planned
    write_expected(tmp_path, 9000)
    fits = []
    for text in (NUMBERS, NUMBERS + NUMBERS_EXPECTED):
        write_bounds(tmp_path, text + '[columns.region]\ntype = "ignore"\n')
        name = f"model{len(fits)}"
        done = run("fit", "patients.csv", "--bounds", "bounds.toml", "--epsilon", 2, "--nonzero", "all", "--inference",
                   "--seed", 1, "-o", name, cwd=tmp_path)  # fmt: skip
        assert done.code == 0, done.err
        fits.append(json.loads((tmp_path / name / "model.json").read_text()))
        del fits[-1]["command"]
    assert fits[0] == fits[1]
    plan = folder / "plan" / "plan.json"
    assert run("report", "model1", "-o", "alone.html", cwd=tmp_path).code == 0
    assert "Planned and obtained" not in (tmp_path / "alone.html").read_text()
    for place in (("--plan", plan), ()):
        # Given, or beside the model.
        assert run("report", "model1", *place, "-o", "report.html", cwd=tmp_path).code == 0
        page = (tmp_path / "report.html").read_text()
        assert "20,000 records were planned, the model was fitted to 9,000" in page
        obtained = re.search(
            r"Standard errors, planned and obtained</caption>.*?smoker</th>(.*?)</tr>", page, re.DOTALL
        )
        numbers = [float(number) for number in re.findall(r">([\d.]+)</td>", obtained[1])]
        expected = PlanFile.from_json(plan.read_text()).fits[1].feature("smoker").std_error
        assert numbers[1] == pytest.approx(expected, rel=0.01)
        # A fit of half of the records has errors that are larger.
        assert numbers[2] > 1.2 * numbers[1]
        (tmp_path / "model1" / "plan.json").write_text(plan.read_text())
    (tmp_path / "other.json").write_text(plan.read_text().replace('"target": "ill"', '"target": "well"'))
    wrong = run("report", "model1", "--plan", "other.json", "-o", "report.html", cwd=tmp_path)
    assert "a plan for the target of this model" in one_sentence(wrong)


def test_budget_plan_splits_a_total_and_reserves_it(tmp_path):
    write_bounds(tmp_path)
    where = "sqlite:///study.db#study"
    run("budget", "create", where, "--epsilon", 3, "--delta", 1e-5, "--records", 20_000, cwd=tmp_path)
    steps = ("--steps", "select=0.3,fit=0.6")
    looked = run("budget", "plan", where, *steps, "--bounds", "bounds.toml", cwd=tmp_path)
    assert looked.code == 0, looked.err
    assert "nothing was reserved" in looked.out
    account = Account(f"sqlite:///{tmp_path / 'study.db'}", "study")
    assert account.history() == []
    done = run("budget", "plan", where, *steps, "--reserve", cwd=tmp_path)
    assert done.code == 0, done.err
    assert [charge.what for charge in account.history()] == ["account study/select", "account study/fit"]
    said = float(re.search(r"study/fit, fits of epsilon ([\d.]+)", done.out)[1])
    part = Account(account.url, "study/fit")
    assert part.remaining_epsilon() == pytest.approx(said, rel=0.01)
    assert run("budget", "plan", where, *steps, "--reserve", cwd=tmp_path).code == 1


def test_budget_plan_needs_a_total(tmp_path):
    done = run("budget", "plan", "--steps", "fit=1", cwd=tmp_path)
    assert done.code == 1
    assert "an account, or --epsilon and --records" in one_sentence(done)
    done = run("budget", "plan", "--steps", "fit=0.7,score=0.7", "--epsilon", 1, "--records", 500, cwd=tmp_path)
    assert "add up to at most 1" in one_sentence(done)
