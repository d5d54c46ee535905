"""What commands print, beyond their own tables."""

from __future__ import annotations

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
    "command_of",
    "console",
    "counter",
    "print_certificate",
    "print_error",
    "print_line",
    "print_model",
    "print_note",
    "print_words",
    "shown_text",
    "stage",
]


def console(*, stderr: bool = False) -> Console:
    """A console for standard output, or for standard error."""
    from taciturn.cli.consoles import ErrorConsole, OutputConsole

    return ErrorConsole() if stderr else OutputConsole()


def shown_text(text: str) -> Text:
    """Text for a table: no markup, and nothing that cannot be seen."""
    from rich.text import Text

    return Text(visible(text))


def print_line(text: str) -> None:
    """Print one line as it is: file names and column names are not markup, and are not broken."""
    console().print(visible(text), markup=False, highlight=False, soft_wrap=True)


def print_error(text: str) -> None:
    """One sentence on standard error."""
    console(stderr=True).print(f"taciturn: {visible(text)}", style="red", markup=False, highlight=False, soft_wrap=True)


def print_note(text: str) -> None:
    """What whoever runs the command should know, on standard error."""
    console(stderr=True).print(f"note: {visible(text)}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def command_of(context: typer.Context) -> str:
    """The command line that is being run, as far as it differs from the defaults; a seed is never repeated."""
    parts = ["taciturn", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "option":
            parts.append(max(parameter.opts, key=len))
        if value is not True:
            parts.append("..." if parameter.name == "seed" else str(value))
    return shlex.join(parts)


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Show on standard error that something is being done, and for how long; it leaves no trace in the output."""
    with _progress() as progress:
        progress.add_task(visible(what), total=None)
        yield


@contextmanager
def counter(what: str, unit: str) -> Iterator[Callable[[int], None]]:
    """The same for work of unknown length that is counted."""
    with _progress(f"{{task.completed:,.0f}} {unit}") as progress:
        task = progress.add_task(visible(what), total=None)
        yield lambda done: progress.advance(task, done)


def _progress(*more: str) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *map(TextColumn, more), TimeElapsedColumn())
    errors = console(stderr=True)
    # Where nobody looks, such as in a log, a bar would leave empty lines.
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def print_model(model: Model) -> None:
    """The coefficients by name, the largest first, with the noise in them where that is known."""
    import numpy as np
    from rich.table import Table

    estimator, names = model.estimator, model.feature_names
    stored = estimator.coef_
    coefficients = np.atleast_2d(stored.toarray() if hasattr(stored, "toarray") else stored)
    deviations = np.atleast_2d(getattr(estimator, "coef_std_", np.full(coefficients.shape, np.nan)))
    outputs = list(getattr(estimator, "classes_", [model.bounds.target.name]))
    if len(outputs) == 2 and len(coefficients) == 1:
        outputs = outputs[1:]
    shown = np.flatnonzero(coefficients.any(axis=0))
    table = Table(title=shown_text(f"{model.bounds.target.name}: {len(shown)} of {len(names)} features"))
    table.add_column("feature", style="bold")
    for output in outputs:
        heading = f"coefficient ({output})" if len(coefficients) > 1 else "coefficient"
        table.add_column(shown_text(heading), justify="right")
        table.add_column("noise", justify="right")
    for at in shown[np.argsort(-np.abs(coefficients[:, shown]).sum(axis=0), kind="stable")]:
        cells = []
        for value, deviation in zip(coefficients[:, at], deviations[:, at], strict=True):
            cells += [f"{value:+.4g}", "" if np.isnan(deviation) else f"± {deviation:.2g}"]
        table.add_row(shown_text(names[at]), *cells)
    cells = [cell for value in np.atleast_1d(estimator.intercept_) for cell in (f"{value:+.4g}", "")]
    table.add_row("(intercept)", *cells)
    console().print(table)


def print_certificate(certificate: Certificate) -> None:
    """The certificate as a table of facts and in words."""
    from rich.table import Table

    facts = Table(title="Certificate", show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    facts.add_row("epsilon", f"{certificate.epsilon:g}")
    facts.add_row("delta", f"{certificate.delta:g}")
    facts.add_row("relation", shown_text(certificate.relation))
    facts.add_row("status", shown_text(certificate.status))
    for release in certificate.events:
        facts.add_row("released", shown_text(str(release)))
    facts.add_row("arithmetic", shown_text(certificate.arithmetic))
    facts.add_row("seeded", "yes: for reproduction only" if certificate.seeded else "no")
    if certificate.is_proved:
        facts.add_row(f"a person with {2 * certificate.group_size} records", _for_a_pair(certificate))
    console().print(facts)
    print_words(certificate)


def _for_a_pair(certificate: Certificate) -> str:
    try:
        pair = certificate.for_group(2)
    except CertificateError:
        return f"no finite epsilon at delta {certificate.delta:g}"
    return f"epsilon {pair.epsilon:.4g} at delta {pair.delta:g}"


def print_words(certificate: Certificate) -> None:
    """The certificate as a paragraph."""
    from rich.panel import Panel

    console().print(Panel(shown_text(str(certificate)), title="The guarantee in words"))
