"""Tables 2 to 5 of RNM-Screen as they are printed, and why some of their numbers are not ours."""

from __future__ import annotations

from collections.abc import Mapping

from taciturn_research.reproduce.experiment import Published, Row
from taciturn_research.reproduce.screening.sets import SETS, TRANSFORMED, UNTRANSFORMED
from taciturn_research.reproduce.screening.synthetic import RNM

NP_FW = "NP-FW"
NP_FW_SCREENED = "NP-FW with the screening rule"
PRESELECT = "Preselect-K FW"
ORACLE = "Oracle-K FW"
DP_FW = "DP-FW"
STEPWISE = "MSE after a step"

_LABELS = tuple(known.label for known in SETS.values())

TABLE_2 = {
    "TPR": (0.333, 0.250, 0.600, 0.556, 0.474, 0.484, 0.488, 0.580),
    "FPR": (0.200, 0.444, 0.444, 0.556, 0.488, 0.486, 0.432, 0.453),
    "F1": (0.534, 0.497, 0.333, 0.445, 0.377, 0.387, 0.430, 0.370),
    "sparsity": (0.319, 0.315, 0.357, 0.506, 0.508, 0.496, 0.480, 0.450),
    "R2": (0.800, 0.483, 0.653, 0.688, 0.851, 0.983, 0.837, 0.357),
}
"""Measures of RNM-Screen, by set."""

TABLE_3 = {
    NP_FW: {
        "F1": (1.000, 1.000, 0.833, 0.889, 0.829, 0.667, 0.800, 0.868),
        "MSE": (0.512, 0.322, 0.025, 0.439, 0.610, 0.009, 0.277, 0.489),
    },
    PRESELECT: {
        "F1": (0.667, 0.000, 0.400, 0.571, 0.467, 0.500, 0.540, 0.546),
        "MSE": (0.689, 0.786, 0.246, 0.759, 0.655, 0.358, 0.373, 0.489),
    },
    ORACLE: {
        "F1": (0.867, 0.788, 0.320, 0.339, 0.337, 0.342, 0.400, 0.320),
        "MSE": (0.560, 0.516, 0.368, 0.451, 0.979, 0.415, 0.382, 0.736),
    },
    RNM: {
        "F1": (0.534, 0.497, 0.333, 0.445, 0.377, 0.387, 0.430, 0.370),
        "MSE": (0.894, 0.835, 0.689, 0.451, 0.979, 0.431, 0.395, 0.822),
    },
}
"""Measures by method and set."""

TABLE_4 = {
    "F1": (0.450, 0.525, 0.447, 0.451, 0.412, 0.372, 0.433, 0.367),
    "sparsity": (0.113, 0.200, 0.204, 0.441, 0.497, 0.240, 0.505, 0.439),
    "R2": (0.109, 0.062, 0.526, 0.582, 0.808, 0.856, 0.821, 0.383),
}
"""As Table 2, without the transform."""

TABLE_5 = {
    NP_FW: {
        "F1": (1.000, 0.889, 1.000, 0.941, 0.872, 0.061, 0.469, 0.021),
        "MSE": (0.012, 0.018, 0.020, 0.019, 0.024, 2.120, 0.020, 0.023),
    },
    ORACLE: {
        "F1": (0.667, 0.788, 0.550, 0.583, 0.424, 0.411, 0.400, 0.349),
        "MSE": (0.014, 0.051, 0.124, 0.182, 0.108, 1.711, 0.033, 0.022),
    },
    RNM: {
        "F1": (0.450, 0.525, 0.447, 0.451, 0.412, 0.372, 0.433, 0.367),
        "MSE": (0.010, 0.159, 0.555, 0.301, 0.095, 1.820, 0.034, 0.004),
    },
}
"""As Table 3, without the transform."""

# The numbers are printed with three decimals.
_HALF_A_DIGIT = 5e-4


def row_keys(label: str, transform: str, method: str, measure: str) -> Row:
    """The keys of a number of one trial on a real set."""
    return {"data set": label, "transform": transform, "method": method, "measure": measure}


def _published(item: str, transform: str, method: str, columns: Mapping[str, tuple[float, ...]]) -> list[Published]:
    return [
        Published(
            item,
            row_keys(label, transform, method, measure),
            value,
            tolerance=_HALF_A_DIGIT,
            reason=_REASONS.get((item, label, method, measure)) or _REASONS.get((item, method), ""),
        )
        for measure, values in columns.items()
        for label, value in zip(_LABELS, values, strict=True)
    ]


_WITHIN = (
    "the penalty is not printed: over all that leave as many non-zeros, ours runs over a range that holds the printed "
    "number, to its digits"
)
_PRESELECTED = (
    "not found: norms of the features as they are, scaled column by column or transformed, and the smallest instead of "
    "the largest, were tried; on Abalone, Housing and Body Fat no choice of K features whatever gives both F1 and MSE "
    "at this radius"
)
_ONE_TRIAL = "a count of one trial (51 of 88), where the caption says an average"
_PYRIM = (
    "not found: a radius of 4.9 instead of 9.4 gives the 0.439 of NP-FW, but 0.96 for RNM-Screen; 0.451 is printed for "
    "Oracle-K and RNM-Screen alike, and as an F1 in Table 5; without the transform, Pyrim agrees"
)
_NO_CONVERGENCE = (
    "the LASSO does not converge here within scikit-learn's default of 1000 iterations, so the radius is not certain: "
    "ours is 1600; 1750 would give NP-FW 0.022, 1800 0.024"
)

# By table, set, method and measure, or by table and method.
_REASONS: dict[tuple[str, ...], str] = {
    ("Table 2", "BlogFeedback", RNM, "TPR"): _ONE_TRIAL,
    ("Table 3", NP_FW): _WITHIN,
    ("Table 3", PRESELECT): _PRESELECTED,
    **{("Table 3", "Pyrim", method, "MSE"): _PYRIM for method in (NP_FW, ORACLE, RNM)},
    ("Table 5", NP_FW): _WITHIN,
    ("Table 5", "Residential Buildings", NP_FW, "MSE"): "a radius of 541 gives it, ours are 563 to 566",
    ("Table 5", "Communities and Crime", NP_FW, "F1"): (
        "not found: over all penalties that leave 41 non-zeros 0.49 to 0.57, with 44 non-zeros 0.41 to 0.48"
    ),
    **{("Table 5", "BlogFeedback", method, "MSE"): _NO_CONVERGENCE for method in (NP_FW, ORACLE)},
    ("Table 5", "Abalone", RNM, "MSE"): (
        "less than the 0.012 of NP-FW, which minimizes it over the same ball; a digit may have slipped"
    ),
}

PRINTED = (
    *_published("Table 2", TRANSFORMED, RNM, TABLE_2),
    *(one for method, columns in TABLE_3.items() for one in _published("Table 3", TRANSFORMED, method, columns)),
    *_published("Table 4", UNTRANSFORMED, RNM, TABLE_4),
    *(one for method, columns in TABLE_5.items() for one in _published("Table 5", UNTRANSFORMED, method, columns)),
)
