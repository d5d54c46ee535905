"""Why numbers of the tables differ from ours, as far as it was found; each was checked by runs of the other reading."""

from __future__ import annotations

__all__ = ["CLAIM_REASONS", "TABLE_1_REASONS", "TABLE_2_REASONS"]

TABLE_1_REASONS: dict[tuple[str, str, str], str] = {}
TABLE_2_REASONS: dict[tuple[str, str], str] = {}
CLAIM_REASONS: dict[tuple[str, str], str] = {}
