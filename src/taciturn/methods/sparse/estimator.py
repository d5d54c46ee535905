"""The default: a sparse linear model that finds its own clips, columns and steps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from taciturn.core.errors import ParameterError, WeakBudgetWarning
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import is_classifier
from taciturn.core.validation import (
    FloatArray,
    Invalid,
    check_choice,
    check_integer,
    check_positive,
    check_real,
    check_truth,
)
from taciturn.data.records import Measures, names_of_columns
from taciturn.data.target import DEFAULT_X_BOUND, NumberMap, positive_target
from taciturn.engines.interface import OpenTable, Source, partitionwise
from taciturn.methods import clipped_records
from taciturn.methods.base import (
    NOISE,
    PrivateClassifier,
    PrivateLinearModel,
    PrivateRegressor,
    PublicFacts,
    number_or_auto,
    warn_of_default_bounds,
    warn_of_weak_budget,
)
from taciturn.methods.diagnostics import warn_of_diagnoses
from taciturn.methods.families import FAMILIES, Family
from taciturn.methods.inference.plan import HiddenByNoiseError, InferencePlan, plan_inference, plan_tall
from taciturn.methods.inference.run import InferenceResult, run_inference
from taciturn.methods.inference.summary import FIXED_COLUMNS, INFERRED, InferringModel, hidden_by_noise
from taciturn.methods.options import Auto, FamilyLoss, NonzeroCount, PersonWeight, SelectedUnit, Strategy
from taciturn.methods.plain import Response
from taciturn.methods.sparse.plan import METHODS, SparsePlan, plan_sparse
from taciturn.methods.sparse.run import SparseResult, run_sparse
from taciturn.methods.sparse.variables import find_places, variables_of_groups, variables_of_names
from taciturn.privacy import mechanisms
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.claim import Release

# Beyond these a clip of mapped residuals, which lie in [-2, 2], does nothing, or leaves nothing.
_LEAST_CLIP, _MOST_CLIP = 2.0**-16, 16.0


SUM_OVER_ROWS = (
    "sums over rows: each row of a person counts, and the rows of a person with very many of them are weighted down "
    "together"
)
"""What is estimated where persons count by their rows, for the certificate."""

ALL_ROWS_GIVEN = (
    "of a person derivatives have mean zero given all of its rows and their number, which is untrue with lagged "
    "outcomes and with numbers of visits that go along with the outcome"
)
"""What intervals rest on where a record is a person, for the certificate."""

_Plan: TypeAlias = SparsePlan | InferencePlan
_Result: TypeAlias = SparseResult | InferenceResult


class SparseModel(InferringModel, PrivateLinearModel):
    """The default model: what regressor and classifier share."""

    n_nonzero: int | NonzeroCount
    select: SelectedUnit
    groups: Any
    columns: Any
    method: Strategy
    row_bound: float | Auto
    weight_bound: float | None
    person_weight: PersonWeight

    persons_refused: ClassVar[str | None] = None
    partitions_refused: ClassVar[str | None] = None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        self._require_delta()
        self._require_public_count()
        check_choice(METHODS, method=self.method)
        if not isinstance(self.n_nonzero, str):
            check_integer(1, n_nonzero=self.n_nonzero)
        else:
            check_choice(("auto", "all"), "a whole number >= 1", n_nonzero=self.n_nonzero)
            if self.n_nonzero == "auto" and self.method == "one-shot":
                raise ParameterError(
                    "method", "one-shot", "two-phase or auto for a number of features that is chosen", "give n_nonzero"
                )
        if self.weight_bound is not None:
            check_positive(weight_bound=self.weight_bound)
        if number_or_auto(row_bound=self.row_bound) is not None:
            check_real(self._x_bound / 64.0, math.inf, closed="left", row_bound=self.row_bound)
        check_choice(("columns", "variables"), select=self.select)
        check_choice(("mean", "sum"), person_weight=self.person_weight)
        self._check_groups()
        self._check_inference()

    def fit(self, X: Any, y: Any = None, persons: Any = None, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit the model: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            The features; an open table has its target, persons, weights and exposures with it.
        y : array-like of shape (n_samples,)
            The target: numbers for a regressor, labels of any type for a classifier. None for an open table.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together, and each person counts once. A row without a key is a null row. None:
            every row is a record of its own.
        sample_weight : array-like of shape (n_samples,), default=None
            By how much the loss of each row counts, from 0 to ``weight_bound``. **A row's weight must be a function of
            that row and of public facts alone**, as inverse sampling probabilities are; raked, calibrated, normalised
            or estimated weights are not, and void the guarantee. A row without a usable weight is treated as
            ``invalid`` says. None: every row counts the same.
        exposure : array-like of shape (n_samples,), default=None
            For how long, or of how many, each count is: the mean is the exposure times that of an exposure of one.
            From 0 to ``exposure_bound``, under a log link. A row with an exposure of 0 adds nothing.

        Returns
        -------
        self : object
            The fitted model.
        """
        return self._fit(X, y, persons, sample_weight, exposure)

    @property
    def _largest_exposure(self) -> float | None:
        """The public bound on exposures; None where the mean has none."""
        return None

    def _measures(self, X: Any, sample_weight: Any, exposure: Any) -> Measures | None:
        stated = isinstance(X, OpenTable)
        if stated:
            X.add_measures(sample_weight, exposure)
        weighted = X.has_weight if stated else sample_weight is not None
        exposed = X.has_exposure if stated else exposure is not None
        if exposed and self._largest_exposure is None:
            raise ParameterError(
                "exposure_bound", None, "a public upper bound on exposures, for a log link", "give the largest there is"
            )
        weight_bound = self._bound_of("weight_bound")
        if weighted and weight_bound is None:
            warn_of_default_bounds("weight_bound")
        if not weighted and not exposed:
            return None
        return Measures(
            (DEFAULT_X_BOUND if weight_bound is None else float(weight_bound)) if weighted else None,
            self._largest_exposure if exposed else None,
        )

    def _check_table(self, table: OpenTable) -> None:
        super()._check_table(table)
        if self.inference and not table.has_row_order:
            raise ParameterError(
                "inference",
                True,
                "a table whose rows have an order that lasts, since halves of the rows are taken",
                "write it as Parquet and open that, or state a unique key of a table in a database, &key=",
            )

    def _check_groups(self) -> None:
        """Raise ParameterError for groups of another form, or that nothing would be chosen by."""
        if self.groups is None:
            return
        if self.select != "variables":
            raise ParameterError("groups", self.groups, 'None with select="columns"', 'set select="variables"')
        listed = not isinstance(self.groups, str) and np.iterable(self.groups)
        if not listed or any(isinstance(group, str) or not np.iterable(group) for group in self.groups):
            raise ParameterError("groups", self.groups, "lists of places or names, or None", "pass a list of lists")

    def _check_inference(self) -> None:
        """Raise ParameterError for a parameter that no fit could use."""
        check_truth(inference=self.inference)
        check_real(0.5, 1.0, closed="left", confidence_level=self.confidence_level)
        if self.columns is not None and (isinstance(self.columns, str) or not np.iterable(self.columns)):
            raise ParameterError("columns", self.columns, "a list of places or names, or None", "pass a list")

    def _names(self, X: Any) -> Any:
        """The names of the features of a table, None where it has none."""
        return X.names if isinstance(X, OpenTable) else names_of_columns(X)

    def _fixed_columns(self, X: Any, n_features: int) -> tuple[int, ...] | None:
        """The columns that the caller fixed, by their places in increasing order."""
        if self.columns is None:
            return None
        places = find_places("columns", self.columns, partial(self._names, X), n_features)
        if not places or len(set(places)) < len(places):
            raise ParameterError("columns", self.columns, "at least one column, and each of them once", "change it")
        return tuple(sorted(places))

    def _variables(self, X: Any, n_features: int) -> tuple[int, ...] | None:
        """For each feature the number of its variable; None where features are chosen one by one."""
        if self.select == "columns":
            return None
        names = partial(self._names, X)
        groups = getattr(X, "groups", None) if self.groups is None else self.groups
        if groups is not None:
            return variables_of_groups(groups, names, n_features)
        known = names()
        if known is None:
            raise ParameterError(
                "groups",
                None,
                "groups of columns, as X has no names that would tell them",
                "list the places of the columns of each category, or pass a table with names",
            )
        return variables_of_names([str(name) for name in known])

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit to a dense or sparse table calls, so that a failure to do so spends nothing."""
        mechanisms.warm_up()
        clipped_records.warm_up(sparse=sparse, n_classes=n_classes if is_classifier(self) else 0)

    def _public_facts(self, X: Any, y: Any) -> PublicFacts:
        facts = super()._public_facts(X, y)
        columns = self._fixed_columns(X, facts.n_features)
        if columns is None:
            return replace(facts, variables=self._variables(X, facts.n_features))
        return replace(facts, columns=columns, assumptions=(*facts.assumptions, FIXED_COLUMNS))

    def check_table(self, X: Any, y: Any, persons: Any = None) -> None:
        """Raise ParameterError where public facts of a table refuse a fit to it; a fit does so by itself."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeakBudgetWarning)
            X, y, persons = self._open(X, y, persons)
            facts, _ = self._person_facts(self._public_facts(X, y), persons)
            self._plan(facts)

    def _plan(self, facts: PublicFacts) -> _Plan:
        try:
            return self.unadvised_plan(facts)
        except HiddenByNoiseError as refusal:
            # Here rather than above, since forecasts make plans.
            from taciturn.methods.forecast.advice import remedy

            advice = remedy(self, facts)
            raise (refusal if advice is None else refusal.advised(advice)) from None

    def unadvised_plan(self, facts: PublicFacts) -> _Plan:
        """The plan of a fit; where public facts refuse it, without a forecast of what would help."""
        problem = self._problem(facts)
        row_bound = number_or_auto(row_bound=self.row_bound)
        make = plan_inference if self.inference else plan_sparse
        plan = make(
            Budget(self.epsilon, self.delta),
            problem,
            n_nonzero=self._asked(facts.n_features),
            method=self.method,
            row_bound=None if row_bound is None else row_bound / self._x_bound,
            residual_clip=self._given_clip(),
            huber=self._huber,
            columns=facts.columns,
            weighted=facts.weighted or self._counts_rows(facts),
            counts_rows=self._counts_rows(facts),
            exposed=facts.exposed,
            variables=facts.variables,
        )
        if isinstance(plan, SparsePlan) and self.method == "auto" and plan.regression and not plan.log_link:
            plan = plan_tall(plan) or plan
        start = plan.start if isinstance(plan, InferencePlan) else plan
        if start.problem.n_records < start.enough_records:
            enough = start.enough_records * (2 if isinstance(plan, InferencePlan) and plan.split else 1)
            warn_of_weak_budget(self.epsilon, problem.n_records, enough, facts.unit)
        return plan

    def _counts_rows(self, facts: PublicFacts) -> bool:
        """Whether persons count by their rows."""
        return facts.unit == "person" and self.person_weight == "sum"

    def _asked(self, n_features: int) -> int | None:
        """The number of nonzero coefficients that was asked for, None where it is chosen."""
        if isinstance(self.n_nonzero, str):
            return n_features if self.n_nonzero == "all" else None
        return int(self.n_nonzero)

    @property
    def _huber(self) -> bool:
        """Whether the loss is Huber's."""
        return getattr(self, "loss", None) == "huber"

    def _given_clip(self) -> float | None:
        """The size of a mapped residual, where one is given."""
        return None

    def _run(self, plan: _Plan, source: Source, stream: Stream) -> _Result:
        if isinstance(plan, InferencePlan):
            return run_inference(plan, source, stream)
        return run_sparse(plan, source, stream)

    def _released(self, plan: Any, outcome: _Result) -> Iterable[Release]:
        return outcome.releases

    def _described(self, plan: _Plan, facts: PublicFacts) -> dict[str, Any]:
        start = plan.start if isinstance(plan, InferencePlan) else plan
        described = super()._described(plan, facts) | {
            "n_nonzero": self.n_nonzero if isinstance(self.n_nonzero, str) else int(self.n_nonzero),
            "row_bound": self.row_bound,
            "method": start.strategy.method,
            "reason": start.strategy.reason,
            "prices": "every release is listed as the Gaussian one that costs as much",
        }
        if self._counts_rows(facts):
            described["estimand"] = SUM_OVER_ROWS
        if facts.columns is not None:
            described["columns"] = list(facts.columns)
        if facts.measures is not None:
            bounds = {"weight_bound": facts.measures.weight_bound, "exposure_bound": facts.measures.exposure_bound}
            described |= {name: bound for name, bound in bounds.items() if bound is not None}
        if facts.variables is not None:
            described |= {"select": self.select, "variables": max(facts.variables) + 1}
        if isinstance(plan, InferencePlan) and not plan.errors:
            described |= {
                "method": "whitened",
                "reason": f"{start.problem.n_records:,} records are many for its columns",
            }
        elif isinstance(plan, SparsePlan) and plan.few_passes:
            described |= {
                "method": "few passes",
                "reason": f"{plan.problem.n_records:,} records are many for its columns",
            }
        elif isinstance(plan, InferencePlan):
            described["inference"] = "two halves of the records" if plan.split else "all records"
            given_rows = f"; {ALL_ROWS_GIVEN}" if facts.unit == "person" else ""
            described["intervals"] = plan.conditions + given_rows
        return described

    def _store(self, plan: _Plan, facts: PublicFacts, outcome: _Result) -> None:
        super()._store(plan, facts, outcome.coefficients)
        self.n_iter_ = outcome.n_steps
        for name in (*INFERRED, NOISE):
            vars(self).pop(name, None)
        noise = outcome.noise if isinstance(outcome, SparseResult) else None
        if noise is not None:
            setattr(self, NOISE, (noise * (self._target_unit / self._x_bound)).reshape(self.coef_.shape))
        if isinstance(plan, InferencePlan) and plan.errors and isinstance(outcome, InferenceResult):
            self._set_inference(plan, outcome, self._target_unit / self._x_bound, self._target_unit)

    def _advice(self) -> str:
        found, public = self.inference_, self.certificate_.public
        if found.reason is None or not hidden_by_noise(found) or math.isinf(self.epsilon) or "records" not in public:
            return ""
        from taciturn.methods.forecast.advice import advice_after

        labels = np.asarray(self.classes_) if is_classifier(self) else None  # type: ignore[attr-defined]
        columns = None if found.split else tuple(found.columns.tolist())
        facts = PublicFacts(None, int(public["records"]), self.n_features_in_, labels, columns=columns)
        return advice_after(self, facts)

    def _warn_of_releases(self, outcome: _Result) -> None:
        warn_of_diagnoses(self, outcome.diagnoses)


@dataclass(kw_only=True, eq=False, repr=False)
class SparseRegressor(PrivateRegressor, SparseModel):
    r"""Sparse linear regression: the default where a target is a number.

    .. math:: \min_{\|w\|_0 \le k,\, b} \; \sum_i \bigl(x_i^\top w + b - y_i\bigr)^2

    by private gradient descent whose clips open as the budget grows, so that ``coef_`` and ``intercept_`` converge to
    the least-squares coefficients on their columns; without privacy they are these. With ``loss="huber"`` residuals
    beyond ``residual_clip`` count as if they were that large at every budget, and the limit is Huber's M-estimate: for
    targets with errors in their tails, whose mean is not of interest. With ``loss="poisson"`` or ``"gamma"`` the
    logarithm of the mean is linear, for counts and for positive amounts: :math:`\sum_i e^{z_i} - y_i z_i` or
    :math:`\sum_i z_i + y_i e^{-z_i}` with :math:`z_i = x_i^\top w + b` is minimised, and ``predict`` gives means.

    Strategies follow from public facts. *Whitened*: with very many records per column, and nothing to choose, a few
    Newton steps in coordinates in which columns are uncorrelated, as with ``inference=True``; collinear columns get the
    coefficients of least squares then. *Dense*: one descent on all columns. *Two-phase*: a selection phase on all, or
    on columns that noisy correlations keep, chooses columns, and an estimation phase fits these alone. *One-shot*:
    correlations choose. *Constant*: too few records for any column. In the end slope and constant are recalibrated.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released, each with its price on the certificate: the mean of
    the target, medians of magnitudes and row norms, columns or correlations, column means, Gram matrices, noisy
    gradients, moments of margins and residuals, and with ``n_nonzero="auto"`` k itself. Weights add their sum,
    exposures their mean, and ``person_weight="sum"`` a quantile of the numbers of rows of persons. Sensitivities:
    ``data.sensitivity`` (``jointly_clipped_sum``, ``fixed_point_sum``, ``gram_matrix``, ``quantile_scores``,
    ``proposal_scores``, ``loss_differences``). Later releases depend on earlier ones; prices are squared Gaussian
    parameters and never add up to more than the budget's (``accounting.filter`` has the theorem). Public: the numbers
    of features and of records (``n_public`` under add-remove) and all parameters.

    Parameters
    ----------
    %(epsilon)s
        Then clipping is not active, and each phase makes 500 steps.
    %(gaussian_budget)s
    %(y_bounds)s
    %(sparse)s
    loss : {"squared", "huber", "poisson", "gamma"}, default="squared"
        "squared": least squares. "huber": residuals beyond ``residual_clip`` count as if they were that large, and
        ``coef_`` estimates the coefficients of Huber's loss with that threshold, which differ from least squares
        where errors are skewed or long-tailed. "poisson": counts, with ``y_bounds=(0, most)``; exponentials of
        ``coef_`` are rate ratios. "gamma": positive amounts, with ``y_bounds=(least, most)``; they are ratios of means.
    %(row_bound_median)s
        Rows of columns that were selected privately get quantiles of their own in any case.
    residual_clip : float or "auto", default="auto"
        How large residuals typically are, in the units of y: the threshold of the Huber loss, or what clips of the
        squared loss are multiples of, which grow with the budget. "auto": the private median of the target's distance
        from its mean, for the squared loss measured again at a first fit.
    %(fit_intercept)s
        The columns and the target are centred too.
    %(weight_bound)s
    %(person_weight)s
    exposure_bound : float, default=None
        Public upper bound on exposures, which are trimmed to it; ``fit(..., exposure=...)`` needs it. Predictions are
        then means of an exposure of one.
    %(inference)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_regressor_attributes)s
    %(inference_attributes)s

    Warns
    -----
    WeakBudgetWarning
        Where the number of records times the Gaussian parameter of the budget is below 40: public facts say that the
        fit may be worse than a constant.

    References
    ----------
    Dong, Roth and Su, *Gaussian differential privacy* (2022), for the accounting. Akaike, *A new look at the
    statistical model identification* (1974). Fan and Lv, *Sure independence screening for ultrahigh dimensional feature
    space* (2008). Platt, *Probabilistic outputs for support vector machines* (1999), for recalibration.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 200))
    >>> y = 0.5 * X[:, 2] - 0.3 * X[:, 11]
    >>> model = SparseRegressor(x_bound=1.0, y_bounds=(-1, 1), n_nonzero=2, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [2, 11]
    """

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    n_nonzero: int | NonzeroCount = "auto"
    select: SelectedUnit = "columns"
    groups: Any = None
    method: Strategy = "auto"
    loss: FamilyLoss = "squared"
    row_bound: float | Auto = "auto"
    residual_clip: float | Auto = "auto"
    fit_intercept: bool = True
    weight_bound: float | None = None
    person_weight: PersonWeight = "mean"
    exposure_bound: float | None = None
    columns: Any = None
    inference: bool = False
    confidence_level: float = 0.95
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_choice(tuple(FAMILIES), loss=self.loss)
        if self.exposure_bound is not None:
            check_positive(exposure_bound=self.exposure_bound)
            if not self._family.log_link:
                raise ParameterError(
                    "exposure_bound", self.exposure_bound, f"None for loss={self.loss!r}", "leave it out"
                )
        if self._family.log_link and number_or_auto(residual_clip=self.residual_clip) is not None:
            raise ParameterError("residual_clip", self.residual_clip, f"auto for loss={self.loss!r}", "leave it out")
        clip = self._mapped_clip()
        if clip is not None and not _LEAST_CLIP <= clip <= _MOST_CLIP:
            low, high = _LEAST_CLIP * self._target_unit, _MOST_CLIP * self._target_unit
            raise ParameterError(
                "residual_clip", self.residual_clip, f"a number from {low:g} to {high:g}", "give one within y_bounds"
            )

    @property
    def _family(self) -> Family:
        return FAMILIES[self.loss]

    def _given_clip(self) -> float | None:
        return self._mapped_clip()

    def _loss(self, facts: PublicFacts) -> tuple[Any, int]:
        if not self._family.log_link:
            return super()._loss(facts)
        self._family.check_bounds(self._y_bounds)
        return self._family.link_loss(self._y_bounds, self._largest_exposure or 1.0), 1

    @property
    def _largest_exposure(self) -> float | None:
        bound = self._bound_of("exposure_bound") if self._family.log_link else None
        return None if bound is None else float(bound)

    @property
    def _target_unit(self) -> float:
        # Margins of a log link have no unit.
        return 1.0 if self._family.log_link else super()._target_unit

    def _target_map(self, facts: PublicFacts) -> NumberMap:
        if not self._family.log_link:
            return super()._target_map(facts)
        return NumberMap(partial(positive_target, y_bounds=self._y_bounds))

    def _set_coefficients(self, weights: FloatArray) -> None:
        if not self._family.log_link:
            super()._set_coefficients(weights)
            return
        self.coef_ = weights[0, :-1] / self._x_bound
        self.intercept_ = float(weights[0, -1])
        self.support_ = self.coef_ != 0.0

    @property
    def _response(self) -> Response:
        if not self._family.log_link:
            return super()._response
        least, most = self._family.least_mean(self.y_bounds_), self.y_bounds_[1]
        if self._largest_exposure is not None:
            # The rate of a short exposure may be large.
            least, most = least / self._largest_exposure, math.inf
        return Response((math.log(least), math.log(most)), log_link=True)

    @partitionwise
    def predict(self, X: Any) -> FloatArray:
        """Predictions in the units of y, clipped to ``y_bounds_``; means of an exposure of one, if there are any."""
        if not self._family.log_link:
            return np.clip(self._margins(X).ravel(), *self.y_bounds_)
        ends = self._response.range or (-math.inf, math.inf)
        return np.exp(np.clip(self._margins(X).ravel(), *ends))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 of the predictions, or D2, the share of the deviance that they explain, under a log link.

        It is computed from these records as it is: :func:`taciturn.private_score` adds noise.
        """
        if not self._family.log_link:
            return float(super().score(X, y, sample_weight))
        return self._family.explained_deviance(np.asarray(y, dtype=np.float64), self.predict(X), sample_weight)

    def _described(self, plan: _Plan, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"loss": self.loss, "residual_clip": self.residual_clip}


@dataclass(kw_only=True, eq=False, repr=False)
class SparseClassifier(PrivateClassifier, SparseModel):
    r"""Sparse logistic regression: the default where a target is a class, for two classes or more.

    .. math:: \min_{\|W\|_{0} \le k,\, b} \; \sum_i \ell\bigl(W x_i + b;\, y_i\bigr)

    with the logistic (two classes, one weight vector) or multinomial loss and at most k features that matter to any
    class, by private gradient descent whose clips open as the budget grows: ``coef_`` and ``intercept_`` converge to
    the maximum-likelihood coefficients on their columns, and without privacy they are these, where they exist.

    Strategies follow from public facts. *Few passes*: with very many records per column, two classes, and nothing to
    choose, six Newton steps; a descent follows if these show that labels are nearly certain. *Dense*: one descent on
    all columns. *Two-phase*: a selection phase on all, or on columns that noisy correlations keep, chooses columns, and
    an estimation phase fits these alone. *One-shot*: correlations choose. *Constant*: too few records for any column.
    In the end slope and constant are recalibrated from
    a noisy histogram of margins and labels, or the slope of several classes from noisy derivatives of the loss, so that
    probabilities are calibrated. All classes share one budget.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released, each with its price on the certificate: the shares of
    the classes, quantiles of row norms and margins, columns or correlations, column means, Gram and information
    matrices, noisy gradients, a histogram of margins and labels, sums of residuals or of derivatives of the loss by the
    slope, and with ``n_nonzero="auto"`` k itself. Weights add their sum, and ``person_weight="sum"`` a quantile of the
    numbers of rows of persons. Sensitivities:
    ``data.sensitivity`` (``jointly_clipped_sum``, ``fixed_point_sum`` or ``derivative_sum``, ``gram_matrix``,
    ``cell_counts``, ``quantile_scores``, ``proposal_scores``, ``loss_differences``). Later releases depend on earlier
    ones; prices are squared Gaussian parameters and never add up to more than the budget's (``accounting.filter`` has
    the theorem). Public: the numbers of features and of records (``n_public`` under add-remove), the classes and all
    parameters.

    Parameters
    ----------
    %(epsilon)s
        Then clipping is not active, and each phase makes 500 steps.
    %(gaussian_budget)s
    %(classes)s
    %(class_weight)s
    %(sparse)s
    %(row_bound_median)s
        Rows of columns that were selected privately get quantiles of their own in any case.
    %(fit_intercept)s
        The columns and the target are centred too.
    %(weight_bound)s
    %(person_weight)s
    %(inference)s
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s
    %(inference_attributes)s

    Warns
    -----
    WeakBudgetWarning
        Where the number of records times the Gaussian parameter of the budget is below 40: public facts say that the
        fit may be worse than a constant.

    References
    ----------
    Those of :class:`SparseRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 200))
    >>> y = np.where(X[:, 4] + X[:, 9] > 0, "ill", "well")
    >>> model = SparseClassifier(x_bound=1.0, n_nonzero=2, classes=("ill", "well"), random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [4, 9]
    """

    x_bound: float | None = None
    classes: Any = None
    class_weight: Mapping[Any, float] | None = None
    n_nonzero: int | NonzeroCount = "auto"
    select: SelectedUnit = "columns"
    groups: Any = None
    method: Strategy = "auto"
    row_bound: float | Auto = "auto"
    fit_intercept: bool = True
    weight_bound: float | None = None
    person_weight: PersonWeight = "mean"
    columns: Any = None
    inference: bool = False
    confidence_level: float = 0.95
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    @property
    def _weighs_records(self) -> bool:
        # What standard errors are made of knows the weights of records, and one loss for all classes.
        return self.inference and self.class_weight is not None

    def _measures(self, X: Any, sample_weight: Any, exposure: Any) -> Measures | None:
        measures = super()._measures(X, sample_weight, exposure)
        return Measures() if measures is None and self._weighs_records else measures
