"""How commands end: nobody is led to pay twice, and what was spent is written down before it is."""

import csv
import errno
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import nullcontext, suppress

import pytest
from commands import BOUNDS, INSTALLED, one_sentence, run, write_patients
from studies import write_key

import taciturn
from taciturn.app.cli import output, screen
from taciturn.app.cli import show as cli_show
from taciturn.core.errors import DataError, ParameterError
from taciturn.kernels import ranks
from taciturn.methods.frank_wolfe import run as frank_wolfe_run
from taciturn.methods.scores import function as scores
from taciturn.privacy import mechanisms

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
    def failing(model, full):
        raise error

    monkeypatch.setattr("taciturn.app.cli.fit.print_model", failing)
    name = f"shown-{type(error).__name__}-{getattr(error, '__name__', '')}"
    done = run(*FIT, "-o", name, cwd=folder)
    assert done.code == 3
    assert f"the model in {name} is complete and its budget is spent" in done.err
    assert "SECRET" not in done.err
    assert (folder / name / "model.json").is_file()


DONE = "is complete and its budget is spent: do not"


def failing(*arguments, **options):
    raise OverflowError("SECRET: cannot convert float infinity to integer")


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("taciturn.app.report.model.render", 3),
        ("taciturn.app.report.model.coefficient_chart", 3),
        ("taciturn.app.report.page.Outline.next_drawing", 3),
        ("taciturn.app.cli.output.OutputFolder.sign", 3),
        ("taciturn.app.cli.tables.Table.close", 3),
        ("taciturn.app.cli.fit.print_model", 3),
        ("taciturn.app.cli.fit.print_certificate", 3),
        ("taciturn.app.cli.fit.print_payer", 3),
        ("taciturn.app.cli.fit.print_line", 3),
        ("rich.console.Console.print", 3),
        # Progress and notes are worth no exit code.
        ("rich.progress.Progress.start", 0),
        ("rich.progress.Progress.stop", 0),
        ("rich.progress.Progress.update", 0),
        ("taciturn.app.cli.screen._NeverFailingFile.write", 0),
    ],
)
def test_no_failure_of_printing_or_drawing_removes_a_finished_model(folder, tmp_path, monkeypatch, place, code):
    monkeypatch.setattr(place, failing)
    done = run(*FIT, "--full", "-o", tmp_path / "model", cwd=folder)
    assert done.code == code, done
    assert (DONE in done.err) == (code == 3 and place != "rich.console.Console.print")
    assert "SECRET" not in done.err + done.out
    monkeypatch.undo()
    model = taciturn.load(tmp_path / "model" / "model.json")
    certificate = json.loads((tmp_path / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate == json.loads(model[-1].certificate_.to_json())
    # What failed can be done again, and the files hold together without it.
    (tmp_path / "model" / "report.html").unlink(missing_ok=True)
    assert run("report", tmp_path / "model", "-o", tmp_path / "model" / "report.html").code == 0
    assert run("verify", tmp_path / "model").code == 0


def test_a_model_that_cannot_be_written_leaves_its_certificate_alone(folder, tmp_path, monkeypatch):
    """The test above would pass for files that are written before the fit."""
    monkeypatch.setattr("taciturn.app.model_file.Model.to_json", failing)
    done = run(*FIT, "-o", tmp_path / "model", cwd=folder)
    assert done.code == 1
    assert "note: noise was drawn; " in done.err
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["certificate.json"]


def test_a_model_without_its_page_is_signed(folder, tmp_path, monkeypatch):
    key = write_key(tmp_path / "key.pem")
    monkeypatch.setattr("taciturn.app.report.model.render", failing)
    done = run(*FIT, "--sign", key, "-o", tmp_path / "model", cwd=folder)
    assert done.code == 3
    assert "do not fit it again; taciturn report writes its page." in done.err
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "certificate.json", "model.json", "signature.json"
    ]  # fmt: skip
    assert run("verify", tmp_path / "model").code == 0


@pytest.mark.parametrize("place", ["fit._print_names", "fit.print_certificate", "output.OutputFolder.sign"])
def test_no_failure_of_printing_removes_a_finished_selection(folder, tmp_path, monkeypatch, place):
    monkeypatch.setattr(f"taciturn.app.cli.{place}", failing)
    arguments = ["select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "-o", tmp_path / "selected"]
    done = run(*arguments, cwd=folder)
    assert (done.code, DONE in done.err) == (3, True)
    assert len(json.loads((tmp_path / "selected" / "selection.json").read_text(encoding="utf-8"))["features"]) == 2


@pytest.mark.parametrize("place", ["show.print_score", "show.sign_beside", "show._print_measures"])
def test_no_failure_of_printing_removes_a_finished_score(folder, tmp_path, monkeypatch, place):
    monkeypatch.setattr(f"taciturn.app.cli.{place}", failing)
    done = run("score", "model", "patients.csv", "--epsilon", 1, "-o", tmp_path / "score.json", cwd=folder)
    assert (done.code, DONE in done.err) == (3, True)
    assert json.loads((tmp_path / "score.json").read_text(encoding="utf-8"))["format"] == "taciturn score"


def test_a_complete_folder_that_cannot_be_moved_is_named(folder, tmp_path, monkeypatch):
    replace = os.replace

    def refusing(source, target):
        if os.path.basename(target) == "model":
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    done = run(*FIT, "-o", tmp_path / "model", cwd=folder)
    assert (done.code, DONE in done.err) == (3, True)
    assert "model.unfinished could not be moved: the files are there." in done.err
    assert (tmp_path / "model.unfinished" / "model.json").is_file()


@pytest.mark.parametrize(
    "bounds",
    [
        BOUNDS.replace("lower = 0\nupper = 100", "lower = -1e308\nupper = 1e308"),
        BOUNDS.replace("lower = 0\nupper = 100", "lower = 0\nupper = 1e-323"),
        BOUNDS.replace('classes = ["no", "yes"]', "lower = -1e308\nupper = 1e308"),
    ],
)
def test_bounds_whose_width_is_no_number_are_refused_before_anything_is_spent(folder, tmp_path, monkeypatch, bounds):
    drawn = []
    for kind in (taciturn.SparseClassifier, taciturn.SparseRegressor):
        monkeypatch.setattr(kind, "fit", lambda self, X, y=None, persons=None: drawn.append(1))
    (tmp_path / "wide.toml").write_text(bounds, encoding="utf-8")
    arguments = ["fit", "patients.csv", "--bounds", tmp_path / "wide.toml", "-o", tmp_path / "model"]
    assert "1e-301 to 1e301" in one_sentence(run(*arguments, cwd=folder))
    assert not drawn
    assert [path.name for path in tmp_path.iterdir()] == ["wide.toml"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="file names of any bytes")
def test_names_that_are_not_utf_8_lose_no_result(folder, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff-\xe9")
    key, account = write_key(tmp_path / "key.pem"), f"sqlite:///{tmp_path / 'study.db'}#people"
    assert run("budget", "create", account, "--epsilon", 3, "--delta", 1e-5, "--records", 400).code == 0
    select = ["select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "--sign", key]
    commands = {
        "fit": [*FIT, "--sign", key],
        "select": select,
        "score.json": ["score", "model", "patients.csv", "--epsilon", "1", "--sign", key],
        "exact.json": ["score", "model", "patients.csv", "--sign", key],
        "predictions.csv": ["predict", "model", "patients.csv"],
        "template.toml": ["init", "patients.csv", "--target", "ill"],
        "report.html": ["report", "model"],
        "ledger.jsonl": ["budget", "export", account],
    }
    for what, arguments in commands.items():
        done = run(*arguments, "-o", name + what, cwd=folder)
        assert done.code == 0, (what, done)
        assert os.path.exists(name + what)
    with open(os.path.join(name + "select", "selection.json"), encoding="utf-8") as file:
        assert json.load(file)["command"].count("\\udcff-\\udce9select' --sign ...") == 1
    assert run("verify", name + "fit").code == run("show", name + "fit").code == 0
    # Of tables and other files too.
    table = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    shutil.copy(folder / "patients.csv", table)
    done = run("select", table, *select[2:], "-o", tmp_path / "from", cwd=folder)
    assert done.code == 0, done


# ------------------------------------------------------------------ signals


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal that it could handle")
def test_a_request_to_terminate_leaves_what_an_interrupt_leaves(tmp_path):
    write_patients(tmp_path)
    # A fit that waits after its noise is drawn, in a process of its own.
    code = (
        # Where a shell runs the tests in the background, its children ignore interrupts.
        "import signal, sys, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from taciturn import SparseClassifier\nfrom taciturn.app.cli.main import main\n"
        "fit = SparseClassifier.fit\n"
        "def slow(self, X, y=None, persons=None):\n    fit(self, X, y)\n    open('drawn', 'w').close()\n"
        "    time.sleep(3600)\n"
        "SparseClassifier.fit = slow\n"
        f"sys.argv = ['taciturn', *{FIT!r}, '-o', sys.argv[1]]\nmain()\n"
    )
    ends = []
    for number in (signal.SIGTERM, signal.SIGINT):
        name = f"model-{int(number)}"
        started = subprocess.Popen([sys.executable, "-c", code, name], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        # However long that takes on a busy machine.
        while not (tmp_path / "drawn").exists() and started.poll() is None:
            time.sleep(0.1)
        started.send_signal(number)
        _, err = started.communicate(timeout=600)
        (tmp_path / "drawn").unlink()
        assert [path.name for path in (tmp_path / name).iterdir()] == ["certificate.json"]
        ends.append((started.returncode, err.replace(name, "model")))
    assert [code for code, _ in ends] == [143, 130]
    assert ends[0][1] == ends[1][1]
    assert "interrupted; no result was written." in ends[0][1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such timer")
def test_a_request_that_other_code_swallows_is_repeated_and_no_cleanup_is_disturbed(monkeypatch):
    monkeypatch.setattr(screen, "_AGAIN", 0.05)
    cleaned = []

    def swallowing():
        # As packages do around their imports.
        with suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
        for _ in range(1000):
            time.sleep(0.01)

    def interrupted():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            for _ in range(20):
                time.sleep(0.01)
            cleaned.append(1)

    with pytest.raises(KeyboardInterrupt), screen.termination() as requests:
        swallowing()
    assert len(requests) == 2
    with pytest.raises(KeyboardInterrupt), screen.termination() as requests:
        interrupted()
    assert cleaned
    assert len(requests) > 1
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal that it could handle")
def test_a_request_that_becomes_another_error_is_an_interrupt(folder, monkeypatch):
    def failing(*arguments):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ImportError("a module") from None

    monkeypatch.setattr(taciturn.SparseClassifier, "fit", failing)
    done = run(*FIT, "-o", "imported", cwd=folder)
    assert done.code == 143, done
    assert "interrupted; no result was written." in done.err
    assert "a defect" not in done.err


# A view that has no last row, and one that has no first.
VIEW = (
    "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
    "SELECT x AS age, x AS dose, 1 AS smoker, 'hill' AS region, 'yes' AS ill FROM c"
)
# The command, which leaves a file once it has opened the table.
OPENED = (
    "import sys\nfrom taciturn.app.cli.main import main\nfrom taciturn.tables import formats\n"
    "choose = formats._choose\n"
    "def opened(*what):\n    open('opened', 'w').close()\n    return choose(*what)\n"
    "formats._choose = opened\nsys.argv[0] = 'taciturn'\nmain()\n"
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


# The command, which leaves a file when it begins.
BEGUN = (
    "import sys\nfrom taciturn.app.cli.main import main\nopen('begun', 'w').close()\nsys.argv[0] = 'taciturn'\nmain()\n"
)


def write_long_model(place):
    """A file that takes seconds to parse, and the certificate of a model beside it."""
    (place / "long").mkdir()
    values = "1," * 40_000_000
    (place / "long" / "model.json").write_text('{"format": "taciturn model", "version": 3, "n": [' + values + "1]}")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal that it could handle")
@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "t.sqlite", "--target", "ill", "-o", "out"],
        ["compare", "patients.csv", "--bounds", "bounds.toml", "--trials", "100000"],
        ["plan", "--bounds", "bounds.toml", "--n", "200000", "--simulate", "100000", "-o", "out"],
        ["demo", "-o", "out"],
        ["show", "long/model.json"],
        ["report", "long", "-o", "out"],
        ["verify", "long"],
        ["export", "long", "--nist", "-o", "out"],
        ["predict", "long/model.json", "patients.csv", "-o", "out"],
        ["score", "long/model.json", "patients.csv", "-o", "out"],
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("after", [0.0, 1.0, 2.0])
def test_every_command_ends_within_three_seconds_of_a_request(folder, tmp_path, arguments, after):
    for name in ("patients.csv", "bounds.toml"):
        (tmp_path / name).symlink_to(folder / name)
    if arguments[0] == "init":
        database = sqlite3.connect(tmp_path / "t.sqlite")
        database.execute(f"{VIEW} WHERE x < 0")
        database.close()
    if any(str(each).startswith("long") for each in arguments):
        write_long_model(tmp_path)
        if arguments[0] in ("report", "verify", "export"):
            shutil.copy(folder / "model" / "certificate.json", tmp_path / "long")
    started = subprocess.Popen(
        [sys.executable, "-c", BEGUN, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "begun").exists():
        assert started.poll() is None, started.communicate()
        time.sleep(0.05)
    time.sleep(after)
    started.send_signal(signal.SIGTERM)
    sent = time.monotonic()
    _, err = started.communicate(timeout=120)
    assert time.monotonic() - sent < 3.0
    # What ended by itself, as refusals do, was in time.
    assert started.returncode in (143, 1 if arguments[0] not in ("compare", "plan") else 143), err
    assert "a defect" not in err
    assert "Traceback" not in err


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

    monkeypatch.setattr(scores, "private_score", watching)
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

    monkeypatch.setattr(scores, "private_score", dying)
    path = folder / f"dead-{error.__name__}.json"
    done = run("score", "model", "patients.csv", "--epsilon", 0.5, "-o", path.name, cwd=folder)
    assert done.code == (130 if error is KeyboardInterrupt else 1)
    # It died before anything was released: whether noise was drawn is not known.
    assert f"note: noise may have been drawn; {path.name} states what counts as spent" in done.err
    assert spending(path) == (0.5, 0.0, "zero-out")


def test_a_score_that_is_refused_has_spent_nothing(folder, monkeypatch):
    one_sentence(run("score", "model", "patients.csv", "--epsilon", -1, "-o", "refused.json", cwd=folder))

    def refusing(*arguments, **budget):
        raise DataError("X: expected something else; change it.")

    monkeypatch.setattr(scores, "private_score", refusing)
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
            # What a killed run left is not written into.
            (tmp_path / f"{name}.0123abcd.part").touch(mode=0o666)
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
    fsync, replace, link = os.fsync, os.replace, os.link

    def plain(path):
        """A name without what makes a temporary one unique."""
        return re.sub(r"\.[0-9a-f]{8}\.part$", ".*.part", os.path.basename(path))

    def synced(number):
        events.append(("sync", plain(os.readlink(f"/proc/self/fd/{number}"))))
        fsync(number)

    def replaced(source, target):
        events.append(("name", plain(source), plain(target)))
        replace(source, target)

    def linked(source, target):
        events.append(("name", plain(source), plain(target)))
        link(source, target)

    fit_whole = taciturn.SparseClassifier.fit

    def fit(self, X, y=None, persons=None):
        events.append(("noise",))
        return fit_whole(self, X, y)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(taciturn.SparseClassifier, "fit", fit)
    assert run(*FIT, "-o", "deep/model", cwd=tmp_path).code == 0
    one_file = [
        ("sync", "certificate.json.*.part"),
        ("name", "certificate.json.*.part", "certificate.json"),
        ("sync", "model.unfinished"),
    ]
    before = events[: events.index(("noise",))]
    # The new folders, each in the one that holds it, then the statement.
    assert before == [("sync", "deep"), ("sync", tmp_path.name), *one_file]
    assert events[-2:] == [("name", "model.unfinished", "model"), ("sync", "deep")]
    events.clear()
    assert run("predict", "deep/model", "patients.csv", "-o", "out.csv", cwd=tmp_path).code == 0
    assert events == [("sync", "out.csv.*.part"), ("name", "out.csv.*.part", "out.csv"), ("sync", tmp_path.name)]


def test_a_folder_that_cannot_be_synced_stops_a_fit_before_its_noise(tmp_path, monkeypatch):
    write_patients(tmp_path)

    def broken(folder):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(output, "_sync", broken)
    drawn = []
    monkeypatch.setattr(taciturn.SparseClassifier, "fit", lambda self, X, y, persons=None: drawn.append(1))
    assert "input/output error" in one_sentence(run(*FIT, "-o", "model", cwd=tmp_path))
    assert not drawn


def test_labels_that_are_formulas_are_quoted_on_request(folder, tmp_path):
    formula = '=HYPERLINK("http://example.org"; "-1")'
    labels = {"yes": formula, "no": "@no"}
    table = (folder / "patients.csv").read_text(encoding="utf-8")
    with open(tmp_path / "patients.csv", "w", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(table.splitlines()))
        csv.writer(file).writerows([rows[0], *([*row[:-1], labels[row[-1]]] for row in rows[1:])])
    bounds = BOUNDS.replace('["no", "yes"]', json.dumps([labels["no"], formula]))
    (tmp_path / "bounds.toml").write_text(bounds, encoding="utf-8")
    assert run(*FIT, "-o", "model", cwd=tmp_path).code == 0
    read = {}
    for name, options in (("plain.csv", []), ("quoted.csv", ["--escape-formulas"])):
        assert run("predict", "model", "patients.csv", *options, "-o", name, cwd=tmp_path).code == 0
        with open(tmp_path / name, encoding="utf-8", newline="") as file:
            read[name] = list(csv.reader(file))
    assert {row[0] for row in read["plain.csv"][1:]} == {formula, "@no"}
    assert {row[0] for row in read["quoted.csv"][1:]} == {"'" + formula, "'@no"}
    # Numbers, negative ones too, and names stay what they are.
    assert [row[1:] for row in read["quoted.csv"]] == [row[1:] for row in read["plain.csv"]]
    assert cli_show._without_formulas([-1.5, "-1", "1", True]) == [-1.5, "'-1", "1", True]


# ------------------------------------------------------------------ two commands with one output

BUDGET = {"epsilon": 1.0, "delta": 0.0, "relation": "zero-out"}


def output_file(path):
    return output.OutputFile(path, public=False, done="the score is complete")


def output_folder(path):
    return output.OutputFolder(path, public=False, done="the model is complete")


def run_steps(context, *steps):
    """Run steps on what a context gives, one after the other."""
    with context as opened:
        for step in steps:
            step(opened)


def begin(opened):
    opened.begin(**BUDGET)


def write_model(opened):
    opened.write_result("model.json", "the first model")


def failing_with(error):
    def fail(opened):
        raise error

    return fail


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("last", [0, 1])
def test_two_writers_of_one_file_do_not_write_into_each_others(tmp_path, last):
    path = tmp_path / "out.csv"
    contexts = [output.AtomicFile(path, public=False) for _ in range(2)]
    files = [each.__enter__() for each in contexts]
    for file, text in zip(files, "ab", strict=True):
        file.write(100_000 * text)
    contexts[1 - last].__exit__(None, None, None)
    assert path.read_text() == 100_000 * "ba"[last]
    contexts[last].__exit__(None, None, None)
    assert path.read_text() == 100_000 * "ab"[last]
    assert names(tmp_path) == ["out.csv"]


def test_a_writer_that_fails_leaves_the_other_ones_file(tmp_path):
    path = tmp_path / "out.csv"
    with output.AtomicFile(path, public=False) as file:
        file.write("whole")
        with pytest.raises(RuntimeError):
            run_steps(
                output.AtomicFile(path, public=False), lambda other: other.write("half"), failing_with(RuntimeError())
            )
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["out.csv"]


def test_files_of_killed_runs_are_removed_and_those_of_others_are_not(tmp_path):
    path = tmp_path / "out.csv"
    kept = ["out.csv.backup.part", "out.csv.part", "other.csv.0123abcd.part", "out.csv.0123abcd.part.csv"]
    for name in (*kept, "out.csv.0123abcd.part", "out.csv.ffffffff.part"):
        (tmp_path / name).touch()
    with output.AtomicFile(path, public=False):
        # One that is being written is no abandoned one.
        output.replace_file(path, "second", public=False)
    assert names(tmp_path) == sorted([*kept, "out.csv"])


def no_links(source, target):
    raise OSError(errno.ENOTSUP, "Operation not supported")


@pytest.mark.parametrize("link", [None, no_links])
def test_an_exclusive_file_never_replaces_another(tmp_path, monkeypatch, link):
    if link is not None:
        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "score.json"
    output.replace_file(path, "first", public=False, exclusive=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        output.replace_file(path, "second", public=False, exclusive=True)
    assert path.read_text() == "first"
    assert names(tmp_path) == ["score.json"]


@pytest.mark.parametrize("link", [None, no_links])
def test_of_two_scores_with_one_file_the_second_is_refused_before_it_spends(tmp_path, monkeypatch, link):
    if link is not None:
        monkeypatch.setattr(os, "link", link)
    path = tmp_path / "score.json"
    with output_file(path) as first:
        # Both found the name free, while they read their tables.
        with pytest.raises(ParameterError, match="no other command writes to at the same time"):
            run_steps(output_file(path), lambda second: first.begin(**BUDGET), begin)
        assert spending(path) == (1.0, 0.0, "zero-out")
        first.finish("the first score")
    assert path.read_text() == "the first score"
    assert names(tmp_path) == ["score.json"]


def test_an_exact_score_does_not_overwrite_a_certificate(folder, tmp_path):
    path = tmp_path / "score.json"
    path.write_text("a certificate", encoding="utf-8")
    done = run("score", "model", "patients.csv", "-o", path, cwd=folder)
    assert "a file that is not there yet" in one_sentence(done)
    assert path.read_text(encoding="utf-8") == "a certificate"


@pytest.mark.parametrize("mounted", [False, True])
def test_of_two_fits_with_one_folder_the_second_is_refused_before_it_spends(tmp_path, mounted):
    path = tmp_path / "model"
    if mounted:
        path.mkdir()
    with output_folder(path) as first:
        with pytest.raises(ParameterError, match="no other command writes to at the same time"):
            run_steps(output_folder(path), lambda second: first.begin(**BUDGET), begin)
        first.write_result("model.json", "the first model")
    assert names(path) == ["certificate.json", "model.json"]
    assert names(tmp_path) == [f"model/{name}" for name in names(path)]
    assert (path / "model.json").read_text() == "the first model"


def test_a_fit_that_began_after_another_one_finished_is_refused_before_it_spends(tmp_path):
    path = tmp_path / "model"
    with pytest.raises(ParameterError, match="a folder that is not there yet"):
        run_steps(output_folder(path), lambda second: run_steps(output_folder(path), begin, write_model), begin)
    assert names(tmp_path) == ["model/certificate.json", "model/model.json"]
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_a_fit_goes_on_when_another_one_with_its_folder_fails_before_it_spends(tmp_path):
    path = tmp_path / "deep" / "model"
    with output_folder(path) as first:
        with pytest.raises(DataError):
            run_steps(output_folder(path), failing_with(DataError("X: expected something else; change it.")))
        run_steps(nullcontext(first), begin, write_model)
    assert names(tmp_path) == ["deep/model/certificate.json", "deep/model/model.json"]


@pytest.mark.parametrize("left", [[], ["certificate.json.0123abcd.part"]])
@pytest.mark.parametrize("mounted", [False, True])
def test_a_folder_that_a_killed_run_left_without_a_certificate_is_used_again(tmp_path, left, mounted):
    path = tmp_path / "model"
    part = path / "unfinished" if mounted else tmp_path / "model.unfinished"
    part.mkdir(parents=True, mode=0o755)
    for name in left:
        (part / name).touch()
    run_steps(output_folder(path), begin, write_model)
    assert names(path) == ["certificate.json", "model.json"]
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("left", ["certificate.json", "notes.txt"])
def test_a_folder_with_a_certificate_or_with_strange_files_is_not_touched(tmp_path, left):
    part = tmp_path / "model.unfinished"
    part.mkdir()
    (part / left).write_text("kept", encoding="utf-8")
    with pytest.raises(ParameterError, match="no model.unfinished beside it"), output_folder(tmp_path / "model"):
        pass
    assert names(tmp_path) == [f"model.unfinished/{left}"]


def test_a_refused_command_leaves_no_folder_and_spends_nothing(tmp_path):
    refused = failing_with(DataError("X: expected something else; change it."))
    with pytest.raises(DataError):
        run_steps(output_folder(tmp_path / "deep" / "model"), begin, refused)
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ compilation


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("taciturn.privacy.mechanisms.propose", FIT),
        ("taciturn.kernels.frank_wolfe.advance_dense", [*FIT, "--method", "frank-wolfe"]),
        (
            "taciturn.kernels.ranks.concordance",
            ["select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "--method", "kendall"],
        ),
        (
            "taciturn.privacy.mechanisms.propose",
            ["score", "model", "patients.csv", "--epsilon", "1", "--delta", "0.3"],
        ),
    ],
)
def test_what_cannot_be_compiled_fails_before_anything_is_spent(folder, monkeypatch, kernel, arguments):
    def broken(*arguments):
        raise OSError(errno.ENOMEM, "no room to compile")

    for warm_up in (mechanisms.warm_up, frank_wolfe_run.warm_up, ranks.warm_up):
        warm_up.cache_clear()
    monkeypatch.setattr(kernel, broken)
    assert run(*arguments, "-o", "uncompiled", cwd=folder).code != 0
    assert not (folder / "uncompiled").exists()
    assert not (folder / "uncompiled.unfinished").exists()
