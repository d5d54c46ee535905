"""How good a model is, on one screen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from taciturn.cli.screen import console, print_certificate, print_line, shown_text

if TYPE_CHECKING:
    from taciturn.certificate import Certificate
    from taciturn.estimators.model_score import ModelScore, PrivateScore

__all__ = ["guarantee_line", "print_score", "score_notes"]


def print_score(score: PrivateScore | ModelScore, target: str) -> None:
    """Print one number with its certificate, or all measures with their intervals, baselines and one line about it."""
    from taciturn.estimators.model_score import PrivateScore

    private = score.certificate.status != "not private"
    if not isinstance(score, PrivateScore):
        _print_measures(score, target)
    elif private:
        print_certificate(score.certificate)
        print_line(f"{score.metric}: {score.value:.6g}, with noise of standard deviation {score.std:.3g}")
    else:
        print_line(f"{score.metric}: {score.value:.6g}")
    if not private:
        print_line("not private: these numbers may be shown only if the table is public; --epsilon adds noise to them")


def _print_measures(score: ModelScore, target: str) -> None:
    from rich.table import Table

    from taciturn.drawing.formats import format_estimate

    records = score.certificate.public.get("records")
    about = f"{target}: how good the model is, on {records:,} {score.certificate.unit}s"
    table = Table(title=shown_text(about))
    table.add_column("measure", style="bold")
    table.add_column(f"value ({100.0 * score.confidence_level:g}% interval)", justify="right")
    table.add_column("baseline", justify="right")
    for found in score.measures:
        if found.is_open:
            shown = f"open ({_number(found.lower)} to {_number(found.upper)})"
        else:
            shown = format_estimate(found.value, found.lower, found.upper)
        table.add_row(found.name, shown, _number(found.baseline))
    console().print(table)
    for note in score_notes(score):
        print_line(note)
    if score.certificate.status != "not private":
        print_line(guarantee_line(score.certificate))


def score_notes(score: ModelScore) -> list[str]:
    """What the numbers are, in sentences."""
    notes = []
    if len(score.labels) == 2:
        notes.append(f"Probabilities are those of {score.labels[1]}.")
    baseline = "the mean of the target" if not score.labels else "the shares of the classes"
    notes.append(f"The baseline predicts {baseline} for everybody.")
    if any(found.is_open for found in score.measures):
        notes.append("The noise leaves a measure open: score more records, or with a larger epsilon.")
    return notes


def guarantee_line(certificate: Certificate) -> str:
    """The guarantee of a release in one line."""
    whom = "all rows of one person" if certificate.unit == "person" else "one record"
    seeded = "; SEEDED, for reproduction only" if certificate.seeded else ""
    return (
        f"guarantee: epsilon {certificate.epsilon:g}, delta {certificate.delta:g} for {whom} ({certificate.relation}), "
        f"{certificate.status}{seeded}"
    )


def _number(value: float) -> str:
    if math.isinf(value):
        return "any number below" if value < 0.0 else "any number above"
    return f"{value:.4g}"
