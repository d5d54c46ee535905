"""How private estimators show themselves: their budget always, and in notebooks what was released."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator

from taciturn.certificate.notebook import guarantee_lines
from taciturn.drawing.formats import format_number, format_ratio
from taciturn.drawing.markup import Markup
from taciturn.drawing.notebook import card, table

__all__ = ["Represented"]

_ALWAYS = ("epsilon", "delta")
_MOST_ROWS = 10


class Represented(BaseEstimator):
    """An estimator whose text names its budget, and whose HTML shows, once it is fitted, what it released.

    scikit-learn leaves out parameters that have their defaults; a budget is worth stating in any case. HTML is added
    below scikit-learn's diagram. Everything shown is a parameter, public, or released.
    """

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
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
    if hasattr(estimator, "coef_"):
        yield _coefficients(estimator)
    elif hasattr(estimator, "lower_"):
        rows = zip(_names(estimator), estimator.lower_, estimator.upper_, strict=True)
        cells = [[name, format_number(float(low)), format_number(float(high))] for name, low, high in rows]
        yield _table(("column", "lower", "upper"), cells, "bounds")
    elif hasattr(estimator, "support_"):
        chosen = [[name] for name, kept in zip(_names(estimator), estimator.support_, strict=True) if kept]
        yield _table(("selected",), chosen, f"of {estimator.n_features_in_:,} features selected")


def _coefficients(estimator: Any) -> Markup:
    stored, names = estimator.coef_, _names(estimator)
    values = np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored)
    labels = [str(label) for label in getattr(estimator, "classes_", ())]
    used = np.flatnonzero(values.any(axis=0))
    order = used[np.argsort(-np.abs(values[:, used]).sum(axis=0), kind="stable")]
    heads = labels if len(values) > 1 else ["coefficient"]
    columns = [[format_number(value) for value in row] for row in values[:, order].tolist()]
    subject = ""
    if len(labels) == 2:
        heads.append("odds ratio")
        columns.append([format_ratio(value) for value in values[0, order].tolist()])
        subject = f" ({labels[1]} against {labels[0]})"
    for head, column in _intervals(estimator, order):
        heads.append(head)
        columns.append(column)
    intercept = [format_number(float(value)) for value in np.atleast_1d(estimator.intercept_)]
    return _table(
        ("feature", *heads),
        [[names[j], *(column[place] for column in columns)] for place, j in enumerate(order)],
        f"of {len(names):,} features have a coefficient{subject}",
        ["(intercept)", *intercept, *[""] * (len(columns) - len(intercept))],
    )


def _intervals(estimator: Any, order: Any) -> Iterator[tuple[str, list[str]]]:
    """Intervals and p-values, where the fit has some."""
    found = getattr(estimator, "inference_", None)
    if found is None or found.reason is not None:
        return
    ends, p_values = estimator.coef_interval_, estimator.coef_p_value_
    yield (
        f"{100.0 * found.confidence_level:g}% interval",
        [f"{format_number(float(ends[j, 0]))} to {format_number(float(ends[j, 1]))}" for j in order],
    )
    yield "p", ["<0.001" if p_values[j] < 1e-3 else f"{p_values[j]:.3f}" for j in order]


def _table(header: Sequence[str], rows: list[list[str]], what: str, last: list[str] | None = None) -> Markup:
    cut = "" if len(rows) <= _MOST_ROWS else f"; the first {_MOST_ROWS} are shown"
    return table(header, [*rows[:_MOST_ROWS], *([] if last is None else [last])], f"{len(rows):,} {what}{cut}")


def _names(estimator: Any) -> list[str]:
    """Names of the features, as scikit-learn makes them where there are none."""
    given = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if given is None else [str(name) for name in given]
