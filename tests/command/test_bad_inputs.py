"""Five hundred bad inputs, each through the door of the command: one sentence, no cell, nothing left behind."""

import json
import shutil
import time

import bad_models
import bad_statements
import bad_text_tables
import bad_typed_tables
import pytest
from bad_inputs import CANARY, MARKS, Case, on_table
from commands import BOUNDS, csv_text, run

GROUPS = {
    "text": list(bad_text_tables.cases()),
    "typed": list(bad_typed_tables.cases()),
    "stated": list(bad_statements.cases()),
    "models": list(bad_models.cases()),
}
CASES = [case for group in GROUPS.values() for case in group]
HEAVY = list(bad_typed_tables.heavy())


def test_there_are_five_hundred_and_no_two_alike():
    assert len(CASES) >= 500
    assert len({case.name for case in CASES}) == len(CASES)
    seen = set()
    for case in CASES:
        contents = tuple((name, content if isinstance(content, str | bytes) else case.name) for name, content in
                         case.files.items())  # fmt: skip
        seen.add((case.arguments, contents))
    assert len(seen) == len(CASES)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A good table with a canary in it, its bounds and a model: what a bad input goes beside."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "patients.csv").write_text(csv_text(bad_text_tables.ROWS), encoding="utf-8")
    (folder / "bounds.toml").write_text(BOUNDS, encoding="utf-8")
    # Every column is used: predict does not read the others.
    fit = ("fit", "patients.csv", "--bounds", "bounds.toml", "--nonzero", "all", "--epsilon", 8, "--seed", 1)
    done = run(*fit, "-o", "model", cwd=folder)
    assert done.code == 0, done
    (folder / "model" / "model.json").rename(folder / "model.json")
    shutil.rmtree(folder / "model")
    return folder


def listing(folder):
    """Names and contents, as far as they have any."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


def check_refused(case: Case, done):
    """The exit code as documented, one sentence or a line of usage, and no cell."""
    assert done.code == case.code, done
    printed = done.out + done.err
    assert "Traceback" not in printed
    assert "a defect (" not in printed, done.err
    for mark in MARKS:
        assert mark not in printed, "a cell was quoted"
    assert done.out == ""
    lines = [line for line in done.err.splitlines() if line.strip() and not line.startswith("note: ")]
    if case.code == 2:
        assert lines[0].startswith(("Usage: taciturn", "Error: Option "))
        return
    # One sentence for every problem, and no sentence twice.
    assert 1 <= len(lines) == len(set(lines)) <= 21, lines
    for line in lines:
        assert line.startswith("taciturn: ")
        assert line.endswith(".")
        assert line.isprintable()
        assert len(line) < 1000
    assert any(case.says in line for line in lines)


# Every sixth in the quick tests, all of them at night.
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow if at % 12 else ()) for at, case in enumerate(CASES)]
    + [pytest.param(case, marks=pytest.mark.slow) for case in HEAVY],
    ids=lambda case: case.name[:60].encode("unicode_escape").decode(),
)
def test_bad_inputs(case, base, tmp_path):
    for path in base.iterdir():
        shutil.copy(path, tmp_path)
    if isinstance(case.files.get("model.json"), bad_models.Change):
        text = (base / "model.json").read_text(encoding="utf-8")
        (tmp_path / "model.json").write_text(case.files["model.json"].of(text), encoding="utf-8")
    else:
        case.write(tmp_path)
    before = listing(tmp_path)
    begun = time.process_time()
    done = run(*case.arguments, cwd=tmp_path)
    spent = time.process_time() - begun
    check_refused(case, done)
    assert listing(tmp_path) == before
    # Nothing is silent for ten seconds; those that take long are slow tests, where clocks may be read.
    assert case not in HEAVY or spent < 10.0


def test_the_base_is_good_so_that_only_the_input_is_bad(base, tmp_path):
    for path in base.iterdir():
        shutil.copy(path, tmp_path)
    for command in ("fit", "select", "predict", "score", "private score", "init", "compare"):
        done = run(*on_table(command, "patients.csv"), cwd=tmp_path)
        assert done.code == 0, (command, done)
        assert not any(mark in done.out + done.err for mark in MARKS)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        (tmp_path / "out").unlink(missing_ok=True)
    (tmp_path / "t.csv").write_text(csv_text(bad_statements.FOLLOWED, header=bad_statements.OUTCOMES), encoding="utf-8")
    for bounds in (bad_statements.OF_TIMES, bad_statements.OF_WEIGHTED_TIMES, bad_statements.OF_COUNTS):
        (tmp_path / "bounds.toml").write_text(bounds, encoding="utf-8")
        done = run(*on_table("fit", "t.csv"), cwd=tmp_path)
        assert done.code == 0, done
        assert not any(mark in done.out + done.err for mark in MARKS)
        shutil.rmtree(tmp_path / "out")
    for suffix in ("parquet", "feather", "arrow"):
        table = bad_typed_tables.written(bad_typed_tables.changed(), suffix)
        (tmp_path / f"t.{suffix}").write_bytes(table)
        assert run(*on_table("predict", f"t.{suffix}"), cwd=tmp_path).code == 0
    assert json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["target"] == "ill"


def test_the_check_has_teeth():
    case = Case("x", ())
    from commands import Run

    good = Run(1, "", "taciturn: x: expected y; do z.\n")
    check_refused(case, good)
    for bad in (
        Run(0, "", ""),
        Run(1, "a result\n", good.err),
        Run(1, "", good.err + "Traceback (most recent call last):\n"),
        Run(1, "", good.err * 2),
        Run(1, "", f"taciturn: x: expected y, got {CANARY}; do z.\n"),
        Run(1, "", "taciturn: a defect (ValueError in f, line 3); please report it.\n"),
        Run(1, "", "taciturn: x: \u202e expected y; do z.\n"),
        Run(-11, "", ""),
    ):
        with pytest.raises(AssertionError):
            check_refused(case, bad)
