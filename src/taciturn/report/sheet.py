"""The page to sign: the fields of a registry of releases, on one sheet of paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from taciturn._version import __version__
from taciturn.certificate import Certificate, Release
from taciturn.certificate.words import relation_in_words
from taciturn.core.visible import visible
from taciturn.drawing.formats import format_fact, format_percent, round_safely
from taciturn.report.guarantee import explain_guarantee
from taciturn.report.page import Page

if TYPE_CHECKING:
    from taciturn.modelfile import Model

__all__ = ["add_sheet"]

# So that everything fits on one sheet, whatever a certificate holds; the files have all of it.
_LONGEST = 360
_MOST_RELEASES, _LONGEST_RELEASE = 12, 92
_MOST_COLUMNS = 100

_BY_THE_OWNER = (
    "Purpose of the release",
    "Done with the data before the fit (preprocessing, tuning), and its cost",
    "Done with the result afterwards, and where it is published",
)
_SIGNATURES = ("Name and function", "Place and date", "Signature")
_UNITS = {"record": "one record", "person": "one person, with all rows"}


def add_sheet(page: Page, model: Model, digest: str) -> None:
    """Add the page to sign, which print shows alone.

    Its fields are those of the OpenDP deployments registry and of NIST SP 800-226 that follow from a certificate, in
    their order, and lines for those that its owner has to fill in.
    """
    certificate = model.certificate
    page.sheet(
        f"Release of a model of \u201c{_cut(model.bounds.target.name, 40)}\u201d",
        [_cut(explain_guarantee(certificate)[0])],
        [(name, _cut(text)) for name, text in _fields(model, digest)],
        [*map(_release, certificate.events[:_MOST_RELEASES]), *_rest(certificate)],
        _BY_THE_OWNER,
        _SIGNATURES,
    )


def _fields(model: Model, digest: str) -> Iterator[tuple[str, str]]:
    certificate = model.certificate
    yield "Variant", _variant(certificate)
    group = f", groups of up to {certificate.group_size}" if certificate.group_size > 1 else ""
    yield "Privacy unit", f"{_UNITS[certificate.unit]}{group}"
    yield "Relation", f"{certificate.relation}: {relation_in_words(certificate)}"
    yield "Budget", _budget(certificate)
    yield "How far proved", _trust(certificate)
    yield "Data", _data(model)
    yield "Not protected", "; ".join(certificate.unprotected)
    yield "Assumed", "; ".join(certificate.assumptions) or "nothing"
    yield "Outside the proof", "; ".join(certificate.side_channels) or "nothing"
    yield "Account entry", certificate.account_head or "none: no account keeps count of several releases"
    yield "Files", f"SHA-256 of model.json: {digest}; written by taciturn {__version__}, checked by taciturn verify"


def _variant(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "none: the result was computed without noise"
    kind = "approximate" if certificate.delta else "pure"
    return f"{kind} differential privacy" + ("" if certificate.mu is None else ", Gaussian")


def _budget(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "none"
    stated = f"epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.6g}"
    mu = certificate.mu
    if mu is None:
        return stated
    return f"{stated}; mu = {round_safely(mu, up=True)}, rho = {round_safely(mu * mu / 2.0, up=True)}"


def _trust(certificate: Certificate) -> str:
    order = "in their order" if certificate.ordered else "in any order"
    parts = [
        f"{certificate.status}, with {certificate.arithmetic} arithmetic",
        f"releases are composed {order} (bound: {certificate.bound})",
    ]
    rates = certificate.attack_rates()
    if rates is not None:
        pairs = zip(rates.fpr, rates.tpr, strict=True)
        powers = ", ".join(f"{format_percent(power, up=True)} at {100.0 * level:g}%" for level, power in pairs)
        parts.append(f"a test of membership has true positive rates of at most {powers} false positives")
    parts.append("the noise was seeded: for reproduction only" if certificate.seeded else "the noise was not seeded")
    return "; ".join(parts)


def _data(model: Model) -> str:
    certificate, target = model.certificate, model.bounds.target
    number = certificate.public.get("records")
    if target.lower is not None:
        stated = f"from {format_fact(target.lower)} to {format_fact(target.upper)}"
    else:
        stated = "labels found in the table" if target.classes is None else f"classes {format_fact(target.classes)}"
    columns = [name for name, _ in model.bounds.used]
    how_many = "a private number of" if number is None else format_fact(number)
    return (
        f"{how_many} {certificate.unit}s; target {target.name} ({stated}); {len(model.feature_names):,} features of "
        f"{len(columns):,} columns with public bounds: {', '.join(columns[:_MOST_COLUMNS])}"
    )


def _release(release: Release) -> str:
    noise = "no noise" if release.noise == "none" else f"{release.noise} noise of {release.scale:.4g}"
    return _cut(f"{release.count:,} x {noise}: {release.subject}", _LONGEST_RELEASE)


def _rest(certificate: Certificate) -> list[str]:
    more = len(certificate.events) - _MOST_RELEASES
    if not certificate.events:
        return ["nothing that depends on the data"]
    return [f"and {more:,} more kinds of release, see certificate.json"] if more > 0 else []


def _cut(text: str, most: int = _LONGEST) -> str:
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
