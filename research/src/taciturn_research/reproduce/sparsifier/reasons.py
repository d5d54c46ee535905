"""Why printed numbers differ from ours, as far as it was found; the numbers are those of runs in other readings."""

from __future__ import annotations

from taciturn_research.reproduce.sparsifier.printed import LASSO, PRINTED_SETS, REFERENCE, SYNTHETIC_SET

__all__ = ["CALIBRATED", "TABLE_1_REASONS", "TABLE_2_REASONS"]

_KDDCUP_REFERENCE = (
    "not found: 3 in most draws, also with denial-of-service attacks alone as the negative class; 7 if rows are not "
    "divided by their length, 4 with a constant column"
)
_KDDCUP_DENSITY = (
    "not found: 104 to 112 if rows are not divided by their length (the reference then has 7), 117 with noise 1.5 "
    "times as large"
)
_COVTYPE_REFERENCE = "17 to 19 in draws of 40,000 to all records; the paper's draw is not known"
_COVTYPE_DENSITY = (
    "not found: all 581,012 records give 24 to 27, fewer records have more noise and give up to all 54 (50,000 records "
    "in the quick setting); the printed ratio of 3.18 is that of 54 to 17, while 30.38 to 17 is 1.79"
)
_W8A_DENSITY = "not found: noise 1.5 times as large gives 269, a constant column 275, lambda = 50 gives 286"

_SPLICE_REFERENCE = (
    "not found: 57 to 60 after 50,000 steps, 51 to 57 after 3,000; LIBSVM's training part alone gives 53 to 58"
)

TABLE_1_REASONS = {
    ("SPLICE", REFERENCE, "NZ"): _SPLICE_REFERENCE,
    ("SPLICE", LASSO, "ratio"): _SPLICE_REFERENCE,
    ("KDDCUP'99", REFERENCE, "NZ"): _KDDCUP_REFERENCE,
    ("KDDCUP'99", LASSO, "ratio"): f"the reference mostly has 3 coefficients here and 4 in print; {_KDDCUP_REFERENCE}",
    ("KDDCUP'99", LASSO, "NZ"): _KDDCUP_DENSITY,
    ("COVTYPE", REFERENCE, "NZ"): _COVTYPE_REFERENCE,
    ("COVTYPE", LASSO, "NZ"): _COVTYPE_DENSITY,
    ("COVTYPE", LASSO, "ratio"): _COVTYPE_DENSITY,
    ("W8A", LASSO, "NZ"): _W8A_DENSITY,
    ("W8A", LASSO, "ratio"): _W8A_DENSITY,
}
"""By data set, method and measure."""

_ALIKE = (
    "the steps are chosen so that as many coefficients are left as Sparsifier keeps on average here; the paper's are "
    "'approximately' as many, and how near is not said"
)
_KDDCUP = (
    "not found: every reading tried is above 90 in accuracy and 99 in AUC (noise 1.5 times as large, rows not divided "
    "by their length, a constant column, the rest of the file for the test), but for lambda = 1 with 64 and 98.7"
)
_COVTYPE = (
    "not found: all 581,012 records give 56 / 77 (accuracy / AUC) with 7 coefficients and 64 / 75 with 14; the quick "
    "setting draws 50,000"
)
_SPLICE = (
    "not found: LIBSVM's training part alone with its codes mapped to [-1, 1] gives 51 / 51 (accuracy / AUC) for the "
    "stopped run, but 62 / 69 for Sparsifier; as it is, 55 / 56 and 64 / 72"
)
_PHISHING = (
    "not found: noise twice as large gives 64 / 84 (accuracy / AUC) and three times as large 65 / 73; columns divided "
    "by their largest value give 89 / 97"
)
_SYNTHETIC = "not found: noise 1.5 times as large gives 84 / 92 (accuracy / AUC), lambda = 50 gives 87 / 95"
_MUSHROOM = (
    "not found: noise three times as large gives 88 / 97 (accuracy / AUC) for Sparsifier and 69 / 68 for the stopped "
    "run, six times as large 81 / 92 and 64 / 64; lambda = 50 gives 93 / 98, a constant column 92 / 98"
)
_A9A = (
    "not found: noise six times as large gives 76 / 76 (accuracy / AUC) for Sparsifier and 76 / 66 for the stopped "
    "run; the training part alone 82 / 86, a constant column 82 / 87, lambda = 1 gives 76 / 78"
)
_W8A = (
    "not found: 64 to 66 also with noise 1.5 times as large, lambda = 50 or a constant column; LIBSVM's test part is "
    "not to be had here"
)
_COLON = (
    "83.33 is 10 of 12 test records in every trial, the larger class's share of one split; ours are drawn anew and "
    "have .65 on average. Noise decides here: 50 records, scores below 4 under a noise of scale 35"
)

TABLE_2_REASONS = {(name, "NZ"): _ALIKE for name in PRINTED_SETS} | {
    (name, measure): reason
    for name, reason in (
        ("KDDCUP'99", _KDDCUP),
        ("COVTYPE", _COVTYPE),
        ("SPLICE", _SPLICE),
        ("PHISHING", _PHISHING),
        (SYNTHETIC_SET, _SYNTHETIC),
        ("MUSHROOM", _MUSHROOM),
        ("A9A", _A9A),
        ("W8A", _W8A),
        ("COLON", _COLON),
    )
    for measure in ("accuracy", "AUC")
}
"""By data set and measure."""

CALIBRATED = (
    "the printed baseline is what a run gives whose noise is made for 1000 steps but which stops early; with the noise "
    "that its few steps need, it is ahead"
)
"""Why claims about Table 2 fail where the baseline has the noise that its steps need."""
