"""What is known of each data set: its shape, its labels or target, its files, and who publishes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taciturn.datasets.real.formats import Arff, Delimited, Form, Libsvm, Npz

__all__ = ["DATASETS", "MICROARRAYS", "DatasetFacts"]


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What a data set is; files that hold something else are refused.

    Parameters
    ----------
    task : str
        "classification" or "regression".
    shape : tuple of int
        Number of training records and of features.
    forms : tuple of Form
        The forms in which it is accepted, the preferred one first.
    publisher, address : str
        Who publishes it, and where.
    about : str
        What labels, target and columns mean.
    labels : mapping of int to int, default=None
        Labels and how many training records have them; None where they are not known for certain, or for regression.
    target : tuple of float, default=None
        Least and largest training target; None where they are not known for certain, or for classification.
    n_test : int, default=0
        Number of test records.
    test_labels : mapping of int to int, default=None
        As ``labels``, for the test part.
    sparse : bool, default=False
        Whether the features are a CSR array.
    missing : bool, default=False
        Whether some features are missing, and thus NaN.
    """

    task: str
    shape: tuple[int, int]
    forms: tuple[Form, ...]
    publisher: str
    address: str
    about: str
    labels: Mapping[int, int] | None = None
    target: tuple[float, float] | None = None
    n_test: int = 0
    test_labels: Mapping[int, int] | None = None
    sparse: bool = False
    missing: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The accepted files, the preferred ones first; with a plus sign between those that belong together."""
        return tuple(str(form) for form in self.forms)


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI = "https://archive.ics.uci.edu/dataset"
_TORGO = "https://www.dcc.fc.up.pt/~ltorgo/Regression/DataSets.html"


def _microarray(name: str, shape: tuple[int, int], counts: tuple[int, ...], authors: str) -> DatasetFacts:
    """One of a collection in R, to be saved as arrays X and y."""
    return DatasetFacts(
        task="classification",
        shape=shape,
        forms=(Npz(f"{name}.npz"),),
        publisher=f"{authors}, collected as RData (save its x and y as arrays X and y, classes as codes from 0)",
        address="https://github.com/ramhiser/datamicroarray",
        about="Expression levels (christensen: methylation); labels are codes of the classes from 0.",
        labels=dict(enumerate(counts)) or None,
    )


def _binary(address: str, publisher: str = "LIBSVM", **facts: Any) -> DatasetFacts:
    return DatasetFacts(task="classification", publisher=publisher, address=address, **facts)


def _regression(address: str, publisher: str = "UCI", **facts: Any) -> DatasetFacts:
    return DatasetFacts(task="regression", publisher=publisher, address=address, **facts)


_CHIARETTI = DatasetFacts(
    task="classification",
    shape=(128, 12625),
    forms=(Npz("chiaretti.npz"),),
    publisher="Chiaretti et al. 2004, in the package ALL of Bioconductor",
    address="https://bioconductor.org/packages/ALL",
    about="Expression levels; labels are codes of six molecular subtypes from 0. The two largest are 1 and 3.",
    labels={0: 10, 1: 37, 2: 5, 3: 74, 4: 1, 5: 1},
)

_MICROARRAYS = {
    "alon": _microarray("alon", (62, 2000), (22, 40), "Alon et al. 1999"),
    "borovecki": _microarray("borovecki", (31, 22283), (14, 17), "Borovecki et al. 2005"),
    "chiaretti": _CHIARETTI,
    "chowdary": _microarray("chowdary", (104, 22283), (62, 42), "Chowdary et al. 2006"),
    "christensen": _microarray("christensen", (217, 1413), (85, 113, 19), "Christensen et al. 2009"),
    "golub": _microarray("golub", (72, 7129), (47, 25), "Golub et al. 1999"),
    "gordon": _microarray("gordon", (181, 12533), (150, 31), "Gordon et al. 2002"),
    "gravier": _microarray("gravier", (168, 2905), (111, 57), "Gravier et al. 2010"),
    "khan": _microarray("khan", (63, 2308), (8, 23, 12, 20), "Khan et al. 2001"),
    "shipp": _microarray("shipp", (77, 7129), (58, 19), "Shipp et al. 2002"),
    "singh": _microarray("singh", (102, 12600), (50, 52), "Singh et al. 2002"),
    "sorlie": _microarray("sorlie", (85, 456), (14, 11, 13, 15, 32), "Sorlie et al. 2001"),
    "su": _microarray("su", (102, 5565), (25, 26, 28, 23), "Su et al. 2002"),
    "subramanian": _microarray("subramanian", (50, 10100), (33, 17), "Subramanian et al. 2005"),
    "west": _microarray("west", (49, 7129), (25, 24), "West et al. 2001"),
}

MICROARRAYS = tuple(_MICROARRAYS)
"""Names of the microarray sets whose classes are known for certain."""

# The order in which a conversion from R codes their classes is not certain.
_MORE_MICROARRAYS = {
    "burczynski": _microarray("burczynski", (127, 22283), (), "Burczynski et al. 2006"),
    "chin": _microarray("chin", (118, 22215), (), "Chin et al. 2006"),
    "tian": _microarray("tian", (173, 12625), (), "Tian et al. 2003"),
    "yeoh": _microarray("yeoh", (248, 12625), (), "Yeoh et al. 2002"),
    "yeoh_filtered": DatasetFacts(
        task="classification",
        shape=(248, 2526),
        forms=(Npz("yeoh_filtered.npz"),),
        publisher="Yeoh et al. 2002, in the benchmark of de Souto et al. 2008, collected in padilha/biclustlib",
        address="https://github.com/padilha/biclustlib",
        about="The records of yeoh with fewer genes, values limited to 10 and 16000; labels are codes from 0.",
        labels={0: 15, 1: 27, 2: 64, 3: 20, 4: 43, 5: 79},
    ),
}

_REGRESSION = {
    "abalone": _regression(
        f"{_UCI}/1/abalone",
        shape=(4177, 8),
        forms=(
            Npz("abalone.npz"),
            Libsvm("abalone"),
            Delimited("abalone.data", symbols={"M": 1.0, "F": 2.0, "I": 3.0}),
        ),
        about="Target: rings. Column 0 is the sex: 1 male, 2 female, 3 infant.",
        target=(1.0, 29.0),
    ),
    "housing": _regression(
        f"{_LIBSVM}/regression.html#housing",
        publisher="LIBSVM, from StatLib",
        shape=(506, 13),
        forms=(Npz("housing.npz"), Libsvm("housing"), Delimited("housing.data", delimiter=None)),
        about="Target: median value of homes in Boston, in thousands of dollars.",
        target=(5.0, 50.0),
    ),
    "bodyfat": _regression(
        f"{_LIBSVM}/regression.html#bodyfat",
        publisher="LIBSVM, from StatLib",
        shape=(252, 14),
        # StatLib's columns begin with density and percentage; Weka calls the percentage "class" and has it last.
        forms=(
            Npz("bodyfat.npz"),
            Libsvm("bodyfat"),
            Arff("bodyfat.arff", target="density", first=("percent", "class")),
        ),
        about="Target: density of the body. Column 0 is the percentage of fat, which is computed from the density.",
        target=(0.995, 1.1089),
    ),
    "pyrim": _regression(
        _TORGO,
        publisher="Luis Torgo's collection",
        shape=(74, 27),
        forms=(Npz("pyrim.npz"), Libsvm("pyrim"), Arff("pyrim.arff")),
        about="Target: activity of pyrimidines.",
        target=(0.1, 0.9),
    ),
    "triazines": _regression(
        _TORGO,
        publisher="Luis Torgo's collection",
        shape=(186, 60),
        forms=(Npz("triazines.npz"), Libsvm("triazines"), Arff("triazines.arff")),
        about="Target: activity of triazines.",
        target=(0.1, 0.9),
    ),
    "residential": _regression(
        f"{_UCI}/437/residential+building+data+set",
        shape=(372, 103),
        forms=(Npz("residential.npz", extras=("y_cost",)),),
        about="Target: sales price (V-9); extras: y_cost, the cost of construction (V-10). Dates are no features.",
        target=(50.0, 6800.0),
    ),
    "communities": _regression(
        f"{_UCI}/183/communities+and+crime",
        shape=(1994, 122),
        forms=(Npz("communities.npz"), Delimited("communities.data", skipped=5, symbols={"?": math.nan})),
        about="Target: violent crimes, scaled as all columns. Missing values are NaN: 1675 in each of 22 columns on "
        "the police (96 to 112, 116 to 119 and 121), one in column 25. State, county, community, its name and the "
        "fold are no features.",
        target=(0.0, 1.0),
        missing=True,
    ),
    "blogfeedback": _regression(
        f"{_UCI}/304/blogfeedback",
        shape=(52397, 280),
        forms=(Npz("blogfeedback.npz"), Delimited("blogData_train.csv", "blogData_test-*.csv")),
        about="Target: comments in the next 24 hours. The test files follow one another in the order of their names.",
        target=(0.0, 1424.0),
        n_test=7624,
    ),
    "e2006_tfidf": _regression(
        f"{_LIBSVM}/regression.html#E2006-tfidf",
        publisher="LIBSVM",
        shape=(16087, 150360),
        forms=(Npz("e2006_tfidf.npz"), Libsvm("E2006.train", "E2006.test")),
        about="Target: logarithm of the volatility of a company's shares. Columns: words of its annual report.",
        n_test=3308,
        sparse=True,
    ),
}

_CLASSIFICATION = {
    "a9a": _binary(
        f"{_LIBSVM}/binary.html#a9a",
        shape=(32561, 123),
        forms=(Npz("a9a.npz"), Libsvm("a9a", "a9a.t")),
        about="Labels: 1 for an income above 50,000 dollars a year, -1 otherwise. Columns are indicators.",
        labels={-1: 24720, 1: 7841},
        n_test=16281,
        test_labels={-1: 12435, 1: 3846},
        sparse=True,
    ),
    "w8a": _binary(
        f"{_LIBSVM}/binary.html#w8a",
        shape=(49749, 300),
        forms=(Npz("w8a.npz"), Libsvm("w8a")),
        about="Labels: -1 and 1. Columns are indicators of words on web pages. The training part alone.",
        labels={-1: 48270, 1: 1479},
        sparse=True,
    ),
    "mushrooms": _binary(
        f"{_LIBSVM}/binary.html#mushrooms",
        shape=(8124, 112),
        forms=(Npz("mushrooms.npz"), Libsvm("mushrooms")),
        about="Labels: 1 poisonous, 2 edible. Columns are indicators.",
        labels={1: 3916, 2: 4208},
        sparse=True,
    ),
    "phishing": _binary(
        f"{_LIBSVM}/binary.html#phishing",
        shape=(11055, 68),
        forms=(Npz("phishing.npz"), Libsvm("phishing")),
        about="Labels: 0 and 1. Columns are indicators, divided by the root of 30 so that rows have norm 1.",
        labels={0: 4898, 1: 6157},
        sparse=True,
    ),
    "splice": _binary(
        f"{_LIBSVM}/binary.html#splice",
        shape=(1000, 60),
        forms=(Npz("splice.npz"), Libsvm("splice", "splice.t")),
        about="Labels: -1 and 1. Columns are codes 1 to 4 of the bases along a stretch of DNA.",
        labels={-1: 483, 1: 517},
        n_test=2175,
        test_labels={-1: 1044, 1: 1131},
    ),
    "covtype": _binary(
        f"{_LIBSVM}/binary.html#covtype.binary",
        publisher="LIBSVM, from UCI",
        shape=(581012, 54),
        forms=(
            Npz("covtype.npz", extras=("y_multiclass",)),
            Libsvm("covtype.libsvm.binary", relabel={1: -1, 2: 1}),
        ),
        about="Labels: 1 for cover type 2, -1 for the others (2 and 1 in LIBSVM's file). Extras, in the archive alone: "
        "y_multiclass, the cover types 1 to 7. Ten measures, then 44 indicators.",
        labels={-1: 297711, 1: 283301},
    ),
    "colon": _binary(
        f"{_LIBSVM}/binary.html#colon-cancer",
        shape=(62, 2000),
        forms=(Npz("colon.npz"), Libsvm("colon-cancer")),
        about="Labels: -1 and 1. The tissues of alon, normalised by LIBSVM.",
    ),
    "gisette": _binary(
        f"{_LIBSVM}/binary.html#gisette",
        publisher="LIBSVM, from NIPS 2003",
        shape=(6000, 5000),
        forms=(Npz("gisette.npz"), Libsvm("gisette_scale", "gisette_scale.t")),
        about="Labels: -1 and 1. LIBSVM has scaled the columns to [-1, 1]. The test part is the validation set.",
        labels={-1: 3000, 1: 3000},
        n_test=1000,
        test_labels={-1: 500, 1: 500},
    ),
    "rcv1_binary": _binary(
        f"{_LIBSVM}/binary.html#rcv1.binary",
        shape=(20242, 47236),
        forms=(Npz("rcv1_binary.npz"), Libsvm("rcv1_train.binary", "rcv1_test.binary")),
        about="Labels: -1 and 1. Columns are words, rows have norm 1.",
        n_test=677399,
        sparse=True,
    ),
    "kddcup99_10pct": _binary(
        f"{_UCI}/130/kdd+cup+1999+data",
        publisher="UCI",
        shape=(494021, 41),
        forms=(
            Npz(
                "kddcup99_10pct.npz",
                extras=("y_label", "label_names"),
                categories={1: "protocol_type_names", 2: "service_names", 3: "flag_names"},
            ),
        ),
        about="Labels: -1 normal, 1 attack. Columns 1 to 3 are codes; one-hot coded there are 118 columns. Extras: "
        "y_label, codes of the 23 kinds of connection, and label_names, their names.",
        labels={-1: 97278, 1: 396743},
    ),
    "dorothea": _binary(
        f"{_UCI}/169/dorothea",
        publisher="UCI, from NIPS 2003",
        shape=(800, 100000),
        forms=(Npz("dorothea.npz"),),
        about="Labels: -1 and 1. Columns are indicators. The test part is the validation set.",
        labels={-1: 722, 1: 78},
        n_test=350,
        test_labels={-1: 316, 1: 34},
        sparse=True,
    ),
    "arcene": _binary(
        f"{_UCI}/167/arcene",
        publisher="UCI, from NIPS 2003",
        shape=(200, 10000),
        forms=(Npz("arcene.npz"),),
        about="Labels: -1 and 1. The first 100 records are the training set, the others the validation set.",
        labels={-1: 112, 1: 88},
    ),
    "basehock": _binary(
        "https://jundongl.github.io/scikit-feature/datasets.html",
        publisher="the feature selection repository of Arizona State University",
        shape=(1993, 4862),
        forms=(Npz("basehock.npz"),),
        about="Labels: 1 and 2, for two newsgroups. Columns are counts of words.",
        labels={1: 994, 2: 999},
        sparse=True,
    ),
    "rcv1_vw_1000": _binary(
        "https://github.com/VowpalWabbit/vowpal_wabbit",
        publisher="Vowpal Wabbit, as test/train-sets/rcv1_small.dat",
        shape=(1000, 47236),
        forms=(Npz("rcv1_vw_1000.npz"),),
        about="Labels: -1 and 1. A sample of RCV1 whose choice of records and labels the publisher does not state.",
        labels={-1: 541, 1: 459},
        sparse=True,
    ),
    "farm_ads": _binary(
        f"{_UCI}/218/farm+ads",
        publisher="UCI",
        shape=(4143, 54877),
        forms=(Npz("farm_ads.npz"),),
        about="Labels: 1 for approved advertisements, -1 otherwise. Columns are indicators of words.",
        labels={-1: 1933, 1: 2210},
        sparse=True,
    ),
}

DATASETS: dict[str, DatasetFacts] = {**_MICROARRAYS, **_MORE_MICROARRAYS, **_REGRESSION, **_CLASSIFICATION}
"""The data sets by name."""
