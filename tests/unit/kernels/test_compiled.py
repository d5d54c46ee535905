"""The cache of compiled code saves time; where it is missing, full or damaged, everything else stays as it is.

numba's own decorator stands beside ours in every test, and fails.
"""

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numba
import pytest

import taciturn
from taciturn.core.rng import Stream
from taciturn.kernels.compiled import compiled
from taciturn.kernels.gaussian import _acceptance
from taciturn.privacy.mechanisms import rounded_normals

PACKAGE = Path(taciturn.__file__).parent
ACCEPTANCE = math.exp(-0.5 * 6.5 / 512.0) * 2.0**32
COMPILED, LOADED = (0, 1), (1, 0)

plainly_compiled = numba.njit(cache=True)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def call(decorator=compiled):
    """Call a kernel as a new process would; returns its cache's hits and misses."""
    kernel = decorator(_acceptance)
    assert kernel(3, 0.5) == pytest.approx(ACCEPTANCE, rel=1e-14)
    stats = getattr(kernel, "dispatcher", kernel).stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


@contextmanager
def room_for(n_bytes):
    """No file can become larger than this."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_cache_is_used(cache):
    assert [call(), call(), call(plainly_compiled)] == [COMPILED, LOADED, LOADED]


DRAW = """
import json, sys
from taciturn.core.rng import Stream
from taciturn.privacy.mechanisms import rounded_normals
json.dump(rounded_normals(Stream.of(3), 20, 10).tolist(), sys.stdout)
"""


def test_no_folder_for_a_cache(tmp_path):
    package = shutil.copytree(PACKAGE, tmp_path / "taciturn", ignore=shutil.ignore_patterns("__pycache__"))
    # Permissions do not stop root, but nobody can make a folder where a file is.
    (package / "kernels" / "__pycache__").write_text("a file")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    environment |= {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(package / "py.typed")}
    done = subprocess.run([sys.executable, "-W", "error", "-c", DRAW], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == rounded_normals(Stream.of(3), 20, 10).tolist()


# Nothing can be written, or the index can and the code cannot.
@pytest.mark.parametrize("room", [0, 2000])
def test_a_full_disk(cache, room):
    with room_for(room):
        with pytest.raises(OSError, match="too large"):
            call(plainly_compiled)
        assert call() == COMPILED
    assert not list(cache.rglob("*.nbc"))
    assert len(list(cache.rglob("*.nbi"))) == (1 if room else 0)
    assert [call(), call()] == [COMPILED, LOADED]


def test_code_that_found_no_room_is_not_replaced_by_that_of_an_earlier_version(cache, tmp_path, monkeypatch):
    def version(number):
        source = tmp_path / "versions.py"
        source.write_text("def answer():\n    return " + "0 + " * number + f"{number}\n")
        spec = importlib.util.spec_from_file_location("versions", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # numba imports it by name when it reads code from its cache.
        monkeypatch.setitem(sys.modules, "versions", module)
        return module.answer

    assert compiled(version(1))() == 1
    second = version(2)
    with room_for(2000):
        assert compiled(second)() == 2
    assert compiled(second)() == 2
    # Written once: older numba tells versions apart by the time of writing.
    third = version(3)
    with room_for(2000), pytest.raises(OSError, match="too large"):
        plainly_compiled(third)()
    assert plainly_compiled(third)() == 2, "numba itself takes the earlier code"


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", ["emptied", "halved", "overwritten"])
def test_a_damaged_file_is_replaced(cache, suffix, damage):
    call()
    (path,) = cache.rglob(f"*{suffix}")
    whole = path.read_bytes()
    damaged = {"emptied": b"", "halved": whole[: len(whole) // 2], "overwritten": b"\xff" * len(whole)}[damage]
    path.write_bytes(damaged)
    with pytest.raises(Exception, match="input|truncated|pickle|load key"):
        call(plainly_compiled)
    assert [call(), call()] == [COMPILED, LOADED]
