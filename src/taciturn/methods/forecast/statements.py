"""What is stated about a private table, from parameters or from a bounds file, as a population to draw from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer, check_real
from taciturn.methods.forecast.population import (
    USUAL_EFFECTS,
    ColumnFacts,
    PublicRows,
    StatedPopulation,
    TargetFacts,
)
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.methods.sparse.estimator import SparseModel
from taciturn.tables.bounds import TableBounds, read_expectations
from taciturn.tables.columns import Column

_KEYS = ("lower", "upper", "mean", "spread", "share", "shares")
_TARGET_KEYS = ("mean", "spread", "share", "shares")
_MOST_LISTED = 4
_LEAST_ROWS = 8


def rows_like(scaler: BoundedScaler | None, like: Any) -> PublicRows:
    """The rows of a public table, as the model reads them."""
    if isinstance(like, PublicRows):
        return like
    try:
        X, y = like
    except (TypeError, ValueError):
        raise ParameterError("like", type(like).__name__, "a pair (X, y) of a PUBLIC table", "pass both") from None
    names = getattr(X, "columns", None)
    units = None
    if scaler is not None:
        fitted = type(scaler)(**scaler.get_params(deep=False)).fit(X)
        X, units = fitted.transform(X), fitted.upper_ / 2.0 - fitted.lower_ / 2.0
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or len(X) != len(y) or len(X) < _LEAST_ROWS:
        raise ParameterError(
            "like", X.shape, f"at least {_LEAST_ROWS} rows and a target for each", "pass a larger public table"
        )
    listed = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names]
    return PublicRows(X, y, tuple(listed), np.ones(X.shape[1]) if units is None else units)


def stated_population(
    model: SparseModel,
    scaler: BoundedScaler | None,
    n_features: int | None,
    bounds: Any,
    effects: Mapping[str, float] | float | None,
    target: Mapping[str, Any] | None,
    correlation: Mapping[tuple[str, str], float] | None,
) -> StatedPopulation:
    """The population of what is stated; ParameterError where that contradicts itself."""
    table: TableBounds | None = bounds if isinstance(bounds, TableBounds) else None
    expected: Mapping[str, Any] = {}
    if isinstance(bounds, str | Path):
        try:
            text = Path(bounds).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ParameterError("bounds", str(bounds), "a readable bounds.toml", "check the path") from None
        table, expected = TableBounds.from_toml(text, folder=Path(bounds).parent), read_expectations(text)
    columns = tuple(_columns(model, scaler, n_features, bounds, table, expected.get("columns", {})))
    facts = _target(model, table, dict(expected.get("target", {})) | dict(target or {}))
    effects = expected.get("effects", expected.get("explained")) if effects is None else effects
    if isinstance(effects, float | int):
        effects = check_real(0.0, 1.0, closed="left", effects=effects)
    pairs = None
    if correlation is not None or "correlation" in expected:
        pairs = {(first, second): float(value) for first, second, value in expected.get("correlation", ())}
        pairs |= correlation or {}
    beyond = any(max(abs(column.lower), abs(column.upper)) > model._x_bound * (1.0 + 1e-12) for column in columns)
    found = StatedPopulation(
        columns, facts, scaler is not None or beyond,
        None if table is None else replace(table, order=tuple(column.name for column in columns)),
        effects, pairs,
    )  # fmt: skip
    # Names are checked here, not when rows are drawn.
    _ = found.coefficients
    return found


def _columns(
    model: SparseModel,
    scaler: BoundedScaler | None,
    n_features: int | None,
    bounds: Any,
    table: TableBounds | None,
    expected: Mapping[str, Any],
) -> Iterator[ColumnFacts]:
    """Facts of the columns of a table, in its order."""
    if table is not None:
        yield from _columns_of_table(table, n_features, expected)
        return
    own = _bounds_of_scaler(scaler, n_features)
    if bounds is None and not own:
        if n_features is None:
            raise ParameterError("n_features", None, "the number of columns, or bounds", "give one of the two")
        n_features = check_integer(1, n_features=n_features)
        own = {f"x{j}": (-model._x_bound, model._x_bound) for j in range(n_features)}
    stated: Mapping[str, Any] = own
    if bounds is not None:
        named = isinstance(bounds, Mapping)
        pairs = bounds if named else {f"x{j}": pair for j, pair in enumerate(bounds)}
        stated = own | dict(pairs) if set(own) <= set(pairs) or not own else _merged(own, pairs)
    if n_features is not None and len(stated) != n_features:
        raise ParameterError("n_features", n_features, f"{len(stated)}, the number of bounds", "leave it out")
    for name, content in stated.items():
        yield _column(str(name), content, own.get(name))


def _merged(own: Mapping[str, Any], pairs: Mapping[str, Any]) -> dict[str, Any]:
    unknown = next((name for name in pairs if name not in own), None)
    if unknown is not None:
        raise ParameterError("bounds", unknown, "a column of the scaler", "correct the name")
    return {name: pairs.get(name, ends) for name, ends in own.items()}


def _bounds_of_scaler(scaler: BoundedScaler | None, n_features: int | None) -> dict[str, tuple[float, float]]:
    """The bounds that a scaler states for columns with names, or for so many without."""
    if scaler is None:
        return {}
    if scaler.bounds is not None:
        return {str(name): (float(low), float(high)) for name, (low, high) in scaler.bounds.items()}
    lower, upper = np.atleast_1d(scaler.lower), np.atleast_1d(scaler.upper)
    width = max(lower.size, upper.size) if n_features is None else n_features
    if n_features is None and width == 1:
        return {}
    ends = zip(np.broadcast_to(lower, width).tolist(), np.broadcast_to(upper, width).tolist(), strict=True)
    return {f"x{j}": pair for j, pair in enumerate(ends)}


def _column(name: str, content: Any, own: tuple[float, float] | None) -> ColumnFacts:
    """One column from a pair of bounds, or from a mapping with more."""
    place = f"bounds[{name!r}]"
    if not isinstance(content, Mapping):
        try:
            low, high = content
            return ColumnFacts(name, float(low), float(high)).checked()
        except (TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(place, content, "a pair (lower, upper), or a mapping", "write (18, 100)") from None
    unknown = next((key for key in content if key not in _KEYS), None)
    if unknown is not None:
        raise ParameterError(place, unknown, f"keys among {', '.join(_KEYS)}", "correct it")
    low, high = own or (0.0, 1.0)
    facts = ColumnFacts(
        name,
        float(content.get("lower", low)),
        float(content.get("upper", high)),
        _number(place, content.get("mean")),
        _number(place, content.get("spread")),
    )
    if "share" in content:
        share = check_real(0.0, 1.0, closed="both", share=content["share"])
        facts = replace(facts, shares=(1.0 - share, share), levels=(facts.lower, facts.upper))
    return facts.checked()


def _number(place: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ParameterError(place, value, "numbers", "write it as a number")
    return float(value)


def _columns_of_table(table: TableBounds, n_features: int | None, expected: Mapping[str, Any]) -> Iterator[ColumnFacts]:
    """Facts of the columns that a bounds file describes, and of so many unnamed ones that its defaults do."""
    named = {name: column for name, column in table.columns.items() if column.type != "ignore"}
    chosen = {name: named[name] for name in table.order or named}
    if table.defaults is not None:
        more = 0 if n_features is None else n_features - len(chosen)
        chosen |= {f"column {j + 1}": table.defaults for j in range(max(more, 0))}
    if not chosen:
        raise ParameterError("bounds", "", "at least one column", "describe the columns, or give n_features")
    unknown = next((name for name in expected if name not in chosen), None)
    if unknown is not None:
        raise ParameterError("plan.columns", unknown, "a column that enters the model", "check the spelling")
    for name, column in chosen.items():
        yield _table_column(name, column, expected.get(name, {}))


def _table_column(name: str, column: Column, stated: Mapping[str, Any]) -> ColumnFacts:
    place = f"plan.columns.{name}"
    if column.type == "boolean":
        share = check_real(0.0, 1.0, closed="both", share=stated.get("share", 0.5))
        known, pair = "share" in stated, (1.0 - share, share)
        return ColumnFacts(name, 0.0, 1.0, shares=pair, levels=(False, True), assumed=not known).checked()
    if column.type == "category":
        given = stated.get("shares", {})
        unknown = next((level for level in given if level not in column.categories), None)
        if unknown is not None:
            raise ParameterError(f"{place}.shares", unknown, "categories of the column", "check the spelling")
        left = max(1.0 - sum(given.values()), 0.0) / max(len(column.categories) - len(given), 1)
        shares = tuple(float(given.get(level, left)) for level in column.categories)
        return ColumnFacts(name, 0.0, 1.0, shares=shares, levels=column.categories, assumed=not given).checked()
    if not column.is_bounded and column.type == "number":
        raise ParameterError(f"columns.{name}", None, "lower and upper", "state the bounds that would be found")
    mean, spread = (_number(place, stated.get(key)) for key in ("mean", "spread"))
    return ColumnFacts(name, *column.ends, mean, spread).checked()


def _target(model: SparseModel, table: TableBounds | None, stated: dict[str, Any]) -> TargetFacts:
    unknown = next((key for key in stated if key not in _TARGET_KEYS), None)
    if unknown is not None:
        raise ParameterError("target", unknown, f"keys among {', '.join(_TARGET_KEYS)}", "correct it")
    if not is_classifier(model):
        low, high = model._y_bounds
        family = model._family.loss if model._family.log_link else "squared"
        mean, spread = (_number("target", stated.get(key)) for key in ("mean", "spread"))
        return TargetFacts(family, low, high, mean, spread).checked()
    classes = getattr(model, "classes", None)
    if classes is None:
        classes = table.target.classes if table is not None and table.target.classes else (0, 1)
    listed = tuple(sorted(np.asarray(classes).tolist()))
    shares: tuple[float, ...] = ()
    if "share" in stated:
        share = check_real(0.0, 1.0, closed="neither", share=stated["share"])
        shares = (1.0 - share, share)
    if "shares" in stated:
        given = stated["shares"]
        by_label = isinstance(given, Mapping)
        known = {str(label): float(share) for label, share in given.items()} if by_label else {}
        shares = tuple(known.get(str(label), 0.0) for label in listed) if by_label else tuple(map(float, given))
    return TargetFacts("labels", classes=listed, shares=shares).checked()


def _listed(names: list[str]) -> str:
    """A list that is not too long."""
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more


def assumptions_of(population: StatedPopulation) -> tuple[str, ...]:
    """What is assumed because nobody stated it, in sentences."""
    found = []
    uniform = [each.name for each in population.columns if not each.shares and each.spread is None]
    if uniform:
        found.append(f"values spread evenly between the bounds of {_listed(uniform)}: state mean and spread")
    equal = [each.name for each in population.columns if each.assumed]
    if equal:
        found.append(f"levels of {_listed(equal)} are equally frequent: state their shares")
    target = population.target
    if target.family == "labels" and not target.shares:
        found.append("classes are equally frequent: state their shares")
    elif target.family != "labels" and target.spread is None:
        found.append(f"the target has mean {target.centre:.4g} and spread {target.deviation:.4g}: state both")
    if population.effects is None:
        found.append(
            f"the first {min(USUAL_EFFECTS, len(population.names))} columns explain a part of the target's variance, "
            "another one in each trial: state effects"
        )
    if population.correlation is None and len(population.columns) > 1:
        found.append("correlations of columns differ from trial to trial, as those of tables do: state them")
    return tuple(found)
