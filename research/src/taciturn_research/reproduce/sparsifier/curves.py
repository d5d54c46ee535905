"""Figures 1 to 5: Sparsifier beside two-stage, private ADMM and private IGHT, against epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from taciturn.core.validation import BoolArray, FloatArray
from taciturn.datasets import Dataset
from taciturn.methods.frank_wolfe.estimator import SparsifiedClassifier
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier
from taciturn.methods.objective.estimator import ADMMClassifier, TwoStageClassifier
from taciturn.methods.sparse.estimator import SparseClassifier
from taciturn.metrics import support_f1
from taciturn.published import DPIGHT, PrivateADMM, TwoStage
from taciturn_research.reproduce.experiment import Case, Claim, Experiment, Picture, Row, Table, seed_of
from taciturn_research.reproduce.sparsifier.claims import best_everywhere, few_lost
from taciturn_research.reproduce.sparsifier.methods import (
    N_STEPS,
    PAPER,
    RADIUS,
    SCALING,
    SETS,
    SPARSE,
    SPARSIFIED,
    SPARSIFIER,
    SYNTHETIC_SET,
    RawRecords,
    Sample,
    coefficients,
    fit_soundly,
    measures,
    noiseless_frank_wolfe,
    read,
    sparsify,
    unit_rows,
)

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RADII = tuple(float(radius) for radius in np.geomspace(1.0, 50.0, 5))
"""The five values among which the paper chooses lambda."""

TWO_STAGE, ADMM, IGHT = "two-stage (published)", "private ADMM (published)", "private IGHT (published)"
_OTHERS = (TWO_STAGE, ADMM, IGHT)

KDDCUP = "KDDCUP'99"

# Penalty of two-stage's LASSOs: at the .1 of another paper of these authors no coefficient is left on SYNTHETIC.
_BLOCK_PENALTY = 0.01
# Runs whose mean accuracy decides about lambda.
_N_PROBES = 2
# The count of the non-private model is clipped to 10 or more, and complete long before that.
_REFERENCE_STEPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """A data set, how many features the other methods keep, and Sparsifier's lambda for every epsilon."""

    source: RawRecords
    n_nonzero: int
    radii: Mapping[float, float]


def prepare(dataset: Dataset | None, *, name: str, n_nonzero: int, n_records: int | None = None) -> Tuned:
    """Read a data set and choose lambda for every epsilon by accuracy on held-out records, as the paper does."""
    source = read(dataset, name=name, n_records=n_records)
    sample = source.sample(seed_of("lambda", name))
    counts = {radius: _reference_count(sample, radius) for radius in RADII}

    def accuracy(epsilon: float, radius: float) -> float:
        seeds = (seed_of("lambda", run, epsilon, radius) for run in range(_N_PROBES))
        fits = (sparsify(sample, seed, epsilon=epsilon, radius=radius, n_reference=counts[radius]) for seed in seeds)
        return fmean(measures(weights, 0.0, sample)["accuracy"] for weights in fits)

    radii = {epsilon: max(RADII, key=lambda radius: accuracy(epsilon, radius)) for epsilon in EPSILONS}
    return Tuned(source, n_nonzero, radii)


def _reference_count(sample: Sample, radius: float) -> int:
    weights = noiseless_frank_wolfe(sample.X, sample.y, radius=radius, n_steps=_REFERENCE_STEPS)
    return int(np.count_nonzero(weights))


def zeros(truth: BoolArray, found: BoolArray) -> dict[str, float]:
    """Zeros that are zeros in truth, zeros that are not, and F1 of what is not zero."""
    return {
        "correct zeros": float(np.sum(~found & ~truth)),
        "incorrect zeros": float(np.sum(~found & truth)),
        "F1": support_f1(truth, found),
    }


def rows(prepared: Tuned, seed: int) -> list[Row]:
    """All methods at every epsilon, on one draw of the records."""
    sample = prepared.source.sample(seed)
    counts = {radius: _reference_count(sample, radius) for radius in set(prepared.radii.values())}
    found = []
    for epsilon in EPSILONS:
        own = seed_of(seed, epsilon)
        radius = prepared.radii[epsilon]
        weights = sparsify(sample, seed_of(own, SPARSIFIER), epsilon=epsilon, radius=radius, n_reference=counts[radius])
        fits = [(SPARSIFIER, weights, 0.0), *_other_fits(sample, epsilon, prepared.n_nonzero, own)]
        for method, coef, intercept in fits:
            values = measures(coef, intercept, sample)
            if sample.coef is not None:
                values |= zeros(sample.coef != 0.0, coef != 0.0)
            place = {"data set": prepared.source.name, "method": method, "epsilon": epsilon}
            found += [{**place, "measure": measure, "value": value} for measure, value in values.items()]
    return found


def _other_fits(sample: Sample, epsilon: float, k: int, seed: int) -> Iterator[tuple[str, FloatArray, float]]:
    """Names, weights and intercepts; at most k features are kept by those that are told a number."""
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": sample.delta}
    sound = budget | {"x_bound": 1.0, "classes": (0.0, 1.0)}
    longest = float(np.sqrt((sample.X * sample.X).sum(axis=1).max()))
    ight: dict[str, Any] = {"n_nonzero": k, "n_steps": N_STEPS, "gradient_bound": longest}
    models: dict[str, Any] = {
        TWO_STAGE: TwoStage(**budget, n_nonzero=k, alpha=_BLOCK_PENALTY, loss="logistic"),
        ADMM: PrivateADMM(epsilon=epsilon),
        IGHT: DPIGHT(**budget, **ight, loss="logistic"),
        SPARSIFIED: SparsifiedClassifier(**sound, radius=RADIUS),
        "TwoStageClassifier": TwoStageClassifier(**sound, n_nonzero=k),
        "ADMMClassifier": ADMMClassifier(**sound, row_bound=1.0, fit_intercept=False),
        "HardThresholdClassifier": HardThresholdClassifier(**sound, n_nonzero=k),
        SPARSE: SparseClassifier(**sound, n_nonzero=k),
    }
    rows_of_length_1 = unit_rows(sample.X)
    for method, model in models.items():
        X = rows_of_length_1 if method in (ADMM, "ADMMClassifier") else sample.X
        fit_soundly(model.set_params(random_state=seed_of(seed, method)), X, sample.y)
        yield method, coefficients(model), float(np.ravel(model.intercept_)[0])


_RELATION = "zero-out; a replaced record for private ADMM and private IGHT, as published"

_NOTES = (
    "The paper does not print the epsilons of its figures, nor any number of them; these are ours.",
    "Sparsifier: epsilon_1 = .05 of every epsilon, 1000 steps. Lambda is chosen as the paper does, among five values "
    "from 1 to 50 by mean accuracy on held-out records, on a draw of its own; the claimed epsilon does not pay for it.",
    "How many features two-stage and private IGHT keep is not printed: here 8, the true number, on SYNTHETIC and 10, "
    "the root of the number of columns, on KDDCUP'99. So are the other parameters: two-stage counts over LASSOs with a "
    "penalty of .01 (.1, another paper's, leaves nothing on SYNTHETIC), IGHT has step size 1 and the longest row for "
    "gradient_bound, its noise is that of Theorem 5.2.",
    "The paper copies the results of private ADMM, which it could not replicate, from Wang and Zhang. Here "
    "PrivateADMM is run, whose constants are inferred, on rows divided by their length.",
    "The sound methods have the same (epsilon, delta). SparsifiedClassifier keeps 10 features, the others as many as "
    "their published twins; ADMMClassifier is told no number and gets the rows divided by their length.",
    "Every trial has records of its own; the paper has one draw for all.",
)


def _pictures(item: str, title: str, measure: str, label: str, name: str, marks: tuple[float, ...] = ()) -> Picture:
    return Picture(
        item,
        title,
        "curves",
        "epsilon",
        "method",
        "epsilon",
        label,
        where={"measure": measure, "data set": name},
        x_scale="log",
        marks=marks,
    )


FIGURES_1_TO_4 = Experiment(
    name="sparsifier-synthetic",
    paper=PAPER,
    summary="zeros found and lost, F1 and accuracy against epsilon on the synthetic set",
    relation=_RELATION,
    scaling=SCALING,
    notes=_NOTES,
    trials=50,
    quick_trials=10,
    prepare=prepare,
    run=rows,
    cases=(Case(SYNTHETIC_SET, None, {"name": SYNTHETIC_SET, "n_nonzero": 8}),),
    claims=(
        Claim(
            "Figure 1",
            "Sparsifier finds more of the 92 true zeros than the other methods at every epsilon",
            best_everywhere(SYNTHETIC_SET, "correct zeros", (SPARSIFIER,), _OTHERS),
            "it keeps 10 to 20 coefficients of which at most 8 are right, so that it finds at most 90 zeros; methods "
            "told to keep 8 find 84 or more. Told to keep 20, private IGHT finds 80 at most and the claim holds for it",
        ),
        Claim(
            "Figure 2",
            "Sparsifier sets almost none of the 8 true coefficients to zero (at most one on average)",
            few_lost(SYNTHETIC_SET, SPARSIFIER, 1.0),
            "at small epsilons noise decides which coefficients are the largest; the weight of .5 is hardly ever found",
        ),
        Claim(
            "Figure 3",
            "Sparsifier has the largest F1 at every epsilon",
            best_everywhere(SYNTHETIC_SET, "F1", (SPARSIFIER,), _OTHERS),
            "keeping 10 to 20 coefficients for 8 bounds its F1 by .89 to .57, and from epsilon = 3 on methods told "
            "the true number pass that",
        ),
        Claim(
            "Figure 4",
            "Sparsifier has a larger accuracy than the other methods at every epsilon",
            best_everywhere(SYNTHETIC_SET, "accuracy", (SPARSIFIER,), _OTHERS),
            "not found: private IGHT is ahead at small epsilons with the longest row or 1 (rows divided by their "
            "length) for its bound, and behind with the worst case, 10, but for epsilon = 10; two-stage is ahead from "
            "epsilon = 3 on",
        ),
    ),
    tables=tuple(
        Table(item, ("method",), "epsilon", {"measure": measure})
        for item, measure in (
            ("Figure 1", "correct zeros"),
            ("Figure 2", "incorrect zeros"),
            ("Figure 3", "F1"),
            ("Figure 4", "accuracy"),
        )
    ),
    pictures=(
        _pictures("Figure 1", "Correct zeros", "correct zeros", "number of correct zeros", SYNTHETIC_SET, (92.0,)),
        _pictures("Figure 2", "Incorrect zeros", "incorrect zeros", "number of incorrect zeros", SYNTHETIC_SET, (8.0,)),
        _pictures("Figure 3", "F1 of the support", "F1", "F1", SYNTHETIC_SET),
        _pictures("Figure 4", "Accuracy on SYNTHETIC", "accuracy", "accuracy (percent)", SYNTHETIC_SET),
    ),
)

_KDD_OPTIONS = {"name": KDDCUP, "n_nonzero": 10}

FIGURE_5 = Experiment(
    name="sparsifier-kddcup",
    paper=PAPER,
    summary="accuracy against epsilon on KDDCUP'99",
    relation=_RELATION,
    scaling=SCALING,
    notes=(
        *_NOTES,
        "60,000 records with 38,420 normal ones (the positive class) are drawn from the tenth of KDDCUP'99 that is "
        "published as a file of its own (in the quick setting 10,000, in that proportion); symbols are coded one-hot.",
    ),
    trials=50,
    quick_trials=6,
    prepare=prepare,
    run=rows,
    cases=(
        Case(f"{KDDCUP}, 10,000 records", SETS[KDDCUP].dataset, {**_KDD_OPTIONS, "n_records": 10_000}, "quick"),
        Case(KDDCUP, SETS[KDDCUP].dataset, _KDD_OPTIONS, "full"),
    ),
    claims=(
        Claim(
            "Figure 5",
            "Sparsifier and two-stage have larger accuracies than private ADMM and private IGHT at every epsilon",
            best_everywhere(KDDCUP, "accuracy", (SPARSIFIER, TWO_STAGE), (ADMM, IGHT)),
            "not found: private ADMM as inferred, and private IGHT with 1, the length of the rows, for its bound are "
            "ahead at small epsilons; with the worst case, the root of 118, for its bound IGHT falls behind at small "
            "epsilons with 10,000 records, but not with 60,000",
        ),
    ),
    tables=(Table("Figure 5", ("method",), "epsilon", {"measure": "accuracy"}),),
    pictures=(_pictures("Figure 5", "Accuracy on KDDCUP'99", "accuracy", "accuracy (percent)", KDDCUP),),
)
