"""The command line: ``taciturn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from taciturn._version import __version__
from taciturn.core.errors import TaciturnError

if TYPE_CHECKING:
    from taciturn.certificate import Certificate

__all__ = ["app", "main"]

app = typer.Typer(
    name="taciturn",
    no_args_is_help=True,
    add_completion=False,
    help="Sparse models and feature selection that say nothing about any one person.",
    epilog="Example: taciturn demo --epsilon 0.5",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"taciturn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Sparse models and feature selection that say nothing about any one person."""


# Public ranges of the measurements in Wolberg's breast cancer data: round numbers around what is typical of a
# cell nucleus on such a slide, for the mean, the standard error and the worst of each. Values beyond are clipped.
_CANCER_RANGES = {
    "radius": ((4, 24), (0, 0.8), (4, 28)),
    "texture": ((6, 32), (0, 2.4), (8, 44)),
    "perimeter": ((30, 150), (0, 6), (30, 180)),
    "area": ((0, 1300), (0, 80), (0, 1800)),
    "smoothness": ((0.05, 0.15), (0, 0.014), (0.06, 0.2)),
    "compactness": ((0, 0.2), (0, 0.05), (0, 0.5)),
    "concavity": ((0, 0.18), (0, 0.06), (0, 0.54)),
    "concave points": ((0, 0.1), (0, 0.024), (0, 0.22)),
    "symmetry": ((0.1, 0.26), (0, 0.04), (0.12, 0.46)),
    "fractal dimension": ((0.04, 0.086), (0, 0.008), (0.03, 0.138)),
}


@app.command()
def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget, > 0.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")] = 1e-6,
    features: Annotated[int, typer.Option(help="How many features to select.")] = 10,
    seed: Annotated[
        int | None, typer.Option(help="Reproduce a run; the certificate then says that it protects nobody.")
    ] = None,
) -> None:
    """Select features of scikit-learn's breast cancer data privately and show the certificate.

    Example: taciturn demo --epsilon 0.5 --features 5
    """
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from taciturn.selectors import CorrelationSelector

    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    ranges = [_cancer_range(name) for name in names]
    low, high = np.transpose(ranges)
    centred = 2 * (data.data - low) / (high - low) - 1
    selector = CorrelationSelector(
        epsilon=epsilon,
        delta=delta,
        classes=(0, 1),
        n_features_to_select=features,
        random_state=seed,
    ).fit(centred, data.target)

    table = Table(title=f"{features} of {len(names)} features, chosen privately")
    table.add_column("feature", style="bold")
    table.add_column("public range", justify="right")
    for name, chosen, (lowest, highest) in zip(names, selector.support_, ranges, strict=True):
        if chosen:
            table.add_row(name, f"{lowest:g} to {highest:g}")
    console = Console()
    console.print(table)
    _print_certificate(console, selector.certificate_)


def _cancer_range(name: str) -> tuple[float, float]:
    """The public range of one measurement."""
    for measure, (mean, error, worst) in _CANCER_RANGES.items():
        if measure in name:
            return error if name.endswith("error") else worst if name.startswith("worst") else mean
    raise KeyError(name)


def _print_certificate(console: Console, certificate: Certificate) -> None:
    facts = Table(title="Certificate", show_header=False)
    facts.add_column(style="bold")
    facts.add_column()
    facts.add_row("epsilon", f"{certificate.epsilon:g}")
    facts.add_row("delta", f"{certificate.delta:g}")
    facts.add_row("relation", certificate.relation)
    facts.add_row("status", certificate.status)
    for release in certificate.events:
        facts.add_row("released", str(release))
    facts.add_row("arithmetic", certificate.arithmetic)
    facts.add_row("seeded", "yes: for reproduction only" if certificate.seeded else "no")
    if certificate.status == "proved":
        pair = certificate.for_group(2)
        facts.add_row("a person with 2 records", f"epsilon {pair.epsilon:.4g} at delta {pair.delta:g}")
    console.print(facts)
    console.print(Panel(str(certificate), title="In words"))


def main() -> None:
    """Run the command line; what taciturn refuses ends with one sentence and exit code 1."""
    try:
        app()
    except TaciturnError as error:
        Console(stderr=True).print(f"taciturn: {error}", style="red", markup=False, highlight=False)
        raise SystemExit(1) from None
