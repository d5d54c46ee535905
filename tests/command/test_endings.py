"""How commands end: nobody is led to pay twice, and what was spent is written down before it is."""

import errno
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from commands import INSTALLED, one_sentence, run, write_patients

import taciturn
from taciturn.cli import output
from taciturn.core.errors import DataError
from taciturn.fitting import paths
from taciturn.kernels import kendall
from taciturn.mechanisms import rounded_gaussian

FIT = ["fit", "patients.csv", "--bounds", "bounds.toml", "--nonzero", "3", "--epsilon", "4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, its bounds and a model."""
    place = tmp_path_factory.mktemp("endings")
    write_patients(place)
    assert run(*FIT, "--seed", 1, "-o", "model", cwd=place).code == 0
    return place


class FullDisk(io.StringIO):
    """A file that takes nothing."""

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


def ended(folder, arguments, stdout, stderr=subprocess.PIPE):
    """Exit code and standard error of the installed command."""
    started = subprocess.Popen([INSTALLED, *arguments], cwd=folder, stdout=stdout, stderr=stderr, text=True)
    return started.communicate()[1], started.returncode


# ------------------------------------------------------------------ standard output that breaks off


@pytest.mark.parametrize(
    ("arguments", "complete", "code"),
    [
        ([*FIT, "-o", "full"], "the model in full is complete and its budget is spent: do not fit it again.", 3),
        (
            ["select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "-o", "selected"],
            "the selection in selected is complete and its budget is spent: do not select again.",
            3,
        ),
        (
            ["score", "model", "patients.csv", "--epsilon", "1", "-o", "full.json"],
            "the score in full.json is complete and its budget is spent: do not score again.",
            3,
        ),
        (["predict", "model", "patients.csv", "-o", "full.csv"], "the predictions in full.csv are complete.", 3),
        (["init", "patients.csv", "--target", "ill", "-o", "t.toml"], "the template t.toml is complete.", 3),
        (["score", "model", "patients.csv"], "nothing was spent.", 1),
        (["show", "model"], "nothing was spent.", 1),
        (["compare", "--synthetic", "40x10", "--trials", "1"], "nothing was spent.", 1),
    ],
)
def test_a_full_disk_for_standard_output_does_not_undo_the_work(folder, arguments, complete, code):
    done = run(*arguments, cwd=folder, out=FullDisk())
    assert done.code == code, done
    assert f"taciturn: standard output: no space left on device; {complete}" in done.err
    assert "Traceback" not in done.err
    # What is said to be complete is there.
    for name in arguments:
        if name in ("full", "selected", "full.json", "full.csv", "t.toml"):
            assert (folder / name).exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
@pytest.mark.slow
def test_the_device_that_is_always_full(folder):
    with open("/dev/full", "w") as device:
        err, code = ended(folder, [*FIT, "-o", "at-dev-full"], device)
        assert code == 3
        assert err.splitlines() == [
            "taciturn: standard output: no space left on device; the model in at-dev-full is complete and its budget "
            "is spent: do not fit it again."
        ]
        assert (folder / "at-dev-full" / "model.json").is_file()
        # Notes and bars have nowhere to go, which is no reason to lose a fit.
        _, code = ended(folder, [*FIT, "-o", "deaf"], subprocess.DEVNULL, device)
        assert code == 0


def test_a_reader_that_goes_away(folder):
    receiving, sending = os.pipe()
    os.close(receiving)
    err, code = ended(folder, [*FIT, "-o", "piped"], sending)
    os.close(sending)
    assert code == 3
    (line,) = err.splitlines()
    assert "broken pipe; the model in piped is complete and its budget is spent" in line


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError("SECRET")])
def test_nothing_that_happens_while_a_model_is_shown_undoes_it(folder, monkeypatch, error):
    def failing(model):
        raise error

    monkeypatch.setattr("taciturn.cli.fitting.print_model", failing)
    name = f"shown-{type(error).__name__}-{getattr(error, '__name__', '')}"
    done = run(*FIT, "-o", name, cwd=folder)
    assert done.code == 3
    assert f"the model in {name} is complete and its budget is spent" in done.err
    assert "SECRET" not in done.err
    assert (folder / name / "model.json").is_file()


# ------------------------------------------------------------------ signals


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal that it could handle")
def test_a_request_to_terminate_leaves_what_an_interrupt_leaves(tmp_path):
    write_patients(tmp_path)
    # A fit that waits after its noise is drawn, in a process of its own.
    code = (
        "import sys, time\nfrom taciturn import SparseClassifier\nfrom taciturn.cli import main\n"
        "fit = SparseClassifier.fit\n"
        "def slow(self, X, y=None, persons=None):\n    fit(self, X, y)\n    open('drawn', 'w').close()\n"
        "    time.sleep(60)\n"
        "SparseClassifier.fit = slow\n"
        f"sys.argv = ['taciturn', *{FIT!r}, '-o', sys.argv[1]]\nmain()\n"
    )
    ends = []
    for number in (signal.SIGTERM, signal.SIGINT):
        name = f"model-{int(number)}"
        started = subprocess.Popen([sys.executable, "-c", code, name], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        for _ in range(600):
            if (tmp_path / "drawn").exists():
                break
            time.sleep(0.1)
        started.send_signal(number)
        _, err = started.communicate(timeout=30)
        (tmp_path / "drawn").unlink()
        assert [path.name for path in (tmp_path / name).iterdir()] == ["certificate.json"]
        ends.append((started.returncode, err.replace(name, "model")))
    assert [code for code, _ in ends] == [143, 130]
    assert ends[0][1] == ends[1][1]
    assert "interrupted; no result was written." in ends[0][1]


# A view that has no last row, and one that has no first.
VIEW = (
    "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT x AS age, x AS dose, 1 AS smoker, 'hill' AS region, 'yes' AS ill FROM c"
)
# The command, which leaves a file once it has opened the table.
OPENED = (
    "import sys\nfrom taciturn.cli import main\nfrom taciturn.tables import sheets\nchoose = sheets._choose\n"
    "def opened(*what):\n    open('opened', 'w').close()\n    return choose(*what)\n"
    "sheets._choose = opened\nsys.argv[0] = 'taciturn'\nmain()\n"
)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal that it could handle")
@pytest.mark.parametrize("query", [VIEW, f"{VIEW} WHERE x < 0"], ids=["endless", "silent"])
@pytest.mark.parametrize(
    "arguments",
    [
        [*FIT[:1], "t.sqlite", *FIT[2:], "-o", "out"],
        ["select", "t.sqlite", "--bounds", "bounds.toml", "--keep", "2", "-o", "out"],
        ["predict", "model", "t.sqlite", "-o", "out"],
        ["score", "model", "t.sqlite", "--epsilon", "1", "-o", "out"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_table_that_never_ends_ends_at_a_request(folder, tmp_path, arguments, query, number):
    for name in ("bounds.toml", "model"):
        (tmp_path / name).symlink_to(folder / name)
    database = sqlite3.connect(tmp_path / "t.sqlite")
    database.execute(query)
    database.close()
    before = {path.name for path in tmp_path.iterdir()}
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    started = subprocess.Popen(
        [sys.executable, "-c", OPENED, *arguments], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "opened").exists():
        assert started.poll() is None, started.communicate()
        time.sleep(0.05)
    started.send_signal(number)
    sent = time.monotonic()
    _, err = started.communicate(timeout=60)
    assert time.monotonic() - sent < 3.0
    assert started.returncode == 128 + number, err
    assert "interrupted; no result was written." in err
    assert "Traceback" not in err
    # Neither a result nor a part of the copy is left.
    assert {path.name for path in tmp_path.iterdir()} == before | {"opened"}


# ------------------------------------------------------------------ score


def spending(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["format"] == "taciturn spending"
    assert "count the whole budget as spent" in content["statement"]
    return content["epsilon"], content["delta"], content["relation"]


def test_a_score_is_stated_before_noise_is_drawn(folder, monkeypatch):
    path = folder / "stated.json"
    private_score, seen = taciturn.private_score, []

    def watching(*arguments, **budget):
        seen.append(spending(path))
        return private_score(*arguments, **budget)

    monkeypatch.setattr(taciturn, "private_score", watching)
    options = ["--epsilon", 0.5, "--delta", 1e-7, "-o", path.name]
    done = run("score", "model", "patients.csv", *options, cwd=folder)
    assert done.code == 0, done
    assert seen == [(0.5, 1e-7, "zero-out")]
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["format"] == "taciturn score"
    assert written["certificate"]["epsilon"] <= 0.5
    # A certificate is never written over.
    before = path.read_bytes()
    assert "a file that is not there yet" in one_sentence(run("score", "model", "patients.csv", *options, cwd=folder))
    assert path.read_bytes() == before
    assert len(seen) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_a_score_that_dies_leaves_the_statement_of_what_was_spent(folder, monkeypatch, error):
    def dying(*arguments, **budget):
        raise error

    monkeypatch.setattr(taciturn, "private_score", dying)
    path = folder / f"dead-{error.__name__}.json"
    done = run("score", "model", "patients.csv", "--epsilon", 0.5, "-o", path.name, cwd=folder)
    assert done.code == (130 if error is KeyboardInterrupt else 1)
    assert f"{path.name} states what counts as spent" in done.err
    assert spending(path) == (0.5, 0.0, "zero-out")


def test_a_score_that_is_refused_has_spent_nothing(folder, monkeypatch):
    one_sentence(run("score", "model", "patients.csv", "--epsilon", -1, "-o", "refused.json", cwd=folder))

    def refusing(*arguments, **budget):
        raise DataError("X: expected something else; change it.")

    monkeypatch.setattr(taciturn, "private_score", refusing)
    one_sentence(run("score", "model", "patients.csv", "--epsilon", 1, "-o", "refused.json", cwd=folder))
    one_sentence(run("score", "model", "missing.csv", "--epsilon", 1, "-o", "refused.json", cwd=folder))
    assert not list(folder.glob("refused*"))


def test_a_private_score_is_always_written_somewhere(folder):
    done = run("score", "model", "patients.csv", "--epsilon", 1, cwd=folder)
    assert done.code == 0
    assert "written: score.json" in done.out
    assert json.loads((folder / "score.json").read_text(encoding="utf-8"))["certificate"]["epsilon"] <= 1.0


# ------------------------------------------------------------------ files


def test_files_are_their_owners_alone_unless_they_are_public(folder, tmp_path):
    outputs = {
        "fit": [*FIT, "-o"],
        "select": ["select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "-o"],
        "predict": ["predict", "model", "patients.csv", "-o"],
        "score": ["score", "model", "patients.csv", "--epsilon", "1", "-o"],
        "exact": ["score", "model", "patients.csv", "-o"],
    }
    before = os.umask(0o022)
    try:
        for name, arguments in outputs.items():
            # What a killed run left open is not written into.
            (tmp_path / f"{name}.part").touch(mode=0o666)
            for public, file_mode, folder_mode in ((False, 0o600, 0o700), (True, 0o644, 0o755)):
                place = tmp_path / (f"{name}.public" if public else name)
                done = run(*arguments, place, *["--public"] * public, cwd=folder)
                assert done.code == 0, done
                assert place.is_dir() == (name in ("fit", "select"))
                written = list(place.iterdir()) if place.is_dir() else [place]
                assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {file_mode}
                if place.is_dir():
                    assert stat.S_IMODE(place.stat().st_mode) == folder_mode
    finally:
        os.umask(before)
    command = json.loads((tmp_path / "fit.public" / "model.json").read_text(encoding="utf-8"))["command"]
    assert command.endswith(" --public")


def test_files_reach_the_disk_before_their_names_and_names_before_noise(tmp_path, monkeypatch):
    """Every rename is of something synced, and is followed by a sync of its folder, before the fit begins."""
    write_patients(tmp_path)
    events = []
    fsync, replace = os.fsync, os.replace

    def synced(number):
        events.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{number}"))))
        fsync(number)

    def replaced(source, target):
        events.append(("name", os.path.basename(source), os.path.basename(target)))
        replace(source, target)

    fit_whole = taciturn.SparseClassifier.fit

    def fit(self, X, y=None, persons=None):
        events.append(("noise",))
        return fit_whole(self, X, y)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(taciturn.SparseClassifier, "fit", fit)
    assert run(*FIT, "-o", "deep/model", cwd=tmp_path).code == 0
    one_file = [
        ("sync", "certificate.json.part"),
        ("name", "certificate.json.part", "certificate.json"),
        ("sync", "model.unfinished"),
    ]
    before = events[: events.index(("noise",))]
    # The new folders, each in the one that holds it, then the statement.
    assert before == [("sync", "deep"), ("sync", tmp_path.name), *one_file]
    assert events[-2:] == [("name", "model.unfinished", "model"), ("sync", "deep")]
    events.clear()
    assert run("predict", "deep/model", "patients.csv", "-o", "out.csv", cwd=tmp_path).code == 0
    assert events == [("sync", "out.csv.part"), ("name", "out.csv.part", "out.csv"), ("sync", tmp_path.name)]


def test_a_folder_that_cannot_be_synced_stops_a_fit_before_its_noise(tmp_path, monkeypatch):
    write_patients(tmp_path)

    def broken(folder):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(output, "_sync", broken)
    drawn = []
    monkeypatch.setattr(taciturn.SparseClassifier, "fit", lambda self, X, y, persons=None: drawn.append(1))
    assert "input/output error" in one_sentence(run(*FIT, "-o", "model", cwd=tmp_path))
    assert not drawn


# ------------------------------------------------------------------ compilation


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("taciturn.mechanisms.rounded_gaussian.propose", FIT),
        ("taciturn.fitting.paths.advance_dense", [*FIT, "--method", "frank-wolfe"]),
        (
            "taciturn.kernels.kendall.concordance",
            ["select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "--method", "kendall"],
        ),
        (
            "taciturn.mechanisms.rounded_gaussian.propose",
            ["score", "model", "patients.csv", "--epsilon", "1", "--delta", "0.3"],
        ),
    ],
)
def test_what_cannot_be_compiled_fails_before_anything_is_spent(folder, monkeypatch, kernel, arguments):
    def broken(*arguments):
        raise OSError(errno.ENOMEM, "no room to compile")

    for warm_up in (rounded_gaussian.warm_up, paths.warm_up, kendall.warm_up):
        warm_up.cache_clear()
    monkeypatch.setattr(kernel, broken)
    assert run(*arguments, "-o", "uncompiled", cwd=folder).code != 0
    assert not (folder / "uncompiled").exists()
    assert not (folder / "uncompiled.unfinished").exists()
