"""The harness of experiments: what is on disk is not run again, and nothing depends on how it was run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from taciturn_research import harness
from taciturn_research.harness import FILE_NAME, Config, Measured, Results, Study, run, setting_of

GRID = [
    Config("toy", method, 1.0, setting_of(rule=rule), seed)
    for method in ("a", "b")
    for rule in ("first", "last")
    for seed in range(3)
]


def measured(config):
    return Measured(config, {"error": len(config.settings["rule"]) + 0.1 * config.seed})


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / FILE_NAME


@pytest.mark.parametrize("cut", [1, 20, 10_000])
def test_a_killed_run_goes_on_and_the_torn_line_is_dropped(path, tmp_path, cut):
    seen = []

    def killed(config):
        seen.append(config)
        if len(seen) == 6:
            raise KeyboardInterrupt
        return measured(config)

    with pytest.raises(KeyboardInterrupt):
        run(GRID, killed, Results(path, Measured))
    assert [line["config"]["seed"] for line in lines_of(path)] == [0, 1, 2, 0, 1]
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    # Without its end a line is still whole; of a longer cut the line is left out, not the one before it.
    path.write_bytes(whole[: -min(cut, len(last) - 1)])
    again = Results(path, Measured)
    assert (GRID[4] in again) is (cut == 1)
    # Reading changes nothing.
    assert len(path.read_bytes()) == len(whole) - min(cut, len(last) - 1)
    run(GRID, killed, again)
    assert seen[6:] == GRID[5 if cut == 1 else 4 :]
    run(GRID, measured, Results(tmp_path / "whole", Measured))
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()
    run(GRID, pytest.fail, Results(path, Measured))


def test_two_jobs_find_what_one_finds(path, tmp_path):
    run(GRID, measured, Results(path, Measured))
    run(GRID, measured, Results(tmp_path / "two", Measured), jobs=2)
    one, two = (sorted(each.read_text().splitlines()) for each in (path, tmp_path / "two"))
    assert one == two
    assert len(one) == len(GRID)


def test_additions_are_read_in_worker_processes(path, tmp_path):
    (tmp_path / "mine.py").write_text("import sys\nsys.my_number = 7.0\n")

    def mine(config):
        import sys

        return Measured(config, {"error": sys.my_number})

    results = Results(path, Measured)
    run(GRID[:4], mine, results, jobs=2, additions=(tmp_path / "mine.py",))
    assert {result.values["error"] for result in results} == {7.0}


def test_of_two_results_the_later_one_counts_and_some_are_not_kept(path):
    results = Results(path, Measured)
    for error in (1.0, 2.0):
        for config in GRID[:2]:
            results.add(Measured(config, {"error": error}))
    results.add(Measured(GRID[0], {"error": 3.0}))
    again = Results(path, Measured)
    # In the order in which they were written.
    assert [(result.config, result.values["error"]) for result in again] == [(GRID[1], 2.0), (GRID[0], 3.0)]
    kept = Results(path, Measured, lambda result: result.values["error"] < 2.0)
    assert [result.values["error"] for result in kept] == [1.0, 1.0]
    run(GRID[:1], measured, kept, again=True)
    assert kept[GRID[0]].values["error"] == 5.0


def test_forgetting_methods_drops_their_lines(path):
    results = Results(path, Measured)
    run(GRID, measured, results)
    results.forget({"a"})
    assert {line["config"]["method"] for line in lines_of(path)} == {"b"}
    assert GRID[0] not in results


def test_lines_of_an_earlier_edition_are_left_alone(path):
    path.parent.mkdir()
    path.write_text('{"case": "alon", "trial": 0}\n')
    results = Results(path, Measured)
    assert not list(results)
    results.add(measured(GRID[0]))
    assert len(lines_of(path)) == 2


def test_a_frame_has_a_column_for_every_setting_and_measure(path):
    results = Results(path, Measured)
    run(GRID, measured, results)
    frame = results.frame()
    assert list(frame.columns) == ["data_set", "method", "epsilon", "seed", "rows", "rule", "error"]
    assert frame.groupby("rule")["error"].mean().to_dict() == pytest.approx({"first": 5.1, "last": 4.1})
    assert results.frame(GRID[2:0:-1])["seed"].tolist() == [2, 1]


def test_warnings_are_ignored_as_asked_for(path):
    import warnings

    def warns(config):
        warnings.warn("odd", UserWarning, stacklevel=1)
        return measured(config)

    run(GRID[:1], warns, Results(path, Measured))
    with pytest.raises(UserWarning, match="odd"):
        run(GRID[1:], warns, Results(path, Measured), ignored=(DeprecationWarning,))


@pytest.fixture
def study(tmp_path):
    def report(frame):
        return f"{len(frame)} runs of {', '.join(sorted(frame['rule'].unique()))}\n"

    page = tmp_path / "repository" / "page.md"
    return Study("toys.study_toys", "A study.", lambda config: measured(config).values, report, page)


def test_a_study_writes_below_its_folder_unless_it_publishes(study, tmp_path):
    out = tmp_path / "out"
    arguments = ["--out", str(out), "--jobs", "1"]
    with pytest.raises(SystemExit, match="12 of 12 runs are missing"):
        study.main(GRID, [*arguments, "--report-only"])
    assert study.main(GRID, arguments) == 0
    assert (out / "page.md").read_text() == "12 runs of first, last\n"
    assert not study.page.exists()
    # A setting that is text is no trouble; runs of another grid in the folder do not count.
    assert study.main(GRID[:3], [*arguments, "--report-only", "--publish"]) == 0
    assert study.page.read_text() == "3 runs of first\n"
    assert study.parser().parse_args([]).out == Path("build/study_toys")


def test_a_config_is_its_settings_whatever_their_order():
    assert setting_of(b=1, a="x") == setting_of(a="x", b=1)
    config = Config("toy", "a", None, setting_of(rule="first", steps=3))
    assert config.settings == {"rule": "first", "steps": 3}
    assert config != replace(config, seed=1)
    assert harness.setting_of() == Config("toy", "a").setting
