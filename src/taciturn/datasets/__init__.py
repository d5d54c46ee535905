"""Data sets: the synthetic ones on which the papers report, large sparse ones for timing, and real ones from files.

Every generator returns ``(X, y, coef)``. The generators draw from numpy, not from the noise streams of the package,
because their records are not private. They scale by maxima of the drawn values, as the papers do; for data about people
such a maximum is a release, and bounds have to be public instead.

``load_dataset(name)`` reads a real data set from files of the user, unchanged; ``DATASETS`` lists the data sets, the
known facts about them and where their publishers keep them. Nothing is ever downloaded.
"""

from taciturn.datasets.real import (
    DATA_VARIABLE,
    DATASETS,
    MICROARRAYS,
    Dataset,
    DatasetFacts,
    find_dataset,
    load_dataset,
)
from taciturn.datasets.synthetic import (
    make_dpsis_instability,
    make_dpsis_linear,
    make_ight_linear,
    make_ight_logistic,
    make_power_law_sparse,
    make_screening_linear,
    make_screening_logistic,
    make_sparsifier_logistic,
)

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
