"""Write and check ``requirements-test.lock``: the exact packages with which tests, pages and releases are made.

The file is a constraint for pip: it says which version of a package is installed, and never that one is. So one file
serves every extra. It holds no hashes, since pip then refuses an editable install, and no address of an index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = "requirements-test.lock"
EXTRAS = ("cli", "dev", "docs", "release")
RESEARCH = "research"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = ("linux", "darwin", "win32")


def compile_lock(root: Path, *, renew: bool) -> str:
    """The lock of both distributions of today; pins of the present one stay where they may, unless it is renewed."""
    extras = [argument for extra in EXTRAS for argument in ("--extra", extra)]
    present = root / LOCK
    draft = root / "build" / LOCK
    draft.parent.mkdir(exist_ok=True)
    # uv keeps what the file that it writes already pins.
    draft.write_text(present.read_text(encoding="utf-8") if present.exists() and not renew else "", encoding="utf-8")
    command = ["pip", "compile", "--quiet", "--universal", "--python-version", min(PYTHONS), "--no-annotate"]
    command += [*extras, "--output-file", str(draft), str(root / "pyproject.toml"), "-"]
    # By standard input, since no index has the package itself, for which research asks as well.
    further = "\n".join(map(str, requirements_of(read_project(root / RESEARCH), ())))
    # Otherwise the header would hold this command with the paths of this machine.
    environment = os.environ | {"UV_CUSTOM_COMPILE_COMMAND": "make lock"}
    subprocess.run(
        [sys.executable, "-m", "uv", *command], check=True, env=environment, cwd=root, input=further, text=True
    )
    return draft.read_text(encoding="utf-8")


def pins_in(text: str) -> list[Requirement]:
    """The lines of a lock as requirements."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [Requirement(line) for line in lines if line]


def requirements_of(project: dict[str, Any], extras: tuple[str, ...] = EXTRAS) -> list[Requirement]:
    """What a distribution and its locked extras ask for, but for the package itself."""
    named = [text for name in extras for text in project["optional-dependencies"][name]]
    asked = [Requirement(text) for text in [*project["dependencies"], *named]]
    return [requirement for requirement in asked if requirement.name != "taciturn"]


def _applies(marker: Marker | None, python: str, system: str) -> bool:
    if marker is None:
        return True
    environment = {key: str(value) for key, value in default_environment().items()}
    environment |= {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": system}
    return marker.evaluate(environment)


def lock_problems(project: dict[str, Any], research: dict[str, Any], text: str) -> list[str]:
    """What is wrong with a lock for the package and for research, one sentence each."""
    problems = [f"line {line!r} names an index or a file" for line in text.splitlines() if _names_a_place(line)]
    if problems:
        return problems
    pins: dict[str, list[Requirement]] = {}
    for pin in pins_in(text):
        pins.setdefault(canonicalize_name(pin.name), []).append(pin)
        if [each.operator for each in pin.specifier] != ["=="]:
            problems.append(f"{pin} is not one version")
    for requirement in [*requirements_of(project), *requirements_of(research, ())]:
        found = pins.get(canonicalize_name(requirement.name), [])
        for python, system in ((python, system) for python in PYTHONS for system in SYSTEMS):
            if _applies(requirement.marker, python, system) and not any(
                _applies(pin.marker, python, system) for pin in found
            ):
                problems.append(f"{requirement} has no version for Python {python} on {system}")
                break
        for pin in found:
            version = Version(next(iter(pin.specifier)).version)
            if not requirement.specifier.contains(version, prereleases=True):
                problems.append(f"{requirement} does not allow {pin}")
    return problems


def _names_a_place(line: str) -> bool:
    content = line.strip()
    return not content.startswith("#") and (content.startswith("-") or "://" in content or " @ " in content)


def read_project(root: Path) -> dict[str, Any]:
    """The table ``project`` of the ``pyproject.toml`` of a folder."""
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def main() -> int:
    """Renew the lock with the newest packages that the extras allow."""
    text = compile_lock(ROOT, renew=True)
    problems = lock_problems(read_project(ROOT), read_project(ROOT / RESEARCH), text)
    for problem in problems:
        print(f"{LOCK}: {problem}", file=sys.stderr)
    if problems:
        return 1
    (ROOT / LOCK).write_text(text, encoding="utf-8")
    print(f"{LOCK}: {len(pins_in(text))} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
