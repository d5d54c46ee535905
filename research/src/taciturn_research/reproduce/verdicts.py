"""Whether what a paper prints or claims is true of our numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from taciturn_research.reproduce.experiment import Claim, Experiment, Published
from taciturn_research.reproduce.numbers import Numbers, Summary

__all__ = ["ClaimVerdict", "Outcome", "Overall", "Verdict", "judge_claim", "judge_items", "judge_number"]

Outcome = Literal["holds", "does not hold", "not run"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A printed number beside ours, which is None where the trials were not run."""

    published: Published
    ours: Summary | None
    difference_in_sd: float | None
    outcome: Outcome

    def __str__(self) -> str:
        return _in_words(self.outcome, self.published.reason)


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """A claim and the numbers for or against it."""

    claim: Claim
    evidence: str
    outcome: Outcome

    def __str__(self) -> str:
        return _in_words(self.outcome, self.claim.reason)


@dataclass(frozen=True, slots=True)
class Overall:
    """What is to be said about one table or figure."""

    item: str
    numbers: tuple[Verdict, ...]
    claims: tuple[ClaimVerdict, ...]

    def __str__(self) -> str:
        parts = []
        for verdicts, what in ((self.numbers, "numbers"), (self.claims, "claims")):
            run = [verdict for verdict in verdicts if verdict.outcome != "not run"]
            if run:
                held = sum(verdict.outcome == "holds" for verdict in run)
                parts.append(f"{held} of {len(run)} {what} hold")
            if len(run) < len(verdicts):
                parts.append(f"{len(verdicts) - len(run)} of {len(verdicts)} {what} not run, data not available")
        return "; ".join(parts) or "drawn; the paper prints no number"


def judge_number(published: Published, numbers: Numbers) -> Verdict:
    """Whether a printed number holds: within two standard deviations of a trial, or within its tolerance."""
    found = [summary for summary in numbers.summaries() if summary.of == published.of]
    if not found:
        return Verdict(published, None, None, "not run")
    (ours,) = found
    difference = ours.mean - published.value
    spread = ours.sd or 0.0
    holds = abs(difference) <= max(2.0 * spread, published.tolerance)
    return Verdict(published, ours, difference / spread if spread else None, _outcome(holds))


def judge_claim(claim: Claim, numbers: Numbers) -> ClaimVerdict:
    """Whether a claim holds of our numbers."""
    try:
        finding = claim.check(numbers)
    except LookupError:
        return ClaimVerdict(claim, "", "not run")
    return ClaimVerdict(claim, finding.evidence, _outcome(finding.holds))


def judge_items(experiment: Experiment, numbers: Numbers) -> tuple[Overall, ...]:
    """All verdicts of an experiment, by table and figure."""
    by_number = [judge_number(published, numbers) for published in experiment.published]
    by_claim = [judge_claim(claim, numbers) for claim in experiment.claims]
    return tuple(
        Overall(
            item,
            tuple(verdict for verdict in by_number if verdict.published.item == item),
            tuple(verdict for verdict in by_claim if verdict.claim.item == item),
        )
        for item in experiment.items
    )


def _outcome(holds: Any) -> Outcome:
    return "holds" if holds else "does not hold"


def _in_words(outcome: Outcome, reason: str) -> str:
    if outcome == "not run":
        return "not run: data not available"
    return f"does not hold: {reason or 'no reason found'}" if outcome == "does not hold" else outcome
