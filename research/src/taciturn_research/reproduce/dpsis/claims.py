"""What DP-SIS says about accuracies, checked cell by cell: a cell is a data set, a k and an epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from scipy.stats import spearmanr

from taciturn_research.harness import sign_test
from taciturn_research.reproduce.dpsis.common import DP_SIS, TWO_STAGE
from taciturn_research.reproduce.experiment import LEVEL, Finding, Numbers, checker

Cell = tuple[str, str, float]


def holm(p_values: Sequence[float], level: float = LEVEL) -> list[bool]:
    """Which hypotheses are rejected when the chance of any mistake is to stay below the level."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    rejected = [False] * len(p_values)
    for rank, place in enumerate(order):
        if p_values[place] > level / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected


def gains(numbers: Numbers, /, **where: Any) -> dict[Cell, tuple[list[float], list[float]]]:
    """Accuracies of DP-SIS and of two-stage over the trials, by cell."""
    found: dict[Cell, tuple[list[float], list[float]]] = {}
    for summary in numbers.summaries({**where, "method": DP_SIS}):
        of = summary.of
        cell = of["data set"], of["k"], of["epsilon"]
        found[cell] = numbers.values(of), numbers.values(of | {"method": TWO_STAGE})
    if not found:
        raise LookupError(f"no accuracies with {where}")
    return found


@checker
def two_stage_never_better(numbers: Numbers, /, **where: Any) -> Finding:
    """No cell in which two-stage is significantly better."""
    cells = gains(numbers, **where)
    worse = holm([sign_test(two_stage, dp_sis) for dp_sis, two_stage in cells.values()])
    better = holm([sign_test(dp_sis, two_stage) for dp_sis, two_stage in cells.values()])
    return Finding(
        not any(worse),
        f"two-stage is significantly better in {sum(worse)} of {len(cells)} cells, DP-SIS in {sum(better)} (sign "
        f"tests over the trials, Holm, level {LEVEL:g})",
    )


@checker
def better_on_many_sets(numbers: Numbers, /, **where: Any) -> Finding:
    """More than half of the data sets have an epsilon at which DP-SIS is significantly better."""
    cells = gains(numbers, **where)
    better = holm([sign_test(dp_sis, two_stage) for dp_sis, two_stage in cells.values()])
    sets = {name for name, _, _ in cells}
    won = {name for (name, _, _), wins in zip(cells, better, strict=True) if wins}
    largest = {cell: fmean(dp_sis) - fmean(two_stage) for cell, (dp_sis, two_stage) in cells.items()}
    name, k, epsilon = max(largest, key=lambda cell: largest[cell])
    return Finding(
        2 * len(won) > len(sets),
        f"DP-SIS is significantly better somewhere on {len(won)} of {len(sets)} sets; the largest gain is "
        f"{largest[name, k, epsilon]:.2f}, on {name} at epsilon = {epsilon:g}",
    )


@checker
def better_above(numbers: Numbers, name: str, epsilons: Sequence[float], sizes: Sequence[str]) -> Finding:
    """DP-SIS is better at each of these epsilons, significantly for every k."""
    cells = [cell for k in sizes for epsilon in epsilons for cell in gains(numbers, **_cell(name, k, epsilon)).items()]
    better = holm([sign_test(dp_sis, two_stage) for _, (dp_sis, two_stage) in cells])
    parts = [
        f"k = {k}, epsilon = {epsilon:g}: {fmean(dp_sis):.3f} against {fmean(two_stage):.3f}"
        for (_, k, epsilon), (dp_sis, two_stage) in cells
    ]
    return Finding(all(better), f"significant in {sum(better)} of {len(cells)} cells: " + "; ".join(parts))


@checker
def no_difference(numbers: Numbers, names: Sequence[str]) -> Finding:
    """On these sets neither method is significantly better at any epsilon."""
    cells = {cell: pair for name in names for cell, pair in gains(numbers, **{"data set": name}).items()}
    ours = holm([sign_test(dp_sis, two_stage) for dp_sis, two_stage in cells.values()])
    theirs = holm([sign_test(two_stage, dp_sis) for dp_sis, two_stage in cells.values()])
    largest = {cell: fmean(dp_sis) - fmean(two_stage) for cell, (dp_sis, two_stage) in cells.items()}
    name, k, epsilon = max(largest, key=lambda cell: abs(largest[cell]))
    return Finding(
        not any(ours) and not any(theirs),
        f"DP-SIS is significantly better in {sum(ours)}, two-stage in {sum(theirs)} of {len(cells)} cells; the "
        f"largest difference is {largest[name, k, epsilon]:+.3f}, on {name} at k = {k}, epsilon = {epsilon:g}",
    )


@checker
def mean_at_least(numbers: Numbers, epsilons: Sequence[float]) -> Finding:
    """Over the data sets, DP-SIS is on average not below two-stage by more than noise at these epsilons."""
    holds, parts = True, []
    for epsilon in epsilons:
        cells = gains(numbers, epsilon=epsilon).values()
        # Each trial gives one mean over all sets and sizes.
        trials = min(len(dp_sis) for dp_sis, _ in cells)
        per_trial = [fmean(ours[trial] - theirs[trial] for ours, theirs in cells) for trial in range(trials)]
        error = stdev(per_trial) / trials**0.5
        holds &= fmean(per_trial) >= -2.0 * error
        parts.append(f"{fmean(per_trial):+.3f} ({error:.3f}) at epsilon = {epsilon:g}")
    return Finding(holds, "mean difference (standard error) over all sets and k: " + ", ".join(parts))


@checker
def better_here_not_there(numbers: Numbers, here: str, there: str, epsilon: float, sizes: Sequence[str]) -> Finding:
    """At an epsilon DP-SIS is significantly better on one set for every k, on another for none."""
    cells = {
        cell: pair
        for name in (here, there)
        for k in sizes
        for cell, pair in gains(numbers, **_cell(name, k, epsilon)).items()
    }
    better = holm([sign_test(dp_sis, two_stage) for dp_sis, two_stage in cells.values()])
    parts = [
        f"{name}, k = {k}: {fmean(dp_sis):.3f} against {fmean(two_stage):.3f}"
        for (name, k, _), (dp_sis, two_stage) in cells.items()
    ]
    return Finding(better == [name == here for name, _, _ in cells], "; ".join(parts))


@checker
def gain_follows_r2(numbers: Numbers, r2: dict[str, float], epsilons: Sequence[float]) -> Finding:
    """At each of these epsilons the gain of DP-SIS goes with the printed R2 of the sets."""
    p_values, parts = [], []
    for epsilon in epsilons:
        by_set: dict[str, list[float]] = {}
        for (name, _, _), (dp_sis, two_stage) in gains(numbers, epsilon=epsilon).items():
            if name in r2:
                by_set.setdefault(name, []).append(fmean(dp_sis) - fmean(two_stage))
        gain = [fmean(found) for found in by_set.values()]
        # Where no set gains more than another there is no correlation.
        rank, p_value = 0.0, 1.0
        if max(gain) > min(gain):
            rank, p_value = spearmanr([r2[name] for name in by_set], gain, alternative="greater")
        p_values.append(float(p_value))
        parts.append(f"{rank:.2f} (p = {p_value:.2g}) at epsilon = {epsilon:g}")
    holds = all(p_value <= LEVEL for p_value in p_values)
    return Finding(holds, f"rank correlation with the printed R2: {', '.join(parts)}")


def _cell(name: str, k: str, epsilon: float) -> dict[str, Any]:
    return {"data set": name, "k": k, "epsilon": epsilon}
