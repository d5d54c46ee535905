"""The base of every estimator: parameters, representation, the stages of a fit, and prediction."""

from __future__ import annotations

import inspect
import io
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from numbers import Integral, Real
from types import FrameType
from typing import Any, ClassVar, Protocol, Self
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax

from taciturn.charts import Markup, card, element, format_number, format_odds_estimate, table
from taciturn.core.errors import (
    BudgetExceededError,
    DataError,
    DefaultBoundsWarning,
    ParameterError,
    UnaccountedSearchWarning,
    WeakBudgetWarning,
    WeakGuaranteeWarning,
    log_phase,
)
from taciturn.core.guard import Guarded, calling_frames, warn_caller
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import BaseEstimator, ClassifierMixin, RegressorMixin, check_is_fitted, is_classifier
from taciturn.core.validation import (
    NO_RECORDS,
    AnyArray,
    BoolArray,
    FloatArray,
    Invalid,
    NumberArray,
    check_choice,
    check_delta,
    check_epsilon,
    check_integer,
    check_positive,
    check_truth,
    check_x_bound,
)
from taciturn.data.persons import PersonKeys, column_of_keys, read_persons
from taciturn.data.records import (
    PUBLIC_LABELS,
    Measures,
    Outcomes,
    admission_assumptions,
    check_invalid,
    check_lengths,
    read_records,
    read_table,
    table_shape,
)
from taciturn.data.sensitivity import MOST_PRIVATE_ROWS, Relation, check_public_count, check_relation, public_rows
from taciturn.data.survival import SurvivalMap
from taciturn.data.target import DEFAULT_X_BOUND, LabelMap, NumberMap, check_classes, numeric_target, stated_y_bounds
from taciturn.engines.interface import (
    ENCODER,
    ONE_PARTITION,
    ArraySource,
    BlockBuilder,
    OpenTable,
    Source,
    TablePersons,
    open_arguments,
    partitionwise,
    stated_classes,
    target_labels,
)
from taciturn.losses import HuberLoss, LogisticLoss, Loss, SoftmaxLoss
from taciturn.methods.docstrings import fill
from taciturn.methods.options import Auto
from taciturn.methods.plain import Response, plain_model
from taciturn.methods.registry import list_accepting
from taciturn.methods.schedule import Problem
from taciturn.privacy.account import Account, Reservation, open_account
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import Certificate, certify, guarantee_lines, in_short
from taciturn.privacy.claim import Release
from taciturn.privacy.events import Event

# ---- Warnings before a fit, from parameters and public facts alone: no record has any part in them.

# From here on the odds of a guess about a record may change by a factor of 22,000.
_WEAK_EPSILON = 10.0

_DEFAULTS = {
    "x_bound": "the public bound on every feature value, so that cells are clipped to [-1, 1]; give x_bound, which is "
    "1.0 after BoundedScaler, PrivateScaler and TableEncoder",
    "weight_bound": "the public bound on weights, so that they are trimmed to [0, 1]; give weight_bound",
    "y_bounds": "the public range of the target, so that targets and predictions are clipped to [-1, 1]; give "
    "y_bounds=(low, high)",
    "cuts": "the public times at which intervals end, so that they are tenths of (0, 1]; give cuts in the unit of your "
    "times",
}


def warn_of_default_bounds(*missing: str) -> None:
    """Warn of each parameter, of x_bound and y_bounds, that was not given."""
    for name in missing:
        warn_caller(f"{name}=None: expected {_DEFAULTS[name]}.", DefaultBoundsWarning)


def warn_of_shared_bound(x_bound: float, n_features: int) -> None:
    """Warn of one number that bounds several columns which no scaler has given the same range, by public facts."""
    if n_features > 1 and x_bound not in (1.0, math.inf):
        warn_caller(
            f"x_bound={x_bound!r}: expected columns of about this range, as noise is in proportion to it, and columns "
            "of a smaller range get much more than they need; put a scaler with the bounds of each column before the "
            'model, BoundedScaler(bounds={"age": (18, 100), ...}), and give x_bound=1.0.',
            DefaultBoundsWarning,
        )


def warn_of_weak_budget(epsilon: float, n_records: int, enough: int, unit: str) -> None:
    """Warn that a fit of so many records may be mostly noise."""
    warn_caller(
        f"epsilon={epsilon!r}: expected {enough:,} {unit}s or more at this budget (got {n_records:,}), as fits of "
        f"fewer may be worse than a constant; raise epsilon or add {unit}s.",
        WeakBudgetWarning,
    )


def warn_of_weak_guarantee(budget: Budget, n_records: int | None, unit: str) -> None:
    """Warn of a budget that protects little; a delta of 1 / n allows to publish one of n records, chosen at random."""
    if math.isinf(budget.epsilon):
        return
    if budget.epsilon >= _WEAK_EPSILON:
        warn_caller(
            f"epsilon={budget.epsilon!r}: expected less than {_WEAK_EPSILON:g} for a guarantee that says much about "
            f"each {unit}; lower epsilon, or tell readers how weak it is.",
            WeakGuaranteeWarning,
        )
    if n_records is not None and budget.delta * n_records >= 1.0:
        warn_caller(
            f"delta={budget.delta!r}: expected less than one over the number of {unit}s ({n_records:,}), as a larger "
            f"one would allow to publish a {unit}; choose it well below, say delta={0.01 / n_records:.0e}.",
            WeakGuaranteeWarning,
        )


# ---- Searches around a private estimator: noticed from the call stack, which no record has any part in.
# A search makes copies of the estimator before it fits them. The first copy is the moment to ask what the whole will
# cost: the call on the stack states the number of fits, and plans state their prices, before anything is charged.

# Of scikit-learn: searches, cross-validation and learning curves; and selections of features by scores.
_SEARCHES = ("sklearn.model_selection.", "sklearn.feature_selection._rfe", "sklearn.feature_selection._sequential")

# What lies between a search and the copies that it makes.
_MACHINERY = ("taciturn.", "sklearn.", "joblib.", "concurrent.", "threading", "multiprocessing.")

_CONSIDERED = "considered by taciturn"
_DEFAULT_FOLDS = 5
_BISECTIONS = 12

Run = tuple[dict[str, Any] | None, int]
"""Settings of a candidate, None where its budget is not known beforehand, and how often it is fitted."""

Fit = tuple[Event, Budget, bool, int]
"""What a plan releases, its budget, whether it releases in that order, and how often it is run."""


@dataclass(frozen=True, slots=True)
class Search:
    """A call that fits copies of an estimator to X and y; ``runs`` is None where the number is not known beforehand."""

    estimator: Any
    X: Any
    y: Any
    runs: list[Run] | None

    @property
    def n_fits(self) -> int | None:
        """The number of fits; None where it is not known beforehand."""
        return None if self.runs is None else sum(count for _, count in self.runs)

    @property
    def changes_budgets(self) -> bool:
        """Whether candidates differ in what they may spend."""
        return any(settings is None or any(map(_is_budget, settings)) for settings, _ in self.runs or ())


def consider_search(part: Any) -> None:
    """Warn if the copy that is being made is for a search; raise if the account cannot pay for all of its fits.

    All fits of a search are charged in full: if the account ends before the search does, everything is spent and
    there is no model. So the first copy adds up all of its fits, and BudgetExceededError is raised before anything
    is spent.
    """
    frames = calling_frames()
    calls = [frame for frame in frames if _is_search(frame)]
    # Later copies are made by threads of a pool, when nobody's line is there to warn about any more.
    if not calls or all(_module(frame).startswith(_MACHINERY) for frame in frames):
        return
    # A search inside another is part of the outer one.
    call = calls[-1]
    search = call.f_locals.get(_CONSIDERED)
    if search is None:
        search = _search_of(call)
        _refuse_unaffordable(search)
        # On the call itself, for its later copies: when it has ended, the next call is another search.
        call.f_locals[_CONSIDERED] = search
    _warn(part, search)


def _warn(part: Any, search: Search) -> None:
    paid, n_fits = part.account is not None, search.n_fits
    if n_fits is None:
        fits = "the number of its fits is not known beforehand; "
        fits += "each is charged" if paid else "nothing keeps count of them, and they add up"
    elif paid:
        fits = f"its {n_fits} fits are charged"
    elif search.changes_budgets:
        fits = f"nothing keeps count of its {n_fits} fits, which add up"
    else:
        total = f"epsilon={n_fits * part.epsilon:.4g} and delta={n_fits * part.delta:.4g}"
        fits = f"nothing keeps count of its {n_fits} fits, which add up to at most {total} together"
    # A row more or less moves the places of the others.
    folds = "a hash of a key of each row (PredefinedSplit)" if part.relation == "add-remove" else "KFold"
    warn_caller(
        f"{type(part).__name__}: a search fits it again and again; {fits}, but scores and the choice by them are not "
        "private, nor are folds that look at labels; choose settings without these data, score with private_score, and "
        f"fold by {folds}{'' if paid else '; give an account to keep count'}.",
        UnaccountedSearchWarning,
    )


# ---- the number of fits


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_search(frame: FrameType) -> bool:
    # A fixed threshold lives beside the searches and is fitted once.
    return _module(frame).startswith(_SEARCHES) and (
        type(frame.f_locals.get("self")).__name__ != "FixedThresholdClassifier"
    )


def _search_of(call: FrameType) -> Search:
    # Here rather than above, as in the next ones: an estimator should not cost the import of searches.
    from sklearn.model_selection._search import BaseSearchCV

    given = call.f_locals
    runs, estimator = _runs_of_call(call), given.get("estimator")
    if isinstance(given.get("self"), BaseSearchCV):
        estimator = given["self"].estimator
    while runs is not None and isinstance(estimator, BaseSearchCV):
        inner = _runs_of_search(estimator)
        if inner is None or any(settings for settings, _ in runs):
            runs = None
        else:
            outer = sum(count for _, count in runs)
            runs = [(settings, outer * count) for settings, count in inner]
        estimator = estimator.estimator
    if any(isinstance(inside, BaseSearchCV) for inside in _parameters(estimator).values()):
        runs = None
    return Search(estimator, given.get("X"), given.get("y"), runs)


def _runs_of_call(call: FrameType) -> list[Run] | None:
    from sklearn.model_selection._search import BaseSearchCV

    name, given = call.f_code.co_name, call.f_locals
    if name == "fit" and isinstance(given.get("self"), BaseSearchCV):
        return _runs_of_search(given["self"])
    n_splits = _number_of_folds(given.get("cv"))
    if n_splits is None:
        return None
    if name in ("cross_val_score", "cross_validate", "cross_val_predict"):
        return [({}, n_splits)]
    if name == "permutation_test_score":
        return [({}, n_splits * (1 + given["n_permutations"]))]
    if name == "validation_curve":
        return [({given["param_name"]: value}, n_splits) for value in given["param_range"]]
    return None


def _runs_of_search(search: Any) -> list[Run] | None:
    from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV

    n_splits = _number_of_folds(search.cv)
    if n_splits is None:
        return None
    candidates: list[dict[str, Any] | None]
    if type(search) is GridSearchCV:
        candidates = list(ParameterGrid(search.param_grid))
    elif type(search) is RandomizedSearchCV:
        grids = search.param_distributions
        grids = [grids] if isinstance(grids, Mapping) else list(grids)
        n_drawn = search.n_iter
        if not any(hasattr(values, "rvs") for grid in grids for values in grid.values()):
            n_drawn = min(n_drawn, len(ParameterGrid(grids)))
        # Which of several budgets are drawn is not known beforehand.
        candidates = [None if any(map(_is_budget, chain(*grids))) else {}] * n_drawn
    else:
        return None
    runs: list[Run] = [(settings, n_splits) for settings in candidates]
    # The final fit may be that of the dearest candidate.
    return [*runs, (max(candidates, key=_asked), 1)] if search.refit else runs


def _is_budget(name: str) -> bool:
    return name.rpartition("__")[2] in ("epsilon", "delta")


def _asked(settings: dict[str, Any] | None) -> float:
    """The epsilons of a candidate together."""
    asked = (value for name, value in (settings or {}).items() if name.rpartition("__")[2] == "epsilon")
    return sum(float(value) for value in asked if isinstance(value, Real))


def _number_of_folds(cv: Any) -> int | None:
    """The number of folds that the parameter of a search states; None where the records would have to tell."""
    if cv is None:
        return _DEFAULT_FOLDS
    if isinstance(cv, Integral):
        return int(cv)
    if hasattr(cv, "get_n_splits"):
        try:
            return int(cv.get_n_splits())
        except Exception:
            # One fold for each record or group, or a splitter of the caller's that looks at the table.
            return None
    return len(cv) if hasattr(cv, "__len__") else None


# ---- what they cost


def _refuse_unaffordable(search: Search) -> None:
    """Raise BudgetExceededError if an account has not enough left for all fits of a search."""
    if search.runs is None or any(settings is None for settings, _ in search.runs):
        return
    inside = _parameters(search.estimator)
    if any(hasattr(inside.get(name), "fit") for settings, _ in search.runs for name in settings or ()):
        # Candidates that are parts themselves: what they cost is not known from the parts that they replace.
        return
    parts = {
        name: part
        for name, part in inside.items()
        if hasattr(part, "plan_for") and getattr(part, "account", None) is not None and part.epsilon != math.inf
    }
    for account in dict.fromkeys(open_account(part.account) for part in parts.values()):
        if account is not None:
            _check_account(account, search, {n: p for n, p in parts.items() if open_account(p.account) == account})


def _check_account(account: Account, search: Search, parts: dict[str, Any]) -> None:
    runs = [(settings or {}, count) for settings, count in search.runs or ()]
    n_paid, affordable = _pay(account, _fits(search, parts, runs))
    if affordable:
        return
    n_fits = len(parts) * sum(count for _, count in runs)
    dearest = max((settings for settings, _ in runs), key=_asked)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        fits = list(_fits(search, parts, [(dearest, n_fits // len(parts))], middle))
        # Some fits are refused at a small epsilon.
        affordable = len(fits) == len(parts) and _pay(account, fits)[1]
        low, high = (middle, high) if affordable else (low, middle)
    if low == 0.0:
        lower = ""
    elif len(parts) == 1 and not search.changes_budgets:
        (part,) = parts.values()
        lower = f"take at most epsilon={_rounded_down(low * part.epsilon):.3g} for each, or "
    else:
        every = "step" if len(parts) > 1 else "candidate"
        lower = f"multiply the epsilon of every {every} by {_rounded_down(low):.3g}, or "
    raise BudgetExceededError(
        f"account={account.name!r}: expected a search that what is left can pay for, got one of {n_fits} fits, of "
        f"which it can pay for {n_paid}; nothing was spent; {lower}compare fewer settings in fewer folds."
    )


def _pay(account: Account, fits: Iterable[Fit]) -> tuple[int, bool]:
    """How many fits the account could pay for, one after another, and whether these are all."""
    asked = 0

    def counted() -> Iterator[Fit]:
        nonlocal asked
        for fit in fits:
            asked += fit[-1]
            yield fit

    paid = account.payable_fits(counted())
    return paid, paid == asked


def _fits(
    search: Search, parts: dict[str, Any], runs: list[tuple[dict[str, Any], int]], share: float = 1.0
) -> Iterator[Fit]:
    """The plans of fits with a share of each epsilon, and how often each is run."""
    for settings, count in runs:
        for name, part in parts.items():
            changes = _settings_of(name, settings)
            try:
                lowered = {"epsilon": share * changes.get("epsilon", part.epsilon)}
                copy = type(part)(**(part.get_params(deep=False) | changes | lowered))
                plan = copy.plan_for(search.X, search.y)
            except (TypeError, ValueError):
                # A fit that is refused before it is charged; its own refusal says why.
                continue
            yield plan.cost, plan.budget, plan.ordered, count


def _parameters(estimator: Any) -> dict[str, Any]:
    """An estimator and everything inside of it, by the names that settings use."""
    return {"": estimator} | (estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {})


def _settings_of(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Those settings that are parameters of the part of this name."""
    prefix = f"{name}__" if name else ""
    own = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    return {key: value for key, value in own.items() if "__" not in key}


def _rounded_down(number: float) -> float:
    """Three digits, so that what is printed can be paid for."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return math.floor(number / unit) * unit


# ---- How private estimators show themselves: their budget always, and in notebooks what was released.

_ALWAYS = ("epsilon", "delta")
_MOST_ROWS = 10
_WITH_INFERENCE = "SparseRegressor and SparseClassifier with inference=True have intervals, p-values and odds ratios."


class Represented(BaseEstimator):
    """An estimator whose text names its budget, defaults too, and whose HTML shows what a fit released.

    HTML is added below scikit-learn's diagram. Everything shown is a parameter, public, or released.
    """

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        from sklearn import get_config

        if not get_config()["print_changed_only"]:
            return str(super().__repr__(N_CHAR_MAX))
        defaults = {name: known.default for name, known in inspect.signature(type(self).__init__).parameters.items()}
        shown = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name in _ALWAYS or repr(value) != repr(defaults[name])
        }
        # scikit-learn prints it, with its line breaks and its limits.
        stand_in = type(type(self).__name__, (_ChangedParameters,), {})(**shown)
        return str(BaseEstimator.__repr__(stand_in, N_CHAR_MAX))

    def __dask_tokenize__(self) -> Any:
        # dask compares dataclasses by their fields, which are the same in two fits to different data.
        written = io.BytesIO()
        pickler = pickle.Pickler(written)
        # Whether equal texts are one object depends on Python and on earlier copies.
        pickler.fast = True
        try:
            pickler.dump(vars(self))
            return type(self).__qualname__, written.getvalue()
        except Exception:
            # A function of the caller's, say; dask does the same for objects that cannot be pickled.
            return uuid4().hex

    def _repr_html_inner(self) -> str:
        diagram = str(super()._repr_html_inner())
        if not hasattr(self, "certificate_"):
            return diagram
        return diagram + card(guarantee_lines(self.certificate_), *_released(self))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


class _ChangedParameters(BaseEstimator):
    """Stands for an estimator while it is printed: scikit-learn takes all of ``**parameters`` for changed ones."""

    def __init__(self, **parameters: Any) -> None:
        self._parameters = parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self._parameters


def _released(estimator: Any) -> Iterator[Markup]:
    """Tables of what a fit left behind: coefficients, bounds, or selected features."""
    found = getattr(estimator, "inference_", None)
    if found is not None and found.reason is None:
        yield from _estimates(estimator)
    elif hasattr(estimator, "coef_"):
        yield _weights(estimator)
        yield element("p", f"No standard errors: {_WITH_INFERENCE if found is None else found.reason}")
    elif hasattr(estimator, "lower_"):
        rows = zip(_names(estimator), estimator.lower_, estimator.upper_, strict=True)
        cells = [[name, format_number(float(low)), format_number(float(high))] for name, low, high in rows]
        yield _table(("column", "lower", "upper"), cells, "bounds")
    elif hasattr(estimator, "support_"):
        chosen = [[name] for name, kept in zip(_names(estimator), estimator.support_, strict=True) if kept]
        yield _table(("selected",), chosen, f"of {estimator.n_features_in_:,} features selected")


def _weights(estimator: Any) -> Markup:
    """The weights of the prediction rule, without what only an estimate with its error can be read as."""
    stored, names = estimator.coef_, _names(estimator)
    values = np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored)
    labels = [str(label) for label in getattr(estimator, "classes_", ())]
    used = np.flatnonzero(values.any(axis=0))
    order = used[np.argsort(-np.abs(values[:, used]).sum(axis=0), kind="stable")]
    heads = labels if len(values) > 1 else ["weight"]
    columns = [[format_number(value) for value in row] for row in values[:, order].tolist()]
    subject = f" ({labels[1]} against {labels[0]})" if len(labels) == 2 else ""
    return _table(
        ("feature", *heads),
        [[names[j], *(column[place] for column in columns)] for place, j in enumerate(order)],
        f"of {len(names):,} features have a weight in the prediction rule{subject}",
        ["(intercept)", *(format_number(float(value)) for value in np.atleast_1d(estimator.intercept_))],
    )


def _estimates(estimator: Any) -> Iterator[Markup]:
    """Coefficients with intervals and p-values, a table for each class but the reference, and what is missing."""
    summary = estimator.summary()
    level = f"{100.0 * summary.inference.confidence_level:g}% interval"
    heads = ["coefficient", level, "p", *([f"{summary.ratio} ({level})"] if summary.ratio else [])]
    for k, subject in enumerate(summary.subjects):
        lines = [[name, *cells] for name, cells in zip(summary.rows, _estimate_cells(summary, k), strict=True)]
        about = f" ({subject})" if subject else ""
        yield _table(
            ("feature", *heads),
            [lines[j] for j in summary.order(k)],
            f"of {estimator.n_features_in_:,} features are in the model{about}",
            lines[-1] if summary.intercept else None,
        )
    for sentence in summary.gaps:
        yield element("p", sentence)


def _estimate_cells(summary: Any, table: int) -> Iterator[list[str]]:
    """What stands beside the names in a table of coefficients."""
    columns = summary.columns
    numbers = zip(*(columns[name][table].tolist() for name in ("coefficient", "lower", "upper", "p")), strict=True)
    for j, (mark, (value, lower, upper, p)) in enumerate(zip(summary.marks(table), numbers, strict=True)):
        # The exponential of an intercept is no ratio.
        ratio = "" if mark or j == len(summary.names) else format_odds_estimate(value, lower, upper, 1.0)
        interval = f"{format_number(lower)} to {format_number(upper)}"
        cells = [mark, "", ""] if mark else [format_number(value), interval, "<0.001" if p < 1e-3 else f"{p:.3f}"]
        yield [*cells, *([ratio] if summary.ratio else [])]


def _table(header: Sequence[str], rows: list[list[str]], what: str, last: list[str] | None = None) -> Markup:
    cut = "" if len(rows) <= _MOST_ROWS else f"; the first {_MOST_ROWS} are shown"
    return table(header, [*rows[:_MOST_ROWS], *([] if last is None else [last])], f"{len(rows):,} {what}{cut}")


def _names(estimator: Any) -> list[str]:
    """Names of the features, as scikit-learn makes them where there are none."""
    given = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if given is None else [str(name) for name in given]


# ---- The six stages of a fit: validate public facts, plan, reserve, read, run, certify.
# The base classes of models, selectors and scalers spell them out once each; a class adds its parameters, its plan and
# its runner. What a stage may see:
#
# stage     sees                                                        gives
# validate  parameters; of the table its shape, its names, and what     :class:`PublicFacts`
#           an assumption of the certificate makes public
# plan      parameters and public facts                                 mechanisms and their costs
# reserve   the cost of the plan                                        a reservation in the account, if there is one
# read      the table                                                   a source: bounded records on the lattice
# run       the plan, the source, random streams                        what is released
# certify   the plan and what was released                              a certificate
#
# Kernels are compiled between planning and reserving, so that a failure to do so spends nothing. From ``read`` on a
# reservation is not given back, whatever happens.

BOUNDS = "the bounds were chosen without looking at these data"
"""An assumption wherever bounds are parameters."""

Persons = Callable[[], PersonKeys]
"""Tells whose rows the rows of a table are."""

ESTIMAND = "means over persons: each person counts once, by the mean over its rows"
"""What is estimated where a record is a person, for the certificate."""

_ONE_KEY = "all rows about one person carry the same key, and a row without a key is about nobody"
_PUBLIC_KEYS = "the set of keys of the persons is public"


class PricedPlan(Protocol):
    """What an account needs of a plan."""

    @property
    def budget(self) -> Budget:
        """What everything together may cost."""

    @property
    def cost(self) -> Event:
        """What everything that is released costs together."""

    @property
    def ordered(self) -> bool:
        """Whether releases are made in the order in which they are listed."""


class Plan(PricedPlan, Protocol):
    """What a certificate needs of a plan."""

    @property
    def arithmetic(self) -> str:
        """Either "exact", or "float64" where a release cannot be put on a lattice."""


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What may be known of a table before a cell of it is read.

    ``n_rows`` counts null records too. It is private under add-remove and where a record is a person, and None for
    a table in partitions under add-remove, whose rows are not counted before all is reserved. ``n_records`` is the
    public number of rows or persons, or ``n_public`` under add-remove. ``labels`` are the sorted classes, None for
    a target of numbers; ``assumptions`` are what the certificate has to assume for these facts to be public.
    ``columns`` are those that the caller fixed, in increasing order (None: all may be used), and ``variables`` the
    number, from 0, of the variable of each feature (None: features are chosen one by one). ``person_column`` is
    the name of the column of keys, and ``person_digest`` a digest of their set, None under add-remove, where the
    set is private. ``measures`` are bounds on weights and exposures, None for records without any.
    """

    n_rows: int | None
    n_records: int | None
    n_features: int
    labels: AnyArray | None = None
    assumptions: tuple[str, ...] = ()
    columns: tuple[int, ...] | None = None
    variables: tuple[int, ...] | None = None
    unit: str = "record"
    person_column: str | None = None
    person_digest: str | None = None
    measures: Measures | None = None

    @property
    def weighted(self) -> bool:
        """Whether records have weights; those of an exposure of zero are zero."""
        return self.measures is not None

    @property
    def exposed(self) -> bool:
        """Whether records have exposures."""
        return self.measures is not None and self.measures.exposure_bound is not None

    @property
    def counted_rows(self) -> int:
        """Rows of a table in memory."""
        if self.n_rows is None:
            raise TypeError("the rows of this table are not counted before all is reserved")
        return self.n_rows


def person_facts(
    facts: PublicFacts, persons: Any, relation: str, n_public: int | None
) -> tuple[PublicFacts, Persons | None]:
    """Public facts with the number of persons, where a record is one, and how to tell whose rows the rows are.

    Keys are read here where their set is public, and else not before they are asked for, when all is reserved.
    """
    if persons is None:
        return facts, None
    in_partitions = isinstance(persons, TablePersons)
    read: Persons = persons.read if in_partitions else partial(read_persons, persons, facts.counted_rows)
    n_records, digest, assumed = n_public, None, (*facts.assumptions, _ONE_KEY)
    if relation != "add-remove":
        keys = read()
        if keys.n_persons == 0:
            raise DataError("persons: expected at least one key, got none; leave persons out if every row is a record.")
        n_records, digest, read = public_rows(relation, keys.n_persons, None), keys.digest, lambda: keys
        assumed = (*assumed, _PUBLIC_KEYS)
    together = (ONE_PARTITION,) if in_partitions and not persons.table.gathers_persons else ()
    described = replace(
        facts,
        n_records=n_records,
        assumptions=(*assumed, *together),
        unit="person",
        person_column=column_of_keys(persons),
        person_digest=digest,
    )
    return described, read


def check_common_parameters(
    *,
    epsilon: float,
    delta: float,
    relation: str,
    n_public: int | None,
    invalid: Invalid,
    account: Account | str | None,
    random_state: int | None,
) -> None:
    """Raise ParameterError for a value of a common parameter that nothing could be made with, whatever the data."""
    check_invalid(invalid)
    check_epsilon(epsilon=epsilon)
    check_delta(delta=delta)
    Stream.of(random_state)
    open_account(account)
    check_relation(relation)
    if n_public is not None:
        check_integer(1, n_public=n_public)


def reserve_cost(
    account: Account | str | None, plan: PricedPlan, facts: PublicFacts, *, what: str, relation: str, seeded: bool
) -> Reservation:
    """Reserve what a plan costs from an account, if there is one, after a warning about a weak guarantee."""
    budget = f"epsilon = {plan.budget.epsilon:g}, delta = {plan.budget.delta:g}, {relation}"
    number = "a private number of" if facts.n_records is None else f"{facts.n_records:,}"
    log_phase(what, "planned", f"for {budget}, {number} {facts.unit}s")
    warn_of_weak_guarantee(plan.budget, facts.n_records, facts.unit)
    opened = open_account(account)
    if opened is None:
        log_phase(what, "reserved", "nothing, as there is no account")
        return Reservation(None)
    reservation = opened.reserve(
        plan.cost,
        plan.budget,
        what=what,
        relation=relation,
        unit=facts.unit,
        n=facts.n_records,
        seeded=seeded,
        ordered=plan.ordered,
        person_column=facts.person_column,
        person_digest=facts.person_digest,
    )
    log_phase(what, "reserved", f"from account {opened.name!r}")
    return reservation


@dataclass(kw_only=True, eq=False, repr=False)
class Budgeted:
    """The parameters with which every constructor begins: dataclass fields, in the order of the docstring."""

    epsilon: float = 1.0
    delta: float = 1e-6
    relation: Relation = "zero-out"
    n_public: int | None = None


_TABLE_BOUNDS = ("x_bound", "y_bounds", "weight_bound", "exposure_bound", "cuts")
"""Bounds that an open table may state."""


class PrivateEstimator(Guarded, Represented, Budgeted):
    """Base of everything that is fitted to private data and leaves a certificate behind."""

    random_state: int | None
    certificate_: Certificate

    account: Account | str | None

    invalid: Invalid = "raise"
    """For classes without this parameter."""

    x_bound: float | None = math.inf
    """For classes that need no bounds."""

    y_bounds: tuple[float, float] | None

    persons_refused: ClassVar[str | None] = "there is no proof for persons with several rows"
    """Why a record of this class cannot be a person with several rows, as the end of a sentence; None if it can."""

    partitions_refused: ClassVar[str | None] = "it needs more of the records than sums"
    """Why this class cannot be fitted to a table in partitions, as the end of a sentence; None if it can."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = fill(cls.__doc__)

    def __sklearn_clone__(self) -> Any:
        # Searches make their copies in the process that was asked, and fit them wherever they like.
        if self.epsilon != math.inf:
            consider_search(self)
        return super().__sklearn_clone__()

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        check_common_parameters(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            n_public=self.n_public,
            invalid=self.invalid,
            account=self.account,
            random_state=self.random_state,
        )

    def plan_for(self, X: Any, y: Any, persons: Any = None) -> PricedPlan:
        """What a fit to a table would release and cost, from public facts; nothing is reserved or drawn."""
        self.check_parameters()
        facts, _ = self._person_facts(self._public_facts(X, y), persons)
        plan: PricedPlan = self._plan(facts)
        return plan

    def _plan(self, facts: PublicFacts) -> Any:
        """The mechanisms of a fit and their costs, from the budget and public facts."""
        raise NotImplementedError

    def _open(self, X: Any, y: Any, persons: Any) -> tuple[Any, Any, Any]:
        """The arguments of a fit, with an open table in place of a dask collection; no cell is looked at."""
        X, y, persons = open_arguments(X, y, persons)
        for name in ("_table_bounds", ENCODER):
            self.__dict__.pop(name, None)
        if isinstance(X, OpenTable):
            self._check_table(X)
            self._table_bounds = {name: getattr(X, name) for name in _TABLE_BOUNDS}
        return X, y, persons

    def _check_table(self, table: OpenTable) -> None:
        """Raise where a class cannot be fitted to a table in partitions, or states other bounds than the table does."""
        if self.partitions_refused is not None:
            raise DataError(
                f"X: expected a table in memory for {type(self).__name__}, since {self.partitions_refused}; use "
                f"{list_accepting('partitions_refused')}, or compute() the table."
            )
        table.check_method([kind.__name__ for kind in type(self).__mro__], self.relation)
        stated_y_bounds(table.y_bounds)
        if table.x_bound is not None:
            check_x_bound(table.x_bound)
        for name in (*_TABLE_BOUNDS, "invalid"):
            stated, own = getattr(table, name), getattr(self, name, None)
            if stated is not None and own is not None and not np.array_equal(np.asarray(own), np.asarray(stated)):
                raise ParameterError(name, own, f"{stated!r}, which the table states", "pass that")
        self._check_outcomes(table)

    def _check_outcomes(self, table: OpenTable) -> None:
        """Raise where a table states a target of another kind, or weights or exposures that the class would not use."""
        of_times = hasattr(type(self), "cuts")
        stated = table.y_bounds is not None or table.classes is not None
        if stated if of_times else table.cuts is not None:
            raise DataError(
                f"X: expected a table with {'times to an event' if of_times else 'numbers or classes'} for "
                f"{type(self).__name__}, got one with another kind of target; choose a class for it."
            )
        for name, given, users in (
            ("weight", table.has_weight, "SparseRegressor, SparseClassifier or SparseSurvival"),
            ("exposure", table.has_exposure, "SparseRegressor"),
        ):
            if given and not hasattr(type(self), f"{name}_bound"):
                raise DataError(
                    f"X: expected a table without {name}s for {type(self).__name__}, got one with them; use "
                    f"{users}, or take them out of the bounds."
                )

    def _check_persons(self, persons: Any) -> None:
        """Raise where persons are given to a class that has no guarantee for them."""
        if persons is not None and self.persons_refused is not None:
            raise ParameterError(
                "persons",
                type(persons).__name__,
                f"None for {type(self).__name__}, since {self.persons_refused}",
                f"use {list_accepting('persons_refused')}, or pass one row per person",
            )

    @property
    def _x_bound(self) -> float:
        """The public bound on every feature value: that of an open table, or 1, where none is given."""
        stated = self._bound_of("x_bound")
        return DEFAULT_X_BOUND if stated is None else stated

    @property
    def _y_bounds(self) -> tuple[float, float]:
        """The public range of the target: that of an open table, or (-1, 1), where none is given."""
        return stated_y_bounds(self._bound_of("y_bounds"))

    def _bound_of(self, name: str) -> Any:
        """A bound as it is given, or as the table states it that is being fitted; None for neither."""
        given = getattr(self, name, None)
        return vars(self).get("_table_bounds", {}).get(name) if given is None else given

    def _warn_of_defaults(self, facts: PublicFacts) -> None:
        """Warn of bounds that nobody gave; those of a target count where it holds numbers."""
        asked = ("x_bound", "y_bounds") if facts.labels is None else ("x_bound",)
        if self.x_bound is not None:
            warn_of_shared_bound(float(self.x_bound), facts.n_features)
        warn_of_default_bounds(*(name for name in asked if hasattr(self, name) and self._bound_of(name) is None))

    def _require_public_count(self) -> None:
        """Raise where sums are divided by a number of records that is private."""
        check_public_count(self.relation, self.n_public)

    def _require_delta(self) -> None:
        """Raise where the noise is Gaussian and the budget has no delta."""
        if self.delta == 0.0 and not math.isinf(self.epsilon):
            raise ParameterError("delta", self.delta, "a number > 0", "the noise is Gaussian, which needs one")

    def _public_facts(self, X: Any, y: Any) -> PublicFacts:
        """What may be known of the table before a cell of it is read."""
        assumptions = X.assumptions if isinstance(X, OpenTable) else ()
        if isinstance(X, OpenTable) and self.relation == "add-remove":
            return PublicFacts(None, self.n_public, X.n_features, assumptions=assumptions)
        n_rows, n_features = table_shape(X)
        if n_rows == 0 and not (self.relation == "add-remove" and self.invalid == "null"):
            raise DataError(f"X: {NO_RECORDS}.")
        n_records = public_rows(check_relation(self.relation), n_rows, self.n_public)
        return PublicFacts(n_rows, n_records, n_features, assumptions=assumptions)

    def _person_facts(self, facts: PublicFacts, persons: Any) -> tuple[PublicFacts, Persons | None]:
        return person_facts(facts, persons, self.relation, self.n_public)

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit calls, so that a failure to do so spends nothing; ``n_classes`` is None if not known."""

    def _log(self, phase: str) -> None:
        """Log a phase of the fit; the last one, "certified", with its guarantee."""
        log_phase(type(self).__name__, phase, in_short(self.certificate_) if phase == "certified" else "")

    def _reserve(self, plan: Plan, facts: PublicFacts) -> Reservation:
        """Set the cost of the plan aside before the first cell is read and the first noise is drawn."""
        seeded = self.random_state is not None
        return reserve_cost(self.account, plan, facts, what=type(self).__name__, relation=self.relation, seeded=seeded)

    def _public_description(self, facts: PublicFacts) -> dict[str, Any]:
        """Public facts of every fit, for the certificate."""
        described: dict[str, Any] = {"features": facts.n_features}
        if facts.n_records is not None:
            described["records"] = facts.n_records
        estimand = {"estimand": ESTIMAND} if facts.unit == "person" else {}
        return described | {"invalid": self.invalid} | estimand

    def _admission(self, most_records: int | None) -> tuple[str, ...]:
        """What is assumed of the records: that they are admissible, and how many there are at most."""
        # Refusing more records would reveal their number where it is private.
        limited = most_records is not None and self.relation == "add-remove"
        limit = (f"there are at most {most_records:,} records",) if limited else ()
        return *admission_assumptions(self.invalid), *limit


# ---- Weights of the classes of a target: public numbers by which the losses of records are multiplied.
# With weights the objective is :math:`\sum_i w_{y_i} \ell(W x_i + b;\, y_i)`, as for ``class_weight`` of scikit-learn.
# Only ratios of weights matter to its minimum, so that they are divided by the largest. "balanced" weights would be one
# over the numbers of records of each class, and are refused: these are the data's own.

# Derivatives are rounded twice: the first time with this many times the resolution, unless they are fine already.
_FINER, _COARSE = 1 << 8, 1 << 32


def check_class_weight(class_weight: object) -> None:
    """Raise ParameterError for weights that no fit could use."""
    if class_weight is None:
        return
    if not isinstance(class_weight, Mapping):
        raise ParameterError(
            "class_weight",
            class_weight,
            "a dictionary from labels to public numbers, or None ('balanced' would count the labels of the data)",
            "give numbers, such as one over the shares that the classes are known to have elsewhere",
        )
    for weight in class_weight.values():
        try:
            check_positive(weight=weight)
        except ParameterError:
            raise ParameterError(
                "class_weight", dict(class_weight), "finite numbers > 0", "give every label a positive one"
            ) from None


def weights_of_classes(class_weight: Mapping[Any, float] | None, labels: AnyArray) -> tuple[float, ...]:
    """The weight of each class over the largest; classes that are not listed have weight one, as in scikit-learn."""
    stated = dict(class_weight or {})
    weights = [float(stated.pop(label, 1.0)) for label in labels.tolist()]
    if stated:
        unknown = next(iter(stated))
        raise ParameterError("class_weight", unknown, f"labels among {labels.tolist()}", "correct or leave it out")
    largest = max(weights)
    return tuple(weight / largest for weight in weights)


@dataclass(frozen=True, slots=True)
class WeightedLoss(Loss):
    """A logistic or softmax loss times the weight of the record's class.

    *Constants.* Weights, by the codes of the classes, are in (0, 1] and one of them is 1. Derivatives, their L1 and
    L2 norms and second derivatives are those of the loss times a number of at most one, so that every bound of the
    loss holds, and is attained by records of the heaviest class. Sensitivities do not change.
    """

    loss: Loss
    weights: tuple[float, ...]

    labelled: ClassVar[bool] = True

    @property
    def multiclass(self) -> bool:
        """That of the loss."""
        return self.loss.multiclass

    @property
    def smoothness(self) -> float:
        """That of the loss."""
        return self.loss.smoothness

    @property
    def l1_factor(self) -> float:
        """That of the loss."""
        return self.loss.l1_factor

    @property
    def squared_l2_factor(self) -> float:
        """That of the loss."""
        return self.loss.squared_l2_factor

    def class_weights(self, n_classes: int) -> FloatArray:
        """The weights of the classes by their codes."""
        return np.array(self.weights)

    def value(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """The loss times the weight."""
        return self.loss.value(margins, targets) * self._of_targets(targets)

    def derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """That of the loss times the weight."""
        weights = self._of_targets(targets)
        return self.loss.derivative(margins, targets) * (weights[:, None] if self.multiclass else weights)

    def second_derivative(self, margins: FloatArray, targets: FloatArray) -> FloatArray:
        """That of the loss times the weight."""
        weights = self._of_targets(targets)
        return self.loss.second_derivative(margins, targets) * (weights[:, None, None] if self.multiclass else weights)

    def lipschitz(self, radius: float) -> float:
        """That of the loss, for records of the heaviest class."""
        return self.loss.lipschitz(radius)

    def record_values(self, margins: FloatArray, target: NumberArray) -> FloatArray:
        """The loss of each record times its weight; null records lose nothing."""
        return self.loss.record_values(margins, target) * self._of_codes(target)

    def integer_derivatives(
        self, margins: NumberArray, unit: float, target: NumberArray, radius: float, bound: int
    ) -> FloatArray:
        """Those of the loss times the weight; they are finer before they are rounded again, to numbers that fit."""
        finer = _FINER if bound <= _COARSE else 1
        integers = self.loss.integer_derivatives(margins, unit, target, radius, finer * bound)
        return np.rint(integers * (self._of_codes(target) / finer)[:, None])

    def _of_targets(self, targets: FloatArray) -> FloatArray:
        """The weights of records whose targets are 0 or 1, or one-hot rows."""
        weights = np.array(self.weights)
        return targets @ weights if self.multiclass else weights[np.asarray(targets, dtype=np.int64)]

    def _of_codes(self, target: NumberArray) -> FloatArray:
        """The weights of records with class codes; of null records, which add nothing, any."""
        return np.array(self.weights)[np.maximum(np.asarray(target, dtype=np.int64), 0)]


# ---- Predictions of fitted linear models, for numbers and for classes.


class LinearPredictor(BaseEstimator):
    """A fitted linear model: ``margins = X @ coef_.T + intercept_``."""

    invalid: Invalid
    random_state: int | None
    coef_: Any
    intercept_: Any
    support_: BoolArray

    def _margins(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = read_table(self, X, reset=False)
        product = X @ self.coef_.T
        margins: FloatArray = (product.toarray() if sp.issparse(product) else np.asarray(product)) + self.intercept_
        return margins

    @property
    def _response(self) -> Response:
        """How margins become the predictions of a regression."""
        return Response()

    def to_sklearn(self) -> Any:
        """The model as a plain, fitted estimator of scikit-learn, for programs that know these.

        Predictions are the same but for rounding. A classifier becomes a LogisticRegression. A regression whose
        predictions are clipped to a public range becomes a Pipeline, because no estimator of scikit-learn clips: the
        projection on the coefficients (TruncatedSVD), a QuantileTransformer with the ends of the range as its two
        quantiles, and a LinearRegression of that one feature, or with a log link a PoissonRegressor. Others become a
        LinearRegression. Rates of an exposure, which have no upper end, are clipped at 5e34.

        **Privacy.** Post-processing of what the fit released: it costs nothing. The certificate stays behind.
        """
        check_is_fitted(self)
        return plain_model(self, self._response)

    def sparsify(self) -> Self:
        """Store ``coef_`` as a sparse matrix, which pays when most of it is zero."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Store ``coef_`` as an array again."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            dense = self.coef_.toarray()
            self.coef_ = dense if is_classifier(self) else dense.ravel()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.invalid == "null"
        tags.non_deterministic = self.random_state is None
        return tags


class ClassPredictor(ClassifierMixin, LinearPredictor):
    """A fitted linear model of classes: margins become probabilities and labels."""

    classes_: AnyArray

    @partitionwise
    def decision_function(self, X: Any) -> FloatArray:
        """Margins: shape (n_samples,) for two classes, (n_samples, n_classes) for more."""
        margins = self._margins(X)
        return margins.ravel() if self.classes_.size == 2 else margins

    @partitionwise
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, in the order of ``classes_``."""
        margins = self.decision_function(X)
        if self.classes_.size == 2:
            return np.column_stack((expit(-margins), expit(margins)))
        return np.asarray(softmax(margins, axis=1))

    @partitionwise
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities, finite where those underflow."""
        margins = self.decision_function(X)
        if self.classes_.size == 2:
            return np.column_stack((log_expit(-margins), log_expit(margins)))
        return np.asarray(log_softmax(margins, axis=1))

    @partitionwise
    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each sample."""
        margins = self.decision_function(X)
        codes = (margins > 0).astype(int) if self.classes_.size == 2 else margins.argmax(axis=1)
        labels: AnyArray = self.classes_[codes]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


# ---- What every private linear model has in common: bounds, targets and classes, coefficients, predictions.


NOISE = "_noise_std"
"""The attribute with the deviations of the noise in ``coef_``, where a method knows them; NaN for other columns.

They follow from public facts and released values, as if the descent were linear near its end.
"""


class PrivateLinearModel(LinearPredictor, PrivateEstimator):
    """Base of the private linear models.

    A run gives coefficients in mapped units, of features divided by ``x_bound`` and of targets mapped to [-1, 1]: one
    row per output, the intercept last and zero where there is none.
    """

    x_bound: float | None
    fit_intercept: bool

    def fit(self, X: Any, y: Any = None, persons: Any = None) -> Self:
        """Fit the model: validate public facts, plan, reserve, read, run, certify.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), dask array or data frame, or open table
            The features; an open table has its target and its persons with it.
        y : array-like of shape (n_samples,)
            The target: numbers for a regressor, labels of any type for a classifier. None for an open table.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: the guarantee is then
            for all rows of a person together, and each person counts once. A row without a key is a null row. None:
            every row is a record of its own. Methods without a proof for persons refuse keys.

        Returns
        -------
        self : object
            The fitted model.
        """
        return self._fit(X, y, persons, None, None)

    def _fit(self, X: Any, y: Any, persons: Any, sample_weight: Any, exposure: Any) -> Self:
        self.check_parameters()
        X, y, persons = self._open(X, y, persons)
        self._check_persons(persons)
        facts, whose = self._person_facts(self._public_facts(X, y), persons)
        measures = self._measures(X, sample_weight, exposure)
        if measures is not None:
            facts = replace(facts, measures=measures, assumptions=(*facts.assumptions, *measures.assumptions))
        self._warn_of_defaults(facts)
        plan = self._plan(facts)
        sparse = X.is_sparse if isinstance(X, OpenTable) else sp.issparse(X)
        self.warm_up(sparse=sparse, n_classes=None if facts.labels is None else len(facts.labels))
        with self._reserve(plan, facts) as reservation:
            stream = Stream.of(self.random_state)
            check_lengths(X, y)
            reservation.begin()
            self._log("reading")
            source = self._read(X, Outcomes(y, sample_weight, exposure), facts, whose)
            self._log("running")
            outcome = self._run(plan, source, stream)
            self._certify(plan, facts, outcome, seeded=stream.seeded, account_head=reservation.head)
            self._store(plan, facts, outcome)
        self._log("certified")
        self._warn_of_releases(outcome)
        return self

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_x_bound(self._x_bound)
        check_truth(fit_intercept=self.fit_intercept)

    def _loss(self, facts: PublicFacts) -> tuple[Any, int]:
        """The loss of one record, and the number of outputs."""
        raise NotImplementedError

    def _problem(self, facts: PublicFacts) -> Problem:
        """The public facts that the plans of all methods share."""
        loss, n_outputs = self._loss(facts)
        intercept = bool(self.fit_intercept)
        return Problem(loss, self.relation, facts.n_records, facts.n_features, n_outputs, intercept)

    def _measures(self, X: Any, sample_weight: Any, exposure: Any) -> Measures | None:
        """Bounds on weights and exposures, where records have any; here they have none."""
        return None

    def _read(self, X: Any, outcomes: Outcomes, facts: PublicFacts, persons: Persons | None = None) -> Source:
        target, numeric = self._target_map(facts), facts.labels is None
        if isinstance(X, OpenTable):
            builder = BlockBuilder(self._x_bound, self.invalid, target, numeric, measures=facts.measures)
            return X.read(self, builder, facts.n_records, persons)
        empty = self.relation == "add-remove"
        records = read_records(self, X, outcomes.y, invalid=self.invalid, numeric=numeric, empty=empty)
        if facts.measures is not None:
            records = records.measured(outcomes, facts.measures, invalid=self.invalid)
        if persons is not None:
            records = records.of_persons(persons())
        return ArraySource(target(records), self._x_bound, n_records=facts.n_records)

    @property
    def _target_unit(self) -> float:
        """What a mapped target of 1 is in the units of y: half the width of ``y_bounds``, 1 for labels."""
        return 1.0

    def _target_map(self, facts: PublicFacts) -> NumberMap | LabelMap | SurvivalMap:
        """What gives records lattice numbers, class codes or signed times for targets."""
        raise NotImplementedError

    def _run(self, plan: Any, source: Any, stream: Stream) -> Any:
        """What the plan releases about the source; each method states the kind of source that it needs."""
        raise NotImplementedError

    def _certify(self, plan: Any, facts: PublicFacts, outcome: Any, *, seeded: bool, account_head: str | None) -> None:
        """Set the certificate."""
        self.certificate_ = certify(
            self._released(plan, outcome),
            plan.budget,
            relation=self.relation,
            public=self._described(plan, facts),
            assumptions=(*self._assumptions(plan), *facts.assumptions),
            seeded=seeded,
            arithmetic=plan.arithmetic,
            ordered=plan.ordered,
            unit=facts.unit,
            account_head=account_head,
        )

    def _released(self, plan: Any, outcome: Any) -> Iterable[Release]:
        """The releases that were made."""
        releases: tuple[Release, ...] = plan.releases
        return releases

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        """Public facts for the certificate."""
        return self._public_description(facts) | {"x_bound": float(self._x_bound)}

    def _assumptions(self, plan: Any) -> tuple[str, ...]:
        """What the guarantee rests on."""
        return BOUNDS, *self._admission(self._most_records)

    @property
    def _most_records(self) -> int | None:
        """The largest number of records for which the arithmetic is proved."""
        # Sums of more could leave 64-bit integers.
        return MOST_PRIVATE_ROWS

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        """Set the fitted attributes: what was released, and public facts."""
        self._set_coefficients(outcome)

    def _warn_of_releases(self, outcome: Any) -> None:
        """Warn of bounds or classes that released numbers speak against."""

    def _set_coefficients(self, weights: FloatArray) -> None:
        """Set ``coef_``, ``intercept_`` and ``support_`` in the user's units."""
        raise NotImplementedError


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """A linear model of a target with a public range."""

    y_bounds: tuple[float, float] | None
    residual_clip: float | Auto
    y_bounds_: tuple[float, float]

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        stated_y_bounds(self.y_bounds)
        self._mapped_clip()

    @property
    def _target_unit(self) -> float:
        low, high = self._y_bounds
        # Halving first keeps bounds near the largest double from overflowing.
        return high / 2.0 - low / 2.0

    def _mapped_clip(self) -> float | None:
        """``residual_clip`` for a mapped target; None for "auto"."""
        clip = number_or_auto(residual_clip=self.residual_clip)
        if clip is None:
            return None
        if not 0.0 < clip / self._target_unit < math.inf:
            raise ParameterError(
                "residual_clip", clip, "a positive finite number also in units of y_bounds", "give one of their size"
            )
        return clip / self._target_unit

    def _loss(self, facts: PublicFacts) -> tuple[Any, int]:
        return HuberLoss(self._mapped_clip() or 1.0), 1

    def _target_map(self, facts: PublicFacts) -> NumberMap:
        return NumberMap(partial(numeric_target, y_bounds=self._y_bounds))

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        self.y_bounds_ = self._y_bounds
        super()._store(plan, facts, outcome)

    def _set_coefficients(self, weights: FloatArray) -> None:
        low, high = self._y_bounds
        half = self._target_unit
        self.coef_ = weights[0, :-1] * (half / self._x_bound)
        self.intercept_ = low / 2.0 + high / 2.0 + half * float(weights[0, -1])
        self.support_ = self.coef_ != 0.0

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        return super()._described(plan, facts) | {"y_bounds": self._y_bounds}

    @property
    def _response(self) -> Response:
        return Response(self.y_bounds_)

    @partitionwise
    def predict(self, X: Any) -> FloatArray:
        """Predictions in the units of y, clipped to ``y_bounds_``."""
        return np.clip(self._margins(X).ravel(), *self.y_bounds_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateClassifier(ClassPredictor, PrivateLinearModel):
    """A linear model of labels, with a softmax or logistic link."""

    classes: Any

    class_weight: Mapping[Any, float] | None = None
    """For classes without this parameter."""

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        if self.classes is not None:
            check_classes(self.classes)
        check_class_weight(self.class_weight)

    def _public_facts(self, X: Any, y: Any) -> PublicFacts:
        facts = super()._public_facts(X, y)
        classes = stated_classes(X, self.classes)
        if classes is not None:
            return replace(facts, labels=np.sort(check_classes(classes)))
        labels = target_labels(y)
        return replace(facts, labels=labels, assumptions=(*facts.assumptions, PUBLIC_LABELS))

    def _loss(self, facts: PublicFacts) -> tuple[Loss, int]:
        """The loss of one record, and the number of outputs."""
        n_classes, weights = _labels(facts).size, self._class_weights(facts)
        loss, n_outputs = (LogisticLoss(), 1) if n_classes == 2 else (SoftmaxLoss(), n_classes)
        plain = min(weights) == 1.0 or self._weighs_records
        return loss if plain else WeightedLoss(loss, weights), n_outputs

    @property
    def _weighs_records(self) -> bool:
        """Whether records have the weights of their classes; otherwise the loss has them."""
        return False

    def _class_weights(self, facts: PublicFacts) -> tuple[float, ...]:
        return weights_of_classes(self.class_weight, _labels(facts))

    def _target_map(self, facts: PublicFacts) -> LabelMap:
        return LabelMap(_labels(facts), self._class_weights(facts) if self._weighs_records else ())

    def _set_coefficients(self, weights: FloatArray) -> None:
        self.coef_ = weights[:, :-1] / self._x_bound
        self.intercept_ = weights[:, -1].copy()
        self.support_ = (self.coef_ != 0.0).any(axis=0)

    def _store(self, plan: Any, facts: PublicFacts, outcome: Any) -> None:
        self.classes_ = _labels(facts)
        super()._store(plan, facts, outcome)

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        weights = {} if self.class_weight is None else {"class_weight": list(self._class_weights(facts))}
        return super()._described(plan, facts) | {"classes": _labels(facts)} | weights


def number_or_auto(**named: Any) -> float | None:
    """A positive number, or None for "auto"."""
    ((name, value),) = named.items()
    if isinstance(value, str):
        check_choice(("auto",), "a finite number > 0", **named)
        return None
    return check_positive(**{name: value})


def _labels(facts: PublicFacts) -> AnyArray:
    if facts.labels is None:
        raise TypeError("a classifier's public facts hold its labels")
    return facts.labels
