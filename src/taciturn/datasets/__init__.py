"""Data sets: the synthetic ones on which the papers report, large sparse ones for timing, and real ones from files.

Every generator returns ``(X, y, coef)``. They draw from numpy, not from the package's noise streams: nobody
stands behind these records. The papers scale by maxima of the drawn values, and so do these generators; with
data about people that is a release, and the bounds have to be public instead.

``load_dataset(name)`` reads a real data set from files that the user has, exactly as they are; ``DATASETS`` says
which there are, what is known of them and where their publishers keep them. Nothing is ever downloaded.
"""

from taciturn.datasets.dpsis import make_dpsis_instability, make_dpsis_linear
from taciturn.datasets.ight import make_ight_linear, make_ight_logistic
from taciturn.datasets.power_law import make_power_law_sparse
from taciturn.datasets.real import (
    DATA_VARIABLE,
    DATASETS,
    MICROARRAYS,
    Dataset,
    DatasetFacts,
    find_dataset,
    load_dataset,
)
from taciturn.datasets.screening import make_screening_linear, make_screening_logistic, make_sparsifier_logistic

__all__ = [
    "DATASETS",
    "DATA_VARIABLE",
    "MICROARRAYS",
    "Dataset",
    "DatasetFacts",
    "find_dataset",
    "load_dataset",
    "make_dpsis_instability",
    "make_dpsis_linear",
    "make_ight_linear",
    "make_ight_logistic",
    "make_power_law_sparse",
    "make_screening_linear",
    "make_screening_logistic",
    "make_sparsifier_logistic",
]
