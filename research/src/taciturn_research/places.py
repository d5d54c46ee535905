"""Where the repository is: pages are written there, and environments of other libraries are made there."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
