"""What of a paper's tables and figures was reproduced, as docs/reproduction.md counts it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from paper_claims.claim import ROOT, Finding

LINE = re.compile(r"^\| (?P<paper>[^|]+) \| (?P<item>[^|]+) \| (?P<verdict>.+) \|$")
COUNT = re.compile(r"(\d+) of (\d+) (numbers|claims) (hold|not run)")


@dataclass(frozen=True)
class Reproduced:
    """Printed numbers and claims in words: how many were compared, how many hold, how many lack data."""

    compared: int = 0
    hold: int = 0
    not_run: int = 0

    def __add__(self, other: Reproduced) -> Reproduced:
        return Reproduced(self.compared + other.compared, self.hold + other.hold, self.not_run + other.not_run)


@cache
def lines() -> dict[tuple[str, str], dict[str, Reproduced]]:
    """Per paper and item, numbers and claims."""
    found = {}
    for line in (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match is None or "**" not in match["verdict"]:
            continue
        counts = {"numbers": Reproduced(), "claims": Reproduced()}
        verdict, _, _ = match["verdict"].partition(" Why: ")
        for k, n, what, outcome in COUNT.findall(verdict):
            counts[what] += Reproduced(int(n), int(k)) if outcome == "hold" else Reproduced(not_run=int(k))
        found[match["paper"].strip(), match["item"].strip()] = counts
    return found


def reproduced(paper: str, *items: str) -> Finding:
    """Of these items: the claim is that nothing that was compared fails, and nothing is left out.

    A number that could not be reproduced does not make a claim false: a setting that is not printed may explain it.
    """
    numbers, claims = Reproduced(), Reproduced()
    for item in items:
        counts = lines()[paper, item]
        numbers, claims = numbers + counts["numbers"], claims + counts["claims"]
    parts = []
    for name, what in (("numbers", numbers), ("claims in words", claims)):
        if what.compared:
            parts.append(f"{what.hold} of {what.compared} {name} hold")
        if what.not_run:
            parts.append(f"{name} without data: {what.not_run}")
    left = numbers + claims
    return Finding(
        claimed=0.0, upper=float(left.compared - left.hold + left.not_run), numbers={"counts": "; ".join(parts)}
    )
