"""The tables of docs/papers.md: claims of five papers, their status, and the numbers that decide it.

Without arguments the tables are printed. ``--write`` puts them into the page, between their markers, and every claim
with its tests into ``research/src/taciturn_research/reproduce/claims.md``; ``--check`` exits with 1 if one of the two
holds anything else. A claim whose status is not the one that its numbers decide, or that names a test which does not
exist, stops the script.
"""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from in_page import run_all
from paper_claims.adp_screen import ADP_SCREEN
from paper_claims.baselines import BASELINES
from paper_claims.claim import (
    AMENDED,
    EXPERIMENT,
    FALSE,
    HOLDS,
    KINDS,
    NO_DATA,
    NOT_REPRODUCED,
    OUTCOMES,
    PARTLY,
    REPRODUCED,
    ROOT,
    STATUSES,
    UNPROVED,
    Claim,
    Finding,
    Paper,
    problems_of,
)
from paper_claims.dp_ight import DP_IGHT
from paper_claims.dp_sis import DP_SIS
from paper_claims.reproduced import Reproduced, totals
from paper_claims.rnm_screen import RNM_SCREEN
from paper_claims.sparsifier import SPARSIFIER

from taciturn import DefaultBoundsWarning, WeakGuaranteeWarning

PAPERS = (RNM_SCREEN, ADP_SCREEN, SPARSIFIER, DP_SIS, DP_IGHT)
FULL = ROOT / "research" / "src" / "taciturn_research" / "reproduce" / "claims.md"
HEADER = ("| where | claim | status | counterexample or evidence |", "|---|---|---|---|")
FULL_HEADER = (
    "| where | claim | status | counterexample or evidence | what we do instead | measured effect | tests |",
    "|---|---|---|---|---|---|---|",
)
FULL_OPENING = """\
# Every claim, with its tests

`python docs/tables/papers.py --write` writes this file with the tables of `docs/papers.md`, which explains them. A row
has what the page has of its claim, what this library does instead, what that changes, and the tests that hold the row.
"""


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


Line = tuple[str, Claim, Finding]
"""A claim with its label and what was found."""


def labelled(paper: Paper, lines: Sequence[tuple[Claim, Finding]]) -> list[Line]:
    """The claims of a paper with their labels."""
    return [(f"{paper.letter}{number}", *line) for number, line in enumerate(lines, start=1)]


def cells(label: str, claim: Claim, finding: Finding) -> tuple[str, ...]:
    """What the page says of a claim."""
    return f"**{label}** {claim.where}", claim.claim, f"**{claim.status}**", claim.evidence.format_map(finding.numbers)


def row(found: Iterable[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in found)} |"


def section(paper: Paper, lines: Sequence[tuple[Claim, Finding]]) -> str:
    """The claims of a paper that are false or unproved, and the names of those that hold; experiments stand apart."""
    claims = [line for line in labelled(paper, lines) if line[1].kind != EXPERIMENT]
    table = [row(cells(*line)) for line in claims if line[1].status not in (HOLDS, AMENDED)]
    sentences = (
        named("As printed hold", claims, HOLDS),
        named("With another constant or proof hold", claims, AMENDED),
    )
    return "\n".join((*HEADER, *table, *(line for sentence in sentences if sentence for line in ("", sentence))))


def named(words: str, lines: Iterable[Line], status: str) -> str:
    """A sentence with the names of the claims of one status, empty if there is none."""
    names = [f"**{label}** {claim.where}" for label, claim, _ in lines if claim.status == status]
    return textwrap.fill(f"{words}: {'; '.join(names)}.", 120, break_on_hyphens=False) if names else ""


def experiments(found: dict[Paper, list[tuple[Claim, Finding]]]) -> str:
    """The tables and figures by what came of them."""
    lines = [line for paper, claims in found.items() for line in labelled(paper, claims) if line[1].kind == EXPERIMENT]
    sentences = (named(outcome.capitalize(), lines, outcome) for outcome in OUTCOMES)
    return "\n\n".join(sentence for sentence in sentences if sentence)


def every_claim(found: dict[Paper, list[tuple[Claim, Finding]]]) -> str:
    """All claims with all that is known of them."""
    blocks = [FULL_OPENING]
    for paper, lines in found.items():
        rows = (
            row((*cells(*line), claim.fix, claim.effect.format_map(finding.numbers), tests_of(claim)))
            for line in labelled(paper, lines)
            for _, claim, finding in (line,)
        )
        # Links lead to pages, which do not stand beside that file.
        text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", "\n".join((*FULL_HEADER, *rows)))
        blocks.append(f"## {paper.short}\n\n{text}\n")
    return "\n".join(blocks)


def tests_of(claim: Claim) -> str:
    """Which tests hold a line."""
    files: dict[str, list[str]] = {}
    for file, name in (test.split("::") for test in claim.tests):
        files.setdefault(file, []).append(f"`{name}`")
    return "<br>".join(f"`tests/{file}`: " + ", ".join(names) for file, names in files.items())


def counts(rows: Sequence[tuple[str, Sequence[Claim]]]) -> str:
    """How many claims have each status, row by row."""
    names = (*STATUSES, *OUTCOMES)
    lines = [f"| paper | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for name, claims in rows:
        number = Counter(claim.status for claim in claims)
        lines.append(f"| {name} | {' | '.join(str(number[status]) for status in names)} |")
    return "\n".join(lines)


def opening(claims: Sequence[Claim]) -> str:
    """The count of claims and of experiments by status, in two sentences."""
    number = Counter(claim.status for claim in claims)
    private = Counter(claim.status for claim in claims if claim.kind == KINDS[0])
    tried = sum(claim.kind == EXPERIMENT for claim in claims)
    return textwrap.fill(
        f"Of {len(claims) - tried} claims {number[HOLDS]} hold, {number[AMENDED]} hold with another constant or proof, "
        f"{number[UNPROVED]} are unproved and {number[FALSE]} are false; of the {sum(private.values())} claims about "
        f"privacy {private[FALSE]} are false. Of {tried} groups of tables and figures {number[REPRODUCED]} are "
        f"reproduced, {number[PARTLY]} partly, {number[NOT_REPRODUCED]} not, and {number[NO_DATA]} not run for lack of "
        "data.",
        120,
    )


def reproduction(found: dict[str, Reproduced]) -> str:
    """How many printed numbers and claims in words hold."""
    numbers, claims = found["numbers"], found["claims"]
    return textwrap.fill(
        f"Of {numbers.compared + numbers.not_run} printed numbers {numbers.hold} hold, "
        f"{numbers.compared - numbers.hold} do not and {numbers.not_run} lack data; of "
        f"{claims.compared + claims.not_run} claims in words {claims.hold} hold, {claims.compared - claims.hold} do "
        f"not and {claims.not_run} lack data.",
        120,
    )


def tables(found: dict[Paper, list[tuple[Claim, Finding]]]) -> dict[str, str]:
    """All tables, by the names in the page's markers."""
    claims = [claim for paper in PAPERS for claim in paper.claims]
    by_paper = [(f"[{paper.short}](#{anchor(paper)})", paper.claims) for paper in PAPERS]
    return {
        "papers-opening": opening(claims),
        "papers-counts": counts([*by_paper, ("all five", claims)]),
        "papers-reproduction": reproduction(totals()),
        "papers-experiments": experiments(found),
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

    @cache
    def found() -> dict[Paper, list[tuple[Claim, Finding]]]:
        return measured((*PAPERS, BASELINES))

    try:
        status = run_all(arguments, "papers", "papers.md", lambda: tables(found()))
    except WrongClaimError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if arguments == ["--write"]:
        FULL.write_text(every_claim(found()), encoding="utf-8")
    elif arguments == ["--check"] and FULL.read_text(encoding="utf-8") != every_claim(found()):
        print(f"{FULL.name} holds other claims; run papers.py --write", file=sys.stderr)
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
