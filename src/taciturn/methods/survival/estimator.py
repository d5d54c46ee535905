"""Hazards that are constant between public cuts, with hazard ratios of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import check_is_fitted
from taciturn.core.validation import DIFFERENT_LENGTHS, FloatArray, Invalid
from taciturn.data.records import Outcomes, read_target
from taciturn.data.survival import FollowUp, SurvivalMap, stated_cuts
from taciturn.engines.interface import Source, is_dask, partitionwise
from taciturn.methods.base import (
    Persons,
    PublicFacts,
    warn_of_default_bounds,
    warn_of_shared_bound,
    warn_of_weak_budget,
)
from taciturn.methods.families import HAZARDS
from taciturn.methods.inference.summary import INFERRED
from taciturn.methods.options import Auto, NonzeroCount, PersonWeight, SelectedUnit, Strategy
from taciturn.methods.sparse.estimator import SparseModel
from taciturn.methods.survival.curve import PUBLIC_CUTS, SurvivalCurve
from taciturn.methods.survival.plan import plan_survival
from taciturn.methods.survival.run import run_survival
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget

# Pairs of records are compared so many at a time.
_PAIRS_AT_ONCE = 1 << 22
# Predictions that differ by no more count as equal, as in scikit-survival.
_TIED = 1e-8


@dataclass(kw_only=True, eq=False, repr=False)
class SparseSurvival(SparseModel):
    r"""Hazards that are constant between public cuts, proportional in the features: the default for times to an event.

    .. math:: \min_{w,\, a} \; \sum_i \sum_j \Bigl( e_{ij} \exp(a_j + x_i^\top w) - d_{ij} (a_j + x_i^\top w) \Bigr)

    where record i is observed for a time :math:`e_{ij}` in interval j and has :math:`d_{ij}` events in it, 0 or 1: the
    likelihood of hazards :math:`\exp(a_j + x^\top w)`, and of a Poisson regression on the episodes of the records.
    ``coef_`` are the logarithms of hazard ratios, those that Cox's model estimates without a baseline. With intervals
    in which hazards change little both agree. ``coef_`` and ``baseline_hazard_`` converge to the maximum of the
    likelihood, and without privacy they are that.

    The estimate is the last of three Newton steps in whitened coordinates, from hazards that are the same for all. A
    record counts by a weight that looks at its row and at released numbers, never at its time or event.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released, each with its price on the certificate: the numbers
    of records by interval and way of exit, quantiles of row norms and of what rows can add to scores and information,
    Gram matrices, information matrices, gradients and, with ``inference``, a matrix of scores. Sensitivities:
    ``data.sensitivity`` (``cell_counts``, ``quantile_scores``, ``gram_matrix``, ``jointly_clipped_sum``). Later
    releases depend on earlier ones; prices are squared Gaussian parameters and never add up to more than the budget's
    (``accounting.filter`` has the theorem). Public: the numbers of features and of records (``n_public`` under
    add-remove), the cuts and all parameters. A record is a row, however long it is observed; its weight is at most one
    and multiplies all that it adds to sums, except to quantiles.

    Parameters
    ----------
    %(epsilon)s
        Then it is the maximum of the likelihood.
    %(gaussian_budget)s
    cuts : sequence of float, default=None
        Public times at which intervals end, positive and increasing, at most 100. The first interval begins at 0, a cut
        belongs to the interval that it ends, and follow-up ends at the last one: later times are censored there. None:
        tenths of (0, 1], with a ``DefaultBoundsWarning``.
    columns : list of int or str, default=None
        The columns of the model, by place or by name, chosen without looking at these data. None: all of them; at most
        500.
    %(weight_bound)s
    inference : bool, default=False
        Whether to estimate standard errors, intervals and p-values of the coefficients.
    confidence_level : float, default=0.95
        Of the intervals, and of the band of ``survival_curve_``.
    %(invalid)s
        A record whose time is not positive is a null record in any case.
    %(random_state)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Logarithms of hazard ratios for one unit of each feature.
    baseline_hazard_ : ndarray of shape (n_intervals,)
        Hazards in each interval where all features are zero, in events per unit of time.
    cuts_ : ndarray of shape (n_intervals,)
        The ends of the intervals.
    survival_curve_ : SurvivalCurve
        The survival of all records together, from the numbers of exits that the fit released; with weights, of what
        they stand for, with a band that is wider than it has to be.
    coef_std_error_, coef_interval_, coef_p_value_ : ndarray
        With ``inference=True``: standard errors, intervals and p-values, of shapes (n_features,) and (n_features, 2).
        NaN for columns that are not in the model and for coefficients that are not estimable; ``summary()`` says why.
    inference_ : Inference
        Likewise, all of that in one object.
    %(n_iter)s
    intercept_ : float
        Zero: the baseline hazards are in its place.
    support_ : ndarray of bool, shape (n_features,)
        Mask of the features with a nonzero coefficient.
    %(common_attributes)s

    Warns
    -----
    WeakBudgetWarning
        Where the number of records times the Gaussian parameter of the budget is below 40: public facts say that the
        fit may be worse than a hazard that is the same for all.

    References
    ----------
    Holford, *The analysis of rates and of survivorship using log-linear models* (1980). Friedman, *Piecewise
    exponential models for survival data with covariates* (1982). Cox, *Regression models and life-tables* (1972).
    Harrell et al., *Evaluating the yield of medical tests* (1982), for the concordance index.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import SparseSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 3))
    >>> death, leaves = rng.exponential(np.exp(-X[:, 0])), rng.uniform(0.5, 2.0, 20000)
    >>> y = (death <= leaves, np.minimum(death, leaves))
    >>> model = SparseSurvival(x_bound=1.0, cuts=(0.5, 1.0, 2.0), epsilon=3.0, inference=True, random_state=0).fit(X, y)
    >>> low, high = model.coef_interval_[0]
    >>> bool(low < 1.0 < high), bool(high - low < 0.3)
    (True, True)
    """

    x_bound: float | None = None
    cuts: Any = None
    columns: Any = None
    weight_bound: float | None = None
    inference: bool = False
    confidence_level: float = 0.95
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    persons_refused = "a person who is followed over time is one record"
    # All columns are kept, and baseline hazards are in the place of an intercept.
    n_nonzero: ClassVar[NonzeroCount] = "all"  # type: ignore[misc]
    method: ClassVar[Strategy] = "auto"  # type: ignore[misc]
    row_bound: ClassVar[Auto] = "auto"  # type: ignore[misc]
    fit_intercept: ClassVar[bool] = False  # type: ignore[misc]
    select: ClassVar[SelectedUnit] = "columns"  # type: ignore[misc]
    person_weight: ClassVar[PersonWeight] = "mean"  # type: ignore[misc]
    groups: ClassVar[None] = None  # type: ignore[misc]
    loss: ClassVar[str] = HAZARDS.loss

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, persons: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the model: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            The features; an open table has its times, events and weights with it.
        y : structured array, data frame, pair (event, time) or array-like of shape (n_samples,)
            Times under observation and whether they end with an event; one number per record is negative where the
            record is censored. None for an open table.
        persons : None
            Keys of persons are refused: a person who is followed over time is one record.
        sample_weight : array-like of shape (n_samples,), default=None
            By how much each record counts, from 0 to ``weight_bound``. **A row's weight must be a function of that row
            and of public facts alone**, as inverse sampling probabilities are; raked, calibrated, normalised or
            estimated weights are not, and void the guarantee. A row without a usable weight is treated as ``invalid``
            says. None: every row counts the same.

        Returns
        -------
        self : object
            The fitted model.
        """
        return self._fit(X, y, persons, sample_weight, None)

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        stated_cuts(self.cuts)

    @property
    def _cuts(self) -> tuple[float, ...]:
        """The ends of intervals: those of an open table, or tenths of (0, 1], where none are given."""
        return stated_cuts(self._bound_of("cuts"))

    def _warn_of_defaults(self, facts: PublicFacts) -> None:
        warn_of_default_bounds(*(name for name in ("x_bound", "cuts") if self._bound_of(name) is None))
        warn_of_shared_bound(self._x_bound, facts.n_features)

    def _open(self, X: Any, y: Any, persons: Any) -> tuple[Any, Any, Any]:
        y = FollowUp.of(y)
        if isinstance(y, FollowUp) and is_dask(X):
            raise DataError(
                "y: expected one dask column of times beside a dask X, which are negative where a record is censored, "
                "got times and events; make it with where(event, time, -time)."
            )
        return super()._open(X, y, persons)

    def _target_map(self, facts: PublicFacts) -> SurvivalMap:
        return SurvivalMap(self._cuts[-1])

    def _read(self, X: Any, outcomes: Outcomes, facts: PublicFacts, persons: Persons | None = None) -> Source:
        if isinstance(outcomes.y, FollowUp):
            outcomes = replace(outcomes, y=outcomes.y.signed())
        return super()._read(X, outcomes, facts, persons)

    def _plan(self, facts: PublicFacts) -> Any:
        plan = plan_survival(
            Budget(self.epsilon, self.delta),
            relation=self.relation,
            n_records=facts.n_records,
            n_features=facts.n_features,
            n_intervals=len(self._cuts),
            inference=bool(self.inference),
            columns=facts.columns,
        )
        if plan.n_step_rows < plan.enough_records:
            warn_of_weak_budget(self.epsilon, plan.n_step_rows, plan.enough_records, facts.unit)
        return plan

    def _run(self, plan: Any, source: Source, stream: Stream) -> Any:
        return run_survival(plan, self._cuts, source, stream)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        described = self._public_description(facts) | {
            "x_bound": float(self._x_bound),
            "cuts": list(self._cuts),
            "method": "hazards",
            "reason": "hazards are constant between public cuts",
            "prices": "every release is listed as the Gaussian one that costs as much",
        }
        if facts.columns is not None:
            described["columns"] = list(facts.columns)
        if facts.measures is not None:
            described["weight_bound"] = facts.measures.weight_bound
        if plan.inference:
            described |= {"inference": "all records", "intervals": plan.conditions}
        return described

    def _assumptions(self, plan: Any) -> tuple[str, ...]:
        return *super()._assumptions(plan), PUBLIC_CUTS

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        self.coef_ = outcome.coefficients / self._x_bound
        self.intercept_ = 0.0
        self.support_ = self.coef_ != 0.0
        self.cuts_, self.baseline_hazard_ = np.asarray(self._cuts), outcome.hazards
        level = float(self.confidence_level)
        self.survival_curve_ = SurvivalCurve(self.cuts_, outcome.exits, outcome.deviation, level, self.certificate_)
        self.n_iter_ = outcome.n_steps
        for name in INFERRED:
            vars(self).pop(name, None)
        if plan.inference:
            self._set_inference(plan, outcome, 1.0 / self._x_bound, 1.0)

    def _warn_of_releases(self, outcome: Any) -> None:
        """Nothing that a fit releases speaks against bounds."""

    def _outcome_in_words(self) -> str:
        return "log hazard"

    @property
    def _ratio(self) -> str:
        return HAZARDS.ratio

    @partitionwise
    def predict(self, X: Any) -> FloatArray:
        """Logarithms of hazards relative to a record whose features are all zero."""
        return self._margins(X).ravel()

    def predict_survival_function(self, X: Any, times: ArrayLike | None = None) -> FloatArray:
        """Probabilities of no event until each of some times, one row per record; None for the cuts."""
        check_is_fitted(self)
        asked = self.cuts_ if times is None else np.atleast_1d(np.asarray(times, dtype=np.float64))
        end = float(self.cuts_[-1])
        if asked.ndim != 1 or not np.all((asked >= 0.0) & (asked <= end)):
            raise ParameterError(
                "times", times, f"times from 0 to {end:g}, where follow-up ends", "leave later ones out"
            )
        ends = np.concatenate(([0.0], self.cuts_))
        cumulative = np.concatenate(([0.0], np.cumsum(self.baseline_hazard_ * np.diff(ends))))
        with np.errstate(over="ignore"):
            ratios = np.exp(self.predict(X))
        survival: FloatArray = np.exp(-np.outer(ratios, np.interp(asked, ends, cumulative)))
        return survival

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance index of the predictions, 0.5 for a constant; not private, as it reads the data.

        Of pairs in which one record has its event while the other is observed, the share in which the former has the
        higher hazard; equal hazards count one half.
        """
        risks, given = np.asarray(self.predict(X), dtype=np.float64), FollowUp.of(y)
        signed, _ = read_target(given.signed() if isinstance(given, FollowUp) else given, invalid="raise", numeric=True)
        if signed.size != risks.size:
            raise DataError(f"X or y: {DIFFERENT_LENGTHS}.")
        return concordance(risks, signed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def concordance(risks: FloatArray, signed: FloatArray) -> float:
    """Harrell's concordance index of risks and signed times; NaN where no pair can be compared."""
    times, n_pairs, n_right = np.abs(signed), 0.0, 0.0
    with_event = np.flatnonzero(signed > 0.0)
    step = max(1, _PAIRS_AT_ONCE // max(signed.size, 1))
    for start in range(0, with_event.size, step):
        own = with_event[start : start + step]
        # At equal times a record without the event was observed longer.
        later = (times > times[own][:, None]) | ((times == times[own][:, None]) & (signed < 0.0))
        differences = risks[own][:, None] - risks
        tied = np.abs(differences) <= _TIED
        n_pairs += float(later.sum())
        n_right += float((later & ~tied & (differences > 0.0)).sum()) + 0.5 * float((later & tied).sum())
    return n_right / n_pairs if n_pairs else float("nan")
