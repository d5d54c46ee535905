"""The study of coverage: its cells, what counts as estimable, and how runs become verdicts."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from taciturn_research.coverage import __main__ as study
from taciturn_research.coverage.cells import NAMED, OTHERS, REAL, Cell, grid
from taciturn_research.coverage.designs import DESIGNS, Population, applies, well_specified
from taciturn_research.coverage.plain import TASKS, Reference, Sample, fit_plain
from taciturn_research.coverage.tables import TABLES, TablePopulation, missing


def test_named_cells_are_sixty_and_hold_every_design_where_width_is_judged():
    assert len(set(NAMED)) == 60
    assert not set(NAMED) & set(OTHERS)
    centre = {(cell.task, cell.design) for cell in NAMED if cell[2:] == (20_000, 6, 1.0)}
    fixed = [design for design in DESIGNS if not design.startswith("selected")]
    assert centre >= {(task, design) for task in TASKS for design in fixed if applies(task, design)}
    for axis, values in {"n": (2_000, 5_000, 20_000, 100_000), "p": (6, 11, 21), "epsilon": (1.0, 3.0)}.items():
        assert {getattr(cell, axis) for cell in NAMED} == set(values)


def test_a_quick_study_is_the_beginning_of_a_full_one():
    quick, full = grid(full=False, data=None), grid(full=True, data=None)
    assert set(quick) < set(full)
    runs = Counter(map(Cell.of, full))
    assert {runs[cell] for cell in NAMED} == {200}
    assert {runs[cell] for cell in OTHERS} == {40}
    # Tables that cannot be read are left out.
    assert {cell.design for cell in runs if cell in REAL} == {name for name in TABLES if "bank" not in name}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("design", "outside"), [("independent", []), ("duplicate", [0, 4]), ("full one-hot", [0, 1, 2, 5])]
)
def test_what_the_span_does_not_tell_is_not_estimable(task, design, outside):
    reference = Population(task, design, 6).reference(np.arange(5))
    lost = {*outside, 5} if task == "linear" else set(outside)
    assert set(np.flatnonzero(~reference.estimable(20_000))) == lost


def test_few_records_leave_collinear_columns_unestimable():
    reference = Population("linear", "AR .99", 6).reference(np.arange(5))
    assert reference.estimable(20_000)[:5].all()
    assert not reference.estimable(500)[:5].any()


def test_coefficients_of_selected_columns_are_those_of_the_columns():
    population = Population("linear", "selected AR .7", 6)
    exact = population.reference(population.true_columns).coefficients
    np.testing.assert_array_equal(exact[:5], population.weights[population.true_columns] / population.bound)
    # The neighbour of a true column stands for it in part.
    replaced = population.reference(population.true_columns + np.array([0, 0, 0, 0, 1])).coefficients
    assert 0.4 < replaced[4] / exact[4] < 0.9


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("by_person", [False, True])
def test_errors_without_privacy_are_those_of_statsmodels(task, by_person):
    sample = Population(task, "independent", 6).draw(np.random.default_rng(0), 900)
    persons = np.repeat(np.arange(300), 3) if by_person else None
    found = fit_plain(Sample(sample.X, sample.y, persons), task)
    family = sm.families.Gaussian() if task == "linear" else sm.families.Binomial()
    kind = {"cov_type": "cluster", "cov_kwds": {"groups": persons, "use_correction": False}}
    exact = sm.GLM(sample.y, sm.add_constant(sample.X, prepend=False), family=family).fit(
        **(kind if by_person else {"cov_type": "HC0"})
    )
    np.testing.assert_allclose(found.coefficients, exact.params, rtol=1e-5)
    np.testing.assert_allclose(found.std_error, exact.bse, rtol=1e-5)


def test_a_run_compares_estimable_coefficients_with_the_population(monkeypatch):
    population = Population("linear", "duplicate", 6)
    truth = population.reference(np.arange(5)).coefficients
    off = truth[:5] + np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    reach = np.array([[0.1, 0.1, 0.1, np.nan, 0.1, np.nan]])
    model = SimpleNamespace(
        coef_=off, intercept_=truth[5], inference_=SimpleNamespace(columns=np.arange(5), reach=reach)
    )
    monkeypatch.setattr(study, "_fitted", lambda *given: model)
    found = study.measure(Cell("linear", "duplicate", 2_000, 6, 1.0).config(0))
    assert found["places"] == [1, 2, 3]
    assert found["covered"] == [True, False, None]
    assert [ratio is None for ratio in found["ratio"]] == [False, False, True]
    assert not found["refused"]


def test_a_refused_fit_has_no_intervals():
    found = study.measure(Cell("logistic", "independent", 100, 21, 0.1).config(0))
    assert found["refused"]
    assert found["covered"] == [None] * len(found["places"])


def runs(covered, ratio=1.1, refused=False):
    return pd.DataFrame(
        {
            "covered": covered,
            "ratio": [[None if hit is None else ratio for hit in row] for row in covered],
            "plain": [[True] * len(row) for row in covered],
            "places": [[*range(len(row))] for row in covered],
            "refused": refused,
        }
    )


def test_a_cell_is_rated_over_the_intervals_that_exist():
    said = study.rate(runs([[True, False], [True, None], [True, True], [None, None]]))
    assert (said.runs, said.intervals, said.estimable) == (4, 5, 2.0)
    assert said.coverage == pytest.approx(0.8)
    assert said.share == pytest.approx(5 / 8)
    assert said.complete == pytest.approx(0.5)
    assert said.ratio == pytest.approx(1.1)
    # Coefficients of a run that agree are worth one.
    dependent = study.rate(runs([[True] * 10] * 30 + [[False] * 10] * 10))
    independent = study.rate(runs([[True]] * 300 + [[False]] * 100))
    assert dependent.error == pytest.approx(independent.error * 10**0.5, rel=0.05)
    refused = study.rate(runs([[None, None]] * 3, refused=True))
    assert refused.refused == 1.0
    assert refused.share == 0.0
    assert np.isnan(refused.coverage)


def said(coverage=0.95, share=1.0, ratio=1.1, complete=1.0):
    return study.Rated(200, 0.0, 5.0, share, complete, 1000, coverage, 0.007, ratio, 0.95)


@pytest.mark.parametrize(
    ("cell", "broken", "words"),
    [
        (Cell("linear", "AR .7", 5_000, 11, 3.0), {"coverage": 0.89}, "well specified: no cell below .92"),
        (Cell("linear", "skewed", 5_000, 6, 3.0), {"coverage": 0.87}, "misspecified or skewed"),
        (Cell("linear", "AR .7", 20_000, 6, 1.0), {"share": 0.9}, "95 % of estimable"),
        (Cell("linear", "AR .7", 20_000, 6, 1.0), {"ratio": 1.3}, "median width"),
        (Cell("logistic", "fair", 8_000, 12, 3.0), {"complete": 0.8}, "90 % of fits"),
        (Cell("logistic", "fair", 8_000, 12, 3.0), {"coverage": 0.89}, "no less than .92"),
        (Cell("logistic", "bank", 30_000, 12, 1.0), {"coverage": 1.01}, "no more than .98"),
    ],
)
def test_a_verdict_names_the_cell_that_breaks_it(cell, broken, words):
    cells = {each: said() for each in (*NAMED, *REAL)}
    assert len(study.verdicts(cells)) == 11
    assert all(each.holds for each in study.verdicts(cells))
    failed = [each for each in study.verdicts({**cells, cell: said(**broken)}) if not each.holds]
    assert [each.worst for each in failed] == [cell]
    assert words in failed[0].asked


def test_unequal_errors_break_a_link_and_no_mean():
    assert well_specified("linear", "heteroscedastic")
    assert not well_specified("logistic", "heteroscedastic")
    assert not well_specified("linear", "skewed")


@pytest.mark.parametrize("name", [name for name in TABLES if "bank" not in name])
def test_tables_of_packages_are_encoded_within_bounds(name):
    population = TablePopulation(name)
    sample = population.draw(np.random.default_rng(0), 500)
    assert 7 <= population.n_features <= 12
    assert sample.X.shape == (500, population.n_features)
    assert np.abs(sample.X).max() <= 1.0
    reference = population.reference(population.true_columns)
    assert isinstance(reference, Reference)
    assert reference.estimable(8_000).any()
    # All levels of a category are confounded with the constant.
    assert reference.identified[-1] == ("all levels" not in name)


def test_a_table_that_is_not_there_has_a_reason(tmp_path):
    assert "--data" in missing("bank", None)
    assert "--data" in missing("bank", tmp_path)
    assert missing("fair", None) is None


def test_the_report_has_verdicts_cells_and_what_was_not_run():
    configs = [Cell("linear", "independent", 20_000, 6, 1.0).config(seed) for seed in range(6)]
    rows = [
        {"method": each.method, "data_set": each.data_set, "rows": each.rows, "epsilon": each.epsilon, "p": 6}
        for each in configs
    ]
    frame = pd.concat([pd.DataFrame(rows), runs([[True] * 5] * 5 + [[True] * 4 + [False]])], axis=1)
    page = study.report(frame)
    assert "| linear | **independent** | 20,000 | 6 | 1 | 6 | 5 | 0% | 100% | 100% | 0.967 |" in page
    assert "bank*: whether a client subscribed" in page
    assert "(not run: no folder --data" in page
    assert "0 of 60 named cells have their 200 runs" in page
    assert "| independent | 0.967 (100%, 1.10) |" in study.overview(frame)


def test_the_report_names_coefficients_of_tables_that_fall_short():
    facts = {"method": "logistic", "data_set": "fair", "rows": 8_000, "epsilon": 3.0, "p": 12}
    row = [True] * 6 + [None] + [True] * 4 + [False]
    page = study.report(pd.concat([pd.DataFrame([facts] * 4), runs([row] * 4)], axis=1))
    assert "| fair | 8,000 | 3 | occupation: 1.0 | 0% | - |" in page
    assert "| fair | 8,000 | 3 | intercept | 100% | 0.000 |" in page
    assert "| fair | 8,000 | 3 | age |" not in page
