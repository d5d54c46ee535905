"""Tables 1 and 2: how dense Private LASSO is, and whether Sparsifier is more than a run of fewer steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from taciturn.core.validation import FloatArray
from taciturn.datasets import Dataset
from taciturn.methods.frank_wolfe.estimator import SparsifiedClassifier
from taciturn.methods.sparse.estimator import SparseClassifier
from taciturn_research.reproduce.experiment import Case, Claim, Experiment, Published, Row, Table, seed_of
from taciturn_research.reproduce.sparsifier.claims import (
    CALIBRATED,
    TABLE_1_REASONS,
    TABLE_2_REASONS,
    denser_than_the_rest,
    never_better,
    often_better,
)
from taciturn_research.reproduce.sparsifier.methods import (
    FEWER,
    LASSO,
    N_STEPS,
    PAPER,
    PRINTED_SETS,
    RADIUS,
    REFERENCE,
    SCALING,
    SETS,
    SPARSE,
    SPARSIFIED,
    SPARSIFIER,
    STOPPED,
    RawRecords,
    Sample,
    coefficients,
    fit_soundly,
    largest_entry,
    measures,
    noiseless_frank_wolfe,
    private_lasso,
    read,
    sparsify,
    stopped_lasso,
)

# Runs whose mean decides how many steps keep as many coefficients as Sparsifier.
_N_PROBES = 3


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSet:
    """A data set, and how many steps are as sparse as Sparsifier is on average.

    ``n_kept`` is what Sparsifier keeps on average: the middle of its range. ``stopped_steps`` are for noise of 1000
    steps, ``fewer_steps`` for noise of these steps.
    """

    source: RawRecords
    reference_steps: int
    n_kept: int
    stopped_steps: int
    fewer_steps: int


def prepare(
    dataset: Dataset | None, *, name: str, n_records: int | None = None, reference_steps: int = 50_000
) -> PreparedSet:
    """Read a data set, and find on one draw of it how many steps are as sparse as Sparsifier."""
    source = read(dataset, name=name, n_records=n_records)
    sample = source.sample(seed_of("steps", name))
    low, high = math.isqrt(sample.X.shape[1]), math.isqrt(4 * sample.X.shape[1])
    n_kept = round((low + high) / 2.0)

    def density(fit: Callable[[Sample, int, int], FloatArray], n_steps: int) -> float:
        runs = range(_N_PROBES)
        return fmean(float(np.count_nonzero(fit(sample, seed_of("steps", run), n_steps))) for run in runs)

    stopped = steps_until(n_kept, lambda n_steps: density(stopped_lasso, n_steps))
    fewer = steps_until(n_kept, lambda n_steps: density(_fewer_steps, n_steps))
    return PreparedSet(source, reference_steps, n_kept, stopped, fewer)


def _fewer_steps(sample: Sample, seed: int, n_steps: int) -> FloatArray:
    return private_lasso(sample, seed, n_steps=n_steps)


def steps_until(n_wanted: int, density: Callable[[int], float]) -> int:
    """The least number of steps, at most 1000, after which so many coefficients are not zero.

    Examples
    --------
    >>> from taciturn_research.reproduce.sparsifier.tables import steps_until
    >>> steps_until(15, lambda n_steps: 0.5 * n_steps), steps_until(15, lambda n_steps: 3.0)
    (30, 1000)
    """
    # T steps are T - 1 selections, so that fewer than that cannot do.
    enough = n_wanted + 1
    too_few = n_wanted
    while enough < N_STEPS and density(enough) < n_wanted:
        too_few, enough = enough, min(2 * enough, N_STEPS)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if density(middle) >= n_wanted else (middle, enough)
    return enough


def rows(prepared: PreparedSet, seed: int) -> list[Row]:
    """All methods on one draw of the records, at a total epsilon of 1 and delta = 1 / n."""
    sample = prepared.source.sample(seed)
    reference = noiseless_frank_wolfe(sample.X, sample.y, radius=RADIUS, n_steps=prepared.reference_steps)
    n_reference = int(np.count_nonzero(reference))
    weights = {
        REFERENCE: reference,
        LASSO: private_lasso(sample, seed_of(seed, LASSO)),
        SPARSIFIER: sparsify(sample, seed_of(seed, SPARSIFIER), epsilon=1.0, radius=RADIUS, n_reference=n_reference),
        STOPPED: stopped_lasso(sample, seed_of(seed, STOPPED), prepared.stopped_steps),
        FEWER: private_lasso(sample, seed_of(seed, FEWER), n_steps=prepared.fewer_steps),
    }
    found = {method: measures(coef, 0.0, sample) for method, coef in weights.items()}
    for method, model in _sound_models(sample, prepared.n_kept, seed).items():
        fit_soundly(model, sample.X, sample.y)
        found[method] = measures(coefficients(model), float(model.intercept_[0]), sample)
    for values in found.values():
        values["ratio"] = values["NZ"] / n_reference
    return [
        {"data set": prepared.source.name, "method": method, "measure": measure, "value": value}
        for method, values in found.items()
        for measure, value in values.items()
    ]


def _sound_models(sample: Sample, n_kept: int, seed: int) -> dict[str, Any]:
    def common(method: str) -> dict[str, Any]:
        return {
            "epsilon": 1.0,
            "delta": sample.delta,
            "x_bound": largest_entry(sample.X),
            "classes": (0.0, 1.0),
            "n_nonzero": n_kept,
            "random_state": seed_of(seed, method),
        }

    return {
        SPARSIFIED: SparsifiedClassifier(radius=RADIUS, **common(SPARSIFIED)),
        SPARSE: SparseClassifier(**common(SPARSE)),
    }


def _table_1(name: str) -> list[Published]:
    line = PRINTED_SETS[name]
    printed = {
        (REFERENCE, "NZ"): line.non_private,
        (LASSO, "NZ"): line.lasso[0],
        (LASSO, "ratio"): line.lasso[1],
        (SPARSIFIER, "NZ"): line.sparsifier[0],
        (SPARSIFIER, "ratio"): line.sparsifier[1],
    }
    return [
        _published("Table 1", name, method, measure, value, TABLE_1_REASONS.get((name, method, measure), ""))
        for (method, measure), value in printed.items()
    ]


def _table_2(name: str) -> list[Published]:
    line = PRINTED_SETS[name]
    return [
        _published("Table 2", name, method, measure, value, TABLE_2_REASONS.get((name, measure), ""))
        for method, values in ((SPARSIFIER, line.sparse_sparsifier), (STOPPED, line.sparse_lasso))
        for measure, value in zip(("NZ", "accuracy", "AUC"), values, strict=True)
    ]


def _published(item: str, name: str, method: str, measure: str, value: float, reason: str) -> Published:
    return Published(item, {"data set": name, "method": method, "measure": measure}, value, reason=reason)


# Where a trial of the quick setting would take too long: how many records are drawn for it.
_QUICK_RECORDS = {"COVTYPE": 50_000}
# Steps of the reference: SPLICE gains coefficients until late, and COVTYPE would take hours.
_QUICK_STEPS, _FULL_STEPS = {"SPLICE": 50_000}, {"COVTYPE": 5_000}


def _cases(name: str) -> tuple[Case, Case]:
    dataset = SETS[name].dataset
    quick = {"reference_steps": _QUICK_STEPS.get(name, 3_000), "n_records": _QUICK_RECORDS.get(name)}
    full = {"reference_steps": _FULL_STEPS.get(name, 50_000)}
    return (
        Case(f"{name}, quick", dataset, {"name": name, **quick}, "quick"),
        Case(name, dataset, {"name": name, **full}, "full"),
    )


TABLES = Experiment(
    name="sparsifier-tables",
    paper=PAPER,
    summary="non-zero coefficients, accuracy and AUC of Private LASSO and Sparsifier at epsilon = 1, lambda = 10",
    relation="zero-out",
    scaling=SCALING,
    notes=(
        "All sets but SYNTHETIC and KDDCUP'99 are 'taken directly from LIBSVM'. What that means is read off the "
        "reference's numbers: SPLICE, PHISHING and COLON as they are published have 57 to 60, 2 and 51 to 72 "
        "coefficients (printed: 52, 2, 58); with every column divided by its largest value they have 14 to 18, 13 to "
        "15 and 23 to 28. COVTYPE divided so has 17 to 19 (printed: 17), and 1 as it is. Algorithm 1 asks for values "
        "in [-1, 1], which SPLICE (codes up to 4) and COLON do not have: its claim does not hold there.",
        "Training and test parts of LIBSVM are joined: SPLICE's 1000 training records alone give Sparsifier 64 / 72 "
        "(accuracy / AUC; printed: 71.34 / 86.84). Every trial draws its own fifth, rounded down, for the test. The "
        "paper has one split for all 50 trials: COLON's printed accuracies are 502 and 500 of 50 times 12.",
        "COLON is alon with rows, then columns, at mean 0 and variance 1, as LIBSVM says of its file. KDDCUP'99 is "
        "drawn from the tenth that is published as a file of its own; coded one-hot it has 118 columns, while the "
        "printed 106.90 coefficients are more than its 41 columns as they are. W8A is its training part.",
        "Printed ratios are not always those of printed numbers: COVTYPE's 3.18 is 54 to 17 where 30.38 stands, and "
        "SYNTHETIC's 2.29 is 16 to 7 where 15.08 stands.",
        "The reference makes 50,000 steps in the full setting (5,000 on COVTYPE). In the quick one it makes 3,000 but "
        "for SPLICE, the only set that gained coefficients after that, and COVTYPE is 50,000 records.",
        "Table 2's sparse Private LASSO is run twice: with noise for 1000 steps and stopped early, which is the "
        "reading that comes near the printed numbers and is set beside them, and with noise for the steps it makes, "
        "which is Algorithm 1 and what the text describes. Either makes as many steps as leave the number of "
        "coefficients that Sparsifier keeps on average, found on a draw of its own.",
        "Bold type, by which the paper marks significance, is not in the text that was at hand; its sentence is taken: "
        "Sparsifier is significantly better on most sets, Private LASSO never. Tests are two-sided signed-rank tests "
        "over the trials, as in the paper, at a level of .05.",
        "The sound methods have the same (1, 1/n), keep the middle of Sparsifier's range, have an intercept, and are "
        "given the largest entry of the table for a bound.",
    ),
    trials=50,
    quick_trials=10,
    prepare=prepare,
    run=rows,
    cases=tuple(case for name in PRINTED_SETS for case in _cases(name)),
    published=(
        *(published for name in PRINTED_SETS for published in _table_1(name)),
        *(published for name in PRINTED_SETS for published in _table_2(name)),
    ),
    claims=(
        Claim(
            "Table 1",
            "On every set Private LASSO has more coefficients than the non-private reference, and Sparsifier has fewer "
            "than Private LASSO",
            denser_than_the_rest,
        ),
        *(
            Claim(
                "Table 2",
                f"{name}: a sparse Private LASSO ({said}) is not significantly better than Sparsifier",
                never_better(name, method),
                reason,
            )
            for method, said, reason in (
                (STOPPED, "noise for 1000 steps", ""),
                (FEWER, "noise for its own steps", CALIBRATED),
            )
            for name in PRINTED_SETS
        ),
        Claim(
            "Table 2",
            "On most sets Sparsifier is significantly better than a sparse Private LASSO with noise for 1000 steps, in "
            "accuracy and in AUC",
            often_better(STOPPED),
        ),
        Claim(
            "Table 2",
            "On most sets Sparsifier is significantly better than a sparse Private LASSO with noise for its own steps, "
            "in accuracy and in AUC",
            often_better(FEWER),
            CALIBRATED,
        ),
    ),
    tables=tuple(
        Table(item, ("data set",), "method", {"measure": measure})
        for item, some in (("Table 1", ("NZ", "ratio")), ("Table 2", ("accuracy", "AUC")))
        for measure in some
    ),
)
