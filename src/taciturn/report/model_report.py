"""The report on a fitted model: coefficients, guarantee, releases and assumptions."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

from taciturn._version import __version__
from taciturn.certificate import Certificate, Release
from taciturn.drawing.formats import flatten_facts, format_fact, format_number
from taciturn.estimators.model_score import ModelScore
from taciturn.events import NotPrivateEvent
from taciturn.modelfile import model_digest
from taciturn.report.coefficients import show_coefficients
from taciturn.report.guarantee import explain_guarantee, list_warnings, show_odds, summarise
from taciturn.report.page import Page
from taciturn.report.scores import show_score
from taciturn.report.sheet import add_sheet

if TYPE_CHECKING:
    from taciturn.modelfile import Model, ScoreFile
    from taciturn.tables import TableBounds
    from taciturn.tables.columns import Column
    from taciturn.tables.missing import Fill

__all__ = ["model_report"]

_MOST_COLUMNS = 1000
_TASKS = {"regress": "regression", "classify": "classification"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "dp-accounting")


def model_report(model: Model, score: ScoreFile | None = None) -> str:
    """Write the report on a model as one HTML file.

    The report holds the releases that the certificate covers (coefficients, intercept, bounds found privately), the
    certificate, and the public facts that the owner stated. Nothing else in it depends on data, so whoever may see the
    model may see the report.

    Parameters
    ----------
    model : taciturn.modelfile.Model
        A fitted model with its bounds and the command that made it.
    score : taciturn.modelfile.ScoreFile, default=None
        All measures of this model, a release of its own; they get a section.

    Returns
    -------
    str
        The text of ``report.html``.
    """
    certificate = model.certificate
    page = Page(f"Model of \u201c{model.bounds.target.name}\u201d ({_TASKS[model.task]})")
    page.paragraph(summarise(certificate, type(model.estimator).__name__))
    for warning in list_warnings(certificate):
        page.banner(warning)
    page.section("The guarantee")
    page.points(explain_guarantee(certificate), ordered=True)
    page.section("The model")
    show_coefficients(page, model)
    if score is not None and isinstance(score.score, ModelScore):
        page.section("How good is it")
        show_score(page, score.score)
    page.section("What an attacker can come to believe")
    show_odds(page, certificate)
    page.section("What was released")
    _list_releases(page, certificate)
    page.section("What was assumed public")
    _list_public(page, certificate, model)
    page.section("How it was made")
    page.code_block(model.command, "The command that made it")
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    page.paragraph(
        f"This page was written by taciturn {__version__} with Python {platform.python_version()}, {libraries}."
    )
    digest = model_digest(model)
    page.paragraph(
        f"SHA-256 of model.json: {digest}. The command taciturn verify checks that the files belong together."
    )
    page.section("The certificate")
    page.paragraph(str(certificate))
    page.code_block(certificate.to_json(), "The certificate as JSON", folded=True)
    add_sheet(page, model, digest)
    return page.render()


def _list_releases(page: Page, certificate: Certificate) -> None:
    if not certificate.events:
        page.paragraph("No release depends on the data.")
        return
    page.paragraph(
        "Everything that was computed from the records and released. A scale of 10 sensitivities means noise ten times "
        f"as large as the change that one {certificate.unit} can cause."
    )
    page.table(
        ("what", "noise", "how often", "scale in sensitivities"),
        [(release.subject, *_noise(release)) for release in certificate.events],
        "Every release, in order" if certificate.ordered else "Every release",
        numeric={2, 3},
    )


def _noise(release: Release) -> tuple[str, str, str]:
    if isinstance(release.event, NotPrivateEvent):
        return "none", f"{release.count:,}", "none"
    return release.noise, f"{release.count:,}", format_number(release.scale)


def _list_public(page: Page, certificate: Certificate, model: Model) -> None:
    page.paragraph("The guarantee treats the following facts as public and does not protect them.")
    names = {"records": "persons"} if certificate.unit == "person" else {}
    page.facts(flatten_facts({names.get(name, name): fact for name, fact in certificate.public.items()}))
    if certificate.assumptions:
        page.paragraph("It assumes that")
        page.points(certificate.assumptions)
    page.paragraph("It does not protect")
    page.points(certificate.unprotected)
    if certificate.side_channels:
        page.paragraph("Outside the proof lie")
        page.points(certificate.side_channels)
    page.section("Target and columns", level=3)
    bounds, target = model.bounds, model.bounds.target
    if target.lower is not None:
        stated = f"numbers from {format_fact(target.lower)} to {format_fact(target.upper)}"
        if target.name in bounds.found_privately:
            stated += " (found privately)"
    else:
        stated = "labels found in the table" if target.classes is None else f"classes {format_fact(target.classes)}"
    page.paragraph(
        f"Target: {target.name}, {stated}. Numbers beyond the bounds of a column count as the nearest bound."
    )
    n_columns = len(bounds.order or ()) + sum(column.type == "ignore" for column in bounds.columns.values())
    page.table(
        ("column", "values", "where missing", "source"),
        itertools.islice(_columns(bounds, model.estimator.invalid), _MOST_COLUMNS),
        f"All {n_columns:,} columns" if n_columns <= _MOST_COLUMNS else f"{_MOST_COLUMNS:,} of {n_columns:,} columns",
    )


def _columns(bounds: TableBounds, invalid: str) -> Iterator[tuple[str, str, str, str]]:
    found = set(bounds.found_privately)
    unfilled = "refused" if invalid == "raise" else "the record is left out"
    for name, column in bounds.used:
        filled = _filled(bounds.fill_of(name)) or unfilled
        yield name, _values(column), filled, "found privately" if name in found else "bounds file"
    for name, column in bounds.columns.items():
        if column.type == "ignore":
            yield name, "not used", "", "bounds file"


def _filled(fill: Fill | None) -> str:
    """What stands for missing cells, in words; no words if nothing does."""
    if fill is None:
        return ""
    value = "0 for every feature" if fill.value is None else format_fact(fill.value)
    return f"{value} is filled in{', and a feature says so' if fill.indicator else ''}"


def _values(column: Column) -> str:
    if column.type == "number":
        limits = "; <5 counts as 5, and >5 too" if column.censored else ""
        return f"numbers from {format_fact(column.lower)} to {format_fact(column.upper)}{limits}"
    if column.type == "date":
        if column.parts:
            return f"dates: {' and '.join(column.parts)}"
        return f"days since {column.since}, from {format_fact(column.lower)} to {format_fact(column.upper)}"
    if column.type == "boolean":
        return "yes or no"
    group = "" if column.group is None else f" (first {column.group} characters)"
    return f"one of: {format_fact(column.categories)}{group}"
