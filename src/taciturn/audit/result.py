"""Results of audits."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from taciturn._version import __version__
from taciturn.audit.pair import check_text
from taciturn.core.errors import DataError
from taciturn.core.validation import check_choice, check_delta, check_integer, check_real
from taciturn.data.sensitivity import check_relation

__all__ = ["ROUTES", "AuditResult"]

ROUTES = ("Clopper-Pearson", "Gaussian", "exact")
"""How a bound was found."""

_FORMAT = "taciturn-audit"
_SCHEMA = 1
_NUMBERS = ("lower_bound", "claimed")
# Laws are in double precision; a smaller excess over the claim is rounding.
_EXACT_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """A lower bound on epsilon, and the claim that it may refute.

    Parameters
    ----------
    lower_bound : float
        Epsilon is at least this.
    claimed : float or None
        The epsilon that was claimed at the same delta.
    delta : float
        Probability beyond epsilon.
    confidence : float
        Probability with which the procedure states a true bound; 1 for the exact route.
    trials : int
        Number of runs on each of the two data sets; 0 for the exact route.
    event : str
        What tells the two data sets apart, in words.
    route : {"Clopper-Pearson", "Gaussian", "exact"}
        How the bound was found.
    pair : str
        The two data sets, in words.
    relation : {"zero-out", "add-remove", "replace-one"}
        In what sense they are neighbours.
    seed : int or None
        From which the seeds of all runs follow; None for the exact route.
    name : str, default=""
        What was audited.
    """

    lower_bound: float
    claimed: float | None
    delta: float
    confidence: float
    trials: int
    event: str
    route: str
    pair: str
    relation: str
    seed: int | None
    name: str = ""

    def __post_init__(self) -> None:
        check_real(0.0, math.inf, lower_bound=self.lower_bound)
        if self.claimed is not None:
            check_real(0.0, math.inf, claimed=self.claimed)
        check_delta(delta=self.delta)
        check_real(0.0, 1.0, confidence=self.confidence)
        check_integer(0, trials=self.trials)
        check_choice(ROUTES, route=self.route)
        check_relation(self.relation)
        if self.seed is not None:
            check_integer(0, seed=self.seed)
        for field in ("event", "pair", "name"):
            check_text(**{field: getattr(self, field)})

    @property
    def verdict(self) -> str:
        """Either "violated" or "no violation found"."""
        slack = _EXACT_SLACK if self.route == "exact" else 0.0
        violated = self.claimed is not None and self.lower_bound > self.claimed * (1.0 + slack) + slack
        return "violated" if violated else "no violation found"

    def to_json(self, indent: int | None = 2) -> str:
        """Return the result as JSON text; :meth:`from_json` restores it."""
        content = asdict(self)
        for field in _NUMBERS:
            # JSON has no infinity.
            content[field] = "inf" if content[field] == math.inf else content[field]
        head = {"format": _FORMAT, "schema": _SCHEMA, "taciturn": __version__}
        return json.dumps(head | content | {"verdict": self.verdict}, indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> AuditResult:
        """Read what :meth:`to_json` wrote; the verdict is computed again."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError:
            content = None
        if not isinstance(content, dict) or (content.get("format"), content.get("schema")) != (_FORMAT, _SCHEMA):
            raise DataError(
                f"text: expected JSON with format {_FORMAT!r} and schema {_SCHEMA}, got something else; pass what "
                "AuditResult.to_json() of this version returned."
            )
        missing = [field.name for field in fields(cls) if field.name not in content]
        if missing:
            raise DataError(f"text: expected a complete result, found no {missing[0]}; ask for a fresh copy.")
        found: dict[str, Any] = {field.name: content[field.name] for field in fields(cls)}
        found |= {field: math.inf for field in _NUMBERS if found[field] == "inf"}
        return cls(**found)

    def __str__(self) -> str:
        subject = f"Audit of {self.name}" if self.name else "Audit"
        against = "no claim to compare with" if self.claimed is None else f"the claim is epsilon = {self.claimed:.6g}"
        if self.route == "exact":
            found, how = f"{self.lower_bound:.6g}", "computed from the laws of all outcomes"
        else:
            found = _rounded_down(self.lower_bound)
            how = (
                f"{self.confidence:.6g} confidence, {self.trials:,} runs on each data set, seed {self.seed}, "
                f"{self.route} bounds"
            )
            if self.route == "Gaussian":
                how += " for a release with a Gaussian trade-off"
        return (
            f"{subject}: {self.verdict}. Epsilon is at least {found} at delta = {self.delta:.6g} ({how}); {against}. "
            f"Event: {self.event}. Neighbours ({self.relation}): {self.pair}."
        )


def _rounded_down(number: float) -> str:
    """Round a lower bound down to four digits."""
    if number == 0.0 or math.isinf(number):
        return f"{number:.4g}"
    step = 10.0 ** (math.floor(math.log10(number)) - 3)
    return f"{math.floor(number / step) * step:.4g}"
