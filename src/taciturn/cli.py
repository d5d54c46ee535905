"""The command line: ``taciturn``."""

from __future__ import annotations

from pathlib import Path
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
    # A pretty traceback may print local variables, and those are data.
    pretty_exceptions_enable=False,
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


# Public ranges of the measurements in Wolberg's breast cancer data: from nought to a round number that the mean of such
# a measurement rarely passes; standard errors up to a tenth of it, the worst up to one and a half times.
_CANCER_LIMITS = {
    "radius": 25,
    "texture": 40,
    "perimeter": 160,
    "area": 1500,
    "smoothness": 0.2,
    "compactness": 0.2,
    "concavity": 0.2,
    "concave points": 0.1,
    "symmetry": 0.4,
    "fractal dimension": 0.1,
}


@app.command()
def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget, > 0.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")] = 1e-6,
    features: Annotated[int, typer.Option(min=1, max=30, help="How many features to select.")] = 10,
    seed: Annotated[
        int | None, typer.Option(help="Reproduce a run; whoever knows the seed can undo the noise.")
    ] = None,
) -> None:
    """Select features of scikit-learn's breast cancer data privately and show the certificate.

    Example: taciturn demo --epsilon 0.5 --features 5
    """
    from sklearn.datasets import load_breast_cancer

    from taciturn.selectors import CorrelationSelector

    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    limits = [_cancer_limit(name) for name in names]
    centred = 2 * data.data / limits - 1
    selector = CorrelationSelector(
        epsilon=epsilon,
        delta=delta,
        classes=(0, 1),
        n_features_to_select=features,
        random_state=seed,
    ).fit(centred, data.target)

    how = "privately" if selector.certificate_.status == "proved" else "without privacy"
    table = Table(title=f"{features} of {len(names)} features, chosen {how}")
    table.add_column("feature", style="bold")
    table.add_column("public range", justify="right")
    for name, chosen, limit in zip(names, selector.support_, limits, strict=True):
        if chosen:
            table.add_row(name, f"0 to {limit:g}")
    console = Console()
    console.print(table)
    _print_certificate(console, selector.certificate_)


def _cancer_limit(name: str) -> float:
    """The upper end of the public range of one measurement."""
    (limit,) = (limit for measure, limit in _CANCER_LIMITS.items() if measure in name)
    return limit / 10 if name.endswith("error") else 1.5 * limit if name.startswith("worst") else limit


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="An experiment, or all, or list to see what there is.")],
    trials: Annotated[int | None, typer.Option(min=1, help="Trials on each data set. [default: the paper's]")] = None,
    data: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="Folder of the data sets, before TACITURN_DATA and a cache."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Few trials: minutes instead of hours.")] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", file_okay=False, help="Folder of the results; a killed run goes on there.")
    ] = Path("reproduction"),
) -> None:
    """Regenerate tables and figures of papers, with the sound methods beside the published ones.

    Example: taciturn reproduce dpsis-microarrays --quick --data ../data
    """
    from taciturn.core.errors import DataError
    from taciturn.reproduce import EXPERIMENTS, find_experiment, run_experiment, write_report

    console = Console()
    if name == "list":
        table = Table(title="Experiments")
        for heading in ("name", "paper", "item", "what it measures", "trials"):
            table.add_column(heading)
        for each in EXPERIMENTS:
            table.add_row(each.name, each.paper, each.item, each.summary, f"{each.trials} (quick: {each.quick_trials})")
        console.print(table)
        return
    experiments = EXPERIMENTS if name == "all" else (find_experiment(name),)
    reasons: dict[str, None] = {}
    for each in experiments:
        skipped = run_experiment(each, output, trials=trials, data=data, jobs=jobs, quick=quick, console=console)
        if name != "all" and len(skipped) == len(each.cases):
            raise DataError(f"{name}: none of its data sets can be used. {skipped[0]}")
        reasons |= dict.fromkeys(skipped)
    for reason in reasons:
        console.print(f"skipped: {reason}", style="yellow", markup=False, highlight=False)
    console.print(f"written: {write_report(EXPERIMENTS, output)}", markup=False, highlight=False)


@app.command()
def audit(
    name: Annotated[str, typer.Argument(help="A class, or all, or list to see what there is.")],
    epsilon: Annotated[float, typer.Option(help="The budget that is attacked, from 0.01 to 10.")] = 1.0,
    trials: Annotated[
        int | None, typer.Option(min=8, help="Runs on each of two data sets. [default: the entry's own]")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
) -> None:
    """Attack this library's own guarantees, and print what was found; exit code 1 if a claim is refuted.

    Example: taciturn audit HardThresholdRegressor --epsilon 2 --jobs 2
    """
    from taciturn.audit.run import show_audits

    if not show_audits(name, epsilon, trials, jobs):
        raise typer.Exit(1)


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
