"""The hospital: from a messy table of 20,000 visits to a signed report, with three edits of the bounds file."""

import difflib
import json

import numpy as np
import pytest
from commands import run
from messy_table import CODES, write_hospital
from studies import write_key

import taciturn
from taciturn.app.model_file import Model

EDITS = (
    ('# categories =\n\n[columns."ward"]', 'categories = ["m", "f"]\n\n[columns."ward"]'),
    ('# categories =\n\n[columns."smoker"]', 'categories = ["surgery", "medicine", "lungs"]\n\n[columns."smoker"]'),
    ("# [defaults]\n# missing =", "[defaults]\nmissing ="),
)
"""What the hospital knows about its columns: the two sexes and three wards in its files, and that cells are missing."""


def count_edits(before, after):
    """How many places of a text differ: runs of lines that were changed, added or taken out."""
    lines = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return sum(tag != "equal" for tag, *_ in lines.get_opcodes())


def test_edits_are_counted():
    before = "a\nb\nc\nd\n"
    assert [count_edits(before, after) for after in (before, "a\nB\nc\nd\n", "A\nb\nc\nD\n", "a\nb\nnew\nc\nD\n")] == [
        0, 1, 2, 2,
    ]  # fmt: skip


@pytest.mark.slow
def test_from_a_messy_table_to_a_signed_report_with_three_edits(tmp_path):
    table = tmp_path / "visits.csv"
    write_hospital(table)
    done = run("init", "visits.csv", "--target", "readmitted", cwd=tmp_path)
    assert done.code == 0, done
    template = (tmp_path / "bounds.toml").read_text(encoding="utf-8")
    text = template
    for old, new in EDITS:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    assert count_edits(template, text) == 3
    (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
    # A public list of all codes there are, which the hospital has anyway.
    (tmp_path / "diagnosis.txt").write_text("\n".join(CODES) + "\n", encoding="utf-8")
    write_key(tmp_path / "owner.pem")

    options = ("--private-bounds", 0.3, "--epsilon", 4, "--nonzero", 12, "--seed", 1, "--sign", "owner.pem")
    done = run("fit", "visits.csv", "--bounds", "bounds.toml", *options, "-o", "model", cwd=tmp_path)
    assert done.code == 0, done
    assert run("verify", "model", "--public-key", "owner.pub.pem", cwd=tmp_path).code == 0
    assert (tmp_path / "model" / "report.html").exists()

    model = Model.from_json((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    certificate = model.certificate
    assert (certificate.unit, certificate.status) == ("person", "proved")
    assert certificate.epsilon <= 4.0
    assert "the names and types of the table's columns are public" in certificate.assumptions
    assert model.bounds.found_privately == ("born", "admitted", "age", "CRP", "creatinine", "weight kg")
    names = model.feature_names
    assert {"CRP missing", "sex missing", "diagnosis=E10", "diagnosis=J29", "ward=lungs"} <= set(names)
    assert len([name for name in names if name.startswith("diagnosis=")]) == 100
    # Bounds that were found lie where the generator put the values.
    age, born = (model.bounds.columns[name] for name in ("age", "born"))
    assert 15.0 <= age.lower <= 25.0
    assert 88.0 <= age.upper <= 100.0
    assert -30_000 <= born.lower <= -20_000
    # The model says what the visits were made of: age and smoking, each in its direction.
    weights = dict(zip(names, model.estimator.coef_[0], strict=True))
    assert weights["smoker"] > 0.3
    assert weights["age"] - weights["born"] > 0.5

    # Another table of the same form: predictions and a private score read it by the rules of the model.
    write_hospital(tmp_path / "new.csv", 4000, seed=1)
    assert run("predict", "model", "new.csv", "-o", "out.csv", cwd=tmp_path).code == 0
    predictions = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = (tmp_path / "new.csv").read_text(encoding="utf-8").splitlines()[1:]
    right = np.mean([a.partition(",")[0] == str(b.endswith("yes")) for a, b in zip(predictions, rows, strict=True)])
    majority = np.mean([row.endswith("no") for row in rows])
    assert right > max(majority, 1.0 - majority) + 0.05
    scored = run("score", "model", "new.csv", "--epsilon", 1, "--seed", 1, "-o", "score.json", cwd=tmp_path)
    assert scored.code == 0, scored
    measures = json.loads((tmp_path / "score.json").read_text(encoding="utf-8"))["measures"]
    value = next(found["value"] for found in measures if found["name"] == "accuracy")
    assert abs(value - right) < 0.05
    assert taciturn.load(tmp_path / "model" / "model.json") is not None


@pytest.mark.slow
def test_an_edit_less_is_not_enough(tmp_path):
    """Each of the three edits is needed: without it the fit is refused, and nothing is spent."""
    write_hospital(tmp_path / "visits.csv", 2000)
    assert run("init", "visits.csv", "--target", "readmitted", cwd=tmp_path).code == 0
    template = (tmp_path / "bounds.toml").read_text(encoding="utf-8")
    (tmp_path / "diagnosis.txt").write_text("\n".join(CODES) + "\n", encoding="utf-8")
    for left_out in range(3):
        text = template
        for at, (old, new) in enumerate(EDITS):
            text = text if at == left_out else text.replace(old, new)
        (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
        done = run("fit", "visits.csv", "--bounds", "bounds.toml", "--private-bounds", 0.5, "-o", "model", cwd=tmp_path)
        assert done.code == 1
        assert not (tmp_path / "model").exists()
