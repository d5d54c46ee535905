"""Why ours is significantly higher than the best peer of practice, by data set: written by hand for the report."""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS: dict[str, str] = {}
