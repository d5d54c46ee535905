"""Attacks on privacy claims: lower bounds on epsilon from runs on two neighbouring data sets.

Lower bounds on epsilon, from the strongest to the most general:

- :func:`audit_exact` compares two laws that can be written down, outcome by outcome, without any statistics;
- :func:`sensitivity_search` climbs to the pair of neighbours on which a score or transcript changes most;
- :func:`audit` runs anything on two data sets many times and bounds epsilon from what came out.

And what is not noise: :func:`replay` forces the outcomes of one fit on a neighbouring data set and compares everything
else to the bit.

An audit can refute a claim. It cannot prove one: "no violation found" is a statement about one pair and one event.
"""

from taciturn.audit.engine import AuditResult, Pair, SearchResult, audit, audit_exact, sensitivity_search
from taciturn.audit.replay import Difference, Replay, ReplayError, replay

__all__ = [
    "AuditResult",
    "Difference",
    "Pair",
    "Replay",
    "ReplayError",
    "SearchResult",
    "audit",
    "audit_exact",
    "replay",
    "sensitivity_search",
]
