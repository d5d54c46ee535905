"""Wheel and sdist: built twice from the same commit, and looked into."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools.lock import LOCK

LARGEST = 512 * 1024
"""Bytes that a file of the sdist may have."""
CACHES = re.compile(r"(^|/)(__pycache__|\.[a-z]+_cache|\.venv|build|dist|site)/|\.(py[cod]|nb[ic])$|(^|/)\.DS_Store$")
RELATIVE = re.compile(r"""\]\((?!https?://|\#)[^)]*\)|(?:src|href)=["'](?!https?://|\#)[^"']*["']""")
FENCED = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def build(root: Path, folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist of a clone into a folder; the time in them is that of the last commit."""
    epoch = output_of("git", "log", "-1", "--format=%ct", cwd=root).strip()
    # pip reads constraints from here in the environment in which the package is built, too.
    environment = os.environ | {"SOURCE_DATE_EPOCH": epoch, "PIP_CONSTRAINT": str(root / LOCK)}
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(root)]
    output_of(*command, cwd=root, env=environment)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return wheel, sdist


def output_of(*command: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What a command prints; a RuntimeError with the end of it where the command fails."""
    done = subprocess.run(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:3])} ended with {done.returncode}:\n{last}")
    return done.stdout


def wheel_problems(names: Iterable[str], version: str) -> list[str]:
    """What is wrong with the files of a wheel: others than the package's and its metadata, or some that are missing."""
    names = list(names)
    info = f"taciturn-{version}.dist-info/"
    problems = [f"{name} is not of the package" for name in names if not name.startswith(("taciturn/", info))]
    problems += [f"{name} is a cache" for name in names if CACHES.search(name)]
    needed = ("taciturn/__init__.py", "taciturn/py.typed", f"{info}METADATA", f"{info}licenses/LICENSE")
    return problems + [f"{name} is missing" for name in needed if name not in names]


def sdist_problems(sizes: dict[str, int], tracked: Iterable[str], version: str) -> list[str]:
    """What is wrong with the files of an sdist: it holds what git tracks, and nothing that is large."""
    prefix = f"taciturn-{version}/"
    inside = {name.removeprefix(prefix): size for name, size in sizes.items()}
    tracked = set(tracked)
    problems = [f"{name} is not tracked by git" for name in sorted(inside.keys() - tracked - {"PKG-INFO"})]
    problems += [f"{name} is missing" for name in sorted(tracked - inside.keys())]
    problems += [f"{name} is a cache" for name in sorted(inside) if CACHES.search(name)]
    large = [(name, size) for name, size in sorted(inside.items()) if size > LARGEST]
    return problems + [f"{name} has {size:,} bytes, more than {LARGEST:,}" for name, size in large]


def page_problems(metadata: str) -> list[str]:
    """Links and pictures that an index cannot show: it has the page alone, and no file beside it."""
    text = FENCED.sub("", metadata)
    return [f"{match[0]} leads to a file" for match in RELATIVE.finditer(text)]


def names_in_wheel(wheel: Path) -> list[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def metadata_of(wheel: Path) -> str:
    """The metadata of a wheel, which end with the page that an index shows."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name).decode()


def sizes_in_sdist(sdist: Path) -> dict[str, int]:
    """The files of an sdist with their sizes."""
    with tarfile.open(sdist) as archive:
        return {member.name: member.size for member in archive if member.isfile()}


def unpack_sdist(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist, and return its root."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")
