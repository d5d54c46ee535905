"""Releases on the lattice: listed and calibrated by a plan, drawn and recorded by a fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, FloatArray, IndexArray, IntArray, sum_magnitude
from taciturn.data.sensitivity import (
    GRAM_WEIGHTS,
    MOST_PRIVATE_ROWS,
    Sensitivity,
    cell_counts,
    curvature_sum,
    derivative_sum,
    gram_matrix,
    jointly_clipped_sum,
    loss_differences,
    proposal_scores,
)
from taciturn.engines.interface import Source, Task
from taciturn.losses import HuberLoss, Loss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.diagnostics import REMARKS, Diagnosis, crowds_at_ceiling
from taciturn.methods.schedule import Schedule
from taciturn.methods.sums import (
    ClippedRowSum,
    CumulativeCounts,
    EntryCorrelationSum,
    ExcessLossSums,
    GramMatrix,
    RowNorms,
    RowStatistic,
    Together,
    largest_row_norm,
)
from taciturn.privacy.claim import Release
from taciturn.privacy.filter import PrivacyFilter, Spend
from taciturn.privacy.mechanisms import (
    DISTANCE_PER_VALUE,
    ExponentialMechanism,
    GumbelTopK,
    PrivateQuantile,
    RoundedGaussian,
    first_k_of,
    rounding_charge,
)

# ---- Noise on integers: lattices on which a wanted noise is a power of two, so that nothing is rounded up.

LARGEST_WEIGHT = 16 * ONE
"""The largest integer that may stand for a derivative at its bound: sums of more would leave 64 bits."""

GRAM_ROW_SQUARED = 1 << 26
"""The largest squared norm of a row in a Gram matrix, in integers."""

_WEIGHT_BITS = 16
_LARGEST_SCALE = 54


def gradient_noise(
    loss: Loss, row_squared: int, relation: str, noise_multiplier: float, entry_bound: int = ONE
) -> tuple[int, RoundedGaussian]:
    """The integer that stands for a derivative at its bound, and the noise on sums of rows times such integers.

    ``row_squared`` bounds the squared norm of a row in lattice units, ``noise_multiplier`` is noise over sensitivity,
    and ``entry_bound`` bounds the entries of a row, for the room that sums need.
    """
    factor = loss.squared_l2_factor
    weight_bound, log2_scale = _on_lattice(
        derivative_sum(row_squared, 1, factor, relation).value * noise_multiplier, LARGEST_WEIGHT * ONE // entry_bound
    )
    sensitivity = derivative_sum(row_squared, weight_bound, factor, relation).value
    magnitude = sum_magnitude(MOST_PRIVATE_ROWS, weight_bound * entry_bound // ONE)
    return weight_bound, RoundedGaussian(sensitivity, log2_scale, magnitude)


def joint_noise(product: float, relation: str, noise_multiplier: float) -> tuple[int, int, RoundedGaussian]:
    """The integer for a derivative at its bound, the bound on products, and the noise on jointly clipped sums.

    ``product`` bounds the norm of a row times that of a derivative in units of its bound, in lattice units. Rows are
    centred, so that their entries are at most twice the bound.
    """
    unit = jointly_clipped_sum(1, relation).value * product * noise_multiplier
    weight_bound, log2_scale = _on_lattice(unit, LARGEST_WEIGHT // 2)
    product_bound = math.floor(product * weight_bound)
    sensitivity = jointly_clipped_sum(product_bound, relation).value
    magnitude = sum_magnitude(MOST_PRIVATE_ROWS, 2 * weight_bound)
    return weight_bound, product_bound, RoundedGaussian(sensitivity, log2_scale, magnitude)


def gram_noise(relation: str, noise_multiplier: float) -> tuple[int, RoundedGaussian]:
    """The squared norm of a row in a Gram matrix, and the noise on its weighted entries."""
    row_squared, log2_scale = _on_lattice(gram_matrix(1, relation).value * noise_multiplier, GRAM_ROW_SQUARED, bits=25)
    sensitivity = gram_matrix(row_squared, relation).value
    return row_squared, RoundedGaussian(sensitivity, log2_scale, MOST_PRIVATE_ROWS * max(GRAM_WEIGHTS) * row_squared)


def vector_noise(
    sensitivity: Callable[[int, str], Sensitivity], relation: str, noise_multiplier: float, finest: int = LARGEST_WEIGHT
) -> tuple[int, RoundedGaussian]:
    """The integer for a norm of one, and the noise on a sum of vectors of at most that norm with this sensitivity.

    The integer is ``finest`` at most, a power of two.
    """
    bits = finest.bit_length() - 1 - (LARGEST_WEIGHT.bit_length() - 1 - _WEIGHT_BITS)
    unit, log2_scale = _on_lattice(sensitivity(1, relation).value * noise_multiplier, finest, bits)
    return unit, RoundedGaussian(sensitivity(unit, relation).value, log2_scale, MOST_PRIVATE_ROWS * unit)


def term_noise(relation: str, noise_multiplier: float) -> tuple[int, RoundedGaussian]:
    """The integer that stands for a term of one, and the noise on a sum of such terms in [0, 1]."""
    term_bound, log2_scale = _on_lattice(noise_multiplier, LARGEST_WEIGHT)
    sensitivity = curvature_sum(term_bound, relation).value
    return term_bound, RoundedGaussian(sensitivity, log2_scale, MOST_PRIVATE_ROWS * term_bound)


def _on_lattice(noise: float, largest: int, bits: int = _WEIGHT_BITS) -> tuple[int, int]:
    """The largest weight, and the exponent of the noise, for noise of a given size per unit of that weight."""
    noise *= 1.0 + 2.0**-40
    log2_scale = min(max(bits + math.frexp(noise)[1], 5), _LARGEST_SCALE)
    # Never more than sums have room for, which matters for budgets beyond all use.
    weight_bound = min(math.floor(2.0**log2_scale / noise), largest)
    if weight_bound < 1:
        raise ParameterError("noise", noise, "noise that sums in 64 bits leave room for", "raise epsilon or delta")
    return weight_bound, log2_scale


# ---- Releases of the default model: each method pays for what it returns.

# The lower end of the grid of a median row norm.
_LEAST_NORM = 2.0**-6
# Rows are expected to be about a quarter as long as they can be.
_TYPICAL_NORM = 0.25
# Neighbouring points of a grid for medians differ by this factor.
_GRID_RATIO = 1.17
_TERM_BOUND = 1 << 20
# Without noise, what one record is in counts, so that parts of records count too.
_PART = 1 << 20
# Rows less a centre have entries of up to twice the bound.
_CENTRED_ENTRY = 2 * ONE


class Ceiling(NamedTuple):
    """What it means if a median is at the upper end of its grid: the kind of diagnosis, and the public n."""

    kind: str
    n_records: int


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, eq=False)
class Question(Generic[Answer]):
    """A release that is paid for: the task whose sum it takes, the shape of that, and what is released of it."""

    task: Task
    shape: tuple[int, ...]
    answer: Callable[[IntArray], Answer]


class Releases:
    """Private answers to questions about a source; each is paid from the budget and uses up a child of the stream."""

    def __init__(self, budget: PrivacyFilter, relation: str, source: Source, stream: Stream) -> None:
        self._budget, self._relation, self.source, self._stream = budget, relation, source, stream
        self._diagnoses: dict[str, Diagnosis] = {}

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """What the answers say against bounds or classes, the first of each kind."""
        return tuple(self._diagnoses.values())

    def diagnose(self, diagnosis: Diagnosis | None) -> None:
        """Keep what an answer says, if anything; without noise there is no released number that could tell."""
        if diagnosis is not None and self.private:
            self._diagnoses.setdefault(diagnosis.kind, diagnosis)

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return self._budget.private

    @property
    def remaining(self) -> float:
        """The share of the budget that is not spent yet."""
        return self._budget.remaining

    def ask(self, question: Question[Answer]) -> Answer:
        """The answer to one question."""
        return question.answer(self.source.total(question.task))

    def ask_together(self, *questions: Question[Any]) -> list[Any]:
        """The answers to several questions, in one pass over the records."""
        sums = self.source.total(Together(tuple(question.task for question in questions)))
        ends = np.cumsum([math.prod(question.shape) for question in questions])
        parts = np.split(sums, ends[:-1])
        return [question.answer(part.reshape(question.shape)) for question, part in zip(questions, parts, strict=True)]

    def quantile(
        self,
        what: str,
        share: float,
        statistic: RowStatistic,
        low: float,
        high: float,
        *,
        noiseless: Callable[[], float] | None = None,
        **given: Any,
    ) -> float:
        """As :meth:`quantile_of` has it; without noise a number of its own, if given."""
        if not self._budget.private and noiseless is not None:
            self._budget.selection(what, share)
            return noiseless()
        return self.ask(self.quantile_of(what, share, statistic, low, high, **given))

    def quantile_of(
        self,
        what: str,
        share: float,
        statistic: RowStatistic,
        low: float,
        high: float,
        *,
        quantile: float = 0.5,
        typical: float | None = None,
        falls: bool = False,
        ratio: float = _GRID_RATIO,
        ceiling: Ceiling | None = None,
    ) -> Question[float]:
        """A quantile of a statistic on a geometric grid of public ends.

        Neighbouring points of the grid differ by a ``ratio``.

        A prior prefers what is ``typical`` in the absence of information: its logarithm has a deviation of one. Or it
        ``falls`` like one over the value, since counts say little about far tails. A ``ceiling`` says what it means if
        values crowd at the upper end.
        """
        selection_range = self._budget.selection(what, share)
        n_points = max(2, math.ceil(math.log(high / low) / math.log(ratio)) + 1)
        grid = np.geomspace(low, high, n_points)
        prior = None if typical is None else tuple((-0.5 * np.square(np.log(grid / typical))).tolist())
        prior = tuple((-np.log(grid)).tolist()) if falls else prior
        mechanism = PrivateQuantile(
            tuple(grid),
            quantile,
            self._relation,
            selection_range if self._budget.private else 1.0,
            prior,
            self.source.rank_weight,
        )

        def release(counts: IntArray) -> float:
            if not self._budget.private:
                return mechanism.grid[int(np.argmax(replace(mechanism, prior=None).count_scores(counts)))]
            released = mechanism.release_counts(counts, self._child("quantile"))
            if ceiling is not None and crowds_at_ceiling(mechanism, released, ceiling.n_records):
                self.diagnose(Diagnosis(ceiling.kind, what))
            return released

        return Question(CumulativeCounts(statistic, mechanism.grid), (n_points + 1,), release)

    def row_norm(
        self,
        what: str,
        share: float,
        norms: RowNorms,
        widest: float,
        quantile: float = 0.5,
        ceiling: Ceiling | None = None,
    ) -> float:
        """A quantile of the row norms of the records that are not null."""

        def noiseless() -> float:
            # A constant column lengthens rows, by the root of two at most. No row is clipped, so that none is left out:
            # rows of zeros may be far from their centre.
            largest = largest_row_norm(self.source, replace(norms, zeros=True))
            return math.sqrt(2.0) * max(largest, _LEAST_NORM)

        high = max(widest, 1.0)
        return self.quantile(
            what, share, norms, _LEAST_NORM, high, quantile=quantile, typical=_TYPICAL_NORM * high,
            noiseless=noiseless, ceiling=ceiling,
        )  # fmt: skip

    def mean(self, what: str, share: float, terms: Task, n_values: int, n_rows: int) -> tuple[FloatArray, float]:
        """As :meth:`mean_of` has it."""
        return self.ask(self.mean_of(what, share, terms, n_values, n_rows))

    def mean_of(
        self, what: str, share: float, terms: Task, n_values: int, n_rows: int
    ) -> Question[tuple[FloatArray, float]]:
        """The mean over ``n_rows`` of vectors of norm at most one, which ``terms`` sums, and its noise's deviation."""
        weight, noise = self.noise(HuberLoss(1.0), ONE * ONE, what, share, n_values)
        unit = 1.0 / (float(weight) * ONE * n_rows)

        def release(sums: IntArray) -> tuple[FloatArray, float]:
            return self._noisy(weight * sums, noise, "mean") * unit, _deviation(noise) * unit

        return Question(terms, (n_values,), release)

    def row_mean(self, what: str, share: float, clipping: Clipping, n_rows: int) -> tuple[FloatArray, float]:
        """The mean of clipped rows in lattice units, and the deviation of its noise."""
        weight, noise = self.noise(HuberLoss(1.0), clipping.row_squared, what, share, clipping.n_features)
        unit = 1.0 / (float(weight) * n_rows)
        sums = self.source.total(ClippedRowSum(clipping, weight))
        return self._noisy(sums, noise, "row mean") * unit, _deviation(noise) * unit

    def gram_matrix(self, what: str, share: float, clipping: Clipping) -> tuple[FloatArray, float]:
        """As :meth:`gram_matrix_of` has it."""
        return self.ask(self.gram_matrix_of(what, share, clipping))

    def gram_matrix_of(
        self, what: str, share: float, clipping: Clipping, coefficients: FloatArray | None = None
    ) -> Question[tuple[FloatArray, float]]:
        """The Gram matrix of clipped rows in scaled units, and the deviation of the noise on its diagonal.

        At ``coefficients`` it is the information matrix of labels, in units of their largest curvature.
        """

        def terms(row_squared: int) -> GramMatrix:
            return GramMatrix(clipping, row_squared, coefficients)

        return self.outer_products_of(what, share, terms, clipping.width, clipping.norm)

    def outer_products(
        self, what: str, share: float, terms: Callable[[int], Task], width: int, norm: float, **given: Any
    ) -> tuple[FloatArray, float]:
        """As :meth:`outer_products_of` has it."""
        return self.ask(self.outer_products_of(what, share, terms, width, norm, **given))

    def outer_products_of(
        self,
        what: str,
        share: float,
        terms: Callable[[int], Task],
        width: int,
        norm: float,
        *,
        finest: int = GRAM_ROW_SQUARED,
    ) -> Question[tuple[FloatArray, float]]:
        """A sum of outer products of vectors of at most a norm, and the deviation of the noise on its diagonal.

        ``terms`` sums them, given the integer that stands for the squared norm, which is ``finest`` without privacy.
        Off the diagonal the variance of the noise is half as large, as in a Gaussian orthogonal ensemble.
        """
        upper = np.triu_indices(width)
        multiplier = self._budget.gaussian(what, share, distance=upper[0].size * DISTANCE_PER_VALUE)
        if self._budget.private:
            row_squared, noise = gram_noise(self._relation, multiplier)
        else:
            row_squared, noise = finest, None
        weights = np.where(upper[0] == upper[1], *GRAM_WEIGHTS)
        unit = norm**2 / row_squared

        def release(products: IntArray) -> tuple[FloatArray, float]:
            sums = products[upper]
            # Without noise the weights would only cost bits.
            released = (
                sums.astype(np.float64)
                if noise is None
                else self._noisy(sums * weights, noise, "Gram matrix") / weights
            )
            matrix = np.zeros((width, width))
            matrix[upper] = released * unit
            matrix += np.triu(matrix, 1).T
            return matrix, _deviation(noise) / GRAM_WEIGHTS[0] * unit

        return Question(terms(row_squared), (width, width), release)

    def largest_correlations(
        self,
        what: str,
        share: float,
        correlations: EntryCorrelationSum,
        k: int,
        entry: int,
        weight: int,
        variables: IndexArray | None = None,
    ) -> IntArray:
        """The places of k large absolute sums by Gumbel noise, for entries and weights within bounds.

        With ``variables``, the numbers from 0 of those that columns are of, k of these are returned. A variable has the
        largest sum of its columns, and the largest of some scores moves by no more than any of them does.
        """
        selection_range = self._budget.selection(what, share, k)
        scores = np.abs(self.source.total(correlations)).sum(axis=1)
        if variables is not None:
            columns, scores = scores, np.zeros(int(variables.max()) + 1, dtype=scores.dtype)
            np.maximum.at(scores, variables, columns)
        if not self._budget.private:
            return first_k_of(scores, np.zeros(scores.size), k)
        sensitivity = proposal_scores(entry, weight, self._relation)
        return GumbelTopK(sensitivity, k, selection_range).release(scores, self._child("columns"))

    def can_select(self, share: float, k: int) -> bool:
        """Whether a share pays for k selections and what double precision costs them."""
        return self._budget.range_of(share, k) > 4.0 * rounding_charge(k)

    def selection_noise(self, share: float, clip: float) -> float:
        """The scale of the noise in a selection among sums of terms within a clip."""
        return 2.0 * clip / self._budget.range_of(share) if self._budget.private else 0.0

    def noise(
        self, loss: Loss, row_squared: int, what: str, share: float, values: int, count: int = 1
    ) -> tuple[int, RoundedGaussian | None]:
        """The integer for a derivative at its bound, and the noise; ``share`` pays for ``count`` sums together."""
        multiplier = self._budget.gaussian(what, share, count, values * DISTANCE_PER_VALUE)
        if not self._budget.private:
            return ONE if loss.labelled else LARGEST_WEIGHT // 2, None
        return gradient_noise(loss, row_squared, self._relation, multiplier, _CENTRED_ENTRY)

    def joint_noise(
        self, product: float, what: str, share: float, values: int, count: int = 1
    ) -> tuple[int, int | None, RoundedGaussian | None]:
        """The integer for a derivative at its bound, the bound on products (none without noise), and the noise."""
        multiplier = self._budget.gaussian(what, share, count, values * DISTANCE_PER_VALUE)
        if not self._budget.private:
            return LARGEST_WEIGHT // 2, None, None
        return joint_noise(product, self._relation, multiplier)

    def moments(
        self, what: str, share: float, terms: Callable[[int], Task], n_values: int, finest: int = LARGEST_WEIGHT
    ) -> tuple[FloatArray, float]:
        """As :meth:`moments_of` has it."""
        return self.ask(self.moments_of(what, share, terms, n_values, finest))

    def moments_of(
        self, what: str, share: float, terms: Callable[[int], Task], n_values: int, finest: int = LARGEST_WEIGHT
    ) -> Question[tuple[FloatArray, float]]:
        """A sum of vectors of norm at most one, given to ``terms`` as an integer, and its noise's deviation.

        The integer is ``finest`` at most.
        """
        multiplier = self._budget.gaussian(what, share, distance=n_values * DISTANCE_PER_VALUE)
        unit, noise = vector_noise(jointly_clipped_sum, self._relation, multiplier, finest)

        def release(sums: IntArray) -> tuple[FloatArray, float]:
            return self._noisy(sums, noise, "moments") / unit, _deviation(noise) / unit

        return Question(terms(unit), (n_values,), release)

    def counts(self, what: str, share: float, cells: Callable[[int], Task], n_cells: int) -> tuple[FloatArray, float]:
        """Numbers of records in cells, each record in one, and their noise's deviation; ``cells`` is given the unit."""
        multiplier = self._budget.gaussian(what, share, distance=n_cells * DISTANCE_PER_VALUE)
        if not self._budget.private:
            return self._noisy(self.source.total(cells(_PART)), None, "counts") / _PART, 0.0
        unit, noise = vector_noise(cell_counts, self._relation, multiplier)
        return self._noisy(self.source.total(cells(unit)), noise, "counts") / unit, _deviation(noise) / unit

    def best_model(
        self,
        what: str,
        share: float,
        clipping: Clipping,
        models: tuple[FloatArray, ...],
        reference: FloatArray,
        penalties: FloatArray,
        clips: tuple[float, float],
        tolerance: float | FloatArray = 0.0,
    ) -> int:
        """The place of a model with a small sum of clipped excess losses over a reference, plus penalty.

        Excess losses are clipped at twice the range of the selection, within two ends. Sums count from a tolerance on,
        one for all or one each.
        """
        selection_range = self._budget.selection(what, share)
        clip = min(max(2.0 * selection_range, clips[0]), clips[1])
        unit = _TERM_BOUND / clip
        sums = self.source.total(ExcessLossSums(clipping, models, reference, clip, unit))
        least, penalty = (np.rint(np.multiply(values, unit)).astype(np.int64) for values in (tolerance, penalties))
        scores = -np.maximum(sums, least) - penalty
        if not self._budget.private:
            return int(np.argmax(scores))
        sensitivity = loss_differences(_TERM_BOUND, self._relation)
        return ExponentialMechanism(sensitivity, selection_range).release(scores, self._child("size"))

    def noisy_sums(self, sums: Task, noise: RoundedGaussian | None) -> FloatArray:
        """Sums with the noise that was paid for."""
        return self._noisy(self.source.total(sums), noise, "sums")

    def noisy_sums_of(
        self, sums: Task, shape: tuple[int, ...], noise: RoundedGaussian | None, unit: float
    ) -> Question[FloatArray]:
        """The same times a unit, to be asked together with something else."""
        return Question(sums, shape, lambda found: self._noisy(found, noise, "sums") * unit)

    def _noisy(self, sums: IntArray, noise: RoundedGaussian | None, label: str) -> FloatArray:
        released = sums if noise is None else noise.release(sums, self._child(label))
        return released.astype(np.float64)

    def _child(self, label: str) -> Stream:
        return self._stream.spawn(label)


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledMedians:
    """Medians that a schedule lists by name, of the records of a source."""

    schedule: Schedule
    relation: str
    source: Source
    stream: Stream

    def release(self, name: str, statistic: RowStatistic, grid: FloatArray, label: str) -> float:
        """A point of a public, increasing grid near the median, by the exponential mechanism from stream ``label``."""
        selection_range = self.schedule.selection_range(name)
        mechanism = PrivateQuantile(tuple(grid), 0.5, self.relation, selection_range, weight=self.source.rank_weight)
        counts = self.source.total(CumulativeCounts(statistic, mechanism.grid))
        return mechanism.release_counts(counts, self.stream.spawn(label))


def list_spends(
    spends: Iterable[Spend], half: int | None = None, diagnoses: Iterable[Diagnosis] = ()
) -> tuple[Release, ...]:
    """What a privacy filter paid for in a half of the records (None: all), for the certificate, with diagnoses."""
    releases = []
    remarks = {diagnosis.what: REMARKS[diagnosis.kind] for diagnosis in diagnoses}
    for spend in spends:
        what = f"{spend.what}: {remarks[spend.what]}" if spend.what in remarks else spend.what
        if spend.mechanism == "none":
            releases.append(Release(what, "none", 0.0, spend.event, spend.count, half=half))
            continue
        selection = spend.mechanism == "selection"
        noise, scale = ("Gumbel", 2.0 / spend.parameter) if selection else ("Gaussian", spend.parameter)
        releases.append(Release(what, noise, scale, spend.event, spend.count, spend.remaining, half))
    return tuple(releases)


def _deviation(noise: RoundedGaussian | None) -> float:
    return 0.0 if noise is None else 2.0**noise.log2_scale
