"""What the paper says about its tables and figures, checked on our numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from scipy.stats import wilcoxon

from taciturn_research.reproduce.experiment import Finding, checker
from taciturn_research.reproduce.numbers import LEVEL, Numbers
from taciturn_research.reproduce.sparsifier.printed import LASSO, REFERENCE, SPARSIFIER

__all__ = [
    "above",
    "all_below",
    "best_everywhere",
    "between_ends",
    "denser_than_the_rest",
    "few_lost",
    "never_better",
    "often_better",
    "signed_rank",
    "varies",
]

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
