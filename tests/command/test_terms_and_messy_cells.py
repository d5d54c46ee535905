"""A table as R writes it, with terms in its bounds file, from the file to predictions: in memory and in partitions."""

import csv
import io
import json
import math

import numpy as np
import pytest
from commands import one_sentence, run

import taciturn
from taciturn.tables.columns import STATED_TERMS

N = 3000
BOUNDS = """
[table]
delimiter = ";"
decimal = ","
thousands = "."
encoding = "windows-1252"
missing_values = ["k.A."]
[target]
name = "krank"
classes = ["nein", "ja"]
[columns]
"größe" = {type = "number", lower = 140, upper = 200, per = 10}
umsatz = {type = "number", lower = 1000, upper = 9000}
raucher = {type = "boolean"}
ort = {type = "category", categories = ["Köln", "Gießen", "Ulm"], reference = "Ulm"}
[terms]
list = ["größe^2", "größe:raucher", "log(umsatz)", "spline(umsatz, 2000, 4000, 8000)", "raucher:ort"]
[missing]
umsatz = 5000
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    rng = np.random.default_rng(0)
    size, sales, smoker = rng.uniform(140, 200, N).round(1), rng.integers(1000, 9000, N), rng.random(N) < 0.5
    place = rng.choice(["Köln", "Gießen", "Ulm", "Bonn"], N)
    ill = (size - 170) / 10 + smoker * (size - 160) / 20 + rng.logistic(size=N) > 0
    text = io.StringIO()
    rows = csv.writer(text, delimiter=";", lineterminator="\n")
    rows.writerow(["", "größe", "umsatz", "raucher", "ort", "krank"])
    for i in range(N):
        amount = "k.A." if i % 50 == 0 else f"{sales[i]:,}".replace(",", ".")
        height = f"{size[i]}".replace(".", ",")
        rows.writerow([i + 1, height, amount, "ja" if smoker[i] else "nein", place[i], "ja" if ill[i] else "nein"])
    (folder / "t.csv").write_bytes(text.getvalue().encode("cp1252"))
    (folder / "bounds.toml").write_text(BOUNDS, encoding="utf-8")
    (folder / "plain.toml").write_text(BOUNDS.replace('encoding = "windows-1252"', ""), encoding="utf-8")
    return folder


def fit(folder, output, *options):
    stated = ("--bounds", "bounds.toml", "--epsilon", 8, "--seed", 1, "--inference")
    columns = ("--columns", '"größe",raucher,größe:raucher,ort')
    return run("fit", "t.csv", *stated, *columns, *options, "-o", output, cwd=folder)


def test_a_messy_table_with_terms_is_fitted_shown_and_predicted(folder):
    done = fit(folder, "whole", "--full")
    assert done.code == 0, done
    said = " ".join(done.err.split())
    assert "the first column has no name, as the row numbers of R and pandas: it is left out" in said
    assert fit(folder, "streamed", "--memory", "100MB").code == 0
    models = [json.loads((folder / name / "model.json").read_text(encoding="utf-8")) for name in ("whole", "streamed")]
    assert models[0]["coefficients"] == models[1]["coefficients"]
    assert models[0]["features"][:9] == [
        "größe", "umsatz", "raucher", "ort=Köln", "ort=Gießen", "ort=Ulm", "größe^2", "größe:raucher", "log(umsatz)",
    ]  # fmt: skip
    for model in models:
        assert STATED_TERMS in model["certificate"]["assumptions"]
        assert model["bounds"]["terms"] == {"list": models[0]["bounds"]["terms"]["list"]}
    # The reference level is the one that is left out, and the effect is that of 10 centimetres.
    model = taciturn.app.model_file.Model.from_json((folder / "whole" / "model.json").read_text(encoding="utf-8"))
    frame = model.summary().to_frame()
    assert list(frame.index) == ["größe", "raucher", "ort=Köln", "ort=Gießen", "größe:raucher", "(intercept)"]
    assert frame["unit"]["größe"] == 10
    # Of non-smokers the odds of "nein" fall by a factor of e for 10 centimetres, up to four standard errors.
    error = frame["std error"]["größe"] / 30 * 10
    assert abs(frame["effect per unit"]["größe"] + 1.0) < 4 * error < 1.0
    assert math.isclose(frame["odds ratio"]["größe"], math.exp(frame["effect per unit"]["größe"]))
    assert " per 10" in done.out
    # Predictions are those of the encoder and the numbers of the model.
    assert run("predict", "whole/model.json", "t.csv", "-o", "p.csv", cwd=folder).code == 0
    predicted = np.loadtxt(folder / "p.csv", delimiter=",", skiprows=1, usecols=2)
    X, _ = taciturn.tables.read_table(folder / "t.csv", model.bounds, "krank")
    margins = X @ np.array(models[0]["coefficients"][0]) + models[0]["intercept"][0]
    assert np.allclose(predicted, 1 / (1 + np.exp(-margins)), rtol=1e-9)


def test_a_wrong_encoding_is_one_sentence(folder):
    said = one_sentence(run("fit", "t.csv", "--bounds", "plain.toml", "-o", "out", cwd=folder))
    assert "expected text in UTF-8, got another encoding; state it as encoding in [table]" in said
