"""Notes about weak guarantees and about bounds that do not fit: from public facts and from what is released."""

import json
import warnings

import pytest
from commands import BOUNDS, one_sentence, run, write_patients


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes")
    write_patients(folder, 4000)
    (folder / "capitals.toml").write_text(BOUNDS.replace('["no", "yes"]', '["No", "Yes"]'), encoding="utf-8")
    return folder


def fit(folder, *options, output, bounds="bounds.toml"):
    with warnings.catch_warnings():
        # Whatever is not a note would be an error here.
        warnings.simplefilter("error")
        return run("fit", "patients.csv", "--bounds", bounds, "--seed", 1, *options, "-o", output, cwd=folder)


def notes(ended):
    assert ended.code == 0, ended
    return [line for line in ended.err.splitlines() if line.startswith("note: ") and "seed" not in line]


def test_an_ordinary_fit_has_no_notes(folder):
    assert notes(fit(folder, "--epsilon", 1, output="usual")) == []


def test_weak_guarantees_are_told(folder):
    (note,) = notes(fit(folder, "--delta", 0.5, output="large delta"))
    assert note.startswith("note: delta=0.5: expected less than one over the number of records (4,000)")
    (note,) = notes(fit(folder, "--epsilon", 12, output="large epsilon"))
    assert note.startswith("note: epsilon=12.0: expected less than 10 for a guarantee that says much about each record")
    (note,) = notes(run("score", "large epsilon", "patients.csv", "--epsilon", 11, "--seed", 1, cwd=folder))
    assert note.startswith("note: epsilon=11.0: ")


def test_a_budget_that_protects_nobody_is_refused(folder):
    assert "epsilon=100" in one_sentence(fit(folder, "--epsilon", 100, output="none"))
    assert not (folder / "none").exists()


def test_classes_in_another_spelling_are_told_from_what_was_released(folder):
    (note,) = notes(fit(folder, "--epsilon", 2, bounds="capitals.toml", output="capitals"))
    assert "the released class shares say that almost no record has a stated label" in note
    written = json.loads((folder / "capitals" / "certificate.json").read_text(encoding="utf-8"))
    said = [event["what"] for event in written["events"] if "it says that" in event["what"]]
    assert said == ["the share of each class: it says that almost no record has a stated label"]
