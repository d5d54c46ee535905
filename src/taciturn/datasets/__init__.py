"""Synthetic data: the sets on which the papers report, and large sparse ones for timing.

Every generator returns ``(X, y, coef)``. They draw from numpy, not from the package's noise streams: nobody
stands behind these records. The papers scale by maxima of the drawn values, and so do these generators; with
data about people that is a release, and the bounds have to be public instead.
"""

from taciturn.datasets.dpsis import make_dpsis_instability, make_dpsis_linear
from taciturn.datasets.ight import make_ight_linear, make_ight_logistic
from taciturn.datasets.power_law import make_power_law_sparse
from taciturn.datasets.screening import make_screening_linear, make_screening_logistic, make_sparsifier_logistic

__all__ = [
    "make_dpsis_instability",
    "make_dpsis_linear",
    "make_ight_linear",
    "make_ight_logistic",
    "make_power_law_sparse",
    "make_screening_linear",
    "make_screening_logistic",
    "make_sparsifier_logistic",
]
