"""What Gram matrices and their eigenvectors take of a fit to sparse rows.

Nothing else in a fit looks at curvature: no largest eigenvalue of the data is computed, whose cost used to be most of
such a fit. Wide tables are screened first, so that matrices are those of the columns that are left. A table that is
narrow enough to be fitted whole has a Gram matrix of all its columns, which is then most of the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from taciturn import SparseClassifier
from taciturn.datasets import make_power_law_sparse
from taciturn.methods.releases import Releases
from taciturn.methods.sparse import run as sparse_run
from taciturn_research.benchmarks.measuring import Row

__all__ = ["one_hot", "rows"]

TARGET = 0.15
WHOLE = "no column is screened out: d**2 products a record and d**3 for eigenvectors, against d a record and step"


def one_hot(n_rows: int, n_columns: int, n_codes: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Columns of ``n_codes`` categories each, of which the first are popular; one category in twenty matters."""
    rng = np.random.default_rng(seed)
    popularity = np.cumsum(1.0 / np.arange(1.0, n_codes + 1.0))
    codes = np.searchsorted(popularity / popularity[-1], rng.random((n_rows, n_columns)))
    places = codes + n_codes * np.arange(n_columns)
    starts = np.arange(0, places.size + 1, n_columns)
    X = sp.csr_array((np.ones(places.size), places.ravel(), starts), shape=(n_rows, n_columns * n_codes))
    effects = rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.05)
    signal = X @ effects + 0.5 * rng.standard_normal(n_rows)
    return X, (signal > np.median(signal)).astype(np.int64)


def rows(repeats: int = 3) -> Iterator[Row]:
    """One row a table; ``ratio`` is the share of the fit's processor time."""
    text, labels, _ = make_power_law_sparse(random_state=0)
    cases = (
        ("RCV1-like 20242 x 47236", text, labels, None),
        ("one-hot 20000 x 47010", *one_hot(20_000, 30, 1567), None),
        ("one-hot 20000 x 600, not screened", *one_hot(20_000, 30, 20), WHOLE),
    )
    with threadpool_limits(1):
        for name, X, y, why in cases:
            yield {
                "case": f"SparseClassifier, {name}: Gram matrices and eigenvectors",
                "ratio": min(share_of_fit(X, y) for _ in range(repeats)),
                "target": TARGET,
                "what": "share of the fit's processor time",
                **({"why": why} if why else {}),
            }


def share_of_fit(X: Any, y: np.ndarray) -> float:
    """The share of one fit."""
    spent = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            result = function(*args, **options)
            spent[0] += time.process_time() - start
            return result

        return call

    with ExitStack() as stack:
        for owner, name in ((Releases, "gram_matrix"), (sparse_run, "eigh"), (sparse_run, "_denoised")):
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        start = time.process_time()
        SparseClassifier(classes=(0, 1), random_state=0).fit(X, y)
        whole = time.process_time() - start
    return spent[0] / whole
