"""Warnings about a model that are computed from its own releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.errors import SuspiciousReleaseWarning, visible
from taciturn.core.guard import warn_caller
from taciturn.core.validation import FloatArray
from taciturn.privacy.mechanisms import PrivateQuantile

# ---- What released numbers say against the bounds or classes of a fit: post-processing, which costs nothing.
# A diagnosis follows from noisy numbers that were paid for and from public facts. Each rule states how rarely it speaks
# up although bounds and classes fit the records; where noise is too large to tell, nothing is said.

REMARKS = {
    "labels": "it says that almost no record has a stated label",
    "label": "it says that almost no record has one of the stated labels",
    "rows": "it says that most rows are as long as x_bound allows",
    "target": "it says that most targets lie at or beyond y_bounds",
}
"""What a release says against bounds or classes, by the kind of diagnosis, for the certificate."""

# What almost no record has, and how many deviations of the noise count as nothing.
_FEW_LABELS, _DEVIATIONS = 0.05, 3.0
# Noise that is larger than this could hide half of the labels, or a class that is merely rare.
_MOST_NOISE, _MOST_NOISE_OF_A_CLASS = 0.05, 0.005
# The mean of a target in [-1, 1] is at an end of the range from here on: half of the targets are within a twentieth of
# the range of that end. With more noise than this it could as well be elsewhere.
_EXTREME_MEAN, _MOST_NOISE_OF_A_MEAN = 0.95, 0.02
# A rule for quantiles speaks up wrongly with a probability below exp(-16), or one in nine millions.
_CERTAINTY = 16.0
# Of the records at most this share is in the last bin where bounds fit.
_USUAL_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a release says against bounds or classes, by a kind of :data:`REMARKS`.

    ``what`` is the release in the words of the certificate, ``codes`` the places of the classes that hardly occur.
    """

    kind: str
    what: str
    codes: tuple[int, ...] = ()


def diagnose_shares(what: str, codes: tuple[int, ...], rates: FloatArray, deviation: float) -> Diagnosis | None:
    r"""Whether noisy shares of all classes say that almost no record has a stated label, or one of them.

    With at least half of the records labelled, the sum of K shares with noise of deviation s each falls below
    :math:`0.05 + 3 \sqrt K s \le 0.2` with probability :math:`\Phi(-0.3 / 0.05) \le 10^{-9}`. A class that holds 3.5 %
    of the records or more falls below 3 s with :math:`\Phi(-4) \le 3.2 \cdot 10^{-5}`, since :math:`s \le 0.005`.
    """
    of_sum = deviation * math.sqrt(len(codes))
    if of_sum <= _MOST_NOISE and float(rates.sum()) <= _FEW_LABELS + _DEVIATIONS * of_sum:
        return Diagnosis("labels", what)
    absent = tuple(int(codes[place]) for place in np.flatnonzero(rates <= _DEVIATIONS * deviation))
    return Diagnosis("label", what, absent) if absent and deviation <= _MOST_NOISE_OF_A_CLASS else None


def diagnose_counts(what: str, counts: FloatArray, deviation: float, n_classes: int, n_records: int) -> bool:
    r"""Whether noisy numbers of records in cells, as many for each class, say that almost no record has a stated label.

    They are summed by class and judged by :func:`diagnose_shares`. Geometric noise on B cells per class has heavier
    tails than a Gaussian of its deviation: with K B = 4, the fewest, the sum exceeds six deviations with a probability
    of about :math:`10^{-6}`.
    """
    cells = counts.reshape(n_classes, -1)
    shares, of_share = cells.sum(axis=1) / n_records, deviation * math.sqrt(cells.shape[1]) / n_records
    found = diagnose_shares(what, tuple(range(n_classes)), shares, of_share)
    return found is not None and found.kind == "labels"


def diagnose_mean(what: str, mean: float, deviation: float) -> Diagnosis | None:
    r"""Whether the noisy mean of a target mapped to [-1, 1] says that most targets are at one end of the range.

    With noise of deviation :math:`s \le 0.02` a mean of at most 0.77 in absolute value exceeds :math:`0.95 - 3 s` with
    probability :math:`\Phi(-6) \le 10^{-9}`.
    """
    clear = deviation <= _MOST_NOISE_OF_A_MEAN and abs(mean) >= _EXTREME_MEAN - _DEVIATIONS * deviation
    return Diagnosis("target", what) if clear else None


def crowds_at_ceiling(mechanism: PrivateQuantile, released: float, n_records: int) -> bool:
    r"""Whether a private median says that most values are in the last bin of its grid.

    *Claim.* If all n records have a value and at most a quarter of these are in the last bin, this is true with
    probability below exp(-16). *Proof.* At least 3n/4 values are below the last bin, so it scores n/4 ranks less than
    the bin that holds the median, before the prior. The exponential mechanism with noise of b ranks chooses it with
    probability at most :math:`\exp(-n / (4 b) + p)`, where p is how much the prior prefers the last bin to the least
    likely one; nothing is said unless :math:`n / (4 b) - p \ge 16`.
    """
    if released < mechanism.grid[-1]:
        return False
    preferred = 0.0 if mechanism.prior is None else mechanism.prior[-1] - min(mechanism.prior)
    return n_records * _USUAL_SHARE / mechanism.scale - preferred >= _CERTAINTY


# ---- Sentences for what released numbers say against the bounds or classes of a fitted model.


def warn_of_diagnoses(model: Any, diagnoses: Iterable[Diagnosis]) -> None:
    """Warn of what a fit released against its own bounds or classes; the certificate says it too."""
    for diagnosis in diagnoses:
        warn_caller(visible(_SENTENCES[diagnosis.kind](model, diagnosis)), SuspiciousReleaseWarning)


def warn_of_scored_labels(classes: Any, relation: str) -> None:
    """Warn that hardly a scored record has a label of the model, as a score released; its certificate says it too."""
    count = ", and n_public" if relation == "add-remove" else ""
    warn_caller(
        visible(
            f"y: expected labels among the classes {classes.tolist()!r} of the model, but the released counts say that "
            f"almost no record has one, so that the score is noise; check their spelling and type{count}."
        ),
        SuspiciousReleaseWarning,
    )


def _labels(model: Any, diagnosis: Diagnosis) -> str:
    return (
        f"classes={model.classes_.tolist()!r}: expected the labels that records have, but the released class shares "
        "say that almost no record has a stated label, so that the model is noise; check their spelling and type"
        f"{', and n_public' if model.relation == 'add-remove' else ''}."
    )


def _label(model: Any, diagnosis: Diagnosis) -> str:
    absent = ", ".join(repr(model.classes_.tolist()[code]) for code in diagnosis.codes)
    return (
        "classes: expected labels that records have, but the released class shares say that almost no record has the "
        f"label {absent}; check its spelling, or leave out a class that is too rare."
    )


def _rows(model: Any, diagnosis: Diagnosis) -> str:
    bound = model.certificate_.public["x_bound"]
    return (
        f"x_bound={bound!r}: expected most cells within the bounds, but the released median row norm is at its "
        "ceiling, so that most cells lie at or beyond x_bound; unless they are codes of -1 and 1, give a larger "
        "x_bound, or scale the columns with BoundedScaler."
    )


def _target(model: Any, diagnosis: Diagnosis) -> str:
    # Where none were given, those that the fit used.
    bounds = model.y_bounds_ if model.y_bounds is None else model.y_bounds
    return (
        f"y_bounds={bounds!r}: expected most targets within the bounds, but {diagnosis.what}, as released, "
        "says that most lie at or beyond them; give the range that the target can have, or use a classifier if it has "
        "two values only."
    )


_SENTENCES: dict[str, Callable[[Any, Diagnosis], str]] = {
    "labels": _labels,
    "label": _label,
    "rows": _rows,
    "target": _target,
}
