"""Norms of rows on the lattice, exactly."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from taciturn.core.arrays import FloatArray, IndexArray
from taciturn.data.design import Design
from taciturn.sources import Block

__all__ = ["row_norms", "squared_row_norms"]


def squared_row_norms(design: Design, centre: FloatArray | None = None) -> FloatArray:
    """Squared L2 norms of the rows less a centre, in lattice units. Exact: below 2**53 for half a million columns."""
    norms = np.empty(design.shape[0])
    for rows, part in design.pieces():
        if sp.issparse(part):
            norms[rows] = np.asarray(part.power(2).sum(axis=1)).ravel()
        else:
            norms[rows] = np.einsum("ij,ij->i", part, part)
        if centre is not None:
            norms[rows] -= 2.0 * np.asarray(part @ centre).ravel() - float(centre @ centre)
    return norms


def row_norms(
    block: Block, columns: IndexArray | None, centre: FloatArray | None, layout: str | None, *, one_pass: bool = False
) -> FloatArray:
    """Squared L2 norms of the rows less a centre, in lattice units, which the block remembers.

    In one pass the lattice is built for this sum alone, a few rows at a time.
    """
    design = block.design(columns, layout)

    def compute() -> FloatArray:
        if not one_pass:
            return squared_row_norms(design, centre)
        norms = np.empty(block.n_rows)
        for rows, part in design.blocks():
            norms[rows] = squared_row_norms(part, centre)
        return norms

    return block.recall("row norms", None if centre is None else centre.tobytes(), compute)
