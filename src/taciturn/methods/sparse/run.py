"""The default model: columns chosen, coefficients estimated, probabilities recalibrated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh
from scipy.special import erf, expit, softmax

from taciturn.core.rng import Stream
from taciturn.core.validation import ONE, BoolArray, FloatArray, IndexArray, IntArray
from taciturn.engines.interface import RowsCounted, Source
from taciturn.losses import LogLinkLoss
from taciturn.methods import sums as tasks
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.descent import (
    LEAST_CLIP,
    LEAST_SKEWED_CLIP,
    MOST_STEPS,
    Constraint,
    Damping,
    DescentRule,
    GradientDescent,
    LinearDescent,
    ShrinkingStep,
    WeightNoise,
    all_threads_if_large,
    columns_by_weight,
    heaviest_columns,
    one_thread,
    step_rule,
)
from taciturn.methods.diagnostics import Diagnosis, diagnose_mean, diagnose_shares
from taciturn.methods.inference.algebra import NormalDesign, Prior, noise_norm
from taciturn.methods.releases import Ceiling, Question, Releases, list_spends
from taciturn.methods.sparse.plan import COLUMNS_PER_NONZERO, LEAST_NONZERO, MOST_CHOSEN, TUNING, SparsePlan
from taciturn.privacy.claim import Release
from taciturn.privacy.filter import PrivacyFilter

# ---- One descent of the default model: jointly clipped gradients on some columns, preconditioned where that pays.
# The plan's rule (:mod:`~taciturn.methods.descent`) has the clips and the time. Steps are as long as the curvature
# allows, which n R**2 bounds without a look at the data; where that would take too many steps, a noisy Gram matrix is
# released and steps are taken in its metric. In a regression the residual size is measured again on the way, since
# residuals of a good model are smaller than the target, and clips follow it.


def least_share(n_rows: int, mu: float, wanted: float, low: float, high: float) -> float:
    """A share of the budget that is the larger, the less there is: ``(wanted / n mu)**2`` within two ends."""
    return min(max((wanted / (n_rows * mu)) ** 2, low), high)


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """A released Gram matrix of the columns and the constant, scaled units, and the deviation on its diagonal."""

    matrix: FloatArray
    deviation: float

    @property
    def noise(self) -> float:
        """About the spectral norm of the noise."""
        return self.deviation * math.sqrt(2.0 * len(self.matrix))


@dataclass(frozen=True, slots=True, eq=False)
class ColumnModel:
    """Columns that are still in (None for all), where they are centred, their weights and margins of the constant.

    ``target_mean`` is taken from a numeric target, in lattice units. ``size`` is how large residuals are, 1 for labels;
    ``unit`` is a mean of the target, in units of which derivatives are under a log link. ``gram`` was released for
    these columns; ``noise`` is the law of the errors of weights and constants, the latter as a last column.
    """

    columns: IndexArray | None
    centre: FloatArray | None
    weights: FloatArray
    constants: FloatArray
    target_mean: int = 0
    size: float = 1.0
    gram: Gram | None = None
    n_steps: int = 0
    noise: WeightNoise | None = None
    unit: float = 1.0

    @property
    def n_columns(self) -> int:
        """How many columns are in."""
        return int(self.weights.shape[1])

    def coefficients(self, constant: int) -> FloatArray:
        """The weights, and last that of a constant column with this entry in lattice units, if it is not zero."""
        return np.column_stack((self.weights, self.constants / (constant / ONE))) if constant else self.weights

    def keep(self, places: IndexArray, weights: FloatArray | None = None) -> ColumnModel:
        """The same with some of the columns alone, in increasing order, at weights that are theirs or given."""
        return replace(
            self,
            columns=places if self.columns is None else self.columns[places],
            centre=None if self.centre is None else self.centre[places],
            weights=self.weights[:, places] if weights is None else weights,
            gram=None,
            noise=None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Curvature:
    """The curvature of a loss along ``directions``, orthonormal columns (None: even, for all that is known).

    ``largest`` is that after preconditioning by ``scales``, and ``expected`` what clips leave of it near the end.
    ``unclear``, from 0 to 1, are shares of noise in what is known of a direction.
    """

    largest: float
    expected: FloatArray
    unclear: FloatArray
    scales: FloatArray | None = None
    directions: FloatArray | None = None

    def damping(self, strength: float, size: float, n_free: int) -> Damping:
        """A penalty of a strength along directions as far as they are unclear, where weights of a size are typical."""
        if self.directions is None:
            return Damping(np.full(1, strength), np.zeros(1), size, n_free)
        return Damping(strength * self.unclear, 1.0 - self.unclear, size, n_free, self.directions)

    def metric(self, damping: Damping) -> tuple[FloatArray | None, FloatArray]:
        """The metric of steps, None for none, and its eigenvalues."""
        if self.directions is None or self.scales is None:
            return None, np.ones(1)
        scales = 1.0 / (self.scales + damping.strengths)
        return (self.directions * scales) @ self.directions.T, scales


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """Clips, time and curvature of a descent; ``size`` is that of the target."""

    rule: DescentRule
    bound: float
    curvature: _Curvature
    time: float
    size: float


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """What all descents of a fit share."""

    plan: SparsePlan
    source: Source
    releases: Releases
    stream: Stream
    mu: float

    def run(self, model: ColumnModel, share: float, name: str, *, selects: bool = False) -> ColumnModel:
        """The model after a descent that costs a share of the budget, to be used or to select columns by."""
        plan, p = self.plan, model.n_columns + self.plan.problem.intercept
        private = self.releases.private
        rule = plan.rule(self.mu * math.sqrt(share) if private else math.inf, p, selects=selects)
        end = self.releases.remaining - share
        bound = self._bound(model, rule, self._small_share(share), name)
        curvature, gram = self._curvature(model, rule, bound, share, name, selects=selects)
        model, rest = replace(model, gram=gram, noise=None), self.releases.remaining - end
        time = rule.time * self.mu * math.sqrt(rest) / bound**2 if private else math.inf
        path = _Path(rule, bound, curvature, time, model.size)
        if not plan.regression or not private or plan.huber or plan.residual_clip is not None:
            return self._leg(model, path, 1.0, rest, name)
        size_share = self._small_share(share)
        model = self._leg(model, path, TUNING.first_leg, TUNING.first_leg * (rest - size_share), name)
        model = self._measure(model, bound, size_share)
        rest = self.releases.remaining - end
        return self._leg(model, path, 1.0 - TUNING.first_leg, rest, name, ", after residuals were measured")

    def run_few(self, model: ColumnModel, share: float, name: str) -> ColumnModel | None:
        """Maximum likelihood of two classes in seven passes, for tables so tall that there is little noise.

        A Gram matrix and gradients are enough for the first steps, which are solved as if rows were normal. Then an
        information matrix is released, and the mean of the last steps by it is where they end. None if it says that
        labels are nearly certain: then such steps do not get there, and a descent has to.
        """
        plan, t, releases, d = self.plan, TUNING, self.releases, model.n_columns
        p, end, of_matrix = d + plan.problem.intercept, releases.remaining - share, t.tall_gram_share * share
        rule = plan.rule(self.mu * math.sqrt(share), p)
        bound = self._bound(model, rule, self._small_share(share), name)
        clipping = self.clipping(model, bound, 1.0)
        of_gradients = releases.remaining - end - 2.0 * of_matrix
        weights = model.coefficients(clipping.constant)

        def gradients(
            count: int, share: float, when: str
        ) -> tuple[Callable[[FloatArray], Question[FloatArray]], float]:
            what = f"a gradient with {p:,} coordinates per step of the {name}{when}"
            weight, product_bound, noise = releases.joint_noise(bound * ONE, what, share, p, count)
            jointly = replace(clipping, weight_bound=weight, product_bound=product_bound)
            unit = 1.0 / (float(ONE) * weight)

            def question(at: FloatArray) -> Question[FloatArray]:
                return releases.noisy_sums_of(tasks.GradientSum(jointly, at), at.shape, noise, unit)

            return question, 0.0 if noise is None else 2.0**noise.log2_scale * unit

        what = f"the Gram matrix of {p:,} columns in the {name}"
        of_gram = releases.gram_matrix_of(what, of_matrix, clipping)
        gradient_at, deviation = gradients(t.first_steps + 1, t.first_steps_share * of_gradients, "")
        (matrix, noise), gradient = releases.ask_together(of_gram, gradient_at(weights))
        gram = Gram(matrix, noise)
        values, vectors = eigh(matrix)
        # Directions within the noise count as large as it is.
        curvature = (vectors * np.maximum(values, gram.noise)) @ vectors.T
        constant = np.eye(p)[-1] * (ONE / clipping.constant) if clipping.constant else None
        design = NormalDesign(curvature, constant, plan.problem.n_records)
        prior = Prior(weights, np.eye(p) * (bound / t.usual_log_odds) ** 2)
        for step in range(t.first_steps):
            gradient = releases.ask(gradient_at(weights)) if step else gradient
            weights = design.solve(weights, gradient, deviation, prior)

        what = f"the information matrix of {p:,} coefficients"
        of_information = releases.gram_matrix_of(what, of_matrix, clipping, weights)
        (matrix, noise), gradient = releases.ask_together(of_information, gradient_at(weights))
        values, vectors = eigh(matrix)
        information = (vectors * np.maximum(values, noise_norm(noise, p))) @ vectors.T
        if float(np.trace(information)) < t.least_uncertain * float(np.trace(curvature)):
            return None
        gradient_at, deviation = gradients(t.last_steps, releases.remaining - end, ", by the information matrix")
        # Where labels are nearly certain, there is more curvature around than here.
        values, vectors = eigh(plan.problem.loss.smoothness * (information + t.more_curvature * curvature))
        newton, mean = (vectors / values) @ vectors.T, np.zeros_like(weights)
        weights = weights - gradient @ newton
        for step in range(t.last_steps):
            weights = weights - releases.ask(gradient_at(weights)) @ newton
            mean += (weights - mean) / (step + 1)
        return replace(
            model,
            weights=mean[:, :d],
            constants=mean[:, d] * (clipping.constant / ONE) if clipping.constant else model.constants,
            gram=gram,
            n_steps=model.n_steps + t.first_steps + 1 + t.last_steps,
            noise=WeightNoise(np.square(deviation / values) / t.last_steps, vectors),
        )

    def clipping(self, model: ColumnModel, bound: float, derivative_bound: float) -> Clipping:
        """Records whose rows have norms of up to a bound, the constant's entry included."""
        problem, row_squared = self.plan.problem, _squared_in_lattice(bound)
        loss = self.plan.loss_at(derivative_bound, model.unit)
        width = model.n_columns + problem.intercept
        entry = min(max(1, round(math.sqrt(row_squared / width))), ONE) if problem.intercept else 0
        return Clipping(
            model.columns, model.n_columns, loss, problem.n_outputs, row_squared, entry, ONE, derivative_bound,
            model.centre, model.target_mean,
        )  # fmt: skip

    def _small_share(self, share: float) -> float:
        """What a quantile may cost: more of a small budget, and at most a fifth of the descent."""
        return min(least_share(self.plan.problem.n_records, self.mu, 8.0, 0.01, 0.08), 0.2 * share)

    def _bound(self, model: ColumnModel, rule: DescentRule, share: float, name: str) -> float:
        """R with the constant's entry."""
        plan, p = self.plan, model.n_columns + self.plan.problem.intercept
        # A public bound holds for rows over all columns, and about as well for those less a centre.
        bound = plan.row_bound if model.columns is None else None
        if bound is None:
            norms = tasks.RowNorms(plan.loss_at(1.0), model.columns, model.centre)
            what = f"a quantile of row norms in the {name}"
            widest = 2.0 * math.sqrt(model.n_columns)
            bound = self.releases.row_norm(what, share, norms, widest, rule.norm_quantile)
        entry = min(bound / math.sqrt(p), 1.0) if plan.problem.intercept else 0.0
        return math.hypot(bound, entry)

    def _curvature(
        self, model: ColumnModel, rule: DescentRule, bound: float, share: float, name: str, *, selects: bool
    ) -> tuple[_Curvature, Gram | None]:
        """The curvature, and the Gram matrix if one is released.

        Without one, as if rows were spread evenly over all directions. Who selects columns needs the matrix in any
        case, as it tells those that are not there.
        """
        plan, p = self.plan, model.n_columns + self.plan.problem.intercept
        n_rows = plan.problem.n_records
        smoothness = self._step_curvature(model)
        usual = smoothness * self._curved_share(model, rule)
        largest = TUNING.long_rows * n_rows * bound**2
        private, steps = self.releases.private, math.inf
        if private:
            steps = rule.time * self.mu * math.sqrt(share) / bound**2 * smoothness * largest
            noise = math.sqrt(2.0 * p) / (self.mu * math.sqrt(TUNING.gram_share * share))
            needed = selects or steps > TUNING.steps_without_gram
            useful = p <= TUNING.most_width and needed and noise < TUNING.largest_noise * n_rows
        else:
            useful = p <= TUNING.most_width_without_privacy
        # With no more columns than a descent has steps, the matrix costs less than the steps that it saves.
        if not useful or (p > MOST_STEPS and n_rows * float(p) ** 2 > TUNING.most_products):
            guess = steps > TUNING.steps_without_gram and p >= TUNING.many_columns
            steepest = smoothness * largest * (max(TUNING.usual_curvature, TUNING.steep_columns / p) if guess else 1.0)
            return _Curvature(steepest, np.full(1, usual * n_rows * bound**2 / p), np.ones(1)), None
        # Rows are clipped less where the clip of gradients has opened.
        room = math.sqrt(max(1.0, rule.clip / LEAST_CLIP)) if plan.regression and private else 1.0
        clipping = self.clipping(model, bound * room, 1.0)
        clipping = replace(clipping, constant=self.clipping(model, bound, 1.0).constant)
        what = f"the Gram matrix of {p:,} columns in the {name}"
        matrix, deviation = self.releases.gram_matrix(what, TUNING.gram_share * share, clipping)
        gram = Gram(matrix, deviation)
        with all_threads_if_large(len(matrix)):
            values, vectors = eigh(matrix)
        ridge = gram.noise if private else TUNING.noiseless_ridge * max(float(values[-1]), 1.0)
        # Of eigenvalues within the noise only the sum is known.
        clear = np.maximum(values - gram.noise, 0.0)
        expected = usual * (clear + max(float(np.mean(values - clear)), 0.0))
        kept = smoothness * (np.maximum(values, 0.0) + ridge)
        unclear = gram.noise / np.maximum(clear + gram.noise, 1e-300)
        return _Curvature(smoothness * ridge, expected, unclear, kept, vectors), gram

    def _step_curvature(self, model: ColumnModel) -> float:
        """The curvature of a record's loss that steps reckon with: the largest, or a usual one under a log link."""
        if not self.plan.log_link:
            return self.plan.loss_at(1.0).smoothness
        return TUNING.log_link_curvature if self.releases.private else TUNING.noiseless_log_link_curvature

    def _curved_share(self, model: ColumnModel, rule: DescentRule) -> float:
        """About the curvature that clips and nearly certain labels leave, as a share of the largest."""
        if self.plan.regression:
            share = float(erf(TUNING.normal_median * rule.clip / math.sqrt(2.0)))
            return share / self._step_curvature(model)
        margins = model.constants if self.plan.problem.n_outputs > 1 else np.append(0.0, model.constants)
        most = float(softmax(margins).max())
        return min(rule.clip, 1.0) * TUNING.fitted_curvature * 4.0 * most * (1.0 - most)

    def _leg(
        self, model: ColumnModel, path: _Path, part: float, share: float, name: str, when: str = ""
    ) -> ColumnModel:
        """Gradient steps with the same clips, for a part of the time."""
        plan, d = self.plan, model.n_columns
        p, rule, bound = d + plan.problem.intercept, path.rule, path.bound
        # Tables that are too wide for a Gram matrix are mostly sparse.
        known = path.curvature.directions is not None
        n_entries = plan.problem.n_records * p / part if known else None
        steps = step_rule(part * path.time * path.curvature.largest, n_entries)
        most = plan.loss_at(1.0, model.unit).lipschitz(math.inf) if plan.log_link else math.inf
        derivative_bound = min(self._largest_derivative(rule, model.size), most)
        clip = min(rule.clip * (model.size if plan.regression else derivative_bound), derivative_bound)
        clipping = self.clipping(model, bound, derivative_bound)
        n_values = plan.problem.n_outputs * p
        what = f"a gradient with {n_values:,} coordinates per step of the {name}{when}"
        product = bound * ONE * clip / derivative_bound
        weight, product_bound, noise = self.releases.joint_noise(product, what, share, n_values, steps.n_steps)
        clipping = replace(clipping, weight_bound=weight, product_bound=product_bound)
        constant = clipping.constant / ONE
        start = model.coefficients(clipping.constant)
        unit = derivative_bound / (float(ONE) * weight)
        deviation = 0.0 if noise is None else 2.0**noise.log2_scale * unit
        strength = rule.damping * deviation / math.sqrt(steps.n_steps) * bound / path.size
        damping = path.curvature.damping(strength, rule.typical * path.size / bound, p - d)
        metric, scales = path.curvature.metric(damping)
        momentum: float | FloatArray = steps.momentum
        momenta, directions = momentum, path.curvature.directions
        if directions is not None and self.releases.private and steps.momentum:
            momenta = steps.momentum_along(scales * path.curvature.expected)
            momentum = (directions * momenta) @ directions.T
        descent = GradientDescent(
            n_steps=steps.n_steps,
            unit=unit,
            noise=noise,
            step=steps.step if known else self._step(steps.step / path.curvature.largest, p),
            constraint=Constraint(d),
            momentum=momentum,
            average=self.releases.private,
            metric=metric,
            damping=damping if strength > 0.0 else None,
        )
        lengths: list[float] = []
        weights = descent.run(
            lambda current: self.source.total(tasks.GradientSum(clipping, current)),
            start,
            self.stream.spawn(name),
            lengths.append,
        )
        law = None
        if noise is not None and (plan.strategy.method == "dense" or p <= TUNING.most_known_noise):
            curvatures = path.curvature.expected + damping.at(weights)
            law = LinearDescent(scales, curvatures, path.curvature.directions).noise(
                lengths, momenta, deviation, model.noise
            )
        return replace(
            model,
            weights=weights[:, :d],
            constants=weights[:, d] * constant if constant else model.constants,
            n_steps=model.n_steps + steps.n_steps,
            noise=law,
        )

    def _step(self, step: float, width: int) -> float | ShrinkingStep:
        # Along the noise of a few columns curvature cannot be told.
        return ShrinkingStep(step) if width >= TUNING.many_columns else step

    def _largest_derivative(self, rule: DescentRule, size: float) -> float:
        if not self.plan.regression:
            return math.sqrt(self.plan.loss_at(1.0).squared_l2_factor)
        if self.plan.huber:
            return size
        most = math.inf if self.plan.log_link else TUNING.most_residual
        return min(TUNING.short_row * rule.clip * size, most) if self.releases.private else most

    def _measure(self, model: ColumnModel, bound: float, share: float) -> ColumnModel:
        """The model with the size of its residuals: their private median, no larger than before."""
        clipping = self.clipping(model, bound, TUNING.most_residual)
        clipping = replace(clipping, product_bound=1)
        residuals = tasks.ResidualMagnitudes(clipping, model.coefficients(clipping.constant))
        typical = TUNING.usual_gain * model.size
        if self.plan.log_link:
            size = _tail_size(self.plan, self.releases, "residuals", share, residuals, model.unit, typical)
        else:
            what = "the median magnitude of residuals"
            size = self.releases.quantile(what, share, residuals, *TUNING.residual_grid, typical=typical)
        return replace(model, size=min(size, model.size))


# ---- Which columns of a released model stay: by what they explain, and how many by a private comparison of losses.
# A column explains the more of the fitted margins, the more of them its weight and its second moment account for. Along
# columns of hardly any record a descent is a random walk of its own noise, and a second moment within its noise says
# nothing. Columns whose released second moment is clear of its noise, and not that of a rare level, come first
# therefore, and with them those whose weight stands out; the others follow. The columns of one variable stay or go
# together.


def choose_columns(plan: SparsePlan, model: ColumnModel, k: int) -> ColumnModel:
    """The model with the columns of k variables."""
    return _cut(model, _rank(plan, model, k), k)


def choose_size(descent: Descent, model: ColumnModel, start: FloatArray) -> ColumnModel:
    """The model with as few columns as hold its loss; ``start`` are the margins of the best constant."""
    plan = descent.plan
    null_loss, surprise = _null_losses(plan, start)
    unit, clip = plan.problem.n_records * null_loss, min(max(surprise, TUNING.size_clip), TUNING.most_size_clip)
    sizes = candidate_sizes(int(_variables(plan, model).max()) + 1)
    ranking = _rank(plan, model, int(sizes[-1]))
    if ranking.n_clear is not None:
        sizes = np.append(sizes[sizes < ranking.n_clear], ranking.n_clear)
    sizes = sizes[ranking.widths[sizes] <= MOST_CHOSEN]
    clipping = replace(descent.clipping(model, 1.0, 1.0 if not plan.regression else model.size), product_bound=1)
    constants = model.constants * (ONE / clipping.constant) if clipping.constant else None

    def spread(k: int | None) -> FloatArray:
        kept = np.zeros_like(model.weights) if k is not None else model.weights
        if k is not None:
            columns = ranking.columns(k)
            kept[:, columns] = ranking.weights(columns)
        if constants is None:
            return kept
        # Without columns the best constant is known.
        return np.column_stack((kept, constants if k != 0 else start * (ONE / clipping.constant)))

    # As in Akaike's criterion a column has to be worth one unit of likelihood, about two of losses of numbers.
    least = (2.0 if plan.regression else 1.0) * plan.problem.n_outputs
    rate = max(0.5 * TUNING.size_tolerance * unit / max(model.n_columns, 1), least)
    widths = ranking.widths[sizes]
    # Noise alone must not take columns where nothing is there.
    worth = TUNING.least_worth * descent.releases.selection_noise(TUNING.size_share, clip)
    place = descent.releases.best_model(
        f"one of {sizes.size} numbers of {plan.counted}", TUNING.size_share, clipping,
        tuple(spread(int(k)) for k in sizes), spread(None),
        rate * widths + TUNING.more_than_half * unit * (2 * widths > model.n_columns) + worth * (sizes > 0),
        (clip, clip),
        # Sums count from the tolerance on, but without columns from the least there can be: where nothing is there, a
        # fit to noise is worse than a constant.
        np.where(sizes > 0, TUNING.size_tolerance * unit, -clip * plan.problem.n_records - 1.0),
    )  # fmt: skip
    return _cut(model, ranking, int(sizes[place]))


def _null_losses(plan: SparsePlan, start: FloatArray) -> tuple[float, float]:
    """The mean loss of a constant, at most a coin's and in its units, and its largest: a rare class loses much."""
    if plan.regression:
        return 1.0, 0.0
    shares = softmax(start if plan.problem.n_outputs > 1 else np.array([0.0, start[0]]))
    from scipy.stats import entropy

    return min(float(entropy(shares)) / math.log(2.0), 1.0), -math.log(float(shares.min()))


def candidate_sizes(n_columns: int) -> IntArray:
    """Numbers of columns in a geometric progression, up to half of them where there are many."""
    most = min(n_columns, MOST_CHOSEN)
    sizes, k = {0, n_columns // 2, most}, float(min(LEAST_NONZERO, n_columns))
    while k < most:
        sizes.add(math.floor(k))
        k = max(k * TUNING.size_ratio, k + 1.0)
    least = min(LEAST_NONZERO, n_columns)
    return np.array(sorted(size for size in sizes if size == 0 or least <= size <= most), dtype=np.int64)


def _cut(model: ColumnModel, ranking: _Ranking, k: int) -> ColumnModel:
    columns = ranking.columns(k)
    return model.keep(columns, ranking.weights(columns))


def _variables(plan: SparsePlan, model: ColumnModel) -> IndexArray:
    """For each column of the model the number of its variable, from 0, in the order of their first columns."""
    if plan.variables is None:
        return np.arange(model.n_columns)
    labels = np.array(plan.variables, dtype=np.intp)
    numbers: IndexArray = np.unique(labels if model.columns is None else labels[model.columns], return_inverse=True)[1]
    return numbers


def heaviest_variables(weights: FloatArray, numbers: IndexArray, k: int) -> IndexArray:
    """The k variables with the heaviest columns, the heaviest first; ``numbers`` are the variables of columns."""
    ranked = numbers[columns_by_weight(weights)]
    _, first = np.unique(ranked, return_index=True)
    variables: IndexArray = ranked[np.sort(first)[:k]]
    return variables


@dataclass(frozen=True, slots=True, eq=False)
class _Ranking:
    """The columns of each variable, in the order in which variables are kept, and the weights of those that are.

    Weights are as they were fitted, or under a ``metric`` those that predict most alike, given ``covariances``.
    ``n_clear`` is how many variables come first because of their second moments, where these are nearly all there is.
    """

    members: tuple[IndexArray, ...]
    fitted: FloatArray
    metric: FloatArray | None = None
    covariances: FloatArray | None = None
    n_clear: int | None = None

    @property
    def widths(self) -> IntArray:
        """How many columns the first variables have, from none to all that were ranked."""
        return np.cumsum([0, *(columns.size for columns in self.members)])

    def columns(self, k: int) -> IndexArray:
        """The columns of the first k variables, in increasing order."""
        return np.sort(np.concatenate((np.zeros(0, dtype=np.intp), *self.members[:k])))

    def weights(self, columns: IndexArray) -> FloatArray:
        """Weights of these columns alone."""
        if self.metric is None or self.covariances is None:
            return self.fitted[:, columns]
        solution = np.linalg.solve(self.metric[np.ix_(columns, columns)], self.covariances[columns])
        return np.asarray(solution.T, dtype=np.float64)


def _rank(plan: SparsePlan, model: ColumnModel, k: int) -> _Ranking:
    """The first k variables of a model in the order in which they are kept."""
    numbers = _variables(plan, model)
    if model.gram is None:
        # Steps are few, so that noise is alike in all weights; a variable has that of its largest.
        ranked = heaviest_variables(model.weights, numbers, k)
        by_variable = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers))
        return _Ranking(tuple(by_variable[ends[j - 1] if j else 0 : ends[j]] for j in ranked), model.weights)
    members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    weights, first = identified_weights(model, model.gram, members, plan.problem.n_records)
    metric = _denoised(model.gram, model.n_columns)
    covariances = metric @ weights.T
    order = _forward(metric, covariances, members, first, k)
    moments = np.maximum(np.diag(model.gram.matrix)[: model.n_columns], 0.0)
    most = float(moments[first[numbers]].sum()) > TUNING.clear_trace * float(moments.sum())
    n_clear = min(int(np.count_nonzero(first)), k) if most else None
    return _Ranking(tuple(members[j] for j in order), model.weights, metric, covariances, n_clear)


def _denoised(gram: Gram, n_columns: int) -> FloatArray:
    """The Gram matrix of the features without what its noise may have added, and with at least a small diagonal."""
    matrix = gram.matrix[:n_columns, :n_columns]
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values - gram.noise, 0.0)
    mean = max(float(np.trace(matrix)), 1e-9) / n_columns
    rest = max(mean - float(kept.sum()) / n_columns, TUNING.least_rest * mean)
    if gram.noise == 0.0:
        kept, rest = np.maximum(values, 0.0), 1e-9 * mean
    denoised: FloatArray = (vectors * kept) @ vectors.T + rest * np.eye(n_columns)
    return denoised


def identified_weights(
    model: ColumnModel, gram: Gram, members: Sequence[IndexArray], n_records: int
) -> tuple[FloatArray, BoolArray]:
    """The weights by which variables are ranked, and which of these come first.

    First come those with a second moment in some direction that is clear of its noise and not that of a rare level;
    other directions within them, such as the sum of a full set of indicators, have no weight. So do those with a column
    whose weight stands out from what is usual: among all columns, and among those whose second moment is within noise.
    It has to stand out the more, the less of a second moment there is: of many empty columns one has a large weight.
    """
    weights, matrix = model.weights.copy(), gram.matrix[: model.n_columns, : model.n_columns]
    moments, sizes = np.diag(matrix), np.abs(weights).sum(axis=0)
    least = TUNING.clear_moment * gram.deviation + TUNING.rare_level * n_records * (gram.deviation > 0.0)
    groups = (sizes, sizes[moments <= least], sizes[moments <= gram.deviation])
    # One or two columns may all have a large weight.
    usual = max(float(np.median(group)) for group in groups if group.size > 2 or group is sizes)
    ratios = sizes * TUNING.normal_median / max(usual, 1e-300)
    there = np.maximum(moments, 0.0) / gram.deviation if gram.deviation > 0.0 else np.full(len(moments), math.inf)
    stands_out = (ratios > TUNING.clear_weight) & (np.hypot(ratios, there) > TUNING.clear_together)
    first = np.zeros(len(members), dtype=bool)
    for j, columns in enumerate(members):
        if columns.size == 1:
            first[j] = moments[columns[0]] > least or stands_out[columns[0]]
            continue
        values, vectors = np.linalg.eigh(matrix[np.ix_(columns, columns)])
        # The largest eigenvalue of noise alone grows with the number of columns.
        clear = vectors[:, values > least + gram.deviation * math.sqrt(2.0 * (columns.size - 1))]
        if clear.size:
            weights[:, columns] = weights[:, columns] @ clear @ clear.T
        first[j] = clear.size > 0 or stands_out[columns].any()
    return weights, first


def _forward(
    metric: FloatArray, covariances: FloatArray, members: Sequence[IndexArray], first: BoolArray, k: int
) -> list[int]:
    """Forward selection of fitted margins, given their covariances with all columns, among variables.

    Each explains the most of what the earlier ones do not; variables that are not ``first`` follow those that are.
    """
    rest, scales = covariances.copy(), np.diag(metric).copy()
    blocks = {j: metric[np.ix_(columns, columns)] for j, columns in enumerate(members) if columns.size > 1}
    of_one = np.array([columns[0] for columns in members])
    least = 1e-12 * np.diag(metric)
    order: list[int] = []
    basis = np.zeros((0, len(metric)))
    for _ in range(min(k, len(members))):
        gains = (np.square(rest).sum(axis=1) / np.maximum(scales, least))[of_one]
        for j, block in blocks.items():
            columns = members[j]
            solved = np.linalg.solve(block + np.diag(least[columns]), rest[columns])
            gains[j] = float((rest[columns] * solved).sum())
        left = np.ones(len(members), dtype=bool)
        left[order] = False
        best = int(np.argmax(np.where(left & first if (left & first).any() else left, gains, -math.inf)))
        order.append(best)
        blocks.pop(best, None)
        for column in members[best]:
            # One step of a Cholesky factorisation takes the column out of all others.
            root = math.sqrt(max(scales[column], least[column]))
            row = (metric[column] - basis[:, column] @ basis) / root
            basis = np.vstack((basis, row))
            rest -= np.outer(row, rest[column] / root)
            scales -= np.square(row)
            for j, block in blocks.items():
                block -= np.outer(row[members[j]], row[members[j]])
    return order


# ---- Weights of a descent shrunk by what its noise is known to have added to them.
# Where few columns matter, most weights of a descent on all columns are noise of a known law. Given that law, a prior
# is fitted to the released weights, a mixture of normal laws with a mass at zero (Stephens, 2017), and weights become
# their posterior means. That is post-processing and costs nothing, but where many weak and correlated columns matter
# together, it would take the signal with the noise. So shrunk weights have to predict better, by a private comparison.


def shrinkage_share(plan: SparsePlan, mu: float) -> float:
    """The share of the budget for the comparison: 0 if it would not pay, or for three classes or more."""
    n_columns = plan.problem.n_features if plan.columns is None else len(plan.columns)
    enough = plan.problem.n_records * mu >= TUNING.shrinkage_information and n_columns >= TUNING.shrinkage_columns
    if plan.strategy.method != "dense" or plan.problem.n_outputs > 1 or math.isinf(mu) or not enough:
        return 0.0
    return least_share(plan.problem.n_records, mu, 60.0, 0.005, 0.03)


def choose_shrinkage(descent: Descent, model: ColumnModel, share: float) -> ColumnModel:
    """The model with its weights as they are, or shrunk for one of two levels of noise.

    One is that of the law. The other is that of the weights themselves, as if most of them were noise: the law is for
    columns of even curvature, and too small where labels are nearly certain.
    """
    clipping = replace(descent.clipping(model, 1.0, model.size if descent.plan.regression else 1.0), product_bound=1)
    constants = model.constants * (ONE / clipping.constant) if clipping.constant else None

    def coefficients(weights: FloatArray) -> FloatArray:
        return weights if constants is None else np.column_stack((weights, constants))

    n_rows, slopes, clip = descent.plan.problem.n_records, TUNING.shrinkage_slopes, TUNING.shrinkage_clip
    choices = [model.weights]
    if model.noise is not None:
        deviations = model.noise.deviations(model.n_columns)
        ratios = model.weights / deviations
        typical = float(np.median(np.abs(ratios))) / TUNING.normal_median
        choices += [posterior_means(ratios, level) * deviations for level in (1.0, typical) if level > 0.0]
    place = descent.releases.best_model(
        f"one of {len(choices)} degrees of shrinkage", share, clipping,
        tuple(coefficients(slope * weights) for weights in choices for slope in slopes), coefficients(model.weights),
        np.repeat(TUNING.least_gain * n_rows * (np.arange(len(choices)) > 0), len(slopes)), (clip, clip),
        # Sums count from the least there can be.
        -clip * n_rows - 1.0,
    )  # fmt: skip
    return replace(model, weights=choices[place // len(slopes)])


def posterior_means(values: FloatArray, deviation: float) -> FloatArray:
    """What values with normal errors of a deviation are expected to be, under a prior that is fitted to all of them.

    The prior is a mixture of normal laws around zero, of widths from zero to the largest value in powers of two, and
    its shares are those of maximum likelihood with one more zero observed. Many values are counted by their size in
    bins, and the factors of their means interpolated between the centres of these.
    """
    sizes = np.abs(values / deviation)
    largest = max(float(sizes.max()), 2.0)
    widths = np.append(0.0, 2.0 ** np.arange(-1.0, math.ceil(math.log2(largest)) + 1.0))
    if sizes.size <= TUNING.most_unbinned:
        return values * _shrinking_factors(sizes.ravel(), np.ones(sizes.size), widths).reshape(sizes.shape)
    # Bins are equal in the root of the size, and so narrow near zero, where most values are.
    scale = (TUNING.prior_bins - 1) / math.sqrt(largest)
    places = np.rint(np.sqrt(sizes.ravel()) * scale).astype(np.int64)
    counts = np.bincount(np.minimum(places, TUNING.prior_bins - 1), minlength=TUNING.prior_bins).astype(np.float64)
    centres = np.square(np.arange(TUNING.prior_bins) / scale)
    factors = _shrinking_factors(centres, counts, widths)
    means: FloatArray = values * np.interp(sizes, centres, factors)
    return means


def _shrinking_factors(sizes: FloatArray, counts: FloatArray, widths: FloatArray) -> FloatArray:
    """By what values of these sizes, in deviations, are multiplied to become their means; each is there so often."""
    totals = 1.0 + np.square(widths)
    logarithms = -0.5 * (np.square(sizes)[:, None] / totals + np.log(totals))
    likelihoods = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
    shares = np.full(widths.size, 1.0 / widths.size)
    for _ in range(TUNING.prior_steps):
        parts = shares * likelihoods
        parts /= parts.sum(axis=-1, keepdims=True)
        shares = (counts[:, None] * parts).sum(axis=0)
        shares[0] += 1.0
        shares /= shares.sum()
    parts = shares * likelihoods
    parts /= parts.sum(axis=-1, keepdims=True)
    factors: FloatArray = parts @ (np.square(widths) / totals)
    return factors


# ---- Slope and constant of a fitted model, recalibrated privately.
# Clips, noise and a short descent leave weights too long or too short as a whole, and means a little off. A few sums
# over records, released once, tell the two parameters a and b of the margins :math:`a\, w \cdot x + b` (Platt, 1999,
# for labels); what remains is post-processing. Where noise is large against what the two usually are off by, they are
# shrunk.


def recalibration_share(plan: SparsePlan, mu: float) -> float:
    """The share of the budget for recalibration; 0 where public facts say that it would not pay."""
    information = plan.problem.n_records * mu
    if math.isinf(mu) or not plan.problem.intercept or information < TUNING.constant_information:
        return 0.0
    if information >= TUNING.recalibration_information:
        return TUNING.recalibration_share
    return TUNING.constant_share if not plan.regression and plan.problem.n_outputs == 1 else 0.0


def expected_slope(per_column: float) -> float:
    """The slope that margins of labels need before recalibration, by n mu per column."""
    places = np.log(TUNING.slopes_per_column)
    return float(np.exp(np.interp(math.log(per_column), places, np.log(TUNING.expected_slopes))))


def recalibrate(descent: Descent, model: ColumnModel, share: float, start: FloatArray) -> ColumnModel:
    """The model with slope and constant recalibrated; a share of the budget pays for it.

    ``start`` are the margins of the best constant. Of several classes all margins have one slope.
    """
    plan = descent.plan
    if plan.problem.n_outputs > 1:
        return _recalibrate_classes(descent, model, share)
    if plan.problem.n_records * descent.mu < TUNING.recalibration_information:
        return _recalibrate_constant(descent, model, share)
    clipping = replace(descent.clipping(model, 1.0, 16.0 if plan.regression else 1.0), product_bound=1)
    coefficients = np.column_stack((model.weights, model.constants * (ONE / clipping.constant)))
    first = TUNING.margin_quantile_share
    margins = tasks.MarginMagnitudes(clipping, coefficients)
    large = descent.releases.quantile(
        "a large magnitude of margins", first * share, margins, *TUNING.margin_grid,
        quantile=TUNING.margin_quantile, typical=2.0 if plan.log_link else 2.0 * model.size,
    )  # fmt: skip
    pivot, rest = float(start[0]), (1.0 - first) * share
    step = _Step(descent, clipping, coefficients, TUNING.margin_reach * large, rest, model, pivot)
    if plan.log_link:
        slope, shift = step.for_means(descent.mu)
    else:
        slope, shift = step.for_numbers(descent.mu) if plan.regression else step.for_labels(descent.mu)
    slope = min(max(slope, TUNING.least_slope), TUNING.most_slope)
    return replace(model, weights=model.weights * slope, constants=model.constants + shift)


def _recalibrate_classes(descent: Descent, model: ColumnModel, share: float) -> ColumnModel:
    """The model of several classes with a slope of all margins, by two private Newton steps for its logarithm."""
    n_rows, bound = descent.plan.problem.n_records, TUNING.slope_derivative
    clipping = replace(descent.clipping(model, 1.0, 1.0), product_bound=1)
    coefficients = np.column_stack((model.weights, model.constants * (ONE / clipping.constant)))
    start = logarithm = math.log(expected_slope(n_rows * descent.mu / clipping.width))
    known, pull = TUNING.label_slope_prior**-2.0, 0.0
    for part in (0.5, 0.5):
        at = math.exp(logarithm) * coefficients

        def moments(unit: int, at: FloatArray = at) -> tasks.SlopeMoments:
            return tasks.SlopeMoments(clipping, at, bound, unit)

        what = "derivatives of the loss by the slope of margins"
        sums, deviation = descent.releases.moments(what, part * share, moments, 2)
        first, second = math.sqrt(2.0) * bound * sums
        second = max(float(second), TUNING.least_slope_curvature * n_rows)
        step = -float(first) / second
        step = min(max(step, -TUNING.longest_slope_step), TUNING.longest_slope_step)
        # Sampling errors of the first derivative are about as large as the second.
        information = second**2 / (2.0 * (bound * deviation) ** 2 + second)
        pull += information * (logarithm + step - start)
        known += information
        logarithm = start + pull / known
    slope = math.exp(logarithm)
    return replace(model, weights=model.weights * slope, constants=model.constants * slope)


def _recalibrate_constant(descent: Descent, model: ColumnModel, share: float) -> ColumnModel:
    """The model of two classes with its constant moved by two private Newton steps, and the slope that is expected."""
    n_rows = descent.plan.problem.n_records
    clipping = replace(descent.clipping(model, 1.0, 1.0), product_bound=1)
    slope = expected_slope(n_rows * descent.mu / clipping.width)
    model = replace(model, weights=model.weights * slope)
    start = constant = float(model.constants[0])
    known, pull = TUNING.label_constant_prior**-2.0, 0.0
    for part in (0.5, 0.5):
        coefficients = np.column_stack((model.weights, [[constant * (ONE / clipping.constant)]]))

        def residuals(unit: int, coefficients: FloatArray = coefficients) -> tasks.ResidualSum:
            return tasks.ResidualSum(clipping, coefficients, unit)

        what = "the sum of residuals of the labels"
        sums, deviation = descent.releases.moments(what, part * share, residuals, 1)
        rate = float(expit(constant))
        curvature = TUNING.fitted_curvature * n_rows * max(rate * (1.0 - rate), TUNING.least_slope_curvature)
        step = min(max(-float(sums[0]) / curvature, -1.0), 1.0)
        information = curvature**2 / (deviation**2 + curvature)
        pull += information * (constant + step - start)
        known += information
        constant = start + pull / known
    return replace(model, constants=np.array([constant]))


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What both kinds of targets need."""

    descent: Descent
    clipping: Clipping
    coefficients: FloatArray
    reach: float
    share: float
    model: ColumnModel
    pivot: float

    def for_numbers(self, mu: float) -> tuple[float, float]:
        """Least squares of residuals on margins: the slope, and what is added to the constant."""
        n_rows, size, reach = self.descent.plan.problem.n_records, self.model.size, self.reach
        usual = max(TUNING.usual_room, 0.5 * mu * math.sqrt(self.share * n_rows))
        room = max(TUNING.least_room, min(n_rows * mu / 100.0, usual))
        clip = size if self.descent.plan.huber else min(room * size, 2.0)

        def moments(unit: int) -> tasks.ResidualMoments:
            return tasks.ResidualMoments(self.clipping, self.coefficients, reach, clip, unit)

        sums, deviation = self.descent.releases.moments("moments of margins and residuals", self.share, moments, 4)
        gradient, noise = 2.0 * sums[:2] * clip, 2.0 * deviation * clip
        mean = min(max(2.0 * sums[3] / n_rows, -1.0), 1.0)
        square = max(2.0 * sums[2] / n_rows, TUNING.least_square, 1.1 * mean * mean)
        hessian = n_rows * np.array([[square, mean], [mean, 1.0]])
        prior = np.array([TUNING.slope_prior * reach, TUNING.constant_prior * size])
        ridge = noise**2 / np.square(prior) / np.diag(hessian)
        step = np.linalg.solve(hessian + np.diag(ridge), gradient)
        return 1.0 - float(step[0]) / reach, -float(step[1])

    def for_means(self, mu: float) -> tuple[float, float]:
        """Slope and constant under a log link, exact where margins are normal.

        Means times exp(d u) for margins u have moments m + d v, where m and v are mean and variance of u weighted by
        means, as targets have.
        """
        n_rows, size, reach = self.descent.plan.problem.n_records, self.model.size, self.reach
        usual = max(TUNING.usual_room, 0.5 * mu * math.sqrt(self.share * n_rows))
        room = max(TUNING.least_skewed_room, min(n_rows * mu / 100.0, usual))
        clip, most = min(room * size, self.clipping.loss.lipschitz(math.inf)), TUNING.most_curvature

        def moments(unit: int) -> tasks.CurvedMoments:
            return tasks.CurvedMoments(self.clipping, self.coefficients, reach, clip, most, unit)

        what = "moments of margins, derivatives and curvatures"
        sums, deviation = self.descent.releases.moments(what, self.share, moments, 5)
        (missed_margin, missed), noise = (math.sqrt(5.0) * clip * sums[:2]).tolist(), math.sqrt(5.0) * clip * deviation
        squares, products, total = (math.sqrt(5.0) * most * sums[2:]).tolist()
        total = max(total, TUNING.least_mean_curvature * n_rows)
        mean = min(max(products / total, -1.0), 1.0)
        variance = max(squares / total - mean**2, TUNING.least_square)
        # What targets add up to, over what means do.
        ratio = min(max(1.0 - missed / total, 1.0 / TUNING.most_curvature), TUNING.most_curvature)
        tilt = ((products - missed_margin) / (total * ratio) - mean) / variance
        prior, error = TUNING.slope_prior * reach, noise / (total * variance)
        tilt *= prior**2 / (prior**2 + error**2)
        error = noise / total
        level = math.log(ratio) * TUNING.constant_prior**2 / (TUNING.constant_prior**2 + error**2)
        return 1.0 + tilt / reach, level - tilt * mean - 0.5 * tilt**2 * variance

    def for_labels(self, mu: float) -> tuple[float, float]:
        """Logistic regression on binned margins: the slope, and what is added to the constant.

        Margins are those with the constant, around the log-odds of the classes: a model that is too steep has a
        constant that is too far out in proportion. Parameters are means of their posterior on a grid.
        """
        plan, reach = self.descent.plan, self.reach
        n_rows, fewest, most = plan.problem.n_records, TUNING.least_margin_bins, TUNING.most_margin_bins
        n_bins = 2 * round(min(max(0.2 * math.sqrt(n_rows * mu), fewest / 2), most / 2))

        def cells(unit: int) -> tasks.MarginCounts:
            return tasks.MarginCounts(self.clipping, self.coefficients, reach, n_bins, unit)

        what = "numbers of records by margin and label"
        counts, deviation = self.descent.releases.counts(what, self.share, cells, 2 * n_bins)
        constant = float(self.model.constants[0])
        margins = ((np.arange(n_bins) + 0.5) * (2.0 / n_bins) - 1.0) * reach + constant - self.pivot
        # Records of a class count by its weight, and so does the noise on their numbers.
        of_labels = plan.loss_at(1.0).class_weights(2)
        counts, noise = counts * of_labels[:, None], np.square(deviation * of_labels)
        # A bin's own noise must not weigh it: its neighbours tell how many records there are, unless it clearly differs
        # from them, as the outer bins and that of rows of zeros do.
        sums = counts.sum(axis=0)
        padded = np.concatenate((sums[1:2], sums, sums[-2:-1]))
        totals = 0.5 * (padded[:-2] + padded[2:])
        differs = np.abs(sums - totals) > TUNING.clear_bin * math.sqrt(1.5 * float(noise.sum()))
        totals = np.maximum(np.where(differs, sums, totals), 0.0)
        totals *= n_rows * float(of_labels.mean()) / max(float(totals.sum()), 1.0)
        deviations = np.linspace(-TUNING.prior_reach, TUNING.prior_reach, TUNING.prior_points)
        slopes = expected_slope(n_rows * mu / self.clipping.width) * np.exp(TUNING.label_slope_prior * deviations)
        shifts = TUNING.label_constant_prior * deviations
        rates = expit(self.pivot + slopes[:, None, None] * margins + shifts[None, :, None])
        # Numbers of records of bins are profiled out: counts tell of rates in one direction alone.
        residuals = counts[1] * (1.0 - rates) - counts[0] * rates
        variances = noise[1] * np.square(1.0 - rates) + noise[0] * np.square(rates) + totals * rates * (1.0 - rates)
        variances += 1e-9
        # Variances depend on the parameters: without their logarithms large ones would be preferred.
        losses = (np.square(residuals) / variances + np.log(variances)).sum(axis=-1)
        losses += np.square(deviations)[:, None] + np.square(deviations)
        weights = np.exp(-0.5 * (losses - losses.min()))
        weights /= weights.sum()
        slope = float(np.exp(weights.sum(axis=1) @ np.log(slopes)))
        shift = float(weights.sum(axis=0) @ shifts)
        return slope, self.pivot + slope * (constant - self.pivot) + shift - constant


# ---- What the default model finds out privately before its descents.
# The target's mean and size, the columns that go on, and their means.


# Exponents of the grid on which the most rows of a person are searched for without noise.
_MOST_ROW_BITS = 40


def count_rows(plan: SparsePlan, releases: Releases, *, clusters: bool = True) -> Source:
    """The source of all further sums, in which persons count by their rows where the plan says so.

    The most rows that count are a large quantile over persons, and without privacy a power of two that none exceeds.
    Unless ``clusters`` matter, which they do to standard errors, every row is a record then.
    """
    if not plan.counts_rows:
        return releases.source
    if not clusters and not releases.private:
        releases.source = RowsCounted(releases.source, None)
        return releases.source
    t, statistic = TUNING, tasks.RowNumbers()

    def noiseless() -> float:
        grid = tuple(2.0**k for k in range(_MOST_ROW_BITS))
        counts = releases.source.total(tasks.CumulativeCounts(statistic, grid))
        return grid[min(int(np.searchsorted(counts[:-1], counts[-1])), len(grid) - 1)]

    what = "a large quantile of numbers of rows of a person"
    most = releases.quantile(
        what, t.rows_share, statistic, 1.0, t.most_rows, quantile=t.rows_quantile, falls=True, noiseless=noiseless
    )
    releases.source = RowsCounted(releases.source, math.ceil(most))
    return releases.source


def count_weights(plan: SparsePlan, releases: Releases, share: float) -> SparsePlan:
    """The plan with a released sum of weights for the number of records, where they are weighted."""
    if not plan.weighted:
        return plan
    sums, deviation = releases.mean("the sum of weights", share, tasks.WeightSum(plan.loss_at(1.0)), 1, 1)
    n_rows = plan.problem.n_records
    return plan.counting(min(max(round(float(sums[0]) - deviation), 1), n_rows))


def release_target_mean(plan: SparsePlan, releases: Releases, mu: float) -> tuple[int, FloatArray]:
    """The noisy mean of a numeric target in lattice units, and the margins that a constant starts from.

    Under a log link the mean is not taken from the target, and the constant's margin is its logarithm.
    """
    if not plan.problem.intercept:
        return 0, np.zeros(plan.problem.n_outputs)
    share = least_share(plan.problem.n_records, mu, 10.0, 0.015, 0.1)
    if not plan.regression:
        return 0, _log_odds(plan, releases, share)
    if plan.log_link:
        return 0, _log_mean(plan, releases, share)
    means, deviation = _target_mean(plan, releases, share)
    clear = abs(means[0]) > TUNING.clear_mean * deviation
    return round(float(np.clip(means[0], -1.0, 1.0)) * ONE) if clear else 0, np.zeros(1)


def release_constant(
    plan: SparsePlan, releases: Releases, share: float, exposure: float | None = None, when: str = ""
) -> FloatArray:
    """The best constant: the mean of a numeric target, shrunk by what its noise adds, or log-odds of the classes.

    Under a log link it is the logarithm of the mean, for an ``exposure`` of one; that of records is known already.
    ``when`` tells it on the certificate from another release of the same.
    """
    if not plan.regression:
        return _log_odds(plan, releases, share, when)
    if plan.log_link:
        return _log_mean(plan, releases, share, exposure, when)
    means, deviation = _target_mean(plan, releases, share, when)
    mean = float(np.clip(means[0], -1.0, 1.0)) if plan.problem.intercept else 0.0
    return np.array([mean * max(0.0, 1.0 - deviation**2 / max(mean**2, 1e-300))])


def target_mean_of(
    plan: SparsePlan, releases: Releases, share: float, when: str = ""
) -> Question[tuple[FloatArray, float]]:
    """The mean of the target and the deviation of its noise; ``when`` is as in :func:`release_constant`."""
    what = f"the mean of the target{when}"
    question = releases.mean_of(what, share, tasks.TargetSum(), 1, plan.problem.n_records)

    def answer(sums: IntArray) -> tuple[FloatArray, float]:
        means, deviation = question.answer(sums)
        releases.diagnose(diagnose_mean(what, float(means[0]), deviation))
        return means, deviation

    return replace(question, answer=answer)


def _target_mean(plan: SparsePlan, releases: Releases, share: float, when: str = "") -> tuple[FloatArray, float]:
    return releases.ask(target_mean_of(plan, releases, share, when))


def _log_mean(
    plan: SparsePlan, releases: Releases, share: float, exposure: float | None = None, when: str = ""
) -> FloatArray:
    """The margin of the mean under a log link, that of an upper bound where noise hides the mean."""
    loss = plan.loss_at(1.0)
    if exposure is None and plan.exposed:
        share *= 0.5
        exposure = mean_exposure(plan, releases, share)
    means, deviation = _target_mean(plan, releases, share, when)
    if not plan.problem.intercept or not isinstance(loss, LogLinkLoss):
        return np.zeros(1)
    mean = max(float(means[0]), TUNING.clear_mean * deviation, math.exp(loss.least))
    return np.array([math.log(min(mean, 1.0) / (exposure or 1.0)) + loss.offset])


def mean_exposure(plan: SparsePlan, releases: Releases, share: float) -> float:
    """The noisy mean of exposures over their bound, no less than its noise."""
    terms = tasks.WeightSum(plan.loss_at(1.0), exposures=True)
    means, deviation = releases.mean("the mean exposure", share, terms, 1, plan.problem.n_records)
    return min(max(float(means[0]), TUNING.clear_mean * deviation, 1e-3), 1.0)


def mean_unit(plan: SparsePlan, start: FloatArray) -> float:
    """The mean of the target that a constant predicts under a log link, as a share of its range; 1 for other links.

    Where records have exposures it is that of the largest one, which is no smaller than the mean of the target.
    """
    loss = plan.loss_at(1.0)
    return float(loss.means(start)[0]) if isinstance(loss, LogLinkLoss) else 1.0


def _tail_size(
    plan: SparsePlan,
    releases: Releases,
    what: str,
    share: float,
    magnitudes: tasks.RowStatistic,
    unit: float,
    typical: float,
) -> float:
    """How large derivatives under a log link are, by a quantile in their tail, in what are medians of normal ones."""
    loss, medians = plan.loss_at(1.0, unit), TUNING.tail_in_medians
    if not isinstance(loss, LogLinkLoss):
        raise TypeError("tails are for targets under a log link")
    largest = max(loss.lipschitz(math.inf), 1.0)
    found = releases.quantile(
        f"a large quantile of the magnitude of {what}", share, magnitudes, TUNING.residual_grid[0], largest,
        quantile=TUNING.tail_quantile, typical=min(medians * typical, largest),
    )  # fmt: skip
    return max(found / medians, loss.least_size(unit))


def _log_odds(plan: SparsePlan, releases: Releases, share: float, when: str = "") -> FloatArray:
    # The share of the first of two classes follows from the other one only if every record has one of the two; as a
    # vector of norm one it costs nothing more.
    codes = (1, 0) if plan.problem.n_outputs == 1 else tuple(range(plan.problem.n_outputs))
    what = f"the share of each class{when}"
    rates, deviation = releases.mean(what, share, tasks.TargetSum(codes), len(codes), plan.problem.n_records)
    releases.diagnose(diagnose_shares(what, codes, rates, deviation))
    if not plan.problem.intercept:
        return np.zeros(plan.problem.n_outputs)
    least = max(TUNING.clear_rate * deviation, 1.0 / plan.problem.n_records)
    # The weight of a class counts like that many records of it.
    offsets = np.log(plan.loss_at(1.0).class_weights(len(codes)))
    if plan.problem.n_outputs == 1:
        if least >= 0.5 or abs(rates[0] - 0.5) <= TUNING.clear_rate * deviation:
            return offsets[1:] - offsets[:1]
        rate = float(np.clip(rates[0], least, 1.0 - least))
        return np.array([math.log(rate / (1.0 - rate))]) + offsets[1:] - offsets[:1]
    logarithms = np.log(np.maximum(rates, min(least, 1.0 / plan.problem.n_outputs))) + offsets
    centred: FloatArray = logarithms - logarithms.mean()
    return centred


def residual_size(plan: SparsePlan, releases: Releases, target_mean: int, mu: float, unit: float = 1.0) -> float:
    """How large residuals are at first: a public number, the private median magnitude of the target, 1 for labels."""
    if not plan.regression:
        return 1.0
    if plan.residual_clip is not None:
        return plan.residual_clip
    share = least_share(plan.problem.n_records, mu, 8.0, 0.02, 0.1)
    if plan.log_link:
        mean = max(1, round(unit * ONE))
        return _tail_size(plan, releases, "the target", share, tasks.TargetMagnitudes(mean, mean), unit, 1.0)
    what, magnitudes = "the median magnitude of the target", tasks.TargetMagnitudes(target_mean)
    ceiling = Ceiling("target", plan.problem.n_records)
    least, typical = TUNING.least_target, TUNING.typical_size
    size = releases.quantile(what, share, magnitudes, least, 1.0, typical=typical, ceiling=ceiling)
    return max(size, TUNING.least_size)


def _ceiling(plan: SparsePlan, n_columns: int) -> Ceiling | None:
    """What it means if most rows of some columns are as long as they can be; nothing for a few columns."""
    return Ceiling("rows", plan.problem.n_records) if n_columns >= TUNING.enough_columns else None


def _clip_records(
    plan: SparsePlan,
    columns: IndexArray | None,
    bound: float,
    derivative_bound: float,
    weight: int,
    target_mean: int = 0,
    unit: float = 1.0,
) -> Clipping:
    """Records with rows clipped to a bound, without a constant column."""
    loss, problem, row_squared = plan.loss_at(derivative_bound, unit), plan.problem, _squared_in_lattice(bound)
    d = problem.n_features if columns is None else columns.size
    return Clipping(
        columns, d, loss, problem.n_outputs, row_squared, 0, weight, derivative_bound, target_mean=target_mean
    )


def _squared_in_lattice(bound: float) -> int:
    """The square of a bound in lattice units."""
    return max(1, math.floor((bound * ONE) ** 2))


def screen_columns(
    plan: SparsePlan, releases: Releases, target_mean: int, start: FloatArray, size: float
) -> tuple[IndexArray | None, bool]:
    """Columns kept by screening (None: all), and whether the selection is final: largest noisy correlations.

    Gumbel noise for clipped entries grows with the number of columns kept, Gaussian noise for clipped rows does
    not. Which one is smaller depends on how much of a row the clip of its entries keeps, of which the median is
    released. A variable has the largest correlation of its columns, and all of these are kept.
    """
    strategy, d = plan.strategy, plan.problem.n_features
    numbers = None if plan.variables is None else np.array(plan.variables, dtype=np.intp)
    n_choices = d if numbers is None else int(numbers.max()) + 1
    k = strategy.n_screened
    if k is None:
        return None, False
    derivative_bound, unit = TUNING.screening_clip * size if releases.private else 16.0, mean_unit(plan, start)
    if plan.log_link:
        largest = plan.loss_at(1.0, unit).lipschitz(math.inf)
        derivative_bound = min(LEAST_SKEWED_CLIP * size, largest) if releases.private else largest
    loss, norm = plan.loss_at(derivative_bound, unit), plan.row_bound
    if norm is None:
        norms, what = tasks.RowNorms(loss, None, one_pass=True), "the median row norm"
        norm = releases.row_norm(what, TUNING.norm_share, norms, math.sqrt(d), ceiling=_ceiling(plan, d))
    entry = min(TUNING.entry_clip * norm / math.sqrt(d), 1.0) if releases.private else 1.0
    what = "the median share of its squared norm that a row keeps when its entries are clipped"
    shares, least = tasks.KeptShares(loss, entry), TUNING.least_kept
    kept = releases.quantile(what, TUNING.clipped_share, shares, least, 1.0, noiseless=lambda: 1.0)
    share, more = strategy.screening_share, max(k, COLUMNS_PER_NONZERO * strategy.n_nonzero)

    def gumbel_is_smaller(n_kept: int) -> bool:
        # Without noise correlations of entries as they are decide; and for very many columns rounding costs too much.
        if not releases.private or not releases.can_select(share, n_kept):
            return not releases.private
        return kept * norm > TUNING.gumbel_margin * TUNING.gumbel_deviation * entry * math.sqrt(n_kept)

    final = strategy.method == "one-shot"
    if not final and kept < TUNING.few_entries and plan.chooses_n_nonzero:
        # Texts and the like: hardly any column can be told from noise, and many together predict well.
        k, share, final = min(MOST_CHOSEN, max(n_choices // 2, 1)), TUNING.share_of_many, True
    elif not final and kept < TUNING.few_entries and n_choices > 3 * more and not gumbel_is_smaller(more):
        k, share = more, TUNING.share_of_few
    if gumbel_is_smaller(k):
        clipping = _clip_records(plan, None, 1.0, derivative_bound, ONE, target_mean, unit)
        weight = ONE if plan.problem.n_outputs == 1 else 2 * ONE
        correlations = tasks.EntryCorrelationSum(clipping, start, entry)
        what = f"{k:,} of {d:,} columns" if numbers is None else f"{k:,} of {n_choices:,} variables"
        places = releases.largest_correlations(what, share, correlations, k, ONE, weight, numbers)
        return np.sort(places) if numbers is None else np.flatnonzero(np.isin(numbers, places)), final
    what = f"correlations of {d:,} columns with the target"
    weight, noise = releases.noise(loss, _squared_in_lattice(norm), what, share, plan.problem.n_outputs * d)
    clipping = _clip_records(plan, None, norm, derivative_bound, weight, target_mean, unit)
    sums = releases.noisy_sums(tasks.CorrelationSum(clipping, start), noise)
    if numbers is None:
        return heaviest_columns(sums, k), final
    return np.flatnonzero(np.isin(numbers, heaviest_variables(sums, numbers, k))), final


def column_centre(plan: SparsePlan, releases: Releases, columns: IndexArray | None, mu: float) -> FloatArray | None:
    """Noisy means of the columns where they are clearly not zero, in lattice units; None where noise would prevail."""
    problem = plan.problem
    d = problem.n_features if columns is None else columns.size
    # Squared norms of centred rows are exact for so many columns only.
    enough = problem.n_records * mu >= TUNING.enough_to_centre * math.sqrt(d)
    if not problem.intercept or d > TUNING.most_centred or not enough:
        return None
    # A public bound holds for rows over all columns.
    norm = plan.row_bound if columns is None else None
    if norm is None:
        norms = tasks.RowNorms(plan.loss_at(1.0), columns)
        what = "the median row norm before rows are centred"
        norm = releases.row_norm(what, TUNING.centre_norm_share, norms, math.sqrt(d), ceiling=_ceiling(plan, d))
    clipping = _clip_records(plan, columns, norm, 1.0, ONE)
    what = f"the means of {d:,} columns"
    means, deviation = releases.row_mean(what, TUNING.centre_share, clipping, problem.n_records)
    means[np.abs(means) < TUNING.clear_column * deviation] = 0.0
    return np.clip(np.rint(means), -ONE, ONE)


# ---- The default model, release by release.
# Everything that depends on the data is a sum over records, released with noise before it is used. Every release draws
# on one privacy filter, and later ones may depend on earlier ones.


@dataclass(frozen=True, slots=True)
class SparseResult:
    """What a fit releases: coefficients in mapped units, the intercept last, steps, releases, and diagnoses.

    ``noise`` are standard deviations of the noise in the coefficients of the columns, NaN for others; None where its
    law is not known.
    """

    coefficients: FloatArray
    n_steps: int
    releases: tuple[Release, ...]
    diagnoses: tuple[Diagnosis, ...] = ()
    noise: FloatArray | None = None


@one_thread()
def run_sparse(plan: SparsePlan, source: Source, stream: Stream) -> SparseResult:
    """Spend the budget of the plan on the records of a source, which holds the mapped target."""
    budget = plan.open_filter()
    run = SparseRun(plan, source, stream, budget)
    model, diagnoses = run.fit(), run.releases.diagnoses
    releases = list_spends(budget.spent(), diagnoses=diagnoses)
    return SparseResult(spread_coefficients(plan, model), model.n_steps, releases, diagnoses, run.noise)


def spread_coefficients(plan: SparsePlan, model: ColumnModel) -> FloatArray:
    """The coefficients of a model in mapped units, over all features and the intercept."""
    columns = slice(plan.problem.n_features) if model.columns is None else model.columns
    coefficients = np.zeros((plan.problem.n_outputs, plan.problem.n_features + 1))
    coefficients[:, columns] = model.weights
    if plan.problem.intercept:
        coefficients[:, -1] = model.constants + model.target_mean / ONE
    if model.centre is not None:
        coefficients[:, -1] -= model.weights @ model.centre / ONE
    return coefficients


class SparseRun:
    """One fit of the default model to the records of a source, paid for by a privacy filter."""

    def __init__(self, plan: SparsePlan, source: Source, stream: Stream, budget: PrivacyFilter) -> None:
        self.plan, self._budget = plan, budget
        self.releases = Releases(budget, plan.problem.relation, source, stream.spawn("releases"))
        source = count_rows(plan, self.releases, clusters=False)
        self.descent = Descent(plan, source, self.releases, stream, budget.mu)
        self.noise: FloatArray | None = None

    def fit(self) -> ColumnModel:
        """Spend the budget, and return the model."""
        self.plan = plan = count_weights(self.plan, self.releases, TUNING.weight_share)
        releases, self.descent = self.releases, replace(self.descent, plan=plan)
        if plan.strategy.method == "constant":
            return self._constant(1.0)
        target_mean, start = release_target_mean(plan, releases, self._budget.mu)
        unit = mean_unit(plan, start)
        size = residual_size(plan, releases, target_mean, self._budget.mu, unit)
        columns, final = self._columns(target_mean, start, size)
        centre = column_centre(plan, releases, columns, self._budget.mu)
        n_columns = plan.problem.n_features if columns is None else columns.size
        weights = np.zeros((plan.problem.n_outputs, n_columns))
        model = ColumnModel(columns, centre, weights, start, target_mean, size, unit=unit)
        descent = self.descent
        recalibration = recalibration_share(plan, self._budget.mu)
        if plan.strategy.method == "two-phase" and not final:
            phase = TUNING.dense_selection_share if plan.strategy.n_screened is None else TUNING.selection_share
            share = phase * (self._budget.remaining - (recalibration + TUNING.size_share * plan.chooses_n_nonzero))
            model = descent.run(model, share, "selection phase", selects=True)
            if plan.chooses_n_nonzero:
                model = choose_size(descent, model, start)
                if not model.n_columns:
                    return self._constant(size, ", as no column is kept")
            else:
                model = choose_columns(plan, model, plan.strategy.n_nonzero)
        few = plan.few_passes
        found = descent.run_few(model, self._budget.remaining - recalibration, "estimation phase") if few else None
        comparison = 0.0 if found is not None else shrinkage_share(plan, self._budget.mu)
        if found is None:
            name = "estimation phase" if not few else "estimation phase in many steps"
            found = descent.run(model, self._budget.remaining - comparison - recalibration, name)
        model = found
        descended = model.weights
        if comparison:
            model = choose_shrinkage(descent, model, comparison)
        if recalibration:
            model = recalibrate(descent, model, self._budget.remaining, start)
        self.noise = self._noise_of(model, descended)
        return model

    def _noise_of(self, model: ColumnModel, descended: FloatArray) -> FloatArray | None:
        """The deviations of the noise in the weights of a model, which were others at the end of the descent.

        What shrinks or stretches a weight does so to its noise.
        """
        if model.noise is None:
            return None
        kept = np.divide(np.abs(model.weights), np.abs(descended), out=np.ones_like(descended), where=descended != 0.0)
        noise = np.full((descended.shape[0], self.plan.problem.n_features), np.nan)
        noise[:, slice(None) if model.columns is None else model.columns] = (
            model.noise.deviations(model.n_columns) * kept
        )
        return noise

    def _columns(self, target_mean: int, start: FloatArray, size: float) -> tuple[IndexArray | None, bool]:
        """Columns that go on, None for all, and whether they are already those of the model."""
        if self.plan.columns is not None:
            return np.array(self.plan.columns, dtype=np.intp), True
        return screen_columns(self.plan, self.releases, target_mean, start, size)

    def _constant(self, size: float, when: str = "") -> ColumnModel:
        """No column: the budget goes to the mean of the target."""
        plan = self.plan
        constants = release_constant(plan, self.releases, self._budget.remaining, when=when)
        weights = np.zeros((plan.problem.n_outputs, 0))
        return ColumnModel(np.zeros(0, dtype=np.intp), None, weights, constants, size=size)
