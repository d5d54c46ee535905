"""Searches around a private estimator: noticed from the call stack, which no record has any part in."""

from __future__ import annotations

from typing import Any

from taciturn.core.errors import UnaccountedSearchWarning
from taciturn.core.guard import calling_modules, warn_caller

__all__ = ["warn_of_search"]

# Of scikit-learn: searches, cross-validation and learning curves; and selections of features by scores.
_SEARCHES = ("sklearn.model_selection.", "sklearn.feature_selection._rfe", "sklearn.feature_selection._sequential")


# What lies between a search and the copies that it makes.
_MACHINERY = ("taciturn.", "sklearn.", "joblib.", "concurrent.", "threading", "multiprocessing.")


def warn_of_search(kind: str, account: Any, relation: str) -> None:
    """Warn if the copy that is being made is for a search, which scores fits and chooses by the scores.

    Parameters
    ----------
    kind : str
        The class of the estimator.
    account : Account or str or None
        What pays for its fits.
    relation : str
        The neighbouring relation, under which rows may or may not be chosen by their places.
    """
    modules = calling_modules()
    # Later copies are made by threads of a pool, when nobody's line is there to warn about any more.
    if not any(map(_is_search, modules)) or all(module.startswith(_MACHINERY) for module in modules):
        return
    fits = "its fits are charged" if account is not None else "nothing keeps count of its fits, which add up"
    # A row more or less moves the places of the others.
    folds = "a hash of a key of each row (PredefinedSplit)" if relation == "add-remove" else "KFold"
    warn_caller(
        f"{kind}: a search fits it again and again; {fits}, but scores and the choice by them are not private, nor are "
        "folds that look at labels; choose settings without these data, score with private_score, and fold by "
        f"{folds}{'' if account is not None else '; give an account to keep count'}.",
        UnaccountedSearchWarning,
    )


def _is_search(module: str) -> bool:
    return module.startswith(_SEARCHES)
