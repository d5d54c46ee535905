"""A messy table of hospital visits, as people have them: semicolons, decimal commas, dates, codes, limits, gaps."""

from __future__ import annotations

import csv
import io
import math

import numpy as np

CODES = [f"{letter}{number:02}.{part}" for letter in "EIJKN" for number in range(10, 30) for part in range(3)]
"""300 codes like those of ICD-10; 100 categories."""

NOTES = ("came by ambulance late at night and was calm", "walks with help and wants to go home soon",
         "family was told about the plan for next week", "sleeps badly; pain is better than it was before")  # fmt: skip

HEADER = (
    "patient_id", "visit no", "born", "admitted", "sex", "ward", "smoker", "age", "CRP", "creatinine", "weight kg",
    "diagnosis", "notes", "readmitted",
)  # fmt: skip


def write_hospital(path, n_rows=20_000, seed=0, delimiter=";", decimal=","):
    """Write visits of patients, several each; return the features that the outcome depends on."""
    rng = np.random.default_rng(seed)
    visits = rng.integers(1, 4, n_rows)
    owners = np.repeat(np.arange(n_rows), visits)[:n_rows]
    n_patients = int(owners[-1]) + 1
    age = rng.integers(18, 96, n_patients)[owners]
    sex = rng.choice(["m", "f"], n_patients)[owners]
    smoker = (rng.random(n_patients) < 0.3)[owners]
    admitted = np.datetime64("2019-01-01") + rng.integers(0, 1500, n_rows)
    born = admitted - (age * 365.25).astype(int)
    crp, creatinine = rng.lognormal(2.5, 1.0, n_rows), rng.lognormal(0.0, 0.4, n_rows)
    weight = rng.normal(75.0, 14.0, n_rows)
    code = rng.choice(CODES, n_rows)
    lungs = np.char.startswith(code, "J")
    margin = 0.05 * (age - 57.0) + 1.2 * smoker + 1.5 * lungs - 1.0
    ill = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-margin))
    ward = rng.choice(["surgery", "medicine", "lungs"], n_rows)

    def number(value, digits):
        return f"{value:.{digits}f}".replace(".", decimal)

    def gap(text, share):
        return rng.choice(["", "NA"]) if rng.random() < share else text

    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(HEADER)
    for i in rng.permutation(n_rows):
        cells = (
            f"P{owners[i]:06}",
            str(i + 1),
            str(born[i]),
            "{2}.{1}.{0}".format(*str(admitted[i]).split("-")),
            gap(sex[i], 0.01),
            gap(ward[i], 0.02),
            gap(("ja", "nein")[int(not smoker[i])], 0.03),
            str(age[i]),
            gap("<5" if crp[i] < 5.0 else number(crp[i], 1), 0.1),
            gap(number(creatinine[i], 2), 0.05),
            gap(number(weight[i], 1), 0.05),
            gap(code[i], 0.01),
            str(rng.choice(NOTES)),
            "yes" if ill[i] else "no",
        )
        writer.writerow(cells)
    path.write_text(text.getvalue(), encoding="utf-8")
    assert math.isclose(n_patients, n_rows / 2, rel_tol=0.05)
    return ("age", "smoker", "diagnosis=J")
