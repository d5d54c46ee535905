"""The coverage cells of families: records are drawn from the coefficients that intervals are compared with."""

import math

import numpy as np
import pytest

from taciturn_research.coverage.families import COEFFICIENTS, NAMED, report, rows_of, run_once

sm = pytest.importorskip("statsmodels.api")

FAMILIES = {
    "numbers": sm.families.Gaussian(),
    "labels": sm.families.Binomial(),
    "counts": sm.families.Poisson(),
    "amounts": sm.families.Gamma(sm.families.links.Log()),
}


@pytest.mark.parametrize("cell", [cell for cell in NAMED if cell.family != "hazards"], ids=lambda cell: cell.name)
def test_a_fit_without_privacy_finds_the_coefficients(cell):
    drawn = cell.draw(np.random.default_rng(5))
    persons = drawn.given.get("persons", np.arange(len(drawn.X)))
    weight = drawn.given.get("sample_weight", np.ones(len(drawn.X)))
    if cell.person_weight == "mean":
        weight = 1.0 / np.bincount(persons)[persons]
    offset = np.log(drawn.given.get("exposure", np.ones(len(drawn.X))))
    rows = sm.add_constant(drawn.X)
    model = sm.GLM(drawn.y, rows, family=FAMILIES[cell.family], freq_weights=weight, offset=offset)
    found = model.fit().params
    bread = np.linalg.inv(model.hessian(found, scale=1.0, observed=False))
    scores = model.score_obs(found, scale=1.0)
    of_persons = np.column_stack([np.bincount(persons, column) for column in scores.T])
    errors = np.sqrt(np.diag(bread @ (of_persons.T @ of_persons) @ bread))
    assert np.abs((found - [found[0], *COEFFICIENTS]) / errors).max() < 5.0
    # Other coefficients would be noticed.
    assert np.abs((found[1:] + COEFFICIENTS) / errors[1:]).max() > 5.0


@pytest.mark.slow
def test_a_fit_of_hazards_without_noise_finds_them_too():
    for cell in NAMED:
        if cell.family == "hazards":
            drawn = cell.draw(np.random.default_rng(5))
            found = cell.model(0).set_params(epsilon=math.inf).fit(drawn.X, drawn.y, **drawn.given)
            assert np.abs((found.coef_ - COEFFICIENTS) / found.coef_std_error_).max() < 5.0
            assert np.mean(drawn.y[0] == 0.0) == pytest.approx(cell.censored, abs=0.12)


def test_the_page_says_whether_coverage_is_as_asked():
    runs = [
        {"cell": cell.name, "seed": seed, "covered": [True] * 4 + [seed % 4 > 0]}
        for cell in NAMED
        for seed in range(40)
    ]
    assert "as asked" in report(runs)
    assert "**not** as asked" not in report(runs)
    low = [run | {"covered": [False, None, *run["covered"][2:]]} for run in runs if run["cell"] == NAMED[0].name]
    assert "**not** as asked" in report([*low, *(run for run in runs if run["cell"] != NAMED[0].name)])
    (row,) = [row for row in rows_of(low) if row[0] is NAMED[0]]
    assert row[1:4] == (40, 160, pytest.approx(0.8))


def test_a_run_follows_from_its_seed():
    (cell,) = [cell for cell in NAMED if cell.name == "numbers, weights 1 to 20"]
    assert run_once(cell, 3) == run_once(cell, 3)
    assert len(run_once(cell, 3)["covered"]) == COEFFICIENTS.size
