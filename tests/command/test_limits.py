"""Little memory: one sentence before anything is loaded, and a limit that is enough really is."""

import subprocess
import sys

import pytest
from commands import INSTALLED, Run, one_sentence, run, write_patients

from taciturn.app.cli.screen import _LEAST

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a process to a limit of its memory")


def limited(megabytes, *arguments, cwd) -> Run:
    """The installed command with so much address space."""
    size = int(megabytes * (1 << 20))
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {size >> 10}; exec "$0" "$@"', INSTALLED, *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("megabytes", [70, 100, 300, 450, 600, 900])
def test_too_little_memory_is_one_sentence(megabytes, tmp_path):
    write_patients(tmp_path)
    sentence = one_sentence(limited(megabytes, "fit", "patients.csv", "--bounds", "bounds.toml", cwd=tmp_path))
    assert sentence.startswith(f"taciturn: ulimit -v={megabytes << 10}: expected at least {_LEAST >> 10} kilobytes")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bounds.toml", "patients.csv"]
    assert limited(megabytes, "--help", cwd=tmp_path).code == 0


@pytest.mark.slow
def test_the_least_that_is_allowed_is_enough_for_a_fit(tmp_path):
    write_patients(tmp_path)
    done = limited(_LEAST / (1 << 20), "fit", "patients.csv", "--bounds", "bounds.toml", cwd=tmp_path)
    assert done.code == 0, done
    assert (tmp_path / "model" / "model.json").is_file()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("7919.4242"),
        OSError(12, "Cannot allocate memory"),
        ImportError("libopenblas.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
    ],
)
def test_memory_that_ends_in_the_middle_is_one_sentence(error, tmp_path, monkeypatch):
    write_patients(tmp_path)

    def failing(path, layout=None):
        raise error

    monkeypatch.setattr("taciturn.tables.reading.read_schema", failing)
    sentence = one_sentence(run("fit", "patients.csv", "--bounds", "bounds.toml", cwd=tmp_path))
    assert sentence.startswith("taciturn: memory: expected more of it than there is")
    assert "7919" not in sentence


def test_without_a_limit_nothing_is_set(monkeypatch, tmp_path):
    import resource

    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    one_sentence(run("show", "nothing", cwd=tmp_path))
    import os

    assert "ARROW_DEFAULT_MEMORY_POOL" not in os.environ
