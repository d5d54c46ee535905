"""The tables of docs/papers.md: claims of five papers, their status, and the numbers that decide it.

Without arguments the tables are printed. ``--write`` puts them into the page, between their markers; ``--check`` exits
with 1 if the page holds anything else there. A claim whose status is not the one that its numbers decide, or that names
a test which does not exist, stops the script.
"""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from in_page import run_all
from paper_claims.adp_screen import ADP_SCREEN
from paper_claims.baselines import BASELINES
from paper_claims.claim import (
    AMENDED,
    FALSE,
    HOLDS,
    KINDS,
    STATUSES,
    UNPROVED,
    Claim,
    Finding,
    Paper,
    problems_of,
)
from paper_claims.dp_ight import DP_IGHT
from paper_claims.dp_sis import DP_SIS
from paper_claims.rnm_screen import RNM_SCREEN
from paper_claims.sparsifier import SPARSIFIER

from taciturn import DefaultBoundsWarning, WeakGuaranteeWarning

PAPERS = (RNM_SCREEN, ADP_SCREEN, SPARSIFIER, DP_SIS, DP_IGHT)
HEADER = (
    "| where | claim | status | counterexample or evidence | what we do instead | measured effect |",
    "|---|---|---|---|---|---|",
)


class WrongClaimError(Exception):
    """A claim that its own numbers, or the tests, contradict."""


def measured(papers: Iterable[Paper]) -> dict[Paper, list[tuple[Claim, Finding]]]:
    """Every claim with its finding; raises if one of them is wrong."""
    found = {paper: [(claim, claim.measure()) for claim in paper.claims] for paper in papers}
    wrong = [
        f"{paper.short}, {problem}"
        for paper, lines in found.items()
        for claim, finding in lines
        for problem in problems_of(claim, finding)
    ]
    if wrong:
        raise WrongClaimError("\n".join(wrong))
    return found


def row(label: str, claim: Claim, finding: Finding) -> str:
    """One line of a table."""
    cells = (
        f"**{label}** {claim.where}",
        claim.claim,
        f"**{claim.status}**",
        claim.evidence.format_map(finding.numbers),
        claim.fix,
        claim.effect.format_map(finding.numbers),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def tests_row(label: str, claim: Claim) -> str:
    """Which tests hold a line; long names would leave its cells no room."""
    files: dict[str, list[str]] = {}
    for file, name in (test.split("::") for test in claim.tests):
        files.setdefault(file, []).append(f"`{name}`")
    named = (f"`tests/{file}`: " + ", ".join(names) for file, names in files.items())
    return f"| {label} | {'<br>'.join(named)} |"


def section(paper: Paper, lines: Sequence[tuple[Claim, Finding]]) -> str:
    """The claims of a paper, and the tests of each."""
    labelled = [(f"{paper.letter}{number}", *line) for number, line in enumerate(lines, start=1)]
    claims = (row(*line) for line in labelled)
    tests = (tests_row(label, claim) for label, claim, _ in labelled)
    return "\n".join((*HEADER, *claims, "", "| row | tests |", "|---|---|", *tests))


def counts(label: str, rows: Sequence[tuple[str, Sequence[Claim]]]) -> str:
    """How many claims have each status, row by row."""
    lines = [f"| {label} | claims | {' | '.join(STATUSES)} |", "|---|" + "---:|" * (len(STATUSES) + 1)]
    for name, claims in rows:
        number = Counter(claim.status for claim in claims)
        lines.append(f"| {name} | {len(claims)} | {' | '.join(str(number[status]) for status in STATUSES)} |")
    return "\n".join(lines)


def opening(claims: Sequence[Claim]) -> str:
    """The count of claims by status, as a sentence."""
    number = Counter(claim.status for claim in claims)
    private = Counter(claim.status for claim in claims if claim.kind == "privacy")
    return textwrap.fill(
        f"Of {len(claims)} claims {number[HOLDS]} hold, {number[AMENDED]} hold with another constant or proof, "
        f"{number[UNPROVED]} are unproved and {number[FALSE]} are false. Of the {sum(private.values())} claims about "
        f"privacy {private[FALSE]} are false.",
        120,
    )


def tables() -> dict[str, str]:
    """All tables, by the names in the page's markers."""
    found = measured((*PAPERS, BASELINES))
    claims = [claim for paper in PAPERS for claim in paper.claims]
    by_paper = [(f"[{paper.short}](#{anchor(paper)})", paper.claims) for paper in PAPERS]
    by_kind = [(kind, [claim for claim in claims if claim.kind == kind]) for kind in KINDS]
    return {
        "papers-opening": opening(claims),
        "papers-counts": counts("paper", [*by_paper, ("all five", claims)]),
        "papers-kinds": counts("kind of claim", by_kind),
        **{f"papers-{anchor(paper)}": section(paper, lines) for paper, lines in found.items()},
    }


def anchor(paper: Paper) -> str:
    """Of the paper's section on the page."""
    return paper.short.lower()


def main(arguments: list[str]) -> int:
    """Print, write or check."""
    # Budgets and bounds are those of the papers.
    warnings.simplefilter("ignore", DefaultBoundsWarning)
    warnings.simplefilter("ignore", WeakGuaranteeWarning)
    try:
        return run_all(arguments, "papers", "papers.md", tables)
    except WrongClaimError as wrong:
        print(wrong, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
