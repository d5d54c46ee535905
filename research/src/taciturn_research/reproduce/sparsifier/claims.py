"""What the paper says about its tables and figures, checked on our numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from scipy.stats import wilcoxon

from taciturn_research.reproduce.experiment import LEVEL, Finding, Numbers, checker
from taciturn_research.reproduce.sparsifier.methods import LASSO, PRINTED_SETS, REFERENCE, SPARSIFIER, SYNTHETIC_SET

_MEASURES = ("accuracy", "AUC")
# How far a share may be from a notice with two digits.
_NEAR = 0.02


def signed_rank(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test over paired trials; 1 where no pair differs."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True) if a != b]
    return float(wilcoxon(differences).pvalue) if differences else 1.0


def denser_than_the_rest(numbers: Numbers) -> Finding:
    """On every set the reference and Sparsifier have fewer coefficients than Private LASSO, on average."""
    names = _sets(numbers)
    means = {
        name: [numbers.mean(_of(name, method, "NZ")) for method in (REFERENCE, SPARSIFIER, LASSO)] for name in names
    }
    held = [name for name, (reference, sparsifier, lasso) in means.items() if max(reference, sparsifier) < lasso]
    return Finding(
        len(held) == len(names),
        f"on {len(held)} of {len(names)} sets; reference, Sparsifier and Private LASSO have "
        + "; ".join(f"{name} {', '.join(f'{mean:.4g}' for mean in found)}" for name, found in means.items()),
    )


@checker
def never_better(numbers: Numbers, name: str, baseline: str) -> Finding:
    """On this set the baseline is not significantly better than Sparsifier, neither in accuracy nor in AUC."""
    gains = [_gain(numbers, name, baseline, measure) for measure in _MEASURES]
    said = (
        f"{measure} {ours:.1f} against {theirs:.1f} (p = {p:.2g})"
        for measure, (ours, theirs, p) in zip(_MEASURES, gains, strict=True)
    )
    return Finding(not any(theirs > ours and p <= LEVEL for ours, theirs, p in gains), "; ".join(said))


@checker
def often_better(numbers: Numbers, baseline: str) -> Finding:
    """On more than half of the sets Sparsifier is significantly better than the baseline, in either measure."""
    names = _sets(numbers)
    better = {
        measure: [
            name
            for name, (ours, theirs, p) in ((name, _gain(numbers, name, baseline, measure)) for name in names)
            if ours > theirs and p <= LEVEL
        ]
        for measure in _MEASURES
    }
    said = (f"{measure} on {len(won)} ({', '.join(won) or 'none'})" for measure, won in better.items())
    return Finding(
        all(2 * len(won) > len(names) for won in better.values()),
        f"of {len(names)} sets: {'; '.join(said)}; signed-rank tests over the trials, level {LEVEL:g}",
    )


@checker
def best_everywhere(
    numbers: Numbers, name: str, measure: str, methods: Sequence[str], others: Sequence[str]
) -> Finding:
    """At every epsilon each of the methods has a larger mean than each of the others."""
    curves = {method: _curve(numbers, name, method, measure) for method in (*methods, *others)}
    epsilons = list(curves[methods[0]])
    won = [
        epsilon
        for epsilon in epsilons
        if min(curves[method][epsilon] for method in methods) > max(curves[other][epsilon] for other in others)
    ]
    said = "; ".join(
        f"{method}: {', '.join(f'{curve[epsilon]:.3g}' for epsilon in epsilons)}" for method, curve in curves.items()
    )
    budgets = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
    return Finding(len(won) == len(epsilons), f"at {len(won)} of the {len(epsilons)} epsilons {budgets}. {said}")


@checker
def few_lost(numbers: Numbers, name: str, method: str, most: float) -> Finding:
    """At every epsilon at most so many true coefficients are set to zero, on average."""
    curve = _curve(numbers, name, method, "incorrect zeros")
    said = ", ".join(f"{mean:.3g} at epsilon = {epsilon:g}" for epsilon, mean in curve.items())
    return Finding(max(curve.values()) <= most, said)


@checker
def all_below(numbers: Numbers, of: Mapping[str, Any], most: float) -> Finding:
    """The mean is below a number, or equal to it, wherever it was measured."""
    found = numbers.summaries(of)
    if not found:
        raise LookupError(f"no numbers with {dict(of)}")
    said = ", ".join(f"{summary.mean:.3g} at epsilon = {summary.of['epsilon']:g}" for summary in found)
    return Finding(all(summary.mean <= most for summary in found), said)


@checker
def above(numbers: Numbers, of: Mapping[str, Any], least: float) -> Finding:
    """The mean is above a number."""
    mean = numbers.mean(of)
    return Finding(mean > least, f"{mean:.3g} on average")


@checker
def varies(numbers: Numbers, of: Mapping[str, Any]) -> Finding:
    """The value differs between trials."""
    values = numbers.values(of)
    least, most = min(values), max(values)
    return Finding(least < most, f"from {least:g} to {most:g} in {len(values)} trials")


@checker
def between_ends(numbers: Numbers, method: str, at_alpha: float, at_beta: float) -> Finding:
    """The shares of counts at the ends of the range are these, to within .02."""
    low, high = (numbers.mean({"method": method, "measure": f"counts at {end}"}) for end in ("alpha", "beta"))
    holds = abs(low - at_alpha) <= _NEAR and abs(high - at_beta) <= _NEAR
    return Finding(holds, f"{low:.3f} at alpha, {high:.3f} at beta, {1.0 - low - high:.3f} between")


def _curve(numbers: Numbers, name: str, method: str, measure: str) -> dict[float, float]:
    found = numbers.summaries(_of(name, method, measure))
    if not found:
        raise LookupError(f"no {measure} of {method} on {name}")
    return {summary.of["epsilon"]: summary.mean for summary in found}


def _sets(numbers: Numbers) -> list[str]:
    found = [summary.of["data set"] for summary in numbers.summaries({"method": SPARSIFIER, "measure": "NZ"})]
    if not found:
        raise LookupError("no data set")
    return found


def _gain(numbers: Numbers, name: str, baseline: str, measure: str) -> tuple[float, float, float]:
    """Means of Sparsifier and of the baseline, and the p-value of their difference."""
    ours, theirs = (numbers.values(_of(name, method, measure)) for method in (SPARSIFIER, baseline))
    return fmean(ours), fmean(theirs), signed_rank(ours, theirs)


def _of(name: str, method: str, measure: str) -> dict[str, str]:
    return {"data set": name, "method": method, "measure": measure}


# ---------------------------------------------------------------------
# Why printed numbers differ from ours, as far as it was found; the numbers are those of runs in other readings.


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
