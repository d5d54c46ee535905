"""Mechanisms: their laws where these can be written down, and their samplers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from taciturn.accounting import Budget, calibrate, epsilon_of
from taciturn.audit.engine import Pair
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import GaussianEvent
from taciturn.mechanisms import (
    CanonicalLipschitz,
    ExponentialMechanism,
    FloatGaussian,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceTopK,
    PeelingTopK,
    PermuteAndFlip,
    PrivateQuantile,
    RoundedGaussian,
    TwoSidedGeometric,
)
from taciturn.privacy.mechanisms import Selection
from taciturn_research.attacks.entry import Entry, ExactCase, SampledCase, case_of_event
from taciturn_research.attacks.laws import law_of
from taciturn_research.attacks.neighbours import opposing_scores, reversed_ranks, wide_gap

GAUSSIAN_DELTA = 0.01
"""For Gaussian noise, whose parameter any delta tells; with a larger one fewer runs do."""

_TRIALS, _FEW_TRIALS = 60_000, 4_000
_UNIT = Sensitivity(1.0, "linf", "zero-out")
_K = 2
# For the canonical Lipschitz mechanism, which at its default of one half uses little more than half its epsilon on
# the pairs that are known.
_GAMMA = 0.9
# Distances to the leader, in noise scales, at which candidates are chosen sometimes, or rarely.
_NOW_AND_THEN, _SELDOM, _HARDLY_EVER = 1.0, 2.5, 25.0
# A lead that one record makes a tie.
_TO_A_TIE = 2.0
# A lead that one record reverses.
_TO_AND_FRO = 1.0
_GRID = tuple(float(point) for point in range(400))
_LOG2_SCALE = 10


def _indices(mechanism: Any, scores: Any, random_state: int) -> tuple[int, ...]:
    """One release of an index or of several."""
    return tuple(np.atleast_1d(mechanism.release(scores, Stream.of(random_state))).tolist())


def _numbers(mechanism: Any, value: Any, random_state: int) -> np.ndarray:
    """One release of a number or of several."""
    return np.atleast_1d(mechanism.release(value, Stream.of(random_state)))


# ------------------------------------------------------------------ the mechanisms at a budget


def _one(kind: type[Selection], epsilon: float) -> Selection:
    return kind(_UNIT, epsilon)


def _gumbel(epsilon: float) -> GumbelTopK:
    return GumbelTopK(_UNIT, _K, epsilon / _K)


def _laplace(epsilon: float) -> LaplaceTopK:
    return LaplaceTopK(_UNIT, _K, epsilon)


def _peeling(epsilon: float) -> PeelingTopK:
    return PeelingTopK(PermuteAndFlip(_UNIT, epsilon / _K), _K)


def _canonical(noise: str, epsilon: float) -> CanonicalLipschitz:
    return CanonicalLipschitz(_UNIT, _K, epsilon, _GAMMA, noise)


def _canonical_by_default(epsilon: float) -> CanonicalLipschitz:
    return CanonicalLipschitz(_UNIT, _K, epsilon)


def _quantile(epsilon: float) -> PrivateQuantile:
    return PrivateQuantile(_GRID, 0.5, "add-remove", epsilon)


def _geometric(epsilon: float) -> TwoSidedGeometric:
    return TwoSidedGeometric(3, epsilon)


def _rounded(epsilon: float) -> RoundedGaussian:
    multiplier = calibrate(Budget(epsilon, GAUSSIAN_DELTA), GaussianEvent)
    return RoundedGaussian(float(math.floor(2.0**_LOG2_SCALE / multiplier)), _LOG2_SCALE, 1 << 40)


def _float(epsilon: float) -> FloatGaussian:
    return FloatGaussian(1.0, calibrate(Budget(epsilon, GAUSSIAN_DELTA), GaussianEvent))


# ------------------------------------------------------------------ what they are shown


def _behind(scales: float, n_each: int, mechanism: Any) -> Pair:
    return opposing_scores(scales * mechanism.scale, n_each, n_each)


def _tied(n_each: int, mechanism: Any) -> Pair:
    return opposing_scores(_TO_A_TIE, n_each, n_each)


def _swapped(n_each: int, mechanism: Any) -> Pair:
    return opposing_scores(_TO_AND_FRO, n_each, n_each)


def _ranks(mechanism: Any) -> Pair:
    return reversed_ranks(5)


def _gap(mechanism: PrivateQuantile) -> Pair:
    # Of 2 n values, bins beyond all others are n ranks from the median: about two noise scales.
    return wide_gap(math.ceil(2.0 * mechanism.scale), mechanism.grid)


def _counts(mechanism: TwoSidedGeometric) -> Pair:
    return Pair(mechanism.sensitivity, 0, "zero-out", "A count of three falls to zero with one record")


def _shifted_sum(mechanism: RoundedGaussian) -> Pair:
    shifted = np.array([int(mechanism.l2_sensitivity), 0])
    return Pair(shifted, np.zeros_like(shifted), "zero-out", "A sum of integers is moved along one axis by one record")


def _shifted_integer(mechanism: RoundedGaussian) -> Pair:
    return Pair(int(mechanism.l2_sensitivity), 0, "zero-out", "An integer is moved by its sensitivity")


def _shifted_vector(mechanism: FloatGaussian) -> Pair:
    shifted = mechanism.l2_sensitivity * np.array([0.6, 0.8])
    return Pair(shifted, np.zeros_like(shifted), "zero-out", "A vector is moved by its sensitivity with one record")


# ------------------------------------------------------------------ cases


def _exact(
    make: Callable[[float], Any], pair_of: Callable[[Any], Pair], epsilon: float, *, delta: float = 0.0
) -> ExactCase:
    mechanism = make(epsilon)
    return ExactCase(partial(law_of, mechanism), pair_of(mechanism), delta, epsilon_of(mechanism.event, delta))


def _sampled(
    run: Callable[..., Any],
    make: Callable[[float], Any],
    pair_of: Callable[[Any], Pair],
    epsilon: float,
    *,
    trials: int = _TRIALS,
) -> SampledCase:
    mechanism = make(epsilon)
    return case_of_event(mechanism.event, partial(run, mechanism), pair_of(mechanism), trials)


def _gaussian(make: Callable[[float], Any], pair_of: Callable[[Any], Pair], epsilon: float) -> SampledCase:
    mechanism = make(epsilon)
    run, pair = partial(_numbers, mechanism), pair_of(mechanism)
    return case_of_event(mechanism.event, run, pair, _TRIALS, delta=GAUSSIAN_DELTA, event="gaussian")


def _both(
    name: str,
    make: Callable[[float], Any],
    seldom: Callable[[Any], Pair],
    often: Callable[[Any], Pair],
    run: Callable[..., Any] = _indices,
) -> tuple[Entry, Entry]:
    """Entries for the law on the pair with the largest epsilon, and for the sampler on a pair that needs few runs."""
    return (
        Entry(f"{name}/exact", "mechanism", "law of all outcomes", partial(_exact, make, seldom)),
        Entry(f"{name}/sampled", "mechanism", "sampler", partial(_sampled, run, make, often)),
    )


def _order(name: str, make: Callable[[float], Any], k: int) -> Entry:
    """Entry for the sampler where one record changes the order, which is visible only if the noise is too small."""
    case = partial(_sampled, _indices, make, partial(_swapped, k), trials=_FEW_TRIALS)
    return Entry(f"{name}/order", "mechanism", "sampler when the order changes", case)


MECHANISMS = (
    *_both(
        "ExponentialMechanism",
        partial(_one, ExponentialMechanism),
        partial(_behind, _HARDLY_EVER, 1),
        partial(_behind, _SELDOM, 1),
    ),
    *_both("PermuteAndFlip", partial(_one, PermuteAndFlip), partial(_tied, 1), partial(_tied, 1)),
    *_both(
        "LaplaceNoisyMax",
        partial(_one, LaplaceNoisyMax),
        partial(_behind, _HARDLY_EVER, 1),
        partial(_behind, _SELDOM, 1),
    ),
    *_both("GumbelTopK", _gumbel, partial(_behind, _HARDLY_EVER, _K), partial(_behind, _NOW_AND_THEN, _K)),
    *_both("LaplaceTopK", _laplace, partial(_behind, _HARDLY_EVER, _K), partial(_behind, _NOW_AND_THEN, _K)),
    *_both("PeelingTopK", _peeling, partial(_behind, _HARDLY_EVER, _K), partial(_tied, _K)),
    *_both(
        "CanonicalLipschitz",
        partial(_canonical, "exponential"),
        partial(_behind, _HARDLY_EVER, _K),
        partial(_tied, _K),
    ),
    Entry(
        "CanonicalLipschitz/gumbel",
        "mechanism",
        "sampler with Gumbel noise",
        partial(_sampled, _indices, partial(_canonical, "gumbel"), partial(_tied, _K)),
    ),
    Entry(
        "CanonicalLipschitz/ranks",
        "mechanism",
        "law of all outcomes when ranks are reversed",
        partial(_exact, _canonical_by_default, _ranks),
    ),
    *(
        _order(kind.__name__, partial(_one, kind), 1)
        for kind in (ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax)
    ),
    _order("GumbelTopK", _gumbel, _K),
    _order("LaplaceTopK", _laplace, _K),
    _order("PeelingTopK", _peeling, _K),
    _order("CanonicalLipschitz", partial(_canonical, "exponential"), _K),
    *_both("PrivateQuantile", _quantile, _gap, _gap, _numbers),
    *_both("TwoSidedGeometric", _geometric, _counts, _counts, _numbers),
    Entry(
        "RoundedGaussian/exact",
        "mechanism",
        "law of all outcomes",
        partial(_exact, _rounded, _shifted_integer, delta=GAUSSIAN_DELTA),
    ),
    Entry("RoundedGaussian/sampled", "mechanism", "sampler", partial(_gaussian, _rounded, _shifted_sum)),
    Entry("FloatGaussian", "mechanism", "sampler", partial(_gaussian, _float, _shifted_vector)),
)
"""Every mechanism."""
