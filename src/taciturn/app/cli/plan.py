"""The command plan: what a fit may be expected to give, before a budget is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taciturn.app.cli.output import replace_file
from taciturn.app.cli.screen import console, print_line, print_sentence, share_bar, shown_text, stage
from taciturn.app.cli.tables import (
    Delta,
    Relation,
    find_features,
    gather_table_facts,
    new_estimator,
    read_text,
    read_whole_table,
)
from taciturn.core.errors import ParameterError

if TYPE_CHECKING:
    from taciturn.app.plan_file import PlanFile
    from taciturn.methods.forecast.advice import Wish
    from taciturn.methods.forecast.function import Forecast

_MOST_BOUNDS = 1 << 24
_EPSILONS = "0.5,1,2,4"
_MOST_EPSILONS = 12
_TWO = 2
# Of one screen.
_MOST_ROWS = 6


def plan(
    bounds: Annotated[Path, typer.Option(help="Public bounds of the columns; [plan] in it states what is expected.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Number of records, public or a wish.")],
    epsilon: Annotated[str, typer.Option(help="Privacy budgets, with commas between them.")] = _EPSILONS,
    delta: Delta = 1e-6,
    relation: Relation = "zero-out",
    nonzero: Annotated[
        str | None, typer.Option(help="Number of features to keep, all, or auto. [default: auto]")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Columns of the model, with commas between them. [default: it chooses them]")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="A PUBLIC table that is like the private one, with the columns of the bounds.")
    ] = None,
    target_width: Annotated[
        list[str] | None, typer.Option(help="Wish: an interval no wider than this, such as age=0.1.")
    ] = None,
    power: Annotated[
        list[str] | None,
        typer.Option(help="Wish: an effect that is found with 80 % power, such as the odds ratio smoker=1.3."),
    ] = None,
    simulate: Annotated[
        int, typer.Option(min=0, help="Tables on which predictions are tried; each takes as long as a fit.")
    ] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for plan.json and plan.html.")] = Path("plan"),
) -> None:
    """Forecast intervals and predictions at several budgets; no private table is read and nothing is spent.

    The bounds file describes the columns. Its section [plan] may state means, spreads, shares, effects and correlations
    that are known from elsewhere; what nobody states is assumed, and the screen says so.

    Example: taciturn plan --bounds bounds.toml --n 20000 --epsilon .5,1,2,4 --power smoker=1.3
    """
    from taciturn.app.plan_file import PlanFile
    from taciturn.app.report.plan import plan_page
    from taciturn.methods.forecast.advice import Wish
    from taciturn.methods.forecast.function import forecast
    from taciturn.tables.bounds import TableBounds

    budgets = _parse_epsilons(epsilon)
    text = read_text(bounds, "bounds", _MOST_BOUNDS)
    stated = TableBounds.from_toml(text, folder=bounds.parent)
    model = default_model(stated, nonzero, columns, delta=delta, relation=relation, n=n)
    model.set_params(epsilon=budgets[0]).check_parameters()
    rows = None if like is None else _public_rows(like, bounds)
    with share_bar("forecasting") as tell:
        made = [
            forecast(
                model.set_params(epsilon=each), n=n, bounds=bounds, like=rows, simulate=simulate,
                progress=_part(tell, place, len(budgets)),
            )
            for place, each in enumerate(budgets)
        ]  # fmt: skip
        for each, budget in zip(made, budgets, strict=True):
            assert each.epsilon == budget
    base = min(made, key=lambda each: abs(math.log(each.epsilon)))
    changes = _changes(stated, base)
    ratios = stated.target.task == "classify" or stated.target.kind is not None
    wishes = [
        (words, Wish(kind, place, value / changes[place] * base.units[place]))
        for kind, listed in (("width", target_width or []), ("power", power or []))
        for words, place, value in (_wish(kind, each, base, ratios=ratios) for each in listed)
    ]
    with stage("looking for improvements"):
        told = [_reached(base, words, wish) for words, wish in wishes]
        advice = base.advice
    score = {"classify": "AUC", "regress": "R2"}[stated.target.task]
    if stated.target.kind is not None:
        score = "D2"
    elif len(stated.target.classes or ()) > _TWO:
        score = "accuracy"
    found = PlanFile.of(stated.target.name, made, changes, score=score, wishes=told, advice=advice)
    _print_plan(found, base)
    output.mkdir(parents=True, exist_ok=True)
    replace_file(output / "plan.json", found.to_json() + "\n", public=True)
    replace_file(output / "plan.html", plan_page(found), public=True)
    print_line(f"written: {output}: plan.json, plan.html; nothing private was read or spent")


def _parse_epsilons(text: str) -> list[float]:
    from taciturn.core.validation import check_epsilon

    try:
        found = sorted({float(part) for part in text.split(",") if part.strip()})
    except ValueError:
        found = []
    if not 0 < len(found) <= _MOST_EPSILONS or not math.isfinite(found[-1]):
        expected = f"at most {_MOST_EPSILONS} finite numbers with commas between them"
        raise ParameterError("epsilon", text, expected, "write .5,1,2,4")
    for each in found:
        check_epsilon(epsilon=each)
    return found


def default_model(stated: Any, nonzero: str | None, columns: str | None, *, delta: float, relation: str, n: int) -> Any:
    """The default model for the target that the bounds describe."""
    from taciturn.app.cli.fit import parse_nonzero
    from taciturn.methods.families import LOSS_OF_KIND

    target = stated.target
    described: dict[str, Any] = {"delta": delta, "relation": relation}
    if target.task == "classify":
        described["classes"] = target.classes or (0, 1)
    else:
        described["y_bounds"] = (target.lower, target.upper)
        if target.kind is not None:
            described["loss"] = LOSS_OF_KIND[target.kind]
    if relation == "add-remove":
        described["n_public"] = n
    if columns is not None:
        from dataclasses import replace

        names = tuple(name for name, column in stated.columns.items() if column.type != "ignore")
        described["columns"] = find_features(columns, replace(stated, order=names))
    return new_estimator("auto", target.task, parse_nonzero(nonzero), **described)


def _public_rows(like: Path, bounds: Path) -> Any:
    import numpy as np

    from taciturn.methods.forecast.population import PublicRows

    facts = gather_table_facts(like, None, None, bounds, find=False)
    records = read_whole_table(like, facts, invalid="raise")
    X = records.X.toarray() if hasattr(records.X, "toarray") else np.asarray(records.X)
    names, units = tuple(facts.bounds.feature_names), np.array(facts.bounds.feature_units)
    return PublicRows(X, np.asarray(records.y), names, units)


def _part(tell: Callable[[float], None], place: int, total: int) -> Callable[[float], None]:
    return lambda share: tell((place + share) / total)


def _changes(stated: Any, base: Forecast) -> list[float]:
    """The change of a column for which each coefficient is stated: what the bounds file states, or one unit."""
    steps: dict[str, float] = {name: column.per for name, column in stated.columns.items() if column.per is not None}
    return [steps.get(name, 1.0) for name in base.feature_names]


def _wish(kind: str, text: str, base: Forecast, *, ratios: bool) -> tuple[str, int, float]:
    """A wish in words, the feature that it is about, and a width or a coefficient."""
    from taciturn.methods.forecast.population import place_of

    option = "target-width" if kind == "width" else "power"
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name or not value > 0.0 or not math.isfinite(value):
        raise ParameterError(option, text, "NAME=NUMBER with a positive number", "write age=0.1")
    place = place_of(name.strip(), base.feature_names)
    if kind == "width":
        return f"an interval of {base.feature_names[place]} no wider than {value:g}", place, value
    if not ratios:
        return f"an effect of {value:g} of {base.feature_names[place]}, found with 80 % power,", place, value
    if value == 1.0:
        raise ParameterError(option, text, "a ratio other than 1", "write smoker=1.3")
    words = f"a ratio of {value:g} of {base.feature_names[place]}, found with 80 % power,"
    return words, place, abs(math.log(value))


def _reached(base: Forecast, words: str, wish: Wish) -> str:
    """From which epsilon, and from how many records, a wish is reached."""
    from taciturn.methods.forecast.advice import round_up, smallest_epsilon, smallest_n

    epsilon, n = smallest_epsilon(base.trials, wish), smallest_n(base.trials, wish)
    ways = []
    if epsilon is not None:
        ways.append(f"epsilon {round_up(epsilon):g} with {base.n:,} records")
    if n is not None:
        ways.append(f"{round_up(n):,.0f} records at epsilon {base.epsilon:g}")
    return f"{words} needs {', or '.join(ways)}" if ways else f"{words} is out of reach"


def _print_plan(found: PlanFile, base: Forecast) -> None:
    """Print a plan on one screen: half-widths by budget, the weakest columns first, then wishes and advice."""
    from rich.table import Table

    from taciturn.app.plan_file import MEASURES

    first = found.fits[0]
    title = f"{found.target}: half-widths of {found.confidence_level:.0%} intervals, {found.n:,} records"
    print_line(title)
    table = Table(box=None, padding=(0, 1))
    table.add_column("", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    for fit in found.fits:
        table.add_column(f"ε {fit.epsilon:g}", justify="right", no_wrap=True)
    order = _weakest_first(base)
    for j in order[:_MOST_ROWS]:
        cells = [_half(fit.features[j].width[0]) for fit in found.fits]
        table.add_row(shown_text(first.features[j].name), f"{first.features[j].change:g}", *cells)
    if len(order) > _MOST_ROWS:
        table.add_row(f"and {len(order) - _MOST_ROWS:,} more", "", *("" for _ in found.fits))
    table.add_row("get an interval", "", *(f"{fit.interval_probability:.0%}" for fit in found.fits))
    for name, words in (MEASURES | {"score": found.score}).items():
        bands = [fit.measures.get(name) for fit in found.fits]
        if any(bands):
            table.add_row(words, "", *("" if band is None else f"{band[0]:.2f}" for band in bands))
    console().print(table)
    for sentence in (*found.wishes, *found.advice):
        print_sentence(f"{sentence[:1].upper()}{sentence[1:]}.")
    if found.assumptions:
        print_sentence(f"Assumed: {'; '.join(found.assumptions)}.")


def _weakest_first(base: Forecast) -> Sequence[int]:
    """Features by their chance of an interval, then by its width in units of their spread; collinear ones last."""
    import numpy as np

    spread = base.errors[0].spread if base.errors else np.ones(len(base.feature_names))
    widths = np.nan_to_num(base.worst_std_errors * spread, nan=np.inf)
    order: Sequence[int] = np.lexsort((-widths, base.column_probability, ~base.determined)).tolist()
    return order


def _half(width: float) -> str:
    return f"±{width / 2.0:.2g}" if math.isfinite(width) else "none"
