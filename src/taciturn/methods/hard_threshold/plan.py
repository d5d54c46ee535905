"""Plans of private hard thresholding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE, check_integer
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, proposal_scores
from taciturn.losses import Loss
from taciturn.methods.frank_wolfe.plan import TargetMedians, signal_strength
from taciturn.methods.releases import (
    LARGEST_WEIGHT,
    ListedReleases,
    PlannedRelease,
    calibrate_releases,
    gradient_noise,
    term_noise,
)
from taciturn.privacy.budget import Budget
from taciturn.privacy.claim import Release
from taciturn.privacy.events import Event, ExponentialEvent, GaussianEvent
from taciturn.privacy.gdp import mu_of_budget
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE, GumbelTopK, RoundedGaussian

# -----------------------------------------------------------------------------
# Plans for pursuit: columns join in rounds, with gradient steps on those chosen so far between them.

# Measured in research's study_siblings.py: how many columns join for one that is kept, in how many rounds, what share
# of the budget for columns and gradients chooses columns, and what share of the rest is for the steps between rounds.
_CANDIDATES_PER_COLUMN = 1.5
_MOST_ROUNDS, _STRENGTH_PER_ROUND = 7, 100.0
_CHOICE_SHARE = 0.6
_BETWEEN_SHARE = 0.5
# Above this share of all columns there is little to choose.
_LARGEST_SHARE = 0.5
_UNTRUSTED_STRENGTH = 30.0
_FEWEST_STEPS, _MOST_STEPS, _STRENGTH_PER_STEP = 3, 20, 4.0

_ROW_NORM = "the median row norm"
_MIDDLE = "the median of the target"
_RESIDUAL = "the median residual of a round"
_CURVATURE = "the curvature along one direction"


def pursues(budget: Budget, n_nonzero: int, n_features: int) -> bool:
    """Whether columns had better join in rounds, from public facts: where few of many are kept, and there is noise."""
    return not math.isinf(budget.epsilon) and n_nonzero <= _LARGEST_SHARE * n_features


@dataclass(frozen=True, slots=True)
class PursuitPlan(ListedReleases):
    """How many columns join in how many rounds, and with how much noise.

    Parameters
    ----------
    loss : Loss
        The loss of one record; the threshold of a Huber loss is the residual clip, if that is given.
    n_rows, n_features, n_outputs : int
        The public number of records, columns without the intercept's, and rows of the coefficient matrix.
    rounds : tuple of int
        How many columns join in each round.
    n_steps : int
        Gradient steps after the last round; there is one after each of the others.
    row_bound : float or None
        L2 bound on rows in units of scaled features; None for private medians.
    step : float or None
        Length of a step for the mean gradient in units of scaled features. None: from the curvature.
    radius : float or None
        L2 bound on the coefficients, the intercept's apart.
    average : bool
        Whether to return the mean of the second half of the iterates.
    auto_clip, centred : bool
        Whether the residual clip follows from private medians, and whether the target is centred by one first.
    """

    ordered: ClassVar[bool] = False
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    loss: Loss
    relation: str
    n_rows: int
    n_features: int
    n_outputs: int
    intercept: bool
    n_nonzero: int
    rounds: tuple[int, ...]
    n_steps: int
    row_bound: float | None
    step: float | None
    radius: float | None
    average: bool
    auto_clip: bool
    centred: bool
    releases: tuple[Release, ...]

    @property
    def n_iterations(self) -> int:
        """Gradient steps altogether."""
        return len(self.rounds) - 1 + self.n_steps

    @property
    def trust(self) -> float:
        r"""What is left of the coefficients where medians are noise: :math:`1 / (1 + (30 / M)^4)` at a strength M."""
        strength = signal_strength(self.budget, self.n_rows, self.relation)
        return 1.0 / (1.0 + math.pow(_UNTRUSTED_STRENGTH / max(strength, 1.0), 4.0))

    @property
    def opening(self) -> float:
        r"""The bound on rows in units of their typical norm: :math:`(M / 40 k)^{1/4}`, within 1 and 2.

        Clipped rows bias coefficients. The clip opens as the noise falls; for labels, whose derivatives are bounded by
        themselves, it stays where noise is least.
        """
        if self.loss.labelled:
            return 1.0
        strength = signal_strength(self.budget, self.n_rows, self.relation)
        return min(max(math.pow(strength / (40.0 * self.n_nonzero), 0.25), 1.0), 2.0)

    @property
    def norm_range(self) -> float:
        """The range of the selection that a median row norm is."""
        return _selection_range(self._named(_ROW_NORM))

    @property
    def middle_range(self) -> float:
        """The range of the selection that the median of the target is."""
        return _selection_range(self._named(_MIDDLE))

    @property
    def residual_range(self) -> float:
        """The range of the selection that a median residual is."""
        return _selection_range(self._named(_RESIDUAL))

    def choice(self, n_joining: int, weight_bound: int) -> GumbelTopK:
        """The choice of columns in a round, for entries up to ONE times derivatives up to ``weight_bound``."""
        scores = proposal_scores(ONE, math.ceil(self.loss.l1_factor * weight_bound), self.relation)
        return GumbelTopK(scores, n_joining, _selection_range(self._named(_choice_words(self.n_features))))

    def gradient_noise(self, row_squared: int, *, last: bool) -> tuple[int, RoundedGaussian]:
        """The integer that stands for the largest derivative, and the noise on sums, of a step in a round.

        ``row_squared`` bounds the squared norm of a row, the entry of the constant column included, in lattice units.
        """
        release = self.releases[-1 if last else -2]
        return gradient_noise(self.loss, row_squared, self.relation, _noise_multiplier(release))

    def curvature_mechanism(self) -> tuple[int, RoundedGaussian]:
        """The integer that stands for a curvature term of one, and the noise on their sum."""
        return term_noise(self.relation, _noise_multiplier(self._named(_CURVATURE)))

    def _named(self, what: str) -> Release:
        return next(release for release in self.releases if release.what == what)


def _selection_range(release: Release) -> float:
    if not isinstance(release.event, ExponentialEvent):
        raise TypeError("expected a selection")
    return release.event.epsilon


def _noise_multiplier(release: Release) -> float:
    if not isinstance(release.event, GaussianEvent):
        raise TypeError("expected a Gaussian release")
    return release.event.noise_multiplier


def _choice_words(n_features: int) -> str:
    return f"one of {n_features:,} columns that joins"


def plan_pursuit(
    budget: Budget,
    loss: Loss,
    *,
    relation: str,
    n_rows: int,
    n_features: int,
    n_outputs: int,
    intercept: bool,
    n_nonzero: int,
    row_bound: float | None,
    auto_clip: bool,
    clip_share: float | None,
    n_steps: int | str,
    step: float | None,
    radius: float | None,
    average: bool,
) -> PursuitPlan:
    r"""Plan pursuit; parameters are those of :class:`PursuitPlan`.

    Let M be the :func:`~taciturn.methods.frank_wolfe.plan.signal_strength`. Half as many columns again as are kept join
    in one round for every 100 of it, seven at most. The number of steps "auto" is one for every four units of
    :math:`M / k`, within 3 and 20.

    A third of ``clip_share`` goes to the medians of row norms, of residuals and to the curvatures each; None is for
    :math:`(12 / M)^2` each time, at which a median is hardly ever at the wrong end of its grid. Of the rest three
    fifths choose columns, and the gradients between rounds and after the last one share what is left.
    """
    strength = signal_strength(budget, n_rows, relation)
    n_nonzero = min(n_nonzero, n_features)
    rounds = _rounds(n_nonzero, n_features, strength)
    n_rounds, n_joining = len(rounds), sum(rounds)
    steps = round(min(max(strength / (_STRENGTH_PER_STEP * n_nonzero), _FEWEST_STEPS), _MOST_STEPS))
    steps = steps if n_steps == "auto" else int(n_steps)
    centred = auto_clip and TargetMedians.at(strength, intercept=intercept, scales_radius=False).centred
    # The norm of whole rows, for the size of their entries, is one more.
    norms = [(_ROW_NORM, n_rounds + 1)] * (row_bound is None)
    residuals = ([(_MIDDLE, 1)] * centred + [(_RESIDUAL, n_rounds)]) * auto_clip
    curvatures = [(_CURVATURE, n_rounds)] * (step is None)
    planned, rest = [], 1.0
    for found in (norms, residuals, curvatures):
        number = sum(count for _, count in found)
        each = _share_of_one(strength) if clip_share is None else clip_share / (3.0 * max(number, 1))
        rest -= each * number
        for what, count in found:
            event = partial(_gaussian, each, DISTANCE_PER_VALUE) if what == _CURVATURE else partial(_selection, each)
            planned.append(PlannedRelease(what, "Gaussian" if what == _CURVATURE else "Gumbel", event, count))
    # Where all columns join, the last round has nothing to choose.
    n_chosen = n_joining - (rounds[-1] if n_joining == n_features else 0)
    if n_chosen:
        event = partial(_selection, _CHOICE_SHARE * rest / n_chosen)
        planned.append(PlannedRelease(_choice_words(n_features), "Gumbel", event, n_chosen))
        rest *= 1.0 - _CHOICE_SHARE
    between = rest * _BETWEEN_SHARE * (n_rounds > 1)
    after = rest - between
    for what, part, count, width in (
        ("between rounds", between, n_rounds - 1, n_joining - rounds[-1]),
        ("after the last round", after, steps, n_joining),
    ):
        n_released = n_outputs * (width + intercept)
        words = f"a gradient with up to {n_released:,} coordinates {what}"
        if count:
            event = partial(_gaussian, part / count, n_released * DISTANCE_PER_VALUE)
            planned.append(PlannedRelease(words, "Gaussian", event, count))
    return PursuitPlan(
        budget=budget,
        loss=loss,
        relation=relation,
        n_rows=n_rows,
        n_features=n_features,
        n_outputs=n_outputs,
        intercept=intercept,
        n_nonzero=n_nonzero,
        rounds=rounds,
        n_steps=steps,
        row_bound=row_bound,
        step=step,
        radius=radius,
        average=average,
        auto_clip=auto_clip,
        centred=centred,
        releases=calibrate_releases(budget, planned, ordered=PursuitPlan.ordered),
    )


def _share_of_one(strength: float) -> float:
    """The share of the budget for one number that is found out about the data."""
    return min(max((12.0 / max(strength, 1.0)) ** 2, 0.001), 0.1)


def _rounds(n_nonzero: int, n_features: int, strength: float) -> tuple[int, ...]:
    """How many columns join in each round: about as many in all of them."""
    n_joining = min(math.ceil(_CANDIDATES_PER_COLUMN * n_nonzero), n_features)
    n_rounds = min(max(round(strength / _STRENGTH_PER_ROUND), 1), _MOST_ROUNDS, n_joining)
    return tuple((n_joining + i) // n_rounds for i in range(n_rounds))


def _selection(part: float, b: float) -> Event:
    r"""One of many selections, of which a range e counts :math:`e^2 / 4` of the sum of squared Gaussian parameters."""
    return ExponentialEvent(2.0 * math.sqrt(part) / b)


def _gaussian(part: float, distance: float, b: float) -> Event:
    return GaussianEvent(b / math.sqrt(part), distance)


# -----------------------------------------------------------------------------
# Plans for gradient descent with hard thresholding.

NOISELESS_STEPS = 500
"""Steps without privacy."""

LEAST_ROW_BOUND = 2.0**-8
"""Below this share of x_bound a row clip would be coarse on the lattice of the entries."""

_CLIP_SHARE = 0.06

# The share of the budget for the steps that peeling spends on the choice of columns.
_PEELING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HardThresholdPlan(ListedReleases):
    """How many steps will be made, what is found out about the data first, and with how much noise.

    Parameters
    ----------
    budget : Budget
        What everything together may cost.
    loss : Loss
        The loss of one record; the threshold of a Huber loss is the residual clip, if that is given.
    n_rows, n_features, n_outputs : int
        The public number of records, columns without the intercept's, and rows of the coefficient matrix.
    row_bound : float or None
        L2 bound on rows in units of scaled features; None for a private median.
    step : float or None
        Length of a step for the mean gradient in units of scaled features. None: from the curvature.
    radius : float or None
        L2 bound on the coefficients, the intercept's apart.
    average : bool
        Whether to return the mean of the second half of the iterates, thresholded once more.
    auto_clip : bool
        Whether the residual clip follows from a private median.
    peeling : bool
        Whether columns are chosen before their gradients are released.
    releases : tuple of Release
        For the certificate; the noise of all mechanisms follows from their events.
    """

    ordered: ClassVar[bool] = False
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    loss: Loss
    relation: str
    n_rows: int
    n_features: int
    n_outputs: int
    intercept: bool
    n_nonzero: int
    n_steps: int
    row_bound: float | None
    step: float | None
    radius: float | None
    average: bool
    auto_clip: bool
    peeling: bool
    releases: tuple[Release, ...]

    @property
    def n_iterations(self) -> int:
        """Gradient steps altogether."""
        return self.n_steps

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return not math.isinf(self.budget.epsilon)

    @property
    def median_range(self) -> float:
        """The range of the selection that a median is."""
        return _hard_threshold_selection_range(self.releases[0])

    def gradient_mechanisms(
        self, row_squared: int, constant: int
    ) -> tuple[int, RoundedGaussian | None, GumbelTopK | None]:
        """The integer that stands for the largest derivative, the noise on sums, and the choice of columns, if any.

        ``row_squared`` bounds the squared norm of a row, the entry of the constant column included, in lattice units.
        """
        if not self.private:
            return ONE if self.loss.labelled else LARGEST_WEIGHT, None, None
        multiplier = _hard_threshold_noise_multiplier(self.releases[-1])
        if not self.peeling:
            return *gradient_noise(self.loss, row_squared, self.relation, multiplier), None
        row_squared_chosen = min(row_squared, self.n_nonzero * ONE * ONE + constant * constant)
        weight_bound, noise = gradient_noise(self.loss, row_squared_chosen, self.relation, multiplier)
        entry = min(ONE, math.isqrt(row_squared) + 1)
        scores = proposal_scores(entry, math.ceil(self.loss.l1_factor * weight_bound), self.relation)
        return (
            weight_bound,
            noise,
            GumbelTopK(scores, self.n_nonzero, _hard_threshold_selection_range(self.releases[-2])),
        )

    def curvature_mechanism(self) -> tuple[int, RoundedGaussian | None]:
        """The integer that stands for a curvature term of one, and the noise on their sum."""
        if not self.private:
            return ONE, None
        return term_noise(
            self.relation, _hard_threshold_noise_multiplier(self.releases[(self.row_bound is None) + self.auto_clip])
        )


def _hard_threshold_selection_range(release: Release) -> float:
    if not isinstance(release.event, ExponentialEvent):
        raise TypeError("expected a selection")
    return release.event.epsilon


def _hard_threshold_noise_multiplier(release: Release) -> float:
    if not isinstance(release.event, GaussianEvent):
        raise TypeError("expected a Gaussian release")
    return release.event.noise_multiplier


def plan_hard_threshold(
    budget: Budget,
    loss: Loss,
    *,
    relation: str,
    n_rows: int,
    n_features: int,
    n_outputs: int,
    intercept: bool,
    n_nonzero: int,
    row_bound: float | None,
    auto_clip: bool,
    clip_share: float | None,
    mechanism: str,
    n_steps: int | str,
    step: float | None,
    radius: float | None,
    average: bool,
) -> HardThresholdPlan:
    """Plan gradient descent with hard thresholding; other parameters are those of :class:`HardThresholdPlan`.

    An infinite epsilon means no noise. A third of ``clip_share``, 0.06 for None, goes to each median, and to the length
    of the steps where it is not given. The mechanism "gaussian" adds noise to all coordinates, "peeling" chooses
    columns privately and adds noise to these. The number of steps "auto" is a function of public facts.
    """
    # Sums of more records could leave 64 bits: partitions check their own rows, and nobody checks the total.
    check_integer(0, MOST_PRIVATE_ROWS, n_rows=n_rows)
    if row_bound is not None and row_bound < LEAST_ROW_BOUND:
        raise ParameterError("row_bound", row_bound, "at least x_bound / 256", "lower x_bound to what features can be")
    private = not math.isinf(budget.epsilon)
    n_nonzero = min(n_nonzero, n_features)
    peeling = mechanism == "peeling" and n_nonzero < n_features
    if n_steps != "auto":
        steps = int(n_steps)
    else:
        steps = hard_threshold_steps(budget, loss, n_rows, n_features + intercept) if private else NOISELESS_STEPS
    medians = ["the median row norm"] * (row_bound is None) + ["the median magnitude of the target"] * auto_clip
    planned = _planned_releases(
        (_CLIP_SHARE if clip_share is None else clip_share) / 3.0,
        medians,
        step is None,
        steps,
        n_outputs,
        n_features,
        intercept,
        n_nonzero if peeling else None,
    )
    plan = HardThresholdPlan(
        budget=budget if private else Budget(math.inf, 0.0),
        loss=loss,
        relation=relation,
        n_rows=n_rows,
        n_features=n_features,
        n_outputs=n_outputs,
        intercept=intercept,
        n_nonzero=n_nonzero,
        n_steps=steps,
        row_bound=row_bound,
        step=step,
        radius=radius,
        average=average,
        auto_clip=auto_clip,
        peeling=peeling,
        releases=calibrate_releases(budget, planned, ordered=HardThresholdPlan.ordered),
    )
    # A budget whose noise does not fit the lattice for the longest rows there can be is refused now: it must not turn
    # out when a median has been released already.
    plan.gradient_mechanisms(n_features * ONE * ONE, ONE)
    return plan


def _planned_releases(
    share: float,
    medians: Sequence[str],
    step_auto: bool,
    n_steps: int,
    n_outputs: int,
    n_features: int,
    intercept: bool,
    n_peeled: int | None,
) -> list[PlannedRelease]:
    r"""Each median and the curvature get ``share`` of the sum of squared Gaussian parameters, the steps the rest.

    One selection of range e counts :math:`\pi e^2 / 8`, many :math:`e^2 / 4` each, Gaussian noise of multiplier m
    :math:`1 / m^2`. These are weights, no costs: :func:`calibrate_releases` finds the common scale that the exact cost
    allows.
    """
    rest = 1.0 - share * (len(medians) + step_auto)
    median_range = math.sqrt(8.0 / math.pi * share)
    planned = [PlannedRelease(what, "Gumbel", partial(_hard_threshold_selection, median_range)) for what in medians]
    if step_auto:
        event = partial(_hard_threshold_gaussian, math.sqrt(1.0 / share), DISTANCE_PER_VALUE)
        planned.append(PlannedRelease("the curvature along one direction", "Gaussian", event))
    n_released, chosen = n_outputs * (n_features + intercept), 0.0
    if n_peeled is not None:
        chosen = _PEELING_SHARE * rest
        what = f"one of {n_features:,} columns, {n_peeled:,} times a step"
        selection_range = math.sqrt(4.0 * chosen / (n_peeled * n_steps))
        planned.append(
            PlannedRelease(what, "Gumbel", partial(_hard_threshold_selection, selection_range), n_peeled * n_steps)
        )
        n_released = n_outputs * (n_peeled + intercept)
    what = f"a gradient with {n_released:,} coordinates per step"
    event = partial(_hard_threshold_gaussian, math.sqrt(n_steps / (rest - chosen)), n_released * DISTANCE_PER_VALUE)
    planned.append(PlannedRelease(what, "Gaussian", event, n_steps))
    return planned


def _hard_threshold_selection(selection_range: float, b: float) -> Event:
    return ExponentialEvent(selection_range / b)


def _hard_threshold_gaussian(noise_multiplier: float, distance: float, b: float) -> Event:
    return GaussianEvent(noise_multiplier * b, distance)


def hard_threshold_steps(budget: Budget, loss: Loss, n_rows: int, n_columns: int) -> int:
    r"""The number of steps from public facts alone.

    :math:`T = 4 \sqrt{c\, n \mu / d}` within 4 and 20, for a budget of :math:`\mu`-GDP and a loss whose second
    derivative is at most c: each step costs the others noise, and pays where the noise is small.
    """
    signal = loss.smoothness * n_rows * mu_of_budget(budget) / n_columns
    return round(min(max(4.0 * math.sqrt(signal), 4.0), 20.0))
