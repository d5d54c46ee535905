"""taciturn score and report: all measures on one screen, in one file, on one page, and verified."""

import json
import re
import shutil

import pytest
from commands import one_sentence, run
from studies import make_study, refusal

MEASURES = {
    "classify": ("AUC", "log loss", "accuracy", "calibration in the large"),
    "regress": ("R2", "mean absolute error", "mean squared error"),
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three fits, and scores of two of them beside their models."""
    home = make_study(tmp_path_factory.mktemp("study"))
    for name in MEASURES:
        (home / name / "signature.json").unlink()
        done = run("score", name, "patients.csv", "--epsilon", 2, "--seed", 1, "-o", home / f"{name}.json", cwd=home)
        assert done.code == 0, done
        (home / f"{name}.txt").write_text(done.out, encoding="utf-8")
    return home


@pytest.mark.parametrize("name", MEASURES)
def test_all_measures_are_on_one_screen(study, name):
    text = (study / f"{name}.txt").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= 24
    content = json.loads((study / f"{name}.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in content["measures"]] == list(MEASURES[name])
    for each in content["measures"]:
        (line,) = [line for line in lines if re.search(rf"\W{each['name']}\W", line)]
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", line.partition(each["name"])[2])]
        stated = [each[key] for key in ("value", "lower", "upper", "baseline")]
        assert numbers == pytest.approx(stated, rel=0.06, abs=0.006)
    assert "guarantee: epsilon 2, delta 0 for one record (zero-out), proved; SEEDED" in text
    assert content["certificate"]["epsilon"] == 2.0


def test_a_public_table_is_scored_without_noise_and_says_so(study):
    done = run("score", "classify", "patients.csv", cwd=study)
    assert done.code == 0
    assert "not private: these numbers may be shown only if the table is public" in done.out
    assert "guarantee" not in done.out


@pytest.mark.parametrize("name", MEASURES)
def test_the_page_says_how_good_the_model_is(study, name, tmp_path):
    plain, scored = tmp_path / "plain.html", tmp_path / "scored.html"
    assert run("report", study / name, "-o", plain).code == 0
    # Without a score it is the page that fit wrote.
    assert plain.read_text(encoding="utf-8") == (study / name / "report.html").read_text(encoding="utf-8")
    assert run("report", study / name, "--score", study / f"{name}.json", "-o", scored).code == 0
    text = scored.read_text(encoding="utf-8")
    assert "How good is it" in text
    assert all(measure in text for measure in MEASURES[name])


def test_a_score_of_another_model_is_refused(study, tmp_path):
    asked = ("report", study / "other", "--score", study / "classify.json", "-o", tmp_path / "page.html")
    assert "expected a score of this model" in one_sentence(run(*asked))
    assert not (tmp_path / "page.html").exists()
    spent = run("score", "classify", "patients.csv", "--metric", "accuracy", "-o", tmp_path / "one.json", cwd=study)
    assert spent.code == 0
    refused = run("report", study / "classify", "--score", tmp_path / "one.json", "-o", tmp_path / "page.html")
    assert "found one metric" in one_sentence(refused)


@pytest.fixture
def folder(study, tmp_path):
    """A model with its score, and the page of both."""
    made = shutil.copytree(study / "classify", tmp_path / "classify")
    shutil.copy(study / "classify.json", made / "score.json")
    assert run("report", made, "--score", made / "score.json", "-o", made / "report.html").code == 0
    return made


def test_a_folder_with_a_score_is_verified(folder):
    done = run("verify", folder)
    assert done.code == 0, done
    assert "follow from the released counts" in " ".join(re.sub("[│ ]+", " ", done.out).split())
    # The page of the model alone is right too.
    assert run("report", folder, "-o", folder / "report.html").code == 0
    assert run("verify", folder).code == 0


def test_a_page_with_another_score_is_refused(folder, study):
    (folder / "score.json").unlink()
    assert "expected what follows from model.json, got something else" in refusal(folder)
    shutil.copy(study / "classify.json", folder / "score.json")
    page = folder / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("<td>AUC", "<td>AUD").replace(">AUC<", ">AUD<"), "utf-8")
    assert "model.json and score.json" in refusal(folder)


def test_measures_that_do_not_follow_from_the_counts_are_refused(folder):
    path = folder / "score.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["measures"][0]["value"] = 0.99
    path.write_text(json.dumps(content), encoding="utf-8")
    assert "measures that do not follow from its counts" in refusal(folder)


def test_a_score_beside_another_model_is_refused(folder, study):
    shutil.copy(study / "regress.json", folder / "score.json")
    assert "expected a score of the model in model.json" in refusal(folder)
