"""What a fresh process waits for: imports, and compilation where numba's cache is empty."""

from __future__ import annotations

import tempfile

from taciturn_research.benchmarks.measuring import Row, run_python

__all__ = ["rows"]

_DATA = """
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.uniform(-1.0, 1.0, (500, 20)), rng.integers(0, 2, 500)
"""
FIRST_FITS = (
    ("SparseClassifier", "SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)", 2.0),
    (
        "FrankWolfeClassifier, sparse",
        "FrankWolfeClassifier(classes=(0, 1), random_state=0).fit(scipy.sparse.csr_array(X), y)",
        4.0,
    ),
    ("KendallSelector", "KendallSelector(n_features_to_select=3, random_state=0).fit(X, y)", 4.0),
)
"""Class, its fit, and the most seconds that may take in a process that has compiled nothing."""
OURS = "from taciturn import SparseClassifier\nSparseClassifier()\n"
THEIRS = "import sklearn.linear_model\n"
IMPORT_TARGETS = {"processor time": 1.25, "memory": 1.25}
"""An estimator of scikit-learn's kind cannot do without scikit-learn; a quarter more is for numerics of our own."""


def rows(repeats: int = 5) -> list[Row]:
    """Seconds of first fits; processor time and memory of an import over those of scikit-learn's linear models."""
    found: list[Row] = []
    for name, fit, target in FIRST_FITS:
        kind = fit.partition("(")[0]
        code = f"import scipy.sparse\nfrom taciturn import {kind}\n{_DATA}start = time.perf_counter()\n{fit}\n"
        with tempfile.TemporaryDirectory() as cache:
            seconds = run_python(f"{code}say(fit=time.perf_counter() - start)\n", NUMBA_CACHE_DIR=cache).said["fit"]
        found.append(
            {
                "case": f"first fit of {name}, numba's cache empty",
                "ratio": seconds,
                "target": target,
                "what": "seconds of the fit in a fresh process",
            }
        )
    # In turn, and once before: files have to be read from disk the first time.
    usages = [(run_python(OURS), run_python(THEIRS)) for _ in range(repeats + 1)][1:]
    cpu = min(ours.cpu for ours, _ in usages) / min(theirs.cpu for _, theirs in usages)
    memory = min(ours.peak for ours, _ in usages) / min(theirs.peak for _, theirs in usages)
    for what, ratio in (("processor time", cpu), ("memory", memory)):
        found.append(
            {
                "case": f"import of SparseClassifier against sklearn.linear_model, {what}",
                "ratio": ratio,
                "target": IMPORT_TARGETS[what],
                "what": f"{what} of a process that imports ours / scikit-learn's",
            }
        )
    return found
