"""One claim of a paper: what is claimed, what was computed, which tests hold it, and the status that follows."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]

HOLDS = "holds"
AMENDED = "holds with another constant or proof"
UNPROVED = "unproved"
FALSE = "false"
STATUSES = (HOLDS, AMENDED, UNPROVED, FALSE)

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
NO_DATA = "no data"
OUTCOMES = (REPRODUCED, PARTLY, NOT_REPRODUCED, NO_DATA)
"""Of an experiment: a number that could not be reproduced does not make a claim false or unproved, since a setting that
is not printed may explain it."""

EXPERIMENT = "experiment"
KINDS = ("privacy", "algorithm", "utility", "complexity", EXPERIMENT)


@dataclass(frozen=True)
class Reproduced:
    """Printed numbers, or claims in words: how many were compared, how many hold, how many lack data."""

    compared: int = 0
    hold: int = 0
    not_run: int = 0

    def __add__(self, other: Reproduced) -> Reproduced:
        return Reproduced(self.compared + other.compared, self.hold + other.hold, self.not_run + other.not_run)

    @property
    def outcome(self) -> str:
        """What the counts decide."""
        if not self.compared:
            return NO_DATA
        if not self.hold:
            return NOT_REPRODUCED
        return REPRODUCED if self.hold == self.compared and not self.not_run else PARTLY


@dataclass(frozen=True)
class Finding:
    """What is known of one quantity, of which a paper says that it is at most ``claimed``.

    ``lower`` is a value that an example attains, ``upper`` a value that is proved never to be passed. ``argument`` is
    what the printed argument gives, where that is not the claim itself. ``numbers`` go into the sentences of the claim.
    An experiment has what was ``reproduced`` of it instead.
    """

    claimed: float
    lower: float = -math.inf
    upper: float = math.inf
    argument: float = -math.inf
    numbers: Mapping[str, str] = field(default_factory=dict)
    reproduced: Reproduced | None = None

    @property
    def status(self) -> str:
        """The status that the numbers decide."""
        if self.reproduced is not None:
            return self.reproduced.outcome
        if self.lower > self.upper * (1 + 1e-9) + 1e-12:
            raise ValueError(f"an example attains {self.lower}, and {self.upper} is said never to be passed")
        if self.lower > self.claimed:
            return FALSE
        if self.upper <= self.claimed:
            return AMENDED if self.argument > self.claimed else HOLDS
        return UNPROVED


@dataclass(frozen=True)
class Claim:
    """A line of a table.

    ``evidence`` and ``effect`` name numbers of the finding in braces. ``tests`` are written ``file::function``, from
    the folder of the tests.
    """

    where: str
    kind: str
    claim: str
    status: str
    measure: Callable[[], Finding]
    evidence: str
    tests: tuple[str, ...]
    fix: str
    effect: str


@dataclass(frozen=True)
class Paper:
    """A section of the page; ``letter`` begins the labels of its rows."""

    name: str
    short: str
    letter: str
    claims: tuple[Claim, ...]


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Names of the functions that a file defines, none if there is no such file."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def problems_of(claim: Claim, finding: Finding, tests: Path = ROOT / "tests") -> list[str]:
    """What is wrong with a line: a status that its numbers do not bear out, a test that does not exist."""
    found = []
    if claim.kind not in KINDS:
        found.append(f"there is no kind {claim.kind!r}")
    if (claim.kind == EXPERIMENT) != (finding.reproduced is not None):
        found.append("is an experiment without a reproduction, or has one and is none")
    if claim.status != finding.status:
        known = f"claimed {finding.claimed:g}, lower {finding.lower:g}, upper {finding.upper:g}"
        if finding.reproduced is not None:
            known = f"{finding.reproduced.hold} of {finding.reproduced.compared} hold"
        found.append(f"is marked {claim.status!r}, the numbers say {finding.status!r} ({known})")
    if not claim.tests:
        found.append("names no test")
    for name in claim.tests:
        file, _, function = name.partition("::")
        if not function.startswith("test_") or function not in functions_of(tests / file):
            found.append(f"names a test that does not exist: {name}")
    return [f"{claim.where}: {problem}" for problem in found]


# ---------------------------------------------------------------------- numbers as text


def _rounded(value: float, digits: int, towards: Callable[[float], float]) -> str:
    if math.isinf(value):
        return "∞"
    if value == 0.0:
        return "0"
    if abs(value - round(value)) < 1e-9:
        return f"{round(value):,}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    shown = towards(round(value * 10.0**places, 6)) / 10.0**places
    return f"{shown:,.{max(0, places)}f}"


def down(value: float, digits: int = 3) -> str:
    """Rounded down: what an example attains."""
    return _rounded(value, digits, math.floor)


def up(value: float, digits: int = 3) -> str:
    """Rounded up: what is proved never to be passed."""
    return _rounded(value, digits, math.ceil)


def near(value: float, digits: int = 3) -> str:
    """Rounded to the nearest."""
    return _rounded(value, digits, round)
