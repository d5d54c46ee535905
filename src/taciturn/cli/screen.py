"""What all commands print: lines, errors, notes, progress, models and certificates."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from taciturn.core.errors import CertificateError
from taciturn.core.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from taciturn.certificate import Certificate
    from taciturn.modelfile import Model

__all__ = [
    "console",
    "counter",
    "format_command",
    "print_certificate",
    "print_error",
    "print_line",
    "print_model",
    "print_note",
    "print_words",
    "shown_text",
    "stage",
]


# Screens as wide as this show the parts of standard errors too.
_WIDE = 120


def console(*, stderr: bool = False) -> Console:
    """Make a console for standard output, or for standard error."""
    from taciturn.cli.consoles import ErrorConsole, OutputConsole

    return ErrorConsole() if stderr else OutputConsole()


def shown_text(text: str) -> Text:
    """Text for a table, without markup or invisible characters."""
    from rich.text import Text

    return Text(visible(text))


def print_line(text: str) -> None:
    """Print one line unchanged: file names and column names are no markup, and do not wrap."""
    console().print(visible(text), markup=False, highlight=False, soft_wrap=True)


def print_error(text: str) -> None:
    """Print one sentence on standard error."""
    console(stderr=True).print(f"taciturn: {visible(text)}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_note(text: str) -> None:
    """Print a note for the user on standard error."""
    console(stderr=True).print(f"note: {visible(text)}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def format_command(context: typer.Context) -> str:
    """The command line of this run, without options that have their defaults; no seed, account or place of a key."""
    parts = ["taciturn", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        # As text: older versions of typer give a path as it was typed.
        if value is None or str(value) == str(parameter.default):
            continue
        if parameter.param_type_name == "option":
            parts.append(max(parameter.opts, key=len))
        if value is not True:
            parts.append("..." if parameter.name in ("account", "seed", "sign") else str(value))
    return shlex.join(parts)


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Show the progress of a task on standard error while it runs."""
    with _progress() as progress:
        progress.add_task(visible(what), total=None)
        yield


@contextmanager
def counter(what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """Show the progress of a task of unknown length, with a count."""
    with _progress(f"{{task.completed:,.0f}} {unit}") as progress:
        task = progress.add_task(visible(what), total=None)
        yield lambda done: progress.advance(task, done)


def _progress(*more: str) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *map(TextColumn, more), TimeElapsedColumn())
    errors = console(stderr=True)
    # In a log a progress bar would leave empty lines.
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def print_model(model: Model) -> None:
    """Print the coefficients by name, the largest first, with standard errors and intervals if the model has some."""
    import numpy as np
    from rich.table import Table

    if getattr(model.estimator, "inference_", None) is not None:
        if model.estimator.inference_.reason is None:
            _print_intervals(model)
            return
        for note in model.inference_notes:
            print_line(note)
    estimator, names = model.estimator, model.feature_names
    stored = estimator.coef_
    coefficients = np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored)
    outputs = list(getattr(estimator, "classes_", [model.bounds.target.name]))
    if len(outputs) == 2 and len(coefficients) == 1:
        outputs = outputs[1:]
    shown = np.flatnonzero(coefficients.any(axis=0))
    table = Table(title=shown_text(f"{model.bounds.target.name}: {len(shown)} of {len(names)} features"))
    table.add_column("feature", style="bold")
    for output in outputs:
        heading = f"coefficient ({output})" if len(coefficients) > 1 else "coefficient"
        table.add_column(shown_text(heading), justify="right")
    for at in shown[np.argsort(-np.abs(coefficients[:, shown]).sum(axis=0), kind="stable")]:
        table.add_row(shown_text(names[at]), *(f"{value:+.4g}" for value in coefficients[:, at]))
    table.add_row("(intercept)", *(f"{value:+.4g}" for value in np.atleast_1d(estimator.intercept_)))
    console().print(table)


def _print_intervals(model: Model) -> None:
    """Print coefficients with standard errors, and effects or odds ratios per unit of their column."""
    from rich.table import Table

    from taciturn.drawing.formats import format_estimate

    summary = model.summary()
    columns, found, names = summary.columns, summary.inference, summary.names
    shown = sorted(range(len(names)), key=lambda j: -abs(columns["coefficient"][j]))
    about = f"{model.bounds.target.name}: {len(shown)} of {len(model.feature_names)} features"
    table = Table(title=shown_text(f"{about}, from {found.n_records:,} {model.certificate.unit}s"))
    table.add_column("feature", style="bold", overflow="fold")
    level = f"{100.0 * found.confidence_level:g}% interval"
    effects = ("effect per unit", "lower per unit", "upper per unit")
    if summary.odds:
        effects = ("odds ratio", "odds lower", "odds upper")
    numbers = {name: [float(value) for value in values] for name, values in columns.items()}
    value, low, high = (numbers[name] for name in effects)
    per_unit = [format_estimate(value[j], low[j], high[j]) for j in range(len(names))]
    cells = {
        "coefficient": [f"{number:+.4g}" for number in numbers["coefficient"]],
        "std error": [*map(_number, numbers["std error"])],
        "of which privacy": [*map(_number, numbers["privacy"])],
        level: [*map(_ends, numbers["lower"], numbers["upper"])],
        "p": [*map(_p_value, numbers["p"])],
        f"{effects[0].removesuffix(' per unit')} per unit\n({level})": [*per_unit, ""],
    }
    screen = console()
    if screen.width < _WIDE:
        # The report has them.
        for head in ("of which privacy", level):
            del cells[head]
    for head in cells:
        table.add_column(head, justify="right")
    for j in [*shown, len(names)]:
        name = shown_text(names[j]) if j < len(names) else "(intercept)"
        table.add_row(name, *(column[j] for column in cells.values()))
    screen.print(table)
    print_line(model.inference_notes[0])


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _ends(lower: float, upper: float) -> str:
    return "-" if math.isnan(lower) else f"{_number(lower)} to {_number(upper)}"


def _p_value(value: float) -> str:
    return "-" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def print_certificate(certificate: Certificate) -> None:
    """Print the certificate as a table of facts and in words."""
    from rich.table import Table

    facts = Table(title="Certificate", show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    facts.add_row("epsilon", f"{certificate.epsilon:g}")
    facts.add_row("delta", f"{certificate.delta:g}")
    facts.add_row("relation", shown_text(certificate.relation))
    if certificate.unit == "person":
        facts.add_row("unit", "person: all rows of one together")
    facts.add_row("status", shown_text(certificate.status))
    for release in certificate.events:
        facts.add_row("released", shown_text(str(release)))
    facts.add_row("arithmetic", shown_text(certificate.arithmetic))
    facts.add_row("seeded", "yes: for reproduction only" if certificate.seeded else "no")
    for name, value in _attacks(certificate):
        facts.add_row(name, value)
    if certificate.is_proved:
        size = 2 * certificate.group_size
        whom = f"{size} persons together" if certificate.unit == "person" else f"a person with {size} records"
        facts.add_row(whom, _group_guarantee(certificate))
    console().print(facts)
    print_words(certificate)


def _attacks(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What is proved about attackers: the Gaussian parameter, and tests of membership."""
    from taciturn.drawing.formats import format_percent, round_safely

    rates, mu = certificate.attack_rates(), certificate.mu
    if rates is None:
        return
    if mu is not None:
        yield "mu (Gaussian)", round_safely(mu, up=True)
    pairs = zip(rates.fpr, rates.tpr, strict=True)
    powers = ", ".join(f"{format_percent(power, up=True)} at {100.0 * level:g}%" for level, power in pairs)
    yield "membership test", f"true positives at most {powers} false positives"
    yield "its advantage", f"at most {format_percent(rates.advantage, up=True)}"


def _group_guarantee(certificate: Certificate) -> str:
    try:
        pair = certificate.for_group(2)
    except CertificateError:
        return f"no finite epsilon at delta {certificate.delta:g}"
    return f"epsilon {pair.epsilon:.4g} at delta {pair.delta:g}"


def print_words(certificate: Certificate) -> None:
    """Print the certificate as a paragraph."""
    from rich.panel import Panel

    console().print(Panel(shown_text(str(certificate)), title="The guarantee in words"))
