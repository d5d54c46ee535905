"""Check everything that a release needs but the tests, one line a check.

``python -m tools.release_check`` runs all checks, names run some of them. The exit code is 1 when one fails or when
one that it needs did. Files of the release are left in ``dist/``, environments in ``build/release``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from rich.console import Console
from rich.text import Text

from tools import bill, distributions, lock
from tools.distributions import output_of

ROOT = Path(__file__).parents[1]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
SDIST_TESTS = "tests/unit/privacy/test_certificate*.py"
TOP = re.compile(r"^## (.*)$", re.MULTILINE)
BY_HAND = (
    "make lint test test-slow test-oldest   if the workflows have not run them for this commit",
    "make audit                             if mechanisms, accounting or solvers changed",
    "make arena FULL=1                      if results changed: hours",
)


class CheckError(Exception):
    """A check that failed; the message says why."""


def raise_for(problems: list[str]) -> None:
    """Fail with the first few problems, if there are any."""
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise CheckError("; ".join(problems[:5]) + more)


# ------------------------------------------------------------------ what is compared


def version_problems(version: str, changelog: str, citation: dict[str, Any]) -> list[str]:
    """Where version and date are not those of the newest section of the changelog."""
    top = TOP.search(changelog)
    heading = top[1] if top else "(nothing)"
    release = re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)", heading)
    if not release:
        return [f"the changelog begins with {heading!r}, which is not a version and a date"]
    problems = []
    if release[1] != version:
        problems.append(f"_version.py says {version}, the changelog {release[1]}")
    if str(citation.get("version")) != version:
        problems.append(f"_version.py says {version}, CITATION.cff {citation.get('version')}")
    if str(citation.get("date-released")) != release[2]:
        problems.append(f"the changelog says {release[2]}, CITATION.cff {citation.get('date-released')}")
    return problems


def r_problems(version: str, description: str) -> list[str]:
    """What is wrong with the version of the R package, by its DESCRIPTION."""
    stated = re.findall(r"^Version: (.*)$", description, re.MULTILINE)
    return [] if stated == [version] else [f"_version.py says {version}, r/DESCRIPTION {' and '.join(stated)}"]


def conda_problems(version: str, project: dict[str, Any], recipe: dict[str, Any]) -> list[str]:
    """Where the recipe for conda differs from pyproject.toml, whose extra [cli] it includes."""
    wanted = [
        f"python{project['requires-python']}",
        *project["dependencies"],
        *project["optional-dependencies"]["cli"],
    ]
    stated = [requirement.replace(" ", "") for requirement in recipe["requirements"]["run"]]
    problems = [f"conda/recipe.yaml lacks {each}" for each in wanted if each not in stated]
    problems += [f"conda/recipe.yaml asks for {each}" for each in stated if each not in wanted]
    found = recipe["context"]["version"]
    return problems + ([] if found == version else [f"_version.py says {version}, conda/recipe.yaml {found}"])


def tree_problems(status: str) -> list[str]:
    """Files that differ from the last commit, from what ``git status --porcelain`` prints."""
    return [f"{line[3:]} is not committed" for line in status.splitlines()]


def tag_problems(tags: list[str], version: str) -> list[str]:
    """Tags of this commit that are versions, and another one."""
    return [
        f"the commit is tagged {tag}" for tag in tags if re.match(r"v?\d", tag) and tag.removeprefix("v") != version
    ]


# ------------------------------------------------------------------ what is made


@dataclass
class Release:
    """A clone that a release is made of, and what has been made."""

    root: Path
    made: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def version(self) -> str:
        """The version that the package states."""
        text = (self.root / "src" / "taciturn" / "_version.py").read_text(encoding="utf-8")
        (version,) = re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)
        return str(version)

    def folder(self, name: str) -> Path:
        """An empty folder under ``build/release``."""
        folder = self.root / "build" / "release" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def environment(self, name: str, *requirements: str) -> Path:
        """The Python of a new environment with these requirements, in the versions of the lock."""
        folder = self.folder(name)
        output_of(sys.executable, "-m", "venv", str(folder), cwd=self.root)
        python = folder / SCRIPTS / "python"
        self.install(python, *requirements)
        return python

    def install(self, python: Path, *requirements: str) -> None:
        """Install requirements with pip, as anybody would."""
        pip = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"]
        output_of(str(python), *pip, "--constraint", str(self.root / lock.LOCK), *requirements, cwd=self.root)


def check_tree(release: Release) -> str:
    """The work tree is the last commit."""
    raise_for(tree_problems(output_of("git", "status", "--porcelain", cwd=release.root)))
    return f"commit {output_of('git', 'rev-parse', '--short', 'HEAD', cwd=release.root).strip()}"


def check_version(release: Release) -> str:
    """One number and one date everywhere."""
    changelog = (release.root / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = yaml.safe_load((release.root / "CITATION.cff").read_text(encoding="utf-8"))
    tags = output_of("git", "tag", "--points-at", "HEAD", cwd=release.root).split()
    description = (release.root / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    problems = version_problems(release.version, changelog, citation) + r_problems(release.version, description)
    raise_for(problems + tag_problems(tags, release.version))
    schema = ["--builtin-schema", "vendor.citation-file-format", "CITATION.cff"]
    output_of(sys.executable, "-m", "check_jsonschema", *schema, cwd=release.root)
    return f"{release.version}, {citation['date-released']}, in package, changelog, citation and the R package"


def check_conda(release: Release) -> str:
    """The recipe for conda asks for the same packages, and builds if the tool is there."""
    project = tomllib.loads((release.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    path = release.root / "conda" / "recipe.yaml"
    raise_for(conda_problems(release.version, project, yaml.safe_load(path.read_text(encoding="utf-8"))))
    if shutil.which("rattler-build") is None:
        return "the requirements of pyproject.toml; not built, rattler-build is not installed"
    output = str(release.folder("conda"))
    output_of("rattler-build", "build", "--recipe", str(path), "--output-dir", output, cwd=release.root)
    return "built, with the requirements of pyproject.toml"


def check_lock(release: Release) -> str:
    """The lock is what today's bounds give, with the versions that it has."""
    present = (release.root / lock.LOCK).read_text(encoding="utf-8")
    research = lock.read_project(release.root / lock.RESEARCH)
    raise_for(lock.lock_problems(lock.read_project(release.root), research, present))
    if lock.compile_lock(release.root, renew=False) != present:
        raise CheckError(f"{lock.LOCK} does not follow from pyproject.toml; run make lock")
    return f"{len(lock.pins_in(present))} pins"


def check_build(release: Release) -> str:
    """Wheel and sdist are built twice, to the same bytes."""
    first = distributions.build(release.root, release.folder("first"))
    second = distributions.build(release.root, release.folder("second"))
    differing = [a.name for a, b in zip(first, second, strict=True) if a.read_bytes() != b.read_bytes()]
    raise_for([f"two builds of {name} differ" for name in differing])
    dist = release.root / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    release.made["wheel"], release.made["sdist"] = (Path(shutil.copy(path, dist)) for path in first)
    return ", ".join(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}" for path in first)


def check_contents(release: Release) -> str:
    """The wheel holds the package alone, the sdist what git tracks."""
    wheel, sdist = release.made["wheel"], release.made["sdist"]
    tracked = output_of("git", "ls-files", cwd=release.root).splitlines()
    sizes = distributions.sizes_in_sdist(sdist)
    problems = distributions.wheel_problems(distributions.names_in_wheel(wheel), release.version)
    raise_for(problems + distributions.sdist_problems(sizes, tracked, release.version))
    output_of(sys.executable, "-m", "check_wheel_contents", str(wheel), cwd=release.root)
    return (
        f"{len(distributions.names_in_wheel(wheel))} and {len(sizes)} files, the largest {max(sizes.values()):,} bytes"
    )


def check_page(release: Release) -> str:
    """An index accepts the metadata and shows the page."""
    wheel, sdist = release.made["wheel"], release.made["sdist"]
    raise_for(distributions.page_problems(distributions.metadata_of(wheel)))
    output_of(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist), cwd=release.root)
    return "twine check --strict, no link to a file"


def check_wheel(release: Release) -> str:
    """The wheel without extras fits a model; with the extra the command runs, and so does the example of README."""
    wheel = release.made["wheel"]
    python = release.environment("wheel", str(wheel))
    output_of(str(python), "-W", "error", str(release.root / "tests" / "installed.py"), cwd=python.parent)
    # Before anything else is installed: the bill is that of the package alone.
    release.made["bill"] = bill.make_bill(python, wheel, release.root)
    readme = (release.root / "README.md").read_text(encoding="utf-8")
    (further,) = re.findall(r"^pip install '\.\[cli\]'(.*)$", readme, re.MULTILINE)
    release.install(python, f"{wheel}[cli]", *further.split())
    ((example, printed),) = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    if output_of(str(python), "-W", "error", "-c", example, cwd=python.parent) != printed:
        raise CheckError("the example of README prints something else")
    printed = output_of(str(python), "-m", "taciturn", "--version", cwd=python.parent).strip()
    if release.version not in printed:
        raise CheckError(f"taciturn --version prints {printed!r}")
    return "fits, example of README, taciturn --version"


def check_sdist(release: Release) -> str:
    """The sdist installs, and tests run from it."""
    sdist = release.made["sdist"]
    python = release.environment("sdist", f"{sdist}[cli]", "pytest", "hypothesis")
    source = distributions.unpack_sdist(sdist, release.folder("unpacked"))
    tests = sorted(str(path.relative_to(source)) for path in source.glob(SDIST_TESTS))
    quiet = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    return output_of(str(python), *quiet, *tests, cwd=source).strip().splitlines()[-1].strip("= ")


def check_sbom(release: Release) -> str:
    """The bill of materials is valid, names no place, and lists what the package asks for."""
    needed = {Requirement(text).name for text in lock.read_project(release.root)["dependencies"]}
    found = release.made["bill"]
    raise_for(bill.schema_problems(found) + bill.bill_problems(found, needed))
    path = release.root / "dist" / f"taciturn-{release.version}.cdx.json"
    bill.write_bill(found, path)
    return f"{path.name}, {len(found['components'])} packages"


def check_licences(release: Release) -> str:
    """Every dependency is under a licence that is compatible with Apache-2.0."""
    found = release.made["bill"]
    raise_for(bill.licence_problems(found))
    by_licence: dict[str, int] = {}
    for component in found["components"]:
        expression = str(bill.licence_of(component))
        by_licence[expression] = by_licence.get(expression, 0) + 1
    return ", ".join(f"{count} {expression}" for expression, count in sorted(by_licence.items()))


def check_docs(release: Release) -> str:
    """The pages build, and their tables and examples are those of today."""
    output_of(shutil.which("make") or "make", "docs", cwd=release.root)
    return f"{len(list((release.root / 'site').rglob('*.html')))} pages in site/"


# ------------------------------------------------------------------ the screen


@dataclass(frozen=True)
class Check:
    """A check by name, and those without which it cannot run."""

    name: str
    run: Callable[[Release], str]
    needs: tuple[str, ...] = ()


CHECKS = (
    Check("tree", check_tree),
    Check("version", check_version),
    Check("conda", check_conda),
    Check("lock", check_lock),
    Check("build", check_build),
    Check("contents", check_contents, ("build",)),
    Check("page", check_page, ("build",)),
    Check("wheel", check_wheel, ("build",)),
    Check("sdist", check_sdist, ("build",)),
    Check("sbom", check_sbom, ("wheel",)),
    Check("licences", check_licences, ("wheel",)),
    Check("docs", check_docs),
)


def run_checks(checks: tuple[Check, ...], release: Release, console: Console) -> int:
    """Run checks in order, print a line for each, and return the number of those that did not pass."""
    passed: set[str] = set()
    for check in checks:
        started = time.perf_counter()
        missing = [name for name in check.needs if name not in passed]
        try:
            if missing:
                raise CheckError(f"not run: it needs {', '.join(missing)}")
            detail, style = check.run(release), "green"
            passed.add(check.name)
        except Exception as error:  # a check that breaks has failed, and the others still run
            expected = isinstance(error, CheckError | RuntimeError | subprocess.CalledProcessError)
            detail, style = str(error) if expected else f"{type(error).__name__}: {error}", "red"
        line = Text(f"{'passed' if style == 'green' else 'FAILED':7}", style=style)
        line.append(f"{check.name:9}", style="bold").append(f"{time.perf_counter() - started:5.0f} s  ", style="dim")
        console.print(line.append(detail, style="default"))
    return len(checks) - len(passed)


def main(names: list[str]) -> int:
    """Run the checks of these names, or all."""
    if unknown := set(names) - {check.name for check in CHECKS}:
        print(f"release_check: no check is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    console = Console(highlight=False, soft_wrap=True)
    checks = tuple(check for check in CHECKS if not names or check.name in names)
    failed = run_checks(checks, Release(ROOT), console)
    if failed:
        console.print(f"{failed} of {len(checks)} checks did not pass")
        return 1
    console.print(f"all {len(checks)} checks passed")
    if not names:
        console.print("left to run by hand:", *(f"  {command}" for command in BY_HAND), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
