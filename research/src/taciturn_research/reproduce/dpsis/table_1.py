"""Table 1 of DP-SIS: the data sets, and how sparsely linear they are.

Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*, Section 5.
"""

from __future__ import annotations

import numpy as np

from taciturn_research.reproduce.dpsis.common import (
    CASES,
    CODES,
    PAPER,
    PRINTED_SETS,
    READING,
    SCALING,
    ScaledSet,
    scale_and_fit,
)
from taciturn_research.reproduce.experiment import Experiment, Published, Table
from taciturn_research.reproduce.numbers import Row

__all__ = ["TABLE_1"]

R2 = "R2 of the LASSO"

# The numbers are printed with four decimals.
_HALF_A_DIGIT = 5e-5
_NOT_FOUND = (
    "not found: nothing is random here, but the scaling is not printed; tried 17 scalings of the columns and 11 of the "
    "target, penalties 0.1 and 0.05, with and without intercept, on eight sets: none gives the digits of more than one"
)
_REASONS = {
    "sorlie": "the set was probably left as it is in the file: unscaled, with the codes for target, it gives 0.9269",
    "su": "the set was probably left as it is in the file: unscaled, with the codes for target, it gives 0.9542",
    "chiaretti": "not found: six classes give 0.279; the two classes for which the set is known, 111 records, 0.543",
}
_COLUMNS = {
    "sorlie": "the file of the collection that the paper's names come from has 456 columns",
    "su": "the file of the collection that the paper's names come from has 5565 columns",
}


def sizes_and_r2(prepared: ScaledSet, seed: int) -> list[Row]:
    """The columns of the table. Nothing is random, so the seed is not used."""
    n, p = prepared.X.shape
    values = {"n": n, "p": p, R2: prepared.r2, "coefficients that are not zero": int(np.sum(prepared.coef != 0.0))}
    return [{"data set": prepared.name, "measure": measure, "value": value} for measure, value in values.items()]


def _printed() -> tuple[Published, ...]:
    found: list[Published] = []
    for name, line in PRINTED_SETS.items():
        of = {"data set": name}
        found += [
            Published("Table 1", {**of, "measure": "n"}, line.n),
            Published("Table 1", {**of, "measure": "p"}, line.p, reason=_COLUMNS.get(name, "")),
            Published("Table 1", {**of, "measure": R2}, line.r2, _HALF_A_DIGIT, _REASONS.get(name, _NOT_FOUND)),
        ]
    return tuple(found)


TABLE_1 = Experiment(
    name="dpsis-table-1",
    paper=PAPER,
    summary="records, columns and R2 of the LASSO with alpha 0.1 on the microarray sets",
    relation="none: nothing private is computed",
    scaling=SCALING,
    notes=(
        READING,
        CODES,
        "Of Yeoh a filtered version is there, with 2526 of the 12625 columns; nothing is printed about it.",
    ),
    trials=1,
    quick_trials=1,
    prepare=scale_and_fit,
    run=sizes_and_r2,
    cases=CASES,
    published=_printed(),
    tables=(Table("Table 1", lines=("data set",), across="measure"),),
)
