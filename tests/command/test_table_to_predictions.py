"""The installed command from end to end: from a table on disk to predictions."""

import csv
import json
import re

import numpy as np
import pytest
from commands import BOUNDS, csv_text, one_sentence, patients, run, run_installed, write_patients

import taciturn
from taciturn.privacy.certificate import Certificate


@pytest.fixture(scope="module")
def commands_run(tmp_path_factory):
    """A folder in which init, fit, show, predict and score have been run, fit by the installed command."""
    folder = tmp_path_factory.mktemp("commands")
    write_patients(folder)
    new = [row[:-1] for row in patients(60, seed=5)]
    (folder / "new.csv").write_text(csv_text(new, header=["age", "dose", "smoker", "region"]), encoding="utf-8")
    (folder / "known.csv").write_text(csv_text(patients(300, seed=6)), encoding="utf-8")
    runs = {
        "init": run("init", "patients.csv", "--target", "ill", "-o", "template.toml", cwd=folder),
        "fit": run_installed(
            "fit", "patients.csv", "--bounds", "bounds.toml", "--epsilon", 4, "--nonzero", 3, "--seed", 1,
            "-o", "model", cwd=folder,
        ),
        "show": run("show", "model", cwd=folder),
        "predict": run("predict", "model/model.json", "new.csv", "-o", "out.csv", cwd=folder),
        "score": run("score", "model/model.json", "known.csv", cwd=folder),
    }  # fmt: skip
    for name, done in runs.items():
        assert done.code == 0, (name, done)
    return folder, runs


def test_the_template_has_names_and_types_and_no_value(commands_run):
    folder, _ = commands_run
    text = (folder / "template.toml").read_text(encoding="utf-8")
    for part in ('name = "ill"', "age", "dose", 'type = "number"', 'type = "boolean"', 'type = "category"'):
        assert part in text
    for value in ("hill", "dale", "yes"):
        assert value not in text
    for cell in {str(row[0]) for row in patients()}:
        assert cell not in re.findall(r"[\d.]+", text)


def test_the_folder_holds_a_model_a_certificate_and_a_report(commands_run):
    folder, runs = commands_run
    assert sorted(path.name for path in (folder / "model").iterdir()) == [
        "certificate.json", "model.json", "report.html",
    ]  # fmt: skip
    assert not list(folder.glob("*.unfinished")) + list(folder.rglob("*.part"))
    certificate = Certificate.from_json((folder / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert (certificate.status, certificate.relation, certificate.seeded) == ("proved", "zero-out", True)
    assert certificate.epsilon <= 4.0
    model = json.loads((folder / "model" / "model.json").read_text(encoding="utf-8"))
    assert model["certificate"] == json.loads(certificate.to_json())
    # A seed undoes the noise, and so it is nowhere.
    assert model["command"] == (
        "taciturn fit patients.csv --epsilon 4 --delta 1e-06 --nonzero 3 --bounds bounds.toml --seed ..."
    )
    assert "random_state" not in model["parameters"]
    for part in ("3 of 5 features", "age", "dose", "epsilon = 4"):
        assert part in runs["fit"].out
    report = (folder / "model" / "report.html").read_text(encoding="utf-8")
    assert report.startswith("<!doctype html>") or report.startswith("<!DOCTYPE html>")
    for part in ("age", "dose", "taciturn fit patients.csv"):
        assert part in report


def test_show_has_the_coefficients_of_the_file(commands_run):
    folder, runs = commands_run
    model = taciturn.load(folder / "model" / "model.json")
    named = dict(zip(model[:-1].get_feature_names_out(), np.ravel(model[-1].coef_), strict=True))
    shown = dict(re.findall(r"│ (\S+) +│ +([+-][\d.e-]+) │", runs["show"].out))
    assert {name: f"{value:+.4g}" for name, value in named.items() if value} == {
        name: value for name, value in shown.items() if name != "(intercept)"
    }


def test_predictions_are_those_of_the_loaded_model_bit_for_bit(commands_run):
    pandas = pytest.importorskip("pandas")
    folder, _ = commands_run
    model = taciturn.load(folder / "model" / "model.json")
    table = pandas.read_csv(folder / "new.csv")
    with (folder / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == model.predict(table).tolist()
    probabilities = np.array([[float(row["P(no)"]), float(row["P(yes)"])] for row in rows])
    np.testing.assert_array_equal(probabilities, model.predict_proba(table))
    # And they are predictions: other records have others.
    assert len(set(probabilities[:, 0].tolist())) > 40


def test_the_score_is_the_accuracy_on_the_public_table(commands_run):
    pandas = pytest.importorskip("pandas")
    folder, runs = commands_run
    model = taciturn.load(folder / "model" / "model.json")
    known = pandas.read_csv(folder / "known.csv")
    accuracy = float(np.mean(model.predict(known) == known["ill"]))
    shown = re.search(r"accuracy\s+\S+\s+([\d.]+) \(", runs["score"].out)[1]
    assert float(shown) == pytest.approx(accuracy, abs=0.5 * 10.0 ** -len(shown.partition(".")[2]))
    assert accuracy > 0.8
    assert "not private" in runs["score"].out


def test_a_private_score_has_a_certificate_of_its_own(commands_run):
    folder, _ = commands_run
    done = run("score", "model", "known.csv", "--epsilon", "0.5", "--seed", "3", cwd=folder)
    assert done.code == 0
    assert "guarantee: epsilon 0.5, delta 0 for one record (zero-out), proved; SEEDED" in done.out
    one = run("score", "model", "known.csv", "--epsilon", "0.5", "--metric", "accuracy", "-o", "one.json", cwd=folder)
    assert "with noise of standard deviation" in one.out
    assert "epsilon = 0.5" in " ".join(one.out.split())


def test_the_same_seed_gives_the_same_model_and_another_seed_another(commands_run, tmp_path):
    folder, _ = commands_run
    for name, seed in (("same", 1), ("other", 2)):
        done = run(
            "fit", folder / "patients.csv", "--bounds", folder / "bounds.toml", "--epsilon", 4, "--nonzero", 3,
            "--seed", seed, "-o", tmp_path / name,
        )  # fmt: skip
        assert done.code == 0, done
    first, same, other = (
        json.loads((path / "model.json").read_text(encoding="utf-8"))["coefficients"]
        for path in (folder / "model", tmp_path / "same", tmp_path / "other")
    )
    assert first == same != other


def test_the_demo_runs_every_step_from_table_to_report(tmp_path):
    done = run_installed("demo", "--seed", "0", "-o", "demo", cwd=tmp_path)
    assert done.code == 0, done
    commands = re.findall(r"^\$ taciturn (\w+)", done.out, flags=re.MULTILINE)
    assert commands == ["init", "fit", "show", "predict", "score"]
    assert (tmp_path / "demo" / "model" / "report.html").is_file()
    # Every column has its interval, and the score too.
    estimated = re.findall(r"│ (\w[\w=]*) +│.* +[\d.]+ \([\d.]+ to [\d.]+\)", done.out.partition("$ taciturn show")[0])
    assert sorted(estimated) == [
        "coinsurance", "conditions", "health=fair", "health=good", "health=poor", "limitation",
    ]  # fmt: skip
    accuracy = float(re.search(r"accuracy\s+\S+\s+([\d.]+) \(", done.out)[1])
    assert accuracy > 0.8
    again = run("demo", "-o", tmp_path / "demo")
    assert "expected a folder that is not there yet" in one_sentence(again)


def test_bounds_can_be_found_with_a_share_of_the_budget(tmp_path):
    table, bounds = write_patients(tmp_path, n_rows=4000)
    # Nothing is stated about age and dose; a category always needs its list.
    text = BOUNDS.split("[columns.age]")[0] + BOUNDS[BOUNDS.index("[columns.smoker]") :]
    bounds.write_text(text, encoding="utf-8")
    refused = run("fit", table, "--bounds", bounds, "-o", tmp_path / "model")
    assert '"age"' in one_sentence(refused)
    done = run(
        "fit", table, "--bounds", bounds, "--private-bounds", "0.3", "--epsilon", 2, "--nonzero", 2, "--seed", 4,
        "-o", tmp_path / "model",
    )  # fmt: skip
    assert done.code == 0, done
    model = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert model["bounds"]["found_privately"] == ["age", "dose"]
    age = model["bounds"]["columns"]["age"]
    # Quantiles of a uniform age, rounded outwards on a grid of two digits.
    assert 0.0 <= age["lower"] <= 10.0 < 90.0 <= age["upper"] <= 100.0
    certificate = Certificate.from_json((tmp_path / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate.status == "proved"
    assert certificate.epsilon <= 2.0
    assert certificate.delta <= 1e-6 * (1 + 1e-9)
    # The price of the bounds is in it, and so is what they rest on.
    assert any("bound" in str(event) or "quantile" in str(event) for event in certificate.events)
    assert "not found privately" in " ".join(certificate.assumptions)
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(table)
    loaded = taciturn.load(tmp_path / "model" / "model.json")
    assert loaded[0].bounds_.column("age").upper == age["upper"]
    assert float(np.mean(loaded.predict(frame) == frame["ill"])) > 0.7


def test_a_target_whose_bounds_are_found(tmp_path):
    rows = [[row[0], row[1], round(3.0 * row[1] + 40.0, 4)] for row in patients(4000)]
    (tmp_path / "t.csv").write_text(csv_text(rows, header=["age", "dose", "y"]), encoding="utf-8")
    done = run(
        "fit", tmp_path / "t.csv", "--target", "y", "--task", "regress", "--private-bounds", 0.3, "--epsilon", 3,
        "--nonzero", 1, "--seed", 4, "-o", tmp_path / "model",
    )  # fmt: skip
    assert done.code == 0, done
    model = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert model["bounds"]["found_privately"] == ["age", "dose", "y"]
    assert 30.0 < model["bounds"]["target"]["lower"] < 40.0 < model["bounds"]["target"]["upper"] < 50.0
    assert "(found privately)" in (tmp_path / "model" / "report.html").read_text(encoding="utf-8")


def test_text_and_typed_tables_agree_on_categories_and_labels(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    group, flag = rng.integers(1, 3, 1000).astype(float), rng.random(1000) < 0.5
    ill = np.where((group == 1.0) ^ (rng.random(1000) < 0.1), 1.0, 0.0)
    frame = pandas.DataFrame({"group": group, "flag": flag, "ill": ill})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    fitted = []
    for listed in ('["1", "2"]', '["1.0", "2.0"]'):
        text = f"""
            [target]
            name = "ill"
            classes = ["0", "1"]
            [columns]
            group = {{type = "category", categories = {listed}}}
            flag = {{type = "category", categories = ["True", "false"]}}
        """
        (tmp_path / "b.toml").write_text(text, encoding="utf-8")
        for name in ("t.csv", "t.parquet"):
            out = tmp_path / f"model-{len(fitted)}"
            options = ("--bounds", tmp_path / "b.toml", "--nonzero", "all", "--seed", 1, "-o", out)
            done = run("fit", tmp_path / name, *options)
            assert done.code == 0, done
            model = taciturn.load(out / "model.json")
            fitted.append(model[-1].coef_.tolist())
            assert model[-1].support_.all()
            for table in (frame, pandas.read_csv(tmp_path / "t.csv")):
                assert float(np.mean(model.predict(table).astype(float) == ill)) > 0.85
    assert fitted[0] == fitted[1] == fitted[2] == fitted[3]


def test_regression_from_parquet_and_arrow(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (2000, 3))
    y = 5.0 + 4.0 * X[:, 0] + rng.normal(scale=0.3, size=2000)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    columns = "".join(f'[columns.{name}]\ntype = "number"\nlower = -1\nupper = 1\n' for name in "abc")
    (tmp_path / "b.toml").write_text(f'[target]\nname = "y"\nlower = 0\nupper = 10\n{columns}', encoding="utf-8")
    models = []
    for name in ("t.parquet", "t.feather"):
        out = tmp_path / f"model-{name}"
        done = run("fit", tmp_path / name, "--bounds", tmp_path / "b.toml", "--nonzero", 1, "--seed", 3, "-o", out)
        assert done.code == 0, done
        models.append(json.loads((out / "model.json").read_text(encoding="utf-8")))
    assert models[0]["coefficients"] == models[1]["coefficients"]
    (slope, *rest) = np.ravel(models[0]["coefficients"]).tolist()
    # Long rows are clipped, which makes a slope steeper, by less than a half.
    assert 3.5 < slope < 6.0
    assert rest == [0.0, 0.0]
    assert float(np.ravel(models[0]["intercept"])[0]) == pytest.approx(5.0, abs=0.5)


def test_select_and_compare(tmp_path):
    table, bounds = write_patients(tmp_path, n_rows=2000)
    done = run("select", table, "--bounds", bounds, "--keep", 2, "--epsilon", 5, "--seed", 0, "-o", tmp_path / "s")
    assert done.code == 0, done
    selection = json.loads((tmp_path / "s" / "selection.json").read_text(encoding="utf-8"))
    assert selection["features"] == ["age", "dose"]
    assert selection["certificate"] == json.loads((tmp_path / "s" / "certificate.json").read_text(encoding="utf-8"))
    compared = run("compare", table, "--bounds", bounds, "--trials", 1, "--nonzero", 3)
    assert compared.code == 0, compared
    assert "no guarantee, and no budget was spent" in compared.out
    errors = dict(re.findall(r"│ ([a-z-]+(?:, without privacy)?) +│ +([\d.]+) │", compared.out))
    assert set(errors) == {
        "auto", "auto, without privacy", "frank-wolfe", "sparsified", "screened", "hard-threshold",
        "objective-perturbation", "two-stage", "admm",
    }  # fmt: skip
    assert float(errors["auto, without privacy"]) < 0.2
