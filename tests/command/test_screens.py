"""What fits on a screen of 24 lines and 80 columns, and what a certificate says by itself."""

import json
import math
import re
import shutil

import numpy as np
import pytest
from commands import csv_text, one_sentence, run

from taciturn.app.cli.show import ROWS_OF_A_SCREEN
from taciturn.app.model_file import Model

LINES, COLUMNS = 24, 80
LONG = "systolic blood pressure after ten minutes of rest, sitting, left arm, mean of three readings, visit "


def lines_on_a_screen(out, columns=COLUMNS):
    """How many lines a terminal of so many columns shows; it breaks what is longer."""
    return sum(max(1, math.ceil(len(line) / columns)) for line in out.splitlines())


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Tables with targets of two and three classes and a number, and columns with short and with long names."""
    folder = tmp_path_factory.mktemp("screens")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 25))
    score = X[:, :10] @ np.linspace(1.0, 0.5, 10) + 0.3 * rng.normal(size=3000)
    targets = {
        "two": (np.where(score + rng.logistic(size=3000) > 0, "yes", "no"), 'classes = ["no", "yes"]'),
        "certain": (np.where(score > 0, "yes", "no"), 'classes = ["no", "yes"]'),
        "three": (np.digitize(score, (-0.5, 0.5)), "classes = [0, 1, 2]"),
        "many": (np.digitize(score, np.linspace(-1.5, 1.5, 11)), f"classes = {list(range(12))}"),
        "number": (np.clip(score, -9, 9).round(3), "lower = -9\nupper = 9"),
    }
    for kind, names in (("short", [f"c{j}" for j in range(25)]), ("long", [f"{LONG}{j:02}" for j in range(25)])):
        columns = "".join(f"[columns.{json.dumps(name)}]\ntype = 'number'\nlower = -50\nupper = 50\n" for name in names)
        for target, (y, stated) in targets.items():
            rows = [[*row, label] for row, label in zip((50 * X).round(3).tolist(), y.tolist(), strict=True)]
            quoted = [json.dumps(name) for name in names]
            text = csv_text(rows, header=[*quoted, target])
            (folder / f"{target}-{kind}.csv").write_text(text, encoding="utf-8")
            described = f'[target]\nname = "{target}"\n{stated}\n{columns}'
            (folder / f"{target}-{kind}.toml").write_text(described, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def fits(tables):
    """Runs by name, on a screen of 80 columns."""
    quoted = ",".join(f'"{LONG}{j:02}"' for j in range(10))
    asked = {
        "two": ("two-short", "--nonzero", "10"),
        "three": ("three-short", "--nonzero", "10"),
        "number": ("number-short", "--nonzero", "10"),
        "more than fit": ("two-short", "--nonzero", "all"),
        "many classes": ("many-short", "--nonzero", "10"),
        "long names": ("two-long", "--nonzero", "10"),
        "long names, three": ("three-long", "--nonzero", "all"),
        "inference": ("two-short", "--inference", "--columns", ",".join(f"c{j}" for j in range(10))),
        "inference, long names": ("number-long", "--inference", "--columns", quoted),
        "no intervals": ("certain-short", "--inference", "--nonzero", "10"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(COLUMNS))
        runs = {}
        for name, (table, *options) in asked.items():
            budget = () if "--epsilon" in options else ("--epsilon", "20")
            fit = ("fit", f"{table}.csv", "--bounds", f"{table}.toml", *budget, *options, "--seed", "0")
            runs[name] = fit, run(*fit, "-o", name, cwd=tables)
            assert runs[name][1].code == 0, runs[name]
    return runs


NAMES = [
    "two", "three", "number", "more than fit", "many classes", "long names", "long names, three", "inference",
    "inference, long names", "no intervals",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_prints_one_screen(fits, name):
    done = fits[name][1]
    assert lines_on_a_screen(done.out) <= LINES, done.out
    # Tables are never broken by the terminal.
    assert all(len(line) <= COLUMNS for line in done.out.splitlines() if line[:1] in "┏┃┡│└")
    assert re.search(r"^guarantee: epsilon = .*, delta = 1e-06 for one record \(zero-out\), proved", done.out, re.M)
    assert f"written: {name}: model.json, certificate.json, report.html" in done.out
    assert done.out.count("epsilon = ") == 1


def cells(out):
    """The cells of all rows by the name in the first column."""
    return {
        row[0].strip(): [cell.strip() for cell in row[1:]]
        for row in (line.strip("│").split("│") for line in out.splitlines() if line.startswith("│"))
    }


def fitted(tables, name):
    return Model.from_json((tables / name / "model.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["two", "number", "three"])
def test_weights_are_told_with_the_change_that_they_are_for(fits, tables, name):
    model, out = fitted(tables, name), fits[name][1].out
    rows = cells(out)
    coefficients = np.atleast_2d(model.estimator.coef_)
    assert set(rows) == {f"c{j}" for j in np.flatnonzero(coefficients.any(axis=0))} | {"(intercept)"}
    assert len(rows) == 11
    for j in np.flatnonzero(coefficients.any(axis=0)):
        *shown, change = rows[f"c{j}"]
        assert [float(cell) for cell in shown] == pytest.approx(coefficients[:, j], rel=1e-3)
        # Bounds from -50 to 50: one unit of the feature is 50 of the column.
        assert float(change) == 50.0
    assert "for a change of" in out
    what = "effects" if name == "number" else "odds ratios"
    sentence = f"weights of a prediction rule, without standard errors. Fit with --inference for intervals and {what}."
    words = " ".join(out.partition("guarantee:")[0].split())
    assert sentence in words
    assert not re.search("odds|effect|per unit|coefficient", words.replace(sentence, ""))


def test_what_does_not_fit_is_announced_and_printed_in_full(fits, tables, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    brief = fits["more than fit"][1].out
    assert "... 15 more (--full)" in brief
    assert len(cells(brief)) == ROWS_OF_A_SCREEN + 2
    assert re.search(r"^classes that are not shown: [1-9] \(--full", fits["many classes"][1].out, re.M)
    assert "not shown" not in fits["three"][1].out + fits["long names, three"][1].out
    for name in ("more than fit", "inference"):
        command = fits[name][0]
        full = run(*command, "--full", "-o", f"{name} in full", cwd=tables)
        assert full.code == 0
        # Twice the same fit: what is printed is no part of it, nor of the command that made it.
        texts = [(tables / each / "model.json").read_text("utf-8") for each in (name, f"{name} in full")]
        assert texts[1].replace(f"'{name} in full'", f"'{name}'" if " " in name else name) == texts[0]
        shown = run("show", name, cwd=tables)
        table = full.out[: full.out.index("no account")]
        assert shown.out.startswith(table)
        assert lines_on_a_screen(full.out) > LINES
        assert all(len(line) <= COLUMNS for line in full.out.splitlines() if line[:1] in "┏┃┡│└")
    assert {f"c{j}" for j in range(25)} <= cells(run("show", "more than fit", cwd=tables).out).keys()
    classes = run("show", "many classes", cwd=tables).out
    assert all(re.search(rf"┃ +{label} ┃", classes) for label in range(12))


def test_long_names_stay_apart(fits, tables):
    brief = [name for name in cells(fits["long names"][1].out) if name.startswith("systolic")]
    assert len(set(brief)) == 10
    assert all("…" in name for name in brief)
    shown = run("show", "long names", cwd=tables).out
    assert "…" not in shown.split("Certificate")[0]


def test_intervals_are_described_in_a_line_and_explained_in_full(fits, tables):
    assert "The 95% intervals include the sampling error and the noise for privacy." in fits["inference"][1].out
    shown = " ".join(run("show", "inference", cwd=tables).out.split())
    assert "The 95% confidence intervals include the sampling error" in shown
    assert "No standard errors: " in fits["no intervals"][1].out


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_other_widths_are_kept_to(fits, tables, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("two", "three", "inference", "long names"):
        out = run("show", name, cwd=tables).out
        assert not re.search(r"[\d.]…", out.split("Certificate")[0]), name
        assert all(len(line) <= columns for line in out.splitlines() if line[:1] in "┏┃┡│└┌├"), name


def test_show_takes_a_certificate_or_a_folder_and_says_everything_once(fits, tables, tmp_path):
    shown = run("show", "two", cwd=tables)
    alone = run("show", "two/certificate.json", cwd=tables)
    assert alone.code == 0
    # The whole of it is the end of what is shown of the model.
    assert alone.out in shown.out
    shutil.copy(tables / "two" / "certificate.json", tmp_path)
    assert run("show", tmp_path).out == alone.out
    certificate = fitted(tables, "two").certificate
    words = " ".join(re.sub("[│┌─┬┐└┴┘]", " ", shown.out).split())
    for fact in (
        "(epsilon = 20, delta = 1e-06)",
        "seeded and for reproduction only",
        "two data sets are neighbours",
        "integer sums",
        *map(str, certificate.events),
        *certificate.assumptions,
        "records = 3,000",
        "true positives at most",
    ):
        assert words.count(fact) == 1, fact
    assert words.count("made by:") == 1


def test_show_names_what_is_no_certificate(tmp_path):
    (tmp_path / "certificate.json").write_text('{"format": "taciturn spending", "epsilon": 1.0}', encoding="utf-8")
    assert "a run that did not finish; count its whole budget as spent" in one_sentence(run("show", tmp_path))
    (tmp_path / "certificate.json").write_text('{"format": "taciturn-certificate", "epsilon": 1.0}', encoding="utf-8")
    one_sentence(run("show", tmp_path / "certificate.json"))
    (tmp_path / "certificate.json").write_text("[]", encoding="utf-8")
    assert "expected JSON" in one_sentence(run("show", tmp_path))


def test_the_list_of_experiments_fits_80_columns(monkeypatch):
    pytest.importorskip("matplotlib")
    from taciturn_research.reproduce import EXPERIMENTS

    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    done = run("reproduce", "list")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= COLUMNS
    assert "…" not in done.out
    words = " ".join(done.out.split())
    for each in EXPERIMENTS:
        assert re.search(rf"^{re.escape(each.name)} ", done.out, re.M)
        assert words.count(each.paper) == 1
