"""Plans for fits of the default model with standard errors: which records are read for what, and what each part costs.

Columns that the data choose need records of their own. One half of the records chooses columns; the other half
estimates their coefficients. Neighbours differ in one of the halves, so that each may spend the whole budget. Columns
that the caller fixed are known without the data, and all records estimate.

Estimation releases Gram matrices for coordinates, an information matrix, gradients, and the matrix of scores, the
middle of the sandwich. Their shares of the budget follow from public facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.methods.schedule import Problem
from taciturn.methods.sparse.plan import LEAST_NONZERO, SparsePlan, plan_sparse
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event, ParallelEvent
from taciturn.privacy.filter import PrivacyFilter
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE

MOST_COLUMNS = 500
"""Most columns of a model with standard errors: matrices of more are noise, and cost too much time."""


@dataclass(frozen=True, slots=True)
class _Tuning:
    """Tuned constants of a fit; ``research/coverage`` has the study that chose them."""

    # ---- shares of the budget: a quantile, the start of the constant, the matrix of scores, the gradients
    quantile_share: float = 0.007
    start_share: float = 0.006
    score_share: float = 0.08
    large_score_share: float = 0.25
    enough_for_scores: float = 3000.0
    gram_shares: tuple[float, float] = (0.012, 0.05)
    information_shares: tuple[float, float] = (0.04, 0.30)
    # Of what is left for gradients, by records times the Gaussian parameter per coefficient.
    many_gradients: tuple[float, ...] = (0.05, 0.09, 0.16, 0.70)
    some_gradients: tuple[float, ...] = (0.08, 0.17, 0.75)
    few_gradients: tuple[float, ...] = (0.25, 0.75)
    gradients_at_once: tuple[float, ...] = (0.06, 0.24, 0.70)
    gradients_of_means: tuple[float, ...] = (0.04, 0.07, 0.19, 0.70)
    # Of labels, which strong columns take more steps to.
    gradients_of_labels: tuple[float, ...] = (0.04, 0.06, 0.10, 0.15, 0.65)
    enough_for_many: float = 300.0
    enough_for_some: float = 100.0

    # ---- whitening: how far a round is to tell directions apart, and rounds by that
    wanted_gain: float = 8.0
    enough_at_once: float = 60.0
    enough_for_two: float = 25.0
    enough_for_three: float = 2.0
    gain_per_room: float = 8.0
    most_room: float = 3.0
    most_stretch: float = 1.25
    longest_stretch: float = 2.0
    stretch_doubt: float = 2.0

    # ---- rare categories of labels: share of the budget, what rows keep along them, and from which factor on it pays
    rare_share: float = 0.03
    least_rare: float = 0.2
    most_rare: float = 2.5
    hardly_rare: float = 0.8

    # ---- long tails of columns of labels: share of the budget, lengths in root mean squares, and for how many of its
    # entries a record counts in full
    tail_share: float = 0.02
    tail_levels: tuple[float, ...] = (3.0, 4.5, 6.75, 10.125)
    tail_entries: float = 2.0
    # Where a tail ends: the share of rows beyond; what tells it from a rare category; what is left of it, and at least.
    tail_rank: float = 0.005
    steep_tail: float = 0.25
    tail_reach: float = 3.0
    least_tail: float = 0.45
    # Then the information matrix has a larger share, its bound a smaller trace, and clips open further.
    tail_information: float = 0.25
    tail_trace_room: float = 1.6
    tail_noise: float = 2.0

    # ---- coordinates of labels with the same information everywhere: share of the budget, factors of lengths, and the
    # largest change of margins in the step that the early information matrix is released for
    # (taciturn_research/benchmarks/study_label_coordinates.md)
    early_information: float = 0.04
    least_equal: float = 0.5
    most_equal: float = 2.0
    longest_early_step: float = 1.0
    # A Gram matrix within this many deviations of its noise along a direction, which no row may have.
    null_doubt: float = 2.0

    # ---- the information matrix: how clear of its noise it is to be, and the trace of a record's term
    clarity: float = 4.0
    label_clarity: float = 12.0
    trace_per_column: float = 1.45
    label_trace_per_column: float = 2.5
    mean_trace_per_column: float = 2.0
    most_trace_room: float = 3.0

    # ---- clips
    row_quantile: float = 0.8
    large_row_quantile: float = 0.9
    # Of labels, where a rare category or a long tail is in few rows: a lower one would weigh down what these tell.
    label_row_quantile: float = 0.9
    whitening_quantile: float = 0.7
    trace_quantile: float = 0.95
    trace_room: float = 1.3
    enough_for_large_rows: float = 150.0
    least_row_room: float = 1.2
    enough_for_long_rows: float = 500.0
    most_row_room: float = 1.5
    residual_quantile: float = 0.98
    least_residual_quantile: float = 0.8
    ranks: float = 10.0
    # A clip is no smaller than this many deviations of normal residuals.
    usual_reach: float = 2.63
    # Clips open until their noise is this share of the sampling variance.
    noise_share: float = 0.2
    score_noise: float = 0.15
    least_residual_room: float = 1.3
    # A clip opens beyond the first limit, up to the second, only if the matrix of scores stays sharp.
    usual_residual_room: float = 2.0
    most_residual_room: float = 3.0
    # Without a matrix of scores.
    most_open_room: float = 4.0
    sharp_scores: float = 0.02
    least_score_room: float = 0.65
    most_score_room: float = 2.5
    grid_ratio: float = 1.06
    length_grid: tuple[float, float] = (0.02, 20.0)
    residual_grid: tuple[float, float] = (2.0**-10, 2.0)
    trace_grid: tuple[float, float] = (1e-3, 20.0)

    # ---- directions that are not identified: a second information matrix, and sharpenings of them
    second_share: float = 0.1
    second_stretch: float = 1.5
    sharpenings: int = 3
    sharpening_share: float = 0.015
    margin_room: float = 1.3
    margin_grid: tuple[float, float] = (1e-6, 4.0)
    # An uncertainty below this, over the root of the number of records, is small beside every standard error.
    sharp: float = 0.02

    # ---- estimability
    most_allowance: float = 0.5
    least_degrees: float = 3.0
    # Information along a coefficient of numbers over the noise of the matrix, where rare categories are not shortened;
    # and what public facts have to say of it before.
    least_clarity: float = 1.5
    least_clear: float = 1.5
    # The same of labels, and the least threshold of their information in deviations of its noise.
    least_label_clarity: float = 0.7
    label_threshold: float = 4.0
    largest_coefficients: float = 1.0
    largest_log_odds: float = 3.0
    # Around the start of labels, while noise hides more.
    usual_log_odds: float = 2.0
    # Margins of labels may move by this much when what is not identified is left out, and in the last step.
    most_left_out: float = 0.25
    longest_last_step: float = 0.9
    longest_curved_step: float = 1.3
    # Margins of Huber's loss may move by this share of its threshold in the last step.
    longest_bent_step: float = 0.5

    # ---- log links: the share of derivatives that are clipped may be this over the root of the number of records, so
    # that what it moves is small beside standard errors; what tells it, by noise of this part of it
    most_clipped: float = 0.4
    clipped_noise: float = 0.33
    clipped_shares: tuple[float, float] = (0.003, 0.05)
    least_link_room: float = 2.2
    # Without a clip derivatives are up to this many times those at the mean.
    open_room: float = 1.3
    # The largest change of a margin in a step without noise.
    longest_noiseless_step: float = 1.0
    # ---- tall tables without standard errors: records times the Gaussian parameter per coefficient, and clarity
    enough_for_tall: float = 1000.0
    clear_of_tall: float = 3.0

    # ---- without noise
    noiseless_steps: int = 200
    least_step: float = 1e-10
    least_eigenvalue: float = 1e-9


TUNING = _Tuning()


class HiddenByNoiseError(ParameterError):
    """Public facts say that noise would hide what intervals need."""

    def advised(self, advice: str) -> HiddenByNoiseError:
        """The same refusal with what would help, in place of what often does."""
        parameter, value, expected, _ = self._arguments
        remedy = "do one of these, or fit without it; nothing was spent"
        return HiddenByNoiseError(parameter, value, expected, f"{advice}; {remedy}")


@dataclass(frozen=True, slots=True)
class Allotment:
    """Shares of the budget for each release of an estimation, and what they can tell, from public facts.

    ``last_gram`` is for that of labels, in the final coordinates. ``room`` bounds the squared length of a row in a Gram
    matrix in units of its clip, ``trace_room`` the same in the information matrix. ``gain`` is how far a round of
    whitening tells directions apart. ``clear`` is how far the information matrix is above its noise, at least one if
    any interval is to exist. ``at_once``: one round tells enough directions apart, so that few passes do.
    """

    rounds: int
    gram: float
    last_gram: float
    room: float
    information: float
    trace_room: float
    gradients: tuple[float, ...]
    scores: float
    gain: float
    clear: float
    clipped: float = 0.0
    at_once: bool = False


def allot(
    n_records: int,
    width: int,
    n_outputs: int,
    mu: float,
    relation: str,
    *,
    labels: bool,
    errors: bool = True,
    log_link: bool = False,
) -> Allotment:
    """The shares for so many records and coefficients of one output.

    ``labels``: information depends on the margin, as it does under a log link too.
    """
    t, size = TUNING, width * n_outputs
    replaces = relation == "replace-one"
    # Replacing a record moves a vector by twice its norm, and a sum of positive semidefinite matrices by the root of 2.
    of_matrices, of_vectors = n_records * mu / (math.sqrt(2.0) if replaces else 1.0), n_records * mu / (1.0 + replaces)
    need = 1.2 * width * math.sqrt(2.0 * width) / of_matrices
    gram = _within((t.wanted_gain * need) ** 2, *t.gram_shares)
    gain = math.sqrt(gram) / need
    rounds = 2 if gain > t.enough_for_two else 3 if gain > t.enough_for_three else 1
    per_column = t.label_trace_per_column * n_outputs if labels else t.trace_per_column
    per_column = t.mean_trace_per_column if log_link else per_column
    noise = per_column * width * (math.sqrt(2.0 * size) + 1.0) / of_matrices
    wanted = t.label_clarity if labels else t.clarity
    trace_room = _within(0.35 / (wanted * noise), 1.0, t.most_trace_room)
    information = _within((wanted * trace_room * noise) ** 2, *t.information_shares)
    per_coefficient = of_vectors / size
    at_once = not errors and not labels and gain > t.enough_at_once
    if at_once:
        # Two quantiles of norms, and one of residuals.
        rounds, parts = 1, t.gradients_at_once
    elif labels:
        parts = t.gradients_of_means if log_link else t.gradients_of_labels
    elif per_coefficient >= t.enough_for_many:
        parts = t.many_gradients
    else:
        parts = t.some_gradients if per_coefficient >= t.enough_for_some else t.few_gradients
    two_looks = labels and not log_link
    n_quantiles = 3 if at_once else rounds + 1 + (1 + two_looks + log_link * len(parts) if labels else len(parts))
    last_gram = max(gram, t.rare_share) if labels else 0.0
    # Where gradients are clear of their noise, errors of errors are what is left to lower.
    scores = t.large_score_share if per_coefficient >= t.enough_for_scores else t.score_share
    scores *= errors
    rest = 1.0 - gram * rounds - last_gram - t.rare_share * labels - information - scores
    rest -= (t.tail_share + t.early_information) * two_looks
    rest -= t.quantile_share * n_quantiles + t.start_share
    clipped = 0.0
    if log_link:
        noise_share = t.clipped_noise * t.most_clipped * math.sqrt(n_records)
        clipped = _within((1.0 / (mu * noise_share)) ** 2, *t.clipped_shares)
        rest -= clipped
    return Allotment(
        rounds, gram, last_gram, _within(gain / t.gain_per_room, 1.0, t.most_room), information, trace_room,
        tuple(rest * part for part in parts), scores, gain, math.sqrt(information) / (trace_room * noise), clipped,
        at_once,
    )  # fmt: skip


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@dataclass(frozen=True, slots=True)
class InferencePlan:
    """Public facts of a fit with standard errors, whose coefficients ``n_step_rows`` records estimate.

    With a ``split`` the other half of the records chooses the columns, by the plan ``start``; without one they are all
    of those that the caller fixed, and of the start only the public facts are used. Without ``errors`` there is no
    matrix of scores, and gradients have its share: the estimate of tall tables that nobody asked intervals of.
    """

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"

    start: SparsePlan
    split: bool
    n_step_rows: int
    errors: bool = True

    @property
    def budget(self) -> Budget:
        """What everything together may cost."""
        return self.start.budget

    @property
    def n_outputs(self) -> int:
        """Rows of coefficients that are estimated: one, or one less than there are classes."""
        n_outputs = self.start.problem.n_outputs
        return n_outputs - 1 if n_outputs > 1 else 1

    @property
    def intercept(self) -> bool:
        """Whether there is one."""
        return self.start.problem.intercept

    @property
    def conditions(self) -> str:
        """What the coverage of intervals rests on, besides many records; the guarantee of privacy does not."""
        if self.start.log_link:
            return (
                "records are independent, derivatives have mean zero given the row, and coefficients of columns in "
                f"[-1, 1] have a norm of at most {TUNING.largest_log_odds:g}"
            )
        largest = TUNING.largest_coefficients if self.start.regression else TUNING.largest_log_odds
        tails = ", errors are symmetric or do not depend on the row" if self.start.regression else ""
        return (
            f"records are independent, derivatives have mean zero given the row{tails}, and coefficients of columns in "
            f"[-1, 1] have a norm of at most {largest:g}{' of the half range of y' if self.start.regression else ''}"
        )

    @property
    def cost(self) -> Event:
        """What everything costs together: one filter, since a record is in one half and halves cost the same."""
        first, second = (budget.event for budget in self.open_filters())
        return first if first == second else ParallelEvent((first, second))

    def allot(self, n_columns: int, mu: float) -> Allotment:
        """Shares of the budget for an estimation of so many columns."""
        problem = self.start.problem
        width = n_columns + problem.intercept
        log_link = self.start.log_link
        return allot(
            self.n_step_rows, width, self.n_outputs, mu, problem.relation,
            labels=log_link or not self.start.regression, errors=self.errors, log_link=log_link,
        )  # fmt: skip

    def open_filters(self) -> tuple[PrivacyFilter, PrivacyFilter]:
        """What the choice of columns and their estimation draw on: a whole budget each."""
        problem = self.start.problem
        size = (min(problem.n_features, MOST_COLUMNS) + problem.intercept) * self.n_outputs
        # Three rounds and four further matrices at most, five gradients, three sharpenings, and a start.
        values = 7 * size * (size + 1) // 2 + 3 * size * size + 5 * size + problem.n_outputs + 1 + self.start.log_link
        values += self.start.weighted + self.start.exposed
        if not self.start.regression:
            # Counts of long rows, a gradient more, and an early information matrix.
            values += (len(TUNING.tail_levels) + 1) * size + size * (size + 1) // 2
        # Halves announce the same distance, so that they cost the same.
        first, second = (self.start.open_filter(values * DISTANCE_PER_VALUE) for _ in range(2))
        return first, second


def plan_inference(
    budget: Budget,
    problem: Problem,
    *,
    n_nonzero: int | None,
    columns: tuple[int, ...] | None,
    variables: tuple[int, ...] | None = None,
    **settings: Any,
) -> InferencePlan:
    """Plan a fit with standard errors; :func:`~taciturn.methods.sparse.plan.plan_sparse` has the same parameters.

    Raises ParameterError where public facts say that no interval would exist.
    """
    n_rows, n_features = problem.n_records, problem.n_features
    if columns is not None:
        width = widest = len(columns)
        fixed = True
    else:
        sizes = np.ones(n_features, dtype=np.int64) if variables is None else np.sort(np.bincount(variables))[::-1]
        k = min(LEAST_NONZERO if n_nonzero is None else n_nonzero, sizes.size)
        # What the largest variables need, and what to expect.
        widest, width = int(sizes[:k].sum()), math.ceil(k * n_features / sizes.size)
        fixed = k == sizes.size and (n_nonzero is not None or sizes.size <= LEAST_NONZERO)
    if widest > MOST_COLUMNS:
        raise ParameterError(
            "inference", True, f"at most {MOST_COLUMNS} columns (got {widest:,})", "give fewer columns, or n_nonzero"
        )
    if not fixed and n_rows < 2:
        raise ParameterError(
            "inference", True, f"at least two records to split (got n_samples={n_rows})", "fix columns or add records"
        )
    n_first = n_rows if fixed else n_rows // 2
    start = plan_sparse(
        budget, replace(problem, n_rows=n_first), n_nonzero=n_nonzero, columns=columns, variables=variables, **settings
    )
    plan = InferencePlan(start, not fixed, n_rows if fixed else n_rows - n_first)
    _refuse_what_cannot_be_told(plan, width)
    return plan


def plan_tall(start: SparsePlan) -> InferencePlan | None:
    """The plan of a regression in whitened coordinates, without standard errors; None where a descent is better.

    A descent stops before it has fitted directions of little curvature, whatever the budget, and is shrunk by that:
    good for predictions from few records, and a bias from many. Public facts decide: records times the Gaussian
    parameter per coefficient, and how clear the information matrix is of its noise.
    """
    n_columns = start.problem.n_features if start.columns is None else len(start.columns)
    usual = start.regression and not start.huber and start.residual_clip is None and start.row_bound is None
    if not usual or start.strategy.method != "dense" or start.chooses_n_nonzero or n_columns > MOST_COLUMNS:
        return None
    plan = InferencePlan(start, split=False, n_step_rows=start.problem.n_records, errors=False)
    mu = plan.open_filters()[1].mu
    if not math.isfinite(mu) or plan.allot(n_columns, mu).clear < TUNING.clear_of_tall:
        return None
    width = n_columns + start.problem.intercept
    return plan if start.problem.n_records * mu >= TUNING.enough_for_tall * width else None


def _refuse_what_cannot_be_told(plan: InferencePlan, n_columns: int) -> None:
    """Raise ParameterError where noise would hide the information matrix, by public facts."""
    if not math.isfinite(plan.budget.epsilon):
        return
    mu = plan.open_filters()[1].mu
    # Huber's loss shares the information matrix in two.
    clear = plan.allot(n_columns, mu).clear * (math.sqrt(0.5) if plan.start.huber else 1.0)
    if clear >= TUNING.least_clear:
        return
    n_records = (2 if plan.split else 1) * math.ceil(plan.n_step_rows * TUNING.least_clear / clear)
    step, width = 10 ** max(math.floor(math.log10(n_records)) - 1, 0), n_columns + plan.start.problem.intercept
    raise HiddenByNoiseError(
        "inference",
        True,
        f"about {math.ceil(n_records / step) * step:,} records for {width} coefficient{'s' * (width > 1)} at this "
        "budget",
        "give fewer columns, raise epsilon, add records, or fit without it; nothing was spent",
    )
