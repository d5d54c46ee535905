"""What RNM-Screen says about the real sets without printing a number."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from taciturn_research.harness import sign_test
from taciturn_research.reproduce.experiment import LEVEL, Claim, Finding, Numbers, checker
from taciturn_research.reproduce.screening.printed import DP_FW, NP_FW, NP_FW_SCREENED, ORACLE, STEPWISE, row_keys
from taciturn_research.reproduce.screening.sets import SETS, TRANSFORMED, UNTRANSFORMED
from taciturn_research.reproduce.screening.synthetic import RNM

ALL = tuple(known.label for known in SETS.values())
LARGER = ALL[3:]
"""Sets of more than 20 features."""


@checker
def exactly_these(
    numbers: Numbers,
    transform: str,
    measure: str,
    larger: str,
    smaller: str,
    expected: Sequence[str],
    among: Sequence[str],
) -> Finding:
    """Of the sets ``among``, those on which one method has a significantly larger measure are the expected ones."""
    found, parts = [], []
    for label in among:
        high, low = (numbers.values(row_keys(label, transform, method, measure)) for method in (larger, smaller))
        p_value = sign_test(high, low)
        if p_value <= LEVEL:
            found.append(label)
        parts.append(f"{label} {fmean(high):.3f} against {fmean(low):.3f} (p = {p_value:.2g})")
    return Finding(
        set(found) == set(expected),
        f"{measure} of {larger} significantly above that of {smaller} on {', '.join(found) or 'none'}: "
        + "; ".join(parts),
    )


@checker
def error_falls(numbers: Numbers, labels: Sequence[str]) -> Finding:
    """The mean squared error after the last step is below that after the first."""
    ends = {}
    for label in labels:
        curve = numbers.summaries(row_keys(label, TRANSFORMED, RNM, STEPWISE))
        if not curve:
            raise LookupError(f"no errors along the steps on {label}")
        curve.sort(key=lambda summary: summary.of["step"])
        ends[label] = curve[0].mean, curve[-1].mean
    return Finding(
        all(last < first for first, last in ends.values()),
        "; ".join(f"{label}: from {first:.2f} to {last:.2f}" for label, (first, last) in ends.items())
        + " (always predicting zero has 1)",
    )


def identical(numbers: Numbers) -> Finding:
    """The screening rule changes neither F1 nor error of Frank-Wolfe without noise, in any trial."""
    changed = [
        label
        for label in ALL
        for measure in ("F1", "MSE")
        if numbers.values(row_keys(label, TRANSFORMED, NP_FW, measure))
        != numbers.values(row_keys(label, TRANSFORMED, NP_FW_SCREENED, measure))
    ]
    return Finding(not changed, f"changed on {', '.join(dict.fromkeys(changed)) or 'none'} of {len(ALL)} sets")


def lower_r2(numbers: Numbers) -> Finding:
    """Without the transform R2 is lower on every set but BlogFeedback."""
    values = {
        label: [numbers.mean(row_keys(label, transform, RNM, "R2")) for transform in (UNTRANSFORMED, TRANSFORMED)]
        for label in ALL
    }
    lower = [label for label, (without, transformed) in values.items() if without < transformed]
    return Finding(
        lower == list(ALL[:-1]),
        "; ".join(
            f"{label} {without:.3f} against {transformed:.3f}" for label, (without, transformed) in values.items()
        ),
    )


CLAIMS = (
    Claim(
        "Table 2",
        "RNM-Screen is significantly sparser than DP-FW on every set.",
        exactly_these(TRANSFORMED, "sparsity", DP_FW, RNM, ALL, ALL),
    ),
    Claim(
        "Table 2",
        "On no set is the F1 of RNM-Screen significantly better than that of DP-FW.",
        exactly_these(TRANSFORMED, "F1", RNM, DP_FW, (), ALL),
    ),
    Claim(
        "Figure 2",
        "On the sets of more than 20 features the mean squared error falls along the iterations.",
        error_falls(LARGER),
    ),
    Claim(
        "Table 3",
        "On no set of more than 20 features is the F1 of RNM-Screen significantly worse than that of Oracle-K.",
        exactly_these(TRANSFORMED, "F1", ORACLE, RNM, (), LARGER),
    ),
    Claim(
        "Table 3",
        "Of the sets of more than 20 features, only on BlogFeedback is its error significantly worse.",
        exactly_these(TRANSFORMED, "MSE", RNM, ORACLE, ("BlogFeedback",), LARGER),
        reason="it is worse on Pyrim as well, of which the printed errors were not found, and a little on Communities "
        "and Crime, where the printed means are so, too",
    ),
    Claim(
        "Table 3",
        "Its F1 is significantly better than that of Oracle-K on Pyrim, Triazines, Residential Buildings and "
        "BlogFeedback (printed bold).",
        exactly_these(TRANSFORMED, "F1", RNM, ORACLE, ("Pyrim", "Triazines", "Residential Buildings", ALL[-1]), ALL),
        reason="on Pyrim and Residential Buildings it is better, but not in significantly many trials",
    ),
    Claim(
        "Table 3",
        "NP-FW with the screening rule gives the same results as NP-FW (footnote 7).",
        identical,
        reason="Equation 1 leaves out the radius: close to a solution on the sphere it screens coefficients of the "
        "solution",
    ),
    Claim(
        "Table 4",
        "Without the transform RNM-Screen is significantly sparser than DP-FW on every set.",
        exactly_these(UNTRANSFORMED, "sparsity", DP_FW, RNM, ALL, ALL),
    ),
    Claim(
        "Table 4",
        "Without the transform its F1 is on no set significantly better than that of DP-FW.",
        exactly_these(UNTRANSFORMED, "F1", RNM, DP_FW, (), ALL),
        reason="on Housing it is; a dense solution has 2 K/(K + d) = 0.471 there, and 0.525 is printed for RNM-Screen",
    ),
    Claim("Table 4", "Without the transform R2 is worse on every set but BlogFeedback.", lower_r2),
    Claim(
        "Table 5",
        "Without the transform its F1 is on no set significantly better than that of Oracle-K.",
        exactly_these(UNTRANSFORMED, "F1", RNM, ORACLE, (), ALL),
        reason="on BlogFeedback it is, where the printed means, 0.367 and 0.349, say so, too",
    ),
)
