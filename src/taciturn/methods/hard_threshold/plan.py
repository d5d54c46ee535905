"""Plans of private hard thresholding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.core.errors import ParameterError
from taciturn.core.validation import ONE, check_integer
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, proposal_scores
from taciturn.methods.frank_wolfe.plan import CLIP_PER_MEDIAN, TargetMedians, signal_strength
from taciturn.methods.releases import LARGEST_WEIGHT, gradient_noise, term_noise
from taciturn.methods.schedule import Problem, Schedule, ScheduledPlan
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import ExponentialEvent, GaussianEvent
from taciturn.privacy.gdp import mu_of_budget
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE, GumbelTopK, RoundedGaussian

NOISELESS_STEPS = 500
"""Steps without privacy."""

LEAST_ROW_BOUND = 2.0**-8
"""Below this share of x_bound a row clip would be coarse on the lattice of the entries."""


@dataclass(frozen=True, slots=True)
class _Tuning:
    """Tuned constants of both strategies."""

    # Points of the grids of medians.
    grid_points: int = 40
    # Isotropic rows of norm K have the curvature K**2 / d in every direction, and somewhat more along chosen ones.
    least_curvature: float = 1.3

    # Pursuit, measured in research's study_siblings.py: how many columns join for one that is kept, in how many rounds,
    # what share of the budget for columns and gradients chooses columns, and what share of the rest is for the steps
    # between rounds.
    candidates_per_column: float = 1.5
    most_rounds: int = 7
    strength_per_round: float = 100.0
    choice_share: float = 0.6
    between_share: float = 0.5
    # Above this share of all columns there is little to choose.
    largest_share: float = 0.5
    untrusted_strength: float = 30.0
    fewest_steps: int = 3
    most_steps: int = 20
    strength_per_step: float = 4.0
    # Entries of isotropic rows of norm R have the size R / sqrt(d). Clipped at less than half of that they tell little
    # more than signs, which is what a choice needs, and noise is for the clip.
    entry_share: float = 0.4
    # The share of residuals of a round that are within the clip, and so have curvature.
    share_within: float = 0.53 * CLIP_PER_MEDIAN
    # Of the step that would be the best along the direction of the first gradient, as others have more curvature.
    damping: float = 0.8

    # Descent: the share of the budget for medians and curvature, and that of the rest which peeling spends on columns.
    clip_share: float = 0.06
    peeling_share: float = 0.5
    # Without privacy residuals are clipped only where they pass eight times the range of the target.
    noiseless_clip: float = 16.0
    # A clip at half the median target keeps most of the signal of the first step and little of the noise of the others.
    clip_per_median: float = 0.5
    # The constant column is as large as others of the same row, but not so small that the intercept drowns in noise.
    most_columns_for_constant: int = 1000
    # Sparse features are stored by columns, of which margins read few, up to this many rows: sums over more are made in
    # blocks of rows.
    most_rows_by_columns: int = 1 << 19


TUNING = _Tuning()


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    """What a caller asks of hard thresholding, in units of scaled features and a mapped target.

    ``n_nonzero`` columns are kept. ``row_bound`` is an L2 bound on rows (None: private medians); ``auto_clip``
    takes the residual clip from private medians. A third of ``clip_share`` goes to the medians of rows, those of
    residuals, and the curvature each (None: chosen by the plan). There are ``n_steps`` gradient steps, after the
    last round of pursuit, of length ``step`` for the mean gradient (None: from the curvature). ``radius`` is an L2
    bound on the coefficients, the intercept's apart. ``average`` returns the mean of the second half of the
    iterates.
    """

    n_nonzero: int
    row_bound: float | None = None
    auto_clip: bool = False
    clip_share: float | None = None
    n_steps: int | str = "auto"
    step: float | None = None
    radius: float | None = None
    average: bool = False


@dataclass(frozen=True, slots=True)
class ThresholdPlan(ScheduledPlan):
    """What pursuit and descent share: the columns that are kept, and gradient steps after the last round of pursuit.

    The schedule has "row norm", "residual" and "curvature" where these are found out, "columns" where these are
    chosen first, and gradients.
    """

    problem: Problem
    settings: ThresholdSettings
    schedule: Schedule
    n_nonzero: int
    n_steps: int

    @property
    def n_iterations(self) -> int:
        """Gradient steps altogether."""
        return self.n_steps

    def curvature_mechanism(self) -> tuple[int, RoundedGaussian | None]:
        """The integer that stands for a curvature term of one, and the noise on their sum."""
        if not self.schedule.private:
            return ONE, None
        return term_noise(self.problem.relation, self.schedule.multiplier("curvature"))

    def _choice(self, k: int, entry: int, weight_bound: int) -> GumbelTopK:
        """The choice of k columns, for entries up to ``entry`` times derivatives up to ``weight_bound``."""
        loss, relation = self.problem.loss, self.problem.relation
        scores = proposal_scores(entry, math.ceil(loss.l1_factor * weight_bound), relation)
        return GumbelTopK(scores, k, self.schedule.selection_range("columns"))


# ---- Plans for pursuit: columns join in rounds, with gradient steps on those chosen so far between them.


def pursues(budget: Budget, n_nonzero: int, n_features: int) -> bool:
    """Whether columns had better join in rounds, from public facts: where few of many are kept, and there is noise."""
    return not math.isinf(budget.epsilon) and n_nonzero <= TUNING.largest_share * n_features


@dataclass(frozen=True, slots=True)
class PursuitPlan(ThresholdPlan):
    """How many columns join in each of the ``rounds``, with one gradient step after each but the last, and the noise.

    ``centred``: a private median, "middle", centres the target first. ``strength`` is the
    :func:`~taciturn.methods.frank_wolfe.plan.signal_strength`.
    """

    rounds: tuple[int, ...]
    centred: bool
    strength: float

    @property
    def n_iterations(self) -> int:
        """Gradient steps altogether."""
        return len(self.rounds) - 1 + self.n_steps

    @property
    def trust(self) -> float:
        r"""What is left of the coefficients where medians are noise: :math:`1 / (1 + (30 / M)^4)` at a strength M."""
        return 1.0 / (1.0 + math.pow(TUNING.untrusted_strength / max(self.strength, 1.0), 4.0))

    @property
    def opening(self) -> float:
        r"""The bound on rows in units of their typical norm: :math:`(M / 40 k)^{1/4}`, within 1 and 2.

        Clipped rows bias coefficients. The clip opens as the noise falls; for labels, whose derivatives are bounded by
        themselves, it stays where noise is least.
        """
        if self.problem.loss.labelled:
            return 1.0
        return min(max(math.pow(self.strength / (40.0 * self.n_nonzero), 0.25), 1.0), 2.0)

    def choice(self, n_joining: int, weight_bound: int) -> GumbelTopK:
        """The choice of columns in a round, for entries up to ONE times derivatives up to ``weight_bound``."""
        return self._choice(n_joining, ONE, weight_bound)

    def gradient_noise(self, row_squared: int, *, last: bool) -> tuple[int, RoundedGaussian]:
        """The integer for the largest derivative, and the noise on sums; ``row_squared`` has the constant's entry."""
        multiplier = self.schedule.multiplier("gradient after the last round" if last else "gradient between rounds")
        return gradient_noise(self.problem.loss, row_squared, self.problem.relation, multiplier)


def plan_pursuit(budget: Budget, problem: Problem, settings: ThresholdSettings) -> PursuitPlan:
    r"""Plan pursuit.

    Let M be the :func:`~taciturn.methods.frank_wolfe.plan.signal_strength`. Half as many columns again as are kept join
    in one round for every 100 of it, seven at most. The number of steps "auto" is one for every four units of
    :math:`M / k`, within 3 and 20.

    A third of ``clip_share`` goes to the medians of row norms, of residuals and to the curvatures each; None is for
    :math:`(12 / M)^2` each time, at which a median is hardly ever at the wrong end of its grid. Of the rest three
    fifths choose columns, and the gradients between rounds and after the last one share what is left.
    """
    strength = signal_strength(budget, problem.n_rows, problem.relation)
    n_features, n_nonzero = problem.n_features, min(settings.n_nonzero, problem.n_features)
    rounds = _rounds(n_nonzero, n_features, strength)
    n_rounds, n_joining = len(rounds), sum(rounds)
    steps = min(max(strength / (TUNING.strength_per_step * n_nonzero), TUNING.fewest_steps), TUNING.most_steps)
    n_steps = round(steps) if settings.n_steps == "auto" else int(settings.n_steps)
    medians = TargetMedians.at(strength, intercept=problem.intercept, scales_radius=False)
    centred = settings.auto_clip and medians.centred
    schedule, rest = Schedule(budget, ordered=False), 1.0

    def share_of_one(number: int) -> float:
        """The share of the budget for one of so many numbers of a kind that are found out about the data."""
        if settings.clip_share is None:
            return min(max((12.0 / max(strength, 1.0)) ** 2, 0.001), 0.1)
        return settings.clip_share / (3.0 * number)

    def select(name: str, what: str, part: float, count: int) -> None:
        # One of many selections: a range e counts e**2 / 4 of the sum of squared Gaussian parameters.
        schedule.add(name, what, lambda b: ExponentialEvent(2.0 * math.sqrt(part) / b), count)

    def perturb(name: str, what: str, part: float, n_values: int, count: int) -> None:
        distance = n_values * DISTANCE_PER_VALUE
        schedule.add(name, what, lambda b: GaussianEvent(b / math.sqrt(part), distance), count)

    if settings.row_bound is None:
        # The norm of whole rows, for the size of their entries, is one more.
        number = n_rounds + 1
        select("row norm", "the median row norm", share_of_one(number), number)
        rest -= share_of_one(number) * number
    if settings.auto_clip:
        number = centred + n_rounds
        if centred:
            select("middle", "the median of the target", share_of_one(number), 1)
        select("residual", "the median residual of a round", share_of_one(number), n_rounds)
        rest -= share_of_one(number) * number
    if settings.step is None:
        perturb("curvature", "the curvature along one direction", share_of_one(n_rounds), 1, n_rounds)
        rest -= share_of_one(n_rounds) * n_rounds
    # Where all columns join, the last round has nothing to choose.
    n_chosen = n_joining - (rounds[-1] if n_joining == n_features else 0)
    if n_chosen:
        what = f"one of {n_features:,} columns that joins"
        select("columns", what, TUNING.choice_share * rest / n_chosen, n_chosen)
        rest *= 1.0 - TUNING.choice_share
    between = rest * TUNING.between_share * (n_rounds > 1)
    for when, part, count, width in (
        ("between rounds", between, n_rounds - 1, n_joining - rounds[-1]),
        ("after the last round", rest - between, n_steps, n_joining),
    ):
        n_released = problem.n_outputs * (width + problem.intercept)
        if count:
            what = f"a gradient with up to {n_released:,} coordinates {when}"
            perturb(f"gradient {when}", what, part / count, n_released, count)
    return PursuitPlan(problem, settings, schedule.calibrate(), n_nonzero, n_steps, rounds, centred, strength)


def _rounds(n_nonzero: int, n_features: int, strength: float) -> tuple[int, ...]:
    """How many columns join in each round: about as many in all of them."""
    n_joining = min(math.ceil(TUNING.candidates_per_column * n_nonzero), n_features)
    n_rounds = min(max(round(strength / TUNING.strength_per_round), 1), TUNING.most_rounds, n_joining)
    return tuple((n_joining + i) // n_rounds for i in range(n_rounds))


# ---- Plans for gradient descent with hard thresholding.


@dataclass(frozen=True, slots=True)
class HardThresholdPlan(ThresholdPlan):
    """Steps, what is found out about the data first, and the noise; ``peeling`` chooses columns before gradients."""

    peeling: bool

    def gradient_mechanisms(
        self, row_squared: int, constant: int
    ) -> tuple[int, RoundedGaussian | None, GumbelTopK | None]:
        """As :meth:`PursuitPlan.gradient_noise`, and the choice of columns, if any."""
        loss, relation = self.problem.loss, self.problem.relation
        if not self.schedule.private:
            return ONE if loss.labelled else LARGEST_WEIGHT, None, None
        multiplier = self.schedule.multiplier("gradient")
        if not self.peeling:
            return *gradient_noise(loss, row_squared, relation, multiplier), None
        chosen = min(row_squared, self.n_nonzero * ONE * ONE + constant * constant)
        weight_bound, noise = gradient_noise(loss, chosen, relation, multiplier)
        return weight_bound, noise, self._choice(self.n_nonzero, min(ONE, math.isqrt(row_squared) + 1), weight_bound)


def plan_hard_threshold(
    budget: Budget, problem: Problem, settings: ThresholdSettings, *, peeling: bool = False
) -> HardThresholdPlan:
    r"""Plan gradient descent with hard thresholding.

    An infinite epsilon means no noise. Each median and the curvature get a third of ``clip_share``, 0.06 for None, of
    the sum of squared Gaussian parameters, and the steps the rest. One selection of range e counts
    :math:`\pi e^2 / 8`, many :math:`e^2 / 4` each, Gaussian noise of multiplier m :math:`1 / m^2`. These are weights,
    no costs: the schedule finds the common scale that the exact cost allows.

    Noise is added to all coordinates, or by ``peeling`` to those of columns that are chosen privately.
    """
    # Sums of more records could leave 64 bits: partitions check their own rows, and nobody checks the total.
    check_integer(0, MOST_PRIVATE_ROWS, n_rows=problem.n_rows)
    row_bound, n_features = settings.row_bound, problem.n_features
    if row_bound is not None and row_bound < LEAST_ROW_BOUND:
        raise ParameterError("row_bound", row_bound, "at least x_bound / 256", "lower x_bound to what features can be")
    schedule = Schedule(budget, ordered=False)
    n_nonzero = min(settings.n_nonzero, n_features)
    peeling = peeling and n_nonzero < n_features
    if settings.n_steps != "auto":
        n_steps = int(settings.n_steps)
    else:
        n_steps = _descent_steps(budget, problem) if schedule.private else NOISELESS_STEPS
    share = (TUNING.clip_share if settings.clip_share is None else settings.clip_share) / 3.0
    rest = 1.0 - share * ((row_bound is None) + settings.auto_clip + (settings.step is None))
    median_range = math.sqrt(8.0 / math.pi * share)
    if row_bound is None:
        schedule.add("row norm", "the median row norm", lambda b: ExponentialEvent(median_range / b))
    if settings.auto_clip:
        schedule.add("residual", "the median magnitude of the target", lambda b: ExponentialEvent(median_range / b))
    if settings.step is None:
        what, per_curvature = "the curvature along one direction", math.sqrt(1.0 / share)
        schedule.add("curvature", what, lambda b: GaussianEvent(per_curvature * b, DISTANCE_PER_VALUE))
    n_released, chosen = problem.n_outputs * problem.n_columns, 0.0
    if peeling:
        chosen, count = TUNING.peeling_share * rest, n_nonzero * n_steps
        column_range = math.sqrt(4.0 * chosen / count)
        what = f"one of {n_features:,} columns, {n_nonzero:,} times a step"
        schedule.add("columns", what, lambda b: ExponentialEvent(column_range / b), count)
        n_released = problem.n_outputs * (n_nonzero + problem.intercept)
    what, per_step = f"a gradient with {n_released:,} coordinates per step", math.sqrt(n_steps / (rest - chosen))
    schedule.add("gradient", what, lambda b: GaussianEvent(per_step * b, n_released * DISTANCE_PER_VALUE), n_steps)
    plan = HardThresholdPlan(problem, settings, schedule.calibrate(), n_nonzero, n_steps, peeling)
    # A budget whose noise does not fit the lattice for the longest rows there can be is refused now: it must not turn
    # out when a median has been released already.
    plan.gradient_mechanisms(n_features * ONE * ONE, ONE)
    return plan


def _descent_steps(budget: Budget, problem: Problem) -> int:
    r""":math:`T = 4 \sqrt{c\, n \mu / d}` within 4 and 20: a step costs the others noise, and pays if that is small."""
    signal = problem.loss.smoothness * problem.n_records * mu_of_budget(budget) / problem.n_columns
    return round(min(max(4.0 * math.sqrt(signal), 4.0), 20.0))
