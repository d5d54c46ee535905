import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from taciturn import BlockVoteSelector
from taciturn.cli import app
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.published import TwoStageSelector
from taciturn.reproduce import (
    EXPERIMENTS,
    Dataset,
    Experiment,
    Layout,
    Published,
    find_experiment,
    load_dataset,
    run_experiment,
    write_report,
)
from taciturn.reproduce import data as data_module
from taciturn.reproduce.dpsis import reference_top, scale_and_count, selections
from taciturn.reproduce.summary import Summary, judge, summarise

SHARED = Path(__file__).parents[3] / "shared" / "data"


def nothing(dataset):
    return dataset


def a_few_numbers(prepared, seed):
    draws = Stream.of(seed).uniforms(2)
    return [{"size": size, "value": float(draw)} for size, draw in zip((10, 20), draws, strict=True)]


PLAIN = Experiment(
    name="plain",
    paper="No paper",
    item="Table 0",
    summary="uniform numbers",
    relation="zero-out",
    scaling="none",
    notes=("Nothing to read.",),
    datasets=(),
    trials=6,
    quick_trials=2,
    prepare=nothing,
    run=a_few_numbers,
    layout=Layout(lines=("size",), across="size"),
)


def lines_of(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def rows_of(folder):
    return {(line["case"], line["trial"]): line["rows"] for line in lines_of(folder)}


@pytest.fixture
def no_data_anywhere(monkeypatch, tmp_path):
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny(monkeypatch, tmp_path, no_data_anywhere):
    """A folder with one data set of 6 records and 3 features, known to the loader as ``tiny``."""
    monkeypatch.setitem(data_module._FACTS, "tiny", data_module._Facts((6, 3), (4, 2), "its makers"))
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "tiny.npz", X=np.arange(18.0).reshape(6, 3), y=np.array([0, 0, 1, 0, 1, 0], dtype=np.int8))
    return folder


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
    assert [line["trial"] for line in lines_of(tmp_path / "killed")] == [0, 1, 2]
    # The kill may also fall into the middle of a line.
    file = tmp_path / "killed" / "results.jsonl"
    file.write_text(file.read_text()[:-30])
    run_experiment(replace(PLAIN, run=killed_at_the_fourth), tmp_path / "killed")
    run_experiment(PLAIN, tmp_path / "whole")
    # Trial 2, whose line was torn, and 3 to 5: none of the first two again.
    assert ran[4:] == [line["seed"] for line in lines_of(tmp_path / "whole")][2:]
    torn = [line for line in file.read_text().splitlines() if not line.endswith("}")]
    assert len(torn) == 1
    file.write_text("\n".join(line for line in file.read_text().splitlines() if line not in torn))
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")
    run_experiment(replace(PLAIN, run=killed_at_the_fourth), tmp_path / "killed")
    assert len(ran) == 8


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
    experiment = replace(PLAIN, datasets=("tiny",))
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


# ------------------------------------------------------------------ the data


def test_a_data_set_is_looked_for_in_three_places(tiny, tmp_path, monkeypatch):
    loaded = load_dataset("tiny", tiny)
    np.testing.assert_array_equal(loaded.X, np.arange(18.0).reshape(6, 3))
    np.testing.assert_array_equal(loaded.y, [0, 0, 1, 0, 1, 0])
    monkeypatch.setenv("TACITURN_DATA", str(tiny))
    assert load_dataset("tiny").digest == load_dataset("tiny", tmp_path / "elsewhere").digest == loaded.digest
    monkeypatch.delenv("TACITURN_DATA")
    cache = tmp_path / "cache" / "taciturn"
    cache.mkdir(parents=True)
    (tiny / "tiny.npz").rename(cache / "tiny.npz")
    assert load_dataset("tiny", tiny).digest == loaded.digest


def test_a_missing_data_set_is_described(tiny, tmp_path):
    (tiny / "tiny.npz").unlink()
    with pytest.raises(DataError) as raised:
        load_dataset("tiny", tiny)
    for part in ("tiny.npz", "6 x 3", str(tiny), str(tmp_path / "cache" / "taciturn"), "its makers", "TACITURN_DATA"):
        assert part in str(raised.value)
    with pytest.raises(ParameterError, match="name='magic': expected one of alon, borovecki"):
        load_dataset("magic")


LABELS = np.array([0, 0, 1, 0, 1, 0])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": np.ones((6, 4)), "y": LABELS}, "expected X of 6 x 3 numbers"),
        ({"X": np.ones((6, 3)), "y": LABELS[:5]}, "expected X of 6 x 3 numbers"),
        ({"X": np.full((6, 3), "1.5"), "y": LABELS}, "expected X of 6 x 3 numbers"),
        ({"X": np.ones((6, 3)), "y": 1 - LABELS}, "expected classes of 4, 2 records"),
        ({"X": np.ones((6, 3)), "y": LABELS - 1}, "expected classes of 4, 2 records"),
        ({"X": np.full((6, 3), np.nan), "y": LABELS}, "finite features"),
        ({"X": np.ones((6, 3))}, "expected an npz archive with arrays X and y"),
    ],
)
def test_a_file_with_something_else_is_refused(tiny, arrays, sentence):
    np.savez(tiny / "tiny.npz", **arrays)
    with pytest.raises(DataError, match=sentence):
        load_dataset("tiny", tiny)


def test_a_file_that_is_no_archive_is_refused(tiny):
    (tiny / "tiny.npz").write_bytes(b"something else")
    with pytest.raises(DataError, match="expected an npz archive"):
        load_dataset("tiny", tiny)


# ------------------------------------------------------------------ the report


def test_verdicts():
    assert summarise([{"a": 1, "value": 2.0}, {"a": 2, "value": 7}, {"a": 1, "value": 4.0}]) == [
        Summary({"a": 1}, 3.0, pytest.approx(2.0**0.5), 2),
        Summary({"a": 2}, 7.0, None, 1),
    ]
    near, far = (judge(Published({}, value), Summary({}, 3.0, 0.5, 9)) for value in (2.0, 1.9))
    assert (near.difference_in_sd, near.holds, str(near)) == (2.0, True, "holds")
    assert not far.holds
    exact = Published({}, 0.25, tolerance=0.01, reason="a misprint")
    assert judge(exact, Summary({}, 0.259, None, 1)).holds
    assert str(judge(exact, Summary({}, 0.261, None, 1))) == "does not hold: a misprint"


def test_the_report_has_the_rows(tmp_path, tiny):
    def run(prepared, seed):
        assert isinstance(prepared, Dataset)
        return [
            {"data set": "tiny", "method": "ours", "epsilon": epsilon, "value": epsilon / 8} for epsilon in (1.0, 2.0)
        ] + [{"data set": "tiny", "method": "theirs", "epsilon": 1.0, "value": 0.75}]

    experiment = replace(
        PLAIN,
        datasets=("tiny", "alon"),
        run=run,
        layout=Layout(lines=("data set", "method"), across="epsilon", mean_over="data set", figure=True),
        published=(Published({"data set": "tiny", "method": "theirs", "epsilon": 1.0}, 0.5, reason="a misprint"),),
        scaling="by hand",
    )
    skipped = run_experiment(experiment, tmp_path / "out", trials=3, data=tiny)
    assert len(skipped) == 1
    assert "alon.npz" in skipped[0]
    text = write_report((experiment, replace(PLAIN, name="unrun")), tmp_path / "out").read_text(encoding="utf-8")
    assert "| tiny | ours | 0.125 | 0.250 |" in text
    assert "| all | ours | 0.125 | 0.250 |" in text
    assert "| tiny | theirs | 1.0 | 0.5 | 0.750 | +0.250 | no spread | does not hold: a misprint |" in text
    assert "| No paper | Table 0 | plain | 0 of 1 numbers hold |" in text
    for part in ("Trials: 3 (the paper's number: 6)", "Relation: zero-out", "Scaling: by hand", "not available: alon"):
        assert part in text
    assert "unrun" not in text
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert {"taciturn", "source", "numpy"} <= set(results["versions"])
    found = results["experiments"]["plain"]
    assert (found["relation"], found["scaling"], found["not available"]) == ("zero-out", "by hand", ["alon"])
    assert found["seeds"]["tiny"] == [line["seed"] for line in lines_of(tmp_path / "out")]
    drawn = (tmp_path / "out" / "plain-1.png").is_file() and (tmp_path / "out" / "plain-1.svg").is_file()
    assert drawn == ("![plain](plain-1.png)" in text) == ("No figures" not in text)


def test_without_matplotlib_the_report_says_so(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr("taciturn.reproduce.figures.find_spec", lambda name: None)
    figure = replace(PLAIN, layout=replace(PLAIN.layout, figure=True))
    run_experiment(figure, tmp_path, trials=1)
    assert "No figures: matplotlib is not installed" in write_report((figure,), tmp_path).read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.png"))


# ------------------------------------------------------------------ DP-SIS


def made_up(n_rows=60, n_columns=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    y = (X[:, :3].sum(axis=1) > 0).astype(np.int64)
    return Dataset("made up", 7.0 * X + 3.0, y, "")


def test_noise_on_shared_counts_selects_what_whole_fits_select():
    prepared = scale_and_count(made_up())
    X, y = prepared.scaled.X, prepared.scaled.y
    differing = 0
    for seed in range(15):
        for label, k in prepared.sizes.items():
            chosen = selections(prepared, label, 20.0, seed)
            common = {"epsilon": 20.0, "n_features_to_select": k, "random_state": seed}
            for method, selector in (
                ("two-stage (published)", TwoStageSelector(**common)),
                ("BlockVoteSelector", BlockVoteSelector(delta=0.0, **common)),
            ):
                whole = selector.fit(X, y).get_support(indices=True).tolist()
                assert sorted(chosen[method]) == whole
                half = selector.set_params(epsilon=10.0).fit(X, y).get_support(indices=True).tolist()
                differing += half != whole
    # Another budget would be seen.
    assert differing > 10


def test_the_set_is_scaled_as_stated_and_zeros_are_no_reference():
    scaled = scale_and_count(made_up()).scaled
    np.testing.assert_allclose(scaled.X.min(axis=0), -1.0)
    np.testing.assert_allclose(scaled.X.max(axis=0), 1.0)
    assert np.abs(scaled.y).max() == pytest.approx(1.0)
    assert scaled.y.mean() == pytest.approx(0.0, abs=1e-12)
    assert np.flatnonzero(reference_top(np.array([0.0, -3.0, 1.0, 2.0]), 2)).tolist() == [1, 3]
    assert np.flatnonzero(reference_top(np.array([0.0, -3.0, 0.0, 2.0]), 3)).tolist() == [1, 3]


@pytest.mark.skipif(not (SHARED / "alon.npz").is_file(), reason="the data set alon is not here")
def test_dp_sis_and_the_sound_selector_find_more_at_a_larger_epsilon(tmp_path, no_data_anywhere):
    experiment = replace(find_experiment("dpsis-microarrays"), datasets=("alon",))
    assert run_experiment(experiment, tmp_path, trials=20, data=SHARED) == []
    means = {
        (summary.of["k"], summary.of["method"], summary.of["epsilon"]): summary.mean
        for summary in summarise(row for rows in rows_of(tmp_path).values() for row in rows)
    }
    # Nine coefficients of alon are not zero.
    assert means["5", "all there is to find", 1.0] == means["floor(log d)", "all there is to find", 1.0] == 1.0
    for method in ("DP-SIS (published)", "CorrelationSelector"):
        assert means["5", method, 0.1] < 0.1 < means["5", method, 20.0]


# ------------------------------------------------------------------ the command


def test_the_list_and_an_unknown_name():
    listed = CliRunner().invoke(app, ["reproduce", "list"], env={"COLUMNS": "200"})
    assert listed.exit_code == 0
    assert [each.name in listed.output for each in EXPERIMENTS] == [True] * len(EXPERIMENTS)
    with pytest.raises(ParameterError, match="name='magic': expected all or one of dpsis-table-1"):
        CliRunner().invoke(app, ["reproduce", "magic"], catch_exceptions=False)


def test_without_data_one_experiment_is_refused_and_all_are_skipped(tmp_path, no_data_anywhere):
    out = str(tmp_path / "out")
    with pytest.raises(DataError, match="none of its data sets can be used. data set 'alon': expected a file alon.npz"):
        CliRunner().invoke(app, ["reproduce", "dpsis-table-1", "-o", out], catch_exceptions=False)
    result = CliRunner().invoke(app, ["reproduce", "all", "--quick", "-o", out], env={"COLUMNS": "2000"})
    assert result.exit_code == 0
    skipped = [line for line in result.output.splitlines() if line.startswith("skipped: data set")]
    # Once each, although two experiments need them.
    assert len(skipped) == 15
    assert (tmp_path / "out" / "reproduction.md").is_file()


def test_help_does_not_load_the_experiments():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom taciturn.cli import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([name for name in ('taciturn.reproduce', 'sklearn', 'matplotlib') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
