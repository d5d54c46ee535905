"""What the paper prints, and what its trials have in common.

Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "COUNT_EPSILON",
    "FEWER",
    "LASSO",
    "N_STEPS",
    "PAPER",
    "PRINTED_SETS",
    "RADIUS",
    "REFERENCE",
    "SPARSE",
    "SPARSIFIED",
    "SPARSIFIER",
    "STOPPED",
    "SYNTHETIC_SET",
    "PrintedSet",
]

PAPER = "Sparse Private LASSO Logistic Regression (Sparsifier)"

RADIUS, N_STEPS, COUNT_EPSILON = 10.0, 1000, 0.05
"""Lambda of the tables, the number of iterations, and the count's share of epsilon."""

REFERENCE = "Frank-Wolfe (non-private)"
LASSO, SPARSIFIER = "Private LASSO (published)", "Sparsifier (published)"
STOPPED = "Private LASSO, stopped early (published)"
"""Few steps with the noise of all 1000: the reading of Table 2 that comes near its numbers."""
FEWER = "Private LASSO, noise for its steps (published)"
"""Few steps with the noise that so few need: Algorithm 1 with a small T."""
SPARSIFIED, SPARSE = "SparsifiedClassifier", "SparseClassifier"

SYNTHETIC_SET = "SYNTHETIC"


@dataclass(frozen=True, slots=True)
class PrintedSet:
    """A line of Tables 1 and 2.

    Non-zero coefficients of the non-private reference; then those of both methods with their ratio to the reference's;
    then non-zero coefficients, accuracy and AUC in percent, of Table 2.
    """

    non_private: float
    lasso: tuple[float, float]
    sparsifier: tuple[float, float]
    sparse_sparsifier: tuple[float, float, float]
    sparse_lasso: tuple[float, float, float]


PRINTED_SETS = {
    "KDDCUP'99": PrintedSet(4, (106.90, 26.75), (16.10, 4.29), (17, 53.71, 91.48), (14, 54.66, 86.57)),
    "COVTYPE": PrintedSet(17, (30.38, 3.18), (11.78, 0.68), (12, 57.35, 64.36), (11, 54.90, 60.15)),
    "SPLICE": PrintedSet(52, (60.00, 1.15), (12.70, 0.24), (12, 71.34, 86.84), (14, 49.95, 50.13)),
    "PHISHING": PrintedSet(2, (68.00, 34.00), (12.02, 6.16), (12, 63.79, 77.23), (10, 64.26, 68.95)),
    SYNTHETIC_SET: PrintedSet(7, (100.00, 14.29), (15.08, 2.29), (16, 85.17, 93.28), (17, 56.41, 59.03)),
    "MUSHROOM": PrintedSet(16, (111.98, 7.00), (16.02, 1.04), (17, 77.89, 88.65), (17, 72.66, 83.23)),
    "A9A": PrintedSet(19, (122.90, 6.47), (18.06, 0.89), (17, 76.60, 67.64), (19, 71.57, 66.29)),
    "W8A": PrintedSet(20, (285.64, 14.44), (25.60, 1.35), (27, 97.15, 75.64), (26, 97.02, 76.36)),
    "COLON": PrintedSet(58, (785.72, 13.56), (68.16, 1.12), (65, 83.67, 85.00), (69, 83.33, 86.61)),
    "GISETTE": PrintedSet(77, (901.30, 11.67), (102.50, 1.43), (110, 67.94, 79.76), (102, 64.48, 70.05)),
}
"""Tables 1 and 2, in the order of the paper."""
