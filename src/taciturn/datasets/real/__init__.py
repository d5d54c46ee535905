"""Real data sets by name: what is known of each, the files it comes in, and how they are read."""

from taciturn.datasets.real.facts import DATASETS, MICROARRAYS, DatasetFacts
from taciturn.datasets.real.loader import DATA_VARIABLE, Dataset, find_dataset, load_dataset

__all__ = ["DATASETS", "DATA_VARIABLE", "MICROARRAYS", "Dataset", "DatasetFacts", "find_dataset", "load_dataset"]
