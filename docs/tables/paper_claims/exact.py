"""The exact counterexamples, which live beside the tests and are no part of the package."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from paper_claims.claim import ROOT


def beside_the_tests(name: str) -> Any:
    """A module of tests/privacy."""
    here = str(ROOT / "tests" / "privacy")
    if here not in sys.path:
        sys.path.insert(0, here)
    return import_module(name)


exact = beside_the_tests("counterexamples")
