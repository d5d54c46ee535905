r"""Plans for the default model: its strategy, and what the privacy filter that pays for it starts with.

The strategy follows from public facts: the numbers of records n and features d, the number k of nonzero coefficients,
and the Gaussian parameter :math:`\mu` of the budget. What counts is :math:`\varphi = n \mu^2 / k`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS
from taciturn.losses import HuberLoss, LogLinkLoss, Loss
from taciturn.methods.descent import DescentRule, rule_for_labels, rule_for_numbers
from taciturn.methods.schedule import Problem
from taciturn.privacy.budget import Budget
from taciturn.privacy.events import Event
from taciturn.privacy.filter import PrivacyFilter
from taciturn.privacy.mechanisms import DISTANCE_PER_VALUE

METHODS = ("auto", "two-phase", "one-shot")
"""Names of the strategies that can be asked for."""

COLUMNS_PER_NONZERO = 5
"""Columns kept by screening per nonzero coefficient where rows have few large entries."""

LEAST_NONZERO = 3
"""A number of nonzero coefficients that is chosen privately is zero or no smaller, unless there are fewer columns."""

MOST_CHOSEN = 500
"""A number of nonzero coefficients that is chosen privately is no larger."""

# Below this phi a selection phase tells less than correlations do.
_LEAST_PHI = 3.0
_LEAST_SCREENED = 20
# The share of the budget for screening, by the number of columns kept per nonzero coefficient.
_KEPT_PER_NONZERO = (1.3, 2.0, 3.0, 5.0)
_SCREENING_SHARES = (0.5, 0.4, 0.3, 0.25)
_ONE_SHOT_SHARE = 0.6
# With so many records times the Gaussian parameter per column a descent on all of them needs no screening before it.
_ENOUGH_PER_COLUMN = 1.5
# Below this many records times the Gaussian parameter, noise hides which of two sizes has the smaller loss.
_LEAST_FOR_SIZES = 150.0
# Below this many records times the Gaussian parameter a constant is all that can be told.
_LEAST_FOR_COLUMNS = 5.0
# Gaussian values per coefficient, the constant's included: two descents of two legs with up to 150 steps each,
# correlations and the centre; and the entries of two Gram matrices and of recalibration.
_MOST_VALUES = 602
_FURTHER_VALUES = 2 * 1501 * 751 + 80
# Noise beyond this could leave the 64 bits of its sums.
_LEAST_MU = 2.0**-16
# Below this many records times the budget's Gaussian parameter fits may be worse than a constant.
_LEAST_INFORMATION = 40.0


@dataclass(frozen=True, slots=True)
class _Tuning:
    """Tuned constants of a fit; those above decide its strategy."""

    # ---- one descent: shares of it
    gram_share: float = 0.05
    first_leg: float = 0.3
    # Steps that public bounds on the curvature may ask for before a Gram matrix is released instead.
    steps_without_gram: float = 120.0
    # A Gram matrix costs n p**2 multiplications, and its eigenvectors p**3.
    most_products: float = 2e10
    most_width: int = 1500
    # The law of the noise in so many weights takes little of the time of a descent.
    most_known_noise: int = 256
    most_width_without_privacy: int = 8191
    # R is a quantile: longer rows add to the curvature too.
    long_rows: float = 2.0
    # The largest curvature of many columns, as a share of what n rows of that length could have: a guess, as if rows
    # were spread evenly over all directions but for so many columns' worth.
    many_columns: int = 200
    steep_columns: float = 20.0
    usual_curvature: float = 0.01
    # The spectral norm of its noise has to be below this share of n R**2.
    largest_noise: float = 0.5
    # Ridge of the preconditioner without noise, as a share of the largest eigenvalue.
    noiseless_ridge: float = 1e-7
    # The median magnitude of a normal variable, and what a fit leaves of the curvature of labels.
    normal_median: float = 0.6745
    fitted_curvature: float = 0.6
    # Grid of residual sizes, in mapped units.
    residual_grid: tuple[float, float] = (2.0**-8, 2.0)
    # Residuals of a first fit are expected to be this share of the target.
    usual_gain: float = 0.7
    # Derivatives of rows that are this much shorter than R are clipped as theirs are.
    short_row: float = 8.0
    most_residual: float = 16.0
    # Steps under a log link reckon with a curvature of so many times that at the mean, where steep directions are those
    # of large means.
    log_link_curvature: float = 2.0
    noiseless_log_link_curvature: float = 4.0
    # Derivatives of skewed targets are measured by a quantile in the tail, which for normal ones is so many medians.
    tail_quantile: float = 0.95
    tail_in_medians: float = 2.9

    # ---- the number of nonzero coefficients: share of the budget, and ratio of neighbouring candidates
    size_share: float = 0.06
    size_ratio: float = 1.5
    # Excess loss per record that a smaller model may have, and half of which the largest pays for its size.
    size_tolerance: float = 0.003
    # What columns have to gain together, in units of the noise of the comparison.
    least_worth: float = 3.0
    # More than half of the columns have to gain this much.
    more_than_half: float = 0.005
    size_clip: float = 0.5
    most_size_clip: float = 4.0
    # Eigenvalues of a Gram matrix below its noise are replaced by the rest of its trace.
    least_rest: float = 0.05
    # Columns whose second moment is this many deviations of its noise above that of a level with this share of the
    # records, or whose weight is this many times what is usual in a model, are chosen before others.
    clear_moment: float = 3.0
    rare_level: float = 0.005
    clear_weight: float = 3.0
    # Of such a weight and the deviations of its second moment the root of the sum of squares has to be this large.
    clear_together: float = 4.0
    # Where they have this share of all second moments, a size that is chosen takes no others.
    clear_trace: float = 0.85

    # ---- shrinkage
    # With less than this many records times the Gaussian parameter the comparison would be noise, and with fewer
    # columns their law could not be told.
    shrinkage_information: float = 400.0
    shrinkage_columns: int = 8
    # Weights are compared at the slope that suits them best; recalibration tells it better afterwards.
    shrinkage_slopes: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    shrinkage_clip: float = 0.5
    # What shrunk weights have to gain per record, in units of losses: in doubt those that were fitted stay.
    least_gain: float = 0.004
    # Steps of expectation maximisation that fit the prior; more values than these are counted in so many bins.
    prior_steps: int = 60
    most_unbinned: int = 4096
    prior_bins: int = 2048

    # ---- recalibration: share of the budget
    recalibration_share: float = 0.05
    # With less than this many records times the Gaussian parameter the step would be noise; of two classes the constant
    # alone is recalibrated down to the second number, for a larger share.
    recalibration_information: float = 100.0
    constant_information: float = 40.0
    constant_share: float = 0.1
    # The slope that margins of labels need, by records times the Gaussian parameter per column, without one: short
    # descents end early, and tight clips of derivatives leave margins that are too long.
    slopes_per_column: tuple[float, ...] = (0.3, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
    expected_slopes: tuple[float, ...] = (1.3, 1.3, 1.05, 0.8, 0.68, 0.58, 0.56, 0.74, 0.93, 1.0)
    # Deviations of the logarithm of that slope, and of the constant of labels; grids reach four of them.
    label_slope_prior: float = 0.35
    label_constant_prior: float = 0.4
    prior_reach: float = 4.0
    prior_points: int = 81
    # Several classes: bound on derivatives by the logarithm of the slope, and its longest step.
    slope_derivative: float = 4.0
    longest_slope_step: float = 0.7
    least_slope_curvature: float = 0.02
    margin_quantile_share: float = 0.15
    # Margins are clipped at this many times the quantile: in sparse designs most of them may be zero.
    margin_quantile: float = 0.9
    margin_reach: float = 1.5
    margin_grid: tuple[float, float] = (2.0**-10, 64.0)
    # What slope and constant are expected to be off by, the constant in units of the residual size.
    slope_prior: float = 0.3
    constant_prior: float = 0.3
    least_slope: float = 0.1
    most_slope: float = 8.0
    # Residuals are clipped at 1.5 to 8 times their size, and beyond that only as noise falls below sampling error: an
    # open clip is needed where targets are skewed, and its noise is that of the slope.
    least_room: float = 1.5
    usual_room: float = 8.0
    # Descents that were shorter than this leave weights that are too short in proportion.
    short_time: float = 3.0
    least_square: float = 0.01
    # Under a log link: the least room of derivatives, and the largest curvature in units of that at the mean.
    least_skewed_room: float = 4.0
    most_curvature: float = 4.0
    least_mean_curvature: float = 0.2
    least_margin_bins: int = 12
    most_margin_bins: int = 40
    # A bin holds other numbers of records than its neighbours beyond this many deviations of the noise.
    clear_bin: float = 3.0

    # ---- releases before the descents: shares of the budget
    norm_share: float = 0.02
    weight_share: float = 0.01
    # Rows of a person that count, where they do: a quantile over persons.
    rows_share: float = 0.007
    rows_quantile: float = 0.9
    most_rows: float = 2.0**16
    clipped_share: float = 0.01
    centre_norm_share: float = 0.015
    centre_share: float = 0.04
    # Noisy means are used where they are this many standard deviations of their noise away from zero.
    clear_mean: float = 2.0
    clear_rate: float = 2.0
    clear_column: float = 2.5
    # Columns are centred with this many records times the Gaussian parameter per root of their number.
    enough_to_centre: float = 15.0
    most_centred: int = 1 << 19
    # Lower ends of grids.
    least_target: float = 2.0**-8
    least_kept: float = 0.02
    # Residuals are no smaller than this share of the target's range is expected to be.
    least_size: float = 0.04
    # What the median magnitude of a target between -1 and 1 is expected to be.
    typical_size: float = 0.2
    # A few columns of truth values may well be all true in most records.
    enough_columns: int = 5
    # Derivatives of screening: half the size of labels or of the target keeps most of the signal, and half the noise.
    screening_clip: float = 0.5
    # Entries clipped at half their root mean square: less noise, and hardly less correlation.
    entry_clip: float = 0.5
    # Gumbel noise selects k columns where it is smaller than Gaussian noise on all sums by this factor.
    gumbel_deviation: float = math.pi / math.sqrt(6.0)
    gumbel_margin: float = 1.1
    # Where rows have few large entries, Gaussian noise does not grow with the number of columns kept: more of them are.
    few_entries: float = 0.25
    share_of_few: float = 0.35
    share_of_many: float = 0.5

    # ---- tall tables of two classes: shares of a Gram and an information matrix, records times mu per coefficient, how
    # clear of noise the Gram matrix is on average, steps before and after the information matrix, and what the former
    # cost of what is left; chosen beside the descent on simulated tables, covtype and kddcup99
    tall_gram_share: float = 0.05
    enough_for_tall: float = 1000.0
    clear_of_tall: float = 30.0
    first_steps: int = 3
    last_steps: int = 2
    first_steps_share: float = 0.2
    # What the last steps reckon with besides the information, as a share of the largest curvature of labels.
    more_curvature: float = 0.01
    # The information of labels that are not nearly certain, over the largest there can be.
    least_uncertain: float = 0.3
    # How large log-odds usually are, for rows of the typical length.
    usual_log_odds: float = 2.0

    # ---- phases: shares of the selection phase in what is left for both
    selection_share: float = 0.5
    dense_selection_share: float = 0.6


TUNING = _Tuning()


@dataclass(frozen=True, slots=True)
class Strategy:
    r"""How columns are chosen, and a sentence with the public facts that decided.

    The method "dense" is one descent on all columns, after which some may be left out; "two-phase" has a selection
    phase on all (screened) columns before the estimation phase on those chosen; "one-shot" has the latter alone, on
    columns of large noisy correlations; "constant" has no columns at all. ``n_nonzero`` is a guess until it is chosen,
    ``n_screened`` the columns left by screening (None where all are kept), both count variables where these are chosen
    as a whole, and ``strength`` is :math:`n \mu^2 / k`.
    """

    method: str
    reason: str
    n_nonzero: int
    n_screened: int | None
    screening_share: float
    strength: float


@dataclass(frozen=True, slots=True)
class SparsePlan:
    """Public facts of a fit of the default model, its strategy, and the budget for everything together.

    With an intercept columns are centred, and a constant is fitted. The Huber loss of a regression gets its
    threshold from a clip. ``row_bound`` is the public L2 norm of a row over all features in scaled units (None: a
    private median), ``residual_clip`` the public size of residuals in mapped units (None: the private median
    magnitude of the target). ``huber``: residuals beyond their size count as if they were that large, at every
    budget. ``chooses_n_nonzero``: the number of nonzero coefficients is chosen privately, and the strategy's is a
    guess. With fewer than ``enough_records`` a fit may be worse than a constant. ``columns`` are those that the
    caller fixed, in increasing order (None: all may be used). ``variables`` are the numbers of the variables, from 0,
    that features are of and that are chosen as a whole (None: each feature by itself). Records are ``weighted`` or
    ``exposed``: the sum of their weights stands for their number as soon as it is released, and means are those per
    exposure. ``counts_rows``: the weight of a person grows with the number of its rows, up to a released number.
    ``few_passes``: records of two classes are so many per column that a few Newton steps fit them.
    """

    ordered: ClassVar[bool] = True
    arithmetic: ClassVar[str] = "exact"

    budget: Budget
    problem: Problem
    row_bound: float | None
    residual_clip: float | None
    huber: bool
    strategy: Strategy
    chooses_n_nonzero: bool
    enough_records: int
    columns: tuple[int, ...] | None = None
    weighted: bool = False
    exposed: bool = False
    variables: tuple[int, ...] | None = None
    counts_rows: bool = False
    few_passes: bool = False

    @property
    def counted(self) -> str:
        """What sizes count, in words."""
        return "nonzero coefficients" if self.variables is None else "variables"

    @property
    def regression(self) -> bool:
        """Whether targets are numbers."""
        return not self.problem.loss.labelled

    @property
    def log_link(self) -> bool:
        """Whether margins are logarithms of means."""
        return self.problem.loss.log_link

    def counting(self, n_records: int) -> SparsePlan:
        """The same plan for another number of records."""
        return replace(self, problem=replace(self.problem, n_rows=n_records))

    def loss_at(self, derivative_bound: float, unit: float = 1.0) -> Loss:
        """The loss of a record whose derivative is clipped to ``derivative_bound``; ``unit`` is a mean of targets."""
        loss = self.problem.loss
        if isinstance(loss, LogLinkLoss):
            return loss.in_units_of(unit)
        return HuberLoss(derivative_bound) if self.regression else loss

    def rule(self, mu: float, width: int, *, selects: bool = False) -> DescentRule:
        """Clips and time of a descent that spends a Gaussian parameter on so many columns, or selects some of them."""
        if self.regression:
            return rule_for_numbers(self.problem.n_records, mu, width, skewed=self.log_link)
        return rule_for_labels(self.problem.n_records, mu, width, selects=selects)

    @property
    def cost(self) -> Event:
        """What everything that is released costs together."""
        return self.open_filter().event

    def open_filter(self, distance: float = 0.0) -> PrivacyFilter:
        """The whole budget, to be spent along the way; ``distance`` is for samplers of releases besides the fit's."""
        return _open_filter(self.budget, self.problem, distance)


def plan_sparse(
    budget: Budget,
    problem: Problem,
    *,
    n_nonzero: int | None,
    method: str,
    row_bound: float | None,
    residual_clip: float | None,
    huber: bool = False,
    columns: tuple[int, ...] | None = None,
    weighted: bool = False,
    exposed: bool = False,
    variables: tuple[int, ...] | None = None,
    counts_rows: bool = False,
) -> SparsePlan:
    """Plan a fit of the default model by one of :data:`METHODS`; other parameters are those of :class:`SparsePlan`.

    An infinite epsilon means no noise. An ``n_nonzero`` of None is chosen privately; it counts ``variables``, if they
    are given. With ``columns`` the model has these, whatever ``n_nonzero`` says. A ``row_bound`` beyond what a row can
    have is lowered.
    """
    # Sums have room for so many, and whether more are there must not be noticed on the way.
    n_rows, n_features = check_integer(0, MOST_PRIVATE_ROWS, n_rows=problem.n_rows), problem.n_features
    mu = _open_filter(budget, problem).mu
    if columns is not None:
        variables = None
    width = n_features if columns is None else len(columns)
    n_choices = width if variables is None else max(variables) + 1
    # Of three columns or fewer all are kept, and where a descent on all tells more than a comparison of sizes.
    hidden = method == "auto" and _ENOUGH_PER_COLUMN * width <= n_rows * mu < _LEAST_FOR_SIZES
    chooses = n_nonzero is None and columns is None and n_choices > LEAST_NONZERO and not hidden
    if chooses:
        k = min(_guess_n_nonzero(n_rows, n_features, mu), max(1, n_choices // 2))
    else:
        k = n_choices if n_nonzero is None or columns is not None else min(n_nonzero, n_choices)
    strategy = _choose_strategy(method, n_rows, width, n_choices, k, mu, n_nonzero_known=not chooses)
    # What weights add up to is not known before.
    usual = method == "auto" and strategy.method == "dense" and not (chooses or weighted) and row_bound is None
    two_classes = problem.loss.labelled and problem.n_outputs == 1
    return SparsePlan(
        budget=budget if math.isfinite(budget.epsilon) else Budget(math.inf, 0.0),
        problem=problem,
        row_bound=None if row_bound is None else min(row_bound, math.sqrt(n_features)),
        residual_clip=residual_clip,
        huber=huber,
        strategy=strategy,
        chooses_n_nonzero=chooses,
        enough_records=math.ceil(_LEAST_INFORMATION / mu),
        columns=columns,
        weighted=weighted,
        counts_rows=counts_rows,
        exposed=exposed,
        variables=variables,
        few_passes=usual and two_classes and _is_tall(n_rows, width + problem.intercept, mu),
    )


def _is_tall(n_rows: int, width: int, mu: float) -> bool:
    """Whether noise is next to nothing, by records times mu per coefficient and in a Gram matrix that is not wide."""
    if math.isinf(mu) or width > TUNING.most_width:
        return False
    noise = math.sqrt(2.0 * width) / (mu * math.sqrt(TUNING.tall_gram_share))
    return n_rows * mu >= TUNING.enough_for_tall * width and n_rows >= TUNING.clear_of_tall * noise * width


def _open_filter(budget: Budget, problem: Problem, distance: float = 0.0) -> PrivacyFilter:
    """The budget to spend, refused where noise would not fit its sums."""
    n_values = _MOST_VALUES * problem.n_outputs * (problem.n_features + 1) + _FURTHER_VALUES
    whole = PrivacyFilter(budget, n_values * DISTANCE_PER_VALUE + distance)
    if whole.mu < _LEAST_MU:
        expected = "a budget that sums in 64 bits can meet"
        raise ParameterError("epsilon", budget.epsilon, expected, "raise epsilon or delta")
    return whole


def _guess_n_nonzero(n_rows: int, n_features: int, mu: float) -> int:
    """A guess of the number of nonzero coefficients until it is chosen."""
    largest = max(1, min(n_features // 2, 150))
    return int(min(max(n_rows * mu / 25.0, 5.0), largest)) if math.isfinite(mu) else largest


def _choose_strategy(
    method: str, n_rows: int, n_features: int, n_choices: int, k: int, mu: float, *, n_nonzero_known: bool
) -> Strategy:
    """The strategy, from public facts; if k is a guess, a descent on many columns tells more.

    Of ``n_choices`` k are kept: of the features, or of the variables that these are of.
    """
    n_columns = math.ceil(k * n_features / n_choices)
    strength, signal = n_rows * mu * mu / n_columns, n_rows * mu
    if method == "auto" and signal < _LEAST_FOR_COLUMNS:
        reason = f"n mu = {signal:.3g} with {n_rows:,} records and mu = {mu:.3g}: too little for any column"
        return Strategy("constant", reason, 0, None, 0.0, strength)
    if k >= n_choices:
        return Strategy("dense", "every feature may stay, so none is chosen", n_choices, None, 0.0, strength)
    facts = f"n mu^2 / k = {strength:.3g} with {n_rows:,} records, mu = {mu:.3g} and k = {n_columns:,}"
    per_column = signal / n_features
    one_shot = method == "one-shot" or (
        method == "auto" and strength < _LEAST_PHI and n_nonzero_known and per_column < _ENOUGH_PER_COLUMN
    )
    if one_shot:
        reason = f"{facts}: too little for a selection phase" if method == "auto" else "chosen by name"
        return Strategy("one-shot", reason, k, k, _ONE_SHOT_SHARE, strength)
    wanted = k * min(max(math.sqrt(strength) / 2.5, 1.5), 5.0)
    n_screened = max(_LEAST_SCREENED, math.ceil(wanted))
    if method != "auto":
        reason = "chosen by name"
    elif n_nonzero_known:
        reason = f"{facts}: enough for a selection phase"
    else:
        reason = "only a selection phase tells how many features there should be"
    if n_choices <= 3 * n_screened or per_column >= _ENOUGH_PER_COLUMN:
        return Strategy("two-phase", reason, k, None, 0.0, strength)
    share = float(np.interp(n_screened / k, _KEPT_PER_NONZERO, _SCREENING_SHARES))
    return Strategy("two-phase", reason, k, n_screened, share, strength)
