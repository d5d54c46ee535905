"""Searches around a private estimator: noticed from the call stack, which no record has any part in.

A search makes copies of the estimator before it fits them. The first copy is the moment to ask what the whole will
cost: the call on the stack states the number of fits, and plans state their prices, before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from numbers import Integral, Real
from types import FrameType
from typing import Any

from taciturn.accounting import Budget
from taciturn.accounts import Account, open_account
from taciturn.core.errors import BudgetExceededError, UnaccountedSearchWarning
from taciturn.core.guard import calling_frames, warn_caller
from taciturn.events import Event

__all__ = ["consider_search"]

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
    """A call that fits copies of an estimator.

    Parameters
    ----------
    estimator : object
        What is copied.
    X, y : object
        What the call was given.
    runs : list of (dict, int), or None
        Candidates and how often each is fitted; None where that is not known beforehand.
    """

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
    """Warn if the copy that is being made is for a search, and refuse a search that its account cannot pay for.

    A search scores fits and chooses by the scores. All its fits are charged in full: where the account ends before the
    search does, everything is spent and there is no model. So the first copy of a search adds up all of its fits.

    Parameters
    ----------
    part : PrivateEstimator
        What is being copied.

    Raises
    ------
    BudgetExceededError
        If the account has not enough left for all fits of the search; nothing was spent.
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


# ------------------------------------------------------------------ the number of fits


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


# ------------------------------------------------------------------ what they cost


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
