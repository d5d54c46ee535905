import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from taciturn.app.cli.main import app
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.datasets import DATASETS
from taciturn_research.reproduce import EXPERIMENTS, run_experiment
from taciturn_research.reproduce.experiment import (
    SYNTHETIC,
    Case,
    Claim,
    Experiment,
    Finding,
    Numbers,
    Picture,
    Published,
    Summary,
    Table,
    judge_claim,
    judge_items,
    judge_number,
)
from taciturn_research.reproduce.runner import source_digest


def nothing(dataset, **options):
    return dataset


def a_few_numbers(prepared, seed):
    draws = Stream.of(seed).uniforms(2)
    return [{"size": size, "value": float(draw)} for size, draw in zip((10, 20), draws, strict=True)]


PLAIN = Experiment(
    name="plain",
    paper="No paper",
    summary="uniform numbers",
    relation="zero-out",
    scaling="none",
    notes=("Nothing to read.",),
    trials=6,
    quick_trials=2,
    prepare=nothing,
    run=a_few_numbers,
)


def lines_of(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def rows_of(folder):
    return {(line["config"]["data_set"], line["config"]["seed"]): line["rows"] for line in lines_of(folder)}


# ------------------------------------------------------------------ the runner


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    ran = []

    def killed_at_the_fourth(prepared, seed):
        ran.append(seed)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return a_few_numbers(prepared, seed)

    with pytest.raises(KeyboardInterrupt):
        run_experiment(replace(PLAIN, run=killed_at_the_fourth), tmp_path / "killed")
    assert [line["config"]["seed"] for line in lines_of(tmp_path / "killed")] == [0, 1, 2]
    # The kill may also fall into the middle of a line.
    file = tmp_path / "killed" / "results.jsonl"
    file.write_text(file.read_text()[:-30])
    run_experiment(replace(PLAIN, run=killed_at_the_fourth), tmp_path / "killed")
    run_experiment(PLAIN, tmp_path / "whole")
    # Trial 2, whose line was torn, and 3 to 5: none of the first two again.
    assert ran[4:] == [line["seed"] for line in lines_of(tmp_path / "whole")][2:]
    # The torn line is gone. A last line that is whole counts, with or without an end.
    file.write_text(file.read_text().rstrip("\n"))
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")
    run_experiment(replace(PLAIN, run=killed_at_the_fourth), tmp_path / "killed")
    assert len(ran) == 8


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs_or_trials_asked_for(tmp_path):
    run_experiment(PLAIN, tmp_path / "one")
    run_experiment(PLAIN, tmp_path / "two", jobs=2)
    run_experiment(PLAIN, tmp_path / "quick", quick=True)
    one, two, quick = (rows_of(tmp_path / name) for name in ("one", "two", "quick"))
    assert one == two
    assert len(one) == 6
    assert quick == {key: rows for key, rows in one.items() if key[1] < 2}
    # Trials differ from each other, and so do experiments: a shared seed would be seen.
    assert len({json.dumps(rows) for rows in one.values()}) == 6
    run_experiment(replace(PLAIN, name="other"), tmp_path / "other", trials=1)
    assert rows_of(tmp_path / "other")["synthetic", 0] != one["synthetic", 0]


def test_trials_of_another_state_of_the_code_or_of_another_file_are_run_again(tmp_path, tiny):
    experiment = replace(PLAIN, cases=(Case("tiny", dataset="tiny"),))
    out = tmp_path / "out"
    run_experiment(experiment, out, trials=2, data=tiny)
    run_experiment(experiment, out, trials=2, data=tiny)
    assert len(lines_of(out)) == 2
    np.savez(tiny / "tiny.npz", X=np.zeros((6, 3)), y=np.array([0, 0, 1, 0, 1, 0]))
    run_experiment(experiment, out, trials=2, data=tiny)
    assert len({line["data"] for line in lines_of(out)}) == 2
    assert len(lines_of(out)) == 4
    file = out / "results.jsonl"
    file.write_text(file.read_text().replace('"source": "', '"source": "older'))
    run_experiment(experiment, out, trials=2, data=tiny)
    assert len(lines_of(out)) == 6


def test_bad_numbers_of_trials_and_jobs_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ParameterError, match="trials=0: expected an integer >= 1"):
        run_experiment(PLAIN, tmp_path / "out", trials=0)
    with pytest.raises(ParameterError, match="jobs=0: expected an integer >= 1"):
        run_experiment(PLAIN, tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ cases and their data


def test_options_settings_and_missing_data(tmp_path, tiny, no_data_anywhere):
    seen = []

    def prepare(dataset, **options):
        seen.append((None if dataset is None else dataset.X.shape, options))
        return 0

    experiment = replace(
        PLAIN,
        prepare=prepare,
        cases=(
            Case("small", options={"rows": 10}, setting="quick"),
            Case("large", setting="full"),
            Case("tiny", dataset="tiny"),
            Case("absent", dataset="alon"),
        ),
    )
    skipped = run_experiment(experiment, tmp_path / "out", data=tiny, quick=True)
    assert seen == [(None, {"rows": 10}), ((6, 3), {})]
    assert {case for case, _ in rows_of(tmp_path / "out")} == {"small", "tiny"}
    assert len(skipped) == 1
    assert "alon.npz" in skipped[0]
    run_experiment(experiment, tmp_path / "out", data=tiny, trials=1)
    assert {case for case, _ in rows_of(tmp_path / "out")} == {"small", "tiny", "large"}


def test_a_file_that_is_not_the_set_is_skipped_with_its_reason(tmp_path, tiny):
    np.savez(tiny / "tiny.npz", X=np.zeros((5, 3)), y=np.zeros(5, dtype=int))
    experiment = replace(PLAIN, cases=(Case("tiny", dataset="tiny"), SYNTHETIC))
    (sentence,) = run_experiment(experiment, tmp_path / "out", data=tiny)
    assert "'tiny'" in sentence
    assert {case for case, _ in rows_of(tmp_path / "out")} == {"synthetic"}


def test_the_digest_is_of_what_the_numbers_depend_on(tmp_path):
    """Each paper's folder and the rooms below count, other papers' folders and the pages do not."""
    by_folder = {}
    for experiment in EXPERIMENTS:
        by_folder.setdefault(experiment.run.__module__.rpartition(".")[0], set()).add(source_digest(experiment))
    assert all(len(digests) == 1 for digests in by_folder.values())
    assert len({digest for digests in by_folder.values() for digest in digests}) == len(by_folder) > 2


# ------------------------------------------------------------------ numbers and verdicts


def test_numbers():
    numbers = Numbers(
        [{"a": 1, "b": "x", "value": 2.0}, {"a": 2, "b": "x", "value": 7}, {"a": 1, "b": "x", "value": 4}]
    )
    assert numbers.summaries() == [
        Summary({"a": 1, "b": "x"}, 3.0, pytest.approx(2.0**0.5), 2),
        Summary({"a": 2, "b": "x"}, 7.0, None, 1),
    ]
    assert [summary.mean for summary in numbers.summaries({"a": (2, 5)})] == [7.0]
    assert numbers.values({"a": 1}) == [2.0, 4.0]
    for of in ({"a": 3}, {"b": "x"}, {"c": 1}):
        with pytest.raises(LookupError):
            numbers.summary(of)
    assert not Numbers([])


def of_values(*values):
    return Numbers([{"a": 1, "value": value} for value in values])


def test_printed_numbers_are_judged_by_the_spread_of_a_trial():
    near, far = (judge_number(Published("Table 1", {"a": 1}, value), of_values(2.5, 3.5)) for value in (4.41, 4.42))
    assert near.difference_in_sd == pytest.approx(-1.41 / 0.5**0.5)
    assert (near.outcome, str(near), far.outcome) == ("holds", "holds", "does not hold")
    exact = Published("Table 1", {"a": 1}, 0.25, tolerance=0.01, reason="a misprint")
    assert judge_number(exact, of_values(0.259)).outcome == "holds"
    assert str(judge_number(exact, of_values(0.261))) == "does not hold: a misprint"
    # Where there is a little spread, the last printed digit still counts.
    assert judge_number(exact, of_values(0.2589, 0.2591)).outcome == "holds"
    assert judge_number(replace(exact, tolerance=0.0), of_values(0.2589, 0.2591)).outcome == "does not hold"
    # A key too few or too many is another number.
    for of in ({"a": 2}, {"a": 1, "b": 2}, {}):
        assert judge_number(replace(exact, of=of), of_values(0.25)).outcome == "not run"


def test_claims_hold_or_not_or_were_not_run():
    larger = Claim("Figure 1", "it is larger", lambda n: Finding(n.mean({"a": 1}) > 1.0, f"{n.mean({'a': 1}):g}"), "x")
    assert judge_claim(larger, of_values(2.0)).outcome == "holds"
    smaller = judge_claim(larger, of_values(0.5))
    assert (smaller.evidence, str(smaller)) == ("0.5", "does not hold: x")
    assert str(judge_claim(larger, Numbers([]))) == "not run: data not available"


def test_verdicts_are_counted_by_table_and_figure():
    experiment = replace(
        PLAIN,
        published=(
            Published("Table 1", {"a": 1}, 2.0),
            Published("Table 1", {"a": 1}, 9.0),
            Published("Table 1", {"a": 2}, 1.0),
        ),
        claims=(
            Claim("Table 1", "so", lambda n: Finding(True, "")),
            Claim("Figure 2", "so", lambda n: Finding(False, "")),
        ),
        tables=(Table("Figure 3", ("a",), "a"),),
        pictures=(Picture("Figure 3", "t", "bars", "a", "a", "x", "y"),),
    )
    words = {overall.item: str(overall) for overall in judge_items(experiment, of_values(1.9, 2.0, 2.1))}
    assert words == {
        "Table 1": "1 of 2 numbers hold; 1 of 3 numbers not run, data not available; 1 of 1 claims hold",
        "Figure 2": "0 of 1 claims hold",
        "Figure 3": "drawn; the paper prints no number",
    }


# ------------------------------------------------------------------ all experiments


def test_experiments_are_complete_and_told_apart():
    names = [experiment.name for experiment in EXPERIMENTS]
    assert len(set(names)) == len(names)
    for experiment in EXPERIMENTS:
        assert experiment.quick_trials <= experiment.trials
        assert experiment.items, experiment.name
        assert experiment.cases_of(quick=True), experiment.name
        assert len({case.name for case in experiment.cases}) == len(experiment.cases)
        for case in experiment.cases:
            assert case.dataset is None or case.dataset in DATASETS
        # A printed number is judged once.
        places = [(number.item, tuple(sorted(number.of.items(), key=str))) for number in experiment.published]
        assert len(set(places)) == len(places), experiment.name


# ------------------------------------------------------------------ the command


def test_the_list_and_an_unknown_name():
    listed = CliRunner().invoke(app, ["reproduce", "list"], env={"COLUMNS": "200"})
    assert listed.exit_code == 0
    assert [each.name in listed.output for each in EXPERIMENTS] == [True] * len(EXPERIMENTS)
    with pytest.raises(ParameterError, match="name='magic': expected all or one of"):
        CliRunner().invoke(app, ["reproduce", "magic"], catch_exceptions=False)


def test_without_data_one_experiment_is_refused_and_all_are_skipped(tmp_path, no_data_anywhere, monkeypatch):
    out = str(tmp_path / "out")
    absent = replace(PLAIN, name="absent", cases=(Case("alon", dataset="alon"), Case("su", dataset="su")))
    twice = replace(absent, name="twice")
    monkeypatch.setattr("taciturn_research.reproduce.EXPERIMENTS", (absent, twice, PLAIN))
    with pytest.raises(DataError, match="none of its data sets can be used. data set 'alon': expected a file alon.npz"):
        CliRunner().invoke(app, ["reproduce", "absent", "-o", out], catch_exceptions=False)
    result = CliRunner().invoke(app, ["reproduce", "all", "--quick", "-o", out], env={"COLUMNS": "2000"})
    assert result.exit_code == 0
    skipped = [line for line in result.output.splitlines() if line.startswith("skipped: data set")]
    # Once each, although two experiments need them.
    assert len(skipped) == 2
    assert {case for case, _ in rows_of(tmp_path / "out")} == {"synthetic"}
    assert (tmp_path / "out" / "reproduction.md").is_file()
    assert (tmp_path / "out" / "reproduction.html").is_file()


def test_help_does_not_load_the_experiments():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom taciturn.app.cli.main import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([name for name in ('taciturn_research.reproduce', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
