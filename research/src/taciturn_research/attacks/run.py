"""Audits of the catalogue, one entry after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taciturn.audit.engine import AuditResult, audit, audit_exact
from taciturn.core.validation import check_real
from taciturn_research.attacks import ENTRIES, Entry, SampledCase

_CONFIDENCE = 0.95
# The noise decides on the size of the pairs: at the least epsilon, near ties take some thousand rows.
_SMALLEST, _LARGEST = 0.01, 10.0


def audit_entry(
    entry: Entry,
    epsilon: float = 1.0,
    *,
    trials: int | None = None,
    confidence: float = _CONFIDENCE,
    random_state: int = 0,
    n_jobs: int = 1,
    progress: bool = False,
) -> AuditResult:
    """Audit one entry of the catalogue at a budget from 0.01 to 10; the claim is that of the object itself.

    The arguments are those of :func:`~taciturn.audit.audit`. ``trials`` of None is the entry's own number; laws that
    are written down need none.

    Examples
    --------
    >>> from taciturn_research.attacks import find_entries
    >>> from taciturn_research.attacks.run import audit_entry
    >>> law, *samplers = find_entries("ExponentialMechanism")
    >>> result = audit_entry(law, epsilon=0.5)
    >>> result.claimed, round(result.lower_bound, 6), result.verdict
    (0.5, 0.5, 'no violation found')
    """
    case = entry.case(check_real(_SMALLEST, _LARGEST, epsilon=epsilon))
    if not isinstance(case, SampledCase):
        return audit_exact(case.law, case.pair, case.delta, claimed=case.claimed, name=entry.name)
    return audit(
        case.run,
        case.pair,
        case.delta,
        case.trials if trials is None else trials,
        confidence,
        case.event,
        claimed=case.claimed,
        name=entry.name,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )


def audit_all(
    entries: Sequence[Entry] = ENTRIES,
    epsilon: float = 1.0,
    *,
    trials: int | None = None,
    confidence: float = _CONFIDENCE,
    random_state: int = 0,
    n_jobs: int = 1,
    progress: bool = False,
) -> Iterator[AuditResult]:
    """Audit entries and yield each result, in their order, as soon as it is complete; see :func:`audit_entry`.

    All bounds together are true with probability ``confidence``: each of them is made with as much less doubt as there
    are more of them. So none of many sound mechanisms is flagged for being one of many.
    """
    shared = 1.0 - (1.0 - confidence) / max(1, len(entries))
    for entry in entries:
        yield audit_entry(
            entry,
            epsilon,
            trials=trials,
            confidence=shared,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )
