"""What of a paper's tables and figures was reproduced, as the results of the reproduction count it."""

from __future__ import annotations

import re
from functools import cache

from paper_claims.claim import ROOT, Finding, Reproduced

RESULTS = ROOT / "research" / "src" / "taciturn_research" / "reproduce" / "results.md"
LINE = re.compile(r"^\| (?P<paper>[^|]+) \| (?P<item>[^|]+) \| (?P<verdict>.+) \|$")
COUNT = re.compile(r"(\d+) of (\d+) (numbers|claims) (hold|not run)")


@cache
def lines() -> dict[tuple[str, str], dict[str, Reproduced]]:
    """Per paper and item, numbers and claims."""
    found = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        match = LINE.match(line)
        if match is None or "**" not in match["verdict"]:
            continue
        counts = {"numbers": Reproduced(), "claims": Reproduced()}
        verdict, _, _ = match["verdict"].partition(" Why: ")
        for k, n, what, outcome in COUNT.findall(verdict):
            counts[what] += Reproduced(int(n), int(k)) if outcome == "hold" else Reproduced(not_run=int(k))
        found[match["paper"].strip(), match["item"].strip()] = counts
    return found


def totals() -> dict[str, Reproduced]:
    """Numbers and claims of all papers."""
    every = lines().values()
    return {what: sum((counts[what] for counts in every), Reproduced()) for what in ("numbers", "claims")}


def reproduced(paper: str, *items: str) -> Finding:
    """Of these items."""
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
    return Finding(claimed=0.0, numbers={"counts": "; ".join(parts)}, reproduced=numbers + claims)
